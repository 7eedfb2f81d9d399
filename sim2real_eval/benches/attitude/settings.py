# SPDX-License-Identifier: Apache-2.0
"""What the attitude filter and its simulated runs may be told, and what is allowed."""

from __future__ import annotations

import dataclasses

from sim_sensors.core.parameters import Parameters, parameter


@dataclasses.dataclass(frozen=True)
class AttitudeSettings(Parameters):
    """How the quaternion filter of [Ligorio2015] runs."""

    initial_std: float = parameter(
        0.02, 'rad', 'Of the first attitude about each axis.', minimum=1e-9, maximum=0.5
    )
    gyroscope_density: float = parameter(
        0.0,
        'rad/s/sqrt(Hz)',
        'White noise of the gyroscope; 0: as the messages state.',
        minimum=0.0,
        maximum=1e3,
    )
    accelerometer_std: float = parameter(
        0.0,
        'm/s^2',
        'White noise of an accelerometer sample; 0: as the messages state.',
        minimum=0.0,
        maximum=1e6,
    )
    acceleration_std: float = parameter(
        0.0,
        'm/s^2',
        'Added to it for the acceleration of the body, of which the filter knows nothing.',
        minimum=0.0,
        maximum=1e6,
    )
    magnetometer_std: float = parameter(
        0.0,
        'T',
        'White noise of a magnetometer sample; 0: as the messages state.',
        minimum=0.0,
        maximum=1e3,
    )
    rate: str = parameter(
        'mean',
        '',
        'Angular velocity between two samples of the gyroscope: mean: their mean; held: the '
        'first of them, as a filter has it that knows no later one.',
        choices=('mean', 'held'),
    )
    rest: float = parameter(
        0.0,
        's',
        'The body rests that long at the beginning: the mean rate of that time is taken off the '
        'gyroscope; 0: nothing is.',
        minimum=0.0,
    )
    accelerometer: bool = parameter(True, '', 'Use the accelerometer.')
    magnetometer: bool = parameter(True, '', 'Use the magnetometer, if there is one.')
    camera: bool = parameter(True, '', 'Use the poses of the camera, if there are any.')


@dataclasses.dataclass(frozen=True)
class SimulationSettings(Parameters):
    """What is simulated, where nothing recorded is given: the case study of [Ligorio2015]."""

    motion: str = parameter('swaying', '', 'Motion, as for `sim2real simulate`.')
    duration: float = parameter(
        20.0, 's', 'Duration of a run.', minimum=0.0, minimum_excluded=True
    )
    runs: int = parameter(20, '1', 'Simulated runs.', minimum=1)
    imu: str = parameter('xsens_mtx', '', 'IMU model or file.')
    mag: str = parameter('xsens_mtx', '', 'Magnetometer model or file, or none.')
    camera: str = parameter('webcam_vga', '', 'Camera model or file, or none.')
