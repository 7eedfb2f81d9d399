# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The pre-flight of recordings as a table and as a picture."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure
from rich.table import Table
from rich.text import Text

from sim2real_eval.common.findings import Finding, Severity
from sim2real_eval.preflight.entries import entry_lines, yaml_text
from sim2real_eval.preflight.outcome import FAIL, PASS, WARN, Line, Preflight, lines
from sim2real_eval.preflight.remedies import LEVER_ARMS, corrected_constants
from sim2real_eval.preflight.vehicle import Pooled
from sim2real_eval.recording.metadata import find_own_metadata
from sim2real_eval.recording.recording import ROLE_CLASSES
from .console import add_numbers, add_words, plain_table
from .style import figure_legend, legend_line, log_x, new_figure, tidy

_STYLES = {PASS: 'green', WARN: 'yellow', FAIL: 'bold red'}
# Hue and shape both differ, so that either alone is enough.
_MARKS = {PASS: ('#0072B2', 'o'), WARN: ('#9A6700', '^'), FAIL: ('#B3261E', 'X')}
_BOUND = {'most': '<= ', 'least': '>= ', 'either': 'within ±', 'ratio': 'within '}
_MIN, _MAX = 1e-2, 1e2
_NAMED = 12


def preflight_table(
    runs: Sequence[Preflight], *, title: str = '', by_subject: bool = False
) -> Table:
    """Return one line per check with the value nearest its limit over all recordings.

    The line names the role that has this value; with `by_subject` there is a line per role.
    """
    table = plain_table(title, gap=1)
    table.add_column('')
    add_words(table, 'check', *([] if by_subject else ['of']))
    add_numbers(table, 'value', 'limit')
    add_words(table, 'unit')
    if len(runs) > 1:
        add_numbers(table, 'pass', 'warn', 'fail')
    for line in lines(runs, by_subject=by_subject):
        limiting = line.limiting
        measure = limiting.measure
        words = measure.subject.replace(',', '').split()
        role = next((word for word in words if word in ROLE_CLASSES), '')
        cells: list[Text | str] = [
            Text(line.status, style=_STYLES[line.status]),
            Text(line.label),
            *([] if by_subject else [Text(role)]),
            '' if measure.value is None else _short(measure.value),
            '' if measure.limit is None else f'{_BOUND[measure.scale]}{_short(measure.limit)}',
            Text(limiting.unit),
        ]
        if len(runs) > 1:
            counts = [line.count(status) for status in (PASS, WARN, FAIL)]
            cells += [str(count) if count else '' for count in counts]
        table.add_row(*cells)
    return table


def recording_lines(runs: Sequence[Preflight]) -> list[str]:
    """Return a line per recording: its name, its status, and the checks that do not pass."""
    names = [name for name, _ in _named(runs)]
    width = max(map(len, names), default=0)
    lines = []
    for name, run in _named(runs):
        failed = [outcome for outcome in run.outcomes if outcome.status == FAIL]
        warned = [outcome for outcome in run.outcomes if outcome.status == WARN]
        checks = ', '.join(dict.fromkeys(outcome.check for outcome in (*failed, *warned)))
        lines.append(f'{name:<{width}}  {run.status}  {checks}'.rstrip())
    return lines


def preflight_lines(
    problems: Iterable[Finding],
    runs: Sequence[Preflight],
    constants: Sequence[Pooled] = (),
    *,
    entries: bool = True,
) -> list[str]:
    """Return lines of text that state problems, their recordings and remedies.

    A remedy that several recordings share is stated once. Common values of several recordings
    replace the remedies of single ones. The `entries` of each recording.yaml follow at the end.
    """
    text_lines, named = [], _named(runs)
    for summary in problems:
        status = FAIL if summary.severity is Severity.DECISIVE else WARN
        names: dict[str, list[str]] = {}
        for name, run in named:
            for remedy in dict.fromkeys(
                finding.remedy for finding in run.findings if summary.is_like(finding)
            ):
                names.setdefault(remedy, []).append(name)
        count = len({name for of_remedy in names.values() for name in of_remedy})
        some = f'all {len(runs)}' if count == len(runs) else f'{count} of {len(runs)}'
        recordings = f' ({some})' if summary.runs else ''
        text_lines.append(
            f'{status}{recordings}: {": ".join(filter(None, (summary.subject, summary.problem)))}'
        )
        if len(names) > 1 and (common := _common_remedy(summary, runs, constants)):
            text_lines.append(f'  -> {common}')
        elif len(names) > 1:
            text_lines += [
                f'  -> {_few(of_remedy)}: {remedy}' for remedy, of_remedy in names.items()
            ]
        elif summary.remedy:
            text_lines.append(f'  -> {summary.remedy}')
    text_lines += consequence_lines(runs)
    return text_lines + (_correction_lines(runs) if entries else [])


def correction_hint(runs: Sequence[Preflight]) -> list[str]:
    """Return a line about the recordings that --write would correct, if there are any."""
    count = sum(bool(run.corrections or run.lever_arms) for run in runs)
    files = 'recording.yaml' if count == 1 else f'recording.yaml of {count} recordings'
    return [f'--write writes these corrections into the {files}; -v prints them'] if count else []


