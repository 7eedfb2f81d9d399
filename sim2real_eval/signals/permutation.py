# SPDX-License-Identifier: Apache-2.0
"""Is a distance between real and simulated runs more than chance? Relabelling the runs tells.

If simulated runs were as the real ones, the labels would mean nothing, and the distance of the
sets as they are would be one of those that other labels give, no larger than most of them. The
share of the relabellings that give at least that distance is the chance of so large a one, exact
for any number of runs and any distribution (R. A. Fisher, The Design of Experiments, 1935;
B. Phipson and G. K. Smyth, Stat. Appl. Genet. Mol. Biol. 9, 2010, for drawn relabellings: the true
labels count as one of them).
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sim_sensors.measurements import FloatArray
from sim_sensors.seeding import stream

__all__ = ['Chances', 'Divisible', 'Relabelling', 'chances', 'floor', 'relabel']

_SPLITS = 200


class Divisible(Protocol):
    """A distance for many ways to divide the same runs."""

    def between(self, first: NDArray[np.bool_]) -> FloatArray:
        """Return the distance between the runs of each row of `(p, runs)` and the rest, `(p,)`."""
        ...


@dataclasses.dataclass(frozen=True, eq=False)
class Relabelling:
    """Ways to call as many of the runs real as there are real ones.

    Attributes
    ----------
    real : (p, runs) bool
        The first row is as it is.
    paired : bool
        Runs change sides with runs of the same motion only, and those of other motions never.
    """

    real: NDArray[np.bool_]
    paired: bool

    @property
    def least(self) -> float:
        """Smallest chance that can come out; two when exchanging the sides is a relabelling."""
        first = self.real[0]
        alike = (self.real == first).all(axis=1) | (self.real == ~first).all(axis=1)
        return float(np.mean(alike))


def relabel(real: Sequence[str], simulated: Sequence[str], most: int, seed: int) -> Relabelling:
    """Return all relabellings, or `most` of them.

    Runs are paired when every name is that of one real and of at least one simulated run: they
    follow the same motion, and only the runs of one motion are exchanged. So are they when several
    simulated runs have one name: repetitions of a motion are more alike than those of different
    ones, and to exchange them freely would call that a difference of the sensors.

    Parameters
    ----------
    real, simulated : sequence of str
        Names of the runs; in the result the real ones come first.
    most : int
    seed : int
        Of the draws, when there are more than `most`.
    """
    names = [*real, *simulated]
    n = len(real)
    repeated = len(set(simulated)) < len(simulated)
    paired = len(set(real)) == n and (repeated or set(real) == set(simulated))
    blocks = (
        [[i for i, name in enumerate(names) if name == one] for one in real]
        if paired
        else [list(range(len(names)))]
    )
    chosen = 1 if paired else n
    count = math.prod(math.comb(len(block), chosen) for block in blocks)
    rows: list[list[int]]
    if count <= most:
        ways = [list(itertools.combinations(block, chosen)) for block in blocks]
        rows = [[i for part in way for i in part] for way in itertools.product(*ways)]
    else:
        rng = stream(seed, 'compare', 'runs', 'relabelling')
        rows = [list(range(n))]
        rows += [
            [
                int(i)
                for block in blocks
                for i in rng.choice(block, size=chosen, replace=False, shuffle=False)
            ]
            for _ in range(most - 1)
        ]
    labels = np.zeros((len(rows), len(names)), dtype=np.bool_)
    for row, one in enumerate(rows):
        labels[row, one] = True
    return Relabelling(labels, paired)


@dataclasses.dataclass(frozen=True)
class Chances:
    """What relabelling says of several distances between the same runs.

    Attributes
    ----------
    single : tuple of float
        Share of the relabellings that give at least the distance of the runs as they are.
    adjusted : tuple of float
        The same when all distances are looked at and the most striking ones are picked.
    """

    single: tuple[float, ...]
    adjusted: tuple[float, ...]


def chances(distances: Sequence[Divisible], relabelling: Relabelling) -> Chances:
    """Return the chance of each distance, alone and among all of them.

    Adjusted by the largest distance that each relabelling gives, all distances brought to mean 0
    and variance 1 over the relabellings (P. H. Westfall and S. S. Young, Resampling-Based Multiple
    Testing, 1993, single-step maxT): whatever the distances have to do with each other, the chance
    that any of them falls below a level by accident is at most that level.
    """
    rows = [distance.between(relabelling.real) for distance in distances]
    values = np.stack(rows)
    spread = values.std(axis=1, keepdims=True)
    # Distances that no relabelling changes say nothing.
    scaled = (values - values.mean(axis=1, keepdims=True)) / np.where(spread > 0.0, spread, np.inf)
    # Equal sets in another order of summation differ in the last bits.
    least = values[:, :1] * (1.0 - 1e-9)
    single = np.mean(values >= least, axis=1)
    adjusted = np.mean(scaled.max(axis=0) >= scaled[:, :1] - 1e-6, axis=1)
    return Chances(tuple(single.tolist()), tuple(adjusted.tolist()))


def floor(distance: Divisible, runs: int, seed: int) -> float | None:
    """Return the median distance between two halves of the same runs; None with fewer than two.

    What the distance is for sets that are alike; a little more than for the whole sets, which
    hold twice the runs.
    """
    if runs < 2:
        return None
    half = runs // 2
    if math.comb(runs, half) <= _SPLITS:
        rows = [list(one) for one in itertools.combinations(range(runs), half)]
    else:
        rng = stream(seed, 'compare', 'runs', 'halves')
        rows = [rng.permutation(runs)[:half].tolist() for _ in range(_SPLITS)]
    first = np.zeros((len(rows), runs), dtype=np.bool_)
    for row, one in enumerate(rows):
        first[row, one] = True
    return float(np.median(distance.between(first)))
