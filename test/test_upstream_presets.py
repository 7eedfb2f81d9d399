# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Presets of simulators against their sources: start, first samples, law and fields.

The page docs/reference/sensors/upstream.md names the source of each. Bounds are 4.5 standard
errors (7e-6 per comparison); seeds are fixed.
"""

from __future__ import annotations

import dataclasses
import math
import re
from pathlib import Path

import numpy as np
import pytest
from imu_examples import G, bound, many, moving, still, upstream
from scipy.spatial.transform import Rotation
from stepping_examples import assert_stepping_gives_the_same_bits

from sim_sensors.core.errors import ParameterError
from sim_sensors.gps.gps import load_gps
from sim_sensors.gps.simulators import GazeboPositionNoise, HectorNoise, WebotsNoise
from sim_sensors.imu.gazebo import GazeboImu, SdfGyroscope
from sim_sensors.imu.imu import load_imu
from sim_sensors.imu.models import WebotsImu
from sim_sensors.imu.simulators import (
    CarlaImu,
    GnssInsSimGyroscope,
    GnssInsSimImu,
    PegasusImu,
    RotorsAccelerometer,
    RotorsGyroscope,
    RotorsImu,
)
from sim_sensors.motion.scenarios import Circle
from sim_sensors.sensor.catalogue import KINDS, has_upstream, preset_names

ROOT = Path(__file__).parents[1]
PAGE = ROOT / 'docs' / 'reference' / 'sensors' / 'upstream.md'


def errors_of(noise, steps, runs=400):
    """Errors of many receivers at the first fix and after each of the steps, `(runs, n, 3)`."""
    dt = np.concatenate([[0.0], np.asarray(steps, dtype=np.float64)])
    return np.stack([noise.start(k, 'a', 'gps').advance(dt) for k in range(runs)])


@pytest.mark.parametrize(
    ('rpy', 'x'),
    [((0.0, math.pi / 2, 0.0), 1.0), ((0.0, -math.pi / 2, 0.0), -1.0), ((0.3, 0.8, -2.0), None)],
)
def test_carla_turns_the_rate_by_its_mounting_as_upstream(rpy, x):
    """[CARLA], ComputeGyroscope: M w in place of M^T w; a pitch of 90 deg has the wrong sign."""
    truth = Circle(duration=20.0).at(10.0 + np.arange(5) * 0.01)
    mounting = Rotation.from_euler('xyz', rpy)
    model = CarlaImu(mounting_rpy=rpy)
    right, wrong = (m.start(1, 'a').measure(truth) for m in (model, upstream(model)))
    yaw_rate = truth.angular_velocity
    expected = mounting.inv().apply(yaw_rate)
    np.testing.assert_allclose(right.angular_velocity, expected, atol=1e-12)
    np.testing.assert_allclose(wrong.angular_velocity, mounting.apply(yaw_rate), atol=1e-12)
    if x is not None:
        np.testing.assert_allclose(wrong.angular_velocity[:, 0], x * yaw_rate[:, 2], atol=1e-12)
        np.testing.assert_allclose(right.angular_velocity[:, 0], -x * yaw_rate[:, 2], atol=1e-12)


def test_carla_half_turns_hide_the_wrong_mounting():
    truth = Circle(duration=20.0).at(10.0 + np.arange(5) * 0.01)
    model = CarlaImu(mounting_rpy=(math.pi, 0.0, 0.0))
    right, wrong = (m.start(1, 'a').measure(truth) for m in (model, upstream(model)))
    np.testing.assert_allclose(right.angular_velocity, wrong.angular_velocity, atol=1e-12)


@pytest.mark.parametrize('name', ['carla_imu', 'webots_imu', 'pegasus_imu'])
def test_these_simulators_state_no_covariances(name):
    """[CARLARos], [WebotsRos2] and [Pegasus] leave the matrices at zero."""
    result = load_imu(f'{name}:as_upstream').start(1, 'a').measure(still(3))
    assert not result.angular_velocity_covariance.any()
    assert not result.linear_acceleration_covariance.any()


@pytest.mark.parametrize('model', [WebotsImu(), PegasusImu()])
def test_the_velocity_is_differenced_from_zero_as_upstream(model):
    """[Webots] WbAccelerometer, [Pegasus] imu.py: the first sample has v/dt; then the mean."""
    truth = moving(4, (0.3, -0.2, 0.1))
    truth = dataclasses.replace(truth, velocity=truth.velocity + np.array([2.0, 0.0, 0.0]))
    wrong = upstream(model, rate=100.0).start(1, 'a').measure(truth).linear_acceleration
    np.testing.assert_allclose(wrong[0], [200.0, 0.0, G], atol=1e-9)
    np.testing.assert_allclose(wrong[1:], np.tile([0.3, -0.2, G + 0.1], (3, 1)), atol=1e-9)
    exact = model.start(1, 'a').measure(truth).linear_acceleration
    np.testing.assert_allclose(exact, np.tile([0.3, -0.2, G + 0.1], (4, 1)), atol=1e-9)


def test_the_webots_gps_starts_without_error_as_upstream():
    """[Webots] WbGps: accuracy sqrt(1 - r^(2 k)) after k periods; 400 receivers of 3 axes."""
    noise = WebotsNoise(accuracy=2.0, noise_correlation=0.5, sampling_period=0.1)
    ratio = 0.5**0.1
    wrong = errors_of(upstream(noise), [0.1] * 20)
    right = errors_of(noise, [0.1] * 20)
    for k in (0, 4, 20):
        grown = 2.0 * math.sqrt(1.0 - ratio ** (2 * (k + 1)))
        assert wrong[:, k].std() == pytest.approx(grown, rel=bound(1200))
        assert right[:, k].std() == pytest.approx(2.0, rel=bound(1200))
    lagged = np.mean(right[:, 10] * right[:, 20]) / 4.0
    assert lagged == pytest.approx(0.5, abs=4.5 / math.sqrt(1200))


def test_extreme_correlations_of_the_webots_gps():
    """0: white. 1: constant; as upstream no fix errs, since the error stays at its start."""
    white = errors_of(WebotsNoise(accuracy=2.0), [0.1] * 9)
    assert abs(np.mean(white[:, 1:] * white[:, :-1]) / 4.0) < 4.5 / math.sqrt(400 * 27)
    constant = WebotsNoise(accuracy=2.0, noise_correlation=1.0)
    values = errors_of(constant, [0.1] * 9)
    np.testing.assert_array_equal(values, np.repeat(values[:, :1], 10, axis=1))
    assert values[:, 0].std() == pytest.approx(2.0, rel=bound(1200))
    assert not errors_of(upstream(constant), [0.1] * 9).any()


def test_the_gps_of_gazebo_classic_has_no_variant_with_errors_in_degrees():
    """[GazeboClassic] GpsSensor adds metres; the degrees are those of new Gazebo's NavSat."""
    with pytest.raises(ParameterError, match='gazebo_classic_gps:as_upstream: variant'):
        load_gps('gazebo_classic_gps:as_upstream')
    model = load_gps('gazebo_classic_gps')
    assert not model.noise.is_angular
    names = ('mean', 'std', 'bias_mean', 'bias_std')
    new = GazeboPositionNoise(**{name: getattr(model.noise, name) for name in names})
    old = errors_of(model.noise, [0.1] * 5, runs=3)
    np.testing.assert_array_equal(errors_of(new, [0.1] * 5, runs=3), old)


