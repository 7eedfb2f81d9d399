# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Position errors of the simulated GPS of Chrono, CARLA, Gazebo, Webots, Hector and PX4."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import ClassVar

import numpy as np

from sim_sensors.core.compilation import row_loop
from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.core.parameters import non_negative, parameter, positive
from sim_sensors.core.seeding import Streams, stream, streams
from sim_sensors.core.shared_parameters import Axes, axes, share
from sim_sensors.noise.processes import GaussMarkov, Process, White
from .gps import PositionNoise, ProcessSum, UpstreamNoise


@dataclasses.dataclass(frozen=True)
class RandomWalkNoise(PositionNoise):
    """Ch:RW, a bounded random walk: smooth wander of the position.

    The error e and its velocity s are zero at the first fix. Each interval between fixes is
    integrated in steps h of 1/model_rate, the last one shorter. Per axis::

        a = clip(N(-pull acceleration_std e / error_scale, acceleration_std), +-acceleration_limit)
        s = s + a h;    s = s speed_limit/|s|  where |s| > speed_limit  (3-D norm)
        e = e + s h     (the new s: symplectic Euler)

    `acceleration_std` is per step, so the statistics depend on `model_rate`, but not on a rate of
    the fixes that divides it. A remainder below 1e-6 of a step is a rounding error and is skipped.

    Without limits and pull, Var s = acceleration_std^2 h t and Var e =
    acceleration_std^2 h t^3/3. With a pull, e is an undamped oscillator of angular
    frequency sqrt(pull acceleration_std / error_scale), a period of 65 s for the defaults; it is
    stable while this frequency times h is below 2. With a speed limit, the process is
    stationary: s is uniform in a ball, with the standard deviation speed_limit/sqrt(5) per axis
    (0.0072 m/s for a model_rate of 100 Hz, 0.0081 m/s for 10 Hz). That of e is 0.08 m after 30 s
    for 100 Hz, and approaches 0.09 m for 10 Hz. Finite differences of e never exceed speed_limit.

    The defaults are those of the paper's demo. Chrono's demos have 0.016, 100, 0.03 and 0.005 for
    the first four parameters, which clips 75 % of the accelerations. `pull` and `error_scale` are
    constants in Chrono's code (0.2 and 1 m). The paper calls the latter a maximum error, but it
    bounds nothing. Chrono also has an unused mean and an extra draw; both are left out.

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


_REMAINDER = 1e-6


class BoundedWalk:
    """Position error e driven by a clipped random acceleration, with the speed limited.

    See `RandomWalkNoise` for equations and parameters. No other source may use the stream `rng`.
    """

    def __init__(self, rng: np.random.Generator, noise: RandomWalkNoise) -> None:
        self._rng, self._noise = rng, noise
        self._step = 1.0 / noise.model_rate
        self.value: FloatArray = np.zeros(3)
        self.speed: FloatArray = np.zeros(3)

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the position error at the next samples, `(n, 3)` m; `dt` is `(n,)` s, >= 0."""
        steps = np.ceil(dt / self._step - _REMAINDER).astype(np.int64)
        normals = self._rng.standard_normal((int(steps.sum()), 3))
        noise = self._noise
        gradient = -noise.pull * noise.acceleration_std / noise.error_scale
        limits = noise.speed_limit or math.inf, noise.acceleration_limit or math.inf
        parameters = noise.acceleration_std, gradient, *limits
        return _integrate(self.value, self.speed, dt, steps, normals, self._step, *parameters)


