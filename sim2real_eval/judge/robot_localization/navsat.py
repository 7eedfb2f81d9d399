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

from sim_sensors.core.compilation import kernel
from sim_sensors.core.compiled_rotations import (
    angles_from_matrix,
    matrix_from_angles,
    matrix_from_quaternion,
    rotate_square,
)
from sim_sensors.core.measurements import FloatArray, IntArray
from .ekf import wrap_angle
from .state import PITCH, ROLL, YAW

_GOOD, _FIX, _NEW_FIX, _HEADING, _NEW_ODOMETRY, _ODOMETRY, _LOST, _EARLY, _FILTERED = range(9)


class Navsat(NamedTuple):
    """Configuration of the node and all fixes of the run."""

    # (n,) The fixes in UTM, metres, and the meridian convergence there, radians.
    easting: FloatArray
    northing: FloatArray
    altitude: FloatArray
    convergence: FloatArray
    covariance: FloatArray  # (n, 3, 3) Their covariance, ENU
    stamp_ns: IntArray  # (n,)
    # Added to the heading, radians.
    declination: float
    yaw_offset: float
    # (3,) Roll, pitch, yaw of the heading's IMU in base_link, taken off its angles.
    mounting: FloatArray
    antenna: FloatArray  # (3,) Position of the antenna in base_link, metres
    # (5,) 1 when a datum is given, and its easting, northing, convergence and yaw.
    datum: FloatArray
    # Parameters of the same names.
    use_odometry_yaw: bool
    zero_altitude: bool
    publish_filtered_gps: bool
    # Whether fixes are passed on when they arrive, by the plain front end; easting, northing and
    # altitude are then east, north and up.
    at_arrival: bool


class NavsatState(NamedTuple):
    """State of the node; changed in place."""

    # (9,) Transform fixed; latest fix (its number, -1 before the first); fix, heading and odometry
    # seen; fixes lost because a newer one overtook them, and because they came before a given
    # datum was there to refer them to; whether the last tick publishes gps/filtered.
    flags: IntArray
    attitude: FloatArray  # (3,) Latest roll, pitch and heading
    turn: FloatArray  # (3, 3) Rotation from UTM to the world
    odometry: FloatArray  # (6,) Latest filtered position and roll, pitch, yaw
    # (6,) UTM position of base_link at the datum and the position in the world that it has.
    origin: FloatArray
    work: FloatArray  # (4, 3) Scratch space


def new_navsat_state() -> NavsatState:
    """Return the memory of a node that has seen nothing."""
    flags = np.zeros(9, dtype=np.int64)
    flags[_FIX] = -1
    return NavsatState(
        flags, np.zeros(3), np.zeros((3, 3)), np.zeros(6), np.zeros(6), np.zeros((4, 3))
    )


@kernel
def receive_fix(navsat: Navsat, memory: NavsatState, number: int) -> None:
    """Take note of a valid fix."""
    if memory.flags[_GOOD] == 0 and navsat.datum[0] == 1.0:
        memory.flags[_EARLY] += 1
        return
    if memory.flags[_NEW_FIX] == 1 and memory.flags[_GOOD] == 1:
        memory.flags[_LOST] += 1
    memory.flags[_FIX] = number
    memory.flags[_NEW_FIX] = 1


@kernel
def receive_heading(navsat: Navsat, memory: NavsatState, q: FloatArray) -> None:
    """Take note of an IMU orientation x y z w; its covariance is not looked at."""
    given = navsat.use_odometry_yaw or navsat.datum[0] == 1.0
    if memory.flags[_GOOD] == 0 and not given:
        R, angles = memory.work[:3], memory.work[3]
        matrix_from_quaternion(q, R)
        angles_from_matrix(R, angles)
        # Angle by angle, then roll and pitch are turned by the mounting yaw, as for the filter.
        roll = wrap_angle(angles[0] - navsat.mounting[0])
        pitch = wrap_angle(angles[1] - navsat.mounting[1])
        c, s = math.cos(navsat.mounting[2]), math.sin(navsat.mounting[2])
        memory.attitude[0] = c * roll - s * pitch
        memory.attitude[1] = s * roll + c * pitch
        memory.attitude[2] = wrap_angle(angles[2] - navsat.mounting[2])
        memory.flags[_HEADING] = 1


@kernel
def receive_odometry(navsat: Navsat, memory: NavsatState, pose: FloatArray) -> None:
    """Take note of a filtered odometry: position and roll, pitch, yaw."""
    for i in range(6):
        memory.odometry[i] = pose[i]
    memory.flags[_ODOMETRY] = 1
    memory.flags[_NEW_ODOMETRY] = 1
    if memory.flags[_GOOD] == 0 and navsat.use_odometry_yaw:
        for i in range(3):
            memory.attitude[i] = pose[ROLL + i]
        memory.flags[_HEADING] = 1


