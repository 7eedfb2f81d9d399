# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real models`: list of the sensor models, and details of each."""

from __future__ import annotations

import argparse
import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim_sensors.core.errors import ParameterError, UnknownNameError, not_among
from sim_sensors.core.input_files import read_input_text
from .arguments import add_out, add_shared
from .deprecations import place_files
from .output import conclude, print_notes

if TYPE_CHECKING:
    from sim_sensors.core.parameters import Parameters
    from sim_sensors.core.registry import Registry
    from sim_sensors.sensor.sensor import SensorModel

_WIDTH = 150


DESCRIPTION = (
    'List the presets of all sensor models, the worlds, the judge profiles and the settings of '
    'the inertial judges with the folders of their files, and all judges, metrics and scenarios, '
    'including those of installed packages. To change a preset, copy its file, edit the copy, '
    'and give its path instead of the name.'
)
EPILOG = """\
examples:
  sim2real models
  sim2real models --json
  sim2real models --sheet mpu6050.yaml --out my_imu
  sim2real models --from settings.json --out airsim
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        'name',
        nargs='?',
        help='sensor model to describe: a preset, a model of another package, or '
        'my_model.py:MyModel',
    )
    parser.add_argument(
        '--from',
        dest='source',
        metavar='FILE',
        help='write the IMU, or else the GPS, of a file of another simulator as YAML: '
        'settings.json, model.sdf, imu.yaml of Kalibr and all that `sim2real export` writes',
    )
    parser.add_argument(
        '--sheet',
        metavar='FILE',
        help='YAML file with the numbers of the data sheet of an IMU, as printed: '
        '400 ug/sqrt(Hz), 8 deg/h, 16.4 LSB/(deg/s); gives a model for simulate --imu',
    )
    add_out(
        parser, 'folder for imu.yaml or gps.yaml, of --sheet or --from (default: print the model)'
    )
    add_shared(parser, 'overwrite', 'json')


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    from sim2real_eval.judge.protocol import JUDGES
    from sim2real_eval.judge.setup import profiles
    from sim2real_eval.study.metric import METRICS
    from sim_sensors.core.config_files import file_phrase
    from sim_sensors.core.shipped import config_names, config_path
    from sim_sensors.motion.motions import SCENARIOS
    from sim_sensors.sensor.catalogue import KINDS, UPSTREAM, has_upstream, kinds
    from sim_sensors.world.world import world_names

    if options.source:
        return _import(options)
    if options.sheet:
        return _convert_sheet(options)
    if options.out:
        raise ParameterError('--out', '', 'needs --sheet or --from')
    if options.name:
        print(_page(options.name))
        return 0
    sensors = {
        kind.name: {name: _load_preset(kind, name) for name in kind.names()} for kind in kinds()
    }
    files = {
        'worlds': world_names(), 'judge': profiles(),
        **{kind: config_names(kind) for kind in ('inertial', 'estimators')},
    }  # fmt: skip
    registries = {'judges': JUDGES, 'metrics': METRICS, 'scenarios': SCENARIOS}
    classes = {title: _meanings(registry) for title, registry in registries.items()}
    models = {
        kind: {
            name: None if isinstance(model, ParameterError) else model.to_mapping()
            for name, model in listed.items()
        }
        for kind, listed in sensors.items()
    }

    def print_result() -> None:
        for kind, listed in {**sensors, **files}.items():
            folder = config_path() / kind
            print(f'{kind}: files in {folder}' if folder.is_dir() else f'{kind}:')
            for name in listed:
                mark, model = ' ', sensors.get(kind, {}).get(name)
                if isinstance(model, ParameterError):
                    summary = model.problem
                elif model is None:
                    summary = file_phrase(folder / f'{name}.yaml')
                else:
                    mark = '*' if has_upstream(model) else ' '
                    summary = KINDS.get(kind).phrase(name)
                line = f'  {name:<{max(map(len, listed))}} {mark} {summary}'
                print(line if len(line) <= _WIDTH else f'{line[: _WIDTH - 3].rstrip()}...')
        for title, meanings in classes.items():
            print(f'{title}:')
            for name, meaning in meanings.items():
                print(f'  {name:<{max(map(len, meanings))}}   {meaning}')
        print(f'* NAME{UPSTREAM} also reproduces the defects of the original')

    return conclude(options, {**models, **files, **classes}, print_result)


def _import(options: argparse.Namespace) -> int:
    """Write the model of a file of another simulator; return the exit status."""
    from sim2real_eval.common.model_files import model_yaml
    from sim2real_eval.exporting.gps_export import sensor_from_text
    from sim_sensors.core.parameters import to_variant

    if options.name or options.sheet:
        other = options.name or '--sheet'
        raise ParameterError('--from', '', f'is not allowed with {other}')
    path = Path(options.source)
    text = read_input_text(path)
    # A file with both gives its IMU.
    title, model = sensor_from_text(text, str(path), path.name)
    comments = [f'Sensor of {title} in {path.name}, as that simulator applies it.']
    text = model_yaml(model, comments)
    file = _write_model(options, model.name, text)
    return conclude(
        options, to_variant(model), lambda: print(f'Model: {file}\n' if file else text, end='')
    )


def _write_model(options: argparse.Namespace, kind: str, text: str) -> Path | None:
    """Write a model into the folder --out; return its file, or None without --out."""
    from sim2real_eval.common.new_files import write_text
    from sim2real_eval.common.results import fresh_files

    if not options.out:
        return None
    out, name = place_files('models', options.out, f'{kind}.yaml')
    with fresh_files(out, (name,), overwrite=options.overwrite) as folder:
        write_text(folder / name, text)
    return out / name


def _convert_sheet(options: argparse.Namespace) -> int:
    """Write or print the model of a data sheet, and print what the sheet leaves open."""
    from sim2real_eval.characterization.data_sheet import read_sheet
    from sim2real_eval.common.findings import to_records

    if options.name:
        raise ParameterError('--sheet', '', f'is not allowed with the model {options.name}')
    sheet = read_sheet(options.sheet)
    file = _write_model(options, 'imu', sheet.to_yaml())
    record = {**sheet.model.to_mapping(), 'notes': to_records(sheet.notes)}

    def print_result() -> None:
        print(f'Model: {file}\n' if file else sheet.to_yaml(), end='')
        print_notes(sheet.notes)

    return conclude(options, record, print_result)


def _meanings(registry: Registry[Any]) -> dict[str, str]:
    """Return the summary of each class of a registry, by name."""
    meanings = {}
    for name in registry.names():
        try:
            meanings[name] = (registry.get(name).__doc__ or '').strip().partition('\n')[0]
        except ParameterError as error:
            meanings[name] = str(error)
    return meanings


def _page(name: str) -> str:
    """Return the docstring and the parameters of a model.

    The first kind of sensor that has the model is used; an unknown model is an error.
    """
    from sim_sensors.sensor.catalogue import kinds, preset_names

    problem: ParameterError | None = None
    for kind in kinds():
        try:
            model: Parameters = kind.load(name)
        except UnknownNameError:
            continue
        except ParameterError as error:
            problem = error  # a file may be of another kind
            continue
        meaning = (inspect.getdoc(model) or '').partition('\n\nExamples\n')[0]
        return '\n'.join([f'{name}: {kind.noun} model', meaning, '', *_parameter_rows(model)])
    if problem is not None:
        raise problem
    presets = [preset for kind in kinds() for preset in preset_names(kind.name)]
    raise ParameterError('models', '', not_among(f'{name!r} is no sensor model', name, presets))


def _parameter_rows(model: Parameters, prefix: str = '') -> list[str]:
    """Return a row per parameter with the key that --set takes after the kind of sensor."""
    rows = [
        f'  {prefix}{key} = {getattr(model, key)!r}'
        f'{declaration.unit and f"  [{declaration.unit}]"}  {declaration.doc}'
        for key, declaration in model.declarations().items()
    ]
    for name, part in model.parts().items():
        if name in getattr(model, 'varied', {}):
            rows.append(f'  {prefix}{name}.model = {part.kind!r}')
        rows += _parameter_rows(part, f'{prefix}{name}.')
    return rows


def _load_preset(kind: type[SensorModel[Any]], name: str) -> Parameters | ParameterError:
    """Return a preset, or the error if an optional library is missing."""
    try:
        model: Parameters = kind.load(name)
    except ParameterError as error:
        return error
    return model
