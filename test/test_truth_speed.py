# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""An error in the speed of the truth is detected by the distance between fixes."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cli_examples import call

from sim2real_eval.api import simulate
from sim2real_eval.preflight.truth_speed import TruthSpeed
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.writing import write_recording
from sim_sensors.core.errors import ParameterError
from sim_sensors.motion.motions import motion_of

RUNS, SECONDS = 20, 30.0  # of the paper


@functools.cache
def drive(number: int, name: str = 'line') -> Recording:
    """Return a drive at 2 m/s with an RTK receiver, each into another direction."""
    size = {'speed': 2.0, 'heading': 0.7 * number, 'rest_time': 0.0}
    size = size if name == 'line' else {'speed': 2.0}
    motion = motion_of(name, run=f'{number}', duration=SECONDS + 2.0, parameters=size)
    return simulate(motion, gps='zed_f9p_rtk', imu='ideal', seed=number)


def scaled(number: int, factor: float) -> Recording:
    truth = drive(number).require('truth')
    faster = dataclasses.replace(truth, linear_velocity=truth.linear_velocity * factor)
    return drive(number).with_messages('truth', faster)


def check_speed(factors: np.ndarray) -> TruthSpeed:
    check = TruthSpeed(SECONDS)
    for number, factor in enumerate(factors):
        check.add(scaled(number, float(factor)))
    assert len(check.runs) == len(factors)
    return check


@pytest.mark.parametrize('scale', [0.96, 1.0, 1.03])
def test_the_speed_error_shared_by_scattered_runs_is_inside_the_interval(
    scale: float, record_property: Callable[[str, object], None]
) -> None:
    # One of 20 seeds would fail.
    factors = scale + np.random.default_rng(3).normal(0.0, 0.005, RUNS)
    check = check_speed(factors)
    driven = float(np.mean([run.fixes for run in check.runs]))
    low, high = check.interval
    assert low <= (scale - 1.0) * driven <= high
    assert high - low < 0.03
    assert check.scale == pytest.approx(float(factors.mean()), abs=5e-4)
    # Less the scatter of the runs, which is drawn.
    record_property(f'{scale}', check.scale - float(factors.mean()) + scale - 1.0)
    codes = [finding.code for finding in check.findings]
    assert codes == ([] if scale == 1.0 else ['check.truth_speed'])


def test_errors_of_a_receiver_match_its_stated_covariance() -> None:
    check = check_speed(np.ones(RUNS))
    z = check.errors / np.array([run.deviation for run in check.runs])
    # The mean square of 20 normal errors is in this range with 99.9 %.
    assert 0.27 < float(np.mean(z**2)) < 2.37


def test_with_too_much_scatter_between_runs_the_speed_is_unknown() -> None:
    check = check_speed(1.0 + 0.2 * np.array([-1.0, 1.0] * (RUNS // 2)))
    assert [finding.code for finding in check.findings] == ['check.truth_speed_unsure']
    assert check.bound > 0.1


def test_bends_and_standstills_are_not_used_as_straight_runs() -> None:
    check = TruthSpeed(SECONDS)
    check.add(drive(0, 'circle'))
    motion = motion_of('standstill', duration=SECONDS + 2.0)
    check.add(simulate(motion, gps='zed_f9p_rtk', imu='ideal'))
    assert check.runs == []
    assert [finding.code for finding in check.findings] == ['check.few_straight_runs']
    with pytest.raises(ParameterError, match=r'0\.1 s'):
        TruthSpeed(0.1).add(drive(0, 'line'))


def test_check_fails_on_a_wrong_speed_and_records_its_scale(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [str(tmp_path / f'{number}') for number in range(2)]
    for number, path in enumerate(paths):
        write_recording(scaled(number, 1.05), path, storage='csv')
    words = ['check', *paths, '--straight', f'{SECONDS:g}']
    outcome = call(capsys, *words, '--json')
    assert outcome.status == 1
    record = json.loads(outcome.out)['truth_speed']
    assert record['scale'] == pytest.approx(1.05, abs=2e-3)
    assert [len(record['runs']), len(record['interval'])] == [2, 2]
