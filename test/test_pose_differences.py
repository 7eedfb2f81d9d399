# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Pose differences do not depend on units and have the statistics of VEPD."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from study_examples import drawn_study

from sim2real_eval.report.answer import detail_lines
from sim2real_eval.report.ranking_tables import pose_difference_table
from sim2real_eval.study.answer import study_answer
from sim2real_eval.study.outcome import StudyOutcome
from sim2real_eval.study.secondary_results import PoseRanking, pose_rankings

KEYS = ('position_rmse', 'yaw_rmse', 'orientation_rmse')


def study(unit: float = 1.0, shift: float = 0.0, tilt: float = 0.1) -> StudyOutcome:
    """Return a study whose models have the errors of the real runs, shifted for the model `far`.

    The error of the attitude is larger than that of the heading by the share `tilt`.
    """
    outcome = drawn_study(judges=('clean',), runs=5, models={'same': 0.05, 'far': 0.05})
    sizes = np.random.default_rng(2).gamma(4.0, 0.25, 10)
    places = {
        name: i for i, name in enumerate(dict.fromkeys(r.key.recording for r in outcome.runs))
    }
    runs = []
    for run in outcome.runs:
        size = sizes[places[run.key.recording]] + shift * (run.key.model == 'far')
        values = {**run.values, **dict.fromkeys(KEYS, unit * float(size))}
        values['orientation_rmse'] *= 1.0 + tilt
        runs.append(dataclasses.replace(run, values=values))
    return dataclasses.replace(outcome, runs=tuple(runs))


def position(outcome: StudyOutcome) -> PoseRanking:
    rankings = pose_rankings(outcome)
    return next(pose for pose in rankings if pose.difference.quantity == 'position')


def test_a_pose_distance_is_the_shift_in_standard_deviations_of_real_runs() -> None:
    ranking = position(study(shift=3.0))
    assert ranking.uncertainty.model('same').distance == 0.0
    assert ranking.uncertainty.model('far').distance == pytest.approx(3.0 / ranking.deviation)
    # Oracle: 2 of the 1024 exchanges of 10 pairs have at least this distance.
    assert ranking.uncertainty.model('far').p_value == pytest.approx(2 / 1024)
    assert ranking.uncertainty.model('same').p_value == 1.0


def test_the_distance_does_not_depend_on_the_unit() -> None:
    metres, millimetres = position(study(1.0, 0.5)), position(study(1000.0, 0.5))
    assert millimetres.deviation == pytest.approx(1000.0 * metres.deviation)
    for first, second in zip(
        metres.uncertainty.models, millimetres.uncertainty.models, strict=True
    ):
        for name in ('distance', 'estimate', 'low', 'high', 'null_median', 'p_value', 'adjusted'):
            assert getattr(second, name) == pytest.approx(getattr(first, name), rel=1e-6, abs=1e-9)


def test_answer_and_table_name_the_nearest_model_by_pose() -> None:
    outcome = study(shift=3.0)
    answer = study_answer(outcome)
    assert [pose.nearest for pose in answer.poses] == ['same'] * 3
    other = dataclasses.replace(answer, nearest='far', poses=answer.poses[:2])
    texts = {line.head: line.text for line in detail_lines(other)}
    assert 'same' in texts['Do all agree']
    assert len(pose_difference_table(pose_rankings(outcome)).rows) == 6
    assert len(study_answer(outcome).to_mapping()['poses']) == 3


def test_an_attitude_equal_to_the_heading_is_not_compared_twice() -> None:
    rankings = pose_rankings(study(shift=3.0, tilt=1e-12))
    assert [pose.difference.quantity for pose in rankings] == ['position', 'heading']


def test_differences_missing_in_some_runs_are_left_out() -> None:
    outcome = study()
    for run in outcome.runs:
        del run.values['yaw_rmse']
    rankings = pose_rankings(outcome)
    assert [pose.difference.quantity for pose in rankings] == ['position', 'attitude']