def test_the_velocity_of_hector_moves_the_fix_after_its_publication_as_upstream():
    """[Hector] gazebo_ros_gps: the first fix has no interval, the second does not move yet."""
    noise = HectorNoise(velocity_drift=1.0, velocity_drift_frequency=1e-9, variant='as_upstream')
    values = errors_of(noise, [0.25, 0.25, 0.25, 0.25], runs=300)
    np.testing.assert_array_equal(values[:, :2], 0.0)
    for k in (2, 3, 4):
        assert values[:, k].std() == pytest.approx(0.25 * (k - 1), rel=bound(900))


def test_the_first_fix_of_hector_has_the_drawn_drift():
    for variant in ('exact', 'as_upstream'):
        noise = HectorNoise(drift=3.0, variant=variant)
        first = errors_of(noise, [], runs=300)[:, 0]
        assert first.std() == pytest.approx(3.0, rel=bound(900))


def test_the_turn_on_bias_of_px4_decays_and_that_of_rotors_does_not():
    """[PX4Classic]: the bias starts at the turn-on bias; [RotorS] adds a constant."""
    part = RotorsGyroscope(turn_on_bias_sigma=0.1, bias_correlation_time=0.5)
    rotors = RotorsImu(gyroscope=part)
    px4 = dataclasses.replace(rotors, turn_on_decays=True)
    constant, decaying = (
        np.array([r.gyroscope_bias for r in many(model, still(101), 150)])
        for model in (rotors, px4)
    )
    np.testing.assert_array_equal(constant, np.repeat(constant[:, :1], 101, axis=1))
    assert constant[:, 0].std() == pytest.approx(0.1, rel=bound(450))
    np.testing.assert_allclose(decaying[:, 100], decaying[:, 50] * math.exp(-1.0), rtol=1e-9)
    np.testing.assert_allclose(decaying[:, 0], constant[:, 0] * math.exp(-0.02), rtol=1e-9)
    assert load_imu('px4_iim42653:as_upstream').turn_on_decays
    for name in ('px4_iim42653', 'rotors_adis16448', 'rotors_adis16448:as_upstream'):
        assert not load_imu(name).turn_on_decays


