# SPDX-License-Identifier: Apache-2.0
"""A folder of CSV files: which file is which topic, and reading all of them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from sim2real_eval.common.errors import RecordingError
from sim2real_eval.common.findings import Finding
from sim_sensors.camera.features import FeatureArray
from sim_sensors.camera.pinhole import CameraInfoArray
from sim_sensors.core.measurements import FloatArray, IntArray, MessageArray
from .csv_table import read_header, read_table, write_table
from .message_types import (
    CAMERA_INFO,
    CMD_VEL_TYPE,
    FEATURES,
    MESSAGE_TYPES,
    Field,
    MessageType,
    matrix,
    vector,
)
from .metadata import Metadata, load_yaml, read_files, read_transforms
from .recording import ROLE_CLASSES, Content

# The numbers of a camera as a CSV file, which has a column d0, d1 ... for each coefficient.

_OF_CAMERA = (
    vector('size', 'width height', 'u4'),
    vector('binning', 'binning_x binning_y', 'u4'),
    vector('roi', 'roi_x_offset roi_y_offset roi_height roi_width roi_do_rectify', 'u4'),
)
_MATRICES = (
    matrix('matrix', 'k', 3, 3),
    matrix('rectification', 'r', 3, 3),
    matrix('projection', 'p', 3, 4),
)


def _camera_line(coefficients: int) -> MessageType:
    names = tuple(f'd{k}' for k in range(coefficients))
    fields = (*_OF_CAMERA, Field('distortion', names, (coefficients,)), *_MATRICES)
    return MessageType(CAMERA_INFO.name, CameraInfoArray, fields, text='distortion_model')


def read_camera_info(path: Path) -> tuple[MessageArray, tuple[Finding, ...]]:
    """Read one file; errors are those of `read_table`."""
    coefficients = sum(name[:1] == 'd' and name[1:].isdecimal() for name in read_header(path))
    return read_table(path, _camera_line(coefficients))


def write_camera_info(path: Path, array: CameraInfoArray) -> None:
    """Write one file, as `write_table` does."""
    write_table(path, _camera_line(array.distortion.shape[1]), array)


# Feature tracks as a CSV file: a line for each feature, and one with the id -1 for a frame that
# has none.

_NONE = -1


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class _FeatureLines(MessageArray):
    ids: IntArray
    age: IntArray
    numbers: FloatArray


_LINE = MessageType(
    FEATURES.name,
    _FeatureLines,
    (
        vector('ids', 'id', 'i8'),
        vector('age', 'age', 'i8'),
        vector('numbers', 'u v previous_u previous_v ray_x ray_y'),
    ),
)


def read_features(path: Path) -> tuple[FeatureArray, tuple[Finding, ...]]:
    """Read one file; errors are those of `read_table`."""
    lines, notes = read_table(path, _LINE)
    assert isinstance(lines, _FeatureLines)
    change = np.diff(lines.stamp_ns, prepend=lines.stamp_ns[:1] - 1) != 0
    change |= np.diff(lines.arrival_ns, prepend=lines.arrival_ns[:1] - 1) != 0
    frames = np.flatnonzero(change)
    is_feature = lines.ids != _NONE
    if (is_feature & (lines.ids < 0)).any():
        wrong = int(lines.ids[lines.ids < _NONE][0])
        raise RecordingError(f'{path}: id: {wrong} is not allowed; must be >= 0, or -1 for none')
    before = np.concatenate([[0], np.cumsum(is_feature)])
    numbers = lines.numbers[is_feature]
    array = FeatureArray(
        stamp_ns=lines.stamp_ns[frames],
        arrival_ns=lines.arrival_ns[frames],
        frame=lines.frame,
        first=before[np.append(frames, len(lines))],
        ids=lines.ids[is_feature],
        pixels=numbers[:, 0:2],
        previous=numbers[:, 2:4],
        age=lines.age[is_feature],
        rays=numbers[:, 4:6],
    )
    return array, notes


def write_features(path: Path, array: FeatureArray) -> None:
    """Write one file, as `write_table` does."""
    counts = np.diff(array.first)
    frame = np.repeat(np.arange(len(array)), np.maximum(counts, 1))
    is_feature = np.repeat(counts > 0, np.maximum(counts, 1))
    ids = np.full(len(frame), _NONE, dtype=np.int64)
    age = np.zeros(len(frame), dtype=np.int64)
    numbers = np.full((len(frame), 6), np.nan)
    ids[is_feature], age[is_feature] = array.ids, array.age
    numbers[is_feature] = np.concatenate([array.pixels, array.previous, array.rays], axis=1)
    lines = _FeatureLines(
        stamp_ns=array.stamp_ns[frame],
        arrival_ns=array.arrival_ns[frame],
        frame=array.frame,
        ids=ids,
        age=age,
        numbers=numbers,
    )
    write_table(path, _LINE, lines)


DEFAULT_FILES: dict[str, tuple[str, str]] = {
    'imu': ('/imu/data', 'sensor_msgs/msg/Imu'),
    'gps': ('/gps/fix', 'sensor_msgs/msg/NavSatFix'),
    'odom': ('/odom', 'nav_msgs/msg/Odometry'),
    'pose': ('/pose', 'geometry_msgs/msg/PoseWithCovarianceStamped'),
    'twist': ('/twist', 'geometry_msgs/msg/TwistWithCovarianceStamped'),
    'cmd_vel': ('/cmd_vel', CMD_VEL_TYPE),
    'truth': ('/ground_truth/odometry', 'nav_msgs/msg/Odometry'),
    'mag': ('/imu/mag', 'sensor_msgs/msg/MagneticField'),
    'camera_pose': ('/camera/pose', 'geometry_msgs/msg/PoseWithCovarianceStamped'),
    'features': ('/camera/features', FEATURES.name),
    'camera_info': ('/camera/camera_info', CAMERA_INFO.name),
    'ideal_imu': ('/ground_truth/imu', 'sensor_msgs/msg/Imu'),
    'ideal_gps': ('/ground_truth/fix', 'sensor_msgs/msg/NavSatFix'),
    'ideal_mag': ('/ground_truth/mag', 'sensor_msgs/msg/MagneticField'),
}


def csv_files(path: Path) -> dict[str, Path]:
    """Return the CSV files of a folder by stem (`imu.csv.gz` has stem `imu`).

    A file that is there both plain and as .gz is a RecordingError.
    """
    result: dict[str, Path] = {}
    for file in sorted(path.iterdir()):
        stem = _stem(file.name)
        if stem is None or not file.is_file():
            continue
        if stem in result:
            raise RecordingError(
                f'{path}: both {result[stem].name} and {file.name} are there; one is allowed'
            )
        result[stem] = file
    return result


def read_csv_folder(path: Path, metadata: Metadata) -> Content:
    """Read all CSV files whose topic is known.

    File names are mapped to topics by `files:` of recording.yaml, else by `inputs:` of case.yaml,
    else by `DEFAULT_FILES`. A file that is missing, damaged or has other columns than its type
    needs is a RecordingError.
    """
    files = csv_files(path)
    case = path / 'case.yaml'
    given = dict(metadata.files)
    where = 'recording.yaml'
    if not given and case.is_file():
        content = load_yaml(case)
        inputs = content.get('inputs') if isinstance(content, dict) else None
        given, where = read_files(case, 'inputs', inputs or {}), 'case.yaml'
    named: dict[str, tuple[str, str]] = {}
    for name, target in given.items():
        stem = _stem(name) or name
        if stem not in files:
            raise RecordingError(
                f'{path}: {name} is missing; {where} names it for topic {target[0]}'
            )
        named[stem] = target
    folder = Content(keeps_arrival=True)
    # The judge breaks ties of arrival by the order of the inputs, so theirs comes first.
    for stem in [*named, *(stem for stem in files if stem not in named)]:
        file = files[stem]
        topic, ros_type = named.get(stem) or DEFAULT_FILES.get(stem, ('', ''))
        if not topic:
            folder.ignored.append(file.name)
            continue
        if topic in folder.messages:
            raise RecordingError(f'{path}: {file.name}: topic {topic} has two files')
        truth = ros_type == DEFAULT_FILES['truth'][1] and (
            stem == 'truth' or topic == DEFAULT_FILES['truth'][0]
        )
        array: MessageArray
        if ros_type == FEATURES.name:
            array, notes = read_features(file)
        elif ros_type == CAMERA_INFO.name:
            array, notes = read_camera_info(file)
        else:
            array, notes = read_table(file, MESSAGE_TYPES[ros_type], truth=truth)
        folder.messages[topic], folder.ros_types[topic] = array, ros_type
        folder.notes.extend(notes)
        if stem in ROLE_CLASSES and ros_type == DEFAULT_FILES[stem][1]:
            folder.roles[stem] = topic
    transforms = path / 'static_transforms.yaml'
    if transforms.is_file():
        folder.transforms += read_transforms(transforms)
    return folder


def _stem(name: str) -> str | None:
    for suffix in ('.csv.gz', '.csv'):
        if name.endswith(suffix) and len(name) > len(suffix):
            return name[: -len(suffix)]
    return None
