# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Agreement of two series, and distances between sets of runs.

RMSE, correlation and trend describe a series. The distances of errors and of spectra give
every run the same weight, so that runs can change sides in a permutation test.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sim2real_eval.metrics.mean_wasserstein import side_weights
from sim_sensors.core.blocks import blocks, sum_by_blocks
from sim_sensors.core.measurements import FloatArray, IntArray
from .options import SignalComparisonError


@dataclasses.dataclass(frozen=True)
class SeriesAgreement:
    """Agreement of one series with another, as in table 2 of [Ligorio2015].

    `rmse` is the root mean square of the difference and `mean` its mean. `correlation` is
    Pearson's R, or None if one of the series is constant.
    """

    rmse: float
    mean: float
    correlation: float | None
    samples: int


def agreements(
    values: FloatArray, reference: FloatArray, error: FloatArray
) -> tuple[SeriesAgreement, ...]:
    """Return the agreement of each column of two series `(n, k)`.

    `error` is their difference, with wrapped angles.
    """
    count, columns = values.shape
    signal_mean, reference_mean = (
        sum_by_blocks(np.asarray, series) / count for series in (values, reference)
    )

    def products(value: FloatArray, true: FloatArray, error: FloatArray) -> FloatArray:
        value, true = value - signal_mean, true - reference_mean
        return np.hstack([value * value, true * true, value * true, error * error, error])

    powers = (sum_by_blocks(products, values, reference, error) / count).reshape(5, columns)
    # Rounding makes the standard deviation of a constant larger than 0.
    least = 1e-15 * _largest(values) * _largest(reference)
    spreads = np.sqrt(powers[0]) * np.sqrt(powers[1])
    return tuple(
        SeriesAgreement(
            rmse=float(np.sqrt(square)),
            mean=float(mean),
            correlation=float(np.clip(product / spread, -1.0, 1.0)) if spread > limit else None,
            samples=count,
        )
        for product, square, mean, spread, limit in zip(*powers[2:], spreads, least, strict=True)
    )


def _largest(values: FloatArray) -> FloatArray:
    return np.asarray(np.maximum(values.max(axis=0), -values.min(axis=0)))


def mean_agreement(runs: Sequence[SeriesAgreement]) -> SeriesAgreement:
    """Return the mean agreement of several runs with equal weights.

    RMSE is the root mean square of those of the runs; the correlation is their mean.
    """
    correlations = [run.correlation for run in runs if run.correlation is not None]
    return SeriesAgreement(
        rmse=float(np.sqrt(np.mean([run.rmse**2 for run in runs]))),
        mean=float(np.mean([run.mean for run in runs])),
        correlation=float(np.mean(correlations)) if correlations else None,
        samples=sum(run.samples for run in runs),
    )


def median_trend(values: FloatArray, window: int) -> FloatArray:
    """Return the median of the samples n-k .. n+k at every n ([Cesenek2019], 3.2.3).

    Beyond the ends the first and last sample are repeated, so a ramp stays unchanged there too.
    An isolated spike of at most k samples vanishes.

    The window is the full length 2k + 1. Raises SignalComparisonError if it is even or longer than
    the series.
    """
    if window < 1 or window % 2 == 0:
        raise SignalComparisonError(f'trend window: {window} is not allowed; must be odd, 2k + 1')
    if window > len(values):
        raise SignalComparisonError(
            f'trend window: {window} samples are longer than the series of {len(values)}; must be '
            f'at most {len(values) - (len(values) + 1) % 2}'
        )
    # Imported here because most studies do not need it.
    from scipy.ndimage import median_filter

    return np.asarray(median_filter(values, size=window, mode='nearest'))


def unwrap(angle: FloatArray) -> FloatArray:
    """Return angles, (n,) rad, without jumps of whole turns; see `numpy.unwrap`."""
    return np.asarray(np.unwrap(angle))


