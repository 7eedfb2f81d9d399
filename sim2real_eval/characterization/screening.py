# SPDX-License-Identifier: Apache-2.0
"""Outliers of a sensor at rest, replaced and counted, and what replacing them does to the noise.

Two rules:

robust
    Values further than `factor` (6) robust deviations from the median of their block of about a
    second take that median. The deviation is 1.4826 times the median absolute deviation of the
    whole record ([Hampel1974]), and at least one step of the sensor's resolution, for where more
    than half of the values are alike that median is 0. Of clean Gaussian data 2e-9 are replaced.
iqr
    The rule of [Cesenek2019], section 3.1.3: values outside [Q1 - factor IQR, Q3 + factor IQR]
    take the mean of the record; the factor is 1.0 there, not the usual 1.5. That is +-2.02 sigma:
    4.3 % of clean Gaussian data are replaced, the standard deviation shrinks to 0.865 and white
    noise comes out 13.5 % low.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from scipy.stats import norm

from sim_sensors.core.errors import ParameterError
from sim_sensors.core.measurements import FloatArray

FACTORS = {'robust': 6.0, 'iqr': 1.0}
"""Default factor of each rule."""
_QUARTILE = float(norm.ppf(0.75))
_FEWEST_IN_BLOCK = 32
_SAMPLE = 200_000


@dataclasses.dataclass(frozen=True, eq=False)
class Screened:
    """An axis without outliers.

    Attributes
    ----------
    values : (n,) float
        The array given, or a copy where something was replaced.
    replaced : int
        Samples replaced.
    largest : float
        How far the furthest was from what replaced it, u.
    noise_ratio : float
        Noise after over before, as the root mean square of differences of neighbours.
    gaussian_ratio : float
        The same for clean Gaussian noise: what the rule itself does.
    """

    values: FloatArray
    replaced: int
    largest: float
    noise_ratio: float
    gaussian_ratio: float


def screen(
    values: FloatArray, rate: float, rule: str = 'robust', factor: float | None = None
) -> Screened:
    """Replace outliers.

    Parameters
    ----------
    values : (n,) float
        u.
    rate : float
        Hz.
    rule : str
        `robust`, `iqr` or `none`.
    factor : float, optional
        Default: that of the rule.

    Raises
    ------
    ParameterError
        For another rule, or a factor that is not above 0.
    """
    if rule == 'none':
        return Screened(values, 0, 0.0, 1.0, 1.0)
    if rule not in FACTORS:
        raise ParameterError('outliers', '', f'{rule!r} must be robust, iqr or none')
    factor = FACTORS[rule] if factor is None else factor
    if not factor > 0.0:
        raise ParameterError('outliers', 'factor', f'{factor!r} is not allowed; must be > 0')
    if rule == 'iqr':
        low, high = np.quantile(values, [0.25, 0.75])
        reach = factor * (high - low)
        out = (values < low - reach) | (values > high + reach)
        centre: FloatArray = np.full(len(values), values.mean())
        limit = _QUARTILE * (1.0 + 2.0 * factor)
    else:
        centre = _block_medians(values, rate)
        rest = np.abs(values - centre)
        scale = max(float(np.median(rest)) / _QUARTILE, resolution(values))
        out = rest > factor * scale
        limit = factor
    count = int(out.sum())
    if not count:
        return Screened(values, 0, 0.0, 1.0, gaussian_shrinkage(limit))
    clean = np.where(out, centre, values)
    return Screened(
        values=clean,
        replaced=count,
        largest=float(np.abs(values - centre)[out].max()),
        noise_ratio=_noise(clean) / _noise(values),
        gaussian_ratio=gaussian_shrinkage(limit),
    )


def gaussian_shrinkage(limit: float) -> float:
    """Return the standard deviation of Gaussian noise after what lies beyond +-limit standard
    deviations has become its mean, over that before.

    The variance is 1 - 2 (limit phi(limit) + Q(limit)), with phi the density and Q the tail.

    Examples
    --------
    >>> round(gaussian_shrinkage(0.6745 * 3), 3)
    0.865
    """
    return math.sqrt(1.0 - 2.0 * (limit * float(norm.pdf(limit)) + float(norm.sf(limit))))


def resolution(values: FloatArray) -> float:
    """Return the step that all values are multiples apart of, u; 0 where there is none.

    Looks at the first 200 000 samples. A step is believed when values come back again and again
    and all neighbouring levels are whole steps apart to 5 %, which single-precision files allow.
    """
    levels = np.unique(values[:_SAMPLE])
    if len(levels) < 3 or len(levels) > len(values[:_SAMPLE]) / 8:
        return 0.0
    steps = np.diff(levels)
    # Rounded copies of one level, as conversions leave them, are no steps.
    steps = steps[steps > 1e-6 * max(abs(levels[0]), abs(levels[-1]))]
    if not len(steps):
        return 0.0
    finest = float(np.median(steps[steps < 1.5 * steps.min()]))
    ratio = steps / finest
    return finest if float(np.abs(ratio - np.rint(ratio)).max()) < 0.05 else 0.0


def _block_medians(values: FloatArray, rate: float) -> FloatArray:
    size = max(round(rate), _FEWEST_IN_BLOCK)
    count = len(values) // size
    if count == 0:
        return np.full(len(values), np.median(values))
    medians = np.median(values[: count * size].reshape(count, size), axis=1)
    index = np.minimum(np.arange(len(values)) // size, count - 1)
    return np.asarray(medians[index])


def _noise(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(np.diff(values) ** 2)))
