# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Faults of an IMU in operation."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import parameter, positive
from sim_sensors.sensor.faults import BoolArray, Fault

_TRIADS = ('both', 'gyroscope', 'accelerometer')
_AXES = ('all', 'x', 'y', 'z')


@dataclasses.dataclass(eq=False)
class InertialSignals:
    """Measured signals of `n` samples, and those of the sample before, `(3,)` or NaN."""

    rate: FloatArray  # (n, 3) rad/s
    force: FloatArray  # (n, 3) m/s^2
    rate_before: FloatArray
    force_before: FloatArray


@dataclasses.dataclass(frozen=True)
class Saturation(Fault):
    """Signals beyond a range are cut off, as with a range that is set too small."""

    kind: ClassVar[str] = 'saturation'

    gyroscope_range: float = positive(2.18, 'rad/s', 'Largest angular rate; 2.18 is 125 deg/s.')
    accelerometer_range: float = positive(19.6, 'm/s^2', 'Largest specific force; 19.6 is 2 g.')

    def disturb(
        self, signals: InertialSignals, rows: BoolArray, age: FloatArray, rng: np.random.Generator
    ) -> None:
        """Clip the signals."""
        for values, limit in (
            (signals.rate, self.gyroscope_range),
            (signals.force, self.accelerometer_range),
        ):
            values[rows] = np.clip(values[rows], -limit, limit)


@dataclasses.dataclass(frozen=True)
class Stuck(Fault):
    """Signals repeat the last value before the fault, or the first of the sensor."""

    kind: ClassVar[str] = 'stuck'

    triad: str = parameter('both', '', 'Triad that is stuck.', choices=_TRIADS)
    axis: str = parameter('all', '', 'Axis that is stuck.', choices=_AXES)

    def disturb(
        self, signals: InertialSignals, rows: BoolArray, age: FloatArray, rng: np.random.Generator
    ) -> None:
        """Repeat the values."""
        columns = slice(None) if self.axis == 'all' else _AXES.index(self.axis) - 1
        for name, values, before in (
            ('gyroscope', signals.rate, signals.rate_before),
            ('accelerometer', signals.force, signals.force_before),
        ):
            if self.triad in ('both', name):
                first = int(np.flatnonzero(rows)[0])
                held = values[first - 1] if first else before
                held = np.where(np.isfinite(held), held, values[first])
                values[rows, columns] = held[columns]


IMU_FAULTS = (Saturation, Stuck)
