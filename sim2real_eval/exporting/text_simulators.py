# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""IMUs of simulators and tools with YAML or JSON files: Kalibr, AirSim and CARLA."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from sim_sensors.core.config_files import parse_yaml
from sim_sensors.core.errors import ParameterError
from sim_sensors.imu.chain import ErrorChain
from sim_sensors.imu.imu import ImuModel
from sim_sensors.world.geodesy import STANDARD_GRAVITY
from .imu_simulator import KeyedSimulator, Keys, Numbers, as_text, number_in, one_number
from .law_fit import QUANTITIES, Law

_DEGREE = math.pi / 180.0
_HOUR = 3600.0


def parse_json(text: str, where: str) -> Any:
    """Return what a JSON text says; ParameterError if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ParameterError(where, '', f'is no JSON: {error}') from None


def mappings_in(tree: Any) -> Iterator[Mapping[str, Any]]:
    """Yield all mappings of a tree of mappings and lists, the outer ones first."""
    if isinstance(tree, Mapping):
        yield tree
        tree = list(tree.values())
    if isinstance(tree, list):
        for entry in tree:
            yield from mappings_in(entry)


class Kalibr(KeyedSimulator):
    """imu.yaml of Kalibr: white noise and a random walk."""

    name = 'kalibr'
    title = 'Kalibr'
    mark = '_noise_density'
    needs_walk = True
    kind = 'chain'
    suffix = '.yaml'
    laws: ClassVar[Mapping[str, Law]] = dict.fromkeys(QUANTITIES, Law('walk', per_axis=False))
    keys: ClassVar[Keys] = {
        quantity: {
            'noise_density': (f'{quantity}_noise_density', 1.0),
            'random_walk': (f'{quantity}_random_walk', 1.0),
        }
        for quantity in QUANTITIES
    }
    remarks = (
        'One number for three axes, the root mean square. Kalibr advises to inflate both for '
        'cheap sensors.',
        'The random walk stands for flicker and bias drift too, so it may exceed K of all axes.',
    )

    def __init__(self, topic: str = '/imu/data') -> None:
        self._topic = topic

    def triad(self, quantity: str, part: ErrorChain, rate: float) -> dict[str, Any]:
        """Return the densities of a triad, one number for three axes."""
        return {
            name: (one_number(getattr(part, name)),) * 3
            for name in ('noise_density', 'random_walk')
        }

    def errors(self, quantity: str, model: ImuModel) -> dict[str, Any]:
        """Return the errors of a triad."""
        part = getattr(model, quantity)
        return {'noise_density': part.noise_density, 'random_walk': part.random_walk}

    def write(self, model: ImuModel) -> str:
        """Return the file."""
        lines = []
        for quantity, values in self.values(model).items():
            unit = 'rad/s' if quantity == 'gyroscope' else 'm/s^2'
            for (key, value), per in zip(
                values.items(), ('/sqrt(Hz)', '/s/sqrt(Hz)'), strict=True
            ):
                number = value[0] if isinstance(value, tuple) else value
                if any(getattr(model, quantity).noise_density):
                    lines.append(f'{key}: {number:.6e}  # {unit}{per}')
        lines += [f'rostopic: {self._topic}', f'update_rate: {as_text(model.rate)}  # Hz']
        return '\n'.join(lines) + '\n'

    def parse(self, text: str, where: str) -> dict[str, Any]:
        """Return the densities of the first IMU of imu.yaml or camchain-imucam.yaml."""
        tree = parse_yaml(text, where)
        marks = [f'{quantity}_noise_density' for quantity in QUANTITIES]
        sensors = [
            entry for entry in mappings_in(tree) if any(key in entry for key in marks)
        ]  # fmt: skip
        if not sensors:
            raise ParameterError(where, marks[0], 'is missing')
        first = sensors[0]
        values = {
            quantity: {key: (number,) * 3 for key, number in numbers.items()}
            for quantity, numbers in self.numbers_of(first, where).items()
        }
        rate = number_in(str(first.get('update_rate', 100.0)), where, 'update_rate')
        return {'rate': rate, **self.parameters(values, rate)}


class AirSim(KeyedSimulator):
    """settings.json of AirSim."""

    name = 'airsim'
    title = 'AirSim'
    mark = '"SensorType"'
    kind = 'airsim'
    preset = 'airsim'
    rate = 333.333
    is_rate_fixed = True
    suffix = '.json'
    laws: ClassVar[Mapping[str, Law]] = dict.fromkeys(QUANTITIES, Law('walk', per_axis=False))
    keys: ClassVar[Keys] = {
        'gyroscope': {
            'angle_random_walk': ('AngularRandomWalk', _DEGREE / math.sqrt(_HOUR)),
            'bias_stability': ('GyroBiasStability', _DEGREE / _HOUR),
            'bias_time': ('GyroBiasStabilityTau', 1.0),
        },
        'accelerometer': {
            'velocity_random_walk': ('VelocityRandomWalk', 1e-3 * STANDARD_GRAVITY),
            'bias_stability': ('AccelBiasStability', 1e-6 * STANDARD_GRAVITY),
            'bias_time': ('AccelBiasStabilityTau', 1.0),
        },
    }
    _white: ClassVar[Mapping[str, str]] = {
        'gyroscope': 'angle_random_walk', 'accelerometer': 'velocity_random_walk',
    }  # fmt: skip
    _times: ClassVar[Mapping[str, float]] = {'gyroscope': 500.0, 'accelerometer': 800.0}
    remarks = (
        'The bias is a pure random walk: only GyroBiasStability / sqrt(GyroBiasStabilityTau) '
        'counts.',
        'The noise holds for readings of every tick of 3 ms. Readings at R Hz have the density '
        'times sqrt(333 / R), since AirSim keeps the latest tick.',
    )

    def triad(self, quantity: str, part: ErrorChain, rate: float) -> dict[str, Any]:
        """Return the parameters of a triad."""
        time = self._times[quantity]
        return {
            self._white[quantity]: one_number(part.noise_density),
            'bias_stability': one_number(part.random_walk) * math.sqrt(time),
            'bias_time': time,
        }

    def errors(self, quantity: str, model: ImuModel) -> dict[str, Any]:
        """Return the errors of a triad."""
        part = getattr(model, quantity)
        return {
            'noise_density': [getattr(part, self._white[quantity])] * 3,
            'random_walk': [part.bias_stability / math.sqrt(part.bias_time)] * 3,
        }

    def write(self, model: ImuModel) -> str:
        """Return the settings."""
        values = {
            key: value for part in self.values(model).values() for key, value in part.items()
        }
        imu = {'SensorType': 2, 'Enabled': True, **values}
        settings = {'SettingsVersion': 1.2, 'DefaultSensors': {'Imu': imu}}
        return json.dumps(settings, indent=2) + '\n'

    def parse(self, text: str, where: str) -> dict[str, Any]:
        """Return the parameters of the first sensor with SensorType 2."""
        sensors = [
            entry for entry in mappings_in(parse_json(text, where)) if entry.get('SensorType') == 2
        ]
        if not sensors:
            raise ParameterError(where, 'SensorType', 'of an IMU is missing; must be 2')
        values = self.numbers_of(sensors[0], where)
        rate = float(self.rate or 0.0)
        return {'rate': rate, **self.parameters(values, rate)}


class Carla(KeyedSimulator):
    """Attributes of CARLA's sensor.other.imu, as in objects.json of its ROS bridge."""

    name = 'carla'
    title = 'CARLA'
    mark = 'sensor.other.imu'
    kind = 'carla_imu'
    suffix = '.json'
    laws: ClassVar[Mapping[str, Law]] = {
        'gyroscope': Law(constant=True), 'accelerometer': Law(),
    }  # fmt: skip
    keys: ClassVar[Keys] = {
        'gyroscope': {'bias': ('noise_gyro_bias', 1.0), 'stddev': ('noise_gyro_stddev', 1.0)},
        'accelerometer': {'stddev': ('noise_accel_stddev', 1.0)},
    }
    remarks = (
        'The noise holds at the sensor_tick of the file, a multiple of the step of the world.',
        'The biases have the signs of CARLA, whose axes are left-handed: x and z are reversed.',
        'Blueprints take strings: blueprint.set_attribute("noise_gyro_stddev_x", "0.001").',
    )
    _left_handed: ClassVar[Mapping[str, tuple[int, int, int]]] = {'noise_gyro_bias': (-1, 1, -1)}

    def triad(self, quantity: str, part: ErrorChain, rate: float) -> dict[str, Any]:
        """Return the parameters of a triad."""
        noise = {'stddev': np.asarray(part.noise_density) * math.sqrt(rate)}
        return {'bias': part.constant_bias, **noise} if quantity == 'gyroscope' else noise

    def errors(self, quantity: str, model: ImuModel) -> dict[str, Any]:
        """Return the errors of a triad."""
        part = getattr(model, quantity)
        return {
            'noise_density': tuple(np.asarray(part.stddev) / math.sqrt(model.rate)),
            'constant_bias': getattr(part, 'bias', (0.0, 0.0, 0.0)),
        }

    def write(self, model: ImuModel) -> str:
        """Return the sensor."""
        sensor: dict[str, Any] = {
            'type': 'sensor.other.imu', 'id': 'imu', 'sensor_tick': 1.0 / model.rate,
        }  # fmt: skip
        for part in self.values(model).values():
            for key, value in part.items():
                for axis, number, sign in zip(
                    'xyz', np.broadcast_to(value, 3), self._left_handed.get(key, (1, 1, 1)),
                    strict=True,
                ):  # fmt: skip
                    sensor[f'{key}_{axis}'] = sign * float(number) + 0.0
        return json.dumps(sensor, indent=2) + '\n'

    def parse(self, text: str, where: str) -> dict[str, Any]:
        """Return the parameters of the first IMU of objects.json, or of one alone."""
        sensors = [
            entry for entry in mappings_in(parse_json(text, where))
            if entry.get('type') == 'sensor.other.imu'
        ]  # fmt: skip
        if not sensors:
            raise ParameterError(where, 'type', 'sensor.other.imu is missing')
        first = sensors[0]
        tick = number_in(str(first.get('sensor_tick', 0.05)), where, 'sensor_tick')
        rate = float(f'{1.0 / (tick or 0.05):.9g}')
        values: dict[str, dict[str, Numbers]] = {}
        for quantity, keys in self.keys.items():
            values[quantity] = {
                key: tuple(
                    sign * number_in(str(first.get(f'{key}_{axis}', 0.0)), where, f'{key}_{axis}')
                    for axis, sign in zip(
                        'xyz', self._left_handed.get(key, (1, 1, 1)), strict=True
                    )
                )
                for key, _ in keys.values()
            }
        return {'rate': rate, **self.parameters(values, rate)}
