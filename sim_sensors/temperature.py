# SPDX-License-Identifier: Apache-2.0
"""Temperature of a sensor since it was switched on."""

from __future__ import annotations

import dataclasses

import numpy as np

from sim_sensors.measurements import FloatArray
from sim_sensors.noise import Decay, Ramp
from sim_sensors.parameters import Parameters, parameter

__all__ = ['Temperature', 'Thermometer']


@dataclasses.dataclass(frozen=True)
class Temperature(Parameters):
    """Temperature profile T(t), t since the sensor was switched on.

    constant: T = initial. ramp: linear from initial to final in `time`, then final. warm_up:
    T = final + (initial - final) exp(-t / time).
    """

    profile: str = parameter(
        'constant',
        '',
        'constant: at initial; ramp: linear to final within time; warm_up: exponential to final '
        'with the time constant time.',
        choices=('constant', 'ramp', 'warm_up'),
        read_only=True,
    )
    initial: float = parameter(25.0, 'degC', 'When switched on.', minimum=-273.15)
    final: float = parameter(25.0, 'degC', 'After warming up.', minimum=-273.15)
    time: float = parameter(
        600.0,
        's',
        'Length of the ramp or time constant of the warm-up.',
        minimum=0.0,
        minimum_excluded=True,
    )
    reference: float = parameter(
        25.0, 'degC', 'Where the terms of temperature vanish.', minimum=-273.15
    )

    def start(self) -> Thermometer:
        """Return the temperature of a sensor that is switched on now."""
        return Thermometer(self)


class Thermometer:
    """Temperature of a sensor that is switched on, above the reference; see `Temperature`."""

    def __init__(self, temperature: Temperature) -> None:
        self._temperature = temperature
        rise = temperature.final - temperature.initial
        self._decay = Decay(temperature.initial, temperature.final, temperature.time)
        self._ramp = Ramp(rise / temperature.time, axes=1)

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the excess over the reference temperature at the next samples, `(n, 1)` K."""
        given = self._temperature
        if given.profile == 'warm_up':
            return self._decay.advance(dt) - given.reference
        if given.profile == 'ramp':
            low, high = sorted((given.initial, given.final))
            reached = np.clip(given.initial + self._ramp.advance(dt), low, high)
            return np.asarray(reached - given.reference)
        return np.full((len(dt), 1), given.initial - given.reference)
