# SPDX-License-Identifier: Apache-2.0
"""The answer of a study in at most six lines of text."""

from __future__ import annotations

import json
import shutil
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sim2real_eval.common.findings import from_records
from sim2real_eval.common.tables import write_json
from sim2real_eval.study.answer import Answer, View
from sim_sensors.core.errors import Sim2RealError
from .console import counted, listed, p_value_text, short_number

_MOST = 3
_ENOUGH = 6  # recordings with which p-values can be 0.05


class AnswerLine(NamedTuple):
    """A line of an answer: what it is about, and what is said of that."""

    head: str
    text: str


def answer_lines(answer: Answer, unseen: str = '') -> list[AnswerLine]:
    """Return the answer, the most important line first.

    `unseen`: what its judge would not have seen, see `sim2real sensitivity`; empty if unknown.

    Examples
    --------
    >>> from sim2real_eval.study.answer import Answer, View
    >>> view = View('clean', '', 'ch_rw', 0.31, False, 9, (), {'yaw': 'airsim'}, {}, 9, 14)
    >>> answer = Answer(
    ...     'ch_rw', '', 2, 12, 0.0415, 0.031, 0.062, 0.95, 'airsim', 0.04, 0.002, True, '0', 0.97,
    ...     (view,), (), False, 0.12, 0.15,
    ... )
    >>> for line in answer_lines(answer)[2:]:
    ...     print(f'{line.head}: {line.text}')
    The next model: airsim, 0.0400 farther: distinguishable from ch_rw (adjusted p 0.002 <= 0.05)
    How sure: ch_rw is nearest in 97 % of resampled studies
    Do all agree: no: 1 of 9 other metrics names another model (yaw)
    Main doubt: it holds for motions, sensors and a judge like those of these recordings only
    """
    like = f'Like {real_sensors(answer)}'
    lines = [('Nearest model', _nearest(answer)), (like, _against_real(answer))]
    if answer.next is not None:
        lines.append(('The next model', _against_next(answer)))
    sure = [unseen] if unseen else []
    if answer.probability is not None and answer.next is not None:
        likely = answer.probability > 0.99
        share = 'more than 99 %' if likely else f'{100.0 * answer.probability:.0f} %'
        sure.insert(0, f'{answer.nearest} is nearest in {share} of resampled studies')
    if sure:
        lines.append(('How sure', '; '.join(sure)))
    if len(answer.views) > 1 or answer.view.metrics or answer.view.options:
        lines.append(('Do all agree', _agreement(answer)))
    lines.append(('Main doubt', _doubt(answer)))
    return [AnswerLine(*line) for line in lines]


def _other_poses(answer: Answer) -> str:
    """Say which models are nearest by position, heading and attitude, where it is not that."""
    by: dict[str, list[str]] = {}
    for pose_ranking in answer.poses:
        if pose_ranking.nearest != answer.nearest:
            by.setdefault(pose_ranking.nearest, []).append(pose_ranking.quantity)
    return ', '.join(f'{model} is nearest by {" and ".join(names)}' for model, names in by.items())


def _doubt(answer: Answer) -> str:
    """Return the worst reason to doubt the answer; there always is one."""
    if answer.doubt is not None:
        return str(answer.doubt)
    if answer.view.p_value is None:
        recordings_text = _recordings(answer)
        return f'{recordings_text} cannot show whether a difference is more than chance'
    return 'it holds for motions, sensors and a judge like those of these recordings only'


def adapted_text(record: Mapping[str, Any]) -> str:
    """Return what was set because the recordings of a study demand it; empty if nothing.

    `record`: of the study, see `StudyOutcome`.
    """
    adaptations = from_records(record.get('adapted') or ())
    sentences = '; '.join(f'{finding.problem} ({finding.remedy})' for finding in adaptations)
    return f'Adapted to the recordings: {sentences}.' if adaptations else ''


def meaning(answer: Answer) -> str:
    """Return what an answer means for who simulates, in two sentences."""
    real = real_sensors(answer)
    if answer.distinguishable is None:
        then = 'So few recordings cannot show whether what differs is more than chance.'
    elif answer.distinguishable:
        size = {1: 'smaller', -1: 'larger'}.get(_direction(answer), 'other')
        then = (
            f'What differs is more than chance: a robot tuned with it will meet {size} errors in '
            'reality.'
        )
    else:
        then = 'What differs is no more than chance, as far as these recordings show.'
    return (
        f'With {answer.nearest} in place of {real} the judge estimates velocity most like it does '
        f'with {real}. {then}'
    )


