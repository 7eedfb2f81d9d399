# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Rotations against scipy, and sampled trajectories: physics, interpolation, waypoints."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from sim_sensors.core import rotations
from sim_sensors.core.errors import MotionError
from sim_sensors.motion.scenarios import FigureEight, Standstill
from sim_sensors.motion.trajectory import Trajectory
from sim_sensors.motion.waypoints import WaypointMotion

FIELDS = [field.name for field in dataclasses.fields(Trajectory)]


def random_quaternions(n: int, seed: int = 1) -> np.ndarray:
    return Rotation.random(n, rng=np.random.default_rng(seed)).as_quat()


def tumbling(times: np.ndarray) -> Trajectory:
    """Analytic motion in all six degrees of freedom: attitude Exp(phi(t)), phi sinusoidal."""
    t = np.asarray(times, dtype=float)[:, None]
    size, w, place = np.array([0.9, 0.6, 1.4]), np.array([0.7, 1.1, 0.9]), np.array([0.0, 1, 2])
    wave = size * np.sin(w * t + place)
    slope, bend = size * w * np.cos(w * t + place), -(w**2) * wave
    rate, change = rotations.body_rates((wave, slope, bend))
    return Trajectory(t[:, 0], 3 * wave, rotations.exp(wave), 3 * slope, rate, 3 * bend, change)


def assert_consistent(at, times, *, rtol: float = 0.0, atol: float, step: float = 1e-4) -> None:
    """Check every derivative against the five-point difference of its integral."""

    def difference(values):
        back2, back, ahead, ahead2 = values
        return (back2 - 8.0 * back + 8.0 * ahead - ahead2) / (12.0 * step)

    here = at(times)
    around = [at(times + k * step) for k in (-2, -1, 1, 2)]
    for value, derivative in (
        ('position', 'velocity'),
        ('velocity', 'acceleration'),
        ('angular_velocity', 'angular_acceleration'),
    ):
        numeric = difference([getattr(other, value) for other in around])
        np.testing.assert_allclose(
            getattr(here, derivative), numeric, rtol=rtol, atol=atol, err_msg=derivative
        )
    turned = [rotations.rotation_between(here.orientation, other.orientation) for other in around]
    np.testing.assert_allclose(here.angular_velocity, difference(turned), rtol=rtol, atol=atol)


def assert_identical(a: Trajectory, b: Trajectory) -> None:
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)


def chunked(motion, times: np.ndarray, sizes: list[int]) -> Trajectory:
    """Return the motion at `times`, computed in chunks of the given sizes."""
    parts, first, turn = [], 0, 0
    while first < len(times):
        last = first + sizes[turn % len(sizes)]
        parts.append(motion.at(times[first:last]))
        first, turn = last, turn + 1
    return Trajectory(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in FIELDS)
    )


def test_rotations_agree_with_scipy():
    p, q = random_quaternions(500, 1), random_quaternions(500, 2)
    v = np.random.default_rng(3).normal(size=(500, 3))
    P, Q = Rotation.from_quat(p), Rotation.from_quat(q)
    np.testing.assert_allclose(rotations.rotate(p, v), P.apply(v), atol=1e-14)
    np.testing.assert_allclose(rotations.rotate_back(p, v), P.inv().apply(v), atol=1e-14)
    np.testing.assert_allclose(
        rotations.rotation_between(p, q), (P.inv() * Q).as_rotvec(), atol=1e-13
    )
    product = Rotation.from_quat(rotations.multiply(p, q))
    assert (product.inv() * (P * Q)).magnitude().max() < 1e-14
    np.testing.assert_allclose(
        Rotation.from_quat(rotations.exp(v)).as_matrix(),
        Rotation.from_rotvec(v).as_matrix(),
        atol=1e-14,
    )


@given(
    st.lists(st.floats(-1.0, 1.0), min_size=9, max_size=9),
    st.sampled_from([1e-12, 1e-4, 0.1, 0.5, 0.9, 1.1, 3.0]),
)
def test_body_rate_is_the_derivative_of_the_exponential(numbers, size):
    """The angle of 1 rad, where the series end, is included."""
    direction, first, second = np.array(numbers).reshape(3, 1, 3)
    phi = direction * size

    def curve(t):
        return phi + first * t + 0.5 * second * t * t, first + second * t, second

    rate, change = rotations.body_rates(curve(0.0))
    h = 1e-3
    grid = (-2 * h, -h, h, 2 * h)
    weights = np.array([1, -8, 8, -1])[:, None, None] / (12 * h)
    turns = [
        rotations.rotation_between(rotations.exp(phi), rotations.exp(curve(t)[0])) for t in grid
    ]
    np.testing.assert_allclose(rate, (weights * turns).sum(axis=0), atol=1e-9)
    rates = [rotations.body_rates(curve(t))[0] for t in grid]
    np.testing.assert_allclose(change, (weights * rates).sum(axis=0), atol=1e-9)
    back = rotations.end_derivatives(phi, rate, change)
    np.testing.assert_allclose(back[0], first, atol=1e-12)
    np.testing.assert_allclose(back[1], second, atol=1e-11)


