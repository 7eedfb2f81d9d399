# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Spectral lines of vibration and hum in a record at rest, which are no noise.

The averaged periodogram of evenly spaced samples is compared with its medians over the bins on
either side. A line stands above the larger of the two by a factor and is narrow. The noise of
sensors passes neither test: a slope (flicker, random walk, low pass) is below the median of its
higher side, and a resonance is wide. Fewer than 1 of 1000 records of noise alone show a line.

A line is taken out by scaling its bins of the short-time Fourier transform to the density beside
it, so that the noise there stays.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from scipy.signal import detrend, istft, stft, welch

from sim_sensors.core.measurements import FloatArray
from .screening import runs_of

# Density over that beside it. White noise reaches this in fewer than 1 of 1000 records of 500 000
# bins, averaged as below.
_FACTOR = 4.0
_SEGMENTS, _LONGEST_SEGMENT, _SHORTEST_SEGMENT = 12, 1 << 16, 1024
# Bins on either side whose median is the density there; nothing is found below so many bins.
_SIDE = 12
# Width at half the height: bins that a sine may take, and the share of the frequency.
_NARROW_BINS, _NARROW_SHARE = 3, 0.05
_ROUNDS = 5


@dataclasses.dataclass(frozen=True)
class SpectralLine:
    """A line: its frequency, Hz, and the root mean square of its signal, u."""

    frequency: float
    rms: float


def without_lines(values: FloatArray, rate: float) -> tuple[FloatArray, list[SpectralLine]]:
    """Return samples `(n,)` at `rate` Hz without their spectral lines, and the lines.

    The strongest line is first. The samples are unchanged if there is no line.

    Examples
    --------
    >>> noise = np.random.default_rng(1).standard_normal(100_000)
    >>> hum = 0.3 * np.sin(2.0 * np.pi * 17.0 * np.arange(100_000) / 100.0)
    >>> clean, lines = without_lines(noise + hum, rate=100.0)
    >>> [(round(line.frequency, 2), round(line.rms, 2)) for line in lines]
    [(17.0, 0.21)]
    >>> round(float(np.std(clean)), 2)
    1.0
    """
    clean = values
    found: list[SpectralLine] = []
    # The rest of a strong line may be a line, too.
    for _ in range(_ROUNDS):
        lines, gain = _find(clean, rate)
        if not lines:
            break
        clean = _scaled(clean, rate, lines, gain)
        found = found or lines
    return clean, found


def _find(values: FloatArray, rate: float) -> tuple[list[SpectralLine], FloatArray]:
    """Return the lines, the strongest first, and the gain at each frequency that removes them."""
    length = min(1 << int(math.log2(max(len(values) / _SEGMENTS * 2.0, 1.0))), _LONGEST_SEGMENT)
    if length < _SHORTEST_SEGMENT:
        return [], np.ones(1)
    frequency, power = welch(values, rate, nperseg=length)
    gain = np.ones(len(power))
    lines = []
    for start, stop, floor in _narrow_peaks(power):
        band = slice(start, stop)
        excess = power[band] - floor
        mean = float(frequency[band] @ excess / excess.sum())
        lines.append(SpectralLine(mean, math.sqrt(excess.sum() * frequency[1])))
        gain[band] = np.sqrt(floor / power[band])
    return sorted(lines, key=lambda line: -line.rms), gain


def _scaled(
    values: FloatArray, rate: float, lines: list[SpectralLine], gain: FloatArray
) -> FloatArray:
    """Return samples `(n,)` with a gain `(k,)` at frequencies from 0 to half the rate."""
    n, half = len(values), len(gain) - 1
    # Copies continue the record at its ends, later or earlier by a time that is nearly a whole
    # number of periods: a line that ended there would leak into other frequencies.
    shifts = np.arange(2 * half, 4 * half)
    match = sum(
        line.rms**2 * np.cos(2.0 * np.pi * line.frequency / rate * shifts) for line in lines
    )
    shift = int(shifts[np.argmax(match)])
    level = detrend(values)
    tail = half + -n % half
    longer = np.concatenate(
        [level[shift - half : shift], level, level[n - shift : n - shift + tail]]
    )
    spectra = stft(longer, nperseg=2 * half, boundary='odd')[2]
    scaled = istft(spectra * gain[:, None], nperseg=2 * half)[1]
    return np.asarray(scaled[half : half + n] + (values - level))


def _narrow_peaks(power: FloatArray) -> list[tuple[int, int, float]]:
    """Return the first bin of each peak, the one after its last, and the density beside it."""
    # The spectrum goes on as its own mirror image at half the sampling rate.
    mirrored = np.pad(power, (0, _SIDE), mode='reflect')
    medians = np.median(np.lib.stride_tricks.sliding_window_view(mirrored, _SIDE), axis=1)
    below, above = medians[: len(power) - _SIDE], medians[_SIDE + 1 :]
    is_high = np.zeros(len(power), dtype=np.bool_)
    is_high[_SIDE:] = power[_SIDE:] > _FACTOR * np.maximum(below, above)
    peaks = []
    for start, stop in runs_of(is_high):
        wide = int(np.sum(power[start:stop] > 0.5 * power[start:stop].max()))
        if wide <= max(_NARROW_BINS, _NARROW_SHARE * start):
            peaks.append((start, stop, math.sqrt(medians[start - _SIDE] * medians[stop])))
    return peaks
