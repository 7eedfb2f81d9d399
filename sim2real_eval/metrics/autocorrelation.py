# SPDX-License-Identifier: Apache-2.0
"""How many independent samples is a correlated series worth?"""

from __future__ import annotations

import numpy as np

from sim_sensors.measurements import FloatArray

__all__ = ['correlation_time', 'effective_samples']


def correlation_time(values: FloatArray) -> float:
    """Return the integrated autocorrelation time of a series, in samples.

    It is 1 + 2 (rho_1 + rho_2 + ...), 1 for white noise; the mean of n samples varies as that of
    n / time independent ones. The sum ends where the noise of the estimated autocorrelation takes
    over: at the first pair rho_2k + rho_2k+1 that is not positive, pairs being made to decrease
    (the initial monotone sequence of Geyer, Practical Markov Chain Monte Carlo, Statistical
    Science 7, 1992, section 3.3).

    Parameters
    ----------
    values : (n,) float
        At even distances, about.

    Returns
    -------
    float
        At least 1, at most n; n for a series that does not vary.
    """
    n = len(values)
    if n < 2:
        return 1.0
    centred = values - np.mean(values)
    # Padded to twice the length, so that the end does not meet the beginning.
    spectrum = np.fft.rfft(centred, 2 * n)
    covariance = np.fft.irfft(spectrum * np.conj(spectrum), 2 * n)[:n]
    if not covariance[0] > 0.0:
        return float(n)
    rho = covariance / covariance[0]
    even = 2 * (n // 2)
    pairs = rho[0:even:2] + rho[1:even:2]
    noise = np.flatnonzero(pairs <= 0.0)
    kept = np.minimum.accumulate(pairs[: noise[0] if len(noise) else None])
    return float(np.clip(2.0 * np.sum(kept) - 1.0, 1.0, n))


def effective_samples(values: FloatArray) -> float:
    """Return how many independent samples have a mean as sure as that of the series."""
    return len(values) / correlation_time(values) if len(values) else 0.0
