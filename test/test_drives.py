# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Recordings of one drive are recognised, and count as one block of a study."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import yaml
from cli_examples import call
from fit_examples import drawn_fit, gps_noise
from recording_examples import REAL

import sim2real_eval as s2r
from sim2real_eval.benches.sensitivity import sensitivity
from sim2real_eval.benches.settings import SensitivityOptions
from sim2real_eval.benches.tuning import tune
from sim2real_eval.common.findings import RecordingError
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.drives import DriveSpan, group_drives, recording_blocks
from sim2real_eval.recording.reading import RecordingSource
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.writing import write_recording
from sim2real_eval.study.options import TuneOptions
from sim2real_eval.study.recordings import recordings_from_sources
from sim2real_eval.study.search.engine import deal_folds, independent_units
from sim2real_eval.study.variants import StudyJudge
from sim_sensors import motion_of
from sim_sensors.core.errors import ParameterError

Capture = pytest.CaptureFixture[str]
TODAY_S = 1_700_000_000
METRE = 1.0 / 111_320.0


def span(
    begin: float, end: float, metres: tuple[float, float] | None = None, block: str = ''
) -> DriveSpan:
    """A recording between two times, s, with fixes at 1 Hz from one place to another, m north."""
    bounds = round(begin * 1e9), round(end * 1e9)
    if metres is None:
        return DriveSpan(*bounds, np.empty(0, np.int64), np.empty((0, 2)), block)
    stamps = np.arange(*bounds, 10**9, dtype=np.int64)
    north = np.interp(stamps, bounds, metres) * METRE
    return DriveSpan(*bounds, stamps, np.stack([43.0 + north, np.full(len(north), 8.0)], 1), block)


def today(*times: tuple[float, float]) -> list[DriveSpan]:
    return [span(TODAY_S + begin, TODAY_S + end) for begin, end in times]


@pytest.mark.parametrize(
    ('times', 'drives'),
    [
        (((0, 60), (60, 120), (120, 180)), [[0, 1, 2]]),
        (((120, 180), (0, 60), (60.01, 120)), [[1, 2, 0]]),
        (((0, 60), (120, 180)), [[0, 1]]),
        (((0, 60), (121, 180)), [[0], [1]]),
        (((0, 60), (59, 120)), [[0, 1]]),  # a recorder that cuts with an overlap of a second
        (((0, 60), (0, 60), (0, 60)), [[0], [1], [2]]),
        (((0, 60), (0, 40)), [[0], [1]]),
        (((0, 60), (30, 90)), [[0], [1]]),  # two robots
        (((0, 1), (0.5, 1.5)), [[0, 1]]),
        (((0, 60), (30, 90), (60.1, 120), (90.1, 150)), [[0, 2], [1, 3]]),
    ],
)
def test_recordings_that_follow_each_other_within_a_minute_are_one_drive(
    times: Sequence[tuple[float, float]], drives: list[list[int]]
) -> None:
    assert group_drives(today(*times)) == drives


def test_the_stamps_of_a_clock_that_begins_at_zero_need_fixes_that_go_on() -> None:
    """Simulated time and the time since a boot begin at zero in every recording."""
    assert group_drives([span(0, 60), span(60, 120)]) == [[0], [1]]
    assert group_drives([span(5, 60, (0, 500)), span(60.1, 120, (505, 900))]) == [[0, 1]]
    # Ends 500 m from where the other begins.
    assert group_drives([span(5, 60, (0, 500)), span(60.1, 120, (0, 900))]) == [[0], [1]]
    # A pause of 30 s is not that of a recorder.
    assert group_drives([span(5, 60, (0, 500)), span(90, 120, (505, 900))]) == [[0], [1]]


def test_places_tell_two_robots_apart() -> None:
    """Two robots, 1 km apart, are recorded at the same times, in segments."""
    first, second = TODAY_S, TODAY_S + 60.1
    robots = [span(first, first + 60, place) for place in ((0, 50), (1000, 1050))]
    later = [span(second, second + 60, place) for place in ((1052, 1100), (52, 100))]
    assert group_drives([*robots, *later]) == [[0, 3], [1, 2]]
    elsewhere = span(second, second + 60, (90_000, 90_100))
    assert group_drives([robots[0], elsewhere]) == [[0], [1]]
    # Without places, the shorter pause decides.
    assert group_drives(today((0, 60), (0, 60.05), (60.01, 120), (60.06, 120))) == [[0, 2], [1, 3]]


