# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The transfer loss is the cost of tuning in simulation, with valid intervals and tests."""

from __future__ import annotations

import dataclasses
import math
import pickle
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest, pearsonr

from sim2real_eval import simulate
from sim2real_eval.benches.transfer import (
    MemorySource,
    Transfer,
    TransferOptions,
    measure_transfer,
)
from sim2real_eval.benches.transfer.block_statistics import block_statistics, landscape_distance
from sim2real_eval.benches.transfer.search import spread_tunings
from sim2real_eval.benches.transfer.sensor_errors import sensor_error_sizes
from sim2real_eval.benches.tuning.parameters import tunables
from sim2real_eval.common.findings import JudgeError
from sim2real_eval.judge import Estimate
from sim2real_eval.judge.protocol import JudgeRequest, load_judge
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.recording import Recording
from sim2real_eval.report.search_layout import finite_or_none
from sim2real_eval.study.options import DRIVES
from sim2real_eval.study.search.engine import EvaluationStore
from sim_sensors import motion_of
from sim_sensors.core.errors import ParameterError, Sim2RealError
from sim_sensors.core.parameters import Parameters, parameter
from sim_sensors.gps.gps import ConstantCovariance, GnssNoise, GpsModel
from sim_sensors.imu.chain import AccelerometerChain, GyroscopeChain, ImuChain

VELOCITY = 'process_noise_covariance.velocity'
OPTIONS = TransferOptions(parameters=VELOCITY, tunings=9, warmup=2.0)
COUNT = 8


IMU = ImuChain(
    rate=100.0,
    gyroscope=GyroscopeChain(),
    accelerometer=AccelerometerChain(turn_on_std=(0.3,) * 3, noise_density=(0.05,) * 3),
)


def receiver(std: float) -> GpsModel:
    return GpsModel(
        rate=10.0,
        noise=GnssNoise(white_std=(std,) * 3),
        covariance=ConstantCovariance(type='diagonal_known', std=(1.0,) * 3),
    )


@cache
def drives(std: float, seed: int = 0) -> tuple[MemorySource, ...]:
    """Simulate drives with white fixes of a deviation, m, and an accelerometer with a bias."""
    motions = [motion_of('accelerating', duration=10.0) for _ in range(COUNT)]
    return tuple(
        MemorySource(simulate(motion, gps=receiver(std), imu=IMU, name=f'drive{k}', seed=seed + k))
        for k, motion in enumerate(motions)
    )


def clean() -> JudgeSetup:
    return JudgeSetup.load('clean')


@cache
def measured() -> Transfer:
    """Measure a reality with fixes of 0.5 m against three simulations."""
    simulated = {'same': drives(0.5, 100), 'too good': drives(0.05), 'too bad': drives(5.0)}
    return measure_transfer(drives(0.5), simulated, clean(), OPTIONS)


def test_a_simulation_of_the_same_law_costs_nothing_and_wrong_ones_cost() -> None:
    loss = {model.model: model for model in measured().models}
    assert abs(loss['same'].loss) < 0.05
    assert loss['same'].p_value > 0.05
    assert loss['too bad'].loss > 0.1
    good = loss['too good']
    assert good.loss > 0.5
    assert good.low > 0.0
    assert good.adjusted <= 0.05
    assert not set(good.group) & set(loss['same'].group)
    assert measured().models[0].model == 'same'
    assert (measured().blocks, measured().drives) == (COUNT, COUNT)


