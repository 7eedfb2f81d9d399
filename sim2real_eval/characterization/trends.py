# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Trends of the mean of a record at rest: a straight line, or a warm-up that falls off.

An Allan curve does not tell a trend from a random walk: both rise at its end. The record does: a
trend is smooth. The means of 128 blocks are compared, by the likelihood of a normal law, with a
constant, a line and an exponential, each in the noise that makes it most likely: white noise alone
or beside flicker, a random walk or a Gauss-Markov process of any correlation time. The constant is
integrated out ([Harville1977]), for the first two have no variance about a known one.
"""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np
from scipy.optimize import minimize_scalar

from sim_sensors.core.measurements import FloatArray
from .noise_terms import Coefficient

_BLOCKS, _MIN_BLOCKS, _SHORTEST_BLOCK = 128, 16, 4
# Twice the gain in log-likelihood of a line over a constant, and of an exponential over a
# constant and over a line. Records without a trend reach them in 1 of 200: test_trends.
_LINE_GAIN, _EXPONENTIAL_GAIN, _OVER_LINE = 18.0, 24.0, 12.0
WANDERS = 12.0
"""Gain above which the means of blocks wander."""
# Times of the exponential that are tried, as shares of the record.
_TIMES = np.geomspace(0.03, 2.0, 22)
# Correlation times of the Gauss-Markov process, blocks.
_MARKOV_TIMES = np.geomspace(0.7, 300.0, 10)
_RATIOS = np.concatenate([[0.0], np.geomspace(1e-4, 1e6, 61)])


@dataclasses.dataclass(frozen=True)
class Trend:
    """How the mean of a record moves.

    Attributes
    ----------
    kind : str
        `none`, `line`, `exponential`, or `unclear`: a line or a walk.
    slope, slope_std : float
        Of the straight line through the record and its standard uncertainty, u per sample.
    change : float
        How much the mean changes over the record, u; 0 for no trend.
    time : float
        Time constant of the exponential, samples; infinite for others.
    wander : float
        Twice the gain in log-likelihood of noise that is correlated between the blocks over white
        noise alone; above `WANDERS` in 1 of 1000 records of white noise.
    """

    kind: str
    slope: float
    slope_std: float
    change: float
    time: float = math.inf
    wander: float = math.inf

    def ramp(self, dt: float) -> Coefficient:
        """Return the ramp, u/s, of samples `dt` s apart; of no line, its upper bound (95 %)."""
        value, std = abs(self.slope) / dt, self.slope_std / dt
        if self.kind == 'line':
            return Coefficient(value, std, max(value - 1.96 * std, 0.0), value + 1.96 * std, True)
        # As for other terms, the uncertainty of what is not observable is that of a square.
        bound = value + 1.96 * std
        return Coefficient(0.0, bound, 0.0, bound, observable=False)

    def values(self, count: int) -> FloatArray:
        """Return the trend at each of `count` samples, `(count,)` u, zero in the first."""
        if self.kind in ('line', 'unclear'):
            return np.asarray(self.slope * np.arange(count))
        if self.kind == 'none':
            return np.zeros(count)
        rise = -np.expm1(-np.arange(count) / self.time)
        return np.asarray(self.change * rise / rise[-1])


def find_trend(values: FloatArray, correlated: float = 1.0) -> Trend:
    """Return the trend of evenly spaced samples `(n,)` of a sensor at rest.

    Neighbours of up to `correlated` samples are not independent: behind a low pass.

    Examples
    --------
    >>> noise = np.random.default_rng(1).standard_normal(20_000)
    >>> found = find_trend(noise + 1e-4 * np.arange(20_000))
    >>> found.kind, round(1e4 * found.slope, 1)
    ('line', 1.0)
    >>> find_trend(noise).kind, find_trend(np.cumsum(noise)).kind
    ('none', 'none')
    """
    shortest = max(_SHORTEST_BLOCK, math.ceil(4.0 * correlated))
    blocks = min(_BLOCKS, len(values) // shortest)
    if blocks < _MIN_BLOCKS:
        # Too few to tell: a line may explain all of the change.
        return Trend('none', 0.0, float(np.ptp(values)) / len(values), 0.0)
    size = len(values) // blocks
    means = values[: blocks * size].reshape(blocks, size).mean(axis=1)
    means = means - means.mean()
    scale = float(np.abs(means).max())
    if not scale > 0.0:
        return Trend('none', 0.0, 0.0, 0.0, wander=0.0)
    at = (np.arange(blocks) + 0.5) / blocks
    problem = _Problem(means / scale)
    constant, line = problem.deviance(None), problem.deviance(at)
    deviances = [problem.deviance(np.exp(-at / time)).value for time in _TIMES]
    best = int(np.argmin(deviances))
    chosen, kind, change, time = constant, 'none', 0.0, math.inf
    if (
        constant.value - deviances[best] > _EXPONENTIAL_GAIN
        and line.value - deviances[best] > _OVER_LINE
    ):
        kind, share = 'exponential', _best_time(problem, at, best)
        falling = np.exp(-at / share)
        chosen = problem.deviance(falling)
        change = chosen.multiple * math.expm1(-1.0 / share) * scale
        time = share * blocks * size
        # The remainder may rise as well.
        line = _Problem(means / scale - chosen.multiple * falling).deviance(at)
    elif constant.value - line.value > _LINE_GAIN:
        kind, chosen = 'line', line
    elif constant.white - constant.value > WANDERS and line.white <= constant.value:
        # A line in white noise does as well as the noise that wanders.
        kind, chosen = 'unclear', line
    if chosen is line:
        change = line.multiple * scale * len(values) / (blocks * size)
    per_sample = scale / (blocks * size)
    return Trend(
        kind,
        line.multiple * per_sample,
        line.std * per_sample,
        change,
        time,
        wander=chosen.white - chosen.value,
    )


def _best_time(problem: _Problem, at: FloatArray, best: int) -> float:
    """Return the most likely time of an exponential near one that was tried, of the record."""
    low, high = _TIMES[max(best - 1, 0)], _TIMES[min(best + 1, len(_TIMES) - 1)]
    minimum = minimize_scalar(
        lambda log_time: problem.deviance(np.exp(-at / math.exp(log_time))).value,
        bounds=(math.log(low), math.log(high)),
        method='bounded',
        options={'xatol': 1e-4},
    )
    return math.exp(float(minimum.x))


@dataclasses.dataclass(frozen=True)
class _Likelihood:
    """Least deviance with the mean a multiple of a shape, `value`, and with white noise alone,
    `white`; that multiple and its standard uncertainty.
    """

    value: float
    white: float
    multiple: float
    std: float


class _Problem:
    """Means of blocks, `(k,)`, and the likelihood of a mean that moves."""

    def __init__(self, means: FloatArray) -> None:
        self._noises = _noises(len(means))
        self._means = [axes.T @ means for _, axes in self._noises]

    def deviance(self, shape: FloatArray | None) -> _Likelihood:
        """Return the likelihood with a mean of some multiple of a shape `(k,)`, or a constant."""
        best = _Likelihood(math.inf, math.inf, 0.0, 0.0)
        for (power, axes), means in zip(self._noises, self._means, strict=True):
            weights = 1.0 / (1.0 + _RATIOS[:, None] * power)
            squares = weights @ means**2
            logs = -np.log(weights).sum(axis=1)
            multiple, information = np.zeros(len(weights)), np.ones(len(weights))
            if shape is not None:
                moved = axes.T @ shape
                information = weights @ moved**2
                multiple = weights @ (moved * means) / information
                squares = squares - multiple**2 * information
            squares = np.maximum(squares, 1e-24)
            deviances = len(means) * np.log(squares / len(means)) + logs
            k = int(np.argmin(deviances))
            if deviances[k] < best.value:
                variance = float(squares[k]) / (len(means) - 2) / float(information[k])
                best = _Likelihood(
                    float(deviances[k]),
                    float(deviances[0]),
                    float(multiple[k]),
                    math.sqrt(variance),
                )
        return best


@functools.lru_cache(maxsize=8)
def _noises(blocks: int) -> tuple[tuple[FloatArray, FloatArray], ...]:
    """Return the kinds of noise beside white noise: variances `(k - 1,)` relative to that of a
    white block, and axes `(k, k - 1)` across constants in which they are independent.
    """
    lags = np.arange(blocks + 1.0)
    flicker = np.concatenate([[0.0], lags[1:] ** 2 * np.log(lags[1:])]) / (2.0 * math.pi)
    kinds = [_covariance(flicker), _covariance(lags**3 / 12.0)]
    for time in _MARKOV_TIMES:
        decay = math.exp(-1.0 / time)
        covariance = time**2 * (1.0 - decay) ** 2 * decay ** (lags[:-1] - 1.0)
        covariance[0] = 2.0 * time * (1.0 - time * (1.0 - decay))
        kinds.append(covariance)
    # Orthonormal, without the direction of the constant.
    across = np.linalg.qr(np.eye(blocks)[:, 1:] - 1.0 / blocks)[0]
    index = np.abs(np.arange(blocks)[:, None] - np.arange(blocks))
    noises = []
    for kind in kinds:
        power, axes = np.linalg.eigh(across.T @ kind[index] @ across)
        noises.append((np.maximum(power, 0.0), across @ axes))
    return tuple(noises)


def _covariance(generalised: FloatArray) -> FloatArray:
    """Return the covariance of increments from the generalised one of the integral."""
    extended = np.concatenate([generalised[1:2], generalised])
    return np.asarray(-np.diff(extended, 2))
