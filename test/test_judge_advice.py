# SPDX-License-Identifier: Apache-2.0
"""Findings about a judged run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from judge_examples import filter_config, imu, mask, navsat_config, odometry, stamps
from scipy.spatial.transform import Rotation

from sim2real_eval import run_judge, simulate
from sim2real_eval.common.findings import Finding, JudgeError
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


def test_orientation_that_is_configured_but_absent_is_told(tmp_path: Path) -> None:
    absent = imu(CLOCK, attitude=False)
    (note,) = heard(tmp_path, ('yaw', 'vyaw'), absent)
    assert (note.code, note.subject) == ('rl.no_start_heading', 'imu0')
    assert note.words == {'topic': 'imu'}
    assert not heard(tmp_path, ('vyaw',), absent)
    assert not heard(tmp_path, ('yaw',), imu(CLOCK))


def test_a_true_start_heading_of_zero_is_no_doubt() -> None:
    drive = simulate(motion_of('line', duration=3.0), gps='baseline', imu='chrono')
    note_codes = [
        {note.code for note in JudgeSetup.load('clean').judge(drive, start_heading=start).notes}
        for start in (None, 0.0)
    ]
    assert ['rl.no_start_heading' in codes for codes in note_codes] == [True, False]


def test_fixes_on_both_sides_of_ticks_are_told() -> None:
    """As of stamps that were doubles: 64 ns decide which fixes wait for the next tick."""
    drive = simulate(motion_of('line', duration=3.0), gps='baseline', imu='ideal')
    setup = JudgeSetup.load('clean')
    assert setup.navsat is not None
    timing = prepare(drive, setup.filter, setup.navsat, ReplayOptions()).timing
    ticks = timing.navsat_origin + 20 * timing.navsat_period * np.arange(40)
    sides = np.where(np.arange(40) % 2, 64, -64)
    (notes,) = tick_advice(setup.navsat, ticks + sides, timing)
    assert notes.code == 'rl.fixes_on_ticks'
    assert notes.numbers == {'share': 1.0, 'period': 5.0}
    for one_side in (64, 0, -64, -10_000 + sides, 1_000_000):
        assert not tick_advice(setup.navsat, ticks + one_side, timing)


def test_noise_free_sensors_alone_are_no_input_of_a_judge() -> None:
    """Latency of fixes, or of an IMU with fixes; the remedy says what makes some."""
    drive = simulate(motion_of('line', duration=3.0), gps='baseline', imu='ideal')
    imu, gps = drive.require('imu'), drive.require('gps')
    bare = drive.with_messages('imu', None).with_messages('ideal_imu', imu)
    for recording, needs in (
        (bare.with_messages('gps', None).with_messages('ideal_gps', gps), 'needs fixes'),
        (bare, 'an IMU'),
    ):
        with pytest.raises(JudgeError, match=f'{needs}.* noise-free ones only .*simulate --truth'):
            run_judge(recording, 'clean')


def test_gravity_without_orientation_is_told(tmp_path: Path) -> None:
    remove = {'imu0_remove_gravitational_acceleration': True}
    (note,) = heard(tmp_path, ('ax',), imu(CLOCK, attitude=False), **remove)
    assert note.code == 'rl.gravity_by_estimate'
    assert not heard(tmp_path, ('ax',), imu(CLOCK), **remove)
    assert not heard(tmp_path, ('ax',), imu(CLOCK, attitude=False))


def test_an_orientation_that_is_absent_for_a_while_only_is_not_told(tmp_path: Path) -> None:
    some = imu(CLOCK, attitude=False)
    covariance = some.orientation_covariance.copy()
    covariance[3, 0, 0] = 0.1
    array = ImuArray(**{**some.__dict__, 'orientation_covariance': covariance})
    assert not heard(tmp_path, ('yaw',), array)


def test_heading_of_navsat_transform_from_an_absent_orientation_is_told(tmp_path: Path) -> None:
    config = filter_config(tmp_path, odom0='odom', odom0_config=mask('x'))
    sources = {'odom0': odometry(CLOCK)}
    navsat = navsat_config(tmp_path)
    (note,) = input_advice(config, navsat, sources, imu(CLOCK, attitude=False))
    assert note.code == 'rl.navsat_no_heading'
    assert not input_advice(config, navsat, sources, imu(CLOCK))
    assert not input_advice(config, None, sources, imu(CLOCK, attitude=False))
    assert not input_advice(config, navsat, sources, None)


@pytest.mark.parametrize(
    ('fused', 'rejected', 'reported'), [(50, 50, False), (49, 51, True), (0, 9, True)]
)
def test_a_gate_that_refuses_most_is_told(fused: int, rejected: int, reported: bool) -> None:
    part = PartCount('imu0 twist', 'imu', fused + rejected, 0, 0, fused, rejected)
    notes = part_advice([part])
    assert len(notes) == int(reported)
    if reported:
        assert (notes[0].code, notes[0].subject) == ('rl.gated', 'imu0 twist (imu)')
        assert notes[0].numbers == {'refused': rejected, 'judged': fused + rejected}


def test_an_input_without_a_message_is_told() -> None:
    """An IMU whose rates arrive is not silent although its orientation is skipped."""
    silent = PartCount('odom0 twist', 'wheel/odom', 0, 0, 0, 0, 0)
    skipped = PartCount('imu0 pose', 'imu', 0, 0, 0, 0, 0)
    notes = PartCount('imu0 twist', 'imu', 9, 0, 0, 9, 0)
    (note,) = part_advice([silent, skipped, notes])
    assert (note.code, note.subject) == ('rl.no_message', 'odom0 (wheel/odom)')


def test_gravity_left_in_by_the_mounting_is_told() -> None:
    """docs/explanation/judge.md: 0.5 rad of roll at rest leaves (0, -4.70, 1.20); yaw leaves
    nothing."""
    roll = Rotation.from_euler('x', 0.5).as_matrix()
    yaw = Rotation.from_euler('z', 2.0).as_matrix()
    (note,) = mounting_advice([('imu0', roll), ('imu1', yaw)], 9.80665)
    assert (note.code, note.subject) == ('rl.gravity_left', 'imu0')
    assert 'about 4.7 m/s^2' in str(note)


def test_older_messages_are_told() -> None:
    (note,) = part_advice([PartCount('odom0 pose', 'odom', 10, 3, 0, 7, 0)])
    assert (note.code, note.numbers) == ('rl.older', {'refused': 3, 'received': 10})


def test_dropped_fixes_are_told() -> None:
    (none,) = navsat_advice(fixes=20, used=0, lost=5, early=0, frequency=10.0)
    assert (none.code, none.numbers) == ('navsat.fixes_unused', {'fixes': 20})
    (some,) = navsat_advice(fixes=20, used=10, lost=9, early=0, frequency=10.0)
    assert some.code == 'navsat.fixes_overtaken'
    assert some.numbers == {'frequency': 10.0, 'dropped': 9, 'fixes': 20}
    assert not navsat_advice(fixes=20, used=19, lost=0, early=0, frequency=10.0)
    (nothing,) = navsat_advice(fixes=0, used=0, lost=0, early=0, frequency=10.0)
    assert nothing.code == 'navsat.no_fix'


def test_fixes_before_the_datum_are_told() -> None:
    early, lost = navsat_advice(fixes=20, used=10, lost=6, early=3, frequency=10.0)
    assert (early.code, early.numbers) == ('navsat.fixes_early', {'dropped': 3, 'fixes': 20})
    assert (lost.code, lost.numbers['dropped']) == ('navsat.fixes_overtaken', 6)
    (all_of_them,) = navsat_advice(fixes=20, used=0, lost=0, early=20, frequency=10.0)
    assert all_of_them.code == 'navsat.fixes_early'


def test_a_recording_without_imu_is_not_asked_for_the_topic_of_one() -> None:
    drive = simulate(motion_of('line', duration=2.0), gps='baseline', imu='ideal')
    with pytest.raises(
        JudgeError, match='none is an IMU, without which this judge cannot'
    ) as message:
        run_judge(drive.with_messages('imu', None), 'clean')
    assert '--topic' not in str(message.value)
