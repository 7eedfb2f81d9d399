# SPDX-License-Identifier: Apache-2.0
"""Feature tracks as sensor_msgs/PointCloud2, and camera poses; every bit survives.

sensor_msgs/PointCloud, which VINS takes, is deprecated and its channels have 32 bits, which cut a
pixel to some 1e-5. A PointCloud2 says what its fields are, and RViz shows its x, y, z.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sensor_msgs.msg import CameraInfo, PointCloud2, PointField
from std_msgs.msg import Header

from sim_sensors.camera_info import CameraInfoArray
from sim_sensors.feature_bytes import FIELDS, ROW, feature_rows, is_dense
from sim_sensors.feature_tracks import FeatureArray
from sim_sensors.pinhole import Intrinsics
from sim_sensors.ros.messages import time_message

__all__ = ['camera_info', 'feature_messages']


def feature_messages(features: FeatureArray) -> Iterator[PointCloud2]:
    """Return one sensor_msgs/PointCloud2 for each frame; `sim_sensors.feature_bytes` lays out."""
    fields = [
        PointField(name=name, offset=offset, datatype=kind, count=1)
        for name, offset, kind in FIELDS
    ]
    rows = feature_rows(features)
    for k in range(len(features)):
        here = rows[features.rows(k)]
        yield PointCloud2(
            header=_header(int(features.stamp_ns[k]), features.frame),
            height=1,
            width=len(here),
            fields=fields,
            is_bigendian=False,
            point_step=ROW.itemsize,
            row_step=ROW.itemsize * len(here),
            data=here.tobytes(),
            is_dense=is_dense(here),
        )


def camera_info(intrinsics: Intrinsics, stamp: int, frame: str) -> CameraInfo:
    """Return a sensor_msgs/CameraInfo (`plumb_bob`) of a monocular camera."""
    # Of the same function as in recordings; the message's other fields are zero.
    at = np.array([stamp])
    info = CameraInfoArray.of(intrinsics, at, at, frame)
    width, height = info.size[0].tolist()
    return CameraInfo(
        header=_header(stamp, frame),
        width=width,
        height=height,
        distortion_model=info.distortion_model,
        d=info.distortion[0].tolist(),
        k=info.matrix[0].ravel(),
        r=info.rectification[0].ravel(),
        p=info.projection[0].ravel(),
    )


def _header(stamp: int, frame: str) -> Header:
    return Header(stamp=time_message(stamp), frame_id=frame)
