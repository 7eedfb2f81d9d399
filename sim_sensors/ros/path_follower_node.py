# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Node that follows a path: it takes odometry and publishes cmd_vel, for any robot."""

from __future__ import annotations

import collections
import dataclasses
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import Twist, TwistStamped, Vector3Stamped
from nav_msgs.msg import Path
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.duration import Duration
from std_srvs.srv import Trigger

from sim_sensors.core.errors import MotionError
from sim_sensors.following.follower import LiveFollower, OdometryUse, Step, VelocityCommand
from sim_sensors.following.tracking import TRACKERS, TrackerModel
from sim_sensors.motion.planar import heading_of
from sim_sensors.motion.vehicles import DifferentialDrive, WheelRates
from sim_sensors.motion.waypoints import Waypoints, read_waypoints, repair_waypoints
from .diagnostics import Reporter, ReportLines, diagnostic, warn_of_publishers
from .messages import stamp_ns, twist_message, vector_message
from .node_settings import PathFollowerSettings
from .parameters import NodeParameters, ParameterNode, overridable_publisher
from .running import on_backward_jump, run
from .truth_report import TruthReport
from .truth_topics import odometry_of_bytes, subscribe_odometry

_STANDSTILL = VelocityCommand(WheelRates(0.0, 0.0), 0.0, 0.0, finished=False)
_DELIVERY = Duration(seconds=1)
# Ticks of the timer without odometry that make the timeout.
_TICKS = 2


def path_waypoints(message: Path) -> Waypoints:
    """Return the waypoints of a nav_msgs/Path; the stamps of its poses are the times.

    Positions are in the frame of the odometry. Raises MotionError if fewer than two poses have
    increasing stamps.
    """
    stamps = np.array([stamp_ns(pose.header.stamp) for pose in message.poses], dtype=np.int64)
    poses = [pose.pose for pose in message.poses]
    first = int(stamps[0]) if len(stamps) else 0
    x, y = [pose.position.x for pose in poses], [pose.position.y for pose in poses]
    quaternions = [pose.orientation for pose in poses]
    heading = [heading_of(q.x, q.y, q.z, q.w) for q in quaternions]
    waypoints = repair_waypoints((stamps - first) * 1e-9, x, y, heading, where='path')
    x0, y0, *_ = waypoints.origin
    return dataclasses.replace(waypoints, x=waypoints.x + x0, y=waypoints.y + y0)


