# SPDX-License-Identifier: Apache-2.0
"""The kind of fix that a GNSS receiver has, and how it changes."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from sim_sensors.core.errors import ParameterError
from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.core.parameters import Parameters, non_negative, parameter
from sim_sensors.core.seeding import stream
from sim_sensors.sensor.delivery import Channel
from .events import EventProcess, Events, check_length

FIX_STATES = ('none', 'single', 'sbas', 'float', 'rtk')
_ORDER = 'none, single, sbas, float, rtk'
_ONES = (1.0, 1.0, 1.0, 1.0, 1.0)
_STATIONARY = 'stationary'


def _weights(state: str, default: tuple[float, float, float, float, float]) -> Any:
    doc = f'Relative frequency of what follows {state} ({_ORDER}); its own is not used.'
    return non_negative(default, '1', doc)


@dataclasses.dataclass(frozen=True)
class FixStates(Parameters):
    """The kind of fix: none, single, sbas, float or rtk, a Markov chain in continuous time.

    A stay in a state is exponential with the mean `dwell`; the weights `from_<state>` give what
    follows. A dwell of 0 lasts for ever, so by default every fix is `single` with status 0.
    Changes are drawn as events: one seed changes the fix at the same times at every rate.

    In a state the error of `noise` is multiplied by `error_scale` and the stated standard
    deviation of `covariance` by `stated_scale`. Equal scales make a consistent receiver. The
    scales jump with the state, as in a receiver that gains or loses its ambiguities. The status of
    float and RTK is 2, as nmea_navsat_driver sends it.

    A status below 0 is no fix: the last position is repeated without a covariance (NaN before the
    first fix). Judges and recordings leave such messages out.
    """

    initial: str = parameter(
        'single',
        '',
        'State at the first fix; stationary: drawn from the law of a receiver long switched on.',
        choices=(*FIX_STATES, _STATIONARY),
        read_only=True,
    )
    dwell: tuple[float, ...] = non_negative(
        (0.0,) * 5, 's', f'Mean stay in each state ({_ORDER}); 0: for ever.'
    )
    status: tuple[float, ...] = parameter(
        (-1.0, 0.0, 1.0, 2.0, 2.0),
        '1',
        f'NavSatFix status of each state ({_ORDER}): -1 no fix, 0 fix, 1 SBAS, 2 GBAS.',
        minimum=-1.0,
        maximum=2.0,
    )
    error_scale: tuple[float, ...] = non_negative(
        _ONES, '1', f'Error of each state over that of noise ({_ORDER}).'
    )
    stated_scale: tuple[float, ...] = non_negative(
        _ONES, '1', f'Stated deviation of each state over that of covariance ({_ORDER}).'
    )
    from_none: tuple[float, ...] = _weights('none', (0.0, 1.0, 0.0, 0.0, 0.0))
    from_single: tuple[float, ...] = _weights('single', (0.1, 0.0, 0.3, 0.6, 0.0))
    from_sbas: tuple[float, ...] = _weights('sbas', (0.05, 0.25, 0.0, 0.7, 0.0))
    from_float: tuple[float, ...] = _weights('float', (0.05, 0.25, 0.0, 0.0, 0.7))
    from_rtk: tuple[float, ...] = _weights('rtk', (0.05, 0.05, 0.0, 0.9, 0.0))

    def _check(self) -> None:
        for value in self.status:
            if value != round(value):
                raise ParameterError(
                    'FixStates', 'status', f'{value!r} is not allowed; must be one of -1, 0, 1, 2'
                )
        for value in self.dwell:
            check_length('FixStates', 'dwell', value)
        for k, name in enumerate(FIX_STATES):
            if self.dwell[k] > 0.0 and not self.following(k).any():
                raise ParameterError(
                    'FixStates',
                    f'from_{name}',
                    'nothing follows; must have a weight > 0 for another state, or dwell 0 for '
                    f'{name}',
                )
        if self.initial == _STATIONARY and not all(self.dwell[k] > 0.0 for k in self._reached()):
            raise ParameterError(
                'FixStates',
                'initial',
                'stationary needs a dwell > 0 of every state that is reached',
            )

    def following(self, state: int) -> FloatArray:
        """Return the weights `(5,)` of what follows a state, by its index in `FIX_STATES`."""
        weights = np.array(getattr(self, f'from_{FIX_STATES[state]}'), dtype=np.float64)
        weights[state] = 0.0
        return weights

    def _reached(self) -> list[int]:
        """States that some state of positive dwell leads to, and those themselves."""
        leaving = [k for k in range(5) if self.dwell[k] > 0.0]
        targets = {int(j) for k in leaving for j in np.flatnonzero(self.following(k))}
        return sorted(targets) or list(range(5))

    def stationary(self) -> FloatArray:
        """Return the share of time in each state after a long time, `(5,)`, if all go on.

        Solves p Q = 0, sum p = 1 with the rates Q of the chain; of several solutions the one of
        least norm.
        """
        rates = np.zeros((5, 5))
        for k in self._reached():
            weights = self.following(k)
            rates[k] = weights / (weights.sum() * self.dwell[k])
            rates[k, k] = -1.0 / self.dwell[k]
        unreached = [k for k in range(5) if k not in self._reached()]
        system = np.concatenate([rates.T, np.ones((1, 5)), np.eye(5)[unreached]])
        right = np.zeros(len(system))
        right[5] = 1.0
        solution = np.linalg.lstsq(system, right, rcond=None)[0]
        return np.asarray(np.clip(solution, 0.0, 1.0), dtype=np.float64)

    def start(self, seed: int, run: str, sensor: str) -> FixStateProcess:
        """Return the chain in its first state."""
        return FixStateProcess(self, stream(seed, run, sensor, 'fix_state'))


class FixStateProcess:
    """A chain of fix states that runs, with a random stream of its own."""

    def __init__(self, states: FixStates, rng: np.random.Generator) -> None:
        self._states, self._rng = states, rng
        self._status = np.asarray(states.status).astype(np.int64)
        self._following = [np.cumsum(states.following(k)) for k in range(5)]
        if states.initial == _STATIONARY:
            self._state = self._draw(np.cumsum(states.stationary()))
        else:
            self._state = FIX_STATES.index(states.initial)
        self._until = self._leave(0.0)

    def at(self, elapsed: FloatArray) -> IntArray:
        """Return the states, as indices of `FIX_STATES`, at the next times `(n,)` s since the
        first fix.
        """
        found = np.empty(len(elapsed), dtype=np.int64)
        for k, now in enumerate(elapsed.tolist()):
            while now >= self._until:
                self._state = self._draw(self._following[self._state])
                self._until = self._leave(self._until)
            found[k] = self._state
        return found

    def _leave(self, since: float) -> float:
        dwell = self._states.dwell[self._state]
        return since + dwell * self._rng.standard_exponential() if dwell > 0.0 else np.inf

    def _draw(self, cumulative: FloatArray) -> int:
        place = self._rng.random() * cumulative[-1]
        return int(np.searchsorted(cumulative, place, side='right'))


@dataclasses.dataclass(frozen=True)
class Outages(Events):
    """Outages of a receiver: given ones, drawn ones, or both.

    In an outage the last position is repeated with status -1; with `silent` nothing is sent. The
    error goes on underneath, so an outage changes no other fix.
    """

    silent: bool = parameter(
        False, '', 'True: nothing is sent; false: the last position with status -1 (no fix).'
    )

    def start(self, seed: int, run: str, sensor: str) -> EventProcess:
        """Return the outages of one receiver; started twice, they are the same."""
        return EventProcess(self, stream(seed, run, sensor, 'outage'))


class SilentChannel(Channel):
    """A channel into which nothing is sent during outages, whose time starts at the first message.

    `channel` carries the rest.
    """

    def __init__(self, channel: Channel, outages: EventProcess) -> None:
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
