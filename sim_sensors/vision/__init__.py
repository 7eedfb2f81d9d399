# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Poses from tags that a camera sees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core import lazily

if TYPE_CHECKING:
    from .vision_pose import VisionModel, VisionSensor, simulate

__all__ = ['VisionModel', 'VisionSensor', 'simulate']
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, __all__, 'vision_pose')
