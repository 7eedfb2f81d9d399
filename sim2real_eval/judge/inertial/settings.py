# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Parameters of the inertial judges: sensor noise, start, gates and output."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.protocol import Judge, JudgeRequest
from sim2real_eval.recording.metadata import TransformFile
from sim2real_eval.recording.recording import Recording
from sim_sensors.core.config_files import read_yaml_mapping
from sim_sensors.core.measurements import IntArray
from sim_sensors.core.parameters import Parameters, non_negative, parameter, positive
from sim_sensors.core.shipped import config_names, named_file
from sim_sensors.world.earth import EARTHS, TurningEarth, simulates_rotation
from sim_sensors.world.geodesy import STANDARD_GRAVITY, LocalFrame


@dataclasses.dataclass(frozen=True)
class Start(Parameters):
    """Parameters of the first state of an inertial judge and its uncertainty."""

    heading: str = parameter(
        'auto',
        '',
        'Source of the first heading. orientation: that of the IMU; course: course over ground of '
        'the first fixes, for a vehicle that drives forwards; unknown; auto: the first of these '
        'that is available. A heading on the command line overrides it.',
        choices=('auto', 'orientation', 'course', 'unknown'),
    )
    heading_deviation: float = parameter(
        0.1,
        'rad',
        'Standard deviation of a given heading, or of one without covariance.',
        minimum=1e-4,
    )
    course_speed: float = positive(0.5, 'm/s', 'Smallest speed at which the course is used.')
    course_deviation: float = parameter(
        0.05,
        'rad',
        'Standard deviation of the angle between course and heading (side slip, mounting).',
        minimum=1e-4,
    )
    time: float = positive(
        1.0,
        's',
        'Time over which the IMU is levelled and the initial velocity is estimated from fixes.',
    )
    speed_deviation: float = parameter(
        30.0,
        'm/s',
        'Standard deviation of the initial velocity before the second fix.',
        minimum=0.1,
    )
    still_speed: float = non_negative(
        0.2, 'm/s', 'Speed of the fixes below which the vehicle stands still.'
    )
    moving_tilt_deviation: float = parameter(
        0.1, 'rad', 'Standard deviation of roll and pitch when levelled in motion.', minimum=1e-4
    )
    gyroscope_bias_deviation: float = non_negative(
        0.01, 'rad/s', 'Standard deviation of the initial bias.'
    )
    accelerometer_bias_deviation: float = non_negative(
        0.2, 'm/s^2', 'Standard deviation of the initial bias.'
    )


@dataclasses.dataclass(frozen=True)
class Smoother(Parameters):
    """Parameters of the smoother alone."""

    loss: str = parameter(
        'huber',
        '',
        'Loss of fixes. none: quadratic; huber: linear beyond loss_width; cauchy: nearly '
        'constant beyond loss_width, and slightly reduced within.',
        choices=('none', 'huber', 'cauchy'),
    )
    loss_width: float = positive(
        3.0,
        '1',
        'Mahalanobis distance of a fix from the solution at which the loss starts. In three '
        'dimensions 3 percent of all fixes exceed 3 by chance.',
    )
    iterations: int = parameter(
        100, '1', 'Largest number of Levenberg-Marquardt iterations.', minimum=1, maximum=10000
    )


