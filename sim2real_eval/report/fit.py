# SPDX-License-Identifier: Apache-2.0
"""A fit: tables, plot, and the folder that `sim2real fit` writes."""

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
from sim2real_eval.common.results import file_digest, fresh_folder, versions
from sim2real_eval.common.tables import write_bytes, write_csv, write_json
from sim2real_eval.metrics.scores import RunScore
from sim2real_eval.metrics.series_folder import REAL
from sim2real_eval.recording.metadata import recording_digest
from sim2real_eval.study.fitting.fit import Fit
from sim2real_eval.study.fitting.objective import METRICS
from sim2real_eval.study.fitting.tuned import model_yaml
from sim2real_eval.study.fitting.validation import AFTER, BEFORE, HELD_OUT, Identified
from sim2real_eval.study.run_plan import Judging
from sim_sensors.core.measurements import FloatArray
from . import palette, style
from .console import add_numbers, add_words, listed, plain_table, rounded
from .run_plots import save_scores


def fit_parameter_table(fit: Fit) -> Table:
    """Return a row per parameter: start, fitted value with interval, and what is known of it."""
    level = f'{fit.options.uncertainty.level:.0%}'
    table = plain_table('Parameters', gap=1)
    add_words(table, 'parameter')
    add_numbers(table, 'start', 'fitted', f'{level}\nfrom', '\nto')
    table.add_column('unit', no_wrap=True)
    add_words(table, 'known')
    values = fit.evaluations.values[fit.validation.fitted]
    for one, value in zip(fit.parameters, values, strict=True):
        table.add_row(
            Text(one.tuned.name),
            f'{one.tuned.start:.4g}',
            f'{value:.4g}',
            '-' if one.low_open else f'{one.low:.3g}',
            '-' if one.high_open else f'{one.high:.3g}',
            one.tuned.unit,
            one.verdict,
        )
    return table


def fit_gain_table(fit: Fit) -> Table:
    """Return the objective, and VEPD with its interval, before, after and held out."""
    validation = fit.validation
    known = validation.known
    level = f'{known.options.level:.0%}'
    table = plain_table('Real runs against simulated ones: smaller is closer', gap=1)
    add_words(table, 'model')
    add_numbers(table, 'runs\nreal/sim')
    own = fit.options.metric != 'vepd'
    if own:
        add_numbers(table, f'\n{fit.options.metric}', style='bold')
    add_numbers(table, '\nscore', '\nVEPD', f'{level}\nfrom', '\nto', 'null\nmedian', '\np-value')
    best = {BEFORE: validation.before, AFTER: validation.after, HELD_OUT: validation.held_out}
    for one in known.models:
        table.add_row(
            one.model,
            f'{one.n_real}/{one.n_sim}',
            *([rounded(best[one.model])] if own else []),
            *map(rounded, (validation.scores[one.model], one.distance, one.low, one.high)),
            rounded(one.null_median),
            '-' if one.p_value is None else f'{one.p_value:.2g}',
        )
    return table


_STEEP = 20.0


def profile_figure(fit: Fit) -> Figure:
    """Return a panel per parameter: its profile, the band of resamples, start, fit and interval.

    The profile is the objective at each value with all other parameters at their best; the band is
    what 90 % of the resamples say of how much worse than the fit it is. A flat profile inside its
    band is a parameter of which the recordings say nothing.
    """
    figure, panels = style.small_multiples(len(fit.parameters), 2, (5.2, 3.3), (0.4, 0.9))
    for panel, one in zip(panels, fit.parameters, strict=True):
        _draw(panel, one, fit)
    style.figure_legend(figure, panels[0].get_legend_handles_labels()[0], 3, below=True)
    validation = fit.validation
    held = '' if validation.held_out is None else f', held out {validation.held_out:.3g}'
    figure.suptitle(
        f'{fit.options.metric}: before {validation.before:.3g}, after {validation.after:.3g}'
        f'{held}: {validation.verdict}',
        fontsize=10,
    )
    figure.supylabel(f'objective ({fit.options.metric}), others at their best', fontsize=9)
    return figure


