# SPDX-License-Identifier: Apache-2.0
"""Options of the benches, with their ranges."""

from __future__ import annotations

import dataclasses

from sim_sensors.core.errors import ParameterError
from sim_sensors.core.parameters import Parameters, non_negative, parameter, rare


@dataclasses.dataclass(frozen=True)
class AttitudeSettings(Parameters):
    """Settings of the quaternion filter of [Ligorio2015]."""

    initial_std: float = parameter(
        0.02,
        'rad',
        'Standard deviation of the first attitude about each axis.',
        minimum=1e-9,
        maximum=0.5,
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
        'Angular velocity between two samples of the gyroscope. mean: their mean; held: the '
        'first one, for a filter without later samples.',
        choices=('mean', 'held'),
    )
    rest: float = non_negative(
        0.0,
        's',
        'Time at the beginning during which the body rests. The mean rate of that time is '
        'subtracted from the gyroscope; 0: nothing is.',
    )
    accelerometer: bool = parameter(True, '', 'Use the accelerometer.')
    magnetometer: bool = parameter(True, '', 'Use the magnetometer, if there is one.')
    camera: bool = parameter(True, '', 'Use the poses of the camera, if there are any.')


@dataclasses.dataclass(frozen=True)
class SimulationSettings(Parameters):
    """Simulated case study of [Ligorio2015], for attitude without a recording."""

    motion: str = parameter('swaying', '', 'Motion, as for `sim2real simulate`.')
    duration: float = parameter(20.0, 's', 'Duration of a run.', above=0.0)
    runs: int = parameter(20, '1', 'Simulated runs.', minimum=1)
    imu: str = parameter('xsens_mtx', '', 'IMU model or file.')
    mag: str = parameter('xsens_mtx', '', 'Magnetometer model or file, or none.')
    camera: str = parameter('webcam_vga', '', 'Camera model or file, or none.')


@dataclasses.dataclass(frozen=True)
class ScenarioSettings(Parameters):
    """IMU, estimated bias and number of runs of a preintegration scenario."""

    duration: float = parameter(2.0, 's', 'Time to integrate.', above=0.0)
    sample_time: float = parameter(0.01, 's', 'Time between samples of the IMU.', above=0.0)
    gravity: float = non_negative(9.81, 'm/s^2', 'Gravity, downwards.')
    accelerometer_noise: float = non_negative(0.1, 'm/s^2/sqrt(Hz)', 'Density of the white noise.')
    gyroscope_noise: float = non_negative(0.01, 'rad/s/sqrt(Hz)', 'Density of the white noise.')
    # Square root of the 1e-9 m^2/s of GTSAM's example.
    integration_noise: float = rare(
        3.1622776601683795e-05,
        'm/sqrt(s)',
        'Density of the noise of the position that the filter adds.',
        minimum=0.0,
    )
    accelerometer_walk: float | None = non_negative(
        None, 'm/s^2/sqrt(s)', 'Random walk of the bias.', optional=float
    )
    gyroscope_walk: float | None = non_negative(
        None, 'rad/s/sqrt(s)', 'Random walk of the bias.', optional=float
    )
    bias: tuple[float, ...] = rare(
        (0.05, -0.05, 0.1, 0.01, -0.01, 0.02), '', 'True bias: 3 x m/s^2, 3 x rad/s.'
    )
    estimated_bias: tuple[float, ...] = rare(
        (0.04, -0.04, 0.09, 0.005, -0.005, 0.015), '', 'Bias subtracted from every sample.'
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


RMS_UNITS = {'speed': 'm/s', 'position': 'm', 'heading': 'rad'}
"""Units of the losses that are root mean square errors; their gains are shares of the start."""

SCORES = ('nees', 'likelihood')
"""Losses that include the stated covariance: minus the logarithm of the probability density of
the true position, heading and velocity, or of the next measurement, up to a constant."""

LOSSES = (*RMS_UNITS, *SCORES)

LEAST_BLOCKS = 6
"""With fewer blocks, an interval of 95 % has no ends."""


@dataclasses.dataclass(frozen=True)
class TuneOptions(Parameters):
    """Options of `sim2real tune`."""

    objective: str | None = parameter(
        None,
        '',
        'Loss that is minimised: the error of speed, position or heading; nees, which includes '
        'the stated covariance; or minus the likelihood of the innovations, which needs no '
        'truth (default: speed with truth, else likelihood).',
        optional=str,
        choices=LOSSES,
    )
    parameters: str | None = parameter(
        None,
        '',
        'Parameters that are tuned, by comma: noise (process noise by block), gates, inputs '
        '(which inputs and components), heading (yaw_offset), covariance (a factor by topic), '
        'all, or single names such as process_noise_covariance.velocity (default: noise, or all '
        'that another --judge declares).',
        optional=str,
    )
    blocks: int = parameter(
        10,
        '1',
        'Blocks of recordings, each held out once; whole drives if there are enough of them.',
        minimum=LEAST_BLOCKS,
        maximum=1000,
    )
    warmup: float = non_negative(
        5.0, 's', 'Beginning of each recording that does not count.', maximum=1e6
    )
    level: float = parameter(0.95, '1', 'Level of the intervals.', minimum=0.5, maximum=0.999)


def format_gain(loss: str, gain: float) -> str:
    """Return a gain as text: per cent of an error, or the difference of scores.

    Examples
    --------
    >>> format_gain('speed', 0.25), format_gain('likelihood', 0.25)
    ('25.0 %', '0.250')
    """
    return f'{100.0 * gain:.1f} %' if loss in RMS_UNITS else f'{gain:.3f}'


INJECTED_ERRORS = (
    'gps_noise', 'gps_delay', 'lever_arm', 'gyro_bias', 'gyro_scale', 'accelerometer_bias',
    'imu_delay', 'heading',
)  # fmt: skip
"""Names of the errors that can be injected; see `sim2real_eval.benches.sensitivity`."""

_NAMES = ', '.join(INJECTED_ERRORS)

LEVEL = 0.05
"""Level of the permutation test of `sim2real sensitivity`."""


@dataclasses.dataclass(frozen=True)
class SensitivityOptions(Parameters):
    """Options of `sim2real sensitivity`."""

    errors: str = parameter('all', '', f'Errors that are injected, by comma: all, or of {_NAMES}.')
    gps: str | None = parameter(
        None,
        '',
        'GPS model that is simulated with and without errors: a preset, a YAML file or stand_in. '
        'Without a GPS or IMU model, recordings keep their own sensors.',
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
        minimum=4,
        maximum=1000,
    )
    trials: int = rare(
        1000, '1', 'Comparisons from which the power of each size is counted.', minimum=200
    )
    permutations: int = rare(1000, '1', 'Permutations of each comparison.', minimum=200)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the injected errors."""
        names = [name.strip() for name in self.errors.split(',')]
        return tuple(name for name in INJECTED_ERRORS if name in names or 'all' in names)

    def _check(self) -> None:
        for name in self.errors.split(','):
            if name.strip() not in ('all', *INJECTED_ERRORS):
                problem = f'{name.strip()!r} is not allowed; must be all, or of {_NAMES}'
                raise ParameterError('', 'errors', problem)
