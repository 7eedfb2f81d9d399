# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Options that choose sensors: `real`, `none`, a name or a file, for every kind of sensor."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim_sensors.core.errors import ParameterError, did_you_mean
from sim_sensors.core.parameters import parse_number
from .arguments import add_list, key_value, world_of

if TYPE_CHECKING:
    from sim2real_eval.simulation.twin import Twin
    from sim_sensors.world.geodesy import LocalFrame
    from sim_sensors.world.world import World

NONE = 'none'
"""Name of no sensor in place of a model."""

_TITLES = {'mag': 'magnetometer', 'wheels': 'wheel odometry', 'vision': 'vision pose'}
_ORIGIN = '--origin'
_ALL_ALLOWED: Mapping[str, str] = {}
JUDGED = {NONE: 'the judge needs a GPS and an IMU'}
"""Reasons to refuse words, for verbs that judge recordings."""


def sensor_names(
    kind: str,
    text: str,
    refused: Mapping[str, str] = _ALL_ALLOWED,
    *,
    several: bool = False,
    option: str = '',
) -> list[str]:
    """Return the sensors that an option names, without repetitions.

    Parameters
    ----------
    kind : str
        Kind of sensor, such as `imu`.
    text : str
        `real` for the recorded sensor, `none`, a preset or a file.
    refused : mapping
        Reason by word, for words that the verb cannot take: `{'none': 'the judge needs an IMU'}`.
    several : bool
        Whether the text is a list, separated by commas. `all` then stands for all presets, and
        `paper` for the five GPS models of the paper.
    option : str
        Option for messages; by default `--KIND`.

    Raises
    ------
    ParameterError
        When a word is refused or misspelt, or a name is empty or given twice.
    """
    from sim2real_eval.simulation.twin import REAL_SENSOR, STAND_IN
    from sim_sensors.gps.gps import PAPER_MODELS
    from sim_sensors.sensor.catalogue import preset_names

    option = option or f'--{kind}'
    lists = {'all': preset_names(kind), **({'paper': PAPER_MODELS} if kind == 'gps' else {})}
    words = [word for word in (REAL_SENSOR, NONE) if word not in refused]
    entries = [part.strip() for part in text.split(',')] if text.strip() else []
    if not several and (len(entries) != 1 or text in lists):
        raise ParameterError(option, '', f'{text!r} is not allowed; must be one model')
    names: list[str] = []
    for entry in entries:
        if not entry:
            problem = f'{text!r} has an empty entry; remove the extra comma'
            raise ParameterError(option, '', problem)
        if entry in refused:
            allowed = ', '.join([*words, 'a preset or a file'])
            problem = f'{entry!r} is not allowed, because {refused[entry]}; must be {allowed}'
            raise ParameterError(option, '', problem)
        if entries.count(entry) > 1:
            raise ParameterError(option, '', f'{entry!r} is given twice; must be given once')
        known_words = [*words, *(lists if several else ())]
        near = did_you_mean(entry, known_words)
        if (
            near
            and entry not in (*known_words, STAND_IN, *preset_names(kind))
            and entry.isidentifier()
        ):
            raise ParameterError(option, '', f'{entry!r} is unknown{near}')
        names += lists.get(entry, [entry])
    return list(dict.fromkeys(names))


def load_sensor(kind: str, name: str) -> Any:
    """Return the model of a sensor, or None for `real` and `none`."""
    from sim2real_eval.simulation.twin import REAL_SENSOR, STAND_IN
    from sim_sensors.core.shipped import config_path
    from sim_sensors.sensor.catalogue import KINDS

    if name in (REAL_SENSOR, NONE):
        return None
    is_stand_in = name == STAND_IN
    return KINDS.get(kind).load(config_path('demo', f'{kind}.yaml') if is_stand_in else name)


def load_single(
    kind: str, text: str, refused: Mapping[str, str] = _ALL_ALLOWED, option: str = ''
) -> Any:
    """Return the model of an option for one sensor, or None; see `sensor_names`."""
    (name,) = sensor_names(kind, text, refused, option=option)
    return load_sensor(kind, name)


