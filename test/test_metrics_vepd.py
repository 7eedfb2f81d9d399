# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Laws of VEPD over sets of runs, its table, and the numbers printed in the paper."""

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

from sim2real_eval.metrics.error_curves import spectrum
from sim2real_eval.metrics.options import MetricError, MetricOptions
from sim2real_eval.metrics.published import TABLE_1, TABLE_2, vepd_from_series
from sim2real_eval.metrics.scores import RunScore, coverage_notes, prepare, ranks, vepd, vepd_table
from sim2real_eval.metrics.series import (
    MODEL_FOLDERS,
    SCENARIO_FILES,
    SeriesKey,
    VelocitySeries,
    write_series_folder,
)
from sim2real_eval.study.run import RunKey, StudyRun
from sim2real_eval.study.sensitivity import UNIT_FREE, holm, weighted_distances
from sim_sensors.core.seeding import stream


def score(rmse: float, entropy: float) -> RunScore:
    return RunScore(rmse, 0.0, entropy, entropy, 300, 20.0)


values = st.tuples(st.floats(0, 10), st.floats(0, 1))
sets = st.lists(values, min_size=1, max_size=12)


def scores(pairs: list[tuple[float, float]]) -> list[RunScore]:
    return [score(*pair) for pair in pairs]


@given(sets, sets)
def test_vepd_is_a_metric_distance(
    first: list[tuple[float, float]], second: list[tuple[float, float]]
) -> None:
    """Zero to itself in any order, symmetric, the mean of its parts, and never negative."""
    assert vepd(scores(first), scores(first[::-1])).vepd == 0.0
    forward, back = vepd(scores(first), scores(second)), vepd(scores(second), scores(first))
    assert forward.vepd == pytest.approx(back.vepd, abs=1e-12)
    assert forward.vepd == (forward.w_rmse + forward.w_entropy) / 2 >= 0
    assert (forward.n_real, forward.n_sim) == (len(first), len(second))


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
def test_the_distance_of_a_shift_of_all_runs_is_the_shift(
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
    ranked = {
        scenario: [r.rank for r in rows if r.scenario == scenario] for scenario in (*real, 'all')
    }
    assert ranked == {'line': [3.0, 1.5, 1.5], 'sine': [3.0, 1.0, 2.0], 'all': [3.0, 1.0, 2.0]}
    pooled = rows[-3]
    assert (pooled.n_real, pooled.n_sim) == (2, 2)
    assert pooled.w_rmse == pytest.approx((0.5 + 2.0) / 2)


def test_ranks_come_from_unrounded_values() -> None:
    real = {'line': [score(0.0, 0.0)]}
    sim = {'b': {'line': [score(0.10002, 0)]}, 'a': {'line': [score(0.10001, 0)]}}
    assert [row.rank for row in vepd_table(real, sim)][:2] == [2.0, 1.0]


def test_ranks_and_spectra_equal_those_of_scipy() -> None:
    values = stream(0, 'vepd', 'run', 'values').integers(0, 4, (300, 2)).astype(np.float64)
    np.testing.assert_array_equal(ranks(values), rankdata(values, axis=0))
    values[7, 0] = np.nan
    np.testing.assert_array_equal(ranks(values[:, 0]), rankdata(values[:, 0], nan_policy='omit'))
    for window, segment, overlap in (('hann', 63, 31), ('hamming', 64, 32), ('boxcar', 100, 0)):
        density = spectrum(values[8:], 10.0, segment, window)
        options = {'window': window, 'nperseg': segment, 'noverlap': overlap}
        frequency, expected = welch(values[8:], 10.0, axis=0, **options)
        np.testing.assert_allclose(density.frequency, frequency[1:])
        np.testing.assert_allclose(
            density.density, expected[1:], rtol=1e-12, err_msg='scipy welch'
        )


def test_pooled_vepd_is_not_the_average_of_scenarios() -> None:
    """Two scenarios that swap their errors are far apart each, yet equal when pooled."""
    real = {'line': [score(0.0, 0.0)], 'sine': [score(1.0, 0.0)]}
    sim = {'m': {'line': [score(1.0, 0.0)], 'sine': [score(0.0, 0.0)]}}
    assert [row.w_rmse for row in vepd_table(real, sim)] == [1.0, 1.0, 0.0]
    assert coverage_notes(real, sim) == []


def test_uneven_coverage_causes_a_finding_and_missing_scenarios_have_no_row() -> None:
    real = {'line': [score(0, 0)] * 2, 'sine': [score(0, 0)] * 2}
    sim = {
        'whole': {'line': [score(0, 0)], 'sine': [score(0, 0)]},
        'part': {'line': [score(0, 0)], 'loop': [score(0, 0)]},
    }
    rows = vepd_table(real, sim)
    assert [row.scenario for row in rows if row.model == 'part'] == ['line', 'all']
    assert [row.scenario for row in rows if row.model == 'whole'] == ['line', 'sine', 'all']
    assert [note.subject for note in coverage_notes(real, sim)] == ['part']


def test_empty_tables_and_a_scenario_named_all_are_refused() -> None:
    for scenario, real, sim in (('line', 0, 1), ('line', 1, 0), ('all', 1, 1)):
        with pytest.raises(MetricError):
            vepd_table(
                {scenario: [score(0, 0)]} if real else {},
                {'m': {scenario: [score(0, 0)]}} if sim else {},
            )


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
            distances = (row.w_rmse, row.w_entropy, row.vepd)
            assert distances == pytest.approx(expected, abs=1e-12), 'scipy, 1e-12'
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


def test_table_1_of_the_paper_is_the_mean_of_its_columns() -> None:
    """Printed to four decimals (trailing zeros dropped): half a unit of each number, 1e-4."""
    for row in TABLE_1.values():
        assert row.vepd == pytest.approx((row.w_rmse + row.w_entropy) / 2, abs=1e-4)


def test_table_2_of_the_paper_is_ranked_by_its_values() -> None:
    """Two values of sine are printed as 0.0796; their ranks were taken before rounding."""
    for entries in TABLE_2.values():
        assert set(entries) == set(TABLE_1)
        by_rank = sorted(entries.values(), key=lambda entry: entry.rank)
        assert [entry.rank for entry in by_rank] == [1, 2, 3, 4, 5]
        assert [entry.vepd for entry in by_rank] == sorted(entry.vepd for entry in by_rank)


def test_files_in_the_published_layout_give_tables_1_and_2_to_the_last_digit(
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
            parts = [name for key, name in SCENARIO_FILES.items() if scenario in (key, 'all')]
            names = [f'{part}_{run}.csv' for part in parts for run in range(1, 11)]
            row = rows[model, scenario]
            expected = plain_vepd(folder, MODEL_FOLDERS[model], names, zeros=True)
            record_property('relative', abs(row.vepd / expected[2] - 1.0))
            assert (row.w_rmse, row.w_entropy, row.vepd) == pytest.approx(expected, rel=1e-13), (
                'scipy'
            )


def spread_scores(rmse: float, entropy: float, unit: float) -> list[RunScore]:
    steps = np.linspace(0.9, 1.1, 8)
    return [RunScore(unit * rmse * k, 0.0, entropy * k, entropy * k, 300, 20.0) for k in steps]


def orders(unit: float) -> dict[str, list[str]]:
    """Models by each weighting, nearest first; m/s in so many of a unit."""
    real = spread_scores(0.1, 0.05, unit)
    models = {'fast': spread_scores(0.12, 0.2, unit), 'rough': spread_scores(0.3, 0.06, unit)}
    rows = vepd_table({'line': real}, {name: {'line': score} for name, score in models.items()})
    runs = [
        StudyRun(RunKey('clean', f'{k}', 'real', 1), 'line', '', vars(score))
        for k, score in enumerate(real)
    ]
    return {
        way.label: [row.model for row in sorted(way.rows, key=lambda row: row.vepd)
                    if row.scenario == 'line']
        for way in weighted_distances(rows, runs)
    }  # fmt: skip


def test_weights_can_reverse_the_ranking_but_the_unit_free_form_cannot() -> None:
    """One model errs in the entropy and one in the speed: each is nearest by one of the two."""
    in_metres, in_millimetres = orders(1.0), orders(1000.0)
    assert in_metres['W1 x 0'] == ['rough', 'fast']
    assert in_metres['W1 x 1'] == ['fast', 'rough']
    assert in_metres['W1 x 0.25'] != in_millimetres['W1 x 0.25']
    assert in_metres[UNIT_FREE] == in_millimetres[UNIT_FREE]


def test_p_values_are_adjusted_by_holms_procedure() -> None:
    """Holm's step-down procedure: times 4, 3, 2, 1 from the smallest on, never falling."""
    assert holm([0.03, None, 0.01, 0.04, 0.02]) == [0.06, None, 0.04, 0.06, 0.06]
    assert holm([0.9, 0.8]) == [1.0, 1.0]
