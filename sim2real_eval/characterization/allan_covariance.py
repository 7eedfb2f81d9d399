# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""How uncertain the points of an Allan curve are, and how much neighbours say the same.

Six processes make up the curve; in units of the sampling interval, with averaging factor m,

    term          coefficient        variance        generalised covariance s(t) of the integral
    quantisation  theta = Qz^2/dt^2  3 / m^2         1 at t = 0, else 0
    white         theta = N^2/dt     1 / m           -W(t) / 2
    flicker       theta = B^2        2 ln 2 / pi     t^2 ln|t| / (2 pi)
    walk          theta = K^2 dt     m/3 + 1/(6m)    (|t|^3 - |t|) / 12
    Gauss-Markov  theta = g^2        (4 V(m) - V(2m)) / (2 m^2)   -(V(t) - t^2) / 2
    ramp          theta = R^2 dt^2   m^2 / 2         (not random)

(a walk that is sampled; m/3 alone is that of one averaged between the samples). W(t) is the
variance of the sum of t samples of white noise: |t|, or behind a low pass that of the filtered
noise, whose Allan variance is (4 W(m) - W(2m)) / (2 m^2), 1 / m in the end. V(t) is the
variance of the sum of t samples of a Gauss-Markov process of deviation 1 and correlation time T:
t (1 + p) / (1 - p) - 2 p (1 - p^t) / (1 - p)^2 with p = exp(-1/T). A point is a mean
of squared second differences D of the integral. For Gaussian noise the covariance of two squares
is 2 cov(D, D')^2, and cov(D, D') is a sum of s over nine lags; summing over all pairs of second
differences gives the covariance of any two points, exactly for white noise, walk and quantisation
but for a coarser grid of lags at long averaging times. It is quadratic in the coefficients, so
the sums are made once per grid of averaging times. Sources: [Greenhall2003] for one point; the
covariance of two is the same sum with two averaging times.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import ArrayLike

from sim_sensors.core.compilation import compiled
from sim_sensors.core.measurements import FloatArray, IntArray
from .low_pass import LowPassShape

TERMS = ('quantisation', 'white', 'flicker', 'walk', 'gauss_markov', 'ramp')
RANDOM_TERMS = 5
_Q, _N, _B, _K, _M = range(RANDOM_TERMS)
# Lags per averaging time of either point, and how far flicker is followed, in averaging times.
_FINE, _COARSE = 16, 256
_FAR = 8


def term_shapes(
    factors: ArrayLike, time: float = 0.0, low_pass: LowPassShape | None = None
) -> FloatArray:
    """Return the Allan variance of each term with coefficient 1, `(k, 6)`, for averaging factors,
    which need not be whole numbers.

    `time` is the correlation time of the Gauss-Markov process in samples, 0 for none of it;
    `low_pass` what the white noise has passed, None for nothing.
    """
    m = np.asarray(factors, dtype=np.float64)
    white = 1.0 / m
    if low_pass is not None:
        sums = low_pass.sum_variances
        once, twice = _sum_variance(m, sums), _sum_variance(2.0 * m, sums)
        white = (4.0 * once - twice) / (2.0 * m**2)
    flat = np.full(len(m), 2.0 * math.log(2.0) / math.pi)
    walk = m / 3.0 + 1.0 / (6.0 * m)
    markov = np.array([_markov_variance(float(factor), time) for factor in m]) if time else 0.0 * m
    return np.stack([3.0 / m**2, white, flat, walk, markov, m**2 / 2.0], axis=1)


def _sum_variance(count: FloatArray, sums: FloatArray) -> FloatArray:
    """Return the variance of the sum of so many samples of filtered white noise."""
    last = len(sums) - 1
    return np.asarray(
        np.interp(count, np.arange(last + 1.0), sums) + np.maximum(count - last, 0.0)
    )


