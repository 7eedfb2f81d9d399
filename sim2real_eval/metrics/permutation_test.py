# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Permutation test of distances, and its results as ranks, groups and pairs of models.

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
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from string import ascii_lowercase
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import special

from sim_sensors.core.blocks import row_blocks
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.seeding import stream
from .interval import Freedom, ScoredRuns
from .mean_wasserstein import MeanWasserstein, side_weights
from .options import UncertaintyOptions
from .scores import ranks

_SPLITS = 200
_ROUNDED = 1.0 - 1e-9  # Sums of equal numbers in different order differ in the last bits.


class Divisible(Protocol):
    """Distance that is computed for many divisions of the same runs into two sets at once."""

    def between(self, first: NDArray[np.bool_]) -> FloatArray:
        """Return the distance between the runs of each row of `(p, runs)` and the rest, `(p,)`."""
        ...


@dataclasses.dataclass(frozen=True, eq=False)
class LabelPermutations:
    """Permutations of the labels real and simulated.

    `packed` `(runs, p / 8)` has a bit per permutation, set if the run is labelled real; the first
    of the `count` permutations has the true labels. If `paired`, labels are exchanged only between
    runs of the same motion.
    """

    packed: NDArray[np.uint8]
    count: int
    paired: bool

    @property
    def real(self) -> NDArray[np.bool_]:
        """Labels of all permutations, `(p, runs)`; see `rows` for many runs."""
        return self.rows(slice(0, self.count))

    def rows(self, rows: slice) -> NDArray[np.bool_]:
        """Return which runs are labelled real in a slice of the permutations, `(rows, runs)`.

        The slice must begin at a multiple of 8.
        """
        part = self.packed[:, rows.start // 8 : -(-rows.stop // 8)]
        labels = np.unpackbits(part, axis=1, count=rows.stop - rows.start)
        return np.ascontiguousarray(labels.T).view(np.bool_)

    def blocks(self) -> Iterator[NDArray[np.bool_]]:
        """Yield the rows of all permutations, as many at once as fit into memory."""
        for rows in row_blocks(self.count, len(self.packed)):
            yield self.rows(rows)

    def distances(self, distance: Divisible, step: int = 1) -> FloatArray:
        """Return the distance for every permutation, or for every `step`-th one, `(p,)`."""
        first, distances = 0, []
        for real in self.blocks():
            distances.append(distance.between(real[first::step]))
            first = (first - len(real)) % step
        return np.concatenate(distances)

    @functools.cached_property
    def least(self) -> float:
        """Smallest possible p-value: the share of permutations with the true sets.

        Exchanging both sides gives the same sets.
        """
        true = self.rows(slice(0, 1))[0]
        unchanged = sum(
            int(np.sum((real == true).all(axis=1) | (real == ~true).all(axis=1)))
            for real in self.blocks()
        )
        return unchanged / self.count


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
    """Return all permutations of the labels, or `most` random ones if there are more.

    `real` and `simulated` are names of the runs; real runs come first in the result. With `drawn`,
    the permutations are drawn even if there are fewer than `most`.

    Runs are paired if every simulated run has the name of a real one. Runs of one name follow the
    same motion, and only their labels are exchanged. Several simulated runs with the name of one
    real run are paired, too: repetitions of a motion are more similar than different motions, and
    this must not count as a difference of the sensors. Simulated runs of one name change sides
    together if no real run has this name. Unpaired runs are exchanged within the scenarios that
    `strata` gives for each real and simulated run.

    `units` names the block of each run, or a unique name for an independent run. The runs of a
    block change sides together.
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
    is_real = np.arange(len(real) + len(simulated)) < len(real)
    repeated = len(set(simulated)) < len(simulated) or len(set(real)) < len(real)
    paired = not set(real).isdisjoint(simulated) and (repeated or set(simulated) <= set(real))
    groups = _pair_groups(real, simulated) if paired else _stratum_groups(real, simulated, strata)
    if units is not None:
        merge = _merge_pair_groups if paired else _merge_stratum_groups
        groups = merge(groups, [*units[0], *units[1]])
    count = math.prod(math.comb(len(group.units), group.real) for group in groups)
    if count <= most and not drawn:
        ways = [list(itertools.combinations(group.units, group.real)) for group in groups]
        chosen = [
            [i for part in way for unit in part for i in unit] for way in itertools.product(*ways)
        ]
        labels = np.repeat(is_real[None], len(chosen), axis=0)
        labels[:, [i for group in groups for unit in group.units for i in unit]] = False
        for row, real_rows in zip(labels, chosen, strict=True):
            row[real_rows] = True
        packed, count = np.packbits(labels.T, axis=1), len(chosen)
    else:
        count = most
        packed = np.repeat(np.packbits(is_real[:, None], axis=1), -(-most // 8), axis=1)
        packed[is_real] = 255
        rng = stream(seed, 'uncertainty', 'runs', 'relabelling')
        for group in groups:
            _draw_labels(rng, group, packed, most)
    packed.setflags(write=False)
    return LabelPermutations(packed, count, paired)


class _ExchangeGroup(NamedTuple):
    """Exchangeable units, the real ones first; `real` is the number of real units."""

    units: list[list[int]]
    real: int


def _draw_labels(
    rng: np.random.Generator, group: _ExchangeGroup, packed: NDArray[np.uint8], count: int
) -> None:
    """Draw the labels of exchangeable units into `packed`; the first permutation is the true one.

    Parameters as in `LabelPermutations`.
    """
    number = len(group.units)
    unit = [k for k, runs in enumerate(group.units) for _ in runs]
    runs = [run for runs in group.units for run in runs]
    for rows in row_blocks(count, number):
        drawn = rng.random((rows.stop - max(rows.start, 1), number)).argsort(axis=1) < group.real
        if rows.start == 0:
            drawn = np.concatenate([np.arange(number)[None] < group.real, drawn])
        bits = np.packbits(drawn.T, axis=1)
        packed[runs, rows.start // 8 : -(-rows.stop // 8)] = bits[unit]


def _pair_groups(real: Sequence[str], simulated: Sequence[str]) -> list[_ExchangeGroup]:
    groups = {name: _ExchangeGroup([], count) for name, count in Counter(real).items()}
    for i, name in enumerate([*real, *simulated]):
        if name in groups:
            groups[name].units.append([i])
    return list(groups.values())


def _merge_pair_groups(
    groups: list[_ExchangeGroup], unit_of: Sequence[str]
) -> list[_ExchangeGroup]:
    """Merge the groups of paired motions of one unit, whose labels then change together.

    Only groups with equal numbers of runs are merged.
    """
    merged: dict[tuple[str, int, int], _ExchangeGroup] = {}
    for group in groups:
        key = (unit_of[group.units[0][0]], len(group.units), group.real)
        target = merged.setdefault(key, _ExchangeGroup([[] for _ in group.units], group.real))
        for runs, added_runs in zip(target.units, group.units, strict=True):
            runs += added_runs
    return list(merged.values())


def _merge_stratum_groups(
    groups: list[_ExchangeGroup], unit_of: Sequence[str]
) -> list[_ExchangeGroup]:
    """Merge the runs of a unit on one side, within each stratum.

    If a unit is in several strata, all strata are merged first.
    """
    names = [{unit_of[unit[0]] for unit in group.units} for group in groups]
    if sum(map(len, names)) > len(set().union(*names)):
        real = [unit for group in groups for unit in group.units[: group.real]]
        simulated = [unit for group in groups for unit in group.units[group.real :]]
        groups = [_ExchangeGroup(real + simulated, len(real))]
    merged = []
    for group in groups:
        sides: tuple[dict[str, list[int]], dict[str, list[int]]] = ({}, {})
        for k, unit in enumerate(group.units):
            sides[k >= group.real].setdefault(unit_of[unit[0]], []).extend(unit)
        merged.append(_ExchangeGroup([*sides[0].values(), *sides[1].values()], len(sides[0])))
    return merged


def _stratum_groups(
    real: Sequence[str],
    simulated: Sequence[str],
    strata: tuple[Sequence[str], Sequence[str]] | None,
) -> list[_ExchangeGroup]:
    of_real, of_simulated = strata or ([''] * len(real), [''] * len(simulated))
    groups = []
    for stratum in dict.fromkeys([*of_real, *of_simulated]):
        units = [[i] for i, name in enumerate(of_real) if name == stratum]
        together: dict[str, list[int]] = {}
        for k, (name, scenario) in enumerate(zip(simulated, of_simulated, strict=True)):
            if scenario == stratum:
                together.setdefault(name, []).append(len(real) + k)
        groups.append(_ExchangeGroup([*units, *together.values()], len(units)))
    return groups


@dataclasses.dataclass(frozen=True)
class PValues:
    """P-values of several distances between the same runs.

    `single` is the share of permutations with at least the observed distance. `adjusted` accounts
    for the number of distances.
    """

    single: tuple[float, ...]
    adjusted: tuple[float, ...]


def distance_p_values(distances: Sequence[Divisible], permutations: LabelPermutations) -> PValues:
    """Return the p-values of distances, single and adjusted; see `joint_p_values`."""
    return joint_p_values(np.stack([*map(permutations.distances, distances)]))


def joint_p_values(values: FloatArray) -> PValues:
    """Return the p-values of distances, single and adjusted for their number.

    The values have the shape `(distances, permutations)`; the first column is that of the true
    labels. The adjustment uses the largest distance of each permutation, with all distances
    standardised over the permutations ([Westfall1993], single-step maxT). Whatever the dependence
    of the distances, the probability that any adjusted p-value is below a level by chance is at
    most that level.
    """
    spread = values.std(axis=1, keepdims=True)
    # Distances that no permutation changes must not count in the maximum. Their spread is zero
    # but for rounding.
    is_changed = spread > (1.0 - _ROUNDED) * values.max(axis=1, keepdims=True)
    scaled = values - values.mean(axis=1, keepdims=True)
    scaled /= np.where(is_changed, spread, np.inf)
    single = np.mean(values >= values[:, :1] * _ROUNDED, axis=1)
    adjusted = np.mean(scaled.max(axis=0) >= scaled[:, :1] - 1e-6, axis=1)
    return PValues(tuple(single.tolist()), tuple(adjusted.tolist()))


def critical_distance(values: FloatArray, level: float) -> float:
    """Return the distance above which a single p-value is at most 1 - `level`.

    `values` `(permutations,)` begin with the observed distance. If its p-value is larger than
    1 - `level`, as always with too few permutations, the observed distance is returned.
    """
    count = len(values)
    above = int(np.searchsorted(np.arange(1, count + 1) / count, 1.0 - level, side='right'))
    critical = float(np.partition(values, count - 1 - above)[count - 1 - above])
    return critical if critical < values[0] * _ROUNDED else float(values[0])


def split_half_distance(
    distance: Divisible, runs: int, seed: int, units: Sequence[str] | None = None
) -> float | None:
    """Return the median distance between two halves of the same runs; None with fewer than two.

    This is the distance to expect between two sets from one distribution. It is slightly larger
    than for the whole sets, which have twice as many runs. `units` names the block of each run;
    the runs of a block are in the same half.
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


_MIN_PAIRS = 6  # pairs with which a permutation test can reach a p-value of 5 %


@dataclasses.dataclass(frozen=True, eq=False)
class DrawnDistance:
    """Distance of a model in every resample of the motions."""

    observed: float  # between the original runs
    estimate: float  # of the distance between the processes
    least: float  # the estimate, or 0 if the true distance may be 0
    resampled: FloatArray  # (p,)
    linear: FloatArray  # (p,) to first order, see `MeanWasserstein.slope`
    # (p,) Difference of the means in the observed direction, averaged over the coordinates: the
    # distance of sets that do not overlap; equal to `linear` for paired runs
    means: FloatArray


def exchanged_differences(
    real: ScoredRuns, first: ScoredRuns, second: ScoredRuns, sides: tuple[FloatArray, FloatArray]
) -> FloatArray:
    """Return the difference of the distances of two models for permuted labels, `(rows,)`.

    `sides` are the weights of the runs in either model, (rows, runs of both), from `side_weights`.
    """
    distance = MeanWasserstein.from_values(
        np.concatenate([real.values, first.values, second.values])
    )
    truth = np.full(len(real), 1.0 / len(real))
    of_first, of_second = (distance.distance_from(truth, weights) for weights in sides)
    return np.asarray(of_first - of_second)


def compare_pairs(
    real: ScoredRuns,
    sims: Mapping[str, ScoredRuns],
    distances: Mapping[str, DrawnDistance],
    freedom: Freedom,
    options: UncertaintyOptions,
    *,
    motions: int,
    seed: int,
) -> list[PairUncertainty]:
    """Compare every pair of models on the motions that both follow.

    `sims` and `distances` are by model. Two models are significantly different if two tests are
    significant, each adjusted for all pairs. The permutation test is exact for models of the same
    process, but may also find a difference between different models at equal distances. The
    resampling of motions compares the distances themselves, but is only exact for many motions (J.
    P. Romano and M. Wolf, Econometrica 73, 2005: the largest studentised difference).

    Runs of both models change sides by motion and repetition, because runs of equal repetition
    share the noise of all sensors that do not differ.
    """
    model_pairs = list(itertools.combinations(sims, 2))
    if not model_pairs:
        return []
    alpha = 1.0 - options.level
    structures = {(runs.names, runs.scenario, runs.units) for runs in sims.values()}
    blocks = any(runs.block for runs in sims.values())
    # Models with different runs need drawn permutations, as they are adjusted together.
    permutations_by_names = {
        (first, second): permute_labels(
            *_repetitions_apart(first, second),
            options.resamples,
            seed,
            strata=(of_first, of_second),
            units=(units_first, units_second) if blocks else None,
            drawn=len(structures) > 1,
        )
        for first, of_first, units_first in structures
        for second, of_second, units_second in structures
    }
    permutations = [permutations_by_names[sims[a].names, sims[b].names] for a, b in model_pairs]
    # The 4950 pairs of 100 models need 400 MB for each array of this size.
    values = np.empty((len(model_pairs), permutations[0].count))
    for rows in row_blocks(values.shape[1], len(real) + 2 * max(map(len, sims.values()))):
        # Models that follow the same motions share their permutations and their weights.
        sides = {
            names: side_weights(labels.rows(rows))
            for names, labels in permutations_by_names.items()
        }
        for row, (a, b) in zip(values, model_pairs, strict=True):
            names = sims[a].names, sims[b].names
            row[rows] = exchanged_differences(real, sims[a], sims[b], sides[names])
    p_values = joint_p_values(np.abs(values, out=values))
    del values
    deviations = np.stack(
        [distances[a].resampled - distances[b].resampled for a, b in model_pairs]
    )
    deviations -= deviations.mean(axis=1, keepdims=True)
    # Resampled distances of overlapping sets spread too little, as they are bounded by zero. The
    # larger spread of the linear approximations is used instead.
    linear_spread = np.array(
        [
            max(
                (distances[a].linear - distances[b].linear).std(),
                (distances[a].means - distances[b].means).std(),
            )
            for a, b in model_pairs
        ]
    )
    spread = deviations.std(axis=1)
    deviations *= np.maximum(linear_spread / np.where(spread > 0.0, spread, np.inf), 1.0)[:, None]
    spread = deviations.std(axis=1)
    largest = np.zeros(deviations.shape[1])
    for row, scale in zip(deviations, np.where(spread > 0.0, spread, np.inf), strict=True):
        np.maximum(largest, np.abs(row) / scale, out=largest)
    critical = float(np.quantile(largest, options.level))
    has_interval = freedom.degrees >= 2.0
    widening = freedom.widening(options.level) if has_interval else np.nan
    pairs = []
    for k, (a, b) in enumerate(model_pairs):
        pair = PairUncertainty(a, b, distances[a].observed - distances[b].observed)
        # Near zero, estimates scatter more than observed distances, which are biased there.
        smaller, larger = sorted((pair.difference, distances[a].estimate - distances[b].estimate))
        sure_difference = max(smaller, -larger, 0.0)
        if has_interval:
            ends = np.quantile(deviations[k], [1.0 - alpha / 2.0, alpha / 2.0]) * widening
            # Include the case that a model is as good as the real sensors, if it may be.
            least_difference = distances[a].least - distances[b].least
            low = float(min(smaller, least_difference) - ends[0])
            high = float(max(larger, least_difference) - ends[1])
            pair = dataclasses.replace(pair, low=low, high=high)
        if has_interval and permutations[k].least <= alpha:
            is_large = abs(pair.difference) > critical * widening * spread[k]
            distinguishable = bool(
                p_values.adjusted[k] <= alpha and is_large and sure_difference > 0.0
            )
            more: int | None = 0
            if not distinguishable:
                error = freedom.inflation * float(spread[k])
                more = _more(sure_difference, error, critical, motions, options)
            pair = dataclasses.replace(
                pair,
                p_value=p_values.single[k],
                adjusted=p_values.adjusted[k],
                distinguishable=distinguishable,
                more_motions=more,
            )
        pairs.append(pair)
    return pairs


def _repetitions_apart(
    first: Sequence[str], second: Sequence[str]
) -> tuple[Sequence[str], Sequence[str]]:
    """Return the motions of two models, with repetitions of a motion numbered.

    Return them unchanged if the models have different numbers of runs of a motion.
    """
    if Counter(first) != Counter(second):
        return first, second
    return _number_repetitions(first), _number_repetitions(second)


def _number_repetitions(names: Sequence[str]) -> list[str]:
    count: Counter[str] = Counter()
    numbered = []
    for name in names:
        numbered.append(f'{count[name]} {name}')
        count[name] += 1
    return numbered


def _more(
    difference: float, error: float, critical: float, motions: int, options: UncertaintyOptions
) -> int | None:
    """Return the number of further motions that make `difference` significant; None if too many.

    The error decreases with the square root of the number of motions. The difference must be
    `critical` errors (more for few motions, by Student's t), plus the margin that gives the
    required power.
    """
    if difference <= 0.0:
        return None
    upper = 0.5 + options.level / 2.0
    total = np.arange(max(motions + 1, _MIN_PAIRS), motions + options.most_motions + 1)
    student = special.stdtrit(total - 1, upper) / special.ndtri(upper)
    required_errors = critical * student + special.ndtri(options.power)
    sufficient = np.flatnonzero(difference >= required_errors * error * np.sqrt(motions / total))
    return int(total[sufficient[0]] - motions) if len(sufficient) else None


def rank_distribution(distances: FloatArray) -> FloatArray:
    """Return the probability of each rank, `(models, ranks)`, from `(models, resamples)`.

    A tied rank such as 1.5 counts half for each of its neighbours.
    """
    models = len(distances)
    rank = ranks(distances)
    whole = np.arange(1, models + 1)
    return np.stack(
        [np.clip(1.0 - np.abs(rank - whole_rank), 0.0, 1.0).mean(axis=1) for whole_rank in whole],
        1,
    )


def significance_groups(
    order: Sequence[str], distinguishable: Iterable[tuple[str, str]]
) -> dict[str, str]:
    """Return the group letters of each model; models that do not differ significantly share one.

    Insert and absorb (H.-P. Piepho, J. Comput. Graph. Stat. 13, 2004): all models start in one
    group; each significantly different pair splits the groups that hold both; groups inside others
    are removed. The first model in `order`, the closest, gets the first letters: a, b, ... z, a2,
    b2, ...
    """
    groups = [frozenset(order)]
    for first, second in distinguishable:
        split: list[frozenset[str]] = []
        for group in groups:
            both = first in group and second in group
            split += [group - {first}, group - {second}] if both else [group]
        groups = []
        for group in sorted(set(split), key=len, reverse=True):
            if not any(group <= other for other in groups):
                groups.append(group)
    groups.sort(key=lambda group: sorted(order.index(model) for model in group))
    turns = ('', *range(2, len(groups) // 26 + 2))
    names = [f'{letter}{turn}' for turn in turns for letter in ascii_lowercase]
    return {
        model: ''.join(name for name, group in zip(names, groups, strict=False) if model in group)
        for model in order
    }


@dataclasses.dataclass(frozen=True)
class PairUncertainty:
    """Comparison of two models by their distance to the real runs."""

    # Models, in the order of the study
    first: str
    second: str
    # Distance of the first minus that of the second, negative if the first is closer
    difference: float
    # Interval for the true difference, of this pair alone
    low: float | None = None
    high: float | None = None
    # Probability of at least this difference between equal models, of this pair alone
    p_value: float | None = None
    adjusted: float | None = None  # p-value adjusted for all pairs
    # Whether the two are significantly different, adjusted for all pairs
    distinguishable: bool | None = None
    # Number of further motions that would make the models significantly different with the
    # probability `power`, if the true difference is the estimated one. 0 if they are different
    # already; None if it is above `most_motions` or unknown (`low` is None).
    more_motions: int | None = None
