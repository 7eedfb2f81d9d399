# SPDX-License-Identifier: Apache-2.0
"""Power spectral density by Welch's method."""

from __future__ import annotations

import dataclasses

import numpy as np

from sim_sensors.measurements import FloatArray

__all__ = ['Spectrum', 'default_segment', 'spectrum']


@dataclasses.dataclass(frozen=True, eq=False)
class Spectrum:
    """One-sided power spectral density.

    Attributes
    ----------
    frequency : (m,) float
        Hz, without 0: the mean is taken out of every segment.
    density : (m, k) float
        u^2/Hz of signals in u.
    segments : int
        How many periodograms were averaged.
    """

    frequency: FloatArray
    density: FloatArray
    segments: int


def default_segment(samples: int) -> int:
    """Return the largest power of two at most a quarter of `samples`, but at least 8 samples."""
    return max(1 << max((samples // 4).bit_length() - 1, 0), min(8, samples))


def spectrum(values: FloatArray, rate: float, nperseg: int, window: str = 'hann') -> Spectrum:
    """Return the density of columns; its integral is their variance about the segments' means.

    [Welch1967], as scipy has it: half-overlapping segments (none for
    `boxcar`), each without its mean. With `boxcar` and one segment the integral is the variance
    exactly (Parseval); with a taper in the mean only.

    Parameters
    ----------
    values : (n, k) float
    rate : float
        Hz.
    nperseg : int
        At most n.
    window : str
        As in `scipy.signal.get_window`.
    """
    from scipy.signal import welch

    overlap = 0 if window == 'boxcar' else nperseg // 2
    frequency, density = welch(
        values,
        rate,
        window=window,
        nperseg=nperseg,
        noverlap=overlap,
        detrend='constant',
        axis=0,
    )
    segments = (len(values) - overlap) // (nperseg - overlap)
    return Spectrum(
        np.asarray(frequency[1:], dtype=np.float64),
        np.asarray(density[1:], dtype=np.float64),
        int(segments),
    )
