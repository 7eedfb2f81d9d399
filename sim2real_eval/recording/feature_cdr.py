# SPDX-License-Identifier: Apache-2.0
"""Feature tracks as serialised sensor_msgs/PointCloud2, whose messages differ in length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.recording.errors import RecordingError
from sim2real_eval.recording.serialised import headers, of_one_frame, parsed, stamps_of, typestore
from sim_sensors.feature_bytes import FIELDS, ROW, feature_rows, is_dense
from sim_sensors.feature_tracks import FeatureArray
from sim_sensors.measurements import IntArray

__all__ = ['decode_features', 'encode_features']

_TYPE = 'sensor_msgs/msg/PointCloud2'
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
    messages = parsed(data, _TYPE, where)
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
        message = types[_TYPE](
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
        result.append(bytes(typestore().serialize_cdr(message, _TYPE)))
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
