# SPDX-License-Identifier: Apache-2.0
"""YAML files that people write, read strictly: every defect is named with its file and line."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from sim_sensors.errors import ParameterError

__all__ = ['read_yaml', 'read_yaml_mapping']


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
