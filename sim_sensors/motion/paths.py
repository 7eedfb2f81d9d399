# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Plane paths by arc length, and vehicles that follow them."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from sim_sensors.core.errors import MotionError, not_among
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import Parameters, non_negative, positive
from sim_sensors.core.seeding import stream
from .trajectory import LONGEST, Trajectory, quintic
from .vehicles import ART, AckermannVehicle, Controller, VehicleCommand, VehicleState


@dataclasses.dataclass(frozen=True, eq=False)
class PathPoints:
    """Points of a path, `(n,)` each.

    x and y are in m. The heading, rad, is that of the tangent, from the x axis to the left. The
    curvature, 1/m, is its derivative by the distance, and `curvature_slope`, 1/m^2, that of the
    curvature.
    """

    x: FloatArray
    y: FloatArray
    heading: FloatArray
    curvature: FloatArray
    curvature_slope: FloatArray


class PlanarPath(Protocol):
    """A plane path that starts at the origin."""

    def at(self, distance: FloatArray) -> PathPoints:
        """Points at `distance` `(n,)` m along the path."""
        ...


class LinePath:
    """Straight line along x."""

    def at(self, distance: FloatArray) -> PathPoints:
        """Points at `distance` `(n,)` m along the path."""
        zero = np.zeros_like(distance)
        return PathPoints(distance, zero, zero, zero, zero)


@dataclasses.dataclass(frozen=True)
class CirclePath:
    """Circle that starts along x and turns left, or right for a negative radius."""

    radius: float

    def at(self, distance: FloatArray) -> PathPoints:
        """Points at `distance` `(n,)` m along the path."""
        heading = distance / self.radius
        x = self.radius * np.sin(heading)
        y = self.radius * 2.0 * np.sin(0.5 * heading) ** 2
        curvature = np.full_like(distance, 1.0 / self.radius)
        return PathPoints(x, y, heading, curvature, np.zeros_like(distance))


Pair = tuple[FloatArray, FloatArray]
Derivatives = tuple[Pair, Pair, Pair, Pair]
"""(x, y) of a curve and its first three derivatives by its parameter."""

_PANELS = 2048
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


class CurvePath:
    """Path along an analytic curve r(u), 0 <= u <= u_end, by its arc length.

    u(s) is the quintic through a table of 2048 panels: arc length by 8-point Gauss-Legendre
    quadrature, du/ds = 1/|r'| and d2u/ds2 = -(r'.r'')/|r'|^4 exactly. For the curves here the
    error is below 1e-12 of the length (tested). Position, heading and curvature are evaluated from
    r at that u, so they agree to the same accuracy.

    A closed curve is repeated; it must be smooth where it closes. Any other path continues
    straight along its end tangent.
    """

    def __init__(
        self, curve: Callable[[FloatArray], Derivatives], u_end: float, *, closed: bool
    ) -> None:
        self._curve = curve
        self._closed = closed
        u = np.linspace(0.0, u_end, _PANELS + 1)
        half = 0.5 * u_end / _PANELS
        inside = (0.5 * (u[1:] + u[:-1]))[:, None] + half * _NODES
        _, (dx, dy), _, _ = curve(inside.ravel())
        pieces = half * (np.hypot(dx, dy).reshape(inside.shape) * _WEIGHTS).sum(axis=1)
        _, (dx, dy), (ddx, ddy), _ = curve(u)
        square = dx * dx + dy * dy
        self._s = np.concatenate([[0.0], np.cumsum(pieces)])
        self._u = u[:, None]
        self._du = (1.0 / np.sqrt(square))[:, None]
        self._ddu = (-(dx * ddx + dy * ddy) / (square * square))[:, None]

    @property
    def length(self) -> float:
        """Arc length of the curve from 0 to u_end, m."""
        return float(self._s[-1])

    def at(self, distance: FloatArray) -> PathPoints:
        """Points at `distance` `(n,)` m along the path."""
        beyond = np.zeros_like(distance)
        if self._closed:
            distance = np.mod(distance, self.length)
        else:
            beyond = np.maximum(distance - self.length, 0.0)
            distance = np.minimum(distance, self.length)
        u = self._parameter(distance)
        (x, y), (dx, dy), (ddx, ddy), (dddx, dddy) = self._curve(u)
        square = dx * dx + dy * dy
        norm = np.sqrt(square)
        turning = dx * ddy - dy * ddx
        curvature = turning / (square * norm)
        by_parameter = (dx * dddy - dy * dddx) / (square * norm) - 3.0 * curvature * (
            dx * ddx + dy * ddy
        ) / square
        straight = beyond > 0.0
        return PathPoints(
            x + beyond * dx / norm,
            y + beyond * dy / norm,
            np.arctan2(dy, dx),
            np.where(straight, 0.0, curvature),
            np.where(straight, 0.0, by_parameter / norm),
        )

    def _parameter(self, s: FloatArray) -> FloatArray:
        k = np.clip(np.searchsorted(self._s, s, side='right') - 1, 0, _PANELS - 1)
        h = (self._s[k + 1] - self._s[k])[:, None]
        place = (s - self._s[k])[:, None] / h
        start = (self._u[k], self._du[k], self._ddu[k])
        end = (self._u[k + 1], self._du[k + 1], self._ddu[k + 1])
        return np.ascontiguousarray(quintic(place, h, start, end)[0][:, 0])


