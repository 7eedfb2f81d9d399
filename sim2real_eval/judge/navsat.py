# SPDX-License-Identifier: Apache-2.0
"""navsat_transform_node: fixes become positions in the filter's world frame, compiled.

The node waits for a fix, a filtered odometry and a heading, fixes the transform from UTM to the
world frame once, and from then on turns the latest fix into an odometry message at each tick of
its timer. Fixes that are overtaken by a newer one before a tick are lost.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sim2real_eval.judge.prediction import wrap_angle
from sim2real_eval.judge.rotations import angles_from_matrix, matrix_from_quaternion
from sim_sensors.compilation import compiled
from sim_sensors.measurements import FloatArray, IntArray

__all__ = [
    'Navsat',
    'NavsatMemory',
    'lost_fixes',
    'new_navsat_memory',
    'see_fix',
    'see_heading',
    'see_odometry',
    'tick',
]

_GOOD, _FIX, _NEW_FIX, _HEADING, _NEW_ODOMETRY, _ODOMETRY, _LOST = range(7)
_YAW, _COS, _SIN, _TURN = range(4)


class Navsat(NamedTuple):
    """Configuration of the node and all fixes of the run.

    Attributes
    ----------
    easting, northing, altitude, convergence : (n,) float
        The fixes in UTM, metres, and the meridian convergence there, radians.
    covariance : (n, 3, 3) float
        Their covariance, ENU.
    stamp_ns : (n,) int64
    declination, yaw_offset, mounting_yaw : float
        Added to the heading; taken off it. Radians.
    use_odometry_yaw, zero_altitude, publish_filtered_gps : bool
        Parameters of the same names.
    """

    easting: FloatArray
    northing: FloatArray
    altitude: FloatArray
    convergence: FloatArray
    covariance: FloatArray
    stamp_ns: IntArray
    declination: float
    yaw_offset: float
    mounting_yaw: float
    use_odometry_yaw: bool
    zero_altitude: bool
    publish_filtered_gps: bool


class NavsatMemory(NamedTuple):
    """What the node remembers; changed in place.

    Attributes
    ----------
    flags : (7,) int64
        Transform fixed; latest fix (its number, -1 before the first); fix, heading and odometry
        seen; fixes lost because a newer one overtook them.
    heading : (4,) float
        Latest heading, and the transform's rotation: cosine, sine, angle.
    odometry : (6,) float
        Latest filtered position and roll, pitch, yaw.
    origin : (6,) float
        UTM position of the datum and the position in the world that it has.
    work : (4, 3) float
        Scratch space.
    """

    flags: IntArray
    heading: FloatArray
    odometry: FloatArray
    origin: FloatArray
    work: FloatArray


def new_navsat_memory() -> NavsatMemory:
    """Return the memory of a node that has seen nothing."""
    flags = np.zeros(7, dtype=np.int64)
    flags[_FIX] = -1
    return NavsatMemory(flags, np.zeros(4), np.zeros(6), np.zeros(6), np.zeros((4, 3)))


@compiled
def see_fix(memory: NavsatMemory, number: int) -> None:
    """Take note of a valid fix."""
    if memory.flags[_NEW_FIX] == 1 and memory.flags[_GOOD] == 1:
        memory.flags[_LOST] += 1
    memory.flags[_FIX] = number
    memory.flags[_NEW_FIX] = 1


@compiled
def see_heading(navsat: Navsat, memory: NavsatMemory, q: FloatArray) -> None:
    """Take note of an IMU orientation x y z w; its covariance is not looked at."""
    if memory.flags[_GOOD] == 0 and not navsat.use_odometry_yaw:
        R, angles = memory.work[:3], memory.work[3]
        matrix_from_quaternion(q, R)
        angles_from_matrix(R, angles)
        memory.heading[_YAW] = wrap_angle(angles[2] - navsat.mounting_yaw)
        memory.flags[_HEADING] = 1


@compiled
def see_odometry(navsat: Navsat, memory: NavsatMemory, pose: FloatArray) -> None:
    """Take note of a filtered odometry: position and roll, pitch, yaw."""
    for i in range(6):
        memory.odometry[i] = pose[i]
    memory.flags[_ODOMETRY] = 1
    memory.flags[_NEW_ODOMETRY] = 1
    if memory.flags[_GOOD] == 0 and navsat.use_odometry_yaw:
        memory.heading[_YAW] = pose[5]
        memory.flags[_HEADING] = 1


@compiled
def _fix_transform(navsat: Navsat, memory: NavsatMemory) -> None:
    flags, datum = memory.flags, memory.flags[_FIX]
    if datum < 0 or flags[_HEADING] == 0 or flags[_ODOMETRY] == 0:
        return
    heading = memory.heading[_YAW] + (
        navsat.declination + navsat.yaw_offset + navsat.convergence[datum]
    )
    turn = memory.odometry[5] - heading
    memory.heading[_COS], memory.heading[_SIN] = math.cos(turn), math.sin(turn)
    memory.heading[_TURN] = turn
    memory.origin[0] = navsat.easting[datum]
    memory.origin[1] = navsat.northing[datum]
    memory.origin[2] = navsat.altitude[datum]
    for i in range(3):
        memory.origin[3 + i] = memory.odometry[i]
    flags[_GOOD] = 1


@compiled
def tick(navsat: Navsat, memory: NavsatMemory, position: FloatArray, cov: FloatArray) -> int:
    """Run the timer once; return the number of the fix that was published, or -1.

    Parameters
    ----------
    navsat, memory
        Configuration and memory.
    position : (3,) float
        Filled with the position in the world frame.
    cov : (6, 6) float
        Filled with its pose covariance.
    """
    flags = memory.flags
    if flags[_GOOD] == 0:
        # The tick that fixes the transform publishes nothing.
        _fix_transform(navsat, memory)
        return -1
    published = -1
    if flags[_NEW_FIX] == 1 and flags[_NEW_ODOMETRY] == 1:
        published = flags[_FIX]
        c, s = memory.heading[_COS], memory.heading[_SIN]
        east = navsat.easting[published] - memory.origin[0]
        north = navsat.northing[published] - memory.origin[1]
        position[0] = c * east - s * north + memory.origin[3]
        position[1] = s * east + c * north + memory.origin[4]
        position[2] = navsat.altitude[published] - memory.origin[2] + memory.origin[5]
        if navsat.zero_altitude:
            position[2] = 0.0
        C = navsat.covariance[published]
        cov[:] = 0.0
        turn = memory.work[:3]
        turn[:] = 0.0
        turn[0, 0], turn[0, 1], turn[1, 0], turn[1, 1], turn[2, 2] = c, -s, s, c, 1.0
        for i in range(3):
            for j in range(3):
                for k in range(3):
                    for m in range(3):
                        cov[i, j] += turn[i, k] * C[k, m] * turn[j, m]
        flags[_NEW_FIX] = 0
        flags[_NEW_ODOMETRY] = 0
    if navsat.publish_filtered_gps:
        flags[_NEW_ODOMETRY] = 0
    return published


def lost_fixes(memory: NavsatMemory) -> int:
    """Return how many fixes a newer one overtook after the transform was fixed."""
    return int(memory.flags[_LOST])
