# SPDX-License-Identifier: Apache-2.0
"""All that is said of a study beside VEPD and its uncertainty: does VEPD hide something?"""

from __future__ import annotations

import dataclasses
import functools
import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.common.tables import Field, write_csv, write_json
from sim2real_eval.metrics.distances import POOLED, ranks
from sim2real_eval.metrics.options import MetricOptions
from sim2real_eval.metrics.published import RankAgreement, rank_agreement
from sim2real_eval.metrics.series_folder import REAL
from sim2real_eval.metrics.uncertainty.assessment import uncertainty, uncertainty_by_scenario
from sim2real_eval.metrics.uncertainty.motions import units_of
from sim2real_eval.metrics.uncertainty.permutation_test import joint_p_values, permute_labels
from sim2real_eval.metrics.uncertainty.result import Uncertainty, UncertaintyOptions
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.registry import raised_at
from .metric import Metric, MetricRun, MetricRuns, all_metrics
from .outcome import StudyOutcome
from .run import StudyRun, scored_runs
from .sensitivity import (
    RankedTable,
    RankingPair,
    SensitivityTable,
    ranking_pairs,
    sensitivity_tables,
)

LEVEL = 0.05
"""p-value below which a distance is significant."""

_MOST_PERMUTATIONS = 1000
_LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class MetricRow:
    """One metric for all models of a table, model by model; None where it cannot be had."""

    metric: Metric
    distances: tuple[float | None, ...]
    ranks: tuple[float | None, ...]  # 1 is the smallest distance
    # Share of permutations of real and simulated runs that give at least the distance.
    p_values: tuple[float | None, ...]
    # The same when the most striking of the metrics beside VEPD is picked; None for VEPD and its
    # halves.
    adjusted: tuple[float | None, ...]
    with_vepd: RankAgreement  # whether it ranks the models as VEPD does


