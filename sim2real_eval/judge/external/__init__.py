# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Judges that are ROS nodes, which get a recording message by message and tick by tick.

The classes can be imported without ROS, so that a missing ROS is reported in one line.
"""

from __future__ import annotations

import dataclasses
import multiprocessing.util
import os
import shlex
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from sim2real_eval.judge.estimate import REPEATABILITY, START_HEADING_UNUSED, JudgedRun
from sim2real_eval.judge.protocol import Judge, JudgeRequest
from sim2real_eval.judge.setup import JudgeSetup, check_for_nodes
from sim2real_eval.recording.metadata import TransformFile
from sim2real_eval.recording.recording import Recording
from sim_sensors.core.installation import ROS_LIBRARIES, pip_install
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.shipped import config_names, named_file
from .declaration import INITIAL_POSE, RosStack
from .process import executable, filter_node

__all__: list[str] = []


@dataclasses.dataclass(frozen=True, eq=False)
class NodeJudgeSetup(JudgeSetup):
    """Judge that runs a judge node in lockstep, on a ROS domain of its own.

    Attributes
    ----------
    kind : str
        One of `process.JUDGES`.
    """

    is_fast: ClassVar[bool] = False

    kind: str = 'judge_node'

    @classmethod
    def from_request(cls, request: JudgeRequest) -> NodeJudgeSetup:
        """Return the requested judge; see `load_judge`."""
        setup = JudgeSetup.from_request(request)
        _require_rclpy(request)
        return cls.from_setup(setup, cls.kind)

    @classmethod
    def from_setup(cls, setup: JudgeSetup, kind: str) -> NodeJudgeSetup:
        """Return the judge that runs a node with the parameters of a set-up.

        Sim2RealError if the node is not installed, or for options of the embedded judge.
        """
        check_for_nodes(setup.case, kind)
        executable(kind, filter_node(setup))
        fields = {
            field.name: getattr(setup, field.name) for field in dataclasses.fields(JudgeSetup)
        }
        return NodeJudgeSetup(**fields, kind=kind)

    def settings(self) -> Mapping[str, Any]:
        """Return the case, and the nodes if their output is not that of the embedded judge."""
        settings = dict(super().settings())
        if self.kind == 'robot_localization':
            settings['nodes'] = {'judge': self.kind}
            if self.navsat is not None:
                settings['nodes']['navsat_transform'] = 'sim2real_sensors'
        return settings

    def judge(
        self,
        recording: Recording,
        *,
        start_ns: int | None = None,
        start_heading: float | None = None,
    ) -> JudgedRun:
        """Run the node over a recording; see `JudgeSetup.judge`.

        JudgeError if the node fails, or its output differs from that of the embedded judge.
        """
        from .graph import run_judge_node

        setup = self.with_start(start_ns=start_ns, start_heading=start_heading)
        return run_judge_node(setup, self.kind, recording)


class RobotLocalizationJudge(NodeJudgeSetup):
    """Judge that runs the real ekf_node or ukf_node of robot_localization."""

    kind = 'robot_localization'


_SESSIONS: dict[Path, Any] = {}
"""Estimators of this process that are reset between recordings, by the file of their judge."""


@dataclasses.dataclass(frozen=True, eq=False)
class RosEstimatorJudge(Judge):
    """Judge that runs any ROS estimator that a YAML file declares: `--judge my_estimator.yaml`.

    Attributes
    ----------
    name : str
        Name that the user gave.
    declaration : Path
        File that declares the estimator.
    stack : RosStack
        Content of that file.
    transforms : TransformFile or None
        Static transforms that replace or complete those of a recording.
    """

    name: str
    declaration: Path
    stack: RosStack
    transforms: TransformFile | None = None

    @classmethod
    def from_request(cls, request: JudgeRequest) -> Judge:
        """Return the requested judge; see `load_judge`."""
        names = config_names('estimators')
        if request.config is None:
            request.refuse('config', f'is missing; must be a file, or {" or ".join(names)}')
        path = named_file(request.config, 'estimators', names, 'estimator of ROS')
        stack = RosStack.from_file(path)
        _require_rclpy(request)
        return cls(str(request.config), path.absolute(), stack, request.transforms)

    @property
    def files(self) -> tuple[Path, ...]:  # type: ignore[override]
        """The declaration, and the files beside it that it names."""
        folder = self.declaration.parent
        words = [self.stack.parameters_file]
        words += shlex.split(self.stack.command) + shlex.split(self.stack.launch)
        paths = [folder / word for word in words if word and _is_file(folder / word)]
        return (self.declaration, *dict.fromkeys(paths))

    @property
    def base_link_frame(self) -> str:
        """Frame whose motion is estimated."""
        return self.stack.frames.base

    def settings(self) -> Mapping[str, Any]:
        """Return what determines the result besides `files`, as plain values."""
        settings: dict[str, Any] = {'stack': self.stack.to_mapping()}
        if distribution := os.environ.get('ROS_DISTRO'):
            settings['ros'] = distribution
        return {**settings, **super().settings()}

    def judge(
        self,
        recording: Recording,
        *,
        start_ns: int | None = None,
        start_heading: float | None = None,
    ) -> JudgedRun:
        """Replay a recording `repeats` times, and return the first run.

        JudgeError if the estimator does not start, answer or publish.
        """
        if self.transforms is not None:
            merged, _ = self.transforms.merge_with(recording.transforms)
            recording = dataclasses.replace(recording, transforms=merged)
        first, *repeats = (
            self._replay(recording, start_ns, start_heading) for _ in range(self.stack.repeats)
        )
        notes = list(first.notes)
        if repeats:
            differences = np.concatenate([speed_differences(first, other) for other in repeats])
            rms, largest = 0.0, 0.0
            if len(differences):
                rms, largest = float(np.sqrt(np.mean(differences**2))), float(differences.max())
            notes.append(REPEATABILITY(rms=rms, most=largest, repeats=self.stack.repeats))
        if start_heading is not None and INITIAL_POSE not in self.stack.inputs:
            notes.append(START_HEADING_UNUSED())
        again = repeats[0] if repeats else None
        return dataclasses.replace(first, notes=tuple(notes), again=again)

    def _replay(
        self, recording: Recording, start_ns: int | None, start_heading: float | None
    ) -> JudgedRun:
        from .graph import DeclaredSession

        path, stack = self.declaration, self.stack
        if not stack.reset:
            with DeclaredSession(stack, path) as single_session:
                return single_session.replay(recording, start_ns, start_heading)
        session = _SESSIONS.get(path)
        if session is not None and session.stack != stack:
            # The file has changed since the session began.
            _SESSIONS.pop(path).close()
            session = None
        if session is None:
            session = _SESSIONS[path] = DeclaredSession(stack, path)
            # atexit does not run in the worker processes of --jobs.
            multiprocessing.util.Finalize(None, session.close, exitpriority=1)
        try:
            return session.replay(recording, start_ns, start_heading)
        except BaseException:
            _SESSIONS.pop(path).close()
            raise


def speed_differences(first: JudgedRun, second: JudgedRun) -> FloatArray:
    """Return the absolute speed differences, m/s, at the times of `first` inside `second`.

    The speed of `second` is interpolated.
    """
    speeds = [np.linalg.norm(run.linear_velocity, axis=1) for run in (first, second)]
    start, end = second.stamp_ns[0], second.stamp_ns[-1]
    inside = (first.stamp_ns >= start) & (first.stamp_ns <= end)
    # Relative times: seconds since 1970 have no microseconds as a double.
    origin = first.stamp_ns[0]
    interpolated = np.interp(first.stamp_ns - origin, second.stamp_ns - origin, speeds[1])
    return np.asarray(np.abs(speeds[0] - interpolated)[inside])


def _require_rclpy(request: JudgeRequest) -> None:
    """Refuse a judge that is a node if ROS is missing."""
    if find_spec('rclpy') is None:
        request.refuse(
            'judge',
            f'{request.judge!r} needs rclpy: source the setup file of ROS, or '
            f'{pip_install(*ROS_LIBRARIES)}; embedded needs nothing',
        )


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        # A word may be too long for a file name.
        return False
