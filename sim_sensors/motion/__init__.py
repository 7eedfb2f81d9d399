# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""True motion: analytic scenarios, driven vehicles, waypoints and recorded odometry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core import lazily

if TYPE_CHECKING:
    from .motions import motion_of, truth_of
    from .odometry import OdometryMotion
    from .scenarios import TimedMotion
    from .trajectory import Motion, Trajectory, times_within
    from .waypoints import WaypointMotion

__all__ = [
    'Motion',
    'OdometryMotion',
    'TimedMotion',
    'Trajectory',
    'WaypointMotion',
    'motion_of',
    'times_within',
    'truth_of',
]
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(
        __name__, __all__, 'trajectory', 'motions', 'scenarios', 'odometry', 'waypoints'
    )
