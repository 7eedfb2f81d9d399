# SPDX-License-Identifier: Apache-2.0
"""How the models stand under one judge: distances with what resampling says of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from scipy.stats import kendalltau

from sim2real_eval.metrics.distances import POOLED, VepdRow
from sim2real_eval.metrics.published import published_vepd
from sim2real_eval.metrics.uncertainty.result import Uncertainty
from sim2real_eval.study.outcome import StudyOutcome
from sim2real_eval.study.secondary_results import study_uncertainty


@dataclasses.dataclass(frozen=True, eq=False)
class Standing:
    """Models under a judge in a group of recordings.

    Attributes
    ----------
    judge, group : str
        `group` is empty in a study without groups.
    rows : tuple of VepdRow
        Per scenario and pooled.
    uncertainty : mapping
        Scenario, or `all`, to what resampling says of its rows.
    """

    judge: str
    group: str
    rows: tuple[VepdRow, ...]
    uncertainty: Mapping[str, Uncertainty]

    @property
    def known(self) -> Uncertainty:
        """What is known of the pooled rows."""
        return self.uncertainty[POOLED]

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
    return [
        Standing(judge, group, tuple(outcome.table(judge, group)), known)
        for (judge, group), known in study_uncertainty(outcome).items()
    ]
