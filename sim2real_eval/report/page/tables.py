# SPDX-License-Identifier: Apache-2.0
"""Tables of a page: scores, and what a study was made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import yaml

from sim2real_eval.metrics.distances import POOLED
from sim2real_eval.metrics.published import published_vepd
from sim2real_eval.metrics.series_folder import REAL
from sim2real_eval.report.page.figure import NONE, decimal
from sim2real_eval.report.page.markup import Column, DataTable
from sim2real_eval.report.page.standing import Standing
from sim2real_eval.study.outcome import StudyOutcome


def record_tables(record: Mapping[str, Any]) -> list[DataTable]:
    """Return software, recordings, judges and metric of a study's record."""
    versions = record.get('versions') or {}
    tables = [
        DataTable(
            'Software',
            [Column('package'), Column('version')],
            [[str(name), str(version)] for name, version in versions.items()],
        ),
        _of_mappings('Recordings', _mappings(record.get('recordings'))),
        _of_mappings('Judges', _mappings(record.get('judges'))),
        DataTable(
            'Metric',
            [Column('option'), Column('value')],
            [[str(name), _cell(value)] for name, value in (record.get('metric') or {}).items()],
        ),
    ]
    return [table for table in tables if table]


def record_texts(record: Mapping[str, Any], study_file: str) -> list[tuple[str, str]]:
    """Return what is shown as it is: study file, parameters of models, files of judges."""
    texts = [('Study file', study_file)] if study_file else []
    for name in ('models', 'judges'):
        if record.get(name):
            dumped = yaml.safe_dump(record[name], sort_keys=False, allow_unicode=True, width=100)
            texts.append((f'Parameters of {name}', dumped))
    return texts


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value or [] if isinstance(one, Mapping)]


def _of_mappings(title: str, entries: Sequence[Mapping[str, Any]]) -> DataTable:
    """Return a column per key whose value is one line, in order of first appearance."""
    flat = [dict(_flat(entry)) for entry in entries]
    keys = list(dict.fromkeys(key for entry in flat for key in entry))
    # What is empty or the same nothing everywhere tells nothing.
    keys = [key for key in keys if any(entry.get(key) not in (None, '') for entry in flat)]
    rows = [[_cell(entry.get(key)) for key in keys] for entry in flat]
    return DataTable(title, [Column(key.replace('_', ' ')) for key in keys], rows)


