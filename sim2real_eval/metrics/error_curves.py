# SPDX-License-Identifier: Apache-2.0
"""Autocorrelation and spectrum of an error: curves of one run.

VEPD knows an error by its size and by the flatness of the whole signal's spectrum. Two errors of
one size may be a jitter and a slow wander, which a controller experiences differently.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.signals.spectrum import default_segment, spectrum
from sim_sensors.measurements import FloatArray

__all__ = ['CurveDistance', 'autocorrelation', 'error_autocorrelations', 'error_spectra']

_LONGEST_LAG = 5.0  # s


@dataclasses.dataclass(frozen=True, eq=False)
class CurveDistance:
    """Root mean squared difference of the mean curves of two sets of the same runs.

    Attributes
    ----------
    curves : (runs, points) float
    """

    curves: FloatArray

    def between(self, first: NDArray[np.bool_]) -> FloatArray:
        """Return the distance between the runs chosen by each row of `(p, runs)` and the rest."""
        one = first / first.sum(axis=1, keepdims=True)
        gap = (one - ~first / (~first).sum(axis=1, keepdims=True)) @ self.curves
        found = np.sqrt(np.mean(gap**2, axis=1))
        return np.where(found > 1e-12, found, 0.0)


def autocorrelation(values: FloatArray, lags: int) -> FloatArray:
    """Return the sample autocorrelation at lags 1 to `lags`, `(lags,)`.

    Covariances about the mean are divided by n whatever the lag, so that they stay those of a
    density (M. B. Priestley, Spectral Analysis and Time Series, 1981, section 5.3.3). Zero for a
    series that never changes.

    Parameters
    ----------
    values : (n,) float
    lags : int
        Less than n.
    """
    n = len(values)
    centred = values - np.mean(values)
    # Padded to twice the length, so that the end does not meet the beginning.
    transform = np.fft.rfft(centred, 2 * n)
    covariance = np.fft.irfft(transform * np.conj(transform), 2 * n)[: lags + 1]
    if not covariance[0] > 0.0:
        return np.zeros(lags)
    return np.asarray(covariance[1:] / covariance[0])


def error_autocorrelations(errors: Sequence[FloatArray], rate: float) -> FloatArray:
    """Return the autocorrelation function of each run, (runs, lags).

    Parameters
    ----------
    errors : sequence of (n,) float
        Error of each run at `rate` Hz. Lags go to 5 s, or to half of the shortest run.
    """
    shortest = min(len(error) for error in errors)
    lags = max(1, min(round(_LONGEST_LAG * rate), shortest // 2))
    return np.stack([autocorrelation(error, lags) for error in errors])


def error_spectra(errors: Sequence[FloatArray], rate: float) -> FloatArray:
    """Return the power spectral density of each run, (runs, frequencies), u^2/Hz of errors in u.

    Welch's method with one segment length for all runs, chosen for the shortest; see
    `sim2real_eval.signals.spectrum`. Parameters as in `error_autocorrelations`.
    """
    lengths = np.array([len(error) for error in errors])
    segment = default_segment(int(lengths.min()))
    found: dict[int, FloatArray] = {}
    # Runs of one length at once: most of the time would go into preparing the next one.
    for length in np.unique(lengths):
        chosen = np.flatnonzero(lengths == length)
        columns = np.stack([errors[i] for i in chosen.tolist()], axis=1)
        found |= zip(chosen.tolist(), spectrum(columns, rate, segment).density.T, strict=True)
    return np.stack([found[i] for i in range(len(errors))])
