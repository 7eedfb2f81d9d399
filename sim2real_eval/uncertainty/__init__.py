# SPDX-License-Identifier: Apache-2.0
"""Uncertainty of a distance between real and simulated runs."""

from __future__ import annotations

from sim2real_eval.uncertainty.assessment import uncertainty
from sim2real_eval.uncertainty.options import UncertaintyOptions
from sim2real_eval.uncertainty.result import DistanceUncertainty, PairUncertainty, Uncertainty
from sim2real_eval.uncertainty.scored_runs import ScoredRuns

__all__ = [
    'DistanceUncertainty',
    'PairUncertainty',
    'ScoredRuns',
    'Uncertainty',
    'UncertaintyOptions',
    'uncertainty',
]
