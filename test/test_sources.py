# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""docs/sources.md: complete, written from its rows, and every line of it works.

Commands run in small form here; `benchmarks/sources.py` runs them in full.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from test_page_commands import run

ROOT = Path(__file__).resolve().parent.parent
sys.path += [str(ROOT / 'benchmarks'), str(ROOT / 'docs')]

import sources  # noqa: E402
from writers.blocks import arguments  # noqa: E402

DOCUMENTS = sources.documents()
FIGURES = json.loads(sources.FIGURES.read_text(encoding='utf-8'))
_ROMAN = {'I': '1', 'II': '2', 'III': '3'}
_RANGE = re.compile(r'(\d+(?:\.\d+)?|I+)(?: to (\d+(?:\.\d+)?|I+))?')


def numbers(text: str) -> set[str]:
    """Return the numbers of lists such as `3.1 to 3.4, 3.6` or `I, II`."""
    found: set[str] = set()
    for first, last in _RANGE.findall(text):
        first, last = (_ROMAN.get(one, one) for one in (first, last or first))
        chapter, _, begin = first.rpartition('.')
        end = last.rpartition('.')[2]
        dot = f'{chapter}.' if chapter else ''
        found |= {f'{dot}{number}' for number in range(int(begin), int(end) + 1)}
    return found


def test_lists_of_numbers_are_understood() -> None:
    assert numbers('3.9 to 3.11, 4.2') == {'3.9', '3.10', '3.11', '4.2'}
    assert numbers('I, II') == numbers('1 to 2') == {'1', '2'}


def test_the_page_is_written_from_the_rows() -> None:
    written = sources.PAGE.read_text(encoding='utf-8')
    assert written == sources.page(FIGURES), 'run benchmarks/sources.py --write'
    assert [one.key for one in DOCUMENTS] == sorted(re.findall(r'<!-- source: (\w+)', written))


@pytest.mark.parametrize('document', DOCUMENTS, ids=lambda one: one.key)
def test_every_figure_table_and_equation_has_a_line(document: sources.Document) -> None:
    for kind, wanted in document.numbered.items():
        listed = [
            part
            for row in document.rows
            for part in re.findall(rf'{kind}s? ((?:[\d.I]+(?:, | to )?)+)', row.where, re.I)
        ]
        missing = numbers(wanted) - set().union(*map(numbers, listed))
        assert not missing, f'{kind}: {sorted(missing)}'


@pytest.mark.parametrize('document', DOCUMENTS, ids=lambda one: one.key)
def test_every_number_was_compared_and_each_difference_is_explained(
    document: sources.Document,
) -> None:
    found = FIGURES['figures'][document.key]
    for name, one in sources.numbers_of(document).items():
        assert one.is_met(found[name]) or one.reason, f'{name}: {found[name]}'


@pytest.mark.parametrize('document', DOCUMENTS, ids=lambda one: one.key)
def test_every_line_works(
    document: sources.Document, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = set()
    for row in document.rows:
        assert row.command or row.python or row.missing, row.where
        sources.run_python(row)
        for line in row.commands:
            if line not in done:
                run_small(line, row.small)
                done.add(line)
        if not (row.is_live or row.is_script):
            missing = [name for name in row.files if not (tmp_path / name).exists()]
            assert not missing, row.where
            for number in row.numbers:
                number.read(tmp_path)


def run_small(line: str, given: str | dict[str, str]) -> None:
    words = shlex.split(line)
    small = given if isinstance(given, str) else given.get(words[1], '')
    if words[0] == 'ros2':
        names = {word.partition(':=')[0] for word in words if ':=' in word}
        assert words[:3] == ['ros2', 'launch', 'sim2real_sensors']
        assert names <= {*arguments(words[3])}, line
    elif words[0] == 'python':
        if small:
            subprocess.run([*sources.words_of(line, Path.cwd()), *shlex.split(small)], check=True)
        assert (ROOT / words[1]).exists()
    else:
        run(f'{line} {small}')
