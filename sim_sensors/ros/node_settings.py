# SPDX-License-Identifier: Apache-2.0
"""What nodes are told besides the parameters of their models; needs no ROS."""

from __future__ import annotations

import dataclasses
from typing import Any

from sim_sensors.core.errors import ParameterError
from sim_sensors.core.parameters import Parameters, non_negative, parameter
from sim_sensors.core.seeding import run_label
from sim_sensors.core.shared_parameters import Axes, axes
from sim_sensors.following.reference import INTERPOLATIONS
from sim_sensors.following.tracking import TRACKERS
from sim_sensors.motion.motions import START_NS
from sim_sensors.world.geodesy import DEFAULT_ORIGIN, STANDARD_GRAVITY, LocalFrame

# A Time has 32 bits of seconds.
_LATEST_NS = float((2**31 - 1) * 10**9)


def setting(default: Any, unit: str, doc: str, **bounds: Any) -> Any:
    """Declare a parameter that a node reads once; see `parameter`."""
    return parameter(default, unit, doc, read_only=True, **bounds)


def diagnostics_period() -> Any:
    """Declare how often a node tells about its health."""
    return setting(
        1.0, 's', 'Wall time from one diagnostic message to the next.', minimum=0.01, maximum=1e6
    )


@dataclasses.dataclass(frozen=True)
class SensorSettings(Parameters):
    """What all sensor nodes are told."""

    model: str = setting(
        '',
        '',
        'Model: name of a preset, path of a YAML file, or a class in a file, my_model.py:MyModel.',
    )
    seed: int = setting(0, '1', 'Seed of the study.', minimum=0)
    run: str = setting(
        run_label('recording', 1, 'run_1'), '', 'Label of the run; another one draws other noise.'
    )
    sensor: str = setting('', '', 'Label of the sensor; another one draws other noise.')
    velocity: str = setting(
        'twist',
        '',
        'Where velocity comes from: twist: that of the odometry; position: its derivative.',
        choices=('twist', 'position'),
    )
    gap_factor: float = setting(
        1.8,
        '1',
        'An odometry interval above this many median ones is reported as a gap.',
        above=1.0,
    )
    longest_gap: float = setting(
        60.0,
        's',
        'A gap up to this is interpolated; after a longer one the sensor starts again.',
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
    diagnostics_period: float = diagnostics_period()

    def surroundings(self) -> dict[str, Any]:
        """Return what `start` of a model takes of the world, by keyword."""
        return {}


@dataclasses.dataclass(frozen=True)
class NoiseFreeSettings(Parameters):
    """How a node measures what a noise-free sensor of its kind did."""

    enabled: bool = setting(
        False,
        '',
        "Measure what the simulator's noise-free sensor did, on ground_truth/imu, "
        'ground_truth/fix or ground_truth/mag, in place of what odometry gives.',
    )
    lever_arm: Axes = axes('m', 'Where that sensor is in the body.', read_only=True)
    mounting_rpy: Axes = axes(
        'rad',
        'Rotation of that sensor in the body: roll, pitch, yaw about fixed axes.',
        read_only=True,
    )


@dataclasses.dataclass(frozen=True)
class ImuSettings(SensorSettings):
    """What an IMU node is told."""

    noise_free: NoiseFreeSettings = dataclasses.field(default_factory=NoiseFreeSettings)

    gravity: float = non_negative(STANDARD_GRAVITY, 'm/s^2', 'Gravity of the simulated world.')

    def surroundings(self) -> dict[str, Any]:
        """Return the gravity that it measures."""
        return {'gravity': self.gravity}


@dataclasses.dataclass(frozen=True)
class WorldSettings(SensorSettings):
    """What the node of a sensor is told that measures a world; the node reads that."""

    world: str = setting(
        '',
        '',
        'World that is measured, its origin that of the odometry: name of a preset, or path of a '
        'YAML file.',
    )


@dataclasses.dataclass(frozen=True)
class MagnetometerSettings(WorldSettings):
    """What a magnetometer node is told."""

    noise_free: NoiseFreeSettings = dataclasses.field(default_factory=NoiseFreeSettings)


@dataclasses.dataclass(frozen=True)
class CameraSettings(WorldSettings):
    """What a camera node is told."""

    world_frame: str = setting(
        'map', '', 'Frame of the poses: that of the world and of the odometry.'
    )


@dataclasses.dataclass(frozen=True)
class Datum(LocalFrame):
    """Where on the Earth the odometry's frame is; the default is that of batch runs."""

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
    """What a GPS node is told."""

    noise_free: NoiseFreeSettings = dataclasses.field(default_factory=NoiseFreeSettings)
    datum: Datum = dataclasses.field(default_factory=Datum)

    def surroundings(self) -> dict[str, Any]:
        """Return where on the Earth it is."""
        return {'frame': self.datum}


@dataclasses.dataclass(frozen=True)
class TrajectorySettings(Parameters):
    """What a trajectory node is told besides the parameters of a scenario."""

    motion: str = setting(
        'drive_circle',
        '',
        'What moves: a drive of the ART vehicle, the same on springs in MuJoCo (sprung_line), a '
        'scenario, a body of an MJCF file (mjcf), or a class in a file, my_motion.py:Spiral.',
    )
    duration: float = setting(20.0, 's', 'Duration of the motion.', above=0.0, maximum=1e5)
    seed: int = setting(0, '1', 'Seed of the variation of a drive.', minimum=0)
    run: str = setting('run_1', '', 'Label of the run; another one varies a drive otherwise.')
    rate: float = setting(100.0, 'Hz', 'Odometry messages per second of motion.', minimum=1.0)
    factor: float = setting(
        1.0,
        '1',
        'Seconds of motion per second of wall time; a slow machine slows down.',
        minimum=1e-3,
        maximum=1e3,
    )
    clock: bool = setting(False, '', 'Publish /clock.')
    loop: bool = setting(False, '', 'Begin again at the end, with /clock jumping back.')
    awaited: str = setting(
        '',
        '',
        'Who has to be there first, spaces between: TOPIC for somebody who publishes it, or '
        'TOPIC:NODE for a node that subscribes to it, such as ground_truth/odometry:imu_node.',
    )
    delay: float = setting(
        1.0,
        's',
        'Wall time from then to the first message; either side finds the other in its own time.',
        minimum=0.0,
    )
    start_ns: int = setting(
        START_NS, 'ns', 'Stamp of the start of the motion.', minimum=0.0, maximum=_LATEST_NS
    )
    frame_id: str = setting('map', '', 'Frame of the pose.')
    child_frame_id: str = setting('base_link', '', 'Frame of the twist.')

    def _check(self) -> None:
        if self.loop and not self.clock:
            raise ParameterError(
                type(self).__name__,
                'loop',
                'True is not allowed without clock: true; stamps would go back unannounced',
            )


@dataclasses.dataclass(frozen=True)
class PathFollowerSettings(Parameters):
    """What a path follower is told besides the parameters of robot and controller."""

    controller: str = setting('nonlinear', '', 'Who steers.', choices=tuple(TRACKERS))
    path: str = setting('', '', 'CSV file with t,x,y[,theta]; empty: wait for the topic path.')
    at_robot: bool = setting(
        False,
        '',
        'Move and turn the path to begin where the robot is; otherwise it is in the frame of the '
        'odometry.',
    )
    control_rate: float = setting(
        20.0, 'Hz', 'Commands per second of odometry, at most.', above=0.0, maximum=1e4
    )
    interpolation: str = setting('spline', '', 'Between waypoints.', choices=INTERPOLATIONS)
    stamped: bool = setting(True, '', 'cmd_vel is a TwistStamped; otherwise a Twist.')
    frame_id: str = setting('base_link', '', 'Frame of cmd_vel.')
    diagnostics_period: float = diagnostics_period()