def half_sine_path(length: float, amplitude: float) -> CurvePath:
    """Return half a sine wave y = amplitude sin(pi x / length), continued along its end tangent.

    The curvature is zero at both ends, so it is continuous at the start of the straight line.
    """
    w = np.pi / length

    def curve(u: FloatArray) -> Derivatives:
        sine, cosine = amplitude * np.sin(w * u), amplitude * np.cos(w * u)
        ones, zero = np.ones_like(u), np.zeros_like(u)
        return ((u, sine), (ones, w * cosine), (zero, -w * w * sine), (zero, -(w**3) * cosine))

    return CurvePath(curve, length, closed=False)


def figure_eight_path(length: float, width: float) -> CurvePath:
    """Return the figure eight x = (length/2) sin u, y = (width/2) sin 2u, a lemniscate of Gerono.

    It starts at the crossing, where the curvature is zero, and turns right first.
    """
    a, b = 0.5 * length, 0.5 * width

    def curve(u: FloatArray) -> Derivatives:
        sine, cosine = np.sin(u), np.cos(u)
        sine2, cosine2 = np.sin(2.0 * u), np.cos(2.0 * u)
        return (
            (a * sine, b * sine2),
            (a * cosine, 2.0 * b * cosine2),
            (-a * sine, -4.0 * b * sine2),
            (-a * cosine, -8.0 * b * cosine2),
        )

    return CurvePath(curve, 2.0 * np.pi, closed=True)


CONTROL_RATE = 10.0  # Hz, [ART]
THROTTLE = 0.75  # [ART]
_SPACING = 0.1  # m, distance between waypoints

DRIVES = ('line', 'circle', 'half_sine')
"""Scenarios of `drive`, those of the paper."""


@dataclasses.dataclass(frozen=True)
class RunVariation(Parameters):
    """Random variation between runs: normal, clipped at three standard deviations.

    The paper does not quantify the repeatability of its runs. These defaults describe a car that
    is placed on a mark by hand, varying battery and ground, and a steering linkage with play.
    """

    start_position: float = non_negative(
        0.05, 'm', 'Standard deviation of the start position, along and across the path.'
    )
    start_heading: float = non_negative(
        0.035, 'rad', 'Standard deviation of the heading at the start.'
    )
    throttle: float = non_negative(
        0.02, '1', 'Relative standard deviation of the throttle, constant in a run.'
    )
    friction: float = non_negative(
        0.1, '1', 'Relative standard deviation of c_0 and c_1, constant in a run.', maximum=0.3
    )
    steering_trim: float = non_negative(
        0.02,
        '1',
        'Standard deviation of the offset of the normalised steering, constant in a run.',
    )
    steering_disturbance: float = non_negative(
        0.03, '1', 'Standard deviation of the varying error of the normalised steering.'
    )
    disturbance_time: float = positive(0.5, 's', 'Correlation time of that error.')