@dataclasses.dataclass(frozen=True)
class InertialSettings(Parameters):
    """Parameters of the error-state filter and of the smoother.

    Noise is given as densities, which do not depend on rates. After t seconds the integral has the
    deviation d sqrt(t) for a density d, and a bias w sqrt(t) for a bias walk w.
    """

    gyroscope_noise: float = parameter(
        0.003, 'rad/s/sqrt(Hz)', 'Density of the white noise, including vibration.', minimum=1e-9
    )
    accelerometer_noise: float = parameter(
        0.05, 'm/s^2/sqrt(Hz)', 'Density of the white noise, including vibration.', minimum=1e-9
    )
    gyroscope_bias_walk: float = non_negative(1e-4, 'rad/s/sqrt(s)', 'Random walk of the bias.')
    accelerometer_bias_walk: float = non_negative(
        0.01, 'm/s^2/sqrt(s)', 'Random walk of the bias.'
    )
    gravity: float = positive(STANDARD_GRAVITY, 'm/s^2', 'Local gravity.')
    earth: str = parameter(
        'auto',
        '',
        'rotating: rotation and curvature of the Earth are subtracted; auto: only in records of '
        '10 minutes and more with start.gyroscope_bias_deviation below 15.04 deg/h.',
        choices=EARTHS,
    )
    fix_deviation: tuple[float, float, float] = parameter(
        (1.0, 1.0, 2.0),
        'm',
        'Standard deviation of fixes without covariance (east, north, up).',
        minimum=1e-4,
    )
    least_fix_deviation: tuple[float, float, float] = parameter(
        (0.01, 0.01, 0.02),
        'm',
        'Smallest standard deviation of a fix (east, north, up).',
        minimum=1e-4,
    )
    gate: float = non_negative(
        5.0,
        '1',
        'Mahalanobis distance from which a fix is rejected; 0: no fix is rejected. In '
        'three dimensions a distance of 5 occurs by chance once in 65000 fixes.',
    )
    gate_timeout: float = non_negative(
        5.0, 's', 'Time without an accepted fix after which the next fix is accepted.'
    )
    output_frequency: float = positive(35.0, 'Hz', 'Estimates per second.', maximum=1e4)
    longest_gap: float = parameter(
        0.1, 's', 'Longest gap between IMU messages without additional noise.', minimum=1e-3
    )
    gap_rate: float = non_negative(
        0.3, 'rad/s', 'Standard deviation of the interpolation error in a gap.'
    )
    gap_acceleration: float = non_negative(
        1.0, 'm/s^2', 'Standard deviation of the interpolation error in a gap.'
    )
    lateral_deviation: float = non_negative(
        0.0,
        'm/s',
        'If > 0, base_link moves along its x axis; standard deviation of its lateral speed.',
    )
    vertical_deviation: float = non_negative(
        0.0, 'm/s', 'If > 0, standard deviation of the speed of base_link along its z axis.'
    )
    vehicle_frequency: float = positive(10.0, 'Hz', 'Rate of these two constraints.', maximum=1e3)
    base_link_frame: str = parameter('base_link', '', 'Frame whose motion is estimated.')
    start: Start = dataclasses.field(default_factory=Start)
    smoother: Smoother = dataclasses.field(default_factory=Smoother)

    def turning_earth(self, origin: LocalFrame, imu_ns: IntArray) -> TurningEarth | None:
        """Return rotation and curvature of the Earth about an origin; None for a flat one.

        `imu_ns` are the stamps of the IMU.
        """
        duration = float(imu_ns[-1] - imu_ns[0]) * 1e-9
        if simulates_rotation(self.earth, self.start.gyroscope_bias_deviation, duration):
            return TurningEarth.from_frame(origin, self.gravity)
        return None

    @classmethod
    def load(cls, name_or_path: str | Path = 'default') -> tuple[InertialSettings, Path]:
        """Read shipped settings by name, or a YAML file; return them and the file's path.

        Raises
        ------
        ParameterError
            When there are no such settings, or the file is invalid.
        """
        hint = ''
        if str(name_or_path) in config_names('judge'):
            hint = (
                f'; {name_or_path} is a profile of ekf_node: leave --config out, or name '
                'inertial settings'
            )
        names = config_names('inertial')
        path = named_file(name_or_path, 'inertial', names, 'inertial settings', hint)
        return cls.from_mapping(read_yaml_mapping(path), str(path)), path


JudgeType = TypeVar('JudgeType', bound='InertialJudge')


@dataclasses.dataclass(frozen=True, eq=False)
class InertialJudge(Judge):
    """A judge with inertial settings; see `sim2real_eval.judge.protocol.Judge`.

    Attributes
    ----------
    name : str
        Name for reports.
    files : tuple of Path
        Files that its parameters came from.
    parameters : InertialSettings
    transforms : TransformFile or None
        Transforms that replace or complete those of a recording.
    """

    kind: ClassVar[str]
    """Its name on the command line."""

    name: str
    files: tuple[Path, ...]
    parameters: InertialSettings
    transforms: TransformFile | None = None

    @classmethod
    def load(
        cls: type[JudgeType],
        config: str | Path | None = None,
        transforms: TransformFile | None = None,
    ) -> JudgeType:
        """Return the judge with shipped settings by name, settings of a file, or default settings.

        Raises
        ------
        ParameterError
            When there are no such settings, or the file is invalid.
        """
        parameters, path = InertialSettings.load('default' if config is None else config)
        name = cls.kind if config is None else f'{cls.kind} ({config})'
        return cls(name, (path,), parameters, transforms)

    @classmethod
    def from_request(cls, request: JudgeRequest) -> Judge:
        """Return the judge; see `sim2real_eval.judge.protocol.load_judge`."""
        return cls.load(request.config, request.transforms)

    @property
    def base_link_frame(self) -> str:
        """Frame whose motion is estimated."""
        return self.parameters.base_link_frame

    def with_parameters(self: JudgeType, parameters: InertialSettings) -> JudgeType:
        """Return the judge with other parameters."""
        return dataclasses.replace(self, parameters=parameters)

    def settings(self) -> Mapping[str, Any]:
        """Return the settings behind a result, besides the files, as JSON values."""
        values: dict[str, Any] = {'inertial': self.parameters.to_mapping()}
        if self.transforms is not None:
            values['transforms'] = self.transforms.settings()
        return values

    @abc.abstractmethod
    def judge(
        self,
        recording: Recording,
        *,
        start_ns: int | None = None,
        start_heading: float | None = None,
    ) -> JudgedRun:
        """Judge a recording.

        Parameters
        ----------
        recording : Recording
            With imu and gps.
        start_ns : int or None
            Origin of the grid of estimates; earlier messages are ignored. None is the first usable
            fix.
        start_heading : float or None
            Yaw at the first usable fix, radians from east, to `start.heading_deviation`.

        Raises
        ------
        Sim2RealError
            When the recording lacks what the judge needs.
        """
