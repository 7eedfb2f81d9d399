# SPDX-License-Identifier: Apache-2.0
"""Samples of IMU, magnetometer and camera in the order of their stamps."""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy.spatial.transform import Rotation

from sim2real_eval.benches.settings import AttitudeSettings
from sim2real_eval.characterization.screening import StandstillOptions
from sim_sensors.core import rotations
from sim_sensors.core.measurements import (
    FloatArray,
    ImuArray,
    IntArray,
    MagneticFieldArray,
    PoseArray,
    is_absent,
)
from .filter import ACCELEROMETER, CAMERA, MAGNETOMETER, AttitudeError, xi_matrices

_PARTS = 10
_LIMITS = StandstillOptions()


def without_zero_rate(imu: ImuArray, rest: float) -> ImuArray:
    """Return the IMU with the mean rate of its first seconds taken off all rates.

    A turn that is steady through all of them cannot be told from an offset.

    `rest`: seconds that the body rests. Raises AttitudeError when the time holds fewer than 10
    samples, or tenths of it differ in their mean rate or specific force by more than those of a
    body at rest (`StandstillOptions`).
    """
    early = imu.stamp_ns - imu.stamp_ns[0] < rest * 1e9
    rates = imu.angular_velocity[early]
    if len(rates) < _PARTS:
        raise AttitudeError(
            f'the IMU has {len(rates)} samples in its first {rest:g} s; --rest must cover '
            f'{_PARTS} or more'
        )
    for values, what, limit, unit in (
        (rates, 'rate', _LIMITS.rate_limit, 'rad/s'),
        (imu.linear_acceleration[early], 'specific force', _LIMITS.acceleration_limit, 'm/s^2'),
    ):
        means = np.stack([part.mean(axis=0) for part in np.array_split(values, _PARTS)])
        away = float(np.linalg.norm(means - np.median(means, axis=0), axis=1).max())
        # Written so that NaN of a specific force that is absent is no motion.
        if away > limit:
            raise AttitudeError(
                f'the IMU does not rest in its first {rest:g} s: the mean {what} of a tenth of '
                f'them is {away:.3g} {unit} off their median; must be {limit:g} or less; choose '
                'another --rest'
            )
    return dataclasses.replace(imu, angular_velocity=imu.angular_velocity - rates.mean(axis=0))


NAMES = {ACCELEROMETER: 'accelerometer', MAGNETOMETER: 'magnetometer', CAMERA: 'camera'}
"""Of the kinds of samples that correct."""

UPRIGHT = (0.0, 0.0, 0.0, 1.0)
"""Of a sensor whose axes are those of the body."""


@dataclasses.dataclass(frozen=True, eq=False)
class AttitudeInput:
    """Sensors of one run.

    `poses` are of the body in the world; `imu_turn` and `mag_turn` are quaternions x y z w, sensor
    to body.
    """

    imu: ImuArray
    mag: MagneticFieldArray | None = None
    poses: PoseArray | None = None
    imu_turn: tuple[float, ...] = UPRIGHT
    mag_turn: tuple[float, ...] = UPRIGHT


@dataclasses.dataclass(frozen=True, eq=False)
class AttitudeEvents:
    """Samples of all sensors in the order of their stamps, as `filter_events` takes them."""

    # (n,) Of equal ones the accelerometer before the magnetometer before the camera.
    stamp_ns: IntArray
    kind: IntArray
    dt: FloatArray
    rate: FloatArray
    values: FloatArray
    covariance: FloatArray
    density: FloatArray

    def __len__(self) -> int:
        return len(self.stamp_ns)


def events_of(given: AttitudeInput, settings: AttitudeSettings) -> AttitudeEvents:
    """Return the samples between the first and the last of the IMU, turned into the body.

    Raises AttitudeError when there are too few samples, a sensor has none in that time, or no
    noise is stated nor given.
    """
    imu = given.imu
    if len(imu) < 2:
        raise AttitudeError(
            f'the IMU has {len(imu)} samples; must have 2 or more, of a longer motion or recording'
        )
    turning = np.isfinite(imu.angular_velocity).all(axis=1)
    turning &= ~is_absent(imu.angular_velocity_covariance)
    if turning.sum() < 2:
        raise AttitudeError(
            f'{turning.sum()} of {len(imu)} samples of the IMU hold an angular velocity that is '
            'finite and not marked as absent (covariance -1); must be 2 or more'
        )
    imu = imu.take(turning)
    if settings.rest > 0.0:
        imu = without_zero_rate(imu, settings.rest)
    turn = np.asarray(given.imu_turn, dtype=np.float64)[None]
    rate = rotations.rotate(turn, imu.angular_velocity)
    parts = [_accelerometer(imu, turn, settings)]
    if given.mag is not None and settings.magnetometer:
        parts.append(_magnetometer(given.mag, given.mag_turn, settings))
    if given.poses is not None and settings.camera:
        parts.append(_camera(given.poses))
    stamps, kinds, values, covariances = (
        np.concatenate([part[i] for part in parts]) for i in range(4)
    )
    inside = (stamps >= imu.stamp_ns[0]) & (stamps <= imu.stamp_ns[-1])
    # What is not a number corrects nothing; of the IMU it still ends a step of the gyroscope.
    finite = np.isfinite(values).all(axis=1) & np.isfinite(covariances).all(axis=(1, 2))
    used = np.where(finite, kinds, -1)
    for kind in np.unique(kinds[kinds >= 0]):
        if not (inside & (used == kind)).any():
            raise AttitudeError(
                f'the {NAMES[kind]} has no sample in the time of the IMU; must have some, or give '
                f'--without {NAMES[kind]}'
            )
    chosen = np.flatnonzero(inside)
    order = chosen[np.lexsort((kinds[chosen], stamps[chosen]))]
    stamps = stamps[order]
    time = (stamps - imu.stamp_ns[0]) * 1e-9
    dt = np.diff(time, prepend=0.0)
    return AttitudeEvents(
        stamp_ns=stamps,
        kind=used[order],
        dt=dt,
        rate=_rates((imu.stamp_ns - imu.stamp_ns[0]) * 1e-9, rate, time, settings.rate),
        values=np.ascontiguousarray(values[order]),
        covariance=np.ascontiguousarray(covariances[order]),
        density=_density(imu, turn, settings),
    )


