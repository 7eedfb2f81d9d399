# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Parameter files of ROS nodes: sections, the node that is meant, and strict reading of values."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sim2real_eval.common.findings import Finding, routine
from sim_sensors.core.config_files import read_yaml
from sim_sensors.core.errors import ParameterError, did_you_mean
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import parse_number
from .release import DEFAULT_RELEASE, Release

ROS1_LAYOUT = routine(
    'rl.ros1_layout',
    'has the layout of ROS 1; its parameters are used for {node}',
    'The nodes of ROS 2 would not find these parameters.',
    'put them under `{node}: ros__parameters:` for ROS 2',
)

_ROS2_KEY = 'ros__parameters'
_INPUT = re.compile(r'(odom|pose|twist|imu)\d+')
_NAVSAT_KEYS = {
    'magnetic_declination_radians', 'yaw_offset', 'zero_altitude', 'use_odometry_yaw',
    'wait_for_datum', 'broadcast_utm_transform', 'broadcast_cartesian_transform',
    'publish_filtered_gps',
}  # fmt: skip


def read_node_parameters(
    path: str | Path, node: str, *, strictly: bool = False
) -> ParameterReader:
    """Read the parameters of one node from a ROS parameter file.

    The file has `NODE: ros__parameters: ...` for nodes, possibly below a namespace, and
    `/**: ros__parameters: ...` for all nodes. Parameters of the node override those of wildcards.
    `node`, such as `ekf_filter_node`, may be the beginning of a name. If no node has this name,
    the only node of the same role (filter or navsat_transform) is read, or the only node at all,
    unless `strictly` is set. A file without `ros__parameters` is read in the layout of ROS 1,
    `NODE: ...` or parameters without a node, if it has parameters of that role.

    ParameterError when the file cannot be read, or has no such node or several.
    """
    where = str(path)
    sections, is_ros1 = _read_sections(path)
    wildcards = {name: entries for name, entries in sections.items() if _is_wildcard(name)}
    named = {name: entries for name, entries in sections.items() if not _is_wildcard(name)}
    selected = _select(named, node, strictly=strictly, alone=not wildcards)
    if strictly and not selected:
        shown = _short_names(named)
        has = ', '.join(sorted(shown)) or 'none'
        near = did_you_mean(node, shown)
        raise ParameterError(where, '', f'has no node {node}{near}; it has {has}')
    # A pattern such as /**/ekf_filter_node completes the node that it matches.
    exact = [name for name in selected if '*' not in name]
    target = (exact or list(selected) or [''])[0]
    patterns = [name for name in selected if exact and '*' in name and _matches(name, target)]
    candidates = [name for name in selected if name not in patterns]
    if len(candidates) > 1 or not (candidates or wildcards):
        hint = '; for the filter, section (--section) names one' if len(named) > 1 else ''
        names = ', '.join(sorted(_short_names(candidates or named)))
        raise ParameterError(where, '', f'which node is meant by {node}? It has {names}{hint}')
    merged: dict[str, Any] = {}
    for name, entries in wildcards.items():
        if not target or _matches(name, target):
            merged.update(entries)
    for name in (*patterns, *candidates):
        merged.update(selected[name])
    name = (target or node) if is_ros1 else (target or '/**')
    name = f'/{name}' if '/' in name.strip('/') else name
    notes = (ROS1_LAYOUT(Path(path).name, node=name),) if is_ros1 else ()
    return ParameterReader(where, merged, name, notes)


def has_node(path: Path, prefix: str) -> bool:
    """Return True if a parameter file has a section for a node whose name starts so."""
    sections, _ = _read_sections(path)
    return any(_last(name).startswith(prefix) for name in sections)


def has_navsat(path: Path) -> bool:
    """Return True if a parameter file has a section for navsat_transform."""
    sections, _ = _read_sections(path)
    return any(_role(name, entries) == 'navsat' for name, entries in sections.items())


def _select(
    named: Mapping[str, dict[str, Any]], node: str, *, strictly: bool, alone: bool
) -> dict[str, dict[str, Any]]:
    """Return the sections that a node's name can mean; `alone` if there are no wildcards."""

    def choose(names: Iterable[str]) -> dict[str, dict[str, Any]]:
        return {name: named[name] for name in names}

    full = node.strip('/')
    exact = [name for name in named if name == full] or [
        name for name in named if _last(name) == full
    ]
    if exact or strictly:
        return choose(exact)
    role = _role(node, {})
    beginning = [name for name in named if _last(name).startswith(full)]
    alike = [name for name, entries in named.items() if _role(name, entries) == role]
    unclear = [name for name, entries in named.items() if not _role(name, entries)]
    last = unclear if alone and len(named) == 1 else []
    return choose(beginning or alike or last)


def _role(name: str, entries: Mapping[str, Any]) -> str:
    """Return `filter`, `navsat` or an empty string for a node by its name or its parameters."""
    last = _last(name)
    if last.startswith(('ekf', 'ukf')) or any(_INPUT.fullmatch(key) for key in entries):
        return 'filter'
    return 'navsat' if last.startswith('navsat') or _NAVSAT_KEYS & entries.keys() else ''


def _last(name: str) -> str:
    return name.split('/')[-1]


def _short_names(names: Collection[str]) -> list[str]:
    """Return the names without their namespace where that is unique."""
    last = [_last(name) for name in names]
    return [
        part if last.count(part) == 1 else name for name, part in zip(names, last, strict=True)
    ]


def _is_wildcard(name: str) -> bool:
    return _last(name) in ('*', '**')


