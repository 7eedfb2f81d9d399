# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Paths of configuration files: shipped ones, however the package was installed, and others.

Nothing heavy is imported here: help and completion of the command read it.
"""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from .errors import Sim2RealError, UnknownNameError, not_among

_SHARE = Path('share', 'sim2real_sensors', 'config')


def config_path(*parts: str) -> Path:
    """Return the path of a shipped file or folder, by the names below ``config/``.

    Raises Sim2RealError when the package was installed without its data files, or has no such
    file. The message lists the searched places, or the names that exist.

    Examples
    --------
    >>> config_path('gps').name
    'gps'
    """
    root = _config_root()
    path = root.joinpath(*parts)
    if not path.exists():
        folder = path.parent
        shipped = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
        raise Sim2RealError(
            f'no configuration {"/".join(parts)!r} in {root}; {folder} holds '
            f'{", ".join(shipped) or "nothing"}'
        )
    return path


def config_names(kind: str) -> list[str]:
    """Return the sorted stems of ``config/<kind>/*.yaml``; a kind is `imu`, `gps`, `judge` ...

    Raises Sim2RealError when there is no such folder.
    """
    return sorted(path.stem for path in config_path(kind).glob('*.yaml'))


def is_yaml(text: str | Path) -> bool:
    """Return True if a text is the path of a YAML file and not a name."""
    return Path(text).suffix in ('.yaml', '.yml')


def named_file(
    name: str | Path, kind: str, names: Sequence[str], what: str, hint: str = ''
) -> Path:
    """Return the path of a YAML file, or of a shipped file by its name.

    UnknownNameError for a name without a shipped file; `names` are the names of the kind.
    """
    path = Path(name)
    if is_yaml(path) or len(path.parts) != 1:
        return path
    if str(name) not in names:
        problem = not_among(f'{str(name)!r} is unknown', name, names)
        raise UnknownNameError(what, '', f'{problem}, or a path of a YAML file{hint}')
    return config_path(kind, f'{name}.yaml')


def _config_root() -> Path:
    candidates = _candidates(Path(__file__))
    for candidate in candidates:
        if candidate.is_dir():
            return candidate
    looked = ', '.join(map(str, candidates))
    raise Sim2RealError(f'configuration files of sim2real_sensors not found; looked in {looked}')


def _candidates(module: Path) -> list[Path]:
    """Return the places where ``config/`` may be, the nearest to the imported code first.

    If a checkout, a virtual environment and a ROS overlay are all present, code and configuration
    are then of the same version.
    """
    folders: list[Path] = []
    # Editable and --symlink-install builds import code through a link into the checkout.
    packages = dict.fromkeys([module.absolute().parents[1], module.resolve().parents[1]])
    # A checkout has a package.xml; site-packages/config may belong to another package.
    folders += [p.parent / 'config' for p in packages if (p.parent / 'package.xml').is_file()]
    # pip, Debian and ament put packages in PREFIX/lib/python3.x/site-packages, PREFIX/lib64/... or
    # PREFIX/local/lib/python3.x/dist-packages; pip --target puts them in PREFIX itself.
    folders += [prefix / _SHARE for p in packages for prefix in p.parents[:5]]
    # Other layouts (Windows, patched distributions) use Python's data path.
    folders.append(Path(sysconfig.get_path('data')) / _SHARE)
    # A ROS overlay. ament_index_python reads the same variable, but need not be installed.
    overlays = os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep)
    folders += [Path(prefix) / _SHARE for prefix in overlays if prefix]
    return list(dict.fromkeys(folders))
