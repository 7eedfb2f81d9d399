# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Checks of rates and specific forces: unit, sign, delay, mounting, scale and bias.

One model relates an IMU to the truth:

    measured(t) = sign * scale * R * true(t - delay) + bias + noise

Unit and delay come first, from quantities that no rotation changes. The rotation R and both signs
are then fitted together: each pair of signs is a hypothesis, and the likelihood of rates and
forces chooses. Scale and bias come last. Everything is compared as means over blocks of time, in
which the noise of a differentiated truth is small.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from sim2real_eval.recording.poses import derive_velocities
from sim_sensors.core import rotations
from sim_sensors.core.blocks import block_means, blocks, sum_by_blocks
from sim_sensors.core.measurements import FloatArray, OdometryArray
from sim_sensors.motion.truth_intervals import SIGMAS
from sim_sensors.world.geodesy import STANDARD_GRAVITY
from . import findings
from .arrays import plane
from .delays import DelayFit, effective_counts, fit_delay
from .evidence import Evidence, mean_row
from .outcome import Measure

# A bias of 0.2 m/s^2 tilts the mean force by 1.2 deg. A truth without roll and pitch does not know
# slopes: 10 % are 6 deg. At 15 deg a quarter of gravity is in the horizontal acceleration.
_TILT_DEG, _LEVEL_TRUTH_TILT_DEG, _LARGE_TILT_DEG = 3.5, 7.0, 15.0
_YAW_DEG = (4.0, 15.0)
# 5 % of a turn of 90 deg are 4.5 deg, more than any calibrated gyroscope has.
_RATE_SCALE = (0.05, 0.2)
# 0.3 deg/s is a poor MEMS at rest; at 1.1 deg/s a minute turns the heading by more than 60 deg.
_BIAS = (0.005, 0.02)
# Two samples at 100 Hz; at 0.5 rad/s and 0.2 s the heading is 6 deg behind.
_LATE_S = (0.02, 0.2)
_ROLLED_DEG = 30.0
# Interquartile range, over the median, below which the size of a force in a hand is gravity.
_STEADY_SIZE = 0.2
# Slopes of 10 % are 6 deg.
_UNKNOWN_TURN_DEG = 6.0
_BLOCK_S = 0.1
_FINE_S = 0.02
_MOUNTING_BLOCK_S = 0.5
_INDEPENDENT_S = 1.0
_MIN_BLOCKS = 32
_SIDEWAYS_DEG = 15.0
_SLOWEST = 0.2
_MIN_FORCE = 1e-3
# Standard deviation of the direction of the mean force, from an accelerometer bias of 0.2 m/s^2.
_VERTICAL_RAD = 0.02
_UPRIGHT, _REVERSED = (1, 1, 1), (-1, -1, -1)
_RATE_SIGNS = (_UPRIGHT, _REVERSED, (-1, 1, 1), (1, -1, 1), (1, 1, -1))
_SIGNS = (*((_UPRIGHT, signs) for signs in _RATE_SIGNS), (_REVERSED, _UPRIGHT))
"""Hypotheses about the signs of the axes of forces and of rates."""
# Penalty on the log likelihood of a reversed sign: a wrong mounting is the more usual cause.
_SIGN_COST = 2.0


@dataclasses.dataclass(frozen=True)
class MountingFit:
    """Rotation from the axes of the sensor to those of its frame, for one pair of signs.

    Attributes
    ----------
    rate_signs : tuple of 3 int
        Signs of the axes of the rates.
    force_sign : int
        Sign of the forces.
    rotation : Rotation
        Takes measured vectors, with these signs, to true ones.
    cost : float
        Negative log likelihood without constants.
    yaw_deviation : float
        Standard error of the rotation about the vertical, deg; infinite without motion.
    """

    rate_signs: tuple[int, int, int]
    force_sign: int
    rotation: Rotation
    cost: float
    yaw_deviation: float


