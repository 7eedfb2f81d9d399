# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Magnetometers. Bounds are 4.5 standard errors (7e-6 per comparison); seeds are fixed."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from imu_examples import SIGMAS, bound, still
from scipy.spatial.transform import Rotation
from stepping_examples import assert_stepping_gives_the_same_bits

from sim_sensors.core.errors import ParameterError
from sim_sensors.imu.chain import AccelerometerChain, GyroscopeChain, ImuChain
from sim_sensors.magnetometer.magnetometer import (
    Magnetometer,
    MagnetometerErrors,
    load_mag,
    simulate,
)
from sim_sensors.motion.scenarios import FigureEight, Standstill
from sim_sensors.motion.trajectory import Trajectory
from sim_sensors.noise.processes import WhiteDensity, correlation_root
from sim_sensors.sensor.catalogue import preset_names
from sim_sensors.sensor.delivery import Delivery
from sim_sensors.world.earth import EarthField
from sim_sensors.world.world import Dipoles, World, load_world

EARTH = (1e-6, 2.2e-5, -4.2e-5)
WORLD = World(earth_field=EarthField(model='constant', value=EARTH))
IDEAL = Magnetometer()


def tumbling(n: int, seed: int = 3) -> Trajectory:
    """Attitudes all over the sphere, at rest, 100 Hz."""
    quaternions = Rotation.random(n, rng=np.random.default_rng(seed)).as_quat()
    return dataclasses.replace(still(n), orientation=quaternions)


def field_of(model: Magnetometer, truth: Trajectory, world: World = WORLD, run: str = 'a'):
    return model.start(1, run, world=world).measure(truth).magnetic_field


def assert_regression(measured, clean, sensitivity, bias, std, correlation) -> None:
    """Regress y = S h + b + v [Ligorio2015]: S, b and cov(v) within 4.5 standard errors."""
    n = len(clean)
    regressors = np.column_stack([clean, np.ones(n)])
    coefficients, *_ = np.linalg.lstsq(regressors, measured, rcond=None)
    spread = np.sqrt(np.diag(np.linalg.inv(regressors.T @ regressors)))
    expected = np.vstack([np.transpose(sensitivity), bias])
    assert (np.abs(coefficients - expected) < SIGMAS * np.outer(spread, std)).all()
    residuals = (measured - regressors @ coefficients) / std
    # Variance of the product of two normals: 1 + c^2.
    error = SIGMAS * np.sqrt((1.0 + correlation**2) / n)
    assert (np.abs(np.cov(residuals.T) - correlation) < error).all()


def test_a_level_magnetometer_heading_north_east_measures_the_field_in_its_axes() -> None:
    """Heading 45 degrees from east: forward is (1, 1) / sqrt 2, left (-1, 1) / sqrt 2."""
    turned = Rotation.from_euler('z', 45.0, degrees=True).as_quat()
    truth = dataclasses.replace(still(3), orientation=np.tile(turned, (3, 1)))
    east, north, up = EARTH
    forward, left = (east + north) / np.sqrt(2.0), (north - east) / np.sqrt(2.0)
    assert field_of(IDEAL, truth)[1] == pytest.approx([forward, left, up], rel=1e-12)


def test_mounting_and_lever_arm_give_the_field_at_the_sensor() -> None:
    """Rotations by scipy; near magnets."""
    magnets = Dipoles.draw_random(20, (-3, -3, -1), (3, 3, 1), 5.0, seed=1)
    world = dataclasses.replace(WORLD, dipoles=magnets)
    arm, rpy = (0.3, -0.2, 0.5), (0.2, -0.4, 1.9)
    truth = FigureEight(duration=10.0).at(np.arange(0.0, 8.0, 0.05))
    model = Magnetometer(lever_arm=arm, mounting_rpy=rpy)
    body = Rotation.from_quat(truth.orientation)
    place = truth.position + body.apply(arm)
    sensor = body * Rotation.from_euler('xyz', rpy)
    expected = sensor.inv().apply(world.magnetic_field(place))
    np.testing.assert_allclose(field_of(model, truth, world), expected, rtol=0.0, atol=1e-17)
    without = sensor.inv().apply(world.magnetic_field(truth.position))
    assert np.abs(expected - without).max() > 1e-7
    mounted = IDEAL.mounted(arm, Rotation.from_euler('xyz', rpy).as_quat())
    np.testing.assert_allclose(mounted.mounting_rpy, rpy, atol=1e-15)


def test_the_reported_error_is_the_reading_minus_the_field_of_the_earth() -> None:
    world = dataclasses.replace(WORLD, dipoles=Dipoles([[0.0, 0.0, 1.0]], [[0.0, 0.0, 5.0]]))
    model = Magnetometer(magnetometer=MagnetometerErrors(constant_bias=(2e-6, 0.0, 0.0)))
    measurement = model.start(1, 'a', world=world).measure(still(2))
    assert measurement.error[0] == pytest.approx([2e-6, 0.0, 1e-6], rel=1e-9)
    assert measurement.bias[0].tolist() == [2e-6, 0.0, 0.0]


