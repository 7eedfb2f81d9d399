# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Errors of a triad: three axes that are measured together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from sim_sensors.core.measurements import FloatArray
from .electronics import quantise
from .processes import Process, RandomWalk, White, WhiteDensity

Corrupted = tuple[FloatArray, FloatArray, FloatArray]
"""Measured values, the bias in them and the variance of their white noise, `(n, 3)` each."""


class AxisErrors(Protocol):
    """Interface of the errors of a triad, with their state."""

    @property
    def bias(self) -> FloatArray:
        """Present bias, `(3,)`."""

    def corrupt(self, truth: FloatArray, dt: FloatArray) -> Corrupted:
        """Return the measurement of true values `(n, 3)` at intervals `dt` `(n,)` s."""


@runtime_checkable
class SettableBias(Protocol):
    """Errors whose bias can be set while they are switched on."""

    def set_bias(self, bias: FloatArray) -> None:
        """Set the walking part of the bias to `bias`, `(3,)`; constant parts stay."""


class Triad:
    """Errors of three orthogonal axes: white noise of each sample and a walking bias.

    `move_bias_first` is True where the bias is moved before it is used (Chrono), False where it is
    moved afterwards (AirSim).
    """

    def __init__(
        self, white: White | WhiteDensity, bias: RandomWalk, *, move_bias_first: bool
    ) -> None:
        self._white = white
        self._bias = bias
        self._advance_bias = bias.advance if move_bias_first else bias.advance_after_use

    @property
    def bias(self) -> FloatArray:
        """State of the bias, `(3,)`.

        It is that of the latest sample, or of the next one where the bias is moved after use.
        """
        return np.array(self._bias.value)

    def corrupt(self, truth: FloatArray, dt: FloatArray) -> Corrupted:
        """Return the measurement; see `AxisErrors`."""
        white = self._white.advance(dt)
        bias = self._advance_bias(dt)
        return truth + white + bias, bias, self._white.variance(dt)


class SumTriad:
    """Errors of three axes that add up: y = round(scale x + white noise + sum of the biases).

    Each bias is moved before it is used. `scale` is 1 for an exact sensor; `precision` is the step
    of the values, or 0 for none. Each is one number or one per axis. `stated` is the variance to
    report, by default that of the white noise.
    """

    def __init__(
        self,
        white: White | WhiteDensity,
        biases: Sequence[Process],
        *,
        scale: ArrayLike = 1.0,
        precision: ArrayLike = 0.0,
        stated: ArrayLike | None = None,
    ) -> None:
        self._white = white
        self._biases = tuple(biases)
        self._scale = np.asarray(scale, dtype=np.float64)
        self._precision = precision
        self._stated = None if stated is None else np.asarray(stated, dtype=np.float64)

    @property
    def bias(self) -> FloatArray:
        """Sum of the present biases, `(3,)`."""
        return sum((process.value for process in self._biases), np.zeros(3))

    def corrupt(self, truth: FloatArray, dt: FloatArray) -> Corrupted:
        """Return measured values, the bias in them and the stated variance; see `AxisErrors`."""
        bias = sum((process.advance(dt) for process in self._biases), np.zeros_like(truth))
        values = quantise(self._scale * truth + bias + self._white.advance(dt), self._precision)
        if self._stated is None:
            return values, bias, self._white.variance(dt)
        return values, bias, np.array(np.broadcast_to(self._stated, truth.shape))
