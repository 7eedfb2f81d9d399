# SPDX-License-Identifier: Apache-2.0
"""Messages of types whose layout differs from one to the next; rosbags reads each.

They are what a camera gives, and gps_msgs/GPSFix, which drivers publish beside NavSatFix or in its
place: rosbags does not know the type, and not every bag holds its definition.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.common.errors import RecordingError
from sim_sensors.camera.features import FIELDS, ROW, FeatureArray, feature_rows, is_dense
from sim_sensors.camera.pinhole import CameraInfoArray
from sim_sensors.core.measurements import IntArray, MessageArray
from .message_types import FEATURES, GPS_FIX, MessageType

if TYPE_CHECKING:
    from rosbags.typesys.store import Typestore

_NS = 1_000_000_000

_SATELLITES = (
    'uint16 satellites_used', 'int32[] satellite_used_prn', 'uint16 satellites_visible',
    'int32[] satellite_visible_prn', 'int32[] satellite_visible_z',
    'int32[] satellite_visible_azimuth', 'int32[] satellite_visible_snr', 'int16 status',
    'uint16 motion_source', 'uint16 orientation_source', 'uint16 position_source',
)  # fmt: skip
_NUMBERS = (
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
            *(f'float64 {name}' for name in _NUMBERS),
            'float64[9] position_covariance',
            'uint8 position_covariance_type',
        )
    ),
}
"""Message definitions by type, as rosbags takes them."""

# Of GPSFix to NavSatFix: no fix, satellite-based (WAAS) and ground-based (DGPS, RTK) augmentation.
_STATUS = {-1: -1, 1: 1, 33: 1, 2: 2, 18: 2, 19: 2, 20: 2}


def _fix_fields(messages: Mapping[int, Any], where: str) -> dict[str, Any]:
    """Return the fields of a `FixArray` from GPSFix messages; a status it has not is a fix."""
    kept = list(messages.values())
    names = ('latitude', 'longitude', 'altitude', 'position_covariance_type')
    values: dict[str, Any] = {
        name: np.array([getattr(one, name) for one in kept]) for name in names
    }
    covariances = np.array([one.position_covariance for one in kept])
    values['position_covariance'] = covariances.reshape(len(kept), 3, 3)
    values['status'] = np.array([_STATUS.get(one.status.status, 0) for one in kept])
    return values


_ROI = ('x_offset', 'y_offset', 'height', 'width', 'do_rectify')
# Of sensor_msgs/PointField.
_FORMATS = {1: 'i1', 2: 'u1', 3: 'i2', 4: 'u2', 5: 'i4', 6: 'u4', 7: 'f4', 8: 'f8'}


@functools.cache
def typestore() -> Typestore:
    """Return the message types of ROS 2, and those of GPSFix."""
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    store = get_typestore(Stores.ROS2_JAZZY)
    for name, definition in _DEFINITIONS.items():
        store.register(get_types_from_msg(definition, name))
    return store


@dataclasses.dataclass(frozen=True)
class Decoded:
    """Messages of one topic with the most frequent frame; `arrival_ns` is the receive time."""

    array: MessageArray
    other_frames: tuple[tuple[str, int], ...]
    """Frames of the messages that were left out, and their number."""


def decode_each(
    kind: MessageType, data: Sequence[bytes], received_ns: IntArray, where: str
) -> Decoded:
    """Decode all messages of a topic; see `cdr.Decoder`."""
    messages: list[Any] = []
    for index, row in enumerate(data):
        try:
            messages.append(typestore().deserialize_cdr(row, kind.name))
        except Exception as error:
            # Damaged bytes surface as whatever the parser tripped over.
            raise RecordingError(
                f'{where}: message {index} of {len(row)} bytes is not a {kind.name}'
            ) from error
    fields_of = {FEATURES: _feature_fields, GPS_FIX: _fix_fields}.get(kind, _camera_info_fields)
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


def encode_each(
    kind: MessageType,
    array: FeatureArray | CameraInfoArray,
    seconds: IntArray,
    nanoseconds: IntArray,
) -> list[bytes]:
    """Serialise all messages of an array, with their stamps in two parts; see `cdr.encode`."""
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
