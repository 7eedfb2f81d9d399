# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The prediction against textbook formulas and scipy; control calculated by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from judge_examples import dynamics
from scipy.spatial.transform import Rotation
from textbook_filter import (
    ANGLES,
    filter_at,
    random_covariance,
    random_state,
    relative,
    seeds,
    textbook_predict,
    wrapped,
)

from sim2real_eval.judge.robot_localization.ekf import predict, wrap_angle
from sim2real_eval.judge.robot_localization.state import AX, CONTROL_NS, VROLL, VX, VYAW, YAW, N, X


@given(seeds, st.floats(1e-4, 0.5))
def test_the_prediction_equals_the_textbook_formulas(seed: int, dt: float) -> None:
    """x by the motion, P by its exact Jacobian, for any attitude below 80 degrees of pitch."""
    rng = np.random.default_rng(seed)
    x, P, Q = random_state(rng), random_covariance(rng, N), random_covariance(rng, N)
    expected_x, expected_P = textbook_predict(x, P, Q, dt)
    flt = filter_at(x, P)
    predict(flt, dynamics(Q).settings, 0, dt)
    error = flt.x[:N] - expected_x
    error[ANGLES] = wrapped(error[ANGLES])
    assert np.abs(error).max() < 1e-11
    assert relative(flt.P[:N, :N], expected_P) < 1e-11


def test_the_position_moves_along_the_rotated_velocity() -> None:
    """The rotation of the transfer is scipy's fixed-axis roll, pitch, yaw."""
    rng = np.random.default_rng(5)
    x = random_state(rng)
    flt = filter_at(x, np.eye(N))
    predict(flt, dynamics().settings, 0, 0.2)
    R = Rotation.from_euler('xyz', x[ANGLES])
    step = R.apply(x[6:9] * 0.2 + x[12:15] * 0.02)
    np.testing.assert_allclose(flt.x[:3], x[:3] + step, atol=1e-13)


def test_a_short_prediction_step_composes_rotations() -> None:
    """Euler rates against the rotation vector w dt: they differ by the order of dt^2 only."""
    rng = np.random.default_rng(6)
    x = random_state(rng)
    error = []
    for dt in (2e-3, 1e-3):
        flt = filter_at(x, np.eye(N))
        predict(flt, dynamics().settings, 0, dt)
        exact = Rotation.from_euler('xyz', x[ANGLES]) * Rotation.from_rotvec(x[9:12] * dt)
        attitude = Rotation.from_euler('xyz', flt.x[ANGLES])
        error.append((exact.inv() * attitude).magnitude())
    assert error[0] < 1e-3
    assert error[0] / error[1] == pytest.approx(4.0, rel=0.1)


def test_dynamic_noise_scales_the_pose_block_by_the_squared_speed() -> None:
    """|(v, w)| before and behind the 6 x 6 block: |(1, 2, 0, 0, 0, 2)|^2 = 9."""
    x = np.zeros(N)
    x[VX], x[VX + 1], x[VYAW] = 1.0, 2.0, 2.0
    Q = random_covariance(np.random.default_rng(2), N)
    flt = filter_at(x, np.zeros((N, N)))
    predict(flt, dynamics(Q, dynamic=True).settings, 0, 0.5)
    scale = np.ones((N, N))
    scale[:6, :6] = 9.0
    np.testing.assert_allclose(flt.P[:N, :N], 0.5 * Q * scale, rtol=1e-13)


@given(st.floats(-1e4, 1e4) | st.integers(-9, 9).map(lambda k: k * math.pi))
@example(-math.pi)
@example(3 * math.pi)
def test_wrapped_angles_are_above_minus_pi_and_at_most_pi(angle: float) -> None:
    wrapped = wrap_angle(angle)
    assert -math.pi < wrapped <= math.pi
    turns = (angle - wrapped) / (2 * math.pi)
    assert abs(turns - round(turns)) < 1e-12 * max(1.0, abs(turns))
    assert wrapped == angle or not -math.pi < angle <= math.pi


LIMITS = np.zeros((4, 6))
LIMITS[:, 0] = (1.3, 0.8, 1.1, 1.0)
LIMITS[:, 5] = (3.4, 0.9, 4.5, 1.0)
FORWARD, TURN = np.eye(6)[0], np.eye(6)[5]


