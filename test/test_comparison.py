# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Comparisons depend only on their inputs, rank models correctly, and agree with their series."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from cli_examples import run_of, segments, write_runs
from comparison_examples import RUNS, compare, compare_one, study_of, twin, written

from sim2real_eval.common.results import check_result_folder
from sim2real_eval.metrics.options import MetricOptions
from sim2real_eval.metrics.published import vepd_from_series
from sim2real_eval.metrics.scores import vepd
from sim2real_eval.simulation.twin import Twin, cut_to_span
from sim2real_eval.simulation.twin_maker import TwinMaker, synthetic_recording
from sim2real_eval.study.outcome import StudyOutcome
from sim_sensors.core.errors import ParameterError, Sim2RealError
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu.imu import load_imu
from sim_sensors.motion.motions import motion_of

pytestmark = pytest.mark.usefixtures('blank_pictures')


@pytest.fixture(scope='module')
def bags(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_runs(tmp_path_factory.mktemp('bags'), *RUNS)


def by_run(outcome: StudyOutcome) -> dict[tuple[str, str, int], tuple[object, ...]]:
    return {
        tuple(run.key)[1:]: (run.values, outcome.series(run.key).se_vel.tobytes())
        for run in outcome.runs
    }


@pytest.fixture(scope='module')
def outcome(bags: list[Path], tmp_path_factory: pytest.TempPathFactory) -> StudyOutcome:
    study = study_of(twin('ch_gauss'), twin('airsim'))
    return compare(tmp_path_factory.mktemp('outcome') / 'out', bags, study)


def test_a_run_depends_on_its_recording_model_and_seed_alone(
    outcome: StudyOutcome, bags: list[Path], tmp_path: Path
) -> None:
    """Not on the order of the recordings nor on which others and which models run beside."""
    both = by_run(outcome)
    models = study_of(twin('airsim'), twin('ch_gauss'))
    assert by_run(compare(tmp_path / 'out', bags[::-1], models)) == both
    alone = by_run(compare(tmp_path / 'out', bags[1:2], study_of(twin('airsim'))))
    assert alone == {key: both[key] for key in alone}
    other = by_run(compare(tmp_path / 'out', bags[1:2], study_of(twin('airsim'), seed=1)))
    assert other['line_2', 'real', 1] == both['line_2', 'real', 1]
    assert other['line_2', 'airsim', 1] != both['line_2', 'airsim', 1]


def test_repetitions_add_draws_and_do_not_change_the_first(
    bags: list[Path], tmp_path: Path
) -> None:
    once = compare(tmp_path / 'once', bags[:2], study_of(twin('ch_rw')))
    thrice = compare(tmp_path / 'out', bags[:2], study_of(twin('ch_rw'), repetitions=3))
    first = by_run(once)
    assert first == {key: by_run(thrice)[key] for key in first}
    rows = thrice.table('paper_released')
    assert [(row.n_real, row.n_sim) for row in rows] == [(2, 6), (2, 6)]
    draws = [run.score.rmse for run in thrice.runs if not run.is_real]
    assert len(set(draws)) == 6


def test_recordings_with_equal_folder_names_keep_their_scenario(tmp_path: Path) -> None:
    """a/line_1 and b/line_1 take the folder above into their names, in either order."""
    from sim2real_eval.cli.arguments import sources as numbered

    for folder in ('a', 'b'):
        (path,) = write_runs(tmp_path / folder, ('drive_line', 1))
        (path / 'recording.yaml').unlink()
    paths = [str(tmp_path / 'a/line_1'), str(tmp_path / 'b/line_1')]
    for ordered_paths in (paths, paths[::-1]):
        recordings = [source.read() for source in numbered(ordered_paths, [], None)]
        names = sorted((recording.name, recording.scenario) for recording in recordings)
        assert names == [('a_line_1', 'line'), ('b_line_1', 'line')]
    with pytest.raises(ParameterError, match='a/line_1'):
        numbered([paths[0], paths[0] + '/'], [], None)


def test_the_true_model_is_much_nearer_than_a_wrong_one(bags: list[Path], tmp_path: Path) -> None:
    """White noise of 0.03 m at 10 Hz (ch_gauss) becomes a speed error of 0.2 m/s, the walk of
    ch_rw one of 0.01 m/s, both with a spread of 0.01 m/s: a ratio of 3 is ten deviations away.
    """
    study = study_of(twin('ch_rw', 'airsim', 'own'), twin('ch_gauss', 'airsim', 'other'), seed=99)
    comparison = compare(tmp_path / 'out', bags, study)
    rows = comparison.table('paper_released')
    pooled = {row.model: row for row in rows if row.scenario == 'all'}
    assert 0.0 < pooled['own'].vepd < pooled['other'].vepd / 3
    assert (pooled['own'].rank, pooled['other'].rank) == (1, 2)


def test_a_twin_with_the_random_draw_of_the_recording_has_zero_distance() -> None:
    """A twin with the purpose, model, seed and labels of the recording repeats it, except for the
    shift of the map by the error of the first fix. Any other purpose gives another draw.
    """
    recording = run_of('drive_circle', 1)
    model = twin('ch_rw', 'airsim')
    same_draw = TwinMaker(recording, seed=7, purpose='recording').make(model)
    error = same_draw.gps.latitude - recording.gps.latitude
    assert np.ptp(error) < 1e-10
    assert np.allclose(same_draw.imu.angular_velocity, recording.imu.angular_velocity, atol=1e-3)
    runs = compare_one(recording, study_of(model, seed=7))
    models = [run.series.name.rpartition(' ')[2] for run in runs]
    assert models == ['(real)', '(ch_rw)']
    assert vepd([runs[0].score], [runs[1].score]).vepd > 1e-5


def test_a_real_sensor_can_be_kept_in_the_twin(bags: list[Path], tmp_path: Path) -> None:
    """Experiment A: real GPS, simulated IMU."""
    comparison = compare(tmp_path / 'out', bags[:1], study_of(twin(None, 'chrono', 'chrono')))
    real, simulated = comparison.runs
    assert (real.key.model, simulated.key.model) == ('real', 'chrono')
    assert simulated.values['fixes_used'] == real.values['fixes_used']
    assert simulated.score != real.score
    assert not any(note.code == 'twin.rate_differs' for note in simulated.notes)


@pytest.mark.parametrize('component', ['horizontal', 'forward', 'x', 'y'])
def test_the_selected_velocity_component_is_scored(
    bags: list[Path], component: str, tmp_path: Path
) -> None:
    """Truth on a circle: (forward speed, 0) in the body, turned by yaw in the world."""
    outcome = compare(tmp_path / 'out', bags[2:3], study_of(twin('ch_rw'), component=component))
    real = outcome.runs[0]
    truth = run_of('drive_circle', 1).truth
    x, y, z, w = truth.orientation.T
    yaw = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    forward, lateral = truth.linear_velocity[:, 0], truth.linear_velocity[:, 1]
    east = forward * np.cos(yaw) - lateral * np.sin(yaw)
    north = forward * np.sin(yaw) + lateral * np.cos(yaw)
    expected = {'horizontal': np.hypot(east, north), 'forward': forward, 'x': east, 'y': north}
    true_speed = outcome.series(real.key).gt_vel
    np.testing.assert_allclose(true_speed, expected[component], rtol=0, atol=1e-9)
    assert np.ptp(expected[component]) > 0.3
    assert (real.score.rmse == real.values['forward_rmse']) == (component == 'forward')


def test_a_moving_start_causes_a_finding_unless_the_warm_up_excludes_it() -> None:
    """A recording cut to begin at full speed; after the warm-up it is still at full speed, but the
    judge has long started.
    """
    whole = run_of('drive_circle', 1)
    moving = cut_to_span(whole, whole.start_ns + 3_000_000_000, whole.end_ns)
    notes = compare_one(moving, study_of(twin('ch_rw')))[0].notes
    assert sum(note.code == 'truth.moving_start' for note in notes) == 1
    left_out = MetricOptions(warmup=1.0)
    notes = compare_one(moving, study_of(twin('ch_rw'), metric=left_out))[0].notes
    assert not any(note.code == 'truth.moving_start' for note in notes)


def test_the_start_heading_equals_the_true_heading() -> None:
    """North-east by north, IMU without orientation, judge `clean`: forward speed is wrong by the
    cosine of 1.2 rad when the filter believes in east, and right when it is told.
    """
    motion = motion_of('line', seed=0, run='-', duration=8.0, parameters={'heading': 1.2})
    sensors = twin('baseline', 'chrono_default')
    recording = synthetic_recording(motion, sensors, seed=0, run='line_1', scenario='line')
    metric = MetricOptions(warmup=4.0)
    rmse = {}
    for start in (False, True):
        study = study_of(twin('airsim'), judge='clean', metric=metric, start_heading=start)
        rmse[start] = compare_one(recording, study)[0].forward.rmse
    assert rmse[True] < 0.3 * rmse[False]


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline='', encoding='utf-8') as stream:
        return list(csv.DictReader(stream))