@row_loop
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
    """Return e after each interval, `(n, 3)`, and advance e and s in place."""
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
    latitude east. CARLA's defaults are zero. Its leaderboard sets 5e-6 for all three axes:
    0.56 m north and 5 micrometres up. No covariance is stated.

    CARLA computes the position on a sphere: `geodesy: carla_mercator`, in newer builds
    `carla_transverse_mercator`.

    References
    ----------
    [CARLA] `GnssSensor.cpp`, `GeoLocation.cpp`.
    """

    kind: ClassVar[str] = 'geodetic'

    latitude_bias: float = parameter(0.0, 'deg', 'Constant error of the latitude.')
    latitude_std: float = non_negative(0.0, 'deg', 'Standard deviation of each latitude.')
    longitude_bias: float = parameter(0.0, 'deg', 'Constant error of the longitude.')
    longitude_std: float = non_negative(0.0, 'deg', 'Standard deviation of each longitude.')
    altitude_bias: float = parameter(0.0, 'm', 'Constant error of the altitude.')
    altitude_std: float = non_negative(0.0, 'm', 'Standard deviation of each altitude.')

    @property
    def is_angular(self) -> bool:
        """True: the error is in degrees."""
        return True

    def start(self, seed: int, run: str, sensor: str) -> Process:
        """Return the white noise."""
        return White(
            stream(seed, run, sensor, 'position_white'),
            (self.longitude_std, self.latitude_std, self.altitude_std),
            (self.longitude_bias, self.latitude_bias, self.altitude_bias),
        )


@dataclasses.dataclass(frozen=True)
class GazeboClassicNoise(PositionNoise):
    """GPS of Gazebo classic: the noise block of an SDF file, in metres.

    Per axis::

        e = N(mean, std) + b

    b = +-N(bias_mean, bias_std) is drawn once, with a random sign. All defaults of Gazebo are
    zero; we chose the numbers of the preset. The ROS 2 plugin states std^2 with type
    diagonal_known, which leaves out b. `precision`, which rounds the position, is left out.

    References
    ----------
    [GazeboClassic] `GaussianNoiseModel.cc`, `GpsSensor.cc`; [GazeboRos] ros2.
    """

    kind: ClassVar[str] = 'gazebo_classic'

    mean: Axes = axes('m', 'Mean of the noise of each fix.')
    std: Axes = axes('m', 'Standard deviation of the noise of each fix.', minimum=0.0)
    bias_mean: Axes = axes('m', 'Mean of the constant bias before it gets its random sign.')
    bias_std: Axes = axes(
        'm', 'Standard deviation of the constant bias before it gets its random sign.', minimum=0.0
    )

    def start(self, seed: int, run: str, sensor: str) -> Process:
        """Return the noise, with its biases drawn."""
        return self.white_and_bias(streams(seed, run, sensor, 'position'), [0, 1, 2])

    def white_and_bias(self, rng: Streams, instances: list[int]) -> White:
        """Return the noise of three axes; `instances` has the index of the parameters of each."""
        biases = rng('bias')
        drawn = np.asarray(self.bias_mean) + np.asarray(self.bias_std) * biases.standard_normal(3)
        bias = np.where(biases.random(3) < 0.5, -drawn, drawn)[instances]
        std, mean = np.asarray(self.std)[instances], np.asarray(self.mean)[instances]
        return White(rng('white'), std, mean + bias)


@dataclasses.dataclass(frozen=True)
class GazeboPositionNoise(UpstreamNoise, GazeboClassicNoise):
    """NavSat of new Gazebo: the noise block of an SDF file.

    Per axis::

        e = N(mean, std) + b + d

    b = +-N(bias_mean, bias_std) is drawn once, with a random sign. d is a stationary
    Gauss-Markov process. Its standard deviation is dynamic_bias_std sqrt(dynamic_bias_time / 2),
    its correlation exp(-lag / dynamic_bias_time). All defaults of Gazebo are zero; the numbers
    of the preset are ours. ros_gz publishes a covariance of zeros, type unknown. `precision`,
    which rounds the reported value, is left out.

    Notes
    -----
    `as_upstream` repeats the defects of new Gazebo's NavSat; Gazebo classic has none of them (see
    `gazebo_classic`):

    - The numbers of the first axis apply to latitude and longitude, in degrees, although SDF
      specifies metres: 0.3 is 33 km.
    - One noise object serves latitude and longitude, so both have the same b.
    - d stays zero, because the sensor does not pass the time step. (Gazebo's IMU passes it, so
      its bias decays from bias_mean. Here b stays constant and d is added.)

    References
    ----------
    [GzSensors] `GaussianNoiseModel.cc`, `NavSatSensor.cc`.
    """

    kind: ClassVar[str] = 'gazebo'

    dynamic_bias_std: Axes = axes(
        'm/sqrt(s)', 'Density of the white noise that drives the varying bias.', minimum=0.0
    )
    dynamic_bias_time: float = positive(3600.0, 's', 'Correlation time of the varying bias.')

    @property
    def is_angular(self) -> bool:
        """Whether the error is in degrees, as in new Gazebo."""
        return not self.is_exact

    @property
    def upstream_units(self) -> dict[str, str]:
        """Units of the parameters that are not in metres on all axes, by name."""
        names = ('std', 'bias_mean', 'bias_std')
        return dict.fromkeys(names, 'deg, deg, m') if self.is_angular else {}

    def start(self, seed: int, run: str, sensor: str) -> Process:
        """Return noise with the biases drawn."""
        rng = streams(seed, run, sensor, 'position')
        white = self.white_and_bias(rng, [0, 1, 2] if self.is_exact else [0, 0, 2])
        if not self.is_exact or not any(self.dynamic_bias_std):
            return white
        time = self.dynamic_bias_time
        wander = np.asarray(self.dynamic_bias_std) * math.sqrt(0.5 * time)
        return ProcessSum(white, GaussMarkov(rng('gauss_markov'), wander, time))


@dataclasses.dataclass(frozen=True)
class WebotsNoise(UpstreamNoise):
    """GPS of Webots: a Gauss-Markov error with the fields of the GPS node.

    Per axis, with r = noise_correlation^dt (dt in s)::

        e = r e + accuracy sqrt(1 - r^2) w,   e(0) ~ N(0, accuracy)

    A noise_correlation of 0 is white noise, and of 1 a constant error. The node's `resolution` and
    the noise of its speed are left out.

    Notes
    -----
    With `as_upstream`, e starts at 0 one interval before the first fix. The first errors are thus
    smaller than `accuracy`, and stay zero if noise_correlation is 1. All GPS of a Webots world
    share one error; here each has its own.

    References
    ----------
    [Webots] f09e7bf, `WbGps.cpp`.
    """

    kind: ClassVar[str] = 'webots'

    accuracy: float = non_negative(0.0, 'm', 'Standard deviation of each coordinate.')
    noise_correlation: float = share(0.0, 'Share of the error that is left after 1 s.')
    sampling_period: float = positive(
        0.1, 's', 'Time from the start of the GPS to its first fix; used as_upstream.'
    )

    def start(self, seed: int, run: str, sensor: str) -> Process:
        """Return the process."""
        rng = streams(seed, run, sensor, 'position')('gauss_markov')
        if self.noise_correlation == 0.0:
            return White(rng, self.accuracy)
        rate = -math.log(self.noise_correlation)
        time = 1.0 / rate if rate > 0.0 else math.inf
        error = GaussMarkov(rng, self.accuracy, time, stationary=self.is_exact)
        if not self.is_exact:
            error.advance(np.array([self.sampling_period]))
        return error


# Gauss-Legendre quadrature, exact up to rounding for steps below ten correlation times.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)

# Radius with which PX4 converts metres to degrees, CONSTANTS_RADIUS_OF_EARTH of its geo.h [PX4].
_RADIUS = 6371000.0


@dataclasses.dataclass(frozen=True)
class HectorNoise(UpstreamNoise):
    """Hector's GPS: a drifting velocity that moves a drifting position.

    Per axis, with noise such that the stationary standard deviations are `drift` (without v) and
    `velocity_drift`::

        e  = offset + d + N(0, gaussian_noise)
        d' = -drift_frequency d + v + noise                  d(0) ~ N(0, drift)
        v' = -velocity_drift_frequency v + noise             v(0) ~ N(0, velocity_drift)

    d and v after a step are drawn from their joint distribution. The preset has the 5 m and 0.1 m
    that users of the plugin copy. Its `scale`, fix_velocity (NavSatFix holds no velocity) and
    reference heading are not available. Hector's local radii are `geodesy: hector`.

    Notes
    -----
    `as_upstream` has dt where sqrt(dt) would be right, for d and likewise for v::

        d <- exp(-f dt) d + dt N(0, sqrt(2 f) drift), published; then d <- d + dt v
        standard deviation without v: drift dt sqrt(2 f / (1 - exp(-2 f dt)))

    This is about drift sqrt(dt): half at Hector's 4 Hz, a tenth at 100 Hz. v acts one fix late.
    The stated covariance is still drift^2 + gaussian_noise^2. In Hector the axes are north, west,
    up (reference heading 0); here they are east, north, up.

    References
    ----------
    [Hector] `sensor_model.h`, `gazebo_ros_gps.cpp`.
    """

    kind: ClassVar[str] = 'hector'

    offset: Axes = axes('m', 'Constant error.')
    drift: Axes = axes('m', 'Stationary standard deviation of the position drift.', minimum=0.0)
    drift_frequency: float = positive(
        1.0 / 3600.0, 'Hz', 'Inverse of the correlation time of the position drift.'
    )
    gaussian_noise: Axes = axes('m', 'Standard deviation of the noise of each fix.', minimum=0.0)
    velocity_drift: Axes = axes(
        'm/s', 'Stationary standard deviation of the velocity drift.', minimum=0.0
    )
    velocity_drift_frequency: float = positive(
        1.0 / 3600.0, 'Hz', 'Inverse of the correlation time of the velocity drift.'
    )

    def start(self, seed: int, run: str, sensor: str) -> Process:
        """Return the noise with its drifts drawn."""
        rng = streams(seed, run, sensor, 'position')
        drift = HectorPositionDrift(rng('drift'), self)
        return ProcessSum(White(rng('white'), self.gaussian_noise, self.offset), drift)


class HectorPositionDrift:
    """Two coupled Gauss-Markov processes per axis, d' = -f d + v + s w and v' = -g v + q w.

    Here s = sqrt(2 f) drift and q = sqrt(2 g) velocity_drift. `exact` draws d and v after the step
    from their joint normal distribution. `as_upstream` has explicit steps with noise proportional
    to dt, and moves d by v dt after its publication.
    """

    def __init__(self, rng: np.random.Generator, noise: HectorNoise) -> None:
        self._rng = rng
        self._std = np.array([noise.drift, noise.velocity_drift])
        self._frequency = noise.drift_frequency, noise.velocity_drift_frequency
        self._is_exact = noise.is_exact
        state = self._std * rng.standard_normal((2, 3))
        self.value: FloatArray = state[0]
        self._velocity: FloatArray = state[1]
        # Movement by v that upstream adds after the publication.
        self._carried: FloatArray = np.zeros(3)

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return d after each step, `(n, 3)`."""
        normals = self._rng.standard_normal((len(dt), 3, 3))
        values = np.empty((len(dt), 3))
        for k, step in enumerate(dt.tolist()):
            self._step(step, normals[k])
            values[k] = self.value
            if not self._is_exact:
                self._carried = step * self._velocity
        return values

    def _step(self, dt: float, normals: FloatArray) -> None:
        f, g = self._frequency
        position_std, velocity_std = self._std
        a, b = math.exp(-f * dt), math.exp(-g * dt)
        if self._is_exact:
            # Rounded to nanoseconds, nearly all intervals are equal, so the result is cached.
            carried, shared, independent = _coupling(f, g, round(dt * 1e9))
            s = math.sqrt(-math.expm1(-2.0 * f * dt))
            q = math.sqrt(-math.expm1(-2.0 * g * dt))
            position = a * self.value + carried * self._velocity + s * position_std * normals[0]
            self.value = position + velocity_std * (shared * normals[1] + independent * normals[2])
            self._velocity = b * self._velocity + q * velocity_std * normals[1]
        else:
            s, q = dt * math.sqrt(2.0 * f), dt * math.sqrt(2.0 * g)
            self._velocity = b * self._velocity + q * velocity_std * normals[1]
            position = self.value + self._carried
            self.value = a * position + s * position_std * normals[0]


