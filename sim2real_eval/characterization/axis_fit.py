# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Noise terms of one axis at rest: spectral lines, trend, low pass and Allan curve."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from sim_sensors.core.measurements import FloatArray, IntArray
from .allan import AllanCurve, allan_curve, averaging_factors
from .allan_fit import MIN_AVERAGING_TIMES
from .bias_choice import BiasChoice, choose_fit
from .lines import SpectralLine, without_lines
from .low_pass import LowPass, find_low_pass
from .trends import Trend, find_trend


@dataclasses.dataclass(frozen=True, eq=False)
class AxisFit:
    """Fit of one axis.

    Attributes
    ----------
    curve : AllanCurve
        At all averaging times, with the ramp but without spectral lines, a warm-up or an unclear
        drift.
    fitted : (k,) int
        Averaging factors that were fitted.
    choice : BiasChoice
        The terms.
    low_pass : LowPass or None
        Where the noise has passed one.
    trend : Trend
        Of the mean.
    lines : list of SpectralLine
        What was taken out before, the strongest first.
    """

    curve: AllanCurve
    fitted: IntArray
    choice: BiasChoice
    low_pass: LowPass | None
    trend: Trend
    lines: list[SpectralLine]


def fit_axis(
    values: FloatArray,
    rate: float,
    *,
    factors: IntArray | None = None,
    fit_from: float = 0.0,
    detrend: bool = False,
) -> AxisFit | None:
    """Fit evenly spaced samples `(n,)` at `rate` Hz; None for a constant.

    Parameters
    ----------
    factors : (k,) int, optional
        Averaging factors of the curve beside those that are fitted.
    fit_from : float, optional
        Shortest averaging time that is fitted, s.
    detrend : bool, optional
        Take a straight line out, so that there is no ramp. A warm-up, and a drift that may be
        a line or a walk, are always taken out.

    Raises
    ------
    ParameterError
        For records that are too short.

    Examples
    --------
    >>> noise = 1e-3 * np.random.default_rng(1).standard_normal(50_000)
    >>> fit = fit_axis(noise + 1e-7 * np.arange(50_000), rate=100.0)
    >>> fit.trend.kind, round(1e5 * fit.choice.fit.terms.rate_ramp.value, 1)
    ('line', 1.0)
    """
    values, lines = without_lines(values, rate)
    low_pass = find_low_pass(values)
    trend = find_trend(values, 1.0 / low_pass.shape.cutoff if low_pass else 1.0)
    still = values if trend.kind == 'none' else values - trend.values(len(values))
    if detrend and trend.kind == 'line':
        values, trend = still, dataclasses.replace(trend, kind='none', slope=0.0)
    starts = _starts(len(values), low_pass, fit_from * rate)
    grid = np.unique(np.concatenate([averaging_factors(len(values)), *starts]))
    if factors is not None:
        grid = np.union1d(grid, factors)
    curve = allan_curve(still, rate, grid)
    if not curve.variance[0] > 0.0:
        return None
    fitted = starts[0]
    choice = choose_fit(curve.at(fitted), low_pass, trend)
    for later in starts[1:]:
        # A filter of another kind than was found is no matter at longer averaging times.
        if choice.fit.misfit:
            other = choose_fit(curve.at(later), low_pass, trend)
            if other.fit.misfit < 0.5 * choice.fit.misfit:
                choice, fitted = other, later
    full_curve = allan_curve(values, rate, grid) if trend.kind == 'line' else curve
    return AxisFit(full_curve, fitted, choice, low_pass, trend, lines)


def _starts(n: int, low_pass: LowPass | None, shortest: float) -> list[IntArray]:
    """Return averaging factors to fit: octaves from 1, or from where a low pass may be known."""
    octaves = averaging_factors(n)
    if low_pass is None:
        return [octaves[octaves >= shortest * (1.0 - 1e-9)]]
    most = max(int(octaves[-1]) >> (MIN_AVERAGING_TIMES - 1), 1)
    first = {
        min(max(factor, math.ceil(shortest - 1e-6)), most): None
        for factor in low_pass.first_factors
    }
    return [factor * octaves[factor * octaves <= (n - 1) // 2] for factor in first]
