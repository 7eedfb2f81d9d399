# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Motions and models for the tests of wheel odometry and vision poses."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np

from sim_sensors.core import rotations
from sim_sensors.motion.trajectory import Trajectory
from sim_sensors.wheels.encoders import NoWheelNoise
from sim_sensors.wheels.wheel_odometry import WheelOdometryModel


def dance(times):
    """A body that strafes and spins at once, as only a swerve can."""
    t = np.asarray(times, dtype=float)
    zero = np.zeros_like(t)
    return Trajectory(
        t,
        np.column_stack([2.0 * np.sin(0.7 * t), 1.5 * np.sin(1.1 * t), zero]),
        rotations.from_heading(0.8 * t + 0.3 * np.sin(t)),
        np.column_stack([1.4 * np.cos(0.7 * t), 1.65 * np.cos(1.1 * t), zero]),
        np.column_stack([zero, zero, 0.8 + 0.3 * np.cos(t)]),
        np.column_stack([-0.98 * np.sin(0.7 * t), -1.815 * np.sin(1.1 * t), zero]),
        np.column_stack([zero, zero, -0.3 * np.sin(t)]),
    )


def heading_of(trajectory):
    q = trajectory.orientation
    return np.unwrap(2.0 * np.arctan2(q[:, 2], q[:, 3]))


def straight(n, rate, step):
    """A body that goes ahead by `step` m from each sample to the next."""
    t = np.arange(n) / rate
    zero = np.zeros((n, 3))
    ahead = np.outer(np.arange(n) * step, [1.0, 0.0, 0.0])
    speed = np.tile([step * rate, 0.0, 0.0], (n, 1))
    turn = np.tile([0.0, 0.0, 0.0, 1.0], (n, 1))
    return Trajectory(t, ahead, turn, speed, zero, zero, zero)


def perfect(drive, **changes):
    return WheelOdometryModel(drive=drive, noise=NoWheelNoise(), **changes)


def pieces(truth, places):
    for first, last in itertools.pairwise([0, *places, len(truth)]):
        fields = dataclasses.fields(truth)
        yield Trajectory(**{f.name: getattr(truth, f.name)[first:last] for f in fields})


def same_bits(parts, whole, names):
    for name in names:
        joined = np.concatenate([getattr(part, name) for part in parts])
        assert joined.tobytes() == getattr(whole, name).tobytes(), name
