# SPDX-License-Identifier: Apache-2.0
"""The numbers of a camera as serialised sensor_msgs/CameraInfo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sim2real_eval.recording.errors import RecordingError
from sim2real_eval.recording.serialised import headers, of_one_frame, parsed, stamps_of, typestore
from sim_sensors.camera_info import CameraInfoArray
from sim_sensors.measurements import IntArray

__all__ = ['decode_camera_info', 'encode_camera_info']

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
