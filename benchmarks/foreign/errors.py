# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Errors of messages against what a perfect sensor would have measured of the known motion.

Times are those of the truth's clock: whether truth or sensors are late cannot be known from a
recording. Vectors are compared in the axes of the body, by the transforms that are declared.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.spatial.transform import Rotation

from . import earth
from .sensors import GPS, IMU, ODOMETRY, TRUTH, Log, Stream
from .vehicles import Array

Transforms = Mapping[str, tuple[Array, Rotation]]

FLOORS = {
    'imu rate': 2e-3,
    'imu force': 0.03,
    'imu orientation': 0.3,
    'gps position': 0.05,
    'truth position': 0.03,
    'truth orientation': 0.1,
    'truth velocity': 0.02,
    'truth rate': 2e-3,
    'odom velocity': 0.02,
    'odom rate': 2e-3,
}
"""Growth of an error that does not matter: rad/s, m/s^2, deg, m and m/s."""
_STATED = ' stated'
_STATED_FLOOR = float(np.log(1.5))
_MIN = 1e-5


def measure_errors(
    log: Log, streams: Mapping[str, Stream], transforms: Transforms
) -> dict[str, float]:
    """Return the root mean square error of each quantity of each input.

    Quantities are the keys of `FLOORS`. `<quantity> stated` is the size of the logarithm of the
    ratio of stated and true error.

    Parameters
    ----------
    log : Log
        Holds the motion.
    streams : mapping of str to Stream
        Messages by topic, with or without fault or remedy.
    transforms : mapping
        As `Log.transforms`.
    """
    clock = log.streams[TRUTH].clock
    errors: dict[str, float] = {}
    for topic, measure in ((IMU, _of_imu), (GPS, _of_fixes), (TRUTH, _of_truth)):
        if topic in streams and len(streams[topic]):
            errors |= measure(log, streams[topic], clock, transforms)
    if ODOMETRY in streams and len(streams[ODOMETRY]):
        errors |= _of_odometry(log, streams[ODOMETRY], clock, transforms)
    return errors


def growth(before: Mapping[str, float], after: Mapping[str, float]) -> list[str]:
    """Return the quantities that are worse: by more than a tenth, and by what matters.

    A stated deviation does not become worse by errors that are smaller now.
    """

    def is_worse(name: str) -> bool:
        error = name.removesuffix(_STATED)
        if error != name and after.get(error, np.inf) < 0.9 * before.get(error, 0.0):
            return False
        return after.get(name, np.inf) > 1.1 * before[name] + FLOORS.get(name, _STATED_FLOOR)

    return [name for name in before if is_worse(name)]


def is_mended(
    clean: Mapping[str, float], faulty: Mapping[str, float], after: Mapping[str, float]
) -> bool:
    """Return whether errors of an input are nearly those without its fault.

    Twice the errors without fault, and a twentieth of those with it, are near enough.
    """
    near = {
        name: 2.0 * error + 0.05 * min(faulty.get(name, 0.0), 1e3) for name, error in clean.items()
    }
    return not growth(near, after)


def _rms(errors: Array) -> float:
    """Return the root mean square length of the rows."""
    return float(np.sqrt(np.mean(np.sum(np.square(errors.reshape(len(errors), -1)), axis=1))))


def _stated(covariance: Array, errors: Array) -> float:
    """Return how far a stated deviation is from the error of an axis, as a logarithm."""
    size = round(np.sqrt(covariance.shape[1]))
    variance = np.nan_to_num(np.diagonal(covariance.reshape(-1, size, size), axis1=1, axis2=2))
    axes = errors.shape[1]
    stated = np.sqrt(np.clip(np.mean(variance[:, :axes]), _MIN**2, None))
    return float(abs(np.log(stated / max(_rms(errors) / np.sqrt(axes), _MIN))))