def test_a_regression_finds_the_errors_of_a_magnetometer() -> None:
    n = 20000
    sensitivity = np.array([[1.10, 0.05, -0.03], [0.04, 0.95, 0.02], [-0.01, 0.06, 1.03]])
    errors = MagnetometerErrors(
        scale=tuple(np.diag(sensitivity) - 1.0),
        cross_axis_upper=tuple(sensitivity[[0, 0, 1], [1, 2, 2]]),
        cross_axis_lower=tuple(sensitivity[[1, 2, 2], [0, 0, 1]]),
        constant_bias=(2e-5, -1e-5, 1.5e-5),
        noise_density=(1e-7, 5e-8, 2e-7),
        noise_correlation=(0.6, -0.3, 0.2),
    )
    truth = tumbling(n)
    measured = Magnetometer(magnetometer=errors).start(1, 'a', world=WORLD).measure(truth)
    std = np.array(errors.noise_density) * 10.0
    root = correlation_root(errors.noise_correlation)
    clean, correlation = field_of(IDEAL, truth), root @ root.T
    bias = errors.constant_bias
    assert_regression(measured.magnetic_field, clean, sensitivity, bias, std, correlation)
    covariance = np.outer(std, std) * correlation
    np.testing.assert_allclose(measured.magnetic_field_covariance[5], covariance, rtol=1e-12)


def test_the_bias_variance_is_the_sum_of_random_walk_and_gauss_markov() -> None:
    """K^2 t + sigma^2 at t, over 600 sensors; a wander that starts from its stationary law."""
    walk, wander, runs = 1e-7, 3e-7, 600
    errors = MagnetometerErrors(random_walk=walk, gauss_markov_std=wander, gauss_markov_time=5.0)
    model = Magnetometer(rate=1.0, magnetometer=errors)
    truth = Standstill(duration=30.0).at(np.arange(30.0))
    biases = np.stack(
        [model.start(1, f'{run}', world=WORLD).measure(truth).bias for run in range(runs)]
    )
    for k in (0, 9, 29):
        expected = np.sqrt(walk**2 * (k + 1) + wander**2)
        assert biases[:, k].std() == pytest.approx(expected, rel=bound(3 * runs))


FULL = MagnetometerErrors(
    scale=0.01, cross_axis_upper=0.02, cross_axis_lower=-0.01, temperature_scale=1e-4,
    turn_on_std=1e-6, gauss_markov_std=1e-7, random_walk=1e-7, bias_instability=1e-7,
    rate_ramp=1e-9, temperature_bias=1e-8, noise_density=1e-7,
    noise_correlation=(0.9, 0.1, -0.2), quantisation_noise=1e-10, bandwidth=20.0, range=5e-5,
    quantisation=1e-8,
)  # fmt: skip


@given(st.lists(st.integers(0, 80), max_size=6))
@settings(max_examples=10)
def test_results_do_not_depend_on_the_chunking(cuts) -> None:
    world = load_world('dipole_room')
    truth = FigureEight(duration=20.0).at(5.0 + np.arange(80) * 0.0103)
    model = Magnetometer(magnetometer=FULL, lever_arm=(0.1, 0.2, 0.3), mounting_rpy=(0.1, 0.2, 3))
    sensor, whole = assert_stepping_gives_the_same_bits(model, truth, cuts, world=world)
    assert sensor.bias.tobytes() == whole.bias[-1].tobytes()


def test_the_batch_run_is_on_the_grid_of_the_sensor_and_arrives_as_delivered() -> None:
    model = dataclasses.replace(
        load_mag('xsens_mtx'), rate=30.0, latency=0.25, delivery=Delivery(jitter=0.01)
    )
    place = {'world': WORLD, 'origin_ns': 1_000_000_000}
    simulated = simulate(model, Standstill(duration=2.0), seed=1, run='a', **place)
    assert simulated.stamp_ns.tolist() == [10**9 + round(k * 1e9 / 30.0) for k in range(61)]
    assert (simulated.arrival_ns - simulated.stamp_ns >= 0.24e9).all()
    assert simulated.frame == 'imu_link'


def test_noise_of_two_magnetometers_and_of_two_runs_is_independent() -> None:
    model = Magnetometer(magnetometer=MagnetometerErrors(noise_density=1e-7))
    draws = [
        model.start(1, run, sensor, world=WORLD).measure(still(4000)).error[:, 0]
        for run, sensor in (('a', 'mag'), ('b', 'mag'), ('a', 'front/mag'))
    ]
    off = np.corrcoef(draws)[np.triu_indices(3, 1)]
    assert (np.abs(off) < SIGMAS / np.sqrt(4000)).all()


