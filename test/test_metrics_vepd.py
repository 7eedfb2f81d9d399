# SPDX-License-Identifier: Apache-2.0
"""Truths about VEPD over sets of runs, its table, and the numbers printed in the paper."""

from __future__ import annotations

import csv
import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import welch
from scipy.stats import rankdata, wasserstein_distance

from sim2real_eval.metrics.judged_world import spectrum
from sim2real_eval.metrics.options import MetricError, MetricOptions
from sim2real_eval.metrics.published import TABLE_1, TABLE_2, published_vepd, vepd_from_series
from sim2real_eval.metrics.scores import (
    VEPD_COLUMNS,
    RunScore,
    coverage_notes,
    prepare,
    ranks,
    vepd,
    vepd_table,
)
from sim2real_eval.metrics.series import (
    MODEL_FOLDERS,
    SCENARIO_FILES,
    SeriesError,
    SeriesKey,
    VelocitySeries,
    write_series_folder,
)
from sim_sensors.core.seeding import stream


def score(rmse: float, entropy: float) -> RunScore:
    return RunScore(rmse, 0.0, entropy, entropy, 300, 20.0)


values = st.tuples(st.floats(0, 10), st.floats(0, 1))
sets = st.lists(values, min_size=1, max_size=12)


def scores(pairs: list[tuple[float, float]]) -> list[RunScore]:
    return [score(*pair) for pair in pairs]


@given(sets, sets)
def test_vepd_is_a_distance(
    first: list[tuple[float, float]], second: list[tuple[float, float]]
) -> None:
    """Zero to itself in any order, symmetric, the mean of its parts, and never negative."""
    assert vepd(scores(first), scores(first[::-1])).vepd == 0.0
    forward, back = vepd(scores(first), scores(second)), vepd(scores(second), scores(first))
    assert forward.vepd == pytest.approx(back.vepd, abs=1e-12)
    assert forward.vepd == (forward.w_rmse + forward.w_entropy) / 2 >= 0
    assert (
        (forward.n_real, forward.n_sim) == (len(first), len(second)) == (back.n_sim, back.n_real)
    )


@given(st.lists(st.tuples(values, values), min_size=1, max_size=12))
def test_sets_of_equal_size_are_compared_rank_by_rank(
    pairs: list[tuple[tuple[float, float], tuple[float, float]]],
) -> None:
    real, sim = zip(*pairs, strict=True)
    result = vepd(scores(list(real)), scores(list(sim)))
    for index, distance in ((0, result.w_rmse), (1, result.w_entropy)):
        a, b = (np.sort([pair[index] for pair in side]) for side in (real, sim))
        assert distance == pytest.approx(np.mean(np.abs(a - b)), abs=1e-12)


@given(sets, st.floats(-5, 5))
def test_a_shift_of_all_runs_is_its_own_distance(
    pairs: list[tuple[float, float]], shift: float
) -> None:
    moved = [(rmse + shift, entropy) for rmse, entropy in pairs]
    result = vepd(scores(pairs), scores(moved))
    assert result.w_rmse == pytest.approx(abs(shift), abs=1e-12)
    assert result.w_entropy == 0.0


def test_empty_sets_are_refused_by_name() -> None:
    with pytest.raises(MetricError, match='no real run'):
        vepd([], [score(1, 1)])
    with pytest.raises(MetricError, match='no simulated run'):
        vepd([score(1, 1)], [])


def test_table_ranks_per_scenario_and_pooled_with_averaged_ties() -> None:
    real = {'line': [score(0.0, 0.0)], 'sine': [score(1.0, 0.0)]}
    sim = {
        'far': {'line': [score(0.5, 0.0)], 'sine': [score(3.0, 0.0)]},
        'near': {'line': [score(0.1, 0.0)], 'sine': [score(1.0, 0.0)]},
        'twin': {'line': [score(0.1, 0.0)], 'sine': [score(0.5, 0.0)]},
    }
    rows = vepd_table(real, sim)
    assert [(row.scenario, row.model, row.rank) for row in rows] == [
        ('line', 'far', 3.0),
        ('line', 'near', 1.5),
        ('line', 'twin', 1.5),
        ('sine', 'far', 3.0),
        ('sine', 'near', 1.0),
        ('sine', 'twin', 2.0),
        ('all', 'far', 3.0),
        ('all', 'near', 1.0),
        ('all', 'twin', 2.0),
    ]
    pooled = rows[-3]
    assert (pooled.n_real, pooled.n_sim) == (2, 2)
    assert pooled.w_rmse == pytest.approx((0.5 + 2.0) / 2)


