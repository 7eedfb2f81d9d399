# SPDX-License-Identifier: Apache-2.0
"""Checks of an IMU: units, signs, delay, mounting, bias and covariances.

Each looks at what no earlier fault changes: gravity, rate about the vertical, mounting, the rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.spatial.transform import Rotation

from sim_sensors.core import rotations
from sim_sensors.core.blocks import blocks, sum_by_blocks
from sim_sensors.core.measurements import FloatArray
from sim_sensors.world.geodesy import STANDARD_GRAVITY
from . import findings
from .delays import SIGMAS, Delayed, find_delay
from .evidence import Evidence, block_means, mean_row
from .outcome import Measure
from .velocities import plane

# No accelerometer is 10 % off; 2 % are 0.2 m/s^2, the worst bias of low-cost ones.
_GRAVITY = (0.02, 0.1)
# Slopes of 10 % are 6 deg for a truth that knows none; at 15 deg a quarter of gravity leaks.
_TILT_DEG = (7.0, 15.0)
_YAW_DEG = (10.0, 20.0)
# Of a turn of 90 deg: 5 % are 4.5 deg, more than any calibrated gyroscope has.
_RATE_SCALE = (0.05, 0.2)
# 0.3 deg/s is a poor MEMS at rest; at 1.1 deg/s a minute turns the heading by more than 60 deg.
_BIAS = (0.005, 0.02)
# At 0.5 rad/s and 0.2 s the heading is 6 deg behind.
_LATE_S = (0.05, 0.2)
_SIDEWAYS_DEG = 15.0
_SLOWEST = 0.2
_BLOCK_S = 0.1
_INDEPENDENT_S = 1.0


def _force(evidence: Evidence) -> tuple[float, float]:
    """Return size of the mean specific force, and the median of its size.

    The mean is that of the sensor's axes or of the world's, whichever is larger: a vehicle keeps
    gravity on one axis of the sensor, what is carried in a hand only on one of the world.
    """
    force = evidence.measured('linear_acceleration')
    means = [mean_row(force)]
    if evidence.maker is not None and evidence.ideal is not None:
        total = sum_by_blocks(rotations.rotate, evidence.ideal.orientation, force)
        means.append(np.asarray(total / len(force)))
    size = max(float(np.linalg.norm(mean)) for mean in means)
    sizes = np.empty(len(force))
    for part in blocks(len(force)):
        sizes[part] = np.linalg.norm(force[part], axis=1)
    return size, float(np.median(sizes, overwrite_input=True))


def gravity(evidence: Evidence) -> Iterator[Measure]:
    """The size of the specific force: gravity, whatever the mounting.

    1 with a steady direction is g; hardly anything in the mean is an acceleration without gravity.
    """
    imu = evidence.imu
    if imu is None:
        return
    topic, role = evidence.topic('imu'), evidence.role('imu')
    mean, median = _force(evidence)
    for unit, size in (('g', 1.0), ('mg', 1000.0)):
        if abs(mean / size - 1.0) < 0.2 and mean > 0.8 * median:
            scale = STANDARD_GRAVITY / size
            total = evidence.correct('imu', acceleration_scale=scale).acceleration_scale
            wrong = findings.ACCELERATION_UNIT(topic, role=role, force=mean, unit=unit, set=total)
            yield Measure(mean, None, wrong, 'imu')
            return
    told = None
    if mean < 0.3 * STANDARD_GRAVITY:
        real = role == 'imu'
        told = (findings.NO_GRAVITY if real else findings.NOISE_FREE_NO_GRAVITY)(topic, force=mean)
        evidence.doubtful.add('gravity')
    yield Measure(mean, 0.3 * STANDARD_GRAVITY, told, 'imu', 'least')


def _vertical(evidence: Evidence) -> tuple[FloatArray, FloatArray] | None:
    """Return the measured and the true vertical, unit vectors in the frame of the IMU."""
    imu = evidence.imu
    if imu is None:
        return None
    up = evidence.up / np.linalg.norm(evidence.up)
    if 'gravity' in evidence.doubtful:
        return up, up
    force = mean_row(evidence.measured('linear_acceleration'))
    return force / np.linalg.norm(force), up


def _turning(evidence: Evidence) -> Delayed | None:
    """Return how the rate about the measured vertical follows the true one; None if it cannot be
    told: less than half of it is explained.
    """
    imu, ideal, verticals = evidence.imu, evidence.ideal, _vertical(evidence)
    if imu is None or ideal is None or verticals is None or 'orientation' in evidence.doubtful:
        return None
    measured, true = verticals
    time = evidence.imu_time
    own, reference, at = block_means(
        lambda own, other, at: np.stack([own @ measured, other @ true, at], axis=1),
        time, _BLOCK_S, evidence.measured('angular_velocity'), ideal.rate, time,
    ).T  # fmt: skip
    found = find_delay(
        own,
        lambda delay: np.interp(at - delay, at, reference),
        float(time[-1] - time[0]),
        _INDEPENDENT_S,
        longer=True,
    )
    return found if found.explained > 0.5 and found.is_better_than(found.power) else None


def turning(evidence: Evidence) -> Iterator[Measure]:
    """Delay, sign and scale of the rate about the vertical against that of the truth."""
    found, verticals = _turning(evidence), _vertical(evidence)
    if found is None or verticals is None:
        return
    topic, role = evidence.topic('imu'), evidence.role('imu')
    late, told = found.seconds, None
    if abs(late) > _LATE_S[0]:
        kind = findings.IMU_LATE_LARGE if abs(late) > _LATE_S[1] else findings.IMU_LATE
        told = kind(topic, role=role, delay=late, set=evidence.correct('imu', delay=late).delay)
    yield Measure(late, _LATE_S[0], told, 'imu delay', 'either')
    gain, told = found.gain.real, None
    if gain < 0.0:
        # The measured vertical turned with the force: a rotation alone leaves the sign.
        measured, true = verticals
        if float(measured @ true) < -0.5:
            total = evidence.correct('imu', acceleration_scale=-1.0)
            told = findings.FORCE_REVERSED(topic, role=role, set=total.acceleration_scale)
        else:
            total = evidence.correct('imu', rate_scale=-1.0)
            told = findings.RATE_REVERSED(topic, role=role, set=total.rate_scale)
    yield Measure(math.copysign(1.0, gain), None, told, 'imu sign', unit='')
    scale, told = abs(gain), None
    limit = _RATE_SCALE[0] + SIGMAS * found.deviation / scale
    if abs(scale / math.degrees(1.0) - 1.0) < 0.3:
        total = evidence.correct('imu', rate_scale=math.radians(1.0))
        told = findings.RATE_UNIT(topic, role=role, scale=scale, set=total.rate_scale)
    elif abs(math.log(scale)) > limit:
        large = abs(math.log(scale)) > _RATE_SCALE[1]
        kind = findings.RATE_SCALE_LARGE if large else findings.RATE_SCALE
        total = evidence.correct('imu', rate_scale=1.0 / scale)
        told = kind(topic, role=role, scale=scale, set=total.rate_scale)
    yield Measure(scale, math.exp(limit), told, 'imu rate scale', 'ratio')


def mounting(evidence: Evidence) -> Iterator[Measure]:
    """The axes of the sensor against those of its frame.

    The mean specific force gives two angles. The third, about the vertical, comes from the
    horizontal acceleration and rate, weighted by what is left of them: the turn of least squares.
    """
    imu, verticals = evidence.imu, _vertical(evidence)
    if imu is None or verticals is None or 'gravity' in evidence.doubtful:
        return
    measured, up = verticals
    tilt = math.degrees(math.acos(float(np.clip(measured @ up, -1.0, 1.0))))
    align = _between(measured, up)
    found = _yaw(evidence, align, up)
    yaw, told = 0.0, None
    if found is not None and abs(found[0]) > _YAW_DEG[0] + SIGMAS * found[1]:
        yaw = found[0]
    topic, frame = evidence.topic('imu'), imu.frame or 'the IMU'
    turn = _right_angles(Rotation.from_rotvec(math.radians(yaw) * up) * align)
    angles: dict[str, float | str] = {'frame': frame, 'role': evidence.role('imu')}
    if tilt > _TILT_DEG[0] or yaw != 0.0:
        total = evidence.correct('imu', rotation=tuple((turn + 0.0).tolist())).rotation
        angles |= zip(('roll', 'pitch', 'yaw'), total, strict=True)
    if tilt > _TILT_DEG[0]:
        kind = findings.TILTED_LARGE if tilt > _TILT_DEG[1] else findings.TILTED
        told = kind(topic, tilt=tilt, **angles)
    yield Measure(tilt, _TILT_DEG[0], told, 'imu tilt')
    if found is not None:
        kind = findings.IMU_YAW_LARGE if abs(yaw) > _YAW_DEG[1] else findings.IMU_YAW
        only_yaw = told is None and yaw != 0.0
        yield Measure(
            found[0],
            _YAW_DEG[0] + SIGMAS * found[1],
            kind(topic, turn=yaw, **angles) if only_yaw else None,
            'imu yaw',
            'either',
        )


def _between(first: FloatArray, second: FloatArray) -> Rotation:
    """Return the smallest rotation from a unit vector to another; half a turn is about x or y."""
    cosine = float(np.clip(first @ second, -1.0, 1.0))
    axis = np.cross(first, second)
    if float(np.linalg.norm(axis)) < math.sin(math.radians(10.0)) and cosine < 0.0:
        # Mounted upside down, and the rest of the angle: a board is turned about x.
        half = Rotation.from_euler('x', 180.0, degrees=True)
        return _between(half.apply(first), second) * half
    size = float(np.linalg.norm(axis))
    return Rotation.from_rotvec(axis / max(size, 1e-12) * math.atan2(size, cosine))


def body_axes(evidence: Evidence) -> Iterator[Measure]:
    """The direction of travel in the body: along x for what has wheels, forwards or back.

    Directions are doubled, so that forwards and back are one. A robot that moves sideways now and
    then has no single direction (resultant below 0.9) and is no case for it. Axes that the IMU
    has too are those of base_link, whatever its direction of travel: nothing is to be put right.
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
    off = abs((yaw + 90.0) % 180.0 - 90.0)
    told = None
    if off > _SIDEWAYS_DEG:
        topic, verticals = evidence.recording.roles['truth'], _vertical(evidence)
        own = verticals and _yaw(evidence, _between(*verticals), verticals[1])
        if own is not None and abs(own[0]) < _SIDEWAYS_DEG:
            told = findings.SIDEWAYS_IMU(topic, yaw=yaw)
        else:
            told = findings.SIDEWAYS(
                topic, yaw=yaw, set=evidence.correct('truth', body_yaw=yaw).body_yaw
            )
    yield Measure(off, _SIDEWAYS_DEG, told, 'truth')


