# SPDX-License-Identifier: Apache-2.0
"""Serialised ROS 2 messages (CDR) <-> arrays, a whole topic at once.

Every type here is a header, at most one more text and then fields of fixed size, so messages with
equal texts have
equal layout: one numpy record type reads them all. Decoding 4500 sensor_msgs/Imu this way takes
some 3 ms, against
0.15 s message by message (benchmark in test_recording_cdr.py).
"""

from __future__ import annotations

import dataclasses
import struct
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.common.errors import RecordingError
from sim2real_eval.recording.cdr_ragged import (
    decode_camera_info,
    decode_features,
    encode_camera_info,
    encode_features,
    header_times,
)
from sim2real_eval.recording.message_types import CAMERA_INFO, FEATURES, MessageType
from sim2real_eval.recording.recording import StaticTransform
from sim_sensors.camera.features import FeatureArray
from sim_sensors.camera.pinhole import CameraInfoArray
from sim_sensors.core.measurements import IntArray, MessageArray, OdometryArray

_LITTLE = b'\x00\x01\x00\x00'
_HEADER = 12  # encapsulation (4), sec (4), nanosec (4); the texts follow
_NS = 1_000_000_000
_SERVICE_GPS = 1


@dataclasses.dataclass(frozen=True)
class Decoded:
    """Messages of one topic.

    Attributes
    ----------
    array : MessageArray
        Messages with the most frequent frame; `arrival_ns` is the receive time.
    other_frames : tuple of (str, int)
        Frames of the messages that were left out, and their number.
    """

    array: MessageArray
    other_frames: tuple[tuple[str, int], ...]


def decode(kind: MessageType, data: Sequence[bytes], received_ns: IntArray, where: str) -> Decoded:
    """Decode all messages of a topic.

    Parameters
    ----------
    kind : MessageType
        Their type.
    data : sequence of n bytes
        Serialised messages with the encapsulation header.
    received_ns : (n,) int64
        Receive times.
    where : str
        File and topic, for messages.

    Raises
    ------
    RecordingError
        When a message is not CDR of that type: names its index and size.
    """
    if kind is FEATURES:
        return Decoded(*decode_features(data, received_ns, where))
    if kind is CAMERA_INFO:
        return Decoded(*decode_camera_info(data, received_ns, where))
    if not data:
        texts: tuple[str, ...] = ('',) * (2 if kind.has_child else 1)
        return Decoded(
            _array(kind, np.zeros(0, _layout(kind, _HEADER, '<')), received_ns, texts), ()
        )
    keys = _keys(kind, data, where)
    counts = Counter(keys)
    texts = max(counts, key=lambda key: (counts[key], -keys.index(key)))
    chosen = [index for index, key in enumerate(keys) if key == texts]
    rows = data if len(chosen) == len(data) else [data[index] for index in chosen]
    order = '<' if rows[0][1] & 1 else '>'
    layout = _layout(kind, _texts(rows[0], len(texts), order)[1], order)
    size = layout.itemsize
    for index, row in zip(chosen, rows, strict=True):
        # A serialiser may pad the end to the alignment of the transport, never by 8 bytes.
        if not size <= len(row) < size + 8 or row[1] != rows[0][1]:
            raise RecordingError(
                f'{where}: message {index} has {len(row)} bytes, {kind.name} must have {size}'
            )
    records = np.frombuffer(b''.join(row[:size] for row in rows), layout)
    others = tuple((' / '.join(key), number) for key, number in counts.items() if key != texts)
    return Decoded(_array(kind, records, received_ns[chosen], texts), others)


def encode(kind: MessageType, array: MessageArray, where: str) -> list[bytes]:
    """Serialise all messages of an array as little-endian CDR.

    Raises
    ------
    RecordingError
        When a stamp does not fit into the int32 seconds of a ROS header.
    """
    if isinstance(array, FeatureArray):
        return encode_features(array, where)
    if isinstance(array, CameraInfoArray):
        return encode_camera_info(array, where)
    texts = [array.frame]
    if isinstance(array, OdometryArray):
        texts.append(array.child_frame)
    prefix = bytearray(_HEADER)
    prefix[:4] = _LITTLE
    for text in texts:
        raw = text.encode() + b'\x00'
        prefix += b'\x00' * (-len(prefix) % 4) + struct.pack('<I', len(raw)) + raw
    layout = _layout(kind, len(prefix), '<')
    bytes_of = np.zeros((len(array), layout.itemsize), np.uint8)
    bytes_of[:, : len(prefix)] = np.frombuffer(bytes(prefix), np.uint8)
    records = bytes_of.view(layout)[:, 0]
    records['sec'], records['nanosec'] = header_times(array.stamp_ns, where)
    for index, (name, _, _) in enumerate(kind.wire):
        records[name or f'_{index}'] = getattr(array, name) if name else _SERVICE_GPS
    return [row.tobytes() for row in bytes_of]


