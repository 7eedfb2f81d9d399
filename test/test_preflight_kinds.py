# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Newer kinds of findings of `check`, each for several vehicles and values."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from kind_examples import (
    BOAT,
    CAR,
    CART,
    HILL,
    SLOPE,
    STREET,
    TUMBLING,
    Vehicle,
    codes_of,
    driven,
    jittered,
    level,
    lost,
    moved_fixes,
    of_axes,
    of_capture,
    scattered,
    stretched,
    then,
    turned_heading,
    w_first,
    wandering,
    with_antenna,
    with_down,
    with_exact_orientation,
    with_input,
    with_magnetometer,
    within,
    without,
)
from preflight_examples import AHRS, Change, altered, correction, late, rotated_imu, scaled, zeroed
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import Finding
from sim2real_eval.preflight import findings, remedies
from sim2real_eval.preflight.checks import check
from sim2real_eval.preflight.outcome import Measure, Outcome, Preflight
from sim2real_eval.recording.corrections import CORRECTIONS, FixCorrection, correct_recording
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.recording import Recording, StaticTransform
from sim2real_eval.recording.writing import write_recording
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.simulation.twin_maker import synthetic_recording
from sim_sensors.core.measurements import FloatArray
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu.imu import load_imu
from sim_sensors.motion.motions import motion_of


def reversed_rates(*axes: int) -> Change:
    signs = np.where(np.isin(np.arange(3), axes), -1.0, 1.0)
    return altered('imu', angular_velocity=lambda rate: rate * signs)


def biased(*bias: float) -> Change:
    return altered('imu', linear_acceleration=lambda force: force + np.array(bias))


def walking(density: float, seed: int = 0) -> Change:
    """Bias of the accelerometer that walks by `density` m/s^2/sqrt(s) from zero."""

    def force(values: FloatArray) -> FloatArray:
        steps = np.random.default_rng(seed).normal(size=values.shape)
        return values + np.cumsum(steps, axis=0) * density * 0.1

    return altered('imu', linear_acceleration=force)


def white_fixes(std_deg: float, seed: int = 0) -> Change:
    """Noise of the same number of degrees on latitude and longitude."""
    rng = np.random.default_rng(seed)
    return altered(
        'gps',
        latitude=lambda values: values + std_deg * rng.normal(size=len(values)),
        longitude=lambda values: values + std_deg * rng.normal(size=len(values)),
    )


def clipped_rates(limit: float) -> Change:
    return altered('imu', angular_velocity=lambda rate: np.clip(rate, -limit, limit))


def negated(name: str) -> Change:
    return altered('gps', **{name: np.negative})


DEGREES = altered('imu', angular_velocity=np.degrees)
RADIANS = altered('gps', latitude=np.radians, longitude=np.radians)
RESTING = dataclasses.replace(CAR, rests=True, end=50.0)
SLOPING = dataclasses.replace(HILL, rests=True, end=46.0)
LONG = Vehicle(end=60.0)

