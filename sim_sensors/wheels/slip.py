# SPDX-License-Identifier: Apache-2.0
"""Slips: stretches of the way over which a wheel spins or is locked."""

from __future__ import annotations

import dataclasses

import numpy as np

from sim_sensors.core.errors import ParameterError
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import Parameters, parameter
from sim_sensors.core.seeding import stream

_SHORTEST = 1e-3


@dataclasses.dataclass(frozen=True)
class Slip(Parameters):
    """Slips of each wheel for itself, drawn over the distance that it covers.

    The ways between slips and the lengths of slips are exponential. They are drawn as events of
    the way, so that they are at the same places at every rate.
    """

    distance: float = parameter(
        0.0, 'm', 'Mean way between two slips of a wheel; 0: none.', minimum=0.0
    )
    length: float = parameter(0.2, 'm', 'Mean way over the ground of a slip.', minimum=0.0)
    ratio: float = parameter(
        0.5,
        '1',
        'How much more a spinning wheel turns, of what it covers, and how much less a locked one.',
        minimum=0.0,
        maximum=1.0,
    )
    locked: float = parameter(
        0.5, '1', 'Share of slips in which the wheel turns less.', minimum=0.0, maximum=1.0
    )

    def _check(self) -> None:
        # Each slip is drawn, so that endlessly many would take endlessly long.
        if 0.0 < self.distance < _SHORTEST:
            raise ParameterError(
                'Slip', 'distance', f'{self.distance!r} is not allowed; must be 0 or >= 0.001 [m]'
            )

    @property
    def any(self) -> bool:
        """Whether there is a slip at all."""
        return self.distance > 0.0 and self.length > 0.0 and self.ratio > 0.0

    @property
    def mean(self) -> float:
        """Mean of what slips add, per distance over the ground: 0 where half of them are locked.

        A slip adds +ratio or -ratio times its length, and there is one per distance + length.
        """
        if not self.any:
            return 0.0
        return (1.0 - 2.0 * self.locked) * self.ratio * self.length / (self.distance + self.length)

    @property
    def variance_per_metre(self) -> float:
        """Variance about `mean` of what slips add, per distance, m^2/m, over many slips.

        Gaps G and slips S alternate, so that it is that of a cumulative process (D. R.
        Cox, "Renewal Theory", 1962): Var(R - mean (G + S)) / E(G + S) with R = +-ratio S, which
        for exponential G and S is
        2 ((ratio length)^2 - mean^2 length (2 distance + length)) / (distance + length).
        """
        if not self.any:
            return 0.0
        about_zero = (self.ratio * self.length) ** 2
        of_mean = self.mean**2 * self.length * (2.0 * self.distance + self.length)
        return 2.0 * (about_zero - of_mean) / (self.distance + self.length)

    def start(self, seed: int, run: str, sensor: str, wheels: int) -> SlipProcess:
        """Return the slips of the wheels of one robot; started twice, they are the same."""
        return SlipProcess(
            self, [stream(seed, run, sensor, f'slip_{wheel}') for wheel in range(wheels)]
        )


class SlipProcess:
    """Slips as the wheels go on.

    Parameters
    ----------
    slip : Slip
        Their law.
    rngs : list of numpy.random.Generator
        A stream of its own for each wheel.
    """

    def __init__(self, slip: Slip, rngs: list[np.random.Generator]) -> None:
        self._slip, self._rngs = slip, rngs
        self._way = np.zeros(len(rngs))
        # Of each wheel: where slips start and end, m, and what they add per metre; the last one
        # is beyond the way so far.
        self._slips: list[list[tuple[float, float, float]]] = [[] for _ in rngs]

    def advance(self, travels: FloatArray) -> FloatArray:
        """Return what slips add to the next travels `(n, wheels)` m, with sign, likewise."""
        added = np.zeros_like(travels)
        if self._slip.any and len(travels):
            for wheel in range(travels.shape[1]):
                added[:, wheel] = self._of(wheel, np.abs(travels[:, wheel]))
        return added * np.sign(travels)

    def _of(self, wheel: int, travels: FloatArray) -> FloatArray:
        way = np.empty(len(travels) + 1)
        way[0], way[1:] = self._way[wheel], travels
        # accumulate adds row after row by definition, as stepping does.
        np.add.accumulate(way, out=way)
        before, after = way[:-1], way[1:]
        self._way[wheel] = after[-1]
        slips = self._slips[wheel]
        while not slips or slips[-1][0] < after[-1]:
            slips.append(self._next(wheel, slips[-1][1] if slips else 0.0))
        added = np.zeros(len(travels))
        for start, end, rate in slips:
            first = int(np.searchsorted(after, start, side='right'))
            last = int(np.searchsorted(before, end, side='left'))
            covered = np.minimum(end, after[first:last]) - np.maximum(start, before[first:last])
            added[first:last] += rate * covered
        self._slips[wheel] = [each for each in slips if each[1] > after[-1]]
        return added

    def _next(self, wheel: int, end: float) -> tuple[float, float, float]:
        rng, slip = self._rngs[wheel], self._slip
        start = end + slip.distance * rng.standard_exponential()
        length = slip.length * rng.standard_exponential()
        sign = -1.0 if rng.random() < slip.locked else 1.0
        return start, start + length, sign * slip.ratio