@kernel
def _fix_transform(navsat: Navsat, memory: NavsatState) -> None:
    flags, datum = memory.flags, memory.flags[_FIX]
    if navsat.datum[0] == 1.0:
        if flags[_ODOMETRY] == 1:
            # The world's origin is the datum; its x axis points where the datum's heading says.
            heading = navsat.datum[4] + (navsat.declination + navsat.yaw_offset + navsat.datum[3])
            matrix_from_angles(0.0, 0.0, -heading, memory.turn)
            memory.origin[:] = 0.0
            memory.origin[0] = navsat.datum[1]
            memory.origin[1] = navsat.datum[2]
            flags[_GOOD] = 1
        return
    if datum < 0 or flags[_HEADING] == 0 or flags[_ODOMETRY] == 0:
        return
    heading = memory.attitude[2] + (
        navsat.declination + navsat.yaw_offset + navsat.convergence[datum]
    )
    matrix_from_angles(0.0, 0.0, memory.odometry[YAW] - heading, memory.turn)
    memory.origin[0] = navsat.easting[datum]
    memory.origin[1] = navsat.northing[datum]
    memory.origin[2] = navsat.altitude[datum]
    R = memory.work[:3]
    matrix_from_angles(memory.attitude[0], memory.attitude[1], heading, R)
    for i in range(3):
        for j in range(3):
            memory.origin[i] -= R[i, j] * navsat.antenna[j]
        memory.origin[3 + i] = memory.odometry[i]
    flags[_GOOD] = 1


@kernel
def tick(navsat: Navsat, memory: NavsatState, position: FloatArray, cov: FloatArray) -> int:
    """Run the timer once; return the number of the fix that was published, or -1.

    Position, (3,), and pose covariance, (6, 6), in the world frame are filled.
    """
    flags = memory.flags
    flags[_FILTERED] = 0
    if flags[_GOOD] == 0:
        # The tick that fixes the transform publishes nothing.
        _fix_transform(navsat, memory)
        return -1
    if navsat.publish_filtered_gps:
        flags[_FILTERED] = flags[_NEW_ODOMETRY]
    published = -1
    if flags[_NEW_FIX] == 1 and flags[_NEW_ODOMETRY] == 1:
        published = flags[_FIX]
        turn, origin = memory.turn, memory.origin
        east = navsat.easting[published] - origin[0]
        north = navsat.northing[published] - origin[1]
        up = navsat.altitude[published] - origin[2]
        # That of the latest odometry, whatever the stamp of the fix.
        R, C = memory.work[:3], navsat.covariance[published]
        pose = memory.odometry
        matrix_from_angles(pose[ROLL], pose[PITCH], pose[YAW], R)
        cov[:] = 0.0
        for i in range(3):
            position[i] = turn[i, 0] * east + turn[i, 1] * north + turn[i, 2] * up + origin[3 + i]
            for j in range(3):
                position[i] -= R[i, j] * navsat.antenna[j]
        rotate_square(turn, C, cov)
        if navsat.zero_altitude:
            position[2] = 0.0
        flags[_NEW_FIX] = 0
        flags[_NEW_ODOMETRY] = 0
    if navsat.publish_filtered_gps:
        flags[_NEW_ODOMETRY] = 0
    return published


@kernel
def publishes_filtered_gps(memory: NavsatState) -> bool:
    """Say whether the last tick sends the latest filtered odometry out as gps/filtered."""
    return bool(memory.flags[_FILTERED] == 1)


def lost_fixes(memory: NavsatState) -> int:
    """Return how many fixes a newer one overtook after the transform was fixed."""
    return int(memory.flags[_LOST])


def early_fixes(memory: NavsatState) -> int:
    """Return how many fixes came before a given datum was there to refer them to."""
    return int(memory.flags[_EARLY])


# The plain front end: a fix becomes a position in the local frame when it arrives.
#
# No timer, no guess of a heading, no fix that another overtakes. The world is east-north-up about
# the first fix, or about the datum, and the attitude of the filter must be given in it.


@kernel
def locate(
    navsat: Navsat, memory: NavsatState, x: FloatArray, number: int, position: FloatArray,
    cov: FloatArray,
) -> None:  # fmt: skip
    """Give the position of base_link that a fix says: fix - R antenna, and its pose covariance.

    The fixes are east, north, up, m; x, (15,), is the state of the filter at the arrival of this
    one, whose attitude R turns the lever arm.
    """
    R, C = memory.work[:3], navsat.covariance[number]
    matrix_from_angles(x[ROLL], x[PITCH], x[YAW], R)
    position[0] = navsat.easting[number]
    position[1] = navsat.northing[number]
    position[2] = navsat.altitude[number]
    for i in range(6):
        for j in range(6):
            cov[i, j] = C[i, j] if i < 3 and j < 3 else 0.0
    for i in range(3):
        for j in range(3):
            position[i] -= R[i, j] * navsat.antenna[j]
    if navsat.zero_altitude:
        position[2] = 0.0
