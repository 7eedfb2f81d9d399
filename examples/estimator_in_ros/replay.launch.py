# SPDX-License-Identifier: Apache-2.0
"""Play a bag, run the estimator on it, and record what it publishes; end with the bag."""

from __future__ import annotations

import sys
from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, ExecuteProcess, RegisterEventHandler, Shutdown
from launch.event_handlers import OnProcessExit
from launch.substitutions import LaunchConfiguration

HERE = Path(__file__).resolve().parent
TOPIC = '/speed_filter/odometry'


def generate_launch_description() -> LaunchDescription:
    """Return what `ros2 launch` starts."""
    bag, out = LaunchConfiguration('bag'), LaunchConfiguration('out')
    # The delay lets the node and the recorder find the player's topics first.
    play = ExecuteProcess(cmd=['ros2', 'bag', 'play', '--clock', '100', '--delay', '2', bag])
    return LaunchDescription(
        [
            DeclareLaunchArgument('bag', description='Bag to replay.'),
            DeclareLaunchArgument('out', description='Bag to write; must not exist.'),
            ExecuteProcess(
                cmd=[
                    sys.executable,
                    str(HERE / 'speed_filter_node.py'),
                    '--ros-args',
                    '-p',
                    'use_sim_time:=true',
                ]
            ),
            ExecuteProcess(cmd=['ros2', 'bag', 'record', '-o', out, TOPIC]),
            play,
            RegisterEventHandler(
                OnProcessExit(target_action=play, on_exit=[Shutdown(reason='the bag has ended')])
            ),
        ]
    )
