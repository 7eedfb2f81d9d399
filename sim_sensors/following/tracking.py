# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""References of a differential-drive robot, controllers that follow them, and their errors.

Three are those of [Cesenek2019], section 3.2.2: wheel rates from differences of waypoints, the
same with a PID controller of the yaw error, and that with a PID controller of the distance. The
fourth is a nonlinear tracking law with a proof of convergence, the fifth a linear-quadratic
regulator.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from sim_sensors.core.errors import MotionError
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import Parameters, non_negative, parameter, positive
from sim_sensors.motion.planar import Pose, advance, relative, twist_between, wrap
from sim_sensors.motion.vehicles import DifferentialDrive, WheelRates
from sim_sensors.motion.waypoints import Waypoints
from .network import PREVIEW, Network, waypoint_errors

INTERPOLATIONS = ('spline', 'twist')


class ReferenceState(NamedTuple):
    """Reference at one time: pose, speed along the heading [m/s] and yaw rate [rad/s]."""

    pose: Pose
    speed: float
    yaw_rate: float


class ReferenceMotion:
    """Motion through waypoints; it rests at the first before it starts and at the last afterwards.

    Interpolation `spline` joins x, y and heading by cubic splines, with smooth speed and yaw rate.
    `twist` joins poses by a constant body twist (a geodesic of SE(2)): lines and circles are exact
    for any spacing, but the speed jumps at the waypoints.

    Raises
    ------
    MotionError
        For an unknown interpolation.
    """

    def __init__(self, waypoints: Waypoints, interpolation: str = 'spline') -> None:
        from scipy.interpolate import CubicSpline

        if interpolation not in INTERPOLATIONS:
            allowed = ', '.join(INTERPOLATIONS)
            raise MotionError(
                f'interpolation {interpolation!r} is not allowed; must be one of {allowed}'
            )
        self.waypoints = waypoints
        self.end = float(waypoints.time[-1])
        self._time = waypoints.time.tolist()
        rows = np.column_stack([waypoints.x, waypoints.y, waypoints.heading])
        self._poses = [Pose(*row) for row in rows.tolist()]
        self._spline = None
        if interpolation == 'spline':
            self._spline = CubicSpline(waypoints.time, rows)
            self._slope = self._spline.derivative()

    def at(self, time: float) -> ReferenceState:
        """Return the reference at `time` s."""
        if not 0.0 <= time <= self.end:
            return ReferenceState(self._poses[0 if time < 0.0 else -1], 0.0, 0.0)
        if self._spline is None:
            return self._along_twist(time)
        x, y, heading = self._spline(time).tolist()
        vx, vy, yaw_rate = self._slope(time).tolist()
        speed = math.cos(heading) * vx + math.sin(heading) * vy
        return ReferenceState(Pose(x, y, heading), speed, yaw_rate)

    def poses(self, times: FloatArray) -> FloatArray:
        """Return x, y [m] and heading [rad] at `times` `(n,)` s as `(n, 3)`."""
        if self._spline is not None:
            return np.asarray(self._spline(np.clip(times, 0.0, self.end)))
        return np.array([self.at(time).pose for time in times.tolist()]).reshape(-1, 3)

    def wheel_rates(self, robot: DifferentialDrive) -> FloatArray:
        """Return the rates of the left and right wheel from each waypoint to the next, rad/s.

        They are the inverse kinematics of the constant twist between two waypoints `(n, 2)`, as in
        [Cesenek2019], section 3.2.1. At the last waypoint the robot stops. The lateral part of a
        twist, which no such robot can drive, is left out.
        """
        rates = []
        for pose, other, span in zip(
            self._poses[:-1], self._poses[1:], np.diff(self._time).tolist(), strict=True
        ):
            forward, _, turn = twist_between(pose, other)
            rates.append(robot.inverse(forward / span, turn / span))
        return np.array([*rates, WheelRates(0.0, 0.0)])

    @functools.cached_property
    def top_speed(self) -> float:
        """Greatest speed between waypoints, m/s."""
        w = self.waypoints
        return float(np.max(np.hypot(np.diff(w.x), np.diff(w.y)) / np.diff(w.time)))

    def _along_twist(self, time: float) -> ReferenceState:
        k = int(np.searchsorted(self.waypoints.time, time, side='right')) - 1
        k = min(max(k, 0), len(self._time) - 2)
        first, last = self._poses[k], self._poses[k + 1]
        span = self._time[k + 1] - self._time[k]
        forward, left, turn = twist_between(first, last)
        share = (time - self._time[k]) / span
        pose = advance(first, share * forward, share * left, share * turn)
        return ReferenceState(pose, forward / span, turn / span)


