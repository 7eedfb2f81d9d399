# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Recordings whose errors are known and are none of the package's models, and models of them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.signal import lfilter

from sim2real_eval.characterization.allan import allan_curve
from sim2real_eval.recording.recording import Recording
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.simulation.twin_maker import TwinMaker, synthetic_recording
from sim_sensors import load_gps, load_imu
from sim_sensors.core.seeding import stream
from sim_sensors.gps.gps import ConstantCovariance, GnssNoise, GpsModel
from sim_sensors.imu.chain import AccelerometerChain, GyroscopeChain, ImuChain
from sim_sensors.imu.imu import ImuModel
from sim_sensors.motion.trajectory import Trajectory
from sim_sensors.world.geodesy import DEFAULT_ORIGIN

SECONDS = 30.0
GPS_RATE, IMU_RATE = 10.0, 100.0
WHEEL_M = 0.9  # circumference
TRIADS = ('gyroscope', 'accelerometer')
EXACT = 'the exact law'


@functools.cache
def ideal() -> Twin:
    """Return sensors without errors."""
    return Twin('ideal', load_gps('baseline'), load_imu('ideal'))


class Drive:
    """Level motion that accelerates and turns all the time, as its random stream says."""

    start, end = 0.0, SECONDS

    def __init__(self, rng: np.random.Generator) -> None:
        slow = rng.uniform(0.1, 0.5, (2, 3)) * 2.0 * np.pi / 4.0
        self._slow, self._phase = slow, rng.uniform(0.0, 2.0 * np.pi, (2, 3))
        self._size = rng.uniform(0.2, 0.6, (2, 3))
        self._speed = rng.uniform(1.5, 4.0)
        fine = np.linspace(0.0, SECONDS, 30_001)
        speed, heading = self._profile(fine)[0][0], self._profile(fine)[1][0]
        track = np.stack([speed * np.cos(heading), speed * np.sin(heading)], axis=1)
        self._place = CubicSpline(fine, track).antiderivative()
        self._way = CubicSpline(fine, speed).antiderivative()

    def _profile(self, t: np.ndarray) -> list[list[np.ndarray]]:
        """Return speed and heading, each with its first two derivatives."""
        found = []
        for k, (offset, factor) in enumerate(((self._speed, 0.5 * self._speed), (0.0, 2.0))):
            wt = self._slow[k] * t[:, None] + self._phase[k]
            a, w = factor * self._size[k], self._slow[k]
            zero = np.sin(self._phase[k]) if k else 0.0
            value = offset + (a * (np.sin(wt) - zero)).sum(axis=1)
            slope, bend = (a * w * np.cos(wt)).sum(axis=1), -(a * w**2 * np.sin(wt)).sum(axis=1)
            found.append([value, slope, bend])
        return found

    def way(self, times: np.ndarray) -> np.ndarray:
        """Return the distance driven, m."""
        return np.asarray(self._way(times))

    def at(self, times: Any) -> Trajectory:
        """Return the motion at `times`, s."""
        t = np.asarray(times, dtype=np.float64)
        (speed, push, _), (heading, rate, turn) = self._profile(t)
        place = self._place(t)
        across = speed * rate
        return Trajectory.level(
            t, (place[:, 0], place[:, 1]), heading, speed, (push, across), (rate, turn)
        )


