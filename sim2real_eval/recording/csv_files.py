# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""CSV files of messages, plain or gzip, and folders of them. Numbers are exact both ways."""

from __future__ import annotations

import csv
import dataclasses
import gzip
import io
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sim2real_eval.common.findings import Finding, RecordingError
from sim_sensors.camera.features import FeatureArray
from sim_sensors.camera.pinhole import LARGEST, CameraInfoArray
from sim_sensors.core.input_files import read_input
from sim_sensors.core.measurements import (
    FixArray,
    FloatArray,
    ImuArray,
    IntArray,
    MagneticFieldArray,
    MessageArray,
    OdometryArray,
    PoseArray,
    TwistArray,
)
from .checks import CUT_SHORT
from .fields import ABSENT_COVARIANCE, IDENTITY
from .message_types import (
    CAMERA_INFO,
    CMD_VEL_TYPE,
    FEATURES,
    MESSAGE_TYPES,
    Field,
    MessageType,
    matrix_field,
    vector_field,
)
from .metadata import Metadata, load_yaml, read_files, read_transforms
from .recording import ROLE_CLASSES, Content

_TRUTH_ALIASES = {'vx_body': 'vx', 'vy_body': 'vy', 'vz_body': 'vz'}
TRUTH_COLUMNS = (
    'stamp_ns',
    *('x', 'y', 'z', 'qx', 'qy', 'qz', 'qw'),
    *('vx_body', 'vy_body', 'vz_body', 'wx', 'wy', 'wz'),
)
_TRUTH_FRAME, _TRUTH_CHILD = 'map', 'base_link'
_FRAMES = {
    ImuArray: 'imu_link',
    FixArray: 'gps_link',
    MagneticFieldArray: 'imu_link',
    OdometryArray: 'odom',
    PoseArray: 'map',
    TwistArray: 'base_link',
}
"""Frames of files without column `frame`; the child is base_link."""
_OPTIONAL_FIELDS = {
    (ImuArray, 'orientation'),
    (FixArray, 'altitude'),
    (FixArray, 'status'),
    (FixArray, 'position_covariance_type'),
}
"""Fields beside the covariances whose columns may be missing."""
_KNOWN_COVARIANCE = 3
"""Type of the covariance of a fix whose columns are there."""
_FIX_ALIASES = {'latitude': 'lat', 'longitude': 'lon', 'altitude': 'alt'}
_TEXT_ERRORS = (ValueError, OverflowError)


def read_table(
    path: Path, kind: MessageType, *, truth: bool = False
) -> tuple[MessageArray, tuple[Finding, ...]]:
    """Read one file with a header line; the order of its columns is free.

    Frames, arrival, covariances, the orientation of an IMU, the altitude and status of a fix, and
    the twist of a ground truth may be missing. Frames become those of the default topics, arrival
    the stamps, the orientation absent, and the status a fix. The others become NaN, which
    `check_messages` reports, and the covariances of a ground truth zero. A RecordingError names
    file, line, column, value and what is allowed.
    """
    text = _read_text(path)
    try:
        rows = list(csv.reader(io.StringIO(text, newline=''), strict=True))
    except csv.Error as error:
        raise RecordingError(f'{path}: not CSV: {error}') from None
    if not rows:
        raise RecordingError(f'{path}: file is empty; must start with a header line')
    aliases = _TRUTH_ALIASES if truth else _FIX_ALIASES if kind.array is FixArray else {}
    header = [aliases.get(name, name) for name in rows[0]]
    body = rows[1:]
    _check_header(path, kind, header, truth)
    for line, row in enumerate(body, 2):
        if len(row) != len(header):
            raise RecordingError(
                f'{path}: line {line}: {len(row)} values, the header names {len(header)} '
                '(truncated file?)'
            )
    columns: Sequence[Sequence[str]] = list(zip(*body, strict=True)) or [()] * len(header)
    codes = {'arrival_ns': 'i8', 'stamp_ns': 'i8'}
    codes |= {name: field.code for field in kind.fields for name in field.columns}
    table = {
        name: _parse_column(path, name, column, codes[name]) if name in codes else column
        for name, column in zip(header, columns, strict=True)
    }
    array = _to_array(path, kind, table, len(body), truth)
    is_cut = body and not text.endswith('\n')
    problem = 'the last line does not end in a newline; it is kept'
    return array, (CUT_SHORT(path.name, problem=problem),) if is_cut else ()


