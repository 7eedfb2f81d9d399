# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Error-state judge: a GNSS/INS Kalman filter that estimates the biases of its IMU.

The equations are those of [Sola2017], chapters 5 to 7, and [Groves2013], chapter 14.
docs/explanation/inertial.md has them in the form used here.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import Finding, JudgeError
from sim2real_eval.judge import estimate
from sim2real_eval.judge.estimate import Corrections, JudgedRun, PartCount
from sim2real_eval.recording.recording import Recording
from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.core.rotations import skew
from .alignment import InertialInputs, InitialAttitude, inertial_inputs, initial_attitude
from .settings import InertialJudge, InertialSettings
from .strapdown import (
    ACCELEROMETER_BIAS,
    ATTITUDE,
    ERRORS,
    GYROSCOPE_BIAS,
    POSITION,
    STATES,
    VELOCITY,
    InertialEvents,
    LoopOutput,
    run,
    sensitivities,
)

_MAX_ESTIMATES = 2_000_000
# Slices of the error vector.
_P, _V, _A, _G, _F = (
    slice(first, first + 3)
    for first in (POSITION, VELOCITY, ATTITUDE, GYROSCOPE_BIAS, ACCELEROMETER_BIAS)
)


def make_judged_run(
    inputs: InertialInputs,
    settings: InertialSettings,
    events: InertialEvents,
    output: LoopOutput,
    parts: tuple[PartCount, ...],
    corrections: Corrections,
    notes: tuple[Finding, ...],
) -> JudgedRun:
    """Return the judged run, with states and covariances moved from the IMU to base_link.

    The twist and its covariance contain the white noise of the gyroscope in one IMU message.
    """
    x, P = output.x, output.P
    n = len(x)
    R = Rotation.from_quat(x[:, 6:10]).as_matrix() if n else np.zeros((0, 3, 3))
    to_body = R.transpose(0, 2, 1)
    arm = np.broadcast_to(events.base, (n, 3))
    arm_world = np.einsum('nij,nj->ni', R, arm)
    v = x[:, 3:6]
    rate = events.rate[events.out_at] - x[:, 10:13]
    identity = np.eye(3)
    pose, twist = np.zeros((n, 6, ERRORS)), np.zeros((n, 6, ERRORS))
    pose[:, :3, _P] = identity
    pose[:, :3, _A] = -skew(arm_world)
    pose[:, 3:, _A] = identity
    twist[:, :3, _V] = to_body
    twist[:, :3, _A] = to_body @ skew(v)
    twist[:, :3, _G] = skew(arm)
    twist[:, 3:, _G] = -identity
    period = float(np.median(np.diff(inputs.imu_ns))) * 1e-9
    rate_noise = np.vstack([skew(events.base[None])[0], -identity])
    twist_covariance = twist @ P @ twist.transpose(0, 2, 1)
    twist_covariance += rate_noise @ rate_noise.T * settings.gyroscope_noise**2 / period

    accepted = np.concatenate([[True], output.accepted > 0])
    # For the first fix, the lever arm is rotated by the attitude of the first estimate, or else of
    # the first correction.
    candidates = np.vstack([x[:1, 6:10], output.attitude[:1], [[0.0, 0.0, 0.0, 1.0]]])
    orientations = np.vstack([candidates[:1], output.attitude])
    antenna = Rotation.from_quat(orientations[accepted]).apply(inputs.antenna)
    gps_covariance = np.zeros((int(np.sum(accepted)), 6, 6))
    gps_covariance[:, :3, :3] = inputs.fix_covariance[accepted]
    stamp_ns = events.time_ns[events.out_at]
    return JudgedRun(
        stamp_ns=stamp_ns,
        tick_ns=stamp_ns,
        position=x[:, :3] + arm_world,
        orientation=x[:, 6:10].copy(),
        linear_velocity=np.einsum('nij,nj->ni', to_body, v) + np.cross(rate, arm),
        angular_velocity=rate,
        pose_covariance=pose @ P @ pose.transpose(0, 2, 1),
        twist_covariance=twist_covariance,
        gps_stamp_ns=inputs.fix_ns[accepted],
        gps_position=inputs.fix[accepted] - antenna,
        gps_covariance=gps_covariance,
        parts=parts,
        notes=notes,
        corrections=corrections,
        about_axes=True,
    )


