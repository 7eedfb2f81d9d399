# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""A robot follows a reference path: references, controllers and their errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core import lazily

if TYPE_CHECKING:
    from .follower import Follower, FollowSettings, LiveFollower, SimulatedDrive
    from .tracking import TRACKERS, ReferenceMotion, Tracker

__all__ = [
    'TRACKERS',
    'FollowSettings',
    'Follower',
    'LiveFollower',
    'ReferenceMotion',
    'SimulatedDrive',
    'Tracker',
]
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, __all__, 'follower', 'tracking')
