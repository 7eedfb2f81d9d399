# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The answer of `compare`: the nearest model, and the significance of differences."""

from __future__ import annotations

import dataclasses

import pytest
from signal_examples import PLAIN, made, truth_of

from sim2real_eval.report.signals import doubts, signal_answer_lines
from sim2real_eval.signals.answer import sensor_answers
from sim2real_eval.signals.comparison import SignalComparison, compare_signals
from sim2real_eval.simulation.twin import Twin
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu.imu import load_imu


def _of(gps: str | None, imu: str | None) -> Twin:
    return Twin(
        str(gps or imu),
        None if gps is None else load_gps(gps),
        None if imu is None else load_imu(imu),
    )


def answer_texts(comparison: SignalComparison) -> dict[str, str]:
    return {line.head: line.text for line in signal_answer_lines(comparison)}


@pytest.fixture(scope='module')
def six_motions() -> SignalComparison:
    """AirSim against itself with other draws, and against Chrono."""
    truths = [truth_of(f'drive_{name}', n) for name in ('line', 'circle') for n in (1, 2, 3)]
    airsim, chrono = _of(None, 'airsim'), _of(None, 'chrono')
    real = [made(truth, airsim, seed=1) for truth in truths]
    sets = {
        'chrono': [made(truth, chrono, seed=2) for truth in truths],
        'again': [made(truth, airsim, seed=2) for truth in truths],
    }
    return compare_signals(real, sets, dataclasses.replace(PLAIN, yaw='gyro'))


def test_different_sensors_are_distinguished_and_identical_ones_are_not(
    six_motions: SignalComparison,
) -> None:
    verdicts = {
        model: [row.verdict for row in six_motions.rows if row.model == model]
        for model in ('again', 'chrono')
    }
    assert verdicts['again'] == ['not significant'] * 7
    assert verdicts['chrono'].count('different') >= 6
    for row in six_motions.rows:
        assert row.error_split_half is not None
        assert row.n_real == row.n_simulated == 6


def test_the_model_with_the_true_errors_is_nearest_and_not_distinguishable(
    six_motions: SignalComparison,
) -> None:
    (answer,) = sensor_answers(six_motions)
    assert (answer.sensor, answer.nearest, answer.next) == ('imu', 'again', 'chrono')
    assert answer.distance is not None
    assert answer.next_distance is not None
    assert answer.distance < 0.5 < answer.next_distance
    # Of one law, the square of the ratio is about one; a short record has few draws of a drift.
    assert answer.rmse_ratio == pytest.approx(1.0, abs=0.3)
    assert answer.different == ()


def test_each_kind_of_sensor_has_a_line_in_the_answer() -> None:
    truth = truth_of('drive_line', 1)
    real = [made(truth, _of('ch_gauss', 'chrono'), seed=1)]
    comparison = compare_signals(real, [made(truth, _of('ch_gauss', 'chrono'), seed=2)], PLAIN)
    assert list(answer_texts(comparison)) == ['Nearest IMU', 'Nearest GPS', 'Main doubt']


def test_models_are_ranked_by_their_common_signals() -> None:
    """A model without yaw is not nearer because it lacks its least like signal."""
    truth = truth_of('drive_circle', 3)
    real = [made(truth, _of(None, 'chrono'), seed=1)]
    sets = {name: [made(truth, _of(None, name), seed=2)] for name in ('chrono', 'ideal')}
    comparison = compare_signals(real, sets, PLAIN)
    signals = {
        model: {row.signal for row in comparison.rows if row.model == model} for model in sets
    }
    assert signals['chrono'] - signals['ideal'] == {'yaw'}
    rows = [row for row in comparison.rows if row.model == 'chrono' and row.signal != 'yaw']
    (answer,) = sensor_answers(comparison)
    assert answer.nearest == 'chrono'
    expected = sum(row.error_distance / row.real.rmse for row in rows) / len(rows)
    assert answer.distance == pytest.approx(expected)
    assert (answer.compared, answer.signals) == (6, 7)


def test_a_sensor_without_errors_may_be_the_nearest() -> None:
    """Errors of five times the real ones are farther than none, which model no sensor."""
    truth = truth_of('drive_circle', 3)
    model = load_gps('ch_gauss')
    noise = dataclasses.replace(model.noise, std=tuple(5.0 * std for std in model.noise.std))
    bad = Twin('bad', dataclasses.replace(model, noise=noise), None)
    real = [made(truth, _of('ch_gauss', None), seed=1)]
    sets = {'bad': [made(truth, bad, seed=2)], 'none': [made(truth, _of('baseline', None))]}
    comparison = compare_signals(real, sets, PLAIN)
    (answer,) = sensor_answers(comparison)
    assert (answer.nearest, answer.next) == ('none', 'bad')


def test_models_are_not_ranked_against_a_sensor_without_errors() -> None:
    truth = truth_of('drive_line', 1)
    ideal, real = (made(truth, _of('baseline', preset)) for preset in (None, 'chrono'))
    still = compare_signals([ideal], [real], PLAIN)
    rows = [dataclasses.replace(r, real=dataclasses.replace(r.real, rmse=0.0)) for r in still.rows]
    answer = answer_texts(dataclasses.replace(still, rows=tuple(rows)))
    assert 'not ranked' in answer['Nearest GPS']


def test_a_published_yaw_is_not_compared_with_an_integrated_one() -> None:
    truth = truth_of('drive_circle', 3)
    real, simulated = made(truth, _of(None, 'chrono')), made(truth, _of(None, 'ideal'))
    unlike = compare_signals([real], [simulated], PLAIN)
    assert 'yaw' not in {row.signal for row in unlike.rows}
    assert 'signals.yaw_unlike' in {finding.code for finding in doubts(unlike)}
    alike = compare_signals([real], [simulated], dataclasses.replace(PLAIN, yaw='gyro'))
    assert 'yaw' in {row.signal for row in alike.rows}
    assert 'signals.yaw_unlike' not in {finding.code for finding in doubts(alike)}
