# SPDX-License-Identifier: Apache-2.0
"""Wiener entropy, also called spectral flatness: how noise-like a signal is."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from sim2real_eval.metrics.options import MetricError, MetricOptions
from sim_sensors.measurements import FloatArray

__all__ = ['wiener_entropy']


def wiener_entropy(signal: ArrayLike, options: MetricOptions | None = None) -> float:
    r"""Return the Wiener entropy of a signal as the paper computes it.

    With A_k the magnitudes of the full complex FFT (both halves, no window) and e the floor:

    .. math:: SF = \exp(\overline{\ln(A_k + e)}) / \overline{A_k}

    It does not depend on the scale of the signal (as long as A >> e) and lies between 0 (all in
    one frequency: a constant) and 1 (all frequencies alike: an impulse). White Gaussian noise
    gives exp((ln 2 - gamma) / 2) / sqrt(pi / 2) = 0.8455, and exp(-gamma) = 0.5615 with the power
    spectrum. Source: [Mahajan2024], section II-E, and its scripts [SBEL].

    Parameters
    ----------
    signal : (n,) array_like
        Samples on an even grid.
    options : MetricOptions, optional
        Uses `spectrum`, `detrend` and `spectrum_floor`.

    Returns
    -------
    float
        Dimensionless.

    Raises
    ------
    MetricError
        Signal empty, not finite, or zero throughout (0 / 0: its spectrum has no shape).

    Examples
    --------
    >>> round(wiener_entropy([0.0, 1.0, 0.0, 0.0]), 6)
    1.0
    """
    options = options or MetricOptions()
    values: FloatArray = np.asarray(signal, dtype=np.float64)
    if values.ndim != 1 or len(values) == 0 or not np.all(np.isfinite(values)):
        raise MetricError('entropy of a signal that is empty, not (n,) or not finite')
    if options.detrend == 'mean':
        values = values - values.mean()
    amplitude = np.abs(np.fft.fft(values))
    if options.spectrum == 'power':
        amplitude = amplitude**2
    mean = float(np.mean(amplitude))
    if mean == 0.0:
        problem = 'without its mean ' if options.detrend == 'mean' else ''
        raise MetricError(f'signal {problem}is zero throughout; its Wiener entropy is undefined')
    return float(np.exp(np.mean(np.log(amplitude + options.spectrum_floor))) / mean)
