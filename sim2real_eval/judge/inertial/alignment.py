# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Inputs of an inertial judge, and its initial attitude from levelling and a heading source.

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

from sim2real_eval.common.findings import Finding, JudgeError
from sim2real_eval.judge import estimate
from sim2real_eval.judge.estimate import PartCount
from sim2real_eval.recording.metadata import FrameTree, TransformFile
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.truth import local_frame_at_first_fix, select_valid_fixes
from sim_sensors.core.measurements import FixArray, FloatArray, ImuArray, IntArray
from sim_sensors.world.geodesy import LocalFrame
from .settings import InertialSettings

_ABSENT = -1.0
# Largest values accepted: no sensor measures more, and their squares do not overflow.
_LARGEST_VALUE = 1e6
_LARGEST_VARIANCE = 1e12


@dataclasses.dataclass(frozen=True, eq=False)
class InertialInputs:
    """Inputs of an inertial judge."""

    imu_ns: IntArray  # (n,) Stamps, strictly increasing
    # (n, 3) Angular rate, rad/s, and specific force at `imu_arm`, m/s^2, in the axes of base_link.
    rate: FloatArray
    force: FloatArray
    # (n,) Yaw of base_link in the world from the IMU's own orientation, rad, and its variance.
    # Both are NaN if there is no orientation; the variance is 0 if it is not stated.
    imu_yaw: FloatArray
    imu_yaw_variance: FloatArray
    imu_arm: FloatArray  # (3,) Position of the IMU in base_link, m
    fix_ns: IntArray  # (m,) Stamps of the usable fixes, within those of the IMU, never decreasing
    fix: FloatArray  # (m, 3) Position of the antenna, m, east-north-up about `origin`
    fix_covariance: FloatArray  # (m, 3, 3) m^2, after fallback and floor; positive definite
    antenna: FloatArray  # (3,) Position of the antenna in base_link, m
    origin: LocalFrame  # at the first valid fix
    fix_topic: str
    fixes_received: int  # messages of the GPS, unusable ones included
    notes: tuple[Finding, ...]

    def gps_count(self, rejected: int) -> PartCount:
        """Return the numbers of fused, rejected and unusable fixes."""
        used = len(self.fix_ns)
        return PartCount(
            'gps pose', self.fix_topic, self.fixes_received, older=0,
            unusable=self.fixes_received - used, fused=used - rejected, rejected=rejected,
        )  # fmt: skip


def inertial_inputs(
    recording: Recording,
    settings: InertialSettings,
    *,
    start_ns: int | None = None,
    transforms: TransformFile | None = None,
) -> InertialInputs:
    """Return the imu and gps messages from `start_ns` on, in the axes of base_link.

    Transforms of the file `transforms` replace those of the recording. Raises RecordingError if
    the recording has no imu or no gps. Raises JudgeError if the IMU has no angular rate, no
    specific force or fewer than two messages, if no valid fix lies between them, or if no static
    transform connects a sensor to base_link.
    """
    where = recording.path or recording.name
    imu, gps = recording.require('imu'), recording.require('gps')
    assert isinstance(imu, ImuArray)
    assert isinstance(gps, FixArray)
    notes: list[Finding] = []
    if start_ns is not None:
        imu, gps = imu.take(imu.stamp_ns >= start_ns), gps.take(gps.stamp_ns >= start_ns)
    imu = _usable_imu(imu, f'{where}: {recording.roles["imu"]}', settings, notes)
    static = recording.transforms
    if transforms is not None:
        static, replaced = transforms.merge_with(static)
        notes += [*transforms.notes, *replaced]
    frames = FrameTree(static, assume_identity=not static)
    base = settings.base_link_frame
    rotation, imu_arm = frames.lookup(base, imu.frame, 'imu')
    _, antenna = frames.lookup(base, gps.frame, 'gps')
    notes += frames.assumptions
    valid_fixes = select_valid_fixes(gps)
    if len(valid_fixes) < len(gps):
        notes.append(estimate.NO_FIX(count=len(gps) - len(valid_fixes), received=len(gps)))
    # An estimate needs IMU messages after its first fix.
    is_inside = (valid_fixes.stamp_ns >= imu.stamp_ns[0]) & (
        valid_fixes.stamp_ns <= imu.stamp_ns[-1]
    )
    is_inside &= bool(np.any(valid_fixes.stamp_ns[is_inside] < imu.stamp_ns[-1]))
    if not is_inside.any():
        raise JudgeError(
            f'{where}: {recording.roles["gps"]} has no valid fix during the IMU messages; '
            'at least one is needed'
        )
    if not is_inside.all():
        notes.append(estimate.FIXES_OUTSIDE(count=np.sum(~is_inside)))
    origin = local_frame_at_first_fix(valid_fixes)
    fixes = valid_fixes.take(is_inside)
    yaw, variance = _headings(imu, rotation)
    return InertialInputs(
        imu_ns=imu.stamp_ns,
        rate=imu.angular_velocity @ rotation.T,
        force=imu.linear_acceleration @ rotation.T,
        imu_yaw=yaw,
        imu_yaw_variance=variance,
        imu_arm=imu_arm,
        fix_ns=fixes.stamp_ns,
        fix=origin.to_enu(fixes.latitude, fixes.longitude, fixes.altitude),
        fix_covariance=_covariances(fixes, settings, notes),
        antenna=antenna,
        origin=origin,
        fix_topic=recording.roles['gps'],
        fixes_received=len(gps),
        notes=tuple(notes),
    )