def measure_truth_attitude(evidence: Evidence) -> Iterator[Measure]:
    """Check a truth that tilts far: its quaternion may be in the order w x y z.

    The truth with its quaternion reordered is compared with the recorded one. It is preferred if
    rates and forces of the IMU are more likely with it, each truth with its best mounting.
    """
    truth, imu = evidence.truth, evidence.imu
    if truth is None or imu is None:
        return
    x, y = truth.orientation[:, 0], truth.orientation[:, 1]
    tilts = np.degrees(np.arccos(np.clip(1.0 - 2.0 * (x * x + y * y), -1.0, 1.0)))
    tilt = float(np.sqrt(np.mean(tilts**2)))
    finding = None
    if tilt > _ROLLED_DEG:
        original = evidence.recording.require('truth')
        assert isinstance(original, OdometryArray)
        reordered = dataclasses.replace(original, orientation=np.roll(original.orientation, -1, 1))
        reordered, _ = derive_velocities('', 'truth', reordered)
        alternative = Evidence(evidence.recording.with_messages('truth', reordered), evidence.base)
        fits, other_fits = evidence.once(fit_mountings), fit_mountings(alternative)
        if other_fits and (not fits or other_fits[0].cost < fits[0].cost - 0.5 * SIGMAS**2):
            finding = findings.TRUTH_QUATERNION(evidence.topic('truth'), tilt=tilt)
            evidence.doubtful |= {'orientation', 'steps', 'gravity', 'fix errors'}
    yield Measure(tilt, _ROLLED_DEG if finding else None, finding, 'truth')
    if not evidence.truth_has_attitude and 'range' not in evidence.doubtful:
        yield from _measure_missing_attitude(evidence)


def _measure_missing_attitude(evidence: Evidence) -> Iterator[Measure]:
    """Report a truth with yaw alone beside an IMU that turns about horizontal axes."""
    assert evidence.truth is not None
    if np.ptp(evidence.truth.orientation, axis=0).max() < 0.01:
        # A truth without any orientation has a check of its own.
        return
    turn, finding = evidence.once(unknown_turn), None
    if turn > _UNKNOWN_TURN_DEG:
        finding = findings.NO_ATTITUDE(evidence.topic('truth'), turn=turn)
        evidence.doubtful |= {'orientation', 'gravity'}
    yield Measure(turn, _UNKNOWN_TURN_DEG, finding, 'truth attitude')


def unknown_turn(evidence: Evidence) -> float:
    """Return the root mean square of the turns about horizontal axes that an IMU measures, deg.

    The angles are integrals of the rates.
    """
    measured, _ = _verticals(evidence)
    fit = evidence.once(fit_turning)
    # The unit of the rates is checked later.
    scale = 1.0 if fit is None else max(abs(fit.gain), 1.0)
    rate = block_means(
        np.asarray, evidence.imu_time, _MOUNTING_BLOCK_S, evidence.measured('angular_velocity')
    )
    horizontal = rate - np.outer(rate @ measured, measured)
    angle = np.cumsum(horizontal, axis=0) * _MOUNTING_BLOCK_S / scale
    # A tilted sensor adds a share of the turn about the vertical, and a bias adds a ramp.
    count = np.arange(len(angle), dtype=float)
    regressors = np.stack([np.ones_like(count), count, np.cumsum(rate @ measured)], axis=1)
    angle = angle - regressors @ np.linalg.lstsq(regressors, angle, rcond=None)[0]
    return math.degrees(float(np.sqrt(np.mean(np.sum(angle**2, axis=1)))))


def measure_gravity(evidence: Evidence) -> Iterator[Measure]:
    """Compare the mean specific force with gravity: its unit, and whether gravity was removed.

    A mean of size 1 in a steady direction is in g. A mean near zero has no gravity. mg and cm/s^2
    differ by 2 %, less than the effect of a bias; mg are assumed, because they are more usual.
    """
    if evidence.imu is None:
        return
    topic, role = evidence.topic('imu'), evidence.role('imu')
    mean, median = force_sizes(evidence)
    for unit, size in (('g', 1.0), ('mg (or cm/s^2, scale 0.01)', 1000.0)):
        if abs(mean / size - 1.0) < 0.2 and mean > 0.8 * median:
            scale = STANDARD_GRAVITY / size
            total = evidence.correct('imu', acceleration_scale=scale).acceleration_scale
            wrong_unit = findings.ACCELERATION_UNIT(
                topic, role=role, force=mean, unit=unit, set=total
            )
            yield Measure(mean, None, wrong_unit, 'imu')
            return
    finding = None
    if mean < 0.3 * STANDARD_GRAVITY:
        is_real = role == 'imu'
        kind = findings.NO_GRAVITY if is_real else findings.NOISE_FREE_NO_GRAVITY
        finding = kind(topic, force=mean)
        evidence.doubtful.add('gravity')
    yield Measure(mean, 0.3 * STANDARD_GRAVITY, finding, 'imu', 'least')


