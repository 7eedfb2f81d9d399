# SPDX-License-Identifier: Apache-2.0
"""Analytic motions on level ground, and the base class of motions with parameters."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from sim_sensors.core.errors import MotionError, ParameterError, UnknownNameError, not_among
from sim_sensors.core.measurements import FloatArray, ImuArray, MessageParts, OdometryArray
from sim_sensors.core.parameters import Parameters, non_negative, parameter, positive
from sim_sensors.core.registry import Registry
from sim_sensors.core.rotations import rotate_back
from . import paths
from .ideal import sample_blocks
from .paths import DRIVES, drive
from .trajectory import LONGEST, Motion, Trajectory, times_within

Progress = tuple[FloatArray, FloatArray, FloatArray]
"""Distance, speed and acceleration along a path, `(n,)` each."""


@dataclasses.dataclass(frozen=True)
class TimedMotion(Parameters):
    """Base of motions that are parameter sets."""

    duration: float = positive(20.0, 's', 'Duration of the motion.', maximum=LONGEST)

    @property
    def start(self) -> float:
        """First time, 0 s."""
        return 0.0

    @property
    def end(self) -> float:
        """Last time, s."""
        return self.duration

    def at(self, times: ArrayLike) -> Trajectory:
        """Return the motion at `times` `(n,)` s, in any order.

        Raises
        ------
        MotionError
            When a time is outside 0 .. `duration`.
        """
        raise NotImplementedError


# Analytic motions on level ground: standstill, line, circle, half-sine, figure-eight.
#
# Each is a parameter set and a `Motion` that is exact at any time. The body follows a path of arc
# length s(t) with its x axis along the tangent T, normal N to the left, curvature k and speed v =
# s':
#
#     velocity = v T            acceleration = v' T + v^2 k N
#     yaw rate = v k            yaw acceleration = v' k + v^2 dk/ds


@dataclasses.dataclass(frozen=True)
class Scenario(TimedMotion):
    """Base of the scenarios: level motion along a path that starts in the origin."""

    heading: float = parameter(0.0, 'rad', 'Rotation of the whole path, from east to the left.')

    def progress(self, times: FloatArray) -> Progress:
        """Return distance (m), speed (m/s) and acceleration (m/s^2) at `times` `(n,)` s."""
        return np.zeros_like(times), np.zeros_like(times), np.zeros_like(times)

    @functools.cached_property
    def path(self) -> paths.PlanarPath:
        """Path before the rotation by `heading`."""
        return paths.LinePath()

    def at(self, times: ArrayLike) -> Trajectory:
        """Return the motion at `times` `(n,)` s; see `TimedMotion.at`."""
        t = times_within(times, self.start, self.end)
        distance, speed, acceleration = self.progress(t)
        points = self.path.at(distance)
        cosine, sine = float(np.cos(self.heading)), float(np.sin(self.heading))
        x, y = cosine * points.x - sine * points.y, sine * points.x + cosine * points.y
        bend = speed * speed * points.curvature
        turning = acceleration * points.curvature + speed * speed * points.curvature_slope
        return Trajectory.level(
            t,
            (x, y),
            points.heading + self.heading,
            speed,
            (acceleration, bend),
            (speed * points.curvature, turning),
        )


@dataclasses.dataclass(frozen=True)
class Standstill(Scenario):
    """Standstill."""

    kind = 'standstill'


@dataclasses.dataclass(frozen=True)
class _Drive(Scenario):
    """Scenario with a speed profile."""

    speed: float = positive(1.0, 'm/s', 'Speed after the ramp.')
    ramp_time: float = non_negative(
        2.0, 's', 'Time from rest to full speed; 0 starts at full speed.'
    )
    rest_time: float = non_negative(0.0, 's', 'Time at rest before the ramp.')
    stop: bool = parameter(False, '', 'Ramp down to rest at the end.')

    def progress(self, times: FloatArray) -> Progress:
        """Return distance (m), speed (m/s) and acceleration (m/s^2) at `times` `(n,)` s.

        The profile is rest, smooth ramp, constant speed, and a smooth stop if `stop` is set. The
        ramp is v(t) = V (6 x^5 - 15 x^4 + 10 x^3), x = t / ramp_time: speed, acceleration and jerk
        are continuous; the acceleration peaks at 1.875 V / ramp_time and the jerk at 5.774 V /
        ramp_time^2.
        """
        distance, speed, acceleration = self._ramp(times - self.rest_time)
        if self.stop:
            down = self._ramp(times - (self.duration - self.ramp_time))
            return distance - down[0], speed - down[1], acceleration - down[2]
        return distance, speed, acceleration

    def _ramp(self, since: FloatArray) -> Progress:
        """Return distance, speed and acceleration of a ramp from 0 to V that begins at time 0."""
        v, ramp = self.speed, self.ramp_time
        if ramp == 0.0:
            return v * np.maximum(since, 0.0), np.where(since < 0.0, 0.0, v), np.zeros_like(since)
        x = np.clip(since / ramp, 0.0, 1.0)
        beyond = np.maximum(since - ramp, 0.0)
        cube = x * x * x
        distance = v * ramp * cube * x * (2.5 + x * (x - 3.0)) + v * beyond
        speed = v * cube * (10.0 + x * (6.0 * x - 15.0))
        acceleration = 30.0 * v / ramp * (x * (1.0 - x)) ** 2
        return distance, speed, acceleration

    def _check(self) -> None:
        ramps = self.ramp_time * (2 if self.stop else 1)
        if self.rest_time + ramps > self.duration:
            raise ParameterError(
                type(self).__name__,
                'duration',
                f'{self.duration:g} is not allowed; must be >= {self.rest_time + ramps:g} [s], '
                'the time of rest and ramps together',
            )


@dataclasses.dataclass(frozen=True)
class Line(_Drive):
    """Straight line."""

    kind = 'line'


@dataclasses.dataclass(frozen=True)
class Circle(_Drive):
    """Circle.

    At full speed v: yaw rate v / radius and specific force v^2 / radius to the left.
    """

    kind = 'circle'
    radius: float = positive(3.0, 'm', 'Radius; to the left.')
    clockwise: bool = parameter(False, '', 'Turn right instead of left.')

    @functools.cached_property
    def path(self) -> paths.PlanarPath:
        """Circular path."""
        return paths.CirclePath(-self.radius if self.clockwise else self.radius)


@dataclasses.dataclass(frozen=True)
class HalfSine(_Drive):
    """Half a sine wave, then a straight line.

    y = amplitude sin(pi x / length) for 0 <= x <= length, with the x axis at `heading`. The body
    begins along the tangent. The yaw acceleration jumps at the beginning of the straight line;
    everything else is continuous.
    """

    kind = 'half_sine'
    length: float = positive(15.0, 'm', 'Distance between the zeros.')
    amplitude: float = parameter(2.0, 'm', 'Height of the wave; negative to the right.')

    @functools.cached_property
    def path(self) -> paths.PlanarPath:
        """Half a sine wave and its continuation."""
        return paths.half_sine_path(self.length, self.amplitude)


@dataclasses.dataclass(frozen=True)
class FigureEight(_Drive):
    """Repeated figure-eight.

    x = (length/2) sin u, y = (width/2) sin 2u, with the x axis at `heading`; it begins at the
    crossing.
    """

    kind = 'figure_eight'
    length: float = positive(8.0, 'm', 'Extent along x.')
    width: float = positive(4.0, 'm', 'Extent along y.')

    @functools.cached_property
    def path(self) -> paths.PlanarPath:
        """Figure-eight path."""
        return paths.figure_eight_path(self.length, self.width)


START_NS = 1_700_000_000_000_000_000
"""First stamp of synthetic runs, ns: fixed, so that equal seeds give equal bytes."""

_TRUTH_RATE = 100.0

SCENARIOS: Registry[type[TimedMotion]] = Registry(
    'sim2real_sensors.scenarios',
    'a scenario',
    lambda thing: isinstance(thing, type) and issubclass(thing, TimedMotion),
    {
        'standstill': 'sim_sensors.motion.scenarios:Standstill',
        'line': 'sim_sensors.motion.scenarios:Line',
        'circle': 'sim_sensors.motion.scenarios:Circle',
        'half_sine': 'sim_sensors.motion.scenarios:HalfSine',
        'figure_eight': 'sim_sensors.motion.scenarios:FigureEight',
        'constant_twist': 'sim_sensors.motion.spatial_scenarios:ConstantTwist',
        'accelerating': 'sim_sensors.motion.spatial_scenarios:Accelerating',
        'swaying': 'sim_sensors.motion.spatial_scenarios:Swaying',
        'mjcf': 'sim_sensors.motion.mujoco_motion:MjcfMotion',
    },
)
"""Motions in closed form by name: on level ground, in space, and from other packages.

