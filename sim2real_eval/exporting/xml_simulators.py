# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""IMUs of simulators with XML files: Gazebo, RotorS, PX4's and Hector's plugins, and MuJoCo."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from sim_sensors.core.errors import ParameterError
from sim_sensors.core.measurements import FloatArray
from sim_sensors.imu.chain import ErrorChain
from sim_sensors.imu.imu import ImuModel
from .imu_simulator import (
    ImuSimulator,
    KeyedSimulator,
    Keys,
    Numbers,
    as_text,
    driving_density,
    number_in,
    numbers_in,
    one_number,
    refuse_misspelt,
)
from .law_fit import QUANTITIES, Law

# Correlation time, s, from which on a drift is a walk for the lengths of record that are fitted.
_WALKS_FROM = 1000.0
_ELEMENTS = {'gyroscope': 'angular_velocity', 'accelerometer': 'linear_acceleration'}


def parse_xml(text: str, where: str) -> ET.Element:
    """Return the root of an XML text, which may be a part of a file; see ParameterError."""
    body = text.split('?>', 1)[1] if text.lstrip().startswith('<?xml') else text
    if '<!DOCTYPE' in body or '<!ENTITY' in body:
        raise ParameterError(where, '', 'has a document type, which is not read')
    try:
        return ET.fromstring(f'<parts>{body}</parts>')
    except ET.ParseError as error:
        raise ParameterError(where, '', f'is no XML: {error}') from None


def only(elements: Iterator[ET.Element], where: str, what: str) -> ET.Element:
    """Return the only element; ParameterError if there is none, or there are several."""
    matches = list(elements)
    if len(matches) != 1:
        problem = f'has {len(matches)} of {what}; must have one'
        raise ParameterError(where, '', problem)
    return matches[0]


def only_plugin(text: str, where: str, mark: str) -> ET.Element:
    """Return the only plugin of an XML text whose file name has a mark; see `only`."""
    plugins = parse_xml(text, where).iter('plugin')
    return only((plugin for plugin in plugins if mark in plugin.get('filename', '')), where, mark)


def _start_std(part: ErrorChain) -> FloatArray:
    """Return the standard deviation of the initial drift: the stationary one, or 0 for a walk.

    A very long correlation time stands for a random walk.
    """
    times = np.asarray(part.gauss_markov_time)
    return np.where(times < _WALKS_FROM, part.gauss_markov_std, 0.0)


