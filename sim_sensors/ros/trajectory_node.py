# SPDX-License-Identifier: Apache-2.0
"""The node that moves: true odometry of a driven car, of a scenario or of a body in MuJoCo."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from nav_msgs.msg import Odometry
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.duration import Duration
from rclpy.node import Node
from rosgraph_msgs.msg import Clock as ClockMessage
from sensor_msgs.msg import Imu

from sim_sensors.core.errors import ParameterError, UnknownNameError, not_among
from sim_sensors.core.parameters import Parameters
from sim_sensors.motion.motions import (
    motion_names,
    motion_of,
    motion_parameters,
    noise_free_imu,
    truth_of,
)
from sim_sensors.motion.scenarios import TimedMotion
from sim_sensors.motion.trajectory import Motion
from sim_sensors.sensor.catalogue import KINDS
from .messages import messages_of
from .node_settings import TrajectorySettings
from .parameters import NodeParameters, overridable_publisher
from .running import Awaited, run
from .truth_topics import ODOMETRY_TOPIC

_DELIVERY = Duration(seconds=2)
# A reliable reader that is held up for seconds misses nothing.
_DEPTH = 1000
# Between two looks at the graph, and between two lines about who is not there, s of wall time.
_POLL_S = 0.05
_TELL_S = 5.0


class TrajectoryNode(Node):
    """Publishes nav_msgs/Odometry on `ground_truth/odometry`, and /clock when asked.

    Of a body in MuJoCo also the sensor_msgs/Imu of a noise-free IMU, `ground_truth/imu`, at every
    step of the physics.

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
        motion, settings = self._motion(parameters), self._settings
        self._odometry = dataclasses.replace(
            truth_of(motion, rate=settings.rate, start_ns=settings.start_ns),
            frame=settings.frame_id,
            child_frame=settings.child_frame_id,
        )
        self._noise_free = noise_free_imu(motion, start_ns=settings.start_ns)
        self._index = self._noise_free_index = 0
        self.finished = False
        self._clock_publisher = (
            self.create_publisher(ClockMessage, '/clock', 10) if self._settings.clock else None
        )
        self._publisher = overridable_publisher(self, Odometry, ODOMETRY_TOPIC, _DEPTH)
        self._truth_publishers = [self._publisher]
        if self._noise_free is not None:
            self._noise_free = dataclasses.replace(self._noise_free, frame=settings.child_frame_id)
            topic = KINDS.get('imu').ideal_topic
            self._noise_free_publisher = overridable_publisher(self, Imu, topic, _DEPTH)
            self._truth_publishers.append(self._noise_free_publisher)
        self._wall = Clock(clock_type=ClockType.STEADY_TIME)
        self._since = self._wall.now()
        self._begun = not self._settings.awaited.split()
        self._poll_timer = self.create_timer(_POLL_S, self._poll, clock=self._wall)
        period = 1.0 / (self._settings.rate * self._settings.factor)
        self.create_timer(period, self._tick, clock=self._wall)

    def _motion(self, parameters: NodeParameters) -> Motion:
        settings = self._settings
        given: dict[str, object] = {}
        if kind := self._declared():
            defaults = kind()
            if isinstance(defaults, TimedMotion):
                # The longer of both durations: the scenario's own default must not refuse a ramp
                # that the duration asked for has room for.
                duration = max(defaults.duration, settings.duration)
                defaults = dataclasses.replace(defaults, duration=duration)
            made = parameters.declare(defaults, 'scenario', skip=('duration',), read_only=True)
            given = made.to_mapping()
            given.pop('duration', None)
        parameters.finish()
        return motion_of(
            settings.motion,
            seed=settings.seed,
            run=settings.run,
            duration=settings.duration,
            parameters=given,
        )

    def _declared(self) -> type[Parameters] | None:
        name = self._settings.motion
        try:
            return motion_parameters(name)
        except UnknownNameError:
            problem = not_among(f'{name!r} is not allowed', name, motion_names())
            raise ParameterError(
                self.get_name(),
                'motion',
                f'{problem}, or a class in a file, such as my_motion.py:Spiral',
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
        self._publish_noise_free()
        self._index += 1
        if self._index == len(self._odometry):
            self._index = self._noise_free_index = 0
            if not self._settings.loop:
                for publisher in self._truth_publishers:
                    publisher.wait_for_all_acked(_DELIVERY)
                self.get_logger().info('the motion has ended')
                # For who started it; a log may be silent.
                print(json.dumps({'published': len(self._odometry)}), flush=True)
                self.finished = True

    def _publish_noise_free(self) -> None:
        """Publish what the noise-free IMU measured up to the newest odometry."""
        if self._noise_free is None:
            return
        now_ns = int(self._odometry.stamp_ns[self._index])
        end = int(np.searchsorted(self._noise_free.stamp_ns, now_ns, side='right'))
        for message in messages_of(self._noise_free.take(slice(self._noise_free_index, end))):
            self._noise_free_publisher.publish(message)
        self._noise_free_index = end

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
