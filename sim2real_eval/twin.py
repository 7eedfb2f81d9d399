# SPDX-License-Identifier: Apache-2.0
"""Which sensors the simulated twin of a recording has, and how they are switched on."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from sim_sensors.camera import CameraModel
    from sim_sensors.environment import LocalFrame
    from sim_sensors.gps import GpsModel
    from sim_sensors.imu import ImuModel
    from sim_sensors.magnetometer import Magnetometer
    from sim_sensors.vision_pose import VisionModel
    from sim_sensors.wheel_odometry import WheelOdometryModel

__all__ = ['REAL_SENSOR', 'Placed', 'Twin', 'TwinSensors']

S = TypeVar('S', 'ImuModel', 'GpsModel', 'Magnetometer')

REAL_SENSOR = 'real'
"""Stands for a recording's own sensor where a model could be named."""


@dataclasses.dataclass(frozen=True)
class Twin:
    """Which sensors a twin has.

    Attributes
    ----------
    label : str
        Name in tables and files.
    gps : GpsModel or None
        None: the recording's own fixes stay.
    imu : ImuModel or None
        None: the recording's own IMU stays.
    mag : Magnetometer or None
        None: the recording's own magnetometer stays, if it has one.
    camera : CameraModel or None
        None: the recording's own features and poses stay, if it has any.
    wheels : WheelOdometryModel or None
        None: the recording's own wheel odometry stays, if it has one.
    vision : VisionModel or None
        None: the recording's own poses stay, if it has some.
    """

    label: str
    gps: GpsModel | None
    imu: ImuModel | None
    mag: Magnetometer | None = None
    camera: CameraModel | None = None
    wheels: WheelOdometryModel | None = None
    vision: VisionModel | None = None


@dataclasses.dataclass(frozen=True)
class Placed(Generic[S]):
    """A simulated sensor on the robot.

    Attributes
    ----------
    model : ImuModel, GpsModel or Magnetometer
        With mounting and frame of the messages.
    start_ns : int
        First stamp.
    """

    model: S
    start_ns: int


@dataclasses.dataclass(frozen=True)
class TwinSensors:
    """How the sensors of a twin are switched on: the same in a batch run and on a live graph.

    Attributes
    ----------
    imu : Placed of ImuModel, or None
        None: the recording's own IMU stays.
    gps : Placed of GpsModel, or None
        None: the recording's own fixes stay.
    seed : int
    run : str
        Label of the random streams; those of the sensors are the defaults, `imu`, `gps`, `mag`.
    velocity : {'twist', 'position'}
        Where the velocity of the motion comes from, as decided from the whole truth.
    origin : LocalFrame
        Where on the Earth the truth is.
    mag : Placed of Magnetometer, or None
        None: the recording's own magnetometer stays, if it has one.
    """

    imu: Placed[ImuModel] | None
    gps: Placed[GpsModel] | None
    seed: int
    run: str
    velocity: str
    origin: LocalFrame
    mag: Placed[Magnetometer] | None = None
