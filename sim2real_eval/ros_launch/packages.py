# SPDX-License-Identifier: Apache-2.0
"""What has to be installed for a launch, found out before anything is started.

launch itself finds out when it comes to a node, ends, and leaves running what it had just started.
"""

from __future__ import annotations

import atexit
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from sim_sensors.core.errors import ParameterError

__all__ = ['check_packages', 'needed', 'scratch_file']

_VIEWERS = {'rviz': 'rviz2', 'plotjuggler': 'plotjuggler', 'foxglove': 'foxglove_bridge'}


def needed(given: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return packages of others that a launch needs.

    Parameters
    ----------
    given : mapping
        Arguments of the launch; an argument that is not among them starts nothing.

    Returns
    -------
    dict
        Argument that asks for it, and another way to say it, by package.
    """
    found = {}
    if given.get('sensor_transforms') == 'true':
        found['tf2_ros'] = ('sensor_transforms', 'sensor_transforms:=false')
    judge = given.get('judge')
    if judge == 'robot_localization':
        found[judge] = ('judge', 'judge:=judge_node')
    view = given.get('view', 'none')
    if view != 'none':
        found[_VIEWERS[view]] = ('view', 'view:=none')
        # The frame of the estimate is joined to the map.
        found.setdefault('tf2_ros', found[_VIEWERS[view]])
    if 'storage' in given:
        other = {'mcap': 'sqlite3', 'sqlite3': 'mcap'}[given['storage']]
        found[f'rosbag2_storage_{given["storage"]}'] = ('storage', f'storage:={other}')
        found['ros2bag'] = found['ros2service'] = ('out', '')
    return found


def check_packages() -> Any:
    """Return an action that refuses a launch whose arguments ask for what is not installed."""
    from ament_index_python.packages import PackageNotFoundError, get_package_prefix
    from launch.actions import OpaqueFunction

    def check(context: Any) -> None:
        for package, (argument, instead) in needed(context.launch_configurations).items():
            try:
                get_package_prefix(package)
            except PackageNotFoundError:
                distribution = os.environ.get('ROS_DISTRO', 'jazzy')
                apt = f'ros-{distribution}-{package.replace("_", "-")}'
                ways = ' or '.join(way for way in (f'apt install {apt}', instead) if way)
                raise ParameterError(
                    'launch', argument, f'{package} is not installed; {ways}'
                ) from None

    return OpaqueFunction(function=check)


# -------- Files that a launch makes for the processes it starts.


def scratch_file(name: str, content: Any) -> Path:
    """Write a YAML file that lasts as long as this process, and return it.

    Parameters
    ----------
    name : str
        Beginning of its name.
    content
        Lists, dicts, numbers and texts.
    """
    with tempfile.NamedTemporaryFile(
        'w', prefix=f'{name}_', suffix='.yaml', delete=False, encoding='utf-8'
    ) as file:
        yaml.safe_dump(content, file)
    path = Path(file.name)
    atexit.register(path.unlink, missing_ok=True)
    return path
