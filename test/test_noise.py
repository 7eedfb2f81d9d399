# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The noise processes. Bounds are 4.5 standard errors (7e-6 per comparison); seeds are fixed."""

from __future__ import annotations

import math

import allantools
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim_sensors.core.seeding import stream
from sim_sensors.gps.simulators import BoundedWalk, RandomWalkNoise
from sim_sensors.noise.electronics import Decay, Ramp, quantise
from sim_sensors.noise.processes import (
    GaussMarkov,
    IntegralNoise,
    RandomWalk,
    TurnOn,
    White,
    WhiteDensity,
)

SIGMAS = 4.5


def rng(source='test', seed=1):
    return stream(seed, 'run', 'sensor', source)


def assert_variance(samples, expected, independent=None):
    """Sample mean square about 0 of `samples` against `expected`, for normal samples."""
    n = independent or len(samples)
    error = math.sqrt(2.0 / n)
    np.testing.assert_allclose(np.mean(samples**2, axis=0), expected, rtol=SIGMAS * error)


def paper_walk(generator, **changes):
    """The bounded walk of [Chrono]."""
    return BoundedWalk(generator, RandomWalkNoise(**changes))


def assert_allan(samples, rate, taus, expected, tolerance):
    """Allan deviation of one axis by allantools, within a relative tolerance per tau."""
    deviation = allantools.oadev(samples, rate=rate, data_type='freq', taus=taus)[1]
    ratio = deviation / expected
    assert (np.abs(ratio - 1.0) < tolerance).all(), f'allantools / law: {ratio}, {tolerance}'
    return np.polyfit(np.log(taus), np.log(deviation), 1)[0]


PROCESSES = {
    'white': lambda g: White(g, [0.1, 0.2, 0.3], [1.0, -2.0, 0.0]),
    'density': lambda g: WhiteDensity(g, 0.01),
    'integral': lambda g: IntegralNoise(g, [0.1, 0.2, 0.3]),
    'ramp': lambda g: Ramp([0.1, 0.2, 0.3]),
    'turn_on': lambda g: TurnOn(g, 0.1, 1.0),
    'random_walk': lambda g: RandomWalk(g, [0.1, 0.2, 0.3], 0.5),
    'gauss_markov': lambda g: GaussMarkov(g, [0.1, 0.2, 0.3], [1.0, 2.0, 0.01]),
    'gauss_markov_zero': lambda g: GaussMarkov(g, 0.1, 1.0, stationary=False),
    'decay': lambda g: Decay(100.0, 0.85, 12.4),
    'bounded_walk': paper_walk,
}


@pytest.mark.parametrize('name', PROCESSES)
@given(
    dt=st.lists(st.sampled_from([0.01, 0.1, 1.0 / 30.0, 0.00123, 0.25]), min_size=1, max_size=60),
    cuts=st.lists(st.integers(0, 60), max_size=8),
)
@settings(max_examples=25)
def test_results_do_not_depend_on_the_chunking(name, dt, cuts):
    times = np.array(dt)
    whole = PROCESSES[name](rng()).advance(times)
    process = PROCESSES[name](rng())
    parts = [process.advance(part) for part in np.split(times, sorted(cuts))]
    assert np.concatenate(parts).tobytes() == whole.tobytes()
    assert process.value.tobytes() == whole[-1].tobytes()


def test_advance_after_use_returns_the_path_one_step_later():
    dt = np.full(50, 0.01)
    after = RandomWalk(rng(), 0.3, 0.5).advance(dt)
    process = RandomWalk(rng(), 0.3, 0.5)
    before = np.concatenate([process.advance_after_use(part) for part in np.split(dt, [1, 1, 7])])
    np.testing.assert_array_equal(before[0], 0.5)
    assert before[1:].tobytes() == after[:-1].tobytes()
    assert process.value.tobytes() == after[-1].tobytes()


def test_white_noise_has_the_stated_mean_and_deviation_at_every_rate():
    for dt in (0.001, 0.1):
        samples = White(rng(), 0.3, 2.0).advance(np.full(200_000, dt))
        np.testing.assert_allclose(samples.mean(0), 2.0, atol=SIGMAS * 0.3 / math.sqrt(200_000))
        assert_variance(samples - 2.0, 0.09)


