# SPDX-License-Identifier: Apache-2.0
"""Serialised ROS 2 messages (CDR) <-> arrays, a whole topic at once.

Most types here are a header, at most one more text and then fields of fixed size, so messages
with equal texts have equal layout: one numpy record type reads them all. Decoding 4500
sensor_msgs/Imu this way takes some 3 ms, against 0.15 s message by message (benchmark in
test_recording_cdr.py). What a camera gives has messages of different lengths: rosbags reads each.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.common.errors import RecordingError
from sim2real_eval.recording.gps_fix import DEFINITIONS, fix_fields
from sim2real_eval.recording.message_types import FEATURES, GPS_FIX, MessageType
from sim2real_eval.recording.recording import StaticTransform
from sim_sensors.camera.features import FIELDS, ROW, FeatureArray, feature_rows, is_dense
from sim_sensors.camera.pinhole import CameraInfoArray
from sim_sensors.core.measurements import IntArray, MessageArray, OdometryArray

if TYPE_CHECKING:
    from rosbags.typesys.store import Typestore

_LITTLE = b'\x00\x01\x00\x00'
_HEADER = 12  # encapsulation (4), sec (4), nanosec (4); the texts follow
_BODY = len(_LITTLE)  # of messages without a header
_NS = 1_000_000_000
_SERVICE, _SERVICE_GPS = '_service', 1


@dataclasses.dataclass(frozen=True)
class Decoded:
    """Messages of one topic with the most frequent frame; `arrival_ns` is the receive time."""

    array: MessageArray
    other_frames: tuple[tuple[str, int], ...]
    """Frames of the messages that were left out, and their number."""


def decode(kind: MessageType, data: Sequence[bytes], received_ns: IntArray, where: str) -> Decoded:
    """Decode all n messages of a topic, with the encapsulation header, received at (n,) int64 ns.

    A message that is not CDR of that type is a RecordingError, with its index and size. So are
    points that are no features, and a lens that changes.
    """
    if not kind.fields:
        return _decode_each(kind, data, received_ns, where)
    if not data:
        nothing = np.zeros(0, _layout(kind, _HEADER, '<'))
        return Decoded(_array(kind, nothing, received_ns, ()), ())
    keys = _keys(kind, data, where)
    counts = Counter(keys)
    texts = max(counts, key=lambda key: (counts[key], -keys.index(key)))
    chosen = [index for index, key in enumerate(keys) if key == texts]
    rows = data if len(chosen) == len(data) else [data[index] for index in chosen]
    order = '<' if rows[0][1] & 1 else '>'
    end = _texts(rows[0], len(texts), order)[1] if texts else _BODY
    layout = _layout(kind, end, order)
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

    A stamp that does not fit into the int32 seconds of a ROS header is a RecordingError.
    """
    seconds, nanoseconds = np.divmod(array.stamp_ns, _NS)
    if kind.has_header and len(array) and (seconds.min() < -(2**31) or seconds.max() >= 2**31):
        raise RecordingError(
            f'{where}: stamp {int(seconds.max())} s does not fit a ROS header; must be < 2^31 s'
        )
    if isinstance(array, (FeatureArray, CameraInfoArray)):
        return _encode_each(kind, array, seconds, nanoseconds)
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


def _keys(kind: MessageType, data: Sequence[bytes], where: str) -> list[tuple[str, ...]]:
    """Texts of every message; parsed anew only where the bytes differ from those seen before."""
    number = kind.has_header + kind.has_child
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


def _array(
    kind: MessageType, records: NDArray[Any], received_ns: IntArray, texts: tuple[str, ...]
) -> MessageArray:
    fields = {name: records[name] for name, *_ in kind.fields if name}
    stamps = received_ns
    if kind.has_header:
        stamps = records['sec'].astype(np.int64) * _NS + records['nanosec'].astype(np.int64)
    frame, child, *_ = *texts, '', ''
    return kind.array_of(stamps, received_ns, frame, child, fields)


# Messages whose layout differs from one to the next, through rosbags.

_ROI = ('x_offset', 'y_offset', 'height', 'width', 'do_rectify')
# Of sensor_msgs/PointField.
_FORMATS = {1: 'i1', 2: 'u1', 3: 'i2', 4: 'u2', 5: 'i4', 6: 'u4', 7: 'f4', 8: 'f8'}


@functools.cache
def typestore() -> Typestore:
    """Return the message types of ROS 2, and those of GPSFix."""
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    store = get_typestore(Stores.ROS2_JAZZY)
    for name, definition in DEFINITIONS.items():
        store.register(get_types_from_msg(definition, name))
    return store


def _decode_each(
    kind: MessageType, data: Sequence[bytes], received_ns: IntArray, where: str
) -> Decoded:
    messages: list[Any] = []
    for index, row in enumerate(data):
        try:
            messages.append(typestore().deserialize_cdr(row, kind.name))
        except Exception as error:
            # Damaged bytes surface as whatever the parser tripped over.
            raise RecordingError(
                f'{where}: message {index} of {len(row)} bytes is not a {kind.name}'
            ) from error
    fields_of = {FEATURES: _feature_fields, GPS_FIX: fix_fields}.get(kind, _camera_info_fields)
    counts = Counter(str(message.header.frame_id) for message in messages)
    frame = max(counts, key=lambda name: counts[name], default='')
    chosen = {k: one for k, one in enumerate(messages) if one.header.frame_id == frame}
    stamps = [one.header.stamp for one in chosen.values()]
    array = kind.array(
        stamp_ns=np.array([stamp.sec * _NS + stamp.nanosec for stamp in stamps], dtype=np.int64),
        arrival_ns=received_ns[list(chosen)],
        frame=frame,
        **fields_of(chosen, where),
    )
    others = ((name, count) for name, count in counts.items() if name != frame)
    return Decoded(array, tuple(others))


