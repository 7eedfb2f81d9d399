# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The field of point dipoles: Maxwell's equations, the laws of the dipole, a room full of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from sim_sensors.core.errors import ParameterError
from sim_sensors.world.world import Dipoles, load_world

RNG = np.random.default_rng(5)


def dipole(moment=(0.0, 0.0, 5.0), position=(0.0, 0.0, 0.0)) -> Dipoles:
    return Dipoles(np.array([position]), np.array([moment]))


def derivatives(dipoles: Dipoles, points: np.ndarray, step: float = 1e-3) -> np.ndarray:
    """Matrix of dB_i/dx_j by differences of fourth order, `(n, 3, 3)`."""
    columns = []
    for axis in np.eye(3) * step:
        near = dipoles.field(points + axis) - dipoles.field(points - axis)
        far = dipoles.field(points + 2.0 * axis) - dipoles.field(points - 2.0 * axis)
        columns.append((8.0 * near - far) / (12.0 * step))
    return np.stack(columns, axis=2)


def test_the_field_has_neither_divergence_nor_curl_away_from_the_source(
    record_property: Callable[[str, object], None],
) -> None:
    """Both vanish against the single derivatives, of which some are not zero."""
    points = RNG.uniform(-2.0, 2.0, (200, 3))
    points = points[np.linalg.norm(points, axis=1) > 0.5]
    slopes = derivatives(dipole(moment=(1.0, -2.0, 3.0)), points)
    size = np.linalg.norm(slopes, axis=(1, 2))
    divergence = np.abs(np.trace(slopes, axis1=1, axis2=2) / size).max()
    record_property('divergence', divergence)
    assert divergence < 1e-7
    assert np.abs((slopes - slopes.transpose(0, 2, 1)) / size[:, None, None]).max() < 1e-7


def test_the_field_on_the_axis_is_minus_twice_that_on_the_equator() -> None:
    """1 uT at 1 m on the axis of 5 A m^2 (the moment in [Ligorio2015])."""
    field = dipole().field(np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, -1.0, 0.0]]))
    assert field[0] == pytest.approx([0.0, 0.0, 1e-6], rel=1e-14)
    assert field[0, 2] / field[1, 2] == pytest.approx(-2.0, rel=1e-14)
    assert field[2] == pytest.approx(field[1], rel=1e-14)


def test_the_field_falls_with_the_third_power_of_the_distance() -> None:
    directions = RNG.standard_normal((50, 3))
    near, far = (dipole().field(scale * directions) for scale in (1.0, 3.0))
    np.testing.assert_allclose(near, 27.0 * far, rtol=1e-13)


def test_the_field_equals_the_cylindrical_formula_of_a_dipole() -> None:
    """B_rho = 3 k rho z / r^5 and B_z = k (2 z^2 - rho^2) / r^5, then turned [Ligorio2015]."""
    rpy, place, moment = (0.4, -1.1, 2.5), np.array([1.0, -2.0, 0.5]), 5.0
    turn = Rotation.from_euler('xyz', rpy)
    local = RNG.uniform(-1.0, 1.0, (100, 3))
    rho, angle = np.hypot(local[:, 0], local[:, 1]), np.arctan2(local[:, 1], local[:, 0])
    z, r5, k = local[:, 2], np.linalg.norm(local, axis=1) ** 5, 1e-7 * moment
    radial = 3.0 * k * rho * z / r5
    along = k * (2.0 * z**2 - rho**2) / r5
    field = np.stack([radial * np.cos(angle), radial * np.sin(angle), along], axis=1)
    ours = Dipoles.from_frames([place], [rpy], [moment]).field(place + turn.apply(local))
    np.testing.assert_allclose(ours, turn.apply(field), rtol=1e-11, atol=1e-18)


def test_fields_add_up_and_are_linear_in_the_moment() -> None:
    points = RNG.uniform(-1.0, 1.0, (30, 3))
    a = Dipoles(RNG.uniform(-3.0, 3.0, (4, 3)), RNG.standard_normal((4, 3)))
    b = Dipoles(RNG.uniform(-3.0, 3.0, (6, 3)), RNG.standard_normal((6, 3)))
    together = a.concatenate(b).field(points)
    np.testing.assert_allclose(together, a.field(points) + b.field(points), rtol=1e-11, atol=1e-18)
    twice = Dipoles(a.positions, -2.0 * a.moments).field(points)
    np.testing.assert_allclose(twice, -2.0 * a.field(points), rtol=1e-13)
    assert not Dipoles().field(points).any()


def test_within_its_radius_a_dipole_has_the_field_of_a_uniformly_magnetised_ball() -> None:
    """The flux through the surface is the same on both sides."""
    ball = dipole()
    inside = ball.field(np.array([[0.0, 0.0, 0.0], [0.002, -0.003, 0.004]]))
    assert np.isfinite(inside).all()
    assert inside[0] == pytest.approx(inside[1], rel=1e-15)
    # 2/3 mu_0 M, with M the moment per volume.
    volume = 4.0 / 3.0 * np.pi * 0.01**3
    assert inside[0, 2] == pytest.approx(2.0 / 3.0 * 4e-7 * np.pi * 5.0 / volume, rel=1e-12)
    normals = RNG.standard_normal((50, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    within, without = (ball.field(r * normals) for r in (0.01 * (1 - 1e-9), 0.01 * (1 + 1e-9)))
    inner, outer = ((field * normals).sum(1) for field in (within, without))
    np.testing.assert_allclose(inner, outer, rtol=1e-7, atol=1e-7)


def test_the_field_at_many_points_equals_that_at_each_point_bit_for_bit() -> None:
    room = load_world('dipole_room').dipoles
    points = RNG.uniform(0.0, 8.0, (20, 3))
    alone = np.concatenate([room.field(point[None]) for point in points])
    assert alone.tobytes() == room.field(points).tobytes()


def test_the_dipole_room_has_500_magnets_uniform_in_place_and_direction() -> None:
    """Means within 4.5 standard errors: 7e-6 each for a right draw, less than 1e-4 for all."""
    room = load_world('dipole_room').dipoles
    assert len(room) == 500
    sizes = np.array([8.0, 10.0, 2.5])
    assert (room.positions >= 0.0).all()
    assert (room.positions <= sizes).all()
    spread = 4.5 / np.sqrt(12.0 * 500)
    assert (np.abs(room.positions.mean(0) / sizes - 0.5) < spread).all()
    np.testing.assert_allclose(np.linalg.norm(room.moments, axis=1), 5.0, rtol=1e-14)
    directions = room.moments / 5.0
    assert (np.abs(directions.mean(0)) < 4.5 / np.sqrt(3.0 * 500)).all()
    # Each cosine is uniform in [-1, 1]: its variance is 1/3, that of its square 4/45.
    assert (np.abs((directions**2).mean(0) - 1.0 / 3.0) < 4.5 * np.sqrt(4.0 / 45.0 / 500)).all()


@pytest.mark.parametrize(
    'words',
    [
        {'positions': np.zeros((2, 3)), 'moments': np.zeros((1, 3))},
        {'positions': [[0.0, np.nan, 0.0]], 'moments': [[0.0] * 3]},
        {'radius': 0.0},
    ],
)
def test_wrong_dipoles_are_refused(words) -> None:
    with pytest.raises(ParameterError):
        Dipoles(**words)
