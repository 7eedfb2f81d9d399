# SPDX-License-Identifier: Apache-2.0
"""How the models stand under one judge: distances with what resampling says of them, and rows of a
table, each with its interval drawn against the null distribution.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

from markupsafe import Markup
from scipy.stats import kendalltau

from sim2real_eval.metrics.distances import POOLED, VepdRow
from sim2real_eval.metrics.published import published_vepd
from sim2real_eval.metrics.uncertainty.result import DistanceUncertainty, Uncertainty
from sim2real_eval.report.page.figure import NONE, Scale, decimal, span
from sim2real_eval.report.page.markup import element, joined
from sim2real_eval.study.outcome import StudyOutcome
from sim2real_eval.study.secondary_results import study_uncertainty


@dataclasses.dataclass(frozen=True, eq=False)
class Standing:
    """Models under a judge in a group of recordings, empty in a study without groups.

    Rows are per scenario and pooled; `uncertainty` is by scenario, or `all`, what resampling says
    of them.
    """

    judge: str
    group: str
    rows: tuple[VepdRow, ...]
    uncertainty: Mapping[str, Uncertainty]

    @property
    def known(self) -> Uncertainty:
        """What is known of the pooled rows."""
        return self.uncertainty[POOLED]

    @property
    def label(self) -> str:
        """Judge and group."""
        return f'{self.judge}, {self.group}' if self.group else self.judge

    @property
    def scenarios(self) -> list[str]:
        """Scenarios, the pooled one last unless it would say the same as the only one."""
        found = list(dict.fromkeys(row.scenario for row in self.rows))
        return found if len(found) > 2 else [name for name in found if name != POOLED]

    @property
    def whole(self) -> str:
        """What the ranking is over: all scenarios, or the only one."""
        return self.scenarios[-1]

    @property
    def where(self) -> str:
        """The same in words."""
        return 'of all scenarios pooled' if self.whole == POOLED else f'in {self.whole}'

    def published(self, model: str) -> float | None:
        """Return what the paper prints for what the ranking is over; None if nothing."""
        return published_vepd(model, self.whole)

    def row(self, model: str, scenario: str = POOLED) -> VepdRow | None:
        """Return a row; None where there is no run of both sides."""
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
            and (published := published_vepd(row.model, scenario)) is not None
        ]
        if len(pairs) < 3:
            return None
        tau = float(kendalltau(*zip(*pairs, strict=True)).statistic)
        return tau if tau == tau else None


def standings(outcome: StudyOutcome) -> list[Standing]:
    """Return how the models stand under each judge, in each group."""
    return [
        Standing(judge, group, tuple(outcome.table(judge, group)), known)
        for (judge, group), known in study_uncertainty(outcome).items()
    ]


_WIDE = 12.0
"""Ratio of largest to smallest distance above which the scale is logarithmic."""

_HEIGHT = 30.0


@dataclasses.dataclass(frozen=True)
class RankingRow:
    """A row of the ranking; numbers are texts, `published` empty where the paper prints none.

    `strip` shows interval, distance and null quantile on the common scale.
    """

    rank: str
    name: str
    colour: str
    runs: str
    vepd: str
    interval: str
    null_high: str
    p_value: str
    significance_groups: str
    w_rmse: str
    w_entropy: str
    published: str
    strip: Markup


@dataclasses.dataclass(frozen=True)
class Ranking:
    """All rows, the closest model first, and the numbers of the scale above them."""

    places: tuple[RankingRow, ...]
    scale: Markup
    logarithmic: bool

    @property
    def published(self) -> bool:
        """Whether the paper prints a number for any of the models."""
        return any(place.published for place in self.places)

    @property
    def has_groups(self) -> bool:
        """Whether models are grouped by significance."""
        return any(place.significance_groups for place in self.places)


def ranking(standing: Standing, colours: Mapping[str, str]) -> Ranking:
    """Return the ranking under a judge; `colours` are the classes of the models' colours."""
    known = {one.model: one for one in standing.known.models}
    scale = _scale(standing)
    places = []
    for row in standing.pooled():
        one = known.get(row.model) or DistanceUncertainty(
            row.model, row.n_real, row.n_sim, row.vepd
        )
        published = standing.published(row.model)
        places.append(
            RankingRow(
                rank=f'{row.rank:g}',
                name=row.model,
                colour=colours[row.model],
                runs=f'{row.n_real}/{row.n_sim}',
                vepd=decimal(row.vepd),
                interval=NONE if one.low is None or one.high is None else span(one.low, one.high),
                null_high=decimal(one.null_high),
                p_value=p_value_text(one.p_value if one.adjusted is None else one.adjusted),
                significance_groups=one.significance_groups,
                w_rmse=decimal(row.w_rmse),
                w_entropy=decimal(row.w_entropy),
                published='' if published is None else decimal(published),
                strip=_strip(scale, one, published),
            )
        )
    return Ranking(tuple(places), _numbers(scale), scale.logarithmic)


