# SPDX-License-Identifier: Apache-2.0
"""Standstills of known receivers, for tests of their characterisation."""

from __future__ import annotations

import numpy as np

from sim2real_eval.characterization.standstill_fixes import StandingRun
from sim2real_eval.recording.recording import Recording, StaticTransform
from sim_sensors.core.measurements import FloatArray
from sim_sensors.gps import gps
from sim_sensors.gps.gps import GpsModel, PositionNoise
from sim_sensors.imu import imu
from sim_sensors.imu.imu import ImuModel
from sim_sensors.motion.scenarios import Standstill
from sim_sensors.motion.trajectory import Motion

START_NS = 1_700_000_000_000_000_000


def errors(noise: PositionNoise, n: int, rate: float, seed: int) -> FloatArray:
    """Errors at n fixes, (n, 3) m."""
    return noise.start(seed, 'standstill', 'gps').advance(np.r_[0.0, np.full(n - 1, 1.0 / rate)])


def run_of_errors(error: FloatArray, rate: float, stated: float = 0.0) -> StandingRun:
    """A standstill with these errors and a stated deviation, m."""
    n = len(error)
    covariance = np.broadcast_to(np.eye(3) * stated**2, (n, 3, 3))
    return StandingRun('standstill', 0.0, np.arange(n) / rate, error - error.mean(0), covariance)


def standing(
    seconds: float, *, gps_model: GpsModel | None = None, imu_model: ImuModel | None = None,
    seed: int = 0, transforms: tuple[StaticTransform, ...] = (), motion: Motion | None = None,
) -> Recording:  # fmt: skip
    """A recording at rest, or of a motion, without truth."""
    recording = Recording('calibration', 'standstill', '', {}, {}, transforms)
    motion = motion or Standstill(duration=seconds)
    options = {'seed': seed, 'run': 'calibration', 'origin_ns': START_NS, 'start_ns': START_NS}
    if gps_model is not None:
        fixes = gps.simulate(gps_model, motion, **options)  # type: ignore[arg-type]
        recording = recording.with_messages('gps', fixes)
    if imu_model is not None:
        measured = imu.simulate(imu_model, motion, **options)  # type: ignore[arg-type]
        recording = recording.with_messages('imu', measured)
    return recording
