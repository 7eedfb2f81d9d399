# SPDX-License-Identifier: Apache-2.0
"""Uncertainty of the distances of a study, by judge, group and scenario."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from sim2real_eval.series_folder import REAL
from sim2real_eval.study.outcome import StudyOutcome
from sim2real_eval.uncertainty import ScoredRuns, Uncertainty, UncertaintyOptions
from sim2real_eval.uncertainty.by_scenario import uncertainty_by_scenario

__all__ = ['study_uncertainty', 'uncertainty_records']


@functools.lru_cache(maxsize=1)
def study_uncertainty(outcome: StudyOutcome) -> Mapping[tuple[str, str], dict[str, Uncertainty]]:
    """Return the uncertainty of every scenario and pooled (`all`), by judge and group.

    That of the last study is remembered: its folder, its page and the terminal ask for the same.
    """
    given: Mapping[str, Any] = outcome.record.get('uncertainty') or {}
    options = UncertaintyOptions.from_mapping(given, 'uncertainty')
    seed = int(outcome.record.get('seed', 0))
    found = {}
    for judge, group in outcome.compared:
        real = ScoredRuns.of(outcome.of(judge, REAL, group=group))
        sims = {
            model: ScoredRuns.of(runs)
            for model in outcome.models
            if (runs := outcome.of(judge, model, group=group))
        }
        found[judge, group] = uncertainty_by_scenario(real, sims, options, seed=seed)
    return found


def uncertainty_records(outcome: StudyOutcome) -> list[dict[str, Any]]:
    """Return the content of uncertainty.json: a row per judge, group and scenario."""
    return [
        {'judge': judge, 'group': group, 'scenario': scenario, **known.to_mapping()}
        for (judge, group), scenarios in study_uncertainty(outcome).items()
        for scenario, known in scenarios.items()
    ]
