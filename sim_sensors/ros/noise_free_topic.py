# SPDX-License-Identifier: Apache-2.0
"""The topics of a simulator's noise-free sensors, and how sensor nodes listen to them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.subscription import Subscription

from sim_sensors.core.measurements import MessageArray
from sim_sensors.core.shared_parameters import mounting_quaternion
from sim_sensors.live.samples import LiveNoiseFree
from sim_sensors.motion.ideal import Mounting
from sim_sensors.motion.trajectory import Motion
from sim_sensors.sensor.catalogue import SensorKind
from .messages import array_of
from .node_settings import SensorSettings

# A second of a physics engine; best effort, so that any publisher fits.
_DEPTH = 1000


@dataclasses.dataclass(frozen=True)
class NoiseFreeTopic:
    """Where the noise-free sensors of a kind publish.

    `name` is relative, `values` are the fields of the array that have to be finite.
    """

    name: str
    values: tuple[str, ...]


NOISE_FREE_TOPICS: Mapping[str, NoiseFreeTopic] = {
    'imu': NoiseFreeTopic('ground_truth/imu', ('angular_velocity', 'linear_acceleration')),
    'gps': NoiseFreeTopic('ground_truth/fix', ('latitude', 'longitude', 'altitude')),
    'mag': NoiseFreeTopic('ground_truth/mag', ('magnetic_field',)),
}
"""Topics by kind of sensor; kinds without one have no noise-free counterpart."""


def live_noise_free(
    kind: SensorKind[Any, Any],
    settings: SensorSettings,
    surroundings: Callable[[], dict[str, Any]],
) -> LiveNoiseFree | None:
    """Return what takes the messages of a noise-free sensor; None where none is asked for.

    `surroundings` gives what `start` of a model of the kind takes of the world.
    """
    told = getattr(settings, 'noise_free', None)
    ideal = kind.ideal
    if told is None or not told.enabled or ideal is None:
        return None
    place = Mounting(told.lever_arm, mounting_quaternion(told.mounting_rpy)[0])

    def improve(motion: Motion, messages: Any, origin_ns: int) -> Motion:
        return ideal(motion, messages, origin_ns=origin_ns, mounting=place, **surroundings())

    return LiveNoiseFree(improve, NOISE_FREE_TOPICS[kind.name].values)


def subscribe_noise_free(
    node: Node,
    kind: SensorKind[Any, Any],
    message_type: Any,
    callback: Callable[[MessageArray], None],
) -> Subscription:
    """Subscribe to the noise-free sensor of a kind; the callback gets each message as one row."""
    return node.create_subscription(
        message_type,
        NOISE_FREE_TOPICS[kind.name].name,
        lambda message: callback(array_of([message])),
        QoSProfile(depth=_DEPTH, reliability=ReliabilityPolicy.BEST_EFFORT),
        qos_overriding_options=QoSOverridingOptions.with_default_policies(),
    )


def queued_noise_free(subscription: Subscription, message_type: Any) -> list[MessageArray]:
    """Return what more waits in the subscription, one row each."""
    found: list[MessageArray] = []
    with subscription.handle as handle:
        while len(found) < _DEPTH and (taken := handle.take_message(message_type, False)):
            found.append(array_of([taken[0]]))
    return found
