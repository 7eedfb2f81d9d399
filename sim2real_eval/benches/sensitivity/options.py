# SPDX-License-Identifier: Apache-2.0
"""What `sim2real sensitivity` may be told, and what is allowed."""

from __future__ import annotations

import dataclasses

from sim_sensors.core.errors import ParameterError
from sim_sensors.core.parameters import Parameters, parameter, rare

NAMES = (
    'gps_noise', 'gps_delay', 'lever_arm', 'gyro_bias', 'gyro_scale', 'accelerometer_bias',
    'imu_delay', 'heading',
)  # fmt: skip
"""Errors that can be injected; see `sim2real_eval.benches.sensitivity.injection`."""

_NAMES = ', '.join(NAMES)

FEWEST_DRAWS = 4

LEVEL = 0.05
"""Of the permutation test."""


@dataclasses.dataclass(frozen=True)
class SensitivityOptions(Parameters):
    """How what judges can see is found."""

    errors: str = parameter('all', '', f'Errors that are injected, by comma: all, or of {_NAMES}.')
    gps: str | None = parameter(
        None,
        '',
        'GPS model that is simulated with and without errors: a preset, a YAML file or stand_in. '
        'Where neither GPS nor IMU is given, recordings keep their own sensors.',
        optional=str,
    )
    imu: str | None = parameter(None, '', 'IMU model likewise.', optional=str)
    runs: int = parameter(
        4, '1', 'Simulated drives per scenario, where no recordings are given.', minimum=2
    )
    power: float = parameter(
        0.8, '1', 'Share of studies that are to reveal the error.', minimum=0.2, maximum=0.99
    )
    draws: int = parameter(
        30,
        '1',
        'Simulated runs per recording and size; any two of them are compared. More make the '
        'intervals narrower.',
        minimum=FEWEST_DRAWS,
        maximum=1000,
    )
    trials: int = rare(
        1000, '1', 'Comparisons from which the power of each size is counted.', minimum=200
    )
    permutations: int = rare(1000, '1', 'Permutations of each comparison.', minimum=200)

    @property
    def names(self) -> tuple[str, ...]:
        """The errors that are injected."""
        names = [name.strip() for name in self.errors.split(',')]
        return tuple(one for one in NAMES if one in names or 'all' in names)

    def _check(self) -> None:
        for name in self.errors.split(','):
            if name.strip() not in ('all', *NAMES):
                problem = f'{name.strip()!r} is not allowed; must be all, or of {_NAMES}'
                raise ParameterError('', 'errors', problem)
