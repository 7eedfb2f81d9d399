# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The corrected unscented filter against filterpy and the extended filter."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from filterpy.kalman import MerweScaledSigmaPoints, UnscentedKalmanFilter
from judge_examples import dynamics
from textbook_filter import ANGLES, filter_at, loosened, random_covariance, relative, transfer

from sim2real_eval.judge.robot_localization.configuration import DEFAULT_PROCESS_NOISE
from sim2real_eval.judge.robot_localization.filter import advance, process, sigma_weights
from sim2real_eval.judge.robot_localization.state import (
    AX,
    CONTROL_NS,
    VX,
    YAW,
    Dynamics,
    N,
    X,
    new_filter,
)

Record = Callable[[str, object], None]

ALPHA, KAPPA, BETA = 0.5, 0.0, 2.0
MS = 1_000_000


def textbook(dyn: Dynamics, alpha: float = ALPHA, beta: float = BETA) -> Dynamics:
    settings = dyn.settings.copy()
    settings.textbook = True
    return Dynamics(settings, sigma_weights(alpha, KAPPA, beta))


def test_a_whole_run_agrees_with_filterpy(record_property: Record) -> None:
    """10 s of a random drive; the points of filterpy are drawn again before each correction."""
    rng = np.random.default_rng(3)
    Q = np.diag(DEFAULT_PROCESS_NOISE)
    points = MerweScaledSigmaPoints(N, ALPHA, BETA, KAPPA)
    pose, inertial = np.array([0, 1, 2, YAW]), np.array([9, 10, 11, 12, 13, 14])
    oracle = UnscentedKalmanFilter(N, 6, 0.02, lambda x: x, lambda x, dt: transfer(x, dt), points)
    oracle.P, oracle.Q = loosened(random_covariance(rng, N, 1.0)) / 20.0, 0.02 * Q
    flt = filter_at(np.zeros(N), oracle.P)
    dyn = textbook(dynamics(Q))
    worst_x = worst_P = 0.0
    for step in range(1, 501):
        time = step * 0.02
        index = pose if step % 5 == 0 else inertial
        z = 0.1 * rng.normal(size=len(index))
        z += [time, 0.1 * time, 0.0, 0.02 * time] if step % 5 == 0 else [0, 0, 0.02, 0.1, 0, 0]
        R = 0.01 * (np.eye(len(index)) + 0.2)
        oracle.predict()
        oracle.sigmas_f = points.sigma_points(oracle.x, oracle.P)
        oracle.update(z, R=R, hx=lambda x, index=index: x[index])
        assert process(flt, dyn, step * 20 * MS, index, len(index), z, R.copy(), math.inf)
        worst_x = max(worst_x, np.abs(flt.x[:N] - oracle.x).max())
        worst_P = max(worst_P, relative(flt.P[:N, :N], oracle.P))
    record_property('state', worst_x)
    record_property('covariance', worst_P)
    assert worst_x < 1e-9, 'filterpy, tolerance 1e-9'
    assert worst_P < 1e-9, 'filterpy, tolerance 1e-9'
    assert abs(flt.x[X] - 10.0) < 0.3


def test_linear_motion_is_predicted_like_in_the_extended_filter() -> None:
    """Attitude and rates are known; at alpha = 0.001 the usual sums lose six more digits."""
    rng = np.random.default_rng(4)
    P, x = random_covariance(rng, N, 2.0), rng.normal(size=N)
    exact_states = np.r_[3:6, 9:12]
    P[exact_states], P[:, exact_states], x[9:12] = 0.0, 0.0, 0.0
    extended, unscented = filter_at(x, P), filter_at(x, P)
    advance(extended, dynamics(), 100 * MS)
    advance(unscented, textbook(dynamics(), 0.001), 100 * MS)
    assert np.abs(unscented.x[:N] - extended.x[:N]).max() < 1e-9
    loose = np.ix_(*2 * (np.setdiff1d(np.arange(N), exact_states),))
    assert relative(unscented.P[:N, :N][loose], extended.P[:N, :N][loose]) < 1e-9
    assert not unscented.P[:N, :N][exact_states].any()


def test_small_deviations_propagate_like_in_the_extended_filter() -> None:
    """The filters differ in second order: a hundredth of P gives a hundredth of the difference."""
    rng = np.random.default_rng(5)
    x, P = 0.5 * rng.normal(size=N), loosened(random_covariance(rng, N, 1.0))
    differences = []
    for size in (1e-4, 1e-6):
        extended, unscented = filter_at(x, size * P), filter_at(x, size * P)
        advance(extended, dynamics(), 100 * MS)
        advance(unscented, textbook(dynamics()), 100 * MS)
        off_x = np.abs(unscented.x[:N] - extended.x[:N]).max()
        differences.append((off_x, relative(unscented.P[:N, :N], extended.P[:N, :N])))
    (large_x, large_P), (small_x, small_P) = differences
    assert 50.0 < large_x / small_x < 200.0
    assert 50.0 < large_P / small_P < 200.0
    assert small_P < 1e-5


