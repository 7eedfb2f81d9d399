# SPDX-License-Identifier: Apache-2.0
"""Parameters of the inertial judges: noise of the sensors, how they start, what they refuse."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.protocol import Judge, JudgeRequest
from sim2real_eval.recording.frames import TransformFile
from sim2real_eval.recording.recording import Recording
from sim_sensors.core.config_files import read_yaml_mapping
from sim_sensors.core.measurements import IntArray
from sim_sensors.core.parameters import Parameters, non_negative, parameter, positive
from sim_sensors.core.shipped import config_names, named_file
from sim_sensors.world.earth import EARTHS, TurningEarth, turns
from sim_sensors.world.geodesy import STANDARD_GRAVITY, LocalFrame


@dataclasses.dataclass(frozen=True)
class Start(Parameters):
    """How an inertial judge finds its first state, and its uncertainty."""

    heading: str = parameter(
        'auto',
        '',
        'Where the first heading is from: the orientation of the IMU; course: that over ground of '
        'the first fixes, which takes the vehicle to drive forwards; unknown; auto: the first of '
        'these that there is. A heading given on the command line goes before.',
        choices=('auto', 'orientation', 'course', 'unknown'),
    )
    heading_deviation: float = parameter(
        0.1, 'rad', 'Of a heading given, or of one without covariance.', minimum=1e-4
    )
    course_speed: float = positive(0.5, 'm/s', 'Speed from which on the course counts.')
    course_deviation: float = parameter(
        0.05, 'rad', 'Angle between course and heading (slip, mounting).', minimum=1e-4
    )
    time: float = positive(
        1.0, 's', 'Time in which the IMU is levelled and the fixes give the first velocity.'
    )
    speed_deviation: float = parameter(
        30.0, 'm/s', 'Of the first velocity, before any fix tells it.', minimum=0.1
    )
    still_speed: float = non_negative(
        0.2, 'm/s', 'Speed of the fixes below which the vehicle counts as standing.'
    )
    moving_tilt_deviation: float = parameter(
        0.1, 'rad', 'Of roll and pitch when levelled in motion.', minimum=1e-4
    )
    gyroscope_bias_deviation: float = non_negative(0.01, 'rad/s', 'Of the first bias.')
    accelerometer_bias_deviation: float = non_negative(0.2, 'm/s^2', 'Of the first bias.')


@dataclasses.dataclass(frozen=True)
class Smoother(Parameters):
    """What only the smoother needs."""

    loss: str = parameter(
        'huber',
        '',
        'How fixes beyond loss_width count: none, as all others; huber, by their distance; '
        'cauchy, hardly, and already those within count a little less.',
        choices=('none', 'huber', 'cauchy'),
    )
    loss_width: float = positive(
        3.0,
        '1',
        'Mahalanobis distance of a fix from the solution at which the loss sets in. In three '
        'dimensions 3 per cent of all fixes are beyond 3 by chance.',
    )
    iterations: int = parameter(
        100, '1', 'Most that Levenberg and Marquardt may take.', minimum=1, maximum=10000
    )


@dataclasses.dataclass(frozen=True)
class InertialSettings(Parameters):
    """Parameters of the error-state filter and of the smoother.

    Noise is given as densities, so that nothing depends on rates: a density d makes the integral
    over t seconds uncertain by d sqrt(t), and a bias walk w the bias by w sqrt(t).
    """

    gyroscope_noise: float = parameter(
        0.003, 'rad/s/sqrt(Hz)', 'White noise, vibration included.', minimum=1e-9
    )
    accelerometer_noise: float = parameter(
        0.05, 'm/s^2/sqrt(Hz)', 'White noise, vibration included.', minimum=1e-9
    )
    gyroscope_bias_walk: float = non_negative(1e-4, 'rad/s/sqrt(s)', 'Random walk of the bias.')
    accelerometer_bias_walk: float = non_negative(
        0.01, 'm/s^2/sqrt(s)', 'Random walk of the bias.'
    )
    gravity: float = positive(STANDARD_GRAVITY, 'm/s^2', 'Of the place.')
    earth: str = parameter(
        'auto',
        '',
        'rotating: rotation and curvature of the Earth are taken off; auto: they are in records '
        'of 10 minutes and more, where start.gyroscope_bias_deviation is below 15.04 deg/h.',
        choices=EARTHS,
    )
    fix_deviation: tuple[float, float, float] = parameter(
        (1.0, 1.0, 2.0), 'm', 'Of fixes that state no covariance (east, north, up).', minimum=1e-4
    )
    least_fix_deviation: tuple[float, float, float] = parameter(
        (0.01, 0.01, 0.02), 'm', 'No fix is taken to be better (east, north, up).', minimum=1e-4
    )
    gate: float = non_negative(
        5.0,
        '1',
        'Mahalanobis distance from which on a fix is refused; 0: none is. In three dimensions a '
        'distance of 5 comes by chance once in 65000 fixes.',
    )
    gate_timeout: float = non_negative(
        5.0, 's', 'After so long without an accepted fix the next one is taken.'
    )
    output_frequency: float = positive(35.0, 'Hz', 'Estimates per second.', maximum=1e4)
    longest_gap: float = parameter(
        0.1, 's', 'A longer gap between IMU messages is bridged by a line.', minimum=1e-3
    )
    gap_rate: float = non_negative(0.3, 'rad/s', 'Error of the line in a gap.')
    gap_acceleration: float = non_negative(1.0, 'm/s^2', 'Error of the line in a gap.')
    lateral_deviation: float = non_negative(
        0.0,
        'm/s',
        'When > 0, base_link is held to move along its x axis: deviation of its lateral speed.',
    )
    vertical_deviation: float = non_negative(
        0.0, 'm/s', 'When > 0, the same of its speed along its z axis.'
    )
    vehicle_frequency: float = positive(10.0, 'Hz', 'How often these two hold it.', maximum=1e3)
    base_link_frame: str = parameter('base_link', '', 'Frame whose motion is estimated.')
    start: Start = dataclasses.field(default_factory=Start)
    smoother: Smoother = dataclasses.field(default_factory=Smoother)

    def turning_earth(self, origin: LocalFrame, imu_ns: IntArray) -> TurningEarth | None:
        """Return rotation and curvature of the Earth about an origin; None for a flat one.

        `imu_ns` are the stamps of the IMU.
        """
        duration = float(imu_ns[-1] - imu_ns[0]) * 1e-9
        if turns(self.earth, self.start.gyroscope_bias_deviation, duration):
            return TurningEarth.from_frame(origin, self.gravity)
        return None

    @classmethod
    def load(cls, name_or_path: str | Path = 'default') -> tuple[InertialSettings, Path]:
        """Read shipped settings by name, or a YAML file; return them and the file's path.

        Raises
        ------
        ParameterError
            When there are no such settings, or the file is wrong.
        """
        hint = ''
        if str(name_or_path) in config_names('judge'):
            hint = (
                f'; {name_or_path} is a profile of ekf_node: leave --config out, or name '
                'inertial settings'
            )
        known = config_names('inertial')
        path = named_file(name_or_path, 'inertial', known, 'inertial settings', hint)
        return cls.from_mapping(read_yaml_mapping(path), str(path)), path


Made = TypeVar('Made', bound='InertialJudge')


@dataclasses.dataclass(frozen=True, eq=False)
class InertialJudge(abc.ABC):
    """A judge with inertial settings; see `sim2real_eval.judge.protocol.Judge`.

    Attributes
    ----------
    name : str
        What the user calls it.
    files : tuple of Path
        Files that its parameters came from.
    parameters : InertialSettings
    transforms : TransformFile or None
        What replaces or completes a recording's own.
    """

    kind: ClassVar[str]
    """Its name on the command line."""

    name: str
    files: tuple[Path, ...]
    parameters: InertialSettings
    transforms: TransformFile | None = None

    @classmethod
    def load(
        cls: type[Made], config: str | Path | None = None, transforms: TransformFile | None = None
    ) -> Made:
        """Return the judge with shipped settings by name, those of a file, or the default ones.

        Raises
        ------
        ParameterError
            When there are no such settings, or the file is wrong.
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

    def with_parameters(self: Made, parameters: InertialSettings) -> Made:
        """Return the judge with other parameters."""
        return dataclasses.replace(self, parameters=parameters)

    def settings(self) -> Mapping[str, Any]:
        """Return what made the result beside the files, as plain values."""
        told: dict[str, Any] = {'inertial': self.parameters.to_mapping()}
        if self.transforms is not None:
            told['transforms'] = self.transforms.settings()
        return told

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
            Origin of the grid of estimates; messages before are left out. None: first usable fix.
        start_heading : float or None
            Yaw at the first usable fix, radians from east, to `start.heading_deviation`.

        Raises
        ------
        Sim2RealError
            When the recording lacks what the judge needs.
        """