Each derives from `TimedMotion` and implements `at(times)`, which returns a `Trajectory`.
"""

_DRIVEN = tuple(f'drive_{name}' for name in DRIVES)
_SPRUNG = tuple(f'sprung_{name}' for name in DRIVES)


def motion_names() -> list[str]:
    """Return the names of all motions: drives of the ART vehicle, then scenarios."""
    return [*_DRIVEN, *_SPRUNG, *SCENARIOS.names()]


def motion_parameters(name: str) -> type[Parameters] | None:
    """Return the class that declares the parameters of a motion; None for one without any.

    This is the class in `SCENARIOS` for a scenario, and `SprungCar` for the vehicle on springs.
    Raises UnknownNameError for an unknown name, and MotionError if the motion needs MuJoCo and
    that is not installed.

    Examples
    --------
    >>> list(motion_parameters('circle').declarations())
    ['duration', 'heading', 'speed', 'ramp_time', 'rest_time', 'stop', 'radius', 'clockwise']
    """
    if name in _DRIVEN:
        return None
    if name in _SPRUNG:
        from .roads import SprungCar

        return SprungCar
    return SCENARIOS.get(name)


def motion_of(
    name: str,
    *,
    duration: float,
    seed: int = 0,
    run: str = '1',
    parameters: Mapping[str, object] | None = None,
) -> Motion:
    """Return a motion: a drive of the ART vehicle, or an analytic scenario.

    Parameters
    ----------
    name : str
        `drive_line`, `drive_circle`, `drive_half_sine`; `sprung_line`, ... for the vehicle on
        springs in MuJoCo; the name of a scenario; or a class in a file, `my_motion.py:Spiral`.
    duration : float
        Duration, s.
    seed, run
        Labels of the variation of a drive; an analytic scenario is the same in every run.
    parameters : mapping, optional
        Parameters of an analytic scenario, or of `SprungCar`.

    Raises
    ------
    MotionError
        For an unknown name, or parameters for a drive.
    ParameterError
        For a wrong parameter of a scenario.

    Examples
    --------
    >>> motion_of('circle', duration=10.0, parameters={'radius': 5.0}).duration
    10.0
    """
    if name in _DRIVEN:
        if parameters:
            raise MotionError(f'{name} takes no parameters, got {", ".join(parameters)}')
        return drive(name.removeprefix('drive_'), seed=seed, run=run, duration=duration)
    if name in _SPRUNG:
        from .roads import SprungCar, drive_on_springs

        car = SprungCar.from_mapping(parameters or {}, f'motion {name}')
        path = name.removeprefix('sprung_')
        return drive_on_springs(path, seed=seed, run=run, duration=duration, car=car)
    try:
        kind = SCENARIOS.get(name)
    except UnknownNameError:
        problem = not_among(f'scenario {name!r} is unknown', name, motion_names())
        raise MotionError(
            f'{problem}, or a class in a file, such as my_motion.py:Spiral'
        ) from None
    motion: Motion = kind.from_mapping(
        {**(parameters or {}), 'duration': duration}, f'scenario {name}'
    )
    return motion


def has_noise_free_imu(name: str) -> bool:
    """Return whether a named motion comes with the messages of a noise-free IMU.

    Raises UnknownNameError for an unknown name.

    Examples
    --------
    >>> has_noise_free_imu('sprung_line'), has_noise_free_imu('line')
    (True, False)
    """
    if name in _DRIVEN or name in _SPRUNG:
        return name in _SPRUNG
    return hasattr(SCENARIOS.get(name), 'noise_free_imu')


def noise_free_imu(motion: Motion, *, start_ns: int = START_NS) -> ImuArray | None:
    """Return the messages of the noise-free IMU of a motion, or None if it has no such IMU.

    `start_ns` is the stamp of motion time 0.

    Examples
    --------
    >>> noise_free_imu(motion_of('circle', duration=2.0)) is None
    True
    """
    imu: ImuArray | None = getattr(motion, 'noise_free_imu', None)
    if imu is None:
        return None
    stamp_ns = imu.stamp_ns + start_ns
    return dataclasses.replace(imu, stamp_ns=stamp_ns, arrival_ns=stamp_ns)


def truth_of(
    motion: Motion, *, rate: float = _TRUTH_RATE, start_ns: int = START_NS
) -> OdometryArray:
    """Return the ground-truth odometry of a motion, from map to base_link, with zero covariance.

    Parameters
    ----------
    motion : Motion
        Motion to sample.
    rate : float
        Sample rate, Hz.
    start_ns : int
        Stamp of motion time 0.

    Examples
    --------
    >>> motion = motion_of('line', duration=2.0)
    >>> truth_of(motion, rate=50.0).position.shape
    (101, 3)
    """
    columns = MessageParts[OdometryArray]()
    for stamp_ns, times in sample_blocks(motion, rate, start_ns=None, origin_ns=start_ns):
        sampled = motion.at(times)
        part = OdometryArray.exact(
            stamp_ns,
            position=sampled.position,
            orientation=sampled.orientation,
            linear_velocity=rotate_back(sampled.orientation, sampled.velocity),
            angular_velocity=sampled.angular_velocity,
        )
        columns.add(part)
    return columns.concatenate()
