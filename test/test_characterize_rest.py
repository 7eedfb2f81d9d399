# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Standstill detection of a jumping receiver, and calibration from a short standstill."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from gps_standstill_examples import markov, recording_of, standing
from scipy.signal import lfilter

from sim2real_eval.characterization.calibration import calibrate
from sim2real_eval.characterization.signals import SignalFileError
from sim2real_eval.characterization.standstill_fixes import StandingOptions, standing_runs
from sim2real_eval.common.findings import Severity
from sim2real_eval.recording.recording import Recording
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu.imu import ImuModel, load_imu
from sim_sensors.motion.scenarios import Circle


def jumping(seconds: float, imu_model: ImuModel | None = None) -> Recording:
    """A receiver at rest whose error is another one every 20 s, 5 m on each axis, at 5 Hz."""
    recording = standing(seconds, gps_model=load_gps('baseline'), imu_model=imu_model)
    fixes = recording.gps
    rng = np.random.default_rng(4)
    time = (fixes.stamp_ns - fixes.stamp_ns[0]) * 1e-9
    levels = rng.normal(0.0, 5.0, (int(seconds // 20) + 2, 2))
    error = levels[(time // 20).astype(int)] + rng.normal(0.0, 0.05, (len(time), 2))
    metre = 1.0 / 111_000.0
    shifted = dataclasses.replace(
        fixes,
        latitude=fixes.latitude + error[:, 1] * metre,
        longitude=fixes.longitude + error[:, 0] * metre / np.cos(np.radians(fixes.latitude)),
    )
    return recording.with_messages('gps', shifted)


def test_jumps_of_the_fixes_are_receiver_errors_while_the_imu_is_at_rest() -> None:
    runs, notes = standing_runs(jumping(300.0, load_imu('mpu6000')))
    assert sum(run.seconds for run in runs) == pytest.approx(300.0, abs=0.5)
    assert np.std(runs[0].error[:, :2]) == pytest.approx(5.0, rel=0.4)
    assert notes == []
    # The IMU of a steady drive stands still, too; its fixes do not stay where they are.
    circle = Circle(duration=300.0, radius=500.0, speed=2.0)
    models = {'gps_model': load_gps('ch_gauss'), 'imu_model': load_imu('mpu6000')}
    drive = standing(300.0, motion=circle, **models)
    with pytest.raises(SignalFileError, match='never stands still'):
        standing_runs(drive)


def test_jumps_without_an_imu_are_receiver_errors_because_they_go_nowhere() -> None:
    alone = jumping(300.0)
    (run,), notes = standing_runs(alone)
    assert np.std(run.error[:, :2]) == pytest.approx(5.0, rel=0.4)
    assert [note.code for note in notes] == ['gps.wanders']
    kept_runs, findings = standing_runs(alone, StandingOptions(reject_motion=False))
    assert len(kept_runs) == 1
    assert findings == []


@pytest.mark.parametrize('time', [10.0, 30.0, 60.0, 200.0])
@pytest.mark.parametrize('rate', [1.0, 5.0])
def test_a_wandering_receiver_at_rest_is_kept_whole(time: float, rate: float) -> None:
    """8 m per axis in ten minutes, six seeds: all fixes are used, in one piece."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        n = int(600 * rate)
        error = np.stack([markov(rng, n, 8.0, time, 1.0 / rate) for _ in range(3)], axis=1)
        (run,), _ = standing_runs(recording_of(error, 1.0 / rate))
        assert len(run.time) >= n - 1


def test_a_wander_with_a_net_motion_is_kept_while_the_imu_is_at_rest() -> None:
    """60 s of a wander of 20 m: without the IMU it could be a drive."""
    rng = np.random.default_rng(8)
    error = np.stack([markov(rng, 300, 20.0, 60.0, 0.2) for _ in range(3)], axis=1)
    error[:, 0] += np.linspace(0.0, 20.0, 300)
    alone = recording_of(error, 0.2)
    imu = standing(60.0, imu_model=load_imu('mpu6000')).imu
    (run,), notes = standing_runs(alone.with_messages('imu', imu))
    assert run.seconds == pytest.approx(59.8, abs=0.5)
    assert notes == []


@pytest.mark.parametrize(('radius', 'speed'), [(5.0, 1.0), (10.0, 2.0), (50.0, 5.0)])
@pytest.mark.parametrize('std', [0.03, 1.0])
def test_a_drive_in_circles_is_no_standstill(radius: float, speed: float, std: float) -> None:
    """It returns, but at a steady speed, also if each fix errs by a metre."""
    time = np.arange(0.0, 300.0, 0.2)
    angle = speed / radius * time
    circle = radius * np.stack([np.cos(angle), np.sin(angle), 0.0 * angle], axis=1)
    noise = np.random.default_rng(1).normal(0.0, std, circle.shape)
    with pytest.raises(SignalFileError, match='never stands still'):
        standing_runs(recording_of(circle + noise, 0.2))


def test_a_drive_there_and_back_is_not_used() -> None:
    """Standing, 20 m away, standing, back, standing: the fixes in motion are left out."""
    time = np.arange(0.0, 300.0, 0.2)
    way = np.interp(time, [100.0, 120.0, 200.0, 220.0], [0.0, 20.0, 20.0, 0.0])
    place = np.stack([way, 0.0 * way, 0.0 * way], axis=1)
    noise = np.random.default_rng(1).normal(0.0, 0.03, place.shape)
    runs, notes = standing_runs(recording_of(place + noise, 0.2))
    assert len(runs) == 3
    assert max(np.abs(run.error).max() for run in runs) < 0.3
    (doubt,) = (note for note in notes if note.code == 'gps.jumps')
    assert doubt.severity == Severity.DECISIVE


def test_a_smooth_wander_cannot_be_told_from_a_drive_and_can_be_kept() -> None:
    rng = np.random.default_rng(3)
    smooth = np.stack([markov(rng, 3000, 1.0, 15.0, 0.2) for _ in range(3)], axis=1)
    smooth = lfilter([0.2 / 15.0], [1.0, 0.2 / 15.0 - 1.0], smooth, axis=0)
    smooth *= 8.0 / smooth.std()
    recording = recording_of(smooth, 0.2)
    with pytest.raises(SignalFileError, match='--moving keep'):
        standing_runs(recording)
    (run,), _ = standing_runs(recording, StandingOptions(reject_motion=False))
    assert len(run.time) >= 2999


def test_a_short_standstill_yields_no_terms_of_long_averaging_times() -> None:
    """10 s of rest fit a bias instability now and then; the model takes white noise and bias."""
    calibration = calibrate([standing(10.0, imu_model=load_imu('mpu6000'), seed=2)])
    model = calibration.imu.model.gyroscope
    assert min(model.noise_density) > 0.0
    for name in ('bias_instability', 'random_walk', 'rate_ramp'):
        assert not np.any(getattr(model, name))
    assert 'imu.short_standstill' in {note.code for note in calibration.imu.notes}
