# SPDX-License-Identifier: Apache-2.0
"""Repair or refuse the messages of one topic, and remark on what a reader of them should know.

What is broken (not finite, stamps that run backwards, impossible values) may be dropped up to
`MAXIMUM_BROKEN` of a topic; more than that is refused, for what remains would no longer be what
the sensor measured. The rules themselves are in `repairs`.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from sim2real_eval.recording.errors import RecordingError
from sim2real_eval.recording.recording import Note
from sim2real_eval.recording.repairs import CheckedTopic, repair
from sim_sensors.measurements import (
    FloatArray,
    ImuArray,
    IntArray,
    MagneticFieldArray,
    MessageArray,
)

__all__ = ['GAP_FACTOR', 'MAXIMUM_BROKEN', 'check_messages']

MAXIMUM_BROKEN = 0.2
GAP_FACTOR = 5.0


def check_messages(
    where: str,
    topic: str,
    array: MessageArray,
    *,
    is_truth: bool = False,
    has_covariance: bool = True,
) -> tuple[MessageArray, list[Note]]:
    """Repair the messages of one topic.

    Parameters
    ----------
    where : str
        File or folder, for messages.
    topic : str
        Topic name.
    array : MessageArray
        Messages in the order that they were received; `arrival_ns` is the receive time.
    is_truth : bool
        The truth must increase strictly in time and have an orientation; its covariances do not
        matter.
    has_covariance : bool
        False for types whose messages carry none (TwistStamped).

    Returns
    -------
    MessageArray, list of Note
        Stamps never decrease. Repeated stamps stay, since robot_localization accepts them too,
        except in the truth.

    Raises
    ------
    RecordingError
        When the topic is empty, nothing usable is left, or more than `MAXIMUM_BROKEN` is broken.
    """
    if not len(array):
        raise RecordingError(f'{where}: {topic}: no messages; at least one is needed')
    state = CheckedTopic(where, topic, array)
    repair(state, is_truth=is_truth)
    if state.broken > MAXIMUM_BROKEN * state.total:
        raise RecordingError(
            f'{where}: {topic}: {state.broken} of {state.total} messages are broken '
            f'({state.first_broken}); at most {MAXIMUM_BROKEN:.0%} may be dropped'
        )
    if not len(state.array):
        reason = state.notes[-1].problem if state.notes else 'all were dropped'
        raise RecordingError(f'{where}: {topic}: no usable message is left: {reason}')
    if is_truth and len(state.array) < 2:
        raise RecordingError(f'{where}: {topic}: one message only; a true motion needs 2 or more')
    _remark_gaps(state)
    if has_covariance and not is_truth:
        _remark_covariances(state)
    return state.array, state.notes


def _remark_gaps(state: CheckedTopic) -> None:
    stamp: IntArray = state.array.stamp_ns
    steps = np.diff(stamp)
    steps, starts = steps[steps > 0], stamp[:-1][steps > 0]
    if len(steps) < 3:
        return
    period = float(np.median(steps))
    gaps = steps > GAP_FACTOR * period
    if gaps.any():
        longest = int(np.argmax(steps))
        after = float(starts[longest] - stamp[0]) * 1e-9
        state.note(
            f'gap of up to {steps[longest] * 1e-9:.3f} s, {after:.2f} s after the first message '
            f'(median period {period * 1e-9:.3f} s)',
            gaps.sum(),
            'left as it is; nothing is filled in',
        )


def _remark_covariances(state: CheckedTopic) -> None:
    if isinstance(state.array, MagneticFieldArray):
        return  # no judge reads it
    for field in dataclasses.fields(state.array):
        if not field.name.endswith('_covariance'):
            continue
        covariance: FloatArray = getattr(state.array, field.name)
        quantity = field.name.removesuffix('_covariance').replace('_', ' ')
        absent = covariance[:, 0, 0] == -1.0
        if isinstance(state.array, ImuArray) and absent.any():
            state.note(f'{quantity} is absent (covariance -1)', absent.sum(), 'a judge skips it')
        rest = covariance[~absent] if isinstance(state.array, ImuArray) else covariance
        unknown = int((rest == 0.0).all(axis=(1, 2)).sum())
        if unknown:
            state.note(
                f'{quantity} covariance is all zero (unknown)',
                unknown,
                'robot_localization reads it as 1e-9, that is, believes it completely',
            )
        negative = int((np.diagonal(rest, axis1=1, axis2=2) < 0.0).any(axis=1).sum())
        if negative:
            state.note(
                f'{quantity} covariance has a negative variance',
                negative,
                'robot_localization takes its absolute value',
            )
