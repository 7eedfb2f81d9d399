# SPDX-License-Identifier: Apache-2.0
"""Processes of gazebo.launch.py, with the real launch and launch_ros."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from launch_examples import started
from test_launch_real import index, process_of  # noqa: F401

from sim_sensors.core.errors import ParameterError


def test_gazebo_is_started_last_with_its_bridge_and_ends_the_launch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gz = tmp_path / 'gz'
    gz.touch(mode=0o755)
    monkeypatch.setenv('PATH', str(tmp_path))
    processes = started('gazebo.launch.py', iterations='5000', out=str(tmp_path / 'bag'))
    assert processes[-1].words[:5] == ['sim', '-r', '--iterations', '5000', '-s']
    assert Path(processes[-1].words[-1]).name == 'sim2real_field.sdf'
    assert Path(process_of(processes, 'parameter_bridge').own['config_file']).is_file()
    assert {'sensors_node', 'judge_node'} <= {process.executable for process in processes}
    assert 'record' in ' '.join(processes[-2].words)
    gz = gz.rename(tmp_path / 'ign')
    robot = tmp_path / 'robot.urdf'
    robot.write_text('<plugin filename="gz-sim-imu-system" name="gz::sim::systems::Imu"/>')
    processes = started('gazebo.launch.py', robot_file=str(robot))
    option, spawned, *height = process_of(processes, 'create').words[:4]
    assert [option, *height] == ['-file', '-z', '0']
    plugin = (
        '<plugin filename="ignition-gazebo-imu-system" name="ignition::gazebo::systems::Imu"/>'
    )
    assert Path(spawned).read_text('utf-8') == plugin
    world = Path(processes[-1].words[-1]).read_text('utf-8')
    assert (re.findall('<model name="(.*)"', world), 'gz-sim' in world) == (['field'], False)
    robot.write_bytes(b'\xff')
    with pytest.raises(ParameterError, match='robot_file'):
        started('gazebo.launch.py', robot_file=str(robot))
    gz.unlink()
    with pytest.raises(ParameterError, match='Gazebo'):
        started('gazebo.launch.py')
