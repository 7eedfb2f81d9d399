# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Bags and files as other tools write them: ROS 1, poses alone, trajectory files, GPSFix."""

from __future__ import annotations

import dataclasses
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recording_examples import drive
from rosbags.rosbag1 import Writer
from rosbags.rosbag2.reader import zstd  # type: ignore[attr-defined]
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import RecordingError
from sim2real_eval.judge.robot_localization.replay_options import ReplayOptions
from sim2real_eval.judge.robot_localization.topics import route
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.cdr import encode, encode_transforms, typestore
from sim2real_eval.recording.message_types import MESSAGE_TYPES, POSE_TYPES, TF_TYPE
from sim2real_eval.recording.poses import odometry_from_arrays
from sim2real_eval.recording.reading import assign_subscribed_roles, read_recording
from sim2real_eval.recording.recording import Recording, StaticTransform
from sim2real_eval.recording.writing import write_bag, write_recording
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.simulation.twin_maker import TwinMaker
from sim2real_eval.study.run_plan import Judging, RunPlan
from sim_sensors.core.measurements import OdometryArray, PoseArray
from sim_sensors.imu.imu import load_imu

START_NS = 1_700_000_000_123_456_789


@pytest.fixture(scope='module')
def truth() -> OdometryArray:
    """A circle of 2 m at 1 m/s: 4 s at 50 Hz."""
    time = np.arange(201) / 50.0
    angle = time / 2.0
    along = np.stack([np.sin(angle), 1.0 - np.cos(angle), 0.0 * angle], axis=1)
    odometry = odometry_from_arrays(
        START_NS + np.arange(201) * 20_000_000,
        2.0 * along,
        Rotation.from_euler('z', angle[:, None]).as_quat(),
        child_frame='base_link',
    )
    speed, rate = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 0.5])
    velocities = {
        'linear_velocity': np.tile(speed, (201, 1)),
        'angular_velocity': np.tile(rate, (201, 1)),
    }
    return dataclasses.replace(odometry, **velocities)


def assert_velocities_of(read: Recording, truth: OdometryArray) -> None:
    """Slopes of parabolas through points of a circle are off by (angle of a step)^2 / 6 at most;
    at the ends, where they are one-sided, by twice that.
    """
    step = 1.0 / 2.0 / 50.0
    np.testing.assert_array_equal(read.truth.stamp_ns, truth.stamp_ns)
    np.testing.assert_allclose(read.truth.position, truth.position, atol=1e-12)
    np.testing.assert_allclose(
        read.truth.linear_velocity, truth.linear_velocity, atol=step**2 / 3.0
    )
    np.testing.assert_allclose(read.truth.angular_velocity, truth.angular_velocity, atol=1e-9)
    assert [note.code for note in read.notes if note.code == 'truth.from_poses']


def test_a_ros_1_bag_is_read_like_the_ros_2_bag(tmp_path: Path) -> None:
    good = drive()
    ros1 = get_typestore(Stores.ROS1_NOETIC)
    ros1.register(get_types_from_msg('geometry_msgs/TransformStamped[] transforms', TF_TYPE))
    transform = StaticTransform('base_link', 'imu_link', (0.1, 0.2, 0.3))
    static = np.array([good.start_ns]), [encode_transforms([transform], good.start_ns)]
    topics: list[Any] = [('tf_static', TF_TYPE, *static)]
    for topic, array in good.messages.items():
        kind = MESSAGE_TYPES.get(good.ros_types.get(topic, '')) or next(
            kind for kind in MESSAGE_TYPES.values() if kind.array is type(array)
        )
        topics.append((topic.strip('/'), kind.name, array.arrival_ns, encode(kind, array, 'here')))
    with Writer(tmp_path / 'line_3.bag') as writer:
        for topic, name, times, rows in topics:
            connection = writer.add_connection(topic, name, typestore=ros1)
            for time, row in zip(times.tolist(), rows, strict=True):
                writer.write(connection, time, typestore().cdr_to_ros1(row, name))
    read = read_recording(tmp_path / 'line_3.bag', arrival='recorded')
    assert (read.name, read.scenario, read.transforms) == ('line_3', 'line', (transform,))
    write_recording(dataclasses.replace(good, transforms=(transform,)), tmp_path / 'line_3')
    expected = read_recording(tmp_path / 'line_3')
    assert set(read.messages) == set(expected.messages)
    for topic, array in expected.messages.items():
        for field in dataclasses.fields(array):
            np.testing.assert_array_equal(
                getattr(read.messages[topic], field.name), getattr(array, field.name)
            )


