# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Injected errors have their size, and the stated power is that of trials."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from sim2real_eval import Recording, simulate
from sim2real_eval.benches.sensitivity import ERRORS, SensitivityOptions, Trials, sensitivity
from sim2real_eval.judge.protocol import Estimate, JudgeRequest, as_judge, load_judge
from sim2real_eval.metrics.options import MetricError
from sim2real_eval.report.answer import undetected_text
from sim2real_eval.report.sensitivity import sensitivity_record
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.study.recordings import PathDrive, StandIn, StudyRecording
from sim2real_eval.study.search.size import Power, SizeSearch
from sim2real_eval.study.variants import StudyJudge
from sim_sensors import load_gps, load_imu, motion_of
from sim_sensors.core.errors import ParameterError
from sim_sensors.world.geodesy import LocalFrame


@pytest.fixture(scope='module')
def circle() -> Recording:
    return simulate(motion_of('circle', duration=10.0), gps='baseline', imu='ideal')


def injected(recording: Recording, name: str, size: float) -> Recording:
    assert ERRORS[name].applies(recording)
    return ERRORS[name].change(recording, size, np.random.default_rng(1))


def fix_offset(before: Recording, after: Recording) -> np.ndarray:
    """Return how far the fixes moved, m east, north and up."""
    fixes = [
        np.stack([gps.latitude, gps.longitude, gps.altitude]) for gps in (before.gps, after.gps)
    ]
    frame = LocalFrame(*fixes[0][:, 0].tolist())
    return frame.to_enu(*fixes[1]) - frame.to_enu(*fixes[0])


def test_injected_errors_have_the_requested_size(circle: Recording) -> None:
    arm = fix_offset(circle, injected(circle, 'lever_arm', 2.0))
    assert np.allclose(np.linalg.norm(arm, axis=1), 2.0, atol=1e-6)
    # On a circle the antenna ahead goes round with the heading, and stays level.
    assert np.ptp(np.unwrap(np.arctan2(arm[:, 1], arm[:, 0]))) > 1.0
    noise = fix_offset(circle, injected(circle, 'gps_noise', 0.5))
    assert np.std(noise) == pytest.approx(0.5, rel=0.15)  # 303 draws: 3.7 standard errors
    turned = injected(circle, 'gyro_bias', 0.1).imu.angular_velocity - circle.imu.angular_velocity
    assert np.allclose(turned, [0.0, 0.0, 0.1])
    scaled = injected(circle, 'gyro_scale', 0.1).imu.angular_velocity
    assert np.allclose(scaled, 1.1 * circle.imu.angular_velocity)
    force = injected(circle, 'accelerometer_bias', 0.3).imu.linear_acceleration
    assert np.allclose(force - circle.imu.linear_acceleration, [0.3, 0.0, 0.0])
    for name, role in (('gps_delay', 'gps'), ('imu_delay', 'imu')):
        late = injected(circle, name, 0.25).require(role).stamp_ns - circle.require(role).stamp_ns
        assert (late == 250_000_000).all()


def test_noise_of_another_size_is_a_scaled_copy_of_the_same_draw(circle: Recording) -> None:
    small, large = (fix_offset(circle, injected(circle, 'gps_noise', size)) for size in (0.1, 1.0))
    assert np.allclose(10.0 * small, large, atol=1e-6)


def scores(rng: np.random.Generator, draws: int, recordings: int = 6) -> np.ndarray:
    return rng.normal(size=(recordings, draws, 1)).repeat(2, axis=2)


def test_equal_runs_are_distinguished_in_at_most_5_percent() -> None:
    """12 recordings: mean over data sets, whose standard error is 1 %."""
    trials = Trials.draw_trials(6, 12, 100, 1000, 0)
    rng = np.random.default_rng(3)
    shares = [trials.power(scores(rng, 12), scores(rng, 12)).share for _ in range(12)]
    assert np.mean(shares) < 0.05


@pytest.mark.parametrize('draws', [12, 1])
def test_the_standard_error_agrees_with_the_scatter_of_new_runs(draws: int) -> None:
    """The deviation of 20 estimates is known to 16 %."""
    recordings = 6 if draws > 1 else 14
    trials = Trials.draw_trials(recordings, draws, 100, 200, 0)
    rng = np.random.default_rng(5)
    powers = []
    for _ in range(20):
        base, fresh = scores(rng, draws, recordings), scores(rng, draws, recordings)
        powers.append(trials.power(base, (base if draws == 1 else fresh) + 2.0))
    scatter = np.std([power.share for power in powers], ddof=1)
    stated = np.sqrt(np.mean([power.error**2 for power in powers]))
    assert 0.6 < stated / scatter < 1.6


