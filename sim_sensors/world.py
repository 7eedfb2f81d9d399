# SPDX-License-Identifier: Apache-2.0
"""The world that all sensors of a simulation share: one value that is handed to each of them."""

from __future__ import annotations

import dataclasses
import functools

from sim_sensors.dipoles import Dipoles
from sim_sensors.earth_field import EarthField
from sim_sensors.environment import DEFAULT_ORIGIN, LocalFrame
from sim_sensors.gravity import Gravity
from sim_sensors.landmarks import Landmarks, Tags
from sim_sensors.measurements import FloatArray, IntArray

__all__ = ['World']


@dataclasses.dataclass(frozen=True, eq=False)
class World:
    """What surrounds the sensors of a simulation. Its frame is east north up.

    Parameters
    ----------
    frame : LocalFrame
        Where on the Earth its origin is.
    gravity_model : Gravity
        Standard, normal or a constant.
    earth_field : EarthField
        World Magnetic Model or a constant.
    dipoles : Dipoles
        Magnetic disturbances.
    landmarks : Landmarks
        Points to see.
    tags : Tags
        Square markers to see.
    chessboards : tuple of (rows, columns) int
        Which landmarks, by their ids, are the inner corners of each chessboard.

    Examples
    --------
    >>> World().gravity
    9.80665
    """

    frame: LocalFrame = DEFAULT_ORIGIN
    gravity_model: Gravity = dataclasses.field(default_factory=Gravity)
    earth_field: EarthField = dataclasses.field(default_factory=EarthField)
    dipoles: Dipoles = dataclasses.field(default_factory=Dipoles)
    landmarks: Landmarks = dataclasses.field(default_factory=Landmarks)
    tags: Tags = dataclasses.field(default_factory=Tags)
    chessboards: tuple[IntArray, ...] = ()

    @functools.cached_property
    def gravity(self) -> float:
        """Gravity, m/s^2, along -z of the frame; what an IMU takes as `gravity`."""
        return self.gravity_model.at(self.frame)

    @functools.cached_property
    def undisturbed_field(self) -> FloatArray:
        """Magnetic field of the Earth alone, `(3,)` T, east north up.

        Raises
        ------
        SensorError, ParameterError
            When the World Magnetic Model is asked for and not there, or does not reach so far.
        """
        return self.earth_field.at(self.frame)

    def magnetic_field(self, points: FloatArray) -> FloatArray:
        """Return the magnetic field, `(n, 3)` T, east north up, at points `(n, 3)` m of the frame:
        that of the Earth plus those of the dipoles.
        """
        field: FloatArray = self.dipoles.field(points) + self.undisturbed_field
        return field
