# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Magnetometers: true motion through a magnetic field in, field with errors out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core import lazily

if TYPE_CHECKING:
    from .magnetometer import Magnetometer, MagnetometerSensor, simulate

__all__ = ['Magnetometer', 'MagnetometerSensor', 'simulate']
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, __all__, 'magnetometer')
