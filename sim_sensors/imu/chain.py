# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Generic IMU with the errors of data sheets and Allan plots, and vibration."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from sim_sensors.core.errors import ParameterError, SensorError
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import Parameters, non_negative, parameter, positive
from sim_sensors.core.seeding import Streams, stream, streams
from sim_sensors.core.shared_parameters import (
    Axes,
    AxisParameters,
    OfAccelerometer,
    OfGyroscope,
    axes,
)
from sim_sensors.noise import processes
from sim_sensors.noise.electronics import (
    IncrementQuantiser,
    LowPass,
    Ramp,
    Supply,
    Temperature,
    quantise,
    saturate,
)
from sim_sensors.noise.processes import GaussMarkov
from sim_sensors.noise.triad import AxisErrors
from sim_sensors.sensor.sensor import ReportedCovariance, WhiteNoiseCovariance
from sim_sensors.world.earth import TurningEarth
from sim_sensors.world.geodesy import STANDARD_GRAVITY
from .imu import ImuModel, ImuSensor


@dataclasses.dataclass(frozen=True)
class Vibration(Parameters):
    """Vibration of an engine or a rotor, measured by both triads of an IMU; none by default.

    The engine has turned c(t) cycles. Each axis measures, for n = 1, 2, 3 ...::

        v(t) = amplitude sum over n of harmonic_n |H(n f)| sin(2 pi (n c(t) + phase_n))

    `gyroscope` and `accelerometer` are the amplitudes at each axis. They include the
    coupling of the mount. The phases are drawn once per harmonic and axis. The rotation rate f is
    constant, or wanders as a Gauss-Markov process that both triads share.

    The vibration is sampled at the instants of the IMU. A line at n f above half the rate
    therefore appears at its alias, |n f - k rate|, with its full size. H is the low pass of the
    triad (`bandwidth`, `filter_order`) at the true frequency, as in a sensor that filters before
    it samples. A lever arm does not change the amplitudes.
    """

    rotation_rate: float = non_negative(
        0.0, 'Hz', 'Rotation rate of the engine, turns per second; 0: no engine.'
    )
    rotation_std: float = non_negative(0.0, 'Hz', 'Standard deviation of the rotation rate.')
    rotation_time: float = positive(10.0, 's', 'Correlation time of the rotation rate.')
    harmonics: tuple[float, ...] = non_negative(
        (), '1', 'Size of the lines at 1, 2, 3, ... times that rate, relative to the amplitudes.'
    )
    gyroscope: Axes = axes('rad/s', 'Amplitude at each axis of the gyroscope.', minimum=0.0)
    accelerometer: Axes = axes(
        'm/s^2', 'Amplitude at each axis of the accelerometer.', minimum=0.0
    )

    def start(
        self, seed: int, run: str, sensor: str, triad: str, gain: LineGain
    ) -> VibrationProcess | None:
        """Return the vibration of `triad`, `gyroscope` or `accelerometer`; None if it has none."""
        amplitude = np.asarray(getattr(self, triad))
        if not (self.rotation_rate and any(self.harmonics) and amplitude.any()):
            return None
        phases = stream(seed, run, sensor, f'{triad}_vibration').random((len(self.harmonics), 3))
        wander = GaussMarkov(
            stream(seed, run, sensor, 'rotation'), self.rotation_std, self.rotation_time, axes=1
        )
        lines = [
            (order, size * gain.magnitude(order * self.rotation_rate) * amplitude, phase)
            for order, (size, phase) in enumerate(zip(self.harmonics, phases, strict=True), 1)
        ]
        return VibrationProcess(self.rotation_rate, wander, lines)


@dataclasses.dataclass(frozen=True)
class LineGain:
    """Gain of a low pass of that order with -3 dB at `bandwidth`, Hz; 0 stands for no filter."""

    bandwidth: float
    order: int

    def magnitude(self, frequency: float) -> float:
        """Return the gain at a frequency, Hz."""
        if not self.bandwidth:
            return 1.0
        return 1.0 / math.sqrt(1.0 + (frequency / self.bandwidth) ** (2 * self.order))


