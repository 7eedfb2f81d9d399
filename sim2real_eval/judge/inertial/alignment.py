# SPDX-License-Identifier: Apache-2.0
"""First attitude of an inertial judge: levelling by gravity, and the best available heading.

At rest, or in straight steady motion, the mean specific force points up, which gives roll and
pitch ([Groves2013], section 5.6.2). An accelerometer bias b leaves the error (-(R b)_y, (R b)_x,
0) / g about the axes of the world, so tilt error and bias start correlated. Gravity gives no
heading.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import Finding
from sim2real_eval.judge import estimate
from sim_sensors.core.measurements import FloatArray
from .front_end import InertialInputs
from .settings import InertialSettings

UNKNOWN_HEADING_DEVIATION = math.pi / math.sqrt(3.0)
"""Standard deviation of an unknown angle, uniform over a turn, rad."""

# Smallest ratio of a displacement to its deviation that gives a course.
_SIGNIFICANT = 5.0
# Cosine of the largest plausible tilt of a vehicle.
_STEEP = 0.5
# Number of path durations, 1, 2, ... 16 times `start.time`.
_LENGTHS = 5


@dataclasses.dataclass(frozen=True, eq=False)
class FirstAttitude:
    """Attitude of base_link at the first usable fix."""

    stamp_ns: int  # stamp of that fix
    orientation: FloatArray  # (4,) Quaternion x y z w, base_link to world (east-north-up)
    # (3, 3) rad^2, of the small rotation e about the world's axes, truth = Exp(e) estimate.
    covariance: FloatArray
    # (3, 3) de/db of that error and the error b of an accelerometer bias taken as zero, base_link
    # axes: cov(e, b) = bias_coupling var(b). Its part is in `covariance`.
    bias_coupling: FloatArray
    # (3,) Bias from the mean rate at standstill, rad/s, and its variance; 0 and the variance of
    # the settings without a standstill.
    gyroscope_bias: FloatArray
    gyroscope_bias_variance: FloatArray
    still: bool  # whether the vehicle stood still during levelling
    heading_known: bool  # false when the heading is uniform over the turn
    notes: tuple[Finding, ...]


def first_attitude(
    inputs: InertialInputs, settings: InertialSettings, start_heading: float | None = None
) -> FirstAttitude:
    """Return the attitude at the first usable fix.

    A start heading, the yaw of base_link there in rad from east, overrides all other sources.
    """
    start = settings.start
    stamp_ns = int(inputs.fix_ns[0])
    standstill = _find_standstill(inputs, settings)
    end_ns = stamp_ns + round(start.time * 1e9)
    window = (inputs.imu_ns >= stamp_ns) & (inputs.imu_ns <= end_ns)
    if not window.any():
        window = inputs.imu_ns >= stamp_ns
        window &= np.cumsum(window) <= 1
    force = np.mean(inputs.force[window], axis=0)
    roll = math.atan2(force[1], force[2])
    pitch = math.atan2(-force[0], math.hypot(force[1], force[2]))
    bias, variance = _gyroscope_bias(inputs, settings, window, standstill)
    level = _Level(roll, pitch, bias, variance)
    yaw, deviation, heading_note = _heading(inputs, settings, start_heading, level)
    attitude = Rotation.from_euler('xyz', [roll, pitch, yaw])
    earth = settings.turning_earth(inputs.origin, inputs.imu_ns)
    if earth is not None and bias.any():
        bias = bias - attitude.inv().apply(earth.rate)
        variance += float(earth.rate @ earth.rate) * min(deviation, 1.0) ** 2
    tilt = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]) / settings.gravity
    # truth = Exp(e) R0 and R0 f = |f| up, R f = g up + R b: g e x up = R b.
    coupling = -tilt @ attitude.as_matrix()
    covariance = coupling @ coupling.T * start.accelerometer_bias_deviation**2
    quiet = settings.accelerometer_noise / settings.gravity / math.sqrt(start.time)
    tilt_deviation = start.moving_tilt_deviation
    if standstill is not None:
        tilt_deviation = math.hypot(quiet, standstill.acceleration / settings.gravity)
    covariance += np.diag([tilt_deviation**2, tilt_deviation**2, deviation**2])
    motion = 'in motion' if standstill is None else 'at rest'
    notes = [estimate.LEVELLED(tilt=tilt_deviation, level=motion), heading_note]
    upright = float(attitude.as_matrix()[2, 2])
    if upright < _STEEP:
        notes.append(estimate.TILTED(tilt=math.degrees(math.acos(max(upright, -1.0)))))
    return FirstAttitude(
        stamp_ns=stamp_ns,
        orientation=attitude.as_quat(),
        covariance=covariance,
        bias_coupling=coupling,
        gyroscope_bias=bias,
        gyroscope_bias_variance=np.full(3, variance),
        still=standstill is not None,
        heading_known=deviation < UNKNOWN_HEADING_DEVIATION,
        notes=tuple(notes),
    )


@dataclasses.dataclass(frozen=True, eq=False)
class _Level:
    """First roll and pitch, and the gyroscope bias."""

    roll: float
    pitch: float
    bias: FloatArray
    bias_variance: float


def _gyroscope_bias(
    inputs: InertialInputs,
    settings: InertialSettings,
    window: NDArray[np.bool_],
    standstill: _Standstill | None,
) -> tuple[FloatArray, float]:
    """Return the first gyroscope bias and its variance, which a standstill reduces."""
    variance = settings.start.gyroscope_bias_deviation**2
    if standstill is None or standstill.speed > settings.start.still_speed or variance == 0.0:
        return np.zeros(3), variance
    noise = settings.gyroscope_noise**2 / settings.start.time
    mean = np.mean(inputs.rate[window], axis=0)
    # A rate far above any bias is a rotation on the spot.
    if float(np.max(np.abs(mean))) > _SIGNIFICANT * math.sqrt(variance + noise):
        return np.zeros(3), variance
    share = variance / (variance + noise)
    return share * mean, share * noise


@dataclasses.dataclass(frozen=True)
class _Standstill:
    """Standard deviations of motion that the fixes of a standing antenna cannot exclude."""

    speed: float
    acceleration: float


def _find_standstill(inputs: InertialInputs, settings: InertialSettings) -> _Standstill | None:
    """Return the standstill at the start, if the first fixes are those of a standing antenna.

    None for a moving antenna, or when the fixes are less certain than the assumption in motion.
    """
    time = (inputs.fix_ns - inputs.fix_ns[0]) * 1e-9
    first = time <= max(settings.start.time, float(time[1]) if len(time) > 1 else 0.0)
    if np.sum(first) < 2 or time[first][-1] <= 0.0:
        return None
    last = int(np.sum(first)) - 1
    span = float(time[last])
    moved = float(np.linalg.norm(inputs.fix[last, :2] - inputs.fix[0, :2]))
    # Deviation of the difference of two fixes in the plane, along its worst direction, m.
    both = inputs.fix_covariance[0, :2, :2] + inputs.fix_covariance[last, :2, :2]
    noise = math.sqrt(float(np.linalg.eigvalsh(both)[-1]))
    if moved > settings.start.still_speed * span + 2.0 * noise:
        return None
    # A vehicle that starts with the acceleration a moves a T^2 / 2 and is levelled a / g wrong.
    standstill = _Standstill(noise / span, 2.0 * noise / span**2)
    coarse = settings.start.moving_tilt_deviation * settings.gravity
    return standstill if standstill.acceleration < coarse else None


def _heading(
    inputs: InertialInputs, settings: InertialSettings, start_heading: float | None, level: _Level
) -> tuple[float, float, Finding]:
    """Return yaw, its deviation and a finding about its source."""
    start = settings.start
    if start_heading is not None:
        note = _heading_note(start_heading, 'as given')
        return start_heading, start.heading_deviation, note
    at = int(np.searchsorted(inputs.imu_ns, inputs.fix_ns[0]))
    stated = float(inputs.imu_yaw[at])
    if start.heading in ('auto', 'orientation') and math.isfinite(stated):
        deviation = math.sqrt(float(inputs.imu_yaw_variance[at])) or start.heading_deviation
        if deviation < UNKNOWN_HEADING_DEVIATION:
            return stated, deviation, _heading_note(stated, "from the IMU's orientation")
    if start.heading in ('auto', 'course'):
        course = _course(inputs, settings, level)
        if course is not None and course[1] < UNKNOWN_HEADING_DEVIATION:
            yaw, deviation, later = course
            note = estimate.HEADING_BY_COURSE(heading=math.degrees(yaw), later=later)
            return yaw, deviation, note
    return 0.0, UNKNOWN_HEADING_DEVIATION, estimate.HEADING_UNKNOWN()


def _heading_note(yaw: float, source: str) -> Finding:
    return estimate.HEADING(heading=math.degrees(yaw), source=source)


def _course(
    inputs: InertialInputs, settings: InertialSettings, level: _Level
) -> tuple[float, float, float] | None:
    """Return the heading at the first fix from a path between two fixes, and its deviation.

    The third number is the time from the first fix to the middle of the path, s. A vehicle that
    drives forwards with the heading psi + turn(t), turn integrated from the rates, moves along the
    sum of Exp(i turn) rotated by psi. Its speed is assumed to be constant on the path. The most
    certain of several path lengths is used, and the earliest of equals.
    """
    start = settings.start
    fix_time = (inputs.fix_ns - inputs.fix_ns[0]) * 1e-9
    imu_time = (inputs.imu_ns - inputs.fix_ns[0]) * 1e-9
    time = np.unique(np.concatenate([fix_time, imu_time[imu_time > 0.0]]))
    up = Rotation.from_euler('xyz', [level.roll, level.pitch, 0.0]).as_matrix()[2]
    rate = np.interp(time, imu_time, (inputs.rate - level.bias) @ up)
    turn = _integrate(time, rate.astype(np.complex128)).real
    way = _integrate(time, np.exp(1j * turn))[np.searchsorted(time, fix_time)]
    points = inputs.fix[:, 0] + 1j * inputs.fix[:, 1]
    best: tuple[float, float, float] | None = None
    for length in start.time * 2.0 ** np.arange(_LENGTHS):
        last = np.minimum(np.searchsorted(fix_time, fix_time + length), len(fix_time) - 1)
        span = fix_time[last] - fix_time
        moved, along = points[last] - points, way[last] - way
        both = inputs.fix_covariance[:, :2, :2] + inputs.fix_covariance[last, :2, :2]
        noise = np.sqrt(np.linalg.eigvalsh(both)[:, 1])
        # On a path that returns to its start, changes of speed do not average out.
        good = (span > 0.0) & (np.abs(along) > 0.5 * span)
        good &= np.abs(moved) >= np.maximum(start.course_speed * span, _SIGNIFICANT * noise)
        if not good.any():
            continue
        i = int(np.argmax(good))
        later = 0.5 * float(fix_time[i] + fix_time[last[i]])
        deviation = math.hypot(
            start.course_deviation,
            float(noise[i] / np.abs(moved[i])),
            math.sqrt(level.bias_variance) * later,
            settings.gyroscope_noise * math.sqrt(later),
        )
        if best is None or deviation < best[1]:
            best = (float(np.angle(moved[i] / along[i])), deviation, later)
    return best


def _integrate(time: FloatArray, values: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Return the integral from the first time, by trapezoids, (n,)."""
    steps = 0.5 * (values[1:] + values[:-1]) * np.diff(time)
    return np.concatenate([[0.0], np.cumsum(steps)])
