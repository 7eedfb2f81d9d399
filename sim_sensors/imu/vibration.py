# SPDX-License-Identifier: Apache-2.0
"""Vibration of an engine or a rotor: lines at multiples of its rotation rate."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import Parameters, non_negative, positive
from sim_sensors.core.seeding import stream
from sim_sensors.core.shared_parameters import Axes, axes
from sim_sensors.noise.processes import GaussMarkov


@dataclasses.dataclass(frozen=True)
class Vibration(Parameters):
    """Vibration of an engine or a rotor, felt by both triads of an IMU; none by default.

    The engine has turned c(t) cycles. Each axis feels, for n = 1, 2, 3 ...::

        v(t) = amplitude sum over n of harmonic_n |H(n f)| sin(2 pi (n c(t) + phase_n))

    `gyroscope` and `accelerometer` are the amplitudes at each axis, which is how well the mount
    couples the engine to it. The phases are drawn once per multiple and axis. The rotation rate f
    is constant, or wanders as a Gauss-Markov process that both triads share.

    The vibration is sampled at the instants of the IMU. A line at n f above half the rate
    therefore appears at its alias, |n f - k rate|, with its full size. H is the low pass of the
    triad (`bandwidth`, `filter_order`) at the true frequency, as in a sensor that filters before
    it samples. A lever arm does not change the amplitudes.
    """

    rotation_rate: float = non_negative(0.0, 'Hz', 'Turns of the engine per second; 0: none.')
    rotation_std: float = non_negative(0.0, 'Hz', 'Deviation of its wander.')
    rotation_time: float = positive(10.0, 's', 'Correlation time of its wander.')
    harmonics: tuple[float, ...] = non_negative(
        (), '1', 'Size of the multiples 1, 2, 3 ... of that rate over the amplitudes below.'
    )
    gyroscope: Axes = axes('rad/s', 'Amplitude at each axis of the gyroscope.', minimum=0.0)
    accelerometer: Axes = axes(
        'm/s^2', 'Amplitude at each axis of the accelerometer.', minimum=0.0
    )

    def start(
        self, seed: int, run: str, sensor: str, triad: str, gain: LineGain
    ) -> VibrationProcess | None:
        """Return what a triad, `gyroscope` or `accelerometer`, feels; None: nothing."""
        amplitude = np.asarray(getattr(self, triad))
        if not (self.rotation_rate and any(self.harmonics) and amplitude.any()):
            return None
        phases = stream(seed, run, sensor, f'{triad}_vibration').random((len(self.harmonics), 3))
        wander = GaussMarkov(
            stream(seed, run, sensor, 'rotation'), self.rotation_std, self.rotation_time, axes=1
        )
        lines = [
            (order, size * gain.at(order * self.rotation_rate) * amplitude, phase)
            for order, (size, phase) in enumerate(zip(self.harmonics, phases, strict=True), 1)
        ]
        return VibrationProcess(self.rotation_rate, wander, lines)


@dataclasses.dataclass(frozen=True)
class LineGain:
    """Gain of a low pass of that order with -3 dB at `bandwidth`, Hz; 0: of none."""

    bandwidth: float
    order: int

    def at(self, frequency: float) -> float:
        """Return the gain at a frequency, Hz."""
        if not self.bandwidth:
            return 1.0
        return 1.0 / math.sqrt(1.0 + (frequency / self.bandwidth) ** (2 * self.order))


class VibrationProcess:
    """Vibration of one triad as time goes on; see `Vibration`.

    `lines` are the order, the amplitudes `(3,)` and the phases `(3,)` in cycles of each line.
    """

    def __init__(
        self, rate: float, wander: GaussMarkov, lines: list[tuple[int, FloatArray, FloatArray]]
    ) -> None:
        self._rate, self._wander, self._lines = rate, wander, lines
        self._cycles = 0.0

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the vibration at the next samples, `(n, 3)`; `dt` `(n,)` s since the last."""
        turned = (self._rate + self._wander.advance(dt)[:, 0]) * dt
        cycles = np.add.accumulate(np.concatenate([[self._cycles], turned]))
        self._cycles = float(cycles[-1])
        felt = np.zeros((len(dt), 3))
        for order, amplitude, phase in self._lines:
            angle = 2.0 * math.pi * (order * cycles[1:, None] + phase)
            felt = felt + amplitude * np.sin(angle)
        return felt
