# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Best parameters of a simulator's own error law for a sensor model."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import least_squares

from sim2real_eval.characterization.allan_covariance import term_shapes
from sim_sensors.core.measurements import FloatArray
from sim_sensors.imu.chain import ErrorChain, ImuChain
from .error_curves import flicker_variance, settled_time

QUANTITIES = ('gyroscope', 'accelerometer')
KEY_TIMES = (1.0, 10.0, 100.0)
"""Averaging times, s, that are read off most; every fit includes those within its range."""
_PER_DECADE = 20
# Weight of the residuals at the key times. The accelerometers of the ADIS16405 follow within 12 %
# there with 14; larger weights spoil the averages beyond.
_WEIGHT = 14.0
# Share of the longest time up to which they are weighed; a measured curve scatters beyond.
_WELL_KNOWN = 1.0 / 3.0
# The longest correlation time, as a multiple of the longest averaging time: a random walk.
_WALKING = 100.0
# Span of the flicker of `matlab_imu`, s, the default of `ErrorChain`.
_FLICKER_SPAN = (ErrorChain().bias_instability_from, ErrorChain().bias_instability_to)
_DRIFTS = ('gauss_markov_std', 'random_walk', 'bias_instability', 'rate_ramp')


@dataclasses.dataclass(frozen=True)
class Law:
    """Errors of a triad that a simulator can produce besides white noise.

    `drift` is 'none', 'walk', 'gauss_markov' or 'flicker' (with a random walk). If `per_axis` is
    False, there is one number for the three axes; if `per_axis_time` is False, one correlation
    time. `constant`, `turn_on` and `rounding` say whether it has these errors.
    """

    drift: str = 'none'
    per_axis: bool = True
    per_axis_time: bool = True
    constant: bool = False
    turn_on: bool = False
    rounding: bool = False


def averaging_times(shortest: float, longest: float) -> FloatArray:
    """Return the averaging times of a fit, evenly spaced in the logarithm, `(k,)` s.

    They include those of `KEY_TIMES` within the range.
    """
    count = max(2, math.ceil(_PER_DECADE * math.log10(longest / shortest)) + 1)
    key_times = [time for time in KEY_TIMES if shortest <= time <= longest]
    return np.unique(np.concatenate([np.geomspace(shortest, longest, count), key_times]))


def shortest_time(source: ImuChain, rate: float) -> float:
    """Return the shortest averaging time, s, at which a model without low pass can follow."""
    parts = (getattr(source, name) for name in QUANTITIES)
    return max(1.0 / rate, *(settled_time(part, source.rate) for part in parts))


def fit_law(
    source: ErrorChain,
    law: Law,
    times: FloatArray,
    target: FloatArray,
    *,
    source_rate: float,
    rate: float,
    slack: float = 0.02,
) -> ErrorChain:
    """Return the errors that a law can have and that are nearest to those of a sensor.

    The weighted sum of the squared differences of the logarithmic Allan deviations is least; the
    key times weigh more. A law with one number for three axes follows the mean Allan variance of
    the axes with errors.

    Parameters
    ----------
    source : ErrorChain
        Model of the sensor.
    law : Law
    times, target : (k,) float, (k, 3) float
        Averaging times, s, and the Allan variance that the sensor has there.
    source_rate, rate : float
        Sample rates of the model and of the simulator, Hz.
    slack : float
        Relative difference of the white noise from the density on the white slope of the model.
    """
    rounding = np.zeros(3) if law.rounding else np.asarray(source.quantisation) ** 2 / 12.0
    white = np.sqrt(np.asarray(source.noise_density) ** 2 + rounding / source_rate)
    drifting = np.any([np.asarray(getattr(source, name)) != 0.0 for name in _DRIFTS], axis=0)
    if not law.per_axis and (active := target.any(axis=0)).any():
        target = np.tile(target[:, active].mean(axis=1, keepdims=True), 3)
        white = np.full(3, math.sqrt(np.mean(white[active] ** 2)))
        drifting = np.full(3, drifting.any())
    drift = _DRIFT_SHAPES[law.drift]
    fits = [
        _Fit(target[:, i], white[i], slack, times, rate, drift if drifting[i] else None)
        for i in range(3)
    ]
    values = [fit.solve() for fit in fits]
    if law.drift == 'gauss_markov' and not law.per_axis_time and drifting.any():
        time = _Fit(target.sum(axis=1), 0.0, slack, times, rate, drift).solve()[
            'gauss_markov_time'
        ]
        values = [fit.solve(time) for fit in fits]
    mapping = {
        name: [row.get(name, 100.0 if name == 'gauss_markov_time' else 0.0) for row in values]
        for name in (
            'noise_density', 'gauss_markov_std', 'gauss_markov_time', 'random_walk',
            'bias_instability',
        )
    }  # fmt: skip
    if law.constant:
        mapping['constant_bias'] = list(source.constant_bias)
    if law.turn_on:
        turn_on = np.asarray(source.turn_on_std)
        mapping['turn_on_std'] = list(turn_on if law.per_axis else [_mean_size(turn_on)] * 3)
    if law.rounding:
        mapping['quantisation'] = list(source.quantisation)
    return type(source).from_mapping(mapping, 'fit')


