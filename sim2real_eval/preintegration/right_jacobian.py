# SPDX-License-Identifier: Apache-2.0
"""The exponential of SO(3), its right Jacobian and the inverse of it, as matrices; compiled.

Formulas: [Sola2018], equations 143 and 144. `sim_sensors.rotations` has the same for arrays of
vectors; the steps of a preintegration need matrices, one at a time.
"""

from __future__ import annotations

import math

from sim_sensors.compilation import compiled
from sim_sensors.measurements import FloatArray

__all__ = ['exponential', 'inverse_jacobian', 'inverse_terms', 'jacobian']

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
