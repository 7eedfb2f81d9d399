# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Standstills of known receivers, for tests of their characterisation."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from scipy.signal import lfilter

from sim2real_eval.characterization.standstill_fixes import StandingRun
from sim2real_eval.recording.recording import Recording, StaticTransform
from sim2real_eval.recording.truth import local_frame_at_first_fix
from sim_sensors.core.measurements import FixArray, FloatArray
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


KINDS = (
    'white', 'markov 10 s', 'markov 60 s', 'both 10 s', 'both 60 s', 'both 600 s', 'walk', 'steps',
    'rounded',
)  # fmt: skip
"""Kinds of errors whose law is known; only steps are not those of a `GnssNoise`."""


def markov(rng: np.random.Generator, n: int, std: float, time: float, dt: float) -> FloatArray:
    """A stationary Gauss-Markov process, (n,), by scipy's filter."""
    keep = math.exp(-dt / time)
    drive = rng.normal(0.0, std * math.sqrt(1.0 - keep**2), n)
    drive[0] = rng.normal(0.0, std)
    return np.asarray(lfilter([1.0], [1.0, -keep], drive))


def known_errors(
    kind: str, rng: np.random.Generator, n: int, dt: float
) -> tuple[FloatArray, dict[str, float]]:
    """Errors of one axis, (n,) m, and the parameters of their law by the names of `MarkovFit`."""
    name, _, time = kind.partition(' ')
    white = rng.normal(0.0, 0.3, n)
    if name == 'white':
        return white, {'white': 0.3}
    if name == 'walk':
        return np.cumsum(rng.normal(0.0, 0.1 * math.sqrt(dt), n)) + white, {
            'white': 0.3, 'walk': 0.1,
        }  # fmt: skip
    if name == 'steps':
        # Jumps of a Poisson process between independent levels: covariance of a Gauss-Markov one.
        number = np.cumsum(rng.random(n) < -math.expm1(-dt / 20.0))
        levels = rng.normal(0.0, 5.0, n)[number]
        truth = {'wander': 5.0, 'time': 20.0, 'walk': 5.0 * math.sqrt(2.0 / 20.0)}
        return levels + 0.1 * white, truth
    if name == 'rounded':
        step, error = 0.011, markov(rng, n, 0.05, 30.0, dt) + 0.04 * white
        truth = {'white': math.hypot(0.012, step / math.sqrt(12.0)), 'wander': 0.05, 'time': 30.0}
        return np.rint(error / step) * step, truth | {'walk': 0.05 * math.sqrt(2.0 / 30.0)}
    seconds = float(time.removesuffix(' s'))
    truth = {'wander': 1.0, 'time': seconds, 'walk': math.sqrt(2.0 / seconds)}
    wander = markov(rng, n, 1.0, seconds, dt)
    return (wander, truth) if name == 'markov' else (wander + white, truth | {'white': 0.3})


def recording_of(error: FloatArray, dt: float, stated: float = 0.0) -> Recording:
    """A recording whose fixes have these errors, (n, 3) m, every `dt` s."""
    seconds = dt * (len(error) - 1)
    model = GpsModel(rate=1.0 / dt, covariance=gps.ConstantCovariance(std=(stated,) * 3))
    recording = standing(seconds, gps_model=model)
    fixes = recording.require('gps')
    assert isinstance(fixes, FixArray)
    geodetic = local_frame_at_first_fix(fixes).to_geodetic(error[: len(fixes)])
    names = ('latitude', 'longitude', 'altitude')
    return recording.with_messages(
        'gps', dataclasses.replace(fixes, **dict(zip(names, geodetic, strict=True)))
    )
