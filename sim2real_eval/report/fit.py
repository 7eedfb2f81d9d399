# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Tables, plot and result folder of `sim2real fit`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table
from rich.text import Text

from sim2real_eval.common.findings import to_records
from sim2real_eval.common.model_files import model_yaml
from sim2real_eval.metrics.options import REAL
from sim2real_eval.metrics.scores import RunScore
from sim2real_eval.study.fitting.assessment import AFTER, BEFORE, HELD_OUT, ParameterEstimate
from sim2real_eval.study.fitting.fit import FittedModel
from sim2real_eval.study.fitting.surface import METRICS
from sim2real_eval.study.run_plan import Judging
from sim_sensors.core.measurements import FloatArray
from . import palette, style
from .console import add_numbers, add_words, list_text, plain_table, round_text
from .run_plots import save_scores
from .search_layout import (
    CsvTable,
    judge_record,
    recording_record,
    result_header,
    write_search_result,
)


def fit_parameter_table(fit: FittedModel) -> Table:
    """Return a row per parameter: start, fitted value with interval, and verdict."""
    table = plain_table('Parameters', gap=1)
    add_words(table, 'parameter')
    add_numbers(table, 'start', 'fitted', f'{_level(fit)}\nfrom', '\nto')
    table.add_column('unit', no_wrap=True)
    add_words(table, 'known')
    values = fit.candidates.values[fit.validation.fitted]
    for estimate, value in zip(fit.parameters, values, strict=True):
        parameter = estimate.parameter
        table.add_row(
            Text(parameter.name),
            f'{parameter.start:.4g}',
            f'{value:.4g}',
            '-' if estimate.low_open else f'{estimate.low:.3g}',
            '-' if estimate.high_open else f'{estimate.high:.3g}',
            parameter.unit,
            estimate.verdict,
        )
    return table


def _level(fit: FittedModel) -> str:
    return f'{fit.options.uncertainty.level:.0%}'


def fit_gain_table(fit: FittedModel) -> Table:
    """Return the objective, and VEPD with its interval, before, after and held out."""
    validation = fit.validation
    vepd = validation.vepd
    table = plain_table('Distance of real and simulated runs: smaller is closer', gap=1)
    add_words(table, 'model')
    add_numbers(table, 'runs\nreal/sim')
    has_objective = fit.options.metric != 'vepd'
    if has_objective:
        add_numbers(table, f'\n{fit.options.metric}', style='bold')
    level = f'{vepd.options.level:.0%}'
    add_numbers(table, '\nscore', '\nVEPD', f'{level}\nfrom', '\nto', 'null\nmedian', '\np-value')
    objective = {BEFORE: validation.before, AFTER: validation.after, HELD_OUT: validation.held_out}
    for row in vepd.models:
        table.add_row(
            row.model,
            f'{row.n_real}/{row.n_sim}',
            *([round_text(objective[row.model])] if has_objective else []),
            *map(round_text, (validation.scores[row.model], row.distance, row.low, row.high)),
            round_text(row.null_median),
            '-' if row.p_value is None else f'{row.p_value:.2g}',
        )
    return table


_STEEP = 20.0


def profile_figure(fit: FittedModel) -> Figure:
    """Return a panel per parameter: its profile, the band of resamples, start, fit and interval.

    The profile is the objective at each value with all other parameters at their best. The band
    holds 90 % of the resamples of its increase over the fit. A profile that is flat inside its
    band belongs to a parameter that the recordings do not determine.
    """
    figure, panels = style.small_multiples(len(fit.parameters), 2, (5.2, 3.3), (0.4, 0.9))
    for panel, estimate in zip(panels, fit.parameters, strict=True):
        _draw_profile(panel, estimate, fit)
    style.figure_legend(figure, panels[0].get_legend_handles_labels()[0], 3, below=True)
    figure.suptitle(f'{_objective_text(fit, ".3g")}: {fit.validation.verdict}', fontsize=10)
    figure.supylabel(f'objective ({fit.options.metric}), others at their best', fontsize=9)
    return figure


def _objective_text(fit: FittedModel, form: str, separator: str = ':') -> str:
    validation = fit.validation
    held_out = validation.held_out
    held = '' if held_out is None else f', held out {held_out:{form}}'
    return (
        f'{fit.options.metric}{separator} before {validation.before:{form}}, '
        f'after {validation.after:{form}}{held}'
    )


