# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""ekf_node and navsat_transform_node of robot_localization; see the YAML file of the same name."""

from __future__ import annotations

from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

PROFILE = Path(__file__).resolve().parent.parent / 'judge'


def generate_launch_description() -> LaunchDescription:
    """Return what `ros2 launch` starts."""
    params = LaunchConfiguration('params_file')
    return LaunchDescription(
        [
            DeclareLaunchArgument('params_file', description='use_sim_time, for both nodes.'),
            Node(
                package='robot_localization',
                executable='ekf_node',
                parameters=[str(PROFILE / 'clean.yaml'), params],
            ),
            Node(
                package='robot_localization',
                executable='navsat_transform_node',
                parameters=[str(PROFILE / 'clean_navsat.yaml'), params],
                remappings=[('imu', 'imu/data')],
            ),
        ]
    )