class TrackingError(NamedTuple):
    """Tracking errors of one pose.

    `along` and `across` are robot minus reference, m: along the heading of the reference (negative
    if the robot is late) and to its left. `yaw` is REFERENCE MINUS ROBOT, as in [Cesenek2019],
    rad, wrapped to [-pi, pi].
    """

    along: float
    across: float
    yaw: float

    @property
    def distance(self) -> float:
        """Distance from the reference to the robot, m."""
        return math.hypot(self.along, self.across)


def tracking_error(target: Pose, actual: Pose) -> TrackingError:
    """Return the tracking error of one pose."""
    offset = relative(target, actual)
    return TrackingError(offset.x, offset.y, -offset.heading)


@dataclasses.dataclass(frozen=True)
class ErrorStatistics:
    """Mean, root mean square and maximum of the magnitude of an error."""

    mean: float
    rms: float
    maximum: float

    @classmethod
    def from_values(cls, values: FloatArray) -> ErrorStatistics:
        """Return the statistics of `values` `(n,)`."""
        size = np.abs(values)
        return cls(float(size.mean()), float(np.sqrt(np.mean(size**2))), float(size.max()))


@dataclasses.dataclass(frozen=True, eq=False)
class TrackingErrors:
    """Tracking errors over a drive, `(n,)` each [s, m, rad]; see `TrackingError` for signs."""

    time: FloatArray
    along: FloatArray
    across: FloatArray
    distance: FloatArray
    yaw: FloatArray

    @classmethod
    def from_poses(
        cls, reference: ReferenceMotion, time: FloatArray, poses: FloatArray
    ) -> TrackingErrors:
        """Return the errors of poses `(n, 3)` (x, y, heading) at `time` `(n,)` s."""
        targets = reference.poses(time).tolist()
        errors = [
            tracking_error(Pose(*target), Pose(*pose))
            for target, pose in zip(targets, poses.tolist(), strict=True)
        ]
        table = np.array(errors).reshape(-1, 3)
        distance = np.hypot(table[:, 0], table[:, 1])
        return cls(time, table[:, 0], table[:, 1], distance, table[:, 2])

    def statistics(self) -> dict[str, ErrorStatistics]:
        """Return the statistics of distance, along and across [m] and yaw [rad]."""
        names = ('distance', 'along', 'across', 'yaw')
        return {name: ErrorStatistics.from_values(getattr(self, name)) for name in names}


class Tracker(abc.ABC):
    """Running controller. `command` is called once per control period, s, in order of time.

    `model` holds its parameters; the kinematics of `robot` give wheel rates.
    """

    def __init__(
        self, model: Any, reference: ReferenceMotion, robot: DifferentialDrive, period: float
    ) -> None:
        self.model = model
        self.reference = reference
        self.robot = robot
        self.period = period

    @abc.abstractmethod
    def command(self, time: float, pose: Pose) -> WheelRates:
        """Return the wheel rates to hold for one period from `time`, s since the first waypoint.

        `pose` is the pose of the robot as the controller knows it.
        """


class _OpenLoopTracker(Tracker):
    def command(self, time: float, pose: Pose) -> WheelRates:
        pose_now = self.reference.at(time).pose
        next_pose = self.reference.at(time + self.period).pose
        if self.model.differences == 'as_given':
            dx, dy = next_pose.x - pose_now.x, next_pose.y - pose_now.y
            forward = math.cos(pose_now.heading) * dx + math.sin(pose_now.heading) * dy
            turn = next_pose.heading - pose_now.heading
        else:
            forward, _, turn = twist_between(pose_now, next_pose)
        return self.robot.inverse(forward / self.period, turn / self.period)


class _YawPidTracker(Tracker):
    def __init__(
        self, model: Any, reference: ReferenceMotion, robot: DifferentialDrive, period: float
    ) -> None:
        super().__init__(model, reference, robot, period)
        self._feedforward = model.feedforward.start(reference, robot, period)
        self._yaw = _PidState(model.yaw)

    def command(self, time: float, pose: Pose) -> WheelRates:
        wheels = self._feedforward.command(time, pose)
        error = wrap(self.reference.at(time).pose.heading - pose.heading)
        return _steer(wheels, self._yaw.correction(error), error)


