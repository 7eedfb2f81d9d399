# SPDX-License-Identifier: Apache-2.0
"""The filter against textbook formulas on dense matrices, filterpy and numbers worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from filterpy.kalman import ExtendedKalmanFilter
from hypothesis import given, settings
from hypothesis import strategies as st
from judge_examples import dynamics
from scipy.spatial.transform import Rotation

from sim2real_eval.judge.configuration import DEFAULT_PROCESS_NOISE
from sim2real_eval.judge.correction import advance, correct, process
from sim2real_eval.judge.filter import CONTROL_NS, INITIALISED, LAST_NS, Filter, new_filter
from sim2real_eval.judge.prediction import predict, wrap_angle
from sim2real_eval.judge.state import AX, PITCH, ROLL, STATE_NAMES, VROLL, VX, VYAW, YAW, N, X

ANGLES = slice(ROLL, VX)


# A textbook filter on dense matrices: what the compiled loops are held to.


def transfer(x: np.ndarray, dt: float) -> np.ndarray:
    """Motion over dt with constant rates and accelerations; complex x gives derivatives."""
    roll, pitch, yaw = x[ANGLES]
    one, zero = np.ones_like(roll), np.zeros_like(roll)
    sr, cr, sp, cp = np.sin(roll), np.cos(roll), np.sin(pitch), np.cos(pitch)
    Rz = np.array([[np.cos(yaw), -np.sin(yaw), 0], [np.sin(yaw), np.cos(yaw), 0], [0, 0, 1]])
    Ry = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
    Rx = np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
    E = np.array([[one, sr * sp / cp, cr * sp / cp], [zero, cr, -sr], [zero, sr / cp, cr / cp]])
    v, w, a = x[6:9], x[9:12], x[12:15]
    moved = x.copy()
    moved[:3] += Rz @ Ry @ Rx @ (v * dt + 0.5 * a * dt * dt)
    moved[ANGLES] += E @ w * dt
    moved[6:9] += a * dt
    return moved


def jacobian(x: np.ndarray, dt: float) -> np.ndarray:
    """Complex-step derivative of the motion, exact to rounding."""
    F = np.empty((N, N))
    for column in range(N):
        step = x.astype(complex)
        step[column] += 1e-30j
        F[:, column] = transfer(step, dt).imag / 1e-30
    return F


def wrapped(angle: np.ndarray) -> np.ndarray:
    return np.arctan2(np.sin(angle), np.cos(angle))


def textbook_predict(
    x: np.ndarray, P: np.ndarray, Q: np.ndarray, dt: float
) -> tuple[np.ndarray, np.ndarray]:
    F = jacobian(x, dt)
    moved = transfer(x, dt)
    moved[ANGLES] = wrapped(moved[ANGLES])
    return moved, F @ P @ F.T + dt * Q


def textbook_correct(
    x: np.ndarray, P: np.ndarray, index: np.ndarray, z: np.ndarray, R: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    H = np.eye(N)[index]
    R = R.copy()
    np.fill_diagonal(R, np.maximum(np.abs(np.diag(R)), 1e-9))
    nu = z - x[index]
    angle = (index >= ROLL) & (index <= YAW)
    nu[angle] = wrapped(nu[angle])
    K = np.linalg.solve(H @ P @ H.T + R, H @ P).T
    corrected = x + K @ nu
    corrected[ANGLES] = wrapped(corrected[ANGLES])
    I_KH = np.eye(N) - K @ H
    return corrected, I_KH @ P @ I_KH.T + K @ R @ K.T


def filter_at(x: np.ndarray, P: np.ndarray, last_ns: int = 0) -> Filter:
    flt = new_filter(np.array(x, dtype=float), np.array(P, dtype=float))
    flt.times[INITIALISED], flt.times[LAST_NS] = 1, last_ns
    return flt


def random_state(rng: np.random.Generator) -> np.ndarray:
    x = rng.normal(size=N) * 3.0
    x[ROLL], x[YAW] = rng.uniform(-math.pi, math.pi, 2)
    x[PITCH] = rng.uniform(-1.4, 1.4)
    return x


def random_covariance(rng: np.random.Generator, size: int, decades: float = 4.0) -> np.ndarray:
    """Positive definite, with deviations over so many decades and any correlation."""
    exponent = rng.uniform(-0.5 * decades, 0.5 * decades, size)
    factor = rng.normal(size=(size, size)) * 10.0 ** exponent[:, None]
    return factor @ factor.T + 1e-9 * np.eye(size)


def loosened(covariance: np.ndarray) -> np.ndarray:
    """Halve all correlations."""
    return 0.5 * (covariance + np.diag(np.diag(covariance)))


def relative(found: np.ndarray, expected: np.ndarray) -> float:
    """Largest error of a covariance entry relative to the deviations of its row and column."""
    deviation = np.sqrt(np.diag(expected))
    return float((np.abs(found - expected) / np.outer(deviation, deviation)).max())


seeds = st.integers(0, 2**32 - 1)


@settings(deadline=None, max_examples=60)
@given(seeds, st.floats(1e-4, 0.5))
def test_prediction_is_the_textbook_one(seed: int, dt: float) -> None:
    """x by the motion, P by its exact Jacobian, for any attitude below 80 degrees of pitch."""
    rng = np.random.default_rng(seed)
    x, P, Q = random_state(rng), random_covariance(rng, N), random_covariance(rng, N)
    expected_x, expected_P = textbook_predict(x, P, Q, dt)
    flt = filter_at(x, P)
    predict(flt, dynamics(Q), 0, dt)
    error = flt.x - expected_x
    error[ANGLES] = wrapped(error[ANGLES])
    assert np.abs(error).max() < 1e-11
    assert relative(flt.P, expected_P) < 1e-11


def test_position_moves_along_the_rotated_velocity() -> None:
    """The rotation of the transfer is scipy's fixed-axis roll, pitch, yaw."""
    rng = np.random.default_rng(5)
    x = random_state(rng)
    flt = filter_at(x, np.eye(N))
    predict(flt, dynamics(), 0, 0.2)
    R = Rotation.from_euler('xyz', x[ANGLES])
    step = R.apply(x[6:9] * 0.2 + x[12:15] * 0.02)
    np.testing.assert_allclose(flt.x[:3], x[:3] + step, atol=1e-13)