def force_sizes(evidence: Evidence) -> tuple[float, float]:
    """Return the size of the mean specific force, and the median size.

    The mean is that in the axes of the sensor or of the world, whichever is larger: a vehicle
    keeps gravity on one axis of the sensor, a sensor in a hand only on one axis of the world.
    Without truth a size that hardly varies is gravity, whatever its direction.
    """
    force = evidence.measured('linear_acceleration')
    means = [mean_row(force)]
    if evidence.maker is not None and evidence.ideal is not None:
        total = sum_by_blocks(rotations.rotate, evidence.ideal.orientation, force)
        means.append(np.asarray(total / len(force)))
    sizes = np.empty(len(force))
    for part in blocks(len(force)):
        sizes[part] = np.linalg.norm(force[part], axis=1)
    low, median, high = (float(size) for size in np.quantile(sizes, (0.25, 0.5, 0.75)))
    mean = max(float(np.linalg.norm(mean)) for mean in means)
    if evidence.ideal is None and high - low < _STEADY_SIZE * median:
        mean = max(mean, median)
    return mean, median


def _verticals(evidence: Evidence) -> tuple[FloatArray, FloatArray]:
    """Return the measured and the true vertical, unit vectors in the frame of the IMU."""
    up = evidence.up / np.linalg.norm(evidence.up)
    if 'gravity' in evidence.doubtful:
        return up, up
    force = mean_row(evidence.measured('linear_acceleration'))
    size = float(np.linalg.norm(force))
    # Without a force there is no vertical to measure; `measure_gravity` reports it.
    return (force / size if size > _MIN_FORCE else up), up


def fit_turning(
    evidence: Evidence, interval: tuple[float, float] | None = None
) -> DelayFit | None:
    """Fit the rate about the measured vertical to the true one.

    Only times of the IMU within an interval, s, are used if one is given. None if less than half
    is explained.
    """
    imu, ideal = evidence.imu, evidence.ideal
    if imu is None or ideal is None or evidence.doubtful & {'orientation', 'range'}:
        return None
    measured, true = _verticals(evidence)
    time = evidence.imu_time
    length = max(_BLOCK_S, evidence.truth_interval)
    measured_rates, block_time = block_means(
        lambda rates, times: np.stack([rates @ measured, times], axis=1),
        time, length, evidence.measured('angular_velocity'), time,
    ).T  # fmt: skip
    rate, rate_time = block_means(
        lambda rates, times: np.stack([rates @ true, times], axis=1),
        time, _FINE_S, ideal.rate, time,
    ).T  # fmt: skip
    angle = np.append(0.0, np.cumsum(0.5 * (rate[1:] + rate[:-1]) * np.diff(rate_time)))

    def mean_rates(delay: FloatArray, centres: FloatArray) -> FloatArray:
        """Return means over blocks, whose noise does not depend on the delay."""
        ends = [
            np.interp(centres - delay + half, rate_time, angle)
            for half in (-0.5 * length, 0.5 * length)
        ]
        return np.asarray((ends[1] - ends[0]) / length)

    # The last block may be short.
    measured_rates, block_time = measured_rates[:-1], block_time[:-1]
    if len(measured_rates) < _MIN_BLOCKS:
        return None
    inside = slice(None)
    if interval is not None:
        inside = slice(*np.searchsorted(block_time, interval).tolist())
        if len(measured_rates[inside]) < _MIN_BLOCKS:
            return None
    measured_rates, block_time = measured_rates[inside], block_time[inside]

    def fit(rows: NDArray[np.bool_] | slice) -> DelayFit:
        centres = block_time[rows]
        return fit_delay(
            measured_rates[rows],
            lambda delay: mean_rates(delay, centres),
            float(centres[-1] - centres[0]),
            max(_INDEPENDENT_S, 2.0 * length),
            longer=True,
        )

    first = fit(slice(None))
    # Blocks that the delay moves beyond the truth have no reference.
    shifted = block_time - first.seconds
    margin = length + 0.5 * abs(first.seconds)
    is_inside = (shifted > rate_time[0] + margin) & (shifted < rate_time[-1] - margin)
    is_cut = not is_inside.all() and int(is_inside.sum()) >= _MIN_BLOCKS
    result = fit(is_inside) if is_cut else first
    return result if result.explained > 0.5 and result.is_better_than(result.power) else None


