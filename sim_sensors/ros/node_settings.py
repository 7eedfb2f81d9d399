# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Parameters of the nodes besides those of their models; needs no ROS."""

from __future__ import annotations

import dataclasses
from typing import Any

from sim_sensors.core.errors import ParameterError
from sim_sensors.core.parameters import Parameters, non_negative, parameter
from sim_sensors.core.seeding import run_label
from sim_sensors.core.shared_parameters import Axes, axes
from sim_sensors.following.tracking import INTERPOLATIONS, TRACKERS
from sim_sensors.motion.motions import START_NS
from sim_sensors.world.geodesy import DEFAULT_ORIGIN, STANDARD_GRAVITY, LocalFrame

# builtin_interfaces/Time has 32 bits for the seconds.
_LATEST_NS = float((2**31 - 1) * 10**9)


def setting(default: Any, unit: str, doc: str, **bounds: Any) -> Any:
    """Declare a parameter that a node reads only at its start; see `parameter`."""
    return parameter(default, unit, doc, read_only=True, **bounds)


def diagnostics_period() -> Any:
    """Declare the period of the diagnostics."""
    return setting(1.0, 's', 'Wall-time period of the diagnostics.', minimum=0.01, maximum=1e6)


def frame_prefix() -> Any:
    """Declare the prefix of frames, named as that of robot_state_publisher."""
    return setting('', '', 'Prefix of all frame ids, such as robot1/.')


@dataclasses.dataclass(frozen=True)
class SensorSettings(Parameters):
    """Parameters that all sensor nodes have."""

    model: str = setting(
        '', '', 'Sensor model: a preset, the path of a YAML file, or a class, my_model.py:MyModel.'
    )
    seed: int = setting(0, '1', 'Seed of the random numbers.', minimum=0)
    run: str = setting(
        run_label('recording', 1, 'run_1'),
        '',
        'Label of the run; each label draws different noise.',
    )
    sensor: str = setting('', '', 'Label of the sensor; each label draws different noise.')
    velocity: str = setting(
        'twist',
        '',
        'Source of the velocity: the twist of the odometry, or the derivative of its position.',
        choices=('twist', 'position'),
    )
    gap_factor: float = setting(
        1.8,
        '1',
        'An odometry interval longer than this many median intervals is reported as a gap.',
        above=1.0,
    )
    longest_gap: float = setting(
        60.0,
        's',
        'Longest gap that is interpolated; after a longer gap the sensor restarts.',
        above=0.0,
        maximum=1e6,
    )
    start_ns: int = setting(
        0,
        'ns',
        'First stamp of the sensor; stamps before the first odometry are left out. '
        '0: the stamp of the first odometry.',
        minimum=0.0,
    )
    faults_file: str = setting(
        '', '', 'YAML file of faults and their times; see docs/howto/faults.md.'
    )
    autostart: bool = setting(
        True, '', 'Configure and activate the node when it starts; false: a manager does.'
    )
    frame_prefix: str = frame_prefix()
    diagnostics_period: float = diagnostics_period()

    def surroundings(self) -> dict[str, Any]:
        """Return the properties of the world that `start` of a model takes, by keyword."""
        return {}

    def topic(self, model: Any) -> str:
        """Return the relative topic of the measurements of a model."""
        return str(model.topic)


@dataclasses.dataclass(frozen=True)
class NoiseFreeSettings(Parameters):
    """Measurement of the output of a noise-free sensor of the same kind."""

    enabled: bool = setting(
        False,
        '',
        "Measure the output of the simulator's noise-free sensor on ground_truth/imu, "
        'ground_truth/fix or ground_truth/mag instead of the odometry.',
    )
    lever_arm: Axes = axes('m', 'Position of the noise-free sensor in the body.', read_only=True)
    mounting_rpy: Axes = axes(
        'rad',
        'Rotation of the noise-free sensor in the body: roll, pitch, yaw about fixed axes.',
        read_only=True,
    )


@dataclasses.dataclass(frozen=True)
class ImuSettings(SensorSettings):
    """Parameters of an IMU node."""

    noise_free: NoiseFreeSettings = dataclasses.field(default_factory=NoiseFreeSettings)

    gravity: float = non_negative(STANDARD_GRAVITY, 'm/s^2', 'Gravity of the simulated world.')
    data_raw: bool = setting(
        False,
        '',
        'Publish on imu/data_raw instead of imu/data if the model has no orientation (REP 145).',
    )

    def surroundings(self) -> dict[str, Any]:
        """Return the gravity."""
        return {'gravity': self.gravity}

    def topic(self, model: Any) -> str:
        """Return the relative topic of the measurements of a model."""
        return imu_topic(model, data_raw=self.data_raw)


def imu_topic(model: Any, *, data_raw: bool) -> str:
    """Return the topic of an IMU model: imu/data, or imu/data_raw of [REP145].

    The latter is chosen by `data_raw` for a model without orientation.
    """
    is_raw = data_raw and not model.orientation.publishes
    return 'imu/data_raw' if is_raw else str(model.topic)


@dataclasses.dataclass(frozen=True)
class WorldSettings(SensorSettings):
    """Parameters of a node whose sensor measures a world, which the node reads."""

    world: str = setting(
        '',
        '',
        'World that is measured: a preset, or the path of a YAML file. Its origin is that of the '
        'odometry.',
    )


