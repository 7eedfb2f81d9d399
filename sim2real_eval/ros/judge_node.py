# SPDX-License-Identifier: Apache-2.0
"""judge_node: the embedded judge in the place of robot_localization's nodes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from rcl_interfaces.msg import SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription
from sensor_msgs.msg import NavSatFix
from std_srvs.srv import Trigger

from sim2real_eval.common.errors import JudgeError, RecordingError
from sim2real_eval.judge.external.senders import MESSAGES
from sim2real_eval.judge.robot_localization.configuration import NAVSAT_TOPIC
from sim2real_eval.judge.robot_localization.live import LiveJudge
from sim2real_eval.judge.robot_localization.replay_options import Grids
from sim2real_eval.judge.robot_localization.topics import COMMAND, FIX
from sim2real_eval.recording.cdr import decode, decode_transforms, encode
from sim2real_eval.recording.frames import FrameTree
from sim2real_eval.recording.message_types import MESSAGE_TYPES, MessageType
from sim2real_eval.recording.recording import StaticTransform
from sim_sensors.core.measurements import FixArray, MessageArray, TwistArray
from sim_sensors.ros.diagnostics import Reporter
from sim_sensors.ros.running import on_backward_jump, run
from .judge_health import JudgeHealth, JudgeParameters

_ODOMETRY = MESSAGE_TYPES['nav_msgs/msg/Odometry']
_FILTERED_GPS = 'gps/filtered'
_FIRST_POLL_NS = 1_000_000
_MOST_AHEAD_NS = 10 * 10**9


class JudgeNode(Node):
    """Subscribes, hands everything to a `LiveJudge` in order of arrival, and publishes.

    Messages are decoded from and encoded to their serialised form by the code that reads and
    writes bags, so that a live judge sees the very arrays of a batch run.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(
            'ekf_filter_node', automatically_declare_parameters_from_overrides=True, **options
        )
        told = JudgeParameters.of(self)
        self._told = told
        self._transforms = {transform.child: transform for transform in told.transforms}
        self.live = LiveJudge(told.config, told.navsat, self._frames(), told.correct)
        self.live.warm_up()
        self.health = JudgeHealth(self.get_fully_qualified_name(), self.live)
        self._timers_due: Grids | None = None
        self._filtered = self.create_publisher(Odometry, 'odometry/filtered', 10)
        self._gps = self._filtered_gps = None
        if told.navsat is not None:
            self._gps = self.create_publisher(Odometry, NAVSAT_TOPIC, 10)
            if told.navsat.publish_filtered_gps:
                self._filtered_gps = self.create_publisher(NavSatFix, _FILTERED_GPS, 10)
        self._inputs: dict[str, Subscription] = {}
        self._subscribe()
        self.create_service(Trigger, '~/reset', self._on_reset)
        self.create_service(Trigger, '~/status', self._on_status)
        self.add_on_set_parameters_callback(self._on_parameters)
        # One timer that is set anew for whatever is due next keeps both grids exactly.
        self._timer = self.create_timer(_FIRST_POLL_NS * 1e-9, self._on_timer)
        self._went_back = False
        self._restart = self.create_guard_condition(self._begin_anew)
        self._jumps = on_backward_jump(self, self._on_backward_jump)
        self._reporter = Reporter(self, lambda: self.health.status(self._publishers_of_one()))

    def _subscribe(self) -> None:
        told, live = self._told, self.live
        for source in told.config.sources:
            if source.topic == NAVSAT_TOPIC and told.navsat is not None:
                continue
            self._listen(
                source.name, told.topics[source.name], *MESSAGES[source.kind],
                partial(live.receive, source.name),
                told.queue_sizes[source.name],
            )  # fmt: skip
        if told.navsat is not None:
            self._listen('gps/fix', 'gps/fix', *MESSAGES[FIX], self._on_fix)
            if told.navsat.needs_heading:
                self._listen('imu', 'imu', *MESSAGES['imu'], live.receive_heading)
        if told.config.control_mask.any():
            if told.config.stamped_control:
                self._listen('cmd_vel', 'cmd_vel', *MESSAGES[COMMAND], live.receive_command)
            else:
                qos = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
                self._inputs['cmd_vel'] = self.create_subscription(
                    Twist, 'cmd_vel', self._on_command, qos
                )
        self._listen(
            'set_pose', 'set_pose', *MESSAGES['pose'],
            lambda pose: live.set_pose(pose, self._now()), 1, ReliabilityPolicy.RELIABLE,
        )  # fmt: skip
        if find_spec('tf2_msgs') is not None:
            # Not on PyPI, so machines without a ROS installation do without.
            message = import_module('tf2_msgs.msg').TFMessage
            latched = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
            self.create_subscription(
                message, '/tf_static', self.receive_transforms, latched, raw=True
            )
        elif not (told.transforms or told.assume_identity):
            self.get_logger().warning(
                'tf2_msgs is not installed: /tf_static is not read; give static_transforms_file, '
                'or assume_identity_frames when all sensors are in the origin of base_link'
            )

    def _listen(
        self,
        name: str,
        topic: str,
        message: Any,
        type_name: str,
        use: Callable[[Any], None],
        depth: int = 10,
        reliability: ReliabilityPolicy = ReliabilityPolicy.BEST_EFFORT,
    ) -> None:
        kind = MESSAGE_TYPES[type_name]

        def take(data: bytes) -> None:
            self._begin_anew()
            self.health.saw(name)
            self._use(name, lambda: use(self._checked(kind, data, topic)))

        qos = QoSProfile(depth=depth, reliability=reliability)
        self._inputs[name] = self.create_subscription(message, topic, take, qos, raw=True)

    def _checked(self, kind: MessageType, data: bytes, topic: str) -> MessageArray:
        arrival = np.array([self._now()], dtype=np.int64)
        array = decode(kind, [data], arrival, topic).array
        _check_stamp(array, topic)
        self.health.stamped(topic, int(array.stamp_ns[0]))
        return array

    def _use(self, name: str, use: Callable[[], None]) -> None:
        """Use a message; one that cannot be used is counted, and a new reason is logged."""
        try:
            use()
        except (JudgeError, RecordingError) as error:
            if self.health.refused(name, str(error)):
                self.get_logger().warning(str(error))

    def receive_transforms(self, data: bytes) -> None:
        """Take a serialised tf2_msgs/TFMessage of static transforms."""
        for _, transform in decode_transforms(data, '/tf_static'):
            self._transforms[transform.child] = transform
        self.live.set_frames(self._frames())

    def _frames(self) -> FrameTree:
        transforms: list[StaticTransform] = list(self._transforms.values())
        return FrameTree(transforms, assume_identity=self._told.assume_identity)

    def _now(self) -> int:
        return int(self.get_clock().now().nanoseconds)

    def _on_fix(self, fixes: FixArray) -> None:
        for position in self.live.receive_fix(fixes):
            self._send(self._gps, _ODOMETRY, position)

    def _on_command(self, command: Twist) -> None:
        self._begin_anew()
        self.health.saw('cmd_vel')
        now = np.array([self._now()], dtype=np.int64)
        linear, angular = command.linear, command.angular
        commands = TwistArray(
            stamp_ns=now,
            arrival_ns=now,
            frame='',
            linear_velocity=np.array([[linear.x, linear.y, linear.z]]),
            angular_velocity=np.array([[angular.x, angular.y, angular.z]]),
            twist_covariance=np.zeros((1, 6, 6)),
        )
        self._use('cmd_vel', lambda: self.live.receive_command(commands))

    def _on_timer(self) -> None:
        self._begin_anew()
        now = self._now()
        if now == 0:
            return  # simulated time that has not begun
        if self._timers_due is None:
            self._timers_due = Grids(self._told.config, self._told.navsat, now)
        due = self._timers_due
        if due.filter.take(now):
            estimate = self.live.tick(now)
            if estimate is not None:
                self._send(self._filtered, _ODOMETRY, estimate)
                self.health.estimated(estimate.orientation[0])
        if due.take_navsat(now):
            position = self.live.navsat_tick()
            if position is not None:
                self._send(self._gps, _ODOMETRY, position)
            if self._filtered_gps is not None and (fix := self.live.filtered_fix(now)) is not None:
                self._send(self._filtered_gps, MESSAGE_TYPES[MESSAGES[FIX][1]], fix)
        self._timer.timer_period_ns = max(due.next_ns - self._now(), 1)
        self._timer.reset()

    def _on_backward_jump(self) -> None:
        self._went_back = True
        self._restart.trigger()

    def _begin_anew(self) -> None:
        """Reset if the clock has gone back, before anything else of the new round counts."""
        if self._went_back:
            self._went_back = False
            self._reset('the clock went back')
            self._timers_due = None
            self._on_timer()

    def _on_reset(self, _: Trigger.Request, answer: Trigger.Response) -> Trigger.Response:
        self._reset('asked for')
        answer.success, answer.message = True, 'waits for its first measurement'
        return answer

    def _reset(self, why: str) -> None:
        self.live.reset()
        self.health.resets += 1
        self.get_logger().info(f'reset: {why}')

    def _on_status(self, _: Trigger.Request, answer: Trigger.Response) -> Trigger.Response:
        # What is due by now is done before it is told of: who waits for it need not ask again.
        self._on_timer()
        due = self._timers_due
        answer.success = True
        answer.message = json.dumps(
            {
                'now_ns': self._now(),
                'next_tick_ns': 0 if due is None else due.next_ns,
                'publishers': {
                    name: reader.get_publisher_count() for name, reader in self._inputs.items()
                },
                'subscribers': {
                    writer.topic_name: writer.get_subscription_count()
                    for writer in (self._filtered, self._gps, self._filtered_gps)
                    if writer is not None
                },
                **self.health.summary(),
            }
        )
        return answer

    def _publishers_of_one(self) -> dict[str, int]:
        """Return how many publish the clock and each topic of measurements; each must have one.

        Anybody may command or set a pose.
        """
        found = {
            reader.topic_name: reader.get_publisher_count()
            for name, reader in self._inputs.items()
            if name not in ('cmd_vel', 'set_pose')
        }
        if self.get_parameter('use_sim_time').value:
            found['/clock'] = self.count_publishers('/clock')
        return found

    def _on_parameters(self, parameters: list[Parameter]) -> SetParametersResult:
        fixed = [parameter.name for parameter in parameters if parameter.name != 'use_sim_time']
        if fixed:
            reason = f'{fixed[0]} is read when the node starts; start it anew with another value'
            return SetParametersResult(successful=False, reason=reason)
        return SetParametersResult(successful=True)

    def _send(self, publisher: Any, kind: MessageType, array: MessageArray) -> None:
        publisher.publish(encode(kind, array, publisher.topic_name)[0])


def _check_stamp(array: MessageArray, topic: str) -> None:
    """Refuse a message from the future: the filter would go there and take no other until then."""
    ahead = int(array.stamp_ns[0] - array.arrival_ns[0])
    if ahead > _MOST_AHEAD_NS and array.arrival_ns[0] > 0:
        raise JudgeError(
            f'{topic}: stamped {ahead * 1e-9:.3g} s ahead of the clock of this node; must be at '
            f'most {_MOST_AHEAD_NS * 1e-9:g} s'
        )


def main(args: list[str] | None = None) -> int:
    """Run judge_node; return the exit status."""
    return run('judge_node', lambda: [JudgeNode()], args)


if __name__ == '__main__':
    sys.exit(main())
