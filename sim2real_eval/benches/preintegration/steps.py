# SPDX-License-Identifier: Apache-2.0
"""One interval of preintegration and its Jacobians, in two forms; compiled.

Both take the specific force a and the angular rate w as constant over the interval dt, with the
attitude at its start ([GTSAM], PreintegratedImuMeasurements):

    p <- p + v dt + R a dt^2/2        v <- v + R a dt

manifold: R <- R Exp(w dt); the state is [quaternion x y z w, p, v], (10,).
tangent: theta <- theta + Jr^-1(theta) w dt with R = Exp(theta); the state is [theta, p, v], (9,).
The former is exact for a constant rate, the latter to first order in dt only, and it ends where
theta comes to 2 pi. GTSAM as it is installed has the latter.

Errors, (9,): of theta itself in the tangent form, to the right of R (R Exp(error)) in the manifold
form; of p and v, added, in the axes of the start in both. A, B, C are the Jacobians of the next
state with respect to the state, to a and to w.
"""

from __future__ import annotations

import math

from sim_sensors.core.compilation import compiled
from sim_sensors.core.measurements import FloatArray

__all__ = [
    'MANIFOLD',
    'TANGENT',
    'WORK',
    'exponential',
    'inverse_jacobian',
    'inverse_terms',
    'jacobian',
    'move',
    'rotation_of',
    'step',
]

# The exponential of SO(3), its right Jacobian and the inverse of it, as matrices;
# compiled.
#
# Formulas: [Sola2018], equations 143 and 144. `sim_sensors.core.rotations` has the same for
# arrays of
# vectors; the steps of a preintegration need matrices, one at a time.

# Below this square of an angle the closed forms lose digits, so series take over. The first term
# left out is below 1e-16 of the sum.
_SERIES_BELOW = 0.25


@compiled
def _fill(phi: FloatArray, one: float, two: float, out: FloatArray) -> None:
    """Fill `out`, (3, 3), with I + one [phi] + two [phi]^2."""
    x, y, z = phi[0], phi[1], phi[2]
    out[0, 0] = 1.0 - two * (y * y + z * z)
    out[1, 1] = 1.0 - two * (x * x + z * z)
    out[2, 2] = 1.0 - two * (x * x + y * y)
    out[0, 1] = two * x * y - one * z
    out[1, 0] = two * x * y + one * z
    out[0, 2] = two * x * z + one * y
    out[2, 0] = two * x * z - one * y
    out[1, 2] = two * y * z - one * x
    out[2, 1] = two * y * z + one * x


@compiled
def _terms(t2: float) -> tuple[float, float, float]:
    """Return sin t/t, (1 - cos t)/t^2 and (t - sin t)/t^3 of t^2."""
    if t2 < _SERIES_BELOW:
        return (
            1.0 - t2 / 6.0 * (1.0 - t2 / 20.0 * (1.0 - t2 / 42.0 * (1.0 - t2 / 72.0 *
                (1.0 - t2 / 110.0 * (1.0 - t2 / 156.0))))),
            0.5 * (1.0 - t2 / 12.0 * (1.0 - t2 / 30.0 * (1.0 - t2 / 56.0 * (1.0 - t2 / 90.0 *
                (1.0 - t2 / 132.0 * (1.0 - t2 / 182.0)))))),
            (1.0 - t2 / 20.0 * (1.0 - t2 / 42.0 * (1.0 - t2 / 72.0 * (1.0 - t2 / 110.0 *
                (1.0 - t2 / 156.0 * (1.0 - t2 / 210.0)))))) / 6.0,
        )  # fmt: skip
    t = math.sqrt(t2)
    sine = math.sin(t)
    return sine / t, 2.0 * math.sin(0.5 * t) ** 2 / t2, (t - sine) / (t2 * t)


