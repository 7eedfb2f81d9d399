# SPDX-License-Identifier: Apache-2.0
"""Findings about a judged run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from judge_examples import filter_config, imu, mask, navsat_config, odometry, stamps
from scipy.spatial.transform import Rotation

from sim2real_eval import simulate
from sim2real_eval.common.findings import Finding
from sim2real_eval.judge.estimate import PartCount
from sim2real_eval.judge.robot_localization.advice import (
    input_advice,
    mounting_advice,
    navsat_advice,
    part_advice,
    tick_advice,
)
from sim2real_eval.judge.robot_localization.embedded import prepare
from sim2real_eval.judge.robot_localization.replay_options import ReplayOptions
from sim2real_eval.judge.setup import JudgeSetup
from sim_sensors import motion_of
from sim_sensors.core.measurements import ImuArray

CLOCK = stamps(10.0, 1.0)


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


def test_gravity_that_remains_because_of_the_mounting_causes_a_finding() -> None:
    """A roll of 0.5 rad leaves (0, -4.70, 1.20) m/s^2 at rest; a yaw leaves nothing."""
    roll = Rotation.from_euler('x', 0.5).as_matrix()
    yaw = Rotation.from_euler('z', 2.0).as_matrix()
    (note,) = mounting_advice([('imu0', roll), ('imu1', yaw)], 9.80665)
    assert (note.code, note.subject) == ('rl.gravity_left', 'imu0')