def read_columns(path: Path) -> dict[str, np.ndarray]:
    rows = read_rows(path)
    return {name: np.array([float(row[name]) for row in rows if row[name]]) for name in rows[0]}


def signature(
    path: Path, rate: float, *, start: float = 0.0, spectrum: str = 'magnitude'
) -> tuple[float, float]:
    """RMSE and entropy difference of one run as in [Mahajan2024], II-E, written anew."""
    data = read_columns(path)
    end = min(data['se_time'][-1], data['gt_time'][-1])
    grid = start + np.arange(0.0, end - start, 1.0 / rate)
    mid_time = 0.5 * data['se_time'][1:] + 0.5 * data['se_time'][:-1]
    mid_speed = 0.5 * data['se_vel'][1:] + 0.5 * data['se_vel'][:-1]
    estimate = np.interp(grid, mid_time, mid_speed)
    truth = np.interp(grid, data['gt_time'], data['gt_vel'])

    def flatness(signal: np.ndarray) -> float:
        # The discrete Fourier transform by its definition.
        k = np.arange(len(signal))
        size = np.abs(np.exp(-2j * np.pi * np.outer(k, k) / len(k)) @ signal)
        return float(np.exp(np.log(size + 1e-10).mean()) / size.mean())

    difference = abs(flatness(estimate) - flatness(truth))
    return float(np.sqrt(np.mean((estimate - truth) ** 2))), difference