def _right_angles(turn: Rotation) -> FloatArray:
    """Return roll, pitch, yaw, deg, of the turn by right angles that is within 8 deg, if any."""
    matrix = turn.as_matrix()
    nearest = np.rint(matrix)
    # Right, and none: a small tilt is one.
    if np.array_equal(nearest @ nearest.T, np.eye(3)) and not np.array_equal(nearest, np.eye(3)):
        near = Rotation.from_matrix(nearest)
        if (near.inv() * turn).magnitude() < math.radians(8.0):
            turn = near
    x, y, z, w = turn.as_quat().tolist()
    angles = np.rint(np.degrees(rotations.euler_from_quaternion([x, y, z, w])))
    return np.asarray(np.where(angles == -180.0, 180.0, angles))


def _yaw(evidence: Evidence, align: Rotation, up: FloatArray) -> tuple[float, float] | None:
    """Return the turn about the vertical from aligned measurements to true ones, and its standard
    error, deg; None where less than half of the horizontal signals is explained.
    """
    imu, ideal = evidence.imu, evidence.ideal
    if imu is None or ideal is None:
        return None
    east = np.cross(up, [0.0, 0.0, 1.0] if abs(up[2]) < 0.9 else [0.0, 1.0, 0.0])
    east /= np.linalg.norm(east)
    north = np.cross(up, east)
    total, weight = 0.0j, 0.0
    for measured, true in (
        (evidence.measured('linear_acceleration'), ideal.force),
        (evidence.measured('angular_velocity'), ideal.rate),
    ):  # fmt: skip
        blocks = block_means(
            lambda one, other: np.hstack([align.apply(one), other]),
            evidence.imu_time, 0.5, measured, true,
        )  # fmt: skip
        blocks = blocks - blocks.mean(axis=0)
        own = blocks[:, :3] @ east + 1j * (blocks[:, :3] @ north)
        reference = blocks[:, 3:] @ east + 1j * (blocks[:, 3:] @ north)
        size = float(np.mean(np.abs(reference) ** 2))
        if size < 1e-8:
            continue
        product = complex(np.mean(np.conj(own) * reference))
        power = float(np.mean(np.abs(own) ** 2))
        left = power - abs(product) ** 2 / size
        gain = abs(product) / size
        if left > 0.5 * power or not 0.5 < gain < 2.0:
            continue
        left = max(left, 1e-6 * power)
        independent = len(blocks) * 0.5 / 2.0
        total += product / left * independent
        weight += size / left * independent
    if weight == 0.0:
        return None
    return math.degrees(np.angle(total)), math.degrees(1.0 / math.sqrt(2.0 * weight))


