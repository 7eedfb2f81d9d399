# SPDX-License-Identifier: Apache-2.0
"""Rigid motions of poses and twists for the preparation of measurements, compiled.

A pose is four rows of three: those of the rotation matrix, and the position.
"""

from __future__ import annotations

import math

from sim2real_eval.judge.rotations import (
    angles_from_matrix,
    is_identity,
    matrix_from_angles,
    matrix_product,
)
from sim2real_eval.judge.state import VROLL
from sim_sensors.compilation import kernel
from sim_sensors.measurements import FloatArray

__all__ = ['level_imu', 'move_to_base', 'times_inverse', 'transform', 'turn_twist']


@kernel
def times_inverse(base: FloatArray, pose: FloatArray) -> None:
    """Replace `pose` by base^-1 pose; both are rotation rows and a position row."""
    p0 = pose[3, 0] - base[3, 0]
    p1 = pose[3, 1] - base[3, 1]
    p2 = pose[3, 2] - base[3, 2]
    for i in range(3):
        pose[3, i] = base[0, i] * p0 + base[1, i] * p1 + base[2, i] * p2
    for j in range(3):
        r0, r1, r2 = pose[0, j], pose[1, j], pose[2, j]
        for i in range(3):
            pose[i, j] = base[0, i] * r0 + base[1, i] * r1 + base[2, i] * r2


@kernel
def transform(rotation: FloatArray, offset: FloatArray, pose: FloatArray) -> None:
    """Replace `pose` by the transform (rotation, offset) times pose."""
    p0, p1, p2 = pose[3, 0], pose[3, 1], pose[3, 2]
    for i in range(3):
        pose[3, i] = rotation[i, 0] * p0 + rotation[i, 1] * p1 + rotation[i, 2] * p2 + offset[i]
    for j in range(3):
        r0, r1, r2 = pose[0, j], pose[1, j], pose[2, j]
        for i in range(3):
            pose[i, j] = rotation[i, 0] * r0 + rotation[i, 1] * r1 + rotation[i, 2] * r2


@kernel
def level_imu(rotation: FloatArray, pose: FloatArray, work: FloatArray) -> float:
    """Take the mounting angles off an IMU attitude, angle by angle; return the mounting yaw."""
    mounting, angles = work[4], work[5]
    angles_from_matrix(pose, angles)
    if is_identity(rotation):
        # What the lines below come to, without their sines.
        matrix_from_angles(angles[0], angles[1], angles[2], pose)
        return 0.0
    angles_from_matrix(rotation, mounting)
    roll, pitch = angles[0] - mounting[0], angles[1] - mounting[1]
    yaw = mounting[2]
    levelled_roll = math.cos(yaw) * roll - math.sin(yaw) * pitch
    levelled_pitch = math.sin(yaw) * roll + math.cos(yaw) * pitch
    matrix_from_angles(levelled_roll, levelled_pitch, angles[2] - yaw, pose)
    return float(yaw)


@kernel
def move_to_base(turn: FloatArray, at: FloatArray, pose: FloatArray, scratch: FloatArray) -> None:
    """Replace the pose of another body frame by that of base_link."""
    # base_link in that frame: rotation turn', position -turn' at.
    matrix_product(pose, turn.T, scratch)
    for i in range(3):
        for j in range(3):
            pose[i, j] = scratch[i, j]
            pose[3, i] -= scratch[i, j] * at[j]


@kernel
def turn_twist(turn: FloatArray, at: FloatArray, x: FloatArray, z: FloatArray) -> None:
    """Replace the twist of another body frame by that of base_link, with the filter's rates."""
    v0, v1, v2, w0, w1, w2 = z[0], z[1], z[2], z[3], z[4], z[5]
    for i in range(3):
        z[i] = turn[i, 0] * v0 + turn[i, 1] * v1 + turn[i, 2] * v2
        z[3 + i] = turn[i, 0] * w0 + turn[i, 1] * w1 + turn[i, 2] * w2
    r0, r1, r2 = x[VROLL], x[VROLL + 1], x[VROLL + 2]
    z[0] += at[1] * r2 - at[2] * r1
    z[1] += at[2] * r0 - at[0] * r2
    z[2] += at[0] * r1 - at[1] * r0