@dataclasses.dataclass(frozen=True)
class MagnetometerSettings(WorldSettings):
    """Parameters of a magnetometer node."""

    noise_free: NoiseFreeSettings = dataclasses.field(default_factory=NoiseFreeSettings)


@dataclasses.dataclass(frozen=True)
class CameraSettings(WorldSettings):
    """Parameters of a camera node."""

    world_frame: str = setting('map', '', 'Frame of the poses, of the world and of the odometry.')


@dataclasses.dataclass(frozen=True)
class Datum(LocalFrame):
    """Position of the odometry frame on the Earth; the default is that of batch runs."""

    latitude_deg: float = parameter(
        DEFAULT_ORIGIN.latitude_deg,
        'deg',
        'WGS84 latitude of the origin of the odometry.',
        minimum=-90.0,
        maximum=90.0,
    )
    longitude_deg: float = parameter(
        DEFAULT_ORIGIN.longitude_deg,
        'deg',
        'WGS84 longitude of the origin of the odometry.',
        minimum=-180.0,
        maximum=180.0,
    )
    altitude_m: float = parameter(
        DEFAULT_ORIGIN.altitude_m, 'm', 'Height of that origin above the WGS84 ellipsoid.'
    )


@dataclasses.dataclass(frozen=True)
class GpsSettings(SensorSettings):
    """Parameters of a GPS node."""

    noise_free: NoiseFreeSettings = dataclasses.field(default_factory=NoiseFreeSettings)
    datum: Datum = dataclasses.field(default_factory=Datum)

    def surroundings(self) -> dict[str, Any]:
        """Return the position of the odometry frame on the Earth."""
        return {'frame': self.datum}


@dataclasses.dataclass(frozen=True)
class TrajectorySettings(Parameters):
    """Parameters of a trajectory node besides those of a scenario."""

    motion: str = setting(
        'drive_circle',
        '',
        'Motion: a drive of the ART vehicle, the same on springs in MuJoCo (sprung_line), a '
        'scenario, a body of an MJCF file (mjcf), or a class, my_motion.py:Spiral.',
    )
    duration: float = setting(20.0, 's', 'Duration of the motion.', above=0.0, maximum=1e5)
    seed: int = setting(0, '1', 'Seed of the variation of a drive.', minimum=0)
    run: str = setting('run_1', '', 'Label of the run; each label varies a drive differently.')
    rate: float = setting(100.0, 'Hz', 'Odometry messages per second of motion.', minimum=1.0)
    factor: float = setting(
        1.0,
        '1',
        'Seconds of motion per second of wall time; lower on a machine that is too slow.',
        minimum=1e-3,
        maximum=1e3,
    )
    clock: bool = setting(False, '', 'Publish /clock.')
    loop: bool = setting(False, '', 'Restart at the end; /clock jumps back.')
    awaited: str = setting(
        '',
        '',
        'Connections to wait for, separated by spaces: TOPIC for a publisher of a topic, or '
        'TOPIC:NODE for a subscription of a node, such as ground_truth/odometry:imu_node.',
    )
    delay: float = setting(
        1.0,
        's',
        'Wall time between these connections and the first message, so that discovery is '
        'complete.',
        minimum=0.0,
    )
    start_ns: int = setting(
        START_NS, 'ns', 'Stamp of the start of the motion.', minimum=0.0, maximum=_LATEST_NS
    )
    frame_id: str = setting('map', '', 'Frame of the pose.')
    child_frame_id: str = setting('base_link', '', 'Frame of the twist.')
    frame_prefix: str = frame_prefix()

    def _check(self) -> None:
        if self.loop and not self.clock:
            raise ParameterError(
                type(self).__name__,
                'loop',
                'True is not allowed without clock: true; stamps would go back without the clock',
            )


@dataclasses.dataclass(frozen=True)
class PathFollowerSettings(Parameters):
    """Parameters of a path follower besides those of robot and controller."""

    controller: str = setting('nonlinear', '', 'Controller.', choices=tuple(TRACKERS))
    path: str = setting(
        '', '', 'CSV file with t,x,y[,theta]; empty: wait for a message on the topic path.'
    )
    at_robot: bool = setting(
        False,
        '',
        'Move and rotate the path so that it begins at the robot; otherwise it is in the frame of '
        'the odometry.',
    )
    control_rate: float = setting(
        20.0, 'Hz', 'Maximum rate of commands, by odometry stamps.', above=0.0, maximum=1e4
    )
    interpolation: str = setting(
        'spline', '', 'Interpolation between waypoints.', choices=INTERPOLATIONS
    )
    stamped: bool = setting(True, '', 'Publish cmd_vel as TwistStamped; otherwise as Twist.')
    frame_id: str = setting('base_link', '', 'Frame of cmd_vel.')
    odometry_timeout: float = setting(
        1.0,
        's',
        'Wall time without odometry after which zero is commanded; 0: never. Set it to several '
        'intervals of the odometry if the simulator is much slower than real time.',
        minimum=0.0,
        maximum=1e6,
    )
    frame_prefix: str = frame_prefix()
    diagnostics_period: float = diagnostics_period()