def twins(gps: str, imu: str) -> tuple[Twin, ...]:
    """Return the variants for lists of GPS and IMU models; see `sensor_names`.

    An unknown model is an error, and so is a variant in which both sensors are real.
    """
    from sim2real_eval.simulation.twin import REAL_SENSOR

    gps_names = sensor_names('gps', gps, JUDGED, several=True)
    imu_names = sensor_names('imu', imu, JUDGED, several=True)
    for option, names in (('--gps', gps_names), ('--imu', imu_names)):
        if not names:
            raise ParameterError(option, '', 'is empty; must name one or more models')
    if REAL_SENSOR in gps_names and REAL_SENSOR in imu_names:
        problem = 'cannot both be real; give a model of one or both'
        raise ParameterError('--gps, --imu', '', problem)
    gps_labels, imu_labels = _labels(gps_names), _labels(imu_names)
    result = []
    for gps_name, gps_label in zip(gps_names, gps_labels, strict=True):
        for imu_name, imu_label in zip(imu_names, imu_labels, strict=True):
            pair = ((gps_name, gps_label), (imu_name, imu_label))
            labels = [label for name, label in pair if name != REAL_SENSOR]
            phrased = ['gps', 'imu']
            if len(imu_names) == 1 and gps_name != REAL_SENSOR:
                # Labels omit a model that all variants share.
                labels, phrased = labels[:1], ['gps']
            named = {'gps': gps_name, 'imu': imu_name}
            twin = named_twin('+'.join(labels), named, phrased)
            shared = imu_label if len(imu_names) == 1 and imu_name != REAL_SENSOR else ''
            result.append(dataclasses.replace(twin, shared_imu=shared))
    return _distinct(result)


def single_sensors(gps: str, imu: str, mag: str = '', camera: str = '') -> tuple[Twin, ...]:
    """Return a variant per IMU, GPS, magnetometer and camera model, with only that sensor.

    Signals depend only on the model of their own sensor; see `twins`. If two kinds have models of
    the same name, the labels end with the kind.
    """
    from sim2real_eval.simulation.twin import REAL_SENSOR

    lists = {'imu': imu, 'gps': gps, 'mag': mag, 'camera': camera}
    named = {
        kind: [
            name
            for name in sensor_names(kind, text, several=True)
            if name not in (REAL_SENSOR, NONE)
        ]
        for kind, text in lists.items()
    }
    if not any(named.values()):
        problem = 'are all real or none; give a model of one or more'
        raise ParameterError(', '.join(f'--{kind}' for kind in lists), '', problem)
    labels = {kind: _labels(model_names) for kind, model_names in named.items()}
    everything = [label for kind_labels in labels.values() for label in kind_labels]
    result = []
    for kind, model_names in named.items():
        for name, model_label in zip(model_names, labels[kind], strict=True):
            alone = everything.count(model_label) == labels[kind].count(model_label)
            label = model_label if alone else f'{model_label}_{kind}'
            result.append(named_twin(label, {kind: name}))
    return _distinct(result)


def named_twin(label: str, names: Mapping[str, str], phrased: Collection[str] = ()) -> Twin:
    """Return the variant with models of some kinds of sensor; the other sensors stay real.

    Its phrase describes the kinds in `phrased`.
    """
    from sim2real_eval.simulation.twin import Twin
    from sim_sensors.sensor.catalogue import KINDS

    models = {kind: load_sensor(kind, name) for kind, name in names.items()}
    models = {kind: model for kind, model in models.items() if model is not None}
    phrases = [KINDS.get(kind).phrase(names[kind]) for kind in models if kind in phrased]
    return Twin(
        label,
        gps=models.pop('gps', None),
        imu=models.pop('imu', None),
        others=models,
        phrase='; '.join(phrases),
    )


def _labels(models: Sequence[str]) -> list[str]:
    """Return labels: the name of a preset or file, with the folder for files of equal name."""
    from sim2real_eval.simulation.twin import REAL_SENSOR
    from sim_sensors.core.registry import is_in_file

    stems = [Path(name).stem for name in models]
    labels = []
    for name, stem in zip(models, stems, strict=True):
        path = Path(name)
        folder = path.resolve().parent.name
        if is_in_file(name):
            labels.append(name.rpartition(':')[2])
        elif path.suffix not in ('.yaml', '.yml'):
            labels.append(stem.replace(':', '_'))
        elif stem in ('imu', 'gps') and folder not in ('', REAL_SENSOR):
            # `allan` and `characterize` always write files of these names.
            labels.append(folder)
        else:
            labels.append(f'{folder}_{stem}' if stems.count(stem) > 1 else stem)
    return labels


