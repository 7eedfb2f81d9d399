# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Pages of the reference that are written by hand around generated blocks.

A block is what stands between `<!-- NAME: WORD -->` and `<!-- end -->` on a page:

| block | what it shows |
|---|---|
| `parameters: GpsModel` | the table of a parameter set |
| `set: Delivery` | its docstring and its table |
| `additional: GpsSettings.SensorSettings` | what a set adds to the one that it derives from |
| `models: imu`, `models: gps.noise` | docstring and parameters of every model |
| `presets: gps` | the presets of a kind of sensor |
| `launch: judge.launch.py` | the arguments of a launch file, read without ROS |
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sim2real_eval.ros_launch.arguments import (
    ARGUMENTS,
    JUDGE_OR_NONE,
    NAVSAT,
    STATED_GPS,
    as_text,
)
from sim2real_eval.study.options import ComparedSensors
from sim_sensors.core.config_files import file_comment
from sim_sensors.core.parameters import Parameter, Parameters
from sim_sensors.core.shipped import config_path
from sim_sensors.sensor.catalogue import KINDS, has_upstream, kinds, preset_names
from writers import parameters

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / 'docs' / 'reference'

_BLOCK = re.compile(r'(<!-- (\w+): ([\w.]+) -->\n).*?(<!-- end -->)', re.S)
_SECTION = re.compile(r'\n(\w+)\n-+\n')


def pages() -> list[str]:
    """Return the pages that have blocks, by their path without suffix."""
    return [
        path.relative_to(FOLDER).with_suffix('').as_posix()
        for path in sorted(FOLDER.rglob('*.md'))
        if _BLOCK.search(path.read_text(encoding='utf-8'))
    ]


def page(name: str) -> str:
    """Return a page with its blocks written anew."""

    def block(found: re.Match[str]) -> str:
        lines = BLOCKS[found[2]](found[3])
        return '\n'.join([found[1], *lines, '', found[4]])

    return _BLOCK.sub(block, _text(name))


def _text(name: str) -> str:
    return (FOLDER / f'{name}.md').read_text(encoding='utf-8')


def shown() -> set[type[Parameters]]:
    """Return the parameter sets that the blocks show."""
    found: set[type[Parameters]] = set()
    for path in pages():
        for _, name, word, _ in _BLOCK.findall(_text(path)):
            if name in ('parameters', 'set', 'additional'):
                found.add(_sets()[word.partition('.')[0]])
            elif name == 'models':
                for model in _models(word):
                    found |= {model, *(one for _, one in _parts(model))}
    return found


# Parameters.


def _table(word: str) -> list[str]:
    return table(_sets()[word].declarations())


def _additional(word: str) -> list[str]:
    derived, base = (_sets()[name] for name in word.split('.'))
    known = base.declarations()
    return table({name: one for name, one in derived.declarations().items() if name not in known})


def _set(word: str) -> list[str]:
    return [*_described(_sets()[word]), '', *_table(word)]


def table(declared: dict[str, Parameter], other: dict[str, Parameter] | None = None) -> list[str]:
    """Return the lines of a table; `other` has the same names with other units and defaults."""
    lines = ['| parameter | unit | allowed | default | meaning |', '|---|---|---|---|---|']
    for name, one in declared.items():
        cells = parameters.cells(one)
        if other is not None:
            second = parameters.cells(other[name])
            both = zip(cells, second, strict=True)
            cells = tuple(a if a == b else f'{a}; {b}' for a, b in both)
        _, *rest = cells
        lines.append(f'| `{name}` | {" | ".join(rest)} |')
    return lines


def _sets() -> dict[str, type[Parameters]]:
    return {one.__name__: one for one in parameters.declared_sets()}


# Models.


def _model_sections(word: str) -> list[str]:
    lines: list[str] = []
    for model in _models(word):
        lines += [f'### {model.kind}', '', *_described(model)]
        inherited = _inherited(model)
        own = {name: one for name, one in model.declarations().items() if name not in inherited}
        if own:
            lines += ['', *table(own)]
        lines += [*_part_tables(model), '']
    return lines[:-1]


def _models(word: str) -> list[type[Parameters]]:
    """Return the models of a kind of sensor, or with a dot of one of its parts."""
    kind, _, part = word.partition('.')
    registry = KINDS.get(kind).models
    if part:
        (model,) = (registry.get(name) for name in registry.names(installed=False))
        registry = model.varied[part]
    return [registry.get(name) for name in sorted(registry.names(installed=False))]


