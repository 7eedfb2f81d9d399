# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Conversion of messages into measurements of the filter's states, compiled.

A message has up to three *parts* (pose, twist, acceleration), each with its own mask, threshold
and memory. A part is prepared when its message arrives. Lever arms and gravity use the filter's
state of that moment; `differential` and `relative` use previous messages of the part.
"""

from __future__ import annotations

import math

import numpy as np

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
from .parts import POSE, TWIST
from .state import ROLL, VROLL, VX

# `differential`: a body velocity from two poses.
#
# robot_localization divides the current pose, seen from the previous one, by the difference of the
# stamps. Its covariance is (previous + current) dt, not rotated into any frame. This has neither
# the unit nor the axes of a velocity. If messages have no orientation, as from navsat_transform,
# the increment itself has the axes of the world.
#
# Corrected (`correct: differential`), with A the attitude of the previous pose, d the increment of
# position, P0 and P1 the covariances of the poses (position, small rotation about fixed axes):
#
#     v = A' d / dt,  w = angles(A' A1) / dt
#     covariance = D' (T P0 T' + P1) D / dt^2,  T = [[I, -[d]x], [0, I]],  D = diag(A, A)
#
# T describes the effect of an error of the previous attitude on the increment seen from it. If
# messages have no orientation, A is that of the filter's state at arrival and T is the identity.


@kernel
def rotate_twist(rotation: FloatArray, offset: FloatArray, x: FloatArray, z: FloatArray) -> None:
    """Replace the twist of another body frame by that of base_link, with the filter's rates."""
    v0, v1, v2, w0, w1, w2 = z[0], z[1], z[2], z[3], z[4], z[5]
    for i in range(3):
        z[i] = rotation[i, 0] * v0 + rotation[i, 1] * v1 + rotation[i, 2] * v2
        z[3 + i] = rotation[i, 0] * w0 + rotation[i, 1] * w1 + rotation[i, 2] * w2
    r0, r1, r2 = x[VROLL], x[VROLL + 1], x[VROLL + 2]
    z[0] += offset[1] * r2 - offset[2] * r1
    z[1] += offset[2] * r0 - offset[0] * r2
    z[2] += offset[0] * r1 - offset[1] * r0


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
def _increment_corrected(
    part: np.record, previous: np.record, node: np.record, x: FloatArray, pose: FloatArray,
    cov: FloatArray, dt: float, z: FloatArray, R: FloatArray,
) -> None:  # fmt: skip
    d, work, back = node.vectors[0], node.work, node.rotation
    for i in range(3):
        d[i] = pose[3, i] - previous.previous[3, i]
    _copy(previous.previous_covariance, R)
    if part.no_attitude:
        # Rotate from the messages' frame to the world, to base_link, to the body of the pose.
        attitude, to_base = node.attitude, node.increment_pose
        matrix_from_angles(x[ROLL], x[ROLL + 1], x[ROLL + 2], attitude)
        matrix_product(attitude.T, part.rotation, to_base)
        matrix_product(part.child_rotation.T, to_base, back)
        for i in range(3):
            z[3 + i] = 0.0
    else:
        _shift_errors(d, R, work)
        for i in range(3):
            for j in range(3):
                back[i, j] = previous.previous[j, i]
        _copy(pose, node.increment_pose)
        times_inverse(previous.previous, node.increment_pose)
        angles_from_matrix(node.increment_pose, z[3:])
    for i in range(3):
        z[i] = (back[i, 0] * d[0] + back[i, 1] * d[1] + back[i, 2] * d[2]) / dt
        z[3 + i] /= dt
    for i in range(6):
        for j in range(6):
            R[i, j] = (R[i, j] + cov[i, j]) / (dt * dt)
    rotate_covariance(back, R, work)
    _copy(work, R)


@kernel
def _increment_as_upstream(
    previous: np.record, node: np.record, pose: FloatArray, cov: FloatArray, dt: float,
    z: FloatArray, R: FloatArray,
) -> None:  # fmt: skip
    _copy(pose, node.increment_pose)
    times_inverse(previous.previous, node.increment_pose)
    angles_from_matrix(node.increment_pose, z[3:])
    for i in range(3):
        z[i] = node.increment_pose[3, i] / dt
        z[3 + i] /= dt
    for i in range(6):
        for j in range(6):
            R[i, j] = (previous.previous_covariance[i, j] + cov[i, j]) * dt


