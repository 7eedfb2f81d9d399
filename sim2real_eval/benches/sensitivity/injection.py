# SPDX-License-Identifier: Apache-2.0
"""Errors of known size, put into the messages of a recording."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from sim2real_eval.recording.corrections import FixCorrection, ImuCorrection
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.truth import truth_at
from sim_sensors.core import rotations
from sim_sensors.core.measurements import FixArray, FloatArray, ImuArray, is_absent
from sim_sensors.world.geodesy import LocalFrame

Change = Callable[[Recording, float, np.random.Generator], Recording]


@dataclasses.dataclass(frozen=True)
class InjectedError:
    """A kind of error, of which the size is a number.

    Attributes
    ----------
    name, unit : str
    noun : str
        As in `a judge would not have seen ...`.
    meaning : str
        What a size means, for people.
    role : str
        Whose messages it changes.
    start, most : float
        Sizes between which the search begins and ends.
    change : callable
        Takes recording, size and draws, which do not depend on the size.
    """

    name: str
    unit: str
    noun: str
    meaning: str
    role: str
    start: float
    most: float
    change: Change

    def applies(self, recording: Recording) -> bool:
        """Return whether the recording has what the error is of."""
        if recording.roles.get(self.role) is None:
            return False
        imu = recording.imu
        return self.name != 'heading' or (
            imu is not None and not is_absent(imu.orientation_covariance).any()
        )


def _imu(recording: Recording) -> ImuArray:
    imu = recording.require('imu')
    assert isinstance(imu, ImuArray)
    return imu


def _fixes(recording: Recording) -> FixArray:
    fixes = recording.require('gps')
    assert isinstance(fixes, FixArray)
    return fixes


def _moved(recording: Recording, offset: FloatArray) -> Recording:
    """Return the recording with fixes moved by metres east, north and up, (n, 3)."""
    fixes = _fixes(recording)
    place = np.stack([fixes.latitude, fixes.longitude, fixes.altitude], axis=1)
    there = np.isfinite(place).all(axis=1)
    if not there.any():
        return recording
    frame = LocalFrame(*place[there][0].tolist())
    moved = frame.to_geodetic(frame.to_enu(*place[there].T) + offset[there])
    place[there] = np.stack(moved, axis=1)
    latitude, longitude, altitude = place.T.copy()
    changed = dataclasses.replace(fixes, latitude=latitude, longitude=longitude, altitude=altitude)
    return recording.with_messages('gps', changed)


def _fix_noise(recording: Recording, size: float, rng: np.random.Generator) -> Recording:
    return _moved(recording, size * rng.standard_normal((len(_fixes(recording)), 3)))


def _lever_arm(recording: Recording, size: float, rng: np.random.Generator) -> Recording:
    truth = recording.truth
    assert truth is not None
    stamps = np.clip(_fixes(recording).stamp_ns, truth.stamp_ns[0], truth.stamp_ns[-1])
    ahead = np.broadcast_to([size, 0.0, 0.0], (len(stamps), 3))
    return _moved(recording, rotations.rotate(truth_at(truth, stamps).orientation, ahead))


def _fix_delay(recording: Recording, size: float, rng: np.random.Generator) -> Recording:
    late = FixCorrection(delay=-size).applied(_fixes(recording))
    return recording.with_messages('gps', late)


def _rate_bias(recording: Recording, size: float, rng: np.random.Generator) -> Recording:
    return _corrected(recording, ImuCorrection(rate_bias=(0.0, 0.0, -size)))


def _imu_delay(recording: Recording, size: float, rng: np.random.Generator) -> Recording:
    return _corrected(recording, ImuCorrection(delay=-size))


def _heading(recording: Recording, size: float, rng: np.random.Generator) -> Recording:
    return _corrected(recording, ImuCorrection(heading=-size))


def _corrected(recording: Recording, correction: ImuCorrection) -> Recording:
    return recording.with_messages('imu', correction.applied(_imu(recording)))


def _force_bias(recording: Recording, size: float, rng: np.random.Generator) -> Recording:
    imu = _imu(recording)
    biased = imu.linear_acceleration + np.array([size, 0.0, 0.0])
    changed = dataclasses.replace(imu, linear_acceleration=biased)
    return recording.with_messages('imu', changed)


def _rate_scale(recording: Recording, size: float, rng: np.random.Generator) -> Recording:
    imu = _imu(recording)
    # Unlike a unit put right, the stated covariance does not know of it.
    changed = dataclasses.replace(imu, angular_velocity=(1.0 + size) * imu.angular_velocity)
    return recording.with_messages('imu', changed)


ERRORS = {one.name: one for one in (
    InjectedError(
        'gps_noise', 'm', 'white GPS noise', 'standard deviation of each axis, added to the fixes',
        'gps', 0.3, 100.0, _fix_noise,
    ),
    InjectedError(
        'gps_delay', 's', 'a GPS delay', 'stamps of the fixes are late', 'gps', 0.2, 5.0,
        _fix_delay,
    ),
    InjectedError(
        'lever_arm', 'm', 'a GPS lever arm', 'antenna ahead of where it is stated', 'gps', 0.5,
        50.0, _lever_arm,
    ),
    InjectedError(
        'gyro_bias', 'rad/s', 'a gyro bias', 'about the vertical axis of the IMU', 'imu', 0.01,
        3.0, _rate_bias,
    ),
    InjectedError(
        'gyro_scale', '1', 'a gyro scale error', 'share of the rates', 'imu', 0.05, 1.0,
        _rate_scale,
    ),
    InjectedError(
        'accelerometer_bias', 'm/s^2', 'an accelerometer bias', 'along the IMU, ahead', 'imu',
        0.2, 10.0, _force_bias,
    ),
    InjectedError(
        'imu_delay', 's', 'an IMU delay', 'stamps of the IMU are late', 'imu', 0.1, 5.0,
        _imu_delay,
    ),
    InjectedError(
        'heading', 'deg', 'a heading error', 'of the published orientation', 'imu', 3.0, 90.0,
        _heading,
    ),
)}  # fmt: skip
"""All kinds of errors by name."""
