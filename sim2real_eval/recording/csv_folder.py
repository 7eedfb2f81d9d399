# SPDX-License-Identifier: Apache-2.0
"""A folder of CSV files: which file is which topic, and reading all of them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from sim2real_eval.recording.camera_info_table import read_camera_info
from sim2real_eval.recording.csv_table import read_table
from sim2real_eval.recording.errors import RecordingError
from sim2real_eval.recording.feature_table import read_features
from sim2real_eval.recording.message_types import (
    CAMERA_INFO,
    CMD_VEL_TYPE,
    FEATURES,
    MESSAGE_TYPES,
)
from sim2real_eval.recording.metadata import Metadata, load_yaml, read_files, read_transforms
from sim2real_eval.recording.recording import Note, StaticTransform
from sim_sensors.measurements import MessageArray

__all__ = ['DEFAULT_FILES', 'CsvFolder', 'csv_files', 'read_csv_folder']

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
    notes : list of Note
        Remarks of the file reader.
    ignored : list of str
        CSV files that no topic belongs to.
    """

    messages: dict[str, MessageArray] = dataclasses.field(default_factory=dict)
    ros_types: dict[str, str] = dataclasses.field(default_factory=dict)
    roles: dict[str, str] = dataclasses.field(default_factory=dict)
    transforms: tuple[StaticTransform, ...] = ()
    notes: list[Note] = dataclasses.field(default_factory=list)
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