def measure_turning(evidence: Evidence) -> Iterator[Measure]:
    """Fit delay and scale of the rate about the vertical to those of the truth."""
    fit = evidence.once(fit_turning)
    if fit is None:
        return
    topic, role = evidence.topic('imu'), evidence.role('imu')
    delay, finding = fit.seconds, None
    is_steady = 'imu delay' not in evidence.doubtful
    limit = max(_LATE_S[0], 0.1 * evidence.truth_interval) + SIGMAS * fit.delay_deviation
    if abs(delay) > limit and is_steady:
        kind = findings.IMU_LATE_LARGE if abs(delay) > _LATE_S[1] else findings.IMU_LATE
        total = evidence.correct('imu', delay=delay).delay
        finding = kind(topic, role=role, delay=delay, set=total)
    yield Measure(delay, limit, finding, 'imu delay', 'either')
    # Noise of the truth lowers the gain, and noise of the sensor raises its inverse, so that the
    # scale lies between both. The value that is nearer to 1 is judged.
    gain, finding = abs(fit.gain), None
    scale = float(np.clip(1.0, gain, gain / fit.explained))
    limit = _RATE_SCALE[0] + SIGMAS * fit.deviation / gain
    if abs(scale / math.degrees(1.0) - 1.0) < 0.3:
        total = evidence.correct('imu', rate_scale=math.radians(1.0)).rate_scale
        finding = findings.RATE_UNIT(topic, role=role, scale=scale, set=total)
    elif abs(math.log(scale)) > limit:
        is_large = abs(math.log(scale)) > _RATE_SCALE[1]
        kind = findings.RATE_SCALE_LARGE if is_large else findings.RATE_SCALE
        total = evidence.correct('imu', rate_scale=1.0 / scale).rate_scale
        finding = kind(topic, role=role, scale=scale, set=total)
    yield Measure(scale, math.exp(limit), finding, 'imu rate scale', 'ratio')


def measure_mounting(evidence: Evidence) -> Iterator[Measure]:
    """Fit the axes of the sensor to those of its frame, and the signs of rates and forces."""
    imu = evidence.imu
    if imu is None or 'gravity' in evidence.doubtful:
        return
    if 'orientation' in evidence.doubtful and evidence.ideal is not None:
        return
    fits = evidence.once(fit_mountings)
    if not fits:
        fits = [_mounting_of_gravity(evidence)]
    best, topic, role = fits[0], evidence.topic('imu'), evidence.role('imu')
    finding = None
    if best.rate_signs == _REVERSED:
        total = evidence.correct('imu', rate_scale=-1.0).rate_scale
        finding = findings.RATE_REVERSED(topic, role=role, set=total)
    elif best.rate_signs != _UPRIGHT:
        axes = ', '.join(
            axis for axis, sign in zip('xyz', best.rate_signs, strict=True) if sign < 0
        )
        finding = findings.RATE_AXES(topic, axes=axes)
        evidence.doubtful.add('range')
    elif best.force_sign < 0:
        total = evidence.correct('imu', acceleration_scale=-1.0).acceleration_scale
        finding = findings.FORCE_REVERSED(topic, role=role, set=total)
    if finding is not None:
        yield Measure(-1.0, None, finding, 'imu sign', unit='')
    yield from _measure_rotation(evidence, best)


