# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Drifting GPS of Hector and PX4, and geodesies, to 4.5 standard errors; seeds are fixed."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import scipy.linalg
from gps_examples import SIGMAS, ensemble, lag_one, still, upstream
from pyproj import Geod, Proj

from sim_sensors.gps.gps import GpsModel, load_gps
from sim_sensors.gps.simulators import HectorNoise, Px4ClassicNoise, Px4MarkovNoise
from sim_sensors.world.geodesy import DEFAULT_ORIGIN, GEODESIES, LocalFrame, to_geodetic

LATITUDE = math.radians(DEFAULT_ORIGIN.latitude_deg)


@pytest.mark.parametrize('dt', [0.01, 0.25, 10.0])
def test_hector_drift_depends_on_the_rate_only_as_upstream(dt):
    """Exact sigma_d; as upstream sigma_d dt sqrt(2 f / (1 - exp(-2 f dt))), about sqrt(dt)."""
    f, sigma, n = 1.0, 2.0, 40_000
    noise = HectorNoise(drift=(sigma,) * 3, drift_frequency=f)
    steps = [dt] * 8
    exact = ensemble(noise, steps)[:, -1]
    bound = SIGMAS * math.sqrt(0.5 / exact.size)
    assert exact.std() == pytest.approx(sigma, rel=bound)
    # One receiver for long, blocks of many correlation times: from its start the drift forgets.
    factor = dt * math.sqrt(2.0 * f / -math.expm1(-2.0 * f * dt))
    process = upstream(noise).start(1, 'a', 'gps')
    values = process.advance(np.full(n, dt))[n // 20 :]
    count = values.size * min(1.0, f * dt)
    assert values.std() == pytest.approx(sigma * factor, rel=SIGMAS * math.sqrt(1.0 / count))
    if dt == 0.01:
        assert factor == pytest.approx(0.1, rel=1e-2)


def test_hector_velocity_drift_is_integrated_into_the_position():
    """Against the matrix exponential (Van Loan) of the two coupled equations."""
    f, g, std, speed = 0.02, 0.05, 0.5, 0.3
    noise = HectorNoise(
        drift=(std,) * 3, drift_frequency=f, velocity_drift=(speed,) * 3,
        velocity_drift_frequency=g,
    )  # fmt: skip
    drive = np.diag([2.0 * f * std**2, 2.0 * g * speed**2])
    system = np.array([[-f, 1.0], [0.0, -g]])

    def covariance(t):
        """Return the covariance of the state after t, from independent d and v."""
        block = np.block([[-system, drive], [np.zeros((2, 2)), system.T]])
        e = scipy.linalg.expm(block * t)
        phi = e[2:, 2:].T
        return phi @ np.diag([std**2, speed**2]) @ phi.T + phi @ e[:2, 2:]

    errors = ensemble(noise, [0.5, 9.5, 30.0], 1500)
    bound = SIGMAS * math.sqrt(2.0 / errors[:, 0].size)
    for k, t in enumerate((0.5, 10.0, 40.0)):
        assert errors[:, k].var() == pytest.approx(covariance(t)[0, 0], rel=bound)
    phi = scipy.linalg.expm(system * 30.0)
    between = (phi @ covariance(10.0))[0, 0]
    measured = (errors[:, 1] * errors[:, 2]).mean()
    scale = math.sqrt(covariance(10.0)[0, 0] * covariance(40.0)[0, 0])
    assert measured == pytest.approx(between, abs=bound * scale)
    fresh = ensemble(dataclasses.replace(noise, drift=(0.0,) * 3), [0.1], 500)[:, 0]
    assert fresh.std() == pytest.approx(speed * 0.1, rel=SIGMAS * math.sqrt(0.5 / fresh.size))


def test_hector_states_the_variance_of_drift_and_noise():
    model = load_gps('hector_gps')
    assert model.rate == 4.0
    expected = np.asarray(model.noise.drift) ** 2 + np.asarray(model.noise.gaussian_noise) ** 2
    np.testing.assert_allclose(np.asarray(model.covariance.std) ** 2, expected, rtol=1e-12)
    errors = ensemble(model.noise, [0.25], 600)[:, 0]
    nees = (errors**2 / expected).sum(axis=1)
    assert nees.mean() == pytest.approx(3.0, abs=SIGMAS * math.sqrt(6.0 / len(nees)))


@pytest.mark.parametrize(('rate', 'expected'), [(250.0, 2.8e-3), (1000.0, 0.35e-3)])
def test_px4_classic_bias_as_upstream_is_millimetres_and_depends_on_the_physics(rate, expected):
    """walk h^1.5 / sqrt(1 - (59/60)^2), and it is forgotten within 60 steps."""
    noise = upstream(Px4ClassicNoise(physics_rate=rate, noise_density=(0.0,) * 3))
    values = noise.start(1, 'a', 'gps').advance(np.full(20_000, 0.2))[100:]
    stationary = 2.0 * rate**-1.5 / math.sqrt(1.0 - (59.0 / 60.0) ** 2)
    assert stationary == pytest.approx(expected, rel=0.02)
    memory = (59.0 / 60.0) ** (0.2 * rate)
    n = len(values) * (1.0 - memory) / (1.0 + memory)
    measured = values.std(0) / (stationary, stationary, 2.0 * stationary)
    np.testing.assert_allclose(measured, 1.0, rtol=SIGMAS * math.sqrt(0.5 / n))
    np.testing.assert_allclose(lag_one(values), memory, atol=SIGMAS / math.sqrt(n))


def test_px4_classic_noise_over_one_long_step_equals_that_of_many_physics_steps():
    """50 steps at once have the law of 50 steps."""
    noise = upstream(Px4ClassicNoise(noise_density=(0.0,) * 3))
    many = ensemble(noise, [0.004] * 50)[:, -1]
    once = ensemble(noise, [0.2])[:, -1]
    bound = SIGMAS * math.sqrt(1.0 / many[:, 0].size)
    np.testing.assert_allclose(once.std(0) / many.std(0), 1.0, rtol=bound)


def test_px4_classic_drifts_eleven_metres_over_a_minute():
    """walk sqrt(tau / 2) and exp(-t / tau)."""
    errors = ensemble(Px4ClassicNoise(), [0.2, 60.0], 800)
    n = len(errors)
    expected = np.array([2.0, 2.0, 4.0]) * math.sqrt(30.0)
    tolerance = SIGMAS * math.sqrt(0.5 / n)
    np.testing.assert_allclose(errors[:, 0].std(0), expected, rtol=tolerance)
    measured = np.corrcoef(errors[:, 0, 0], errors[:, 1, 0])[0, 1]
    assert measured == pytest.approx(math.exp(-1.0), abs=SIGMAS / math.sqrt(n))


@pytest.mark.parametrize(
    ('name', 'a', 'step', 'expected'),
    [('px4_gz_bridge_gps', 0.93, 0.008, 0.0218), ('px4_sensor_gps_sim', 0.76, 0.016, 0.0246)],
)
@pytest.mark.parametrize('is_exact', [True, False])
def test_px4_markov_noise_has_the_stated_variance_and_correlation_at_its_rate(
    name, a, step, expected, is_exact
):
    """q / sqrt(1 - a^2) and lag-one correlation a; as upstream the east is cos(latitude) of it."""
    model = load_gps(name)
    if not is_exact:
        model = dataclasses.replace(model, noise=upstream(model.noise))
    n = 20_000
    error = still(model, n).position_error[200:]
    assert step / math.sqrt(1.0 - a * a) == pytest.approx(expected, abs=1e-4)
    effective = n * (1.0 - a * a) / (1.0 + a * a)
    bound = SIGMAS * math.sqrt(0.5 / effective) + (0.0 if is_exact else 4e-3)
    east = 1.0 if is_exact else math.cos(LATITUDE)
    axes = expected * np.array([east, 1.0, 1.5])
    np.testing.assert_allclose(error.std(0), axes, rtol=bound + 2e-3)
    np.testing.assert_allclose(lag_one(error), a, atol=SIGMAS * math.sqrt((1.0 - a * a) / n))


def test_px4_markov_noise_as_upstream_decorrelates_faster_at_a_higher_rate():
    noise = upstream(Px4MarkovNoise())
    for rate in (10.0, 100.0):
        values = noise.start(1, 'a', 'gps').advance(np.full(20_000, 1.0 / rate))[200:]
        bound = SIGMAS * math.sqrt((1.0 - 0.93**2) / len(values))
        np.testing.assert_allclose(lag_one(values), 0.93, atol=bound)


ENU = np.array([[0.0, 0.0, 0.0], [100.0, 0.0, 1.0], [0.0, 100.0, -2.0], [-800.0, 1500.0, 10.0]])


@pytest.mark.parametrize(
    ('geodesy', 'projection'),
    [
        ('px4_classic', '+proj=aeqd +R=6353000 +lat_0={lat} +lon_0={lon}'),
        (
            'carla_transverse_mercator',
            '+proj=tmerc +R=6378137 +k=0.9996 +lat_0={lat} +lon_0={lon}',
        ),
        ('carla_mercator', '+proj=merc +R=6378137 +lat_ts={lat} +lon_0={lon}'),
    ],
)
def test_projections_agree_with_proj_to_1e_12_degrees(geodesy, projection):
    frame = LocalFrame(43.07, -89.4, 260.0)
    proj = Proj(projection.format(lat=43.07, lon=-89.4))
    start = np.array(proj(-89.4, 43.07))
    longitude, latitude = proj(ENU[:, 0] + start[0], ENU[:, 1] + start[1], inverse=True)
    measured = to_geodetic(geodesy, frame, ENU)
    np.testing.assert_allclose(measured[0], latitude, rtol=0, atol=1e-12)
    np.testing.assert_allclose(measured[1], longitude, rtol=0, atol=2e-12)
    origin = 520.0 if geodesy == 'carla_transverse_mercator' else 260.0
    np.testing.assert_allclose(measured[2], origin + ENU[:, 2])


@pytest.mark.parametrize('geodesy', GEODESIES)
def test_geodesies_of_simulators_have_known_scale_errors_against_pyproj(geodesy):
    """Chrono's manual: its sphere costs -0.09 % north and +0.27 % east at mid latitudes."""
    frame = LocalFrame(43.07, -89.4, 0.0)
    lat, lon, _ = to_geodetic(geodesy, frame, np.array([[100.0, 0.0, 0.0], [0.0, 100.0, 0.0]]))
    east, north = Geod(ellps='WGS84').inv([-89.4] * 2, [43.07] * 2, lon, lat)[2]
    expected = {
        'wgs84': (0.0, 0.0),
        'hector': (0.0, 0.0),
        'chrono_sphere': (0.27e-2, -0.09e-2),
        'px4_classic': (0.55e-2, 0.19e-2),
        'carla_mercator': (0.16e-2, -0.20e-2),
        'carla_transverse_mercator': (0.20e-2, -0.16e-2),
    }[geodesy]
    assert (east / 100.0 - 1.0, north / 100.0 - 1.0) == pytest.approx(expected, abs=1.1e-4)


@pytest.mark.parametrize('geodesy', GEODESIES)
def test_the_stated_error_includes_the_error_of_the_geodesy(geodesy):
    fixes = still(GpsModel(geodesy=geodesy), 3)
    enu = DEFAULT_ORIGIN.to_enu(fixes.latitude, fixes.longitude, fixes.altitude)
    np.testing.assert_allclose(fixes.position_error, enu, atol=1e-8)