def test_the_loss_is_explained_by_the_parameter_and_by_the_size_of_the_sensor_errors() -> None:
    """Too good fixes ask for more process noise, too bad ones for less."""
    loss = {model.model: model for model in measured().models}
    (good,), (bad,) = loss['too good'].differences, loss['too bad'].differences
    assert good.parameter.name == bad.parameter.name == VELOCITY
    assert bad.simulated < bad.real < good.simulated
    # The only parameter explains all of the loss; the folds of the reference differ slightly.
    assert good.share == pytest.approx(1.0, abs=0.3)
    for name, ratio in (('too good', 0.1), ('same', 1.0), ('too bad', 10.0)):
        # 8 drives of 100 fixes on two axes: 2 % standard error.
        assert loss[name].error_ratios['GPS noise'] == pytest.approx(ratio, rel=0.1)
    codes = [note.code for note in measured().notes]
    assert codes.count('transfer.parameter') == 2


def test_landscapes_are_those_of_all_tunings_and_their_correlation_is_pearson_s() -> None:
    transfer = measured()
    assert len(transfer.tunings) == OPTIONS.tunings
    assert transfer.tunings[0] == (1.0,)
    real = transfer.landscapes['real']
    for model in transfer.models:
        simulated = transfer.landscapes[model.model]
        assert model.correlation == pytest.approx(pearsonr(real, simulated).statistic)
    same, wrong = (next(m for m in transfer.models if m.model == n) for n in ('same', 'too bad'))
    assert same.landscape < 0.1 < wrong.landscape
    assert same.correlation > 0.99


def test_a_constant_factor_of_the_errors_is_no_distance_of_landscapes() -> None:
    real = np.random.default_rng(0).uniform(0.1, 2.0, 60)
    assert landscape_distance(real, 7.0 * real, True) == pytest.approx(0.0, abs=1e-12)
    assert landscape_distance(real, real + 7.0, False) == pytest.approx(0.0, abs=1e-12)
    assert landscape_distance(real, real**2, True) == pytest.approx(np.log(real).std())


@pytest.mark.parametrize('is_error', [True, False])
def test_the_interval_excludes_zero_exactly_where_the_test_rejects(is_error: bool) -> None:
    rng = np.random.default_rng(3)
    excluded = 0
    for _ in range(300):
        count = int(rng.integers(3, 12))
        blocks = list(np.arange(2 * count).reshape(count, 2))
        reference = rng.uniform(0.5, 1.5, 2 * count)
        # Rounded, so that ties and zeros occur.
        away = np.round(rng.normal(rng.choice([0.0, 0.3]), 0.3, 2 * count), 1)
        (row,) = block_statistics(
            {'a': reference + away}, reference, blocks, 0.95, is_error=is_error
        ).values()
        assert (row.low > 0.0 or row.high < 0.0) == (row.p_value <= 0.05)
        assert row.low <= row.loss <= row.high
        excluded += row.p_value <= 0.05
    assert 50 < excluded < 250


def test_equal_filters_differ_at_the_stated_rate_for_one_model_and_for_all() -> None:
    """False alarms at 5 %: with 8 blocks the exact test has at most 2 * 6 of 256."""
    rng = np.random.default_rng(4)
    blocks = [np.array([k]) for k in range(8)]
    single = family = 0
    trials = 1000
    for _ in range(trials):
        reference = rng.lognormal(0.0, 0.3, 8)
        errors = {name: reference * rng.lognormal(0.0, 0.2, 8) for name in 'abcde'}
        # Symmetric differences: each filter is the better one as often.
        errors = {name: reference + rng.choice([-1, 1], 8) * (e - reference) for name, e in
                  errors.items()}  # fmt: skip
        rows = block_statistics(errors, reference, blocks, 0.95, is_error=True)
        single += rows['a'].p_value <= 0.05
        family += min(row.adjusted for row in rows.values()) <= 0.05
        assert all(row.adjusted >= row.p_value - 1e-9 for row in rows.values())
    for count in (single, family):
        assert binomtest(count, trials, 0.05, alternative='greater').pvalue > 1e-4
        assert count > 0.02 * trials


