# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Transforms from URDF and YAML files, merged with those of a recording."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judge_examples import YAW, filter_config, imu, mask, odometry, recording, stamps
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import JudgeError
from sim2real_eval.judge.robot_localization.embedded import judge
from sim2real_eval.judge.robot_localization.replay_options import ReplayOptions
from sim2real_eval.recording.metadata import FrameTree, TransformFile
from sim2real_eval.recording.reading import RecordingSource
from sim2real_eval.recording.recording import StaticTransform
from sim2real_eval.recording.writing import write_recording
from sim_sensors.core.errors import Sim2RealError

ROBOT = """<?xml version="1.0"?>
<!-- as xacro leaves it -->
<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <link name="base_link"/><link name="mast"/>
  <joint name="j0" type="fixed">
    <parent link="base_link"/><child link="mast"/><origin xyz="0.5 0 1" rpy="0 0 1.57"/>
  </joint>
  <joint name="j1" type="fixed"><parent link="mast"/><child link="imu_link"/></joint>
  <joint name="wheel" type="continuous">
    <origin xyz="0 1 0"/><parent link="base_link"/><child link="wheel_link"/>
  </joint>
  <joint name="world" type="floating"><parent link="odom"/><child link="base_link"/></joint>
  <transmission name="t"><joint name="wheel"/></transmission>
</robot>
"""


def file(folder: Path, text: str, name: str = 'robot.urdf') -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.fixture(scope='module')
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp('urdf')


number = st.floats(-10.0, 10.0)
triples = st.tuples(number, number, number)


@given(first=st.tuples(triples, triples), second=st.tuples(triples, triples), point=triples)
def test_joints_are_rotated_and_chained_like_with_scipy(
    scratch: Path,
    first: tuple[tuple[float, ...], ...],
    second: tuple[tuple[float, ...], ...],
    point: tuple[float, ...],
) -> None:
    """A point in the sensor, in base_link: x y z and fixed-axis roll, pitch, yaw, twice."""

    def joint(parent: str, child: str, xyz: tuple[float, ...], rpy: tuple[float, ...]) -> str:
        place = f'xyz="{" ".join(map(repr, xyz))}" rpy="{" ".join(map(repr, rpy))}"'
        ends = f'<parent link="{parent}"/><child link="{child}"/>'
        return f'<joint name="{child}" type="fixed"><origin {place}/>{ends}</joint>'

    joints = joint('mast', 'imu', *second) + joint('base', 'mast', *first)
    transforms = TransformFile.from_file(file(scratch, f'<robot>{joints}</robot>')).transforms
    rotation, position = FrameTree(transforms).lookup('base', 'imu', '')
    expected = np.array(point)
    for xyz, rpy in (second, first):
        roll, pitch, yaw = (
            Rotation.from_rotvec(angle * axis) for angle, axis in zip(rpy, np.eye(3), strict=True)
        )
        expected = (yaw * pitch * roll).apply(expected) + xyz
    moved = rotation @ point + position
    np.testing.assert_allclose(moved, expected, atol=1e-12, err_msg='scipy Rotation, 1e-12')


def test_a_urdf_gives_fixed_joints_and_moving_joints_at_zero(tmp_path: Path) -> None:
    file_transforms = TransformFile.from_file(file(tmp_path, ROBOT, 'robot'))
    children = [transform.child for transform in file_transforms.transforms]
    assert children == ['mast', 'imu_link', 'wheel_link']
    assert file_transforms.transforms[2] == StaticTransform(
        'base_link', 'wheel_link', (0.0, 1.0, 0.0)
    )
    assert [note.code for note in file_transforms.notes] == ['recording.transform']


XACRO = '<robot xmlns:x="http://www.ros.org/wiki/xacro"><x:include filename="a"/></robot>'


