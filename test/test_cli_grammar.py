# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""One grammar for all verbs: positional recordings, --out DIR, and one meaning of sensors."""

from __future__ import annotations

import argparse
import itertools
import json
import re
from pathlib import Path

import pytest
from cli_examples import VERBS, Outcome, call, check_refused, contents, write_runs

from sim2real_eval.cli import deprecations
from sim2real_eval.cli.main import main
from sim2real_eval.cli.parser import build_parser
from sim2real_eval.cli.sensors import NONE, load_single, sensor_names
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.simulation.twin import REAL_SENSOR
from sim2real_eval.study.folder import write_record
from sim2real_eval.study.record import DIGEST
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.shipped import config_path
from sim_sensors.sensor.catalogue import KINDS, preset_names

Capture = pytest.CaptureFixture[str]

WITHOUT_RECORDINGS = {'demo', 'gate', 'report', 'export', 'models', 'world', 'scenario'}
WITHOUT_OUT = {'gate', 'check'}
ORDERS = [*itertools.permutations(['a b', '--models ch_rw', '--out o'])]
OF_LABELS = {('gate', '--models')}
"""Options that name models of a result, which are no sensors."""


def actions(verb: str) -> list[argparse.Action]:
    (verbs,) = (
        action
        for action in build_parser(verb)._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    return list(verbs.choices[verb]._actions)


@pytest.mark.parametrize('verb', VERBS)
def test_recordings_are_positional_and_no_option_takes_several_words(verb: str) -> None:
    positional = [action for action in actions(verb) if not action.option_strings]
    recordings = [action for action in positional if action.dest == 'recordings']
    assert len(recordings) == (verb not in WITHOUT_RECORDINGS)
    for action in recordings:
        assert action.metavar == 'RECORDING'
        assert action.nargs in ('+', '*')
        assert action is positional[-1]
    assert not [
        action.option_strings
        for action in actions(verb)
        if action.option_strings and action.nargs in ('+', '*')
    ]


@pytest.mark.parametrize('verb', VERBS)
def test_out_is_a_folder_whose_files_are_named_in_the_help(verb: str) -> None:
    outs = [action for action in actions(verb) if '--out' in action.option_strings]
    assert len(outs) == (verb not in WITHOUT_OUT)
    for action in outs:
        text = str(action.help)
        assert action.metavar == 'DIR'
        assert text[:10].lower() == 'folder for'
        assert re.search(r'\w\.(csv|json|html|yaml|sdf|png)\b', text) or verb == 'simulate'


@pytest.mark.parametrize('verb', VERBS)
def test_sensor_options_take_a_model_or_a_list(verb: str) -> None:
    flags = {f'--{kind}': kind for kind in KINDS.names()}
    for action in actions(verb):
        for flag in action.option_strings:
            if flag in flags:
                assert action.metavar in ('MODEL', 'LIST'), flag
                assert re.search(r'\b(name|file|names|files|same way|as for)\b', str(action.help))
            if flag == '--models' and (verb, flag) not in OF_LABELS:
                assert {'--gps', '--wheels'} & {*action.option_strings}


@pytest.mark.parametrize('words', ORDERS)
@pytest.mark.parametrize('verb', ['vepd', 'compare', 'transfer'])
def test_recordings_stand_before_between_and_after_options(
    verb: str, words: tuple[str, ...]
) -> None:
    line = [verb, *' '.join(words).split(), '--topic', 'gps=/x', 'c']
    options = build_parser(verb).parse_args(line)
    assert options.recordings == ['a', 'b', 'c']
    assert options.out == 'o'


@pytest.mark.parametrize('kind', KINDS.names())
def test_every_kind_of_sensor_takes_real_none_a_name_and_a_file(kind: str) -> None:
    preset = preset_names(kind)[0]
    file = config_path(kind, f'{preset}.yaml')
    assert load_single(kind, REAL_SENSOR) is None
    assert load_single(kind, NONE) is None
    assert load_single(kind, preset) == load_single(kind, str(file))
    names = sensor_names(kind, f'real, none,{preset}', several=True)
    assert names == [REAL_SENSOR, NONE, preset]
    assert sensor_names(kind, 'all', several=True) == preset_names(kind)
    for wrong in ('rael', 'nonne', 'no_such_model', f'{preset},{preset}', 'all', ''):
        with pytest.raises(ParameterError):
            load_single(kind, wrong)
    for word in (REAL_SENSOR, NONE):
        with pytest.raises(ParameterError, match='a reason') as refusal:
            load_single(kind, word, {word: 'a reason'})
        assert f'--{kind}' in str(refusal.value)


@pytest.fixture(scope='module')
def bags(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_runs(tmp_path_factory.mktemp('bags'), ('drive_line', 1), ('drive_circle', 1))


@pytest.mark.parametrize(
    ('line', 'named'),
    [
        ('vepd {bag} --gps none --out o', '--gps'),
        ('vepd {bag} --imu none --out o', '--imu'),
        ('transfer {bag} --models ch_rw --imu none --out o', '--imu'),
        ('fit {bag} --gps none --tune gps.noise.std --out o', '--gps'),
        ('fit {bag} --gps ch_rw,ch_gauss --tune gps.noise.std --out o', '--gps'),
        ('sensitivity --gps real --out o', '--gps'),
        ('sensitivity {bag} --imu none --out o', '--imu'),
        ('compare {bag} --gps real --imu none --out o', '--gps'),
        *(
            (f'simulate --motion line --{kind} real --out o', f'--{kind}')
            for kind in KINDS.names()
        ),
        *((f'follow {{bag}} --{kind} real --out o', f'--{kind}') for kind in KINDS.names()),
        ('attitude --imu none', '--imu'),
        ('attitude --mag real', '--mag'),
        ('attitude --camera real', '--camera'),
        ('wheels --vision none', '--vision'),
        ('wheels --vision real', '--vision'),
        ('wheels --wheels none', '--wheels'),
    ],
)
def test_a_verb_says_why_it_cannot_do_without_a_sensor(
    line: str,
    named: str,
    bags: list[Path],
    capsys: Capture,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    check_refused(capsys, named, *line.format(bag=bags[0]).split())


@pytest.fixture(scope='module')
def drive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a recording with a sensor of each kind."""
    out = tmp_path_factory.mktemp('drive')
    words = ['simulate', '--motion', 'circle', '--duration', '2', '--out', str(out)]
    names = {'gps': 'baseline', 'imu': 'ideal', 'mag': 'ideal', 'wheels': 'ideal'}
    names |= {'camera': 'ideal_vga', 'vision': 'tags', 'world': 'tag_ring'}
    words += [word for kind, name in names.items() for word in (f'--{kind}', name)]
    assert main(words) == 0
    return out / 'circle_1'


@pytest.mark.parametrize('kind', KINDS.names())
def test_a_simulation_leaves_out_a_sensor_that_is_none(
    kind: str, drive: Path, capsys: Capture, tmp_path: Path
) -> None:
    """Recorded messages of that kind are dropped, and all others stay."""
    chosen = {'gps': 'real', 'imu': 'ideal', kind: NONE}
    if kind == 'imu':
        chosen['gps'] = 'baseline'
    line = [word for name, model in chosen.items() for word in (f'--{name}', model)]
    done = call(capsys, 'simulate', drive, *line, '--out', tmp_path)
    assert done.status == 0, done.err
    before, after = read_recording(drive), read_recording(tmp_path / 'circle_1')
    sensor = KINDS.get(kind)
    topics = {f'/{topic}' for topic in (sensor.topic, *sensor.more_topics)}
    assert topics & set(before.messages)
    assert set(after.messages) == set(before.messages) - topics


# Spellings of version 1.0.


def hints(outcome: Outcome) -> list[str]:
    """Return the lines of standard error that tell of a new spelling."""
    return [line for line in outcome.err.splitlines() if re.search(' is now | now takes ', line)]


@pytest.mark.parametrize(('verb', 'option'), deprecations.POSITIONAL)
def test_an_old_option_has_the_same_meaning_and_one_hint(
    verb: str, option: str, capsys: Capture
) -> None:
    new = {
        'study': 'study a_imu a b --out o',
        'match': 'match rest a b --to sdf --out o',
        'wheels': 'wheels a b --out o',
        'fit': 'fit a b --tune gps.noise.std --out o',
    }
    old = {
        'study': 'study a_imu --real a b --out o',
        'match': 'match rest --drives a b --to sdf --out o',
        'wheels': 'wheels --truth a b --out o',
        'fit': 'fit --real a b --tune gps.noise.std --out o',
    }
    parsed = []
    for line in (
        new.get(verb, f'{verb} a b --out o'),
        old.get(verb, f'{verb} {option} a b --out o'),
        old.get(verb, f'{verb} --out o {option} a b'),
    ):
        parsed.append(vars(build_parser(verb).parse_args(line.split())))
        parsed[-1].pop('parser', None)
        told = capsys.readouterr().err.splitlines()
        assert len(told) == (line != new.get(verb, f'{verb} a b --out o'))
        assert all(hint.startswith(f'sim2real: {option} ') for hint in told)
    functions = [options.pop('run') for options in parsed]
    assert len({*functions}) == 1
    assert parsed[0] == parsed[1] == parsed[2]
    assert not [action for action in actions(verb) if option in action.option_strings]


@pytest.mark.parametrize('line', ['a {} held b --out o', '{} held a --out o', '--out o {} held a'])
def test_words_that_may_be_recordings_or_tests_are_refused(line: str, capsys: Capture) -> None:
    """Version 1.0 took all of them for tests, and the current grammar takes one."""
    for verb, option in deprecations.REPEATED:
        with pytest.raises(SystemExit) as refused:
            build_parser(verb).parse_args([verb, *line.format(option).split()])
        assert refused.value.code == 2
        (complaint,) = capsys.readouterr().err.splitlines()
        assert f"{option} 'others/*'" in complaint
        assert f'{option} held {option} ' in complaint


def test_with_real_the_words_after_sim_are_simulated() -> None:
    """Version 1.0 had no recordings besides those of --real."""
    new, *olds = (
        build_parser('compare').parse_args(line.split())
        for line in (
            'compare x --sim a --sim b --out o',
            'compare --real x --sim a b --out o',
            'compare --sim a b --real x --out o',
        )
    )
    for old in olds:
        assert (old.recordings, old.sim) == (new.recordings, new.sim)


@pytest.mark.parametrize(
    'line', ['a b {0} held --out o', 'a {0} held --out o b', 'a b --out o {0}=held']
)
def test_a_test_is_one_path_and_recordings_may_follow_other_options(line: str) -> None:
    for verb, option in deprecations.REPEATED:
        options = build_parser(verb).parse_args([verb, *line.format(option).split()])
        assert options.recordings == ['a', 'b']
        assert getattr(options, option.strip('-')) == ['held']


@pytest.mark.usefixtures('blank_pictures')
def test_vepd_gives_the_same_result_for_both_spellings(
    bags: list[Path], capsys: Capture, tmp_path: Path
) -> None:
    words = ['--models', 'ch_rw', '--resamples', 100, '--jobs', 1, '--out']
    old = call(capsys, 'vepd', '--real', *bags, *words, tmp_path / 'old')
    new = call(capsys, 'vepd', *words, tmp_path / 'new', *bags)
    assert (old.status, new.status) == (0, 0)
    assert len(hints(old)) == 1
    assert not hints(new)
    # The page and the tables hold the time.
    for name in ('vepd.csv', 'study.json'):
        records = [(tmp_path / folder / name).read_text('utf-8') for folder in ('old', 'new')]
        assert records[0] == records[1]
    record = json.loads((tmp_path / 'new' / 'study.json').read_text('utf-8'))
    assert record['command'][2:4] == [str(bag) for bag in bags]


@pytest.mark.usefixtures('blank_pictures')
def test_a_result_of_version_1_0_can_be_verified(
    bags: list[Path], capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ['--models', 'ch_rw', '--resamples', 100, '--jobs', 1, '--out', 'result']
    assert call(capsys, 'vepd', *bags, *words).status == 0
    record = json.loads(Path('result/study.json').read_text('utf-8'))
    options = record['command'][2 + len(bags) :]
    record['command'] = ['sim2real', 'vepd', *options, '--real', *map(str, bags)]
    record.pop(DIGEST)
    write_record(Path('result'), record, record.pop('runs'))
    outcome = call(capsys, 'study', '--verify', 'result', '--jobs', 1)
    assert outcome.status == 0, outcome
    assert not hints(outcome)
    again = call(capsys, 'vepd', *bags, *words)
    assert again.status == 0, again.err


@pytest.mark.usefixtures('blank_pictures')
@pytest.mark.parametrize(
    ('line', 'old', 'new'),
    [
        ('judge {bag} --config clean', 'estimate.csv', 'line_1.csv'),
        ('export xsens_mtx --to sdf', 'mine.sdf', 'imu.sdf'),
        ('export ch_gauss --to hector', 'mine.xml', 'gps.xml'),
        ('world default', 'room.png', 'map.png'),
        ('world dipole_room --components', 'room.png', 'components.png'),
        ('models --from {imu}', 'mine.yaml', 'imu.yaml'),
    ],
)
def test_a_file_for_out_works_with_one_hint(
    line: str, old: str, new: str, bags: list[Path], capsys: Capture, tmp_path: Path
) -> None:
    """The same bytes, under the name of the file, in its folder."""
    assert call(capsys, 'export', 'xsens_mtx', '--to', 'kalibr', '--out', tmp_path).status == 0
    words = line.format(bag=bags[0], imu=tmp_path / 'imu.yaml').split()
    in_folder = call(capsys, *words, '--out', tmp_path / 'new.d')
    assert in_folder.status == 0, in_folder.err
    assert not hints(in_folder)
    as_file = call(capsys, *words, '--out', tmp_path / 'old' / old)
    assert as_file.status == 0, as_file.err
    assert len(hints(as_file)) == 1
    assert '--out is now a folder' in hints(as_file)[0]
    files = {name.replace(new, old): text for name, text in contents(tmp_path / 'new.d').items()}
    assert old in files
    assert contents(tmp_path / 'old') == files
    assert call(capsys, *words, '--out', tmp_path / 'old' / old).status == 2


def test_estimates_of_several_recordings_are_refused_for_a_file(
    bags: list[Path], capsys: Capture, tmp_path: Path
) -> None:
    outcome = call(capsys, 'judge', *bags, '--config', 'clean', '--out', tmp_path / 'x.csv')
    assert outcome.status == 2
    assert 'folder' in outcome.complaints[0]
    assert not contents(tmp_path)
