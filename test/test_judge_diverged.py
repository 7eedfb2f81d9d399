# SPDX-License-Identifier: Apache-2.0
"""Estimates that are not numbers: written as they are, told, and never a traceback."""

from __future__ import annotations

import dataclasses
import json
import warnings
from pathlib import Path

import numpy as np
import pytest
import yaml
from cli_examples import call, write_runs

from sim2real_eval.judge.estimate import Corrections, part_counts
from sim2real_eval.judge.robot_localization.advice import divergence, motion_advice
from sim2real_eval.judge.robot_localization.parts import PartName
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.metrics.consistency import check_consistency
from sim2real_eval.recording.reading import read_recording

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope='module')
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (path,) = write_runs(tmp_path_factory.mktemp('runs'), ('drive_line', 1))
    return path


@pytest.fixture(scope='module')
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An unscented filter whose first covariance has no root: no estimate is a number."""
    path = tmp_path_factory.mktemp('config') / 'ukf.yaml'
    rows = np.zeros(15, dtype=bool)
    rows[[5, 11]] = True
    parameters = {
        'imu0': 'imu/data',
        'imu0_config': rows.tolist(),
        'initial_estimate_covariance': [1.0, 1.0, -1.0, *[1.0] * 12],
    }
    path.write_text(yaml.safe_dump({'ukf_filter_node': {'ros__parameters': parameters}}))
    return path


def test_judge_writes_them_and_fails(
    run: Path, broken: Path, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / 'x.csv'
    outcome = call(
        capsys, 'judge', run, '--config', broken, '--consistency', '--json', '--out', out
    )
    assert outcome.status == 1
    assert len(outcome.complaints) == 1
    assert 'is not a number from t = ' in outcome.complaints[0]
    assert '--correct unscented' in outcome.complaints[0]
    (summary,) = json.loads(outcome.out)
    assert 0 < summary['nan'] <= summary['estimates']
    assert 'rl.unscented_diverged' in [note['code'] for note in summary['notes']]
    assert not any(note['code'] == 'rl.gated' for note in summary['notes'])
    assert out.exists()


def test_vepd_names_the_judge(run: Path, broken: Path, tmp_path: Path, capsys: Capture) -> None:
    outcome = call(
        capsys, 'vepd', '--real', run, '--judge-config', broken, '--models', 'ch_rw',
        '--out', tmp_path / 'result',
    )  # fmt: skip
    assert outcome.status == 2
    assert 'the judge failed, not the recording: the estimate is not' in outcome.complaints[0]


def test_only_what_the_gate_refused_counts_as_such() -> None:
    names = [PartName('imu0', 'imu', 'pose'), PartName('imu0', 'imu', 'twist')]
    counts = np.array([[9, 0, 0, 4, 5], [9, 0, 0, 4, 5]])
    threshold = np.array([np.inf, 2.0])
    corrections = Corrections(
        part=np.array([0, 1, 1, 1]),
        stamp_ns=np.arange(4),
        states=np.ones(4, dtype=np.int64),
        nis=np.array([99.0, 4.0, 3.9, 16.0]),
    )
    pose, twist = part_counts(names, counts, threshold, corrections)
    assert (pose.rejected, pose.singular) == (5, 5)
    assert (twist.rejected, twist.singular) == (5, 3)


def test_remedy_is_that_of_the_filter() -> None:
    assert '--correct unscented' in divergence(True, False).remedy
    assert '--correct' not in divergence(True, True).remedy
    assert '--correct' not in divergence(False, False).remedy


def test_a_row_counts_when_any_of_its_fields_is_none(run: Path) -> None:
    judged = JudgeSetup.load('clean').judge(read_recording(run))
    assert judged.finite.all()
    assert judged.divergence_findings == ()
    covariance = judged.pose_covariance.copy()
    covariance[3, 5, 5] = np.inf
    assert not dataclasses.replace(judged, pose_covariance=covariance).finite[3]


def test_a_judge_without_innovations_says_why_there_is_no_nis(run: Path) -> None:
    """A smoother has none."""
    setup, recording = JudgeSetup.load('clean'), read_recording(run)
    judged = setup.judge(recording)
    silent = dataclasses.replace(judged, corrections=Corrections.none())
    reported = [
        any(
            note.code == 'consistency.no_innovations'
            for note in check_consistency(setup, recording, estimate).notes
        )
        for estimate in (judged, silent)
    ]
    assert reported == [False, True]


def test_positions_too_far_for_a_square_leak_no_warning() -> None:
    far = np.array([[0.0, 0.0, 0.0], [1e200, 0.0, 0.0], [-1e200, 1e200, 0.0]])
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        motion_advice(np.arange(3) * 10**9, far, np.zeros((3, 3)))
