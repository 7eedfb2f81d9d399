# SPDX-License-Identifier: Apache-2.0
"""What a result was made with: versions of the software and digests of the files."""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
from pathlib import Path

__all__ = ['file_digest', 'version', 'versions']

_PACKAGES = ('sim2real_sensors', 'numpy', 'scipy', 'numba', 'pyproj', 'rosbags')


def versions() -> dict[str, str]:
    """Return the versions of Python, of this package and of the libraries that shape results."""
    found = {'python': platform.python_version()}
    return found | {package: version(package) for package in _PACKAGES}


def version(package: str) -> str:
    """Return the version of an installed package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return 'not installed as a package'


def file_digest(path: str | Path) -> str:
    """Return the SHA-256 of a file's contents as hexadecimal text."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