def _flat(entry: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in entry.items():
        if isinstance(value, Mapping | list | tuple) or (isinstance(value, str) and '\n' in value):
            continue
        yield str(key), value


def _cell(value: Any) -> str:
    if value is None:
        return ''
    if isinstance(value, bool):
        return 'yes' if value else 'no'
    return f'{value:g}' if isinstance(value, float) else str(value)


# Tables of scores: by scenario beside the published ones, under every judge, and run by
# run.

_CONSISTENCY = {
    'nis_gps': 'NIS GPS',
    'nis_imu': 'NIS IMU',
    'nis_other': 'NIS other',
    'nees_position': 'NEES position',
    'nees_orientation': 'NEES orientation',
    'nees_velocity': 'NEES velocity',
    'nees_angular_velocity': 'NEES angular velocity',
}
_RUN_COLUMNS = {
    'rmse': ('RMSE', 'm/s', 4),
    'entropy_difference': ('ΔH', '', 4),
    'forward_rmse': ('forward RMSE', 'm/s', 3),
    'position_rmse': ('position RMSE', 'm', 2),
    'yaw_rmse': ('yaw RMSE', '°', 1),
    'velocity_covariance_consistency': ('stated / error', '', 2),
    'nis_gps': ('NIS GPS', '', 2),
    'duration': ('duration', 's', 1),
    'estimates': ('estimates', '', 0),
    'fixes_used': ('fixes', '', 0),
}


def shown_model(model: str, *, synthetic: bool) -> str:
    """Return what a source is called: stand-ins never pass for real sensors."""
    return 'stand-in for real' if synthetic and model == REAL else model


def by_scenario(standing: Standing, colours: Mapping[str, str]) -> DataTable | None:
    """Return VEPD and rank of each model in each scenario, published ones beside them.

    None where there is one scenario only: the ranking says the same.
    """
    scenarios = standing.scenarios
    if len(scenarios) < 2:
        return None
    models = [row.model for row in standing.pooled()]
    printed = {
        name: any(published_vepd(model, name) is not None for model in models)
        for name in scenarios
    }
    columns = [Column('model')]
    for name in scenarios:
        label = 'all pooled' if name == POOLED else name
        columns += [Column(label, 'VEPD', numeric=True), Column('rank', numeric=True)]
        if printed[name]:
            columns.append(Column('paper', 'VEPD', numeric=True))
    rows = []
    for model in models:
        cells = [model]
        for name in scenarios:
            row = standing.row(model, name)
            cells += [NONE, NONE] if row is None else [decimal(row.vepd), f'{row.rank:g}']
            if printed[name]:
                cells.append(decimal(published_vepd(model, name)))
        rows.append(cells)
    title = f'VEPD by scenario, judge {standing.label}'
    return DataTable(title, columns, rows, colours=colours)


def overview(standings: Sequence[Standing], colours: Mapping[str, str]) -> DataTable | None:
    """Return VEPD and rank of each model under each judge; None with one."""
    if len(standings) < 2:
        return None
    models = list(dict.fromkeys(row.model for one in standings for row in one.pooled()))
    columns = [Column('model')]
    for one in standings:
        columns += [Column(one.label, 'VEPD', numeric=True), Column('rank', numeric=True)]
    rows = []
    for model in models:
        cells = [model]
        for one in standings:
            row = one.row(model)
            cells += [NONE, NONE] if row is None else [decimal(row.vepd), f'{row.rank:g}']
        rows.append(cells)
    title = 'VEPD of all scenarios pooled and rank, judge by judge'
    return DataTable(title, columns, rows, colours=colours)


def consistency(
    outcome: StudyOutcome, judge: str, group: str, colours: Mapping[str, str], *, synthetic: bool
) -> DataTable | None:
    """Return mean NIS and NEES over their degrees of freedom; None where no run has any."""
    found = outcome.by_model(judge, group)
    names = [
        name
        for name in _CONSISTENCY
        if any(name in run.values for runs in found.values() for run in runs)
    ]
    if not names:
        return None
    columns = [Column('sensors'), *(Column(_CONSISTENCY[name], numeric=True) for name in names)]
    rows = []
    for model, runs in found.items():
        cells = [shown_model(model, synthetic=synthetic)]
        for name in names:
            values = [run.values[name] for run in runs if name in run.values]
            mean = float(np.mean(values)) if values else None
            cells.append(decimal(mean, 2 if mean is None or mean < 100.0 else 0))
        rows.append(cells)
    where = f'{judge}, {group}' if group else judge
    title = f'Mean over runs of normalised squares over degrees of freedom, judge {where}'
    shown = {shown_model(name, synthetic=synthetic): kind for name, kind in colours.items()}
    return DataTable(title, columns, rows, colours=shown)


def run_table(outcome: StudyOutcome, colours: Mapping[str, str], *, synthetic: bool) -> DataTable:
    """Return a row per judged run."""
    values = [name for name in _RUN_COLUMNS if any(name in run.values for run in outcome.runs)]
    groups = any(outcome.groups)
    columns = [Column('judge'), Column('scenario'), Column('model')]
    columns += [Column('group')] if groups else []
    columns += [Column('recording'), Column('run', numeric=True)]
    for name in values:
        label, unit, _ = _RUN_COLUMNS[name]
        columns.append(Column(label, unit, numeric=True))
    rows = []
    for run in outcome.runs:
        key = run.key
        cells = [key.judge, run.scenario, shown_model(key.model, synthetic=synthetic)]
        cells += [run.group] if groups else []
        cells += [key.recording, str(key.repetition)]
        for name in values:
            value = run.values.get(name)
            if value is not None and name == 'yaw_rmse':
                value = float(np.degrees(value))
            cells.append(decimal(value, _RUN_COLUMNS[name][2]))
        rows.append(cells)
    title = 'Every judged run'
    return DataTable(title, columns, rows, headed=False, kind='runs', colours=colours)