class _YawDistancePidTracker(_YawPidTracker):
    def __init__(
        self, model: Any, reference: ReferenceMotion, robot: DifferentialDrive, period: float
    ) -> None:
        super().__init__(model, reference, robot, period)
        self._distance = _PidState(model.distance)

    def command(self, time: float, pose: Pose) -> WheelRates:
        wheels = super().command(time, pose)
        target = self.reference.at(time).pose
        dx, dy = target.x - pose.x, target.y - pose.y
        bearing = wrap(math.atan2(dy, dx) - pose.heading)
        return _steer(wheels, self._distance.correction(math.hypot(dx, dy)), bearing)


class _PidState:
    def __init__(self, gains: Pid) -> None:
        self._gains = gains
        self._sum = 0.0
        self._old = 0.0

    def correction(self, error: float) -> float:
        """Return the magnitude of the correction, rad/s; the caller decides its direction."""
        self._sum += error
        change = error - self._old
        self._old = error
        gains = self._gains
        return abs(gains.kp * error + gains.ki * self._sum + gains.kd * change)


def _steer(wheels: WheelRates, correction: float, error: float) -> WheelRates:
    """Return wheel rates turned to the right for a negative error, otherwise to the left."""
    if error < 0.0:
        return WheelRates(wheels.left + correction, wheels.right - correction)
    return WheelRates(wheels.left - correction, wheels.right + correction)


class _PurePursuitTracker(Tracker):
    def command(self, time: float, pose: Pose) -> WheelRates:
        horizon = self.model.horizon
        reverse = self.reference.at(time).speed < 0.0
        x, y, turn = relative(
            pose, self.reference.at(min(time + horizon, self.reference.end)).pose
        )
        if reverse:
            x, y = -x, -y
        distance = math.hypot(x, y)
        if math.cos(turn) < 0.0:
            speed, yaw_rate = 0.0, 2.0 * turn / horizon
        elif x <= 0.0:
            speed, yaw_rate = x / horizon, turn / horizon
        else:
            bearing = math.atan2(y, x)
            arc = distance * (bearing / math.sin(bearing) if bearing else 1.0)
            fade = min(distance / self.model.least_distance, 1.0)
            speed, yaw_rate = arc / horizon, 2.0 * bearing * fade / horizon
        return self.robot.inverse(-speed if reverse else speed, yaw_rate)


class _NonlinearTracker(Tracker):
    def command(self, time: float, pose: Pose) -> WheelRates:
        # For a reference at rest k2 v_r is 0 for any k2, so the lower bound has no effect.
        k2 = (self.model.bandwidth / max(self.reference.top_speed, 1e-3)) ** 2
        target = self.reference.at(time)
        e_x, e_y, e = relative(pose, target.pose)
        v_r, w_r = target.speed, target.yaw_rate
        frequency = math.sqrt(w_r * w_r + k2 * v_r * v_r + self.model.least_bandwidth**2)
        gain = min(2.0 * self.model.damping * frequency, 0.5 / self.period)
        sinc = math.sin(e) / e if abs(e) > 1e-8 else 1.0
        speed = v_r * math.cos(e) + gain * e_x
        yaw_rate = w_r + k2 * v_r * sinc * e_y + gain * e
        return self.robot.inverse(speed, yaw_rate)


class _LqrTracker(Tracker):
    def command(self, time: float, pose: Pose) -> WheelRates:
        target = self.reference.at(time)
        e_x, e_y, e = relative(pose, target.pose)
        (k_x, k_y, k), (h_x, h_y, h) = self._gains(target.speed, target.yaw_rate)
        speed = target.speed * math.cos(e) + k_x * e_x + k_y * e_y + k * e
        yaw_rate = target.yaw_rate + h_x * e_x + h_y * e_y + h * e
        return self.robot.inverse(speed, yaw_rate)

    def _gains(self, speed: float, yaw_rate: float) -> Any:
        import numpy as np
        from scipy.linalg import expm, solve_discrete_are

        model = self.model
        # At rest, steering cannot move the robot sideways and the Riccati equation has no
        # solution.
        moving = math.copysign(max(abs(speed), model.least_speed), speed)
        system = np.zeros((5, 5))
        system[0, 1], system[1, 0], system[1, 2] = yaw_rate, -yaw_rate, moving
        system[0, 3] = system[2, 4] = -1.0
        held = expm(system * self.period)
        a, b = held[:3, :3], held[:3, 3:]
        weights = np.diag(np.array([model.position_error] * 2 + [model.yaw_error]) ** -2.0)
        effort = np.diag(np.array([model.speed_effort, model.yaw_rate_effort]) ** -2.0)
        cost = solve_discrete_are(a, b, weights, effort)
        gains = -np.linalg.solve(effort + b.T @ cost @ b, b.T @ cost @ a)
        gains[:, 1] *= min(abs(speed) / model.least_speed, 1.0)
        return gains.tolist()


