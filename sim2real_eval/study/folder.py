# SPDX-License-Identifier: Apache-2.0
"""The folder of a study: held by one process at a time, continued after a kill."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from sim2real_eval.common.results import check_result_folder, hold
from sim2real_eval.common.tables import write_bytes, write_csv, write_json
from sim2real_eval.common.workers import Workers
from sim2real_eval.metrics.series_folder import SeriesKey, write_series_folder
from sim2real_eval.metrics.uncertainty.assessment import UNCERTAINTY_COLUMNS, uncertainty_fields
from sim_sensors.core.errors import Sim2RealError
from .answer import study_answer
from .outcome import MARK, RUNS, RunStore, StudyOutcome, sealed
from .plan import StudyPlan, change
from .run import StudyRun
from .secondary_results import side_results, study_uncertainty, uncertainty_records

_FILE = 'study.yaml'
_OURS = (
    _FILE, RUNS, 'series', 'runs.csv', 'vepd.csv', 'uncertainty.json', 'metrics.csv',
    'sensitivity.csv', 'agreement.json', 'report.html', 'tables.md', 'tables.tex', 'metrics.png',
    'findings.txt', 'recordings', 'SYNTHETIC.txt',
    'sensitivity.json', 'pose.csv', MARK,
)  # fmt: skip
"""All that a study writes beside its plots, the mark last."""

_PLOTS = ('rmse.png', 'entropy.png', 'ranking.png', 'velocity.png')
"""In the folder plots, below those of judges and groups."""


@contextlib.contextmanager
def held(folder: Path, plan: StudyPlan, *, overwrite: bool = False) -> Iterator[None]:
    """Hold the folder of a study against other processes, made or fit to be continued.

    See `hold` of `sim2real_eval.common.results`.

    `overwrite`: begin anew when it holds a study, of whatever kind. Raises Sim2RealError when
    another process holds it, it holds something else or another study.
    """
    with hold(folder):
        if not (folder / MARK).is_file():
            # Killed before its first word: nobody else's file is called so.
            _remove(folder.glob(f'.{MARK}.*.tmp'))
            check_result_folder(folder, MARK, overwrite=overwrite)
            folder.mkdir(exist_ok=True)
        elif overwrite:
            # The mark last: killed on the way, it is still a study to overwrite. What somebody
            # else has put beside it stays.
            _remove_plots(folder / 'plots')
            _remove(folder / name for name in _OURS)
        sweep(folder)
        if (folder / MARK).is_file():
            _check_same(folder, plan)
        else:
            _write_record(folder, {**plan.record, 'state': 'unfinished'})
        text, file = plan.file.text, folder / _FILE
        if text and not (file.is_file() and file.read_bytes() == text):
            write_bytes(file, text)
        yield


def check_folder(folder: Path, plan: StudyPlan, *, overwrite: bool = False) -> None:
    """Refuse a folder that `held` would, as far as that shows before the work.

    Raises Sim2RealError when it holds something else, or another study that is not to be
    overwritten.
    """
    if not (folder / MARK).is_file():
        check_result_folder(folder, MARK, overwrite=overwrite)
    elif not overwrite:
        _check_same(folder, plan)


def abandon(folder: Path) -> None:
    """Remove a held study that came to nothing, and the folder where nothing else is in it."""
    shutil.rmtree(folder / RUNS, ignore_errors=True)
    for name in (_FILE, MARK):
        (folder / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()


def write_study(folder: Path, outcome: StudyOutcome) -> None:
    """Write all that follows from the runs but series; the mark, which says finished, last."""
    numbers = _numbers(outcome.runs)
    names = list(dict.fromkeys(name for run in outcome.runs for name in run.values))
    write_csv(
        folder / 'runs.csv',
        ('judge', 'group', 'model', 'scenario', 'run', 'recording', 'repetition', *names),
        (
            (
                run.key.judge, run.group, run.key.model, run.scenario, number, run.key.recording,
                run.key.repetition, *map(run.values.get, names),
            )
            for run, number in zip(outcome.runs, numbers, strict=True)
        ),
    )  # fmt: skip
    known = study_uncertainty(outcome)
    write_csv(
        folder / 'vepd.csv',
        ('judge', 'group', *UNCERTAINTY_COLUMNS),
        (
            (judge, group, *uncertainty_fields(row, known[judge, group]))
            for judge, group in outcome.compared
            for row in outcome.table(judge, group)
        ),
    )
    write_json(folder / 'uncertainty.json', uncertainty_records(outcome), allow_nan=False)
    side_results(outcome).write(folder)
    runs = [{**run.key._asdict(), **run.to_mapping()} for run in outcome.runs]
    answer = study_answer(outcome).to_mapping()
    _write_record(folder, {**outcome.record, 'answer': answer, 'runs': runs})


def begin_series(
    folder: Path, outcome: StudyOutcome, workers: Workers
) -> Callable[[], list[Path]]:
    """Begin to write the speeds of all runs, which are in the folder, a folder for each judge;
    return what waits for them.
    """
    judges = dict.fromkeys(run.key.judge for run in outcome.runs)
    # Another process needs neither what was found nor what this one has loaded.
    runs = [dataclasses.replace(run, notes=()) for run in outcome.runs]
    record = {name: outcome.record[name] for name in ('component', 'metric')}
    return workers.begin_map(
        functools.partial(_write_series, folder, record),
        [tuple(run for run in runs if run.key.judge == judge) for judge in judges],
    )


def _write_series(folder: Path, record: Mapping[str, Any], runs: tuple[StudyRun, ...]) -> Path:
    outcome = StudyOutcome(record, runs, RunStore(folder).signals)
    return write_series_folder(
        folder / 'series' / runs[0].key.judge,
        (
            (SeriesKey(run.key.model, run.scenario, number), outcome.series(run.key))
            for run, number in zip(runs, _numbers(runs), strict=True)
        ),
    )


def _numbers(runs: Iterable[StudyRun]) -> list[int]:
    """Return the number of each run among those of its judge, model and scenario, from 1."""
    counts: Counter[tuple[str, str, str]] = Counter()
    numbers = []
    for run in runs:
        place = (run.key.judge, run.key.model, run.scenario)
        counts[place] += 1
        numbers.append(counts[place])
    return numbers


def _write_record(folder: Path, record: Mapping[str, Any]) -> None:
    text = json.dumps(sealed(record), indent=1, ensure_ascii=False, allow_nan=False) + '\n'
    write_bytes(folder / MARK, text.encode())


def _check_same(folder: Path, plan: StudyPlan) -> None:
    try:
        old = json.loads((folder / MARK).read_text(encoding='utf-8'))
        assert isinstance(old, dict)
    except (ValueError, AssertionError, RecursionError):
        raise Sim2RealError(
            f'{folder / MARK}: is no study; choose another --out or give --overwrite'
        ) from None
    # As JSON gives it back: tuples are lists.
    new = json.loads(json.dumps(plan.record))
    if told := change(old, new):
        raise Sim2RealError(
            f'{folder}: holds another study: {told}; choose another --out, or --overwrite to '
            'begin anew'
        )


def sweep(folder: Path) -> None:
    """Remove what a killed process left half-written."""
    _remove(folder.glob('.*.tmp'))
    _remove((folder / RUNS).rglob('.*.tmp'))
    _remove((folder / 'series').glob('.*'))


def _remove_plots(folder: Path) -> None:
    """Remove the plots of a study, and folders that are then empty."""
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
