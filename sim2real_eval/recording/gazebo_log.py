# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Messages of a Gazebo log: output of `gz sim --record-topic` and of the transport recorder.

A log is an SQLite database whose messages are those of gz-msgs, serialised as protocol buffers.
Fortress (ignition.msgs) and Harmonic (gz.msgs) have the same field numbers in the types read here.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sim2real_eval.common.findings import RecordingError
from sim_sensors.core.blocks import BLOCK
from sim_sensors.core.measurements import MessageArray, MessageParts
from .message_types import find_type
from .recording import Content
from .storage import check_database, open_database

LOG_SUFFIX = '.tlog'
STATE_LOG = 'state.tlog'
"""File in the folder that `gz sim --record-path` makes."""


class _Layout(NamedTuple):
    """ROS message type, and where the array attributes are in the Gazebo message.

    An attribute has a path of field numbers and a count of components. The components of a
    vector, a quaternion and a NavSat have the field numbers 2, 3 ...
    """

    ros_type: str
    attributes: Mapping[str, tuple[tuple[int, ...], int]]


_LAYOUTS = {
    'Odometry': _Layout(
        'nav_msgs/msg/Odometry',
        {
            'position': ((2, 4), 3),
            'orientation': ((2, 5), 4),
            'linear_velocity': ((3, 2), 3),
            'angular_velocity': ((3, 3), 3),
        },
    ),
    'IMU': _Layout(
        'sensor_msgs/msg/Imu',
        {
            'orientation': ((3,), 4),
            'angular_velocity': ((4,), 3),
            'linear_acceleration': ((5,), 3),
        },
    ),
    'NavSat': _Layout('sensor_msgs/msg/NavSatFix', {'coordinates': ((), 3)}),
    'Magnetometer': _Layout('sensor_msgs/msg/MagneticField', {'magnetic_field': ((2,), 3)}),
}
_HEADER, _STAMP, _DATA, _NAVSAT_FRAME = 1, 1, 2, 8

Fields = dict[int, list[Any]]


def read_gazebo_log(path: Path) -> Content:
    """Read odometry, IMU, NavSat and magnetometer of a log.

    Parameters
    ----------
    path : Path
        File .tlog, or the folder of `gz sim --record-path`. Its messages have no covariance; it
        becomes zero, and for fixes unknown.

    Raises
    ------
    RecordingError
        When the file is not such a log or is damaged, or a topic has several frames.
    """
    path = path / STATE_LOG if path.is_dir() else path
    check_database(path)
    content = Content()
    try:
        with open_database(path) as database:
            topics = database.execute(
                'SELECT topics.id, topics.name, message_types.name FROM topics '
                'JOIN message_types ON message_types.id = topics.message_type_id'
            ).fetchall()
            for number, topic, name in topics:
                layout = _LAYOUTS.get(str(name).rpartition('.')[2])
                rows = database.execute(
                    'SELECT time_recv, message FROM messages WHERE topic_id = ? '
                    'ORDER BY time_recv, id',
                    (number,),
                )
                if layout is None:
                    content.ignored.append(f'{topic} ({name})')
                elif (array := _read_messages(f'{path}: {topic}', layout, rows)) is not None:
                    content.messages[str(topic)] = array
                    content.ros_types[str(topic)] = layout.ros_type
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise RecordingError(f'{path}: not a readable Gazebo log: {error}') from error
    return content


def gazebo_message(topic: str, type_name: str, data: bytes, received_ns: int) -> MessageArray:
    """Return one serialised message of a Gazebo topic as an array of one row.

    An unsupported type, or bytes that are no message, raise RecordingError.
    """
    layout = _LAYOUTS.get(type_name.rpartition('.')[2])
    if layout is None:
        raise RecordingError(f'{topic}: is {type_name}; must be one of {", ".join(_LAYOUTS)}')
    return _to_array(topic, layout, [(received_ns, data)], set())


def _read_messages(where: str, layout: _Layout, rows: sqlite3.Cursor) -> MessageArray | None:
    """Return the messages of a topic, or None if it is empty."""
    parts, frames = MessageParts[MessageArray](), set[tuple[str, str]]()
    while block := rows.fetchmany(BLOCK):
        parts.add(_to_array(where, layout, block, frames))
    return parts.concatenate() if frames else None


