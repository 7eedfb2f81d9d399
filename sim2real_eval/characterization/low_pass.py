# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Low pass of a sensor, found in the spectrum of a record at rest.

The noise that a sensor samples has the spectrum

    S(f) = N^2 |H(f)|^2 + floor + c1 / f + c2 / f^2 + q f^2,

white noise through the filter, white noise added after it (rounding), flicker and random walk, and
the noise of a quantised integral. Each part is at least 0. The averaged periodogram of a record is
compared with it by the likelihood of the periodogram ([Whittle1953]): its values are independent,
and their sums follow gamma laws about S. There is a filter where the same parts without H explain
the spectrum significantly worse, and little of the noise is left beyond it.

H is a Butterworth filter of order 1 to 4: sampled at its output, computed from the samples
(bilinear transform), or that of `sim_sensors.noise.electronics.LowPass`. In the pass band they are
the same.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math

import numpy as np
from scipy.ndimage import median_filter
from scipy.optimize import minimize_scalar, nnls
from scipy.signal import welch
from scipy.stats import chi2

from sim_sensors.core.measurements import FloatArray
from .noise_terms import Coefficient, FilterLimits

# Twice the gain in log-likelihood. The best of shapes and bandwidths is chosen; records of other
# noise reach this in 1 of 1000.
_GAIN = 25.0
# Shares of the density in the pass band: the largest that counts as none, and as a floor.
# Filters differ most where hardly anything is left of the noise.
_NONE, _LARGEST_FLOOR = 0.1, 0.3
# Share of spectra that a right shape fits as well.
_FOLLOWS = 0.95
# Less in twice the log-likelihood: a shape that may be it.
_AS_LIKELY = 9.0
# One of order 1 is the same sampled and held.
_KINDS = {'sampled': (2, 3, 4), 'bilinear': (1, 2, 3, 4), 'held': (1, 2)}
# Cut-off frequencies that are tried, as shares of the rate.
_LOWEST, _HIGHEST = 0.008, 1.0
_SEGMENTS, _LONGEST_SEGMENT, _SHORTEST_SEGMENT = 24, 8192, 256
_BINS = 72
# Frequencies beside a line whose median is the noise at it.
_LINE_WIDTH = 25
_ALIASES = 6


