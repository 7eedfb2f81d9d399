# SPDX-License-Identifier: Apache-2.0
"""When a GNSS receiver sees no sky."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
from numpy.typing import NDArray

from sim_sensors.delivery import Channel
from sim_sensors.errors import ParameterError
from sim_sensors.measurements import FloatArray, IntArray
from sim_sensors.parameters import Parameters, parameter
from sim_sensors.seeding import stream

__all__ = ['OutageProcess', 'Outages', 'SilentChannel']

BoolArray = NDArray[np.bool_]

# Stamps are whole nanoseconds: what is half of one early is on time.
_TOLERANCE = 0.5e-9
_SHORTEST = 1e-3


@dataclasses.dataclass(frozen=True)
class Outages(Parameters):
    """Outages of a receiver: given ones, drawn ones, or both.

    Drawn outages and the times between them are exponential; the first fix is not in one. They
    are drawn as events, so that they come at the same times at every rate of the fixes.
    """

    given: tuple[float, ...] = parameter(
        (),
        's',
        'Start and end of each given outage since the first fix: start, end, start, end ...',
        minimum=0.0,
        read_only=True,
    )
    interval: float = parameter(
        0.0, 's', 'Mean time between two drawn outages; 0: none.', minimum=0.0
    )
    length: float = parameter(10.0, 's', 'Mean length of a drawn outage.', minimum=0.0)
    silent: bool = parameter(
        False, '', 'True: nothing is sent; false: the last position with status -1 (no fix).'
    )

    def _check(self) -> None:
        for name in ('interval', 'length'):
            # Each outage is drawn, so that endlessly many would take endlessly long.
            if 0.0 < getattr(self, name) < _SHORTEST:
                raise ParameterError(
                    'Outages',
                    name,
                    f'{getattr(self, name)!r} is not allowed; must be 0 or >= 0.001 [s]',
                )
        pairs = self.given
        ordered = all(a < b for a, b in itertools.pairwise(pairs))
        if len(pairs) % 2 or not ordered:
            raise ParameterError(
                'Outages',
                'given',
                f'{list(pairs)!r} is not allowed; must be increasing times, a start and an end '
                'for each outage [s]',
            )

    @property
    def any(self) -> bool:
        """Whether there is an outage at all."""
        return bool(self.given) or (self.interval > 0.0 and self.length > 0.0)

    def start(self, seed: int, run: str, sensor: str) -> OutageProcess:
        """Return the outages of one receiver; started twice, they are the same."""
        return OutageProcess(self, stream(seed, run, sensor, 'outage'))


class OutageProcess:
    """Outages as time goes on.

    Parameters
    ----------
    outages : Outages
        Their law.
    rng : numpy.random.Generator
        Stream of this source alone.
    """

    def __init__(self, outages: Outages, rng: np.random.Generator) -> None:
        self._outages, self._rng = outages, rng
        self._is_out = False
        self._until = np.inf
        if outages.interval > 0.0 and outages.length > 0.0:
            self._until = outages.interval * rng.standard_exponential()

    def at(self, elapsed: FloatArray) -> BoolArray:
        """Return whether the receiver is out at the next times `(n,)` s since the first fix."""
        now = elapsed + _TOLERANCE
        # Inside when an odd number of starts and ends has passed.
        is_out: BoolArray = np.searchsorted(self._outages.given, now, side='right') % 2 == 1
        if self._until < np.inf:
            is_out |= self._drawn(now)
        return is_out

    def _drawn(self, now: FloatArray) -> BoolArray:
        found = np.empty(len(now), dtype=np.bool_)
        for k, time in enumerate(now.tolist()):
            while time >= self._until:
                self._is_out = not self._is_out
                mean = self._outages.length if self._is_out else self._outages.interval
                self._until += mean * self._rng.standard_exponential()
            found[k] = self._is_out
        return found


class SilentChannel(Channel):
    """A channel into which nothing is sent during outages.

    Parameters
    ----------
    channel : Channel
        What carries the rest.
    outages : OutageProcess
        Its time starts at the first message offered.
    """

    def __init__(self, channel: Channel, outages: OutageProcess) -> None:
        self._channel, self._outages = channel, outages
        self._first_ns: int | None = None

    def send(self, stamp_ns: IntArray) -> tuple[IntArray, IntArray]:
        """Send the next messages that are not in an outage; see `Channel.send`."""
        if self._first_ns is None and len(stamp_ns):
            self._first_ns = int(stamp_ns[0])
        elapsed = (stamp_ns - np.int64(self._first_ns or 0)) * 1e-9
        offered = np.flatnonzero(~self._outages.at(elapsed))
        kept, arrival_ns = self._channel.send(stamp_ns[offered])
        return offered[kept], arrival_ns
