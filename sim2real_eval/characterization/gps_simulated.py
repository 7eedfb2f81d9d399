# SPDX-License-Identifier: Apache-2.0
"""Check of fitted GPS models: simulate them at standstill and compare autocovariances."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from scipy.signal import fftconvolve

from sim2real_eval.characterization.gps_characterization import AXIS_NAMES, GpsResult
from sim2real_eval.characterization.markov_fit import MarkovFit, fit_markov
from sim2real_eval.characterization.standstill_fixes import StandingRun
from sim2real_eval.characterization.walk_fit import fit_walk
from sim_sensors.core.measurements import FloatArray
from sim_sensors.gps.position_noise import PositionNoise


def expected_autocovariance(
    fit: MarkovFit, lengths: Sequence[int], period: float, lags: int
) -> FloatArray:
    """Return the mean of `markov_likelihood.autocovariance` over records of the model.

    Each record is taken about its own mean, which takes some of a slow wander away: at lag k the
    covariances of x[i] - m and x[i + k] - m are summed sample by sample.

    Parameters
    ----------
    fit : MarkovFit
    lengths : sequence of int
        Samples of each record.
    period : float
        s between samples.
    lags : int

    Returns
    -------
    (lags + 1,) float
        m^2.
    """
    sums, counts = np.zeros(lags + 1), np.zeros(lags + 1)
    for n in lengths:
        c = _covariances(fit, n, period)
        # Mean of the covariances of a sample with all others, sample by sample.
        cumulated = np.cumsum(c)
        with_all = (cumulated + cumulated[::-1] - c[0]) / n
        whole = float(with_all.mean())
        for k in range(min(lags, n - 1) + 1):
            sums[k] += (n - k) * (c[k] + whole) - with_all[: n - k].sum() - with_all[k:].sum()
            counts[k] += n
    return sums / np.maximum(counts, 1.0)


def autocovariance_scatter(
    fit: MarkovFit, lengths: Sequence[int], period: float, lags: int
) -> FloatArray:
    """Return the standard deviation of `autocovariance` over records of the model.

    Bartlett's formula for N samples of a normal process (Brockwell and Davis, Time Series: Theory
    and Methods, 7.2): N var(c_k) = sum over all j of c_j^2 + c_(j+k) c_(j-k). It holds for records
    of many time constants; of few, whose mean takes part of it away, it is too much. Neighbouring
    lags err alike, so dots that leave the fit for a while are what such records do.

    Parameters
    ----------
    fit, lengths, period, lags
        See `expected_autocovariance`.

    Returns
    -------
    (lags + 1,) float
        m^2.
    """
    c = _covariances(fit, max(lengths), period)
    both = np.concatenate([c[:0:-1], c])
    # At 2 k from the middle: the sum of c_(j+k) c_(j-k); beyond the end it is nothing.
    products = np.append(fftconvolve(both, both), 0.0)
    middle = len(both) - 1
    crossed = products[np.minimum(middle + 2 * np.arange(lags + 1), len(products) - 1)]
    variance: FloatArray = np.maximum((products[middle] + crossed) / sum(lengths), 0.0)
    return np.asarray(np.sqrt(variance))


def _covariances(fit: MarkovFit, n: int, period: float) -> FloatArray:
    """Return the autocovariance of the model itself at lags 0 to n - 1, `(n,)` m^2."""
    g = fit.wander.value if fit.walk.observable else 0.0
    time = fit.time.value if fit.walk.observable else 1.0
    c: FloatArray = g**2 * np.exp(-np.arange(n) * period / time)
    c[0] += fit.white.value**2
    return c


# Right by construction: the GPS models are simulated over the standstills they were
# made from.

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
