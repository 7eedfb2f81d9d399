# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Overridden sensor parameters: --set, `set:` of study files, `base:` of sensor files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cli_examples import call, write_runs

from sim2real_eval.api import simulate
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.simulation.twin_maker import TwinMaker
from sim2real_eval.study.variants import Entry, read_sweep, read_twins, set_parameters
from sim_sensors import load_gps, load_imu
from sim_sensors.core.errors import ParameterError
from sim_sensors.motion.motions import motion_of

Capture = pytest.CaptureFixture[str]
MODELS = Entry('study.yaml', 'models', {'gps': ['ch_gauss', 'ch_rw'], 'imu': ['xsens_mtx']})
TWINS = read_twins(MODELS, Path())


def write(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        (folder / f'{name}.yaml').write_text(text)


def test_an_override_applies_to_all_models_of_its_kind() -> None:
    changed = set_parameters(TWINS, {'gps.rate': 5}, '--set')
    assert [twin.models['gps'].rate for twin in changed] == [5.0, 5.0]
    assert [twin.imu for twin in changed] == [twin.imu for twin in TWINS]


def test_a_rate_that_is_set_is_not_matched_to_the_real_one() -> None:
    recording = simulate(motion_of('circle', duration=20.0), gps='baseline', imu='chrono')
    (changed,) = set_parameters(TWINS[:1], {'gps.rate': 2}, '--set')
    maker = TwinMaker(recording, world=None, seed=1, base_frame='base_link')
    matched = maker.at_real_rates(changed)
    assert (matched.gps.rate, matched.imu.rate) == (2.0, 100.0)
    steps = np.diff(maker.make(matched, 1).gps.stamp_ns)
    assert np.median(steps) == 500_000_000


def test_a_lever_arm_that_the_recording_determines_is_reported_as_without_effect() -> None:
    recording = simulate(motion_of('circle', duration=20.0), gps='baseline', imu='chrono')
    maker = TwinMaker(recording, world=None, seed=1, base_frame='base_link')
    (changed,) = set_parameters(TWINS[:1], {'gps.lever_arm': [5, 0, 0]}, '--set')
    assert 'twin.placed_as_real' not in {note.code for note in maker.model_notes(TWINS[0])}
    assert 'twin.placed_as_real' in {note.code for note in maker.model_notes(changed)}


def test_overriding_a_nested_value_keeps_the_other_values() -> None:
    (changed,) = set_parameters(TWINS[:1], {'gps.noise.std': 0.5}, '--set')
    old, new = TWINS[0].models['gps'].to_mapping(), changed.models['gps'].to_mapping()
    assert new == {**old, 'noise': {**old['noise'], 'std': new['noise']['std']}}
    assert new['noise']['std'] in (0.5, [0.5] * 3)


def test_a_list_overrides_one_value_for_each_axis() -> None:
    (changed,) = set_parameters(TWINS[:1], {'gps.lever_arm': [1, 2, 3]}, '--set')
    assert changed.models['gps'].lever_arm == (1.0, 2.0, 3.0)


@pytest.mark.parametrize(
    ('setting', 'value', 'key', 'hint'),
    [
        ('gps.rat', 5, 'gps.rat', 'rate'),
        ('gps.rate', -5, 'gps.rate', '-5'),
        ('gps.rate', 'fast', 'gps.rate', 'fast'),
        ('gps.nois.std', 1, 'gps.nois', 'noise'),
        ('gps.rate.std', 1, 'gps.rate', 'std'),
        ('gsp.rate', 5, 'gsp.rate', 'gps'),
        ('mag.rate', 5, 'mag.rate', 'imu'),
        ('rate', 5, 'rate', 'gps.rate'),
    ],
)
def test_a_wrong_setting_is_refused(setting: str, value: object, key: str, hint: str) -> None:
    with pytest.raises(ParameterError) as refusal:
        set_parameters(TWINS[:1], {setting: value}, '--set')
    assert (refusal.value.where, refusal.value.key) == ('--set', key)
    assert hint in refusal.value.problem


def test_lists_in_a_study_file_produce_all_combinations() -> None:
    entry = Entry('study.yaml', 'set', {'gps.rate': [1, 5], 'imu.rate': [50, 100, 200]})
    variants = read_sweep(entry, TWINS[:1])
    rates = [(twin.models['gps'].rate, twin.models['imu'].rate) for twin in variants]
    assert rates == [(gps, imu) for gps in (1.0, 5.0) for imu in (50.0, 100.0, 200.0)]
    assert variants[0].label == 'ch_gauss+gps.rate=1+imu.rate=50'
    assert len({twin.label for twin in variants}) == len(variants)


def test_one_value_in_a_study_file_keeps_the_labels() -> None:
    variants = read_sweep(Entry('study.yaml', 'set', {'gps.lever_arm': [[1, 2, 3]]}), TWINS)
    assert [twin.label for twin in variants] == [twin.label for twin in TWINS]
    assert variants[0].models['gps'].lever_arm == (1.0, 2.0, 3.0)


def test_a_wrong_setting_of_a_study_file_is_refused_with_its_key() -> None:
    with pytest.raises(ParameterError) as refusal:
        read_sweep(Entry('study.yaml', 'set', {'gps.rate': [1, -1]}), TWINS)
    assert (refusal.value.where, refusal.value.key) == ('study.yaml', 'set.gps.rate')


def test_a_file_inherits_from_a_chain_of_bases(tmp_path: Path) -> None:
    write(tmp_path, slow='base: ch_gauss\nrate: 2\n', far='base: slow.yaml\nlatency: 0.1\n')
    expected = {**load_gps('ch_gauss').to_mapping(), 'rate': 2.0, 'latency': 0.1}
    assert load_gps(tmp_path / 'far.yaml').to_mapping() == expected


def test_nested_keys_of_a_file_are_merged_with_the_base(tmp_path: Path) -> None:
    write(tmp_path, imu='base: xsens_mtx\nmounting_rpy: [0, 0, 1]\n')
    expected = {**load_imu('xsens_mtx').to_mapping(), 'mounting_rpy': [0.0, 0.0, 1.0]}
    assert load_imu(tmp_path / 'imu.yaml').to_mapping() == expected


@pytest.mark.parametrize(
    ('content', 'key'),
    [
        ('base: ./other.yaml\n', 'base'),
        ('base: ch_gaus\n', 'base'),
        ('base: [ch_gauss]\n', 'base'),
        ('base: ch_gauss\nrat: 1\n', 'rat'),
        ('base: ch_gauss\nrate: -1\n', 'rate'),
        ('base: xsens_mtx\n', 'base'),
    ],
)
def test_a_wrong_base_or_key_is_refused(tmp_path: Path, content: str, key: str) -> None:
    write(tmp_path, gps=content, other='base: gps.yaml\n')
    with pytest.raises(ParameterError) as refusal:
        load_gps(tmp_path / 'gps.yaml')
    assert (refusal.value.where, refusal.value.key) == (str(tmp_path / 'gps.yaml'), key)


def test_simulate_sets_motion_and_sensors(tmp_path: Path, capsys: Capture) -> None:
    outcome = call(
        capsys, 'simulate', '--motion', 'circle', '--set', 'radius=5', '--set', 'gps.rate=5',
        '--duration', 6, '--out', tmp_path, '--json',
    )  # fmt: skip
    assert outcome.status == 0
    (record,) = json.loads(outcome.out)
    assert record['set'] == {'gps.rate': 5}
    assert len(read_recording(record['path']).require('gps')) == 31


@pytest.mark.parametrize('setting', ['gps.rate=5', 'mag.rate=5'])
def test_simulate_refuses_settings_of_sensors_that_it_does_not_simulate(
    tmp_path: Path, capsys: Capture, setting: str
) -> None:
    outcome = call(
        capsys, 'simulate', '--motion', 'circle', '--gps', 'none', '--set', setting,
        '--out', tmp_path / 'out',
    )  # fmt: skip
    assert outcome.status == 2
    assert not (tmp_path / 'out').exists()


def test_vepd_and_compare_record_the_settings(tmp_path: Path, capsys: Capture) -> None:
    real = write_runs(tmp_path, ('drive_line', 1), ('drive_line', 2))
    settings = ('--models', 'ch_gauss', '--set', 'gps.rate=8', '--json', '--jobs', 1)
    for verb in ('vepd', 'compare'):
        outcome = call(capsys, verb, *real, *settings, '--out', tmp_path / verb)
        record = json.loads(outcome.out)
        assert outcome.status == 0
        assert record['set'] == {'gps.rate': 8}
        assert record['models']['ch_gauss']['gps']['rate'] == 8.0
