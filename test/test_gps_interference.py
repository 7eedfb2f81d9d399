# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Jamming and spoofing. Bounds are 4.5 standard errors; seeds are fixed."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from sim_sensors.gps.events import Jamming, Spoofing
from sim_sensors.gps.gps import ConstantCovariance, GaussianNoise, GpsModel, simulate
from sim_sensors.motion.scenarios import Line, Standstill
from sim_sensors.world.geodesy import DEFAULT_ORIGIN

RECEIVER = GpsModel(
    rate=10.0, noise=GaussianNoise(std=(0.5,) * 3), covariance=ConstantCovariance(std=(0.5,) * 3)
)


def run(model, seconds=2000.0):
    return simulate(model, Standstill(duration=seconds), seed=1, run='a')


def enu(fixes):
    return DEFAULT_ORIGIN.to_enu(fixes.latitude, fixes.longitude, fixes.altitude)


@pytest.mark.parametrize('decibels', [0.0, 10.0])
def test_noise_rises_with_the_jammer_power_and_is_stated(decibels: float) -> None:
    jamming = Jamming(given=(0.0, 1000.0), jammer_to_noise=decibels, thermal_std=(0.3, 0.3, 0.6))
    fixes = run(dataclasses.replace(RECEIVER, jamming=jamming))
    assert not fixes.status.any()
    expected = 0.5**2 + 10 ** (decibels / 10) * np.array([0.3, 0.3, 0.6]) ** 2
    jammed, clear = enu(fixes)[:10_000], enu(fixes)[10_000:20_000]
    np.testing.assert_allclose(jammed.var(axis=0), expected, rtol=4.5 * math.sqrt(2 / 10_000))
    stated = np.diagonal(fixes.position_covariance, axis1=1, axis2=2)
    np.testing.assert_allclose(stated[0], expected)
    np.testing.assert_allclose(stated[-1], 0.25)
    # Afterwards the bits are those of a receiver without jamming.
    np.testing.assert_array_equal(clear, enu(run(RECEIVER))[10_000:20_000])


def test_the_fix_is_lost_below_the_signal_threshold() -> None:
    """45 dB-Hz - 10 log10(1 + J/N) = 28 dB-Hz at J/N = 10 log10(10^1.7 - 1) = 16.9 dB."""
    limit = 10.0 * math.log10(10.0**1.7 - 1.0)
    assert not Jamming(jammer_to_noise=limit - 0.01).loses_fix
    assert Jamming(jammer_to_noise=limit + 0.01).loses_fix
    jamming = Jamming(given=(5.0, 9.0), jammer_to_noise=30.0)
    lost = run(dataclasses.replace(RECEIVER, jamming=jamming), 20.0)
    assert np.flatnonzero(lost.status < 0).tolist() == list(range(50, 90))
    assert not lost.position_covariance[50:90].any()


def test_a_spoofer_moves_the_position_without_changing_the_covariance() -> None:
    spoofing = Spoofing(given=(10.0, 60.0), velocity=(0.3, -0.4, 0.0), distance=20.0)
    motion = Line(duration=80.0)
    honest = simulate(RECEIVER, motion, seed=1, run='a')
    spoofed = simulate(dataclasses.replace(RECEIVER, spoofing=spoofing), motion, seed=1, run='a')
    off = enu(spoofed) - enu(honest)
    times = (honest.stamp_ns - honest.stamp_ns[0]) * 1e-9
    walked = np.where((times >= 10.0) & (times < 60.0), np.minimum(times - 10.0, 40.0), 0.0)
    np.testing.assert_allclose(off, walked[:, None] * np.array([0.3, -0.4, 0.0]), atol=1e-6)
    assert np.abs(np.diff(off, axis=0))[:599].max() < 0.05  # it begins without a jump
    assert not spoofed.status.any()
    np.testing.assert_array_equal(spoofed.position_covariance, honest.position_covariance)


def test_random_events_do_not_depend_on_rate_or_chunking() -> None:
    events = {'jamming': Jamming(interval=10.0, length=3.0)}
    events['spoofing'] = Spoofing(interval=20.0, length=10.0)
    model = dataclasses.replace(RECEIVER, **events)
    truth = Standstill(duration=200.0)
    times = np.arange(2000) * 0.1
    whole = model.start(1, 'a').measure(truth.at(times))
    sensor = model.start(1, 'a')
    parts = [sensor.measure(truth.at(part)) for part in np.split(times, [1, 2, 777])]
    for name in ('latitude', 'position_covariance', 'position_error'):
        joined = np.concatenate([getattr(part, name) for part in parts])
        assert joined.tobytes() == getattr(whole, name).tobytes()
    slow = model.start(1, 'a').measure(truth.at(times[::10]))
    np.testing.assert_array_equal(slow.position_covariance, whole.position_covariance[::10])
    assert len(np.unique(whole.position_covariance[:, 0, 0])) == 2
