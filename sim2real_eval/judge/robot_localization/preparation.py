# SPDX-License-Identifier: Apache-2.0
"""From a message to a measurement of the filter's states, compiled.

A message has up to three *parts* (pose, twist, acceleration), each with its own mask, threshold
and memory. A part is prepared when its message arrives: lever arms and gravity use the filter's
state of that moment, `differential` and `relative` use the part's previous messages.
"""

from __future__ import annotations

import math

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
from sim_sensors.core.measurements import FloatArray
from .parts import POSE, TWIST, Parts, PartState
from .queue import Queue
from .state import ROLL, VROLL, VX

# `differential`: from two poses to a body velocity.
#
# As robot_localization does it: the current pose seen from the previous one over the difference of
# stamps, with the covariance (previous + current) dt, which no frame turns. That has neither the
# unit nor the axes of a velocity, and without an orientation in the messages, as from
# navsat_transform, the axes of the increment itself are those of the world.
#
# Corrected (`correct: differential`), with A the attitude of the previous pose, d the increment of
# position, P0 and P1 the covariances of the poses (position, small rotation about fixed axes):
#
#     v = A' d / dt,  w = angles(A' A1) / dt
#     covariance = D' (T P0 T' + P1) D / dt^2,  T = [[I, -[d]x], [0, I]],  D = diag(A, A)
#
# T is what an error of the previous attitude does to the increment seen from it. Where messages
# have no orientation, A is that of the filter's state at arrival and T is the identity.


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


@kernel
def _copy(source: FloatArray, target: FloatArray) -> None:
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            target[i, j] = source[i, j]


@kernel
def _shift_errors(d: FloatArray, C: FloatArray, work: FloatArray) -> None:
    """Replace the covariance C of a pose by T C T', T = [[I, -[d]x], [0, I]]."""
    # -[d]x e = e x d.
    for j in range(6):
        for i in range(6):
            work[i, j] = C[i, j]
        work[0, j] += C[4, j] * d[2] - C[5, j] * d[1]
        work[1, j] += C[5, j] * d[0] - C[3, j] * d[2]
        work[2, j] += C[3, j] * d[1] - C[4, j] * d[0]
    for i in range(6):
        for j in range(6):
            C[i, j] = work[i, j]
        C[i, 0] += work[i, 4] * d[2] - work[i, 5] * d[1]
        C[i, 1] += work[i, 5] * d[0] - work[i, 3] * d[2]
        C[i, 2] += work[i, 3] * d[1] - work[i, 4] * d[0]


@kernel
def _corrected(
    parts: Parts, memory: PartState, x: FloatArray, p: int, pose: FloatArray, cov: FloatArray,
    dt: float, z: FloatArray, R: FloatArray,
) -> None:  # fmt: skip
    previous, scratch, back = memory.previous[p], memory.poses[1], memory.poses[2]
    d, spare = memory.vectors[0], memory.work
    for i in range(3):
        d[i] = pose[3, i] - previous[3, i]
    _copy(memory.previous_covariance[p], R)
    if parts.no_attitude[p]:
        # From the messages' frame to the world, to base_link, to the body whose pose it is.
        attitude, turn = memory.poses[1], memory.poses[3]
        matrix_from_angles(x[ROLL], x[ROLL + 1], x[ROLL + 2], attitude)
        matrix_product(attitude.T, parts.rotation[p], turn)
        matrix_product(parts.child_turn[p].T, turn, back)
        for i in range(3):
            z[3 + i] = 0.0
    else:
        _shift_errors(d, R, spare)
        for i in range(3):
            for j in range(3):
                back[i, j] = previous[j, i]
        _copy(pose, scratch)
        times_inverse(previous, scratch)
        angles_from_matrix(scratch, z[3:])
    for i in range(3):
        z[i] = (back[i, 0] * d[0] + back[i, 1] * d[1] + back[i, 2] * d[2]) / dt
        z[3 + i] /= dt
    for i in range(6):
        for j in range(6):
            R[i, j] = (R[i, j] + cov[i, j]) / (dt * dt)
    rotate_covariance(back, R, spare)
    _copy(spare, R)


@kernel
def _as_upstream(
    memory: PartState, p: int, pose: FloatArray, cov: FloatArray, dt: float, z: FloatArray,
    R: FloatArray,
) -> None:  # fmt: skip
    scratch = memory.poses[1]
    _copy(pose, scratch)
    times_inverse(memory.previous[p], scratch)
    angles_from_matrix(scratch, z[3:])
    for i in range(3):
        z[i] = scratch[3, i] / dt
        z[3 + i] /= dt
    for i in range(6):
        for j in range(6):
            R[i, j] = (memory.previous_covariance[p, i, j] + cov[i, j]) * dt


