# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Faults of GPS and IMU: their laws, and that they leave everything else alone."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from scipy import stats

from sim_sensors.core.errors import ParameterError
from sim_sensors.gps.faults import (
    GPS_FAULTS,
    Degradation,
    FixState,
    JammingFault,
    Outage,
    SpoofingFault,
)
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu.faults import IMU_FAULTS, Saturation, Stuck
from sim_sensors.imu.imu import load_imu
from sim_sensors.motion.motions import motion_of
from sim_sensors.sensor.faults import Fault, read_faults, to_entries, with_faults

MOTION = motion_of('half_sine', duration=60.0)
LABELS: Any = {'seed': 3, 'run': 'r'}
MODELS = {'gps': load_gps('zed_f9p_rtk'), 'imu': load_imu('adis16448')}
# Values with which each fault changes every measurement of these models.
CHANGES: dict[str, Any] = {
    'fix': {'error_scale': 3.0},
    'saturation': {'gyroscope_range': 1e-3, 'accelerometer_range': 0.1},
}
FAULTS = [
    (name, kind(**CHANGES.get(kind.kind, {})))
    for name, kinds in (('gps', GPS_FAULTS), ('imu', IMU_FAULTS))
    for kind in kinds
]
ALL = [pytest.param(name, fault, id=fault.kind) for name, fault in FAULTS]


def numbers(messages: Any) -> np.ndarray:
    """All numbers of the messages, a row per message."""
    rows = []
    for field in dataclasses.fields(messages):
        values = getattr(messages, field.name)
        if isinstance(values, np.ndarray):
            rows.append(values.reshape(len(messages), -1).astype(np.float64))
    return np.hstack(rows)


def simulated(sensor: str, *faults: Fault, motion: Any = MOTION) -> Any:
    model = dataclasses.replace(MODELS[sensor], faults=faults)
    return model.simulate(motion, **LABELS)


def seconds(messages: Any) -> np.ndarray:
    return np.asarray(messages.stamp_ns) * 1e-9


@pytest.mark.parametrize(('sensor', 'fault'), ALL)
def test_a_fault_changes_its_time_only(sensor: str, fault: Fault) -> None:
    timed = dataclasses.replace(fault, start=20.0, end=30.0)
    without, faulty = simulated(sensor), simulated(sensor, timed)
    differs = (numbers(without) != numbers(faulty)) & ~(
        np.isnan(numbers(without)) & np.isnan(numbers(faulty))
    )
    times = seconds(without)[differs.any(axis=1)]
    assert len(times) > 9 * MODELS[sensor].rate
    assert times.min() >= 20.0
    assert times.max() < 30.0


@pytest.mark.parametrize(('sensor', 'fault'), ALL)
def test_a_switched_fault_equals_a_given_one_sample_by_sample(sensor: str, fault: Fault) -> None:
    model = MODELS[sensor]
    switched = model.start(3, 'r', sensor)
    stamps = np.round(np.arange(0.0, 40.0, 1.0 / model.rate) * 1e9).astype(np.int64)
    parts, sizes = [], np.random.default_rng(5).integers(1, 7, len(stamps))
    row = 0
    for size in sizes:
        if row >= len(stamps):
            break
        rows = slice(row, row + int(size))
        before, after = (stamps[[row, min(row + size, len(stamps)) - 1]] * 1e-9).tolist()
        for at in (10.0, 25.0):
            if before <= at <= after:
                switched.faults.switch_on(fault)
        if before <= 17.0 <= after:
            switched.faults.switch_off(fault.kind)
        measured = switched.measure(MOTION.at(stamps[rows] * 1e-9))
        parts.append(numbers(measured.messages(stamps[rows], 'frame')))
        row += int(size)
    faults = switched.faults.faults
    assert [played.end is None for played in faults] == [False, True]
    given = dataclasses.replace(model, faults=faults).start(3, 'r', sensor)
    whole = given.measure(MOTION.at(stamps * 1e-9)).messages(stamps, 'frame')
    assert np.array_equal(np.vstack(parts), numbers(whole), equal_nan=True)


def test_an_outage_repeats_the_last_position_without_a_fix() -> None:
    fixes = simulated('gps', Outage(start=20.0, end=30.0))
    is_lost = fixes.status < 0
    times = seconds(fixes)[is_lost]
    assert (times.min(), len(times)) == (20.0, int(10.0 * MODELS['gps'].rate))
    last = np.flatnonzero(is_lost)[0] - 1
    assert (fixes.latitude[is_lost] == fixes.latitude[last]).all()


