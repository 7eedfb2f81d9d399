# SPDX-License-Identifier: Apache-2.0
"""How the ranking depends on the options of the metric: VEPD once more, one option changed."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from sim2real_eval.metrics.distances import POOLED, VepdRow, ranks
from sim2real_eval.metrics.options import SPEED_COMPONENTS, MetricOptions
from sim2real_eval.metrics.published import (
    RankAgreement,
    kendall_taus,
    published_vepd,
    rank_agreement,
)
from sim2real_eval.metrics.scores import RunScore, score_run
from sim2real_eval.metrics.series_folder import REAL
from sim2real_eval.metrics.uncertainty.assessment import FEWEST_DEGREES
from sim2real_eval.metrics.uncertainty.interval import MeanWasserstein
from sim2real_eval.metrics.uncertainty.motions import MotionDraws
from sim2real_eval.metrics.uncertainty.result import UncertaintyOptions
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.measurements import FloatArray
from .outcome import StudyOutcome, speed_series
from .run import RunKey, StudyRun, scored_runs

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
# Shares of W1, m/s, in the sum; that of W2 is the rest. VEPD has 0.5.
_SHARES = (0.0, 0.1, 0.25, 0.75, 0.9, 1.0)
UNIT_FREE = 'unit-free'
"""Each distance in standard deviations of the real runs: (W1 / s1 + W2 / s2) / 2."""


class ScoringVariant(NamedTuple):
    """A way to score."""

    label: str
    component: str  # speed that is compared
    options: MetricOptions


@dataclasses.dataclass(frozen=True)
class SensitivityRow:
    """VEPD of all models of a table, scored in one way; None where a run cannot be scored so."""

    label: str
    vepd: tuple[float | None, ...]
    ranks: tuple[float | None, ...]
    with_own: RankAgreement  # with the ranking by the study's own options
    problem: str = ''  # why it cannot be scored; empty if it can


Row = TypeVar('Row')


@dataclasses.dataclass(frozen=True)
class RankedTable(Generic[Row]):
    """Rows that each rank all models, under one judge, of one group and scenario."""

    judge: str
    group: str
    scenario: str  # `all` pools them
    models: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def place(self) -> dict[str, str]:
        """Judge, group and scenario by these names."""
        return {'judge': self.judge, 'group': self.group, 'scenario': self.scenario}


SensitivityTable = RankedTable[SensitivityRow]
"""All variations for all models, the study's own options first."""


def variations(component: str, options: MetricOptions) -> list[ScoringVariant]:
    """Return the study's own options and, one by one, what they could have been."""
    found = [ScoringVariant('as the study', component, options)]
    found += [
        ScoringVariant(f'component {other}', other, options)
        for other in SPEED_COMPONENTS
        if other != component
    ]
    for name, value in _CHANGES:
        if getattr(options, name) != value:
            changed = dataclasses.replace(options, **{name: value})
            shown = f'{value:g}' if isinstance(value, float) else value
            found.append(ScoringVariant(f'{name} {shown}', component, changed))
    return found


def sensitivity_tables(outcome: StudyOutcome, options: MetricOptions) -> list[SensitivityTable]:
    """Score a study in all variations: judge by judge, group by group, scenario by scenario.

    `options`: with which it was scored.
    """
    ways = variations(str(outcome.record['component']), options)
    return [
        table
        for judge, group in outcome.compared
        for table in _tables(judge, group, _scored(outcome, judge, group, ways))
    ]


class _Way(NamedTuple):
    label: str
    rows: list[VepdRow]
    problem: str


