# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Presets of sensors, and sensor files of users."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
import yaml

from sim2real_eval.cli.main import main
from sim_sensors.core.errors import ParameterError, Sim2RealError
from sim_sensors.core.parameters import to_variant
from sim_sensors.core.shipped import config_path
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu.imu import ImuModel, load_imu
from sim_sensors.imu.models import ChronoImu
from sim_sensors.imu.orientation import Orientation
from sim_sensors.magnetometer.magnetometer import load_mag
from sim_sensors.sensor.catalogue import kinds, preset_names
from sim_sensors.wheels.wheel_odometry import load_wheels

LOADERS = {kind.name: kind.load for kind in kinds()}
PRESETS = [(kind, name) for kind in LOADERS for name in preset_names(kind)]


def write(folder, text, name='mine.yaml'):
    path = folder / name
    path.write_text(text, encoding='utf-8')
    return path


def refusal(load, path):
    with pytest.raises(ParameterError) as caught:
        load(path)
    message = str(caught.value)
    assert '\n' not in message
    assert str(path) in message
    return message


PROMISED = {
    'imu': (
        'adis16448 airsim airsim_paper bno055 bno055_fusion bno055_thesis carla_imu chrono '
        'chrono_ahrs chrono_default gazebo_classic_imu gazebo_classic_imu_sensor '
        'gazebo_classic_imu_sensor_ros2 gnss_ins_sim_high gnss_ins_sim_low gnss_ins_sim_mid '
        'gz_imu hector_imu ideal kalibr matlab_imu mpu6000 pegasus_imu px4_gz_imu px4_iim42653 '
        'rotors_adis16448 webots_imu xsens_mtx'
    ),
    'gps': (
        'airsim airsim_code airsim_default airsim_docs baseline carla_gnss ch_gauss '
        'ch_gauss_airsim ch_gauss_airsim_default ch_rw ch_rw_airsim ch_rw_airsim_default '
        'chrono_default gazebo_classic_gps gnss_ins_sim_gps gnss_urban gz_navsat hector_gps '
        'nmea_navsat_driver pegasus_gps px4_classic_gps px4_gz_bridge_gps '
        'px4_sensor_gps_sim rotors_gps webots_gps zed_f9p_changing zed_f9p_rtk'
    ),
    'camera': 'frc_1280x720 ideal_vga webcam_vga',
    'mag': 'bmm150 disturbed ideal xsens_mtx',
}


@pytest.mark.parametrize('kind', PROMISED)
def test_all_documented_presets_exist(kind):
    assert set(PROMISED[kind].split()) <= set(preset_names(kind))


@pytest.mark.parametrize(('kind', 'name'), PRESETS)
def test_a_preset_is_equal_after_writing_and_reading(kind, name, tmp_path):
    model = LOADERS[kind](name)
    copy = write(tmp_path, yaml.safe_dump(to_variant(model)))
    assert LOADERS[kind](copy) == model
    assert LOADERS[kind](str(copy)) == model
    assert hash(LOADERS[kind](copy)) == hash(model)


@pytest.mark.parametrize(('kind', 'name'), PRESETS)
def test_a_preset_file_states_every_number_of_its_error_model(kind, name):
    """A reader of the file sees what is simulated. Numbers that the file omits are 0, except
    for mounting, frame, latency, the choice of covariance and an absent orientation.
    """
    content = yaml.safe_load(config_path(kind, f'{name}.yaml').read_text(encoding='utf-8'))
    full = to_variant(LOADERS[kind](name))
    parts = 'gyroscope accelerometer magnetometer noise covariance intrinsics mismatches'
    for part in parts.split():
        if isinstance(full.get(part), dict):
            assert set(content[part]) <= set(full[part])
            left_out = {key: full[part][key] for key in set(full[part]) - set(content[part])}
            assert not [key for key, value in left_out.items() if np.any(value)]


