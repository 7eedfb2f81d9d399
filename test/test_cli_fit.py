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
            motion = motion_of(
                f'drive_{scenario}', seed=7, run=name, duration=DURATION, parameters={}
            )
            recording = synthetic_recording(motion, twin, seed=7, run=name, scenario=scenario)
            paths.append(folder / name)
            write_recording(recording, paths[-1])
    return paths


def test_a_known_noise_is_found_within_its_interval(
    capsys: Capture, bags: list[Path], tmp_path: Path
) -> None:
    out = tmp_path / 'fitted'
    outcome = call(
        capsys, 'fit', '--real', *bags, '--tune', 'gps.noise.std=0.02:1', '--candidates', 16,
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
    # Findings about the simulated runs, two for each of six recordings, as in vepd.
    assert any('12 of 12 simulated runs: ' in note['text'] for note in record['notes'])
    assert record['after'] < 0.2 * record['before']
    model = load_gps(out / 'gps.yaml')
    assert model.noise.std == (parameter['fitted'],) * 3
    assert model == dataclasses.replace(load_gps('ch_gauss'), noise=model.noise)
    assert load_imu(out / 'imu.yaml') == load_imu('chrono')
    assert 'Fitted by `sim2real fit`' in (out / 'gps.yaml').read_text(encoding='utf-8')
    names = {'gps.yaml', 'imu.yaml', 'fit.json', 'candidates.csv', 'runs.csv', 'profiles.png'}
    assert names < {path.name for path in out.iterdir()}


@pytest.mark.usefixtures('blank_pictures')
def test_the_number_of_processes_changes_no_byte(
    capsys: Capture, bags: list[Path], tmp_path: Path
) -> None:
    for jobs, run in ((1, functools.partial(call, capsys)), (2, call_copy)):
        outcome = run(
            'fit', '--real', *bags[:2], '--gps', 'real', '--tune', 'gyroscope.std',
            '--candidates', 8, '--repetitions', 1, '--folds', 0, '--resamples', 100, '--jobs',
            jobs, '--out', tmp_path / f'jobs_{jobs}',
        )  # fmt: skip
        assert outcome.status == 0
        assert 'not validated' in outcome.out
    assert contents(tmp_path / 'jobs_1') == contents(tmp_path / 'jobs_2')
    assert not (tmp_path / 'jobs_1' / 'gps.yaml').exists()


def test_a_characterisation_can_be_the_start(
    capsys: Capture, bags: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / 'sensors'
    folder.mkdir()
    (folder / 'gps.yaml').write_text('model: gps\nnoise:\n  model: gaussian\n', encoding='utf-8')
    check_refused(
        capsys, 'holds no imu.yaml', 'fit', '--real', bags[0], '--gps', folder, '--imu', folder,
        '--tune', 'gps.noise.std', '--out', 'o',
    )  # fmt: skip
    check_refused(
        capsys, "'gps.noise.white' is unknown", 'fit', '--real', bags[0], '--gps', folder,
        '--tune', 'gps.noise.white', '--out', 'o',
    )  # fmt: skip


@pytest.mark.parametrize(
    ('arguments', 'complaint'),
    [
        (['--tune', 'gps.noise.std', '--gps', 'ch_rw,airsim'], 'must be one model'),
        (['--tune', 'gps.noise.std', '--gps', 'real', '--imu', 'real'], 'cannot both stay real'),
        (['--tune', 'gps.noise.std', '--gps', 'real'], 'is unknown'),
        (['--tune', 'gps.noise.std', '--candidates', '5'], 'are too few; must be 8 or more'),
        (['--tune', 'gps.noise.std', '--metric', 'nope'], 'invalid choice'),
        (
            ['--tune', 'gps.noise.std', '--folds', '1'],
            'folds: 1 is not allowed; must be 0 or an integer >= 2',
        ),
        ([], '--tune'),
    ],
)
def test_wrong_lines(
    capsys: Capture, bags: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    arguments: list[str], complaint: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    check_refused(
        capsys, complaint, 'fit', '--real', bags[0], *arguments, '--jobs', 1, '--out', 'o'
    )
