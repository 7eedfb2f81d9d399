# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The world of the sensors: gravity, the Earth's magnetic field, landmarks, and its files."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from wmm_examples import VALUES_2020, VALUES_2025

from sim_sensors.core.errors import ParameterError
from sim_sensors.core.shipped import config_path
from sim_sensors.imu.imu import simulate
from sim_sensors.imu.models import IdealImu
from sim_sensors.motion.scenarios import Standstill
from sim_sensors.world.earth import EarthField, Gravity, normal_gravity, wmm_field
from sim_sensors.world.geodesy import LocalFrame
from sim_sensors.world.world import Tags, World, chessboard, load_world, world_names

# WGS84: GM (m^3/s^2), angular rate (rad/s), semi-axes (m); NIMA TR8350.2, tables 3.1 and 3.3.
GM, OMEGA, A, B = 3986004.418e8, 7292115e-11, 6378137.0, 6356752.3142451793


def potential(x: float, z: float) -> float:
    """Normal potential at distance x from the axis and z from the equator, in closed form.

    Heiskanen and Moritz, Physical Geodesy, equations 2-62: harmonic outside the ellipsoid, and
    constant on it together with that of the centrifugal force.
    """
    e2 = A * A - B * B
    e = math.sqrt(e2)
    s = x * x + z * z - e2
    u = math.sqrt(0.5 * (s + math.sqrt(s * s + 4.0 * e2 * z * z)))
    beta = math.atan2(z * math.sqrt(u * u + e2), u * x)

    def q(v: float) -> float:
        return 0.5 * ((1.0 + 3.0 * v * v / e2) * math.atan2(e, v) - 3.0 * v / e)

    shape = 0.5 * OMEGA**2 * A * A * q(u) / q(B) * (math.sin(beta) ** 2 - 1.0 / 3.0)
    return GM / e * math.atan2(e, u) + shape + 0.5 * OMEGA**2 * x * x


def gravity_of_potential(latitude_deg: float, altitude: float, step: float = 200.0) -> float:
    """Length of its gradient, by differences of fourth order."""
    latitude = math.radians(latitude_deg)
    n = A * A / math.hypot(A * math.cos(latitude), B * math.sin(latitude))
    x = (n + altitude) * math.cos(latitude)
    z = (n * B * B / (A * A) + altitude) * math.sin(latitude)

    def slope(dx: float, dz: float) -> float:
        near = potential(x + dx, z + dz) - potential(x - dx, z - dz)
        far = potential(x + 2 * dx, z + 2 * dz) - potential(x - 2 * dx, z - 2 * dz)
        return (8.0 * near - far) / (12.0 * step)

    return math.hypot(slope(step, 0.0), slope(0.0, step))


@pytest.mark.parametrize('latitude', [-80.0, -33.0, 5.0, 45.0, 89.0])
@pytest.mark.parametrize(('altitude', 'bound'), [(0.0, 2e-8), (1000.0, 1e-7), (10e3, 1e-5)])
def test_normal_gravity_is_the_gradient_of_the_normal_potential(
    latitude: float, altitude: float, bound: float, record_property: Callable[[str, object], None]
) -> None:
    """The second-order series in height leaves out a third-order term, 4 g (h/a)^3 = 1.5e-7."""
    ours = float(normal_gravity(latitude, altitude))
    if altitude == 0.0:
        record_property('difference', abs(ours - gravity_of_potential(latitude, altitude)))
    expected = gravity_of_potential(latitude, altitude)
    assert ours == pytest.approx(expected, abs=bound), f'closed form of the potential, {bound}'


def test_gravity_at_the_equator_and_the_poles_equals_the_published_values() -> None:
    """NIMA TR8350.2, table 3.4: 9.7803253359 and 9.8321849378."""
    assert normal_gravity([0.0, 90.0, -90.0]).tolist() == pytest.approx(
        [9.7803253359, 9.8321849378, 9.8321849378], abs=2e-10
    )


