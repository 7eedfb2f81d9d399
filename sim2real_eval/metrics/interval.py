# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Interval for the distance between two sets of runs; scored runs, and draws of their motions.

The interval is for the distance between the random processes of which the runs are samples.
Quantiles of resampled distances are not a valid interval, because a distance is never below zero
and sampling increases it. The interval therefore inverts a test: it contains every true distance
under which the observed distance is not improbable. At zero this is the permutation test, which is
exact, so the interval excludes zero exactly if that test is significant. To simulate another true
distance, the motions are resampled after the runs are moved: along the optimal transport between
the sets for a smaller one (R. J. McCann, Adv. Math. 128, 1997), by a shift for a larger one. The
test changes from one-sided at zero to two-sided far from it, as in G. J. Feldman and R. D.
Cousins, Phys. Rev. D 57, 1998.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from sim_sensors.core.blocks import row_blocks
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.seeding import stream
from . import mean_wasserstein

if TYPE_CHECKING:
    from .scores import RunScore


@dataclasses.dataclass(frozen=True, eq=False)
class ScoredRuns:
    """Scores of real runs, or of the runs of one model.

    Attributes
    ----------
    values : (n, k) float
        Coordinates of each run in which distances are computed: RMSE [m/s] and entropy difference
        for VEPD.
    motion : tuple of str
        Motion of each run. Runs of different sources with the same motion are paired.
    scenario : tuple of str
        Stratum of each run.
    block : tuple of str, optional
        Name of the group of dependent runs, such as a drive, a day or a receiver; empty for an
        independent run. Motions of a block are drawn together.
    again : (n, k) float, optional
        Values of the same runs judged again, for a judge that is not deterministic.
    """

    values: FloatArray
    motion: tuple[str, ...]
    scenario: tuple[str, ...]
    block: tuple[str, ...] = ()
    again: FloatArray | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Motion of each run with its scenario, as two scenarios may use the same motion name."""
        return units_of(self.motion, self.scenario)

    @property
    def units(self) -> tuple[str, ...]:
        """Resampling unit of each run: its block, or else its motion."""
        return units_of(self.motion, self.scenario, self.block)

    @classmethod
    def of_scores(
        cls, scores: Sequence[RunScore], motion: Sequence[str], scenario: Sequence[str]
    ) -> ScoredRuns:
        """Return the coordinates of VEPD (RMSE and entropy difference) of scored runs."""
        values = [(score.rmse, score.entropy_difference) for score in scores]
        return cls(np.array(values).reshape(len(values), 2), tuple(motion), tuple(scenario))

    def of_scenario(self, scenario: str) -> ScoredRuns:
        """Return the runs of one scenario."""
        chosen = [i for i, name in enumerate(self.scenario) if name == scenario]
        return ScoredRuns(
            self.values[chosen],
            tuple(self.motion[i] for i in chosen),
            tuple(self.scenario[i] for i in chosen),
            tuple(self.block[i] for i in chosen) if self.block else (),
            None if self.again is None else self.again[chosen],
        )

    def __len__(self) -> int:
        return len(self.values)


@dataclasses.dataclass(frozen=True)
class Freedom:
    """Degrees of freedom of a resampled spread, and its small-sample correction.

    The spread of resamples of n motions in s strata, each with its own mean, is too small by the
    factor sqrt((n - s) / n); `inflation` corrects it. `degrees` are the degrees of freedom of the
    estimated spread.
    """

    inflation: float
    degrees: float

    @classmethod
    def from_sides(cls, sides: Iterable[tuple[int, int]]) -> Freedom:
        """Return the freedom of independent sides, each with its numbers of motions and strata.

        The degrees of freedom are 0 if a side has as many strata as motions. Two sides are
        combined as in Welch's test with equal variances (B. L. Welch, Biometrika 34, 1947).
        """
        sides = list(sides)
        if any(motions <= strata for motions, strata in sides):
            return cls(1.0, 0.0)
        resampled_variance = sum(1.0 / motions for motions, _ in sides)
        unbiased_variance = sum(1.0 / (motions - strata) for motions, strata in sides)
        degrees = resampled_variance**2 / sum(1.0 / (n**2 * (n - strata)) for n, strata in sides)
        return cls(float(np.sqrt(unbiased_variance / resampled_variance)), degrees)

    def widening(self, level: float) -> float:
        """Return the factor that widens quantiles of resamples from normal to Student."""
        upper = 0.5 + level / 2.0
        student = special.stdtrit(self.degrees, upper)
        return self.inflation * float(student / special.ndtri(upper))


def units_of(
    motion: Sequence[str], scenario: Sequence[str], block: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the resampling unit of each run: its block, or else its motion."""
    return tuple(
        f'block\x00{block_name}' if block_name else f'{scenario_name}\x00{motion_name}'
        for scenario_name, motion_name, block_name in zip(
            scenario, motion, block or ('',) * len(motion), strict=True
        )
    )


