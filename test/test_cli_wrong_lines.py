# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Wrong command lines end with exit status 2 and one error line, and write nothing."""

from __future__ import annotations

import functools
import re
import shlex
from pathlib import Path

import pytest
from cli_examples import VERBS, check_refused, run_of, write_runs
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sim2real_eval.cli.parser import build_parser
from sim2real_eval.recording.writing import write_recording

Capture = pytest.CaptureFixture[str]


# Building the parser takes ten times as long as parsing.
PARSER = functools.cache(build_parser)
DIGITS = 400 * '9'
# Lines of recording.yaml with absurd numbers.
ABSURD = {
    'soft': 'truth: {low_pass: 1e-300}\n',
    'turned': 'transforms:\n- {parent: base_link, child: imu_link, translation: [0, 0, 1], '
    'rotation_xyzw: [0, 0, 1e300, 1e300]}\n',
}


@pytest.fixture(scope='module')
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working folder with good and broken inputs; no wrong command may change it."""
    folder = tmp_path_factory.mktemp('place')
    write_runs(folder, ('drive_line', 1), ('drive_circle', 1))
    recording = run_of('drive_line', 1)
    write_recording(recording.with_messages('truth', None), folder / 'blind')
    write_recording(recording, folder / 'cut')
    data = folder / 'cut' / 'cut.mcap'
    data.write_bytes(data.read_bytes()[:20_000])
    write_recording(recording, folder / 'torn', storage='sqlite3')
    data = folder / 'torn' / 'torn.db3'
    data.write_bytes(data.read_bytes()[:5_000])
    (folder / 'empty').mkdir()
    (folder / 'full').mkdir()
    texts = {
        'full/mine.txt': 'mine',
        'file.txt': 'text',
        'unknown_key.yaml': 'model: gps\nrate: 10.0\nratte: 3.0\n',
        'no_yaml.yaml': 'a: [',
        'ekf.yaml': '/**:\n  ros__parameters:\n    frequency: 30.0\n    frequencyy: 3.0\n'
        '    imu0: imu/data\n    imu0_config: [' + ', '.join(['true'] * 15) + ']\n',
        'case.yaml': 'clokc: {}\n',
        'fast.yaml': 'model: chrono_normal_drift\nrate: 1e300\n',
        'endless.yaml': f'real: [line_1]\nmodels: [ch_rw]\nrepetitions: 1{400 * "0"}\n',
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding='utf-8')
    for name, line in ABSURD.items():
        write_recording(recording, folder / name, storage='csv')
        with (folder / name / 'recording.yaml').open('a', encoding='utf-8') as file:
            file.write(line)
    write_recording(recording, folder / 'arabic', storage='csv')
    table = folder / 'arabic' / 'imu.csv'
    header, row, *rows = table.read_text(encoding='utf-8').splitlines()
    cells = row.split(',')
    cells[header.split(',').index('ax')] = '١٢'
    table.write_text('\n'.join([header, ','.join(cells), *rows]) + '\n', encoding='utf-8')
    write_recording(recording, folder / 'number')
    metadata = folder / 'number' / 'metadata.yaml'
    text = metadata.read_text(encoding='utf-8')
    metadata.write_text(re.sub('name: /.*', 'name: 123', text, count=1), encoding='utf-8')
    return folder


WRONG = {
    'frob': 'frob',
    'jugde': 'judge',
    'vepd': 'recordings',
    'vepd line_1': '--out',
    'vepd gone --out o': 'gone',
    'vepd empty --out o': 'empty',
    'vepd cut --out o': 'cut/cut.mcap',
    'vepd torn --out o': 'torn/torn.db3',
    'vepd blind --out o': 'blind',
    'vepd line_1 --models nope --out o': 'nope',
    'vepd line_1 --models ch_rw, --out o': 'ch_rw,',
    'vepd line_1 --models ch_rv --out o': 'ch_rw',
    'vepd line_1 --models ch_rw,ch_rw --out o': 'ch_rw',
    'vepd line_1 --models unknown_key.yaml --out o': 'ratte',
    'vepd line_1 --models no_yaml.yaml --out o': 'no_yaml.yaml',
    'vepd line_1 --imu ch_rw --out o': 'ch_rw',
    'vepd line_1 --gps real --imu real --out o': 'real',
    'vepd line_1 --topic truth=/gone --out o': '/gone',
    'vepd line_1 --topic truth=/imu/data --out o': 'sensor_msgs/msg/Imu',
    'vepd line_1 --topic /odom --out o': '--topic',
    'vepd line_1 --out full': 'full',
    'vepd line_1 --out full --overwrite': 'study.json',
    'vepd line_1 --out o --seed -1': '-1',
    'vepd line_1 --out o --rate nan': 'nan',
    'vepd line_1 --out o --rate 0.01 --models ch_rw': '0.01',
    'vepd line_1 --out o --warmup 60 --models ch_rw': '60',
    'vepd line_1 --out o --scenario all': 'all',
    'vepd line_1 --out o --drop-zeros': '--drop-zeros',
    'vepd line_1 --out o --judge-config nope': 'nope',
    'vepd line_1 --out o --judge-config ekf.yaml': 'frequencyy',
    'vepd line_1 --out o --case case.yaml': 'clokc',
    'vepd --series full': 'Real',
    'vepd --series full --models ch_rw': '--models',
    'tune line_1 --out o --parameters nois': 'nois',
    'tune line_1 --out o --blocks 6': '6 blocks',
    'tune blind --out o --objective speed': '--objective speed',
    'judge line_1 --judge error_state --config clean --out o': 'clean',
    'judge line_1 --config clean': '--out',
    'judge line_1 --config clean --out file.txt': 'file.txt',
    'judge line_1 --config clean --navsat-config ekf.yaml --out o': 'ekf.yaml',
    'simulate --out s': '--motion',
    'simulate --motion nope --out s': 'nope',
    'simulate --motion circle --set radius=-1 --out s': 'radius: -1',
    'simulate --motion circle --set radius --out s': 'KEY=VALUE',
    'simulate --motion drive_line --set speed=1 --out s': 'parameters',
    'simulate --motion circle --gps real --out s': 'recorded',
    'simulate line_1 --gps none --imu real --out s': 'model of a sensor',
    'simulate line_1 --motion circle --out s': '--motion',
    'vepd line_1 --imu none --out o': 'needs a GPS and an IMU',
    'simulate --motion circle --topic gps=/x --out s': '--topic',
    f'simulate --motion circle --set radius={DIGITS} --out s': '64 bits',
    'simulate --motion circle --imu fast.yaml --out s': '1e-06',
    'study endless.yaml --out o': 'endless.yaml',
    'check soft': 'truth.low_pass',
    'check turned': 'transforms[0].rotation_xyzw',
    'check arabic': '١٢',
    'check number': 'number',
    'simulate line_1 --out .': 'line_1',
    'demo --out full': 'demo',
}


@pytest.mark.parametrize('line', WRONG)
def test_a_wrong_command_line_is_refused_in_one_line(
    line: str, place: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    jobs = ['--jobs', '1'] if line.startswith('vepd') and '--jobs' not in line else []
    check_refused(capsys, WRONG[line], *shlex.split(line), *jobs)


@settings(deadline=None, max_examples=150)
@given(
    st.lists(
        st.sampled_from(['--seed', '--rate', '--jobs', '--topic', '--models', '--scenario',
                         '--set', '--runs', '--duration', '--json', '--motion'])
        | st.text(st.characters(exclude_categories=['Cs'], exclude_characters='\0'), max_size=8),
        max_size=5,
    ),
    st.sampled_from([*VERBS, '']),
)  # fmt: skip
@example([''], 'demo')
def test_parsing_never_raises_a_traceback(words: list[str], verb: str) -> None:
    """Parsing succeeds or ends with exit status 2 (0 with --help)."""
    arguments = [verb, *words] if verb else words
    try:
        PARSER().parse_args(arguments)
    except SystemExit as stop:
        status = stop.code
    else:
        status = 0
    assert status in (0, 2)


@settings(deadline=None, max_examples=100)
@given(st.integers(), st.sampled_from(['--seed', '--jobs']))
def test_integers_up_to_64_bits_are_accepted(number: int, flag: str) -> None:
    arguments = ['vepd', 'x', '--out', 'y', f'{flag}={number}']
    if (flag == '--jobs') <= number < 2**63:
        assert getattr(PARSER().parse_args(arguments), flag[2:]) == number
    else:
        with pytest.raises(SystemExit) as stop:
            PARSER().parse_args(arguments)
        assert stop.value.code == 2