def test_an_imu_at_rest_measures_the_gravity_of_its_world() -> None:
    helsinki = LocalFrame(60.17, 24.94, 26.0)
    world = World(frame=helsinki, gravity_model=Gravity(model='normal'))
    felt = simulate(IdealImu(), Standstill(duration=1.0), seed=1, run='a', gravity=world.gravity)
    expected = [0.0, 0.0, gravity_of_potential(60.17, 26.0)]
    np.testing.assert_allclose(felt.linear_acceleration, [expected] * len(felt), atol=1e-7)
    assert expected[2] == pytest.approx(9.81923, abs=1e-5)
    assert World(gravity_model=Gravity(model='constant', value=1.62)).gravity == 1.62
    assert World(frame=helsinki).gravity == 9.80665


@pytest.mark.parametrize(
    ('values', 'bound'), [(VALUES_2020, 0.05), (VALUES_2025, 0.0015)], ids=['2020', '2025']
)
def test_the_field_equals_the_published_test_values_of_the_wmm(
    values: list[tuple[float, ...]], bound: float, record_property: Callable[[str, object], None]
) -> None:
    """All of 2020 to the 0.1 nT that they are printed with, all of 2025 to 0.001 nT, in nT.

    The last three of the six decimals printed for 2025 differ from ours by up to 0.0007 nT; an
    independent sum of spherical harmonics equals ours to 1e-9 nT.
    """
    assert len(values) == 100
    field = [
        wmm_field(LocalFrame(latitude, longitude, 1000.0 * height), year)
        for year, height, latitude, longitude, *_ in values
    ]
    east, north, up = 1e9 * np.array(field).T
    ours = np.column_stack([north, east, -up])
    worst = np.abs(ours - np.array(values)[:, 4:]).max()
    record_property(f'{bound:g} nT', worst)
    assert worst <= bound * 1.000001, f'values of NOAA, {bound} nT'


def test_the_field_of_a_world_depends_on_place_and_date_and_can_be_given() -> None:
    madison = World()
    moved = World(frame=LocalFrame(-33.86, 151.21, 0.0))
    later = World(earth_field=EarthField(year=2029.9))
    here = madison.magnetic_field(np.zeros((2, 3)))
    assert here.shape == (2, 3)
    assert here[0, 2] < -4e-5  # In the northern hemisphere it points down.
    assert moved.undisturbed_field[2] > 4e-5
    assert 1e-8 < np.abs(later.undisturbed_field - madison.undisturbed_field).max() < 1e-6
    constant_field = World(earth_field=EarthField(model='constant', value=(1e-6, 2e-5, -4e-5)))
    assert constant_field.magnetic_field(np.zeros((1, 3))).tolist() == [[1e-6, 2e-5, -4e-5]]


def test_a_place_or_date_outside_the_magnetic_model_is_refused() -> None:
    with pytest.raises(ParameterError, match=r'year.*2031'):
        wmm_field(LocalFrame(), 2031.0)
    with pytest.raises(ParameterError, match=r'altitude_m.*1000000'):
        wmm_field(LocalFrame(altitude_m=1e6), 2025.0)


