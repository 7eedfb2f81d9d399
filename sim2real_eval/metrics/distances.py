# SPDX-License-Identifier: Apache-2.0
"""VEPD: distance between the error signatures of two sets of runs, and the table over models."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sim2real_eval.common.findings import Finding
from sim2real_eval.common.tables import Field
from sim_sensors.core.measurements import FloatArray
from .findings import MIXTURES_DIFFER
from .options import MetricError
from .scores import RunScore

POOLED = 'all'
VEPD_COLUMNS = ('model', 'scenario', 'n_real', 'n_sim', 'w_rmse', 'w_entropy', 'vepd', 'rank')


@dataclasses.dataclass(frozen=True)
class Vepd:
    """Distance between two sets of runs.

    Attributes
    ----------
    n_real, n_sim : int
        Runs in the two sets.
    w_rmse : float
        First Wasserstein distance between the RMSE values, m/s.
    w_entropy : float
        First Wasserstein distance between the entropy differences, dimensionless.
    vepd : float
        Mean of the two numbers (the paper adds a speed to a pure number).
    """

    n_real: int
    n_sim: int
    w_rmse: float
    w_entropy: float
    vepd: float


@dataclasses.dataclass(frozen=True)
class VepdRow(Vepd):
    """One row of vepd.csv: a `Vepd` with its labels."""

    # Labels; scenario `all` is all scenarios pooled
    model: str
    scenario: str
    # 1 is the smallest VEPD among the models of the scenario; equal values share the average of
    # their ranks, hence a float
    rank: float

    def fields(self) -> tuple[Field, ...]:
        """Return the fields in the order of `VEPD_COLUMNS`; a whole rank as an integer."""
        rank = int(self.rank) if self.rank.is_integer() else self.rank
        return (*(getattr(self, name) for name in VEPD_COLUMNS[:-1]), rank)


def vepd(real_scores: Sequence[RunScore], sim_scores: Sequence[RunScore]) -> Vepd:
    """Return the VEPD of a set of simulated runs against a set of real ones.

    VEPD = (W1 + W2) / 2, W1 between the two sets of RMSE and W2 between the two sets of entropy
    differences. Source: [Mahajan2024], section II-E.

    Raises
    ------
    MetricError
        When a set is empty.

    Examples
    --------
    >>> score = RunScore(0.1, 0.2, 0.3, 0.1, 300, 20.0)
    >>> vepd([score], [score]).vepd
    0.0
    """
    for name, scores in (('real', real_scores), ('simulated', sim_scores)):
        if not scores:
            raise MetricError(f'no {name} run; VEPD needs at least one real and one simulated')
    w_rmse, w_entropy = (
        wasserstein(
            [getattr(score, name) for score in sim_scores],
            [getattr(score, name) for score in real_scores],
        )
        for name in ('rmse', 'entropy_difference')
    )
    return Vepd(len(real_scores), len(sim_scores), w_rmse, w_entropy, (w_rmse + w_entropy) / 2)


# The two below as scipy.stats has them, whose import alone takes longer than most studies need
# for all their statistics.


def wasserstein(first: ArrayLike, second: ArrayLike) -> float:
    """Return W1 between two sets of numbers, (n,) and (m,): the integral of |F - G|.

    Examples
    --------
    >>> wasserstein([0.0, 1.0], [1.0, 2.0])
    1.0
    """
    first_sorted, second_sorted = np.sort(first), np.sort(second)
    points = np.sort(np.concatenate([first_sorted, second_sorted]))
    shares = [
        np.searchsorted(side, points[:-1], 'right') / len(side)
        for side in (first_sorted, second_sorted)
    ]
    return float(np.abs(shares[0] - shares[1]) @ np.diff(points))


def ranks(values: ArrayLike) -> FloatArray:
    """Return the rank of each value (n, ...) among the n, from 1; equal ones share the mean rank.

    NaN has the rank NaN and does not count.

    Examples
    --------
    >>> ranks([0.3, 0.1, 0.3]).tolist()
    [2.5, 1.0, 2.5]
    """
    numbers = np.asarray(values, dtype=np.float64)
    ranking = np.empty(numbers.shape)
    for place, number in enumerate(numbers):
        ranking[place] = (numbers < number).sum(axis=0) + (
            (numbers == number).sum(axis=0) + 1
        ) / 2.0
    return np.where(np.isnan(numbers), np.nan, ranking)


def vepd_table(
    real: Mapping[str, Sequence[RunScore]], sim: Mapping[str, Mapping[str, Sequence[RunScore]]]
) -> list[VepdRow]:
    """Return the VEPD of every model per scenario, then pooled over all scenarios.

    `real` are scores of the real runs by scenario, `sim` those of the simulated ones by model and
    scenario. Scenarios come in the order of `real` and `all` last, inside them the models in the
    order of `sim`. A row is made where both sides have runs; `all` pools every run of either side,
    see `coverage_notes`. Nothing to compare, or a scenario that is called `all`, is a MetricError.
    """
    scenarios = [*real, *(name for model in sim.values() for name in model)]
    if POOLED in scenarios:
        raise MetricError(f'scenario name {POOLED!r} is taken by the pooled row; rename it')
    rows: list[VepdRow] = []
    for scenario, scores in real.items():
        runs_by_model = {model: runs.get(scenario, ()) for model, runs in sim.items()}
        rows += _ranked(scenario, scores, runs_by_model)
    rows += _ranked(POOLED, _pooled(real), {model: _pooled(runs) for model, runs in sim.items()})
    if not rows:
        raise MetricError('no runs to compare; need at least one real and one simulated run')
    return rows


def _pooled(runs: Mapping[str, Sequence[RunScore]]) -> list[RunScore]:
    return [score for scores in runs.values() for score in scores]


def _ranked(
    scenario: str, real: Sequence[RunScore], sim: Mapping[str, Sequence[RunScore]]
) -> list[VepdRow]:
    if not real:
        return []
    results = {model: vepd(real, scores) for model, scores in sim.items() if scores}
    # Ranks come from the unrounded values; pandas' rank, which the paper uses, averages ties too.
    ranking = ranks([result.vepd for result in results.values()])
    return [
        VepdRow(**dataclasses.asdict(result), model=model, scenario=scenario, rank=float(rank))
        for (model, result), rank in zip(results.items(), ranking, strict=True)
    ]


def coverage_notes(
    real: Mapping[str, Sequence[RunScore]], sim: Mapping[str, Mapping[str, Sequence[RunScore]]]
) -> list[Finding]:
    """Say where the sets do not cover the same scenarios in the same proportions.

    The pooled row then compares different mixtures of scenarios, and its ranks compare models that
    did different things.
    """
    n_real = {scenario: len(scores) for scenario, scores in real.items() if scores}
    notes: list[Finding] = []
    for model, runs in sim.items():
        n_sim = {scenario: len(scores) for scenario, scores in runs.items() if scores}
        total_real, total_sim = sum(n_real.values()), sum(n_sim.values())
        counts = {name: (n_real.get(name, 0), n_sim.get(name, 0)) for name in {**n_real, **n_sim}}
        uneven = [
            f'{name} {of_real} real, {of_sim} simulated'
            for name, (of_real, of_sim) in counts.items()
            if of_real * total_sim != of_sim * total_real
        ]
        if uneven:
            notes.append(MIXTURES_DIFFER(model, runs='; '.join(uneven)))
    return notes


# Energy distance between two sets of points: zero only where the two distributions are one.
#
# The Wasserstein distances of VEPD look at RMSE and entropy difference one by one; two sets can
# agree in both and yet differ in which run has which. The energy distance sees the points as they
# are [Szekely2013].


@dataclasses.dataclass(frozen=True, eq=False)
class EnergyDistance:
    """Energy distance for many ways to divide the same runs into two sets.

    sqrt(2 E|X - Y| - E|X - X'| - E|Y - Y'|), as `scipy.stats.energy_distance` has it in one
    dimension. Like that one it counts each point against itself, so it is not free of the sizes of
    the sets. `apart` `(runs, runs)` is the Euclidean distance of any two runs.
    """

    apart: FloatArray

    @classmethod
    def of(cls, values: FloatArray, scale: FloatArray | None = None) -> EnergyDistance:
        """Prepare the distance from the values `(runs, coordinates)` of all runs.

        Each coordinate is divided by its `scale` (coordinates,); one with scale 0 does not count.
        """
        if scale is not None:
            values = values[:, scale > 0.0] / scale[scale > 0.0]
        steps = values[:, None, :] - values[None, :, :]
        return cls(np.sqrt(np.sum(steps**2, axis=2)))

    def between(self, first: NDArray[np.bool_]) -> FloatArray:
        """Return the distance between the runs chosen by each row of `(p, runs)` and the rest."""
        first_weights = first / first.sum(axis=1, keepdims=True)
        difference = first_weights - ~first / (~first).sum(axis=1, keepdims=True)
        square = -np.sum((difference @ self.apart) * difference, axis=1)
        # Equal sets leave rounding, of either sign.
        least = 1e-12 * max(float(self.apart.max(initial=0.0)), 1e-300)
        return np.sqrt(np.where(square > least, square, 0.0))


def energy_distance(first: FloatArray, second: FloatArray) -> float:
    """Return the energy distance between two sets of points, (n, k) and (m, k).

    Examples
    --------
    >>> energy_distance(np.zeros((4, 2)), np.zeros((3, 2)))
    0.0
    """
    labels = np.arange(len(first) + len(second)) < len(first)
    return float(EnergyDistance.of(np.concatenate([first, second])).between(labels[None])[0])
