# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Sections of a page and their plots: one judge, and the other metrics, options and judges."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from sim2real_eval.metrics.error_curves import default_segment, error_spectra
from sim2real_eval.metrics.options import REAL
from sim2real_eval.report import console
from sim2real_eval.report.palette import needs_log_axis
from sim2real_eval.report.ranking_tables import (
    RankLines,
    metric_lines,
    pose_difference_table,
    sensitivity_lines,
)
from sim2real_eval.report.transfer import transfer_table
from sim2real_eval.study.outcome import StudyOutcome
from sim2real_eval.study.secondary_results import MAX_RUNS, SideResults
from sim_sensors.core.blocks import by_blocks
from sim_sensors.core.measurements import FloatArray
from .figure import TRUTH, Plot, SeriesStyle
from .ranking_view import RankingView
from .selection import spread_by_rank
from .tables import JudgeSignals, RunSignals, consistency, gather

_DECADES = 6.0
_TRACK = 500  # points

_REAL_RANGE = SeriesStyle('identical sensors', '--null')


def scores_plot(
    outcome: StudyOutcome, judge: str, field: str, label: str, sources: Mapping[str, SeriesStyle]
) -> Plot | None:
    """Return a row of dots per model, one for each run, over the range of the real runs."""
    values = {}
    for name in sources:
        runs = [run for run in outcome.runs_of(judge, name) if np.isfinite(run.values[field])]
        if runs:
            values[name] = (
                np.array([run.values[field] for run in runs]), [run.key.recording for run in runs]
            )  # fmt: skip
    if REAL not in values:
        return None
    all_scores = np.concatenate([scores for scores, _ in values.values()])
    log = needs_log_axis(all_scores.tolist())
    rows = [REAL, *(name for name in values if name != REAL)]
    plot = Plot(
        f'{label} of every run, a row per model', label, log=(log, False),
        rows=[sources[name].name for name in rows],
    )  # fmt: skip
    real = values[REAL][0]
    plot.boxes(
        _REAL_RANGE, left=np.array([real.min()]), right=np.array([real.max()]),
        top=np.array([-0.6]), bottom=np.array([len(rows) - 0.4]),
    )  # fmt: skip
    for row, name in enumerate(rows):
        run_scores, recordings = values[name]
        middle = np.array([np.median(run_scores)])
        shown = spread_by_rank(run_scores)
        plot.dots(sources[name], size=7.0, x=run_scores[shown], y=[row] * len(shown),
                  recording=[recordings[place] for place in shown])  # fmt: skip
        # Tall and above the dots, so that it can be told from them.
        plot.segments(sources[name], width=3.0, x0=middle, x1=middle,
                      y0=np.array([row - 0.46]), y1=np.array([row + 0.46]))  # fmt: skip
    plot.hover({'': '$name', label: '@x{0.0000}', 'recording': '@recording'})
    return plot


def spectra_plot(evidence: JudgeSignals, sources: Mapping[str, SeriesStyle]) -> Plot | None:
    """Return a plot of the median spectra of the speed error, with the middle 80 % of runs."""
    if not evidence.runs:
        return None
    errors = [signals.error for signals in evidence.runs]
    densities = error_spectra(errors, evidence.rate)
    length = default_segment(min(len(error) for error in errors))
    frequency = np.fft.rfftfreq(length, 1.0 / evidence.rate)[1:].astype(np.float64)
    models = np.array([signals.run.key.model for signals in evidence.runs])
    rows: dict[str, FloatArray] = {}
    for name in _nearest_last(models.tolist(), sources):
        if len(frequency) > 1:
            rows[name] = np.quantile(densities[models == name], (0.1, 0.5, 0.9), axis=0)
    medians = [row[1][row[1] > 0.0] for row in rows.values()]
    top = max((float(median.max()) for median in medians if len(median)), default=0.0)
    if REAL not in rows or not top:
        return None
    floor = top / 10.0**_DECADES
    cut = any(row.min() < floor for row in rows.values())
    highest = max(float(row.max()) for row in rows.values())
    plot = Plot(
        'Spectrum of the speed error', 'frequency, Hz', 'm²/s', log=(True, True), height=380,
        y_range=(floor, 2.0 * highest) if cut else None,
    )  # fmt: skip
    for name, row in rows.items():
        # Lines leave the plot at its lower end; zeros have no place on a logarithmic axis.
        row = np.maximum(row, 0.1 * floor)
        plot.band(sources[name], frequency, row[0], row[2])
        plot.lines(sources[name], frequency, row[1], width=2.0)
    plot.hover({'': '$name', 'frequency': '@x{0.00} Hz', 'density': '@y{0.00e+0} m²/s'})
    return plot


