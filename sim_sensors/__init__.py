# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Simulation of sensors: trajectories, noise processes and sensor models.

`import sim_sensors` offers the names that a script needs, see docs/howto/python.md. Further names
are in the packages below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core import lazily

if TYPE_CHECKING:
    from .api import (
        GpsModel,
        ImuModel,
        Sim2RealError,
        Trajectory,
        World,
        load_gps,
        load_imu,
        load_mag,
        load_world,
        motion_of,
        simulate_gps,
        simulate_imu,
    )

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
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, __all__, 'api')
