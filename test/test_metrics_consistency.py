# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Consistency tests accept a filter that knows its noises and reject others."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from judge_examples import filter_config, mask, odometry, recording, stamps
from scipy.signal import lfilter
from scipy.spatial.transform import Rotation

from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.robot_localization.embedded import judge
from sim2real_eval.metrics.consistency import (
    Consistency,
    Squares,
    consistency,
    nees,
    nis,
    pool_runs,
)
from sim2real_eval.metrics.error_curves import correlation_time
from sim2real_eval.report.consistency import consistency_figure
from sim_sensors.core.measurements import OdometryArray

RATE = 20.0
SECONDS = 400.0
STD = 0.2
WALK = 0.1
"""Spectral density of the speed's random walk, m^2/s^3: the process noise of vx per second."""


@pytest.fixture(scope='module')
def drive() -> tuple[OdometryArray, OdometryArray]:
    """Return the true speed, a random walk as in the filter's model, and measurements of it."""
    rng = np.random.default_rng(5)
    stamp_ns = stamps(RATE, SECONDS)
    n = len(stamp_ns)
    speed = np.cumsum(rng.normal(scale=np.sqrt(WALK / RATE), size=n))
    velocity = np.zeros((n, 3))
    velocity[:, 0] = speed
    position = np.zeros((n, 3))
    position[:, 0] = np.cumsum(speed) / RATE
    truth = odometry(stamp_ns, velocity=velocity, position=position)
    measured_velocity = velocity.copy()
    measured_velocity[:, 0] += rng.normal(scale=STD, size=n)
    return truth, odometry(stamp_ns, velocity=measured_velocity, variance=STD**2)


def judged(
    folder: Path, measured: OdometryArray, walk: float, *, two_d: bool = False
) -> JudgedRun:
    noise = [1e-9] * 15
    noise[6] = walk
    first = [1e-9] * 15
    first[6] = 1.0
    config = filter_config(
        folder, frequency=RATE, two_d_mode=two_d, odom0='wheel/odom', odom0_config=mask('vx'),
        process_noise_covariance=noise, initial_estimate_covariance=first,
    )  # fmt: skip
    return judge(recording({'/wheel/odom': measured}), config)


def of_errors(
    run: JudgedRun, truth: OdometryArray, probability: float = 0.95
) -> dict[str, Consistency]:
    return {squares.name: consistency(squares, probability) for squares in nees(run, truth, (0,))}


def series(values: np.ndarray, freedom: int | np.ndarray, *, correlated: bool = False) -> Squares:
    n = len(values)
    return Squares('', np.arange(n), values, np.broadcast_to(freedom, (n,)), correlated)


def squared_walks(
    rng: np.random.Generator, runs: int, n: int, freedom: int, memory: float
) -> np.ndarray:
    """Return squares, (runs, n), of stationary errors with the correlation `memory` per sample."""
    noise = rng.normal(size=(n, runs, freedom)) * np.sqrt(1.0 - memory**2)
    noise[0] = rng.normal(size=(runs, freedom))
    errors = lfilter([1.0], [1.0, -memory], noise, axis=0)
    return np.sum(errors**2, axis=2).T


def test_a_filter_with_the_true_noise_is_consistent(
    tmp_path: Path, drive: tuple[OdometryArray, OdometryArray]
) -> None:
    """8000 independent innovations and correlated errors are within their 99.9 % bounds."""
    truth, measured = drive
    run = judged(tmp_path, measured, WALK)
    assessment = consistency(nis(run)[0], 0.999)
    assert assessment.name == 'NIS odom0 twist'
    assert assessment.samples > 7900
    assert assessment.effective == assessment.samples
    assert assessment.freedom == 1.0
    assert assessment.verdict == 'consistent'
    assert assessment.inside == pytest.approx(0.999, abs=0.001)
    assert 0.94 < assessment.lower < 1.0 < assessment.upper < 1.06
    velocity = of_errors(run, truth, 0.999)['NEES velocity']
    assert velocity.verdict == 'consistent'
    # A filter with steady gain k = 0.3 forgets its error by 1 - k from sample to sample, and its
    # square by (1 - k)^2.
    share = np.sqrt((WALK / RATE) / STD**2)
    gain = share * (np.sqrt(share**2 + 4.0) - share) / 2.0
    memory = (1.0 - gain) ** 2
    independent = velocity.samples * (1.0 - memory) / (1.0 + memory)
    assert velocity.effective == pytest.approx(independent, rel=0.2)


