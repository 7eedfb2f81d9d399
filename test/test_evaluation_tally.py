# SPDX-License-Identifier: Apache-2.0
"""What evaluation_node tells while it runs, without a graph."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='no ROS')

from diagnostic_msgs.msg import DiagnosticStatus

from sim2real_eval.metrics.distances import vepd
from sim2real_eval.metrics.scores import RunScore
from sim2real_eval.metrics.series import VelocitySeries
from sim2real_eval.recording.source import Source
from sim2real_eval.ros.evaluation.tally import Pace, Tally
from sim2real_eval.study.run_plan import JudgedScore
from sim_sensors.core.errors import Sim2RealError

SERIES = VelocitySeries(*[np.array([0.0, 1.0])] * 4)


def run(
    model: str, number: int, rmse: float, scenario: str = 'line', notes: tuple[str, ...] = ()
) -> JudgedScore:
    score = RunScore(rmse, 0.2, 0.3, 0.1 * rmse, 300, 20.0)
    return JudgedScore(
        model, f'{scenario}_{number}', scenario, 1, SERIES, score, score, 700, 200, notes
    )


def tally(recordings: int = 2) -> Tally:
    return Tally([Source(f'bags/{k}') for k in range(recordings)], ['a', 'b'], 1)


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
    found.add(run('b', 1, 3.0, notes=('the gate refused all',)))
    status = found.status('/node')
    assert (status.level, status.message) == (DiagnosticStatus.WARN, 'the gate refused all')
    found.complete()
    found.fail('has no truth')
    status = found.status('/node')
    assert status.level == DiagnosticStatus.ERROR
    assert status.message == 'left out: bags/1: has no truth'


def test_what_is_incomplete_is_left_out_when_it_is_stopped() -> None:
    found = tally(3)
    for one in (run('real', 1, 1.0), run('a', 1, 1.5), run('b', 1, 3.0)):
        found.add(one)
    found.complete()
    found.add(run('real', 2, 1.0))
    found.add(run('a', 2, 1.5))
    found.interrupt()
    found.interrupt()
    comparison = found.comparison()
    assert [(one.model, one.recording) for one in comparison.runs] == [
        ('real', 'line_1'),
        ('a', 'line_1'),
        ('b', 'line_1'),
    ]
    assert [str(failure) for failure in comparison.failures] == [
        'bags/1: stopped after 1 of 2 runs',
        'bags/2: stopped after 0 of 2 runs',
    ]
    assert found.complete_recordings == 1


def test_nothing_complete_is_no_result() -> None:
    found = tally(1)
    found.add(run('real', 1, 1.0))
    found.interrupt()
    with pytest.raises(Sim2RealError, match='stopped after 0 of 2 runs'):
        found.comparison()
