# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Noise terms as a sensor model and its file."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from sim_sensors.imu.chain import ImuChain
from .low_pass import LowPassShape
from .noise_terms import NoiseTerms


def dithered_white(
    density: float, rate: float, step: float, passed: float | None = None
) -> tuple[float, float]:
    """Return the white noise before rounding, u/sqrt(Hz), and the step of the rounding, u.

    Rounding adds step^2 / 12 to the variance of a sample as long as the noise moves the values
    over the steps, with a deviation of half a step at least; below that it is no noise of its own,
    and no rounding is modelled (step 0).

    `density` is the white noise as measured, rounding included, u/sqrt(Hz), at `rate` Hz; `step`
    the resolution, u, 0 for none. If there is a low pass, only `passed` Hz of the rate carry
    noise, twice the noise bandwidth.
    """
    inner = density**2 - step**2 / 12.0 / rate
    if step <= 0.0 or inner * (passed or rate) < (0.5 * step) ** 2:
        return density, 0.0
    return math.sqrt(inner), step


def passed_bandwidth(bandwidth: float, order: int) -> float:
    """Return the part of the sample rate, Hz, whose noise a low pass lets through."""
    return 2.0 * LowPassShape(bandwidth, order).noise_bandwidth


def chain_model(
    terms: Mapping[str, NoiseTerms],
    *,
    rate: float,
    steps: Mapping[str, float] | None = None,
    biases: Mapping[str, tuple[float, float]] | None = None,
) -> ImuChain:
    """Return the sensor model with these terms, by axis as in `signals.AXES`, at `rate` Hz.

    Axes that are missing have no errors. `steps` are resolutions by axis, u; `biases` constant
    biases and how far each scatters from one recording to the next, by axis, u.
    """
    steps, biases = steps or {}, biases or {}
    mapping: dict[str, Any] = {'rate': rate}
    for quantity in ('gyroscope', 'accelerometer'):
        axes = [f'{quantity}_{axis}' for axis in 'xyz']
        rows = [terms.get(axis) for axis in axes]
        bandwidth, order = common_low_pass(rows)
        passed = passed_bandwidth(bandwidth, order) if bandwidth else None
        white = [
            dithered_white(row.white.value, rate, steps.get(axis, 0.0), passed)
            if row
            else (0.0, 0.0)
            for axis, row in zip(axes, rows, strict=True)
        ]
        longest = max((row.seconds for row in rows if row), default=1.0)
        mapping[quantity] = {
            'noise_density': [density for density, _ in white],
            'bias_instability': [row.bias_instability.value if row else 0.0 for row in rows],
            # The fit knows one plateau over all averaging times of the record.
            'bias_instability_from': 1.0 / rate,
            'bias_instability_to': max(longest, 10.0 / rate),
            'random_walk': [row.random_walk.value if row else 0.0 for row in rows],
            'gauss_markov_std': [_markov(row)[0] for row in rows],
            'gauss_markov_time': [_markov(row)[1] for row in rows],
            'rate_ramp': [row.rate_ramp.value if row else 0.0 for row in rows],
            'bandwidth': bandwidth,
            'filter_order': order,
            'quantisation': [step for _, step in white],
            'quantisation_noise': [row.quantisation.value if row else 0.0 for row in rows],
            'constant_bias': [biases.get(axis, (0.0, 0.0))[0] for axis in axes],
            'turn_on_std': [biases.get(axis, (0.0, 0.0))[1] for axis in axes],
        }
    # The mean of a gyroscope at rest includes the rate of the Earth.
    mapping['gyroscope']['earth_in_bias'] = any(mapping['gyroscope']['constant_bias'])
    return ImuChain.from_mapping(mapping, 'Allan fit')


def common_low_pass(rows: Sequence[NoiseTerms | None]) -> tuple[float, int]:
    """Return bandwidth, Hz, and order of the low pass of the axes of a sensor.

    It has the most frequent order and the median bandwidth of the axes of that order, if more than
    half of the axes show a low pass; otherwise the bandwidth is 0.
    """
    present = [row for row in rows if row]
    filters = [row.low_pass for row in present if row.low_pass]
    if not filters or 2 * len(filters) <= len(present):
        return 0.0, 2
    order = statistics.mode(limits.order for limits in filters)
    widths = sorted(limits.bandwidth.value for limits in filters if limits.order == order)
    return widths[len(widths) // 2], order


def _markov(row: NoiseTerms | None) -> tuple[float, float]:
    """Return deviation, u, and time, s, of the Gauss-Markov bias; 0 and any time for none."""
    if row is None or row.gauss_markov is None or row.gauss_markov_time is None:
        return 0.0, 100.0
    return row.gauss_markov.value, row.gauss_markov_time.value


def discrete(coefficient: str, value: float, rate: float) -> float:
    """Return what a coefficient means for one sample or step at a rate, in the unit of the signal.

    White noise: standard deviation of a sample, N sqrt(rate). Random walk: of a step,
    K / sqrt(rate). Quantisation: of the noise of a sample, sqrt(2) Qz rate. Ramp: change per
    sample. Bias instability and Gauss-Markov bias: themselves, for they have no rate.
    """
    factors = {
        'quantisation': math.sqrt(2.0) * rate,
        'white': math.sqrt(rate),
        'bias_instability': 1.0,
        'random_walk': 1.0 / math.sqrt(rate),
        'rate_ramp': 1.0 / rate,
        'gauss_markov': 1.0,
        'gauss_markov_time': 1.0,
        'bandwidth': 1.0,
    }
    return value * factors[coefficient]
