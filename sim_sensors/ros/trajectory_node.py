# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Node that publishes the true odometry of a driven car, a scenario or a body in MuJoCo."""

from __future__ import annotations

import contextlib
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
from rosgraph_msgs.msg import Clock as ClockMessage
from sensor_msgs.msg import Imu

from sim_sensors.core.compilation import interpreted
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
from .parameters import NodeParameters, ParameterNode, overridable_publisher
from .running import AwaitedConnections, run
from .truth_topics import ODOMETRY_TOPIC

_DELIVERY = Duration(seconds=2)
# A reliable subscriber may fall behind by seconds.
_DEPTH = 1000
# Wall time between two looks at the graph, and between two log lines, s.
_POLL_S = 0.05
_LOG_S = 5.0
_SHORT_S = 120.0


class TrajectoryNode(ParameterNode):
    """Publisher of nav_msgs/Odometry on `ground_truth/odometry`, and optionally of /clock.

    For a body in MuJoCo it also publishes the sensor_msgs/Imu of a noise-free IMU on
    `ground_truth/imu`, at every step of the physics.

    Wall time only sets the pace: each tick publishes the next message. On a slow machine the
    motion slows down and no message is lost. A wrong parameter raises Sim2RealError.
    """

    def __init__(self, **node_options: Any) -> None:
        super().__init__(
            'trajectory_node', automatically_declare_parameters_from_overrides=True, **node_options
        )
        parameters = NodeParameters(self)
        self._settings = parameters.declare(TrajectorySettings())
        self._awaited = AwaitedConnections(self, self._settings.awaited.split())
        motion, settings = self._create_motion(parameters), self._settings
        self._odometry = dataclasses.replace(
            truth_of(motion, rate=settings.rate, start_ns=settings.start_ns),
            frame=settings.frame_prefix + settings.frame_id,
            child_frame=settings.frame_prefix + settings.child_frame_id,
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
            self._noise_free = dataclasses.replace(
                self._noise_free, frame=self._odometry.child_frame
            )
            topic = KINDS.get('imu').ideal_topic
            self._noise_free_publisher = overridable_publisher(self, Imu, topic, _DEPTH)
            self._truth_publishers.append(self._noise_free_publisher)
        self._wall = Clock(clock_type=ClockType.STEADY_TIME)
        self._connected_since = self._wall.now()
        self._has_begun = not self._settings.awaited.split()
        self._poll_timer = self.create_timer(_POLL_S, self._poll, clock=self._wall)
        period = 1.0 / (self._settings.rate * self._settings.factor)
        self.create_timer(period, self._tick, clock=self._wall)

    def _create_motion(self, parameters: NodeParameters) -> Motion:
        settings = self._settings
        motion_settings: dict[str, object] = {}
        if parameters_class := self._parameters_class():
            defaults = parameters_class()
            if isinstance(defaults, TimedMotion):
                # The default duration of the scenario must not limit a ramp that fits into the
                # duration of the settings.
                duration = max(defaults.duration, settings.duration)
                defaults = dataclasses.replace(defaults, duration=duration)
            scenario = parameters.declare(defaults, 'scenario', skip=('duration',), read_only=True)
            motion_settings = scenario.to_mapping()
            motion_settings.pop('duration', None)
        parameters.refuse_unknown()
        # Loading numba takes longer than a short drive in the interpreter, and twice the memory.
        is_short = settings.duration <= _SHORT_S
        with interpreted() if is_short else contextlib.nullcontext():
            return motion_of(
                settings.motion,
                seed=settings.seed,
                run=settings.run,
                duration=settings.duration,
                parameters=motion_settings,
            )

    def _parameters_class(self) -> type[Parameters] | None:
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
            # The clock stands at the start while the node waits: with simulated time, ekf_node and
            # `ros2 bag record` subscribe only when there is a time.
            self._clock_publisher.publish(ClockMessage(clock=message.header.stamp))
        if not self._has_begun:
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
                # For the process that started this one; the log may be silent.
                print(json.dumps({'published': len(self._odometry)}), flush=True)
                self.finished = True

    def _publish_noise_free(self) -> None:
        """Publish the messages of the noise-free IMU up to the newest odometry."""
        if self._noise_free is None:
            return
        now_ns = int(self._odometry.stamp_ns[self._index])
        end = int(np.searchsorted(self._noise_free.stamp_ns, now_ns, side='right'))
        for message in messages_of(self._noise_free.take(slice(self._noise_free_index, end))):
            self._noise_free_publisher.publish(message)
        self._noise_free_index = end

    def _poll(self) -> None:
        """Begin when all awaited connections have existed for the delay."""
        if self._has_begun:
            self._poll_timer.cancel()
            return
        now = self._wall.now()
        if missing := self._awaited.missing():
            self._connected_since = now
            self.get_logger().info(
                f'waiting for {" ".join(missing)}', throttle_duration_sec=_LOG_S, skip_first=True
            )
        self._has_begun = (now - self._connected_since).nanoseconds >= self._settings.delay * 1e9


def main(args: Sequence[str] | None = None) -> int:
    """Run a trajectory node until the motion ends or it is stopped; return the exit status."""
    nodes: list[TrajectoryNode] = []

    def create_nodes() -> list[TrajectoryNode]:
        nodes.append(TrajectoryNode())
        return nodes

    return run('trajectory_node', create_nodes, args, lambda: all(node.finished for node in nodes))


if __name__ == '__main__':
    sys.exit(main())
