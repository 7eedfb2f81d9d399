# SPDX-License-Identifier: Apache-2.0
"""The presets and the files of the same form that users write."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sim_sensors.core.config_files import config_path
from sim_sensors.core.errors import ParameterError, Sim2RealError
from sim_sensors.core.parameters import to_variant
from sim_sensors.gps.gps import GpsModel, load_gps
from sim_sensors.imu.imu import ImuModel, load_imu
from sim_sensors.imu.models import ChronoImu
from sim_sensors.imu.orientation import Orientation
from sim_sensors.magnetometer.magnetometer import load_mag
from sim_sensors.sensor.catalogue import kinds, preset_names

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
        'adis16448 airsim bno055 bno055_fusion bno055_thesis carla_imu chrono chrono_ahrs '
        'chrono_default gazebo_classic_imu gazebo_classic_imu_sensor '
        'gazebo_classic_imu_sensor_ros2 gnss_ins_sim_high gnss_ins_sim_low gnss_ins_sim_mid '
        'gz_imu hector_imu ideal kalibr matlab_imu mpu6000 pegasus_imu px4_iim42653 '
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
def test_the_promised_presets_exist(kind):
    assert set(PROMISED[kind].split()) <= set(preset_names(kind))


@pytest.mark.parametrize(('kind', 'name'), PRESETS)
def test_a_preset_survives_being_written_and_read_again(kind, name, tmp_path):
    model = LOADERS[kind](name)
    copy = write(tmp_path, yaml.safe_dump(to_variant(model)))
    assert LOADERS[kind](copy) == model
    assert LOADERS[kind](str(copy)) == model
    assert hash(LOADERS[kind](copy)) == hash(model)


@pytest.mark.parametrize(('kind', 'name'), PRESETS)
def test_a_preset_spells_every_number_of_its_error_model(kind, name):
    """A reader of the file sees what is simulated. Numbers that the file omits are 0, except
    for mounting, frame, latency, the choice of covariance and an absent orientation.
    """
    content = yaml.safe_load(config_path(kind, f'{name}.yaml').read_text(encoding='utf-8'))
    full = to_variant(LOADERS[kind](name))
    for part in (
        'gyroscope',
        'accelerometer',
        'magnetometer',
        'noise',
        'covariance',
        'intrinsics',
        'mismatches',
    ):
        if isinstance(full.get(part), dict):
            assert set(content[part]) <= set(full[part])
            left_out = {key: full[part][key] for key in set(full[part]) - set(content[part])}
            assert not [key for key, value in left_out.items() if np.any(value)]


def test_the_papers_numbers_are_those_read_from_its_demo():
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
        for name in getattr(preset, part).declared():
            expected = getattr(getattr(fresh, part), name)
            assert getattr(getattr(preset, part), name) == pytest.approx(expected, rel=1e-12)
    assert preset.orientation == fresh.orientation


@pytest.mark.parametrize('kind', LOADERS)
def test_an_unknown_name_is_refused_with_the_names_that_exist(kind):
    with pytest.raises(Sim2RealError) as caught:
        LOADERS[kind](f'{preset_names(kind)[1][:-1]}n')
    message = str(caught.value)
    near = preset_names(kind)[1]
    assert message.startswith(f"{kind} model: '{near[:-1]}n' is unknown (did you mean {near}?)")
    for name in preset_names(kind):
        assert name in message


def test_what_is_not_given_takes_its_default(tmp_path):
    path = write(tmp_path, 'model: chrono_normal_drift\naccelerometer: {std: 0.02}\nrate: 50\n')
    model = load_imu(path)
    assert model.accelerometer.std == (0.02, 0.02, 0.02)
    assert model.rate == 50.0
    assert model.gyroscope == ChronoImu().gyroscope


@pytest.mark.parametrize(
    ('text', 'problem'),
    [
        ('', 'holds nothing; must be a mapping'),
        ('- 1\n', 'holds a list; must be a mapping'),
        ('rate: 3\n', 'model: is missing; must be one of chain, gazebo_ros_imu, '),
        (
            'model: ideel\n',
            r"model: 'ideel' is unknown \(did you mean ideal\?\); must be one of chain",
        ),
        ('model: [1]\n', r'model: \[1\] is not allowed; must be one of'),
        (
            'model: airsim\nrate: fast\n',
            r"rate: 'fast' is not allowed; must be a number >= 1e-06 and <= 100000 \[Hz\]",
        ),
        ('model: airsim\nrate: .nan\n', 'rate: nan is not allowed'),
        ('model: airsim\nraet: 3\n', r'raet: unknown parameter \(did you mean rate\?\); must be'),
        (
            'model: airsim\ngyroscope:\n  bias_time: 0\n',
            r'gyroscope.bias_time: 0 is not allowed; must be a number > 0 \[s\]',
        ),
        (
            'model: ideal\norientation: {mode: magic}\n',
            "orientation.mode: 'magic' is not allowed; must be one of absent, truth, heading, ",
        ),
        ('model: ideal\norientation: ahrs\n', "orientation: 'ahrs' is not allowed; must be a map"),
        (
            'model: ideal\nrate: 1\nrate: 2\n',
            "line 3, column 1: .*'rate' was already given on line 2",
        ),
        ('model: ideal\nrate: [1\n', r'line 3, column 1: not valid YAML'),
        ('model: ideal\n\trate: 1\n', r'line 2, column 1: not valid YAML'),
        ('model: !!python/object:os.system {}\n', r'line 1, column 8: not valid YAML'),
    ],
)
def test_a_wrong_file_is_refused_with_file_place_value_and_what_is_allowed(
    text, problem, tmp_path
):
    message = refusal(load_imu, write(tmp_path, text))
    assert re.search(problem, message), message


def test_files_that_cannot_be_read_are_refused(tmp_path):
    assert 'No such file' in refusal(load_gps, tmp_path / 'absent.yaml')
    folder = tmp_path / 'folder.yaml'
    folder.mkdir()
    assert 'cannot be read' in refusal(load_gps, folder)
    binary = tmp_path / 'binary.yaml'
    binary.write_bytes(b'model: \xff\xfe')
    assert 'is not UTF-8 text at byte 7' in refusal(load_gps, binary)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ['model', 'rate', 'noise', 'covariance', 'std', 'lever_arm', 'x', 1]
                ),
                inner | st.sampled_from(['gps', 'gaussian', 'airsim']),
                max_size=4,
            )
        ),
        max_leaves=8,
    )
)
def test_any_yaml_is_either_a_model_or_refused_in_one_line(tmp_path_factory, content):
    path = write(tmp_path_factory.getbasetemp(), yaml.safe_dump(content), 'any.yaml')
    refused = ''
    try:
        model = load_gps(path)
    except Sim2RealError as error:
        refused = str(error)
    if refused:
        assert str(path) in refused
        assert '\n' not in refused
    else:
        assert isinstance(model, GpsModel)


def test_a_model_of_the_other_sensor_or_of_another_program_is_called_so(tmp_path):
    imu, gps = (
        write(tmp_path, 'model: ideal\n', 'a.yaml'),
        write(tmp_path, 'model: gps\n', 'b.yaml'),
    )
    assert "'ideal' is an IMU model; must be a GPS model" in refusal(load_gps, imu)
    assert "'gps' is a GPS model; must be an IMU model" in refusal(load_imu, gps)
    with pytest.raises(ParameterError, match="'gz_navsat' is a GPS model; must be one of"):
        load_imu('gz_navsat')
    assert "'ideal' is an IMU model; must be a magnetometer model" in refusal(load_mag, imu)
    kalibr = write(tmp_path, 'gyroscope_noise_density: 0.1\n', 'kalibr_imu.yaml')
    assert 'is a Kalibr file; take the imu.yaml beside it' in refusal(load_imu, kalibr)
    assert 'is an SDF file; take the imu.yaml beside it' in refusal(
        load_imu, tmp_path / 'noise.sdf'
    )
