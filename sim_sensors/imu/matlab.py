# SPDX-License-Identifier: Apache-2.0
"""An IMU described with the parameters of MATLAB's imuSensor."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from sim_sensors.core.parameters import parameter
from sim_sensors.core.shared_parameters import AxisParameters, axes
from sim_sensors.imu.chain import AccelerometerChain, ChainTriad, ErrorChain, GyroscopeChain
from sim_sensors.imu.imu import ImuModel
from sim_sensors.noise.electronics import Temperature
from sim_sensors.noise.triad import AxisErrors

_ZERO = (0.0, 0.0, 0.0)


@dataclasses.dataclass(frozen=True)
class MatlabErrors(AxisParameters):
    """The properties of gyroparams and accelparams that a triad has by itself."""

    measurement_range: float = parameter(
        0.0, '{u}', 'MeasurementRange; 0 stands for Inf.', minimum=0.0
    )
    resolution: float = parameter(0.0, '{u}', 'Resolution; 0: none.', minimum=0.0)
    constant_bias: tuple[float, float, float] = axes('{u}', 'ConstantBias.')
    axes_misalignment: tuple[float, float, float] = axes(
        '%', 'AxesMisalignment: what of each axis the two others feel.'
    )
    noise_density: tuple[float, float, float] = axes('{u}/sqrt(Hz)', 'NoiseDensity.', minimum=0.0)
    bias_instability: tuple[float, float, float] = axes(
        '{u}', 'BiasInstability, the B of an Allan plot.', minimum=0.0
    )
    random_walk: tuple[float, float, float] = axes('{u}/s/sqrt(Hz)', 'RandomWalk.', minimum=0.0)
    temperature_bias: tuple[float, float, float] = axes('{u}/K', 'TemperatureBias.')
    temperature_scale_factor: tuple[float, float, float] = axes('%/K', 'TemperatureScaleFactor.')

    def chain(self) -> dict[str, object]:
        """Return the same errors as parameters of `sim_sensors.imu.chain.ErrorChain`."""
        x, y, z = (0.01 * entry for entry in self.axes_misalignment)
        return {
            'cross_axis_upper': (y, z, z),
            'cross_axis_lower': (x, x, y),
            'temperature_scale': tuple(0.01 * entry for entry in self.temperature_scale_factor),
            'constant_bias': self.constant_bias,
            'random_walk': self.random_walk,
            'bias_instability': self.bias_instability,
            'temperature_bias': self.temperature_bias,
            'noise_density': self.noise_density,
            'range': (self.measurement_range,) * 3,
            'quantisation': (self.resolution,) * 3,
        }


@dataclasses.dataclass(frozen=True)
class MatlabGyroscope(MatlabErrors):
    """gyroparams, without AccelerationBias; none by default."""

    unit: ClassVar[str] = 'rad/s'
    integral_unit: ClassVar[str] = 'rad'


@dataclasses.dataclass(frozen=True)
class MatlabAccelerometer(MatlabErrors):
    """accelparams; none by default."""

    unit: ClassVar[str] = 'm/s^2'
    integral_unit: ClassVar[str] = 'm/s'


@dataclasses.dataclass(frozen=True)
class MatlabImu(ImuModel):
    """The generic IMU (`sim_sensors.imu.chain.ImuChain`) under the names and in the units of
    MATLAB's imuSensor: percent, and infinity written as 0.

    The numbers mean what the data sheet they come from means: noise density and random walk are
    densities of the Allan plot, and bias instability is flicker with a plateau of 0.664 B.
    MATLAB's own discretisations of the latter are not reproduced, nor is the bias by
    acceleration.
    """

    kind: ClassVar[str] = 'matlab_imu'

    gyroscope: MatlabGyroscope = dataclasses.field(default_factory=MatlabGyroscope)
    accelerometer: MatlabAccelerometer = dataclasses.field(default_factory=MatlabAccelerometer)
    temperature: Temperature = dataclasses.field(default_factory=Temperature)

    def triads(self, seed: int, run: str, sensor: str) -> tuple[AxisErrors, AxisErrors]:
        """Return the errors of the gyroscope and of the accelerometer."""
        gyroscope: ErrorChain = GyroscopeChain.from_mapping(self.gyroscope.chain(), self.kind)
        accelerometer: ErrorChain = AccelerometerChain.from_mapping(
            self.accelerometer.chain(), self.kind
        )
        return (
            ChainTriad(gyroscope, self.temperature, seed, run, sensor, 'gyroscope'),
            ChainTriad(accelerometer, self.temperature, seed, run, sensor, 'accelerometer'),
        )