@pytest.mark.parametrize(
    ('state', 'status'), [('none', -1), ('single', 0), ('sbas', 1), ('float', 2), ('rtk', 2)]
)
def test_a_fix_state_has_its_status(state: str, status: int) -> None:
    fixes = simulated('gps', FixState(start=20.0, end=30.0, state=state))
    rows = (seconds(fixes) >= 20.0) & (seconds(fixes) < 30.0)
    assert set(fixes.status[rows]) == {status}


def errors(*faults: Fault, duration: float = 600.0) -> tuple[np.ndarray, np.ndarray]:
    """Position errors of ch_gauss at rest with faults, and its stated variances."""
    motion = motion_of('standstill', duration=duration)
    model = dataclasses.replace(load_gps('ch_gauss_airsim'), faults=faults)
    sensor = model.start(7, 'r', 'gps')
    _, measured = sensor.measure_all(motion)
    return measured.position_error, measured.position_covariance[:, [0, 1, 2], [0, 1, 2]]


def test_degradation_scales_error_and_stated_deviation() -> None:
    plain, stated = errors()
    scaled, scaled_stated = errors(Degradation(start=0.0, error_scale=4.0, stated_scale=2.0))
    np.testing.assert_allclose(scaled, 4.0 * plain, rtol=0.0, atol=1e-8)
    np.testing.assert_allclose(scaled_stated, 4.0 * stated)


def test_jamming_has_the_variance_of_its_law() -> None:
    """False alarm: 3 axes at 0.1 % each."""
    jamming = JammingFault(start=0.0, jammer_to_noise=10.0, thermal_std=(0.3, 0.3, 0.6))
    plain, stated = errors()
    jammed, jammed_stated = errors(jamming)
    added = jammed - plain
    expected = 10.0 * np.array([0.3, 0.3, 0.6]) ** 2
    n = len(added)
    low, high = stats.chi2.ppf([0.0005, 0.9995], n) / n
    ratio = (added**2).mean(axis=0) / expected
    assert ((low < ratio) & (ratio < high)).all(), ratio
    np.testing.assert_allclose(jammed_stated - stated, np.broadcast_to(expected, (n, 3)))


def test_spoofing_grows_from_its_start_and_jumps_back() -> None:
    spoofing = SpoofingFault(start=100.0, end=200.0, velocity=(0.5, 0.0, 0.0), distance=30.0)
    plain, _ = errors(duration=300.0)
    spoofed, _ = errors(spoofing, duration=300.0)
    times = np.arange(len(plain)) / 10.0
    age = np.where((times >= 100.0) & (times < 200.0), times - 100.0, 0.0)
    np.testing.assert_allclose((spoofed - plain)[:, 0], np.minimum(0.5 * age, 30.0), atol=1e-8)


def test_a_stuck_axis_repeats_its_last_value_and_the_others_measure_on() -> None:
    plain = simulated('imu')
    stuck = simulated('imu', Stuck(start=20.0, end=21.0, triad='gyroscope', axis='z'))
    rows = (seconds(plain) >= 20.0) & (seconds(plain) < 21.0)
    before = plain.angular_velocity[np.flatnonzero(rows)[0] - 1, 2]
    assert set(stuck.angular_velocity[rows, 2]) == {before}
    assert (stuck.angular_velocity[rows, :2] == plain.angular_velocity[rows, :2]).all()
    assert (stuck.linear_acceleration == plain.linear_acceleration).all()
    always = simulated('imu', Stuck())
    assert (always.angular_velocity == plain.angular_velocity[0]).all()


def test_saturation_clips() -> None:
    plain = simulated('imu')
    limit = float(np.quantile(np.abs(plain.linear_acceleration[:, 2]), 0.5))
    cut = simulated('imu', Saturation(accelerometer_range=limit, gyroscope_range=1e-3))
    assert np.abs(cut.linear_acceleration).max() == limit
    assert (cut.linear_acceleration == np.clip(plain.linear_acceleration, -limit, limit)).all()
    assert np.abs(cut.angular_velocity).max() == 1e-3


def test_the_fault_that_began_earlier_acts() -> None:
    """A fault that is switched on over a given one of its kind replaces it and its end."""
    model = dataclasses.replace(MODELS['gps'], faults=(SpoofingFault(start=0.0, end=20.0),))
    sensor = model.start(3, 'r', 'gps')
    sensor.measure(MOTION.at(np.arange(0.0, 5.0, 0.1)))
    sensor.faults.switch_on(SpoofingFault(velocity=(0.0, 1.0, 0.0)))
    first, second = sensor.faults.faults
    assert first.end == second.start
    assert second.end == 20.0
    sensor.faults.switch_off('spoofing')
    assert sensor.faults.faults == (first,)
    assert not sensor.faults.active


