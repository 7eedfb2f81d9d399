# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`--judge error_state` on the command line: estimates, comparisons and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cli_examples import call, write_runs
from judge_examples import read_rows

from sim2real_eval.recording.reading import read_recording

Capture = pytest.CaptureFixture[str]
pytestmark = pytest.mark.usefixtures('blank_pictures')


@pytest.fixture(scope='module')
def bags(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_runs(tmp_path_factory.mktemp('bags'), ('drive_line', 1), ('drive_circle', 1))


def test_error_state_judge_is_accurate_to_0_3_m_s_with_the_worst_imu(
    bags: list[Path], tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / 'x.csv'
    outcome = call(
        capsys, 'judge', bags[1], '--judge', 'error_state', '--config', 'chrono', '--out', out
    )
    assert outcome.status == 0
    header, rows = read_rows(out)
    table = np.array(rows, dtype=float)
    truth = read_recording(bags[1]).truth
    true_speed = np.linalg.norm(truth.linear_velocity[:, :2], axis=1)
    speed = np.interp(table[:, 0], truth.stamp_ns, true_speed)
    estimated_speed = np.hypot(table[:, header.index('vx')], table[:, header.index('vy')])
    assert np.sqrt(np.mean(np.square(estimated_speed - speed))) < 0.3


def test_a_comparison_records_which_judge_it_used(
    bags: list[Path], tmp_path: Path, capsys: Capture
) -> None:
    settings_file = tmp_path / 'mine.yaml'
    settings_file.write_text('accelerometer_bias_walk: 0.3', encoding='utf-8')
    outcome = call(
        capsys, 'vepd', *bags, '--models', 'ch_rw', '--judge', 'error_state',
        '--judge-config', settings_file, '--out', tmp_path / 'result', '--jobs', 1,
    )  # fmt: skip
    assert outcome.status == 0
    record = json.loads((tmp_path / 'result' / 'study.json').read_text(encoding='utf-8'))
    assert record['judges'][0]['name'] == f'error_state ({settings_file})'
    assert record['judges'][0]['inertial']['accelerometer_bias_walk'] == 0.3


@pytest.mark.parametrize(
    'option', ['--navsat-config x.yaml', '--case x.yaml', '--filter ekf', '--front-end enu']
)
@pytest.mark.parametrize('judge', ['error_state', 'gtsam'])
def test_options_of_other_judges_are_refused(
    option: str, judge: str, bags: list[Path], tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / 'x'
    outcome = call(capsys, 'judge', bags[0], '--judge', judge, *option.split(), '--out', out)
    assert outcome.status == 2
    (complaint,) = outcome.err.splitlines()
    assert option.split()[0] in complaint
    assert not out.exists()


def test_a_transform_file_moves_the_antenna(
    bags: list[Path], tmp_path: Path, capsys: Capture
) -> None:
    """An antenna placed one metre higher makes the estimate one metre lower."""
    file = tmp_path / 'car.yaml'
    run = read_recording(bags[0])
    file.write_text(
        ''.join(
            f'- {{parent: base_link, child: {frame}, translation: [0, 0, {up}], '
            'rotation_xyzw: [0, 0, 0, 1]}\n'
            for frame, up in ((run.imu.frame, 0), (run.gps.frame, 1))
        ),
        encoding='utf-8',
    )
    heights = []
    for number, more in enumerate(([], ['--transforms', file])):
        out = tmp_path / f'{number}.csv'
        outcome = call(capsys, 'judge', bags[0], '--judge', 'error_state', *more, '--out', out)
        assert outcome.status == 0
        header, rows = read_rows(out)
        heights.append(np.median(np.array(rows, dtype=float)[:, header.index('z')]))
    assert heights[0] - heights[1] == pytest.approx(1.0, abs=0.2)
