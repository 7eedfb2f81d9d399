# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Gazebo with a robot, the bridge, sensors that measure the robot, a judge and a recording.

Gazebo is Fortress (`ign`), or Harmonic and later (`gz`), and runs without a window by default. The
launch ends with it.

Examples
--------
ros2 launch sim2real_sensors gazebo.launch.py gps:=ch_rw out:=drive_01
ros2 launch sim2real_sensors gazebo.launch.py iterations:=60000 judge:=none out:=drive_02
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch import LaunchContext, LaunchDescription
from launch.actions import ExecuteProcess, OpaqueFunction, Shutdown
from launch.conditions import IfCondition
from launch.events.process import ProcessExited
from launch.substitutions import LaunchConfiguration, NotEqualsSubstitution
from launch_ros.actions import Node

from sim2real_eval.ros_launch.arguments import (
    JUDGE_OR_NONE,
    NAVSAT,
    NO_JUDGE,
    STATED_GPS,
    check_packages,
    declare,
    profile_file,
)
from sim2real_eval.ros_launch.nodes import (
    PACKAGE,
    describe,
    fail_on_error,
    include,
    node,
    set_imu_topic,
    set_transforms_file,
)
from sim2real_eval.ros_launch.sensors import write_temporary_file
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.input_files import read_input_text
from sim_sensors.core.parameters import Parameter

COMMANDS = {'gz': ('gz', 'sim'), 'ign': ('ign', 'gazebo')}


def generate_launch_description() -> LaunchDescription:
    return describe(
        [
            *declare('world_file', 'bridge_file', 'robot_file', 'iterations', 'headless'),
            *declare('sensors', 'imu', 'imu_data_raw', 'mag', gps=STATED_GPS),
            *declare('seed', 'run', 'sensors_params_file', 'faults_file'),
            *declare('noise_free_gps', 'noise_free_mag', noise_free_imu='true'),
            *declare('sensor_transforms', 'static_transforms_file'),
            *declare('profile', judge=JUDGE_OR_NONE, judge_params_file=profile_file()),
            *declare(navsat_params_file=profile_file(NAVSAT)),
            *declare(out=Parameter('', '', 'Folder of the bag. Empty: nothing is recorded.')),
            *declare('storage', 'namespace', 'frame_prefix', 'log_level', use_sim_time='true'),
            check_packages(),
            set_imu_topic(),
            set_transforms_file(),
            include('sensors.launch.py', 'sensors_params_file'),
            # The sensors publish their transforms.
            include(
                'judge.launch.py',
                'judge_params_file',
                sensor_transforms='false',
                condition=IfCondition(
                    NotEqualsSubstitution(LaunchConfiguration('judge'), NO_JUDGE)
                ),
            ),
            OpaqueFunction(function=start_gazebo),
        ]
    )


def start_gazebo(context: LaunchContext) -> list:
    def value(name: str) -> str:
        return LaunchConfiguration(name).perform(context)

    command = next((words for name, words in COMMANDS.items() if shutil.which(name)), None)
    if command is None:
        raise ParameterError('launch', 'world_file', 'Gazebo (gz or ign) is not installed')
    shipped = Path(get_package_share_directory(PACKAGE), 'gazebo_ws_plugins')
    robot_file = value('robot_file')
    fortress = command[0] == 'ign'
    world = value('world_file') or world_file(shipped, has_car=not robot_file, fortress=fortress)
    # Gazebo starts last, since it takes longest.
    return [
        bridge(value('bridge_file') or str(shipped / 'config' / 'bridge.yaml')),
        *recorder(value('out'), value('storage')),
        *robot(robot_file, fortress=fortress),
        ExecuteProcess(
            cmd=[
                *command,
                *('-r', '--iterations', value('iterations')),
                *(['-s'] if value('headless') == 'true' else []),
                world,
            ],
            name='gazebo',
            output='screen',
            on_exit=on_gazebo_end,
        ),
    ]


def on_gazebo_end(event: ProcessExited, context: LaunchContext) -> list:
    return fail_on_error(event, context) or [Shutdown(reason='Gazebo has ended')]


def bridge(file: str) -> Node:
    return node(
        'parameter_bridge',
        package='ros_gz_bridge',
        name='gazebo_bridge',
        parameters=[{'config_file': file}],
        on_exit=fail_on_error,
    )


def world_file(shipped: Path, *, has_car: bool, fortress: bool) -> str:
    """Return the shipped world, or a copy without its car or for Fortress.

    A robot replaces the car, since both use the same topics.
    """
    world = shipped / 'worlds' / 'sim2real_field.sdf'
    if has_car and not fortress:
        return str(world)
    text = read_input_text(world)
    if not has_car:
        text = re.sub('<model name="car">.*?</model>', '', text, flags=re.DOTALL)
    return str(write_temporary_file(world.stem, '.sdf', of_fortress(text) if fortress else text))


def of_fortress(text: str) -> str:
    """Return SDF or URDF with system names that all releases of Fortress know.

    Only Fortress 6.18 and later know the names of newer Gazebo versions.
    """
    return text.replace('gz-sim-', 'ignition-gazebo-').replace('gz::sim', 'ignition::gazebo')


def robot(file: str, *, fortress: bool) -> list[Node]:
    """Return the node that puts a robot of URDF or SDF into the world."""
    if not file:
        return []
    if fortress:
        path = Path(file)
        try:
            original = read_input_text(path)
        except OSError as error:
            problem = f'{file}: {error.strerror}'
            raise ParameterError('launch', 'robot_file', problem) from None
        # Relative paths break in a copy, so it is made only if necessary.
        if (text := of_fortress(original)) != original:
            file = str(write_temporary_file(path.stem, path.suffix, text))
    return [
        node(
            'create',
            package='ros_gz_sim',
            name='gazebo_robot',
            # The robot starts on the ground, at rest.
            arguments=['-file', file, '-z', '0'],
            on_exit=fail_on_error,
        )
    ]


def recorder(out: str, storage: str) -> list[ExecuteProcess]:
    """Return the recorder of all topics, which needs time to write its cache."""
    if not out:
        return []
    return [
        ExecuteProcess(
            cmd=[
                *('ros2', 'bag', 'record', '--output', out, '--storage', storage),
                *('--use-sim-time', '--disable-keyboard-controls', '--all'),
            ],
            name='recorder',
            output='screen',
            sigterm_timeout='30',
        )
    ]
