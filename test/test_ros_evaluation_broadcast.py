# SPDX-License-Identifier: Apache-2.0
"""evaluation_node publishes the topics of a recording, of every type, over real DDS."""

from __future__ import annotations

import pytest

pytest.importorskip('rclpy', reason='no ROS')

import numpy as np
from rclpy.serialization import serialize_message
from recording_examples import arrays_equal, drive
from ros_examples import graph_of_its_own

from sim2real_eval.recording.cdr import decode
from sim2real_eval.recording.message_types import default_type
from sim2real_eval.ros.evaluation.run import Broadcast
from sim_sensors.camera.features import FeatureArray
from sim_sensors.camera.pinhole import CameraInfoArray, Intrinsics
from sim_sensors.ros.messages import message_class


def test_every_topic_of_a_recording_is_shown() -> None:
    """A magnetometer and a camera, too, of which it knew no message class."""
    stamps = 1_000_000_000_000 + 40_000_000 * np.arange(3)
    rows = np.arange(12.0).reshape(6, 2)
    features = FeatureArray(
        stamps, stamps, 'eye', [0, 2, 2, 6], np.arange(6), rows, rows, np.arange(6), rows
    )
    recording = drive(30).with_messages('features', features)
    info = CameraInfoArray.from_intrinsics(Intrinsics(), stamps, stamps, 'eye')
    recording = recording.with_messages('camera_info', info)
    messages = {
        topic: recording.messages[recording.roles[topic]]
        for topic in ('imu', 'gps', 'truth', 'mag', 'features', 'camera_info')
    }
    with graph_of_its_own() as graph:
        topics = {role: f'/look/{recording.roles[role].strip("/")}' for role in messages}
        for role, topic in topics.items():
            graph.listen(topic, message_class(default_type(messages[role]).name))
        broadcast = Broadcast(graph.node, recording, '/look')
        graph.wait(
            lambda: (
                sum(publisher.get_subscription_count() for publisher in broadcast._publishers)
                == len(topics)
            ),
            'listeners',
        )
        broadcast.until(recording.end_ns + 10**9)
        for role, topic in topics.items():
            graph.wait(lambda r=role, t=topic: len(graph.received[t]) == len(messages[r]), topic)
            array = messages[role]
            data = [serialize_message(message) for message in graph.received[topic]]
            kind = default_type(array)
            assert arrays_equal(decode(kind, data, array.arrival_ns, topic).array, array), role
        broadcast.close()
