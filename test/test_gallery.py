# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""docs/gallery.md: its commands are understood, and docs/gallery.py finds a wrong number.

`make docs` runs the commands, which takes minutes.
"""

from __future__ import annotations

import importlib
import shlex
from pathlib import Path
from types import ModuleType

import pytest

from sim2real_eval.cli.parser import build_parser

TABLE = 'model,scenario,vepd\nch_rw,all,0.0351\nch_rw,line,0.5\n'
COMMENT = '<!-- 0.035 demo/vepd.csv?model=ch_rw&scenario=all#vepd -->'


@pytest.fixture
def gallery(repository: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(repository / 'docs')
    monkeypatch.syspath_prepend(repository / 'benchmarks')
    return importlib.import_module('gallery')


def test_each_section_has_a_report_commands_and_numbers(gallery: ModuleType) -> None:
    sections = gallery.sections()
    assert len(sections) == len(gallery.REPORTS) == 5
    for section, name in zip(sections, gallery.REPORTS, strict=True):
        assert f'src="gallery/{name}.png"' in section
        assert len(gallery.NUMBER.findall(section)) >= 5


def test_the_commands_are_understood(gallery: ModuleType) -> None:
    lines = [line for section in gallery.sections() for line in gallery.commands(section)]
    assert len(lines) >= 8
    for line in lines:
        words = shlex.split(line)
        assert words[0] == 'sim2real'
        build_parser(words[1]).parse_args(words[1:])


@pytest.mark.parametrize(
    ('text', 'count'),
    [
        (f'VEPD is 0.035.\n\n{COMMENT}\n', 0),
        # Not in the text; not that of the results; neither.
        (f'VEPD is 0.0355.\n\n{COMMENT}\n', 1),
        (f'VEPD is 0.039.\n\n{COMMENT.replace("0.035", "0.039")}\n', 1),
        (f'VEPD is small.\n\n{COMMENT.replace("0.035", "0.039")}\n', 2),
    ],
)
def test_a_number_must_be_that_of_the_results(
    text: str, count: int, gallery: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / 'demo').mkdir()
    (tmp_path / 'demo' / 'vepd.csv').write_text(TABLE)
    assert len(gallery.wrong_numbers(text, tmp_path)) == count
