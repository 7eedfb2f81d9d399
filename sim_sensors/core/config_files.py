# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Strict reading of files that people write: errors name the file and the line.

Files may come from strangers. Their size, their depth of nesting and the number of values that
their aliases stand for are therefore limited; a page of aliases can stand for terabytes.
"""

from __future__ import annotations

import copy
import csv
import functools
import io
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from .errors import MotionError, ParameterError, UnknownNameError, not_among
from .input_files import open_input, read_input_text
from .measurements import FloatArray
from .parameters import override, parse_float

MAX_BYTES = 4 << 20
"""The largest YAML file that is read."""

_MAX_VALUES = 100_000
_LONGEST_NUMBER = 400  # characters
_LONGEST_KEPT = 20_000  # characters


def read_yaml(path: Path) -> Any:
    """Return the content of a YAML file; None for an empty file.

    Raises ParameterError when the file cannot be read, is not YAML or has a key twice.
    """
    where = str(path)
    try:
        with open_input(path) as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            problem = f'is larger than {MAX_BYTES >> 20} MiB, the most that is read as YAML'
            raise ParameterError(where, '', problem)
        return parse_yaml(content.decode(), where)
    except OSError as error:
        raise ParameterError(where, '', f'cannot be read: {error.strerror}') from None
    except UnicodeDecodeError as error:
        raise ParameterError(where, '', f'is not UTF-8 text at byte {error.start}') from None


def parse_yaml(text: str, where: str) -> Any:
    """Return the content of a YAML text; `where` names its origin in messages.

    Raises ParameterError when it is not YAML, has a key twice, or is too large or too deep.

    Examples
    --------
    >>> parse_yaml('{rate: 10}', 'gps.yaml')
    {'rate': 10}
    >>> parse_yaml('seed: 99999999999999999999', 'study.yaml')
    Traceback (most recent call last):
    sim_sensors.core.errors.ParameterError: study.yaml: line 1, column 7: not valid YAML: ...
    """
    # OpenCV's cv::FileStorage writes a first line that is not a directive of YAML.
    text = text.removeprefix('%YAML:1.0')
    # `ros2 topic echo` ends a message with the line `---`, after which nothing follows.
    text = re.sub(r'\n---\s*\Z', '\n', text)
    try:
        return copy.deepcopy(_parsed(text)) if len(text) <= _LONGEST_KEPT else _parse(text)
    except yaml.YAMLError as error:
        raise ParameterError(where, '', _say(error)) from None
    except RecursionError:
        raise ParameterError(where, '', 'is nested too deeply') from None


def _parse(text: str) -> Any:
    return yaml.load(text, Loader=_StrictLoader)


# Commands read the same small files several times, and PyYAML takes 10 ms per file.
_parsed = functools.lru_cache(maxsize=256)(_parse)


def read_yaml_mapping(path: Path) -> dict[str, Any]:
    """Return the mapping in a YAML file.

    Raises ParameterError when the file cannot be read, is not YAML, has a key twice or is not a
    mapping.
    """
    where = str(path)
    content = read_yaml(path)
    if not isinstance(content, dict):
        content_type = 'nothing' if content is None else f'a {type(content).__name__}'
        raise ParameterError(where, '', f'holds {content_type}; must be a mapping of parameters')
    return content


def merge_base(
    mapping: Mapping[str, Any],
    path: Path,
    find_file: Callable[[str], Path | None],
    load_base: Callable[[str, Path], Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the mapping of a file with the keys of its `base` that it does not change.

    Parameters
    ----------
    mapping : mapping
        Content of the file, returned unchanged if it has no key `base`.
    path : Path
        The file. Relative paths of bases are relative to its folder.
    find_file : callable
        Returns the file of a name, or None for a name without a file.
    load_base : callable
        Takes a name and a folder and returns all keys of that base, including those of its own
        bases.

    Raises
    ------
    ParameterError
        When `base` is not a name, or a chain of bases leads back to a file of the chain.
    """
    if 'base' not in mapping:
        return dict(mapping)
    chain, current, content = [path.resolve()], path, mapping
    while 'base' in content:
        name = content['base']
        if not isinstance(name, str) or not name:
            raise ParameterError(
                str(current), 'base', f'{name!r} is not allowed; must be a preset or a YAML file'
            )
        try:
            base_file = find_file(name)
        except UnknownNameError as error:
            raise ParameterError(str(current), 'base', error.problem) from None
        if base_file is None:
            break
        current = current.parent / base_file
        if current.resolve() in chain:
            cycle = ' -> '.join(file.name for file in [*chain, current])
            raise ParameterError(str(path), 'base', f'{cycle} is a cycle; remove one base')
        chain.append(current.resolve())
        content = read_yaml_mapping(current)
    changes = {key: value for key, value in mapping.items() if key != 'base'}
    return override(load_base(mapping['base'], path.parent), changes)


def check_keys(
    tree: Mapping[str, object], allowed: Sequence[str], where: str, prefix: str = ''
) -> None:
    """Refuse unknown keys of a mapping; messages put `prefix` before a key."""
    for key in tree:
        if key not in allowed:
            raise ParameterError(where, f'{prefix}{key}', not_among('unknown key', key, allowed))


def branch(tree: Mapping[str, Any], key: str, where: str, full: str = '') -> Mapping[str, Any]:
    """Return a mapping in a tree, or an empty one; `full` is its key in messages."""
    value = tree.get(key) or {}
    if not isinstance(value, Mapping):
        raise ParameterError(where, full or key, f'{value!r} is not allowed; must be a mapping')
    return value


