# SPDX-License-Identifier: Apache-2.0
"""Bootstrap resampling of motions, the same for the real runs and for every model.

Another study would have recorded other motions, so whole motions are resampled together with all
runs that follow them. Runs that are paired by a motion stay paired in every resample.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.seeding import stream

if TYPE_CHECKING:
    from sim2real_eval.metrics.scores import RunScore


@dataclasses.dataclass(frozen=True, eq=False)
class ScoredRuns:
    """Scores of real runs, or of the runs of one model.

    Attributes
    ----------
    values : (n, k) float
        Coordinates of each run between which distances are taken: RMSE [m/s] and entropy
        difference for VEPD.
    motion : tuple of str
        Motion of each run. Runs of different sources with the same motion are paired.
    scenario : tuple of str
        Stratum of each run.
    block : tuple of str, optional
        Reason why runs depend on each other, such as the drive, the day or the receiver; empty
        for an independent run. Motions of a block are drawn together.
    again : (n, k) float, optional
        Values of the same runs judged once more, by a judge that may give others.
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

    The spread of resamples of n motions is too small by sqrt((n - 1) / n); each stratum has its
    own mean. The factor `inflation` corrects it. `degrees` are the degrees of freedom of the
    estimated spread.
    """

    inflation: float
    degrees: float

    @classmethod
    def of(cls, sides: Iterable[tuple[int, int]]) -> Freedom:
        """Take motions and strata of each independent side; no freedom where a side has none.

        Two sides as in Welch's test, with alike variances (B. L. Welch, Biometrika 34, 1947).
        """
        sides = list(sides)
        if any(motions <= strata for motions, strata in sides):
            return cls(1.0, 0.0)
        resampled_variance = sum(1.0 / motions for motions, _ in sides)
        unbiased_variance = sum(1.0 / (motions - strata) for motions, strata in sides)
        degrees = resampled_variance**2 / sum(1.0 / (n**2 * (n - strata)) for n, strata in sides)
        return cls(float(np.sqrt(unbiased_variance / resampled_variance)), degrees)

    def widening(self, level: float) -> float:
        """Return the factor that widens quantiles of resamples: Student against normal."""
        # Importing takes 0.1 s, which programs that only show results should not spend.
        from scipy import special

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
    """How often each motion was drawn, `(p,)`, and the stratum inside which it was."""

    counts: Mapping[str, FloatArray]
    strata: Mapping[str, str]
    units: Mapping[str, str]
    """Motion or block that is drawn, of each motion."""
    real: frozenset[str]
    """Motions that real runs follow; the others were drawn apart."""

    @classmethod
    def of(
        cls, real: ScoredRuns, sims: Iterable[ScoredRuns], draws: int, seed: int
    ) -> MotionDraws:
        """Draw as many motions as there are, or blocks of them, scenario by scenario.

        A scenario with one of them would never change: then all scenarios are drawn as one, and
        so are blocks that reach over scenarios.
        """
        of_real = dict(zip(real.names, real.scenario, strict=True))
        units = dict(zip(real.names, real.units, strict=True))
        simulated_only: dict[str, str] = {}
        for runs in sims:
            for name, scenario, unit in zip(runs.names, runs.scenario, runs.units, strict=True):
                if name not in of_real:
                    simulated_only.setdefault(name, scenario)
                    units.setdefault(name, unit)
        counts: dict[str, FloatArray] = {}
        strata: dict[str, str] = {}
        for side, motions in (('real', of_real), ('simulated', simulated_only)):
            members: dict[str, dict[str, list[str]]] = {}
            for name, scenario in motions.items():
                members.setdefault(scenario, {}).setdefault(units[name], []).append(name)
            whole = len({units[name] for name in motions})
            sizes = [len(units_of_stratum) for units_of_stratum in members.values()]
            if min(sizes, default=0) < 2 or whole < sum(sizes):
                together: dict[str, list[str]] = {}
                for name in motions:
                    together.setdefault(units[name], []).append(name)
                members = {'': together} if motions else {}
            for stratum, motions_by_unit in members.items():
                rng = stream(seed, 'uncertainty', f'motions {side}', stratum)
                n = len(motions_by_unit)
                drawn = rng.multinomial(n, np.full(n, 1.0 / n), size=draws).astype(np.float64)
                for k, names in enumerate(motions_by_unit.values()):
                    for name in names:
                        counts[name] = drawn[:, k]
                        strata[name] = f'{side} {stratum}'
        return cls(counts, strata, units, frozenset(of_real))

    def weights(self, runs: ScoredRuns) -> FloatArray:
        """Return the weight of each run in each resample, `(p, n)`, summing up to 1."""
        counts = np.stack([self.counts[name] for name in runs.names], axis=1)
        total = counts.sum(axis=1, keepdims=True)
        # A resample may hold none of the motions of a model whose runs mostly failed.
        return np.where(total > 0.0, counts / np.maximum(total, 1.0), 1.0 / len(runs))

    def freedom(self, *sets: ScoredRuns) -> Freedom:
        """Return the freedom of a statistic that uses all of these sets of runs."""
        together: dict[bool, dict[str, str]] = {}
        for runs in sets:
            for name in runs.names:
                of_side = together.setdefault(name in self.real, {})
                of_side[self.units[name]] = self.strata[name]
        return Freedom.of((len(side), len(set(side.values()))) for side in together.values())


# The interval is too narrow for skewed or heavy-tailed runs: the rare large runs decide the mean
# and are seldom recorded. Beyond these limits the 95 % interval covers less than 93 %
# (`benchmarks/interval_coverage.py`). One in 12 studies of 10 normal runs a side exceeds a limit.
_SKEWNESS, _KURTOSIS = 0.6, 1.0


class Tails(NamedTuple):
    """Mean size of the skewness of the coordinates, and their largest excess kurtosis."""

    skewness: float
    kurtosis: float

    @property
    def heavy(self) -> bool:
        """Whether the interval may be too narrow."""
        return self.skewness > _SKEWNESS or self.kurtosis > _KURTOSIS


def tails_of(real: ScoredRuns, simulated: ScoredRuns) -> Tails:
    """Return the shape of the runs, both sides brought to mean 0 and deviation 1.

    Examples
    --------
    >>> names, rng = tuple('abcdefghij'), np.random.default_rng(1)
    >>> def runs(values):
    ...     return ScoredRuns(values, names, ('',) * 10)
    >>> normal, skewed = rng.normal(size=(2, 10, 2)), rng.lognormal(0.0, 0.9, (2, 10, 2))
    >>> tails_of(*map(runs, normal)).heavy, tails_of(*map(runs, skewed)).heavy
    (False, True)

    Tails to opposite sides count as much:

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
