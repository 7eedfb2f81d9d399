# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Recordings of a motion that obeys the filter's own model, with known best parameters."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import yaml

from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.reading import RecordingSource
from sim2real_eval.recording.recording import Recording
from sim_sensors.core.measurements import PoseArray
from sim_sensors.core.seeding import stream

VELOCITY = 0.25  # process noise, (m/s)^2/s
POSITION = 1e-4  # m^2/s
VARIANCE = 0.04  # of a measured position, m^2
STEP_S = 0.1
NOTHING = 1e-15


@dataclasses.dataclass(frozen=True)
class Wander(RecordingSource):
    """Positions, measured with white noise, of a velocity that is a random walk."""

    seed: int = 0
    seconds: float = 300.0
    stated: float = VARIANCE

    def expected_name(self) -> str:
        return f'wander_{self.seed}'

    def read(self) -> Recording:
        n = round(self.seconds / STEP_S)
        source = stream(self.seed, 'wander', 'tuning', '')
        steps = source.normal(0.0, np.sqrt([VELOCITY * STEP_S, POSITION * STEP_S]), (n, 2, 2))
        # From rest; the velocity before a step moves the position in it.
        velocity = np.concatenate([np.zeros((1, 2)), np.cumsum(steps[:, :, 0], axis=0)])[:-1]
        moved = velocity * STEP_S + steps[:, :, 1]
        position = np.concatenate([np.zeros((1, 2)), np.cumsum(moved, axis=0)])[:-1]
        measured = np.zeros((n, 3))
        measured[:, :2] = position + source.normal(0.0, np.sqrt(VARIANCE), (n, 2))
        stamps = (np.arange(n) * round(STEP_S * 1e9)).astype(np.int64) + 10**9
        poses = PoseArray(
            stamps, stamps, 'odom', position=measured,
            orientation=np.tile([0.0, 0.0, 0.0, 1.0], (n, 1)),
            pose_covariance=np.broadcast_to(self.stated * np.eye(6), (n, 6, 6)),
        )  # fmt: skip
        return Recording(self.expected_name(), 'wander', self.path, {'/pose': poses}, {})


def wander_setup(folder: Path, velocity: float = VELOCITY) -> JudgeSetup:
    """A filter of that model, its process noise of the velocity as given."""
    noise = [NOTHING] * 15
    noise[0] = noise[1] = POSITION
    noise[6] = noise[7] = velocity
    mask = [True, True] + [False] * 13
    parameters = {
        'frequency': 1.0, 'sensor_timeout': 1e6, 'two_d_mode': True, 'pose0': 'pose',
        'pose0_config': mask, 'process_noise_covariance': noise,
    }  # fmt: skip
    path = folder / 'ekf.yaml'
    path.write_text(yaml.safe_dump({'ekf_filter_node': {'ros__parameters': parameters}}))
    return JudgeSetup.load(path)
