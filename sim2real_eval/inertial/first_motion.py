# SPDX-License-Identifier: Apache-2.0
"""The first state of the error-state filter, and what the first fixes tell of it."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from sim2real_eval.inertial.alignment import FirstAttitude
from sim2real_eval.inertial.front_end import InertialInputs
from sim2real_eval.inertial.loop import InertialEvents, sensitivities
from sim2real_eval.inertial.settings import InertialSettings
from sim2real_eval.inertial.strapdown import (
    ACCELEROMETER_BIAS,
    ATTITUDE,
    ERRORS,
    GYROSCOPE_BIAS,
    POSITION,
    STATES,
    VELOCITY,
)
from sim_sensors.measurements import FloatArray

__all__ = ['first_moving_interval', 'first_state', 'fixes_of_the_start']


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
