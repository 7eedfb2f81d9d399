# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""IMUs of Chrono and of Gazebo have the laws and the defects of their sources.

Statistical bounds are 4.5 standard errors (7e-6 per comparison, less than 1e-3 per test); seeds
are fixed.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from imu_examples import SIGMAS, TRUTH, G, bound, many, moving, still, upstream
from scipy.spatial.transform import Rotation

from sim_sensors.imu.gazebo import (
    GazeboImu,
    GazeboRosImu,
    GazeboRosImuSensor,
    SdfAccelerometer,
    SdfGyroscope,
)
from sim_sensors.imu.models import ChronoImu
from sim_sensors.motion.trajectory import Trajectory


def test_chrono_as_upstream_measures_accelerations_in_world_axes():
    """Driving north, a forward acceleration is felt along y; mounted in any way."""
    quiet = {'gyroscope': {'std': 0, 'drift': 0}, 'accelerometer': {'std': 0, 'drift': 0}}
    model = ChronoImu.from_mapping({**quiet, 'mounting_rpy': [0, 0, 1.0]}, 'test')
    truth = moving(3, (0.0, 2.0, 0.0), heading=math.pi / 2)
    force = upstream(model).start(1, 'a').measure(truth).linear_acceleration
    np.testing.assert_allclose(force, np.tile([0.0, 2.0, G], (3, 1)), atol=1e-12)
    right = dataclasses.replace(model, mounting_rpy=(0.0, 0.0, 0.0))
    force = right.start(1, 'a').measure(truth).linear_acceleration
    np.testing.assert_allclose(force, np.tile([2.0, 0.0, G], (3, 1)), atol=1e-12)


def test_chrono_as_upstream_rotates_gravity_the_wrong_way():
    n, zero = 2, np.zeros((2, 3))
    tilt = np.tile(Rotation.from_euler('x', 0.1).as_quat(), (n, 1))
    truth = Trajectory(np.arange(n) * 0.01, zero, tilt, zero, zero, zero, zero)
    for model, sign in ((ChronoImu(), 1.0), (upstream(ChronoImu()), -1.0)):
        force = model.start(1, 'a').measure(truth)
        felt = force.linear_acceleration - force.accelerometer_bias
        assert np.sign(felt[:, 1]).tolist() == [sign, sign]


def test_chrono_as_upstream_states_the_outer_product_of_one_sample():
    """Against numpy over all samples; of rank one, and fading like 1/k; [Chrono] counts from 0."""
    result = upstream(ChronoImu()).start(1, 'a').measure(still(500))
    y = result.angular_velocity
    for k in (2, 3, 4, 7, 500):
        off = y[k - 1] - y[:k].mean(0)
        expected = np.outer(off, off) / max(k - 2, 1)
        stated = result.angular_velocity_covariance[k - 1]
        np.testing.assert_allclose(stated, expected, rtol=1e-9, atol=1e-15)
    assert not result.angular_velocity_covariance[0].any()
    trace = result.angular_velocity_covariance[:, [0, 1, 2], [0, 1, 2]].sum(1)
    assert trace[400:].mean() < 0.03 * trace[1:20].mean()


def test_gazebo_ros_imu_as_upstream_measures_no_gravity_at_rest():
    """[GazeboRos]: mean 0 instead of g, deviation s either way."""
    model = GazeboRosImu(gaussian_noise=0.2, orientation=TRUTH)
    for variant, mean in ((model, G), (upstream(model), 0.0)):
        result = variant.start(1, 'a').measure(still(20_000))
        force = result.linear_acceleration
        error = SIGMAS * 0.2 / math.sqrt(20_000)
        np.testing.assert_allclose(force.mean(0), [0.0, 0.0, mean], atol=error)
        np.testing.assert_allclose(force.std(0), 0.2, rtol=bound(20_000))
        np.testing.assert_allclose(result.angular_velocity_covariance[5], np.eye(3) * 0.04)
        stated = 0.0 if variant is model else 0.04
        np.testing.assert_allclose(result.orientation_covariance[5], np.eye(3) * stated)


def test_gazebo_ros_imu_as_upstream_rotates_world_vectors_the_wrong_way():
    """Heading north and gaining speed northward is felt forward; upstream, backward... in world
    axes turned once more. The first sample has no velocity before it.
    """
    truth = moving(4, (0.0, 2.0, 0.0), heading=math.pi / 2)
    exact = GazeboRosImu().start(1, 'a').measure(truth).linear_acceleration
    np.testing.assert_allclose(exact, np.tile([2.0, 0.0, G], (4, 1)), atol=1e-12)
    wrong = upstream(GazeboRosImu()).start(1, 'a').measure(truth).linear_acceleration
    np.testing.assert_allclose(wrong[0], 0.0)
    np.testing.assert_allclose(wrong[1:], np.tile([-2.0, 0.0, 0.0], (3, 1)), atol=1e-12)


def test_gazebo_ros_imu_as_upstream_applies_the_mounting_about_world_axes():
    """[GazeboRos]: R = R_offset R_nb; heading north, a pitched IMU distinguishes the orders."""
    truth = moving(3, (0.0, 2.0, 0.0), heading=math.pi / 2)
    model = GazeboRosImu(orientation=TRUTH, mounting_rpy=(0.0, 0.3, 0.0))
    pitch, heading = Rotation.from_euler('y', 0.3), Rotation.from_euler('z', math.pi / 2)
    for variant, turn in ((model, heading * pitch), (upstream(model), pitch * heading)):
        result = variant.start(1, 'a').measure(truth)
        published = Rotation.from_quat(result.orientation[2])
        assert (published.inv() * turn).magnitude() < 1e-9
    expected = (pitch * heading).apply([0.0, 2.0, 0.0])
    np.testing.assert_allclose(result.linear_acceleration[2], expected, atol=1e-12)


