# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The answer of a study in three lines, in plain words, and with its reasons."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sim2real_eval.common.file_list import list_files
from sim2real_eval.common.findings import from_records
from sim2real_eval.common.results import write_json
from sim2real_eval.study.answer import Answer, TransferView, View
from sim2real_eval.study.options import RMS_UNITS
from sim2real_eval.study.outcome import MARK as STUDY_MARK
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.input_files import read_json
from .console import count_text, list_text, p_value_text, short_number
from .ranking_tables import metric_names

_MAX_LISTED = 3
_UNDO = 'to disable: '
_ENOUGH = 6  # the fewest recordings from which a p-value can reach 0.05
GENERAL_DOUBT = (
    'it holds only for motions and estimators like these: record what the robot will do'
)


class AnswerLine(NamedTuple):
    """One line of an answer: a heading and its text."""

    head: str
    text: str


def answer_lines(answer: Answer) -> list[AnswerLine]:
    """Return the nearest model, what it costs, and the main doubt.

    Examples
    --------
    >>> from sim2real_eval.study.answer import Answer, View
    >>> metrics = ('VEPD', 'NIS', 'yaw')
    >>> view = View('clean', '', 'ch_rw', 0.31, False, metrics, (), 0.4, {}, {}, 2, 14)
    >>> answer = Answer(
    ...     'ch_rw', '', 2, 12, 0.0415, 0.031, 0.062, 0.95, 'airsim', 0.04, 0.002, True, '0', 0.97,
    ...     (view,), (), False, 0.12, 0.15,
    ... )
    >>> for line in answer_lines(answer)[:2]:
    ...     print(f'{line.head}: {line.text}')
    Nearest model: ch_rw, not distinguishable from the real sensors by VEPD, NIS and yaw
    Cost: unknown: run sim2real transfer; speed error 0.120 m/s, with the real sensors 0.150
    """
    return [
        AnswerLine('Nearest model', f'{answer.nearest}{_verdict(answer)}'),
        AnswerLine('Cost', _cost(answer)),
        AnswerLine('Main doubt', _doubt(answer)),
    ]


def detail_lines(answer: Answer, unseen: str = '') -> list[AnswerLine]:
    """Return the reasons of an answer: its numbers, the next model, and what disagrees.

    `unseen` is the text of `sim2real sensitivity` about differences that the judge cannot detect;
    it is empty if unknown.
    """
    lines = [('Distance', _distance(answer))]
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
    return [AnswerLine(*line) for line in lines]


def headline(answer: Answer) -> str:
    """Return which model is best and whether it differs, for a reader who does not know VEPD."""
    real, recordings = real_sensors(answer), _recordings(answer)
    name = f'{answer.nearest} ({answer.phrase})' if answer.phrase else answer.nearest
    among = f'Of {answer.models} simulated sensors, ' if answer.models > 1 else ''
    verdict = f'{among}{name} is most like {real}' if among else f'{name} was compared with {real}'
    if answer.distinguishable is None:
        return f'{verdict}, but {recordings} cannot show whether it differs'
    if answer.distinguishable:
        return f'{verdict}, but differs measurably'
    return f'{verdict}, and {recordings} show no difference'


def plain_answer(answer: Answer) -> str:
    """Return one sentence for a reader who does not know VEPD: what is best, what to do next."""
    verdict = headline(answer)
    if answer.distinguishable is None:
        return f'{verdict}: record at least {_enough(answer)} and compare again.'
    if answer.transfer is not None and answer.transfer.loss is not None:
        return f'{verdict}; {cost_text(answer.transfer)}.'
    return (
        f'{verdict}: before you rely on a filter tuned with it, measure what this '
        'costs on the robot (sim2real transfer).'
    )


class NextStep(NamedTuple):
    """What to do after a study: the reason, and a command."""

    reason: str
    command: str


_SHARED = (
    '--topic', '--scenario', '--imu', '--set', '--judge', '--judge-config', '--navsat-config',
    '--transforms', '--rl-version', '--front-end', '--correct', '--latency', '--warmup', '--adapt',
    '--block', '--seed',
)  # fmt: skip
"""Options with a value that a `transfer` must share with the `vepd` that it completes."""
_SHARED_SWITCHES = ('--match-rates', '--no-match-rates')
_MAX_PATHS = 12