@pytest.mark.parametrize('name', preset_names('mag'))
def test_presets_measure_the_field_of_the_earth_within_their_errors(name: str) -> None:
    model = load_mag(name)
    errors = model.magnetometer
    measured = field_of(model, still(200, model.rate))
    # Sensitivity moves it by at most a fifth, offsets and bias by what they are.
    reach = 0.2 * np.linalg.norm(EARTH) + np.abs(errors.constant_bias) + 1e-6
    reach = reach + SIGMAS * np.array(errors.turn_on_std)
    assert (np.abs(measured.mean(0) - EARTH) < reach).all()


def test_a_regression_finds_the_errors_of_an_imu() -> None:
    """Rates and forces of a tumbling body, each triad with a full S and a full covariance."""
    n = 6000
    rng = np.random.default_rng(2)
    motion = {'angular_velocity': rng.uniform(-3.0, 3.0, (n, 3))}
    motion['acceleration'] = rng.uniform(-5.0, 5.0, (n, 3))
    truth = dataclasses.replace(tumbling(n), **motion)
    words = {
        'scale': (0.02, -0.03, 0.04), 'cross_axis_upper': (0.01, 0.02, -0.03),
        'cross_axis_lower': (-0.02, 0.03, 0.01), 'constant_bias': (0.1, -0.2, 0.3),
        'noise_density': (0.01, 0.02, 0.03), 'noise_correlation': (-0.5, 0.4, 0.3),
    }  # fmt: skip
    sensitivity = np.array([[1.02, 0.01, 0.02], [-0.02, 0.97, -0.03], [0.03, 0.01, 1.04]])
    imu = ImuChain(gyroscope=GyroscopeChain(**words), accelerometer=AccelerometerChain(**words))
    simulated, clean = (model.start(1, 'a').measure(truth) for model in (imu, ImuChain()))
    root = correlation_root(words['noise_correlation'])
    correlation = root @ root.T
    std = 10.0 * np.array(words['noise_density'])
    for name in ('angular_velocity', 'linear_acceleration'):
        bias, given = words['constant_bias'], getattr(simulated, name)
        assert_regression(given, getattr(clean, name), sensitivity, bias, std, correlation)
        stated = getattr(simulated, f'{name}_covariance')[0]
        np.testing.assert_allclose(stated, np.outer(std, std) * correlation, rtol=1e-12)


def test_the_stated_covariance_holds_for_filtered_noise() -> None:
    """The low pass is the same for all axes, so that correlations stay."""
    n, correlation = 40000, (0.7, 0.0, -0.4)
    part = GyroscopeChain(noise_density=0.01, noise_correlation=correlation, bandwidth=20.0)
    simulated = ImuChain(gyroscope=part).start(1, 'a').measure(still(n))
    stated = simulated.angular_velocity_covariance[-1]
    sample = np.cov(simulated.angular_velocity[1000:].T)
    # Neighbours are correlated over about four samples; ten standard errors of independent ones.
    np.testing.assert_allclose(sample, stated, atol=10.0 * stated[0, 0] * np.sqrt(2.0 / n))
    assert stated[0, 1] / stated[0, 0] == pytest.approx(0.7)


@given(st.tuples(*[st.floats(-1.0, 1.0)] * 3))
def test_only_positive_semidefinite_correlations_have_a_root(correlation) -> None:
    xy, xz, yz = correlation
    matrix = np.array([[1.0, xy, xz], [xy, 1.0, yz], [xz, yz, 1.0]])
    smallest = np.linalg.eigvalsh(matrix)[0]
    if smallest < -1e-5:
        with pytest.raises(ValueError, match='not the correlations'):
            correlation_root(correlation)
    elif smallest > 1e-5:
        root = correlation_root(correlation)
        np.testing.assert_allclose(root @ root.T, matrix, atol=1e-10)


def test_fully_correlated_axes_have_the_same_noise() -> None:
    process = WhiteDensity(np.random.default_rng(1), 1.0, correlation=(1.0, 1.0, 1.0))
    draws = process.advance(np.ones(5))
    np.testing.assert_allclose(draws, draws[:, [0]] * np.ones(3), atol=1e-15)


def test_an_impossible_correlation_is_refused() -> None:
    with pytest.raises(ParameterError, match='noise_correlation'):
        GyroscopeChain(noise_correlation=(0.9, 0.9, -0.9))


def test_magnets_in_a_room_deflect_a_compass_by_tens_of_degrees() -> None:
    """The path leads straight through the middle of the room, 1.2 m above the floor."""
    world = load_world('dipole_room')
    truth = still(600)
    path = np.linspace([1.0, 5.0, 1.2], [7.0, 5.0, 1.2], 600)
    truth = dataclasses.replace(truth, position=path)
    measurement = Magnetometer().start(1, 'a', world=world).measure(truth).magnetic_field
    heading = np.arctan2(measurement[:, 0], measurement[:, 1])
    straight = np.arctan2(world.undisturbed_field[0], world.undisturbed_field[1])
    off = np.degrees(np.abs(np.angle(np.exp(1j * (heading - straight)))))
    assert 10.0 < off.max() <= 180.0