@pytest.mark.parametrize('name', [*POSE_TYPES, 'geometry_msgs/msg/PoseWithCovarianceStamped'])
def test_velocities_of_a_pose_truth_are_derived_from_its_motion(
    tmp_path: Path, truth: OdometryArray, name: str
) -> None:
    kind = POSE_TYPES.get(name) or MESSAGE_TYPES[name]
    array: Any = truth
    if kind.array is PoseArray:
        array = PoseArray(
            truth.stamp_ns, truth.stamp_ns, 'map', truth.position, truth.orientation,
            truth.pose_covariance,
        )  # fmt: skip
    write_bag(tmp_path / 'bag', [('/vicon', name, truth.stamp_ns, encode(kind, array, 'here'))])
    read = read_recording(tmp_path / 'bag', topics={'truth': 'vicon'})
    assert_velocities_of(read, truth)
    # What is written of it is odometry, whose velocities are there.
    write_recording(read, tmp_path / 'again')
    again = read_recording(tmp_path / 'again')
    np.testing.assert_array_equal(again.truth.linear_velocity, read.truth.linear_velocity)


def test_a_transform_between_two_tf_frames_can_be_the_truth(
    tmp_path: Path, truth: OdometryArray
) -> None:
    """map to odom turns slowly at 10 Hz, odom to base at 50 Hz: together the circle."""
    turn = Rotation.from_euler('z', 5e-11 * (truth.stamp_ns[:, None] - START_NS))
    place = turn.inv().apply(truth.position)
    moving_rotation = (turn.inv() * Rotation.from_quat(truth.orientation)).as_quat()
    rows, times = [], []
    for k, stamp in enumerate(truth.stamp_ns.tolist()):
        links = [StaticTransform('odom', 'base_link', tuple(place[k]), tuple(moving_rotation[k]))]
        if k % 5 == 0:
            links.append(StaticTransform('/map', 'odom', (0, 0, 0), tuple(turn[k].as_quat())))
        times.append(stamp)
        rows.append(encode_transforms(links, stamp))
    static = encode_transforms([StaticTransform('base_link', 'mast', (0.0, 0.0, 1.0))], times[0])
    moving = ('/tf', TF_TYPE, np.array(times), rows)
    write_bag(tmp_path / 'bag', [moving, ('/tf_static', TF_TYPE, np.array([1]), [static])])
    read = read_recording(tmp_path / 'bag', topics={'truth': '/tf:map.base_link'})
    assert_velocities_of(read, truth)
    mast = read_recording(tmp_path / 'bag', topics={'truth': 'tf:map.mast'}).truth
    np.testing.assert_allclose(mast.position[:, 2], 1.0, atol=1e-12)
    assert mast.child_frame == 'mast'
    for pair in ('world.base_link', 'base_link.mast'):
        with pytest.raises(RecordingError):
            read_recording(tmp_path / 'bag', topics={'truth': f'/tf:{pair}'})


@pytest.mark.parametrize('robots', [('robot1',), ('robot1', 'robot2')])
def test_transforms_in_the_namespace_of_a_robot_are_those_of_its_recording(
    tmp_path: Path, truth: OdometryArray, robots: tuple[str, ...]
) -> None:
    """As Nav2 and demo.launch.py publish them; both robots have the same frames."""
    kind = MESSAGE_TYPES['nav_msgs/msg/Odometry']
    content: list[Any] = []
    for height, robot in enumerate(robots, 1):
        mast = StaticTransform('base_link', 'gps_link', (0.0, 0.0, float(height)))
        content += [
            (f'/{robot}/odom', kind.name, truth.stamp_ns, encode(kind, truth, 'here')),
            (f'/{robot}/tf_static', TF_TYPE, np.array([1]), [encode_transforms([mast], 0)]),
        ]
    write_bag(tmp_path / 'bag', content)
    for height, robot in enumerate(robots, 1):
        read = read_recording(tmp_path / 'bag', topics={'truth': f'{robot}/odom'})
        assert [transform.translation[2] for transform in read.transforms] == [height]


