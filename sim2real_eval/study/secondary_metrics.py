# SPDX-License-Identifier: Apache-2.0
"""Distances beside VEPD: does it hide something?"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.metrics.distances import POOLED
from sim2real_eval.metrics.options import MetricOptions
from sim2real_eval.metrics.published import RankAgreement, rank_agreement
from sim2real_eval.metrics.series_folder import REAL
from sim2real_eval.metrics.uncertainty.permutation_test import joint_p_values, permute_labels
from sim2real_eval.study.metric import Metric, MetricRun, MetricRuns, all_metrics
from sim2real_eval.study.outcome import StudyOutcome
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.measurements import FloatArray

LEVEL = 0.05
"""p-value below which a distance is significant."""

_MOST_PERMUTATIONS = 1000
_LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class MetricRow:
    """One metric for all models of a table, model by model; None where it cannot be had.

    Attributes
    ----------
    metric : Metric
    distances : tuple of float or None
    ranks : tuple of float or None
        1 is the smallest distance.
    p_values : tuple of float or None
        Share of permutations of real and simulated runs that give at least the distance.
    adjusted : tuple of float or None
        The same when the most striking of the metrics beside VEPD is picked; None for VEPD and its
        halves.
    with_vepd : RankAgreement
        Whether it ranks the models as VEPD does.
    """

    metric: Metric
    distances: tuple[float | None, ...]
    ranks: tuple[float | None, ...]
    p_values: tuple[float | None, ...]
    adjusted: tuple[float | None, ...]
    with_vepd: RankAgreement


@dataclasses.dataclass(frozen=True)
class MetricTable:
    """All metrics for all models, under one judge, of one group and scenario.

    Attributes
    ----------
    judge, group, scenario : str
        Scenario `all` pools them.
    models : tuple of str
    rows : tuple of MetricRow
    """

    judge: str
    group: str
    scenario: str
    models: tuple[str, ...]
    rows: tuple[MetricRow, ...]

    def hidden(self) -> dict[str, list[str]]:
        """Return which metrics see a difference that VEPD does not, by model.

        VEPD calls the model like reality at the 5 % level, and the metric, picked as one of all,
        does not: of models that are like reality at most 5 % are told so.
        """
        blind = {
            model
            for model, p_value in zip(self.models, self.rows[0].p_values, strict=True)
            if p_value is not None and p_value > LEVEL
        }
        found: dict[str, list[str]] = {}
        for row in self.rows:
            for model, p_value in zip(self.models, row.adjusted, strict=True):
                if model in blind and p_value is not None and p_value <= LEVEL:
                    found.setdefault(model, []).append(row.metric.name)
        return found


def metric_tables(outcome: StudyOutcome, options: MetricOptions) -> list[MetricTable]:
    """Return the tables of a study: judge by judge, group by group, scenarios and then all pooled.

    Parameters
    ----------
    outcome : StudyOutcome
    options : MetricOptions
        With which it was scored.
    """
    found = []
    metrics = all_metrics(outcome.record.get('more_metrics', ()))
    for judge, group in outcome.compared:
        sources = {
            model: [MetricRun(run.key, run.scenario, run.values, options, outcome) for run in runs]
            for model, runs in outcome.by_model(judge, group).items()
        }
        everyone = MetricRuns.of([run for runs in sources.values() for run in runs])
        scenarios = list(dict.fromkeys(run.scenario for run in sources[REAL]))
        for scenario in (*scenarios, *([POOLED] if len(scenarios) > 1 else [])):
            chosen = {
                model: [run for run in runs if scenario in (POOLED, run.scenario)]
                for model, runs in sources.items()
            }
            chosen = {model: runs for model, runs in chosen.items() if runs}
            rows = _rows(metrics, chosen, everyone, int(outcome.record['seed']))
            models = tuple(model for model in chosen if model != REAL)
            found.append(MetricTable(judge, group, scenario, models, tuple(rows)))
    return found


def _rows(
    metrics: Sequence[Metric],
    runs: Mapping[str, Sequence[MetricRun]],
    everyone: MetricRuns,
    seed: int,
) -> list[MetricRow]:
    real = runs[REAL]
    models = [model for model in runs if model != REAL]
    table = [run for found in runs.values() for run in found]
    distances = np.full((len(metrics), len(models)), np.nan)
    single, adjusted = distances.copy(), distances.copy()
    for column, model in enumerate(models):
        both = everyone.only([*real, *runs[model]], table)
        labels = permute_labels(
            [run.key.recording for run in real],
            [run.key.recording for run in runs[model]],
            _MOST_PERMUTATIONS,
            seed,
            strata=([run.scenario for run in real], [run.scenario for run in runs[model]]),
        )
        values = {
            number: found
            for number, metric in enumerate(metrics)
            if (found := _distances(metric, both, labels.real)) is not None
        }
        for is_secondary in (False, True):
            chosen = [n for n in values if metrics[n].is_secondary == is_secondary]
            if not chosen:
                continue
            p_values = joint_p_values(np.stack([values[number] for number in chosen]))
            rows = zip(chosen, p_values.single, p_values.adjusted, strict=True)
            for number, one, among in rows:
                distances[number, column] = values[number][0]
                single[number, column] = one
                adjusted[number, column] = among if is_secondary else np.nan
    settled = _without_rounding(distances)
    return [
        MetricRow(
            metric,
            _absent(distances[number]),
            _ranks(settled[number]),
            _absent(single[number]),
            _absent(adjusted[number]),
            rank_agreement(settled[number], settled[0]),
        )
        for number, metric in enumerate(metrics)
    ]


def _distances(metric: Metric, runs: MetricRuns, real: NDArray[np.bool_]) -> FloatArray | None:
    """Return the distance for each way to divide the runs; None where it cannot be had."""
    try:
        distance = metric.prepare(runs)
        return None if distance is None else distance.between(real)
    except Sim2RealError:
        raise
    except Exception as error:
        # The code of another package, which may raise anything: the study goes on without it.
        _LOG.warning('metric %s: left out: %s: %s', metric.name, type(error).__name__, error)
        return None


def _without_rounding(values: FloatArray) -> FloatArray:
    """Return values to nine digits, so that equal ones added up in another order share a rank."""
    return np.array([[float(f'{value:.9g}') for value in row] for row in values])


def _absent(values: FloatArray) -> tuple[float | None, ...]:
    return tuple(None if value != value else float(value) for value in values)


def _ranks(values: FloatArray) -> tuple[float | None, ...]:
    from scipy.stats import rankdata

    ranks = np.full(len(values), np.nan)
    known = np.isfinite(values)
    ranks[known] = rankdata(values[known])
    return _absent(ranks)
