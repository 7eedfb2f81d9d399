# SPDX-License-Identifier: Apache-2.0
"""What comes over a receiver now and then: given times, drawn ones, or both."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
from numpy.typing import NDArray

from sim_sensors.core.errors import ParameterError
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import Parameters, non_negative

BoolArray = NDArray[np.bool_]

# Stamps are whole nanoseconds: what is half of one early is on time.
_TOLERANCE = 0.5e-9
_SHORTEST = 1e-3


def check_length(where: str, key: str, seconds: float) -> None:
    """Refuse a mean length so short that drawing the stays would take endlessly long."""
    if 0.0 < seconds < _SHORTEST:
        raise ParameterError(where, key, f'{seconds!r} is not allowed; must be 0 or >= 0.001 [s]')


@dataclasses.dataclass(frozen=True)
class Events(Parameters):
    """Events of a receiver: given ones, drawn ones, or both; none by default.

    Drawn events and the times between them are exponential; the first fix is not in one. They are
    drawn as events, so they come at the same times at every rate. A time is 0 or at least 1 ms.
    """

    given: tuple[float, ...] = non_negative(
        (),
        's',
        'Start and end of each given one since the first fix: start, end, start, end ...',
        read_only=True,
    )
    interval: float = non_negative(0.0, 's', 'Mean time between two drawn ones; 0: none.')
    length: float = non_negative(10.0, 's', 'Mean length of a drawn one.')

    def _check(self) -> None:
        where = type(self).__name__
        for name in ('interval', 'length'):
            check_length(where, name, getattr(self, name))
        pairs = self.given
        ordered = all(a < b for a, b in itertools.pairwise(pairs))
        if len(pairs) % 2 or not ordered:
            raise ParameterError(
                where,
                'given',
                f'{list(pairs)!r} is not allowed; must be increasing times, a start and an end '
                'for each [s]',
            )

    @property
    def any(self) -> bool:
        """Whether there is an event at all."""
        return bool(self.given) or (self.interval > 0.0 and self.length > 0.0)


class EventProcess:
    """Events as time goes on, with a random stream of their own."""

    def __init__(self, events: Events, rng: np.random.Generator) -> None:
        self._events, self._rng = events, rng
        self._is_on = False
        self._since = 0.0
        self._until = np.inf
        if events.interval > 0.0 and events.length > 0.0:
            self._until = events.interval * rng.standard_exponential()

    def at(self, elapsed: FloatArray) -> BoolArray:
        """Return whether there is one at the next times `(n,)` s since the first fix."""
        return ~np.isnan(self.ages(elapsed))

    def ages(self, elapsed: FloatArray) -> FloatArray:
        """Return how long one has lasted at the next times, `(n,)` s; NaN where there is none."""
        now = elapsed + _TOLERANCE
        # Inside when an odd number of starts and ends has passed.
        passed = np.searchsorted(self._events.given, now, side='right')
        starts = np.array([*self._events.given, np.nan])[passed - 1]
        ages = np.where(passed % 2 == 1, np.maximum(elapsed - starts, 0.0), np.nan)
        if self._until < np.inf:
            ages = np.fmax(ages, self._drawn(now))
        return ages

    def _drawn(self, now: FloatArray) -> FloatArray:
        found = np.full(len(now), np.nan)
        for k, time in enumerate(now.tolist()):
            while time >= self._until:
                self._is_on = not self._is_on
                self._since = self._until
                mean = self._events.length if self._is_on else self._events.interval
                self._until += mean * self._rng.standard_exponential()
            if self._is_on:
                found[k] = time - self._since
        return found
