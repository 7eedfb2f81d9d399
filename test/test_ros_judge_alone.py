# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""judge_node alone in this process: its parameters, services, transforms and system clock."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip('rclpy')

import rclpy
from geometry_msgs.msg import PoseWithCovarianceStamped, Twist
from live_examples import MOUNTED, curve, everything
from nav_msgs.msg import Odometry
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from ros_examples import signals_left_alone
from ros_judge_examples import write_parameters
from std_srvs.srv import Empty

from sim2real_eval.judge.external.graph import free_domain, private_context
from sim2real_eval.recording.cdr import encode_transforms
from sim2real_eval.recording.metadata import FrameTree
from sim2real_eval.ros.judge_node import JudgeNode, main


@pytest.fixture(autouse=True)
def domain() -> Iterator[int]:
    """Reserve a domain, so that no other node of the same name hears this one."""
    with free_domain() as domain, private_context(domain):
        yield domain


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Parameter files and transforms as a user has them."""
    return write_parameters(tmp_path_factory.mktemp('judge_node'))


@pytest.mark.parametrize(
    ('parameter', 'name'),
    [
        ('frequncy:=3.0', 'frequncy'),
        ('sensor_timeout:=often', 'sensor_timeout'),
        ('navsat_params_file:=/nowhere.yaml', '/nowhere.yaml'),
        ('filter:=kf', 'filter'),
        ('correct:=gravity', 'correct'),
        ('correct:=[unscented]', 'unscented'),
    ],
)
def test_a_wrong_parameter_ends_the_node_with_one_line_and_status_2(
    folder: Path, capsys: pytest.CaptureFixture[str], parameter: str, name: str
) -> None:
    node_arguments = ['--params-file', str(folder / 'params.yaml'), '-p', parameter]
    with signals_left_alone():
        assert main(['--ros-args', *node_arguments]) == 2
    output = capsys.readouterr()
    assert output.out == ''
    (line,) = output.err.splitlines()
    assert line.startswith('judge_node: error: ')
    assert name in line


def test_a_dump_with_an_empty_list_starts_the_node(folder: Path, domain: int) -> None:
    """As `ros2 param dump` writes it."""
    file = folder / 'dump.yaml'
    file.write_text('/**: {ros__parameters: {correct: [], autostart: false}}')
    context = Context()
    rclpy.init(
        args=[
            '--ros-args', '--params-file', str(folder / 'params.yaml'),
            '--params-file', str(file),
        ],
        context=context,
        domain_id=domain,
    )  # fmt: skip
    node = JudgeNode(context=context)
    assert node._settings.correct == frozenset()
    # `ros2 param dump` writes this one.
    assert node.get_parameter('correct').value == []
    again = Parameter('correct', Parameter.Type.BOOL_ARRAY, [])
    assert node.set_parameters([again])[0].successful
    node.destroy_node()
    rclpy.shutdown(context=context)


def test_static_transforms_are_read_from_tf2_messages(folder: Path, domain: int) -> None:
    """The wire format of tf2_msgs/TFMessage; the subscription itself needs tf2_msgs installed."""
    context = Context()
    rclpy.init(
        args=['--ros-args', '--params-file', str(folder / 'params.yaml')],
        context=context,
        domain_id=domain,
    )
    node = JudgeNode(context=context)
    for transform in MOUNTED:
        node.receive_transforms(encode_transforms([transform], 0))
    rotation, position = node.live.frames.lookup('imu_link', 'gps_link', 'test')
    expected, place = FrameTree(MOUNTED).lookup('imu_link', 'gps_link', 'test')
    np.testing.assert_array_equal(rotation, expected)
    np.testing.assert_array_equal(position, place)
    node.destroy_node()
    rclpy.shutdown(context=context)


def test_the_node_publishes_at_its_rate_on_the_system_clock(tmp_path: Path, domain: int) -> None:
    """Wheel odometry stamped now, and Twist commands, which act from their arrival."""
    config = everything(tmp_path)
    context = Context()
    rclpy.init(
        args=[
            '--ros-args', '--params-file', config.where, '-p', 'assume_identity_frames:=true',
            '-r', 'odometry/gps:=somewhere_else',
        ],
        context=context,
        domain_id=domain,
    )  # fmt: skip
    judge_node, driver = JudgeNode(context=context), rclpy.create_node('driver', context=context)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(judge_node)
    executor.add_node(driver)
    wheel = driver.create_publisher(Odometry, '/wheel/odom', 10)
    commanded = driver.create_publisher(Twist, '/cmd_vel', 10)
    received: list[Odometry] = []
    driver.create_subscription(Odometry, '/odometry/filtered', received.append, 10)

    def send() -> None:
        message = Odometry(child_frame_id='base_link')
        message.header.stamp = driver.get_clock().now().to_msg()
        message.header.frame_id = 'odom'
        message.twist.twist.linear.x = 2.0
        message.twist.covariance = 0.01 * np.eye(6).ravel()
        wheel.publish(message)
        commanded.publish(Twist())

    driver.create_timer(0.01, send)
    end = time.monotonic() + 180.0
    while len(received) < 10 or not judge_node.health.received.get('cmd_vel'):
        assert time.monotonic() < end
        executor.spin_once(timeout_sec=0.1)
    stamps = [
        message.header.stamp.sec * 10**9 + message.header.stamp.nanosec for message in received
    ]
    assert (np.diff(stamps) > 0).all()
    assert received[-1].twist.twist.linear.x == pytest.approx(2.0, abs=0.3)
    executor.shutdown()
    judge_node.destroy_node()
    driver.destroy_node()
    rclpy.shutdown(context=context)


@pytest.mark.parametrize(
    ('release', 'prefix', 'starts_disabled'),
    [
        ('3.8', '', True),
        ('3.10', '/ekf_filter_node', True),
        ('rolling', '/ekf_filter_node', False),
    ],
)
def test_services_have_the_names_of_the_release(
    folder: Path, domain: int, release: str, prefix: str, starts_disabled: bool
) -> None:
    """With the types of robot_localization, toggle and set_pose act in the same way."""
    context = Context()
    rclpy.init(
        args=[
            '--ros-args', '--params-file', str(folder / 'params.yaml'),
            '-p', f"rl_version:='{release}'", '-p', 'disabled_at_startup:=true',
            '-p', 'assume_identity_frames:=true',
        ],
        context=context,
        domain_id=domain,
    )  # fmt: skip
    node = JudgeNode(context=context)
    names = {node.resolve_service_name(service.srv_name) for service in node.services}
    assert {f'{prefix}/enable', f'{prefix}/toggle', '/reset'} <= names
    assert node.live.enabled == (not starts_disabled)
    node._on_enable(Empty.Request(), Empty.Response())
    assert node.live.enabled
    answers = [node._on_toggle(SimpleNamespace(on=on), SimpleNamespace()) for on in (False, False)]
    assert [answer.status for answer in answers] == [True, False]
    assert not node.live.processing
    pose = PoseWithCovarianceStamped()
    pose.header.frame_id, pose.pose.pose.orientation.w = 'odom', 1.0
    pose.pose.pose.position.x = 4.0
    node._on_set_pose(SimpleNamespace(pose=pose), SimpleNamespace())
    node.live.receive('odom0', curve(0.1).messages['/wheel/odom'].take([0]))
    assert node.health.received == {'set_pose': 1}
    assert node.live._filter.x[0] == 4.0
    node.destroy_node()
    rclpy.shutdown(context=context)
