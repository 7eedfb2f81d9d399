# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Fixes on the UTM grid, against the registry of zones of PROJ."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyproj import Transformer

from sim2real_eval.judge.robot_localization.fixes import Plane, to_utm, utm_zone


@given(st.floats(-79.9, 83.9), st.floats(-180.0, 180.0, exclude_max=True))
def test_utm_coordinates_agree_with_the_epsg_definition(latitude: float, longitude: float) -> None:
    """EPSG:326zz and 327zz, from the registry that ships with PROJ, to 1e-6 m."""
    zone = utm_zone(latitude, longitude)
    epsg = (32600 if latitude >= 0.0 else 32700) + zone
    oracle = Transformer.from_crs('EPSG:4326', f'EPSG:{epsg}', always_xy=True)
    easting, northing, _ = to_utm(np.array([latitude]), np.array([longitude]))
    expected = oracle.transform(longitude, latitude)
    assert abs(easting[0] - expected[0]) < 1e-6
    assert abs(northing[0] - expected[1]) < 1e-6


@pytest.mark.parametrize(
    ('latitude', 'longitude', 'zone'),
    [
        (0.0, -180.0, 1), (0.0, 180.0, 1), (43.07, -89.4, 16), (48.0, 11.0, 32), (55.99, 4.0, 31),
        (60.4, 5.3, 32), (60.0, 2.9, 31), (78.2, 15.6, 33), (75.0, 8.9, 31), (75.0, 9.0, 33),
        (75.0, 41.9, 37), (75.0, 42.0, 38), (-33.9, 151.2, 56),
    ],
)  # fmt: skip
def test_utm_zones_have_the_exceptions_of_norway_and_svalbard(
    latitude: float, longitude: float, zone: int
) -> None:
    assert utm_zone(latitude, longitude) == zone


@given(st.floats(-79.0, 83.0), st.floats(-179.99, 179.99))
def test_the_grid_convergence_is_the_direction_of_true_north(
    latitude: float, longitude: float
) -> None:
    """Finite differences of 2 m along the meridian, to 1e-7 rad."""
    step = 1e-5
    latitudes = np.array([latitude, latitude - step, latitude + step])
    easting, northing, convergence = to_utm(latitudes, np.full(3, longitude))
    angle = math.atan2(easting[2] - easting[1], northing[2] - northing[1])
    assert abs(angle + convergence[0]) < 1e-7 or abs(latitude) < 1e-4


def test_an_empty_array_of_fixes_is_projected_to_an_empty_array() -> None:
    assert [len(array) for array in to_utm(np.zeros(0), np.zeros(0))] == [0, 0, 0]


def test_a_track_over_a_zone_border_has_no_jump() -> None:
    """Fixes from zone 32 to 33 are projected in the zone of the first: even steps of 7.46 m."""
    easting, _, _ = to_utm(np.full(3, 48.0), np.array([11.9999, 12.0, 12.0001]))
    steps = np.diff(easting)
    assert steps[0] == pytest.approx(steps[1], rel=1e-5)
    assert steps[0] == pytest.approx(7.46, abs=0.02)


@pytest.mark.parametrize(
    ('latitude', 'longitude', 'is_inside'),
    [
        (43.0, -89.4, True),
        (43.0, -93.0, True),  # easting 11 km, in the neighbouring zone
        (43.0, -93.5, False),
        (0.0, 0.0, False),
        (43.0, -80.0, False),  # easting 1073 km
        (83.9, -87.0, True),
        (43.0, 93.0, False),  # the opposite meridian, where the projection is finite again
        (-43.0, -89.4, True),  # negative northing down to -9100 km
        (math.nan, -89.4, False),
    ],
)
def test_positions_outside_the_zone_cannot_be_projected(
    latitude: float, longitude: float, is_inside: bool
) -> None:
    """Limits of GeographicLib, which robot_localization uses: easting 0 to 1000 km."""
    zone = Plane(43.07, -89.4, tangent=False)
    position = np.array([latitude]), np.array([longitude])
    assert zone.contains(*position)[0] == is_inside
    tangent = Plane(43.07, -89.4, tangent=True)
    assert tangent.contains(*position)[0] == bool(np.isfinite(latitude))