def wasserstein(a: list[float], b: list[float]) -> float:
    """Area between the two empirical distribution functions."""
    x = np.sort(np.concatenate([a, b]))
    below_a = np.searchsorted(np.sort(a), x[:-1], side='right') / len(a)
    below_b = np.searchsorted(np.sort(b), x[:-1], side='right') / len(b)
    return float(np.sum(np.abs(below_a - below_b) * np.diff(x)))


def recomputed(series: Path, rate: float) -> dict[tuple[str, str], tuple[float, float, float]]:
    """W1, W2 and VEPD by (model, scenario) from a `series` folder."""

    def signatures(folder: Path) -> dict[str, list[tuple[float, float]]]:
        scores_by_part: dict[str, list[tuple[float, float]]] = {}
        for path in sorted(folder.iterdir()):
            scenario = path.stem.rpartition('_')[0]
            scores_by_part.setdefault(scenario, []).append(signature(path, rate))
        scores_by_part['all'] = [score for runs in list(scores_by_part.values()) for score in runs]
        return scores_by_part

    real = signatures(series / 'Real')
    result = {}
    for folder in (series / 'Sim').iterdir():
        for scenario, runs in signatures(folder).items():
            w = [wasserstein([s[i] for s in runs], [r[i] for r in real[scenario]]) for i in (0, 1)]
            result[folder.name, scenario] = (w[0], w[1], (w[0] + w[1]) / 2)
    return result


def table(folder: Path) -> dict[tuple[str, str], tuple[float, float, float]]:
    return {
        (row['model'], row['scenario']): (
            float(row['w_rmse']), float(row['w_entropy']), float(row['vepd'])
        )
        for row in read_rows(folder / 'vepd.csv')
    }  # fmt: skip


def assert_table_follows_from_series(folder: Path, rate: float) -> None:
    ours, expected = table(folder), recomputed(folder / 'series/paper_released', rate)
    assert set(ours) == set(expected)
    for key, values in expected.items():
        np.testing.assert_allclose(ours[key], values, rtol=0, atol=1e-12, err_msg='[Mahajan2024]')
    ranks = {}
    for row in read_rows(folder / 'vepd.csv'):
        ranks.setdefault(row['scenario'], []).append((float(row['rank']), float(row['vepd'])))
    for rows in ranks.values():
        assert [value for _, value in sorted(rows)] == sorted(value for _, value in rows)


