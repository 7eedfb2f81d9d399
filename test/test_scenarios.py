# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Analytic scenarios: exact physics, consistent derivatives, smooth starts."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.integrate import quad
from test_trajectory import assert_consistent, assert_identical, chunked

from sim_sensors.core import rotations
from sim_sensors.core.errors import MotionError, ParameterError
from sim_sensors.motion.closed_curves import ClosedCurve, PathA, PathB, PathC, PathD
from sim_sensors.motion.motions import SCENARIOS
from sim_sensors.motion.paths import CurvePath, figure_eight_path, half_sine_path
from sim_sensors.motion.scenarios import Circle, FigureEight, HalfSine, Line

LOOPS = [PathA, PathB, PathC, PathD]
MOVING = [
    Line(heading=0.3),
    Circle(heading=-1.0),
    Circle(clockwise=True, stop=True),
    HalfSine(heading=2.0, length=9.0, amplitude=-2.0),
    FigureEight(stop=True, rest_time=1.0),
    ClosedCurve(heading=0.5),
    *(kind() for kind in LOOPS),
]


@pytest.mark.parametrize('scenario', MOVING, ids=lambda s: s.kind)
def test_derivatives_are_consistent(scenario):
    """On the half-sine the kink of yaw acceleration, where the straight begins, is left out."""
    times = np.linspace(0.0137, 19.97, 400)
    if isinstance(scenario, HalfSine):
        distance = scenario.progress(times)[0]
        times = times[np.abs(distance - scenario.path.length) > 0.01]
    assert_consistent(scenario.at, times, atol=2e-9, step=1e-3)


@pytest.mark.parametrize('scenario', MOVING, ids=lambda s: s.kind)
def test_the_body_points_along_its_path(scenario):
    motion = scenario.at(np.linspace(0.0, 20.0, 300))
    body = rotations.rotate_back(motion.orientation, motion.velocity)
    np.testing.assert_allclose(body[:, 1:], 0.0, atol=1e-14)
    assert (body[:, 0] >= 0.0).all()
    assert not motion.position[:, 2].any()


@pytest.mark.parametrize('scenario', MOVING, ids=lambda s: s.kind)
def test_motions_start_at_the_origin_from_rest_with_continuous_acceleration(scenario):
    motion = scenario.at(np.linspace(0.0, 20.0, 20001))
    for field in ('position', 'velocity', 'acceleration', 'angular_velocity'):
        np.testing.assert_allclose(getattr(motion, field)[0], 0.0, atol=1e-13, err_msg=field)
    jerk = np.diff(motion.acceleration, axis=0) / 1e-3
    # Ramp: 5.774 V / ramp^2 = 1.44; the rest is v^3 times the slope of the curvature.
    assert np.linalg.norm(jerk, axis=1).max() < 4.0


@pytest.mark.parametrize('kind', ['line', 'circle', 'half_sine', 'figure_eight'])
def test_motions_stop_at_the_end_if_requested(kind):
    stopping = SCENARIOS.get(kind)(stop=True).at([20.0])
    np.testing.assert_allclose(stopping.velocity, 0.0, atol=1e-14)
    np.testing.assert_allclose(stopping.acceleration, 0.0, atol=1e-14)
    going = SCENARIOS.get(kind)().at([20.0])
    assert np.linalg.norm(going.velocity) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize('side', [1.0, -1.0])
def test_the_circle_has_the_textbook_yaw_rate_and_lateral_force(side):
    v, r = 2.5, 4.0
    circle = Circle(speed=v, radius=r, clockwise=side < 0)
    motion = circle.at(np.linspace(2.0, 20.0, 100))
    force = motion.specific_force(9.80665)
    np.testing.assert_allclose(force[:, 0], 0.0, atol=1e-12)
    np.testing.assert_allclose(force[:, 1], side * v**2 / r, atol=1e-12)
    np.testing.assert_allclose(force[:, 2], 9.80665)
    np.testing.assert_allclose(motion.angular_velocity[:, 2], side * v / r, atol=1e-13)
    centre = np.array([0.0, side * r, 0.0])
    np.testing.assert_allclose(np.linalg.norm(motion.position - centre, axis=1), r, atol=1e-12)


def test_without_a_ramp_the_circle_is_a_constant_twist_from_the_start():
    motion = Circle(ramp_time=0.0).at([0.0, 3.0])
    np.testing.assert_array_equal(motion.angular_velocity[0], motion.angular_velocity[1])
    np.testing.assert_allclose(np.linalg.norm(motion.velocity, axis=1), 1.0)


def test_distance_is_speed_times_time_less_half_the_ramp():
    assert Line(speed=3.0, ramp_time=2.0).at([20.0]).position[0, 0] == pytest.approx(57.0)
    stopped = Line(speed=3.0, ramp_time=2.0, rest_time=1.0, stop=True)
    assert stopped.at([20.0]).position[0, 0] == pytest.approx(51.0)
    assert stopped.progress(np.array([stopped.duration]))[0] == pytest.approx(51.0)
    assert stopped.at([0.99]).position[0, 0] == 0.0


