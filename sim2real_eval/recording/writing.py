# SPDX-License-Identifier: Apache-2.0
"""Write a recording: mcap, sqlite3 or a folder of CSV files; never over anything that exists."""

from __future__ import annotations

import operator
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, repeat
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

import numpy as np
import yaml

from sim2real_eval.common.errors import RecordingError
from sim2real_eval.common.results import new_folder, remove_unfinished
from sim_sensors.camera.features import FeatureArray
from sim_sensors.camera.pinhole import CameraInfoArray
from sim_sensors.core.blocks import time_spans
from sim_sensors.core.measurements import IntArray
from .cdr import Encoded, encode_transforms
from .csv_folder import DEFAULT_FILES, write_camera_info, write_features
from .csv_table import write_table
from .mcap import write_checksums
from .message_types import CMD_VEL_TYPE, MESSAGE_TYPES, TF_TYPE, MessageType, default_type
from .metadata import transform_mappings
from .recording import OPTIONAL_ROLES, ROLE_CLASSES, Recording
from .single_messages import typestore

Storage = Literal['mcap', 'sqlite3', 'csv']
# Read by every rosbag2 since Iron; version 9 came with Jazzy's successors.
_BAG_VERSION: Literal[8] = 8

BAG_FILES = (
    'metadata.yaml',
    'recording.yaml',
    'static_transforms.yaml',
    '*.mcap',
    '*.db3',
    '*.csv',
)
"""Globs of all files of a recording that is written without `compress`."""


def write_recording(
    recording: Recording,
    path: str | Path,
    *,
    storage: Storage = 'mcap',
    compress: bool = False,
    beside: Callable[[Path], None] | None = None,
) -> None:
    """Write a recording as a folder that `read_recording` reads back to equal arrays.

    Labels, roles and frames go into a recording.yaml inside the folder; rosbag2 does not mind it.
    In a bag the receive time of a message is its arrival. Equal recordings give equal bytes.

    Parameters
    ----------
    recording : Recording
        What to write.
    path : path
        Folder to make. It appears only when it is complete.
    storage : str
        `mcap`, `sqlite3` or `csv`.
    compress : bool
        CSV only: write .csv.gz.
    beside : callable or None
        Writes other files into the folder that it is given, to appear with the recording.

    Raises
    ------
    RecordingError
        When the target exists, cannot be made, or there is nothing to write.

    Examples
    --------
    >>> import tempfile
    >>> from sim2real_eval.recording.reading import read_recording
    >>> from sim_sensors import motion_of
    >>> from sim_sensors.motion import truth_of
    >>> truth = truth_of(motion_of('line', duration=2.0))
    >>> drive = Recording('drive', 'line', '', {'/odom': truth}, {'truth': '/odom'})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_recording(drive, f'{folder}/drive')
    ...     again = read_recording(f'{folder}/drive')
    >>> again.name, bool((again.truth.position == truth.position).all())
    ('drive', True)
    """
    path = Path(path)
    if storage not in get_args(Storage):
        raise ValueError(f'storage must be mcap, sqlite3 or csv, got {storage!r}')
    if not any(len(array) for array in recording.messages.values()):
        raise RecordingError(f'{path}: recording {recording.name} holds no messages to write')
    remove_unfinished(path)
    if path.exists() or path.is_symlink():
        raise RecordingError(f'{path}: exists already; nothing is overwritten, name a new folder')
    try:
        # The folder has its final name already, for rosbag2 names the data file after it.
        with new_folder(path) as folder:
            if storage == 'csv':
                folder.mkdir()
                _write_csv(recording, folder, compress)
            else:
                topics = _bag_topics(recording, folder.name)
                write_bag(folder, topics, storage=storage, scenario=recording.scenario)
            _write_metadata(recording, folder, storage, compress)
            if beside is not None:
                beside(folder)
    except (OSError, sqlite3.Error) as error:
        reason = getattr(error, 'strerror', None) or error
        raise RecordingError(f'{path}: cannot be written: {reason}') from None


def _type_of(recording: Recording, topic: str) -> MessageType:
    array = recording.messages[topic]
    kind = MESSAGE_TYPES.get(recording.ros_types.get(topic, ''))
    if kind is None or kind.array is not type(array):
        return default_type(array)
    if not kind.has_header and (
        array.frame or not np.array_equal(array.stamp_ns, array.arrival_ns)
    ):
        return MESSAGE_TYPES[CMD_VEL_TYPE]
    return kind