@pytest.mark.parametrize(
    ('walk', 'verdict'), [(WALK / 4, 'overconfident'), (4 * WALK, 'underconfident')]
)
def test_too_large_and_too_small_process_noise_violate_opposite_bounds(
    tmp_path: Path, drive: tuple[OdometryArray, OdometryArray], walk: float, verdict: str
) -> None:
    truth, measured = drive
    run = judged(tmp_path, measured, walk)
    assert consistency(nis(run)[0]).verdict.startswith(verdict)
    assert of_errors(run, truth)['NEES velocity'].verdict.startswith(verdict)


def test_two_d_mode_changes_neither_innovations_nor_degrees_of_freedom(
    tmp_path: Path, drive: tuple[OdometryArray, OdometryArray]
) -> None:
    """The seven states measured as 0 are 0 already and do not count."""
    _, measured = drive
    (free,) = nis(judged(tmp_path, measured, WALK))
    flat = judged(tmp_path, measured, WALK, two_d=True)
    assert set(flat.corrections.states) == {8}
    (held,) = nis(flat, two_d=True)
    np.testing.assert_array_equal(held.freedom, free.freedom)
    np.testing.assert_allclose(held.squares, free.squares, rtol=1e-6, atol=1e-9)


def test_orientation_errors_are_in_the_coordinates_of_their_covariance() -> None:
    """Facing north, an error in roll is one deviation if roll is stated, ten if x is stated."""
    stamp_ns = stamps(10.0, 1.0)
    truth = odometry(stamp_ns, yaw=np.full(len(stamp_ns), np.pi / 2))
    covariance = np.tile(np.diag([1.0, 1.0, 1.0, 1e-4, 1e-6, 1e-4]), (len(stamp_ns), 1, 1))
    rolled = Rotation.from_euler('xyz', [0.01, 0.0, np.pi / 2]).as_quat()
    n = len(stamp_ns)
    run = JudgedRun(
        stamp_ns, stamp_ns, truth.position, np.tile(rolled, (n, 1)), truth.linear_velocity,
        truth.angular_velocity, covariance, covariance, stamp_ns[:0], np.zeros((0, 3)),
        np.zeros((0, 6, 6)), (), (),
    )  # fmt: skip
    for about_axes, expected in ((False, 1.0), (True, 100.0)):
        squares = nees(dataclasses.replace(run, about_axes=about_axes), truth)
        np.testing.assert_allclose(squares[1].squares, expected, rtol=1e-3)


def test_90_percent_bounds_contain_90_percent_of_consistent_sets() -> None:
    """400 sets of 50 chi-square samples: within four deviations of 0.9 (false alarm 6e-5)."""
    rng = np.random.default_rng(11)
    freedom = np.tile([1, 2, 6, 3, 9], 10)
    verdicts = [
        consistency(series(rng.chisquare(freedom), freedom), 0.9).verdict for _ in range(400)
    ]
    share = verdicts.count('consistent') / 400
    assert abs(share - 0.9) < 4.0 * np.sqrt(0.09 / 400)


def test_a_series_without_samples_has_no_verdict() -> None:
    assessment = consistency(series(np.zeros(0), 1))
    assert assessment.samples == 0
    assert np.isnan(assessment.ratio)
    assert assessment.verdict == 'no samples'
    assert assessment.summary()['ratio'] is None
    (none,) = pool_runs([[series(np.zeros(0), 1, correlated=True)]] * 2)
    assert len(none) == 0