@dataclasses.dataclass(frozen=True, eq=False)
class MotionDraws:
    """Resamples of the motions: how often each motion is drawn, and its stratum."""

    counts: NDArray[np.uint8]
    """Draws of each motion, `(p, motions)`; a resample has far fewer than 256 of one motion."""
    columns: Mapping[str, int]
    """Column of each motion."""
    strata: Mapping[str, str]
    units: Mapping[str, str]
    """Motion or block that is drawn, of each motion."""
    real: frozenset[str]
    """Motions of real runs; those of other runs were drawn separately."""

    @classmethod
    def draw_motions(
        cls, real: ScoredRuns, sims: Iterable[ScoredRuns], draws: int, seed: int
    ) -> MotionDraws:
        """Draw as many motions, or blocks of motions, as there are, within each scenario.

        A scenario with a single motion or block would never change. All scenarios are then
        resampled as one. The same applies if a block contains motions of several scenarios.
        """
        of_real = dict(zip(real.names, real.scenario, strict=True))
        units = dict(zip(real.names, real.units, strict=True))
        simulated_only: dict[str, str] = {}
        for runs in sims:
            for name, scenario, unit in zip(runs.names, runs.scenario, runs.units, strict=True):
                if name not in of_real:
                    simulated_only.setdefault(name, scenario)
                    units.setdefault(name, unit)
        columns = {name: k for k, name in enumerate([*of_real, *simulated_only])}
        counts = np.empty((draws, len(columns)), dtype=np.uint8)
        strata: dict[str, str] = {}
        for side, motions in (('real', of_real), ('simulated', simulated_only)):
            members: dict[str, dict[str, list[str]]] = {}
            for name, scenario in motions.items():
                members.setdefault(scenario, {}).setdefault(units[name], []).append(name)
            unit_count = len({units[name] for name in motions})
            sizes = [len(units_of_stratum) for units_of_stratum in members.values()]
            if min(sizes, default=0) < 2 or unit_count < sum(sizes):
                by_unit: dict[str, list[str]] = {}
                for name in motions:
                    by_unit.setdefault(units[name], []).append(name)
                members = {'': by_unit} if motions else {}
            for stratum, motions_by_unit in members.items():
                rng = stream(seed, 'uncertainty', f'motions {side}', stratum)
                n = len(motions_by_unit)
                drawn_units = enumerate(motions_by_unit.values())
                unit_of = {name: k for k, names in drawn_units for name in names}
                chosen = [columns[name] for name in unit_of]
                strata |= dict.fromkeys(unit_of, f'{side} {stratum}')
                for rows in row_blocks(draws, n):
                    size = rows.stop - rows.start
                    drawn = rng.multinomial(n, np.full(n, 1.0 / n), size=size)
                    counts[rows, chosen] = drawn[:, [*unit_of.values()]]
        return cls(counts, columns, strata, units, frozenset(of_real))

    def weights(
        self, real: ScoredRuns, simulated: ScoredRuns, most: int | None = None
    ) -> Iterator[tuple[slice, FloatArray]]:
        """Yield rows of resamples with the weights `(rows, runs)` of real and simulated runs.

        Those of real runs come first and add up to 1, those of simulated runs to -1. Only the
        first `most` resamples are used. The weights of all resamples of 10,000 motions would take
        gigabytes.
        """
        sides = [[self.columns[name] for name in runs.names] for runs in (real, simulated)]
        for rows in row_blocks(most or len(self.counts), len(real) + len(simulated)):
            real_weights, weights = (self._weights(rows, columns) for columns in sides)
            yield rows, np.concatenate([real_weights, -weights], axis=1)

    def _weights(self, rows: slice, columns: list[int]) -> FloatArray:
        counts = np.take(self.counts[rows], columns, axis=1).astype(np.float64)
        total = counts.sum(axis=1, keepdims=True)
        # A resample may contain no motion of a model whose runs mostly failed.
        return np.where(total > 0.0, counts / np.maximum(total, 1.0), 1.0 / len(columns))

    def freedom(self, *sets: ScoredRuns) -> Freedom:
        """Return the freedom of a statistic that uses all of these sets of runs."""
        sides: dict[bool, dict[str, str]] = {}
        for runs in sets:
            for name in runs.names:
                side = sides.setdefault(name in self.real, {})
                side[self.units[name]] = self.strata[name]
        return Freedom.from_sides((len(side), len(set(side.values()))) for side in sides.values())