class GazeboSdf(ImuSimulator):
    """Noise of an SDF sensor, as gz-sensors applies it."""

    name = 'sdf'
    title = 'Gazebo'
    mark = '<imu>'
    kind = 'gz_imu'
    suffix = '.sdf'
    laws: ClassVar[Mapping[str, Law]] = dict.fromkeys(
        QUANTITIES, Law('gauss_markov', constant=True, turn_on=True, rounding=True)
    )
    remarks = (
        'stddev holds at the update_rate of the file; change both together.',
        'Constant errors are in mean, because bias_mean gets a random sign and decays.',
        'A bias that comes back starts anywhere in its range, by bias_stddev, and not at 0.',
    )
    _names = (
        'mean', 'stddev', 'bias_mean', 'bias_stddev', 'dynamic_bias_stddev',
        'dynamic_bias_correlation_time', 'precision',
    )  # fmt: skip

    def triad(self, quantity: str, part: ErrorChain, rate: float) -> dict[str, Any]:
        """Return the noise block of each axis."""
        moves = np.asarray(part.gauss_markov_std) > 0.0
        return {
            'mean': part.constant_bias,
            'stddev': np.asarray(part.noise_density) * math.sqrt(rate),
            'bias_stddev': np.hypot(part.turn_on_std, _start_std(part)),
            'dynamic_bias_stddev': driving_density(part),
            'dynamic_bias_correlation_time': np.where(moves, part.gauss_markov_time, 0.0),
            'precision': part.quantisation,
        }

    def errors(self, quantity: str, model: ImuModel) -> dict[str, Any]:
        """Return the errors of a triad."""
        part = getattr(model, quantity)
        times = np.asarray(part.dynamic_bias_correlation_time)
        drift = part.dynamic_bias_stddev * np.sqrt(0.5 * times)
        start = np.hypot(part.bias_mean, part.bias_stddev)
        # What starts a bias that comes back is no bias of its own.
        alone = np.where(times < _WALKS_FROM, start**2 - drift**2, start**2)
        return {
            'constant_bias': part.mean,
            'noise_density': tuple(np.asarray(part.stddev) / math.sqrt(model.rate)),
            'turn_on_std': tuple(np.sqrt(np.where(alone > 1e-6 * start**2, alone, 0.0))),
            'gauss_markov_std': tuple(drift),
            'gauss_markov_time': tuple(np.where(times > 0.0, times, 100.0)),
            'quantisation': part.precision,
        }

    def write(self, model: ImuModel) -> str:
        """Return the <sensor> element."""
        lines = ['<!-- Noise of an IMU, written by sim2real export. -->']
        if any(any(getattr(model, quantity).mean) for quantity in QUANTITIES):
            lines.append(
                '<!-- mean: turn-on bias of the recorded day; other days have another. '
                'Set it to 0 for a sensor whose bias is removed at rest. -->'
            )
        lines += [
            '<sensor name="imu" type="imu">',
            '  <always_on>1</always_on>',
            f'  <update_rate>{as_text(model.rate)}</update_rate>',
            '  <imu>',
        ]
        for quantity, element in _ELEMENTS.items():
            part = getattr(model, quantity)
            lines.append(f'    <{element}>')
            for index, axis in enumerate('xyz'):
                lines += [f'      <{axis}>', '        <noise type="gaussian">']
                lines += [
                    f'          <{name}>{as_text(getattr(part, name)[index])}</{name}>'
                    for name in self._names
                    if getattr(part, name)[index] or name in ('mean', 'stddev')
                ]
                lines += ['        </noise>', f'      </{axis}>']
            lines.append(f'    </{element}>')
        return '\n'.join([*lines, '  </imu>', '</sensor>']) + '\n'

    def parse(self, text: str, where: str) -> dict[str, Any]:
        """Return the noise of the only IMU of an SDF file or of a part of one."""
        root = parse_xml(text, where)
        imu = only(root.iter('imu'), where, '<imu>')
        sensors = [sensor for sensor in root.iter('sensor') if imu in list(sensor)]
        rate = sensors[0].findtext('update_rate') if sensors else None
        mapping: dict[str, Any] = {'rate': number_in(rate, where, 'update_rate')} if rate else {}
        for quantity, element in _ELEMENTS.items():
            rows: dict[str, list[float]] = {name: [0.0] * 3 for name in self._names}
            for index, axis in enumerate('xyz'):
                noise = imu.find(f'{element}/{axis}/noise')
                if noise is None or noise.get('type', 'none') == 'none':
                    continue
                refuse_misspelt((child.tag for child in noise), self._names, where)
                for name in self._names:
                    if (value := noise.findtext(name)) is not None:
                        key = f'{element}.{axis}.{name}'
                        rows[name][index] = number_in(value, where, key)
            mapping[quantity] = {name: tuple(row) for name, row in rows.items()}
        return mapping


class PluginSimulator(KeyedSimulator):
    """Plugin of Gazebo classic with one element per parameter."""

    attributes: ClassVar[str]
    elements: ClassVar[Mapping[str, str]] = {}
    rate_key: ClassVar[str] = ''
    suffix = '.xml'

    def write(self, model: ImuModel) -> str:
        """Return the <plugin> element."""
        lines = [f'<plugin {self.attributes}>']
        lines += [f'  <{key}>{value}</{key}>' for key, value in self.elements.items()]
        if self.rate_key:
            lines.append(f'  <{self.rate_key}>{as_text(model.rate)}</{self.rate_key}>')
        for values in self.values(model).values():
            lines += [f'  <{key}>{as_text(value)}</{key}>' for key, value in values.items()]
        return '\n'.join([*lines, '</plugin>']) + '\n'

    def parse(self, text: str, where: str) -> dict[str, Any]:
        """Return the parameters of the only plugin of the simulator."""
        plugin = only_plugin(text, where, self.mark)
        rate = self.rate or 100.0
        if self.rate_key and (written := plugin.findtext(self.rate_key)):
            rate = number_in(written, where, self.rate_key)
        values: dict[str, dict[str, Numbers]] = {}
        for quantity, keys in self.keys.items():
            texts = {key: plugin.findtext(key) for key, _ in keys.values()}
            values[quantity] = {
                key: numbers_in(text, where, key) for key, text in texts.items() if text
            }
        return {'rate': rate, **self.parameters(values, rate)}


