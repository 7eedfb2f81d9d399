# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The page of all parameters, from their declarations."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import sim2real_eval
import sim_sensors
from sim_sensors.core.parameters import Parameter, Parameters, VariedParameters

_HEAD = """\
<!-- Made by `python docs/write_reference.py`; change the declarations instead. -->
# Parameters

This page lists the declared options, one table per set. The keys of YAML files, the parameters
of nodes and the options of the command all come from these declarations, which also check the
values. Those of [sensor models](sensors/index.md), [nodes](ros/nodes.md) and
[recordings](recordings.md) are on pages of their own.

- A set inside a set is a nested mapping in a YAML file and a prefix with a dot in ROS:
  `gyroscope: {std: 0.1}` in a file is the parameter `imu.gyroscope.std` of a node.
- The key `model` selects one of several sets.
- Options of the command are spelled with hyphens: `max_lag` is `--max-lag`.
- `ekf_node`, `ukf_node` and `navsat_transform_node` take the parameters of
  [robot_localization](../explanation/robot_localization.md).
"""


_KINDS = ('camera', 'gps', 'imu', 'magnetometer', 'noise', 'sensor', 'vision', 'wheels')
ELSEWHERE = (
    *(f'sim_sensors.{room}' for room in (*_KINDS, 'ros')),
    *(f'sim2real_eval.{room}' for room in ('ros', 'recording')),
)
"""Folders whose sets are on the pages of sensors, nodes and recordings."""


def page() -> str:
    """Return the whole page."""
    lines = [_HEAD]
    room = ''
    for one in declared_sets():
        if one.__module__.startswith(ELSEWHERE):
            continue
        if (own := one.__module__.rpartition('.')[0]) != room:
            room = own
            lines += [f'## {room}', '', _about(importlib.import_module(room)), '']
        lines += _section(one)
    return '\n'.join(lines)


def declared_sets() -> list[type[Parameters]]:
    """Return all declared sets of both packages, by module, then in the order of the module."""
    modules = [module for package in (sim_sensors, sim2real_eval) for module in _modules(package)]
    found: list[type[Parameters]] = []
    for module in modules:
        for one in vars(module).values():
            if (
                isinstance(one, type)
                and issubclass(one, Parameters)
                and one.__module__ == module.__name__
                and one not in (Parameters, VariedParameters)
                and (one.declarations() or one._nested())
                # A set whose units are those of its kinds is shown as these.
                and not any('{' in declaration.unit for declaration in one.declarations().values())
            ):
                found.append(one)
    return found


def _modules(package: ModuleType) -> Iterator[ModuleType]:
    """Import the modules that declare anything, and no others: some need ROS or a plugin."""
    folder = Path(package.__path__[0])
    for path in sorted(folder.rglob('*.py')):
        if 'parameters import' in path.read_text(encoding='utf-8'):
            parts = path.relative_to(folder.parent).with_suffix('').parts
            yield importlib.import_module('.'.join(parts))


def _section(one: type[Parameters]) -> list[str]:
    kind = f' (`model: {one.kind}`)' if one.kind else ''
    lines = [f'### {one.__name__.lstrip("_")}{kind}', '', _about(one), '']
    rows = [_row(name, declaration) for name, declaration in one.declarations().items()]
    varied = getattr(one, 'varied', {})
    for field in dataclasses.fields(one):
        part = field.default_factory
        if field.name in varied:
            kinds = ', '.join(f'`{each}`' for each in varied[field.name].names())
            rows.append(f'| `{field.name}` | set | | | `{_kind(field)}` | One of {kinds}. |')
        elif isinstance(part, type) and issubclass(part, Parameters):
            rows.append(f'| `{field.name}` | set | | | | {part.__name__} |')
    return [
        *lines,
        '| name | type | unit | allowed | default | meaning |',
        '|---|---|---|---|---|---|',
        *rows,
        '',
    ]


def _kind(field: dataclasses.Field[object]) -> str:
    default = field.default if field.default is not dataclasses.MISSING else None
    if default is None and callable(field.default_factory):
        default = field.default_factory()
    return str(getattr(default, 'kind', ''))


def _row(name: str, one: Parameter) -> str:
    return f'| `{name}` | {" | ".join(cells(one))} |'


def cells(one: Parameter) -> tuple[str, ...]:
    """Return type, unit, allowed values, default and meaning."""
    kind = {bool: 'flag', int: 'integer', float: 'number', str: 'text', tuple: 'numbers'}[one.kind]
    allowed = ', '.join(f'`{choice}`' for choice in one.choices)
    if not allowed and (one.minimum, one.maximum) != (None, None):
        low = (
            ''
            if one.minimum is None
            else f'{">" if one.minimum_excluded else ">="} {one.minimum:g}'
        )
        high = '' if one.maximum is None else f'<= {one.maximum:g}'
        allowed = ', '.join(filter(None, (low, high)))
    unit = '' if one.unit == '1' else one.unit
    default = 'none' if one.default is None else _shown(one.default)
    meaning = one.doc.replace('|', '\\|')
    return kind, unit, allowed, default, meaning


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f'{value:.10g}'
    if isinstance(value, tuple):
        return ', '.join(map(_shown, value))
    return str(value)


def _about(thing: object) -> str:
    """Return the first paragraph of a docstring, as one line."""
    return ' '.join((thing.__doc__ or '').split('\n\n')[0].split())
