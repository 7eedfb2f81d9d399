# SPDX-License-Identifier: Apache-2.0
"""Sensor models by name: the presets in `config/` and the user's own files of the same form.

A file is one model: the key `model` names its equations, the other keys its parameters. Parameters
that are not given take the defaults of the model.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from sim_sensors.camera import CAMERA_MODELS, CameraModel
from sim_sensors.errors import ParameterError
from sim_sensors.gps import GPS_MODELS, GpsModel
from sim_sensors.imu import ImuModel
from sim_sensors.imu_models import IMU_MODELS
from sim_sensors.magnetometer import MAG_MODELS, Magnetometer
from sim_sensors.parameters import Parameters
from sim_sensors.resources import config_names, config_path
from sim_sensors.upstream import Upstream
from sim_sensors.variants import from_variant, to_variant
from sim_sensors.vision_pose import VISION_MODELS, VisionModel
from sim_sensors.wheel_odometry import WHEEL_MODELS, WheelOdometryModel
from sim_sensors.yaml_file import read_yaml_mapping

__all__ = [
    'UPSTREAM',
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

_A = {
    'gps': 'a GPS',
    'imu': 'an IMU',
    'mag': 'a magnetometer',
    'camera': 'a camera',
    'vision': 'a vision pose',
    'wheels': 'a wheel odometry',
}
_MODELS: Mapping[str, Mapping[str, type[Parameters]]] = {
    'gps': GPS_MODELS,
    'imu': IMU_MODELS,
    'mag': MAG_MODELS,
    'camera': CAMERA_MODELS,
    'vision': VISION_MODELS,
    'wheels': WHEEL_MODELS,
}
_KALIBR = {'gyroscope_noise_density', 'accelerometer_noise_density', 'imu0'}

P = TypeVar('P', bound=Parameters)


def load_imu(name_or_path: str | Path) -> ImuModel:
    """Return an IMU model by the name of a preset or by the path of a YAML file.

    With `:as_upstream` behind it, `variant` is that instead of what the file says.

    Raises
    ------
    ParameterError
        When there is no such preset, or the file is unreadable or wrong, or no such variant.

    Examples
    --------
    >>> load_imu('chrono').rate
    100.0
    """
    return _load('imu', IMU_MODELS, name_or_path)


def load_gps(name_or_path: str | Path) -> GpsModel:
    """Return a GPS model by the name of a preset or by the path of a YAML file.

    With `:as_upstream` behind it, `variant` is that instead of what the file says.

    Raises
    ------
    ParameterError
        When there is no such preset, or the file is unreadable or wrong, or no such variant.

    Examples
    --------
    >>> load_gps('ch_gauss').noise.std
    (0.03, 0.03, 0.03)
    """
    return _load('gps', GPS_MODELS, name_or_path)


def load_mag(name_or_path: str | Path) -> Magnetometer:
    """Return a magnetometer model by the name of a preset or by the path of a YAML file.

    Raises
    ------
    ParameterError
        When there is no such preset, or the file is unreadable or wrong.

    Examples
    --------
    >>> load_mag('xsens_mtx').rate
    100.0
    """
    return _load('mag', MAG_MODELS, name_or_path)


def load_camera(name_or_path: str | Path) -> CameraModel:
    """Return a camera model by the name of a preset or by the path of a YAML file.

    Raises
    ------
    ParameterError
        When there is no such preset, or the file is unreadable or wrong.

    Examples
    --------
    >>> load_camera('webcam_vga').rate
    30.0
    """
    return _load('camera', CAMERA_MODELS, name_or_path)


def load_wheels(name_or_path: str | Path) -> WheelOdometryModel:
    """Return a wheel odometry model by the name of a preset or by the path of a YAML file.

    With `:as_upstream` behind it, `variant` is that instead of what the file says.

    Raises
    ------
    ParameterError
        When there is no such preset, or the file is unreadable or wrong, or no such variant.

    Examples
    --------
    >>> load_wheels('frc_swerve').noise.std
    4.0
    """
    return _load('wheels', WHEEL_MODELS, name_or_path)


def load_vision(name_or_path: str | Path) -> VisionModel:
    """Return a vision pose model by the name of a preset or by the path of a YAML file.

    With `:as_upstream` behind it, `variant` is that instead of what the file says.

    Raises
    ------
    ParameterError
        When there is no such preset, or the file is unreadable or wrong, or no such variant.

    Examples
    --------
    >>> load_vision('frc_2024').gate.max_distance
    7.0
    """
    return _load('vision', VISION_MODELS, name_or_path)


def names(kind: str) -> list[str]:
    """Return the names of the presets of a kind of sensor, such as `imu` or `wheels`, sorted."""
    return config_names(kind)


def _load(kind: str, models: Mapping[str, type[P]], name_or_path: str | Path) -> P:
    text = str(name_or_path)
    if text.endswith(UPSTREAM):
        plain = _load(kind, models, text.removesuffix(UPSTREAM))
        if not has_upstream(plain):
            raise ParameterError(text, 'variant', 'the model has none; must be given without it')
        return from_variant(models, _as_upstream(to_variant(plain)), text)
    path = _path(kind, name_or_path)
    mapping = read_yaml_mapping(path)
    _check_kind(kind, mapping, str(path))
    return from_variant(models, mapping, str(path))


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


def _check_kind(kind: str, mapping: Mapping[str, object], where: str) -> None:
    """Raise ParameterError for a file of another sensor, or of another program."""
    if 'model' not in mapping and not _KALIBR.isdisjoint(mapping):
        raise ParameterError(where, '', f'is a Kalibr file; take the {kind}.yaml beside it')
    model = mapping.get('model')
    for other, models in _MODELS.items():
        if other != kind and isinstance(model, str) and model in models:
            raise ParameterError(
                where, 'model', f'{model!r} is {_A[other]} model; must be {_A[kind]} model'
            )


def _path(kind: str, name_or_path: str | Path) -> Path:
    """Path of a preset, or the path given: one that ends in .yaml or .yml or has a folder."""
    given = Path(name_or_path)
    if given.suffix == '.sdf':
        raise ParameterError(str(given), '', f'is an SDF file; take the {kind}.yaml beside it')
    if given.suffix in ('.yaml', '.yml') or len(given.parts) > 1:
        return given
    name = str(name_or_path)
    known = names(kind)
    if name in known:
        return config_path(kind, f'{name}.yaml')
    for other in _A:
        if name in names(other):
            raise ParameterError(
                f'{kind} model',
                '',
                f'{name!r} is {_A[other]} model; must be one of {", ".join(known)}, or a path of '
                'a YAML file',
            )
    near = difflib.get_close_matches(name, known, 1)
    hint = f' (did you mean {near[0]}?)' if near else ''
    raise ParameterError(
        f'{kind} model',
        '',
        f'{name!r} is unknown{hint}; must be one of {", ".join(known)}, or a path of a YAML file',
    )