def test_numbers_of_px4_are_those_of_its_header():
    """[PX4Classic] gazebo_imu_plugin.h."""
    model = load_imu('px4_iim42653')
    assert model.gyroscope.noise_density == 0.0008726646
    assert model.accelerometer.noise_density == 0.00637


def test_px4_uses_the_same_numbers_per_sample_in_new_gazebo():
    """[PX4Models] x500_base at 250 Hz: a sixteenth of the density of [PX4Classic]."""
    classic, new = load_imu('px4_iim42653'), load_imu('px4_gz_imu')
    assert new.gyroscope.stddev[0] == classic.gyroscope.noise_density
    result = new.start(1, 'a').measure(still(20_000, 250.0))
    expected = [0.00637, 0.00637, 0.00686]
    np.testing.assert_allclose(result.linear_acceleration.std(0), expected, rtol=bound(20_000))
    old = dataclasses.replace(classic, rate=250.0).start(1, 'a').measure(still(20_000, 250.0))
    ratio = old.angular_velocity.std() / result.angular_velocity.std()
    assert ratio == pytest.approx(math.sqrt(250.0), rel=2.0 * bound(60_000))


def test_pegasus_as_upstream_uses_the_wrong_time_and_no_bias_of_its_accelerometer():
    """[Pegasus] imu.py: tau_g is the accelerometer's; turn-on biases are never drawn."""
    gyroscope = RotorsGyroscope(
        random_walk=0.2, bias_correlation_time=50.0, turn_on_bias_sigma=3.0
    )
    accelerometer = RotorsAccelerometer(
        random_walk=0.2, bias_correlation_time=0.5, turn_on_bias_sigma=3.0
    )
    model = PegasusImu(rate=10.0, gyroscope=gyroscope, accelerometer=accelerometer)
    wrong = upstream(model).start(1, 'a').measure(still(40_000, 10.0))
    stationary, independent = 0.2 * math.sqrt(0.5 / 2.0), 3.0 * 4000.0 / 0.5
    bias = wrong.gyroscope_bias[100:]
    assert bias.std() == pytest.approx(stationary, rel=bound(independent))
    lagged = np.mean(bias[5:] * bias[:-5]) / np.mean(bias**2)
    assert lagged == pytest.approx(math.exp(-1.0), abs=4.5 / math.sqrt(independent))
    assert not wrong.accelerometer_bias.any()
    right = many(model, still(2, 10.0), 100)
    for name in ('gyroscope_bias', 'accelerometer_bias'):
        first = np.array([getattr(r, name)[0] for r in right])
        assert first.std() == pytest.approx(3.0, rel=bound(300))


def test_pegasus_publishes_no_orientation():
    """[Pegasus] ros2_backend.py: the identity with zeros as upstream; -1 marks it otherwise."""
    for name, stated in (('pegasus_imu', -1.0), ('pegasus_imu:as_upstream', 0.0)):
        result = load_imu(name).start(1, 'a').measure(still(2))
        np.testing.assert_array_equal(result.orientation, np.tile([0.0, 0.0, 0.0, 1.0], (2, 1)))
        assert result.orientation_covariance[0, 0, 0] == stated
        assert not result.orientation_covariance[0, 1:].any()


def test_the_drift_of_gnss_ins_sim_is_zero_at_the_first_sample_as_upstream():
    """[GnssInsSim] bias_drift: the array starts with zeros."""
    part = GnssInsSimGyroscope(drift_std=0.2, drift_time=1.0)
    for rate in (10.0, 100.0):
        model = GnssInsSimImu(rate=rate, gyroscope=part, variant='as_upstream')
        biases = np.array([r.gyroscope_bias for r in many(model, still(2, rate), 200)])
        assert not biases[:, 0].any()
        step = 0.2 * math.sqrt(1.0 - math.exp(-2.0 / rate))
        assert biases[:, 1].std() == pytest.approx(step, rel=bound(600))