@dataclasses.dataclass(frozen=True)
class LowPassShape:
    """A low pass of white noise at a sampling rate of 1.

    Attributes
    ----------
    cutoff : float
        Frequency of -3 dB over the sampling rate.
    order : int
        Of a Butterworth filter, 1 to 4.
    kind : str
        `sampled`, `bilinear` or `held`; see the module.
    """

    cutoff: float
    order: int
    kind: str = 'sampled'

    def power(self, frequency: FloatArray) -> FloatArray:
        """Return |H|^2, `(n,)`, at frequencies `(n,)` over the sampling rate; 1 at 0.

        Examples
        --------
        >>> LowPassShape(0.1, 2).power(np.array([0.0, 0.1])).round(3)
        array([1. , 0.5])
        """
        return _power(self.kind, self.order, self.cutoff, np.asarray(frequency, np.float64))

    @property
    def noise_bandwidth(self) -> float:
        """Bandwidth of an ideal filter that lets as much white noise pass, over the rate."""
        angle = 0.5 * math.pi / self.order
        return self.cutoff * angle / math.sin(angle)

    def scaled(self, factor: float) -> LowPassShape:
        """Return the same with another cut-off frequency."""
        return dataclasses.replace(self, cutoff=factor * self.cutoff)

    @functools.cached_property
    def sum_variances(self) -> FloatArray:
        """Variance of the sum of 0, 1, 2 ... samples of white noise of density 1 behind the
        filter, `(k,)`. Beyond the last it grows by 1 per sample.
        """
        count = math.ceil(8.0 / self.cutoff) + 8
        size = 1 << max(int(math.log2(8 * count)) + 1, 10)
        spectrum = self.power(np.arange(size // 2 + 1) / size)
        covariance = np.fft.irfft(spectrum, size)[:count]
        # V(t + 1) - V(t) = r(0) + 2 (r(1) + ... + r(t))
        steps = np.cumsum(np.concatenate([covariance[:1], 2.0 * covariance[1:]]))
        return np.concatenate([[0.0], np.cumsum(steps)])


@dataclasses.dataclass(frozen=True)
class LowPass:
    """Low pass found in a record.

    Attributes
    ----------
    shape : LowPassShape
        At the sampling rate of the record.
    std : float
        Standard uncertainty of the logarithm of the cut-off frequency.
    gain : float
        Twice the logarithm of the likelihood over that without a filter.
    follows : bool
        Whether the shape follows the spectrum. If it does not, the filter is of another kind,
        and the cut-off about right.
    """

    shape: LowPassShape
    std: float
    gain: float
    follows: bool

    @property
    def first_factors(self) -> list[int]:
        """Averaging factors from which on the shape may be known well enough for a fit in which an
        error of the cut-off is free, the least first: a quarter of its reciprocal and more.
        """
        shares = (0.25, 1.0, 4.0) if self.follows else (1.0, 4.0)
        return [max(math.ceil(share / self.shape.cutoff), 1) for share in shares]

    def limits(self, dt: float) -> FilterLimits:
        """Return what a model takes of the low pass, of samples `dt` s apart: of order 1 or 2,
        with the noise bandwidth of the one found.
        """
        model = LowPassShape(1.0, min(self.shape.order, 2))
        bandwidth = self.shape.noise_bandwidth / model.noise_bandwidth / dt
        spread = math.exp(1.96 * self.std)
        return FilterLimits(
            Coefficient(
                bandwidth, bandwidth * self.std, bandwidth / spread, bandwidth * spread, True
            ),
            model.order,
        )


def find_low_pass(values: FloatArray) -> LowPass | None:
    """Return the low pass in evenly spaced samples `(n,)` of a sensor at rest, None for none.

    Examples
    --------
    >>> from scipy.signal import butter, lfilter
    >>> noise = np.random.default_rng(1).standard_normal(60_000)
    >>> found = find_low_pass(lfilter(*butter(2, 0.1, fs=1.0), noise))
    >>> found.shape.order, round(found.shape.cutoff, 2)
    (2, 0.1)
    >>> find_low_pass(noise) is None
    True
    """
    spectrum = _Spectrum.of(values)
    if spectrum is None:
        return None
    plain = spectrum.deviance(None)
    shapes = [spectrum.best(kind, order) for kind, orders in _KINDS.items() for order in orders]
    best = min(shapes, key=lambda candidate: candidate[0])
    if plain - best[0] < _GAIN:
        return None
    follows = best[0] < chi2.ppf(_FOLLOWS, spectrum.freedom.size)
    std = spectrum.uncertainty(best[1])
    if not follows:
        std *= math.sqrt(best[0] / spectrum.freedom.size)
    # Shapes that are nearly as likely have other cut-offs.
    likely = [shape for deviance, shape in shapes if deviance < best[0] + _AS_LIKELY]
    std = math.hypot(std, float(np.std([math.log(shape.noise_bandwidth) for shape in likely])))
    return LowPass(best[1], std, plain - best[0], bool(follows))


class _Spectrum:
    """Averaged periodogram in bins, and its likelihood.

    `frequency`, over the rate, `power` and `freedom` are `(k,)`; 1 is the density of most of it.
    """

    def __init__(self, frequency: FloatArray, power: FloatArray, freedom: FloatArray) -> None:
        self.frequency, self.power, self.freedom = frequency, power, freedom
        self._others = np.stack(
            [
                np.ones(len(frequency)),
                frequency[0] / frequency,
                (frequency[0] / frequency) ** 2,
                np.sin(math.pi * frequency) ** 2,
            ],
            axis=1,
        )

    @classmethod
    def of(cls, values: FloatArray) -> _Spectrum | None:
        """Return the spectrum of samples, None where they are too few."""
        length = min(1 << int(math.log2(max(len(values) // _SEGMENTS * 2, 1))), _LONGEST_SEGMENT)
        if length < _SHORTEST_SEGMENT:
            return None
        frequency, power = welch(values, nperseg=length, noverlap=length // 2)
        # Leakage of the mean and of what drifts is in the first few.
        frequency, power = frequency[6:-1], power[6:-1]
        if not power.min() > 0.0:
            return None
        # Lines of hum and vibration are no noise.
        smooth = median_filter(power, _LINE_WIDTH, mode='nearest')
        power = np.where(power > 4.0 * smooth, smooth, power)
        # Hann windows that overlap by half say as much as 36/38 of their number ([Welch1967]).
        averages = 36.0 / 19.0 * len(values) / length
        edges = np.unique(np.geomspace(6, length // 2 - 1, _BINS + 1).astype(int)) - 6
        binned = [slice(a, b) for a, b in itertools.pairwise(edges.tolist())]
        middle = np.array([frequency[part].mean() for part in binned])
        level = np.array([power[part].mean() for part in binned])
        # Neighbours of a Hann window say half the same.
        independent = np.array([max((part.stop - part.start) / 1.5, 1.0) for part in binned])
        return cls(middle, level / np.median(level), 2.0 * averages * independent)

    def deviance(self, shape: LowPassShape | None) -> float:
        """Return the least deviance with a filter, or with none."""
        filtered = np.zeros(len(self.power)) if shape is None else shape.power(self.frequency)
        columns = np.concatenate([filtered[:, None], self._others], axis=1)
        # The same with the largest floor, where a larger one would fit better.
        bounded = columns.copy()
        bounded[:, 0] += _LARGEST_FLOOR
        bounded[:, 1] = 0.0
        none = _NONE * max(float(np.median(self.power[: len(self.power) // 2])), 1e-300)
        measured = self.power + none
        model = measured
        for _ in range(8):
            weight = np.sqrt(self.freedom) / model
            parts = nnls(columns * weight[:, None], self.power * weight)[0]
            model = columns @ parts + none
            if shape is not None and parts[1] > _LARGEST_FLOOR * parts[0]:
                parts = nnls(bounded * weight[:, None], self.power * weight)[0]
                model = bounded @ parts + none
        ratio = measured / model
        return float(np.sum(self.freedom * (ratio - np.log(ratio) - 1.0)))

    def best(self, kind: str, order: int) -> tuple[float, LowPassShape]:
        """Return the deviance and the shape of the best cut-off frequency."""
        highest = 0.45 if kind == 'bilinear' else _HIGHEST
        cutoffs = np.geomspace(max(_LOWEST, 4.0 * self.frequency[0]), highest, 28)
        deviances = [self.deviance(LowPassShape(float(cutoff), order, kind)) for cutoff in cutoffs]
        k = int(np.argmin(deviances))
        low, high = cutoffs[max(k - 1, 0)], cutoffs[min(k + 1, len(cutoffs) - 1)]
        finest = minimize_scalar(
            lambda log: self.deviance(LowPassShape(math.exp(log), order, kind)),
            bounds=(math.log(low), math.log(high)),
            method='bounded',
            options={'xatol': 1e-3},
        )
        return float(finest.fun), LowPassShape(math.exp(float(finest.x)), order, kind)

    def uncertainty(self, shape: LowPassShape) -> float:
        """Return the standard uncertainty of the logarithm of the cut-off frequency."""
        step = 0.02
        at, above, below = (
            self.deviance(shape.scaled(factor)) for factor in (1.0, 1.0 + step, 1.0 - step)
        )
        curvature = max((above - 2.0 * at + below) / step**2, 2.0)
        return math.sqrt(2.0 / curvature)


def _power(kind: str, order: int, cutoff: float, frequency: FloatArray) -> FloatArray:
    if kind == 'bilinear':
        ratio = np.tan(math.pi * frequency) / math.tan(math.pi * cutoff)
        return np.asarray(1.0 / (1.0 + ratio ** (2 * order)))
    if kind == 'sampled':
        k = np.arange(-_ALIASES, _ALIASES + 1)
        folded = 1.0 / (1.0 + ((frequency[:, None] + k) / cutoff) ** (2 * order))
        at_rest = np.sum(1.0 / (1.0 + (k / cutoff) ** (2 * order)))
        return np.asarray(folded.sum(axis=1) / at_rest)
    back = np.exp(-2j * math.pi * frequency)
    omega = 2.0 * math.pi * cutoff
    if order == 1:
        pole = math.exp(-omega)
        return np.asarray(np.abs((1.0 - pole) / (1.0 - pole * back)) ** 2)
    half = math.sqrt(0.5) * omega
    e, c, s = math.exp(-half), math.cos(half), math.sin(half)
    f00, f01, f10, f11 = e * (c + s), e * s / half, -2.0 * e * s * half, e * (c - s)
    g0, g1 = 1.0 - f00, -f10
    # Output of x[k] = F x[k-1] + G u[k].
    numerator = g0 + back * (f01 * g1 - f11 * g0)
    denominator = 1.0 - (f00 + f11) * back + (f00 * f11 - f01 * f10) * back**2
    return np.asarray(np.abs(numerator / denominator) ** 2)