def _draw(panel: Axes, one: Identified, fit: Fit) -> None:
    style.tidy(panel, grid=True)
    level = f'{fit.options.uncertainty.level:.0%}'
    panel.axvspan(
        one.low,
        one.high,
        color=palette.VERMILION,
        alpha=0.10,
        linewidth=0.0,
        label=f'{level} interval',
    )
    panel.fill_between(
        one.values, *np.maximum(one.band, 1e-9), color=palette.BLUE, alpha=0.20, linewidth=0.0,
        label='90 % of resamples',
    )  # fmt: skip
    panel.plot(one.values, one.profile, color=palette.BLUE, linewidth=1.4, label='profile')
    evaluations = fit.evaluations
    kept = evaluations.usable & evaluations.tells
    if len(fit.parameters) == 1:
        values = METRICS[fit.options.metric](fit.real.points, evaluations.points[kept])
        panel.plot(
            evaluations.values[kept, 0], values, 'o', color='black', markersize=3,
            label='judged',
        )  # fmt: skip
    panel.axvline(one.value, color=palette.VERMILION, linewidth=1.2, label='fitted')
    if one.tuned.low <= one.tuned.start <= one.tuned.high:
        panel.axvline(
            one.tuned.start,
            color=palette.REAL_COLOUR,
            linewidth=1.2,
            linestyle='--',
            label='start',
        )
    if one.tuned.log:
        panel.set_xscale('log')
    panel.set_xlim(one.tuned.low, one.tuned.high)
    top, bottom = float(max(one.profile.max(), one.band[1].max())), float(one.profile.min())
    if bottom > 0.0 and top > _STEEP * bottom:
        # Else the neighbourhood of the fit, which is what matters, lies on the axis.
        panel.set_yscale('log')
        panel.set_ylim(0.5 * bottom, 1.5 * top)
    else:
        panel.set_ylim(0.0, 1.05 * top)
    unit = f' [{one.tuned.unit}]' if one.tuned.unit else ''
    panel.set_xlabel(f'{one.tuned.name}{unit}', fontsize=9)
    panel.set_title(f'{one.value:.4g}: {one.verdict.partition(":")[0]}', fontsize=9)


# The folder: models, how far to believe them, all that was judged.
MARK = 'fit.json'
"""File that every result of this kind holds."""

_SENSORS = ('gps', 'imu')


def fit_record(fit: Fit, judging: Judging, given: Mapping[str, str]) -> dict[str, Any]:
    """Return everything needed to repeat and to read a fit, as plain values.

    `given` holds what the models to start from, `gps` and `imu`, were called.
    """
    real, validation = fit.real, fit.validation
    setup = judging.setup
    values = fit.evaluations.values
    return {
        'format': 1,
        'versions': versions(),
        'seed': judging.options.seed,
        'component': judging.options.component,
        'repetitions': judging.options.repetitions,
        'match_rates': judging.options.match_rates,
        'start_heading': judging.options.start_heading,
        'off_ticks': judging.options.off_ticks,
        'metric': judging.options.metric.to_mapping(),
        'judge': {
            'name': setup.name,
            'files': [{'name': p.name, 'sha256': file_digest(p)} for p in setup.files],
            **setup.settings(),
        },
        'objective': fit.options.metric,
        'given': dict(given),
        'verdict': validation.verdict,
        'before': validation.before,
        'after': validation.after,
        'held_out': validation.held_out,
        'scores': validation.scores,
        'p_value': validation.p_value,
        'vepd': validation.known.to_mapping(),
        'parameters': [
            {
                'name': one.tuned.name,
                'unit': one.tuned.unit,
                'bounds': [one.tuned.low, one.tuned.high],
                'scale': 'log' if one.tuned.log else 'lin',
                'start': one.tuned.start,
                'fitted': float(values[validation.fitted, index]),
                'low': None if one.low_open else one.low,
                'high': None if one.high_open else one.high,
                'identifiable': one.identifiable,
                'at_bound': one.at_bound,
                'trades_with': one.trades_with,
                'verdict': one.verdict,
            }
            for index, one in enumerate(fit.parameters)
        ],
        'interpolation_error': fit.error,
        'folds': [
            {'held_out': [real.names[i] for i in held], 'fitted': values[candidate].tolist()}
            for held, candidate in zip(fit.folds, validation.of_fold, strict=True)
        ],
        'models': {
            name: REAL if model is None else model.to_mapping()
            for name in _SENSORS
            for model in [getattr(fit.twin, name)]
        },
        'candidates': len(values),
        'recordings': [
            {
                'path': source.path,
                'name': name,
                'scenario': scenario,
                'sha256': recording_digest(source.path),
            }
            for source, name, scenario in zip(
                real.sources, real.names, real.scenarios, strict=True
            )
        ],
        'failures': [dataclasses.asdict(failure) for failure in real.failures],
        'notes': to_records(fit.notes),
    }