class ErrorStateJudge(InertialJudge):
    """Judge with the error-state filter."""

    kind = 'error_state'

    def judge(
        self,
        recording: Recording,
        *,
        start_ns: int | None = None,
        start_heading: float | None = None,
    ) -> JudgedRun:
        """Judge a recording by `filter_inputs`; see `InertialJudge.judge`."""
        settings = self.parameters
        inputs = inertial_inputs(
            recording, settings, start_ns=start_ns, transforms=self.transforms
        )
        return filter_inputs(
            inputs, settings, start_ns=start_ns, start_heading=start_heading
        ).judged


@dataclasses.dataclass(frozen=True, eq=False)
class FilteredRun:
    """Judged run with the state of the filter at each estimate."""

    judged: JudgedRun
    x: FloatArray  # (n, 16) States as in `strapdown`
    P: FloatArray  # (n, 15, 15) Covariance of their errors


def filter_inputs(
    inputs: InertialInputs,
    settings: InertialSettings,
    *,
    start_ns: int | None = None,
    start_heading: float | None = None,
) -> FilteredRun:
    """Filter inputs of `inertial_inputs`; parameters as in `InertialJudge.judge`."""
    attitude = initial_attitude(inputs, settings, start_heading)
    first_ns, out_ns = int(inputs.fix_ns[0]), output_times(inputs, settings, start_ns)
    events = merge_events(inputs, settings, out_ns)
    output = LoopOutput.allocate(events)
    x, P = first_state(inputs, attitude, settings)
    first, count = (x.copy(), P.copy()), count_start_fixes(inputs, settings)
    run(x, P, events, output)
    # Estimates before the fix that determines the velocity already use this and earlier fixes.
    determined_ns = int(inputs.fix_ns[count])
    early_count = int(np.searchsorted(out_ns, determined_ns))
    if count and early_count:
        early_events = _without_fixes(events, early_count)
        early_output = LoopOutput.allocate(early_events)
        run(*refine_first_state(*first, events, count), early_events, early_output)
        output.x[:early_count], output.P[:early_count] = early_output.x, early_output.P
    notes = [*inputs.notes, *attitude.notes, *_gate_findings(output, settings)]
    if early_count and count:
        time = (determined_ns - first_ns) * 1e-9
        notes.append(estimate.LOOKS_AHEAD(estimates=early_count, time=time, fixes=count + 1))
    parts, corrections = _count_corrections(inputs, output, events)
    judged = make_judged_run(inputs, settings, events, output, parts, corrections, tuple(notes))
    return FilteredRun(judged, output.x, output.P)


def _without_fixes(events: InertialEvents, estimates: int) -> InertialEvents:
    """Return the events of the first estimates, without fixes."""
    end = int(events.out_at[estimates - 1]) + 1
    return events._replace(
        time_ns=events.time_ns[:end],
        fix_at=events.fix_at[:0],
        out_at=events.out_at[:estimates],
        hold_at=events.hold_at[events.hold_at < end],
    )


def _gate_findings(output: LoopOutput, settings: InertialSettings) -> list[Finding]:
    """Return findings about fixes that the gate rejects, or accepts after its timeout."""
    notes = []
    m, refused = len(output.nis), int(np.sum(output.accepted == 0))
    forced = int(np.sum(output.accepted == 2))
    if 2 * refused > m:
        notes.append(estimate.FIXES_GATED(gate=settings.gate, refused=refused, fixes=m))
    if forced:
        notes.append(estimate.GATE_TIMEOUT(timeout=settings.gate_timeout, count=forced))
    return notes


def _count_corrections(
    inputs: InertialInputs, output: LoopOutput, events: InertialEvents
) -> tuple[tuple[PartCount, ...], Corrections]:
    """Return the counts of fixes and vehicle constraints, and all corrections in time order."""
    stamps: list[IntArray] = [events.time_ns[events.fix_at]]
    gps = inputs.gps_count(rejected=int(np.sum(output.accepted == 0)))
    parts = [gps.with_times(stamps[0], output.nis, output.accepted > 0)]
    nis, states = [output.nis], [3]
    holds = len(events.hold_at)
    if holds:
        parts.append(PartCount('vehicle speed', '', holds, 0, 0, holds, 0))
        stamps.append(events.time_ns[events.hold_at])
        nis.append(output.hold_nis)
        states.append(int(np.sum(events.hold > 0.0)))
    sizes = [len(values) for values in nis]
    stamp_ns = np.concatenate(stamps)
    order = np.argsort(stamp_ns, kind='stable')
    return tuple(parts), Corrections(
        part=np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)[order],
        stamp_ns=stamp_ns[order],
        states=np.repeat(np.array(states, dtype=np.int64), sizes)[order],
        nis=np.concatenate(nis)[order],
    )


