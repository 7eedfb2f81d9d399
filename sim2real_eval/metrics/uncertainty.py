# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Uncertainty of distances between real and simulated runs, from resampling the motions."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sim2real_eval.common.findings import Finding, to_records
from sim2real_eval.common.results import Field
from sim_sensors.core.errors import Remark
from sim_sensors.core.measurements import FloatArray
from . import permutation_test
from .interval import MotionDraws, ScoredRuns, bounds, tails_of
from .mean_wasserstein import MeanWasserstein
from .options import (
    FEW_MOTIONS,
    REAL,
    REPEATED,
    SKEWED,
    TOO_FEW_MOTIONS,
    WITHIN_REPEAT,
    UncertaintyOptions,
)
from .permutation_test import (
    DrawnDistance,
    PairUncertainty,
    compare_pairs,
    rank_distribution,
    significance_groups,
)
from .scores import POOLED, VEPD_COLUMNS, VepdRow

if TYPE_CHECKING:
    from .published import SeriesVepd


@dataclasses.dataclass(frozen=True)
class DistanceUncertainty:
    """The distance of one model from reality. Distances have the unit of the metric.

    Attributes
    ----------
    model : str
    n_real, n_sim : int
        Numbers of runs.
    distance : float
        Distance between the sets of runs; sampling alone makes it larger than zero.
    estimate : float or None
        Distance without the part that sampling adds (median-unbiased), never below 0.
    low, high : float or None
        Interval for the distance between the random processes of which the runs are samples.
        `low` is above 0 exactly if `p_value` (not `adjusted`) is at most 1 - `level`.
    null_median, null_high : float or None
        Median and `level` quantile of the distance that a model identical to reality would have
        with these numbers of runs; at least `Uncertainty.repeat`.
    p_value : float or None
        Share of permutations with at least this distance: its probability for a model identical
        to reality.
    adjusted : float or None
        The p-value adjusted for the number of models; the interval does not belong to it.
    significance_groups : str
        Models that share a letter are not significantly different; empty where that is unknown.
    ranks : tuple of float
        Probability of rank 1, 2, ... among the models; empty if unknown.

    Notes
    -----
    Values are None if there are too few motions.
    """

    model: str
    n_real: int
    n_sim: int
    distance: float
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    null_median: float | None = None
    null_high: float | None = None
    p_value: float | None = None
    adjusted: float | None = None
    significance_groups: str = ''
    ranks: tuple[float, ...] = ()


@dataclasses.dataclass(frozen=True)
class Uncertainty:
    """Uncertainty of one table of distances.

    Attributes
    ----------
    options : UncertaintyOptions
    paired : bool
        Whether every simulated run follows the motion of a real one.
    motions : int
        Number of independent motions of the real runs.
    real_split : float or None
        Median distance between halves of the real runs, or of their blocks; None with fewer
        than four.
    models : tuple of DistanceUncertainty
        In the order given.
    pairs : tuple of PairUncertainty
        Every pair of models.
    notes : tuple of Finding
        Findings about the statistics, such as values that are unknown.
    repeat : float or None
        Distance between the real runs and the same runs judged again; 0 for a deterministic judge,
        None if they were judged only once.
    blocked : int or None
        Number of real recordings if the motions are blocks of recordings.
    """

    options: UncertaintyOptions
    paired: bool
    motions: int
    real_split: float | None
    models: tuple[DistanceUncertainty, ...]
    pairs: tuple[PairUncertainty, ...] = ()
    notes: tuple[Finding, ...] = ()
    repeat: float | None = None
    blocked: int | None = None

    def model(self, model: str) -> DistanceUncertainty:
        """Return the uncertainty of a model."""
        return next(assessment for assessment in self.models if assessment.model == model)

    def pair(self, first: str, second: str) -> PairUncertainty:
        """Return the comparison of two models, in either order.

        The sign of the difference is that of the pair in `pairs`.
        """
        return self._by_models[frozenset((first, second))]

    @functools.cached_property
    def _by_models(self) -> dict[frozenset[str], PairUncertainty]:
        return {frozenset((pair.first, pair.second)): pair for pair in self.pairs}

    def ranks_not_distinguishable(self, model: str) -> list[int]:
        """Return the ranks, from 1, of models that do not differ significantly from `model`."""
        order = [assessment.model for assessment in self.order]
        return [
            place
            for place, other in enumerate(order, 1)
            if other == model or self.pair(model, other).distinguishable is False
        ]

    def more(self, pair: PairUncertainty) -> str:
        """Return the number of further motions that would separate two models, as a string.

        The string fits in front of "more motions".
        """
        if pair.low is None:
            return 'an unknown number of'
        if pair.more_motions is None:
            return f'more than {self.options.most_motions}'
        return str(pair.more_motions)

    def to_mapping(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            'options': self.options.to_mapping(),
            'paired': self.paired,
            'motions': self.motions,
            'real_split': self.real_split,
            'repeat': self.repeat,
            'models': [_json_fields(assessment) for assessment in self.models],
            'pairs': [{**_json_fields(pair), 'more': self.more(pair)} for pair in self.pairs],
            'notes': to_records(self.notes),
        }

    @property
    def order(self) -> Sequence[DistanceUncertainty]:
        """Models from the closest to the farthest."""
        return sorted(self.models, key=lambda assessment: assessment.distance)


