# SPDX-License-Identifier: Apache-2.0
"""Files that a launch makes for the processes it starts."""

from __future__ import annotations

import atexit
import tempfile
from pathlib import Path
from typing import Any

import yaml

__all__ = ['scratch_file']


def scratch_file(name: str, content: Any) -> Path:
    """Write a YAML file that lasts as long as this process, and return it.

    Parameters
    ----------
    name : str
        Beginning of its name.
    content
        Lists, dicts, numbers and texts.
    """
    with tempfile.NamedTemporaryFile(
        'w', prefix=f'{name}_', suffix='.yaml', delete=False, encoding='utf-8'
    ) as file:
        yaml.safe_dump(content, file)
    path = Path(file.name)
    atexit.register(path.unlink, missing_ok=True)
    return path
