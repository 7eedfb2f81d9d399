# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Wheel odometry: encoders, slip, noise, and the robots that carry the wheels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core import lazily

if TYPE_CHECKING:
    from .encoders import WheelDrive
    from .wheel_odometry import WheelOdometryModel, WheelOdometrySensor, simulate

__all__ = ['WheelDrive', 'WheelOdometryModel', 'WheelOdometrySensor', 'simulate']
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, __all__, 'wheel_odometry', 'encoders')
