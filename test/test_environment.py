# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Geodesy against pyproj's own transformations and geodesics."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyproj import Geod, Transformer

from sim_sensors.core.errors import MotionError, ParameterError
from sim_sensors.world.geodesy import DEFAULT_ORIGIN, LocalFrame

ORIGINS = [
    DEFAULT_ORIGIN,
    LocalFrame(0.0, 0.0, 0.0),
    LocalFrame(-33.9, 18.4, 25.0),
    LocalFrame(69.6, -150.0, 3000.0),
]


def points(scale, n=200):
    generator = np.random.default_rng(5)
    return generator.uniform(-1.0, 1.0, (n, 3)) * [scale, scale, min(scale, 100.0)]


def earth_centred(latitude, longitude, altitude):
    """ECEF by PROJ (EPSG:4979 to EPSG:4978)."""
    transformer = Transformer.from_crs('EPSG:4979', 'EPSG:4978', always_xy=True)
    return np.stack(transformer.transform(longitude, latitude, altitude), axis=-1)


def enu_through_ecef(frame, latitude, longitude, altitude):
    """The textbook rotation of the difference of two Earth-centred vectors."""
    f, g = math.radians(frame.latitude_deg), math.radians(frame.longitude_deg)
    rotation = np.array(
        [
            [-math.sin(g), math.cos(g), 0.0],
            [-math.sin(f) * math.cos(g), -math.sin(f) * math.sin(g), math.cos(f)],
            [math.cos(f) * math.cos(g), math.cos(f) * math.sin(g), math.sin(f)],
        ]
    )
    origin = earth_centred(frame.latitude_deg, frame.longitude_deg, frame.altitude_m)
    return (earth_centred(latitude, longitude, altitude) - origin) @ rotation.T


@pytest.mark.parametrize('frame', ORIGINS, ids=str)
@pytest.mark.parametrize('scale', [10.0, 1e3, 1e5])
def test_local_coordinates_agree_with_earth_centred_geometry(frame, scale):
    """The oracle is PROJ through ECEF, to 5 nm: the resolution of differences of 6.4e6 m."""
    enu = points(scale)
    geodetic = frame.to_geodetic(enu)
    close = {'rtol': 0, 'atol': 5e-9, 'err_msg': 'PROJ through ECEF'}
    expected = enu_through_ecef(frame, *geodetic)
    np.testing.assert_allclose(expected, enu, **close)
    np.testing.assert_allclose(frame.to_enu(*geodetic), expected, **close)


@pytest.mark.parametrize('scale', [1.0, 100.0, 1e4, 1e5])
def test_the_round_trip_at_the_origin_of_the_paper_is_exact_to_a_nanometre(scale):
    enu = points(scale, 5000)
    back = DEFAULT_ORIGIN.to_enu(*DEFAULT_ORIGIN.to_geodetic(enu))
    np.testing.assert_allclose(back, enu, rtol=0, atol=1e-9)


@given(
    st.floats(-89.9, 89.9),
    st.floats(-180.0, 180.0),
    st.floats(-400.0, 9000.0),
    st.tuples(*[st.floats(-2000.0, 2000.0)] * 3),
)
def test_enu_to_geodetic_and_back_is_exact_anywhere_on_earth(latitude, longitude, altitude, enu):
    """Tolerance 2 nm: doubles near 180 degrees are 3.2 nm apart on the equator."""
    frame = LocalFrame(latitude, longitude, altitude)
    position = np.array([enu])
    back = frame.to_enu(*frame.to_geodetic(position))
    np.testing.assert_allclose(back, position, rtol=0, atol=2e-9)


@pytest.mark.parametrize('azimuth', range(0, 360, 45))
@pytest.mark.parametrize('frame', ORIGINS, ids=str)
def test_a_hundred_metres_on_the_ellipsoid_are_a_hundred_metres(frame, azimuth):
    """The oracle is the geodesic of pyproj from an origin on the ellipsoid, to 0.1 mm."""
    ground = LocalFrame(frame.latitude_deg, frame.longitude_deg, 0.0)
    east, north = 100.0 * math.sin(math.radians(azimuth)), 100.0 * math.cos(math.radians(azimuth))
    latitude, longitude, altitude = ground.to_geodetic(np.array([[east, north, 0.0]]))
    forward, _, distance = Geod(ellps='WGS84').inv(
        ground.longitude_deg, ground.latitude_deg, longitude[0], latitude[0]
    )
    assert distance == pytest.approx(100.0, abs=1e-4)
    assert (forward - azimuth + 180.0) % 360.0 - 180.0 == pytest.approx(0.0, abs=1e-4)
    # The tangent plane leaves the ellipsoid by d^2/(2 R), the curvature of docs/sensors.
    assert altitude[0] == pytest.approx(100.0**2 / (2.0 * 6.371e6), rel=0.01)


def test_the_sphere_of_chrono_is_9_cm_short_in_100_m():
    """The oracle detects an error of this size [Chrono]."""
    end = 43.07 + math.degrees(100.0 / 6371000.0)
    _, _, distance = Geod(ellps='WGS84').inv(-89.4, 43.07, -89.4, end)
    assert distance - 100.0 == pytest.approx(-0.09, abs=0.02)


def test_conversion_of_a_point_does_not_depend_on_the_others():
    enu = points(1e3)
    whole = np.stack(DEFAULT_ORIGIN.to_geodetic(enu), axis=1)
    single = np.stack([np.ravel(DEFAULT_ORIGIN.to_geodetic(row[None])) for row in enu])
    assert single.tobytes() == whole.tobytes()
    back = DEFAULT_ORIGIN.to_enu(*whole.T)
    single_back = np.concatenate([DEFAULT_ORIGIN.to_enu(*row[:, None]) for row in whole])
    assert single_back.tobytes() == back.tobytes()


@pytest.mark.parametrize('bad', [math.nan, math.inf, 1e300])
def test_positions_off_the_earth_are_refused(bad):
    with pytest.raises(MotionError, match='position 1'):
        DEFAULT_ORIGIN.to_geodetic(np.array([[0.0, 0.0, 0.0], [bad, 0.0, 0.0]]))


def test_origin_off_the_globe_is_refused():
    with pytest.raises(ParameterError, match='latitude_deg'):
        LocalFrame(91, 0.0, 0.0)
