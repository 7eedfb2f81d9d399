# SPDX-License-Identifier: Apache-2.0
"""Likelihood of white noise and a Gauss-Markov process in records about unknown means."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sim_sensors.core.compilation import compiled
from sim_sensors.core.measurements import FloatArray

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
    one = 0.0
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
        one += e1 * e1 / s
        logs += math.log(s)
        gain = p / s
        my += gain * ey
        m1 += gain * e1
        p *= 1.0 - gain
    return yy, y1, one, logs


class MarkovRecords:
    """Records with a constant each, and the restricted likelihood of the two processes in them.

    Parameters
    ----------
    records : sequence of ((n,) float, (n,) float)
        Times, s, increasing, and values, m.

    Attributes
    ----------
    has_white : bool
        Whether white noise is fitted.
    freedom : int
        Values beside the constants.
    shortest, longest : float
        Shortest median interval and longest record, s.
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
            yy, y1, one, log = innovations(y, dt, white, wander, time)
            squares += yy - y1 * y1 / one
            logs += log + math.log(one)
        return squares, logs

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


def autocovariance(records: Sequence[FloatArray], lags: int) -> FloatArray:
    """Return the autocovariance at lags 0 to `lags` of evenly spaced records about their means,
    `(lags + 1,)` m^2; a mean over n samples takes some of a slow wander away from it.
    """
    sums, counts = np.zeros(lags + 1), np.zeros(lags + 1)
    for values in records:
        centred = values - values.mean()
        for lag in range(min(lags, len(values) - 1) + 1):
            sums[lag] += float(centred[: len(centred) - lag] @ centred[lag:])
            counts[lag] += len(centred)
    return sums / np.maximum(counts, 1.0)
