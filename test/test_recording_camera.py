# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Feature tracks and camera poses in recordings, and `sim2real simulate --camera`."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest
from camera_examples import board, camera, swaying
from cli_examples import call, check_refused
from recording_examples import TYPESTORE, arrays_equal, drive
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import RecordingError
from sim2real_eval.recording.cdr import decode, encode
from sim2real_eval.recording.message_types import FEATURES
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.writing import write_recording
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.simulation.twin_maker import TwinMaker, synthetic_recording
from sim_sensors.camera.camera import CameraModel, load_camera, simulate
from sim_sensors.camera.features import CameraMessages, FeatureArray
from sim_sensors.camera.pinhole import CameraInfoArray
from sim_sensors.camera.pose import PoseEstimate
from sim_sensors.imu.imu import load_imu
from sim_sensors.motion.motions import motion_of
from sim_sensors.world.world import load_world

Capture = pytest.CaptureFixture[str]
WORLD = """
chessboards:
  - {rows: 6, columns: 9, square: 0.5, position: [8.0, -2.0, 0.5]}
"""


def simulate_camera_messages() -> CameraMessages:
    """Frames of which some are empty and some have no pose."""
    model = camera(noise_std=(0.3, 0.3), missed=0.7, pose=PoseEstimate(), latency=0.01)
    motion, world = swaying(40), board(2, 3)
    simulated = simulate(model, motion, seed=1, run='r', origin_ns=10**12, world=world)
    counts = np.diff(simulated.features.first)
    assert counts.min() == 0 < counts.max()
    assert 0 < len(simulated.poses) < 40
    return simulated


def camera_info_of(features: FeatureArray) -> CameraInfoArray:
    """Return the camera info that a camera with a lens sends with each frame."""
    intrinsics = load_camera('frc_1280x720').intrinsics
    return CameraInfoArray.from_intrinsics(
        intrinsics, features.stamp_ns, features.arrival_ns, features.frame
    )


def with_camera() -> Recording:
    camera_data = simulate_camera_messages()
    recording = drive().with_messages('features', camera_data.features)
    recording = recording.with_messages('camera_info', camera_info_of(camera_data.features))
    return recording.with_messages('camera_pose', camera_data.poses)


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3', 'csv'])
def test_features_and_poses_are_read_back_bit_for_bit(tmp_path: Path, storage: str) -> None:
    written = with_camera()
    write_recording(written, tmp_path / 'seen', storage=storage)
    read = read_recording(tmp_path / 'seen')
    assert read.roles == written.roles
    for role in ('features', 'camera_pose', 'camera_info'):
        assert arrays_equal(getattr(read, role), getattr(written, role)), role


def test_a_feature_message_is_decoded_like_in_rosbags() -> None:
    """Also for empty frames, and for a cloud with more fields in another order."""
    features = simulate_camera_messages().features
    rows = encode(FEATURES, features, 'x')
    full = int(np.argmax(np.diff(features.first)))
    message = TYPESTORE.deserialize_cdr(rows[full], FEATURES.name)
    assert message.width == np.diff(features.first)[full]
    assert [field.name for field in message.fields][3:6] == ['id', 'u', 'v']
    assert message.header.stamp.sec == features.stamp_ns[full] // 10**9
    received = features.arrival_ns
    assert arrays_equal(decode(FEATURES, rows, received, 'x').array, features)
    wide = dataclasses.replace(
        message,
        fields=message.fields[::-1],
        point_step=80,
        row_step=80 * message.width,
        data=np.pad(message.data.reshape(message.width, -1), ((0, 0), (0, 12))).reshape(-1),
    )
    again = decode(FEATURES, [TYPESTORE.serialize_cdr(wide, FEATURES.name)], received[:1], 'x')
    assert (again.array.pixels == features.take([full]).pixels).all()


def test_a_point_cloud_without_ids_is_not_read_as_features(tmp_path: Path) -> None:
    written = with_camera()
    messages = dict(written.messages)
    messages['/lidar/points'] = messages.pop('/camera/features')
    roles = {role: topic for role, topic in written.roles.items() if role != 'features'}
    lidar = dataclasses.replace(written, messages=messages, roles=roles)
    write_recording(lidar, tmp_path / 'lidar')
    read = read_recording(tmp_path / 'lidar')
    assert read.features is None
    assert '/lidar/points (sensor_msgs/msg/PointCloud2)' in read.ignored
    named = read_recording(tmp_path / 'lidar', topics={'features': 'lidar/points'})
    assert arrays_equal(named.features, written.features)
    message = TYPESTORE.deserialize_cdr(encode(FEATURES, written.features, 'x')[5], FEATURES.name)
    plain = dataclasses.replace(message, fields=message.fields[:3])
    data = [TYPESTORE.serialize_cdr(plain, FEATURES.name)]
    with pytest.raises(RecordingError, match='has no field id'):
        decode(FEATURES, data, np.zeros(1, np.int64), 'x')