def _rotors_keys(gyroscope_walk: str) -> Keys:
    """Return the keys of RotorS' plugin or of its copy, whose key for that walk is another."""
    return {
        quantity: {
            'noise_density': (f'{quantity}NoiseDensity', 1.0),
            'random_walk': (walk, 1.0),
            'bias_correlation_time': (f'{quantity}BiasCorrelationTime', 1.0),
            'turn_on_bias_sigma': (f'{quantity}TurnOnBiasSigma', 1.0),
        }
        for quantity, walk in (
            ('gyroscope', gyroscope_walk), ('accelerometer', 'accelerometerRandomWalk')
        )
    }  # fmt: skip


def rotors_triad(part: ErrorChain) -> dict[str, Any]:
    """Return the parameters of RotorS' law, which has one number for three axes."""
    return {
        'noise_density': one_number(part.noise_density),
        'random_walk': one_number(driving_density(part)),
        'bias_correlation_time': part.gauss_markov_time[0],
        'turn_on_bias_sigma': one_number(part.turn_on_std),
    }


def rotors_errors(part: Any) -> dict[str, Any]:
    """Return the errors of a triad with RotorS' law."""
    return {
        'noise_density': [part.noise_density] * 3,
        'gauss_markov_std': [part.random_walk * math.sqrt(0.5 * part.bias_correlation_time)] * 3,
        'gauss_markov_time': [part.bias_correlation_time] * 3,
        'turn_on_std': [part.turn_on_bias_sigma] * 3,
    }


class Rotors(PluginSimulator):
    """IMU plugin of RotorS."""

    name = 'rotors'
    title = 'RotorS'
    kind = 'rotors_imu'
    preset = 'rotors_adis16448'
    rate = 100.0
    is_rate_fixed = True
    mark = 'librotors_gazebo_imu_plugin'
    attributes = 'filename="librotors_gazebo_imu_plugin.so" name="rotors_gazebo_imu_plugin"'
    elements: ClassVar[Mapping[str, str]] = {
        'linkName': 'imu_link', 'imuTopic': 'imu',
    }  # fmt: skip
    laws: ClassVar[Mapping[str, Law]] = dict.fromkeys(
        QUANTITIES, Law('gauss_markov', per_axis=False, turn_on=True)
    )
    keys = _rotors_keys('gyroscopeBiasRandomWalk')
    remarks: ClassVar[tuple[str, ...]] = (
        'The key is gyroscopeBiasRandomWalk; RotorS ignores gyroscopeRandomWalk without a word.',
    )

    def triad(self, quantity: str, part: ErrorChain, rate: float) -> dict[str, Any]:
        """Return the parameters of a triad."""
        return rotors_triad(part)

    def errors(self, quantity: str, model: ImuModel) -> dict[str, Any]:
        """Return the errors of a triad."""
        return rotors_errors(getattr(model, quantity))


class Px4(Rotors):
    """IMU plugin of PX4 for Gazebo classic, a copy of that of RotorS."""

    name = 'px4'
    title = "PX4's plugin for Gazebo classic"
    preset = 'px4_iim42653'
    rate = 250.0
    mark = 'libgazebo_imu_plugin'
    attributes = "name='rotors_gazebo_imu_plugin' filename='libgazebo_imu_plugin.so'"
    elements: ClassVar[Mapping[str, str]] = {
        'robotNamespace': '', 'linkName': '/imu_link', 'imuTopic': '/imu',
    }  # fmt: skip
    keys = _rotors_keys('gyroscopeRandomWalk')
    remarks = (
        'The models of new Gazebo take SDF: export to sdf at a rate of 250 Hz.',
        'The key is gyroscopeRandomWalk here, and gyroscopeBiasRandomWalk in RotorS.',
        'The turn-on bias decays with the correlation time of the bias.',
    )


