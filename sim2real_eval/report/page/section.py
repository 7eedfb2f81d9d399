# SPDX-License-Identifier: Apache-2.0
"""Sections of a page: one judge, and the other metrics, options and judges."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from sim2real_eval.metrics.scores import POOLED
from sim2real_eval.report import console
from sim2real_eval.report.ranking_tables import (
    RankLines,
    metric_lines,
    pose_difference_table,
    sensitivity_lines,
)
from sim2real_eval.study.outcome import StudyOutcome
from sim2real_eval.study.secondary_results import SideResults
from .evidence import JudgeSignals, RunSignals, gather
from .figure import Plot, SeriesStyle
from .plots import (
    consistency_plot,
    ranking_plot,
    scores_plot,
    spectra_plot,
    speed_plot,
    track_plot,
)
from .ranking import Ranking, Standing, differs, ranking
from .tables import by_scenario, consistency


@dataclasses.dataclass(frozen=True, eq=False)
class RankingView:
    """A ranking with its plot, its table by scenario and its agreement with the paper."""

    standing: Standing
    ranking: Ranking
    plot: Plot
    by_scenario: console.DataTable | None
    agreement: str

    @property
    def is_told(self) -> bool:
        """Whether runs suffice to tell which models differ from the real sensors."""
        uncertainty = self.standing.known
        return all(differs(uncertainty, model) is not None for model in uncertainty.models)

    @property
    def level(self) -> str:
        """Level of the intervals."""
        return f'{100 * self.standing.known.options.level:g} %'


class Drawing(NamedTuple):
    """A plot under a heading, which may be empty."""

    heading: str
    plot: Plot


@dataclasses.dataclass(frozen=True)
class Chapter:
    """Plots of one kind, with how to read them.

    `switched`: models can be switched off; `true`: the truth is drawn too.
    """

    title: str
    text: str
    drawings: Sequence[Drawing]
    switched: bool = True
    true: bool = False


@dataclasses.dataclass(frozen=True, eq=False)
class JudgeSection:
    """Results of one judge; `id` is the target of links."""

    id: str
    name: str
    about: str
    rankings: Sequence[RankingView]
    chapters: Sequence[Chapter]
    consistency: Sequence[console.DataTable]
    missing: Sequence[str]

    consistency_text = (
        '1: the judge is consistent. Above 1 it is overconfident; below, underconfident. What '
        'matters here is whether simulated sensors make it as confident as real ones do.'
    )


SPEED = 'Speed'


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
        '(1 the same order, \N{MINUS SIGN}1 the reverse).'
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


def judge_section(
    outcome: StudyOutcome,
    judge: str,
    views: Sequence[RankingView],
    sources: Mapping[str, SeriesStyle],
    place: int,
) -> JudgeSection:
    """Return the section of a judge, whose number on the page is `place`.

    `views` are the rankings of all judges; `sources` holds `real` and every model.
    """
    evidence = gather(outcome, judge)
    component = str(outcome.record.get('component', 'horizontal'))
    real = 'the stand-in' if outcome.record.get('synthetic') else 'the real sensors'
    groups = list(dict.fromkeys(run.group for run in outcome.runs if run.key.judge == judge))

    def of_groups(draw: Callable[[str], Plot | None]) -> list[Drawing]:
        # Recordings of several conditions or surfaces do not share a distribution.
        return [Drawing(group, plot) for group in groups if (plot := draw(group)) is not None]

    def scores(field: str, label: str) -> list[Drawing]:
        return of_groups(lambda g: scores_plot(outcome.part(g), judge, field, label, sources))

    chapters = [
        Chapter(
            SPEED,
            f'True and estimated {component} speed of the run with the median RMSE from {real}, '
            'and of the models on the same motion.',
            _of_scenarios(evidence, 'Speed', sources, speed_plot),
            true=True,
        ),
        Chapter(
            'RMSE of speed',
            f'A dot per run, a line at the median; the band holds the runs of {real}.',
            scores('rmse', f'RMSE of {component} speed, m/s'),
            switched=False,
        ),
        Chapter(
            'Wiener entropy difference',
            'How much flatter the spectrum of the estimated speed is than that of the true one; '
            'the other half of VEPD.',
            scores('entropy_difference', 'Wiener entropy difference'),
            switched=False,
        ),
        Chapter(
            'Spectrum of the speed error',
            'Median over runs, and the band of the middle 80 % of them.',
            of_groups(lambda group: spectra_plot(evidence.select_group(group), sources)),
        ),
        Chapter(
            'Tracks',
            'True and estimated positions of the same runs, from the start.',
            _of_scenarios(evidence, 'Track', sources, track_plot),
            true=True,
        ),
        Chapter(
            'Stated against true error: position',
            'A dot per run: root mean square of the stated horizontal standard deviation and of '
            'the error. On the dashed line the judge is consistent, above it is overconfident.',
            of_groups(
                lambda group: consistency_plot(evidence.select_group(group), 'position', sources)
            ),
        ),
        Chapter(
            'Stated against true error: velocity',
            'The same of the body velocity, forward and to the left.',
            of_groups(
                lambda group: consistency_plot(evidence.select_group(group), 'velocity', sources)
            ),
        ),
    ]
    judges = [
        judge_record
        for judge_record in outcome.record.get('judges') or []
        if isinstance(judge_record, Mapping)
    ]
    record = next(
        (judge_record for judge_record in judges if judge_record.get('label') == judge), {}
    )
    return JudgeSection(
        id=f'judge-{place}',
        name=judge,
        about=str(record.get('about') or ''),
        rankings=[view for view in views if view.standing.judge == judge],
        chapters=[chapter for chapter in chapters if chapter.drawings],
        consistency=[
            table for group in groups if (table := consistency(outcome, judge, group, sources))
        ],
        missing=evidence.missing[:3],
    )


def _of_scenarios(
    evidence: JudgeSignals,
    what: str,
    sources: Mapping[str, SeriesStyle],
    draw: Callable[[Mapping[str, RunSignals], Mapping[str, SeriesStyle], str], Plot | None],
) -> list[Drawing]:
    drawings = []
    for (group, scenario), runs in evidence.representatives.items():
        recordings = list(dict.fromkeys(signals.run.key.recording for signals in runs.values()))
        heading = ' · '.join(part for part in (group, scenario) if part)
        if len(recordings) == 1:
            heading += f' ({recordings[0]})'
        if runs and (plot := draw(runs, sources, f'{what}, {heading}')) is not None:
            drawings.append(Drawing(heading, plot))
    return drawings


@dataclasses.dataclass(frozen=True)
class SideSection:
    """Tables on one subject; `id` is the target of links."""

    id: str
    name: str
    text: str
    tables: Sequence[console.DataTable]


def side_sections(side: SideResults) -> list[SideSection]:
    """Return the sections that have at least one table.

    Each judge and group is ranked over all its scenarios, or over its only one.
    """
    metrics = [metric_lines(table) for table in side.overall_metrics]
    options = [sensitivity_lines(table) for table in side.overall_sensitivity]
    sections = [
        SideSection(
            'metrics',
            'Other metrics',
            'Other distances between the real and the simulated runs, and the rank that each '
            'gives in brackets. A star: significant. Tau: Kendall rank correlation with '
            'VEPD, 1 for the same order.',
            [_ranks(lines) for lines in metrics if lines.lines],
        ),
        SideSection(
            'pose',
            'Position, heading, attitude',
            'How different the errors of position, heading and attitude are, by the statistics of '
            'VEPD: W1 between the RMSE of real and simulated runs, in standard deviations of the '
            'real ones, so that units do not decide.',
            [pose_difference_table(side.poses)] if side.poses else [],
        ),
        SideSection(
            'options',
            'Options',
            'VEPD, and its ranks, with other options of the metric. Tau: Kendall rank '
            'correlation with the first line.',
            [_ranks(lines) for lines in options if lines.lines],
        ),
        SideSection(
            'agreement',
            'Agreement',
            'How far judges, and groups of recordings, agree on the ranking: 1 for the same '
            'order, \N{MINUS SIGN}1 for the reverse. Chance: of so much agreement from orders '
            'that have nothing to do with each other.',
            [_pairs(side)] if side.rankings else [],
        ),
    ]
    return [section for section in sections if section.tables]


def _ranks(rankings: RankLines) -> console.DataTable:
    columns = [
        console.TableColumn(''),
        *map(console.numeric, rankings.models),
        console.numeric('tau'),
    ]
    rows = []
    for number, line in enumerate(rankings.lines):
        cells = [line.label]
        for value, rank, mark in zip(line.values, line.ranks, line.marks, strict=True):
            cells.append(
                console.NONE
                if value is None or rank is None
                else f'{console.short_number(value)}{"*" if mark else ""} ({rank:g})'
            )
        cells.append('' if number == 0 else _two(line.agreement.kendall))
        rows.append(cells)
    return console.DataTable(rankings.title, columns, rows, notes=rankings.notes)


def _pairs(side: SideResults) -> console.DataTable:
    columns = [console.TableColumn(name) for name in ('scenario', 'ranking', 'and ranking')]
    columns += [
        console.numeric(name)
        for name in ('models', 'Kendall', '95 % interval', 'Spearman', 'p-value', 'adjusted')
    ]
    rows = [
        [
            console.scenario_name(pair.scenario),
            pair.first,
            pair.second,
            str(pair.agreement.models),
            _two(pair.agreement.kendall),
            pair.interval or console.NONE,
            _two(pair.agreement.spearman),
            console.p_value_text(pair.agreement.p_value, console.NONE),
            console.p_value_text(pair.adjusted, console.NONE),
        ]
        for pair in side.rankings
    ]
    return console.DataTable('Agreement of rankings', columns, rows, kind='sorted', headed=False)


def _two(value: float | None) -> str:
    return console.NONE if value is None else f'{value:.2f}'.replace('-', console.MINUS)
