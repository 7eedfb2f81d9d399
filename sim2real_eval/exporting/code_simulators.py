# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""IMUs of simulators whose files are code: Pegasus, Isaac Lab, Webots, gnss-ins-sim and MATLAB."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, ClassVar

from sim_sensors.core.errors import ParameterError
from sim_sensors.imu.chain import ErrorChain
from sim_sensors.imu.imu import ImuModel
from sim_sensors.world.geodesy import STANDARD_GRAVITY
from .imu_simulator import (
    KeyedSimulator,
    Keys,
    Numbers,
    as_text,
    number_in,
    numbers_in,
    one_number,
    scaled,
)
from .law_fit import QUANTITIES, Law
from .xml_simulators import rotors_triad

_DEGREE = math.pi / 180.0
_HOUR = 3600.0


class CodeSimulator(KeyedSimulator):
    """Simulator whose file is source code in which each number follows its key."""

    template: ClassVar[str]
    sections: ClassVar[Mapping[str, str]] = {}
    rate_pattern: ClassVar[str]
    vector: ClassVar[str] = '[{}]'
    separator: ClassVar[str] = ', '

    def fill(self, model: ImuModel) -> dict[str, Any]:
        """Return the fields of the template besides the noise parameters."""
        return {'rate': as_text(model.rate)}

    def write(self, model: ImuModel) -> str:
        """Return the code."""
        fields = self.fill(model)
        for quantity, values in self.values(model).items():
            for key, value in values.items():
                number = as_text(value, self.separator)
                is_vector = isinstance(value, tuple)
                fields[f'{quantity}_{key}'] = self.vector.format(number) if is_vector else number
        return self.template.format(**fields)

    def parse(self, text: str, where: str) -> dict[str, Any]:
        """Return the numbers that follow the keys."""
        rate = re.search(self.rate_pattern, text)
        hertz = self.rate or 100.0
        if rate is not None:
            hertz = self.rate_of(number_in(rate[1], where, 'rate'))
        values: dict[str, dict[str, Numbers]] = {}
        for quantity, keys in self.keys.items():
            section = re.search(self.sections[quantity], text, re.DOTALL)
            if section is None:
                raise ParameterError(where, quantity, f'missing in the file of {self.title}')
            values[quantity] = {}
            for key, _ in keys.values():
                match = re.search(
                    rf"""\b{key}\b['"]?\s*[:=,]\s*(?:\w+\.\w+\()?\[?([-+\d.eE][-+\d.eE,\s]*)""",
                    section[0],
                )
                if match is not None:
                    values[quantity][key] = numbers_in(match[1].strip(' ,\n'), where, key)
        return {'rate': hertz, **self.parameters(values, hertz)}

    def rate_of(self, value: float) -> float:
        """Return the rate, Hz, from the number in the file."""
        return value


