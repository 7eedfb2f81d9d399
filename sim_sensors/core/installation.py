# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""pip commands that install optional dependencies."""

from __future__ import annotations

import shlex

ROS_LIBRARIES = (
    'ros-jazzy-diagnostic-msgs',
    'ros-jazzy-geometry-msgs',
    'ros-jazzy-nav-msgs',
    'ros-jazzy-rclpy',
    'ros-jazzy-rmw-fastrtps-cpp',
    'ros-jazzy-rosgraph-msgs',
    'ros-jazzy-sensor-msgs',
    'ros-jazzy-std-msgs',
    'ros-jazzy-std-srvs',
)
"""Community builds of ROS 2 Jazzy on PyPI; the same list as the extra `ros` in setup.py."""


def pip_install(*libraries: str) -> str:
    """Return the command that installs libraries from PyPI.

    It names the libraries instead of an extra of this package, because this package is not on
    PyPI.

    Examples
    --------
    >>> pip_install('imufusion')
    'pip install imufusion'
    """
    return shlex.join(['pip', 'install', *libraries])
