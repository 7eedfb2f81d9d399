# SPDX-License-Identifier: Apache-2.0
"""Topics of the truth, its motion and noise-free sensors, and how nodes listen to them."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.serialization import deserialize_message
from rclpy.subscription import Subscription

from sim_sensors.core.errors import MotionError
from sim_sensors.core.measurements import MessageArray, OdometryArray
from sim_sensors.core.shared_parameters import mounting_quaternion
from sim_sensors.live.samples import LiveNoiseFree
from sim_sensors.motion.ideal import Mounting
from sim_sensors.sensor.sensor import SensorModel
from .messages import array_of
from .node_settings import SensorSettings

ODOMETRY_TOPIC = 'ground_truth/odometry'
"""Relative name of the topic of the true motion."""

# A second of ten times real time, or of a physics engine.
_DEPTH = 1000


def subscribe_odometry(node: Node, callback: Callable[[bytes], None]) -> Subscription:
    """Subscribe to the true motion; the callback gets each message as its bytes."""
    return node.create_subscription(
        Odometry,
        ODOMETRY_TOPIC,
        callback,
        # Best effort, so that any publisher fits. Its own: rclpy writes the overrides into it.
        QoSProfile(depth=_DEPTH, reliability=ReliabilityPolicy.BEST_EFFORT),
        qos_overriding_options=QoSOverridingOptions.with_default_policies(),
        raw=True,
    )


def live_noise_free(
    kind: type[SensorModel[Any]],
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
    kind: type[SensorModel[Any]],
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


# Odometry straight from its bytes: a seventh of the time that a message object takes.
#
# rclpy makes ten Python objects of each nav_msgs/Odometry, which at 1000 messages a second is a
# good part of what a sensor costs. Its bytes are two stamps, two names and 85 numbers in a row.

# Encapsulation of plain CDR, little endian (DDS-RTPS 10.2); its two bytes of options are free.
_CDR_LE = b'\x00\x01'
_ENCAPSULATION = 4
_NUMBERS = 3 + 4 + 36 + 6 + 36
_STAMP = struct.Struct('<iI')
_LENGTH = struct.Struct('<I')


def odometry_of_bytes(data: bytes) -> OdometryArray:
    """Return a serialized nav_msgs/Odometry as one row, the same that `array_of` gives.

    An encoding that no known middleware sends goes the long way, through the message object. Bytes
    that are no nav_msgs/Odometry, cut short, say, raise MotionError.
    """
    try:
        if data[:2] == _CDR_LE:
            return _of_little_endian(data)
        return cast(OdometryArray, array_of([deserialize_message(data, Odometry)]))
    except (struct.error, ValueError, RuntimeError) as error:
        raise MotionError(
            f'odometry: {len(data)} bytes that are no nav_msgs/Odometry ({error})'
        ) from error


def _of_little_endian(data: bytes) -> OdometryArray:
    seconds, nanoseconds = _STAMP.unpack_from(data, _ENCAPSULATION)
    frame, end = _name(data, _ENCAPSULATION + _STAMP.size)
    child_frame, end = _name(data, end)
    first = _aligned(end, 8)
    numbers = np.array(np.frombuffer(data, '<f8', _NUMBERS, first), dtype=np.float64)
    stamp = np.array([seconds * 1_000_000_000 + nanoseconds])
    return OdometryArray(
        stamp_ns=stamp,
        arrival_ns=stamp,
        frame=frame,
        child_frame=child_frame,
        position=numbers[None, :3],
        orientation=numbers[None, 3:7],
        pose_covariance=numbers[7:43].reshape(1, 6, 6),
        linear_velocity=numbers[None, 43:46],
        angular_velocity=numbers[None, 46:49],
        twist_covariance=numbers[49:].reshape(1, 6, 6),
    )


def _name(data: bytes, at: int) -> tuple[str, int]:
    """Return the text at an offset, and where it ends; its length counts a closing zero."""
    start = _aligned(at, 4) + _LENGTH.size
    (length,) = _LENGTH.unpack_from(data, start - _LENGTH.size)
    return data[start : start + length - 1].decode(), start + length


def _aligned(offset: int, size: int) -> int:
    """Return the next offset that is a multiple of `size`, counted after the encapsulation."""
    return offset + (_ENCAPSULATION - offset) % size
