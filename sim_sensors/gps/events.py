# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Events of a GPS receiver: outages, jamming, spoofing, and changes of the kind of fix."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim_sensors.core.errors import ParameterError
from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.core.parameters import Parameters, non_negative, parameter
from sim_sensors.core.seeding import stream
from sim_sensors.core.shared_parameters import Axes, axes
from sim_sensors.sensor.delivery import Channel

BoolArray = NDArray[np.bool_]

# Stamps are rounded to whole nanoseconds: an event that starts half a nanosecond later is active.
_TOLERANCE_S = 0.5e-9
_SHORTEST_S = 1e-3


def check_length(where: str, key: str, seconds: float) -> None:
    """Refuse a mean length so short that drawing the events would take too long."""
    if 0.0 < seconds < _SHORTEST_S:
        raise ParameterError(where, key, f'{seconds!r} is not allowed; must be 0 or >= 0.001 [s]')


@dataclasses.dataclass(frozen=True)
class Events(Parameters):
    """Events of a receiver at given times, at random times, or both; none by default.

    Lengths of random events and the times between them are exponential; the first fix is not in
    one. Their times do not depend on the rate of the fixes. `interval` and `length` are 0 or at
    least 1 ms.
    """

    given: tuple[float, ...] = non_negative(
        (),
        's',
        'Times of the given events since the first fix: start, end, start, end, ...',
        read_only=True,
    )
    interval: float = non_negative(0.0, 's', 'Mean time between two random events; 0: none.')
    length: float = non_negative(10.0, 's', 'Mean length of a random event.')

    def _check(self) -> None:
        where = type(self).__name__
        for name in ('interval', 'length'):
            check_length(where, name, getattr(self, name))
        times = self.given
        is_increasing = all(a < b for a, b in itertools.pairwise(times))
        if len(times) % 2 or not is_increasing:
            raise ParameterError(
                where,
                'given',
                f'{list(times)!r} is not allowed; must be increasing times, a start and an end '
                'for each event [s]',
            )

    @property
    def any(self) -> bool:
        """Whether there are events."""
        return bool(self.given) or (self.interval > 0.0 and self.length > 0.0)


class EventProcess:
    """Events of one receiver over time, with their random stream."""

    def __init__(self, events: Events, rng: np.random.Generator) -> None:
        self._events, self._rng = events, rng
        self._is_on = False
        self._since = 0.0
        self._until = np.inf
        if events.interval > 0.0 and events.length > 0.0:
            self._until = events.interval * rng.standard_exponential()

    def is_active(self, elapsed: FloatArray) -> BoolArray:
        """Return whether an event is active at the next times, `(n,)` s since the first fix."""
        return ~np.isnan(self.ages(elapsed))

    def ages(self, elapsed: FloatArray) -> FloatArray:
        """Return the ages of the events at the next times, `(n,)` s; NaN without an event."""
        now = elapsed + _TOLERANCE_S
        # A given event is active when an odd number of starts and ends has passed.
        passed = np.searchsorted(self._events.given, now, side='right')
        starts = np.array([*self._events.given, np.nan])[passed - 1]
        ages = np.where(passed % 2 == 1, np.maximum(elapsed - starts, 0.0), np.nan)
        if self._until < np.inf:
            ages = np.fmax(ages, self._random_ages(now))
        return ages

    def _random_ages(self, now: FloatArray) -> FloatArray:
        ages = np.full(len(now), np.nan)
        for k, time in enumerate(now.tolist()):
            while time >= self._until:
                self._is_on = not self._is_on
                self._since = self._until
                mean = self._events.length if self._is_on else self._events.interval
                self._until += mean * self._rng.standard_exponential()
            if self._is_on:
                ages[k] = time - self._since
        return ages