@functools.lru_cache(maxsize=1024)
def _coupling(f: float, g: float, dt_ns: int) -> tuple[float, float, float]:
    """Return the contributions of v to d in one step, as three factors.

    They multiply v before the step, the normal that also drives v, and an independent normal.
    After a time t, the effect of v on d is c(t) = (exp(-g t) - exp(-f t)) / (f - g). The variance
    of d is the integral of 2 g c^2, and its covariance with v that of 2 g c exp(-g t).
    """
    dt = dt_ns * 1e-9
    t = 0.5 * dt * (_NODES + 1.0)
    weights = 0.5 * dt * _WEIGHTS
    variance = float(np.sum(weights * 2.0 * g * _mean_exponential(f, g, t) ** 2))
    covariance = float(np.sum(weights * 2.0 * g * _mean_exponential(f, g, t) * np.exp(-g * t)))
    spread = -math.expm1(-2.0 * g * dt)
    shared = covariance / math.sqrt(spread) if spread > 0.0 else 0.0
    independent = math.sqrt(max(variance - shared * shared, 0.0))
    return float(_mean_exponential(f, g, np.array([dt]))[0]), shared, independent


def _mean_exponential(f: float, g: float, t: FloatArray) -> FloatArray:
    x = (f - g) * t
    safe = np.where(np.abs(x) > 1e-12, x, 1.0)
    ratio = np.where(np.abs(x) > 1e-12, -np.expm1(-safe) / safe, 1.0)
    return np.asarray(t * np.exp(-g * t) * ratio)


