# SPDX-License-Identifier: Apache-2.0
"""Tables of a page: scores, and the software, recordings, judges and metric of a study."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import yaml

from sim2real_eval.metrics.scores import POOLED
from sim2real_eval.report.console import (
    NONE,
    DataTable,
    TableColumn,
    decimal,
    numeric,
    scenario_name,
)
from sim2real_eval.study.outcome import StudyOutcome
from .figure import SeriesStyle
from .ranking import Standing


def record_tables(record: Mapping[str, Any]) -> list[DataTable]:
    """Return tables of the software, recordings, judges and metric in a study's record."""
    tables = [
        _of_mapping('Software', 'package', 'version', record.get('versions')),
        _of_mappings('Recordings', record.get('recordings')),
        _of_mappings('Judges', record.get('judges')),
        _of_mapping('Metric', 'option', 'value', record.get('metric')),
    ]
    return [table for table in tables if table]


def record_texts(record: Mapping[str, Any], study_file: str) -> list[tuple[str, str]]:
    """Return the texts that a page shows unchanged: study file, models and judges."""
    texts = [('Study file', study_file)] if study_file else []
    for name in ('models', 'judges'):
        if record.get(name):
            dumped = yaml.safe_dump(record[name], sort_keys=False, allow_unicode=True, width=100)
            matched = name == 'models' and record.get('match_rates')
            more = ', which had the rates of the real sensors in place of these' if matched else ''
            texts.append((f'Parameters of {name}{more}', dumped))
    return texts


def _of_mapping(title: str, key: str, value: str, entries: Any) -> DataTable:
    rows = [[str(name), _cell(field)] for name, field in (entries or {}).items()]
    return DataTable(title, [TableColumn(key), TableColumn(value)], rows)


def _of_mappings(title: str, entries: Any) -> DataTable:
    """Return a table with a column per key that has one-line values, in order of appearance."""
    flat = [dict(_flat(entry)) for entry in entries or [] if isinstance(entry, Mapping)]
    keys = list(dict.fromkeys(key for entry in flat for key in entry))
    # Drop columns that are empty in every row.
    keys = [key for key in keys if any(entry.get(key) not in (None, '') for entry in flat)]
    rows = [[_cell(entry.get(key)) for key in keys] for entry in flat]
    return DataTable(title, [TableColumn(key.replace('_', ' ')) for key in keys], rows)


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


def by_scenario(standing: Standing, colours: Mapping[str, str]) -> DataTable | None:
    """Return a table of VEPD and rank per model and scenario, with the published VEPD.

    The result is None if there is only one scenario, because the ranking holds the same numbers.
    """
    scenarios = standing.scenarios
    if len(scenarios) < 2:
        return None
    models = [row.model for row in standing.pooled()]
    columns, rows = [TableColumn('model')], [[model] for model in models]
    for name in scenarios:
        _add_scores(columns, rows, scenario_name(name), standing, name)
        printed = [standing.published(model, name) for model in models]
        if any(vepd is not None for vepd in printed):
            columns.append(numeric('paper', 'VEPD'))
            for cells, vepd in zip(rows, printed, strict=True):
                cells.append(decimal(vepd))
    title = f'VEPD by scenario, judge {standing.label}'
    return DataTable(title, columns, rows, colours=colours)


def _add_scores(
    columns: list[TableColumn],
    rows: list[list[str]],
    label: str,
    standing: Standing,
    scenario: str,
) -> None:
    """Add VEPD and rank in a scenario to rows that begin with the model."""
    columns += [numeric(label, 'VEPD'), numeric('rank')]
    for cells in rows:
        row = standing.row(cells[0], scenario)
        cells += [NONE, NONE] if row is None else [decimal(row.vepd), f'{row.rank:g}']


def overview(standings: Sequence[Standing], colours: Mapping[str, str]) -> DataTable | None:
    """Return a table of VEPD and rank per model and judge, or None for only one judge."""
    if len(standings) < 2:
        return None
    models = dict.fromkeys(row.model for standing in standings for row in standing.pooled())
    columns, rows = [TableColumn('model')], [[model] for model in models]
    for standing in standings:
        _add_scores(columns, rows, standing.label, standing, POOLED)
    title = 'VEPD of all scenarios pooled and rank, judge by judge'
    return DataTable(title, columns, rows, colours=colours)


def consistency(
    outcome: StudyOutcome, judge: str, group: str, sources: Mapping[str, SeriesStyle]
) -> DataTable | None:
    """Return a table of mean NIS and NEES per degree of freedom, or None without values."""
    runs_by_model = outcome.by_model(judge, group)
    names = [
        name
        for name in _CONSISTENCY
        if any(name in run.values for runs in runs_by_model.values() for run in runs)
    ]
    if not names:
        return None
    columns = [TableColumn('sensors'), *(numeric(_CONSISTENCY[name]) for name in names)]
    rows = []
    for model, runs in runs_by_model.items():
        cells = [sources[model].name]
        for name in names:
            values = [run.values[name] for run in runs if name in run.values]
            mean = float(np.mean(values)) if values else None
            cells.append(decimal(mean, 2 if mean is None or mean < 100.0 else 0))
        rows.append(cells)
    where = f'{judge}, {group}' if group else judge
    title = f'Mean over runs of normalised squares over degrees of freedom, judge {where}'
    return DataTable(title, columns, rows, colours=_colours(sources))


def _colours(sources: Mapping[str, SeriesStyle]) -> dict[str, str]:
    return {source.name: source.kind for source in sources.values()}


def run_table(outcome: StudyOutcome, sources: Mapping[str, SeriesStyle]) -> DataTable:
    """Return a table with a row per judged run."""
    values = [name for name in _RUN_COLUMNS if any(name in run.values for run in outcome.runs)]
    groups = any(outcome.groups)
    columns = [TableColumn('judge'), TableColumn('scenario'), TableColumn('model')]
    columns += [TableColumn('group')] if groups else []
    columns += [TableColumn('recording'), numeric('run')]
    columns += [numeric(*_RUN_COLUMNS[name][:2]) for name in values]
    rows = []
    for run in outcome.runs:
        key = run.key
        cells = [key.judge, run.scenario, sources[key.model].name]
        cells += [run.group] if groups else []
        cells += [key.recording, str(key.repetition)]
        for name in values:
            value = run.values.get(name)
            if value is not None and name == 'yaw_rmse':
                value = float(np.degrees(value))
            cells.append(decimal(value, _RUN_COLUMNS[name][2]))
        rows.append(cells)
    title = 'Every judged run'
    return DataTable(title, columns, rows, headed=False, kind='runs', colours=_colours(sources))