def test_simulate_writes_true_poses_of_a_mounted_camera(tmp_path: Path, capsys: Capture) -> None:
    world = tmp_path / 'board.yaml'
    world.write_text(WORLD)
    line = ('simulate', '--motion', 'line', '--duration', '4', '--camera', 'ideal_vga')
    out = tmp_path / 'out'
    assert call(capsys, *line, '--world', world, '--out', out).status == 0
    run = read_recording(out / 'line_1')
    assert len(run.features) == 121
    info, lens = run.camera_info, load_camera('ideal_vga').intrinsics
    assert (info.stamp_ns == run.features.stamp_ns).all()
    assert info.frame == 'camera_optical_frame'
    assert (info.size == [lens.width, lens.height]).all()
    assert (info.matrix == lens.matrix).all()
    arms = {t.child: t for t in run.transforms}
    assert set(arms) == {'camera_optical_frame', 'imu_link', 'gps_link'}
    assert np.allclose(np.abs(arms['camera_optical_frame'].rotation), 0.5)
    assert arms['imu_link'].rotation == (0.0, 0.0, 0.0, 1.0)
    rows = np.searchsorted(run.truth.stamp_ns, run.camera_pose.stamp_ns)
    same = run.truth.stamp_ns[rows] == run.camera_pose.stamp_ns
    assert same.sum() > 10
    error = run.truth.position[rows[same]] - run.camera_pose.position[same]
    assert np.abs(error).max() < 1e-6
    turn = Rotation.from_quat(run.truth.orientation[rows[same]])
    turn = turn * Rotation.from_quat(run.camera_pose.orientation[same]).inv()
    assert turn.magnitude().max() < 1e-7


def test_a_camera_twin_has_the_lever_arm_of_the_recorded_camera(
    tmp_path: Path, capsys: Capture
) -> None:
    world = tmp_path / 'board.yaml'
    world.write_text(WORLD)
    line = ('simulate', '--motion', 'line', '--duration', '2', '--camera', 'ideal_vga')
    assert call(capsys, *line, '--world', world, '--out', tmp_path / 'a').status == 0
    run = read_recording(tmp_path / 'a/line_1')
    model = dataclasses.replace(load_camera('ideal_vga'), lever_arm=(0.3, 0.1, 0.8))
    moved = tuple(
        dataclasses.replace(t, translation=model.lever_arm) if 'camera' in t.child else t
        for t in run.transforms
    )
    place = dataclasses.replace(run, transforms=moved)
    twin = Twin('twin', None, None, others={'camera': load_camera('ideal_vga')})
    twin_recording = TwinMaker(place, seed=0, world=load_world(world)).make(twin)
    direct = simulate(
        model, TwinMaker(place, seed=0, world=load_world(world)).motion, seed=0, run='x',
        origin_ns=int(run.truth.stamp_ns[0]), world=load_world(world),
    )  # fmt: skip
    assert twin_recording.features.ids.tolist() == direct.features.ids.tolist()
    assert np.abs(twin_recording.features.pixels - direct.features.pixels).max() < 1e-9


def test_a_camera_in_a_world_without_features_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    line = ('simulate', '--motion', 'line', '--camera', 'ideal_vga', '--world', 'dipole_room')
    check_refused(capsys, '--camera', *line, '--out', 'out')


@pytest.mark.parametrize(
    ('motion', 'world', 'rpy'),
    [('swaying', 'chessboard', (0, 0, 0)), ('standstill', 'tag_ring', (0, 1.5, 3.1))],
)
def test_the_mounting_that_a_blind_camera_is_given_sees_the_landmarks(
    motion: str, world: str, rpy: tuple[float, float, float]
) -> None:
    scene, path = load_world(world), motion_of(motion, duration=3.0)
    camera = dataclasses.replace(load_camera('webcam_vga'), mounting_rpy=rpy)

    def recorded(model: CameraModel) -> Recording:
        twin = Twin('twin', None, load_imu('ideal'), {'camera': model})
        return synthetic_recording(path, twin, seed=1, run='r', scenario='s', world=scene)

    (note,) = recorded(camera).notes
    assert note.code == 'twin.nothing_seen'
    values = dict(re.findall(r'camera\.(\w+)=(\[[^]]*\])', str(note)))
    mounted = {name: tuple(json.loads(value)) for name, value in values.items()}
    seen = recorded(dataclasses.replace(camera, **mounted))
    assert not seen.notes
    assert np.mean(np.diff(seen.features.first) >= 4) > 0.5


@pytest.mark.parametrize(
    ('motion', 'camera'),
    [('hand_held', 'webcam_vga'), ('swaying', 'webcam_chessboard'),
     ('standstill', 'webcam_chessboard')],
)  # fmt: skip
def test_the_chessboard_is_in_view_in_all_frames(motion: str, camera: str) -> None:
    path = motion_of(motion, duration=20.0)
    seen = simulate(load_camera(camera), path, seed=1, run='r', world=load_world('chessboard'))
    assert (np.diff(seen.features.first) == 9).all()
