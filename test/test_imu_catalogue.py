# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Presets of IMUs: common laws and data sheets.

Statistical bounds are 4.5 standard errors (7e-6 per comparison, less than 1e-3 per test); seeds
are fixed.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from imu_examples import SIGMAS, G, bound, still, upstream
from stepping_examples import assert_stepping_gives_the_same_bits

from sim_sensors.imu.chain import GyroscopeChain
from sim_sensors.imu.imu import ImuModel, load_imu
from sim_sensors.imu.simulators import MatlabAccelerometer, MatlabGyroscope, MatlabImu
from sim_sensors.motion.scenarios import Circle, FigureEight
from sim_sensors.motion.trajectory import Trajectory
from sim_sensors.sensor.catalogue import preset_names

PRESETS = {name: load_imu(name) for name in preset_names('imu')}


@pytest.mark.parametrize('kind', ImuModel.models.names(installed=False))
@pytest.mark.parametrize('variant', ['exact', 'as_upstream'])
def test_results_do_not_depend_on_the_chunking(kind, variant):
    if 'variant' not in ImuModel.models.get(kind).declarations() and variant == 'as_upstream':
        pytest.skip('has no defect')
    presets = [model for model in PRESETS.values() if model.kind == kind]
    truth = FigureEight(duration=20.0).at(5.0 + np.arange(60) * 0.0103)
    for model in presets or [ImuModel.models.get(kind)()]:
        if variant == 'as_upstream':
            model = upstream(model)
        mounting = {'lever_arm': (0.1, 0.2, 0.3), 'mounting_rpy': (0.1, -0.2, 3.0)}
        model = dataclasses.replace(model, **mounting)
        assert_stepping_gives_the_same_bits(model, truth, [1, 1, 2, 17])


def unrounded(model):
    """The model with an infinitely fine resolution, since rounding is per sample."""
    parts = {}
    for name in ('gyroscope', 'accelerometer'):
        part = getattr(model, name, None)
        for step in ('quantisation', 'resolution'):
            if hasattr(part, step):
                zero = 0.0 if step == 'resolution' else (0.0, 0.0, 0.0)
                parts[name] = dataclasses.replace(part, **{step: zero})
    return dataclasses.replace(model, **parts)