def test_the_result_does_not_depend_on_the_number_of_processes_or_on_an_interruption(
    tmp_path: Path,
) -> None:
    options = dataclasses.replace(OPTIONS, tunings=8)
    simulated = {'too good': drives(0.05)}
    first = measure_transfer(drives(0.5), simulated, clean(), options)
    store = EvaluationStore(tmp_path / 'store', {'seed': 0})
    second = measure_transfer(drives(0.5), simulated, clean(), options, jobs=2, store=store)
    rounds: list[int] = []
    again = EvaluationStore(tmp_path / 'store', {'seed': 0})
    assert again.results
    third = measure_transfer(
        drives(0.5), simulated, clean(), options, store=again, progress=rounds.append
    )
    for other in (second, third):
        assert [m.loss for m in other.models] == [m.loss for m in first.models]
        assert other.values == first.values


def test_without_truth_the_likelihood_is_compared_and_said_to_be_weaker() -> None:
    def blind(sources: tuple[MemorySource, ...]) -> list[MemorySource]:
        return [MemorySource(_without_truth(source.recording)) for source in sources]

    simulated = {'same': blind(drives(0.5, 100)), 'too good': drives(0.05)}
    transfer = measure_transfer(blind(drives(0.5)), simulated, clean(), OPTIONS)
    assert transfer.quantity == 'likelihood'
    assert not transfer.is_error
    assert transfer.notes[0].code == 'transfer.likelihood'
    assert [model.model for model in transfer.models] == ['same', 'too good']
    assert transfer.models[0].error_ratios == {}
    with pytest.raises(Sim2RealError, match='truth'):
        measure_transfer(
            blind(drives(0.5)), simulated, clean(), dataclasses.replace(OPTIONS, objective='speed')
        )


def _without_truth(recording: Recording) -> Recording:
    topic = recording.roles['truth']
    return dataclasses.replace(
        recording,
        messages={name: array for name, array in recording.messages.items() if name != topic},
        roles={role: name for role, name in recording.roles.items() if role != 'truth'},
    )


def test_parts_of_one_drive_are_blocks_but_no_independent_drives() -> None:
    simulated = {'same': drives(0.5, 100)}
    transfer = measure_transfer(
        drives(0.5), simulated, clean(), OPTIONS, blocks=['monday'] * COUNT
    )
    assert (transfer.blocks, transfer.drives) == (OPTIONS.blocks, 1)
    assert transfer.notes[0].code == 'transfer.one_drive'


def test_a_model_that_cannot_be_judged_is_left_out_with_its_reason() -> None:
    short = [MemorySource(_first_seconds(source.recording, 1.0)) for source in drives(0.5, 100)]
    transfer = measure_transfer(
        drives(0.5), {'same': drives(0.5, 100), 'short': short}, clean(), OPTIONS
    )
    assert [model.model for model in transfer.models] == ['same']
    assert 'warmup' in transfer.failures['short']
    with pytest.raises(Sim2RealError, match='warmup'):
        measure_transfer(drives(0.5), {'short': short}, clean(), OPTIONS)


@dataclasses.dataclass(frozen=True)
class Fragile(Parameters):
    """The true velocity times a gain, which fails in some simulations and with large gains."""

    gain: float = parameter(0.4, '1', 'Gain of the velocity.', minimum=0.0, maximum=3.0)

    def judge(self, recording: Recording) -> Estimate:
        truth = recording.truth
        assert truth is not None
        name = recording.name.split('_')[0]
        if name == 'diverging' or (name == 'real' and self.gain > 1.5):
            raise JudgeError(f'{recording.name}: diverges with {self.gain:g}')
        noise = np.random.default_rng(len(name)).normal(0.0, 0.1, (len(truth), 3))
        scale = 0.5 if name == 'fast' else 1.0
        velocity = scale * self.gain * truth.linear_velocity + noise * [1.0, 0.0, 0.0]
        return Estimate(truth.stamp_ns, velocity)


