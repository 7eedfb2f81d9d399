# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Path following: one follower steers simulated and live robots."""

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
from sim_sensors.motion.odometry import check_values
from sim_sensors.motion.planar import Pose, heading_of
from sim_sensors.motion.time_line import AHEAD_COUNT, NEW_LINE_COUNT, NewTimeLine, UsualStep
from sim_sensors.motion.vehicles import DifferentialDrive, RobotState, WheelRates
from sim_sensors.motion.waypoints import Waypoints
from .tracking import (
    INTERPOLATIONS,
    LqrTracker,
    NeuralNetwork,
    NonlinearTracker,
    OpenLoop,
    PurePursuitTracker,
    ReferenceMotion,
    TrackerModel,
    TrackingError,
    TrackingErrors,
    YawDistancePid,
    YawPid,
    tracking_error,
)

_NS = 1_000_000_000
# Longest step between messages, also between the first ones after a restart of the clock.
_LONGEST_STEP_NS = 60 * _NS


@dataclasses.dataclass(frozen=True)
class PoseSensor(Parameters):
    """Errors of the pose that a controller gets; by default it is exact and without delay."""

    position_std: float = non_negative(
        0.0, 'm', 'Standard deviation of the white noise of x and y in each control step.'
    )
    yaw_std: float = non_negative(
        0.0, 'rad', 'Standard deviation of the white noise of the heading in each control step.'
    )
    latency: float = non_negative(0.0, 's', 'Delay of the measured pose.')


@dataclasses.dataclass(frozen=True)
class FollowSettings(Parameters):
    """Robot, controllers and pose sensor of a path-following run."""

    control_rate: float = positive(
        20.0, 'Hz', 'Commands per second.', maximum=1e4,
        read_only=True,
    )  # fmt: skip
    interpolation: str = parameter(
        'spline', '', 'Interpolation between waypoints.', choices=INTERPOLATIONS, read_only=True
    )
    robot: DifferentialDrive = dataclasses.field(default_factory=DifferentialDrive)
    pose: PoseSensor = dataclasses.field(default_factory=PoseSensor)
    open_loop: OpenLoop = dataclasses.field(default_factory=OpenLoop)
    yaw_pid: YawPid = dataclasses.field(default_factory=YawPid)
    yaw_distance_pid: YawDistancePid = dataclasses.field(default_factory=YawDistancePid)
    pure_pursuit: PurePursuitTracker = dataclasses.field(default_factory=PurePursuitTracker)
    nonlinear: NonlinearTracker = dataclasses.field(default_factory=NonlinearTracker)
    lqr: LqrTracker = dataclasses.field(default_factory=LqrTracker)
    neural_network: NeuralNetwork = dataclasses.field(default_factory=NeuralNetwork)

    def tracker(self, name: str) -> TrackerModel:
        """Return the controller by name, one of `TRACKERS`."""
        tracker_model: TrackerModel = getattr(self, name)
        return tracker_model


@dataclasses.dataclass(frozen=True)
class VelocityCommand:
    """Command of a follower.

    `speed` and `yaw_rate`, m/s and rad/s, are equivalent to the wheel rates. `finished` is True
    when the reference has ended; everything else is then zero.
    """

    wheels: WheelRates
    speed: float
    yaw_rate: float
    finished: bool


