# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Messages of a ROS 2 or ROS 1 bag, read by the `rosbags` library or by ROS itself."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from sim2real_eval.common.findings import RecordingError
from sim_sensors.core.blocks import BLOCK
from sim_sensors.core.errors import Remark
from sim_sensors.core.installation import pip_install
from . import checks
from .cdr import DecodedTopic, TopicDecoder, decode_transforms, typestore
from .message_types import (
    GPS_FIX,
    MESSAGE_TYPES,
    NAMED_TYPES,
    POSE_TYPES,
    TF_TYPE,
    default_type,
    find_type,
    normalise_type_name,
)
from .poses import interpolate_transforms, parse_frame_pair
from .recording import ROLE_CLASSES, Content, StaticTransform
from .repairs import MAXIMUM_BROKEN
from .storage import (
    LARGEST,
    allow_foreign_schemas,
    check_checksums,
    check_database,
    check_unpacked_size,
    list_databases,
    open_database,
    unpack_message,
)

STORAGE_SUFFIXES = ('.mcap', '.db3', '.bag')
TF_STATIC = '/tf_static'
_NAV_SAT_FIX = 'sensor_msgs/msg/NavSatFix'
_ZSTANDARD = b'\x28\xb5\x2f\xfd'
"""First bytes of compressed data; an uncompressed message begins with 0."""
_ROS1, _ROS2 = 'ros1', 'cdr'
"""Encodings of messages in MCAP that are read."""
_UNUSABLE_METADATA = ('Storage plugin', 'Serialization format', 'Invalid bag metadata')
"""Beginnings of the errors of rosbags after which the files are read without metadata.yaml."""

TopicFilter = Callable[[str, str], bool]
"""Function of topic and type that returns True for a topic to read."""


class RawTopic:
    """Messages of one topic, decoded in batches as they are read.

    Attributes
    ----------
    ros_type : str
        Full type name.
    count, announced : int
        Number of messages read, and number that the bag announces.
    """

    def __init__(self, where: str, ros_type: str) -> None:
        self.ros_type = ros_type
        self.count, self.announced = 0, 0
        self._transforms: list[tuple[int, list[tuple[int, StaticTransform]]]] = []
        self._where = where
        self._decoder = None if ros_type == TF_TYPE else TopicDecoder(find_type(ros_type), where)
        self._data: list[bytes] = []
        self._received_ns: list[int] = []
        self._waiting_bytes = 0

    def add(self, received_ns: Any, data: Any) -> None:
        """Add a serialised message."""
        message = bytes(data)
        self.count += 1
        self._data.append(message)
        # SQLite columns are untyped: damage can turn a number into any type.
        self._received_ns.append(operator.index(received_ns))
        self._waiting_bytes += len(message)
        if len(self._data) >= BLOCK or self._waiting_bytes > LARGEST:
            self._decode_batch()

    def decode(self) -> DecodedTopic:
        """Return the messages of a topic of any type but TFMessage, in the order received."""
        self._decode_batch()
        assert self._decoder is not None
        topic = self._decoder.decode()
        if (np.diff(topic.array.arrival_ns) < 0).any():
            order = np.argsort(topic.array.arrival_ns, kind='stable')
            topic = dataclasses.replace(topic, array=topic.array.take(order))
        return topic

    def transforms(self) -> list[tuple[int, StaticTransform]]:
        """Return stamps and transforms of a TFMessage topic, in the order received."""
        self._decode_batch()
        in_order = sorted(self._transforms, key=operator.itemgetter(0))
        return [stamped for _, message in in_order for stamped in message]

    def _decode_batch(self) -> None:
        data, received_ns = self._data, self._received_ns
        self._data, self._received_ns, self._waiting_bytes = [], [], 0
        if self._decoder is None:
            messages = [decode_transforms(message, self._where) for message in data]
            self._transforms += zip(received_ns, messages, strict=True)
            return
        try:
            times = np.array(received_ns, np.int64)
        except OverflowError:
            raise RecordingError(f'{self._where}: a time exceeds 64 bits') from None
        self._decoder.add(data, times)


