# SPDX-License-Identifier: Apache-2.0
"""The position errors of the GPS of Chrono, CARLA and Gazebo."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

import numpy as np

from sim_sensors.core.compilation import compiled
from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.core.parameters import parameter
from sim_sensors.core.seeding import stream, streams
from sim_sensors.core.shared_parameters import axes
from sim_sensors.gps.position_noise import PositionNoise, ProcessSum, UpstreamNoise
from sim_sensors.noise.processes import GaussMarkov, Process, White


@dataclasses.dataclass(frozen=True)
class RandomWalkNoise(PositionNoise):
    """Smooth bounded wander of the position (Ch:RW); see `sim_sensors.gps.simulators.BoundedWalk`.

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


# Intervals longer than a whole number of steps by less than this fraction of a step are rounding
# dust of float seconds: without it a dust of 1e-17 s would cost an extra step and an extra draw.
_DUST = 1e-6


class BoundedWalk:
    """Position error e driven by a clipped random acceleration, with the speed limited.

    Each interval is integrated with steps h = min(1/model_rate, what remains), per axis::

        a  = clip(N(-pull std e / error_scale, std), -acceleration_limit, +acceleration_limit)
        s += a h;   s *= speed_limit / |s| where |s| > speed_limit (3-D norm)
        e += s h                                  (the new s: symplectic Euler)

    `std` is per step, so the statistics depend on `model_rate`, but not on the rate of the
    samples as long as `model_rate` is a multiple of it. The parameters are those of
    `RandomWalkNoise`, `rng` the stream of this source alone.

    ChNoiseRandomWalks of [Chrono] with its hard-coded pull 0.2 and error scale 1 m made
    parameters, and its unused mean argument left out ([Caldararu2022]).
    """

    def __init__(
        self,
        rng: np.random.Generator,
        *,
        acceleration_std: float,
        model_rate: float,
        speed_limit: float,
        acceleration_limit: float,
        error_scale: float,
        pull: float,
    ) -> None:
        self._rng = rng
        self._step = 1.0 / model_rate
        self._std = acceleration_std
        self._gradient = -pull * acceleration_std / error_scale
        self._speed_limit = speed_limit or math.inf
        self._acceleration_limit = acceleration_limit or math.inf
        self.value: FloatArray = np.zeros(3)
        self.speed: FloatArray = np.zeros(3)

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the position error at the next samples, `(n, 3)` m; `dt` is `(n,)` s, >= 0."""
        steps = np.ceil(dt / self._step - _DUST).astype(np.int64)
        normals = self._rng.standard_normal((int(steps.sum()), 3))
        return _integrate(
            self.value,
            self.speed,
            dt,
            steps,
            normals,
            self._step,
            self._std,
            self._gradient,
            self._speed_limit,
            self._acceleration_limit,
        )


@compiled
def _integrate(
    e: FloatArray,
    s: FloatArray,
    dt: FloatArray,
    steps: IntArray,
    normals: FloatArray,
    step: float,
    std: float,
    gradient: float,
    speed_limit: float,
    acceleration_limit: float,
) -> FloatArray:
    """Advance e and s in place; return e after each interval."""
    out = np.empty((dt.shape[0], 3))
    draw = 0
    for k in range(dt.shape[0]):
        for i in range(steps[k]):
            h = step if i < steps[k] - 1 else dt[k] - step * (steps[k] - 1)
            for axis in range(3):
                a = gradient * e[axis] + std * normals[draw, axis]
                a = min(max(a, -acceleration_limit), acceleration_limit)
                s[axis] += a * h
            norm = math.sqrt(s[0] * s[0] + s[1] * s[1] + s[2] * s[2])
            if norm > speed_limit:
                for axis in range(3):
                    s[axis] *= speed_limit / norm
            for axis in range(3):
                e[axis] += s[axis] * h
            draw += 1
        for axis in range(3):
            out[k, axis] = e[axis]
    return out


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
        rng = streams(seed, run, sensor, 'position')
        signs = rng('bias')
        drawn = np.asarray(self.bias_mean) + np.asarray(self.bias_std) * signs.standard_normal(3)
        bias = np.where(signs.random(3) < 0.5, -drawn, drawn)[horizontal]
        std, mean = np.asarray(self.std)[horizontal], np.asarray(self.mean)[horizontal]
        white = White(rng('white'), std, mean + bias)
        if not self.is_exact or not any(self.dynamic_bias_std):
            return white
        time = self.dynamic_bias_time
        wander = np.asarray(self.dynamic_bias_std) * math.sqrt(0.5 * time)
        return ProcessSum(white, GaussMarkov(rng('gauss_markov'), wander, time))
