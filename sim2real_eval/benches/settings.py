# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Options and findings of the benches."""

from __future__ import annotations

import dataclasses

from sim2real_eval.common.findings import assumed, decisive, routine
from sim2real_eval.study.options import RMS_UNITS
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
        'Density of the white noise of the gyroscope; 0: from the covariances of the messages.',
        maximum=1e3,
    )
    accelerometer_std: float = non_negative(
        0.0,
        'm/s^2',
        'Standard deviation of an accelerometer sample; 0: from the covariances of the messages.',
        maximum=1e6,
    )
    acceleration_std: float = non_negative(
        0.0,
        'm/s^2',
        'Standard deviation added for the unknown acceleration of the body.',
        maximum=1e6,
    )
    magnetometer_std: float = non_negative(
        0.0,
        'T',
        'Standard deviation of a magnetometer sample; 0: from the covariances of the messages.',
        maximum=1e3,
    )
    rate: str = parameter(
        'mean',
        '',
        'Angular velocity between two gyroscope samples. mean: the mean of both; held: '
        'that of the first, as in a filter that does not wait for the second.',
        choices=('mean', 'held'),
    )
    rest: float = non_negative(
        0.0,
        's',
        'Time at rest at the beginning. The mean angular velocity during that time is '
        'subtracted from the gyroscope; 0: no subtraction.',
    )
    accelerometer: bool = parameter(True, '', 'Use the accelerometer.')
    magnetometer: bool = parameter(True, '', 'Use the magnetometer, if the recording has one.')
    camera: bool = parameter(True, '', 'Use the poses of the camera, if the recording has them.')


