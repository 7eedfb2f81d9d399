# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""judge_node: the embedded judge as a node, in place of robot_localization's nodes."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from rcl_interfaces.msg import SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import serialize_message
from rclpy.subscription import Subscription
from sensor_msgs.msg import NavSatFix
from std_srvs.srv import Empty, SetBool, Trigger

from sim2real_eval.common.findings import Finding, JudgeError, RecordingError
from sim2real_eval.judge.external.connections import MESSAGES
from sim2real_eval.judge.robot_localization.configuration import (
    FRONT_ENDS,
    NAVSAT_TOPIC,
    FilterConfig,
    NavsatConfig,
    with_front_end,
)
from sim2real_eval.judge.robot_localization.health import (
    ERROR,
    LIVE_KINDS,
    MESSAGES_REFUSED,
    JudgeHealth,
    level_of,
    plain_text,
)
from sim2real_eval.judge.robot_localization.live import LiveJudge
from sim2real_eval.judge.robot_localization.parameter_file import ParameterReader
from sim2real_eval.judge.robot_localization.rehearsal import rehearse
from sim2real_eval.judge.robot_localization.replay_options import Grids, corrections, front_end
from sim2real_eval.judge.robot_localization.topics import COMMAND, FIX
from sim2real_eval.recording.cdr import decode, decode_transforms, encode
from sim2real_eval.recording.message_types import MESSAGE_TYPES, MessageType
from sim2real_eval.recording.metadata import FrameTree, read_transforms
from sim2real_eval.recording.recording import StaticTransform
from sim_sensors.core.compilation import PREPARED
from sim_sensors.core.errors import ParameterError, Sim2RealError
from sim_sensors.core.measurements import FixArray, MessageArray, PoseArray, TwistArray
from sim_sensors.motion.time_line import TopicTimeLines
from sim_sensors.ros.diagnostics import Reporter, diagnostic
from sim_sensors.ros.managed_node import ManagedNode
from sim_sensors.ros.parameters import start_parameters
from sim_sensors.ros.running import on_backward_jump, run

_ODOMETRY = MESSAGE_TYPES['nav_msgs/msg/Odometry']
_POSE = MESSAGE_TYPES[MESSAGES['pose'][1]]
_FILTERED_GPS, _SET_POSE = 'gps/filtered', 'set_pose'
# Subscriptions that may have several publishers, and that may receive nothing for long.
_RARE = ('cmd_vel', _SET_POSE)
_FIRST_POLL_NS = 1_000_000
_MAX_AHEAD_NS = 10 * 10**9
_QUEUE_SIZE = 10


@dataclasses.dataclass(frozen=True, eq=False)
class JudgeParameters:
    """Parameters of a judge_node, read when it starts."""

    config: FilterConfig  # of ekf_node or, with `filter: ukf`, of ukf_node
    # From `navsat_params_file`; with `front_end: enu`, the settings of that front end.
    navsat: NavsatConfig | None
    correct: frozenset[str]  # deviations of robot_localization that are corrected
    transforms: tuple[StaticTransform, ...]  # from `static_transforms_file`
    assume_identity: bool  # `assume_identity_frames`: unconnected frames coincide
    # Topic of each input with its leading slash, if any, and depth of its subscription.
    topics: Mapping[str, str]
    queue_sizes: Mapping[str, int]
    autostart: bool  # configure and activate the node when it starts
    disabled_at_startup: bool  # ticks do nothing until the service `enable` is called

    @classmethod
    def from_node(cls, node: Node, changes: Sequence[Parameter] = ()) -> JudgeParameters:
        """Read the parameters of a node; `changes` override the present values.

        ParameterError for an unknown or unsupported parameter, a wrong value, or a wrong file.
        """
        parameters = start_parameters(node, changes)
        reader = ParameterReader(f'parameters of {node.get_fully_qualified_name()}', parameters)
        autostart = reader.boolean('autostart', True)
        disabled = reader.boolean('disabled_at_startup', False)
        navsat_file = reader.text('navsat_params_file', '')
        transforms_file = reader.text('static_transforms_file', '')
        assume_identity = reader.boolean('assume_identity_frames', False)
        # The name of a node selects the section of a parameter file, so it selects the filter too.
        filter_name = reader.text('filter', 'ukf' if node.get_name().startswith('ukf') else 'ekf')
        if filter_name not in ('ekf', 'ukf'):
            raise reader.refuse('filter', filter_name, 'ekf or ukf')
        front = front_end(reader.text('front_end', FRONT_ENDS[0]), reader.where, 'front_end')
        correct = corrections(reader.texts('correct'), reader.where, 'correct')
        if 'unscented' in correct and filter_name != 'ukf':
            raise ParameterError(reader.where, 'correct', 'unscented is for ukf_node only')
        config = FilterConfig.from_parameters(reader, unscented=filter_name == 'ukf')
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
            autostart=autostart,
            # The activation of a lifecycle node enables its filter.
            disabled_at_startup=disabled and not config.release.is_lifecycle,
        )


