# SPDX-License-Identifier: Apache-2.0
"""From the filter's state to what a judge hands out: pose and twist of base_link."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import Finding
from sim2real_eval.judge.error_state.loop import InertialEvents, Taken
from sim2real_eval.judge.estimate import Corrections, JudgedRun, PartCount
from sim2real_eval.judge.inertial.front_end import InertialInputs
from sim2real_eval.judge.inertial.settings import InertialSettings
from sim2real_eval.judge.inertial.strapdown import (
    ATTITUDE,
    ERRORS,
    GYROSCOPE_BIAS,
    POSITION,
    VELOCITY,
)
from sim_sensors.core.measurements import FloatArray

__all__ = ['judged_run', 'skew']


def skew(vectors: FloatArray) -> FloatArray:
    """Return the matrices [a] with [a] b = a x b, (n, 3, 3), of vectors, (n, 3)."""
    x, y, z = vectors.T
    zero = np.zeros_like(x)
    rows = np.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=1)
    return rows.reshape(-1, 3, 3)


def judged_run(
    inputs: InertialInputs,
    settings: InertialSettings,
    events: InertialEvents,
    taken: Taken,
    parts: tuple[PartCount, ...],
    corrections: Corrections,
    notes: tuple[Finding, ...],
) -> JudgedRun:
    """Return the run, its states moved from the IMU to base_link with their covariances.

    The white noise of the gyroscope is in the twist and its covariance as one IMU message has it.
    """
    x, P = taken.x, taken.P
    n = len(x)
    attitude = Rotation.from_quat(x[:, 6:10]) if n else None
    R = attitude.as_matrix() if attitude is not None else np.zeros((0, 3, 3))
    back = R.transpose(0, 2, 1)
    arm = np.broadcast_to(events.base, (n, 3))
    arm_world = np.einsum('nij,nj->ni', R, arm)
    v = x[:, 3:6]
    rate = events.rate[events.out_at] - x[:, 10:13]
    identity = np.eye(3)
    p_, v_, a_, g_ = (
        slice(first, first + 3) for first in (POSITION, VELOCITY, ATTITUDE, GYROSCOPE_BIAS)
    )
    pose, twist = np.zeros((n, 6, ERRORS)), np.zeros((n, 6, ERRORS))
    pose[:, :3, p_] = identity
    pose[:, :3, a_] = -skew(arm_world)
    pose[:, 3:, a_] = identity
    twist[:, :3, v_] = back
    twist[:, :3, a_] = back @ skew(v)
    twist[:, :3, g_] = skew(arm)
    twist[:, 3:, g_] = -identity
    period = float(np.median(np.diff(inputs.imu_ns))) * 1e-9
    shaken = np.vstack([skew(events.base[None])[0], -identity])
    twist_covariance = twist @ P @ twist.transpose(0, 2, 1)
    twist_covariance += shaken @ shaken.T * settings.gyroscope_noise**2 / period

    accepted = np.concatenate([[True], taken.accepted > 0])
    orientations = np.vstack([_first_attitude(x, taken), taken.attitude])
    held = Rotation.from_quat(orientations[accepted]).apply(inputs.antenna)
    gps_covariance = np.zeros((int(np.sum(accepted)), 6, 6))
    gps_covariance[:, :3, :3] = inputs.fix_covariance[accepted]
    stamp_ns = events.time_ns[events.out_at]
    return JudgedRun(
        stamp_ns=stamp_ns,
        tick_ns=stamp_ns,
        position=x[:, :3] + arm_world,
        orientation=x[:, 6:10].copy(),
        linear_velocity=np.einsum('nij,nj->ni', back, v) + np.cross(rate, arm),
        angular_velocity=rate,
        pose_covariance=pose @ P @ pose.transpose(0, 2, 1),
        twist_covariance=twist_covariance,
        gps_stamp_ns=inputs.fix_ns[accepted],
        gps_position=inputs.fix[accepted] - held,
        gps_covariance=gps_covariance,
        parts=parts,
        notes=notes,
        corrections=corrections,
        about_axes=True,
    )


def _first_attitude(x: FloatArray, taken: Taken) -> FloatArray:
    """Attitude, (1, 4), to move the first fix by: that of the first estimate, or of a fix."""
    for known in (x[:1, 6:10], taken.attitude[:1]):
        if len(known):
            return known
    return np.array([[0.0, 0.0, 0.0, 1.0]])
