# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Simulated sensors that measure true odometry, in one process.

Examples
--------
ros2 launch sim2real_sensors sensors.launch.py imu:=airsim gps:=ch_rw seed:=3 use_sim_time:=true
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from launch import LaunchContext, LaunchDescription
from launch.actions import OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterFile, ParameterValue

from sim2real_eval.ros_launch.arguments import STATED_GPS, check_packages, declare
from sim2real_eval.ros_launch.nodes import (
    absolute_namespace,
    describe,
    fail_on_error,
    node,
    set_imu_topic,
    static_transform,
    typed_argument,
)
from sim2real_eval.ros_launch.sensors import odometry_qos, of_models, world_configuration
from sim_sensors.core.config_files import parse_yaml
from sim_sensors.core.shipped import config_path
from sim_sensors.sensor.catalogue import KINDS


def generate_launch_description() -> LaunchDescription:
    return describe(
        [
            *declare('sensors', 'imu', gps=STATED_GPS),
            *declare('mag', 'camera', 'wheels', 'vision', 'world'),
            *declare('seed', 'run', 'imu_data_raw'),
            *declare(
                'faults_file',
                'ground_truth',
                'noise_free_imu',
                'noise_free_gps',
                'noise_free_mag',
                'sensor_transforms',
                'lossless',
                'params_file',
                'namespace',
                'frame_prefix',
                'use_sim_time',
                'log_level',
            ),
            check_packages(),
            set_imu_topic(),
            OpaqueFunction(function=start_sensors),
        ]
    )


def start_sensors(context: LaunchContext) -> list[Node]:
    def value(name: str) -> str:
        return LaunchConfiguration(name).perform(context)

    names = [str(name) for name in parse_yaml(value('sensors'), 'sensors')]
    # Evaluated before the node starts, which would outlive an error here.
    transforms = transform_publishers(names, value) if value('sensor_transforms') == 'true' else []
    context.launch_configurations.update(world_configuration(value('world')))
    files = [str(config_path('ros', 'sensors.yaml'))]
    if file := value('params_file'):
        files.append(file)
    parameters: dict[str, Any] = {
        'sensors': ParameterValue(LaunchConfiguration('sensors'), value_type=list[str]),
        'frame_prefix': typed_argument('frame_prefix', str),
    }
    if value('lossless') == 'true':
        parameters |= odometry_qos(
            absolute_namespace(context), value('ground_truth'), names, value('imu_topic')
        )
    return [
        node(
            'sensors_node',
            parameters=[*(ParameterFile(file, allow_substs=True) for file in files), parameters],
            remappings=[('ground_truth/odometry', LaunchConfiguration('ground_truth'))],
            on_exit=fail_on_error,
        ),
        *transforms,
    ]


def transform_publishers(names: list[str], value: Callable[[str], str]) -> list[Node]:
    """Return publishers of the transforms that follow from the mountings of the models."""
    present = {name.rpartition('/')[2] for name in names}
    models = {kind: value(kind) for kind in KINDS.names() if kind in present}
    return [static_transform(transform) for transform in of_models(models)]
