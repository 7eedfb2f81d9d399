# SPDX-License-Identifier: Apache-2.0
"""One HTML page about a study: no file beside it, no network, the same bytes every time."""

from __future__ import annotations

import base64
import dataclasses
import functools
import hashlib
import importlib.util
import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup, escape

from sim2real_eval.common.findings import Finding
from sim2real_eval.common.results import versions
from sim2real_eval.metrics.series import REAL
from sim2real_eval.report.answer import AnswerLine, adapted_text
from sim2real_eval.report.console import NONE, counted
from sim2real_eval.report.palette import ON_DARK, model_colours
from sim2real_eval.study.outcome import StudyOutcome, describe_failures
from sim2real_eval.study.secondary_results import SideResults
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.measurements import FloatArray
from .section import SPEED, Chapter, JudgeSection, judge_section, ranking_view, side_sections
from .tables import Standing, overview, record_tables, record_texts, run_table, standings

_SCRIPTS = ('bokeh.min.js', 'bokeh-api.min.js')
_MOST_POINTS = 1000
_DASHES = ('solid', 'dashed', 'dotted')
_NAME = 24
_FEW = 12


@dataclasses.dataclass(frozen=True)
class SeriesStyle:
    """Name and colour variable of a model, of the real sensors or of the truth.

    `cycle` counts the earlier series with the same hue; each of them has another dash.
    """

    name: str
    colour: str
    cycle: int = 0

    @property
    def kind(self) -> str:
        """Class of its elements in the page."""
        return self.colour.removeprefix('--')


TRUTH = SeriesStyle('truth', '--truth')


@functools.cache
def library() -> str:
    """Return Bokeh's script, 1.4 MB, without importing Bokeh."""
    spec = importlib.util.find_spec('bokeh')
    if spec is None or not spec.submodule_search_locations:
        raise Sim2RealError('the report page needs Bokeh; pip install bokeh')
    folder = Path(spec.submodule_search_locations[0], 'server', 'static', 'js')
    text = '\n'.join((folder / name).read_text('utf-8').strip() for name in _SCRIPTS)
    # A closing tag in a string of the script would end the script element.
    return text.replace('</script', '<\\/script')


class Plot:
    """A plot as wide as the page; axes are labelled with units.

    `rows` are names at the y axis from top to bottom; y is then the number of a row. `x_range`
    holds fixed limits; by default the limits follow the visible series. Both axes of a `plan`
    have the same scale.
    """

    def __init__(
        self,
        described: str,
        x_label: str,
        y_label: str = '',
        *,
        log: tuple[bool, bool] = (False, False),
        rows: Sequence[str] = (),
        height: int = 320,
        x_range: tuple[float, float] | None = None,
        plan: bool = False,
    ) -> None:
        self.described = described
        self.height = height
        if rows:
            self.height = 66 + (26 if len(rows) <= _FEW else 20) * len(rows)
        self._log = log
        self._axes = {
            'labels': [x_label, y_label], 'log': log, 'rows': [*map(short_name, rows)],
            'range': x_range, 'plan': plan,
        }  # fmt: skip
        self._layers: list[dict[str, Any]] = []
        self._hover: list[tuple[str, str]] = []

    def lines(
        self,
        source: SeriesStyle,
        x: FloatArray,
        y: FloatArray,
        *,
        width: float = 1.6,
        aside: bool = False,
    ) -> None:
        """Draw a line, thinned for the screen; a line with `aside` does not affect the limits."""
        x, y = thinned(x, y)
        self._add('line', source, {'x': x, 'y': y}, width=width, aside=aside)

    def band(self, source: SeriesStyle, x: FloatArray, low: FloatArray, high: FloatArray) -> None:
        """Fill between two lines."""
        self._add('varea', source, {'x': x, 'y1': low, 'y2': high}, alpha=0.18)

    def dots(
        self, source: SeriesStyle, *, filled: str = '', size: float = 8.0, **columns: Any
    ) -> None:
        """Draw dots at the columns x and y; other columns are for the hover.

        `filled` is the variable of the fill colour; by default it is the translucent line colour.
        """
        alpha = 1.0 if filled else 0.5
        self._add('scatter', source, columns, fill=filled, size=size, width=1.8, alpha=alpha)

    def segments(self, source: SeriesStyle, *, width: float = 2.0, **columns: Any) -> None:
        """Draw lines from x0, y0 to x1, y1."""
        self._add('segment', source, columns, width=width)

    def boxes(self, source: SeriesStyle, **columns: Any) -> None:
        """Fill boxes from left, bottom to right, top, behind all lines."""
        self._add('quad', source, columns, alpha=0.6)

    def hover(self, tooltips: Mapping[str, str]) -> None:
        """Show values of lines and dots at the pointer: labels to texts like `@x{0.00} m/s`."""
        self._hover = list(tooltips.items())

    def _add(
        self, kind: str, source: SeriesStyle, columns: Mapping[str, Any], **style: Any
    ) -> None:
        if kind in ('line', 'varea'):
            columns = {
                name: values if self._log[name[0] == 'y'] else on_screen(values)
                for name, values in columns.items()
            }
        self._layers.append(
            {
                'kind': kind,
                'name': source.name,
                'colour': source.colour,
                'dash': _DASHES[source.cycle % len(_DASHES)],
                'data': {name: _plain(values) for name, values in columns.items()},
                **style,
            }
        )

    def item(self, place: Callable[[list[Any]], int]) -> dict[str, Any]:
        """Return the plot as plain values for JSON, with a number in place of each column.

        `place` stores a column and returns its number, so that lines can share their times.
        """
        layers = [
            {**layer, 'data': {name: place(column) for name, column in layer['data'].items()}}
            for layer in self._layers
        ]
        return {'height': self.height, **self._axes, 'layers': layers, 'hover': self._hover}


