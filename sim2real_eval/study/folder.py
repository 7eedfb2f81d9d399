# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The folder of a study: locked while it is written, cleared of an older study."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from sim2real_eval.common.results import (
    check_result_folder,
    hold,
    json_text,
    write_bytes,
    write_text,
)
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.input_files import read_input, read_json
from .outcome import MARK, RUNS, seal_record
from .plan import StudyPlan, describe_change
from .transfer_record import TRANSFER_FILE

_STUDY_FILE = 'study.yaml'
_FILES = (
    _STUDY_FILE, RUNS, 'series', 'runs.csv', 'vepd.csv', 'uncertainty.json', 'metrics.csv',
    'sensitivity.csv', 'agreement.json', 'report.html', 'tables.md', 'tables.tex', 'metrics.png',
    'findings.txt', 'recordings', 'SYNTHETIC.txt', 'sensitivity.json', 'pose.csv', TRANSFER_FILE,
    MARK,
)  # fmt: skip
"""Files and folders of a study except its plots, the mark last."""
_PLOTS = ('rmse.png', 'entropy.png', 'density.png', 'ranking.png', 'velocity.png', 'paths.png')
"""Plots in subfolders of the folder plots."""


@contextlib.contextmanager
def hold_study(folder: Path, plan: StudyPlan, *, overwrite: bool = False) -> Iterator[None]:
    """Lock the folder of a study, which is new or will be continued.

    Any study in it is removed first if `overwrite` is True. A folder that is locked, or that
    contains something else or another study, is a Sim2RealError.
    """
    with hold(folder):
        sweep(folder)
        if not (folder / MARK).is_file():
            check_result_folder(folder, MARK, overwrite=overwrite)
            folder.mkdir(exist_ok=True)
        elif overwrite:
            # The mark is removed last: a killed command leaves a study to overwrite.
            _remove_plots(folder / 'plots')
            _remove(folder / name for name in _FILES)
        if (folder / MARK).is_file():
            _check_same(folder, plan)
        else:
            write_record(folder, {**plan.record, 'state': 'unfinished'})
        text, file = plan.file.text, folder / _STUDY_FILE
        if text and not (file.is_file() and read_input(file) == text):
            write_bytes(file, text)
        try:
            yield
        finally:
            # Workers that were ended may have left unfinished files.
            sweep(folder)


def check_folder(folder: Path, plan: StudyPlan, *, overwrite: bool = False) -> None:
    """Raise Sim2RealError if the folder holds something else, or a study not to overwrite."""
    if not (folder / MARK).is_file():
        check_result_folder(folder, MARK, overwrite=overwrite)
    elif not overwrite:
        _check_same(folder, plan)


def discard_study(folder: Path) -> None:
    """Remove a study without results, and its folder if nothing else is in it."""
    shutil.rmtree(folder / RUNS, ignore_errors=True)
    for name in (_STUDY_FILE, MARK):
        (folder / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()


def write_record(folder: Path, record: Mapping[str, Any]) -> None:
    """Write study.json with the digest of its content."""
    text = json_text(seal_record(record), indent=1, allow_nan=False)
    write_text(folder / MARK, f'{text}\n')


def _check_same(folder: Path, plan: StudyPlan) -> None:
    try:
        old = read_json(folder / MARK)
        assert isinstance(old, dict)
    except (ValueError, AssertionError, RecursionError):
        raise Sim2RealError(
            f'{folder / MARK}: is not a study; choose another --out or give --overwrite'
        ) from None
    # JSON turns tuples into lists.
    new = json.loads(json.dumps(plan.record))
    if difference := describe_change(old, new):
        raise Sim2RealError(
            f'{folder}: holds another study: {difference}; choose another --out or give '
            '--overwrite'
        )


def sweep(folder: Path) -> None:
    """Remove unfinished files of killed commands and of ended workers."""
    _remove(folder.glob('.*.tmp-*'))
    _remove((folder / RUNS).rglob('.*.tmp-*'))
    _remove((folder / 'series').glob('.*.tmp-*'))


def _remove_plots(folder: Path) -> None:
    """Remove the plots of a study, and folders that become empty."""
    if folder.is_symlink():
        folder.unlink()
    _remove(path for name in _PLOTS for path in folder.rglob(name))
    for place in sorted((folder, *folder.rglob('*/')), reverse=True):
        with contextlib.suppress(OSError):
            place.rmdir()


def _remove(paths: Iterable[Path]) -> None:
    for path in list(paths):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
