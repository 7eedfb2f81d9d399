# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Results of a study in addition to VEPD: other metrics, sensitivity, pose differences."""

from __future__ import annotations

import dataclasses
import functools
import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sim2real_eval.common.results import Field, write_csv, write_json
from sim2real_eval.metrics.interval import units_of
from sim2real_eval.metrics.options import REAL, MetricOptions, UncertaintyOptions
from sim2real_eval.metrics.permutation_test import (
    LabelPermutations,
    joint_p_values,
    permute_labels,
)
from sim2real_eval.metrics.published import RankAgreement, rank_agreement
from sim2real_eval.metrics.scores import POOLED, ranks
from sim2real_eval.metrics.uncertainty import Uncertainty, uncertainty, uncertainty_by_scenario
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.registry import raised_at
from .metric import VEPD, Metric, MetricRun, MetricRuns, all_metrics
from .outcome import StudyOutcome, scored_runs
from .run import StudyRun
from .sensitivity import (
    RankedTable,
    RankingPair,
    SensitivityTable,
    ranking_pairs,
    sensitivity_tables,
)

LEVEL = 0.05
"""p-value below which a distance is significant."""

MAX_RUNS = 500
"""Largest number of runs of a study that computes all secondary results."""
SIDE_FILES = ('metrics.csv', 'agreement.json', 'sensitivity.csv', 'pose.csv')
"""Files of complete secondary results."""

_MAX_PERMUTATIONS = 1000
_LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class MetricRow:
    """One metric for all models of a table; None for a value that cannot be computed."""

    metric: Metric
    distances: tuple[float | None, ...]
    ranks: tuple[float | None, ...]  # 1 is the smallest distance
    # P-values of the permutation test of this metric; None if there are too few runs
    p_values: tuple[float | None, ...]
    # P-values of the joint test of VEPD and the other metrics; None for the two parts of VEPD
    adjusted: tuple[float | None, ...]
    with_vepd: RankAgreement  # agreement with the ranks of VEPD


class MetricTable(RankedTable[MetricRow]):
    """All metrics for all models."""

    def p_values(self, model: str) -> dict[str, float]:
        """Return the p-values of the joint test of all metrics for a model, VEPD first.

        Each is adjusted for the number of metrics: for a model that equals reality, any p-value is
        below 5 % with a probability of at most 5 %.
        """
        column = self.models.index(model)
        return {
            row.metric.name: p_value
            for row in self.rows
            if (p_value := row.adjusted[column]) is not None
        }

    def detected_by(self, model: str) -> list[str]:
        """Return the metrics by which a model differs significantly from reality."""
        return [name for name, value in self.p_values(model).items() if value <= LEVEL]

    def undetected_by_vepd(self) -> dict[str, list[str]]:
        """Return the metrics that detect a difference which VEPD does not detect, by model."""
        detected = {model: self.detected_by(model) for model in self.models}
        return {model: names for model, names in detected.items() if names and VEPD not in names}


def metric_tables(outcome: StudyOutcome, options: MetricOptions) -> list[MetricTable]:
    """Return the tables of each judge, group and scenario, and of all scenarios pooled.

    `options` are the metric options of the study.
    """
    tables = []
    metrics = all_metrics(outcome.record.get('more_metrics', ()))
    for judge, group in outcome.compared_pairs:
        sources = {
            model: [MetricRun(run.key, run.scenario, run.values, options, outcome) for run in runs]
            for model, runs in outcome.by_model(judge, group).items()
        }
        runs_of_group = [run for runs in sources.values() for run in runs]
        all_runs = MetricRuns(runs_of_group, runs_of_group, runs_of_group)
        scenarios = list(dict.fromkeys(run.scenario for run in sources[REAL]))
        for scenario in (*scenarios, *([POOLED] if len(scenarios) > 1 else [])):
            selected = {
                model: [run for run in runs if scenario in (POOLED, run.scenario)]
                for model, runs in sources.items()
            }
            selected = {model: runs for model, runs in selected.items() if runs}
            rows = _metric_rows(metrics, selected, all_runs, outcome)
            models = tuple(model for model in selected if model != REAL)
            tables.append(MetricTable(judge, group, scenario, models, tuple(rows)))
    return tables


