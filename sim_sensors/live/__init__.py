# SPDX-License-Identifier: Apache-2.0
"""Sensors and followers on odometry that is still arriving."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core.faces import lazily

if TYPE_CHECKING:
    from sim_sensors.live.follower import LiveFollower
    from sim_sensors.live.odometry import LiveOdometry
    from sim_sensors.live.sensor import LiveSensor

__all__ = ['LiveFollower', 'LiveOdometry', 'LiveSensor']
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, __all__, 'sensor', 'odometry', 'follower')
