# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Overlapping Allan variance of long records, with confidence bands.

The integral is x[k] = dt (y[0] + ... + y[k-1]) of n samples y taken every dt, and tau = m dt,

    avar(tau) = 1 / (2 tau^2 (n - 2m + 1)) sum (x[k+2m] - 2 x[k+m] + x[k])^2,

which is half the mean square of the difference of adjacent means of m samples over all starting
points ([Riley2008], section 5.2.2; [Cesenek2019], equation 1.12). The mean of y is taken away
before the sum: it drops out of the differences and would only cost digits.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from sim_sensors.core.compilation import compiled
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.measurements import FloatArray, IntArray
from .noise_terms import COEFFICIENTS

MIN_SAMPLES = 8
_BLOCK = 1 << 20
# Starting points that all averaging times pass over together.
_SPAN = 1 << 14
_ONE_SIGMA = 0.683  # of a normal law
# Beyond this the integral of an axis is kept in a file that the system may page out.
_IN_MEMORY_BYTES = 1 << 28

Samples = NDArray[np.floating[Any]]


@dataclasses.dataclass(frozen=True, eq=False)
class AllanCurve:
    """Overlapping Allan variance of one axis.

    It is that of `n` samples `dt` s apart: averaging factors m, `(k,)` increasing, and the
    variance of each, `(k,)` u^2.
    """

    n: int
    dt: float
    factors: IntArray
    variance: FloatArray

    @property
    def tau(self) -> FloatArray:
        """Averaging times m dt, s."""
        return np.asarray(self.factors * self.dt)

    @property
    def deviation(self) -> FloatArray:
        """Square root of the variance, u."""
        return np.sqrt(self.variance)

    @property
    def terms(self) -> IntArray:
        """Second differences that each point is the mean of, n - 2m + 1."""
        return np.asarray(self.n - 2 * self.factors + 1)

    def at(self, factors: IntArray) -> AllanCurve:
        """Return the curve at some of its averaging factors."""
        return AllanCurve(
            self.n, self.dt, factors, self.variance[np.searchsorted(self.factors, factors)]
        )


def averaging_factors(n: int, count: int | None = None) -> IntArray:
    """Return averaging factors of n samples, from 1 up to at most (n - 1) / 2.

    They are octaves, 1, 2, 4, 8 ..., or `count` factors evenly spaced in the logarithm, fewer
    where they round to the same. ParameterError for fewer than `MIN_SAMPLES` samples.
    """
    if n < MIN_SAMPLES:
        raise ParameterError(
            'Allan deviation', '', f'{n} samples are too few; must be {MIN_SAMPLES} or more'
        )
    largest = (n - 1) // 2
    if count is None:
        return np.asarray(2 ** np.arange(int(math.log2(largest)) + 1), dtype=np.int64)
    return np.unique(np.rint(np.geomspace(1, largest, count)).astype(np.int64))


def allan_curve(values: Samples, rate: float, factors: IntArray | None = None) -> AllanCurve:
    """Return the overlapping Allan variance of evenly spaced samples.

    Parameters
    ----------
    values : (n,) float
        Rates, not angles; of any floating type, in memory or mapped. No copy is made of them.
    rate : float
        Hz.
    factors : (k,) int, optional
        Increasing, each at most (n - 1) / 2; default: octaves.

    Raises
    ------
    ParameterError
        For samples that are too few or not finite, or factors out of range.

    Examples
    --------
    >>> curve = allan_curve(np.array([0.0, 1.0] * 50), rate=10.0)
    >>> curve.tau[:2], curve.deviation[:2].round(6)
    (array([0.1, 0.2]), array([0.707107, 0.      ]))
    """
    n = len(values)
    if factors is None:
        factors = averaging_factors(n)
    if n < MIN_SAMPLES or factors[0] < 1 or factors[-1] > (n - 1) // 2:
        raise ParameterError(
            'Allan deviation',
            '',
            f'averaging factors {factors[0]} to {factors[-1]} of {n} samples are not allowed; '
            f'must be 1 to (n - 1) / 2 of {MIN_SAMPLES} samples or more',
        )
    m = np.asarray(factors, dtype=np.int64)
    sums, lanes = np.zeros(len(m)), np.empty(64)
    with _integral(values) as phase:
        for start in range(0, n, _SPAN):
            _sums_of_squares(phase, m, start, sums, lanes)
    return AllanCurve(n, 1.0 / rate, m, sums / (2.0 * m * m * (n - 2 * m + 1)))