@pytest.mark.parametrize(
    ('text', 'place'),
    [
        ('<robot', 'XML'),
        ('<sdf/>', 'sdf'),
        ('<robot/>', 'transform'),
        ('<?xml version="1.0" encoding="of-old"?><robot/>', 'encoding'),
        (ROBOT.replace('link="mast"', 'link="base_link"', 1), 'base_link'),
        (XACRO, 'xacro robot.urdf > robot.urdf'),
        ('<robot><link name="${prefix}_link"/></robot>', 'xacro'),
        ('<robot><joint name="j" type="welded"/></robot>', "j: type 'welded'"),
        ('<robot><joint type="fixed"/></robot>', 'joint[0]: parent'),
        (ROBOT.replace('0.5 0 1', '0.5 0'), "j0: xyz '0.5 0'"),
        (ROBOT.replace('1.57', 'inf'), "j0: rpy '0 0 inf'"),
        (ROBOT.replace('"imu_link"', '"mast"'), 'j1: link mast'),
        ('- {parent: a, child: b, rotation_xyzw: [0, 0, 0, 0]}', 'rotation_xyzw'),
        ('- {parent: a, child: b}\n- {parent: c, child: /b}', "child '/b'"),
        ('- {parent: a}', 'child'),
    ],
)
def test_a_wrong_file_is_refused_in_one_line_by_place(
    tmp_path: Path, text: str, place: str
) -> None:
    name = 'robot.urdf' if text.startswith('<') else 'frames.yaml'
    with pytest.raises(Sim2RealError) as error:
        TransformFile.from_file(file(tmp_path, text, name))
    assert place in str(error.value)
    assert '\n' not in str(error.value)


def at(parent: str, child: str, x: float) -> StaticTransform:
    return StaticTransform(parent, child, (x, 0.0, 0.0))


@pytest.mark.parametrize(
    ('recorded', 'note_count', 'where'),
    [
        ([], 0, {'imu': 1.0}),
        ([at('base', 'imu', 1.0)], 0, {'imu': 1.0}),
        ([at('base', 'imu', 5.0)], 1, {'imu': 1.0}),
        # The same transform and another one, from child to parent.
        ([at('imu', 'base', -1.0)], 0, {'imu': 1.0}),
        ([at('/imu', 'base', -5.0)], 1, {'imu': 1.0}),
        ([at('base', 'gps', 3.0)], 0, {'imu': 1.0, 'gps': 3.0}),
        # By way of a mount that the file does not know, first in either order.
        ([at('mount', 'imu', 0.5), at('base', 'mount', 0.5)], 0, {'imu': 1.0, 'mount': 0.5}),
        ([at('base', 'mount', 2.0), at('mount', 'imu', 2.0)], 1, {'imu': 1.0, 'mount': 2.0}),
    ],
)
def test_a_transform_file_completes_and_overrides_the_recorded_transforms(
    tmp_path: Path, recorded: list[StaticTransform], note_count: int, where: dict[str, float]
) -> None:
    text = '- {parent: base, child: imu, translation: [1, 0, 0]}'
    file_transforms = TransformFile.from_file(file(tmp_path, text, 'frames.yaml'))
    merged, notes = file_transforms.merge_with(recorded)
    assert len(notes) == note_count
    assert all(note.code == 'recording.transform' for note in notes)
    tree = FrameTree(merged)
    for frame, x in where.items():
        np.testing.assert_allclose(tree.lookup('base', frame, '')[1], [x, 0.0, 0.0], atol=1e-15)
    assert file_transforms.merge_with(merged) == (merged, ())


