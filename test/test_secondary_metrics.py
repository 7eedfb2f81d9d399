# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Distances beside VEPD, rankings, and what observing a run gives."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import energy_distance as scipy_energy
from scipy.stats import kendalltau, spearmanr
from study_examples import drawn_study

from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.metrics import scores
from sim2real_eval.metrics.error_curves import (
    CurveDistance,
    autocorrelation,
    error_autocorrelations,
    error_spectra,
)
from sim2real_eval.metrics.options import MetricOptions
from sim2real_eval.metrics.published import kendall_taus, rank_agreement
from sim2real_eval.metrics.scores import EnergyDistance, energy_distance
from sim2real_eval.report.page.tables import ranking, standings
from sim2real_eval.signals.agreement import SpectrumDistance
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.simulation.twin_maker import synthetic_recording
from sim2real_eval.study.metric import METRICS, all_metrics
from sim2real_eval.study.options import StudyOptions
from sim2real_eval.study.outcome import speed_error
from sim2real_eval.study.run_plan import Judging, RunPlan, observe
from sim2real_eval.study.secondary_results import SideResults, metric_tables, side_results
from sim2real_eval.study.sensitivity import PAPER
from sim_sensors.core.errors import ParameterError
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu.imu import load_imu
from sim_sensors.motion.paths import drive


def test_the_energy_distance_equals_that_of_scipy_in_one_dimension() -> None:
    rng = np.random.default_rng(1)
    for n, m in ((3, 8), (10, 10), (1, 5)):
        x, y = rng.normal(size=(n, 1)), rng.normal(1.0, 2.0, (m, 1))
        expected = scipy_energy(x[:, 0], y[:, 0])
        np.testing.assert_allclose(energy_distance(x, y), expected, rtol=1e-10, err_msg='scipy')


def test_the_energy_distance_is_invariant_and_detects_correlation() -> None:
    """The same values in other pairs: both Wasserstein distances are 0, this one is not."""
    values = np.linspace(0.0, 1.0, 20)
    up, down = np.stack([values, values], 1), np.stack([values, values[::-1]], 1)
    assert energy_distance(up, up[::-1]) == 0.0
    assert energy_distance(up, down) > 0.2
    # A turn and a shift of both sets change nothing; a scale scales its root of a distance.
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    distance = energy_distance(up, down)
    assert energy_distance(up @ turn + 3.0, down @ turn + 3.0) == pytest.approx(distance)
    assert energy_distance(4.0 * up, 4.0 * down) == pytest.approx(2.0 * distance)
    flat = EnergyDistance.from_values(np.concatenate([up, down]), np.array([0.5, 0.0]))
    labels = np.arange(40) < 20
    assert flat.between(labels[None])[0] == 0.0


