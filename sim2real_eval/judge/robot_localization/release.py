# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Releases of robot_localization whose behaviour differs, and how the estimate depends on them."""

from __future__ import annotations

import enum
import functools

from sim_sensors.core.errors import ParameterError

_LIFECYCLE_SENSOR_TIMEOUT_S = 1.0 / 30.0


@functools.total_ordering
class Release(enum.Enum):
    """Releases of robot_localization [robot_localization] that the judge reproduces.

    A later release is greater. docs/explanation/robot_localization.md lists all differences.

    Examples
    --------
    >>> Release.V3_8 < Release.V3_10 < Release.ROLLING
    True
    """

    V3_8 = '3.8'  # 3.8.3, ROS Jazzy
    V3_10 = '3.10'  # 3.9.2 to 3.10.0, ROS Kilted and Lyrical
    ROLLING = 'rolling'  # 3.10.1 and the branch rolling-devel

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Release):
            return NotImplemented
        order = list(Release)
        return order.index(self) < order.index(other)

    @classmethod
    def from_value(cls, value: object, where: str, key: str = 'rl_version') -> Release:
        """Return the release that a file or an option names; ParameterError if there is none.

        Examples
        --------
        >>> Release.from_value('rolling', 'case.yaml')
        <Release.ROLLING: 'rolling'>
        >>> Release.from_value(4, 'case.yaml')
        Traceback (most recent call last):
        sim_sensors.core.errors.ParameterError: case.yaml: rl_version is 4; must be one of ...
        """
        if isinstance(value, float):
            # YAML reads an unquoted 3.10 as the number 3.1, which is no release here.
            value = '3.10' if value == 3.1 else f'{value:g}'
        for release in cls:
            if value == release.value:
                return release
        names = ', '.join(release.value for release in cls)
        raise ParameterError(where, '', f'{key} is {value}; must be one of {names}')

    @classmethod
    def of_package(cls, version: str, *, is_lifecycle: bool) -> Release:
        """Return the release that an installed package behaves like.

        Parameters
        ----------
        version : str
            Such as `3.9.3`.
        is_lifecycle : bool
            Whether its nodes are lifecycle nodes.
        """
        if is_lifecycle:
            return cls.ROLLING
        numbers = [int(part) for part in version.split('.')[:2] if part.isdigit()]
        return cls.V3_10 if numbers >= [3, 9] else cls.V3_8

    @property
    def has_stamped_control(self) -> bool:
        """Default of `stamped_control`."""
        return self >= Release.V3_10

    @property
    def has_earth_frame(self) -> bool:
        """Whether navsat_transform_node can broadcast a transform from the earth's centre."""
        return self >= Release.V3_10

    @property
    def has_gravity_in_base(self) -> bool:
        """Whether gravity is removed in the axes of base_link, so that any mounting is right."""
        return self >= Release.ROLLING

    @property
    def is_lifecycle(self) -> bool:
        """Whether ekf_node and ukf_node are lifecycle nodes.

        Activation enables the filter whatever `disabled_at_startup` says.
        """
        return self >= Release.ROLLING

    @property
    def service_prefix(self) -> str:
        """Prefix of the names of the services `enable` and `toggle`.

        Releases before 3.10.0, 3.9 included, have none.
        """
        return '~/' if self >= Release.V3_10 else ''

    def sensor_timeout(self, frequency: float) -> float:
        """Return the default of `sensor_timeout`, s, for a frequency in Hz.

        A lifecycle node declares it before it knows its frequency.
        """
        return _LIFECYCLE_SENSOR_TIMEOUT_S if self.is_lifecycle else 1.0 / frequency

    def world_frame(self, odom_frame: str) -> str:
        """Return the default of `world_frame`.

        A lifecycle node declares it before it knows the odometry frame.
        """
        return 'odom' if self.is_lifecycle else odom_frame

    def previous_tick_ns(self, origin_ns: int) -> int:
        """Return the time from which the first angular acceleration counts.

        Earlier releases count it from time 0, so that it is practically zero. A lifecycle node
        counts from its configuration, which is here `origin_ns`, when its timer is created.
        """
        return origin_ns if self.is_lifecycle else 0


DEFAULT_RELEASE = Release.V3_8