def simple_relative_error(curve: AllanCurve) -> FloatArray:
    """Return the textbook's relative standard error of the deviation, 1 / sqrt(2 (n/m - 1)).

    It knows neither the kind of noise nor the overlap; `confidence_band` does. Source:
    [IEEE952], C.2, and [Cesenek2019], section 1.7.
    """
    return 1.0 / np.sqrt(2.0 * (curve.n / curve.factors - 1.0))


@contextlib.contextmanager
def _integral(values: Samples) -> Iterator[FloatArray]:
    """Yield sum (y - mean), (n + 1,), in units of u samples: in memory, or else in a file."""
    n = len(values)
    with contextlib.ExitStack() as stack:
        if (n + 1) * 8 <= _IN_MEMORY_BYTES:
            phase = np.empty(n + 1)
        else:
            file = stack.enter_context(tempfile.TemporaryFile())
            phase = np.memmap(file, dtype=np.float64, mode='w+', shape=(n + 1,))
        sums = [
            float(np.sum(values[i : i + _BLOCK], dtype=np.float64)) for i in range(0, n, _BLOCK)
        ]
        mean = math.fsum(sums) / n
        if not math.isfinite(mean):
            bad = next(i for i in range(n) if not math.isfinite(values[i]))
            raise ParameterError(
                'Allan deviation', '', f'sample {bad} is {values[bad]}; must be a finite number'
            )
        phase[0] = 0.0
        carry = np.zeros(2)
        for i in range(0, n, _BLOCK):
            block = np.asarray(values[i : i + _BLOCK], dtype=np.float64)
            _accumulate(block, mean, phase[i + 1 : i + 1 + len(block)], carry)
        yield phase


@compiled
def _accumulate(values: FloatArray, mean: float, out: FloatArray, carry: FloatArray) -> None:
    """Write the running sum, with Neumaier's compensation, which goes on from block to block."""
    total, lost = carry[0], carry[1]
    for i in range(len(values)):
        x = values[i] - mean
        larger = total + x
        if abs(total) >= abs(x):
            lost += (total - larger) + x
        else:
            lost += (x - larger) + total
        total = larger
        out[i] = total + lost
    carry[0], carry[1] = total, lost


@compiled
def _sums_of_squares(
    phase: FloatArray, factors: IntArray, start: int, sums: FloatArray, lanes: FloatArray
) -> None:
    """Add sum (x[k+2m] - 2 x[k+m] + x[k])^2 over a span of k to the sum of each m.

    All averaging times pass over a span while it is in the cache. `lanes` are 64 sums side by
    side, four squares at a time: in this form the compiler uses the processor's vector
    instructions, and the order of the additions stays as it is written. Four times faster than one
    sum.
    """
    for index in range(len(factors)):
        m = factors[index]
        length = min(_SPAN, len(phase) - 2 * m - start)
        if length <= 0:
            break
        whole = length - length % 256
        lanes[:] = 0.0
        for k in range(start, start + whole, 256):
            a = phase[k : k + 256]
            b = phase[k + m : k + m + 256]
            c = phase[k + 2 * m : k + 2 * m + 256]
            for j in range(64):
                d0 = c[j] - 2.0 * b[j] + a[j]
                d1 = c[j + 64] - 2.0 * b[j + 64] + a[j + 64]
                d2 = c[j + 128] - 2.0 * b[j + 128] + a[j + 128]
                d3 = c[j + 192] - 2.0 * b[j + 192] + a[j + 192]
                lanes[j] += (d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3)
        total = 0.0
        for j in range(64):
            total += lanes[j]
        for k in range(start + whole, start + length):
            d = phase[k + 2 * m] - 2.0 * phase[k + m] + phase[k]
            total += d * d
        sums[index] += total