def decode_transforms(data: bytes, where: str) -> list[StaticTransform]:
    """Decode one tf2_msgs/TFMessage; raises RecordingError when it is not one."""
    try:
        order = '<' if data[1] & 1 else '>'
        (count,) = struct.unpack_from(f'{order}I', data, 4)
        offset, result = 8, []
        for _ in range(count):
            texts, offset = _texts(data, 2, order, _aligned(offset, 4) + 8)
            offset = _aligned(offset, 8)
            x, y, z, qx, qy, qz, qw = struct.unpack_from(f'{order}7d', data, offset)
            offset += 56
            result.append(StaticTransform(texts[0], texts[1], (x, y, z), (qx, qy, qz, qw)))
    except (struct.error, IndexError, UnicodeDecodeError):
        raise RecordingError(f'{where}: message of {len(data)} bytes is not a TFMessage') from None
    return result


def encode_transforms(transforms: Sequence[StaticTransform], stamp_ns: int) -> bytes:
    """Serialise static transforms as one tf2_msgs/TFMessage."""
    out = bytearray(_LITTLE) + struct.pack('<I', len(transforms))
    for transform in transforms:
        out += b'\x00' * (-len(out) % 4) + struct.pack('<iI', *divmod(stamp_ns, _NS))
        for text in (transform.parent, transform.child):
            raw = text.encode() + b'\x00'
            out += b'\x00' * (-len(out) % 4) + struct.pack('<I', len(raw)) + raw
        out += b'\x00' * (_aligned(len(out), 8) - len(out))
        out += struct.pack('<7d', *transform.translation, *transform.rotation)
    return bytes(out)


def _aligned(offset: int, size: int) -> int:
    """Next offset that CDR aligns to `size`; it counts from after the first 4 bytes."""
    return offset + (4 - offset) % size


def _texts(
    data: bytes, count: int, order: str, offset: int = _HEADER
) -> tuple[tuple[str, ...], int]:
    texts = []
    for _ in range(count):
        offset = _aligned(offset, 4)
        (length,) = struct.unpack_from(f'{order}I', data, offset)
        raw = data[offset + 4 : offset + 4 + length]
        if len(raw) != length:
            raise IndexError
        texts.append(raw.rstrip(b'\x00').decode())
        offset += 4 + length
    return tuple(texts), offset


def _keys(kind: MessageType, data: Sequence[bytes], where: str) -> list[tuple[str, ...]]:
    """Texts of every message; parsed anew only where the bytes differ from those seen before."""
    number = 2 if kind.has_child else 1
    result: list[tuple[str, ...]] = []
    section, end = b'', 0
    key: tuple[str, ...] = ()
    for index, row in enumerate(data):
        if not section or row[_HEADER:end] != section:
            try:
                key, end = _texts(row, number, '<' if row[1] & 1 else '>')
            except (struct.error, IndexError, UnicodeDecodeError):
                raise RecordingError(
                    f'{where}: message {index} of {len(row)} bytes is not a {kind.name}'
                ) from None
            section = row[_HEADER:end]
        result.append(key)
    return result


def _layout(kind: MessageType, start: int, order: str) -> np.dtype[Any]:
    """Record type of whole messages whose texts end at byte `start`."""
    names, offsets = ['sec', 'nanosec'], [4, 8]
    specs: list[Any] = [f'{order}i4', f'{order}u4']
    offset = start
    for index, (name, code, shape) in enumerate(kind.wire):
        item = np.dtype(f'{order}{code}')
        offset = _aligned(offset, item.itemsize)
        names.append(name or f'_{index}')
        specs.append((item, shape))
        offsets.append(offset)
        offset += item.itemsize * int(np.prod(shape, dtype=int))
    return np.dtype({'names': names, 'formats': specs, 'offsets': offsets, 'itemsize': offset})


def _array(
    kind: MessageType, records: NDArray[Any], received_ns: IntArray, texts: tuple[str, ...]
) -> MessageArray:
    fields: dict[str, Any] = {name: records[name] for name in kind.attributes}
    if 'twist_covariance' not in fields and 'linear_velocity' in fields:
        fields['twist_covariance'] = np.zeros((len(records), 6, 6))
    if kind.has_child:
        fields['child_frame'] = texts[1]
    stamps = records['sec'].astype(np.int64) * _NS + records['nanosec'].astype(np.int64)
    return kind.array(stamp_ns=stamps, arrival_ns=received_ns, frame=texts[0], **fields)