@dataclasses.dataclass
class RawBag:
    """Topics of a bag before conversion.

    Attributes
    ----------
    topics : dict of str to RawTopic
        Topics that were asked for.
    ignored : dict of str to str
        Types of the other topics.
    custom : mapping of str to str
        Custom data in the bag's metadata.
    undefined : set of str
        Topics whose message definition is missing in the bag.
    metadata_problem : str
        Reason why metadata.yaml was not used; empty if it was.
    """

    topics: dict[str, RawTopic] = dataclasses.field(default_factory=dict)
    ignored: dict[str, str] = dataclasses.field(default_factory=dict)
    custom: Mapping[str, str] = dataclasses.field(default_factory=dict)
    undefined: set[str] = dataclasses.field(default_factory=set)
    metadata_problem: str = ''

    def announce(self, where: str, topic: str, ros_type: str, is_wanted: TopicFilter) -> bool:
        """Register a topic; return whether its messages are to be read."""
        name = normalise_type_name(ros_type)
        if not is_wanted(topic, name):
            self.ignored[topic] = name
            return False
        raw_topic = self.topics.setdefault(topic, RawTopic(f'{where}: {topic}', name))
        if raw_topic.ros_type != name:
            raise RecordingError(
                f'{where}: {topic} holds both {raw_topic.ros_type} and {name}; one type is allowed'
            )
        return True


def find_storage_suffix(file: Path) -> str:
    """Return the suffix of a bag's file, compressed by zstd or not; empty for other files.

    Examples
    --------
    >>> find_storage_suffix(Path('a.mcap')), find_storage_suffix(Path('a.db3.zstd'))
    ('.mcap', '.db3')
    """
    name = Path(file.stem) if file.suffix in ('.zstd', '.zst') else file
    return name.suffix if name.suffix in STORAGE_SUFFIXES else ''


