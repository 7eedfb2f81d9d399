# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Declared estimators of ROS where there is no ROS: files, and estimates of every type."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from sim2real_eval import simulate
from sim2real_eval.judge.external.declaration import ESTIMATES, RosStack, StackFrames, StackOutput
from sim2real_eval.judge.external.messages import estimated_run, stack_inputs
from sim2real_eval.recording.cdr import encode, encode_transforms
from sim2real_eval.recording.message_types import TF_TYPE, find_type
from sim2real_eval.recording.recording import StaticTransform
from sim_sensors import motion_of
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.measurements import OdometryArray
from sim_sensors.core.shipped import config_names, config_path

LEAST: dict[str, Any] = {'command': 'true', 'inputs': {'gps': 'fix'}}
STAMPS = 1_790_000_000 * 10**9 + np.arange(21) * 100_000_000
ALONG = 0.1 * np.arange(21)  # s
HEADING = np.array([0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5)])  # north


def messages(kind: str, velocity: str) -> list[bytes]:
    """Northwards at 3 m/s, in messages of a type."""
    still, n = np.zeros((21, 3)), len(STAMPS)
    drive = OdometryArray(
        STAMPS, STAMPS, 'odom', 'base_link', position=np.outer(3.0 * ALONG, [0.0, 1.0, 0.0]),
        orientation=np.tile(HEADING, (n, 1)), angular_velocity=still,
        linear_velocity=np.tile([3.0, 0, 0] if velocity == 'body' else [0, 3.0, 0], (n, 1)),
        pose_covariance=np.zeros((n, 6, 6)), twist_covariance=np.zeros((n, 6, 6)),
    )  # fmt: skip
    if kind == TF_TYPE:
        poses = zip(drive.position.tolist(), STAMPS.tolist(), strict=True)
        return [
            encode_transforms(
                [StaticTransform('odom', 'base_link', tuple(at), tuple(HEADING.tolist()))], stamp
            )
            for at, stamp in poses
        ]
    array = find_type(kind).array
    fields = [field.name for field in dataclasses.fields(array)]
    converted = array(**{name: getattr(drive, name) for name in fields})
    return encode(find_type(kind), converted, kind)


@pytest.mark.parametrize('velocity', ['body', 'world'])
@pytest.mark.parametrize('kind', ESTIMATES)
def test_every_message_type_of_estimates_gives_the_speed_of_the_drive(
    kind: str, velocity: str
) -> None:
    data = messages(kind, velocity)
    output = StackOutput(topic='/estimate', type=kind, velocity=velocity)
    received_ns = np.append(STAMPS, STAMPS[-1])
    run = estimated_run([*data, data[3]], received_ns, output, StackFrames())
    assert run.stamp_ns.tolist() == STAMPS.tolist()
    np.testing.assert_allclose(run.linear_velocity, np.tile([3.0, 0, 0], (21, 1)), atol=1e-9)
    codes = {note.code for note in run.notes}
    assert 'external.out_of_order' in codes
    assert ('judge.completed' in codes) == (kind != 'nav_msgs/msg/Odometry')
    assert not run.divergence_findings


@pytest.mark.parametrize(
    ('changed', 'key'),
    [
        ({'comand': 'true'}, 'comand'),
        ({'launch': 'a.launch.py'}, 'command'),
        ({'inputs': {}}, 'inputs'),
        ({'inputs': {'gps': {'topic': 'fix', 'typ': 'x'}}}, r'inputs\.gps\.typ'),
        ({'clock': {'mode': 'lock_step'}}, r'clock\.mode'),
        ({'clock': {'rate': 0}}, r'clock\.rate'),
        ({'output': {'answers': 'gsp'}}, r'output\.answers'),
        ({'command': 'echo "'}, 'command'),
        ({'inputs': {'gps': 'a b'}}, r'inputs\.gps\.topic'),
        ({'reset': 'start-anew'}, 'reset'),
        ({'parameters': [1]}, 'parameters'),
    ],
)
def test_a_wrong_declaration_is_refused_with_its_key(changed: dict[str, Any], key: str) -> None:
    with pytest.raises(ParameterError, match=f'^my.yaml: {key}'):
        RosStack.from_mapping({**LEAST, **changed}, 'my.yaml')


def test_a_correction_just_after_a_prediction_is_not_differentiated() -> None:
    """Poses at 3 m/s, each followed after 1 ms by one that is 0.1 m off; a stamp of 0 is unset."""
    kind = 'geometry_msgs/msg/PoseStamped'
    n = len(STAMPS)
    position = np.outer(3.0 * ALONG, [0.0, 1.0, 0.0])
    twice = OdometryArray(
        np.sort([*STAMPS, *(STAMPS + 10**6)]), np.sort([*STAMPS, *(STAMPS + 10**6)]), 'odom', '',
        position=np.repeat(position, 2, axis=0) + np.tile([[0.0] * 3, [0.1, 0.0, 0.0]], (n, 1)),
        orientation=np.tile(HEADING, (2 * n, 1)), angular_velocity=np.zeros((2 * n, 3)),
        linear_velocity=np.zeros((2 * n, 3)), pose_covariance=np.zeros((2 * n, 6, 6)),
        twist_covariance=np.zeros((2 * n, 6, 6)),
    )  # fmt: skip
    twice.stamp_ns[0] = 0
    array = find_type(kind).array
    fields = {field.name: getattr(twice, field.name) for field in dataclasses.fields(array)}
    data = encode(find_type(kind), array(**fields), kind)
    for spacing, most in ((0.0, 50.0), (0.05, 3.3)):
        output = StackOutput(topic='/estimate', type=kind, spacing=spacing)
        run = estimated_run(data, twice.arrival_ns, output, StackFrames())
        assert run.stamp_ns[0] > 0
        fastest = np.linalg.norm(run.linear_velocity, axis=1).max()
        assert (fastest > most) == (spacing == 0.0)


def test_the_initial_pose_is_sent_once_at_the_start_with_the_heading() -> None:
    drive = simulate(motion_of('line', duration=3.0), gps='baseline', imu='ideal')
    pose = {'topic': 'start', 'type': 'geometry_msgs/msg/PoseStamped'}
    stack = RosStack.from_mapping({**LEAST, 'inputs': {'initial_pose': pose}}, 'my.yaml')
    begin = drive.start_ns + 10**9
    (kind, at), (_, unknown) = (
        stack_inputs(stack, drive, begin, heading)['initial_pose']
        for heading in (np.pi / 2.0, None)
    )
    assert kind.name == pose['type']
    assert len(at) == 1
    assert begin <= at.arrival_ns[0] < begin + 2 * 10**8
    assert at.orientation[0] == pytest.approx(HEADING)
    assert unknown.orientation[0].tolist() == [0.0, 0.0, 0.0, 1.0]
    assert at.position[0, 0] > 0.1
    assert unknown.pose_covariance[0, 5, 5] > at.pose_covariance[0, 5, 5]


def test_shipped_declarations_load_and_are_read_back() -> None:
    for name in config_names('estimators'):
        stack = RosStack.from_file(config_path('estimators', f'{name}.yaml'))
        assert RosStack.from_mapping(stack.to_mapping(), name) == stack
        for part in (stack.parameters_file, stack.launch):
            assert config_path('estimators', part).exists()
