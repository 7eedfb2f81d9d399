# SPDX-License-Identifier: Apache-2.0
"""What a sensor node is told besides the parameters of its model."""

from __future__ import annotations

import dataclasses
from typing import Any

from sim_sensors.core.parameters import Parameters, parameter
from sim_sensors.core.seeding import run_label
from sim_sensors.world.geodesy import DEFAULT_ORIGIN, STANDARD_GRAVITY, LocalFrame

__all__ = [
    'CameraSettings',
    'Datum',
    'GpsSettings',
    'ImuSettings',
    'MagnetometerSettings',
    'SensorSettings',
    'VisionSettings',
    'WheelSettings',
    'diagnostics_period',
]


def diagnostics_period() -> Any:
    """Declare how often a node tells about its health."""
    return parameter(
        1.0,
        's',
        'Wall time from one diagnostic message to the next.',
        minimum=0.01,
        maximum=1e6,
        read_only=True,
    )


def _model(what: str, preset: str) -> Any:
    """Declare which model a node has."""
    return parameter(
        preset, '', f'{what} model: name of a preset, or path of a YAML file.', read_only=True
    )


def _label(sensor: str) -> Any:
    """Declare the label of the sensor in its random streams."""
    return parameter(
        sensor, '', 'Label of the sensor; another one draws other noise.', read_only=True
    )


def _world(what: str, preset: str) -> Any:
    """Declare which world there is around the sensor."""
    return parameter(
        preset, '', f'World {what}: name of a preset, or path of a YAML file.', read_only=True
    )


@dataclasses.dataclass(frozen=True)
class SensorSettings(Parameters):
    """What all sensor nodes are told."""

    model: str = _model('Sensor', '')
    seed: int = parameter(0, '1', 'Seed of the study.', minimum=0, read_only=True)
    run: str = parameter(
        run_label('recording', 1, 'run_1'),
        '',
        'Label of the run; another one draws other noise.',
        read_only=True,
    )
    sensor: str = _label('')
    velocity: str = parameter(
        'twist',
        '',
        'Where velocity comes from: twist: that of the odometry; position: its derivative.',
        choices=('twist', 'position'),
        read_only=True,
    )
    gap_factor: float = parameter(
        1.8,
        '1',
        'An odometry interval above this many median ones is reported as a gap.',
        minimum=1.0,
        minimum_excluded=True,
        read_only=True,
    )
    longest_gap: float = parameter(
        60.0,
        's',
        'A gap up to this is bridged by interpolation; after a longer one the sensor starts anew.',
        minimum=0.0,
        minimum_excluded=True,
        maximum=1e6,
        read_only=True,
    )
    start_ns: int = parameter(
        0,
        'ns',
        'First stamp of the sensor; stamps before the first odometry are left out. '
        '0: the stamp of the first odometry.',
        minimum=0.0,
        read_only=True,
    )
    diagnostics_period: float = diagnostics_period()


@dataclasses.dataclass(frozen=True)
class ImuSettings(SensorSettings):
    """What an IMU node is told."""

    model: str = _model('IMU', 'chrono')
    sensor: str = _label('imu')
    gravity: float = parameter(
        STANDARD_GRAVITY, 'm/s^2', 'Gravity of the simulated world.', minimum=0.0
    )


@dataclasses.dataclass(frozen=True)
class MagnetometerSettings(SensorSettings):
    """What a magnetometer node is told."""

    model: str = _model('Magnetometer', 'xsens_mtx')
    sensor: str = _label('mag')
    world: str = _world('whose field is measured, its origin that of the odometry', 'default')


@dataclasses.dataclass(frozen=True)
class CameraSettings(SensorSettings):
    """What a camera node is told."""

    model: str = _model('Camera', 'webcam_vga')
    sensor: str = _label('camera')
    world: str = _world('that is seen, its coordinates those of the odometry', 'chessboard')
    world_frame: str = parameter(
        'map', '', 'Frame of the poses: that of the world and of the odometry.', read_only=True
    )


@dataclasses.dataclass(frozen=True)
class WheelSettings(SensorSettings):
    """What a wheel odometry node is told."""

    model: str = _model('Wheel odometry', 'swerve')
    sensor: str = _label('wheels')


@dataclasses.dataclass(frozen=True)
class VisionSettings(SensorSettings):
    """What a vision node is told."""

    model: str = _model('Vision pose', 'tags')
    sensor: str = _label('vision')
    world: str = _world('whose tags are seen, its origin that of the odometry', 'tag_ring')


@dataclasses.dataclass(frozen=True)
class Datum(LocalFrame):
    """Where on the Earth the odometry's frame is; the default is that of batch runs."""

    latitude_deg: float = parameter(
        DEFAULT_ORIGIN.latitude_deg,
        'deg',
        'WGS84 latitude of the origin of the odometry.',
        minimum=-90.0,
        maximum=90.0,
    )
    longitude_deg: float = parameter(
        DEFAULT_ORIGIN.longitude_deg,
        'deg',
        'WGS84 longitude of the origin of the odometry.',
        minimum=-180.0,
        maximum=180.0,
    )
    altitude_m: float = parameter(
        DEFAULT_ORIGIN.altitude_m, 'm', 'Height of that origin above the WGS84 ellipsoid.'
    )


@dataclasses.dataclass(frozen=True)
class GpsSettings(SensorSettings):
    """What a GPS node is told."""

    model: str = _model('GPS', 'ch_gauss')
    sensor: str = _label('gps')
    datum: Datum = dataclasses.field(default_factory=Datum)
