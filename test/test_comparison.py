# SPDX-License-Identifier: Apache-2.0
"""The comparison: its numbers follow from its files, and from nothing but its inputs."""

from __future__ import annotations

import csv
import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from cli_examples import contents, run_of, segments, write_runs

from sim2real_eval.comparison import Comparison, ComparisonOptions, Source, compare, compare_one
from sim2real_eval.comparison_folder import check_target, comparison_record, write_comparison
from sim2real_eval.judge_setup import JudgeSetup
from sim2real_eval.metrics import MetricOptions, vepd, vepd_from_series
from sim2real_eval.series_folder import read_series_folder, write_series_folder
from sim2real_eval.synthetic import motion_of, synthetic_recording
from sim2real_eval.twin import Twin, within
from sim_sensors.catalogue import load_gps, load_imu
from sim_sensors.errors import Sim2RealError

RUNS = [(f'drive_{motion}', n) for motion in ('line', 'circle') for n in (1, 2)]


def twin(gps: str | None, imu: str | None = 'chrono', label: str = '') -> Twin:
    gps_model = None if gps is None else load_gps(gps)
    imu_model = None if imu is None else load_imu(imu)
    return Twin(label or str(gps), gps_model, imu_model)


def options(*twins: Twin, **others: object) -> ComparisonOptions:
    setup = JudgeSetup.load(str(others.pop('judge', 'paper_released')))
    return ComparisonOptions(twins=twins, setup=setup, **others)


