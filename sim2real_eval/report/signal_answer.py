# SPDX-License-Identifier: Apache-2.0
"""The answer of a comparison of signals in a line per sensor, and the main doubt."""

from __future__ import annotations

from sim2real_eval.common.findings import Finding, Severity
from sim2real_eval.preflight import findings
from sim2real_eval.signals.answer import SensorAnswer, sensor_answers
from sim2real_eval.signals.comparison import SignalComparison
from .answer import AnswerLine
from .console import counted, short_number

_HEADS = {'imu': 'Nearest IMU', 'gps': 'Nearest GPS', 'mag': 'Nearest magnetometer'}
# What a covariance states matters to filters, not to the errors of a signal.
_OF_COVARIANCES = (
    findings.NO_COVARIANCE,
    findings.PESSIMISTIC,
    findings.COVARIANCE,
    findings.COVARIANCE_LARGE,
)
_HARDLY = 0.1  # of the real RMSE
_ELSE = 'it holds for motions and sensors like those of these recordings only'


def signal_answer_lines(comparison: SignalComparison) -> list[AnswerLine]:
    """Return the answer; nothing where no signal was compared."""
    lines = [
        AnswerLine(_HEADS[answer.sensor], f'{_nearest(answer)}; {_verdict(answer, comparison)}')
        for answer in sensor_answers(comparison)
    ]
    if lines:
        worst = next(iter(doubts(comparison)), None)
        lines.append(AnswerLine('Main doubt', _ELSE if worst is None else str(worst)))
    return lines


def doubts(comparison: SignalComparison) -> list[Finding]:
    """Return what may change the answer, the worst first: what is found and is not routine."""
    sensors = {answer.sensor for answer in sensor_answers(comparison)}
    beside = _OF_COVARIANCES if 'gps' in sensors else (*_OF_COVARIANCES, *findings.OF_FIXES)
    return [
        note
        for note in comparison.notes
        if note.severity != Severity.ROUTINE and note.kind not in beside
    ]


def _nearest(answer: SensorAnswer) -> str:
    many = f', of {answer.models}' if answer.models > 1 else ''
    text = f'{answer.nearest}{many}'
    if answer.distance is None:
        return f'{text}: not ranked, as no signal with a real error is common to all'
    distance, ratio = short_number(answer.distance), short_number(answer.rmse_ratio)
    signals = counted(answer.compared, 'signal')
    text += (
        f': error distance {distance} of the real RMSE (mean of {signals}), RMSE {ratio} times '
        'the real one'
    )
    if answer.rmse_ratio is not None and answer.rmse_ratio < _HARDLY:
        text += ': a sensor with hardly any errors'
    if answer.next_distance is not None:
        text += f'; next {answer.next}, {short_number(answer.next_distance)}'
    return text


def _verdict(answer: SensorAnswer, comparison: SignalComparison) -> str:
    signals = counted(answer.signals, 'signal')
    level = f'{comparison.options.level:.3g}'
    if answer.different is None:
        row = next(row for row in comparison.rows if row.model == answer.nearest)
        runs = f'{row.n_real} real and {counted(row.n_simulated, "simulated run")}'
        return f'{runs} are too few to show whether it is distinguishable from the real sensor'
    if not answer.different:
        by = f'any of {signals} (adjusted p > {level})'
        return f'not distinguishable from the real sensor by {by}'
    count = len(answer.different)
    names = '' if count == answer.signals else f': {", ".join(answer.different)}'
    by = f'{count} of {signals} (adjusted p <= {level}){names}'
    return f'distinguishable from the real sensor by {by}'
