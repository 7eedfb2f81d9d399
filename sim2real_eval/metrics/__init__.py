# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""From estimates to scores: velocity series, VEPD, and other metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core import lazily

if TYPE_CHECKING:
    from .options import MetricError, MetricOptions
    from .scores import RunScore, Vepd, energy_distance, score_run, vepd, wiener_entropy
    from .series import VelocitySeries, read_series, speed, write_series

__all__ = [
    'MetricError',
    'MetricOptions',
    'RunScore',
    'VelocitySeries',
    'Vepd',
    'energy_distance',
    'read_series',
    'score_run',
    'speed',
    'vepd',
    'wiener_entropy',
    'write_series',
]
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, __all__, 'options', 'series', 'scores')
