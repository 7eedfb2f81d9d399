# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Simulated twins of recordings, and stand-ins for recordings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core import lazily

if TYPE_CHECKING:
    from .twin import Twin
    from .twin_maker import TwinMaker, synthetic_recording

__all__ = ['Twin', 'TwinMaker', 'synthetic_recording']
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, __all__, 'twin', 'twin_maker')
