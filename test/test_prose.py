# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""docs/prose.py finds what the style of the project forbids, and nothing in code."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip('proselint', reason='no linter of prose: pip install proselint')


def words(count: int) -> str:
    return ' '.join(f'word{number}' for number in range(count))


LONG = f'{words(31)}.'


@pytest.fixture
def rules(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], list[tuple[int, str]]]:
    """Return a function that lists line and rule of the findings in a page."""
    monkeypatch.syspath_prepend(repository / 'docs')
    prose = importlib.import_module('prose')
    prose.register()

    def found(text: str) -> list[tuple[int, str]]:
        return [
            (line, message.rpartition('(')[2].rstrip(')'))
            for line, message in prose.findings(text)
        ]

    return found


@pytest.mark.parametrize(
    ('text', 'rule'),
    [
        (f'# Head\n\n{LONG}\n', 'project.long'),
        (f'A short one.\n\n- {LONG}\n', 'project.long'),
        ('A page.\n\nWhat is left out is counted.\n', 'project.inverted'),
        ('A page.\n\n1. **Of** so large a distance nobody knows.\n', 'project.inverted'),
        ('A page.\n\nThe file has three things.\n', 'project.vague'),
        ('A page.\n\nThe the file is read.\n', 'lexical_illusions'),
    ],
)
def test_a_fault_is_found_in_its_line(
    text: str, rule: str, rules: Callable[[str], list[tuple[int, str]]]
) -> None:
    assert rules(text) == [(3, rule)]


@pytest.mark.parametrize(
    'text',
    [
        'Every file is read.\n\nWhat does it cost?\n',
        f'```sh\n{LONG}\n```\n',
        f'| {LONG} |\n',
        f'<!-- models: imu -->\n{LONG}\n<!-- end -->\n',
        f'[Link](https://{LONG.replace(" ", "/")})\n',
        'The option `--of ' + 'x ' * 40 + '` is one word.\n',
        f'{words(20)}:\n\n- {words(20)}\n',
    ],
)
def test_code_tables_and_short_sentences_pass(
    text: str, rules: Callable[[str], list[tuple[int, str]]]
) -> None:
    assert rules(text) == []
