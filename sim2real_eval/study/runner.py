# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Run a study in its folder, with processes of this machine or workers of a cluster."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sim2real_eval.common.file_list import list_files, remove_listed
from sim2real_eval.common.findings import Finding, merge_models, shared_findings, to_records
from sim2real_eval.common.results import write_csv, write_json
from sim2real_eval.common.workers import Workers
from sim2real_eval.metrics.series import SeriesKey, series_file, write_series_folder
from sim2real_eval.metrics.uncertainty import UNCERTAINTY_COLUMNS, uncertainty_fields
from sim_sensors.core.errors import Sim2RealError
from .answer import study_answer
from .cluster import cluster_of
from .folder import discard_study, hold_study, write_record
from .options import ONE_DRAW
from .outcome import (
    MARK,
    Losses,
    StudyFailure,
    StudyOutcome,
    describe_failures,
    find_copies,
    stored_blocks,
)
from .plan import StudyPlan, load_compiled
from .run import StudyRun
from .run_store import RunStore
from .secondary_results import side_results, study_uncertainty, uncertainty_records
from .transfer_record import read_transfer
from .unit import StudyUnit, release_recording

_SERIES = 'series'

Begin = Callable[[int, int, int], Callable[[], None]]
"""Called with the numbers of runs, stored runs and remaining units. Returns a function to call
after each unit."""

Beside = Callable[[StudyOutcome], contextlib.AbstractContextManager[object]]
"""Called with the outcome; returns a context within which the outcome is written. It writes other
files of the folder, such as the report."""


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
        Folder of the study; created, or continued if it holds the same study.
    workers : Workers, optional
        Processes that judge; the result does not depend on them.
    cluster : str or None
        Address of a scheduler of dask.distributed, whose workers judge instead.
    overwrite : bool
        Whether to start over if the folder holds a study.
    begin : callable, optional
        See `Begin`.
    beside : callable, optional
        See `Beside`.

    Raises
    ------
    Sim2RealError
        When the folder cannot be used, or no recording could be compared. In the second case, a
        folder without any valid run is removed.
    """
    target = Path(folder)
    workers = Workers() if workers is None else workers
    with hold_study(target, plan, overwrite=overwrite):
        store = RunStore(target)
        stored = plan.stored_runs(store)

        def start(units: Sequence[StudyUnit]) -> Callable[[], None] | None:
            total = len(plan.run_groups())
            return None if begin is None else begin(total, len(stored), len(units))

        if cluster is None:
            units = plan.units(workers.jobs, stored)
            _load_compiled_for(plan, units, workers)
            failures = judge_here(units, target, workers, start(units))
        else:
            with cluster_of(cluster) as pool:
                units = plan.units(pool.threads, stored)
                failures = pool.judge(units, store, start(units))
        return conclude(plan, target, store, failures, workers=workers, beside=beside)


def conclude(
    plan: StudyPlan,
    folder: Path,
    store: RunStore,
    failures: Iterable[StudyFailure],
    *,
    workers: Workers | None = None,
    beside: Beside | None = None,
) -> StudyOutcome:
    """Write the results of a study, whose folder must be locked; see `run_study`.

    `store` holds every run that did not fail.

    Raises
    ------
    Sim2RealError
        When no recording could be compared.
    """
    groups = plan.run_groups()
    losses = Losses(failures, groups)
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


def _load_compiled_for(plan: StudyPlan, units: Sequence[StudyUnit], workers: Workers) -> None:
    """Compile the judges once, before several workers would do so at the same time."""
    kinds = {judge.kind for judge in plan.file.judges}
    is_loaded = workers.preloaded and kinds == {'embedded'}
    if workers.jobs > 1 and units and not is_loaded:
        load_compiled(plan.file)


def judge_here(
    units: Sequence[StudyUnit],
    folder: Path,
    workers: Workers,
    progress: Callable[[], None] | None = None,
) -> list[StudyFailure]:
    """Judge units in processes of this machine, which store the runs in a folder."""
    try:
        parts = workers.map(functools.partial(_judge, folder=folder), units, progress=progress)
    finally:
        release_recording()
    return [failure for part in parts for failure in part]


def _judge(unit: StudyUnit, *, folder: Path) -> list[StudyFailure]:
    failures, _ = unit.judge(RunStore(folder).save)
    return failures


def write_study(folder: Path, outcome: StudyOutcome) -> None:
    """Write the results of a study except its series; last study.json, the finished record."""
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
    """Write study.json; its answer includes the transfer loss if the folder has one."""
    answer = study_answer(outcome).with_transfer(read_transfer(folder)).to_mapping()
    runs = ({**run.key._asdict(), **run.to_mapping()} for run in outcome.runs)
    write_record(folder, {**outcome.record, 'answer': answer}, runs)


def begin_series(
    folder: Path, outcome: StudyOutcome, workers: Workers
) -> Callable[[], list[Path]]:
    """Start writing the speeds of all runs, with a folder per judge.

    Return a function that waits for the files.
    """
    judges = dict.fromkeys(run.key.judge for run in outcome.runs)
    names = {
        f'{_SERIES}/{run.key.judge}/{series_file(run.key.model, run.scenario, number).as_posix()}'
        for run, number in zip(outcome.runs, _numbers(outcome.runs), strict=True)
    }
    remove_listed(folder, MARK, lambda name: name.startswith(f'{_SERIES}/') and name not in names)
    list_files(folder, MARK, names)
    # The workers do not need the numbers and findings, which are large.
    runs = [dataclasses.replace(run, values={}, notes=()) for run in outcome.runs]
    record = {name: outcome.record[name] for name in ('component', 'metric')}
    return workers.begin_map(
        functools.partial(_write_series, folder, record),
        [tuple(run for run in runs if run.key.judge == judge) for judge in judges],
    )


def _write_series(folder: Path, record: Mapping[str, Any], runs: tuple[StudyRun, ...]) -> Path:
    outcome = StudyOutcome(record, runs, RunStore(folder).signals)
    return write_series_folder(
        folder / _SERIES / runs[0].key.judge,
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
        key = (run.key.judge, run.key.model, run.scenario)
        counts[key] += 1
        numbers.append(counts[key])
    return numbers
