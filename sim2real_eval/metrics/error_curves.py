# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Autocorrelation, spectrum and number of independent samples of the errors of one run.

VEPD measures the size of an error and the flatness of the signal's spectrum. Two errors of the
same size may be jitter or slow drift, which affect a controller differently.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sim_sensors.core.measurements import FloatArray


@dataclasses.dataclass(frozen=True, eq=False)
class PowerSpectrum:
    """One-sided power spectral density, the mean of `segments` periodograms.

    `frequency` `(m,)` Hz omits 0, because the mean of every segment is removed. `density` `(m, k)`
    is u^2/Hz of signals in u.
    """

    frequency: FloatArray
    density: FloatArray
    segments: int


def default_segment(samples: int) -> int:
    """Return the largest power of two at most a quarter of `samples`, but at least 8 samples."""
    return max(1 << max((samples // 4).bit_length() - 1, 0), min(8, samples))


def spectrum(values: FloatArray, rate: float, nperseg: int, window: str = 'hann') -> PowerSpectrum:
    """Return the density of columns; its integral is their variance about the segments' means.

    Welch's method [Welch1967] as in SciPy: half-overlapping segments (none for `boxcar`), each
    without its mean. The integral is exactly the variance for `boxcar` and one segment
    (Parseval); for a taper it is so on average. The values are (n, k) at `rate` Hz; `nperseg` is
    at most n, and `window` hann, hamming or boxcar.
    """
    overlap = 0 if window == 'boxcar' else nperseg // 2
    flat = _TAPERS[window]
    taper: FloatArray = flat + (1.0 - flat) * np.cos(np.linspace(-np.pi, np.pi, nperseg + 1)[:-1])
    taper *= 1.0 / math.sqrt(np.cumsum(taper**2)[-1] / (1.0 / rate))
    columns = [values] if values.size <= _AT_ONCE else np.split(values, values.shape[1], axis=1)
    densities = [_welch(column, taper, nperseg - overlap) for column in columns]
    segments = (len(values) - overlap) // (nperseg - overlap)
    frequency = np.fft.rfftfreq(nperseg, 1.0 / rate)[1:].astype(np.float64)
    return PowerSpectrum(frequency, np.hstack(densities), int(segments))


# Mean of each part of a taper; the rest is a cosine.
_TAPERS = {'hann': 0.5, 'hamming': 0.54, 'boxcar': 1.0}


def _welch(values: FloatArray, taper: FloatArray, step: int) -> FloatArray:
    """Return the mean periodogram (m, k) of columns (n, k), without frequency 0.

    A segment is as long as the taper and begins `step` after the one before. All is added up as
    `scipy.signal.welch` does, whose import takes longer than the spectra of most studies.
    """
    n = len(taper)
    cut = np.lib.stride_tricks.sliding_window_view(values.T, n, axis=-1)[:, ::step]
    power = np.empty((len(cut), n // 2, cut.shape[1]))
    some = max(_AT_ONCE // (len(cut) * n), 1)
    for start in range(0, cut.shape[1], some):
        part = cut[:, start : start + some]
        part = np.fft.rfft((part - part.mean(axis=-1, keepdims=True)) * taper)[..., 1:]
        power[..., start : start + some] = np.moveaxis(part.real**2 + part.imag**2, -1, -2)
    # All but the Nyquist frequency represent a positive and a negative frequency.
    power[:, : (n - 1) // 2] *= 2.0
    return np.asarray(power.mean(axis=-1).T)


_AT_ONCE = 1 << 21  # values; several transforms of them are in memory
_LONGEST_LAG = 5.0  # s


@dataclasses.dataclass(frozen=True, eq=False)
class CurveDistance:
    """Root mean squared difference of the mean curves, (runs, points), of two sets of runs."""

    curves: FloatArray

    def between(self, first: NDArray[np.bool_]) -> FloatArray:
        """Return the distance between the runs chosen by each row of `(p, runs)` and the rest."""
        first_weights = first / first.sum(axis=1, keepdims=True)
        gap = (first_weights - ~first / (~first).sum(axis=1, keepdims=True)) @ self.curves
        distance = np.sqrt(np.mean(gap**2, axis=1))
        return np.where(distance > 1e-12, distance, 0.0)


def autocorrelation(values: FloatArray, lags: int) -> FloatArray:
    """Return the sample autocorrelation of a series `(n,)` at lags 1 to `lags`, `(lags,)`.

    Covariances about the mean are divided by n at every lag, so that they belong to a non-negative
    density (M. B. Priestley, Spectral Analysis and Time Series, 1981, section 5.3.3). The result
    is zero for a constant series; `lags` must be less than n.
    """
    covariance = _autocovariance(values)[: lags + 1]
    if not covariance[0] > 0.0:
        return np.zeros(lags)
    return np.asarray(covariance[1:] / covariance[0])


def _autocovariance(values: FloatArray) -> FloatArray:
    # Padding to twice the length avoids a circular correlation.
    n = len(values)
    transform = np.fft.rfft(values - np.mean(values), 2 * n)
    return np.asarray(np.fft.irfft(transform * np.conj(transform), 2 * n))


def error_autocorrelations(errors: Sequence[FloatArray], rate: float) -> FloatArray:
    """Return the autocorrelation, (runs, lags), of the error (n,) of each run at `rate` Hz.

    Lags go to 5 s, or to half of the shortest run.
    """
    shortest = min(len(error) for error in errors)
    lags = max(1, min(round(_LONGEST_LAG * rate), shortest // 2))
    return np.stack([autocorrelation(error, lags) for error in errors])


def error_spectra(errors: Sequence[FloatArray], rate: float) -> FloatArray:
    """Return the power spectral density of each run, (runs, frequencies), u^2/Hz of errors in u.

    Welch's method with one segment length for all runs, chosen for the shortest; see
    `sim2real_eval.metrics.error_curves`. Parameters as in `error_autocorrelations`.
    """
    lengths = np.array([len(error) for error in errors])
    segment = default_segment(int(lengths.min()))
    density_by_run: dict[int, FloatArray] = {}
    # Runs of equal length are transformed together, which is much faster.
    for length in np.unique(lengths):
        chosen = np.flatnonzero(lengths == length)
        columns = np.stack([errors[i] for i in chosen.tolist()], axis=1)
        density_by_run |= zip(
            chosen.tolist(), spectrum(columns, rate, segment).density.T, strict=True
        )
    return np.stack([density_by_run[i] for i in range(len(errors))])


def correlation_time(values: FloatArray) -> float:
    """Return the integrated autocorrelation time of a series, in samples.

    The time is 1 + 2 (rho_1 + rho_2 + ...), which is 1 for white noise. The mean of n samples has
    the variance of that of n / time independent ones. The sum ends at the first pair rho_2k +
    rho_2k+1 that is not positive, because noise dominates from there on. Pairs are made to
    decrease (the initial monotone sequence of Geyer, Practical Markov Chain Monte Carlo,
    Statistical Science 7, 1992, section 3.3). The n values are at nearly equal distances. The
    result is between 1 and n, and n for a constant series.
    """
    n = len(values)
    if n < 2:
        return 1.0
    covariance = _autocovariance(values)[:n]
    if not covariance[0] > 0.0:
        return float(n)
    rho = covariance / covariance[0]
    even = 2 * (n // 2)
    pairs = rho[0:even:2] + rho[1:even:2]
    noise = np.flatnonzero(pairs <= 0.0)
    decreasing_pairs = np.minimum.accumulate(pairs[: noise[0] if len(noise) else None])
    return float(np.clip(2.0 * np.sum(decreasing_pairs) - 1.0, 1.0, n))


def effective_samples(values: FloatArray) -> float:
    """Return the number of independent samples whose mean has the same variance."""
    return len(values) / correlation_time(values) if len(values) else 0.0
