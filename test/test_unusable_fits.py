# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""A solution that did not converge or contradicts its data is an error, and nothing is written."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from cli_examples import call
from smoother_examples import drive

from sim2real_eval import simulate
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.writing import write_recording
from sim_sensors import motion_of
from sim_sensors.motion.scenarios import HalfSine

Capture = pytest.CaptureFixture[str]


def blind_drive(fix_rate: float = 1.0) -> Recording:
    """A drive without truth."""
    run, _ = drive(HalfSine(duration=40.0, speed=8.0), 5, fix_rate=fix_rate)
    return run.with_messages('truth', None)


def in_degrees(run: Recording) -> Recording:
    imu = run.imu
    rates = np.degrees(imu.angular_velocity)
    return run.with_messages('imu', dataclasses.replace(imu, angular_velocity=rates))


def too_certain(run: Recording) -> Recording:
    """Fixes that err by 0.3 m with a stated deviation of 1 cm."""
    gps = run.gps
    stated = np.broadcast_to(1e-4 * np.eye(3), (len(gps), 3, 3))
    return run.with_messages('gps', dataclasses.replace(gps, position_covariance=stated))


@pytest.mark.parametrize(
    ('spoil', 'settings', 'problem'),
    [
        (in_degrees, '{}', 'no reference'),
        (in_degrees, 'smoother: {loss: none}', 'no reference'),
        (too_certain, '{}', 'no reference'),
        (lambda run: run, 'smoother: {iterations: 1}', 'did not converge'),
    ],
    ids=['deg/s', 'deg/s without loss', 'covariances', 'iterations'],
)
def test_no_reference_is_written_of_a_solution_that_contradicts_its_data(
    tmp_path: Path, capsys: Capture, spoil: object, settings: str, problem: str
) -> None:
    pytest.importorskip('gtsam')
    write_recording(spoil(blind_drive()), tmp_path / 'spoiled')
    config = tmp_path / 'settings.yaml'
    config.write_text(settings, encoding='utf-8')
    out = tmp_path / 'out'
    done = call(capsys, 'reference', tmp_path / 'spoiled', '--config', config, '--out', out)
    assert done.status == 1
    assert len(done.complaints) == 1
    assert problem in done.complaints[0]
    assert not out.exists() or not list(out.iterdir())


@pytest.mark.parametrize('fix_rate', [5.0, 10.0])
def test_no_reference_is_written_with_rates_in_degrees_beside_frequent_fixes(
    tmp_path: Path, capsys: Capture, fix_rate: float
) -> None:
    """The smoother may converge to the positions then, with a wrong attitude."""
    pytest.importorskip('gtsam')
    write_recording(in_degrees(blind_drive(fix_rate)), tmp_path / 'spoiled')
    out = tmp_path / 'out'
    done = call(capsys, 'reference', tmp_path / 'spoiled', '--out', out)
    assert done.status == 1
    assert not out.exists() or not list(out.iterdir())
    write_recording(blind_drive(fix_rate), tmp_path / 'good')
    assert call(capsys, 'reference', tmp_path / 'good', '--out', out).status == 0


def test_other_references_are_written_beside_one_that_failed(
    tmp_path: Path, capsys: Capture
) -> None:
    pytest.importorskip('gtsam')
    for name, run in (('good', blind_drive()), ('spoiled', in_degrees(blind_drive()))):
        write_recording(dataclasses.replace(run, name=name), tmp_path / name)
    out = tmp_path / 'out'
    done = call(capsys, 'reference', tmp_path / 'good', tmp_path / 'spoiled', '--out', out)
    assert done.status == 1
    assert [path.name for path in out.iterdir()] == ['good']


@pytest.fixture(scope='module')
def jumping(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A drive whose fixes jump by 1 km and stay there, which no vehicle does."""
    run = simulate(motion_of('line', duration=12.0), gps='baseline', imu='ideal')
    latitude = np.array(run.gps.latitude)
    latitude[len(latitude) // 2 :] += 0.01
    path = tmp_path_factory.mktemp('jumping') / 'line_1'
    write_recording(
        run.with_messages('gps', dataclasses.replace(run.gps, latitude=latitude)), path
    )
    return path


@pytest.mark.parametrize(
    'line',
    [
        ('tune', '--judge-config', 'clean', '--parameters', 'noise', '--warmup', 1, '--blocks', 8),
        ('fit', '--judge-config', 'clean', '--gps', 'ch_gauss', '--imu', 'chrono', '--tune',
         'gps.noise.std=0.1:1'),
    ],
    ids=['tune', 'fit'],
)  # fmt: skip
def test_nothing_is_tuned_or_fitted_to_estimates_that_are_no_motion(
    tmp_path: Path, capsys: Capture, jumping: Path, line: tuple[object, ...]
) -> None:
    verb, *options = line
    out = tmp_path / 'out'
    done = call(capsys, verb, jumping, *options, '--out', out, '--jobs', 1)
    assert done.status == 1
    assert 'no usable estimate' in done.complaints[-1]
    assert not (out / 'ekf.yaml').exists()
    assert not (out / 'gps.yaml').exists()
