# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Findings about a judged run."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judge_examples import filter_config, imu, mask, navsat_config, odometry, recording, stamps
from scipy.spatial.transform import Rotation

from sim2real_eval import simulate
from sim2real_eval.common.findings import Finding
from sim2real_eval.judge.estimate import JudgedRun, PartCount
from sim2real_eval.judge.robot_localization.advice import (
    input_advice,
    navsat_advice,
    part_advice,
    tick_advice,
)
from sim2real_eval.judge.robot_localization.embedded import judge, prepare
from sim2real_eval.judge.robot_localization.replay_options import ReplayOptions
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.recording import StaticTransform
from sim_sensors import motion_of
from sim_sensors.core.measurements import ImuArray

CLOCK = stamps(10.0, 1.0)
_CORRECTIONS = frozenset(), frozenset({'gravity'})


def heard(folder: Path, states: tuple[str, ...], array: ImuArray, **more: object) -> list[Finding]:
    config = filter_config(folder, imu0='imu', imu0_config=mask(*states), **more)
    return input_advice(config, None, {'imu0': array}, None)


def test_a_configured_but_absent_orientation_causes_a_finding(tmp_path: Path) -> None:
    absent = imu(CLOCK, attitude=False)
    (note,) = heard(tmp_path, ('yaw', 'vyaw'), absent)
    assert (note.code, note.subject) == ('rl.no_start_heading', 'imu0')
    assert note.words == {'topic': 'imu'}
    assert not heard(tmp_path, ('vyaw',), absent)
    assert not heard(tmp_path, ('yaw',), imu(CLOCK))


def test_a_given_start_heading_of_zero_causes_no_finding() -> None:
    drive = simulate(motion_of('line', duration=3.0), gps='baseline', imu='chrono')
    setup = JudgeSetup.load('clean')
    runs = [setup.judge(drive, start_heading=start) for start in (None, 0.0)]
    note_codes = [{note.code for note in run.notes} for run in runs]
    assert ['rl.no_start_heading' in codes for codes in note_codes] == [True, False]


def test_fixes_that_arrive_just_before_or_after_ticks_cause_a_finding() -> None:
    """64 ns, as of rounded stamps, decide which fixes wait for the next tick."""
    drive = simulate(motion_of('line', duration=3.0), gps='baseline', imu='ideal')
    setup = JudgeSetup.load('clean')
    timing = prepare(drive, setup.filter, setup.navsat, ReplayOptions()).timing
    ticks = timing.navsat_origin + 20 * timing.navsat_period * np.arange(40)
    sides = np.where(np.arange(40) % 2, 64, -64)
    (note,) = tick_advice(setup.navsat, ticks + sides, timing)
    assert (note.code, note.numbers) == ('rl.fixes_on_ticks', {'share': 1.0, 'period': 5.0})
    for one_side in (64, 0, -64, -10_000 + sides, 1_000_000):
        assert not tick_advice(setup.navsat, ticks + one_side, timing)


def test_removing_gravity_without_orientation_causes_a_finding(tmp_path: Path) -> None:
    remove = {'imu0_remove_gravitational_acceleration': True}
    (note,) = heard(tmp_path, ('ax',), imu(CLOCK, attitude=False), **remove)
    assert note.code == 'rl.gravity_by_estimate'
    assert not heard(tmp_path, ('ax',), imu(CLOCK), **remove)
    assert not heard(tmp_path, ('ax',), imu(CLOCK, attitude=False))


def test_a_temporarily_absent_orientation_causes_no_finding(tmp_path: Path) -> None:
    some = imu(CLOCK, attitude=False)
    covariance = some.orientation_covariance.copy()
    covariance[3, 0, 0] = 0.1
    array = ImuArray(**{**some.__dict__, 'orientation_covariance': covariance})
    assert not heard(tmp_path, ('yaw',), array)


def test_navsat_transform_without_a_heading_causes_a_finding(tmp_path: Path) -> None:
    config = filter_config(tmp_path, odom0='odom', odom0_config=mask('x'))
    sources = {'odom0': odometry(CLOCK)}
    navsat = navsat_config(tmp_path)
    (note,) = input_advice(config, navsat, sources, imu(CLOCK, attitude=False))
    assert note.code == 'rl.navsat_no_heading'
    assert not input_advice(config, navsat, sources, imu(CLOCK))
    assert not input_advice(config, None, sources, imu(CLOCK, attitude=False))
    assert not input_advice(config, navsat, sources, None)


