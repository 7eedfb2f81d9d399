# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Helpers of the tests of the inertial judges: measurements of a motion with noise as stated."""

from __future__ import annotations

import numpy as np
from judge_examples import START_NS, stamps
from scipy.spatial.transform import Rotation

from sim2real_eval.judge.inertial.alignment import InertialInputs
from sim2real_eval.judge.inertial.settings import InertialSettings
from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.motion.trajectory import Motion, Trajectory
from sim_sensors.world.geodesy import DEFAULT_ORIGIN

_NOISE = {'gyroscope_noise': 1e-3, 'accelerometer_noise': 1e-2}
_WALKS = {'gyroscope_bias_walk': 1e-5, 'accelerometer_bias_walk': 1e-3}
_START = {'gyroscope_bias_deviation': 0.01, 'accelerometer_bias_deviation': 0.1}
QUIET = InertialSettings.from_mapping({**_NOISE, **_WALKS, 'start': _START}, 'test')


def measured(
    motion: Motion,
    settings: InertialSettings,
    rng: np.random.Generator | None = None,
    *,
    rate: float = 100.0,
    fix_rate: float = 5.0,
    fix_deviation: float = 0.05,
    gyroscope_bias: FloatArray | None = None,
    accelerometer_bias: FloatArray | None = None,
    imu_arm: tuple[float, float, float] = (0.0, 0.0, 0.0),
    antenna: tuple[float, float, float] = (0.0, 0.0, 0.0),
) -> tuple[InertialInputs, FloatArray, FloatArray]:
    """Return inputs and the biases at the IMU's stamps; without `rng` there is no noise."""
    imu_ns, fix_ns = stamps(rate, motion.end), stamps(fix_rate, motion.end)
    n, m = len(imu_ns), len(fix_ns)
    body = motion.at((imu_ns - START_NS) * 1e-9)
    at_imu = body.at_lever_arm(np.asarray(imu_arm))
    at_antenna = motion.at((fix_ns - START_NS) * 1e-9).at_lever_arm(np.asarray(antenna))

    def walk(first: FloatArray | None, step: float) -> FloatArray:
        start = np.zeros(3) if first is None else np.asarray(first)
        if rng is None:
            return np.tile(start, (n, 1))
        steps = rng.normal(scale=step / np.sqrt(rate), size=(n, 3))
        steps[0] = 0.0
        return start + np.cumsum(steps, axis=0)

    def white(density: float) -> FloatArray:
        return np.zeros((n, 3)) if rng is None else rng.normal(
            scale=density * np.sqrt(rate), size=(n, 3)
        )  # fmt: skip

    gyroscope = walk(gyroscope_bias, settings.gyroscope_bias_walk)
    accelerometer = walk(accelerometer_bias, settings.accelerometer_bias_walk)
    error = 0.0 if rng is None else rng.normal(scale=fix_deviation, size=(m, 3))
    force = at_imu.specific_force(settings.gravity) + accelerometer
    inputs = InertialInputs(
        imu_ns=imu_ns, rate=body.angular_velocity + gyroscope + white(settings.gyroscope_noise),
        force=force + white(settings.accelerometer_noise), imu_yaw=np.full(n, np.nan),
        imu_yaw_variance=np.full(n, np.nan), imu_arm=np.asarray(imu_arm), fix_ns=fix_ns,
        fix=at_antenna.position + error,
        fix_covariance=np.tile(fix_deviation**2 * np.eye(3), (m, 1, 1)),
        antenna=np.asarray(antenna), origin=DEFAULT_ORIGIN, fix_topic='gps', fixes_received=m,
        notes=(),
    )  # fmt: skip
    return inputs, gyroscope, accelerometer


def truth_at(motion: Motion, stamp_ns: IntArray) -> Trajectory:
    return motion.at((stamp_ns - START_NS) * 1e-9)


def turned(truth: FloatArray, estimate: FloatArray) -> FloatArray:
    """Rotation vectors, (n, 3), about the world's axes, from estimate to truth."""
    return (Rotation.from_quat(truth) * Rotation.from_quat(estimate).inv()).as_rotvec()


def error_of(truth: FloatArray, estimate: FloatArray) -> FloatArray:
    """Error of position, velocity, attitude (about the world's axes) and biases, (15,)."""
    rotation = turned(truth[None, 6:10], estimate[None, 6:10])[0]
    return np.concatenate([truth[:6] - estimate[:6], rotation, truth[10:] - estimate[10:]])
