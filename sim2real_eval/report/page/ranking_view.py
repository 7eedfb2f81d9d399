# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""A ranking of models on a page, with its plot and legend."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from sim2real_eval.metrics.scores import POOLED
from sim2real_eval.report import console
from sim2real_eval.report.console import NONE, decimal, p_value_text, span
from .figure import Plot, SeriesStyle
from .tables import Ranking, Standing, by_scenario, differs, first_distance, ranking

_VERDICTS = {
    True: SeriesStyle('differs significantly by VEPD alone', '--unlike'),
    False: SeriesStyle('no significant difference by VEPD alone', '--like'),
    None: SeriesStyle('too few runs to decide', '--soft'),
}
_NULL = SeriesStyle('identical sensors', '--null')
_NULL_EDGE = SeriesStyle('identical sensors', '--soft')


def ranking_plot(standing: Standing, phrases: Mapping[str, str]) -> Plot:
    """Return a plot of distances and intervals per model, over the range of identical sensors."""
    uncertainty = standing.pooled_uncertainty
    order = uncertainty.order
    least = first_distance(order)
    log = least > 0.0
    ends = [
        v
        for model in order
        for v in (model.distance, model.high, model.null_high)
        if v is not None
    ]
    limits = (least, max([*ends, 1e-9]) * (1.15 if log else 1.05))
    plot = Plot(
        f'Ranking, {standing.label}: VEPD of {len(order)} models with intervals',
        'VEPD, smaller is closer' + (' (logarithmic)' if log else ''),
        log=(log, False), rows=[model.model for model in order], x_range=limits,
    )  # fmt: skip
    null = [
        (row, model.null_high) for row, model in enumerate(order) if model.null_high is not None
    ]
    if null:
        rows, highs = np.array(null).T
        plot.boxes(_NULL, left=np.full(len(rows), least), right=highs, top=rows - 0.5,
                   bottom=rows + 0.5)  # fmt: skip
        plot.segments(_NULL_EDGE, width=1.0, x0=highs, x1=highs, y0=rows - 0.5, y1=rows + 0.5)
    for verdict, source in _VERDICTS.items():
        models_of_verdict = [
            (row, model)
            for row, model in enumerate(order)
            if differs(uncertainty, model) is verdict
        ]
        if not models_of_verdict:
            continue
        whiskers = [
            (row, model.low, model.high)
            for row, model in models_of_verdict
            if model.high is not None
        ]
        if whiskers:
            y, x0, x1 = np.array(whiskers, dtype=np.float64).T
            plot.segments(source, x0=np.maximum(x0, least), y0=y, x1=x1, y1=y)
            below = y[x0 < least]
            if len(below):
                # A whole triangle, beside the end of the axis.
                edge = least * (limits[1] / least) ** 0.006
                plot.arrows(source, x=np.full(len(below), edge), y=below)
        models = [model for _, model in models_of_verdict]
        plot.dots(
            source,
            size=10.0,
            filled=source.colour if verdict else '--paper',
            x=np.array([model.distance for model in models]),
            y=[row for row, _ in models_of_verdict],
            model=[model.model for model in models],
            about=[phrases.get(model.model, NONE) for model in models],
            vepd=[decimal(model.distance) for model in models],
            interval=[span(model.low, model.high) for model in models],
            null=[decimal(model.null_high) for model in models],
            p=[p_value_text(model.adjusted, NONE) for model in models],
        )  # fmt: skip
    plot.hover({'model': '@model', 'is': '@about', 'VEPD': '@vepd', 'interval': '@interval',
                'identical sensors up to': '@null', 'p-value': '@p'})  # fmt: skip
    return plot


@dataclasses.dataclass(frozen=True, eq=False)
class RankingView:
    """A ranking with its plot, its table by scenario and its agreement with the paper."""

    standing: Standing
    ranking: Ranking
    plot: Plot
    by_scenario: console.DataTable | None
    agreement: str

    @property
    def legend(self) -> list[tuple[str, str, str]]:
        """Texts of the legend, with the classes of their colours and of their marks."""
        entries = [
            (source.name, source.kind, 'ring full' if verdict else 'ring')
            for verdict, source in _VERDICTS.items()
            if self.plot.has('scatter', source)
        ]
        if any(self.plot.has('segment', source) for source in _VERDICTS.values()):
            entries.append((f'{self.level} interval', '', 'whisker'))
        if self.plot.has('arrow'):
            entries.append(('the interval begins left of the axis', '', 'arrow'))
        if self.plot.has('quad', _NULL):
            text = f'{self.level} of studies with identical sensors have a smaller VEPD'
            entries.append((text, '', 'band'))
        return entries

    @property
    def level(self) -> str:
        """Level of the intervals."""
        return f'{100 * self.standing.pooled_uncertainty.options.level:g} %'


def ranking_view(
    standing: Standing, colours: Mapping[str, str], phrases: Mapping[str, str]
) -> RankingView:
    """Return a ranking with its table by scenario and its agreement with the published one.

    `phrases` maps models to short descriptions.
    """
    correlations = [
        f'{"pooled" if name == POOLED else name} {tau:+.2f}'.replace('-', console.MINUS)
        for name in standing.scenarios
        if (tau := standing.agreement(name)) is not None
    ]
    agreement = (
        f'Kendall rank correlation with the published order: {", ".join(correlations)} '
        '(1: the same order, \N{MINUS SIGN}1: the reverse).'
        if correlations
        else ''
    )
    return RankingView(
        standing,
        ranking(standing, colours),
        ranking_plot(standing, phrases),
        by_scenario(standing, colours),
        agreement,
    )
