# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Write a recording as a rosbag2 folder, by rosbags.

All messages of a topic have the same layout in CDR. So each topic is one structured array, whose
rows are the messages; a test holds them against the serialiser of rosbags.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from .sensors import TRUTH, Log, Stream

STORE = get_typestore(Stores.ROS2_HUMBLE)
START_NS = 1_717_236_000 * 10**9
"""Stamp of second 0."""
TYPES = {
    'imu': 'sensor_msgs/msg/Imu',
    'fix': 'sensor_msgs/msg/NavSatFix',
    'odometry': 'nav_msgs/msg/Odometry',
    'pose': 'geometry_msgs/msg/PoseStamped',
    'mag': 'sensor_msgs/msg/MagneticField',
}
_FIELDS: dict[str, tuple[tuple[str, str], ...]] = {
    'imu': (
        ('orientation', '4f8'), ('orientation_covariance', '9f8'), ('rate', '3f8'),
        ('rate_covariance', '9f8'), ('force', '3f8'), ('force_covariance', '9f8'),
    ),
    'fix': (
        ('status', 'i1'), ('service', 'u2'), ('latitude', 'f8'), ('longitude', 'f8'),
        ('altitude', 'f8'), ('covariance', '9f8'), ('covariance_type', 'u1'),
    ),
    'odometry': (
        ('position', '3f8'), ('orientation', '4f8'), ('pose_covariance', '36f8'),
        ('velocity', '3f8'), ('rate', '3f8'), ('twist_covariance', '36f8'),
    ),
    'pose': (('position', '3f8'), ('orientation', '4f8')),
    'mag': (('field', '3f8'), ('field_covariance', '9f8')),
}  # fmt: skip
_HEADER = 4  # bytes of encapsulation, which alignment does not count


def _layout(stream: Stream) -> np.dtype[np.void]:
    """Return the type of a message of a stream with its encapsulation."""
    names, formats, offsets, at = ['head', 'sec', 'nanosec'], ['4u1', '<i4', '<u4'], [0, 4, 8], 8
    strings = [('frame', stream.frame)]
    if stream.kind == 'odometry':
        strings.append(('child', stream.child))
    for name, text in strings:
        at += -at % 4
        names += [f'{name}_length', name]
        formats += ['<u4', f'S{len(text) + 1}']
        offsets += [_HEADER + at, _HEADER + at + 4]
        at += 4 + len(text) + 1
    for name, form in _FIELDS[stream.kind]:
        size = np.dtype(form).base.itemsize
        at += -at % size
        names.append(name)
        formats.append(form)
        offsets.append(_HEADER + at)
        at += np.dtype(form).itemsize
    return np.dtype(
        {'names': names, 'formats': formats, 'offsets': offsets, 'itemsize': _HEADER + at}
    )


def serialise(stream: Stream) -> NDArray[np.void]:
    """Return the messages of a stream in CDR, little-endian; rows have a method `tobytes`."""
    rows = np.zeros(len(stream), dtype=_layout(stream))
    stamps = stamps_ns(stream.time)
    rows['head'] = [0, 1, 0, 0]
    rows['sec'], rows['nanosec'] = stamps // 10**9, stamps % 10**9
    rows['frame_length'], rows['frame'] = len(stream.frame) + 1, stream.frame.encode()
    if stream.kind == 'odometry':
        rows['child_length'], rows['child'] = len(stream.child) + 1, stream.child.encode()
    for name, _ in _FIELDS[stream.kind]:
        rows[name] = 1 if name == 'service' else stream.values[name]
    return rows


def stamps_ns(time: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return stamps of times in seconds since the start."""
    return START_NS + np.round(time * 1e9).astype(np.int64)


def write_bag(log: Log, path: Path) -> None:
    """Write a recording; a truth without velocities is named in a recording.yaml."""
    plugin = StoragePlugin.MCAP if log.setup.seed % 3 == 0 else StoragePlugin.SQLITE3
    entries = []
    with Writer(path, version=8, storage_plugin=plugin) as writer:
        if log.transforms:
            connection = writer.add_connection(
                '/tf_static', 'tf2_msgs/msg/TFMessage', typestore=STORE
            )
            writer.write(connection, START_NS, _transforms(log))
        for topic, stream in log.streams.items():
            connection = writer.add_connection(topic, TYPES[stream.kind], typestore=STORE)
            rows = serialise(stream)
            arrivals = stamps_ns(stream.received).tolist()
            entries += [
                (arrival, connection, row) for arrival, row in zip(arrivals, rows, strict=True)
            ]
        for arrival, connection, row in sorted(entries, key=lambda entry: entry[0]):
            writer.write(connection, arrival, row.tobytes())
    if log.streams[TRUTH].kind == 'pose':
        text = f'topics:\n  truth: {TRUTH}\n'
        (path / 'recording.yaml').write_text(text, encoding='utf-8')


def _transforms(log: Log) -> bytes:
    types = STORE.types
    stamp = types['builtin_interfaces/msg/Time'](sec=START_NS // 10**9, nanosec=0)
    header = types['std_msgs/msg/Header'](stamp=stamp, frame_id='base_link')
    transforms = []
    for child, (translation, rotation) in log.transforms.items():
        x, y, z, w = rotation.as_quat().tolist()
        transform = types['geometry_msgs/msg/Transform'](
            translation=types['geometry_msgs/msg/Vector3'](*translation.tolist()),
            rotation=types['geometry_msgs/msg/Quaternion'](x, y, z, w),
        )
        transforms.append(
            types['geometry_msgs/msg/TransformStamped'](
                header=header, child_frame_id=child, transform=transform
            )
        )
    message = types['tf2_msgs/msg/TFMessage'](transforms=transforms)
    return bytes(STORE.serialize_cdr(message, 'tf2_msgs/msg/TFMessage'))