def _distinct(result: Sequence[Twin]) -> tuple[Twin, ...]:
    from sim2real_eval.simulation.twin import REAL_SENSOR

    labels = [twin.label for twin in result]
    for label in labels:
        if label == REAL_SENSOR:
            raise ParameterError(
                'models', label, 'is the name of the real sensors; give the file another name'
            )
        if labels.count(label) > 1:
            raise ParameterError(
                'models', label, 'is the name of several variants; give the files other names'
            )
    return tuple(result)


# Options.


def other_kinds() -> list[str]:
    """Return the kinds of sensors other than IMU and GPS."""
    from sim_sensors.sensor.catalogue import KINDS

    return [name for name in KINDS.names() if name not in ('imu', 'gps')]


def add_other_sensors(
    parser: argparse.ArgumentParser, *, world: str, origin: str, words: str, default: str
) -> None:
    """Add --world, --origin and an option for each of `other_kinds`.

    `words` are those that the verb accepts beside a name or a file.
    """
    for kind in other_kinds():
        place = ', needs a --world with landmarks or tags' if kind == 'camera' else ''
        parser.add_argument(
            f'--{kind}',
            metavar='MODEL',
            help=f'{_TITLES.get(kind, kind)}: {words}, name or file{place} (default: {default})',
        )
    parser.add_argument(
        '--world',
        metavar='WORLD',
        help=f'world or file: gravity, magnetic field, dipoles, landmarks and tags, {world}',
    )
    meaning = f'{origin}; WGS84 degrees and m, such as -33.86,151.21'
    parser.add_argument(_ORIGIN, metavar='LAT,LON[,ALT]', help=meaning)


def surroundings(
    options: argparse.Namespace, refused: Mapping[str, str]
) -> tuple[LocalFrame | None, World | None, dict[str, Any]]:
    """Return the values of the options of `add_other_sensors`.

    They are the origin, the world, and the models by kind of sensor for `Twin.others`. An origin
    that is not two or three numbers, an unknown world or model, or a camera that has nothing to
    see is an error. `refused` are words as for `sensor_names`.
    """
    from sim_sensors.camera.camera import Scene

    origin, world = _origin_of(options.origin), world_of(options)
    named = {kind: name for kind in other_kinds() if (name := getattr(options, kind))}
    loaded = {kind: load_single(kind, name, refused) for kind, name in named.items()}
    models = {kind: model for kind, model in loaded.items() if model is not None}
    if 'camera' in models and (world is None or not len(Scene.from_world(world))):
        problem = 'needs --world with landmarks, chessboards or tags'
        raise ParameterError('--camera', '', problem)
    return origin, world, models


def _origin_of(text: str | None) -> LocalFrame | None:
    if text is None:
        return None
    from sim_sensors.world.geodesy import LocalFrame

    values = [parse_number(part) for part in text.split(',')]
    if len(values) not in (2, 3) or None in values:
        raise ParameterError(
            _ORIGIN, '', f'{text!r} is not allowed; must be latitude,longitude or '
            'latitude,longitude,altitude in degrees and m'
        )  # fmt: skip
    names = ('latitude_deg', 'longitude_deg', 'altitude_m')
    return LocalFrame.from_mapping(dict(zip(names, values, strict=False)), _ORIGIN)


def add_sensor_set(parser: argparse._ActionsContainer, more: str = '') -> None:
    """Add --set for parameters of sensor models; `more` describes what else it can set."""
    meaning = f'{more}parameter of all simulated sensors of a kind, such as gps.rate=5'
    add_list(parser, '--set', 'KEY=VALUE', meaning)


def sensor_settings(texts: Sequence[str]) -> dict[str, object]:
    """Return the values of --set by kind and parameter, such as `gps.rate`."""
    settings: dict[str, object] = {}
    for key, value in map(key_value, texts):
        if key in settings:
            raise ParameterError('--set', key, 'is given twice; must be given once')
        settings[key] = value
    return settings


def set_parameters(twins: Sequence[Twin], texts: Sequence[str]) -> tuple[Twin, ...]:
    """Return variants with the parameters in --set; see `variants.set_parameters`."""
    if not texts:
        return tuple(twins)
    from sim2real_eval.study import variants

    return variants.set_parameters(twins, sensor_settings(texts), '--set')