def test_windows_that_share_their_fixes_are_one_drive() -> None:
    """Windows of 60 s every 20 s, of any clock; another robot at the same time is not."""
    for start in (0, TODAY_S):
        whole = span(start, start + 120, (0, 500))
        windows = []
        for first in (0, 20, 40):
            rows = slice(first, first + 60)
            stamps = whole.fix_ns[rows]
            windows.append(DriveSpan(stamps[0], stamps[-1], stamps, whole.places[rows]))
        other = windows[1]._replace(places=windows[1].places + 100.0 * METRE)
        assert group_drives([*windows, other]) == [[0, 1, 2], [3]]


def test_a_block_of_recording_yaml_is_kept() -> None:
    named = [span(TODAY_S + 60 * k, TODAY_S + 60 * k + 60, block=f'{k % 2}') for k in range(2)]
    assert group_drives([*named, *today((120, 180), (180, 240))]) == [[0], [1], [2, 3]]


def run(name: str, start_s: float, duration: float = 12.0) -> Recording:
    """A simulated drive whose stamps begin at a time."""
    made = s2r.simulate(
        motion_of('circle', duration=duration), gps='ch_gauss', imu='ideal', name=name,
        seed=len(name) + round(start_s) % 1000,
    )  # fmt: skip
    offset = round(start_s * 1e9) - made.start_ns
    messages = {
        topic: dataclasses.replace(
            array, stamp_ns=array.stamp_ns + offset, arrival_ns=array.arrival_ns + offset
        )
        for topic, array in made.messages.items()
    }
    return dataclasses.replace(made, messages=messages)


@pytest.fixture
def bags(tmp_path: Path) -> list[Path]:
    """Two drives of three segments and of one."""
    starts = {'a1': 0.0, 'a2': 12.1, 'a3': 24.2, 'b1': 9000.0}
    for name, start in starts.items():
        write_recording(run(name, TODAY_S + start), tmp_path / name)
    return [tmp_path / name for name in starts]


def test_sources_and_recordings_have_the_same_blocks(bags: list[Path]) -> None:
    """A file and recording.yaml name blocks too; what cannot be read is independent."""
    sources = [RecordingSource(str(path)) for path in bags]
    expected = ['drive of a1'] * 3 + ['']
    assert recording_blocks(sources) == expected
    assert recording_blocks([source.read() for source in sources]) == expected
    assert recording_blocks(sources, 'none') == [''] * 4
    missing = RecordingSource('/nowhere/c1')
    assert recording_blocks([*sources, missing]) == [*expected, '']
    folder = bags[0].parent
    (folder / 'blocks.yaml').write_text('a1: 2026-05-01\nb1: 2026-05-01\na2: 8\n', 'utf-8')
    (folder / 'blocks.csv').write_text(
        'recording,block,who\na1,2026-05-01,x\nb1,2026-05-01,y\na2,8,\n', 'utf-8'
    )
    for name in ('blocks.yaml', 'blocks.csv'):
        blocks = recording_blocks(sources, str(folder / name))
        assert blocks == ['2026-05-01', '8', '', '2026-05-01']
    for day in ('tuesday', '2026-05-02'):
        (bags[1] / 'recording.yaml').write_text(f'block: {day}\n', 'utf-8')
        assert recording_blocks(sources) == ['drive of a1', day, 'drive of a1', '']


@pytest.mark.skipif(not REAL.is_dir(), reason='the real drives are not here')
@pytest.mark.parametrize('name', ['drive0708', 'comma2k19'])
def test_the_segments_of_a_real_drive_are_one_block(name: str) -> None:
    bags = sorted((REAL / name / 'segments').glob('*/bag'))
    blocks = recording_blocks([RecordingSource(str(bag)) for bag in bags])
    assert len(bags) > 1
    assert len(set(blocks)) == 1
    assert blocks[0]


def record_of(folder: Path) -> dict:
    return json.loads((folder / 'study.json').read_text('utf-8'))


