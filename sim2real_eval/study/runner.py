# SPDX-License-Identifier: Apache-2.0
"""Carries a study out: in processes of this machine, or on those of a cluster."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from sim2real_eval.common.findings import merge_models, shared_findings, to_records
from sim2real_eval.common.workers import map_in_processes
from sim2real_eval.study.folder import abandon, held, write_study
from sim2real_eval.study.outcome import StudyOutcome
from sim2real_eval.study.plan import StudyPlan
from sim2real_eval.study.run import Losses, RunKey, StudyFailure, StudyRun, told_failures
from sim2real_eval.study.store import RunStore
from sim2real_eval.study.unit import StudyUnit
from sim_sensors.core.errors import Sim2RealError

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
    finish: Callable[[StudyOutcome], None] | None = None,
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
    finish : callable, optional
        Called with the outcome when it is written, while the folder is still held against other
        processes: writes what else is to lie there.

    Raises
    ------
    Sim2RealError
        When the folder may not be used, or no recording could be compared: a folder that holds
        no run that counts is then removed. What failed while
        others did not is in `record['failures']`.
    """
    target = Path(folder)
    with held(target, plan, overwrite=overwrite):
        store = RunStore(target)
        groups = plan.run_groups()
        known = {key: run for key in groups if (run := store.run(key)) is not None}
        units = [unit for unit in plan.units(jobs) if not unit.run_groups().keys() <= known.keys()]
        progress = None if begin is None else begin(len(groups), len(known), len(units))
        if cluster is None:
            work = functools.partial(_judge, folder=target, stored=frozenset(known))
            found = map_in_processes(work, units, jobs=jobs, progress=progress)
        else:
            from sim2real_eval.study.cluster import judge_on_cluster

            found = judge_on_cluster(
                units, cluster, stored=frozenset(known), store=store, progress=progress
            )
        failures = [failure for one in found for failure in one]
        return conclude(plan, target, store, failures, finish=finish)


def conclude(
    plan: StudyPlan,
    folder: Path,
    store: RunStore,
    failures: Iterable[StudyFailure],
    *,
    finish: Callable[[StudyOutcome], None] | None = None,
) -> StudyOutcome:
    """Write what follows from the runs of a study that is held; see `run_study`.

    Parameters
    ----------
    plan : StudyPlan
    folder : Path
    store : RunStore
        Holds every run that did not fail.
    failures : iterable of StudyFailure
    finish : callable, optional

    Raises
    ------
    Sim2RealError
        When no recording could be compared.
    """
    groups = plan.run_groups()
    losses = Losses(_ordered(list(groups), failures), groups)
    for key in groups:
        if key in losses:
            store.discard(key)
    runs = _collected(store, [key for key in groups if key not in losses])
    outcome = _outcome(plan, store, runs, losses)
    if not outcome.compared:
        if not runs:
            # Nothing to go on with, and the corrected study must not be refused because of it.
            abandon(folder)
        raise Sim2RealError(_reasons(told_failures(outcome.record)))
    write_study(folder, outcome)
    if finish is not None:
        finish(outcome)
    return outcome


def _judge(unit: StudyUnit, *, folder: Path, stored: frozenset[RunKey]) -> list[StudyFailure]:
    return unit.judge(stored, RunStore(folder).save)


def _ordered(keys: Sequence[RunKey], failures: Iterable[StudyFailure]) -> list[StudyFailure]:
    """Return failures in the order of the runs, however the work was cut up."""
    order = {key[:3]: number for number, key in enumerate(keys)}
    first = {key[:2]: number for number, key in reversed(list(enumerate(keys)))}
    return sorted(failures, key=lambda one: order.get(one[:3], first[one.judge, one.recording]))


def _collected(store: RunStore, keys: Iterable[RunKey]) -> list[StudyRun]:
    runs = []
    for key in keys:
        run = store.run(key)
        if run is None:
            raise Sim2RealError(f'{key}: was judged but is not there; run the study again')
        runs.append(run)
    return runs


def _outcome(
    plan: StudyPlan, store: RunStore, runs: Sequence[StudyRun], losses: Losses
) -> StudyOutcome:
    record: dict[str, Any] = {
        **plan.record,
        'state': 'finished',
        'failures': losses.records(),
        'notes': _notes(plan, runs),
    }
    return StudyOutcome(record, tuple(runs), store.signals)


def _reasons(reasons: Sequence[str]) -> str:
    more = f'; and {len(reasons) - _MOST_REASONS} more' if len(reasons) > _MOST_REASONS else ''
    return '; '.join(reasons[:_MOST_REASONS]) + more


def _notes(plan: StudyPlan, runs: Sequence[StudyRun]) -> list[dict[str, Any]]:
    """Return what the user should know; what all judges share is said once."""
    labels = [judge.label for judge in plan.file.judges]
    return to_records(
        shared_findings(
            {
                label: merge_models(
                    (run.key.model, run.notes) for run in runs if run.key.judge == label
                )
                for label in labels
            }
        )
    )
