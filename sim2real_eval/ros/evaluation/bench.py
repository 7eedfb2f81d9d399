# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Sensor nodes of a twin that measure the truth of a recording over DDS."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile

from sim2real_eval.judge.external.publishers import PublisherWatch
from sim2real_eval.recording.cdr import decode, encode
from sim2real_eval.recording.message_types import MESSAGE_TYPES, MessageType
from sim2real_eval.recording.recording import IDEAL_ROLES, Recording
from sim2real_eval.simulation.twin import (
    PlacedSensor,
    TwinSensors,
    add_sensor_transforms,
    noise_free_messages,
)
from sim2real_eval.simulation.twin_maker import TwinMaker
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.measurements import IntArray, MessageArray
from sim_sensors.motion.sampling import SampleGrid
from sim_sensors.ros.node_settings import Datum
from sim_sensors.ros.outputs import OUTPUTS
from sim_sensors.ros.sensor_node import SensorNode
from sim_sensors.ros.truth_topics import ODOMETRY_TOPIC
from sim_sensors.sensor.catalogue import KINDS
from sim_sensors.sensor.delivery import Channel

# Generous, since only a middleware that lost a message reaches it.
_TIMEOUT_S = 30.0
# Largest number of odometry messages published at once.
_BURST = 50
# A batch run bridges gaps of any length.
_LONGEST_GAP_S = 1e6