def write_table(
    path: Path, kind: MessageType, array: MessageArray, *, truth: bool = False
) -> None:
    """Write one file, gzip when its name ends in .gz; equal arrays give equal bytes.

    A ground truth is written in the short layout of the reference traces if that loses nothing.
    """
    is_short = truth and isinstance(array, OdometryArray) and _fits_short_layout(array)
    count = len(array)
    columns: dict[str, list[Any]] = {'stamp_ns': array.stamp_ns.tolist()}
    if not kind.has_header:
        columns = {'arrival_ns': array.arrival_ns.tolist()}
    elif not is_short:
        columns = {'arrival_ns': array.arrival_ns.tolist(), **columns}
        columns['frame'] = [array.frame] * count
        if isinstance(array, OdometryArray):
            columns['child'] = [array.child_frame] * count
        if kind.text:
            columns[kind.text] = [getattr(array, kind.text)] * count
    for field in kind.csv_fields:
        if not (is_short and field.attribute.endswith('covariance')):
            values = getattr(array, field.attribute).reshape(count, len(field.columns))
            columns |= zip(field.columns, values.T.tolist(), strict=True)
    # The csv module prints floats with repr, so that they read back to the same bits.
    text = io.StringIO(newline='')
    writer = csv.writer(text, lineterminator='\n')
    writer.writerow(TRUTH_COLUMNS if is_short else columns)
    writer.writerows(zip(*columns.values(), strict=True))
    data = text.getvalue().encode()
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == '.gz' else data)


def _read_text(path: Path) -> str:
    try:
        data = read_input(path)
        if path.suffix == '.gz':
            data = gzip.decompress(data)
        return data.decode()
    except EOFError:
        raise RecordingError(f'{path}: gzip file is cut short') from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise RecordingError(f'{path}: gzip file is damaged: {error}') from None
    except UnicodeDecodeError as error:
        raise RecordingError(f'{path}: byte {error.start} is not UTF-8 text') from None
    except OSError as error:
        raise RecordingError(f'{path}: cannot be read: {error.strerror}') from None


def _check_header(path: Path, kind: MessageType, header: Sequence[str], truth: bool) -> None:
    labels = {'frame', 'child'} if kind.has_child else {'frame'}
    required = {'stamp_ns', kind.text or 'stamp_ns'}
    required |= set() if kind.array in _FRAMES else labels
    allowed = required | labels | {'arrival_ns'}
    if not kind.has_header:
        # Its messages have no stamp, but its file may have the columns of those that do.
        required = {'stamp_ns' if 'stamp_ns' in header else 'arrival_ns'}
    for field in kind.fields:
        allowed.update(field.columns)
        # A field is complete or missing.
        if not _is_optional(kind, field, truth) or not set(field.columns).isdisjoint(header):
            required.update(field.columns)
    missing = sorted(required - set(header))
    unknown = sorted(set(header) - allowed)
    repeated = sorted({name for name in header if header.count(name) > 1})
    for problem, names in (('missing', missing), ('unknown', unknown), ('repeated', repeated)):
        if names:
            listed = ', '.join(names[:5]) + (' ...' if len(names) > 5 else '')
            raise RecordingError(f'{path}: {problem} column {listed}; {kind.name} is expected')


def _is_optional(kind: MessageType, field: Field, truth: bool) -> bool:
    """Return whether a file may lack all columns of a field."""
    is_velocity = field.attribute in ('linear_velocity', 'angular_velocity')
    is_covariance = field.attribute.endswith('covariance')
    return (
        is_covariance
        or (truth and is_velocity)
        or (kind.array, field.attribute) in _OPTIONAL_FIELDS
    )


def _missing_field(kind: MessageType, field: Field, truth: bool) -> Any:
    """Return the value of a field without columns in all messages."""
    if field.attribute == 'orientation':
        return IDENTITY
    if field.attribute == 'status' or (truth and field.attribute.endswith('covariance')):
        return 0
    return _KNOWN_COVARIANCE if field.code[0] != 'f' else np.nan


def _parse_column(path: Path, name: str, column: Sequence[str], code: str) -> Any:
    """Return the numbers of a column; `code` is their type in a message."""
    convert: Any = float if code[0] == 'f' else int
    dtype = np.float64 if convert is float else np.int64

    def parse(texts: Sequence[str]) -> Any:
        joined = ''.join(texts)
        if not joined.isascii() or '_' in joined:
            # Python also accepts 1_000 and the digits of all scripts.
            raise ValueError
        return np.array(list(map(convert, texts)), dtype)

    try:
        numbers = parse(column)
    except _TEXT_ERRORS:
        for line, text in enumerate(column, 2):
            try:
                parse([text])
            except _TEXT_ERRORS:
                allowed = 'a 64-bit integer' if convert is int else 'a number'
                raise RecordingError(
                    f'{path}: line {line}: {name}: {text[:40]!r} is not allowed; must be {allowed}'
                ) from None
        raise
    if code == 'u4' and (is_bad := (numbers < 0) | (numbers > LARGEST)).any():
        line = int(np.argmax(is_bad))
        raise RecordingError(
            f'{path}: line {line + 2}: {name}: {numbers[line]} is not allowed; must be in '
            f'0 .. {LARGEST}'
        )
    return numbers


