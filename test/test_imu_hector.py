# SPDX-License-Identifier: Apache-2.0
"""The IMU of [Hector]. Bounds are 4.5 standard errors (7e-6 per comparison); seeds are fixed."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from imu_examples import G, bound, many, moving, still, upstream
from scipy.spatial.transform import Rotation

from sim_sensors.core.errors import SensorError
from sim_sensors.imu.gazebo import HectorAccelerometer, HectorGyroscope, HectorImu, HectorYaw
from sim_sensors.imu.models import ChronoImu


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
    grown = 0.1 if variant == 'exact' else 0.01
    for k in (0, 99):
        expected = grown * math.sqrt(1.0 - math.exp(-2.0 * 0.6 * (k + 1) / 100.0))
        assert errors[:, k].std() == pytest.approx(expected, rel=bound(300))
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


def test_hector_tilts_by_the_bias_of_its_accelerometer():
    """Roll by/g and pitch -bx/g in the body; upstream about the world's axes."""
    part = HectorAccelerometer(offset=(0.1, 0.0, 0.0))
    model = HectorImu(accelerometer=part)
    truth = moving(2, (0.0, 0.0, 0.0), heading=math.pi / 2)
    right, wrong = (m.start(1, 'a').measure(truth) for m in (model, upstream(model)))
    up = Rotation.from_quat(right.orientation).apply(right.linear_acceleration)
    np.testing.assert_allclose(up[:, :2], 0.0, atol=1e-4)
    up = Rotation.from_quat(wrong.orientation).apply(wrong.linear_acceleration)
    assert (np.abs(up[:, :2]) > 0.05).any()


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
