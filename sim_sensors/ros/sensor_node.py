# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Node of a sensor of any kind, which takes odometry and publishes measurements.

docs/reference/ros/nodes.md describes topics, parameters and rules.
"""

from __future__ import annotations

import collections
import dataclasses
import json
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import yaml
from diagnostic_msgs.msg import DiagnosticStatus
from nav_msgs.msg import Odometry
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger

from sim_sensors.core.errors import MotionError, ParameterError
from sim_sensors.core.measurements import MessageArray, OdometryArray
from sim_sensors.core.parameters import Parameters
from sim_sensors.live.samples import LiveOdometry, Verdict
from sim_sensors.live.sensor import LiveSensor
from sim_sensors.motion.scenarios import Standstill
from sim_sensors.sensor.catalogue import KINDS
from sim_sensors.sensor.faults import Fault, FaultProcess, add_faults, read_faults, to_entries
from sim_sensors.sensor.sensor import SensorModel
from sim_sensors.world.world import World, load_world
from .diagnostics import Reporter, SensorHealth, diagnostic
from .managed_node import ManagedNode
from .messages import add_frame_prefix, message_class
from .node_settings import SensorSettings, WorldSettings
from .outputs import OUTPUTS
from .parameters import NodeParameters, overridable_publisher
from .running import on_backward_jump, run
from .truth_report import TruthReport
from .truth_topics import (
    live_noise_free,
    odometry_of_bytes,
    queued_noise_free,
    subscribe_noise_free,
    subscribe_odometry,
)

# Odometry messages that are taken before other callbacks run.
_MAX_BURST = 200
_THROTTLE_S = 5.0
# Longest interval between the two measurements that compile the code, s.
_COMPILING_INTERVAL_S = 1.0
# Prefix of the parameters of faults.
_FAULT = 'fault.'
# Arrival and stamp, ns, messages and error.
_WaitingMeasurement = tuple[int, int, tuple[object, ...], object]


class SensorNode(ManagedNode):
    """Node of one sensor. Its output depends on the received messages alone.

    Another model needs no other process: deactivate the node, set `model`, and activate it.

    Parameters
    ----------
    kind : type of SensorModel
        Base class of the kind of sensor.
    settings : SensorSettings, optional
        Defaults of the parameters besides those of the model, of the type in `OUTPUTS`. Empty
        strings are replaced by the defaults of the kind.
    model : optional
        Model; None: the one that the parameter `model` names.
    strict : bool
        Refuse unknown parameters. Otherwise the caller calls `declared.refuse_unknown`.

    Raises
    ------
    ParameterError
        For a wrong parameter.
    """

    def __init__(
        self,
        kind: type[SensorModel[Any]],
        settings: SensorSettings | None = None,
        *,
        model: Any = None,
        strict: bool = True,
        **node_options: Any,
    ) -> None:
        super().__init__(kind.node, **node_options)
        self.kind = kind
        self._output = OUTPUTS.get(kind.name)
        self.declared = NodeParameters(
            self, can_restart=lambda: not self.is_active, fixed=('autostart', 'diagnostics_period')
        )
        self._settings = self.declared.declare(
            _fill_defaults(kind, settings or self._output.settings())
        )
        self._model: Any = self.declared.declare(
            model or kind.load(self._settings.model), kind.name
        )
        for fault in kind.fault_kinds:
            self.declared.declare(fault(), _FAULT + fault.kind, skip=('start', 'end'))
        self._reporter = Reporter(self, self._status, self._settings.diagnostics_period)
        if strict:
            self.declared.refuse_unknown()
        self._read_faults()
        self.declared.accept_changes(self._on_change, self._check_change)
        self.start(autostart=self._settings.autostart)

    def configure(self) -> None:
        """Switch the sensor on, which compiles its code, and announce its topics."""
        self._switch_on_anew()
        self._topic = self._settings.topic(self._model)
        messages = {
            **self._output.topics_before,
            self._topic: self.message_type,
            **self._output.topics_after,
        }
        self._topic_publishers: dict[str, Any] = {
            topic: overridable_publisher(self, message, topic)
            for topic, message in messages.items()
        }
        self._publisher = self._topic_publishers[self._topic]
        truth_topic, truth_type = self._output.truth
        self._truth_publisher = overridable_publisher(self, truth_type, truth_topic)

    def activate(self) -> None:
        """Measure from the next odometry on, as a sensor that is switched on."""
        self._switch_on_anew()
        self.create_service(Trigger, '~/reset', self._on_reset)
        self.create_service(Trigger, '~/finish', self._on_finish)
        self._offer_faults()
        self._output.on_ready(self)
        self._subscription = subscribe_odometry(self, self._on_odometry)
        self._noise_free = None
        if self._live.noise_free is not None:
            self._noise_free = subscribe_noise_free(
                self, self.kind, self.message_type, self._on_noise_free
            )
        # Last, since an activation that fails removes publishers and the like, but no handle.
        self._jump_handle = on_backward_jump(self, self._on_jump)

    def _read_faults(self) -> None:
        """Read the faults of this sensor in the file that `faults_file` names."""
        path = self._settings.faults_file
        self._scheduled_faults: tuple[Fault, ...] = ()
        if path:
            self._scheduled_faults = read_faults(path).get(self._settings.sensor, ())
        add_faults(self._model, self._scheduled_faults, path)

    def _offer_faults(self) -> None:
        """Offer a service for each fault, and publish all faults so far."""
        if not self.kind.fault_kinds:
            return
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._faults_publisher = self.create_publisher(String, '~/faults', latched)
        for fault in self.kind.fault_kinds:
            switch = partial(self._on_fault, fault.kind)
            self.create_service(SetBool, f'~/fault/{fault.kind}', switch)
        self._publish_faults()

    def _on_fault(self, kind: str, request: Any, response: Any) -> Any:
        faults: FaultProcess = self.sensor.faults
        if request.data:
            faults.switch_on(self.declared.get(_FAULT + kind))
        else:
            faults.switch_off(kind)
        self._publish_faults()
        state = 'on' if request.data else 'off'
        response.success = True
        response.message = f'{kind} is {state} from the next measurement on'
        self.get_logger().info(response.message)
        return response

    def _publish_faults(self) -> None:
        """Publish all faults so far as the text of a file that repeats them."""
        if not self.kind.fault_kinds:
            return
        entries = to_entries(self.sensor.faults.faults, sensor=self._settings.sensor)
        self._faults_publisher.publish(String(data=yaml.safe_dump(entries, sort_keys=False)))

    def deactivate(self) -> None:
        """Drop the odometry that has not been measured."""
        self._jump_handle.unregister()

    def _switch_on_anew(self) -> None:
        """Create the sensor with the present parameters."""
        # The files of world and faults may have changed while the node was not active.
        self.__dict__.pop('world', None)
        self._read_faults()
        settings = self._settings
        truth = TruthReport(self.get_logger().warning, reads_twist=settings.velocity == 'twist')
        self._health = SensorHealth(self.get_fully_qualified_name(), settings.model, truth)
        self._live: LiveSensor[Any] = LiveSensor(
            self.switch_on,
            self._model.rate,
            LiveOdometry(
                velocity=settings.velocity,
                gap_factor=settings.gap_factor,
                longest_gap=settings.longest_gap,
            ),
            start_ns=settings.start_ns or None,
            chunk=self._output.chunk,
            noise_free=live_noise_free(self.kind, settings, self._surroundings),
        )
        self._published = 0
        self._last_ns: int | None = None
        # Measurements wait until odometry of their time of arrival has come.
        self._waiting: collections.deque[_WaitingMeasurement] = collections.deque()
        # The first measurements compile code; while the node runs, odometry would pile up.
        period = min(1.0 / self._model.rate, _COMPILING_INTERVAL_S)
        self.switch_on().measure(Standstill(duration=period).at([0.0, period]))

    @property
    def message_type(self) -> Any:
        """Type of the measurements."""
        return message_class(self.kind.message)

    @property
    def sensor(self) -> Any:
        """The current sensor, which a reset replaces."""
        return self._live.sensor

    @cached_property
    def world(self) -> World:
        """World that the parameter `world` names.

        It is read once while the node is active: a reset, a gap or a changed parameter restarts
        the sensor, and the file may have changed by then.
        """
        return load_world(self.declared.get().world)

    def switch_on(self) -> Any:
        """Return a sensor in its initial state, with the present parameters."""
        settings: SensorSettings = self.declared.get()
        model = self.declared.get(self.kind.name)
        model = add_faults(model, self._scheduled_faults, settings.faults_file)
        return model.start(settings.seed, settings.run, settings.sensor, **self._surroundings())

    def _surroundings(self) -> dict[str, Any]:
        """Return the properties of the world that the sensor takes, by keyword."""
        settings: SensorSettings = self.declared.get()
        if isinstance(settings, WorldSettings):
            return self.kind.surroundings(self.world)
        return settings.surroundings()

    @property
    def newest_ns(self) -> int | None:
        """Stamp of the newest accepted odometry; None before the first."""
        return self._live.odometry.newest_ns

    @property
    def final_ns(self) -> int | None:
        """Stamps before this one are measured; None if none is."""
        return self._live.final_ns

    @property
    def received(self) -> int:
        """Number of odometry messages since the start, including refused ones."""
        return self._health.received

    @property
    def published(self) -> int:
        """Number of measurements published since the start or the latest reset."""
        return self._published

    def finish(self) -> None:
        """Measure and publish everything up to the last odometry.

        Queued odometry is taken first; later odometry is refused until a reset. The total output
        is then that of the batch run over the same odometry.

        Raises MotionError if fewer than three odometry messages have come.
        """
        self._take_all()
        try:
            self._live.finish()
        except MotionError as error:
            self._note_failure(error)
            raise
        self._measure()
        self._release(everything=True)

    def _on_odometry(self, data: bytes) -> None:
        self._take([*self._decode(data), *self._take_queued()])

    def _on_noise_free(self, message: MessageArray) -> None:
        self._push_noise_free([message])
        self._measure()
        self._release()

    def _push_noise_free(self, messages: list[MessageArray]) -> None:
        for message in messages:
            verdict = self._live.push_noise_free(message)
            if verdict.is_new_start or not verdict.is_accepted:
                self._health.note_noise_free(verdict)

    def _take_all(self) -> None:
        """Take all queued messages."""
        if self._noise_free is not None:
            while messages := queued_noise_free(self._noise_free, self.message_type):
                self._push_noise_free(messages)
        while samples := self._take_queued():
            self._take(samples)

    def _take_queued(self) -> list[OdometryArray]:
        """Return the queued odometry.

        A burst is cheap if it is taken together, since the motion is interpolated once.
        """
        samples: list[OdometryArray] = []
        handle = self._subscription.handle
        with handle:
            while len(samples) < _MAX_BURST and (entry := handle.take_message(Odometry, True)):
                samples += self._decode(entry[0])
        return samples

    def _decode(self, data: bytes) -> list[OdometryArray]:
        """Return the sample in a message, or an empty list if it cannot be read."""
        try:
            return [odometry_of_bytes(data)]
        except MotionError as error:
            self._health.count_odometry(Verdict.INVALID, 0.0)
            self.get_logger().warning(str(error), throttle_duration_sec=_THROTTLE_S)
            return []

    def _take(self, samples: list[OdometryArray]) -> None:
        for sample in samples:
            stamp_ns = int(sample.stamp_ns[0])
            if self._live.odometry.is_new_start(sample):
                self._measure()
            verdict = self._live.push(sample)
            self._health.count_odometry(verdict, self._live.odometry.gap)
            self._health.outliers = self._live.odometry.outliers
            if verdict in (Verdict.ACCEPTED, Verdict.GAP):
                self._health.truth.push(sample)
            elif verdict is Verdict.RESTARTED:
                self._health.truth.restart()
                self._publish_faults()
            if verdict in (Verdict.REWOUND, Verdict.RENAMED):
                self._restart(f'odometry {verdict.value}')
            elif not verdict.is_accepted:
                self.get_logger().warning(
                    f'odometry {verdict.value} ({stamp_ns} ns)', throttle_duration_sec=_THROTTLE_S
                )
        self._measure()
        self._release()

    def _measure(self) -> None:
        """Measure all final stamps; the measurements wait for their time of arrival."""
        while True:
            try:
                for stamp_ns, measurement in self._live.measure():
                    pairs = list(
                        self._output.messages(self._model, self._settings, stamp_ns, measurement)
                    )
                    for k, arrival in zip(*self._live.sensor.channel.send(stamp_ns), strict=True):
                        self._waiting.append((int(arrival), int(stamp_ns[k]), *pairs[k]))
                    self._release()
                return
            except MotionError as error:
                self._note_failure(error)

    def _note_failure(self, error: MotionError) -> None:
        self._health.count_failure(str(error))
        self.get_logger().error(str(error), throttle_duration_sec=_THROTTLE_S)

    def _release(self, *, everything: bool = False) -> None:
        """Publish the measurements that arrive by the stamp of the newest odometry, or all."""
        newest_ns = self._live.odometry.newest_ns
        while self._waiting and newest_ns is not None:
            arrival_ns, stamp, measurement, truth = self._waiting[0]
            if arrival_ns > newest_ns and not everything:
                break
            self._waiting.popleft()
            publishers = self._topic_publishers.values()
            for publisher, message in zip(publishers, measurement, strict=True):
                if message is not None:
                    self._publish(publisher, message)
            if self._truth_publisher.get_subscription_count():
                self._publish(self._truth_publisher, truth() if callable(truth) else truth)
            self._published += 1
            self._last_ns = stamp
            self._health.count_published(stamp)

    def _publish(self, publisher: Any, message: object) -> None:
        if prefix := self._settings.frame_prefix:
            add_frame_prefix(message, prefix)
        publisher.publish(message)

    def _on_jump(self) -> None:
        # Queued messages belong to the time before the jump.
        self._take_all()
        if self._live.odometry.take_jump():
            return
        again = self._live.rewind()
        self._restart('the clock jumped backward')
        self._take(again)

    def _on_reset(self, request: object, response: Any) -> Any:
        self._live.reset()
        self._restart('requested')
        response.success = True
        response.message = 'starts with the next odometry, with the same random numbers'
        return response

    def _on_finish(self, request: object, response: Any) -> Any:
        problem: dict[str, object] = {}
        try:
            self.finish()
        except MotionError as error:
            problem['error'] = str(error)
        response.success = not problem
        response.message = json.dumps(
            {'published': self._published, 'last_stamp_ns': self._last_ns, **problem}
        )
        return response

    def _restart(self, reason: str) -> None:
        self._publish_faults()
        self._waiting.clear()
        self._published, self._last_ns = 0, None
        self._health.truth.restart()
        self._health.count_reset(reason)
        self.get_logger().info(f'reset: {reason}')

    def _check_change(self, sets: Mapping[str, Parameters]) -> None:
        """Refuse a model that cannot be loaded, or whose topic is not announced."""
        settings: Any = sets['']
        # Absent while another model is declared.
        model: Any = sets.get(self.kind.name, self._model)
        if settings.model != self._settings.model:
            model = self.kind.load(settings.model)
        topic = settings.topic(model)
        if self.state != 'unconfigured' and topic != self._topic:
            raise ParameterError(
                self.get_name(),
                '',
                f'the topic would change from {self._topic} to {topic}; clean the node up first',
            )
        if settings.faults_file:
            read_faults(settings.faults_file)

    def _on_change(self, changed: set[str]) -> None:
        before, self._settings = self._settings, self.declared.get()
        if before.model != self._settings.model:
            self.declared.replace(self.kind.load(self._settings.model), self.kind.name)
        self._model = self.declared.get(self.kind.name)
        if not self.is_active:
            return
        faults: FaultProcess = self.sensor.faults
        for fault in faults.active:
            if _FAULT + fault.kind in changed:
                faults.switch_on(self.declared.get(_FAULT + fault.kind))
                self._publish_faults()
        if not all(name.startswith(_FAULT) for name in changed):
            self._live.change(self.switch_on)
            self.sensor.faults = faults
            self.get_logger().info('parameters changed: the noise restarts, the stamps continue')

    def _status(self) -> DiagnosticStatus:
        if not self.is_active:
            name = f'{self.get_fully_qualified_name()}: sensor'
            return diagnostic(name, DiagnosticStatus.OK, self.state, (), self._settings.model)
        if self._noise_free is not None and not self._noise_free.get_publisher_count():
            self._health.note_missing_noise_free(self._noise_free.topic_name)
        self._health.faults = tuple(fault.kind for fault in self.sensor.faults.active)
        return self._health.report(
            self._subscription.get_publisher_count(),
            self._publisher.get_subscription_count(),
            self._truth_publisher.get_subscription_count(),
        )


def _fill_defaults(kind: type[SensorModel[Any]], settings: SensorSettings) -> SensorSettings:
    """Return the settings with empty strings replaced by the defaults of a kind."""
    defaults = {'model': kind.preset, 'sensor': kind.name, 'world': kind.world}
    changes: Any = {
        name: default for name, default in defaults.items() if getattr(settings, name, None) == ''
    }
    return dataclasses.replace(settings, **changes)


def main(kind: str, args: Sequence[str] | None = None) -> int:
    """Run the node of a kind of sensor until it is stopped; return the exit status."""
    sensor_kind = KINDS.get(kind)
    return run(sensor_kind.node, lambda: [SensorNode(sensor_kind)], args)