def next_step(answer: Answer, record: Mapping[str, Any]) -> NextStep:
    """Return the command that answers the largest open question of a study.

    `record` is the record of the study, see `StudyOutcome`. RESULT stands for its folder, whose
    name is not in its files.
    """
    command = [str(word) for word in record.get('command') or ()]
    paths = [recording.get('path') for recording in record.get('recordings', ())]
    bags = shlex.join(map(str, paths)) if all(paths) and len(paths) <= _MAX_PATHS else 'BAGS'
    # Labels of a study file need not be names of models, but those with a phrase are.
    known = [name for name, phrase in (record.get('phrases') or {}).items() if phrase]
    model = answer.nearest if answer.nearest in known else 'MODEL'
    if not any(paths):
        return NextStep(
            'Compare with your own recordings:', 'sim2real vepd BAGS --models paper --out result'
        )
    if answer.distinguishable is None:
        return NextStep(
            f'Record at least {_enough(answer)}, then compare again:',
            f'sim2real vepd BAGS --models {",".join(known) or "MODELS"}{_shared_options(command)} '
            '--out NEW_RESULT',
        )
    if answer.transfer is None:
        return NextStep(
            'Measure what this costs on the robot:',
            f'sim2real transfer {bags} --models {model}{_shared_options(command)} --study RESULT '
            '--out cost',
        )
    return NextStep(
        'Check each change of the simulator against this result:',
        'sim2real gate NEW_RESULT --baseline RESULT/study.json',
    )


def _shared_options(command: Sequence[str]) -> str:
    """Return the options of a `vepd` command that `transfer` must have, too."""
    words: list[str] = []
    if command[1:2] == ['vepd']:
        for option, value in zip(command, [*command[1:], ''], strict=True):
            if option in _SHARED:
                words += [option, value]
            elif option in _SHARED_SWITCHES:
                words.append(option)
    return f' {shlex.join(words)}' if words else ''


def _verdict(answer: Answer) -> str:
    """Return whether the model is distinguishable, as text that follows its name."""
    view, real = answer.view, real_sensors(answer)
    if answer.distinguishable is None:
        return (
            f'; {_recordings(answer)} cannot show whether it differs from {real}: record at least '
            f'{_enough(answer)}'
        )
    # The test of the transfer loss is separate from the joint test of the metrics.
    has_loss = answer.transfer is not None and answer.transfer.distinguishable
    if not answer.distinguishable:
        also = ', but distinguishable by transfer' if has_loss else ''
        return f', not distinguishable from {real} by {metric_names(view.tested)}{also}'
    names = (*view.distinguished_by, *(('transfer',) if has_loss else ()))
    return f', distinguishable from {real} by {metric_names(names)}'


def _enough(answer: Answer) -> str:
    return f'{_ENOUGH} blocks, such as drives' if answer.blocks else f'{_ENOUGH} drives'


def _more_motions(answer: Answer) -> str:
    unit = 'block' if answer.blocks else 'recording'
    return f'{answer.more_motions} more {unit}{"" if answer.more_motions == "1" else "s"}'


def _cost(answer: Answer) -> str:
    """Return the cost of a filter that is tuned on the model, or a remark if it is unknown."""
    transfer = answer.transfer
    if transfer is None:
        errors = _errors(answer)
        return f'unknown: run sim2real transfer{"; " if errors else ""}{errors}'
    if transfer.loss is None:
        return f'unknown for this model; least with {transfer.best}'
    best = f'; least with {transfer.best}' if transfer.best != answer.nearest else ''
    return f'{cost_text(transfer)}{best}'


def cost_text(transfer: TransferView) -> str:
    """Return the transfer loss with its interval, in words.

    Examples
    --------
    >>> cost_text(TransferView('clean', 'speed', 'ch_rw', 0.04, 0.01, 0.08, 0.01, True))
    'a filter tuned on it has 4 % [1, 8] more speed error on the robot than one tuned there'
    >>> cost_text(TransferView('clean', 'speed', 'ch_rw', -0.02, -0.05, 0.01, 0.4, False))
    'a filter tuned on it has 2 % [-1, 5] less speed error on the robot than one tuned there'
    """
    assert transfer.loss is not None
    sign = -1.0 if transfer.loss < 0.0 else 1.0
    is_error = transfer.quantity in RMS_UNITS
    number = _percent if is_error else short_number
    size = number(abs(transfer.loss)) + (' %' if is_error else '')
    if transfer.low is not None and transfer.high is not None:
        ends = sorted((sign * transfer.low, sign * transfer.high))
        size += f' [{", ".join(number(end) for end in ends)}]'
    if is_error:
        word = 'less' if sign < 0.0 else 'more'
        return (
            f'a filter tuned on it has {size} {word} {transfer.quantity} error on the robot than '
            'one tuned there'
        )
    word = 'better' if sign < 0.0 else 'worse'
    weaker = ', without ground truth the weaker measure' if transfer.quantity != 'nees' else ''
    return (
        f'a filter tuned on it is {size} {word} on the robot in {transfer.quantity} than one '
        f'tuned there (natural logarithm{weaker})'
    )


def _percent(share: float) -> str:
    number = f'{100.0 * share:.0f}'
    return '0' if number == '-0' else number


def _other_poses(answer: Answer) -> str:
    """Return other models that are nearest by position, heading or attitude."""
    quantities: dict[str, list[str]] = {}
    for pose in answer.poses:
        if pose.nearest != answer.nearest:
            quantities.setdefault(pose.nearest, []).append(pose.quantity)
    return ', '.join(
        f'{model} is nearest by {" and ".join(names)}' for model, names in quantities.items()
    )


