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
    'digits': f'truth: {{low_pass: {DIGITS}}}\n',
    'turned': 'transforms:\n- {parent: base_link, child: imu_link, translation: [0, 0, 1], '
    'rotation_xyzw: [0, 0, 1e300, 1e300]}\n',
    'moved': f'transforms:\n- {{parent: base_link, child: imu_link, translation: [{DIGITS}]}}\n',
    'far': 'lever_arms: {imu: [1e300, 0, 0]}\n',
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
    (folder / 'dir.csv').mkdir()
    (folder / 'full').mkdir()
    (folder / 'full' / 'mine.txt').write_text('mine', encoding='utf-8')
    texts = {
        'file.txt': 'text',
        'unknown_key.yaml': 'model: gps\nrate: 10.0\nratte: 3.0\n',
        'no_yaml.yaml': 'a: [',
        'binary.yaml': '\x00\x01',
        'ekf.yaml': '/**:\n  ros__parameters:\n    frequency: 30.0\n    frequencyy: 3.0\n'
        '    imu0: imu/data\n    imu0_config: [' + ', '.join(['true'] * 15) + ']\n',
        'case.yaml': 'clokc: {}\n',
        'fast.yaml': 'model: chrono_normal_drift\nrate: 1e300\n',
        'loud.yaml': 'model: chrono_normal_drift\nrate: 100\ngyroscope: {std: 1e308}\n',
        'digits.yaml': f'model: chrono_normal_drift\nrate: {DIGITS}\n',
        'endless.yaml': f'real: [line_1]\nmodels: [ch_rw]\nrepetitions: 1{400 * "0"}\n',
        'sampled.yaml': f'real: [line_1]\nmodels: [ch_rw]\nmetric: {{rate: {DIGITS}}}\n',
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding='utf-8')
    for name, line in ABSURD.items():
        write_recording(recording, folder / name, storage='csv')
        with (folder / name / 'recording.yaml').open('a', encoding='utf-8') as file:
            file.write(line)
    for name, cell in {'underscore': '1_000', 'arabic': '١٢'}.items():
        write_recording(recording, folder / name, storage='csv')
        table = folder / name / 'imu.csv'
        header, *rows = table.read_text(encoding='utf-8').splitlines()
        cells = rows[0].split(',')
        cells[header.split(',').index('ax')] = cell
        table.write_text('\n'.join([header, ','.join(cells), *rows[1:]]) + '\n', encoding='utf-8')
    write_recording(recording, folder / 'number')
    metadata = folder / 'number' / 'metadata.yaml'
    text = metadata.read_text(encoding='utf-8')
    metadata.write_text(re.sub('name: /.*', 'name: 123', text, count=1), encoding='utf-8')
    return folder