def test_a_truth_of_tf_with_an_unset_rotation_is_refused(tmp_path: Path) -> None:
    unset = encode_transforms([StaticTransform('map', 'cart', (0, 0, 0), (0, 0, 0, 0))], START_NS)
    write_bag(tmp_path / 'unset', [('/tf', TF_TYPE, np.array([1]), [unset])])
    with pytest.raises(RecordingError, match='map to cart'):
        read_recording(tmp_path / 'unset', topics={'truth': '/tf:map.cart'})


def test_a_trajectory_file_is_read_as_truth_alone_or_beside_a_bag(
    tmp_path: Path, truth: OdometryArray
) -> None:
    seconds = [f'{stamp // 10**9}.{stamp % 10**9:09}' for stamp in truth.stamp_ns.tolist()]
    lines = [
        ' '.join([time, *map(repr, row.tolist())])
        for time, row in zip(seconds, np.hstack([truth.position, truth.orientation]), strict=True)
    ]
    tum = tmp_path / 'circle_1.tum'
    tum.write_text('# timestamp tx ty tz qx qy qz qw\n' + '\n'.join(lines) + '\n')
    alone = read_recording(tum)
    assert alone.name == 'circle_1'
    assert_velocities_of(alone, truth)
    matrices = np.zeros((len(truth), 3, 4))
    matrices[:, :, :3] = Rotation.from_quat(truth.orientation).as_matrix()
    matrices[:, :, 3] = truth.position
    kitti = tmp_path / 'poses.txt'
    np.savetxt(kitti, matrices.reshape(-1, 12), fmt='%.17g')
    with pytest.raises(RecordingError, match=r'times\.txt'):
        read_recording(kitti)
    (tmp_path / 'times.txt').write_text('\n'.join(seconds))
    assert_velocities_of(read_recording(kitti), truth)
    np.savetxt(tmp_path / 'left.txt', (matrices * [1, 1, -1, 1]).reshape(-1, 12))
    with pytest.raises(RecordingError, match='line 1'):
        read_recording(tmp_path / 'left.txt')
    imu = dataclasses.replace(drive().imu.take(slice(0, len(truth))), stamp_ns=truth.stamp_ns)
    bag = Recording('run', 'drive', '', {'/imu/data': imu}, {'imu': '/imu/data'})
    write_recording(bag, tmp_path / 'bag')
    both = read_recording(tmp_path / 'bag', topics={'truth': str(tum)})
    assert_velocities_of(both, truth)
    assert both.imu is not None
    tum.write_text('1 2 3\n')
    with pytest.raises(RecordingError, match='line 1'):
        read_recording(tum)


def test_fixes_of_gps_msgs_are_read_if_there_are_no_others(tmp_path: Path) -> None:
    fixes = drive().gps
    types: dict[str, Any] = typestore().types
    name = 'gps_msgs/msg/GPSFix'

    def filled(kind: str, **values: Any) -> Any:
        lists = {f: np.zeros(0, np.int32) for f in types[kind].__annotations__ if '_prn' in f}
        lists |= {f'satellite_visible_{f}': np.zeros(0, np.int32) for f in ('z', 'azimuth', 'snr')}
        zeros = dict.fromkeys(types[kind].__dataclass_fields__, 0)
        members = {**zeros, **lists, **values}
        return types[kind](**{f: members[f] for f in zeros})

    rows = []
    for k in range(len(fixes)):
        sec, nanosec = divmod(int(fixes.stamp_ns[k]), 10**9)
        header = types['std_msgs/msg/Header'](
            types['builtin_interfaces/msg/Time'](sec, nanosec), 'antenna'
        )
        satellites = np.arange(k % 5, dtype=np.int32)
        status = filled(
            'gps_msgs/msg/GPSStatus', header=header, satellite_used_prn=satellites, status=18
        )
        message = filled(
            name, header=header, status=status, latitude=fixes.latitude[k],
            longitude=fixes.longitude[k], altitude=fixes.altitude[k],
            position_covariance=fixes.position_covariance[k].ravel(), position_covariance_type=2,
        )  # fmt: skip
        rows.append(bytes(typestore().serialize_cdr(message, name)))
    topic_rows = ('/gpsfix', name, fixes.stamp_ns, rows)
    write_bag(tmp_path / 'bag', [topic_rows])
    read = read_recording(tmp_path / 'bag')
    np.testing.assert_array_equal(read.gps.latitude, fixes.latitude)
    np.testing.assert_array_equal(read.gps.position_covariance, fixes.position_covariance)
    assert set(read.gps.status) == {2}
    kind = MESSAGE_TYPES['sensor_msgs/msg/NavSatFix']
    usual = ('/fix', kind.name, fixes.stamp_ns, encode(kind, fixes, 'here'))
    write_bag(tmp_path / 'both', [topic_rows, usual])
    assert read_recording(tmp_path / 'both').roles['gps'] == '/fix'
    for topic in ('/gpsfix', 'gpsfix'):
        assert read_recording(tmp_path / 'both', topics={'gps': topic}).roles['gps'] == '/gpsfix'


