# SPDX-License-Identifier: Apache-2.0
"""Runs of a study on the disk: they come back to the bit, and damage is found and mended."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from study_file_examples import small_plan

from sim2real_eval.study import outcome as outcomes
from sim2real_eval.study.outcome import StudyOutcome
from sim2real_eval.study.runner import run_study
from sim_sensors.core import blocks as core_blocks
from sim_sensors.core import scratch
from sim_sensors.core.errors import Sim2RealError

pytestmark = pytest.mark.usefixtures('blank_pictures')


@pytest.fixture(scope='module')
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a finished study."""
    folder = tmp_path_factory.mktemp('study')
    run_study(small_plan(folder), folder / 'out')
    return folder / 'out'


@pytest.mark.parametrize('piece', [outcomes.LARGE, 1000])
def test_signals_come_back_to_the_bit_and_damage_is_found_whatever_is_read_at_once(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    read = StudyOutcome.read(study)
    run = next(one for one in read.runs if not one.is_real)
    given = read.signals(run.key)
    for module in (outcomes, scratch):
        monkeypatch.setattr(module, 'LARGE', piece)
    monkeypatch.setattr(core_blocks, 'BLOCK', piece)
    outcomes.RunStore(tmp_path).save(run, given)
    for field in dataclasses.fields(given):
        found = getattr(outcomes.RunStore(tmp_path).signals(run.key), field.name)
        np.testing.assert_array_equal(found, getattr(given, field.name), field.name)
    path = next(tmp_path.glob('runs/*/*/[!t]*.npz'))
    whole = path.read_bytes()
    entry = whole.rindex(b'PK\x01\x02')
    # A number; how a member is compressed; whether it is encrypted.
    for place, flipped in ((len(whole) // 2, 1), (entry + 10, 2), (entry + 8, 1)):
        data = bytearray(whole)
        data[place] ^= flipped
        path.write_bytes(data)
        with pytest.raises(Sim2RealError, match='is broken'):
            outcomes.RunStore(tmp_path).signals(run.key)


def test_values_of_a_study_do_not_depend_on_the_size_of_blocks(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core_blocks, 'BLOCK', 64)
    monkeypatch.setattr(scratch, 'LARGE', 1000)
    again = run_study(small_plan(tmp_path), tmp_path / 'out')
    for one, other in zip(again.runs, StudyOutcome.read(study).runs, strict=True):
        assert one.key == other.key
        # Means of blocks are rounded otherwise.
        assert one.values == pytest.approx(other.values, rel=1e-9, abs=1e-12)


def test_a_truth_that_a_power_cut_left_unfinished_is_written_again(
    study: Path, tmp_path: Path
) -> None:
    read = StudyOutcome.read(study)
    outcomes.RunStore(tmp_path).save(read.runs[0], read.signals(read.runs[0].key))
    (truth,) = tmp_path.glob('runs/*/*/truth.npz')
    whole = truth.read_bytes()
    for left in (whole[:-1], whole[:500] + bytes(500) + whole[1000:], bytes(len(whole)), b''):
        truth.write_bytes(left)
        outcomes.RunStore(tmp_path).save(read.runs[0], read.signals(read.runs[0].key))
        assert truth.read_bytes() == whole