def test_turning_over_a_short_step_composes_rotations() -> None:
    """Euler rates against the rotation vector w dt: they differ by the order of dt^2 only."""
    rng = np.random.default_rng(6)
    x = random_state(rng)
    error = []
    for dt in (2e-3, 1e-3):
        flt = filter_at(x, np.eye(N))
        predict(flt, dynamics(), 0, dt)
        exact = Rotation.from_euler('xyz', x[ANGLES]) * Rotation.from_rotvec(x[9:12] * dt)
        found = Rotation.from_euler('xyz', flt.x[ANGLES])
        error.append((exact.inv() * found).magnitude())
    assert error[0] < 1e-3
    assert error[0] / error[1] == pytest.approx(4.0, rel=0.1)


def test_dynamic_noise_scales_the_pose_block_by_the_squared_speed() -> None:
    """|(v, w)| before and behind the 6 x 6 block: |(1, 2, 0, 0, 0, 2)|^2 = 9."""
    x = np.zeros(N)
    x[VX], x[VX + 1], x[VYAW] = 1.0, 2.0, 2.0
    Q = random_covariance(np.random.default_rng(2), N)
    flt = filter_at(x, np.zeros((N, N)))
    predict(flt, dynamics(Q, dynamic=True), 0, 0.5)
    scale = np.ones((N, N))
    scale[:6, :6] = 9.0
    np.testing.assert_allclose(flt.P, 0.5 * Q * scale, rtol=1e-13)


@settings(deadline=None, max_examples=60)
@given(seeds, st.lists(st.integers(0, N - 1), min_size=1, max_size=N, unique=True))
def test_correction_is_the_textbook_one(seed: int, states: list[int]) -> None:
    """Joseph form with a dense H, any mask and full measurement covariance."""
    rng = np.random.default_rng(seed)
    x, P = random_state(rng), loosened(random_covariance(rng, N, 2.0))
    index = np.array(sorted(states))
    z, R = random_state(rng)[index], loosened(random_covariance(rng, len(index), 2.0))
    expected_x, expected_P = textbook_correct(x, P, index, z, R)
    flt = filter_at(x, P)
    assert correct(flt, index, len(index), z, R.copy(), math.inf)
    error = flt.x - expected_x
    error[ANGLES] = wrapped(error[ANGLES])
    assert np.abs(error).max() < 1e-10
    assert relative(flt.P, expected_P) < 1e-10


class Oracle(ExtendedKalmanFilter):
    """filterpy's filter with our motion; everything else is filterpy's."""

    dt = 0.0

    def predict_x(self, u: int = 0) -> None:
        self.x = transfer(self.x, self.dt)


def test_a_run_agrees_with_filterpy() -> None:
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
        worst_x = max(worst_x, np.abs(flt.x - oracle.x).max())
        worst_P = max(worst_P, relative(flt.P, oracle.P))
    assert worst_x < 1e-10
    assert worst_P < 1e-10
    assert abs(flt.x[X] - 20.0) < 0.2