def test_what_was_assumed_about_the_recordings_is_told() -> None:
    """Segments of one drive are one block, and the IMU shows no heading at the start."""
    codes = [note.code for note in measured().notes]
    assert 'tune.true_heading' in codes
    assert DRIVES.code not in codes
    blocks = ['drive of drive0'] * 2 + [''] * (COUNT - 2)
    transfer = measure_transfer(
        drives(0.5), {'same': drives(0.5, 100)}, clean(), OPTIONS, blocks=blocks
    )
    assert transfer.drives == COUNT - 1
    assert [note.code for note in transfer.notes].count(DRIVES.code) == 1


def test_models_are_left_out_where_their_simulation_or_their_filter_on_the_robot_fails() -> None:
    def named(name: str) -> list[Recording]:
        return [
            dataclasses.replace(source.recording, name=f'{name}_{k}')
            for k, source in enumerate(drives(0.5)[:6])
        ]

    judge = load_judge(JudgeRequest(f'{__file__}:Fragile'))
    models = {name: named(name) for name in ('like', 'fast', 'diverging')}
    options = TransferOptions(tunings=16, warmup=1.0)
    transfer = measure_transfer(named('real'), models, judge, options)
    (like,) = transfer.models
    assert like.model == 'like'
    assert like.values[0] == pytest.approx(1.0, abs=0.1)
    assert abs(like.loss) < 0.05
    assert set(transfer.failures) == {'fast', 'diverging'}
    # In the fast simulation the right gain is 2, with which the filter fails on the robot.
    assert 'real_0' in transfer.failures['fast']
    assert 'diverging_0' in transfer.failures['diverging']


def test_numbers_that_are_not_finite_are_none_in_files() -> None:
    assert [finite_or_none(number) for number in (math.nan, math.inf, -math.inf, 1.0)] == [
        None, None, None, 1.0
    ]  # fmt: skip


def _first_seconds(recording: Recording, seconds: float) -> Recording:
    last = recording.start_ns + round(seconds * 1e9)
    messages = {
        topic: array.take(array.stamp_ns <= last) for topic, array in recording.messages.items()
    }
    return dataclasses.replace(recording, messages=messages)


def test_tunings_cover_the_bounds_of_scales_and_the_values_of_choices() -> None:
    parameters = tunables(clean(), ['process_noise_covariance.velocity', 'gates'])
    tunings = spread_tunings(parameters, 64)
    assert len(set(tunings)) == 64
    assert tunings[0] == tuple(parameter.start for parameter in parameters)
    decades = np.log10([values[0] for values in tunings[1:]])
    # A scrambled Sobol sequence has the discrepancy of a grid, not of random numbers.
    assert np.abs(np.sort(decades) - np.linspace(-4.0, 4.0, 63)).max() < 0.3
    for column, gate in enumerate(parameters[1:], 1):
        values = {values[column] for values in tunings}
        assert values == {gate.start, *gate.levels}


def test_sizes_of_sensor_errors_are_those_that_were_simulated() -> None:
    sizes = sensor_error_sizes((pickle.dumps(drives(0.5)), 'base_link'))
    # 8 drives x 100 fixes x 2 axes: 1.8 % standard error of a deviation.
    assert sizes['GPS noise'] == pytest.approx(0.5, rel=0.08)
    # White noise averaged over ten fixes; 80 means on two axes: 6 % standard error.
    assert sizes['GPS slow errors'] == pytest.approx(0.5 / math.sqrt(10.0), rel=0.25)
    assert sizes['gyroscope noise'] < 1e-6


@pytest.mark.parametrize(
    ('simulated', 'parameters'), [({}, VELOCITY), ({'same': drives(0.5, 100)}, 'nothing')]
)
def test_what_cannot_be_measured_is_refused(
    simulated: dict[str, tuple[MemorySource, ...]], parameters: str
) -> None:
    options = dataclasses.replace(OPTIONS, parameters=parameters)
    with pytest.raises(ParameterError):
        measure_transfer(drives(0.5), simulated, clean(), options)