class Pegasus(CodeSimulator):
    """Configuration of the IMU of Pegasus for Isaac Sim."""

    name = 'pegasus'
    title = 'Pegasus'
    mark = 'bias_correlation_time'
    kind = 'pegasus_imu'
    preset = 'pegasus_imu'
    rate = 250.0
    suffix = '.py'
    laws: ClassVar[Mapping[str, Law]] = {
        'gyroscope': Law('gauss_markov', per_axis=False), 'accelerometer': Law(per_axis=False),
    }  # fmt: skip
    keys: ClassVar[Keys] = {
        quantity: {
            name: (name, 1.0)
            for name in (
                'noise_density', 'random_walk', 'bias_correlation_time', 'turn_on_bias_sigma',
            )
        }
        for quantity in QUANTITIES
    }  # fmt: skip
    sections: ClassVar[Mapping[str, str]] = {
        quantity: rf'["\']{quantity}["\']:\s*\{{[^}}]*\}}' for quantity in QUANTITIES
    }
    rate_pattern = r'["\']update_rate["\']:\s*([-+\d.eE]+)'
    template = """\
from pegasus.simulator.logic.sensors import IMU

imu = IMU(config={{
    "update_rate": {rate},
    "gyroscope": {{
        "noise_density": {gyroscope_noise_density},
        "random_walk": {gyroscope_random_walk},
        "bias_correlation_time": {gyroscope_bias_correlation_time},
        "turn_on_bias_sigma": {gyroscope_turn_on_bias_sigma},
    }},
    "accelerometer": {{
        "noise_density": {accelerometer_noise_density},
        "random_walk": {accelerometer_random_walk},
        "bias_correlation_time": {accelerometer_bias_correlation_time},
        "turn_on_bias_sigma": {accelerometer_turn_on_bias_sigma},
    }},
}})
"""
    remarks = (
        'Pegasus takes the correlation time of the gyroscope from the accelerometer, so the file '
        'has the same for both. It adds no bias to the accelerometer and draws no turn-on bias.',
    )

    def model(self, chain: Any, rate: float) -> ImuModel:
        """Return the model, with the correlation time of the gyroscope in both triads."""
        gyroscope = rotors_triad(chain.gyroscope)
        time = gyroscope['bias_correlation_time']
        accelerometer = rotors_triad(chain.accelerometer) | {'bias_correlation_time': time}
        triads = {'gyroscope': gyroscope, 'accelerometer': accelerometer}
        no_turn_on = {'turn_on_bias_sigma': 0.0}
        return self.build(
            {'rate': rate, **{name: part | no_turn_on for name, part in triads.items()}}, self.name
        )

    def triad(self, quantity: str, part: ErrorChain, rate: float) -> dict[str, Any]:
        """Return the parameters of a triad; see `model`."""
        return rotors_triad(part)

    def errors(self, quantity: str, model: ImuModel) -> dict[str, Any]:
        """Return the errors of a triad."""
        part: Any = getattr(model, quantity)
        if quantity == 'accelerometer':
            return {'noise_density': [part.noise_density] * 3}
        pegasus_model: Any = model
        correlation_time = pegasus_model.accelerometer.bias_correlation_time
        std = part.random_walk * math.sqrt(0.5 * correlation_time)
        return {
            'noise_density': [part.noise_density] * 3,
            'gauss_markov_std': [std] * 3,
            'gauss_markov_time': [correlation_time] * 3,
        }


class IsaacLab(CodeSimulator):
    """Noise of the IMU observations of Isaac Lab."""

    name = 'isaac'
    title = 'Isaac Lab'
    mark = 'isaaclab'
    kind = 'chain'
    suffix = '.py'
    laws: ClassVar[Mapping[str, Law]] = dict.fromkeys(QUANTITIES, Law(constant=True, turn_on=True))
    keys: ClassVar[Keys] = {
        quantity: {
            'constant_bias': (f'{name}_BIAS', 1.0),
            'turn_on_std': (f'{name}_BIAS_STD', 1.0),
            'noise_density': (f'{name}_STD', 1.0),
        }
        for quantity, name in (('gyroscope', 'GYRO'), ('accelerometer', 'ACCEL'))
    }
    sections: ClassVar[Mapping[str, str]] = dict.fromkeys(QUANTITIES, r'.*')
    rate_pattern = r'STEP_DT\s*=\s*([-+\d.eE]+)'
    vector = 'torch.tensor([{}])'
    template = """\
import torch
from isaaclab.utils.noise import GaussianNoiseCfg, NoiseModelWithAdditiveBiasCfg

STEP_DT = {step_dt}  # s, decimation * sim.dt
GYRO_STD = {gyroscope_GYRO_STD}
GYRO_BIAS = {gyroscope_GYRO_BIAS}
GYRO_BIAS_STD = {gyroscope_GYRO_BIAS_STD}
ACCEL_STD = {accelerometer_ACCEL_STD}
ACCEL_BIAS = {accelerometer_ACCEL_BIAS}
ACCEL_BIAS_STD = {accelerometer_ACCEL_BIAS_STD}


def imu_noise(std, bias, bias_std):
    return NoiseModelWithAdditiveBiasCfg(
        noise_cfg=GaussianNoiseCfg(mean=0.0, std=std),
        bias_noise_cfg=GaussianNoiseCfg(mean=bias, std=bias_std, operation="abs"),
    )


# ObsTerm(func=mdp.imu_ang_vel, noise=imu_noise(GYRO_STD, GYRO_BIAS, GYRO_BIAS_STD))
# ObsTerm(func=mdp.imu_lin_acc, noise=imu_noise(ACCEL_STD, ACCEL_BIAS, ACCEL_BIAS_STD))
"""
    remarks = (
        'Isaac Sim itself has no IMU noise; this is the noise of observations of Isaac Lab. For '
        'Pegasus use --to pegasus.',
        'The noise is that of the STEP_DT in the file; at another step its density differs. '
        'operation="abs" keeps biases from adding up over resets.',
    )

    def unit(self, quantity: str, parameter: str, rate: float) -> float:
        """Return the factor to SI units; the file has the noise per sample, not its density."""
        return rate**-0.5 if parameter == 'noise_density' else 1.0

    def fill(self, model: ImuModel) -> dict[str, Any]:
        """Return the time step, s."""
        return {'step_dt': f'{1.0 / model.rate:.12g}'}

    def rate_of(self, value: float) -> float:
        """Return the rate, Hz, from the step in the file, s."""
        return float(f'{1.0 / value:.9g}') if value > 0.0 else 0.0

    def triad(self, quantity: str, part: ErrorChain, rate: float) -> dict[str, Any]:
        """Return the parameters of a triad."""
        names = ('constant_bias', 'turn_on_std', 'noise_density')
        return {name: getattr(part, name) for name in names}

    def errors(self, quantity: str, model: ImuModel) -> dict[str, Any]:
        """Return the errors of a triad."""
        return self.triad(quantity, getattr(model, quantity), model.rate)


