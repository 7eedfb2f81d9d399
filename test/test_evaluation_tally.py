# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Intermediate results of evaluation_node, without a graph."""

from __future__ import annotations

import itertools
import json

import pytest

pytest.importorskip('rclpy', reason='no ROS')

from diagnostic_msgs.msg import DiagnosticStatus

from sim2real_eval.metrics.options import NO_NUMBERS
from sim2real_eval.metrics.scores import vepd
from sim2real_eval.ros.evaluation.run import Pace, Tally
from sim2real_eval.study.outcome import Losses
from sim2real_eval.study.run import RunKey, StudyRun

JUDGE = 'clean'


def run(model: str, number: int, rmse: float, *, has_note: bool = False) -> StudyRun:
    values = {
        'rmse': rmse, 'entropy_gt': 0.2, 'entropy_se': 0.3, 'entropy_difference': 0.1 * rmse,
        'n_samples': 300, 'duration': 20.0, 'forward_rmse': 0.5 * rmse, 'estimates': 700,
        'fixes_used': 200,
    }  # fmt: skip
    notes = (NO_NUMBERS(),) if has_note else ()
    return StudyRun(RunKey(JUDGE, f'line_{number}', model, 1), 'line', '', values, notes)


def tally(recordings: int = 2) -> Tally:
    names = [f'line_{number}' for number in range(1, recordings + 1)]
    return Tally(JUDGE, names, ['a', 'b'], 1)


def row(current: Tally, model: str, scenario: str = 'all') -> tuple[int, int, float]:
    (vepd_row,) = (r for r in current.rows() if (r.model, r.scenario) == (model, scenario))
    return vepd_row.n_real, vepd_row.n_sim, vepd_row.vepd


def test_a_model_is_compared_with_the_real_runs_of_its_own_recordings() -> None:
    current = tally()
    assert current.rows() == []
    first = [run('real', 1, 1.0), run('a', 1, 1.5), run('b', 1, 3.0)]
    for first_run in first:
        current.add(first_run, Pace(20.0, 2.0))
    current.complete()
    second = [run('real', 2, 10.0), run('a', 2, 11.0)]
    for second_run in second:
        current.add(second_run, Pace(20.0, 2.0))
    scores = [scored.score for scored in (*first, *second)]
    assert row(current, 'b') == (1, 1, vepd([scores[0]], [scores[2]]).vepd)
    both = vepd([scores[0], scores[3]], [scores[1], scores[4]])
    assert row(current, 'a') == (2, 2, both.vepd)
    assert (current.done, current.total) == (3, 4)
    record = json.loads(current.to_json())
    assert record['last']['real']['rmse'] == 10.0
    assert record['last']['simulated']['rmse'] == 11.0
    assert record['last']['real_time_factor'] == 10.0
    values = {pair.key: pair.value for pair in current.status('/node').values}
    assert values['runs done'] == '3'
    assert values['VEPD b'] == f'{row(current, "b")[2]:.6g}'


def test_the_diagnostic_level_follows_findings_and_failures() -> None:
    current = tally(3)
    current.add(run('real', 1, 1.0))
    current.add(run('a', 1, 1.5))
    assert current.status('/node').level == DiagnosticStatus.OK
    current.add(run('b', 1, 3.0, has_note=True))
    assert current.status('/node').level == DiagnosticStatus.WARN
    current.complete()
    current.fail('has no truth')
    assert current.status('/node').level == DiagnosticStatus.ERROR


def test_incomplete_recordings_are_excluded_when_the_node_is_stopped() -> None:
    current = tally(3)
    runs = [run('real', 1, 1.0), run('a', 1, 1.5), run('b', 1, 3.0)]
    for complete_run in runs:
        current.add(complete_run)
    current.complete()
    incomplete = [run('real', 2, 1.0), run('a', 2, 1.5)]
    for incomplete_run in incomplete:
        current.add(incomplete_run)
    current.interrupt()
    current.interrupt()
    assert [failure.recording for failure in current.failures] == ['line_2', 'line_3']
    assert current.complete_recordings == 1
    keys = itertools.product((1, 2, 3), ('real', 'a', 'b'))
    planned = {RunKey(JUDGE, f'line_{number}', model, 1): '' for number, model in keys}
    losses = Losses(current.failures, planned)
    assert not any(judged.key in losses for judged in runs)
    assert all(judged.key in losses for judged in incomplete)
