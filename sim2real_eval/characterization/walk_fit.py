# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Chrono's bounded random walk from fixes at standstill, as [Mahajan2024] reads it off.

For a walk of step h = 1/model_rate and M steps per fix, no limit reached and no pull, the second
difference of the error at fixes T = M h apart is h^2 times a sum of accelerations with weights
1, 2, ... M ... 2, 1, so

    std(e[k+1] - 2 e[k] + e[k-1]) / T^2 = acceleration_std sqrt(M (2 M^2 + 1) / 3) / M^2

and with M = 1, the walk running at the rate of the fixes, it is acceleration_std itself: the rule
of the paper. The speed limit takes the part of an acceleration that would exceed it, so where the
limit is reached the rule comes out low; the value here is the one whose simulated walk has the
second difference of the record.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from sim_sensors.core.measurements import FloatArray
from sim_sensors.gps.simulators import RandomWalkNoise
from .noise_terms import ParameterEstimate, unseen
from .standstill_fixes import StandingRun

_SIMULATED = 20_000
_ROUNDS = 5
# Deviation over maximum: of Gaussian values clipped at 1.5 deviations it is about this.
_CLIPPED = 0.6


@dataclasses.dataclass(frozen=True)
class WalkFit:
    """Parameters of Ch:RW at the rate of the fixes."""

    # Its deviation over T^2, all axes, m/s^2 (the paper's acceleration_std), and that of the walk,
    # m/s^2 per step
    second_difference: ParameterEstimate
    acceleration_std: ParameterEstimate
    # Largest speed (3-D), acceleration (one axis) and error (3-D, about the mean) of the record
    speed_limit: ParameterEstimate
    acceleration_limit: ParameterEstimate
    maximal_error: ParameterEstimate
    saturated: bool  # whether no walk within the speed limit has so large a second difference

    def noise(self, rate: float) -> RandomWalkNoise:
        """Return the noise model."""
        limits = (self.speed_limit, self.acceleration_limit, self.maximal_error)
        return _walk(self.acceleration_std.value, rate, *(limit.value for limit in limits))


def _walk(
    std: float, rate: float, speed: float, acceleration: float, error: float
) -> RandomWalkNoise:
    return RandomWalkNoise(
        acceleration_std=std,
        model_rate=rate,
        speed_limit=speed,
        acceleration_limit=acceleration,
        error_scale=max(error, 1e-6),
    )


def even_errors(runs: Sequence[StandingRun]) -> tuple[list[FloatArray], float]:
    """Return pieces of errors without a gap, each (n, 3) m, and their median interval, s."""
    period = float(np.median(np.concatenate([np.diff(run.time) for run in runs])))
    pieces = []
    for run in runs:
        cuts = np.flatnonzero(np.abs(np.diff(run.time) - period) > 0.25 * period) + 1
        pieces += [piece for piece in np.split(run.error, cuts) if len(piece) >= 3]
    return pieces, period


def fit_walk(runs: Sequence[StandingRun]) -> WalkFit:
    """Fit the walk to standstills.

    Notes
    -----
    The uncertainty counts samples by their own correlation (Bartlett: n / sum of squared
    autocorrelations). Extremes are read off: a longer record has larger ones. The error scale of
    the pull, for which the paper takes the maximal error, has hardly any effect within the
    record and cannot be fitted.
    """
    pieces, period = even_errors(runs)
    if not pieces:
        remark = 'no three fixes in a row are evenly spaced'
        none = unseen('m/s^2', remark)
        return WalkFit(none, none, unseen('m/s', remark), none, unseen('m', remark), False)
    second = np.concatenate([np.diff(piece, 2, axis=0) for piece in pieces]) / period**2
    first = np.concatenate([np.diff(piece, axis=0) for piece in pieces]) / period
    measured = float(np.sqrt(np.mean(second**2)))
    relative = 1.0 / math.sqrt(2.0 * sum(_independent(column) for column in second.T))
    speed = float(np.linalg.norm(first, axis=1).max())
    limit = float(np.abs(second).max())
    largest = float(max(np.linalg.norm(run.error, axis=1).max() for run in runs))
    walk, slope, saturated = _matching(measured, speed, limit, largest, 1.0 / period)
    plain = ParameterEstimate(
        measured, relative * measured, 'm/s^2', True,
        measured * (1.0 - 1.96 * relative), measured * (1.0 + 1.96 * relative),
    )  # fmt: skip
    if measured > _CLIPPED * limit:
        remark = 'most accelerations are at their limit'
        acceleration = unseen('m/s^2', remark, value=max(walk, measured), lower=measured)
    elif saturated:
        remark = 'the speed limit allows no such accelerations: this error is no Ch:RW'
        acceleration = unseen('m/s^2', remark, value=walk, lower=walk)
    else:
        error = walk * relative * slope
        acceleration = ParameterEstimate(
            walk, error, 'm/s^2', True, max(walk - 1.96 * error, 0.0), walk + 1.96 * error
        )
    extreme = 'largest of the record; grows with its length'
    return WalkFit(
        second_difference=plain,
        acceleration_std=acceleration,
        speed_limit=ParameterEstimate(speed, math.nan, 'm/s', remark=extreme),
        acceleration_limit=ParameterEstimate(limit, math.nan, 'm/s^2', remark=extreme),
        maximal_error=ParameterEstimate(largest, math.nan, 'm', remark=extreme),
        saturated=saturated,
    )


def _independent(values: FloatArray) -> float:
    """Return how many independent samples tell as much of the variance."""
    n = len(values)
    power = float(values @ values)
    if power <= 0.0:
        return float(n)
    total = 1.0
    for lag in range(1, min(n // 4, 50)):
        total += 2.0 * (float(values[: n - lag] @ values[lag:]) / power) ** 2
    return n / total


def _matching(
    target: float, speed: float, limit: float, largest: float, rate: float
) -> tuple[float, float, bool]:
    """Return acceleration_std whose walk has the second difference `target`, d ln of the former
    by d ln of the latter, and whether there is none.
    """
    if target <= 0.0:
        return 0.0, 1.0, False
    intervals = np.concatenate([[0.0], np.full(_SIMULATED - 1, 1.0 / rate)])

    def found(std: float) -> float:
        # The same draws for every value: the answer is smooth, and the same every time.
        noise = _walk(std, rate, speed, limit, largest)
        error = noise.start(0, 'characterize', 'gps').advance(intervals)
        return float(np.sqrt(np.mean((np.diff(error, 2, axis=0) * rate**2) ** 2)))

    grid = target * np.geomspace(0.9, 6.0, 12)
    values = np.array([found(float(std)) for std in grid])
    for _ in range(_ROUNDS):
        above = np.flatnonzero(values >= target)
        if not len(above) or above[0] == 0:
            break
        k = int(above[0])
        grid = np.geomspace(grid[k - 1], grid[k], 4)
        values = np.array([found(float(std)) for std in grid])
    enough = target * (1.0 - 1e-9)
    if values.max() < enough:
        return float(grid[int(np.argmax(values))]), math.nan, True
    k = max(int(np.flatnonzero(values >= enough)[0]), 1)
    share = math.log(target / values[k - 1]) / math.log(values[k] / values[k - 1])
    walk = float(grid[k - 1] * (grid[k] / grid[k - 1]) ** share)
    slope = 0.2 / math.log(found(1.1 * walk) / found(1.1**-1 * walk)) * math.log(1.1) / 0.1
    return walk, max(abs(slope), 1.0), False