def test_presets_of_the_paper_have_the_numbers_of_its_demo_code():
    """The numbers of the vehicle demo of [ART]."""
    imu = load_imu('chrono')
    assert imu == ChronoImu()
    assert imu.gyroscope.std == (0.05, 0.05, 0.05)
    assert imu.accelerometer.std == (0.3, 0.3, 0.01)
    assert (imu.gyroscope.drift, imu.accelerometer.drift) == (1e-4, 0.1)
    assert load_gps('ch_gauss').noise.std == (0.03, 0.03, 0.03)
    walk = load_gps('ch_rw').noise
    assert (walk.acceleration_std, walk.model_rate) == (0.047, 100.0)
    assert (walk.speed_limit, walk.acceleration_limit) == (0.016, 0.152)
    hdop = load_gps('airsim').covariance
    assert (hdop.hdop_initial, hdop.hdop_limit) == (100.0, 0.85)
    assert (hdop.time_constant, hdop.k) == (12.4, 0.02)
    paper = [
        name for name in preset_names('gps') if re.match('ch_|airsim$|airsim_default|base', name)
    ]
    assert len(paper) == 9
    assert {load_gps(name).rate for name in paper} == {10.0}
    assert {load_imu(name).rate for name in ('chrono', 'airsim', 'ideal')} == {100.0}


def test_presets_of_airsim_are_the_defaults_of_the_model():
    preset = load_imu('airsim')
    fresh = dataclasses.replace(
        ImuModel.models.get('airsim')(), orientation=Orientation(mode='truth')
    )
    for part in ('gyroscope', 'accelerometer'):
        for name in getattr(preset, part).declarations():
            expected = getattr(getattr(fresh, part), name)
            assert getattr(getattr(preset, part), name) == pytest.approx(expected, rel=1e-12)
    assert preset.orientation == fresh.orientation


@pytest.mark.parametrize('kind', LOADERS)
def test_an_unknown_name_is_refused_with_the_nearest_name(kind):
    near = preset_names(kind)[1]
    with pytest.raises(Sim2RealError, match=f'{near[:-1]}n.*{near}'):
        LOADERS[kind](f'{near[:-1]}n')


def test_a_missing_key_takes_its_default(tmp_path):
    path = write(tmp_path, 'model: chrono_normal_drift\naccelerometer: {std: 0.02}\nrate: 50\n')
    model = load_imu(path)
    assert model.accelerometer.std == (0.02, 0.02, 0.02)
    assert model.rate == 50.0
    assert model.gyroscope == ChronoImu().gyroscope


@pytest.mark.parametrize(
    ('text', 'place'),
    [
        ('', ''),
        ('- 1', ''),
        ('rate: 3', 'model'),
        ('model: ideel', 'model'),
        ('model: [1]', 'model'),
        ('model: airsim\nrate: fast', 'rate'),
        ('model: airsim\nrate: .nan', 'rate'),
        ('model: airsim\nraet: 3', 'raet'),
        ('model: airsim\ngyroscope:\n  bias_time: 0', 'gyroscope.bias_time'),
        ('model: ideal\norientation: {mode: magic}', 'orientation.mode'),
        ('model: ideal\norientation: ahrs', 'orientation'),
        ('model: ideal\nrate: 1\nrate: 2', 'line 3, column 1'),
        ('model: ideal\nrate: [1\n', 'line 3, column 1'),
        ('model: ideal\n\trate: 1', 'line 2, column 1'),
        ('model: !!python/object:os.system {}', 'line 1, column 8'),
    ],
)
def test_an_invalid_file_is_refused_with_its_name_and_the_key(text, place, tmp_path):
    path = write(tmp_path, text)
    assert refusal(load_imu, path).startswith(f'{path}: {place}')


def test_files_that_cannot_be_read_are_refused(tmp_path):
    (tmp_path / 'folder.yaml').mkdir()
    (tmp_path / 'binary.yaml').write_bytes(b'model: \xff\xfe')
    for name in ('absent.yaml', 'folder.yaml', 'binary.yaml'):
        refusal(load_gps, tmp_path / name)


def test_files_of_another_sensor_or_another_program_are_identified_in_the_error(tmp_path):
    imu = write(tmp_path, 'model: ideal\n', 'a.yaml')
    gps = write(tmp_path, 'model: gps\n', 'b.yaml')
    assert 'IMU model' in refusal(load_gps, imu)
    assert 'GPS model' in refusal(load_imu, gps)
    assert 'IMU model' in refusal(load_mag, imu)
    kalibr = write(tmp_path, 'gyroscope_noise_density: 0.1\n', 'kalibr_imu.yaml')
    assert f'sim2real models --from {kalibr}' in refusal(load_imu, kalibr)
    assert 'SDF file' in refusal(load_imu, tmp_path / 'noise.sdf')


@pytest.mark.parametrize(('kind', 'name'), PRESETS)
def test_a_preset_is_exact_by_default(kind, name):
    def variants(value):
        if isinstance(value, dict):
            for key, part in value.items():
                yield from [part] if key == 'variant' else variants(part)

    model = LOADERS[kind](name)
    assert set(variants(model.to_mapping())) <= {'exact'}


