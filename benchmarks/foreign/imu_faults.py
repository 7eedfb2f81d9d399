# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Faults of an inertial measurement unit."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from .faults import add_fault, fault
from .sensors import IMU, Log, Stream
from .vehicles import VEHICLES, Array

G = 9.80665
NED_TO_ENU = Rotation.from_matrix([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
FRD_TO_FLU = Rotation.from_matrix(np.diag([1.0, -1.0, -1.0]))
AGILE = ('car', 'drone')


def _imu(log: Log) -> Stream:
    return log.streams[IMU]


def scale(log: Log, field: str, factor: float) -> None:
    """Scale a quantity of the IMU and its covariance, as another unit does."""
    values = _imu(log).values
    values[field] = values[field] * factor
    name = f'{field}_covariance'
    values[name] = values[name] * factor**2


def orient(log: Log, world: Rotation, body: Rotation) -> None:
    """Turn the published orientation in its world and in its body."""
    values = _imu(log).values
    values['orientation'] = (world * Rotation(values['orientation']) * body).as_quat()


def shift(stream: Stream, delay: float | Array) -> None:
    """Put stamps off; messages do not arrive before their stamps unless seconds are missing."""
    stream.time = stream.time + delay
    stream.clock += float(np.mean(delay))
    if np.max(np.abs(delay)) < 0.5:
        stream.received = np.maximum.accumulate(np.maximum(stream.received, stream.time + 0.002))


# Units and signs


@fault('imu', 'rate_unit', correction='rate_scale: 0.0174533')
def gyro_in_degrees(log: Log) -> None:
    scale(log, 'rate', np.degrees(1.0))


@fault('imu', 'rate_reversed', correction='rate_scale: -1')
def gyro_reversed(log: Log) -> None:
    scale(log, 'rate', -1.0)


@fault('imu', 'rate_reversed', 'rate_axis_reversed', 'rate_axes')
def gyro_z_reversed(log: Log) -> None:
    _imu(log).values['rate'][:, 2] *= -1.0


@fault('imu', 'rate_scale', correction='rate_scale: 0.833333')
def gyro_scale(log: Log) -> None:
    _imu(log).values['rate'] *= 1.2


@fault('imu', 'rate_bias', correction='rate_bias: [...]')
def gyro_bias(log: Log) -> None:
    _imu(log).values['rate'] += log.rng.choice([-1.0, 1.0], 3) * [0.02, 0.02, 0.03]


@fault('imu', 'saturated', vehicles=AGILE)
def gyro_saturated(log: Log) -> None:
    rate = _imu(log).values['rate']
    limit = 0.45 * np.abs(rate).max()
    _imu(log).values['rate'] = np.clip(rate, -limit, limit)


@fault('imu', 'acceleration_unit', correction='acceleration_scale: 9.80665')
def force_in_g(log: Log) -> None:
    scale(log, 'force', 1.0 / G)


@fault('imu', 'acceleration_unit', correction='acceleration_scale: 0.00980665')
def force_in_milli_g(log: Log) -> None:
    scale(log, 'force', 1000.0 / G)


@fault('imu', 'no_gravity')
def gravity_removed(log: Log) -> None:
    imu = _imu(log)
    to_imu = (log.motion.at(imu.time).attitude * log.setup.mounted).inv()
    imu.values['force'] = imu.values['force'] - to_imu.apply(log.gravity())


@fault('imu', 'force_reversed', correction='acceleration_scale: -1')
def force_reversed(log: Log) -> None:
    scale(log, 'force', -1.0)


@fault('imu', 'gravity_scale', correction='acceleration_scale: 0.917')
def force_scale(log: Log) -> None:
    _imu(log).values['force'] *= 1.09


@fault('imu', 'saturated', vehicles=('car', 'truck', 'drone'))
def force_saturated(log: Log) -> None:
    """A range of 1.1 g beside strong vibration: peaks are cut on one side."""
    force = _imu(log).values['force']
    shaken = force + log.rng.normal(0.0, 2.0, force.shape)
    _imu(log).values['force'] = np.clip(shaken, -1.1 * G, 1.1 * G)
    _imu(log).values['force_covariance'] = np.tile(4.0 * np.eye(3).ravel(), (len(force), 1))


# Clocks


def _imu_late(seconds: float) -> None:
    def plant(log: Log) -> None:
        shift(_imu(log), seconds)

    name = f'imu_late_{1e3 * seconds:.0f}_ms'
    # An IMU shows its time by how it turns.
    vehicles = AGILE if seconds < 0.1 else ('car', 'drone', 'boat')
    needs = {'imu_rate': 100.0, 'imu': 'industrial'} if seconds < 0.1 else {}
    names = ('imu_late', 'other_clock')
    add_fault(name, 'imu', plant, names, f'delay: {seconds:g}', vehicles, needs)


for _seconds in (0.04, 0.15, 1.0):
    _imu_late(_seconds)


@fault('imu', 'clock_rate', 'clock_drift', 'imu_clock', 'imu_drifts', 'imu_late', 'clocks_drift')
def imu_clock_drifts(log: Log) -> None:
    """A crystal that is fast by 0.4 s over the recording."""
    imu = _imu(log)
    shift(imu, 0.4 * imu.time / imu.time[-1])


@fault('imu', 'lost', 'messages_lost', 'imu_lost', 'missing_messages', 'losses', 'gap',
       'recording.gap')  # fmt: skip
def imu_messages_lost(log: Log) -> None:
    _imu(log).keep(log.rng.random(len(_imu(log))) > 0.06)


@fault('imu', 'gap', 'recording.gap')
def imu_gap(log: Log) -> None:
    imu = _imu(log)
    begin = 0.5 * log.setup.duration
    imu.keep((imu.time < begin) | (imu.time > begin + 3.0))


@fault('imu', 'uneven_stamps', 'stamps_of_arrival', 'bursts')
def imu_stamps_of_arrival(log: Log) -> None:
    """Messages wait for 50 ms and are stamped as they leave the buffer."""
    imu = _imu(log)
    left = np.ceil(imu.time / 0.05) * 0.05
    order = np.arange(len(imu)) - np.searchsorted(left, left, side='left')
    imu.time = left + 4e-4 * order + log.rng.uniform(0.0, 1e-4, len(imu))
    imu.received = imu.time + 0.001


# Mounting


def _mounting(name: str, angles: tuple[float, float, float]) -> None:
    def plant(log: Log) -> None:
        """Turn the sensor and leave its transform."""
        turn = Rotation.from_euler('xyz', angles, degrees=True)
        values = _imu(log).values
        for field in ('rate', 'force'):
            values[field] = turn.inv().apply(values[field])
        orient(log, Rotation.identity(), turn)

    # Either code comes with the whole rotation; whether that is right, the errors show.
    names = ('imu_tilted', 'imu_yaw', 'imu_mounting')
    correction = f'rotation: {list(angles)}'
    add_fault(f'mounted_{name}', 'imu', plant, names, correction, VEHICLES,
              {'misalignment': 0.2})  # fmt: skip


_mounting('yaw_8', (0.0, 0.0, 8.0))
_mounting('yaw_20', (0.0, 0.0, -20.0))
_mounting('yaw_90', (0.0, 0.0, 90.0))
_mounting('upside_down', (180.0, 0.0, 0.0))
_mounting('on_its_side', (90.0, 0.0, 0.0))
_mounting('roll_10', (10.0, 0.0, 0.0))


# Orientation


@fault('imu', 'orientation_ned', 'orientation_axes', orientation=True, mounting='level',
       correction='axes: ned, orientation_rotation: [180, 0, 0]')  # fmt: skip
def orientation_ned(log: Log) -> None:
    """North-east-down and forward-right-down, while rates and forces are as in ROS."""
    orient(log, NED_TO_ENU.inv(), FRD_TO_FLU)


@fault('imu', 'imu_tilted', 'imu_ned', 'imu_axes', orientation=True, mounting='level',
       correction='axes: ned, rotation: [180, 0, 0]')  # fmt: skip
def imu_ned(log: Log) -> None:
    """All of it north-east-down and forward-right-down, stamped as base_link's axes."""
    orient(log, NED_TO_ENU.inv(), FRD_TO_FLU)
    values = _imu(log).values
    for field in ('rate', 'force'):
        values[field] = values[field] * [1.0, -1.0, -1.0]


@fault('imu', 'orientation_rotation', 'orientation_body', 'orientation_axes', 'orientation_frd',
       'orientation_tilt', correction='orientation_rotation: [180, 0, 0]', orientation=True,
       mounting='level')  # fmt: skip
def orientation_flat_reads_pi(log: Log) -> None:
    """East-north-up, but of forward-right-down axes."""
    orient(log, Rotation.identity(), FRD_TO_FLU)


@fault('imu', 'orientation_yaw', correction='heading: -90', orientation=True)
def orientation_about_north(log: Log) -> None:
    """Heading counterclockwise from north."""
    orient(log, Rotation.from_euler('z', -90.0, degrees=True), Rotation.identity())


@fault('imu', 'orientation_yaw', correction='heading: 15', orientation=True)
def orientation_magnetic(log: Log) -> None:
    """The heading lacks the magnetic declination."""
    orient(log, Rotation.from_euler('z', 15.0, degrees=True), Rotation.identity())


@fault('imu', 'orientation_strays', 'orientation_drifts', orientation=True)
def orientation_drifts(log: Log) -> None:
    """Heading of a gyroscope alone, off by 40 degrees in the end."""
    imu = _imu(log)
    drift = np.radians(40.0) * (imu.time / imu.time[-1]) ** 1.3
    orient(log, Rotation.from_euler('z', drift[:, None]), Rotation.identity())


@fault('imu', 'orientation_quaternion', 'orientation_quaternion_order', 'quaternion_order',
       'orientation_wxyz', orientation=True)  # fmt: skip
def orientation_wxyz(log: Log) -> None:
    values = _imu(log).values
    values['orientation'] = np.roll(values['orientation'], 1, axis=1)


@fault('imu', 'orientation_unset', orientation=False)
def orientation_unset(log: Log) -> None:
    """The identity with a covariance that claims that it is one."""
    count = len(_imu(log))
    _imu(log).values['orientation_covariance'] = np.tile(1e-4 * np.eye(3).ravel(), (count, 1))


# Covariances

_NO_COVARIANCE = ('no_covariance', 'no_orientation_covariance', 'recording.covariance_zero')


@fault('imu', *_NO_COVARIANCE, correction='orientation_std: ...', orientation=True)
def orientation_covariance_zero(log: Log) -> None:
    _imu(log).values['orientation_covariance'][:] = 0.0


@fault('imu', *_NO_COVARIANCE, correction='rate_std: ...')
def rate_covariance_zero(log: Log) -> None:
    _imu(log).values['rate_covariance'][:] = 0.0


@fault('imu', 'covariance_small', correction='rate_std: ...')
def rate_covariance_small(log: Log) -> None:
    """Deviations that are 30 times too small."""
    _imu(log).values['rate_covariance'] /= 900.0


@fault('imu', 'covariance_small', correction='acceleration_std: ...')
def force_covariance_small(log: Log) -> None:
    _imu(log).values['force_covariance'] /= 900.0