def force_scale(evidence: Evidence) -> Iterator[Measure]:
    """The mean specific force along the vertical over what it should be."""
    imu, topic = evidence.imu, evidence.topic('imu')
    if imu is None or 'gravity' in evidence.doubtful:
        return
    up = evidence.up
    size = float(mean_row(evidence.measured('linear_acceleration')) @ up / np.linalg.norm(up))
    scale = size / float(np.linalg.norm(up))
    told = None
    if scale > 0.0 and abs(math.log(scale)) > _GRAVITY[0]:
        large = abs(math.log(scale)) > _GRAVITY[1]
        kind = findings.GRAVITY_SCALE_LARGE if large else findings.GRAVITY_SCALE
        total = evidence.correct('imu', acceleration_scale=1.0 / scale)
        told = kind(
            topic, role=evidence.role('imu'), force=size, scale=scale, set=total.acceleration_scale
        )
    yield Measure(scale, math.exp(_GRAVITY[0]), told, 'imu', 'ratio')


def bias(evidence: Evidence) -> Iterator[Measure]:
    """The mean of the rates less those of the truth, whose own mean its orientations bound."""
    imu, ideal = evidence.imu, evidence.ideal
    if imu is None or ideal is None or 'orientation' in evidence.doubtful:
        return
    both = evidence.measured('angular_velocity'), ideal.rate
    mean = np.asarray(sum_by_blocks(np.subtract, *both) / len(imu))
    size = float(np.linalg.norm(mean))
    # Vibration is gone in a second; what is left varies from one to the next.
    blocks = block_means(np.subtract, evidence.imu_time, _INDEPENDENT_S, *both)
    deviation = float(blocks.std(axis=0).max()) / math.sqrt(len(blocks))
    told, limit = None, _BIAS[0] + SIGMAS * deviation
    if size > limit:
        kind = findings.RATE_BIAS_LARGE if size > _BIAS[1] else findings.RATE_BIAS
        x, y, z = evidence.correct('imu', rate_bias=tuple(mean.tolist())).rate_bias
        told = kind(evidence.topic('imu'), role=evidence.role('imu'), bias=size, x=x, y=y, z=z)
    yield Measure(size, limit, told, 'imu')
