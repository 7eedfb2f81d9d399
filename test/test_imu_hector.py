# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The IMU of [Hector]. Bounds are 4.5 standard errors (7e-6 per comparison); seeds are fixed."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from imu_examples import G, bound, many, moving, still, upstream
from scipy.spatial.transform import Rotation
from scipy.stats import kstest

from sim_sensors.core.errors import SensorError
from sim_sensors.imu.gazebo import HectorAccelerometer, HectorGyroscope, HectorImu, HectorYaw
from sim_sensors.imu.imu import load_imu
from sim_sensors.imu.models import ChronoImu
from sim_sensors.motion.scenarios import Circle


@pytest.mark.parametrize('rate', [10.0, 100.0])
def test_hector_drift_depends_on_the_rate_as_upstream(rate):
    """Upstream sigma dt sqrt(2 f/(1 - exp(-2 f dt))): a tenth at 100 Hz. 1000 s of 3 axes."""
    part = HectorGyroscope(drift=0.3, drift_frequency=1.0)
    n, dt = round(1000.0 * rate), 1.0 / rate
    for variant in ('exact', 'as_upstream'):
        model = HectorImu(rate=rate, variant=variant, gyroscope=part)
        bias = model.start(1, 'a').measure(still(n, rate)).gyroscope_bias[round(20 * rate) :]
        expected = 0.3
        if variant == 'as_upstream':
            expected *= dt * math.sqrt(2.0 / (1.0 - math.exp(-2.0 * dt)))
            assert expected == pytest.approx(0.3 * math.sqrt(dt), rel=0.06)
        assert bias.std() == pytest.approx(expected, rel=bound(3.0 * 980.0))


def driving_noise(drift, sigma, f, dt):
    """Return gauss(1) of drift = exp(-dt f) drift + dt gauss(sqrt(2 f) sigma), [Hector]."""
    before, after = drift[:-1], drift[1:]
    return (after - math.exp(-dt * f) * before) / (dt * math.sqrt(2.0 * f) * sigma)


@pytest.mark.parametrize('signal', ['rate', 'accel', 'yaw'])
def test_each_drift_follows_the_line_of_sensor_model_h(signal):
    """Solved for its noise, it is normal, white and of unit variance; 200 s at 50 Hz."""
    rate, sigma, f, n = 50.0, 0.2, 0.3, 10_000
    part = {'drift': sigma, 'drift_frequency': f}
    model = HectorImu(
        rate=rate,
        variant='as_upstream',
        gyroscope=HectorGyroscope(offset=0.4, **part),
        accelerometer=HectorAccelerometer(**(part if signal == 'accel' else {})),
        orientation=HectorYaw(offset=0.1, **part),
    )
    result = model.start(5, 'a').measure(still(n, rate))
    gravity = np.full((n, 3), [0.0, 0.0, G])
    gravity[0] = 0.0  # there is no interval before the first sample
    drift = {
        'rate': result.angular_velocity - 0.4,
        'accel': result.linear_acceleration - gravity,
        'yaw': rotation_vectors(result)[:, 2:] - 0.1,
    }[signal]  # fmt: skip
    for axis in drift.T:
        noise = driving_noise(axis, sigma, f, 1.0 / rate)
        assert abs(noise.mean()) < 4.5 / math.sqrt(n)
        assert noise.std() == pytest.approx(1.0, rel=bound(n))
        assert abs(np.corrcoef(noise[:-1], noise[1:])[0, 1]) < 4.5 / math.sqrt(n)
        assert kstest(noise, 'norm').pvalue > 1e-5


def test_the_preset_as_upstream_steps_as_the_thesis_says():
    """[Cesenek2019] (3.47), (3.48) with 1.118 rad, 0.001 Hz at 100 Hz: 5.00e-4 rad, from 0."""
    model = load_imu('hector_imu:as_upstream')
    yaw = rotation_vectors(model.start(1, 'a').measure(still(20_000)))[:, 2]
    assert yaw[0] == 0.0
    assert np.diff(yaw).std() == pytest.approx(5.00e-4, rel=bound(20_000))
    assert driving_noise(yaw, 1.118, 0.001, 0.01).std() == pytest.approx(1.0, rel=bound(20_000))


