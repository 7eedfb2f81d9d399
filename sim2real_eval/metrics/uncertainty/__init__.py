# SPDX-License-Identifier: Apache-2.0
"""How certain a distance between real and simulated runs is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core.faces import lazily

if TYPE_CHECKING:
    from .assessment import uncertainty
    from .motions import ScoredRuns
    from .result import DistanceUncertainty, Uncertainty, UncertaintyOptions

__all__ = ['DistanceUncertainty', 'ScoredRuns', 'Uncertainty', 'UncertaintyOptions', 'uncertainty']
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, __all__, 'result', 'motions', 'assessment')
