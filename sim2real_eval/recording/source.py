# SPDX-License-Identifier: Apache-2.0
"""Where a recording is, and what became of one that could not be used."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path

from sim2real_eval.recording.frames import TransformFile
from sim2real_eval.recording.metadata import find_metadata, read_metadata
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.roles import run_name
from sim_sensors.core.errors import Sim2RealError


@dataclasses.dataclass(frozen=True)
class Source:
    """Where a recording is and what it is called.

    Attributes
    ----------
    path : str
    name : str or None
        Label of rows and random streams that overrides the recording's own.
    topics : tuple of (role, topic)
        Topics that override the recording's own roles.
    scenario : str or None
        Label that overrides the recording's own.
    transforms : TransformFile or None
        Static transforms that replace or complete the recording's own.
    """

    path: str
    name: str | None = None
    topics: tuple[tuple[str, str], ...] = ()
    scenario: str | None = None
    transforms: TransformFile | None = None

    def own_name(self) -> str:
        """Return the name that the recording will have, without reading it."""
        if self.name is not None:
            return self.name
        path = Path(self.path)
        # A sidecar that cannot be read makes the recording fail in its turn, and not the others.
        with contextlib.suppress(Sim2RealError):
            sidecar = find_metadata(path)
            if sidecar is not None and (name := read_metadata(sidecar).name):
                return name
        return run_name(path)

    def read(self) -> Recording:
        """Read the recording."""
        recording = read_recording(
            self.path, topics=dict(self.topics) or None, scenario=self.scenario
        )
        if self.transforms is not None:
            transforms, notes = self.transforms.over(recording.transforms)
            recording = dataclasses.replace(
                recording, transforms=transforms, notes=(*recording.notes, *notes)
            )
        # Afterwards: the scenario may follow from the recording's own name, never from this one.
        return recording if self.name is None else dataclasses.replace(recording, name=self.name)


@dataclasses.dataclass(frozen=True)
class Failure:
    """A recording that could not be used, and why."""

    recording: str
    reason: str

    def __str__(self) -> str:
        known = self.reason.startswith(self.recording)
        return self.reason if known else f'{self.recording}: {self.reason}'
