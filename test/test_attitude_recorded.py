# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The attitude filter on recordings: mountings, late sensors, frames and findings."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from sim2real_eval.benches.attitude.filter import (
    ACCELEROMETER,
    CAMERA,
    MAGNETOMETER,
    AttitudeError,
    AttitudeInput,
    events_of,
)
from sim2real_eval.benches.attitude.study import estimate_recorded_run
from sim2real_eval.benches.settings import AttitudeSettings
from sim2real_eval.recording.recording import Recording, StaticTransform
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.simulation.twin_maker import (
    make_twin_maker,
    measure_early_field,
    synthetic_recording,
)
from sim_sensors.core.measurements import FloatArray, PoseArray
from sim_sensors.imu.imu import load_imu
from sim_sensors.magnetometer.magnetometer import load_mag
from sim_sensors.motion.spatial_scenarios import Swaying
from sim_sensors.world.world import load_world

WORLD = load_world('default')
SETTINGS = AttitudeSettings(
    gyroscope_density=1e-3, accelerometer_std=0.02, magnetometer_std=5e-7, initial_std=0.01
)


@functools.cache
def recorded() -> Recording:
    """Return sensors without noise along the body; the first truth is not upright."""
    motion = Swaying.from_mapping({'duration': 4.0, 'rpy': [0.2, -0.4, 1.1]}, 'test')
    twin = Twin('test', gps=None, imu=load_imu('ideal'), others={'mag': load_mag('ideal')})
    return synthetic_recording(
        motion, twin, seed=4, run='swaying_1', scenario='swaying', world=WORLD
    )


def posed(recording: Recording, frame: str, variances: FloatArray) -> Recording:
    """Add every tenth sample of the truth as a pose of the camera."""
    truth = recording.truth
    some = truth.take(slice(None, None, 10))
    covariance = np.tile(np.diag([1.0, 1.0, 1.0, *variances]), (len(some), 1, 1))
    poses = PoseArray(
        some.stamp_ns, some.arrival_ns, frame, some.position, some.orientation, covariance
    )
    return recording.with_messages('camera_pose', poses)


def test_mounted_sensors_give_the_attitude_of_the_body() -> None:
    """scipy rotates the measurements into the frames of the sensors."""
    plain = recorded()
    imu, mag = plain.imu, plain.mag
    on = {
        'imu_askew': Rotation.from_euler('xyz', [0.3, -0.2, 2.0]),
        'mag_askew': Rotation.from_euler('xyz', [-1.0, 0.4, 0.7]),
    }
    imu = dataclasses.replace(
        imu, frame='imu_askew',
        angular_velocity=on['imu_askew'].inv().apply(imu.angular_velocity),
        linear_acceleration=on['imu_askew'].inv().apply(imu.linear_acceleration),
    )  # fmt: skip
    field = on['mag_askew'].inv().apply(mag.magnetic_field)
    mag = dataclasses.replace(mag, frame='mag_askew', magnetic_field=field)
    transforms = tuple(
        StaticTransform('base_link', frame, (0.0, 0.0, 0.0), tuple(turn.as_quat().tolist()))
        for frame, turn in on.items()
    )
    askew = dataclasses.replace(
        plain.with_messages('imu', imu).with_messages('mag', mag), transforms=transforms
    )
    # The field of the first seconds is that of the world, whatever the mounting.
    field = measure_early_field(make_twin_maker(askew, None, seed=0))
    np.testing.assert_allclose(field, WORLD.undisturbed_field, atol=1e-12)
    of = [estimate_recorded_run(recording, SETTINGS, seed=1) for recording in (plain, askew)]
    np.testing.assert_allclose(
        of[1].errors.angles, of[0].errors.angles, atol=1e-9, err_msg='not as without mounting'
    )
    assert of[0].errors.angles[-1, 3] < 2e-3
    assert of[0].suspects == of[1].suspects == ()


def test_each_sensor_alone_observes_its_own_directions() -> None:
    """Gravity leaves the heading open, the field a rotation about itself, a pose nothing."""
    wide = dataclasses.replace(SETTINGS, initial_std=0.05)
    plain = posed(recorded(), 'map', np.full(3, 1e-4))
    truth = plain.truth
    ends = {}
    for used in ('accelerometer', 'magnetometer', 'camera'):
        switches = {name: name == used for name in ('accelerometer', 'magnetometer', 'camera')}
        run = estimate_recorded_run(
            plain, dataclasses.replace(wide, **switches), world=WORLD, seed=3
        )
        last = Rotation.from_quat(run.estimate.orientation[-1])
        ends[used] = (last * Rotation.from_quat(truth.orientation[-1]).inv()).as_rotvec()
    field = WORLD.undisturbed_field / np.linalg.norm(WORLD.undisturbed_field)
    up = np.array([0.0, 0.0, 1.0])
    for used, axis in (('accelerometer', up), ('magnetometer', field)):
        assert np.linalg.norm(np.cross(ends[used], axis)) < 4e-3
        assert abs(ends[used] @ axis) > 0.01
    assert np.linalg.norm(ends['camera']) < 4e-3


