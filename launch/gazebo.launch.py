# SPDX-License-Identifier: Apache-2.0
"""Gazebo with a robot, its bridge, sensors that measure the robot, a judge and a recording.

Without a window; the launch ends with Gazebo. Fortress (`ign`) or Harmonic and later (`gz`).

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
    check_packages,
    declare,
    profile_file,
)
from sim2real_eval.ros_launch.nodes import PACKAGE, ended_badly, include, node, note_mounting
from sim2real_eval.ros_launch.sensors import scratch_file
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.parameters import Parameter

COMMANDS = {'gz': ('gz', 'sim'), 'ign': ('ign', 'gazebo')}


def generate_launch_description() -> LaunchDescription:
    return LaunchDescription(
        [
            *declare('world_file', 'bridge_file', 'robot_file', 'iterations', 'headless'),
            *declare('sensors', 'imu', 'gps', 'mag', 'seed', 'run', 'sensors_params_file'),
            *declare('noise_free_gps', 'noise_free_mag', noise_free_imu='true'),
            *declare('sensor_transforms', 'static_transforms_file'),
            *declare('profile', judge=JUDGE_OR_NONE, judge_params_file=profile_file()),
            *declare(navsat_params_file=profile_file(NAVSAT)),
            *declare(out=Parameter('', '', 'Folder of the bag; none: nothing is recorded.')),
            *declare('storage', 'namespace', 'log_level', use_sim_time='true'),
            check_packages(),
            note_mounting(),
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
            OpaqueFunction(function=gazebo),
        ]
    )


def gazebo(context: LaunchContext) -> list:
    def value(name: str) -> str:
        return LaunchConfiguration(name).perform(context)

    command = next((words for name, words in COMMANDS.items() if shutil.which(name)), None)
    if command is None:
        raise ParameterError('launch', 'world_file', 'Gazebo (gz or ign) is not installed')
    shipped = Path(get_package_share_directory(PACKAGE), 'gazebo_ws_plugins')
    given = value('robot_file')
    fortress = command[0] == 'ign'
    world = value('world_file') or field(shipped, car=not given, fortress=fortress)
    # Gazebo last of all: it takes longest to start.
    return [
        bridge(value('bridge_file') or str(shipped / 'config' / 'bridge.yaml')),
        *recorder(value('out'), value('storage')),
        *robot(given, fortress=fortress),
        ExecuteProcess(
            cmd=[
                *command,
                *('-r', '--iterations', value('iterations')),
                *(['-s'] if value('headless') == 'true' else []),
                world,
            ],
            name='gazebo',
            output='screen',
            on_exit=ended,
        ),
    ]


def ended(event: ProcessExited, context: LaunchContext) -> list:
    return ended_badly(event, context) or [Shutdown(reason='Gazebo has ended')]


def bridge(file: str) -> Node:
    return node(
        'parameter_bridge',
        package='ros_gz_bridge',
        name='gazebo_bridge',
        parameters=[{'config_file': file}],
        on_exit=ended_badly,
    )


def field(shipped: Path, *, car: bool, fortress: bool) -> str:
    """Return the shipped world, or a copy where it must differ.

    The topics of its car are those of a robot too.
    """
    world = shipped / 'worlds' / 'sim2real_field.sdf'
    if car and not fortress:
        return str(world)
    text = world.read_text('utf-8')
    if not car:
        text = re.sub('<model name="car">.*?</model>', '', text, flags=re.DOTALL)
    return str(scratch_file(world.stem, '.sdf', of_fortress(text) if fortress else text))


def of_fortress(text: str) -> str:
    """Return SDF or URDF with the names of systems that all releases of Fortress know.

    Those of the later Gazebo it knows only since 6.18.
    """
    return text.replace('gz-sim-', 'ignition-gazebo-').replace('gz::sim', 'ignition::gazebo')


def robot(file: str, *, fortress: bool) -> list[Node]:
    """Return what puts a robot of URDF or SDF into the world."""
    if not file:
        return []
    if fortress:
        path = Path(file)
        try:
            given = path.read_text('utf-8')
        except UnicodeDecodeError:
            raise ParameterError('launch', 'robot_file', f'{file} is not UTF-8 text') from None
        # A copy has other files beside it: only where it must be.
        if (text := of_fortress(given)) != given:
            file = str(scratch_file(path.stem, path.suffix, text))
    return [
        node(
            'create',
            package='ros_gz_sim',
            name='gazebo_robot',
            # At rest on the ground; from above it would fall.
            arguments=['-file', file, '-z', '0'],
            on_exit=ended_badly,
        )
    ]


def recorder(out: str, storage: str) -> list[ExecuteProcess]:
    """Return what records all topics; it needs a while to write what it has."""
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
