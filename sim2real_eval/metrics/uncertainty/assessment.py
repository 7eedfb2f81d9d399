# SPDX-License-Identifier: Apache-2.0
"""Everything that resampling says of the distances between real runs and those of models."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from sim2real_eval.common.findings import Finding
from sim2real_eval.common.tables import Field
from sim2real_eval.metrics.distances import POOLED, VEPD_COLUMNS, VepdRow
from sim2real_eval.metrics.findings import (
    FEW_MOTIONS,
    NO_INTERVAL,
    REPEATED,
    SKEWED,
    TOO_FEW_MOTIONS,
    WITHIN_REPEAT,
)
from sim2real_eval.metrics.published import SeriesVepd
from sim2real_eval.metrics.series_folder import REAL
from sim_sensors.core.measurements import FloatArray
from . import permutation_test
from .interval import MeanWasserstein, bounds
from .motions import MotionDraws, ScoredRuns, tails_of
from .pairs import DrawnDistance, compare_pairs, rank_distribution, significance_groups
from .result import DistanceUncertainty, PairUncertainty, Uncertainty, UncertaintyOptions

_PART = 5
"""Part of the resamples for intervals, which take them at twelve true distances."""

FEWEST_DEGREES = 2.0
"""Of freedom, below which a spread says next to nothing."""

_FEWEST_TRIED = 5  # runs a side of the simulated studies of benchmarks/interval_coverage.py


def uncertainty(
    real: ScoredRuns,
    sims: Mapping[str, ScoredRuns],
    options: UncertaintyOptions | None = None,
    *,
    seed: int = 0,
) -> Uncertainty:
    """Return the uncertainty of the distance of each model and of each pair of models.

    What is done and how well it keeps its word is in docs/explanation/uncertainty.md.

    Parameters
    ----------
    real : ScoredRuns
        Of one scenario, or of several: scenarios are then resampled one by one.
    sims : mapping
        Model to its runs.
    options : UncertaintyOptions, optional
    seed : int
        Of the draws. They depend on the motions, not on the models.

    Returns
    -------
    Uncertainty
        With None for what so few motions cannot tell.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> names = tuple(f'run{k}' for k in range(8))
    >>> def runs(rmse):
    ...     return ScoredRuns(rng.normal((rmse, 0.1), 0.01, (8, 2)), names, ('line',) * 8)
    >>> known = uncertainty(runs(0.1), {'close': runs(0.1), 'far': runs(0.3)})
    >>> [(one.model, one.p_value < 0.05) for one in known.models]
    [('close', False), ('far', True)]
    """
    options = options or UncertaintyOptions()
    permutations = _permutations(real, sims, options, seed)
    distances = {
        model: MeanWasserstein.of(np.concatenate([real.values, runs.values]))
        for model, runs in sims.items()
    }
    values = {model: one.between(permutations[model].real) for model, one in distances.items()}
    if len({len(row) for row in values.values()}) == 1:
        together = list(values.values())
    else:
        # Models with runs of their own: as many permutations of each, the same draws.
        drawn_labels = _permutations(real, sims, options, seed, drawn=True)
        together = [one.between(drawn_labels[model].real) for model, one in distances.items()]
    adjusted = permutation_test.joint_p_values(np.stack(together)).adjusted
    draws = MotionDraws.of(real, sims.values(), options.resamples, seed)
    repeat = _repeat_distance(real)
    found: list[DistanceUncertainty] = []
    drawn: dict[str, DrawnDistance] = {}
    for (model, runs), among_all in zip(sims.items(), adjusted, strict=True):
        one, drawn[model] = _judged(
            model, real, runs, distances[model], permutations[model], values[model], draws, options
        )
        if one.p_value is not None:
            one = dataclasses.replace(one, adjusted=among_all)
        if repeat is not None and one.null_median is not None and one.null_high is not None:
            # So far is reality from itself, however few runs the permutations have.
            ends = (max(one.null_median, repeat), max(one.null_high, repeat))
            one = dataclasses.replace(one, null_median=ends[0], null_high=ends[1])
        found.append(one)
    freedom = draws.freedom(real, *sims.values())
    motions = len(set(real.units))
    pairs = compare_pairs(real, sims, drawn, freedom, options, motions=motions, seed=seed)
    if freedom.degrees >= FEWEST_DEGREES:
        found = _ranked(found, drawn, pairs, freedom.inflation)
    blocks = real.units if real.block else None
    split = (
        permutation_test.split_half_distance(
            MeanWasserstein.of(real.values), len(real), seed, blocks
        )
        if len(set(blocks or range(len(real)))) >= 4
        else None
    )
    paired = all(one.paired for one in permutations.values())
    return Uncertainty(
        options,
        paired,
        motions,
        split,
        tuple(found),
        tuple(pairs),
        (
            *_notes(permutations, motions, freedom.degrees, options),
            *(_skewed(real, sims) if freedom.degrees >= FEWEST_DEGREES else ()),
            *_repeated(repeat, found),
        ),
        repeat,
        len(set(real.names)) if real.block else None,
    )


def _repeat_distance(real: ScoredRuns) -> float | None:
    """Return how far the real runs are from themselves judged once more."""
    if real.again is None:
        return None
    first = np.arange(2 * len(real)) < len(real)
    distance = MeanWasserstein.of(np.concatenate([real.values, real.again]))
    return float(distance.between(first[None])[0])


def _repeated(repeat: float | None, models: Sequence[DistanceUncertainty]) -> list[Finding]:
    if not repeat:
        return []
    within = [one.model for one in models if one.distance <= repeat]
    notes = [REPEATED(repeat=repeat)]
    return [*notes, WITHIN_REPEAT(', '.join(within), repeat=repeat)] if within else notes


def _permutations(
    real: ScoredRuns,
    sims: Mapping[str, ScoredRuns],
    options: UncertaintyOptions,
    seed: int,
    *,
    drawn: bool = False,
) -> dict[str, permutation_test.LabelPermutations]:
    return {
        model: permutation_test.permute_labels(
            real.names,
            runs.names,
            options.resamples,
            seed,
            strata=(real.scenario, runs.scenario),
            units=(real.units, runs.units) if real.block or runs.block else None,
            drawn=drawn,
        )
        for model, runs in sims.items()
    }


def _judged(
    model: str,
    real: ScoredRuns,
    runs: ScoredRuns,
    distance: MeanWasserstein,
    labels: permutation_test.LabelPermutations,
    values: FloatArray,
    draws: MotionDraws,
    options: UncertaintyOptions,
) -> tuple[DistanceUncertainty, DrawnDistance]:
    seen = float(values[0])
    one, other = draws.weights(real), draws.weights(runs)
    weights = np.concatenate([one, -other], axis=1)
    resampled = distance.weighted(weights)
    alone = np.repeat([1.0 / len(real), -1.0 / len(runs)], [len(real), len(runs)])
    linear = distance.linear(weights, alone)
    means = linear
    if not labels.paired:
        # Paired, the motions that both sides share leave little for this to mend.
        ahead = np.sign(runs.values.mean(axis=0) - real.values.mean(axis=0))
        ahead /= real.values.shape[1]
        means = other @ (runs.values @ ahead) - one @ (real.values @ ahead)
    result = DistanceUncertainty(model, len(real), len(runs), seen)
    estimate = seen
    p_value = None
    freedom = draws.freedom(real, runs)
    moved = np.concatenate([real.values, _with_moments_of(real.values, runs.values)])
    null_distance = MeanWasserstein.of(moved)
    # Two numbers were made equal.
    lack = (
        float(np.sqrt(freedom.degrees / (freedom.degrees - 2.0))) if freedom.degrees > 3 else 1.7
    )
    if labels.least <= 1.0 - options.level:
        p_value = permutation_test.joint_p_values(values[None]).single[0]
        # Permuted, significantly different runs are further from each other than any of one
        # process.
        told = p_value <= 1.0 - options.level
        null = null_distance.between(labels.real) * lack if told and freedom.degrees else values
        result = dataclasses.replace(
            result,
            p_value=p_value,
            null_median=float(np.median(null)),
            null_high=float(np.quantile(null, options.level)),
        )
    if freedom.degrees >= FEWEST_DEGREES:
        part = max(options.resamples // _PART, 100)
        estimate, low, high = bounds(
            real.values,
            runs.values,
            (one[:part], other[:part]),
            level=options.level,
            freedom=freedom,
            linear=linear,
            nulls=[
                lack * float(np.median(MeanWasserstein.of(column[:, None]).between(labels.real)))
                for column in moved.T
            ],
            differs=p_value is not None and p_value <= 1.0 - options.level,
        )
        result = dataclasses.replace(result, estimate=estimate, low=low, high=high)
    return result, DrawnDistance(
        seen, estimate, estimate if result.low else 0.0, resampled, linear, means
    )


def _with_moments_of(real: FloatArray, simulated: FloatArray) -> FloatArray:
    """Return the simulated values with the mean and the spread of the real ones."""
    spread = simulated.std(axis=0)
    scale = real.std(axis=0) / np.where(spread > 0.0, spread, np.inf)
    return np.asarray((simulated - simulated.mean(axis=0)) * scale + real.mean(axis=0))


def _ranked(
    found: list[DistanceUncertainty],
    drawn: Mapping[str, DrawnDistance],
    pairs: list[PairUncertainty],
    inflation: float,
) -> list[DistanceUncertainty]:
    """Add ranks, of resampled distances about those seen, and letters."""
    around = np.stack(
        [one.seen + inflation * (one.drawn - one.drawn.mean()) for one in drawn.values()]
    )
    ranks = rank_distribution(around)
    groups: dict[str, str] = {}
    if all(pair.distinguishable is not None for pair in pairs):
        order = sorted(drawn, key=lambda model: drawn[model].seen)
        groups = significance_groups(
            order, [(pair.first, pair.second) for pair in pairs if pair.distinguishable]
        )
    return [
        dataclasses.replace(
            one, ranks=tuple(row.tolist()), significance_groups=groups.get(one.model, '')
        )
        for one, row in zip(found, ranks, strict=True)
    ]


def _notes(
    permutations: Mapping[str, permutation_test.LabelPermutations],
    motions: int,
    degrees: float,
    options: UncertaintyOptions,
) -> tuple[Finding, ...]:
    notes = []
    short = [model for model, one in permutations.items() if one.least > 1.0 - options.level]
    if short:
        least = max(permutations[model].least for model in short)
        values = {'motions': motions, 'level': options.level, 'least': least}
        notes.append(TOO_FEW_MOTIONS(', '.join(short), **values))
    if degrees < FEWEST_DEGREES:
        notes.append(NO_INTERVAL(motions=motions))
    elif motions < _FEWEST_TRIED:
        notes.append(FEW_MOTIONS(motions=motions, tried=_FEWEST_TRIED))
    return tuple(notes)


def _skewed(real: ScoredRuns, sims: Mapping[str, ScoredRuns]) -> list[Finding]:
    shapes = {model: tails_of(real, runs) for model, runs in sims.items()}
    heavy = {model: shape for model, shape in shapes.items() if shape.heavy}
    if not heavy:
        return []
    worst = max(heavy.values(), key=lambda shape: max(shape.skewness, shape.kurtosis))
    return [SKEWED(', '.join(heavy), skewness=worst.skewness, kurtosis=worst.kurtosis)]


UNCERTAINTY_COLUMNS = (
    *VEPD_COLUMNS,
    *('estimate', 'low', 'high', 'null_median', 'null_high'),
    *('p_value', 'p_value_adjusted', 'significance_groups'),
)
"""Columns of vepd.csv: those of the table, then what `DistanceUncertainty` calls so."""


def uncertainty_by_scenario(
    real: ScoredRuns,
    sims: Mapping[str, ScoredRuns],
    options: UncertaintyOptions | None = None,
    *,
    seed: int = 0,
) -> dict[str, Uncertainty]:
    """Return the `uncertainty` of each scenario that both sides have, and pooled (`all`)."""
    found: dict[str, Uncertainty] = {}
    for scenario in dict.fromkeys(real.scenario):
        of_scenario = {model: runs.of_scenario(scenario) for model, runs in sims.items()}
        there = {model: runs for model, runs in of_scenario.items() if len(runs)}
        if there:
            found[scenario] = uncertainty(real.of_scenario(scenario), there, options, seed=seed)
    there = {model: runs for model, runs in sims.items() if len(runs)}
    alone = (
        len(found) == 1
        and len({*real.scenario, *(s for r in there.values() for s in r.scenario)}) == 1
    )
    found[POOLED] = (
        next(iter(found.values())) if alone else uncertainty(real, there, options, seed=seed)
    )
    return found


def series_uncertainty(
    result: SeriesVepd, options: UncertaintyOptions | None = None, *, seed: int = 0
) -> dict[str, Uncertainty]:
    """Return the uncertainty of a table from files.

    Whether runs of one number follow one motion, files do not say: they count as unpaired, which
    is right for independent runs and careful for others.
    """

    def scored(source: str) -> ScoredRuns:
        keys = [key for key in result.scores if key.source == source]
        # Models that were driven through the same runs stay comparable run by run.
        side = 'real' if source == REAL else 'simulated'
        return ScoredRuns.of_scores(
            [result.scores[key] for key in keys],
            [f'{side} {key.scenario}_{key.run}' for key in keys],
            [key.scenario for key in keys],
        )

    models = dict.fromkeys(row.model for row in result.rows)
    sims = {model: scored(model) for model in models}
    return uncertainty_by_scenario(scored(REAL), sims, options, seed=seed)


def uncertainty_fields(row: VepdRow, known: Mapping[str, Uncertainty]) -> tuple[Field, ...]:
    """Return the fields of a row in the order of `UNCERTAINTY_COLUMNS`."""
    one = known[row.scenario].of(row.model)
    values = {**vars(one), 'p_value_adjusted': one.adjusted}
    return (*row.fields(), *(values[name] for name in UNCERTAINTY_COLUMNS[len(VEPD_COLUMNS) :]))


def uncertainty_notes(known: Mapping[str, Uncertainty], scenarios: Sequence[str]) -> list[Finding]:
    """Return each finding once, with the scenarios that it concerns."""
    said: dict[Finding, list[str]] = {}
    for scenario in scenarios:
        for note in known[scenario].notes:
            said.setdefault(note, []).append(scenario)
    return [note.of(', '.join(where)) for note, where in said.items()]
