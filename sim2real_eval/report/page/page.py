# SPDX-License-Identifier: Apache-2.0
"""One HTML page about a study: no file beside it, no network, the same bytes every time."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from sim2real_eval.common.results import versions
from sim2real_eval.metrics.series_folder import REAL
from sim2real_eval.metrics.uncertainty.result import DistanceUncertainty
from sim2real_eval.report.page.figure import NONE, decimal, span
from sim2real_eval.report.page.markup import joined
from sim2real_eval.report.page.ranking import Standing, p_value_text, standings
from sim2real_eval.report.page.section import judge_section, ranking_view, side_sections
from sim2real_eval.report.page.tables import (
    overview,
    record_tables,
    record_texts,
    run_table,
    shown_model,
)
from sim2real_eval.report.style import ON_DARK, ON_WHITE, model_colours
from sim2real_eval.study.outcome import StudyOutcome
from sim2real_eval.study.run import told_failures
from sim2real_eval.study.secondary_results import SideResults
from sim_sensors.core.errors import Sim2RealError


def study_page(
    outcome: StudyOutcome,
    *,
    study_file: str = '',
    command: str = '',
    side: SideResults | None = None,
    standing: Sequence[Standing] | None = None,
) -> str:
    """Return the page as text.

    It shows the text of the study file, the command that repeats the study and, where they are
    given, metrics beside VEPD and sensitivity. `standing`, from `standings`, is made when omitted.
    Sim2RealError when no judge has both a real and a simulated run.
    """
    standing = standings(outcome) if standing is None else standing
    if not standing:
        raise Sim2RealError('no runs to show; need at least one real and one simulated run')
    record = outcome.record
    synthetic = bool(record.get('synthetic'))
    colours, rules = _colours(outcome.models)
    views = [ranking_view(one, colours) for one in standing]
    named = {shown_model(name, synthetic=synthetic): kind for name, kind in colours.items()}
    runs = run_table(outcome, named, synthetic=synthetic)
    labels = [column.label for column in runs.columns]
    script = _asset('page.js')
    notes = [str(note['text']) for note in record.get('notes') or []]
    text: str = (
        _environment()
        .get_template('page.html')
        .render(
            title=str(record.get('title') or 'Study'),
            about=str(record.get('about') or ''),
            synthetic=synthetic,
            version=versions()['sim2real_sensors'],
            style=Markup(_asset('style.css')),
            script=Markup(script),
            script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            colour_rules=rules,
            answer=answer(standing[0], 'the stand-in' if synthetic else 'the real sensors'),
            concord=concord(standing),
            facts=_facts(outcome),
            rankings=views,
            failures=told_failures(record),
            notes=notes,
            overview=overview(standing, colours),
            judges=[
                judge_section(outcome, judge, views, colours, place=place, synthetic=synthetic)
                for place, judge in enumerate(outcome.judges)
            ],
            sections=[] if side is None else side_sections(side),
            runs=runs,
            scenario_column=labels.index('scenario'),
            model_column=labels.index('model'),
            scenarios=outcome.scenarios,
            sources=[shown_model(name, synthetic=synthetic) for name in (REAL, *outcome.models)],
            run_notes=[
                (' · '.join(map(str, run.key)), run.notes) for run in outcome.runs if run.notes
            ],
            command=command,
            shipped=bool(record.get('shipped')),
            provenance=record_tables(record),
            texts=record_texts(record, study_file),
        )
    )
    return text


@functools.cache
def _environment() -> Environment:
    return Environment(
        autoescape=True,
        loader=PackageLoader('sim2real_eval.report.page', 'templates'),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _asset(name: str) -> str:
    environment = _environment()
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0].strip()


def _colours(models: Sequence[str]) -> tuple[dict[str, str], Markup]:
    """Return a class per source, and the rules that give the classes their colours."""
    known = model_colours(models)
    classes = {REAL: 'c-real'} | {model: f'c{number}' for number, model in enumerate(models)}
    bright, dark = (
        ';'.join(f'--c{number}:{hues[known[model]]}' for number, model in enumerate(models))
        for hues in (ON_WHITE, ON_DARK)
    )
    rules = [
        f':root{{{bright}}}',
        f'@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}',
        f':root[data-theme=dark]{{{dark}}}',
        # Paper is white, whatever the screen was.
        f'@media print{{:root:root{{{bright}}}}}',
        '.c-real{--c:var(--real)}',
        *(f'.c{number}{{--c:var(--c{number})}}' for number in range(len(models))),
    ]
    return classes, Markup('\n'.join(rules))


def _facts(outcome: StudyOutcome) -> list[tuple[str, str]]:
    record = outcome.record
    labels = [one['label'] for one in record.get('conditions') or [] if one['label']]
    real = {run.key.recording for run in outcome.runs if run.is_real}
    if labels:
        # The runs of a recording under a condition are called recording@label.
        real = {name.rpartition('@')[0] for name in real}
    scenarios = len(outcome.scenarios)
    facts = [
        ('recordings', f'{len(real)} in {scenarios} scenario{"s" if scenarios > 1 else ""}'),
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


# The answer in a sentence or two: the closest model, and whether it differs from reality.

_NAME = Markup('<strong class="name">{}</strong>')


def answer(standing: Standing, real: str) -> list[Markup]:
    """Return the sentences about one judge, the most important first.

    `real` is what the recordings are, such as `the real sensors`.
    """
    order = standing.known.order
    best = order[0]
    per_cent = f'{100 * standing.known.options.level:g} %'
    many = f' of {len(order)} models' if len(order) > 1 else ''
    interval = ''
    if best.low is not None and best.high is not None:
        interval = f' ({per_cent} interval {span(best.low, best.high)})'
    said = [
        Markup('{} is the closest{} to {}: VEPD {}{}.').format(
            _NAME.format(best.model), many, real, decimal(best.distance), interval
        ),
        _against_real(best, per_cent, real, standing.known.options.level),
    ]
    if len(order) > 1:
        said.append(_against_next(standing, order))
    return said


def _against_real(best: DistanceUncertainty, per_cent: str, real: str, level: float) -> Markup:
    p_value = best.p_value if best.adjusted is None else best.adjusted
    if p_value is None or best.null_high is None:
        return Markup(
            'So few recordings cannot show whether it differs significantly from {}.'
        ).format(real)
    verdict = 'differs' if p_value <= 1.0 - level else 'does not differ'
    return Markup(
        'It <strong>{} significantly</strong> from {}: identical sensors would score up to {} in '
        '{} of such studies ({}).'
    ).format(verdict, real, decimal(best.null_high), per_cent, _probability(p_value))


def _probability(p_value: float | None) -> str:
    said = p_value_text(p_value)
    return f'p {said}' if said.startswith('<') else f'p = {said}'


def _against_next(standing: Standing, order: Sequence[DistanceUncertainty]) -> Markup:
    best, second = order[0], order[1]
    pair = standing.known.pair(best.model, second.model)
    gap = decimal(abs(pair.difference))
    name = _NAME.format(second.model)
    if pair.distinguishable is None:
        return Markup('The next, {}, is {} farther.').format(name, gap)
    p_value = _probability(pair.p_value if pair.adjusted is None else pair.adjusted)
    if pair.distinguishable:
        return Markup(
            'The next, {}, is {} farther and <strong>significantly different</strong> from it '
            '({}).'
        ).format(name, gap, p_value)
    return Markup(
        'The next, {}, is {} farther, and these recordings <strong>do not tell the two apart'
        '</strong> ({}); more motions that would: {}.'
    ).format(name, gap, p_value, standing.known.more(pair))


def concord(standings: Sequence[Standing]) -> Markup | None:
    """Say whether all judges and groups name the same model; None with one of them."""
    if len(standings) < 2:
        return None
    first = standings[0].known.order[0].model
    others = [one for one in standings[1:] if one.known.order[0].model != first]
    if not others:
        return Markup('{} rankings of this study name it first.').format(
            'Both' if len(standings) == 2 else f'All {len(standings)}'
        )
    named = joined(
        Markup('{}{} under {}').format(
            '; ' if place else '', _NAME.format(one.known.order[0].model), one.label
        )
        for place, one in enumerate(others[:4])
    )
    more = f'; and {len(others) - 4} more' if len(others) > 4 else ''
    return Markup('Others rank differently: {}{}.').format(named, more)
