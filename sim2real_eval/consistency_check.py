# SPDX-License-Identifier: Apache-2.0
"""What of one judged recording can be held against its own covariances."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sim2real_eval.judge import JudgedRun
from sim2real_eval.judge.frames import FrameTree
from sim2real_eval.judge_setup import Judge, JudgeSetup
from sim2real_eval.judged_world import truth_in_world
from sim2real_eval.metrics.normalised_squares import Squares, nees, nis
from sim2real_eval.recording import Recording
from sim2real_eval.truth_frame import truth_of_base
from sim_sensors.measurements import OdometryArray

__all__ = [
    'Checked',
    'WorldFrameTruth',
    'check_consistency',
    'judged_world',
    'known_axes',
    'planar',
]


class Checked(NamedTuple):
    """Normalised squares of one run.

    Attributes
    ----------
    squares : list of Squares
        NIS of each part; NEES of each quantity if the recording has truth.
    notes : tuple of str
        How they were made, a line each.
    """

    squares: list[Squares]
    notes: tuple[str, ...]


class WorldFrameTruth(NamedTuple):
    """Truth as a judge's estimates can be held against it.

    Attributes
    ----------
    truth : OdometryArray
        Of the base frame, in the judge's world frame.
    notes : tuple of str
        How it came there, a line each.
    """

    truth: OdometryArray
    notes: tuple[str, ...]


def check_consistency(judge: Judge, recording: Recording, judged: JudgedRun) -> Checked:
    """Normalise the innovations and, where there is truth, the errors of a run.

    Parameters
    ----------
    judge : Judge
        Who judged; of a filter in two_d_mode only x, y and yaw are looked at.
    recording : Recording
    judged : JudgedRun
        What came of it.

    Raises
    ------
    Sim2RealError
        When the truth is of a frame that nothing connects to the base, or not of the same time.
    """
    squares = nis(judged, two_d=planar(judge))
    notes = []
    if planar(judge):
        notes.append(
            'consistency: two_d_mode measures z, roll, pitch and their rates as 0 with every '
            'part; these add nothing to a NIS and do not count as its degrees of freedom; errors '
            'are those of x, y and yaw'
        )
    if not len(judged.corrections.part):
        notes.append(
            'consistency: the judge compared no measurement with what it expected, as a smoother '
            'has no innovations, so there is no NIS'
        )
    truth = recording.truth
    if truth is None or len(truth) < 2:
        notes.append('consistency: the recording has no truth, so there is no NEES')
        return Checked(squares, tuple(notes))
    if not judged.finite.any():
        notes.append('consistency: no estimate is a number, so there is no NEES')
        return Checked(squares, tuple(notes))
    world, said = judged_world(judge, recording, truth, judged)
    notes += [f'consistency: {line}' for line in said]
    squares += nees(judged, world, *known_axes(judge))
    return Checked(squares, tuple(notes))


def planar(judge: Judge) -> bool:
    """Whether only x, y and yaw of the estimates mean something: a filter in two_d_mode."""
    return isinstance(judge, JudgeSetup) and judge.filter.two_d_mode


def known_axes(judge: Judge) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return which of x, y, z and which of roll, pitch, yaw mean something."""
    return ((0, 1), (2,)) if planar(judge) else ((0, 1, 2), (0, 1, 2))


def judged_world(
    judge: Judge, recording: Recording, truth: OdometryArray, judged: JudgedRun
) -> WorldFrameTruth:
    """Lay the truth of a recording into the world of its judge; see `truth_in_world`.

    Parameters
    ----------
    judge : Judge
    recording : Recording
        What was judged.
    truth : OdometryArray
        Its truth, of whatever frame.
    judged : JudgedRun
        With an estimate that is a number.

    Raises
    ------
    Sim2RealError
        When the truth is of a frame that nothing connects to the base, or not of the same time.
    """
    base = judge.base_link_frame
    transforms = recording.transforms
    if judge.transforms is not None:
        transforms, _ = judge.transforms.over(transforms)
    frames = FrameTree(transforms, assume_identity=not transforms)
    truth = truth_of_base(truth, base, frames)
    fixes, antenna = recording.gps, np.zeros(3)
    if fixes is not None and len(judged.gps_stamp_ns):
        antenna = frames.lookup(base, fixes.frame, 'gps')[1]
    return WorldFrameTruth(*truth_in_world(judged, truth, fixes, antenna))
