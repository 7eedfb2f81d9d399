# SPDX-License-Identifier: Apache-2.0
"""Drives of the ART vehicle along waypoints, with random variation between runs."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from sim_sensors.core.errors import MotionError, not_among
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import Parameters, non_negative, positive
from sim_sensors.core.seeding import stream
from .paths import CirclePath, LinePath, PlanarPath, half_sine_path
from .trajectory import LONGEST, Trajectory
from .vehicles import ART, AckermannVehicle, Controller, VehicleCommand, VehicleState

CONTROL_RATE = 10.0  # Hz, [ART]
THROTTLE = 0.75  # [ART]
_SPACING = 0.1  # m, distance between waypoints

DRIVES = ('line', 'circle', 'half_sine')
"""Scenarios of `drive`, as in the paper."""


@dataclasses.dataclass(frozen=True)
class RunVariation(Parameters):
    """Random variation between runs. All draws are Gaussian, clipped at three deviations.

    The paper states no figures for its repeatability. These defaults describe a car that is placed
    on a mark by hand, varying battery and ground, and a steering linkage with play.
    """

    start_position: float = non_negative(
        0.05, 'm', 'Deviation of the start, along and across the path.'
    )
    start_heading: float = non_negative(0.035, 'rad', 'Deviation of the heading at the start.')
    throttle: float = non_negative(
        0.02, '1', 'Relative deviation of the throttle, constant in a run.'
    )
    friction: float = non_negative(
        0.1, '1', 'Relative deviation of c_0 and c_1, constant in a run.', maximum=0.3
    )
    steering_trim: float = non_negative(
        0.02, '1', 'Deviation of the steering (of 1), constant in a run.'
    )
    steering_disturbance: float = non_negative(
        0.03, '1', 'Deviation of the wandering of the steering (of 1).'
    )
    disturbance_time: float = positive(0.5, 's', 'Correlation time of that wandering.')


class PurePursuit:
    """Pure pursuit: steer towards the point of the path that lies `lookahead` metres ahead.

    The steering angle atan(2 L sin(bearing) / distance) drives the rear axle on a circle through
    the target [R. C. Coulter, CMU-RI-TR-92-01, 1992]. The target is the first waypoint at least
    `lookahead` away that is not before the previous target, so a path may cross or repeat itself.
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
        """Return the command at `time`; the throttle closes at the last waypoint."""
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
) -> PreparedRun[V]:
    """Draw the variation of one run; see `drive` for parameters and errors."""
    if not 0.0 < duration <= LONGEST:
        raise MotionError(
            f'duration {duration!r} is not allowed; must be a number > 0 and <= {LONGEST:g} [s]'
        )
    vary = RunVariation() if variation is None else variation

    def draw(source: str, count: int = 1) -> list[float]:
        normals = stream(seed, run, 'vehicle', source).standard_normal(count)
        factors: list[float] = np.clip(normals, -3.0, 3.0).tolist()
        return factors

    along, across, turn = draw('start_pose', 3)
    throttle = THROTTLE * (1.0 + vary.throttle * draw('throttle')[0])
    friction = 1.0 + vary.friction * draw('friction')[0]
    trim = vary.steering_trim * draw('steering_trim')[0]
    car = dataclasses.replace(
        vehicle,
        linear_resistance=vehicle.linear_resistance * friction,
        constant_resistance=vehicle.constant_resistance * friction,
    )
    # The path is long enough that even the fastest run does not reach its end.
    points = waypoints(scenario, 5.0 + duration * car.top_speed(1.0))
    pursuit = PurePursuit(points, car, throttle=throttle)
    count = math.ceil(duration * CONTROL_RATE) + 1
    wander = vary.steering_disturbance * _wander(draw('steering', count), vary.disturbance_time)

    def controller(time: float, state: VehicleState) -> VehicleCommand:
        command = pursuit(time, state)
        disturbed = command.steering + trim + wander[round(time * CONTROL_RATE)]
        return VehicleCommand(command.throttle, float(disturbed))

    first, second = points[0], points[1]
    heading = math.atan2(second[1] - first[1], second[0] - first[0])
    start = VehicleState(
        x=vary.start_position * (along * math.cos(heading) - across * math.sin(heading)),
        y=vary.start_position * (along * math.sin(heading) + across * math.cos(heading)),
        heading=heading + vary.start_heading * turn,
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
) -> Trajectory:
    """Drive a scenario once from rest; return the motion of the centre of gravity at 1 kHz.

    The scenario is `line`, `circle` or `half_sine`. The labels `seed` and `run` determine the
    random variation: equal labels give equal drives. `duration` is in s.

    Raises MotionError for an unknown scenario or a duration that is not positive.
    """
    prepared = prepare_run(
        scenario, seed=seed, run=run, duration=duration, vehicle=vehicle, variation=variation
    )
    return prepared.vehicle.drive(
        prepared.controller, duration=duration, start=prepared.start, control_rate=CONTROL_RATE
    )


def _wander(noise: list[float], time_constant: float) -> FloatArray:
    """Return a stationary Gauss-Markov sequence of unit deviation at the control rate."""
    keep = math.exp(-1.0 / (CONTROL_RATE * time_constant))
    fresh = math.sqrt(1.0 - keep * keep)
    values = itertools.accumulate(noise, lambda value, sample: keep * value + fresh * sample)
    return np.array(list(values))
