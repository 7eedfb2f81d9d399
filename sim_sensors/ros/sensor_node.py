# SPDX-License-Identifier: Apache-2.0
"""What all sensor nodes share: odometry in, measurements out, reset, diagnostics.

See docs/nodes.md for topics, parameters and rules.
"""

from __future__ import annotations

import abc
import collections
import json
from collections.abc import Iterator
from typing import Any, ClassVar

from diagnostic_msgs.msg import DiagnosticStatus
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions
from std_srvs.srv import Trigger

from sim_sensors.core.errors import MotionError
from sim_sensors.core.measurements import IntArray, OdometryArray
from sim_sensors.live.odometry import LiveOdometry, Verdict
from sim_sensors.live.sensor import LiveSensor
from sim_sensors.motion.scenarios import Standstill
from sim_sensors.ros.diagnostics import Reporter, SensorHealth
from sim_sensors.ros.odometry_topic import odometry_of_bytes, subscribe_odometry
from sim_sensors.ros.parameters import NodeParameters
from sim_sensors.ros.running import on_backward_jump
from sim_sensors.ros.sensor_settings import SensorSettings
from sim_sensors.sensor.catalogue import KINDS

__all__ = ['MEASUREMENT_QOS', 'SensorNode']

# Odometry that is taken before other callbacks get their turn.
_AT_ONCE = 200
# Reliable feeds both kinds of subscriptions.
MEASUREMENT_QOS = QoSProfile(depth=10)
_THROTTLE_S = 5.0


