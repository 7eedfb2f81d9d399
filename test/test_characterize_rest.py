# SPDX-License-Identifier: Apache-2.0
"""Standstill detection of a jumping receiver, and calibration from a short standstill."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from gps_standstill_examples import standing
from scipy.signal import lfilter

from sim2real_eval.characterization.calibration import calibrate
from sim2real_eval.characterization.gps_characterization import (
    autocovariance_scatter,
    expected_autocovariance,
)
from sim2real_eval.characterization.markov_fit import MarkovFit, autocovariance
from sim2real_eval.characterization.noise_terms import ParameterEstimate
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


def test_jumps_without_an_imu_cause_a_finding_and_all_fixes_can_be_kept() -> None:
    alone = jumping(300.0)
    runs, notes = standing_runs(alone)
    assert np.std(runs[0].error[:, :2]) < 1.0
    (doubt,) = (note for note in notes if note.code == 'gps.jumps')
    assert doubt.severity == Severity.DECISIVE
    kept_runs, findings = standing_runs(alone, StandingOptions(reject_motion=False))
    assert len(kept_runs) == 1
    assert findings == []
    assert np.std(kept_runs[0].error[:, :2]) == pytest.approx(5.0, rel=0.4)


def test_a_short_standstill_yields_no_terms_of_long_averaging_times() -> None:
    """10 s of rest fit a bias instability now and then; the model takes white noise and bias."""
    calibration = calibrate([standing(10.0, imu_model=load_imu('mpu6000'), seed=2)])
    model = calibration.imu.model.gyroscope
    assert min(model.noise_density) > 0.0
    for name in ('bias_instability', 'random_walk', 'rate_ramp'):
        assert not np.any(getattr(model, name))
    assert 'imu.short_standstill' in {note.code for note in calibration.imu.notes}


PERIOD, LAGS, RUNS = 0.2, 60, 400


def fit_of(white: float, wander: float, time: float) -> MarkovFit:
    total, walk = np.hypot(white, wander), np.sqrt(2.0 * wander**2 / time)
    values = (total, white, wander, time, walk)
    units = ('m', 'm', 'm', 's', 'm/sqrt(s)')
    pairs = zip(values, units, strict=True)
    return MarkovFit(
        *(ParameterEstimate(float(value), 0.0, unit) for value, unit in pairs), gain=100.0
    )


def record(rng: np.random.Generator, fit: MarkovFit, n: int) -> np.ndarray:
    """A stationary Gauss-Markov process by scipy's filter, and white noise on it."""
    keep = np.exp(-PERIOD / fit.time.value)
    drive = rng.normal(0.0, fit.wander.value * np.sqrt(1.0 - keep**2), n)
    drive[0] = rng.normal(0.0, fit.wander.value)
    return lfilter([1.0], [1.0, -keep], drive) + rng.normal(0.0, fit.white.value, n)


@pytest.mark.parametrize('lengths', [(3000,), (1200, 1800)])
@pytest.mark.parametrize('fit', [fit_of(0.01, 0.03, 3.0), fit_of(0.02, 0.01, 6.0)])
def test_mean_and_scatter_agree_with_simulated_records(
    fit: MarkovFit, lengths: tuple[int, ...]
) -> None:
    """400 sets of records of 100 time constants and more.

    Means within 4.5 standard errors (neighbouring lags are no independent looks: < 1e-3 per case);
    deviations within 4.5 of theirs, 3.5 % each, and what Bartlett's formula leaves out, 5 %.
    """
    rng = np.random.default_rng(7)
    simulated = np.array(
        [autocovariance([record(rng, fit, n) for n in lengths], LAGS) for _ in range(RUNS)]
    )
    scatter = autocovariance_scatter(fit, lengths, PERIOD, LAGS)
    error = simulated.mean(axis=0) - expected_autocovariance(fit, lengths, PERIOD, LAGS)
    assert np.abs(error / scatter).max() < 4.5 / np.sqrt(RUNS)
    limit = 4.5 * np.sqrt(0.5 / RUNS) + 0.05
    assert simulated.std(axis=0) / scatter == pytest.approx(1.0, abs=limit)


def test_autocovariance_scatter_is_constant_at_lags_beyond_the_record() -> None:
    """The sum over c_(j+k) c_(j-k) is empty for lags beyond the record."""
    fit = fit_of(0.01, 0.03, 1.0)
    scatter = autocovariance_scatter(fit, (40,), PERIOD, 60)
    assert scatter.shape == (61,)
    assert np.ptp(scatter[41:]) == 0.0
