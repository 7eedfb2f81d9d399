# SPDX-License-Identifier: Apache-2.0
"""Killed at any change of the file system, nothing is lost, half-written or left over."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_examples import contents
from killed_verbs import VERBS
from killing import FAULTS, in_process, killer

from sim2real_eval.common.results import check_result_files, fresh_files, fresh_folder
from sim2real_eval.common.tables import write_json

NAMES = ('table.csv', 'plot.png', 'mark.json')


def _files(out: Path, text: str) -> None:
    """Write some of the files that are ours, as a verb does whose results lie beside others."""
    check_result_files(out, NAMES, overwrite=True)
    with fresh_files(out, NAMES, overwrite=True) as folder:
        for name in NAMES if text == 'older' else NAMES[1:]:
            (folder / name).write_text(text)


def _folder(out: Path, text: str) -> None:
    """Write a folder as a whole."""
    with fresh_folder(out, NAMES[-1], overwrite=True, older=lambda record: NAMES) as folder:
        write_json(folder / NAMES[-1], text)
        for name in NAMES[:-1] if text == 'older' else NAMES[1:-1]:
            (folder / name).write_text(text)


@pytest.mark.parametrize('write', [_files, _folder], ids=['files', 'folder'])
@pytest.mark.parametrize(
    ('number', 'is_there'),
    [(signal.SIGKILL, False), (signal.SIGKILL, True), (signal.SIGINT, True)],
    ids=['new', 'overwritten', 'overwritten-interrupted'],
)
def test_results_are_whole_whenever_their_command_is_killed(
    tmp_path: Path, write: Callable[[Path, str], None], is_there: bool, number: signal.Signals
) -> None:
    """Ended before each of its changes in turn, and given again, until it is not ended."""
    status, at, whole = -1, 0, contents_of(tmp_path / 'whole', write, is_there=is_there)
    while status:
        at += 1
        out = tmp_path / str(at) / 'out'
        prepare(out, write, is_there=is_there)
        before = contents(out.parent)
        status = in_process(lambda out=out: write(out, 'newer') or 0, at, fault=number)
        if number == signal.SIGINT:
            # Ctrl-C leaves nothing to whoever comes next.
            assert contents(out.parent) in (before, whole), f'interrupted before change {at}'
        write(out, 'newer')
        assert contents(out.parent) == whole, f'killed before change {at}'
    assert at > 10


def prepare(out: Path, write: Callable[[Path, str], None], *, is_there: bool) -> None:
    """Make a place with, or without, an older result and what others have put into it."""
    out.parent.mkdir()
    if is_there:
        write(out, 'older')
        (out / 'theirs.txt').write_text('theirs')


def contents_of(
    folder: Path, write: Callable[[Path, str], None], *, is_there: bool
) -> dict[str, bytes]:
    prepare(folder / 'out', write, is_there=is_there)
    write(folder / 'out', 'newer')
    found = contents(folder)
    assert ('out/theirs.txt' in found) == is_there
    assert 'out/table.csv' not in found
    return found


def test_a_command_that_a_fault_ended_and_is_given_again_ends_as_if_nothing_had_been() -> None:
    """Of a killed process, of a full disk, of one that is read-only; `make fuzz` does a hundred
    faults, of all verbs.
    """
    verb, rng = VERBS[0], random.Random(5)
    with killer((verb,)) as place:
        for fault in (signal.SIGKILL, *FAULTS[2:]):
            assert not place.kill(verb, rng, (fault,))
