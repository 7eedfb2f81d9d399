# SPDX-License-Identifier: Apache-2.0
"""The event loop of the error-state filter: move, correct, hand out, in the order of time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sim_sensors.core.compilation import compiled, kernel
from sim_sensors.core.measurements import FloatArray, IntArray
from .strapdown import (
    ACCELEROMETER_BIAS,
    ATTITUDE,
    ERRORS,
    GYROSCOPE_BIAS,
    POSITION,
    VELOCITY,
    antenna_measurement,
    distance,
    grow,
    heading_unobservable_at_rest,
    move,
    speed_measurement,
    update,
)


class InertialEvents(NamedTuple):
    """Everything that happens, at k times."""

    time_ns: IntArray  # (k,) Strictly increasing; the filter starts at the first
    # (k, 3) Of the IMU at these times, interpolated; rad/s and m/s^2, axes of base_link.
    rate: FloatArray
    force: FloatArray
    # (k, 4) Densities squared of gyroscope, accelerometer and the walks of their biases, over the
    # interval that ends at each time.
    noise: FloatArray
    fix_at: IntArray  # (m,) Index of the time of each fix; never decreasing
    # (m, 3), (m, 3, 3)
    fix: FloatArray
    fix_covariance: FloatArray
    # (o,), (h,) Indices of the times of estimates, and of those at which the vehicle's speed is
    # held.
    out_at: IntArray
    hold_at: IntArray
    # (3,) Positions of the antenna and of base_link seen from the IMU, axes of base_link, m.
    antenna: FloatArray
    base: FloatArray
    gravity: float  # m/s^2
    earth: FloatArray  # (2, 3) Rate and gradient of the Earth, rad/s and 1/s^2; zeros: none
    gate: float  # squared Mahalanobis distance from which on a fix is refused; infinity: none
    gate_timeout_ns: int  # after so long without an accepted fix the next one is taken
    doubt: float  # what the variance of the attitude then grows by, rad^2
    still: float  # estimated speed below which fixes tell no heading, m/s
    # (2,) Variance of the lateral and of the vertical speed, (m/s)^2; 0: not held.
    hold: FloatArray


class Taken(NamedTuple):
    """What the loop fills."""

    # (o, 16), (o, 15, 15) State and covariance of each estimate.
    x: FloatArray
    P: FloatArray
    nis: FloatArray  # (m,) Normalised innovation squared of each fix
    accepted: IntArray  # (m,) 1: corrected; 0: refused; 2: taken after the patience was over
    attitude: FloatArray  # (m, 4) Quaternion at each fix, after it
    hold_nis: FloatArray  # (h,)

    @classmethod
    def room(cls, events: InertialEvents) -> Taken:
        """Return room for what the loop will fill."""
        o, m, h = len(events.out_at), len(events.fix_at), len(events.hold_at)
        return cls(
            np.zeros((o, 16)),
            np.zeros((o, ERRORS, ERRORS)),
            np.zeros(m),
            np.zeros(m, dtype=np.int64),
            np.zeros((m, 4)),
            np.zeros(h),
        )


@kernel
def _advance(
    x: FloatArray, ev: InertialEvents, k: int, F: FloatArray, half: FloatArray, work: FloatArray
) -> None:
    """Move the state to time k from the one before, fill F and half the noise."""
    dt = (ev.time_ns[k] - ev.time_ns[k - 1]) * 1e-9
    rate, force = work[10], work[11]
    for i in range(3):
        rate[i] = 0.5 * (ev.rate[k - 1, i] + ev.rate[k, i])
        force[i] = 0.5 * (ev.force[k - 1, i] + ev.force[k, i])
        half[POSITION + i] = 0.0
        half[VELOCITY + i] = 0.5 * dt * ev.noise[k, 1]
        half[ATTITUDE + i] = 0.5 * dt * ev.noise[k, 0]
        half[GYROSCOPE_BIAS + i] = 0.5 * dt * ev.noise[k, 2]
        half[ACCELEROMETER_BIAS + i] = 0.5 * dt * ev.noise[k, 3]
    move(x, rate, force, dt, ev.gravity, ev.earth, F, work)


@compiled
def run(x: FloatArray, P: FloatArray, ev: InertialEvents, taken: Taken) -> None:
    """Run the filter from x, (16,), and P, (15, 15), at the first time, changed in place."""
    F, A, half = np.zeros((ERRORS, ERRORS)), np.zeros((ERRORS, ERRORS)), np.zeros(ERRORS)
    H, PH, K = np.zeros((4, ERRORS)), np.zeros((ERRORS, 3)), np.zeros((ERRORS, 3))
    L, J, R = np.zeros((4, 3)), np.zeros((4, 4)), np.zeros((3, 3))
    nu, e, work, V = np.zeros(3), np.zeros(16), np.zeros((12, 4)), np.zeros((3, 3))
    blind, none = np.zeros((2, 3)), np.zeros((2, 3))
    next_fix = next_out = next_hold = 0
    last_ns = ev.time_ns[0]
    for k in range(len(ev.time_ns)):
        if k > 0:
            _advance(x, ev, k, F, half, work)
            grow(P, F, half, A)
        while next_fix < len(ev.fix_at) and ev.fix_at[next_fix] == k:
            covariance = ev.fix_covariance[next_fix]
            antenna_measurement(x, ev.antenna, H, R)
            for i in range(3):
                nu[i] = ev.fix[next_fix, i] - H[3, i]
            nis = distance(P, H, nu, covariance, 3, PH, L)
            taken.nis[next_fix] = nis
            if nis < ev.gate:
                taken.accepted[next_fix] = 1
            elif ev.time_ns[k] - last_ns >= ev.gate_timeout_ns:
                # What was not believed for so long is so: then it is the state that is wrong.
                taken.accepted[next_fix] = 2
                elapsed = max((ev.time_ns[k] - last_ns) * 1e-9, 1e-3)
                for i in range(3):
                    square = nu[0] * nu[0] + nu[1] * nu[1] + nu[2] * nu[2]
                    P[POSITION + i, POSITION + i] += square
                    P[VELOCITY + i, VELOCITY + i] += square / (elapsed * elapsed)
                    P[ATTITUDE + i, ATTITUDE + i] += ev.doubt
                distance(P, H, nu, covariance, 3, PH, L)
            if taken.accepted[next_fix] > 0:
                heading_unobservable_at_rest(x, P, ev.still, blind, R)
                update(x, P, H, covariance, 3, PH, L, K, A, e, J, blind)
                last_ns = ev.time_ns[k]
            for i in range(4):
                taken.attitude[next_fix, i] = x[6 + i]
            next_fix += 1
        while next_hold < len(ev.hold_at) and ev.hold_at[next_hold] == k:
            m = speed_measurement(x, ev.rate[k], ev.base, ev.hold, H, nu, V, R)
            taken.hold_nis[next_hold] = distance(P, H, nu, V, m, PH, L)
            update(x, P, H, V, m, PH, L, K, A, e, J, none)
            next_hold += 1
        while next_out < len(ev.out_at) and ev.out_at[next_out] == k:
            for i in range(len(x)):
                taken.x[next_out, i] = x[i]
            for i in range(ERRORS):
                for j in range(ERRORS):
                    taken.P[next_out, i, j] = P[i, j]
            next_out += 1


@compiled
def sensitivities(
    x: FloatArray, ev: InertialEvents, count: int
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Move without corrections to the first `count` fixes, from x, (16,), changed in place.

    Returns the position of the antenna at the fixes, (count, 3) in m; its derivative with respect
    to the errors there, (count, 3, 15); the growth of the first errors up to there and the
    covariance that the interval adds, both (count, 15, 15).
    """
    position, looked = np.zeros((count, 3)), np.zeros((count, 3, ERRORS))
    growth, noise = np.zeros((count, ERRORS, ERRORS)), np.zeros((count, ERRORS, ERRORS))
    F, A, half = np.zeros((ERRORS, ERRORS)), np.zeros((ERRORS, ERRORS)), np.zeros(ERRORS)
    Q, total = np.zeros((ERRORS, ERRORS)), np.eye(ERRORS)
    H, R, work = np.zeros((4, ERRORS)), np.zeros((3, 3)), np.zeros((12, 4))
    done = 0
    for k in range(len(ev.time_ns)):
        if done == count:
            break
        if k > 0:
            _advance(x, ev, k, F, half, work)
            grow(Q, F, half, A)
            for i in range(ERRORS):
                for j in range(ERRORS):
                    A[i, j] = 0.0
                    for n in range(ERRORS):
                        A[i, j] += F[i, n] * total[n, j]
            for i in range(ERRORS):
                for j in range(ERRORS):
                    total[i, j] = A[i, j]
        while done < count and ev.fix_at[done] == k:
            antenna_measurement(x, ev.antenna, H, R)
            for i in range(3):
                position[done, i] = H[3, i]
                for j in range(ERRORS):
                    looked[done, i, j] = H[i, j]
            for i in range(ERRORS):
                for j in range(ERRORS):
                    growth[done, i, j] = total[i, j]
                    noise[done, i, j] = Q[i, j]
            done += 1
    return position, looked, growth, noise
