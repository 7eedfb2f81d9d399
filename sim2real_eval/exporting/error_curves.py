# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Allan deviation and increments that the laws of sensor models have, without simulation."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from sim2real_eval.characterization.allan_covariance import term_shapes
from sim2real_eval.characterization.low_pass import LowPassShape
from sim_sensors.core.measurements import FloatArray
from sim_sensors.gps.gps import GnssNoise
from sim_sensors.imu.chain import ErrorChain
from sim_sensors.noise.processes import relaxation_processes

_Q, _N, _, _K, _M, _R = range(6)


def allan_variance(part: ErrorChain, rate: float, times: FloatArray) -> FloatArray:
    """Return the Allan variance of three axes at averaging times `(k,)` s, `(k, 3)`.

    The samples are `rate` Hz apart; times below one interval count as one. Constant errors, and
    those of the scale, have no part in it. The walking terms pass the low pass unchanged, since
    they hardly move within its time constant.

    The terms are those of `term_shapes`. Flicker has the span of the model: a sum of Gauss-Markov
    processes that are averaged over each interval, as `sim_sensors.noise.processes.Flicker`
    realises it.
    """
    m = np.maximum(times * rate, 1.0)
    low_pass = _low_pass(part, rate)
    shapes = term_shapes(m, low_pass=low_pass)
    counted = np.asarray(part.increment_quantisation) / math.sqrt(12.0)
    markov = np.stack(
        [term_shapes(m, time * rate)[:, _M] for time in part.gauss_markov_time], axis=1
    )
    flicker = flicker_variance(part.bias_instability_from, part.bias_instability_to, m / rate)
    integral = _filtered_integral(low_pass, m)
    variance = np.outer(shapes[:, _N], rate * np.asarray(part.noise_density) ** 2)
    variance += np.outer(integral, (rate * np.asarray(part.quantisation_noise)) ** 2)
    variance += np.outer(1.0 / m, np.asarray(part.quantisation) ** 2 / 12.0)
    variance += np.outer(shapes[:, _Q], (rate * counted) ** 2)
    variance += np.outer(flicker, np.asarray(part.bias_instability) ** 2)
    variance += np.outer(shapes[:, _K], np.asarray(part.random_walk) ** 2 / rate)
    variance += markov * np.asarray(part.gauss_markov_std) ** 2
    return variance + np.outer(shapes[:, _R], (np.asarray(part.rate_ramp) / rate) ** 2)


def _low_pass(part: ErrorChain, rate: float) -> LowPassShape | None:
    """Return the low pass of a model at its rate, Hz."""
    if not part.bandwidth:
        return None
    return LowPassShape(part.bandwidth / rate, part.filter_order, 'held')


def settled_time(part: ErrorChain, rate: float) -> float:
    """Return the averaging time, s, from which a low pass no longer shows.

    There the white noise has 95 % of its Allan variance without the filter.
    """
    m = np.geomspace(1.0, max(10.0, 100.0 * rate / (part.bandwidth or rate)), 200)
    share = term_shapes(m, low_pass=_low_pass(part, rate))[:, _N] * m
    low = np.flatnonzero(share < 0.95)
    return float(m[min(low[-1] + 1, len(m) - 1)] / rate) if len(low) else 1.0 / rate


def _filtered_integral(low_pass: LowPassShape | None, m: FloatArray) -> FloatArray:
    """Return the Allan variance of differences of filtered white noise of deviation 1, `(k,)`."""
    if low_pass is None:
        return 3.0 / m**2
    # The autocovariance is half the second difference of the variance of sums.
    sums = low_pass.sum_variances
    covariance = np.concatenate([sums[1:2], 0.5 * np.diff(sums, 2)])
    lags = np.arange(len(covariance))
    once, twice = (
        2.0 * (covariance[0] - np.interp(count, lags, covariance, right=0.0))
        for count in (m, 2.0 * m)
    )
    return np.asarray((4.0 * once - twice) / (2.0 * m**2))


def flicker_variance(shortest: float, longest: float, times: FloatArray) -> FloatArray:
    """Return the Allan variance of flicker with B = 1, `(k,)`."""
    constants, stds = relaxation_processes(shortest, longest)
    variance = np.zeros(len(times))
    for std, constant in zip(stds, constants, strict=True):
        x = times / constant
        variance += std**2 * (4.0 * _integral(x) - _integral(2.0 * x)) / x**2
    return variance


def _integral(x: FloatArray) -> FloatArray:
    """Return half the variance of the integral of a Gauss-Markov process over x time constants.

    It lacks x^2 / 2, which drops out of an Allan variance and would cost digits. A series replaces
    it where x is small.
    """
    small = np.minimum(x, 0.05)
    series = small**3 * (-1.0 / 6.0 + small * (1.0 / 24.0 - small / 120.0))
    return np.where(x < 0.05, series, np.expm1(-x) + x - 0.5 * x**2)


def position_std(noise: GnssNoise) -> FloatArray:
    """Return the standard deviation of a position about its constant error, m, `(3,)`.

    A random walk has none and is left out.
    """
    settled = np.array([1e12])
    walk_free = dataclasses.replace(noise, random_walk=(0.0, 0.0, 0.0))
    return np.asarray(np.sqrt(0.5 * position_increments(walk_free, settled)[0]))


def position_increments(noise: GnssNoise, lags: FloatArray) -> FloatArray:
    """Return the variance of the increments of a position error over lags `(k,)` s, `(k, 3)`."""
    share = (
        1.0
        if noise.tails != 'contaminated'
        else (1.0 + noise.outlier_share * (noise.outlier_scale**2 - 1.0))
    )
    white = 2.0 * share * np.asarray(noise.white_std) ** 2
    decay = -np.expm1(-lags[:, None] / np.asarray(noise.gauss_markov_time))
    markov = 2.0 * np.asarray(noise.gauss_markov_std) ** 2 * decay
    return np.asarray(white + markov + np.outer(lags, np.asarray(noise.random_walk) ** 2))
