# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Carry out a study in its folder, with processes of this machine or workers of a cluster.

A worker of dask.distributed gets a unit as an object and sends back the files of its runs.
Recordings are read by path: they are large, and the machines of a cluster share a file system.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import platform
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sim2real_eval.common.findings import Finding, merge_models, shared_findings, to_records
from sim2real_eval.common.results import (
    check_result_folder,
    hold,
    versions,
    write_bytes,
    write_csv,
    write_json,
)
from sim2real_eval.common.workers import Workers
from sim2real_eval.metrics.series import SeriesKey, write_series_folder
from sim2real_eval.metrics.uncertainty import UNCERTAINTY_COLUMNS, uncertainty_fields
from sim2real_eval.recording.reading import RecordingSource
from sim_sensors.core.errors import ParameterError, Sim2RealError
from sim_sensors.core.installation import pip_install
from .answer import study_answer
from .options import ONE_DRAW
from .outcome import (
    MARK,
    RUNS,
    Losses,
    RunKey,
    RunStore,
    StudyFailure,
    StudyOutcome,
    StudyRun,
    describe_failures,
    encode_run,
    find_copies,
    seal_record,
    stored_blocks,
)
from .plan import StudyPlan, StudyUnit, describe_change, load_compiled
from .secondary_results import side_results, study_uncertainty, uncertainty_records
from .transfer_record import TRANSFER_FILE, read_transfer

Begin = Callable[[int, int, int], Callable[[], None]]
"""Called with the numbers of runs, stored runs and remaining units. Returns a function to call
after each unit."""

Beside = Callable[[StudyOutcome], contextlib.AbstractContextManager[object]]
"""Called with the outcome; returns a context within which the outcome is written. It writes other
files of the folder, such as the report."""

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


def run_study(
    plan: StudyPlan,
    folder: str | Path,
    *,
    workers: Workers | None = None,
    cluster: str | None = None,
    overwrite: bool = False,
    begin: Begin | None = None,
    beside: Beside | None = None,
) -> StudyOutcome:
    """Judge every run that the folder does not hold yet, and write the results of all.

    Failures of single runs are in `record['failures']` of the outcome.

    Parameters
    ----------
    plan : StudyPlan
    folder : str or Path
        Made, or continued if it holds the same study.
    workers : Workers, optional
        Processes that judge; the result does not depend on them.
    cluster : str or None
        Address of a scheduler of dask.distributed, whose workers judge instead.
    overwrite : bool
        Begin anew if the folder holds a study.
    begin : callable, optional
        See `Begin`.
    beside : callable, optional
        See `Beside`.

    Raises
    ------
    Sim2RealError
        When the folder may not be used, or no recording could be compared. In the second case a
        folder without any run that counts is removed.
    """
    target = Path(folder)
    workers = Workers() if workers is None else workers
    with hold_study(target, plan, overwrite=overwrite):
        store = RunStore(target)
        groups = plan.run_groups()
        stored = frozenset(key for key in groups if store.run(key) is not None)
        units = [
            unit for unit in plan.units(workers.jobs) if not unit.run_groups().keys() <= stored
        ]
        kinds = {judge.kind for judge in plan.file.judges}
        is_loaded = workers.preloaded and kinds == {'embedded'}
        if workers.jobs > 1 and units and cluster is None and not is_loaded:
            # Workers that compile the same loop at once would do the work several times.
            load_compiled(plan.file)
        progress = None if begin is None else begin(len(groups), len(stored), len(units))
        if cluster is None:
            work = functools.partial(_judge, folder=target, stored=stored)
            failures = workers.map(work, units, progress=progress)
        else:
            failures = judge_on_cluster(
                units, cluster, stored=stored, store=store, progress=progress
            )
        return conclude(
            plan, target, store, [failure for unit in failures for failure in unit],
            workers=workers, beside=beside,
        )  # fmt: skip


