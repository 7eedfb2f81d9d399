# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Extended Kalman filter of [Ligorio2015], equations 8 to 12, and the samples that it processes.

The state is the quaternion q that takes vectors of the world to the body, order x y z w; u is its
vector and w its scalar part. A small rotation d of the body changes q by Xi(q) d / 2 with
Xi(q) = [w I - [u]x; -u^T].

[Ligorio2015] does not say how normalisation of q affects the covariance. Here the covariance is
projected like the state, with I - q q^T: a unit quaternion has no uncertainty along itself.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from sim2real_eval.benches.settings import AttitudeSettings
from sim2real_eval.characterization.screening import StandstillOptions
from sim2real_eval.metrics.consistency import Squares
from sim_sensors.core import rotations
from sim_sensors.core.compilation import compiled
from sim_sensors.core.compiled_rotations import cross
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.measurements import (
    FloatArray,
    ImuArray,
    IntArray,
    MagneticFieldArray,
    PoseArray,
    is_absent,
)

ACCELEROMETER, MAGNETOMETER, CAMERA = range(3)
"""Kinds of events."""


def xi_matrices(q: FloatArray) -> FloatArray:
    """Return Xi(q), `(n, 4, 3)`, of quaternions `(n, 4)`; Xi^T Xi = I.

    Source: [Crassidis2007], with the sign of a quaternion world to body.
    """
    x, y, z, w = q.T
    rows = [[w, z, -y], [-z, w, x], [y, -x, w], [-x, -y, -z]]
    return np.asarray(np.moveaxis(np.array(rows), -1, 0))


@compiled
def _predict(
    q: FloatArray, P: FloatArray, rate: FloatArray, dt: float, density: FloatArray
) -> None:
    """Rotate by a constant rate, equation 9: q <- [cos a, -sin a w/|w|] q, a = |w| dt / 2.

    P <- F P F^T + dt/4 Xi D Xi^T: for one sample period Ts, with D = Ts cov(gyro), that is
    (Ts/2)^2 Xi cov(gyro) Xi^T; a period that a frame of the camera cuts adds up to the same.
    """
    speed = math.sqrt(rate[0] ** 2 + rate[1] ** 2 + rate[2] ** 2)
    angle = 0.5 * speed * dt
    scale = -0.5 * dt
    if speed > 1e-12:
        scale = -math.sin(angle) / speed
    a, b, c, d = scale * rate[0], scale * rate[1], scale * rate[2], math.cos(angle)
    # Product from the left with the quaternion (a, b, c, d).
    F = np.array([[d, -c, b, a], [c, d, -a, b], [-b, a, d, c], [-a, -b, -c, d]])
    turned = np.zeros(4)
    FP = np.zeros((4, 4))
    for i in range(4):
        for j in range(4):
            turned[i] += F[i, j] * q[j]
            for k in range(4):
                FP[i, k] += F[i, j] * P[j, k]
    for i in range(4):
        q[i] = turned[i]
    x, y, z, w = turned[0], turned[1], turned[2], turned[3]
    xi = np.array([[w, z, -y], [-z, w, x], [y, -x, w], [-x, -y, -z]])
    half = np.zeros((4, 3))
    for i in range(4):
        for j in range(3):
            for k in range(3):
                half[i, k] += xi[i, j] * density[j, k]
    for i in range(4):
        for k in range(i + 1):
            total = 0.0
            for j in range(3):
                total += half[i, j] * xi[k, j]
            total *= 0.25 * dt
            for j in range(4):
                total += FP[i, j] * F[k, j]
            P[i, k] = total
            P[k, i] = total


@compiled
def _expect(q: FloatArray, v: FloatArray, expected: FloatArray, H: FloatArray) -> None:
    """Fill `expected` with q v conj(q) and H with its derivative, equations 10 and 11."""
    w = q[3]
    dot = q[0] * v[0] + q[1] * v[1] + q[2] * v[2]
    size = q[0] ** 2 + q[1] ** 2 + q[2] ** 2
    turned = np.zeros(3)
    cross(q, v, turned)
    for i in range(3):
        expected[i] = (w * w - size) * v[i] + 2.0 * dot * q[i] + 2.0 * w * turned[i]
        H[i, 3] = 2.0 * (w * v[i] + turned[i])
        for j in range(3):
            H[i, j] = 2.0 * (q[i] * v[j] - v[i] * q[j])
        H[i, i] += 2.0 * dot
    # The last term is -2 w [v]x.
    H[0, 1] += 2.0 * w * v[2]
    H[0, 2] -= 2.0 * w * v[1]
    H[1, 0] -= 2.0 * w * v[2]
    H[1, 2] += 2.0 * w * v[0]
    H[2, 0] += 2.0 * w * v[1]
    H[2, 1] -= 2.0 * w * v[0]