def _units(runs: Sequence[MetricRun], blocks: Mapping[str, str]) -> tuple[str, ...]:
    names = [run.key.recording for run in runs]
    scenarios = [run.scenario for run in runs]
    return units_of(names, scenarios, [blocks.get(name, '') for name in names])


def _metric_rows(
    metrics: Sequence[Metric],
    runs: Mapping[str, Sequence[MetricRun]],
    all_runs: MetricRuns,
    outcome: StudyOutcome,
) -> list[MetricRow]:
    """Return a row per metric, with a joint permutation test of all metrics for each model."""
    seed, blocks = int(outcome.record['seed']), outcome.blocks
    real = runs[REAL]
    models = [model for model in runs if model != REAL]
    table = [run for model_runs in runs.values() for run in model_runs]
    distances = np.full((len(metrics), len(models)), np.nan)
    single, adjusted = distances.copy(), distances.copy()
    for column, model in enumerate(models):
        compared = dataclasses.replace(all_runs, runs=[*real, *runs[model]], table=table)
        labels = permute_labels(
            [run.key.recording for run in real],
            [run.key.recording for run in runs[model]],
            _MAX_PERMUTATIONS,
            seed,
            strata=([run.scenario for run in real], [run.scenario for run in runs[model]]),
            units=(_units(real, blocks), _units(runs[model], blocks)) if blocks else None,
        )
        values = {
            number: metric_distances
            for number, metric in enumerate(metrics)
            if (metric_distances := _distances(metric, compared, labels)) is not None
        }
        if not values:
            continue
        distances[list(values), column] = [permuted[0] for permuted in values.values()]
        if labels.least > LEVEL:
            continue  # No distance could be significant, so there is no test.
        single[list(values), column] = joint_p_values(np.stack([*values.values()])).single
        family = [number for number in values if metrics[number].is_tested]
        if family:
            p_values = joint_p_values(np.stack([values[number] for number in family]))
            adjusted[family, column] = p_values.adjusted
    # Rounded, so that distances that differ only by the order of summation share a rank.
    rounded = np.array([[float(f'{value:.9g}') for value in row] for row in distances])
    return [
        MetricRow(
            metric,
            _nan_to_none(distances[number]),
            _nan_to_none(ranks(rounded[number])),
            _nan_to_none(single[number]),
            _nan_to_none(adjusted[number]),
            rank_agreement(rounded[number], rounded[0]),
        )
        for number, metric in enumerate(metrics)
    ]


def _distances(metric: Metric, runs: MetricRuns, labels: LabelPermutations) -> FloatArray | None:
    """Return the distance for each permutation, or None if it cannot be computed."""
    try:
        distance = metric.prepare(runs)
        return None if distance is None else labels.distances(distance)
    except Sim2RealError:
        raise
    except Exception as error:
        # A metric of the user may raise any error; the study continues without this metric.
        reason = f'{type(error).__name__}: {error} ({raised_at(error, type(metric))})'
        _LOG.warning('metric %s: left out: %s', metric.name, reason)
        return None


def _nan_to_none(values: FloatArray) -> tuple[float | None, ...]:
    return tuple(None if value != value else float(value) for value in values)


class PoseDifference(NamedTuple):
    """A distance between the errors that real and simulated sensors cause."""

    name: str
    quantity: str
    key: str  # key of the RMSE in the values of a run
    unit: str


POSE_DIFFERENCES = (
    PoseDifference('PEPD', 'position', 'position_rmse', 'm'),
    PoseDifference('HEPD', 'heading', 'yaw_rmse', 'rad'),
    PoseDifference('AEPD', 'attitude', 'orientation_rmse', 'rad'),
)
"""Wasserstein-1 distances between the RMSE of real and simulated runs.

They are divided by the standard deviation of the RMSE of the real runs.
"""