KINDS: dict[str, tuple[str, Vehicle, Change]] = {
    '5 % lost': ('lost', CAR, lost('imu', 0.05)),
    '10 % lost': ('lost', HILL, lost('imu', 0.1)),
    'pitch rate reversed': ('rate_axes', HILL, reversed_rates(1)),
    'roll rate reversed': ('rate_axes', BOAT, reversed_rates(0)),
    'yaw rate reversed': ('rate_axes', BOAT, reversed_rates(2)),
    'roll and pitch rates reversed': ('rate_axes', BOAT, reversed_rates(0, 1)),
    'orientation rolled by 180': ('orientation_axes', HILL, of_axes('enu', 180.0, 0.0, 0.0)),
    'orientation in NED': ('orientation_axes', CAR, of_axes('ned', 0.0, 0.0, 0.0)),
    'orientation pitched by 90': ('orientation_axes', HILL, of_axes('enu', 0.0, 90.0, 0.0)),
    'orientation rolled by -90': ('orientation_axes', BOAT, of_axes('enu', -90.0, 0.0, 0.0)),
    'orientation w first': (
        'orientation_quaternion', CAR, altered('imu', orientation=w_first)
    ),
    'swaying orientation w first': (
        'orientation_quaternion', BOAT, altered('imu', orientation=w_first)
    ),
    'heading drifts by 40': ('orientation_drifts', CAR, turned_heading(lambda t: 40.0 * t)),
    'heading drifts by -30': ('orientation_drifts', BOAT, turned_heading(lambda t: -30.0 * t)),
    'heading strays twice': (
        'orientation_strays', CAR, turned_heading(lambda t: 30.0 * np.sin(4.0 * np.pi * t))
    ),
    'heading strays five times': (
        'orientation_strays', HILL, turned_heading(lambda t: 40.0 * np.sin(10.0 * np.pi * t))
    ),
    'orientation covariance zero': (
        'no_orientation_covariance', CAR, altered('imu', orientation_covariance=zeroed)
    ),
    'swaying orientation covariance zero': (
        'no_orientation_covariance', BOAT, altered('imu', orientation_covariance=zeroed)
    ),
    'orientation covariance 10^4 too small': (
        'covariance_small_large', CAR, scaled('imu', 'orientation_covariance', 1e-4)
    ),
    'orientation covariance 10^5 too small': (
        'covariance_small_large', BOAT, scaled('imu', 'orientation_covariance', 1e-5)
    ),
    'truth w first': ('truth_quaternion', CAR, altered('truth', orientation=w_first)),
    'swaying truth w first': ('truth_quaternion', BOAT, altered('truth', orientation=w_first)),
    'level truth of a boat': ('truth_no_attitude', BOAT, altered('truth', orientation=level)),
    'level truth of a ferry': (
        'truth_no_attitude',
        dataclasses.replace(BOAT, roll=10.0, pitch=12.0, period=20.0),
        altered('truth', orientation=level),
    ),
    'no twist': ('truth_no_twist', CAR, altered('truth', linear_velocity=zeroed)),
    'no velocities': (
        'truth_no_twist',
        BOAT,
        altered('truth', linear_velocity=zeroed, angular_velocity=zeroed),
    ),
    'street down': ('truth_down', STREET, with_down),
    'slope down': ('truth_down', SLOPE, with_down),
    'hill down': ('truth_down', HILL, with_down),
    'street in NED': ('truth_ned', STREET, correction('truth', axes='ned')),
    'slope in NED': ('truth_ned', SLOPE, correction('truth', axes='ned')),
    'truth turned by 2': ('truth_turned', CAR, correction('truth', turn=2.0)),
    'truth turned by -2.5': ('truth_turned', HILL, correction('truth', turn=-2.5)),
    'mounted at 8': ('imu_yaw', CAR, rotated_imu(0.0, 0.0, 8.0)),
    'mounted at -8': ('imu_yaw', BOAT, rotated_imu(0.0, 0.0, -8.0)),
    'IMU 40 ms late': ('imu_late', CAR, late('imu', 0.04)),
    'IMU 50 ms early': ('imu_late', BOAT, late('imu', -0.05)),
    'cart 40 ms late': ('imu_late', CART, late('imu', 0.04)),
    'clock of the IMU slow': ('clock_rate', CART, stretched('imu', 0.4)),
    'clock of the IMU fast': ('clock_rate', Vehicle(end=80.0), stretched('imu', -0.3)),
    'clock of the fixes slow': ('clock_rate', CART, stretched('gps', 0.8)),
    'clock of the fixes fast': ('clock_rate', Vehicle(end=50.0), stretched('gps', -0.6)),
    'antenna ahead': ('lever_arm', CAR, with_antenna(1.5, 0.0)),
    'antenna behind': ('lever_arm', CART, with_antenna(-0.8, 0.9)),
    'antenna of a boat': ('lever_arm', BOAT, with_antenna(0.0, 1.2)),
    'noise of 111 m': ('fix_errors', CAR, scattered(111.0)),
    'noise of 1.1 km': ('fix_errors', HILL, scattered(1110.0)),
    'GPS time': ('other_clock', LONG, late('gps', 18.0)),
    'GPS time, cut at the start': (
        'fixes_late_large', LONG, then(late('gps', 18.0), within('gps', 0.0, 41.0))
    ),
    'GPS time, cut at the end': (
        'fixes_late_large', LONG, then(late('gps', -18.0), within('gps', 18.0, 60.0))
    ),
    'radians': ('fixes_in_radians', CAR, RADIANS),
    'radians of a boat': ('fixes_in_radians', BOAT, RADIANS),
    'latitude without sign': ('fixes_sign', CAR, negated('latitude')),
    'latitude of a boat without sign': ('fixes_sign', BOAT, negated('latitude')),
    'longitude without sign': ('fixes_sign', CAR, negated('longitude')),
    'longitude of a hill without sign': ('fixes_sign', HILL, negated('longitude')),
    'altitude in feet': ('altitude_unit', HILL, scaled('gps', 'altitude', 3.28084)),
    'altitude in mm': ('altitude_unit', HILL, scaled('gps', 'altitude', 1000.0)),
    'altitude in mm on a plain': ('altitude_place', CAR, scaled('gps', 'altitude', 1000.0)),
    'resting beside wandering fixes': ('covariance_small_large', RESTING, wandering(2.0)),
    'resting on a hill': ('covariance_small_large', SLOPING, wandering(5.0)),
    'accelerometer bias': ('gravity_scale', CAR, biased(0.0, 0.0, 0.3)),
    'accelerometer bias of a hill': ('gravity_scale', HILL, biased(0.2, 0.0, -0.3)),
    'accelerometer bias of 12 %': ('gravity_offset', CAR, biased(0.0, 0.0, 1.2)),
    'accelerometer bias of 15 % in a boat': ('gravity_offset', BOAT, biased(0.0, 0.0, -1.5)),
    'accelerometer 15 % off': (
        'gravity_scale_large', CAR, scaled('imu', 'linear_acceleration', 1.15)
    ),
    'accelerometer 30 % off': (
        'gravity_scale_large', HILL, scaled('imu', 'linear_acceleration', 0.7)
    ),
    'accelerometer 60 % off': (
        'gravity_scale_large', RESTING, scaled('imu', 'linear_acceleration', 1.6)
    ),
    'accelerometer bias that walks': ('force_bias', CAR, walking(0.3)),
    'accelerometer bias of a boat that walks': ('force_bias', BOAT, walking(0.3, 1)),
    'accelerometer bias of a hill that walks': ('force_bias', HILL, walking(0.5, 2)),
    'accelerometer bias that walks at rest': ('force_bias', RESTING, walking(0.3, 3)),
    'noise in degrees': ('fix_errors', CAR, white_fixes(0.01)),
    'noise of half a thousandth degree': ('fix_errors', BOAT, white_fixes(0.0005)),
    'noise of a hill in degrees': ('fix_errors', HILL, white_fixes(0.002)),
    'white noise that is not stated': ('covariance_small_large', CAR, white_fixes(3e-5)),
    'gyroscope saturated': ('saturated', CAR, clipped_rates(0.4)),
    'gyroscope of a boat saturated': ('saturated', BOAT, clipped_rates(0.25)),
    'motion capture': ('truth_rough', CAR, of_capture(100.0, 0.001, 0.002)),
    'motion capture on a hill': ('truth_rough', HILL, of_capture(100.0, 0.002, 0.005)),
    'odometry in the world': ('input_in_world', CAR, with_input(world=True)),
    'twist in the world': ('input_in_world', HILL, with_input(twist=True, world=True)),
    'odometry in km/h': ('input_scale_large', CAR, with_input(factor=3.6)),
    'twist of small wheels': ('input_scale', HILL, with_input(twist=True, factor=0.85)),
    'odometry reversed': ('input_reversed', CAR, with_input(factor=-1.0)),
    'twist reversed': ('input_reversed', BOAT, with_input(twist=True, factor=-1.0)),
    'odometry late': ('input_late', CAR, with_input(delay=0.3)),
    'twist early': ('input_late', HILL, with_input(twist=True, delay=-0.4)),
    'odometry without variance': ('input_covariance', CAR, with_input(stated=0.0)),
    'twist without variance': ('input_covariance', HILL, with_input(twist=True, stated=0.0)),
    'odometry noisy': ('input_covariance_small', CAR, with_input(noise=0.3)),
    'twist noisy': (
        'input_covariance_small', HILL, with_input(twist=True, noise=0.05, stated=0.002)
    ),
    'odometry turns the wrong way': ('input_rate_reversed', CAR, with_input(rate_factor=-1.0)),
    'twist turns the wrong way': (
        'input_rate_reversed', HILL, with_input(twist=True, rate_factor=-1.0)
    ),
}  # fmt: skip


