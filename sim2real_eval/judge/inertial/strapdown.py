# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Error-state filter with strapdown integration, compiled.

State, (16,): position p and velocity v of the IMU, east-north-up; quaternion x y z w of base_link;
gyroscope bias b and accelerometer bias a, along the axes of base_link. Errors, (15,): truth =
estimate + error, for the attitude truth = Exp(error) estimate, about the axes of the world
([Sola2017], section 7).

The integration is exact for a rate w and force f that are constant in the body over an interval.
Let phi = (w - b) dt, g the gravity and Gamma_n = sum of [phi]^k / (k + n)! over k >= 0:

    p <- p + v dt + (g / 2 + R Gamma_2 (f - a)) dt^2
    v <- v + (g + R Gamma_1 (f - a)) dt              R <- R Exp(phi)
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sim_sensors.core.compilation import compiled, kernel
from sim_sensors.core.compiled_rotations import (
    coefficients,
    cross,
    matrix_from_quaternion,
    multiply,
    quaternion_from_vector,
    skew,
)
from sim_sensors.core.measurements import FloatArray, IntArray

STATES = 16
"""Length of the state: 3 position, 3 velocity, 4 attitude, 3 and 3 biases."""

ERRORS = 15
POSITION, VELOCITY, ATTITUDE, GYROSCOPE_BIAS, ACCELEROMETER_BIAS = 0, 3, 6, 9, 12
"""Number of the first of the three errors of each kind."""

_QUATERNION, _GYROSCOPE, _ACCELEROMETER = 6, 10, 13


@kernel
def rotate_in_world(q: FloatArray, e: FloatArray, scratch: FloatArray) -> None:
    """Replace the attitude q, (4,), by Exp(e) q."""
    quaternion_from_vector(e, scratch)
    multiply(scratch, q, q)


@kernel
def add_error(x: FloatArray, e: FloatArray, scratch: FloatArray) -> None:
    """Add an error, (15,), to a state, (16,); scratch (4,)."""
    for i in range(6):
        x[i] += e[i]
    rotate_in_world(x[_QUATERNION:_GYROSCOPE], e[ATTITUDE:GYROSCOPE_BIAS], scratch)
    for i in range(6):
        x[_GYROSCOPE + i] += e[GYROSCOPE_BIAS + i]


