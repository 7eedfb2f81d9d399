# SPDX-License-Identifier: Apache-2.0
"""Carries a study out: in processes of this machine, or on those of a cluster."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from sim2real_eval.run_notes import notes_of_models
from sim2real_eval.study.folder import held, write_study
from sim2real_eval.study.outcome import StudyOutcome
from sim2real_eval.study.plan import StudyPlan
from sim2real_eval.study.run import RunKey, StudyRun
from sim2real_eval.study.store import RunStore
from sim2real_eval.study.unit import StudyFailure, StudyUnit
from sim2real_eval.told import Told, by_weight, weight_of
from sim2real_eval.workers import map_in_processes
from sim_sensors.errors import Sim2RealError

__all__ = ['Begin', 'run_study']

Begin = Callable[[int, int, int], Callable[[], None]]
"""Called with the number of runs, of those that are there already, and of the units that are left;
returns what is to be called whenever a unit is done."""

_MOST_REASONS = 5


def run_study(
    plan: StudyPlan,
    folder: str | Path,
    *,
    jobs: int = 1,
    cluster: str | None = None,
    overwrite: bool = False,
    begin: Begin | None = None,
) -> StudyOutcome:
    """Judge every run that the folder does not hold yet, and write what follows from all.

    Parameters
    ----------
    plan : StudyPlan
    folder : str or Path
        Made, or continued when it holds the same study.
    jobs : int
        Processes; the result does not depend on it.
    cluster : str or None
        Address of a scheduler of dask.distributed, whose workers judge in place of processes.
    overwrite : bool
        Begin anew when the folder holds a study.
    begin : callable, optional
        See `Begin`.

    Raises
    ------
    Sim2RealError
        When the folder may not be used, or no recording could be compared. What failed while
        others did not is in `record['failures']`.
    """
    target = Path(folder)
    with held(target, plan, overwrite=overwrite):
        store = RunStore(target)
        keys = plan.run_keys()
        known = {key: run for key in keys if (run := store.run(key)) is not None}
        units = [
            unit for unit in plan.units(jobs) if not all(key in known for key in unit.run_keys())
        ]
        progress = None if begin is None else begin(len(keys), len(known), len(units))
        if cluster is None:
            work = functools.partial(_judge, folder=target, stored=frozenset(known))
            found = map_in_processes(work, units, jobs=jobs, progress=progress)
        else:
            from sim2real_eval.study.cluster import judge_on_cluster

            found = judge_on_cluster(
                units, cluster, stored=frozenset(known), store=store, progress=progress
            )
        failures = _ordered(plan, (failure for one in found for failure in one))
        for failure in failures:
            store.discard(failure.judge, failure.recording)
        outcome = _collected(plan, store, known, failures)
        write_study(target, outcome)
        return outcome


def _judge(unit: StudyUnit, *, folder: Path, stored: frozenset[RunKey]) -> list[StudyFailure]:
    return unit.judge(stored, RunStore(folder).save)


def _ordered(plan: StudyPlan, failures: Iterable[StudyFailure]) -> list[StudyFailure]:
    """Return failures in the order of the runs, however the work was cut up."""
    order = {(key.judge, key.recording): number for number, key in enumerate(plan.run_keys())}
    return sorted(failures, key=lambda one: order[one.judge, one.recording])


def _collected(
    plan: StudyPlan,
    store: RunStore,
    known: dict[RunKey, StudyRun],
    failures: Sequence[StudyFailure],
) -> StudyOutcome:
    failed = {(one.judge, one.recording) for one in failures}
    runs = []
    for key in plan.run_keys():
        if (key.judge, key.recording) in failed:
            continue
        run = known.get(key) or store.run(key)
        if run is None:
            raise Sim2RealError(f'{key}: was judged but is not there; run the study again')
        runs.append(run)
    record: dict[str, Any] = {
        **plan.record,
        'state': 'finished',
        'failures': [one._asdict() for one in failures],
        'notes': _notes(plan, runs),
    }
    outcome = StudyOutcome(record, tuple(runs), store.signals)
    if not outcome.compared:
        reasons = list(dict.fromkeys(str(one) for one in failures))
        more = f'; and {len(reasons) - _MOST_REASONS} more' if len(reasons) > _MOST_REASONS else ''
        raise Sim2RealError('; '.join(reasons[:_MOST_REASONS]) + more)
    return outcome


def _notes(plan: StudyPlan, runs: Sequence[StudyRun]) -> list[str]:
    """Return what the user should know, a line for what is alike; weightiest first."""
    labels = [judge.label for judge in plan.file.judges]
    found = {
        label: notes_of_models(
            (run.key.model, run.notes) for run in runs if run.key.judge == label
        )
        for label in labels
    }
    shared = set.intersection(*(set(notes) for notes in found.values()))
    lines = [note for note in found[labels[0]] if note in shared]
    for label, notes in found.items():
        for note in notes:
            if note not in shared:
                lines.append(Told(f'judge {label}: {note}', weight_of(note)))
    return [str(line) for line in by_weight(lines)]