@dataclasses.dataclass(frozen=True)
class SimulationSettings(Parameters):
    """Simulated case study of [Ligorio2015], for attitude without a recording."""

    motion: str = parameter('hand_held', '', 'Motion, as for `sim2real simulate`.')
    duration: float = parameter(20.0, 's', 'Duration of a run.', above=0.0)
    runs: int = parameter(20, '1', 'Simulated runs.', minimum=1)
    imu: str = parameter('xsens_mtx', '', 'IMU: name or file.')
    mag: str = parameter('xsens_mtx', '', 'Magnetometer: none, name or file.')
    camera: str = parameter('webcam_vga', '', 'Camera: none, name or file.')


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
    noise: str = parameter(
        'seeded',
        '',
        "Random numbers: by --seed, or those of GTSAM's ScenarioRunner on Linux or on macOS.",
        choices=('seeded', 'gtsam', 'gtsam_macos'),
    )
    runs: int = parameter(1000, '1', 'Number of Monte Carlo runs.', minimum=20)

    def _check(self) -> None:
        if self.duration < self.sample_time:
            problem = f'{self.duration:g} is not allowed; must be >= sample_time'
            raise ParameterError('', 'duration', f'{problem}, {self.sample_time:g} [s]')


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
        'GPS that is simulated with and without errors: real, a name, a file or stand_in '
        '(default: real with recordings if no other sensor is named, otherwise stand_in).',
        optional=str,
    )
    imu: str | None = parameter(None, '', 'IMU, as for the GPS.', optional=str)
    runs: int = parameter(
        4, '1', 'Simulated drives per scenario, where no recordings are given.', minimum=2
    )
    power: float = parameter(
        0.8, '1', 'Required share of studies that reveal the error.', minimum=0.2, maximum=0.99
    )
    draws: int = parameter(
        30,
        '1',
        'Simulated runs per recording and error size, compared in pairs. More runs give '
        'narrower intervals.',
        minimum=4,
        maximum=1000,
    )
    trials: int = rare(
        1000, '1', 'Comparisons that determine the power of each size.', minimum=200
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


WAYPOINTS = routine(
    'waypoints.repaired', '{problem!s}', 'Waypoints that no vehicle can follow are left out.'
)


BLIND = decisive(
    'wheels.no_pose',
    'the camera gave no pose for up to {longest:.3g s} of {duration:.3g s}: for this time only '
    'the wheels are used, also in the columns "with"',
    'The results with and without the camera differ less than they could.',
    'place more tags, or choose another motion',
)
UNEVEN = routine(
    'wheels.uneven_ground',
    'the motion rises and falls by {height:.3g m} and tilts by up to {tilt:.3g degrees}, but '
    'wheels and judge assume level ground: even perfect wheels are {error:.2g m} rms off in x, y',
    'Wheel odometry measures the way along the ground, not its projection on the plane.',
)


SENSOR_OFF = decisive(
    'attitude.sensor_off',
    'mean error over {span:.3g s} is {error!s}, but the stated noise explains only '
    '{explained:.2g}. Possible causes: {causes}. White noise of {noise:.1g} would explain it',
    'The filter is overconfident because of this sensor.',
    '{action}',
)
NO_SUSPECT = routine(
    'attitude.no_suspect',
    'NEES is {ratio:.2f} times its expectation, although each sensor agrees with its stated noise',
    'The cause is not a single sensor.',
    'check the initial attitude (--initial-std), the stated covariances, and --between-samples '
    'held',
)
SAME_FRAME = assumed(
    'attitude.same_orientation',
    'without static transforms, {frames} assumed to have the same orientation as {reference}',
    'An unknown rotation between the frames becomes an error of the attitude.',
    'give the rotation of each frame: `transforms: [{{parent: base_link, child: FRAME, '
    'rotation_xyzw: [X, Y, Z, W]}}]` in recording.yaml',
)
CAMERA_FRAME = assumed(
    'attitude.camera_frame',
    'the poses of the camera are in {camera}, the truth in {truth}: assumed to be the same frame',
    'A rotation between the two frames becomes an error of the attitude.',
)


SMALLEST = decisive(
    'sensitivity.smallest',
    'detects {noun} from {size:.2g} {unit} on (95 % interval {low:.2g} to {high:.2g}), '
    'in {runs:d} runs at {power:g %} power',
    'Smaller errors of a sensor model stay undetected in most studies with this judge '
    'and number of runs.',
)
JUMP = decisive(
    'sensitivity.jump',
    'detects {noun} of {size:.3g} {unit} with {after:.0f %} power in {runs:d} runs, '
    'but {low:.3g} {unit} with {before:.0f %}: the power jumps across {power:g %}',
    'A gate or timeout may begin to refuse messages there. No size has the required power.',
)
UNSEEN = decisive(
    'sensitivity.unseen',
    'does not detect {noun} of {most:.2g} {unit} in {runs:d} runs: {found:.0f %} '
    'power, less than {power:g %}',
    'The judge does not use this measurement, rejects it, or relies on better ones.',
    'do not conclude from its VEPD that a model has no such error',
)
AT_ONCE = assumed(
    'sensitivity.at_once',
    'detects {noun} of {least:.2g} {unit}, the smallest size that was tried',
    'The smallest detectable error is below the sizes that were tried.',
)
NOT_THERE = assumed(
    'sensitivity.not_there',
    '{noun} cannot be injected: the messages do not hold the quantity',
    'It is unknown whether the judge would detect this error.',
    'give sensors that publish it',
)
SAME_BLOCKS = assumed(
    'sensitivity.same_blocks',
    '{recordings:d} recordings are parts of {drives:d} {noun}, but count as independent: the '
    'sizes hold for these drives, not for others',
    'A study resamples the recordings of a drive or block together, and detects less.',
    'use recordings of more drives, with more than a minute between them',
)


BETTER = decisive(
    'tune.better',
    '{changed:d} of {tried:d} parameters changed: {error} is better by {gain:.3g}{unit} on '
    'held-out blocks of recordings ({level:g} % interval {low:.3g} to {high:.3g}{unit})',
    'The tuned file is better on recordings that it was not tuned to.',
)
UNCHANGED = decisive(
    'tune.unchanged',
    'none of {tried:d} parameters changed: {reason}',
    'The tuned file is the given one.',
    'use more recordings, or try other or fewer --parameters',
)
OVER_FITS = assumed(
    'tune.over_fits',
    'gain is {training} on the recordings of the search, but {gain} on held-out '
    'blocks: the difference is over-fitting',
    'The values are fitted to the noise of these recordings.',
    'use more recordings, or fewer --parameters',
)
AT_BOUND = assumed(
    'tune.at_bound',
    '{value} is a bound of the search',
    'The best value may be beyond this bound.',
    'tune again from the tuned file',
)
SAME_DRIVES = assumed(
    'tune.same_drives',
    '{blocks:d} blocks are parts of {drives:d} {noun}: the interval is valid for more of the '
    'same, not for other drives',
    'Recordings that follow each other are one drive. They share place, weather and mounting, '
    'which are never held out.',
    'use recordings of more drives, or hold out other drives with --test',
)
TRUE_HEADING = assumed(
    'tune.true_heading',
    'the filter starts each recording with the true heading, because the IMU has no orientation',
    'On the robot the filter must find its heading first.',
)
HEADING_OFF = assumed(
    'tune.heading_off',
    'with the tuned parameters the mean heading error is {error:.0f deg}',
    'No noise parameter corrects this: the inputs do not show which way the robot points.',
    'fuse an orientation, or fuse a lateral speed of zero where the robot cannot move sideways',
)
NO_PARAMETER = assumed(
    'tune.no_parameter',
    'robot_localization has no parameter for the covariances of a topic',
    'The embedded judge takes the factor from case.yaml (--case). The nodes do not.',
    'multiply the covariance by {factor:.3g} in the program that publishes the topic',
)
NODE_AGREES = routine(
    'tune.node_agrees',
    'the node reproduces the speeds of the search: the largest of {count:d} differences is '
    '{difference:.1g} m/s',
    'The tuned file has the same effect on the robot.',
)
NODE_DIFFERS = assumed(
    'tune.node_differs',
    'the node does not reproduce the speeds of the search: {problem}',
    'The gain was measured with the embedded filter and may differ for the node.',
    'judge the recordings with --judge robot_localization and the tuned file',
)
