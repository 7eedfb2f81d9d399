# SPDX-License-Identifier: Apache-2.0
"""What a study was made of: its recordings, judges, models and software."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from sim2real_eval.report.page.data_table import Column, DataTable

__all__ = ['record_tables', 'record_texts']


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