def wrap(angle: ArrayLike) -> FloatArray:
    """Return angles, rad, in [-pi, pi)."""
    angles = np.asarray(angle, dtype=np.float64)
    # Angles that are small already keep their bits.
    inside = (angles >= -np.pi) & (angles < np.pi)
    if inside.all():
        return angles
    return np.asarray(np.where(inside, angles, np.mod(angles + np.pi, 2.0 * np.pi) - np.pi))


def median_rate(time: FloatArray) -> float:
    """Return the median rate, Hz, of samples at `time` `(n,)` s; equal stamps are ignored."""
    steps = np.diff(time)
    steps = steps[steps > 0.0]
    if not len(steps):
        return 0.0
    step = float(np.median(steps))
    # Stamps are whole nanoseconds; for long runs, seconds are rounded more coarsely.
    whole = float(np.round(2e9 * step)) / 2e9
    is_near = whole > 0.0 and abs(whole - step) <= 2.0 * np.spacing(abs(time[-1]))
    return 1.0 / (whole if is_near else step)


def grid(time: FloatArray, rate: float) -> FloatArray:
    """Return the times from the first to the last of `time` at `rate` Hz, `(m,)` s."""
    count = int(np.floor((time[-1] - time[0]) * rate * (1.0 + 1e-12) + 1e-6)) + 1
    return np.asarray(time[0] + np.arange(count) / rate)


def resample(time: FloatArray, values: FloatArray, at: FloatArray) -> FloatArray:
    """Interpolate columns linearly; beyond the ends the first or last sample is held.

    A value interpolated between two samples of white noise has 50 to 100 % of their variance. If
    the grid does not match the stamps, the spectrum is therefore too low at high frequencies: by a
    factor of (2 + cos(2 pi f / rate)) / 3, averaged over the phases.

    Times `(n,)` s do not decrease; of samples with equal times, the last is used. Values `(n, k)`
    become `(m, k)` at the times `(m,)`. They are returned unchanged if the times differ only by
    rounding.
    """
    last = np.append(time[1:] > time[:-1], True)
    if not last.all():
        time, values = time[last], values[last]
    if len(time) == len(at) and _are_equal(time, at):
        return values

    return np.stack([np.interp(at, time, column) for column in values.T], axis=1)


def _are_equal(time: FloatArray, other: FloatArray) -> bool:
    """Return whether times differ only by rounding."""
    ends = np.append(time[:1], time[-1:])
    most = 4.0 * np.spacing(np.abs(ends).max(initial=0.0))
    return bool((np.abs(time - other) <= most).all())


def off_grid(time: FloatArray, rate: float) -> float:
    """Return the distance of samples from a grid that starts at the first, in periods, 0 to 0.5.

    The value is the 95 % quantile over the samples.
    """
    phase = (time - time[0]) * rate
    return float(np.quantile(np.abs(phase - np.round(phase)), 0.95))


_POINTS = 2048
_POINTS_AT_ONCE = 1 << 20
_ROUNDING = 1e-12  # difference of sums in another order
_MIN_RATIO = 1e-24  # of the largest density: -240 dB, below rounding errors


def wasserstein(first: Sequence[FloatArray], second: Sequence[FloatArray]) -> float:
    """Return the first Wasserstein distance between the errors of two sets of runs.

    It is the mean distance, in the unit of the errors, by which errors must be moved to turn one
    set into the other
    (C. Villani, Optimal Transport, 2009, chapter 6; `scipy.stats.wasserstein_distance`).

    Parameters
    ----------
    first, second : sequence of (n,) float
        Errors of each run.

    Examples
    --------
    >>> wasserstein([np.array([0.0, 1.0])], [np.array([2.0, 3.0])])
    2.0
    """
    first_errors, second_errors = _Distribution.of(first), _Distribution.of(second)
    points = np.concatenate([first_errors.values, second_errors.values])
    points.sort()
    distance = 0.0
    for part in blocks(len(points) - 1, _POINTS_AT_ONCE):
        first_share, second_share = (
            errors.share(np.searchsorted(errors.values, points[part], side='right'))
            for errors in (first_errors, second_errors)
        )
        widths = np.diff(points[part.start : part.stop + 1])
        distance += float(np.abs(first_share - second_share) @ widths)
    return distance