# Confidence bands: edf * estimate / truth is taken as chi-square with edf degrees of freedom
# (Riley, NIST SP 1065, section 5.3). The edf depend on the kind of noise: they are those of the
# fitted sum of processes, `degrees_of_freedom`.


def local_slopes(curve: AllanCurve) -> FloatArray:
    """Return d log(deviation) / d log(tau) at each point, `(k,)`, from its neighbours."""
    level = np.log(np.maximum(curve.deviation, np.finfo(np.float64).tiny))
    return np.asarray(np.gradient(level, np.log(curve.factors)))


def confidence_band(curve: AllanCurve, freedom: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper bounds of the true deviation, each `(k,)`, at one sigma.

    `freedom` are the equivalent degrees of freedom of each point, `(k,)`.

    Examples
    --------
    >>> from sim2real_eval.characterization.allan import allan_curve
    >>> from sim2real_eval.characterization.allan_covariance import degrees_of_freedom
    >>> curve = allan_curve(np.random.default_rng(1).standard_normal(1000), 1.0)
    >>> white = np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    >>> freedom = degrees_of_freedom(curve.n, curve.factors, white)
    >>> low, high = confidence_band(curve, freedom)
    >>> bool(np.all(low < curve.deviation)) and bool(np.all(curve.deviation < high))
    True
    """
    tail = 0.5 * (1.0 - _ONE_SIGMA)
    low, high = chi2.ppf(1.0 - tail, freedom), chi2.ppf(tail, freedom)
    return (
        np.asarray(np.sqrt(curve.variance * freedom / low)),
        np.asarray(np.sqrt(curve.variance * freedom / high)),
    )


PLATEAU = math.sqrt(2.0 * math.log(2.0) / math.pi)
"""Deviation of flicker noise over its bias instability, 0.664."""

_LINES = (
    ('quantisation', -1.0, math.sqrt(3.0)),
    ('white', -0.5, 1.0),
    ('random_walk', 0.5, 3.0),
    ('rate_ramp', 1.0, math.sqrt(2.0)),
)
# How far a slope may be off, and the share of the record beyond which points scatter too much.
_TOLERANCE = 0.15
_LONGEST = 0.1


def read_off(curve: AllanCurve) -> dict[str, float | None]:
    """Return the coefficients as they are read off a log-log plot by hand, by name as in
    `noise_terms`; None where no part has the slope.

    A straight line of the slope in question is laid through the points where the curve has it,
    and read where it gives the coefficient: Qz at sqrt(3) s, N at 1 s, K at 3 s, R at sqrt(2) s;
    the bias instability is the lowest point over 0.664 ([IEEE952], annex C; [Cesenek2019], section
    1.7, whose equation 1.19 has the factor upside down). The fit is better; this is what data
    sheets do.

    Examples
    --------
    >>> noise = np.random.default_rng(1).standard_normal(100_000)
    >>> found = read_off(allan_curve(noise, rate=100.0))
    >>> round(found['white'], 3), found['quantisation']
    (0.1, None)
    """
    reliable = curve.factors <= _LONGEST * curve.n
    slopes = local_slopes(curve)
    levels: dict[str, float | None] = dict.fromkeys(COEFFICIENTS)
    for name, slope, at in _LINES:
        levels[name] = _line(curve, reliable & (np.abs(slopes - slope) < _TOLERANCE), slope, at)
    flat = reliable & (np.abs(slopes) < 0.25)
    if flat.any():
        levels['bias_instability'] = float(curve.deviation[flat].min()) / PLATEAU
    return levels


def _line(curve: AllanCurve, on_line: NDArray[np.bool_], slope: float, at: float) -> float | None:
    """Level at `at` of the line of that slope through points, by how many terms each has."""
    # One point may pass by chance.
    if on_line.sum() < 2:
        return None
    weights: FloatArray = curve.n / curve.factors[on_line]
    levels = np.log(curve.deviation[on_line]) - slope * np.log(curve.tau[on_line] / at)
    return math.exp(float(np.average(levels, weights=weights)))