def _usable_imu(
    imu: ImuArray, where: str, settings: InertialSettings, notes: list[Finding]
) -> ImuArray:
    for name in ('angular_velocity', 'linear_acceleration'):
        absent = getattr(imu, f'{name}_covariance')[:, 0, 0] == _ABSENT
        if len(imu) and absent.all():
            raise JudgeError(
                f'{where}: has no {name} (its covariance is -1); an inertial judge needs it'
            )
        imu = imu.take(~absent & np.isfinite(getattr(imu, name)).all(axis=1))
        largest = float(np.max(np.abs(getattr(imu, name)), initial=0.0))
        if largest > _LARGEST_VALUE:
            raise JudgeError(
                f'{where}: {name} of {largest:.3g}; must be at most {_LARGEST_VALUE:g}'
            )
    is_later = np.ones(len(imu), dtype=bool)
    is_later[1:] = np.diff(imu.stamp_ns) > 0
    if not is_later.all():
        notes.append(estimate.IMU_REPEATS(count=int(np.sum(~is_later))))
    imu = imu.take(is_later)
    if len(imu) < 2:
        raise JudgeError(f'{where}: has {len(imu)} usable messages; must have two or more')
    gaps = np.diff(imu.stamp_ns) * 1e-9
    is_long = gaps > settings.longest_gap
    if is_long.any():
        longest, limit = float(np.max(gaps)), settings.longest_gap
        notes.append(estimate.IMU_GAPS(count=np.sum(is_long), longest=longest, limit=limit))
    return imu


