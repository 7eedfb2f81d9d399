# SPDX-License-Identifier: Apache-2.0
"""What nodes are told besides the parameters of their models; needs no ROS."""

from __future__ import annotations

import dataclasses
from typing import Any

from sim_sensors.core.errors import ParameterError
from sim_sensors.core.parameters import Parameters, parameter
from sim_sensors.core.seeding import run_label
from sim_sensors.following.reference import INTERPOLATIONS
from sim_sensors.following.tracking import TRACKERS
from sim_sensors.motion.motions import START_NS
from sim_sensors.world.geodesy import DEFAULT_ORIGIN, STANDARD_GRAVITY, LocalFrame

# A Time has 32 bits of seconds.
_LATEST_NS = float((2**31 - 1) * 10**9)


def diagnostics_period() -> Any:
    """Declare how often a node tells about its health."""
    return parameter(
        1.0,
        's',
        'Wall time from one diagnostic message to the next.',
        minimum=0.01,
        maximum=1e6,
        read_only=True,
    )


@dataclasses.dataclass(frozen=True)
class SensorSettings(Parameters):
    """What all sensor nodes are told."""

    model: str = parameter(
        '',
        '',
        'Model: name of a preset, path of a YAML file, or a class in a file, my_model.py:MyModel.',
        read_only=True,
    )
    seed: int = parameter(0, '1', 'Seed of the study.', minimum=0, read_only=True)
    run: str = parameter(
        run_label('recording', 1, 'run_1'),
        '',
        'Label of the run; another one draws other noise.',
        read_only=True,
    )
    sensor: str = parameter(
        '', '', 'Label of the sensor; another one draws other noise.', read_only=True
    )
    velocity: str = parameter(
        'twist',
        '',
        'Where velocity comes from: twist: that of the odometry; position: its derivative.',
        choices=('twist', 'position'),
        read_only=True,
    )
    gap_factor: float = parameter(
        1.8,
        '1',
        'An odometry interval above this many median ones is reported as a gap.',
        above=1.0,
        read_only=True,
    )
    longest_gap: float = parameter(
        60.0,
        's',
        'A gap up to this is bridged by interpolation; after a longer one the sensor starts anew.',
        above=0.0,
        maximum=1e6,
        read_only=True,
    )
    start_ns: int = parameter(
        0,
        'ns',
        'First stamp of the sensor; stamps before the first odometry are left out. '
        '0: the stamp of the first odometry.',
        minimum=0.0,
        read_only=True,
    )
    diagnostics_period: float = diagnostics_period()

    def surroundings(self) -> dict[str, Any]:
        """Return what `start` of a model takes of the world, by keyword."""
        return {}


@dataclasses.dataclass(frozen=True)
class ImuSettings(SensorSettings):
    """What an IMU node is told."""

    gravity: float = parameter(
        STANDARD_GRAVITY, 'm/s^2', 'Gravity of the simulated world.', minimum=0.0
    )

    def surroundings(self) -> dict[str, Any]:
        """Return the gravity that it measures."""
        return {'gravity': self.gravity}


@dataclasses.dataclass(frozen=True)
class WorldSettings(SensorSettings):
    """What the node of a sensor is told that measures a world; the node reads that."""

    world: str = parameter(
        '',
        '',
        'World that is measured, its origin that of the odometry: name of a preset, or path of a '
        'YAML file.',
        read_only=True,
    )


@dataclasses.dataclass(frozen=True)
class CameraSettings(WorldSettings):
    """What a camera node is told."""

    world_frame: str = parameter(
        'map', '', 'Frame of the poses: that of the world and of the odometry.', read_only=True
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

    datum: Datum = dataclasses.field(default_factory=Datum)

    def surroundings(self) -> dict[str, Any]:
        """Return where on the Earth it is."""
        return {'frame': self.datum}


@dataclasses.dataclass(frozen=True)
class TrajectorySettings(Parameters):
    """What a trajectory node is told besides the parameters of a scenario."""

    motion: str = parameter(
        'drive_circle',
        '',
        'What moves: a drive of the ART vehicle, a scenario, or a class in a file, '
        'my_motion.py:Spiral.',
        read_only=True,
    )
    duration: float = parameter(
        20.0, 's', 'Duration of the motion.', above=0.0, maximum=1e5, read_only=True
    )
    seed: int = parameter(0, '1', 'Seed of the variation of a drive.', minimum=0, read_only=True)
    run: str = parameter(
        'run_1', '', 'Label of the run; another one varies a drive otherwise.', read_only=True
    )
    rate: float = parameter(
        100.0, 'Hz', 'Odometry messages per second of motion.', minimum=1.0, read_only=True
    )
    factor: float = parameter(
        1.0,
        '1',
        'Seconds of motion per second of wall time.',
        minimum=1e-3,
        maximum=1e3,
        read_only=True,
    )
    clock: bool = parameter(False, '', 'Publish /clock.', read_only=True)
    loop: bool = parameter(
        False, '', 'Begin again at the end, with /clock jumping back.', read_only=True
    )
    awaited: str = parameter(
        '',
        '',
        'Who has to be there first, spaces between: TOPIC for somebody who publishes it, or '
        'TOPIC:NODE for a node that subscribes to it, such as ground_truth/odometry:imu_node.',
        read_only=True,
    )
    delay: float = parameter(
        1.0,
        's',
        'Wall time from then to the first message; either side finds the other in its own time.',
        minimum=0.0,
        read_only=True,
    )
    start_ns: int = parameter(
        START_NS,
        'ns',
        'Stamp of the start of the motion.',
        minimum=0.0,
        maximum=_LATEST_NS,
        read_only=True,
    )
    frame_id: str = parameter('map', '', 'Frame of the pose.', read_only=True)
    child_frame_id: str = parameter('base_link', '', 'Frame of the twist.', read_only=True)

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

    controller: str = parameter(
        'nonlinear', '', 'Who steers.', choices=tuple(TRACKERS), read_only=True
    )
    path: str = parameter(
        '', '', 'CSV file with t,x,y[,theta]; empty: wait for the topic path.', read_only=True
    )
    at_robot: bool = parameter(
        False,
        '',
        'Move and turn the path to begin where the robot is; otherwise it is in the frame of the '
        'odometry.',
        read_only=True,
    )
    control_rate: float = parameter(
        20.0, 'Hz', 'Commands per second of odometry, at most.', above=0.0, maximum=1e4,
        read_only=True,
    )  # fmt: skip
    interpolation: str = parameter(
        'spline', '', 'Between waypoints.', choices=INTERPOLATIONS, read_only=True
    )
    stamped: bool = parameter(
        True, '', 'cmd_vel is a TwistStamped; otherwise a Twist.', read_only=True
    )
    frame_id: str = parameter('base_link', '', 'Frame of cmd_vel.', read_only=True)
    diagnostics_period: float = diagnostics_period()