@compiled
def inverse_terms(t2: float) -> tuple[float, float]:
    """Return E = (1 - (t/2) cot(t/2))/t^2 and (dE/dt)/t of t^2.

    E = sum |B_2k| t^(2k - 2)/(2k)! over the Bernoulli numbers B_2k.
    """
    if t2 < _SERIES_BELOW:
        e = (1.0 / 12.0 + t2 * (1.0 / 720.0 + t2 * (1.0 / 30240.0 + t2 * (1.0 / 1209600.0 +
            t2 * (1.0 / 47900160.0 + t2 * (691.0 / 1307674368000.0 +
            t2 * (1.0 / 74724249600.0 + t2 * 3617.0 / 10670622842880000.0)))))))  # fmt: skip
        slope = (2.0 / 720.0 + t2 * (4.0 / 30240.0 + t2 * (6.0 / 1209600.0 +
            t2 * (8.0 / 47900160.0 + t2 * (6910.0 / 1307674368000.0 +
            t2 * (12.0 / 74724249600.0 + t2 * 50638.0 / 10670622842880000.0))))))  # fmt: skip
        return e, slope
    t = math.sqrt(t2)
    half = 0.5 * t
    cot = math.cos(half) / math.sin(half)
    e = (1.0 - half * cot) / t2
    rise = 0.5 * (half / math.sin(half) ** 2 - cot)
    return e, (rise / t - 2.0 * e) / t2


@compiled
def exponential(phi: FloatArray, out: FloatArray) -> None:
    """Fill `out`, (3, 3), with Exp(phi)."""
    one, two, _ = _terms(phi[0] * phi[0] + phi[1] * phi[1] + phi[2] * phi[2])
    _fill(phi, one, two, out)


@compiled
def jacobian(phi: FloatArray, out: FloatArray) -> None:
    """Fill `out`, (3, 3), with Jr(phi): Exp(phi + d) = Exp(phi) Exp(Jr d) for small d."""
    _, one, two = _terms(phi[0] * phi[0] + phi[1] * phi[1] + phi[2] * phi[2])
    _fill(phi, -one, two, out)


@compiled
def inverse_jacobian(phi: FloatArray, out: FloatArray) -> None:
    """Fill `out`, (3, 3), with the inverse of Jr(phi); it grows without bound towards 2 pi."""
    two, _ = inverse_terms(phi[0] * phi[0] + phi[1] * phi[1] + phi[2] * phi[2])
    _fill(phi, 0.5, two, out)


TANGENT = 0
MANIFOLD = 1
WORK = (21, 3)
"""Shape of the scratch space of `step`."""


@compiled
def rotation_of(form: int, x: FloatArray, R: FloatArray) -> None:
    """Fill R, (3, 3), with the rotation of a state."""
    if form == TANGENT:
        exponential(x[0:3], R)
        return
    a, b, c, w = x[0], x[1], x[2], x[3]
    R[0, 0] = 1.0 - 2.0 * (b * b + c * c)
    R[1, 1] = 1.0 - 2.0 * (a * a + c * c)
    R[2, 2] = 1.0 - 2.0 * (a * a + b * b)
    R[0, 1], R[1, 0] = 2.0 * (a * b - c * w), 2.0 * (a * b + c * w)
    R[0, 2], R[2, 0] = 2.0 * (a * c + b * w), 2.0 * (a * c - b * w)
    R[1, 2], R[2, 1] = 2.0 * (b * c - a * w), 2.0 * (b * c + a * w)


@compiled
def _turn(q: FloatArray, w: FloatArray, dt: float) -> None:
    """Replace a quaternion, (4,), by q Exp(w dt)."""
    angle = dt * math.sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2])
    half = 0.5 * angle
    scale = 0.5 * dt * (math.sin(half) / half if half > 1e-8 else 1.0)
    x, y, z, c = scale * w[0], scale * w[1], scale * w[2], math.cos(half)
    i = q[3] * x + q[0] * c + q[1] * z - q[2] * y
    j = q[3] * y - q[0] * z + q[1] * c + q[2] * x
    k = q[3] * z + q[0] * y - q[1] * x + q[2] * c
    r = q[3] * c - q[0] * x - q[1] * y - q[2] * z
    norm = 1.0 / math.sqrt(i * i + j * j + k * k + r * r)
    q[0], q[1], q[2], q[3] = i * norm, j * norm, k * norm, r * norm


@compiled
def move(form: int, x: FloatArray, a: FloatArray, w: FloatArray, dt: float, W: FloatArray) -> None:
    """Move a state over an interval; scratch space W as for `step`."""
    R, inverse = W[0:3], W[3:6]
    rotation_of(form, x, R)
    at = 3 if form == TANGENT else 4
    for i in range(3):
        force = R[i, 0] * a[0] + R[i, 1] * a[1] + R[i, 2] * a[2]
        x[at + i] += x[at + 3 + i] * dt + 0.5 * force * dt * dt
        x[at + 3 + i] += force * dt
    if form == MANIFOLD:
        _turn(x[0:4], w, dt)
        return
    inverse_jacobian(x[0:3], inverse)
    for i in range(3):
        x[i] += (inverse[i, 0] * w[0] + inverse[i, 1] * w[1] + inverse[i, 2] * w[2]) * dt


