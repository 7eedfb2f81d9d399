# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Writing of recordings as mcap, sqlite3 or a folder of CSV files, to new folders only."""

from __future__ import annotations

import operator
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, repeat
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

import numpy as np
import yaml

from sim2real_eval.common.findings import RecordingError
from sim2real_eval.common.results import new_folder
from sim_sensors.camera.features import FeatureArray
from sim_sensors.camera.pinhole import CameraInfoArray
from sim_sensors.core.blocks import BLOCK
from sim_sensors.core.measurements import IntArray, MessageArray
from .cdr import encode, encode_transforms, typestore
from .csv_files import DEFAULT_FILES, write_camera_info, write_features, write_table
from .message_types import CMD_VEL_TYPE, MESSAGE_TYPES, TF_TYPE, MessageType, default_type
from .metadata import transform_mappings
from .recording import OPTIONAL_ROLES, ROLE_CLASSES, Recording
from .storage import write_checksums

Storage = Literal['mcap', 'sqlite3', 'csv']
_BAG_VERSION: Literal[8] = 8
"""Version that every rosbag2 since Iron reads; version 9 came with Jazzy's successors."""


def bag_files(name: str) -> list[str]:
    """Return the names of the files of a recording `name` with the storage `mcap`."""
    return ['metadata.yaml', f'{name}.mcap', 'recording.yaml']


def write_recording(
    recording: Recording,
    path: str | Path,
    *,
    storage: Storage = 'mcap',
    compress: bool = False,
    beside: Callable[[Path], None] | None = None,
) -> None:
    """Write a recording as a folder that `read_recording` reads back to equal arrays.

    Labels, roles and frames go into a recording.yaml inside the folder, which rosbag2 ignores.
    In a bag the receive time of a message is its arrival. Equal recordings give equal bytes.

    Parameters
    ----------
    recording : Recording
        Recording to write.
    path : path
        New folder. It appears only when it is complete.
    storage : str
        `mcap`, `sqlite3` or `csv`.
    compress : bool
        CSV only: write .csv.gz.
    beside : callable or None
        Function that writes other files into the folder before it appears.

    Raises
    ------
    RecordingError
        When the target exists or cannot be made, or the recording is empty.

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
    if path.exists() or path.is_symlink():
        raise RecordingError(f'{path}: exists already and is not overwritten; name a new folder')
    try:
        # The folder already has its final name, because rosbag2 names the data file after it.
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
        yield topic, kind.name, array.arrival_ns, _LazyMessages(kind, array, f'{where}: {topic}')


class _SlicedMessages(Protocol):
    """Serialised messages that can be sliced, such as a list."""

    def __getitem__(self, part: slice, /) -> Sequence[bytes]: ...


class _LazyMessages:
    """Messages of an array, serialised when a slice is taken; all at once may be gigabytes."""

    def __init__(self, kind: MessageType, array: MessageArray, where: str) -> None:
        self._kind, self._array, self._where = kind, array, where

    def __getitem__(self, part: slice) -> list[bytes]:
        return encode(self._kind, self._array.take(part), self._where)


BagTopic = tuple[str, str, IntArray, _SlicedMessages]
"""Topic, type, non-decreasing receive times (n,) in ns, and serialised messages."""


def write_bag(
    folder: Path, topics: Iterable[BagTopic], *, storage: Storage = 'mcap', scenario: str = ''
) -> None:
    """Write a rosbag2 folder with all messages in the order of their times.

    Messages with equal times keep the order of the topics, so that equal topics give equal bags.
    Messages are serialised for one span of time after another.
    """
    from rosbags.rosbag2 import StoragePlugin, Writer

    plugin = StoragePlugin.MCAP if storage == 'mcap' else StoragePlugin.SQLITE3
    writer = Writer(folder, version=_BAG_VERSION, storage_plugin=plugin)
    if scenario:
        writer.set_custom_data('scenario', scenario)
    with writer:
        sources = [
            (writer.add_connection(topic, ros_type, typestore=typestore()), times, messages)
            for topic, ros_type, times, messages in topics
        ]
        cuts = [times[BLOCK::BLOCK] for _, times, _ in sources]
        edges = np.unique(np.concatenate([np.zeros(0, np.int64), *cuts]))
        starts = [0] * len(sources)
        for edge in [*edges.tolist(), None]:
            rows: list[tuple[int, Any, bytes]] = []
            for number, (connection, times, messages) in enumerate(sources):
                start = starts[number]
                stop = len(times) if edge is None else int(np.searchsorted(times, edge, 'right'))
                if start < stop:
                    part, starts[number] = slice(start, stop), stop
                    rows += zip(
                        times[part].tolist(), repeat(connection), messages[part], strict=False
                    )
            for time, connection, message in sorted(rows, key=operator.itemgetter(0)):
                writer.write(connection, time, message)
    if storage == 'mcap':
        write_checksums(folder / f'{folder.name}.mcap')


def _write_csv(recording: Recording, folder: Path, compress: bool) -> None:
    for topic, (file, kind) in _csv_names(recording, compress).items():
        is_truth = file.split('.')[0] == 'truth'
        array = recording.messages[topic]
        if isinstance(array, FeatureArray):
            write_features(folder / file, array)
        elif isinstance(array, CameraInfoArray):
            write_camera_info(folder / file, array)
        else:
            write_table(folder / file, kind, array, truth=is_truth)
    if recording.transforms:
        text = yaml.safe_dump(transform_mappings(recording.transforms), sort_keys=False)
        (folder / 'static_transforms.yaml').write_text(text, encoding='utf-8')


def _csv_names(recording: Recording, compress: bool) -> dict[str, tuple[str, MessageType]]:
    """Return file name and type by topic; default topics and roles have default names."""
    stems = {topic: role for role, topic in recording.roles.items()}
    suffix = '.csv.gz' if compress else '.csv'
    default_stems = {target: stem for stem, target in DEFAULT_FILES.items()}
    names: dict[str, tuple[str, MessageType]] = {}
    used_stems = set(stems.values())
    for topic in recording.messages:
        kind = _type_of(recording, topic)
        stem = stems.get(topic) or default_stems.get((topic, kind.name), '')
        if not stem or (topic not in stems and stem in used_stems):
            base = ''.join(c if c.isalnum() else '_' for c in topic.strip('/')) or 'topic'
            candidates = (f'{base}_{number}' if number > 1 else base for number in count(1))
            stem = next(
                name for name in candidates if name not in used_stems and name not in DEFAULT_FILES
            )
        used_stems.add(stem)
        names[topic] = (f'{stem}{suffix}', kind)
    return names


def _write_metadata(recording: Recording, folder: Path, storage: str, compress: bool) -> None:
    has_latency = any(
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
        'arrival': 'recorded' if has_latency else 'stamp',
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
