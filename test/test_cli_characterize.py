# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real characterize`: from a calibration recording to models that simulate."""

from __future__ import annotations

import dataclasses
import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from cli_examples import call, check_refused, contents, run_of
from gps_standstill_examples import standing

from sim2real_eval.characterization.calibration import calibrate
from sim2real_eval.characterization.recovered_parameters import fit_imu
from sim2real_eval.common.file_list import list_name
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.recording import StaticTransform
from sim2real_eval.recording.writing import write_recording
from sim2real_eval.report.sensor_set_folder import FILES
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.simulation.twin_maker import synthetic_recording
from sim_sensors.gps.gps import GnssNoise, HdopCovariance, load_gps
from sim_sensors.imu.imu import load_imu
from sim_sensors.motion.scenarios import Circle, Standstill

Capture = pytest.CaptureFixture[str]
WHITE, WANDER, TIME = 0.01, 0.05, 4.0
QUARTER = (0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5))
TRANSFORMS = (
    StaticTransform('base_link', 'gps_link', (0.1, -0.2, 1.3)),
    StaticTransform('base_link', 'imu_link', (0.0, 0.0, 0.4), QUARTER),
)


@pytest.fixture(scope='module')
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Calibration bags with both sensors, bags with one sensor, and unusable inputs."""
    folder = tmp_path_factory.mktemp('place')
    noise = GnssNoise(
        white_std=(WHITE,) * 3, gauss_markov_std=(WANDER,) * 3, gauss_markov_time=(TIME,) * 3
    )
    hdop = HdopCovariance(hdop_initial=30.0)
    receiver = dataclasses.replace(load_gps('airsim'), rate=5.0, noise=noise, covariance=hdop)
    unit = load_imu('airsim')
    both = standing(
        150.0, gps_model=receiver, imu_model=dataclasses.replace(unit, rate=25.0),
        transforms=TRANSFORMS,
    )  # fmt: skip
    for name, recording in {
        'both': both,
        'gps_only': dataclasses.replace(both.with_messages('imu', None), transforms=()),
        'imu_only': dataclasses.replace(both.with_messages('gps', None), transforms=()),
        'short': standing(5.0, gps_model=receiver),
        'imu_moving': synthetic_recording(
            Circle(duration=30.0), Twin('moving', None, dataclasses.replace(unit, rate=50.0)),
            seed=1, run='moving', scenario='circle',
        ),
        'moving': standing(30.0, gps_model=receiver, motion=Circle(duration=30.0)),
        'bare': run_of('drive_line', 1).with_messages('gps', None).with_messages('imu', None),
    }.items():  # fmt: skip
        write_recording(dataclasses.replace(recording, name=name), folder / name)
    (folder / 'file.txt').write_text('text', encoding='utf-8')
    (folder / 'empty').mkdir()
    return folder


@pytest.mark.parametrize(
    ('line', 'named'),
    [
        ('', 'RECORDING'),
        ('gone', 'gone'),
        ('empty', 'empty'),
        ('short', '5 s'),
        ('moving', '0.2 m/s'),
        ('bare', '--topic'),
        ('both --topic gps=/gone', '/gone'),
        ('both --k 0', '--k'),
        ('both --out file.txt/sub', 'file.txt'),
    ],
)
def test_a_wrong_command_line_is_refused_in_one_line(
    line: str, named: str, place: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    check_refused(capsys, named, 'characterize', *shlex.split(line))


def test_characterised_models_of_imu_and_gps_can_be_simulated(
    place: Path, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / 'sensors'
    done = call(capsys, 'characterize', place / 'both', '--out', out)
    assert done.status == 0
    listed = list_name('characterization.json')
    assert {path.name for path in out.iterdir()} == {*FILES, listed}
    record = json.loads((out / 'characterization.json').read_text(encoding='utf-8'))
    for axis in ('east', 'north', 'up'):
        estimates = record['gps']['axes'][axis]
        for key, truth in (('white', WHITE), ('wander', WANDER), ('time', TIME)):
            estimate = estimates[key]
            tolerance = 4.0 * estimate['std'] / estimate['value']
            assert abs(np.log(estimate['value'] / truth)) < tolerance, f'{key}: 4 sigma'
    stated = record['gps']['stated_covariance']
    assert stated['start']['value'] == pytest.approx(30.0, rel=1e-6)
    assert stated['time_constant']['value'] == pytest.approx(12.4, rel=1e-6)
    assert record['imu']['axes']['gyroscope_x']['terms']['white']['observable']

    receiver, unit = load_gps(out / 'gps.yaml'), load_imu(out / 'imu.yaml')
    assert (receiver.lever_arm, receiver.rate) == ((0.1, -0.2, 1.3), 5.0)
    assert load_gps(out / 'gps_random_walk.yaml').noise.kind == 'chrono_random_walk'
    assert unit.lever_arm == (0.0, 0.0, 0.4)
    assert unit.mounting_rpy == pytest.approx((0.0, 0.0, np.pi / 2))
    simulated = call(
        capsys, 'simulate', '--motion', 'circle', '--duration', 2, '--gps', out / 'gps.yaml',
        '--imu', out / 'imu.yaml', '--out', tmp_path / 'twins',
    )  # fmt: skip
    assert simulated.status == 0


@pytest.mark.usefixtures('blank_pictures')
@pytest.mark.parametrize(
    ('name', 'present', 'missing'),
    [('gps_only', 'gps.yaml', 'imu.yaml'), ('imu_only', 'imu.yaml', 'gps.yaml')],
)
def test_a_recording_with_a_single_sensor_is_characterised(
    name: str, present: str, missing: str, place: Path, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / 'sensors'
    done = call(capsys, 'characterize', place / name, '--out', out, '--json')
    assert done.status == 0
    assert (out / present).exists()
    assert not (out / missing).exists()
    assert 'lever_arm' not in (out / present).read_text(encoding='utf-8')
    assert json.loads(done.out)[missing.removesuffix('.yaml')] is None


@pytest.mark.usefixtures('blank_pictures')
def test_an_imu_without_noise_ends_with_status_1_and_the_gps_is_written(
    place: Path, tmp_path: Path, capsys: Capture
) -> None:
    both = read_recording(place / 'both')
    dead = both.with_messages('imu', standing(150.0, imu_model=load_imu('ideal')).imu)
    write_recording(dataclasses.replace(dead, name='dead'), tmp_path / 'dead')
    out = tmp_path / 'sensors'
    done = call(capsys, 'characterize', tmp_path / 'dead', '--out', out, '--json')
    assert done.status == 1
    assert len(done.complaints) == 1
    assert json.loads(done.out)['imu'] is None
    assert (out / 'gps.yaml').exists()
    assert not (out / 'imu.yaml').exists()


def test_a_nan_is_dropped_and_counted(place: Path, tmp_path: Path, capsys: Capture) -> None:
    alone = read_recording(place / 'imu_only')
    rate = alone.imu.angular_velocity.copy()
    rate[1700, 1] = np.nan
    torn = alone.with_messages('imu', dataclasses.replace(alone.imu, angular_velocity=rate))
    write_recording(torn, tmp_path / 'torn')
    done = call(capsys, 'characterize', tmp_path / 'torn', '--json')
    assert done.status == 0
    assert '1 missing samples' in done.out


@pytest.mark.parametrize('name', ['mpu6000', 'chrono'])
def test_a_turn_on_bias_and_a_long_random_walk_are_classified_as_rest(name: str) -> None:
    """A bias above 0.1 rad/s counts as rest without a truth, a walk of 0.3 m/s^2 with one."""
    unit = load_imu(name)
    recording = standing(40.0, imu_model=unit, seed=3)
    if name == 'chrono':
        motion, twin = Standstill(duration=40.0), Twin('rest', None, unit)
        recording = synthetic_recording(motion, twin, seed=3, run='rest', scenario='standstill')
    calibration = calibrate([recording])
    assert calibration.problems == ()
    (result,) = calibration.imu.results
    assert result.seconds == pytest.approx(40.0, abs=0.1)
    bias = np.array([axis.mean for axis in result.axes[:3]])
    if name == 'mpu6000':
        assert np.linalg.norm(bias) > 0.1
    assert calibration.imu.model.gyroscope.constant_bias == pytest.approx(bias)


def test_biases_of_several_recordings_give_the_turn_on_deviation() -> None:
    (result,) = calibrate([standing(40.0, imu_model=load_imu('mpu6000'), seed=3)]).imu.results
    bias = np.array([axis.mean for axis in result.axes[:3]])
    restarts = [
        dataclasses.replace(
            result,
            axes=tuple(dataclasses.replace(axis, mean=axis.mean + off) for axis in result.axes),
        )
        for off in (0.01, -0.04)
    ]
    gyroscope = fit_imu([result, *restarts]).model.gyroscope
    assert gyroscope.constant_bias == pytest.approx(bias - 0.01)
    assert gyroscope.turn_on_std == pytest.approx([np.std([0.0, 0.01, -0.04], ddof=1)] * 3)


def test_a_moving_recording_is_analysed_only_on_request(place: Path, capsys: Capture) -> None:
    moving = call(capsys, 'characterize', place / 'imu_moving', '--moving', 'keep', '--json')
    assert moving.status == 0
    record = json.loads(moving.out)['imu']
    assert record['options']['reject_motion'] is False
    assert record['recordings'][0]['samples'] >= 1500
    refused = call(capsys, 'characterize', place / 'imu_moving')
    assert refused.status == 2
    assert '--moving keep' in refused.err


@pytest.mark.usefixtures('blank_pictures')
def test_pooled_recordings_give_equal_bytes(place: Path, tmp_path: Path, capsys: Capture) -> None:
    first, second = tmp_path / 'one', tmp_path / 'two'
    for out in (first, second):
        arguments = ('characterize', place / 'gps_only', place / 'short', 'gone', '--out', out)
        done = call(capsys, *arguments)
        assert (done.status, len(done.complaints)) == (1, 1)
    assert contents(first) == contents(second)


def test_a_real_drive_with_stops_gives_a_gps_model_and_one_without_stops_does_not(
    real_dir: Path, tmp_path: Path, capsys: Capture
) -> None:
    """The car stands for 52 s in total; comma2k19 never stands still."""
    done = call(
        capsys, 'characterize', real_dir / 'drive0708' / 'drive0708_mcap', '--topic',
        'imu=/imu/data', '--json',
    )  # fmt: skip
    assert done.status == 0
    record = json.loads(done.out)
    spans = [standstill['seconds'] for standstill in record['gps']['standstills']]
    assert spans == pytest.approx([35.25, 16.5], abs=0.3)
    assert record['gps']['axes']['north']['white']['value'] == pytest.approx(0.0035, abs=1e-3)
    assert record['gps']['covariance_consistency'][0]['verdict'] == 'not bounded'
    assert record['gps']['recommended'] == 'gps'
    cruise = call(capsys, 'characterize', real_dir / 'comma2k19' / 'comma2k19_seg40_mcap')
    assert cruise.status == 2
    assert '7.94 m/s' in cruise.err
