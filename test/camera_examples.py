# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Cameras, scenes and motions for the tests of the camera."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from sim_sensors.camera.camera import CameraModel
from sim_sensors.camera.lens import PlumbBob
from sim_sensors.camera.pinhole import Intrinsics
from sim_sensors.camera.pose import CameraPose, PoseEstimate
from sim_sensors.core.measurements import FloatArray
from sim_sensors.motion.trajectory import Trajectory
from sim_sensors.world.world import Landmarks, World

LENS = PlumbBob(k1=-0.28, k2=0.11, p1=0.0012, p2=-0.0008, k3=-0.02)
VGA = Intrinsics(fx=670.24, fy=665.54, cx=332.95, cy=237.40)
BENT = Intrinsics(fx=670.24, fy=665.54, cx=332.95, cy=237.40, skew=0.003, distortion=LENS)
SILENT = PoseEstimate(method='none')
# Of an upright camera that looks along x: optical frame to world.
FORWARD = np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])


def cloud(count: int, seed: int = 0) -> World:
    """Points in a box of 2 x 3 x 2 m around (4, 0, 0)."""
    rng = np.random.default_rng(seed)
    places = rng.uniform([3.0, -1.5, -1.0], [5.0, 1.5, 1.0], (count, 3))
    return World(landmarks=Landmarks(np.arange(count) + 10, places))


def board(rows: int = 6, columns: int = 8, square: float = 0.2) -> World:
    """Corners in the plane x = 4, centred."""
    y, z = np.meshgrid(np.arange(columns), np.arange(rows))
    places = np.zeros((rows * columns, 3))
    places[:, 0] = 4.0
    places[:, 1] = square * (y.ravel() - 0.5 * (columns - 1))
    places[:, 2] = square * (z.ravel() - 0.5 * (rows - 1))
    return World(landmarks=Landmarks(np.arange(len(places)), places))


def swaying(frames: int, rate: float = 30.0) -> Trajectory:
    """A body near the origin that looks along x and sways."""
    t = np.arange(frames) / rate
    place = np.stack([0.3 * np.sin(0.7 * t), 0.5 * np.cos(t), 0.4 * np.sin(1.3 * t + 0.5)], axis=1)
    turn = np.stack([0.3 * np.sin(t), 0.1 * np.sin(1.7 * t), 0.12 * np.cos(0.9 * t) + 0.1], axis=1)
    zero = np.zeros((frames, 3))
    attitude = Rotation.from_euler('xyz', turn).as_quat()
    return Trajectory(t, place, attitude, zero, zero, zero, zero)


def camera(**changes: object) -> CameraModel:
    """A bent VGA camera without noise, mounted askew, that makes no poses."""
    values: dict[str, object] = {
        'lever_arm': (0.1, -0.05, 0.2),
        'mounting_rpy': (0.02, -0.03, 0.05),
        'intrinsics': BENT,
        'noise_std': (0.0, 0.0),
        'pose': SILENT,
        **changes,
    }
    return CameraModel(**values)  # type: ignore[arg-type]


def pose_errors(true: CameraPose, estimated: CameraPose) -> FloatArray:
    """Error of a pose: position, and rotation about the scene's axes, `(6,)`."""
    turn = Rotation.from_matrix(estimated.rotation @ true.rotation.T).as_rotvec()
    return np.concatenate([estimated.position - true.position, turn])