def speed_plot(
    runs: Mapping[str, RunSignals], sources: Mapping[str, SeriesStyle], described: str
) -> Plot:
    """Return true and estimated speed of the runs on one motion, on the grid of the metric."""
    plot = Plot(described, 'time, s', 'm/s', height=340)
    for name in _nearest_last(runs, sources):
        grid = runs[name].grid
        wide = 3.0 if name == REAL else 1.6
        plot.lines(sources[name], grid.time, grid.se_vel, width=wide)
    for run in _one_per_motion(runs):
        plot.lines(TRUTH, run.grid.time, run.grid.gt_vel, width=1.2)
    plot.hover({'': '$name', 'time': '@x{0.0} s', 'speed': '@y{0.00} m/s'})
    return plot


def _nearest_last(names: Container[str], sources: Iterable[str]) -> list[str]:
    """Return names in the order of drawing: real below, the nearest model on top."""
    ordered = [name for name in sources if name in names]
    return [name for name in ordered if name == REAL] + [n for n in ordered[::-1] if n != REAL]


def _one_per_motion(runs: Mapping[str, RunSignals]) -> list[RunSignals]:
    """Return one run of each recording, a real one if there is any."""
    order = sorted(runs, key=lambda name: name != REAL)
    runs_by_recording: dict[str, RunSignals] = {}
    for name in order:
        runs_by_recording.setdefault(runs[name].run.key.recording, runs[name])
    return list(runs_by_recording.values())


def track_plot(
    runs: Mapping[str, RunSignals], sources: Mapping[str, SeriesStyle], described: str
) -> Plot | None:
    """Return true and estimated positions on a plan, with one scale for both axes."""
    tracks = {name: _track(runs[name]) for name in _nearest_last(runs, sources)}
    finite_tracks = {name: track for name, track in tracks.items() if track is not None}
    if not finite_tracks:
        return None
    plot = Plot(described, 'east, m', 'north, m', height=440, plan=True)
    for name, (estimate, _) in finite_tracks.items():
        wide = 3.0 if name == REAL else 1.6
        plot.lines(sources[name], estimate[:, 0], estimate[:, 1], width=wide)
    for run in _one_per_motion({name: runs[name] for name in finite_tracks}):
        truth = finite_tracks[run.run.key.model][1]
        plot.lines(TRUTH, truth[:, 0], truth[:, 1], width=1.2)
    plot.hover({'': '$name', 'east': '@x{0.0} m', 'north': '@y{0.0} m'})
    return plot


def _track(run: RunSignals) -> tuple[FloatArray, FloatArray] | None:
    """Return estimated and true positions, (n, 2), from the start of the truth."""
    signals = run.signals
    if signals is None:
        return None
    finite_rows = np.flatnonzero(
        by_blocks(
            lambda *rows: np.isfinite(np.stack(rows)[..., :2]).all(axis=(0, 2)),
            signals.true_position,
            signals.position,
        )
    )
    if not len(finite_rows):
        return None
    step = max(1, int(np.ceil(len(finite_rows) / _TRACK)))
    truth, estimate = (
        positions[finite_rows[::step], :2]
        for positions in (signals.true_position, signals.position)
    )
    return estimate - truth[0], truth - truth[0]


def consistency_plot(
    evidence: JudgeSignals,
    quantity: Literal['position', 'velocity'],
    sources: Mapping[str, SeriesStyle],
) -> Plot | None:
    """Return a plot of errors over stated deviations, with a dot per run.

    The quantity is horizontal `position` (m) or body `velocity` (m/s). The diagonal is that of a
    consistent judge.
    """
    points = {}
    for name in sources:
        every = [
            (getattr(signals, quantity), signals.run.key.recording)
            for signals in evidence.runs_of_model(name)
        ]
        dots = [dot for dot in every if all(0.0 < value < np.inf for value in dot[0])]
        if dots:
            points[name] = dots
    if not points:
        return None
    unit = 'm' if quantity == 'position' else 'm/s'
    all_points = np.array([pair for pairs in points.values() for pair, _ in pairs])
    ends = np.array([all_points.min() / 2.0, all_points.max() * 2.0])
    plot = Plot(
        f'Error over stated deviation of {quantity}', f'stated, {unit}', f'error, {unit}',
        log=(True, True), height=400,
    )  # fmt: skip
    plot.lines(SeriesStyle('consistent', '--truth', 1), ends, ends, width=1.2, aside=True)
    for name, dots in points.items():
        stated, error = np.array([pair for pair, _ in dots]).T
        plot.dots(sources[name], x=stated, y=error, recording=[recording for _, recording in dots])
    plot.hover({'': '$name', 'stated': f'@x{{0.000}} {unit}',
                       'error': f'@y{{0.000}} {unit}', 'recording': '@recording'})  # fmt: skip
    return plot


class Drawing(NamedTuple):
    """A plot under a heading, which may be empty."""

    heading: str
    plot: Plot


