# SPDX-License-Identifier: Apache-2.0
"""The folder of a comparison: its table follows from its series, its record repeats the study."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from cli_examples import segments, write_runs
from comparison_examples import RUNS, study_of, twin, written

from sim2real_eval.common.results import check_result_folder
from sim2real_eval.metrics.options import MetricOptions
from sim2real_eval.metrics.published import vepd_from_series
from sim2real_eval.metrics.series import read_series_folder, write_series_folder
from sim2real_eval.simulation.twin import Twin
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu.imu import load_imu

pytestmark = pytest.mark.usefixtures('blank_pictures')


@pytest.fixture(scope='module')
def bags(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_runs(tmp_path_factory.mktemp('bags'), *RUNS)


def read_columns(path: Path) -> dict[str, np.ndarray]:
    with path.open(newline='', encoding='utf-8') as stream:
        rows = list(csv.DictReader(stream))
    return {
        name: np.array([float(row[name]) for row in rows if row[name] != '']) for name in rows[0]
    }


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
            scores_by_part.setdefault(path.stem.rpartition('_')[0], []).append(
                signature(path, rate)
            )
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
    with (folder / 'vepd.csv').open(newline='', encoding='utf-8') as stream:
        return {
            (row['model'], row['scenario']): (
                float(row['w_rmse']), float(row['w_entropy']), float(row['vepd'])
            )
            for row in csv.DictReader(stream)
        }  # fmt: skip


def assert_table_follows_from_series(folder: Path, rate: float) -> None:
    ours, expected = table(folder), recomputed(folder / 'series/paper_released', rate)
    assert set(ours) == set(expected)
    for key, values in expected.items():
        np.testing.assert_allclose(ours[key], values, rtol=0, atol=1e-12)
    ranks = {}
    with (folder / 'vepd.csv').open(newline='', encoding='utf-8') as stream:
        for row in csv.DictReader(stream):
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


def test_warmup_leaves_out_the_start_and_changes_nothing_after_it(
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


def test_series_read_back_give_the_very_table(bags: list[Path], tmp_path: Path) -> None:
    """Use the options of the study without the warm-up, which the series no longer hold."""
    study = study_of(twin('ch_rw'), metric=MetricOptions(rate=9.0, warmup=1.0))
    folder = written(tmp_path / 'result', bags, study)
    result = vepd_from_series(folder / 'series/paper_released', MetricOptions(rate=9.0))
    again = {(r.model, r.scenario): (r.w_rmse, r.w_entropy, r.vepd) for r in result.rows}
    assert again == table(folder)


def test_series_survive_the_published_names(bags: list[Path], tmp_path: Path) -> None:
    """Written as the paper's scripts expect (Real/path_1.csv, Sim/chWalk_results/...)."""
    folder = written(tmp_path / 'result', bags, study_of(twin('ch_rw')))
    read = read_series_folder(folder / 'series/paper_released').series
    published = write_series_folder(tmp_path / 'data', read, published_names=True)
    assert (published / 'Real/path_2.csv').is_file()
    assert (published / 'Sim/chWalk_results/circle_1.csv').is_file()
    again = vepd_from_series(published)
    assert {(row.model, row.scenario): row.vepd for row in again.rows} == {
        key: values[2] for key, values in table(folder).items()
    }


def test_record_tells_how_to_repeat_the_study(bags: list[Path], tmp_path: Path) -> None:
    study = study_of(twin('ch_rw'), seed=5, repetitions=2, metric=MetricOptions(rate=9.0))
    folder = written(tmp_path / 'result', bags, study)
    record = json.loads((folder / 'study.json').read_text(encoding='utf-8'))
    assert (record['seed'], record['repetitions'], record['metric']['rate']) == (5, 2, 9.0)
    assert {'python', 'numpy', 'numba', 'sim2real_sensors'} <= set(record['versions'])
    assert [recording['path'] for recording in record['recordings']] == [
        str(path) for path in bags
    ]
    assert len({recording['sha256'] for recording in record['recordings']}) == len(bags)
    model = record['models']['ch_rw']
    rebuilt = Twin(
        'ch_rw', type(load_gps('ch_rw')).from_mapping(model['gps'], 'record'), load_imu('chrono')
    )
    assert rebuilt == study.twins[0]
    assert [file['name'] for file in record['judges'][0]['files']] == [
        'paper_released.yaml', 'paper_released_navsat.yaml'
    ]  # fmt: skip


def test_folder_is_refused_unless_it_is_ours_to_replace(tmp_path: Path) -> None:
    def check(folder: Path, *, overwrite: bool) -> None:
        check_result_folder(folder, 'study.json', overwrite=overwrite)

    check(tmp_path / 'new', overwrite=False)
    (tmp_path / 'empty').mkdir()
    check(tmp_path / 'empty', overwrite=False)
    (tmp_path / 'full').mkdir()
    (tmp_path / 'full' / 'thesis.tex').touch()
    with pytest.raises(Sim2RealError, match='exists; choose another'):
        check(tmp_path / 'full', overwrite=False)
    with pytest.raises(Sim2RealError, match=r'study\.json'):
        check(tmp_path / 'full', overwrite=True)
    with pytest.raises(Sim2RealError, match='is a file'):
        check(tmp_path / 'full' / 'thesis.tex' / 'deep' / 'er', overwrite=True)
    (tmp_path / 'full' / 'study.json').touch()
    check(tmp_path / 'full', overwrite=True)
