# SPDX-License-Identifier: Apache-2.0
"""The first state of the error-state filter, and what the first fixes tell of it."""

from __future__ import annotations

import math

import numpy as np
from scipy.spatial.transform import Rotation

from sim2real_eval.common.errors import JudgeError
from sim2real_eval.judge.error_state.loop import InertialEvents, sensitivities
from sim2real_eval.judge.inertial.alignment import FirstAttitude
from sim2real_eval.judge.inertial.front_end import InertialInputs
from sim2real_eval.judge.inertial.settings import InertialSettings
from sim2real_eval.judge.inertial.strapdown import (
    ACCELEROMETER_BIAS,
    ATTITUDE,
    ERRORS,
    GYROSCOPE_BIAS,
    POSITION,
    STATES,
    VELOCITY,
)
from sim_sensors.core.measurements import FloatArray, IntArray


def first_state(
    inputs: InertialInputs, attitude: FirstAttitude, settings: InertialSettings
) -> tuple[FloatArray, FloatArray]:
    """Return state, (16,), and covariance, (15, 15), at the first fix, from that fix alone.

    The velocity is 0 with the deviation `start.speed_deviation`: the filter is linear in it, so
    that the fixes that follow tell it whatever it is.
    """
    start = settings.start
    x, P = np.zeros(STATES), np.zeros((ERRORS, ERRORS))
    arm = Rotation.from_quat(attitude.orientation).apply(inputs.antenna - inputs.imu_arm)
    x[:3] = inputs.fix[0] - arm
    x[6:10] = attitude.orientation
    x[10:13] = attitude.gyroscope_bias
    p, v, a, g, f = (
        slice(first, first + 3)
        for first in (POSITION, VELOCITY, ATTITUDE, GYROSCOPE_BIAS, ACCELEROMETER_BIAS)
    )
    variance = start.accelerometer_bias_deviation**2
    P[v, v] = start.speed_deviation**2 * np.eye(3)
    P[a, a] = attitude.covariance
    P[g, g] = np.diag(attitude.gyroscope_bias_variance)
    P[f, f] = variance * np.eye(3)
    P[a, f] = attitude.bias_coupling * variance
    P[f, a] = P[a, f].T
    # p = fix - R arm, so that its error is that of the fix and [R arm] times that of the attitude.
    lever = np.cross(np.eye(3), arm)
    P[p, :] = lever @ P[a, :]
    P[:, p] = P[p, :].T
    P[p, p] = inputs.fix_covariance[0] + lever @ attitude.covariance @ lever.T
    return x, P


def fixes_of_the_start(inputs: InertialInputs, settings: InertialSettings) -> int:
    """Return how many fixes after the first the look back uses: those of `start.time`, one at
    least where there is one.
    """
    time = (inputs.fix_ns - inputs.fix_ns[0]) * 1e-9
    return min(max(int(np.sum(time <= settings.start.time)) - 1, 1), len(time) - 1)


def first_moving_interval(
    x: FloatArray, P: FloatArray, events: InertialEvents, count: int
) -> tuple[FloatArray, FloatArray]:
    """Return the state at the first fix and its covariance, given the `count` fixes that follow.

    Least squares over all of them at once, with the noise of the IMU between as correlated noise
    of the fixes: what is measured is z = h(x0) + D w + n, w the errors that the noise adds.

    Parameters
    ----------
    x, P : (16,), (15, 15) float
        Before; see `first_state`.
    events : InertialEvents
        Whose fixes are those that follow.
    count : int
        May be 0.
    """
    if count == 0:
        return x.copy(), P.copy()
    # As the dependence on velocity is linear and all else is known well enough to be, one step.
    position, looked, growth, noise = sensitivities(x.copy(), events, count)
    H = (looked @ growth).reshape(3 * count, ERRORS)
    S = H @ P @ H.T
    for j in range(count):
        rows = slice(3 * j, 3 * j + 3)
        S[rows, rows] += events.fix_covariance[j]
        unfold = np.linalg.solve(growth[j], noise[j] @ looked[j].T)
        for k in range(j, count):
            columns = slice(3 * k, 3 * k + 3)
            shared = looked[k] @ growth[k] @ unfold
            S[columns, rows] += shared
            if k > j:
                S[rows, columns] += shared.T
    K = np.linalg.solve(S, H @ P).T
    error = K @ (events.fix[:count] - position).reshape(-1)
    known = x.copy()
    known[:6] += error[:6]
    turned = Rotation.from_rotvec(error[ATTITUDE:GYROSCOPE_BIAS]) * Rotation.from_quat(x[6:10])
    known[6:10] = turned.as_quat()
    known[10:] += error[GYROSCOPE_BIAS:]
    left = P - K @ H @ P
    return known, 0.5 * (left + left.T)


