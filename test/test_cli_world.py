# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real world`: values, field map and pictures of a world, and refusals."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from cli_examples import call, check_refused
from matplotlib import image
from pygeomag import GeoMag

from sim2real_eval.benches.world import default_area, default_height, object_positions, world_map
from sim2real_eval.report.world import components_figure, world_figure
from sim_sensors.core.errors import ParameterError
from sim_sensors.world.earth import EarthField, wmm_epoch
from sim_sensors.world.world import Dipoles, World, chessboard, load_world, world_names

Capture = pytest.CaptureFixture[str]
NORTH = EarthField(model='constant', value=(0.0, 2e-5, -4e-5))
USER_WORLD = """\
origin: {latitude_deg: 60.17, longitude_deg: 24.94, altitude_m: 10.0}
gravity: {model: normal}
earth_field: {model: constant, value: [1.0e-6, 1.5e-5, -5.0e-5]}
dipoles:
  - {position: [2.0, 0.0, 0.3], moment: 3.0}
landmarks:
  - {id: 100, position: [3.0, 0.0, 1.0]}
chessboards:
  - {rows: 2, columns: 3, square: 0.1, position: [1, 2, 0], rpy: [0, 0, 0.5], first_id: 7}
  - {rows: 3, columns: 2, square: 0.1, position: [-1, 2, 0], first_id: 20}
tags:
  - {id: 1, position: [5.0, 0.0, 1.0], rpy: [1.5707963, 0.0, -1.5707963]}
  - {id: 2, position: [2.0, 1.0, 0.0]}
"""


def world_record(capsys: Capture, *words: object) -> dict:
    outcome = call(capsys, 'world', *words, '--json')
    assert (outcome.status, outcome.err) == (0, '')
    return json.loads(outcome.out)


def test_printed_gravity_and_field_equal_those_of_the_library_and_pygeomag(
    capsys: Capture,
) -> None:
    record = world_record(capsys, 'dipole_room', '--year', '2021.5')
    world = load_world('dipole_room')
    assert record['gravity'] == {'model': 'normal', 'value_m_s2': world.gravity}
    assert record['origin'] == world.frame.to_mapping()
    assert (record['dipoles'], record['landmarks']) == (500, 0)
    earth = record['earth_field']
    assert (earth['coefficients'], earth['year']) == ('2020', 2021.5)
    wmm = GeoMag(coefficients_file='wmm/WMM_2020.COF').calculate(45.48, 9.23, 0.17, 2021.5)
    field = [1e9 * earth['intensity_t'], earth['inclination_deg'], earth['declination_deg']]
    np.testing.assert_allclose(field, [wmm.f, wmm.i, wmm.d], rtol=1e-9, err_msg='pygeomag')
    east_north_up = [1e-9 * wmm.y, 1e-9 * wmm.x, -1e-9 * wmm.z]
    np.testing.assert_allclose(earth['east_north_up_t'], east_north_up)


def test_extremes_of_the_map_equal_the_field_at_their_positions(capsys: Capture) -> None:
    level = world_record(capsys, 'dipole_room', '--area', '-1,3,0,2.5', '--height', '-0.4')['map']
    assert (level['area_m'], level['height_m']) == ([-1.0, 3.0, 0.0, 2.5], -0.4)
    world = load_world('dipole_room')
    at = np.array([level['least_at_m'], level['most_at_m']])
    sizes = np.linalg.norm(world.magnetic_field(at), axis=1)
    np.testing.assert_allclose(sizes, [level['least_t'], level['most_t']], rtol=1e-12)
    low, high = np.array([-1.0, 0.0, -0.4]), np.array([3.0, 2.5, -0.4])
    places = np.random.default_rng(3).uniform(low, high, (300, 3))
    # The field changes by a few percent between points of the map, which are 2 cm apart.
    other = np.linalg.norm(world.magnetic_field(places), axis=1)
    assert other.min() > 0.9 * level['least_t']
    assert other.max() < 1.1 * level['most_t']


def test_a_dipole_across_north_deflects_a_compass_by_the_angle_of_the_total_field() -> None:
    """The field 1 m above a dipole that points east is mu_0 m / (4 pi) to the west."""
    across = Dipoles.from_frames([0.0, 0.0, 0.0], [0.0, math.pi / 2, 0.0], [100.0])
    world = World(earth_field=NORTH, dipoles=across)
    error = world_map(world, (-1e-3, 1e-3, -1e-3, 1e-3), 1.0).compass_error
    assert error is not None
    np.testing.assert_allclose(error, math.atan2(-1e-5, 2e-5), atol=1e-5)
    east = World(earth_field=EarthField(model='constant', value=(2e-5, 0.0, 0.0)))
    assert not np.any(world_map(east).compass_error)
    pole = World(earth_field=EarthField(model='constant', value=(0.0, 0.0, -6e-5)))
    assert world_map(pole).compass_error is None


