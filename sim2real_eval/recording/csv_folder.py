# SPDX-License-Identifier: Apache-2.0
"""A folder of CSV files: which file is which topic, and reading all of them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from sim2real_eval.common.errors import RecordingError
from sim2real_eval.common.findings import Finding
from sim2real_eval.recording.csv_table import read_header, read_table, write_table
from sim2real_eval.recording.message_types import (
    CAMERA_INFO,
    CMD_VEL_TYPE,
    FEATURES,
    MESSAGE_TYPES,
    MessageType,
)
from sim2real_eval.recording.metadata import Metadata, load_yaml, read_files, read_transforms
from sim2real_eval.recording.recording import StaticTransform
from sim_sensors.camera.features import FeatureArray
from sim_sensors.camera.pinhole import LARGEST, CameraInfoArray
from sim_sensors.core.measurements import FloatArray, IntArray, MessageArray

# The numbers of a camera as a CSV file, which has a column d0, d1 ... for each
# coefficient.

_WHOLE = (
    *('width', 'height', 'binning_x', 'binning_y'),
    *('roi_x_offset', 'roi_y_offset', 'roi_height', 'roi_width', 'roi_do_rectify'),
)
_MATRICES = tuple(
    f'{name}{k}' for name, count in (('k', 9), ('r', 9), ('p', 12)) for k in range(count)
)


@dataclasses.dataclass(frozen=True, eq=False)
class _CameraInfoLines(MessageArray):
    distortion_model: str
    whole: IntArray
    numbers: FloatArray


def _line(coefficients: int) -> MessageType:
    names = (*(f'd{k}' for k in range(coefficients)), *_MATRICES)
    columns = (('whole', _WHOLE), ('numbers', names))
    return MessageType(CAMERA_INFO.name, _CameraInfoLines, (), columns, text='distortion_model')


def read_camera_info(path: Path) -> tuple[CameraInfoArray, tuple[Finding, ...]]:
    """Read one file; errors are those of `read_table`."""
    known = read_header(path)
    count = sum(name[:1] == 'd' and name[1:].isdecimal() for name in known)
    lines, notes = read_table(path, _line(count))
    assert isinstance(lines, _CameraInfoLines)
    whole = lines.whole.reshape(len(lines), len(_WHOLE))
    wrong = (whole < 0) | (whole > LARGEST)
    if wrong.any():
        line, column = np.argwhere(wrong)[0].tolist()
        raise RecordingError(
            f'{path}: line {line + 2}: {_WHOLE[column]}: {whole[line, column]} is not allowed; '
            f'must be in 0 .. {LARGEST}'
        )
    numbers = lines.numbers.reshape(len(lines), count + len(_MATRICES))
    distortion, k, r, p = np.split(numbers, [count, count + 9, count + 18], axis=1)
    array = CameraInfoArray(
        stamp_ns=lines.stamp_ns,
        arrival_ns=lines.arrival_ns,
        frame=lines.frame,
        distortion_model=lines.distortion_model,
        size=whole[:, :2],
        distortion=distortion,
        matrix=k.reshape(-1, 3, 3),
        rectification=r.reshape(-1, 3, 3),
        projection=p.reshape(-1, 3, 4),
        binning=whole[:, 2:4],
        roi=whole[:, 4:],
    )
    return array, notes


def write_camera_info(path: Path, array: CameraInfoArray) -> None:
    """Write one file, gzip when its name ends in .gz; equal arrays give equal bytes."""
    lines = _CameraInfoLines(
        stamp_ns=array.stamp_ns,
        arrival_ns=array.arrival_ns,
        frame=array.frame,
        distortion_model=array.distortion_model,
        whole=np.concatenate([array.size, array.binning, array.roi], axis=1),
        numbers=np.concatenate(
            [
                array.distortion,
                array.matrix.reshape(-1, 9),
                array.rectification.reshape(-1, 9),
                array.projection.reshape(-1, 12),
            ],
            axis=1,
        ),
    )
    write_table(path, _line(array.distortion.shape[1]), lines)


# Feature tracks as a CSV file: a line for each feature, and one with the id -1 for a
# frame that
# has none.

_NONE = -1
_COLUMNS = ('u', 'v', 'previous_u', 'previous_v', 'ray_x', 'ray_y')


@dataclasses.dataclass(frozen=True, eq=False)
class _FeatureLines(MessageArray):
    ids: IntArray
    age: IntArray
    numbers: FloatArray


_LINE = MessageType(
    FEATURES.name, _FeatureLines, (), (('ids', ('id',)), ('age', ('age',)), ('numbers', _COLUMNS))
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
    """Write one file, gzip when its name ends in .gz; equal arrays give equal bytes."""
    counts = np.diff(array.first)
    frame = np.repeat(np.arange(len(array)), np.maximum(counts, 1))
    is_feature = np.repeat(counts > 0, np.maximum(counts, 1))
    ids = np.full(len(frame), _NONE, dtype=np.int64)
    age = np.zeros(len(frame), dtype=np.int64)
    numbers = np.full((len(frame), len(_COLUMNS)), np.nan)
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
}
_ROLE_FILES = ('imu', 'gps', 'truth', 'mag', 'camera_pose', 'features', 'camera_info')


@dataclasses.dataclass
class CsvFolder:
    """Content of a folder before it is checked.

    Attributes
    ----------
    messages, ros_types : dict
        By topic.
    roles : dict of str to str
        Roles that follow from the names of the files.
    transforms : tuple of StaticTransform
        Of static_transforms.yaml.
    notes : list of Finding
        Remarks of the file reader.
    ignored : list of str
        CSV files that no topic belongs to.
    """

    messages: dict[str, MessageArray] = dataclasses.field(default_factory=dict)
    ros_types: dict[str, str] = dataclasses.field(default_factory=dict)
    roles: dict[str, str] = dataclasses.field(default_factory=dict)
    transforms: tuple[StaticTransform, ...] = ()
    notes: list[Finding] = dataclasses.field(default_factory=list)
    ignored: list[str] = dataclasses.field(default_factory=list)


def csv_files(path: Path) -> dict[str, Path]:
    """Return the CSV files of a folder by stem (`imu.csv.gz` has stem `imu`).

    Raises
    ------
    RecordingError
        When a file is there both plain and as .gz.
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


def read_csv_folder(path: Path, metadata: Metadata) -> CsvFolder:
    """Read all CSV files whose topic is known.

    File names are mapped to topics by `files:` of recording.yaml, else by `inputs:` of case.yaml,
    else by `DEFAULT_FILES`.

    Raises
    ------
    RecordingError
        When a file is missing, damaged or has other columns than its type needs.
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
    folder = CsvFolder()
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
        if stem in _ROLE_FILES and ros_type == DEFAULT_FILES[stem][1]:
            folder.roles[stem] = topic
    transforms = path / 'static_transforms.yaml'
    if transforms.is_file():
        folder.transforms = read_transforms(transforms)
    return folder


def _stem(name: str) -> str | None:
    for suffix in ('.csv.gz', '.csv'):
        if name.endswith(suffix) and len(name) > len(suffix):
            return name[: -len(suffix)]
    return None