class Follower:
    """Controller that turns incoming poses into commands at a fixed rate.

    Time 0 of the reference is the stamp of the first pose. The first pose at or after each
    multiple of the control period gives a command. The commands depend only on stamps and poses.
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
        self._next_period = 0

    def time_of(self, stamp_ns: int) -> float:
        """Return the seconds since the first pose; 0 if there is none yet."""
        return 0.0 if self._origin_ns is None else (stamp_ns - self._origin_ns) / _NS

    def push(self, stamp_ns: int, pose: Pose) -> VelocityCommand | None:
        """Process a pose; return a command if one is due."""
        if self._origin_ns is None:
            self._origin_ns = stamp_ns
        elapsed_ns = stamp_ns - self._origin_ns
        if elapsed_ns < round(self._next_period * _NS / self._rate):
            return None
        # Skip most periods in one step: after a change of clock there may be billions of them.
        self._next_period = max(self._next_period, int(elapsed_ns * self._rate / _NS) - 1)
        while elapsed_ns >= round(self._next_period * _NS / self._rate):
            self._next_period += 1
        time = elapsed_ns / _NS
        if time >= self.reference.end:
            return VelocityCommand(WheelRates(0.0, 0.0), 0.0, 0.0, finished=True)
        wheels = self._tracker.command(time, pose)
        return VelocityCommand(wheels, *self._robot.forward(wheels), finished=False)


@dataclasses.dataclass(frozen=True, eq=False)
class SimulatedDrive:
    """Drive of a simulated robot.

    Attributes
    ----------
    time : (n,) s
        Time since the first waypoint.
    poses : (n, 3)
        x, y [m] and heading [rad], not wrapped.
    speed, yaw_rate : (n,) m/s, rad/s
        Speed and yaw rate over the ground.
    wheel_rates, wheel_commands : (n, 2) rad/s
        Rates of the left and right wheel, and the latest command of the controller.
    """

    controller: str
    time: FloatArray
    poses: FloatArray
    speed: FloatArray
    yaw_rate: FloatArray
    wheel_rates: FloatArray
    wheel_commands: FloatArray
    errors: TrackingErrors

    def truth(self, start_ns: int) -> OdometryArray:
        """Return the drive as ground-truth odometry (map to base_link, zero covariance)."""
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
    """Simulate the robot from the first waypoint until the time of the last one.

    The robot starts at `offset` (x, y, heading; world, m and rad) from the first waypoint. It has
    the speed and yaw rate of the reference, since a recording may begin in the middle of a drive.
    `controller` is one of `TRACKERS`. `rate`, Hz, is the rate of the samples and of the
    integration steps. `seed` and `run` determine the noise of grip and pose, which is the same for
    all controllers.
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
    pose_noise = None
    if sensor.position_std or sensor.yaw_std:
        draws = stream(seed, run, 'pose', 'white').standard_normal((steps + 1, 3))
        pose_noise = (draws * [sensor.position_std, sensor.position_std, sensor.yaw_std]).tolist()
    delay = round(sensor.latency * rate)
    states: list[RobotState] = []
    commands: list[WheelRates] = []
    for k in range(steps + 1):
        states.append(state)
        pose = states[max(k - delay, 0)].pose
        if pose_noise:
            pose = Pose(*(a + b for a, b in zip(pose, pose_noise[k], strict=True)))
        command = follower.push(round(k * _NS / rate), pose)
        if command is not None:
            wheels = command.wheels
        commands.append(wheels)
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
        np.array([state.wheels for state in states]),
        np.array(commands),
        TrackingErrors.from_poses(reference, time, poses),
    )


class OdometryUse(enum.Enum):
    """Use of an odometry message by a live follower."""

    USED = 'used'
    EARLY = 'no command is due yet'
    NO_PATH = 'there is no path'
    LATE = 'its stamp is not later than the previous one'
    INVALID = 'it contains no valid pose'
    AHEAD = 'its stamp is too far ahead'
    OTHER_FRAME = 'its frames differ from those before'

    @property
    def is_refused(self) -> bool:
        """Whether the message has no effect."""
        return self not in (OdometryUse.USED, OdometryUse.EARLY, OdometryUse.NO_PATH)


@dataclasses.dataclass(frozen=True)
class Step:
    """Result of one odometry message: a command if one was due, and the tracking error.

    `restarts` is True if the path starts again with this message, because the clock of the
    odometry restarted or its frames changed.
    """

    odometry_use: OdometryUse
    command: VelocityCommand | None = None
    error: TrackingError | None = None
    restarts: bool = False