def test_a_map_through_a_dipole_is_finite_and_infinite_fields_are_refused() -> None:
    """The dipole is at the centre of the map, where the distance is zero."""
    world = World(
        earth_field=NORTH, dipoles=Dipoles.from_frames(np.zeros((1, 3)), np.zeros(3), [5.0])
    )
    level = world_map(world, (-0.01, 0.01, -0.01, 0.01), 0.0)
    assert level.intensity.max() == pytest.approx(1.0, rel=1e-3)
    huge = World(
        earth_field=NORTH, dipoles=Dipoles.from_frames(np.zeros((1, 3)), np.zeros(3), [1e300])
    )
    with pytest.raises(ParameterError, match='finite'):
        world_map(huge)


def test_the_disturbance_is_the_field_of_the_dipoles_and_has_a_panel_per_axis() -> None:
    world = load_world('dipole_room')
    level = world_map(world, (0.0, 8.0, 0.0, 10.0), 1.2)
    at = np.array([level.place(0), level.place(1234)])
    drawn = level.disturbance.reshape(-1, 3)[[0, 1234]]
    np.testing.assert_allclose(drawn, world.dipoles.field(at), rtol=1e-9, atol=1e-15)
    titles = [axes.get_title(loc='left') for axes in components_figure(level, 'room').axes]
    assert [title[:1] for title in titles if title] == ['x', 'y', 'z']


@pytest.mark.parametrize('name', world_names())
def test_the_map_of_a_shipped_world_covers_its_objects(name: str) -> None:
    world = load_world(name)
    x0, x1, y0, y1 = default_area(world)
    places = object_positions(world)
    assert ((places[:, :2] > [x0, y0]) & (places[:, :2] < [x1, y1])).all()
    assert not len(places) or places[:, 2].min() <= default_height(world) <= places[:, 2].max()
    level = world_map(world)
    assert np.isfinite(level.field).all()
    for middles, low, high in ((level.x, x0, x1), (level.y, y0, y1)):
        sides = np.linspace(low, high, len(middles) + 1)
        np.testing.assert_allclose(middles, (sides[:-1] + sides[1:]) / 2.0, atol=1e-12)
    panels = [axes for axes in world_figure(level, name).axes if axes.get_xlabel()]
    assert len(panels) == (2 if len(world.dipoles) else 1)
    assert panels[0].get_xlim() == (x0, x1)


def test_worlds_are_drawn(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path('mine.yaml').write_text(USER_WORLD, encoding='utf-8')
    line = 'world', 'mine.yaml', '--out', 'maps'
    outcome = call(capsys, *line)
    assert outcome.status == 0
    assert '1 dipole, 13 landmarks, 2 chessboards, 2 tags' in outcome.out
    picture = image.imread('maps/map.png')
    assert min(picture.shape[:2]) > 300
    world = load_world('mine.yaml')
    assert [ids.tolist() for ids in world.chessboards] == [
        [[7, 8, 9], [10, 11, 12]], [[20, 21], [22, 23], [24, 25]]
    ]  # fmt: skip
    rows = [world.landmarks.ids.tolist().index(number) for number in range(7, 13)]
    expected = chessboard(2, 3, 0.1, (1.0, 2.0, 0.0), (0.0, 0.0, 0.5))
    np.testing.assert_array_equal(world.landmarks.positions[rows], expected)


@pytest.mark.parametrize(
    ('line', 'named'),
    [
        ('rom', 'rom'),
        ('gone.yaml', 'gone.yaml'),
        ('default --area 1,2,3', '1,2,3'),
        ('default --area 1,nan,0,1', '1,nan,0,1'),
        ('default --area 1,0,0,1', '1,0,0,1'),
        ('default --area 0,1e14,0,1', '1e+07'),
        ('default --height inf', 'inf'),
        ('default --year 2031', '2031'),
        ('default --out file.txt', 'file.txt'),
        ('default --components --out map', 'dipole_room'),
        ('dipole_room --components', '--out'),
        ('default --out file.txt/map', 'file.txt'),
    ],
)
def test_a_wrong_command_line_is_refused_in_one_line(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, named: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path('file.txt').write_text('mine', encoding='utf-8')
    check_refused(capsys, named, 'world', *line.split())


def test_a_year_uses_the_latest_model_published_until_then() -> None:
    years = 2010.0, 2014.99, 2015.0, 2020.0, 2030.0
    assert [wmm_epoch(year) for year in years] == ['2010', '2010', '2015v2', '2020', '2025']
    with pytest.raises(ParameterError):
        wmm_epoch(2030.1)
