# SPDX-License-Identifier: Apache-2.0
"""Run the judge on a live ROS graph: robot_localization with one of the shipped profiles.

Examples
--------
ros2 launch sim2real_sensors judge.launch.py use_sim_time:=true profile:=clean gps_z:=1.2
ros2 bag play my_recording --clock
"""

from __future__ import annotations

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument
from launch.conditions import IfCondition
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from sim_sensors.resources import config_names, config_path

# Every profile is a pair: NAME.yaml for ekf_node and NAME_navsat.yaml for navsat_transform_node.
NAVSAT = '_navsat'


def generate_launch_description() -> LaunchDescription:
    return LaunchDescription([*arguments(), *filter_nodes(), *sensor_transforms()])


def arguments() -> list[DeclareLaunchArgument]:
    profiles = [name for name in config_names('judge') if not name.endswith(NAVSAT)]
    profile_path = [f'{config_path("judge").as_posix()}/', LaunchConfiguration('profile')]
    return [
        DeclareLaunchArgument(
            'profile',
            default_value='paper_released',
            choices=profiles,
            description='Shipped parameters for both nodes: the paper as released, or tuned ones.',
        ),
        DeclareLaunchArgument(
            'params_file',
            default_value=[*profile_path, '.yaml'],
            description='Parameter file for ekf_node, in place of that of the profile.',
        ),
        DeclareLaunchArgument(
            'navsat_params_file',
            default_value=[*profile_path, f'{NAVSAT}.yaml'],
            description='The same for navsat_transform_node.',
        ),
        DeclareLaunchArgument(
            'navsat',
            default_value='true',
            choices=['true', 'false'],
            description='Start navsat_transform_node, which turns gps/fix into odometry/gps.',
        ),
        DeclareLaunchArgument(
            'use_sim_time',
            default_value='false',
            choices=['true', 'false'],
            description='Take the time from /clock: true for a played bag and for a simulator.',
        ),
        DeclareLaunchArgument(
            'namespace',
            default_value='',
            description='Namespace of both nodes and of their relative topics.',
        ),
        DeclareLaunchArgument(
            'log_level',
            default_value='info',
            choices=['debug', 'info', 'warn', 'error', 'fatal'],
            description='Least severe messages that the two filter nodes log.',
        ),
        DeclareLaunchArgument(
            'sensor_transforms',
            default_value='true',
            choices=['true', 'false'],
            description='Publish base_link -> imu_link and gps_link; false if the robot does it.',
        ),
        DeclareLaunchArgument(
            'imu_x', default_value='0', description='IMU forward of base_link, in m.'
        ),
        DeclareLaunchArgument(
            'imu_y', default_value='0', description='IMU to the left of base_link, in m.'
        ),
        DeclareLaunchArgument(
            'imu_z', default_value='0', description='IMU above base_link, in m.'
        ),
        DeclareLaunchArgument(
            'gps_x', default_value='0', description='GPS antenna forward of base_link, in m.'
        ),
        DeclareLaunchArgument(
            'gps_y', default_value='0', description='GPS antenna to the left of base_link, in m.'
        ),
        DeclareLaunchArgument(
            'gps_z', default_value='0', description='GPS antenna above base_link, in m.'
        ),
    ]


def filter_nodes() -> list[Node]:
    # After the file, so that the argument wins over a use_sim_time in a profile.
    clock = {'use_sim_time': ParameterValue(LaunchConfiguration('use_sim_time'), value_type=bool)}
    log_level = ['--log-level', LaunchConfiguration('log_level')]
    return [
        Node(
            package='robot_localization',
            executable='ekf_node',
            name='ekf_filter_node',
            namespace=LaunchConfiguration('namespace'),
            output='screen',
            parameters=[LaunchConfiguration('params_file'), clock],
            ros_arguments=log_level,
        ),
        Node(
            package='robot_localization',
            executable='navsat_transform_node',
            name='navsat_transform_node',
            namespace=LaunchConfiguration('namespace'),
            output='screen',
            condition=IfCondition(LaunchConfiguration('navsat')),
            parameters=[LaunchConfiguration('navsat_params_file'), clock],
            # gps/fix, odometry/gps and odometry/filtered are its own names already.
            remappings=[('imu', 'imu/data')],
            ros_arguments=log_level,
        ),
    ]


def sensor_transforms() -> list[Node]:
    return [
        Node(
            package='tf2_ros',
            executable='static_transform_publisher',
            name=f'{sensor}_transform',
            namespace=LaunchConfiguration('namespace'),
            condition=IfCondition(LaunchConfiguration('sensor_transforms')),
            arguments=[
                *('--frame-id', 'base_link', '--child-frame-id', f'{sensor}_link'),
                *('--x', LaunchConfiguration(f'{sensor}_x')),
                *('--y', LaunchConfiguration(f'{sensor}_y')),
                *('--z', LaunchConfiguration(f'{sensor}_z')),
            ],
        )
        for sensor in ('imu', 'gps')
    ]
