# SPDX-License-Identifier: Apache-2.0
"""Jamming and spoofing of a GNSS receiver."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np

from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import non_negative, parameter
from sim_sensors.core.seeding import stream
from sim_sensors.core.shared_parameters import Axes, axes
from .events import EventProcess, Events

if TYPE_CHECKING:
    from .events import BoolArray


@dataclasses.dataclass(frozen=True)
class Jamming(Events):
    """A jammer near the receiver, at given or drawn times.

    A jammer raises the noise of the receiver by the factor 1 + J/N, so that::

        (C/N0)_jammed = C/N0 / (1 + J/N)                      (ratios, not dB)
        variance of the thermal error = thermal_std^2 (1 + J/N)

    What is added to the error of `noise` is white, with the variance thermal_std^2 J/N, because
    `noise` already has the thermal error of an undisturbed receiver. A receiver measures its C/N0,
    so it states the rise. Below `tracking_threshold` it has no fix, as in an outage. With the
    defaults it loses the fix at J/N = 17 dB.

    References
    ----------
    [Groves2013], interference; thermal noise of code tracking is proportional to 1/sqrt(C/N0).
    """

    jammer_to_noise: float = parameter(
        10.0, 'dB', 'J/N: jammer over noise in the band of the receiver.', maximum=200.0
    )
    carrier_to_noise: float = parameter(45.0, 'dB-Hz', 'C/N0 without a jammer.', maximum=100.0)
    tracking_threshold: float = parameter(28.0, 'dB-Hz', 'C/N0 below which there is no fix.')
    thermal_std: Axes = axes(
        'm',
        'Thermal part of the undisturbed error (east, north, up).',
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

    def start(self, seed: int, run: str, sensor: str) -> JammingProcess:
        """Return the jammer near one receiver."""
        return JammingProcess(
            self, stream(seed, run, sensor, 'jamming'), stream(seed, run, sensor, 'jamming_white')
        )


class JammingProcess:
    """A jammer as time goes on; see `Jamming`."""

    def __init__(
        self, jamming: Jamming, rng: np.random.Generator, white: np.random.Generator
    ) -> None:
        self._events, self._white = EventProcess(jamming, rng), white
        self._loses_fix = jamming.loses_fix
        self._std = math.sqrt(jamming.ratio) * np.asarray(jamming.thermal_std)

    def advance(self, elapsed: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Return the added error `(n, 3)` m, its variance `(n, 3)` m^2, and whether the fix is
        lost `(n,)`, at the next times `(n,)` s since the first fix.
        """
        is_on = self._events.at(elapsed)
        error = is_on[:, None] * self._std * self._white.standard_normal((len(elapsed), 3))
        return error, is_on[:, None] * self._std**2, is_on & self._loses_fix


@dataclasses.dataclass(frozen=True)
class Spoofing(Events):
    """A spoofer that captures the receiver, at given or drawn times.

    It takes the position away slowly, from the true one, so that nothing jumps at the start::

        error(t) = noise + velocity min(t, distance / |velocity|),   t since the start

    Status and covariance stay as if nothing happened: that is the danger. At the end the receiver
    finds the true satellites again, and the position jumps back.

    References
    ----------
    [Humphreys2008]: a spoofer that captures the tracking loops before it moves them.
    """

    velocity: Axes = axes(
        'm/s', 'How fast the position walks off (east, north, up).', (0.2, 0.0, 0.0)
    )
    distance: float = non_negative(100.0, 'm', 'Where it stops.')

    def start(self, seed: int, run: str, sensor: str) -> SpoofingProcess:
        """Return the spoofer of one receiver."""
        return SpoofingProcess(self, stream(seed, run, sensor, 'spoofing'))


class SpoofingProcess:
    """A spoofer as time goes on; see `Spoofing`."""

    def __init__(self, spoofing: Spoofing, rng: np.random.Generator) -> None:
        self._events = EventProcess(spoofing, rng)
        self._velocity = np.asarray(spoofing.velocity)
        speed = math.sqrt(float(np.sum(self._velocity**2)))
        self._longest = spoofing.distance / speed if speed else 0.0

    def advance(self, elapsed: FloatArray) -> FloatArray:
        """Return the added error at the next times `(n,)` s since the first fix, `(n, 3)` m."""
        lasted = np.minimum(np.nan_to_num(self._events.ages(elapsed)), self._longest)
        return np.asarray(lasted[:, None] * self._velocity)
