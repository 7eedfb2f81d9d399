# SPDX-License-Identifier: Apache-2.0
"""A generic IMU whose triads have every error that data sheets and Allan plots tell of."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from sim_sensors.axis_parameters import AxisParameters
from sim_sensors.error_chain import ChainTriad
from sim_sensors.errors import ParameterError
from sim_sensors.imu import ImuModel
from sim_sensors.imu_statement import Correlated, ReportedCovariance
from sim_sensors.noise import correlation_root
from sim_sensors.parameters import parameter
from sim_sensors.temperature import Temperature
from sim_sensors.triad import AxisErrors

__all__ = ['AccelerometerChain', 'ErrorChain', 'GyroscopeChain', 'ImuChain']

_ZERO = (0.0, 0.0, 0.0)


@dataclasses.dataclass(frozen=True)
class ErrorChain(AxisParameters):
    """Errors of three axes, in the order in which they act; see `ImuChain`."""

    scale: tuple[float, float, float] = parameter(_ZERO, '1', 'Scale factor error of each axis.')
    cross_axis_upper: tuple[float, float, float] = parameter(
        _ZERO, '1', 'Sensitivity of x to y, x to z, y to z: small misalignment angles, rad.'
    )
    cross_axis_lower: tuple[float, float, float] = parameter(
        _ZERO, '1', 'Sensitivity of y to x, z to x, z to y: small misalignment angles, rad.'
    )
    temperature_scale: tuple[float, float, float] = parameter(
        _ZERO, '1/K', 'Scale factor error per kelvin above the reference temperature.'
    )
    constant_bias: tuple[float, float, float] = parameter(_ZERO, '{u}', 'Bias of every unit.')
    turn_on_std: tuple[float, float, float] = parameter(
        _ZERO, '{u}', 'Bias drawn once when switched on.', minimum=0.0
    )
    gauss_markov_std: tuple[float, float, float] = parameter(
        _ZERO, '{u}', 'Stationary deviation of a Gauss-Markov bias.', minimum=0.0
    )
    gauss_markov_time: tuple[float, float, float] = parameter(
        (100.0, 100.0, 100.0),
        's',
        'Correlation time of that bias.',
        minimum=0.0,
        minimum_excluded=True,
    )
    random_walk: tuple[float, float, float] = parameter(
        _ZERO, '{u}/s/sqrt(Hz)', 'Rate random walk K, from zero.', minimum=0.0
    )
    bias_instability: tuple[float, float, float] = parameter(
        _ZERO, '{u}', 'Flicker B: Allan plateau divided by 0.664.', minimum=0.0
    )
    bias_instability_from: float = parameter(
        1.0,
        's',
        'Shortest averaging time of the plateau.',
        minimum=0.0,
        minimum_excluded=True,
    )
    bias_instability_to: float = parameter(
        10000.0,
        's',
        'Longest averaging time of the plateau.',
        minimum=0.0,
        minimum_excluded=True,
    )
    rate_ramp: tuple[float, float, float] = parameter(
        _ZERO, '{u}/s', 'Drift R of the bias since switched on.'
    )
    temperature_bias: tuple[float, float, float] = parameter(
        _ZERO, '{u}/K', 'Bias per kelvin above the reference temperature.'
    )
    noise_density: tuple[float, float, float] = parameter(
        _ZERO, '{u}/sqrt(Hz)', 'White noise N: Allan deviation at 1 s.', minimum=0.0
    )
    noise_correlation: tuple[float, float, float] = parameter(
        _ZERO,
        '1',
        'Correlation of the white noise of x with y, x with z, y with z.',
        minimum=-1.0,
        maximum=1.0,
    )
    quantisation_noise: tuple[float, float, float] = parameter(
        _ZERO,
        '{i}',
        'White noise of the integral: the Q of an Allan plot, its slope -1.',
        minimum=0.0,
    )
    bandwidth: float = parameter(0.0, 'Hz', 'Where the low pass has -3 dB; 0: none.', minimum=0.0)
    filter_order: int = parameter(
        2, '1', 'Order of the low pass: 1, or 2 (Butterworth).', minimum=1, maximum=2
    )
    range: tuple[float, float, float] = parameter(
        _ZERO, '{u}', 'Largest absolute value that is reported; 0: none.', minimum=0.0
    )
    quantisation: tuple[float, float, float] = parameter(
        _ZERO, '{u}', 'Step of the reported values; 0: none.', minimum=0.0
    )
    increment_quantisation: tuple[float, float, float] = parameter(
        _ZERO,
        '{i}',
        'Step of the integral, of a sensor that counts; 0: none.',
        minimum=0.0,
    )

    def _check(self) -> None:
        try:
            correlation_root(self.noise_correlation)
        except ValueError:
            raise ParameterError(
                type(self).__name__,
                'noise_correlation',
                f'{list(self.noise_correlation)!r} is not allowed; must be those of a covariance, '
                '1 + 2 xy xz yz >= xy^2 + xz^2 + yz^2',
            ) from None
        if self.bias_instability_to <= self.bias_instability_from:
            raise ParameterError(
                type(self).__name__,
                'bias_instability_to',
                f'{self.bias_instability_to!r} is not allowed; must be above '
                f'bias_instability_from, {self.bias_instability_from!r}',
            )


@dataclasses.dataclass(frozen=True)
class GyroscopeChain(ErrorChain):
    """Errors of a gyroscope; none by default."""

    unit: ClassVar[str] = 'rad/s'
    integral_unit: ClassVar[str] = 'rad'


@dataclasses.dataclass(frozen=True)
class AccelerometerChain(ErrorChain):
    """Errors of an accelerometer; none by default."""

    unit: ClassVar[str] = 'm/s^2'
    integral_unit: ClassVar[str] = 'm/s'


@dataclasses.dataclass(frozen=True)
class ImuChain(ImuModel):
    """An IMU with the errors of data sheets and Allan plots, exactly discretised.

    Per triad, in this order, with T the temperature above its reference and t the time since
    switched on:

        s = S (1 + temperature_scale T) x    S = I + scale + cross_axis, x the true values
        b = constant + turn on + Gauss-Markov + random walk + flicker
            + rate_ramp t + temperature_bias T
        y = low_pass(s + b + noise_density w / sqrt(dt) + quantisation_noise (v - v') / dt)
        y = quantise(saturate(y)), then rounded in its integral

    w and v are fresh standard normals, w correlated among the axes as `noise_correlation` says;
    v' is the v of the sample before.

    The Allan deviation of a sensor at rest is that of [IEEE952] with these Q, N, B, K, R, and
    does not depend on the rate. Sensitivity, bias and noise: [Ligorio2015], equation 4.
    """

    kind: ClassVar[str] = 'chain'

    gyroscope: GyroscopeChain = dataclasses.field(default_factory=GyroscopeChain)
    accelerometer: AccelerometerChain = dataclasses.field(default_factory=AccelerometerChain)
    temperature: Temperature = dataclasses.field(default_factory=Temperature)

    def triads(self, seed: int, run: str, sensor: str) -> tuple[AxisErrors, AxisErrors]:
        """Return the errors of the gyroscope and of the accelerometer."""
        return (
            ChainTriad(self.gyroscope, self.temperature, seed, run, sensor, 'gyroscope'),
            ChainTriad(self.accelerometer, self.temperature, seed, run, sensor, 'accelerometer'),
        )

    def reported_covariances(self) -> tuple[ReportedCovariance, ReportedCovariance]:
        """Return what is stated as covariances: those of the white noise, correlation included."""
        if self.covariance == 'unknown':
            return super().reported_covariances()
        return (
            Correlated(self.gyroscope.noise_correlation),
            Correlated(self.accelerometer.noise_correlation),
        )
