# SPDX-License-Identifier: Apache-2.0
"""Sections of a page: one judge, and the other metrics, options and judges."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from sim2real_eval.metrics.distances import POOLED
from sim2real_eval.report.page.evidence import gather
from sim2real_eval.report.page.figure import MINUS, NONE, Multiples
from sim2real_eval.report.page.markup import Column, DataTable, numeric
from sim2real_eval.report.page.plots import (
    covariance_consistency,
    histograms,
    spectra,
    speed_plots,
    track_plots,
)
from sim2real_eval.report.page.ranking import Ranking, Standing, p_value_text, ranking
from sim2real_eval.report.page.tables import by_scenario, consistency
from sim2real_eval.report.ranking_tables import (
    RankLines,
    metric_lines,
    sensitivity_lines,
    short_number,
)
from sim2real_eval.report.run_plots import ENTROPY, RMSE
from sim2real_eval.study.outcome import StudyOutcome
from sim2real_eval.study.secondary_results import SideResults


@dataclasses.dataclass(frozen=True, eq=False)
class RankingView:
    """A ranking and what stands below it."""

    standing: Standing
    ranking: Ranking
    by_scenario: DataTable | None
    agreement: str

    @property
    def level(self) -> str:
        """Level of the intervals."""
        return f'{100 * self.standing.known.options.level:g} %'


@dataclasses.dataclass(frozen=True)
class Chapter:
    """Plots of one kind, with how to read them."""

    title: str
    text: str
    figures: Sequence[Multiples]


@dataclasses.dataclass(frozen=True, eq=False)
class JudgeSection:
    """All about one judge; `id` is where links lead."""

    id: str
    name: str
    about: str
    rankings: Sequence[RankingView]
    chapters: Sequence[Chapter]
    consistency: Sequence[DataTable]
    missing: Sequence[str]

    consistency_text = (
        '1: the judge is consistent. Above, it is overconfident; below, '
        'underconfident. What matters here is whether simulated sensors make it as '
        'sure as real ones do.'
    )


def ranking_view(standing: Standing, colours: Mapping[str, str]) -> RankingView:
    """Return a ranking with its table by scenario and how it agrees with the published one."""
    said = [
        f'{"pooled" if name == POOLED else name} {tau:+.2f}'.replace('-', MINUS)
        for name in standing.scenarios
        if (tau := standing.agreement(name)) is not None
    ]
    agreement = (
        f'Kendall rank correlation with the published order: {", ".join(said)} '
        '(1 the same order, \N{MINUS SIGN}1 the reverse).'
        if said
        else ''
    )
    return RankingView(
        standing, ranking(standing, colours), by_scenario(standing, colours), agreement
    )


def judge_section(
    outcome: StudyOutcome,
    judge: str,
    views: Sequence[RankingView],
    colours: Mapping[str, str],
    *,
    place: int,
    synthetic: bool,
) -> JudgeSection:
    """Return the section at that place; reads the signals of all runs of the judge.

    `views` are the rankings of all judges, `colours` the classes of the colours of `real` and of
    every model; if `synthetic`, what counts as real is a stand-in.
    """
    evidence = gather(outcome, judge)
    component = str(outcome.record.get('component', 'horizontal'))
    real = 'the stand-in' if synthetic else 'the real sensors'
    groups = list(dict.fromkeys(run.group for run in outcome.runs if run.key.judge == judge))
    parts = {group: outcome.part(group) for group in groups}
    seen = {group: evidence.part(group) for group in groups}

    def of_groups(draw: Callable[[str], Multiples]) -> list[Multiples]:
        # Recordings of several conditions or surfaces would be no one distribution.
        return [dataclasses.replace(draw(group), heading=group) for group in groups]

    chapters = [
        Chapter(
            'RMSE of speed',
            f'Runs by RMSE of {component} speed: colour simulated, grey {real}. W1 RMSE is how '
            'far the colour has to be moved to lie on the grey.',
            of_groups(lambda group: histograms(parts[group], judge, RMSE, colours)),
        ),
        Chapter(
            'Wiener entropy difference',
            'Runs by how much flatter the spectrum of the estimated speed is than that of the '
            'true speed; the other half of VEPD.',
            of_groups(lambda group: histograms(parts[group], judge, ENTROPY, colours)),
        ),
        Chapter(
            'Speed',
            f'True (thin) and estimated {component} speed of the run with the median RMSE from '
            f'{real} in each scenario, and of the models on the same motion.',
            speed_plots(evidence, colours),
        ),
        Chapter(
            'Spectrum of the speed error',
            f'Median over runs and where the middle 80 % of them lie; dashed and grey: {real}.',
            of_groups(lambda group: spectra(seen[group], colours)),
        ),
        Chapter(
            'Tracks',
            'True (thin) and estimated positions of the same runs, on a plan; metres from the '
            'start, east to the right, north upwards.',
            track_plots(evidence, colours),
        ),
        Chapter(
            'Stated against true error: position',
            'A dot per run: root mean square of the stated horizontal standard deviation and of '
            'the error. On the dashed line the judge is consistent, above overconfident; '
            'pale dots are those of all other panels.',
            of_groups(lambda group: covariance_consistency(seen[group], 'position', colours)),
        ),
        Chapter(
            'Stated against true error: velocity',
            'The same of the body velocity, forward and to the left.',
            of_groups(lambda group: covariance_consistency(seen[group], 'velocity', colours)),
        ),
    ]
    judges = [one for one in outcome.record.get('judges') or [] if isinstance(one, Mapping)]
    record = next((one for one in judges if one.get('label') == judge), {})
    return JudgeSection(
        id=f'judge-{place}',
        name=judge,
        about=str(record.get('about') or ''),
        rankings=[view for view in views if view.standing.judge == judge],
        chapters=[
            chapter for chapter in chapters if any(block.panels for block in chapter.figures)
        ],
        consistency=[
            table
            for group in groups
            if (table := consistency(outcome, judge, group, colours, synthetic=synthetic))
        ],
        missing=evidence.missing[:3],
    )


# Sections on what is said beside VEPD: other metrics, other options, other judges.


@dataclasses.dataclass(frozen=True)
class AnnotatedTable:
    """A table and the notes under it."""

    table: DataTable
    notes: Sequence[str] = ()


@dataclasses.dataclass(frozen=True)
class SideSection:
    """Tables on one matter; `id` is where links lead."""

    id: str
    name: str
    text: str
    blocks: Sequence[AnnotatedTable]


def side_sections(side: SideResults) -> list[SideSection]:
    """Return a section per matter that there is something to say on.

    Of every judge and group over all its scenarios, or over the only one that it has.
    """
    metrics = [metric_lines(table) for table in side.overall_metrics]
    options = [sensitivity_lines(table) for table in side.overall_sensitivity]
    found = [
        SideSection(
            'metrics',
            'Beside VEPD',
            'Other distances between the real and the simulated runs, and the rank that each '
            'gives in brackets. A star: significant. Tau: Kendall rank correlation with '
            'VEPD, 1 for the same order.',
            [_block(lines) for lines in metrics if lines.lines],
        ),
        SideSection(
            'options',
            'Options',
            'VEPD, and its ranks, with other options of the metric. Tau: Kendall rank '
            'correlation with the first line.',
            [_block(lines) for lines in options if lines.lines],
        ),
        SideSection(
            'agreement',
            'Agreement',
            'How alike the judges, and the groups of recordings, rank the models: 1 for the same '
            'order, \N{MINUS SIGN}1 for the reverse. Chance: of so much agreement from orders '
            'that have nothing to do with each other.',
            [_pairs(side)] if side.rankings else [],
        ),
    ]
    return [section for section in found if section.blocks]


def _block(given: RankLines) -> AnnotatedTable:
    columns = [Column(''), *map(numeric, given.models), numeric('tau')]
    rows = []
    for number, line in enumerate(given.lines):
        cells = [line.label]
        for value, rank, mark in zip(line.values, line.ranks, line.marks, strict=True):
            cells.append(
                NONE
                if value is None or rank is None
                else f'{short_number(value)}{"*" if mark else ""} ({rank:g})'
            )
        cells.append('' if number == 0 else _two(line.agreement.kendall))
        rows.append(cells)
    return AnnotatedTable(DataTable(given.title, columns, rows), given.notes)


def _pairs(side: SideResults) -> AnnotatedTable:
    columns = [Column(name) for name in ('scenario', 'ranking', 'and ranking')]
    columns += [numeric(name) for name in ('models', 'Kendall', 'Spearman', 'p-value')]
    rows = [
        [
            'all pooled' if pair.scenario == POOLED else pair.scenario,
            pair.first,
            pair.second,
            str(pair.agreement.models),
            _two(pair.agreement.kendall),
            _two(pair.agreement.spearman),
            p_value_text(pair.agreement.p_value),
        ]
        for pair in side.rankings
    ]
    return AnnotatedTable(
        DataTable('Agreement of rankings', columns, rows, kind='sorted', headed=False)
    )


def _two(value: float | None) -> str:
    return NONE if value is None else f'{value:.2f}'.replace('-', MINUS)