def _measure_rotation(evidence: Evidence, fit: MountingFit) -> Iterator[Measure]:
    """Yield tilt and yaw of a mounting; the correction is one rotation."""
    assert evidence.imu is not None
    _, up = _verticals(evidence)
    swing, yaw = _swing_and_twist(fit.rotation, up)
    tilt = math.degrees(swing.magnitude())
    yaw_limit = _YAW_DEG[0] + SIGMAS * fit.yaw_deviation
    tilt_limit = _TILT_DEG if evidence.truth_has_attitude else _LEVEL_TRUTH_TILT_DEG
    is_tilted, is_turned = tilt > tilt_limit, abs(yaw) > yaw_limit
    topic, frame = evidence.topic('imu'), evidence.imu.frame or 'the IMU'
    angles: dict[str, float | str] = {'frame': frame, 'role': evidence.role('imu')}
    if is_tilted or is_turned:
        rotation = _whole_rotation(fit.rotation if is_turned else swing)
        total = evidence.correct('imu', rotation=tuple((rotation + 0.0).tolist())).rotation
        angles |= zip(('roll', 'pitch', 'yaw'), total, strict=True)
    finding = None
    if is_tilted:
        kind = findings.TILTED_LARGE if tilt > _LARGE_TILT_DEG else findings.TILTED
        finding = kind(topic, tilt=tilt, **angles)
    yield Measure(tilt, tilt_limit, finding, 'imu tilt')
    if math.isfinite(fit.yaw_deviation):
        yaw_finding = None
        if is_turned and not is_tilted:
            kind = findings.IMU_YAW_LARGE if abs(yaw) > _YAW_DEG[1] else findings.IMU_YAW
            yaw_finding = kind(topic, turn=yaw, **angles)
        yield Measure(yaw, yaw_limit, yaw_finding, 'imu yaw', 'either')


def fit_mountings(evidence: Evidence) -> list[MountingFit]:
    """Fit a mounting for each pair of signs, the most likely first; empty without truth.

    The rotation is that of least squares over forces and rates [Wahba1965], each weighted by the
    variance of its residuals. If the data do not determine it, it is the smallest possible one,
    and a half turn is about x, because boards are usually mounted upside down in this way.
    """
    imu, ideal = evidence.imu, evidence.ideal
    if imu is None or ideal is None or 'orientation' in evidence.doubtful:
        return []
    length = max(_MOUNTING_BLOCK_S, 2.0 * evidence.truth_interval)
    means = block_means(
        lambda *rows: np.hstack(rows), evidence.imu_time, length,
        evidence.measured('linear_acceleration'), ideal.force,
        evidence.measured('angular_velocity'), ideal.rate,
    )  # fmt: skip
    # A derivative of the truth is poor at both ends, and the last block may be short.
    means = means[1:-1]
    if len(means) < 8:
        return []
    force, true_force, rate, true_rate = np.hsplit(means, 4)
    # The bias of a gyroscope is fitted; that of an accelerometer is small beside gravity.
    rate, true_rate = rate - rate.mean(axis=0), true_rate - true_rate.mean(axis=0)
    vectors = [(force, true_force), (rate, true_rate)]
    if 'range' in evidence.doubtful:
        vectors.pop()
    return sorted(_fit_by_signs(vectors), key=lambda fit: fit.cost)


