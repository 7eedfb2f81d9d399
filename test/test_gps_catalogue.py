# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""GPS models of other simulators and of data sheets, each with the law of its source.

Statistical bounds are 4.5 standard errors (7e-6 per comparison, less than 1e-3 per test); seeds
are fixed.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from gps_examples import SIGMAS, ensemble, lag_one, still, upstream, variances
from stepping_examples import assert_stepping_gives_the_same_bits

from sim_sensors.gps.gps import POSITION_NOISES, GpsModel, load_gps, simulate
from sim_sensors.gps.simulators import GazeboPositionNoise, GeodeticNoise
from sim_sensors.motion.scenarios import Circle, Standstill
from sim_sensors.sensor.catalogue import preset_names
from sim_sensors.world.geodesy import DEFAULT_ORIGIN

LATITUDE = math.radians(DEFAULT_ORIGIN.latitude_deg)


PRESETS = {name: load_gps(name) for name in preset_names('gps')}


def with_upstream():
    """Return every model, and its upstream variant where that has defects."""
    for name, model in PRESETS.items():
        yield pytest.param(model, id=name)
        if 'variant' in model.noise.declarations():
            model = dataclasses.replace(model, noise=upstream(model.noise))
            yield pytest.param(model, id=f'{name} as upstream')


@pytest.mark.parametrize('model', list(with_upstream()))
def test_results_do_not_depend_on_the_chunking(model):
    model = dataclasses.replace(model, lever_arm=(0.3, 0.1, 0.2))
    truth = Circle(duration=20.0).at(3.0 + np.arange(60) * 0.13)
    sensor, whole = assert_stepping_gives_the_same_bits(model, truth, [1, 2, 2, 17, 18, 40])
    assert sensor.position_error.tobytes() == whole.position_error[-1].tobytes()


@pytest.mark.parametrize('model', list(with_upstream()))
def test_the_stated_error_equals_the_error_of_the_positions(model):
    fixes = still(model, 60)
    has_fix = np.isfinite(fixes.latitude)
    enu = DEFAULT_ORIGIN.to_enu(
        fixes.latitude[has_fix], fixes.longitude[has_fix], fixes.altitude[has_fix]
    )
    np.testing.assert_allclose(fixes.position_error[has_fix], enu, rtol=1e-9, atol=2e-9)
    assert np.isnan(fixes.position_error[~has_fix]).all()


# Intervals over which the errors of a kind change, s; 1 s for all others.
TIMES = {
    'chrono_random_walk': 4.0, 'gnss': 45.0, 'gazebo': 300.0, 'hector': 1000.0,
    'px4_classic': 60.0, 'px4_markov': 0.4,
}  # fmt: skip
NOISES = {
    name: model.noise
    for name, model in PRESETS.items()
    if model.noise.kind != 'none' and 'airsim' not in name
}


def law_changes_with_the_rate(noise):
    """Compare variance and correlation of two times at one and at four steps between them."""
    time, runs = TIMES.get(noise.kind, 1.0), 400
    slow = ensemble(noise, [time, time], runs)
    fast = ensemble(noise, [time / 4.0] * 8, runs)[:, [3, 7]]
    n = 3 * runs
    statistics = []
    for errors in (slow, fast):
        scaled = errors / np.sqrt((slow**2).mean(axis=(0, 1)))
        correlation = (scaled[:, 0] * scaled[:, 1]).mean() / math.sqrt(
            (scaled[:, 0] ** 2).mean() * (scaled[:, 1] ** 2).mean()
        )
        statistics.append(((scaled**2).mean(axis=(0, 2)), correlation))
    ratio = np.log(statistics[1][0] / statistics[0][0])
    is_same = (np.abs(ratio) < SIGMAS * math.sqrt(4.0 / n)).all()
    return not (is_same and abs(statistics[1][1] - statistics[0][1]) < SIGMAS * math.sqrt(2.0 / n))


@pytest.mark.parametrize('name', NOISES)
def test_the_error_distribution_does_not_depend_on_the_rate_of_the_fixes(name):
    """At 1200 pairs a variance is known to 8 % and a correlation to 0.04."""
    assert not law_changes_with_the_rate(NOISES[name])


def test_only_these_upstream_noises_depend_on_the_rate():
    """Gazebo has other defects; PX4's classic plugin runs at the rate of the physics."""
    cases = {
        name: upstream(noise)
        for name, noise in NOISES.items()
        if 'variant' in noise.declarations()
    }
    changing = {name for name, noise in cases.items() if law_changes_with_the_rate(noise)}
    assert changing == {'hector_gps', 'px4_gz_bridge_gps', 'px4_sensor_gps_sim'}


def test_every_kind_of_noise_is_in_the_catalogue():
    assert {model.noise.kind for model in PRESETS.values()} == set(
        POSITION_NOISES.names(installed=False)
    )


