# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Magnetometers, as in [Ligorio2015], against the turned field of the place and each other."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from cli_examples import call
from scipy.spatial.transform import Rotation
from scipy.stats import chi2

from sim2real_eval.recording.recording import Recording, StaticTransform
from sim2real_eval.recording.writing import write_recording
from sim2real_eval.signals.comparison import compare_runs
from sim2real_eval.signals.measured import SensorSignals, run_signals
from sim2real_eval.signals.options import LIGORIO_2015, SignalOptions
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.simulation.twin_maker import (
    TwinMaker,
    make_twin_maker,
    measure_early_field,
    synthetic_recording,
)
from sim_sensors.imu.imu import load_imu
from sim_sensors.magnetometer.magnetometer import Magnetometer, MagnetometerErrors, load_mag
from sim_sensors.motion.spatial_scenarios import Swaying
from sim_sensors.world.world import load_world

Capture = pytest.CaptureFixture[str]
WORLD = load_world('default')
OPTIONS = SignalOptions(trend_window=101)


def recorded(mag: Magnetometer, *, duration: float = 8.0, **more: object) -> Recording:
    motion = Swaying.from_mapping({'duration': duration, **more}, 'test')
    twin = Twin('stand-in', gps=None, imu=load_imu('xsens_mtx'), others={'mag': mag})
    return synthetic_recording(
        motion, twin, seed=4, run='swaying_1', scenario='swaying', world=WORLD
    )


def in_world(run: Recording) -> SensorSignals:
    """Compare a recording with the field of the world."""
    maker = make_twin_maker(run, WORLD, seed=0)
    return run_signals(maker.real, OPTIONS, maker=maker)


def with_errors(**errors: object) -> Magnetometer:
    return Magnetometer(magnetometer=MagnetometerErrors(**errors))  # type: ignore[arg-type]


def test_an_ideal_magnetometer_measures_the_rotated_field_of_the_world() -> None:
    """scipy rotates the field from the world to the body and a tilted sensor."""
    turn = Rotation.from_euler('xyz', [0.3, 0.1, 2.0])
    mag = dataclasses.replace(load_mag('ideal'), frame_id='mag')
    quaternion = tuple(turn.as_quat().tolist())
    mounted = dataclasses.replace(
        recorded(mag).with_messages('mag', None),
        transforms=(
            StaticTransform('base_link', 'mag', (0.1, 0.2, 0.3), quaternion),
            StaticTransform('base_link', 'imu_link'),
        ),
    )
    run = TwinMaker(mounted, seed=1, world=WORLD).make(Twin('ideal', None, None, {'mag': mag}))
    field = in_world(run).measured['magnetic_field']
    attitude = Rotation.from_quat(run.truth.orientation) * turn
    expected = attitude.inv().apply(WORLD.undisturbed_field)
    np.testing.assert_allclose(field.true, expected, atol=1e-13, err_msg='scipy')
    np.testing.assert_allclose(field.measured, field.true, atol=1e-13)


def test_hard_iron_and_noise_are_recovered() -> None:
    """Bias to four standard errors, noise in its chi-square band (false alarms 1e-3 per axis)."""
    bias, std = np.array([3e-6, -2e-6, 1e-6]), 5e-7
    run = recorded(with_errors(constant_bias=tuple(bias.tolist()), noise_density=std / 10.0))
    error = in_world(run).measured['magnetic_field'].error
    n = len(error)
    np.testing.assert_allclose(error.mean(axis=0), bias, atol=4.0 * std / np.sqrt(n))
    low, high = chi2.ppf([5e-4, 1.0 - 5e-4], n - 1) / (n - 1)
    ratio = error.var(axis=0, ddof=1) / std**2
    assert (ratio > low).all()
    assert (ratio < high).all()


def test_without_a_world_the_field_is_estimated_from_the_first_two_seconds() -> None:
    """To four standard errors of 201 samples."""
    std = 5e-7
    run = recorded(with_errors(noise_density=std / 10.0))
    maker = make_twin_maker(run, None, seed=0)
    field = maker.world.undisturbed_field
    np.testing.assert_allclose(field, WORLD.undisturbed_field, atol=4.0 * std / np.sqrt(201))
    np.testing.assert_array_equal(field, measure_early_field(maker))


def test_hard_iron_of_a_body_that_does_not_rotate_is_counted_as_field() -> None:
    still = recorded(with_errors(constant_bias=(1e-5, 0.0, 0.0)), swing=[0.0, 0.0, 0.0])
    error = run_signals(still, OPTIONS).measured['magnetic_field'].error
    np.testing.assert_allclose(error, 0.0, atol=1e-12)


def test_a_noise_free_magnetometer_has_precedence_as_source_of_the_field() -> None:
    exact = recorded(load_mag('ideal')).mag
    assert exact is not None
    run = recorded(with_errors(constant_bias=(1e-5, 0.0, 0.0))).with_messages('ideal_mag', exact)
    for recording in (run, run.with_messages('mag', None)):
        field = make_twin_maker(recording, None, seed=0).world.undisturbed_field
        np.testing.assert_allclose(field, WORLD.undisturbed_field, rtol=1e-12)
    error = run_signals(run, OPTIONS).measured['magnetic_field'].error
    np.testing.assert_allclose(error, np.tile([1e-5, 0.0, 0.0], (len(error), 1)), atol=1e-12)


def test_real_minus_simulated_readings_have_the_noise_of_both() -> None:
    real, simulated = (
        in_world(dataclasses.replace(recorded(load_mag(name)), name='real'))
        for name in ('xsens_mtx', 'ideal')
    )
    comparison = compare_runs([real], {'ideal': [simulated]}, OPTIONS)
    rows = [row for row in comparison.rows if row.signal.startswith('magnetic_field')]
    assert len(rows) == 3
    for row in rows:
        # 0.5 uT a sample; 801 of them.
        assert row.between.rmse == pytest.approx(5e-7, rel=0.1)
        assert row.between.correlation > 0.98
        assert row.signal in LIGORIO_2015


@pytest.mark.usefixtures('blank_pictures')
def test_compare_writes_the_models_of_a_magnetometer(capsys: Capture, tmp_path: Path) -> None:
    write_recording(recorded(load_mag('xsens_mtx')), tmp_path / 'swaying_1')
    out = tmp_path / 'signals'
    words = [
        'compare', tmp_path / 'swaying_1', '--imu', 'xsens_mtx',
        '--mag', 'ideal,xsens_mtx', '--published', '--out', out, '--jobs', 1,
    ]  # fmt: skip
    printed = call(capsys, *words)
    assert printed.status == 0
    names = {path.name for path in out.iterdir()}
    assert {f'signals_{name}.png' for name in ('angular_rate', 'magnetic_field')} <= names
    record = json.loads((out / 'comparison.json').read_text(encoding='utf-8'))
    signals = {row['signal'] for row in record['rows'] if row['model'] == 'ideal'}
    assert signals == {f'magnetic_field_{axis}' for axis in 'xyz'}
