# SPDX-License-Identifier: Apache-2.0
"""The node of a sensor of any kind: odometry in, measurements out, reset, diagnostics.

See docs/reference/ros/nodes.md for topics, parameters and rules.
"""

from __future__ import annotations

import collections
import dataclasses
import json
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from nav_msgs.msg import Odometry
from rclpy.node import Node
from std_srvs.srv import Trigger

from sim_sensors.core.errors import MotionError
from sim_sensors.core.measurements import MessageArray, OdometryArray
from sim_sensors.live.samples import LiveOdometry, Verdict
from sim_sensors.live.sensor import LiveSensor
from sim_sensors.motion.scenarios import Standstill
from sim_sensors.sensor.catalogue import KINDS
from sim_sensors.sensor.sensor import SensorModel
from sim_sensors.world.world import World, load_world
from .diagnostics import Reporter, SensorHealth
from .messages import message_class
from .node_settings import SensorSettings, WorldSettings
from .outputs import OUTPUTS
from .parameters import NodeParameters, overridable_publisher
from .running import on_backward_jump, run
from .truth_topics import (
    live_noise_free,
    odometry_of_bytes,
    queued_noise_free,
    subscribe_noise_free,
    subscribe_odometry,
)

# Odometry that is taken before other callbacks get their turn.
_AT_ONCE = 200
_THROTTLE_S = 5.0
# Time of arrival and stamp, ns, the messages and the error in them.
_Waiting = tuple[int, int, tuple[object, ...], object]


