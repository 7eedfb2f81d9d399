# SPDX-License-Identifier: Apache-2.0
"""From a message to a measurement of the filter's states, compiled.

A message has up to three *parts* (pose, twist, acceleration), each with its own mask, threshold
and memory. A part is prepared when its message arrives: lever arms and gravity use the filter's
state of that moment, `differential` and `relative` use the part's previous messages.
"""

from __future__ import annotations

import math

import numpy as np

from sim2real_eval.judge.robot_localization.increments import (
    increment,
    take_off_gravity,
    turn_twist,
)
from sim2real_eval.judge.robot_localization.parts import POSE, TWIST, Parts, PartState
from sim2real_eval.judge.robot_localization.queue import Queue
from sim2real_eval.judge.robot_localization.state import TWO_D_STATES, VROLL, VX, N
from sim_sensors.core.compilation import kernel
from sim_sensors.core.compiled_rotations import (
    angles_from_matrix,
    is_identity,
    matrix_from_angles,
    matrix_from_quaternion,
    matrix_product,
    rotate_covariance,
    rotate_square,
    times_inverse,
    transform,
)
from sim_sensors.core.measurements import FloatArray, IntArray

_TWO_D_VARIANCE = 1e-6
_FLAT = np.array([state in TWO_D_STATES for state in range(N)])


@kernel
def _level_imu(rotation: FloatArray, pose: FloatArray, work: FloatArray) -> float:
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
def _move_to_base(turn: FloatArray, at: FloatArray, pose: FloatArray, scratch: FloatArray) -> None:
    """Replace the pose of another body frame by that of base_link."""
    # base_link in that frame: rotation turn', position -turn' at.
    matrix_product(pose, turn.T, scratch)
    for i in range(3):
        for j in range(3):
            pose[i, j] = scratch[i, j]
            pose[3, i] -= scratch[i, j] * at[j]


@kernel
def _prepare_pose(
    parts: Parts, memory: PartState, x: FloatArray, p: int, stamp_ns: int, value: FloatArray,
    cov: FloatArray, queue: Queue, slot: int,
) -> bool:  # fmt: skip
    pose, scratch = memory.work[0, :4, :3], memory.work[1, :, :3]
    turn = memory.work[2, :3, :3]
    matrix_from_quaternion(value[3:], pose)
    for i in range(3):
        pose[3, i] = value[i]
    rotation, offset = parts.rotation[p], parts.offset[p]
    if parts.imu[p]:
        yaw = _level_imu(rotation, pose, scratch)
        matrix_from_angles(0.0, 0.0, yaw, turn)
    else:
        for i in range(3):
            for j in range(3):
                turn[i, j] = rotation[i, j]
    z, R = queue.z[slot], queue.R[slot]
    if parts.differential[p]:
        queue.first_state[slot] = VX
        return increment(parts, memory, x, p, stamp_ns, pose, cov, z, R)
    queue.first_state[slot] = 0
    if parts.of_child[p]:
        _move_to_base(parts.child_turn[p], parts.child_at[p], pose, scratch)
    if parts.relative[p]:
        if memory.seen[p, 1] == 0:
            memory.seen[p, 1] = 1
            for i in range(4):
                for j in range(3):
                    memory.initial[p, i, j] = pose[i, j]
        times_inverse(memory.initial[p], pose)
    if not parts.imu[p]:
        transform(rotation, offset, pose)
    for i in range(3):
        z[i] = pose[3, i]
    angles_from_matrix(pose, z[3:])
    if parts.of_child[p]:
        rotate_covariance(parts.child_turn[p], cov, memory.work[3])
        rotate_covariance(turn, memory.work[3], R)
    else:
        rotate_covariance(turn, cov, R)
    return True


@kernel
def _prepare_twist(
    parts: Parts, x: FloatArray, p: int, value: FloatArray, cov: FloatArray,
    queue: Queue, slot: int,
) -> None:  # fmt: skip
    queue.first_state[slot] = VX
    for i in range(6):
        queue.z[slot, i] = value[i]
    turn_twist(parts.rotation[p], parts.offset[p], x, queue.z[slot])
    rotate_covariance(parts.rotation[p], cov, queue.R[slot])