@kernel
def increment(
    parts: Parts, memory: PartState, x: FloatArray, p: int, stamp_ns: int, pose: FloatArray,
    cov: FloatArray, z: FloatArray, R: FloatArray,
) -> bool:  # fmt: skip
    """Fill a body velocity, z, and its covariance from a pose and the previous one; remember it.

    The pose, (4, 3), has rotation rows and position, `cov`, (6, 6), is its covariance, x the state
    of the filter at the time of arrival; poses[1:], vectors and work of the memory are scratch
    space. Returns whether there was a previous pose.
    """
    had_previous = memory.seen[p, 0] == 1
    if had_previous:
        dt = (stamp_ns - memory.stamp_ns[p]) * 1e-9
        corrected = parts.correct_differential
        if corrected:
            _corrected(parts, memory, x, p, pose, cov, dt, z, R)
        else:
            _as_upstream(memory, p, pose, cov, dt, z, R)
        if parts.of_child[p]:
            turn_twist(parts.child_turn[p], parts.child_at[p], x, z)
            # robot_localization turns it twice: once as poses are, and once more as a twist is.
            for _ in range(1 if corrected else 2):
                rotate_covariance(parts.child_turn[p], R, memory.work)
                _copy(memory.work, R)
    memory.seen[p, 0] = 1
    _copy(pose, memory.previous[p])
    _copy(cov, memory.previous_covariance[p])
    return bool(had_previous)


# Gravity in an accelerometer's reading.
#
# At rest an accelerometer reads g up. In the sensor's axes that is g A' e, A the attitude of the
# sensor in the world and e the third unit vector; in base_link it is g M A' e, M the mounting.
# Without an orientation in the message A = B M with B the filter's attitude of base_link, and so
# g B' e. robot_localization subtracts g A' e from the acceleration that has already been turned
# into base_link, which is right when M does not turn A' e: M = I, or about z on level ground.


@kernel
def take_off_gravity(
    parts: Parts, memory: PartState, x: FloatArray, p: int, quaternion: FloatArray,
    has_attitude: bool, z: FloatArray,
) -> None:  # fmt: skip
    """Subtract gravity from an acceleration in base_link, z, m/s^2.

    The quaternion, x y z w, is the attitude of the sensor in the world, if the message gives one.
    Whatever its heading refers to, its roll and pitch refer to gravity, so that `relative` does
    not matter once gravity is right. x is the state of the filter at the time of arrival; poses[0]
    and vectors of the memory are scratch space.
    """
    rotation = parts.rotation[p]
    # Up, seen from a body, is the third row of its attitude.
    attitude, up, sensed = memory.poses[0], memory.vectors[0], memory.vectors[1]
    if has_attitude:
        matrix_from_quaternion(quaternion, attitude)
    else:
        matrix_from_angles(x[ROLL], x[ROLL + 1], x[ROLL + 2], attitude)
    for i in range(3):
        up[i] = sensed[i] = attitude[2, i]
    if parts.correct_gravity:
        if has_attitude:
            for i in range(3):
                up[i] = 0.0
                for k in range(3):
                    up[i] += rotation[i, k] * sensed[k]
    elif not has_attitude or parts.relative[p]:
        for i in range(3):
            up[i] = 0.0
            for k in range(3):
                up[i] += sensed[k] * rotation[k, i]
    for i in range(3):
        z[i] -= parts.gravity * up[i]


# The parts of a message.


@kernel
def _level_imu(rotation: FloatArray, pose: FloatArray, work: FloatArray) -> float:
    """Take the mounting angles off an IMU attitude, angle by angle; return the mounting yaw."""
    mounting, angles = work[0], work[1]
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
    pose, scratch, turn = memory.poses[0], memory.poses[1], memory.poses[2]
    matrix_from_quaternion(value[3:], pose)
    for i in range(3):
        pose[3, i] = value[i]
    rotation, offset = parts.rotation[p], parts.offset[p]
    if parts.imu[p]:
        yaw = _level_imu(rotation, pose, memory.vectors)
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
        rotate_covariance(parts.child_turn[p], cov, memory.work)
        rotate_covariance(turn, memory.work, R)
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

    `p` is the number of the part and `stamp_ns` the stamp of the message; x, (15,), is the state
    of the filter at the time of arrival. `value`, (7,), holds of a pose position and quaternion,
    of a twist the linear and the angular one, of an acceleration the specific force and the
    quaternion of the message, which `has_attitude` says is valid. `cov`, (6, 6), is that of the
    message; acceleration uses the first three rows and columns.
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
