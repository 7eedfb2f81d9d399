# SPDX-License-Identifier: Apache-2.0
"""docs/howto/python.md does what it says, on recordings that it makes and on real ones."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
import sys
from pathlib import Path
from typing import Any

import matplotlib.figure
import matplotlib.image
import numpy as np
import pytest
from cli_examples import call, segments

import sim2real_eval as s2r
from sim2real_eval.metrics import VelocitySeries
from sim_sensors import Sim2RealError, load_gps, motion_of


@pytest.fixture(scope='module')
def page(repository: Path) -> list[str]:
    """The code of the page: the analysis, recordings to do it on, sensors alone."""
    text = (repository / 'docs' / 'howto' / 'python.md').read_text('utf-8')
    return re.findall(r'```python\n(.*?)```', text, re.DOTALL)


@pytest.fixture(scope='module')
def made(page: list[str], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
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


def test_the_analysis_takes_at_most_fifteen_lines(page: list[str]) -> None:
    assert len(page) == 3
    assert len(page[0].strip().splitlines()) <= 15


def test_the_page_gives_what_the_command_gives(
    page: list[str], made: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip('pandas')
    names = analysis(page, made, tmp_path)
    result, scores = names['result'], names['scores']
    assert 'VEPD' in capsys.readouterr().out
    done = call(
        capsys, 'vepd', '--real', *made, '--models', 'ch_gauss', '--imu', 'chrono',
        '--judge-config', 'clean', '--seed', '1', '--jobs', 1, '--json', '--out',
        tmp_path / 'command',
    )  # fmt: skip
    row = next(one for one in json.loads(done.out)['vepd'] if one['scenario'] == 'all')
    assert result.vepd == row['vepd']
    assert (result.distance.n_real, result.distance.n_sim) == (4, 4)
    low, high = result.interval
    assert 0.0 <= low <= high
    assert list(scores['source']) == ['real'] * 4 + ['simulated'] * 4
    assert scores['rmse'].notna().all()
    image = matplotlib.image.imread(tmp_path / 'vepd.png')
    assert image.std() > 0.01


def test_sensors_alone(page: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    exec(page[2], {})
    count, latitude = capsys.readouterr().out.split()
    assert int(count) > 100
    assert -90.0 < float(latitude) < 90.0


def test_the_page_on_real_recordings(page: list[str], real_dir: Path, tmp_path: Path) -> None:
    """Two segments: a distance, and in words that they are too few for a p-value."""
    pytest.importorskip('pandas')
    names = analysis(page, segments(real_dir, (1, 2)), tmp_path)
    assert names['result'].vepd > 0.0
    assert names['result'].p_value is None
    assert 'too few' in str(names['result'])


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


def test_larger_errors_are_found_and_equal_ones_are_not() -> None:
    """Eight pairs: the p-value of the exact test cannot be below 2 / 2**8."""
    larger, alike = s2r.vepd(scored(0.1), scored(0.2, seed=2)), s2r.vepd(scored(0.1), scored(0.1))
    assert larger.p_value == pytest.approx(2 / 2**8)
    assert larger.interval is not None
    assert larger.interval[0] > 0.0
    assert alike.vepd == 0.0
    assert alike.p_value == 1.0


def test_a_result_is_plain_json_and_draws_on_given_axes() -> None:
    result = s2r.vepd(scored(0.1), scored(0.2, seed=2))
    record = json.loads(json.dumps(result.to_dict()))
    assert record['vepd'] == result.vepd
    assert [run['source'] for run in record['runs']] == ['real'] * 8 + ['simulated'] * 8
    assert len(str(result).splitlines()) == 5 + len(result.notes)
    figure = matplotlib.figure.Figure()
    axes = figure.add_subplot()
    assert result.plot(axes) is figure
    assert [len(drawn.get_offsets()) for drawn in axes.collections] == [8, 8]


def test_without_pandas_one_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, 'pandas', None)
    result = s2r.vepd(scored(0.1, 'a'), scored(0.2, 'a'))
    with pytest.raises(Sim2RealError, match='pip install') as caught:
        result.to_dataframe()
    assert '\n' not in str(caught.value)


def test_what_cannot_be_compared_is_refused() -> None:
    run = scored(0.1, 'a')
    with pytest.raises(Sim2RealError, match='1 real and 0 simulated runs'):
        s2r.vepd(run, [])
    with pytest.raises(Sim2RealError, match='a: is the name of several real runs'):
        s2r.vepd([*run, *run], run)


def test_a_magnetometer_is_simulated_in_the_field_of_the_recorded_one() -> None:
    motion = motion_of('circle', duration=5.0)
    recording = s2r.simulate(motion, gps='baseline', imu='ideal', mag='xsens_mtx')
    twin = s2r.simulate(recording, mag='xsens_mtx', seed=3)
    assert len(twin.mag) == len(recording.mag)
    difference = twin.mag.magnetic_field - recording.mag.magnetic_field
    # Two draws of one sensor: noise, far below the 50 uT of the field that turns with the car.
    assert 0.0 < np.abs(difference).max() < 5e-6
    assert len(twin.gps) == len(recording.gps)


def test_another_judge_by_its_name_and_a_model_that_is_misspelt(made: list[Path]) -> None:
    recording = s2r.read_recording(made[0])
    assert s2r.run_judge(recording, 'error_state').score.rmse < 1.0
    with pytest.raises(Sim2RealError, match='did you mean ch_gauss'):
        s2r.simulate(recording, gps='ch_gaus')
    for nothing in (None, 'real'):
        with pytest.raises(Sim2RealError, match='gps, imu and mag'):
            s2r.simulate(recording, gps=nothing)
    twin = s2r.simulate(recording, gps='ch_gauss', imu='real')
    assert twin.imu.linear_acceleration.tolist() == recording.imu.linear_acceleration.tolist()


def test_what_calls_return_prints_as_a_line_and_findings_as_sentences(made: list[Path]) -> None:
    """Not as arrays of thousands of numbers, nor as declarations."""
    recording = s2r.read_recording(made[0])
    assert str(recording).startswith('<Recording drive1 (default): 12 s, 1201 imu')
    assert str(recording.truth).startswith('<OdometryArray: 1201 messages')
    twin = s2r.simulate(recording, gps='ch_gauss', imu='chrono', seed=1)
    run = s2r.run_judge(twin, 'clean')
    (heading,) = [note for note in run.notes if note.code == 'rl.no_start_heading']
    assert re.fullmatch(
        r'<VelocitySeries drive1: \d+ estimates, 1201 of the truth, 12 s>', str(run.series)
    )
    assert repr(heading).startswith('<decisive rl.no_start_heading: ')
    assert f'1 of 1 simulated runs: {heading}' in str(s2r.vepd([run], [run]))
    slow = s2r.simulate(recording, gps=dataclasses.replace(load_gps('ch_gauss'), rate=2.0), seed=1)
    assert 'twin.rate_differs' in {note.code for note in s2r.run_judge(slow, 'clean').notes}
    told = s2r.run_judge(twin, 'clean', start_heading=True)
    assert heading not in told.notes
    assert told.score != run.score


def test_wrong_arguments_are_errors_of_ours(made: list[Path]) -> None:
    recording = s2r.read_recording(made[0])
    run = s2r.run_judge(recording, 'clean')
    with pytest.raises(Sim2RealError, match='did you mean gps'):
        recording.with_messages('gpss', None)
    with pytest.raises(Sim2RealError, match='must be MetricOptions'):
        s2r.run_judge(recording, metric={'warmup': 5.0})
    slow = s2r.MetricOptions(rate=4.0)
    for wrong in ((recording, recording), ([recording], [recording]), (run, [run])):
        with pytest.raises(Sim2RealError, match='must be a list of EvaluatedRun'):
            s2r.vepd(*wrong)
    for key, value in itertools.product(('seed', 'repetition'), (-1, 1.5, '1', None)):
        with pytest.raises(Sim2RealError, match=f'{key}: {value!r} is not allowed'):
            s2r.simulate(recording, gps='ch_gauss', **{key: value})
    for call_wrongly, problem in (
        (lambda: s2r.run_judge('bag'), "'bag' is not allowed; must be a Recording"),
        (lambda: s2r.run_judge(recording, start_heading=40), '40 is not allowed; must be True or'),
        (lambda: s2r.simulate('bag', gps='ch_gauss'), "'bag' is not allowed; must be a Recording"),
        (lambda: s2r.vepd([run], [s2r.run_judge(recording, 'paper_released')]), 'judge is'),
        (lambda: s2r.vepd([run], [s2r.run_judge(recording, 'clean', metric=slow)]), 'rate is 15'),
    ):
        with pytest.raises(Sim2RealError, match=problem):
            call_wrongly()
    with pytest.raises(Sim2RealError, match='seed: -1 is not allowed'):
        s2r.vepd([run], [run], seed=-1)
