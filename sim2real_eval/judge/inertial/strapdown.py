# SPDX-License-Identifier: Apache-2.0
"""Strapdown integration with biases, and how its errors grow; compiled.

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
    x: FloatArray, rate: FloatArray, force: FloatArray, dt: float, gravity: float, F: FloatArray,
    work: FloatArray,
) -> None:  # fmt: skip
    """Move the state, (16,), over an interval, s, and fill F, (15, 15), with its errors' growth.

    Rate, rad/s, force and gravity, m/s^2, are measured means; rows of F from 9 are those of the
    identity. The derivative of Gamma_n with respect to phi is taken to first order in phi:
    relative errors of phi^2 / 12 of the small effect of a gyroscope bias on velocity and position.
    """
    R, phi, f, c1, c2 = work[0:3, 0:3], work[3], work[4], work[5], work[6]
    s1, s2 = work[7], work[8]
    q = x[_QUATERNION:_GYROSCOPE]
    matrix_from_quaternion(q, R)
    for i in range(3):
        phi[i] = (rate[i] - x[_GYROSCOPE + i]) * dt
        f[i] = force[i] - x[_ACCELEROMETER + i]
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

    for i in range(3):
        down = -gravity if i == 2 else 0.0
        x[i] += x[3 + i] * dt + (0.5 * down + s2[i]) * dt2
        x[3 + i] += (down + s1[i]) * dt
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
