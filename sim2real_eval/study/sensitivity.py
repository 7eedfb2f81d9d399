# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Sensitivity of the ranking to the options of the metric, and agreement of rankings."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from sim2real_eval.metrics.interval import MotionDraws
from sim2real_eval.metrics.mean_wasserstein import MeanWasserstein
from sim2real_eval.metrics.options import REAL, SPEED_COMPONENTS, MetricOptions, UncertaintyOptions
from sim2real_eval.metrics.published import (
    RankAgreement,
    kendall_taus,
    published_vepd,
    rank_agreement,
)
from sim2real_eval.metrics.scores import POOLED, RunScore, VepdRow, ranks, score_run
from sim2real_eval.metrics.uncertainty import MIN_DEGREES
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.measurements import FloatArray
from .outcome import StudyOutcome, scored_runs, speed_series
from .run import RunKey, StudyRun

_CHANGES: tuple[tuple[str, Any], ...] = (
    ('detrend', 'mean'),
    ('detrend', 'none'),
    ('spectrum', 'power'),
    ('spectrum', 'magnitude'),
    ('moving_average', 1),
    ('moving_average', 2),
    ('moving_average', 4),
    ('rate', 5.0),
    ('rate', 15.0),
    ('rate', 30.0),
    ('warmup', 0.0),
    ('warmup', 2.0),
    ('warmup', 5.0),
    ('rezero', 'none'),
    ('rezero', 'each'),
)
# Weights of W1, m/s, in the sum; W2 has the remaining weight. VEPD has 0.5.
_SHARES = (0.0, 0.1, 0.25, 0.75, 0.9, 1.0)
UNIT_FREE = 'unit-free'
"""Each distance in standard deviations of the real runs: (W1 / s1 + W2 / s2) / 2."""


class ScoringVariant(NamedTuple):
    """Speed component and options of a score."""

    label: str
    component: str  # speed that is compared
    options: MetricOptions


@dataclasses.dataclass(frozen=True)
class SensitivityRow:
    """VEPD of all models of a table for one variation; None if a run cannot be scored."""

    label: str
    vepd: tuple[float | None, ...]
    ranks: tuple[float | None, ...]
    with_own: RankAgreement  # with the ranking by the options of the study
    problem: str = ''  # reason if it cannot be scored


Row = TypeVar('Row')


@dataclasses.dataclass(frozen=True)
class RankedTable(Generic[Row]):
    """Rows that each rank all models under one judge, for one group and scenario."""

    judge: str
    group: str
    scenario: str  # `all` for all scenarios together
    models: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def place(self) -> dict[str, str]:
        """Judge, group and scenario as a mapping."""
        return {'judge': self.judge, 'group': self.group, 'scenario': self.scenario}


SensitivityTable = RankedTable[SensitivityRow]
"""All variations for all models, the options of the study first."""


def variations(component: str, options: MetricOptions) -> list[ScoringVariant]:
    """Return the options of the study, and variations with one option changed."""
    variants = [ScoringVariant('as the study', component, options)]
    variants += [
        ScoringVariant(f'component {other}', other, options)
        for other in SPEED_COMPONENTS
        if other != component
    ]
    for name, value in _CHANGES:
        if getattr(options, name) != value:
            changed = dataclasses.replace(options, **{name: value})
            text = f'{value:g}' if isinstance(value, float) else value
            variants.append(ScoringVariant(f'{name} {text}', component, changed))
    return variants


def sensitivity_tables(outcome: StudyOutcome, options: MetricOptions) -> list[SensitivityTable]:
    """Score a study in all variations, by judge, group and scenario.

    `options` are those of the study.
    """
    variants = variations(str(outcome.record['component']), options)
    return [
        table
        for judge, group in outcome.compared_pairs
        for table in _tables(judge, group, _score_variants(outcome, judge, group, variants))
    ]


class ScoredVariant(NamedTuple):
    """Distances of all models for a variation, or the reason why there are none."""

    label: str
    rows: list[VepdRow]
    problem: str


