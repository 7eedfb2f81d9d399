# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Sensors on odometry that is still arriving."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core import lazily

if TYPE_CHECKING:
    from .samples import LiveNoiseFree, LiveOdometry, Verdict
    from .sensor import LiveSensor

__all__ = ['LiveNoiseFree', 'LiveOdometry', 'LiveSensor', 'Verdict']
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, __all__, 'samples', 'sensor')
