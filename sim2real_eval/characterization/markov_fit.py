# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Maximum-likelihood fit of white noise and a Gauss-Markov process to records of unknown mean.

The model is y = constant + v + m: v is white noise of standard deviation w, and m a stationary
Gauss-Markov process, the wander, of standard deviation g and correlation time T. At any sample
times this is exactly a scalar state-space model, so a Kalman filter gives the likelihood. The
constant of each record is integrated out (restricted likelihood: [Harville1977]); otherwise the
estimates for short records would be too small.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize_scalar

from sim_sensors.core.compilation import compiled
from sim_sensors.core.measurements import FloatArray
from .noise_terms import ParameterEstimate, unseen

# Thresholds for twice the gain in log-likelihood. The correlation time of an absent wander does
# not affect the likelihood, so the gain is the largest of several chi-square variables. The tests
# measure the false-alarm rate of this threshold.
_WANDER_GAIN = 12.0
_WHITE_GAIN = 9.0
_INTERVAL_GAIN = 3.84
_THREE_SIGMA_GAIN = 9.0
# Time and standard deviation of the wander are reported only if the record is this many times
# longer than the longest likely correlation time. Shorter records that happen to look stationary
# would otherwise be selected, and their estimates were 3 to 5 sigma too small.
LENGTHS_NEEDED = 5.0
# A random walk about an unknown mean looks as if it returned to it. This is the square of the 1 %
# critical value of Dickey and Fuller, 3.43 (JASA 74, 1979).
_ROOT_GAIN = 11.8
# Longest correlation time that is tried, in lengths of the longest record.
_LONGEST = 30.0
# m; smaller standard deviations are the rounding of degrees in double precision.
_CONSTANT = 1e-6
_STEP = 0.02
# Number of blocks over which the scores are summed.
_BLOCKS = 40
# Ratio of the variance of these sums to that of normal errors above which it is used. For normal
# errors about one record in a hundred exceeds it.
_NOT_NORMAL = 2.0


@dataclasses.dataclass(frozen=True)
class MarkovFit:
    """Errors of an axis: white noise w, m, and a wander g, m, with a correlation time T, s.

    `total` is the standard deviation of a fix, sqrt(w^2 + g^2), m, the sigma of a Gaussian model.
    `walk` is the density sqrt(2 g^2 / T), m/sqrt(s). If T is too long for the record, g and T are
    0 and only `walk` is known. `gain` is twice the gain in log-likelihood over white noise alone.
    """

    total: ParameterEstimate
    white: ParameterEstimate
    wander: ParameterEstimate
    time: ParameterEstimate
    walk: ParameterEstimate
    gain: float


def fit_markov(records: Sequence[tuple[FloatArray, FloatArray]]) -> MarkovFit:
    """Fit one axis of one or more records: increasing times, s, and values, m, `(n,)` each.

    Each record has its own constant.

    Notes
    -----
    A wander is reported if it raises twice the log-likelihood by at least 12 over white noise
    alone, and white noise beside it if that adds more than 9. Standard errors follow from the
    curvature of the likelihood in the logarithms of the parameters. They are raised to the upper
    limits of the profile likelihood of the time at two and three sigma, and by the change from
    leaving out the white noise. If the errors are not normal (jumps, outliers, rounding), they
    follow from the scatter of the scores instead ([White1982]).

    Time and standard deviation of the wander are not observable if the time may exceed a fifth of
    the longest record (at three sigma of the profile likelihood), or if a random walk fits nearly
    as well (gain below 11.8). Then only the density of the walk is known. Values with a standard
    deviation below a micrometre are treated as constant.
    """
    data = MarkovRecords(records)
    if data.scale(1.0, 1.0) < _CONSTANT**2:
        remark = 'the values never change'
        unobserved = unseen('m', remark, upper=_CONSTANT)
        return _without_wander(unobserved, unobserved, remark, 0.0)
    white_deviance = data.deviance(1.0, 1.0)
    times = np.geomspace(0.5 * data.shortest, _LONGEST * data.longest, 24)
    profile, time = _best_time(data, times)
    deviance, share = data.best_share(time)
    if white_deviance - deviance < _WANDER_GAIN:
        std = math.sqrt(data.scale(1.0, 1.0))
        error = std / math.sqrt(2.0 * data.freedom)
        fourth = data.fourth_moment() / std**4
        if fourth - 1.0 > 2.0 * _NOT_NORMAL:
            error *= math.sqrt(0.5 * (fourth - 1.0))
        white = ParameterEstimate(std, error, 'm', True, std - 1.96 * error, std + 1.96 * error)
        remark = f'the record of {data.longest:.3g} s shows only white noise'
        return _without_wander(white, unseen('m', remark), remark, white_deviance - deviance)
    bound = data.white_bound(share, time, deviance)
    data.has_white = False
    wander_profile, wander_time = _best_time(data, times)
    wander_deviance, wander_share = data.best_share(wander_time)
    has_white = data.has_white = wander_deviance - deviance > _WHITE_GAIN
    with_white = (share, time)
    if not has_white:
        profile, time = wander_profile, wander_time
        deviance, share = wander_deviance, wander_share
    scale = data.scale(share, time)
    covariance = _log_covariance(data, scale * share, scale * (1.0 - share), time, has_white)
    if not has_white:
        # The uncertainty includes the change from leaving out the white noise.
        before = math.sqrt(data.scale(*with_white) * (1.0 - with_white[0]))
        after = math.sqrt(scale * (1.0 - share))
        change = np.array([0.0, math.log(before / after), math.log(with_white[1] / time)])
        covariance += np.outer(change, change)
    low, high = _time_interval(data, times, profile, deviance, _INTERVAL_GAIN)
    _, longest = _time_interval(data, times, profile, deviance, _THREE_SIGMA_GAIN)
    if longest > data.longest / LENGTHS_NEEDED or profile[-1] - deviance < _ROOT_GAIN:
        high = math.inf
    else:
        # The curvature at the best time understates how long the time may be. The added variance
        # is along constant g / sqrt(T), so the density of the walk keeps its standard error.
        along = np.array([0.0, 0.5, 1.0])
        upwards = max(math.log(high / time) / 1.96, math.log(longest / time) / 3.0)
        missing = upwards**2 - covariance[2, 2]
        covariance += max(missing, 0.0) * np.outer(along, along)
    return _with_wander(
        scale, share, time, covariance, (low, high), white_deviance - deviance, has_white, bound
    )


