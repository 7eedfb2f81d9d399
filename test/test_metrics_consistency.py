# SPDX-License-Identifier: Apache-2.0
"""A filter that knows its noises is consistent; one that does not is found out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from judge_examples import filter_config, mask, odometry, recording, stamps

from sim2real_eval.judge import JudgedRun, judge
from sim2real_eval.metrics.consistency import consistency, nees_consistency, nis_consistency
from sim_sensors.measurements import OdometryArray

RATE = 20.0
SECONDS = 400.0
STD = 0.2
WALK = 0.1
"""Spectral density of the speed's random walk, m^2/s^3: the process noise of vx per second."""


@pytest.fixture(scope='module')
def drive() -> tuple[OdometryArray, OdometryArray]:
    """True speed as the filter's model says, a random walk, and measurements of it; fixed seed."""
    rng = np.random.default_rng(5)
    stamp_ns = stamps(RATE, SECONDS)
    n = len(stamp_ns)
    speed = np.cumsum(rng.normal(scale=np.sqrt(WALK / RATE), size=n))
    velocity = np.zeros((n, 3))
    velocity[:, 0] = speed
    position = np.zeros((n, 3))
    position[:, 0] = np.cumsum(speed) / RATE
    truth = odometry(stamp_ns, velocity=velocity, position=position)
    seen = velocity.copy()
    seen[:, 0] += rng.normal(scale=STD, size=n)
    return truth, odometry(stamp_ns, velocity=seen, variance=STD**2)


def judged(folder: Path, measured: OdometryArray, walk: float) -> JudgedRun:
    noise = [1e-9] * 15
    noise[6] = walk
    first = [1e-9] * 15
    first[6] = 1.0
    config = filter_config(
        folder,
        frequency=RATE,
        odom0='wheel/odom',
        odom0_config=mask('vx'),
        process_noise_covariance=noise,
        initial_estimate_covariance=first,
    )
    return judge(recording({'/wheel/odom': measured}), config)


def test_a_filter_that_knows_its_noises_is_consistent(
    tmp_path: Path, drive: tuple[OdometryArray, OdometryArray]
) -> None:
    """8000 independent innovations: the ratio keeps its 99.9 % bounds; errors are correlated over
    some tenths of a second, so theirs are widened by the root of that many samples.
    """
    truth, measured = drive
    run = judged(tmp_path, measured, WALK)
    (nis,) = nis_consistency(run, 0.999)
    assert nis.name == 'NIS odom0 twist'
    assert nis.samples > 7900
    assert nis.freedom == 1.0
    assert nis.verdict == 'consistent'
    assert nis.inside == pytest.approx(0.999, abs=0.001)
    assert 0.94 < nis.lower < 1.0 < nis.upper < 1.06
    velocity = next(
        found for found in nees_consistency(run, truth, (0,)) if found.name == 'NEES velocity'
    )
    # The error of a Kalman filter with steady gain k forgets by 1 - k from sample to sample.
    assert velocity.ratio == pytest.approx(1.0, abs=0.12)


@pytest.mark.parametrize(('walk', 'verdict'), [(WALK / 4, 'too sure'), (4 * WALK, 'not sure')])
def test_wrong_process_noise_shows_on_its_side(
    tmp_path: Path, drive: tuple[OdometryArray, OdometryArray], walk: float, verdict: str
) -> None:
    truth, measured = drive
    run = judged(tmp_path, measured, walk)
    (nis,) = nis_consistency(run)
    assert nis.verdict.startswith(verdict)
    velocity = nees_consistency(run, truth, (0,))[2]
    assert velocity.verdict.startswith(verdict)


def test_bounds_hold_as_often_as_they_say() -> None:
    """400 sets of 50 chi-square samples of mixed freedom: the share inside 90 % bounds is within
    four standard deviations of 0.9 (false alarm 6e-5, fixed seed).
    """
    rng = np.random.default_rng(11)
    freedom = np.tile([1, 2, 6, 3, 9], 10)
    verdicts = [consistency('', rng.chisquare(freedom), freedom, 0.9).verdict for _ in range(400)]
    share = verdicts.count('consistent') / 400
    assert abs(share - 0.9) < 4.0 * np.sqrt(0.09 / 400)


def test_nothing_measured_is_no_verdict_on_the_filter() -> None:
    found = consistency('NIS imu0 pose', np.zeros(0), np.zeros(0, dtype=np.int64))
    assert found.samples == 0
    assert np.isnan(found.ratio)
    assert found.verdict == 'no samples'
