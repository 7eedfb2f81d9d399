# SPDX-License-Identifier: Apache-2.0
"""Transforms from URDF and YAML files, merged with those of a recording."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_examples import filter_config, imu, mask, recording, stamps
from scipy.spatial.transform import Rotation

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
def test_joints_are_turned_and_chained_as_scipy_does(
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
    np.testing.assert_allclose(rotation @ point + position, expected, atol=1e-12)


def test_a_description_gives_fixed_joints_and_moving_ones_at_zero(tmp_path: Path) -> None:
    given_file = TransformFile.from_file(file(tmp_path, ROBOT, 'robot'))
    assert [transform.child for transform in given_file.transforms] == [
        'mast',
        'imu_link',
        'wheel_link',
    ]
    assert given_file.transforms[2] == StaticTransform('base_link', 'wheel_link', (0.0, 1.0, 0.0))
    assert [
        (note.code, note.subject, 'wheel' in note.words['problem']) for note in given_file.notes
    ] == [('recording.transform', 'robot', True)]


@pytest.mark.parametrize(
    ('text', 'complaint'),
    [
        ('<robot', 'not XML'),
        ('<sdf/>', "'sdf' is not allowed at the top; must be robot"),
        ('<robot/>', 'has no transform'),
        ('<?xml version="1.0" encoding="of-old"?><robot/>', 'not XML: unknown encoding'),
        (ROBOT.replace('link="mast"', 'link="base_link"', 1), 'base_link is its own parent'),
        (
            '<robot xmlns:x="http://www.ros.org/wiki/xacro"><x:include filename="a"/></robot>',
            'is an unexpanded xacro file; run `xacro robot.urdf > robot.urdf`',
        ),
        ('<robot><link name="${prefix}_link"/></robot>', 'is an unexpanded xacro file'),
        ('<robot><joint name="j" type="welded"/></robot>', "j: type 'welded' is not allowed"),
        ('<robot><joint type="fixed"/></robot>', 'joint[0]: parent is missing; must name a link'),
        (ROBOT.replace('0.5 0 1', '0.5 0'), "j0: xyz '0.5 0' is not allowed; must be 3 finite"),
        (ROBOT.replace('1.57', 'inf'), "j0: rpy '0 0 inf' is not allowed"),
        (ROBOT.replace('"imu_link"', '"mast"'), 'j1: link mast has two parents; must have one'),
    ],
)
def test_a_wrong_description_is_said_in_a_line(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(Sim2RealError) as error:
        TransformFile.from_file(file(tmp_path, text))
    assert complaint in str(error.value)
    assert '\n' not in str(error.value)


@pytest.mark.parametrize(
    ('text', 'complaint'),
    [
        ('', 'has no transform'),
        ('- {parent: a, child: b, rotation_xyzw: [0, 0, 0, 0]}', 'must be a quaternion'),
        ('- {parent: a, child: b}\n- {parent: c, child: /b}', "child '/b' is given twice"),
        ('- {parent: a}', 'child'),
    ],
)
def test_a_wrong_yaml_is_said_in_a_line(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(Sim2RealError) as error:
        TransformFile.from_file(file(tmp_path, text, 'frames.yaml'))
    assert complaint in str(error.value)


def at(parent: str, child: str, x: float) -> StaticTransform:
    return StaticTransform(parent, child, (x, 0.0, 0.0))


@pytest.mark.parametrize(
    ('recorded', 'note_count', 'where'),
    [
        ([], 0, {'imu': 1.0}),
        ([at('base', 'imu', 1.0)], 0, {'imu': 1.0}),
        ([at('base', 'imu', 5.0)], 1, {'imu': 1.0}),
        # The same said from the other end, and otherwise.
        ([at('imu', 'base', -1.0)], 0, {'imu': 1.0}),
        ([at('/imu', 'base', -5.0)], 1, {'imu': 1.0}),
        ([at('base', 'gps', 3.0)], 0, {'imu': 1.0, 'gps': 3.0}),
        # By way of a mount that the file does not know, first in either order.
        ([at('mount', 'imu', 0.5), at('base', 'mount', 0.5)], 0, {'imu': 1.0, 'mount': 0.5}),
        ([at('base', 'mount', 2.0), at('mount', 'imu', 2.0)], 1, {'imu': 1.0, 'mount': 2.0}),
    ],
)
def test_the_file_completes_the_recording_and_counts_where_both_speak(
    tmp_path: Path, recorded: list[StaticTransform], note_count: int, where: dict[str, float]
) -> None:
    text = '- {parent: base, child: imu, translation: [1, 0, 0]}'
    given_file = TransformFile.from_file(file(tmp_path, text, 'frames.yaml'))
    merged, notes = given_file.over(recorded)
    assert len(notes) == note_count
    assert all(note.code == 'recording.transform' for note in notes)
    tree = FrameTree(merged)
    for frame, x in where.items():
        np.testing.assert_allclose(tree.lookup('base', frame, '')[1], [x, 0.0, 0.0], atol=1e-15)
    assert given_file.over(merged) == (merged, ())


def test_the_judge_and_the_twins_take_the_sensors_from_the_file(tmp_path: Path) -> None:
    """An IMU turned by 1.57 rad on a mast: its heading becomes base_link's."""
    given_file = TransformFile.from_file(file(tmp_path, ROBOT))
    run = recording({'imu': imu(stamps(50.0, 1.0), yaw=2.0)}, (at('base_link', 'imu_link', 0.0),))
    config = filter_config(tmp_path, imu0='imu', imu0_config=mask('yaw'), two_d_mode=True)
    judged = judge(run, config, None, ReplayOptions(transforms=given_file))
    yaw = Rotation.from_quat(judged.orientation[-1]).as_euler('xyz')[2]
    assert yaw == pytest.approx(2.0 - 1.57, abs=1e-6)
    moved = [note for note in judged.notes if note.subject == 'robot.urdf']
    assert [(note.code, 'wheel' in note.words['problem']) for note in moved] == [
        ('recording.transform', True),
        ('recording.transform', False),
    ]
    write_recording(run, tmp_path / 'run', storage='csv')
    read = RecordingSource(str(tmp_path / 'run'), transforms=given_file).read()
    assert read.transforms == given_file.transforms
    assert sum('replaces' in note.problem for note in read.notes) == 1
    again = judge(read, config, None, ReplayOptions(transforms=given_file))
    assert again.position.tobytes() == judged.position.tobytes()
    assert [note.subject for note in again.notes if note.code == 'recording.transform'] == [
        'robot.urdf'
    ]
