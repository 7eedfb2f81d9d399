# SPDX-License-Identifier: Apache-2.0
"""Parameters that --tune accepts and refuses."""

from __future__ import annotations

import pytest

from sim2real_eval.simulation.twin import Twin
from sim2real_eval.study.fitting.model_parameters import (
    list_numbers,
    model_yaml,
    parse_parameters,
    set_values,
)
from sim_sensors.core.errors import ParameterError
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu.imu import load_imu
from sim_sensors.sensor.catalogue import preset_names

BOTH = Twin('start', load_gps('ch_gauss'), load_imu('chrono'))
GPS = Twin('start', load_gps('ch_gauss'), None)


def test_a_value_is_set_on_the_named_axes_only() -> None:
    parameters = parse_parameters(['noise.std.xy=0.01:1,noise.std.z=0.1:2:lin'], GPS)
    model = set_values(GPS, parameters, (0.5, 1.5)).gps
    assert model.noise.std == (0.5, 0.5, 1.5)
    assert [parameter.log for parameter in parameters] == [True, False]
    assert [parameter.start for parameter in parameters] == [0.03, 0.03]


def test_two_parameters_can_share_a_value() -> None:
    twin = Twin('start', load_gps('ch_gauss_airsim'), load_imu('chrono'))
    (parameter,) = parse_parameters(
        ['imu.gyroscope.drift+imu.accelerometer.drift=0.001:0.1'], twin
    )
    imu = set_values(twin, (parameter,), (0.02,)).imu.to_mapping()
    assert imu['gyroscope']['drift'] == imu['accelerometer']['drift'] == 0.02


def test_bounds_are_a_decade_to_either_side_unless_given() -> None:
    (parameter,) = parse_parameters(['gps.noise.std'], BOTH)
    assert (parameter.low, parameter.high, parameter.log) == (0.003, 0.3, True)


def test_values_have_four_digits_and_stay_inside_the_bounds() -> None:
    (parameter,) = parse_parameters(['gps.noise.std=0.0123456:0.9876543'], BOTH)
    assert parameter.value(0.0) == 0.01235
    # Rounded up it would be beyond the bound.
    assert parameter.value(1.0) == parameter.high
    assert parameter.value(0.5) == float(f'{(parameter.low * parameter.high) ** 0.5:.4g}')
    assert parameter.coordinate(parameter.value(0.3)) == pytest.approx(0.3, abs=1e-3)


@pytest.mark.parametrize(
    ('text', 'complaint'),
    [
        ('', '--tune: is missing'),
        ('noise.std=0.01:1', "'noise.std' names no sensor"),
        ('gps.noise.sdt=0.01:1', '(did you mean gps.noise.std?); must be one of gps.rate'),
        ('gps.noise.std.w=0.01:1', 'is unknown'),
        ('gps.geodesy=0:1', 'is unknown'),
        ('gps.noise.std=1:0.1', 'lower bound must be below'),
        ('gps.noise.std=0:1:log', 'log needs bounds > 0'),
        ('gps.noise.std=a:1', 'must be such as'),
        ('gps.noise.std=1', 'must be such as'),
        ('gps.noise.std=0.1:inf', 'must be such as'),
        ('gps.noise.std=0.1:1:sqrt', 'must be such as'),
        ('gps.noise.std=-1:1', 'must be a number or a list of 3 numbers'),
        ('gps.noise.mean', 'needs bounds, since the model has 0'),
        ('gps.noise.std.x=0.1:1,gps.noise.std=0.1:1', 'is given twice'),
    ],
)
def test_wrong_texts_are_refused_in_one_line(text: str, complaint: str) -> None:
    with pytest.raises(ParameterError) as caught:
        parse_parameters([text], BOTH)
    assert complaint in str(caught.value)
    assert '\n' not in str(caught.value)


@pytest.mark.parametrize('kind', ['gps', 'imu'])
def test_every_preset_survives_its_own_file_and_names_numbers(kind: str, tmp_path) -> None:
    load = {'gps': load_gps, 'imu': load_imu}[kind]
    for name in preset_names(kind):
        model = load(name)
        path = tmp_path / f'{name}.yaml'
        path.write_text(model_yaml(model, ['A comment.'], {}), encoding='utf-8')
        assert load(path) == model
        assert list_numbers(Twin(name, **{'gps': None, 'imu': None, kind: model}))