class AllanCovariance:
    """Covariance of the points of a record of `n` samples on one grid of averaging factors, `(k,)`
    increasing, for any coefficients; with a Gauss-Markov process of `time` samples, or none, and
    white noise that has passed a low pass, or none.
    """

    def __init__(
        self, n: int, factors: IntArray, time: float = 0.0, low_pass: LowPassShape | None = None
    ) -> None:
        self.n = n
        self.factors = factors
        self.time = time
        self.shapes = term_shapes(factors, time, low_pass)
        sums = _sums_of(low_pass)
        size = len(factors)
        both = np.zeros((RANDOM_TERMS, RANDOM_TERMS, size, size))
        with_ramp = np.zeros((RANDOM_TERMS, size, size))
        for i in range(size):
            for j in range(i, size):
                squares, linear = _pair(n, int(factors[i]), int(factors[j]), time, sums)
                both[:, :, i, j] = both[:, :, j, i] = squares
                with_ramp[:, i, j] = with_ramp[:, j, i] = linear
        self._size = size
        self._sums = np.concatenate(
            [both.reshape(RANDOM_TERMS**2, -1), with_ramp.reshape(RANDOM_TERMS, -1)]
        )

    def at(self, coefficients: FloatArray) -> FloatArray:
        """Return the covariance of the variances, `(k, k)` u^4, for `(6,)` coefficients u^2."""
        random = coefficients[:RANDOM_TERMS]
        ramp = coefficients[RANDOM_TERMS]
        weights = np.concatenate([np.outer(random, random).ravel(), ramp * random])
        return np.asarray((weights @ self._sums).reshape(self._size, self._size))


def degrees_of_freedom(
    n: int,
    factors: IntArray,
    coefficients: FloatArray,
    time: float = 0.0,
    low_pass: LowPassShape | None = None,
) -> FloatArray:
    """Return the equivalent degrees of freedom of each point, `(k,)`: twice its squared mean over
    its variance.

    The coefficients, `(6,)`, may be of any unit: only their ratios count. At least one random term
    must be above 0. `time` is that of the Gauss-Markov process, samples; `low_pass` that of the
    white noise.
    """
    random = coefficients[:RANDOM_TERMS]
    mean = term_shapes(factors, time, low_pass) @ coefficients
    variance = np.empty(len(factors))
    for index, m in enumerate(factors.tolist()):
        squares, linear = _pair_of_equals(n, m, time, low_pass)
        ramp = coefficients[RANDOM_TERMS]
        variance[index] = random @ squares @ random + ramp * (random @ linear)
    return np.asarray(2.0 * mean**2 / variance)


@functools.lru_cache(maxsize=1024)
def _pair_of_equals(
    n: int, m: int, time: float, low_pass: LowPassShape | None
) -> tuple[FloatArray, FloatArray]:
    return _pair(n, m, m, time, _sums_of(low_pass))


def _sums_of(low_pass: LowPassShape | None) -> FloatArray:
    return np.zeros(1) if low_pass is None else low_pass.sum_variances


def allan_covariance(
    n: int, factors: IntArray, time: float = 0.0, low_pass: LowPassShape | None = None
) -> AllanCovariance:
    """Return the covariance of a grid, remembered from the last time it was asked for."""
    return _cached(n, tuple(factors.tolist()), time, low_pass)


@functools.lru_cache(maxsize=64)
def _cached(
    n: int, factors: tuple[int, ...], time: float, low_pass: LowPassShape | None
) -> AllanCovariance:
    return AllanCovariance(n, np.array(factors, dtype=np.int64), time, low_pass)


@compiled
def _markov_factors(time: float) -> tuple[float, float, float]:
    """Return 1 / T and the factors of the two parts of `_markov`."""
    if time <= 0.0:
        return 0.0, 0.0, 0.0
    h = 0.5 / time
    squared = math.sinh(h) ** 2
    # coth h - h / sinh^2 h; a series where that would lose digits.
    small = h < 0.05
    linear = 2.0 * h / 3.0 - 4.0 * h**3 / 45.0 if small else 1.0 / math.tanh(h) - h / squared
    return 1.0 / time, -0.25 / squared, -0.5 * linear


@compiled
def _markov(t: float, factors: tuple[float, float, float]) -> float:
    """Generalised covariance of the sum of a Gauss-Markov process over t >= 0 samples.

    With h = 1 / (2 T) and u = t / T, V(t) - t^2 is (exp(-u) - 1 + u - u^2/2) / (2 sinh^2 h)
    + t (coth h - h / sinh^2 h) but for multiples of t^2, which second differences do not see.
    """
    u = t * factors[0]
    if u < 0.1:
        remainder = u**3 * (-1.0 / 6.0 + u * (1.0 / 24.0 - u * (1.0 / 120.0 - u * (1.0 / 720.0))))
    else:
        remainder = math.exp(-u) - 1.0 + u - 0.5 * u * u
    return remainder * factors[1] + t * factors[2]


