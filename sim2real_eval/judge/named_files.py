# SPDX-License-Identifier: Apache-2.0
"""Parameter files of judges: paths, or names of those that are shipped."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sim_sensors.core.errors import UnknownNameError, not_among
from sim_sensors.core.shipped import config_path


def is_yaml(text: str | Path) -> bool:
    """Say whether a text is the path of a YAML file and not a name."""
    return Path(text).suffix in ('.yaml', '.yml')


def named_file(
    given: str | Path, kind: str, known: Sequence[str], what: str, hint: str = ''
) -> Path:
    """Return the path of a YAML file that is given, or of a shipped one by its name.

    UnknownNameError when nothing is shipped under a name; `known` are the names of the kind.
    """
    path = Path(given)
    if is_yaml(path) or len(path.parts) != 1:
        return path
    if str(given) not in known:
        problem = not_among(f'{str(given)!r} is unknown', given, known)
        raise UnknownNameError(what, '', f'{problem}, or a path of a YAML file{hint}')
    return config_path(kind, f'{given}.yaml')