class NetworkTracker(Tracker):
    """Running controller of `NeuralNetwork`."""

    def inputs(self, time: float, pose: Pose) -> FloatArray:
        """Return the inputs of the network, see `waypoint_errors`."""
        now, ahead = (
            self.reference.at(min(max(t, 0.0), self.reference.end)) for t in (time, time + PREVIEW)
        )
        return waypoint_errors(now.pose, ahead.pose, pose)

    def command(self, time: float, pose: Pose) -> WheelRates:
        """Return the wheel rates for one period; see `Tracker.command`."""
        return self.robot.inverse(*Network.shipped().command(self.inputs(time, pose)))


@dataclasses.dataclass(frozen=True)
class TrackerModel(Parameters):
    """Parameters of a controller."""

    tracker: ClassVar[type[Tracker]]

    def start(
        self, reference: ReferenceMotion, robot: DifferentialDrive, period: float
    ) -> Tracker:
        """Return the controller in its initial state; `period` is in s."""
        return self.tracker(self, reference, robot, period)


@dataclasses.dataclass(frozen=True)
class OpenLoop(TrackerModel):
    """Wheel rates from differences of the reference, without feedback.

    `twist` uses the constant twist from the reference pose to that one period later; the robot
    cannot drive its lateral part. `as_given` uses v = cos(theta) dx/dt + sin(theta) dy/dt with the
    heading at the start of the period, as in [Cesenek2019], which shortens arcs to chords.
    """

    kind = 'open_loop'
    tracker = _OpenLoopTracker
    differences: str = parameter(
        'twist', '', 'Conversion of differences to speeds.', choices=('twist', 'as_given')
    )


@dataclasses.dataclass(frozen=True)
class Pid(Parameters):
    """Gains of the PID controller of [Cesenek2019]. They hold for one control rate, as there is no
    dt.

    u = |kp e + ki E + kd (e - e_old)|, where E is the sum of all e. The source states no gains.
    """

    kp: float = non_negative(4.0, 'rad/s per unit', 'Gain of the error.')
    ki: float = non_negative(0.0, 'rad/s per unit', 'Gain of the sum of all errors.')
    kd: float = non_negative(0.0, 'rad/s per unit', 'Gain of the change of the error.')


@dataclasses.dataclass(frozen=True)
class YawPid(TrackerModel):
    """Open loop plus a PID controller of the wrapped yaw error, reference minus robot
    [Cesenek2019].

    As in the source, the magnitude of the PID output gets the sign of the error. If the integral
    or the difference outweighs the error, the correction has the wrong sign. The first difference
    is the whole first error, as `e_old` starts at 0.
    """

    kind = 'yaw_pid'
    tracker = _YawPidTracker
    feedforward: OpenLoop = dataclasses.field(default_factory=OpenLoop)
    yaw: Pid = dataclasses.field(default_factory=Pid)


@dataclasses.dataclass(frozen=True)
class DistancePid(Pid):
    """Gains for an error in metres; weaker by default, as this loop disturbs the yaw."""

    kp: float = non_negative(0.5, 'rad/s per unit', 'Gain of the error.')


@dataclasses.dataclass(frozen=True)
class YawDistancePid(TrackerModel):
    """The yaw PID controller followed by a PID controller of the distance [Cesenek2019].

    It turns towards the bearing of the reference position relative to the heading of the robot. It
    never changes the speed, so an error along the track remains. If the reference is behind, it
    turns the robot around.
    """

    kind = 'yaw_distance_pid'
    tracker = _YawDistancePidTracker
    feedforward: OpenLoop = dataclasses.field(default_factory=OpenLoop)
    yaw: Pid = dataclasses.field(default_factory=Pid)
    distance: DistancePid = dataclasses.field(default_factory=DistancePid)


