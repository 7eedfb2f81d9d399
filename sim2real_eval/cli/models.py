# SPDX-License-Identifier: Apache-2.0
"""`sim2real models`: the sensor models that can be named."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim2real_eval.cli.arguments import add_json
from sim2real_eval.cli.output import print_json

if TYPE_CHECKING:
    from sim_sensors.core.parameters import Parameters
    from sim_sensors.core.registry import Registry

_WIDTH = 150


HELP = 'list the sensor models, worlds, judges, metrics and scenarios'
DESCRIPTION = (
    'List the presets of the models of all sensors, the worlds, the judge '
    'profiles and the settings of the inertial judges, and where their files are; then judges, '
    'metrics and scenarios, those of installed packages too. A line about each: '
    'copy one, change it, and give its path wherever a name is taken.'
)
EPILOG = 'example:\n  sim2real models\n  sim2real models --json'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        'name',
        nargs='?',
        help='show what one sensor model says of itself: a preset, a model of another package, or '
        'my_model.py:MyModel',
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    from sim2real_eval.judge.protocol import JUDGES
    from sim2real_eval.judge.setup import profiles
    from sim2real_eval.study.metric import METRICS
    from sim_sensors.core.config_files import config_names, config_path
    from sim_sensors.motion.motions import SCENARIOS
    from sim_sensors.sensor.catalogue import KINDS, UPSTREAM, has_upstream
    from sim_sensors.world.world import world_names

    if options.name:
        print(_page(options.name))
        return 0
    sensors = {
        kind: {name: _usable(kind, name) for name in KINDS.get(kind).names()}
        for kind in KINDS.names()
    }
    worlds = world_names()
    inertial = config_names('inertial')
    classes = {
        'judges': _meanings(JUDGES),
        'metrics': _meanings(METRICS),
        'scenarios': _meanings(SCENARIOS),
    }
    if options.json:
        models = {
            kind: {name: model and model.to_mapping() for name, model in found.items()}
            for kind, found in sensors.items()
        }
        print_json(
            {**models, 'worlds': worlds, 'judge': profiles(), 'inertial': inertial, **classes}
        )
        return 0
    for kind, found in (
        *((kind, list(models)) for kind, models in sensors.items()),
        ('worlds', worlds),
        ('judge', profiles()),
        ('inertial', inertial),
    ):
        print(f'{kind}: files in {config_path(kind)}')
        for name in found:
            model = sensors[kind][name] if kind in sensors else None
            mark = '*' if model is not None and has_upstream(model) else ' '
            line = (
                f'  {name:<{max(map(len, found))}} {mark} {_about(config_path(kind), name, model)}'
            )
            print(line if len(line) <= _WIDTH else f'{line[: _WIDTH - 3].rstrip()}...')
    for title, meanings in classes.items():
        print(f'{title}:')
        for name, meaning in meanings.items():
            print(f'  {name:<{max(map(len, meanings))}}   {meaning}')
    print(f'* has the defects of its original too: NAME{UPSTREAM}')
    return 0


def _meanings(registry: Registry[Any]) -> dict[str, str]:
    """Return the first line about each class of a registry, by name."""
    from sim_sensors.core.errors import ParameterError

    found = {}
    for name in registry.names():
        try:
            found[name] = (registry.get(name).__doc__ or '').strip().partition('\n')[0]
        except ParameterError as error:
            found[name] = str(error)
    return found


def _page(name: str) -> str:
    """Return the docstring and the parameters of a model, which is of the first kind that has it.

    Raises
    ------
    ParameterError
        When no kind has it.
    """
    import inspect

    from sim_sensors.core.errors import ParameterError
    from sim_sensors.sensor.catalogue import kinds

    problem = None
    for kind in kinds():
        try:
            model: Parameters = kind.load(name)
        except ParameterError as error:
            problem = problem or error
            continue
        rows = [
            f'  {key} = {getattr(model, key)!r}  [{one.unit}]  {one.doc}'
            for key, one in model.declared().items()
        ]
        return '\n'.join([f'{name}: {kind.one} model', inspect.getdoc(model) or '', *rows])
    assert problem is not None
    raise problem


def _usable(kind: str, name: str) -> Parameters | None:
    """Return a preset; None where an optional library is missing, which its line names."""
    from sim_sensors.core.errors import ParameterError
    from sim_sensors.sensor.catalogue import KINDS

    try:
        model: Parameters = KINDS.get(kind).load(name)
    except ParameterError:
        return None
    return model


def _about(folder: Path, name: str, model: Parameters | None) -> str:
    """Return the first sentence of the comment at the top of a preset's file, or of the class."""
    if not (folder / f'{name}.yaml').exists():
        return (type(model).__doc__ or '').partition('\n')[0] if model else 'cannot be imported'
    comment = []
    for line in (folder / f'{name}.yaml').read_text(encoding='utf-8').splitlines():
        if not line.startswith('#'):
            break
        if 'SPDX-' not in line:
            comment.append(line.lstrip('# '))
    text = ' '.join(comment).partition(' docs/')[0]
    # Not at the point of a number, nor at one within a name.
    return re.split(r'\.(?=\s+[A-Z])|\.$', text, maxsplit=1)[0]
