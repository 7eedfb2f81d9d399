# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Recordings of a transfer: real ones, and the simulated runs of a study."""

from __future__ import annotations

import dataclasses

from sim2real_eval.judge.protocol import Judge
from sim2real_eval.recording.recording import Recording
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.study.options import StudyOptions
from sim2real_eval.study.plan import StudyPlan
from sim2real_eval.study.recordings import StudyRecording
from sim2real_eval.study.run_plan import Judging, RunPlan
from sim_sensors.world.world import World, load_world


@dataclasses.dataclass(frozen=True)
class MemorySource:
    """A recording in memory.

    Examples
    --------
    >>> from sim2real_eval import simulate
    >>> from sim_sensors import motion_of
    >>> source = MemorySource(simulate(motion_of('line', duration=2.0), gps='ch_rw', imu='ideal'))
    >>> source.read().name == source.expected_name()
    True
    """

    recording: Recording

    @property
    def path(self) -> str:
        """Path of the recording, or its name."""
        return self.recording.path or self.recording.name

    def expected_name(self) -> str:
        """Return the name of the recording."""
        return self.recording.name

    def read(self) -> Recording:
        """Return the recording."""
        return self.recording


@dataclasses.dataclass(frozen=True)
class RunSource:
    """A run of a study: a real recording, or the simulated sensors on its true motion.

    Attributes
    ----------
    origin : StudyRecording
    twin : Twin or None
        Simulated sensors; None for the recorded ones.
    judge : Judge
        Judge whose base frame and sensor mountings are used.
    options : StudyOptions
    repetition : int
        Number of the noise draw, from 1.
    world : World, optional
    """

    origin: StudyRecording
    twin: Twin | None
    judge: Judge
    options: StudyOptions
    repetition: int = 1
    world: World | None = None

    @property
    def path(self) -> str:
        """Path or name of the recording."""
        return str(getattr(self.origin.origin, 'path', self.origin.name))

    def expected_name(self) -> str:
        """Return the name of the recording."""
        return self.origin.name

    def read(self) -> Recording:
        """Read the recording and simulate the sensors; see `RunPlan` for errors."""
        recording = self.origin.read(self.judge.transforms)
        twins = () if self.twin is None else (self.twin,)
        plan = RunPlan(recording, twins, Judging(self.judge, self.options, self.world))
        runs = plan.twins or (plan.real,)
        return plan.recording(runs[self.repetition - 1])


def study_sources(
    plan: StudyPlan, judge: Judge
) -> tuple[list[RunSource], dict[str, list[RunSource]]]:
    """Return the real runs of a study, and the simulated ones of each model."""
    file = plan.file
    world = None if file.world is None else load_world(file.world)

    def runs(recordings: list[StudyRecording], twin: Twin | None) -> list[RunSource]:
        repetitions = 1 if twin is None else file.options.repetitions
        return [
            RunSource(recording, twin, judge, file.options, repetition, world)
            for recording in recordings
            for repetition in range(1, repetitions + 1)
        ]

    # Workers read recordings by path: contents would be sent with every task.
    recordings = [dataclasses.replace(recording, content=None) for recording in plan.recordings]
    real = [recording for recording in recordings if recording.has_real_run]
    drives = [recording for recording in recordings if not recording.has_real_run]
    return runs(real, None), {
        twin.label: runs(real if file.drive is None else drives, twin) for twin in file.twins
    }
