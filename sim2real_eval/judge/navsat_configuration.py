# SPDX-License-Identifier: Apache-2.0
"""What navsat_transform_node is told by its parameter file."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from sim2real_eval.judge.ros_parameters import NodeParameters, read_node_parameters
from sim_sensors.errors import ParameterError

__all__ = ['NavsatConfig']


@dataclasses.dataclass(frozen=True)
class NavsatConfig:
    """Parameters of navsat_transform_node.

    Attributes
    ----------
    frequency : float
        Hz.
    magnetic_declination, yaw_offset : float
        Radians, added to the heading.
    zero_altitude, use_odometry_yaw, publish_filtered_gps, use_local_cartesian : bool
    datum : tuple of float, or None
        Latitude and longitude in degrees and yaw in radians of the origin of the world frame; None
        without `wait_for_datum`, for the first fix.
    """

    frequency: float
    magnetic_declination: float
    yaw_offset: float
    zero_altitude: bool
    use_odometry_yaw: bool
    publish_filtered_gps: bool
    use_local_cartesian: bool
    datum: tuple[float, float, float] | None

    @property
    def needs_heading(self) -> bool:
        """Whether the yaw comes from an IMU."""
        return not self.use_odometry_yaw and self.datum is None

    @classmethod
    def from_file(cls, path: str | Path, node: str = 'navsat_transform') -> NavsatConfig:
        """Read a navsat_transform_node parameter file.

        Raises
        ------
        ParameterError
            For an unreadable file, an unknown or unsupported parameter, or a wrong value.
        """
        p = read_node_parameters(path, node)
        frequency = p.number('frequency', 10.0, minimum=1e-3, maximum=1e6)
        p.only('publish_tf', True, 'navsat_transform_node publishes (0, 0, 0) without it')
        p.ignore(
            (
                'use_sim_time',
                'broadcast_cartesian_transform',
                'broadcast_cartesian_transform_as_parent_frame',
                'broadcast_utm_transform',
                'broadcast_utm_transform_as_parent_frame',
                'delay',
                'transform_timeout',
                'map_frame',
                'odom_frame',
                'base_link_frame',
                'world_frame',
            )
        )
        config = cls(
            frequency=frequency,
            magnetic_declination=p.number('magnetic_declination_radians', 0.0),
            yaw_offset=p.number('yaw_offset', 0.0),
            zero_altitude=p.boolean('zero_altitude', False),
            use_odometry_yaw=p.boolean('use_odometry_yaw', False),
            publish_filtered_gps=p.boolean('publish_filtered_gps', True),
            use_local_cartesian=p.boolean('use_local_cartesian', False),
            datum=_datum(p),
        )
        p.finish()
        return config


def _datum(p: NodeParameters) -> tuple[float, float, float] | None:
    if not p.boolean('wait_for_datum', False):
        p.ignore(('datum',))
        return None
    if 'datum' not in p:
        # robot_localization would take (0, 0, 0).
        raise ParameterError(
            p.where, 'datum', 'is missing; must be [latitude, longitude, yaw] with wait_for_datum'
        )
    latitude, longitude, yaw = p.numbers('datum', 3, np.zeros(3)).tolist()
    if not (-90.0 <= latitude <= 90.0 and -180.0 <= longitude <= 180.0):
        allowed = 'degrees of latitude and longitude, and radians of yaw'
        raise p.refuse('datum', [latitude, longitude, yaw], allowed)
    return latitude, longitude, yaw
