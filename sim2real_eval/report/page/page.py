# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""HTML report of a study in one reproducible file that needs no network."""

from __future__ import annotations

import base64
import dataclasses
import functools
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup, escape

from sim2real_eval.common.findings import Finding
from sim2real_eval.common.results import versions
from sim2real_eval.metrics.options import REAL
from sim2real_eval.report.answer import (
    adapted_text,
    answer_lines,
    detail_lines,
    headline,
    next_step,
)
from sim2real_eval.report.console import NONE, count_text
from sim2real_eval.report.palette import ON_DARK, model_colours
from sim2real_eval.study.answer import Answer
from sim2real_eval.study.outcome import StudyOutcome, describe_failures
from sim2real_eval.study.secondary_results import SideResults
from .figure import Plot, SeriesStyle, library
from .ranking_view import ranking_view
from .section import SPEED, Chapter, JudgeSection, judge_section, side_sections, transfer_section
from .selection import MAX_ROWS, shorten_command
from .tables import Standing, overview, record_tables, record_texts, run_table, standings

_UNBROKEN = re.compile(r'--[a-z][a-z-]*(?: \d[\d.]*(?!\w))?|\d[\d.]* (?:%|m/s)')
_CODE = re.compile(r'`([^`]+)`')


def study_page(
    outcome: StudyOutcome,
    *,
    study_file: str = '',
    command: str = '',
    side: SideResults | None = None,
    transfer: Mapping[str, Any] | None = None,
    standing: Sequence[Standing] | None = None,
    answer: Answer | None = None,
    unseen: str = '',
    findings: Sequence[Finding] = (),
) -> str:
    """Return the page as text.

    The page shows the study file, the command that repeats the study and, if they are passed, the
    answer, findings, other metrics, sensitivity and transfer. `unseen`: see `detail_lines`.
    `standing` is the result of `standings`, which is computed if omitted; it must hold at least
    one judge.
    """
    standing = standings(outcome, side) if standing is None else standing
    record = outcome.record
    synthetic = bool(record.get('synthetic'))
    sources = _sources(outcome, standing[0])
    colours = {name: source.kind for name, source in sources.items()}
    phrases = record.get('phrases') or {}
    views = [ranking_view(judge_standing, colours, phrases) for judge_standing in standing]
    named = {source.name: source.kind for source in sources.values()}
    runs = run_table(outcome, sources)
    labels = [column.label for column in runs.columns]
    judges, overlay = _overlay(
        [
            judge_section(outcome, judge, views, sources, place)
            for place, judge in enumerate(outcome.judges)
        ]
    )
    nearest = standing[0].pooled_uncertainty.order[:_SHOWN]
    script = _asset('page.js')
    items: list[dict[str, Any]] = []
    columns: dict[tuple[Any, ...], int] = {}

    def place(plot: Plot) -> int:
        items.append(plot.item(lambda column: columns.setdefault(tuple(column), len(columns))))
        return len(items) - 1

    text: str = (
        _environment()
        .get_template('page.html')
        .render(
            title=_title(outcome),
            about=str(record.get('about') or ''),
            synthetic=synthetic,
            compared='the stand-in' if synthetic else 'the real sensors',
            phrases=phrases,
            version=versions()['sim2real_sensors'],
            style=Markup(_asset('style.css')),
            script=Markup(script),
            library=Markup(library()),
            digests=[_digest(library()), _digest(script)],
            colour_rules=_colour_rules(outcome.models),
            sources=sources.values(),
            shown=[sources[REAL].kind, *(sources[model.model].kind for model in nearest)],
            named=named,
            place=place,
            plots=lambda: htmlsafe_json_dumps(
                {'plots': items, 'columns': list(columns)}, separators=(',', ':')
            ),
            lead=f'{headline(answer)}.' if answer else '',
            next=next_step(answer, record) if answer else None,
            answer=answer_lines(answer)[1:] if answer else (),
            details=[answer_lines(answer)[0], *detail_lines(answer, unseen)] if answer else (),
            facts=_facts(outcome),
            rankings=views,
            failures=_first_failures(record),
            adapted=adapted_text(record),
            findings=findings,
            overview=overview(standing, colours),
            overlay=overlay,
            judges=judges,
            sections=[
                *([] if transfer is None else [transfer_section(transfer)]),
                *([] if side is None else side_sections(side)),
            ],
            runs=runs,
            scenario_column=labels.index('scenario'),
            model_column=labels.index('model'),
            scenarios=outcome.scenarios,
            command=shorten_command(command),
            shipped=bool(record.get('shipped')),
            provenance=record_tables(record),
            texts=record_texts(record, study_file),
        )
    )
    return text


def _first_failures(record: Mapping[str, Any]) -> list[str]:
    failures = describe_failures(record)
    more = len(failures) - MAX_ROWS
    return [*failures[:MAX_ROWS], *([f'{more} more: findings.txt'] if more > 0 else [])]