# The interval is too narrow for skewed or heavy-tailed runs: the rare large runs decide the mean
# and are seldom recorded. Beyond these limits the 95 % interval may cover less than 93 %
# (`benchmarks/interval_coverage.py`). One in 12 studies of 10 normal runs a side exceeds a limit.
_SKEWNESS, _KURTOSIS = 0.6, 1.0
# Smallest and largest coverage of the 95 % interval in %, with 10 and 30 runs a side: for skewed
# distributions, with independent or correlated coordinates; for symmetric ones with heavy tails.
_COVERAGE_SKEWED, _COVERAGE_HEAVY = (88, 97), (92, 99)


class Tails(NamedTuple):
    """Mean absolute skewness of the coordinates, and their largest excess kurtosis."""

    skewness: float
    kurtosis: float

    @property
    def heavy(self) -> bool:
        """Whether the interval may be too narrow."""
        return self.skewness > _SKEWNESS or self.kurtosis > _KURTOSIS

    @property
    def coverage(self) -> tuple[int, int]:
        """Smallest and largest coverage of the 95 % interval in studies of such runs, %."""
        return _COVERAGE_SKEWED if self.skewness > _SKEWNESS else _COVERAGE_HEAVY


def tails_of(real: ScoredRuns, simulated: ScoredRuns) -> Tails:
    """Return the tails of the runs of both sides, each standardised to mean 0 and deviation 1.

    Examples
    --------
    >>> names, rng = tuple('abcdefghij'), np.random.default_rng(1)
    >>> def runs(values):
    ...     return ScoredRuns(values, names, ('',) * 10)
    >>> normal, skewed = rng.normal(size=(2, 10, 2)), rng.lognormal(0.0, 0.9, (2, 10, 2))
    >>> tails_of(*map(runs, normal)).heavy, tails_of(*map(runs, skewed)).heavy
    (False, True)

    Tails in opposite directions do not cancel:

    >>> tails_of(*map(runs, skewed * [1.0, -1.0])).heavy
    True
    """
    parts = []
    for runs in (real, simulated):
        away = runs.values - runs.values.mean(axis=0)
        spread = away.std(axis=0)
        parts.append(away / np.where(spread > 0.0, spread, np.inf))
    both = np.concatenate(parts)
    # 0 where all runs are equal.
    variance = np.mean(both**2, axis=0)
    variance[variance == 0.0] = 1.0
    skewness = np.mean(both**3, axis=0) / variance**1.5
    kurtosis = np.mean(both**4, axis=0) / variance**2 - 3.0
    return Tails(float(np.abs(skewness).mean()), float(kurtosis.max()))


_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
_SHIFTS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
_STEPS = np.array([-6.0, -4.0, -3.0, -2.5, -2.0, -1.5, -1.0, -0.5, 0.0, 0.5, *_SHIFTS[1:]])
_MAX_SHRINKAGE = 3.0
_NEAR_ZERO = 2.0  # standard errors from zero, below which the test is not yet two-sided


