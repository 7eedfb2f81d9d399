# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Kinds of fix, outages, heavy tails and wander of real receivers.

Statistical bounds are 4.5 standard errors (7e-6 per comparison, less than 1e-3 per test); seeds
are fixed.
"""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
import scipy.linalg
import scipy.stats
from stepping_examples import assert_stepping_gives_the_same_bits

from sim_sensors.core.errors import ParameterError
from sim_sensors.gps.events import FIX_STATES, FixStates, Outages
from sim_sensors.gps.gps import (
    ConstantCovariance,
    GaussianNoise,
    GnssNoise,
    GpsModel,
    load_gps,
    simulate,
)
from sim_sensors.motion.scenarios import Circle, Line, Standstill
from sim_sensors.sensor.delivery import Delivery
from sim_sensors.world.geodesy import DEFAULT_ORIGIN

SIGMAS = 4.5
CHANGING = FixStates(initial='rtk', dwell=(5.0, 20.0, 20.0, 10.0, 120.0))
QUICK = dataclasses.replace(CHANGING, dwell=(1.0, 4.0, 4.0, 2.0, 5.0))


def run(model, motion=None, **options):
    return simulate(model, motion or Line(duration=60.0), seed=1, run='a', **options)


def generator():
    """Return the rates of the chain: 1/dwell away from a state, shared by the weights."""
    rates = np.zeros((5, 5))
    for k, name in enumerate(FIX_STATES):
        weights = np.array(getattr(CHANGING, f'from_{name}'))
        weights[k] = 0.0
        rates[k] = weights / weights.sum() / CHANGING.dwell[k]
        rates[k, k] = -1.0 / CHANGING.dwell[k]
    return rates


def assert_shares(states, share):
    """Check shares of receivers by state, within `SIGMAS` binomial deviations."""
    measured_share = np.bincount(states, minlength=5) / len(states)
    deviation = np.sqrt(share * (1.0 - share) / len(states))
    np.testing.assert_array_less(np.abs(measured_share - share), SIGMAS * deviation + 1e-9)


def test_by_default_the_fix_state_is_constant():
    model = load_gps('ch_gauss')
    fixes = run(model)
    assert not fixes.status.any()
    assert model.states == FixStates()
    assert (FixStates().start(1, 'a', 'gps').advance(np.arange(100.0)) == 1).all()


def test_shares_of_the_states_agree_with_the_matrix_exponential():
    """The limit, and shares of 1500 receivers on the way to it (scipy expm)."""
    limit = scipy.linalg.expm(generator() * 1e5)[4]
    np.testing.assert_allclose(CHANGING.stationary(), limit, atol=1e-9)
    times = np.array([3.0, 30.0])
    states = np.stack([CHANGING.start(k, 'a', 'gps').advance(times) for k in range(1500)])
    for j, t in enumerate(times):
        assert_shares(states[:, j], scipy.linalg.expm(generator() * t)[4])


def test_a_stationary_start_has_the_stationary_distribution():
    law = dataclasses.replace(CHANGING, initial='stationary')
    times = np.array([0.0, 7.0])
    states = np.stack([law.start(k, 'a', 'gps').advance(times) for k in range(1500)])
    for j in range(2):
        assert_shares(states[:, j], law.stationary())


def test_fix_states_do_not_depend_on_the_rate():
    fine = QUICK.start(1, 'a', 'gps').advance(np.arange(20_000) * 0.1)
    coarse = QUICK.start(1, 'a', 'gps').advance(np.arange(2_000) * 1.0)
    np.testing.assert_array_equal(fine[::10], coarse)
    assert set(fine) == {0, 1, 2, 3, 4}


def test_the_time_in_a_state_is_exponentially_distributed():
    """Kolmogorov-Smirnov at a false-alarm rate of 1e-4; steps of 0.01 s blur 10 s little."""
    law = FixStates(initial='float', dwell=(0.0, 0.0, 0.0, 10.0, 10.0))
    law = dataclasses.replace(law, from_float=(0, 0, 0, 0, 1), from_rtk=(0, 0, 0, 1, 0))
    states = law.start(1, 'a', 'gps').advance(np.arange(1_000_000) * 0.01)
    stays = np.diff(np.flatnonzero(np.diff(states))) * 0.01
    assert len(stays) > 900
    assert scipy.stats.kstest(stays, 'expon', (0.0, 10.0)).pvalue > 1e-4


def test_each_state_has_its_error_covariance_and_status():
    """The errors are those without states times the scale, bit for bit."""
    scale = (7.0, 40.0, 30.0, 10.0, 1.0)
    states = dataclasses.replace(QUICK, error_scale=scale, stated_scale=(1.0, 5.0, 4.0, 3.0, 2.0))
    plain = GpsModel(noise=GaussianNoise(), covariance=ConstantCovariance())
    truth = Circle(duration=600.0).at(np.arange(6000) * 0.1)
    with_states = dataclasses.replace(plain, states=states).start(1, 'a').measure(truth)
    without = plain.start(1, 'a').measure(truth)
    index = states.start(1, 'a', 'gps').advance(np.arange(6000) * 0.1)
    fixed = index > 0
    factor = np.asarray(scale)[index][:, None]
    expected = without.position_error * factor
    np.testing.assert_array_equal(with_states.position_error[fixed], expected[fixed])
    np.testing.assert_array_equal(with_states.status, np.array([-1, 0, 1, 2, 2])[index])
    stated = np.asarray(states.stated_scale)[index] ** 2 * 0.03**2
    np.testing.assert_allclose(
        with_states.position_covariance[fixed, 0, 0], stated[fixed], rtol=1e-12
    )
    assert set(index.tolist()) == {0, 1, 2, 3, 4}


def test_no_fix_repeats_the_last_position_without_a_covariance():
    model = GpsModel(
        noise=GaussianNoise(),
        covariance=ConstantCovariance(),
        outages=Outages(given=(2.0, 4.0, 6.0, 6.5)),
    )
    sensor_truth = Line(duration=10.0).at(np.arange(100) * 0.1)
    fixes = model.start(1, 'a').measure(sensor_truth)
    out = fixes.status < 0
    assert np.flatnonzero(out).tolist() == [*range(20, 40), *range(60, 65)]
    assert (fixes.latitude[20:40] == fixes.latitude[19]).all()
    assert (fixes.longitude[60:65] == fixes.longitude[59]).all()
    assert not fixes.position_covariance[out].any()
    messages = fixes.messages(np.arange(100), 'gps_link')
    assert (messages.position_covariance_type == np.where(out, 0, 2)).all()
    enu = DEFAULT_ORIGIN.to_enu(fixes.latitude, fixes.longitude, fixes.altitude)
    np.testing.assert_allclose(
        fixes.position_error, enu - sensor_truth.position, rtol=0, atol=3e-9
    )


def test_before_the_first_fix_there_is_no_position():
    model = GpsModel(states=FixStates(initial='none'))
    fixes = run(model)
    assert np.isnan(fixes.latitude).all()
    assert (fixes.status == -1).all()
    assert not fixes.position_covariance_type.any()


def test_an_outage_changes_no_other_fix():
    model = GpsModel(noise=GnssNoise(white_std=(0.1,) * 3, gauss_markov_std=(1.0,) * 3))
    whole = run(model)
    holed = run(dataclasses.replace(model, outages=Outages(given=(5.0, 9.0))))
    fixed = holed.status >= 0
    assert fixed.sum() == len(whole) - 40
    np.testing.assert_array_equal(holed.latitude[fixed], whole.latitude[fixed])


def test_silent_outages_send_nothing_and_are_the_same_outages():
    outages = Outages(given=(5.0, 9.0), interval=10.0, length=3.0)
    model = GpsModel(noise=GaussianNoise(), outages=outages, delivery=Delivery(drop_out=0.1))
    loud = run(dataclasses.replace(model, delivery=Delivery()))
    origin_ns, quiet = 1_700_000_000_000_000_007, dataclasses.replace(outages, silent=True)
    silent = run(
        dataclasses.replace(model, delivery=Delivery(), outages=quiet), origin_ns=origin_ns
    )
    fixed = loud.status >= 0
    assert 40 < (~fixed).sum() < 400
    np.testing.assert_array_equal(silent.stamp_ns, loud.stamp_ns[fixed] + origin_ns)
    np.testing.assert_array_equal(silent.latitude, loud.latitude[fixed])
    assert not silent.status.any()


def test_silent_outages_do_not_depend_on_the_chunking():
    model = load_gps('gnss_urban')
    outages = dataclasses.replace(model.outages, silent=True)
    model = dataclasses.replace(model, outages=outages)
    stamps = 1_700_000_000_000_000_000 + np.arange(2000) * 200_000_000
    arrived, arrival = model.channel(1, 'a', 'gps').send(stamps)
    assert len(arrived) < 1900
    channel, parts = model.channel(1, 'a', 'gps'), []
    for first, last in itertools.pairwise([0, 0, 1, 17, 17, 700, 701, 2000]):
        index, times = channel.send(stamps[first:last])
        parts.append((index + first, times))
    np.testing.assert_array_equal(np.concatenate([p[0] for p in parts]), arrived)
    np.testing.assert_array_equal(np.concatenate([p[1] for p in parts]), arrival)


@pytest.mark.parametrize('rate', [1.0, 5.0])
def test_random_outages_have_their_share_and_are_the_same_at_every_rate(rate):
    """An alternating renewal process over T errs by sqrt(2 up^2 down^2 / (up + down)^3 / T)."""
    end, up, down = 100_000.0, 60.0, 8.0
    outages = Outages(interval=up, length=down)
    times = np.arange(int(end * rate)) / rate
    out = outages.start(1, 'a', 'gps').is_active(times)
    error = math.sqrt(2.0 * up**2 * down**2 / (up + down) ** 3 / end)
    assert out.mean() == pytest.approx(down / (up + down), abs=SIGMAS * error)
    coarse = outages.start(1, 'a', 'gps').is_active(np.arange(1000.0))
    np.testing.assert_array_equal(out[: int(1000 * rate) : int(rate)], coarse)


def test_the_error_is_the_sum_of_its_parts():
    """Variance white^2 + m^2 + K^2 t, covariance m^2 exp(-lag/T) + K^2 t of 4500 axes."""
    noise = GnssNoise(
        white_std=(0.5,) * 3, gauss_markov_std=(1.0,) * 3, gauss_markov_time=(20.0,) * 3,
        random_walk=(0.1,) * 3,
    )  # fmt: skip
    dt = np.array([0.0, 10.0, 15.0])
    errors = np.stack([noise.start(k, 'a', 'gps').advance(dt) for k in range(1500)])
    bound = SIGMAS * math.sqrt(2.0 / errors[:, 0].size)
    for k, t in enumerate((0.0, 10.0, 25.0)):
        assert (errors[:, k] ** 2).mean() == pytest.approx(1.25 + 0.01 * t, rel=bound)
    expected = math.exp(-15.0 / 20.0) + 0.1
    assert (errors[:, 1] * errors[:, 2]).mean() == pytest.approx(expected, abs=bound * 1.5)


def test_mean_and_turn_on_error_stay_constant():
    noise = GnssNoise(mean=(1.0, 2.0, 3.0), turn_on_std=(0.5,) * 3)
    errors = np.stack([noise.start(k, 'a', 'gps').advance(np.zeros(2)) for k in range(500)])
    assert (errors[:, 0] == errors[:, 1]).all()
    np.testing.assert_allclose(
        errors[:, 0].mean(0), (1.0, 2.0, 3.0), atol=SIGMAS * 0.5 / math.sqrt(500)
    )


@pytest.mark.parametrize('freedom', [2.5, 5.0, 30.0])
def test_student_t_noise_has_its_distribution_and_the_stated_deviation(freedom):
    """Each axis by Kolmogorov-Smirnov at 1e-4; the fix as a whole by the F law of its square."""
    std = 0.4
    noise = GnssNoise(white_std=(std,) * 3, tails='student_t', degrees_of_freedom=freedom)
    errors = noise.start(1, 'a', 'gps').advance(np.full(20_000, 0.1))
    scale = std * math.sqrt((freedom - 2.0) / freedom)
    for axis in errors.T:
        assert scipy.stats.kstest(axis, 't', (freedom, 0.0, scale)).pvalue > 1e-4
    square = (errors**2).sum(axis=1) / (3.0 * scale**2)
    assert scipy.stats.kstest(square, 'f', (3, freedom)).pvalue > 1e-4


def test_contaminated_noise_is_a_mixture_of_two_normal_distributions():
    noise = GnssNoise(
        white_std=(0.3,) * 3, tails='contaminated', outlier_share=0.1, outlier_scale=20.0
    )
    n = 20_000
    errors = noise.start(1, 'a', 'gps').advance(np.full(n, 0.1))

    def law(x):
        return 0.9 * scipy.stats.norm.cdf(x, 0, 0.3) + 0.1 * scipy.stats.norm.cdf(x, 0, 6.0)

    for axis in errors.T:
        assert scipy.stats.kstest(axis, law).pvalue > 1e-4
    # An outlier on one axis is an outlier on all axes.
    far = np.abs(errors) > 2.0
    assert (far.all(axis=1)).mean() == pytest.approx(
        0.1 * (2.0 * scipy.stats.norm.sf(2.0 / 6.0)) ** 3, abs=SIGMAS * math.sqrt(0.04 / n)
    )


def test_contaminated_noise_without_outliers_equals_normal_noise_bit_for_bit():
    """If no fix is an outlier, the errors are those of the normal law, bit for bit."""
    normal = GnssNoise(white_std=(0.3,) * 3)
    none = dataclasses.replace(normal, tails='contaminated', outlier_share=0.0)
    dt = np.full(100, 0.1)
    first, second = (noise.start(1, 'a', 'gps').advance(dt) for noise in (normal, none))
    np.testing.assert_array_equal(first, second)
    gauss = GaussianNoise(std=(0.3,) * 3).start(1, 'a', 'gps').advance(dt)
    np.testing.assert_array_equal(first, gauss)


def test_results_with_all_effects_do_not_depend_on_the_chunking():
    model = dataclasses.replace(
        load_gps('gnss_urban'),
        states=dataclasses.replace(QUICK, initial='none'),
        outages=Outages(given=(1.0, 2.0), interval=3.0, length=1.0),
        noise=GnssNoise(
            white_std=(0.3,) * 3, tails='student_t', turn_on_std=(1.0,) * 3,
            gauss_markov_std=(1.0,) * 3, random_walk=(0.1,) * 3,
        ),
    )  # fmt: skip
    truth = Circle(duration=20.0).at(2.0 + np.arange(150) * 0.1)
    places = [0, *range(1, 50), 149]
    _, whole = assert_stepping_gives_the_same_bits(model, truth, places)
    assert {-1, 0, 2} <= set(whole.status.tolist())


def test_outage_times_count_from_the_first_fix_of_a_standstill():
    """Times of outages count from the first fix."""
    model = GpsModel(outages=Outages(given=(0.0, 1.0)))
    fixes = run(model, Standstill(duration=20.0), start_ns=7_000_000_000)
    assert np.flatnonzero(fixes.status < 0).tolist() == list(range(10))
    assert np.isnan(fixes.latitude[:10]).all()


@pytest.mark.parametrize(
    ('mapping', 'name'),
    [
        ({'outages': {'given': [1.0]}}, r'f.yaml: outages.given: \[1.0\]'),
        ({'outages': {'given': [3, 2]}}, 'outages.given'),
        ({'outages': {'given': 3}}, 'outages.given: 3'),
        ({'outages': {'length': -1}}, 'outages.length: -1'),
        ({'outages': {'interval': 1e-9}}, 'outages.interval: 1e-09'),
        ({'states': {'dwell': [1, 2]}}, r'states.dwell: \[1, 2\]'),
        ({'states': {'status': [0.5, 0, 0, 0, 0]}}, 'states.status'),
        ({'states': {'initial': 'dgps'}}, "states.initial: 'dgps'"),
        ({'states': {'initial': 'stationary'}}, 'states.initial: .stationary'),
        ({'states': {'dwell': [0, 0, 0, 1, 0], 'from_float': [0, 0, 0, 1, 0]}}, 'from_float'),
        ({'geodesy': 'flat'}, "geodesy: 'flat'"),
        ({'noise': {'model': 'gnss', 'degrees_of_freedom': 2}}, 'noise.degrees_of_freedom: 2'),
    ],
)
def test_a_wrong_parameter_is_refused_by_name(mapping, name):
    with pytest.raises(ParameterError, match=name):
        GpsModel.from_mapping(mapping, 'f.yaml')


@pytest.mark.parametrize('start', [0.0, 250.0])
def test_kinds_of_fix_and_outages_count_from_the_first_fix(start):
    """The clock of a robot starts anywhere, at zero in a simulation."""
    model = dataclasses.replace(
        load_gps('zed_f9p_changing'), states=QUICK, outages=Outages(interval=10.0, length=3.0)
    )
    times = np.arange(400) * 0.1
    fixes, later = (
        model.start(1, 'a').measure(Line(duration=1000.0).at(times + first))
        for first in (start, 500.0)
    )
    np.testing.assert_array_equal(fixes.status, later.status)
    assert len(set(fixes.status.tolist())) > 2