def _errors(answer: Answer) -> str:
    """Say whether the judge errs more or less with the model; empty where nobody knows."""
    if answer.rmse is None or answer.real_rmse is None:
        return ''
    sentence = (
        f'; RMSE {answer.rmse:.3f} m/s, with {real_sensors(answer)} {answer.real_rmse:.3f} m/s'
    )
    if not answer.distinguishable:
        # What may be chance has no direction.
        return sentence
    verdict = {1: 'too large', -1: 'too small'}.get(_direction(answer))
    gap = abs(answer.rmse - answer.real_rmse)
    return f'{sentence}: {verdict} by {gap:.3f} m/s' if verdict else sentence


def _direction(answer: Answer) -> int:
    """Return 1 where the judge errs more with the model, -1 where less, 0 if neither shows."""
    gap = 1000.0 * ((answer.rmse or 0.0) - (answer.real_rmse or 0.0))
    return 0 if abs(gap) < 0.5 else 1 if gap > 0.0 else -1


def answer_text(answer: Answer, unseen: str = '') -> str:
    """Return the lines of `answer_lines` below each other, wrapped."""
    return lines_text(answer_lines(answer, unseen))


def lines_text(lines: Sequence[AnswerLine]) -> str:
    """Return lines below each other, wrapped, what they say behind their heads."""
    gap = max((len(line.head) for line in lines), default=0) + 2
    return '\n'.join(wrapped(line.text, f'{line.head:<{gap}}') for line in lines)


def wrapped(text: str, head: str = '') -> str:
    """Return text in lines that fit the terminal, the first behind a head."""
    return textwrap.fill(
        text,
        # As many columns as are easy to read, and so in a pipe.
        min(shutil.get_terminal_size((100, 24)).columns, 100),
        initial_indent=head,
        subsequent_indent=' ' * len(head),
        break_on_hyphens=False,
        break_long_words=False,
    )


def real_sensors(answer: Answer) -> str:
    """Return what the models are compared with."""
    return 'the stand-in' if answer.is_synthetic else 'the real sensors'


def _nearest(answer: Answer) -> str:
    many = f', of {answer.models}' if answer.models > 1 else ''
    phrase = f' ({answer.phrase})' if answer.phrase else ''
    interval = ''
    if answer.low is not None and answer.high is not None:
        # A distance is never negative, so its least value ends near zero, not at it.
        low = answer.low if answer.low > 1e-3 * answer.high else 0.0
        ends = f'{low:.3g} to {answer.high:.3g}'
        interval = f', {100 * answer.level:g} % interval {ends}'
    recordings = _recordings(answer)
    judge = f', judge {answer.view.label}' if answer.view.label else ''
    vepd = f'VEPD {short_number(answer.distance)}{interval}'
    return f'{answer.nearest}{phrase}{many}: {vepd} ({recordings}{judge})'


def _against_real(answer: Answer) -> str:
    view = answer.view
    if view.p_value is None:
        recordings_text = _recordings(answer)
        of_blocks = ' blocks' if answer.blocks else ''
        return (
            f'not known from {recordings_text}; record {_ENOUGH}{of_blocks} or more'
            f'{_errors(answer)}'
        )
    p_value, names = _p_value(answer, view.p_value), view.distinguished_by
    by = f'{len(names)} of {view.tested} other metrics'
    if view.distinguishable:
        also = f', also by {by}' if names else ''
        return f'no: distinguishable by VEPD ({p_value}){also}{_errors(answer)}'
    sentence = f'VEPD does not distinguish it ({p_value})'
    if names:
        does = 'does' if len(names) == 1 else 'do'
        return f'no: {sentence}, but {by} {does}: {listed(names, _MOST)}{_errors(answer)}'
    nor = f', nor does any of {view.tested} other metrics' if view.tested else ''
    return f'as far as these recordings show: {sentence}{nor}{_errors(answer)}'


def _p_value(answer: Answer, p_value: float) -> str:
    """Return an adjusted p-value beside the level at which it is significant."""
    limit = 1.0 - answer.level
    p_value_shown = p_value_text(p_value)
    if p_value < 0.001:
        return f'adjusted p {p_value_shown}'
    if float(p_value_shown) <= limit + 1e-9 < p_value:
        # Rounded it would seem significant.
        p_value_shown = f'{p_value:.4g}'
    return f'adjusted p {p_value_shown} {">" if p_value > limit + 1e-9 else "<="} {limit:.3g}'


