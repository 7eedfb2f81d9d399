# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""GPS receivers: the sensor, its position errors, covariances and kinds of fix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core import lazily

if TYPE_CHECKING:
    from .gps import GpsModel, GpsSensor, PositionNoise, simulate

__all__ = ['GpsModel', 'GpsSensor', 'PositionNoise', 'simulate']
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, __all__, 'gps')
