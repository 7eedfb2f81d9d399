# SPDX-License-Identifier: Apache-2.0
"""Arguments for sensors beside IMU and GPS, and the world that they are in."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from sim_sensors.errors import ParameterError

if TYPE_CHECKING:
    from sim_sensors.camera import CameraModel
    from sim_sensors.world import World

__all__ = ['OTHER_SENSORS', 'add_other_sensors', 'other_sensors', 'world_of']

OTHER_SENSORS = ('mag', 'camera', 'wheels', 'vision')
"""Destinations of the options, as a `Twin` names the sensors."""


def add_other_sensors(parser: argparse.ArgumentParser, *, world: str) -> None:
    """Add --mag, --camera, --wheels, --vision and --world; `world` says what is default."""
    for name, text in (
        ('mag', 'magnetometer model or file (default: none is simulated; a recorded one stays)'),
        ('camera', 'camera model or file, in a --world with something to see (default: none)'),
        ('wheels', 'wheel odometry model or file (default: none is simulated; a recorded one '
         'stays)'),
        ('vision', 'model or file of poses from the tags of --world (default: none is simulated)'),
    ):  # fmt: skip
        parser.add_argument(f'--{name}', metavar='MODEL', help=text)
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
    from sim_sensors.world_file import load_world

    return load_world(options.world) if options.world else None


def other_sensors(options: argparse.Namespace, world: World | None) -> dict[str, Any]:
    """Return the models that were asked for, None for the others, by their name in a `Twin`.

    Raises
    ------
    Sim2RealError
        For an unknown model or a wrong file, or a camera that has nothing to see.
    """
    from sim_sensors.catalogue import load_mag, load_vision, load_wheels

    return {
        'mag': load_mag(options.mag) if options.mag else None,
        'camera': _camera(options, world),
        'wheels': load_wheels(options.wheels) if options.wheels else None,
        'vision': load_vision(options.vision) if options.vision else None,
    }


def _camera(options: argparse.Namespace, world: World | None) -> CameraModel | None:
    from sim_sensors.catalogue import load_camera
    from sim_sensors.scene import Scene

    if not options.camera:
        return None
    if world is None or not len(Scene.of(world)):
        raise ParameterError(
            '--camera',
            '',
            'sees nothing; must be given a --world with landmarks, chessboards or tags',
        )
    return load_camera(options.camera)