def _plain(column: Any) -> list[Any]:
    """Return a column as a list, with numbers rounded to five digits."""
    if isinstance(column, np.ndarray):
        return [float(f'{number:.5g}') for number in column.tolist()]
    return list(column)


def on_screen(values: FloatArray) -> FloatArray:
    """Return values rounded to the decimals that 4000 points across their range need.

    Examples
    --------
    >>> on_screen(np.array([0.0, 1 / 3, 20.0])).tolist()
    [0.0, 0.333, 20.0]
    """
    span = float(np.ptp(values)) if len(values) else 0.0
    if not 0.0 < span < np.inf:
        return values
    return np.round(values, max(0, math.ceil(-math.log10(span / 4000.0))))


def short_name(name: str) -> str:
    """Return a name shortened to its start and end, so that the plot has enough room."""
    return name if len(name) <= _NAME else f'{name[: _NAME - 11]}…{name[-10:]}'


def thinned(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return about 1000 points of a line: both ends, and the extremes of each section.

    Examples
    --------
    >>> x = np.arange(1e5)
    >>> kept = thinned(x, np.where(x == 77_777, 1.0, 0.0))
    >>> len(kept[0]), float(kept[0][0]), float(kept[0][kept[1] == 1.0][0])
    (502, 0.0, 77777.0)
    """
    if len(x) <= _MOST_POINTS:
        return x, y
    edges = np.linspace(0, len(x), _MOST_POINTS // 2 + 1).astype(int)
    extremes = {
        first + int(extreme(y[first:last]))
        for first, last in itertools.pairwise(edges.tolist())
        for extreme in (np.argmin, np.argmax)
    }
    places = sorted({0, *extremes, len(x) - 1})
    return x[places], y[places]


_UNBROKEN = re.compile(r'--[a-z][a-z-]*(?: \d[\d.]*(?!\w))?|\d[\d.]* (?:%|m/s)')


def study_page(
    outcome: StudyOutcome,
    *,
    study_file: str = '',
    command: str = '',
    side: SideResults | None = None,
    standing: Sequence[Standing] | None = None,
    answer: Sequence[AnswerLine] = (),
    findings: Sequence[Finding] = (),
) -> str:
    """Return the page as text.

    The page shows the study file, the command that repeats the study and, if they are passed, the
    answer, findings, other metrics and sensitivity. `standing` is the result of `standings`, which
    is computed if omitted; it must hold at least one judge.
    """
    standing = standings(outcome) if standing is None else standing
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
    nearest = standing[0].known.order[:_SHOWN]
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
            answer=answer,
            facts=_facts(outcome),
            rankings=views,
            failures=describe_failures(record),
            adapted=adapted_text(record),
            findings=findings,
            overview=overview(standing, colours),
            overlay=overlay,
            judges=judges,
            sections=[] if side is None else side_sections(side),
            runs=runs,
            scenario_column=labels.index('scenario'),
            model_column=labels.index('model'),
            scenarios=outcome.scenarios,
            command=command,
            shipped=bool(record.get('shipped')),
            provenance=record_tables(record),
            texts=record_texts(record, study_file),
        )
    )
    return text


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
    environment.filters['unbroken'] = _unbroken
    return environment


def _unbroken(text: object) -> Markup:
    """Return text in which no line breaks within an option, or between a number and its unit."""
    return Markup(_UNBROKEN.sub(r'<span class="unbroken">\g<0></span>', str(escape(text))))


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
    order = [model.model for model in standing.known.order]
    order += [name for name in outcome.models if name not in order]
    # Stand-ins never pass for real sensors.
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
        # Printed pages are white, also if the screen was dark.
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
        ('recordings', f'{len(real)} in {counted(len(outcome.scenarios), "scenario")}'),
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
