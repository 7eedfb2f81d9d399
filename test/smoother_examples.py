# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Drives with sensors that have exactly the noise of the settings, for smoother tests."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from sim2real_eval.judge.inertial.settings import InertialSettings
from sim2real_eval.recording.recording import Recording, StaticTransform
from sim_sensors.core import rotations
from sim_sensors.core.measurements import FixArray, FloatArray, ImuArray, OdometryArray
from sim_sensors.motion.scenarios import Scenario
from sim_sensors.world.geodesy import LocalFrame

START_NS = 1_700_000_000_000_000_000
ORIGIN = LocalFrame(43.07, -89.4, 260.0)
IMU_ARM = (0.4, -0.3, 0.5)
ANTENNA = (-0.6, 0.2, 1.2)
RATE = 100.0
# The smoother does not know that the vehicle moves on level ground.
_START = {
    'gyroscope_bias_deviation': 0.002, 'accelerometer_bias_deviation': 0.1,
    'heading_deviation': 0.02,
}  # fmt: skip
SETTINGS = InertialSettings.from_mapping(
    {
        'gyroscope_noise': 0.002, 'accelerometer_noise': 0.02, 'gyroscope_bias_walk': 1e-4,
        'accelerometer_bias_walk': 1e-3, 'output_frequency': 20.0, 'start': _START,
    },
    'test',
)  # fmt: skip


def drive(
    motion: Scenario,
    seed: int,
    *,
    settings: InertialSettings = SETTINGS,
    fix_rate: float = 5.0,
    fix_deviation: tuple[float, float, float] = (0.3, 0.3, 0.6),
    noise: float = 1.0,
    arms: bool = True,
) -> tuple[Recording, float]:
    """Return a recording of a motion, and its first heading with the error that settings state.

    Fixes have a rate in Hz and a deviation in m, `noise` scales all errors, and `arms` mounts IMU
    and antenna off base_link.
    """
    rng = np.random.default_rng(seed)
    time = np.arange(0.0, motion.end, 1.0 / RATE)
    n = len(time)
    stamp_ns = START_NS + np.round(time * 1e9).astype(np.int64)
    true = motion.at(time)
    imu_arm, antenna = np.array([IMU_ARM, ANTENNA]) * arms

    def errors(density: float, walk: float, first: float) -> FloatArray:
        bias = first * rng.normal(size=3)
        steps = walk / np.sqrt(RATE) * rng.normal(size=(n, 3))
        white = density * np.sqrt(RATE) * rng.normal(size=(n, 3))
        return noise * (bias + np.cumsum(steps, axis=0) + white)

    w, alpha = true.angular_velocity, true.angular_acceleration
    up = np.array([0.0, 0.0, settings.gravity])
    force = rotations.rotate_back(true.orientation, true.acceleration + up)
    force = force + np.cross(alpha, imu_arm) + np.cross(w, np.cross(w, imu_arm))
    start = settings.start
    rate = w + errors(
        settings.gyroscope_noise, settings.gyroscope_bias_walk, start.gyroscope_bias_deviation
    )
    force = force + errors(
        settings.accelerometer_noise,
        settings.accelerometer_bias_walk,
        start.accelerometer_bias_deviation,
    )
    mounting = (0.0, 0.0, np.sin(0.3), np.cos(0.3)) if arms else (0.0, 0.0, 0.0, 1.0)
    mountings = np.tile(mounting, (n, 1))
    absent = np.zeros((n, 3, 3))
    absent[:, 0, 0] = -1.0
    imu = ImuArray(
        stamp_ns, stamp_ns, 'imu_link', np.tile([0.0, 0.0, 0.0, 1.0], (n, 1)),
        rotations.rotate_back(mountings, rate), rotations.rotate_back(mountings, force),
        absent, np.zeros((n, 3, 3)), np.zeros((n, 3, 3)),
    )  # fmt: skip
    fix_time = np.arange(0.0, motion.end - 1.0 / RATE, 1.0 / fix_rate)
    at = motion.at(fix_time)
    m = len(fix_time)
    place = at.position + rotations.rotate(at.orientation, np.tile(antenna, (m, 1)))
    place = place + noise * np.array(fix_deviation) * rng.normal(size=(m, 3))
    fix_ns = START_NS + np.round(fix_time * 1e9).astype(np.int64)
    covariance = np.tile(np.diag(np.square(fix_deviation)), (m, 1, 1))
    latitude, longitude, altitude = ORIGIN.to_geodetic(place)
    fixes = FixArray(
        fix_ns, fix_ns, 'gps_link', latitude, longitude, altitude, np.zeros(m, np.int64),
        covariance, np.full(m, 2),
    )  # fmt: skip
    # The judge's world has its origin in the first fix.
    truth = OdometryArray(
        stamp_ns, stamp_ns, 'map', 'base_link', true.position - place[0], true.orientation,
        rotations.rotate_back(true.orientation, true.velocity), w,
        np.zeros((n, 6, 6)), np.zeros((n, 6, 6)),
    )  # fmt: skip
    transforms = (
        StaticTransform('base_link', 'imu_link', tuple(imu_arm.tolist()), mounting),
        StaticTransform('base_link', 'gps_link', tuple(antenna.tolist())),
    )
    messages = {'/imu/data': imu, '/gps/fix': fixes, '/ground_truth/odometry': truth}
    roles = {'imu': '/imu/data', 'gps': '/gps/fix', 'truth': '/ground_truth/odometry'}
    recording = Recording('drive_1', 'drive', '', messages, roles, transforms)
    first = float(Rotation.from_quat(true.orientation[0]).as_euler('xyz')[2])
    return recording, first + noise * start.heading_deviation * float(rng.normal())