def test_jacobian_series_agree_with_the_closed_forms_at_the_switch():
    below, above = (np.array([[size, 0.0, 0.0]]) for size in (1.0 - 1e-12, 1.0 + 1e-12))
    first, second = np.array([[0.3, -0.7, 0.2]]), np.array([[0.1, 0.4, -0.9]])
    for low, high in zip(
        rotations.body_rates((below, first, second)),
        rotations.body_rates((above, first, second)),
        strict=True,
    ):
        np.testing.assert_allclose(low, high, atol=1e-11)


@pytest.mark.parametrize('gravity', [9.80665, [0.0, 0.0, -9.80665]])
def test_at_rest_and_level_the_specific_force_is_up(gravity):
    still = Standstill(heading=0.7).at([0.0, 5.0])
    np.testing.assert_array_equal(still.specific_force(gravity), [[0.0, 0.0, 9.80665]] * 2)
    np.testing.assert_array_equal(still.angular_velocity, 0.0)


def test_at_rest_and_tilted_the_specific_force_is_gravity_in_the_body():
    q = Rotation.from_euler('y', 30, degrees=True).as_quat()[None]  # nose down
    zero = np.zeros((1, 3))
    force = Trajectory(np.zeros(1), zero, q, zero, zero, zero, zero).specific_force(10.0)
    np.testing.assert_allclose(force, [[-5.0, 0.0, 10.0 * np.sqrt(0.75)]], atol=1e-12)


def test_a_lever_arm_on_a_turntable_adds_centripetal_acceleration():
    W, arm, n = 2.0, 0.3, 7
    t = np.linspace(0.0, 2.0, n)
    zero, up = np.zeros((n, 3)), np.tile([0.0, 0.0, W], (n, 1))
    table = Trajectory(t, zero, rotations.from_heading(W * t), zero, up, zero, zero)
    force = table.at_lever_arm([arm, 0.0, 0.0]).specific_force(9.8)
    np.testing.assert_allclose(force, np.tile([-(W**2) * arm, 0.0, 9.8], (n, 1)), atol=1e-13)


def test_a_lever_arm_on_an_accelerating_turntable_adds_tangential_acceleration():
    zero, up = np.zeros((1, 3)), np.array([[0.0, 0.0, 3.0]])
    q = rotations.from_heading(np.array([0.4]))
    table = Trajectory(np.zeros(1), zero, q, zero, zero, zero, up)
    force = table.at_lever_arm([0.5, 0.0, 0.0]).specific_force(0.0)
    np.testing.assert_allclose(force, [[0.0, 1.5, 0.0]], atol=1e-14)


def test_lever_arm_motion_is_consistent_and_can_be_undone():
    arm = np.array([0.4, -0.2, 0.1])
    times = np.linspace(0.5, 6.0, 40)
    assert_consistent(lambda t: tumbling(t).at_lever_arm(arm), times, atol=1e-9)
    back = tumbling(times).at_lever_arm(arm).at_lever_arm(-arm)
    for name in FIELDS:
        np.testing.assert_allclose(getattr(back, name), getattr(tumbling(times), name), atol=1e-13)


def test_the_interpolation_passes_through_the_samples():
    times = np.sort(np.random.default_rng(2).uniform(0.0, 5.0, 60))
    samples = tumbling(times)
    for name in FIELDS:
        np.testing.assert_allclose(
            getattr(samples.at(times), name), getattr(samples, name), atol=1e-11, err_msg=name
        )


def test_interpolation_has_consistent_derivatives_between_samples():
    samples = tumbling(np.linspace(0.0, 6.0, 13))
    middles = np.linspace(0.25, 5.75, 12)
    assert_consistent(samples.at, middles, atol=1e-8)
    assert_consistent(samples.at, middles - 0.13, atol=1e-8)


@pytest.mark.parametrize(
    ('name', 'order'),
    [
        ('position', 6), ('velocity', 5), ('acceleration', 4), ('angular_velocity', 5),
        ('angular_acceleration', 4),
    ],
)  # fmt: skip
@pytest.mark.parametrize('motion', [tumbling, FigureEight(ramp_time=0.0).at])
def test_interpolation_converges_with_its_order(motion, name, order):
    """The quintic through exact samples errs by h^6, its derivatives by h^5 and h^4."""
    fine = np.linspace(0.0, 12.0, 3001)
    errors = []
    for count in (121, 241):
        samples = motion(np.linspace(0.0, 12.0, count))
        gap = getattr(samples.at(fine), name) - getattr(motion(fine), name)
        errors.append(np.abs(gap).max())
    assert order - 0.5 < np.log2(errors[0] / errors[1]) < order + 0.7