class Webots(CodeSimulator):
    """Gyro and Accelerometer nodes of Webots, whose noise is a share of the value."""

    name = 'webots'
    title = 'Webots'
    mark = 'lookupTable'
    kind = 'webots_imu'
    suffix = '.wbt'
    laws: ClassVar[Mapping[str, Law]] = dict.fromkeys(QUANTITIES, Law(rounding=True))
    keys: ClassVar[Keys] = {
        quantity: {
            'range': ('range', 1.0), 'noise': ('share', 1.0), 'resolution': ('resolution', 1.0),
        }
        for quantity in QUANTITIES
    }  # fmt: skip
    sections: ClassVar[Mapping[str, str]] = {
        'gyroscope': r'\bGyro\s*\{[^}]*\}', 'accelerometer': r'\bAccelerometer\s*\{[^}]*\}',
    }  # fmt: skip
    rate_pattern = r'sampling period\s*([-+\d.eE]+) ms'
    template = """\
# sampling period {period} ms
Gyro {{
  lookupTable [ -{gyroscope_range} -{gyroscope_range} {gyroscope_share}, \
{gyroscope_range} {gyroscope_range} {gyroscope_share} ]
  resolution {gyroscope_resolution}
}}
Accelerometer {{
  lookupTable [ -{accelerometer_range} -{accelerometer_range} {accelerometer_share}, \
{accelerometer_range} {accelerometer_range} {accelerometer_share} ]
  resolution {accelerometer_resolution}
}}
"""
    remarks = (
        'The noise of Webots is proportional to the value. The gyroscope has the noise of the '
        'model at 1 rad/s and none at rest, the accelerometer at rest only along gravity. Neither '
        'has a bias.',
    )
    _ranges: ClassVar[Mapping[str, float]] = {'gyroscope': 35.0, 'accelerometer': 160.0}
    _typical: ClassVar[Mapping[str, float]] = {
        'gyroscope': 1.0, 'accelerometer': STANDARD_GRAVITY,
    }  # fmt: skip

    def fill(self, model: ImuModel) -> dict[str, Any]:
        """Return the sampling period."""
        return {'period': f'{1e3 / model.rate:.12g}'}

    def write(self, model: ImuModel) -> str:
        """Return both nodes, with resolution -1, which is no rounding in Webots, instead of 0."""
        return super().write(model).replace('resolution 0\n', 'resolution -1\n')

    def rate_of(self, value: float) -> float:
        """Return the rate, Hz, from the sampling period in the file, ms."""
        return float(f'{1e3 / value:.9g}') if value > 0.0 else 0.0

    def parse(self, text: str, where: str) -> dict[str, Any]:
        """Return range, noise and resolution of both nodes."""
        plain = re.sub(
            r'lookupTable\s*\[\s*\S+\s+\S+\s+\S+[,\s]+(\S+)\s+\S+\s+([^\s\]]+)\s*\]',
            r'range: \1 share: \2 ', text,
        )  # fmt: skip
        plain = re.sub(r'\bresolution\s+-1\b', 'resolution: 0', plain)
        return super().parse(re.sub(r'\bresolution\s+(?=[\d.])', 'resolution: ', plain), where)

    def triad(self, quantity: str, part: ErrorChain, rate: float) -> dict[str, Any]:
        """Return the parameters of a triad."""
        # At rest the accelerometer has noise along gravity alone.
        is_force = quantity == 'accelerometer'
        density = part.noise_density[2] if is_force else one_number(part.noise_density)
        std = density * math.sqrt(rate)
        return {
            'noise': std / self._typical[quantity],
            'range': self._ranges[quantity],
            'resolution': one_number(part.quantisation),
        }

    def errors(self, quantity: str, model: ImuModel) -> dict[str, Any]:
        """Return the errors of a triad at rest and level."""
        if quantity == 'gyroscope':
            return {'noise_density': (0.0, 0.0, 0.0)}
        part: Any = getattr(model, quantity)
        density = part.noise * STANDARD_GRAVITY / math.sqrt(model.rate)
        return {'noise_density': (0.0, 0.0, density)}