@pytest.mark.parametrize(
    ('path', 'speed', 'end'),
    [
        (
            half_sine_path(15.0, 2.0),
            lambda u: np.hypot(1.0, 2.0 * np.pi / 15.0 * np.cos(np.pi * u / 15.0)),
            15.0,
        ),
        (
            figure_eight_path(8.0, 4.0),
            lambda u: 4.0 * np.hypot(np.cos(u), np.cos(2.0 * u)),
            2.0 * np.pi,
        ),
    ],
)
def test_arc_length_agrees_with_adaptive_quadrature(path: CurvePath, speed, end):
    """The inverse u(s) too, at places between the panels of its table."""
    expected = quad(speed, 0.0, end, epsabs=1e-13)[0]
    assert path.length == pytest.approx(expected, rel=1e-12), 'scipy quad, 1e-12'
    for share in (0.0713, 0.331, 0.6207, 0.98765):
        u = share * end
        s = quad(speed, 0.0, u, epsabs=1e-13, limit=200)[0]
        assert path._parameter(np.array([s]))[0] == pytest.approx(u, abs=1e-11)


def test_the_half_sine_passes_its_crest_and_continues_straight():
    path = half_sine_path(10.0, 1.5)
    crest = path.at(np.array([path.length / 2]))
    assert crest.x[0] == pytest.approx(5.0, abs=1e-10)
    assert crest.y[0] == pytest.approx(1.5, abs=1e-10)
    assert crest.curvature[0] == pytest.approx(-1.5 * (np.pi / 10.0) ** 2)
    beyond = path.at(path.length + np.array([0.0, 1.0, 4.0]))
    slope = np.arctan(-1.5 * np.pi / 10.0)
    np.testing.assert_allclose(beyond.heading, slope, atol=1e-12)
    np.testing.assert_allclose(beyond.x, 10.0 + np.array([0, 1, 4]) * np.cos(slope), atol=1e-10)
    np.testing.assert_allclose(beyond.curvature, 0.0, atol=1e-12)


def test_the_figure_eight_is_closed():
    eight = FigureEight(ramp_time=0.0, duration=100.0)
    lap = eight.path.length
    first, second = eight.at([3.0, 3.0 + lap]).position
    np.testing.assert_allclose(first, second, atol=1e-10)
    positions = eight.at(np.linspace(0.0, lap, 5000)).position
    np.testing.assert_allclose(np.ptp(positions, axis=0), [8.0, 4.0, 0.0], atol=1e-4)


@pytest.mark.parametrize('scenario', MOVING, ids=lambda s: s.kind)
def test_the_motion_does_not_depend_on_the_chunking_of_times(scenario):
    times = np.linspace(0.0, 20.0, 300)
    assert_identical(scenario.at(times), chunked(scenario, times, [1, 5, 64]))


def test_bad_parameters_and_times_are_refused():
    with pytest.raises(ParameterError, match=r'Circle: radius: -1'):
        Circle(radius=-1.0)
    with pytest.raises(ParameterError, match=r'duration: 3 is not allowed; must be >= 4'):
        Line(duration=3.0, stop=True)
    with pytest.raises(ParameterError, match='unknown parameter'):
        FigureEight.from_mapping({'radius': 3}, 'study.yaml')
    with pytest.raises(MotionError, match='outside the motion'):
        Line().at([20.1])


@pytest.mark.parametrize('scenario', MOVING, ids=lambda s: s.kind)
def test_parameters_are_equal_after_conversion_to_a_mapping_and_back(scenario):
    again = type(scenario).from_mapping(scenario.to_mapping(), 'here')
    assert again == scenario
    assert dataclasses.replace(again, duration=21.0) != scenario


@pytest.mark.parametrize('kind', LOOPS)
def test_the_paths_of_the_thesis_close_smoothly(kind: type[ClosedCurve]) -> None:
    """They begin along x in the origin; loops last 65 to 75 s, B is driven once in 11 minutes."""
    path = kind(duration=700.0).path
    assert isinstance(path, CurvePath)
    seconds = path.length / kind().speed
    assert 640.0 < seconds < 660.0 if kind is PathB else 65.0 < seconds < 75.0
    ends = path.at(np.array([0.0, path.length * (1.0 - 1e-9)]))
    np.testing.assert_allclose([ends.x, ends.y], 0.0, atol=1e-6)
    assert abs(ends.heading[0]) < 1e-15
    assert ends.curvature[0] == pytest.approx(ends.curvature[1], abs=1e-5)


def test_a_curve_with_a_cusp_is_refused() -> None:
    """A cardioid: x = 2 cos u + cos 2u, y = 2 sin u + sin 2u stops at u = pi."""
    with pytest.raises(ParameterError, match='cusp'):
        ClosedCurve(cosines=(2.0, 1.0, 0.0), sines=(2.0, 1.0, 0.0))
