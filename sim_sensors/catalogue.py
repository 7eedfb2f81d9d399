# SPDX-License-Identifier: Apache-2.0
"""Sensor models by name: the presets in `config/` and the user's own files of the same form.

A file is one model: the key `model` names its equations, the other keys its parameters. Parameters
that are not given take the defaults of the model.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from sim_sensors.errors import ParameterError
from sim_sensors.gps import GPS_MODELS, GpsModel
from sim_sensors.imu import ImuModel
from sim_sensors.imu_models import IMU_MODELS
from sim_sensors.parameters import Parameters
from sim_sensors.resources import config_names, config_path
from sim_sensors.variants import from_variant
from sim_sensors.yaml_file import read_yaml_mapping

__all__ = ['load_gps', 'load_imu', 'names']

P = TypeVar('P', bound=Parameters)


def load_imu(name_or_path: str | Path) -> ImuModel:
    """Return an IMU model by the name of a preset or by the path of a YAML file.

    Raises
    ------
    ParameterError
        When there is no such preset, or the file is unreadable or wrong.

    Examples
    --------
    >>> load_imu('chrono').rate
    100.0
    """
    return _load('imu', IMU_MODELS, name_or_path)


def load_gps(name_or_path: str | Path) -> GpsModel:
    """Return a GPS model by the name of a preset or by the path of a YAML file.

    Raises
    ------
    ParameterError
        When there is no such preset, or the file is unreadable or wrong.

    Examples
    --------
    >>> load_gps('ch_gauss').noise.std
    (0.03, 0.03, 0.03)
    """
    return _load('gps', GPS_MODELS, name_or_path)


def names(kind: str) -> list[str]:
    """Return the names of the presets of a kind of sensor, `imu` or `gps`, sorted."""
    return config_names(kind)


def _load(kind: str, models: Mapping[str, type[P]], name_or_path: str | Path) -> P:
    path = _path(kind, name_or_path)
    return from_variant(models, read_yaml_mapping(path), str(path))


def _path(kind: str, name_or_path: str | Path) -> Path:
    """Path of a preset, or the path given: one that ends in .yaml or .yml or has a folder."""
    given = Path(name_or_path)
    if given.suffix in ('.yaml', '.yml') or len(given.parts) > 1:
        return given
    name = str(name_or_path)
    known = names(kind)
    if name in known:
        return config_path(kind, f'{name}.yaml')
    near = difflib.get_close_matches(name, known, 1)
    hint = f' (did you mean {near[0]}?)' if near else ''
    raise ParameterError(
        f'{kind} model',
        '',
        f'{name!r} is unknown{hint}; must be one of {", ".join(known)}, or a path of a YAML file',
    )