@dataclasses.dataclass(frozen=True)
class Jammer(Parameters):
    """Jammer near a receiver; see `Jamming` for its effect."""

    jammer_to_noise: float = parameter(
        10.0,
        'dB',
        'J/N: ratio of jammer power to noise power in the band of the receiver.',
        maximum=200.0,
    )
    carrier_to_noise: float = parameter(45.0, 'dB-Hz', 'C/N0 without a jammer.', maximum=100.0)
    tracking_threshold: float = parameter(28.0, 'dB-Hz', 'C/N0 below which there is no fix.')
    thermal_std: Axes = axes(
        'm',
        'Standard deviation of the thermal part of the undisturbed error (east, north, up).',
        (0.3, 0.3, 0.6),
        minimum=0.0,
    )

    @property
    def ratio(self) -> float:
        """J/N as a ratio of powers."""
        return float(10.0 ** (0.1 * self.jammer_to_noise))

    @property
    def loses_fix(self) -> bool:
        """Whether the receiver has no fix while it is jammed."""
        jammed = self.carrier_to_noise - 10.0 * math.log10(1.0 + self.ratio)
        return jammed < self.tracking_threshold


@dataclasses.dataclass(frozen=True)
class Jamming(Jammer, Events):
    """Jammer near the receiver, at given or random times.

    A jammer raises the noise of the receiver by the factor 1 + J/N, so that::

        (C/N0)_jammed = C/N0 / (1 + J/N)                      (ratios, not dB)
        variance of the thermal error = thermal_std^2 (1 + J/N)

    The error of `noise` already contains the thermal error of an undisturbed receiver. The jammer
    adds white noise with the variance thermal_std^2 J/N. A receiver measures its C/N0, so its
    covariance includes this variance. Below `tracking_threshold` it has no fix, as in an outage;
    for the defaults this happens at J/N = 17 dB.

    References
    ----------
    [Groves2013], interference; thermal noise of code tracking is proportional to 1/sqrt(C/N0).
    """

    def start(self, seed: int, run: str, sensor: str) -> JammingProcess:
        """Return the jammer near one receiver."""
        return JammingProcess(
            self, stream(seed, run, sensor, 'jamming'), stream(seed, run, sensor, 'jamming_white')
        )