@compiled
def _markov_variance(m: float, time: float) -> float:
    """Allan variance of a Gauss-Markov process of deviation 1."""
    factors = _markov_factors(time)
    return (_markov(2.0 * m, factors) - 4.0 * _markov(m, factors)) / (m * m)


@compiled
def _process(term: int, lag: float, markov: tuple[float, float, float], sums: FloatArray) -> float:
    t = abs(lag)
    if term == _N:
        last = len(sums) - 1
        return -0.5 * float(sums[int(t)] if t < last else sums[last] + t - last)
    if term == _B:
        return t * t * math.log(t) / (2.0 * math.pi) if t > 0.0 else 0.0
    if term == _K:
        return (t * t * t - t) / 12.0
    if term == _M:
        return _markov(t, markov)
    return 1.0 if t == 0.0 else 0.0


@compiled
def _lagged(
    term: int, lag: int, m1: int, m2: int, markov: tuple[float, float, float], sums: FloatArray
) -> float:
    """Covariance of second differences with m1 and m2 whose starts are `lag` apart."""
    total = 0.0
    for a in range(3):
        for b in range(3):
            weight = (-2.0 if a == 1 else 1.0) * (-2.0 if b == 1 else 1.0)
            # As floats: the cube of a long lag is no 64-bit integer.
            total += weight * _process(term, float(lag + b * m2 - a * m1), markov, sums)
    return total


@compiled
def _pair(
    n: int, m1: int, m2: int, time: float, sums: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Sums over all pairs of second differences with m1 <= m2: of products of two covariances,
    `(5, 5)`, and of one, `(5,)`, so normalised that they need only the coefficients.
    """
    terms = RANDOM_TERMS if time > 0.0 else _M
    markov = _markov_factors(time)
    count1, count2 = n - 2 * m1 + 1, n - 2 * m2 + 1
    squares, linear = np.zeros((RANDOM_TERMS, RANDOM_TERMS)), np.zeros(RANDOM_TERMS)
    lagged = np.zeros(RANDOM_TERMS)
    first = max(-(count1 - 1), -(_FAR + 2) * m2)
    last = min(count2 - 1, _FAR * m2 + 2 * m1)
    # A few dozen lags at least, where the record has hardly any second differences.
    stride = max(1, min(max(m1 // _FINE, m2 // _COARSE), (last - first) // 64))
    # Lag 0 is on a fine grid; a coarse one steps over what happens there within m1, which white
    # noise shows and which is next to nothing beside the variances.
    offset = stride // 2 if stride > m1 else 0
    for step in range(-(-(first - offset) // stride), (last - offset) // stride + 1):
        lag = step * stride + offset
        pairs = min(count1, count2 - lag) - max(0, -lag)
        for p in range(1, terms):
            lagged[p] = _lagged(p, lag, m1, m2, markov, sums)
        for p in range(1, terms):
            linear[p] += stride * pairs * lagged[p]
            for q in range(1, terms):
                squares[p, q] += stride * pairs * lagged[p] * lagged[q]
    # Quantisation is correlated at single lags only, which a coarse grid would miss.
    for a in range(3):
        for b in range(3):
            lag = a * m1 - b * m2
            repeated = False
            for earlier in range(3 * a + b):
                repeated |= (earlier // 3) * m1 - (earlier % 3) * m2 == lag
            if repeated or lag < -(count1 - 1) or lag > count2 - 1:
                continue
            pairs = min(count1, count2 - lag) - max(0, -lag)
            for p in range(terms):
                lagged[p] = _lagged(p, lag, m1, m2, markov, sums)
            linear[_Q] += pairs * lagged[_Q]
            squares[_Q, _Q] += pairs * lagged[_Q] * lagged[_Q]
            for p in range(1, terms):
                squares[_Q, p] += pairs * lagged[_Q] * lagged[p]
                squares[p, _Q] += pairs * lagged[_Q] * lagged[p]
    scale = 1.0 / (float(count1) * float(count2))
    return squares * (0.5 * scale / (float(m1) ** 2 * float(m2) ** 2)), linear * scale