class Hector(PluginSimulator):
    """IMU plugin of hector_gazebo."""

    name = 'hector'
    title = 'hector_gazebo'
    kind = 'hector_imu'
    mark = 'libhector_gazebo_ros_imu'
    attributes = 'name="imu_controller" filename="libhector_gazebo_ros_imu.so"'
    elements: ClassVar[Mapping[str, str]] = {
        'bodyName': 'base_link', 'frameId': 'imu_link', 'topicName': 'imu/data',
        'serviceName': '/imu/calibrate',
    }  # fmt: skip
    rate_key = 'updateRate'
    laws: ClassVar[Mapping[str, Law]] = dict.fromkeys(
        QUANTITIES, Law('gauss_markov', constant=True)
    )
    keys: ClassVar[Keys] = {
        quantity: {
            'offset': (f'{prefix}Offset', 1.0),
            'drift': (f'{prefix}Drift', 1.0),
            'drift_frequency': (f'{prefix}DriftFrequency', 1.0),
            'gaussian_noise': (f'{prefix}GaussianNoise', 1.0),
        }
        for quantity, prefix in (('gyroscope', 'rate'), ('accelerometer', 'accel'))
    }
    remarks = (
        'Drift is larger than the drift that results, because the plugin steps it by dt in place '
        'of sqrt(dt); it holds at the updateRate of the file.',
        'The first drift is drawn with that larger number. Call /imu/calibrate and '
        '/imu/set_accel_bias (0 0 0) at the start.',
    )

    @staticmethod
    def _gain(frequency: Any, rate: float) -> Any:
        """Return the ratio of the stationary deviation of the drift to its parameter."""
        f, dt = np.asarray(frequency), 1.0 / rate
        return dt * np.sqrt(2.0 * f / -np.expm1(-2.0 * f * dt))

    def triad(self, quantity: str, part: ErrorChain, rate: float) -> dict[str, Any]:
        """Return the parameters of a triad."""
        frequency = 1.0 / np.asarray(part.gauss_markov_time)
        return {
            'offset': part.constant_bias,
            'drift': np.asarray(part.gauss_markov_std) / self._gain(frequency, rate),
            'drift_frequency': frequency,
            'gaussian_noise': np.asarray(part.noise_density) * math.sqrt(rate),
        }

    def errors(self, quantity: str, model: ImuModel) -> dict[str, Any]:
        """Return the errors of a triad, of a drift that starts at zero."""
        part = getattr(model, quantity)
        frequency = np.maximum(part.drift_frequency, 1e-9)
        return {
            'constant_bias': part.offset,
            'noise_density': tuple(np.asarray(part.gaussian_noise) / math.sqrt(model.rate)),
            'gauss_markov_std': tuple(part.drift * self._gain(frequency, model.rate)),
            'gauss_markov_time': tuple(1.0 / frequency),
        }


class MuJoCo(KeyedSimulator):
    """Sensors of MuJoCo, whose `noise` is per sample."""

    name = 'mujoco'
    title = 'MuJoCo'
    mark = '<gyro'
    kind = 'chain'
    suffix = '.xml'
    laws: ClassVar[Mapping[str, Law]] = dict.fromkeys(QUANTITIES, Law(per_axis=False))
    keys: ClassVar[Keys] = {
        'gyroscope': {'noise_density': ('gyro', 1.0)},
        'accelerometer': {'noise_density': ('accelerometer', 1.0)},
    }
    remarks = (
        'noise holds at the timestep of the file. MuJoCo adds it only before 3.1.4; later add '
        'rng.normal(0, model.sensor_noise[i]) to data.sensordata after each mj_step.',
    )

    def unit(self, quantity: str, parameter: str, rate: float) -> float:
        """Return the density of noise of 1 per sample."""
        return 1.0 / math.sqrt(rate)

    def triad(self, quantity: str, part: ErrorChain, rate: float) -> dict[str, Any]:
        """Return the density of a triad."""
        return {'noise_density': (one_number(part.noise_density),) * 3}

    def errors(self, quantity: str, model: ImuModel) -> dict[str, Any]:
        """Return the errors of a triad."""
        return {'noise_density': getattr(model, quantity).noise_density}

    def write(self, model: ImuModel) -> str:
        """Return the <option> and the <sensor> elements."""
        values = self.values(model)
        lines = [f'<option timestep="{1.0 / model.rate:.12g}"/>', '<sensor>']
        for quantity, keys in self.keys.items():
            for element, _ in keys.values():
                (noise, *_) = np.atleast_1d(values[quantity][element])
                lines.append(f'  <{element} name="{quantity}" site="imu" noise="{noise:.6g}"/>')
        return '\n'.join([*lines, '</sensor>']) + '\n'

    def parse(self, text: str, where: str) -> dict[str, Any]:
        """Return the noise of the gyroscope and the accelerometer of an MJCF file."""
        root = parse_xml(text, where)
        steps = [o.get('timestep') for o in root.iter('option') if o.get('timestep')]
        rate = 1.0 / number_in(steps[0] if steps else '0.002', where, 'option.timestep')
        mapping: dict[str, Any] = {'rate': float(f'{rate:.9g}')}
        for quantity, keys in self.keys.items():
            for element, _ in keys.values():
                sensor = only(root.iter(element), where, f'<{element}>')
                noise = number_in(sensor.get('noise', '0'), where, f'{element}.noise')
                mapping[quantity] = {'noise_density': (noise * rate**-0.5,) * 3}
        return mapping
