# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Conversion between serialised ROS 2 messages (CDR) and message arrays.

Most types here are a header, at most one more text and then fields of fixed size. Messages with
equal texts have equal layout, so one NumPy record type reads all of them: 4500 sensor_msgs/Imu
take 3 ms, against 0.15 s message by message. rosbags reads the types of variable layout: those of
a camera, and gps_msgs/GPSFix.
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

from sim2real_eval.common.findings import RecordingError
from sim_sensors.camera.features import FIELDS, ROW, FeatureArray, feature_rows, is_dense
from sim_sensors.camera.pinhole import CameraInfoArray
from sim_sensors.core.measurements import IntArray, MessageArray, MessageParts, OdometryArray
from .message_types import FEATURES, GPS_FIX, MessageType
from .recording import StaticTransform

if TYPE_CHECKING:
    from rosbags.typesys.store import Typestore

_LITTLE_ENDIAN = b'\x00\x01\x00\x00'
_HEADER = 12
"""Byte after encapsulation (4), sec (4) and nanosec (4), where the texts begin."""
_BODY = len(_LITTLE_ENDIAN)
"""Byte at which a message without header begins."""
_NS = 1_000_000_000
_SERVICE, _SERVICE_GPS = '_service', 1
_NOT_CDR = struct.error, IndexError, UnicodeDecodeError


@dataclasses.dataclass(frozen=True)
class DecodedTopic:
    """Messages of one topic with the most frequent frame; `arrival_ns` is the receive time."""

    array: MessageArray
    other_frames: tuple[tuple[str, int], ...]
    """Frames of the messages that were left out, and their number."""
    overflow_count: int = 0
    """Number of stamps whose nanoseconds are not below 1e9."""
    overflow_value: int = 0
    """First of these nanoseconds."""


def decode(
    kind: MessageType, data: Sequence[bytes], received_ns: IntArray, where: str
) -> DecodedTopic:
    """Decode the messages of a topic, received at (n,) int64 ns; see `TopicDecoder`."""
    decoder = TopicDecoder(kind, where)
    decoder.add(data, received_ns)
    return decoder.decode()


class TopicDecoder:
    """Decoder of one topic that keeps arrays in place of the serialised messages.

    Parameters
    ----------
    kind : MessageType
        Type of the messages.
    where : str
        File and topic, for error messages.

    Raises
    ------
    RecordingError
        When a message is not CDR of the type, a point cloud does not hold features, or the lens
        of a camera changes.
    """

    def __init__(self, kind: MessageType, where: str) -> None:
        self._kind, self._where = kind, where
        self._count = 0
        self._groups: dict[tuple[str, ...], _EqualLayout] = {}
        self._serialised: list[bytes] = []
        self._received_ns = [np.zeros(0, np.int64)]

    def add(self, data: Sequence[bytes], received_ns: IntArray) -> None:
        """Decode the next n messages, received at (n,) int64 ns."""
        if not self._kind.fields:
            self._serialised += data
            self._received_ns.append(received_ns)
            return
        first, self._count = self._count, self._count + len(data)
        indices_by_texts: dict[tuple[str, ...], list[int]] = {}
        for index, texts in enumerate(self._texts_of_messages(data, first)):
            indices_by_texts.setdefault(texts, []).append(index)
        for texts, indices in indices_by_texts.items():
            group = self._groups.setdefault(texts, _EqualLayout(self._kind, texts))
            rows = data if len(indices) == len(data) else [data[index] for index in indices]
            bad_row = group.add(rows, received_ns[indices])
            if bad_row is not None and not group.problem:
                group.problem = (
                    f'{self._where}: message {first + indices[bad_row]} has {len(rows[bad_row])} '
                    f'bytes, {self._kind.name} must have {group.layout.itemsize}'
                )

    def decode(self) -> DecodedTopic:
        """Return all messages with the most frequent frame; of equal counts the first frame."""
        if not self._kind.fields:
            received_ns = np.concatenate(self._received_ns)
            return _decode_each(self._kind, self._serialised, received_ns, self._where)
        no_texts = ('',) * (self._kind.has_header + self._kind.has_child)
        empty = _EqualLayout(self._kind, no_texts)
        largest = max(self._groups.values(), key=lambda group: group.count, default=empty)
        if largest.problem:
            raise RecordingError(largest.problem)
        frame_counts = tuple(
            (' / '.join(group.texts), group.count)
            for group in self._groups.values()
            if group is not largest
        )
        array = largest.parts.concatenate()
        return DecodedTopic(array, frame_counts, largest.overflow_count, largest.overflow_value)

    def _texts_of_messages(self, data: Sequence[bytes], first: int) -> Iterator[tuple[str, ...]]:
        """Yield the texts of every message, parsed only where the bytes differ from the last."""
        count = self._kind.has_header + self._kind.has_child
        section, end = b'', 0
        texts: tuple[str, ...] = ()
        for index, row in enumerate(data, first):
            if not section or row[_HEADER:end] != section:
                try:
                    texts, end = _read_texts(row, count, _byte_order(row))
                except _NOT_CDR:
                    raise RecordingError(
                        f'{self._where}: message {index} of {len(row)} bytes is not a '
                        f'{self._kind.name}'
                    ) from None
                section = row[_HEADER:end]
            yield texts