@settings(max_examples=15)
@given(st.lists(st.integers(1, 97), min_size=1, max_size=5))
def test_the_interpolation_does_not_depend_on_the_chunking(sizes):
    samples = tumbling(np.linspace(0.0, 6.0, 61))
    times = np.sort(np.random.default_rng(5).uniform(0.0, 6.0, 300))
    assert_identical(samples.at(times), chunked(samples, times, sizes))


def test_times_outside_are_refused_with_value_and_span():
    samples = tumbling(np.linspace(1.0, 2.0, 5))
    with pytest.raises(MotionError, match=r'2\.5 s .* 1 \.\. 2 s'):
        samples.at([1.5, 2.5])
    with pytest.raises(MotionError, match='nan'):
        samples.at([np.nan])
    with pytest.raises(MotionError, match='increase'):
        tumbling(np.array([0.0, 1.0, 1.0])).at([0.5])
    assert samples.at([2.0 + 0.9e-9]).time[0] == 2.0
    assert len(samples.at([])) == 0


@pytest.mark.parametrize(
    ('field', 'value', 'message'),
    [
        ('position', np.zeros((4, 3)), 'position has shape'),
        ('velocity', np.full((5, 3), np.nan), 'velocity has values'),
        ('orientation', np.full((5, 4), 0.7), 'orientation has norm'),
    ],
)
def test_bad_fields_are_refused(field, value, message):
    with pytest.raises(MotionError, match=message):
        dataclasses.replace(tumbling(np.linspace(0, 1, 5)), **{field: value})


TIMES = np.linspace(0.0, 10.0, 12)
POINTS = np.column_stack([2 * TIMES, 3 * np.sin(0.5 * TIMES), 0.5 * np.cos(0.4 * TIMES)])


def test_the_path_passes_through_the_waypoints_with_consistent_derivatives():
    motion = WaypointMotion(TIMES, POINTS)
    np.testing.assert_allclose(motion.at(TIMES).position, POINTS, atol=1e-12)
    assert_consistent(motion.at, np.linspace(0.1, 9.9, 77), atol=1e-8)


def test_with_tangent_orientation_the_velocity_is_forward_and_the_roll_zero():
    motion = WaypointMotion(TIMES, POINTS).at(np.linspace(0.0, 10.0, 101))
    body = rotations.rotate_back(motion.orientation, motion.velocity)
    np.testing.assert_allclose(body[:, 1:], 0.0, atol=1e-13)
    assert (body[:, 0] > 1.0).all()
    left = rotations.rotate(motion.orientation, np.tile([0.0, 1.0, 0.0], (101, 1)))
    np.testing.assert_allclose(left[:, 2], 0.0, atol=1e-14)


def test_paths_through_waypoints_with_orientations_start_and_end_at_rest():
    t = np.array([0.0, 2.0, 3.0, 5.0, 6.0])
    rng = np.random.default_rng(4)
    motion = WaypointMotion(t, rng.normal(size=(5, 3)), random_quaternions(5), rest_ends=True)
    ends = motion.at([0.0, 6.0])
    np.testing.assert_allclose(ends.velocity, 0.0, atol=1e-12)
    np.testing.assert_allclose(ends.acceleration, 0.0, atol=1e-11)
    met = motion.at(t).orientation
    assert (
        Rotation.from_quat(met).inv() * Rotation.from_quat(random_quaternions(5))
    ).magnitude().max() < 1e-12
    assert_consistent(motion.at, np.linspace(0.1, 5.9, 50) + 0.003, atol=1e-6)


@pytest.mark.parametrize('with_orientations', [False, True])
def test_the_waypoint_motion_does_not_depend_on_the_chunking(with_orientations):
    motion = WaypointMotion(TIMES, POINTS, random_quaternions(12) if with_orientations else None)
    times = np.linspace(0.0, 10.0, 500)
    assert_identical(motion.at(times), chunked(motion, times, [1, 3, 64, 7]))


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ({'times': np.arange(5.0), 'positions': np.zeros((5, 3))}, 'at least 6'),
        ({'positions': np.zeros((7, 3))}, 'positions of shape'),
        ({'times': [0, 1, 2, 2, 4, 5, 6, 7]}, 'point 3 does not increase'),
        ({'positions': np.full((8, 3), np.inf)}, 'finite'),
        ({'positions': np.zeros((8, 3))}, 'no direction'),
        ({'orientations': np.zeros((8, 4))}, 'non-zero norm'),
        ({'orientations': np.zeros((8, 3))}, 'orientations of shape'),
        ({'rest_ends': True}, 'needs orientations'),
    ],
)
def test_bad_waypoints_are_refused(change, message):
    t = np.arange(8.0)
    good = {'times': t, 'positions': np.column_stack([t, t**2, 0 * t])}
    with pytest.raises(MotionError, match=message):
        WaypointMotion(**{**good, **change})
