# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Options of a comparison of signals, and published results to compare with."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from sim_sensors.core.errors import ParameterError, Sim2RealError, not_among
from sim_sensors.core.parameters import Parameters, parameter, rare
from .quantities import QUANTITIES

_NAMES = tuple(quantity.name for quantity in QUANTITIES)


class SignalComparisonError(Sim2RealError):
    """Signals cannot be compared: too few samples, no common quantity, a window too long."""


@dataclasses.dataclass(frozen=True)
class SignalOptions(Parameters):
    """Options of the preparation and comparison of signals."""

    rate: float = rare(
        0.0,
        'Hz',
        'Rate of the common time grid of trends and spectra; 0: the lowest median rate among the '
        'runs, for each sensor.',
        maximum=1e4,
        minimum=0.0,
    )
    trend_window: int = rare(
        519,
        '',
        'Length of the median filter that gives the trend, in samples of the grid; odd.',
        minimum=1,
    )
    nperseg: int = rare(
        0,
        '',
        "Samples per segment of Welch's method; 0: the largest power of two that leaves 7 or more "
        'half-overlapping segments in the shortest run; -1: one segment of the shortest run, a '
        'periodogram, as in [Cesenek2019].',
        minimum=-1,
    )
    window: str = parameter(
        'hann', '', 'Taper of each segment.', choices=('hann', 'hamming', 'boxcar')
    )
    align: str = parameter(
        'report',
        '',
        'Treatment of the lag of a sensor behind its truth: report: print it; apply: subtract it '
        'from the stamps of each quantity if it exceeds twice its uncertainty; none: ignore it.',
        choices=('none', 'report', 'apply'),
    )
    max_lag: float = rare(
        1.0, 's', 'Largest lag of either sign that is searched.', above=0.0, maximum=30.0
    )
    yaw: str = rare(
        'auto',
        '',
        'auto: yaw of the orientation published by the IMU, otherwise the integral of its z rate; '
        'gyro: always the integral.',
        choices=('auto', 'gyro'),
    )
    feature: int | None = rare(
        None,
        '',
        'Id in the world of the camera feature to plot over time (default: the one that the real '
        'and the simulated camera find in most frames).',
        optional=int,
        minimum=0,
    )
    quantities: str = rare(
        '',
        '',
        'Quantities to compare, separated by commas: angular_rate, specific_force, yaw, position, '
        'magnetic_field; default all.',
    )
    sizes: bool = rare(
        False,
        '',
        'Compare absolute errors, as [Cesenek2019] does: two sensors that drift in opposite '
        'directions then count as equal.',
    )
    # Standard gravity, CGPM 1901.
    gravity: float = rare(9.80665, 'm/s^2', 'Gravity in the true specific force.', above=0.0)
    base_frame: str = rare('base_link', '', 'Body frame of the robot.')
    level: float = parameter(
        0.05,
        '',
        'Significance level: probability that at least one row of a table is different by chance.',
        above=0.0,
        maximum=0.5,
    )
    permutations: int = parameter(
        2000,
        '',
        'Largest number of permutations of the runs; if there are fewer, all are used.',
        minimum=20,
    )
    seed: int = parameter(0, '', 'Seed of drawn permutations.', minimum=0)

    @property
    def quantity_names(self) -> tuple[str, ...]:
        """Names of the quantities to compare."""
        names = tuple(name.strip() for name in self.quantities.split(','))
        return names if any(names) else _NAMES

    def _check(self) -> None:
        for name in self.quantity_names:
            if name not in _NAMES:
                problem = not_among(f'unknown name {name!r}', name, _NAMES)
                raise ParameterError(type(self).__name__, 'quantities', problem)
        if self.trend_window % 2 == 0:
            raise SignalComparisonError(
                f'trend window: {self.trend_window} is not allowed; must be odd, 2k + 1'
            )


@dataclasses.dataclass(frozen=True)
class PublishedAgreement:
    """RMSE (in the unit of the signal) and correlation between a simulated and a real signal."""

    rmse: float
    correlation: float


LIGORIO_2015: Mapping[str, PublishedAgreement] = {
    'angular_rate_x': PublishedAgreement(0.03, 0.97),
    'angular_rate_y': PublishedAgreement(0.02, 0.90),
    'angular_rate_z': PublishedAgreement(0.02, 0.97),
    'specific_force_x': PublishedAgreement(0.15, 0.98),
    'specific_force_y': PublishedAgreement(0.15, 0.99),
    'specific_force_z': PublishedAgreement(0.15, 0.99),
    'magnetic_field_x': PublishedAgreement(1.74e-6, 0.98),
    'magnetic_field_y': PublishedAgreement(2.00e-6, 0.99),
    'magnetic_field_z': PublishedAgreement(1.10e-6, 0.99),
}
"""Table 2 of [Ligorio2015]: 140 s of one hand-held unit, so other results need not agree."""

LIGORIO_2015_FEATURES: Mapping[str, PublishedAgreement] = {
    'u': PublishedAgreement(7.62, 0.99),
    'v': PublishedAgreement(9.27, 0.98),
}
"""Table 3 of [Ligorio2015]: mean over nine tracked corners of a chessboard, pixels."""
