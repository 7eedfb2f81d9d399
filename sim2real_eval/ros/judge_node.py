# SPDX-License-Identifier: Apache-2.0
"""judge_node: the embedded judge as a node, in place of robot_localization's nodes."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from rcl_interfaces.msg import SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription
from sensor_msgs.msg import NavSatFix
from std_srvs.srv import Trigger

from sim2real_eval.common.findings import (
    Finding,
    JudgeError,
    RecordingError,
    by_severity,
    to_records,
)
from sim2real_eval.judge.external.connections import MESSAGES
from sim2real_eval.judge.robot_localization.configuration import (
    FRONT_ENDS,
    NAVSAT_TOPIC,
    FilterConfig,
    NavsatConfig,
    with_front_end,
)
from sim2real_eval.judge.robot_localization.live import LiveJudge
from sim2real_eval.judge.robot_localization.parameter_file import ParameterReader
from sim2real_eval.judge.robot_localization.replay_options import Grids, corrections, front_end
from sim2real_eval.judge.robot_localization.topics import COMMAND, FIX
from sim2real_eval.recording.cdr import decode, decode_transforms, encode
from sim2real_eval.recording.checks import STAMP_REPEATED
from sim2real_eval.recording.message_types import MESSAGE_TYPES, MessageType
from sim2real_eval.recording.metadata import FrameTree, read_transforms
from sim2real_eval.recording.recording import StaticTransform
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.measurements import FixArray, MessageArray, TwistArray
from sim_sensors.core.rotations import euler_from_quaternion
from sim_sensors.motion.time_line import TopicTimeLines
from sim_sensors.ros.diagnostics import Reporter, diagnostic, warn_of_publishers
from sim_sensors.ros.parameters import start_parameters
from sim_sensors.ros.running import on_backward_jump, run

_ODOMETRY = MESSAGE_TYPES['nav_msgs/msg/Odometry']
_FILTERED_GPS = 'gps/filtered'
_FIRST_POLL_NS = 1_000_000
_MAX_AHEAD_NS = 10 * 10**9
_QUEUE_SIZE = 10


class JudgeHealth:
    """Counts and notes of a judge_node for /diagnostics and `~/status`."""

    def __init__(self, name: str, live: LiveJudge) -> None:
        self._name = name
        self._live = live
        self.received: dict[str, int] = {}
        self.published = 0
        self.resets = 0
        self.last_reset = ''
        self._refused: dict[str, tuple[int, str]] = {}
        # By topic: the newest stamp, and the number of messages that repeat a stamp.
        self._stamps: dict[str, int] = {}
        self._repeated: dict[str, int] = {}
        self._orientation: npt.ArrayLike | None = None

    def count_received(self, subscription: str) -> None:
        """Count a message of a subscription."""
        self.received[subscription] = self.received.get(subscription, 0) + 1

    def check_stamp(self, topic: str, stamp_ns: int) -> None:
        """Count a message that repeats the stamp of the previous one."""
        if self._stamps.get(topic) == stamp_ns:
            self._repeated[topic] = self._repeated.get(topic, 0) + 1
        self._stamps[topic] = stamp_ns

    def count_estimate(self, orientation: npt.ArrayLike) -> None:
        """Count a published estimate, and keep its quaternion x y z w."""
        self.published += 1
        self._orientation = orientation

    def count_refused(self, subscription: str, reason: str) -> bool:
        """Count a message that could not be used; return True if the reason is new."""
        count, previous = self._refused.get(subscription, (0, ''))
        self._refused[subscription] = (count + 1, reason)
        return reason != previous

    def _notes(self) -> list[Finding]:
        repeated = [STAMP_REPEATED(topic, count=n) for topic, n in self._repeated.items()]
        return [*self._live.notes(), *repeated]

    def status(self, publishers: Mapping[str, int]) -> DiagnosticStatus:
        """Return counts and notes, with WARN if there is a note or no message yet.

        `publishers` is the number of publishers of each topic that must have one.
        """
        notes = [
            *(note for topic, n in publishers.items() for note in warn_of_publishers(topic, n)),
            *(reason for _, reason in self._refused.values()),
            *map(str, by_severity(self._notes())),
        ]
        level = DiagnosticStatus.WARN if notes else DiagnosticStatus.OK
        if not any(self.received.values()):
            level = DiagnosticStatus.WARN
            notes.insert(0, 'no message received yet')
        values: list[tuple[str, object]] = [('published', self.published)]
        if self._orientation is not None:
            heading = math.degrees(euler_from_quaternion(self._orientation)[2])
            values.append(('heading [deg]', f'{heading:.1f}'))
        values += [('resets', self.resets), ('last reset', self.last_reset)]
        values += [(f'{name} received', count) for name, count in sorted(self.received.items())]
        values += [(f'{name} refused', n) for name, (n, _) in sorted(self._refused.items())]
        for part in self._live.parts:
            for count in ('older', 'unusable', 'fused', 'rejected'):
                values.append((f'{part.name} {count}', getattr(part, count)))
        message = '; '.join(notes) or 'judging'
        return diagnostic(f'{self._name}: judge', level, message, values)

    def summary(self) -> dict[str, object]:
        """Return counts and notes as plain values."""
        return {
            'received': self.received,
            'refused': {name: count for name, (count, _) in self._refused.items()},
            'published': self.published,
            'resets': self.resets,
            'parts': [dataclasses.asdict(part) for part in self._live.parts],
            'notes': to_records(self._notes()),
        }


@dataclasses.dataclass(frozen=True, eq=False)
class JudgeParameters:
    """Parameters of a judge_node, read when it starts."""

    config: FilterConfig  # of ekf_node or, with `filter: ukf`, of ukf_node
    # From `navsat_params_file`; with `front_end: enu` for the front end without navsat_transform.
    navsat: NavsatConfig | None
    correct: frozenset[str]  # deviations of robot_localization that are corrected
    transforms: tuple[StaticTransform, ...]  # from `static_transforms_file`
    assume_identity: bool  # `assume_identity_frames`: unconnected frames coincide
    # Topic of each input with its leading slash, if any, and depth of its subscription.
    topics: Mapping[str, str]
    queue_sizes: Mapping[str, int]

    @classmethod
    def from_node(cls, node: Node) -> JudgeParameters:
        """Read the parameters that a node was started with.

        ParameterError for an unknown or unsupported parameter, a wrong value, or a wrong file.
        """
        parameters = start_parameters(node)
        reader = ParameterReader(f'parameters of {node.get_fully_qualified_name()}', parameters)
        navsat_file = reader.text('navsat_params_file', '')
        transforms_file = reader.text('static_transforms_file', '')
        assume_identity = reader.boolean('assume_identity_frames', False)
        # A section of a parameter file is chosen by the name of the node.
        kind = reader.text('filter', 'ukf' if node.get_name().startswith('ukf') else 'ekf')
        if kind not in ('ekf', 'ukf'):
            raise reader.refuse('filter', kind, 'ekf or ukf')
        front = front_end(reader.text('front_end', FRONT_ENDS[0]), reader.where, 'front_end')
        correct = corrections(reader.texts('correct'), reader.where, 'correct')
        if 'unscented' in correct and kind != 'ukf':
            raise ParameterError(reader.where, 'correct', 'unscented goes with ukf_node only')
        config = FilterConfig.from_parameters(reader, unscented=kind == 'ukf')
        navsat = None
        if navsat_file:
            navsat = NavsatConfig.from_file(navsat_file, release=config.release)
        sizes = (parameters.get(f'{source.name}_queue_size') for source in config.sources)
        return cls(
            config=config,
            navsat=with_front_end(navsat, front),
            correct=correct,
            transforms=read_transforms(Path(transforms_file)) if transforms_file else (),
            assume_identity=assume_identity,
            topics={source.name: str(parameters[source.name]) for source in config.sources},
            queue_sizes={
                source.name: size if isinstance(size, int) and size > 0 else _QUEUE_SIZE
                for source, size in zip(config.sources, sizes, strict=True)
            },
        )


class JudgeNode(Node):
    """Node that passes all messages to a `LiveJudge` in order of arrival and publishes its output.

    Messages are decoded and encoded by the code that reads and writes bags, so that a live judge
    gets the same arrays as a batch run.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(
            'ekf_filter_node', automatically_declare_parameters_from_overrides=True, **options
        )
        parameters = JudgeParameters.from_node(self)
        self._settings = parameters
        self._transforms = {transform.child: transform for transform in parameters.transforms}
        self.live = LiveJudge(
            parameters.config, parameters.navsat, self._frames(), parameters.correct
        )
        self.live.warm_up()
        self.health = JudgeHealth(self.get_fully_qualified_name(), self.live)
        self._timers_due: Grids | None = None
        self._time_lines = TopicTimeLines(_MAX_AHEAD_NS)
        self._filtered = self.create_publisher(Odometry, 'odometry/filtered', 10)
        self._gps = self._filtered_gps = None
        if parameters.navsat is not None:
            self._gps = self.create_publisher(Odometry, NAVSAT_TOPIC, 10)
            if parameters.navsat.publish_filtered_gps:
                self._filtered_gps = self.create_publisher(NavSatFix, _FILTERED_GPS, 10)
        self._inputs: dict[str, Subscription] = {}
        self._subscribe()
        self.create_service(Trigger, '~/reset', self._on_reset)
        self.create_service(Trigger, '~/status', self._on_status)
        self.add_on_set_parameters_callback(self._on_parameters)
        # A single timer, set to whatever is due next, keeps both grids exactly.
        self._timer = self.create_timer(_FIRST_POLL_NS * 1e-9, self._on_timer)
        self._has_jumped_back = False
        self._jump_guard = self.create_guard_condition(self._restart_after_jump)
        self._jumps = on_backward_jump(self, self._on_backward_jump)
        self._reporter = Reporter(self, lambda: self.health.status(self._publishers_of_one()))

    def _subscribe(self) -> None:
        parameters, live = self._settings, self.live
        for source in parameters.config.sources:
            if source.topic == NAVSAT_TOPIC and parameters.navsat is not None:
                continue
            self._listen(
                source.name, parameters.topics[source.name], *MESSAGES[source.kind],
                partial(live.receive, source.name),
                parameters.queue_sizes[source.name],
            )  # fmt: skip
        if parameters.navsat is not None:
            self._listen('gps/fix', 'gps/fix', *MESSAGES[FIX], self._on_fix)
            if parameters.navsat.needs_heading:
                self._listen('imu', 'imu', *MESSAGES['imu'], live.receive_heading)
        if parameters.config.control_mask.any():
            if parameters.config.stamped_control:
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
            # tf2_msgs is not on PyPI, so a machine without a ROS installation lacks it.
            message = import_module('tf2_msgs.msg').TFMessage
            latched = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
            self.create_subscription(
                message, '/tf_static', self.receive_transforms, latched, raw=True
            )
        elif not (parameters.transforms or parameters.assume_identity):
            self.get_logger().warning(
                'tf2_msgs is not installed: /tf_static is not read; give static_transforms_file, '
                'or assume_identity_frames if all sensors are in the origin of base_link'
            )

    def _listen(
        self,
        name: str,
        topic: str,
        message: Any,
        type_name: str,
        process: Callable[[Any], None],
        depth: int = 10,
        reliability: ReliabilityPolicy = ReliabilityPolicy.BEST_EFFORT,
    ) -> None:
        kind = MESSAGE_TYPES[type_name]

        def receive(data: bytes) -> None:
            self._restart_after_jump()
            self.health.count_received(name)
            self._process(name, lambda: process(self._decode(kind, data, topic)))

        qos = QoSProfile(depth=depth, reliability=reliability)
        self._inputs[name] = self.create_subscription(message, topic, receive, qos, raw=True)

    def _decode(self, kind: MessageType, data: bytes, topic: str) -> MessageArray:
        arrival = np.array([self._now()], dtype=np.int64)
        array = decode(kind, [data], arrival, topic).array
        _refuse_future_stamp(array, topic)
        if topic != 'set_pose' and self._time_lines.begins_earlier(topic, int(array.stamp_ns[0])):
            self._reset(f'{topic} has begun an earlier time line')
        self.health.check_stamp(topic, int(array.stamp_ns[0]))
        return array

    def _process(self, name: str, process: Callable[[], None]) -> None:
        """Process a message; a refused one is counted, and a new reason is logged."""
        try:
            process()
        except (JudgeError, RecordingError) as error:
            if self.health.count_refused(name, str(error)):
                self.get_logger().warning(str(error))

    def receive_transforms(self, data: bytes) -> None:
        """Take a serialised tf2_msgs/TFMessage of static transforms."""
        for _, transform in decode_transforms(data, '/tf_static'):
            self._transforms[transform.child] = transform
        self.live.set_frames(self._frames())

    def _frames(self) -> FrameTree:
        transforms: list[StaticTransform] = list(self._transforms.values())
        return FrameTree(transforms, assume_identity=self._settings.assume_identity)

    def _now(self) -> int:
        return int(self.get_clock().now().nanoseconds)

    def _on_fix(self, fixes: FixArray) -> None:
        for position in self.live.receive_fix(fixes):
            self._send(self._gps, _ODOMETRY, position)

    def _on_command(self, command: Twist) -> None:
        self._restart_after_jump()
        self.health.count_received('cmd_vel')
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
        self._process('cmd_vel', lambda: self.live.receive_command(commands))

    def _on_timer(self) -> None:
        self._restart_after_jump()
        now = self._now()
        if now == 0:
            return  # simulated time that has not begun
        if self._timers_due is None:
            self._timers_due = Grids(self._settings.config, self._settings.navsat, now)
            self.live.start(now)
        due = self._timers_due
        if due.filter.take(now):
            estimate = self.live.tick(now)
            if estimate is not None:
                self._send(self._filtered, _ODOMETRY, estimate)
                self.health.count_estimate(estimate.orientation[0])
        if due.take_navsat(now):
            position = self.live.navsat_tick()
            if position is not None:
                self._send(self._gps, _ODOMETRY, position)
            if self._filtered_gps is not None and (fix := self.live.filtered_fix(now)) is not None:
                self._send(self._filtered_gps, MESSAGE_TYPES[MESSAGES[FIX][1]], fix)
        self._timer.timer_period_ns = max(due.next_ns - self._now(), 1)
        self._timer.reset()

    def _on_backward_jump(self) -> None:
        self._has_jumped_back = True
        self._jump_guard.trigger()

    def _restart_after_jump(self) -> None:
        """Reset after a backward clock jump, before later messages are processed."""
        if self._has_jumped_back:
            self._has_jumped_back = False
            self._reset('the clock jumped backward')
            self._timers_due = None
            self._on_timer()

    def _on_reset(self, _: Trigger.Request, answer: Trigger.Response) -> Trigger.Response:
        self._reset('requested')
        answer.success, answer.message = True, 'waits for its first measurement'
        return answer

    def _reset(self, reason: str) -> None:
        self.live.reset()
        self.live.start(self._now())
        self._time_lines.clear()
        self.health.resets += 1
        self.health.last_reset = reason
        self.get_logger().info(f'reset: {reason}')

    def _on_status(self, _: Trigger.Request, answer: Trigger.Response) -> Trigger.Response:
        # Due ticks run before the answer, so that a client need not ask again.
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
        """Return the number of publishers of the clock and of each topic of measurements.

        Each must have one publisher; commands and poses may have several.
        """
        publishers = {
            reader.topic_name: reader.get_publisher_count()
            for name, reader in self._inputs.items()
            if name not in ('cmd_vel', 'set_pose')
        }
        if self.get_parameter('use_sim_time').value:
            # The topic may be remapped, as for robots with a clock each.
            clock = self.resolve_topic_name('/clock')
            publishers[clock] = self.count_publishers(clock)
        return publishers

    def _on_parameters(self, parameters: list[Parameter]) -> SetParametersResult:
        fixed = [parameter.name for parameter in parameters if parameter.name != 'use_sim_time']
        if fixed:
            reason = f'{fixed[0]} is read when the node starts; restart it with another value'
            return SetParametersResult(successful=False, reason=reason)
        return SetParametersResult(successful=True)

    def _send(self, publisher: Any, kind: MessageType, array: MessageArray) -> None:
        publisher.publish(encode(kind, array, publisher.topic_name)[0])


def _refuse_future_stamp(array: MessageArray, topic: str) -> None:
    """Refuse a stamp in the future; the filter would ignore all messages until that time."""
    ahead = int(array.stamp_ns[0] - array.arrival_ns[0])
    if ahead > _MAX_AHEAD_NS and array.arrival_ns[0] > 0:
        raise JudgeError(
            f'{topic}: stamped {ahead * 1e-9:.3g} s ahead of the clock of this node; must be at '
            f'most {_MAX_AHEAD_NS * 1e-9:g} s'
        )


def main(args: list[str] | None = None) -> int:
    """Run judge_node; return the exit status."""
    return run('judge_node', lambda: [JudgeNode()], args)


if __name__ == '__main__':
    sys.exit(main())