def test_vepd_takes_the_segments_of_a_drive_as_one_block(
    bags: list[Path], tmp_path: Path, capsys: Capture
) -> None:
    """Blocks change the statistics, and no run: nothing is judged again."""
    command = [
        'vepd', '--models', 'ch_rw', '--imu', 'real', '--real', *bags, '--out', tmp_path / 'out'
    ]  # fmt: skip
    (tmp_path / 'blocks.yaml').write_text('a1: x\na2: x\na3: y\nb1: y\n', 'utf-8')
    seen = {}
    for choice in ('auto', 'none', str(tmp_path / 'blocks.yaml')):
        outcome = call(capsys, *command, '--block', choice, '--json')
        assert outcome.status == 0
        record = record_of(tmp_path / 'out')
        codes = [note['code'] for note in record['notes']]
        blocks = [recording.get('block', '') for recording in record['recordings']]
        seen[Path(choice).name] = blocks, codes.count('study.drives')
        assert ('are already finished' in outcome.err) == (choice != 'auto')
    assert seen == {
        'auto': (['drive of a1'] * 3 + [''], 1),
        'none': ([''] * 4, 0),
        'blocks.yaml': (['x', 'x', 'y', 'y'], 0),
    }


def test_one_drive_is_ranked_without_an_interval(bags: list[Path], tmp_path: Path) -> None:
    """A study file chooses for itself. What cannot be read is no second drive."""
    unreadable = tmp_path / 'c1'
    unreadable.mkdir()
    for choice, is_whole in (('auto', False), ('none', True)):
        file = {
            'title': 'segments',
            'recordings': [{'path': f'{tmp_path}/a*'}, {'path': str(unreadable)}],
            'models': {'gps': ['ch_rw', 'ch_gauss'], 'imu': 'real'},
            'block': choice,
        }
        path = tmp_path / f'study_{choice}.yaml'
        path.write_text(yaml.safe_dump(file), 'utf-8')
        outcome = s2r.run_study(path, tmp_path / f'out_{choice}')
        codes = [note['code'] for note in outcome.record['notes']]
        assert ('study.one_block' in codes) != is_whole
        table = (tmp_path / f'out_{choice}' / 'vepd.csv').read_text('utf-8').splitlines()
        columns = table[0].split(',')
        for row in table[1:]:
            values = dict(zip(columns, row.split(','), strict=True))
            assert values['rank'] in ('1', '2')
            assert (values['low'] != '') == is_whole
        lines = (tmp_path / f'out_{choice}' / 'metrics.csv').read_text('utf-8').splitlines()
        metrics = [
            dict(zip(lines[0].split(','), row.split(','), strict=True)) for row in lines[1:]
        ]
        assert {values['rank'] for values in metrics} <= {'1.0', '1.5', '2.0'}
        # Three recordings are too few for a test, whether they are one block or not.
        assert {values['p_value'] + values['adjusted'] for values in metrics} == {''}


@pytest.mark.parametrize(
    ('text', 'told'),
    [
        (None, 'must be auto, none, or a YAML or CSV file'),
        ('a1: x\nzz: y\n', 'zz'),
        ('[a1]\n', 'must be a mapping'),
        ('a1: {x: 1}\n', 'a1'),
        ('a1: [\n', 'blocks.yaml'),
    ],
)
def test_wrong_files_of_blocks_are_refused_in_one_line(
    bags: list[Path], tmp_path: Path, capsys: Capture, text: str | None, told: str
) -> None:
    path = tmp_path / 'blocks.yaml'
    if text is not None:
        path.write_text(text, 'utf-8')
    outcome = call(
        capsys, 'vepd', '--real', *bags, '--block', path, '--out', tmp_path / 'out'
    )  # fmt: skip
    assert outcome.status == 2
    assert told in outcome.err
    assert 'Traceback' not in outcome.err