@dataclasses.dataclass(frozen=True)
class Px4ClassicNoise(UpstreamNoise):
    """PX4's GPS plugin for Gazebo classic: white noise and a Gauss-Markov bias.

    `exact` follows the units of upstream's parameters. Per axis, with h = 1 / physics_rate:

    - White noise has the standard deviation noise_density / sqrt(h) per fix: 3 mm.
    - The bias has the standard deviation random_walk sqrt(time_constant / 2), 11 m at every rate,
      and a correlation time of 60 s.

    A bias of 11 m shows that upstream's numbers were tuned to its errors in dt. The preset
    `px4_classic_gps` runs at 5 Hz, 0.12 s late, with eph = epv = 1 m. PX4's sphere is
    `geodesy: px4_classic`.

    Notes
    -----
    `as_upstream` has two errors in dt. White noise has noise_density sqrt(h), 13 um. At each step
    of the physics b <- b + random_walk sqrt(h) h w - b / 60, so its correlation time is 60 steps.
    Its standard deviation is random_walk h^1.5 / sqrt(1 - (59/60)^2): 2.8 mm at 250 Hz, 0.35 mm at
    1 kHz. It starts at zero. Upstream also swaps the axes of the velocity noise and gives noise
    and bias of the height opposite signs; neither changes the statistics of the position.

    References
    ----------
    [PX4Classic] `gazebo_gps_plugin.cpp`.
    """

    kind: ClassVar[str] = 'px4_classic'

    noise_density: Axes = axes(
        'm/sqrt(Hz)', 'Density of the white noise.', (2e-4, 2e-4, 4e-4), minimum=0.0
    )
    random_walk: Axes = axes(
        'm/sqrt(s)',
        'Density of the white noise that drives the bias.',
        (2.0, 2.0, 4.0),
        minimum=0.0,
    )
    time_constant: float = parameter(60.0, 's', 'Correlation time of the bias.', minimum=1.0)
    physics_rate: float = positive(250.0, 'Hz', 'Steps of the physics per second.', read_only=True)

    def start(self, seed: int, run: str, sensor: str) -> Process:
        """Return the sum of noise and bias."""
        density, walk = np.asarray(self.noise_density), np.asarray(self.random_walk)
        step, time = 1.0 / self.physics_rate, self.time_constant
        rng = streams(seed, run, sensor, 'position')
        if self.is_exact:
            white = White(rng('white'), density / math.sqrt(step))
            bias: Process = GaussMarkov(rng('gauss_markov'), walk * math.sqrt(0.5 * time), time)
        else:
            white = White(rng('white'), density * math.sqrt(step))
            carried, spread = 1.0 - 1.0 / time, walk * step**1.5
            bias = _StepMarkov(rng('gauss_markov'), carried, spread, self.physics_rate)
        return ProcessSum(white, bias)