def test_gazebo_bias_is_a_symmetric_mixture():
    """Mean 0, E[bias^2] = bias_mean^2 + bias_std^2, and half of it at each sign."""
    noise = GazeboPositionNoise(bias_mean=(2.0, 2.0, 2.0), bias_std=(0.5, 0.5, 0.5))
    bias = ensemble(noise, [1.0], 2000)[:, 0]
    n = bias.size
    assert bias.mean() == pytest.approx(0.0, abs=SIGMAS * math.sqrt(4.25 / n))
    # Var of a square: E[b^4] - E[b^2]^2 of the mixture of N(+-2, 0.5) is 4.125.
    assert (bias**2).mean() == pytest.approx(4.25, abs=SIGMAS * math.sqrt(4.125 / n))
    assert (bias > 0.0).mean() == pytest.approx(0.5, abs=SIGMAS * math.sqrt(0.25 / n))
    np.testing.assert_allclose(
        np.corrcoef(bias.T), np.eye(3), atol=SIGMAS * math.sqrt(1.0 / len(bias))
    )


def test_gazebo_classic_adds_noise_in_metres_and_states_only_the_noise():
    model = load_gps('gazebo_classic_gps')
    fixes = still(model, 5000)
    error = fixes.position_error
    np.testing.assert_allclose(error.std(0), (0.3, 0.3, 0.6), rtol=SIGMAS * math.sqrt(0.5 / 5000))
    assert (np.abs(error.mean(0)) > (0.1, 0.1, 0.2)).all()
    np.testing.assert_allclose(variances(fixes)[0], (0.09, 0.09, 0.36))
    assert fixes.covariance_type == 2


def test_the_gz_dynamic_bias_has_the_deviation_and_correlation_of_its_density():
    """dyn_std sqrt(Tc / 2) at any time and exp(-lag / Tc) between two."""
    noise = GazeboPositionNoise(dynamic_bias_std=(0.02, 0.02, 0.02), dynamic_bias_time=600.0)
    errors = ensemble(noise, [1.0, 300.0], 800)
    n = errors[:, 0].size
    expected = 0.02 * math.sqrt(300.0)
    assert errors.std(axis=(0, 2)) == pytest.approx(
        [expected] * 2, rel=SIGMAS * math.sqrt(0.5 / n)
    )
    correlation = np.corrcoef(errors[:, 0].ravel(), errors[:, 1].ravel())[0, 1]
    assert correlation == pytest.approx(math.exp(-0.5), abs=SIGMAS * math.sqrt(1.0 / n))


def test_gz_navsat_as_upstream_has_a_constant_bias_and_noise_in_degrees():
    noise = upstream(GazeboPositionNoise(
        std=(1e-5, 9.0, 0.6), bias_mean=(1e-4, 9.0, 0.0), dynamic_bias_std=(1.0, 1.0, 1.0),
        dynamic_bias_time=10.0,
    ))  # fmt: skip
    n = 5000
    fixes = still(GpsModel(noise=noise), n)
    latitude = fixes.latitude - DEFAULT_ORIGIN.latitude_deg
    longitude = fixes.longitude - DEFAULT_ORIGIN.longitude_deg
    assert latitude.std() == pytest.approx(1e-5, rel=SIGMAS * math.sqrt(0.5 / n))
    assert longitude.std() == pytest.approx(1e-5, rel=SIGMAS * math.sqrt(0.5 / n))
    bound = SIGMAS * 1e-5 / math.sqrt(n)
    assert abs(latitude.mean()) == pytest.approx(1e-4, abs=bound)
    assert longitude.mean() == pytest.approx(latitude.mean(), abs=2.0 * bound)
    # The remaining error is white: the dynamic bias never moves.
    centred = np.stack([latitude - latitude.mean(), longitude - longitude.mean()], axis=1)
    np.testing.assert_allclose(lag_one(centred), 0.0, atol=SIGMAS / math.sqrt(n))
    assert np.corrcoef(centred.T)[0, 1] == pytest.approx(0.0, abs=SIGMAS / math.sqrt(n))


def test_the_gz_navsat_preset_as_upstream_has_errors_of_tens_of_kilometres():
    """A deviation of 0.3 m in SDF becomes 0.3 degrees, and the covariance stays zero."""
    model = load_gps('gz_navsat')
    fixes = still(dataclasses.replace(model, noise=upstream(model.noise)), 500)
    assert fixes.position_error[:, :2].std() > 20e3
    assert still(model, 500).position_error.std() < 3.0
    assert not fixes.position_covariance.any()
    assert fixes.covariance_type == 0


def test_rotors_states_metres_of_error_for_error_free_positions():
    fixes = still(load_gps('rotors_gps'), 100)
    assert not fixes.position_error.any()
    np.testing.assert_array_equal(variances(fixes)[-1], (9.0, 9.0, 36.0))
    assert fixes.covariance_type == 3


