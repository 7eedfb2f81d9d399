# SPDX-License-Identifier: Apache-2.0
"""What of a world each sensor of a launch is told."""

from __future__ import annotations

from sim_sensors.ros.sensor_settings import CameraSettings, MagnetometerSettings, VisionSettings
from sim_sensors.world_file import load_world

__all__ = ['world_configuration']

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