def _fit_by_signs(vectors: list[tuple[FloatArray, FloatArray]]) -> list[MountingFit]:
    """Fit the rotation from measured to true vectors, (n, 3) each, for each pair of signs."""
    signs = [np.array(sides, dtype=float) for sides in zip(*_SIGNS, strict=True)]
    signed = [
        (sign[:, None] * measured, true)
        for sign, (measured, true) in zip(signs, vectors, strict=False)
    ]
    floors = [1e-4 + _VERTICAL_RAD**2 * float(np.mean(true**2)) for _, true in signed]
    block_count, pair_count = len(signed[0][1]), len(_SIGNS)
    variances = [
        np.full(pair_count, float(np.mean(measured**2)) + 1e-12) for measured, _ in vectors
    ]
    counts = [np.full(pair_count, block_count / 4.0) for _ in signed]
    for _ in range(4):
        product = np.diag([1e-3, 5e-4, 1e-4])
        for count, variance, (measured, true) in zip(counts, variances, signed, strict=True):
            weight = (count / variance)[:, None, None]
            product = product + weight * (true.T @ measured) / block_count
        left_axes, _, right_axes = np.linalg.svd(product)
        proper = np.ones((pair_count, 1, 3))
        proper[:, 0, 2] = np.linalg.det(left_axes) * np.linalg.det(right_axes)
        matrices = (left_axes * proper) @ right_axes
        residuals = [true - measured @ matrices.transpose(0, 2, 1) for measured, true in signed]
        variances = [
            np.mean(residual.reshape(pair_count, -1) ** 2, axis=1) + floor
            for residual, floor in zip(residuals, floors, strict=True)
        ]
        counts = [
            effective_counts(residual.transpose(0, 2, 1).reshape(-1, block_count))
            .reshape(pair_count, 3)
            .mean(axis=1)
            for residual in residuals
        ]
    # All pairs of signs are compared for the same number of independent samples.
    costs = 1.5 * block_count / 4.0 * np.sum(np.log(variances), axis=0)
    up = signed[0][1].mean(axis=0)
    up = up / max(float(np.linalg.norm(up)), 1e-12)
    information = sum(
        count / variance * float(np.mean(np.sum(np.cross(true, up) ** 2, axis=1)))
        for count, variance, (_, true) in zip(counts, variances, signed, strict=True)
    )
    deviations = np.degrees(1.0 / np.sqrt(np.maximum(information, 1e-9)))
    deviations[deviations >= 20.0] = math.inf
    fitted = zip(
        _SIGNS, Rotation.from_matrix(matrices), costs.tolist(), deviations.tolist(), strict=True
    )
    return [
        MountingFit(signs[1], signs[0][0], rotation, cost + _cost_of_signs(*signs), deviation)
        for signs, rotation, cost, deviation in fitted
    ]


def _cost_of_signs(force_signs: tuple[int, ...], rate_signs: tuple[int, ...]) -> float:
    """Return the penalty on the log likelihood of reversed signs."""
    reversed_axes = rate_signs.count(-1)
    if reversed_axes in (1, 2):
        return 2.0 * _SIGN_COST
    return _SIGN_COST * (reversed_axes == 3 or force_signs == _REVERSED)


def _mounting_of_gravity(evidence: Evidence) -> MountingFit:
    """Return the smallest rotation that turns the mean force upwards; its yaw is not known."""
    return MountingFit(_UPRIGHT, 1, _between(*_verticals(evidence)), 0.0, math.inf)


def _swing_and_twist(rotation: Rotation, axis: FloatArray) -> tuple[Rotation, float]:
    """Split a rotation into a tilt, and a turn about an axis, deg, that follows the tilt."""
    swing = _between(rotation.inv().apply(axis), axis)
    twist = (rotation * swing.inv()).as_rotvec()
    return swing, math.degrees(float(twist @ axis))


def _between(first: FloatArray, second: FloatArray) -> Rotation:
    """Return the smallest rotation between unit vectors; a half turn is about x, or else y."""
    cosine = float(np.clip(first @ second, -1.0, 1.0))
    axis = np.cross(first, second)
    size = float(np.linalg.norm(axis))
    if size < math.sin(math.radians(10.0)) and cosine < 0.0:
        # An IMU that is upside down, and the rest of the angle: boards are turned about x. A half
        # turn about x keeps a vector along x, so that one is turned about y.
        half = Rotation.from_euler('y' if abs(first[0]) > 0.9 else 'x', 180.0, degrees=True)
        return _between(half.apply(first), second) * half
    return Rotation.from_rotvec(axis / max(size, 1e-12) * math.atan2(size, cosine))