def test_the_python_interface_recognises_drives() -> None:
    """Twins have the blocks of the motions that they follow."""
    real = [run(f'r{k}', TODAY_S + 12.1 * k) for k in range(6)]
    twins = [s2r.simulate(drive, gps='ch_rw') for drive in real]
    sides = [[s2r.run_judge(recording) for recording in side] for side in (real, twins)]
    one_drive, independent = s2r.vepd(*sides), s2r.vepd(*sides, block='none')
    assert (one_drive.interval, one_drive.p_value) == (None, None)
    assert one_drive.vepd == independent.vepd
    assert independent.p_value is not None
    codes = [note.code for note in one_drive.notes]
    assert codes.count('study.one_block') == 1
    with pytest.raises(ParameterError, match='auto or none'):
        s2r.vepd(*sides, block='one')  # type: ignore[arg-type]


def test_a_recording_has_one_block_in_a_table(bags: list[Path], tmp_path: Path) -> None:
    path = tmp_path / 'blocks.csv'
    path.write_text('recording,block\na1,x\na2,x\na1,y\n', 'utf-8')
    with pytest.raises(RecordingError, match='line 4: a1'):
        recording_blocks([RecordingSource(str(bag)) for bag in bags], str(path))


def test_a_drive_that_tests_a_tuned_judge_is_named(tmp_path: Path) -> None:
    """As blocks of the test, only drives are independent evidence."""
    pauses = {'one': 6.1, 'seven': 3600.0}
    tests = {name: [tmp_path / f'{name}{k}' for k in range(7)] for name in pauses}
    for name, folders in tests.items():
        for k, folder in enumerate(folders):
            write_recording(run(folder.name, TODAY_S + k * pauses[name], 6.0), folder)
    options = TuneOptions(parameters='imu0_twist_rejection_threshold', warmup=1.0, blocks=6)
    judge, search = JudgeSetup.load('clean'), [RecordingSource(str(tests['seven'][0]))]
    for name, drives in (('one', [1]), ('seven', [])):
        sources = [RecordingSource(str(folder)) for folder in tests[name]]
        tuning = tune(search, judge, options, tests=sources)
        assert tuning.tests
        notes = [
            note
            for note in tuning.notes
            if note.code == 'tune.same_drives' and note.subject == '--test'
        ]
        assert [note.numbers['drives'] for note in notes] == drives


def test_a_sensitivity_that_rests_on_segments_is_named(tmp_path: Path) -> None:
    """Nine segments of three drives, and nine drives."""
    judge = StudyJudge('clean', 'embedded', JudgeSetup.load('clean'))
    options = SensitivityOptions(errors='gyro_bias', trials=200, permutations=200)
    for drives in (3, 9):
        folders = [tmp_path / f'of{drives}_{k}' for k in range(9)]
        for k, folder in enumerate(folders):
            start = 3600.0 * (k % drives) + 6.1 * (k // drives)
            write_recording(run(folder.name, TODAY_S + start, 6.0), folder)
        recordings = recordings_from_sources([RecordingSource(str(path)) for path in folders])
        notes = sensitivity(recordings, [judge], None, options).notes
        found = [
            note.numbers['drives'] for note in notes if note.code == 'sensitivity.same_blocks'
        ]
        assert found == ([3] if drives == 3 else [])


def test_folds_never_divide_a_drive() -> None:
    blocks = ['a', 'a', 'a', '', 'b', 'b', '', 'c', 'c']
    units = independent_units(blocks)
    folds = deal_folds(['line'] * len(blocks), 3, 0, units)
    assert sorted(np.concatenate(folds).tolist()) == list(range(len(blocks)))
    for block in 'abc':
        members = [i for i, name in enumerate(blocks) if name == block]
        assert sum(bool(set(members) & set(fold.tolist())) for fold in folds) == 1
    # A single drive can only be divided.
    assert [unit.tolist() for unit in independent_units(['a'] * 3)] == [[0], [1], [2]]


def test_the_gain_of_a_fit_on_segments_of_few_drives_is_not_proven() -> None:
    """18 independent recordings prove the gain; three drives of six segments cannot: p >= 1/8."""

    def p_value(blocks: tuple[str, ...]) -> float | None:
        noise = (gps_noise('std', start=0.5),)
        validation, _ = drawn_fit(
            lambda values: values[:, 0], [0.05], noise, recordings=18, blocks=blocks
        )
        return validation.p_value

    assert p_value(()) < 0.01
    assert p_value(tuple(f'drive {k // 6}' for k in range(18))) == 1 / 8