def test_quaternion_noise_of_gazebo_ros_imu_sensor_scales_with_the_rate():
    """Four times the rate of the numbers: twice the deviation, so the same of an average."""
    model = GazeboRosImuSensor(rate=400.0, gaussian_noise=0.01, orientation=TRUTH)
    for variant, s in ((model, 0.02), (upstream(model), 0.01)):
        result = variant.start(1, 'a').measure(still(20_000, 400.0))
        np.testing.assert_allclose(result.orientation[:, :3].std(0), s, rtol=bound(20_000) + 0.002)
        stated = (4.0 if variant is model else 1.0) * s**2
        np.testing.assert_allclose(result.orientation_covariance[0], np.eye(3) * stated)


def test_gazebo_ros_imu_sensor_as_upstream_does_not_normalise_the_quaternion():
    """[GazeboRos]: E|q|^2 = 1 + 4 s^2 and the yaw errs by 2 s near zero yaw."""
    s, n = 0.05, 50_000
    model = GazeboRosImuSensor(gaussian_noise=s, orientation=TRUTH)
    wrong = upstream(model).start(1, 'a').measure(still(n))
    # |q|^2 = 1 + 2 s w + s^2 chi2(4): variance 4 s^2 + 8 s^4.
    error = SIGMAS * math.sqrt((4.0 * s**2 + 8.0 * s**4) / n)
    squares = np.sum(wrong.orientation**2, axis=1)
    assert squares.mean() == pytest.approx(1.0 + 4.0 * s**2, abs=error)
    np.testing.assert_allclose(wrong.orientation_covariance[0], np.eye(3) * s**2)
    right = model.start(1, 'a').measure(still(n))
    np.testing.assert_allclose(np.sum(right.orientation**2, axis=1), 1.0)
    turns = Rotation.from_quat(right.orientation).as_rotvec()
    # The second-order terms in s are 1 % here.
    np.testing.assert_allclose(turns.std(0), 2.0 * s, rtol=bound(n) + 0.02)
    np.testing.assert_allclose(right.orientation_covariance[0], np.eye(3) * 4.0 * s**2)
    absent = GazeboRosImuSensor(gaussian_noise=s).start(1, 'a').measure(still(2))
    assert absent.orientation_covariance[0, 0, 0] == -1.0


def test_sdf_bias_is_a_symmetric_mixture():
    """[GazeboClassic]: mean 0 and E[b^2] = bias_mean^2 + bias_stddev^2, over 600 axes. Its fourth
    moment gives the error.
    """
    m, s, runs = 0.3, 0.1, 200
    model = GazeboImu(gyroscope=SdfGyroscope(bias_mean=m, bias_stddev=s, stddev=0.01))
    for variant in (model, upstream(model)):
        measured = many(variant, still(2), runs)
        biases = np.array([result.gyroscope_bias[0] for result in measured])
        second = m**2 + s**2
        spread = m**4 + 6.0 * m**2 * s**2 + 3.0 * s**4 - second**2
        assert np.mean(biases) == pytest.approx(0.0, abs=SIGMAS * math.sqrt(second / biases.size))
        error = SIGMAS * math.sqrt(spread / biases.size)
        assert np.mean(biases**2) == pytest.approx(second, abs=error)
        assert all((r.gyroscope_bias[1] == r.gyroscope_bias[0]).all() for r in measured)


def test_gz_dynamic_bias_has_its_stationary_deviation_and_correlation():
    """[GzSensors]: dyn sqrt(Tc/2) and exp(-lag/Tc), over 4000 s of 3 axes with Tc = 2 s."""
    part = SdfAccelerometer(dynamic_bias_stddev=0.05, dynamic_bias_correlation_time=2.0)
    result = GazeboImu(rate=10.0, accelerometer=part).start(1, 'a').measure(still(40_000, 10.0))
    bias = result.accelerometer_bias[200:]
    independent = 3.0 * 4000.0 / 2.0
    assert bias.std() == pytest.approx(0.05, rel=bound(independent))
    lagged = np.mean(bias[20:] * bias[:-20]) / np.mean(bias**2)
    assert lagged == pytest.approx(math.exp(-1.0), abs=SIGMAS / math.sqrt(independent))


def test_the_gz_constant_bias_as_upstream_decays_if_there_is_a_dynamic_one():
    part = SdfGyroscope(bias_mean=1.0, dynamic_bias_stddev=1e-9, dynamic_bias_correlation_time=0.5)
    model = GazeboImu(gyroscope=part)
    exact_bias = model.start(1, 'a').measure(still(51)).gyroscope_bias
    upstream_bias = upstream(model).start(1, 'a').measure(still(51)).gyroscope_bias
    np.testing.assert_allclose(np.abs(exact_bias), 1.0, atol=1e-7)
    np.testing.assert_array_equal(np.abs(upstream_bias[0]), 1.0)
    np.testing.assert_allclose(np.abs(upstream_bias[50]), math.exp(-1.0), atol=1e-7)


def test_values_are_rounded_to_the_sdf_precision():
    part = SdfGyroscope(stddev=0.1, precision=0.25)
    rates = GazeboImu(gyroscope=part).start(1, 'a').measure(still(100)).angular_velocity
    np.testing.assert_allclose(rates / 0.25, np.rint(rates / 0.25))