def _draw_profile(panel: Axes, estimate: ParameterEstimate, fit: FittedModel) -> None:
    style.tidy(panel, grid=True)
    parameter = estimate.parameter
    panel.axvspan(
        estimate.low,
        estimate.high,
        color=palette.VERMILION,
        alpha=0.10,
        linewidth=0.0,
        label=f'{_level(fit)} interval',
    )
    panel.fill_between(
        estimate.values, *np.maximum(estimate.band, 1e-9), color=palette.BLUE, alpha=0.20,
        linewidth=0.0, label='90 % of resamples',
    )  # fmt: skip
    panel.plot(
        estimate.values, estimate.profile, color=palette.BLUE, linewidth=1.4, label='profile'
    )
    candidates = fit.candidates
    rows = candidates.usable & candidates.is_informative
    if len(fit.parameters) == 1:
        judged = METRICS[fit.options.metric](fit.real.points, candidates.points[rows])
        panel.plot(
            candidates.values[rows, 0], judged, 'o', color='black', markersize=3, label='judged'
        )
    panel.axvline(estimate.value, color=palette.VERMILION, linewidth=1.2, label='fitted')
    if parameter.low <= parameter.start <= parameter.high:
        panel.axvline(
            parameter.start,
            color=palette.REAL_COLOUR,
            linewidth=1.2,
            linestyle='--',
            label='start',
        )
    if parameter.log:
        style.log_x(panel)
    panel.set_xlim(parameter.low, parameter.high)
    top = float(max(estimate.profile.max(), estimate.band[1].max()))
    bottom = float(estimate.profile.min())
    if bottom > 0.0 and top > _STEEP * bottom:
        # On a linear axis the neighbourhood of the fit would be flat.
        panel.set_yscale('log')
        style.mark_log(panel.yaxis)
        panel.set_ylim(0.5 * bottom, 1.5 * top)
    else:
        panel.set_ylim(0.0, 1.05 * top)
    unit = f' [{parameter.unit}]' if parameter.unit else ''
    panel.set_xlabel(f'{parameter.name}{unit}', fontsize=9)
    panel.set_title(f'{estimate.value:.4g}: {estimate.verdict.partition(":")[0]}', fontsize=9)


MARK = 'fit.json'
"""File that every result of `fit` holds."""

_SENSORS = ('gps', 'imu')


def fit_record(fit: FittedModel, judging: Judging, given: Mapping[str, str]) -> dict[str, Any]:
    """Return everything needed to repeat and to interpret a fit, as JSON values.

    `given` holds the names of the models to start from, by `gps` and `imu`.
    """
    real, validation = fit.real, fit.validation
    options = judging.options
    values = fit.candidates.values
    return {
        **result_header(),
        'seed': options.seed,
        'component': options.component,
        'repetitions': options.repetitions,
        'match_rates': options.match_rates,
        'start_heading': options.start_heading,
        'off_ticks': options.off_ticks,
        'metric': options.metric.to_mapping(),
        'judge': judge_record(judging.setup),
        'objective': fit.options.metric,
        'given': dict(given),
        'verdict': validation.verdict,
        'before': validation.before,
        'after': validation.after,
        'held_out': validation.held_out,
        'scores': validation.scores,
        'p_value': validation.p_value,
        'vepd': validation.vepd.to_mapping(),
        'parameters': [
            _parameter_record(estimate, float(value))
            for estimate, value in zip(fit.parameters, values[validation.fitted], strict=True)
        ],
        'interpolation_error': fit.error,
        'folds': [
            {'held_out': [real.names[i] for i in held], 'fitted': values[candidate].tolist()}
            for held, candidate in zip(fit.folds, validation.fold_candidates, strict=True)
        ],
        'models': {
            sensor: REAL if model is None else model.to_mapping()
            for sensor in _SENSORS
            for model in [getattr(fit.twin, sensor)]
        },
        'candidates': len(values),
        'recordings': [
            recording_record(source, name, scenario=scenario)
            for source, name, scenario in zip(
                real.sources, real.names, real.scenarios, strict=True
            )
        ],
        'failures': [dataclasses.asdict(failure) for failure in real.failures],
        'notes': to_records(fit.notes),
    }


