# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Exported GPS files: increments of the simulated position, round trips, and wrong input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sim2real_eval.cli.main import main
from sim2real_eval.common.model_files import model_yaml
from sim2real_eval.exporting.gps_export import GPS_SIMULATORS, export_gps, sensor_from_text
from sim2real_eval.report.export import commented_text, export_lines
from sim_sensors.core.errors import ParameterError
from sim_sensors.gps.gps import GnssNoise, GpsModel, load_gps
from sim_sensors.motion.scenarios import Standstill
from sim_sensors.world.geodesy import LocalFrame

SECONDS = 2000.0


def receiver(**noise: Any) -> GpsModel:
    """White noise and a wander of 5 s, at 5 Hz."""
    return GpsModel.from_mapping(
        {
            'rate': 5.0,
            'noise': {
                'model': 'gnss',
                'white_std': [0.10, 0.12, 0.30],
                'gauss_markov_std': [1.0, 1.1, 2.0],
                'gauss_markov_time': [5.0] * 3,
                **noise,
            },
        },
        'test',
    )


@pytest.mark.parametrize('name', list(GPS_SIMULATORS))
def test_the_increments_are_those_that_the_export_states(name: str) -> None:
    """Deviation of the increments over 0.2 to 100 s within 15 %, at the equator."""
    export = export_gps(receiver(), name)
    text, suffix = export.text, export.simulator.suffix
    _, model = sensor_from_text(text, 'file', f'file{suffix}')
    assert model == export.model
    sensor = export.model.start(3, 'test', frame=LocalFrame(latitude_deg=0.0))
    times = np.arange(round(SECONDS * export.model.rate)) / export.model.rate
    measured = sensor.measure(Standstill(duration=SECONDS + 1.0).at(times))
    error = measured.position_error[times > 50.0]
    compared = 0
    for column, axis in enumerate(export.axes):
        for lag in (0.2, 1.0, 5.0, 20.0, 100.0):
            step = round(lag * export.model.rate)
            simulated = np.std(error[step:, column] - error[:-step, column])
            wanted, stated = axis.deviations_at(lag)
            assert simulated == pytest.approx(stated, rel=0.15)
            if (
                axis.matched_range is not None
                and axis.matched_range[0] <= lag <= axis.matched_range[1]
            ):
                assert simulated == pytest.approx(wanted, rel=0.15)
                compared += 1
    assert compared >= {'hector': 15, 'pegasus': 5}.get(name, 0)


@pytest.mark.parametrize('name', [name for name in GPS_SIMULATORS if name != 'webots'])
def test_white_noise_keeps_its_deviation(name: str) -> None:
    source = receiver(gauss_markov_std=[0.0] * 3, white_std=[0.5, 0.5, 0.9])
    export = export_gps(source, name)
    for axis, std in zip(export.axes, (0.5, 0.5, 0.9), strict=True):
        assert axis.deviations_at(10.0)[1] == pytest.approx(np.sqrt(2.0) * std, rel=0.01)
        assert not export.misfits


def test_a_constant_error_keeps_its_axes_and_signs() -> None:
    source = receiver(mean=[1.0, -2.0, 3.0])
    for name in ('hector', 'carla'):
        export = export_gps(source, name)
        produced = GPS_SIMULATORS[name].produced(export.model)
        assert produced.mean == pytest.approx((1.0, -2.0, 3.0), rel=1e-4)
        assert not export.omitted
    assert '<offset>-2 -1 3</offset>' in export_gps(source, 'hector').text
    assert export_gps(source, 'sdf').omitted == ('noise.mean',)


def test_the_imu_of_a_file_with_both_is_read() -> None:
    both = (
        '<s><sensor type="imu"><imu></imu></sensor>'
        '<sensor type="navsat"><navsat></navsat></sensor></s>'
    )
    assert sensor_from_text(both, 'a.sdf', 'a.sdf')[1].kind == 'gz_imu'
    alone = '<sensor type="navsat"><update_rate>3</update_rate><navsat></navsat></sensor>'
    assert sensor_from_text(alone, 'a.sdf', 'a.sdf')[1].rate == 3.0


def test_what_cannot_be_exported_is_refused() -> None:
    with pytest.raises(ParameterError, match='--to'):
        export_gps(receiver(), 'airsim')
    with pytest.raises(ParameterError, match=r'noise\.model'):
        export_gps(load_gps('ch_rw'), 'sdf')
    with pytest.raises(ParameterError, match='--range'):
        export_gps(receiver(), 'sdf', span=(10.0, 1.0))
    text = export_gps(receiver(), 'hector').text.replace('0.2 0.2 0.2', '0.2 0.2 0.3')
    with pytest.raises(ParameterError, match='driftFrequency'):
        sensor_from_text(text, 'f.xml', 'f.xml')


@pytest.mark.parametrize(
    ('name', 'omitted'),
    [
        ('zed_f9p_rtk', ()),
        ('ch_gauss', ()),
        ('zed_f9p_changing', ('states',)),
        ('gnss_urban', ('outages', 'noise.tails')),
    ],
)
def test_what_a_simulated_receiver_cannot_do_is_named(name: str, omitted: tuple[str, ...]) -> None:
    assert export_gps(load_gps(name), 'sdf').omitted == omitted


def test_jamming_and_spoofing_are_named_as_omitted() -> None:
    disturbed = {'given': [10.0, 20.0]}
    mapping = {'noise': {'model': 'gnss'}, 'jamming': disturbed, 'spoofing': disturbed}
    source = GpsModel.from_mapping(mapping, 'gps.yaml')
    assert export_gps(source, 'sdf').omitted == ('jamming', 'spoofing')


def test_a_file_says_how_much_of_the_scatter_it_keeps() -> None:
    """Gazebo has no drift: white noise of the increments is 4.8 mm, and the model scatters 8.5."""
    export = export_gps(load_gps('zed_f9p_rtk'), 'sdf')
    noise = load_gps('zed_f9p_rtk').noise
    assert isinstance(noise, GnssNoise)
    total = np.hypot(noise.white_std, noise.gauss_markov_std)
    assert export.source_std == pytest.approx(tuple(total))
    assert export.simulated_std[2] < 0.7 * export.source_std[2]
    assert export.simulated_std[0] < 0.7 * export.source_std[0]
    text = ' '.join(commented_text(export).replace('-->\n<!--', '').split())
    assert export.scatter in text
    assert export.scatter in '\n'.join(export_lines(export))
    # White noise alone is kept, and nothing is said.
    white = GpsModel(noise=GnssNoise(white_std=(0.5, 0.5, 1.0)))
    assert not export_gps(white, 'sdf').scatter


def test_a_mistake_in_the_file_of_a_receiver_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / 'gps.yaml'
    file.write_text('base: zed_f9p_rtk\nnoise: {white: 3}\n', 'utf-8')
    assert main(['export', str(file), '--to', 'sdf', '--out', str(tmp_path / 'out')]) == 2
    assert 'noise.white: unknown parameter' in capsys.readouterr().err


def test_a_file_of_gazebo_read_back_has_its_units() -> None:
    """NavSat takes degrees for the horizontal numbers, metres for the vertical one."""
    text = export_gps(load_gps('zed_f9p_rtk'), 'sdf').text
    model = sensor_from_text(text, 'gps.sdf', 'gps.sdf')[1]
    (line,) = [row for row in model_yaml(model).splitlines() if row.strip().startswith('std:')]
    assert line.endswith('# deg, deg, m')