@compiled
def _factor_covariance(
    HP: FloatArray, H: FloatArray, R: FloatArray, n: int, L: FloatArray
) -> None:
    """Fill L with the Cholesky factor of the innovation covariance H P H^T + R, `(n, n)`."""
    for i in range(n):
        for j in range(i + 1):
            total = R[i, j]
            for k in range(4):
                total += HP[i, k] * H[j, k]
            L[i, j] = total
    for i in range(n):
        for j in range(i + 1):
            total = L[i, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            L[i, j] = math.sqrt(total) if i == j else total / L[j, j]


@compiled
def _correct(
    q: FloatArray, P: FloatArray, innovation: FloatArray, H: FloatArray, R: FloatArray, n: int
) -> float:
    """Correct with n measured numbers, normalise q, and return the NIS of the innovation."""
    W = np.zeros((4, 4))
    L = np.zeros((4, 4))
    y = np.zeros(4)
    nis = 0.0
    for i in range(n):
        for j in range(4):
            for k in range(4):
                W[i, j] += H[i, k] * P[k, j]
    _factor_covariance(W, H, R, n, L)
    # W becomes L^-1 H P and y becomes L^-1 innovation.
    for i in range(n):
        y[i] = innovation[i]
        for k in range(i):
            y[i] -= L[i, k] * y[k]
            for j in range(4):
                W[i, j] -= L[i, k] * W[k, j]
        y[i] /= L[i, i]
        for j in range(4):
            W[i, j] /= L[i, i]
        nis += y[i] * y[i]
    norm = 0.0
    for j in range(4):
        for i in range(n):
            q[j] += W[i, j] * y[i]
            for k in range(4):
                P[j, k] -= W[i, j] * W[i, k]
        norm += q[j] * q[j]
    norm = math.sqrt(norm)
    for j in range(4):
        q[j] /= norm
    along = np.zeros(4)
    both = 0.0
    for j in range(4):
        for k in range(4):
            along[j] += P[j, k] * q[k]
        both += q[j] * along[j]
    for j in range(4):
        for k in range(4):
            P[j, k] += both * q[j] * q[k] - along[j] * q[k] - q[j] * along[k]
            P[j, k] /= norm * norm
    return nis


@compiled
def filter_events(
    kind: IntArray,
    dt: FloatArray,
    rate: FloatArray,
    values: FloatArray,
    covariance: FloatArray,
    density: FloatArray,
    gravity: FloatArray,
    field: FloatArray,
    first: FloatArray,
    first_covariance: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Predict to each event and correct with it, by the measurement model of its kind.

    Parameters
    ----------
    kind : (n,) int
        ACCELEROMETER, MAGNETOMETER or CAMERA; negative for a prediction only.
    dt : (n,) array
        Time since the previous event, s.
    rate : (n, 3) array
        Angular velocity during that time, rad/s, body.
    values : (n, 4) array
        Specific force, m/s^2, or field, T, in the body, with an unused fourth component; or the
        quaternion of a pose.
    covariance : (n, 4, 4) array
        Covariance of the values.
    density : (3, 3) array
        White noise of the gyroscope, (rad/s)^2/Hz.
    gravity : (3,) array
        Specific force of an accelerometer at rest, world, m/s^2, upwards.
    field : (3,) array
        Magnetic field of the world, T.
    first, first_covariance : (4,), (4, 4) array
        Quaternion, world to body, before the first event, and its covariance.

    Returns quaternions `(n, 4)` after each event, their covariances `(n, 4, 4)`, and the
    normalised square `(n,)` of the innovation, NaN without one.
    """
    n = len(kind)
    states, covariances, squares = np.empty((n, 4)), np.empty((n, 4, 4)), np.full(n, np.nan)
    q, P = first.copy(), first_covariance.copy()
    H, innovation, expected = np.zeros((4, 4)), np.zeros(4), np.zeros(3)
    for i in range(n):
        if dt[i] > 0.0:
            _predict(q, P, rate[i], dt[i], density)
        if kind[i] == CAMERA:
            # q and -q are the same attitude.
            same = 0.0
            for j in range(4):
                same += values[i, j] * q[j]
            sign = 1.0 if same >= 0.0 else -1.0
            for j in range(4):
                innovation[j] = sign * values[i, j] - q[j]
                for k in range(4):
                    H[j, k] = 1.0 if j == k else 0.0
            squares[i] = _correct(q, P, innovation, H, covariance[i], 4)
        elif kind[i] >= 0:
            _expect(q, gravity if kind[i] == ACCELEROMETER else field, expected, H)
            for j in range(3):
                innovation[j] = values[i, j] - expected[j]
            squares[i] = _correct(q, P, innovation, H, covariance[i], 3)
        for j in range(4):
            states[i, j] = q[j]
            for k in range(4):
                covariances[i, j, k] = P[j, k]
    return states, covariances, squares


class AttitudeError(Sim2RealError):
    """An attitude cannot be estimated: samples are missing, or their noise is unknown."""


_PARTS = 10
_LIMITS = StandstillOptions()


def without_zero_rate(imu: ImuArray, rest: float) -> ImuArray:
    """Return the IMU with the mean rate of its first `rest` seconds subtracted from all rates.

    A steady turn during this time cannot be distinguished from an offset. Raises AttitudeError
    when the time holds fewer than 10 samples, or when the mean rate or specific force of a tenth
    of it differs by more than for a body at rest (`StandstillOptions`).
    """
    early = imu.stamp_ns - imu.stamp_ns[0] < rest * 1e9
    rates = imu.angular_velocity[early]
    if len(rates) < _PARTS:
        raise AttitudeError(
            f'the IMU has {len(rates)} samples in its first {rest:g} s; --rest must cover '
            f'{_PARTS} or more'
        )
    for values, quantity, limit, unit in (
        (rates, 'rate', _LIMITS.rate_limit, 'rad/s'),
        (imu.linear_acceleration[early], 'specific force', _LIMITS.acceleration_limit, 'm/s^2'),
    ):
        means = np.stack([part.mean(axis=0) for part in np.array_split(values, _PARTS)])
        deviation = float(np.linalg.norm(means - np.median(means, axis=0), axis=1).max())
        # NaN, of an absent specific force, is no motion.
        if deviation > limit:
            raise AttitudeError(
                f'the IMU does not rest in its first {rest:g} s: the mean {quantity} of a tenth '
                f'of them is {deviation:.3g} {unit} off their median; must be {limit:g} or less; '
                'choose another --rest'
            )
    return dataclasses.replace(imu, angular_velocity=imu.angular_velocity - rates.mean(axis=0))


NAMES = {ACCELEROMETER: 'accelerometer', MAGNETOMETER: 'magnetometer', CAMERA: 'camera'}
"""Names of the sensors by kind of event."""

UPRIGHT = (0.0, 0.0, 0.0, 1.0)
"""Rotation of a sensor whose axes are those of the body."""


@dataclasses.dataclass(frozen=True, eq=False)
class AttitudeInput:
    """Messages of the sensors of one run.

    `poses` are those of the body in the world. `imu_turn` and `mag_turn` are the mountings of IMU
    and magnetometer, quaternions x y z w, sensor to body.
    """

    imu: ImuArray
    mag: MagneticFieldArray | None = None
    poses: PoseArray | None = None
    imu_turn: tuple[float, ...] = UPRIGHT
    mag_turn: tuple[float, ...] = UPRIGHT


@dataclasses.dataclass(frozen=True, eq=False)
class AttitudeEvents:
    """Samples of all sensors in the order of their stamps, as `filter_events` takes them.

    At equal stamps, the accelerometer precedes the magnetometer and the magnetometer the camera.
    """

    stamp_ns: IntArray
    kind: IntArray
    dt: FloatArray
    rate: FloatArray
    values: FloatArray
    covariance: FloatArray
    density: FloatArray

    def __len__(self) -> int:
        return len(self.stamp_ns)


def events_of(inputs: AttitudeInput, settings: AttitudeSettings) -> AttitudeEvents:
    """Return the samples from the first to the last of the IMU, in the axes of the body.

    Raises AttitudeError when there are too few samples, a sensor has none in that time, or its
    noise is neither stated nor set.
    """
    imu = inputs.imu
    if len(imu) < 2:
        raise AttitudeError(
            f'the IMU has {len(imu)} samples; must have 2 or more, of a longer motion or recording'
        )
    has_rate = np.isfinite(imu.angular_velocity).all(axis=1)
    has_rate &= ~is_absent(imu.angular_velocity_covariance)
    if has_rate.sum() < 2:
        raise AttitudeError(
            f'{has_rate.sum()} of {len(imu)} samples of the IMU hold an angular velocity that is '
            'finite and not marked as absent (covariance -1); must be 2 or more'
        )
    imu = imu.take(has_rate)
    if settings.rest > 0.0:
        imu = without_zero_rate(imu, settings.rest)
    turn = np.asarray(inputs.imu_turn, dtype=np.float64)[None]
    rate = rotations.rotate(turn, imu.angular_velocity)
    parts = [_accelerometer(imu, turn, settings)]
    if inputs.mag is not None and settings.magnetometer:
        parts.append(_magnetometer(inputs.mag, inputs.mag_turn, settings))
    if inputs.poses is not None and settings.camera:
        parts.append(_camera(inputs.poses))
    stamps, kinds, values, covariances = (
        np.concatenate([part[i] for part in parts]) for i in range(4)
    )
    inside = (stamps >= imu.stamp_ns[0]) & (stamps <= imu.stamp_ns[-1])
    # Values that are not finite correct nothing; those of the IMU still end a prediction step.
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


_Samples = tuple[IntArray, IntArray, FloatArray, FloatArray]


def _rates(
    sample_time: FloatArray, rate: FloatArray, time: FloatArray, interpolation: str
) -> FloatArray:
    """Return the angular velocity before each event, from the samples of the gyroscope."""
    before = np.append(time[:1], time[:-1])
    if interpolation == 'held':
        return np.ascontiguousarray(rate[np.searchsorted(sample_time, before, side='right') - 1])
    middle = 0.5 * (before + time)
    return np.stack([np.interp(middle, sample_time, column) for column in rate.T], axis=1)


def _density(imu: ImuArray, turn: FloatArray, settings: AttitudeSettings) -> FloatArray:
    """Return the density of the gyroscope's white noise, `(3, 3)` (rad/s)^2/Hz."""
    if settings.gyroscope_density > 0.0:
        return np.eye(3) * settings.gyroscope_density**2
    stated = np.median(imu.angular_velocity_covariance, axis=0)
    if not np.trace(stated) > 0.0:
        raise AttitudeError(
            'the IMU states no covariance of its angular velocity; give --gyroscope-noise, the '
            'density of its white noise in rad/s/sqrt(Hz)'
        )
    period = float(np.median(np.diff(imu.stamp_ns))) * 1e-9
    return np.asarray(_rotate_covariance(stated[None], turn)[0] * period)


def _accelerometer(imu: ImuArray, turn: FloatArray, settings: AttitudeSettings) -> _Samples:
    if not settings.accelerometer:
        # The filter still predicts with the gyroscope.
        empty = np.zeros((len(imu), 4)), np.zeros((len(imu), 4, 4))
        return imu.stamp_ns, np.full(len(imu), -1), *empty
    absent = is_absent(imu.linear_acceleration_covariance)
    if absent.all():
        raise AttitudeError(
            'the IMU marks its specific force as absent (covariance -1); give --without '
            'accelerometer'
        )
    force = np.where(absent[:, None], np.nan, imu.linear_acceleration)
    covariance = _sample_covariance(
        np.where(absent[:, None, None], np.eye(3), imu.linear_acceleration_covariance),
        settings.accelerometer_std,
        'the IMU states no covariance of its specific force; give --accelerometer-std, the '
        'standard deviation of a sample in m/s^2, or --without accelerometer',
    )
    covariance = _rotate_covariance(covariance, turn) + np.eye(3) * settings.acceleration_std**2
    return _pad_samples(imu.stamp_ns, ACCELEROMETER, rotations.rotate(turn, force), covariance)


def _magnetometer(
    mag: MagneticFieldArray, turn: tuple[float, ...], settings: AttitudeSettings
) -> _Samples:
    covariance = _sample_covariance(
        mag.magnetic_field_covariance,
        settings.magnetometer_std,
        'the magnetometer states no covariance; give --magnetometer-std, the standard '
        'deviation of a sample in T, or --without magnetometer',
    )
    quaternion = np.asarray(turn, dtype=np.float64)[None]
    return _pad_samples(
        mag.stamp_ns,
        MAGNETOMETER,
        rotations.rotate(quaternion, mag.magnetic_field),
        _rotate_covariance(covariance, quaternion),
    )


def _camera(poses: PoseArray) -> _Samples:
    """Return quaternions world to body and their covariance.

    A pose states the covariance of a rotation d about the axes of the world, which in the body is
    R^T d. The covariance along the quaternion is set to the mean variance to make the matrix
    invertible; the state has no uncertainty there. Poses without a covariance are left out.
    """
    q = rotations.conjugate(poses.orientation)
    rotation = _rotate_covariance(poses.pose_covariance[:, 3:, 3:], q)
    size = np.trace(rotation, axis1=1, axis2=2)
    stated = size > 0.0
    if not stated.any():
        raise AttitudeError(
            'the poses of the camera state no covariance; they must, or give --without camera'
        )
    xi = xi_matrices(q)
    covariance = 0.25 * xi @ rotation @ np.swapaxes(xi, 1, 2)
    covariance += (size / 12.0)[:, None, None] * q[:, :, None] * q[:, None, :]
    return (
        poses.stamp_ns[stated],
        np.full(int(stated.sum()), CAMERA),
        q[stated],
        covariance[stated],
    )


def _sample_covariance(covariance: FloatArray, std: float, problem: str) -> FloatArray:
    """Return covariances `(n, 3, 3)` from `std` if it is set, else as the messages state."""
    if std > 0.0:
        return np.tile(np.eye(3) * std**2, (len(covariance), 1, 1))
    size = np.trace(covariance, axis1=1, axis2=2)
    if not (size > 0.0).all():
        raise AttitudeError(problem)
    return covariance


def _rotate_covariance(covariance: FloatArray, turn: FloatArray) -> FloatArray:
    matrix = Rotation.from_quat(turn).as_matrix()
    return np.asarray(matrix @ covariance @ np.swapaxes(matrix, 1, 2))


def _pad_samples(
    stamps: IntArray, kind: int, values: FloatArray, covariance: FloatArray
) -> _Samples:
    n = len(stamps)
    padded, wide = np.zeros((n, 4)), np.zeros((n, 4, 4))
    padded[:, :3], wide[:, :3, :3] = values, covariance
    return stamps, np.full(n, kind), padded, wide


@dataclasses.dataclass(frozen=True, eq=False)
class AttitudeEstimate:
    """State of the filter after all samples of each stamp.

    Attributes
    ----------
    stamp_ns : (n,) int
        Strictly increasing, ns.
    quaternion : (n, 4) array
        State, x y z w, world to body.
    covariance : (n, 4, 4) array
    innovations : tuple of Squares
        NIS of each sensor with three degrees of freedom, as many as an orientation has.
    """

    stamp_ns: IntArray
    quaternion: FloatArray
    covariance: FloatArray
    innovations: tuple[Squares, ...]

    def __len__(self) -> int:
        return len(self.stamp_ns)

    @property
    def orientation(self) -> FloatArray:
        """Quaternions x y z w, `(n, 4)`, body to world."""
        return rotations.conjugate(self.quaternion)

    @property
    def rotation_covariance(self) -> FloatArray:
        """Covariance `(n, 3, 3)` rad^2 of a small rotation about the body's axes: 4 Xi^T P Xi."""
        xi = xi_matrices(self.quaternion)
        return np.asarray(4.0 * np.swapaxes(xi, 1, 2) @ self.covariance @ xi)


def estimate_events(
    events: AttitudeEvents,
    first: ArrayLike,
    *,
    gravity: float,
    field: ArrayLike,
    initial_std: float,
) -> AttitudeEstimate:
    """Run the filter over samples.

    Parameters
    ----------
    first : (4,) array
        Orientation at the first sample of the IMU, x y z w, body to world.
    gravity : float
        Expected gravity, m/s^2.
    field : (3,) array
        Expected magnetic field, world, T.
    initial_std : float
        Standard deviation of `first` about each axis, rad.

    Raises
    ------
    AttitudeError
        When the estimate is not finite.
    """
    quaternion = rotations.conjugate(np.asarray(first, dtype=np.float64)[None])
    xi = xi_matrices(quaternion)[0]
    states, covariances, nis = filter_events(
        events.kind,
        events.dt,
        events.rate,
        events.values,
        events.covariance,
        events.density,
        np.array([0.0, 0.0, gravity]),
        np.asarray(field, dtype=np.float64),
        np.ascontiguousarray(quaternion[0]),
        0.25 * initial_std**2 * xi @ xi.T,
    )
    if not np.isfinite(states).all():
        raise AttitudeError(
            'the estimate is not finite; the covariances of the sensors must be positive definite'
        )
    last = np.append(events.stamp_ns[1:] != events.stamp_ns[:-1], True)
    innovations = []
    for kind, name in NAMES.items():
        rows = events.kind == kind
        if rows.any():
            stamps, freedom = events.stamp_ns[rows], np.full(int(rows.sum()), 3)
            squares = Squares(f'NIS {name}', stamps, nis[rows], freedom, correlated=False)
            innovations.append(squares)
    return AttitudeEstimate(
        events.stamp_ns[last], states[last], covariances[last], tuple(innovations)
    )
