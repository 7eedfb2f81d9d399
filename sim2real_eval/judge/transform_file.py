# SPDX-License-Identifier: Apache-2.0
"""Static transforms that the user gives in a file, in place of or beside a recording's own."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path

from sim2real_eval.recording import StaticTransform
from sim2real_eval.recording.metadata import read_transforms
from sim_sensors.errors import ParameterError

__all__ = ['TransformFile']


@dataclasses.dataclass(frozen=True)
class TransformFile:
    """Content of a file with static transforms.

    Attributes
    ----------
    name : str
        Of the file, without its folder.
    sha256 : str
        Of its bytes, hexadecimal.
    transforms : tuple of StaticTransform
    """

    name: str
    sha256: str
    transforms: tuple[StaticTransform, ...]

    @classmethod
    def from_file(cls, path: str | Path) -> TransformFile:
        """Read a file in the form of a recording's static_transforms.yaml.

        Raises
        ------
        Sim2RealError
            For a file that cannot be read, or a wrong entry.
        """
        path = Path(path)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise ParameterError(str(path), '', f'cannot be read: {error.strerror}') from None
        return cls(path.name, hashlib.sha256(content).hexdigest(), read_transforms(path))

    def settings(self) -> dict[str, str]:
        """Return what identifies the file, as plain values."""
        return {'name': self.name, 'sha256': self.sha256}
