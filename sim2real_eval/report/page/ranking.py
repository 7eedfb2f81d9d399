# SPDX-License-Identifier: Apache-2.0
"""Standings of the models under one judge: distances with their uncertainty."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from sim2real_eval.metrics.published import TABLE_2, published_vepd, rank_agreement
from sim2real_eval.metrics.scores import POOLED, VepdRow
from sim2real_eval.metrics.series import PAPER_SCENARIOS
from sim2real_eval.metrics.uncertainty import DistanceUncertainty, Uncertainty
from sim2real_eval.report.console import NONE, decimal, p_value_text, span
from sim2real_eval.report.palette import is_wide
from sim2real_eval.report.ranking_tables import tied_ranks
from sim2real_eval.study.outcome import StudyOutcome
from sim2real_eval.study.secondary_results import study_uncertainty


@dataclasses.dataclass(frozen=True, eq=False)
class Standing:
    """Models under a judge in a group of recordings, empty in a study without groups.

    Rows are per scenario and pooled; `uncertainty` maps a scenario, or `all`, to the result of
    resampling.
    """

    judge: str
    group: str
    rows: tuple[VepdRow, ...]
    uncertainty: Mapping[str, Uncertainty]

    @property
    def known(self) -> Uncertainty:
        """Uncertainty of the pooled rows."""
        return self.uncertainty[POOLED]

    @property
    def label(self) -> str:
        """Judge and group."""
        return f'{self.judge}, {self.group}' if self.group else self.judge

    @property
    def scenarios(self) -> list[str]:
        """Scenarios, with the pooled one last if there is more than one scenario."""
        names = list(dict.fromkeys(row.scenario for row in self.rows))
        return names if len(names) > 2 else [name for name in names if name != POOLED]

    @property
    def whole(self) -> str:
        """Scenario of the ranking: all scenarios pooled, or the only one."""
        return self.scenarios[-1]

    @property
    def where(self) -> str:
        """Scenario of the ranking in words."""
        return 'of all scenarios pooled' if self.whole == POOLED else f'in {self.whole}'

    def published(self, model: str, scenario: str = '') -> float | None:
        """Return the published VEPD for a scenario, or None; the default scenario is `whole`.

        The published pooled VEPD is valid only for the three scenarios of the paper together.
        """
        scenario = scenario or self.whole
        ours = {PAPER_SCENARIOS.get(row.scenario, row.scenario) for row in self.rows}
        if scenario == POOLED and ours != {*TABLE_2, POOLED}:
            return None
        return published_vepd(model, scenario)

    def row(self, model: str, scenario: str = POOLED) -> VepdRow | None:
        """Return the row of a model and scenario, or None if there is none."""
        return next(
            (row for row in self.rows if (row.model, row.scenario) == (model, scenario)), None
        )

    def pooled(self) -> list[VepdRow]:
        """Return the pooled rows, the closest first."""
        return sorted(
            (row for row in self.rows if row.scenario == POOLED), key=lambda row: row.rank
        )

    def agreement(self, scenario: str = POOLED) -> float | None:
        """Return Kendall's tau between our order and the published one; None below 3 models."""
        pairs = [
            (row.vepd, published)
            for row in self.rows
            if row.scenario == scenario
            and (published := self.published(row.model, scenario)) is not None
        ]
        if len(pairs) < 3:
            return None
        first, second = zip(*pairs, strict=True)
        return rank_agreement(first, second).kendall


def standings(outcome: StudyOutcome) -> list[Standing]:
    """Return the standing of the models for each judge and group."""
    return [
        Standing(judge, group, tuple(outcome.table(judge, group)), uncertainty)
        for (judge, group), uncertainty in study_uncertainty(outcome).items()
    ]


@dataclasses.dataclass(frozen=True)
class RankingRow:
    """A row of the ranking; numbers are texts, `published` empty where the paper prints none."""

    rank: str
    name: str
    colour: str
    runs: str
    vepd: str
    interval: str
    null_high: str
    p_value: str
    tied: str
    w_rmse: str
    w_entropy: str
    published: str


@dataclasses.dataclass(frozen=True)
class Ranking:
    """All rows, the closest model first."""

    places: tuple[RankingRow, ...]

    @property
    def published(self) -> bool:
        """Whether the paper prints a number for any of the models."""
        return any(place.published for place in self.places)

    @property
    def has_ties(self) -> bool:
        """Whether it is known which models do not differ significantly."""
        return any(place.tied for place in self.places)


def ranking(standing: Standing, colours: Mapping[str, str]) -> Ranking:
    """Return the ranking under a judge; `colours` are the classes of the models' colours."""
    models = {model.model: model for model in standing.known.models}
    places = []
    for row in standing.pooled():
        model = models[row.model]
        published = standing.published(row.model)
        places.append(
            RankingRow(
                rank=f'{row.rank:g}',
                name=row.model,
                colour=colours[row.model],
                runs=f'{row.n_real}/{row.n_sim}',
                vepd=decimal(row.vepd),
                interval=span(model.low, model.high),
                null_high=decimal(model.null_high),
                p_value=p_value_text(model.adjusted, NONE),
                tied=tied_ranks(standing.known, model),
                w_rmse=decimal(row.w_rmse),
                w_entropy=decimal(row.w_entropy),
                published='' if published is None else decimal(published),
            )
        )
    return Ranking(tuple(places))


def first_distance(models: Sequence[DistanceUncertainty]) -> float:
    """Return the start of an axis of distances: 0, or more if the axis is logarithmic."""
    distances = [model.distance for model in models if model.distance > 0.0]
    if not is_wide(distances):
        return 0.0
    return min([*distances, *(model.null_high for model in models if model.null_high)]) / 1.6


def differs(uncertainty: Uncertainty, model: DistanceUncertainty) -> bool | None:
    """Return whether a model differs significantly from the real sensors; None if unknown."""
    return None if model.adjusted is None else model.adjusted <= 1.0 - uncertainty.options.level
