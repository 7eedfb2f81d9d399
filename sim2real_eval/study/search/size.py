# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Search for the size of an error that studies reveal with a required power.

Sizes are tried in rounds. The size grows or shrinks until one is revealed and a smaller one is
not. A curve is fitted to the powers of all sizes so far: a probit that is linear in the logarithm
of the size (H. Robbins and S. Monro, Ann. Math. Stat. 22, 1951, with the slope estimated). The
next size is where this curve has the required power. Each round has its own runs, so that the
curve averages over the runs.
"""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri, stdtrit

_STEP = 4.0  # ratio of sizes until one is revealed and another is not
_SMALLEST = 1e-4  # least size, as a share of the first
_NEAR = 0.12  # largest difference from the required power of a size that counts as near
_ENOUGH = 5  # near sizes that end the search
_STEEP = 1.1  # largest ratio of two sizes between which the power counts as a jump
_SURE = 4.0  # standard errors by which the powers on both sides of a jump differ
_MAX = 16  # sizes between the bracket at most
_MARGIN = 0.3  # share of the bracket that the next size keeps from either end
_OUTSIDE = 0.15  # logarithm by which the next size may leave the bracket at a near end
_MIN_SLOPE = 0.2
_MIN_SHARE = 0.002  # share of revealing studies that a probit takes for 0


class Power(NamedTuple):
    """Share of studies that reveal an error, its standard error and degrees of freedom."""

    share: float
    error: float
    degrees: int


class Point(NamedTuple):
    """A size that was tried, and the share of studies that reveal it."""

    size: float
    power: float


@dataclasses.dataclass(frozen=True)
class SizeEstimate:
    """Size with the required power.

    Attributes
    ----------
    size : float or None
        None if all tried sizes have a larger power, or all a smaller one. The smallest revealed
        size where the power jumps.
    low, high : float or None
        Interval of 95 %. `low` is the largest size below the jump, where the power jumps.
    points : tuple of Point
        Sizes that were tried, rising; empty if none could be.
    jump : tuple of float or None
        Powers at `low` and at `size`, if no size between them has the required power.
    """

    size: float | None = None
    low: float | None = None
    high: float | None = None
    points: tuple[Point, ...] = ()
    jump: tuple[float, float] | None = None


class _Trial(NamedTuple):
    size: float
    power: Power


class SizeSearch:
    """Sequential search that ends when enough sizes have nearly the required power.

    Parameters
    ----------
    start, most : float
        First and largest size.
    power : float
        The wanted share of studies.
    same_runs : bool
        Whether all sizes are tried with the same runs instead of new ones for each.
    """

    def __init__(
        self, start: float, most: float, power: float, *, same_runs: bool = False
    ) -> None:
        self.next = start
        self.is_done = False
        self._start, self._most = start, most
        self._wanted, self._same_runs = power, same_runs
        self._trials: list[_Trial] = []

    def add(self, power: Power) -> None:
        """Store the power of the size `next`, and choose the next size or end the search."""
        self._trials.append(_Trial(self.next, power))
        low, high = self._bracket()
        if low is None or high is None:
            size = min(self.next * _STEP, self._most)
            if low is None:
                size = max(self.next / _STEP, _SMALLEST * self._start)
            self.is_done = size == self.next
            self.next = size
            return
        inside = sum(low.size < trial.size < high.size for trial in self._trials)
        self.is_done = (
            len(self._near_powers()) >= _ENOUGH or self._has_jump(low, high) or inside >= _MAX
        )
        if not self.is_done:
            self.next = self._choose_between(low, high)

    def estimate(self) -> SizeEstimate:
        """Return the size with the required power and its interval."""
        points = tuple(sorted(Point(size, power.share) for size, power in self._trials))
        low, high = self._bracket()
        if low is None or high is None:
            return SizeEstimate(points=points)
        near = self._near_powers()
        if self._has_jump(low, high) or len(near) < _ENOUGH:
            jump = low.power.share, high.power.share
            return SizeEstimate(high.size, low.size, high.size, points, jump)
        centre, error = self._fit_curve(low.size, high.size)
        # The curve has two parameters.
        degrees = min(near[0].degrees, len(self._neighbours(low.size, high.size)) - 2)
        half = float(stdtrit(degrees, 0.975)) * error
        size, lower, upper = (math.exp(centre + sign * half) for sign in (0.0, -1.0, 1.0))
        return SizeEstimate(size, lower, upper, points)

    def _near_powers(self) -> list[Power]:
        return [trial.power for trial in self._trials if self._is_near(trial.power)]

    def _is_near(self, power: Power) -> bool:
        return abs(power.share - self._wanted) <= _NEAR

    def _bracket(self) -> tuple[_Trial | None, _Trial | None]:
        """Return the largest unrevealed size below the smallest revealed one, and the latter."""
        revealed = [trial for trial in self._trials if trial.power.share >= self._wanted]
        high = min(revealed, default=None)
        below = [trial for trial in self._trials if high is None or trial.size < high.size]
        return max(below, default=None), high

    def _has_jump(self, low: _Trial, high: _Trial) -> bool:
        """Return whether the power crosses the required one between two close sizes."""
        below, above = low.power, high.power
        apart = min(self._wanted - below.share, above.share - self._wanted) > _NEAR
        by_chance = _SURE * math.hypot(below.error, above.error)
        return apart and above.share - below.share > by_chance and high.size / low.size <= _STEEP

    def _choose_between(self, low: _Trial, high: _Trial) -> float:
        """Return the size given by the curve, away from the ends unless they are near."""
        width = math.log(high.size / low.size)
        centre, _ = self._fit_curve(low.size, high.size)
        share = (centre - math.log(low.size)) / width
        ends = [
            side * (_OUTSIDE / width if self._is_near(trial.power) else -_MARGIN)
            for side, trial in ((-1.0, low), (1.0, high))
        ]
        return low.size * math.exp(width * min(max(share, ends[0]), 1.0 + ends[1]))

    def _neighbours(self, low: float, high: float) -> list[tuple[float, ...]]:
        return [
            (trial.size, *trial.power)
            for trial in self._trials
            if low / 2.0 <= trial.size <= 2.0 * high
        ]

    def _fit_curve(self, low: float, high: float) -> tuple[float, float]:
        """Return the logarithm of the size with the required power, and its standard error."""
        sizes, shares, errors, _ = np.array(self._neighbours(low, high)).T
        shares = np.clip(shares, _MIN_SHARE, 1.0 - _MIN_SHARE)
        wanted, probit = float(ndtri(self._wanted)), ndtri(shares)
        density = np.exp(-np.square(probit) / 2.0) / math.sqrt(2.0 * math.pi)
        # Extreme probits are uncertain, and the curve is straight only near the required power.
        weight = np.square(density) / (shares * (1.0 - shares))
        weight *= np.exp(-np.square(probit - wanted) / 2.0)
        weight /= weight.sum()
        log_size = np.log(sizes)
        x, y = float(weight @ log_size), float(weight @ probit)
        scatter = max(float(weight @ np.square(log_size - x)), 1e-12)
        slope = float(weight @ ((log_size - x) * (probit - y))) / scatter
        slope = max(slope, _MIN_SLOPE)
        centre = x + (wanted - y) / slope
        part = np.abs(weight * (1.0 + (centre - x) * (log_size - x) / scatter) * errors / density)
        # Errors from the same runs do not average out.
        error = part.sum() if self._same_runs else math.sqrt(np.square(part).sum())
        return centre, float(error) / slope