def test_the_attitude_covariance_of_a_pose_refers_to_world_axes() -> None:
    """A pose that knows only the heading corrects the heading and not the tilt."""
    plain = posed(recorded(), 'map', np.array([1e4, 1e4, 1e-8]))
    truth = plain.truth
    alone = dataclasses.replace(
        SETTINGS, accelerometer=False, magnetometer=False, gyroscope_density=1e-5
    )
    run = estimate_recorded_run(plain, alone, seed=3)
    wrong = (
        Rotation.from_quat(run.estimate.orientation)
        * Rotation.from_quat(truth.orientation[: len(run.estimate)]).inv()
    ).as_rotvec()
    tilt = np.linalg.norm(wrong[:, :2], axis=1)
    assert abs(wrong[-1, 2]) < 1e-3
    assert tilt[-1] == pytest.approx(tilt[0], rel=0.05)
    assert tilt[0] > 5e-3


def test_late_sensors_are_used_and_assumed_frames_are_reported() -> None:
    plain = recorded()
    mag, imu = plain.mag, plain.imu
    late = plain.with_messages('mag', mag.take(mag.stamp_ns > mag.stamp_ns[0] + 1_500_000_000))
    run = estimate_recorded_run(posed(late, 'board', np.full(3, 1e-4)), SETTINGS, seed=1)
    assert run.errors.angles[-1, 3] < 2e-3
    (assumed,) = (note for note in run.notes if note.code == 'attitude.camera_frame')
    assert (assumed.words['camera'], assumed.words['truth']) == ('board', 'map')
    bare = dataclasses.replace(plain, transforms=(), path='my_bag')
    notes = estimate_recorded_run(bare, SETTINGS).notes
    (assumed,) = (note for note in notes if note.code == 'attitude.same_orientation')
    assert imu.frame in assumed.words['frames']
    assert assumed.words['reference'] == 'base_link'
    with pytest.raises(AttitudeError, match='my_bag: the magnetometer'):
        estimate_recorded_run(bare, dataclasses.replace(SETTINGS, magnetometer_std=0.0))


def test_covariances_are_rotated_with_the_mounting_of_their_sensors() -> None:
    """R C R^T by scipy, for IMU, magnetometer and pose, with another variance on each axis."""
    imu, mag = recorded().imu, recorded().mag
    plain = posed(recorded(), 'map', np.array([1e-4, 4e-4, 9e-4]))
    poses = plain.camera_pose
    sizes = np.diag([1.0, 4.0, 9.0])
    n = len(imu)
    turns = [Rotation.from_euler('xyz', angles) for angles in ([0.3, -0.2, 2.0], [-1.0, 0.4, 0.7])]
    inputs = AttitudeInput(
        dataclasses.replace(
            imu,
            angular_velocity_covariance=np.tile(1e-4 * sizes, (n, 1, 1)),
            linear_acceleration_covariance=np.tile(1e-2 * sizes, (n, 1, 1)),
        ),
        dataclasses.replace(
            mag, magnetic_field_covariance=np.tile(1e-12 * sizes, (len(mag), 1, 1))
        ),
        poses,
        *(tuple(turn.as_quat().tolist()) for turn in turns),
    )
    events = events_of(inputs, AttitudeSettings())
    # At equal stamps the order is accelerometer, magnetometer, camera.
    assert (np.diff(events.kind)[np.diff(events.stamp_ns) == 0] > 0).all()
    rotation_matrices = [turn.as_matrix() for turn in turns]
    period = 1.0 / 100.0
    for covariance, turn, size in (
        (events.density, rotation_matrices[0], 1e-4 * period),
        (events.covariance[events.kind == ACCELEROMETER][0, :3, :3], rotation_matrices[0], 1e-2),
        (events.covariance[events.kind == MAGNETOMETER][0, :3, :3], rotation_matrices[1], 1e-12),
    ):
        np.testing.assert_allclose(covariance, size * turn @ sizes @ turn.T, atol=1e-12 * size)
    # A rotation of the body by d about the world's axes moves the state by what scipy says.
    q = Rotation.from_quat(poses.orientation[5])
    state = q.inv().as_quat()

    def moved(d: FloatArray) -> FloatArray:
        other = (Rotation.from_rotvec(d) * q).inv().as_quat()
        return np.asarray(other * np.sign(other @ state))

    steps = 1e-6 * np.eye(3)
    slope = np.stack([(moved(d) - moved(-d)) / 2e-6 for d in steps], axis=1)
    expected = slope @ (1e-4 * sizes) @ slope.T
    expected += np.trace(expected) / 3.0 * np.outer(state, state)
    covariance = events.covariance[events.kind == CAMERA][5]
    np.testing.assert_allclose(covariance, expected, atol=1e-13)
