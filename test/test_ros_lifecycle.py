# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Lifecycle nodes of robot_localization are configured and activated; other nodes still work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='no ROS')

import numpy as np
from judge_examples import filter_config, mask
from live_examples import curve

from sim2real_eval.common.findings import JudgeError
from sim2real_eval.judge.estimate import RELEASE_DIFFERS
from sim2real_eval.judge.external import NodeJudgeSetup
from sim2real_eval.judge.external.graph import free_domain
from sim2real_eval.judge.robot_localization.release import Release
from sim2real_eval.judge.robot_localization.replay_options import Options
from sim2real_eval.judge.setup import JudgeSetup

NODES = {'lifecycle': '-p autostart:=false', 'plain': ''}
"""Arguments with which judge_node is like the ekf_node after and before robot_localization 3.10.1.
"""
PACKAGE = '<package format="3"><version>{}</version><depend>{}</depend></package>'
LIFECYCLE_PACKAGE = PACKAGE.format('3.10.1', 'rclcpp_lifecycle')


def install(prefix: Path, node: str, package: str) -> None:
    """Install a robot_localization whose ekf_node is one of NODES."""
    index = prefix / 'share/ament_index/resource_index/packages/robot_localization'
    manifest = prefix / 'share/robot_localization/package.xml'
    program = prefix / 'lib/robot_localization/ekf_node'
    for path in (index, manifest, program):
        path.parent.mkdir(parents=True)
    index.touch()
    manifest.write_text(package)
    command = f'{sys.executable} -m sim2real_eval.ros.judge_node'
    program.write_text(f'#!/bin/sh\nexec {command} "$@" {NODES[node]}\n')
    program.chmod(0o755)


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    prefix = tmp_path / 'prefix'
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(prefix))
    return prefix


def setup_of(folder: Path, release: Release) -> JudgeSetup:
    """Return wheels and an IMU at 20 Hz with a stated sensor_timeout."""
    filter_config(
        folder, frequency=20.0, sensor_timeout=0.1, two_d_mode=True, odom0='wheel/odom',
        odom0_config=mask('vx'), imu0='imu/data', imu0_config=mask('yaw', 'vyaw'),
    )  # fmt: skip
    return JudgeSetup.load(folder / 'params.yaml', options=Options(release=release))


@pytest.mark.parametrize(
    ('node', 'package', 'release'),
    [
        ('lifecycle', LIFECYCLE_PACKAGE, Release.ROLLING),
        ('plain', PACKAGE.format('3.10.0', 'rclcpp'), Release.V3_10),
    ],
)
def test_a_filter_node_judges_whether_it_is_a_lifecycle_node_or_not(
    tmp_path: Path, prefix: Path, node: str, package: str, release: Release
) -> None:
    install(prefix, node, package)
    setup, run = setup_of(tmp_path, release), curve(1.0, transforms=())
    judged = NodeJudgeSetup.from_setup(setup, 'robot_localization').judge(run)
    expected = setup.judge(run)
    assert judged.stamp_ns.tolist() == expected.stamp_ns.tolist()
    np.testing.assert_allclose(judged.linear_velocity, expected.linear_velocity, atol=1e-9)
    assert RELEASE_DIFFERS not in [note.kind for note in judged.notes]


def test_a_lifecycle_node_that_nobody_activates_is_an_error(
    tmp_path: Path, prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The package denies that its nodes are lifecycle nodes: it never subscribes."""
    install(prefix, 'lifecycle', PACKAGE.format('3.10.0', 'rclcpp'))
    monkeypatch.setattr('sim2real_eval.judge.external.graph._START_TIMEOUT_S', 8.0)
    setup = NodeJudgeSetup.from_setup(setup_of(tmp_path, Release.V3_10), 'robot_localization')
    with pytest.raises(JudgeError, match='subscriptions'):
        setup.judge(curve(0.5, transforms=()))


def test_another_release_than_the_installed_one_is_told(tmp_path: Path, prefix: Path) -> None:
    install(prefix, 'plain', PACKAGE.format('3.9.3', 'rclcpp'))
    setup = setup_of(tmp_path, Release.V3_8)
    judged = NodeJudgeSetup.from_setup(setup, 'robot_localization').judge(
        curve(0.5, transforms=())
    )
    (finding,) = [note for note in judged.notes if note.kind is RELEASE_DIFFERS]
    assert finding.words == {'version': '3.9.3', 'installed': '3.10', 'stated': '3.8'}
    assert "`rl_version: '3.10'`" in finding.remedy


@pytest.mark.parametrize('release', Release)
def test_judge_node_and_the_batch_judge_reproduce_the_same_release(
    tmp_path: Path, release: Release
) -> None:
    """A mounted IMU in a turn, gravity and the default of sensor_timeout: the same bits."""
    filter_config(
        tmp_path, frequency=20.0, odom0='wheel/odom', odom0_config=mask('vx'), imu0='imu/data',
        imu0_config=mask('yaw', 'vyaw', 'ax', 'ay'), imu0_remove_gravitational_acceleration=True,
    )  # fmt: skip
    setup = JudgeSetup.load(tmp_path / 'params.yaml', options=Options(release=release))
    # JudgeError if a bit differs from the batch judge.
    judged = NodeJudgeSetup.from_setup(setup, 'judge_node').judge(curve(0.6))
    assert len(judged) > 5


LAUNCH = """
import sys
from launch import LaunchDescription, LaunchService
from pathlib import Path
from launch.actions import (
    DeclareLaunchArgument, OpaqueFunction, RegisterEventHandler, Shutdown, TimerAction
)
from launch_ros.event_handlers import OnStateTransition
from sim2real_eval.ros_launch.nodes import activate, node

filter_node = node(
    'ekf_node', package='robot_localization', is_lifecycle=True, name='ekf_filter_node',
    parameters=[sys.argv[1]],
)
write = OpaqueFunction(function=lambda context: Path(sys.argv[2]).write_text('active') and None)
watch = RegisterEventHandler(OnStateTransition(
    target_lifecycle_node=filter_node, goal_state='active', entities=[write, Shutdown()]
))
defaults = {'namespace': '/car', 'log_level': 'info', 'use_sim_time': 'false'}
service = LaunchService(argv=[])
service.include_launch_description(LaunchDescription([
    *(DeclareLaunchArgument(name, default_value=value) for name, value in defaults.items()),
    *activate(filter_node), watch, filter_node,
    TimerAction(period=60.0, actions=[Shutdown(reason='late')]),
]))
service.run()
"""


def test_a_launch_configures_and_activates_a_lifecycle_node(
    tmp_path: Path, prefix: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip('launch_ros', reason='no ROS installation')
    install(prefix, 'lifecycle', LIFECYCLE_PACKAGE)
    setup_of(tmp_path, Release.ROLLING)
    script = tmp_path / 'launch_filter.py'
    script.write_text(LAUNCH)
    monkeypatch.setenv('ROS_LOG_DIR', str(tmp_path / 'log'))
    with free_domain() as domain:
        monkeypatch.setenv('ROS_DOMAIN_ID', str(domain))
        ended = subprocess.run(
            [sys.executable, str(script), str(tmp_path / 'params.yaml'), str(tmp_path / 'state')],
            cwd=tmp_path, capture_output=True, text=True, timeout=120.0, check=False,
        )  # fmt: skip
    assert (tmp_path / 'state').exists(), ended