def _matches(pattern: str, name: str) -> bool:
    """Return True if a node name with wildcards, as in ROS, fits a name."""
    tokens = (
        {'**': r'(/[^/]+)*', '*': r'/[^/]+'}.get(token, '/' + re.escape(token))
        for token in pattern.split('/')
    )
    full = ''.join(f'/{token}' for token in name.split('/') if '*' not in token)
    return re.fullmatch(''.join(tokens), full) is not None


def _read_sections(path: str | Path) -> tuple[dict[str, dict[str, Any]], bool]:
    """Return parameters by name of the node, and whether the file has the layout of ROS 1.

    In the layout of ROS 1 only sections of robot_localization are returned, and parameters
    without a node have an empty name.
    """
    where, tree = str(path), read_yaml(Path(path))
    entries = tree if isinstance(tree, Mapping) else {}
    sections = {name: _flat(values, '') for name, values in _nodes(where, entries, '')}
    if not sections:
        sections = dict(_ros1_nodes(entries, ''))
        if not sections:
            raise ParameterError(where, '', f'has no `<node>: {_ROS2_KEY}:` section')
        return sections, True
    for name, values in _ros1_nodes(entries, ''):
        problem = f'its parameters must stand under {name}: {_ROS2_KEY}:'
        if name not in sections and _role(name, values) == 'filter':
            raise ParameterError(where, name, problem)
    return sections, False


def _nodes(
    where: str, tree: Mapping[str, Any], prefix: str
) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """Yield the sections of a file with their full names, without a slash at the beginning."""
    for key, entry in tree.items():
        text = str(key).strip('/')
        name = f'{prefix}/{text}' if prefix else text
        if key == _ROS2_KEY and not prefix:
            raise ParameterError(where, name, 'has no node; indent it below the name of a node')
        if not isinstance(entry, Mapping):
            continue
        values = entry.get(_ROS2_KEY, ())
        if values is None and len(entry) > 1:
            problem = f'{_ROS2_KEY} is empty: indent the parameters below it'
            raise ParameterError(where, name, problem)
        if values is None or isinstance(values, Mapping):
            yield name, values or {}
        yield from _nodes(where, {k: v for k, v in entry.items() if k != _ROS2_KEY}, name)


def _ros1_nodes(tree: Mapping[str, Any], prefix: str) -> Iterable[tuple[str, dict[str, Any]]]:
    """Yield the mappings that hold parameters of robot_localization directly."""
    values = {str(key): entry for key, entry in tree.items() if not isinstance(entry, Mapping)}
    is_filter = any(_INPUT.fullmatch(key) and f'{key}_config' in values for key in values)
    is_navsat = bool(values) and _last(prefix).startswith('navsat')
    if is_filter or is_navsat or len(_NAVSAT_KEYS & values.keys()) > 1:
        yield prefix, _flat(tree, '')
        return
    for key, entry in tree.items():
        if isinstance(entry, Mapping) and key != _ROS2_KEY:
            text = str(key).strip('/')
            yield from _ros1_nodes(entry, f'{prefix}/{text}' if prefix else text)


def to_declared_types(values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert values to the types that robot_localization's nodes declare.

    rclcpp does not accept the integer `frequency: 30` as a double, and YAML reads `1e-9` as text.
    """
    return {name: _as_declared(name, value) for name, value in values.items() if value is not None}


def _as_declared(name: str, value: Any) -> Any:
    if name.endswith('queue_size') or name == 'rl_version' or isinstance(value, bool):
        return value
    if isinstance(value, list):
        return [_as_declared(name, entry) for entry in value]
    try:
        return float(value)
    except (TypeError, ValueError):
        return value


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

    `where` is the path of the file for messages, `node` the name of the node in the file, `notes`
    are findings about the file.
    """

    def __init__(
        self,
        where: str,
        values: Mapping[str, Any],
        node: str = '/**',
        notes: tuple[Finding, ...] = (),
    ) -> None:
        self.where, self.node, self.notes = where, node, notes
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
            raise self.refuse(name, value, 'a string')
        return value

    def texts(self, name: str) -> list[str]:
        """Read a list of texts; empty when absent."""
        value = self._pop(name, [])
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            raise self.refuse(name, value, 'a list of texts')
        return value

    def release(self) -> Release:
        """Read `rl_version`, the release of robot_localization."""
        value = self._pop('rl_version', DEFAULT_RELEASE.value)
        return Release.from_value(value, self.where)

    def number(
        self, name: str, default: float, *, minimum: float = -math.inf, maximum: float = math.inf
    ) -> float:
        """Read a finite number from `minimum` to `maximum`; `default` when absent."""
        if self._values.get(name) is None:
            self.ignore((name,))
            return default
        value = self._pop(name, default)
        number = parse_number(value)
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
        entries = [parse_number(entry) for entry in value] if isinstance(value, list) else []
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
            if _INPUT.match(name) and name.endswith('covariance'):
                raise ParameterError(
                    self.where, name,
                    'is no parameter: covariances come from the messages; change them by '
                    '`corrections` in recording.yaml, or by `covariance: {TOPIC: FACTOR}` in '
                    'case.yaml',
                )  # fmt: skip
            near = did_you_mean(name, sorted(self._requested))
            raise ParameterError(self.where, name, f'unknown parameter{near}')


def _format_value(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:
        return 'an integer of thousands of digits'
    return text if len(text) <= 60 else f'{text[:50]}... ({len(text)} characters)'
