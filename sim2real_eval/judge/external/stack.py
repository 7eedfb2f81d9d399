# SPDX-License-Identifier: Apache-2.0
"""A declared estimator as a judge: replayed recordings, how repeatable they are, and failures."""

from __future__ import annotations

import contextlib
import dataclasses
import multiprocessing.util
import os
import shlex
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sim2real_eval.common.errors import JudgeError
from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.findings import REPEATABILITY, START_HEADING_UNUSED
from sim2real_eval.recording.frames import TransformFile
from sim2real_eval.recording.recording import Recording
from sim_sensors.core.measurements import FloatArray
from .declaration import INITIAL_POSE, RosStack
from .follower import ArrayFeed
from .graph import Conductor, judging_node
from .stack_messages import stack_inputs
from .stack_side import StackSide

# After the last message of a replay in real time, an estimate may still be under way; one that
# must come is waited for.
_QUIET_S, _LATE_S = 0.3, 3.0
_SESSIONS: dict[Path, _Session] = {}
"""Estimators of this process that are reset and not started anew, by their file."""


@dataclasses.dataclass(frozen=True, eq=False)
class RosStackJudge:
    """A `Judge` that an estimator of ROS carries out, as a file declares it.

    Attributes
    ----------
    name : str
        As the user named it.
    where : Path
        File that declares it.
    stack : RosStack
    transforms : TransformFile or None
        What replaces or completes a recording's static transforms.
    """

    name: str
    where: Path
    stack: RosStack
    transforms: TransformFile | None = None

    @property
    def files(self) -> tuple[Path, ...]:
        """The declaration, and the files beside it that it names."""
        folder = self.where.parent
        words = [self.stack.parameters_file]
        words += shlex.split(self.stack.command) + shlex.split(self.stack.launch)
        named = [folder / word for word in words if word and _is_file(folder / word)]
        return (self.where, *dict.fromkeys(named))

    @property
    def base_link_frame(self) -> str:
        """Frame whose motion it estimates."""
        return self.stack.frames.base

    def settings(self) -> Mapping[str, Any]:
        """Return what made the result beside the files, as plain values."""
        settings: dict[str, Any] = {'stack': self.stack.to_mapping()}
        if distribution := os.environ.get('ROS_DISTRO'):
            settings['ros'] = distribution
        if self.transforms is not None:
            settings['transforms'] = self.transforms.settings()
        return settings

    def judge(
        self,
        recording: Recording,
        *,
        start_ns: int | None = None,
        start_heading: float | None = None,
    ) -> JudgedRun:
        """Replay a recording, as often as `repeats` says, and return the first estimate.

        JudgeError when the estimator does not start, answer or publish.
        """
        if self.transforms is not None:
            merged, _ = self.transforms.over(recording.transforms)
            recording = dataclasses.replace(recording, transforms=merged)
        runs = [
            self._replay(recording, start_ns, start_heading) for _ in range(self.stack.repeats)
        ]
        notes = list(runs[0].notes)
        if len(runs) > 1:
            apart = np.concatenate([speed_differences(runs[0], other) for other in runs[1:]])
            rms, most = (np.sqrt(np.mean(apart**2)), apart.max()) if len(apart) else (0.0, 0.0)
            notes.append(REPEATABILITY(rms=float(rms), most=float(most), repeats=len(runs)))
        if start_heading is not None and INITIAL_POSE not in self.stack.inputs:
            notes.append(START_HEADING_UNUSED())
        again = runs[1] if len(runs) > 1 else None
        return dataclasses.replace(runs[0], notes=tuple(notes), again=again)

    def _replay(
        self, recording: Recording, start_ns: int | None, start_heading: float | None
    ) -> JudgedRun:
        if not self.stack.reset:
            with _Session(self.stack, self.where) as once:
                return once.replay(recording, start_ns, start_heading)
        session = _SESSIONS.get(self.where)
        if session is not None and session.stack != self.stack:
            # The file has changed since.
            _SESSIONS.pop(self.where).close()
            session = None
        if session is None:
            session = _SESSIONS[self.where] = _Session(self.stack, self.where)
            # At the end of this process, which for those of --jobs is none of atexit.
            multiprocessing.util.Finalize(None, session.close, exitpriority=1)
        try:
            return session.replay(recording, start_ns, start_heading)
        except BaseException:
            _SESSIONS.pop(self.where).close()
            raise


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        # A word that is too long for a name.
        return False


class _Session:
    """An estimator that runs, on a graph of its own, until it is closed."""

    def __init__(self, stack: RosStack, where: Path) -> None:
        self.stack = stack
        self._ends = contextlib.ExitStack()
        try:
            self._node, self._executor = self._ends.enter_context(judging_node())
            self._side = self._ends.enter_context(StackSide(self._node, stack, where))
        except BaseException:
            self._ends.close()
            raise

    def __enter__(self) -> _Session:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the estimator."""
        self._ends.close()

    def replay(
        self, recording: Recording, start_ns: int | None, start_heading: float | None = None
    ) -> JudgedRun:
        """Replay a recording from a time on, by default from its first message."""
        side, clock = self._side, self.stack.clock
        inputs = stack_inputs(self.stack, recording, start_ns, start_heading)
        arrival = np.concatenate([array.arrival_ns for _, array in inputs.values()])
        if start_ns is not None:
            arrival = arrival[arrival >= start_ns]
        if not len(arrival):
            raise JudgeError(
                f'{side.name}: {recording.name} holds no message of {", ".join(inputs)}'
            )
        start = int(arrival.min()) if start_ns is None else start_ns
        arrays = [
            (name, array.take(array.arrival_ns >= start)) for name, (_, array) in inputs.items()
        ]
        feed = ArrayFeed(arrays, int(arrival.max()))
        side.take(recording, inputs, feed)
        in_lockstep = clock.mode == 'lockstep'
        conductor = Conductor(
            self._node, [side], [feed], executor=self._executor, start_ns=start,
            rate_factor=0.0 if in_lockstep else clock.rate,
            start_timeout_s=self.stack.ready.timeout,
        )  # fmt: skip
        conductor.work(side, side.reset())
        conductor.play()
        played = time.monotonic()
        while not in_lockstep and time.monotonic() - played < (
            _LATE_S if side.missing else _QUIET_S
        ):
            self._executor.spin_once(timeout_sec=_QUIET_S)
        return side.judged()


def speed_differences(one: JudgedRun, other: JudgedRun) -> FloatArray:
    """Return by how much the speed differs at the estimates of both runs, m/s, without signs.

    An estimate of one run at a time of none of the other is interpolated there.
    """
    speeds = [np.linalg.norm(run.linear_velocity, axis=1) for run in (one, other)]
    inside = (one.stamp_ns >= other.stamp_ns[0]) & (one.stamp_ns <= other.stamp_ns[-1])
    start = one.stamp_ns[0]
    there = np.interp(one.stamp_ns - start, other.stamp_ns - start, speeds[1])
    return np.asarray(np.abs(speeds[0] - there)[inside])