@kernel
def propagate_state(
    x: FloatArray, rate: FloatArray, force: FloatArray, dt: float, gravity: float,
    earth: FloatArray, F: FloatArray, work: FloatArray,
) -> None:  # fmt: skip
    """Move the state, (16,), over an interval, s, and fill the transition F of its errors.

    Rate, rad/s, and force, m/s^2, are measured means. Rows of F, (15, 15), from 9 are those of the
    identity. The derivative of Gamma_n by phi is of first order in phi. This gives relative errors
    of phi^2 / 12 in the small effect of a gyroscope bias on velocity and position.

    `earth`, (2, 3), is rate and gradient of `sim_sensors.world.earth.TurningEarth`, or zeros. F
    contains the rate, but not the gradient, which matters after many minutes without fixes.
    """
    R, phi, f, c1, c2 = work[0:3, 0:3], work[3], work[4], work[5], work[6]
    s1, s2 = work[7], work[8]
    q = x[_QUATERNION:_GYROSCOPE]
    matrix_from_quaternion(q, R)
    for i in range(3):
        phi[i] = (rate[i] - x[_GYROSCOPE + i]) * dt
        f[i] = force[i] - x[_ACCELEROMETER + i]
    W = earth[0]
    turns = W[1] != 0.0 or W[2] != 0.0
    if turns:
        for i in range(3):
            phi[i] -= (R[0, i] * W[0] + R[1, i] * W[1] + R[2, i] * W[2]) * dt
    t2 = phi[0] * phi[0] + phi[1] * phi[1] + phi[2] * phi[2]
    _, A, B, C = coefficients(t2)
    cross(phi, f, c1)
    cross(phi, c1, c2)
    for i in range(3):
        s1[i] = s2[i] = 0.0
        for k in range(3):
            s1[i] += R[i, k] * (f[k] + A * c1[k] + B * c2[k])
            s2[i] += R[i, k] * (0.5 * f[k] + B * c1[k] + C * c2[k])

    dt2 = dt * dt
    for i in range(ERRORS):
        for j in range(ERRORS):
            F[i, j] = 1.0 if i == j else 0.0
    for i in range(3):
        F[POSITION + i, VELOCITY + i] = dt
        for j in range(3):
            F[POSITION + i, ATTITUDE + j] = -skew(s2, i, j) * dt2
            F[VELOCITY + i, ATTITUDE + j] = -skew(s1, i, j) * dt
            gamma1 = gamma2 = slope1 = slope2 = 0.0
            for k in range(3):
                # [phi]^2 = phi phi' - phi^2 I.
                square = phi[k] * phi[j] - (t2 if k == j else 0.0)
                turn = skew(phi, k, j)
                identity = 1.0 if k == j else 0.0
                gamma1 += R[i, k] * (identity + A * turn + B * square)
                gamma2 += R[i, k] * (0.5 * identity + B * turn + C * square)
                # [phi][f] = f phi' - (phi . f) I.
                dot = phi[0] * f[0] + phi[1] * f[1] + phi[2] * f[2]
                second = skew(c1, k, j) + f[k] * phi[j] - (dot if k == j else 0.0)
                first = skew(f, k, j)
                slope1 += R[i, k] * (A * first + B * second)
                slope2 += R[i, k] * (B * first + C * second)
            F[ATTITUDE + i, GYROSCOPE_BIAS + j] = -gamma1 * dt
            F[VELOCITY + i, ACCELEROMETER_BIAS + j] = -gamma1 * dt
            F[POSITION + i, ACCELEROMETER_BIAS + j] = -gamma2 * dt2
            F[VELOCITY + i, GYROSCOPE_BIAS + j] = slope1 * dt2
            F[POSITION + i, GYROSCOPE_BIAS + j] = slope2 * dt2 * dt

    if turns:
        cross(W, x[3:6], c1)
        for i in range(3):
            # Acceleration at the position and velocity at the start of the interval.
            c2[i] = earth[1, i] * x[i] - 2.0 * c1[i]
            for j in range(3):
                F[VELOCITY + i, VELOCITY + j] -= 2.0 * skew(W, i, j) * dt
                F[ATTITUDE + i, ATTITUDE + j] -= skew(W, i, j) * dt
    for i in range(3):
        down = -gravity if i == 2 else 0.0
        x[i] += x[3 + i] * dt + (0.5 * down + s2[i]) * dt2
        x[3 + i] += (down + s1[i]) * dt
    if turns:
        for i in range(3):
            x[i] += 0.5 * c2[i] * dt2
            x[3 + i] += c2[i] * dt
    turn4 = work[9]
    quaternion_from_vector(phi, turn4)
    multiply(q, turn4, q)


@kernel
def propagate_covariance(P: FloatArray, F: FloatArray, half: FloatArray, A: FloatArray) -> None:
    """Replace P by F (P + N) F' + N, all (15, 15), N the diagonal matrix of `half`, (15,).

    N is half the noise that an interval adds. The result is the integral of F Q F' by the
    trapezoidal rule: accurate to the third order of the interval, and positive semi-definite.
    """
    for i in range(ERRORS):
        P[i, i] += half[i]
    for i in range(ERRORS):
        for j in range(ERRORS):
            A[i, j] = P[i, j]
        if i < GYROSCOPE_BIAS:
            for k in range(VELOCITY, ERRORS):
                factor = F[i, k]
                if k != i and factor != 0.0:
                    for j in range(ERRORS):
                        A[i, j] += factor * P[k, j]
    for i in range(ERRORS):
        for j in range(i + 1):
            total = A[i, j]
            if j < GYROSCOPE_BIAS:
                for k in range(VELOCITY, ERRORS):
                    if k != j:
                        total += A[i, k] * F[j, k]
            P[i, j] = total
            P[j, i] = total
    for i in range(ERRORS):
        P[i, i] += half[i]


# Correction by up to three measured values.