def test_chessboard_corners_are_in_a_plane_at_the_given_pose() -> None:
    flat = chessboard(2, 3, 0.02, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    assert not flat[:, 0].any()
    assert flat[:, 1:].tolist() == [[0.02 * y, 0.02 * z] for z in range(2) for y in range(3)]
    rpy, place = (0.1, -0.4, 2.0), (1.0, 2.0, 3.0)
    turned = chessboard(2, 3, 0.02, place, rpy)
    expected = np.asarray(place) + Rotation.from_euler('xyz', rpy).apply(flat)
    np.testing.assert_allclose(turned, expected, atol=1e-15)


def test_corners_of_a_tag_are_a_square_about_its_centre_facing_along_z() -> None:
    # On a wall to the east, facing west: z of the tag is -x of the world, its y is up.
    facing_west = Rotation.from_matrix([[0.0, 0.0, -1.0], [-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    tags = Tags(
        np.array([7]), np.array([[5.0, 0.0, 1.0]]), facing_west.as_quat()[None], np.array([0.2])
    )
    # For an observer who looks east, left is north (+y).
    assert tags.corners()[0] == pytest.approx(
        np.array([[5.0, 0.1, 0.9], [5.0, -0.1, 0.9], [5.0, -0.1, 1.1], [5.0, 0.1, 1.1]])
    )
    assert Tags().corners().shape == (0, 4, 3)


@pytest.mark.parametrize('name', world_names())
def test_preset_worlds_have_a_field_and_gravity(name: str) -> None:
    world = load_world(name)
    assert 2e-5 < np.linalg.norm(world.undisturbed_field) < 7e-5
    assert 9.78 < world.gravity < 9.84
    assert load_world(str(config_path('worlds', f'{name}.yaml'))).frame == world.frame


def test_a_world_file_describes_all_contents_of_a_world(tmp_path) -> None:
    path = tmp_path / 'hall.yaml'
    path.write_text(
        'origin: {latitude_deg: 1, longitude_deg: 2, altitude_m: 3}\n'
        'gravity: {model: constant, value: 9.7}\n'
        'earth_field: {model: constant, value: [0, 1e-5, 0]}\n'
        'dipole_radius: 0.02\n'
        'dipoles: [{position: [1, 0, 0], rpy: [0, 1.5707963267948966, 0], moment: 3}]\n'
        'scattered_dipoles: [{count: 4, low: [0, 0, 0], high: [1, 2, 3], moment: 5, seed: 1}]\n'
        'landmarks: [{id: 100, position: [1, 1, 1]}]\n'
        'chessboards: [{rows: 2, columns: 2, square: 0.1, first_id: 10}]\n'
        'tags: [{id: 3, position: [0, 1, 0], size: 0.3}]\n'
    )
    world = load_world(path)
    assert (world.frame, world.gravity) == (LocalFrame(1.0, 2.0, 3.0), 9.7)
    assert len(world.dipoles) == 5
    assert world.dipoles.radius == 0.02
    assert world.dipoles.moments[0] == pytest.approx([3.0, 0.0, 0.0], abs=1e-15)
    assert np.linalg.norm(world.dipoles.moments[1:], axis=1) == pytest.approx([5.0] * 4)
    assert world.landmarks.ids.tolist() == [100, 10, 11, 12, 13]
    assert (world.tags.ids.tolist(), world.tags.sizes.tolist()) == ([3], [0.3])


@pytest.mark.parametrize(
    ('text', 'key'),
    [
        ('dipole: []', 'dipole'),
        ('dipoles: 3', 'dipoles'),
        ('dipoles: [{moment: x}]', 'dipoles[0].moment'),
        ('dipoles: [{size: 1}]', 'dipoles[0].size'),
        ('dipole_radius: 0', 'dipole_radius'),
        ('earth_field: {year: 1999}', 'earth_field.year'),
        ('gravity: 9.81', 'gravity'),
        ('landmarks: [{id: 1}, {id: 1}]', 'landmarks.ids'),
        ('tags: [{id: 1}, {id: 1}]', 'tags.ids'),
        ('scattered_dipoles: [{count: 1, low: [1, 0, 0]}]', 'scattered_dipoles[0].high'),
    ],
)
def test_a_wrong_world_file_is_refused_by_file_and_key(
    tmp_path: Path, text: str, key: str
) -> None:
    path = tmp_path / 'wrong.yaml'
    path.write_text(text)
    with pytest.raises(ParameterError) as caught:
        load_world(path)
    assert str(caught.value).startswith(f'{path}: {key}: ')
    assert '\n' not in str(caught.value)
