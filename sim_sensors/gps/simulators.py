# SPDX-License-Identifier: Apache-2.0
"""The position errors of the GPS of Chrono, CARLA and Gazebo."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

import numpy as np

from sim_sensors.core.compilation import compiled
from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.core.parameters import non_negative, parameter, positive
from sim_sensors.core.seeding import stream, streams
from sim_sensors.core.shared_parameters import Axes, axes
from sim_sensors.noise.processes import GaussMarkov, Process, White
from .position_noise import PositionNoise, ProcessSum, UpstreamNoise


@dataclasses.dataclass(frozen=True)
class RandomWalkNoise(PositionNoise):
    """Ch:RW, a bounded random walk: smooth wander of the position.

    The error e and its speed s are zero at the first fix. Each interval between fixes is
    integrated with steps h = min(1/model_rate, what remains). Per axis::

        a = clip(N(-pull acceleration_std e / error_scale, acceleration_std), +-acceleration_limit)
        s = s + a h;    s = s speed_limit/|s|  where |s| > speed_limit  (3-D norm)
        e = e + s h     (the new s: symplectic Euler)

    `acceleration_std` is per step, so the statistics depend on `model_rate`. They do not depend on
    the rate of the fixes. A remainder below 1e-6 of a step is rounding of float seconds and takes
    no step.

    Without both limits and without pull, Var s = acceleration_std^2 h t and Var e =
    acceleration_std^2 h t^3/3. With pull e is an undamped oscillator of frequency sqrt(pull
    acceleration_std / error_scale), 65 s for the defaults; it is stable while this frequency times
    h is below 2. With the speed limit the process is stationary: the speed is uniform in the ball,
    speed_limit/sqrt(5) per axis (0.0072 m/s at 100 Hz, 0.0081 at 10 Hz). The position errs by
    about 0.08 m per axis after 30 s at 100 Hz, and by 0.093 m in the end at 10 Hz. A finite
    difference of the error never exceeds speed_limit.

    The defaults are those of the paper's demo. Chrono's demos have 0.016, 100, 0.03, 0.005, which
    clip 75 % of the draws. `pull` and `error_scale` are constants in Chrono's code (0.2 and 1 m).
    The paper calls the latter a maximum error, but it is a scale and bounds nothing. Chrono stores
    a mean that it never uses, and makes an extra draw; both are left out.

    References
    ----------
    [Chrono] `ChNoiseRandomWalks`; [Caldararu2022]; [ART].
    """

    kind: ClassVar[str] = 'chrono_random_walk'

    acceleration_std: float = non_negative(
        0.047, 'm/s^2', 'Acceleration drawn at each step of the walk, per axis.'
    )
    model_rate: float = positive(
        100.0, 'Hz', 'Steps of the walk per second; not the rate of the GPS.', read_only=True
    )
    speed_limit: float = non_negative(
        0.016, 'm/s', 'Largest speed of the error, in 3-D; 0: no limit.'
    )
    acceleration_limit: float = non_negative(
        0.152, 'm/s^2', 'Largest acceleration of the error, per axis; 0: no limit.'
    )
    error_scale: float = positive(1.0, 'm', 'Scale E_max of the pull towards zero; not a bound.')
    pull: float = non_negative(0.2, '1', 'Strength c of the pull towards zero.')

    def start(self, seed: int, run: str, sensor: str) -> Process:
        """Return the walk at zero error and speed."""
        return BoundedWalk(stream(seed, run, sensor, 'position_walk'), self)


# Intervals longer than a whole number of steps by less than this fraction of a step are rounding
# dust of float seconds: without it a dust of 1e-17 s would cost an extra step and an extra draw.
_DUST = 1e-6


class BoundedWalk:
    """Position error e driven by a clipped random acceleration, with the speed limited.

    The law and its parameters are those of `RandomWalkNoise`; `rng` is the stream of this source
    alone. ChNoiseRandomWalks of [Chrono] with its hard-coded pull 0.2 and error scale 1 m made
    parameters, and its unused mean argument left out ([Caldararu2022]).
    """

    def __init__(self, rng: np.random.Generator, noise: RandomWalkNoise) -> None:
        self._rng, self._noise = rng, noise
        self._step = 1.0 / noise.model_rate
        self.value: FloatArray = np.zeros(3)
        self.speed: FloatArray = np.zeros(3)

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the position error at the next samples, `(n, 3)` m; `dt` is `(n,)` s, >= 0."""
        steps = np.ceil(dt / self._step - _DUST).astype(np.int64)
        normals = self._rng.standard_normal((int(steps.sum()), 3))
        noise = self._noise
        gradient = -noise.pull * noise.acceleration_std / noise.error_scale
        limits = noise.speed_limit or math.inf, noise.acceleration_limit or math.inf
        law = noise.acceleration_std, gradient, *limits
        return _integrate(self.value, self.speed, dt, steps, normals, self._step, *law)


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
    """CARLA's GNSS: white noise in degrees.

    A standard deviation of 1e-5 degrees is 1.11 m north, and 1.11 m times the cosine of the
    latitude east. CARLA's defaults are zero. 5e-6 for all three axes is what its leaderboard sets:
    0.56 m north and 5 micrometres up. No covariance is stated.

    CARLA computes the position on a sphere: `geodesy: carla_mercator`, in newer builds
    `carla_transverse_mercator`.

    References
    ----------
    [CARLA] `GnssSensor.cpp`, `GeoLocation.cpp`.
    """

    kind: ClassVar[str] = 'geodetic'

    latitude_bias: float = parameter(0.0, 'deg', 'Constant error of the latitude.')
    latitude_std: float = non_negative(0.0, 'deg', 'Deviation of each latitude.')
    longitude_bias: float = parameter(0.0, 'deg', 'Constant error of the longitude.')
    longitude_std: float = non_negative(0.0, 'deg', 'Deviation of each longitude.')
    altitude_bias: float = parameter(0.0, 'm', 'Constant error of the altitude.')
    altitude_std: float = non_negative(0.0, 'm', 'Deviation of each altitude.')

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
    """The noise block of an SDF file: Gazebo classic's GPS and new Gazebo's NavSat.

    Per axis::

        e = N(mean, std) + b + d

    b = +-N(bias_mean, bias_std) is drawn once, with a random sign. d is a Gauss-Markov process
    from its stationary law. Its standard deviation is dynamic_bias_std sqrt(dynamic_bias_time /
    2), its correlation exp(-lag / dynamic_bias_time).

    All defaults of Gazebo are zero; the numbers of the presets are ours. Classic has no d; its ROS
    2 plugin states std^2 with type diagonal_known, which leaves out b. ros_gz states nothing
    (zeros, unknown). `precision`, which rounds the reported value, is left out.

    Notes
    -----
    `as_upstream` repeats the defects of new Gazebo's NavSat; Gazebo classic has none of them:

    - The numbers of the first axis are degrees, for latitude and for longitude, although SDF says
      metres: 0.3 is 33 km.
    - One instance serves both, so latitude and longitude have the same b.
    - d never moves, because the sensor does not pass the time. (In the IMU, where it moves, it
      also lets bias_mean decay; here b is constant and d is added.)

    References
    ----------
    [GazeboClassic] `GaussianNoiseModel.cc`, `GpsSensor.cc`; [GzSensors] `GaussianNoiseModel.cc`,
    `NavSatSensor.cc`.
    """

    kind: ClassVar[str] = 'gazebo'

    mean: Axes = axes('m', 'Mean of the noise of each fix.')
    std: Axes = axes('m', 'Deviation of the noise of each fix.', minimum=0.0)
    bias_mean: Axes = axes('m', 'Mean of the constant bias before it gets its random sign.')
    bias_std: Axes = axes(
        'm', 'Deviation of the constant bias before it gets its sign.', minimum=0.0
    )
    dynamic_bias_std: Axes = axes('m/sqrt(s)', 'Driving density of the varying bias.', minimum=0.0)
    dynamic_bias_time: float = positive(3600.0, 's', 'Correlation time of the varying bias.')

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
