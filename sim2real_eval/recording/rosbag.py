# SPDX-License-Identifier: Apache-2.0
"""Messages of a bag of ROS 2 or ROS 1, through the `rosbags` library or ROS itself."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from sim2real_eval.common.errors import RecordingError
from sim_sensors.core.blocks import BLOCK
from . import findings
from .cdr import Decoder, decode_transforms
from .checks import MAXIMUM_BROKEN
from .mcap import check_checksums, read_messages
from .message_types import (
    GPS_FIX,
    MESSAGE_TYPES,
    NAMED_TYPES,
    POSE_TYPES,
    TF_TYPE,
    default_type,
    known_type,
    normalised_type,
)
from .poses import frame_pair, poses_between
from .recording import ROLE_CLASSES, Content, StaticTransform
from .single_messages import Decoded, typestore
from .storage import LARGEST, check_file, check_unpacked_size, databases, opened, unpacked_message

Wanted = Callable[[str, str], bool]

STORAGE_SUFFIXES = ('.mcap', '.db3', '.bag')
TF_STATIC = '/tf_static'
_NAV_SAT_FIX = 'sensor_msgs/msg/NavSatFix'


class RawTopic:
    """Messages of one topic in the order of their receive times, decoded as they come.

    Attributes
    ----------
    ros_type : str
        Full name.
    count, announced : int
        Messages read, and those that the bag says it has.
    """

    def __init__(self, where: str, ros_type: str) -> None:
        self.ros_type = ros_type
        self.count, self.announced = 0, 0
        self._transforms: list[tuple[int, list[tuple[int, StaticTransform]]]] = []
        self._where = where
        self._decoder = None if ros_type == TF_TYPE else Decoder(known_type(ros_type), where)
        self._data: list[bytes] = []
        self._received_ns: list[int] = []
        self._waiting = 0

    def add(self, received_ns: Iterable[Any], data: Iterable[Any]) -> None:
        """Take the next messages."""
        rows = list(map(bytes, data))
        self.count += len(rows)
        self._data += rows
        self._waiting += sum(map(len, rows))
        # SQLite's columns are untyped: damage can turn a number into anything.
        self._received_ns += map(operator.index, received_ns)
        if len(self._data) >= BLOCK or self._waiting > LARGEST:
            self._decode()

    def decoded(self) -> Decoded:
        """Return the messages of a topic that is not one of /tf."""
        self._decode()
        assert self._decoder is not None
        found = self._decoder.decoded()
        if (np.diff(found.array.arrival_ns) < 0).any():
            order = np.argsort(found.array.arrival_ns, kind='stable')
            found = dataclasses.replace(found, array=found.array.take(order))
        return found

    def transforms(self) -> list[tuple[int, StaticTransform]]:
        """Return the stamps and transforms of a topic of /tf."""
        self._decode()
        return [one for _, found in sorted(self._transforms, key=itemgetter(0)) for one in found]

    def _decode(self) -> None:
        data, received_ns = self._data, self._received_ns
        self._data, self._received_ns, self._waiting = [], [], 0
        if self._decoder is None:
            found = [decode_transforms(one, self._where) for one in data]
            self._transforms += zip(received_ns, found, strict=True)
        else:
            try:
                times = np.array(received_ns, np.int64)
            except OverflowError:
                raise RecordingError(f'{self._where}: a time exceeds 64 bits') from None
            self._decoder.add(data, times)


@dataclasses.dataclass
class RawBag:
    """Topics that are wanted, types of the other topics, and the custom data of the bag.

    Of topics `undefined` the bag does not say how their messages are laid out.
    """

    topics: dict[str, RawTopic] = dataclasses.field(default_factory=dict)
    ignored: dict[str, str] = dataclasses.field(default_factory=dict)
    custom: Mapping[str, str] = dataclasses.field(default_factory=dict)
    undefined: set[str] = dataclasses.field(default_factory=set)

    def announce(self, where: str, topic: str, ros_type: str, wanted: Wanted) -> bool:
        """Enter a topic; returns whether its messages are wanted."""
        name = normalised_type(ros_type)
        if not wanted(topic, name):
            self.ignored[topic] = name
            return False
        known = self.topics.setdefault(topic, RawTopic(f'{where}: {topic}', name))
        if known.ros_type != name:
            raise RecordingError(
                f'{where}: {topic} holds both {known.ros_type} and {name}; one type is allowed'
            )
        return True


def read_bag(path: Path, reader: str, topics: Mapping[str, str | None]) -> Content:
    """Read the messages of all known types, and the static transforms.

    Parameters
    ----------
    path : Path
        Folder with metadata.yaml, or one .mcap or .db3 file, or a .bag of ROS 1.
    reader : str
        `rosbags`, `rosbag2_py` (needs a sourced ROS installation), or `auto`: rosbags where it is
        installed, for it is the same code on every machine, else rosbag2_py.
    topics : mapping of str to (str or None)
        Role to topic: point clouds and camera infos, which are large as a rule or common, are
        read of those that have a role alone, and so are poses without covariance. Two frames of
        /tf may be the truth: `/tf:map.base_link`.

    Raises
    ------
    RecordingError
        When the bag is missing, incomplete or corrupt, or a topic has several frames.
    """
    named = {
        kind.name: topics[role]
        for role, array in ROLE_CLASSES.items()
        for kind in NAMED_TYPES.values()
        if kind.array is array
    }

    truth = topics.get('truth') or ''
    pair = frame_pair(truth)
    named |= dict.fromkeys(POSE_TYPES, truth)

    def is_wanted(topic: str, ros_type: str) -> bool:
        if ros_type in named:
            return topic.strip('/') == (named[ros_type] or '').strip('/')
        if ros_type == TF_TYPE:
            return topic == TF_STATIC or (pair is not None and topic == pair[0])
        return ros_type in MESSAGE_TYPES or ros_type == GPS_FIX.name

    raw = _read_raw_bag(path, is_wanted, reader)
    content = Content(scenario=raw.custom.get('scenario'))
    content.ignored = [f'{topic} ({name})' for topic, name in raw.ignored.items()]
    for topic in raw.undefined & set(raw.ignored):
        content.notes.append(findings.NO_DEFINITION(topic, found=raw.ignored[topic]))
    moving: list[tuple[int, StaticTransform]] = []
    has_fixes = any(entry.ros_type == _NAV_SAT_FIX for entry in raw.topics.values())
    for topic, entry in raw.topics.items():
        where = f'{path}: {topic}'
        if entry.ros_type == GPS_FIX.name and has_fixes and topic != topics.get('gps'):
            content.ignored.append(f'{topic} ({entry.ros_type})')
            continue
        if (count := entry.count) < entry.announced:
            content.notes.append(findings.CUT_SHORT(topic, found=count, announced=entry.announced))
        if entry.ros_type == TF_TYPE:
            found = entry.transforms()
            if topic == TF_STATIC:
                content.transforms += [transform for _, transform in found]
            else:
                moving = found
            continue
        try:
            decoded = entry.decoded()
        except RecordingError as error:
            if entry.ros_type not in NAMED_TYPES:
                raise
            problem, count = str(error).removeprefix(f'{where}: '), entry.count
            content.notes.append(findings.LEFT_OUT(topic, problem=problem, count=count))
            content.ignored.append(f'{topic} ({entry.ros_type})')
            continue
        content.messages[topic], content.ros_types[topic] = decoded.array, entry.ros_type
        if entry.ros_type == GPS_FIX.name:
            content.ros_types[topic] = default_type(decoded.array).name
            content.notes.append(findings.READ_AS_FIX(topic))
        left_out = sum(count for _, count in decoded.other_frames)
        if left_out > MAXIMUM_BROKEN * entry.count:
            frames = ', '.join(frame for frame, _ in decoded.other_frames)
            raise RecordingError(
                f'{where}: frame_id is {decoded.array.frame!r} but also {frames}; '
                'one topic must have one frame'
            )
        for frame, count in decoded.other_frames:
            values = {'found': repr(frame), 'expected': repr(decoded.array.frame)}
            content.notes.append(findings.OTHER_FRAME(topic, count=count, **values))
    if pair is not None:
        where = f'{path}: {truth}'
        content.messages[truth] = poses_between(where, *pair[1:], moving, content.transforms)
    return content


def _read_raw_bag(path: Path, wanted: Wanted, reader: str) -> RawBag:
    if path.is_dir() and not (path / 'metadata.yaml').is_file():
        if any(path.glob('*.bag')):
            raise RecordingError(f'{path}: holds bags of ROS 1; give the files: {path}/*.bag')
        raise RecordingError(
            f'{path}: metadata.yaml is missing; give the .mcap, .db3 or .bag file itself, '
            'or run `ros2 bag reindex`'
        )
    if reader not in ('auto', 'rosbags', 'rosbag2_py'):
        raise ValueError(f'reader must be auto, rosbags or rosbag2_py, got {reader!r}')
    if reader == 'auto':
        reader = 'rosbags' if importlib.util.find_spec('rosbags') else 'rosbag2_py'
    try:
        for file in [path] if path.is_file() else filter(Path.is_file, sorted(path.iterdir())):
            check_unpacked_size(file)
            if file.suffix == '.db3':
                check_file(file)
            elif file.suffix == '.mcap':
                check_checksums(file)
        return (_read if reader == 'rosbags' else _read_native)(path, wanted)
    except (RecordingError, MemoryError, OSError):
        raise
    except Exception as error:
        # Damaged bytes surface as whatever the parser tripped over (struct, sqlite, zstd, YAML,
        # text decoding, memory); to the user all of them mean the same.
        text = ' '.join(str(error).split())[:200] or type(error).__name__
        raise RecordingError(f'{path}: not a readable bag: {text}') from error


def _read_undefined(path: Path, wanted: Wanted) -> RawBag:
    """Read SQLite storage without its message definitions, as rosbags cannot.

    rosbag2 notes a type whose definition it did not find with the encoding `unknown`, which
    rosbags refuses together with the rest of the bag.
    """
    bag = RawBag()
    for file in [path] if path.is_file() else databases(path):
        with opened(file) as database:
            known = set(
                database.execute(
                    "SELECT topic_type FROM message_definitions WHERE encoding != 'unknown'"
                )
            )
            chosen: dict[int, RawTopic] = {}
            for number, topic, ros_type in database.execute('SELECT id, name, type FROM topics'):
                if (ros_type,) not in known:
                    bag.undefined.add(topic)
                if bag.announce(str(path), topic, ros_type, wanted):
                    chosen[number] = bag.topics[topic]
            rows = 'SELECT topic_id, timestamp, data FROM messages ORDER BY timestamp'
            for number, received_ns, data in database.execute(rows):
                if number in chosen:
                    if data.startswith(_ZSTANDARD):
                        data = unpacked_message(data, str(path))
                    chosen[number].add([received_ns], [data])
    return bag


_ZSTANDARD = b'\x28\xb5\x2f\xfd'
"""With which compressed data begins; a message begins with 0."""


def _read(path: Path, wanted: Wanted) -> RawBag:
    """Read a bag, messages of ROS 1 as ROS 2 would have serialised them."""
    from rosbags import rosbag1, rosbag2

    bag = RawBag()
    is_ros1 = path.suffix == '.bag' and path.is_file()
    reader: Any = (rosbag1 if is_ros1 else rosbag2).Reader(path)
    try:
        reader.open()
    except KeyError as error:
        if error.args != ('unknown',):
            raise
        return _read_undefined(path, wanted)
    with contextlib.closing(reader):
        chosen = []
        names = {one.topic: f'/{one.topic.strip("/")}' for one in reader.connections}
        for connection in reader.connections:
            name = names[connection.topic]
            if bag.announce(str(path), name, connection.msgtype, wanted):
                bag.topics[name].announced += connection.msgcount
                chosen.append(connection)
        if not is_ros1:
            bag.custom = dict(reader.storage.metadata.custom or {})
        for topic, received_ns, data in _messages(reader, chosen) if chosen else ():
            bag.topics[names[topic]].add(received_ns, data)
    return bag


def _messages(
    reader: Any, chosen: Sequence[Any]
) -> Iterator[tuple[str, Iterable[Any], Iterable[Any]]]:
    """Yield topic, receive times and messages of an open bag, some at a time."""
    if not hasattr(reader, 'storage'):
        for connection, received_ns, data in reader.messages(chosen):
            ros_type = normalised_type(connection.msgtype)
            yield connection.topic, [received_ns], [typestore().ros1_to_cdr(data, ros_type)]
        return
    files = [one.path for one in getattr(reader.storage, 'storages', [reader.storage])]
    packed = reader.compression_mode == 'message'
    found: Iterator[tuple[str, Iterable[Any], Iterable[Any]]]
    if reader.compression_mode != 'file' and all(file.suffix == '.mcap' for file in files):
        topics = {connection.topic for connection in chosen}
        found = chain.from_iterable(read_messages(file, topics) for file in files)
    else:
        if packed:
            # Or rosbags would unpack each message, whatever its size.
            reader.storage.metadata = reader.storage.metadata._replace(compression_mode=None)
        found = ((one.topic, [time], [data]) for one, time, data in reader.messages(chosen))
    for topic, times, messages in found:
        where = f'{reader.path}: {topic}'
        yield (
            topic,
            times,
            (unpacked_message(one, where) for one in messages) if packed else messages,
        )


# The same through the rosbag2_py of a ROS installation, for machines that have ROS but not
# `rosbags`, and for storage plug-ins that only ROS has.


def _read_native(path: Path, wanted: Wanted) -> RawBag:
    try:
        import rosbag2_py
    except ImportError:
        raise RecordingError(
            f'{path}: neither rosbags (pip install rosbags) nor rosbag2_py (source a ROS '
            'installation) can be imported'
        ) from None
    storage = {'.mcap': 'mcap', '.db3': 'sqlite3'}.get(path.suffix, '')
    reader = rosbag2_py.SequentialReader()
    reader.open(
        rosbag2_py.StorageOptions(uri=str(path), storage_id=storage),
        rosbag2_py.ConverterOptions('', ''),
    )
    bag = RawBag()
    counts = {
        entry.topic_metadata.name: int(entry.message_count)
        for entry in reader.get_metadata().topics_with_message_count
    }
    for topic in reader.get_all_topics_and_types():
        if bag.announce(str(path), topic.name, topic.type, wanted):
            bag.topics[topic.name].announced = counts.get(topic.name, 0)
    bag.custom = dict(getattr(reader.get_metadata(), 'custom_data', None) or {})
    if bag.topics:
        reader.set_filter(rosbag2_py.StorageFilter(topics=list(bag.topics)))
    while bag.topics and reader.has_next():
        name, data, received_ns = reader.read_next()[:3]
        bag.topics[name].add([received_ns], [data])
    return bag
