# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""A camera with a feature tracker: projection, features and poses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core import lazily

if TYPE_CHECKING:
    from .camera import CameraModel, CameraSensor, simulate

__all__ = ['CameraModel', 'CameraSensor', 'simulate']
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, __all__, 'camera')