def test_the_energy_distance_of_many_runs_is_that_of_their_projections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Projections and the matrix of all pairs differ by less than 0.4 % for all divisions."""
    rng = np.random.default_rng(3)
    values = rng.normal(size=(200, 2)) * (1.0, 0.4)
    values[100:] += (0.3, 0.1)
    true = np.arange(200) < 100
    labels = np.stack([true, *(rng.permutation(true) for _ in range(100))])
    exact = EnergyDistance.from_values(values).between(labels)
    monkeypatch.setattr(scores, 'MAX_IN_MATRIX', 100)
    np.testing.assert_allclose(
        EnergyDistance.from_values(values).between(labels), exact, rtol=4e-3
    )
    assert EnergyDistance.from_values(np.ones((200, 2))).between(labels).max() == 0.0


def test_the_autocorrelation_of_known_processes_equals_theory() -> None:
    """An AR(1) with coefficient a has a^k; white noise stays within 4 / sqrt(n), 1 in 16 000."""
    rng = np.random.default_rng(2)
    n = 40_000
    white = rng.normal(size=n)
    assert np.all(np.abs(autocorrelation(white, 20)) < 4.0 / np.sqrt(n))
    coefficient, series = 0.8, np.zeros(n)
    for i in range(1, n):
        series[i] = coefficient * series[i - 1] + white[i]
    powers = coefficient ** np.arange(1, 11)
    np.testing.assert_allclose(autocorrelation(series, 10), powers, atol=0.05)
    assert not autocorrelation(np.full(10, 3.0), 4).any()


def test_curve_distances_separate_white_from_correlated_errors_of_equal_size() -> None:
    """Both errors deviate by 1 m/s (standard deviation): RMSE cannot tell. Lengths may differ."""
    rng = np.random.default_rng(3)
    jitter = [rng.normal(size=300 + k) for k in range(4)]
    wander = [np.sqrt(2.0) * np.sin(0.05 * np.arange(300.0) + k) for k in range(4)]
    labels = np.array([[True] * 4 + [False] * 4, [True, False] * 4])
    both = [*jitter, *wander]
    memory = CurveDistance(error_autocorrelations(both, 15.0)).between(labels)
    assert memory[0] > 0.3
    assert memory[0] > 2.0 * memory[1]
    spectra = error_spectra(both, 15.0)
    assert SpectrumDistance(spectra).between(labels)[0] > 10.0
    # Parseval: the density of unit white noise at 15 Hz is 2 / 15, here as the mean of 4 runs.
    assert np.mean(spectra[:4]) == pytest.approx(2.0 / 15.0, rel=0.15)
    np.testing.assert_array_equal(spectra[1], error_spectra([both[0], both[1]], 15.0)[1])


def test_rank_agreement_equals_that_of_scipy_including_ties() -> None:
    rng = np.random.default_rng(4)
    for n in (2, 5, 9):
        for _ in range(5):
            first, second = rng.integers(0, 4, n), rng.integers(0, 4, n)
            agreement = rank_agreement(first, second)
            if np.ptp(first) == 0 or np.ptp(second) == 0:
                assert agreement.kendall is None
                continue
            assert agreement.kendall == pytest.approx(kendalltau(first, second).statistic)
            assert kendall_taus(first[None], second[None]) == pytest.approx(agreement.kendall)
            assert agreement.spearman == pytest.approx(spearmanr(first, second).statistic)


def test_rank_agreement_p_value_counts_orders() -> None:
    """Five models in the same order: 1 of 120; in the reversed order all of them."""
    order = [1.0, 2.0, 3.0, 4.0, 5.0]
    assert rank_agreement(order, order).p_value == pytest.approx(1 / 120)
    assert rank_agreement(order, order[::-1]).p_value == 1.0
    one_swap = rank_agreement(order, [2.0, 1.0, 3.0, 4.0, 5.0])
    better = sum(
        kendalltau(order, permuted).statistic >= one_swap.kendall - 1e-12
        for permuted in itertools.permutations(order)
    )
    assert one_swap.p_value == pytest.approx(better / 120)
    missing = rank_agreement([1.0, 2.0, np.nan], [5.0, 6.0, 7.0])
    assert (missing.models, missing.kendall) == (2, 1.0)


def test_a_metric_without_methods_is_refused_on_loading(tmp_path: Path) -> None:
    (tmp_path / 'mine.py').write_text(
        'from sim2real_eval.study import Metric\n\n\n'
        'class Empty(Metric):\n    name = "empty"\n\n\n'
        'class Full(Empty):\n    def between(self, real, simulated):\n        return 0.0\n'
    )
    with pytest.raises(ParameterError, match='of_run'):
        METRICS.get('mine.py:Empty', folder=tmp_path)
    assert METRICS.get('mine.py:Full', folder=tmp_path)().name == 'empty'


def test_values_of_a_run_agree_with_its_score() -> None:
    """Mean square = bias^2 + spread^2, warm-up or none; a noisier receiver is further off."""
    twins = [Twin(name, load_gps(name), load_imu('chrono')) for name in ('ch_gauss', 'baseline')]
    motion = drive('circle', seed=1, run='circle_1')
    recording = synthetic_recording(motion, twins[1], seed=1, run='circle_1', scenario='circle')
    setup = JudgeSetup.load('clean')
    for metric in (MetricOptions(), MetricOptions(warmup=5.0, rezero='each')):
        plan = RunPlan(recording, twins, Judging(setup, StudyOptions(metric=metric)))
        observed = {}
        for run in plan:
            judged = plan.judge(run)
            scored = plan.score(run, judged)
            signals, values = observe(setup, plan.recording(run), judged, scored.series, metric)
            observed[run.model] = values
            square = values['speed_bias'] ** 2 + values['speed_std'] ** 2
            assert np.sqrt(square) == pytest.approx(scored.score.rmse, rel=1e-9)
            error = speed_error(signals, 'horizontal', metric)
            assert np.sqrt(np.mean(error**2)) == pytest.approx(scored.score.rmse, rel=1e-9)
            # By hand, from the signals alone.
            is_scored = np.isfinite(signals.true_position[:, 0]) & (signals.time >= metric.warmup)
            off = (signals.position - signals.true_position)[is_scored, :2]
            by_hand = np.sqrt(np.mean(np.sum(off**2, axis=1)))
            assert values['position_rmse'] == pytest.approx(by_hand, rel=1e-9)
            stated = np.sqrt(np.mean(np.sum(signals.position_sigma[is_scored, :2] ** 2, axis=1)))
            ratio = values['position_covariance_consistency']
            assert ratio == pytest.approx(stated / by_hand, rel=1e-9)
        assert observed['ch_gauss']['velocity_rmse'] > observed['baseline']['velocity_rmse']
        assert observed['ch_gauss']['nees_position'] > 2.0 * observed['baseline']['nees_position']


def test_a_p_value_of_5_per_cent_is_significant() -> None:
    table = metric_tables(drawn_study(runs=8), MetricOptions())[0]
    for p_value, names in ((0.05, [table.rows[0].metric.name]), (0.0501, [])):
        adjusted = (p_value,) * len(table.models)
        row = dataclasses.replace(table.rows[0], adjusted=adjusted)
        assert dataclasses.replace(table, rows=(row,)).detected_by(table.models[0]) == names


@pytest.fixture(scope='module')
def results() -> SideResults:
    return side_results(drawn_study(runs=8))


def test_tables_rank_by_the_known_noise(results: SideResults) -> None:
    for table in results.metrics:
        rows = {row.metric.name: row for row in table.rows}
        assert list(rows) == [metric.name for metric in all_metrics()]
        for name in ('VEPD', 'W1 RMSE', 'energy', 'forward', 'spectrum'):
            by_model = dict(zip(table.models, rows[name].ranks, strict=True))
            assert by_model['ch_gauss'] == 3.0, name
            p_value = dict(zip(table.models, rows[name].p_values, strict=True))
            assert p_value['ch_gauss'] < 0.01, name
        vepd = rows['VEPD'].distances
        halves = zip(rows['W1 RMSE'].distances, rows['W2 entropy'].distances, strict=True)
        np.testing.assert_allclose(vepd, [(a + b) / 2.0 for a, b in halves], rtol=1e-9)
        # The drawn runs have no yaw.
        assert rows['yaw'].distances == (None, None, None)
    assert [table.scenario for table in results.metrics[:3]] == ['line', 'circle', 'all']


def test_the_default_metric_variant_equals_the_vepd_of_the_study(results: SideResults) -> None:
    outcome = drawn_study(runs=8)
    for table in results.sensitivity:
        rows = [row for row in outcome.table(table.judge) if row.scenario == table.scenario]
        np.testing.assert_allclose(table.rows[0].vepd, [row.vepd for row in rows], rtol=1e-9)
        assert table.rows[0].with_own.kendall == 1.0
        # The truth of the example drives due east: it has no entropy in y to compare.
        assert 'component y' in {row.label for row in table.rows if row.problem}


def test_rankings_are_compared_pair_by_pair_and_with_the_paper(results: SideResults) -> None:
    pooled = {(p.first, p.second): p.agreement for p in results.rankings if p.scenario == 'all'}
    judges = ('paper_released', 'clean')
    assert set(pooled) == {judges, *((judge, PAPER) for judge in judges)}
    assert pooled['paper_released', 'clean'].models == 3


def test_a_model_equal_to_reality_rarely_differs_by_any_metric() -> None:
    """Expect 1 of 25 studies of one process at the 5 % level; 6 or more occur once in 800."""
    n_reported = 0
    for seed in range(25):
        study = drawn_study(
            judges=('clean',), scenarios=('line',), runs=6, models={'same': 0.05}, seed=seed
        )
        (table,) = metric_tables(study, MetricOptions())
        n_reported += bool(table.detected_by('same'))
    assert n_reported <= 5


def test_a_yaw_error_invisible_to_vepd_is_reported_as_a_hidden_difference() -> None:
    """Yaw does not enter the speed, so VEPD cannot see an error in yaw only."""
    study = drawn_study(judges=('clean',), scenarios=('line',), runs=12, models={'turned': 0.05})
    rng = np.random.default_rng(5)
    runs = []
    for run in study.runs:
        yaw = abs(rng.normal(0.3 if run.key.model == 'turned' else 0.02, 0.01))
        runs.append(dataclasses.replace(run, values={**run.values, 'yaw_rmse': yaw}))
    (table,) = metric_tables(dataclasses.replace(study, runs=tuple(runs)), MetricOptions())
    assert table.undetected_by_vepd() == {'turned': ['yaw']}


def test_noise_that_only_the_innovations_show_is_in_answer_and_tables() -> None:
    """Innovations ten times as large for one of two models of equal speed errors."""
    study = drawn_study(
        judges=('clean',), scenarios=('line',), runs=12, models={'same': 0.05, 'noisy': 0.05}
    )
    rng = np.random.default_rng(7)
    runs = []
    for run in study.runs:
        nis = rng.lognormal(0.0, 0.3) * (10.0 if run.key.model == 'noisy' else 1.0)
        runs.append(dataclasses.replace(run, values={**run.values, 'nis_imu': nis}))
    study = dataclasses.replace(study, runs=tuple(runs))
    side = side_results(study)
    (table,) = side.overall_metrics
    assert [table.detected_by(model) for model in table.models] == [[], ['NIS']]
    # VEPD is a member of the family: its p-value there is larger than that of VEPD alone.
    p_values = table.p_values('noisy')
    assert next(iter(p_values)) == 'VEPD'
    assert not {'W1 RMSE', 'W2 entropy'} & set(p_values)
    assert p_values['VEPD'] > table.rows[0].p_values[1]
    (standing,) = standings(study, side)
    places = ranking(standing, dict.fromkeys(table.models, ''))
    assert places.has_nis
    rows = {row.name: row for row in places.places}
    assert (rows['same'].differs, rows['noisy'].differs) == ('no metric', 'NIS')
    assert float(rows['noisy'].nis) == pytest.approx(1.0, abs=0.3)


def test_equal_distances_share_a_rank() -> None:
    """Two models with the same values, summed in another order."""
    study = drawn_study(
        judges=('clean',), scenarios=('line',), runs=6, models={'a': 0.1, 'b': 0.1}
    )
    rng = np.random.default_rng(6)
    drawn = {name: rng.permutation(np.linspace(0.1, 0.7, 6)) for name in 'ab'}
    runs = []
    for run in study.runs:
        number = int(run.key.recording.split('_')[-1]) - 1
        yaw = 0.01 if run.is_real else drawn[run.key.model][number]
        runs.append(dataclasses.replace(run, values={**run.values, 'yaw_rmse': yaw}))
    (table,) = metric_tables(dataclasses.replace(study, runs=tuple(runs)), MetricOptions())
    (row,) = [row for row in table.rows if row.metric.name == 'yaw']
    assert row.ranks == (1.5, 1.5)
    assert row.with_vepd.kendall is None