@kernel
def increment(
    part: np.record, previous: np.record, node: np.record, x: FloatArray, stamp_ns: int,
    pose: FloatArray, cov: FloatArray, z: FloatArray, R: FloatArray,
) -> bool:  # fmt: skip
    """Fill z and R with a body velocity from a pose and the previous one; remember the pose.

    Returns whether there was a previous pose.

    Parameters
    ----------
    part, previous, node : records of type PART, PART_MEMORY and NODE_MEMORY.
    x : state of the filter at the arrival.
    pose : (4, 3), rotation rows and position; `cov`, (6, 6), is its covariance.
    """
    had_previous = previous.seen[0] == 1
    if had_previous:
        dt = (stamp_ns - previous.stamp_ns) * 1e-9
        if part.correct_differential:
            _increment_corrected(part, previous, node, x, pose, cov, dt, z, R)
        else:
            _increment_as_upstream(previous, node, pose, cov, dt, z, R)
        if part.of_child:
            rotate_twist(part.child_rotation, part.child_offset, x, z)
            # robot_localization rotates it twice: as a pose, and again as a twist.
            for _ in range(1 if part.correct_differential else 2):
                rotate_covariance(part.child_rotation, R, node.work)
                _copy(node.work, R)
    previous.seen[0] = 1
    _copy(pose, previous.previous)
    _copy(cov, previous.previous_covariance)
    return bool(had_previous)


# Gravity in an accelerometer's reading.
#
# At rest an accelerometer reads g up. In the sensor's axes that is g A' e, with A the attitude of
# the sensor in the world and e the third unit vector. In base_link it is g M A' e, with M the
# mounting. If the message has no orientation, A = B M with B the filter's attitude of base_link,
# and the reading in base_link is g B' e. robot_localization subtracts g A' e from the
# acceleration in base_link. The result is right only if M does not change A' e: M = I, or a
# rotation about z on level ground.


@kernel
def subtract_gravity(
    part: np.record, node: np.record, x: FloatArray, quaternion: FloatArray, has_attitude: bool,
    z: FloatArray,
) -> None:  # fmt: skip
    """Subtract gravity from an acceleration in base_link, z, m/s^2.

    The quaternion, x y z w, is the attitude of the sensor in the world, if the message has one.
    Its roll and pitch refer to gravity whatever its heading refers to, so corrected gravity does
    not depend on `relative`, unless `starts_level`. x is the state of the filter at the arrival.
    """
    # Up in the axes of a body is the third row of its attitude.
    attitude, up, measured_up = node.attitude, node.vectors[0], node.vectors[1]
    if has_attitude:
        matrix_from_quaternion(quaternion, attitude)
    else:
        matrix_from_angles(x[ROLL], x[ROLL + 1], x[ROLL + 2], attitude)
    for i in range(3):
        up[i] = measured_up[i] = attitude[2, i]
    if part.correct_gravity:
        if has_attitude and part.starts_level:
            # At the start up was the third row of the mounting in the axes of the sensor.
            for i in range(3):
                measured_up[i] = 0.0
                for k in range(3):
                    measured_up[i] += attitude[k, i] * part.rotation[2, k]
        if has_attitude:
            for i in range(3):
                up[i] = 0.0
                for k in range(3):
                    up[i] += part.rotation[i, k] * measured_up[k]
    elif not has_attitude or part.relative:
        for i in range(3):
            up[i] = 0.0
            for k in range(3):
                up[i] += measured_up[k] * part.rotation[k, i]
    for i in range(3):
        z[i] -= part.gravity * up[i]


@kernel
def _level_imu(rotation: FloatArray, pose: FloatArray, work: FloatArray) -> float:
    """Subtract the mounting angles from an IMU attitude; return the mounting yaw."""
    mounting, angles = work[0], work[1]
    angles_from_matrix(pose, angles)
    if is_identity(rotation):
        # The result of the lines below, without their sines.
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
def _move_to_base(
    rotation: FloatArray, offset: FloatArray, pose: FloatArray, scratch: FloatArray
) -> None:
    """Replace the pose of another body frame by that of base_link."""
    # Seen from that frame, base_link has the rotation R' and the position -R' offset.
    matrix_product(pose, rotation.T, scratch)
    for i in range(3):
        for j in range(3):
            pose[i, j] = scratch[i, j]
            pose[3, i] -= scratch[i, j] * offset[j]


