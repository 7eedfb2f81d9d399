# SPDX-License-Identifier: Apache-2.0
"""Notes of many runs as few lines: those that differ in numbers only become one with ranges."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence

from sim2real_eval.common.findings import Told, Weight, by_weight, weight_of
from sim2real_eval.judge.robot_localization.advice import RUNS_AWAY
from sim2real_eval.metrics.series_folder import REAL

__all__ = ['merge_notes', 'notes_of_models']

# Numbers that stand alone, or before an x (3x): not the 0 of imu0, nor parts of names.
_NUMBER = re.compile(r'(?<![\w.-])-?\d+(?:\.\d+)?(?:e[+-]\d+)?(?=x?(?![\w.]*\w))')


@dataclasses.dataclass
class _Group:
    counts: dict[str, int]
    numbers: list[list[str]]
    weight: Weight = Weight.ROUTINE


def merge_notes(runs: Iterable[tuple[str, Sequence[str]]]) -> list[str]:
    """Merge the notes of runs.

    Parameters
    ----------
    runs : iterable of (kind, notes)
        Kind of each run, such as `real` or `simulated`, and its notes.

    Returns
    -------
    list of str
        Each kind of note once, the weightiest first, else in order of first appearance: how many
        runs of which kind it concerns, and its text, with the range of every number that varies.

    Examples
    --------
    >>> merge_notes([('real', ['lost 3 of 10']), ('real', ['lost 5 of 10'])])
    ['2 of 2 real runs: lost 3 to 5 of 10']
    """
    totals: dict[str, int] = {}
    groups: dict[tuple[str, ...], _Group] = {}
    for kind, notes in runs:
        totals[kind] = totals.get(kind, 0) + 1
        counted: set[tuple[str, ...]] = set()
        for note in dict.fromkeys(notes):
            found = _NUMBER.findall(note)
            texts = tuple(_NUMBER.split(note))
            group = groups.setdefault(texts, _Group({}, [[] for _ in found]))
            group.weight = min(group.weight, weight_of(note))
            if texts not in counted:
                group.counts[kind] = group.counts.get(kind, 0) + 1
                counted.add(texts)
            for slot, number in zip(group.numbers, found, strict=True):
                slot.append(number)
    lines: list[str] = []
    for texts, group in groups.items():
        ranges = [_range(slot) for slot in group.numbers]
        text = ''.join(part for pair in zip(texts, [*ranges, ''], strict=True) for part in pair)
        who = ' and '.join(
            f'{count} of {totals[kind]} {kind} runs' for kind, count in group.counts.items()
        )
        lines.append(Told(f'{who}: {text}', group.weight))
    return by_weight(lines)


def notes_of_models(runs: Iterable[tuple[str, Sequence[str]]]) -> list[str]:
    """Merge the notes of runs of several models, real ones apart.

    Parameters
    ----------
    runs : iterable of (model, notes)
        Model of each run, or `real`, and its notes.

    Returns
    -------
    list of str
        As from `merge_notes`. Which estimates run away is a matter of the model, which is named.
    """
    runs = list(runs)
    merged = merge_notes(
        (
            'real' if model == REAL else 'simulated',
            [note for note in notes if not note.startswith(RUNS_AWAY)],
        )
        for model, notes in runs
    )
    away = merge_notes(
        (
            'real' if model == REAL else f'simulated {model}',
            [note for note in notes if note.startswith(RUNS_AWAY)],
        )
        for model, notes in runs
    )
    return by_weight([*merged, *away])


def _range(numbers: Sequence[str]) -> str:
    low, high = min(numbers, key=float), max(numbers, key=float)
    return low if low == high else f'{low} to {high}'
