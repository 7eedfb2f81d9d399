# SPDX-License-Identifier: Apache-2.0
"""How the models stand under one judge: distances with what resampling says of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from scipy.stats import kendalltau

from sim2real_eval.metrics import VepdRow
from sim2real_eval.metrics.distances import POOLED
from sim2real_eval.metrics.published import published_vepd
from sim2real_eval.series_folder import REAL
from sim2real_eval.study import StudyOutcome
from sim2real_eval.uncertainty import ScoredRuns, Uncertainty, UncertaintyOptions, uncertainty

__all__ = ['Standing', 'standings']


@dataclasses.dataclass(frozen=True, eq=False)
class Standing:
    """Models under a judge in a group of recordings.

    Attributes
    ----------
    judge, group : str
        `group` is empty in a study without groups.
    rows : tuple of VepdRow
        Per scenario and pooled.
    known : Uncertainty
        Of the pooled rows.
    """

    judge: str
    group: str
    rows: tuple[VepdRow, ...]
    known: Uncertainty

    @property
    def label(self) -> str:
        """Judge and group."""
        return f'{self.judge}, {self.group}' if self.group else self.judge

    @property
    def scenarios(self) -> list[str]:
        """Scenarios, the pooled one last unless it would say the same as the only one."""
        found = list(dict.fromkeys(row.scenario for row in self.rows))
        return found if len(found) > 2 else [name for name in found if name != POOLED]

    @property
    def whole(self) -> str:
        """What the ranking is over: all scenarios, or the only one."""
        return self.scenarios[-1]

    @property
    def where(self) -> str:
        """The same in words."""
        return 'of all scenarios pooled' if self.whole == POOLED else f'in {self.whole}'

    def published(self, model: str) -> float | None:
        """Return what the paper prints for what the ranking is over; None if nothing."""
        return published_vepd(model, self.whole)

    def row(self, model: str, scenario: str = POOLED) -> VepdRow | None:
        """Return a row; None where there is no run of both sides."""
        return next(
            (row for row in self.rows if (row.model, row.scenario) == (model, scenario)), None
        )

    def pooled(self) -> list[VepdRow]:
        """Return the pooled rows, the closest first."""
        return sorted(
            (row for row in self.rows if row.scenario == POOLED), key=lambda row: row.rank
        )

    def agreement(self, scenario: str = POOLED) -> float | None:
        """Return Kendall's tau between our order and the published one; None below 3 models."""
        pairs = [
            (row.vepd, published)
            for row in self.rows
            if row.scenario == scenario
            and (published := published_vepd(row.model, scenario)) is not None
        ]
        if len(pairs) < 3:
            return None
        tau = float(kendalltau(*zip(*pairs, strict=True)).statistic)
        return tau if tau == tau else None


def standings(outcome: StudyOutcome) -> list[Standing]:
    """Return how the models stand under each judge, in each group."""
    given: Mapping[str, Any] = outcome.record.get('uncertainty') or {}
    options = UncertaintyOptions.from_mapping(
        {key: value for key, value in given.items() if key in UncertaintyOptions.declared()},
        'uncertainty',
    )
    seed = int(outcome.record.get('seed', 0))
    found = []
    for judge in outcome.judges:
        for group in outcome.groups:
            real = outcome.of(judge, REAL, group=group)
            sims = {
                model: runs
                for model in outcome.models
                if (runs := outcome.of(judge, model, group=group))
            }
            if not real or not sims:
                continue
            known = uncertainty(
                ScoredRuns.of(real),
                {model: ScoredRuns.of(runs) for model, runs in sims.items()},
                options,
                seed=seed,
            )
            found.append(Standing(judge, group, tuple(outcome.table(judge, group)), known))
    return found
