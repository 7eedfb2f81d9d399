# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real fit` on recordings whose sensors are known."""

from __future__ import annotations

import dataclasses
import functools
import json
from pathlib import Path

import pytest
from cli_examples import DURATION, call, check_refused, contents
from command_copies import call_copy

from sim2real_eval.recording.writing import write_recording
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.simulation.twin_maker import synthetic_recording
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu.imu import load_imu
from sim_sensors.motion.motions import motion_of

Capture = pytest.CaptureFixture[str]
SIGMA = 0.2


@pytest.fixture(scope='module')
def bags(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Recordings of a GPS with white noise of 0.2 m."""
    folder = tmp_path_factory.mktemp('bags')
    gps = load_gps('ch_gauss')
    noise = dataclasses.replace(gps.noise, std=(SIGMA,) * 3)
    twin = Twin('stand-in', dataclasses.replace(gps, noise=noise), load_imu('chrono'))
    paths = []
    for scenario in ('line', 'circle'):
        for number in (1, 2, 3):
            name = f'{scenario}_{number}'
            motion_name = f'drive_{scenario}'
            motion = motion_of(motion_name, seed=7, run=name, duration=DURATION, parameters={})
            recording = synthetic_recording(motion, twin, seed=7, run=name, scenario=scenario)
            paths.append(folder / name)
            write_recording(recording, paths[-1])
    return paths


def test_the_interval_contains_the_true_noise(
    capsys: Capture, bags: list[Path], tmp_path: Path
) -> None:
    out = tmp_path / 'fitted'
    outcome = call(
        capsys, 'fit', *bags, '--tune', 'gps.noise.std=0.02:1', '--candidates', 16,
        '--judge-config', 'clean', '--jobs', 1, '--out', out, '--json',
    )  # fmt: skip
    assert outcome.status == 0
    record = json.loads(outcome.out)
    (parameter,) = record['parameters']
    assert parameter['low'] <= SIGMA <= parameter['high']
    assert parameter['high'] / parameter['low'] < 2.5
    assert parameter['verdict'] == 'identified'
    assert record['verdict'] == 'better'
    assert record['notes'][0]['code'] == 'fit.better'
    assert record['after'] < 0.2 * record['before']
    model = load_gps(out / 'gps.yaml')
    assert model.noise.std == (parameter['fitted'],) * 3
    assert model == dataclasses.replace(load_gps('ch_gauss'), noise=model.noise)
    assert load_imu(out / 'imu.yaml') == load_imu('chrono')


@pytest.mark.usefixtures('blank_pictures')
def test_results_do_not_depend_on_jobs(capsys: Capture, bags: list[Path], tmp_path: Path) -> None:
    for jobs, run in ((1, functools.partial(call, capsys)), (2, call_copy)):
        outcome = run(
            'fit', *bags[:2], '--gps', 'real', '--tune', 'gyroscope.std',
            '--candidates', 8, '--repetitions', 1, '--folds', 0, '--resamples', 100, '--jobs',
            jobs, '--out', tmp_path / f'jobs_{jobs}',
        )  # fmt: skip
        assert outcome.status == 0
    assert contents(tmp_path / 'jobs_1') == contents(tmp_path / 'jobs_2')


@pytest.mark.parametrize(
    ('options', 'named'),
    [
        ('--tune gps.noise.std --gps ch_rw,airsim', 'one model'),
        ('--tune gps.noise.std --gps real --imu real', 'real'),
        ('--tune gps.noise.std --gps real', 'gps.noise.std'),
        ('--tune gps.noise.white', 'gps.noise.white'),
        ('--tune gps.noise.std --candidates 5', '8'),
        ('--tune gps.noise.std --metric nope', '--metric'),
        ('--tune gps.noise.std --folds 1', 'folds: 1'),
        ('--tune gps.noise.std --gps empty --imu empty', 'gps.yaml'),
        ('', '--tune'),
    ],
)
def test_a_wrong_command_line_is_refused_in_one_line(
    capsys: Capture, bags: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    options: str, named: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'empty').mkdir()
    line = ('fit', bags[0], *options.split(), '--jobs', 1, '--out', 'o')
    check_refused(capsys, named, *line)
