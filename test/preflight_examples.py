# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Good recordings and faults with the code of their finding, for the tests of `check`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import numpy as np
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import Finding
from sim2real_eval.preflight.checks import check
from sim2real_eval.recording.corrections import CORRECTIONS, correct_recording
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.repairs import check_messages
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.simulation.twin_maker import TwinMaker, synthetic_recording
from sim_sensors.core import rotations
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu.imu import load_imu
from sim_sensors.imu.orientation import Orientation
from sim_sensors.motion.motions import motion_of

Change = Callable[[Recording], Recording]
AHRS = Orientation(mode='ahrs', roll_pitch_std=0.01, yaw_std=0.02, yaw_time_constant=60.0)


@functools.cache
def good(number: int = 1, motion: str = 'figure_eight', gps: str = 'zed_f9p_rtk') -> Recording:
    """Return a recording of 40 s with a receiver and an IMU as they should be."""
    imu = dataclasses.replace(load_imu('xsens_mtx'), orientation=AHRS)
    sensors, run = Twin('own', load_gps(gps), imu), f'good_{number}'
    size = {'speed': 4.0, 'heading': 0.5, 'rest_time': 1.0}
    size |= {'length': 60.0, 'width': 30.0} if motion == 'figure_eight' else {}
    parameters = {} if motion in ('swaying', 'standstill') else size
    driven = motion_of(motion, seed=1, run=run, duration=40.0, parameters=parameters)
    return synthetic_recording(driven, sensors, seed=1, run=run, scenario=motion)


def checked_beside_twins(recording: Recording) -> tuple[Finding, ...]:
    """Return what `check` finds with the maker of a recording's twins, where it has a truth."""
    maker = None if recording.truth is None else TwinMaker(recording, seed=1)
    return check(recording, maker=maker).findings


def altered(role: str, **changes: Callable) -> Change:
    """Return what changes fields of the messages of a role."""

    def change(recording: Recording) -> Recording:
        array = recording.require(role)
        new = {name: make(getattr(array, name)) for name, make in changes.items()}
        return recording.with_messages(role, dataclasses.replace(array, **new))

    return change


def scaled(role: str, field: str, factor: float) -> Change:
    return altered(role, **{field: lambda values: values * factor})


def rotated_imu(roll: float, pitch: float, yaw: float) -> Change:
    """Rotate the IMU by roll, pitch and yaw, deg, without a transform that states it."""

    def change(recording: Recording) -> Recording:
        imu, turn = recording.imu, Rotation.from_euler('xyz', (roll, pitch, yaw), degrees=True)
        array = dataclasses.replace(
            imu,
            angular_velocity=turn.inv().apply(imu.angular_velocity),
            linear_acceleration=turn.inv().apply(imu.linear_acceleration),
            orientation=rotations.multiply(imu.orientation, turn.as_quat()[None]),
        )
        return recording.with_messages('imu', array)

    return change


def late(role: str, seconds: float) -> Change:
    shift = np.int64(seconds * 1e9)
    return altered(role, stamp_ns=lambda t: t + shift, arrival_ns=lambda t: t + shift)


def selected_messages(role: str, choose: Callable[[np.ndarray], np.ndarray]) -> Change:
    """Keep the messages whose times, s since the first, are selected."""

    def change(recording: Recording) -> Recording:
        array = recording.require(role)
        time = (array.stamp_ns - array.stamp_ns[0]) * 1e-9
        return recording.with_messages(role, array.take(choose(time)))

    return change


def with_ideal_imu(choose: Callable[[np.ndarray], np.ndarray]) -> Change:
    """Add a noise-free IMU with the IMU messages whose times are selected."""

    select = selected_messages('imu', choose)
    return lambda recording: recording.with_messages('ideal_imu', select(recording).imu)


