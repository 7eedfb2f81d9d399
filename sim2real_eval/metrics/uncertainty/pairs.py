# SPDX-License-Identifier: Apache-2.0
"""Pairwise comparison of models, rank probabilities and significance groups."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from string import ascii_lowercase

import numpy as np
from scipy import special

from sim2real_eval.metrics.distances import ranks
from sim_sensors.core.measurements import FloatArray
from .interval import ROWS, MeanWasserstein, side_weights
from .motions import Freedom, ScoredRuns
from .permutation_test import joint_p_values, permute_labels
from .result import PairUncertainty, UncertaintyOptions

_FEWEST = 6  # pairs of which some permutation has a p-value of 5 %


@dataclasses.dataclass(frozen=True, eq=False)
class DrawnDistance:
    """Distance of a model in every resample of the motions."""

    seen: float  # of the runs as they are
    estimate: float  # of the processes
    least: float  # the estimate, or 0 where that is possible
    drawn: FloatArray  # (p,)
    linear: FloatArray  # (p,) to first order, see `MeanWasserstein.linear`
    # (p,) Difference of the means in the observed direction, averaged over the coordinates: the
    # distance of sets that do not overlap; equal to `linear` for paired runs
    means: FloatArray


def exchanged(
    real: ScoredRuns, first: ScoredRuns, second: ScoredRuns, sides: tuple[FloatArray, FloatArray]
) -> FloatArray:
    """Return how much the distances of two models differ for other labels of their runs, `(p,)`.

    `sides` are the weights of the runs in either model, (p, runs of both), from `side_weights`.
    """
    distance = MeanWasserstein.of(np.concatenate([real.values, first.values, second.values]))
    n = len(real)
    if distance.share is None:
        truth = distance.gaps(np.full((1, n), 1.0 / n))[0]
    else:
        truth = distance.share[:n].mean(axis=0)
    differences = []
    for weights in sides:
        distances = np.empty(len(weights))
        for start in range(0, len(weights), ROWS):
            gaps = distance.gaps(weights[start : start + ROWS], n)
            gaps -= truth
            distances[start : start + ROWS] = np.abs(gaps, out=gaps) @ distance.width
        differences.append(distances)
    return np.asarray(differences[0] - differences[1])


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

    Two models are significantly different when two tests say so, each over all pairs: a
    permutation test, which is exact for models of one process and may call unlike models of equal
    distance different; and resampling of the motions, which asks for the distances alone and is
    exact for many motions only (J. P. Romano and M. Wolf, Econometrica 73, 2005: the largest
    studentised difference). `sims` and `distances` are by model.

    Runs of either model change sides motion by motion, and repetition by repetition: the first
    repetitions share their noise but for the sensor that differs, and so do the second ones.
    """
    couples = list(itertools.combinations(sims, 2))
    if not couples:
        return []
    level = 1.0 - options.level
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
    permutations = [permutations_by_names[sims[a].names, sims[b].names] for a, b in couples]
    # Models that follow the same motions share their permutations: weights once for all of them.
    sides = {names: side_weights(labels.real) for names, labels in permutations_by_names.items()}
    # 100 models have 4950 pairs: each array of this size takes 400 MB.
    values = np.stack(
        [
            exchanged(real, sims[a], sims[b], sides[sims[a].names, sims[b].names])
            for a, b in couples
        ]
    )
    p_values = joint_p_values(np.abs(values, out=values))
    del values
    away = np.stack([distances[a].drawn - distances[b].drawn for a, b in couples])
    away -= away.mean(axis=1, keepdims=True)
    # Resampled distances of overlapping sets spread too little, as they are bounded by zero. The
    # larger spread of the linear approximations is used instead.
    free = np.array(
        [
            max(
                (distances[a].linear - distances[b].linear).std(),
                (distances[a].means - distances[b].means).std(),
            )
            for a, b in couples
        ]
    )
    tight = away.std(axis=1)
    away *= np.maximum(free / np.where(tight > 0.0, tight, np.inf), 1.0)[:, None]
    spread = away.std(axis=1)
    largest = np.zeros(away.shape[1])
    for row, scale in zip(away, np.where(spread > 0.0, spread, np.inf), strict=True):
        np.maximum(largest, np.abs(row) / scale, out=largest)
    critical = float(np.quantile(largest, options.level))
    enough = freedom.degrees >= 2.0
    widening = freedom.widening(options.level) if enough else np.nan
    pairs = []
    for k, (a, b) in enumerate(couples):
        pair = PairUncertainty(a, b, distances[a].seen - distances[b].seen)
        # Near zero, estimates scatter more than observed distances, which are biased there.
        both = sorted((pair.difference, distances[a].estimate - distances[b].estimate))
        sure = max(both[0], -both[1], 0.0)
        if enough:
            ends = np.quantile(away[k], [1.0 - level / 2.0, level / 2.0]) * widening
            # A model that may be as good as the real sensors counts as such, too.
            third = distances[a].least - distances[b].least
            low = float(min(both[0], third) - ends[0])
            high = float(max(both[1], third) - ends[1])
            pair = dataclasses.replace(pair, low=low, high=high)
        if enough and permutations[k].least <= level:
            clear = abs(pair.difference) > critical * widening * spread[k] and sure > 0.0
            distinguishable = bool(p_values.adjusted[k] <= level and clear)
            more: int | None = 0
            if not distinguishable:
                error = freedom.inflation * float(spread[k])
                more = _more(sure, error, critical, motions, options)
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
    return _numbered(first), _numbered(second)


def _numbered(names: Sequence[str]) -> list[str]:
    count: Counter[str] = Counter()
    numbered = []
    for name in names:
        numbered.append(f'{count[name]} {name}')
        count[name] += 1
    return numbered


def _more(
    difference: float, error: float, critical: float, motions: int, options: UncertaintyOptions
) -> int | None:
    """Return how many more motions make `difference` significant; None when too many.

    The error falls with the square root of the motions; the difference must be `critical` errors
    (more for few motions: Student's t), and so many more that it is with the wanted power.
    """
    if difference <= 0.0:
        return None
    upper = 0.5 + options.level / 2.0
    total = np.arange(max(motions + 1, _FEWEST), motions + options.most_motions + 1)
    student = special.stdtrit(total - 1, upper) / special.ndtri(upper)
    required_errors = critical * student + special.ndtri(options.power)
    enough = np.flatnonzero(difference >= required_errors * error * np.sqrt(motions / total))
    return int(total[enough[0]] - motions) if len(enough) else None


def rank_distribution(distances: FloatArray) -> FloatArray:
    """Return the probability of each rank, `(models, ranks)`, from `(models, resamples)`.

    Models that tie share their ranks: half a rank counts as half of either neighbour.
    """
    models = len(distances)
    rank = ranks(distances)
    # The share of a rank between two whole ones goes to both.
    whole = np.arange(1, models + 1)
    return np.stack(
        [np.clip(1.0 - np.abs(rank - whole_rank), 0.0, 1.0).mean(axis=1) for whole_rank in whole],
        1,
    )


def significance_groups(
    order: Sequence[str], distinguishable: Iterable[tuple[str, str]]
) -> dict[str, str]:
    """Return the letters of each model: two models share one unless they differ significantly.

    Insert and absorb (H.-P. Piepho, J. Comput. Graph. Stat. 13, 2004): all models start in one
    group; each significantly different pair splits the groups that hold both; groups inside others
    go. The first model in `order`, the closest, gets the first letters: a, b, ... z, a2, b2, ...
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
