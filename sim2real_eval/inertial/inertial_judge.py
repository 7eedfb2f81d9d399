# SPDX-License-Identifier: Apache-2.0
"""What the judges that integrate the IMU themselves share: where their settings come from."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from sim2real_eval.inertial.settings import InertialSettings
from sim2real_eval.judge.judged import JudgedRun
from sim2real_eval.judge.transform_file import TransformFile
from sim2real_eval.recording import Recording

__all__ = ['InertialJudge']

Made = TypeVar('Made', bound='InertialJudge')


@dataclasses.dataclass(frozen=True, eq=False)
class InertialJudge(abc.ABC):
    """A judge with inertial settings; see `sim2real_eval.judge_setup.Judge`.

    Attributes
    ----------
    name : str
        What the user calls it.
    files : tuple of Path
        Files that its parameters came from.
    parameters : InertialSettings
    transforms : TransformFile or None
        What replaces or completes a recording's own.
    """

    kind: ClassVar[str]
    """Its name on the command line."""

    name: str
    files: tuple[Path, ...]
    parameters: InertialSettings
    transforms: TransformFile | None = None

    @classmethod
    def load(
        cls: type[Made],
        config: str | Path | None = None,
        transforms: TransformFile | None = None,
    ) -> Made:
        """Return the judge with shipped settings by name, those of a file, or the default ones.

        Raises
        ------
        ParameterError
            When there are no such settings, or the file is wrong.
        """
        parameters, path = InertialSettings.load('default' if config is None else config)
        name = cls.kind if config is None else f'{cls.kind} ({config})'
        return cls(name, (path,), parameters, transforms)

    @property
    def base_link_frame(self) -> str:
        """Frame whose motion is estimated."""
        return self.parameters.base_link_frame

    def settings(self) -> Mapping[str, Any]:
        """Return what made the result beside the files, as plain values."""
        told: dict[str, Any] = {'inertial': self.parameters.to_mapping()}
        if self.transforms is not None:
            told['transforms'] = self.transforms.settings()
        return told

    @abc.abstractmethod
    def judge(
        self,
        recording: Recording,
        *,
        start_ns: int | None = None,
        start_heading: float | None = None,
    ) -> JudgedRun:
        """Judge a recording.

        Parameters
        ----------
        recording : Recording
            With imu and gps.
        start_ns : int or None
            Origin of the grid of estimates; messages before are left out. None: first usable fix.
        start_heading : float or None
            Yaw at the first usable fix, radians from east, to `start.heading_deviation`.

        Raises
        ------
        Sim2RealError
            When the recording lacks what the judge needs.
        """