def test_a_type_without_a_definition_drops_only_its_topic(tmp_path: Path) -> None:
    write_recording(drive(), tmp_path / 'bag', storage='sqlite3')
    expected = read_recording(tmp_path / 'bag')
    (file,) = (tmp_path / 'bag').glob('*.db3')
    with sqlite3.connect(file) as database:
        database.execute("INSERT INTO topics VALUES(99, '/own', 'my_msgs/msg/Own', 'cdr', '', '')")
        database.execute(
            "INSERT INTO message_definitions VALUES(99, 'my_msgs/msg/Own', 'unknown', '', '')"
        )
    packed = shutil.copytree(tmp_path / 'bag', tmp_path / 'packed')
    (whole,) = packed.glob('*.db3')
    whole.with_name(f'{whole.name}.zstd').write_bytes(zstd.compress(whole.read_bytes()))
    whole.unlink()
    metadata_text = (packed / 'metadata.yaml').read_text()
    for old, new in (
        ("compression_format: ''", 'compression_format: zstd'),
        ("compression_mode: ''", 'compression_mode: FILE'),
        (whole.name, f'{whole.name}.zstd'),
    ):
        assert old in metadata_text
        metadata_text = metadata_text.replace(old, new)
    (packed / 'metadata.yaml').write_text(metadata_text)
    for path in (tmp_path / 'bag', file, packed):
        read = read_recording(path)
        assert '/own (my_msgs/msg/Own)' in read.ignored
        assert [note.subject for note in read.notes if note.code == 'recording.no_definition'] == [
            '/own'
        ]
        assert set(read.messages) == set(expected.messages)
        np.testing.assert_array_equal(read.imu.orientation, expected.imu.orientation)  # type: ignore[union-attr]


def test_a_twin_replaces_the_imu_to_which_the_judge_subscribes(tmp_path: Path) -> None:
    good = drive()
    imu, fixes = good.imu, good.gps
    assert imu is not None
    assert fixes is not None
    assert good.truth is not None
    three = {f'/imu_{place}/data': imu for place in ('front', 'rear', 'top')}
    messages = {**three, '/gps/fix': fixes, '/ground_truth/odometry': good.truth}
    roles = {'truth': '/ground_truth/odometry'}
    write_recording(Recording('run', 'drive', '', messages, roles), tmp_path / 'bag')
    (tmp_path / 'bag/recording.yaml').unlink()
    read = read_recording(tmp_path / 'bag')
    assert 'imu' not in read.roles
    (note,) = (note for note in read.notes if note.code == 'recording.role_open')
    assert '/imu_rear/data' in note.subject
    judge = tmp_path / 'my_ekf.yaml'
    judge.write_text(
        'ekf_filter_node: {ros__parameters: {frequency: 30.0, two_d_mode: true, odom_frame: odom, '
        'base_link_frame: base_link, world_frame: odom, imu0: /imu_rear/data, '
        f'imu0_config: {[False] * 11 + [True] + [False] * 3}'
        '}}'
    )
    setup = JudgeSetup.load(judge)
    assert assign_subscribed_roles(read, setup.subscribed_topics).roles['imu'] == '/imu_rear/data'
    routing = route(read, setup.filter, None, ReplayOptions())
    assert routing.sources == {'imu0': '/imu_rear/data'}
    # Nobody knows which of the three a simulated IMU would replace.
    with pytest.raises(RecordingError, match='imu_front/data'):
        TwinMaker(read, seed=1).make(Twin('x', None, load_imu('ideal')))
    # A study that judges by that file replaces that one.
    plan = RunPlan(read, [Twin('x', None, load_imu('ideal'))], Judging(setup))
    (planned,) = plan.twins
    twin = plan.recording(planned)
    for topic in three:
        forces = (run.messages[topic].linear_acceleration for run in (twin, plan.maker.real))  # type: ignore[attr-defined]
        assert np.array_equal(*forces) == (topic != '/imu_rear/data')