def _inherited(model: type[Parameters]) -> set[str]:
    """Return the parameters that all sensors of the kind have, or all of another simulator."""
    shared = {base for kind in kinds() for base in (kind, *kind.__mro__)}
    shared |= {base for base in model.__mro__ if base.__name__ in ('UpstreamImu', 'SampledImu')}
    return {
        name
        for base in model.__mro__
        if base in shared and issubclass(base, Parameters)
        for name in base.declarations()
    }


def _parts(model: type[Parameters]) -> list[tuple[str, type[Parameters]]]:
    """Return the nested sets that other models do not have."""
    inherited = {
        part for kind in kinds() if issubclass(model, kind) for part in kind._nested().values()
    }
    return [(name, part) for name, part in model._nested().items() if part not in inherited]


def _part_tables(model: type[Parameters]) -> list[str]:
    parts = dict(_parts(model))
    lines: list[str] = []
    gyroscope, accelerometer = parts.get('gyroscope'), parts.get('accelerometer')
    if (
        gyroscope
        and accelerometer
        and [*gyroscope.declarations()] == [*accelerometer.declarations()]
    ):
        lines += ['', '`gyroscope`; `accelerometer`:', '']
        lines += table(gyroscope.declarations(), accelerometer.declarations())
        del parts['gyroscope'], parts['accelerometer']
    for name, part in parts.items():
        lines += ['', f'`{name}`:', '', *table(part.declarations())]
    return lines


def _described(model: type[Parameters]) -> list[str]:
    """Return a docstring as Markdown: notes as they are, references as the source."""
    head, *sections = _SECTION.split(inspect.getdoc(model) or '')
    text = head.replace('::\n', ':\n').strip(':').strip()
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        if title == 'Notes':
            text += '\n\n' + body.replace('::\n', ':\n').strip()
        elif title == 'References':
            text += '\n\nSource: ' + body.strip()
    return text.split('\n')


# Presets.


def _presets(kind: str) -> list[str]:
    lines = ['| preset | model | what it is |', '|---|---|---|']
    for name in preset_names(kind):
        model = KINDS.get(kind).load(name)
        own = [model.kind] if len(KINDS.get(kind).models.names(installed=False)) > 1 else []
        own += [getattr(model, part).kind for part in getattr(model, 'varied', ())]
        star = ' \\*' if has_upstream(model) else ''
        about = file_comment(config_path(kind, f'{name}.yaml'))
        links = ', '.join(f'[{one}](#{one})' for one in own)
        lines.append(f'| `{name}`{star} | {links} | {about} |')
    return lines


# Launch files.


def _launch(file: str) -> list[str]:
    rows = ['| argument | default | |', '|---|---|---|']
    for name, one in arguments(file).items():
        default = as_text(one.default)
        shown = {None: 'required', '': 'none', 'of the profile': default}.get(default)
        choices = ', '.join(f'`{each}`' for each in one.choices)
        unit = f' [{one.unit}]' if one.unit not in ('', '1') else ''
        meaning = one.doc.removesuffix('.') + f': {choices}.' if choices else one.doc + unit
        rows.append(f'| `{name}` | {shown or f"`{default}`"} | {meaning} |')
    return rows


def arguments(file: str) -> dict[str, Parameter]:
    """Return the arguments that a launch file declares, in order, with their defaults."""
    module = ast.parse((ROOT / 'launch' / file).read_text(encoding='utf-8'))
    known: dict[str, Any] = {
        **{one.__name__: one for one in (ComparedSensors, Parameter)},
        **{'ARGUMENTS': ARGUMENTS, 'NAVSAT': NAVSAT, 'JUDGE_OR_NONE': JUDGE_OR_NONE},
        'STATED_GPS': STATED_GPS,
        **{'dataclasses': dataclasses, 'profile_file': lambda *_: 'of the profile'},
        'motion_file': lambda: 'config/ros/motion.yaml',
    }
    found: dict[str, Parameter] = {}
    for node in ast.walk(module):
        if not (isinstance(node, ast.Call) and ast.unparse(node.func) == 'declare'):
            continue
        found.update((name, ARGUMENTS[name]) for name in map(ast.literal_eval, node.args))
        for word in node.keywords:
            value = _assigned(module, word.value)
            one = eval(ast.unparse(value), known)
            if not isinstance(one, Parameter):
                one = dataclasses.replace(ARGUMENTS[str(word.arg)], default=one)
            found[str(word.arg)] = one
    return found


def _assigned(module: ast.Module, value: ast.expr) -> ast.expr:
    """Return what a variable is assigned, or the expression itself."""
    for node in ast.walk(module):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == ast.unparse(value):
            return node.value
    return value


BLOCKS: dict[str, Callable[[str], list[str]]] = {
    'parameters': _table,
    'set': _set,
    'additional': _additional,
    'models': _model_sections,
    'presets': _presets,
    'launch': _launch,
}
