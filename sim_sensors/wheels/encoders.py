# SPDX-License-Identifier: Apache-2.0
"""What the encoders of wheels tell of how they roll over the ground."""

from __future__ import annotations

import math

import numpy as np

from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.seeding import stream
from sim_sensors.wheels.drives import WheelDrive
from sim_sensors.wheels.noise import WheelNoise
from sim_sensors.wheels.slip import Slip


class Encoders:
    """The encoders of one robot: slip, wrong radius, white noise and whole counts.

    Wrong radii are drawn elsewhere (`sim_sensors.wheels.constants`).

    Parameters
    ----------
    drive : WheelDrive
        The wheels.
    noise, slip
        What they get wrong of a way.
    counts
        Per turn of a wheel; 0: no steps.
    seed, run, sensor
        Labels of their random streams; see `sim_sensors.core.seeding.stream`.
    """

    def __init__(
        self,
        drive: WheelDrive,
        noise: WheelNoise,
        slip: Slip,
        counts: float,
        seed: int,
        run: str,
        sensor: str,
    ) -> None:
        wheels = drive.wheels
        self._radius = drive.wheel_radius
        self._noise, self._slip = noise, slip
        # Way of one count, m.
        self._count = 2.0 * math.pi * drive.wheel_radius / counts if counts > 0.0 else 0.0
        self._rng = stream(seed, run, sensor, 'wheel_noise')
        self._slips = slip.start(seed, run, sensor, wheels)
        # Where between two counts each wheel stands at first: at an edge, noise would count.
        self._way: FloatArray = np.zeros(wheels)
        if self._count:
            self._way = self._count * stream(seed, run, sensor, 'encoder_phase').random(wheels)

    def read(self, travels: FloatArray, radius_errors: FloatArray) -> FloatArray:
        """Return what is told of the next travels over the ground, `(n, wheels)` m.

        Parameters
        ----------
        travels : (n, wheels)
            m.
        radius_errors : (wheels,)
            Relative error of the radius of each wheel.
        """
        normals = self._rng.standard_normal(travels.shape)
        deviation = self._noise.deviation(travels, self._radius)
        told = travels + self._slips.advance(travels)
        told = told + radius_errors * travels
        found: FloatArray = told + normals * deviation
        if not self._count:
            return found
        way = accumulated(self._way, found)
        self._way = way[-1].copy()
        whole = np.floor(way / self._count)
        counted: FloatArray = self._count * (whole[1:] - whole[:-1])
        return counted

    def variance(self, travels: FloatArray) -> FloatArray:
        """Return the variance, m^2, of told travels, as one who knows the model states it.

        Of what changes from step to step: errors of the radii stay, the mean of slips does, and
        counting does not add up; see `variance_of_counting`.

        Parameters
        ----------
        travels : (n, wheels)
            Over the ground, m.
        """
        found = self._noise.deviation(travels, self._radius) ** 2
        total: FloatArray = found + self._slip.variance_per_metre * np.abs(travels)
        return total

    @property
    def variance_of_counting(self) -> float:
        """Variance that whole counts add to one travel, m^2: two ends, each uniform."""
        return self._count**2 / 6.0


def accumulated(start: FloatArray, values: FloatArray) -> FloatArray:
    """Return `start` and its sums with the rows of `values`, row after row, `(n + 1, k)`."""
    rows: FloatArray = np.add.accumulate(np.concatenate([start[None], values]), axis=0)
    return rows
