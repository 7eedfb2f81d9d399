# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""camera_node over real DDS: the bits of the batch run, in standard messages."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip('rclpy', reason='no ROS')

import numpy as np
from camera_examples import board, swaying
from geometry_msgs.msg import PoseWithCovarianceStamped
from rclpy.serialization import serialize_message
from recording_examples import arrays_equal
from ros_examples import Graph, final_stamps, graph_of_its_own, refused, stamps
from sensor_msgs.msg import CameraInfo, PointCloud2

from sim2real_eval.recording.cdr import decode
from sim2real_eval.recording.message_types import CAMERA_INFO
from sim_sensors.camera import camera
from sim_sensors.camera.camera import CameraModel, Mismatches, load_camera
from sim_sensors.camera.features import ROW, feature_rows
from sim_sensors.camera.pinhole import CameraInfoArray
from sim_sensors.core.measurements import OdometryArray
from sim_sensors.motion.odometry import OdometryMotion
from sim_sensors.ros.messages import feature_messages, messages_of
from sim_sensors.world.world import load_world

WORLD = """
chessboards:
  - {rows: 5, columns: 6, square: 0.25, position: [4.0, -0.6, -0.5], first_id: 100}
tags:
  - {id: 3, position: [4.5, 1.2, 0.0], rpy: [1.5707963, 0.0, -1.5707963], size: 0.4}
"""


@pytest.fixture
def graph() -> Iterator[Graph]:
    with graph_of_its_own() as graph:
        yield graph


def truth(count: int = 200) -> OdometryArray:
    """Odometry of a body that sways before the scene, at 100 Hz, at a stamp of our times."""
    motion = swaying(count, 100.0)
    stamp_ns = 1_700_000_000_000_000_000 + np.arange(count) * 10_000_000
    still, exact = np.zeros((count, 3)), np.zeros((count, 6, 6))
    return OdometryArray(
        stamp_ns=stamp_ns, arrival_ns=stamp_ns, frame='map', child_frame='base_link',
        position=motion.position, orientation=motion.orientation, linear_velocity=still,
        angular_velocity=still, pose_covariance=exact, twist_covariance=exact,
    )  # fmt: skip


def feature_bits(messages: list[Any]) -> bytes:
    return b''.join(bytes(message.data) for message in messages)


def pose_bits(messages: list[Any]) -> bytes:
    return b''.join(serialize_message(message.pose) for message in messages)


def test_camera_node_equals_the_batch_run_bit_for_bit(graph: Graph, tmp_path: Any) -> None:
    path = tmp_path / 'scene.yaml'
    path.write_text(WORLD)
    topics = {
        'camera/features': PointCloud2,
        'camera/pose': PoseWithCovarianceStamped,
        'camera/camera_info': CameraInfo,
        'camera_node/truth/features': PointCloud2,
    }
    for topic, kind in topics.items():
        graph.listen(topic, kind)
    graph.start(
        'camera_node', 'model:=frc_1280x720', f'world:={path}', 'seed:=7', 'run:=sway_1',
        'velocity:=position', 'camera.lever_arm:=[0.2, 0.0, 0.1]', 'camera.latency:=0.0',
        'camera.delivery.jitter:=0.0', 'camera.mismatches.frames:=0.4',
        'camera.mismatches.features:=0.2',
    )  # fmt: skip
    recorded = truth()
    graph.connect('camera/features')
    others = ('camera/pose', 'camera/camera_info')
    graph.wait(lambda: all(map(graph._publishers_of, others)), 'its topics')
    got = graph.received['camera/features']
    graph.play(recorded, lambda k: len(got) >= len(final_stamps(recorded, 35.0, k)))
    assert stamps(got) == final_stamps(recorded, 35.0)
    plain: CameraModel = load_camera('frc_1280x720')
    model = dataclasses.replace(
        plain, lever_arm=(0.2, 0.0, 0.1), latency=0.0, mismatches=Mismatches(0.4, 0.2),
        delivery=dataclasses.replace(plain.delivery, jitter=0.0),
    )  # fmt: skip
    origin = int(recorded.stamp_ns[0])
    motion = OdometryMotion(recorded, origin_ns=origin, velocity='position')
    world = load_world(path)
    batch = camera.simulate(model, motion, seed=7, run='sway_1', origin_ns=origin, world=world)
    features = batch.features.take(slice(0, len(got)))
    assert len(features.ids) > 500
    assert feature_bits(got) == feature_rows(features).tobytes()
    poses = batch.poses.take(batch.poses.stamp_ns <= features.stamp_ns[-1])
    counts = {'camera/pose': len(poses)}
    counts |= dict.fromkeys(('camera/camera_info', 'camera_node/truth/features'), len(got))
    for topic, count in counts.items():
        graph.wait(lambda t=topic, n=count: len(graph.received[t]) == n, f'{count} on {topic}')
    assert len(poses) > 30
    assert pose_bits(graph.received['camera/pose']) == pose_bits(list(messages_of(poses)))
    recorded_info = CameraInfoArray.from_intrinsics(
        model.intrinsics, features.stamp_ns, features.arrival_ns, features.frame
    )
    infos = graph.received['camera/camera_info']
    rows = [serialize_message(message) for message in infos]
    decoded = decode(CAMERA_INFO, rows, features.arrival_ns, 'x').array
    assert arrays_equal(decoded, recorded_info)
    true = np.concatenate(
        [np.frombuffer(bytes(m.data), ROW) for m in graph.received['camera_node/truth/features']]
    )
    wrong = true['id'] != features.ids
    assert 0.02 < wrong.mean() < 0.2
    assert np.abs(true['u'] - features.pixels[:, 0])[~wrong].max() < 2.0


def test_a_point_cloud_is_readable_by_its_field_description() -> None:
    """By offsets and datatypes of its fields alone, as sensor_msgs_py.point_cloud2 does."""
    names = {5: '<i4', 6: '<u4', 7: '<f4', 8: '<f8'}
    model = load_camera('webcam_vga')
    simulated = camera.simulate(model, swaying(4), seed=1, run='r', world=board())
    message = list(feature_messages(simulated.features))[2]
    fields = [(field.name, names[field.datatype], field.offset) for field in message.fields]
    layout = dict(zip(('names', 'formats', 'offsets'), zip(*fields, strict=True), strict=True))
    described = np.dtype({**layout, 'itemsize': message.point_step})
    points = np.frombuffer(bytes(message.data), described)
    rows = simulated.features.rows(2)
    assert message.width == len(points) == rows.stop - rows.start > 20
    assert message.row_step == len(message.data)
    assert (points['u'] == simulated.features.pixels[rows, 0]).all()
    assert (points['previous_v'] == simulated.features.previous[rows, 1]).all()
    assert (points['id'] == simulated.features.ids[rows]).all()
    assert (points['age'] == simulated.features.age[rows]).all()
    assert points['y'] == pytest.approx(simulated.features.rays[rows, 1], rel=1e-6)


def test_a_featureless_world_is_refused(graph: Graph, capsys: pytest.CaptureFixture[str]) -> None:
    assert "'default'" in refused(capsys, 'camera_node', 'world:=default')[-1]