def bounds(
    real: FloatArray,
    simulated: FloatArray,
    weights: Callable[[], Iterator[tuple[slice, FloatArray]]],
    *,
    level: float,
    freedom: Freedom,
    linear: FloatArray,
    nulls: Sequence[float],
    observed: float,
    critical: float,
) -> tuple[float, float, float]:
    """Return a median-unbiased estimate of the true distance and the ends of its interval.

    The distance is the mean of the Wasserstein distances of the coordinates. `weights` returns
    the weights of the runs in every resample, as `MotionDraws.weights` does; `linear` is the
    distance to first order in the same or other resamples. `nulls` are the median distances of
    each coordinate over permutations. `observed` is the distance between the runs, and `critical`
    the one above which the permutation test is significant (`critical_distance`).
    """
    coordinates = [
        _ResampledCoordinate.from_values(x, y, weights, null)
        for x, y, null in zip(real.T, simulated.T, nulls, strict=True)
    ]
    # Each coordinate gets its own estimate, so that the bias of one does not affect others.
    likely = np.array([coordinate.likely() for coordinate in coordinates])
    error = np.array([coordinate.error for coordinate in coordinates])
    grid = np.maximum(likely + _STEPS[:, None] * error, 0.0)
    grid = np.concatenate([np.zeros((1, len(coordinates))), grid])
    grid = grid[np.append(True, np.diff(grid.mean(axis=1)) > 0.0)]
    drawn = np.mean([c.at(grid[:, k]) for k, c in enumerate(coordinates)], axis=0)
    distance = grid.mean(axis=1)
    centre = drawn.mean(axis=1, keepdims=True)
    factor = freedom.widening(level) * skewed_spread(linear, distance - observed, freedom)
    widened = centre + factor[:, None] * (drawn - centre)
    scale = float(widened[-1].std())
    tail = (1.0 - level) / 2.0
    lower_tail = (
        tail * np.clip(distance / (_NEAR_ZERO * scale), 0.0, 1.0) if scale else tail + 0 * distance
    )
    rows = list(zip(widened, lower_tail, strict=True))
    highest = np.array([_quantile(row, 1.0 - 2.0 * tail + part) for row, part in rows])
    highest[0] = critical
    lowest = np.array([_quantile(row, part) for row, part in rows])
    low = _crossing(observed, highest, distance)
    high = max(_crossing(observed, lowest, distance), low)
    likely_distance = _crossing(observed, np.median(drawn, axis=1), distance)
    return float(np.clip(likely_distance, low, high)), low, high


def _quantile(drawn: FloatArray, share: float) -> float:
    """Return the quantile of a small sample by the Weibull plotting position."""
    return float(np.quantile(drawn, share, method='weibull'))


def skewed_spread(linear: FloatArray, away: FloatArray, freedom: Freedom) -> FloatArray:
    """Return the relative spread at true distances that differ by `away` from the observed one.

    For skewed runs, the estimated variance is correlated with the distance: the covariance of the
    two is the third cumulant of the distance. The recorded runs spread too little if the true
    distance is on the side of the long tail (P. Hall, J. R. Stat. Soc. B 54, 1992). The spread is
    not reduced on the other side.
    """
    deviation = float(linear.std())
    if deviation == 0.0:
        return np.ones(len(away))
    scaled = (linear - linear.mean()) / deviation
    n = freedom.degrees + 1.0
    skewness = float(np.mean(scaled**3)) * np.sqrt(n * (n - 1.0)) / (n - 2.0)
    return np.asarray(np.sqrt(np.maximum(1.0 + skewness * away / deviation, 1.0)))


def _crossing(observed: float, curve: FloatArray, distance: FloatArray) -> float:
    """Return the smallest true distance at which a curve of quantiles reaches the observed one."""
    k = int(np.argmax(np.append(curve, np.inf) >= observed))
    if k == 0 or k == len(curve):
        return float(distance[min(k, len(distance) - 1)])
    part = (observed - curve[k - 1]) / (curve[k] - curve[k - 1])
    return float(distance[k - 1] + part * (distance[k] - distance[k - 1]))