def _json_fields(record: Any) -> dict[str, Any]:
    fields = dataclasses.asdict(record)
    return {
        key: list(value) if isinstance(value, tuple) else value for key, value in fields.items()
    }


_INTERVAL_DIVISOR = 5
"""Intervals use the number of resamples divided by this, at each of twelve distances."""

MIN_DEGREES = 2.0
"""Degrees of freedom below which no interval is given."""

_MIN_TRIED = 5  # runs a side of the simulated studies of benchmarks/interval_coverage.py


def uncertainty(
    real: ScoredRuns,
    sims: Mapping[str, ScoredRuns],
    options: UncertaintyOptions | None = None,
    *,
    seed: int = 0,
) -> Uncertainty:
    """Return the uncertainty of the distance of each model and of each pair of models.

    See docs/explanation/uncertainty.md for the method and its measured coverage.

    Parameters
    ----------
    real : ScoredRuns
        Runs of one or several scenarios; scenarios are resampled separately.
    sims : mapping
        Model to its runs.
    options : UncertaintyOptions, optional
    seed : int
        Seed of the draws, which are the same for all models on the same motions.

    Returns
    -------
    Uncertainty
        Fields are None where there are too few motions.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> names = tuple(f'run{k}' for k in range(8))
    >>> def runs(rmse):
    ...     return ScoredRuns(rng.normal((rmse, 0.1), 0.01, (8, 2)), names, ('line',) * 8)
    >>> result = uncertainty(runs(0.1), {'close': runs(0.1), 'far': runs(0.3)})
    >>> [(model.model, model.p_value < 0.05) for model in result.models]
    [('close', False), ('far', True)]
    """
    options = options or UncertaintyOptions()
    permutations = _permutations(real, sims, options, seed)
    distances = {
        model: MeanWasserstein.from_values(np.concatenate([real.values, runs.values]))
        for model, runs in sims.items()
    }
    values = {
        model: permutations[model].distances(distance) for model, distance in distances.items()
    }
    if len({len(row) for row in values.values()}) == 1:
        joint_distances = list(values.values())
    else:
        # Models with different runs: draw equally many permutations of each, with the same seed.
        drawn_labels = _permutations(real, sims, options, seed, drawn=True)
        joint_distances = [
            drawn_labels[model].distances(distance) for model, distance in distances.items()
        ]
    adjusted = permutation_test.joint_p_values(np.stack(joint_distances)).adjusted
    draws = MotionDraws.draw_motions(real, sims.values(), options.resamples, seed)
    repeat = _repeat_distance(real)
    assessments: list[DistanceUncertainty] = []
    drawn_distances: dict[str, DrawnDistance] = {}
    for (model, runs), adjusted_p_value in zip(sims.items(), adjusted, strict=True):
        assessment, drawn_distances[model] = _assess_model(
            model, real, runs, distances[model], permutations[model], values[model], draws, options
        )
        if assessment.p_value is not None:
            assessment = dataclasses.replace(assessment, adjusted=adjusted_p_value)
        if (
            repeat is not None
            and assessment.null_median is not None
            and assessment.null_high is not None
        ):
            # The null distance cannot be below the variation of the judge itself.
            ends = (max(assessment.null_median, repeat), max(assessment.null_high, repeat))
            assessment = dataclasses.replace(assessment, null_median=ends[0], null_high=ends[1])
        assessments.append(assessment)
    freedom = draws.freedom(real, *sims.values())
    motions = len(set(real.units))
    pairs = compare_pairs(
        real, sims, drawn_distances, freedom, options, motions=motions, seed=seed
    )
    if freedom.degrees >= MIN_DEGREES:
        assessments = _add_ranks(assessments, drawn_distances, pairs, freedom.inflation)
    blocks = real.units if real.block else None
    split = (
        permutation_test.split_half_distance(
            MeanWasserstein.from_values(real.values), len(real), seed, blocks
        )
        if len(set(blocks or range(len(real)))) >= 4
        else None
    )
    paired = all(labels.paired for labels in permutations.values())
    return Uncertainty(
        options,
        paired,
        motions,
        split,
        tuple(assessments),
        tuple(pairs),
        (
            *_motion_findings(permutations, motions, freedom.degrees, options),
            *(_skewness_findings(real, sims) if freedom.degrees >= MIN_DEGREES else ()),
            *_repeat_findings(repeat, assessments),
        ),
        repeat,
        len(set(real.names)) if real.block else None,
    )