def _whole_rotation(rotation: Rotation) -> FloatArray:
    """Return whole degrees of roll, pitch and yaw, snapped to right angles within 8 deg."""
    matrix = rotation.as_matrix()
    nearest = np.rint(matrix)
    # A small rotation is not snapped to the identity, which would correct nothing.
    is_rotation = np.array_equal(nearest @ nearest.T, np.eye(3))
    if is_rotation and not np.array_equal(nearest, np.eye(3)):
        whole = Rotation.from_matrix(nearest)
        if (whole.inv() * rotation).magnitude() < math.radians(8.0):
            rotation = whole
    x, y, z, w = rotation.as_quat().tolist()
    angles = np.rint(np.degrees(rotations.euler_from_quaternion([x, y, z, w])))
    return np.asarray(np.where(angles == -180.0, 180.0, angles))


def measure_travel_direction(evidence: Evidence) -> Iterator[Measure]:
    """Compare the direction of travel in the body with its x axis, forwards or backwards.

    Angles are doubled, so that forwards and backwards are one direction. A robot that moves
    sideways now and then has no single direction (resultant below 0.9). If the IMU agrees with
    the axes of the truth, both are those of base_link, and nothing is corrected.
    """
    truth = evidence.truth
    if truth is None or 'orientation' in evidence.doubtful:
        return
    velocity = np.diff(truth.position, axis=0) / (np.diff(truth.stamp_ns)[:, None] * 1e-9)
    moved = plane(rotations.rotate_back(truth.orientation[:-1], velocity))
    size = np.abs(moved)
    fast = size > max(_SLOWEST, 0.3 * float(np.median(size)))
    if fast.sum() < 16:
        return
    course = moved[fast] / size[fast]
    ahead = complex(sum_by_blocks(np.asarray, course)) / len(course)
    axis = complex(sum_by_blocks(np.square, course)) / len(course)
    if abs(axis) < 0.9:
        return
    yaw = math.degrees(np.angle(ahead if abs(ahead) > 0.5 else np.sqrt(axis)))
    off_axis = abs((yaw + 90.0) % 180.0 - 90.0)
    finding = None
    if off_axis > _SIDEWAYS_DEG:
        topic = evidence.recording.roles['truth']
        if _agrees_in_yaw(evidence):
            finding = findings.SIDEWAYS_IMU(topic, yaw=yaw)
        else:
            total = evidence.correct('truth', body_yaw=yaw).body_yaw
            finding = findings.SIDEWAYS(topic, yaw=yaw, set=total)
    yield Measure(off_axis, _SIDEWAYS_DEG, finding, 'truth')


def _agrees_in_yaw(evidence: Evidence) -> bool:
    """Return whether the horizontal axes of the IMU are those of the truth."""
    fits = evidence.once(fit_mountings)
    if not fits or 'gravity' in evidence.doubtful or not math.isfinite(fits[0].yaw_deviation):
        return False
    _, up = _verticals(evidence)
    return abs(_swing_and_twist(fits[0].rotation, up)[1]) < _SIDEWAYS_DEG


def measure_rate_bias(evidence: Evidence) -> Iterator[Measure]:
    """Compare the mean rate with that of the truth, which depends on the turn as a whole."""
    imu, ideal = evidence.imu, evidence.ideal
    if imu is None or ideal is None or evidence.doubtful & {'orientation', 'range'}:
        return
    both = evidence.measured('angular_velocity'), ideal.rate
    mean = np.asarray(sum_by_blocks(np.subtract, *both) / len(imu))
    size = float(np.linalg.norm(mean))
    # Vibration averages out within a second; what remains varies from one second to the next.
    means = block_means(np.subtract, evidence.imu_time, _INDEPENDENT_S, *both)
    deviation = float(means.std(axis=0).max()) / math.sqrt(len(means))
    finding, limit = None, _BIAS[0] + SIGMAS * deviation
    if size > limit:
        kind = findings.RATE_BIAS_LARGE if size > _BIAS[1] else findings.RATE_BIAS
        x, y, z = evidence.correct('imu', rate_bias=tuple(mean.tolist())).rate_bias
        finding = kind(evidence.topic('imu'), role=evidence.role('imu'), bias=size, x=x, y=y, z=z)
    yield Measure(size, limit, finding, 'imu')