class JudgeNode(ManagedNode):
    """Node that passes all messages to a `LiveJudge` in order of arrival and publishes its output.

    Messages are decoded and encoded by the code that reads and writes bags, so that a live judge
    gets the same arrays as a batch run. Parameters can be set while the node is not active.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__('ekf_filter_node', allow_undeclared_parameters=True, **options)
        # `[]` in a parameter file gives a parameter without a value, for which a dump has null.
        self.set_parameters(
            [
                Parameter(name, Parameter.Type.STRING_ARRAY, [])
                for name, setting in start_parameters(self).items()
                if setting is None
            ]
        )
        self._settings = JudgeParameters.from_node(self)
        self.add_on_set_parameters_callback(self._on_parameters)
        self._reporter = Reporter(self, self._report)
        self.start(autostart=self._settings.autostart)

    def configure(self) -> None:
        """Compile, or load, all code that the parameters need."""
        self._new_judge()

    def activate(self) -> None:
        """Begin to judge with the present parameters; the first estimate waits for messages."""
        # Parameters may have been set since the configuration, and need other code.
        self.live, parameters = self._new_judge(), self._settings
        self.live.enabled = not parameters.disabled_at_startup
        self.health = JudgeHealth(self.live)
        self._prepared = len(PREPARED)
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
        self._offer_services()
        # A single timer, set to whatever is due next, keeps both grids exactly.
        self._timer = self.create_timer(_FIRST_POLL_NS * 1e-9, self._on_timer)
        self._has_jumped_back = False
        self._jump_guard = self.create_guard_condition(self._restart_after_jump)
        self._jumps = on_backward_jump(self, self._on_backward_jump)
        # The grid of the ticks begins now, even if a simulated clock stands still.
        self._on_timer()

    def deactivate(self) -> None:
        """Forget the estimate."""
        self._jumps.unregister()
        self.destroy_guard_condition(self._jump_guard)

    def _new_judge(self) -> LiveJudge:
        """Return a judge with the present parameters, with all its code compiled."""
        self._settings = settings = JudgeParameters.from_node(self)
        self._transforms = {transform.child: transform for transform in settings.transforms}
        rehearse(settings.config, settings.navsat, settings.correct)
        return LiveJudge(settings.config, settings.navsat, self._frames(), settings.correct)

    def _offer_services(self) -> None:
        """Offer the services of robot_localization [robot_localization], and those of this node.

        The types of robot_localization are used if they are installed. Otherwise `toggle` is a
        SetBool, and there is no service `set_pose`.
        """
        prefix = self._settings.config.release.service_prefix
        toggle = _service_type('ToggleFilterProcessing')
        self._services_offered = {
            f'{prefix}enable': (Empty, self._on_enable),
            'reset': (Empty, self._on_reset),
            f'{prefix}toggle': (
                toggle or SetBool,
                self._on_toggle if toggle else self._on_set_bool,
            ),
            '~/reset': (Trigger, self._on_reset),
            '~/status': (Trigger, self._on_status),
        }
        if set_pose := _service_type('SetPose'):
            self._services_offered['set_pose'] = (set_pose, self._on_set_pose)
        else:
            self.get_logger().info(
                f'robot_localization is not installed: {prefix}toggle takes std_srvs/SetBool, and '
                'set_pose is a topic only'
            )
        for name, (service_type, callback) in self._services_offered.items():
            self.create_service(service_type, name, callback)

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
            _SET_POSE, _SET_POSE, *MESSAGES['pose'], self._set_pose, 1, ReliabilityPolicy.RELIABLE
        )
        if find_spec('tf2_msgs') is not None:
            # tf2_msgs is not on PyPI, so a machine without a ROS installation lacks it.
            message = import_module('tf2_msgs.msg').TFMessage
            latched = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
            self.create_subscription(
                message, '/tf_static', self.receive_transforms, latched, raw=True
            )
        elif not (parameters.transforms or parameters.assume_identity):
            self.get_logger().warning(
                'tf2_msgs is not installed: /tf_static is not read; set static_transforms_file, '
                'or assume_identity_frames if all sensors are at the origin of base_link'
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
        qos = QoSProfile(depth=depth, reliability=reliability)
        receive = partial(self._receive, name, topic, kind, process)
        self._inputs[name] = self.create_subscription(message, topic, receive, qos, raw=True)

    def _receive(
        self, name: str, topic: str, kind: MessageType, process: Callable[[Any], None], data: bytes
    ) -> None:
        """Count and process a serialised message."""
        self._restart_after_jump()
        self.health.count_received(name)
        self._process(name, lambda: process(self._decode(kind, data, topic)))

    def _decode(self, kind: MessageType, data: bytes, topic: str) -> MessageArray:
        arrival = np.array([self._now()], dtype=np.int64)
        array = decode(kind, [data], arrival, topic).array
        _refuse_future_stamp(array, topic)
        if topic != 'set_pose' and self._time_lines.begins_earlier(topic, int(array.stamp_ns[0])):
            self._reset(f'{topic} has begun an earlier time line')
        self.health.check_stamp(topic, int(array.stamp_ns[0]))
        return array

    def _process(self, name: str, process: Callable[[], None]) -> None:
        """Process a message; a refused one is counted, and the first one is logged."""
        try:
            process()
        except (JudgeError, RecordingError) as error:
            is_rare = name in _RARE
            if self.health.count_refused(name, str(error), is_rare=is_rare):
                self.get_logger().warning(f'{MESSAGES_REFUSED.code}: {error}')
        else:
            self.health.count_accepted(name)

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

    def _set_pose(self, pose: PoseArray) -> None:
        self.live.set_pose(pose, self._now())

    def _on_set_pose(self, request: Any, response: Any) -> Any:
        data = serialize_message(request.pose)
        self._receive(_SET_POSE, _SET_POSE, _POSE, self._set_pose, data)
        return response

    def _on_enable(self, _: Empty.Request, response: Empty.Response) -> Empty.Response:
        if not self.live.enabled:
            self.live.enabled = True
            self.get_logger().info('the filter is enabled')
        return response

    def _on_toggle(self, request: Any, response: Any) -> Any:
        response.status = self._toggle(request.on)
        return response

    def _on_set_bool(
        self, request: SetBool.Request, response: SetBool.Response
    ) -> SetBool.Response:
        response.success = self._toggle(request.data)
        state = 'on' if self.live.processing else 'off'
        response.message = f'processing {"is" if response.success else "was already"} {state}'
        return response

    def _toggle(self, on: bool) -> bool:
        """Switch the processing of measurements on or off; return False if nothing changes."""
        if on == self.live.processing:
            return False
        self.live.processing = on
        self.get_logger().info(f'processing is toggled {"on" if on else "off"}')
        return True

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
                self.health.count_estimate(estimate.orientation[0], now)
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

    def _on_reset(self, _: Any, answer: Any) -> Any:
        self._reset('requested')
        if isinstance(answer, Trigger.Response):
            answer.success, answer.message = True, 'waits for its first measurement'
        return answer

    def _reset(self, reason: str) -> None:
        self.live.reset()
        self.live.start(self._now())
        self._time_lines.clear()
        self.health.count_reset(reason)
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
                'compiled': self._count_compiled(),
                **self.health.summary(self._findings()),
            }
        )
        return answer

    def _count_exclusive_publishers(self) -> dict[str, int]:
        """Return the number of publishers of the clock and of each topic of measurements.

        Each must have one publisher; commands and poses may have several.
        """
        publishers = {
            reader.topic_name: reader.get_publisher_count()
            for name, reader in self._inputs.items()
            if name not in _RARE
        }
        if self.get_parameter('use_sim_time').value:
            # The topic may be remapped, as for robots with a clock each.
            clock = self.resolve_topic_name('/clock')
            publishers[clock] = self.count_publishers(clock)
        return publishers

    def _count_compiled(self) -> int:
        """Return how many functions were compiled, or loaded, since the activation."""
        return len(PREPARED) - self._prepared

    def _findings(self) -> list[Finding]:
        return self.health.findings(self._now(), self._count_exclusive_publishers())

    def _report(self) -> DiagnosticStatus:
        """Return the diagnostics, and log new findings."""
        name = f'{self.get_fully_qualified_name()}: judge'
        if not self.is_active:
            return diagnostic(name, DiagnosticStatus.OK, self.state, ())
        findings = self._findings()
        for finding in self.health.news(findings):
            # Remedies of other kinds of finding name command-line options, which a node does not
            # have.
            remedy = finding.remedy if finding.kind in LIVE_KINDS else ''
            text = f'{finding.code}: {"; ".join(filter(None, (plain_text(finding), remedy)))}'
            # rclpy raises an error if one line of code logs with two severities.
            if level_of([finding]) == ERROR:
                self.get_logger().error(text)
            else:
                self.get_logger().warning(text)
        services = ', '.join(
            f'{service} ({service_type.__module__.split(".")[0]}/{service_type.__name__})'
            for service, (service_type, _) in self._services_offered.items()
        )
        values = [
            *((finding.code, plain_text(finding)) for finding in findings),
            *self.health.values(),
            ('compiled while running', self._count_compiled()),
            ('services', services),
        ]  # fmt: skip
        level, message = bytes([level_of(findings)]), self.health.message(findings)
        return diagnostic(name, level, message, values)

    def _on_parameters(self, parameters: list[Parameter]) -> SetParametersResult:
        """Refuse changes while the node is active, and wrong values at any time."""
        # Setting a parameter to its present value is allowed: `ros2 param load` of a dump sets all
        # of them.
        present, wanted = start_parameters(self), start_parameters(self, parameters)
        changes = [name for name in wanted if wanted[name] != present.get(name)]
        reason = ''
        if changes and self.is_active:
            reason = f'{changes[0]} is read when the node is activated; deactivate it first'
        elif changes:
            try:
                JudgeParameters.from_node(self, parameters)
            except Sim2RealError as error:
                reason = str(error)
        return SetParametersResult(successful=not reason, reason=reason)

    def _send(self, publisher: Any, kind: MessageType, array: MessageArray) -> None:
        publisher.publish(encode(kind, array, publisher.topic_name)[0])


def _service_type(name: str) -> Any:
    """Return a service type of robot_localization; None if it is not installed."""
    try:
        return getattr(import_module('robot_localization.srv'), name)
    except (ImportError, AttributeError):
        return None


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