def _score_variants(
    outcome: StudyOutcome, judge: str, group: str, variants: Sequence[ScoringVariant]
) -> list[ScoredVariant]:
    scores: list[dict[RunKey, RunScore]] = [{} for _ in variants]
    problems = [''] * len(variants)
    for runs in outcome.by_model(judge, group).values():
        for run in runs:
            name = f'{run.key.recording} ({run.key.model})'
            signals = outcome.signals(run.key)
            series = {
                component: speed_series(signals, component, name) for component in SPEED_COMPONENTS
            }
            for number, variant in enumerate(variants):
                try:
                    scores[number][run.key] = score_run(series[variant.component], variant.options)
                except Sim2RealError as error:
                    problems[number] = problems[number] or str(error)
    scored = [
        ScoredVariant(
            variant.label, [] if problem else outcome.table(judge, group, run_scores), problem
        )
        for variant, run_scores, problem in zip(variants, scores, problems, strict=True)
    ]
    return scored + weighted_distances(scored[0].rows, outcome.by_model(judge, group)[REAL])


def weighted_distances(rows: Sequence[VepdRow], real: Sequence[StudyRun]) -> list[ScoredVariant]:
    """Return the distances of the study with other weights, and without units."""
    variants = [
        ScoredVariant(f'W1 x {share:g}', [
            dataclasses.replace(row, vepd=share * row.w_rmse + (1.0 - share) * row.w_entropy)
            for row in rows
        ], '')
        for share in _SHARES
    ]  # fmt: skip
    spreads = {}
    for scenario in dict.fromkeys(row.scenario for row in rows):
        scores = [run.score for run in real if scenario in (POOLED, run.scenario)]
        spread = [np.std([getattr(score, name) for score in scores], ddof=1) if len(scores) > 1
                  else 0.0 for name in ('rmse', 'entropy_difference')]  # fmt: skip
        spreads[scenario] = spread
    if not all(value > 0.0 for spread in spreads.values() for value in spread):
        return [
            *variants,
            ScoredVariant(UNIT_FREE, [], 'the real runs of a scenario do not differ'),
        ]
    free = [
        dataclasses.replace(row, vepd=float(np.mean(
            np.array([row.w_rmse, row.w_entropy]) / spreads[row.scenario]
        )))
        for row in rows
    ]  # fmt: skip
    return [*variants, ScoredVariant(UNIT_FREE, free, '')]


def _tables(judge: str, group: str, scored: Sequence[ScoredVariant]) -> list[SensitivityTable]:
    study_rows = scored[0].rows
    scenarios = list(dict.fromkeys(row.scenario for row in study_rows))
    # The pooled rows of a single scenario are equal to its own rows.
    chosen = scenarios if len(scenarios) > 2 else [name for name in scenarios if name != POOLED]
    tables = []
    for scenario in chosen:
        reference = [row for row in study_rows if row.scenario == scenario]
        models = tuple(row.model for row in reference)
        rows = []
        for label, all_rows, problem in scored:
            by_model = {row.model: row for row in all_rows if row.scenario == scenario}
            if not by_model:
                empty = (None,) * len(models)
                unknown = RankAgreement(0, None, None, None)
                rows.append(SensitivityRow(label, empty, empty, unknown, problem))
                continue
            values = tuple(by_model[model].vepd for model in models)
            agreement = rank_agreement(values, [row.vepd for row in reference])
            rows.append(SensitivityRow(label, values, tuple(ranks(values).tolist()), agreement))
        tables.append(SensitivityTable(judge, group, scenario, models, tuple(rows)))
    return tables


PAPER = 'published'
"""Name of the ranking in Tables I and II of the paper."""


@dataclasses.dataclass(frozen=True)
class RankingPair:
    """Two rankings of one scenario."""

    scenario: str
    # Judge, followed by ` in ` and the group where there are several; or `published`.
    first: str
    second: str
    agreement: RankAgreement  # over the models that both rank
    adjusted: float | None = None  # p-value among all pairs of rankings of the study
    # 95 % quantiles of Kendall's tau over drawn motions; None with fewer than three motions.
    low: float | None = None
    high: float | None = None

    @property
    def interval(self) -> str:
        """The quantiles as text; empty if they are unknown."""
        return '' if self.low is None else f'{self.low:.2f} to {self.high:.2f}'


