# SPDX-License-Identifier: Apache-2.0
"""Executables of the nodes, which say in one line what to do where ROS is not there.

A node's module imports rclpy and messages, so it cannot say so itself.
"""

from __future__ import annotations

import importlib
import sys

__all__ = [
    'camera_node',
    'gps_node',
    'imu_node',
    'magnetometer_node',
    'path_follower_node',
    'run_node',
    'sensors_node',
    'trajectory_node',
    'vision_node',
    'wheel_odometry_node',
]


def run_node(module: str) -> int:
    """Run the `main` of a node's module; return its exit status, 2 where ROS is missing.

    Parameters
    ----------
    module : str
        Such as `sim_sensors.ros.imu_node`.
    """
    try:
        return _run(module)
    except KeyboardInterrupt:
        # Ctrl-C while libraries still load, or once more while the node ends.
        return 0


def _run(module: str) -> int:
    try:
        main = importlib.import_module(module).main
    except ModuleNotFoundError as error:
        missing = (error.name or '').split('.')[0]
        if missing in ('', *(name.split('.')[0] for name in (module, __name__))):
            raise
        print(
            f'{module.split(".")[-1]}: error: {missing} is not installed; source a ROS 2 '
            "workspace, or install ROS 2 Jazzy's from PyPI: pip install '.[ros]'",
            file=sys.stderr,
        )
        return 2
    return int(main())


def camera_node() -> int:
    """Run camera_node."""
    return run_node('sim_sensors.ros.camera_node')


def gps_node() -> int:
    """Run gps_node."""
    return run_node('sim_sensors.ros.gps_node')


def imu_node() -> int:
    """Run imu_node."""
    return run_node('sim_sensors.ros.imu_node')


def magnetometer_node() -> int:
    """Run magnetometer_node."""
    return run_node('sim_sensors.ros.magnetometer_node')


def path_follower_node() -> int:
    """Run path_follower_node."""
    return run_node('sim_sensors.ros.path_follower_node')


def sensors_node() -> int:
    """Run sensors_node."""
    return run_node('sim_sensors.ros.sensors_node')


def trajectory_node() -> int:
    """Run trajectory_node."""
    return run_node('sim_sensors.ros.trajectory_node')


def vision_node() -> int:
    """Run vision_node."""
    return run_node('sim_sensors.ros.vision_node')


def wheel_odometry_node() -> int:
    """Run wheel_odometry_node."""
    return run_node('sim_sensors.ros.wheel_odometry_node')