def _angles(measured: Array, true: Rotation) -> Array:
    """Return rotation vectors from true to measured orientations, deg; 180 for none."""
    norms = np.linalg.norm(measured, axis=1)
    safe = np.where(norms[:, None] > 0.0, measured, [1.0, 0.0, 0.0, 0.0])
    return np.asarray(np.degrees((Rotation(safe) * true.inv()).as_rotvec()))


def _inside(log: Log, time: Array) -> Array:
    return (time >= 0.0) & (time <= log.motion.duration)


def _of_imu(log: Log, imu: Stream, clock: float, transforms: Transforms) -> dict[str, float]:
    time = imu.time - clock
    rows, values = _inside(log, time), imu.values
    if not rows.any():
        return dict.fromkeys(('imu rate', 'imu force'), np.inf)
    state = log.motion.at(time[rows])
    turn = transforms[imu.frame][1] if imu.frame in transforms else Rotation.identity()
    acceleration = state.point(np.array(log.setup.lever_imu))[2]
    force = state.attitude.inv().apply(acceleration + log.gravity())
    rate_errors = turn.apply(values['rate'][rows]) - state.rate
    force_errors = turn.apply(values['force'][rows]) - force
    errors = {
        'imu rate': _rms(rate_errors),
        'imu force': _rms(force_errors),
        'imu rate' + _STATED: _stated(values['rate_covariance'], rate_errors),
        'imu force' + _STATED: _stated(values['force_covariance'], force_errors),
    }
    if values['orientation_covariance'][0, 0] >= 0.0:
        angles = _angles(values['orientation'][rows], state.attitude * turn)
        errors['imu orientation'] = _rms(angles)
        errors['imu orientation' + _STATED] = _stated(
            values['orientation_covariance'], np.radians(angles)
        )
    return errors


def _of_fixes(log: Log, fixes: Stream, clock: float, transforms: Transforms) -> dict[str, float]:
    time, values = fixes.time - clock, fixes.values
    rows = _inside(log, time) & (values['status'] >= 0)
    if not rows.any():
        return {'gps position': np.inf}
    arm = transforms[fixes.frame][0] if fixes.frame in transforms else np.zeros(3)
    latitude, longitude, altitude = (
        values[name][rows] for name in ('latitude', 'longitude', 'altitude')
    )
    enu = earth.to_enu(latitude, longitude, altitude, log.setup.place)
    errors = enu - log.motion.at(time[rows]).point(np.asarray(arm))[0]
    # Of heights nobody knows the zero.
    errors[:, 2] -= np.mean(errors[:, 2])
    return {
        'gps position': _rms(errors),
        'gps position' + _STATED: _stated(values['covariance'][rows], errors),
    }


def _of_truth(log: Log, truth: Stream, clock: float, _: Transforms) -> dict[str, float]:
    time, values = truth.time - clock, truth.values
    rows = _inside(log, time)
    state = log.motion.at(time[rows])
    place = values['position'][rows] - state.position
    errors = {
        # The origin is arbitrary.
        'truth position': _rms(place - place.mean(axis=0)),
        'truth orientation': _rms(_angles(values['orientation'][rows], state.attitude)),
    }
    if 'velocity' in values:
        errors |= _of_twist('truth', state.attitude.inv().apply(state.velocity), state.rate,
                            values, rows)  # fmt: skip
    return errors


def _of_odometry(log: Log, odom: Stream, clock: float, _: Transforms) -> dict[str, float]:
    time = odom.time - clock
    rows = _inside(log, time)
    state = log.motion.at(time[rows])
    body = state.attitude.inv().apply(state.velocity)
    return _of_twist('odom', body, state.rate * [0.0, 0.0, 1.0], odom.values, rows)


def _of_twist(
    role: str, velocity: Array, rate: Array, values: Mapping[str, Array], rows: Array
) -> dict[str, float]:
    return {
        f'{role} velocity': _rms(values['velocity'][rows] - velocity),
        f'{role} rate': _rms(values['rate'][rows] - rate),
    }
