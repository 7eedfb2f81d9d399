# SPDX-License-Identifier: Apache-2.0
"""How often a study would reveal a difference of two sets of runs, from many runs of each; and
the search for the size of an error that it reveals with a wanted power.

A trial takes as many runs as a study has, and tests them as a study does: by the permutation test
of their VEPD. Trials share runs. What the few runs leave open follows from how the outcome of a
trial depends on the runs in it: the infinitesimal jackknife for subsamples, less what chance adds
(S. Wager, T. Hastie and B. Efron, J. Mach. Learn. Res. 15, 2014).
"""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri, stdtrit

from sim2real_eval.metrics.uncertainty.interval import MeanWasserstein, side_weights
from sim2real_eval.metrics.uncertainty.permutation_test import joint_p_values, permute_labels
from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.core.seeding import stream
from .injection import InjectedError
from .options import LEVEL


class Power(NamedTuple):
    """Share of trials that reveal, its standard error and that one's degrees of freedom."""

    share: float
    error: float
    degrees: int


@dataclasses.dataclass(frozen=True, eq=False)
class Trials:
    """Studies drawn from the runs `(recordings, draws)` of either side.

    `recording` and `draw` `(trials, 2 n)` say which runs are taken, first of the side without the
    error. `weights` `(permutations, 2 n)` divide them, the first row as it is. `shape` is that
    of the runs; where they are `paired`, a trial takes two runs of each recording.
    """

    recording: IntArray
    draw: IntArray
    weights: FloatArray
    shape: tuple[int, int]
    paired: bool

    @classmethod
    def of(cls, recordings: int, draws: int, trials: int, permutations: int, seed: int) -> Trials:
        """Draw trials.

        With several draws the two runs of each recording are a pair; with one, which is measured,
        half of the recordings stand against the other half.
        """
        rng = stream(seed, 'sensitivity', 'trials', '')
        paired = draws > 1
        if paired:
            n = recordings
            order = rng.random((trials, n, draws)).argsort(axis=2)[:, :, :2]
            draw = np.concatenate([order[:, :, 0], order[:, :, 1]], axis=1)
            recording = np.tile(np.arange(n), (trials, 2))
        else:
            n = unpaired_runs(recordings)
            recording = rng.random((trials, recordings)).argsort(axis=1)[:, : 2 * n]
            draw = np.zeros_like(recording)
        real = [f'{i}' for i in range(n)]
        simulated = real if paired else [f'other {i}' for i in range(n)]
        labels = permute_labels(real, simulated, permutations, seed).real
        one, other = side_weights(labels)
        return cls(recording, draw, one - other, (recordings, draws), paired)

    def power(self, base: FloatArray, changed: FloatArray) -> Power:
        """Return the power for runs `(recordings, draws, coordinates)` without and with an error.

        Scores that are not numbers, as of a judge that failed, count as revealed.
        """
        outcome = np.array([self._reveals(base, changed, k) for k in range(len(self.draw))])
        recordings, draws = self.shape
        degrees = recordings * (draws - 1) if self.paired else recordings - 1
        return Power(float(outcome.mean()), self._error(outcome), degrees)

    def _reveals(self, base: FloatArray, changed: FloatArray, trial: int) -> bool:
        n = self.recording.shape[1] // 2
        at, draw = self.recording[trial], self.draw[trial]
        values = np.concatenate([base[at[:n], draw[:n]], changed[at[n:], draw[n:]]])
        if not np.isfinite(values).all():
            return True
        distances = MeanWasserstein.of(values).weighted(self.weights)
        return joint_p_values(distances[None]).single[0] <= LEVEL

    def _error(self, outcome: FloatArray) -> float:
        trials, (recordings, draws) = len(outcome), self.shape
        taken = np.zeros((trials, recordings, draws))
        np.put_along_axis(
            taken.reshape(trials, -1), self.recording * draws + self.draw, 1.0, axis=1
        )
        # A stratum of so many runs, of which every trial takes so many.
        size, part = (draws, 2) if self.paired else (recordings, self.recording.shape[1])
        share = part / size
        centred = np.asarray(outcome - outcome.mean(), dtype=np.float64)
        covariance = np.tensordot(centred, taken - share, axes=1) / trials
        noise = recordings * draws * share * (1.0 - share) * centred.var() / trials
        factor = (size - 1) / size * (size / (size - part)) ** 2 if size > part else 0.0
        of_runs = max(factor * (float(np.sum(covariance**2)) - noise), 0.0)
        return float(np.sqrt(of_runs + centred.var() / trials))


def unpaired_runs(recordings: int) -> int:
    """Return how many of the recordings stand on each side; one at least is left out."""
    return (recordings - 1) // 2


