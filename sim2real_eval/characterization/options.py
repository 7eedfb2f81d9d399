# SPDX-License-Identifier: Apache-2.0
"""What the analysis of an IMU at rest may be told, with the defaults and what is allowed."""

from __future__ import annotations

import dataclasses
import math

from sim_sensors.core.errors import ParameterError
from sim_sensors.core.parameters import Parameters, parameter, rare

# What 1 of each unit is in SI; g is the standard gravity of CGPM 1901.
_GYROSCOPE_UNITS = {'rad/s': 1.0, 'deg/s': math.pi / 180.0}
_ACCELEROMETER_UNITS = {'m/s^2': 1.0, 'g': 9.80665, 'mg': 1e-3 * 9.80665}


@dataclasses.dataclass(frozen=True)
class AllanOptions(Parameters):
    """How recordings are analysed."""

    points: int = rare(
        50,
        '1',
        'Averaging times of the curve, evenly spaced in the logarithm; octaves are always there.',
        minimum=2,
    )
    outliers: str = rare(
        'robust',
        '',
        'robust: beyond 6 robust deviations; iqr: the rule of [Cesenek2019], which makes white '
        'noise 13.5 % too low; none: all are kept.',
        choices=('robust', 'iqr', 'none'),
    )
    factor: float | None = rare(
        None,
        '1',
        'Of that rule (6 of robust, 1 of iqr where it is not given).',
        optional=float,
        above=0.0,
    )
    reject_motion: bool = parameter(True, '', 'Analyse the longest standstill of the IMU only.')
    fit_from: float = rare(
        0.0,
        's',
        'Shortest averaging time that is fitted, for a sensor with a low pass, which has less '
        'noise than its white noise below the inverse of its bandwidth.',
        minimum=0.0,
    )
    weights: str = rare(
        'uncertainty',
        '',
        'Weights of several recordings in their mean.',
        choices=('uncertainty', 'length'),
    )

    def _check(self) -> None:
        if self.factor is not None and self.outliers == 'none':
            raise ParameterError('', 'factor', 'goes with outliers of robust or iqr only')


@dataclasses.dataclass(frozen=True)
class PoseOptions(Parameters):
    """How poses are found and taken."""

    gravity: float = parameter(9.80665, 'm/s^2', 'Where the poses were held.', above=0.0)
    shortest_pose: float = parameter(
        2.0, 's', 'Shortest standstill that counts as a pose.', above=0.0, common=False
    )


@dataclasses.dataclass(frozen=True)
class TableOptions(Parameters):
    """What the numbers of a table mean, where it does not say so itself.

    `columns` are names in the order of the columns, as in `AXES`, `time` (s), `time_ms`,
    `time_us`, `stamp_ns`, or `-` for one to skip; empty: take them from the first line.
    """

    rate: float | None = parameter(
        None,
        'Hz',
        'Of a table without a column time (s), time_ms, time_us or stamp_ns.',
        optional=float,
        above=0.0,
    )
    columns: tuple[str, ...] = ()
    gyroscope_unit: str = parameter(
        'rad/s', '', 'Unit of the rates, in recordings too.', choices=tuple(_GYROSCOPE_UNITS)
    )
    accelerometer_unit: str = parameter(
        'm/s^2',
        '',
        'Unit of the accelerations, in recordings too.',
        choices=tuple(_ACCELEROMETER_UNITS),
    )

    @property
    def sizes(self) -> dict[str, float]:
        """What 1 of each quantity is in SI."""
        return {
            'gyroscope': _GYROSCOPE_UNITS[self.gyroscope_unit],
            'accelerometer': _ACCELEROMETER_UNITS[self.accelerometer_unit],
        }
