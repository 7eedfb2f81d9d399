# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Topics of the ground truth: the motion and noise-free sensors."""

from __future__ import annotations

import functools
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

# One second at ten times real time, or of a physics engine.
_DEPTH = 1000
# Odometry messages that a sensor takes before the next sensor does.
_BURST = 200


def subscribe_odometry(node: Node, callback: Callable[[bytes], None]) -> Subscription:
    """Subscribe to the true motion; the callback gets serialised messages."""
    return node.create_subscription(
        Odometry,
        ODOMETRY_TOPIC,
        callback,
        # Best effort is compatible with any publisher.
        QoSProfile(depth=_DEPTH, reliability=ReliabilityPolicy.BEST_EFFORT),
        qos_overriding_options=QoSOverridingOptions.with_default_policies(),
        raw=True,
    )


def live_noise_free(
    kind: type[SensorModel[Any]],
    settings: SensorSettings,
    surroundings: Callable[[], dict[str, Any]],
) -> LiveNoiseFree | None:
    """Return the receiver of a noise-free sensor; None if it is not enabled.

    `surroundings` returns the properties of the world that `start` of a model takes.
    """
    noise_free = getattr(settings, 'noise_free', None)
    if noise_free is None or not noise_free.enabled or kind.ideal is None:
        return None
    mounting = Mounting(noise_free.lever_arm, mounting_quaternion(noise_free.mounting_rpy)[0])
    return LiveNoiseFree.from_kind(kind, mounting, surroundings)


def subscribe_noise_free(
    node: Node,
    kind: type[SensorModel[Any]],
    message_type: Any,
    callback: Callable[[MessageArray], None],
) -> Subscription:
    """Subscribe to the noise-free sensor of a kind; the callback gets arrays of one row."""
    return node.create_subscription(
        message_type,
        kind.ideal_topic,
        lambda message: callback(array_of([message])),
        QoSProfile(depth=_DEPTH, reliability=ReliabilityPolicy.BEST_EFFORT),
        qos_overriding_options=QoSOverridingOptions.with_default_policies(),
    )


def queued_noise_free(subscription: Subscription, message_type: Any) -> list[MessageArray]:
    """Take all queued messages of a subscription, as arrays of one row."""
    arrays: list[MessageArray] = []
    with subscription.handle as handle:
        while len(arrays) < _DEPTH and (entry := handle.take_message(message_type, False)):
            arrays.append(array_of([entry[0]]))
    return arrays


# Odometry is decoded from its bytes, which takes a seventh of the time of a message object: rclpy
# creates ten Python objects per message, a large part of the cost of a sensor at 1 kHz.

# Encapsulation of CDR, little endian (DDS-RTPS 10.2); two bytes of options follow.
_CDR_LE = b'\x00\x01'
_ENCAPSULATION = 4
_NUMBERS = 3 + 4 + 36 + 6 + 36
_STAMP = struct.Struct('<iI')
_LENGTH = struct.Struct('<I')


@functools.lru_cache(maxsize=2 * _BURST)
def odometry_of_bytes(data: bytes) -> OdometryArray:
    """Decode a serialised nav_msgs/Odometry to one row, equal to that of `array_of`.

    Other encodings than little-endian CDR, which no known middleware sends, are decoded by way of
    the message object. MotionError if the bytes are no nav_msgs/Odometry. The sensors of a process
    get one object, with which they share the motion.
    """
    try:
        if data[:2] == _CDR_LE:
            return _decode_little_endian(data)
        return cast(OdometryArray, array_of([deserialize_message(data, Odometry)]))
    except (struct.error, ValueError, RuntimeError) as error:
        raise MotionError(
            f'odometry: {len(data)} bytes are no nav_msgs/Odometry ({error})'
        ) from error


def _decode_little_endian(data: bytes) -> OdometryArray:
    seconds, nanoseconds = _STAMP.unpack_from(data, _ENCAPSULATION)
    frame, end = _read_text(data, _ENCAPSULATION + _STAMP.size)
    child_frame, end = _read_text(data, end)
    first = _align(end, 8)
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


def _read_text(data: bytes, offset: int) -> tuple[str, int]:
    """Return the text at an offset and the offset of its end; its length counts a final zero."""
    start = _align(offset, 4) + _LENGTH.size
    (length,) = _LENGTH.unpack_from(data, start - _LENGTH.size)
    return data[start : start + length - 1].decode(), start + length


def _align(offset: int, size: int) -> int:
    """Return the next offset that is a multiple of `size`, counted after the encapsulation."""
    return offset + (_ENCAPSULATION - offset) % size