class PurePursuit:
    """Pure pursuit: steer towards the point of the path that lies `lookahead` metres ahead.

    The steering angle atan(2 L sin(bearing) / distance) drives the rear axle on a circle through
    the target [R. C. Coulter, CMU-RI-TR-92-01, 1992]. The target is the first waypoint from
    the previous target on that is at least `lookahead` away, so a path may cross or repeat itself.
    The points are `(n, 2)` m, n >= 2. Wheelbase and largest steering angle are those of the
    vehicle. The throttle is constant.

    Raises MotionError for wrong shapes, values that are not finite, or a lookahead that is not
    positive.
    """

    def __init__(
        self,
        points: ArrayLike,
        vehicle: AckermannVehicle,
        *,
        throttle: float = THROTTLE,
        lookahead: float = 0.6,
    ) -> None:
        array = np.asarray(points, dtype=np.float64)
        if array.ndim != 2 or array.shape[1] != 2 or len(array) < 2:
            raise MotionError(f'waypoints have shape {array.shape}; must be (n, 2) with n >= 2')
        if not np.isfinite(array).all():
            raise MotionError('waypoints are not all finite')
        if not lookahead > 0.0:
            raise MotionError(f'lookahead {lookahead!r} is not allowed; must be a number > 0 [m]')
        self._points = [(float(x), float(y)) for x, y in array]
        self._vehicle = vehicle
        self._throttle = throttle
        self._lookahead = lookahead
        self._target = 0

    def __call__(self, time: float, state: VehicleState) -> VehicleCommand:
        """Return the command at `time`; the throttle is zero at the last waypoint."""
        while self._target < len(self._points) - 1 and self._distance(state) < self._lookahead:
            self._target += 1
        distance = self._distance(state)
        if distance < self._lookahead:
            return VehicleCommand(0.0, 0.0)
        x, y = self._points[self._target]
        bearing = math.atan2(y - state.y, x - state.x) - state.heading
        steer = math.atan2(2.0 * self._vehicle.wheelbase * math.sin(bearing), distance)
        return VehicleCommand(self._throttle, min(max(steer / self._vehicle.max_steer, -1.0), 1.0))

    def _distance(self, state: VehicleState) -> float:
        x, y = self._points[self._target]
        return math.hypot(x - state.x, y - state.y)


def waypoints(scenario: str, length: float) -> FloatArray:
    """Return the waypoints `(n, 2)` m of a driven scenario, 0.1 m apart, over `length` metres.

    The line runs east; the circle has a radius of 1.75 m (once round in 20 s at the speed that
    throttle 0.75 gives) and turns left; the half-sine is 9 m long and 1.5 m high, then straight.

    Raises MotionError for an unknown scenario.
    """
    paths: dict[str, PlanarPath] = {
        'line': LinePath(),
        'circle': CirclePath(1.75),
        'half_sine': half_sine_path(9.0, 1.5),
    }
    if scenario not in paths:
        raise MotionError(not_among(f'scenario {scenario!r} cannot be driven', scenario, paths))
    points = paths[scenario].at(np.arange(0.0, length + _SPACING, _SPACING))
    return np.column_stack([points.x, points.y])


V = TypeVar('V', bound=AckermannVehicle)

Pilot = Callable[[FloatArray, AckermannVehicle, float], Controller]
"""Function that returns a controller for waypoints `(n, 2)` m, vehicle and throttle."""


def pure_pursuit(points: FloatArray, vehicle: AckermannVehicle, throttle: float) -> Controller:
    """Return the default pilot of `drive`, at a constant throttle."""
    return PurePursuit(points, vehicle, throttle=throttle)


