# SPDX-License-Identifier: Apache-2.0
"""Copies of a drive are reported unless they are of one block."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from cli_examples import call
from study_file_examples import small_plan

from sim2real_eval.recording.writing import write_recording
from sim2real_eval.study.outcome import find_copies
from sim2real_eval.study.runner import run_study

pytestmark = pytest.mark.usefixtures('blank_pictures')


def test_a_copy_of_a_drive_is_reported_unless_it_is_of_one_block(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, *_ = small_plan(tmp_path).recordings
    for recording in (first, second):
        write_recording(recording.read(), tmp_path / recording.name)
    shutil.copytree(tmp_path / first.name, tmp_path / 'again')
    paths = [str(tmp_path / name) for name in (first.name, second.name, 'again')]
    checked = call(capsys, 'check', *paths, '--json')
    assert checked.status == 1
    findings = json.loads(checked.out)['findings']
    (copies,) = [finding for finding in findings if finding['code'] == 'study.copies']
    assert copies['words']['names'] == f'{paths[0]}, {paths[2]}'
    for block in ('', 'one'):
        common = {'block': block} if block else {}
        recordings = [{'path': path, 'name': Path(path).name, **common} for path in paths]
        plan = small_plan(tmp_path, {'recordings': recordings, 'seed': 3})
        notes = run_study(plan, tmp_path / f'out{block}').record['notes']
        names = [note['words']['names'] for note in notes if note['code'] == 'study.copies']
        assert names == ([] if block else [f'{first.name}, again'])


def test_only_recordings_of_one_block_may_be_equal() -> None:
    numbers = {'a': 0.1, 'b': 0.1, 'c': 0.2}
    for blocks, count in (
        ({}, 1),
        ({'a': 'one', 'b': 'one'}, 0),
        ({'a': 'one', 'b': 'two'}, 1),
        ({'a': 'one'}, 1),
        ({'c': 'one'}, 1),
    ):
        assert len(find_copies(numbers, blocks)) == count
