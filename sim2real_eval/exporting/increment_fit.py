# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Best parameters of a simulator's own law of a GPS for a receiver model."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from scipy.optimize import least_squares

from sim_sensors.core.measurements import FloatArray
from sim_sensors.gps.gps import GnssNoise

_LONGEST_MULTIPLE = 100.0
# Variance of an increment of white noise over that of the noise.
_OF_WHITE = 2.0


@dataclasses.dataclass(frozen=True)
class IncrementLaw:
    """Position errors that a simulator can produce.

    `has_white` says whether there is white noise. `drift_time` is None if there is no Gauss-Markov
    error, 0 if its correlation time can be chosen, and else that time, s. If `one_time`, all axes
    have the same. Axes of one of `groups` (east 0, north 1, up 2) have the same numbers.
    `has_constant` says whether there is a constant error.
    """

    has_white: bool = True
    drift_time: float | None = None
    one_time: bool = False
    groups: tuple[tuple[int, ...], ...] = ((0,), (1,), (2,))
    has_constant: bool = False


def fit_increments(
    law: IncrementLaw, lags: FloatArray, target: FloatArray, source: GnssNoise
) -> GnssNoise:
    """Return the errors that a law can have whose increments are nearest to a receiver's.

    The sum of the squared differences of the logarithms is least. `lags` are `(k,)` s, `target`
    `(k, 3)` m^2 is the variance of the increments of the position over them.
    """
    time = law.drift_time
    drifts = any(source.gauss_markov_std) or any(source.random_walk)
    if law.has_white and not drifts:
        time = None
    elif time == 0.0 and law.one_time and target.any():
        time = _fit_axis(law, lags, target.sum(axis=1), 0.0)[2]
    white, std, times = np.zeros(3), np.zeros(3), np.full(3, 100.0)
    for group in law.groups:
        members = list(group)
        mean = target[:, members].mean(axis=1)
        if mean.all():
            white[members], std[members], times[members] = _fit_axis(law, lags, mean, time)
    if law.drift_time and time is not None:
        times[:] = law.drift_time
    mapping = {'white_std': white, 'gauss_markov_std': std, 'gauss_markov_time': times}
    if law.one_time and time:
        mapping['gauss_markov_time'] = np.full(3, time)
    if law.has_constant:
        mapping['mean'] = np.asarray(source.mean)
    return GnssNoise.from_mapping(
        {name: list(map(float, row)) for name, row in mapping.items()}, 'fit'
    )


def _fit_axis(
    law: IncrementLaw, lags: FloatArray, target: FloatArray, time: float | None
) -> tuple[float, float, float]:
    """Return white deviation, drift deviation and correlation time of one axis.

    `time` is None for no drift, 0 for a free correlation time.
    """
    level = math.log(math.sqrt(float(np.median(target)) / _OF_WHITE))
    starts: list[list[float]] = [[]]
    low: list[float] = []
    high: list[float] = []
    if law.has_white:
        starts, low, high = [[level]], [level - 12.0], [level + 8.0]
    if time is not None:
        low, high = [*low, level - 12.0], [*high, level + 8.0]
        choices = np.log(np.geomspace(lags[0], lags[-1], 6)) if time == 0.0 else [math.nan]
        starts = [
            [*start, level, *([] if time else [choice])] for start in starts for choice in choices
        ]
        if time == 0.0:
            low.append(math.log(lags[0]) - 1.0)
            high.append(math.log(_LONGEST_MULTIPLE * lags[-1]))

    def unpack(logarithms: FloatArray) -> tuple[float, float, float]:
        values = list(np.exp(logarithms))
        white = values.pop(0) if law.has_white else 0.0
        std = values.pop(0) if time is not None else 0.0
        return white, std, values.pop(0) if values else (time or 100.0)

    def residuals(logarithms: FloatArray) -> FloatArray:
        white, std, constant = unpack(logarithms)
        variance = 2.0 * white**2 - 2.0 * std**2 * np.expm1(-lags / constant)
        return np.asarray(0.5 * np.log(np.maximum(variance, 1e-300) / target))

    fits = [least_squares(residuals, np.clip(x, low, high), bounds=(low, high)) for x in starts]
    return unpack(min(fits, key=lambda fit: fit.cost).x)