def _doubt(answer: Answer) -> str:
    """Return the strongest reason to doubt the answer, with its remedy; there is always one."""
    if answer.doubts:
        return str(answer.doubts[0])
    if answer.distinguishable is not None:
        if answer.dissenting:
            dissent = _dissent(answer, answer.dissenting[0])
            return f'{dissent}: decide by the judge that is most like the estimator of the robot'
        if answer.gap_distinguishable is False:
            return f'{answer.next} may be as near: {_more_motions(answer)} would show a difference'
    return str(answer.doubt or GENERAL_DOUBT)


def adapted_text(record: Mapping[str, Any]) -> str:
    """Return the settings that were adapted to the recordings of a study, or an empty string.

    `record` is the record of the study, see `StudyOutcome`.
    """
    findings = from_records(record.get('adapted') or ())
    text = '; '.join(f'{finding.problem} ({finding.remedy})' for finding in findings)
    return f'Adapted to the recordings: {text}.' if findings else ''


def adapted_options(record: Mapping[str, Any]) -> str:
    """Return the options that disable what was adapted in a study, or an empty string."""
    findings = from_records(record.get('adapted') or ())
    options = ', '.join(finding.remedy.removeprefix(_UNDO) for finding in findings)
    return f'Adapted to the recordings; {_UNDO}{options}' if findings else ''


def _errors(answer: Answer) -> str:
    """Return the RMSE with the model and with the real sensors, or an empty string if unknown."""
    if answer.rmse is None or answer.real_rmse is None:
        return ''
    return f'speed error {answer.rmse:.3f} m/s, with {real_sensors(answer)} {answer.real_rmse:.3f}'


def real_sensors(answer: Answer) -> str:
    """Return the name of the sensors with which the models are compared."""
    return 'the stand-in' if answer.is_synthetic else 'the real sensors'


def _distance(answer: Answer) -> str:
    interval = ''
    if answer.low is not None and answer.high is not None:
        ends = f'{answer.low:.3g} to {answer.high:.3g}'
        interval = f', {100 * answer.level:g} % interval {ends}'
    recordings = _recordings(answer)
    judge = f', judge {answer.view.label}' if answer.view.label else ''
    text = f'VEPD {short_number(answer.distance)}{interval} ({recordings}{judge})'
    if answer.view.p_value is None or answer.view.joint_p_value is None:
        return text
    tests = f'by VEPD alone {_p_value(answer, answer.view.p_value)}'
    if len(answer.view.tested) > 1:
        joint = _p_value(answer, answer.view.joint_p_value)
        tests += f', by all {len(answer.view.tested)} metrics together {joint}'
    return f'{text}; {tests}'


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
        f'{_more_motions(answer)} would be needed to show a difference'
    )


def _agreement(answer: Answer) -> str:
    answer_view, other_views = answer.view, answer.views[1:]
    metrics, options = len(answer_view.other_metrics), len(answer_view.other_options)
    disagreements = [_dissent(answer, view) for view in answer.dissenting[:_MAX_LISTED]]
    if len(answer.dissenting) > _MAX_LISTED:
        disagreements.append(
            f'{len(answer.dissenting) - _MAX_LISTED} more of {len(other_views)} judges and groups'
        )
    if metrics:
        name = 'names' if metrics == 1 else 'name'
        disagreements.append(
            f'{metrics} of {answer_view.metrics} other metrics {name} another model '
            f'({list_text(answer_view.other_metrics, _MAX_LISTED)})'
        )
    if options:
        name = 'names' if options == 1 else 'name'
        disagreements.append(
            f'{options} of {answer_view.options} other options of VEPD {name} another model '
            f'({list_text(answer_view.other_options, _MAX_LISTED)})'
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
    p_value = view.joint_p_value
    significance = '' if p_value is None else f' ({_p_value(answer, p_value)})'
    return f'judge {view.label} {does} from {real_sensors(answer)}{significance}'


def _recordings(answer: Answer) -> str:
    blocks = f' in {count_text(answer.blocks, "block")}' if answer.blocks else ''
    return count_text(answer.recordings, 'recording') + blocks


MARK = 'sensitivity.json'
"""Name of the file with the sensitivity of judges, also in the folder of a study."""


def write_sensitivity(study: str | Path, record: Mapping[str, Any]) -> None:
    """Write a sensitivity result into the folder of a study, so that its report shows it."""
    list_files(Path(study), STUDY_MARK, [MARK])
    write_json(Path(study) / MARK, record, allow_nan=False)


def read_record(study: str | Path) -> dict[str, Any] | None:
    """Return the record that `write_sensitivity` wrote into a folder, or None if there is none."""
    path = Path(study) / MARK
    try:
        record = read_json(path)
        if not isinstance(record['answers'], dict):
            raise TypeError
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        raise Sim2RealError(f'{path}: is not a result of `sim2real sensitivity`') from None
    return dict(record)


def undetected_text(record: Mapping[str, Any] | None, judge: str) -> str:
    """Return what a judge cannot detect, as a string; empty if unknown."""
    return str((record or {'answers': {}})['answers'].get(judge, ''))
