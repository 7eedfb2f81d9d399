# SPDX-License-Identifier: Apache-2.0
"""Readers take what they are given or refuse it in one line; `make fuzz` asks for longer."""

from __future__ import annotations

import random
import re

import pytest
from fuzzing import changed, fuzz

from sim_sensors.core import config_files
from sim_sensors.core.config_files import parse_yaml
from sim_sensors.core.errors import ParameterError, Sim2RealError
from sim_sensors.core.parameters import LARGEST, number_of


def test_no_changed_input_breaks_a_reader() -> None:
    """Always the same inputs, as far as a machine comes within a minute."""
    counts, problems = fuzz(60.0, seed=17)
    assert problems == []
    assert len(counts) > 20


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('a: !!timestamp 1', "line 1, column 4: not valid YAML: '1' is no timestamp"),
        ('!!int ""', "'' is no int"),
        ('seed: ' + '9' * 400, 'has more than 64 bits'),
        ('a: &a [*a]', 'refers to itself'),
        ('a: &a {b: 1, <<: *a}', 'refers to itself'),
        ('[' * 600, 'is nested too deeply'),
        ('a: ' + '1:' * 90_000 + '1', 'a number of more than 400 characters'),
    ],
)
def test_what_yaml_cannot_hold_is_refused_in_one_line(text: str, words: str) -> None:
    with pytest.raises(ParameterError, match=re.escape(words)):
        parse_yaml(text, 'a.yaml')


def test_more_values_than_anybody_writes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config_files, '_MOST_VALUES', 1000)
    assert len(parse_yaml('[' + '0,' * 999 + ']', 'a.yaml')) == 999
    with pytest.raises(ParameterError, match='holds more than 1000 values'):
        parse_yaml('[' + '0,' * 1000 + ']', 'a.yaml')


@pytest.mark.parametrize(
    'entry', ['[{0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}]', '{{<<: [{0}, {0}, {0}, {0}]}}']
)
def test_aliases_that_stand_for_too_much_are_refused_before_they_are_made(entry: str) -> None:
    """Each level of a bomb multiplies the one before; a few hundred bytes would fill a disk."""
    levels = [f'a{k}: &a{k} {entry.format(f"*a{k - 1}")}' for k in range(1, 40)]
    with pytest.raises(ParameterError, match='holds more than 100000 values'):
        parse_yaml('\n'.join(['a0: &a0 {x: 1}', *levels]), 'bomb.yaml')
    assert parse_yaml('a: &a {x: 1}\nb: *a\nc: {<<: *a, y: 2}', 'fine.yaml')['c'] == {
        'x': 1,
        'y': 2,
    }


@pytest.mark.parametrize(
    'value', [1e300, -1e16, 10**400, '1_000', '1' * 100_000 + 'x', '١٢', float('nan'), True, None]
)
def test_numbers_that_no_quantity_has_are_none(value: object) -> None:
    assert number_of(value) is None
    assert number_of(LARGEST) == LARGEST
    assert number_of('1e-3') == 1e-3


def test_an_error_is_one_printable_line_whatever_it_quotes() -> None:
    quoted = 'x' * 1_000_000 + '\n\x1b[31m' + ' y' * 500_000
    text = str(ParameterError('a.yaml', 'rate', f'{quoted} is not allowed; must be a number'))
    assert text.isprintable()
    assert len(text) < 2100
    assert text.startswith('a.yaml: rate: xxx')
    assert text.endswith('must be a number')
    assert str(Sim2RealError('a plain sentence')) == 'a plain sentence'


def test_changes_are_changes() -> None:
    rng = random.Random(1)
    data = b'rate: 10\nstd: [1, 2, 3]\n'
    assert len({changed(data, rng) for _ in range(200)} - {data}) > 150
