# SPDX-License-Identifier: Apache-2.0
"""A ranking by VEPD depends on the unit of speed; the unit-free form beside it does not."""

from __future__ import annotations

import numpy as np

from sim2real_eval.metrics.scores import RunScore, vepd_table
from sim2real_eval.study.outcome import RunKey, StudyRun
from sim2real_eval.study.sensitivity import UNIT_FREE, holm, weighted_distances


def scores(rmse: float, entropy: float, unit: float) -> list[RunScore]:
    steps = np.linspace(0.9, 1.1, 8)
    return [RunScore(unit * rmse * k, 0.0, entropy * k, entropy * k, 300, 20.0) for k in steps]


def orders(unit: float) -> dict[str, list[str]]:
    """Models by each weighting, nearest first; m/s in so many of a unit."""
    real = scores(0.1, 0.05, unit)
    models = {'fast': scores(0.12, 0.2, unit), 'rough': scores(0.3, 0.06, unit)}
    rows = vepd_table({'line': real}, {name: {'line': score} for name, score in models.items()})
    runs = [
        StudyRun(RunKey('clean', f'{k}', 'real', 1), 'line', '', vars(score))
        for k, score in enumerate(real)
    ]
    return {
        way.label: [row.model for row in sorted(way.rows, key=lambda row: row.vepd)
                    if row.scenario == 'line']
        for way in weighted_distances(rows, runs)
    }  # fmt: skip


def test_weights_turn_the_order_and_the_unit_free_form_keeps_it() -> None:
    """One model errs in the entropy and one in the speed: each is nearest by one of the two."""
    in_metres, in_millimetres = orders(1.0), orders(1000.0)
    assert in_metres['W1 x 0'] == ['rough', 'fast']
    assert in_metres['W1 x 1'] == ['fast', 'rough']
    assert in_metres['W1 x 0.25'] != in_millimetres['W1 x 0.25']
    assert in_metres[UNIT_FREE] == in_millimetres[UNIT_FREE]


def test_real_runs_that_are_equal_have_no_unit_of_their_own() -> None:
    equal_scores = scores(0.1, 0.05, 1.0)[:1] * 3
    rows = vepd_table({'line': equal_scores}, {'m': {'line': scores(0.2, 0.1, 1.0)}})
    runs = [
        StudyRun(RunKey('clean', f'{k}', 'real', 1), 'line', '', vars(score))
        for k, score in enumerate(equal_scores)
    ]
    last = weighted_distances(rows, runs)[-1]
    assert (last.label, last.rows) == (UNIT_FREE, [])
    assert last.problem == 'the real runs of a scenario do not differ'


def test_p_values_are_adjusted_for_all_that_are_looked_at() -> None:
    """Holm's step-down procedure: times 4, 3, 2, 1 from the smallest on, never falling."""
    assert holm([0.03, None, 0.01, 0.04, 0.02]) == [0.06, None, 0.04, 0.06, 0.06]
    assert holm([0.9, 0.8]) == [1.0, 1.0]
