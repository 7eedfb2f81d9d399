# SPDX-License-Identifier: Apache-2.0
"""Simulated sensors that measure true odometry: IMU and GPS in one process.

Examples
--------
ros2 launch sim2real_sensors sensors.launch.py imu:=airsim gps:=ch_rw seed:=3 use_sim_time:=true
"""

from __future__ import annotations

import yaml
from launch import LaunchContext, LaunchDescription
from launch.actions import OpaqueFunction
from launch.conditions import IfCondition
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterFile, ParameterValue

from sim2real_eval.ros_launch.arguments import declare
from sim2real_eval.ros_launch.mounting import of_models
from sim2real_eval.ros_launch.nodes import node, static_transform
from sim_sensors.resources import config_path


def generate_launch_description() -> LaunchDescription:
    return LaunchDescription(
        [
            *declare('sensors', 'imu', 'gps', 'seed', 'run', 'ground_truth', 'sensor_transforms'),
            *declare('params_file', 'namespace', 'use_sim_time', 'log_level'),
            OpaqueFunction(function=sensors),
            OpaqueFunction(
                function=transforms,
                condition=IfCondition(LaunchConfiguration('sensor_transforms')),
            ),
        ]
    )


def sensors(context: LaunchContext) -> list[Node]:
    files = [str(config_path('ros', 'sensors.yaml'))]
    if own := LaunchConfiguration('params_file').perform(context):
        files.append(own)
    names = ParameterValue(LaunchConfiguration('sensors'), value_type=list[str])
    return [
        node(
            'sensors_node',
            parameters=[
                *(ParameterFile(file, allow_substs=True) for file in files),
                {'sensors': names},
            ],
            remappings=[('ground_truth/odometry', LaunchConfiguration('ground_truth'))],
        )
    ]


def transforms(context: LaunchContext) -> list[Node]:
    """Say where the models are mounted; what they measure follows from the same numbers."""
    names = yaml.safe_load(LaunchConfiguration('sensors').perform(context))
    kinds = {str(name).rpartition('/')[2] for name in names}
    models = [
        LaunchConfiguration(kind).perform(context) if kind in kinds else None
        for kind in ('imu', 'gps')
    ]
    return [static_transform(mounting) for mounting in of_models(*models)]
