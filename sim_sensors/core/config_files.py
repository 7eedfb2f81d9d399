# SPDX-License-Identifier: Apache-2.0
"""Files that people write, read strictly: every defect is named with its file and line."""

from __future__ import annotations

import csv
import math
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from sim_sensors.core.errors import MotionError, ParameterError
from sim_sensors.core.measurements import FloatArray


def read_yaml(path: Path) -> Any:
    """Return what a YAML file holds, of whatever kind; None for an empty file.

    Raises
    ------
    ParameterError
        When the file cannot be read, is no YAML or gives a key twice.
    """
    where = str(path)
    try:
        return yaml.load(path.read_text(encoding='utf-8'), Loader=_StrictLoader)
    except OSError as error:
        raise ParameterError(where, '', f'cannot be read: {error.strerror}') from None
    except UnicodeDecodeError as error:
        raise ParameterError(where, '', f'is not UTF-8 text at byte {error.start}') from None
    except yaml.YAMLError as error:
        raise ParameterError(where, '', _say(error)) from None
    except ValueError as error:
        # A date that does not exist, or a number too long for Python.
        raise ParameterError(
            where, '', f'not valid YAML: {" ".join(str(error).split())}'
        ) from None
    except RecursionError:
        raise ParameterError(where, '', 'is nested too deeply') from None


def read_yaml_mapping(path: Path) -> dict[str, Any]:
    """Return the mapping that a YAML file holds.

    Raises
    ------
    ParameterError
        When the file cannot be read, is no YAML, gives a key twice or holds no mapping.
    """
    where = str(path)
    content = read_yaml(path)
    if not isinstance(content, dict):
        found = 'nothing' if content is None else f'a {type(content).__name__}'
        raise ParameterError(where, '', f'holds {found}; must be a mapping of parameters')
    return content


def _say(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        place = f'line {mark.line + 1}, column {mark.column + 1}: ' if mark else ''
        return f'{place}not valid YAML: {error.problem or error.context}'
    return f'not valid YAML: {" ".join(str(error).split())}'


class _StrictLoader(yaml.SafeLoader):
    """Safe loader that refuses a key given twice, where YAML's would keep the last silently."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: dict[object, int] = {}
        for key_node, _ in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else id(key_node)
            if key in seen:
                problem = f'key {key!r} was already given on line {seen[key]}'
                raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
            seen[key] = key_node.start_mark.line + 1
        return super().construct_mapping(node, deep)


def read_columns(
    path: Path, names: Sequence[str], optional: str = '', *, finite: bool = True
) -> dict[str, FloatArray]:
    """Return the columns of a CSV table of motion by their names, `(n,)` each; others are left.

    The header may begin with #. With `finite` false a number may be infinite or none.

    Raises
    ------
    MotionError
        Naming file, line, value and what is allowed.
    """
    columns: dict[str, list[float]] = {}
    try:
        with path.open(newline='', encoding='utf-8-sig') as file:
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
    try:
        number = float(text)
    except ValueError:
        number = None
    if number is None or (finite and not math.isfinite(number)):
        allowed = 'a finite number' if finite else 'a number'
        raise MotionError(f'{where}: {name} {text!r} is not allowed; must be {allowed}')
    return number


def file_comment(path: Path) -> str:
    """Return the comment at the top of a file, without its licence, as one line."""
    words = []
    for line in path.read_text(encoding='utf-8').splitlines():
        if not line.startswith('#'):
            break
        if 'SPDX-' not in line:
            words.append(line.lstrip('# '))
    return ' '.join(words)
