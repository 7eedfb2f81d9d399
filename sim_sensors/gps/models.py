# SPDX-License-Identifier: Apache-2.0
"""How a GPS position errs: not at all, by white noise, by Chrono's bounded random walk, or as the
models of other modules say.
"""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

import numpy as np

from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import parameter, variants
from sim_sensors.core.seeding import stream
from sim_sensors.core.shared_parameters import axes
from sim_sensors.gps.hector import HectorPositionDrift
from sim_sensors.gps.position_noise import BoundedWalk, PositionNoise, ProcessSum, UpstreamNoise
from sim_sensors.noise.processes import GaussMarkov, Process, White

# How the positions of other simulators' GPS err, where a set of numbers does not say
# it.

_ZERO = (0.0, 0.0, 0.0)


@dataclasses.dataclass(frozen=True)
class GeodeticNoise(PositionNoise):
    """White noise of latitude and longitude in degrees and of altitude in metres (CARLA).

    So the error in metres east shrinks towards the poles. Source: [CARLA]
    GnssSensor.
    """

    kind: ClassVar[str] = 'geodetic'

    latitude_bias: float = parameter(0.0, 'deg', 'Constant error of the latitude.')
    latitude_std: float = parameter(0.0, 'deg', 'Deviation of each latitude.', minimum=0.0)
    longitude_bias: float = parameter(0.0, 'deg', 'Constant error of the longitude.')
    longitude_std: float = parameter(0.0, 'deg', 'Deviation of each longitude.', minimum=0.0)
    altitude_bias: float = parameter(0.0, 'm', 'Constant error of the altitude.')
    altitude_std: float = parameter(0.0, 'm', 'Deviation of each altitude.', minimum=0.0)

    @property
    def is_angular(self) -> bool:
        """True: degrees."""
        return True

    def start(self, seed: int, run: str, sensor: str) -> Process:
        """Return the white noise."""
        return White(
            stream(seed, run, sensor, 'position_white'),
            (self.longitude_std, self.latitude_std, self.altitude_std),
            (self.longitude_bias, self.latitude_bias, self.altitude_bias),
        )


@dataclasses.dataclass(frozen=True)
class GazeboPositionNoise(UpstreamNoise):
    """The noise block of an SDF file, as GPS of Gazebo classic and NavSat of new Gazebo have it.

    e = N(mean, std) + bias + d: bias = +-N(bias_mean, bias_std), drawn once with a random sign; d
    a Gauss-Markov process of the driving density dynamic_bias_std, so of deviation
    dynamic_bias_std sqrt(dynamic_bias_time / 2), from its stationary law. Classic has no d.

    As upstream (new Gazebo's NavSat): the numbers of east are degrees of latitude and longitude;
    one bias is drawn for both; d never runs. Source: [GazeboClassic]
    GaussianNoiseModel; [GzSensors] GaussianNoiseModel and NavSatSensor.
    """

    kind: ClassVar[str] = 'gazebo'

    mean: tuple[float, float, float] = axes('m', 'Mean of the noise of each fix.')
    std: tuple[float, float, float] = axes('m', 'Deviation of the noise of each fix.', minimum=0.0)
    bias_mean: tuple[float, float, float] = axes(
        'm', 'Mean of the constant bias before it gets its random sign.'
    )
    bias_std: tuple[float, float, float] = axes(
        'm', 'Deviation of the constant bias before it gets its sign.', minimum=0.0
    )
    dynamic_bias_std: tuple[float, float, float] = axes(
        'm/sqrt(s)', 'Driving density of the varying bias.', minimum=0.0
    )
    dynamic_bias_time: float = parameter(
        3600.0, 's', 'Correlation time of the varying bias.', above=0.0
    )

    @property
    def is_angular(self) -> bool:
        """Whether it repeats the degrees of new Gazebo."""
        return not self.is_exact

    def start(self, seed: int, run: str, sensor: str) -> Process:
        """Return noise with the biases drawn."""
        horizontal = [0, 1, 2] if self.is_exact else [0, 0, 2]
        rng = stream(seed, run, sensor, 'position_bias')
        drawn = np.asarray(self.bias_mean) + np.asarray(self.bias_std) * rng.standard_normal(3)
        bias = np.where(rng.random(3) < 0.5, -drawn, drawn)[horizontal]
        std, mean = np.asarray(self.std)[horizontal], np.asarray(self.mean)[horizontal]
        white = White(stream(seed, run, sensor, 'position_white'), std, mean + bias)
        if not self.is_exact or not any(self.dynamic_bias_std):
            return white
        time = self.dynamic_bias_time
        wander = np.asarray(self.dynamic_bias_std) * math.sqrt(0.5 * time)
        rng = stream(seed, run, sensor, 'position_gauss_markov')
        return ProcessSum(white, GaussMarkov(rng, wander, time))