def first_state(
    inputs: InertialInputs, attitude: InitialAttitude, settings: InertialSettings
) -> tuple[FloatArray, FloatArray]:
    """Return state, (16,), and covariance, (15, 15), at the first fix, from that fix alone.

    The velocity is 0 with the deviation `start.speed_deviation`. The filter is linear in the
    velocity, so the following fixes determine it whatever its value.
    """
    start = settings.start
    x, P = np.zeros(STATES), np.zeros((ERRORS, ERRORS))
    arm = Rotation.from_quat(attitude.orientation).apply(inputs.antenna - inputs.imu_arm)
    x[:3] = inputs.fix[0] - arm
    x[6:10] = attitude.orientation
    x[10:13] = attitude.gyroscope_bias
    variance = start.accelerometer_bias_deviation**2
    P[_V, _V] = start.speed_deviation**2 * np.eye(3)
    P[_A, _A] = attitude.covariance
    P[_G, _G] = np.diag(attitude.gyroscope_bias_variance)
    P[_F, _F] = variance * np.eye(3)
    P[_A, _F] = attitude.bias_coupling * variance
    P[_F, _A] = P[_A, _F].T
    # p = fix - R arm; its error is that of the fix plus [R arm] times that of the attitude.
    lever = np.cross(np.eye(3), arm)
    P[_P, :] = lever @ P[_A, :]
    P[:, _P] = P[_P, :].T
    P[_P, _P] = inputs.fix_covariance[0] + lever @ attitude.covariance @ lever.T
    return x, P


def count_start_fixes(inputs: InertialInputs, settings: InertialSettings) -> int:
    """Return the number of fixes after the first within `start.time`, at least one if possible."""
    time = (inputs.fix_ns - inputs.fix_ns[0]) * 1e-9
    return min(max(int(np.sum(time <= settings.start.time)) - 1, 1), len(time) - 1)


def refine_first_state(
    x: FloatArray, P: FloatArray, events: InertialEvents, count: int
) -> tuple[FloatArray, FloatArray]:
    """Return the state at the first fix and its covariance from the next `count` fixes as well.

    This is least squares over these fixes: z = h(x0) + D w + n. w are the errors that IMU noise
    adds between the fixes; they are treated as correlated noise of the fixes. x and P are those of
    `first_state`.
    """
    # One step is enough: the fixes depend linearly on the velocity, and other errors are small.
    position, H_fixes, growth, noise = sensitivities(x.copy(), events, count)
    H = (H_fixes @ growth).reshape(3 * count, ERRORS)
    S = H @ P @ H.T
    for j in range(count):
        rows = slice(3 * j, 3 * j + 3)
        S[rows, rows] += events.fix_covariance[j]
        at_start = np.linalg.solve(growth[j], noise[j] @ H_fixes[j].T)
        for k in range(j, count):
            columns = slice(3 * k, 3 * k + 3)
            common_noise = H_fixes[k] @ growth[k] @ at_start
            S[columns, rows] += common_noise
            if k > j:
                S[rows, columns] += common_noise.T
    K = np.linalg.solve(S, H @ P).T
    error = K @ (events.fix[:count] - position).reshape(-1)
    corrected = x.copy()
    corrected[:6] += error[:6]
    attitude = Rotation.from_rotvec(error[ATTITUDE:GYROSCOPE_BIAS]) * Rotation.from_quat(x[6:10])
    corrected[6:10] = attitude.as_quat()
    corrected[10:] += error[GYROSCOPE_BIAS:]
    covariance = P - K @ H @ P
    return corrected, 0.5 * (covariance + covariance.T)