def _scored(
    outcome: StudyOutcome, judge: str, group: str, ways: Sequence[ScoringVariant]
) -> list[_Way]:
    scores: list[dict[RunKey, RunScore]] = [{} for _ in ways]
    problems = [''] * len(ways)
    for runs in outcome.by_model(judge, group).values():
        for run in runs:
            name = f'{run.key.recording} ({run.key.model})'
            signals = outcome.signals(run.key)
            series = {each: speed_series(signals, each, name) for each in SPEED_COMPONENTS}
            for number, way in enumerate(ways):
                try:
                    scores[number][run.key] = score_run(series[way.component], way.options)
                except Sim2RealError as error:
                    problems[number] = problems[number] or str(error)
    found = [
        _Way(way.label, [] if problem else outcome.table(judge, group, one), problem)
        for way, one, problem in zip(ways, scores, problems, strict=True)
    ]
    return found + weighted(found[0].rows, outcome.by_model(judge, group)[REAL])


def weighted(rows: Sequence[VepdRow], real: Sequence[StudyRun]) -> list[_Way]:
    """Return the study's own distances with other weights, and without units."""
    found = [
        _Way(f'W1 x {share:g}', [
            dataclasses.replace(row, vepd=share * row.w_rmse + (1.0 - share) * row.w_entropy)
            for row in rows
        ], '')
        for share in _SHARES
    ]  # fmt: skip
    spreads = {}
    for scenario in dict.fromkeys(row.scenario for row in rows):
        scores = [one.score for one in real if scenario in (POOLED, one.scenario)]
        spread = [np.std([getattr(score, name) for score in scores], ddof=1) if len(scores) > 1
                  else 0.0 for name in ('rmse', 'entropy_difference')]  # fmt: skip
        spreads[scenario] = spread
    if not all(value > 0.0 for spread in spreads.values() for value in spread):
        return [*found, _Way(UNIT_FREE, [], 'the real runs of a scenario do not differ')]
    free = [
        dataclasses.replace(row, vepd=float(np.mean(
            np.array([row.w_rmse, row.w_entropy]) / spreads[row.scenario]
        )))
        for row in rows
    ]  # fmt: skip
    return [*found, _Way(UNIT_FREE, free, '')]


def _tables(judge: str, group: str, scored: Sequence[_Way]) -> list[SensitivityTable]:
    own = scored[0].rows
    scenarios = list(dict.fromkeys(row.scenario for row in own))
    # With one scenario the pooled rows say the same.
    chosen = scenarios if len(scenarios) > 2 else [name for name in scenarios if name != POOLED]
    found = []
    for scenario in chosen:
        mine = [row for row in own if row.scenario == scenario]
        models = tuple(row.model for row in mine)
        rows = []
        for label, all_rows, problem in scored:
            by_model = {row.model: row for row in all_rows if row.scenario == scenario}
            if not by_model:
                nothing = (None,) * len(models)
                unknown = RankAgreement(0, None, None, None)
                rows.append(SensitivityRow(label, nothing, nothing, unknown, problem))
                continue
            values = tuple(by_model[model].vepd for model in models)
            agreement = rank_agreement(values, [row.vepd for row in mine])
            rows.append(SensitivityRow(label, values, tuple(ranks(values).tolist()), agreement))
        found.append(SensitivityTable(judge, group, scenario, models, tuple(rows)))
    return found


# Do judges, profiles and conditions rank the models alike, and as the paper's tables?

PAPER = 'published'
"""Stands for the ranking in Tables I and II of the paper."""


@dataclasses.dataclass(frozen=True)
class RankingPair:
    """Two rankings of one scenario."""

    scenario: str
    # Judge, followed by ` in ` and the group where there are several; or `published`.
    first: str
    second: str
    agreement: RankAgreement  # over the models that both rank
    adjusted: float | None = None  # p-value among all pairs of rankings of the study
    # 95 % quantiles of Kendall's tau if other motions were drawn; None with fewer than three.
    low: float | None = None
    high: float | None = None

    @property
    def interval(self) -> str:
        """The quantiles as text; empty where they cannot be had."""
        return '' if self.low is None else f'{self.low:.2f} to {self.high:.2f}'