def _against_next(answer: Answer) -> str:
    assert answer.gap is not None
    sentence = f'{answer.next}, {short_number(answer.gap)} farther'
    if answer.gap_p_value is None or answer.gap_distinguishable is None:
        return sentence
    why = _p_value(answer, answer.gap_p_value)
    if answer.gap_distinguishable:
        return f'{sentence}: distinguishable from {answer.nearest} ({why})'
    if answer.gap_p_value <= 1.0 - answer.level:
        why += ', but the interval of the difference, adjusted for all pairs, includes 0'
    return (
        f'{sentence}: not distinguishable from {answer.nearest} ({why}); more recordings that '
        f'would show it: {answer.more_motions}'
    )


def _agreement(answer: Answer) -> str:
    own_view, other_views = answer.view, answer.views[1:]
    metrics, options = len(own_view.other_metrics), len(own_view.other_options)
    sentences = [_dissent(answer, view) for view in answer.dissenting[:_MOST]]
    if len(answer.dissenting) > _MOST:
        sentences.append(
            f'{len(answer.dissenting) - _MOST} more of {len(other_views)} judges and groups'
        )
    if own_view.distinguished_by and not own_view.distinguishable:
        does = 'distinguishes' if len(own_view.distinguished_by) == 1 else 'distinguish'
        sentences.append(
            f'{len(own_view.distinguished_by)} of {own_view.tested} other metrics {does} it from '
            f'{real_sensors(answer)}, VEPD does not'
        )
    if answer.silent:
        does = 'does' if answer.silent == 1 else 'do'
        sentences.append(
            f'{answer.silent} of {own_view.tested} other metrics {does} not distinguish it from '
            f'{real_sensors(answer)}'
        )
    if metrics:
        name = 'names' if metrics == 1 else 'name'
        sentences.append(
            f'{metrics} of {own_view.metrics} other metrics {name} another model '
            f'({listed(own_view.other_metrics, _MOST)})'
        )
    if options:
        does = 'does' if options == 1 else 'do'
        sentences.append(
            f'so {does} {options} of {own_view.options} other options of VEPD '
            f'({listed(own_view.other_options, _MOST)})'
        )
    if poses := _other_poses(answer):
        sentences.append(poses)
    if sentences:
        return f'no: {"; ".join(sentences)}'
    judges = len({view.judge for view in answer.views})
    what = counted(judges, 'judge') if judges > 1 else f'{len(answer.views)} groups of recordings'
    views = f'{what}, ' if other_views else ''
    poses = ', position, heading and attitude' if len(answer.poses) == 3 else ''
    return (
        f'yes: {views}{own_view.metrics} other metrics{poses} and {own_view.options} other '
        'options of VEPD'
    )


def _dissent(answer: Answer, view: View) -> str:
    if view.nearest != answer.nearest:
        return f'judge {view.label} names {view.nearest}'
    does = 'distinguishes it' if view.distinguishable else 'does not distinguish it'
    p_value_note = '' if view.p_value is None else f' ({_p_value(answer, view.p_value)})'
    return f'judge {view.label} {does} from {real_sensors(answer)}{p_value_note}'


def _recordings(answer: Answer) -> str:
    blocks = f' in {counted(answer.blocks, "block")}' if answer.blocks else ''
    return counted(answer.recordings, 'recording') + blocks


MARK = 'sensitivity.json'
"""File that every result of this kind holds; in the folder of a study, what its report shows."""


def beside(study: str | Path, record: Mapping[str, Any]) -> None:
    """Put a result into the folder of a study, whose report then shows it."""
    write_json(Path(study) / MARK, record, allow_nan=False)


def read_record(study: str | Path) -> dict[str, Any] | None:
    """Return what `beside` wrote into a folder; None where it holds nothing of the kind."""
    path = Path(study) / MARK
    try:
        record = json.loads(path.read_text(encoding='utf-8'))
        if not isinstance(record['answers'], dict):
            raise TypeError
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        raise Sim2RealError(f'{path}: is not what `sim2real sensitivity` wrote') from None
    return dict(record)


def unseen(record: Mapping[str, Any] | None, judge: str) -> str:
    """Return what a judge would not have seen, for the answer of a study; empty if unknown."""
    return str((record or {'answers': {}})['answers'].get(judge, ''))