@dataclasses.dataclass(frozen=True)
class Px4MarkovNoise(UpstreamNoise):
    """GPS noise of PX4's GZBridge and SensorGpsSim.

    At each fix::

        e <- coefficient e + step_std w

    so the standard deviation is step_std / sqrt(1 - coefficient^2). `exact` keeps, at every rate,
    the standard deviation and the correlation time -1 / (model_rate ln(coefficient)) that upstream
    has at its own rate: 0.46 s for both presets. `px4_gz_bridge_gps` has 2.18 cm at 30 Hz,
    `px4_sensor_gps_sim` 2.46 cm at 8 Hz. GZBridge's coefficient is 0.95 - 0.02. Both report eph
    0.9 and epv 1.78 m, which the presets state.

    PX4-Autopilot has had two noise models in SensorGpsSim:

    - f6cde8b, 27af68c: white at 8 Hz, 0.2 m on the ground and 0.5 m up (`noise: {model: gaussian,
      std: [0.2, 0.2, 0.5]}`);
    - 000f5fd, the preset: coefficient 0.76, steps of 0.02 * 0.8 m (1.5 times that up),
      "rate-corrected from GZBridge": the noise of GZBridge at 8 Hz.

    GZBridge's header has 0.95 and 0.01 * 0.8 m; its update subtracts 0.02. We found no version of
    SensorGpsSim with these values.

    Notes
    -----
    `as_upstream` has no dt and starts at zero. It turns metres into degrees (radius 6371 km, of
    PX4's geo.h) without the cosine of the latitude, so the error east is smaller by that factor.

    References
    ----------
    [PX4] `gz_bridge`, `sensor_gps_sim`.
    """

    kind: ClassVar[str] = 'px4_markov'

    coefficient: float = positive(
        0.93, '1', 'Correlation of one fix with the next.', maximum=0.999999
    )
    step_std: Axes = axes(
        'm',
        'Standard deviation of the step from one fix to the next.',
        (0.008, 0.008, 0.012),
        minimum=0.0,
    )
    model_rate: float = positive(
        30.0, 'Hz', 'Rate of the original code, at which both variants have the same statistics.'
    )

    @property
    def is_angular(self) -> bool:
        """Whether the error is in degrees, as upstream, where the cosine is missing."""
        return not self.is_exact

    def start(self, seed: int, run: str, sensor: str) -> Process:
        """Return the process."""
        rng = stream(seed, run, sensor, 'position_gauss_markov')
        step = np.asarray(self.step_std)
        if self.is_exact:
            time = -1.0 / (self.model_rate * math.log(self.coefficient))
            return GaussMarkov(rng, step / math.sqrt(1.0 - self.coefficient**2), time)
        degrees = math.degrees(1.0 / _RADIUS)
        return _StepMarkov(rng, self.coefficient, step * np.array([degrees, degrees, 1.0]))


class _StepMarkov:
    """Process y <- a y + std w from zero, with one step per fix, or with all steps of a `rate`.

    Steps of a `rate` are counted from the first fix, so that rounding loses none.
    """

    def __init__(
        self, rng: np.random.Generator, a: float, std: FloatArray, rate: float | None = None
    ) -> None:
        self._rng, self._a, self._std, self._rate = rng, a, std, rate
        self._elapsed, self._taken = 0.0, 0
        self.value: FloatArray = np.zeros(3)

    def advance(self, dt: FloatArray) -> FloatArray:
        normals = self._rng.standard_normal((len(dt), 3))
        values = np.empty((len(dt), 3))
        for k, interval in enumerate(dt.tolist()):
            carried, spread = self._a, 1.0
            if self._rate is not None:
                self._elapsed += interval
                count = math.floor(self._elapsed * self._rate + 1e-6) - self._taken
                self._taken += count
                carried = self._a**count
                spread = math.sqrt((1.0 - carried**2) / (1.0 - self._a**2))
            self.value = carried * self.value + spread * self._std * normals[k]
            values[k] = self.value
        return values
