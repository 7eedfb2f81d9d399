# SPDX-License-Identifier: Apache-2.0
"""Carries a study out: in processes of this machine, or on those of a cluster.

A worker of dask.distributed gets a unit as an object and sends the files of its runs back; the
process that holds the folder writes them. Recordings go by path: those of real drives are large,
and machines that work together share a file system. A worker that does not see one, or has other
versions of what shapes results, ends the study instead of changing it.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sim2real_eval.common.findings import Finding, merge_models, shared_findings, to_records
from sim2real_eval.common.results import versions
from sim2real_eval.common.workers import Workers
from sim2real_eval.recording.reading import Source
from sim_sensors.core.errors import ParameterError, Sim2RealError
from .findings import ONE_DRAW
from .folder import abandon, begin_series, held, sweep, write_study
from .outcome import RunStore, StudyOutcome, blocks_of, encoded
from .plan import StudyPlan, StudyUnit, load_compiled
from .run import Losses, RunKey, StudyFailure, StudyRun, copies, told_failures

Begin = Callable[[int, int, int], Callable[[], None]]
"""Called with the number of runs, of those that are there already, and of the units that are left;
returns what is to be called whenever a unit is done."""

Beside = Callable[[StudyOutcome], contextlib.AbstractContextManager[object]]
"""Called with the outcome, while the folder is still held against other processes. Within what it
returns the outcome is written: it writes what else is to lie there, such as the report, the slow
part by workers meanwhile."""


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
    """Judge every run that the folder does not hold yet, and write what follows from all.

    Raises Sim2RealError when the folder may not be used, or no recording could be compared: a
    folder that holds no run that counts is then removed. What failed while others did not is in
    `record['failures']`.

    Parameters
    ----------
    folder : str or Path
        Made, or continued when it holds the same study.
    workers : Workers, optional
        Processes that judge, by default this one; the result does not depend on them.
    cluster : str or None
        Address of a scheduler of dask.distributed, whose workers judge in place of processes.
    overwrite : bool
        Begin anew when the folder holds a study.
    begin : callable, optional
        See `Begin`.
    beside : callable, optional
        See `Beside`.
    """
    target = Path(folder)
    workers = Workers() if workers is None else workers
    with held(target, plan, overwrite=overwrite):
        store = RunStore(target)
        groups = plan.run_groups()
        known = {key: run for key in groups if (run := store.run(key)) is not None}
        units = [
            unit
            for unit in plan.units(workers.jobs)
            if not unit.run_groups().keys() <= known.keys()
        ]
        kinds = {judge.kind for judge in plan.file.judges}
        is_loaded = workers.preloaded and kinds == {'embedded'}
        if workers.jobs > 1 and units and cluster is None and not is_loaded:
            # Workers that compile the same loop at once would do the work several times.
            load_compiled(plan.file)
        progress = None if begin is None else begin(len(groups), len(known), len(units))
        if cluster is None:
            work = functools.partial(_judge, folder=target, stored=frozenset(known))
            found = workers.map(work, units, progress=progress)
        else:
            found = judge_on_cluster(
                units, cluster, stored=frozenset(known), store=store, progress=progress
            )
        failures = [failure for one in found for failure in one]
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
    """Write what follows from the runs of a study that is held; see `run_study`.

    `store`: holds every run that did not fail. Raises Sim2RealError when no recording could be
    compared.
    """
    groups = plan.run_groups()
    # In the order of the runs, however the work was cut up.
    order = {key[:3]: number for number, key in enumerate(groups)}
    first = {key[:2]: number for number, key in reversed(list(enumerate(groups)))}
    ordered = sorted(failures, key=lambda one: order.get(one[:3], first[one.judge, one.recording]))
    losses = Losses(ordered, groups)
    runs = []
    for key in groups:
        if key in losses:
            store.discard(key)
        elif (run := store.run(key)) is not None:
            runs.append(run)
        else:
            raise Sim2RealError(f'{key}: was judged but is not there; run the study again')
    notes = {
        judge.label: merge_models(
            (run.key.model, run.notes) for run in runs if run.key.judge == judge.label
        )
        for judge in plan.file.judges
    }
    about = _copies(runs, blocks_of(plan.record))
    if plan.record['repetitions'] == 1 and plan.record['models']:
        about.append(ONE_DRAW())
    record: dict[str, Any] = {
        **plan.record,
        'state': 'finished',
        'failures': losses.records(),
        # What all judges share is said once.
        'notes': to_records([*plan.file.notes, *about, *shared_findings(notes)]),
    }
    outcome = StudyOutcome(record, tuple(runs), store.signals)
    if not outcome.compared:
        if not runs:
            # Nothing to go on with, and the corrected study must not be refused because of it.
            abandon(folder)
        told = told_failures(record)
        more = f' (and {len(told) - 1} more)' if len(told) > 1 else ''
        raise Sim2RealError(f'{told[0]}{more}')
    # Before others write there as well.
    sweep(folder)
    # By workers, who have nothing to do any more, while `beside` computes the statistics.
    wait = begin_series(folder, outcome, workers or Workers())
    with contextlib.nullcontext() if beside is None else beside(outcome):
        wait()
        write_study(folder, outcome)
    return outcome


def _copies(runs: Sequence[StudyRun], blocks: Mapping[str, str]) -> list[Finding]:
    """Say which recordings gave a judge the same numbers in one group."""
    measured: dict[str, dict[str, Hashable]] = {}
    for run in runs:
        if run.is_real:
            measured.setdefault(run.key.judge, {})[run.key.recording] = (run.group, run.score)
    return list(dict.fromkeys(one for each in measured.values() for one in copies(each, blocks)))


def _judge(unit: StudyUnit, *, folder: Path, stored: frozenset[RunKey]) -> list[StudyFailure]:
    return unit.judge(stored, RunStore(folder).save)


_TIMEOUT_S = 10


class _Result(NamedTuple):
    """What a worker sends back; `refused` says why it did not judge, empty if it did."""

    files: list[tuple[str, bytes]]
    failures: list[StudyFailure]
    refused: str


def judge_on_cluster(
    units: Sequence[StudyUnit],
    address: str,
    *,
    stored: Collection[RunKey],
    store: RunStore,
    progress: Callable[[], None] | None = None,
) -> list[list[StudyFailure]]:
    """Judge units on a cluster; the result does not depend on it.

    Raises Sim2RealError when dask.distributed is not installed, no scheduler or worker is there, a
    worker cannot read a recording or has other versions, or workers die.

    `address`: of the scheduler, such as `tcp://host:8786`; `stored`: runs that need not be judged;
    `store`: takes the runs, unit by unit as they are done; `progress`: called whenever a unit is
    done.

    Returns
    -------
    list of list of StudyFailure
        In the order of the units.
    """
    try:
        import distributed
    except ImportError:
        raise ParameterError(
            '--cluster', '', "needs dask.distributed: pip install 'sim2real_sensors[cluster]'"
        ) from None
    client = _client(distributed, address)
    found: list[list[StudyFailure]] = [[] for _ in units]
    try:
        with client.as_current():
            mine = versions()
            futures = {
                client.submit(_judge_on_worker, unit, frozenset(stored), mine, pure=False): number
                for number, unit in enumerate(units)
            }
            for future in distributed.as_completed(list(futures)):
                result = _result(distributed, future)
                store.write(result.files)
                found[futures[future]] = result.failures
                future.release()
                if progress is not None:
                    progress()
    finally:
        client.close()
    return found


def _client(distributed: Any, address: str) -> Any:
    try:
        client = distributed.Client(address, timeout=_TIMEOUT_S, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        text = ' '.join(str(error).split())
        raise ParameterError(
            '--cluster', '', f'{address!r}: no scheduler answers there ({text})'
        ) from None
    try:
        client.wait_for_workers(1, timeout=_TIMEOUT_S)
    except TimeoutError:
        client.close()
        raise ParameterError(
            '--cluster', '', f'{address!r}: the scheduler has no worker; start one or more'
        ) from None
    return client


def _result(distributed: Any, future: Any) -> _Result:
    try:
        result: _Result = future.result()
    except distributed.KilledWorker:
        raise Sim2RealError(
            'cluster: workers died over one recording (out of memory?); the same command continues'
        ) from None
    except (OSError, distributed.CancelledError) as error:
        raise Sim2RealError(
            f'cluster: the connection was lost ({error}); the same command continues'
        ) from None
    if result.refused:
        raise Sim2RealError(f'cluster: {result.refused}')
    return result


def _judge_on_worker(
    unit: StudyUnit, stored: frozenset[RunKey], wanted: dict[str, str]
) -> _Result:
    """Judge a unit; runs on a worker."""
    if refused := _refused(unit, wanted):
        return _Result([], [], refused)
    files: list[tuple[str, bytes]] = []
    failures = unit.judge(stored, lambda run, signals: files.extend(encoded(run, signals)))
    # Every run brings the truth along, which all of a recording share.
    return _Result(list(dict(files).items()), failures, '')


def _refused(unit: StudyUnit, wanted: dict[str, str]) -> str:
    from distributed import get_worker

    where = f'worker {get_worker().address}'
    found = versions()
    for package, version in wanted.items():
        if found[package] != version:
            return f'{where} has {package} {found[package]}, must have {version} as here'
    origin = unit.recording.origin
    if isinstance(origin, Source) and not Path(origin.path).exists():
        return (
            f'{where} does not see {origin.path}; recordings must have the same path on every '
            'machine, as on a shared file system'
        )
    return ''
