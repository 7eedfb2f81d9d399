# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Lag of one series behind another by cross-covariance."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np

from sim_sensors.core.blocks import blocks, sum_by_blocks
from sim_sensors.core.measurements import FloatArray, IntArray
from .options import SignalOptions

_MIN_CORRELATION = 0.5
_CHANCE = 1e-4
_MIN_OVERLAP = 8
_ROUNDING = 1e-12  # of squares
_AT_ONCE = 1 << 16  # samples that are correlated
_PARTS = 16  # parts whose sums give the uncertainty


@dataclasses.dataclass(frozen=True)
class Lag:
    """Delay of one series behind another, s, positive if it is late, with standard uncertainty."""

    seconds: float
    std: float

    @property
    def is_certain(self) -> bool:
        """Whether it is more than twice its uncertainty."""
        return abs(self.seconds) > 2.0 * self.std


def find_lag(series: FloatArray, reference: FloatArray, rate: float, max_lag: float) -> Lag | None:
    """Return the lag at which a series is most like a reference.

    At every lag the correlation coefficient r of each column is taken over the overlap alone,
    about its own mean. It is 1 at the right lag even if the signals drift, unlike the
    cross-correlation. The result is the maximum-likelihood lag of columns with independent noise
    and different positive gains: it maximises -m log(1 - r^2) of m samples, summed over the
    columns, so that an axis without motion has no influence. Between samples the peak is that of
    the parabola through the three highest values, with the weights of the columns at the peak.

    Series and reference are (n, k) on a grid of `rate` Hz; lags up to
    `max_lag` s of either sign are searched. The result is None without a clear peak: if it is at
    the end of the range, no column has a correlation of 0.5 there, white noise would give such a
    peak in one of 10,000 searches, or the uncertainty exceeds the range.
    """
    from scipy.special import chdtri

    n = len(series)
    most = min(round(max_lag * rate), n - _MIN_OVERLAP)
    if most < 1:
        return None
    alike = np.clip(_correlations(series, reference, most), 0.0, 1.0)
    unexplained = np.maximum(1.0 - alike**2, _ROUNDING)
    overlap = n - np.abs(np.arange(-most, most + 1))
    # Twice the log-likelihood ratio; chi-squared for white noise (Wilks).
    likelihood = -(overlap - 3) * np.sum(np.log(unexplained), axis=1)
    peak = int(np.argmax(likelihood))
    if peak in (0, 2 * most) or not alike[peak].max() >= _MIN_CORRELATION:
        return None
    if likelihood[peak] < chdtri(alike.shape[1], _CHANCE / len(likelihood)):
        return None
    before, top, after = alike[peak - 1 : peak + 2] @ (alike[peak] / unexplained[peak])
    bend = before - 2.0 * top + after
    shift = 0.5 * (before - after) / bend if bend < 0.0 else 0.0
    std = _lag_deviation(series, reference, peak - most) / rate
    if not std <= max_lag:
        return None
    return Lag(float((peak - most + shift) / rate), std)


def lag_of(
    series: FloatArray, reference: FloatArray, rate: float, options: SignalOptions
) -> tuple[Lag | None, float]:
    """Return the lag, and the time in s to subtract from the stamps.

    The time is 0 unless the option `align` is `apply` and the lag is certain. See `find_lag`.
    """
    lag = find_lag(series, reference, rate, options.max_lag)
    if lag is None or options.align != 'apply' or not lag.is_certain:
        return lag, 0.0
    return lag, lag.seconds