def test_the_as_upstream_variant_is_selected_by_a_suffix_of_the_name(tmp_path):
    exact, upstream = load_imu('hector_imu'), load_imu('hector_imu:as_upstream')
    assert (exact.variant, upstream.variant) == ('exact', 'as_upstream')
    rotors, changed = load_imu('rotors_adis16448'), load_imu('rotors_adis16448:as_upstream')
    assert dataclasses.replace(changed, variant='exact') == rotors
    assert load_gps('gz_navsat:as_upstream').noise.variant == 'as_upstream'
    path = tmp_path / 'mine.yaml'
    path.write_text('model: hector_imu\nrate: 50.0\n', encoding='utf-8')
    assert load_imu(f'{path}:as_upstream').variant == 'as_upstream'
    with pytest.raises(ParameterError, match='kalibr:as_upstream: variant'):
        load_imu('kalibr:as_upstream')
    assert load_wheels('frc_swerve:as_upstream').steering_offset.variant == 'as_upstream'
    for name in ('ideal', 'differential'):
        with pytest.raises(ParameterError, match=f'{name}:as_upstream: variant'):
            load_wheels(f'{name}:as_upstream')


def test_a_file_has_other_numbers_below_as_upstream(tmp_path):
    """They hold with the suffix only, also through a base; unknown keys are refused."""
    exact, upstream = load_imu('hector_imu'), load_imu('hector_imu:as_upstream')
    assert (exact.orientation.drift, upstream.orientation.drift) == (0.1118, 1.118)
    assert upstream.gyroscope == exact.gyroscope
    path = write(tmp_path, 'base: hector_imu\nrate: 50\nas_upstream: {orientation: {drift: 2}}\n')
    assert load_imu(path).orientation.drift == 0.1118
    changed = load_imu(f'{path}:as_upstream')
    assert (changed.rate, changed.orientation.drift, changed.variant) == (50.0, 2.0, 'as_upstream')
    path = write(tmp_path, 'base: hector_imu:as_upstream\n', 'b.yaml')
    assert load_imu(path).orientation.drift == 1.118
    for text, drift in (
        ('base: hector_imu\nrate: 50\n', 1.118),
        ('base: hector_imu\norientation: {drift: 0.5}\nvariant: exact\n', 0.5),
    ):
        changed = load_imu(f'{write(tmp_path, text, "c.yaml")}:as_upstream')
        assert (changed.orientation.drift, changed.variant) == (drift, 'as_upstream')
        assert changed.orientation.drift_from_zero
    path = write(tmp_path, 'base: c.yaml\nrate: 20\n', 'd.yaml')
    assert load_imu(f'{path}:as_upstream').orientation == changed.orientation
    for text, problem in (
        ('base: hector_imu\nas_upstream: {drift: 2}\n', 'drift'),
        ('base: hector_imu\nas_upstream: true\n', 'as_upstream: True'),
        ('base: kalibr\nas_upstream: {rate: 2}\n', 'as_upstream: the model has no variant'),
    ):
        path = write(tmp_path, text, 'wrong.yaml')
        assert problem in refusal(load_imu, path)


def test_the_command_models_describes_each_preset_and_marks_those_with_an_upstream_variant(capsys):
    assert main(['models']) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    for kind in ('imu', 'gps', 'mag', 'camera', 'wheels', 'vision'):
        for name in preset_names(kind):
            assert len(lines[name].removeprefix(f'  {name}').strip(' *')) > 10, name
    starred = [
        name
        for name in ('hector_imu', 'frc_swerve', 'differential', 'kalibr')
        if '*' in lines[name]
    ]
    assert starred == ['hector_imu', 'frc_swerve']


def test_the_page_of_a_model_names_the_models_of_its_parts(capsys, tmp_path):
    path = write(tmp_path, 'model: pinhole_camera\nintrinsics: {distortion: {model: fisheye}}\n')
    for name, expected in (
        (path, ["intrinsics.distortion.model = 'equidistant'"]),
        ('webots_gps', ["noise.model = 'webots'", "covariance.model = 'zero'"]),
    ):
        assert main(['models', str(name)]) == 0
        rows = [line.strip() for line in capsys.readouterr().out.splitlines()]
        assert [row for row in rows if '.model = ' in row] == expected
