# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Studies vary and rank wheels, tags and other sensors like GPS and IMU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml

from sim2real_eval.simulation.twin import VISION_TOPIC, WHEEL_TOPIC
from sim2real_eval.study.plan import StudyPlan
from sim2real_eval.study.runner import run_study
from sim2real_eval.study.study_file import StudyFile
from sim_sensors.core.errors import Sim2RealError

SENSORS = {'gps': 'baseline', 'imu': 'ideal'}
COARSE = {'base': 'differential', 'label': 'coarse', 'noise': {'density': 1.0}}
STUDY = {
    'title': 'Wheels',
    'seed': 1,
    'recordings': [
        {'stand_in': {'scenarios': ['circle'], 'runs': 2, 'duration': 4.0,
                      'wheels': 'differential', **SENSORS}}
    ],
    'models': {'wheels': ['differential', COARSE]},
    'judges': ['wheels'],
}  # fmt: skip


def read(tmp_path: Path, **changes) -> StudyFile:
    path = tmp_path / 'study.yaml'
    path.write_text(yaml.safe_dump({**STUDY, **changes}), encoding='utf-8')
    return StudyFile.read(path)


def test_models_of_wheels_are_ranked_by_their_noise(tmp_path: Path) -> None:
    outcome = run_study(StudyPlan.from_file(read(tmp_path)), tmp_path / 'out')
    rows = {row.model: row for row in outcome.table('wheels') if row.scenario == 'circle'}
    assert list(rows) == ['differential', 'coarse']
    assert rows['differential'].vepd < rows['coarse'].vepd
    assert rows['differential'].w_rmse > 0.0  # not the noise of the stand-in


def test_each_kind_of_sensor_can_be_simulated_while_the_others_stay_real(tmp_path: Path) -> None:
    stand_in = {**STUDY['recordings'][0]['stand_in'], 'vision': 'tags', 'mag': 'ideal'}
    file = read(
        tmp_path, world='tag_ring', recordings=[{'stand_in': stand_in}],
        models={'gps': ['real'], 'vision': ['tags', 'frc_2024'], 'mag': ['ideal']},
    )  # fmt: skip
    assert [twin.label for twin in file.twins] == ['tags', 'frc_2024']
    (unit, *_) = StudyPlan.from_file(file).units(1)
    plan = unit._prepare(unit.judges[0].setup).plan
    real, twin = plan.recording(plan.real), plan.recording(plan.twins[0])
    assert {VISION_TOPIC, WHEEL_TOPIC} <= real.messages.keys()
    assert twin.messages[WHEEL_TOPIC] is real.messages[WHEEL_TOPIC]
    assert twin.gps is real.gps
    assert len(twin.messages[VISION_TOPIC]) > 0
    poses = [recording.messages[VISION_TOPIC].position for recording in (real, twin)]
    assert not np.array_equal(*poses)
    assert twin.mag is not real.mag


def test_pairs_of_gps_and_imu_models_have_distinct_labels(tmp_path: Path) -> None:
    models = {'gps': ['ch_rw', 'real'], 'imu': ['chrono', 'ideal']}
    labels = [twin.label for twin in read(tmp_path, models={**models, 'gps': 'ch_rw'}).twins]
    assert labels == ['ch_rw+chrono', 'ch_rw+ideal']
    labels = [twin.label for twin in read(tmp_path, models={**models, 'imu': 'ideal'}).twins]
    assert labels == ['ch_rw', 'ideal']


def test_a_sensor_that_was_not_recorded_is_refused(tmp_path: Path) -> None:
    stand_in = STUDY['recordings'][0]['stand_in']
    bare = {key: value for key, value in stand_in.items() if key != 'wheels'}
    plan = StudyPlan.from_file(read(tmp_path, recordings=[{'stand_in': bare}]))
    with pytest.raises(Sim2RealError, match=r'no wheels.*recorded as /wheel/odometry'):
        run_study(plan, tmp_path / 'out')
