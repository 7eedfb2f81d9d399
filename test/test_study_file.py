# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Study files: the shipped ones, and errors that name their place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from study_file_examples import SMALL, write_study_file

from sim2real_eval.recording.reading import RecordingSource
from sim2real_eval.study.plan import StudyPlan
from sim2real_eval.study.study_file import Overrides, StudyFile
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.shipped import config_names, config_path
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu.imu import load_imu

STUDIES = config_names('studies')


def read(folder: Path, **changes: Any) -> StudyFile:
    return StudyFile.read(write_study_file(folder, changes))


@pytest.mark.parametrize('name', STUDIES)
def test_a_shipped_study_loads_and_has_a_description(name: str) -> None:
    file = StudyFile.read(name, Overrides(runs=2))
    assert len(file.description) > 100
    assert all(recording.synthetic for recording in file.recordings)
    # A study of signals has no plan, which is for judges.
    assert file.signals is not None or StudyPlan.from_file(file).record['synthetic']


def test_experiment_a_keeps_the_real_fixes_and_b_simulates_five_receivers() -> None:
    assert all(twin.gps is None for twin in StudyFile.read('a_imu').twins)
    assert [twin.label for twin in StudyFile.read('b_gps_models').twins] == [
        'ch_gauss', 'ch_rw', 'airsim', 'ch_gauss_airsim', 'ch_rw_airsim'
    ]  # fmt: skip


def test_the_grid_study_combines_three_noises_with_three_covariances() -> None:
    twins = StudyFile.read('noise_covariance_grid').twins
    noises = [twin.gps and twin.gps.noise for twin in twins]
    covariances = [twin.gps and twin.gps.covariance for twin in twins]
    assert len({*noises}) == len({*covariances}) == 3
    assert len({*zip(noises, covariances, strict=True)}) == 9


def test_a_model_with_a_base_changes_only_the_given_parameters(tmp_path: Path) -> None:
    airsim = {'model': 'airsim', 'type': 'approximated', 'hdop_limit': 0.85, 'time_constant': 12.4}
    models = [
        {
            'label': 'changed',
            'gps': {'base': 'ch_gauss', 'covariance': airsim},
            'imu': {'base': 'chrono', 'gyroscope': {'drift': 0.5}},
        },
        {'label': 'real_gps', 'gps': 'real', 'imu': 'chrono'},
    ]
    changed, real_gps = read(tmp_path, models=models).twins
    assert changed.gps == load_gps('ch_gauss_airsim')
    chrono = load_imu('chrono').to_mapping()
    gyroscope = {**chrono['gyroscope'], 'drift': 0.5}
    assert changed.imu.to_mapping() == {**chrono, 'gyroscope': gyroscope}
    assert real_gps.gps is None


def test_paths_in_a_study_file_are_relative_to_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / 'models').mkdir()
    shipped = config_path('gps', 'ch_rw.yaml')
    (tmp_path / 'models' / 'mine.yaml').write_bytes(shipped.read_bytes())
    path = write_study_file(tmp_path, {'models': {'gps': ['models/mine.yaml'], 'imu': 'chrono'}})
    monkeypatch.chdir('/')
    (twin,) = StudyFile.read(path).twins
    assert (twin.label, twin.gps) == ('mine', load_gps('ch_rw'))


STAND_IN = SMALL['recordings'][0]['stand_in']
CHRONO = {'label': 'x', 'gps': 'ch_rw', 'imu': 'chrono'}


