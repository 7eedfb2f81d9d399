# SPDX-License-Identifier: Apache-2.0
"""How late one series is behind another."""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np

from sim_sensors.core.blocks import blocks, by_blocks
from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.core.scratch import joined, release

_LEAST_CORRELATION = 0.5
_LEAST_OVERLAP = 8
_AT_ONCE = 1 << 16  # samples that are correlated


@dataclasses.dataclass(frozen=True)
class Lag:
    """Delay of one series behind another, s (positive: the series comes late), the correlation
    at that peak, and the standard uncertainty of the delay, s.
    """

    seconds: float
    correlation: float
    std: float


def find_lag(series: FloatArray, reference: FloatArray, rate: float, max_lag: float) -> Lag | None:
    """Return the lag at which a series is most like a reference.

    At every lag the correlation coefficient is taken over the overlap alone, about its own mean,
    all columns together (the covariances and the variances summed over them). That is 1 for the
    right lag also where the signals drift, which the plain cross-correlation is not. Between
    samples the peak is that of the parabola through the three highest.

    Series and reference are (n, k) on a grid of `rate` Hz; `max_lag` s is looked at to either
    side. None when there is no peak to speak of: it lies at the end of the range, or the
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
    std = _lag_deviation(series, reference, peak - most) / rate
    return Lag(float((peak - most + shift) / rate), min(float(top), 1.0), std)


def _lag_deviation(a: FloatArray, b: FloatArray, lag: int) -> float:
    """Return the standard uncertainty, samples, of a lag near `lag` of a behind b.

    A small delay s turns the reference b into b - s b': least squares of the difference on b' give
    s, and what is left over its uncertainty. Errors that last are no white noise, so the variance
    of the sum of products is that of the sums over 16 blocks in a row.
    """
    n = len(a)
    a, b = a[max(lag, 0) : n + min(lag, 0)], b[max(-lag, 0) : n - max(lag, 0)]
    count = min(16, len(b) // 4)
    if count < 2:
        return float('nan')
    slope = _slope(b)
    power = float(np.sum(by_blocks(np.square, slope)))
    if not power > 0.0:
        return float('nan')
    error = by_blocks(np.subtract, a, b)
    error = by_blocks(partial(np.add, -error.mean(axis=0)), error)
    share = float(np.sum(by_blocks(np.multiply, slope, error))) / power
    products = by_blocks(
        lambda slope, error: np.sum(slope * (error - slope * share), axis=1), slope, error
    )
    sums = np.array([block.sum() for block in np.array_split(products, count)])
    return float(np.sqrt(count * np.var(sums, ddof=1)) / power)


def _slope(values: FloatArray) -> FloatArray:
    """Return the change by sample, (n, k), from the samples on both sides, or on one at an end."""
    inner = by_blocks(lambda after, before: (after - before) / 2.0, values[2:], values[:-2])
    return joined(values[1:2] - values[:1], inner, values[-1:] - values[-2:-1])


def _correlations(a: FloatArray, b: FloatArray, most: int) -> FloatArray:
    """Correlation coefficient of a[k:] and b[:n-k] about their own means at lags -most .. most.

    All sums of products at once by FFT, those of one series alone as running sums.
    """
    n = len(a)
    a, b = (by_blocks(partial(np.add, -one.mean(axis=0)), one) for one in (a, b))
    lags = np.arange(-most, most + 1)
    first, last = np.maximum(lags, 0), n + np.minimum(lags, 0)
    sums_a, squares_a = _between(a, first, last)
    sums_b, squares_b = _between(b, first - lags, last - lags)
    count = (last - first)[:, None]
    covariance = _products(a, b, most) - np.sum(sums_a * sums_b / count, axis=1)
    power_a, power_b = (
        np.sum(squares - sums**2 / count, axis=1)
        for sums, squares in ((sums_a, squares_a), (sums_b, squares_b))
    )
    # What is left of a constant is rounding; without a lag all squares are added up.
    good = power_a > 1e-12 * float(np.sum(squares_a[most]))
    good &= power_b > 1e-12 * float(np.sum(squares_b[most]))
    scale = np.sqrt(np.where(good, power_a * power_b, 1.0))
    return np.where(good, covariance / scale, 0.0)


def _products(a: FloatArray, b: FloatArray, most: int) -> FloatArray:
    """Return the sums over k and columns of a[k] b[k - lag] for lags -most .. most.

    The transform of a part is long enough for what goes round its end to be of longer lags.
    """
    from scipy.fft import irfft, next_fast_len, rfft

    n = len(a)
    size = next_fast_len(min(n + 2 * most, max(_AT_ONCE, 8 * most)), real=True)
    total = np.zeros(size // 2 + 1, dtype=np.complex128)
    for start in range(0, n, size - 2 * most):
        end = min(start + size - 2 * most, n)
        low = start - most
        around = np.pad(b[max(low, 0) : end + most], ((max(-low, 0), 0), (0, 0)))
        own, other = (rfft(one, size, axis=0) for one in (a[start:end], around))
        total += np.sum(np.conj(own) * other, axis=1)
        release()
    return np.asarray(irfft(total, size)[2 * most :: -1])


def _between(values: FloatArray, first: IntArray, last: IntArray) -> tuple[FloatArray, FloatArray]:
    """Sums of values and of their squares from `first` to before `last`, each (lags, k)."""
    ends = np.concatenate([first, last])
    found = np.zeros((len(ends), 2 * values.shape[1]))
    so_far = np.zeros((1, 2 * values.shape[1]))
    for part in blocks(len(values)):
        rows = values[part]
        sums = np.cumsum(np.vstack([so_far, np.hstack([rows, np.square(rows)])]), axis=0)
        here = (ends > part.start) & (ends <= part.stop)
        found[here] = sums[ends[here] - part.start]
        so_far = sums[-1:]
    sums, squares = np.hsplit(found[len(first) :] - found[: len(first)], 2)
    return sums, squares