def allan_deviations(model, rate, seconds=1000):
    """Allan deviations at 1 s and 8 s of rates and forces over all axes, `(2, 2)`."""
    result = dataclasses.replace(model, rate=rate).start(1, f'{rate}')
    measured = result.measure(still(round(seconds * rate), rate))
    deviations = []
    for values in (measured.angular_velocity, measured.linear_acceleration):
        for tau in (1, 8):
            means = values.reshape(seconds // tau, round(tau * rate), 3).mean(1)
            deviations.append(math.sqrt(np.mean(np.diff(means, axis=0) ** 2) / 2.0))
    return np.array(deviations).reshape(2, 2)


# Relative errors of two deviations from 3 x 1000 and 3 x 125 clusters: the mean square of the
# difference of neighbouring means errs by sqrt(3/n) for white noise, by less for a random walk.
_ERROR = SIGMAS * 0.5 * np.sqrt(3.0 / np.array([3000.0, 375.0]) * 2.0)


@pytest.mark.parametrize('name', PRESETS)
def test_the_allan_curve_does_not_depend_on_the_rate(name):
    model = unrounded(PRESETS[name])
    slow, fast = (allan_deviations(model, rate) for rate in (20.0, 80.0))
    safe = np.where(fast > 0.0, fast, 1.0)
    assert (np.abs(slow / safe - 1.0)[fast > 0.0] < np.tile(_ERROR, (2, 1))[fast > 0.0]).all()
    assert (slow[fast == 0.0] == 0.0).all()


@pytest.mark.parametrize(
    'name',
    [
        'chrono', 'chrono_ahrs', 'gazebo_classic_imu', 'gazebo_classic_imu_sensor',
        'gazebo_classic_imu_sensor_ros2', 'gz_imu', 'carla_imu', 'hector_imu',
    ],
)  # fmt: skip
def test_noise_per_sample_as_upstream_changes_the_allan_curve_with_the_rate(name):
    """The exceptions: at a quarter of the rate the gyroscope has twice the density."""
    model = upstream(load_imu(name))
    slow, fast = (allan_deviations(model, rate)[0, 0] for rate in (20.0, 80.0))
    assert slow / fast == pytest.approx(2.0, rel=2.0 * _ERROR[0])


def test_other_noise_as_upstream_does_not_depend_on_the_rate():
    for name in ('rotors_adis16448', 'px4_iim42653', 'gnss_ins_sim_low'):
        model = upstream(load_imu(name))
        slow, fast = (allan_deviations(model, rate) for rate in (20.0, 80.0))
        assert (np.abs(slow / fast - 1.0) < np.tile(_ERROR, (2, 1))).all()


def test_the_imu_of_airsim_in_the_paper_is_that_of_chrono():
    truth = Circle(duration=10.0).at(np.arange(300) * 0.01 + 5.0)
    paper, chrono, own = (
        load_imu(name).start(1, 'a').measure(truth)
        for name in ('airsim_paper', 'chrono', 'airsim')
    )
    for field in ('angular_velocity', 'linear_acceleration', 'linear_acceleration_covariance'):
        np.testing.assert_array_equal(getattr(paper, field), getattr(chrono, field))
        assert not np.array_equal(getattr(own, field), getattr(chrono, field))


def test_every_exact_model_measures_the_same_circle():
    """All exact models share one kinematics."""
    truth = Circle(duration=10.0).at(np.arange(300) * 0.01 + 5.0)
    reference = load_imu('ideal').start(1, 'a').measure(truth).linear_acceleration
    for kind in ('gazebo_ros_imu', 'gazebo_ros_imu_sensor', 'gz_imu', 'hector_imu', 'carla_imu'):
        force = ImuModel.models.get(kind)().start(1, 'a').measure(truth).linear_acceleration
        np.testing.assert_allclose(force, reference, atol=1e-12)


def test_presets_have_the_numbers_printed_in_thesis_and_data_sheets():
    """[Cesenek2019], tables 3.1 to 3.3, to the digits printed there."""
    thesis, sheet = load_imu('bno055_thesis'), load_imu('bno055')
    for got, expected in (
        (thesis.gyroscope.noise_density, (9.56e-5, 1.44e-4, 4.90e-5)),
        (thesis.accelerometer.noise_density, (9.0e-5, 1.07e-4, 1.25e-4)),
        (thesis.accelerometer.bias_instability, (6.2e-5, 8.3e-5, 1.1e-4)),
        (thesis.gyroscope.bias_instability, (5.7e-6, 4.9e-6, 5.0e-6)),
        (thesis.accelerometer.random_walk, (2.25e-5, 3.64e-5, 3.3e-6)),
        (thesis.gyroscope.random_walk, (1.73e-7, 0.0, 1.80e-7)),
    ):
        np.testing.assert_allclose(got, expected, rtol=0.01)
    assert sheet.gyroscope.noise_density[0] == pytest.approx(2.44e-4, rel=2e-3)
    assert sheet.accelerometer.noise_density[0] == pytest.approx(150e-6 * G, rel=1e-5)
    adis = load_imu('adis16448')
    assert math.degrees(adis.gyroscope.noise_density[0]) * 60 == pytest.approx(0.66, rel=1e-5)
    plateau = 0.664 * math.degrees(adis.gyroscope.bias_instability[0]) * 3600
    assert plateau == pytest.approx(14.5, rel=1e-4)
    mpu = load_imu('mpu6000')
    # The sheet has 0.05 deg/s RMS in 100 Hz and 400 ug/sqrt(Hz), both of a one-sided spectrum.
    rms = math.degrees(mpu.gyroscope.noise_density[0]) * math.sqrt(2.0 * 100.0)
    assert rms == pytest.approx(0.05, rel=1e-5)
    root = mpu.accelerometer.noise_density[0] * math.sqrt(2.0)
    assert root == pytest.approx(400e-6 * G, rel=1e-5)


def test_kalibr_numbers_are_the_allan_deviations_at_the_stated_times():
    """sigma at 1 s on the slope -1/2, sigma_b at 3 s on the slope +1/2; 2000 s of 3 axes."""
    model = load_imu('kalibr')
    rates = dataclasses.replace(model, rate=10.0).start(1, 'a').measure(still(20_000, 10.0))
    means = rates.angular_velocity.reshape(2000, 10, 3).mean(1)
    deviation = math.sqrt(np.mean(np.diff(means, axis=0) ** 2) / 2.0)
    assert deviation == pytest.approx(4e-4, rel=SIGMAS * 0.5 * math.sqrt(3.0 / 6000))
    bias = rates.gyroscope_bias[::30]
    # A walk's averages over 3 s: K^2 3 s/3; its samples 3 s apart differ by K^2 3 s.
    steps = np.diff(bias, axis=0)
    assert steps.std() == pytest.approx(4e-6 * math.sqrt(3.0), rel=bound(steps.size))


def test_a_data_sheet_sensor_saturates_and_quantises():
    model = load_imu('mpu6000')
    n, zero = 3, np.zeros((3, 3))
    spin = np.tile([0.0, 0.0, 10.0], (n, 1))
    level = np.tile([0.0, 0.0, 0.0, 1.0], (n, 1))
    truth = Trajectory(np.arange(n) * 0.01, zero, level, zero, spin, zero, zero)
    rates = model.start(1, 'a').measure(truth).angular_velocity
    step = model.gyroscope.quantisation[0]
    np.testing.assert_allclose(rates[:, 2], math.radians(250.0), rtol=1e-4)
    np.testing.assert_allclose(rates / step, np.rint(rates / step), atol=1e-6)


def test_matlab_parameters_are_in_the_units_of_matlab():
    """Percent of misalignment, by columns, and per kelvin; range and resolution."""
    accelerometer = MatlabAccelerometer(
        axes_misalignment=(1.0, 2.0, 3.0), measurement_range=9.5, resolution=0.01
    )
    model = MatlabImu(
        gyroscope=MatlabGyroscope(constant_bias=(0.1, 0.2, 0.3)), accelerometer=accelerometer
    )
    result = model.start(1, 'a').measure(still(2))
    np.testing.assert_allclose(result.angular_velocity, np.tile([0.1, 0.2, 0.3], (2, 1)))
    np.testing.assert_allclose(result.linear_acceleration, [[0.29, 0.29, 9.5]] * 2, atol=1e-12)
    misaligned = MatlabGyroscope(axes_misalignment=(1.0, 2.0, 3.0))
    chain = GyroscopeChain.from_mapping(misaligned.chain(), 'test')
    assert chain.cross_axis_upper == pytest.approx((0.02, 0.03, 0.03))
    assert chain.cross_axis_lower == pytest.approx((0.01, 0.01, 0.02))
    warm = dataclasses.replace(
        model,
        temperature=dataclasses.replace(model.temperature, initial=35.0),
        accelerometer=MatlabAccelerometer(
            temperature_scale_factor=0.1, temperature_bias=(0.01, 0.0, 0.0)
        ),
    )
    force = warm.start(1, 'a').measure(still(1)).linear_acceleration[0]
    np.testing.assert_allclose(force, [0.1, 0.0, 1.01 * G])
