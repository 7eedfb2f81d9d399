# SPDX-License-Identifier: Apache-2.0
"""Options of the verbs that analyse an IMU at rest."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim2real_eval.characterization.options import TableOptions
from sim2real_eval.cli.options import OptionSet
from sim_sensors.core.errors import ParameterError

if TYPE_CHECKING:
    from sim_sensors.world.geodesy import LocalFrame
    from sim_sensors.world.world import World


_UNITS = {'gyroscope_unit': '--gyro-unit', 'accelerometer_unit': '--accel-unit'}
UNITS = OptionSet(TableOptions, **_UNITS)
TABLE = OptionSet(TableOptions, 'rate', **_UNITS)
_TITLES = {'mag': 'magnetometer', 'wheels': 'wheel odometry', 'vision': 'vision pose'}


def add_motion(parser: argparse._ActionsContainer) -> None:
    """Add --motion."""
    parser.add_argument(
        '--motion',
        choices=('reject', 'keep'),
        default='reject',
        help='reject: analyse the longest standstill of the IMU only (default); keep: all of it',
    )


def given_once(recordings: Sequence[str]) -> None:
    """Refuse a recording that is named twice: it would count as two that agree.

    Raises
    ------
    ParameterError
    """
    places = [Path(one).resolve() for one in recordings]
    for one, place in zip(recordings, places, strict=True):
        if places.count(place) > 1:
            raise ParameterError('recordings', one, 'is given twice; must be given once')


# Arguments for sensors beside IMU and GPS, and the world that they are in.


def other_kinds() -> list[str]:
    """Return the names of the kinds that every verb takes alike: all but IMU and GPS."""
    from sim_sensors.sensor.catalogue import KINDS

    return [name for name in KINDS.names() if name not in ('imu', 'gps')]


def add_other_sensors(parser: argparse.ArgumentParser, *, world: str) -> None:
    """Add an option for each of `other_kinds` and --world; `world` says what is default."""
    for kind in other_kinds():
        place = ', in a --world with something to see' if kind == 'camera' else ''
        parser.add_argument(
            f'--{kind}',
            metavar='MODEL',
            help=f'{_TITLES.get(kind, kind)} model or file{place} (default: none is simulated; '
            'a recorded one stays)',
        )
    parser.add_argument(
        '--world',
        metavar='WORLD',
        help=f'world or file: gravity, magnetic field, dipoles, what is seen, {world}',
    )


def world_of(options: argparse.Namespace) -> World | None:
    """Return the world of --world.

    Raises
    ------
    Sim2RealError
        When there is none of that name, or its file is wrong.
    """
    from sim_sensors.world.world import load_world

    return load_world(options.world) if options.world else None


def other_sensors(options: argparse.Namespace, world: World | None) -> dict[str, Any]:
    """Return the models that were asked for by kind, for `Twin.others`.

    Raises
    ------
    Sim2RealError
        For an unknown model or a wrong file, or a camera that has nothing to see.
    """
    from sim_sensors.camera.scene import Scene
    from sim_sensors.sensor.catalogue import KINDS

    chosen = {kind: name for kind in other_kinds() if (name := getattr(options, kind))}
    if options.camera and (world is None or not len(Scene.of(world))):
        raise ParameterError(
            '--camera',
            '',
            'sees nothing; must be given a --world with landmarks, chessboards or tags',
        )
    return {kind: KINDS.get(kind).load(name) for kind, name in chosen.items()}


# Parameters of a motion on the command line, for every verb that simulates one.


def add_set(parser: argparse._ActionsContainer) -> None:
    """Add --set."""
    parser.add_argument(
        '--set',
        action='append',
        default=[],
        metavar='KEY=VALUE',
        help='parameter of an analytic motion; repeatable',
    )


def motion_parameters(options: argparse.Namespace) -> dict[str, object]:
    """Return the values of --set by their keys.

    Raises
    ------
    ParameterError
        For a text that is no KEY=VALUE, and for the duration, which has an option of its own.
    """
    parameters = dict(_key_value(text) for text in options.set)
    if 'duration' in parameters:
        raise ParameterError('--set', 'duration', 'is not set here but with --duration')
    return parameters


def _key_value(text: str) -> tuple[str, object]:
    import yaml

    key, equals, value = text.partition('=')
    if not equals:
        raise ParameterError('--set', '', f'{text!r} is not allowed; must be KEY=VALUE')
    try:
        return key, yaml.safe_load(value)
    except yaml.YAMLError:
        return key, value


# `--origin`: where on the Earth a simulated motion takes place.

_FLAG = '--origin'


def add_origin(parser: argparse.ArgumentParser, what: str) -> None:
    """Add --origin; `what` says what lies there, and where it lies without."""
    parser.add_argument(
        _FLAG, metavar='LAT,LON[,ALT]', help=f'{what}; WGS84 degrees and m, such as -33.86,151.21'
    )


def origin_of(options: argparse.Namespace) -> LocalFrame | None:
    """Return the place that was given, if one was.

    Raises
    ------
    ParameterError
        When it is not two or three numbers, or none on the Earth.
    """
    text: str | None = options.origin
    if text is None:
        return None
    from sim_sensors.world.geodesy import LocalFrame

    parts = text.split(',')
    try:
        values = [float(part) for part in parts]
    except ValueError:
        values = []
    if len(values) not in (2, 3):
        raise ParameterError(
            _FLAG, '', f'{text!r} is not allowed; must be latitude,longitude or '
            'latitude,longitude,altitude in degrees and m'
        )  # fmt: skip
    names = ('latitude_deg', 'longitude_deg', 'altitude_m')
    return LocalFrame.from_mapping(dict(zip(names, values, strict=False)), _FLAG)