class PoseRanking(NamedTuple):
    """The models ranked by one pose difference, over all scenarios of a judge and group."""

    judge: str
    group: str
    difference: PoseDifference
    deviation: float  # standard deviation of the RMSE of the real runs, the unit of distances
    uncertainty: Uncertainty

    @property
    def label(self) -> str:
        """Judge and group."""
        return f'{self.judge}, {self.group}' if self.group else self.judge

    def rows(self) -> Iterator[tuple[Field, ...]]:
        """Return a row of `POSE_COLUMNS` per model, the nearest first."""
        name, quantity, _, unit = self.difference
        for model in self.uncertainty.order:
            values = {**vars(model), 'p_value_adjusted': model.adjusted}
            place = (self.judge, self.group, name, quantity, unit, self.deviation)
            yield *place, *(values[column] for column in POSE_COLUMNS[len(place) :])


POSE_COLUMNS = (
    'judge', 'group', 'difference', 'quantity', 'unit', 'deviation', 'model', 'n_real', 'n_sim',
    'distance', 'estimate', 'low', 'high', 'null_median', 'null_high', 'p_value',
    'p_value_adjusted', 'significance_groups',
)  # fmt: skip
"""Columns of pose.csv; from `model` on they are attributes of `DistanceUncertainty`."""


def _is_planar(run: StudyRun) -> bool:
    """Return whether the attitude error of a run is its heading error."""
    attitude, yaw = (run.values.get(key, math.nan) for key in ('orientation_rmse', 'yaw_rmse'))
    return math.isclose(attitude, yaw, rel_tol=1e-9)


def pose_rankings(outcome: StudyOutcome) -> tuple[PoseRanking, ...]:
    """Return the rankings by each pose difference that all runs of a judge and group have.

    The statistics are those of VEPD for a single coordinate. Attitude is omitted if all runs are
    planar, because it would repeat the heading. A difference is also omitted if all real runs have
    the same RMSE.
    """
    options, seed = _uncertainty_options(outcome)
    rankings = []
    for judge, group in outcome.compared_pairs:
        runs = outcome.by_model(judge, group)
        all_runs = [run for model_runs in runs.values() for run in model_runs]
        for difference in POSE_DIFFERENCES:
            key = difference.key
            if not all(key in run.values for run in all_runs) or len(runs[REAL]) < 2:
                continue
            if key == 'orientation_rmse' and all(map(_is_planar, all_runs)):
                continue
            deviation = float(np.std([run.values[key] for run in runs[REAL]], ddof=1))
            if not deviation > 0.0:
                continue
            scored = {
                model: scored_runs(model_runs, outcome.blocks, {key: deviation})
                for model, model_runs in runs.items()
            }
            uncertainties = uncertainty(scored.pop(REAL), scored, options, seed=seed)
            rankings.append(PoseRanking(judge, group, difference, deviation, uncertainties))
    return tuple(rankings)


def _uncertainty_options(outcome: StudyOutcome) -> tuple[UncertaintyOptions, int]:
    """Return the options of the statistics and the seed of a study."""
    values: Mapping[str, Any] = outcome.record.get('uncertainty') or {}
    options = UncertaintyOptions.from_mapping(values, 'uncertainty')
    return options, int(outcome.record.get('seed', 0))


METRIC_COLUMNS = (
    'judge', 'group', 'scenario', 'model', 'metric', 'unit', 'distance', 'rank', 'p_value',
    'adjusted',
)  # fmt: skip
SENSITIVITY_COLUMNS = ('judge', 'group', 'scenario', 'model', 'variation', 'vepd', 'rank')


