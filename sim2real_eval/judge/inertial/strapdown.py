# SPDX-License-Identifier: Apache-2.0
"""Strapdown integration with biases, how its errors grow, and their correction; compiled.

State, (16,): position p and velocity v of the IMU, east-north-up; quaternion x y z w of base_link;
gyroscope bias b and accelerometer bias a, along the axes of base_link. Errors, (15,): truth =
estimate + error, for the attitude truth = Exp(error) estimate, about the axes of the world
([Sola2017], section 7).

Within an interval rate w and force f are constant in the body, which is then exact: with phi =
(w - b) dt, g the gravity and Gamma_n = sum of phi^k / (k + n)! over the powers of the matrix [phi]

    p <- p + v dt + (g / 2 + R Gamma_2 (f - a)) dt^2
    v <- v + (g + R Gamma_1 (f - a)) dt              R <- R Exp(phi)
"""

from __future__ import annotations

import math

from sim_sensors.core.compilation import kernel
from sim_sensors.core.compiled_rotations import (
    coefficients,
    cross,
    matrix_from_quaternion,
    multiply,
    quaternion_from_vector,
    skew,
)
from sim_sensors.core.measurements import FloatArray

STATES = 16
"""Length of the state: 3 position, 3 velocity, 4 attitude, 3 and 3 biases."""

ERRORS = 15
POSITION, VELOCITY, ATTITUDE, GYROSCOPE_BIAS, ACCELEROMETER_BIAS = 0, 3, 6, 9, 12
"""First of the three errors of each kind."""

_QUATERNION, _GYROSCOPE, _ACCELEROMETER = 6, 10, 13


@kernel
def turn_left(q: FloatArray, e: FloatArray, scratch: FloatArray) -> None:
    """Replace the attitude q, (4,), by Exp(e) q."""
    quaternion_from_vector(e, scratch)
    multiply(scratch, q, q)


@kernel
def add_error(x: FloatArray, e: FloatArray, scratch: FloatArray) -> None:
    """Add an error, (15,), to a state, (16,); scratch (4,)."""
    for i in range(6):
        x[i] += e[i]
    turn_left(x[_QUATERNION:_GYROSCOPE], e[ATTITUDE:GYROSCOPE_BIAS], scratch)
    for i in range(6):
        x[_GYROSCOPE + i] += e[GYROSCOPE_BIAS + i]


@kernel
def move(
    x: FloatArray, rate: FloatArray, force: FloatArray, dt: float, gravity: float,
    earth: FloatArray, F: FloatArray, work: FloatArray,
) -> None:  # fmt: skip
    """Move the state, (16,), over an interval, s, and fill F, (15, 15), with its errors' growth.

    Rate, rad/s, force and gravity, m/s^2, are measured means; rows of F from 9 are those of the
    identity. The derivative of Gamma_n with respect to phi is taken to first order in phi:
    relative errors of phi^2 / 12 of the small effect of a gyroscope bias on velocity and position.

    `earth`, (2, 3), is rate and gradient of `sim_sensors.world.earth.TurningEarth`; zeros for
    none. F has its rate, but not its gradient, which matters after many minutes without fixes.
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
                one = 1.0 if k == j else 0.0
                gamma1 += R[i, k] * (one + A * turn + B * square)
                gamma2 += R[i, k] * (0.5 * one + B * turn + C * square)
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
            # Of the place and the velocity at the start of the interval.
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
def grow(P: FloatArray, F: FloatArray, half: FloatArray, A: FloatArray) -> None:
    """Replace P by F (P + N) F' + N, all (15, 15), N the diagonal matrix of `half`, (15,).

    With N half the noise that an interval adds this is the integral of F Q F' by the trapezoidal
    rule: right to the third order of the interval, and positive semi-definite.
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


# Correction by up to three measured numbers.


@kernel
def distance(
    P: FloatArray, H: FloatArray, nu: FloatArray, R: FloatArray, m: int, PH: FloatArray,
    L: FloatArray,
) -> float:  # fmt: skip
    """Return nu' S^-1 nu with S = H P H' + R = L L', and fill PH = P H', (15, 3), and L, (4, 3).

    Measured are m numbers, at most 3; P is (15, 15), and the others may be larger than m. L has
    the lower triangle in its first three rows; the last becomes L^-1 nu.
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
def update(
    x: FloatArray, P: FloatArray, H: FloatArray, R: FloatArray, m: int, PH: FloatArray,
    L: FloatArray, K: FloatArray, A: FloatArray, e: FloatArray, J: FloatArray, blind: FloatArray,
) -> None:  # fmt: skip
    """Correct state and covariance after `distance`, by the Joseph form, and reset the error.

    The error that is left, e', belongs to the corrected attitude: Exp(e') = Exp(truth) Exp(-e), so
    de' = J de with J the left Jacobian of e ([Sola2017], section 7.2.3, there to first order).

    x, (16,), to L are as in `distance`; x and P are changed in place. K, A, J, (15, 3), (15, 15)
    and (4, 4), are scratch space; e, (16,), becomes the correction. `blind`, (2, 3), has unit
    vectors of directions in which attitude and gyroscope bias are left as they are; zeros: none.
    Their correlations count in full (Schmidt's consider filter; the Joseph form holds for any
    gain).
    """
    # K = PH S^-1 = (PH L'^-1) L^-1, and e = K nu = (PH L'^-1) (L^-1 nu).
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
    for first, direction in ((ATTITUDE, blind[0]), (GYROSCOPE_BIAS, blind[1])):
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
    # (I - K H) P (I - K H)' + K R K' with A = (I - K H) P.
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

    t = e[ATTITUDE:GYROSCOPE_BIAS]
    t2 = t[0] * t[0] + t[1] * t[1] + t[2] * t[2]
    _, a, b, _ = coefficients(t2)
    for i in range(3):
        for j in range(3):
            skew = 0.0
            if i != j:
                skew = -t[3 - i - j] if (j - i) % 3 == 1 else t[3 - i - j]
            square = t[i] * t[j] - (t2 if i == j else 0.0)
            J[i, j] = (1.0 if i == j else 0.0) + a * skew + b * square
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
    add_error(x, e, J[3])


# What the error-state filter sees of its state: the antenna, held speeds, at rest no heading.


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
def heading_unobservable_at_rest(
    x: FloatArray, P: FloatArray, still: float, blind: FloatArray, R: FloatArray
) -> None:
    """Fill the directions of `update` that fixes of a standing vehicle tell nothing of: the turn
    about the vertical, and the bias of its rate.

    The noise of the force, turned by a wrong heading, would move the vehicle sideways; that it
    does not seems to tell the heading. But the whole noise, not only its sideways part, is
    missing from the motion, of which a linear filter knows nothing. A vehicle stands as long as
    its horizontal speed is below `still` and two of its deviations.
    """
    doubt = P[VELOCITY, VELOCITY] + P[VELOCITY + 1, VELOCITY + 1]
    one = 1.0 if x[3] * x[3] + x[4] * x[4] < still * still + 4.0 * doubt else 0.0
    matrix_from_quaternion(x[6:10], R)
    blind[0, 2] = one
    for i in range(3):
        blind[1, i] = one * R[2, i]