def write_fit(
    folder: str | Path, fit: Fit, record: Mapping[str, Any], *, overwrite: bool = False
) -> None:
    """Write the models, fit.json, candidates.csv, runs.csv and the plots, all or nothing: not
    where the folder exists and may not be replaced.
    """
    models = [f'{sensor}.yaml' for sensor in _SENSORS]
    with fresh_folder(folder, MARK, overwrite=overwrite, older=lambda record: models) as fresh:
        for sensor in _SENSORS:
            model = getattr(fit.twin, sensor)
            if model is not None:
                text = model_yaml(model, _about(fit, record), _remarks(fit, sensor))
                write_bytes(fresh / f'{sensor}.yaml', text.encode())
        _write_candidates(fresh / 'candidates.csv', fit)
        _write_runs(fresh / 'runs.csv', fit)
        style.save_png(profile_figure(fit), fresh / 'profiles.png')
        simulated = fit.validation.points.items()
        scores = {name: _scores(points.reshape(-1, 2)) for name, points in simulated}
        save_scores(fresh, _scores(fit.real.points), scores)
        write_json(fresh / MARK, record, allow_nan=False)


def _about(fit: Fit, record: Mapping[str, Any]) -> list[str]:
    validation = fit.validation
    held = '' if validation.held_out is None else f', {validation.held_out:.4g} held out'
    return [
        'Fitted by `sim2real fit`: ' + ', '.join(one.tuned.name for one in fit.parameters) + '.',
        f'{fit.options.metric} {validation.before:.4g} before, {validation.after:.4g} after{held}'
        f': {validation.verdict}.',
        f'Judge {record["judge"]["name"]}, {record["component"]} speed, seed {record["seed"]}, '
        f'{record["repetitions"]} draws each of {listed(fit.real.names, 8)}.',
    ]


def _remarks(fit: Fit, sensor: str) -> dict[str, str]:
    remarks = {}
    for one in fit.parameters:
        low = '?' if one.low_open else f'{one.low:.4g}'
        high = '?' if one.high_open else f'{one.high:.4g}'
        level = f'{fit.options.uncertainty.level:.0%}'
        said = f'fitted, {level} from {low} to {high}'
        for target in one.tuned.targets:
            if target.sensor == sensor:
                remarks['.'.join(target.path)] = f'{said}: {one.verdict}'
    return remarks


def _write_candidates(path: Path, fit: Fit) -> None:
    evaluations = fit.evaluations
    objective = np.full((len(evaluations.values), len(METRICS)), np.nan)
    usable = evaluations.usable
    for column, metric in enumerate(METRICS.values()):
        objective[usable, column] = metric(fit.real.points, evaluations.points[usable])
    write_csv(
        path,
        ('candidate', *(one.tuned.name for one in fit.parameters), *METRICS),
        (
            (number, *values, *row)
            for number, (values, row) in enumerate(zip(evaluations.values, objective, strict=True))
        ),
    )


def _write_runs(path: Path, fit: Fit) -> None:
    real = fit.real
    rows = [
        (name, scenario, recording, draw, *point)
        for name, points in {REAL: real.points[:, None], **fit.validation.points}.items()
        for recording, scenario, draws in zip(real.names, real.scenarios, points, strict=True)
        for draw, point in enumerate(draws, 1)
    ]
    head = ('model', 'scenario', 'recording', 'repetition', 'rmse', 'entropy_difference')
    write_csv(path, head, rows)


def _scores(points: FloatArray) -> list[RunScore]:
    # Histograms read the two numbers that VEPD compares; of a fit nothing else is kept.
    nan = float('nan')
    return [RunScore(float(rmse), nan, nan, float(gap), 0, nan) for rmse, gap in points]
