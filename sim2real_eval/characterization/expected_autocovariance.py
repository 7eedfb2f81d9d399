# SPDX-License-Identifier: Apache-2.0
"""What the autocovariance of records of a fitted model is, on average and give or take."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.signal import fftconvolve

from sim2real_eval.characterization.markov_fit import MarkovFit
from sim_sensors.measurements import FloatArray

__all__ = ['autocovariance_scatter', 'expected_autocovariance']


def expected_autocovariance(
    fit: MarkovFit, lengths: Sequence[int], period: float, lags: int
) -> FloatArray:
    """Return the mean of `markov_likelihood.autocovariance` over records of the model.

    Each record is taken about its own mean, which takes some of a slow wander away: at lag k the
    covariances of x[i] - m and x[i + k] - m are summed sample by sample.

    Parameters
    ----------
    fit : MarkovFit
    lengths : sequence of int
        Samples of each record.
    period : float
        s between samples.
    lags : int

    Returns
    -------
    (lags + 1,) float
        m^2.
    """
    sums, counts = np.zeros(lags + 1), np.zeros(lags + 1)
    for n in lengths:
        c = _covariances(fit, n, period)
        # Mean of the covariances of a sample with all others, sample by sample.
        cumulated = np.cumsum(c)
        with_all = (cumulated + cumulated[::-1] - c[0]) / n
        whole = float(with_all.mean())
        for k in range(min(lags, n - 1) + 1):
            sums[k] += (n - k) * (c[k] + whole) - with_all[: n - k].sum() - with_all[k:].sum()
            counts[k] += n
    return sums / np.maximum(counts, 1.0)


def autocovariance_scatter(
    fit: MarkovFit, lengths: Sequence[int], period: float, lags: int
) -> FloatArray:
    """Return the standard deviation of `autocovariance` over records of the model.

    Bartlett's formula for N samples of a normal process (Brockwell and Davis, Time Series: Theory
    and Methods, 7.2): N var(c_k) = sum over all j of c_j^2 + c_(j+k) c_(j-k). It holds for records
    of many time constants; of few, whose mean takes part of it away, it is too much. Neighbouring
    lags err alike, so dots that leave the fit for a while are what such records do.

    Parameters
    ----------
    fit, lengths, period, lags
        See `expected_autocovariance`.

    Returns
    -------
    (lags + 1,) float
        m^2.
    """
    c = _covariances(fit, max(lengths), period)
    both = np.concatenate([c[:0:-1], c])
    # At 2 k from the middle: the sum of c_(j+k) c_(j-k); beyond the end it is nothing.
    products = np.append(fftconvolve(both, both), 0.0)
    middle = len(both) - 1
    crossed = products[np.minimum(middle + 2 * np.arange(lags + 1), len(products) - 1)]
    variance: FloatArray = np.maximum((products[middle] + crossed) / sum(lengths), 0.0)
    return np.asarray(np.sqrt(variance))


def _covariances(fit: MarkovFit, n: int, period: float) -> FloatArray:
    """Return the autocovariance of the model itself at lags 0 to n - 1, `(n,)` m^2."""
    g = fit.wander.value if fit.walk.observable else 0.0
    time = fit.time.value if fit.walk.observable else 1.0
    c: FloatArray = g**2 * np.exp(-np.arange(n) * period / time)
    c[0] += fit.white.value**2
    return c
