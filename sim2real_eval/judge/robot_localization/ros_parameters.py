# SPDX-License-Identifier: Apache-2.0
"""ROS 2 parameter files: the parameters of one node, checked as they are read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sim_sensors.core.config_files import read_yaml
from sim_sensors.core.errors import ParameterError, did_you_mean
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import number_of


def read_node_parameters(
    path: str | Path, node: str, *, strictly: bool = False
) -> ParameterReader:
    """Read the parameters of one node from a ROS 2 parameter file.

    The file has `<node>: ros__parameters: ...`, `/**: ros__parameters: ...` or both; parameters of
    the node override those of all nodes. `node`, such as `ekf_filter_node`, may be the beginning
    of a name. If the file has neither this name nor `/**` but exactly one node, that node is read,
    unless `strictly` is set.

    ParameterError when the file cannot be read, or has no such node or several.
    """
    where = str(path)
    tree = read_yaml(Path(path))
    sections = _nodes(tree, '') if isinstance(tree, Mapping) else ()
    nodes = {name: _flat(entries, '') for name, entries in sections}
    if not nodes:
        raise ParameterError(where, '', 'has no `<node>: ros__parameters:` section')
    wildcards = {name: entries for name, entries in nodes.items() if '*' in name}
    named = {name: entries for name, entries in nodes.items() if '*' not in name}
    selected = {name: entries for name, entries in named.items() if name.split('/')[-1] == node}
    if strictly and not selected:
        has = ', '.join(sorted(named)) or 'none'
        near = did_you_mean(node, named)
        raise ParameterError(where, '', f'has no node {node}{near}; it has {has}')
    if not selected:
        selected = {
            name: entries
            for name, entries in named.items()
            if name.split('/')[-1].startswith(node) or (len(named) == 1 and not wildcards)
        }
    if len(selected) > 1 or not (selected or wildcards):
        hint = '; for the filter, section (--section) names one' if len(named) > 1 else ''
        raise ParameterError(
            where, '', f'which node is meant by {node}? It has {", ".join(sorted(named))}{hint}'
        )
    merged: dict[str, Any] = {}
    for entries in (*wildcards.values(), *selected.values()):
        merged.update(entries)
    node = next(iter(selected), '/**')
    return ParameterReader(where, merged, f'/{node}' if '/' in node.strip('/') else node)


def declared(values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert values to the types that robot_localization's nodes declare.

    rclcpp does not accept the integer `frequency: 30` as a double, and YAML reads `1e-9` as text.
    """
    return {name: _as_declared(name, value) for name, value in values.items() if value is not None}


def _as_declared(name: str, value: Any) -> Any:
    if name.endswith('queue_size') or isinstance(value, bool):
        return value
    if isinstance(value, list):
        return [_as_declared(name, entry) for entry in value]
    try:
        return float(value)
    except (TypeError, ValueError):
        return value


def _nodes(tree: Mapping[str, Any], prefix: str) -> Iterable[tuple[str, Mapping[str, Any]]]:
    for name, entry in tree.items():
        full = f'{prefix}/{str(name).strip("/")}' if prefix else str(name).strip('/')
        if isinstance(entry, Mapping):
            if isinstance(entry.get('ros__parameters'), Mapping):
                yield full, entry['ros__parameters']
            else:
                yield from _nodes(entry, full)


