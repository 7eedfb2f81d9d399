# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Normal random numbers in the order in which GTSAM's ScenarioRunner draws them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from sim_sensors.core.measurements import FloatArray

GYROSCOPE_SEED, ACCELEROMETER_SEED = 10, 29284
"""Seeds in ScenarioRunner.h, the same in every runner."""

_WORDS, _MIDDLE = 312, 156
_UPPER, _LOWER = 0xFFFFFFFF80000000, 0x7FFFFFFF
_ALL = (1 << 64) - 1


class GtsamNormals:
    """Standard normal numbers of GTSAM's Sampler, which no seed of this package changes.

    A 64-bit Mersenne Twister feeds Marsaglia's polar method. Each number begins a new
    distribution, so the second of each pair is lost. C++ does not say which of a pair comes first:
    libstdc++ takes the second, libc++ the first. GTSAM therefore has other noise on macOS.

    Parameters
    ----------
    seed
        Seed of the generator; GTSAM has `GYROSCOPE_SEED` and `ACCELEROMETER_SEED`.
    macos
        Draw as libc++ does, instead of libstdc++.

    References
    ----------
    [GTSAM] Sampler.cpp, ScenarioRunner.h; [Nishimura2000]; [Marsaglia1964].

    Examples
    --------
    >>> GtsamNormals(10).standard_normal((1, 3)).round(3)
    array([[0.778, 0.683, 0.899]])
    """

    def __init__(self, seed: int, *, macos: bool = False) -> None:
        self._words, self._macos = _words(seed), macos

    def standard_normal(self, shape: tuple[int, ...]) -> FloatArray:
        """Return the next numbers, as `numpy.random.Generator.standard_normal` does."""
        drawn = (self._next() for _ in range(math.prod(shape)))
        return np.fromiter(drawn, dtype=float).reshape(shape)

    def _next(self) -> float:
        while True:
            x, y = (2.0 * (next(self._words) / 2.0**64) - 1.0 for _ in range(2))
            square = x * x + y * y
            if 0.0 < square <= 1.0:
                factor = math.sqrt(-2.0 * math.log(square) / square)
                return (x if self._macos else y) * factor


def _words(seed: int) -> Iterator[int]:
    """Yield the numbers of the generator mt19937_64."""
    state = [seed & _ALL]
    for i in range(1, _WORDS):
        last = state[-1]
        state.append((6364136223846793005 * (last ^ (last >> 62)) + i) & _ALL)
    while True:
        for i in range(_WORDS):
            mixed = (state[i] & _UPPER) | (state[(i + 1) % _WORDS] & _LOWER)
            state[i] = state[(i + _MIDDLE) % _WORDS] ^ (mixed >> 1)
            if mixed & 1:
                state[i] ^= 0xB5026F5AA96619E9
        for word in state:
            word ^= (word >> 29) & 0x5555555555555555
            word ^= (word << 17) & 0x71D67FFFEDA60000
            word ^= (word << 37) & 0xFFF7EEE000000000
            yield word ^ (word >> 43)