@dataclasses.dataclass(frozen=True)
class PurePursuitTracker(TrackerModel):
    """Pure pursuit [Coulter1992] of timed waypoints, a horizon T ahead.

    The robot turns onto the arc, tangent to its heading, through the position that the reference
    has after T, with the speed that reaches it then. With the bearing b of that position at the
    distance d:

        v = d b / (T sin b)        w = 2 b / T

    A robot whose heading differs from that of the reference by more than a right angle turns on
    the spot, and one that is ahead of the position backs up straight. A reference in reverse is
    followed in reverse. Small errors across a moving reference decay with the natural frequency
    sqrt(2) / T and the damping ratio 1 / sqrt(2). Near the end of the reference the distance
    shrinks, and the turn fades below `least_distance`.
    """

    kind = 'pure_pursuit'
    tracker = _PurePursuitTracker
    horizon: float = positive(0.6, 's', 'T, time by which the pursued position is ahead.')
    least_distance: float = positive(0.1, 'm', 'Distance below which the turn fades to zero.')


@dataclasses.dataclass(frozen=True)
class NonlinearTracker(TrackerModel):
    """Nonlinear tracking with a Lyapunov function [Samson1991], in the form of [DeLuca2001],
    section 5.2.

    (e_x, e_y, e) is the reference pose in the frame of the robot, (v_r, w_r) its speed and yaw
    rate:

        v = v_r cos(e) + k1 e_x
        w = w_r + k2 v_r sin(e)/e e_y + k3 e

    The function V = k2 (e_x^2 + e_y^2) / 2 + e^2 / 2 then has V' = -k1 k2 e_x^2 - k3 e^2 <= 0 for
    any k1, k3 > 0 and constant k2 > 0, forward and backward alike, and all three errors go to 0
    as long as the reference keeps moving. The law of [Kanayama1990] is its relative for v_r > 0.

    Here k2 = (bandwidth / v_max)^2, where v_max is the top speed of the reference, and k1 = k3 =
    2 damping sqrt(w_r^2 + k2 v_r^2 + least_bandwidth^2), limited to 1/2 per control period, since
    the robot holds its command that long. The proof assumes continuous time and a robot without
    lag.
    """

    kind = 'nonlinear'
    tracker = _NonlinearTracker
    bandwidth: float = positive(2.0, 'rad/s', 'Natural frequency at the top speed.')
    damping: float = positive(0.8, '1', 'Damping ratio.')
    least_bandwidth: float = positive(0.5, 'rad/s', 'Natural frequency of e_x and e at rest.')


@dataclasses.dataclass(frozen=True)
class LqrTracker(TrackerModel):
    """The linear-quadratic regulator of the errors (e_x, e_y, e) about the moving reference.

    To first order, the changes u of speed and yaw rate act on the errors as

        e_x' = w_r e_y - u_v        e_y' = -w_r e_x + v_r e        e' = -u_w

    sampled exactly with u held for a control period. The gains minimise the sum of squared errors
    and changes, each divided by its tolerance [Anderson1990]. They are computed at every period,
    as v_r and w_r change. Below `least_speed` the weight of the lateral error falls to zero.
    """

    kind = 'lqr'
    tracker = _LqrTracker
    position_error: float = positive(0.2, 'm', 'Tolerance of e_x and e_y.')
    yaw_error: float = positive(0.1, 'rad', 'Tolerance of e.')
    speed_effort: float = positive(0.2, 'm/s', 'Tolerance of the change of speed.')
    yaw_rate_effort: float = positive(0.1, 'rad/s', 'Tolerance of the change of yaw rate.')
    least_speed: float = positive(
        0.1, 'm/s', 'Minimum speed of the linear model, used when the reference is slower.'
    )


@dataclasses.dataclass(frozen=True)
class NeuralNetwork(TrackerModel):
    """Small neural network trained by imitation, as those of [Zhang2024] and the one that drove
    [Mahajan2024].

    The inputs of [Zhang2024] are the errors of position, heading and speed of a waypoint 1 m ahead
    in the frame of the vehicle, its outputs throttle and steering. Here the inputs are those of
    `waypoint_errors` and the outputs are speed and yaw rate; see `Network`. It imitates `lqr` and
    `pure_pursuit`, which drove a robot with a wheel lag of 0.1 s at 20 Hz along lines and circles
    from offsets of up to 3 m along, 2 m across and 1.5 rad, at up to 25 m/s and 1.5 rad/s.

    Beyond these limits it acts as at the limit: it drives along a faster reference at 25 m/s, and
    returns to a farther one as from there. It has no parameters.
    """

    kind = 'neural_network'
    tracker = NetworkTracker


_ALL = (
    OpenLoop,
    YawPid,
    YawDistancePid,
    PurePursuitTracker,
    NonlinearTracker,
    LqrTracker,
    NeuralNetwork,
)
TRACKERS = {tracker.kind: tracker for tracker in _ALL}
"""Controllers by name, the three of [Cesenek2019] first."""
