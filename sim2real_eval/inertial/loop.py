# SPDX-License-Identifier: Apache-2.0
"""The event loop of the error-state filter: move, correct, hand out, in the order of time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sim2real_eval.inertial.strapdown import (
    ACCELEROMETER_BIAS,
    ATTITUDE,
    ERRORS,
    GYROSCOPE_BIAS,
    POSITION,
    VELOCITY,
    grow,
    move,
)
from sim2real_eval.inertial.update import distance, update
from sim2real_eval.judge.rotations import matrix_from_quaternion
from sim_sensors.compilation import compiled, kernel
from sim_sensors.measurements import FloatArray, IntArray

__all__ = ['Events', 'Taken', 'run', 'sensitivities']


class Events(NamedTuple):
    """Everything that happens, at k times.

    Attributes
    ----------
    time_ns : (k,) int64
        Strictly increasing; the filter starts at the first.
    rate, force : (k, 3) float
        Of the IMU at these times, interpolated; rad/s and m/s^2, axes of base_link.
    noise : (k, 4) float
        Densities squared of gyroscope, accelerometer and the walks of their biases, over the
        interval that ends at each time.
    fix_at : (m,) int64
        Index of the time of each fix; never decreasing.
    fix, fix_covariance : (m, 3), (m, 3, 3) float
    out_at, hold_at : (o,), (h,) int64
        Indices of the times of estimates, and of those at which the vehicle's speed is held.
    antenna, base : (3,) float
        Positions of the antenna and of base_link seen from the IMU, axes of base_link, m.
    gravity : float
        m/s^2.
    gate : float
        Squared Mahalanobis distance from which on a fix is refused; infinity: none.
    patience_ns : int
        After so long without an accepted fix the next one is taken.
    doubt : float
        What the variance of the attitude then grows by, rad^2.
    hold : (2,) float
        Variance of the lateral and of the vertical speed, (m/s)^2; 0: not held.
    """

    time_ns: IntArray
    rate: FloatArray
    force: FloatArray
    noise: FloatArray
    fix_at: IntArray
    fix: FloatArray
    fix_covariance: FloatArray
    out_at: IntArray
    hold_at: IntArray
    antenna: FloatArray
    base: FloatArray
    gravity: float
    gate: float
    patience_ns: int
    doubt: float
    hold: FloatArray


class Taken(NamedTuple):
    """What the loop fills.

    Attributes
    ----------
    x, P : (o, 16), (o, 15, 15) float
        State and covariance of each estimate.
    nis : (m,) float
        Normalised innovation squared of each fix.
    accepted : (m,) int64
        1: corrected; 0: refused; 2: taken after the patience was over.
    attitude : (m, 4) float
        Quaternion at each fix, after it.
    hold_nis : (h,) float
    """

    x: FloatArray
    P: FloatArray
    nis: FloatArray
    accepted: IntArray
    attitude: FloatArray
    hold_nis: FloatArray

    @classmethod
    def room(cls, events: Events) -> Taken:
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
def _look_at_antenna(x: FloatArray, arm: FloatArray, H: FloatArray, R: FloatArray) -> None:
    """Fill H, (3, 15), with the derivative of the antenna's position, and H[3, :3] with it."""
    matrix_from_quaternion(x[6:10], R)
    for i in range(3):
        for j in range(ERRORS):
            H[i, j] = 0.0
        H[i, POSITION + i] = 1.0
        H[3, i] = R[i, 0] * arm[0] + R[i, 1] * arm[1] + R[i, 2] * arm[2]
    a0, a1, a2 = H[3, 0], H[3, 1], H[3, 2]
    # Exp(e) R arm = R arm - [R arm] e.
    H[0, ATTITUDE + 1], H[0, ATTITUDE + 2] = a2, -a1
    H[1, ATTITUDE], H[1, ATTITUDE + 2] = -a2, a0
    H[2, ATTITUDE], H[2, ATTITUDE + 1] = a1, -a0
    for i in range(3):
        H[3, i] += x[i]


