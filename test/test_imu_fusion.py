# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Attitude that a filter computes from the rates and accelerations of the sensor."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import math

import numpy as np
import pytest
from imu_examples import G, cut, still
from scipy.spatial.transform import Rotation

from sim2real_eval.cli.main import main
from sim_sensors.core.errors import ParameterError
from sim_sensors.imu.chain import AccelerometerChain, GyroscopeChain, ImuChain
from sim_sensors.imu.imu import load_imu
from sim_sensors.imu.models import IdealImu
from sim_sensors.imu.orientation import Orientation
from sim_sensors.motion.scenarios import Circle, FigureEight


def test_without_the_library_the_fusion_mode_is_refused_in_one_line(monkeypatch):
    monkeypatch.setattr(importlib.util, 'find_spec', lambda name: None)
    with pytest.raises(ParameterError, match=r'^mine.yaml: orientation.mode: .*imufusion'):
        IdealImu.from_mapping({'orientation': {'mode': 'fusion'}}, 'mine.yaml')


def test_models_are_listed_without_the_library(monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, 'find_spec', lambda name: None)
    assert main(['models', '--json']) == 0
    measured = json.loads(capsys.readouterr().out)['imu']
    assert measured['bno055_fusion'] is None
    assert measured['bno055_thesis']['rate'] == 100.0


imufusion = pytest.importorskip('imufusion')
FUSION = Orientation(mode='fusion')


def yaw(orientation):
    return Rotation.from_quat(orientation).as_euler('ZYX')[:, 0]


def test_results_do_not_depend_on_the_chunking():
    model = dataclasses.replace(load_imu('bno055_thesis'), orientation=FUSION)
    truth = FigureEight(duration=20.0).at(5.0 + np.arange(60) * 0.0103)
    whole = model.start(1, 'a').measure(truth)
    sensor = model.start(1, 'a')
    parts = [sensor.measure(piece).orientation for piece in cut(truth, [0, 1, 1, 20])]
    assert np.concatenate(parts).tobytes() == whole.orientation.tobytes()
    assert not whole.orientation_covariance.any()


def test_the_fused_attitude_equals_that_of_the_library_sample_by_sample():
    """The library fed with what the sensor publishes, from the true attitude."""
    model = dataclasses.replace(load_imu('airsim'), orientation=FUSION)
    truth = FigureEight(duration=20.0).at(5.0 + np.arange(100) * 0.01)
    result = model.start(1, 'a').measure(truth)
    filter_ = imufusion.Ahrs()
    filter_.skip_startup()
    filter_.set_sample_period(0.01)
    filter_.set_quaternion(truth.orientation[0, [3, 0, 1, 2]])
    for k in range(100):
        filter_.update_no_magnetometer(
            np.degrees(result.angular_velocity[k]), result.linear_acceleration[k] / G
        )
        expected = filter_.get_quaternion()[[1, 2, 3, 0]]
        np.testing.assert_allclose(result.orientation[k], expected, atol=1e-6, err_msg='imufusion')


def test_an_error_free_sensor_gives_the_true_attitude():
    truth = still(1000)
    result = IdealImu(orientation=FUSION).start(1, 'a').measure(truth)
    error = Rotation.from_quat(result.orientation) * Rotation.from_quat(truth.orientation).inv()
    assert error.magnitude().max() < 1e-4


def test_a_gyroscope_bias_makes_the_yaw_drift_but_not_the_tilt():
    """A bias of 0.01 rad/s turns the yaw by 0.2 rad in 20 s; about x gravity holds it to a tilt of
    the bias over the gain of the filter.
    """
    model = ImuChain(gyroscope=GyroscopeChain(constant_bias=(0.01, 0.0, 0.01)), orientation=FUSION)
    result = model.start(1, 'a').measure(still(2000))
    assert yaw(result.orientation)[-1] == pytest.approx(0.2, rel=0.05)
    tilt = Rotation.from_quat(result.orientation).as_euler('ZYX')[-1, 2]
    assert 0.0 < tilt < 0.03


def test_the_yaw_error_grows_as_the_random_walk_of_the_measured_rates():
    """White noise of density N alone: the yaw has the deviation N sqrt(t) over 100 sensors (4.5
    standard errors of 7 %).
    """
    density, seconds = 0.01, 4.0
    gyroscope = GyroscopeChain(noise_density=(0.0, 0.0, density))
    model = ImuChain(
        rate=25.0, gyroscope=gyroscope, accelerometer=AccelerometerChain(), orientation=FUSION
    )
    truth = still(100, 25.0)
    last = [yaw(model.start(1, f'{k}').measure(truth).orientation)[-1] for k in range(100)]
    expected = density * math.sqrt(seconds)
    assert np.std(last) == pytest.approx(expected, rel=4.5 * math.sqrt(0.5 / 100))


def test_the_preset_of_the_thesis_has_the_yaw_of_its_printed_noise_at_rest():
    """The yaw of 60 sensors at rest has the deviation N sqrt(t), N = 0.1683 deg/sqrt(h) as printed
    for z, to 4.5 standard errors and 4 % for the flicker.
    """
    model = load_imu('bno055_fusion')
    truth = still(400)
    errors = np.array([yaw(model.start(1, f'{k}').measure(truth).orientation) for k in range(60)])
    density = math.radians(0.1683) / 60.0
    for seconds in (1.0, 4.0):
        measured = errors[:, round(100 * seconds) - 1].std() / (density * math.sqrt(seconds))
        assert measured == pytest.approx(1.0, abs=4.5 * math.sqrt(0.5 / 60) + 0.04)
    # It does not turn one way.
    assert abs(errors[:, -1].mean()) < 4.5 * errors[:, -1].std() / math.sqrt(60)


def test_centripetal_acceleration_causes_a_known_tilt_and_yaw_error():
    """A circle at 2 m/s^2: gravity seems to lean by atan(2/g), 0.2 rad, to which the filter tends,
    so that it counts only cos of its lean of every turn. The rates alone have no such error.
    """
    truth = Circle(radius=12.5, speed=5.0, duration=30.0).at(np.arange(2900) * 0.01)
    result = load_imu('bno055_fusion').start(1, 'a').measure(truth)
    true = np.unwrap(yaw(truth.orientation))
    error = np.unwrap(yaw(result.orientation)) - true
    lean = math.atan(2.0 / G)
    turned = true[-1] - true[0]
    assert 0.2 * (1.0 - math.cos(lean)) < -error[-1] / turned < 1.5 * (1.0 - math.cos(lean))
    gyroscope = np.cumsum(result.angular_velocity[:, 2]) * 0.01
    assert abs(gyroscope[-1] - turned) < math.radians(0.5)