def p_value_text(p_value: float | None) -> str:
    """Return a probability for a table."""
    if p_value is None:
        return NONE
    return '< 0.001' if p_value < 0.001 else f'{p_value:.3f}'


def _scale(standing: Standing) -> Scale:
    known = standing.known.models
    distances = [one.distance for one in known if one.distance > 0.0]
    ends = [one.high for one in known if one.high is not None]
    ends += [one.null_high for one in known if one.null_high is not None]
    ends += [standing.published(one.model) or 0.0 for one in known]
    most = max([*distances, *ends, 1e-9])
    if distances and max(distances) / min(distances) > _WIDE:
        medians = [one.null_median for one in known if one.null_median]
        least = min([*distances, *medians]) / 1.6
        return Scale(least, most * 1.15, 0.0, 100.0, logarithmic=True)
    return Scale(0.0, most * 1.05, 0.0, 100.0)


def _at(scale: Scale, value: float) -> str:
    """Return a place in per cent of the width; what is left of the scale at its edge."""
    place = float(scale(value)) if value > 0.0 or not scale.logarithmic else 0.0
    return f'{min(max(place, 0.0), 100.0):.2f}%'


def _strip(scale: Scale, one: DistanceUncertainty, published: float | None) -> Markup:
    middle = _HEIGHT / 2.0
    marks: list[Markup] = []
    said = f'VEPD {decimal(one.distance)}'
    if one.null_high is not None:
        marks.append(
            element('rect', class_='null', x=0, y=0, height=_HEIGHT,
                    width=_at(scale, one.null_high))
        )  # fmt: skip
        said += f'; identical sensors score up to {decimal(one.null_high)}'
    marks += [
        element('line', class_='grid', x1=_at(scale, value), x2=_at(scale, value), y1=0,
                y2=_HEIGHT)
        for value, _ in scale.ticks(4)
    ]  # fmt: skip
    if one.low is not None and one.high is not None:
        low, high = _at(scale, one.low), _at(scale, one.high)
        marks.append(element('line', class_='interval', x1=low, x2=high, y1=middle, y2=middle))
        marks += [
            element('line', class_='interval', x1=at, x2=at, y1=middle - 5, y2=middle + 5)
            for at, value in ((low, one.low), (high, one.high))
            if value > 0.0
        ]
        said += f'; interval {span(one.low, one.high)}'
    if published is not None:
        marks.append(element('circle', class_='paper', cx=_at(scale, published), cy=middle, r=4.5))
        said += f'; published {decimal(published)}'
    marks.append(element('circle', class_='mark', cx=_at(scale, one.distance), cy=middle, r=5.5))
    return element(
        'svg', element('title', said), *marks, class_='strip', width='100%', height=_HEIGHT,
        role='img', aria_label=said,
    )  # fmt: skip


def _numbers(scale: Scale) -> Markup:
    texts = []
    for value, text in scale.ticks(4):
        place = float(scale(value))
        if not math.isfinite(place) or not -0.1 <= place <= 100.1:
            continue
        anchor = 'start' if place < 4 else 'end' if place > 96 else 'middle'
        texts.append(element('text', text, x=f'{place:.2f}%', y=12, text_anchor=anchor))
    return element(
        'svg', joined(texts), class_='strip numbers', width='100%', height=16, aria_hidden='true'
    )