@settings(deadline=None, max_examples=40)
@given(seeds)
def test_covariance_stays_symmetric_and_positive(seed: int) -> None:
    """50 random predictions and corrections, exact sensors (zero covariance) among them.

    Measured about a fixed motion, for the Jacobian is singular at 90 degrees of pitch. The bounds
    are relative to the largest deviations so far: correcting with variance 1e-9 leaves the
    rounding of what it started from. Worst of 8000 runs: 4e-14.
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
        largest = np.maximum(largest, np.sqrt(np.diag(flt.P)))
        z = x[index] + rng.normal(size=m) * 0.1
        process(flt, dyn, step * 20_000_000, index, m, z, R, math.inf)
        assert np.isfinite(flt.P).all()
        assert (np.diag(flt.P) > 0).all()
        scaled = flt.P / np.outer(largest, largest)
        assert np.abs(scaled - scaled.T).max() < 1e-11
        assert np.linalg.eigvalsh(0.5 * (scaled + scaled.T)).min() > -1e-12
        assert (np.abs(flt.x[ANGLES]) <= math.pi).all()


@settings(deadline=None, max_examples=300)
@given(st.floats(-1e4, 1e4) | st.integers(-9, 9).map(lambda k: k * math.pi))
def test_wrapped_angles_are_in_the_half_open_circle(angle: float) -> None:
    found = wrap_angle(angle)
    assert -math.pi < found <= math.pi
    turns = (angle - found) / (2 * math.pi)
    assert abs(turns - round(turns)) < 1e-12 * max(1.0, abs(turns))
    assert found == angle or not -math.pi < angle <= math.pi


def test_half_a_turn_wraps_to_plus_pi() -> None:
    assert wrap_angle(-math.pi) == math.pi
    assert wrap_angle(3 * math.pi) == math.pi
    assert wrap_angle(math.pi) == math.pi


def test_yaw_takes_the_short_way_round() -> None:
    """From 179 to -179 degrees is 2 degrees, and half of them with equal trust."""
    x = np.zeros(N)
    x[YAW] = math.radians(179.0)
    flt = filter_at(x, np.eye(N))
    correct(flt, np.array([YAW]), 1, np.array([math.radians(-179.0)]), np.eye(1), math.inf)
    assert abs(flt.x[YAW]) == pytest.approx(math.pi, abs=1e-12)


@pytest.mark.parametrize(
    ('threshold', 'accepted'), [(1.0, False), (math.nextafter(1.0, 2.0), True), (math.inf, True)]
)
def test_gate_refuses_from_the_threshold_on(threshold: float, accepted: bool) -> None:
    """P = 3, R = 1, innovation 2: Mahalanobis distance exactly 1; refused means unchanged."""
    flt = filter_at(np.zeros(N), 3.0 * np.eye(N))
    index = np.array([VX])
    assert correct(flt, index, 1, np.array([2.0]), np.eye(1), threshold) is accepted
    assert flt.x[VX] == (1.5 if accepted else 0.0)
    assert flt.P[VX, VX] == (0.75 if accepted else 3.0)


def test_gate_counts_the_measurement_as_a_whole() -> None:
    """One bad component of two takes the good one with it."""
    flt = filter_at(np.zeros(N), np.eye(N))
    index = np.array([0, 1])
    assert not correct(flt, index, 2, np.array([0.1, 9.0]), np.eye(2), 3.0)
    assert not flt.x.any()


@pytest.mark.parametrize(
    ('given_variance', 'used'),
    [(0.0, 1e-9), (1e-12, 1e-9), (-4.0, 4.0), (-1e-12, 1e-9), (4.0, 4.0)],
)
def test_variances_are_floored_after_their_sign_is_dropped(
    given_variance: float, used: float
) -> None:
    flt = filter_at(np.zeros(N), np.eye(N))
    correct(flt, np.array([X]), 1, np.array([1.0]), np.array([[given_variance]]), math.inf)
    assert flt.x[X] == pytest.approx(1.0 / (1.0 + used), rel=1e-15)
    assert flt.P[X, X] == pytest.approx(used / (1.0 + used), rel=1e-6)


def test_singular_innovation_covariance_changes_nothing() -> None:
    """Two readings of one thing with equal noise: no inverse, so no correction."""
    flt = filter_at(np.zeros(N), np.zeros((N, N)))
    R = np.ones((2, 2))
    assert not correct(flt, np.array([0, 1]), 2, np.array([1.0, 1.0]), R, math.inf)
    assert not flt.x.any()


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
    assert flt.x.tolist() == expected.tolist()
    P = 7.0 * np.eye(N)
    P[np.ix_(index, index)] = [[0.0, 0.5], [0.25, -3.0]]
    assert flt.P.tolist() == P.tolist()


def test_late_measurement_corrects_without_moving_time() -> None:
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


def test_newer_measurement_predicts_first() -> None:
    x = np.zeros(N)
    x[VX] = 2.0
    flt = filter_at(x, np.eye(N), 1_000_000_000)
    process(
        flt, dynamics(), 1_500_000_000, np.array([VX + 1]), 1, np.zeros(1), np.eye(1), math.inf
    )
    assert flt.times[LAST_NS] == 1_500_000_000
    assert flt.x[X] == 1.0


def test_a_step_of_more_than_a_day_counts_as_a_hundredth_of_a_second() -> None:
    """robot_localization's guard against stamps of another epoch: above 100000 s."""
    for seconds, moved in ((100_000, 100_000.0), (100_001, 0.01)):
        x = np.zeros(N)
        x[VX] = 1.0
        flt = filter_at(x, np.eye(N))
        advance(flt, dynamics(), seconds * 1_000_000_000)
        assert flt.x[X] == pytest.approx(moved, rel=1e-12)
        assert flt.times[LAST_NS] == seconds * 1_000_000_000


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
def test_control_accelerates_as_worked_by_hand(
    command: float, velocity: float, acceleration: float, why: str
) -> None:
    """The forward axis: the acceleration replaces ax, and moves v and x in the same step."""
    dyn = dynamics(control_mask=FORWARD, control_limits=LIMITS, control_timeout_ns=200_000_000)
    x = np.zeros(N)
    x[VX], x[AX] = velocity, 55.0
    flt = filter_at(x, np.eye(N))
    flt.command[0], flt.times[CONTROL_NS] = command, 0
    predict(flt, dyn, 100_000_000, 0.1)
    assert flt.x[AX] == pytest.approx(acceleration, rel=1e-12), why
    assert flt.x[VX] == pytest.approx(velocity + 0.1 * acceleration, abs=1e-15)
    assert flt.x[X] == pytest.approx(0.1 * velocity + 0.005 * acceleration, abs=1e-15)


