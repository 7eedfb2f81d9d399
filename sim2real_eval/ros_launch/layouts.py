# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Layouts of the viewers for a robot in a namespace."""

from __future__ import annotations

import re
from pathlib import Path

from sim_sensors.core.input_files import read_input_text
from sim_sensors.core.shipped import config_path
from .sensors import name_prefix, write_temporary_file

# A topic of the root namespace, such as /gps/fix; all robots share /diagnostics.
_TOPIC = re.compile(r'(?<![\w<*/])/(?!diagnostics\b)(?=[a-z]\w*/\w)')
_FIXED_FRAME = re.compile('(Fixed Frame: |"followTf": ")(?=map)')


def layout_file(name: str, namespace: str, frame_prefix: str) -> Path:
    """Return a shipped layout, or a copy for a robot in a namespace or with prefixed frames.

    The copy exists until this process ends.
    """
    shipped = config_path('layouts', name)
    text = read_input_text(shipped)
    adapted = _TOPIC.sub(name_prefix(namespace), text)
    adapted = _FIXED_FRAME.sub(rf'\g<1>{frame_prefix}', adapted)
    if adapted == text:
        return shipped
    return write_temporary_file(shipped.stem, shipped.suffix, adapted)