@pytest.mark.parametrize(
    ('changes', 'key'),
    [
        ({'sead': 1}, 'sead'),
        ({'seed': -1}, 'seed: -1'),
        ({'component': 'up'}, "component: 'up'"),
        ({'metric': {'rate': 0}}, 'metric.rate: 0'),
        ({'uncertainty': {'level': 1.5}}, 'uncertainty.level: 1.5'),
        ({'simulate_on': 'sea'}, "simulate_on: 'sea'"),
        ({'recordings': None}, 'recordings'),
        ({'recordings': [{'path': 'none_*'}]}, "recordings[0].path: 'none_*'"),
        ({'recordings': [{'stand_in': {'runs': 0}}]}, 'recordings[0].stand_in.runs: 0'),
        (
            {'recordings': [{'stand_in': {'vehicle': {'mass': 0}}}]},
            'recordings[0].stand_in.vehicle.mass: 0',
        ),
        (
            {'recordings': [{'stand_in': {'controller': 'yaw_pd'}}]},
            "recordings[0].stand_in.controller: 'yaw_pd'",
        ),
        ({'recordings': [{'stand_in': STAND_IN}] * 2}, "'line_1'"),
        ({'recordings': [{'stand_in': STAND_IN, 'group': 'a/b'}]}, "recordings[0].group: 'a/b'"),
        ({'models': {'gps': ['ch_rvv'], 'imu': ['chrono']}}, "models.gps[0]: 'ch_rvv'"),
        ({'models': [{**CHRONO, 'imu': {'base': 'chrono_'}}]}, "models[0].imu.base: 'chrono_'"),
        ({'models': [{**CHRONO, 'label': 'real'}]}, "models[0].label: 'real'"),
        ({'models': [CHRONO, CHRONO]}, "models: 'x'"),
        ({'models': [{'label': 'x', 'wheels': 'real'}]}, 'models[0]: simulates no sensor'),
        (
            {'models': [{**CHRONO, 'gps': {'base': 'ch_gauss', 'noise': {'std': -1}}}]},
            'models[0].gps.noise.std: -1',
        ),
        ({'judges': ['cleann']}, "judges[0]: 'cleann'"),
        ({'judges': [{'judge': 'oracle'}]}, "judges[0].judge: 'oracle'"),
        ({'judges': [{'judge': 'error_state', 'filter': 'ukf'}]}, 'judges[0].filter'),
        ({'judges': [{'config': 'clean', 'correct': ['sins']}]}, "judges[0].correct: 'sins'"),
        ({'conditions': [{'label': 'x', 'outages': [[5, 2]]}]}, 'conditions[0].outages[0]'),
    ],
)
def test_an_error_in_a_study_file_names_the_key(
    tmp_path: Path, changes: dict[str, Any], key: str
) -> None:
    with pytest.raises(Sim2RealError) as caught:
        read(tmp_path, **changes)
    assert key in str(caught.value)
    assert '\n' not in str(caught.value)


def test_simulated_drives_need_two_simulated_sensors(tmp_path: Path) -> None:
    models = {'gps': 'real', 'imu': 'chrono'}
    with pytest.raises(Sim2RealError, match='real sensor'):
        StudyPlan.load(write_study_file(tmp_path, {'models': models, 'simulate_on': 'drive'}))


def test_the_command_in_the_record_reproduces_the_study(tmp_path: Path) -> None:
    from sim2real_eval.cli.parser import build_parser
    from sim2real_eval.cli.study import overrides

    def plan(*words: object) -> StudyPlan:
        options = build_parser().parse_args(['study', *map(str, words)])
        name = options.study
        file = tmp_path / name if name.endswith('.yaml') else name
        return StudyPlan.load(file, overrides(options))

    def repeat(original: StudyPlan) -> StudyPlan:
        program, verb, *words = original.record['command']
        assert (program, verb) == ('sim2real', 'study')
        return plan(*words)

    out = ('--out', tmp_path / 'out')
    first = plan('d_surfaces', *out, '--seed', 4, '--runs', 3, '--simulate-on', 'truth',
        '--judge-config', 'clean', '--warmup', 2, '--match-rates', '--level', 0.9)  # fmt: skip
    assert (first.record['seed'], first.record['match_rates']) == (4, True)
    assert repeat(first).record == first.record
    for name in 'ab':
        (tmp_path / name).mkdir()
    real = [tmp_path / 'a', tmp_path / 'b']
    file = write_study_file(tmp_path).name
    second = plan(file, *out, '--topic', 'truth=/odom', '--scenario', 'line', *real)
    assert repeat(second).record == second.record
    assert [recording.origin for recording in second.file.recordings] == [
        RecordingSource(str(tmp_path / name), None, (('truth', '/odom'),), 'line') for name in 'ab'
    ]
