# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The folder of a study: locked while it is written, cleared of an older study."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from sim2real_eval.common.file_list import list_files, list_name, remove_listed, write_list
from sim2real_eval.common.new_files import write_bytes
from sim2real_eval.common.results import check_result_folder, hold
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.input_files import read_input, read_json
from .outcome import MARK
from .plan import StudyPlan, describe_change
from .record import encode_record
from .run_store import run_files

_STUDY_FILE = 'study.yaml'
_FILES = (
    MARK, _STUDY_FILE, 'runs.csv', 'vepd.csv', 'uncertainty.json', 'metrics.csv',
    'sensitivity.csv', 'agreement.json', 'pose.csv', 'report.html', 'tables.md', 'tables.tex',
    'findings.txt',
)  # fmt: skip
"""Files of every study, beside those of its runs."""


@contextlib.contextmanager
def hold_study(folder: Path, plan: StudyPlan, *, overwrite: bool = False) -> Iterator[None]:
    """Lock the folder of a study, which is new or will be continued.

    The files of any study in it are removed first if `overwrite` is True. A folder that is locked,
    or that contains something else or another study, raises Sim2RealError.
    """
    names = {*_FILES, *run_files(plan.run_groups())}
    with hold(folder):
        if not (folder / MARK).is_file():
            check_result_folder(folder, MARK, overwrite=overwrite)
            folder.mkdir(exist_ok=True)
            write_record(folder, {**plan.record, 'state': 'unfinished'})
        elif not overwrite:
            _check_same(folder, plan)
        list_files(folder, MARK, names)
        if overwrite:
            # The old record stays until the new one: a killed command leaves a study to overwrite.
            remove_listed(folder, MARK, lambda name: True)
            write_list(folder, MARK, names)
            write_record(folder, {**plan.record, 'state': 'unfinished'})
        text, file = plan.file.text, folder / _STUDY_FILE
        if text and not (file.is_file() and read_input(file) == text):
            write_bytes(file, text)
        yield


def check_folder(folder: Path, plan: StudyPlan, *, overwrite: bool = False) -> None:
    """Raise Sim2RealError if the folder holds something else, or a study not to overwrite."""
    if not (folder / MARK).is_file():
        check_result_folder(folder, MARK, overwrite=overwrite)
    elif not overwrite:
        _check_same(folder, plan)


def discard_study(folder: Path) -> None:
    """Remove the files of a study without results, and its folder if nothing else is in it."""
    remove_listed(folder, MARK, lambda name: True)
    for name in (list_name(MARK), MARK):
        (folder / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()


def write_record(
    folder: Path, record: Mapping[str, Any], runs: Iterable[Mapping[str, Any]] | None = None
) -> None:
    """Write study.json with the digest of its content."""
    write_bytes(folder / MARK, encode_record(record, runs))


def _check_same(folder: Path, plan: StudyPlan) -> None:
    try:
        old = read_json(folder / MARK)
        assert isinstance(old, dict)
    except (ValueError, AssertionError, RecursionError):
        raise Sim2RealError(
            f'{folder / MARK}: is not a study; choose another --out or give --overwrite'
        ) from None
    if difference := describe_change(old, plan.record):
        raise Sim2RealError(
            f'{folder}: holds another study: {difference}; choose another --out or give '
            '--overwrite'
        )