class _EqualLayout:
    """Messages of a topic with equal texts, and so with equal layout."""

    def __init__(self, kind: MessageType, texts: tuple[str, ...]) -> None:
        self._kind, self.texts = kind, texts
        self.count, self.problem = 0, ''
        self.overflow_count = self.overflow_value = 0
        self._order, self.layout = 1, _layout(kind, _HEADER, '<')
        self.parts = MessageParts[MessageArray]()
        self._add_records(np.zeros(0, self.layout), np.zeros(0, np.int64))

    def add(self, rows: Sequence[bytes], received_ns: IntArray) -> int | None:
        """Decode messages; return the index of one with another size or byte order, if any."""
        if not self.count:
            self._order = rows[0][1]
            order = _byte_order(rows[0])
            end = _read_texts(rows[0], len(self.texts), order)[1] if self.texts else _BODY
            self.layout = _layout(self._kind, end, order)
        self.count += len(rows)
        size = self.layout.itemsize
        if {*map(len, rows)} != {size} or {row[1] for row in rows} != {self._order}:
            for index, row in enumerate(rows):
                # A serialiser may pad the end to the alignment of the transport, never by 8 bytes.
                if not size <= len(row) < size + 8 or row[1] != self._order:
                    return index
            rows = [row[:size] for row in rows]
        self._add_records(np.frombuffer(b''.join(rows), self.layout), received_ns)
        return None

    def _add_records(self, records: NDArray[Any], received_ns: IntArray) -> None:
        fields = {field.attribute: records[field.attribute] for field in self._kind.kept_fields}
        stamps = received_ns
        if self._kind.has_header:
            nanoseconds = records['nanosec'].astype(np.int64)
            stamps = _to_stamps(records['sec'].astype(np.int64), nanoseconds)
            overflow = nanoseconds[nanoseconds >= _NS]
            if len(overflow):
                self.overflow_value = self.overflow_value or int(overflow[0])
                self.overflow_count += len(overflow)
        frame, child, *_ = *self.texts, '', ''
        self.parts.add(self._kind.make_array(stamps, received_ns, frame, child, fields))


def _to_stamps(seconds: IntArray, nanoseconds: IntArray) -> IntArray:
    """Return stamps, ns; drivers write negative nanoseconds into the unsigned 32 bits."""
    return seconds * _NS + np.where(nanoseconds >= 1 << 31, nanoseconds - (1 << 32), nanoseconds)


def encode(kind: MessageType, array: MessageArray, where: str) -> list[bytes]:
    """Serialise all messages of an array as little-endian CDR.

    A stamp that does not fit into the int32 seconds of a ROS header raises RecordingError.
    """
    seconds, nanoseconds = np.divmod(array.stamp_ns, _NS)
    if kind.has_header and len(array) and not -(2**31) <= seconds.min() <= seconds.max() < 2**31:
        raise RecordingError(
            f'{where}: stamp {seconds.max()} s does not fit a ROS header; must be < 2^31 s'
        )
    if isinstance(array, (FeatureArray, CameraInfoArray)):
        return _encode_each(kind, array, seconds, nanoseconds)
    prefix = bytearray(_LITTLE_ENDIAN)
    if kind.has_header:
        prefix += bytes(_HEADER - _BODY)
        _append_text(prefix, array.frame)
    if isinstance(array, OdometryArray):
        _append_text(prefix, array.child_frame)
    layout = _layout(kind, len(prefix), '<')
    message_bytes = np.zeros((len(array), layout.itemsize), np.uint8)
    message_bytes[:, : len(prefix)] = np.frombuffer(bytes(prefix), np.uint8)
    records = message_bytes.view(layout)[:, 0]
    if kind.has_header:
        records['sec'], records['nanosec'] = seconds, nanoseconds
    for name, *_ in kind.fields:
        records[name or _SERVICE] = getattr(array, name) if name else _SERVICE_GPS
    return [row.tobytes() for row in message_bytes]