class Reality:
    """A receiver and an IMU with errors that no model has; the number draws how large each is."""

    def __init__(self, number: int) -> None:
        self.number = number
        rng = self._rng('law', '')

        def log_uniform(low: float, high: float) -> float:
            return float(np.exp(rng.uniform(np.log(low), np.log(high))))

        self.reflections = log_uniform(0.01, 1.0)  # m, all of them
        self.resonance = self.reflections * log_uniform(0.05, 0.5)  # m
        self.resonance_s = log_uniform(1.0, 8.0)
        self.white = self.reflections * log_uniform(0.02, 0.5)  # m, Laplace
        self.bursts = log_uniform(1.0 / 60.0, 1.0 / 5.0)  # 1/s
        self.burst = self.reflections * log_uniform(0.5, 4.0)  # m
        self.stated = log_uniform(0.5, 2.0)  # over the true deviation
        grade = log_uniform(0.1, 3.0)
        self.gyroscope, self.accelerometer = 0.01 * grade, 0.1 * grade  # rad/s, m/s^2: bias
        self.shaking = log_uniform(0.3, 3.0)
        self.scale = rng.normal(0.0, 0.01, 2)

    def _rng(self, run: str, source: str) -> np.random.Generator:
        return stream(self.number, run, 'reality', source)

    def recording(self, run: int, draw: int = 0) -> Recording:
        """Return a recorded drive, with errors added to sensors that have none.

        Another `draw` gives other errors of the same law on the same motion.
        """
        name = f'drive{run}'
        drive = Drive(self._rng(name, 'drive'))
        recording = synthetic_recording(
            drive, ideal(), seed=self.number, run=name, scenario='drive'
        )
        fixes, imu = (self._rng(name, f'{sensor} {draw}') for sensor in ('fixes', 'imu'))
        return self._with_imu(self._with_fixes(recording, drive, fixes), drive, imu)

    def _with_fixes(
        self, recording: Recording, drive: Drive, rng: np.random.Generator
    ) -> Recording:
        fixes = recording.gps
        t = (fixes.stamp_ns - fixes.stamp_ns[0]) * 1e-9
        place = enu(recording) + self.fix_errors(t, drive.way(t), rng)
        latitude, longitude, altitude = DEFAULT_ORIGIN.to_geodetic(place)
        std = self.stated * np.hypot(self.reflections, np.hypot(self.resonance, self.white))
        covariance = np.broadcast_to(std**2 * np.eye(3), (len(t), 3, 3))
        with_errors = dataclasses.replace(
            fixes, latitude=latitude, longitude=longitude, altitude=altitude,
            position_covariance=covariance,
            position_covariance_type=np.full_like(fixes.position_covariance_type, 2),
        )  # fmt: skip
        return recording.with_messages('gps', with_errors)

    def fix_errors(self, t: np.ndarray, way: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the errors of the fixes, `(n, 3)` m."""
        n = len(t)
        # Reflections: they change with the place, and slowly with the satellites.
        phase = way[:, None] / rng.uniform(3.0, 30.0, 5) + t[:, None] / rng.uniform(20.0, 120.0, 5)
        waves = np.sin(2.0 * np.pi * (phase[:, :, None] + rng.uniform(0.0, 1.0, (5, 3))))
        error = self.reflections * np.sqrt(2.0 / 5.0) * waves.sum(axis=1)
        # A tracking loop that rings: an autoregression of order two.
        r, turn = 0.98, 2.0 * np.pi / (self.resonance_s * GPS_RATE)
        ringing = lfilter(
            [1.0], [1.0, -2.0 * r * np.cos(turn), r * r], rng.normal(size=(n + 300, 3)), axis=0
        )[300:]
        error = error + self.resonance * ringing / ringing.std()
        error = error + rng.laplace(0.0, self.white / np.sqrt(2.0), (n, 3))
        # Bursts: a wrong path for half a second or so.
        begin = rng.random(n) < self.bursts / GPS_RATE
        for first in np.flatnonzero(begin):
            last = first + 1 + rng.geometric(0.2)
            error[first:last] += self.burst * rng.normal(size=3)
        return np.asarray(error)

    def _with_imu(self, recording: Recording, drive: Drive, rng: np.random.Generator) -> Recording:
        imu = recording.imu
        t = (imu.stamp_ns - imu.stamp_ns[0]) * 1e-9
        turns = drive.way(t) / WHEEL_M
        speed = np.gradient(drive.way(t), t)
        parts = {}
        for kind, values, bias, scale in (
            ('angular_velocity', imu.angular_velocity, self.gyroscope, self.scale[0]),
            ('linear_acceleration', imu.linear_acceleration, self.accelerometer, self.scale[1]),
        ):
            drift = np.cos(
                2.0 * np.pi * (t[:, None] / rng.uniform(40.0, 200.0, 3) + rng.random(3))
            )
            error = bias * (rng.normal(size=3) + drift)
            # Vibration with the wheels, that grows with the speed, and noise that does too.
            for harmonic in (1, 2, 3):
                wave = np.sin(2.0 * np.pi * (harmonic * turns[:, None] + rng.random(3)))
                error = error + self.shaking * bias / harmonic * speed[:, None] * wave
            size = bias * (0.5 + self.shaking * 0.5 * speed[:, None])
            error = error + size * rng.laplace(0.0, np.sqrt(0.5), (len(t), 3))
            parts[kind] = values * (1.0 + scale) + error
            variance = float(np.var(np.diff(error, axis=0)) / 2.0)
            parts[f'{kind}_covariance'] = np.broadcast_to(variance * np.eye(3), (len(t), 3, 3))
        return recording.with_messages('imu', dataclasses.replace(imu, **parts))


def enu(recording: Recording) -> np.ndarray:
    """Return the fixes of a recording, `(n, 3)` m east, north, up."""
    fixes = recording.gps
    return np.asarray(DEFAULT_ORIGIN.to_enu(fixes.latitude, fixes.longitude, fixes.altitude))


def errors(recording: Recording) -> dict[str, np.ndarray]:
    """Return what fixes, rates and forces are wrong by, `(n, 3)` each, from the truth."""
    perfect = TwinMaker(recording, seed=0).make(ideal())
    imu, true = recording.imu, perfect.imu
    return {
        'fixes': enu(recording) - enu(perfect),
        'gyroscope': imu.angular_velocity - true.angular_velocity,
        'accelerometer': imu.linear_acceleration - true.linear_acceleration,
    }


class Models:
    """Sensor models of a reality: one whose moments match, and others that are wrong somehow."""

    def __init__(self, reality: Reality, seen: Sequence[Recording]) -> None:
        self._seen, self._reality = seen, reality
        found = [errors(one) for one in seen]
        fixes = np.concatenate([one['fixes'][:, :2].T for one in found])
        stated = float(np.sqrt(seen[0].gps.position_covariance[0, 0, 0]))
        # White and Gauss-Markov part from the autocovariance of the errors at 0, 0.1 and 1 s.
        lags = [np.mean(fixes[:, lag:] * fixes[:, : fixes.shape[1] - lag]) for lag in (0, 1, 10)]
        wander = float(max(lags[1], 1e-8))
        self.white = float(np.sqrt(max(lags[0] - wander, 1e-8)))
        self.wander = float(np.sqrt(wander))
        self.wander_s = float(-0.9 / np.log(np.clip(lags[2] / lags[1], 0.05, 0.99)))
        self._covariance = ConstantCovariance(type='diagonal_known', std=(stated,) * 3)
        self.chain = {}
        for kind in TRIADS:
            wrong = np.stack([one[kind] for one in found])
            white = float(np.diff(wrong, axis=1).std() / np.sqrt(2.0))
            slow = wrong[:, : len(wrong[0]) // 100 * 100].reshape(len(wrong), -1, 100, 3)
            drift = float(slow.mean(axis=2).std())
            self.chain[kind] = {'noise_density': white / np.sqrt(IMU_RATE), 'turn_on_std': drift}

    def gps(
        self, white: float = 1.0, wander: float = 1.0, stated: float = 1.0, **more: Any
    ) -> GpsModel:
        """Return the matching receiver, with factors on its parts and on what it states."""
        std = tuple(stated * one for one in self._covariance.std)
        noise = GnssNoise(
            white_std=(white * self.white,) * 3,
            gauss_markov_std=(wander * self.wander,) * 3,
            gauss_markov_time=(self.wander_s,) * 3,
            **more,
        )
        covariance = dataclasses.replace(self._covariance, std=std)
        return GpsModel(rate=GPS_RATE, noise=noise, covariance=covariance)

    def imu(self, factor: float = 1.0) -> ImuModel:
        """Return the matching IMU, with a factor on all its errors."""
        parts = [{n: (factor * v,) * 3 for n, v in self.chain[k].items()} for k in TRIADS]
        gyroscope, accelerometer = GyroscopeChain(**parts[0]), AccelerometerChain(**parts[1])
        return ImuChain(rate=IMU_RATE, gyroscope=gyroscope, accelerometer=accelerometer)

    def twins(self, name: str, recordings: Sequence[Recording] | None = None) -> list[Recording]:
        """Return what a model measures on the motions of recordings."""
        recordings = recordings or self._seen
        if name == EXACT:
            return [self._reality.recording(int(one.name[5:]), draw=1) for one in recordings]
        twin = Twin(name, *MODELS[name](self))
        return [TwinMaker(one, seed=self._reality.number).make(twin) for one in recordings]


def _white(made: Models) -> float:
    return float(np.hypot(made.white, made.wander) / made.white)


MODELS: dict[str, Callable[[Models], tuple[GpsModel, ImuModel]]] = {
    'matched': lambda m: (m.gps(), m.imu()),
    'fixes x 0.25': lambda m: (m.gps(0.25, 0.25), m.imu()),
    'fixes x 0.5': lambda m: (m.gps(0.5, 0.5), m.imu()),
    'fixes x 2': lambda m: (m.gps(2.0, 2.0), m.imu()),
    'fixes x 4': lambda m: (m.gps(4.0, 4.0), m.imu()),
    'fixes all white': lambda m: (m.gps(_white(m), 0.0), m.imu()),
    'outliers': lambda m: (m.gps(tails='contaminated', outlier_share=0.05), m.imu()),
    'covariance / 100': lambda m: (m.gps(stated=0.1), m.imu()),
    'IMU without errors': lambda m: (m.gps(), m.imu(1e-3)),
    'IMU x 4': lambda m: (m.gps(), m.imu(4.0)),
    'ch_gauss': lambda m: (load_gps('ch_gauss'), m.imu()),
    'ch_rw': lambda m: (load_gps('ch_rw'), m.imu()),
}


def scatter_distance(real: Sequence[Recording], simulated: Sequence[Recording]) -> float:
    """Return the logarithm of the ratio of the scatters of the fixes, per run and level axis."""
    std = [
        np.sqrt(np.mean([errors(one)['fixes'][:, :2].var(axis=0) for one in side]))
        for side in (real, simulated)
    ]
    return float(abs(np.log(std[0] / std[1])))


def allan_distance(real: Sequence[Recording], simulated: Sequence[Recording]) -> float:
    """Return the mean logarithm of the ratio of Allan deviations, over sensors and times."""
    curves = []
    for side in (real, simulated):
        found = [errors(one) for one in side]
        rows = []
        for kind, rate in (('fixes', GPS_RATE), *((triad, IMU_RATE) for triad in TRIADS)):
            axes = [allan_curve(one[kind][:, a], rate).variance for one in found for a in (0, 1)]
            rows.append(0.5 * np.log(np.mean(axes, axis=0)))
        curves.append(rows)
    return float(np.mean([np.mean(np.abs(a - b)) for a, b in zip(*curves, strict=True)]))