def test_ranks_come_from_unrounded_values() -> None:
    real = {'line': [score(0.0, 0.0)]}
    sim = {'b': {'line': [score(0.10002, 0)]}, 'a': {'line': [score(0.10001, 0)]}}
    assert [row.rank for row in vepd_table(real, sim)][:2] == [2.0, 1.0]


def test_ranks_and_spectra_are_those_of_scipy() -> None:
    values = stream(0, 'vepd', 'run', 'values').integers(0, 4, (300, 2)).astype(np.float64)
    np.testing.assert_array_equal(ranks(values), rankdata(values, axis=0))
    values[7, 0] = np.nan
    np.testing.assert_array_equal(ranks(values[:, 0]), rankdata(values[:, 0], nan_policy='omit'))
    for window, segment, overlap in (('hann', 63, 31), ('hamming', 64, 32), ('boxcar', 100, 0)):
        density = spectrum(values[8:], 10.0, segment, window)
        expected = welch(
            values[8:], 10.0, window=window, nperseg=segment, noverlap=overlap, axis=0
        )
        np.testing.assert_allclose(density.frequency, expected[0][1:])
        np.testing.assert_allclose(density.density, expected[1][1:], rtol=1e-12)


def test_pooling_is_not_averaging() -> None:
    """Two scenarios that swap their errors are far apart each, yet equal when pooled."""
    real = {'line': [score(0.0, 0.0)], 'sine': [score(1.0, 0.0)]}
    sim = {'m': {'line': [score(1.0, 0.0)], 'sine': [score(0.0, 0.0)]}}
    assert [row.w_rmse for row in vepd_table(real, sim)] == [1.0, 1.0, 0.0]
    assert coverage_notes(real, sim) == []


def test_uneven_coverage_is_told_and_missing_scenarios_have_no_row() -> None:
    real = {'line': [score(0, 0)] * 2, 'sine': [score(0, 0)] * 2}
    sim = {
        'whole': {'line': [score(0, 0)], 'sine': [score(0, 0)]},
        'part': {'line': [score(0, 0)], 'loop': [score(0, 0)]},
    }
    rows = vepd_table(real, sim)
    assert [(row.scenario, row.model) for row in rows] == [
        ('line', 'whole'),
        ('line', 'part'),
        ('sine', 'whole'),
        ('all', 'whole'),
        ('all', 'part'),
    ]
    (note,) = coverage_notes(real, sim)
    assert str(note).startswith('part: sine 2 real, 0 simulated; loop 0 real, 1 simulated')


def test_tables_of_nothing_and_a_scenario_called_all_are_refused() -> None:
    with pytest.raises(MetricError, match='no runs'):
        vepd_table({}, {'m': {'line': [score(0, 0)]}})
    with pytest.raises(MetricError, match='no runs'):
        vepd_table({'line': [score(0, 0)]}, {})
    with pytest.raises(MetricError, match="'all'"):
        vepd_table({'all': [score(0, 0)]}, {'m': {'all': [score(0, 0)]}})


def test_whole_ranks_are_written_as_integers_and_shared_ones_exact() -> None:
    real = {'line': [score(0.1, 0.2)] * 3}
    sim = {'a': {'line': [score(0.3, 0.1)]}, 'b': {'line': [score(0.3, 0.1)]}}
    assert [row.fields()[-1] for row in vepd_table(real, sim)] == [1.5] * 4
    (row,) = vepd_table(real, {'a': sim['a']})[:1]
    assert len(row.fields()) == len(VEPD_COLUMNS)
    assert row.fields()[-1] == 1
    assert isinstance(row.fields()[-1], int)


def plain_vepd(
    folder: Path, model: str, names: list[str], *, zeros: bool = False
) -> tuple[float, float, float]:
    """VEPD from files with nothing but csv, numpy and scipy, written from [Mahajan2024]."""
    (sim_rmse, sim_entropy), (real_rmse, real_entropy) = (
        np.transpose([plain_scores(side / name, zeros) for name in names])
        for side in (folder / 'Sim' / model, folder / 'Real')
    )
    w1 = wasserstein_distance(sim_rmse, real_rmse)
    w2 = wasserstein_distance(sim_entropy, real_entropy)
    return w1, w2, (w1 + w2) / 2