@compiled
def step(
    form: int,
    x: FloatArray,
    a: FloatArray,
    w: FloatArray,
    dt: float,
    A: FloatArray,
    B: FloatArray,
    C: FloatArray,
    W: FloatArray,
) -> None:
    """Move a state over an interval and fill its Jacobians.

    Parameters
    ----------
    form : int
        TANGENT or MANIFOLD.
    x : (9,) or (10,) float
        State, changed in place.
    a, w : (3,) float
        Specific force, m/s^2, and angular rate, rad/s, in the body.
    dt : float
        s.
    A, B, C : (9, 9), (9, 3), (9, 3) float
        Filled.
    W : float
        Scratch of shape WORK.
    """
    R, inverse, forward, slope = W[0:3], W[3:6], W[6:9], W[9:12]
    pull, phi, c1, c2 = W[12:15], W[15], W[16], W[17]
    rotation_of(form, x, R)
    if form == TANGENT:
        inverse_jacobian(x[0:3], inverse)
        jacobian(x[0:3], forward)
        _inverse_slope(x[0:3], w, c1, c2, slope)
    else:
        for i in range(3):
            phi[i] = w[i] * dt
        # Of the error to the right of R: Exp(-w dt) for itself, Jr(w dt) dt for the rate.
        jacobian(phi, inverse)
        for i in range(3):
            phi[i] = -phi[i]
        exponential(phi, slope)
        for i in range(3):
            for j in range(3):
                forward[i, j] = 1.0 if i == j else 0.0
    # R [-a] times what makes a rotation to the right of R of an error.
    for i in range(3):
        c1[0] = R[i, 2] * a[1] - R[i, 1] * a[2]
        c1[1] = R[i, 0] * a[2] - R[i, 2] * a[0]
        c1[2] = R[i, 1] * a[0] - R[i, 0] * a[1]
        for j in range(3):
            pull[i, j] = c1[0] * forward[0, j] + c1[1] * forward[1, j] + c1[2] * forward[2, j]
    for i in range(9):
        for j in range(9):
            A[i, j] = 1.0 if i == j else 0.0
        for j in range(3):
            B[i, j] = C[i, j] = 0.0
    for i in range(3):
        A[3 + i, 6 + i] = dt
        for j in range(3):
            A[i, j] = slope[i, j] if form == MANIFOLD else A[i, j] + slope[i, j] * dt
            A[3 + i, j] = 0.5 * pull[i, j] * dt * dt
            A[6 + i, j] = pull[i, j] * dt
            B[3 + i, j] = 0.5 * R[i, j] * dt * dt
            B[6 + i, j] = R[i, j] * dt
            C[i, j] = inverse[i, j] * dt
    move(form, x, a, w, dt, W)


@compiled
def _inverse_slope(
    t: FloatArray, w: FloatArray, c1: FloatArray, c2: FloatArray, out: FloatArray
) -> None:
    """Fill `out`, (3, 3), with the derivative of Jr^-1(t) w by t.

    Jr^-1 w = w + t x w / 2 + E t x (t x w), and t x (t x w) = t (t . w) - w t^2.
    """
    t2 = t[0] * t[0] + t[1] * t[1] + t[2] * t[2]
    e, rise = inverse_terms(t2)
    c1[0] = t[1] * w[2] - t[2] * w[1]
    c1[1] = t[2] * w[0] - t[0] * w[2]
    c1[2] = t[0] * w[1] - t[1] * w[0]
    c2[0] = t[1] * c1[2] - t[2] * c1[1]
    c2[1] = t[2] * c1[0] - t[0] * c1[2]
    c2[2] = t[0] * c1[1] - t[1] * c1[0]
    dot = t[0] * w[0] + t[1] * w[1] + t[2] * w[2]
    for i in range(3):
        for j in range(3):
            outer = t[i] * w[j] - 2.0 * w[i] * t[j] + (dot if i == j else 0.0)
            out[i, j] = e * outer + rise * c2[i] * t[j]
    # Minus half of [w].
    out[0, 1] += 0.5 * w[2]
    out[1, 0] -= 0.5 * w[2]
    out[0, 2] -= 0.5 * w[1]
    out[2, 0] += 0.5 * w[1]
    out[1, 2] += 0.5 * w[0]
    out[2, 1] -= 0.5 * w[0]
