# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Trends of the mean are told from walks, and walks from white noise."""

from __future__ import annotations

import numpy as np
import pytest

from sim2real_eval.characterization.axis_fit import fit_axis
from sim2real_eval.characterization.noise_terms import NoiseTerms
from sim2real_eval.characterization.trends import WANDERS, find_trend
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.seeding import stream
from sim_sensors.noise.processes import Flicker, GaussMarkov

N = 8192


def white(seed: int, n: int = N) -> FloatArray:
    return stream(seed, 'noise', 'test', 'trends').standard_normal(n)


def terms_of(values: FloatArray, *, detrend: bool = False) -> NoiseTerms:
    fit = fit_axis(values, 1.0, detrend=detrend)
    assert fit is not None
    return fit.choice.fit.terms


def test_a_ramp_in_white_noise_is_a_line_and_no_walk() -> None:
    """Rises of 150 to 15,000 deviations of the mean; none is called a walk."""
    for seed in range(12):
        slope = 10.0 ** (seed % 3) * 150.0 / np.sqrt(N) / N
        values = white(seed) + slope * np.arange(N)
        terms = terms_of(values)
        assert find_trend(values).kind == 'line'
        assert terms.rate_ramp.agrees_with(slope)
        assert not terms.random_walk.observable
        without = terms_of(values, detrend=True)
        assert not without.rate_ramp.observable
        assert without.white.value == pytest.approx(terms.white.value, rel=1e-9)


def test_a_weak_ramp_in_white_noise_is_no_walk_but_unclear() -> None:
    """Rises of 10 to 80 deviations of the mean: no term is claimed in 75 or more of 80 records,
    and the bound of the ramp (95 %) holds in 72 or more.
    """
    right = held = 0
    for seed in range(80):
        slope = (10.0, 20.0, 40.0, 80.0)[seed % 4] / np.sqrt(N) / N
        terms = terms_of(white(seed) + slope * np.arange(N))
        right += not any(
            one.observable
            for name, one in terms.coefficients().items()
            if name not in ('white', 'rate_ramp')
        )
        held += terms.rate_ramp.upper >= slope
    assert right >= 75
    assert held >= 72


def test_most_weak_walks_are_walks() -> None:
    """Beside white noise that equals it after 1/8 to 1/64 of the record: 38 of 60 at least."""
    seen = 0
    for seed in range(60):
        rng = stream(seed, 'weak walk', 'test', 'trends')
        size = np.sqrt(3.0) / (N / (8.0, 20.0, 64.0)[seed % 3])
        terms = terms_of(white(seed) + size * np.cumsum(rng.standard_normal(N)))
        seen += terms.random_walk.observable
    assert seen >= 38


@pytest.mark.parametrize('share', [0.05, 0.25, 0.8])
def test_a_warm_up_is_an_exponential_with_its_size_and_time(share: float) -> None:
    for seed in range(4):
        change, time = 3.0 * (-1) ** seed, share * N
        warm = change * np.expm1(-np.arange(N) / time) / np.expm1(-(N - 1) / time)
        values = white(seed) + warm
        found = find_trend(values)
        assert found.kind == 'exponential'
        assert found.time == pytest.approx(time, rel=0.15)
        assert found.change == pytest.approx(change, rel=0.05)
        terms = terms_of(values)
        assert terms.white.value == pytest.approx(1.0, abs=0.05)
        assert not terms.random_walk.observable
        assert not terms.rate_ramp.observable


def test_noise_that_wanders_is_rarely_a_trend() -> None:
    """At most 4 of 200 records: walks, flicker, Gauss-Markov of 0.05 to 3 records."""
    found = 0
    for seed in range(40):
        rng = stream(seed, 'wander', 'test', 'trends')
        steps = np.ones(N)
        walk = np.cumsum(rng.standard_normal(N))
        flicker = Flicker(rng, 1.0, 1.0, float(N), axes=1).advance(steps)[:, 0]
        markov = [
            GaussMarkov(rng, 1.0, time * N, axes=1).advance(steps)[:, 0]
            for time in (0.05, 0.5, 3.0)
        ]
        for values in (walk, flicker + 2.0 * white(seed), *(one + white(seed) for one in markov)):
            found += find_trend(values).kind != 'none'
    assert found <= 4


def test_white_noise_does_not_wander() -> None:
    """At most 2 of 300 records do; a walk of 50 deviations of the mean always does."""
    assert sum(find_trend(white(seed)).wander > WANDERS for seed in range(300)) <= 2
    for seed in range(10):
        rng = stream(seed, 'walk', 'test', 'trends')
        walk = 50.0 / N * np.cumsum(rng.standard_normal(N))
        assert find_trend(white(seed) + walk).wander > WANDERS


def test_the_bound_of_a_ramp_that_is_not_seen_holds() -> None:
    """Weak ramps in white noise and in walks: below the 95 % bound in 110 or more of 120."""
    held = 0
    for seed in range(120):
        rng = stream(seed, 'bound', 'test', 'trends')
        noise = np.cumsum(rng.standard_normal(N)) if seed % 2 else rng.standard_normal(N)
        scale = np.sqrt(N) if seed % 2 else 1.0 / np.sqrt(N)
        slope = rng.uniform(0.0, 2.0) * scale / N
        ramp = find_trend(noise + slope * np.arange(N)).ramp(1.0)
        held += ramp.observable or slope <= ramp.upper
    assert held >= 110


@pytest.mark.parametrize('n', [8, 40, 63, 64, 200])
def test_short_records_have_no_trend_but_a_bound(n: int) -> None:
    found = find_trend(white(1, n) + 100.0)
    assert found.kind == 'none'
    assert np.isfinite(found.ramp(0.1).upper)
    assert found.values(n).tolist() == [0.0] * n


def test_at_most_2_percent_of_records_of_white_noise_have_another_term() -> None:
    """Any term, in records of three lengths; 13 of 300 in 1e-3 of runs if 2 % had one."""
    false = 0
    for seed in range(300):
        n = (1000, 4000, 16_384)[seed % 3]
        coefficients = terms_of(white(1000 + seed, n)).coefficients()
        false += any(one.observable for name, one in coefficients.items() if name != 'white')
    assert false <= 6
