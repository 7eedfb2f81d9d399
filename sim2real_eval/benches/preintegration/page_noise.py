# SPDX-License-Identifier: Apache-2.0
"""The very noise of GTSAM's runner, from its fixed seeds.

Every new runner of GTSAM draws the same numbers: std::mt19937_64 with seed 10 for the gyroscope
and 29284 for the accelerometer ([GTSAM], as read), through std::normal_distribution made anew
for every number. The C++ standard fixes the former (the 64-bit Mersenne
Twister, [Nishimura2000]) but not the latter. Both libraries use Marsaglia's polar method and
differ in which of its two numbers they give first: libc++ (macOS), with which the output on
GTSAM's page was made, the first, libstdc++ (Linux) the second.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from sim2real_eval.benches.preintegration.params import PreintegrationError
from sim_sensors.core.measurements import FloatArray

__all__ = ['LIBRARIES', 'page_noise']

LIBRARIES = ('libc++', 'libstdc++')

_ACCELEROMETER_SEED = 29284
_GYROSCOPE_SEED = 10

_WORDS, _SHIFT = 312, 156
_ALL = (1 << 64) - 1
_LOW = (1 << 31) - 1


def page_noise(samples: int, library: str = 'libc++') -> tuple[FloatArray, FloatArray]:
    """Return standard normal numbers of accelerometer and gyroscope, `(n, 3)` each.

    Parameters
    ----------
    samples : int
        n.
    library : str
        `libc++` or `libstdc++`.

    Raises
    ------
    PreintegrationError
        For another library.
    """
    if library not in LIBRARIES:
        raise PreintegrationError(
            f'library: {library!r} is not allowed; must be one of {", ".join(LIBRARIES)}'
        )
    return (
        _normals(_ACCELEROMETER_SEED, samples, first=library == 'libc++'),
        _normals(_GYROSCOPE_SEED, samples, first=library == 'libc++'),
    )


def _normals(seed: int, samples: int, *, first: bool) -> FloatArray:
    words = _twister(seed)
    out = np.empty((samples, 3))
    for row in out:
        for i in range(3):
            square = 2.0
            while square > 1.0 or square == 0.0:
                u, v = (2.0 * (next(words) / 2.0**64) - 1.0 for _ in range(2))
                square = u * u + v * v
            row[i] = (u if first else v) * math.sqrt(-2.0 * math.log(square) / square)
    return out


def _twister(seed: int) -> Iterator[int]:
    """Yield the words of the 64-bit Mersenne Twister."""
    state = [seed]
    for i in range(1, _WORDS):
        state.append((6364136223846793005 * (state[-1] ^ (state[-1] >> 62)) + i) & _ALL)
    while True:
        for i in range(_WORDS):
            mixed = (state[i] & ~_LOW & _ALL) | (state[(i + 1) % _WORDS] & _LOW)
            twist = 0xB5026F5AA96619E9 if mixed & 1 else 0
            state[i] = state[(i + _SHIFT) % _WORDS] ^ (mixed >> 1) ^ twist
        for word in state:
            x = word ^ ((word >> 29) & 0x5555555555555555)
            x ^= (x << 17) & 0x71D67FFFEDA60000
            x ^= (x << 37) & 0xFFF7EEE000000000
            yield x ^ (x >> 43)