def decode_transforms(data: bytes, where: str) -> list[tuple[int, StaticTransform]]:
    """Decode one tf2_msgs/TFMessage to pairs of stamp (ns) and transform.

    rosbags would compile its decoder in every process (0.3 s). Other bytes raise RecordingError.
    """
    stamped = []
    try:
        order = _byte_order(data)
        (count,) = struct.unpack_from(f'{order}I', data, 4)
        offset = 8
        for _ in range(count):
            offset = _align(offset, 4)
            sec, nanosec = struct.unpack_from(f'{order}iI', data, offset)
            (parent, child), offset = _read_texts(data, 2, order, offset + 8)
            offset = _align(offset, 8)
            x, y, z, qx, qy, qz, qw = struct.unpack_from(f'{order}7d', data, offset)
            offset += 56
            transform = StaticTransform(parent, child, (x, y, z), (qx, qy, qz, qw))
            stamped.append((sec * _NS + nanosec, transform))
    except _NOT_CDR:
        raise RecordingError(f'{where}: message of {len(data)} bytes is not a TFMessage') from None
    return stamped


def encode_transforms(transforms: Sequence[StaticTransform], stamp_ns: int) -> bytes:
    """Serialise static transforms as one tf2_msgs/TFMessage."""
    message = bytearray(_LITTLE_ENDIAN) + struct.pack('<I', len(transforms))
    for transform in transforms:
        message += b'\x00' * (-len(message) % 4) + struct.pack('<iI', *divmod(stamp_ns, _NS))
        _append_text(message, transform.parent)
        _append_text(message, transform.child)
        message += b'\x00' * (_align(len(message), 8) - len(message))
        message += struct.pack('<7d', *transform.translation, *transform.rotation)
    return bytes(message)


def _byte_order(data: bytes) -> str:
    """Return the byte order of a message as the `struct` module names it."""
    return '<' if data[1] & 1 else '>'


def _append_text(message: bytearray, text: str) -> None:
    encoded = text.encode() + b'\x00'
    message += b'\x00' * (-len(message) % 4) + struct.pack('<I', len(encoded)) + encoded


def _align(offset: int, size: int) -> int:
    """Return the next offset aligned to `size`; CDR counts from after the first 4 bytes."""
    return offset + (4 - offset) % size


def _read_texts(
    data: bytes, count: int, order: str, offset: int = _HEADER
) -> tuple[tuple[str, ...], int]:
    """Return `count` texts from an offset on, and the offset at which they end."""
    texts = []
    for _ in range(count):
        offset = _align(offset, 4)
        (length,) = struct.unpack_from(f'{order}I', data, offset)
        encoded = data[offset + 4 : offset + 4 + length]
        if len(encoded) != length:
            raise IndexError
        texts.append(encoded.rstrip(b'\x00').decode())
        offset += 4 + length
    return tuple(texts), offset


def _layout(kind: MessageType, start: int, order: str) -> np.dtype[Any]:
    """Return the record type of whole messages whose texts end at byte `start`."""
    names, offsets, formats = list[str](), list[int](), list[Any]()
    if kind.has_header:
        names, offsets, formats = ['sec', 'nanosec'], [4, 8], [f'{order}i4', f'{order}u4']
    offset = start
    for name, _, shape, code in kind.fields:
        number = np.dtype(f'{order}{code}')
        offset = _align(offset, number.itemsize)
        names.append(name or _SERVICE)
        formats.append((number, shape))
        offsets.append(offset)
        offset += number.itemsize * math.prod(shape)
    return np.dtype({'names': names, 'formats': formats, 'offsets': offsets, 'itemsize': offset})


# Types of variable layout, which rosbags reads message by message. rosbags does not know
# gps_msgs/GPSFix, which drivers publish beside NavSatFix or in its place.

