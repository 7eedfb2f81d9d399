# SPDX-License-Identifier: Apache-2.0
"""Standstill detection of a jumping receiver, and calibration from a short standstill."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from gps_standstill_examples import standing

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


def test_jumps_of_a_receiver_are_its_own_where_the_imu_stands_still() -> None:
    runs, notes = standing_runs(jumping(300.0, load_imu('mpu6000')))
    assert sum(run.seconds for run in runs) == pytest.approx(300.0, abs=0.5)
    assert np.std(runs[0].error[:, :2]) == pytest.approx(5.0, rel=0.4)
    assert notes == []
    # The IMU of a steady drive stands still, too; its fixes do not stay where they are.
    circle = Circle(duration=300.0, radius=500.0, speed=2.0)
    drive = standing(
        300.0, gps_model=load_gps('ch_gauss'), imu_model=load_imu('mpu6000'), motion=circle
    )
    with pytest.raises(SignalFileError, match='never stands still'):
        standing_runs(drive)


def test_without_an_imu_the_doubt_is_told_and_all_fixes_can_be_kept() -> None:
    alone = jumping(300.0)
    runs, notes = standing_runs(alone)
    assert np.std(runs[0].error[:, :2]) < 1.0
    (doubt,) = (note for note in notes if note.code == 'gps.jumps')
    assert doubt.severity == Severity.DECISIVE
    kept_runs, findings = standing_runs(alone, StandingOptions(reject_motion=False))
    assert len(kept_runs) == 1
    assert findings == []
    assert np.std(kept_runs[0].error[:, :2]) == pytest.approx(5.0, rel=0.4)


def test_a_short_standstill_gives_no_term_of_long_averaging_times() -> None:
    """10 s of rest fit a bias instability now and then; the model takes white noise and bias."""
    calibration = calibrate([standing(10.0, imu_model=load_imu('mpu6000'), seed=2)])
    model = calibration.imu.model.gyroscope
    assert min(model.noise_density) > 0.0
    for name in ('bias_instability', 'random_walk', 'rate_ramp'):
        assert not np.any(getattr(model, name))
    assert 'imu.short_standstill' in {note.code for note in calibration.imu.notes}