def _say(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        place = f'line {mark.line + 1}, column {mark.column + 1}: ' if mark else ''
        return f'{place}not valid YAML: {error.problem or error.context}'
    return f'not valid YAML: {error}'


class _StrictLoader(yaml.SafeLoader):
    """Safe loader that refuses duplicate keys, of which YAML would keep the last.

    It also refuses values that do not fit their tag, aliases that stand for too many values, and
    integers of more than 64 bits, which neither ROS nor NumPy has.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._composed = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self._composed += 1
        if self._composed > _MAX_VALUES:
            problem = f'holds more than {_MAX_VALUES} values'
            mark = self.get_mark()
            raise yaml.composer.ComposerError(None, None, problem, mark)
        return super().compose_node(parent, index)

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        lines_by_key: dict[str, int] = {}
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                continue
            if key_node.value in lines_by_key:
                line = lines_by_key[key_node.value]
                problem = f'key {key_node.value!r} was already given on line {line}'
                raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
            lines_by_key[key_node.value] = key_node.start_mark.line + 1
        return node

    def compose_document(self) -> yaml.Node | None:
        root = super().compose_document()
        if root is not None:
            _check_size(root)
        return root

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        kind = node.tag.rpartition(':')[2]
        if kind in ('int', 'float') and len(str(node.value)) > _LONGEST_NUMBER:
            problem = f'a number of more than {_LONGEST_NUMBER} characters'
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
        try:
            constructed = super().construct_object(node, deep)
        except (yaml.YAMLError, RecursionError):
            raise
        except Exception:
            # PyYAML does not catch the errors of its conversions.
            problem = f'{str(node.value)!r} is no {kind}'
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from None
        if isinstance(constructed, int) and not -(2**63) <= constructed < 2**63:
            problem = f'{node.value!r} has more than 64 bits'
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
        return constructed


# A matrix of OpenCV's cv::FileStorage: a mapping of rows, cols, dt and data.
_StrictLoader.add_constructor(
    'tag:yaml.org,2002:opencv-matrix',
    yaml.SafeLoader.construct_yaml_map,  # type: ignore[type-var]
)


def _check_size(root: yaml.Node) -> None:
    """Refuse a document whose aliases stand for too many values."""
    sizes: dict[int, int] = {}
    inside: set[int] = set()

    def size(node: yaml.Node) -> int:
        known_size = sizes.get(id(node))
        if known_size is not None:
            return known_size
        if id(node) in inside:
            raise yaml.composer.ComposerError(None, None, 'refers to itself', node.start_mark)
        inside.add(id(node))
        parts = [] if isinstance(node, yaml.ScalarNode) else node.value
        if isinstance(node, yaml.MappingNode):
            parts = [part for pair in parts for part in pair]
        total = 1 + sum(map(size, parts))
        inside.discard(id(node))
        if total > _MAX_VALUES:
            problem = f'holds more than {_MAX_VALUES} values, with what its aliases stand for'
            raise yaml.composer.ComposerError(None, None, problem, node.start_mark)
        sizes[id(node)] = total
        return total

    size(root)


def read_columns(
    path: Path, names: Sequence[str], optional: str = '', *, finite: bool = True
) -> dict[str, FloatArray]:
    """Return some columns of a CSV table of a motion by name, `(n,)` each.

    Other columns are ignored. The header may begin with #. Numbers may be infinite or NaN if
    `finite` is false. Raises MotionError with file, line, value and what is allowed.
    """
    columns: dict[str, list[float]] = {}
    try:
        with io.TextIOWrapper(open_input(path), 'utf-8-sig', newline='') as file:
            lines = csv.reader(file)
            header = [name.strip().removeprefix('#').strip() for name in next(lines, [])]
            if missing := [name for name in names if name not in header]:
                also = f' and may have {optional}' if optional else ''
                raise MotionError(
                    f'{path}: has no column {", ".join(missing)}; must have {", ".join(names)}'
                    f'{also} in its header'
                )
            columns = {name: [] for name in (*names, optional) if name in header}
            places = {name: header.index(name) for name in columns}
            for row in filter(None, lines):
                for name, place in places.items():
                    text = row[place] if place < len(row) else ''
                    where = f'{path}: line {lines.line_num}'
                    columns[name].append(_number_in(text, name, where, finite))
    except OSError as error:
        raise MotionError(f'{path}: cannot be read: {error.strerror}') from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise MotionError(f'{path}: cannot be read as CSV: {error}') from None
    return {name: np.array(column) for name, column in columns.items()}


def _number_in(text: str, name: str, where: str, finite: bool) -> float:
    number = parse_float(text)
    if number is None or (finite and not math.isfinite(number)):
        allowed = 'a finite number' if finite else 'a number'
        raise MotionError(f'{where}: {name} {text!r} is not allowed; must be {allowed}')
    return number


def file_phrase(path: Path) -> str:
    """Return the first phrase of the comment at the top of a file; see `first_phrase`."""
    return first_phrase(file_comment(path))


def first_phrase(text: str) -> str:
    """Return the text before the first semicolon or the end of the first sentence.

    Examples
    --------
    >>> first_phrase('Receiver at 4.5 Hz; of gps.io.')
    'Receiver at 4.5 Hz'
    """
    # Points of numbers, initials and within names do not end a sentence.
    return re.split(r'(?<!\b[A-Z])[.;](?=\s+[A-Za-z])|\.$', text, maxsplit=1)[0]


def file_comment(path: Path) -> str:
    """Return the comment at the top of a file, without its licence, as one line."""
    words = []
    for line in read_input_text(path).splitlines():
        if not line.startswith('#'):
            break
        if 'SPDX-' not in line:
            words.append(line.lstrip('# '))
    return ' '.join(words)
