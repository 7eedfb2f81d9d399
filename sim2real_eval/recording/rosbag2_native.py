# SPDX-License-Identifier: Apache-2.0
"""Raw messages of a rosbag2 recording, through the rosbag2_py of a ROS installation.

For machines that have ROS but not `rosbags`, and for storage plug-ins that only ROS has. The
messages are decoded by the
same code as those from `rosbags`.
"""

from __future__ import annotations

from pathlib import Path

from sim2real_eval.recording.errors import RecordingError
from sim2real_eval.recording.rosbag import RawBag, Wanted

__all__ = ['read_raw_bag_native']


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
