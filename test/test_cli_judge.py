# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real judge`: the estimates of the real nodes, from bags and folders, as CSV."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from cli_examples import call, contents, run_of, write_runs
from judge_examples import read_rows

from sim2real_eval.recording.csv_files import read_table
from sim2real_eval.recording.message_types import MESSAGE_TYPES
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.writing import write_recording

Capture = pytest.CaptureFixture[str]
NODES = Path('judge/node')


@pytest.fixture(scope='module')
def bags(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    runs = [('drive_line', 1), ('drive_circle', 1)]
    return write_runs(tmp_path_factory.mktemp('bags'), *runs)


def trace(reference_dir: Path, name: str) -> Path:
    folder = reference_dir / NODES / name
    if not folder.is_dir():
        pytest.skip(f'no trace {folder}')
    return folder


def configuration(folder: Path) -> list[object]:
    navsat = folder / 'navsat_params.yaml'
    with_navsat = ['--navsat-config', navsat] if navsat.exists() else []
    return ['--config', folder / 'params.yaml', *with_navsat]


@pytest.mark.parametrize(
    'name', ['a_paper_circle_gauss', 'b_paper_airsim', 'c_clean_navsat', 'd_wheel_imu']
)
def test_the_estimate_equals_the_trace_of_the_robot_localization_nodes(
    reference_dir: Path, tmp_path: Path, capsys: Capture, name: str
) -> None:
    """Header and stamps equal those of the real nodes, velocities to 1e-6 m/s."""
    folder = trace(reference_dir, name)
    out = tmp_path / 'x.csv'
    outcome = call(capsys, 'judge', folder, *configuration(folder), '--out', out)
    assert outcome.status == 0
    assert outcome.complaints == []
    header, estimated = read_rows(out)
    expected_header, expected = read_rows(folder / 'expected_filtered.csv.gz')
    assert header == expected_header
    assert [row[0] for row in estimated] == [row[0] for row in expected]
    columns = [header.index(column) for column in ('vx', 'vy', 'vz', 'wx', 'wy', 'wz')]
    velocities, expected_velocities = (
        np.array([[float(row[column]) for column in columns] for row in rows])
        for rows in (estimated, expected)
    )
    assert np.abs(velocities - expected_velocities).max() < 1e-6, (
        'trace of the real nodes, 1e-6 m/s'
    )
    assert len(estimated) > 100


def test_a_bag_with_a_case_gives_the_estimate_of_its_csv_folder(
    reference_dir: Path, tmp_path: Path, capsys: Capture
) -> None:
    """Bytes are equal; without the case file, which sets the timers, stamps differ."""
    folder = trace(reference_dir, 'a_paper_circle_gauss')
    bag = tmp_path / 'bag'
    write_recording(read_recording(folder), bag)
    configured = configuration(folder)
    case = ['--case', folder / 'case.yaml']
    estimates = []
    for arguments in ([folder, *configured], [bag, *configured, *case], [bag, *configured]):
        out = tmp_path / f'{len(estimates)}.csv'
        assert call(capsys, 'judge', *arguments, '--out', out).status == 0
        estimates.append(out.read_bytes())
    from_csv, from_bag, without_case = estimates
    assert from_csv == from_bag != without_case


def test_estimates_of_several_recordings_are_written_into_a_folder(
    bags: list[Path], tmp_path: Path, capsys: Capture
) -> None:
    """Each estimate equals that of a separate run."""
    out = tmp_path / 'estimates'
    outcome = call(capsys, 'judge', *bags, '--config', 'clean', '--out', out, '--json')
    assert outcome.status == 0
    assert sorted(path.name for path in out.iterdir()) == ['circle_1.csv', 'line_1.csv']
    summaries = json.loads(outcome.out)
    assert [summary['recording'] for summary in summaries] == [str(path) for path in bags]
    for summary in summaries:
        _, rows = read_rows(Path(summary['out']))
        assert summary['estimates'] == len(rows)
        assert summary['fixes_used'] > 30
    alone = tmp_path / 'alone'
    assert call(capsys, 'judge', bags[1], '--config', 'clean', '--out', alone).status == 0
    assert (alone / 'circle_1.csv').read_bytes() == (out / 'circle_1.csv').read_bytes()


def test_a_broken_recording_is_named_and_the_others_are_judged(
    bags: list[Path], tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / 'estimates'
    recordings = [bags[0], tmp_path / 'gone', bags[1]]
    outcome = call(capsys, 'judge', *recordings, '--config', 'clean', '--out', out)
    assert outcome.status == 1
    (line,) = outcome.complaints
    assert str(tmp_path / 'gone') in line
    assert sorted(path.name for path in out.iterdir()) == ['circle_1.csv', 'line_1.csv']
    assert len(outcome.out.splitlines()) == 2


def test_recordings_of_equal_names_do_not_overwrite_each_other(
    bags: list[Path], tmp_path: Path, capsys: Capture
) -> None:
    """--overwrite replaces only files of earlier commands."""
    copy = tmp_path / 'other'
    write_recording(run_of('drive_line', 1), copy)
    assert yaml.safe_load((copy / 'recording.yaml').read_text())['name'] == 'line_1'
    out = tmp_path / 'estimates'
    words = ['--config', 'clean', '--out', out, '--overwrite']
    outcome = call(capsys, 'judge', bags[0], copy, *words)
    assert outcome.status == 1
    assert 'line_1: ' in outcome.complaints[0]
    assert set(contents(out)) == {'line_1.csv'}


def test_navsat_parameters_are_read_from_the_parameter_file_of_the_filter(
    bags: list[Path], repository: Path, tmp_path: Path, capsys: Capture
) -> None:
    """One parameter file for both nodes gives the same estimate as two files."""
    both = {}
    for node, name in (('ekf_filter_node', 'clean'), ('navsat_transform_node', 'clean_navsat')):
        content = yaml.safe_load((repository / f'config/judge/{name}.yaml').read_text('utf-8'))
        both[node] = next(iter(content.values()))
    (tmp_path / 'both.yaml').write_text(yaml.safe_dump(both), encoding='utf-8')
    for name, config in (('one', tmp_path / 'both.yaml'), ('two', 'clean')):
        out = tmp_path / name
        assert call(capsys, 'judge', bags[1], '--config', config, '--out', out).status == 0
    assert contents(tmp_path / 'one') == contents(tmp_path / 'two')


def test_the_topic_of_an_input_can_be_set_by_option(
    bags: list[Path], tmp_path: Path, capsys: Capture
) -> None:
    recording = run_of('drive_line', 1)
    messages = dict(recording.messages)
    messages['/vn100/imu'] = messages.pop('/imu/data')
    roles = {**recording.roles, 'imu': '/vn100/imu'}
    renamed = type(recording)('line_1', 'line', '', messages, roles)
    write_recording(renamed, tmp_path / 'bag')
    (tmp_path / 'bag' / 'recording.yaml').unlink()
    words = ['judge', tmp_path / 'bag', '--config', 'clean', '--topic', 'imu=/vn100/imu']
    assert call(capsys, *words, '--out', tmp_path / 'x').status == 0
    usual = ['judge', bags[0], '--config', 'clean']
    assert call(capsys, *usual, '--out', tmp_path / 'y').status == 0
    (renamed_estimate,), (estimate,) = (contents(tmp_path / out).values() for out in 'xy')
    assert renamed_estimate == estimate


def test_the_estimate_is_written_as_latitude_and_longitude_too(
    bags: list[Path], tmp_path: Path, capsys: Capture
) -> None:
    """Fixes come at the ticks of navsat_transform, within 2 m of the receiver for its noise and
    lever arm. The option is refused for a profile that does not publish gps/filtered.
    """
    words = ['judge', bags[0], '--out', tmp_path, '--filtered-gps', '--config']
    outcome = call(capsys, *words, 'clean')
    assert outcome.status == 2
    assert '--filtered-gps' in outcome.err
    assert call(capsys, *words, 'paper_released').status == 0
    kind = MESSAGE_TYPES['sensor_msgs/msg/NavSatFix']
    back, _ = read_table(tmp_path / 'line_1_gps_filtered.csv', kind)
    gps = read_recording(bags[0]).gps
    assert len(back) > 50
    metres = 111e3 * (back.latitude - np.interp(back.stamp_ns, gps.stamp_ns, gps.latitude))
    assert np.abs(metres[10:]).max() < 2.0
    assert call(capsys, *words, 'paper_released').status == 2
    assert call(capsys, *words, 'paper_released', '--overwrite').status == 0


@pytest.mark.parametrize(
    ('options', 'hint'),
    [
        (['--latency', '/gps/fix=1', '--latency', 'gps/fix=2'], 'gps/fix'),
        (['--front-end', 'enu', '--filtered-gps'], 'enu'),
        (['--judge', 'error_state'], '--config'),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    bags: list[Path], tmp_path: Path, capsys: Capture, options: list[str], hint: str
) -> None:
    line = ['judge', bags[0], '--config', 'clean', *options, '--out', tmp_path / 'x']
    outcome = call(capsys, *line)
    assert outcome.status == 2
    assert hint in outcome.err
    assert not list(tmp_path.iterdir())


def test_a_library_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setitem(sys.modules, 'rosbags.rosbag2', None)
    options = '--motion', 'line', '--duration', 2, '--out', tmp_path / 'x'
    outcome = call(capsys, 'simulate', *options)
    assert outcome.status == 2
    assert 'pip install rosbags' in outcome.err


@pytest.mark.parametrize('count', [1, 2])
def test_estimates_on_another_clock_have_no_errors_and_a_reason(
    count: int, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Estimates 1000 s late; those on the clock of the recording have errors and no reason."""
    bags = write_runs(tmp_path, *[('drive_line', number + 1) for number in range(count)])
    for late, reasons in ((10**12, count), (0, 0)):
        judge = tmp_path / f'late_{reasons}.py'
        judge.write_text(
            'import numpy as np\n'
            'from sim2real_eval import Estimate\n'
            'class Late:\n'
            '    def judge(self, recording):\n'
            '        stamps = recording.gps.stamp_ns\n'
            f'        return Estimate(stamps + {late}, np.ones((len(stamps), 3)))\n'
        )
        words = ('--judge', f'{judge}:Late', '--out', tmp_path / f'out_{reasons}')
        outcome = call(capsys, 'judge', *bags, *words)
        assert outcome.status == 0
        assert outcome.out.count('no errors against the truth: ') == reasons
        records = json.loads(call(capsys, 'judge', *bags, *words, '--overwrite', '--json').out)
        assert [bool(record['no_errors']) for record in records] == [bool(reasons)] * count
        assert [bool(record['errors']) for record in records] == [not reasons] * count


def test_a_finding_of_several_recordings_is_printed_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    bags = write_runs(tmp_path, ('drive_line', 1), ('drive_line', 2))
    single = call(capsys, 'judge', bags[0], '--out', tmp_path / 'one')
    assert single.err.count('lasts 6.0 s') == 1
    assert 'recorded runs' not in single.err
    several = call(capsys, 'judge', *bags, '--out', tmp_path / 'all')
    assert several.err.count('lasts 6.0 s') == 1
    assert several.err.count('Please note') == 1
    records = json.loads(call(capsys, 'judge', *bags, '--out', tmp_path / 'j', '--json').out)
    codes = [{note['code'] for note in record['notes']} for record in records]
    assert 'check.short' in codes[0] & codes[1]


@pytest.mark.parametrize(
    ('quantity', 'missing', 'status'),
    [
        ('velocity', [2], 2),
        ('velocity', [0, 1], 2),
        ('position', [2], 2),
        ('velocity', [0, 1, 2], 1),  # a filter that diverged at once; its file can be looked at
    ],
)
def test_an_axis_without_numbers_is_named(
    quantity: str,
    missing: list[int],
    status: int,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    (bag,) = write_runs(tmp_path, ('drive_line', 1))
    judge = tmp_path / 'planar.py'
    judge.write_text(
        'import numpy as np\n'
        'from sim2real_eval import Estimate\n'
        'class Planar:\n'
        '    def judge(self, recording):\n'
        '        stamps = recording.gps.stamp_ns\n'
        "        vectors = {n: np.ones((len(stamps), 3)) for n in ('velocity', 'position')}\n"
        f'        vectors[{quantity!r}][:, {missing}] = np.nan\n'
        '        return Estimate(stamps, **vectors)\n'
    )
    outcome = call(capsys, 'judge', bag, '--judge', f'{judge}:Planar', '--out', tmp_path / 'out')
    assert outcome.status == status
    assert (tmp_path / 'out/line_1.csv').exists() == (status == 1)
    if status == 2:
        axes = ' and '.join(['east', 'north', 'up'][axis] for axis in missing)
        assert f'{quantity} is NaN along {axes} ' in outcome.err