def test_hector_drift_starts_with_its_deviation_in_both_variants():
    """150 sensors of 3 axes."""
    for variant in ('exact', 'as_upstream'):
        model = HectorImu(variant=variant, gyroscope=HectorGyroscope(drift=0.3))
        first = np.array([r.gyroscope_bias[0] for r in many(model, still(1), 150)])
        assert first.std() == pytest.approx(0.3, rel=bound(450))


@pytest.mark.parametrize('variant', ['exact', 'as_upstream'])
def test_a_yaw_drift_set_in_a_running_plugin_starts_at_zero(variant):
    """drift sqrt(1 - exp(-2 f t)) after t; upstream a tenth at 100 Hz. 300 sensors."""
    yaw = HectorYaw(drift=0.1, drift_frequency=0.6, drift_from_zero=True)
    model = HectorImu(variant=variant, orientation=yaw)
    errors = np.array([rotation_vectors(r)[:, 2] for r in many(model, still(100), 300)])
    # Upstream has no interval, hence no step, at the first sample.
    grown, steps = (0.1, 1) if variant == 'exact' else (0.01, 0)
    for k in (1, 99):
        expected = grown * math.sqrt(1.0 - math.exp(-2.0 * 0.6 * (k + steps) / 100.0))
        assert errors[:, k].std() == pytest.approx(expected, rel=bound(300))
    assert np.all(errors[:, 0] == 0.0) == (variant == 'as_upstream')
    drawn = HectorImu(variant=variant, orientation=dataclasses.replace(yaw, drift_from_zero=False))
    first = np.array([rotation_vectors(r)[0, 2] for r in many(drawn, still(1), 300)])
    assert first.std() == pytest.approx(0.1, rel=bound(300))


def test_hector_scales_before_adding_the_offset():
    part = HectorAccelerometer(offset=(0.1, 0.2, 0.3), scale=1.1)
    force = HectorImu(accelerometer=part).start(1, 'a').measure(still(2)).linear_acceleration
    np.testing.assert_allclose(force, np.tile([0.1, 0.2, 0.3 + 1.1 * G], (2, 1)))


def rotation_vectors(result):
    return Rotation.from_quat(result.orientation).as_rotvec()


def test_hector_ignores_the_noise_of_its_yaw_as_upstream():
    """Upstream states the noise but applies only offset and drift."""
    model = HectorImu(orientation=HectorYaw(gaussian_noise=0.05, offset=0.2))
    right, wrong = (m.start(1, 'a').measure(still(20_000)) for m in (model, upstream(model)))
    np.testing.assert_allclose(rotation_vectors(wrong), np.tile([0.0, 0.0, 0.2], (20_000, 1)))
    assert rotation_vectors(right)[:, 2].std() == pytest.approx(0.05, rel=bound(20_000))
    for result in (right, wrong):
        assert result.orientation_covariance[0, 2, 2] == pytest.approx(0.0025)


@pytest.mark.parametrize('variant', ['exact', 'as_upstream'])
@pytest.mark.parametrize('attitude', [(0.0, 0.0, 0.0), (1.6, 0.0, 0.0), (-2.0, 0.7, -0.4)])
def test_hector_tilts_by_the_bias_of_its_accelerometer(variant, attitude):
    """The measured force points up by the published attitude, whatever the true one is."""
    part = HectorAccelerometer(offset=(0.1, -0.05, 0.02))
    model = HectorImu(accelerometer=part, variant=variant)
    truth = still(3)
    turned = Rotation.from_euler('ZYX', attitude)
    truth = dataclasses.replace(truth, orientation=np.tile(turned.as_quat(), (3, 1)))
    result = model.start(1, 'a').measure(truth)
    up = Rotation.from_quat(result.orientation[1:]).apply(result.linear_acceleration[1:])
    np.testing.assert_allclose(up[:, :2], 0.0, atol=3e-4)
    error = Rotation.from_quat(result.orientation) * turned.inv()
    assert error.magnitude().min() > 0.004


def test_the_first_sample_of_hector_as_upstream_has_neither_rate_nor_gravity():
    """[Hector]: there is no interval, so both keep their initial 0; the offsets are added."""
    gyroscope = HectorGyroscope(offset=0.2)
    accelerometer = HectorAccelerometer(offset=0.1, scale=2.0)
    model = HectorImu(gyroscope=gyroscope, accelerometer=accelerometer, variant='as_upstream')
    truth = moving(4, (0.3, -0.2, 0.0))
    result = model.start(1, 'a').measure(truth)
    np.testing.assert_array_equal(result.angular_velocity, 0.2)
    np.testing.assert_array_equal(result.linear_acceleration[0], 0.1)
    expected = np.tile([0.7, -0.3, 2.0 * G + 0.1], (3, 1))
    np.testing.assert_allclose(result.linear_acceleration[1:], expected, atol=1e-9)


