# SPDX-License-Identifier: Apache-2.0
"""Do judges, profiles and conditions rank the models alike, and as the paper's tables?"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from sim2real_eval.metrics.distances import POOLED
from sim2real_eval.metrics.published import published_vepd
from sim2real_eval.metrics.rankings import RankAgreement, rank_agreement
from sim2real_eval.study.outcome import StudyOutcome

__all__ = ['PAPER', 'RankingPair', 'ranking_pairs']

PAPER = 'published'
"""Stands for the ranking in Tables I and II of the paper."""


@dataclasses.dataclass(frozen=True)
class RankingPair:
    """Two rankings of one scenario.

    Attributes
    ----------
    scenario : str
    first, second : str
        Judge, followed by ` in ` and the group where there are several; or `published`.
    agreement : RankAgreement
        Over the models that both rank.
    """

    scenario: str
    first: str
    second: str
    agreement: RankAgreement

    def to_mapping(self) -> dict[str, Any]:
        """Return plain values."""
        return dataclasses.asdict(self)


def ranking_pairs(outcome: StudyOutcome) -> list[RankingPair]:
    """Return how every two rankings of the study agree, scenario by scenario.

    Where the paper prints a VEPD for two or more of the models, its ranking is one of them, unless
    the study ranks in no scenario of the paper.
    """
    rankings: dict[str, dict[str, Mapping[str, float]]] = {}
    for judge, group in outcome.compared:
        label = f'{judge} in {group}' if len(outcome.groups) > 1 else judge
        by_scenario: dict[str, dict[str, float]] = {}
        for row in outcome.table(judge, group):
            by_scenario.setdefault(row.scenario, {})[row.model] = row.vepd
        for scenario, values in by_scenario.items():
            rankings.setdefault(scenario, {})[label] = values
    if set(rankings) == {POOLED} or len(rankings) == 2:
        # With one scenario the pooled rows say the same.
        rankings.pop(POOLED, None)
    found = []
    for scenario, ranked in rankings.items():
        printed = {model: published_vepd(model, scenario) for model in outcome.models}
        known = {model: value for model, value in printed.items() if value is not None}
        both = {**ranked, **({PAPER: known} if len(known) > 1 else {})}
        for (first, one), (second, other) in itertools.combinations(both.items(), 2):
            agreement = rank_agreement(
                [one.get(model, np.nan) for model in outcome.models],
                [other.get(model, np.nan) for model in outcome.models],
            )
            found.append(RankingPair(scenario, first, second, agreement))
    return found
