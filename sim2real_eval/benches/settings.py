# SPDX-License-Identifier: Apache-2.0
"""What the benches of attitude and preintegration may be told, and what is allowed."""

from __future__ import annotations

import dataclasses

from sim_sensors.core.errors import ParameterError
from sim_sensors.core.parameters import Parameters, non_negative, parameter, rare


@dataclasses.dataclass(frozen=True)
class AttitudeSettings(Parameters):
    """How the quaternion filter of [Ligorio2015] runs."""

    initial_std: float = parameter(
        0.02, 'rad', 'Of the first attitude about each axis.', minimum=1e-9, maximum=0.5
    )
    gyroscope_density: float = non_negative(
        0.0,
        'rad/s/sqrt(Hz)',
        'White noise of the gyroscope; 0: as the messages state.',
        maximum=1e3,
    )
    accelerometer_std: float = non_negative(
        0.0,
        'm/s^2',
        'White noise of an accelerometer sample; 0: as the messages state.',
        maximum=1e6,
    )
    acceleration_std: float = non_negative(
        0.0,
        'm/s^2',
        'Added to it for the acceleration of the body, which the filter does not know.',
        maximum=1e6,
    )
    magnetometer_std: float = non_negative(
        0.0, 'T', 'White noise of a magnetometer sample; 0: as the messages state.', maximum=1e3
    )
    rate: str = parameter(
        'mean',
        '',
        'Angular velocity between two samples of the gyroscope: mean: their mean; held: the '
        'first of them, as a filter has it that knows no later one.',
        choices=('mean', 'held'),
    )
    rest: float = non_negative(
        0.0,
        's',
        'The body rests that long at the beginning: the mean rate of that time is taken off the '
        'gyroscope; 0: nothing is.',
    )
    accelerometer: bool = parameter(True, '', 'Use the accelerometer.')
    magnetometer: bool = parameter(True, '', 'Use the magnetometer, if there is one.')
    camera: bool = parameter(True, '', 'Use the poses of the camera, if there are any.')


@dataclasses.dataclass(frozen=True)
class SimulationSettings(Parameters):
    """What is simulated, where nothing recorded is given: the case study of [Ligorio2015]."""

    motion: str = parameter('swaying', '', 'Motion, as for `sim2real simulate`.')
    duration: float = parameter(20.0, 's', 'Duration of a run.', above=0.0)
    runs: int = parameter(20, '1', 'Simulated runs.', minimum=1)
    imu: str = parameter('xsens_mtx', '', 'IMU model or file.')
    mag: str = parameter('xsens_mtx', '', 'Magnetometer model or file, or none.')
    camera: str = parameter('webcam_vga', '', 'Camera model or file, or none.')


@dataclasses.dataclass(frozen=True)
class ScenarioSettings(Parameters):
    """An IMU, what is known of it, and how often it is simulated."""

    duration: float = parameter(2.0, 's', 'Time to integrate.', above=0.0)
    sample_time: float = parameter(0.01, 's', 'Time between samples of the IMU.', above=0.0)
    gravity: float = non_negative(9.81, 'm/s^2', 'Gravity, downwards.')
    accelerometer_noise: float = non_negative(0.1, 'm/s^2/sqrt(Hz)', 'Density of the white noise.')
    gyroscope_noise: float = non_negative(0.01, 'rad/s/sqrt(Hz)', 'Density of the white noise.')
    # Square root of the page's 1e-9 m^2/s.
    integration_noise: float = rare(
        3.1622776601683795e-05,
        'm/sqrt(s)',
        'Density of the noise of the position that the filter adds.',
        minimum=0.0,
    )
    accelerometer_walk: float | None = non_negative(
        None, 'm/s^2/sqrt(s)', 'The bias walks.', optional=float
    )
    gyroscope_walk: float | None = non_negative(
        None, 'rad/s/sqrt(s)', 'The bias walks.', optional=float
    )
    bias: tuple[float, ...] = rare(
        (0.05, -0.05, 0.1, 0.01, -0.01, 0.02), '', 'True bias: 3 x m/s^2, 3 x rad/s.'
    )
    estimated_bias: tuple[float, ...] = rare(
        (0.04, -0.04, 0.09, 0.005, -0.005, 0.015), '', 'Bias taken off every sample.'
    )
    form: str = rare(
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