class JammingProcess:
    """Jammer over time; see `Jamming`."""

    def __init__(
        self, jamming: Jamming, rng: np.random.Generator, white: np.random.Generator
    ) -> None:
        self._events, self._white = EventProcess(jamming, rng), white
        self._loses_fix = jamming.loses_fix
        self._std = math.sqrt(jamming.ratio) * np.asarray(jamming.thermal_std)

    def advance(self, elapsed: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Return the effect of the jammer at the next times, `(n,)` s since the first fix.

        Returns
        -------
        error : (n, 3)
            Added error, m.
        variance : (n, 3)
            Variance of that error, m^2.
        is_lost : (n,) bool
            Whether the fix is lost.
        """
        is_on = self._events.is_active(elapsed)
        error = is_on[:, None] * self._std * self._white.standard_normal((len(elapsed), 3))
        return error, is_on[:, None] * self._std**2, is_on & self._loses_fix


@dataclasses.dataclass(frozen=True)
class Spoofer(Parameters):
    """Spoofer of a receiver; see `Spoofing` for its effect."""

    velocity: Axes = axes('m/s', 'Velocity of the error (east, north, up).', (0.2, 0.0, 0.0))
    distance: float = non_negative(100.0, 'm', 'Size at which the error stops growing.')

    def offset(self, age: FloatArray) -> FloatArray:
        """Return the error at times since the start, `(n,)` s, as `(n, 3)` m."""
        velocity = np.asarray(self.velocity)
        speed = math.sqrt(float(np.sum(velocity**2)))
        duration = self.distance / speed if speed else 0.0
        return np.asarray(np.minimum(age, duration)[:, None] * velocity)


@dataclasses.dataclass(frozen=True)
class Spoofing(Spoofer, Events):
    """Spoofer that captures the receiver, at given or random times.

    It moves the position slowly away from the true one, without a jump at the start::

        error(t) = noise + velocity min(t, distance / |velocity|),   t since the start

    Status and covariance do not show the attack. At the end the receiver tracks the true
    satellites again, and the position jumps back.

    References
    ----------
    [Humphreys2008]: a spoofer that captures the tracking loops before it moves them.
    """

    def start(self, seed: int, run: str, sensor: str) -> SpoofingProcess:
        """Return the spoofer of one receiver."""
        return SpoofingProcess(self, stream(seed, run, sensor, 'spoofing'))


class SpoofingProcess:
    """Spoofer over time; see `Spoofing`."""

    def __init__(self, spoofing: Spoofing, rng: np.random.Generator) -> None:
        self._events, self._spoofer = EventProcess(spoofing, rng), spoofing

    def advance(self, elapsed: FloatArray) -> FloatArray:
        """Return the added error at the next times `(n,)` s since the first fix, `(n, 3)` m."""
        return self._spoofer.offset(np.nan_to_num(self._events.ages(elapsed)))


FIX_STATES = ('none', 'single', 'sbas', 'float', 'rtk')
_ORDER = 'none, single, sbas, float, rtk'
_ONES = (1.0, 1.0, 1.0, 1.0, 1.0)
_STATIONARY = 'stationary'


def _weights(state: str, default: tuple[float, float, float, float, float]) -> Any:
    """Declare the parameter `from_<state>`."""
    doc = f'Relative frequency of the state after {state} ({_ORDER}); its own entry is not used.'
    return non_negative(default, '1', doc)


@dataclasses.dataclass(frozen=True)
class FixStates(Parameters):
    """Kind of fix: none, single, sbas, float or rtk, a Markov chain in continuous time.

    The time in a state is exponential with the mean `dwell`; the weights `from_<state>` select the
    next state. A dwell of 0 lasts for ever, so by default every fix is `single` with status 0.
    The times of the changes depend on the seed, but not on the rate of the fixes.

    In a state the error of `noise` is multiplied by `error_scale` and the stated standard
    deviation of `covariance` by `stated_scale`. Equal scales make a consistent receiver. The
    scales jump with the state, as in a receiver that gains or loses its ambiguities. The status of
    float and RTK is 2, as nmea_navsat_driver sends it.

    A status below 0 means that there is no fix: the last position is repeated without a covariance
    (NaN before the first fix). Judges and recordings leave such messages out.
    """

    initial: str = parameter(
        'single',
        '',
        'State at the first fix; stationary: drawn from the stationary distribution of the chain.',
        choices=(*FIX_STATES, _STATIONARY),
        read_only=True,
    )
    dwell: tuple[float, ...] = non_negative(
        (0.0,) * 5, 's', f'Mean time in each state ({_ORDER}); 0: for ever.'
    )
    status: tuple[float, ...] = parameter(
        (-1.0, 0.0, 1.0, 2.0, 2.0),
        '1',
        f'NavSatFix status of each state ({_ORDER}): -1 no fix, 0 fix, 1 SBAS, 2 GBAS.',
        minimum=-1.0,
        maximum=2.0,
    )
    error_scale: tuple[float, ...] = non_negative(
        _ONES, '1', f'Ratio of the error in each state to noise ({_ORDER}).'
    )
    stated_scale: tuple[float, ...] = non_negative(
        _ONES, '1', f'Ratio of the stated deviation in each state to covariance ({_ORDER}).'
    )
    from_none: tuple[float, ...] = _weights('none', (0.0, 1.0, 0.0, 0.0, 0.0))
    from_single: tuple[float, ...] = _weights('single', (0.1, 0.0, 0.3, 0.6, 0.0))
    from_sbas: tuple[float, ...] = _weights('sbas', (0.05, 0.25, 0.0, 0.7, 0.0))
    from_float: tuple[float, ...] = _weights('float', (0.05, 0.25, 0.0, 0.0, 0.7))
    from_rtk: tuple[float, ...] = _weights('rtk', (0.05, 0.05, 0.0, 0.9, 0.0))

    def _check(self) -> None:
        for status in self.status:
            if status != round(status):
                raise ParameterError(
                    'FixStates', 'status', f'{status!r} is not allowed; must be one of -1, 0, 1, 2'
                )
        for dwell in self.dwell:
            check_length('FixStates', 'dwell', dwell)
        for k, name in enumerate(FIX_STATES):
            if self.dwell[k] > 0.0 and not self.transition_weights(k).any():
                raise ParameterError(
                    'FixStates',
                    f'from_{name}',
                    f'no state follows {name}; must have a weight > 0 for another state, or give '
                    f'{name} a dwell of 0',
                )
        if self.initial == _STATIONARY and not all(
            self.dwell[k] > 0.0 for k in self._reachable_states()
        ):
            raise ParameterError(
                'FixStates',
                'initial',
                "'stationary' needs a dwell > 0 for every state that can be reached",
            )

    def transition_weights(self, state: int) -> FloatArray:
        """Return the weights `(5,)` of the states after the one of that index in `FIX_STATES`."""
        weights = np.array(getattr(self, f'from_{FIX_STATES[state]}'), dtype=np.float64)
        weights[state] = 0.0
        return weights

    def _reachable_states(self) -> list[int]:
        """Return the successors of all states with a dwell > 0; all states if there are none."""
        leaving = [k for k in range(5) if self.dwell[k] > 0.0]
        targets = {int(j) for k in leaving for j in np.flatnonzero(self.transition_weights(k))}
        return sorted(targets) or list(range(5))

    def stationary(self) -> FloatArray:
        """Return the share of time in each state after a long time, `(5,)`.

        Solves p Q = 0, sum p = 1 with the rates Q of the chain. If there are several solutions,
        that of least norm is returned.
        """
        rates = np.zeros((5, 5))
        for k in self._reachable_states():
            weights = self.transition_weights(k)
            rates[k] = weights / (weights.sum() * self.dwell[k])
            rates[k, k] = -1.0 / self.dwell[k]
        unreached = [k for k in range(5) if k not in self._reachable_states()]
        system = np.concatenate([rates.T, np.ones((1, 5)), np.eye(5)[unreached]])
        right = np.zeros(len(system))
        right[5] = 1.0
        solution = np.linalg.lstsq(system, right, rcond=None)[0]
        return np.asarray(np.clip(solution, 0.0, 1.0), dtype=np.float64)

    def start(self, seed: int, run: str, sensor: str) -> FixStateProcess:
        """Return the chain in its first state."""
        return FixStateProcess(self, stream(seed, run, sensor, 'fix_state'))


class FixStateProcess:
    """Kind of fix of one receiver over time, with its random stream."""

    def __init__(self, states: FixStates, rng: np.random.Generator) -> None:
        self._states, self._rng = states, rng
        self._status = np.asarray(states.status).astype(np.int64)
        self._cumulative = [np.cumsum(states.transition_weights(k)) for k in range(5)]
        if states.initial == _STATIONARY:
            self._state = self._draw(np.cumsum(states.stationary()))
        else:
            self._state = FIX_STATES.index(states.initial)
        self._until = self._draw_end(0.0)

    def advance(self, elapsed: FloatArray) -> IntArray:
        """Return the indices in `FIX_STATES` at the next times, `(n,)` s since the first fix."""
        states = np.empty(len(elapsed), dtype=np.int64)
        for k, now in enumerate(elapsed.tolist()):
            while now >= self._until:
                self._state = self._draw(self._cumulative[self._state])
                self._until = self._draw_end(self._until)
            states[k] = self._state
        return states

    def _draw_end(self, since: float) -> float:
        dwell = self._states.dwell[self._state]
        return since + dwell * self._rng.standard_exponential() if dwell > 0.0 else np.inf

    def _draw(self, cumulative: FloatArray) -> int:
        place = self._rng.random() * cumulative[-1]
        return int(np.searchsorted(cumulative, place, side='right'))


@dataclasses.dataclass(frozen=True)
class Outages(Events):
    """Outages of a receiver, at given times, at random times, or both.

    In an outage the last position is repeated with status -1; if `silent`, nothing is sent. The
    error continues during the outage, so the other fixes are those of a run without outages.
    """

    silent: bool = parameter(
        False, '', 'True: send nothing; false: send the last position with status -1 (no fix).'
    )

    def start(self, seed: int, run: str, sensor: str) -> EventProcess:
        """Return the outages of one receiver; two calls return the same outages."""
        return EventProcess(self, stream(seed, run, sensor, 'outage'))


class SilentChannel(Channel):
    """Channel into which nothing is sent during outages; `channel` carries the other messages.

    The time of the outages starts at the first message.
    """

    def __init__(self, channel: Channel, outages: EventProcess) -> None:
        self._channel, self._outages = channel, outages
        self._first_ns: int | None = None

    def send(self, stamp_ns: IntArray) -> tuple[IntArray, IntArray]:
        """Send the next messages that are not in an outage; see `Channel.send`."""
        if self._first_ns is None and len(stamp_ns):
            self._first_ns = int(stamp_ns[0])
        elapsed = (stamp_ns - np.int64(self._first_ns or 0)) * 1e-9
        sent = np.flatnonzero(~self._outages.is_active(elapsed))
        arrived, arrival_ns = self._channel.send(stamp_ns[sent])
        return sent[arrived], arrival_ns