@dataclasses.dataclass(frozen=True)
class Chapter:
    """Plots of one kind, and how to read them.

    If `switched`, the reader can switch models off. If `true`, the truth is drawn too.
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
    description: str
    rankings: Sequence[RankingView]
    chapters: Sequence[Chapter]
    consistency: Sequence[console.DataTable]
    missing: Sequence[str]

    consistency_text = (
        'At 1 the judge is consistent, above 1 overconfident, below 1 underconfident. A good '
        'model gives the same values as the real sensors.'
    )


SPEED = 'Speed'


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
            f'True and estimated {component} speed: the run with the median RMSE of {real}, and '
            'the models on the same motion.',
            _of_scenarios(evidence, 'Speed', sources, speed_plot),
            true=True,
        ),
        Chapter(
            'RMSE of speed',
            f'A dot per run, a line at the median; the band is the range of {real}.',
            scores('rmse', f'RMSE of {component} speed, m/s'),
            switched=False,
        ),
        Chapter(
            'Wiener entropy difference',
            'Flatness of the spectrum of the estimated speed, minus that of the true speed. VEPD '
            'is made of this difference and the RMSE.',
            scores('entropy_difference', 'Wiener entropy difference'),
            switched=False,
        ),
        Chapter(
            'Spectrum of the speed error',
            'Median over the runs; the band holds the middle 80 % of them.',
            of_groups(lambda group: spectra_plot(evidence.select_group(group), sources)),
        ),
        Chapter(
            'Tracks',
            'True and estimated positions of the same runs, relative to the start.',
            _of_scenarios(evidence, 'Track', sources, track_plot),
            true=True,
        ),
        Chapter(
            'Stated against true error: position',
            'A dot per run: root mean square of the stated horizontal standard deviation and of '
            'the error. On the dashed line the judge is consistent, above it overconfident.',
            of_groups(
                lambda group: consistency_plot(evidence.select_group(group), 'position', sources)
            ),
        ),
        Chapter(
            'Stated against true error: velocity',
            'The same for the body velocity (forward, left).',
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
        description=str(record.get('about') or ''),
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


def transfer_section(record: Mapping[str, Any]) -> SideSection:
    """Return the section of the transfer loss, from the record of `sim2real transfer`."""
    return SideSection(
        'transfer',
        'Transfer loss',
        'A filter is tuned on the simulated recordings of each model and run on the real ones. '
        'The loss is its extra error over a filter that was tuned on the real recordings, on '
        'blocks that neither was tuned on. Models that share a letter do not differ '
        'significantly. The landscape distance and the rank correlation (SRCC) compare simulated '
        f'with real errors over {record["tunings"]} tunings.',
        [transfer_table(record)],
    )


def side_sections(side: SideResults) -> list[SideSection]:
    """Return the sections that have at least one table, and what was left out.

    Each judge and group is ranked over all its scenarios, or over its only one.
    """
    metrics = [metric_lines(table) for table in side.overall_metrics]
    options = [sensitivity_lines(table) for table in side.overall_sensitivity]
    sections = [
        SideSection(
            'metrics',
            'Other metrics',
            'Other distances between the real and the simulated runs, each with its rank in '
            'brackets. A star marks a significant difference. Tau is the Kendall rank '
            'correlation with VEPD: 1 means the same order.',
            [_ranks(lines) for lines in metrics if lines.lines],
        ),
        SideSection(
            'pose',
            'Position, heading, attitude',
            'Distances between the real and the simulated runs by their errors of position, '
            'heading and attitude: the W1 distance of their RMSE, in standard deviations of the '
            'real runs.',
            [pose_difference_table(side.poses)] if side.poses else [],
        ),
        SideSection(
            'options',
            'Options',
            'VEPD with other options of the metric, each with its rank in brackets. Tau is the '
            'Kendall rank correlation with the first line.',
            [_ranks(lines) for lines in options if lines.lines],
        ),
        SideSection(
            'agreement',
            'Agreement',
            'How well the rankings of judges and of groups of recordings agree: 1 for the same '
            'order, \N{MINUS SIGN}1 for the reverse. The p-value is the probability of at least '
            'this agreement between unrelated rankings.',
            [_pairs(side)] if side.rankings else [],
        ),
    ]
    found = [section for section in sections if section.tables]
    if not side.is_complete:
        text = (
            'Position, heading, attitude and other options of VEPD are left out, because there '
            f'are more than {MAX_RUNS} runs. To add them: `sim2real report` and the '
            'folder of the result.'
        )
        found.append(SideSection('more', 'More', text, []))
    return found


def _ranks(rankings: RankLines) -> console.DataTable:
    columns = [console.TableColumn('ranked by'), *map(console.numeric, [*rankings.models, 'tau'])]
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
            pair.interval.replace('-', console.MINUS) or console.NONE,
            _two(pair.agreement.spearman),
            console.p_value_text(pair.agreement.p_value, console.NONE),
            console.p_value_text(pair.adjusted, console.NONE),
        ]
        for pair in side.rankings
    ]
    return console.DataTable('Agreement of rankings', columns, rows, kind='sorted', headed=False)


def _two(value: float | None) -> str:
    return console.NONE if value is None else f'{value:.2f}'.replace('-', console.MINUS)