def _to_array(
    where: str, layout: _Layout, rows: list[tuple[int, bytes]], frames: set[tuple[str, str]]
) -> MessageArray:
    """Convert pairs of receive time and data; their frames are added to `frames`."""
    try:
        messages = [wire_fields(data) for _, data in rows]
        headers = [_descend(message, (_HEADER,)) for message in messages]
        stamps = [_descend(header, (_STAMP,)) for header in headers]
        frames |= {
            _read_frames(message, header)
            for message, header in zip(messages, headers, strict=True)
        }
        fields = {
            attribute: np.array(
                [_components(_descend(message, path), count) for message in messages]
            )
            for attribute, (path, count) in layout.attributes.items()
        }
        stamp_ns = [
            stamp.get(1, [0])[-1] * 1_000_000_000 + stamp.get(2, [0])[-1] for stamp in stamps
        ]
        times = np.array(stamp_ns, np.int64), np.array([time for time, _ in rows], np.int64)
    except (IndexError, TypeError, ValueError, OverflowError, struct.error) as error:
        raise RecordingError(f'{where}: a message cannot be read: {error}') from error
    for key, names in zip(('frame_id', 'child_frame_id'), zip(*frames, strict=True), strict=True):
        if len(set(names)) > 1:
            listed = ', '.join(map(repr, sorted(set(names))))
            raise RecordingError(f'{where}: {key} is {listed}; one topic must have one frame')
    kind, count = find_type(layout.ros_type), len(rows)
    if 'coordinates' in fields:
        latitude, longitude, altitude = fields.pop('coordinates').T.copy()
        fields |= {'latitude': latitude, 'longitude': longitude, 'altitude': altitude}
    for field in kind.csv_fields:
        if field.attribute not in fields:
            fields[field.attribute] = np.zeros((count, *field.shape), field.code)
    ((frame, child),) = frames
    return kind.make_array(*times, frame, child, fields)


def _read_frames(message: Fields, header: Fields) -> tuple[str, str]:
    """Return frame and child frame; a NavSat has its own field for its frame."""
    pairs = [wire_fields(pair) for pair in header.get(_DATA, [])]
    texts = {_read_text(pair, 1): _read_text(pair, 2) for pair in pairs}
    frame = texts.get('frame_id') or _read_text(message, _NAVSAT_FRAME)
    return frame, texts.get('child_frame_id', '')


def _read_text(message: Fields, number: int) -> str:
    text = message.get(number, [b''])[-1]
    return text.decode() if isinstance(text, bytes) else ''


def _descend(message: Fields, path: tuple[int, ...]) -> Fields:
    """Return the nested message at a path of field numbers."""
    for number in path:
        message = wire_fields(message.get(number, [b''])[-1])
    return message


def _components(message: Fields, count: int) -> list[float]:
    """Return the fields 2, 3 ...; protocol buffers omit zeros."""
    return [float(message.get(2 + k, [0.0])[-1]) for k in range(count)]


# The wire format, https://protobuf.dev/programming-guides/encoding: a field is a key, which is
# eight times its number plus its wire type, and a value.

_DOUBLE = struct.Struct('<d')
_FLOAT = struct.Struct('<f')
_LARGEST_VARINT = (1 << 64) - 1


def wire_fields(data: bytes) -> Fields:
    """Return the values of a serialised message by field number, in the order of the bytes."""
    fields: Fields = {}
    for number, value in _numbered_values(data):
        fields.setdefault(number, []).append(value)
    return fields


def _numbered_values(data: bytes) -> Iterator[tuple[int, Any]]:
    offset = 0
    while offset < len(data):
        key, offset = _read_varint(data, offset)
        number, wire_type = divmod(key, 8)
        if wire_type == 0:
            integer, offset = _read_varint(data, offset)
            # Negative numbers are sign-extended to 64 bits.
            yield number, integer - (1 << 64) if integer >> 63 else integer
        elif wire_type == 1:
            yield number, _DOUBLE.unpack_from(data, offset)[0]
            offset += 8
        elif wire_type == 2:
            size, offset = _read_varint(data, offset)
            if offset + size > len(data):
                raise ValueError('it is cut short')
            yield number, data[offset : offset + size]
            offset += size
        elif wire_type == 5:
            yield number, _FLOAT.unpack_from(data, offset)[0]
            offset += 4
        else:
            raise ValueError(f'wire type {wire_type}; must be 0, 1, 2 or 5')


def _read_varint(data: bytes, offset: int) -> tuple[int, int]:
    """Return a number of seven bits per byte, least significant first, and the next offset."""
    number = shift = 0
    while shift < 64:
        byte = data[offset]
        number |= (byte & 127) << shift
        offset, shift = offset + 1, shift + 7
        if byte < 128:
            return number & _LARGEST_VARINT, offset
    raise ValueError('a number has more than 64 bits')
