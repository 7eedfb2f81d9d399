# SPDX-License-Identifier: Apache-2.0
"""Drift of wheel odometry, alone and with vision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core.faces import lazily

if TYPE_CHECKING:
    from .run import Drift, WheelSetup
    from .study import WheelStudy

__all__ = ['Drift', 'WheelSetup', 'WheelStudy']
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, __all__, 'study', 'run')
