# SPDX-License-Identifier: Apache-2.0
"""Serialised messages whose layout differs from one to the next, through rosbags."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sim2real_eval.recording.errors import RecordingError
from sim_sensors.measurements import IntArray, MessageArray

if TYPE_CHECKING:
    from rosbags.typesys.store import Typestore

__all__ = ['header_times', 'headers', 'of_one_frame', 'parsed', 'stamps_of', 'typestore']

_NS = 1_000_000_000


@functools.cache
def typestore() -> Typestore:
    """Return the message types of ROS 2."""
    from rosbags.typesys import Stores, get_typestore

    return get_typestore(Stores.ROS2_JAZZY)


def parsed(data: Sequence[bytes], ros_type: str, where: str) -> list[Any]:
    """Return the messages of a topic; raises RecordingError when one is not of that type."""
    messages: list[Any] = []
    for index, row in enumerate(data):
        try:
            messages.append(typestore().deserialize_cdr(row, ros_type))
        except Exception as error:
            # Damaged bytes surface as whatever the parser tripped over.
            raise RecordingError(
                f'{where}: message {index} of {len(row)} bytes is not a {ros_type}'
            ) from error
    return messages


def of_one_frame(messages: Sequence[Any]) -> tuple[str, list[int], tuple[tuple[str, int], ...]]:
    """Return the most frequent frame, which messages have it, and the others with their number."""
    counts = Counter(str(message.header.frame_id) for message in messages)
    frame = max(counts, key=lambda name: counts[name], default='')
    chosen = [k for k, message in enumerate(messages) if message.header.frame_id == frame]
    return frame, chosen, tuple((name, count) for name, count in counts.items() if name != frame)


def stamps_of(messages: Sequence[Any]) -> IntArray:
    """Return the header stamps `(n,)`, ns."""
    stamps = [message.header.stamp for message in messages]
    return np.array([stamp.sec * _NS + stamp.nanosec for stamp in stamps], dtype=np.int64)


def header_times(stamp_ns: IntArray, where: str) -> tuple[IntArray, IntArray]:
    """Return seconds and nanoseconds of stamps, as a ROS header has them.

    Raises
    ------
    RecordingError
        When a stamp does not fit into the int32 seconds of a ROS header.
    """
    seconds, nanoseconds = np.divmod(stamp_ns, _NS)
    if len(stamp_ns) and (seconds.min() < -(2**31) or seconds.max() >= 2**31):
        raise RecordingError(
            f'{where}: stamp {int(seconds.max())} s does not fit a ROS header; must be < 2^31 s'
        )
    return seconds, nanoseconds


def headers(array: MessageArray, where: str) -> list[Any]:
    """Return a std_msgs/Header for each message.

    Raises
    ------
    RecordingError
        When a stamp does not fit into the int32 seconds of a ROS header.
    """
    types: dict[str, Any] = typestore().types
    seconds, nanoseconds = header_times(array.stamp_ns, where)
    time, header = types['builtin_interfaces/msg/Time'], types['std_msgs/msg/Header']
    return [
        header(stamp=time(second, nanosecond), frame_id=array.frame)
        for second, nanosecond in zip(seconds.tolist(), nanoseconds.tolist(), strict=True)
    ]
