# SPDX-License-Identifier: Apache-2.0
"""Static transforms between the frames of a robot."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.spatial.transform import Rotation

from sim2real_eval.judge.errors import JudgeError
from sim2real_eval.recording import StaticTransform
from sim_sensors.measurements import FloatArray

__all__ = ['FrameTree']


class FrameTree:
    """Frames connected by static transforms.

    Parameters
    ----------
    transforms : sequence
        Poses of child frames in parent frames.
    assume_identity : bool
        Whether frames that nothing connects are taken to coincide; `assumed` then lists them.
    """

    def __init__(
        self, transforms: Sequence[StaticTransform], *, assume_identity: bool = False
    ) -> None:
        self._neighbours: dict[str, list[tuple[str, FloatArray, FloatArray]]] = {}
        for transform in transforms:
            self.add(transform)
        self._assume_identity = assume_identity
        self.assumed: list[tuple[str, str]] = []

    def add(self, transform: StaticTransform) -> None:
        """Connect two frames; where they are connected already, which way counts is open."""
        R = Rotation.from_quat(np.asarray(transform.rotation, dtype=np.float64)).as_matrix()
        p = np.asarray(transform.translation, dtype=np.float64)
        parent, child = transform.parent.strip('/'), transform.child.strip('/')
        self._neighbours.setdefault(parent, []).append((child, R, p))
        self._neighbours.setdefault(child, []).append((parent, R.T, -R.T @ p))

    def lookup(self, target: str, source: str, user: str) -> tuple[FloatArray, FloatArray]:
        """Return rotation (3, 3) and position (3,) of frame `source` in frame `target`.

        Raises
        ------
        JudgeError
            When nothing connects the frames, naming both and the input that needs them.
        """
        target, source = target.strip('/'), source.strip('/')
        known: dict[str, tuple[FloatArray, FloatArray]] = {target: (np.eye(3), np.zeros(3))}
        waiting = [target]
        while waiting and source not in known:
            frame = waiting.pop(0)
            R, p = known[frame]
            for neighbour, turn, shift in self._neighbours.get(frame, []):
                if neighbour not in known:
                    known[neighbour] = (R @ turn, R @ shift + p)
                    waiting.append(neighbour)
        if source in known:
            return known[source]
        if self._assume_identity:
            if (target, source) not in self.assumed:
                self.assumed.append((target, source))
            return np.eye(3), np.zeros(3)
        raise JudgeError(
            f'{user}: no static transform connects frame {source!r} to {target!r}; '
            'add it to the recording, to recording.yaml (lever_arms, transforms), to '
            'static_transforms.yaml, or give a file with --transforms'
        )

    @property
    def assumed_note(self) -> str:
        """Which frames were assumed to be equal, as the end of a line."""
        pairs = ', '.join(f'{source} = {target}' for target, source in self.assumed)
        return f'frames assumed equal: {pairs}'
