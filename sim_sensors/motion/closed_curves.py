# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Loops of a service robot: closed curves by their Fourier coefficients, and four named ones."""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np

from sim_sensors.core.errors import ParameterError
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import parameter, positive
from .paths import CurvePath, Derivatives, PlanarPath
from .scenarios import RampedDrive

_MIN_STEEPNESS = 1e-3


@dataclasses.dataclass(frozen=True)
class ClosedCurve(RampedDrive):
    """Closed curve, driven again and again.

    x = sum of cosines[k] cos((k + 1) u), y = sum of sines[k] sin((k + 1) u), moved so that it
    begins at the origin, and turned so that it begins along x.
    """

    kind = 'closed_curve'
    speed: float = positive(0.3, 'm/s', 'Speed after the ramp.')
    cosines: tuple[float, ...] = parameter((3.0, 0.0, -0.25), 'm', 'Coefficients of x.')
    sines: tuple[float, ...] = parameter((2.2, 0.0, 0.25), 'm', 'Coefficients of y.')

    def _check(self) -> None:
        super()._check()
        u = np.linspace(0.0, 2.0 * math.pi, 4096)
        _, (dx, dy), _, _ = _curve(self.cosines, self.sines, u)
        steepness = np.hypot(dx, dy)
        if not steepness.min() > _MIN_STEEPNESS * steepness.max():
            raise ParameterError(
                type(self).__name__,
                'cosines, sines',
                f'{self.cosines} and {self.sines} are not allowed; the curve must have no cusp',
            )

    @functools.cached_property
    def path(self) -> PlanarPath:
        """The curve."""
        (x, y), (dx, dy), _, _ = _curve(self.cosines, self.sines, np.zeros(1))
        turn, shift = -math.atan2(dy[0], dx[0]), (x[0], y[0])
        c, s = math.cos(turn), math.sin(turn)

        def curve(u: FloatArray) -> Derivatives:
            found = _curve(self.cosines, self.sines, u)
            place = (found[0][0] - shift[0], found[0][1] - shift[1])
            first, second, third, fourth = (
                (c * x - s * y, s * x + c * y) for x, y in (place, *found[1:])
            )
            return first, second, third, fourth

        return CurvePath(curve, 2.0 * math.pi, closed=True)


def _curve(cosines: tuple[float, ...], sines: tuple[float, ...], u: FloatArray) -> Derivatives:
    """Return the curve and its first three derivatives."""

    def derivative(order: int) -> tuple[FloatArray, FloatArray]:
        lead = 0.5 * math.pi * order
        x, y = np.zeros_like(u), np.zeros_like(u)
        for k, size in enumerate(cosines, 1):
            x += size * float(k) ** order * np.cos(k * u + lead)
        for k, size in enumerate(sines, 1):
            y += size * float(k) ** order * np.sin(k * u + lead)
        return x, y

    return derivative(0), derivative(1), derivative(2), derivative(3)


@dataclasses.dataclass(frozen=True)
class PathA(ClosedCurve):
    """Loop of 70 s around a room, for trajectory A of [Cesenek2019]."""

    kind = 'path_a'
    cosines: tuple[float, ...] = parameter((4.1, 0.0, -0.36), 'm', 'Coefficients of x.')
    sines: tuple[float, ...] = parameter((2.5, 0.0, 0.28), 'm', 'Coefficients of y.')


@dataclasses.dataclass(frozen=True)
class PathB(ClosedCurve):
    """Way of 11 minutes through a flat, driven once, for trajectory B of [Cesenek2019]."""

    kind = 'path_b'
    cosines: tuple[float, ...] = parameter(
        (18.0, 0.0, 0.0, 0.0, 4.2, 0.0, 2.9), 'm', 'Coefficients of x.'
    )
    sines: tuple[float, ...] = parameter(
        (14.0, 0.0, 3.1, 0.0, 0.0, 3.9, 0.0, 2.3), 'm', 'Coefficients of y.'
    )


@dataclasses.dataclass(frozen=True)
class PathC(ClosedCurve):
    """Loop of 70 s with a bay, for trajectory C of [Cesenek2019]."""

    kind = 'path_c'
    cosines: tuple[float, ...] = parameter((2.9, 1.0), 'm', 'Coefficients of x.')
    sines: tuple[float, ...] = parameter((2.9, 0.0, -0.2), 'm', 'Coefficients of y.')


@dataclasses.dataclass(frozen=True)
class PathD(ClosedCurve):
    """Loop of 70 s that crosses itself, for trajectory D of [Cesenek2019]."""

    kind = 'path_d'
    cosines: tuple[float, ...] = parameter((2.2, 1.6), 'm', 'Coefficients of x.')
    sines: tuple[float, ...] = parameter((2.0, 1.5), 'm', 'Coefficients of y.')
