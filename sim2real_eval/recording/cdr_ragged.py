# SPDX-License-Identifier: Apache-2.0
"""Serialised messages whose layout differs from one to the next, through rosbags."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.common.errors import RecordingError
from sim_sensors.camera.features import FIELDS, ROW, FeatureArray, feature_rows, is_dense
from sim_sensors.camera.pinhole import CameraInfoArray
from sim_sensors.core.measurements import IntArray, MessageArray

if TYPE_CHECKING:
    from rosbags.typesys.store import Typestore


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


# The numbers of a camera as serialised sensor_msgs/CameraInfo.

_TYPE = 'sensor_msgs/msg/CameraInfo'
_ROI = ('x_offset', 'y_offset', 'height', 'width', 'do_rectify')


def decode_camera_info(
    data: Sequence[bytes], received_ns: IntArray, where: str
) -> tuple[CameraInfoArray, tuple[tuple[str, int], ...]]:
    """Decode all messages of a topic.

    Returns
    -------
    CameraInfoArray, tuple of (str, int)
        Messages with the most frequent frame; the other frames and their numbers.

    Raises
    ------
    RecordingError
        When a message is no camera info, or distortion model or number of coefficients change.
    """
    messages = parsed(data, _TYPE, where)
    frame, chosen, others = of_one_frame(messages)
    kept = [messages[k] for k in chosen]
    lenses = {(str(message.distortion_model), len(message.d)): None for message in kept}
    if len(lenses) > 1:
        shown = ', '.join(f'{model or "none"} ({count})' for model, count in lenses)
        raise RecordingError(
            f'{where}: distortion models (coefficients) {shown}; must be the same in all messages'
        )
    model, coefficients = next(iter(lenses), ('', 0))

    def all_of(values: list[Any], *shape: int) -> Any:
        return np.array(values).reshape(len(kept), *shape)

    array = CameraInfoArray(
        stamp_ns=stamps_of(kept),
        arrival_ns=received_ns[chosen],
        frame=frame,
        distortion_model=model,
        size=all_of([[message.width, message.height] for message in kept], 2),
        distortion=all_of([message.d for message in kept], coefficients),
        matrix=all_of([message.k for message in kept], 3, 3),
        rectification=all_of([message.r for message in kept], 3, 3),
        projection=all_of([message.p for message in kept], 3, 4),
        binning=all_of([[message.binning_x, message.binning_y] for message in kept], 2),
        roi=all_of([[getattr(message.roi, name) for name in _ROI] for message in kept], 5),
    )
    return array, others


def encode_camera_info(array: CameraInfoArray, where: str) -> list[bytes]:
    """Serialise all messages as little-endian CDR.

    Raises
    ------
    RecordingError
        When a stamp does not fit into the int32 seconds of a ROS header.
    """
    types: dict[str, Any] = typestore().types
    region = types['sensor_msgs/msg/RegionOfInterest']
    result = []
    for k, header in enumerate(headers(array, where)):
        *window, do_rectify = array.roi[k].tolist()
        width, height = array.size[k].tolist()
        binning_x, binning_y = array.binning[k].tolist()
        message = types[_TYPE](
            header=header,
            height=height,
            width=width,
            distortion_model=array.distortion_model,
            d=array.distortion[k],
            k=array.matrix[k].ravel(),
            r=array.rectification[k].ravel(),
            p=array.projection[k].ravel(),
            binning_x=binning_x,
            binning_y=binning_y,
            roi=region(*window, bool(do_rectify)),
        )
        result.append(bytes(typestore().serialize_cdr(message, _TYPE)))
    return result


# Feature tracks as serialised sensor_msgs/PointCloud2, whose messages differ in length.

_TYPE_FEATURE_CDR = 'sensor_msgs/msg/PointCloud2'
# Of sensor_msgs/PointField.
_FORMATS = {1: 'i1', 2: 'u1', 3: 'i2', 4: 'u2', 5: 'i4', 6: 'u4', 7: 'f4', 8: 'f8'}


def decode_features(
    data: Sequence[bytes], received_ns: IntArray, where: str
) -> tuple[FeatureArray, tuple[tuple[str, int], ...]]:
    """Decode all messages of a topic; the fields may have any order and numeric type.

    Returns
    -------
    FeatureArray, tuple of (str, int)
        Messages with the most frequent frame; the other frames and their numbers.

    Raises
    ------
    RecordingError
        When a message is no point cloud, or has not the fields of features.
    """
    messages = parsed(data, _TYPE_FEATURE_CDR, where)
    frame, chosen, others = of_one_frame(messages)
    parts = [_points(messages[k], f'{where}: message {k}') for k in chosen]
    rows = np.concatenate([np.zeros(0, ROW), *parts])
    array = FeatureArray(
        stamp_ns=stamps_of([messages[k] for k in chosen]),
        arrival_ns=received_ns[chosen],
        frame=frame,
        first=np.concatenate([[0], np.cumsum([len(part) for part in parts], dtype=np.int64)]),
        ids=rows['id'],
        pixels=np.stack([rows['u'], rows['v']], axis=1),
        previous=np.stack([rows['previous_u'], rows['previous_v']], axis=1),
        age=rows['age'],
        rays=np.stack([rows['ray_x'], rows['ray_y']], axis=1),
    )
    return array, others


def encode_features(array: FeatureArray, where: str) -> list[bytes]:
    """Serialise all frames as little-endian CDR.

    Raises
    ------
    RecordingError
        When a stamp does not fit into the int32 seconds of a ROS header.
    """
    types: dict[str, Any] = typestore().types
    point_field = types['sensor_msgs/msg/PointField']
    fields = [point_field(name=n, offset=o, datatype=kind, count=1) for n, o, kind in FIELDS]
    rows = feature_rows(array)
    result = []
    for k, header in enumerate(headers(array, where)):
        here = rows[array.rows(k)]
        message = types[_TYPE_FEATURE_CDR](
            header=header,
            height=1,
            width=len(here),
            fields=fields,
            is_bigendian=False,
            point_step=ROW.itemsize,
            row_step=ROW.itemsize * len(here),
            data=np.frombuffer(here.tobytes(), np.uint8),
            is_dense=is_dense(here),
        )
        result.append(bytes(typestore().serialize_cdr(message, _TYPE_FEATURE_CDR)))
    return result


def _points(message: Any, where: str) -> NDArray[np.void]:
    """Return the points of a cloud as records of the type `ROW`."""
    fields = {field.name: field for field in message.fields}
    missing = [name for name in ROW.names or () if name not in fields]
    if missing or any(fields[name].datatype not in _FORMATS for name in ROW.names or ()):
        raise RecordingError(
            f'{where}: has no field {", ".join(missing) or "of a known type"}; must be features '
            'as camera_node publishes them'
        )
    order = '>' if message.is_bigendian else '<'
    layout: Any = {
        'names': list(ROW.names or ()),
        'formats': [f'{order}{_FORMATS[fields[name].datatype]}' for name in ROW.names or ()],
        'offsets': [fields[name].offset for name in ROW.names or ()],
        'itemsize': message.point_step,
    }
    count = message.width * message.height
    try:
        given = np.frombuffer(bytes(message.data), np.dtype(layout), count)
    except ValueError as error:
        raise RecordingError(f'{where}: its points do not fit its data: {error}') from None
    result = np.zeros(count, ROW)
    for name in ROW.names or ():
        result[name] = given[name]
    return result
