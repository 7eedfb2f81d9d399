# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The filter over many measurements against filterpy, and its treatment of stamps."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from filterpy.kalman import ExtendedKalmanFilter
from hypothesis import given
from judge_examples import dynamics
from textbook_filter import (
    ANGLES,
    filter_at,
    jacobian,
    loosened,
    random_covariance,
    random_state,
    relative,
    seeds,
    transfer,
)

from sim2real_eval.judge.robot_localization.configuration import DEFAULT_PROCESS_NOISE
from sim2real_eval.judge.robot_localization.filter import advance, process
from sim2real_eval.judge.robot_localization.state import LAST_NS, VX, YAW, N, X, new_filter


class Oracle(ExtendedKalmanFilter):
    """filterpy's filter with our motion; everything else is filterpy's."""

    dt = 0.0

    def predict_x(self, u: int = 0) -> None:
        self.x = transfer(self.x, self.dt)


def test_a_whole_run_agrees_with_filterpy(record_property: Callable[[str, object], None]) -> None:
    """20 s of a random drive: 10 Hz position and yaw, 100 Hz rates and accelerations."""
    rng = np.random.default_rng(11)
    Q = np.diag(DEFAULT_PROCESS_NOISE)
    oracle = Oracle(dim_x=N, dim_z=4)
    oracle.x, oracle.P = np.zeros(N), 0.1 * np.eye(N)
    flt = filter_at(np.zeros(N), 0.1 * np.eye(N))
    dyn = dynamics(Q)
    pose, inertial = np.array([0, 1, 2, YAW]), np.array([9, 10, 11, 12, 13, 14])
    worst_x = worst_P = 0.0
    for step in range(1, 2001):
        time = step * 0.01
        oracle.dt = 0.01
        oracle.F, oracle.Q = jacobian(oracle.x, 0.01), 0.01 * Q
        oracle.predict()
        rate = np.array([0.0, 0.0, 0.3 * math.sin(0.5 * time)])
        force = np.array([0.5 * math.cos(0.3 * time), 0.1, 0.0])
        index, z = inertial, np.concatenate([rate, force]) + rng.normal(size=6) * 0.05
        if step % 10 == 0:
            index, z = pose, rng.normal(size=4) * 0.05 + [time, 0.1 * time, 0.0, 0.02 * time]
        m = len(index)
        H = np.eye(N)[index]
        R = 0.01 * (np.eye(m) + 0.2)
        oracle.update(z, lambda x, H=H: H, lambda x, index=index: x[index], R=R)
        assert process(flt, dyn, step * 10_000_000, index, m, z, R.copy(), math.inf)
        worst_x = max(worst_x, np.abs(flt.x[:N] - oracle.x).max())
        worst_P = max(worst_P, relative(flt.P[:N, :N], oracle.P))
    record_property('state', worst_x)
    record_property('covariance', worst_P)
    assert max(worst_x, worst_P) < 1e-10, 'filterpy, 1e-10'
    assert abs(flt.x[X] - 20.0) < 0.2


@given(seeds)
def test_covariance_stays_symmetric_and_positive(seed: int) -> None:
    """50 random predictions and corrections about a fixed motion, some with zero covariance.

    The bounds are relative to the largest deviations so far; the worst of 8000 runs was 4e-14.
    """
    rng = np.random.default_rng(seed)
    x = 0.1 * random_state(rng)
    flt = filter_at(x, loosened(random_covariance(rng, N, 1.0)))
    dyn = dynamics(np.diag(DEFAULT_PROCESS_NOISE))
    largest = np.zeros(N)
    for step in range(1, 51):
        m = int(rng.integers(1, N + 1))
        index = np.sort(rng.choice(N, m, replace=False))
        R = loosened(random_covariance(rng, m, 1.0)) if rng.random() < 0.7 else np.zeros((m, m))
        advance(flt, dyn, step * 20_000_000)
        largest = np.maximum(largest, np.sqrt(np.diag(flt.P[:N, :N])))
        z = x[index] + rng.normal(size=m) * 0.1
        process(flt, dyn, step * 20_000_000, index, m, z, R, math.inf)
        assert np.isfinite(flt.P[:N, :N]).all()
        assert (np.diag(flt.P[:N, :N]) > 0).all()
        scaled = flt.P[:N, :N] / np.outer(largest, largest)
        assert np.abs(scaled - scaled.T).max() < 1e-11
        assert np.linalg.eigvalsh(0.5 * (scaled + scaled.T)).min() > -1e-12
        assert (np.abs(flt.x[ANGLES]) <= math.pi).all()