def _mean_size(values: FloatArray) -> float:
    return math.sqrt(np.mean(values**2))


def _gauss_markov(parameters: FloatArray, times: FloatArray, rate: float) -> FloatArray:
    """Return the Allan variance of a Gauss-Markov bias with [deviation, correlation time]."""
    std, time = parameters
    return np.asarray(std**2 * term_shapes(times * rate, time * rate)[:, 4])


def _walk(parameters: FloatArray, times: FloatArray, rate: float) -> FloatArray:
    return np.asarray(parameters[0] ** 2 / rate * term_shapes(times * rate)[:, 3])


def _flicker_and_walk(parameters: FloatArray, times: FloatArray, rate: float) -> FloatArray:
    flicker = parameters[0] ** 2 * flicker_variance(*_FLICKER_SPAN, times)
    return np.asarray(flicker + _walk(parameters[1:], times, rate))


@dataclasses.dataclass(frozen=True)
class _Drift:
    """A drift: its parameters, and its Allan variance as a function of them."""

    names: tuple[str, ...]
    variance: Callable[[FloatArray, FloatArray, float], FloatArray]


_DRIFT_SHAPES: dict[str, _Drift | None] = {
    'none': None,
    'walk': _Drift(('random_walk',), _walk),
    'gauss_markov': _Drift(('gauss_markov_std', 'gauss_markov_time'), _gauss_markov),
    'flicker': _Drift(('bias_instability', 'random_walk'), _flicker_and_walk),
}


class _Fit:
    """Fit of one axis; `white` is the density that it keeps to, 0 if it is free."""

    def __init__(
        self,
        target: FloatArray,
        white: float,
        slack: float,
        times: FloatArray,
        rate: float,
        drift: _Drift | None,
    ) -> None:
        self._target, self._white, self._times, self._rate = target, white, times, rate
        self._slack = slack if white else math.log(1e6)
        self._drift = drift
        self._weights = np.where(
            np.isin(times, KEY_TIMES) & (times <= _WELL_KNOWN * times[-1]), _WEIGHT, 1.0
        )

    def solve(self, time: float | None = None) -> dict[str, float]:
        """Return the coefficients by name; a given correlation time is kept."""
        if not self._target.all():
            return {}
        times, drift = self._times, self._drift
        density = self._white or math.sqrt(self._target[0] * times[0])
        if drift is None and self._white:
            return {'noise_density': self._white}
        low, high = [math.log(density) - self._slack], [math.log(density) + self._slack]
        starts: list[list[float]] = [[]]
        if drift is not None:
            level = math.sqrt(self._target.min())
            longest = times[-1] if time is None else time
            starts = {
                'random_walk': [[math.log(level / math.sqrt(times[-1]))]],
                'bias_instability': [
                    [math.log(level), math.log(level / math.sqrt(times[-1]) * share)]
                    for share in (1e-3, 1.0)
                ],
                'gauss_markov_std': [
                    [math.log(level), math.log(start)]
                    for start in np.geomspace(0.3, longest, 7)
                ] if time is None else [[math.log(level), math.log(time)]],
            }[drift.names[0]]  # fmt: skip
            low += [math.log(level) - 25.0] * len(drift.names)
            high += [math.log(level) + 12.0] * len(drift.names)
            if drift.names[-1] == 'gauss_markov_time':
                span = (
                    (1.0, _WALKING * times[-1]) if time is None else (0.999 * time, time * 1.001)
                )
                low[-1], high[-1] = math.log(span[0]), math.log(span[1])
        fits = [
            least_squares(
                self._residuals,
                np.clip([math.log(density), *start], low, high),
                bounds=(low, high),
            )
            for start in starts
        ]
        best = min(fits, key=lambda fit: fit.cost).x
        names = ('noise_density', *(drift.names if drift is not None else ()))
        return dict(zip(names, map(float, np.exp(best)), strict=True))

    def _residuals(self, logarithms: FloatArray) -> FloatArray:
        values = np.exp(logarithms)
        variance = values[0] ** 2 / self._times
        if self._drift is not None:
            variance = variance + self._drift.variance(values[1:], self._times, self._rate)
        return np.asarray(0.5 * self._weights * np.log(variance / self._target))
