# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Entries of recording.yaml that correct a recording, as text and in the file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from sim2real_eval.common.findings import RecordingError
from sim2real_eval.common.new_files import write_text
from sim2real_eval.recording.metadata import find_own_metadata, load_yaml
from sim_sensors.core.config_files import parse_yaml
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.input_files import read_input_text
from .outcome import Preflight


def entry_lines(result: Preflight) -> dict[str, str]:
    """Return `corrections` and `lever_arms` of a recording.yaml, each as one line of YAML.

    Roles that its file names and that are not corrected keep their entries.
    """
    entries = {'corrections': result.corrections, 'lever_arms': result.lever_arms}
    content = _content(result)[1]
    return {
        key: f'{key}: {yaml_text({**(content.get(key) or {}), **entry})}'
        for key, entry in entries.items()
        if entry
    }


def write_entries(results: Sequence[Preflight]) -> dict[Path, tuple[str, ...]]:
    """Write the entries of recordings into the recording.yaml of each.

    Returns the lines of each file that changed.

    Other keys keep their text and comments. Each file appears whole. A RecordingError names the
    first file that cannot be written; nothing is written then.
    """
    texts, lines = {}, {}
    for result in results:
        if result.corrections or result.lever_arms:
            place, text = _content(result)[0], _new_text(result)
            if not place.is_file() or read_input_text(place) != text:
                texts[place], lines[place] = text, tuple(entry_lines(result).values())
    for place in texts:
        if not os.access(place.parent, os.W_OK) or (place.exists() and not place.is_file()):
            raise RecordingError(
                f'{place}: cannot be written; make its folder writable, or copy the recording'
            )
    for place, text in texts.items():
        write_text(place, text)
    return lines


def yaml_text(value: Any) -> str:
    """Return a value as one line of YAML.

    Examples
    --------
    >>> yaml_text({'imu': {'rotation': [0.0, 0.0, 90.0], 'delay': 1e-05}})
    '{imu: {rotation: [0, 0, 90], delay: 1.0e-05}}'
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return f'{{{", ".join(f"{key}: {yaml_text(element)}" for key, element in value.items())}}}'
    if isinstance(value, (list, tuple)):
        return f'[{", ".join(map(yaml_text, value))}]'
    if not isinstance(value, float):
        return str(value)
    text = f'{value + 0.0:.12g}'  # no minus sign before zero
    text = text if float(text) == value else repr(value)
    # YAML reads 1e-05, without a point, as a text.
    return text.replace('e', '.0e') if 'e' in text and '.' not in text else text


def _content(result: Preflight) -> tuple[Path, dict[str, Any], str]:
    """Return the own recording.yaml of a recording, and content and text that it starts from."""
    place, shared = find_own_metadata(Path(result.path))
    source = shared or place
    if not result.path or not source.is_file():
        return place, {}, ''
    return place, load_yaml(source) or {}, read_input_text(source)


def _new_text(result: Preflight) -> str:
    """Return the text of a recording.yaml with new entries."""
    _, content, text = _content(result)
    lines = entry_lines(result)
    entries = {key: parse_yaml(line, key)[key] for key, line in lines.items()}
    expected = {**content, **entries}
    edited = _edited(text, lines)
    try:
        is_right = parse_yaml(edited, '') == expected
    except ParameterError:
        is_right = False
    return edited if is_right else yaml.safe_dump(expected, sort_keys=False, allow_unicode=True)


def _edited(text: str, lines: Mapping[str, str]) -> str:
    """Return a block mapping of YAML with the rows of some keys replaced, or appended."""
    rows = text.splitlines(keepends=True)
    if rows and not rows[-1].endswith('\n'):
        rows[-1] += '\n'
    new_lines = dict(lines)
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    for key, value in reversed(pairs):
        if key.value in new_lines:
            start = key.start_mark.line
            end = value.end_mark.line + (value.end_mark.column > 0)
            while end > start + 1 and rows[end - 1].strip()[:1] in ('', '#'):
                end -= 1
            rows[start:end] = [f'{new_lines.pop(key.value)}\n']
    return ''.join([*rows, *(f'{line}\n' for line in new_lines.values())])