_SATELLITES = (
    'uint16 satellites_used', 'int32[] satellite_used_prn', 'uint16 satellites_visible',
    'int32[] satellite_visible_prn', 'int32[] satellite_visible_z',
    'int32[] satellite_visible_azimuth', 'int32[] satellite_visible_snr', 'int16 status',
    'uint16 motion_source', 'uint16 orientation_source', 'uint16 position_source',
)  # fmt: skip
_GPS_NUMBERS = (
    'latitude', 'longitude', 'altitude', 'track', 'speed', 'climb', 'pitch', 'roll', 'dip', 'time',
    'gdop', 'pdop', 'hdop', 'vdop', 'tdop', 'err', 'err_horz', 'err_vert', 'err_track',
    'err_speed', 'err_climb', 'err_time', 'err_pitch', 'err_roll', 'err_dip',
)  # fmt: skip
_DEFINITIONS = {
    'gps_msgs/msg/GPSStatus': '\n'.join(('std_msgs/Header header', *_SATELLITES)),
    'gps_msgs/msg/GPSFix': '\n'.join(
        (
            'std_msgs/Header header',
            'gps_msgs/GPSStatus status',
            *(f'float64 {name}' for name in _GPS_NUMBERS),
            'float64[9] position_covariance',
            'uint8 position_covariance_type',
        )
    ),
}
"""Message definitions by type, in the text form that rosbags parses."""

_NAVSAT_STATUS = {-1: -1, 1: 1, 33: 1, 2: 2, 18: 2, 19: 2, 20: 2}
"""Status of GPSFix to that of NavSatFix: no fix, WAAS, and ground-based augmentation."""
_POINT_FORMATS = {1: 'i1', 2: 'u1', 3: 'i2', 4: 'u2', 5: 'i4', 6: 'u4', 7: 'f4', 8: 'f8'}
"""NumPy type by `datatype` of sensor_msgs/PointField."""
_ROI = ('x_offset', 'y_offset', 'height', 'width', 'do_rectify')


@functools.cache
def typestore() -> Typestore:
    """Return the message types of ROS 2 Jazzy, and gps_msgs/GPSFix."""
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    store = get_typestore(Stores.ROS2_JAZZY)
    for name, definition in _DEFINITIONS.items():
        store.register(get_types_from_msg(definition, name))
    return store


def _decode_each(
    kind: MessageType, data: Sequence[bytes], received_ns: IntArray, where: str
) -> DecodedTopic:
    messages: list[Any] = []
    for index, row in enumerate(data):
        try:
            messages.append(typestore().deserialize_cdr(row, kind.name))
        except Exception as error:
            # Damaged bytes make the parser raise exceptions of many types.
            raise RecordingError(
                f'{where}: message {index} of {len(row)} bytes is not a {kind.name}'
            ) from error
    read_fields = {FEATURES: _feature_fields, GPS_FIX: _fix_fields}.get(kind, _camera_info_fields)
    counts = Counter(str(message.header.frame_id) for message in messages)
    frame = max(counts, key=lambda name: counts[name], default='')
    selected = {k: msg for k, msg in enumerate(messages) if msg.header.frame_id == frame}
    stamps = [message.header.stamp for message in selected.values()]
    seconds, nanoseconds = (
        np.array([getattr(stamp, part) for stamp in stamps], np.int64)
        for part in ('sec', 'nanosec')
    )
    array = kind.array(
        stamp_ns=_to_stamps(seconds, nanoseconds),
        arrival_ns=received_ns[list(selected)],
        frame=frame,
        **read_fields(selected, where),
    )
    frame_counts = ((name, count) for name, count in counts.items() if name != frame)
    overflow = nanoseconds[nanoseconds >= _NS]
    return DecodedTopic(
        array, tuple(frame_counts), len(overflow), int(np.max(overflow, initial=0))
    )


def _encode_each(
    kind: MessageType,
    array: FeatureArray | CameraInfoArray,
    seconds: IntArray,
    nanoseconds: IntArray,
) -> list[bytes]:
    types: dict[str, Any] = typestore().types
    time, header = types['builtin_interfaces/msg/Time'], types['std_msgs/msg/Header']
    bodies = (
        _feature_bodies(array) if isinstance(array, FeatureArray) else _camera_info_bodies(array)
    )
    encoded = []
    for sec, nanosec, body in zip(seconds.tolist(), nanoseconds.tolist(), bodies, strict=True):
        stamped = header(stamp=time(sec, nanosec), frame_id=array.frame)
        message = types[kind.name](header=stamped, **body)
        encoded.append(bytes(typestore().serialize_cdr(message, kind.name)))
    return encoded


