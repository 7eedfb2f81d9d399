# SPDX-License-Identifier: Apache-2.0
"""The five coefficients as they are read off a log-log plot by hand.

A straight line of the slope in question is laid through the points where the curve has it, and
read where it gives the coefficient: Qz at sqrt(3) s, N at 1 s, K at 3 s, R at sqrt(2) s; the
bias instability is the lowest point over 0.664 ([IEEE952], annex C; [Cesenek2019], section 1.7,
whose equation 1.19 has the factor upside down). The fit is better; this is what data sheets do.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sim_sensors.core.measurements import FloatArray
from .allan import AllanCurve, local_slopes
from .noise_terms import COEFFICIENTS

Flags = NDArray[np.bool_]

PLATEAU = math.sqrt(2.0 * math.log(2.0) / math.pi)
"""Deviation of flicker noise over its bias instability, 0.664."""

_LINES = (
    ('quantisation', -1.0, math.sqrt(3.0)),
    ('white', -0.5, 1.0),
    ('random_walk', 0.5, 3.0),
    ('rate_ramp', 1.0, math.sqrt(2.0)),
)
# How far a slope may be off, and the share of the record beyond which points scatter too much.
_TOLERANCE = 0.15
_LONGEST = 0.1


def read_off(curve: AllanCurve) -> dict[str, float | None]:
    """Return the coefficients by name as in `noise_terms`; None where no part has the slope.

    Examples
    --------
    >>> from sim2real_eval.characterization.allan import allan_curve
    >>> noise = np.random.default_rng(1).standard_normal(100_000)
    >>> found = read_off(allan_curve(noise, rate=100.0))
    >>> round(found['white'], 3), found['quantisation']
    (0.1, None)
    """
    reliable = curve.factors <= _LONGEST * curve.n
    slopes = local_slopes(curve)
    found: dict[str, float | None] = dict.fromkeys(COEFFICIENTS)
    for name, slope, at in _LINES:
        found[name] = _line(curve, reliable & (np.abs(slopes - slope) < _TOLERANCE), slope, at)
    flat = reliable & (np.abs(slopes) < 0.25)
    if flat.any():
        found['bias_instability'] = float(curve.deviation[flat].min()) / PLATEAU
    return found


def _line(curve: AllanCurve, mine: Flags, slope: float, at: float) -> float | None:
    """Level at `at` of the line of that slope through points, by how many terms each has."""
    # One point may pass by chance.
    if mine.sum() < 2:
        return None
    weights: FloatArray = curve.n / curve.factors[mine]
    levels = np.log(curve.deviation[mine]) - slope * np.log(curve.tau[mine] / at)
    return math.exp(float(np.average(levels, weights=weights)))
