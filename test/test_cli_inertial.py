# SPDX-License-Identifier: Apache-2.0
"""`--judge error_state` on the command line: estimates, comparisons and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cli_examples import call, write_runs
from judge_examples import read_rows

from sim2real_eval.judge.inertial.error_state import ErrorStateJudge
from sim2real_eval.recording.metadata import TransformFile
from sim2real_eval.recording.reading import read_recording

Capture = pytest.CaptureFixture[str]
pytestmark = pytest.mark.usefixtures('blank_pictures')


@pytest.fixture(scope='module')
def bags(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_runs(tmp_path_factory.mktemp('bags'), ('drive_line', 1), ('drive_circle', 1))


def test_the_estimate_of_a_drive_is_written_without_any_configuration(
    bags: list[Path], tmp_path: Path, capsys: Capture
) -> None:
    """The speed on the circle is met to 0.3 m/s rms with the worst IMU preset."""
    out = tmp_path / 'x.csv'
    outcome = call(
        capsys, 'judge', bags[1], '--judge', 'error_state', '--config', 'chrono', '--out', out
    )
    assert outcome.status == 0
    assert 'fused gps pose' in outcome.out
    header, rows = read_rows(out)
    table = np.array(rows, dtype=float)
    truth = read_recording(bags[1]).truth
    assert truth is not None
    speed = np.interp(
        table[:, 0], truth.stamp_ns, np.linalg.norm(truth.linear_velocity[:, :2], axis=1)
    )
    estimated_speed = np.hypot(table[:, header.index('vx')], table[:, header.index('vy')])
    assert np.sqrt(np.mean(np.square(estimated_speed - speed))) < 0.3
    default = call(capsys, 'judge', bags[1], '--judge', 'error_state', '--out', tmp_path / 'y.csv')
    assert default.status == 0


def test_a_comparison_records_the_judge_and_its_settings(
    bags: list[Path], tmp_path: Path, capsys: Capture
) -> None:
    settings_file = tmp_path / 'mine.yaml'
    settings_file.write_text('accelerometer_bias_walk: 0.3', encoding='utf-8')
    outcome = call(
        capsys, 'vepd', '--real', *bags, '--models', 'ch_rw', '--judge', 'error_state',
        '--judge-config', settings_file, '--out', tmp_path / 'result', '--jobs', 1,
    )  # fmt: skip
    assert outcome.status == 0
    assert 'judge mine' in outcome.out
    record = json.loads((tmp_path / 'result' / 'study.json').read_text(encoding='utf-8'))
    assert record['judges'][0]['name'] == f'error_state ({settings_file})'
    assert record['judges'][0]['files'][0]['text'] == 'accelerometer_bias_walk: 0.3'
    assert record['judges'][0]['inertial']['accelerometer_bias_walk'] == 0.3
    assert record['judges'][0]['inertial']['start']['heading'] == 'auto'
    assert len(record['runs']) == 4


@pytest.mark.parametrize(
    'option',
    [
        '--navsat-config x.yaml', '--case x.yaml', '--filter ekf', '--correct none',
        '--latency /imu/data=0.1', '--front-end enu', '--filtered-gps',
    ],
)  # fmt: skip
@pytest.mark.parametrize('judge', ['error_state', 'gtsam'])
def test_options_of_other_judges_are_refused(
    option: str, judge: str, bags: list[Path], tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / 'x.csv'
    outcome = call(capsys, 'judge', bags[0], '--judge', judge, *option.split(), '--out', out)
    assert outcome.status == 2
    assert f'{option.split()[0]}: does not go with judge {judge}' in outcome.err
    assert len(outcome.err.splitlines()) == 1
    assert not out.exists()


def test_transforms_from_a_file_move_the_antenna(
    bags: list[Path], tmp_path: Path, capsys: Capture
) -> None:
    """An antenna placed one metre higher makes the estimate one metre lower. The settings name
    the file.
    """
    file = tmp_path / 'car.yaml'
    run = read_recording(bags[0])
    assert run.gps is not None
    assert run.imu is not None
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
    judge = ErrorStateJudge.load(transforms=TransformFile.from_file(file))
    assert judge.settings()['transforms']['name'] == 'car.yaml'