@pytest.fixture(scope='module')
def bags(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_runs(tmp_path_factory.mktemp('bags'), *RUNS)


def sources(paths: list[Path]) -> list[Source]:
    return [Source(str(path)) for path in paths]


# --- an independent computation from the files -----------------------------------------------


def read_columns(path: Path) -> dict[str, np.ndarray]:
    with path.open(newline='', encoding='utf-8') as stream:
        rows = list(csv.DictReader(stream))
    return {
        name: np.array([float(row[name]) for row in rows if row[name] != '']) for name in rows[0]
    }


def signature(
    path: Path, rate: float, *, start: float = 0.0, spectrum: str = 'magnitude'
) -> tuple[float, float]:
    """RMSE and entropy difference of one run as in models.md section 19, written anew."""
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
        found: dict[str, list[tuple[float, float]]] = {}
        for path in sorted(folder.iterdir()):
            found.setdefault(path.stem.rpartition('_')[0], []).append(signature(path, rate))
        found['all'] = [one for runs in list(found.values()) for one in runs]
        return found

    real = signatures(series / 'Real')
    result = {}
    for folder in (series / 'Sim').iterdir():
        for scenario, runs in signatures(folder).items():
            w = [wasserstein([s[i] for s in runs], [r[i] for r in real[scenario]]) for i in (0, 1)]
            result[folder.name, scenario] = (w[0], w[1], (w[0] + w[1]) / 2)
    return result


def table(folder: Path) -> dict[tuple[str, str], tuple[float, float, float]]:
    with (folder / 'vepd.csv').open(newline='', encoding='utf-8') as stream:
        return {
            (row['model'], row['scenario']): (
                float(row['w_rmse']), float(row['w_entropy']), float(row['vepd'])
            )
            for row in csv.DictReader(stream)
        }  # fmt: skip


def written(folder: Path, paths: list[Path], study: ComparisonOptions, jobs: int = 1) -> Path:
    comparison = compare(sources(paths), study, jobs=jobs)
    record = comparison_record(comparison, sources(paths), study)
    return write_comparison(folder, comparison, record, speed_label='speed')


def assert_table_follows_from_series(folder: Path, rate: float) -> None:
    ours, theirs = table(folder), recomputed(folder / 'series', rate)
    assert set(ours) == set(theirs)
    for key, values in theirs.items():
        np.testing.assert_allclose(ours[key], values, rtol=0, atol=1e-12)
    ranks = {}
    with (folder / 'vepd.csv').open(newline='', encoding='utf-8') as stream:
        for row in csv.DictReader(stream):
            ranks.setdefault(row['scenario'], []).append((float(row['rank']), float(row['vepd'])))
    for rows in ranks.values():
        assert [value for _, value in sorted(rows)] == sorted(value for _, value in rows)


@pytest.mark.parametrize(
    'metric', [MetricOptions(), MetricOptions(rate=7.3), MetricOptions(rate=20.0, warmup=1.3)]
)
def test_table_follows_from_the_exported_series(
    bags: list[Path], tmp_path: Path, metric: MetricOptions
) -> None:
    """By numpy alone, the transform by its sum and W by areas, to 1e-12."""
    study = options(twin('ch_gauss'), twin('airsim'), metric=metric, repetitions=2)
    folder = written(tmp_path / 'result', bags, study)
    assert_table_follows_from_series(folder, metric.rate)


@pytest.mark.parametrize('metric', [MetricOptions(), MetricOptions(rate=4.0, warmup=5.0)])
def test_table_of_real_recordings_follows_from_the_exported_series(
    real_dir: Path, tmp_path: Path, metric: MetricOptions
) -> None:
    study = options(twin('ch_rw'), twin('airsim'), metric=metric)
    folder = written(tmp_path / 'result', segments(real_dir, (1, 5)), study)
    assert_table_follows_from_series(folder, metric.rate)


def test_warmup_leaves_out_the_start_and_changes_nothing_after_it(
    bags: list[Path], tmp_path: Path
) -> None:
    """The whole run scored from 2 s on is the run that `warmup` 2 s exports. To 1e-9: the grid is
    shifted by a float.
    """
    twins = (twin('airsim'),)
    whole = written(tmp_path / 'whole', bags[:1], options(*twins))
    cut = written(tmp_path / 'cut', bags[:1], options(*twins, metric=MetricOptions(warmup=2.0)))
    for name in ('Real/line_1.csv', 'Sim/airsim/line_1.csv'):
        expected = signature(whole / 'series' / name, 15.0, start=2.0)
        found = signature(cut / 'series' / name, 15.0)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
        assert found != signature(whole / 'series' / name, 15.0)


def test_series_read_back_give_the_very_table(bags: list[Path], tmp_path: Path) -> None:
    """With the options of the study but the warm-up, which is out already; bit by bit."""
    study = options(twin('ch_rw'), metric=MetricOptions(rate=9.0, warmup=1.0))
    folder = written(tmp_path / 'result', bags, study)
    result = vepd_from_series(folder / 'series', MetricOptions(rate=9.0))
    again = {(r.model, r.scenario): (r.w_rmse, r.w_entropy, r.vepd) for r in result.rows}
    assert again == table(folder)


def test_series_survive_the_published_names(bags: list[Path], tmp_path: Path) -> None:
    """Written as the paper's scripts expect (Real/path_1.csv, Sim/chWalk_results/...)."""
    folder = written(tmp_path / 'result', bags, options(twin('ch_rw')))
    read = read_series_folder(folder / 'series').series
    published = write_series_folder(tmp_path / 'data', read, published_names=True)
    assert (published / 'Real/path_2.csv').is_file()
    assert (published / 'Sim/chWalk_results/circle_1.csv').is_file()
    again = vepd_from_series(published)
    assert {(row.model, row.scenario): row.vepd for row in again.rows} == {
        key: values[2] for key, values in table(folder).items()
    }


# --- what the numbers may depend on ------------------------------------------------------------


def by_run(comparison: Comparison) -> dict[tuple[str, str, int], tuple[object, ...]]:
    return {
        (run.model, run.recording, run.repetition): (
            run.score, run.forward, run.series.se_vel.tobytes(), run.estimates, run.fixes_used
        )
        for run in comparison.runs
    }  # fmt: skip


def test_a_run_depends_on_its_recording_model_and_seed_alone(bags: list[Path]) -> None:
    """Not on the order of the recordings nor on which others and which models run beside."""
    both = by_run(compare(sources(bags), options(twin('ch_gauss'), twin('airsim'))))
    turned = by_run(compare(sources(bags[::-1]), options(twin('airsim'), twin('ch_gauss'))))
    assert turned == both
    alone = by_run(compare(sources(bags[1:2]), options(twin('airsim'))))
    assert alone == {key: both[key] for key in alone}
    other = by_run(compare(sources(bags[1:2]), options(twin('airsim'), seed=1)))
    assert other['real', 'line_2', 1] == both['real', 'line_2', 1]
    assert other['airsim', 'line_2', 1] != both['airsim', 'line_2', 1]


def test_processes_change_no_byte(bags: list[Path], tmp_path: Path) -> None:
    study = options(twin('ch_rw'), repetitions=2)
    one = contents(written(tmp_path / 'one' / 'r', bags, study))
    two = contents(written(tmp_path / 'two' / 'r', bags, study, jobs=2))
    assert one == two
    assert {'vepd.csv', 'runs.csv', 'vepd.json', 'velocity.png', 'histogram_rmse.png'} <= set(one)


def test_repetitions_add_draws_and_keep_the_first(bags: list[Path]) -> None:
    once = compare(sources(bags[:2]), options(twin('ch_rw')))
    thrice = compare(sources(bags[:2]), options(twin('ch_rw'), repetitions=3))
    assert by_run(once).items() <= by_run(thrice).items()
    assert [(row.n_real, row.n_sim) for row in thrice.rows] == [(2, 6), (2, 6)]
    draws = [run.score.rmse for run in thrice.runs if run.model == 'ch_rw']
    assert len(set(draws)) == 6
    keys = thrice.keys()
    assert [key.run for key in keys if key.source == 'ch_rw'] == [1, 2, 3, 4, 5, 6]


def test_recordings_of_equal_folder_names_stay_in_their_scenario(tmp_path: Path) -> None:
    """a/line_1 and b/line_1: the second is called line_1-2, and is a line as well."""
    from sim2real_eval.cli.arguments import sources as numbered

    for folder in ('a', 'b'):
        (path,) = write_runs(tmp_path / folder, ('drive_line', 1))
        (path / 'recording.yaml').unlink()
    given = numbered([str(tmp_path / 'a/line_1'), str(tmp_path / 'b/line_1')], [], None)
    recordings = [source.read() for source in given]
    assert [(one.name, one.scenario) for one in recordings] == [
        ('line_1', 'line'), ('line_1-2', 'line')
    ]  # fmt: skip


# --- what VEPD says ------------------------------------------------------------------------------


def test_a_set_has_no_distance_from_itself(bags: list[Path]) -> None:
    comparison = compare(sources(bags), options(twin('airsim')))
    for name in ('real', 'airsim'):
        scores = comparison.scores(name)
        found = vepd(scores, scores[::-1])
        assert (found.w_rmse, found.w_entropy, found.vepd) == (0.0, 0.0, 0.0)


def test_the_right_model_is_much_nearer_than_a_wrong_one(bags: list[Path]) -> None:
    """The recordings' own models drawn anew (ch_rw, airsim IMU) against ch_gauss: a tenth of it.

    Under paper_released the white 0.03 m of ch_gauss at 10 Hz becomes a speed error of some
    0.2 m/s with a spread over runs of 0.01 m/s, that of ch_rw is some 0.01 m/s. The ratio of
    the two VEPDs thus exceeds 3 by more than ten deviations of either: false alarms << 1e-6.
    """
    study = options(twin('ch_rw', 'airsim', 'own'), twin('ch_gauss', 'airsim', 'other'), seed=99)
    comparison = compare(sources(bags), study)
    pooled = {row.model: row for row in comparison.rows if row.scenario == 'all'}
    assert 0.0 < pooled['own'].vepd < pooled['other'].vepd / 3
    assert (pooled['own'].rank, pooled['other'].rank) == (1, 2)


def test_the_very_draw_of_the_recording_has_no_distance() -> None:
    """A twin with model, seed and labels of the recording is the recording, to the first fix's
    error (some cm), by which the map is shifted on the Earth: UTM's scale changes by 1e-8.
    """
    recording = run_of('drive_circle', 1)
    again = dataclasses.replace(recording, name='circle_1 real')
    runs = compare_one(again, options(twin('ch_rw', 'airsim'), seed=7))
    assert [run.model for run in runs] == ['real', 'ch_rw']
    assert vepd([runs[0].score], [runs[1].score]).vepd < 1e-6


def test_a_sensor_can_stay_real(bags: list[Path]) -> None:
    """Experiment A: real GPS, simulated IMU."""
    comparison = compare(sources(bags[:1]), options(twin(None, 'chrono', 'chrono')))
    real, simulated = comparison.runs
    assert (real.model, simulated.model) == ('real', 'chrono')
    assert simulated.fixes_used == real.fixes_used
    assert simulated.score != real.score
    assert not any('simulated GPS' in note for note in simulated.notes)


@pytest.mark.parametrize('component', ['horizontal', 'forward', 'x', 'y'])
def test_component_is_what_is_scored(bags: list[Path], component: str) -> None:
    """Truth on a circle: (forward speed, 0) in the body, turned by yaw in the world."""
    real = compare(sources(bags[2:3]), options(twin('ch_rw'), component=component)).runs[0]
    truth = run_of('drive_circle', 1).truth
    x, y, z, w = truth.orientation.T
    yaw = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    forward, left = truth.linear_velocity[:, 0], truth.linear_velocity[:, 1]
    east = forward * np.cos(yaw) - left * np.sin(yaw)
    north = forward * np.sin(yaw) + left * np.cos(yaw)
    expected = {'horizontal': np.hypot(east, north), 'forward': forward, 'x': east, 'y': north}
    np.testing.assert_allclose(real.series.gt_vel, expected[component], rtol=0, atol=1e-9)
    assert np.ptp(expected[component]) > 0.3
    assert (real.score == real.forward) == (component == 'forward')


def test_a_start_at_speed_is_told_until_the_warmup_leaves_it_out() -> None:
    """A recording cut to begin at full speed; after the warm-up it is still at full speed, but the
    judge has long started.
    """
    whole = run_of('drive_circle', 1)
    moving = within(whole, whole.start_ns + 3_000_000_000, whole.end_ns)
    told = compare_one(moving, options(twin('ch_rw')))[0].notes
    assert sum('--warmup SECONDS leaves the start out' in note for note in told) == 1
    left_out = MetricOptions(warmup=1.0)
    told = compare_one(moving, options(twin('ch_rw'), metric=left_out))[0].notes
    assert not any('--warmup' in note for note in told)


def test_start_heading_is_the_true_one() -> None:
    """North-east by north, IMU without orientation, judge `clean`: forward speed is wrong by the
    cosine of 1.2 rad when the filter believes in east, and right when it is told.
    """
    motion = motion_of('line', seed=0, run='-', duration=8.0, parameters={'heading': 1.2})
    sensors = twin('baseline', 'chrono_default')
    recording = synthetic_recording(motion, sensors, seed=0, run='line_1', scenario='line')
    metric = MetricOptions(warmup=4.0)
    blind, told = (
        compare_one(
            recording, options(twin('airsim'), judge='clean', metric=metric, start_heading=start)
        )[0].forward.rmse
        for start in (False, True)
    )
    assert told < 0.3 * blind


# --- broken recordings ---------------------------------------------------------------------------


def test_one_broken_recording_spoils_no_other(bags: list[Path], tmp_path: Path) -> None:
    given = [bags[0], tmp_path / 'missing', bags[1]]
    comparison = compare(sources(given), options(twin('ch_rw')))
    (failure,) = comparison.failures
    assert failure.recording == str(tmp_path / 'missing')
    assert 'no such file or folder' in failure.reason
    assert by_run(comparison) == by_run(
        compare(sources([bags[0], bags[1]]), options(twin('ch_rw')))
    )


def test_nothing_left_is_an_error(tmp_path: Path) -> None:
    gone = sources([tmp_path / 'a', tmp_path / 'b'])
    with pytest.raises(Sim2RealError, match=r'a: no such file or folder \(and 1 more\)'):
        compare(gone, options(twin('ch_rw')))
    with pytest.raises(Sim2RealError, match='no recording given'):
        compare([], options(twin('ch_rw')))


def test_two_recordings_of_one_name_are_refused(bags: list[Path]) -> None:
    with pytest.raises(Sim2RealError, match='line_1: is the name of several recordings'):
        compare(sources([bags[0], bags[0]]), options(twin('ch_rw')))


# --- the folder ----------------------------------------------------------------------------------


def test_record_tells_how_to_repeat_the_study(bags: list[Path], tmp_path: Path) -> None:
    study = options(twin('ch_rw'), seed=5, repetitions=2, metric=MetricOptions(rate=9.0))
    folder = written(tmp_path / 'result', bags, study)
    record = json.loads((folder / 'vepd.json').read_text(encoding='utf-8'))
    assert (record['seed'], record['repetitions'], record['metric']['rate']) == (5, 2, 9.0)
    assert {'python', 'numpy', 'numba', 'sim2real_sensors'} <= set(record['versions'])
    assert [one['path'] for one in record['recordings']] == [str(path) for path in bags]
    assert len({one['sha256'] for one in record['recordings']}) == len(bags)
    model = record['models']['ch_rw']
    rebuilt = Twin(
        'ch_rw',
        type(load_gps('ch_rw')).from_mapping(model['gps'], 'record'),
        load_imu('chrono'),
    )
    assert rebuilt == study.twins[0]
    assert [file['name'] for file in record['judge']['files']] == [
        'paper_released.yaml', 'paper_released_navsat.yaml'
    ]  # fmt: skip


def test_folder_is_refused_unless_it_is_ours_to_replace(tmp_path: Path) -> None:
    check_target(tmp_path / 'new', overwrite=False)
    (tmp_path / 'empty').mkdir()
    check_target(tmp_path / 'empty', overwrite=False)
    (tmp_path / 'full').mkdir()
    (tmp_path / 'full' / 'thesis.tex').touch()
    with pytest.raises(Sim2RealError, match='exists; choose another'):
        check_target(tmp_path / 'full', overwrite=False)
    with pytest.raises(Sim2RealError, match=r'holds no vepd\.json'):
        check_target(tmp_path / 'full', overwrite=True)
    with pytest.raises(Sim2RealError, match='is a file'):
        check_target(tmp_path / 'full' / 'thesis.tex' / 'deep' / 'er', overwrite=True)
    (tmp_path / 'full' / 'vepd.json').touch()
    check_target(tmp_path / 'full', overwrite=True)
