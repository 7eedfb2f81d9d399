# SPDX-License-Identifier: Apache-2.0
"""Messages of a log of Gazebo: what `gz sim --record-topic` and the transport's recorder write.

A log is a database of SQLite whose messages are those of gz-msgs, on the wire as protocol buffers
have them. Fortress (ignition.msgs) and Harmonic (gz.msgs) have the same numbers of the fields that
are read here.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sim2real_eval.common.errors import RecordingError
from sim_sensors.core.blocks import BLOCK
from sim_sensors.core.measurements import Columns, MessageArray
from .message_types import known_type
from .recording import Content
from .storage import check_file, opened

LOG_SUFFIX = '.tlog'
STATE_LOG = 'state.tlog'
"""File of the folder that `gz sim --record-path` makes."""


class _Layout(NamedTuple):
    """ROS message type, path of field numbers of each array attribute, count of numbers there.

    The numbers of a vector, a quaternion and a NavSat have the field numbers 2, 3 ...
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
    'NavSat': _Layout('sensor_msgs/msg/NavSatFix', {'place': ((), 3)}),
    'Magnetometer': _Layout('sensor_msgs/msg/MagneticField', {'magnetic_field': ((2,), 3)}),
}
_HEADER, _STAMP, _DATA, _NAVSAT_FRAME = 1, 1, 2, 8

Fields = dict[int, list[Any]]


def read_gazebo_log(path: Path) -> Content:
    """Read odometry, IMU, NavSat and magnetometer of a log.

    Parameters
    ----------
    path : Path
        File .tlog, or the folder of `gz sim --record-path`. Messages have no covariance there:
        it is zero, and unknown for fixes.

    Raises
    ------
    RecordingError
        When the file is no such log or damaged, or a topic has several frames.
    """
    path = path / STATE_LOG if path.is_dir() else path
    check_file(path)
    content = Content()
    try:
        with opened(path) as database:
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
                elif (array := _messages(f'{path}: {topic}', layout, rows)) is not None:
                    content.messages[str(topic)] = array
                    content.ros_types[str(topic)] = layout.ros_type
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise RecordingError(f'{path}: not a readable log of Gazebo: {error}') from error
    return content


def gazebo_message(topic: str, type_name: str, data: bytes, received_ns: int) -> MessageArray:
    """Return one message of a topic of Gazebo, as bytes on the wire, as an array of one row.

    Raises RecordingError when no recording holds its type, or the bytes are no message.
    """
    layout = _LAYOUTS.get(type_name.rpartition('.')[2])
    if layout is None:
        raise RecordingError(f'{topic}: is {type_name}; must be one of {", ".join(_LAYOUTS)}')
    return _array(topic, layout, [(received_ns, data)], set())


def _messages(where: str, layout: _Layout, rows: sqlite3.Cursor) -> MessageArray | None:
    """Return the messages of a topic, of which a block at a time is taken apart."""
    columns, frames = Columns[MessageArray](), set[tuple[str, str]]()
    while block := rows.fetchmany(BLOCK):
        columns.add(_array(where, layout, block, frames))
    return columns.joined() if frames else None


def _array(
    where: str, layout: _Layout, rows: list[tuple[int, bytes]], frames: set[tuple[str, str]]
) -> MessageArray:
    """Return some messages; `frames` are those of the ones before, and learn theirs."""
    try:
        messages = [wire_fields(data) for _, data in rows]
        headers = [_below(message, (_HEADER,)) for message in messages]
        stamps = [_below(header, (_STAMP,)) for header in headers]
        frames |= {_frames(*pair) for pair in zip(messages, headers, strict=True)}
        values = {
            attribute: np.array([_numbers(_below(one, way), count) for one in messages])
            for attribute, (way, count) in layout.attributes.items()
        }
        stamp_ns = [one.get(1, [0])[-1] * 1_000_000_000 + one.get(2, [0])[-1] for one in stamps]
        times = np.array(stamp_ns, np.int64), np.array([time for time, _ in rows], np.int64)
    except (IndexError, TypeError, ValueError, OverflowError, struct.error) as error:
        raise RecordingError(f'{where}: a message cannot be read: {error}') from error
    for key, names in zip(('frame_id', 'child_frame_id'), zip(*frames, strict=True), strict=True):
        if len(set(names)) > 1:
            found = ', '.join(map(repr, sorted(set(names))))
            raise RecordingError(f'{where}: {key} is {found}; one topic must have one frame')
    kind, count = known_type(layout.ros_type), len(rows)
    if 'place' in values:
        latitude, longitude, altitude = values.pop('place').T.copy()
        values |= {'latitude': latitude, 'longitude': longitude, 'altitude': altitude}
    for field in kind.csv_fields:
        if field.attribute not in values:
            values[field.attribute] = np.zeros((count, *field.shape), field.code)
    (named,) = frames
    return kind.array_of(*times, *named, values)


def _frames(message: Fields, header: Fields) -> tuple[str, str]:
    """Return frame and child frame; a NavSat has its own field for its frame."""
    named = [wire_fields(pair) for pair in header.get(_DATA, [])]
    texts = {_text(pair, 1): _text(pair, 2) for pair in named}
    return texts.get('frame_id') or _text(message, _NAVSAT_FRAME), texts.get('child_frame_id', '')


def _text(message: Fields, number: int) -> str:
    value = message.get(number, [b''])[-1]
    return value.decode() if isinstance(value, bytes) else ''


def _below(message: Fields, way: tuple[int, ...]) -> Fields:
    for number in way:
        message = wire_fields(message.get(number, [b''])[-1])
    return message


def _numbers(message: Fields, count: int) -> list[float]:
    """Return numbers of the fields 2, 3 ...; what is zero is not on the wire."""
    return [float(message.get(2 + k, [0.0])[-1]) for k in range(count)]


# The wire format, https://protobuf.dev/programming-guides/encoding: each field is a key, which is
# eight times its number plus its wire type, and a value.

_DOUBLE = struct.Struct('<d')
_FLOAT = struct.Struct('<f')
_LONGEST = (1 << 64) - 1


def wire_fields(data: bytes) -> Fields:
    """Return the values of a message by the numbers of their fields, in order."""
    found: Fields = {}
    for number, value in _pairs(data):
        found.setdefault(number, []).append(value)
    return found


def _pairs(data: bytes) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = divmod(key, 8)
        if wire == 0:
            value, at = _varint(data, at)
            # Negative numbers are those of 64 bits.
            yield number, value - (1 << 64) if value >> 63 else value
        elif wire == 1:
            yield number, _DOUBLE.unpack_from(data, at)[0]
            at += 8
        elif wire == 2:
            size, at = _varint(data, at)
            if at + size > len(data):
                raise ValueError('it is cut short')
            yield number, data[at : at + size]
            at += size
        elif wire == 5:
            yield number, _FLOAT.unpack_from(data, at)[0]
            at += 4
        else:
            raise ValueError(f'wire type {wire}; must be 0, 1, 2 or 5')


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of seven bits a byte, least first, and the place behind it."""
    value = shift = 0
    while shift < 64:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value & _LONGEST, at
    raise ValueError('a number has more than 64 bits')