# Sizes are tried in rounds. Once one is revealed and a smaller one is not, each next size is where
# a curve through the powers so far, a probit linear in the logarithm of the size, has the wanted
# power (H. Robbins and S. Monro, Ann. Math. Stat. 22, 1951, with the slope estimated). Each round
# has runs of its own, so that the curve averages what the runs of one round leave open.
_STEP = 4.0  # from size to size until one is seen and another is not
_SMALLEST = 1e-4  # least size, as a share of the first
_NEAR = 0.12  # difference of the power within which a size is near the one that is looked for
_ENOUGH = 5  # sizes near it
_STEEP = 1.1  # ratio of two sizes between which a power that is never near it jumps
_SURE = 4.0  # standard errors of the difference of the two
_MOST = 16  # sizes at most between the two
_MARGIN = 0.3  # share of the way between two sizes that the next one keeps from either
_OUTSIDE = 0.15  # difference of logarithms by which it may leave them where they are near
_LEAST_SLOPE = 0.2
_LEAST_SHARE = 0.002  # of studies that reveal, which a probit takes for 0


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
        all have. The smallest size that is seen where the power jumps.
    low, high : float or None
        Interval of 95 %. Where the power jumps, `low` is the largest size below it.
    points : tuple of Point
        Sizes that were tried, rising; none where the messages do not hold the quantity.
    jump : tuple of float or None
        Power at `low` and at `size` where no size between has the wanted one; else None.
    """

    judge: str
    error: InjectedError
    size: float | None
    low: float | None
    high: float | None
    points: tuple[Point, ...]
    jump: tuple[float, float] | None = None


class SizeSearch:
    """Sizes of one error under one judge, tried until enough have about the wanted `power`.

    `same_runs`: all sizes are tried with the same runs, and not each with new ones.
    """

    def __init__(
        self, judge: int, error: InjectedError, power: float, *, same_runs: bool = False
    ) -> None:
        self.judge, self.error = judge, error
        self.next = error.start
        self.is_done = False
        self._wanted, self._same_runs = power, same_runs
        self._tried: list[tuple[float, Power]] = []

    def add(self, power: Power) -> None:
        """Take the power of the size that was next, and choose another one, or end."""
        self._tried.append((self.next, power))
        low, high = self._bracket()
        if low is None or high is None:
            size = min(self.next * _STEP, self.error.most)
            if low is None:
                size = max(self.next / _STEP, _SMALLEST * self.error.start)
            self.is_done = size == self.next
            self.next = size
            return
        inside = sum(low[0] < size < high[0] for size, _ in self._tried)
        self.is_done = (
            len(self._near()) >= _ENOUGH or self._jumps(low, high) or inside >= _MOST
        )  # fmt: skip
        if not self.is_done:
            self.next = self._between(low, high)

    def result(self, judge: str) -> Detectable:
        """Return what was found."""
        points = tuple(sorted(Point(size, one.share) for size, one in self._tried))
        low, high = self._bracket()
        if low is None or high is None:
            return Detectable(judge, self.error, None, None, None, points)
        near = self._near()
        if self._jumps(low, high) or len(near) < _ENOUGH:
            jump = low[1].share, high[1].share
            return Detectable(judge, self.error, high[0], low[0], high[0], points, jump)
        centre, spread = self._fit(low[0], high[0])
        # Two parameters were fitted, to a few sizes.
        degrees = min(near[0].degrees, len(self._beside(low[0], high[0])) - 2)
        half = float(stdtrit(degrees, 0.975)) * spread
        ends = [math.exp(centre + sign * half) for sign in (0.0, -1.0, 1.0)]
        return Detectable(judge, self.error, ends[0], ends[1], ends[2], points)

    def _near(self) -> list[Power]:
        return [one for _, one in self._tried if self._is_near(one)]

    def _bracket(self) -> tuple[tuple[float, Power] | None, tuple[float, Power] | None]:
        """Return the smallest size that is seen, and the largest below it that is not."""
        seen = [one for one in self._tried if one[1].share >= self._wanted]
        high = min(seen, default=None)
        below = [one for one in self._tried if high is None or one[0] < high[0]]
        return max(below, default=None), high

    def _jumps(self, low: tuple[float, Power], high: tuple[float, Power]) -> bool:
        apart = min(self._wanted - low[1].share, high[1].share - self._wanted) > _NEAR
        by_chance = _SURE * math.hypot(low[1].error, high[1].error)
        beyond = high[1].share - low[1].share > by_chance
        return apart and beyond and high[0] / low[0] <= _STEEP

    def _between(self, low: tuple[float, Power], high: tuple[float, Power]) -> float:
        """Return the size that the curve says, kept from the ends unless they are near."""
        width = math.log(high[0] / low[0])
        centre, _ = self._fit(low[0], high[0])
        share = (centre - math.log(low[0])) / width
        ends = [
            side * (_OUTSIDE / width if self._is_near(one[1]) else -_MARGIN)
            for side, one in ((-1.0, low), (1.0, high))
        ]
        return low[0] * math.exp(width * min(max(share, ends[0]), 1.0 + ends[1]))

    def _is_near(self, one: Power) -> bool:
        return abs(one.share - self._wanted) <= _NEAR

    def _beside(self, low: float, high: float) -> list[tuple[float, ...]]:
        return [(s, *one) for s, one in self._tried if low / 2.0 <= s <= 2.0 * high]

    def _fit(self, low: float, high: float) -> tuple[float, float]:
        """Return the logarithm of the size with the wanted power, and its standard error."""
        sizes, shares, errors, _ = np.array(self._beside(low, high)).T
        shares = np.clip(shares, _LEAST_SHARE, 1.0 - _LEAST_SHARE)
        wanted, probit = float(ndtri(self._wanted)), ndtri(shares)
        density = np.exp(-np.square(probit) / 2.0) / math.sqrt(2.0 * math.pi)
        # A probit is known the better the less extreme it is, and the curve is straight nearby.
        mass = np.square(density) / (shares * (1.0 - shares))
        mass *= np.exp(-np.square(probit - wanted) / 2.0)
        mass /= mass.sum()
        at = np.log(sizes)
        x, y = float(mass @ at), float(mass @ probit)
        scatter = max(float(mass @ np.square(at - x)), 1e-12)
        slope = max(float(mass @ ((at - x) * (probit - y))) / scatter, _LEAST_SLOPE)
        centre = x + (wanted - y) / slope
        part = np.abs(mass * (1.0 + (centre - x) * (at - x) / scatter) * errors / density)
        # What the same runs leave open does not average out.
        spread = part.sum() if self._same_runs else math.sqrt(np.square(part).sum())
        return centre, float(spread) / slope
