# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The installed robot_localization: its version, and whether its filters are lifecycle nodes."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from xml.etree import ElementTree

from sim2real_eval.judge.robot_localization.release import Release

PACKAGE = 'robot_localization'


@dataclasses.dataclass(frozen=True)
class InstalledPackage:
    """Version of an installed robot_localization, and the kind of its filter nodes."""

    version: str
    is_lifecycle: bool

    @property
    def release(self) -> Release:
        """Release that it behaves like."""
        return Release.of_package(self.version, is_lifecycle=self.is_lifecycle)


def find_robot_localization() -> InstalledPackage | None:
    """Return the robot_localization that AMENT_PREFIX_PATH leads to; None without one."""
    try:
        from ament_index_python.packages import get_package_prefix

        path = Path(get_package_prefix(PACKAGE), 'share', PACKAGE, 'package.xml')
        package = ElementTree.parse(path).getroot()
    except (ImportError, LookupError, OSError, ElementTree.ParseError):
        return None
    # The nodes link to rclcpp_lifecycle since they are lifecycle nodes.
    dependencies = {
        element.text
        for tag in ('depend', 'build_depend', 'exec_depend')
        for element in package.iter(tag)
    }
    version = package.findtext('version', '').strip()
    return InstalledPackage(version, 'rclcpp_lifecycle' in dependencies)
