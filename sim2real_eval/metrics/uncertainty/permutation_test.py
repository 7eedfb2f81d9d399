# SPDX-License-Identifier: Apache-2.0
"""Permutation test of the distance between real and simulated runs.

If the sensors are identical, swapping the labels real and simulated does not change the
distribution of the distance. The p-value is the share of permutations with at least the observed
distance. It is exact for any number of runs and any distribution (R. A. Fisher, The Design of
Experiments, 1935; B. Phipson and G. K. Smyth, Stat. Appl. Genet. Mol. Biol. 9, 2010, for drawn
permutations: the true labels count as one of them).
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.seeding import stream

_SPLITS = 200


class Divisible(Protocol):
    """A distance for many ways to divide the same runs."""

    def between(self, first: NDArray[np.bool_]) -> FloatArray:
        """Return the distance between the runs of each row of `(p, runs)` and the rest, `(p,)`."""
        ...


@dataclasses.dataclass(frozen=True, eq=False)
class LabelPermutations:
    """Ways to call as many of the runs real as there are real ones: `real` `(p, runs)`, the first
    row as it is. `paired`: runs change sides with runs of the same motion only, and those of other
    motions never.
    """

    real: NDArray[np.bool_]
    paired: bool

    @functools.cached_property
    def least(self) -> float:
        """Smallest p-value that can come out; two when exchanging the sides is a permutation."""
        first = self.real[0]
        unchanged = (self.real == first).all(axis=1) | (self.real == ~first).all(axis=1)
        return float(np.mean(unchanged))


def permute_labels(
    real: Sequence[str],
    simulated: Sequence[str],
    most: int,
    seed: int,
    *,
    strata: tuple[Sequence[str], Sequence[str]] | None = None,
    units: tuple[Sequence[str], Sequence[str]] | None = None,
    drawn: bool = False,
) -> LabelPermutations:
    """Return all permutations, or `most` of them, drawn with `seed`; with `drawn` even where all
    are fewer. `real` and `simulated` are names of the runs; in the result the real ones come
    first.

    Runs are paired when every simulated run has the name of a real one: they follow the same
    motion, and only the runs of one motion are exchanged. So are they when several simulated runs
    have the name of one real run: repetitions of a motion are more similar than different motions,
    which must not count as a difference of the sensors. Simulated runs of one name change sides
    together if no real run has a name of theirs. Unpaired runs are exchanged inside the scenarios
    that `strata` gives for each real and simulated run.

    `units` are the blocks of the runs, or what names each alone: runs of one block are not
    independent, and change sides together.
    """
    sides = tuple(real), tuple(simulated)
    scenarios, together = (
        None if pair is None else (tuple(pair[0]), tuple(pair[1])) for pair in (strata, units)
    )
    return _permuted(*sides, most, seed, scenarios, together, drawn)


_Labels = tuple[str, ...]


# Every distance and every pair of models of a study needs the same permutations.
@functools.lru_cache(maxsize=4)
def _permuted(
    real: _Labels,
    simulated: _Labels,
    most: int,
    seed: int,
    strata: tuple[_Labels, _Labels] | None,
    units: tuple[_Labels, _Labels] | None,
    drawn: bool,
) -> LabelPermutations:
    labels = np.zeros((1, len(real) + len(simulated)), dtype=np.bool_)
    labels[0, : len(real)] = True
    repeated = len(set(simulated)) < len(simulated) or len(set(real)) < len(real)
    paired = not set(real).isdisjoint(simulated) and (repeated or set(simulated) <= set(real))
    blocks = _pairs(real, simulated) if paired else _strata(real, simulated, strata)
    if units is not None:
        together = _pairs_together if paired else _strata_together
        blocks = together(blocks, [*units[0], *units[1]])
    count = math.prod(math.comb(len(block.units), block.real) for block in blocks)
    if count <= most and not drawn:
        ways = [list(itertools.combinations(block.units, block.real)) for block in blocks]
        chosen = [
            [i for part in way for unit in part for i in unit] for way in itertools.product(*ways)
        ]
        labels = np.repeat(labels, len(chosen), axis=0)
        labels[:, [i for block in blocks for unit in block.units for i in unit]] = False
        for row, real_rows in zip(labels, chosen, strict=True):
            row[real_rows] = True
    else:
        labels = np.repeat(labels, most, axis=0)
        rng = stream(seed, 'uncertainty', 'runs', 'relabelling')
        for block in blocks:
            order = rng.random((most - 1, len(block.units))).argsort(axis=1) < block.real
            for k, unit in enumerate(block.units):
                labels[1:, unit] = order[:, k, None]
    labels.setflags(write=False)
    return LabelPermutations(labels, paired)


class _ExchangeGroup(NamedTuple):
    """Exchangeable units, the real ones first; `real` is the number of real units."""

    units: list[list[int]]
    real: int


def _pairs(real: Sequence[str], simulated: Sequence[str]) -> list[_ExchangeGroup]:
    blocks = {name: _ExchangeGroup([], real.count(name)) for name in dict.fromkeys(real)}
    for i, name in enumerate([*real, *simulated]):
        if name in blocks:
            blocks[name].units.append([i])
    return list(blocks.values())


def _pairs_together(blocks: list[_ExchangeGroup], unit_of: Sequence[str]) -> list[_ExchangeGroup]:
    """Return blocks in which paired motions of one unit, that have as many runs, are exchanged in
    the same way.
    """
    groups: dict[tuple[str, int, int], _ExchangeGroup] = {}
    for block in blocks:
        key = (unit_of[block.units[0][0]], len(block.units), block.real)
        group = groups.setdefault(key, _ExchangeGroup([[] for _ in block.units], block.real))
        for rows, added in zip(group.units, block.units, strict=True):
            rows += added
    return list(groups.values())


def _strata_together(blocks: list[_ExchangeGroup], unit_of: Sequence[str]) -> list[_ExchangeGroup]:
    """Return strata in which the runs of a unit on one side are one; a single stratum where a unit
    reaches over several.
    """
    named = [{unit_of[unit[0]] for unit in block.units} for block in blocks]
    if sum(map(len, named)) > len(set().union(*named)):
        real = [unit for block in blocks for unit in block.units[: block.real]]
        simulated = [unit for block in blocks for unit in block.units[block.real :]]
        blocks = [_ExchangeGroup(real + simulated, len(real))]
    groups = []
    for block in blocks:
        sides: tuple[dict[str, list[int]], dict[str, list[int]]] = ({}, {})
        for k, unit in enumerate(block.units):
            sides[k >= block.real].setdefault(unit_of[unit[0]], []).extend(unit)
        groups.append(_ExchangeGroup([*sides[0].values(), *sides[1].values()], len(sides[0])))
    return groups


def _strata(
    real: Sequence[str],
    simulated: Sequence[str],
    strata: tuple[Sequence[str], Sequence[str]] | None,
) -> list[_ExchangeGroup]:
    of_real, of_simulated = strata or ([''] * len(real), [''] * len(simulated))
    blocks = []
    for stratum in dict.fromkeys([*of_real, *of_simulated]):
        units = [[i] for i, name in enumerate(of_real) if name == stratum]
        together: dict[str, list[int]] = {}
        for k, (name, scenario) in enumerate(zip(simulated, of_simulated, strict=True)):
            if scenario == stratum:
                together.setdefault(name, []).append(len(real) + k)
        blocks.append(_ExchangeGroup([*units, *together.values()], len(units)))
    return blocks


@dataclasses.dataclass(frozen=True)
class PValues:
    """P-values of several distances between the same runs.

    `single`: share of the permutations that give at least the distance of the runs as they are;
    `adjusted`: the same when all distances are looked at and the most striking ones are picked.
    """

    single: tuple[float, ...]
    adjusted: tuple[float, ...]


def distance_p_values(distances: Sequence[Divisible], permutations: LabelPermutations) -> PValues:
    """Return the p-value of each distance, alone and among all of them, see `joint_p_values`."""
    return joint_p_values(
        np.stack([distance.between(permutations.real) for distance in distances])
    )


def joint_p_values(values: FloatArray) -> PValues:
    """Return the p-value of each distance, alone and among all of them.

    The first of each row of values `(distances, permutations)` is that of the true labels.
    Adjusted by the largest distance that each permutation gives, all distances brought to mean 0
    and variance 1 over the permutations ([Westfall1993], single-step maxT): whatever the distances
    have to do with each other, the probability that any of them falls below a level by accident is
    at most that level.
    """
    spread = values.std(axis=1, keepdims=True)
    # Distances that no permutation changes must not count in the maximum.
    scaled = values - values.mean(axis=1, keepdims=True)
    scaled /= np.where(spread > 0.0, spread, np.inf)
    # Equal sets in another order of summation differ in the last bits.
    least = values[:, :1] * (1.0 - 1e-9)
    single = np.mean(values >= least, axis=1)
    adjusted = np.mean(scaled.max(axis=0) >= scaled[:, :1] - 1e-6, axis=1)
    return PValues(tuple(single.tolist()), tuple(adjusted.tolist()))


def split_half_distance(
    distance: Divisible, runs: int, seed: int, units: Sequence[str] | None = None
) -> float | None:
    """Return the median distance between two halves of the same runs; None with fewer than two.

    This is the distance to expect between two sets of one distribution, slightly larger than for
    the whole sets, which hold twice the runs. Runs of one of the `units` are in the same half.
    """
    unit_of = np.arange(runs) if units is None else np.unique(units, return_inverse=True)[1]
    runs = len(set(unit_of.tolist()))
    if runs < 2:
        return None
    half = runs // 2
    if math.comb(runs, half) <= _SPLITS:
        rows = [list(half_rows) for half_rows in itertools.combinations(range(runs), half)]
    else:
        rng = stream(seed, 'uncertainty', 'runs', 'halves')
        rows = [rng.permutation(runs)[:half].tolist() for _ in range(_SPLITS)]
    first = np.zeros((len(rows), runs), dtype=np.bool_)
    for row, half_rows in enumerate(rows):
        first[row, half_rows] = True
    return float(np.median(distance.between(first[:, unit_of])))
