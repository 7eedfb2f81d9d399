# SPDX-License-Identifier: Apache-2.0
"""The node that moves: ground-truth odometry of a driven car or an analytic scenario."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Sequence
from typing import Any

from nav_msgs.msg import Odometry
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions
from rosgraph_msgs.msg import Clock as ClockMessage

from sim_sensors.core.errors import ParameterError, UnknownNameError, not_among
from sim_sensors.core.measurements import OdometryArray
from sim_sensors.motion.motions import SCENARIOS, motion_names, motion_of, truth_of
from sim_sensors.motion.scenarios import TimedMotion
from .messages import messages_of
from .node_settings import TrajectorySettings
from .odometry_topic import ODOMETRY_TOPIC
from .parameters import NodeParameters
from .running import Awaited, run

_DELIVERY = Duration(seconds=2)
# A reliable reader that is held up for seconds misses nothing.
_DEPTH = 1000
# Between two looks at the graph, and between two lines about who is not there, s of wall time.
_POLL_S = 0.05
_TELL_S = 5.0


class TrajectoryNode(Node):
    """Publishes nav_msgs/Odometry on `ground_truth/odometry`, and /clock when asked.

    The wall only paces it: one message per tick, whose stamp is the motion's. A machine that is
    too slow slows the motion down and loses nothing. A wrong parameter raises Sim2RealError.
    """

    def __init__(self, **node_options: Any) -> None:
        super().__init__(
            'trajectory_node', automatically_declare_parameters_from_overrides=True, **node_options
        )
        parameters = NodeParameters(self)
        self._settings = parameters.declare(TrajectorySettings())
        self._awaited = Awaited(self, self._settings.awaited.split())
        self._odometry = self._truth(parameters)
        self._index = 0
        self.finished = False
        self._clock_publisher = (
            self.create_publisher(ClockMessage, '/clock', 10) if self._settings.clock else None
        )
        self._publisher = self.create_publisher(
            Odometry,
            ODOMETRY_TOPIC,
            QoSProfile(depth=_DEPTH),
            qos_overriding_options=QoSOverridingOptions.with_default_policies(),
        )
        self._wall = Clock(clock_type=ClockType.STEADY_TIME)
        self._since = self._wall.now()
        self._begun = not self._settings.awaited.split()
        self._poll_timer = self.create_timer(_POLL_S, self._poll, clock=self._wall)
        period = 1.0 / (self._settings.rate * self._settings.factor)
        self.create_timer(period, self._tick, clock=self._wall)

    def _truth(self, parameters: NodeParameters) -> OdometryArray:
        settings = self._settings
        given: dict[str, object] = {}
        drives = [name for name in motion_names() if name not in SCENARIOS.names()]
        if settings.motion not in drives:
            # The longer of both durations: the scenario's own default must not refuse a ramp that
            # the duration asked for has room for.
            kind = self._scenario_class(settings.motion)
            scenario = kind(duration=max(kind().duration, settings.duration))
            made = parameters.declare(scenario, 'scenario', skip=('duration',), read_only=True)
            given = made.to_mapping()
            del given['duration']
        parameters.finish()
        motion = motion_of(
            settings.motion,
            seed=settings.seed,
            run=settings.run,
            duration=settings.duration,
            parameters=given,
        )
        truth = truth_of(motion, rate=settings.rate, start_ns=settings.start_ns)
        return dataclasses.replace(
            truth, frame=settings.frame_id, child_frame=settings.child_frame_id
        )

    def _scenario_class(self, name: str) -> type[TimedMotion]:
        where = self.get_name(), 'motion'
        try:
            return SCENARIOS.get(name, where=where[0], key=where[1])
        except UnknownNameError:
            problem = not_among(f'{name!r} is not allowed', name, motion_names())
            raise ParameterError(
                *where, f'{problem}, or a class in a file, such as my_motion.py:Spiral'
            ) from None

    def _tick(self) -> None:
        if self.finished:
            return
        message = next(messages_of(self._odometry.take([self._index])))
        if self._clock_publisher is not None:
            # While others are waited for it stands at the start: with simulated time some of them,
            # such as ekf_node and `ros2 bag record`, subscribe only when there is a time.
            self._clock_publisher.publish(ClockMessage(clock=message.header.stamp))
        if not self._begun:
            return
        self._publisher.publish(message)
        self._index += 1
        if self._index == len(self._odometry):
            self._index = 0
            if not self._settings.loop:
                self._publisher.wait_for_all_acked(_DELIVERY)
                self.get_logger().info('the motion has ended')
                # For who started it; a log may be silent.
                print(json.dumps({'published': len(self._odometry)}), flush=True)
                self.finished = True

    def _poll(self) -> None:
        """Begin when all that are awaited have been there for long enough; once is enough."""
        if self._begun:
            self._poll_timer.cancel()
            return
        now = self._wall.now()
        if missing := self._awaited.missing():
            self._since = now
            self.get_logger().info(
                f'waiting for {" ".join(missing)}', throttle_duration_sec=_TELL_S, skip_first=True
            )
        self._begun = (now - self._since).nanoseconds >= self._settings.delay * 1e9


def main(args: Sequence[str] | None = None) -> int:
    """Run a trajectory node until the motion ends or it is stopped; return the exit status."""
    nodes: list[TrajectoryNode] = []

    def make() -> list[TrajectoryNode]:
        nodes.append(TrajectoryNode())
        return nodes

    return run('trajectory_node', make, args, lambda: all(node.finished for node in nodes))


if __name__ == '__main__':
    sys.exit(main())
