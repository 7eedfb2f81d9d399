# SPDX-License-Identifier: Apache-2.0
"""Presets that repeat the defects of their original, by name, and the list of all presets."""

from __future__ import annotations

import dataclasses

import pytest

from sim2real_eval.cli.main import main
from sim_sensors.core.errors import ParameterError
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu.imu import load_imu
from sim_sensors.sensor.catalogue import preset_names
from sim_sensors.wheels.wheel_odometry import load_wheels


def test_the_variant_of_the_original_can_be_asked_for_by_name(tmp_path):
    exact, upstream = load_imu('hector_imu'), load_imu('hector_imu:as_upstream')
    assert (exact.variant, upstream.variant) == ('exact', 'as_upstream')
    assert dataclasses.replace(upstream, variant='exact') == exact
    assert load_gps('gz_navsat:as_upstream').noise.variant == 'as_upstream'
    mine = tmp_path / 'mine.yaml'
    mine.write_text('model: hector_imu\nrate: 50.0\n', encoding='utf-8')
    assert load_imu(f'{mine}:as_upstream').variant == 'as_upstream'
    with pytest.raises(ParameterError, match='kalibr:as_upstream: variant: the model has none'):
        load_imu('kalibr:as_upstream')
    assert load_wheels('frc_swerve:as_upstream').steering_offset.variant == 'as_upstream'
    # Nothing is steered wrongly, as in the source or otherwise.
    for name in ('ideal', 'differential'):
        with pytest.raises(ParameterError, match=f'{name}:as_upstream: variant: the model has no'):
            load_wheels(f'{name}:as_upstream')


def test_models_says_a_line_about_each_preset_and_which_repeat_their_original(capsys):
    assert main(['models']) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    for kind in ('imu', 'gps', 'mag', 'camera', 'wheels', 'vision'):
        for name in preset_names(kind):
            assert len(lines[name].removeprefix(f'  {name}').strip(' *')) > 10, name
    assert ' * hector_gazebo with the yaw drift' in lines['hector_imu']
    assert ' * The swerve simulation' in lines['frc_swerve']
    assert '*' not in lines['differential']
    assert '*' not in lines['kalibr']
