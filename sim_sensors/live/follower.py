# SPDX-License-Identifier: Apache-2.0
"""A follower on odometry as it comes, with a path that may be given late or anew."""

from __future__ import annotations

import dataclasses
import enum

from sim_sensors.core.errors import MotionError
from sim_sensors.core.measurements import OdometryArray
from sim_sensors.following.follower import Follower, VelocityCommand, heading_of
from sim_sensors.following.reference import ReferenceMotion, TrackingError, tracking_error
from sim_sensors.following.tracking import TrackerModel
from sim_sensors.motion.drive_kinematics import DifferentialDrive
from sim_sensors.motion.odometry import check_values
from sim_sensors.motion.planar import Pose
from sim_sensors.motion.waypoint_table import Waypoints


class OdometryUse(enum.Enum):
    """What became of an odometry message."""

    USED = 'used'
    EARLY = 'no command is due yet'
    NO_PATH = 'there is no path'
    LATE = 'its stamp does not come after the latest'
    INVALID = 'it holds no pose'


@dataclasses.dataclass(frozen=True)
class Step:
    """What one odometry message led to.

    Attributes
    ----------
    heard : OdometryUse
    command : VelocityCommand or None
        Where one was due.
    error : TrackingError or None
        Of the robot at that time, where there is a command.
    """

    heard: OdometryUse
    command: VelocityCommand | None = None
    error: TrackingError | None = None


class LiveFollower:
    """Follows a path by odometry; the batch run over the same messages gives the same bits.

    The path begins with the first odometry message after it was given.

    Parameters
    ----------
    robot : DifferentialDrive
        Its kinematics; a live robot brings its own dynamics.
    tracker : TrackerModel
    control_rate : float
        Hz.
    interpolation : str
        As in `ReferenceMotion`.
    at_robot : bool
        True: the path is moved and turned to begin where the robot is. False: it is in the frame
        of the odometry.
    """

    def __init__(
        self,
        robot: DifferentialDrive,
        tracker: TrackerModel,
        *,
        control_rate: float,
        interpolation: str = 'spline',
        at_robot: bool = False,
    ) -> None:
        self._robot = robot
        self._tracker = tracker
        self._rate = control_rate
        self._interpolation = interpolation
        self._at_robot = at_robot
        self._waypoints: Waypoints | None = None
        self._follower: Follower | None = None
        self._latest_ns: int | None = None

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
            self._follower = self._start(self._waypoints, pose)
        command = self._follower.push(stamp_ns, pose)
        if command is None:
            return Step(OdometryUse.EARLY)
        wanted = self._follower.reference.at(self._follower.time_of(stamp_ns)).pose
        return Step(OdometryUse.USED, command, tracking_error(wanted, pose))

    def _start(self, waypoints: Waypoints, pose: Pose) -> Follower:
        placed = waypoints.starting_at(pose) if self._at_robot else waypoints
        reference = ReferenceMotion(placed, self._interpolation)
        return Follower(reference, self._robot, self._tracker, self._rate)