def every_nth(step: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda time: np.arange(len(time)) % step == 0


def correction(role: str, **values: object) -> Change:
    """Apply a correction to a good recording without noting it: the inverse fault."""

    def change(recording: Recording) -> Recording:
        wrong = correct_recording(recording, {role: CORRECTIONS[role](**values)})
        return dataclasses.replace(wrong, corrections={})

    return change


def frozen_fields(role: str, *fields: str) -> Change:
    """Repeat one measurement from 10 to 16 s."""

    def hold(values: np.ndarray) -> np.ndarray:
        first, last = len(values) // 4, len(values) * 2 // 5
        values = values.copy()
        values[first:last] = values[first]
        return values

    return altered(role, **dict.fromkeys(fields, hold))


def stepped(role: str, field: str, at: int, size: float) -> Change:
    def step(values: np.ndarray) -> np.ndarray:
        values = values.copy()
        values[at : at + 3] += size
        return values

    return altered(role, **{field: step})


def reread(role: str, **changes: Callable) -> Change:
    """Change messages, and read them as from a file."""

    def change(recording: Recording) -> Recording:
        broken = altered(role, **changes)(recording)
        topic = recording.roles[role]
        array, notes = check_messages('x', topic, broken.require(role), is_truth=role == 'truth')
        whole = broken.with_messages(role, array)
        return dataclasses.replace(whole, notes=(*whole.notes, *notes))

    return change


def swapped_stamps(stamp: np.ndarray) -> np.ndarray:
    stamp = stamp.copy()
    stamp[5::20], stamp[4::20] = stamp[4::20].copy(), stamp[5::20].copy()
    return stamp


def zeroed(values: np.ndarray) -> np.ndarray:
    return np.zeros_like(values)


def in_bursts(stamp: np.ndarray) -> np.ndarray:
    """Five messages wait for each other, and follow one another within a millisecond."""
    count = np.arange(len(stamp))
    return stamp[np.minimum(count - count % 5 + 4, len(stamp) - 1)] + (count % 5) * 1_000_000


def world_twist(recording: Recording) -> Recording:
    truth = recording.truth
    twist = rotations.rotate(truth.orientation, truth.linear_velocity)
    return recording.with_messages('truth', dataclasses.replace(truth, linear_velocity=twist))


def of_camera(recording: Recording) -> Recording:
    """Give the truth the axes of a camera: x right, y down, z forward."""
    truth, axes = recording.truth, Rotation.from_matrix([[0, -1, 0], [0, 0, -1], [1, 0, 0]])
    turn = axes * Rotation.from_quat(truth.orientation) * axes.inv()
    fields = ('position', 'linear_velocity', 'angular_velocity')
    vectors = {name: axes.apply(getattr(truth, name)) for name in fields}
    rotated_truth = dataclasses.replace(truth, orientation=turn.as_quat(), **vectors)
    return recording.with_messages('truth', rotated_truth)


def of_status(share: float) -> Change:
    def lost(status: np.ndarray) -> np.ndarray:
        return np.where(np.arange(len(status)) % 10 < 10 * share, -1, status)

    return reread('gps', status=lost)


def tripled_heading(orientation: np.ndarray) -> np.ndarray:
    yaw, pitch, roll = Rotation.from_quat(orientation).as_euler('ZYX').T
    return Rotation.from_euler('ZYX', np.stack([3.0 * yaw, pitch, roll], axis=1)).as_quat()


def clipped(values: np.ndarray) -> np.ndarray:
    """Beyond the range of the sensor there are two pushes."""
    values = values.copy()
    values[500:520, 0] = values[900:930, 0] = 4.36
    return values


def white(shape: tuple[int, ...], deviation: float) -> np.ndarray:
    return np.random.default_rng(7).normal(0.0, deviation, shape)


def delayed(values: np.ndarray) -> np.ndarray:
    """Return rows that are 0.4 s late."""
    return np.vstack([values[:1]] * 40 + [values[:-40]])


FAULTS: dict[str, tuple[str, Change]] = {
    'acceleration in g': (
        'acceleration_unit', correction('imu', acceleration_scale=1 / 9.80665)
    ),
    'acceleration in mg': ('acceleration_unit', correction('imu', acceleration_scale=101.97)),
    'no gravity': (
        'no_gravity', altered('imu', linear_acceleration=lambda f: f - f.mean(axis=0))
    ),
    'accelerometer 20 % off': ('gravity_scale_large', scaled('imu', 'linear_acceleration', 1.2)),
    'accelerometer reversed': ('force_reversed', scaled('imu', 'linear_acceleration', -1.0)),
    'on its side': ('imu_tilted_large', rotated_imu(90.0, 0.0, 0.0)),
    'on its nose': ('imu_tilted_large', rotated_imu(0.0, 90.0, 0.0)),
    'upside down': ('imu_tilted_large', rotated_imu(180.0, 0.0, 0.0)),
    'tilted by 12 degrees': ('imu_tilted', rotated_imu(0.0, 12.0, 0.0)),
    'turned by 90 degrees': ('imu_yaw_large', rotated_imu(0.0, 0.0, 90.0)),
    'turned by 180 degrees': ('imu_yaw_large', rotated_imu(0.0, 0.0, 180.0)),
    'rates in deg/s': ('rate_unit', correction('imu', rate_scale=57.29578)),
    'rates reversed': ('rate_reversed', scaled('imu', 'angular_velocity', -1.0)),
    'rates 30 % off': ('rate_scale_large', scaled('imu', 'angular_velocity', 1.3)),
    'rate bias': (
        'rate_bias_large', altered('imu', angular_velocity=lambda w: w + np.array([0, 0, 0.1]))
    ),
    'IMU late': ('imu_late_large', late('imu', 0.4)),
    'IMU early': ('imu_late_large', late('imu', -0.4)),
    'IMU slow': ('slow', selected_messages('imu', every_nth(10))),
    'IMU gap': ('gap_large', selected_messages('imu', lambda t: (t < 12.0) | (t > 14.0))),
    'noise-free IMU slow': ('slow', with_ideal_imu(every_nth(2))),
    'noise-free IMU gap': ('noise_free_gap', with_ideal_imu(lambda t: (t < 12.0) | (t > 12.3))),
    'IMU frozen': ('frozen', frozen_fields('imu', 'angular_velocity', 'linear_acceleration')),
    'IMU saturated': ('saturated', altered('imu', angular_velocity=clipped)),
    'IMU without orientation': (
        'no_orientation', altered('imu', orientation_covariance=lambda c: c * 0.0 - 1.0)
    ),
    'stamps in bursts': ('uneven_stamps', altered('imu', stamp_ns=in_bursts)),
    'stamps out of order': ('stamp_order', reread('imu', stamp_ns=swapped_stamps)),
    'stamps zero': ('stamp_zero', reread('imu', stamp_ns=zeroed)),
    'rate covariance zero': ('no_covariance', altered('imu', angular_velocity_covariance=zeroed)),
    'force covariance 10^6 too small': (
        'covariance_small_large', scaled('imu', 'linear_acceleration_covariance', 1e-6)
    ),
    'heading from north': ('orientation_axes', correction('imu', axes='ned')),
    'heading off by 40 degrees': ('orientation_yaw_large', correction('imu', heading=40.0)),
    'heading of the IMU three times as fast': (
        'orientation_strays', altered('imu', orientation=tripled_heading)
    ),
    'IMU orientation unset': (
        'orientation_unset', altered('imu', orientation=lambda q: q * 0.0 + [0, 0, 0, 1])
    ),
    'fixes by GPS time': ('other_clock', late('gps', 18.0)),
    'IMU by another clock': ('other_clock', late('imu', -4.0)),
    'fixes late': ('fixes_late_large', late('gps', 0.6)),
    'fix covariance 10^4 too small': (
        'covariance_small_large', scaled('gps', 'position_covariance', 1e-4)
    ),
    'fix covariance 10^4 too large': (
        'covariance_large', scaled('gps', 'position_covariance', 1e4)
    ),
    'fix covariance zero': ('no_covariance', altered('gps', position_covariance=zeroed)),
    'latitude and longitude exchanged': ('fixes_swapped', correction('gps', swapped=True)),
    'fixes jump': ('fix_jumps', stepped('gps', 'latitude', 60, 2e-4)),
    'fixes frozen': ('frozen', frozen_fields('gps', 'latitude', 'longitude')),
    'fixes lost': ('no_fix_large', of_status(0.6)),
    'fix gap': ('gap_large', selected_messages('gps', lambda t: (t < 12.0) | (t > 24.0))),
    'kinds of fix': (
        'fix_kinds', altered('gps', status=lambda s: np.where(np.arange(len(s)) % 3, 2, 0))
    ),
    'truth in NED': ('truth_ned', correction('truth', axes='ned')),
    'truth of a camera': ('truth_camera', of_camera),
    'truth turned': ('truth_turned_large', correction('truth', turn=40.0)),
    'truth in mm': ('truth_scale', correction('truth', position_scale=1e3, speed_scale=1e3)),
    'positions in mm': ('truth_scale', correction('truth', position_scale=1e3)),
    'positions in km': ('truth_scale', correction('truth', position_scale=1e-3)),
    'speeds in km/h': ('speed_scale', correction('truth', speed_scale=3.6)),
    'twist in the world': ('twist_in_world', world_twist),
    'twist late': ('twist_late', altered('truth', linear_velocity=delayed)),
    'twist that is noisy': (
        'truth_rough', altered('truth', linear_velocity=lambda v: v + white(v.shape, 0.02))
    ),
    'truth without orientation': (
        'truth_no_heading', altered('truth', orientation=lambda q: q * 0.0 + [0, 0, 0, 1])
    ),
    'heading of the truth': ('truth_heading_large', correction('truth', heading=60.0)),
    'axes of the body': ('truth_sideways', correction('truth', body_yaw=84.0)),
    'truth jumps': ('truth_jumps', stepped('truth', 'position', 1500, 4.0)),
    'truth frozen': (
        'frozen',
        frozen_fields('truth', 'position', 'orientation', 'linear_velocity', 'angular_velocity'),
    ),
    'truth gap': ('gap_large', selected_messages('truth', lambda t: (t < 12.0) | (t > 17.0))),
    'truth slow': ('slow', selected_messages('truth', every_nth(100))),
    'no truth': ('missing', lambda recording: recording.with_messages('truth', None)),
    'short': (
        'short',
        lambda r: functools.reduce(
            lambda run, role: selected_messages(role, lambda t: t < 8.0)(run), r.roles, r
        ),
    ),
}  # fmt: skip