@kernel
def _prepare_acceleration(
    parts: Parts, memory: PartState, x: FloatArray, p: int, value: FloatArray, cov: FloatArray,
    has_attitude: bool, queue: Queue, slot: int,
) -> None:  # fmt: skip
    rotation, o, z = parts.rotation[p], parts.offset[p], queue.z[slot]
    queue.first_state[slot] = VX + 6
    for i in range(3):
        z[i] = rotation[i, 0] * value[0] + rotation[i, 1] * value[1] + rotation[i, 2] * value[2]
    al = memory.rates[1]
    w0, w1, w2 = x[VROLL], x[VROLL + 1], x[VROLL + 2]
    # p x alpha - (p x w) x w
    c0, c1, c2 = o[1] * w2 - o[2] * w1, o[2] * w0 - o[0] * w2, o[0] * w1 - o[1] * w0
    z[0] += o[1] * al[2] - o[2] * al[1] - (c1 * w2 - c2 * w1)
    z[1] += o[2] * al[0] - o[0] * al[2] - (c2 * w0 - c0 * w2)
    z[2] += o[0] * al[1] - o[1] * al[0] - (c0 * w1 - c1 * w0)
    if parts.remove_gravity[p]:
        take_off_gravity(parts, memory, x, p, value[3:], has_attitude, z)
    R = queue.R[slot]
    if is_identity(rotation):
        for i in range(3):
            for j in range(3):
                R[i, j] = cov[i, j]
        return
    rotate_square(rotation, cov, R)


@kernel
def prepare(
    parts: Parts, memory: PartState, x: FloatArray, p: int, stamp_ns: int, value: FloatArray,
    cov: FloatArray, has_attitude: bool, queue: Queue, slot: int,
) -> bool:  # fmt: skip
    """Fill a queue slot from one message part; False when it yields no measurement.

    Parameters
    ----------
    parts, memory : Parts, PartState
        Configuration and memory of all parts.
    x : (15,) float
        State of the filter at the time of arrival.
    p : int
        Number of the part.
    stamp_ns : int
        Stamp of the message.
    value : (7,) float
        Pose: position, quaternion. Twist: linear, angular, unused. Acceleration: specific
        force, quaternion of the message.
    cov : (6, 6) float
        Covariance from the message; acceleration uses the first three rows and columns.
    has_attitude : bool
        Whether an acceleration comes with a valid orientation.
    queue, slot
        Where to put the measurement.
    """
    queue.stamp_ns[slot] = stamp_ns
    queue.part[slot] = p
    usable = True
    if parts.kind[p] == POSE:
        usable = _prepare_pose(parts, memory, x, p, stamp_ns, value, cov, queue, slot)
    elif parts.kind[p] == TWIST:
        _prepare_twist(parts, x, p, value, cov, queue, slot)
    else:
        _prepare_acceleration(parts, memory, x, p, value, cov, has_attitude, queue, slot)
    memory.stamp_ns[p] = stamp_ns
    return usable


@kernel
def select(
    parts: Parts, queue: Queue, slot: int, initialised: bool,
    index: IntArray, z: FloatArray, R: FloatArray,
) -> int:  # fmt: skip
    """Gather what a queued measurement measures; return how many states that is.

    Masked entries that are not finite are left out. `two_d_mode` adds z, roll, pitch, vz, vroll,
    vpitch and az, measured as zero with variance 1e-6 and uncorrelated.
    """
    first, p = queue.first_state[slot], queue.part[slot]
    width = 3 if first == VX + 6 else 6
    m = 0
    for state in range(N):
        inside = first <= state < first + width
        forced = parts.two_d and _FLAT[state]
        if forced:
            z[m] = 0.0
        elif inside and parts.mask[p, state - first] != 0.0:
            z[m] = queue.z[slot, state - first]
            if initialised and not math.isfinite(z[m]):
                continue
        else:
            continue
        index[m] = state
        for k in range(m):
            other = index[k]
            both = inside and not forced and first <= other < first + width
            both = both and not (parts.two_d and _FLAT[other])
            R[m, k] = queue.R[slot, state - first, other - first] if both else 0.0
            R[k, m] = queue.R[slot, other - first, state - first] if both else 0.0
        R[m, m] = _TWO_D_VARIANCE if forced else queue.R[slot, state - first, state - first]
        m += 1
    return m