@pytest.mark.parametrize('metric', [MetricOptions(), MetricOptions(rate=7.3, warmup=1.3)])
def test_table_follows_from_the_exported_series(
    bags: list[Path], tmp_path: Path, metric: MetricOptions
) -> None:
    """By numpy alone, the transform by its sum and W by areas, to 1e-12."""
    study = study_of(twin('ch_gauss'), twin('airsim'), metric=metric, repetitions=2)
    folder = written(tmp_path / 'result', bags, study)
    assert_table_follows_from_series(folder, metric.rate)


def test_table_of_real_recordings_follows_from_the_exported_series(
    real_dir: Path, tmp_path: Path
) -> None:
    metric = MetricOptions(rate=4.0, warmup=5.0)
    study = study_of(twin('ch_rw'), twin('airsim'), metric=metric)
    folder = written(tmp_path / 'result', segments(real_dir, (1, 5)), study)
    assert_table_follows_from_series(folder, metric.rate)


def test_the_warm_up_excludes_the_start_and_changes_nothing_after_it(
    bags: list[Path], tmp_path: Path
) -> None:
    """The whole run scored from 2 s on is the run that `warmup` 2 s exports. To 1e-9: the grid is
    shifted by a float.
    """
    twins = (twin('airsim'),)
    whole = written(tmp_path / 'whole', bags[:1], study_of(*twins))
    cut = written(tmp_path / 'cut', bags[:1], study_of(*twins, metric=MetricOptions(warmup=2.0)))
    for name in ('Real/line_1.csv', 'Sim/airsim/line_1.csv'):
        expected = signature(whole / 'series/paper_released' / name, 15.0, start=2.0)
        score = signature(cut / 'series/paper_released' / name, 15.0)
        np.testing.assert_allclose(score, expected, rtol=0, atol=1e-9)
        assert score != signature(whole / 'series/paper_released' / name, 15.0)


def test_series_read_back_reproduce_the_table_exactly(bags: list[Path], tmp_path: Path) -> None:
    """Use the options of the study without the warm-up, which the series no longer hold."""
    study = study_of(twin('ch_rw'), metric=MetricOptions(rate=9.0, warmup=1.0))
    folder = written(tmp_path / 'result', bags, study)
    result = vepd_from_series(folder / 'series/paper_released', MetricOptions(rate=9.0))
    again = {(r.model, r.scenario): (r.w_rmse, r.w_entropy, r.vepd) for r in result.rows}
    assert again == table(folder)


def test_the_record_states_how_to_repeat_the_study(bags: list[Path], tmp_path: Path) -> None:
    study = study_of(twin('ch_rw'), seed=5, repetitions=2, metric=MetricOptions(rate=9.0))
    folder = written(tmp_path / 'result', bags, study)
    record = json.loads((folder / 'study.json').read_text(encoding='utf-8'))
    assert (record['seed'], record['repetitions'], record['metric']['rate']) == (5, 2, 9.0)
    assert {'python', 'numpy', 'numba', 'sim2real_sensors'} <= set(record['versions'])
    assert [recording['path'] for recording in record['recordings']] == list(map(str, bags))
    assert len({recording['sha256'] for recording in record['recordings']}) == len(bags)
    model = record['models']['ch_rw']
    gps = type(load_gps('ch_rw')).from_mapping(model['gps'], 'record')
    assert Twin('ch_rw', gps, load_imu('chrono')) == study.twins[0]


def test_a_folder_is_replaced_only_if_it_holds_a_result(tmp_path: Path) -> None:
    (tmp_path / 'full').mkdir()
    (tmp_path / 'full' / 'thesis.tex').touch()
    for folder in (tmp_path / 'full', tmp_path / 'full' / 'thesis.tex' / 'deep'):
        with pytest.raises(Sim2RealError):
            check_result_folder(folder, 'study.json', overwrite=True)
    (tmp_path / 'full' / 'study.json').touch()
    check_result_folder(tmp_path / 'full', 'study.json', overwrite=True)
    with pytest.raises(Sim2RealError):
        check_result_folder(tmp_path / 'full', 'study.json', overwrite=False)