@pytest.mark.parametrize(
    ('command', 'velocity', 'acceleration', 'why'),
    [
        (1.0, 0.0, 0.8, 'gain 0.8'),
        (3.0, 0.0, 1.3, '2.4 cut at the limit'),
        (-3.0, 0.0, -1.3, '-2.4 cut at the limit'),
        (1.0, 0.9, 0.08, 'speeding up slowly'),
        (1.0, 2.0, -1.0, 'slower but moving: deceleration gain 1.0'),
        (1.0, 3.0, -1.1, 'error above the command: set point 0, -2 cut at the deceleration limit'),
        (-1.0, 0.5, -1.1, 'reversal brakes first'),
        (0.0, 0.005, -0.005, 'inside the 0.01 band, set point 0 is below the speed'),
        (0.0, 0.5, -0.5, 'brakes'),
        (1.0, -0.005, 0.804, 'error 1.005 inside the band: accelerates'),
        (1.0, -0.02, 1.02, 'error 1.02 outside the band: set point 0, deceleration gain'),
    ],
)
def test_control_accelerations_equal_a_hand_calculation(
    command: float, velocity: float, acceleration: float, why: str
) -> None:
    """The forward axis: the acceleration replaces ax, and moves v and x in the same step."""
    dyn = dynamics(control_mask=FORWARD, control_limits=LIMITS, control_timeout_ns=200_000_000)
    x = np.zeros(N)
    x[VX], x[AX] = velocity, 55.0
    flt = filter_at(x, np.eye(N))
    flt.command[0], flt.times[CONTROL_NS] = command, 0
    predict(flt, dyn.settings, 100_000_000, 0.1)
    assert flt.x[AX] == pytest.approx(acceleration, rel=1e-12), why
    assert flt.x[VX] == pytest.approx(velocity + 0.1 * acceleration, abs=1e-15)
    assert flt.x[X] == pytest.approx(0.1 * velocity + 0.005 * acceleration, abs=1e-15)


def test_the_control_of_a_rate_is_added_to_the_rate() -> None:
    """A yaw rate of 1 without a command is braked at 1.0 rad/s^2; the angle uses the new rate."""
    dyn = dynamics(control_mask=TURN, control_limits=LIMITS, control_timeout_ns=200_000_000)
    x = np.zeros(N)
    x[VYAW] = 1.0
    flt = filter_at(x, np.eye(N))
    predict(flt, dyn.settings, 100_000_000, 0.1)
    assert flt.x[VYAW] == pytest.approx(0.9, rel=1e-12)
    assert flt.x[YAW] == pytest.approx(0.09, rel=1e-12)
    assert not flt.x[AX:N].any()
    assert not flt.x[:N][VROLL:VYAW].any()


@pytest.mark.parametrize(('age_ns', 'acceleration'), [(199_999_999, 0.4), (200_000_000, -0.5)])
def test_a_command_older_than_the_timeout_is_treated_as_zero(
    age_ns: int, acceleration: float
) -> None:
    """Command 1 at speed 0.5: gain 0.8 while it holds; then braking at gain 1.0."""
    dyn = dynamics(control_mask=FORWARD, control_limits=LIMITS, control_timeout_ns=200_000_000)
    x = np.zeros(N)
    x[VX] = 0.5
    flt = filter_at(x, np.eye(N))
    flt.command[0], flt.times[CONTROL_NS] = 1.0, 1_000_000_000
    predict(flt, dyn.settings, 1_000_000_000 + age_ns, 0.01)
    assert flt.x[AX] == pytest.approx(acceleration, rel=1e-12)


def test_control_does_not_change_the_covariance() -> None:
    """Jacobian and dynamic noise use the state before control acts."""
    rng = np.random.default_rng(8)
    x, P, Q = random_state(rng), random_covariance(rng, N), random_covariance(rng, N)
    controlled, free = filter_at(x, P), filter_at(x, P)
    predict(
        controlled,
        dynamics(Q, dynamic=True, control_mask=FORWARD + TURN, control_limits=LIMITS).settings,
        0,
        0.1,
    )
    predict(free, dynamics(Q, dynamic=True).settings, 0, 0.1)
    assert controlled.P.tobytes() == free.P.tobytes()
    assert not np.array_equal(controlled.x, free.x)
