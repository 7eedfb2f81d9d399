# SPDX-License-Identifier: Apache-2.0
"""Distances between the error signatures of real and simulated runs."""

from __future__ import annotations

from sim2real_eval.metrics.caveats import advice
from sim2real_eval.metrics.distances import VepdRow, vepd, vepd_table
from sim2real_eval.metrics.entropy import wiener_entropy
from sim2real_eval.metrics.options import MetricError, MetricOptions
from sim2real_eval.metrics.recomputation import vepd_from_series
from sim2real_eval.metrics.scores import RunScore, score_run
from sim2real_eval.metrics.speeds import speed

__all__ = [
    'MetricError',
    'MetricOptions',
    'RunScore',
    'VepdRow',
    'advice',
    'score_run',
    'speed',
    'vepd',
    'vepd_from_series',
    'vepd_table',
    'wiener_entropy',
]