class _Distribution(NamedTuple):
    """Sorted values, (n,), of runs of equal weight, and the cumulative weights, (n + 1,).

    The weights are None if all are equal.
    """

    values: FloatArray
    weights: FloatArray | None

    @classmethod
    def of(cls, runs: Sequence[FloatArray]) -> _Distribution:
        values = np.concatenate(runs)
        if len({len(run) for run in runs}) == 1:
            values.sort()
            return cls(values, None)
        weights = np.concatenate([np.full(len(run), 1 / len(run)) for run in runs])
        order = np.argsort(values)
        values, weights = values[order], weights[order]
        return cls(values, np.append(0.0, np.cumsum(weights)))

    def share(self, count: IntArray) -> FloatArray:
        """Return the share of the `count` lowest values."""
        if self.weights is None:
            return np.asarray(count / len(self.values))
        return np.asarray(self.weights[count] / self.weights[-1])


def log_spectral_distance(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the root mean square over frequency of 10 log10 (P1 / P2), dB.

    [Gray1976]: the rms log spectral measure.

    Parameters
    ----------
    first, second : (..., m) float
        Densities on the same frequencies. Densities below -240 dB of the largest are raised to it.

    Examples
    --------
    >>> float(log_spectral_distance(np.full(4, 10.0), np.ones(4)))
    10.0
    """
    largest = max(float(np.max(first)), float(np.max(second)))
    if largest == 0.0:
        return np.zeros(np.broadcast_shapes(first.shape, second.shape)[:-1])
    least = _MIN_RATIO * largest
    ratio = 10.0 * np.log10(np.maximum(first, least) / np.maximum(second, least))
    return np.asarray(np.sqrt(np.mean(ratio**2, axis=-1)))


@dataclasses.dataclass(frozen=True, eq=False)
class ErrorDistance:
    """Wasserstein distance for many ways to divide the same runs into two sets.

    The distribution functions are evaluated at 2048 points: errors of all runs at evenly spaced
    ranks. `share` `(runs, points)` is the share of the errors of each run up to each point, and
    `width` the distance from each point to the next.
    """

    share: FloatArray
    width: FloatArray

    @classmethod
    def of(cls, runs: Sequence[FloatArray]) -> ErrorDistance:
        """Prepare the distance from the errors `(n,)` of all runs."""
        pooled = np.concatenate(runs)
        pooled.sort()
        ranks = np.linspace(0, len(pooled) - 1, min(_POINTS, len(pooled))).round().astype(np.intp)
        points = pooled[ranks]
        share = [np.searchsorted(np.sort(run), points, side='right') / len(run) for run in runs]
        return cls(np.stack(share)[:, :-1], np.diff(points))

    def between(self, first: NDArray[np.bool_]) -> FloatArray:
        """Return the distance between the runs chosen by each row of `(p, runs)` and the rest."""
        first_weights, rest_weights = side_weights(first)
        distance = np.abs((first_weights - rest_weights) @ self.share) @ self.width
        return np.where(distance > _ROUNDING * self.width.sum(), distance, 0.0)


@dataclasses.dataclass(frozen=True, eq=False)
class SpectrumDistance:
    """Log spectral distance for many ways to divide the same runs into two sets.

    `density` `(runs, m)` is the density of each run at the same frequencies. It is averaged over
    the runs of a set.
    """

    density: FloatArray

    def between(self, first: NDArray[np.bool_]) -> FloatArray:
        """Return the distance, dB, as `ErrorDistance.between` does."""
        first_weights, rest_weights = side_weights(first)
        distance = log_spectral_distance(first_weights @ self.density, rest_weights @ self.density)
        return np.where(distance > _ROUNDING, distance, 0.0)
