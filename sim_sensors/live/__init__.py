# SPDX-License-Identifier: Apache-2.0
"""Sensors on odometry that is still arriving."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core import lazily

if TYPE_CHECKING:
    from .sensor import LiveNoiseFree, LiveOdometry, LiveSensor, Verdict

__all__ = ['LiveNoiseFree', 'LiveOdometry', 'LiveSensor', 'Verdict']
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, __all__, 'sensor')
