# SPDX-License-Identifier: Apache-2.0
"""All that is said of a study beside VEPD and its uncertainty, and its files."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sim2real_eval.common.tables import Field, write_csv, write_json
from sim2real_eval.metrics.options import MetricOptions
from sim2real_eval.metrics.series_folder import REAL
from sim2real_eval.metrics.uncertainty.assessment import uncertainty_by_scenario
from sim2real_eval.metrics.uncertainty.result import Uncertainty, UncertaintyOptions
from sim2real_eval.study.outcome import StudyOutcome
from sim2real_eval.study.run import scored_runs
from sim2real_eval.study.secondary_metrics import MetricTable, metric_tables
from sim2real_eval.study.sensitivity import (
    RankingPair,
    SensitivityTable,
    ranking_pairs,
    sensitivity_tables,
)

METRIC_COLUMNS = (
    'judge', 'group', 'scenario', 'model', 'metric', 'unit', 'distance', 'rank', 'p_value',
    'adjusted',
)  # fmt: skip
SENSITIVITY_COLUMNS = ('judge', 'group', 'scenario', 'model', 'variation', 'vepd', 'rank')


@dataclasses.dataclass(frozen=True)
class SideResults:
    """Metrics beside VEPD, sensitivity to the metric's options, agreement of rankings.

    Attributes
    ----------
    metrics : tuple of MetricTable
    sensitivity : tuple of SensitivityTable
    rankings : tuple of RankingPair
    """

    metrics: tuple[MetricTable, ...]
    sensitivity: tuple[SensitivityTable, ...]
    rankings: tuple[RankingPair, ...]

    @property
    def overall_metrics(self) -> list[MetricTable]:
        """Metrics of every judge and group over all scenarios, or the only one."""
        # The widest comes last.
        return list({(one.judge, one.group): one for one in self.metrics}.values())

    @property
    def overall_sensitivity(self) -> list[SensitivityTable]:
        """The same of the sensitivity."""
        return list({(one.judge, one.group): one for one in self.sensitivity}.values())

    def to_mapping(self) -> dict[str, Any]:
        """Return what the CSV files do not hold: rank correlations and what VEPD hides."""
        return {
            'rankings': [pair.to_mapping() for pair in self.rankings],
            'metrics_with_vepd': [
                {
                    'judge': table.judge,
                    'group': table.group,
                    'scenario': table.scenario,
                    'hidden': table.hidden(),
                    'agreement': {
                        row.metric.name: dataclasses.asdict(row.with_vepd) for row in table.rows
                    },
                }
                for table in self.metrics
            ],
            'variations_with_own': [
                {
                    'judge': table.judge,
                    'group': table.group,
                    'scenario': table.scenario,
                    'agreement': {
                        row.label: dataclasses.asdict(row.with_own) for row in table.rows
                    },
                    'problems': {row.label: row.problem for row in table.rows if row.problem},
                }
                for table in self.sensitivity
            ],
        }

    def write(self, folder: str | Path) -> tuple[Path, Path, Path]:
        """Write metrics.csv, sensitivity.csv and agreement.json into a study's folder."""
        folder = Path(folder)
        return (
            write_csv(folder / 'metrics.csv', METRIC_COLUMNS, self._metric_rows()),
            write_csv(folder / 'sensitivity.csv', SENSITIVITY_COLUMNS, self._sensitivity_rows()),
            write_json(folder / 'agreement.json', self.to_mapping(), allow_nan=False),
        )

    def _metric_rows(self) -> Iterator[tuple[Field, ...]]:
        for table in self.metrics:
            for number, model in enumerate(table.models):
                for row in table.rows:
                    values = (row.distances, row.ranks, row.p_values, row.adjusted)
                    numbers = [column[number] for column in values]
                    labels = (table.judge, table.group, table.scenario, model)
                    yield (*labels, row.metric.name, row.metric.unit, *numbers)

    def _sensitivity_rows(self) -> Iterator[tuple[Field, ...]]:
        for table in self.sensitivity:
            for number, model in enumerate(table.models):
                for row in table.rows:
                    labels = (table.judge, table.group, table.scenario, model, row.label)
                    yield (*labels, row.vepd[number], row.ranks[number])


@functools.lru_cache(maxsize=1)
def side_results(outcome: StudyOutcome) -> SideResults:
    """Return all of it: a function of the study alone.

    That of the last study is remembered: its folder and the terminal ask for the same.
    """
    options = MetricOptions.from_mapping(dict(outcome.record['metric']), where='study')
    return SideResults(
        tuple(metric_tables(outcome, options)),
        tuple(sensitivity_tables(outcome, options)),
        tuple(ranking_pairs(outcome)),
    )


# Uncertainty of the distances of a study, by judge, group and scenario.


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
        real = scored_runs(outcome.of(judge, REAL, group=group))
        sims = {
            model: scored_runs(runs)
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
