# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Executables of the nodes, which report a missing ROS in one line.

The module of a node imports rclpy and messages, so it cannot report that itself.
"""

from __future__ import annotations

import importlib
import sys
from functools import partial

from sim_sensors.core.installation import ROS_LIBRARIES, pip_install


def run_node(module: str, *arguments: str, name: str = '') -> int:
    """Run the `main` of a node's module; return its exit status, 2 if ROS is missing.

    `arguments` are for `main`, such as the kind of sensor. `name` is the executable in messages;
    by default the last part of the module.
    """
    try:
        try:
            main = importlib.import_module(module).main
        except ModuleNotFoundError as error:
            missing = (error.name or '').split('.')[0]
            if missing in ('', 'sim2real_eval', 'sim_sensors', module.split('.')[0]):
                raise
            print(
                f'{name or module.split(".")[-1]}: error: {missing} is not installed; source a '
                "ROS 2 workspace, or install ROS 2 Jazzy's from PyPI: "
                f'{pip_install(*ROS_LIBRARIES)}',
                file=sys.stderr,
            )
            return 2
        return int(main(*arguments))
    except KeyboardInterrupt:
        # Ctrl-C while libraries are loaded, or a second time while the node ends.
        return 0


_SENSOR = 'sim_sensors.ros.sensor_node'

imu_node = partial(run_node, _SENSOR, 'imu', name='imu_node')
gps_node = partial(run_node, _SENSOR, 'gps', name='gps_node')
magnetometer_node = partial(run_node, _SENSOR, 'mag', name='magnetometer_node')
camera_node = partial(run_node, _SENSOR, 'camera', name='camera_node')
wheel_odometry_node = partial(run_node, _SENSOR, 'wheels', name='wheel_odometry_node')
vision_node = partial(run_node, _SENSOR, 'vision', name='vision_node')
sensors_node = partial(run_node, 'sim_sensors.ros.sensors_node')
trajectory_node = partial(run_node, 'sim_sensors.ros.trajectory_node')
path_follower_node = partial(run_node, 'sim_sensors.ros.path_follower_node')


if __name__ == '__main__':
    # python -m sim_sensors.executables imu_node --ros-args ..., where nothing is installed.
    sys.exit(globals()[sys.argv.pop(1)]())
