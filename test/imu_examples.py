# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Motions and shorthands for the tests of IMU models."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
from scipy.spatial.transform import Rotation

from sim_sensors.imu.orientation import Orientation
from sim_sensors.motion.scenarios import Standstill
from sim_sensors.motion.trajectory import Trajectory

SIGMAS = 4.5
G = 9.80665
TRUTH = Orientation(mode='truth')


def still(n, rate=100.0):
    return Standstill(duration=n / rate).at(np.arange(n) / rate)


def moving(n, acceleration, *, heading=0.0, dt=0.01, position=(0.0, 0.0, 0.0)):
    """A level body with a constant acceleration in the world, (3,) m/s^2, and heading, rad."""
    t = np.arange(n) * dt
    a = np.tile(np.asarray(acceleration, dtype=float), (n, 1))
    zero = np.zeros((n, 3))
    turn = np.tile(Rotation.from_euler('z', heading).as_quat(), (n, 1))
    velocity = a * t[:, None]
    path = np.asarray(position) + 0.5 * a * (t**2)[:, None]
    return Trajectory(t, path, turn, velocity, zero, a, zero)


def upstream(model, **changes):
    return dataclasses.replace(model, variant='as_upstream', **changes)


def many(model, truth, runs):
    """Measurements of that many sensors."""
    return [model.start(1, f'{run}').measure(truth) for run in range(runs)]


def bound(n):
    """Return the relative standard error of the deviation of n independent normals."""
    return SIGMAS * math.sqrt(0.5 / n)


def cut(truth, places):
    """The pieces of a motion between these indices."""
    for first, last in itertools.pairwise([0, *places, len(truth)]):
        fields = dataclasses.fields(truth)
        yield Trajectory(**{f.name: getattr(truth, f.name)[first:last] for f in fields})