def _title(outcome: StudyOutcome) -> str:
    """Return the study's title with the number of recordings without a run."""
    title = str(outcome.record.get('title') or 'Study')
    recordings = {recording['name'] for recording in outcome.record.get('recordings', ())}
    missing = recordings - _recordings(outcome, (run.key.recording for run in outcome.runs))
    return f'{title}; {len(missing)} of {len(recordings)} left out' if missing else title


def _recordings(outcome: StudyOutcome, names: Iterable[str]) -> set[str]:
    """Return the recordings of runs, without the condition in names like recording@label."""
    labelled = any(condition['label'] for condition in outcome.record.get('conditions') or [])
    return {name.rpartition('@')[0] if labelled else name for name in names}


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        autoescape=True,
        loader=PackageLoader('sim2real_eval.report.page', 'templates'),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {'unbroken': _unbroken, 'coded': _coded}
    return environment


def _unbroken(text: object) -> Markup:
    """Return text in which no line breaks within an option, or between a number and its unit."""
    return Markup(_UNBROKEN.sub(r'<span class="unbroken">\g<0></span>', str(escape(text))))


def _coded(text: object) -> Markup:
    """Return text of our own as `_unbroken` does, with what is between backticks as code."""
    parts = _CODE.split(str(text))
    parts[::2] = [str(_unbroken(part)) for part in parts[::2]]
    parts[1::2] = [f'<code>{escape(part)}</code>' for part in parts[1::2]]
    return Markup(''.join(parts))


def _asset(name: str) -> str:
    environment = _environment()
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0].strip()


_SHOWN = 3
"""Number of nearest models that are visible in plots of lines at first."""


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _sources(outcome: StudyOutcome, standing: Standing) -> dict[str, SeriesStyle]:
    """Return the styles of the real sensors and of the models, the nearest model first."""
    hues = model_colours(outcome.models)
    used_hues: list[str] = []
    order = [model.model for model in standing.pooled_uncertainty.order]
    order += [name for name in outcome.models if name not in order]
    # Simulated stand-ins must not be mistaken for real sensors.
    real = 'stand-in for real' if outcome.record.get('synthetic') else REAL
    sources = {REAL: SeriesStyle(real, '--real')}
    for name in order:
        number = outcome.models.index(name)
        sources[name] = SeriesStyle(name, f'--c{number}', used_hues.count(hues[name]))
        used_hues.append(hues[name])
    return sources


def _overlay(judges: list[JudgeSection]) -> tuple[list[JudgeSection], Chapter | None]:
    """Return the judges without the first plot of speeds, and that plot for the top."""
    chapters = list(judges[0].chapters)
    speed_chapter = next((chapter for chapter in chapters if chapter.title == SPEED), None)
    if speed_chapter is None:
        return judges, None
    place = chapters.index(speed_chapter)
    remaining = dataclasses.replace(speed_chapter, drawings=speed_chapter.drawings[1:])
    chapters[place : place + 1] = [remaining] if remaining.drawings else []
    first = dataclasses.replace(judges[0], chapters=chapters)
    return [first, *judges[1:]], dataclasses.replace(
        speed_chapter, drawings=speed_chapter.drawings[:1]
    )


def _colour_rules(models: Sequence[str]) -> Markup:
    """Return the rules that give the variables and classes of models their colours."""
    colours = model_colours(models)
    bright, dark = (
        ';'.join(f'--c{number}:{hue(colours[model])}' for number, model in enumerate(models))
        for hue in (str, ON_DARK.__getitem__)
    )
    rules = [
        f':root{{{bright}}}',
        f'@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}',
        f':root[data-theme=dark]{{{dark}}}',
        # Printed pages are white even if the screen is dark.
        f'@media print{{:root:root{{{bright}}}}}',
        *(f'.c{number}{{--c:var(--c{number})}}' for number in range(len(models))),
    ]
    return Markup('\n'.join(rules))


def _facts(outcome: StudyOutcome) -> list[tuple[str, str]]:
    record = outcome.record
    labels = [
        condition['label'] for condition in record.get('conditions') or [] if condition['label']
    ]
    real = _recordings(outcome, (run.key.recording for run in outcome.runs if run.is_real))
    facts = [
        ('recordings', f'{len(real)} in {count_text(len(outcome.scenarios), "scenario")}'),
        *([('conditions', str(len(labels)))] if labels else []),
        ('models', str(len(outcome.models))),
        ('judges', str(len(outcome.judges))),
        ('judged runs', str(len(outcome.runs))),
        ('speed compared', str(record.get('component', 'horizontal'))),
        ('seed', str(record.get('seed', NONE))),
    ]
    if int(record.get('repetitions') or 1) > 1:
        facts.append(('repetitions', str(record['repetitions'])))
    return facts