class VibrationProcess:
    """Vibration of one triad as time goes on; see `Vibration`.

    `lines` are the order, the amplitudes `(3,)` and the phases `(3,)` in cycles of each line.
    """

    def __init__(
        self, rate: float, wander: GaussMarkov, lines: list[tuple[int, FloatArray, FloatArray]]
    ) -> None:
        self._rate, self._wander, self._lines = rate, wander, lines
        self._cycles = 0.0

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the vibration at the next samples, `(n, 3)`, at intervals `dt` `(n,)` s."""
        turned_cycles = (self._rate + self._wander.advance(dt)[:, 0]) * dt
        cycles = np.add.accumulate(np.concatenate([[self._cycles], turned_cycles]))
        self._cycles = float(cycles[-1])
        vibration = np.zeros((len(dt), 3))
        for order, amplitude, phase in self._lines:
            angle = 2.0 * math.pi * (order * cycles[1:, None] + phase)
            vibration = vibration + amplitude * np.sin(angle)
        return vibration


class ChainTriad:
    """Errors of three axes, with the equations of `ImuChain`.

    Sources that are zero are left out. Each source has its own random stream, from `rng`, so this
    changes no other source.
    """

    def __init__(
        self,
        part: ErrorChain,
        temperature: Temperature,
        rng: Streams,
        supply: Supply | None = None,
        vibration: VibrationProcess | None = None,
    ) -> None:
        self._part = part
        self._vibration = vibration
        self._sensitivity = sensitivity(part.scale, part.cross_axis_upper, part.cross_axis_lower)
        self._temperature = temperature.start()
        self._supply = (supply or Supply()).start()
        self._white = processes.WhiteDensity(
            rng('white'), part.noise_density, correlation=part.noise_correlation
        )
        self._integral = processes.IntegralNoise(rng('integral'), part.quantisation_noise)
        self._constant = processes.TurnOn(rng('turn_on'), part.turn_on_std, part.constant_bias)
        self._bias_processes: list[processes.Process] = []
        if any(part.gauss_markov_std):
            self._bias_processes.append(
                processes.GaussMarkov(
                    rng('gauss_markov'), part.gauss_markov_std, part.gauss_markov_time
                )
            )
        if any(part.random_walk):
            self._bias_processes.append(processes.RandomWalk(rng('bias'), part.random_walk))
        if any(part.bias_instability):
            span = part.bias_instability_from, part.bias_instability_to
            flicker = processes.Flicker(rng('flicker'), part.bias_instability, *span)
            self._bias_processes.append(flicker)
        if any(part.rate_ramp):
            self._bias_processes.append(Ramp(part.rate_ramp))
        self._filter = LowPass(part.bandwidth, part.filter_order) if part.bandwidth else None
        self._counter = IncrementQuantiser(part.increment_quantisation)
        self.bias: FloatArray = np.array(self._constant.value)
        for process in self._bias_processes:
            self.bias = self.bias + process.value

    def corrupt(
        self, truth: FloatArray, dt: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return measured values, the bias in them and the variance of the white noise, `(n, 3)`.

        True values are `(n, 3)` at intervals `dt` `(n,)` s.
        """
        temperature_excess, supply_excess = self._temperature.advance(dt), self._supply.advance(dt)
        bias = self._constant.advance(dt) + temperature_excess * self._part.temperature_bias
        bias = bias + supply_excess * self._part.supply_bias
        for process in self._bias_processes:
            bias = bias + process.advance(dt)
        if len(bias):
            self.bias = bias[-1].copy()
        white, variance = self._white.advance(dt), self._white.variance(dt)
        if any(self._part.quantisation_noise):
            white = white + self._integral.advance(dt)
        scaled = self._apply_sensitivity(truth, temperature_excess, supply_excess)
        clean = scaled + bias
        if self._filter is None:
            values = clean + white
        else:
            values, variance = self._filter.filter(clean, white, variance, dt)
        if self._vibration is not None:
            shaken = self._apply_sensitivity(
                truth + self._vibration.advance(dt), temperature_excess, supply_excess
            )
            values = values + (shaken - scaled)
        values = quantise(saturate(values, self._part.range), self._part.quantisation)
        return self._counter.apply(values, dt), bias, variance

    def _apply_sensitivity(
        self, truth: FloatArray, temperature_excess: FloatArray, supply_excess: FloatArray
    ) -> FloatArray:
        part = self._part
        # A matrix product may add in another order for another number of rows.
        s = self._sensitivity
        scaled = truth[:, [0]] * s[:, 0] + truth[:, [1]] * s[:, 1] + truth[:, [2]] * s[:, 2]
        scaled = scaled * (
            1.0 + temperature_excess * part.temperature_scale + supply_excess * part.supply_scale
        )
        return np.asarray(scaled + (scaled**2 * part.quadratic + scaled**3 * part.cubic))


