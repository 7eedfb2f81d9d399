# SPDX-License-Identifier: Apache-2.0
"""Hints for command lines that are nearly right."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from cli_examples import call, write_runs

from sim2real_eval.common import results

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope='module')
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (path,) = write_runs(tmp_path_factory.mktemp('deep') / 'drive', ('drive_line', 1))
    return path


@pytest.mark.parametrize(
    ('options', 'hint'),
    [
        (['--front-edn', 'enu'], 'did you mean --front-end?'),
        (['--correct', 'gravty'], 'did you mean gravity?'),
        (['--latency', '/gps/fix=1', '--latency', 'gps/fix=2'], 'gps/fix is given twice'),
        (['--front-end', 'enu', '--filtered-gps'], 'the front end enu has none'),
        (['--judge', 'error_state'], 'leave --config out'),
    ],
)
def test_a_nearly_right_line_gets_a_hint(
    bag: Path, tmp_path: Path, capsys: Capture, options: list[str], hint: str
) -> None:
    line = ['judge', bag, '--config', 'clean', *options, '--out', tmp_path / 'x.csv']
    try:
        outcome = call(capsys, *line)
        status, text = outcome.status, outcome.err
    except SystemExit as error:
        status, text = int(str(error.code)), capsys.readouterr().err
    assert status == 2
    assert hint in text
    assert not list(tmp_path.iterdir())


def test_a_folder_of_folders_gets_a_hint_at_the_recording(
    bag: Path, tmp_path: Path, capsys: Capture
) -> None:
    line = ['judge', bag.parents[1], '--config', 'clean', '--out', tmp_path / 'x.csv']
    assert f'did you mean {bag}' in call(capsys, *line).complaints[0]


def test_a_xacro_file_gets_a_hint_at_xacro(bag: Path, tmp_path: Path, capsys: Capture) -> None:
    robot = tmp_path / 'a.urdf.xacro'
    robot.write_text('<robot xmlns:xacro="http://ros.org/wiki/xacro"><link name="a"/></robot>')
    line = ['judge', bag, '--config', 'clean', '--transforms', robot, '--out', tmp_path / 'x.csv']
    assert 'run `xacro a.urdf.xacro > robot.urdf` first' in call(capsys, *line).complaints[0]


def test_a_write_error_names_the_final_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, target: Path) -> Path:
        raise PermissionError(13, 'Permission denied', str(self))

    monkeypatch.setattr(Path, 'replace', refuse)
    with pytest.raises(PermissionError) as caught:
        results.write_bytes(tmp_path / 'x.csv', b'')
    assert caught.value.filename == str(tmp_path / 'x.csv')
    assert not list(tmp_path.iterdir())


def test_a_library_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setitem(sys.modules, 'rosbags.rosbag2', None)
    outcome = call(
        capsys, 'simulate', '--motion', 'line', '--duration', 2, '--out', tmp_path / 'x'
    )
    assert outcome.status == 2
    assert outcome.err.endswith('needs the Python package rosbags: pip install rosbags\n')
