# SPDX-License-Identifier: Apache-2.0
"""What navsat_transform_node is told by its parameter file, and what takes its place."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from sim2real_eval.judge.robot_localization.replay_options import FRONT_ENDS
from sim2real_eval.judge.robot_localization.ros_parameters import (
    ParameterReader,
    read_node_parameters,
)
from sim_sensors.core.errors import ParameterError

__all__ = ['NavsatConfig', 'with_front_end']

_PLAIN = 'enu'


@dataclasses.dataclass(frozen=True)
class NavsatConfig:
    """Parameters of navsat_transform_node, or of the plain front end in its place.

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
    front_end : str
        One of FRONT_ENDS; `enu` takes `zero_altitude` and the position of the datum only.
    """

    frequency: float
    magnetic_declination: float
    yaw_offset: float
    zero_altitude: bool
    use_odometry_yaw: bool
    publish_filtered_gps: bool
    use_local_cartesian: bool
    datum: tuple[float, float, float] | None
    front_end: str = FRONT_ENDS[0]

    @property
    def needs_heading(self) -> bool:
        """Whether the yaw comes from an IMU."""
        return self.timed and not self.use_odometry_yaw and self.datum is None

    @property
    def timed(self) -> bool:
        """Whether fixes wait for a timer; else they are passed on when they arrive."""
        return self.front_end != _PLAIN

    @property
    def title(self) -> str:
        """Name for messages."""
        return self.front_end if self.timed else f'front end {self.front_end}'

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


def with_front_end(config: NavsatConfig | None, front_end: str) -> NavsatConfig | None:
    """Return a configuration whose fixes go the way of a front end.

    Parameters
    ----------
    config : NavsatConfig or None
        None for no navsat_transform; the front end `enu` needs none.
    front_end : str
        One of FRONT_ENDS.
    """
    if front_end != _PLAIN:
        return config
    if config is None:
        config = NavsatConfig(
            frequency=10.0, magnetic_declination=0.0, yaw_offset=0.0, zero_altitude=False,
            use_odometry_yaw=False, publish_filtered_gps=False, use_local_cartesian=False,
            datum=None,
        )  # fmt: skip
    return dataclasses.replace(config, front_end=front_end, publish_filtered_gps=False)


def _datum(p: ParameterReader) -> tuple[float, float, float] | None:
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