_Part = tuple[IntArray, IntArray, FloatArray, FloatArray]


def _rates(at: FloatArray, rate: FloatArray, time: FloatArray, way: str) -> FloatArray:
    """Return the angular velocity before each event; no event but a sample changes it."""
    before = np.append(time[:1], time[:-1])
    if way == 'held':
        held: FloatArray = np.ascontiguousarray(
            rate[np.searchsorted(at, before, side='right') - 1]
        )
        return held
    middle = 0.5 * (before + time)
    return np.stack([np.interp(middle, at, column) for column in rate.T], axis=1)


def _density(imu: ImuArray, turn: FloatArray, settings: AttitudeSettings) -> FloatArray:
    if settings.gyroscope_density > 0.0:
        return np.eye(3) * settings.gyroscope_density**2
    stated = np.median(imu.angular_velocity_covariance, axis=0)
    if not np.trace(stated) > 0.0:
        raise AttitudeError(
            'the IMU states no covariance of its angular velocity; give --gyroscope-noise, the '
            'density of its white noise in rad/s/sqrt(Hz)'
        )
    period = float(np.median(np.diff(imu.stamp_ns))) * 1e-9
    return np.asarray(_turned(stated[None], turn)[0] * period)


def _accelerometer(imu: ImuArray, turn: FloatArray, settings: AttitudeSettings) -> _Part:
    if not settings.accelerometer:
        # The filter still steps with the gyroscope.
        none = np.zeros((len(imu), 4)), np.zeros((len(imu), 4, 4))
        return imu.stamp_ns, np.full(len(imu), -1), *none
    absent = is_absent(imu.linear_acceleration_covariance)
    if absent.all():
        raise AttitudeError(
            'the IMU marks its specific force as absent (covariance -1); give --without '
            'accelerometer'
        )
    force = np.where(absent[:, None], np.nan, imu.linear_acceleration)
    covariance = _stated(
        np.where(absent[:, None, None], np.eye(3), imu.linear_acceleration_covariance),
        settings.accelerometer_std,
        'the IMU states no covariance of its specific force; give --accelerometer-std, the '
        'standard deviation of a sample in m/s^2, or --without accelerometer',
    )
    covariance = _turned(covariance, turn) + np.eye(3) * settings.acceleration_std**2
    return _part(imu.stamp_ns, ACCELEROMETER, rotations.rotate(turn, force), covariance)


def _magnetometer(
    mag: MagneticFieldArray, turn: tuple[float, ...], settings: AttitudeSettings
) -> _Part:
    covariance = _stated(
        mag.magnetic_field_covariance,
        settings.magnetometer_std,
        'the magnetometer states no covariance; give --magnetometer-std, the standard '
        'deviation of a sample in T, or --without magnetometer',
    )
    quaternion = np.asarray(turn, dtype=np.float64)[None]
    return _part(
        mag.stamp_ns,
        MAGNETOMETER,
        rotations.rotate(quaternion, mag.magnetic_field),
        _turned(covariance, quaternion),
    )


def _camera(poses: PoseArray) -> _Part:
    """Return quaternions world to body and their covariance.

    A pose states a rotation d about the world's axes, which in the body is R^T d. Along the
    quaternion nothing is measured, nor is the state uncertain there; the mean variance stands
    there for the covariance to have an inverse. A pose that states none is left out.
    """
    q = rotations.conjugate(poses.orientation)
    turned = _turned(poses.pose_covariance[:, 3:, 3:], q)
    size = np.trace(turned, axis1=1, axis2=2)
    known = size > 0.0
    if not known.any():
        raise AttitudeError(
            'the poses of the camera state no covariance; they must, or give --without camera'
        )
    xi = xi_matrices(q)
    covariance = 0.25 * xi @ turned @ np.swapaxes(xi, 1, 2)
    covariance += (size / 12.0)[:, None, None] * q[:, :, None] * q[:, None, :]
    return (poses.stamp_ns[known], np.full(int(known.sum()), CAMERA), q[known], covariance[known])


def _stated(covariance: FloatArray, std: float, lack: str) -> FloatArray:
    """Return covariances `(n, 3, 3)`: as given, else as stated, else it is an error."""
    if std > 0.0:
        return np.tile(np.eye(3) * std**2, (len(covariance), 1, 1))
    size = np.trace(covariance, axis1=1, axis2=2)
    if not (size > 0.0).all():
        raise AttitudeError(lack)
    return covariance


def _turned(covariance: FloatArray, turn: FloatArray) -> FloatArray:
    matrix = Rotation.from_quat(turn).as_matrix()
    return np.asarray(matrix @ covariance @ np.swapaxes(matrix, 1, 2))


def _part(stamps: IntArray, kind: int, values: FloatArray, covariance: FloatArray) -> _Part:
    n = len(stamps)
    padded, wide = np.zeros((n, 4)), np.zeros((n, 4, 4))
    padded[:, :3], wide[:, :3, :3] = values, covariance
    return stamps, np.full(n, kind), padded, wide