class PathFollowerNode(ParameterNode):
    """Publisher of `cmd_vel` and `~/error` at the stamps of `ground_truth/odometry`.

    The output depends on the messages alone and equals that of the batch run bit for bit, except
    that zero is commanded once when odometry is silent or invalid, and at the end of the node. A
    wrong parameter or path raises Sim2RealError.
    """

    def __init__(self, **node_options: Any) -> None:
        super().__init__(
            'path_follower_node',
            automatically_declare_parameters_from_overrides=True,
            **node_options,
        )
        self._parameter_sets = NodeParameters(self)
        self._settings = self._parameter_sets.declare(PathFollowerSettings())
        settings = self._settings
        self._parameter_sets.declare(DifferentialDrive(), 'robot')
        self._parameter_sets.declare(TRACKERS[settings.controller](), settings.controller)
        # One file may hold the parameters of all controllers.
        self._parameter_sets.refuse_unknown(
            {name: tracker() for name, tracker in TRACKERS.items()}
        )
        self._counts: collections.Counter[OdometryUse] = collections.Counter()
        self._published = 0
        self._finished = False
        self._lines = ReportLines()
        # The follower uses poses only.
        self._truth = TruthReport(self.get_logger().warning, reads_twist=False)
        self._last: Step | None = None
        # Stamp of the newest accepted odometry, and whether the robot was told to move last.
        self._newest_ns: int | None = None
        self._moves = False
        self._stops = 0
        self._silent_ticks = 0
        self._has_news = False
        # Waypoints of a file are relative to the first one; those of the topic are not.
        self._waypoints = read_waypoints(settings.path) if settings.path else None
        if self._waypoints is not None:
            for note in self._waypoints.notes:
                self.get_logger().warning(note)
        self._live = self._create_follower()
        self._connect()
        self._parameter_sets.accept_changes(self._on_change)

    def _create_follower(self) -> LiveFollower:
        settings = self._settings
        robot: DifferentialDrive = self._parameter_sets.get('robot')
        tracker: TrackerModel = self._parameter_sets.get(settings.controller)
        live = LiveFollower(
            robot,
            tracker,
            control_rate=settings.control_rate,
            interpolation=settings.interpolation,
            at_robot=settings.at_robot,
        )
        if self._waypoints is not None:
            live.follow(self._waypoints)
        return live

    def _connect(self) -> None:
        command = TwistStamped if self._settings.stamped else Twist
        self._command_publisher = overridable_publisher(self, command, 'cmd_vel')
        self._error_publisher = overridable_publisher(self, Vector3Stamped, '~/error')
        self.create_service(Trigger, '~/reset', self._on_reset)
        self._reporter = Reporter(self, self._status, self._settings.diagnostics_period)
        self._jump_handle = on_backward_jump(
            self, lambda: self._restart('the clock jumped backward')
        )
        self._path_subscription = self.create_subscription(Path, 'path', self._on_path, 1)
        self._subscription = subscribe_odometry(self, self._on_odometry)
        self._silence_timer = None
        if timeout := self._settings.odometry_timeout:
            # Odometry that waits in the queue after a stall of this process is taken between two
            # ticks.
            self._silence_timer = self.create_timer(
                timeout / _TICKS, self._on_silence, clock=Clock(clock_type=ClockType.STEADY_TIME)
            )

    def _on_path(self, message: Path) -> None:
        try:
            self._waypoints = path_waypoints(message)
        except MotionError as error:
            self._lines.add(str(error), DiagnosticStatus.ERROR)
            self.get_logger().error(str(error))
            return
        for note in self._waypoints.notes:
            self._lines.add(note, DiagnosticStatus.WARN)
        self._finished = False
        self._live.follow(self._waypoints)

    def _on_odometry(self, data: bytes) -> None:
        try:
            odometry = odometry_of_bytes(data)
        except MotionError:
            step = Step(OdometryUse.INVALID)
        else:
            step = self._live.push(odometry)
        use = step.odometry_use
        self._counts[use] += 1
        if use.is_refused:
            level = DiagnosticStatus.WARN
            if use is OdometryUse.INVALID:
                level = DiagnosticStatus.ERROR
                self.stop()
            elif use is OdometryUse.OTHER_FRAME:
                self._truth.refuse_frame()
            self._lines.add(f'odometry left out: {use.value}', level)
            return
        self._newest_ns = int(odometry.stamp_ns[0])
        self._end_silence()
        if step.restarts:
            self._truth.restart()
        self._truth.push(odometry)
        if step.restarts:
            self._note_restart('odometry has begun another time line, or has other frames')
        if step.command is None or step.error is None:
            return
        stamp = int(odometry.stamp_ns[0])
        self._publish(stamp, step.command)
        error = np.array([step.error.along, step.error.across, step.error.yaw])
        self._error_publisher.publish(vector_message(stamp, odometry.frame, error))
        self._last = step
        if step.command.finished and not self._finished:
            self.get_logger().info('the path has ended')
        self._finished = step.command.finished

    def _publish(self, stamp: int, command: VelocityCommand) -> None:
        linear = np.array([command.speed, 0.0, 0.0])
        angular = np.array([0.0, 0.0, command.yaw_rate])
        frame = self._settings.frame_prefix + self._settings.frame_id
        message = twist_message(stamp, frame, linear, angular)
        self._command_publisher.publish(message if self._settings.stamped else message.twist)
        self._published += 1
        self._moves = bool(command.speed or command.yaw_rate)

    def stop(self) -> None:
        """Command zero, unless the latest command was zero already."""
        if not self._moves or self._newest_ns is None:
            return
        self._publish(self._newest_ns, _STANDSTILL)
        self._stops += 1

    def end(self) -> None:
        """Command zero and wait until it has arrived."""
        self.stop()
        self._command_publisher.wait_for_all_acked(_DELIVERY)

    def _on_silence(self) -> None:
        self._silent_ticks += 1
        if self._is_silent:
            if self._silent_ticks == _TICKS:
                self.get_logger().error('odometry is silent: zero is commanded')
            self.stop()

    @property
    def _is_silent(self) -> bool:
        """Whether odometry has come, and none for the timeout."""
        return self._newest_ns is not None and self._silent_ticks >= _TICKS

    def _end_silence(self) -> None:
        self._has_news = True
        if self._silence_timer is not None:
            self._silent_ticks = 0
            self._silence_timer.reset()

    def _on_reset(self, request: object, response: Any) -> Any:
        self._restart('requested')
        response.success = True
        response.message = 'the path restarts with the next odometry'
        return response

    def _on_change(self, changed: set[str]) -> None:
        self._live = self._create_follower()
        self._restart('parameters changed')

    def _restart(self, reason: str) -> None:
        self._live.reset()
        self._truth.restart()
        self._note_restart(reason)

    def _note_restart(self, reason: str) -> None:
        self._finished = False
        self._lines.add(f'reset: {reason}', DiagnosticStatus.OK)
        self.get_logger().info(f'reset: {reason}')

    def _status(self) -> DiagnosticStatus:
        publishers = self._subscription.get_publisher_count()
        level, messages = self._lines.take()
        if self._is_silent and self._live.has_path and not self._finished:
            level = DiagnosticStatus.ERROR
            messages = ['odometry is silent: zero is commanded', *messages]
        elif not messages:
            level, messages = self._describe(publishers)
        self._has_news = False
        truth_level, truth_messages = self._truth.take()
        level, messages = max(level, truth_level), [*truth_messages, *messages]
        if warning := warn_of_publishers('odometry', publishers):
            level, messages = max(level, DiagnosticStatus.WARN), [*warning, *messages]
        error = None if self._last is None else self._last.error
        values = [
            *((f'odometry: {use.value}', self._counts[use]) for use in OdometryUse),
            ('published', self._published),
            ('stops', self._stops),
            ('distance [m]', '' if error is None else f'{error.distance:.6g}'),
            ('yaw error [rad]', '' if error is None else f'{error.yaw:.6g}'),
            *self._truth.values(),
            ('odometry publishers', publishers),
            ('subscriptions', self._command_publisher.get_subscription_count()),
            ('truth subscriptions', self._error_publisher.get_subscription_count()),
        ]
        name, hardware = self.get_fully_qualified_name(), self._settings.controller
        return diagnostic(f'{name}: follower', level, '; '.join(messages), values, hardware)

    def _describe(self, publishers: int) -> tuple[bytes, list[str]]:
        """Return level and message of a period without events."""
        if not self._live.has_path:
            return DiagnosticStatus.WARN, ['no path']
        if self._finished:
            return DiagnosticStatus.OK, ['the path has ended']
        if not self._has_news:
            reason = 'no message arrived' if publishers else 'the topic has no publisher'
            return DiagnosticStatus.WARN, [f'no odometry: {reason}']
        return DiagnosticStatus.OK, ['following']


def main(args: Sequence[str] | None = None) -> int:
    """Run a path follower until it is stopped; return the exit status."""
    nodes: list[PathFollowerNode] = []

    def create_nodes() -> list[PathFollowerNode]:
        nodes.append(PathFollowerNode())
        return nodes

    def stop() -> None:
        for node in nodes:
            node.end()

    return run('path_follower_node', create_nodes, args, stop=stop)


if __name__ == '__main__':
    sys.exit(main())