def _grid(origin_ns: int, first_ns: int, last_ns: int, frequency: float) -> IntArray:
    """Return the times origin + n period, n >= 0, from `first_ns` to `last_ns`.

    The period is truncated to whole ns. JudgeError for more than 2 million times.
    """
    period = int(1e9 / frequency)
    first = max(-(-(first_ns - origin_ns) // period), 0)
    count = max((last_ns - origin_ns) // period - first + 1, 0)
    if count > _MAX_ESTIMATES:
        raise JudgeError(
            f'{frequency:g} Hz from {first_ns} to {last_ns} ns gives {count} estimates; must be '
            f'at most {_MAX_ESTIMATES}'
        )
    return origin_ns + period * np.arange(first, first + count, dtype=np.int64)


def output_times(
    inputs: InertialInputs, settings: InertialSettings, start_ns: int | None
) -> IntArray:
    """Return the times of the estimates: a grid from `start_ns`, or else from the first fix."""
    first_ns, last_ns = int(inputs.fix_ns[0]), int(inputs.imu_ns[-1])
    origin_ns = first_ns if start_ns is None else start_ns
    return _grid(origin_ns, first_ns, last_ns, settings.output_frequency)


def merge_events(
    inputs: InertialInputs, settings: InertialSettings, out_ns: IntArray
) -> InertialEvents:
    """Merge IMU messages, fixes, estimates and vehicle constraints into one sequence.

    It lasts from the first fix to the last IMU message. The first fix starts the filter and is not
    among its corrections.
    """
    start_ns, end_ns = int(inputs.fix_ns[0]), int(inputs.imu_ns[-1])
    hold = np.square([settings.lateral_deviation, settings.vertical_deviation])
    hold_ns = np.zeros(0, dtype=np.int64)
    if hold.any():
        hold_ns = _grid(start_ns, start_ns, end_ns, settings.vehicle_frequency)
    later_imu_ns = inputs.imu_ns[inputs.imu_ns > start_ns]
    fix_ns = inputs.fix_ns[1:]
    time_ns = np.unique(np.concatenate([[start_ns], later_imu_ns, fix_ns, hold_ns, out_ns]))
    event_time, imu_time = (time_ns - start_ns) * 1e-9, (inputs.imu_ns - start_ns) * 1e-9

    def interpolate(values: FloatArray) -> FloatArray:
        return np.stack([np.interp(event_time, imu_time, column) for column in values.T], axis=1)

    earth = settings.turning_earth(inputs.origin, inputs.imu_ns)
    return InertialEvents(
        time_ns=time_ns,
        rate=interpolate(inputs.rate),
        force=interpolate(inputs.force),
        noise=_noise(inputs, settings, time_ns),
        fix_at=np.searchsorted(time_ns, fix_ns),
        fix=np.ascontiguousarray(inputs.fix[1:]),
        fix_covariance=np.ascontiguousarray(inputs.fix_covariance[1:]),
        out_at=np.searchsorted(time_ns, out_ns),
        hold_at=np.searchsorted(time_ns, hold_ns),
        antenna=inputs.antenna - inputs.imu_arm,
        base=-inputs.imu_arm,
        gravity=settings.gravity,
        earth=np.zeros((2, 3)) if earth is None else np.stack([earth.rate, earth.gradient]),
        gate=settings.gate**2 if settings.gate > 0.0 else math.inf,
        gate_timeout_ns=round(settings.gate_timeout * 1e9),
        doubt=settings.start.moving_tilt_deviation**2,
        still=settings.start.still_speed,
        hold=hold,
    )


def _noise(inputs: InertialInputs, settings: InertialSettings, time_ns: IntArray) -> FloatArray:
    """Return the squared noise densities for the interval that ends at each time, (k, 4)."""
    noise = np.tile(
        np.square([
            settings.gyroscope_noise, settings.accelerometer_noise,
            settings.gyroscope_bias_walk, settings.accelerometer_bias_walk,
        ]),
        (len(time_ns), 1),
    )  # fmt: skip
    # An error that is constant over a gap of length T, with deviation s, integrates to a deviation
    # of s T. So does white noise with the density s sqrt(T).
    span = np.diff(inputs.imu_ns) * 1e-9
    after = np.clip(np.searchsorted(inputs.imu_ns, time_ns), 1, len(inputs.imu_ns) - 1)
    gap = np.where(span[after - 1] > settings.longest_gap, span[after - 1], 0.0)
    noise[:, 0] += settings.gap_rate**2 * gap
    noise[:, 1] += settings.gap_acceleration**2 * gap
    return noise
