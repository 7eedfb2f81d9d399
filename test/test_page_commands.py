# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Every command of the tutorial, the how-to pages and the README succeeds.

The commands of a page run in order in a folder of its own, beside the files that it shows. All
pages have the recordings and the result of the tutorial. A block after `<!-- not run: why -->`
needs ROS, Gazebo or much time: its lines must only be understood. howto/extend.md has a test of
its own.
"""

from __future__ import annotations

import contextlib
import glob
import io
import json
import re
import shlex
import shutil
import textwrap
from pathlib import Path

import pytest
from cli_examples import pictures_left_blank
from PIL import Image

from sim2real_eval.cli.main import main
from sim2real_eval.cli.parser import build_parser
from sim2real_eval.study.gate import GatedResult, judge_result
from sim2real_eval.study.options import GateOptions

ROOT = Path(__file__).resolve().parent.parent
TUTORIAL = ROOT / 'docs' / 'tutorial.md'
PAGES = [
    ROOT / 'README.md',
    *(page for page in sorted((ROOT / 'docs' / 'howto').glob('*.md')) if page.stem != 'extend'),
]
_BLOCK = re.compile(
    r'(?:^ *(?P<marker><!-- not run: [^>]+ -->)\n|`(?P<file>[\w/]+\.\w+)`:\n\n)?'
    r'^(?P<indent> *)```(?P<kind>\w+)\n(?P<text>.*?)^(?P=indent)```$',
    re.M | re.S,
)
# Fewer resamples, and no processes: the tests need the commands of the pages and no digits.
_FEW = ['--resamples=100', '--jobs=1']
_ONE = ['--parameters=process_noise_covariance.velocity', '--blocks=6', '--jobs=1']
_SMALL = {
    'vepd': _FEW, 'study': _FEW, 'fit': _FEW, 'compare': ['--jobs=1'], 'tune': _ONE,
    'transfer': [*_ONE, '--tunings=8'],
}  # fmt: skip


def lines_of(text: str) -> list[str]:
    """Return the commands of a block, without comments and with continued lines joined."""
    joined = textwrap.dedent(text).replace('\\\n', ' ')
    found = [re.sub(r'(^|\s)#.*', '', line).strip() for line in joined.splitlines()]
    return [line for line in found if line]


def run(line: str) -> None:
    words = [
        one
        for word in shlex.split(line)
        for one in (sorted(glob.glob(word)) or [word] if '*' in word else [word])  # noqa: PTH207
    ]
    if words[0] == 'cp':
        shutil.copy(*words[1:])
        return
    assert words[0] == 'sim2real', f'mark it as not run: {line}'
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), pictures_left_blank():
        try:
            # A study of signals has no resamples.
            small = ['--jobs=1'] if 'thesis_imu' in words else _SMALL.get(words[1], [])
            status = main([*words[1:], *small])
        except SystemExit as stop:
            status = int(stop.code or 0)
    assert status == 0, f'{line}\n{out.getvalue()}'


def follow(page: Path, folder: Path) -> None:
    """Run the commands of a page in a folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for block in _BLOCK.finditer(page.read_text('utf-8')):
            if block['file']:
                Path(block['file']).write_text(textwrap.dedent(block['text']), 'utf-8')
            elif block['kind'] == 'sh':
                for line in lines_of(block['text']):
                    if not block['marker']:
                        run(line)
                    elif line.startswith('sim2real '):
                        words = shlex.split(line)[1:]
                        build_parser(words[0]).parse_args(words)


@pytest.fixture(scope='module')
def tutorial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the tutorial after all of its commands."""
    folder = tmp_path_factory.mktemp('tutorial')
    follow(TUTORIAL, folder)
    return folder


def test_the_tutorial_produces_a_report(tutorial: Path) -> None:
    assert len(list((tutorial / 'bags').iterdir())) == 6
    assert 'zed_f9p_rtk' in (tutorial / 'result_gps' / 'report.html').read_text('utf-8')


def _numbers(result: Path) -> dict[str, tuple[float, float, float]]:
    """Return VEPD and its interval by model with the default number of resamples.

    The tests run the commands with fewer, on which only intervals depend.
    """
    verdict = judge_result(GatedResult.read(result), GateOptions(max_vepd=1.0))
    numbers = {}
    for case in verdict.cases:
        assert None not in (case.vepd, case.low, case.high)
        numbers[case.cell.model] = (case.vepd, case.low, case.high)
    return numbers


def test_the_picture_of_the_report_has_the_numbers_of_the_tutorial(tutorial: Path) -> None:
    """docs/images/draw_report.py draws it again and writes the numbers into it."""
    with Image.open(ROOT / 'docs' / 'images' / 'report.png') as picture:
        drawn = json.loads(picture.text['VEPD'])
    numbers = _numbers(tutorial / 'result_gps')
    assert drawn.keys() == numbers.keys()
    for model, values in numbers.items():
        assert drawn[model] == pytest.approx(values, abs=5e-4), model


def test_the_text_of_the_tutorial_has_the_numbers_of_its_commands(tutorial: Path) -> None:
    """The ranking of step 4, to the digits that are printed."""
    numbers = _numbers(tutorial / 'result')
    row = re.compile(r'^ +\d (\w+) +(\d\.\d{4})\*? +([\d.]+)-([\d.]+) ', re.M)
    printed = {name: [*map(float, values)] for name, *values in row.findall(TUTORIAL.read_text())}
    assert printed.keys() == numbers.keys()
    for model, values in numbers.items():
        assert printed[model] == pytest.approx(values, abs=1e-3), model


@pytest.mark.parametrize('page', PAGES, ids=lambda page: page.stem)
def test_all_commands_of_a_page_succeed(page: Path, tutorial: Path, tmp_path: Path) -> None:
    (tmp_path / 'bags').symlink_to(tutorial / 'bags')
    # A page that gives the command of the tutorial continues what is finished.
    shutil.copytree(tutorial / 'result', tmp_path / 'result')
    follow(page, tmp_path)