@pytest.mark.parametrize('rate', [25.0, 100.0, 400.0])
def test_integral_of_density_noise_does_not_depend_on_the_rate(rate):
    """Var of the integral over 1 s is density^2; a sample's std doubles at 4 times the rate."""
    dt = np.full(int(rate) * 4000, 1.0 / rate)
    process = WhiteDensity(rng(), 0.02)
    samples = process.advance(dt)
    assert_variance(samples, 0.02**2 * rate)
    np.testing.assert_allclose(process.variance(dt), 0.02**2 * rate)
    integrals = samples.reshape(4000, int(rate), 3).sum(1) / rate
    assert_variance(integrals, 0.02**2)


def test_density_noise_has_allan_deviation_equal_to_the_density_at_one_second():
    """Slope -1/2 through `density` at 1 s; allantools' 1-sigma error bars, 4.5 of them."""
    samples = WhiteDensity(rng(), 0.02, axes=1).advance(np.full(400_000, 0.01))[:, 0]
    taus = np.array([0.05, 0.1, 0.5, 1.0, 5.0])
    # n overlapping pairs at tau hold about 4000 s / tau independent ones.
    tolerance = SIGMAS / np.sqrt(2.0 * 4000.0 / taus)
    slope = assert_allan(samples, 100.0, taus, 0.02 / np.sqrt(taus), tolerance)
    assert slope == pytest.approx(-0.5, abs=0.05)


@pytest.mark.parametrize('rate', [10.0, 100.0])
def test_random_walk_variance_grows_linearly_and_does_not_depend_on_the_rate(rate):
    """Var y(t) = K^2 t; 6000 independent axes of one process are 6000 runs."""
    walk = RandomWalk(rng(), 0.3, axes=6000).advance(np.full(int(5 * rate), 1.0 / rate))
    for second in (1, 2, 5):
        assert_variance(walk[int(second * rate) - 1], 0.09 * second)


def test_random_walk_has_allan_deviation_k_over_sqrt_3_at_one_second():
    """Slope +1/2; 20000 s / tau independent values."""
    walk = RandomWalk(rng(), 0.3, axes=1).advance(np.full(200_000, 0.1))[:, 0]
    taus = np.array([1.0, 3.0, 10.0, 30.0])
    # Exact for samples (not averages) of the walk: K^2 tau/3 (1 + 1/(2 m^2)), m = tau/dt.
    tolerance = SIGMAS / np.sqrt(2.0 * 20_000.0 / taus) + 0.005
    slope = assert_allan(walk, 10.0, taus, 0.3 * np.sqrt(taus / 3.0), tolerance)
    assert slope == pytest.approx(0.5, abs=0.08)


def test_noise_of_the_integral_is_bounded_and_has_the_allan_slope_of_quantisation():
    """The Allan deviation is sqrt(3) std / tau; 4000 s of one axis."""
    samples = IntegralNoise(rng(), 0.02, axes=1).advance(np.full(40_000, 0.1))[:, 0]
    drift = np.cumsum(samples) * 0.1
    assert np.abs(drift).max() < 0.02 * 10.0
    taus = np.array([0.1, 1.0, 10.0])
    tolerance = SIGMAS / np.sqrt(2.0 * 4000.0 / taus)
    assert_allan(samples, 10.0, taus, math.sqrt(3.0) * 0.02 / taus, tolerance)


@pytest.mark.parametrize('dt', [0.01, 0.7, 30.0])
def test_gauss_markov_has_stationary_variance_from_the_first_sample_at_every_step(dt):
    process = GaussMarkov(rng(), 0.2, 2.0, axes=20_000)
    values = process.advance(np.full(5, dt))
    assert_variance(values[0], 0.04)
    assert_variance(values[-1], 0.04)
    correlation = np.mean(values[0] * values[1]) / 0.04
    assert correlation == pytest.approx(math.exp(-dt / 2.0), abs=SIGMAS * 1.1 / math.sqrt(20_000))


def test_gauss_markov_from_zero_reaches_its_variance_exponentially():
    process = GaussMarkov(rng(), 0.2, 2.0, stationary=False, axes=20_000)
    assert not process.value.any()
    values = process.advance(np.full(200, 0.05))
    for k in (0, 20, 199):
        t = 0.05 * (k + 1)
        assert_variance(values[k], 0.04 * (1.0 - math.exp(-2.0 * t / 2.0)))


def test_the_turn_on_bias_is_drawn_once_with_the_stated_deviation():
    process = TurnOn(rng(), 0.2, axes=20_000)
    values = process.advance(np.full(3, 0.01))
    assert (values == process.value).all()
    assert_variance(values[0], 0.04)


