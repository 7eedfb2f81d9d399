# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""White noise and a Gauss-Markov process in records about unknown means: maximum likelihood.

y = constant + v + m, v white with standard deviation w, m a stationary Gauss-Markov process of
standard deviation g and correlation time T. Sampled at any times this is exactly a scalar state
space, so a Kalman filter gives the likelihood; the constant of each record is integrated out
(restricted likelihood: [Harville1977]), without which short records come out too quiet.
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

# Twice the gain in log-likelihood. If there is no wander its time is free, so the gain is the
# largest of several chi-squares; the false-alarm rate of this bound is measured by the tests.
_WANDER_GAIN = 12.0
_WHITE_GAIN = 9.0
_INTERVAL_GAIN = 3.84
_THREE_SIGMA_GAIN = 9.0
# A wander that comes back within the record is told only where the record holds this many of its
# longest likely time. In shorter ones some look as if they held many of a shorter one, and to take
# those alone made what was found 3 to 5 sigma too small.
LENGTHS_NEEDED = 5.0
# A random walk about an unknown mean looks as if it came back: the square of Dickey and Fuller's
# critical value for 1 %, 3.43 (JASA 74, 1979).
_ROOT_GAIN = 11.8
_LONGEST = 30.0
# m; below it a deviation is that of degrees in double precision, brought to metres.
_CONSTANT = 1e-6
_STEP = 0.02
# Scores are summed over this many blocks. Their variance exceeds that of normal errors by this
# factor before it counts; of normal errors it does so in about one record of a hundred.
_BLOCKS = 40
_NOT_NORMAL = 2.0


@dataclasses.dataclass(frozen=True)
class MarkovFit:
    """Errors of an axis: white noise w and wander g, m, and its time T, s.

    `total` is the deviation of a fix, sqrt(w^2 + g^2), m: the sigma of a Gaussian model; `walk`
    the density sqrt(2 g^2 / T), m/sqrt(s): what is known of the wander where T is longer than the
    record, where g and T are 0; `gain` twice the logarithm of the likelihood over that of white
    noise alone.
    """

    total: ParameterEstimate
    white: ParameterEstimate
    wander: ParameterEstimate
    time: ParameterEstimate
    walk: ParameterEstimate
    gain: float


def fit_markov(records: Sequence[tuple[FloatArray, FloatArray]]) -> MarkovFit:
    """Fit one axis of one or several records: times, s, increasing, and values, m, `(n,)` each.

    Each record has a constant of its own.

    Notes
    -----
    A wander is told where twice the log-likelihood rises by more than 12 over that of white noise
    alone, white noise beside it by 9. Uncertainties are those of the curvature in the logarithms,
    at least what the profile likelihood of the time says upwards at two and at three sigma, and
    include what leaving out the white noise changes. If errors are not normal (jumps, outliers,
    rounding) they follow from the scatter of the scores instead ([White1982]). If the time may
    be longer than a fifth of the longest record (at three sigma of the profile likelihood), or a
    random walk does nearly as well (gain below 11.8), time and deviation of the wander are not
    observable, and the density
    of the walk is all that is known. Values that deviate by less than a micrometre tell nothing.
    """
    data = MarkovRecords(records)
    if data.scale(1.0, 1.0) < _CONSTANT**2:
        remark = 'the values never change'
        none = unseen('m', remark, upper=_CONSTANT)
        return _without_wander(none, none, remark, 0.0)
    plain = data.deviance(1.0, 1.0)
    times = np.geomspace(0.5 * data.shortest, _LONGEST * data.longest, 24)
    profile, time = _best_time(data, times)
    deviance, share = data.best_share(time)
    if plain - deviance < _WANDER_GAIN:
        std = math.sqrt(data.scale(1.0, 1.0))
        error = std / math.sqrt(2.0 * data.freedom)
        fourth = data.fourth_moment() / std**4
        if fourth - 1.0 > 2.0 * _NOT_NORMAL:
            error *= math.sqrt(0.5 * (fourth - 1.0))
        white = ParameterEstimate(std, error, 'm', True, std - 1.96 * error, std + 1.96 * error)
        remark = f'{data.longest:.3g} s show white noise alone'
        return _without_wander(white, unseen('m', remark), remark, plain - deviance)
    bound = data.white_bound(share, time, deviance)
    data.has_white = False
    profile_alone, time_alone = _best_time(data, times)
    alone, share_alone = data.best_share(time_alone)
    has_white = data.has_white = alone - deviance > _WHITE_GAIN
    with_white = (share, time)
    if not has_white:
        profile, time, deviance, share = profile_alone, time_alone, alone, share_alone
    scale = data.scale(share, time)
    covariance = _log_covariance(data, scale * share, scale * (1.0 - share), time, has_white)
    if not has_white:
        # The uncertainty is at least the change by leaving the white noise out.
        before = math.sqrt(data.scale(*with_white) * (1.0 - with_white[0]))
        after = math.sqrt(scale * (1.0 - share))
        change = np.array([0.0, math.log(before / after), math.log(with_white[1] / time)])
        covariance += np.outer(change, change)
    low, high = _time_interval(data, times, profile, deviance, _INTERVAL_GAIN)
    _, longest = _time_interval(data, times, profile, deviance, _THREE_SIGMA_GAIN)
    if longest > data.longest / LENGTHS_NEEDED or profile[-1] - deviance < _ROOT_GAIN:
        high = math.inf
    else:
        # The curvature at the best time knows little of much longer ones; the density of the
        # walk, w = g sqrt(2 / T), stays as sure as it is.
        along = np.array([0.0, 0.5, 1.0])
        upwards = max(math.log(high / time) / 1.96, math.log(longest / time) / 3.0)
        missing = upwards**2 - covariance[2, 2]
        covariance += max(missing, 0.0) * np.outer(along, along)
    return _with_wander(
        scale, share, time, covariance, (low, high), plain - deviance, has_white, bound
    )