@kernel
def _look_at_speed(
    x: FloatArray,
    rate: FloatArray,
    base: FloatArray,
    hold: FloatArray,
    H: FloatArray,
    nu: FloatArray,
    V: FloatArray,
    R: FloatArray,
) -> int:
    """Fill H, nu and V for the held speeds of base_link; return how many there are.

    The velocity of base_link in the body is R' v + (w - b) x base.
    """
    matrix_from_quaternion(x[6:10], R)
    v0, v1, v2 = x[3], x[4], x[5]
    w0, w1, w2 = rate[0] - x[10], rate[1] - x[11], rate[2] - x[12]
    m = 0
    for axis in range(1, 3):
        if hold[axis - 1] > 0.0:
            for j in range(ERRORS):
                H[m, j] = 0.0
            r0, r1, r2 = R[0, axis], R[1, axis], R[2, axis]
            H[m, VELOCITY], H[m, VELOCITY + 1], H[m, VELOCITY + 2] = r0, r1, r2
            # R' Exp(-e) v = R' v + R' [v] e.
            H[m, ATTITUDE] = r1 * v2 - r2 * v1
            H[m, ATTITUDE + 1] = r2 * v0 - r0 * v2
            H[m, ATTITUDE + 2] = r0 * v1 - r1 * v0
            if axis == 1:
                speed = w2 * base[0] - w0 * base[2]
                H[m, GYROSCOPE_BIAS], H[m, GYROSCOPE_BIAS + 2] = base[2], -base[0]
            else:
                speed = w0 * base[1] - w1 * base[0]
                H[m, GYROSCOPE_BIAS], H[m, GYROSCOPE_BIAS + 1] = -base[1], base[0]
            nu[m] = -(speed + r0 * v0 + r1 * v1 + r2 * v2)
            V[m, 0] = V[m, 1] = 0.0
            V[m, m] = hold[axis - 1]
            m += 1
    return m


@kernel
def _advance(
    x: FloatArray, ev: Events, k: int, F: FloatArray, half: FloatArray, work: FloatArray
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
    move(x, rate, force, dt, ev.gravity, F, work)


@compiled
def run(x: FloatArray, P: FloatArray, ev: Events, taken: Taken) -> None:
    """Run the filter.

    Parameters
    ----------
    x : (16,) float
        State at the first time; changed in place, as is P, (15, 15).
    P : (15, 15) float
    ev : Events
    taken : Taken
        Filled.
    """
    F, A, half = np.zeros((ERRORS, ERRORS)), np.zeros((ERRORS, ERRORS)), np.zeros(ERRORS)
    H, PH, K = np.zeros((4, ERRORS)), np.zeros((ERRORS, 3)), np.zeros((ERRORS, 3))
    L, J, R = np.zeros((4, 3)), np.zeros((4, 4)), np.zeros((3, 3))
    nu, e, work, V = np.zeros(3), np.zeros(16), np.zeros((12, 4)), np.zeros((3, 3))
    next_fix = next_out = next_hold = 0
    last_ns = ev.time_ns[0]
    for k in range(len(ev.time_ns)):
        if k > 0:
            _advance(x, ev, k, F, half, work)
            grow(P, F, half, A)
        while next_fix < len(ev.fix_at) and ev.fix_at[next_fix] == k:
            covariance = ev.fix_covariance[next_fix]
            _look_at_antenna(x, ev.antenna, H, R)
            for i in range(3):
                nu[i] = ev.fix[next_fix, i] - H[3, i]
            nis = distance(P, H, nu, covariance, 3, PH, L)
            taken.nis[next_fix] = nis
            if nis < ev.gate:
                taken.accepted[next_fix] = 1
            elif ev.time_ns[k] - last_ns >= ev.patience_ns:
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
                update(x, P, H, covariance, 3, PH, L, K, A, e, J)
                last_ns = ev.time_ns[k]
            for i in range(4):
                taken.attitude[next_fix, i] = x[6 + i]
            next_fix += 1
        while next_hold < len(ev.hold_at) and ev.hold_at[next_hold] == k:
            m = _look_at_speed(x, ev.rate[k], ev.base, ev.hold, H, nu, V, R)
            taken.hold_nis[next_hold] = distance(P, H, nu, V, m, PH, L)
            update(x, P, H, V, m, PH, L, K, A, e, J)
            next_hold += 1
        while next_out < len(ev.out_at) and ev.out_at[next_out] == k:
            taken.x[next_out] = x
            taken.P[next_out] = P
            next_out += 1


@compiled
def sensitivities(
    x: FloatArray, ev: Events, count: int
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Move without corrections to the first `count` fixes.

    Parameters
    ----------
    x : (16,) float
        State at the first time; changed in place.
    ev : Events
    count : int

    Returns
    -------
    position : (count, 3) float
        Of the antenna at the fixes, m.
    H : (count, 3, 15) float
        Its derivative with respect to the errors there.
    growth : (count, 15, 15) float
        Of the first errors up to there.
    noise : (count, 15, 15) float
        Covariance that the interval adds.
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
            total[:, :] = A
        while done < count and ev.fix_at[done] == k:
            _look_at_antenna(x, ev.antenna, H, R)
            position[done] = H[3, :3]
            looked[done] = H[:3]
            growth[done] = total
            noise[done] = Q
            done += 1
    return position, looked, growth, noise
