# SPDX-License-Identifier: Apache-2.0
"""What evaluation_node tells while it runs, without a graph."""

from __future__ import annotations

import json

import pytest

pytest.importorskip('rclpy', reason='no ROS')

from diagnostic_msgs.msg import DiagnosticStatus

from sim2real_eval.metrics.distances import vepd
from sim2real_eval.metrics.findings import NO_NUMBERS
from sim2real_eval.ros.evaluation.tally import Pace, Tally
from sim2real_eval.study.run import Losses, RunKey, StudyRun

JUDGE = 'clean'


def run(model: str, number: int, rmse: float, *, told: bool = False) -> StudyRun:
    values = {
        'rmse': rmse, 'entropy_gt': 0.2, 'entropy_se': 0.3, 'entropy_difference': 0.1 * rmse,
        'n_samples': 300, 'duration': 20.0, 'forward_rmse': 0.5 * rmse, 'estimates': 700,
        'fixes_used': 200,
    }  # fmt: skip
    notes = (NO_NUMBERS(),) if told else ()
    return StudyRun(RunKey(JUDGE, f'line_{number}', model, 1), 'line', '', values, notes)


def tally(recordings: int = 2) -> Tally:
    names = [f'line_{number}' for number in range(1, recordings + 1)]
    return Tally(JUDGE, names, ['a', 'b'], 1)


def row(found: Tally, model: str, scenario: str = 'all') -> tuple[int, int, float]:
    (one,) = (r for r in found.rows() if (r.model, r.scenario) == (model, scenario))
    return one.n_real, one.n_sim, one.vepd


def test_a_model_is_compared_with_the_real_runs_of_its_own_recordings() -> None:
    """While b has yet to do the second recording, that recording's real run is none of its."""
    found = tally()
    assert found.rows() == []
    first = [run('real', 1, 1.0), run('a', 1, 1.5), run('b', 1, 3.0)]
    for one in first:
        found.add(one, Pace(20.0, 2.0))
    found.complete()
    second = [run('real', 2, 10.0), run('a', 2, 11.0)]
    for one in second:
        found.add(one, Pace(20.0, 2.0))
    scores = [one.score for one in (*first, *second)]
    assert row(found, 'b') == (1, 1, vepd([scores[0]], [scores[2]]).vepd)
    both = vepd([scores[0], scores[3]], [scores[1], scores[4]])
    assert row(found, 'a') == (2, 2, both.vepd)
    assert (found.done, found.total) == (3, 4)
    told = json.loads(found.to_json())
    assert told['last']['real']['rmse'] == 10.0
    assert told['last']['simulated']['rmse'] == 11.0
    assert told['last']['real_time_factor'] == 10.0
    values = {pair.key: pair.value for pair in found.status('/node').values}
    assert values['runs done'] == '3'
    assert values['VEPD b'] == f'{row(found, "b")[2]:.6g}'


def test_level_follows_notes_and_failures() -> None:
    found = tally(3)
    found.add(run('real', 1, 1.0))
    found.add(run('a', 1, 1.5))
    assert found.status('/node').level == DiagnosticStatus.OK
    found.add(run('b', 1, 3.0, told=True))
    status = found.status('/node')
    assert (status.level, status.message) == (DiagnosticStatus.WARN, NO_NUMBERS.text)
    found.complete()
    found.fail('has no truth')
    status = found.status('/node')
    assert status.level == DiagnosticStatus.ERROR
    assert status.message == 'left out: line_2: has no truth'


def test_what_is_incomplete_is_left_out_when_it_is_stopped() -> None:
    found = tally(3)
    runs = [run('real', 1, 1.0), run('a', 1, 1.5), run('b', 1, 3.0)]
    for one in runs:
        found.add(one)
    found.complete()
    begun = [run('real', 2, 1.0), run('a', 2, 1.5)]
    for one in begun:
        found.add(one)
    found.interrupt()
    found.interrupt()
    assert [failure.told for failure in found.failures] == [
        'line_2: stopped after 1 of 2 runs',
        'line_3: stopped after 0 of 2 runs',
    ]
    assert found.complete_recordings == 1
    planned = {
        RunKey(JUDGE, f'line_{number}', model, 1): ''
        for number in (1, 2, 3)
        for model in ('real', 'a', 'b')
    }
    losses = Losses(found.failures, planned)
    assert not any(one.key in losses for one in runs)
    assert all(one.key in losses for one in begun)


def test_nothing_complete_is_no_result() -> None:
    found = tally(1)
    found.add(run('real', 1, 1.0))
    found.interrupt()
    assert found.complete_recordings == 0
    assert [failure.told for failure in found.failures] == ['line_1: stopped after 0 of 2 runs']