def sensitivity(scale: ArrayLike, upper: ArrayLike, lower: ArrayLike) -> FloatArray:
    """Return the sensitivity S, `(3, 3)`, of each axis (rows) to x, y, z (columns)."""
    matrix = np.eye(3) + np.diag(np.asarray(scale))
    matrix[[0, 0, 1], [1, 2, 2]] = upper
    matrix[[1, 2, 2], [0, 0, 1]] = lower
    return matrix


@dataclasses.dataclass(frozen=True)
class ErrorChain(AxisParameters):
    """Errors of three axes, in the order in which they act; see `ImuChain`."""

    scale: Axes = axes('1', 'Scale factor error of each axis.')
    cross_axis_upper: Axes = axes(
        '1', 'Sensitivity of x to y, x to z, y to z: small misalignment angles, rad.'
    )
    cross_axis_lower: Axes = axes(
        '1', 'Sensitivity of y to x, z to x, z to y: small misalignment angles, rad.'
    )
    temperature_scale: Axes = axes(
        '1/K', 'Scale factor error per kelvin above the reference temperature.'
    )
    quadratic: Axes = axes('1/({u})', 'Non-linearity: factor of the square of the value.')
    cubic: Axes = axes(
        '1/({u})^2',
        'Non-linearity: factor of the cube of the value; 4 p / range^2 for a deviation of p of '
        'full scale from the best straight line.',
    )
    supply_scale: Axes = axes('1/V', 'Scale factor error per volt above the reference voltage.')
    constant_bias: Axes = axes('{u}', 'Constant bias, the same in every run.')
    turn_on_std: Axes = axes(
        '{u}', 'Standard deviation of a bias drawn at switch-on.', minimum=0.0
    )
    gauss_markov_std: Axes = axes(
        '{u}', 'Stationary standard deviation of a Gauss-Markov bias.', minimum=0.0
    )
    gauss_markov_time: Axes = axes(
        's', 'Correlation time of the Gauss-Markov bias.', 100.0, above=0.0
    )
    random_walk: Axes = axes(
        '{u}/s/sqrt(Hz)', 'Rate random walk K, which starts at zero.', minimum=0.0
    )
    bias_instability: Axes = axes('{u}', 'Flicker B: Allan plateau divided by 0.664.', minimum=0.0)
    bias_instability_from: float = positive(1.0, 's', 'Shortest averaging time of the plateau.')
    bias_instability_to: float = positive(10000.0, 's', 'Longest averaging time of the plateau.')
    rate_ramp: Axes = axes('{u}/s', 'Rate ramp R: drift of the bias since switch-on.')
    temperature_bias: Axes = axes('{u}/K', 'Bias per kelvin above the reference temperature.')
    supply_bias: Axes = axes('{u}/V', 'Bias per volt above the reference voltage.')
    noise_density: Axes = axes(
        '{u}/sqrt(Hz)', 'White noise N: Allan deviation at 1 s.', minimum=0.0
    )
    noise_correlation: Axes = axes(
        '1',
        'Correlation of the white noise of x with y, x with z, y with z.',
        minimum=-1.0,
        maximum=1.0,
    )
    quantisation_noise: Axes = axes(
        '{i}', 'White noise of the integral: the Q of an Allan plot, of slope -1.', minimum=0.0
    )
    bandwidth: float = non_negative(
        0.0, 'Hz', 'Cut-off frequency (-3 dB) of the low pass; 0: no low pass.'
    )
    filter_order: int = parameter(
        2, '1', 'Order of the low pass: 1, or 2 (Butterworth).', minimum=1, maximum=2
    )
    range: Axes = axes('{u}', 'Largest absolute value that is reported; 0: no limit.', minimum=0.0)
    quantisation: Axes = axes(
        '{u}', 'Quantisation step of the reported values; 0: no quantisation.', minimum=0.0
    )
    increment_quantisation: Axes = axes(
        '{i}',
        'Quantisation step of the integral of a counting sensor; 0: no quantisation.',
        minimum=0.0,
    )

    def bias_after(self, duration: float) -> float:
        """Return the standard deviation of the bias after `duration` s, of the worst axis.

        A constant bias counts as a standard deviation.
        """
        parts = (
            self.constant_bias,
            self.turn_on_std,
            self.gauss_markov_std,
            self.bias_instability,
            np.asarray(self.random_walk) * np.sqrt(duration),
            np.asarray(self.rate_ramp) * duration,
        )
        return float(np.linalg.norm(np.stack([np.asarray(part) for part in parts]), axis=0).max())

    def _check(self) -> None:
        try:
            processes.correlation_root(self.noise_correlation)
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
class GyroscopeChain(OfGyroscope, ErrorChain):
    """Errors of a gyroscope; none by default."""

    earth_in_bias: bool = parameter(
        False,
        '',
        'True if constant_bias was measured at rest and so contains the rotation rate of '
        'the Earth. The rotation is then not simulated under earth: auto, and earth: '
        'rotating is refused.',
    )