def _flat(entries: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in entries.items():
        key = f'{prefix}.{name}' if prefix else str(name)
        if isinstance(value, Mapping):
            flat.update(_flat(value, key))
        else:
            flat[key] = value
    return flat


class ParameterReader:
    """Parameters of one node; each is removed when it is read, `finish` refuses the others.

    `where` is the path of the file for messages, `node` the name of the node in the file.
    """

    def __init__(self, where: str, values: Mapping[str, Any], node: str = '/**') -> None:
        self.where, self.node = where, node
        self._values = dict(values)
        self._requested: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._values

    @property
    def values(self) -> Mapping[str, Any]:
        """Parameters that have not been read yet."""
        return dict(self._values)

    def names(self) -> list[str]:
        """Return the names of parameters that have not been read yet."""
        return list(self._values)

    def refuse(self, name: str, value: object, allowed: str) -> ParameterError:
        """Return the error for a value that is not allowed."""
        return ParameterError(
            self.where, name, f'{_format_value(value)} is not allowed; must be {allowed}'
        )

    def _pop(self, name: str, default: Any) -> Any:
        self._requested.add(name)
        value = self._values.pop(name, None)
        return default if value is None else value

    def boolean(self, name: str, default: bool) -> bool:
        """Read a flag."""
        value = self._pop(name, default)
        if not isinstance(value, bool):
            raise self.refuse(name, value, 'true or false')
        return value

    def text(self, name: str, default: str) -> str:
        """Read a text."""
        value = self._pop(name, default)
        if not isinstance(value, str):
            raise self.refuse(name, value, 'a text')
        return value

    def texts(self, name: str) -> list[str]:
        """Read a list of texts; empty when absent."""
        value = self._pop(name, [])
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            raise self.refuse(name, value, 'a list of texts')
        return value

    def number(
        self, name: str, default: float, *, minimum: float = -math.inf, maximum: float = math.inf
    ) -> float:
        """Read a finite number from `minimum` to `maximum`; `default` when absent."""
        if self._values.get(name) is None:
            self.ignore((name,))
            return default
        value = self._pop(name, default)
        number = number_of(value)
        if number is None or not minimum <= number <= maximum:
            low = '' if minimum == -math.inf else f' >= {minimum:g}'
            high = '' if maximum == math.inf else f' <= {maximum:g}'
            both = ' and' if low and high else ''
            raise self.refuse(name, value, f'a number{low}{both}{high}')
        return number

    def numbers(self, name: str, size: int, default: FloatArray) -> FloatArray:
        """Read a list of `size` finite numbers."""
        value = self._pop(name, None)
        if value is None:
            return np.array(default, dtype=np.float64)
        entries = [number_of(entry) for entry in value] if isinstance(value, list) else []
        if len(entries) != size or None in entries:
            raise self.refuse(name, value, f'a list of {size} numbers')
        return np.array(entries, dtype=np.float64)

    def flags(self, name: str, size: int) -> FloatArray:
        """Read a list of `size` true/false as 1.0/0.0; all false when absent."""
        value = self._pop(name, [False] * size)
        if (
            not isinstance(value, list)
            or len(value) != size
            or not all(isinstance(entry, bool) for entry in value)
        ):
            raise self.refuse(name, value, f'a list of {size} true/false')
        return np.array(value, dtype=np.float64)

    def covariance(self, name: str, default: FloatArray) -> FloatArray:
        """Read a 15 x 15 matrix from 225 numbers, column by column, or from its diagonal."""
        if name not in self._values:
            self._requested.add(name)
            return np.array(default, dtype=np.float64)
        value = self._values[name]
        if isinstance(value, list) and len(value) == 15:
            return np.diag(self.numbers(name, 15, np.zeros(15)))
        if not isinstance(value, list) or len(value) != 225:
            raise self.refuse(name, value, 'a list of 225 or 15 numbers')
        # robot_localization reads columns, too; it matters for asymmetric matrices only.
        return np.array(self.numbers(name, 225, np.zeros(225)).reshape(15, 15).T)

    def ignore(self, names: Iterable[str]) -> None:
        """Discard parameters that have no effect on the estimate."""
        for name in names:
            self._requested.add(name)
            self._values.pop(name, None)

    def only(self, name: str, value: object, why: str) -> None:
        """Refuse a parameter with another value than `value`; `why` explains it."""
        actual = self._pop(name, value)
        if actual != value:
            raise ParameterError(
                self.where, name, f'{actual!r} is not supported: {why}; must be {value!r}'
            )

    def finish(self) -> None:
        """Refuse the first unread parameter as unknown, with the nearest known name."""
        for name in self._values:
            near = did_you_mean(name, sorted(self._requested))
            raise ParameterError(self.where, name, f'unknown parameter{near}')


def _format_value(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:
        return 'an integer of thousands of digits'
    return text if len(text) <= 60 else f'{text[:50]}... ({len(text)} characters)'