WRONG = {
    'frob': "verb: 'frob' is unknown; must be one of demo, ",
    'jugde': "'jugde' is unknown (did you mean judge?)",
    'vepd': 'one of the arguments --real --series is required',
    'vepd --real line_1': '--out: is missing',
    'vepd --real gone --out o': 'gone: no such file or folder',
    'vepd --real empty --out o': 'empty: not a recording',
    'vepd --real file.txt --out o': 'file.txt: not a trajectory: line 1',
    'vepd --real cut --out o': 'cut/cut.mcap: cut short or damaged',
    'vepd --real torn --out o': 'torn/torn.db3: file is cut short',
    'vepd --real blind --out o': 'blind: no truth topic',
    'vepd --real line_1 --models nope --out o': "'nope' is unknown",
    'vepd --real line_1 --models ch_rw, --out o': "'ch_rw,' has an empty entry",
    'vepd --real line_1 --models ch_rv --out o': 'did you mean ch_rw?',
    'vepd --real line_1 --models papper --out o': "'papper' is unknown (did you mean paper?)",
    'vepd --real line_1 --models ch_rw,ch_rw --out o': "'ch_rw' is named twice",
    'vepd --real line_1 --models , --out o': "',' has an empty entry",
    'vepd --real line_1 --models gone.yaml --out o': 'gone.yaml: cannot be read',
    'vepd --real line_1 --models unknown_key.yaml --out o': 'ratte: unknown',
    'vepd --real line_1 --models no_yaml.yaml --out o': 'no_yaml.yaml: ',
    'vepd --real line_1 --models binary.yaml --out o': 'binary.yaml: ',
    'vepd --real line_1 --models empty/x.yaml,x.yaml --out o': 'x.yaml: cannot be read',
    'vepd --real line_1 --imu ch_rw --out o': "imu model: 'ch_rw' is a GPS model",
    'vepd --real line_1 --gps real --imu real --out o': 'cannot both stay real',
    'vepd --real line_1 --topic truth=/gone --out o': 'topic /gone is missing',
    'vepd --real line_1 --topic truth=/imu/data --out o': 'has type sensor_msgs/msg/Imu',
    'vepd --real line_1 --topic /odom --out o': "--topic: '/odom' is not allowed",
    'vepd --real line_1 --out full': 'full: exists',
    'vepd --real line_1 --out full --overwrite': 'study.json',
    'vepd --real line_1 --out file.txt': 'file.txt: exists',
    'vepd --real line_1 --out file.txt/o': 'is a file',
    'vepd --real line_1 --out o --seed -1': "'-1' must be an integer >= 0",
    'vepd --real line_1 --out o --seed 1.5': "'1.5' must be an integer >= 0",
    'vepd --real line_1 --out o --jobs 0': "'0' must be an integer >= 1",
    'vepd --real line_1 --out o --rate 0': "'0' must be a number > 0",
    'vepd --real line_1 --out o --rate nan': "'nan' must be a number > 0",
    'vepd --real line_1 --out o --rate 1e9': "'1e9' must be a number > 0 and <= 10000 [Hz]",
    'vepd --real line_1 --out o --rate 0.01 --models ch_rw': 'must give 2 to',
    'vepd --real line_1 --out o --warmup inf': "'inf' must be a number >= 0",
    'vepd --real line_1 --out o --warmup 60 --models ch_rw': 'leaves nothing of 6 s',
    'vepd --real line_1 --out o --window 9999 --models ch_rw': 'must be >= 9999',
    'vepd --real line_1 --out o --scenario all': 'must not be all',
    'vepd --real line_1 --out o --scenario a/b': 'hold /',
    'vepd --real line_1 --out o --drop-zeros': '--drop-zeros: goes with --series only',
    'vepd --real line_1 --out o --component z': 'invalid choice',
    'vepd --real line_1 --out o --judge-config nope': 'must be one of clean, paper_released',
    'vepd --real line_1 --out o --judge-config gone.yaml': 'gone.yaml: cannot be read',
    'vepd --real line_1 --out o --judge-config ekf.yaml': 'frequencyy',
    'vepd --real line_1 --out o --case gone.yaml': 'gone.yaml: cannot be read',
    'vepd --real line_1 --out o --case case.yaml': 'clokc: unknown key',
    'vepd --real line_1 --out o --models ch_rw --topic gps=/x': 'topic /x is missing',
    'vepd --series gone': 'gone: is no folder',
    'vepd --series full': 'no folder Real',
    'vepd --series full --models ch_rw': '--models: goes with --real only',
    'vepd --series full --judge error_state': '--judge: goes with --real only',
    'vepd --series full --start-heading': '--start-heading: goes with --real only',
    'vepd --series full --real line_1': 'not allowed with argument',
    'tune line_1': 'required: --out',
    'tune gone --out o': 'gone: no such file or folder',
    'tune line_1 --out o --parameters nois': "'nois' is not allowed (did you mean noise?)",
    'tune line_1 --out o --blocks 5': "'5' must be an integer >= 6",
    'tune line_1 --out o --blocks 6': '6 blocks prove nothing of 5 parameters; must be >= 7',
    'tune line_1 --out o --warmup 60': 'lasts no longer than --warmup, 60 s',
    'tune line_1 --out full': 'full: exists',
    'tune blind --out o --objective speed': 'has no truth, which --objective speed needs',
    'judge': 'required: RECORDING, --out',
    'judge line_1 --judge error_state --config clean --out x.csv': "'clean' is unknown",
    'judge line_1 --config clean': 'required: --out',
    'judge gone --config clean --out x.csv': 'gone: no such file or folder',
    'judge gone cut --config clean --out xs': 'gone: no such file or folder (and 1 more)',
    'judge line_1 --config clean --out file.txt': 'file.txt: exists',
    'judge line_1 --config clean --out dir.csv --overwrite': 'dir.csv: is a folder',
    'judge line_1 circle_1 --config clean --out x.csv': 'must be a folder',
    'judge line_1 --config ekf.yaml --out x.csv': 'frequencyy',
    'judge line_1 --config clean --navsat-config ekf.yaml --out x.csv': 'ekf.yaml: ',
    'simulate --out s': 'one of the arguments --motion --truth is required',
    'simulate --motion nope --out s': "'nope' is unknown",
    'simulate --motion circle --set radius=-1 --out s': 'radius: -1 is not allowed',
    'simulate --motion circle --set radius=[1 --out s': 'radius: ',
    'simulate --motion circle --set radius --out s': 'must be KEY=VALUE',
    'simulate --motion circle --set duration=9 --out s': '--duration',
    'simulate --motion circle --duration 0.001 --out s': 'duration: 0.001 is not allowed',
    'simulate --motion drive_line --set speed=1 --out s': 'takes no parameters',
    'simulate --motion circle --gps real --out s': 'real goes with --truth only',
    'simulate --motion circle --gps none --imu real --out s': "'real' does not go with --gps none",
    'simulate --motion circle --gps ch_rw,airsim --out s': 'must name one each',
    'simulate --motion circle --topic gps=/x --out s': '--topic: goes with --truth only',
    'simulate --motion circle --storage zip --out s': 'invalid choice',
    'simulate --motion circle --out file.txt': 'file.txt',
    'simulate --motion circle --duration 1e300 --out s': "'1e300' must be a number > 0",
    f'simulate --motion circle --set radius={DIGITS} --out s': 'has more than 64 bits',
    'simulate --motion circle --imu fast.yaml --out s': 'must be a number >= 1e-06 and <= 100000',
    'simulate --motion circle --imu loud.yaml --out s': "gyroscope.std: '1e308' is not allowed",
    'simulate --motion circle --imu digits.yaml --out s': 'has more than 64 bits',
    'study endless.yaml --out o': 'endless.yaml: line 3, column 14: not valid YAML',
    'study sampled.yaml --out o': 'has more than 64 bits',
    'check soft': "truth.low_pass: '1e-300' is not allowed",
    'check digits': 'has more than 64 bits',
    'check turned': 'transforms[0].rotation_xyzw: ',
    'check moved': 'has more than 64 bits',
    'check far': "lever_arms.imu: ['1e300', 0, 0] is not allowed",
    'check underscore': "line 2: ax: '1_000' is not allowed",
    'check arabic': "line 2: ax: '١٢' is not allowed",
    'check number': 'number: not a readable bag',
    'simulate --truth blind --out s': 'blind: no truth topic',
    'simulate --truth line_1 --duration 5 --out s': '--duration: goes with --motion only',
    'simulate --truth line_1 --set a=1 --out s': '--set: a: goes with --motion only',
    'simulate --truth line_1 --out .': 'line_1: exists',
    'demo --runs 0': "'0' must be an integer >= 1",
    'demo --out full': 'is no demo',
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
                         '--set', '--runs', '--duration', '--json', '--truth', '--motion'])
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
def test_numbers_of_any_length_are_taken_or_refused(number: int, flag: str) -> None:
    arguments = ['vepd', '--real', 'x', '--out', 'y', f'{flag}={number}']
    # Integers have 64 bits, as in ROS.
    if (flag == '--jobs') <= number < 2**63:
        assert getattr(PARSER().parse_args(arguments), flag[2:]) == number
    else:
        with pytest.raises(SystemExit) as stop:
            PARSER().parse_args(arguments)
        assert stop.value.code == 2