class SensorNode(Node, abc.ABC):
    """A sensor on the graph. What it publishes depends on the messages it gets alone.

    Parameters
    ----------
    settings : SensorSettings, optional
        Defaults of the parameters besides those of the model; by default those of its
        `settings_type`.
    **node_options
        For `rclpy.node.Node`.

    Raises
    ------
    ParameterError
        When a parameter is wrong.
    """

    node_name: ClassVar[str]
    """What the node is called where nobody renames it."""

    settings_type: ClassVar[type[SensorSettings]]
    """Its parameters besides those of the model."""

    prefix: ClassVar[str]
    """Kind of sensor, as in `sensor.catalogue.KINDS`; prefix of the model's parameters."""

    topic: ClassVar[str]
    """Relative name of the topic of the measurements."""

    message_type: ClassVar[type]
    """Of the measurements."""

    truth_topic: ClassVar[str]
    """Private name of the topic of the errors."""

    truth_type: ClassVar[type]
    """Of the errors."""

    chunk: ClassVar[int] = 1000
    """Measurements made at once; see `LiveSensor`."""

    def __init__(self, settings: SensorSettings | None = None, **node_options: Any) -> None:
        super().__init__(self.node_name, **node_options)
        self.declared = NodeParameters(self)
        self._settings = self.declared.declare(settings or self.settings_type())
        model = self.load(self._settings.model)
        self._model = self.declared.declare(model, self.prefix)
        self._live: LiveSensor[Any] = LiveSensor(
            self.switch_on,
            self._model.rate,
            LiveOdometry(
                velocity=self._settings.velocity,
                gap_factor=self._settings.gap_factor,
                longest_gap=self._settings.longest_gap,
            ),
            start_ns=self._settings.start_ns or None,
            chunk=self.chunk,
        )
        self._published = 0
        self._last_ns: int | None = None
        # The first measurement loads and compiles what later ones use; odometry would pile up.
        self.switch_on().measure(Standstill().at([0.0]))
        self._health = SensorHealth(self.get_fully_qualified_name(), self._settings.model)
        # Messages with their times of arrival; they wait for odometry of that time.
        self._waiting: collections.deque[tuple[int, int, object, object]] = collections.deque()
        self._connect()
        self.declared.follow(self._on_change)

    def load(self, model: str) -> Any:
        """Return the model by name or path."""
        return KINDS.get(self.prefix).load(model)

    def switch_on(self) -> Any:
        """Return the sensor in its initial state, with the parameters in force."""
        settings: SensorSettings = self.declared.get()
        model = self.declared.get(self.prefix)
        return model.start(settings.seed, settings.run, settings.sensor, **self.world_arguments())

    def world_arguments(self) -> dict[str, Any]:
        """Return what the sensor measures besides motion, as its model's `start` takes it."""
        return {}

    @abc.abstractmethod
    def messages(self, stamp_ns: IntArray, measurement: Any) -> Iterator[tuple[object, object]]:
        """Return messages of the measurements and of the errors in them."""

    def publish(self, measurement: Any) -> None:
        """Publish one measurement, as `messages` gave it; overridden where it is several."""
        self._publisher.publish(measurement)

    def _connect(self) -> None:
        overridable = QoSOverridingOptions.with_default_policies()
        self._publisher = self.create_publisher(
            self.message_type, self.topic, MEASUREMENT_QOS, qos_overriding_options=overridable
        )
        self._truth_publisher = self.create_publisher(
            self.truth_type,
            self.truth_topic,
            MEASUREMENT_QOS,
            qos_overriding_options=overridable,
        )
        self.create_service(Trigger, '~/reset', self._on_reset)
        self.create_service(Trigger, '~/finish', self._on_finish)
        self._reporter = Reporter(self, self._status, self._settings.diagnostics_period)
        self._jump_handle = on_backward_jump(self, self._on_jump)
        self._subscription = subscribe_odometry(self, self._on_odometry)

    @property
    def newest_ns(self) -> int | None:
        """Stamp of the newest odometry that counts; None before any."""
        return self._live.newest_ns

    @property
    def final_ns(self) -> int | None:
        """Stamps before this one are measured; None before any can be."""
        return self._live.final_ns

    @property
    def published(self) -> int:
        """How many measurements were published since the start or the latest reset."""
        return self._published

    def finish(self) -> None:
        """Measure and publish all that is left, as no more odometry is coming.

        Odometry that waits in the subscription is taken first; what comes later is refused until
        a reset. After it the output is that of the batch run over the same odometry, whole.

        Raises
        ------
        MotionError
            Fewer than three odometry messages have come.
        """
        self._take_all()
        try:
            self._live.finish()
        except MotionError as error:
            self._failed(error)
            raise
        self._measure()
        self._release(all_of_it=True)

    def _on_odometry(self, data: bytes) -> None:
        self._take([*self._read(data), *self._queued()])

    def _take_all(self) -> None:
        """Take all odometry that waits in the subscription."""
        while samples := self._queued():
            self._take(samples)

    def _queued(self) -> list[OdometryArray]:
        """Return what more waits in the subscription.

        Taking it together makes a burst cheap: motion is made once for all of it.
        """
        samples: list[OdometryArray] = []
        handle = self._subscription.handle
        with handle:
            while len(samples) < _AT_ONCE and (taken := handle.take_message(Odometry, True)):
                samples += self._read(taken[0])
        return samples

    def _read(self, data: bytes) -> list[OdometryArray]:
        """Return the sample in a message, none where it cannot be read."""
        try:
            return [odometry_of_bytes(data)]
        except MotionError as error:
            self._health.saw(Verdict.INVALID, 0.0)
            self.get_logger().warning(str(error), throttle_duration_sec=_THROTTLE_S)
            return []

    def _take(self, samples: list[OdometryArray]) -> None:
        for sample in samples:
            stamp_ns = int(sample.stamp_ns[0])
            if self._live.is_new_start(stamp_ns):
                self._measure()
            verdict = self._live.push(sample)
            self._health.saw(verdict, self._live.gap)
            if not verdict.accepted:
                self.get_logger().warning(
                    f'odometry {verdict.value} ({stamp_ns} ns)', throttle_duration_sec=_THROTTLE_S
                )
        self._measure()
        self._release()

    def _measure(self) -> None:
        """Measure all that is final, and have it wait for its time of arrival."""
        while True:
            try:
                for stamp_ns, measurement in self._live.measure():
                    pairs = list(self.messages(stamp_ns, measurement))
                    for k, arrival in zip(*self._live.sensor.channel.send(stamp_ns), strict=True):
                        self._waiting.append((int(arrival), int(stamp_ns[k]), *pairs[k]))
                    self._release()
                return
            except MotionError as error:
                self._failed(error)

    def _failed(self, error: MotionError) -> None:
        self._health.failed(str(error))
        self.get_logger().error(str(error), throttle_duration_sec=_THROTTLE_S)

    def _release(self, *, all_of_it: bool = False) -> None:
        """Publish what has arrived by the stamp of the newest odometry, or all of it."""
        newest_ns = self._live.newest_ns
        while self._waiting and newest_ns is not None:
            arrival_ns, stamp, measurement, truth = self._waiting[0]
            if arrival_ns > newest_ns and not all_of_it:
                break
            self._waiting.popleft()
            self.publish(measurement)
            if self._truth_publisher.get_subscription_count():
                self._truth_publisher.publish(truth)
            self._published += 1
            self._last_ns = stamp
            self._health.published(stamp)

    def _on_jump(self) -> None:
        # What waits may be the end of the old round, longer than what is stale by its stamp.
        self._take_all()
        again = self._live.rewind()
        self._started_anew('the clock jumped backward')
        self._take(again)

    def _on_reset(self, request: object, response: Any) -> Any:
        self._live.reset()
        self._started_anew('asked to')
        response.success = True
        response.message = 'starts with the next odometry, with the same random numbers'
        return response

    def _on_finish(self, request: object, response: Any) -> Any:
        told: dict[str, object] = {}
        try:
            self.finish()
        except MotionError as error:
            told['error'] = str(error)
        response.success = not told
        told = {'published': self._published, 'last_stamp_ns': self._last_ns, **told}
        response.message = json.dumps(told)
        return response

    def _started_anew(self, why: str) -> None:
        self._waiting.clear()
        self._published, self._last_ns = 0, None
        self._health.reset(why)
        self.get_logger().info(f'reset: {why}')

    def _on_change(self) -> None:
        self._settings = self.declared.get()
        self._model = self.declared.get(self.prefix)
        self._live.change(self.switch_on)
        self.get_logger().info('parameters changed: the noise begins anew, the stamps go on')

    def _status(self) -> DiagnosticStatus:
        return self._health.report(
            self._subscription.get_publisher_count(),
            self._publisher.get_subscription_count(),
            self._truth_publisher.get_subscription_count(),
        )