def read_bag(path: Path, reader: str, topics: Mapping[str, str | None]) -> Content:
    """Read the messages of all known types, and the static transforms.

    Parameters
    ----------
    path : Path
        Folder with metadata.yaml, a .mcap or .db3 file, or a ROS 1 .bag file.
    reader : str
        `rosbags`, `rosbag2_py` (needs a sourced ROS installation), or `auto`: rosbags where it is
        installed, because it is the same code on every machine, else rosbag2_py.
    topics : mapping of str to (str or None)
        Role to topic. Point clouds, camera infos and poses without covariance are read only from
        topics with a role. Two frames of /tf may be the truth: `/tf:map.base_link`.

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
    pair = parse_frame_pair(truth)
    named |= dict.fromkeys(POSE_TYPES, truth)

    def is_wanted(topic: str, ros_type: str) -> bool:
        if ros_type in named:
            return topic.strip('/') == (named[ros_type] or '').strip('/')
        if ros_type == TF_TYPE:
            moving_topic = pair[0] if pair else f'/{truth.strip("/")}'
            return topic == moving_topic or topic.endswith(TF_STATIC)
        return ros_type in MESSAGE_TYPES or ros_type == GPS_FIX.name

    bag = _read_raw_bag(path, is_wanted, reader)
    content = Content(scenario=bag.custom.get('scenario'))
    content.ignored = [f'{topic} ({name})' for topic, name in bag.ignored.items()]
    if bag.metadata_problem:
        content.notes.append(checks.METADATA_UNUSED(problem=bag.metadata_problem))
    for topic in bag.undefined & set(bag.ignored):
        content.notes.append(checks.NO_DEFINITION(topic, found=bag.ignored[topic]))
    moving: list[tuple[int, StaticTransform]] = []
    has_fixes = any(raw.ros_type == _NAV_SAT_FIX for raw in bag.topics.values())
    gps_topic = (topics.get('gps') or '').strip('/')
    static = _static_topics(
        [name for name, raw in bag.topics.items() if raw.ros_type == TF_TYPE], topics
    )
    for topic, raw in bag.topics.items():
        if raw.ros_type == TF_TYPE and topic.endswith(TF_STATIC) and topic not in static:
            content.ignored.append(f'{topic} ({raw.ros_type})')
            continue
        if raw.ros_type == GPS_FIX.name and has_fixes and topic.strip('/') != gps_topic:
            content.ignored.append(f'{topic} ({raw.ros_type})')
            continue
        if raw.count < raw.announced:
            counts = {'found': raw.count, 'announced': raw.announced}
            problem = Remark('{found:d} messages found, {announced:d} announced', **counts)
            content.notes.append(checks.CUT_SHORT(topic, problem=problem))
        if topic in static:
            content.transforms += [transform for _, transform in raw.transforms()]
        elif raw.ros_type == TF_TYPE and pair is None:
            raise RecordingError(f'{path}: {_explain_frames(topic, raw)}')
        elif raw.ros_type == TF_TYPE:
            moving = raw.transforms()
        else:
            _add_topic(content, path, topic, raw)
    if pair is not None:
        content.messages[truth] = interpolate_transforms(
            f'{path}: {truth}', *pair[1:], moving, content.transforms
        )
    return content


def _static_topics(names: Iterable[str], topics: Mapping[str, str | None]) -> list[str]:
    """Return the topics of static transforms: /tf_static, and that in the namespace of the robot.

    If there are several robots, only those whose topics have a role count.
    """
    found = [name for name in names if name.endswith(TF_STATIC)]
    named = [f'/{(topic or "").strip("/")}' for topic in topics.values()]
    robots = [name for name in found if name != TF_STATIC]
    if len(robots) > 1:
        prefixes = {name: name.removesuffix(TF_STATIC[1:]) for name in robots}
        robots = [n for n in robots if any(topic.startswith(prefixes[n]) for topic in named)]
    return [name for name in found if name == TF_STATIC or name in robots]


def _explain_frames(topic: str, raw: RawTopic) -> str:
    """Return the error message for a truth of transforms that is named without two frames."""
    pairs = dict.fromkeys(
        f'{transform.parent.strip("/")}.{transform.child.strip("/")}'
        for _, transform in raw.transforms()
    )
    listed = ', '.join(list(pairs)[:8]) or 'none'
    first = next(iter(pairs), 'PARENT.CHILD')
    return (
        f'truth: topic {topic} has type {TF_TYPE}; must name two of its frames, such as '
        f'truth={topic}:{first} (pairs: {listed})'
    )


def _add_topic(content: Content, path: Path, topic: str, raw: RawTopic) -> None:
    """Decode a topic into `content`; a damaged camera topic is left out with a finding."""
    where = f'{path}: {topic}'
    try:
        decoded = raw.decode()
    except RecordingError as error:
        if raw.ros_type not in NAMED_TYPES:
            raise
        problem = f'{str(error).removeprefix(f"{where}: ")} ({raw.count}x)'
        content.notes.append(checks.LEFT_OUT(topic, problem=problem))
        content.ignored.append(f'{topic} ({raw.ros_type})')
        return
    content.messages[topic], content.ros_types[topic] = decoded.array, raw.ros_type
    if raw.ros_type == GPS_FIX.name:
        content.ros_types[topic] = default_type(decoded.array).name
        content.notes.append(checks.READ_AS_FIX(topic))
    if decoded.overflow_count:
        count, value = decoded.overflow_count, decoded.overflow_value
        content.notes.append(checks.STAMP_NANOSEC(topic, count=count, value=value))
    left_out = sum(count for _, count in decoded.other_frames)
    if left_out > MAXIMUM_BROKEN * raw.count:
        frames = ', '.join(frame for frame, _ in decoded.other_frames)
        raise RecordingError(
            f'{where}: frame_id is {decoded.array.frame!r} but also {frames}; '
            'one topic must have one frame'
        )
    for frame, count in decoded.other_frames:
        expected = repr(decoded.array.frame)
        note = checks.OTHER_FRAME(topic, count=count, found=repr(frame), expected=expected)
        content.notes.append(note)


def _read_raw_bag(path: Path, is_wanted: TopicFilter, reader: str) -> RawBag:
    if path.is_dir() and not (path / 'metadata.yaml').is_file():
        _refuse_without_metadata(path)
    if reader not in ('auto', 'rosbags', 'rosbag2_py'):
        raise ValueError(f'reader must be auto, rosbags or rosbag2_py, got {reader!r}')
    if reader == 'auto':
        reader = 'rosbags' if importlib.util.find_spec('rosbags') else 'rosbag2_py'
    read = _read_by_rosbags if reader == 'rosbags' else _read_by_rosbag2_py
    try:
        for file in [path] if path.is_file() else filter(Path.is_file, sorted(path.iterdir())):
            check_unpacked_size(file)
            if file.suffix == '.db3':
                check_database(file)
            elif file.suffix == '.mcap':
                check_checksums(file)
        return read(path, is_wanted)
    except (RecordingError, MemoryError, OSError):
        raise
    except Exception as error:
        # Damaged bytes make the readers raise exceptions of many types (struct, sqlite, zstd,
        # YAML, Unicode).
        reason = ' '.join(str(error).split())[:200] or type(error).__name__
        raise RecordingError(f'{path}: not a readable bag: {reason}') from error


def _refuse_without_metadata(path: Path) -> NoReturn:
    """Raise the RecordingError of a folder without metadata.yaml."""
    if any(path.glob('*.bag')):
        raise RecordingError(f'{path}: holds bags of ROS 1; give the files: {path}/*.bag')
    for file in sorted(path.glob('*.mcap')):
        check_checksums(file)
    packed = (file for file in sorted(path.iterdir()) if file.suffix not in STORAGE_SUFFIXES)
    if (first := next(filter(find_storage_suffix, packed), None)) is not None:
        raise RecordingError(
            f'{path}: metadata.yaml is missing; unpack each file, as with `zstd -d {first} -o '
            f'{first.with_suffix("")}`, then run `ros2 bag reindex {path}` or give one .mcap or '
            '.db3 file'
        )
    raise RecordingError(
        f'{path}: metadata.yaml is missing; give the .mcap, .db3 or .bag file itself, '
        'or run `ros2 bag reindex`'
    )


def _read_by_rosbags(path: Path, is_wanted: TopicFilter) -> RawBag:
    """Read a bag; ROS 1 messages are converted to the serialisation of ROS 2."""
    from rosbags import rosbag1, rosbag2

    bag = RawBag()
    is_ros1 = path.suffix == '.bag' and path.is_file()
    try:
        if is_ros1:
            readers: list[Any] = [rosbag1.Reader(path)]
            readers[0].open()
        else:
            readers = [_open_reader(path)]
    except rosbag2.ReaderError as error:
        readers = [_open_reader(file) for file in _files_without_metadata(path, error)]
        bag.metadata_problem = str(error)
    except KeyError as error:
        if error.args != ('unknown',):
            raise
        return _read_undefined(path, is_wanted)
    for reader in readers:
        with contextlib.closing(reader):
            names = _announce_connections(bag, path, reader, is_wanted)
            if not is_ros1:
                bag.custom = dict(reader.storage.metadata.custom or bag.custom)
            read_messages = _ros1_messages if is_ros1 else _ros2_messages
            for topic, received_ns, data in read_messages(reader, names) if names else ():
                names[topic].add(received_ns, data)
    return bag


def _open_reader(path: Path) -> Any:
    """Open a ROS 2 bag or one of its files; schemas that are not encoded by ROS are allowed."""
    from rosbags.rosbag2 import Reader

    reader: Any = Reader(path)
    try:
        reader.open()
    except (KeyError, UnicodeDecodeError):
        with allow_foreign_schemas():
            reader = Reader(path)
            reader.open()
    return reader


def _files_without_metadata(path: Path, error: Exception) -> list[Path]:
    """Return the files of a bag whose metadata rosbags refuses; raise any other `error`."""
    files = sorted(file for file in path.glob('*') if file.suffix in STORAGE_SUFFIXES[:2])
    if not files or not str(error).startswith(_UNUSABLE_METADATA):
        raise error
    return files


def _announce_connections(
    bag: RawBag, path: Path, reader: Any, is_wanted: TopicFilter
) -> dict[str, RawTopic]:
    """Register the topics of an open bag; channels that are not encoded by ROS are ignored."""
    topics = {}
    for connection in reader.connections:
        name = f'/{connection.topic.strip("/")}'
        if not _is_encoded_by_ros(connection):
            encoding = connection.ext.serialization_format
            bag.ignored.setdefault(name, f'{connection.msgtype}, {encoding}')
        elif bag.announce(str(path), name, connection.msgtype, is_wanted):
            bag.topics[name].announced += connection.msgcount
            topics[connection.topic] = bag.topics[name]
    return topics


def _is_encoded_by_ros(connection: Any) -> bool:
    """Return whether the messages of a connection are serialised by ROS 2 or ROS 1."""
    return getattr(connection.ext, 'serialization_format', _ROS1) in (_ROS2, _ROS1)


def _ros1_messages(
    reader: Any, topics: Mapping[str, RawTopic]
) -> Iterator[tuple[str, int, memoryview]]:
    """Yield topic, receive time and message of an open ROS 1 bag."""
    connections = [connection for connection in reader.connections if connection.topic in topics]
    for connection, received_ns, data in reader.messages(connections):
        ros_type = topics[connection.topic].ros_type
        yield connection.topic, received_ns, typestore().ros1_to_cdr(data, ros_type)


def _ros2_messages(reader: Any, topics: Mapping[str, RawTopic]) -> Iterator[tuple[str, int, Any]]:
    """Yield topic, receive time and message of an open ROS 2 bag, in the order of its files.

    rosbags would unpack compressed messages of any size, so its storage readers are used. They
    scan all records of an MCAP file, because the indexed reader skips records without an index.
    """
    for storage in getattr(reader.storage, 'storages', [reader.storage]):
        connections = [
            c for c in storage.connections if c.topic in topics and _is_encoded_by_ros(c)
        ]
        if not connections:
            continue
        read_messages = getattr(storage, 'messages_scan', storage.messages)
        for connection, received_ns, data in read_messages(connections):
            if data.startswith(_ZSTANDARD):
                data = unpack_message(data, f'{reader.path}: {connection.topic}')
            if connection.ext.serialization_format == _ROS1:
                data = typestore().ros1_to_cdr(data, topics[connection.topic].ros_type)
            yield connection.topic, received_ns, data


def _read_undefined(path: Path, is_wanted: TopicFilter) -> RawBag:
    """Read an SQLite bag in which message definitions are missing.

    rosbag2 records the encoding `unknown` for a type whose definition it did not find. rosbags
    refuses such a bag as a whole.
    """
    bag = RawBag()
    for file in [path] if path.is_file() else list_databases(path):
        with open_database(file) as database:
            query = "SELECT topic_type FROM message_definitions WHERE encoding != 'unknown'"
            defined_types = set(database.execute(query))
            topics: dict[int, RawTopic] = {}
            for number, topic, ros_type in database.execute('SELECT id, name, type FROM topics'):
                if (ros_type,) not in defined_types:
                    bag.undefined.add(topic)
                if bag.announce(str(path), topic, ros_type, is_wanted):
                    topics[number] = bag.topics[topic]
            query = 'SELECT topic_id, timestamp, data FROM messages ORDER BY timestamp'
            for number, received_ns, data in database.execute(query):
                if number in topics:
                    if data.startswith(_ZSTANDARD):
                        data = unpack_message(data, str(path))
                    topics[number].add(received_ns, data)
    return bag


def _read_by_rosbag2_py(path: Path, is_wanted: TopicFilter) -> RawBag:
    """Read a bag with rosbag2_py of a ROS installation, for machines without rosbags."""
    try:
        import rosbag2_py
    except ImportError:
        raise RecordingError(
            f'{path}: neither rosbags ({pip_install("rosbags")}) nor rosbag2_py (source a ROS '
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
        information.topic_metadata.name: int(information.message_count)
        for information in reader.get_metadata().topics_with_message_count
    }
    for topic in reader.get_all_topics_and_types():
        if bag.announce(str(path), topic.name, topic.type, is_wanted):
            bag.topics[topic.name].announced = counts.get(topic.name, 0)
    bag.custom = dict(getattr(reader.get_metadata(), 'custom_data', None) or {})
    if bag.topics:
        reader.set_filter(rosbag2_py.StorageFilter(topics=list(bag.topics)))
    while bag.topics and reader.has_next():
        name, data, received_ns = reader.read_next()[:3]
        bag.topics[name].add(received_ns, data)
    return bag
