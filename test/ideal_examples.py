# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""A shaken motion, and recordings with noise-free streams."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike

from sim2real_eval.recording.recording import Recording
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.simulation.twin_maker import TwinMaker
from sim_sensors.core import rotations
from sim_sensors.core.measurements import ImuArray, MessageArray
from sim_sensors.imu import imu
from sim_sensors.imu.imu import load_imu
from sim_sensors.motion.motions import motion_of, truth_of
from sim_sensors.motion.trajectory import Motion, Trajectory
from sim_sensors.world.world import load_world

EXACT: dict[str, object] = {'seed': 1, 'run': '1'}
DENSITY = 0.02  # of the shaking, (m/s^2)^2/Hz, one-sided
BAND = (30.0, 60.0)  # Hz


class Shaken:
    """A motion that is shaken up and down, with a flat spectrum in a band of frequencies."""

    def __init__(self, motion: Motion, lines: int = 400) -> None:
        self._motion = motion
        self.start, self.end = motion.start, motion.end
        rng = np.random.default_rng(7)
        self._pulse = 2.0 * np.pi * np.linspace(*BAND, lines)
        self._phase = rng.uniform(0.0, 2.0 * np.pi, lines)
        # Of each line: its share of the band has its mean square.
        self._size = np.sqrt(2.0 * DENSITY * (BAND[1] - BAND[0]) / lines)

    def at(self, times: ArrayLike) -> Trajectory:
        """Return the motion with the shaking added to height, climb and upward acceleration."""
        base = self._motion.at(times)
        angle = base.time[:, None] * self._pulse + self._phase
        lifted = {
            name: getattr(base, name) + np.pad(part[:, None], ((0, 0), (2, 0)))
            for name, part in {
                'position': -self._size * (np.cos(angle) / self._pulse**2).sum(axis=1),
                'velocity': self._size * (np.sin(angle) / self._pulse).sum(axis=1),
                'acceleration': self._size * np.cos(angle).sum(axis=1),
            }.items()
        }
        return dataclasses.replace(base, **lifted)


def recorded(motion: Motion, ideal: dict[str, MessageArray], rate: float = 100.0) -> Recording:
    """Return the odometry of a motion with noise-free streams beside it."""
    start, end = round(motion.start * 1e9), round(motion.end * 1e9)
    stamps = np.arange(start, end + 1, round(1e9 / rate))
    moved = motion.at(stamps * 1e-9)
    truth = dataclasses.replace(
        truth_of(motion_of('standstill', duration=1.0)).take(np.zeros(len(stamps), dtype=int)),
        stamp_ns=stamps, arrival_ns=stamps, position=moved.position, orientation=moved.orientation,
        linear_velocity=rotations.rotate_back(moved.orientation, moved.velocity),
        angular_velocity=moved.angular_velocity,
    )  # fmt: skip
    recording = Recording.of_truth(truth, 'drive', 'drive')
    for role, array in ideal.items():
        recording = recording.with_messages(role, array)
    return recording


def noise_free_imu(motion: Motion, rate: float = 1000.0, **placed: object) -> ImuArray:
    """Return the messages of an IMU without errors."""
    model = dataclasses.replace(load_imu('ideal'), rate=rate, **placed)
    measured: ImuArray = imu.simulate(model, motion, **EXACT)
    return measured


def simulated(recording: Recording, **models: object) -> Recording:
    """Return the twin of a recording with models of sensors."""
    all_models = {'gps': None, 'imu': None, **models}
    other_models = {
        name: model for name, model in all_models.items() if name not in ('gps', 'imu')
    }
    twin = Twin('own', all_models['gps'], all_models['imu'], other_models)
    return TwinMaker(recording, seed=3, world=load_world('dipole_room')).make(twin)
