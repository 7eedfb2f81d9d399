# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""docs/howto/python.md does what it says, on recordings that it makes and on real ones."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import matplotlib.figure
import matplotlib.image
import numpy as np
import pytest
from cli_examples import call

import sim2real_eval as s2r
from sim2real_eval.metrics import VelocitySeries
from sim_sensors import Sim2RealError, motion_of


@pytest.fixture(scope='module')
def page(repository: Path) -> list[str]:
    """Code blocks of the page: an analysis, its recordings, sensors."""
    text = (repository / 'docs' / 'howto' / 'python.md').read_text('utf-8')
    return re.findall(r'```python\n(.*?)```', text, re.DOTALL)


@pytest.fixture(scope='module')
def bags(page: list[str], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The recordings that the page makes."""
    folder = tmp_path_factory.mktemp('page')
    names: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec(page[1], names)
    return [folder / bag for bag in names['bags']]


def analysis(page: list[str], bags: list[Path], folder: Path) -> dict[str, Any]:
    """Run the analysis of the page in a folder; return its variables."""
    names: dict[str, Any] = {'bags': bags}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec(page[0], names)
    return names


def test_the_page_computes_the_vepd_of_the_command(
    page: list[str], bags: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip('pandas')
    names = analysis(page, bags, tmp_path)
    result, scores = names['result'], names['scores']
    assert 'VEPD' in capsys.readouterr().out
    done = call(
        capsys, 'vepd', *bags, '--models', 'ch_gauss', '--imu', 'real',
        '--judge-config', 'clean', '--seed', '1', '--jobs', 1, '--json', '--out',
        tmp_path / 'command',
    )  # fmt: skip
    row = next(row for row in json.loads(done.out)['vepd'] if row['scenario'] == 'all')
    assert result.vepd == row['vepd']
    assert (result.distance.n_real, result.distance.n_sim) == (6, 6)
    low, high = result.interval
    assert 0.0 <= low <= high
    assert list(scores['source']) == ['real'] * 6 + ['simulated'] * 6
    assert scores['rmse'].notna().all()
    assert matplotlib.image.imread(tmp_path / 'vepd.png').std() > 0.01


def test_the_page_simulates_sensors(page: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    exec(page[2], {})
    count, latitude = capsys.readouterr().out.split()
    assert int(count) > 100
    assert -90.0 < float(latitude) < 90.0


def scored(noise: float, names: str = 'abcdefgh', seed: int = 1) -> list[s2r.EvaluatedRun]:
    """Runs whose estimate has white errors of a standard deviation, m/s."""
    rng = np.random.default_rng(seed)
    time = np.arange(0.0, 20.0, 0.05)
    truth = 1.0 + np.sin(time)
    return [
        s2r.EvaluatedRun.of_series(
            VelocitySeries(time, truth + noise * rng.standard_normal(len(time)), time, truth), name
        )
        for name in names
    ]


def test_larger_errors_have_the_smallest_possible_p_value_and_equal_errors_1() -> None:
    """Eight pairs: the p-value of the exact test cannot be below 2 / 2**8."""
    larger, alike = s2r.vepd(scored(0.1), scored(0.2, seed=2)), s2r.vepd(scored(0.1), scored(0.1))
    assert larger.p_value == pytest.approx(2 / 2**8)
    assert larger.interval[0] > 0.0
    assert alike.vepd == 0.0
    assert alike.p_value == 1.0


def test_a_magnetometer_twin_is_simulated_in_the_recorded_field() -> None:
    motion = motion_of('circle', duration=5.0)
    recording = s2r.simulate(motion, gps='baseline', imu='ideal', mag='xsens_mtx')
    twin = s2r.simulate(recording, mag='xsens_mtx', seed=3)
    assert len(twin.mag) == len(recording.mag)
    difference = twin.mag.magnetic_field - recording.mag.magnetic_field
    # Two draws of one sensor: noise, far below the 50 uT of the field that turns with the car.
    assert 0.0 < np.abs(difference).max() < 5e-6
    assert len(twin.gps) == len(recording.gps)


def test_a_judge_is_selected_by_name(bags: list[Path]) -> None:
    recording = s2r.read_recording(bags[0])
    assert s2r.run_judge(recording, 'error_state').score.rmse < 1.0


def test_a_real_sensor_can_be_kept_in_a_simulated_run(bags: list[Path]) -> None:
    recording = s2r.read_recording(bags[0])
    twin = s2r.simulate(recording, gps='ch_gauss', imu='real')
    assert twin.imu.linear_acceleration.tolist() == recording.imu.linear_acceleration.tolist()


@pytest.mark.parametrize(
    ('call_wrongly', 'named'),
    [
        (lambda run: s2r.vepd([run], []), '0 simulated'),
        (lambda run: s2r.vepd([run, run], [run]), 'several'),
        (lambda run: s2r.vepd(run, [run]), 'EvaluatedRun'),
        (lambda run: s2r.vepd([run], [run], seed=-1), 'seed'),
        (lambda run: s2r.run_judge('bag'), 'Recording'),
        (lambda run: s2r.simulate('bag', gps='ch_gauss'), 'Recording'),
        (lambda run: s2r.simulate(motion_of('line', duration=2.0), gps='ch_gaus'), 'ch_gauss'),
        (
            lambda run: s2r.simulate(motion_of('line', duration=2.0), gps='ch_gauss', seed=-1),
            'seed',
        ),
    ],
)
def test_wrong_arguments_are_refused(call_wrongly: Any, named: str) -> None:
    with pytest.raises(Sim2RealError, match=named):
        call_wrongly(scored(0.1, 'a')[0])
