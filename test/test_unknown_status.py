# SPDX-License-Identifier: Apache-2.0
"""Fixes of status -2, unknown: the default of the message, which navsat_transform uses."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sim2real_eval import run_judge, simulate
from sim2real_eval.benches.following import waypoints_of
from sim2real_eval.characterization.standstill_fixes import standing_runs
from sim2real_eval.preflight.checks import check
from sim2real_eval.recording.recording import Recording
from sim2real_eval.signals.comparison import compare_signals
from sim_sensors import motion_of

USERS: dict[str, Callable[[Recording], Any]] = {
    'judge': lambda run: run_judge(run, 'clean').score.rmse,
    'waypoints': lambda run: waypoints_of(run, 'gps')[0].x.tolist(),
    'compare': lambda run: [row.real.rmse for row in compare_signals([run], [run]).rows],
    'check': lambda run: [finding.code for finding in check(run).findings],
}


def _of_status(recording: Recording, status: int) -> Recording:
    states = np.full(len(recording.gps), status)
    return recording.with_messages('gps', dataclasses.replace(recording.gps, status=states))


@pytest.mark.parametrize('name', USERS)
def test_they_are_used_as_fixes_of_known_status(name: str) -> None:
    drive = simulate(motion_of('circle', duration=60.0), gps='ch_gauss', imu='ideal', seed=1)
    unknown, valid = (USERS[name](_of_status(drive, status)) for status in (-2, 0))
    assert unknown == valid


def test_a_receiver_at_rest_is_characterised_by_them() -> None:
    standstill = simulate(
        motion_of('standstill', duration=120.0), gps='ch_gauss', imu='ideal', seed=1
    )
    runs = [standing_runs(_of_status(standstill, status))[0] for status in (-2, 0)]
    np.testing.assert_array_equal(*(characterizations[0].error for characterizations in runs))
