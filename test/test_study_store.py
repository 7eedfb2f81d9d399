# SPDX-License-Identifier: Apache-2.0
"""Runs of a study on the disk: they come back to the bit, and damage is detected."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from study_file_examples import small_plan

from sim2real_eval.study.outcome import RunStore, StudyOutcome
from sim2real_eval.study.runner import run_study
from sim_sensors.core.errors import Sim2RealError

pytestmark = pytest.mark.usefixtures('blank_pictures')


@pytest.fixture(scope='module')
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a finished study."""
    folder = tmp_path_factory.mktemp('study')
    run_study(small_plan(folder), folder / 'out')
    return folder / 'out'


def test_signals_come_back_to_the_bit_and_damage_is_detected(study: Path, tmp_path: Path) -> None:
    outcome = StudyOutcome.read(study)
    run = next(run for run in outcome.runs if not run.is_real)
    signals = outcome.signals(run.key)
    RunStore(tmp_path).save(run, signals)
    for field in dataclasses.fields(signals):
        stored = getattr(RunStore(tmp_path).signals(run.key), field.name)
        np.testing.assert_array_equal(stored, getattr(signals, field.name), field.name)
    path = next(tmp_path.glob('runs/*/*/[!t]*.npz'))
    whole = path.read_bytes()
    entry = whole.rindex(b'PK\x01\x02')
    # A number, the compression method and the encryption flag of a member.
    for position, flipped in ((len(whole) // 2, 1), (entry + 10, 2), (entry + 8, 1)):
        data = bytearray(whole)
        data[position] ^= flipped
        path.write_bytes(data)
        with pytest.raises(Sim2RealError, match=path.name):
            RunStore(tmp_path).signals(run.key)


def test_a_damaged_truth_is_written_again(study: Path, tmp_path: Path) -> None:
    outcome = StudyOutcome.read(study)
    run = outcome.runs[0]
    RunStore(tmp_path).save(run, outcome.signals(run.key))
    (truth,) = tmp_path.glob('runs/*/*/truth.npz')
    whole = truth.read_bytes()
    for damaged in (whole[:-1], b''):
        truth.write_bytes(damaged)
        assert RunStore(tmp_path).run(run.key) is None
        RunStore(tmp_path).save(run, outcome.signals(run.key))
        assert truth.read_bytes() == whole
