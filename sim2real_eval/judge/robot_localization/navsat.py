# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""navsat_transform_node: fixes become positions in the filter's world frame, compiled.

The node waits for a fix, a filtered odometry and a heading, and then fixes the transform from UTM
to the world frame. From then on each tick of its timer turns the latest fix into an odometry
message. Fixes that a newer one overtakes before a tick are lost.
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
from sim_sensors.core.measurements import FloatArray
from .ekf import wrap_angle
from .state import PITCH, ROLL, YAW, RecordArray, record_type

_GOOD, _FIX, _NEW_FIX, _HEADING, _NEW_ODOMETRY, _ODOMETRY, _LOST, _EARLY, _FILTERED = range(9)


FIX = record_type(
    # In UTM, m, or east and north in the local frame of the immediate front end.
    ('easting', 'f8'),
    ('northing', 'f8'),
    ('altitude', 'f8'),
    ('convergence', 'f8'),  # meridian convergence, rad
    ('covariance', 'f8', (3, 3)),  # east, north, up
    ('stamp_ns', 'i8'),
)
"""A fix in the plane of the front end."""


NAVSAT_SETTINGS = record_type(
    # Added to the heading, rad.
    ('declination', 'f8'),
    ('yaw_offset', 'f8'),
    # Roll, pitch, yaw of the heading's IMU in base_link, subtracted from its angles.
    ('mounting', 'f8', (3,)),
    ('antenna', 'f8', (3,)),  # position of the antenna in base_link, m
    # 1 if a datum is given, and its easting, northing, convergence and yaw.
    ('datum', 'f8', (5,)),
    # Parameters of the same names.
    ('use_odometry_yaw', 'i8'),
    ('zero_altitude', 'i8'),
    ('publish_filtered_gps', 'i8'),
    # Whether fixes are passed on at their arrival, by the immediate front end.
    ('at_arrival', 'i8'),
)
"""Settings of navsat_transform_node."""


NAVSAT_MEMORY = record_type(
    # Transform fixed; number of the latest fix, -1 before the first; new fix; heading, new
    # odometry and any odometry received; number of fixes lost because a newer one overtook
    # them; number of fixes before a given datum was usable; last tick publishes
    # gps/filtered.
    ('status', 'i8', (9,)),
    ('attitude', 'f8', (3,)),  # latest roll, pitch and heading
    ('turn', 'f8', (3, 3)),  # rotation from UTM to the world
    ('odometry', 'f8', (6,)),  # latest filtered position and roll, pitch, yaw
    # UTM position of base_link at the datum, and its position in the world.
    ('origin', 'f8', (6,)),
    # Scratch space: a rotation, and angles in the last row.
    ('rotation', 'f8', (4, 3)),
)
"""Memory of navsat_transform_node, changed in place."""


NavsatState = np.record
"""Record of type NAVSAT_MEMORY."""


class Navsat(NamedTuple):
    """Settings of navsat_transform_node and all fixes of the run."""

    fixes: RecordArray  # (n,) of type FIX
    settings: np.record  # of type NAVSAT_SETTINGS


def new_navsat_state() -> NavsatState:
    """Return the memory of a node that has received nothing."""
    memory: NavsatState = np.zeros(1, NAVSAT_MEMORY)[0]
    memory.status[_FIX] = -1
    return memory


@kernel
def receive_fix(navsat: Navsat, memory: NavsatState, number: int) -> None:
    """Receive a valid fix."""
    if memory.status[_GOOD] == 0 and navsat.settings.datum[0] == 1.0:
        memory.status[_EARLY] += 1
        return
    if memory.status[_NEW_FIX] == 1 and memory.status[_GOOD] == 1:
        memory.status[_LOST] += 1
    memory.status[_FIX] = number
    memory.status[_NEW_FIX] = 1


@kernel
def receive_heading(navsat: Navsat, memory: NavsatState, q: FloatArray) -> None:
    """Receive an IMU orientation x y z w; its covariance is not used."""
    is_unused = navsat.settings.use_odometry_yaw or navsat.settings.datum[0] == 1.0
    if memory.status[_GOOD] == 0 and not is_unused:
        R = memory.rotation
        angles = R[3]
        matrix_from_quaternion(q, R)
        angles_from_matrix(R, angles)
        # As in the filter: angle by angle, then the mounting yaw rotates roll and pitch.
        roll = wrap_angle(angles[0] - navsat.settings.mounting[0])
        pitch = wrap_angle(angles[1] - navsat.settings.mounting[1])
        c, s = math.cos(navsat.settings.mounting[2]), math.sin(navsat.settings.mounting[2])
        memory.attitude[0] = c * roll - s * pitch
        memory.attitude[1] = s * roll + c * pitch
        memory.attitude[2] = wrap_angle(angles[2] - navsat.settings.mounting[2])
        memory.status[_HEADING] = 1