def _encode_each(
    kind: MessageType,
    array: FeatureArray | CameraInfoArray,
    seconds: IntArray,
    nanoseconds: IntArray,
) -> list[bytes]:
    types: dict[str, Any] = typestore().types
    time, header = types['builtin_interfaces/msg/Time'], types['std_msgs/msg/Header']
    bodies = _points(array) if isinstance(array, FeatureArray) else _camera_infos(array)
    result = []
    for stamp, body in zip(
        zip(seconds.tolist(), nanoseconds.tolist(), strict=True), bodies, strict=True
    ):
        message = types[kind.name](header=header(stamp=time(*stamp), frame_id=array.frame), **body)
        result.append(bytes(typestore().serialize_cdr(message, kind.name)))
    return result


def _camera_info_fields(messages: Mapping[int, Any], where: str) -> dict[str, Any]:
    kept = list(messages.values())
    lenses = {(str(message.distortion_model), len(message.d)): None for message in kept}
    if len(lenses) > 1:
        shown = ', '.join(f'{model or "none"} ({count})' for model, count in lenses)
        raise RecordingError(
            f'{where}: distortion models (coefficients) {shown}; must be the same in all messages'
        )
    model, coefficients = next(iter(lenses), ('', 0))

    def all_of(values: list[Any], *shape: int) -> Any:
        return np.array(values).reshape(len(kept), *shape)

    return {
        'distortion_model': model,
        'size': all_of([[message.width, message.height] for message in kept], 2),
        'distortion': all_of([message.d for message in kept], coefficients),
        'matrix': all_of([message.k for message in kept], 3, 3),
        'rectification': all_of([message.r for message in kept], 3, 3),
        'projection': all_of([message.p for message in kept], 3, 4),
        'binning': all_of([[message.binning_x, message.binning_y] for message in kept], 2),
        'roi': all_of([[getattr(message.roi, name) for name in _ROI] for message in kept], 5),
    }


def _camera_infos(array: CameraInfoArray) -> Iterator[dict[str, Any]]:
    region = typestore().types['sensor_msgs/msg/RegionOfInterest']
    for k in range(len(array)):
        *window, do_rectify = array.roi[k].tolist()
        width, height = array.size[k].tolist()
        binning_x, binning_y = array.binning[k].tolist()
        yield {
            'height': height,
            'width': width,
            'distortion_model': array.distortion_model,
            'd': array.distortion[k],
            'k': array.matrix[k].ravel(),
            'r': array.rectification[k].ravel(),
            'p': array.projection[k].ravel(),
            'binning_x': binning_x,
            'binning_y': binning_y,
            'roi': region(*window, bool(do_rectify)),
        }


def _feature_fields(messages: Mapping[int, Any], where: str) -> dict[str, Any]:
    parts = [_rows(message, f'{where}: message {k}') for k, message in messages.items()]
    rows = np.concatenate([np.zeros(0, ROW), *parts])
    return {
        'first': np.concatenate([[0], np.cumsum([len(part) for part in parts], dtype=np.int64)]),
        'ids': rows['id'],
        'pixels': np.stack([rows['u'], rows['v']], axis=1),
        'previous': np.stack([rows['previous_u'], rows['previous_v']], axis=1),
        'age': rows['age'],
        'rays': np.stack([rows['ray_x'], rows['ray_y']], axis=1),
    }


def _rows(message: Any, where: str) -> NDArray[np.void]:
    """Return the points of a cloud, with fields of any order and type, as records `ROW`."""
    fields = {field.name: field for field in message.fields}
    names = list(ROW.names or ())
    missing = [name for name in names if name not in fields]
    if missing or any(fields[name].datatype not in _FORMATS for name in names):
        raise RecordingError(
            f'{where}: has no field {", ".join(missing) or "of a known type"}; must be features '
            'as camera_node publishes them'
        )
    order = '>' if message.is_bigendian else '<'
    layout: Any = {
        'names': names,
        'formats': [f'{order}{_FORMATS[fields[name].datatype]}' for name in names],
        'offsets': [fields[name].offset for name in names],
        'itemsize': message.point_step,
    }
    count = message.width * message.height
    try:
        given = np.frombuffer(bytes(message.data), np.dtype(layout), count)
    except (ValueError, OverflowError) as error:
        raise RecordingError(f'{where}: its points do not fit its data: {error}') from None
    result = np.zeros(count, ROW)
    for name in names:
        result[name] = given[name]
    return result


def _points(array: FeatureArray) -> Iterator[dict[str, Any]]:
    point_field = typestore().types['sensor_msgs/msg/PointField']
    fields = [point_field(name=n, offset=o, datatype=kind, count=1) for n, o, kind in FIELDS]
    rows = feature_rows(array)
    for k in range(len(array)):
        here = rows[array.rows(k)]
        yield {
            'height': 1,
            'width': len(here),
            'fields': fields,
            'is_bigendian': False,
            'point_step': ROW.itemsize,
            'row_step': ROW.itemsize * len(here),
            'data': np.frombuffer(here.tobytes(), np.uint8),
            'is_dense': is_dense(here),
        }