def test_the_attitude_of_new_gazebo_is_relative_to_the_first_one_as_upstream():
    """[GzSim] Imu.cc: SetOrientationReference with the pose at the start."""
    truth = Circle(duration=20.0).at(5.0 + np.arange(50) * 0.01)
    wrong = load_imu('gz_imu:as_upstream').start(1, 'a').measure(truth).orientation
    np.testing.assert_allclose(wrong[0], [0.0, 0.0, 0.0, 1.0], atol=1e-12)
    true = Rotation.from_quat(truth.orientation)
    difference = Rotation.from_quat(wrong) * (true[0].inv() * true).inv()
    assert difference.magnitude().max() < 1e-9
    right = load_imu('gz_imu').start(1, 'a').measure(truth).orientation
    assert (Rotation.from_quat(right) * true.inv()).magnitude().max() < 1e-9


def test_new_gazebo_rounds_only_to_steps_above_a_millionth():
    rates = {}
    for precision in (1e-6, 1e-5):
        part = SdfGyroscope(stddev=1e-4, precision=precision)
        model = GazeboImu(gyroscope=part, variant='as_upstream')
        values = model.start(1, 'a').measure(still(50)).angular_velocity / precision
        rates[precision] = bool(np.abs(values - np.rint(values)).max() < 1e-6)
    assert rates == {1e-6: False, 1e-5: True}


@pytest.mark.parametrize('kind', ['imu', 'gps'])
def test_presets_as_upstream_do_not_depend_on_the_chunking(kind):
    """The first samples differ from the others, in whatever call they are."""
    truth = Circle(duration=20.0).at(5.0 + np.arange(40) * 0.0103)
    for name in preset_names(kind):
        if has_upstream(KINDS.get(kind).load(name)):
            model = KINDS.get(kind).load(f'{name}:as_upstream')
            assert_stepping_gives_the_same_bits(model, truth, [0, 1, 1, 2, 17])


# The table of docs/reference/sensors/upstream.md.


def table_rows(kind):
    """Cells of the rows of the table of a kind, by preset."""
    text = PAGE.read_text(encoding='utf-8')
    section = re.search(rf'^## {kind.upper()}\n(.*?)(?=^## |\Z)', text, re.M | re.S)
    rows = {}
    for line in section[1].splitlines():
        cells = [cell.strip() for cell in line.strip().strip('|').split('|')]
        for name in re.findall(r'`(\w+)`', cells[0]):
            assert name not in rows, name
            rows[name] = cells
    return rows


@pytest.mark.parametrize('kind', ['imu', 'gps'])
def test_the_table_of_sources_has_each_preset_of_a_simulator(kind):
    """It marks those with a variant, and states the rate of each."""
    rows = table_rows(kind)
    models = {name: KINDS.get(kind).load(name) for name in preset_names(kind)}
    assert set(rows) <= set(models)
    assert {name for name in models if has_upstream(models[name])} <= set(rows)
    for name, cells in rows.items():
        assert cells[0].endswith('\\*') == has_upstream(models[name]), name
        assert float(cells[1]) == models[name].rate, name
        assert (cells[5] == 'none') != has_upstream(models[name]), name


def test_each_test_that_the_table_names_exists():
    source = '\n'.join(path.read_text(encoding='utf-8') for path in ROOT.glob('test/test_*.py'))
    rows = {(kind, name): row for kind in ('imu', 'gps') for name, row in table_rows(kind).items()}
    tests = {key: re.findall(r'`(test_\w+)`', row[6]) for key, row in rows.items()}
    assert all(tests.values())
    named = {test for names in tests.values() for test in names}
    assert {test for test in named if f'def {test}(' not in source} == set()


@pytest.mark.parametrize('kind', ['imu', 'gps'])
def test_the_table_of_sources_states_the_fields_of_the_messages(kind):
    """Zeros, a type, an orientation: as the first message of each preset has them."""
    for name, cells in table_rows(kind).items():
        model = KINDS.get(kind).load(name)
        result = model.start(1, 'a').measure(still(3, model.rate))
        if kind == 'gps':
            if number := re.search(r'type (\d)', cells[4]):
                is_paper = name.startswith('ch_') and 'airsim' in name
                expected = 1 if is_paper else int(number[1])
                assert result.covariance_type == expected, name
            if cells[4].startswith('zeros') and 'airsim' not in name:
                assert not result.position_covariance.any(), name
            continue
        is_absent = cells[4].startswith('no orientation') and name != 'chrono_ahrs'
        assert (result.orientation_covariance[0, 0, 0] == -1.0) == is_absent, name
        states_rate = result.angular_velocity_covariance[:, 0, 0].any()
        assert states_rate == ('; white' in cells[4]), name
