# SPDX-License-Identifier: Apache-2.0
"""The folder that `sim2real fit` writes: models, how far to believe them, all that was judged."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sim2real_eval.common.findings import to_records
from sim2real_eval.common.results import file_digest, fresh_folder, versions
from sim2real_eval.common.tables import write_bytes, write_csv, write_json
from sim2real_eval.metrics.scores import RunScore
from sim2real_eval.metrics.series_folder import REAL
from sim2real_eval.recording.metadata import recording_digest
from sim2real_eval.report.fit import save_profiles
from sim2real_eval.report.histograms import save_histograms
from sim2real_eval.study.fitting.fit import Fit
from sim2real_eval.study.fitting.objective import METRICS
from sim2real_eval.study.fitting.tuned import model_yaml
from sim2real_eval.study.run_plan import Judging
from sim_sensors.core.measurements import FloatArray

MARK = 'fit.json'

_SENSORS = {'gps': 'gps.yaml', 'imu': 'imu.yaml'}


def fit_record(fit: Fit, judging: Judging, given: Mapping[str, str]) -> dict[str, Any]:
    """Return everything needed to repeat and to read a fit, as plain values.

    Parameters
    ----------
    fit : Fit
    judging : Judging
        With which was judged.
    given : mapping
        `gps` and `imu`: what the models to start from were called.
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
            for name, model in (('gps', fit.twin.gps), ('imu', fit.twin.imu))
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
) -> Path:
    """Write the models, fit.json, candidates.csv, runs.csv and the plots, all or nothing.

    Raises
    ------
    Sim2RealError
        When the folder exists and may not be replaced.
    """
    models = _SENSORS.values()
    with fresh_folder(folder, MARK, overwrite=overwrite, older=lambda record: models) as fresh:
        for sensor, name in _SENSORS.items():
            model = getattr(fit.twin, sensor)
            if model is not None:
                text = model_yaml(model, _about(fit, record), _remarks(fit, sensor))
                write_bytes(fresh / name, text.encode())
        _write_candidates(fresh / 'candidates.csv', fit)
        _write_runs(fresh / 'runs.csv', fit)
        save_profiles(fresh / 'profiles.png', fit)
        real = fit.real.points
        save_histograms(
            fresh,
            _scores(real),
            {name: _scores(points.reshape(-1, 2)) for name, points in _runs(fit).items()},
        )
        write_json(fresh / MARK, record, allow_nan=False)
    return Path(folder)


def _about(fit: Fit, record: Mapping[str, Any]) -> list[str]:
    validation = fit.validation
    held = '' if validation.held_out is None else f', {validation.held_out:.4g} held out'
    names = fit.real.names
    shown = ', '.join(names[:8]) + (f' and {len(names) - 8} more' if len(names) > 8 else '')
    return [
        'Fitted by `sim2real fit`: ' + ', '.join(one.tuned.name for one in fit.parameters) + '.',
        f'{fit.options.metric} {validation.before:.4g} before, {validation.after:.4g} after{held}'
        f': {validation.verdict}.',
        f'Judge {record["judge"]["name"]}, {record["component"]} speed, seed {record["seed"]}, '
        f'{record["repetitions"]} draws each of {shown}.',
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


def _runs(fit: Fit) -> dict[str, FloatArray]:
    return fit.validation.points


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

    def rows(name: str, points: FloatArray) -> list[tuple[Any, ...]]:
        return [
            (name, scenario, recording, draw + 1, *points[index, draw])
            for index, (recording, scenario) in enumerate(
                zip(real.names, real.scenarios, strict=True)
            )
            for draw in range(points.shape[1])
        ]

    write_csv(
        path,
        ('model', 'scenario', 'recording', 'repetition', 'rmse', 'entropy_difference'),
        [
            *rows(REAL, real.points[:, None]),
            *(row for name, points in _runs(fit).items() for row in rows(name, points)),
        ],
    )


def _scores(points: FloatArray) -> list[RunScore]:
    # Histograms read the two numbers that VEPD compares; of a fit nothing else is kept.
    nan = float('nan')
    return [RunScore(float(rmse), nan, nan, float(gap), 0, nan) for rmse, gap in points]