@dataclasses.dataclass
class LiveFollower:
    """Path follower for live odometry; a batch run over the same messages is bit-identical.

    A path begins with the first odometry message after `follow`. A message that is late, too far
    ahead or has other frames is refused. After several such messages in a row the path restarts;
    see `NewTimeLine`.

    Parameters
    ----------
    robot : DifferentialDrive
        Kinematics of the robot; a live robot has its own dynamics.
    tracker : TrackerModel
        Parameters of the controller.
    control_rate : float
        Rate of commands, Hz.
    interpolation : str
        See `ReferenceMotion`.
    at_robot : bool
        If True, the path is moved and rotated to begin at the robot; otherwise it is in the frame
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
    _frames: tuple[str, str] = dataclasses.field(default=('', ''), init=False)
    _usual_step: UsualStep = dataclasses.field(default_factory=UsualStep, init=False)
    _new_line: NewTimeLine[None] = dataclasses.field(
        default_factory=lambda: NewTimeLine(_LONGEST_STEP_NS), init=False
    )

    @property
    def has_path(self) -> bool:
        """Whether a path was set."""
        return self._waypoints is not None

    def follow(self, waypoints: Waypoints) -> None:
        """Set the path that begins with the next odometry message."""
        self._waypoints = waypoints
        self._follower = None

    def reset(self) -> None:
        """Restart the path with the next odometry message, even if its stamp is earlier."""
        self._follower = None
        self._latest_ns = None
        self._usual_step = UsualStep()
        self._new_line.clear()

    def push(self, odometry: OdometryArray) -> Step:
        """Process one odometry message."""
        try:
            check_values(odometry)
        except MotionError:
            return Step(OdometryUse.INVALID)
        stamp_ns = int(odometry.stamp_ns[0])
        frames = odometry.frame, odometry.child_frame
        problem, restarts = self._check_order(stamp_ns, frames), False
        if problem is not None:
            count = AHEAD_COUNT if problem is OdometryUse.AHEAD else NEW_LINE_COUNT
            if not self._new_line.add(None, stamp_ns, problem, count, self._usual_step.ns):
                return Step(problem)
            restarts = problem is not OdometryUse.AHEAD
            if restarts:
                self.reset()
        elif self._latest_ns is not None:
            self._usual_step.add(stamp_ns - self._latest_ns)
        self._new_line.clear()
        self._latest_ns, self._frames = stamp_ns, frames
        if self._waypoints is None:
            return Step(OdometryUse.NO_PATH, restarts=restarts)
        x, y, _ = odometry.position[0].tolist()
        pose = Pose(x, y, heading_of(*odometry.orientation[0].tolist()))
        if self._follower is None:
            placed = self._waypoints.starting_at(pose) if self.at_robot else self._waypoints
            reference = ReferenceMotion(placed, self.interpolation)
            self._follower = Follower(reference, self.robot, self.tracker, self.control_rate)
        command = self._follower.push(stamp_ns, pose)
        if command is None:
            return Step(OdometryUse.EARLY, restarts=restarts)
        target = self._follower.reference.at(self._follower.time_of(stamp_ns)).pose
        return Step(OdometryUse.USED, command, tracking_error(target, pose), restarts)

    def _check_order(self, stamp_ns: int, frames: tuple[str, str]) -> OdometryUse | None:
        """Return why a message does not continue the odometry, or None."""
        if self._latest_ns is None:
            return None
        if stamp_ns <= self._latest_ns:
            return OdometryUse.LATE
        if frames != self._frames:
            return OdometryUse.OTHER_FRAME
        step_ns = stamp_ns - self._latest_ns
        is_ahead = step_ns > _LONGEST_STEP_NS or self._usual_step.is_exceeded(step_ns)
        return OdometryUse.AHEAD if is_ahead else None
