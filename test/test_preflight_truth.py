# SPDX-License-Identifier: Apache-2.0
"""Checks of the truth: frozen samples, and the measurement of an ideal IMU."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ideal_examples import Shaken, noise_free_imu, recorded, simulated
from preflight_examples import (
    altered,
    every_nth,
    frozen_fields,
    good,
    scaled,
    selected_messages,
    white,
    world_twist,
)
from scipy.spatial.transform import Rotation

from sim2real_eval.preflight.checks import check
from sim2real_eval.recording.corrections import FixCorrection, ImuCorrection, TruthCorrection
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.recording import Recording
from sim2real_eval.simulation.twin_maker import TwinMaker, ideal_imu_of_motion
from sim_sensors.core.measurements import MessageArray
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu.imu import load_imu
from sim_sensors.motion.motions import motion_of
from sim_sensors.world.world import Gravity, World

POSE = ('position', 'orientation', 'linear_velocity', 'angular_velocity')


def frozen(recording: Recording) -> bool:
    return 'check.frozen' in {finding.code for finding in check(recording).findings}


def test_a_pose_that_stands_while_rates_turn_is_frozen() -> None:
    """Neither fixes nor twist say that it moves; a body that turns in place has one position."""

    def hanging(values: np.ndarray) -> np.ndarray:
        values = values.copy()
        values[1200:1800] = values[1200]
        return values

    swaying, driving = good(1, 'swaying'), good().with_messages('gps', None)
    still = altered('truth', linear_velocity=lambda v: 0.0 * v, position=hanging)(driving)
    assert not frozen(swaying)
    assert frozen(frozen_fields('truth', *POSE)(swaying))
    assert not frozen(still)
    assert frozen(altered('truth', orientation=hanging)(still))


def test_noise_free_sensors_are_held_against_the_gravity_that_they_were_made_with() -> None:
    motion = Shaken(motion_of('swaying', duration=30.0))  # which the truth alone does not know
    drive = recorded(motion, {'ideal_imu': noise_free_imu(motion)})
    drive = simulated(drive, imu=load_imu('xsens_mtx'), gps=load_gps('zed_f9p_rtk'))
    weak = World(gravity_model=Gravity(model='constant', value=3.7))
    findings = check(drive, maker=TwinMaker(drive, seed=1, world=weak)).findings
    assert [finding.code for finding in findings] == [
        finding.code for finding in check(drive).findings
    ]
    assert 'check.covariance_small' not in {finding.code for finding in findings}


def test_what_an_imu_should_measure_depends_on_mounting_and_gravity() -> None:
    motion = TwinMaker(good(), seed=1).motion
    level, times = (np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0])), np.linspace(1.0, 30.0, 50)
    first = ideal_imu_of_motion(motion, level, times)
    turn = Rotation.from_euler('xyz', (0.1, 0.2, 0.3))
    rotated = ideal_imu_of_motion(motion, (np.zeros(3), turn.as_quat()), times)
    np.testing.assert_allclose(rotated.force, turn.inv().apply(first.force), atol=1e-12)
    lighter = ideal_imu_of_motion(motion, level, times, 9.0)
    np.testing.assert_allclose(first.force - lighter.force, [[0.0, 0.0, 0.80665]] * 50, atol=1e-9)


@pytest.mark.parametrize(
    ('role', 'correction'),
    [
        ('imu', ImuCorrection(delay=0.1, rotation=(90.0, 0.0, 0.0), rate_bias=(0.1, 0.0, 0.0))),
        ('gps', FixCorrection(delay=0.1, swapped=True)),
        ('truth', TruthCorrection(axes='ned', turn=30.0, twist='world')),
    ],
)
def test_messages_that_cannot_be_written_are_put_right_in_a_copy(
    role: str, correction: Any
) -> None:
    array = good().require(role)
    shut = {
        field.name: np.array(getattr(array, field.name))
        for field in dataclasses.fields(array)
        if isinstance(getattr(array, field.name), np.ndarray)
    }
    for finding in shut.values():
        finding.flags.writeable = False
    right: MessageArray = correction.applied(dataclasses.replace(array, **shut))
    expected = correction.applied(array)
    for name in shut:
        np.testing.assert_array_equal(getattr(right, name), getattr(expected, name))


def test_a_twist_in_the_world_is_told_of_each_real_drive(real_dir: Path) -> None:
    """Also of those that go straight ahead, eastward, most of the time."""
    for path in sorted((real_dir / 'drive0708/segments').glob('*/bag')):
        codes = {finding.code for finding in check(world_twist(read_recording(path))).findings}
        assert 'check.twist_in_world' in codes, path
        assert 'check.truth_jumps' not in codes, path


@pytest.mark.parametrize(('twist', 'place'), [(0.005, 0.0), (0.01, 0.001), (0.2, 0.02)])
def test_an_imu_is_not_blamed_for_a_noisy_truth(twist: float, place: float) -> None:
    """Neither beside positions that are exact nor beside such as are worse than the twist; but
    for the covariance that it states 10^6 too small.
    """
    rough = altered(
        'truth',
        linear_velocity=lambda v: v + white(v.shape, twist),
        position=lambda p: p + white(p.shape, place),
    )
    codes = {finding.code for finding in check(rough(good())).findings}
    assert codes == {'check.twist_rough'}
    small = scaled('imu', 'linear_acceleration_covariance', 1e-6)(good())
    (finding,) = check(small).findings
    assert finding.code == 'check.covariance_small_large'


@pytest.mark.parametrize('rate', [1, 5])
@pytest.mark.parametrize('share', [0.05, 0.15])
def test_positions_that_are_off_do_not_hide_a_twist_in_the_world(share: float, rate: int) -> None:
    """The truth has 100 or 20 Hz and errors of some 0.3 m."""
    random = np.random.default_rng(3)

    def off(position: np.ndarray) -> np.ndarray:
        return position + 0.3 * (random.random((len(position), 1)) < share) * random.normal(
            size=position.shape
        )

    shifted = altered('truth', position=off)(
        world_twist(selected_messages('truth', every_nth(rate))(good()))
    )
    codes = {finding.code for finding in check(shifted).findings}
    assert 'check.twist_in_world' in codes
    assert 'check.twist_strays' not in codes


@pytest.mark.parametrize('delay', [-0.5, 0.3])
@pytest.mark.parametrize('rate', [1, 5, 25])
def test_a_late_twist_is_told_beside_noise(delay: float, rate: int) -> None:
    """The truth has 100, 20 or 4 Hz, and noise of 2 cm and 0.1 m/s."""
    sparse = selected_messages('truth', every_nth(rate))(good())
    time = sparse.truth.stamp_ns * 1e-9

    def shifted(values: np.ndarray) -> np.ndarray:
        late = [np.interp(time - delay, time, column) for column in values.T]
        return np.stack(late, axis=1) + white(values.shape, 0.1)

    noisy = altered('truth', linear_velocity=shifted, position=lambda p: p + white(p.shape, 0.02))
    outcomes = [outcome.measure for outcome in check(noisy(sparse)).outcomes]
    (delay_measure,) = (outcome for outcome in outcomes if outcome.subject == 'truth twist delay')
    assert delay_measure.value == pytest.approx(delay, abs=0.1)
    assert delay_measure.finding is not None
