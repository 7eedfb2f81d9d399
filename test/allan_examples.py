# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Records of known noise, for tests and benchmarks of the Allan analysis."""

from __future__ import annotations

import numpy as np

from sim2real_eval.characterization.noise_terms import COEFFICIENTS, NoiseTerms
from sim_sensors.core.measurements import FloatArray
from sim_sensors.noise.processes import Flicker, RandomWalk, WhiteDensity

N = 1e-3


def truth(n: int, rate: float, *, flicker: bool = True, walk: bool = True) -> dict[str, float]:
    """Coefficients that all show in `n` samples of a rate."""
    instability = N / np.sqrt(30.0 / rate) / 0.664 if flicker else 0.0
    floor = 0.664 * instability if flicker else N / np.sqrt(30.0 / rate)
    density = floor * np.sqrt(3.0 / (n / rate / 100.0)) if walk else 0.0
    zeros = dict.fromkeys(COEFFICIENTS, 0.0)
    coefficients = {'white': N, 'bias_instability': float(instability)}
    return {**zeros, **coefficients, 'random_walk': float(density)}


def record(
    coefficients: dict[str, float], n: int, rate: float, rng: np.random.Generator
) -> FloatArray:
    """One axis with the coefficients given, (n,)."""
    dt = np.full(n, 1.0 / rate)
    values = WhiteDensity(rng, coefficients['white'], axes=1).advance(dt)[:, 0]
    if coefficients['bias_instability']:
        source = Flicker(rng, coefficients['bias_instability'], 1.0 / rate, n / rate, axes=1)
        values = values + source.advance(dt)[:, 0]
    if coefficients['random_walk']:
        values = values + RandomWalk(rng, coefficients['random_walk'], axes=1).advance(dt)[:, 0]
    if coefficients['quantisation']:
        values = values + coefficients['quantisation'] * rate * np.diff(rng.standard_normal(n + 1))
    return values + coefficients['rate_ramp'] * np.arange(n) / rate


def recovered(terms: NoiseTerms, coefficients: dict[str, float]) -> bool:
    """Whether each coefficient is within three uncertainties, or below its bound."""
    return all(getattr(terms, name).agrees_with(value) for name, value in coefficients.items())