FIRST = {code: name for name, (code, *_) in reversed(KINDS.items())}


@functools.cache
def checked(name: str) -> Preflight:
    _, vehicle, plant = KINDS[name]
    return check(plant(driven(vehicle)))


@pytest.mark.parametrize('name', KINDS)
def test_each_fault_is_one_kind_of_finding_and_its_correction_removes_it(name: str) -> None:
    code, vehicle, plant = KINDS[name]
    run = checked(name)
    assert {finding.code for finding in run.findings} == {f'check.{code}'}
    assert not any(finding.withheld for finding in run.findings)
    if run.changes and name == FIRST[code]:
        corrections = {
            role: CORRECTIONS[role].from_mapping(values, role)
            for role, values in run.corrections.items()
        }
        broken = plant(driven(vehicle))
        assert codes_of(correct_recording(broken, corrections)) == set()


@pytest.mark.parametrize(
    ('vehicle', 'change'),
    [
        (CAR, lost('imu', 0.01)),
        (CAR, jittered('imu', 0.002)),
        (BOAT, jittered('imu', 0.003)),
        (HILL, with_exact_orientation),
        (BOAT, with_exact_orientation),
        (CAR, correction('truth', speed_scale=1.01)),
        (CAR, with_input()),
        (BOAT, with_input(twist=True)),
        (CAR, with_input(twist=True, world=True, frame='map')),
        (HILL, with_input(world=True, frame='map')),
        (CAR, with_input(twist=True, factor=-1.0, stated=0.0, topic='/imu_node/truth/bias')),
        (CAR, of_capture(2.0, 0.0, 0.0)),
        (BOAT, of_capture(2.0, 0.0, 0.0)),
        (HILL, of_capture(2.0, 0.005, 0.003)),
        (CART, of_capture(5.0, 0.0, 0.0)),
        (BOAT, biased(0.2, 0.0, 0.0)),
        (RESTING, lambda run: run),
        (STREET, lambda run: run),
        (SLOPE, lambda run: run),
    ],
)
def test_what_is_no_fault_causes_no_finding(vehicle: Vehicle, change: Change) -> None:
    assert codes_of(change(driven(vehicle))) == set()


