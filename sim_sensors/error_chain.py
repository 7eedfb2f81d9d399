# SPDX-License-Identifier: Apache-2.0
"""The errors of a triad with all of them, with their state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sim_sensors.digitisation import IncrementQuantiser, quantise, saturate
from sim_sensors.flicker import Flicker
from sim_sensors.low_pass import LowPass
from sim_sensors.measurements import FloatArray
from sim_sensors.noise import (
    GaussMarkov,
    IntegralNoise,
    Process,
    Ramp,
    RandomWalk,
    TurnOn,
    WhiteDensity,
)
from sim_sensors.seeding import stream

if TYPE_CHECKING:
    from sim_sensors.imu_chain import ErrorChain
    from sim_sensors.temperature import Temperature

__all__ = ['ChainTriad']


class ChainTriad:
    """Three axes with the errors of `sim_sensors.imu_chain.ImuChain`.

    What is zero is left out; since each source has a stream of its own, that changes no other.

    Parameters
    ----------
    part : ErrorChain
        The errors.
    temperature : Temperature
        Of the sensor.
    seed, run, sensor
        Labels of the random streams; see `sim_sensors.seeding.stream`.
    name : str
        First word of the labels of the sources, `gyroscope` or `accelerometer`.
    """

    def __init__(
        self,
        part: ErrorChain,
        temperature: Temperature,
        seed: int,
        run: str,
        sensor: str,
        name: str,
    ) -> None:
        def rng(source: str) -> np.random.Generator:
            return stream(seed, run, sensor, f'{name}_{source}')

        self._part = part
        self._sensitivity = _sensitivity(part)
        self._thermometer = temperature.start()
        self._white = WhiteDensity(
            rng('white'), part.noise_density, correlation=part.noise_correlation
        )
        self._integral = IntegralNoise(rng('integral'), part.quantisation_noise)
        self._constant = TurnOn(rng('turn_on'), part.turn_on_std, part.constant_bias)
        self._walking: list[Process] = []
        if any(part.gauss_markov_std):
            self._walking.append(
                GaussMarkov(rng('gauss_markov'), part.gauss_markov_std, part.gauss_markov_time)
            )
        if any(part.random_walk):
            self._walking.append(RandomWalk(rng('bias'), part.random_walk))
        if any(part.bias_instability):
            span = part.bias_instability_from, part.bias_instability_to
            self._walking.append(Flicker(rng('flicker'), part.bias_instability, *span))
        if any(part.rate_ramp):
            self._walking.append(Ramp(part.rate_ramp))
        self._filter = LowPass(part.bandwidth, part.filter_order) if part.bandwidth else None
        self._counter = IncrementQuantiser(part.increment_quantisation)
        self.bias: FloatArray = np.array(self._constant.value)
        for process in self._walking:
            self.bias = self.bias + process.value

    def corrupt(
        self, truth: FloatArray, dt: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return measured values, the bias in them and the variance of the white noise, each
        `(n, 3)`, for true values `(n, 3)` at intervals `dt` `(n,)` s.
        """
        warmth = self._thermometer.advance(dt)
        bias = self._constant.advance(dt) + warmth * self._part.temperature_bias
        for process in self._walking:
            bias = bias + process.advance(dt)
        if len(bias):
            self.bias = bias[-1].copy()
        white, variance = self._white.advance(dt), self._white.variance(dt)
        if any(self._part.quantisation_noise):
            white = white + self._integral.advance(dt)
        clean = self._scaled(truth, warmth) + bias
        if self._filter is None:
            values = clean + white
        else:
            values, variance = self._filter.filter(clean, white, variance, dt)
        values = quantise(saturate(values, self._part.range), self._part.quantisation)
        return self._counter.apply(values, dt), bias, variance

    def _scaled(self, truth: FloatArray, warmth: FloatArray) -> FloatArray:
        # Written out: a matrix product may add in another order for another number of rows.
        s = self._sensitivity
        seen = truth[:, [0]] * s[:, 0] + truth[:, [1]] * s[:, 1] + truth[:, [2]] * s[:, 2]
        return np.asarray(seen * (1.0 + warmth * self._part.temperature_scale))


def _sensitivity(part: ErrorChain) -> FloatArray:
    """Return S, `(3, 3)`: row by row what each axis sees of x, y, z."""
    matrix = np.eye(3) + np.diag(part.scale)
    matrix[[0, 0, 1], [1, 2, 2]] = part.cross_axis_upper
    matrix[[1, 2, 2], [0, 0, 1]] = part.cross_axis_lower
    return matrix
