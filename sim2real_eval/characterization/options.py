# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Options of the analysis of an IMU at rest, with their defaults and limits."""

from __future__ import annotations

import dataclasses

from sim_sensors.core.errors import ParameterError
from sim_sensors.core.parameters import Parameters, parameter, rare

GYROSCOPE_UNITS = ('rad/s', 'deg/s', 'mdps')
"""Units of angular velocities in recordings."""
ACCELEROMETER_UNITS = ('m/s^2', 'g', 'mg')
"""Units of specific forces in recordings."""


@dataclasses.dataclass(frozen=True)
class AllanOptions(Parameters):
    """Options of the Allan analysis of recordings."""

    points: int = rare(
        50,
        '1',
        'Number of averaging times of the curve, logarithmically spaced; octaves are '
        'always included.',
        minimum=2,
    )
    outliers: str = rare(
        'robust',
        '',
        'Rule for outliers. robust: beyond 6 robust standard deviations; iqr: the rule of '
        '[Cesenek2019], which lowers white noise by 13.5 %; none: all samples are kept.',
        choices=('robust', 'iqr', 'none'),
    )
    factor: float | None = rare(
        None,
        '1',
        'Threshold of the rule for outliers (default: 6 for robust, 1 for iqr).',
        optional=float,
        above=0.0,
    )
    reject_motion: bool = parameter(True, '', 'Analyse the longest standstill of the IMU only.')
    fit_from: float = rare(
        0.0,
        's',
        'Shortest averaging time in the fit. Low-pass filters are detected and do not need it.',
        minimum=0.0,
    )
    detrend: bool = rare(
        False, '', 'Remove a linear drift of the mean, so that the model has no ramp.'
    )
    weights: str = rare(
        'uncertainty',
        '',
        'Weights for averaging several recordings.',
        choices=('uncertainty', 'length'),
    )

    def _check(self) -> None:
        if self.factor is not None and self.outliers == 'none':
            raise ParameterError('', 'factor', 'needs --outliers robust or iqr')


@dataclasses.dataclass(frozen=True)
class PoseOptions(Parameters):
    """Options of the pose detection."""

    gravity: float = parameter(
        9.80665, 'm/s^2', 'Gravity where the recording was made.', above=0.0
    )
    shortest_pose: float = parameter(
        2.0, 's', 'Shortest standstill that counts as a pose.', above=0.0, common=False
    )


@dataclasses.dataclass(frozen=True)
class TableOptions(Parameters):
    """Columns, rate and units of a table whose header does not state them.

    `columns` names the columns in order: names of `AXES`, `time` (s), `time_ms`, `time_us`,
    `stamp_ns`, or `-` for a column to skip. If it is empty, the first line has the names.
    """

    rate: float | None = parameter(
        None,
        'Hz',
        'Sample rate of a table without a column time (s), time_ms, time_us or stamp_ns.',
        optional=float,
        above=0.0,
    )
    columns: tuple[str, ...] = ()
    gyroscope_unit: str = parameter(
        'rad/s', '', 'Unit of the angular velocities, also in recordings.', choices=GYROSCOPE_UNITS
    )
    accelerometer_unit: str = parameter(
        'm/s^2', '', 'Unit of the accelerations, also in recordings.', choices=ACCELEROMETER_UNITS
    )

    gyroscope_scale: float = parameter(
        1.0,
        '1',
        'Counts (LSB) per --gyro-unit, if the values are counts: 16.4 per deg/s for an MPU-6050 '
        'with a range of 2000 deg/s.',
        above=0.0,
    )
    accelerometer_scale: float = parameter(
        1.0,
        '1',
        'Counts (LSB) per --accel-unit, if the values are counts: 16384 per g for an MPU-6050 '
        'with a range of 2 g.',
        above=0.0,
    )

    @property
    def si_factors(self) -> dict[str, float]:
        """Factors that convert the values of each quantity to SI units."""
        from .sheet_units import unit_size

        return {
            'gyroscope': unit_size(self.gyroscope_unit) / self.gyroscope_scale,
            'accelerometer': unit_size(self.accelerometer_unit) / self.accelerometer_scale,
        }
