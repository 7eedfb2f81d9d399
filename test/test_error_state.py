# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The error-state filter: consistency with its covariances, gates and gaps."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import pytest
from inertial_examples import QUIET, error_of, measured, truth_at, turned
from judge_examples import START_NS
from scipy.spatial.transform import Rotation
from scipy.stats import chi2

from sim2real_eval.judge.inertial.error_state import filter_inputs
from sim2real_eval.judge.inertial.settings import InertialSettings
from sim_sensors.core.measurements import FloatArray
from sim_sensors.motion.scenarios import Circle, FigureEight, HalfSine, Line, Standstill

Record = Callable[[str, object], None]

DRIVE = FigureEight(duration=20.0, rest_time=2.0, speed=3.0, length=30.0, width=15.0)


def test_observable_biases_are_estimated_at_rest() -> None:
    """One minute; within three deviations, which six right biases leave once in 60 seeds."""
    gyroscope, accelerometer = np.array([0.01, -0.008, 0.012]), np.array([0.05, -0.08, 0.1])
    inputs, rates, forces = measured(
        Standstill(duration=60.0), QUIET, np.random.default_rng(1), fix_rate=2.0,
        gyroscope_bias=gyroscope, accelerometer_bias=accelerometer,
    )  # fmt: skip
    estimate = filter_inputs(inputs, QUIET, start_heading=0.0)
    error = np.concatenate([rates[-1], forces[-1]]) - estimate.x[-1, 10:]
    deviation = np.sqrt(np.diagonal(estimate.P[-1])[9:])
    assert (np.abs(error) < 3.0 * deviation).all()
    assert (deviation[:2] < 5e-4).all()
    assert deviation[2] < 1.1e-3
    assert deviation[5] < 0.01
    speed = np.linalg.norm(estimate.judged.linear_velocity[-200:], axis=1)
    assert speed.max() < 0.2


def test_heading_stays_uncertain_during_a_long_standstill() -> None:
    """Two minutes: NEES of yaw and of its bias over 16 runs within 99.9 % bounds."""
    settings = InertialSettings()
    motion, squares = Standstill(duration=120.0), np.zeros(2)
    for seed in range(16):
        rng = np.random.default_rng(seed)
        heading = rng.normal(scale=settings.start.heading_deviation)
        bias = rng.normal(scale=settings.start.gyroscope_bias_deviation, size=3)
        inputs, rates, _ = measured(motion, settings, rng, fix_deviation=0.02, gyroscope_bias=bias)
        estimate = filter_inputs(inputs, settings, start_heading=heading)
        at = np.searchsorted(inputs.imu_ns, estimate.judged.stamp_ns[-1]) - 1
        truth = truth_at(motion, estimate.judged.stamp_ns[-1:])
        error = turned(truth.orientation, estimate.x[-1:, 6:10])[0, 2]
        squares += (
            error**2 / estimate.P[-1, 8, 8],
            ((rates[at, 2] - estimate.x[-1, 12]) ** 2 / estimate.P[-1, 11, 11]),
        )
    low, high = chi2.ppf([0.0005, 0.9995], 16)
    assert ((low < squares) & (squares < high)).all(), squares / 16
    lost = filter_inputs(inputs, settings)
    assert math.sqrt(lost.P[-1, 8, 8]) > 1.5