def test_control_of_a_rate_is_added_to_the_rate() -> None:
    """Yaw rate 1, no command ever: braked at 1.0 rad/s^2; the angle uses the new rate."""
    dyn = dynamics(control_mask=TURN, control_limits=LIMITS, control_timeout_ns=200_000_000)
    x = np.zeros(N)
    x[VYAW] = 1.0
    flt = filter_at(x, np.eye(N))
    predict(flt, dyn, 100_000_000, 0.1)
    assert flt.x[VYAW] == pytest.approx(0.9, rel=1e-12)
    assert flt.x[YAW] == pytest.approx(0.09, rel=1e-12)
    assert not flt.x[AX:].any()
    assert not flt.x[VROLL:VYAW].any()


@pytest.mark.parametrize(('age_ns', 'acceleration'), [(199_999_999, 0.4), (200_000_000, -0.5)])
def test_command_older_than_the_timeout_counts_as_zero(age_ns: int, acceleration: float) -> None:
    """Command 1 at speed 0.5: gain 0.8 while it holds; then braking at gain 1.0."""
    dyn = dynamics(control_mask=FORWARD, control_limits=LIMITS, control_timeout_ns=200_000_000)
    x = np.zeros(N)
    x[VX] = 0.5
    flt = filter_at(x, np.eye(N))
    flt.command[0], flt.times[CONTROL_NS] = 1.0, 1_000_000_000
    predict(flt, dyn, 1_000_000_000 + age_ns, 0.01)
    assert flt.x[AX] == pytest.approx(acceleration, rel=1e-12)


def test_control_leaves_the_covariance_as_without() -> None:
    """Jacobian and dynamic noise use the state before control acts."""
    rng = np.random.default_rng(8)
    x, P, Q = random_state(rng), random_covariance(rng, N), random_covariance(rng, N)
    controlled, free = filter_at(x, P), filter_at(x, P)
    predict(
        controlled,
        dynamics(Q, dynamic=True, control_mask=FORWARD + TURN, control_limits=LIMITS),
        0,
        0.1,
    )
    predict(free, dynamics(Q, dynamic=True), 0, 0.1)
    assert controlled.P.tobytes() == free.P.tobytes()
    assert not np.array_equal(controlled.x, free.x)


def test_states_are_named_in_order() -> None:
    assert len(STATE_NAMES) == N
    assert [STATE_NAMES[i] for i in (X, YAW, VX, VYAW, AX)] == ['x', 'yaw', 'vx', 'vyaw', 'ax']