# All that happens in a run, merged into one row of times, with the IMU interpolated to
# them.

_MOST_ESTIMATES = 2_000_000


def grid(origin_ns: int, first_ns: int, last_ns: int, frequency: float) -> IntArray:
    """Return origin + n period, n >= 0, from `first_ns` to `last_ns`; period in whole ns, cut.

    Raises
    ------
    JudgeError
        When there would be too many to hold.
    """
    period = int(1e9 / frequency)
    first = max(-(-(first_ns - origin_ns) // period), 0)
    count = max((last_ns - origin_ns) // period - first + 1, 0)
    if count > _MOST_ESTIMATES:
        raise JudgeError(
            f'{frequency:g} Hz from {first_ns} to {last_ns} ns gives {count} estimates; must be '
            f'at most {_MOST_ESTIMATES}'
        )
    return origin_ns + period * np.arange(first, first + count, dtype=np.int64)


def merge_events(
    inputs: InertialInputs, settings: InertialSettings, out_ns: IntArray, first_fix: int = 0
) -> InertialEvents:
    """Merge IMU messages, fixes, estimates and holds, from the first fix to the last IMU message.

    Parameters
    ----------
    inputs : InertialInputs
    settings : InertialSettings
    out_ns : (o,) int64
        When estimates are due; within that time.
    first_fix : int
        Fixes before this one start the filter and are not among its corrections.
    """
    start_ns, end_ns = int(inputs.fix_ns[0]), int(inputs.imu_ns[-1])
    hold = np.square([settings.lateral_deviation, settings.vertical_deviation])
    hold_ns = np.zeros(0, dtype=np.int64)
    if hold.any():
        hold_ns = grid(start_ns, start_ns, end_ns, settings.vehicle_frequency)
    within = inputs.imu_ns[inputs.imu_ns > start_ns]
    fix_ns = inputs.fix_ns[first_fix:]
    time_ns = np.unique(np.concatenate([[start_ns], within, fix_ns, hold_ns, out_ns]))
    at, known = (time_ns - start_ns) * 1e-9, (inputs.imu_ns - start_ns) * 1e-9

    def interpolated(values: FloatArray) -> FloatArray:
        return np.stack([np.interp(at, known, column) for column in values.T], axis=1)

    return InertialEvents(
        time_ns=time_ns,
        rate=interpolated(inputs.rate),
        force=interpolated(inputs.force),
        noise=_noise(inputs, settings, time_ns),
        fix_at=np.searchsorted(time_ns, fix_ns),
        fix=np.ascontiguousarray(inputs.fix[first_fix:]),
        fix_covariance=np.ascontiguousarray(inputs.fix_covariance[first_fix:]),
        out_at=np.searchsorted(time_ns, out_ns),
        hold_at=np.searchsorted(time_ns, hold_ns),
        antenna=inputs.antenna - inputs.imu_arm,
        base=-inputs.imu_arm,
        gravity=settings.gravity,
        gate=settings.gate**2 if settings.gate > 0.0 else math.inf,
        gate_timeout_ns=round(settings.gate_timeout * 1e9),
        doubt=settings.start.moving_tilt_deviation**2,
        still=settings.start.still_speed,
        hold=hold,
    )


def _noise(inputs: InertialInputs, settings: InertialSettings, time_ns: IntArray) -> FloatArray:
    """Return the squared densities over the interval that ends at each time, (k, 4)."""
    noise = np.tile(
        np.square([
            settings.gyroscope_noise, settings.accelerometer_noise,
            settings.gyroscope_bias_walk, settings.accelerometer_bias_walk,
        ]),
        (len(time_ns), 1),
    )  # fmt: skip
    # An error s that is constant over a gap of length T comes to s T, as does white noise of the
    # density s sqrt(T).
    span = np.diff(inputs.imu_ns) * 1e-9
    after = np.clip(np.searchsorted(inputs.imu_ns, time_ns), 1, len(inputs.imu_ns) - 1)
    gap = np.where(span[after - 1] > settings.longest_gap, span[after - 1], 0.0)
    noise[:, 0] += settings.gap_rate**2 * gap
    noise[:, 1] += settings.gap_acceleration**2 * gap
    return noise
