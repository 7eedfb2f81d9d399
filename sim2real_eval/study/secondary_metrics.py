# SPDX-License-Identifier: Apache-2.0
"""Distances beside VEPD: does it hide something?"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from sim2real_eval.metrics.distances import POOLED, EnergyDistance
from sim2real_eval.metrics.error_curves import CurveDistance, error_autocorrelations, error_spectra
from sim2real_eval.metrics.options import MetricOptions
from sim2real_eval.metrics.published import RankAgreement, rank_agreement
from sim2real_eval.metrics.series_folder import REAL
from sim2real_eval.metrics.uncertainty.interval import MeanWasserstein
from sim2real_eval.metrics.uncertainty.permutation_test import (
    Divisible,
    joint_p_values,
    permute_labels,
)
from sim2real_eval.signals.distances import SpectrumDistance
from sim2real_eval.study.outcome import StudyOutcome, speed_error
from sim2real_eval.study.run import RunKey, StudyRun
from sim_sensors.core.measurements import FloatArray

__all__ = ['METRICS', 'Metric', 'MetricRow', 'MetricTable', 'metric_tables']

LEVEL = 0.05
"""p-value below which a distance is significant."""

_MOST_PERMUTATIONS = 1000
_LEAST_RATIO = 1e-6


class Metric(NamedTuple):
    """A distance between two sets of runs.

    Attributes
    ----------
    name, unit : str
    values : tuple of str
        Values of `StudyRun` whose W1 it is, averaged over them; empty for a distance of curves.
    logarithmic : bool
        Whether the decimal logarithm of the values is compared.
    """

    name: str
    unit: str
    values: tuple[str, ...] = ()
    logarithmic: bool = False


METRICS = (
    Metric('VEPD', '', ('rmse', 'entropy_difference')),
    Metric('W1 RMSE', 'm/s', ('rmse',)),
    Metric('W2 entropy', '', ('entropy_difference',)),
    Metric('energy', ''),
    Metric('bias', 'm/s', ('speed_bias',)),
    Metric('forward', 'm/s', ('forward_rmse',)),
    Metric('position', 'm', ('position_rmse',)),
    Metric('yaw', 'rad', ('yaw_rmse',)),
    Metric('autocorrelation', ''),
    Metric('spectrum', 'dB'),
    Metric('NIS', 'decades', ('nis_gps', 'nis_imu'), logarithmic=True),
    Metric('NEES', 'decades', ('nees_position', 'nees_velocity'), logarithmic=True),
)
"""VEPD, its two halves, and what is looked at beside it; see docs/metrics.md."""

_BESIDE = 3
_NUMBERED = tuple(enumerate(METRICS))


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
    for judge, group in outcome.compared:
        sources = outcome.by_model(judge, group)
        curves = _Curves.of(outcome, [run for runs in sources.values() for run in runs], options)
        scenarios = list(dict.fromkeys(run.scenario for run in sources[REAL]))
        for scenario in (*scenarios, *([POOLED] if len(scenarios) > 1 else [])):
            chosen = {
                model: [run for run in runs if scenario in (POOLED, run.scenario)]
                for model, runs in sources.items()
            }
            chosen = {model: runs for model, runs in chosen.items() if runs}
            rows = _rows(chosen, curves, int(outcome.record['seed']))
            models = tuple(model for model in chosen if model != REAL)
            found.append(MetricTable(judge, group, scenario, models, tuple(rows)))
    return found


@dataclasses.dataclass(frozen=True, eq=False)
class _Curves:
    """Autocorrelation and spectrum of the speed error of every run, each worked out once."""

    row: Mapping[RunKey, int]
    autocorrelation: FloatArray
    spectrum: FloatArray

    @classmethod
    def of(
        cls, outcome: StudyOutcome, runs: Sequence[StudyRun], options: MetricOptions
    ) -> _Curves:
        component = str(outcome.record['component'])
        errors = [speed_error(outcome.signals(run.key), component, options) for run in runs]
        return cls(
            {run.key: number for number, run in enumerate(runs)},
            error_autocorrelations(errors, options.rate),
            error_spectra(errors, options.rate),
        )


def _rows(runs: Mapping[str, Sequence[StudyRun]], curves: _Curves, seed: int) -> list[MetricRow]:
    real = runs[REAL]
    models = [model for model in runs if model != REAL]
    everyone = [run for found in runs.values() for run in found]
    scale = _values(everyone, METRICS[0]).std(axis=0)
    distances = np.full((len(METRICS), len(models)), np.nan)
    single, adjusted = distances.copy(), distances.copy()
    for column, model in enumerate(models):
        both = [*real, *runs[model]]
        labels = permute_labels(
            [run.key.recording for run in real],
            [run.key.recording for run in runs[model]],
            _MOST_PERMUTATIONS,
            seed,
            strata=([run.scenario for run in real], [run.scenario for run in runs[model]]),
        )
        given = {number: _distance(metric, both, curves, scale) for number, metric in _NUMBERED}
        values = {
            number: distance.between(labels.real)
            for number, distance in given.items()
            if distance is not None
        }
        for chosen in (
            [number for number in values if number < _BESIDE],
            [number for number in values if number >= _BESIDE],
        ):
            told = joint_p_values(np.stack([values[number] for number in chosen]))
            for number, one, among in zip(chosen, told.single, told.adjusted, strict=True):
                distances[number, column] = values[number][0]
                single[number, column] = one
                adjusted[number, column] = np.nan if number < _BESIDE else among
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
        for number, metric in enumerate(METRICS)
    ]


def _values(runs: Sequence[StudyRun], metric: Metric) -> FloatArray:
    """Return the values of a metric, (runs, k); those that a run has not as NaN."""
    names = metric.values or METRICS[0].values
    found = np.array([[run.values.get(name, np.nan) for name in names] for run in runs])
    # A part that is missing throughout, as the NIS of an IMU that is no measurement, counts not.
    if np.isnan(found).all(axis=0).any() and not np.isnan(found).all():
        found = found[:, ~np.isnan(found).all(axis=0)]
    return np.log10(np.maximum(found, _LEAST_RATIO)) if metric.logarithmic else found


def _distance(
    metric: Metric, runs: Sequence[StudyRun], curves: _Curves, scale: FloatArray
) -> Divisible | None:
    """Return the distance, None when a run lacks what it takes."""
    rows = [curves.row[run.key] for run in runs]
    if metric.name == 'autocorrelation':
        return CurveDistance(curves.autocorrelation[rows])
    if metric.name == 'spectrum':
        return SpectrumDistance(curves.spectrum[rows])
    values = _values(runs, metric)
    if not np.isfinite(values).all():
        return None
    return (
        EnergyDistance.of(values, scale) if metric.name == 'energy' else MeanWasserstein.of(values)
    )


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