@dataclasses.dataclass(frozen=True)
class HectorNoise(UpstreamNoise):
    """Hector's sensor models of position and velocity, of which one drives the other.

    e = offset + d + N(0, gaussian_noise); d' = -drift_frequency d + v + noise, where v is the
    drift of the velocity and both noises give a drift of its own deviation. d starts with
    `drift`, v with `velocity_drift`.

    As upstream the noise of a step is proportional to dt instead of sqrt(dt), so that deviations
    depend on the rate. Source: [Hector] sensor_model.h, gazebo_ros_gps.cpp.
    """

    kind: ClassVar[str] = 'hector'

    offset: tuple[float, float, float] = axes('m', 'Constant error.')
    drift: tuple[float, float, float] = axes(
        'm', 'Deviation of the drift of the position.', minimum=0.0
    )
    drift_frequency: float = parameter(
        1.0 / 3600.0, 'Hz', 'One over the correlation time of that drift.', above=0.0
    )
    gaussian_noise: tuple[float, float, float] = axes(
        'm', 'Deviation of the noise of each fix.', minimum=0.0
    )
    velocity_drift: tuple[float, float, float] = axes(
        'm/s', 'Deviation of the drift of the velocity.', minimum=0.0
    )
    velocity_drift_frequency: float = parameter(
        1.0 / 3600.0,
        'Hz',
        'One over the correlation time of the drift of the velocity.',
        above=0.0,
    )

    def start(self, seed: int, run: str, sensor: str) -> Process:
        """Return the noise with its drifts drawn."""
        drift = HectorPositionDrift(
            stream(seed, run, sensor, 'position_drift'),
            (self.drift, self.velocity_drift),
            (self.drift_frequency, self.velocity_drift_frequency),
            is_exact=self.is_exact,
        )
        rng = stream(seed, run, sensor, 'position_white')
        return ProcessSum(White(rng, self.gaussian_noise, self.offset), drift)


@dataclasses.dataclass(frozen=True)
class NoNoise(PositionNoise):
    """No position error (baseline, AirSim)."""

    kind: ClassVar[str] = 'none'

    def start(self, seed: int, run: str, sensor: str) -> Process:
        """Return a process that is zero."""
        return _Zero()


class _Zero:
    """The process that is always zero; it draws nothing."""

    def __init__(self) -> None:
        self.value: FloatArray = np.zeros(3)

    def advance(self, dt: FloatArray) -> FloatArray:
        return np.zeros((len(dt), 3))


@dataclasses.dataclass(frozen=True)
class GaussianNoise(PositionNoise):
    """White position error, independent from fix to fix: e = N(mean, std) per axis (Ch:Gauss).

    Source: [Chrono] ChNoiseNormal; defaults of the paper's demo [ART].
    """

    kind: ClassVar[str] = 'gaussian'

    mean: tuple[float, float, float] = axes('m', 'Mean error (east, north, up).')
    std: tuple[float, float, float] = axes(
        'm', 'Standard deviation of each fix (east, north, up).', 0.03, minimum=0.0
    )

    def start(self, seed: int, run: str, sensor: str) -> Process:
        """Return the white noise."""
        return White(stream(seed, run, sensor, 'position_white'), self.std, self.mean)


@dataclasses.dataclass(frozen=True)
class RandomWalkNoise(PositionNoise):
    """Smooth bounded wander of the position (Ch:RW); see `sim_sensors.gps.position_noise`.

    The first fix has no error. Source: [Chrono] ChNoiseRandomWalks, [Caldararu2022];
    defaults of the paper's demo [ART].
    """

    kind: ClassVar[str] = 'chrono_random_walk'

    acceleration_std: float = parameter(
        0.047, 'm/s^2', 'Acceleration drawn at each step of the walk, per axis.', minimum=0.0
    )
    model_rate: float = parameter(
        100.0,
        'Hz',
        'Steps of the walk per second; not the rate of the GPS.',
        above=0.0,
        read_only=True,
    )
    speed_limit: float = parameter(
        0.016, 'm/s', 'Largest speed of the error, in 3-D; 0: no limit.', minimum=0.0
    )
    acceleration_limit: float = parameter(
        0.152, 'm/s^2', 'Largest acceleration of the error, per axis; 0: no limit.', minimum=0.0
    )
    error_scale: float = parameter(
        1.0, 'm', 'Scale E_max of the pull towards zero; not a bound.', above=0.0
    )
    pull: float = parameter(0.2, '1', 'Strength c of the pull towards zero.', minimum=0.0)

    def start(self, seed: int, run: str, sensor: str) -> Process:
        """Return the walk at zero error and speed."""
        return BoundedWalk(
            stream(seed, run, sensor, 'position_walk'),
            acceleration_std=self.acceleration_std,
            model_rate=self.model_rate,
            speed_limit=self.speed_limit,
            acceleration_limit=self.acceleration_limit,
            error_scale=self.error_scale,
            pull=self.pull,
        )


POSITION_NOISES = variants('a position noise', PositionNoise)