@given(st.floats(1e-3, 10.0), st.floats(0.1, 100.0), st.integers(1, 40))
def test_the_decay_is_exponential_at_every_step_size(dt, time_constant, n):
    values = Decay(100.0, 0.85, time_constant).advance(np.full(n, dt))[:, 0]
    t = dt * np.arange(1, n + 1)
    expected = 0.85 + 99.15 * np.exp(-t / time_constant)
    np.testing.assert_allclose(values, expected, rtol=1e-12)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 10.0))
def test_quantised_values_are_multiples_of_the_step_within_half_a_step(value, step):
    result = quantise(np.array([[value]]), step)[0, 0]
    assert abs(result - value) <= 0.5 * step * (1.0 + 1e-9) + 1e-9
    assert result / step == pytest.approx(round(result / step), abs=1e-6)


def test_quantisation_error_is_uniform_and_step_zero_changes_nothing():
    """Variance step^2/12; a uniform variance over 1e5 samples errs by 0.28 %, here 4.5 times."""
    values = rng().standard_normal((100_000, 3)) * 50.0
    error = quantise(values, [0.5, 1.0, 0.0]) - values
    np.testing.assert_allclose(error.var(0), [0.25 / 12, 1.0 / 12, 0.0], rtol=0.0128)
    assert not error[:, 2].any()


def walks(runs, dt, n, **changes):
    """Paths and final speeds of independent walks, `(runs, n, 3)` and `(runs, 3)`."""
    paths, speeds = np.empty((runs, n, 3)), np.empty((runs, 3))
    for run in range(runs):
        walk = paper_walk(rng(f'walk{run}'), **changes)
        paths[run] = walk.advance(np.full(n, dt))
        speeds[run] = walk.speed
    return paths, speeds


def test_free_walk_without_pull_is_twice_integrated_white_noise():
    """If clamps are off and c = 0, Var s = sigma^2 h t and Var e = sigma^2 h t^3/3 (h small)."""
    h, t = 0.01, 4.0
    paths, speeds = walks(2000, t, 1, speed_limit=0.0, acceleration_limit=0.0, pull=0.0)
    assert_variance(speeds.ravel(), 0.047**2 * h * t)
    # Symplectic Euler sums (n)(n+1)(2n+1)/6 h^4 instead of t^3/3 h: 0.4 % more for n = 400.
    n = t / h
    exact = 0.047**2 * h**4 * n * (n + 1) * (2 * n + 1) / 6.0
    assert exact == pytest.approx(0.047**2 * h * t**3 / 3.0, rel=0.004)
    assert_variance(paths[:, 0].ravel(), exact)


def test_the_pull_makes_the_walk_oscillate_at_the_stated_frequency():
    """sqrt(c sigma/E_max). Two walks with the same draws differ by the homogeneous solution."""
    omega = math.sqrt(0.2 * 0.047)
    changes = {'speed_limit': 0.0, 'acceleration_limit': 0.0}
    plain, kicked = paper_walk(rng(), **changes), paper_walk(rng(), **changes)
    kicked.value[:] = [0.1, 0.2, -0.3]
    dt = np.full(1500, 0.1)
    swing = kicked.advance(dt) - plain.advance(dt)
    t = 0.1 * np.arange(1, 1501)
    expected = np.cos(omega * t)[:, None] * [0.1, 0.2, -0.3]
    # Symplectic Euler at w0 h = 1e-3: the phase is half a step off, the amplitude stays.
    np.testing.assert_allclose(swing, expected, atol=0.3 * omega * 0.02)
    assert 2 * math.pi / omega == pytest.approx(65.0, abs=0.5)


@pytest.mark.parametrize(
    ('std', 'limit', 'a_max'),
    [(0.047, 0.016, 0.152), (0.016, 0.003, 0.005)],
    ids=['paper', 'bang_bang'],
)
def test_walk_never_exceeds_its_limits(std, limit, a_max):
    walk = paper_walk(rng(), acceleration_std=std, speed_limit=limit, acceleration_limit=a_max)
    dt = np.full(20_000, 0.01)
    path = np.vstack([np.zeros(3), walk.advance(dt)])
    speed = np.diff(path, axis=0) / 0.01
    norm = np.linalg.norm(speed, axis=1)
    assert norm.max() <= limit * (1.0 + 1e-9)
    assert norm.max() > 0.999 * limit
    # Before any clamp of the speed, no axis changes faster than a_max h.
    free = np.flatnonzero(norm >= limit * (1.0 - 1e-9))[0]
    assert np.abs(np.diff(speed[:free], axis=0)).max() <= a_max * 0.01 * (1.0 + 1e-6)


