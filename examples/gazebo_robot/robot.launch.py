# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Gazebo, its bridge, and sensors that measure the robot's true odometry."""

from __future__ import annotations

from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare

HERE = Path(__file__).resolve().parent
CLOCK = {'use_sim_time': True}


def included(package: str, *place: str, **arguments: object) -> IncludeLaunchDescription:
    """Include a launch file of a package."""
    path = PathJoinSubstitution([FindPackageShare(package), *place])
    return IncludeLaunchDescription(path, launch_arguments=list(arguments.items()))


def generate_launch_description() -> LaunchDescription:
    """Return what `ros2 launch` starts."""
    return LaunchDescription(
        [
            DeclareLaunchArgument('gps', default_value='ch_rw', description='GPS model.'),
            DeclareLaunchArgument('imu', default_value='chrono', description='IMU model.'),
            included(
                'ros_gz_sim', 'launch', 'gz_sim.launch.py', gz_args=f'-r {HERE / "yard.sdf"}'
            ),
            Node(
                package='ros_gz_bridge',
                executable='parameter_bridge',
                parameters=[{'config_file': str(HERE / 'bridge.yaml'), **CLOCK}],
            ),
            included(
                'sim2real_sensors',
                'launch',
                'sensors.launch.py',
                gps=LaunchConfiguration('gps'),
                imu=LaunchConfiguration('imu'),
                use_sim_time='true',
            ),
        ]
    )