def _bag_topics(recording: Recording, where: str) -> Iterator[BagTopic]:
    if recording.transforms:
        first = min(int(a.arrival_ns.min()) for a in recording.messages.values() if len(a))
        data = encode_transforms(recording.transforms, recording.start_ns)
        yield '/tf_static', TF_TYPE, np.array([first]), [data]
    for topic, array in recording.messages.items():
        if (np.diff(array.arrival_ns) < 0).any():
            array = array.take(np.argsort(array.arrival_ns, kind='stable'))
        kind = _type_of(recording, topic)
        yield topic, kind.name, array.arrival_ns, Encoded(kind, array, f'{where}: {topic}')


class _Rows(Protocol):
    """Serialised messages that can be sliced: a list, or what serialises them then."""

    def __getitem__(self, part: slice, /) -> Sequence[bytes]: ...


BagTopic = tuple[str, str, IntArray, _Rows]
"""Topic and type; receive times (n,), ns, which never decrease, and serialised messages of it."""


def write_bag(
    folder: Path, topics: Iterable[BagTopic], *, storage: Storage = 'mcap', scenario: str = ''
) -> None:
    """Write a rosbag2 folder, all messages in the order of their times.

    Ties keep the order of the topics, so that equal topics give equal bags. Messages are
    serialised a span of time at a time.
    """
    from rosbags.rosbag2 import StoragePlugin, Writer

    plugin = StoragePlugin.MCAP if storage == 'mcap' else StoragePlugin.SQLITE3
    writer = Writer(folder, version=_BAG_VERSION, storage_plugin=plugin)
    if scenario:
        writer.set_custom_data('scenario', scenario)
    with writer:
        kept = [
            (writer.add_connection(topic, ros_type, typestore=typestore()), times, messages)
            for topic, ros_type, times, messages in topics
        ]
        for parts in time_spans([times for _, times, _ in kept]):
            rows: list[tuple[int, Any, bytes]] = []
            for (connection, times, messages), part in zip(kept, parts, strict=True):
                if part.start < part.stop:
                    received = times[part].tolist()
                    same = repeat(connection, len(received))
                    rows += zip(received, same, messages[part], strict=True)
            for time, connection, message in sorted(rows, key=operator.itemgetter(0)):
                writer.write(connection, time, message)
    if storage == 'mcap':
        write_checksums(folder / f'{folder.name}.mcap')


def _write_csv(recording: Recording, folder: Path, compress: bool) -> None:
    for topic, (file, kind) in _csv_names(recording, compress).items():
        truth = file.split('.')[0] == 'truth'
        array = recording.messages[topic]
        if isinstance(array, FeatureArray):
            write_features(folder / file, array)
        elif isinstance(array, CameraInfoArray):
            write_camera_info(folder / file, array)
        else:
            write_table(folder / file, kind, array, truth=truth)
    if recording.transforms:
        text = yaml.safe_dump(transform_mappings(recording.transforms), sort_keys=False)
        (folder / 'static_transforms.yaml').write_text(text, encoding='utf-8')


def _csv_names(recording: Recording, compress: bool) -> dict[str, tuple[str, MessageType]]:
    """File name and type by topic: the usual name where topic or role are the usual ones."""
    stems = {topic: role for role, topic in recording.roles.items()}
    suffix = '.csv.gz' if compress else '.csv'
    usual = {entry: stem for stem, entry in DEFAULT_FILES.items()}
    result: dict[str, tuple[str, MessageType]] = {}
    taken = set(stems.values())
    for topic in recording.messages:
        kind = _type_of(recording, topic)
        stem = stems.get(topic) or usual.get((topic, kind.name), '')
        if not stem or (topic not in stems and stem in taken):
            plain = ''.join(c if c.isalnum() else '_' for c in topic.strip('/')) or 'topic'
            names = (f'{plain}_{number}' if number > 1 else plain for number in count(1))
            stem = next(name for name in names if name not in taken and name not in DEFAULT_FILES)
        taken.add(stem)
        result[topic] = (f'{stem}{suffix}', kind)
    return result


def _write_metadata(recording: Recording, folder: Path, storage: str, compress: bool) -> None:
    lagged = any(
        not np.array_equal(array.arrival_ns, array.stamp_ns)
        for array in recording.messages.values()
    )
    content: dict[str, Any] = {
        'name': recording.name,
        'scenario': recording.scenario,
        'topics': {
            role: recording.roles.get(role)
            for role in ROLE_CLASSES
            if role not in OPTIONAL_ROLES or role in recording.roles
        },
        'arrival': 'recorded' if lagged else 'stamp',
    }
    if recording.reference is not None:
        content['truth'] = recording.reference.to_mapping()
    if storage == 'csv':
        content['files'] = {
            file: {'topic': topic, 'type': kind.name}
            for topic, (file, kind) in _csv_names(recording, compress).items()
        }
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    (folder / 'recording.yaml').write_text(text, encoding='utf-8')
