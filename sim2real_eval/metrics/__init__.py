# SPDX-License-Identifier: Apache-2.0
"""From estimates to scores: velocity series, VEPD, and other metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core.faces import lazily

if TYPE_CHECKING:
    from sim2real_eval.metrics.distances import Vepd, energy_distance, vepd
    from sim2real_eval.metrics.options import MetricError, MetricOptions
    from sim2real_eval.metrics.scores import RunScore, score_run, wiener_entropy
    from sim2real_eval.metrics.series import VelocitySeries, read_series, speed, write_series

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
    __getattr__, __dir__ = lazily(__name__, __all__, 'options', 'series', 'scores', 'distances')