def conclude(
    plan: StudyPlan,
    folder: Path,
    store: RunStore,
    failures: Iterable[StudyFailure],
    *,
    workers: Workers | None = None,
    beside: Beside | None = None,
) -> StudyOutcome:
    """Write the results of a study whose folder is held; see `run_study`.

    `store` holds every run that did not fail.

    Raises
    ------
    Sim2RealError
        When no recording could be compared.
    """
    groups = plan.run_groups()
    # The order of failures does not depend on how the work was divided.
    order = {key[:3]: number for number, key in enumerate(groups)}
    first = {key[:2]: number for number, key in reversed(list(enumerate(groups)))}
    losses = Losses(sorted(failures, key=lambda f: order.get(f[:3], first[f[:2]])), groups)
    runs = []
    for key in groups:
        if key in losses:
            store.discard(key)
        elif (run := store.run(key)) is not None:
            runs.append(run)
        else:
            raise Sim2RealError(f'{key}: was judged but is not stored; run the study again')
    judge_notes = {
        judge.label: merge_models(
            (run.key.model, run.notes) for run in runs if run.key.judge == judge.label
        )
        for judge in plan.file.judges
    }
    notes = [*plan.file.notes, *plan.notes, *_find_copied_runs(runs, stored_blocks(plan.record))]
    if plan.record['repetitions'] == 1 and plan.record['models']:
        notes.append(ONE_DRAW())
    record: dict[str, Any] = {
        **plan.record,
        'state': 'finished',
        'failures': losses.records(),
        'notes': to_records([*notes, *shared_findings(judge_notes)]),
    }
    outcome = StudyOutcome(record, tuple(runs), store.signals)
    if not outcome.compared_pairs:
        if not runs:
            # An empty study would block the folder for the corrected study.
            discard_study(folder)
        reasons = describe_failures(record)
        more = f' (and {len(reasons) - 1} more)' if len(reasons) > 1 else ''
        raise Sim2RealError(f'{reasons[0]}{more}')
    # The workers have nothing else to do while `beside` computes the statistics.
    wait = begin_series(folder, outcome, workers or Workers())
    with contextlib.nullcontext() if beside is None else beside(outcome):
        wait()
        write_study(folder, outcome)
    return outcome


def _find_copied_runs(runs: Sequence[StudyRun], blocks: Mapping[str, str]) -> list[Finding]:
    """Return a finding for recordings that gave a judge the same numbers in one group."""
    measured: dict[str, dict[str, Hashable]] = {}
    for run in runs:
        if run.is_real:
            measured.setdefault(run.key.judge, {})[run.key.recording] = (run.group, run.score)
    return list(
        dict.fromkeys(note for scores in measured.values() for note in find_copies(scores, blocks))
    )


def _judge(unit: StudyUnit, *, folder: Path, stored: frozenset[RunKey]) -> list[StudyFailure]:
    return unit.judge(stored, RunStore(folder).save)


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
            _write_record(folder, {**plan.record, 'state': 'unfinished'})
        text, file = plan.file.text, folder / _STUDY_FILE
        if text and not (file.is_file() and file.read_bytes() == text):
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


def write_study(folder: Path, outcome: StudyOutcome) -> None:
    """Write the results of a study except its series; the mark, now finished, last."""
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
    uncertainties = study_uncertainty(outcome)
    write_csv(
        folder / 'vepd.csv',
        ('judge', 'group', *UNCERTAINTY_COLUMNS),
        (
            (judge, group, *uncertainty_fields(row, uncertainties[judge, group]))
            for judge, group in outcome.compared_pairs
            for row in outcome.table(judge, group)
        ),
    )
    write_json(folder / 'uncertainty.json', uncertainty_records(outcome), allow_nan=False)
    side_results(outcome).write(folder)
    write_answer(folder, outcome)


def write_answer(folder: Path, outcome: StudyOutcome) -> None:
    """Write study.json; its answer names the cost if the folder has a transfer."""
    runs = [{**run.key._asdict(), **run.to_mapping()} for run in outcome.runs]
    answer = study_answer(outcome).with_transfer(read_transfer(folder)).to_mapping()
    _write_record(folder, {**outcome.record, 'answer': answer, 'runs': runs})


def begin_series(
    folder: Path, outcome: StudyOutcome, workers: Workers
) -> Callable[[], list[Path]]:
    """Begin to write the speeds of all runs, with a folder per judge.

    Returns a function that waits for the files.
    """
    judges = dict.fromkeys(run.key.judge for run in outcome.runs)
    # Findings are large and not needed.
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
    """Number the runs of each judge, model and scenario from 1."""
    counts: Counter[tuple[str, str, str]] = Counter()
    numbers = []
    for run in runs:
        place = (run.key.judge, run.key.model, run.scenario)
        counts[place] += 1
        numbers.append(counts[place])
    return numbers