@pytest.mark.parametrize(
    ('counts', 'code'),
    [
        ((100, 0, 0, 50, 50), None),
        ((100, 0, 0, 49, 51), 'rl.gated'),
        ((9, 0, 0, 0, 9), 'rl.gated'),
        ((10, 3, 0, 7, 0), 'rl.older'),
        ((0, 0, 0, 0, 0), 'rl.no_message'),
    ],
)
def test_refused_late_or_silent_inputs_cause_findings(
    counts: tuple[int, ...], code: str | None
) -> None:
    """Counts of received, older, unusable, fused and rejected messages."""
    codes = [note.code for note in part_advice([PartCount('imu0 twist', 'imu', *counts)])]
    assert codes == ([code] if code else [])


def test_an_input_with_one_fused_part_is_not_reported_as_silent() -> None:
    skipped = PartCount('imu0 pose', 'imu', 0, 0, 0, 0, 0)
    assert not part_advice([skipped, PartCount('imu0 twist', 'imu', 9, 0, 0, 9, 0)])


@pytest.mark.parametrize(
    ('used', 'lost', 'early', 'codes'),
    [
        (0, 5, 0, ['navsat.fixes_unused']),
        (10, 9, 0, ['navsat.fixes_overtaken']),
        (19, 0, 0, []),
        (10, 6, 3, ['navsat.fixes_early', 'navsat.fixes_overtaken']),
        (0, 0, 20, ['navsat.fixes_early']),
    ],
)
def test_unused_fixes_cause_findings(used: int, lost: int, early: int, codes: list[str]) -> None:
    notes = navsat_advice(fixes=20, used=used, lost=lost, early=early, frequency=10.0)
    assert [note.code for note in notes] == codes


def at_rest(
    folder: Path, mounting: Rotation, attitude: bool, states: str, **more: Any
) -> list[JudgedRun]:
    """Judge an IMU at rest with a mounting, as upstream and with corrected gravity."""
    messages = imu(stamps(100.0, 2.0), attitude=attitude)
    n, up = len(messages), mounting.inv().apply([0.0, 0.0, 9.80665])
    messages = dataclasses.replace(
        messages,
        linear_acceleration=np.broadcast_to(up, (n, 3)),
        orientation=np.broadcast_to(mounting.as_quat(), (n, 4)),
    )
    transform = StaticTransform('base_link', 'imu_link', (0.0, 0.0, 0.0), mounting.as_quat())
    config = filter_config(
        folder, imu0='imu', imu0_config=mask(*states.split()),
        imu0_remove_gravitational_acceleration=True, **more,
    )  # fmt: skip
    run = recording({'imu': messages}, (transform,))
    return [judge(run, config, None, ReplayOptions(correct=correct)) for correct in _CORRECTIONS]


@pytest.mark.parametrize('attitude', [True, False], ids=['orientation', 'no orientation'])
@pytest.mark.parametrize(
    ('axes', 'angles', 'expected'),
    [
        ('y', 180.0, 2.0),
        ('x', 120.0, 3.0**0.5),
        ('x', 90.0, 2.0**0.5),
        ('xy', (180.0, 180.0), 0.0),
        ('z', 170.0, 0.0),
        ('x', 30.0, 2.0 * math.sin(math.radians(15.0))),
    ],
)
def test_gravity_left_is_the_acceleration_of_the_estimate_at_rest(
    tmp_path: Path, axes: str, angles: Any, expected: float, attitude: bool
) -> None:
    """The oracle is the speed of the estimate; the remedy brings it to rest."""
    mounting = Rotation.from_euler(axes, angles, degrees=True)
    plain, corrected = at_rest(tmp_path, mounting, attitude, 'ax ay az')
    left = [note.numbers['left'] for note in plain.notes if note.code == 'rl.gravity_left']
    assert left == pytest.approx([expected * 9.80665] if expected else [], rel=1e-9)
    seconds = (plain.stamp_ns[-1] - plain.stamp_ns[20]) * 1e-9
    change = np.linalg.norm(plain.linear_velocity[-1] - plain.linear_velocity[20])
    assert change / seconds == pytest.approx(expected * 9.80665, rel=0.02, abs=1e-6)
    assert np.abs(corrected.linear_velocity).max() < 1e-6
    assert 'rl.gravity_left' not in {note.code for note in corrected.notes}


def test_gravity_left_counts_fused_axes_only(tmp_path: Path) -> None:
    half = Rotation.from_euler('x', 180.0, degrees=True)
    for states, more in (('ax ay', {}), ('ax ay az', {'two_d_mode': True})):
        plain, _ = at_rest(tmp_path, half, True, states, **more)
        assert 'rl.gravity_left' not in {note.code for note in plain.notes}


def test_gravity_left_of_a_relative_orientation_is_rotated_twice(tmp_path: Path) -> None:
    quarter = Rotation.from_euler('x', 90.0, degrees=True)
    plain, _ = at_rest(tmp_path, quarter, True, 'ax ay az roll', imu0_relative=True)
    (left,) = [note.numbers['left'] for note in plain.notes if note.code == 'rl.gravity_left']
    assert left == pytest.approx(2.0 * 9.80665)