@pytest.mark.parametrize('memory', [0.0, 0.8, 0.95])
def test_the_correlation_time_equals_that_of_the_process(memory: float) -> None:
    """Errors that forget by m: (1 + m^2) / (1 - m^2) samples; mean of 20 series, 10 %."""
    rng = np.random.default_rng(3)
    times = [correlation_time(values) for values in squared_walks(rng, 20, 4000, 2, memory)]
    true = (1.0 + memory**2) / (1.0 - memory**2)
    assert np.mean(times) == pytest.approx(true, rel=0.1)


def test_a_constant_series_has_one_effective_sample() -> None:
    assert correlation_time(np.full(50, 3.0)) == 50.0
    assert correlation_time(np.zeros(1)) == 1.0


@pytest.mark.parametrize(
    ('memory', 'most', 'naive'),
    [(0.0, 0.1, 0.0), (0.95, 0.13, 0.5), (0.997, 0.1, 0.8), (1.0 - 1e-9, 0.12, 0.8)],
)
def test_correlated_errors_are_not_reported_as_inconsistent(
    memory: float, most: float, naive: float
) -> None:
    """The verdict on 200 consistent runs is wrong in 5 %, as stated (4.5 to 6.9 % over 4000 runs),
    against 66 % with independent samples at m = 0.95. Bounds are three deviations above.
    """
    runs = squared_walks(np.random.default_rng(17), 200, 1000, 3, memory)

    def wrong(*, correlated: bool) -> float:
        verdicts = [consistency(series(run, 3, correlated=correlated)).verdict for run in runs]
        return 1.0 - verdicts.count('consistent') / len(verdicts)

    assert 0.01 < wrong(correlated=True) < most
    assert wrong(correlated=False) >= naive


def test_squares_of_several_runs_are_added_at_equal_times() -> None:
    """16 runs of 50 correlated samples: bounds narrow by 4 and show an overconfidence of 1.5."""
    runs = squared_walks(np.random.default_rng(23), 16, 50, 2, 0.9)
    runs_by_index = [[series(run, 2, correlated=True)] for run in runs]
    (all_runs,) = pool_runs(runs_by_index)
    np.testing.assert_allclose(all_runs.squares, runs.sum(axis=0))
    assessment = consistency(all_runs)
    assert assessment.verdict == 'consistent'
    assert assessment.freedom == 32.0
    assert assessment.samples == 50
    widths = [row.upper - row.lower for row in map(consistency, [run[0] for run in runs_by_index])]
    assert assessment.upper - assessment.lower < np.mean(widths) / 2.5
    (sure,) = pool_runs([[series(1.5 * run, 2, correlated=True)] for run in runs])
    assert consistency(sure).verdict == 'overconfident'
    # A longer run among them is asked as long as the shortest lasts.
    longer = series(np.ones(80), 2, correlated=True)
    (cut,) = pool_runs([*runs_by_index, [longer]])
    np.testing.assert_allclose(cut.squares, runs.sum(axis=0) + 1.0)
    # Innovations have no equal times: they are put in a row.
    (row,) = pool_runs([[series(run, 2)] for run in runs])
    assert len(row) == runs.size


def test_samples_beyond_the_axis_are_arrows_and_counted_in_the_title() -> None:
    values = np.full(60, 1.0)
    values[[3, 9, 20]], values[[30, 31]] = 1e-7, 1e9
    (panel,) = consistency_figure([series(values, 1)]).axes
    drawn = {
        marker: sum(len(line.get_xdata()) for line in panel.lines if line.get_marker() == marker)
        for marker in ('v', '^', '.')
    }
    assert drawn == {'v': 3, '^': 2, '.': 55}
    assert '3 below' in panel.get_title()
    assert '2 above' in panel.get_title()
