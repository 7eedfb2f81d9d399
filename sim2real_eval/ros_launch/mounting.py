# SPDX-License-Identifier: Apache-2.0
"""Where the sensors are: told to TF for everybody, and to judge_node in a file.

judge_node reads /tf_static too, but a file is there before its first message, and where tf2_msgs
is not installed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sim2real_eval.ros_launch.packages import scratch_file
from sim_sensors.camera.camera import load_camera
from sim_sensors.core.rotations import euler_from_quaternion, quaternion_from_euler
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu.imu import load_imu
from sim_sensors.magnetometer.magnetometer import load_mag
from sim_sensors.ros.sensor_settings import CameraSettings, MagnetometerSettings, VisionSettings
from sim_sensors.world.world import load_world

__all__ = ['Mounting', 'of_models', 'transforms_file', 'world_configuration']

# The same file, whichever library makes the quaternion.
_DECIMALS = 12


@dataclasses.dataclass(frozen=True)
class Mounting:
    """Pose of a sensor in base_link.

    Attributes
    ----------
    sensor : str
        imu, gps, mag or camera.
    frame : str
        Of the sensor.
    translation : tuple of 3 float
        m.
    rpy : tuple of 3 float
        Roll, pitch, yaw about fixed axes, rad.
    """

    sensor: str
    frame: str
    translation: tuple[float, float, float]
    rpy: tuple[float, float, float] = (0.0, 0.0, 0.0)


def of_models(
    imu: str | None, gps: str | None, mag: str | None = None, camera: str | None = None
) -> list[Mounting]:
    """Return where the models of the sensors, by name or path, say that these are.

    A magnetometer in the frame of the IMU, as in one chip, has no place of its own. The
    frame of a camera is its optical one.

    Raises
    ------
    Sim2RealError
        When there is no such model, or it is wrong.
    """
    found = []
    if imu is not None:
        model = load_imu(imu)
        found.append(Mounting('imu', model.frame_id, model.lever_arm, model.mounting_rpy))
    if gps is not None:
        receiver = load_gps(gps)
        found.append(Mounting('gps', receiver.frame_id, receiver.lever_arm))
    if mag is not None:
        compass = load_mag(mag)
        if compass.frame_id not in [mounting.frame for mounting in found]:
            found.append(
                Mounting('mag', compass.frame_id, compass.lever_arm, compass.mounting_rpy)
            )
    if camera is not None:
        eye = load_camera(camera)
        turn = euler_from_quaternion(eye.optical_rotation())
        found.append(Mounting('camera', eye.frame_id, eye.lever_arm, turn))
    return found


def transforms_file(mountings: Sequence[Mounting]) -> Path:
    """Write a static_transforms.yaml that lasts as long as this process, and return it."""
    content: list[dict[str, Any]] = [
        {
            'parent': 'base_link',
            'child': mounting.frame,
            'translation': list(mounting.translation),
            'rotation_xyzw': [
                round(part, _DECIMALS) for part in quaternion_from_euler(*mounting.rpy)
            ],
        }
        for mounting in mountings
    ]
    return scratch_file('static_transforms', content)


# -------- What of a world each sensor of a launch is told.

_OWN = {
    'mag': MagnetometerSettings().world,
    'camera': CameraSettings().world,
    'vision': VisionSettings().world,
}


def world_configuration(world: str) -> dict[str, str]:
    """Return the launch configurations that `config/ros/sensors.yaml` takes of a world.

    An IMU and a GPS are told the gravity and the origin of the world that the others are in, as
    in a batch run.

    Parameters
    ----------
    world : str
        Name or path; empty: each sensor is in its own, and gravity and origin are their defaults.

    Raises
    ------
    ParameterError
        When there is no such world, or it is wrong.
    """
    shared = load_world(world or _OWN['mag'])
    return {
        'gravity': repr(float(shared.gravity)),
        'latitude_deg': repr(float(shared.frame.latitude_deg)),
        'longitude_deg': repr(float(shared.frame.longitude_deg)),
        'altitude_m': repr(float(shared.frame.altitude_m)),
        **{f'{kind}_world': world or own for kind, own in _OWN.items()},
    }
