# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Layout that the results of `fit`, `tune` and `sensitivity` share: records and files."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from sim2real_eval.common.digests import file_digest
from sim2real_eval.common.new_files import write_text
from sim2real_eval.common.results import fresh_folder, versions, write_csv, write_json
from sim2real_eval.judge.protocol import Judge
from sim2real_eval.recording.digest import recording_digest
from sim2real_eval.recording.reading import RecordingSource
from sim2real_eval.study.options import RMS_UNITS
from . import style

CsvTable = tuple[Sequence[str], Iterable[Sequence[Any]]]
"""Header and rows of a CSV file."""


def result_header() -> dict[str, Any]:
    """Return the keys with which every result begins."""
    return {'format': 1, 'versions': versions()}


def judge_record(judge: Judge) -> dict[str, Any]:
    """Return name, files and settings of a judge as JSON values."""
    return {
        'name': judge.name,
        'files': [{'name': path.name, 'sha256': file_digest(path)} for path in judge.files],
        **judge.settings(),
    }


def recording_record(source: RecordingSource, name: str, **more: Any) -> dict[str, Any]:
    """Return path, name and digest of a recording as JSON values."""
    digest = recording_digest(source.path)
    return {'path': source.path, 'name': name, **more, 'sha256': digest}


def search_identity(verb: str, judge: Judge, *inputs: Any, **options: Any) -> dict[str, Any]:
    """Return everything that the evaluations of a search depend on, for `EvaluationStore`.

    `inputs` are recordings and models: a `Source` is identified by its content as well.
    """
    return {
        **result_header(),
        'verb': verb,
        'judge': judge_record(judge),
        'inputs': [
            [repr(part), recording_digest(part.path)]
            if isinstance(part, RecordingSource)
            else repr(part)
            for part in inputs
        ],
        'options': {name: repr(option) for name, option in options.items()},
    }


def finite_or_none(number: float | None) -> float | None:
    """Return a number for JSON; None if it is not finite, such as that of a disabled gate."""
    return None if number is None or not math.isfinite(number) else number


TABLE_UNITS = {**RMS_UNITS, 'heading': 'deg'}
"""Units of errors in tables and plots; files have those of `RMS_UNITS`."""


def to_table_unit(kind: str, loss: float | None) -> float | None:
    """Return an error or a score in the unit of tables and plots."""
    return math.degrees(loss) if kind == 'heading' and loss is not None else loss


def write_search_result(
    folder: str | Path,
    mark: str,
    record: Mapping[str, Any],
    *,
    texts: Mapping[str, str] | None = None,
    tables: Mapping[str, CsvTable],
    figures: Mapping[str, Figure],
    extra: Callable[[Path], None] = lambda folder: None,
    overwrite: bool = False,
) -> None:
    """Write a result folder, or nothing if a file cannot be written.

    Parameters
    ----------
    mark : str
        File of the record, by which a folder of this kind is recognised.
    texts, tables, figures : mapping
        Contents by file name.
    extra : callable
        Writes further files into the folder.
    overwrite : bool
        Replace an existing result of the same kind.
    """
    with fresh_folder(folder, mark, overwrite=overwrite) as fresh:
        for name, text in (texts or {}).items():
            write_text(fresh / name, text)
        for name, (header, rows) in tables.items():
            write_csv(fresh / name, header, rows)
        for name, figure in figures.items():
            style.save_png(figure, fresh / name)
        extra(fresh)
        write_json(fresh / mark, record, allow_nan=False)
