# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Helpers of the tests of the judge: parameter files, simple recordings, traces, oracles."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from sim2real_eval.judge.robot_localization.configuration import FilterConfig, NavsatConfig
from sim2real_eval.judge.robot_localization.filter import build_dynamics
from sim2real_eval.judge.robot_localization.state import Dynamics, N
from sim2real_eval.recording.recording import Recording, StaticTransform
from sim_sensors.core.measurements import (
    FixArray,
    ImuArray,
    MessageArray,
    OdometryArray,
    TwistArray,
)

START_NS = 1_000_000_000_000


STATE_NAMES = (
    'x', 'y', 'z', 'roll', 'pitch', 'yaw', 'vx', 'vy', 'vz', 'vroll', 'vpitch', 'vyaw', 'ax',
    'ay', 'az',
)  # fmt: skip


def mask(*states: str) -> list[bool]:
    """15 flags of a `*_config`, set for the named states."""
    assert set(states) <= set(STATE_NAMES)
    return [name in states for name in STATE_NAMES]


# Parameters of an IMU by its ROS topic, and of one of the recordings below.
IMU = {'imu0': '/imu/data', 'imu0_config': mask('yaw', 'vyaw')}
YAW = {'imu0': 'imu', 'imu0_config': mask('yaw', 'vyaw')}


def write(folder: Path, text: str) -> Path:
    path = folder / 'file.yaml'
    path.write_text(text, encoding='utf-8')
    return path


def parameter_file(folder: Path, parameters: dict[str, Any], node: str = '/**') -> Path:
    path = folder / 'params.yaml'
    path.write_text(yaml.safe_dump({node: {'ros__parameters': parameters}}), encoding='utf-8')
    return path


def filter_config(folder: Path, **parameters: Any) -> FilterConfig:
    return FilterConfig.from_file(parameter_file(folder, parameters))


def navsat_config(folder: Path, **parameters: Any) -> NavsatConfig:
    path = folder / 'navsat_params.yaml'
    path.write_text(yaml.safe_dump({'/**': {'ros__parameters': parameters}}), encoding='utf-8')
    return NavsatConfig.from_file(path)


def dynamics(Q: np.ndarray | None = None, **settings: Any) -> Dynamics:
    return build_dynamics(np.zeros((N, N)) if Q is None else Q, **settings)


def stamps(rate: float, duration: float, start_ns: int = START_NS) -> np.ndarray:
    return start_ns + np.round(np.arange(round(rate * duration)) * 1e9 / rate).astype(np.int64)


def _same(matrix: np.ndarray, n: int) -> np.ndarray:
    return np.broadcast_to(matrix, (n, *matrix.shape))


def odometry(
    stamp_ns: np.ndarray,
    *,
    position: np.ndarray | None = None,
    yaw: np.ndarray | float = 0.0,
    velocity: np.ndarray | None = None,
    rate: np.ndarray | None = None,
    variance: float = 1e-2,
    frame: str = 'odom',
    child_frame: str = 'base_link',
) -> OdometryArray:
    n = len(stamp_ns)
    half = 0.5 * np.broadcast_to(yaw, (n,))
    zero = np.zeros(n)
    return OdometryArray(
        stamp_ns, stamp_ns, frame, child_frame,
        position=np.zeros((n, 3)) if position is None else position,
        orientation=np.stack([zero, zero, np.sin(half), np.cos(half)], axis=1),
        linear_velocity=np.zeros((n, 3)) if velocity is None else velocity,
        angular_velocity=np.zeros((n, 3)) if rate is None else rate,
        pose_covariance=_same(variance * np.eye(6), n),
        twist_covariance=_same(variance * np.eye(6), n),
    )  # fmt: skip


def imu(
    stamp_ns: np.ndarray,
    *,
    yaw: np.ndarray | float = 0.0,
    rate: np.ndarray | None = None,
    force: np.ndarray | None = None,
    attitude: bool = True,
    frame: str = 'imu_link',
) -> ImuArray:
    n = len(stamp_ns)
    half = 0.5 * np.broadcast_to(yaw, (n,))
    zero = np.zeros(n)
    small = _same(1e-4 * np.eye(3), n)
    absent = _same(np.diag([-1.0, 0.0, 0.0]), n)
    return ImuArray(
        stamp_ns, stamp_ns, frame,
        orientation=np.stack([zero, zero, np.sin(half), np.cos(half)], axis=1),
        angular_velocity=np.zeros((n, 3)) if rate is None else rate,
        linear_acceleration=_same(np.array([0, 0, 9.80665]), n) if force is None else force,
        orientation_covariance=small if attitude else absent,
        angular_velocity_covariance=small,
        linear_acceleration_covariance=small,
    )  # fmt: skip


def fixes(
    stamp_ns: np.ndarray,
    latitude: np.ndarray | float = 43.0,
    longitude: np.ndarray | float = -89.4,
    *,
    altitude: np.ndarray | float = 260.0,
    status: int = 0,
    frame: str = 'gps_link',
) -> FixArray:
    n = len(stamp_ns)
    return FixArray(
        stamp_ns, stamp_ns, frame,
        *(np.broadcast_to(column, (n,)) for column in (latitude, longitude, altitude)),
        status=np.full(n, status),
        position_covariance=_same(np.diag([1e-4, 2e-4, 3e-4]), n),
        position_covariance_type=np.full(n, 2),
    )  # fmt: skip


def commands(stamp_ns: np.ndarray, forward: float) -> TwistArray:
    n = len(stamp_ns)
    velocity = _same(np.array([forward, 0.0, 0.0]), n)
    zeros = np.zeros((n, 3)), np.zeros((n, 6, 6))
    return TwistArray(stamp_ns, stamp_ns, 'base_link', velocity, *zeros)


def recording(
    messages: dict[str, MessageArray], transforms: tuple[StaticTransform, ...] = ()
) -> Recording:
    """Recording in memory; the roles go to the first topic of their type."""
    roles: dict[str, str] = {}
    for topic, array in messages.items():
        if isinstance(array, ImuArray):
            roles.setdefault('imu', topic)
        elif isinstance(array, FixArray):
            roles.setdefault('gps', topic)
    return Recording('run', 'test', 'memory', messages, roles, transforms)


def read_rows(path: Path) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a CSV file, plain or gzip."""
    opener = gzip.open if path.suffix == '.gz' else open
    with opener(path, 'rt', encoding='utf-8', newline='') as file:
        rows = list(csv.reader(file))
    return rows[0], rows[1:]


def simple(folder: Path, **more: object) -> FilterConfig:
    return filter_config(
        folder, frequency=50.0, imu0='imu', imu0_config=mask('yaw', 'vyaw'), **more
    )