def _fix_fields(messages: Mapping[int, Any], where: str) -> dict[str, Any]:
    """Return the fields of a `FixArray` from GPSFix messages; other statuses count as a fix."""
    fixes = list(messages.values())
    names = ('latitude', 'longitude', 'altitude', 'position_covariance_type')
    fields: dict[str, Any] = {
        name: np.array([getattr(fix, name) for fix in fixes]) for name in names
    }
    covariances = np.array([fix.position_covariance for fix in fixes])
    fields['position_covariance'] = covariances.reshape(len(fixes), 3, 3)
    fields['status'] = np.array([_NAVSAT_STATUS.get(fix.status.status, 0) for fix in fixes])
    return fields


def _camera_info_fields(messages: Mapping[int, Any], where: str) -> dict[str, Any]:
    infos = list(messages.values())
    lenses = {(str(info.distortion_model), len(info.d)): None for info in infos}
    if len(lenses) > 1:
        listed = ', '.join(f'{model or "none"} ({count})' for model, count in lenses)
        raise RecordingError(
            f'{where}: distortion models (coefficients) {listed}; must be the same in all messages'
        )
    model, coefficients = next(iter(lenses), ('', 0))

    def stack(values: list[Any], *shape: int) -> Any:
        return np.array(values).reshape(len(infos), *shape)

    return {
        'distortion_model': model,
        'size': stack([[info.width, info.height] for info in infos], 2),
        'distortion': stack([info.d for info in infos], coefficients),
        'matrix': stack([info.k for info in infos], 3, 3),
        'rectification': stack([info.r for info in infos], 3, 3),
        'projection': stack([info.p for info in infos], 3, 4),
        'binning': stack([[info.binning_x, info.binning_y] for info in infos], 2),
        'roi': stack([[getattr(info.roi, name) for name in _ROI] for info in infos], 5),
    }


def _camera_info_bodies(array: CameraInfoArray) -> Iterator[dict[str, Any]]:
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
    clouds = [_read_points(cloud, f'{where}: message {k}') for k, cloud in messages.items()]
    points = np.concatenate([np.zeros(0, ROW), *clouds])
    counts = np.cumsum([len(cloud) for cloud in clouds], dtype=np.int64)
    return {
        'first': np.concatenate([[0], counts]),
        'ids': points['id'],
        'pixels': np.stack([points['u'], points['v']], axis=1),
        'previous': np.stack([points['previous_u'], points['previous_v']], axis=1),
        'age': points['age'],
        'rays': np.stack([points['ray_x'], points['ray_y']], axis=1),
    }


def _read_points(cloud: Any, where: str) -> NDArray[np.void]:
    """Return the points of a cloud, with fields of any order and type, as records `ROW`."""
    fields = {field.name: field for field in cloud.fields}
    names = list(ROW.names or ())
    missing = [name for name in names if name not in fields]
    if missing or any(fields[name].datatype not in _POINT_FORMATS for name in names):
        raise RecordingError(
            f'{where}: has no field {", ".join(missing) or "of a known type"}; must be features '
            'as camera_node publishes them'
        )
    order = '>' if cloud.is_bigendian else '<'
    layout: Any = {
        'names': names,
        'formats': [f'{order}{_POINT_FORMATS[fields[name].datatype]}' for name in names],
        'offsets': [fields[name].offset for name in names],
        'itemsize': cloud.point_step,
    }
    count = cloud.width * cloud.height
    try:
        stored = np.frombuffer(bytes(cloud.data), np.dtype(layout), count)
    except (ValueError, OverflowError) as error:
        raise RecordingError(f'{where}: its points do not fit its data: {error}') from None
    points = np.zeros(count, ROW)
    for name in names:
        points[name] = stored[name]
    return points


def _feature_bodies(array: FeatureArray) -> Iterator[dict[str, Any]]:
    point_field = typestore().types['sensor_msgs/msg/PointField']
    fields = [point_field(name=n, offset=o, datatype=kind, count=1) for n, o, kind in FIELDS]
    rows = feature_rows(array)
    for k in range(len(array)):
        points = rows[array.rows(k)]
        yield {
            'height': 1,
            'width': len(points),
            'fields': fields,
            'is_bigendian': False,
            'point_step': ROW.itemsize,
            'row_step': ROW.itemsize * len(points),
            'data': np.frombuffer(points.tobytes(), np.uint8),
            'is_dense': is_dense(points),
        }
