# SPDX-License-Identifier: Apache-2.0
"""What a preintegrated scenario may be told; the defaults are those of GTSAM's page about it."""

from __future__ import annotations

import dataclasses

from sim_sensors.core.errors import ParameterError
from sim_sensors.core.parameters import Parameters, parameter


@dataclasses.dataclass(frozen=True)
class ScenarioSettings(Parameters):
    """An IMU, what is known of it, and how often it is simulated."""

    duration: float = parameter(2.0, 's', 'Time to integrate.', minimum=0.0, minimum_excluded=True)
    sample_time: float = parameter(
        0.01, 's', 'Time between samples of the IMU.', minimum=0.0, minimum_excluded=True
    )
    gravity: float = parameter(9.81, 'm/s^2', 'Gravity, downwards.', minimum=0.0)
    accelerometer_noise: float = parameter(
        0.1, 'm/s^2/sqrt(Hz)', 'Density of the white noise.', minimum=0.0
    )
    gyroscope_noise: float = parameter(
        0.01, 'rad/s/sqrt(Hz)', 'Density of the white noise.', minimum=0.0
    )
    # Square root of the page's 1e-9 m^2/s.
    integration_noise: float = parameter(
        3.1622776601683795e-05,
        'm/sqrt(s)',
        'Density of the noise of the position that the filter adds.',
        minimum=0.0,
    )
    accelerometer_walk: float | None = parameter(
        None, 'm/s^2/sqrt(s)', 'The bias walks.', optional=float, minimum=0.0
    )
    gyroscope_walk: float | None = parameter(
        None, 'rad/s/sqrt(s)', 'The bias walks.', optional=float, minimum=0.0
    )
    bias: tuple[float, ...] = parameter(
        (0.05, -0.05, 0.1, 0.01, -0.01, 0.02), '', 'True bias: 3 x m/s^2, 3 x rad/s.'
    )
    estimated_bias: tuple[float, ...] = parameter(
        (0.04, -0.04, 0.09, 0.005, -0.005, 0.015), '', 'Bias taken off every sample.'
    )
    form: str = parameter(
        'tangent',
        '',
        "How rotation is integrated; tangent is GTSAM's own.",
        choices=('tangent', 'manifold'),
    )
    runs: int = parameter(1000, '1', 'Number of Monte Carlo runs.', minimum=20)

    def _check(self) -> None:
        if self.duration < self.sample_time:
            problem = f'{self.duration:g} is not allowed; must be >= sample_time'
            raise ParameterError('', 'duration', f'{problem}, {self.sample_time:g} [s]')
