# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""docs/howto/extend.md as a newcomer follows it: its package is installed and its commands run."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_examples import Outcome, contents, pictures_left_blank

from sim2real_eval.cli.main import main
from sim2real_eval.recording.reading import read_recording

PAGE = Path(__file__).resolve().parent.parent / 'docs' / 'howto' / 'extend.md'
_BLOCK = re.compile(
    r'(?:^`(?P<file>[\w/.]+)`:\n\n)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$', re.M | re.S
)


def blocks() -> list[tuple[str, str]]:
    """Return the blocks of the page, each with the name of its file or `sh`."""
    matches = _BLOCK.finditer(PAGE.read_text('utf-8'))
    return [(match['file'] or match['kind'], match['text']) for match in matches]


def install(place: Path, *, broken: bool = False) -> None:
    """Write the package and its metadata as `pip install --target` does."""
    for name, text in blocks():
        if name != 'sh':
            target = place / name
            target.parent.mkdir(exist_ok=True)
            target.write_text(text)
    entry_points = r"^\[project\.entry-points\.'(.*?)'\]\n((?:\w+ = '.*'\n)+)"
    groups = re.findall(entry_points, (place / 'pyproject.toml').read_text(), re.M)
    assert len(groups) == 6
    lines = ''.join(f'[{group}]\n{entries}\n'.replace("'", '') for group, entries in groups)
    if broken:
        lines = lines.replace('robot_extras.', 'robot_extras.gone.')
    info = place / 'robot_extras-1.0.dist-info'
    info.mkdir()
    (info / 'METADATA').write_text('Metadata-Version: 2.1\nName: robot-extras\nVersion: 1.0\n')
    (info / 'entry_points.txt').write_text(lines)


@contextlib.contextmanager
def inside(place: Path) -> Iterator[None]:
    """Change to a folder and import packages from it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.syspath_prepend(place)
        patch.setenv('COLUMNS', '150')
        yield
    for name in [name for name in sys.modules if name.split('.')[0] == 'robot_extras']:
        del sys.modules[name]


def command(line: str) -> Outcome:
    """Run a line of the page in this process."""
    words = shlex.split(line)
    alone = ['--jobs', '1'] if words[1] in ('study', 'vepd') else []
    assert words[0] == 'sim2real'
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pictures_left_blank():
        try:
            status = main([*words[1:], *alone])
        except SystemExit as stop:
            status = int(stop.code or 0)
    return Outcome(status, out.getvalue(), err.getvalue())


@pytest.fixture(scope='module')
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder after all commands of the page."""
    place = tmp_path_factory.mktemp('newcomer')
    install(place)
    with inside(place):
        for name, text in blocks():
            for line in text.splitlines() if name == 'sh' else []:
                done = command(line)
                assert done.status == 0, f'{line}\n{done.out}\n{done.err}'
    return place


def test_the_example_imu_and_coil_have_the_noise_of_their_parameters(place: Path) -> None:
    # Standard deviations of > 240 normal numbers are off by a fifth once in 100,000 draws.
    shaky = read_recording(place / 'shaky' / 'circle_1').require('imu')
    still = shaky.angular_velocity[:, :2]
    assert float(still.std()) == pytest.approx(0.01, rel=0.2)
    coil = read_recording(place / 'coiled' / 'circle_1').messages['/coil/data']
    assert len(coil) == 81
    assert float(coil.magnetic_field.std()) == pytest.approx(1e-6, rel=0.2)


def test_the_example_gps_has_the_error_of_its_parameters(place: Path) -> None:
    east = {}
    for name in ('near', 'far', 'file'):
        fixes = read_recording(place / name / 'circle_1').require('gps')
        east[name] = float(fixes.longitude[0])
    metres = 6378137.0 * 0.7304 * 3.14159265 / 180  # at 43 degrees north
    assert (east['far'] - east['near']) * metres == pytest.approx(18.0, rel=0.01)
    assert east['file'] == east['near']


def test_a_judge_selected_by_name_equals_the_one_selected_by_file(place: Path) -> None:
    assert contents(place / 'estimate') == contents(place / 'from_file_estimate')
    record = json.loads((place / 'study' / 'study.json').read_text())
    judges = {judge['label']: judge for judge in record['judges']}
    assert judges['fix_filter']['package'] == 'robot-extras 1.0'
    assert 'class FixFilter' in judges['from_file']['files'][0]['text']
    assert record['failures'] == []


def test_the_example_metric_appears_in_the_tables(place: Path) -> None:
    with (place / 'study' / 'metrics.csv').open() as file:
        rows = [row for row in csv.DictReader(file) if row['metric'] == 'worst error']
    assert {row['unit'] for row in rows} == {'m/s'}
    # Once by its name and once by its file, for two judges, two models, line, shuttle and both.
    assert len(rows) == 2 * 2 * 2 * 3
    assert all(float(row['distance']) >= 0.0 for row in rows)


def test_a_package_that_cannot_be_imported_leaves_other_commands_usable(tmp_path: Path) -> None:
    install(tmp_path, broken=True)
    with inside(tmp_path):
        assert command('sim2real --help').status == 0
        assert command('sim2real count x').status == 2
        assert command('sim2real models').status == 0


def test_an_exception_of_a_judge_is_reported_with_its_line(tmp_path: Path) -> None:
    (tmp_path / 'mine.py').write_text(
        'class Fails:\n    def judge(self, recording):\n        raise KeyError("no")\n'
    )
    with inside(tmp_path):
        command('sim2real simulate --motion circle --duration 3 --out runs')
        done = command('sim2real judge runs/circle_1 --judge mine.py:Fails --out e')
        assert done.status == 2
        assert 'mine.py:3' in done.err