@pytest.mark.parametrize(
    ('model_rate', 'dt', 'low', 'high'),
    [(100.0, 0.1, 0.0069, 0.0074), (10.0, 0.1, 0.0077, 0.0083)],
)
def test_the_walk_speed_becomes_uniformly_distributed_in_the_ball(model_rate, dt, low, high):
    """s_max/sqrt(5) per axis at 100 Hz; 9000 values err by 0.56 %, a sixth of the bands."""
    paths, speeds = walks(3000, dt, 300, model_rate=model_rate)
    assert low < speeds.std() < high
    if model_rate == 100.0:
        assert speeds.std() == pytest.approx(0.016 / math.sqrt(5.0), rel=0.05)
        assert paths[:, 299].std() == pytest.approx(0.08, rel=0.1)


def test_the_walk_at_ten_hertz_has_an_error_of_nine_centimetres():
    """0.093 m per axis; the std of 1200 values errs by 2 %, the bound is 4.9 times that."""
    paths, _ = walks(400, 600.0, 1, model_rate=10.0)
    assert paths.std() == pytest.approx(0.093, rel=0.1)


def test_walk_depends_on_its_own_rate_and_not_on_that_of_the_fixes():
    """Same draws, fixes at 10, 20 and 50 Hz: the same walk where they coincide."""
    coarse = paper_walk(rng()).advance(np.full(100, 0.1))
    for factor in (2, 5):
        fine = paper_walk(rng()).advance(np.full(100 * factor, 0.1 / factor))
        np.testing.assert_allclose(fine[factor - 1 :: factor], coarse, rtol=0, atol=1e-14)


def test_the_walk_takes_a_shorter_last_step_and_none_over_zero_time():
    """0.025 s at 100 Hz is three steps of 10, 10 and 5 ms, each with one draw per axis."""
    normals = rng().standard_normal((3, 3))
    walk = paper_walk(rng(), speed_limit=0.0, acceleration_limit=0.0, pull=0.0)
    path = walk.advance(np.array([0.0, 0.025]))
    assert not path[0].any()
    s, e = np.zeros(3), np.zeros(3)
    for h, w in zip((0.01, 0.01, 0.005), normals, strict=True):
        s = s + 0.047 * w * h
        e = e + s * h
    np.testing.assert_allclose(path[1], e, rtol=1e-12)


def test_the_default_chrono_walk_is_mostly_at_its_acceleration_limits():
    """a_max/sigma = 0.005/0.016: 75 % of the draws are clipped; 4.5 sigma of 30000 draws."""
    walk = paper_walk(
        rng(), acceleration_std=0.016, acceleration_limit=0.005, speed_limit=0.0, pull=0.0
    )
    path = np.vstack([np.zeros((1, 3)), walk.advance(np.full(10_000, 0.01))])
    acceleration = np.diff(np.diff(path, axis=0, prepend=0.0), axis=0) / 0.01**2
    clipped = np.mean(np.abs(acceleration) > 0.005 * (1.0 - 1e-4))
    expected = math.erfc(0.005 / 0.016 / math.sqrt(2.0))
    assert expected == pytest.approx(0.75, abs=0.01)
    assert clipped == pytest.approx(expected, abs=SIGMAS * math.sqrt(0.1875 / 30_000))


def test_the_pull_of_the_bounded_walk_swings_the_position_about_zero():
    """Without noise and limits e'' = -e for these numbers, so e = cos t from 1 m at rest."""
    walk = paper_walk(
        rng('walk'), pull=1e6, acceleration_std=1e-6, speed_limit=0.0, acceleration_limit=0.0,
        model_rate=1000.0,
    )  # fmt: skip
    walk.value = np.array([1.0, -1.0, 0.0])
    times = 0.1 * np.arange(1, 101)
    error = walk.advance(np.full(100, 0.1))
    # A step of 1 ms makes errors of half a step.
    np.testing.assert_allclose(error[:, 0], np.cos(times), atol=1e-3)
    np.testing.assert_allclose(error[:, 1], -np.cos(times), atol=1e-3)
    np.testing.assert_allclose(error[:, 2], 0.0, atol=1e-4)