def _lag_deviation(a: FloatArray, b: FloatArray, lag: int) -> float:
    """Return the standard uncertainty, samples, of a lag near `lag` of a behind b.

    A small delay s changes the reference b to b - s b'. A least-squares fit of the difference to
    b' gives s, and the residual gives its uncertainty; each column is weighted by its errors.
    Persistent errors are not white noise, so the variance of the sum of products is estimated from
    the sums over 16 consecutive parts.
    """
    n = len(a)
    a, b = a[max(lag, 0) : n + min(lag, 0)], b[max(-lag, 0) : n - max(lag, 0)]
    count = min(_PARTS, len(b) // 4)
    if count < 2:
        return float('nan')
    mean = sum_by_blocks(np.subtract, a, b) / len(b)
    errors = sum_by_blocks(lambda series, reference: np.square(series - reference - mean), a, b)
    weights = 1.0 / np.maximum(errors / (float(errors.max()) or 1.0), _ROUNDING)

    def powers(first: int, last: int) -> FloatArray:
        """Sums of b'^2, and of b' times the error about its mean, from a row to before another."""
        total = np.zeros(2)
        for part in blocks(last - first):
            rows = slice(first + part.start, first + part.stop)
            slope, error = _slope(b, rows), a[rows] - b[rows] - mean
            total += np.sum(slope * slope @ weights), np.sum(slope * error @ weights)
        return total

    # Parts of nearly equal length, the longer ones first.
    least, more = divmod(len(b), count)
    ends = [i * least + min(i, more) for i in range(count + 1)]
    squares, products = np.transpose([powers(*bounds) for bounds in itertools.pairwise(ends)])
    power = float(squares.sum())
    if not power > 0.0:
        return float('nan')
    residuals = products - squares * products.sum() / power
    return float(np.sqrt(count * np.var(residuals, ddof=1)) / power)


def _slope(values: FloatArray, rows: slice) -> FloatArray:
    """Return the slope per sample of some rows, as central differences (one-sided at the ends)."""
    around = slice(max(rows.start - 1, 0), rows.stop + 1)
    here = slice(rows.start - around.start, rows.stop - around.start)
    return np.asarray(np.gradient(values[around], axis=0)[here])


def _correlations(a: FloatArray, b: FloatArray, most: int) -> FloatArray:
    """Return the correlation coefficients (lags, k) of a[k:] and b[:n-k], by column.

    The lags k are -most .. most, and each part has its own mean. Sums of products are computed by
    FFT, those of one series as running sums.
    """
    n = len(a)
    means = [sum_by_blocks(np.asarray, series) / n for series in (a, b)]
    lags = np.arange(-most, most + 1)
    begin, end_rows = np.maximum(lags, 0), np.maximum(-lags, 0)
    sums_a, squares_a = _between(a, means[0], begin, end_rows)
    sums_b, squares_b = _between(b, means[1], end_rows, begin)
    count = (n - begin - end_rows)[:, None]
    covariance = _products(a, b, means, most) - sums_a * sums_b / count
    power_a, power_b = (
        squares - sums**2 / count for sums, squares in ((sums_a, squares_a), (sums_b, squares_b))
    )
    # The variance of a constant is a rounding error. The sum at lag 0 has all squares.
    good = power_a > 1e-12 * float(np.sum(squares_a[most]))
    good &= power_b > 1e-12 * float(np.sum(squares_b[most]))
    scale = np.sqrt(np.where(good, power_a * power_b, 1.0))
    return np.where(good, covariance / scale, 0.0)


def _products(a: FloatArray, b: FloatArray, means: Sequence[FloatArray], most: int) -> FloatArray:
    """Return the sums (lags, columns) over k of a[k] b[k - lag], less their means.

    The lags are -most .. most. The transform of a part is long enough that only longer lags wrap
    around.
    """
    from scipy.fft import irfft, next_fast_len, rfft

    n = len(a)
    size = next_fast_len(min(n + 2 * most, max(_AT_ONCE, 8 * most)), real=True)
    total = np.zeros((size // 2 + 1, a.shape[1]), dtype=np.complex128)
    for start in range(0, n, size - 2 * most):
        end = min(start + size - 2 * most, n)
        low = start - most
        around = b[max(low, 0) : end + most] - means[1]
        around = np.pad(around, ((max(-low, 0), 0), (0, 0)))
        transform, around_transform = (
            rfft(part, size, axis=0) for part in (a[start:end] - means[0], around)
        )
        total += np.conj(transform) * around_transform
    return np.asarray(irfft(total, size, axis=0)[2 * most :: -1])


def _between(
    values: FloatArray, mean: FloatArray, begin: IntArray, end_rows: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return sums of values less their mean, and of the squares, each (lags, k).

    For each lag, `begin` rows at the beginning and `end_rows` at the end are left out.
    """

    def powers(rows: FloatArray) -> FloatArray:
        rows = rows - mean
        return np.hstack([rows, np.square(rows)])

    def first(rows: FloatArray) -> FloatArray:
        """Return the sums of the first 0, 1, 2 ... rows."""
        return np.vstack([np.zeros((1, 2 * len(mean))), np.cumsum(powers(rows), axis=0)])

    head, tail = first(values[: begin.max()]), first(values[: -end_rows.max() - 1 : -1])
    sums, squares = np.hsplit(sum_by_blocks(powers, values) - head[begin] - tail[end_rows], 2)
    return sums, squares