def _best_time(data: MarkovRecords, times: FloatArray) -> tuple[list[float], float]:
    """Return the deviance at each of the times, and the time at which it is smallest."""
    profile = [data.best_share(float(time))[0] for time in times]
    best = int(np.argmin(profile))
    near = np.log(times[[max(best - 1, 0), min(best + 1, len(times) - 1)]])
    minimum = minimize_scalar(
        lambda log_time: data.best_share(math.exp(log_time))[0],
        bounds=(float(near[0]), float(near[1])),
        method='bounded',
        options={'xatol': 1e-3},
    )
    return profile, math.exp(float(minimum.x))


def _without_wander(
    white: ParameterEstimate, wander: ParameterEstimate, remark: str, gain: float
) -> MarkovFit:
    time, walk = unseen('s', remark), unseen('m/sqrt(s)', remark)
    return MarkovFit(white, white, wander, time, walk, gain)


def _with_wander(
    scale: float,
    share: float,
    time: float,
    covariance: FloatArray,
    interval: tuple[float, float],
    gain: float,
    has_white: bool,
    white_bound: float,
) -> MarkovFit:
    white, wander = math.sqrt(scale * share), math.sqrt(scale * (1.0 - share))
    low, high = interval
    walk = math.sqrt(2.0) * wander / math.sqrt(time)

    def estimate(value: float, gradient: list[float], unit: str) -> ParameterEstimate:
        direction = np.array(gradient)
        error = math.sqrt(max(float(direction @ covariance @ direction), 0.0))
        lower, upper = value * math.exp(-1.96 * error), value * math.exp(1.96 * error)
        return ParameterEstimate(value, value * error, unit, True, lower, upper)

    if math.isinf(high):
        remark = 'too long to be estimated from the record'
        times = unseen('s', remark, lower=low)
        wanders = unseen('m', 'grows with the record, as a random walk does')
        total = unseen('m', 'grows with the record')
    else:
        from_curvature = estimate(time, [0.0, 0.0, 1.0], 's')
        times = dataclasses.replace(from_curvature, lower=low, upper=high)
        wanders = estimate(wander, [0.0, 1.0, 0.0], 'm')
        # The slope of log total by log wander at the best fit understates a much larger wander, so
        # the mean slope up to three sigma is used.
        change = 3.0 * wanders.std / wander
        slope = 0.5 * math.log(share + (1.0 - share) * math.exp(2.0 * change)) / change
        total = estimate(math.sqrt(scale), [share, slope, 0.0], 'm')
    if has_white:
        whites = estimate(white, [1.0, 0.0, 0.0], 'm')
    else:
        whites = unseen('m', 'hidden by the wander', upper=white_bound)
    return MarkovFit(
        total=total,
        white=whites,
        wander=wanders,
        time=times,
        walk=estimate(walk, [0.0, 1.0, -0.5], 'm/sqrt(s)'),
        gain=gain,
    )


