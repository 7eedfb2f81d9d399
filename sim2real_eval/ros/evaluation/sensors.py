# SPDX-License-Identifier: Apache-2.0
"""The sensors of a twin as nodes, set as a batch run sets them."""

from __future__ import annotations

import abc
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
from sim_sensors.gps.gps import GpsModel
from sim_sensors.imu.imu import ImuModel
from sim_sensors.ros.gps_node import GpsNode
from sim_sensors.ros.imu_node import ImuNode
from sim_sensors.ros.odometry_topic import ODOMETRY_TOPIC
from sim_sensors.ros.sensor_node import SensorNode
from sim_sensors.ros.sensor_settings import Datum, GpsSettings, ImuSettings

__all__ = [
    'BURST',
    'TwinGpsNode',
    'TwinImuNode',
    'TwinSensorNode',
    'longest_burst',
    'sensor_nodes',
]

BURST = 50
"""Odometry messages that are published at once, at most."""

# A batch run bridges gaps of any length.
_LONGEST_GAP_S = 1e6


class TwinSensorNode(SensorNode, abc.ABC):
    """A sensor of a twin. One that cannot be made leaves nothing on the graph."""

    def __init__(self, *given: Any, **node_options: Any) -> None:
        try:
            super().__init__(*given, **node_options)
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


class TwinImuNode(ImuNode, TwinSensorNode):
    """An `imu_node` of a model that is given instead of named."""

    def __init__(self, model: ImuModel, settings: ImuSettings, **node_options: Any) -> None:
        self._given = model
        super().__init__(settings, **node_options)

    def load(self, model: str) -> ImuModel:
        """Return the given model."""
        return self._given


class TwinGpsNode(GpsNode, TwinSensorNode):
    """A `gps_node` of a model that is given instead of named."""

    def __init__(self, model: GpsModel, settings: GpsSettings, **node_options: Any) -> None:
        self._given = model
        super().__init__(settings, **node_options)

    def load(self, model: str) -> GpsModel:
        """Return the given model."""
        return self._given


def longest_burst(placed: Placed[ImuModel] | Placed[GpsModel], truth_ns: IntArray) -> int:
    """Return a bound of the measurements that BURST odometry messages, or the last, set free."""
    # Two intervals wait for the messages after them.
    far = min(BURST + 2, len(truth_ns) - 1)
    longest_ns = np.max(truth_ns[far:] - truth_ns[:-far])
    # A delay above 40 times its mean never comes: its probability is 4e-18.
    delay = placed.model.latency + 40.0 * placed.model.delivery.jitter
    return math.ceil(placed.model.rate * (float(longest_ns) * 1e-9 + delay)) + 10


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
    if sensors.imu is not None:
        imu = ImuSettings(**common, start_ns=sensors.imu.start_ns)
        depth = longest_burst(sensors.imu, truth_ns)
        options = _options(ImuNode.topic, namespace, odometry, depth)
        yield 'imu', TwinImuNode(sensors.imu.model, imu, context=context, **options)
    if sensors.gps is not None:
        origin = {
            field.name: getattr(sensors.origin, field.name) for field in dataclasses.fields(Datum)
        }
        gps = GpsSettings(**common, start_ns=sensors.gps.start_ns, datum=Datum(**origin))
        depth = longest_burst(sensors.gps, truth_ns)
        options = _options(GpsNode.topic, namespace, odometry, depth)
        yield 'gps', TwinGpsNode(sensors.gps.model, gps, context=context, **options)


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