def test_carla_adds_noise_in_degrees():
    """The deviation is 111.2 km per degree north, and that times cos(latitude) east."""
    n = 5000
    error = still(load_gps('carla_gnss'), n).position_error
    degree = math.radians(6371e3)
    expected = np.array([5e-6 * degree * math.cos(LATITUDE), 5e-6 * degree, 5e-6])
    # The ellipsoid differs from the sphere of 111.2 km by up to 0.3 %.
    np.testing.assert_allclose(error.std(0), expected, rtol=SIGMAS * math.sqrt(0.5 / n) + 4e-3)
    np.testing.assert_allclose(lag_one(error), 0.0, atol=SIGMAS / math.sqrt(n))


def test_the_chrono_demo_has_an_error_of_a_metre_on_every_axis():
    n = 5000
    error = still(load_gps('chrono_default'), n).position_error
    np.testing.assert_allclose(error.mean(0), 1.0, atol=SIGMAS * 3.0 / math.sqrt(n))
    np.testing.assert_allclose(error.std(0), (2.0, 3.0, 1.0), rtol=SIGMAS * math.sqrt(0.5 / n))


@pytest.mark.parametrize('name', ['gnss_ins_sim_gps', 'zed_f9p_rtk', 'zed_f9p_changing'])
def test_consistent_presets_state_the_covariance_of_their_errors(name):
    """NEES of 400 receivers has mean 3 with standard error sqrt(6/n)."""
    model = load_gps(name)
    truth = Standstill(duration=200.0).at([0.0, 150.0])
    nees = []
    for k in range(400):
        fixes = model.start(k, 'a').measure(truth)
        if fixes.status[-1] >= 0:
            nees.append((fixes.position_error[-1] ** 2 / variances(fixes)[-1]).sum())
    assert len(nees) > 300
    assert np.mean(nees) == pytest.approx(3.0, abs=SIGMAS * math.sqrt(6.0 / len(nees)))


def test_errors_of_a_zed_f9p_match_its_data_sheet():
    """Half of the fixes within 1 cm on the map (CEP), half within 1 cm in height (R50)."""
    error = ensemble(load_gps('zed_f9p_rtk').noise, [1.0], 1500)[:, 0]
    bound = SIGMAS * math.sqrt(0.25 / len(error)) + 0.005
    assert (np.hypot(error[:, 0], error[:, 1]) < 0.01).mean() == pytest.approx(0.5, abs=bound)
    assert (np.abs(error[:, 2]) < 0.01).mean() == pytest.approx(0.5, abs=bound)


def test_nmea_navsat_driver_states_covariances_by_the_quality_of_the_fix():
    """(k hdop)^2 horizontally and (4 k hdop)^2 vertically, k = 0.02 m with RTK, 4 m alone."""
    fixes = still(load_gps('nmea_navsat_driver'), 6000)
    stated = {int(s): variances(fixes)[fixes.status == s] for s in np.unique(fixes.status)}
    rtk = np.array([0.02, 0.02, 0.08]) * 0.85
    assert any(np.allclose(row, rtk**2, rtol=1e-12) for row in stated[2])
    np.testing.assert_allclose(stated[0][0], (200.0 * rtk) ** 2, rtol=1e-12)
    assert fixes.covariance_type == 1


@pytest.mark.parametrize(('name', 'initial'), [('airsim_code', 100.0), ('airsim_docs', 25.0)])
def test_airsim_publishes_nothing_for_a_second_and_then_late(name, initial):
    model = load_gps(name)
    fixes = simulate(model, Standstill(duration=10.0), seed=1, run='a')
    assert fixes.stamp_ns[0] == 1_000_000_000
    assert len(fixes) == 451
    assert (fixes.arrival_ns - fixes.stamp_ns == 200_000_000).all()
    t = fixes.stamp_ns * 1e-9
    hdop = 0.1 + (initial - 0.1) * np.exp(-t / 0.9)
    np.testing.assert_allclose(fixes.position_covariance[:, 0, 0], (0.02 * hdop) ** 2, rtol=1e-9)


@pytest.mark.parametrize('kind', ['bias', 'std'])
@pytest.mark.parametrize('axis', ['latitude', 'longitude', 'altitude'])
def test_noise_in_degrees_moves_the_coordinate_that_it_is_named_after(axis, kind):
    """An error of 1e-5 degrees or metres appears in this coordinate alone."""
    model = load_gps('carla_gnss')
    ideal, noisy = (
        still(dataclasses.replace(model, noise=noise), 500)
        for noise in (GeodeticNoise(), GeodeticNoise(**{f'{axis}_{kind}': 1e-5}))
    )
    for name in ('latitude', 'longitude', 'altitude'):
        error = getattr(noisy, name) - getattr(ideal, name)
        size = np.mean(error) if kind == 'bias' else np.std(error)
        tolerance = SIGMAS * math.sqrt(0.5 / 500) * 1e-5
        assert size == pytest.approx(1e-5 if name == axis else 0.0, abs=tolerance)
