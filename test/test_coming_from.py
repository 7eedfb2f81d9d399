# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Each line of docs/howto/coming_from.md works, and other tools open what it writes."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cli_examples import pictures_left_blank
from rosbags.highlevel import AnyReader

import sim2real_eval as s2r
from sim2real_eval.cli.main import main

pandas = pytest.importorskip('pandas')

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / 'docs' / 'howto' / 'coming_from.md'
ROW = re.compile(
    r'^\| [^|]+ \| [^|]+ \| `(?P<line>[^`]+)`(?P<not_run> <!-- not run:[^>]+-->)? \|$', re.M
)
LINES = [match['line'] for match in ROW.finditer(PAGE.read_text('utf-8')) if not match['not_run']]

SENSORS = {'/imu/data', '/gps/fix', '/ground_truth/odometry'}
ESTIMATES = {'/truth/odometry', '/estimate/odometry', '/error/speed'}


def run(line: str) -> object:
    """Run a command, or return the value of a line of Python."""
    words = shlex.split(line)
    if words[0].startswith('evo_'):
        subprocess.run([Path(sys.executable).parent / words[0], *words[1:]], check=True)
        return None
    if words[0] != 'sim2real':
        return eval(line, {'s2r': s2r, 'pandas': pandas})
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), pictures_left_blank():
        status = main(words[1:])
    assert status == 0, f'{line}\n{out.getvalue()}'
    return None


@pytest.fixture(scope='module')
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two recordings, a result, and estimate and truth of the first recording as TUM files."""
    folder = tmp_path_factory.mktemp('coming_from')
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        sensors = '--gps zed_f9p_rtk --imu airsim'
        run(f'sim2real simulate --motion drive_circle --runs 2 {sensors} --out bags')
        few = '--resamples 100 --jobs 1 --out result'
        run(f'sim2real vepd bags/circle_1 bags/circle_2 --models ch_rw {few}')
        run('sim2real judge bags/circle_1 --tum --out judged')
    truth = s2r.read_recording(folder / 'bags' / 'circle_1').truth
    assert truth is not None
    rows = np.column_stack([truth.stamp_ns / 1e9, truth.position, truth.orientation])
    np.savetxt(folder / 'bags' / 'drive.tum', rows, fmt='%.9f')
    return folder


@pytest.fixture
def folder(inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with copies of the inputs, in which the command runs."""
    shutil.copytree(inputs, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def opened(bag: Path) -> set[str]:
    """Return the topics of a bag whose messages rosbags can read."""
    with AnyReader([bag]) as reader:
        return {
            connection.topic
            for connection, _, data in reader.messages()
            if reader.deserialize(data, connection.msgtype) is not None
        }


def described(file: Path) -> set[str]:
    """Return the topics of an MCAP file that a viewer without ROS can show."""
    mcap = pytest.importorskip('mcap.reader', reason='pip install mcap')
    with file.open('rb') as stream:
        return {
            channel.topic
            for schema, channel, message in mcap.make_reader(stream).iter_messages()
            if schema.encoding == 'ros2msg' and schema.data and message.data
        }


def test_the_page_has_a_line_for_each_tool() -> None:
    text = PAGE.read_text('utf-8')
    rows = re.findall(r'^\| (?!you know|---)([^|]+) \|', text, re.M)
    assert {'evo', 'rosbags', 'PlotJuggler', 'Foxglove', 'pandas'} <= set(rows)
    assert len(rows) == len(ROW.findall(text))


@pytest.mark.parametrize('line', LINES)
def test_a_line_of_the_table_works(line: str, folder: Path) -> None:
    if line.startswith('evo_') and importlib.util.find_spec('evo') is None:
        pytest.skip('pip install evo')
    if line.endswith('--out judged'):
        shutil.rmtree(folder / 'judged')
    before = set(folder.rglob('*'))
    value = run(line)
    files = [path for path in folder.rglob('*') if path not in before]
    if value is not None:
        # The estimate of a series has fewer samples than the truth, whose columns are longer.
        assert np.isfinite(np.asarray(value, dtype=np.float64)).any()
    elif 'check' not in line and not line.startswith('evo_'):
        assert check_files(files) > 0


def check_files(files: list[Path]) -> int:
    """Open files as other tools do; return their number."""
    checked = 0
    for file in files:
        if file.name == 'metadata.yaml':
            topics = opened(file.parent)
            assert topics >= SENSORS or topics >= ESTIMATES
        elif file.suffix == '.mcap':
            topics = described(file)
            assert topics >= SENSORS or topics >= ESTIMATES
        elif file.suffix == '.csv':
            assert pandas.read_csv(file).stamp_ns.is_monotonic_increasing
        else:
            continue
        checked += 1
    return checked