class GnssInsSim(CodeSimulator):
    """Accuracy of the IMU of gnss-ins-sim."""

    name = 'gnss_ins_sim'
    title = 'gnss-ins-sim'
    mark = 'gyro_arw'
    kind = 'gnss_ins_sim'
    suffix = '.py'
    laws: ClassVar[Mapping[str, Law]] = dict.fromkeys(
        QUANTITIES, Law('gauss_markov', per_axis_time=False, constant=True)
    )
    keys: ClassVar[Keys] = {
        'gyroscope': {
            'bias': ('gyro_b', _DEGREE / _HOUR),
            'noise_density': ('gyro_arw', _DEGREE / math.sqrt(_HOUR)),
            'drift_std': ('gyro_b_stability', _DEGREE / _HOUR),
            'drift_time': ('gyro_b_corr', 1.0),
        },
        'accelerometer': {
            'bias': ('accel_b', 1.0),
            'noise_density': ('accel_vrw', 1.0 / math.sqrt(_HOUR)),
            'drift_std': ('accel_b_stability', 1.0),
            'drift_time': ('accel_b_corr', 1.0),
        },
    }
    sections: ClassVar[Mapping[str, str]] = dict.fromkeys(QUANTITIES, r'.*')
    rate_pattern = r'\bFS\s*=\s*([-+\d.eE]+)'
    vector = 'np.array([{}])'
    template = """\
import numpy as np
from gnss_ins_sim.sim import imu_model

FS = {rate}  # Hz, the first rate of ins_sim.Sim([FS, ...])
accuracy = {{
    'gyro_b': {gyroscope_gyro_b},  # deg/h
    'gyro_arw': {gyroscope_gyro_arw},  # deg/sqrt(h)
    'gyro_b_stability': {gyroscope_gyro_b_stability},  # deg/h
    'gyro_b_corr': np.full(3, {gyroscope_gyro_b_corr}),  # s
    'accel_b': {accelerometer_accel_b},  # m/s^2
    'accel_vrw': {accelerometer_accel_vrw},  # m/s/sqrt(h)
    'accel_b_stability': {accelerometer_accel_b_stability},  # m/s^2
    'accel_b_corr': np.full(3, {accelerometer_accel_b_corr}),  # s
}}
imu = imu_model.IMU(accuracy=accuracy, axis=6, gps=False)
"""
    remarks = ('A custom accuracy also overwrites the built-in one for the rest of the process.',)

    def parse(self, text: str, where: str) -> dict[str, Any]:
        """Return the numbers; the three correlation times of a triad must be equal."""
        mapping = super().parse(re.sub(r'np\.full\(3,\s*', 'np.full(', text), where)
        for quantity in QUANTITIES:
            time = mapping[quantity].get('drift_time')
            if isinstance(time, tuple):
                if len(set(time)) > 1:
                    key = self.keys[quantity]['drift_time'][0]
                    problem = f'{time!r} is not allowed; the three numbers must be equal'
                    raise ParameterError(where, key, problem)
                mapping[quantity]['drift_time'] = time[0]
        return mapping

    def triad(self, quantity: str, part: ErrorChain, rate: float) -> dict[str, Any]:
        """Return the parameters of a triad."""
        return {
            'bias': part.constant_bias,
            'noise_density': part.noise_density,
            'drift_std': part.gauss_markov_std,
            'drift_time': _correlation_time(part),
        }

    def errors(self, quantity: str, model: ImuModel) -> dict[str, Any]:
        """Return the errors of a triad, with the larger drift of the Euler step."""
        part: Any = getattr(model, quantity)
        time = part.drift_time or 1e9
        step = 1.0 / (model.rate * time)
        growth = math.sqrt(-math.expm1(-2.0 * step) / (1.0 - (1.0 - step) ** 2))
        return {
            'constant_bias': part.bias,
            'noise_density': part.noise_density,
            'gauss_markov_std': scaled(part.drift_std, growth),
            'gauss_markov_time': [time] * 3,
        }


