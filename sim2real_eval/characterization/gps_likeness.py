# SPDX-License-Identifier: Apache-2.0
"""Right by construction: the GPS models are simulated over the standstills they were made from."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from sim2real_eval.characterization.gps_characterization import AXIS_NAMES, GpsResult
from sim2real_eval.characterization.markov_fit import fit_markov
from sim2real_eval.characterization.standing_fixes import StandingRun
from sim2real_eval.characterization.walk_fit import fit_walk
from sim_sensors.measurements import FloatArray
from sim_sensors.position_noise import PositionNoise

__all__ = ['SimulatedStatistic', 'gps_recovered_parameters', 'simulated_statistics']

_REPEATS = 24


def _drawn(
    noise: PositionNoise, runs: Sequence[StandingRun], seed: int, run: str
) -> list[StandingRun]:
    """Return errors of a model at the times of standstills, about their means, (n, 3) each."""
    found = []
    for number, one in enumerate(runs):
        intervals = np.concatenate([[0.0], np.diff(one.time)])
        error = noise.start(seed, f'{run}/{number}', 'gps').advance(intervals)
        found.append(dataclasses.replace(one, error=error - error.mean(axis=0)))
    return found


@dataclasses.dataclass(frozen=True)
class SimulatedStatistic:
    """One statistic of the record and of a model simulated over the same times.

    Attributes
    ----------
    model, statistic : str
    record, simulated, std : float
        Value of the record; mean and scatter over simulations.
    alike : bool
        Whether the record lies within three of these.
    """

    model: str
    statistic: str
    record: float
    simulated: float
    std: float
    alike: bool


_STATISTICS = (
    'horizontal error [m]',
    'vertical error [m]',
    'horizontal speed [m/s]',
    'vertical speed [m/s]',
)


def _statistics(runs: Sequence[StandingRun]) -> FloatArray:
    error = np.concatenate([run.error for run in runs])
    speed = np.concatenate(
        [np.diff(run.error, axis=0) / np.diff(run.time)[:, None] for run in runs]
    )
    rms = [np.sqrt(np.mean(values**2)) for values in (error[:, :2], error[:, 2], speed[:, :2])]
    return np.array([*rms, np.sqrt(np.mean(speed[:, 2] ** 2))])


def simulated_statistics(result: GpsResult, seed: int) -> list[SimulatedStatistic]:
    """Simulate each model over the standstills and hold its deviations against the record's:
    of the error, and of its difference from fix to fix, on which a velocity estimate depends.
    """
    own = _statistics(result.runs)
    found = []
    for name, noise in result.noises().items():
        drawn = np.stack(
            [
                _statistics(_drawn(noise, result.runs, seed, f'likeness/{name}/{k}'))
                for k in range(_REPEATS)
            ]
        )
        mean, std = drawn.mean(axis=0), drawn.std(axis=0, ddof=1)
        for k, statistic in enumerate(_STATISTICS):
            alike = bool(abs(own[k] - mean[k]) <= 3.0 * std[k])
            found.append(
                SimulatedStatistic(
                    name, statistic, float(own[k]), float(mean[k]), float(std[k]), alike
                )
            )
    return found


def gps_recovered_parameters(
    result: GpsResult, seed: int
) -> list[tuple[str, str, float, float, bool]]:
    """Simulate the models over the standstills and identify them again.

    Returns
    -------
    list of (axis, parameter, given, found, came back)
        Of white noise, wander and its time by axis, and of the walk's acceleration; what either
        fit does not show is left out.
    """
    noises = result.noises()
    found = []
    again = _drawn(noises['gps'], result.runs, seed, 'comeback/gps')
    for axis, name in enumerate(AXIS_NAMES):
        fit = fit_markov([(run.time, run.error[:, axis]) for run in again])
        for key in ('white', 'wander', 'time', 'walk'):
            given, one = getattr(result.axes[axis], key), getattr(fit, key)
            if given.observable and one.observable:
                found.append((name, key, given.value, one.value, one.agrees_with(given.value)))
    if result.walk.acceleration_std.observable and result.walk.acceleration_std.value > 0.0:
        walk = fit_walk(_drawn(noises['gps_random_walk'], result.runs, seed, 'comeback/walk'))
        one, given = walk.acceleration_std, result.walk.acceleration_std
        if one.observable and not math.isnan(one.std):
            found.append(
                ('all', 'acceleration_std', given.value, one.value, one.agrees_with(given.value))
            )
    return found