@pytest.mark.parametrize(
    'motion',
    [
        Circle(duration=25.0, radius=8.0, speed=3.0, rest_time=1.5),
        HalfSine(duration=20.0, length=30.0, amplitude=5.0, speed=3.0, rest_time=1.5),
    ],
)
def test_errors_during_a_drive_stay_within_the_stated_covariance(
    motion: Circle | HalfSine,
) -> None:
    """The second half of a drive with lever arms, biases and noise."""
    inputs, *_ = measured(
        motion, QUIET, np.random.default_rng(2), gyroscope_bias=np.array([0.005, -0.005, 0.01]),
        accelerometer_bias=np.array([0.05, 0.05, -0.05]), imu_arm=(0.3, -0.2, 0.4),
        antenna=(-0.5, 0.2, 1.5),
    )  # fmt: skip
    run = filter_inputs(inputs, QUIET).judged
    late = slice(len(run) // 2, None)
    truth = truth_at(motion, run.stamp_ns[late])
    body = Rotation.from_quat(truth.orientation)
    errors = {
        'position': run.position[late] - truth.position,
        'attitude': turned(truth.orientation, run.orientation[late]),
        'velocity': run.linear_velocity[late] - body.inv().apply(truth.velocity),
        'rate': run.angular_velocity[late] - truth.angular_velocity,
    }
    pose, twist = run.pose_covariance[late], run.twist_covariance[late]
    stated = np.sqrt(
        np.diagonal(np.concatenate([pose, twist]), axis1=1, axis2=2).reshape(2, -1, 6)
    )
    magnitudes = np.abs(np.stack([
        np.hstack([errors['position'], errors['attitude']]),
        np.hstack([errors['velocity'], errors['rate']]),
    ]))  # fmt: skip
    assert (np.mean(magnitudes < 3.0 * stated, axis=1) > 0.9).all()
    bounds = {'position': 0.06, 'attitude': 0.05, 'velocity': 0.1, 'rate': 0.012}
    for name, error in errors.items():
        rms = np.sqrt(np.mean(np.square(error), axis=0))
        assert (rms < bounds[name]).all(), (name, rms)


def test_estimate_without_noise_does_not_depend_on_the_rate() -> None:
    """The error of the integration falls by four from 50 to 100 and to 200 Hz."""
    worst = []
    for rate in (50.0, 100.0, 200.0):
        inputs, *_ = measured(
            DRIVE, QUIET, rate=rate, imu_arm=(0.3, -0.2, 0.4), antenna=(-0.5, 0.2, 1.5)
        )
        run = filter_inputs(inputs, QUIET, start_heading=_heading()).judged
        late = run.stamp_ns >= START_NS + 10_000_000_000
        truth = truth_at(DRIVE, run.stamp_ns[late])
        worst.append(np.abs(run.position[late] - truth.position).max())
    assert worst[0] < 1e-4
    assert worst[0] > 3.0 * worst[1] > 9.0 * worst[2]


def _heading() -> float:
    return float(Rotation.from_quat(DRIVE.at([0.0]).orientation[0]).as_euler('xyz')[2])


def _square(error: FloatArray, covariance: FloatArray) -> float:
    return float(error @ np.linalg.solve(covariance, error))


def _normalised(seed: int, gyroscope_bias: float = 0.0) -> tuple[float, float, float, float]:
    """Return the NEES of the 15 states, of pose and velocity at the end of a run, and its sum of
    NIS.
    """
    rng = np.random.default_rng(seed)
    start = QUIET.start
    first = rng.normal(scale=start.gyroscope_bias_deviation, size=3)
    first[2] += gyroscope_bias
    inputs, rates, forces = measured(
        DRIVE, QUIET, rng, gyroscope_bias=first,
        accelerometer_bias=rng.normal(scale=start.accelerometer_bias_deviation, size=3),
        imu_arm=(0.3, -0.2, 0.4), antenna=(0.5, 0.2, 1.5),
    )  # fmt: skip
    heading = _heading() + rng.normal(scale=start.heading_deviation)
    estimate = filter_inputs(inputs, QUIET, start_heading=heading)
    truth = truth_at(DRIVE, estimate.judged.stamp_ns[-1:])
    at = np.searchsorted(inputs.imu_ns, estimate.judged.stamp_ns[-1]) - 1
    at_imu = truth.at_lever_arm(np.array([0.3, -0.2, 0.4]))
    state = np.concatenate([
        at_imu.position[0], at_imu.velocity[0], truth.orientation[0], rates[at], forces[at]
    ])  # fmt: skip
    run = estimate.judged
    pose = np.concatenate([
        truth.position[0] - run.position[-1], turned(truth.orientation, run.orientation[-1:])[0]
    ])  # fmt: skip
    body = Rotation.from_quat(truth.orientation[0])
    velocity = body.inv().apply(truth.velocity[0]) - run.linear_velocity[-1]
    return (
        _square(error_of(state, estimate.x[-1]), estimate.P[-1]),
        _square(pose, run.pose_covariance[-1]),
        _square(velocity, run.twist_covariance[-1, :3, :3]),
        float(run.corrections.nis[5:].sum()),
    )


def test_errors_match_the_stated_covariance(record_property: Record) -> None:
    """Mean NEES and NIS of 40 runs within 99.9 % chi-square bounds, left once in 250 seeds; the
    NEES is outside for a gyroscope bias ten times as large as stated.
    """
    squares = np.sum([_normalised(seed) for seed in range(40)], axis=0)
    for name, total, freedom in zip(
        ('state', 'pose', 'velocity', 'NIS'), squares, (15, 6, 3, 3 * 94), strict=True
    ):
        low, high = chi2.ppf([0.0005, 0.9995], 40 * freedom)
        record_property(name, total / 40 / freedom)
        assert low < total < high, (name, total / 40 / freedom)
    biased = np.sum([_normalised(seed, gyroscope_bias=0.1) for seed in range(10)], axis=0)
    assert biased[0] > chi2.ppf(0.9995, 150)


def test_a_start_with_coarse_fixes_is_not_classified_as_a_standstill() -> None:
    """A start with 2.5 m/s^2 is levelled 0.25 rad off; the mean NEES of 20 runs is below 3."""
    motion = Line(duration=8.0, speed=10.0, ramp_time=4.0)
    ratios = []
    for seed in range(20):
        inputs, *_ = measured(motion, QUIET, np.random.default_rng(seed), fix_deviation=0.3)
        run = filter_inputs(inputs, QUIET, start_heading=0.0).judged
        truth = truth_at(motion, run.stamp_ns)
        error = turned(truth.orientation, run.orientation)
        squares = [
            _square(error[i], run.pose_covariance[i, 3:, 3:]) / 3.0 for i in range(0, len(run), 35)
        ]
        ratios.append(squares)
    assert np.max(np.mean(ratios, axis=0)) < 3.0


def test_the_gate_rejects_and_counts_an_outlier() -> None:
    inputs, *_ = measured(DRIVE, QUIET, np.random.default_rng(4))
    fix = inputs.fix.copy()
    fix[40] += [3.0, 0.0, 0.0]
    spoiled = dataclasses.replace(inputs, fix=fix)
    no_gate = dataclasses.replace(QUIET, gate=0.0)
    clean, gated, open_ = (
        filter_inputs(filter_input, settings, start_heading=_heading()).judged
        for filter_input, settings in ((inputs, QUIET), (spoiled, QUIET), (spoiled, no_gate))
    )
    assert (clean.parts[0].rejected, gated.parts[0].rejected, open_.parts[0].rejected) == (0, 1, 0)
    assert gated.corrections.nis[39] > 25.0
    assert gated.corrections.nis[39] == open_.corrections.nis[39]
    assert len(gated.gps_stamp_ns) == len(inputs.fix_ns) - 1
    apart = np.abs(gated.position - clean.position).max()
    assert apart < 0.05 < np.abs(open_.position - clean.position).max()


def test_a_diverged_filter_recovers_after_the_gate_timeout() -> None:
    """The fixes jump by 100 m and are refused for 5 s."""
    inputs, *_ = measured(DRIVE, QUIET, np.random.default_rng(5))
    fix = inputs.fix.copy()
    fix[50:] += [100.0, 0.0, 0.0]
    run = filter_inputs(
        dataclasses.replace(inputs, fix=fix), QUIET, start_heading=_heading()
    ).judged
    # The last accepted one is that before the jump.
    assert run.parts[0].rejected == 24
    assert any('after 5 s without an accepted fix' in str(note) for note in run.notes)
    truth = truth_at(DRIVE, run.stamp_ns[-1:])
    np.testing.assert_allclose(run.position[-1], truth.position[0] + [100.0, 0.0, 0.0], atol=0.3)


def test_the_velocity_constraint_removes_lateral_and_vertical_speed() -> None:
    """The velocity hold keeps speeds of base_link at 0 despite coarse fixes and a lever arm."""
    inputs, *_ = measured(
        DRIVE, QUIET, np.random.default_rng(6), fix_deviation=2.0, imu_arm=(1.0, 0.5, 0.3)
    )
    held = dataclasses.replace(QUIET, lateral_deviation=0.05, vertical_deviation=0.05)
    runs = [
        filter_inputs(inputs, settings, start_heading=_heading()).judged
        for settings in (QUIET, held)
    ]
    free, tight = (np.sqrt(np.mean(run.linear_velocity[:, 1:] ** 2, axis=0)) for run in runs)
    assert (tight < 0.06).all()
    assert (tight < 0.5 * free).all()
    part = runs[1].parts[1]
    assert (part.name, part.fused) == ('vehicle speed', 200)
    assert sorted(set(runs[1].corrections.states.tolist())) == [2, 3]


def test_shifted_stamps_and_repeated_runs_give_identical_estimates() -> None:
    inputs, *_ = measured(DRIVE, QUIET, np.random.default_rng(7))
    shift = 86_400_000_000_123
    later = dataclasses.replace(inputs, imu_ns=inputs.imu_ns + shift, fix_ns=inputs.fix_ns + shift)
    first, again, moved_ = (
        filter_inputs(filter_input, QUIET) for filter_input in (inputs, inputs, later)
    )
    for other in (again, moved_):
        assert first.x.tobytes() == other.x.tobytes()
        assert first.P.tobytes() == other.P.tobytes()
    assert (moved_.judged.stamp_ns - first.judged.stamp_ns == shift).all()


def test_the_output_rate_does_not_change_the_estimate() -> None:
    """Only the error of the integration differs."""
    inputs, *_ = measured(DRIVE, QUIET, np.random.default_rng(8))
    settings = [dataclasses.replace(QUIET, output_frequency=rate) for rate in (10.0, 70.0)]
    runs = [filter_inputs(inputs, setting) for setting in settings]
    stamps = [run.judged.stamp_ns for run in runs]
    shared, a, b = np.intersect1d(*stamps, return_indices=True)
    assert len(shared) > 0
    np.testing.assert_allclose(runs[0].x[a], runs[1].x[b], atol=1e-4)


def test_a_gap_in_the_imu_increases_the_covariance() -> None:
    inputs, *_ = measured(DRIVE, QUIET, np.random.default_rng(9), fix_rate=0.5)
    keep = np.abs(inputs.imu_ns - START_NS - 9_000_000_000) > 500_000_000
    cut = dataclasses.replace(
        inputs, imu_ns=inputs.imu_ns[keep], rate=inputs.rate[keep], force=inputs.force[keep],
        imu_yaw=inputs.imu_yaw[keep], imu_yaw_variance=inputs.imu_yaw_variance[keep],
    )  # fmt: skip
    whole, torn = (
        filter_inputs(filter_input, QUIET, start_heading=_heading()).judged
        for filter_input in (inputs, cut)
    )
    at = np.searchsorted(whole.stamp_ns, START_NS + 9_500_000_000)
    assert torn.pose_covariance[at, 0, 0] > 4.0 * whole.pose_covariance[at, 0, 0]
    truth = truth_at(DRIVE, torn.stamp_ns[at : at + 1])
    error = np.abs(torn.position[at] - truth.position[0])
    assert (error < 4.0 * np.sqrt(np.diagonal(torn.pose_covariance[at])[:3])).all()


def test_a_run_that_is_too_short_gives_no_estimate() -> None:
    inputs, *_ = measured(Standstill(duration=2.0), QUIET)
    run = filter_inputs(inputs, QUIET, start_ns=START_NS + 10_000_000_000).judged
    assert len(run) == 0
    assert run.pose_covariance.shape == (0, 6, 6)


def test_a_single_fix_is_sufficient_to_run() -> None:
    """The velocity is 0 and stated to be unknown."""
    inputs, *_ = measured(Standstill(duration=2.0), QUIET)
    lonely = dataclasses.replace(
        inputs, fix_ns=inputs.fix_ns[:1], fix=inputs.fix[:1],
        fix_covariance=inputs.fix_covariance[:1],
    )  # fmt: skip
    run = filter_inputs(lonely, InertialSettings(), start_heading=0.0).judged
    assert len(run) == 70
    assert math.sqrt(run.twist_covariance[-1, 0, 0]) == pytest.approx(30.0, rel=0.01)
