# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Base classes of all sensors, the delivery of their messages and the registry of kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core import lazily

if TYPE_CHECKING:
    from .catalogue import SensorKind
    from .delivery import Channel, Delivery
    from .sensor import Measurement, Sensor, SensorModel

__all__ = ['Channel', 'Delivery', 'Measurement', 'Sensor', 'SensorKind', 'SensorModel']
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, __all__, 'sensor', 'delivery', 'catalogue')