def _to_array(
    path: Path, kind: MessageType, table: dict[str, Any], count: int, truth: bool
) -> MessageArray:
    texts = []
    frame = _TRUTH_FRAME if truth else _FRAMES.get(kind.array, '')
    has_stamps = 'stamp_ns' in table and (kind.has_header or 'arrival_ns' not in table)
    for name, default in (('frame', frame), ('child', _TRUTH_CHILD), (kind.text, '')):
        column = table.get(name)
        texts.append(column[0] if column else default if count else '')
        if column and any(text != column[0] for text in column):
            distinct = sorted(set(column))
            noun = 'frames' if name in ('frame', 'child') else 'values'
            raise RecordingError(
                f'{path}: {name}: {len(distinct)} different {noun} ({", ".join(distinct[:4])}); '
                'must be the same on every line'
            )
    fields = {}
    for field in kind.csv_fields:
        columns = [table[name] for name in field.columns if name in table]
        if columns:
            values: Any = np.stack(columns, axis=-1).reshape(count, *field.shape)
        else:
            values = np.broadcast_to(_missing_field(kind, field, truth), (count, *field.shape))
        fields[field.attribute] = values
    if kind.array is ImuArray and 'qw' not in table:
        fields['orientation_covariance'] = np.broadcast_to(ABSENT_COVARIANCE, (count, 3, 3))
    frame, child, text = texts
    frame = frame if kind.has_header else ''
    if kind.text:
        fields[kind.text] = text
    stamps = table['stamp_ns' if has_stamps else 'arrival_ns']
    return kind.make_array(stamps, table.get('arrival_ns', stamps), frame, child, fields)


def _fits_short_layout(array: OdometryArray) -> bool:
    return bool(
        array.frame == _TRUTH_FRAME
        and array.child_frame == _TRUTH_CHILD
        and np.array_equal(array.arrival_ns, array.stamp_ns)
        and not array.pose_covariance.any()
        and not array.twist_covariance.any()
    )


# Camera info, with a column d0, d1 ... for each distortion coefficient.

_CAMERA_SIZES = (
    vector_field('size', 'width height', 'u4'),
    vector_field('binning', 'binning_x binning_y', 'u4'),
    vector_field('roi', 'roi_x_offset roi_y_offset roi_height roi_width roi_do_rectify', 'u4'),
)
_CAMERA_MATRICES = (
    matrix_field('matrix', 'k', 3, 3),
    matrix_field('rectification', 'r', 3, 3),
    matrix_field('projection', 'p', 3, 4),
)


def _camera_info_type(coefficients: int) -> MessageType:
    names = tuple(f'd{k}' for k in range(coefficients))
    distortion = Field('distortion', names, (coefficients,))
    fields = (*_CAMERA_SIZES, distortion, *_CAMERA_MATRICES)
    return MessageType(CAMERA_INFO.name, CameraInfoArray, fields, text='distortion_model')


def read_camera_info(path: Path) -> tuple[MessageArray, tuple[Finding, ...]]:
    """Read the camera info of one file; errors are those of `read_table`."""
    header = next(csv.reader(io.StringIO(_read_text(path), newline='')), [])
    coefficients = sum(name[:1] == 'd' and name[1:].isdecimal() for name in header)
    return read_table(path, _camera_info_type(coefficients))


def write_camera_info(path: Path, array: CameraInfoArray) -> None:
    """Write the camera info of one file; see `write_table`."""
    write_table(path, _camera_info_type(array.distortion.shape[1]), array)


# Feature tracks: one line per feature, and a line with id -1 for a frame without features.

_NO_FEATURE = -1


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class _FeatureLines(MessageArray):
    ids: IntArray
    age: IntArray
    numbers: FloatArray


_FEATURE_LINE = MessageType(
    FEATURES.name,
    _FeatureLines,
    (
        vector_field('ids', 'id', 'i8'),
        vector_field('age', 'age', 'i8'),
        vector_field('numbers', 'u v previous_u previous_v ray_x ray_y'),
    ),
)


