# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Strapdown integration: exact intervals, Jacobians, growth of errors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from inertial_examples import error_of
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from sim2real_eval.judge.inertial.strapdown import add_error, propagate_covariance, propagate_state
from sim_sensors.core.measurements import FloatArray

G, FLAT = 9.80665, np.zeros((2, 3))


def moved(x: FloatArray, rate: FloatArray, force: FloatArray, dt: float) -> FloatArray:
    x = x.copy()
    propagate_state(x, rate, force, dt, G, FLAT, np.zeros((15, 15)), np.zeros((12, 4)))
    return x


def some_state() -> tuple[FloatArray, FloatArray, FloatArray]:
    x = np.concatenate([
        [1.0, -2.0, 3.0, 5.0, 1.0, -0.5], Rotation.from_euler('xyz', [0.3, -0.2, 2.0]).as_quat(),
        [0.01, -0.02, 0.03], [0.2, 0.1, -0.3],
    ])  # fmt: skip
    return x, np.array([0.5, -0.8, 1.1]), np.array([2.0, -1.0, 9.0])


@pytest.mark.parametrize('dt', [0.01, 0.5, 2.0])
def test_an_interval_of_constant_rate_and_force_is_integrated_exactly(
    dt: float, record_property: Callable[[str, object], None]
) -> None:
    """Against the matrix exponential of the 5 x 5 generator of R, v, p (the group SE2(3))."""
    x, rate, force = some_state()
    w, f = rate - x[10:13], force - x[13:16]
    generator = np.zeros((5, 5))
    generator[:3, :3] = [[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]]
    generator[:3, 3] = f
    generator[3, 4] = 1.0
    grown = expm(generator * dt)
    R, down = Rotation.from_quat(x[6:10]).as_matrix(), np.array([0.0, 0.0, -G])
    integrated = moved(x, rate, force, dt)
    velocity = x[3:6] + down * dt + R @ grown[:3, 3]
    position = x[:3] + x[3:6] * dt + 0.5 * down * dt**2 + R @ grown[:3, 4]
    limits = {'rtol': 1e-13, 'atol': 1e-13, 'err_msg': 'scipy expm, 1e-13'}
    np.testing.assert_allclose(integrated[3:6], velocity, **limits)
    np.testing.assert_allclose(integrated[:3], position, **limits)
    errors = np.abs(np.concatenate([integrated[3:6] - velocity, integrated[:3] - position]))
    record_property('motion', errors.max())
    attitude = Rotation.from_matrix(R @ grown[:3, :3])
    assert (attitude.inv() * Rotation.from_quat(integrated[6:10])).magnitude() < 1e-13


def test_integration_agrees_with_the_preintegration_of_gtsam(
    record_property: Callable[[str, object], None],
) -> None:
    """gtsam's steps are of first order; the limit of 1000, 2000 and 4000 of them for half a second
    by Richardson's rule is free of the errors of first and second order.
    """
    gtsam = pytest.importorskip('gtsam')
    x, rate, force = some_state()
    dt = 0.5

    def predicted(steps: int) -> FloatArray:
        parameters = gtsam.PreintegrationParams.MakeSharedU(G)
        bias = gtsam.imuBias.ConstantBias(x[13:16], x[10:13])
        integrated = gtsam.PreintegratedImuMeasurements(parameters, bias)
        for _ in range(steps):
            integrated.integrateMeasurement(force, rate, dt / steps)
        turn = gtsam.Rot3(Rotation.from_quat(x[6:10]).as_matrix())
        pose = gtsam.Pose3(turn, gtsam.Point3(x[:3]))
        state = integrated.predict(gtsam.NavState(pose, x[3:6]), bias)
        return np.concatenate([
            state.position(), state.velocity(), state.attitude().matrix().reshape(-1)
        ])  # fmt: skip

    coarse, middle, fine = (predicted(steps) for steps in (1000, 2000, 4000))
    limit = (4.0 * (2.0 * fine - middle) - (2.0 * middle - coarse)) / 3.0
    end = moved(x, rate, force, dt)
    matrix = Rotation.from_quat(end[6:10]).as_matrix().reshape(-1)
    values = np.concatenate([end[:6], matrix])
    record_property('motion', np.abs(values - limit).max())
    np.testing.assert_allclose(values, limit, rtol=0, atol=1e-9, err_msg='gtsam, 1e-9')


def test_the_error_transition_equals_the_derivative_of_the_integration() -> None:
    """Central differences over the errors as the filter defines them; what is left is the term
    phi^2 f dt^2 / 12 = 1e-8 that the effect of a gyroscope bias on the velocity lacks.
    """
    x, rate, force = some_state()
    dt, step = 0.01, 1e-5
    F = np.zeros((15, 15))
    after = x.copy()
    propagate_state(after, rate, force, dt, G, FLAT, F, np.zeros((12, 4)))
    numeric = np.zeros((15, 15))
    for j in range(15):
        e = np.zeros(15)
        e[j] = step
        sides = []
        for sign in (1.0, -1.0):
            shifted = x.copy()
            add_error(shifted, sign * e, np.zeros(4))
            sides.append(error_of(moved(shifted, rate, force, dt), after))
        numeric[:, j] = (sides[0] - sides[1]) / (2.0 * step)
    np.testing.assert_allclose(F, numeric, rtol=0, atol=1e-8)


def test_integrated_noise_has_the_variance_of_its_density() -> None:
    """White acceleration over a second: velocity d^2 t, position d^2 t^3/3; both and the walk of a
    bias, at any step.
    """
    for steps in (20, 200):
        P, half = np.zeros((15, 15)), np.zeros(15)
        x, dt = np.zeros(16), 1.0 / steps
        x[9] = 1.0
        half[3:6], half[12:15] = 0.5 * dt * 0.04, 0.5 * dt * 0.01
        F = np.zeros((15, 15))
        for _ in range(steps):
            propagate_state(
                x, np.zeros(3), np.array([0.0, 0.0, G]), dt, G, FLAT, F, np.zeros((12, 4))
            )
            propagate_covariance(P, F, half, np.zeros((15, 15)))
        expected = {(3, 3): 0.04 + 0.01 / 3, (0, 3): 0.02 + 0.01 / 8, (0, 0): 0.04 / 3 + 0.01 / 20}
        for (i, j), value in expected.items():
            assert P[i, j] == pytest.approx(value, rel=2.0 / steps**2 * 2.0)
        assert P[12, 12] == pytest.approx(0.01)
        assert P[3, 12] == pytest.approx(-0.005)