@dataclasses.dataclass(frozen=True)
class SideResults:
    """Other metrics, sensitivity to the options of VEPD, rank agreement and pose differences."""

    metrics: tuple[MetricTable, ...]
    sensitivity: tuple[SensitivityTable, ...]
    rankings: tuple[RankingPair, ...]
    poses: tuple[PoseRanking, ...] = ()
    is_complete: bool = True
    """Whether sensitivity and pose differences were computed."""

    @property
    def overall_metrics(self) -> list[MetricTable]:
        """Metrics of every judge and group over all scenarios."""
        # The table of all scenarios is the last one of its judge and group.
        return list({(table.judge, table.group): table for table in self.metrics}.values())

    @property
    def overall_sensitivity(self) -> list[SensitivityTable]:
        """Sensitivity of every judge and group over all scenarios."""
        return list({(table.judge, table.group): table for table in self.sensitivity}.values())

    def to_mapping(self) -> dict[str, Any]:
        """Return the content of agreement.json.

        It holds the rank agreement, and differences that only other metrics detect.
        """
        return {
            'rankings': [dataclasses.asdict(pair) for pair in self.rankings],
            'metrics_with_vepd': [
                {
                    **table.place,
                    'hidden': table.undetected_by_vepd(),
                    'agreement': {
                        row.metric.name: dataclasses.asdict(row.with_vepd) for row in table.rows
                    },
                }
                for table in self.metrics
            ],
            'variations_with_own': [
                {
                    **table.place,
                    'agreement': {
                        row.label: dataclasses.asdict(row.with_own) for row in table.rows
                    },
                    'problems': {row.label: row.problem for row in table.rows if row.problem},
                }
                for table in self.sensitivity
            ],
        }

    def write(self, folder: str | Path) -> tuple[Path, ...]:
        """Write metrics.csv, agreement.json and, if complete, sensitivity.csv and pose.csv."""
        folder = Path(folder)
        metrics = (
            (
                *table.place.values(), model, row.metric.name, row.metric.unit,
                row.distances[k], row.ranks[k], row.p_values[k], row.adjusted[k],
            )
            for table in self.metrics
            for k, model in enumerate(table.models)
            for row in table.rows
        )  # fmt: skip
        sensitivity = (
            (*table.place.values(), model, row.label, row.vepd[k], row.ranks[k])
            for table in self.sensitivity
            for k, model in enumerate(table.models)
            for row in table.rows
        )
        poses = (row for ranking in self.poses for row in ranking.rows())
        files = [
            write_csv(folder / 'metrics.csv', METRIC_COLUMNS, metrics),
            write_json(folder / 'agreement.json', self.to_mapping(), allow_nan=False),
        ]
        if self.is_complete:
            files += [
                write_csv(folder / 'sensitivity.csv', SENSITIVITY_COLUMNS, sensitivity),
                write_csv(folder / 'pose.csv', POSE_COLUMNS, poses),
            ]
        return tuple(files)


@functools.lru_cache(maxsize=1)
def side_results(outcome: StudyOutcome) -> SideResults:
    """Return the secondary results of a study; those of the last study are cached.

    With more than `MAX_RUNS` runs, sensitivity and pose differences are computed only if
    `outcome.complete` is set, because they take as long as all other results.
    """
    options = MetricOptions.from_mapping(dict(outcome.record['metric']), where='study')
    is_complete = outcome.complete or not has_many_runs(outcome)
    return SideResults(
        tuple(metric_tables(outcome, options)),
        tuple(sensitivity_tables(outcome, options)) if is_complete else (),
        tuple(ranking_pairs(outcome)),
        pose_rankings(outcome) if is_complete else (),
        is_complete,
    )


def has_many_runs(outcome: StudyOutcome) -> bool:
    """Return whether the study has more than `MAX_RUNS` runs, see `side_results`."""
    return len(outcome.runs) > MAX_RUNS


@functools.lru_cache(maxsize=1)
def study_uncertainty(outcome: StudyOutcome) -> Mapping[tuple[str, str], dict[str, Uncertainty]]:
    """Return, by judge and group, the uncertainty of each scenario and of all scenarios pooled.

    The result of the last study is cached.
    """
    options, seed = _uncertainty_options(outcome)
    uncertainties = {}
    for judge, group in outcome.compared_pairs:
        runs = outcome.by_model(judge, group)
        scored = {
            model: scored_runs(model_runs, outcome.blocks) for model, model_runs in runs.items()
        }
        real = scored.pop(REAL)
        uncertainties[judge, group] = uncertainty_by_scenario(real, scored, options, seed=seed)
    return uncertainties


def uncertainty_records(outcome: StudyOutcome) -> list[dict[str, Any]]:
    """Return the content of uncertainty.json: a row per judge, group and scenario."""
    return [
        {'judge': judge, 'group': group, 'scenario': scenario, **result.to_mapping()}
        for (judge, group), scenarios in study_uncertainty(outcome).items()
        for scenario, result in scenarios.items()
    ]
