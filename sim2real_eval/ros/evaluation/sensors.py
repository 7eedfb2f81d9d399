# SPDX-License-Identifier: Apache-2.0
"""The sensors of a twin as nodes, set as a batch run sets them."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from rclpy.context import Context
from rclpy.parameter import Parameter

from sim2real_eval.simulation.twin import Placed, TwinSensors
from sim2real_eval.simulation.twin_maker import TwinMaker
from sim_sensors.core.measurements import IntArray
from sim_sensors.ros.odometry_topic import ODOMETRY_TOPIC
from sim_sensors.ros.outputs import OUTPUTS
from sim_sensors.ros.sensor_node import SensorNode
from sim_sensors.ros.sensor_settings import Datum
from sim_sensors.sensor.catalogue import KINDS

BURST = 50
"""Odometry messages that are published at once, at most."""

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


def longest_burst(placed: Placed, truth_ns: IntArray) -> int:
    """Return a bound of the measurements that BURST odometry messages, or the last, set free."""
    # Two intervals wait for the messages after them.
    far = min(BURST + 2, len(truth_ns) - 1)
    longest_ns = np.max(truth_ns[far:] - truth_ns[:-far])
    # A delay above 40 times its mean never comes: its probability is 4e-18.
    delay: float = placed.model.latency + 40.0 * placed.model.delivery.jitter
    return math.ceil(float(placed.model.rate) * (float(longest_ns) * 1e-9 + delay)) + 10


def sensor_nodes(
    maker: TwinMaker,
    sensors: TwinSensors,
    label: str,
    *,
    namespace: str,
    odometry: str,
    context: Context,
) -> Iterator[tuple[str, TwinSensorNode]]:
    """Make the nodes of the simulated sensors one by one, with their roles (`imu`, `gps`).

    Each is the caller's to destroy, also when the next cannot be made. They measure on their usual
    topics in `namespace`, whatever arguments this process was started with: those are for the
    evaluation.

    Parameters
    ----------
    maker : TwinMaker
        Has the truth that they will measure.
    sensors : TwinSensors
    label : str
        What the model is called in diagnostics.
    namespace : str
        Absolute.
    odometry : str
        Full name of the topic of the truth.
    context : Context
    """
    common: dict[str, Any] = {
        'model': label,
        'seed': sensors.seed,
        'run': sensors.run,
        'velocity': sensors.velocity,
        'longest_gap': _LONGEST_GAP_S,
    }
    truth_ns = maker.truth.stamp_ns
    datum = {
        field.name: getattr(sensors.origin, field.name) for field in dataclasses.fields(Datum)
    }
    for role, placed in sensors.placed.items():
        kind = KINDS.get(role)
        own: Any = {'datum': Datum(**datum)} if role == 'gps' else {}
        settings = OUTPUTS.get(role).settings(**common, **own, start_ns=placed.start_ns)
        options = _options(kind.topic, namespace, odometry, longest_burst(placed, truth_ns))
        yield role, TwinSensorNode(kind, settings, model=placed.model, context=context, **options)


def _options(topic: str, namespace: str, odometry: str, depth: int) -> dict[str, Any]:
    """Return node options: names, and queues from which nothing is lost."""
    published = f'{namespace.rstrip("/")}/{topic}'
    reliable: Sequence[Parameter] = [
        Parameter(f'qos_overrides.{odometry}.subscription.reliability', value='reliable'),
        Parameter(f'qos_overrides.{published}.publisher.depth', value=depth),
    ]
    return {
        'namespace': namespace,
        'use_global_arguments': False,
        'cli_args': ['--ros-args', '-r', f'{ODOMETRY_TOPIC}:={odometry}'],
        'parameter_overrides': list(reliable),
    }
