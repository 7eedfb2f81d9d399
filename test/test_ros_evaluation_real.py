# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""evaluation_node with ekf_node of robot_localization as the judge, where it is installed."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='no ROS')

from cli_examples import call
from ros_evaluation_examples import evaluation, onlooker, short_bags

from sim2real_eval.common.findings import JudgeError
from sim2real_eval.judge.external.process import executable

try:
    executable('robot_localization')
    ABSENT = ''
except JudgeError as error:
    ABSENT = str(error)

pytestmark = pytest.mark.skipif(bool(ABSENT), reason=ABSENT)


def runs(folder: Path) -> list[dict[str, str]]:
    with (folder / 'runs.csv').open(encoding='utf-8') as file:
        return list(csv.DictReader(file))


def test_robot_localization_has_the_scores_of_the_embedded_judge(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With two models, the real side is judged twice, with equal numbers."""
    (bag,) = short_bags(tmp_path, half_sine=4.0)
    batch = call(
        capsys, 'vepd', bag, '--models', 'ch_gauss,ch_rw', '--judge-config', 'clean',
        '--out', tmp_path / 'batch',
    )  # fmt: skip
    assert batch.status == 0, batch.err
    with (
        onlooker(),
        evaluation(
            f'real:=[{bag}]', 'models:=ch_gauss,ch_rw', 'profile:=clean',
            'judge:=robot_localization', f'out:={tmp_path / "live"}',
        ) as running,
    ):  # fmt: skip
        status, _, err = running.end()
    assert status == 0, err
    record = json.loads((tmp_path / 'live/study.json').read_text())
    assert record['judges'][0]['nodes']['judge'] == 'robot_localization'
    live, expected = runs(tmp_path / 'live'), runs(tmp_path / 'batch')
    assert len(live) == len(expected) == 3
    for live_run, expected_run in zip(live, expected, strict=True):
        for key in ('model', 'recording', 'estimates', 'fixes_used'):
            assert live_run[key] == expected_run[key]
        assert float(live_run['rmse']) == pytest.approx(float(expected_run['rmse']), abs=1e-4)