def _parameter_record(estimate: ParameterEstimate, fitted: float) -> dict[str, Any]:
    parameter = estimate.parameter
    return {
        'name': parameter.name,
        'unit': parameter.unit,
        'bounds': [parameter.low, parameter.high],
        'scale': 'log' if parameter.log else 'lin',
        'start': parameter.start,
        'fitted': fitted,
        'low': None if estimate.low_open else estimate.low,
        'high': None if estimate.high_open else estimate.high,
        'identifiable': estimate.is_identifiable,
        'at_bound': estimate.at_bound,
        'trades_with': estimate.trades_with,
        'verdict': estimate.verdict,
    }


def write_fit(
    folder: str | Path, fit: FittedModel, record: Mapping[str, Any], *, overwrite: bool = False
) -> None:
    """Write the models, fit.json, candidates.csv, runs.csv and the plots, or nothing."""

    def save_histograms(fresh: Path) -> None:
        runs = fit.validation.points.items()
        simulated = {name: _run_scores(points.reshape(-1, 2)) for name, points in runs}
        save_scores(fresh, _run_scores(fit.real.points), simulated)

    write_search_result(
        folder,
        MARK,
        record,
        texts={
            f'{sensor}.yaml': model_yaml(
                model, _header(fit, record), _comments(fit, sensor), with_defaults=True
            )
            for sensor in _SENSORS
            if (model := getattr(fit.twin, sensor)) is not None
        },
        tables={'candidates.csv': _candidate_table(fit), 'runs.csv': _run_table(fit)},
        figures={'profiles.png': profile_figure(fit)},
        extra=save_histograms,
        overwrite=overwrite,
    )


def _header(fit: FittedModel, record: Mapping[str, Any]) -> list[str]:
    names = ', '.join(estimate.parameter.name for estimate in fit.parameters)
    return [
        f'Fitted by `sim2real fit`: {names}.',
        f'{_objective_text(fit, ".4g", "")}: {fit.validation.verdict}.',
        f'Judge {record["judge"]["name"]}, {record["component"]} speed, seed {record["seed"]}, '
        f'{record["repetitions"]} draws each of {list_text(fit.real.names, 8)}.',
    ]


def _comments(fit: FittedModel, sensor: str) -> dict[str, str]:
    """Return the comment of each fitted parameter of a sensor, by dotted name."""
    comments = {}
    for estimate in fit.parameters:
        low = '?' if estimate.low_open else f'{estimate.low:.4g}'
        high = '?' if estimate.high_open else f'{estimate.high:.4g}'
        comment = f'fitted, {_level(fit)} from {low} to {high}: {estimate.verdict}'
        for target in estimate.parameter.targets:
            if target.sensor == sensor:
                comments['.'.join(target.path)] = comment
    return comments


def _candidate_table(fit: FittedModel) -> CsvTable:
    candidates = fit.candidates
    objectives = np.full((len(candidates.values), len(METRICS)), np.nan)
    usable = candidates.usable
    for column, metric in enumerate(METRICS.values()):
        objectives[usable, column] = metric(fit.real.points, candidates.points[usable])
    rows = zip(candidates.values, objectives, strict=True)
    return (
        ('candidate', *(estimate.parameter.name for estimate in fit.parameters), *METRICS),
        [(number, *values, *row) for number, (values, row) in enumerate(rows)],
    )


def _run_table(fit: FittedModel) -> CsvTable:
    real = fit.real
    return (
        ('model', 'scenario', 'recording', 'repetition', 'rmse', 'entropy_difference'),
        [
            (name, scenario, recording, draw, *point)
            for name, points in {REAL: real.points[:, None], **fit.validation.points}.items()
            for recording, scenario, draws in zip(real.names, real.scenarios, points, strict=True)
            for draw, point in enumerate(draws, 1)
        ],
    )


def _run_scores(points: FloatArray) -> list[RunScore]:
    # The histograms use only the two numbers that VEPD compares.
    nan = float('nan')
    return [RunScore(float(rmse), nan, nan, float(gap), 0, nan) for rmse, gap in points]