def ranking_pairs(outcome: StudyOutcome) -> list[RankingPair]:
    """Return how every two rankings of the study agree, scenario by scenario.

    Where the paper prints a VEPD for two or more of the models, its ranking is one of them, unless
    the study ranks in no scenario of the paper.
    """
    rankings: dict[str, dict[str, dict[str, float]]] = {}
    places: dict[str, tuple[str, str]] = {}
    for judge, group in outcome.compared:
        label = f'{judge} in {group}' if len(outcome.groups) > 1 else judge
        places[label] = judge, group
        for row in outcome.table(judge, group):
            rankings.setdefault(row.scenario, {}).setdefault(label, {})[row.model] = row.vepd
    if set(rankings) == {POOLED} or len(rankings) == 2:
        # With one scenario the pooled rows say the same.
        rankings.pop(POOLED, None)
    found = []
    for scenario, ranked in rankings.items():
        drawn = {
            label: _drawn_distances(outcome, *place, scenario) for label, place in places.items()
        }
        printed = {model: published_vepd(model, scenario) for model in outcome.models}
        known = {model: value for model, value in printed.items() if value is not None}
        both = {**ranked, **({PAPER: known} if len(known) > 1 else {})}
        # A printed ranking has no motions to draw.
        drawn[PAPER] = np.array([[known.get(model, np.nan) for model in outcome.models]])
        for (first, one), (second, other) in itertools.combinations(both.items(), 2):
            agreement = rank_agreement(
                [one.get(model, np.nan) for model in outcome.models],
                [other.get(model, np.nan) for model in outcome.models],
            )
            ends = _ends(drawn[first], drawn[second])
            found.append(RankingPair(scenario, first, second, agreement, None, *ends))
    adjusted = holm([pair.agreement.p_value for pair in found])
    return [
        dataclasses.replace(pair, adjusted=one) for pair, one in zip(found, adjusted, strict=True)
    ]


def _drawn_distances(
    outcome: StudyOutcome, judge: str, group: str, scenario: str
) -> FloatArray | None:
    """Return VEPD of all models if other motions were drawn, `(draws, models)`.

    The draws are the same for every judge. NaN for a model without runs; None where the motions
    are too few.
    """
    given: Mapping[str, Any] = outcome.record.get('uncertainty') or {}
    options = UncertaintyOptions.from_mapping(given, 'uncertainty')
    runs = {
        model: scored_runs(
            [run for run in found if scenario in (run.scenario, POOLED)], outcome.blocks
        )
        for model, found in outcome.by_model(judge, group).items()
        if any(scenario in (run.scenario, POOLED) for run in found)
    }
    real = runs.pop(REAL, None)
    if real is None:
        return None
    seed = int(outcome.record.get('seed', 0))
    draws = MotionDraws.of(real, runs.values(), options.resamples, seed)
    if draws.freedom(real, *runs.values()).degrees < FEWEST_DEGREES:
        return None
    found = np.full((options.resamples, len(outcome.models)), np.nan)
    for k, model in enumerate(outcome.models):
        if model in runs:
            distance = MeanWasserstein.of(np.concatenate([real.values, runs[model].values]))
            weights = [draws.weights(real), -draws.weights(runs[model])]
            found[:, k] = distance.weighted(np.concatenate(weights, axis=1))
    return found


def _ends(one: FloatArray | None, other: FloatArray | None) -> tuple[float | None, float | None]:
    """Return 95 % quantiles of Kendall's tau of drawn distances; None where there are none."""
    if one is None or other is None:
        return None, None
    both = np.isfinite(one[0]) & np.isfinite(other[0])
    taus = kendall_taus(one[:, both], other[:, both])
    taus = taus[np.isfinite(taus)]
    if not len(taus):
        return None, None
    low, high = np.quantile(taus, (0.025, 0.975))
    return float(low), float(high)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p-values adjusted for all that are looked at, in their order; None stays None.

    The probability that any of them falls below a level by accident is at most that level, however
    they depend on each other (S. Holm, Scand. J. Stat. 6, 1979).
    """
    known = sorted((one, i) for i, one in enumerate(p_values) if one is not None)
    found: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for place, (one, i) in enumerate(known):
        highest = max(highest, min((len(known) - place) * one, 1.0))
        found[i] = highest
    return found