class TwinSensorNode(SensorNode):
    """Sensor node of a twin, which leaves nothing on the graph if its constructor fails."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        try:
            super().__init__(*arguments, **options)
        except BaseException:
            # Otherwise the traceback would keep it alive.
            with contextlib.suppress(AttributeError):  # no node was created yet
                self.destroy_node()
            raise

    @property
    def is_connected(self) -> bool:
        """Whether the node is connected to a publisher of odometry and to a subscriber."""
        subscribers: int = self._publisher.get_subscription_count()
        return subscribers > 0 and self._subscription.get_publisher_count() > 0


@dataclasses.dataclass(eq=False)
class _MeasuredSensor:
    """A sensor node and its received measurements."""

    node: TwinSensorNode
    kind: MessageType
    arrival_ns: IntArray
    latency_ns: int
    subscription: Any
    watch: PublisherWatch
    received: list[bytes]
    frame: str
    returned: int = 0  # number of measurements that `take_new` has returned

    def receive(self) -> bool:
        """Take the queued measurements; return True if none is missing."""
        handle = self.subscription.handle
        with handle:
            while len(self.received) < self.node.published:
                entry = handle.take_message(self.node.message_type, True)
                if entry is None:
                    return False
                self.accept(*entry)
        return True

    def accept(self, data: bytes, info: Mapping[str, Any]) -> None:
        """Keep a message if this sensor published it."""
        if self.watch.accept(self.subscription.topic_name, info):
            self.received.append(data)

    def array(self, count: int, first: int = 0) -> MessageArray:
        """Return received measurements with their arrival at the judge."""
        rows = self.received[first:count]
        no_arrival = np.zeros(len(rows), dtype=np.int64)
        array = decode(self.kind, rows, no_arrival, self.subscription.topic_name).array
        return dataclasses.replace(
            array, arrival_ns=self.arrival_ns[first:count], frame=self.frame
        )

    def take_new(self) -> MessageArray | None:
        """Return the measurements received since the last call."""
        first, self.returned = self.returned, min(len(self.received), self.node.published)
        return self.array(self.returned, first) if self.returned > first else None


class SensorBench:
    """Sensor nodes that measure the truth of a recording, in lockstep with its publication.

    No message is lost: the next odometry messages are published only after the sensors have taken
    the previous ones and their measurements have arrived. Raises Sim2RealError if the sensors do
    not connect.

    Parameters
    ----------
    node : Node
        Publishes the truth and receives the measurements; it need not be spun.
    truth : Publisher
        Publisher of `node` for the truth.
    maker : TwinMaker
        Maker of the twin, with the recording and its truth.
    sensors : TwinSensors
        Sensor models of the twin and their places.
    label : str
        Name of the model in diagnostics.
    namespace : str
        Absolute namespace of the sensors.
    poll : callable
        Called repeatedly during waits; it may raise to stop them.
    """

    def __init__(
        self,
        node: Node,
        truth: Publisher,
        maker: TwinMaker,
        sensors: TwinSensors,
        label: str,
        *,
        namespace: str,
        poll: Callable[[], None],
    ) -> None:
        _refuse_noise_free(maker.real, sensors)
        self._node = node
        self._poll = poll
        self._watch = PublisherWatch(node)
        self._truth = truth
        self._real = add_sensor_transforms(maker.real, sensors.placed.values())
        self._stamps = maker.truth.stamp_ns
        self._rows = encode(MESSAGE_TYPES['nav_msgs/msg/Odometry'], maker.truth, truth.topic_name)
        self._next = 0
        self.finished = False
        self._executor = SingleThreadedExecutor(context=node.context)
        self._sensors: dict[str, _MeasuredSensor] = {}
        with contextlib.ExitStack() as resources:
            resources.callback(self._executor.shutdown)
            self._start(resources, maker, sensors, label, namespace)
            self._resources = resources.pop_all()

    def _start(
        self,
        resources: contextlib.ExitStack,
        maker: TwinMaker,
        sensors: TwinSensors,
        label: str,
        namespace: str,
    ) -> None:
        node, truth = self._node, self._truth
        common: dict[str, Any] = {
            'model': label,
            'seed': sensors.seed,
            'run': sensors.run,
            'velocity': sensors.velocity,
            'longest_gap': _LONGEST_GAP_S,
        }
        origin = sensors.origin
        datum = Datum(origin.latitude_deg, origin.longitude_deg, origin.altitude_m)
        for role, placed in sensors.placed.items():
            kind = KINDS.get(role)
            topic = f'{namespace}/{kind.topic}'
            depth = _longest_burst(placed, maker.truth.stamp_ns)
            role_settings: Any = {'datum': datum} if role == 'gps' else {}
            sensor = TwinSensorNode(
                kind,
                OUTPUTS.get(role).settings(**common, **role_settings, start_ns=placed.start_ns),
                model=placed.model,
                context=node.context,
                namespace=namespace,
                # The arguments of this process are for the evaluation node.
                use_global_arguments=False,
                cli_args=['--ros-args', '-r', f'{ODOMETRY_TOPIC}:={truth.topic_name}'],
                # Reliable delivery and queues that are long enough to lose nothing.
                parameter_overrides=[
                    Parameter(
                        f'qos_overrides.{truth.topic_name}.subscription.reliability',
                        value='reliable',
                    ),
                    Parameter(f'qos_overrides.{topic}.publisher.depth', value=depth),
                ],
            )
            resources.callback(sensor.destroy_node)
            self._executor.add_node(sensor)
            arrival_ns = _arrivals(sensors, role, placed, int(self._stamps[-1]))
            subscription = node.create_subscription(
                sensor.message_type,
                topic,
                partial(self._accept, role),
                QoSProfile(depth=depth),
                raw=True,
            )
            resources.callback(node.destroy_subscription, subscription)
            self._sensors[role] = _MeasuredSensor(
                node=sensor,
                kind=MESSAGE_TYPES[kind.message],
                arrival_ns=arrival_ns,
                latency_ns=round(placed.model.latency * 1e9),
                subscription=subscription,
                watch=self._watch,
                received=[],
                frame=placed.model.frame_id,
            )
        self._wait(
            lambda: (
                truth.get_subscription_count() >= len(self._sensors)
                and all(
                    sensor.node.is_connected and sensor.subscription.get_publisher_count()
                    for sensor in self._sensors.values()
                )
            ),
            'to find each other',
        )
        owners = {truth.topic_name: node} | {
            sensor.subscription.topic_name: sensor.node for sensor in self._sensors.values()
        }
        for topic, owner in owners.items():
            for wait in self._watch.begin_alone(topic, owner.get_fully_qualified_name()):
                self._wait(wait.is_met, f'to see {wait.description}')
        for measured in self._sensors.values():
            # No truth was published yet, so these messages came from other nodes.
            measured.received.clear()

    def _accept(self, role: str, data: bytes, info: Mapping[str, Any]) -> None:
        self._sensors[role].accept(data, info)

    @property
    def roles(self) -> tuple[str, ...]:
        """Roles of the sensors: `imu`, `gps`."""
        return tuple(self._sensors)

    def measure(self, now_ns: int) -> None:
        """Publish truth until all measurements that reach a judge by `now_ns` have been received.

        Raises Sim2RealError if a sensor cannot measure the truth or the middleware loses messages,
        and OtherPublisherError if another node publishes the truth or measurements.
        """
        while not self.finished and not all(
            _is_ahead(sensor, now_ns) for sensor in self._sensors.values()
        ):
            if self._next == len(self._rows):
                self._finish()
                return
            # Interpolation of the motion at a time needs the next two samples of the truth.
            required = int(np.searchsorted(self._stamps, now_ns, side='right')) + 2
            end = min(max(required, self._next + 1), self._next + _BURST, len(self._rows))
            for row in self._rows[self._next : end]:
                self._truth.publish(row)
            self._next = end
            newest = int(self._stamps[end - 1])
            self._wait(
                lambda newest=newest: all(  # type: ignore[misc]
                    sensor.node.newest_ns == newest for sensor in self._sensors.values()
                ),
                f'to take the odometry of {newest} ns',
            )
            self._receive()

    def take_new(self) -> dict[str, MessageArray]:
        """Return the measurements since the last call, by role (`imu`, `gps`)."""
        arrays = {role: sensor.take_new() for role, sensor in self._sensors.items()}
        return {role: array for role, array in arrays.items() if array is not None}

    def recording(self) -> Recording:
        """Return the recording of the twin with the measurements so far."""
        recording = self._real
        for role, sensor in self._sensors.items():
            recording = recording.with_messages(role, sensor.array(len(sensor.received)))
        return recording

    def close(self) -> None:
        """Remove the sensors from the graph."""
        self._resources.close()
        self._sensors.clear()

    def refuse_other_publishers(self, *, is_last: bool = False) -> None:
        """Raise OtherPublisherError if another node publishes the truth or measurements."""
        for sensor in self._sensors.values():
            if sensor.node.received > self._next:
                self._watch.suspect(self._truth.topic_name)
            if len(sensor.received) > sensor.node.published:
                self._watch.suspect(sensor.subscription.topic_name)
        self._watch.check(is_last=is_last)

    def _finish(self) -> None:
        self.finished = True
        for sensor in self._sensors.values():
            sensor.node.finish()
        self.refuse_other_publishers(is_last=True)
        for role, sensor in self._sensors.items():
            if sensor.node.received != self._next:
                raise Sim2RealError(
                    f'simulated {role}: {sensor.node.received} odometry messages arrived, not '
                    f'{self._next}; the middleware lost some'
                )
            total = len(sensor.arrival_ns)
            if sensor.node.published != total:
                raise Sim2RealError(
                    f'simulated {role}: measured {sensor.node.published} of {total} times; '
                    'its diagnostics say why'
                )
        self._receive()

    def _receive(self) -> None:
        self._wait(
            lambda: all(sensor.receive() for sensor in self._sensors.values()),
            'to deliver their measurements',
        )

    def _wait(self, condition: Callable[[], bool], purpose: str) -> None:
        end = time.monotonic() + _TIMEOUT_S
        while not condition():
            if time.monotonic() > end:
                raise Sim2RealError(
                    f'simulated sensors: waited {_TIMEOUT_S:g} s for them {purpose}'
                )
            self._poll()
            self.refuse_other_publishers()
            self._executor.spin_once(timeout_sec=0.01)


def _refuse_noise_free(recording: Recording, sensors: TwinSensors) -> None:
    """Raise Sim2RealError if a batch run would use noise-free sensors, which are not replayed."""
    streams = noise_free_messages(recording)
    role = next((IDEAL_ROLES[kind] for kind in sensors.placed if kind in streams), None)
    if role is not None:
        raise Sim2RealError(
            f'{recording.name}: {role} is not replayed on the graph; use sim2real vepd, or leave '
            f'it out by `topics: {{{role}: null}}` in recording.yaml'
        )


def _longest_burst(placed: PlacedSensor, truth_ns: IntArray) -> int:
    """Return an upper bound of the measurements that _BURST odometry messages make final."""
    # Measurements of the last two intervals wait for later odometry messages.
    span = min(_BURST + 2, len(truth_ns) - 1)
    longest_ns = np.max(truth_ns[span:] - truth_ns[:-span])
    # A delay above 40 times its mean has a probability of 4e-18.
    delay: float = placed.model.latency + 40.0 * placed.model.delivery.jitter
    return math.ceil(float(placed.model.rate) * (float(longest_ns) * 1e-9 + delay)) + 10


def _arrivals(sensors: TwinSensors, role: str, placed: PlacedSensor, end_ns: int) -> IntArray:
    """Return the arrivals of the delivered messages of a sensor, from a copy of its channel."""
    model = placed.model
    grid = SampleGrid(placed.start_ns, model.rate)
    channel: Channel = model.channel(sensors.seed, sensors.run, role)
    return channel.send(grid.stamps(0, grid.count(end_ns)))[1]


def _is_ahead(sensor: _MeasuredSensor, now_ns: int) -> bool:
    """Return True if all measurements that reach a judge by now are published."""
    final_ns, newest_ns = sensor.node.final_ns, sensor.node.newest_ns
    if final_ns is None or newest_ns is None:
        return False
    return final_ns > now_ns - sensor.latency_ns and newest_ns >= now_ns
