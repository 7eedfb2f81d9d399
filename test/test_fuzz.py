# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Readers take what they are given or refuse it in one line; `make fuzz` asks for longer."""

from __future__ import annotations

import pytest
from fuzzing import fuzz

from sim_sensors.core.config_files import parse_yaml
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.parameters import LARGEST, parse_number


def test_readers_refuse_mutated_inputs_without_a_traceback() -> None:
    """The inputs are always the same; the number depends on the machine."""
    counts, problems = fuzz(60.0, seed=17)
    assert problems == []
    assert len(counts) > 20


@pytest.mark.parametrize(
    'text',
    [
        'a: !!timestamp 1',
        '!!int ""',
        'seed: ' + '9' * 400,
        'a: &a [*a]',
        'a: &a {b: 1, <<: *a}',
        '[' * 600,
        'a: ' + '1:' * 90_000 + '1',
    ],
)
def test_invalid_yaml_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(ParameterError) as caught:
        parse_yaml(text, 'a.yaml')
    assert '\n' not in str(caught.value)


@pytest.mark.parametrize(
    'entry', ['[{0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}]', '{{<<: [{0}, {0}, {0}, {0}]}}']
)
def test_a_yaml_bomb_is_refused_before_it_is_expanded(entry: str) -> None:
    levels = [f'a{k}: &a{k} {entry.format(f"*a{k - 1}")}' for k in range(1, 40)]
    with pytest.raises(ParameterError, match='100000 values'):
        parse_yaml('\n'.join(['a0: &a0 {x: 1}', *levels]), 'bomb.yaml')


@pytest.mark.parametrize(
    'value', [1e300, -1e16, 10**400, '1_000', '1' * 100_000 + 'x', '١٢', float('nan'), True, None]
)
def test_absurd_numbers_are_refused(value: object) -> None:
    assert parse_number(value) is None
    assert parse_number(LARGEST) == LARGEST
    assert parse_number('1e-3') == 1e-3
