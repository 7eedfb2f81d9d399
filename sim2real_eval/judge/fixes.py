# SPDX-License-Identifier: Apache-2.0
"""What navsat_transform knows of its fixes and sensors, laid out for the compiled loop."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from sim2real_eval.judge.configuration import NavsatConfig
from sim2real_eval.judge.frames import FrameTree
from sim2real_eval.judge.navsat import Navsat
from sim2real_eval.judge.utm import to_utm
from sim_sensors.measurements import FixArray

__all__ = ['enter_fixes', 'new_navsat', 'place_antenna', 'place_heading', 'valid_fixes']

_NO_FIX = -1


def new_navsat(config: NavsatConfig | None, fixes: int) -> Navsat:
    """Return the node's settings with room for a number of fixes; None for no such node."""
    return Navsat(
        easting=np.zeros(fixes),
        northing=np.zeros(fixes),
        altitude=np.zeros(fixes),
        convergence=np.zeros(fixes),
        covariance=np.zeros((fixes, 3, 3)),
        stamp_ns=np.zeros(fixes, dtype=np.int64),
        declination=0.0 if config is None else config.magnetic_declination,
        yaw_offset=0.0 if config is None else config.yaw_offset,
        mounting=np.zeros(3),
        antenna=np.zeros(3),
        use_odometry_yaw=config is not None and config.use_odometry_yaw,
        zero_altitude=config is not None and config.zero_altitude,
        publish_filtered_gps=config is not None and config.publish_filtered_gps,
    )


def valid_fixes(fixes: FixArray) -> FixArray:
    """Leave out what has no fix or a position that is not a number."""
    # Status -2, unknown, is the messages' default and counts as a fix.
    valid = (fixes.status != _NO_FIX) & np.isfinite(fixes.latitude)
    return fixes.take(valid & np.isfinite(fixes.longitude) & np.isfinite(fixes.altitude))


def enter_fixes(navsat: Navsat, fixes: FixArray, datum: FixArray) -> None:
    """Fill the room for fixes; all are projected in the zone of the first fix of `datum`."""
    if len(fixes) == 0:
        return
    first = (float(datum.latitude[0]), float(datum.longitude[0]))
    navsat.easting[:], navsat.northing[:], navsat.convergence[:] = to_utm(
        fixes.latitude, fixes.longitude, first
    )
    navsat.altitude[:] = fixes.altitude
    navsat.covariance[:] = fixes.position_covariance
    navsat.stamp_ns[:] = fixes.stamp_ns


def place_antenna(navsat: Navsat, frame: str, base: str, frames: FrameTree) -> None:
    """Enter where the antenna sits; raises JudgeError when nothing connects its frame."""
    _, navsat.antenna[:] = frames.lookup(base, frame, 'navsat_transform (fix)')


def place_heading(navsat: Navsat, frame: str, base: str, frames: FrameTree) -> None:
    """Enter how the heading's IMU is mounted; raises JudgeError when nothing connects it."""
    rotation, _ = frames.lookup(base, frame, 'navsat_transform (imu)')
    navsat.mounting[:] = Rotation.from_matrix(rotation).as_euler('xyz')