def _repeat_distance(real: ScoredRuns) -> float | None:
    """Return the distance between the real runs and the same runs judged again, or None."""
    if real.again is None:
        return None
    first = np.arange(2 * len(real)) < len(real)
    distance = MeanWasserstein.from_values(np.concatenate([real.values, real.again]))
    return float(distance.between(first[None])[0])


def _repeat_findings(repeat: float | None, models: Sequence[DistanceUncertainty]) -> list[Finding]:
    if not repeat:
        return []
    within = [assessment.model for assessment in models if assessment.distance <= repeat]
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


def _assess_model(
    model: str,
    real: ScoredRuns,
    runs: ScoredRuns,
    distance: MeanWasserstein,
    labels: permutation_test.LabelPermutations,
    values: FloatArray,
    draws: MotionDraws,
    options: UncertaintyOptions,
) -> tuple[DistanceUncertainty, DrawnDistance]:
    distance_of_runs = float(values[0])
    slope = distance.slope(np.repeat([1.0 / len(real), -1.0 / len(runs)], [len(real), len(runs)]))
    ahead = np.sign(runs.values.mean(axis=0) - real.values.mean(axis=0)) / real.values.shape[1]
    resampled, linear, means = np.empty((3, options.resamples))
    for rows, weights in draws.weights(real, runs):
        resampled[rows] = distance.weighted_distance(weights)
        linear[rows] = weights @ slope
        # Weights of paired runs need no correction, because both sides share their motions.
        means[rows] = linear[rows]
        if not labels.paired:
            real_mean = weights[:, : len(real)] @ (real.values @ ahead)
            means[rows] = -weights[:, len(real) :] @ (runs.values @ ahead) - real_mean
    result = DistanceUncertainty(model, len(real), len(runs), distance_of_runs)
    estimate = distance_of_runs
    p_value = None
    freedom = draws.freedom(real, runs)
    matched_values = np.concatenate([real.values, _with_moments_of(real.values, runs.values)])
    null_distance = MeanWasserstein.from_values(matched_values)
    # Matching the mean and the spread uses up two degrees of freedom; 1.7 is the factor at three.
    null_factor = (
        float(np.sqrt(freedom.degrees / (freedom.degrees - 2.0))) if freedom.degrees > 3 else 1.7
    )
    if labels.least <= 1.0 - options.level:
        p_value = permutation_test.joint_p_values(values[None]).single[0]
        # Permutations of significantly different runs overestimate the null distance.
        is_significant = p_value <= 1.0 - options.level
        null = (
            labels.distances(null_distance) * null_factor
            if is_significant and freedom.degrees
            else values
        )
        result = dataclasses.replace(
            result,
            p_value=p_value,
            null_median=float(np.median(null)),
            null_high=float(np.quantile(null, options.level)),
        )
    if freedom.degrees >= MIN_DEGREES:
        part = max(options.resamples // _INTERVAL_DIVISOR, 100)
        # Permutations may be in lexical order, so every k-th is used instead of the first ones.
        step = -(-labels.count // part)
        estimate, low, high = bounds(
            real.values,
            runs.values,
            functools.partial(draws.weights, real, runs, part),
            level=options.level,
            freedom=freedom,
            linear=linear,
            nulls=[
                null_factor
                * float(
                    np.median(labels.distances(MeanWasserstein.from_values(column[:, None]), step))
                )
                for column in matched_values.T
            ],
            observed=distance_of_runs,
            critical=permutation_test.critical_distance(values, options.level),
        )
        result = dataclasses.replace(result, estimate=estimate, low=low, high=high)
    return result, DrawnDistance(
        distance_of_runs, estimate, estimate if result.low else 0.0, resampled, linear, means
    )


def _with_moments_of(real: FloatArray, simulated: FloatArray) -> FloatArray:
    """Return the simulated values with the mean and the spread of the real ones."""
    spread = simulated.std(axis=0)
    scale = real.std(axis=0) / np.where(spread > 0.0, spread, np.inf)
    return np.asarray((simulated - simulated.mean(axis=0)) * scale + real.mean(axis=0))


def _add_ranks(
    assessments: list[DistanceUncertainty],
    drawn: Mapping[str, DrawnDistance],
    pairs: list[PairUncertainty],
    inflation: float,
) -> list[DistanceUncertainty]:
    """Add rank probabilities and the letters of the significance groups."""
    around = np.stack(
        [
            distance.observed + inflation * (distance.resampled - distance.resampled.mean())
            for distance in drawn.values()
        ]
    )
    ranks = rank_distribution(around)
    groups: dict[str, str] = {}
    if all(pair.distinguishable is not None for pair in pairs):
        order = sorted(drawn, key=lambda model: drawn[model].observed)
        groups = significance_groups(
            order, [(pair.first, pair.second) for pair in pairs if pair.distinguishable]
        )
    return [
        dataclasses.replace(
            assessment,
            ranks=tuple(row.tolist()),
            significance_groups=groups.get(assessment.model, ''),
        )
        for assessment, row in zip(assessments, ranks, strict=True)
    ]


def _motion_findings(
    permutations: Mapping[str, permutation_test.LabelPermutations],
    motions: int,
    degrees: float,
    options: UncertaintyOptions,
) -> tuple[Finding, ...]:
    notes = []
    models_with_few_runs = [
        model for model, labels in permutations.items() if labels.least > 1.0 - options.level
    ]
    if models_with_few_runs:
        least = max(permutations[model].least for model in models_with_few_runs)
        values = {'motions': motions, 'level': options.level, 'least': least}
        notes.append(TOO_FEW_MOTIONS(', '.join(models_with_few_runs), **values))
    if degrees < MIN_DEGREES:
        notes.append(
            FEW_MOTIONS(
                motions=motions, consequence='too few for an interval, which needs 3 or more'
            )
        )
    elif motions < _MIN_TRIED:
        consequence = Remark(
            'intervals and ranks were not validated for fewer than {tried:d}', tried=_MIN_TRIED
        )
        notes.append(FEW_MOTIONS(motions=motions, consequence=consequence))
    return tuple(notes)


def _skewness_findings(real: ScoredRuns, sims: Mapping[str, ScoredRuns]) -> list[Finding]:
    shapes = {model: tails_of(real, runs) for model, runs in sims.items()}
    heavy = {model: shape for model, shape in shapes.items() if shape.heavy}
    if not heavy:
        return []
    worst = max(heavy.values(), key=lambda shape: (shape.skewness, shape.kurtosis))
    least, most = worst.coverage
    values = {'skewness': worst.skewness, 'kurtosis': worst.kurtosis}
    return [SKEWED(', '.join(heavy), **values, least=least, most=most)]


UNCERTAINTY_COLUMNS = (
    *VEPD_COLUMNS,
    *('estimate', 'low', 'high', 'null_median', 'null_high'),
    *('p_value', 'p_value_adjusted', 'significance_groups'),
)
"""Columns of vepd.csv: those of the table, then fields of `DistanceUncertainty`."""


def uncertainty_by_scenario(
    real: ScoredRuns,
    sims: Mapping[str, ScoredRuns],
    options: UncertaintyOptions | None = None,
    *,
    seed: int = 0,
) -> dict[str, Uncertainty]:
    """Return the `uncertainty` of each scenario that both sides have, and pooled (`all`)."""
    by_scenario: dict[str, Uncertainty] = {}
    for scenario in dict.fromkeys(real.scenario):
        scenario_sims = {model: runs.of_scenario(scenario) for model, runs in sims.items()}
        present_models = {model: runs for model, runs in scenario_sims.items() if len(runs)}
        if present_models:
            by_scenario[scenario] = uncertainty(
                real.of_scenario(scenario), present_models, options, seed=seed
            )
    present_models = {model: runs for model, runs in sims.items() if len(runs)}
    is_single_scenario = (
        len(by_scenario) == 1
        and len({*real.scenario, *(s for r in present_models.values() for s in r.scenario)}) == 1
    )
    by_scenario[POOLED] = (
        next(iter(by_scenario.values()))
        if is_single_scenario
        else uncertainty(real, present_models, options, seed=seed)
    )
    return by_scenario


def series_uncertainty(
    result: SeriesVepd, options: UncertaintyOptions | None = None, *, seed: int = 0
) -> dict[str, Uncertainty]:
    """Return the uncertainty of a table of series from files.

    Files do not say whether runs with the same number follow the same motion. They count as
    unpaired, which is right for independent runs and conservative for others.
    """

    def scored(source: str) -> ScoredRuns:
        keys = [key for key in result.scores if key.source == source]
        # Runs of two models with the same number are paired with each other.
        side = 'real' if source == REAL else 'simulated'
        return ScoredRuns.of_scores(
            [result.scores[key] for key in keys],
            [f'{side} {key.scenario}_{key.run}' for key in keys],
            [key.scenario for key in keys],
        )

    models = dict.fromkeys(row.model for row in result.rows)
    sims = {model: scored(model) for model in models}
    return uncertainty_by_scenario(scored(REAL), sims, options, seed=seed)


def uncertainty_fields(
    row: VepdRow, uncertainties: Mapping[str, Uncertainty]
) -> tuple[Field, ...]:
    """Return the fields of a row in the order of `UNCERTAINTY_COLUMNS`."""
    assessment = uncertainties[row.scenario].model(row.model)
    values = {**vars(assessment), 'p_value_adjusted': assessment.adjusted}
    return (*row.fields(), *(values[name] for name in UNCERTAINTY_COLUMNS[len(VEPD_COLUMNS) :]))


def uncertainty_notes(
    uncertainties: Mapping[str, Uncertainty], scenarios: Sequence[str]
) -> list[Finding]:
    """Return each finding once, with the scenarios that it concerns."""
    scenarios_by_finding: dict[Finding, list[str]] = {}
    for scenario in scenarios:
        for note in uncertainties[scenario].notes:
            scenarios_by_finding.setdefault(note, []).append(scenario)
    return [
        note.restrict_to(', '.join(affected)) for note, affected in scenarios_by_finding.items()
    ]