@kernel
def distance(
    P: FloatArray, H: FloatArray, nu: FloatArray, R: FloatArray, m: int, PH: FloatArray,
    L: FloatArray,
) -> float:  # fmt: skip
    """Return nu' S^-1 nu with S = H P H' + R = L L', and fill PH = P H', (15, 3), and L, (4, 3).

    There are m measured values, at most 3. P is (15, 15); other arrays may be larger than m. The
    first three rows of L are the lower triangle; the last becomes L^-1 nu.
    """
    for i in range(ERRORS):
        for j in range(m):
            total = 0.0
            for k in range(ERRORS):
                total += P[i, k] * H[j, k]
            PH[i, j] = total
    square = 0.0
    for i in range(m):
        for j in range(i + 1):
            total = R[i, j]
            for k in range(ERRORS):
                total += H[i, k] * PH[k, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            L[i, j] = math.sqrt(total) if i == j else total / L[j, j]
        residual = nu[i]
        for k in range(i):
            residual -= L[i, k] * L[3, k]
        L[3, i] = residual / L[i, i]
        square += L[3, i] * L[3, i]
    return square


@kernel
def _fill_gain(PH: FloatArray, L: FloatArray, m: int, K: FloatArray, e: FloatArray) -> None:
    """Fill the gain K = PH S^-1 and the correction e = K nu."""
    # K = (PH L'^-1) L^-1, and e = (PH L'^-1) (L^-1 nu).
    for i in range(ERRORS):
        e[i] = 0.0
        for j in range(m):
            total = PH[i, j]
            for k in range(j):
                total -= K[i, k] * L[j, k]
            K[i, j] = total / L[j, j]
            e[i] += K[i, j] * L[3, j]
        for j in range(m - 1, -1, -1):
            total = K[i, j]
            for k in range(j + 1, m):
                total -= K[i, k] * L[k, j]
            K[i, j] = total / L[j, j]


@kernel
def _exclude_direction(
    first: int, direction: FloatArray, m: int, K: FloatArray, e: FloatArray
) -> None:
    """Remove a direction of three errors, numbered from `first`, from gain and correction."""
    along = 0.0
    for i in range(3):
        along += direction[i] * e[first + i]
    for i in range(3):
        e[first + i] -= direction[i] * along
    for j in range(m):
        along = 0.0
        for i in range(3):
            along += direction[i] * K[first + i, j]
        for i in range(3):
            K[first + i, j] -= direction[i] * along


@kernel
def _joseph_update(
    P: FloatArray, H: FloatArray, R: FloatArray, m: int, PH: FloatArray, K: FloatArray,
    A: FloatArray,
) -> None:  # fmt: skip
    """Replace P by (I - K H) P (I - K H)' + K R K', with A = (I - K H) P; PH is overwritten."""
    for i in range(ERRORS):
        for j in range(ERRORS):
            total = P[i, j]
            for k in range(m):
                total -= K[i, k] * PH[j, k]
            A[i, j] = total
    for i in range(ERRORS):
        for k in range(m):
            total = 0.0
            for j in range(ERRORS):
                total -= A[i, j] * H[k, j]
            for j in range(m):
                total += K[i, j] * R[j, k]
            PH[i, k] = total
    for i in range(ERRORS):
        for j in range(i + 1):
            total = A[i, j]
            for k in range(m):
                total += PH[i, k] * K[j, k]
            P[i, j] = total
            P[j, i] = total


@kernel
def _reset_attitude_error(P: FloatArray, t: FloatArray, J: FloatArray) -> None:
    """Multiply the attitude errors of P by the left Jacobian of the rotation vector t."""
    t2 = t[0] * t[0] + t[1] * t[1] + t[2] * t[2]
    _, a, b, _ = coefficients(t2)
    for i in range(3):
        for j in range(3):
            square = t[i] * t[j] - (t2 if i == j else 0.0)
            J[i, j] = (1.0 if i == j else 0.0) + a * skew(t, i, j) + b * square
    for j in range(ERRORS):
        for i in range(3):
            J[3, i] = 0.0
            for k in range(3):
                J[3, i] += J[i, k] * P[ATTITUDE + k, j]
        for i in range(3):
            P[ATTITUDE + i, j] = J[3, i]
    for j in range(ERRORS):
        for i in range(3):
            J[3, i] = 0.0
            for k in range(3):
                J[3, i] += J[i, k] * P[j, ATTITUDE + k]
        for i in range(3):
            P[j, ATTITUDE + i] = J[3, i]
    for i in range(ERRORS):
        for j in range(i):
            P[i, j] = P[j, i]


@kernel
def update(
    x: FloatArray, P: FloatArray, H: FloatArray, R: FloatArray, m: int, PH: FloatArray,
    L: FloatArray, K: FloatArray, A: FloatArray, e: FloatArray, J: FloatArray, blind: FloatArray,
) -> None:  # fmt: skip
    """Correct state and covariance after `distance`, by the Joseph form, and reset the error.

    The remaining error e' belongs to the corrected attitude: Exp(e') = Exp(truth) Exp(-e), so
    de' = J de with J the left Jacobian of e ([Sola2017], section 7.2.3, there to first order).

    Parameters
    ----------
    x, P, H, R, m, PH, L : as in `distance`; x, (16,), and P are changed in place.
    K, A, J : scratch space, (15, 3), (15, 15) and (4, 4).
    e : (16,), becomes the correction.
    blind : (2, 3), unit vectors of directions of attitude and gyroscope bias that are not
        corrected, or zeros. Their correlations still count (Schmidt's consider filter); the Joseph
        form holds for any gain.
    """
    _fill_gain(PH, L, m, K, e)
    _exclude_direction(ATTITUDE, blind[0], m, K, e)
    _exclude_direction(GYROSCOPE_BIAS, blind[1], m, K, e)
    _joseph_update(P, H, R, m, PH, K, A)
    _reset_attitude_error(P, e[ATTITUDE:GYROSCOPE_BIAS], J)
    add_error(x, e, J[3])


# Measurements: position of the antenna, held speeds, and no heading at rest.


@kernel
def antenna_measurement(x: FloatArray, arm: FloatArray, H: FloatArray, R: FloatArray) -> None:
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
def speed_measurement(
    x: FloatArray, rate: FloatArray, base: FloatArray, hold: FloatArray, H: FloatArray,
    nu: FloatArray, V: FloatArray, R: FloatArray,
) -> int:  # fmt: skip
    """Fill H, nu and V for the held speeds of base_link; return their number.

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
def heading_unobservable_at_rest(
    x: FloatArray, P: FloatArray, still: float, blind: FloatArray, R: FloatArray
) -> None:
    """Fill `blind` of `update` with the vertical if the vehicle stands still, or else with zeros.

    Fixes of a standing vehicle contain no information about the rotation about the vertical and
    the bias of its rate. A linear filter would nevertheless correct them. If the heading is wrong,
    the noise of the force would move the vehicle sideways, and the missing motion seems to
    determine the heading. In truth all the noise is missing from the motion. A vehicle stands
    still if its horizontal speed is below `still` plus two of its deviations (squares added).
    """
    variance = P[VELOCITY, VELOCITY] + P[VELOCITY + 1, VELOCITY + 1]
    stands = 1.0 if x[3] * x[3] + x[4] * x[4] < still * still + 4.0 * variance else 0.0
    matrix_from_quaternion(x[6:10], R)
    blind[0, 2] = stands
    for i in range(3):
        blind[1, i] = stands * R[2, i]


# The event loop: move, correct and output in the order of time.


class InertialEvents(NamedTuple):
    """Messages, fixes, estimates and constraints of a run, merged to k times."""

    time_ns: IntArray  # (k,) Strictly increasing; the filter starts at the first
    # (k, 3) Interpolated IMU rate and force at these times; rad/s and m/s^2, axes of base_link.
    rate: FloatArray
    force: FloatArray
    # (k, 4) Squared densities of gyroscope, accelerometer and their bias walks over the interval
    # that ends at each time.
    noise: FloatArray
    fix_at: IntArray  # (m,) Index of the time of each fix; never decreasing
    fix: FloatArray  # (m, 3)
    fix_covariance: FloatArray  # (m, 3, 3)
    out_at: IntArray  # (o,) Index of the time of each estimate
    hold_at: IntArray  # (h,) Index of each time at which the speed is constrained
    # (3,) Positions of antenna and base_link relative to the IMU, axes of base_link, m.
    antenna: FloatArray
    base: FloatArray
    gravity: float  # m/s^2
    earth: FloatArray  # (2, 3) Rate and gradient of the Earth, rad/s and 1/s^2, or zeros
    gate: float  # squared Mahalanobis distance at which a fix is refused; infinite without a gate
    gate_timeout_ns: int  # time without an accepted fix after which the next fix is accepted
    doubt: float  # increase of the attitude variance in that case, rad^2
    still: float  # speed below which fixes contain no heading, m/s
    # (2,) Variance of lateral and vertical speed, (m/s)^2; 0 without a constraint.
    hold: FloatArray


class LoopOutput(NamedTuple):
    """Results that the event loop fills."""

    # (o, 16), (o, 15, 15) State and covariance of each estimate.
    x: FloatArray
    P: FloatArray
    nis: FloatArray  # (m,) Normalised innovation squared of each fix
    accepted: IntArray  # (m,) 1: accepted; 0: refused; 2: accepted after the timeout
    attitude: FloatArray  # (m, 4) Quaternion after each fix
    hold_nis: FloatArray  # (h,) Normalised innovation squared of each constraint

    @classmethod
    def allocate(cls, events: InertialEvents) -> LoopOutput:
        """Return empty results."""
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
    """Move the state from time k - 1 to k; fill F and half the noise."""
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
    propagate_state(x, rate, force, dt, ev.gravity, ev.earth, F, work)


@compiled
def run(x: FloatArray, P: FloatArray, ev: InertialEvents, output: LoopOutput) -> None:
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
            propagate_covariance(P, F, half, A)
        while next_fix < len(ev.fix_at) and ev.fix_at[next_fix] == k:
            covariance = ev.fix_covariance[next_fix]
            antenna_measurement(x, ev.antenna, H, R)
            for i in range(3):
                nu[i] = ev.fix[next_fix, i] - H[3, i]
            nis = distance(P, H, nu, covariance, 3, PH, L)
            output.nis[next_fix] = nis
            if nis < ev.gate:
                output.accepted[next_fix] = 1
            elif ev.time_ns[k] - last_ns >= ev.gate_timeout_ns:
                # Fixes that were refused for so long are right, and the state is wrong.
                output.accepted[next_fix] = 2
                elapsed = max((ev.time_ns[k] - last_ns) * 1e-9, 1e-3)
                for i in range(3):
                    square = nu[0] * nu[0] + nu[1] * nu[1] + nu[2] * nu[2]
                    P[POSITION + i, POSITION + i] += square
                    P[VELOCITY + i, VELOCITY + i] += square / (elapsed * elapsed)
                    P[ATTITUDE + i, ATTITUDE + i] += ev.doubt
                distance(P, H, nu, covariance, 3, PH, L)
            if output.accepted[next_fix] > 0:
                heading_unobservable_at_rest(x, P, ev.still, blind, R)
                update(x, P, H, covariance, 3, PH, L, K, A, e, J, blind)
                last_ns = ev.time_ns[k]
            for i in range(4):
                output.attitude[next_fix, i] = x[6 + i]
            next_fix += 1
        while next_hold < len(ev.hold_at) and ev.hold_at[next_hold] == k:
            m = speed_measurement(x, ev.rate[k], ev.base, ev.hold, H, nu, V, R)
            output.hold_nis[next_hold] = distance(P, H, nu, V, m, PH, L)
            update(x, P, H, V, m, PH, L, K, A, e, J, none)
            next_hold += 1
        while next_out < len(ev.out_at) and ev.out_at[next_out] == k:
            for i in range(len(x)):
                output.x[next_out, i] = x[i]
            for i in range(ERRORS):
                for j in range(ERRORS):
                    output.P[next_out, i, j] = P[i, j]
            next_out += 1


@compiled
def sensitivities(
    x: FloatArray, ev: InertialEvents, count: int
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Move without corrections to the first `count` fixes, from x, (16,), changed in place.

    Returns, at the fixes: position of the antenna, (count, 3) in m; its derivative by the errors
    there, (count, 3, 15); transition from the first errors and covariance of the added noise, both
    (count, 15, 15).
    """
    position, H_fixes = np.zeros((count, 3)), np.zeros((count, 3, ERRORS))
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
            propagate_covariance(Q, F, half, A)
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
                    H_fixes[done, i, j] = H[i, j]
            for i in range(ERRORS):
                for j in range(ERRORS):
                    growth[done, i, j] = total[i, j]
                    noise[done, i, j] = Q[i, j]
            done += 1
    return position, H_fixes, growth, noise
