# SPDX-License-Identifier: Apache-2.0
"""Preintegration of an IMU and Monte Carlo runs of scenarios, as in GTSAM; docs/scenarios.md."""

from __future__ import annotations

from sim2real_eval.preintegration.combined_runner import CombinedScenarioRunner
from sim2real_eval.preintegration.measurements import (
    PreintegratedCombinedMeasurements,
    PreintegratedImuMeasurements,
)
from sim2real_eval.preintegration.params import (
    ConstantBias,
    PreintegrationCombinedParams,
    PreintegrationError,
    PreintegrationParams,
)
from sim2real_eval.preintegration.runner import ScenarioRunner

__all__ = [
    'CombinedScenarioRunner',
    'ConstantBias',
    'PreintegratedCombinedMeasurements',
    'PreintegratedImuMeasurements',
    'PreintegrationCombinedParams',
    'PreintegrationError',
    'PreintegrationParams',
    'ScenarioRunner',
]
