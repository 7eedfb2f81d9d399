# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Inertial measurement units: the sensor, its error models and the orientation it publishes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core import lazily

if TYPE_CHECKING:
    from .chain import ImuChain
    from .imu import ImuModel, ImuSensor, simulate

__all__ = ['ImuChain', 'ImuModel', 'ImuSensor', 'simulate']
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, __all__, 'imu', 'chain')
