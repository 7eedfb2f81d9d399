# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Delivery of messages: latency, jitter, drop-outs.

Statistical bounds are 4.5 standard errors (7e-6 per comparison, less than 1e-3 per test); seeds
are fixed.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim_sensors.core.errors import ParameterError
from sim_sensors.gps import gps
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu import imu
from sim_sensors.imu.imu import load_imu
from sim_sensors.motion.scenarios import Standstill
from sim_sensors.sensor.delivery import Delivery

SIGMAS = 4.5
ALL = Delivery(jitter=0.02, drop_out=0.3, drop_out_length=0.05)


def channel(delivery, latency=0.0):
    return delivery.start(1, 'run', 'imu', latency)


def grid(n, rate=100.0):
    return 1_700_000_000_000_000_000 + np.rint(np.arange(n) * 1e9 / rate).astype(np.int64)


@given(st.lists(st.integers(0, 200), max_size=8))
@settings(max_examples=25)
def test_delivery_does_not_depend_on_the_chunking(cuts):
    stamps = grid(200)
    delivered, arrival = channel(ALL, 0.1).send(stamps)
    sender, parts = channel(ALL, 0.1), []
    for part in np.split(np.arange(200), sorted(cuts)):
        index, times = sender.send(stamps[part])
        parts.append((part[index], times))
    np.testing.assert_array_equal(np.concatenate([k for k, _ in parts]), delivered)
    np.testing.assert_array_equal(np.concatenate([a for _, a in parts]), arrival)


def test_by_default_everything_arrives_after_the_latency():
    stamps = grid(100)
    delivered, arrival = channel(Delivery(), 0.05).send(stamps)
    np.testing.assert_array_equal(delivered, np.arange(100))
    np.testing.assert_array_equal(arrival, stamps + 50_000_000)


def test_jitter_is_exponential_and_messages_keep_their_order():
    """At 1 Hz no message holds up the next: mean and deviation are the parameter (an exponential
    deviation errs by sqrt(2/n)); at 1000 Hz with the same jitter, all arrive in order.
    """
    n = 50_000
    stamps = grid(n, 1.0)
    delivered, arrival = channel(Delivery(jitter=0.02), 0.1).send(stamps)
    late = (arrival - stamps - 100_000_000) * 1e-9
    assert len(delivered) == n
    assert late.min() >= 0.0
    assert late.mean() == pytest.approx(0.02, rel=SIGMAS / math.sqrt(n))
    assert late.std() == pytest.approx(0.02, rel=SIGMAS * math.sqrt(2.0 / n))
    stamps = grid(n, 1000.0)
    _, arrival = channel(Delivery(jitter=0.02), 0.1).send(stamps)
    assert (np.diff(arrival) >= 0).all()
    assert (arrival >= stamps + 100_000_000).all()


def test_independent_losses_have_the_stated_share():
    n = 100_000
    delivered, _ = channel(Delivery(drop_out=0.2)).send(grid(n))
    assert 1.0 - len(delivered) / n == pytest.approx(0.2, abs=SIGMAS * math.sqrt(0.16 / n))
    lost = np.ones(n)
    lost[delivered] = 0.0
    both = np.mean(lost[1:] * lost[:-1])
    assert both == pytest.approx(0.04, abs=SIGMAS * math.sqrt(0.04 / n))


@pytest.mark.parametrize('rate', [10.0, 100.0])
def test_drop_outs_have_the_stated_share_and_length_at_every_rate(rate):
    """Share p = 0.2 over 20000 s; with correlation time c = 1.6 s the mean errs by
    sqrt(p (1 - p) 2 c / T) = 0.5 %. Seen dt apart a loss goes on with the probability of the
    exact discretisation.
    """
    n = round(20_000 * rate)
    delivered, _ = channel(Delivery(drop_out=0.2, drop_out_length=2.0)).send(grid(n, rate))
    share_error = math.sqrt(0.16 * 2.0 * 1.6 / 20_000.0)
    assert 1.0 - len(delivered) / n == pytest.approx(0.2, abs=SIGMAS * share_error)
    lost = np.ones(n, dtype=bool)
    lost[delivered] = False
    goes_on = np.mean(lost[1:][lost[:-1]])
    memory = math.exp(-1.0 / rate / 1.6)
    expected = 0.2 + 0.8 * memory
    drop_outs = (1.0 - expected) * lost.sum()
    assert 1.0 - goes_on == pytest.approx(1.0 - expected, rel=SIGMAS / math.sqrt(drop_outs))


@pytest.mark.parametrize(
    ('module', 'model'), [(imu, load_imu('chrono')), (gps, load_gps('ch_rw'))], ids=['imu', 'gps']
)
def test_delivery_changes_neither_stamps_nor_values(module, model):
    motion = Standstill(duration=30.0)
    plain = module.simulate(model, motion, seed=1, run='a')
    unsteady = module.simulate(dataclasses.replace(model, delivery=ALL), motion, seed=1, run='a')
    assert 0.3 * len(plain) < len(unsteady) < 0.95 * len(plain)
    rows = np.searchsorted(plain.stamp_ns, unsteady.stamp_ns)
    same = plain.take(rows)
    for field in dataclasses.fields(plain):
        if field.name not in ('arrival_ns', 'frame'):
            ours = getattr(unsteady, field.name)
            assert ours.tobytes() == getattr(same, field.name).tobytes()
    assert (np.diff(unsteady.arrival_ns) >= 0).all()
    assert (unsteady.arrival_ns > unsteady.stamp_ns).any()


def test_a_loss_of_100_percent_is_possible():
    model = dataclasses.replace(load_imu('ideal'), delivery=Delivery(drop_out=1.0))
    assert len(imu.simulate(model, Standstill(duration=1.0), seed=1, run='a')) == 0


def test_a_delay_in_nanoseconds_is_refused():
    for model, name in ((Delivery, 'jitter'), (type(load_gps('ch_gauss')), 'latency')):
        with pytest.raises(ParameterError, match=f'{name}: 25000000'):
            model(**{name: 25e6})