def _best_time(data: MarkovRecords, times: FloatArray) -> tuple[list[float], float]:
    """Return the deviance at times, and the best time."""
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
        remark = 'longer than the record can tell'
        times = unseen('s', remark, lower=low)
        wanders = unseen('m', 'grows with the record, as a random walk does')
        total = unseen('m', 'grows with the record')
    else:
        ends = estimate(time, [0.0, 0.0, 1.0], 's')
        times = dataclasses.replace(ends, lower=low, upper=high)
        wanders = estimate(wander, [0.0, 1.0, 0.0], 'm')
        # White noise hides in the sum what three sigma more of the wander would add to it.
        most = 3.0 * wanders.std / wander
        reach = 0.5 * math.log(share + (1.0 - share) * math.exp(2.0 * most)) / most
        total = estimate(math.sqrt(scale), [share, reach, 0.0], 'm')
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

    It is the inverse curvature H^-1, or where the scores scatter more than normal errors make
    them, H^-1 J H^-1 with the covariance J of their sums over blocks ([White1982]).
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
    # Directions without curvature are unknown by a factor of e and more.
    mean = data.means(*parameters(np.zeros(3)))
    scores = np.array(
        [
            data.block_terms(*parameters(step), mean) - data.block_terms(*parameters(-step), mean)
            for step in _STEP * np.eye(3)[free]
        ]
    ) / (4.0 * _STEP)
    root = (vectors / np.sqrt(np.maximum(values, 0.25))) @ vectors.T
    spread, directions = np.linalg.eigh(root @ scores @ scores.T @ root)
    spread = np.where(spread > _NOT_NORMAL, spread, 1.0)
    covariance = np.zeros((3, 3))
    covariance[np.ix_(free, free)] = root @ (directions * spread) @ directions.T @ root
    return covariance


def _time_interval(
    data: MarkovRecords, times: FloatArray, profile: list[float], deviance: float, gain: float
) -> tuple[float, float]:
    """Times between which the likelihood is lower by no more than a gain; 0 and infinity where a
    side is open.
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
"""Share of the variance that stands for no white noise."""
_BOUND_GAIN = 2.71


@compiled
def innovations(
    y: FloatArray, dt: FloatArray, white: float, wander: float, time: float
) -> tuple[float, float, float, float]:
    """Return sums over innovations of y and of a one: yy, y1, 11, and of log variances."""
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
    """Return the part of each sample in -2 log likelihood, `(n,)`, of records about zero."""
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
    """Records, of times `(n,)` s and values `(n,)` m, with a constant each, and the restricted
    likelihood of the two processes in them; white noise is fitted if `has_white`.

    `freedom` counts values beside the constants; `shortest` is the shortest median interval, s,
    and `longest` the longest record, s.
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
        """Return squares and logarithms of the restricted likelihood."""
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
        """Return the parts that blocks of samples have in -2 log likelihood, for given means."""
        size = max(self.freedom // _BLOCKS, 1)
        terms = []
        for (y, dt), mean in zip(self.parts, means, strict=True):
            squares = likelihood_terms(y - mean, dt, white, wander, time)
            terms.append(np.add.reduceat(squares, np.arange(0, len(y), size)))
        return np.concatenate(terms)

    def deviance(self, share: float, time: float) -> float:
        """-2 log likelihood with the best total variance, of which `share` is white."""
        squares, logs = self.sums(share, 1.0 - share, time)
        return self.freedom * math.log(squares / self.freedom) + logs + self.freedom

    def scale(self, share: float, time: float) -> float:
        """Return the best total variance."""
        return self.sums(share, 1.0 - share, time)[0] / self.freedom

    def white_bound(self, share: float, time: float, deviance: float) -> float:
        """Return the white deviation at which the likelihood says no at 95 %, one-sided."""
        low, high = max(math.log(share / (1.0 - share)), -14.0), 14.0
        for _ in range(24):
            middle = 0.5 * (low + high)
            if self.deviance(_sigmoid(middle), time) - deviance < _BOUND_GAIN:
                low = middle
            else:
                high = middle
        return math.sqrt(self.scale(_sigmoid(high), time) * _sigmoid(high))

    def best_share(self, time: float) -> tuple[float, float]:
        """Return the deviance and the white share that is best at a time: golden section."""
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