@kernel
def _prepare_pose(
    part: np.record, previous: np.record, node: np.record, x: FloatArray, stamp_ns: int,
    values: FloatArray, cov: FloatArray, measurement: np.record,
) -> bool:  # fmt: skip
    pose, rotation = node.pose, node.rotation
    matrix_from_quaternion(values[3:], pose)
    for i in range(3):
        pose[3, i] = values[i]
    if part.imu:
        yaw = _level_imu(part.rotation, pose, node.vectors)
        matrix_from_angles(0.0, 0.0, yaw, rotation)
    else:
        _copy(part.rotation, rotation)
    z, R = measurement.z, measurement.R
    if part.differential:
        measurement.first_state = VX
        return increment(part, previous, node, x, stamp_ns, pose, cov, z, R)
    measurement.first_state = 0
    if part.of_child:
        _move_to_base(part.child_rotation, part.child_offset, pose, node.increment_pose)
    if part.relative:
        if previous.seen[1] == 0:
            previous.seen[1] = 1
            _copy(pose, previous.initial)
        times_inverse(previous.initial, pose)
    if not part.imu:
        transform(part.rotation, part.offset, pose)
    for i in range(3):
        z[i] = pose[3, i]
    angles_from_matrix(pose, z[3:])
    if part.of_child:
        rotate_covariance(part.child_rotation, cov, node.work)
        rotate_covariance(rotation, node.work, R)
    else:
        rotate_covariance(rotation, cov, R)
    return True


@kernel
def _prepare_acceleration(
    part: np.record, node: np.record, x: FloatArray, values: FloatArray, cov: FloatArray,
    has_attitude: bool, measurement: np.record,
) -> None:  # fmt: skip
    rotation, o, z = part.rotation, part.offset, measurement.z
    measurement.first_state = VX + 6
    for i in range(3):
        z[i] = rotation[i, 0] * values[0] + rotation[i, 1] * values[1] + rotation[i, 2] * values[2]
    al = node.rates[1]
    w0, w1, w2 = x[VROLL], x[VROLL + 1], x[VROLL + 2]
    # o x alpha - (o x w) x w, with o the lever arm.
    c0, c1, c2 = o[1] * w2 - o[2] * w1, o[2] * w0 - o[0] * w2, o[0] * w1 - o[1] * w0
    z[0] += o[1] * al[2] - o[2] * al[1] - (c1 * w2 - c2 * w1)
    z[1] += o[2] * al[0] - o[0] * al[2] - (c2 * w0 - c0 * w2)
    z[2] += o[0] * al[1] - o[1] * al[0] - (c0 * w1 - c1 * w0)
    if part.remove_gravity:
        subtract_gravity(part, node, x, values[3:], has_attitude, z)
    if is_identity(rotation):
        for i in range(3):
            for j in range(3):
                measurement.R[i, j] = cov[i, j]
    else:
        rotate_square(rotation, cov, measurement.R)


@kernel
def prepare(
    part: np.record, previous: np.record, node: np.record, x: FloatArray, stamp_ns: int,
    values: FloatArray, cov: FloatArray, has_attitude: bool, measurement: np.record,
) -> bool:  # fmt: skip
    """Fill a measurement from one message part; return False when there is no measurement.

    Parameters
    ----------
    part, previous, node : records of type PART, PART_MEMORY and NODE_MEMORY.
    x : state of the filter at the arrival, (15,) or longer.
    stamp_ns : stamp of the message.
    values : (7,). Pose: position and quaternion. Twist: linear and angular velocity. Acceleration:
        specific force and the quaternion of the message, which `has_attitude` says is valid.
    cov : (6, 6), covariance of the message; an acceleration uses the first three rows and columns.
    measurement : record of type MEASUREMENT.
    """
    measurement.stamp_ns = stamp_ns
    is_usable = True
    if part.kind == POSE:
        is_usable = _prepare_pose(part, previous, node, x, stamp_ns, values, cov, measurement)
    elif part.kind == TWIST:
        measurement.first_state = VX
        for i in range(6):
            measurement.z[i] = values[i]
        rotate_twist(part.rotation, part.offset, x, measurement.z)
        rotate_covariance(part.rotation, cov, measurement.R)
    else:
        _prepare_acceleration(part, node, x, values, cov, has_attitude, measurement)
    previous.stamp_ns = stamp_ns
    return is_usable


# The immediate front end: a fix becomes a position in the local frame when it arrives.
#
# It has no timer, estimates no heading and loses no fix. The world is east-north-up about the
# first fix or the datum, and the filter's attitude must be given in it.
