# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Inputs that are no regular files are refused at once; folders in paths are no patterns."""

from __future__ import annotations

import errno
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli_examples import call, run_of

from sim2real_eval.characterization.signal_files import read_signals
from sim2real_eval.common.digests import file_digest
from sim2real_eval.metrics.series import read_series
from sim2real_eval.recording.metadata import TransformFile, read_metadata, read_urdf
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.writing import write_recording
from sim2real_eval.report.export import read_allan_curves
from sim2real_eval.study.recordings import expand_patterns
from sim2real_eval.study.study_file import StudyFile
from sim_sensors.core.config_files import read_columns, read_yaml
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.input_files import check_input, match_paths, read_input_text, read_json
from sim_sensors.world.world import load_world

Capture = pytest.CaptureFixture[str]
Reader = Callable[[Path], object]
READERS: dict[str, Reader] = {
    'a.yaml': read_yaml,
    'b.yaml': read_metadata,
    'c.yaml': TransformFile.from_file,
    'd.yaml': load_world,
    'e.urdf': read_urdf,
    'f.csv': lambda path: read_columns(path, ['x']),
    'g.csv': read_series,
    'h.csv': read_allan_curves,
    'i.json': read_json,
    'j.txt': read_input_text,
    'k.txt': read_signals,
    'l.npy': read_signals,
    'm.npz': read_signals,
    'n.mcap': read_recording,
    'o.db3': read_recording,
    'p.bag': read_recording,
    'q.ulg': read_recording,
    'r.tum': read_recording,
    's.tlog': read_recording,
    't.bin': file_digest,
}


@pytest.fixture(autouse=True)
def limited_time() -> Iterator[None]:
    """Without it, a reader that opens a pipe would hang the suite."""
    signal.alarm(30)
    yield
    signal.alarm(0)


def make_special(path: Path, kind: str) -> Path:
    if kind == 'pipe':
        os.mkfifo(path)
    elif kind == 'socket':
        socket.socket(socket.AF_UNIX).bind(str(path))
    elif kind == 'folder':
        path.mkdir()
    else:
        path.symlink_to('/dev/zero')
    return path


@pytest.mark.parametrize('kind', ['pipe', 'socket', 'device'])
@pytest.mark.parametrize('name', READERS)
def test_every_reader_refuses_what_is_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)  # paths of sockets must be short
    path = make_special(Path(name), kind)
    with pytest.raises((Sim2RealError, OSError)) as refusal:
        READERS[name](path)
    text = str(refusal.value)
    assert name in text
    assert f'is a {kind}; must be a file' in text


@pytest.mark.parametrize('kind', ['pipe', 'socket', 'device'])
@pytest.mark.parametrize('part', ['metadata.yaml', 'recording.yaml', '.mcap'])
def test_a_bag_with_a_part_that_is_no_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, part: str, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_recording(run_of('line', 1), Path('bag'))
    (old,) = (path for path in Path('bag').iterdir() if path.name.endswith(part))
    old.unlink()
    make_special(old, kind)
    outcome = call(capsys, 'check', 'bag')
    assert outcome.status == 2
    assert outcome.err.count('\n') == 1
    assert f'{old}: is a {kind}; must be a file' in outcome.err


def test_a_folder_and_a_name_that_is_none_are_refused(tmp_path: Path) -> None:
    for path, number in ((tmp_path, errno.EISDIR), (Path('a\0b'), errno.EINVAL)):
        with pytest.raises(OSError, match='is') as refusal:
            check_input(path)
        assert refusal.value.errno == number


def test_hidden_files_and_dead_links_of_a_bag_do_not_matter(tmp_path: Path) -> None:
    write_recording(run_of('line', 1), tmp_path / 'bag')
    os.mkfifo(tmp_path / 'bag' / '.pipe')
    (tmp_path / 'bag' / 'dead').symlink_to('nowhere')
    assert read_recording(tmp_path / 'bag').imu is not None


@pytest.mark.parametrize('name', ['exp[1]', 'a*', 'b?', '[!c]', 'plain'])
def test_folders_in_patterns_are_taken_literally(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    (folder / 'bag_1').mkdir(parents=True)
    (folder / 'bag[2]').mkdir()
    (tmp_path / 'exp1').mkdir()
    assert match_paths('bag*', folder) == [str(folder / 'bag[2]'), str(folder / 'bag_1')]
    assert match_paths('bag[2]', folder) == [str(folder / 'bag[2]')]
    assert match_paths('none*', folder) == []
    assert match_paths(str(tmp_path / 'exp?'), folder) == [str(tmp_path / 'exp1')]
    assert expand_patterns([str(folder / 'bag[2]'), 'no/*']) == [str(folder / 'bag[2]'), 'no/*']


def test_a_study_file_finds_recordings_beside_it_in_a_folder_with_brackets(tmp_path: Path) -> None:
    folder = tmp_path / 'exp[1]'
    for number in (1, 2):
        write_recording(run_of('line', number), folder / f'line_{number}')
    text = 'title: T\nrecordings: [{path: "line_*"}]\nmodels: {gps: [ch_rw], imu: [chrono]}\n'
    (folder / 'study.yaml').write_text(text + 'judges: [clean]\nuncertainty: {resamples: 200}\n')
    names = [recording.name for recording in StudyFile.read(folder / 'study.yaml').recordings]
    assert names == ['line_1', 'line_2']


def test_a_clock_that_goes_back_is_said_and_not_taken_for_a_missing_topic(
    tmp_path: Path, capsys: Capture
) -> None:
    write_recording(run_of('line', 1), tmp_path / 'bag', storage='csv')
    table = tmp_path / 'bag' / 'imu.csv'
    head, *rows = table.read_text('utf-8').splitlines()
    half = len(rows) // 2
    table.write_text('\n'.join([head, *rows[half:], *rows[:half], '']))
    outcome = call(capsys, 'check', tmp_path / 'bag', '--json')
    assert '"check.unusable"' in outcome.out
    assert 'runs backwards' in outcome.out
    assert '"check.missing"' not in outcome.out
