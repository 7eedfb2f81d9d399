# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Faults of a GPS receiver in operation."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

import numpy as np

from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.core.parameters import non_negative, parameter
from sim_sensors.sensor.faults import BoolArray, Fault
from .events import FIX_STATES, Jammer, Spoofer


@dataclasses.dataclass(eq=False)
class FixSignals:
    """Properties of `n` fixes that faults change, before the position is computed."""

    state: IntArray  # (n,) index in `FIX_STATES`
    error_scale: FloatArray  # (n,) factor of the error of the receiver
    stated_scale: FloatArray  # (n,) factor of the stated standard deviation
    error: FloatArray  # (n, 3) added error, m
    variance: FloatArray  # (n, 3) variance of it that the receiver measures, m^2
    is_lost: BoolArray  # (n,) whether there is no fix

    @classmethod
    def undisturbed(cls, state: IntArray) -> FixSignals:
        """Return the signals without faults."""
        n = len(state)
        return cls(
            state,
            np.ones(n),
            np.ones(n),
            np.zeros((n, 3)),
            np.zeros((n, 3)),
            np.zeros(n, dtype=np.bool_),
        )


@dataclasses.dataclass(frozen=True)
class Outage(Fault):
    """No fix: the last position is repeated with status -1."""

    kind: ClassVar[str] = 'outage'

    def disturb(
        self, signals: FixSignals, rows: BoolArray, age: FloatArray, rng: np.random.Generator
    ) -> None:
        """Lose the fix."""
        signals.is_lost[rows] = True


@dataclasses.dataclass(frozen=True)
class FixState(Fault):
    """Kind of fix that the receiver has, with the status and scales of its `states`.

    Most models have one error for all states; `error_scale` makes a float solution worse.
    """

    kind: ClassVar[str] = 'fix'

    state: str = parameter(
        'float', '', 'Kind of fix: none, single, sbas, float, or rtk (fixed).', choices=FIX_STATES
    )
    error_scale: float = non_negative(1.0, '1', 'Factor of the error.')
    stated_scale: float = non_negative(1.0, '1', 'Factor of the stated standard deviation.')

    def disturb(
        self, signals: FixSignals, rows: BoolArray, age: FloatArray, rng: np.random.Generator
    ) -> None:
        """Set the state."""
        signals.state[rows] = FIX_STATES.index(self.state)
        signals.error_scale[rows] *= self.error_scale
        signals.stated_scale[rows] *= self.stated_scale


@dataclasses.dataclass(frozen=True)
class Degradation(Fault):
    """Larger errors, as under trees or with few satellites. `stated_scale` 1: it does not know."""

    kind: ClassVar[str] = 'degradation'

    error_scale: float = non_negative(5.0, '1', 'Factor of the error.')
    stated_scale: float = non_negative(5.0, '1', 'Factor of the stated standard deviation.')

    def disturb(
        self, signals: FixSignals, rows: BoolArray, age: FloatArray, rng: np.random.Generator
    ) -> None:
        """Scale the errors."""
        signals.error_scale[rows] *= self.error_scale
        signals.stated_scale[rows] *= self.stated_scale


@dataclasses.dataclass(frozen=True)
class JammingFault(Jammer, Fault):
    """Jammer near the receiver; see `sim_sensors.gps.events.Jamming`."""

    kind: ClassVar[str] = 'jamming'

    def disturb(
        self, signals: FixSignals, rows: BoolArray, age: FloatArray, rng: np.random.Generator
    ) -> None:
        """Add the noise of the jammer, or lose the fix."""
        std = math.sqrt(self.ratio) * np.asarray(self.thermal_std)
        signals.error[rows] += std * rng.standard_normal((len(age), 3))
        signals.variance[rows] += std**2
        signals.is_lost[rows] |= self.loses_fix


@dataclasses.dataclass(frozen=True)
class SpoofingFault(Spoofer, Fault):
    """Spoofer that moves the position away; see `sim_sensors.gps.events.Spoofing`."""

    kind: ClassVar[str] = 'spoofing'

    def disturb(
        self, signals: FixSignals, rows: BoolArray, age: FloatArray, rng: np.random.Generator
    ) -> None:
        """Add the error of the spoofer."""
        signals.error[rows] += self.offset(age)


GPS_FAULTS = (Outage, FixState, Degradation, JammingFault, SpoofingFault)