def _log_covariance(
    data: MarkovRecords, white: float, wander: float, time: float, has_white: bool
) -> FloatArray:
    """Return the covariance of the logarithms of w, g and T; 0 for w where unseen.

    It is the inverse curvature H^-1. In directions in which the scores scatter more than for
    normal errors, it is H^-1 J H^-1, where J is the covariance of their sums over blocks
    ([White1982]).
    """
    free = [0, 1, 2] if has_white else [1, 2]
    at = np.array([0.5 * math.log(max(white, 1e-300)), 0.5 * math.log(wander), math.log(time)])

    def parameters(shift: FloatArray) -> tuple[float, float, float]:
        w, g, tau = at + shift
        variance = math.exp(2.0 * w) if has_white else NO_WHITE * wander
        return variance, math.exp(2.0 * g), math.exp(tau)

    def deviance(shift: FloatArray) -> float:
        return sum(data.sums(*parameters(shift)))

    size = len(free)
    hessian = np.empty((size, size))
    for i, first in enumerate(free):
        for j, second in enumerate(free):
            total = 0.0
            for sign, other_sign in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
                shift = np.zeros(3)
                shift[first] += sign * _STEP
                shift[second] += other_sign * _STEP
                total += sign * other_sign * deviance(shift)
            hessian[i, j] = total / (4.0 * _STEP**2)
    values, vectors = np.linalg.eigh(0.5 * hessian)
    mean = data.means(*parameters(np.zeros(3)))
    scores = np.array(
        [
            data.block_terms(*parameters(step), mean) - data.block_terms(*parameters(-step), mean)
            for step in _STEP * np.eye(3)[free]
        ]
    ) / (4.0 * _STEP)
    # The floor limits the standard deviation of a logarithm to 2, where there is no curvature.
    root = (vectors / np.sqrt(np.maximum(values, 0.25))) @ vectors.T
    spread, directions = np.linalg.eigh(root @ scores @ scores.T @ root)
    spread = np.where(spread > _NOT_NORMAL, spread, 1.0)
    covariance = np.zeros((3, 3))
    covariance[np.ix_(free, free)] = root @ (directions * spread) @ directions.T @ root
    return covariance


def _time_interval(
    data: MarkovRecords, times: FloatArray, profile: list[float], deviance: float, gain: float
) -> tuple[float, float]:
    """Return the interval of times in which the deviance rises by at most `gain`.

    An end beyond the examined times is 0 or infinity.
    """
    inside = np.flatnonzero(np.array(profile) - deviance <= gain)
    if not len(inside):
        inside = np.array([int(np.argmin(profile))])
    low = 0.0 if inside[0] == 0 else float(times[inside[0] - 1])
    high = math.inf if inside[-1] == len(times) - 1 else float(times[inside[-1] + 1])

    def crossing(outer: float, inner: float) -> float:
        for _ in range(8):
            middle = math.sqrt(outer * inner)
            if data.best_share(middle)[0] - deviance <= gain:
                inner = middle
            else:
                outer = middle
        return outer

    if low:
        low = crossing(low, float(times[inside[0]]))
    if math.isfinite(high):
        high = crossing(high, float(times[inside[-1]]))
    return low, high


NO_WHITE = 1e-9
"""Share of white noise in the variance that stands for none."""
# Square of 1.645, the one-sided 95 % quantile of a normal distribution.
_BOUND_GAIN = 2.71


@compiled
def innovations(
    y: FloatArray, dt: FloatArray, white: float, wander: float, time: float
) -> tuple[float, float, float, float]:
    """Filter `y` and a series of ones; return the sums of their weighted innovation products.

    These are yy, y1 and 11, divided by the innovation variances. The last sum is that of the
    logarithms of these variances.
    """
    my = 0.0
    m1 = 0.0
    p = wander
    yy = 0.0
    y1 = 0.0
    ones = 0.0
    logs = 0.0
    for k in range(y.shape[0]):
        if k > 0:
            a = math.exp(-dt[k] / time)
            my *= a
            m1 *= a
            p = a * a * p + wander * (1.0 - a * a)
        s = p + white
        ey = y[k] - my
        e1 = 1.0 - m1
        yy += ey * ey / s
        y1 += ey * e1 / s
        ones += e1 * e1 / s
        logs += math.log(s)
        gain = p / s
        my += gain * ey
        m1 += gain * e1
        p *= 1.0 - gain
    return yy, y1, ones, logs


