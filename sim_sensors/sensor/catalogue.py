# SPDX-License-Identifier: Apache-2.0
"""Sensor models by name: the presets in `config/` and the user's own files of the same form.

A file is one model: the key `model` names its equations, the other keys its parameters. Parameters
that are not given take the defaults of the model.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

from sim_sensors.camera.camera import CAMERA_MODELS
from sim_sensors.core.config_files import config_names, config_path, read_yaml_mapping
from sim_sensors.core.errors import ParameterError, UnknownNameError, did_you_mean
from sim_sensors.core.parameters import Parameters, from_variant, to_variant
from sim_sensors.core.shared_parameters import Upstream
from sim_sensors.gps.gps import GPS_MODELS
from sim_sensors.imu.models import IMU_MODELS
from sim_sensors.magnetometer.magnetometer import MAG_MODELS
from sim_sensors.vision.vision_pose import VISION_MODELS
from sim_sensors.wheels.wheel_odometry import WHEEL_MODELS

__all__ = [
    'GPS',
    'IMU',
    'KINDS',
    'PAPER_MODELS',
    'UPSTREAM',
    'SensorKind',
    'has_upstream',
    'load_camera',
    'load_gps',
    'load_imu',
    'load_mag',
    'load_vision',
    'load_wheels',
    'names',
]

UPSTREAM = ':as_upstream'
"""Behind the name of a model: the same numbers with the defects of the original."""

PAPER_MODELS = ('ch_gauss', 'ch_rw', 'airsim', 'ch_gauss_airsim', 'ch_rw_airsim')
"""GPS models that the paper compares, in its order."""

_KALIBR = {'gyroscope_noise_density', 'accelerometer_noise_density', 'imu0'}

P = TypeVar('P', bound=Parameters)


@dataclasses.dataclass(frozen=True)
class SensorKind(Generic[P]):
    """A kind of sensor.

    Attributes
    ----------
    name : str
        That of its folder in `config/`.
    one : str
        What one is called, with its article.
    models : mapping
        Classes of its models by the name that the key `model` of a file gives.
    """

    name: str
    one: str
    models: Mapping[str, type[P]]

    def load(self, name_or_path: str | Path) -> P:
        """Return a model by the name of a preset or by the path of a YAML file.

        With `:as_upstream` behind it, `variant` is that instead of what the file says.

        Raises
        ------
        ParameterError
            When there is no such preset, or the file is unreadable or wrong, or no such variant.

        Examples
        --------
        >>> load_imu('chrono').rate
        100.0
        >>> load_gps('ch_gauss').noise.std
        (0.03, 0.03, 0.03)
        """
        text = str(name_or_path)
        if text.endswith(UPSTREAM):
            plain = self.load(text.removesuffix(UPSTREAM))
            if not has_upstream(plain):
                raise ParameterError(
                    text, 'variant', 'the model has none; must be given without it'
                )
            return from_variant(self.models, _as_upstream(to_variant(plain)), text)
        path = self._path(name_or_path)
        mapping = read_yaml_mapping(path)
        self._check(mapping, str(path))
        return from_variant(self.models, mapping, str(path))

    def _check(self, mapping: Mapping[str, object], where: str) -> None:
        """Raise ParameterError for a file of another sensor, or of another program."""
        if 'model' not in mapping and not _KALIBR.isdisjoint(mapping):
            raise ParameterError(
                where, '', f'is a Kalibr file; take the {self.name}.yaml beside it'
            )
        model = mapping.get('model')
        for other in KINDS.values():
            if other is not self and isinstance(model, str) and model in other.models:
                raise ParameterError(
                    where, 'model', f'{model!r} is {other.one} model; must be {self.one} model'
                )

    def _path(self, name_or_path: str | Path) -> Path:
        """Path of a preset, or the path given: one that ends in .yaml or .yml or has a folder."""
        given = Path(name_or_path)
        if given.suffix == '.sdf':
            raise ParameterError(
                str(given), '', f'is an SDF file; take the {self.name}.yaml beside it'
            )
        if given.suffix in ('.yaml', '.yml') or len(given.parts) > 1:
            return given
        name = str(name_or_path)
        known = names(self.name)
        if name in known:
            return config_path(self.name, f'{name}.yaml')
        problem = f'is unknown{did_you_mean(name, known)}'
        for other in KINDS.values():
            if name in names(other.name):
                problem = f'is {other.one} model'
                break
        raise UnknownNameError(
            f'{self.name} model',
            '',
            f'{name!r} {problem}; must be one of {", ".join(known)}, or a path of a YAML file',
        )


GPS = SensorKind('gps', 'a GPS', GPS_MODELS)
IMU = SensorKind('imu', 'an IMU', IMU_MODELS)
_MAG = SensorKind('mag', 'a magnetometer', MAG_MODELS)
_CAMERA = SensorKind('camera', 'a camera', CAMERA_MODELS)
_VISION = SensorKind('vision', 'a vision pose', VISION_MODELS)
_WHEELS = SensorKind('wheels', 'a wheel odometry', WHEEL_MODELS)

KINDS: Mapping[str, SensorKind[Any]] = {
    kind.name: kind for kind in (GPS, IMU, _MAG, _CAMERA, _VISION, _WHEELS)
}
"""All kinds of sensors by name."""

load_gps = GPS.load
load_imu = IMU.load
load_mag = _MAG.load
load_camera = _CAMERA.load
load_vision = _VISION.load
load_wheels = _WHEELS.load


def names(kind: str) -> list[str]:
    """Return the names of the presets of a kind of sensor, such as `imu` or `wheels`, sorted."""
    return config_names(kind)


def has_upstream(model: Parameters) -> bool:
    """Say whether a model or a part of it has a `variant` with the defects of its original."""
    if isinstance(model, Upstream) and model.has_defects:
        return True
    parts = [getattr(model, field.name) for field in dataclasses.fields(model)]
    return any(has_upstream(part) for part in parts if isinstance(part, Parameters))


def _as_upstream(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Return the mapping with every `variant` as upstream."""
    changed: dict[str, Any] = {}
    for key, value in mapping.items():
        if key == 'variant':
            changed[key] = 'as_upstream'
        else:
            changed[key] = _as_upstream(value) if isinstance(value, Mapping) else value
    return changed