@kernel
def receive_odometry(navsat: Navsat, memory: NavsatState, pose: FloatArray) -> None:
    """Receive a filtered odometry: position and roll, pitch, yaw."""
    for i in range(6):
        memory.odometry[i] = pose[i]
    memory.status[_ODOMETRY] = 1
    memory.status[_NEW_ODOMETRY] = 1
    if memory.status[_GOOD] == 0 and navsat.settings.use_odometry_yaw:
        for i in range(3):
            memory.attitude[i] = pose[ROLL + i]
        memory.status[_HEADING] = 1


@kernel
def _fix_transform(navsat: Navsat, memory: NavsatState) -> None:
    status, number, settings = memory.status, memory.status[_FIX], navsat.settings
    if settings.datum[0] == 1.0:
        if status[_ODOMETRY] == 1:
            # The world's origin is the datum; its x axis points where the datum's heading says.
            heading = settings.datum[4] + (
                settings.declination + settings.yaw_offset + settings.datum[3]
            )
            matrix_from_angles(0.0, 0.0, -heading, memory.turn)
            memory.origin[:] = 0.0
            memory.origin[0] = settings.datum[1]
            memory.origin[1] = settings.datum[2]
            status[_GOOD] = 1
        return
    if number < 0 or status[_HEADING] == 0 or status[_ODOMETRY] == 0:
        return
    fix = navsat.fixes[number]
    heading = memory.attitude[2] + (settings.declination + settings.yaw_offset + fix.convergence)
    matrix_from_angles(0.0, 0.0, memory.odometry[YAW] - heading, memory.turn)
    memory.origin[0] = fix.easting
    memory.origin[1] = fix.northing
    memory.origin[2] = fix.altitude
    R = memory.rotation
    matrix_from_angles(memory.attitude[0], memory.attitude[1], heading, R)
    for i in range(3):
        for j in range(3):
            memory.origin[i] -= R[i, j] * settings.antenna[j]
        memory.origin[3 + i] = memory.odometry[i]
    status[_GOOD] = 1


@kernel
def tick(navsat: Navsat, memory: NavsatState, position: FloatArray, cov: FloatArray) -> int:
    """Run the timer once; return the number of the published fix, or -1.

    Fills position, (3,), and pose covariance, (6, 6), in the world frame.
    """
    status = memory.status
    status[_FILTERED] = 0
    if status[_GOOD] == 0:
        # The tick that fixes the transform publishes nothing.
        _fix_transform(navsat, memory)
        return -1
    if navsat.settings.publish_filtered_gps:
        status[_FILTERED] = status[_NEW_ODOMETRY]
    published = -1
    if status[_NEW_FIX] == 1 and status[_NEW_ODOMETRY] == 1:
        published = status[_FIX]
        fix, turn, origin = navsat.fixes[published], memory.turn, memory.origin
        east = fix.easting - origin[0]
        north = fix.northing - origin[1]
        up = fix.altitude - origin[2]
        # As in the node, the attitude is that of the latest odometry, not that at the fix.
        R, C = memory.rotation, fix.covariance
        pose = memory.odometry
        matrix_from_angles(pose[ROLL], pose[PITCH], pose[YAW], R)
        cov[:] = 0.0
        for i in range(3):
            position[i] = turn[i, 0] * east + turn[i, 1] * north + turn[i, 2] * up + origin[3 + i]
            for j in range(3):
                position[i] -= R[i, j] * navsat.settings.antenna[j]
        rotate_square(turn, C, cov)
        if navsat.settings.zero_altitude:
            position[2] = 0.0
        status[_NEW_FIX] = 0
        status[_NEW_ODOMETRY] = 0
    if navsat.settings.publish_filtered_gps:
        status[_NEW_ODOMETRY] = 0
    return published


@kernel
def publishes_filtered_gps(memory: NavsatState) -> bool:
    """Return whether the last tick publishes the latest filtered odometry as gps/filtered."""
    return bool(memory.status[_FILTERED] == 1)


def lost_fixes(memory: NavsatState) -> int:
    """Return the number of fixes overtaken by a newer one after the transform was fixed."""
    return int(memory.status[_LOST])


def early_fixes(memory: NavsatState) -> int:
    """Return the number of fixes that arrived before a given datum could be used."""
    return int(memory.status[_EARLY])


@kernel
def locate(
    navsat: Navsat, memory: NavsatState, x: FloatArray, number: int, position: FloatArray,
    cov: FloatArray,
) -> None:  # fmt: skip
    """Fill the position of base_link, fix - R antenna, and its pose covariance, (6, 6).

    The fixes are east, north, up, m. R is the attitude of the filter's state x, (15,), at the
    arrival of the fix.
    """
    fix, R = navsat.fixes[number], memory.rotation
    C = fix.covariance
    matrix_from_angles(x[ROLL], x[PITCH], x[YAW], R)
    position[0] = fix.easting
    position[1] = fix.northing
    position[2] = fix.altitude
    for i in range(6):
        for j in range(6):
            cov[i, j] = C[i, j] if i < 3 and j < 3 else 0.0
    for i in range(3):
        for j in range(3):
            position[i] -= R[i, j] * navsat.settings.antenna[j]
    if navsat.settings.zero_altitude:
        position[2] = 0.0