@compiled
def likelihood_terms(
    y: FloatArray, dt: FloatArray, white: float, wander: float, time: float
) -> FloatArray:
    """Return the contribution of each sample to -2 log likelihood, `(n,)`, for a mean of zero."""
    terms = np.empty(y.shape[0])
    m = 0.0
    p = wander
    for k in range(y.shape[0]):
        if k > 0:
            a = math.exp(-dt[k] / time)
            m *= a
            p = a * a * p + wander * (1.0 - a * a)
        s = p + white
        terms[k] = (y[k] - m) ** 2 / s + math.log(s)
        gain = p / s
        m += gain * (y[k] - m)
        p *= 1.0 - gain
    return terms


class MarkovRecords:
    """Restricted likelihood of both processes in records with a constant each.

    Records are times `(n,)` s and values `(n,)` m. White noise is fitted if `has_white`. `freedom`
    is the number of values minus that of the constants, `shortest` the shortest median interval,
    s, and `longest` the duration of the longest record, s.
    """

    def __init__(self, records: Sequence[tuple[FloatArray, FloatArray]]) -> None:
        self.has_white = True
        self.parts = [
            (np.ascontiguousarray(y, np.float64), np.concatenate([[0.0], np.diff(t)]))
            for t, y in records
        ]
        self.freedom = sum(len(y) - 1 for y, _ in self.parts)
        self.shortest = min(float(np.median(dt[1:])) for _, dt in self.parts)
        self.longest = max(float(dt.sum()) for _, dt in self.parts)

    def sums(self, white: float, wander: float, time: float) -> tuple[float, float]:
        """Return the sums of squares and of logarithms in the restricted likelihood."""
        squares = logs = 0.0
        for y, dt in self.parts:
            yy, y1, ones, log = innovations(y, dt, white, wander, time)
            squares += yy - y1 * y1 / ones
            logs += log + math.log(ones)
        return squares, logs

    def fourth_moment(self) -> float:
        """Return the mean fourth power about the means, m^4."""
        return sum(float(np.sum((y - y.mean()) ** 4)) for y, _ in self.parts) / self.freedom

    def means(self, white: float, wander: float, time: float) -> list[float]:
        """Return the most likely constant of each record, m."""
        sums = (innovations(y, dt, white, wander, time) for y, dt in self.parts)
        return [y1 / ones for _, y1, ones, _ in sums]

    def block_terms(
        self, white: float, wander: float, time: float, means: Sequence[float]
    ) -> FloatArray:
        """Return the contributions of blocks of samples to -2 log likelihood, for given means."""
        size = max(self.freedom // _BLOCKS, 1)
        blocks = []
        for (y, dt), mean in zip(self.parts, means, strict=True):
            terms = likelihood_terms(y - mean, dt, white, wander, time)
            blocks.append(np.add.reduceat(terms, np.arange(0, len(y), size)))
        return np.concatenate(blocks)

    def deviance(self, share: float, time: float) -> float:
        """Return -2 log likelihood with the best total variance, of which `share` is white."""
        squares, logs = self.sums(share, 1.0 - share, time)
        return self.freedom * math.log(squares / self.freedom) + logs + self.freedom

    def scale(self, share: float, time: float) -> float:
        """Return the most likely total variance, m^2."""
        return self.sums(share, 1.0 - share, time)[0] / self.freedom

    def white_bound(self, share: float, time: float, deviance: float) -> float:
        """Return the one-sided 95 % upper bound of the white standard deviation, m."""
        low, high = max(math.log(share / (1.0 - share)), -14.0), 14.0
        for _ in range(24):
            middle = 0.5 * (low + high)
            if self.deviance(_sigmoid(middle), time) - deviance < _BOUND_GAIN:
                low = middle
            else:
                high = middle
        return math.sqrt(self.scale(_sigmoid(high), time) * _sigmoid(high))

    def best_share(self, time: float) -> tuple[float, float]:
        """Return the smallest deviance at a time and its white share, by golden-section search."""
        if not self.has_white:
            return self.deviance(NO_WHITE, time), NO_WHITE
        low, high = -14.0, 14.0
        ratio = 0.5 * (math.sqrt(5.0) - 1.0)
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        fa, fb = self.deviance(_sigmoid(a), time), self.deviance(_sigmoid(b), time)
        for _ in range(24):
            if fa < fb:
                high, b, fb = b, a, fa
                a = high - ratio * (high - low)
                fa = self.deviance(_sigmoid(a), time)
            else:
                low, a, fa = a, b, fb
                b = low + ratio * (high - low)
                fb = self.deviance(_sigmoid(b), time)
        return (fa, _sigmoid(a)) if fa < fb else (fb, _sigmoid(b))


def _sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))
