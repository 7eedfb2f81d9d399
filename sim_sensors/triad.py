# SPDX-License-Identifier: Apache-2.0
"""Errors of three axes that are measured together."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from sim_sensors.measurements import FloatArray
from sim_sensors.noise import RandomWalk, White, WhiteDensity

__all__ = ['AxisErrors', 'Triad']


class AxisErrors(Protocol):
    """What makes measured values of true ones, with its state."""

    @property
    def bias(self) -> FloatArray:
        """Present bias, `(3,)`."""

    def corrupt(
        self, truth: FloatArray, dt: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return measured values, the bias in them and the variance of their white noise, each
        `(n, 3)`, for true values `(n, 3)` at intervals `dt` `(n,)` s.
        """


class Triad:
    """Errors of three orthogonal axes: white noise and a walking bias.

    Parameters
    ----------
    white : White or WhiteDensity
        Noise of each sample.
    bias : RandomWalk
        The bias.
    move_bias_first : bool
        True: the bias is moved and then used (Chrono); False: used and then moved (AirSim).
    """

    def __init__(
        self, white: White | WhiteDensity, bias: RandomWalk, *, move_bias_first: bool
    ) -> None:
        self._white = white
        self._bias = bias
        self._advance_bias = bias.advance if move_bias_first else bias.advance_after_use

    @property
    def bias(self) -> FloatArray:
        """State of the bias, `(3,)`: that of the latest sample, or of the next one where the bias
        is used before it is moved.
        """
        return np.array(self._bias.value)

    def corrupt(
        self, truth: FloatArray, dt: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return measured values, the bias in them and the variance of the white noise, each
        `(n, 3)`, for true values `(n, 3)` at intervals `dt` `(n,)` s.
        """
        white = self._white.advance(dt)
        bias = self._advance_bias(dt)
        return truth + white + bias, bias, self._white.variance(dt)