def test_the_search_finds_the_error_size_with_the_required_power() -> None:
    """The power is exact: a probit of slope 2.8 in the logarithm of the size."""
    for true in (0.004, 0.3, 40.0):
        search = SizeSearch(0.3, 100.0, 0.8)
        while not search.is_done:
            share = stats.norm.cdf(2.8 * np.log(search.next / true) + stats.norm.ppf(0.8))
            search.add(Power(max(float(share), 0.05), 0.01, 100))
        estimate = search.estimate()
        assert estimate.size == pytest.approx(true, rel=0.05)
        assert estimate.low < true < estimate.high


def test_the_size_found_from_noisy_powers_has_the_required_power() -> None:
    """Each power has an error of 3 %: 60 searches; 95 % intervals miss 8 or more in 0.8 %."""
    rng, powers, held = np.random.default_rng(7), [], 0
    for true in np.geomspace(0.01, 10.0, 60):

        def power(size: float, true: float = true) -> float:
            return float(stats.norm.cdf(1.5 * np.log(size / true) + stats.norm.ppf(0.8)))

        search = SizeSearch(0.3, 100.0, 0.8)
        while not search.is_done:
            share = power(search.next)
            error = 0.03 * np.sqrt(share * (1.0 - share)) / 0.4
            search.add(Power(float(np.clip(rng.normal(share, error), 0.0, 1.0)), 0.03, 100))
        estimate = search.estimate()
        powers.append(power(estimate.size))
        held += estimate.low < true < estimate.high
    assert np.mean(powers) == pytest.approx(0.8, abs=0.01)
    assert np.std(powers) < 0.02  # a single size would be off by 0.03
    assert held >= 53


def test_for_a_power_with_a_jump_the_size_at_the_jump_is_found() -> None:
    """The delay of an IMU that exceeds a timeout of the filter has such a power."""
    search = SizeSearch(0.1, 5.0, 0.8)
    while not search.is_done:
        size = search.next
        share = 1.0 if size > 0.16 else 0.22 if size > 0.12 else min(4.75 * size, 0.475)
        search.add(Power(share, 0.01, 100))
    estimate = search.estimate()
    assert estimate.low is not None
    assert estimate.size is not None
    assert estimate.low < 0.16 < estimate.size == estimate.high < 1.1 * estimate.low
    assert estimate.jump == (0.22, 1.0)


def test_an_undetected_error_is_tried_up_to_the_largest_size() -> None:
    search = SizeSearch(0.01, 3.0, 0.8)
    while not search.is_done:
        search.add(Power(0.05, 0.01, 100))
    estimate = search.estimate()
    assert estimate.size is None
    assert estimate.points[-1].size == 3.0


def drives(count: int) -> list[StudyRecording]:
    sensors = Twin('own', load_gps('baseline'), load_imu('ideal'))
    return [
        StudyRecording(f'{k}', '', StandIn(PathDrive('line', 0, f'{k}', 2.0), sensors))
        for k in range(count)
    ]


class FixesOnly:
    """Speed from one fix to the next."""

    def judge(self, recording: Recording) -> Estimate:
        fixes = recording.gps
        place = LocalFrame(
            *(float(angle[0]) for angle in (fixes.latitude, fixes.longitude, fixes.altitude))
        )
        step = np.diff(place.to_enu(fixes.latitude, fixes.longitude, fixes.altitude), axis=0)
        time = np.diff(fixes.stamp_ns)[:, None] * 1e-9
        return Estimate(fixes.stamp_ns[1:], step / time)


def test_a_judge_without_an_imu_detects_no_errors_of_the_imu() -> None:
    judge = StudyJudge('fixes', 'fixes', as_judge(FixesOnly()))
    sensors = Twin('simulated', load_gps('ch_gauss'), load_imu('chrono'))
    options = SensitivityOptions(errors='accelerometer_bias', draws=4, trials=200)
    result = sensitivity(drives(6), [judge], sensors, options)
    (bias,) = result.detectable
    assert bias.size is None
    # False alarms of 200 trials, at most 5 % of them: three standard errors.
    assert max(point.power for point in bias.points) < 0.1
    record = sensitivity_record(result, [judge], sensors, drives(6))
    assert 'cannot detect an accelerometer bias of 10 m/s^2' in undetected_text(record, 'fixes')
    assert not undetected_text(record, 'another')


def test_too_few_recordings_are_refused() -> None:
    judge = StudyJudge('clean', 'embedded', load_judge(JudgeRequest('embedded', config='clean')))
    with pytest.raises(MetricError, match='must be 9 or more'):
        sensitivity(drives(8), [judge], None)
    with pytest.raises(ParameterError, match='gps_nois'):
        SensitivityOptions(errors='gps_nois')
    assert SensitivityOptions().names == tuple(ERRORS)
