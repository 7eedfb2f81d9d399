# SPDX-License-Identifier: Apache-2.0
"""The search for the size of an error that a comparison reveals with a wanted power."""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri, stdtrit

from sim_sensors.core.measurements import FloatArray
from .injection import InjectedError
from .power import Power

QUICK = 400
"""Trials of all sizes but the last."""

_STEP = 4.0  # from size to size until one is seen and another is not
_NARROW = 1.35  # ratio of the two below which the last size is chosen between them
_SMALLEST = 1e-4  # least size, as a share of the first
_LASTS = 3  # sizes at most that take all
_CLOSE = 0.04  # difference of logarithms at which the last size is that looked for
_LEAST_SLOPE = 0.2
_OUTSIDE = 0.15  # difference of logarithms by which the fit may leave the two sizes
_NEAR = 0.15  # difference of the power within which the last size is near the one looked for


class Point(NamedTuple):
    """A size that was tried, and the share of studies that reveal it."""

    size: float
    power: float


@dataclasses.dataclass(frozen=True)
class Detectable:
    """The smallest error of a kind that a judge reveals.

    Attributes
    ----------
    judge : str
    error : InjectedError
    size : float or None
        With the wanted power, in the unit of the error; None where none of the points has it, or
        all have.
    low, high : float or None
        Interval of 95 %. Where the power jumps past the wanted one, `low` is not yet seen, and
        `size` and `high` are the smallest size that is.
    points : tuple of Point
        Sizes that were tried, rising; none where the messages do not hold the quantity.
    """

    judge: str
    error: InjectedError
    size: float | None
    low: float | None
    high: float | None
    points: tuple[Point, ...]


class SizeSearch:
    """Sizes of one error under one judge, tried until one has the wanted power."""

    def __init__(self, judge: int, error: InjectedError, power: float) -> None:
        self.judge, self.error = judge, error
        self.next = error.start
        self.is_last = self.is_done = False
        self._wanted = power
        self._lasts = 0
        self._known: dict[float, Power] = {}

    def add(self, power: Power) -> None:
        """Take the power of the size that was next, and choose another one, or end."""
        self._known[self.next] = power
        if self.is_last:
            centre, _ = self._centre()
            self._lasts += 1
            self.is_done = self._lasts == _LASTS or abs(centre - math.log(self.next)) < _CLOSE
            if not self.is_done:
                self.next = math.exp(centre)
            return
        low, high = self._bracket()
        if low is None or high is None:
            size = min(self.next * _STEP, self.error.most)
            if low is None:
                size = max(self.next / _STEP, _SMALLEST * self.error.start)
            self.is_done = size in self._known
            self.next = size
            return
        level, slope = self._fit(low, high)
        share = (level - math.log(low)) / math.log(high / low) if slope > 0.0 else 0.5
        self.is_last = high / low <= _NARROW
        share = min(max(share, 0.0), 1.0) if self.is_last else min(max(share, 0.2), 0.8)
        self.next = low * (high / low) ** share
        if self.next in self._known:
            self.next *= 1.0 + 1e-6

    def result(self, judge: str) -> Detectable:
        """Return what was found."""
        points = tuple(Point(size, one.share) for size, one in sorted(self._known.items()))
        if not self.is_last:
            return Detectable(judge, self.error, None, None, None, points)
        centre, spread = self._centre()
        low, high = self._bracket()
        if low and high and abs(self._known[self.next].share - self._wanted) > _NEAR:
            return Detectable(judge, self.error, high, low, high, points)
        half = float(stdtrit(self._known[self.next].degrees, 0.975)) * spread
        ends = [math.exp(centre + sign * half) for sign in (0.0, -1.0, 1.0)]
        return Detectable(judge, self.error, ends[0], ends[1], ends[2], points)

    def _centre(self) -> tuple[float, float]:
        """Return the logarithm of the size that is looked for, and its standard error: from the
        last size, which was tried most often, along the fit.
        """
        last = self._known[self.next]
        low, high = (end or self.next for end in self._bracket())
        _, slope = self._fit(low, high)
        share = min(max(last.share, 0.01), 0.99)
        probit = float(ndtri(share))
        slope = max(slope, _LEAST_SLOPE)
        centre = math.log(self.next) + (float(ndtri(self._wanted)) - probit) / slope
        ends = math.log(low), math.log(high)
        if not ends[0] - _OUTSIDE <= centre <= ends[1] + _OUTSIDE:
            # The power is not that of the fit: it jumps, or falls in between.
            centre = sum(ends) / 2.0
        return centre, last.error / float(_density(probit)) / slope

    def _bracket(self) -> tuple[float | None, float | None]:
        """Return the largest size that is not seen, and the smallest above it that is."""
        low = max((s for s, one in self._known.items() if one.share < self._wanted), default=None)
        above = [s for s, one in self._known.items() if one.share >= self._wanted]
        high = min((s for s in above if low is None or s > low), default=None)
        return low, high

    def _fit(self, low: float, high: float) -> tuple[float, float]:
        """Return where the probit of the power, linear in the logarithm of the size, has the
        wanted power, and its slope; from sizes near the two ends.
        """
        near = {s: one for s, one in self._known.items() if low / 2.0 <= s <= 2.0 * high}
        share = np.clip([one.share for one in near.values()], 0.5 / QUICK, 1.0 - 0.5 / QUICK)
        probit = ndtri(share)
        # A probit is known the better the less extreme it is.
        weight = _density(probit) / np.sqrt(share * (1.0 - share))
        slope, level = np.polyfit(np.log(list(near)), probit, 1, w=weight)
        if slope <= 0.0:
            return math.log(math.sqrt(low * high)), 0.0
        return float((ndtri(self._wanted) - level) / slope), float(slope)


def _density(probit: float | FloatArray) -> FloatArray:
    """Return the density of the standard normal distribution."""
    return np.asarray(np.exp(-np.square(probit) / 2.0) / np.sqrt(2.0 * np.pi))