@functools.cache
def plain_scores(path: Path, zeros: bool) -> tuple[float, float]:
    """RMSE and difference of the entropies of a run."""
    with path.open(newline='') as file:
        lines = list(csv.DictReader(file))
    se = np.array([[line['se_time'], line['se_vel']] for line in lines if line['se_time']])
    gt = np.array([[line['gt_time'], line['gt_vel']] for line in lines if line['gt_time']])
    se, gt = se.astype(float), gt.astype(float)
    # As the script: zeros of padding go, of times and of velocities for themselves.
    gt = np.stack([column[column != 0.0] for column in gt.T], axis=1) if zeros else gt
    grid = np.arange(0, min(se[-1, 0], gt[-1, 0]), 1 / 15)
    smooth = (se[1:] + se[:-1]) / 2
    a = np.interp(grid, gt[:, 0], gt[:, 1])
    b = np.interp(grid, smooth[:, 0], smooth[:, 1])
    flat = []
    for signal in (a, b):
        amplitude = np.abs(np.fft.fft(signal))
        flat.append(np.exp(np.log(amplitude + 1e-10).mean()) / amplitude.mean())
    return np.sqrt(((a - b) ** 2).mean()), abs(flat[0] - flat[1])


def study(
    seed: int, noises: dict[str, float], repeats: int = 3
) -> dict[SeriesKey, VelocitySeries]:
    runs: dict[SeriesKey, VelocitySeries] = {}
    for source, std in noises.items():
        for scenario, rate in (('line', 0.0), ('circle', 0.4), ('sine', 1.3)):
            for run in range(1, repeats + 1):
                rng = stream(seed, f'{scenario}_{run}', source, 'speed')
                n = int(rng.integers(650, 700))
                se = np.cumsum(rng.uniform(0.02, 0.037, n))
                gt = np.arange(n // 2 - 40) * 0.05
                truth = [2 - 1.8 * np.exp(-t) + 0.2 * np.sin(rate * t) for t in (se, gt)]
                spread = std * np.exp(0.2 * rng.normal())
                runs[SeriesKey(source, scenario, run)] = VelocitySeries(
                    se, truth[0] + spread * rng.normal(size=n), gt, truth[1]
                )
    return runs


@pytest.mark.parametrize('published_names', [False, True])
def test_vepd_of_exported_series_agrees_with_plain_numpy_and_scipy(
    tmp_path: Path, published_names: bool
) -> None:
    runs = study(5, {'real': 0.1, 'ch_gauss': 0.4, 'ch_rw': 0.03}, repeats=4)
    folder = write_series_folder(tmp_path / 'series', runs, published_names=published_names)
    rows = {(row.model, row.scenario): row for row in vepd_from_series(folder).rows}
    assert len(rows) == 2 * 4
    names = ('chNormal_results', 'chWalk_results') if published_names else ('ch_gauss', 'ch_rw')
    files = {'line': 'path' if published_names else 'line', 'circle': 'circle', 'sine': 'sine'}
    for model, model_folder in zip(('ch_gauss', 'ch_rw'), names, strict=True):
        for scenario in ('line', 'circle', 'sine', 'all'):
            parts = files.values() if scenario == 'all' else [files[scenario]]
            file_names = [f'{part}_{run}.csv' for part in parts for run in range(1, 5)]
            row = rows[model, scenario]
            expected = plain_vepd(folder, model_folder, file_names)
            assert (row.w_rmse, row.w_entropy, row.vepd) == pytest.approx(expected, abs=1e-12)
            assert row.n_real == row.n_sim == len(file_names)
    assert rows['ch_rw', 'all'].rank == 1.0


def test_a_warm_up_exported_with_the_series_is_recomputed_by_default_options(
    tmp_path: Path,
) -> None:
    runs = study(6, {'real': 0.1, 'm': 0.2})
    options = MetricOptions(warmup=2.0)
    whole = write_series_folder(tmp_path / 'whole', runs)
    cut = write_series_folder(
        tmp_path / 'cut', {key: prepare(run, options) for key, run in runs.items()}
    )
    assert vepd_from_series(whole, options).rows == vepd_from_series(cut).rows
    assert vepd_from_series(whole, options).rows != vepd_from_series(whole).rows


def test_published_zero_padding_gives_the_table_of_the_unpadded_series(tmp_path: Path) -> None:
    """Truth that never is exactly zero survives the paper's zero dropping unharmed."""
    runs = {
        key: VelocitySeries(run.se_time, run.se_vel, run.gt_time[1:], run.gt_vel[1:])
        for key, run in study(8, {'real': 0.1, 'airsim': 0.2}).items()
    }
    folder = write_series_folder(tmp_path / 'series', runs, published_names=True)
    plain = vepd_from_series(folder)
    for path in folder.rglob('*.csv'):
        path.write_text(path.read_text().replace(',,\n', ',0.0,0.0\n'))
    assert vepd_from_series(folder, MetricOptions(drop_zeros=True)).rows == plain.rows
    with pytest.raises(SeriesError, match='drop_zeros'):
        vepd_from_series(folder)


def test_table_1_of_the_paper_is_the_mean_of_its_columns() -> None:
    """Printed to four decimals (trailing zeros dropped): half a unit of each number, 1e-4."""
    for row in TABLE_1.values():
        assert row.vepd == pytest.approx((row.w_rmse + row.w_entropy) / 2, abs=1e-4)


def test_table_2_of_the_paper_is_ranked_by_its_values() -> None:
    """Two values of sine are printed alike (0.0796); their ranks were taken before rounding."""
    for entries in TABLE_2.values():
        assert set(entries) == set(TABLE_1)
        by_rank = sorted(entries.values(), key=lambda entry: entry.rank)
        assert [entry.rank for entry in by_rank] == [1, 2, 3, 4, 5]
        assert [entry.vepd for entry in by_rank] == sorted(entry.vepd for entry in by_rank)


def test_published_values_are_found_by_label() -> None:
    assert published_vepd('ch_rw', 'all') == 0.043
    assert published_vepd('ch_rw', 'sine') == 0.0796
    assert published_vepd('ch_rw', 'up_hill') is None
    assert published_vepd('mine', 'all') is None


def test_files_laid_out_as_published_give_tables_1_and_2_to_the_last_digit(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Five models under their folder names, truth that starts late and is padded with zeros,
    speeds at rest before the start, runs of `rest` that the paper leaves out.
    """
    models = dict(zip(TABLE_1, (0.4, 0.03, 0.08, 0.15, 0.05), strict=True))
    runs = {}
    for key, run in study(9, {'real': 0.1, **models}, repeats=10).items():
        late = 0.1 * (key.run % 4)
        runs[key] = VelocitySeries(
            run.se_time, run.se_vel, run.gt_time[1:] + late, np.maximum(run.gt_vel[1:], 1e-3)
        )
    folder = write_series_folder(tmp_path / 'data2', runs, published_names=True)
    for path in list(folder.rglob('*.csv')):
        path.write_text(path.read_text().replace(',,\n', ',0.0,0.0\n'))
        if path.name == 'path_1.csv':
            path.with_name('rest_1.csv').write_bytes(path.read_bytes())
    table = vepd_from_series(folder, MetricOptions(drop_zeros=True))
    rows = {(row.model, row.scenario): row for row in table.rows}
    assert len(rows) == 5 * 4
    assert any(note.code == 'series.scenario_skipped' for note in table.notes)
    for model in models:
        for scenario in ('line', 'circle', 'sine', 'all'):
            parts = [
                SCENARIO_FILES[scenario_name]
                for scenario_name in SCENARIO_FILES
                if scenario in (scenario_name, 'all')
            ]
            names = [f'{part}_{run}.csv' for part in parts for run in range(1, 11)]
            row = rows[model, scenario]
            expected = plain_vepd(folder, MODEL_FOLDERS[model], names, zeros=True)
            record_property('relative', abs(row.vepd / expected[2] - 1.0))
            assert (row.w_rmse, row.w_entropy, row.vepd) == pytest.approx(expected, rel=1e-13)


def test_a_lever_arm_on_the_real_robot_contradicts_the_print() -> None:
    """A lever arm in reality would lower Ch:Gauss by what Ch:RW gains on curves over the line.

    A lever arm in the simulation would raise it, added in squares to errors of 0.023 m/s.
    """
    line = {model: TABLE_2['line'][model].vepd for model in ('ch_gauss', 'ch_rw')}
    expected = {'circle': (0.095, 0.153, 0.176), 'sine': (0.064, 0.168, 0.150)}
    for scenario, (real_side, simulated_side, printed) in expected.items():
        walk, gauss = (TABLE_2[scenario][model].vepd for model in ('ch_rw', 'ch_gauss'))
        gained = walk - line['ch_rw']
        assert line['ch_gauss'] - gained == pytest.approx(real_side, abs=5e-4)
        square = (0.023 + walk) ** 2 - (0.023 - line['ch_rw']) ** 2
        distance = np.sqrt((0.023 + line['ch_gauss']) ** 2 + square) - 0.023
        assert distance == pytest.approx(simulated_side, abs=5e-4)
        assert gauss == pytest.approx(printed, abs=5e-4)
        assert gauss > line['ch_gauss'] > real_side
