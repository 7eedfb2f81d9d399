# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Names of `import sim_sensors`: motions, sensor models and simulations."""

from __future__ import annotations

from sim_sensors.core.errors import Sim2RealError
from sim_sensors.gps.gps import GpsModel, load_gps
from sim_sensors.gps.gps import simulate as simulate_gps
from sim_sensors.imu.imu import ImuModel, load_imu
from sim_sensors.imu.imu import simulate as simulate_imu
from sim_sensors.magnetometer.magnetometer import load_mag
from sim_sensors.motion.motions import motion_of
from sim_sensors.motion.trajectory import Trajectory
from sim_sensors.world.world import World, load_world

__all__ = [
    'GpsModel',
    'ImuModel',
    'Sim2RealError',
    'Trajectory',
    'World',
    'load_gps',
    'load_imu',
    'load_mag',
    'load_world',
    'motion_of',
    'simulate_gps',
    'simulate_imu',
]