def read_features(path: Path) -> tuple[FeatureArray, tuple[Finding, ...]]:
    """Read the feature tracks of one file; errors are those of `read_table`."""
    lines, notes = read_table(path, _FEATURE_LINE)
    assert isinstance(lines, _FeatureLines)
    is_new_frame = np.diff(lines.stamp_ns, prepend=lines.stamp_ns[:1] - 1) != 0
    is_new_frame |= np.diff(lines.arrival_ns, prepend=lines.arrival_ns[:1] - 1) != 0
    frames = np.flatnonzero(is_new_frame)
    is_feature = lines.ids != _NO_FEATURE
    if (is_feature & (lines.ids < 0)).any():
        bad_id = int(lines.ids[lines.ids < _NO_FEATURE][0])
        raise RecordingError(f'{path}: id: {bad_id} is not allowed; must be >= 0, or -1 for none')
    features_before = np.concatenate([[0], np.cumsum(is_feature)])
    numbers = lines.numbers[is_feature]
    array = FeatureArray(
        stamp_ns=lines.stamp_ns[frames],
        arrival_ns=lines.arrival_ns[frames],
        frame=lines.frame,
        first=features_before[np.append(frames, len(lines))],
        ids=lines.ids[is_feature],
        pixels=numbers[:, 0:2],
        previous=numbers[:, 2:4],
        age=lines.age[is_feature],
        rays=numbers[:, 4:6],
    )
    return array, notes


def write_features(path: Path, array: FeatureArray) -> None:
    """Write the feature tracks of one file; see `write_table`."""
    counts = np.diff(array.first)
    frame = np.repeat(np.arange(len(array)), np.maximum(counts, 1))
    is_feature = np.repeat(counts > 0, np.maximum(counts, 1))
    ids = np.full(len(frame), _NO_FEATURE, dtype=np.int64)
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
    write_table(path, _FEATURE_LINE, lines)


# Folders.

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
"""Topic and message type by file name without suffix."""


def list_csv_files(path: Path) -> dict[str, Path]:
    """Return the CSV files of a folder by stem (`imu.csv.gz` has stem `imu`).

    A file that exists both plain and as .gz raises RecordingError.
    """
    files: dict[str, Path] = {}
    for file in sorted(path.iterdir()):
        stem = _stem(file.name)
        if stem is None or not file.is_file():
            continue
        if stem in files:
            raise RecordingError(
                f'{path}: both {files[stem].name} and {file.name} are there; only one is allowed'
            )
        files[stem] = file
    return files


def read_csv_folder(path: Path, metadata: Metadata) -> Content:
    """Read all CSV files whose topic is known.

    File names are mapped to topics by `files:` of recording.yaml, else by `inputs:` of case.yaml,
    else by `DEFAULT_FILES`. A file that is missing, damaged or has other columns than its type
    needs raises RecordingError.
    """
    files = list_csv_files(path)
    case = path / 'case.yaml'
    targets, stated_in = dict(metadata.files), 'recording.yaml'
    if not targets and case.is_file():
        settings = load_yaml(case)
        inputs = settings.get('inputs') if isinstance(settings, dict) else None
        targets, stated_in = read_files(case, 'inputs', inputs or {}), 'case.yaml'
    targets_by_stem: dict[str, tuple[str, str]] = {}
    for name, target in targets.items():
        stem = _stem(name) or name
        if stem not in files:
            raise RecordingError(
                f'{path}: {name} is missing; {stated_in} names it for topic {target[0]}'
            )
        targets_by_stem[stem] = target
    content = Content(keeps_arrival=True)
    # The judge breaks ties of arrival by the order of the inputs, so theirs comes first.
    for stem in [*targets_by_stem, *(stem for stem in files if stem not in targets_by_stem)]:
        file = files[stem]
        topic, ros_type = targets_by_stem.get(stem) or DEFAULT_FILES.get(stem, ('', ''))
        if not topic:
            content.ignored.append(file.name)
            continue
        if topic in content.messages:
            raise RecordingError(f'{path}: {file.name}: topic {topic} has two files')
        truth_topic, truth_type = DEFAULT_FILES['truth']
        is_truth = ros_type == truth_type and (stem == 'truth' or topic == truth_topic)
        array: MessageArray
        if ros_type == FEATURES.name:
            array, notes = read_features(file)
        elif ros_type == CAMERA_INFO.name:
            array, notes = read_camera_info(file)
        else:
            array, notes = read_table(file, MESSAGE_TYPES[ros_type], truth=is_truth)
        content.messages[topic], content.ros_types[topic] = array, ros_type
        content.notes.extend(notes)
        if stem in ROLE_CLASSES and ros_type == DEFAULT_FILES[stem][1]:
            content.roles[stem] = topic
    transforms = path / 'static_transforms.yaml'
    if transforms.is_file():
        content.transforms += read_transforms(transforms)
    return content


def _stem(name: str) -> str | None:
    for suffix in ('.csv.gz', '.csv'):
        if name.endswith(suffix) and len(name) > len(suffix):
            return name[: -len(suffix)]
    return None