def test_process_and_measurement_noise_are_added_once() -> None:
    """P = 0 and Q dt = 1, R = 1: half the way and half the variance, as for P = 1 at once."""
    for before, rate in ((0.0, 1.0), (1.0, 0.0)):
        yaw = np.diag((np.arange(N) == YAW).astype(float))
        flt, dyn = filter_at(np.zeros(N), before * yaw), textbook(dynamics(rate * yaw))
        index = np.array([YAW])
        process(flt, dyn, 1000 * MS, index, 1, np.ones(1), np.eye(1), math.inf)
        assert flt.x[YAW] == pytest.approx(0.5, abs=1e-12)
        assert flt.P[YAW, YAW] == pytest.approx(0.5, abs=1e-12)


def test_a_second_measurement_at_the_first_stamp_is_fused() -> None:
    flt, dyn = new_filter(np.zeros(N), np.eye(N)), textbook(dynamics())
    for state in (X, VX):
        process(flt, dyn, 5, np.array([state]), 1, np.array([2.0]), np.eye(1), math.inf)
    assert flt.x[X] == 2.0
    assert flt.x[VX] == pytest.approx(1.0, rel=1e-15)


def test_headings_are_averaged_correctly_across_pi() -> None:
    """Turning through pi, with points on both sides of it."""
    x = np.zeros(N)
    x[YAW], x[11] = math.pi - 0.01, 0.2
    P = np.diag(np.where(np.arange(N) == YAW, 0.04, 1e-6))
    flt = filter_at(x, P)
    advance(flt, textbook(dynamics()), 100 * MS)
    assert flt.x[YAW] == pytest.approx(-math.pi + 0.01, abs=1e-6)
    assert flt.P[YAW, YAW] == pytest.approx(0.04, rel=1e-5)


def test_a_command_moves_the_mean_like_in_the_extended_filter() -> None:
    control = np.zeros(6)
    control[[0, 5]] = 1.0
    dyn = dynamics(
        control_mask=control, control_limits=np.full((4, 6), 0.8), control_timeout_ns=10**12
    )
    states = []
    for kind in (dyn, textbook(dyn)):
        flt = filter_at(np.zeros(N), 1e-12 * np.eye(N))
        flt.command[:], flt.times[CONTROL_NS] = [5.0, 0.0, 0.0, 0.0, 0.0, 4.0], 0
        advance(flt, kind, 500 * MS)
        states.append(flt.x[:N].copy())
    assert states[0][AX] == 0.8
    assert np.abs(states[1] - states[0]).max() < 1e-9


def test_the_covariance_stays_positive_under_extreme_measurements() -> None:
    """8000 steps as those of the extended filter: variances from 1e-9 to 1e6."""
    rng = np.random.default_rng(2)

    def extreme(m: int) -> np.ndarray:
        A = rng.normal(size=(m, m))
        C = A @ A.T
        deviation = 10.0 ** rng.uniform(-4.5, 3.0, size=m) / np.sqrt(np.diag(C))
        return C * np.outer(deviation, deviation)

    motion = 0.3 * rng.normal(size=N)
    flt = filter_at(motion, extreme(N))
    dyn = textbook(dynamics(np.diag(DEFAULT_PROCESS_NOISE)), 1e-3)
    stamp_ns = 0
    for step in range(8_000):
        m = int(rng.integers(1, 13))
        index = np.sort(rng.choice(N, m, replace=False))
        stamp_ns += int(10.0 ** rng.uniform(6.0, 8.3))
        flt.x[:N][:] = motion
        z = motion[index] + 0.1 * rng.normal(size=m)
        process(flt, dyn, stamp_ns, index, m, z, extreme(m), math.inf)
        if step % 100 == 0:
            P = flt.P[:N, :N]
            deviation = np.sqrt(np.diag(P))
            assert (P == P.T).all()
            assert (deviation > 0.0).all()
            assert np.linalg.eigvalsh(P / np.outer(deviation, deviation)).min() > 0.0
            assert (np.abs(flt.x[ANGLES]) <= math.pi).all()


def test_the_order_of_equal_stamps_does_not_matter() -> None:
    """Three measurements of one stamp in all orders; in the original they differ by 4e-2."""
    rng = np.random.default_rng(6)
    P = loosened(random_covariance(rng, N, 1.0)) / 20.0
    dyn = textbook(dynamics(np.diag(DEFAULT_PROCESS_NOISE)))
    results = []
    for order in itertools.permutations(((0, 1), (YAW, 9), (AX, 13))):
        flt = filter_at(np.zeros(N), P)
        for states in order:
            z, R = np.full(2, 0.1), 0.01 * np.eye(2)
            process(flt, dyn, 50 * MS, np.array(states), 2, z, R, math.inf)
        results.append((flt.x[:N].copy(), flt.P[:N, :N].copy()))
    for x, covariance in results[1:]:
        assert np.abs(x - results[0][0]).max() < 1e-12
        assert relative(covariance, results[0][1]) < 1e-11