class SensorNode(Node):
    """A sensor on the graph. What it publishes depends on the messages it gets alone.

    `settings` are the defaults of the parameters besides those of the model, of the type that
    `OUTPUTS` gives the kind; empty texts are those of the kind. `model` takes the place of that
    which the parameter `model` names. With `strict` a parameter is refused that it does not have;
    else `declared.finish` is for the caller. Raises ParameterError when a parameter is wrong.
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
        super().__init__(
            kind.node, automatically_declare_parameters_from_overrides=True, **node_options
        )
        self.kind = kind
        self._output = OUTPUTS.get(kind.name)
        self.declared = NodeParameters(self)
        self._settings = self.declared.declare(_of_kind(kind, settings or self._output.settings()))
        self._model: Any = self.declared.declare(
            model or kind.load(self._settings.model), kind.name
        )
        self._live: LiveSensor[Any] = LiveSensor(
            self.switch_on,
            self._model.rate,
            LiveOdometry(
                velocity=self._settings.velocity,
                gap_factor=self._settings.gap_factor,
                longest_gap=self._settings.longest_gap,
            ),
            start_ns=self._settings.start_ns or None,
            chunk=self._output.chunk,
            noise_free=live_noise_free(kind, self._settings, self._surroundings),
        )
        self._published = 0
        self._last_ns: int | None = None
        # The first measurement loads and compiles what later ones use; odometry would pile up.
        self.switch_on().measure(Standstill().at([0.0]))
        self._health = SensorHealth(self.get_fully_qualified_name(), self._settings.model)
        # Messages with their times of arrival; they wait for odometry of that time.
        self._waiting: collections.deque[_Waiting] = collections.deque()
        self._connect()
        self._output.opened(self)
        if strict:
            self.declared.finish()
        self.declared.follow(self._on_change)

    @property
    def message_type(self) -> Any:
        """Type of the measurements."""
        return message_class(self.kind.message)

    @property
    def sensor(self) -> Any:
        """The sensor as it is switched on now."""
        return self._live.sensor

    @cached_property
    def world(self) -> World:
        """The world that the parameter `world` names, read once.

        A sensor is switched on anew by a reset, a gap or a changed parameter; its file may be
        another one by then, or gone.
        """
        return load_world(self.declared.get().world)

    def switch_on(self) -> Any:
        """Return the sensor in its initial state, with the parameters in force."""
        settings: SensorSettings = self.declared.get()
        model = self.declared.get(self.kind.name)
        return model.start(settings.seed, settings.run, settings.sensor, **self._surroundings())

    def _surroundings(self) -> dict[str, Any]:
        """Return what the sensor is told of the world, by keyword."""
        settings: SensorSettings = self.declared.get()
        if isinstance(settings, WorldSettings):
            return self.kind.surroundings(self.world)
        return settings.surroundings()

    def _connect(self) -> None:
        own = {self.kind.topic: self.message_type}
        self._sent_on: dict[str, Any] = {
            topic: overridable_publisher(self, message, topic)
            for topic, message in {**self._output.before, **own, **self._output.after}.items()
        }
        self._publisher = self._sent_on[self.kind.topic]
        truth_topic, truth_type = self._output.truth
        self._truth_publisher = overridable_publisher(self, truth_type, truth_topic)
        self.create_service(Trigger, '~/reset', self._on_reset)
        self.create_service(Trigger, '~/finish', self._on_finish)
        self._reporter = Reporter(self, self._status, self._settings.diagnostics_period)
        self._jump_handle = on_backward_jump(self, self._on_jump)
        self._subscription = subscribe_odometry(self, self._on_odometry)
        self._noise_free = None
        if self._live.noise_free is not None:
            self._noise_free = subscribe_noise_free(
                self, self.kind, self.message_type, self._on_noise_free
            )

    @property
    def newest_ns(self) -> int | None:
        """Stamp of the newest odometry that counts; None before any."""
        return self._live.odometry.newest_ns

    @property
    def final_ns(self) -> int | None:
        """Stamps before this one are measured; None before any can be."""
        return self._live.final_ns

    @property
    def heard(self) -> int:
        """How many odometry messages came since the start, whatever became of them."""
        return self._health.heard

    @property
    def published(self) -> int:
        """How many measurements were published since the start or the latest reset."""
        return self._published

    def finish(self) -> None:
        """Measure and publish all that is left, as no more odometry is coming.

        Odometry that waits in the subscription is taken first; what comes later is refused until
        a reset. After it the output is that of the batch run over the same odometry, whole.

        Raises MotionError when fewer than three odometry messages have come.
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

    def _on_noise_free(self, message: MessageArray) -> None:
        self._push_noise_free([message])
        self._measure()
        self._release()

    def _push_noise_free(self, messages: list[MessageArray]) -> None:
        for message in messages:
            verdict = self._live.push_noise_free(message)
            if not verdict.accepted:
                self._health.refused_noise_free(verdict)

    def _take_all(self) -> None:
        """Take all that waits in the subscriptions."""
        if self._noise_free is not None:
            while messages := queued_noise_free(self._noise_free, self.message_type):
                self._push_noise_free(messages)
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
            if self._live.odometry.is_new_start(stamp_ns):
                self._measure()
            verdict = self._live.push(sample)
            self._health.saw(verdict, self._live.odometry.gap)
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
                    pairs = list(
                        self._output.messages(self._model, self._settings, stamp_ns, measurement)
                    )
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
        newest_ns = self._live.odometry.newest_ns
        while self._waiting and newest_ns is not None:
            arrival_ns, stamp, measurement, truth = self._waiting[0]
            if arrival_ns > newest_ns and not all_of_it:
                break
            self._waiting.popleft()
            for publisher, message in zip(self._sent_on.values(), measurement, strict=True):
                if message is not None:
                    publisher.publish(message)
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
        self._model = self.declared.get(self.kind.name)
        self._live.change(self.switch_on)
        self.get_logger().info('parameters changed: the noise begins anew, the stamps go on')

    def _status(self) -> DiagnosticStatus:
        if self._noise_free is not None and not self._noise_free.get_publisher_count():
            self._health.lacks_noise_free(self._noise_free.topic_name)
        return self._health.report(
            self._subscription.get_publisher_count(),
            self._publisher.get_subscription_count(),
            self._truth_publisher.get_subscription_count(),
        )


def _of_kind(kind: type[SensorModel[Any]], settings: SensorSettings) -> SensorSettings:
    """Return the settings with the texts of a kind where they are empty."""
    ours = {'model': kind.preset, 'sensor': kind.name, 'world': kind.world}
    changes: Any = {name: one for name, one in ours.items() if getattr(settings, name, None) == ''}
    return dataclasses.replace(settings, **changes)


def main(kind: str, args: Sequence[str] | None = None) -> int:
    """Run the node of a kind of sensor until it is stopped; return the exit status."""
    one = KINDS.get(kind)
    return run(one.node, lambda: [SensorNode(one)], args)