@pytest.mark.parametrize('size', [1.238e-17, 3e-9])
@pytest.mark.parametrize('vehicle', [RESTING, CAR])
def test_rounding_errors_of_a_noise_free_gyroscope_are_no_end_of_a_range(
    vehicle: Vehicle, size: float
) -> None:
    def rates(values: FloatArray) -> FloatArray:
        repeated = np.where(np.arange(len(values)) % 50 < 22, size, -0.3 * size)
        return np.column_stack([repeated, np.zeros(len(values)), values[:, 2]])

    run = altered('imu', angular_velocity=rates)(driven(vehicle))
    assert 'saturated' not in codes_of(run)


@pytest.mark.parametrize('first', [0.0, 9.9])
def test_gravity_without_noise_is_no_end_of_a_range(first: float) -> None:
    """Simulators that difference the velocity start without gravity."""

    def forces(values: FloatArray) -> FloatArray:
        vertical = np.full(len(values), 9.80665)
        vertical[0] = first
        return np.column_stack([values[:, :2], vertical])

    run = altered('imu', linear_acceleration=forces)(driven(CAR))
    assert 'saturated' not in codes_of(run)


@pytest.mark.parametrize('seed', range(20))
def test_good_recordings_of_any_seed_pass(seed: int) -> None:
    """Their noise is the one that their covariances state."""
    vehicle = (CAR, CART, HILL, BOAT)[seed % 4]
    gps = ('zed_f9p_rtk', 'gnss_ins_sim_gps')[seed // 4 % 2]
    assert codes_of(driven(vehicle, gps, seed + 2)) == set()


@pytest.mark.parametrize(
    ('vehicle', 'factor'), [(CAR, 1.03), (HILL, 1.1), (CART, 1.14), (BOAT, 0.9)]
)
def test_speeds_of_a_wrong_scale_are_corrected_beside_fixes_only(
    vehicle: Vehicle, factor: float
) -> None:
    wrong = correction('truth', speed_scale=factor)(driven(vehicle))
    run = check(wrong)
    assert codes_of(wrong) == {'speed_scale'}
    assert run.corrections['truth']['speed_scale'] == pytest.approx(1.0 / factor, rel=0.002)
    alone = check(without('gps')(wrong))
    assert {finding.code for finding in alone.findings} == {
        'check.missing', 'check.speed_or_positions'
    }  # fmt: skip
    assert not alone.corrections


@pytest.mark.parametrize(
    ('name', 'role', 'key', 'expected', 'tolerance'),
    [
        ('orientation rolled by 180', 'imu', 'orientation_rotation', (180.0, 0.0, 0.0), 0.0),
        ('orientation pitched by 90', 'imu', 'orientation_rotation', (0.0, -90.0, 0.0), 0.0),
        ('orientation covariance 10^4 too small', 'imu', 'orientation_std', 0.024, 0.01),
        ('truth turned by 2', 'truth', 'turn', -2.0, 0.1),
        ('truth turned by -2.5', 'truth', 'turn', 2.5, 0.1),
        ('mounted at 8', 'imu', 'rotation', (0.0, 0.0, 8.0), 1.0),
        ('mounted at -8', 'imu', 'rotation', (0.0, 0.0, -8.0), 1.0),
        ('IMU 40 ms late', 'imu', 'delay', 0.04, 0.005),
        ('IMU 50 ms early', 'imu', 'delay', -0.05, 0.005),
        ('GPS time, cut at the start', 'gps', 'delay', 18.0, 0.05),
        ('GPS time, cut at the end', 'gps', 'delay', -18.0, 0.05),
    ],
)
def test_a_correction_has_the_size_of_the_fault(
    name: str, role: str, key: str, expected: Any, tolerance: float
) -> None:
    value = checked(name).corrections[role][key]
    assert value == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize(
    ('name', 'number', 'expected', 'tolerance'),
    [
        ('5 % lost', 'share', 0.05, 0.01),
        ('10 % lost', 'share', 0.1, 0.02),
        ('clock of the IMU slow', 'last', 0.4, 0.05),
        ('clock of the fixes fast', 'last', -0.6, 0.05),
        ('noise of 111 m', 'north', 111.0, 10.0),
        ('noise of 1.1 km', 'north', 1110.0, 100.0),
        ('altitude in feet', 'scale', 3.28, 0.1),
        ('accelerometer bias', 'bias', 0.3, 0.02),
        ('odometry in km/h', 'scale', 3.6, 0.05),
        ('twist early', 'delay', -0.4, 0.02),
        ('odometry noisy', 'error', 0.3, 0.03),
    ],
)
def test_a_finding_states_the_size_of_the_fault(
    name: str, number: str, expected: float, tolerance: float
) -> None:
    (finding,) = checked(name).findings
    assert finding.numbers[number] == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize(
    'name', ['accelerometer bias', 'gyroscope saturated', 'gyroscope of a boat saturated']
)
def test_a_fault_that_no_constant_corrects_has_no_correction(name: str) -> None:
    assert not checked(name).corrections


@pytest.mark.parametrize(('length', 'period', 'end'), [(60.0, 17.0, 40.0), (35.0, 23.0, 40.0)])
def test_fixes_of_another_drive_are_unrelated(length: float, period: float, end: float) -> None:
    other = driven(Vehicle(length=length, width=9.0, period=period, lap=3, end=end)).gps
    run = driven(HILL)
    fixes = dataclasses.replace(run.gps, latitude=other.latitude, longitude=other.longitude)
    result = check(run.with_messages('gps', fixes))
    assert {finding.code for finding in result.findings} == {'check.fixes_unrelated'}
    assert not result.corrections


@pytest.mark.parametrize(
    ('vehicle', 'hidden', 'witness'),
    [
        (TUMBLING, ('truth', 'gps'), 'gravity'),
        (CAR, ('truth',), 'course over ground'),
        (CART, ('truth',), 'course over ground'),
        (CAR, ('truth', 'gps'), 'magnetic field'),
        (CART, ('truth', 'gps'), 'magnetic field'),
    ],
)
def test_unit_and_sign_of_rates_have_witnesses_without_truth(
    vehicle: Vehicle, hidden: tuple[str, ...], witness: str
) -> None:
    run = driven(vehicle)
    if witness == 'magnetic field':
        run = with_magnetometer(run)
    hide = then(*map(without, hidden))
    assert codes_of(hide(run)) == {'missing'}
    for plant, code, scale in (
        (DEGREES, 'rate_unit', np.radians(1.0)),
        (scaled('imu', 'angular_velocity', -1.0), 'rate_reversed', -1.0),
    ):
        result = check(hide(plant(run)))
        (finding,) = (one for one in result.findings if one.code != 'check.missing')
        assert finding.code == f'check.{code}_without_truth'
        assert finding.words['witness'] == witness
        assert result.corrections['imu'] == {'rate_scale': pytest.approx(scale, rel=1e-4)}


@pytest.mark.parametrize(('size', 'speed', 'end'), [(200.0, 3.0, 100.0), (240.0, 5.0, 120.0)])
def test_a_delay_at_constant_speed_may_be_a_lever_arm(
    size: float, speed: float, end: float
) -> None:
    parameters = {'speed': speed, 'length': size, 'width': 0.5 * size, 'rest_time': 0.5}
    motion = motion_of('figure_eight', seed=1, run='f', duration=end, parameters=parameters)
    imu = dataclasses.replace(load_imu('xsens_mtx'), orientation=AHRS)
    sensors = Twin('own', load_gps('zed_f9p_rtk'), imu)
    run = synthetic_recording(motion, sensors, seed=1, run='f', scenario='eight')
    steady = then(*(within(role, 8.0, end) for role in run.roles))(run)
    result = check(late('gps', 0.2)(steady))
    assert {finding.code for finding in result.findings} == {
        'check.late_or_lever_arm', 'check.moving_start'
    }  # fmt: skip
    assert not result.corrections
    assert not result.lever_arms


@pytest.mark.parametrize(
    ('vehicle', 'arm', 'roll'),
    [(CAR, (1.5, 0.0), 0.0), (CART, (-0.8, 0.9), 90.0), (HILL, (1.0, -1.0), 180.0)],
)
def test_lever_arms_of_recording_yaml_remove_the_finding_and_keep_rotations(
    tmp_path: Path, vehicle: Vehicle, arm: tuple[float, float], roll: float
) -> None:
    """The IMU is mounted with a roll that the recorded transform states."""
    turn = Rotation.from_euler('x', roll, degrees=True)
    mounted = then(rotated_imu(roll, 0.0, 0.0), with_antenna(*arm))(driven(vehicle))
    transforms = (
        StaticTransform('base_link', 'imu_link', (0.0, 0.0, 0.0), tuple(turn.as_quat())),
        StaticTransform('base_link', 'gps_link', (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0)),
    )
    folder = tmp_path / 'run'
    write_recording(dataclasses.replace(mounted, transforms=transforms), folder)
    result = check(read_recording(folder))
    assert [finding.code for finding in result.findings] == ['check.lever_arm']
    assert result.lever_arms['gps'] == pytest.approx([*arm, 0.0], abs=0.03)
    file = folder / 'recording.yaml'
    content = yaml.safe_load(file.read_text('utf-8')) if file.is_file() else {}
    file.write_text(yaml.safe_dump({**content, 'lever_arms': dict(result.lever_arms)}), 'utf-8')
    assert codes_of(read_recording(folder)) == set()


def with_value(result: Preflight, value: float) -> Preflight:
    """Return a result whose finding has a value and a limit of 1."""
    measure = dataclasses.replace(result.outcomes[0].measure, value=value, limit=1.0)
    outcome = dataclasses.replace(result.outcomes[0], measure=measure)
    return dataclasses.replace(result, outcomes=(outcome,))


def fake_run(kind: Any = None, **changes: Any) -> Preflight:
    """Return a result with a finding and corrections."""
    found: Finding | None = None if kind is None else kind
    outcome = Outcome('delay', 's', Measure(0.0, 0.0, found, 'gps'))
    return Preflight('run', (outcome,), {role: dict(c.changes) for role, c in changes.items()},
                     changes=changes)  # fmt: skip


@pytest.mark.parametrize(
    'left', ['finding', 'finding alone', 'larger value', 'correction', 'other finding', 'nothing']
)
def test_a_correction_that_fails_its_verification_is_withheld(left: str) -> None:
    change = FixCorrection(delay=0.5)
    late_fixes = findings.FIXES_LATE_LARGE('/gps/fix', role='gps', delay=0.5, set=0.5)
    worse = findings.FIX_ERRORS('/gps/fix', north=200.0, east=200.0, white=150.0)
    before = with_value(fake_run(late_fixes, gps=change), 3.0)
    after = {
        'finding': fake_run(late_fixes, gps=change),
        # Nothing more is corrected, but the finding is still there.
        'finding alone': fake_run(late_fixes),
        'larger value': with_value(fake_run(late_fixes), 30.0),
        'correction': fake_run(None, gps=FixCorrection(delay=0.1)),
        'other finding': fake_run(worse),
        'nothing': fake_run(None),
    }[left]
    recordings: list[Recording] = []

    def run(recording: Recording) -> Preflight:
        recordings.append(recording)
        return after

    result = remedies.verify(driven(CAR), before, run)
    shift = recordings[0].gps.stamp_ns - driven(CAR).gps.stamp_ns
    assert set(shift.tolist()) == {-500_000_000}
    (finding,) = result.findings
    is_kept = left == 'nothing'
    assert bool(finding.withheld) is not is_kept
    assert ('gps' in result.corrections) is is_kept
    assert ('corrections:' in finding.remedy) is is_kept


def test_a_lever_arm_is_verified_beside_sensors_without_transforms() -> None:
    """One transform would end the assumption that all sensors are at the base."""
    arm = fake_run(findings.LEVER_ARM('/gps/fix', size=1.0, role='gps', x=1.0, y=0.0, z=0.0))
    arm = dataclasses.replace(arm, lever_arms={'gps': [1.0, 0.0, 0.0]})
    recordings: list[Recording] = []

    def run(recording: Recording) -> Preflight:
        recordings.append(recording)
        return fake_run(None)

    assert remedies.verify(driven(CAR), arm, run).lever_arms == arm.lever_arms
    assert {transform.child for transform in recordings[0].transforms} > {'imu_link'}


def test_a_shift_of_the_fixes_alone_is_no_finding() -> None:
    """The origin of a truth is anywhere."""
    moved = moved_fixes(lambda run: np.tile([30.0, -50.0, 0.0], (len(run.gps), 1)))
    assert codes_of(moved(driven(CAR))) == set()