def test_covariance_stays_positive_over_many_steps_of_extreme_measurements() -> None:
    """Variances from 1e-9 to 1e6 m^2, masks of 1 to 12 states, steps of 1 to 200 ms: every 500th
    covariance is symmetric to the bit, with positive variances and eigenvalues.
    """
    rng = np.random.default_rng(2)

    def extreme(m: int) -> np.ndarray:
        A = rng.normal(size=(m, m))
        C = A @ A.T
        deviation = 10.0 ** rng.uniform(-4.5, 3.0, size=m) / np.sqrt(np.diag(C))
        return C * np.outer(deviation, deviation)

    pool = []
    for m in rng.integers(1, 13, size=400).tolist():
        index = np.sort(rng.choice(N, m, replace=False))
        pool.append((index, m, extreme(m), 0.1 * rng.normal(size=m)))
    motion = 0.3 * rng.normal(size=N)
    flt = filter_at(motion, extreme(N))
    dyn = dynamics(np.diag(DEFAULT_PROCESS_NOISE))
    steps_ns = (10.0 ** rng.uniform(6.0, 8.3, size=100_000)).astype(np.int64)
    choices = rng.integers(0, len(pool), size=len(steps_ns)).tolist()
    for step, stamp_ns in enumerate(np.cumsum(steps_ns).tolist()):
        index, m, R, noise = pool[choices[step]]
        flt.x[:N][:] = motion
        process(flt, dyn, stamp_ns, index, m, motion[index] + noise, R.copy(), math.inf)
        if step % 500 == 0:
            P = flt.P[:N, :N]
            deviation = np.sqrt(np.diag(P))
            assert (P == P.T).all()
            assert (deviation > 0.0).all()
            assert np.linalg.eigvalsh(P / np.outer(deviation, deviation)).min() > 0.0


def test_first_measurement_is_copied_with_its_raw_covariance() -> None:
    """No floor, no gate, no correction; what it does not measure keeps the initial values."""
    initial = np.arange(N, dtype=float)
    flt = new_filter(initial, 7.0 * np.eye(N))
    index, z = np.array([0, 5]), np.array([100.0, -2.0])
    R = np.array([[0.0, 0.5], [0.25, -3.0]])
    assert process(flt, dynamics(np.eye(N)), 123, index, 2, z, R, 0.0)
    assert flt.times[:2].tolist() == [1, 123]
    expected = initial.copy()
    expected[index] = z
    assert flt.x[:N].tolist() == expected.tolist()
    P = 7.0 * np.eye(N)
    P[np.ix_(index, index)] = [[0.0, 0.5], [0.25, -3.0]]
    assert flt.P[:N, :N].tolist() == P.tolist()


def test_a_late_measurement_corrects_the_state_without_advancing_time() -> None:
    """An older stamp: no prediction, and the filter's time stays; an equal one likewise."""
    for stamp_ns in (900_000_000, 1_000_000_000):
        x = np.zeros(N)
        x[VX] = 2.0
        flt = filter_at(x, np.eye(N), 1_000_000_000)
        assert process(
            flt, dynamics(np.eye(N)), stamp_ns, np.array([VX]), 1, np.zeros(1), np.eye(1), math.inf
        )
        assert flt.times[LAST_NS] == 1_000_000_000
        assert flt.x[X] == 0.0
        assert flt.x[VX] == 1.0


def test_a_newer_measurement_is_preceded_by_a_prediction() -> None:
    x = np.zeros(N)
    x[VX] = 2.0
    flt = filter_at(x, np.eye(N), 1_000_000_000)
    process(
        flt, dynamics(), 1_500_000_000, np.array([VX + 1]), 1, np.zeros(1), np.eye(1), math.inf
    )
    assert flt.times[LAST_NS] == 1_500_000_000
    assert flt.x[X] == 1.0


def test_a_time_step_of_more_than_a_day_is_replaced_by_10_ms() -> None:
    """robot_localization's guard against stamps of another epoch: above 100000 s."""
    for seconds, moved in ((100_000, 100_000.0), (100_001, 0.01)):
        x = np.zeros(N)
        x[VX] = 1.0
        flt = filter_at(x, np.eye(N))
        advance(flt, dynamics(), seconds * 1_000_000_000)
        assert flt.x[X] == pytest.approx(moved, rel=1e-12)
        assert flt.times[LAST_NS] == seconds * 1_000_000_000