def _correlation_time(part: ErrorChain) -> float:
    """Return the correlation time, s, of the first axis with a drift, or 100 s without drift."""
    pairs = zip(part.gauss_markov_std, part.gauss_markov_time, strict=True)
    return next((time for std, time in pairs if std), 100.0)


class Matlab(CodeSimulator):
    """imuSensor of MATLAB, with gyroparams and accelparams."""

    name = 'matlab'
    title = 'MATLAB'
    mark = 'gyroparams'
    kind = 'matlab_imu'
    suffix = '.m'
    laws: ClassVar[Mapping[str, Law]] = dict.fromkeys(QUANTITIES, Law('flicker', constant=True))
    keys: ClassVar[Keys] = {
        quantity: {
            'constant_bias': ('ConstantBias', 1.0),
            'noise_density': ('NoiseDensity', 1.0),
            'bias_instability': ('BiasInstability', 1.0),
            'random_walk': ('RandomWalk', 1.0),
        }
        for quantity in QUANTITIES
    }
    sections: ClassVar[Mapping[str, str]] = {
        'gyroscope': r'gyroparams\([^;]*\);', 'accelerometer': r'accelparams\([^;]*\);',
    }  # fmt: skip
    rate_pattern = r"'SampleRate',\s*([-+\d.eE]+)"
    separator = ' '
    template = """\
imu = imuSensor('accel-gyro', 'SampleRate', {rate});
imu.Gyroscope = gyroparams( ...
    'ConstantBias', {gyroscope_ConstantBias}, ...
    'NoiseDensity', {gyroscope_NoiseDensity}, ...
    'BiasInstability', {gyroscope_BiasInstability}, ...
    'RandomWalk', {gyroscope_RandomWalk});
imu.Accelerometer = accelparams( ...
    'ConstantBias', {accelerometer_ConstantBias}, ...
    'NoiseDensity', {accelerometer_NoiseDensity}, ...
    'BiasInstability', {accelerometer_BiasInstability}, ...
    'RandomWalk', {accelerometer_RandomWalk});
"""
    remarks = (
        'BiasInstability is flicker noise since R2023b; in earlier versions it is nearly white '
        'noise.',
    )

    def triad(self, quantity: str, part: ErrorChain, rate: float) -> dict[str, Any]:
        """Return the parameters of a triad."""
        return {parameter: getattr(part, parameter) for parameter in self.keys[quantity]}

    def errors(self, quantity: str, model: ImuModel) -> dict[str, Any]:
        """Return the errors of a triad."""
        return self.triad(quantity, getattr(model, quantity), model.rate)