def test_a_scenario_is_read_written_and_part_of_the_model(tmp_path: Path) -> None:
    file = tmp_path / 'faults.yaml'
    file.write_text(
        'faults:\n'
        '- {sensor: gps, fault: outage, start: 20, end: 30}\n'
        '- {sensor: imu, fault: stuck, start: 5, end: 6, axis: z}\n'
        '- {sensor: gps, fault: jamming, start: 25}\n'
    )
    faults = read_faults(file)
    assert faults['gps'] == (Outage(start=20.0, end=30.0), JammingFault(start=25.0))
    models = with_faults(MODELS, file)
    for name, model in models.items():
        again = type(model).from_mapping(model.to_mapping(), 'test')
        assert again == model
        assert to_entries(again.faults) == to_entries(faults[name])


def test_a_scenario_may_end_as_ros2_topic_echo_ends_it(tmp_path: Path) -> None:
    file = tmp_path / 'repeat.yaml'
    file.write_text('faults:\n- {sensor: gps, fault: outage}\n\n---\n')
    assert read_faults(file) == {'gps': (Outage(),)}
    file.write_text('faults: []\n---\nfaults: []\n')
    with pytest.raises(ParameterError, match='another document'):
        read_faults(file)


@pytest.mark.parametrize(
    ('line', 'named'),
    [
        ('{sensor: gsp, fault: outage}', r"faults\[1\].sensor: 'gsp'.*gps"),
        ('{fault: outage}', r'faults\[1\].sensor'),
        ('{sensor: camera, fault: outage}', r"faults\[1\].sensor: 'camera'"),
        ('{sensor: gps, fault: outtage}', r"faults\[1\].fault: 'outtage'.*outage"),
        ('{sensor: gps, fault: [outage]}', r"faults\[1\].fault: \['outage'\]"),
        ('{sensor: gps, fault: outage, start: 5, end: 5}', r'faults\[1\].end: 5.0'),
        ('{sensor: gps, fault: outage, start: -1}', r'faults\[1\].start: -1'),
        ('{sensor: gps, fault: outage, power: 1}', r'faults\[1\].power: unknown'),
        ('{sensor: gps, fault: outage, start: 3}', r'faults\[1\].start: 3.0 .*another outage'),
        ('outage', r"faults\[1\]: 'outage'"),
    ],
)
def test_a_wrong_scenario_is_refused_with_file_and_key(
    tmp_path: Path, line: str, named: str
) -> None:
    file = tmp_path / 'faults.yaml'
    first = '- {sensor: gps, fault: outage, start: 2, end: 4}'
    file.write_text(f'faults:\n{first}\n- {line}\n')
    with pytest.raises(ParameterError, match=f'faults.yaml: {named}'):
        read_faults(file)


def test_a_fault_of_a_sensor_that_is_not_simulated_is_refused(tmp_path: Path) -> None:
    file = tmp_path / 'faults.yaml'
    file.write_text('faults: [{sensor: front/imu, fault: stuck}]\n')
    with pytest.raises(ParameterError, match='front/imu'):
        with_faults(MODELS, file)


def test_faults_of_model_and_file_that_act_together_are_refused(tmp_path: Path) -> None:
    file = tmp_path / 'faults.yaml'
    file.write_text('faults: [{sensor: gps, fault: outage, start: 5}]\n')
    model = dataclasses.replace(MODELS['gps'], faults=(Outage(start=2.0, end=6.0),))
    with pytest.raises(ParameterError, match='within another outage'):
        with_faults({'gps': model}, file)


@pytest.mark.parametrize('off', [15.0, 22.0, 35.0])
def test_a_switched_fault_ends_when_a_given_one_begins(tmp_path: Path, off: float) -> None:
    """The faults so far are always a scenario that can be read back."""
    given = Outage(start=20.0, end=30.0)
    sensor = dataclasses.replace(MODELS['gps'], faults=(given,)).start(3, 'r', 'gps')
    sensor.measure(MOTION.at([10.0]))
    sensor.faults.switch_on(Outage())
    file = tmp_path / 'faults.yaml'
    for time in (off, 40.0):
        file.write_text(yaml.safe_dump(to_entries(sensor.faults.faults, sensor='gps')))
        assert read_faults(file)['gps'] == sensor.faults.faults
        sensor.measure(MOTION.at([time]))
        sensor.faults.switch_off('outage')
    first, second = sensor.faults.faults
    assert first.end == pytest.approx(min(off, 20.0))
    assert (second.start, second.end) == (20.0, pytest.approx(22.0 if off == 22.0 else 30.0))