def _common_remedy(
    summary: Finding, runs: Sequence[Preflight], constants: Sequence[Pooled]
) -> str:
    """Return a remedy with the common values of all recordings of a finding.

    It is empty if a recording has a value of its own, or if the remedies state the common values
    already.
    """
    proposed = [
        (i, constant, value)
        for i, run in enumerate(runs)
        for finding in run.findings
        if summary.is_like(finding) and not finding.withheld
        for constant, value in corrected_constants(finding).items()
    ]
    pooled = {constant.constant: constant for constant in constants}
    if any(
        constant not in pooled or i not in pooled[constant].members for i, constant, _ in proposed
    ) or all(pooled[constant].value == value for _, constant, value in proposed):
        return ''
    parts = []
    for constant in sorted({constant for _, constant, _ in proposed}):
        common = pooled[constant]
        role, key = constant
        name, entry = (
            (role, {key: common.value})
            if role == LEVER_ARMS
            else ('corrections', {role: {key: common.value}})
        )
        low, high = yaml_text(common.low), yaml_text(common.high)
        parts.append(f'`{name}: {yaml_text(entry)}` (single recordings: {low} to {high})')
    return f'set {", ".join(parts)} in recording.yaml of all of them'


def _named(runs: Sequence[Preflight]) -> list[tuple[str, Preflight]]:
    """Return the names of recordings; recordings with the same name get their position added."""
    names = [run.recording for run in runs]
    return [(run.recording if names.count(run.recording) == 1 else run.path, run) for run in runs]


def _few(names: Sequence[str]) -> str:
    return ', '.join(names) if len(names) <= _NAMED else f'{", ".join(names[:_NAMED])} and others'


def consequence_lines(runs: Sequence[Preflight]) -> list[str]:
    """Return lines that state the speed error of the judge as recorded, and corrected."""
    pairs = [(name, run.speed_errors) for name, run in _named(runs) if run.speed_errors]
    if not pairs:
        return []
    before, after = (_range([errors[side] for _, errors in pairs if errors]) for side in (0, 1))
    of_runs = f' ({len(pairs)} recordings)' if len(pairs) > 1 else ''
    text = f'Speed error of the judge{of_runs}: {before} m/s as recorded, {after} m/s corrected.'
    worse = [name for name, run in _named(runs) if run.is_made_worse]
    if worse:
        text += (
            f' It grows in {_few(worse)}, which --write leaves as they are. First find out why: '
            'the truth or another sensor probably has an error, too, such as another clock.'
        )
    return [text]


def _range(values: Sequence[float]) -> str:
    low, high = _short(min(values)), _short(max(values))
    return low if low == high else f'{low} to {high}'


def _correction_lines(runs: Sequence[Preflight]) -> list[str]:
    """Return the entries of each recording.yaml."""
    entries = {}
    for run in runs:
        if run.corrections or run.lever_arms:
            place, shared = find_own_metadata(Path(run.path))
            beside = f' (in addition to those in {shared})' if shared else ''
            entries[f'{place}{beside}'] = tuple(entry_lines(run).values())
    heading = 'Write these corrections (or repeat with --write), instead of existing ones, to'
    return [heading, *file_lines(entries)] if entries else []


def file_lines(entries: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Return lines with the entries of files; equal entries follow all of their files."""
    files: dict[tuple[str, ...], list[str]] = {}
    for file, file_entries in entries.items():
        files.setdefault(file_entries, []).append(f'  {file}:')
    return [
        line
        for file_entries, names in files.items()
        for line in (*names, *(f'    {entry}' for entry in file_entries))
    ]


def _short(value: float) -> str:
    if value == 0.0:
        return '0'
    if 1e3 <= abs(value) < 1e5:
        return f'{value:.0f}'
    return f'{value:.3g}' if 1e-3 <= abs(value) < 1e5 else f'{value:.1e}'


def preflight_figure(runs: Sequence[Preflight], *, title: str = '') -> Figure:
    """Return a figure with a strip per check: its value in each recording relative to its limit.

    The axis is logarithmic and the line at 1 is the limit. Values beyond the axis are drawn at its
    end. A check without a number has a mark at the end if it warns or fails, and no strip if it
    passes.
    """
    every = lines(runs, by_subject=True)
    strips = [strip for strip in every if any(_shares(strip, status) for status in _MARKS)]
    figure = new_figure(7.5, 1.3 + 0.19 * len(strips))
    axes = figure.subplots()
    log_x(axes)
    axes.axvline(1.0, color='#333333', linewidth=1.0)
    for row, line in enumerate(strips):
        for status in (PASS, WARN, FAIL):
            shares = _shares(line, status)
            if not shares:
                continue
            colour, mark = _MARKS[status]
            # Arrows at both ends: these values are beyond the axis.
            for marker, drawn in (
                ('<', [_MIN for share in shares if share < _MIN]),
                (mark, [share for share in shares if _MIN <= share <= _MAX]),
                ('>', [_MAX for share in shares if share > _MAX]),
            ):
                axes.plot(
                    drawn, [row] * len(drawn), marker, color=colour, markersize=5, alpha=0.8,
                    markeredgewidth=0, linestyle='none', clip_on=False,
                )  # fmt: skip
    axes.set_yticks(range(len(strips)), [line.label for line in strips])
    axes.set_ylim(len(strips) - 0.4, -0.6)
    axes.set_xlim(_MIN, _MAX)
    axes.set_xlabel('value / limit (at most 1 passes; arrows: beyond the axis)', fontsize=8)
    tidy(axes, grid=True)
    axes.set_axisbelow(True)
    marks = [
        legend_line(status, colour, marker=mark, linestyle='none', markeredgewidth=0)
        for status, (colour, mark) in _MARKS.items()
    ]
    figure_legend(figure, marks, 3, title)
    return figure


def _shares(line: Line, status: str) -> list[float]:
    shares = []
    for _, outcome in line.outcomes:
        share = outcome.measure.share
        if outcome.status != status or (share is None and status == PASS):
            continue
        shares.append(math.inf if share is None else share)
    return shares
