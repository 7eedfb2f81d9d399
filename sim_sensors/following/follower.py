# SPDX-License-Identifier: Apache-2.0
"""A robot follows a reference: the same follower steers a simulated robot and a live one."""

from __future__ import annotations

import dataclasses
import enum
import math

import numpy as np

from sim_sensors.core import rotations
from sim_sensors.core.errors import MotionError
from sim_sensors.core.measurements import FloatArray, OdometryArray
from sim_sensors.core.parameters import Parameters, non_negative, parameter, positive
from sim_sensors.core.seeding import stream
from sim_sensors.motion.drive_kinematics import DifferentialDrive, RobotState, WheelRates
from sim_sensors.motion.odometry import check_values
from sim_sensors.motion.planar import Pose, heading_of
from sim_sensors.motion.waypoints import Waypoints
from .reference import (
    INTERPOLATIONS,
    ReferenceMotion,
    TrackingError,
    TrackingErrors,
    tracking_error,
)
from .tracking import LqrTracker, NonlinearTracker, OpenLoop, TrackerModel, YawDistancePid, YawPid

_NS = 1_000_000_000


@dataclasses.dataclass(frozen=True)
class PoseSensor(Parameters):
    """What a controller knows of the pose of its robot: all, by default, and at once."""

    position_std: float = non_negative(0.0, 'm', 'White noise of x and of y, per control step.')
    yaw_std: float = non_negative(0.0, 'rad', 'White noise of the heading, per control step.')
    latency: float = non_negative(0.0, 's', 'Age of the pose.')


@dataclasses.dataclass(frozen=True)
class FollowSettings(Parameters):
    """Robot, controllers and what they know."""

    control_rate: float = positive(
        20.0, 'Hz', 'Commands per second.', maximum=1e4,
        read_only=True,
    )  # fmt: skip
    interpolation: str = parameter(
        'spline', '', 'Between waypoints.', choices=INTERPOLATIONS, read_only=True
    )
    robot: DifferentialDrive = dataclasses.field(default_factory=DifferentialDrive)
    pose: PoseSensor = dataclasses.field(default_factory=PoseSensor)
    open_loop: OpenLoop = dataclasses.field(default_factory=OpenLoop)
    yaw_pid: YawPid = dataclasses.field(default_factory=YawPid)
    yaw_distance_pid: YawDistancePid = dataclasses.field(default_factory=YawDistancePid)
    nonlinear: NonlinearTracker = dataclasses.field(default_factory=NonlinearTracker)
    lqr: LqrTracker = dataclasses.field(default_factory=LqrTracker)

    def tracker(self, name: str) -> TrackerModel:
        """Return the controller by name, one of `TRACKERS`."""
        found: TrackerModel = getattr(self, name)
        return found


@dataclasses.dataclass(frozen=True)
class VelocityCommand:
    """What the follower asks for.

    `speed` and `yaw_rate`, m/s and rad/s, are the same as the rates of the wheels; `finished`: the
    reference has ended, and all is zero.
    """

    wheels: WheelRates
    speed: float
    yaw_rate: float
    finished: bool


class Follower:
    """Turns poses, as they come, into commands at the control rate, Hz.

    A command is made by the first pose at or after each multiple of the control period since the
    first pose, which is time 0 of the reference. What it returns depends on the stamps and poses
    alone.
    """

    def __init__(
        self,
        reference: ReferenceMotion,
        robot: DifferentialDrive,
        tracker: TrackerModel,
        control_rate: float,
    ) -> None:
        self.reference = reference
        self._robot = robot
        self._rate = control_rate
        self._tracker = tracker.start(reference, robot, 1.0 / control_rate)
        self._origin_ns: int | None = None
        self._next = 0

    def time_of(self, stamp_ns: int) -> float:
        """Return seconds since the first pose; 0 before any."""
        return 0.0 if self._origin_ns is None else (stamp_ns - self._origin_ns) / _NS

    def push(self, stamp_ns: int, pose: Pose) -> VelocityCommand | None:
        """Take a pose; return a command when one is due."""
        if self._origin_ns is None:
            self._origin_ns = stamp_ns
        since = stamp_ns - self._origin_ns
        if since < round(self._next * _NS / self._rate):
            return None
        # Near the next period in one step: stamps of another clock may skip billions of them.
        self._next = max(self._next, int(since * self._rate / _NS) - 1)
        while since >= round(self._next * _NS / self._rate):
            self._next += 1
        time = since / _NS
        if time >= self.reference.end:
            return VelocityCommand(WheelRates(0.0, 0.0), 0.0, 0.0, finished=True)
        wheels = self._tracker.command(time, pose)
        return VelocityCommand(wheels, *self._robot.forward(wheels), finished=False)


@dataclasses.dataclass(frozen=True, eq=False)
class SimulatedDrive:
    """What a simulated robot drove.

    Attributes
    ----------
    time : (n,) s
        Since the first waypoint.
    poses : (n, 3)
        x, y [m], heading [rad], not wrapped.
    speed, yaw_rate : (n,) m/s, rad/s
        Over the ground.
    commands : (m, 4)
        Time [s], left and right wheel [rad/s] as asked for, and number of the sample.
    """

    controller: str
    time: FloatArray
    poses: FloatArray
    speed: FloatArray
    yaw_rate: FloatArray
    commands: FloatArray
    errors: TrackingErrors

    def truth(self, start_ns: int) -> OdometryArray:
        """Return the drive as ground-truth odometry, zero covariance, map to base_link."""
        zero = np.zeros(len(self.time))
        return OdometryArray.exact(
            start_ns + np.round(self.time * _NS).astype(np.int64),
            position=np.column_stack([self.poses[:, :2], zero]),
            orientation=rotations.from_heading(self.poses[:, 2]),
            linear_velocity=np.column_stack([self.speed, zero, zero]),
            angular_velocity=np.column_stack([zero, zero, self.yaw_rate]),
        )


