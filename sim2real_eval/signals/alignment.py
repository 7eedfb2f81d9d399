# SPDX-License-Identifier: Apache-2.0
"""How late one series is against another: the peak of their cross-correlation."""

from __future__ import annotations

import dataclasses

import numpy as np

from sim_sensors.measurements import FloatArray, IntArray

__all__ = ['Lag', 'find_lag']

_LEAST_CORRELATION = 0.5
_LEAST_OVERLAP = 8


@dataclasses.dataclass(frozen=True)
class Lag:
    """Delay of one series behind another.

    Attributes
    ----------
    seconds : float
        Positive: the series comes late.
    correlation : float
        At the peak.
    """

    seconds: float
    correlation: float


def find_lag(series: FloatArray, reference: FloatArray, rate: float, max_lag: float) -> Lag | None:
    """Return the lag at which a series is most like a reference.

    At every lag the correlation coefficient is taken over the overlap alone, about its own mean,
    all columns together (the covariances and the variances summed over them). That is 1 for the
    right lag also where the signals drift, which the plain cross-correlation is not. Between
    samples the peak is that of the parabola through the three highest.

    Parameters
    ----------
    series, reference : (n, k) float
        On one grid.
    rate : float
        Of the grid, Hz.
    max_lag : float
        Largest lag to either side, s.

    Returns
    -------
    Lag or None
        None when there is no peak to speak of: it lies at the end of the range, or the
        correlation there is below 0.5.
    """
    n = len(series)
    most = min(round(max_lag * rate), n - _LEAST_OVERLAP)
    if most < 1:
        return None
    coefficients = _correlations(series, reference, most)
    peak = int(np.argmax(coefficients))
    if peak in (0, 2 * most) or not coefficients[peak] >= _LEAST_CORRELATION:
        return None
    before, top, after = coefficients[peak - 1 : peak + 2]
    bend = before - 2.0 * top + after
    shift = 0.5 * (before - after) / bend if bend < 0.0 else 0.0
    return Lag(float((peak - most + shift) / rate), min(float(top), 1.0))


def _correlations(a: FloatArray, b: FloatArray, most: int) -> FloatArray:
    """Correlation coefficient of a[k:] and b[:n-k] about their own means at lags -most .. most.

    All sums of products at once by FFT, those of one series alone as running sums.
    """
    from scipy.signal import correlate

    n = len(a)
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    lags = np.arange(-most, most + 1)
    first, last = np.maximum(lags, 0), n + np.minimum(lags, 0)
    sums_a, squares_a = _between(a, first, last)
    sums_b, squares_b = _between(b, first - lags, last - lags)
    products = sum(
        correlate(one, other, method='fft')[n - 1 - most : n + most]
        for one, other in zip(a.T, b.T, strict=True)
    )
    count = (last - first)[:, None]
    covariance = products - np.sum(sums_a * sums_b / count, axis=1)
    powers = [
        np.sum(squares - sums**2 / count, axis=1)
        for sums, squares in ((sums_a, squares_a), (sums_b, squares_b))
    ]
    # What is left of a constant is rounding.
    seen = [
        power > 1e-12 * float(np.sum(one**2)) for power, one in zip(powers, (a, b), strict=True)
    ]
    good = seen[0] & seen[1]
    scale = np.sqrt(np.where(good, powers[0] * powers[1], 1.0))
    return np.where(good, covariance / scale, 0.0)


def _between(values: FloatArray, first: IntArray, last: IntArray) -> tuple[FloatArray, FloatArray]:
    """Sums of values and of their squares from `first` to before `last`, each (lags, k)."""
    start = np.zeros((1, values.shape[1]))
    sums = [np.concatenate([start, np.cumsum(one, axis=0)]) for one in (values, values**2)]
    return sums[0][last] - sums[0][first], sums[1][last] - sums[1][first]