class MetricTable(RankedTable[MetricRow]):
    """All metrics for all models."""

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

    `options`: with which it was scored.
    """
    found = []
    metrics = all_metrics(outcome.record.get('more_metrics', ()))
    for judge, group in outcome.compared:
        sources = {
            model: [MetricRun(run.key, run.scenario, run.values, options, outcome) for run in runs]
            for model, runs in outcome.by_model(judge, group).items()
        }
        every = [run for runs in sources.values() for run in runs]
        everyone = MetricRuns(every, every, every)
        scenarios = list(dict.fromkeys(run.scenario for run in sources[REAL]))
        for scenario in (*scenarios, *([POOLED] if len(scenarios) > 1 else [])):
            chosen = {
                model: [run for run in runs if scenario in (POOLED, run.scenario)]
                for model, runs in sources.items()
            }
            chosen = {model: runs for model, runs in chosen.items() if runs}
            rows = _rows(metrics, chosen, everyone, outcome)
            models = tuple(model for model in chosen if model != REAL)
            found.append(MetricTable(judge, group, scenario, models, tuple(rows)))
    return found


def _units(runs: Sequence[MetricRun], blocks: Mapping[str, str]) -> tuple[str, ...]:
    names, scenarios = ([run.key.recording for run in runs], [run.scenario for run in runs])
    return units_of(names, scenarios, [blocks.get(name, '') for name in names])


def _rows(
    metrics: Sequence[Metric],
    runs: Mapping[str, Sequence[MetricRun]],
    everyone: MetricRuns,
    outcome: StudyOutcome,
) -> list[MetricRow]:
    seed, blocks = int(outcome.record['seed']), outcome.blocks

    real = runs[REAL]
    models = [model for model in runs if model != REAL]
    table = [run for found in runs.values() for run in found]
    distances = np.full((len(metrics), len(models)), np.nan)
    single, adjusted = distances.copy(), distances.copy()
    for column, model in enumerate(models):
        both = dataclasses.replace(everyone, runs=[*real, *runs[model]], table=table)
        labels = permute_labels(
            [run.key.recording for run in real],
            [run.key.recording for run in runs[model]],
            _MOST_PERMUTATIONS,
            seed,
            strata=([run.scenario for run in real], [run.scenario for run in runs[model]]),
            units=(_units(real, blocks), _units(runs[model], blocks)) if blocks else None,
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
    # To nine digits, so that equal ones added up in another order share a rank.
    settled = np.array([[float(f'{value:.9g}') for value in row] for row in distances])
    return [
        MetricRow(
            metric,
            _absent(distances[number]),
            _absent(ranks(settled[number])),
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
        told = f'{type(error).__name__}: {error} ({raised_at(error, type(metric))})'
        _LOG.warning('metric %s: left out: %s', metric.name, told)
        return None


def _absent(values: FloatArray) -> tuple[float | None, ...]:
    return tuple(None if value != value else float(value) for value in values)


class PoseDifference(NamedTuple):
    """A distance between the errors that real and simulated sensors cause."""

    name: str
    quantity: str
    key: str  # of the RMSE of a run
    unit: str


POSE_DIFFERENCES = (
    PoseDifference('PEPD', 'position', 'position_rmse', 'm'),
    PoseDifference('HEPD', 'heading', 'yaw_rmse', 'rad'),
    PoseDifference('AEPD', 'attitude', 'orientation_rmse', 'rad'),
)
"""W1 between the RMSE of real and simulated runs, over the deviation of the real ones."""


class PoseRanking(NamedTuple):
    """What is known of one difference under a judge, over all scenarios of a group."""

    judge: str
    group: str
    difference: PoseDifference
    deviation: float  # of the RMSE of the real runs: the distance 1, in the unit of the difference
    known: Uncertainty

    @property
    def label(self) -> str:
        """Judge and group."""
        return f'{self.judge}, {self.group}' if self.group else self.judge

    def rows(self) -> Iterator[tuple[Field, ...]]:
        """Return a row of `POSE_COLUMNS` per model, the nearest first."""
        one = self.difference
        for model in self.known.order:
            values = {**vars(model), 'p_value_adjusted': model.adjusted}
            place = (self.judge, self.group, one.name, one.quantity, one.unit, self.deviation)
            yield *place, *(values[name] for name in POSE_COLUMNS[len(place) :])


POSE_COLUMNS = (
    'judge', 'group', 'difference', 'quantity', 'unit', 'deviation', 'model', 'n_real', 'n_sim',
    'distance', 'estimate', 'low', 'high', 'null_median', 'null_high', 'p_value',
    'p_value_adjusted', 'significance_groups',
)  # fmt: skip
"""Columns of pose.csv; from `model` on as `DistanceUncertainty` calls them."""


def _is_planar(run: StudyRun) -> bool:
    """Return whether the attitude of a run is wrong in its heading alone."""
    attitude, yaw = (run.values.get(key, math.nan) for key in ('orientation_rmse', 'yaw_rmse'))
    return math.isclose(attitude, yaw, rel_tol=1e-9)


def pose_rankings(outcome: StudyOutcome) -> tuple[PoseRanking, ...]:
    """Return all differences that every run of a judge and group has.

    Without that of the attitude where it would be that of the heading again: in the plane.

    The statistics are those of VEPD, of one coordinate: null distribution, interval, p-values.
    Whatever the unit, the result is the same. Real runs that do not differ have no deviation.
    """
    given: Mapping[str, Any] = outcome.record.get('uncertainty') or {}
    options = UncertaintyOptions.from_mapping(given, 'uncertainty')
    seed, found = int(outcome.record.get('seed', 0)), []
    for judge, group in outcome.compared:
        runs = outcome.by_model(judge, group)
        every = [run for of_model in runs.values() for run in of_model]
        for one in POSE_DIFFERENCES:
            if not all(one.key in run.values for run in every) or len(runs[REAL]) < 2:
                continue
            if one.key == 'orientation_rmse' and all(map(_is_planar, every)):
                continue
            deviation = float(np.std([run.values[one.key] for run in runs[REAL]], ddof=1))
            if not deviation > 0.0:
                continue
            sims = {
                model: scored_runs(of_model, outcome.blocks, {one.key: deviation})
                for model, of_model in runs.items()
            }
            real = sims.pop(REAL)
            known = uncertainty(real, sims, options, seed=seed)
            found.append(PoseRanking(judge, group, one, deviation, known))
    return tuple(found)


METRIC_COLUMNS = (
    'judge', 'group', 'scenario', 'model', 'metric', 'unit', 'distance', 'rank', 'p_value',
    'adjusted',
)  # fmt: skip
SENSITIVITY_COLUMNS = ('judge', 'group', 'scenario', 'model', 'variation', 'vepd', 'rank')


@dataclasses.dataclass(frozen=True)
class SideResults:
    """Metrics beside VEPD, sensitivity to its options, agreement of rankings, and the pose."""

    metrics: tuple[MetricTable, ...]
    sensitivity: tuple[SensitivityTable, ...]
    rankings: tuple[RankingPair, ...]
    poses: tuple[PoseRanking, ...] = ()

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
            'rankings': [dataclasses.asdict(pair) for pair in self.rankings],
            'metrics_with_vepd': [
                {
                    **table.place,
                    'hidden': table.hidden(),
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
        """Write metrics.csv, sensitivity.csv, pose.csv and agreement.json into a folder."""
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
        poses = (row for one in self.poses for row in one.rows())
        return (
            write_csv(folder / 'metrics.csv', METRIC_COLUMNS, metrics),
            write_csv(folder / 'sensitivity.csv', SENSITIVITY_COLUMNS, sensitivity),
            write_csv(folder / 'pose.csv', POSE_COLUMNS, poses),
            write_json(folder / 'agreement.json', self.to_mapping(), allow_nan=False),
        )


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
        pose_rankings(outcome),
    )


@functools.lru_cache(maxsize=1)
def study_uncertainty(outcome: StudyOutcome) -> Mapping[tuple[str, str], dict[str, Uncertainty]]:
    """Return the uncertainty of every scenario and pooled (`all`), by judge and group.

    That of the last study is remembered: its folder, its page and the terminal ask for the same.
    """
    given: Mapping[str, Any] = outcome.record.get('uncertainty') or {}
    options = UncertaintyOptions.from_mapping(given, 'uncertainty')
    seed = int(outcome.record.get('seed', 0))
    known = {}
    for judge, group in outcome.compared:
        runs = outcome.by_model(judge, group)
        sims = {model: scored_runs(found, outcome.blocks) for model, found in runs.items()}
        real = sims.pop(REAL)
        known[judge, group] = uncertainty_by_scenario(real, sims, options, seed=seed)
    return known


def uncertainty_records(outcome: StudyOutcome) -> list[dict[str, Any]]:
    """Return the content of uncertainty.json: a row per judge, group and scenario."""
    return [
        {'judge': judge, 'group': group, 'scenario': scenario, **known.to_mapping()}
        for (judge, group), scenarios in study_uncertainty(outcome).items()
        for scenario, known in scenarios.items()
    ]
