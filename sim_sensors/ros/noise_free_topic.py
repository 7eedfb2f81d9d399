# SPDX-License-Identifier: Apache-2.0
"""How sensor nodes listen to a simulator's noise-free sensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.subscription import Subscription

from sim_sensors.core.measurements import MessageArray
from sim_sensors.core.shared_parameters import mounting_quaternion
from sim_sensors.live.samples import LiveNoiseFree
from sim_sensors.motion.ideal import Mounting
from sim_sensors.sensor.catalogue import SensorKind
from .messages import array_of
from .node_settings import SensorSettings

# A second of a physics engine; best effort, so that any publisher fits.
_DEPTH = 1000


def live_noise_free(
    kind: SensorKind[Any, Any],
    settings: SensorSettings,
    surroundings: Callable[[], dict[str, Any]],
) -> LiveNoiseFree | None:
    """Return what takes the messages of a noise-free sensor; None where none is asked for.

    `surroundings` gives what `start` of a model of the kind takes of the world.
    """
    told = getattr(settings, 'noise_free', None)
    if told is None or not told.enabled or kind.ideal is None:
        return None
    place = Mounting(told.lever_arm, mounting_quaternion(told.mounting_rpy)[0])
    return LiveNoiseFree.of(kind, place, surroundings)


def subscribe_noise_free(
    node: Node,
    kind: SensorKind[Any, Any],
    message_type: Any,
    callback: Callable[[MessageArray], None],
) -> Subscription:
    """Subscribe to the noise-free sensor of a kind; the callback gets each message as one row."""
    return node.create_subscription(
        message_type,
        kind.ideal_topic,
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