@dataclasses.dataclass(frozen=True)
class PreparedRun(Generic[V]):
    """Vehicle, controller and start of one run of a scenario."""

    vehicle: V
    controller: Controller
    start: VehicleState


def prepare_run(
    scenario: str,
    *,
    seed: int,
    run: str,
    duration: float,
    vehicle: V,
    variation: RunVariation | None = None,
    pilot: Pilot = pure_pursuit,
) -> PreparedRun[V]:
    """Draw the random variation of one run and prepare it; see `drive`."""
    if not 0.0 < duration <= LONGEST:
        raise MotionError(
            f'duration {duration!r} is not allowed; must be a number > 0 and <= {LONGEST:g} [s]'
        )
    variation = RunVariation() if variation is None else variation

    def draw(source: str, count: int = 1) -> list[float]:
        normals = stream(seed, run, 'vehicle', source).standard_normal(count)
        factors: list[float] = np.clip(normals, -3.0, 3.0).tolist()
        return factors

    along, across, turn = draw('start_pose', 3)
    throttle = THROTTLE * (1.0 + variation.throttle * draw('throttle')[0])
    friction = 1.0 + variation.friction * draw('friction')[0]
    trim = variation.steering_trim * draw('steering_trim')[0]
    car = dataclasses.replace(
        vehicle,
        linear_resistance=vehicle.linear_resistance * friction,
        constant_resistance=vehicle.constant_resistance * friction,
    )
    # The path is long enough that even the fastest run does not reach its end.
    points = waypoints(scenario, 5.0 + duration * car.downhill_speed(1.0))
    undisturbed = pilot(points, car, throttle)
    count = math.ceil(duration * CONTROL_RATE) + 1
    disturbances = variation.steering_disturbance * _gauss_markov(
        draw('steering', count), variation.disturbance_time
    )

    def controller(time: float, state: VehicleState) -> VehicleCommand:
        command = undisturbed(time, state)
        steering = command.steering + trim + disturbances[round(time * CONTROL_RATE)]
        return VehicleCommand(command.throttle, float(steering))

    first, second = points[0], points[1]
    heading = math.atan2(second[1] - first[1], second[0] - first[0])
    start = VehicleState(
        x=variation.start_position * (along * math.cos(heading) - across * math.sin(heading)),
        y=variation.start_position * (along * math.sin(heading) + across * math.cos(heading)),
        heading=heading + variation.start_heading * turn,
        speed=0.0,
    )
    return PreparedRun(car, controller, start)


def drive(
    scenario: str,
    *,
    seed: int,
    run: str,
    duration: float = 20.0,
    vehicle: AckermannVehicle = ART,
    variation: RunVariation | None = None,
    pilot: Pilot = pure_pursuit,
) -> Trajectory:
    """Drive a scenario once from rest; return the motion of the centre of gravity at 1 kHz.

    The scenario is `line`, `circle` or `half_sine`. `seed` and the label `run` determine the
    random variation: equal ones give equal drives. `duration` is in s. `pilot` makes the
    controller.

    Raises MotionError for an unknown scenario or a duration that is not positive.
    """
    prepared = prepare_run(
        scenario, seed=seed, run=run, duration=duration, vehicle=vehicle, variation=variation,
        pilot=pilot,
    )  # fmt: skip
    return prepared.vehicle.drive(
        prepared.controller, duration=duration, start=prepared.start, control_rate=CONTROL_RATE
    )


def _gauss_markov(noise: list[float], time_constant: float) -> FloatArray:
    """Return a stationary Gauss-Markov sequence of unit deviation at the control rate."""
    keep = math.exp(-1.0 / (CONTROL_RATE * time_constant))
    fresh = math.sqrt(1.0 - keep * keep)
    values = itertools.accumulate(noise, lambda value, sample: keep * value + fresh * sample)
    return np.array(list(values))