def test_hector_turns_force_and_attitude_by_its_mounting_in_the_world_as_upstream():
    """[Hector]: rot = offset * pose; the rate is that of the sensor, over the last interval."""
    truth = Circle(duration=4.0).at(2.0 + np.arange(3) * 0.01)
    model = HectorImu(mounting_rpy=(0.0, math.pi / 2, 0.0))
    right, wrong = (m.start(1, 'a').measure(truth) for m in (model, upstream(model)))
    mounting, body = Rotation.from_euler('y', math.pi / 2), Rotation.from_quat(truth.orientation)
    published = Rotation.from_quat(wrong.orientation)
    assert (published * (mounting * body).inv()).magnitude().max() < 1e-9
    down = (mounting * body).inv().apply([0.0, 0.0, G])
    expected = down[1:] + (mounting * body).inv().apply(truth.acceleration)[1:]
    np.testing.assert_allclose(wrong.linear_acceleration[1:], expected, atol=0.02)
    np.testing.assert_allclose(wrong.angular_velocity[1:], right.angular_velocity[1:], atol=1e-6)
    assert abs(right.linear_acceleration[2, 0] - wrong.linear_acceleration[2, 0]) < 20.1


def test_the_yaw_drift_of_the_preset_is_the_same_in_both_variants():
    """0.1118 rad in the end: 1.118 sqrt(dt) at 100 Hz; as upstream it starts at 0."""
    exact, wrong = load_imu('hector_imu').orientation, load_imu('hector_imu:as_upstream')
    yaw, dt = wrong.orientation, 0.01
    f = yaw.drift_frequency
    reached = yaw.drift * dt * math.sqrt(2.0 * f / -math.expm1(-2.0 * f * dt))
    assert reached == pytest.approx(exact.drift, rel=1e-3)
    quick = dataclasses.replace(yaw, drift_frequency=1.0, gaussian_noise=0.0)
    model = dataclasses.replace(wrong, orientation=quick, accelerometer=HectorAccelerometer())
    angles = rotation_vectors(model.start(1, 'a').measure(still(100_000)))[:, 2]
    assert angles[0] == 0.0
    assert angles[2000:].std() == pytest.approx(exact.drift, rel=bound(980.0))


def test_hector_states_unknown_tilt_without_gravity_as_upstream():
    model = HectorImu(variant='as_upstream', orientation=HectorYaw(gaussian_noise=0.1))
    stated = model.start(1, 'a', gravity=0.0).measure(still(1)).orientation_covariance[0]
    np.testing.assert_allclose(stated, np.diag([-1.0, -1.0, 0.01]))


def test_hector_services_set_the_drift_of_a_running_sensor():
    drift = {'drift': 0.3, 'drift_frequency': 1e-9}
    gyroscope, accelerometer = HectorGyroscope(offset=0.01, **drift), HectorAccelerometer(**drift)
    model = HectorImu(gyroscope=gyroscope, accelerometer=accelerometer)
    sensor = model.start(1, 'a')
    pieces = [still(3)._take([k]) for k in range(3)]
    assert np.abs(sensor.measure(pieces[0]).gyroscope_bias).min() > 0.01
    sensor.calibrate()
    sensor.set_accelerometer_bias([1.0, 2.0, 3.0])
    second = sensor.measure(pieces[1])
    np.testing.assert_allclose(second.gyroscope_bias[0], 0.01, atol=1e-3)
    np.testing.assert_allclose(second.accelerometer_bias[0], [1.0, 2.0, 3.0], atol=1e-3)
    sensor.set_gyroscope_bias([0.0, 0.5, 0.0])
    third = sensor.measure(pieces[2])
    np.testing.assert_allclose(third.gyroscope_bias[0], [0.01, 0.51, 0.01], atol=1e-3)


def test_an_imu_without_a_settable_drift_refuses_calibration():
    with pytest.raises(SensorError, match='chrono_normal_drift'):
        ChronoImu().start(1, 'a').calibrate()


def test_a_bias_that_is_not_finite_is_refused():
    with pytest.raises(SensorError):
        HectorImu().start(1, 'a').set_gyroscope_bias([1.0, math.nan, 0.0])
