# SPDX-License-Identifier: Apache-2.0
"""gps_msgs/GPSFix, which drivers publish beside NavSatFix or in its place.

rosbags does not know the type, and not every bag holds its definition.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

_SATELLITES = (
    'uint16 satellites_used', 'int32[] satellite_used_prn', 'uint16 satellites_visible',
    'int32[] satellite_visible_prn', 'int32[] satellite_visible_z',
    'int32[] satellite_visible_azimuth', 'int32[] satellite_visible_snr', 'int16 status',
    'uint16 motion_source', 'uint16 orientation_source', 'uint16 position_source',
)  # fmt: skip
_NUMBERS = (
    'latitude', 'longitude', 'altitude', 'track', 'speed', 'climb', 'pitch', 'roll', 'dip', 'time',
    'gdop', 'pdop', 'hdop', 'vdop', 'tdop', 'err', 'err_horz', 'err_vert', 'err_track',
    'err_speed', 'err_climb', 'err_time', 'err_pitch', 'err_roll', 'err_dip',
)  # fmt: skip

DEFINITIONS = {
    'gps_msgs/msg/GPSStatus': '\n'.join(('std_msgs/Header header', *_SATELLITES)),
    'gps_msgs/msg/GPSFix': '\n'.join(
        (
            'std_msgs/Header header',
            'gps_msgs/GPSStatus status',
            *(f'float64 {name}' for name in _NUMBERS),
            'float64[9] position_covariance',
            'uint8 position_covariance_type',
        )
    ),
}
"""Message definitions by type, as rosbags takes them."""

# Of GPSFix to NavSatFix: no fix, satellite-based (WAAS) and ground-based (DGPS, RTK) augmentation.
_STATUS = {-1: -1, 1: 1, 33: 1, 2: 2, 18: 2, 19: 2, 20: 2}


def fix_fields(messages: Mapping[int, Any], where: str) -> dict[str, Any]:
    """Return the fields of a `FixArray` from GPSFix messages; a status it has not is a fix."""
    kept = list(messages.values())
    names = ('latitude', 'longitude', 'altitude', 'position_covariance_type')
    values: dict[str, Any] = {
        name: np.array([getattr(one, name) for one in kept]) for name in names
    }
    covariances = np.array([one.position_covariance for one in kept])
    values['position_covariance'] = covariances.reshape(len(kept), 3, 3)
    values['status'] = np.array([_STATUS.get(one.status.status, 0) for one in kept])
    return values