def ranking_pairs(outcome: StudyOutcome) -> list[RankingPair]:
    """Return the agreement of every two rankings of the study, by scenario.

    The ranking of the paper is included for scenarios in which it has a VEPD of two or more of the
    models.
    """
    rankings: dict[str, dict[str, dict[str, float]]] = {}
    places: dict[str, tuple[str, str]] = {}
    for judge, group in outcome.compared_pairs:
        label = f'{judge} in {group}' if len(outcome.groups) > 1 else judge
        places[label] = judge, group
        for row in outcome.table(judge, group):
            rankings.setdefault(row.scenario, {}).setdefault(label, {})[row.model] = row.vepd
    if set(rankings) == {POOLED} or len(rankings) == 2:
        # The pooled rows of a single scenario are equal to its own rows.
        rankings.pop(POOLED, None)
    pairs = []
    for scenario, ranked in rankings.items():
        printed = {model: published_vepd(model, scenario) for model in outcome.models}
        published = {model: value for model, value in printed.items() if value is not None}
        compared = {**ranked, **({PAPER: published} if len(published) > 1 else {})}
        distances = {
            name: [ranking.get(model, np.nan) for model in outcome.models]
            for name, ranking in {**compared, PAPER: published}.items()
        }
        drawn = {
            label: _drawn_distances(outcome, *place, scenario)
            for label, place in places.items()
            if len(compared) > 1
        }
        # The motions of the paper cannot be drawn.
        drawn[PAPER] = np.array([distances[PAPER]])
        for first, second in itertools.combinations(compared, 2):
            agreement = rank_agreement(distances[first], distances[second])
            ends = _tau_interval(drawn[first], drawn[second])
            pairs.append(RankingPair(scenario, first, second, agreement, None, *ends))
    adjusted = holm([pair.agreement.p_value for pair in pairs])
    return [
        dataclasses.replace(pair, adjusted=p_value)
        for pair, p_value in zip(pairs, adjusted, strict=True)
    ]


def _drawn_distances(
    outcome: StudyOutcome, judge: str, group: str, scenario: str
) -> FloatArray | None:
    """Return VEPD of all models over drawn motions, `(draws, models)`.

    The draws are the same for every judge. Models without runs have NaN. Returns None if there are
    too few motions.
    """
    record: Mapping[str, Any] = outcome.record.get('uncertainty') or {}
    options = UncertaintyOptions.from_mapping(record, 'uncertainty')
    runs = {
        model: scored_runs(
            [run for run in model_runs if scenario in (run.scenario, POOLED)], outcome.blocks
        )
        for model, model_runs in outcome.by_model(judge, group).items()
        if any(scenario in (run.scenario, POOLED) for run in model_runs)
    }
    real = runs.pop(REAL, None)
    if real is None:
        return None
    seed = int(outcome.record.get('seed', 0))
    draws = MotionDraws.draw_motions(real, runs.values(), options.resamples, seed)
    if draws.freedom(real, *runs.values()).degrees < MIN_DEGREES:
        return None
    distances = np.full((options.resamples, len(outcome.models)), np.nan)
    for k, model in enumerate(outcome.models):
        if model in runs:
            distance = MeanWasserstein.from_values(
                np.concatenate([real.values, runs[model].values])
            )
            for rows, weights in draws.weights(real, runs[model]):
                distances[rows, k] = distance.weighted_distance(weights)
    return distances


def _tau_interval(
    first: FloatArray | None, second: FloatArray | None
) -> tuple[float | None, float | None]:
    """Return 95 % quantiles of Kendall's tau of drawn distances, or None without any."""
    if first is None or second is None:
        return None, None
    ranked = np.isfinite(first[0]) & np.isfinite(second[0])
    taus = kendall_taus(first[:, ranked], second[:, ranked])
    taus = taus[np.isfinite(taus)]
    if not len(taus):
        return None, None
    low, high = np.quantile(taus, (0.025, 0.975))
    return float(low), float(high)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p-values adjusted for multiple testing, in their order; None stays None.

    The probability that any of them falls below a level by chance is at most that level, for any
    dependence between them (S. Holm, Scand. J. Stat. 6, 1979).
    """
    ordered = sorted((p_value, i) for i, p_value in enumerate(p_values) if p_value is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p_value, i) in enumerate(ordered):
        highest = max(highest, min((len(ordered) - rank) * p_value, 1.0))
        adjusted[i] = highest
    return adjusted
