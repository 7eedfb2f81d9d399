# SPDX-License-Identifier: Apache-2.0
"""The sensors of a twin on the graph, given the truth as fast as they measure it."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile

from sim2real_eval.judge.external.waits import alone
from sim2real_eval.recording.cdr import decode, encode
from sim2real_eval.recording.message_types import MESSAGE_TYPES, MessageType
from sim2real_eval.recording.recording import IDEAL_ROLES, Recording
from sim2real_eval.simulation.spans import noise_free
from sim2real_eval.simulation.twin import Placed, TwinSensors, with_places
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

# Generous: only a middleware that has lost a message keeps anyone waiting for long.
_TIMEOUT_S = 30.0
# Odometry messages that are published at once, at most.
_BURST = 50
# A batch run bridges gaps of any length.
_LONGEST_GAP_S = 1e6


class TwinSensorNode(SensorNode):
    """A sensor of a twin. One that cannot be made leaves nothing on the graph."""

    def __init__(self, *given: Any, **options: Any) -> None:
        try:
            super().__init__(*given, **options)
        except BaseException:
            # Else it stays as long as the traceback, and longer.
            with contextlib.suppress(AttributeError):  # not even a node yet
                self.destroy_node()
            raise

    @property
    def connected(self) -> bool:
        """Whether it hears odometry and is heard, as far as it knows."""
        heard: int = self._publisher.get_subscription_count()
        return heard > 0 and self._subscription.get_publisher_count() > 0


@dataclasses.dataclass(eq=False)
class _Sensor:
    """A sensor node, and what was heard of it."""

    node: TwinSensorNode
    kind: MessageType
    arrival_ns: IntArray
    latency_ns: int
    subscription: Any
    heard: list[bytes]
    frame: str
    told: int = 0

    def listen(self) -> bool:
        """Take what has come; say whether that is all that was published."""
        handle = self.subscription.handle
        with handle:
            while len(self.heard) < self.node.published:
                taken = handle.take_message(self.node.message_type, True)
                if taken is None:
                    return False
                self.heard.append(taken[0])
        return True

    def array(self, count: int, first: int = 0) -> MessageArray:
        """Return messages that were heard, as they reach the judge."""
        rows = self.heard[first:count]
        nowhen = np.zeros(len(rows), dtype=np.int64)
        array = decode(self.kind, rows, nowhen, self.subscription.topic_name).array
        return dataclasses.replace(
            array, arrival_ns=self.arrival_ns[first:count], frame=self.frame
        )

    def news(self) -> MessageArray | None:
        """Return what was heard since the last call."""
        first, self.told = self.told, len(self.heard)
        return self.array(self.told, first) if self.told > first else None


class SensorBench:
    """Plays the truth of a recording to sensor nodes, and hears what they measure, all over DDS.

    Nothing is lost: odometry is published, a little of it at once, when that before it was taken
    and all that was measured from it has come. A middleware that does not connect the sensors is
    an error.

    `node` publishes the truth of `maker` by `truth`, and listens; it need not be spun. Diagnostics
    call the model `label`; the absolute `namespace` is that of the sensors. `poll` is called again
    and again while the sensors are waited for; it may raise, to stop it.
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
        self._truth = truth
        self._real = with_places(maker.real, sensors.placed.values())
        self._stamps = maker.truth.stamp_ns
        self._rows = encode(MESSAGE_TYPES['nav_msgs/msg/Odometry'], maker.truth, truth.topic_name)
        self._next = 0
        self.finished = False
        self._executor = SingleThreadedExecutor(context=node.context)
        self._sensors: dict[str, _Sensor] = {}
        with contextlib.ExitStack() as opened:
            opened.callback(self._executor.shutdown)
            self._start(opened, maker, sensors, label, namespace)
            self._open = opened.pop_all()

    def _start(
        self,
        opened: contextlib.ExitStack,
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
            own: Any = {'datum': datum} if role == 'gps' else {}
            sensor = TwinSensorNode(
                kind,
                OUTPUTS.get(role).settings(**common, **own, start_ns=placed.start_ns),
                model=placed.model,
                context=node.context,
                namespace=namespace,
                # Those that this process was started with are for the evaluation.
                use_global_arguments=False,
                cli_args=['--ros-args', '-r', f'{ODOMETRY_TOPIC}:={truth.topic_name}'],
                # Queues from which nothing is lost.
                parameter_overrides=[
                    Parameter(
                        f'qos_overrides.{truth.topic_name}.subscription.reliability',
                        value='reliable',
                    ),
                    Parameter(f'qos_overrides.{topic}.publisher.depth', value=depth),
                ],
            )
            opened.callback(sensor.destroy_node)
            self._executor.add_node(sensor)
            heard: list[bytes] = []
            arrival_ns = _arrivals(sensors, role, placed, int(self._stamps[-1]))
            subscription = node.create_subscription(
                sensor.message_type, topic, heard.append, QoSProfile(depth=depth), raw=True
            )
            opened.callback(node.destroy_subscription, subscription)
            self._sensors[role] = _Sensor(
                node=sensor,
                kind=MESSAGE_TYPES[kind.message],
                arrival_ns=arrival_ns,
                latency_ns=round(placed.model.latency * 1e9),
                subscription=subscription,
                heard=heard,
                frame=placed.model.frame_id,
            )
        self._wait(
            lambda: (
                truth.get_subscription_count() >= len(self._sensors)
                and all(
                    sensor.node.connected and sensor.subscription.get_publisher_count()
                    for sensor in self._sensors.values()
                )
            ),
            'to find each other',
        )
        owners = {truth.topic_name: node} | {
            one.subscription.topic_name: one.node for one in self._sensors.values()
        }
        for topic, owner in owners.items():
            own = owner.get_fully_qualified_name()
            for wait in alone(node, topic, own, 'the messages of both would mix'):
                self._wait(wait.met, f'to see {wait.what}')

    @property
    def roles(self) -> tuple[str, ...]:
        """Which sensors there are: `imu`, `gps`."""
        return tuple(self._sensors)

    def measure(self, now_ns: int) -> None:
        """Let the sensors measure, until all that reaches a judge by `now_ns` has come.

        That a sensor cannot measure the truth, or the middleware loses messages, is an error.
        """
        while not self.finished and not all(
            _is_ahead(sensor, now_ns) for sensor in self._sensors.values()
        ):
            if self._next == len(self._rows):
                self._finish()
                return
            # What is now becomes final with the second sample after it.
            enough = int(np.searchsorted(self._stamps, now_ns, side='right')) + 2
            end = min(max(enough, self._next + 1), self._next + _BURST, len(self._rows))
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
            self._listen()

    def news(self) -> dict[str, MessageArray]:
        """Return what was measured since the last call, by role (`imu`, `gps`)."""
        found = {role: sensor.news() for role, sensor in self._sensors.items()}
        return {role: array for role, array in found.items() if array is not None}

    def recording(self) -> Recording:
        """Return the recording of the twin, with what was measured so far."""
        recording = self._real
        for role, sensor in self._sensors.items():
            recording = recording.with_messages(role, sensor.array(len(sensor.heard)))
        return recording

    def close(self) -> None:
        """Take the sensors off the graph."""
        self._open.close()
        self._sensors.clear()

    def _finish(self) -> None:
        self.finished = True
        for role, sensor in self._sensors.items():
            sensor.node.finish()
            if sensor.node.heard != self._next:
                raise Sim2RealError(
                    f'simulated {role}: {sensor.node.heard} odometry messages came, not '
                    f'{self._next}: another node published {self._truth.topic_name} meanwhile'
                )
            total = len(sensor.arrival_ns)
            if sensor.node.published != total:
                raise Sim2RealError(
                    f'simulated {role}: measured {sensor.node.published} of {total} times; '
                    'its diagnostics say why'
                )
        self._listen()

    def _listen(self) -> None:
        self._wait(
            lambda: all(sensor.listen() for sensor in self._sensors.values()),
            'to have their measurements heard',
        )

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + _TIMEOUT_S
        while not condition():
            if time.monotonic() > end:
                raise Sim2RealError(f'simulated sensors: waited {_TIMEOUT_S:g} s for them {what}')
            self._poll()
            self._executor.spin_once(timeout_sec=0.01)


def _refuse_noise_free(recording: Recording, sensors: TwinSensors) -> None:
    """Raise Sim2RealError when a batch run would measure noise-free sensors: none are played."""
    streams = noise_free(recording)
    role = next((IDEAL_ROLES[kind] for kind in sensors.placed if kind in streams), None)
    if role is not None:
        raise Sim2RealError(
            f'{recording.name}: {role} is not played on the graph; use sim2real vepd or do '
            f'without it by `topics: {{{role}: null}}` in recording.yaml'
        )


def _longest_burst(placed: Placed, truth_ns: IntArray) -> int:
    """Return a bound of the measurements that _BURST odometry messages, or the last, set free."""
    # Two intervals wait for the messages after them.
    far = min(_BURST + 2, len(truth_ns) - 1)
    longest_ns = np.max(truth_ns[far:] - truth_ns[:-far])
    # A delay above 40 times its mean never comes: its probability is 4e-18.
    delay: float = placed.model.latency + 40.0 * placed.model.delivery.jitter
    return math.ceil(float(placed.model.rate) * (float(longest_ns) * 1e-9 + delay)) + 10


def _arrivals(sensors: TwinSensors, role: str, placed: Placed, end_ns: int) -> IntArray:
    """Return when those messages of a sensor that reach the judge do: by its own channel, anew."""
    model = placed.model
    grid = SampleGrid(placed.start_ns, model.rate)
    channel: Channel = model.channel(sensors.seed, sensors.run, role)
    return channel.send(grid.stamps(0, grid.count(end_ns)))[1]


def _is_ahead(sensor: _Sensor, now_ns: int) -> bool:
    """Whether everything that reaches a judge by now is measured and published."""
    final_ns, newest_ns = sensor.node.final_ns, sensor.node.newest_ns
    if final_ns is None or newest_ns is None:
        return False
    return final_ns > now_ns - sensor.latency_ns and newest_ns >= now_ns
