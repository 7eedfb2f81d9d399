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
from sim2real_eval.common.results import write_json
from sim2real_eval.study.answer import Answer, View
from sim_sensors.core.errors import Sim2RealError
from .console import count_text, list_text, p_value_text, short_number

_MOST = 3
_ENOUGH = 6  # the fewest recordings from which a p-value can reach 0.05


class AnswerLine(NamedTuple):
    """One line of an answer: a heading and its text."""

    head: str
    text: str


def answer_lines(answer: Answer, unseen: str = '') -> list[AnswerLine]:
    """Return the answer, the most important line first.

    `unseen` names the differences that the judge cannot detect, from `sim2real sensitivity`; it
    is empty if unknown.

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
    Main doubt: the answer is valid only for motions, sensors and judges like those of this study
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
    """Return the models that are nearest by position, heading or attitude, if not the answer."""
    quantities: dict[str, list[str]] = {}
    for pose in answer.poses:
        if pose.nearest != answer.nearest:
            quantities.setdefault(pose.nearest, []).append(pose.quantity)
    return ', '.join(
        f'{model} is nearest by {" and ".join(names)}' for model, names in quantities.items()
    )


def _doubt(answer: Answer) -> str:
    """Return the strongest reason to doubt the answer; there is always one."""
    if answer.doubt is not None:
        return str(answer.doubt)
    if answer.view.p_value is None:
        recordings = _recordings(answer)
        return f'{recordings} cannot show whether a difference is significant'
    return 'the answer is valid only for motions, sensors and judges like those of this study'


def adapted_text(record: Mapping[str, Any]) -> str:
    """Return the settings that were adapted to the recordings of a study, or an empty text.

    `record` is the record of the study, see `StudyOutcome`.
    """
    findings = from_records(record.get('adapted') or ())
    text = '; '.join(f'{finding.problem} ({finding.remedy})' for finding in findings)
    return f'Adapted to the recordings: {text}.' if findings else ''


def meaning(answer: Answer) -> str:
    """Return two sentences that explain what an answer means for a simulation."""
    real = real_sensors(answer)
    if answer.distinguishable is None:
        then = 'Too few recordings to show whether the difference is significant.'
    elif answer.distinguishable:
        size = {1: 'smaller', -1: 'larger'}.get(_direction(answer), 'other')
        then = (
            'The difference is significant: a robot tuned with this model will meet '
            f'{size} errors in reality.'
        )
    else:
        then = 'These recordings show no significant difference.'
    return (
        f'With {answer.nearest}, the velocity estimates of the judge are closest to those with '
        f'{real}. {then}'
    )


def _errors(answer: Answer) -> str:
    """Return the RMSE with the model and with the real sensors, or an empty text if unknown."""
    if answer.rmse is None or answer.real_rmse is None:
        return ''
    text = f'; RMSE {answer.rmse:.3f} m/s, with {real_sensors(answer)} {answer.real_rmse:.3f} m/s'
    if not answer.distinguishable:
        # A difference that may be chance has no direction.
        return text
    verdict = {1: 'too large', -1: 'too small'}.get(_direction(answer))
    gap = abs(answer.rmse - answer.real_rmse)
    return f'{text}: {verdict} by {gap:.3f} m/s' if verdict else text


def _direction(answer: Answer) -> int:
    """Return 1 if the judge errs more with the model, -1 if less, 0 if they round to the same."""
    gap = 1000.0 * ((answer.rmse or 0.0) - (answer.real_rmse or 0.0))
    return 0 if abs(gap) < 0.5 else 1 if gap > 0.0 else -1


def answer_text(answer: Answer, unseen: str = '') -> str:
    """Return the lines of `answer_lines` as wrapped text, one below the other."""
    return lines_text(answer_lines(answer, unseen))


def lines_text(lines: Sequence[AnswerLine]) -> str:
    """Return lines as wrapped text, with the texts aligned behind their headings."""
    gap = max((len(line.head) for line in lines), default=0) + 2
    return '\n'.join(wrap_text(line.text, f'{line.head:<{gap}}') for line in lines)


def wrap_text(text: str, head: str = '') -> str:
    """Return text in lines that fit the terminal; the first line begins with a heading."""
    return textwrap.fill(
        text,
        # At most 100 columns, which are easy to read; a pipe has 100 as well.
        min(shutil.get_terminal_size((100, 24)).columns, 100),
        initial_indent=head,
        subsequent_indent=' ' * len(head),
        break_on_hyphens=False,
        break_long_words=False,
    )


def real_sensors(answer: Answer) -> str:
    """Return the name of the sensors with which the models are compared."""
    return 'the stand-in' if answer.is_synthetic else 'the real sensors'


def _nearest(answer: Answer) -> str:
    many = f', of {answer.models}' if answer.models > 1 else ''
    phrase = f' ({answer.phrase})' if answer.phrase else ''
    interval = ''
    if answer.low is not None and answer.high is not None:
        ends = f'{answer.low:.3g} to {answer.high:.3g}'
        interval = f', {100 * answer.level:g} % interval {ends}'
    recordings = _recordings(answer)
    judge = f', judge {answer.view.label}' if answer.view.label else ''
    vepd = f'VEPD {short_number(answer.distance)}{interval}'
    return f'{answer.nearest}{phrase}{many}: {vepd} ({recordings}{judge})'


def _against_real(answer: Answer) -> str:
    view = answer.view
    if view.p_value is None:
        recordings = _recordings(answer)
        of_blocks = ' blocks' if answer.blocks else ''
        return f'unknown with {recordings}; record at least {_ENOUGH}{of_blocks}{_errors(answer)}'
    p_value, names = _p_value(answer, view.p_value), view.distinguished_by
    metrics = f'{len(names)} of {view.tested} other metrics'
    if view.distinguishable:
        also = f', also by {metrics}' if names else ''
        return f'no: distinguishable by VEPD ({p_value}){also}{_errors(answer)}'
    text = f'VEPD does not distinguish it ({p_value})'
    if names:
        does = 'does' if len(names) == 1 else 'do'
        return f'no: {text}, but {metrics} {does}: {list_text(names, _MOST)}{_errors(answer)}'
    nor = f', nor do the {view.tested} other metrics' if view.tested else ''
    return f'no difference found: {text}{nor}{_errors(answer)}'


def _p_value(answer: Answer, p_value: float) -> str:
    """Return an adjusted p-value and how it compares with the significance level."""
    limit = 1.0 - answer.level
    number = p_value_text(p_value)
    if p_value < 0.001:
        return f'adjusted p {number}'
    if float(number) <= limit + 1e-9 < p_value:
        # The rounded p-value would seem significant.
        number = f'{p_value:.4g}'
    return f'adjusted p {number} {">" if p_value > limit + 1e-9 else "<="} {limit:.3g}'


def _against_next(answer: Answer) -> str:
    assert answer.gap is not None
    text = f'{answer.next}, {short_number(answer.gap)} farther'
    if answer.gap_p_value is None or answer.gap_distinguishable is None:
        return text
    significance = _p_value(answer, answer.gap_p_value)
    if answer.gap_distinguishable:
        return f'{text}: distinguishable from {answer.nearest} ({significance})'
    if answer.gap_p_value <= 1.0 - answer.level:
        significance += ', but the interval of the difference, adjusted for all pairs, includes 0'
    return (
        f'{text}: not distinguishable from {answer.nearest} ({significance}); '
        f'{answer.more_motions} more recordings would be needed to show a difference'
    )


def _agreement(answer: Answer) -> str:
    answer_view, other_views = answer.view, answer.views[1:]
    metrics, options = len(answer_view.other_metrics), len(answer_view.other_options)
    disagreements = [_dissent(answer, view) for view in answer.dissenting[:_MOST]]
    if len(answer.dissenting) > _MOST:
        disagreements.append(
            f'{len(answer.dissenting) - _MOST} more of {len(other_views)} judges and groups'
        )
    if answer_view.distinguished_by and not answer_view.distinguishable:
        does = 'distinguishes' if len(answer_view.distinguished_by) == 1 else 'distinguish'
        disagreements.append(
            f'{len(answer_view.distinguished_by)} of {answer_view.tested} other metrics {does} '
            f'it from {real_sensors(answer)}, VEPD does not'
        )
    if answer.missed_by_count:
        does = 'does' if answer.missed_by_count == 1 else 'do'
        disagreements.append(
            f'{answer.missed_by_count} of {answer_view.tested} other metrics {does} not '
            f'distinguish it from {real_sensors(answer)}'
        )
    if metrics:
        name = 'names' if metrics == 1 else 'name'
        disagreements.append(
            f'{metrics} of {answer_view.metrics} other metrics {name} another model '
            f'({list_text(answer_view.other_metrics, _MOST)})'
        )
    if options:
        name = 'names' if options == 1 else 'name'
        disagreements.append(
            f'{options} of {answer_view.options} other options of VEPD {name} another model '
            f'({list_text(answer_view.other_options, _MOST)})'
        )
    if poses := _other_poses(answer):
        disagreements.append(poses)
    if disagreements:
        return f'no: {"; ".join(disagreements)}'
    judges = len({view.judge for view in answer.views})
    what = (
        count_text(judges, 'judge') if judges > 1 else f'{len(answer.views)} groups of recordings'
    )
    views = f'{what}, ' if other_views else ''
    poses = ', position, heading and attitude' if len(answer.poses) == 3 else ''
    return (
        f'yes: {views}{answer_view.metrics} other metrics{poses} and '
        f'{answer_view.options} other options of VEPD'
    )


def _dissent(answer: Answer, view: View) -> str:
    if view.nearest != answer.nearest:
        return f'judge {view.label} names {view.nearest}'
    does = 'distinguishes it' if view.distinguishable else 'does not distinguish it'
    significance = '' if view.p_value is None else f' ({_p_value(answer, view.p_value)})'
    return f'judge {view.label} {does} from {real_sensors(answer)}{significance}'


def _recordings(answer: Answer) -> str:
    blocks = f' in {count_text(answer.blocks, "block")}' if answer.blocks else ''
    return count_text(answer.recordings, 'recording') + blocks


MARK = 'sensitivity.json'
"""Name of the file with the sensitivity of judges, also in the folder of a study."""


def write_sensitivity(study: str | Path, record: Mapping[str, Any]) -> None:
    """Write a sensitivity result into the folder of a study, so that its report shows it."""
    write_json(Path(study) / MARK, record, allow_nan=False)


def read_record(study: str | Path) -> dict[str, Any] | None:
    """Return the record that `write_sensitivity` wrote into a folder, or None if there is none."""
    path = Path(study) / MARK
    try:
        record = json.loads(path.read_text(encoding='utf-8'))
        if not isinstance(record['answers'], dict):
            raise TypeError
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        raise Sim2RealError(f'{path}: is not a result of `sim2real sensitivity`') from None
    return dict(record)


def undetected_text(record: Mapping[str, Any] | None, judge: str) -> str:
    """Return the text about what a judge cannot detect, or an empty text if unknown."""
    return str((record or {'answers': {}})['answers'].get(judge, ''))