class AccelerometerChain(OfAccelerometer, ErrorChain):
    """Errors of an accelerometer; none by default."""


@dataclasses.dataclass(frozen=True)
class ImuChain(ImuModel):
    """A generic IMU with the errors of data sheets and Allan plots, each zero unless given.

    Per triad and sample, in this order, with the temperature T and the supply voltage V above
    their references and the time t since switch-on::

        s = S (1 + temperature_scale T + supply_scale V) x,   x the true values
            S = I + diag(scale) + cross_axis
        b = constant + turn_on + Gauss-Markov + random walk + flicker
            + rate_ramp t + temperature_bias T + supply_bias V
        y = low_pass(s + quadratic s^2 + cubic s^3 + b
                     + noise_density w / sqrt(dt) + quantisation_noise (v - v') / dt)
        y = y + effect of `vibration` on s + quadratic s^2 + cubic s^3
        y = quantise(saturate(y)), then multiples of increment_quantisation in the integral

    w and v are fresh standard normals; `noise_correlation` correlates w among the axes, and v' is
    the v of the previous sample. Scale and cross-axis terms fill all nine entries of S, so any
    sensitivity matrix is possible. `noise_density` and `noise_correlation` give any covariance of
    the white noise, which the messages state with its off-diagonals. S does not scale the bias.
    Noise is band-limited, clipped and rounded like the signal.

    Every process is discretised exactly, so the Allan curve does not depend on the rate::

        avar(tau) = 3 Q^2/tau^2 + N^2/tau + (0.664 B)^2 + K^2 tau/3 + R^2 tau^2/2

    with Q = quantisation_noise, N = noise_density, B = bias_instability, K = random_walk and R =
    rate_ramp.

    - `bias_instability` is flicker noise: its plateau is flat (to 2 %) over the given span of
      averaging times and ends there. A Gauss-Markov bias has a hump instead, 0.62 gauss_markov_std
      high at 1.9 gauss_markov_time.
    - `bandwidth` filters piecewise constant input. It keeps the density inside the band at every
      rate and aliases nothing into it. The stated covariance is the variance of the filtered
      noise. A bandwidth above half the rate has almost no effect. Only `vibration` aliases.
    - `quantisation` rounds values; its error is white if the noise exceeds the step.
      `increment_quantisation` counts, like sensors that report increments of angle or velocity. If
      the motion crosses many steps per sample, this equals quantisation_noise with Q = step /
      sqrt(12). `quantisation_noise` is the Gaussian term of an Allan fit, whatever its origin.
    - The published bias is b, without saturation, rounding and scale errors.

    Not modelled: g-sensitivity. If there is a `bandwidth`, the non-linearity rectifies the
    filtered vibration only.

    References
    ----------
    [IEEE952], annex C; [IEEE1293], the polynomial; [Kalibr]; [GnssInsSim]; sensitivity, bias and
    noise as in [Ligorio2015], equation 4, with range and resolution last.
    """

    kind: ClassVar[str] = 'chain'

    gyroscope: GyroscopeChain = dataclasses.field(default_factory=GyroscopeChain)
    accelerometer: AccelerometerChain = dataclasses.field(default_factory=AccelerometerChain)
    temperature: Temperature = dataclasses.field(default_factory=Temperature)
    supply: Supply = dataclasses.field(default_factory=Supply)
    vibration: Vibration = dataclasses.field(default_factory=Vibration)

    def triad(self, part: ErrorChain, rng: Streams) -> AxisErrors:
        """Return the errors of a triad without vibration."""
        return ChainTriad(part, self.temperature, rng, self.supply)

    def triads(self, seed: int, run: str, sensor: str) -> tuple[AxisErrors, AxisErrors]:
        """Return the errors of gyroscope and accelerometer, with the vibration of one engine."""

        def start_triad(name: str, part: ErrorChain) -> AxisErrors:
            gain = LineGain(part.bandwidth, part.filter_order)
            vibration = self.vibration.start(seed, run, sensor, name, gain)
            rng = streams(seed, run, sensor, name)
            return ChainTriad(part, self.temperature, rng, self.supply, vibration)

        return (
            start_triad('gyroscope', self.gyroscope),
            start_triad('accelerometer', self.accelerometer),
        )

    def gyroscope_bias(self, duration: float) -> float:
        """Return the standard deviation of the gyroscope's bias after `duration` s, rad/s.

        It is 0 if the bias contains the rate of the Earth: the bias proper is then unknown.
        """
        return 0.0 if self.gyroscope.earth_in_bias else self.gyroscope.bias_after(duration)

    def start(
        self,
        seed: int,
        run: str,
        sensor: str = 'imu',
        *,
        gravity: float = STANDARD_GRAVITY,
        earth: TurningEarth | None = None,
    ) -> ImuSensor:
        """Switch a sensor on; see `ImuModel.start`.

        Raises
        ------
        SensorError
            When the Earth rotates and its rate is in `constant_bias` too.
        """
        if self.gyroscope.earth_in_bias and earth is not None and not earth.automatic:
            raise SensorError(
                'the bias of the gyroscope contains the rate of the Earth (earth_in_bias), which '
                'earth: rotating would add again; subtract it from constant_bias and remove '
                'earth_in_bias, or use a world with earth: flat'
            )
        return super().start(seed, run, sensor, gravity=gravity, earth=earth)

    def reported_covariances(self) -> tuple[ReportedCovariance, ReportedCovariance]:
        """Return the covariances of the white noise, with its correlation."""
        if self.covariance == 'unknown':
            return super().reported_covariances()
        return (
            WhiteNoiseCovariance(self.gyroscope.noise_correlation),
            WhiteNoiseCovariance(self.accelerometer.noise_correlation),
        )