def _headings(imu: ImuArray, rotation: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return yaw of base_link and its variance; NaN if the IMU has no orientation."""
    covariance = imu.orientation_covariance
    has_orientation = (covariance[:, 0, 0] != _ABSENT) & np.isfinite(imu.orientation).all(axis=1)
    has_orientation &= np.linalg.norm(np.nan_to_num(imu.orientation), axis=1) > 0.0
    yaw, variance = np.full(len(imu), np.nan), np.full(len(imu), np.nan)
    if has_orientation.any():
        sensor = Rotation.from_quat(imu.orientation[has_orientation])
        base = sensor * Rotation.from_matrix(rotation.T)
        yaw[has_orientation] = base.as_euler('xyz')[:, 2]
        stated = covariance[has_orientation, 2, 2]
        variance[has_orientation] = np.nan_to_num(np.maximum(stated, 0.0))
    return yaw, variance


def _covariances(fixes: FixArray, settings: InertialSettings, notes: list[Finding]) -> FloatArray:
    """Return positive definite covariances of the fixes, (m, 3, 3)."""
    stated_covariance = 0.5 * (
        fixes.position_covariance + fixes.position_covariance.transpose(0, 2, 1)
    )
    diagonal = np.einsum('nii->ni', stated_covariance)
    is_unknown = ~(np.isfinite(stated_covariance).all(axis=(1, 2)) & (diagonal >= 0.0).all(axis=1))
    is_unknown |= ~diagonal.any(axis=1)
    # Larger variances carry no information, but make the filter's covariance ill-conditioned.
    is_vague = ~is_unknown & (diagonal > _LARGEST_VARIANCE).any(axis=1)
    factors = _LARGEST_VARIANCE / np.max(diagonal[is_vague], axis=1)
    stated_covariance[is_vague] *= factors[:, None, None]
    result = np.where(is_unknown[:, None, None], 0.0, stated_covariance)
    # An invalid covariance (correlations above 1) is replaced by its variances.
    is_invalid = ~is_unknown & (
        np.linalg.eigvalsh(result)[:, 0] < -1e-9 * np.max(diagonal, axis=1)
    )
    result[is_invalid] = diagonal[is_invalid, :, None] * np.eye(3)
    fallback, least_variance = np.square([settings.fix_deviation, settings.least_fix_deviation])
    stated = np.einsum('nii->ni', result)
    variances = np.where(stated > 0.0, np.maximum(stated, least_variance), fallback)
    result = result + (variances - stated)[:, :, None] * np.eye(3)
    n = len(fixes)
    if is_unknown.any():
        deviations_text = ', '.join(f'{value:g}' for value in settings.fix_deviation)
        notes.append(
            estimate.NO_COVARIANCE(count=np.sum(is_unknown), fixes=n, deviation=deviations_text)
        )
    if is_vague.any():
        largest_deviation = _LARGEST_VARIANCE**0.5
        notes.append(
            estimate.COVARIANCE_LOWERED(count=np.sum(is_vague), fixes=n, most=largest_deviation)
        )
    is_raised = ~is_unknown & (stated < least_variance).any(axis=1)
    if is_raised.any():
        deviations_text = ', '.join(f'{value:g}' for value in settings.least_fix_deviation)
        notes.append(
            estimate.COVARIANCE_RAISED(count=np.sum(is_raised), fixes=n, least=deviations_text)
        )
    return np.asarray(result)


UNKNOWN_HEADING_DEVIATION = math.pi / math.sqrt(3.0)
"""Standard deviation of an unknown angle, uniform over a full turn, rad."""

# Smallest ratio of a displacement or mean rate to its standard deviation that is significant.
_MIN_RATIO = 5.0
# Cosine of the largest plausible tilt of a vehicle.
_MIN_COS_TILT = 0.5
# Number of path durations, 1, 2, ... 16 times `start.time`.
_DURATIONS = 5


@dataclasses.dataclass(frozen=True, eq=False)
class InitialAttitude:
    """Attitude of base_link at the first usable fix."""

    stamp_ns: int  # stamp of that fix
    orientation: FloatArray  # (4,) Quaternion x y z w, base_link to world (east-north-up)
    # (3, 3) rad^2, of the small rotation e about the world's axes, truth = Exp(e) estimate.
    covariance: FloatArray
    # (3, 3) Derivative de/db of that error by the accelerometer bias b in base_link, which
    # levelling assumes to be zero: cov(e, b) = bias_coupling var(b). `covariance` includes it.
    bias_coupling: FloatArray
    # (3,) Bias from the mean rate at standstill, rad/s, and its variance. Without a standstill
    # they are 0 and the variance of the settings.
    gyroscope_bias: FloatArray
    gyroscope_bias_variance: FloatArray
    is_still: bool  # whether the vehicle stood still during levelling
    is_heading_known: bool  # false if the heading is uniform over a full turn
    notes: tuple[Finding, ...]


def initial_attitude(
    inputs: InertialInputs, settings: InertialSettings, start_heading: float | None = None
) -> InitialAttitude:
    """Return the attitude at the first usable fix.

    `start_heading` is the yaw of base_link at that fix, rad from east; it overrides all other
    sources.
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
    level = _LevelAttitude(roll, pitch, bias, variance)
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
    noise_tilt = settings.accelerometer_noise / settings.gravity / math.sqrt(start.time)
    tilt_deviation = start.moving_tilt_deviation
    if standstill is not None:
        tilt_deviation = math.hypot(noise_tilt, standstill.acceleration / settings.gravity)
    covariance += np.diag([tilt_deviation**2, tilt_deviation**2, deviation**2])
    motion = 'in motion' if standstill is None else 'at rest'
    notes = [estimate.LEVELLED(tilt=tilt_deviation, level=motion), heading_note]
    cos_tilt = float(attitude.as_matrix()[2, 2])
    if cos_tilt < _MIN_COS_TILT:
        notes.append(estimate.TILTED(tilt=math.degrees(math.acos(max(cos_tilt, -1.0)))))
    return InitialAttitude(
        stamp_ns=stamp_ns,
        orientation=attitude.as_quat(),
        covariance=covariance,
        bias_coupling=coupling,
        gyroscope_bias=bias,
        gyroscope_bias_variance=np.full(3, variance),
        is_still=standstill is not None,
        is_heading_known=deviation < UNKNOWN_HEADING_DEVIATION,
        notes=tuple(notes),
    )


@dataclasses.dataclass(frozen=True, eq=False)
class _LevelAttitude:
    """Initial roll and pitch, rad, and gyroscope bias, rad/s."""

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
    """Return the initial gyroscope bias and its variance, which a standstill reduces."""
    variance = settings.start.gyroscope_bias_deviation**2
    if standstill is None or standstill.speed > settings.start.still_speed or variance == 0.0:
        return np.zeros(3), variance
    noise = settings.gyroscope_noise**2 / settings.start.time
    mean = np.mean(inputs.rate[window], axis=0)
    # A rate far above any bias is a rotation on the spot.
    if float(np.max(np.abs(mean))) > _MIN_RATIO * math.sqrt(variance + noise):
        return np.zeros(3), variance
    share = variance / (variance + noise)
    return share * mean, share * noise


@dataclasses.dataclass(frozen=True)
class _Standstill:
    """Largest speed, m/s, and acceleration, m/s^2, that the fixes allow for a standing antenna.

    Both are standard deviations.
    """

    speed: float
    acceleration: float


def _find_standstill(inputs: InertialInputs, settings: InertialSettings) -> _Standstill | None:
    """Return the standstill at the start, or None if the antenna moves.

    Also return None if the fixes bound the acceleration so loosely that levelling would be less
    accurate than `moving_tilt_deviation`.
    """
    time = (inputs.fix_ns - inputs.fix_ns[0]) * 1e-9
    first = time <= max(settings.start.time, float(time[1]) if len(time) > 1 else 0.0)
    if np.sum(first) < 2 or time[first][-1] <= 0.0:
        return None
    last = int(np.sum(first)) - 1
    span = float(time[last])
    moved = float(np.linalg.norm(inputs.fix[last, :2] - inputs.fix[0, :2]))
    # Deviation of the difference of two fixes in the plane, along its worst direction, m.
    summed_covariance = inputs.fix_covariance[0, :2, :2] + inputs.fix_covariance[last, :2, :2]
    noise = math.sqrt(float(np.linalg.eigvalsh(summed_covariance)[-1]))
    if moved > settings.start.still_speed * span + 2.0 * noise:
        return None
    # Acceleration a from rest moves a vehicle by a T^2 / 2 and causes a levelling error of a / g.
    standstill = _Standstill(noise / span, 2.0 * noise / span**2)
    largest_acceleration = settings.start.moving_tilt_deviation * settings.gravity
    return standstill if standstill.acceleration < largest_acceleration else None


def _heading(
    inputs: InertialInputs,
    settings: InertialSettings,
    start_heading: float | None,
    level: _LevelAttitude,
) -> tuple[float, float, Finding]:
    """Return yaw, its deviation and a finding about its source."""
    start = settings.start
    if start_heading is not None:
        note = _heading_note(start_heading, 'as given')
        return start_heading, start.heading_deviation, note
    first_row = int(np.searchsorted(inputs.imu_ns, inputs.fix_ns[0]))
    imu_yaw = float(inputs.imu_yaw[first_row])
    if start.heading in ('auto', 'orientation') and math.isfinite(imu_yaw):
        deviation = math.sqrt(float(inputs.imu_yaw_variance[first_row])) or start.heading_deviation
        if deviation < UNKNOWN_HEADING_DEVIATION:
            return imu_yaw, deviation, _heading_note(imu_yaw, "from the IMU's orientation")
    if start.heading in ('auto', 'course'):
        course = _course(inputs, settings, level)
        if course is not None and course[1] < UNKNOWN_HEADING_DEVIATION:
            yaw, deviation, middle_s = course
            note = estimate.HEADING_BY_COURSE(heading=math.degrees(yaw), later=middle_s)
            return yaw, deviation, note
    return 0.0, UNKNOWN_HEADING_DEVIATION, estimate.HEADING_UNKNOWN()


def _heading_note(yaw: float, source: str) -> Finding:
    return estimate.HEADING(heading=math.degrees(yaw), source=source)


def _course(
    inputs: InertialInputs, settings: InertialSettings, level: _LevelAttitude
) -> tuple[float, float, float] | None:
    """Return the heading at the first fix from a path between two fixes, and its deviation.

    The third number is the time from the first fix to the middle of the path, s. The heading is
    psi + turn(t), with turn integrated from the rates. A vehicle that drives forwards at speed v
    then moves by v exp(i psi) times the integral of exp(i turn) in the complex plane. The speed is
    assumed to be constant on the path. The path duration with the smallest deviation is used; the
    shortest one breaks ties.
    """
    start = settings.start
    fix_time = (inputs.fix_ns - inputs.fix_ns[0]) * 1e-9
    imu_time = (inputs.imu_ns - inputs.fix_ns[0]) * 1e-9
    time = np.unique(np.concatenate([fix_time, imu_time[imu_time > 0.0]]))
    up = Rotation.from_euler('xyz', [level.roll, level.pitch, 0.0]).as_matrix()[2]
    rate = np.interp(time, imu_time, (inputs.rate - level.bias) @ up)
    turn = _integrate(time, rate.astype(np.complex128)).real
    unit_path = _integrate(time, np.exp(1j * turn))[np.searchsorted(time, fix_time)]
    points = inputs.fix[:, 0] + 1j * inputs.fix[:, 1]
    best: tuple[float, float, float] | None = None
    for duration in start.time * 2.0 ** np.arange(_DURATIONS):
        last = np.minimum(np.searchsorted(fix_time, fix_time + duration), len(fix_time) - 1)
        span = fix_time[last] - fix_time
        displacement, unit_displacement = points[last] - points, unit_path[last] - unit_path
        summed_covariance = inputs.fix_covariance[:, :2, :2] + inputs.fix_covariance[last, :2, :2]
        noise = np.sqrt(np.linalg.eigvalsh(summed_covariance)[:, 1])
        # On a path that returns to its start, changes of speed do not average out.
        is_usable = (span > 0.0) & (np.abs(unit_displacement) > 0.5 * span)
        is_usable &= np.abs(displacement) >= np.maximum(
            start.course_speed * span, _MIN_RATIO * noise
        )
        if not is_usable.any():
            continue
        i = int(np.argmax(is_usable))
        middle_s = 0.5 * float(fix_time[i] + fix_time[last[i]])
        deviation = math.hypot(
            start.course_deviation,
            float(noise[i] / np.abs(displacement[i])),
            math.sqrt(level.bias_variance) * middle_s,
            settings.gyroscope_noise * math.sqrt(middle_s),
        )
        if best is None or deviation < best[1]:
            best = (float(np.angle(displacement[i] / unit_displacement[i])), deviation, middle_s)
    return best


def _integrate(time: FloatArray, values: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Return the integral from the first time, by trapezoids, (n,)."""
    steps = 0.5 * (values[1:] + values[:-1]) * np.diff(time)
    return np.concatenate([[0.0], np.cumsum(steps)])
