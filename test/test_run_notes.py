# SPDX-License-Identifier: Apache-2.0
"""Many notes become few without losing a kind, a count or the ends of a range."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sim2real_eval.judge.robot_localization.advice import motion_advice
from sim2real_eval.study.run_notes import merge_notes, notes_of_models

WORDS = st.sampled_from(['lost', 'imu0', 'x', 'of', 'gap', 'v2.1-beta', '/gps/fix', '(-1)', '3x:'])
NOTES = st.lists(st.lists(WORDS, min_size=1, max_size=4).map(' '.join), max_size=4)
RUNS = st.lists(st.tuples(st.sampled_from(['real', 'simulated']), NOTES), max_size=8)
NUMBERS = st.lists(
    st.integers(-999, 999) | st.decimals(-99, 99, places=2).map(float), min_size=1, max_size=8
)


def test_numbers_become_ranges_and_runs_are_counted_by_kind() -> None:
    assert merge_notes(
        [
            ('real', ['lost 3 of 10', 'odd']),
            ('real', ['lost 12 of 10']),
            ('simulated', ['lost 5.5 of 10']),
            ('simulated', []),
        ]
    ) == [
        '2 of 2 real runs and 1 of 2 simulated runs: lost 3 to 12 of 10',
        '1 of 2 real runs: odd',
    ]


def test_numbers_in_names_are_no_numbers() -> None:
    """imu0 and imu1 are two sensors, odometry/filtered_2 and v1.2.3 are names."""
    texts = ['imu0 is lost', 'imu1 is lost', 'use v1.2.3', 'use v1.2.4', 'run_2', 'run_3']
    assert merge_notes([('real', texts)]) == [f'1 of 1 real runs: {text}' for text in texts]


def test_counts_before_an_x_are_numbers() -> None:
    merged = merge_notes([('real', ['refused (4x)']), ('real', ['refused (17x)'])])
    assert merged == ['2 of 2 real runs: refused (4 to 17x)']


def test_a_run_that_says_it_twice_counts_once() -> None:
    assert merge_notes([('real', ['gap of 3 s', 'gap of 5 s'])]) == [
        '1 of 1 real runs: gap of 3 to 5 s'
    ]


def test_no_runs_no_notes() -> None:
    assert merge_notes([]) == []
    assert merge_notes([('real', []), ('simulated', ())]) == []


@settings(deadline=None, max_examples=200)
@given(NUMBERS)
def test_range_holds_every_number_and_both_ends_occurred(numbers: list[float]) -> None:
    (line,) = merge_notes([('real', [f'off by {number} m']) for number in numbers])
    found = re.fullmatch(r'(\d+) of \1 real runs: off by (\S+?)(?: to (\S+))? m', line)
    assert found is not None
    assert int(found[1]) == len(numbers)
    low, high = float(found[2]), float(found[3] or found[2])
    assert (low, high) == (min(numbers), max(numbers))


@settings(deadline=None, max_examples=200)
@given(RUNS)
def test_runs_of_equal_notes_merge_to_those_notes(runs: list[tuple[str, list[str]]]) -> None:
    """Notes without differing numbers: each text once, in order, counted over runs, not copies."""
    lines = merge_notes(runs)
    texts = list(dict.fromkeys(note for _, notes in runs for note in notes))
    assert [line.split(': ', 1)[1] for line in lines] == texts
    for text, line in zip(texts, lines, strict=True):
        for kind in ('real', 'simulated'):
            total = sum(1 for other, _ in runs if other == kind)
            having = sum(1 for other, notes in runs if other == kind and text in notes)
            said = f'{having} of {total} {kind} runs'
            assert (said in line.split(': ', 1)[0]) == (having > 0)


@settings(deadline=None, max_examples=100)
@given(RUNS, st.randoms())
def test_order_of_the_runs_changes_no_line(
    runs: list[tuple[str, list[str]]], random: object
) -> None:
    """Neither counts nor ranges depend on it; only which line and which kind comes first does."""
    shuffled = list(runs)
    random.shuffle(shuffled)  # type: ignore[attr-defined]

    def said(lines: list[str]) -> dict[str, frozenset[str]]:
        split = (line.split(': ', 1) for line in lines)
        return {text: frozenset(who.split(' and ')) for who, text in split}

    assert said(merge_notes(runs)) == said(merge_notes(shuffled))


@settings(deadline=None, max_examples=200)
@given(st.lists(st.text(max_size=30), max_size=5))
def test_any_text_passes(texts: list[str]) -> None:
    lines = merge_notes([('real', texts)])
    assert len(lines) <= len(set(texts))
    assert all(line.startswith('1 of 1 real runs: ') for line in lines)


def test_numbers_with_exponents_are_merged() -> None:
    notes = ['reaches 1.2e+05 m/s', 'reaches 3e+04 m/s', 'reaches 99 m/s']
    assert merge_notes(('real', [note]) for note in notes) == [
        '3 of 3 real runs: reaches 99 to 1.2e+05 m/s'
    ]


def away(speed: float) -> list[str]:
    """What is said of an estimate that reaches `speed` m/s within 2 s and jumps on the way."""
    stamps = np.arange(3, dtype=np.int64) * 1_000_000_000
    line = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [speed, 0.0, 0.0]])
    return motion_advice(stamps, line, line)


def test_of_estimates_that_run_away_the_models_are_told_and_other_notes_are_merged() -> None:
    """Which model it is decides; one that does not run away is not named."""
    runs = [
        (model, ['lost 3 of 10', *(away(speed * number) if speed else [])])
        for model, speed in (('real', 0.0), ('ch_rw', 0.0), ('airsim', 500.0), ('mine', 9e4))
        for number in (1, 2)
    ]
    told = notes_of_models(runs)
    who = '2 of 2 simulated airsim runs and 2 of 2 simulated mine runs: the estimated '
    # What decides comes first.
    assert told[0].startswith(f'{who}speed exceeds 100 m/s')
    assert told[0].endswith('reaches 500 to 1.8e+05 m/s')
    assert told[1].startswith(f'{who}position jumps 1 times')
    assert told[2:] == ['2 of 2 real runs and 6 of 6 simulated runs: lost 3 of 10']


def test_real_estimates_that_run_away_are_called_real() -> None:
    (fast, _, other) = notes_of_models([('real', away(800.0)), ('ch_rw', ['odd'])])
    assert fast.startswith('1 of 1 real runs: the estimated speed exceeds')
    assert other == '1 of 1 simulated runs: odd'