def _write_record(folder: Path, record: Mapping[str, Any]) -> None:
    text = json.dumps(seal_record(record), indent=1, ensure_ascii=False, allow_nan=False) + '\n'
    write_bytes(folder / MARK, text.encode())


def _check_same(folder: Path, plan: StudyPlan) -> None:
    try:
        old = json.loads((folder / MARK).read_text(encoding='utf-8'))
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


_TIMEOUT_S = 10  # of connecting to a cluster


class _UnitResult(NamedTuple):
    """Files and failures that a cluster worker sends back, or why it did not judge."""

    files: list[tuple[str, bytes]]
    failures: list[StudyFailure]
    refusal: str


def judge_on_cluster(
    units: Sequence[StudyUnit],
    address: str,
    *,
    stored: Collection[RunKey],
    store: RunStore,
    progress: Callable[[], None] | None = None,
) -> list[list[StudyFailure]]:
    """Judge units on a cluster; the result is that of one process.

    Parameters
    ----------
    units : sequence of StudyUnit
    address : str
        Scheduler, such as `tcp://host:8786`.
    stored : collection of RunKey
        Runs that are not judged again.
    store : RunStore
        Takes the runs of each unit when it is done.
    progress : callable, optional
        Called after each unit.

    Returns
    -------
    list of list of StudyFailure
        In the order of the units.

    Raises
    ------
    Sim2RealError
        When dask.distributed is not installed, there is no scheduler or worker, a worker cannot
        read a recording or has other versions, or workers die.
    """
    try:
        import distributed
    except ImportError:
        raise ParameterError(
            '--cluster', '', f'needs dask.distributed: {pip_install("distributed")}'
        ) from None
    client = _client(distributed, address)
    failures: list[list[StudyFailure]] = [[] for _ in units]
    try:
        with client.as_current():
            required = versions()
            futures = {
                client.submit(
                    _judge_on_worker, unit, frozenset(stored), required, pure=False
                ): number
                for number, unit in enumerate(units)
            }
            for future in distributed.as_completed(list(futures)):
                result = _result(distributed, future)
                store.write(result.files)
                failures[futures[future]] = result.failures
                future.release()
                if progress is not None:
                    progress()
    finally:
        client.close()
    return failures


def _client(distributed: Any, address: str) -> Any:
    try:
        client = distributed.Client(address, timeout=_TIMEOUT_S, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        text = ' '.join(str(error).split())
        raise ParameterError(
            '--cluster', '', f'{address!r}: no scheduler answers at this address ({text})'
        ) from None
    try:
        client.wait_for_workers(1, timeout=_TIMEOUT_S)
    except TimeoutError:
        client.close()
        raise ParameterError(
            '--cluster', '', f'{address!r}: the scheduler has no worker; start one or more'
        ) from None
    return client


def _result(distributed: Any, future: Any) -> _UnitResult:
    try:
        result: _UnitResult = future.result()
    except distributed.KilledWorker:
        raise Sim2RealError(
            'cluster: workers died on one recording, probably out of memory; repeat the command '
            'to continue'
        ) from None
    except (OSError, distributed.CancelledError) as error:
        raise Sim2RealError(
            f'cluster: the connection was lost ({error}); repeat the command to continue'
        ) from None
    if result.refusal:
        raise Sim2RealError(f'cluster: {result.refusal}')
    return result


def _judge_on_worker(
    unit: StudyUnit, stored: frozenset[RunKey], required: dict[str, str]
) -> _UnitResult:
    """Judge a unit on a worker of a cluster, which must have the required versions."""
    if refusal := _refusal(unit, required):
        return _UnitResult([], [], refusal)
    files: list[tuple[str, bytes]] = []
    failures = unit.judge(stored, lambda run, signals: files.extend(encode_run(run, signals)))
    # Runs of one recording have the file of the ground truth in common.
    return _UnitResult(list(dict(files).items()), failures, '')


def _refusal(unit: StudyUnit, required: dict[str, str]) -> str:
    """Return why a worker cannot judge a unit; empty if it can."""
    where = f'worker on {platform.node()}'
    installed = versions()
    for package, version in required.items():
        if installed[package] != version:
            return f'{where} has {package} {installed[package]}; must have {version}, as here'
    origin = unit.recording.origin
    if isinstance(origin, RecordingSource) and not Path(origin.path).exists():
        return (
            f'{where} cannot read {origin.path}; recordings must have the same path on every '
            'machine, for example on a shared file system'
        )
    return ''