@dataclasses.dataclass(frozen=True, eq=False)
class _ResampledCoordinate:
    """Resampled distances of one coordinate for increasing true distances (levels)."""

    observed: float
    """Distance between the original runs."""
    error: float
    """Standard error of the difference of the means."""
    distance: FloatArray  # (levels,)
    resampled: FloatArray  # (levels, p)

    @classmethod
    def from_values(
        cls,
        x: FloatArray,
        y: FloatArray,
        weights: Callable[[], Iterator[tuple[slice, FloatArray]]],
        null: float,
    ) -> _ResampledCoordinate:
        parts = _TransportPlan.from_values(x, y)
        gap = y[parts.j] - x[parts.i]
        observed = float(parts.mass @ np.abs(gap))
        both = np.concatenate([x, y])
        error = float(np.concatenate([part @ both for _, part in weights()]).std())
        direction = 1.0 if parts.mass @ gap >= 0.0 else -1.0
        distance, positions = [], []
        for share in _SHARES:
            half = (1.0 - share) / 2.0 * gap
            distance.append(share * observed)
            positions.append((x[parts.i] + half, y[parts.j] - half))
        for shift in _SHIFTS:
            moved = y[parts.j] + direction * shift * error
            distance.append(float(parts.mass @ np.abs(moved - x[parts.i])))
            positions.append((x[parts.i], moved))
        levels = np.array(distance)
        drawn = np.concatenate(
            [
                np.stack([parts.distances(*moved_runs, part) for moved_runs in positions])
                for _, part in weights()
            ],
            axis=1,
        )
        # Runs moved onto each other rank by rank are closer than two samples of one process. The
        # permutations give the distance of two such samples.
        moved_null = float(np.median(drawn[0]))
        if moved_null > 0.0 and error > 0.0:
            excess = np.clip(null / moved_null, 1.0, _MAX_SHRINKAGE) - 1.0
            near = np.clip(1.0 - levels / (_NEAR_ZERO * error), 0.0, 1.0)
            drawn += (excess * near)[:, None] * np.maximum(drawn - levels[:, None], 0.0)
        return cls(observed, error, levels, drawn)

    def likely(self) -> float:
        """Return the true distance under which the observed distance is the median."""
        return _crossing(self.observed, np.median(self.resampled, axis=1), self.distance)

    def at(self, distances: FloatArray) -> FloatArray:
        """Return the resampled distances, `(m, p)`, interpolated at true `distances` `(m,)`."""
        interpolated = np.empty((len(distances), self.resampled.shape[1]))
        last = len(self.distance) - 2
        for row, distance in zip(interpolated, distances, strict=True):
            k = int(np.clip(np.searchsorted(self.distance, distance, side='right') - 1, 0, last))
            span = self.distance[k + 1] - self.distance[k]
            part = min((distance - self.distance[k]) / span, 1.0) if span > 0.0 else 0.0
            row[:] = (1.0 - part) * self.resampled[k] + part * self.resampled[k + 1]
        return interpolated


@dataclasses.dataclass(frozen=True, eq=False)
class _TransportPlan:
    """Optimal transport between two sets of runs in one dimension, rank by rank."""

    i: np.ndarray  # run of either side, `x` and `y`, of each part, (parts,)
    j: np.ndarray
    mass: FloatArray  # summing up to 1, (parts,)

    @classmethod
    def from_values(cls, x: FloatArray, y: FloatArray) -> _TransportPlan:
        n, m = len(x), len(y)
        # In units of 1 / (n m), where all ends are whole numbers.
        ends = np.union1d(np.arange(n + 1) * m, np.arange(m + 1) * n)
        return cls(
            np.argsort(x, kind='stable')[ends[:-1] // m],
            np.argsort(y, kind='stable')[ends[:-1] // n],
            np.diff(ends) / (n * m),
        )

    def distances(self, x: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
        """Return W1 between the parts at `x` and at `y` for all weights of the runs, `(p,)`.

        Weights are negative for the runs at `y`, which follow those at `x`.
        """
        n, m = self.i.max() + 1, self.j.max() + 1
        owners = np.concatenate([self.i, n + self.j])
        masses = np.concatenate([n * self.mass, m * self.mass])
        positions = np.concatenate([x, y])
        if n + m > mean_wasserstein.MAX_IN_PRODUCT:
            return mean_wasserstein.integrals(
                weights, positions, owners, masses, np.zeros(len(owners))
            )
        points = np.unique(positions)
        share = np.zeros((n + m, len(points) - 1))
        np.add.at(share, owners, (positions[:, None] <= points[:-1]) * masses[:, None])
        gaps = weights @ share
        return np.asarray(np.abs(gaps, out=gaps) @ np.diff(points))
