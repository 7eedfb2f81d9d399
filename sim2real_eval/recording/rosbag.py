# SPDX-License-Identifier: Apache-2.0
"""Raw messages of a rosbag2 recording, through the `rosbags` library."""

from __future__ import annotations

import dataclasses
import importlib.util
import operator
from collections.abc import Callable, Mapping
from pathlib import Path

from sim2real_eval.common.errors import RecordingError
from sim2real_eval.recording.message_types import normalised_type

# Raw messages of a rosbag2 recording, through the rosbag2_py of a ROS installation.
#
# For machines that have ROS but not `rosbags`, and for storage plug-ins that only ROS
# has. The
# messages are decoded by the
# same code as those from `rosbags`.


def read_raw_bag_native(path: Path, wanted: Wanted) -> RawBag:
    """Read like `read_raw_bag`; raises RecordingError when rosbag2_py cannot be imported."""
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
        bag.topics[name].data.append(bytes(data))
        bag.topics[name].received_ns.append(int(received_ns))
    return bag


Wanted = Callable[[str, str], bool]

STORAGE_SUFFIXES = ('.mcap', '.db3')


@dataclasses.dataclass
class RawTopic:
    """Serialised messages of one topic in the order of their receive times (ns)."""

    ros_type: str
    data: list[bytes] = dataclasses.field(default_factory=list)
    received_ns: list[int] = dataclasses.field(default_factory=list)
    announced: int = 0


@dataclasses.dataclass
class RawBag:
    """Topics that are wanted, types of the other topics, and the custom data of the bag."""

    topics: dict[str, RawTopic] = dataclasses.field(default_factory=dict)
    ignored: dict[str, str] = dataclasses.field(default_factory=dict)
    custom: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def announce(self, where: str, topic: str, ros_type: str, wanted: Wanted) -> bool:
        """Enter a topic; returns whether its messages are wanted."""
        name = normalised_type(ros_type)
        if not wanted(topic, name):
            self.ignored[topic] = name
            return False
        known = self.topics.setdefault(topic, RawTopic(name))
        if known.ros_type != name:
            raise RecordingError(
                f'{where}: {topic} holds both {known.ros_type} and {name}; one type is allowed'
            )
        return True


def read_raw_bag(path: Path, wanted: Wanted, *, reader: str = 'auto') -> RawBag:
    """Read the serialised messages of all topics that are wanted.

    Parameters
    ----------
    path : Path
        Folder with metadata.yaml, or one .mcap or .db3 file.
    wanted : callable of str and str
        Whether a topic of that name and full type name is.
    reader : str
        `rosbags`, `rosbag2_py` (needs a sourced ROS installation), or `auto`: rosbags where it is
        installed, for it is the same code on every machine, else rosbag2_py.

    Raises
    ------
    RecordingError
        When the bag is missing, incomplete or corrupt.
    """
    if path.is_dir() and not (path / 'metadata.yaml').is_file():
        raise RecordingError(
            f'{path}: metadata.yaml is missing; give the .mcap or .db3 file itself, '
            'or run `ros2 bag reindex`'
        )
    if reader not in ('auto', 'rosbags', 'rosbag2_py'):
        raise ValueError(f'reader must be auto, rosbags or rosbag2_py, got {reader!r}')
    if reader == 'auto':
        reader = 'rosbags' if importlib.util.find_spec('rosbags') else 'rosbag2_py'
    for file in [path] if path.is_file() else sorted(path.glob('*.db3')):
        if file.suffix == '.db3':
            _check_sqlite_file(file)
    try:
        if reader == 'rosbags':
            return _read(path, wanted)

        return read_raw_bag_native(path, wanted)
    except RecordingError:
        raise
    except Exception as error:
        # Damaged bytes surface as whatever the parser tripped over (struct, sqlite, zstd, YAML,
        # text decoding, memory); to the user all of them mean the same.
        text = ' '.join(str(error).split())[:200] or type(error).__name__
        raise RecordingError(f'{path}: not a readable rosbag2 recording: {text}') from error


def _read(path: Path, wanted: Wanted) -> RawBag:
    from rosbags.rosbag2 import Reader

    bag = RawBag()
    with Reader(path) as reader:
        chosen = []
        for connection in reader.connections:
            if bag.announce(str(path), connection.topic, connection.msgtype, wanted):
                bag.topics[connection.topic].announced += connection.msgcount
                chosen.append(connection)
        metadata = reader.storage.metadata
        bag.custom = dict(metadata.custom or {})
        if chosen:
            for connection, received_ns, data in reader.messages(chosen):
                topic = bag.topics[connection.topic]
                topic.data.append(bytes(data))
                # SQLite's columns are untyped: damage can turn a number into anything.
                topic.received_ns.append(operator.index(received_ns))
    return bag


def _check_sqlite_file(path: Path) -> None:
    """Refuse what SQLite itself reads without a word: a cut last page, messages left in the log.

    Byte positions: https://www.sqlite.org/fileformat.html#the_database_header
    """
    with path.open('rb') as stream:
        header = stream.read(100)
    size = path.stat().st_size
    page = int.from_bytes(header[16:18], 'big')
    page = 65536 if page == 1 else page
    pages = int.from_bytes(header[28:32], 'big')
    # The page count is valid only when both change counters agree.
    if header[24:28] == header[92:96] and size < page * pages:
        raise RecordingError(
            f'{path}: file is cut short: it has {size} bytes, its header says {page * pages}'
        )
    log = path.with_name(f'{path.name}-wal')
    if log.is_file() and log.stat().st_size:
        raise RecordingError(
            f'{path}: recording was not closed: messages are left in {log.name}; '
            "merge them with: sqlite3 FILE 'PRAGMA wal_checkpoint(TRUNCATE)'"
        )