def test_judge_and_twins_use_the_mountings_of_the_transform_file(tmp_path: Path) -> None:
    """An IMU turned by 1.57 rad on a mast: its heading becomes base_link's."""
    file_transforms = TransformFile.from_file(file(tmp_path, ROBOT))
    run = recording({'imu': imu(stamps(50.0, 1.0), yaw=2.0)}, (at('base_link', 'imu_link', 0.0),))
    config = filter_config(tmp_path, imu0='imu', imu0_config=mask('yaw'), two_d_mode=True)
    judged = judge(run, config, None, ReplayOptions(transforms=file_transforms))
    yaw = Rotation.from_quat(judged.orientation[-1]).as_euler('xyz')[2]
    assert yaw == pytest.approx(2.0 - 1.57, abs=1e-6)
    codes = [note.code for note in judged.notes if note.subject == 'robot.urdf']
    assert codes == ['recording.transform'] * 2
    write_recording(run, tmp_path / 'run', storage='csv')
    read = RecordingSource(str(tmp_path / 'run'), transforms=file_transforms).read()
    assert read.transforms == file_transforms.transforms
    again = judge(read, config, None, ReplayOptions(transforms=file_transforms))
    assert again.position.tobytes() == judged.position.tobytes()


def transforms_of(rng: np.random.Generator, names: list[str]) -> list[StaticTransform]:
    """Chain of random transforms, some of them given from child to parent."""
    result = []
    for parent, child in itertools.pairwise(names):
        if rng.random() < 0.5:
            parent, child = child, parent
        rotation = Rotation.random(rng=rng).as_quat()
        place = tuple(rng.normal(size=3))
        result.append(StaticTransform(parent, child, place, tuple(rotation.tolist())))
    return result


def as_matrix(transform: StaticTransform) -> np.ndarray:
    matrix = np.eye(4)
    matrix[:3, :3] = Rotation.from_quat(transform.rotation).as_matrix()
    matrix[:3, 3] = transform.translation
    return matrix


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(2, 6))
def test_frames_chain_as_homogeneous_matrices(seed: int, length: int) -> None:
    """From one end of a chain to the other, in any direction of its links."""
    rng = np.random.default_rng(seed)
    names = [f'frame{number}' for number in range(length)]
    chain = transforms_of(rng, names)
    expected = np.eye(4)
    for parent, transform in zip(names, chain, strict=False):
        matrix = as_matrix(transform)
        expected = expected @ (matrix if transform.parent == parent else np.linalg.inv(matrix))
    rng.shuffle(chain)
    rotation, position = FrameTree(chain).lookup(names[0], names[-1], 'test')
    np.testing.assert_allclose(rotation, expected[:3, :3], atol=1e-12)
    np.testing.assert_allclose(position, expected[:3, 3], atol=1e-12)


def test_equal_frames_need_no_transform_and_leading_slashes_are_ignored() -> None:
    tree = FrameTree([StaticTransform('/base_link', 'imu', (1.0, 2.0, 3.0))])
    assert tree.lookup('imu', '/imu', 'test')[1].tolist() == [0.0, 0.0, 0.0]
    assert tree.lookup('base_link', 'imu', 'test')[1].tolist() == [1.0, 2.0, 3.0]


def test_unknown_frame_is_refused_with_both_names() -> None:
    tree = FrameTree([StaticTransform('base_link', 'imu'), StaticTransform('other', 'gps')])
    for source in ('gps', 'camera'):
        with pytest.raises(JudgeError, match=f"imu0.*'{source}' to 'base_link'"):
            tree.lookup('base_link', source, 'imu0')
    assert not tree.assumed


def test_identity_is_assumed_only_when_there_are_no_transforms(tmp_path: Path) -> None:
    tree = FrameTree([], assume_identity=True)
    rotation, position = tree.lookup('base_link', 'imu', 'imu0')
    tree.lookup('base_link', 'imu', 'imu0')
    assert rotation.tolist() == np.eye(3).tolist()
    assert not position.any()
    assert tree.assumed == [('base_link', 'imu')]
    clock = stamps(20.0, 1.0)
    config = filter_config(tmp_path, odom0='odom', odom0_config=mask('vx'), **YAW)
    messages = {'odom': odometry(clock), 'imu': imu(clock)}
    free = judge(recording(messages), config)
    assert 'frames.assumed_equal' in {note.code for note in free.notes}
    other = (StaticTransform('base_link', 'camera'),)
    with pytest.raises(JudgeError, match="'imu_link' to 'base_link'"):
        judge(recording(messages, other), config)
