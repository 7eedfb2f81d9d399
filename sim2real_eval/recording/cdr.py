# SPDX-License-Identifier: Apache-2.0
"""Serialised ROS 2 messages (CDR) <-> arrays, many at once.

Most types here are a header, at most one more text and then fields of fixed size, so messages
with equal texts have equal layout: one numpy record type reads them all. Decoding 4500
sensor_msgs/Imu this way takes some 3 ms, against 0.15 s message by message (benchmark in
test_recording_cdr.py). Messages of different lengths are those of `single_messages`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.common.errors import RecordingError
from sim_sensors.camera.features import FeatureArray
from sim_sensors.camera.pinhole import CameraInfoArray
from sim_sensors.core.measurements import Columns, IntArray, MessageArray, OdometryArray
from .message_types import MessageType
from .recording import StaticTransform
from .single_messages import Decoded, decode_each, encode_each

_LITTLE = b'\x00\x01\x00\x00'
_HEADER = 12  # encapsulation (4), sec (4), nanosec (4); the texts follow
_BODY = len(_LITTLE)  # of messages without a header
_NS = 1_000_000_000
_SERVICE, _SERVICE_GPS = '_service', 1


def decode(kind: MessageType, data: Sequence[bytes], received_ns: IntArray, where: str) -> Decoded:
    """Decode n messages of a topic at once, received at (n,) int64 ns; see `Decoder`."""
    decoder = Decoder(kind, where)
    decoder.add(data, received_ns)
    return decoder.decoded()


class Decoder:
    """Decodes the messages of a topic as they come, and keeps columns in place of their bytes.

    A message that is not CDR of the type, with the encapsulation header, is a RecordingError, with
    its index and size. So are points that are no features, and a lens that changes.

    Parameters
    ----------
    kind : MessageType
        Of the topic.
    where : str
        With what the text of an error begins.
    """

    def __init__(self, kind: MessageType, where: str) -> None:
        self._kind, self._where = kind, where
        self._count = 0
        self._by_texts: dict[tuple[str, ...], _SameLayout] = {}
        self._others: list[tuple[Sequence[bytes], IntArray]] = []

    def add(self, data: Sequence[bytes], received_ns: IntArray) -> None:
        """Take the next n messages, received at (n,) int64 ns."""
        if not self._kind.fields:
            self._others.append((data, received_ns))
            return
        first, self._count = self._count, self._count + len(data)
        chosen: dict[tuple[str, ...], Sequence[int]] = {}
        if (shared := _shared(self._kind, data)) is not None:
            chosen[shared] = range(len(data))
        else:
            found: dict[tuple[str, ...], list[int]] = {}
            for index, texts in enumerate(_keys(self._kind, data, self._where, first)):
                found.setdefault(texts, []).append(index)
            chosen |= found
        for texts, indices in chosen.items():
            group = self._by_texts.setdefault(texts, _SameLayout(self._kind, texts))
            rows = data if len(indices) == len(data) else [data[index] for index in indices]
            wrong = group.add(rows, received_ns[indices])
            if wrong is not None and not group.problem:
                group.problem = (
                    f'{self._where}: message {first + indices[wrong]} has {len(rows[wrong])} '
                    f'bytes, {self._kind.name} must have {group.layout.itemsize}'
                )

    def decoded(self) -> Decoded:
        """Return all messages with the most frequent frame."""
        if not self._kind.fields:
            data = [row for rows, _ in self._others for row in rows]
            times = [np.zeros(0, np.int64), *(received for _, received in self._others)]
            return decode_each(self._kind, data, np.concatenate(times), self._where)
        nothing = _SameLayout(self._kind, ('',) * (self._kind.has_header + self._kind.has_child))
        # Of equally frequent ones, that which came first.
        most = max(self._by_texts.values(), key=lambda one: one.count, default=nothing)
        if most.problem:
            raise RecordingError(most.problem)
        others = [
            (' / '.join(one.texts), one.count)
            for one in self._by_texts.values()
            if one is not most
        ]
        return Decoded(most.columns.joined(), tuple(others))


class _SameLayout:
    """Messages of a topic with the same texts: of one layout, so that numpy reads many at once."""

    def __init__(self, kind: MessageType, texts: tuple[str, ...]) -> None:
        self._kind, self.texts = kind, texts
        self.count, self.problem = 0, ''
        self._order, self.layout = 1, _layout(kind, _HEADER, '<')
        self.columns = Columns[MessageArray]()
        self._add(np.zeros(0, self.layout), np.zeros(0, np.int64))

    def add(self, rows: Sequence[bytes], received_ns: IntArray) -> int | None:
        """Take messages, unless one is of another size or byte order: its index is returned."""
        if not self.count:
            self._order = rows[0][1]
            order = '<' if self._order & 1 else '>'
            end = _texts(rows[0], len(self.texts), order)[1] if self.texts else _BODY
            self.layout = _layout(self._kind, end, order)
        self.count += len(rows)
        size = self.layout.itemsize
        if {*map(len, rows)} != {size} or {row[1] for row in rows} != {self._order}:
            for index, row in enumerate(rows):
                # A serialiser may pad the end to the alignment of the transport, never by 8 bytes.
                if not size <= len(row) < size + 8 or row[1] != self._order:
                    return index
            rows = [row[:size] for row in rows]
        self._add(np.frombuffer(b''.join(rows), self.layout), received_ns)
        return None

    def _add(self, records: NDArray[Any], received_ns: IntArray) -> None:
        fields = {name: records[name] for name, *_ in self._kind.fields if name}
        stamps = received_ns
        if self._kind.has_header:
            stamps = records['sec'].astype(np.int64) * _NS + records['nanosec'].astype(np.int64)
        frame, child, *_ = *self.texts, '', ''
        self.columns.add(self._kind.array_of(stamps, received_ns, frame, child, fields))


def encode(kind: MessageType, array: MessageArray, where: str) -> list[bytes]:
    """Serialise all messages of an array as little-endian CDR.

    A stamp that does not fit into the int32 seconds of a ROS header is a RecordingError.
    """
    _check_stamps(kind, array, where)
    seconds, nanoseconds = np.divmod(array.stamp_ns, _NS)
    if isinstance(array, (FeatureArray, CameraInfoArray)):
        return encode_each(kind, array, seconds, nanoseconds)
    prefix = bytearray(_LITTLE)
    if kind.has_header:
        prefix += bytes(_HEADER - _BODY)
        _add_text(prefix, array.frame)
    if isinstance(array, OdometryArray):
        _add_text(prefix, array.child_frame)
    layout = _layout(kind, len(prefix), '<')
    bytes_of = np.zeros((len(array), layout.itemsize), np.uint8)
    bytes_of[:, : len(prefix)] = np.frombuffer(bytes(prefix), np.uint8)
    records = bytes_of.view(layout)[:, 0]
    if kind.has_header:
        records['sec'], records['nanosec'] = seconds, nanoseconds
    for name, *_ in kind.fields:
        records[name or _SERVICE] = getattr(array, name) if name else _SERVICE_GPS
    return [row.tobytes() for row in bytes_of]


class Encoded:
    """The messages of an array, serialised when a slice of them is taken; see `encode`."""

    def __init__(self, kind: MessageType, array: MessageArray, where: str) -> None:
        _check_stamps(kind, array, where)
        self._kind, self._array, self._where = kind, array, where

    def __getitem__(self, part: slice) -> list[bytes]:
        return encode(self._kind, self._array.take(part), self._where)


def _check_stamps(kind: MessageType, array: MessageArray, where: str) -> None:
    if kind.has_header and len(array):
        first, last = (int(stamp) // _NS for stamp in (array.stamp_ns.min(), array.stamp_ns.max()))
        if first < -(2**31) or last >= 2**31:
            raise RecordingError(
                f'{where}: stamp {last} s does not fit a ROS header; must be < 2^31 s'
            )


def decode_transforms(data: bytes, where: str) -> list[tuple[int, StaticTransform]]:
    """Decode one tf2_msgs/TFMessage: stamps, ns, and transforms.

    What is no such message is a RecordingError.
    """
    try:
        order = '<' if data[1] & 1 else '>'
        (count,) = struct.unpack_from(f'{order}I', data, 4)
        offset, result = 8, []
        for _ in range(count):
            offset = _aligned(offset, 4)
            sec, nanosec = struct.unpack_from(f'{order}iI', data, offset)
            texts, offset = _texts(data, 2, order, offset + 8)
            offset = _aligned(offset, 8)
            x, y, z, qx, qy, qz, qw = struct.unpack_from(f'{order}7d', data, offset)
            offset += 56
            transform = StaticTransform(texts[0], texts[1], (x, y, z), (qx, qy, qz, qw))
            result.append((sec * _NS + nanosec, transform))
    except (struct.error, IndexError, UnicodeDecodeError):
        raise RecordingError(f'{where}: message of {len(data)} bytes is not a TFMessage') from None
    return result


def encode_transforms(transforms: Sequence[StaticTransform], stamp_ns: int) -> bytes:
    """Serialise static transforms as one tf2_msgs/TFMessage."""
    out = bytearray(_LITTLE) + struct.pack('<I', len(transforms))
    for transform in transforms:
        out += b'\x00' * (-len(out) % 4) + struct.pack('<iI', *divmod(stamp_ns, _NS))
        _add_text(out, transform.parent)
        _add_text(out, transform.child)
        out += b'\x00' * (_aligned(len(out), 8) - len(out))
        out += struct.pack('<7d', *transform.translation, *transform.rotation)
    return bytes(out)


def _add_text(out: bytearray, text: str) -> None:
    raw = text.encode() + b'\x00'
    out += b'\x00' * (-len(out) % 4) + struct.pack('<I', len(raw)) + raw


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


def _shared(kind: MessageType, data: Sequence[bytes]) -> tuple[str, ...] | None:
    """Return the texts of all messages where they are the same bytes, which is usual."""
    try:
        first = data[0]
        order = '<' if first[1] & 1 else '>'
        texts, end = _texts(first, kind.has_header + kind.has_child, order)
    except (struct.error, IndexError, UnicodeDecodeError):
        return None
    return texts if len({row[_HEADER:end] for row in data}) == 1 else None


def _keys(
    kind: MessageType, data: Sequence[bytes], where: str, first: int
) -> Iterator[tuple[str, ...]]:
    """Yield the texts of every message; the index of the first one is for errors.

    They are parsed anew only where the bytes differ from those before.
    """
    number = kind.has_header + kind.has_child
    section, end = b'', 0
    key: tuple[str, ...] = ()
    for index, row in enumerate(data):
        if not section or row[_HEADER:end] != section:
            try:
                key, end = _texts(row, number, '<' if row[1] & 1 else '>')
            except (struct.error, IndexError, UnicodeDecodeError):
                raise RecordingError(
                    f'{where}: message {first + index} of {len(row)} bytes is not a {kind.name}'
                ) from None
            section = row[_HEADER:end]
        yield key


def _layout(kind: MessageType, start: int, order: str) -> np.dtype[Any]:
    """Record type of whole messages whose texts end at byte `start`."""
    names, offsets, specs = list[str](), list[int](), list[Any]()
    if kind.has_header:
        names, offsets, specs = ['sec', 'nanosec'], [4, 8], [f'{order}i4', f'{order}u4']
    offset = start
    for name, _, shape, code in kind.fields:
        item = np.dtype(f'{order}{code}')
        offset = _aligned(offset, item.itemsize)
        names.append(name or _SERVICE)
        specs.append((item, shape))
        offsets.append(offset)
        offset += item.itemsize * math.prod(shape)
    return np.dtype({'names': names, 'formats': specs, 'offsets': offsets, 'itemsize': offset})