def drive_along(
    reference: ReferenceMotion,
    settings: FollowSettings,
    controller: str,
    *,
    seed: int = 0,
    run: str = 'run_1',
    rate: float = 100.0,
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0),
) -> SimulatedDrive:
    """Simulate the robot from the first waypoint to the time of the last.

    It starts with the reference's speed and yaw rate, as a recording may begin in the midst of a
    drive, but `offset` (x, y, heading; world, m and rad) from the first waypoint. The controller
    is one of `TRACKERS`; `rate`, Hz, is that of the samples of the drive and of the steps of the
    robot. `seed` and `run` are labels of the noise of grip and pose, the same for all controllers.
    """
    robot, sensor = settings.robot, settings.pose
    steps = max(1, math.floor(reference.end * rate + 1e-6))
    dt = 1.0 / rate
    first = reference.at(0.0)
    start = Pose(*(a + b for a, b in zip(first.pose, offset, strict=True)))
    wheels = robot.inverse(first.speed, first.yaw_rate)
    state = robot.at(start, wheels)
    follower = Follower(reference, robot, settings.tracker(controller), settings.control_rate)
    grip = robot.noise(stream(seed, run, 'robot', 'grip'), steps)
    error = None
    if sensor.position_std or sensor.yaw_std:
        drawn = stream(seed, run, 'pose', 'white').standard_normal((steps + 1, 3))
        error = (drawn * [sensor.position_std, sensor.position_std, sensor.yaw_std]).tolist()
    delay = round(sensor.latency * rate)
    states: list[RobotState] = []
    commands: list[tuple[float, float, float, float]] = []
    for k in range(steps + 1):
        states.append(state)
        seen = states[max(k - delay, 0)].pose
        known = Pose(*(a + b for a, b in zip(seen, error[k], strict=True))) if error else seen
        command = follower.push(round(k * _NS / rate), known)
        if command is not None:
            wheels = command.wheels
            commands.append((k * dt, *wheels, float(k)))
        if k < steps:
            state = robot.step(state, wheels, dt, grip[k])
    time = np.arange(steps + 1) / rate
    poses = np.array([state.pose for state in states])
    return SimulatedDrive(
        controller,
        time,
        poses,
        np.array([state.speed for state in states]),
        np.array([state.yaw_rate for state in states]),
        np.array(commands).reshape(-1, 4),
        TrackingErrors.of(reference, time, poses),
    )


class OdometryUse(enum.Enum):
    """What became of an odometry message."""

    USED = 'used'
    EARLY = 'no command is due yet'
    NO_PATH = 'there is no path'
    LATE = 'its stamp does not come after the latest'
    INVALID = 'it holds no pose'


@dataclasses.dataclass(frozen=True)
class Step:
    """What an odometry message led to: a command where one was due, and the robot's error then."""

    heard: OdometryUse
    command: VelocityCommand | None = None
    error: TrackingError | None = None


@dataclasses.dataclass
class LiveFollower:
    """Follows a path by odometry; the batch run over the same messages gives the same bits.

    The path begins with the first odometry message after it was given.

    Parameters
    ----------
    robot : DifferentialDrive
        Its kinematics; a live robot brings its own dynamics.
    tracker : TrackerModel
        Parameters of the controller.
    control_rate : float
        Hz.
    interpolation : str
        As in `ReferenceMotion`.
    at_robot : bool
        True: the path is moved and turned to begin where the robot is. False: it is in the frame
        of the odometry.
    """

    robot: DifferentialDrive
    tracker: TrackerModel
    control_rate: float
    interpolation: str = 'spline'
    at_robot: bool = False
    _waypoints: Waypoints | None = dataclasses.field(default=None, init=False)
    _follower: Follower | None = dataclasses.field(default=None, init=False)
    _latest_ns: int | None = dataclasses.field(default=None, init=False)

    @property
    def has_path(self) -> bool:
        """True once there is a path."""
        return self._waypoints is not None

    def follow(self, waypoints: Waypoints) -> None:
        """Follow another path from the next odometry on."""
        self._waypoints = waypoints
        self._follower = None

    def reset(self) -> None:
        """Begin the path again with the next odometry, whatever its stamp."""
        self._follower = None
        self._latest_ns = None

    def push(self, odometry: OdometryArray) -> Step:
        """Take one odometry message."""
        try:
            check_values(odometry)
        except MotionError:
            return Step(OdometryUse.INVALID)
        stamp_ns = int(odometry.stamp_ns[0])
        if self._latest_ns is not None and stamp_ns <= self._latest_ns:
            return Step(OdometryUse.LATE)
        self._latest_ns = stamp_ns
        if self._waypoints is None:
            return Step(OdometryUse.NO_PATH)
        x, y, _ = odometry.position[0].tolist()
        pose = Pose(x, y, heading_of(*odometry.orientation[0].tolist()))
        if self._follower is None:
            placed = self._waypoints.starting_at(pose) if self.at_robot else self._waypoints
            reference = ReferenceMotion(placed, self.interpolation)
            self._follower = Follower(reference, self.robot, self.tracker, self.control_rate)
        command = self._follower.push(stamp_ns, pose)
        if command is None:
            return Step(OdometryUse.EARLY)
        wanted = self._follower.reference.at(self._follower.time_of(stamp_ns)).pose
        return Step(OdometryUse.USED, command, tracking_error(wanted, pose))
