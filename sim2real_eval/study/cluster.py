# SPDX-License-Identifier: Apache-2.0
"""The units of a study on the workers of dask.distributed, for more than one machine.

A worker gets a unit as an object and sends the files of its runs back; the process that holds the
folder writes them. Recordings go by path: those of real drives are large, and machines that work
together share a file system. A worker that does not see one, or has other versions of what shapes
results, ends the study instead of changing it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sim2real_eval.common.results import versions
from sim2real_eval.recording.reading import Source
from sim2real_eval.study.run import RunKey, StudyFailure
from sim2real_eval.study.store import RunStore, encoded
from sim2real_eval.study.unit import StudyUnit
from sim_sensors.core.errors import ParameterError, Sim2RealError

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

    Parameters
    ----------
    units : sequence of StudyUnit
    address : str
        Of the scheduler, such as `tcp://host:8786`.
    stored : collection of RunKey
        Runs that need not be judged.
    store : RunStore
        Takes the runs, unit by unit as they are done.
    progress : callable, optional
        Called whenever a unit is done.

    Returns
    -------
    list of list of StudyFailure
        In the order of the units.

    Raises
    ------
    Sim2RealError
        When dask.distributed is not installed, no scheduler or worker is there, a worker cannot
        read a recording or has other versions, or workers die.
    """
    try:
        import distributed
    except ImportError:
        raise ParameterError(
            '--cluster', '', "needs dask.distributed: pip install 'sim2real_sensors[cluster]'"
        ) from None
    client = _client(distributed, address)
    try:
        with client.as_current():
            return _judged(distributed, client, units, stored, store, progress)
    finally:
        client.close()


def _judged(
    distributed: Any,
    client: Any,
    units: Sequence[StudyUnit],
    stored: Collection[RunKey],
    store: RunStore,
    progress: Callable[[], None] | None,
) -> list[list[StudyFailure]]:
    mine = versions()
    futures = {
        client.submit(_judge, unit, frozenset(stored), mine, pure=False): number
        for number, unit in enumerate(units)
    }
    found: list[list[StudyFailure]] = [[] for _ in units]
    for future in distributed.as_completed(list(futures)):
        result = _result(distributed, future)
        store.write(result.files)
        found[futures[future]] = result.failures
        future.release()
        if progress is not None:
            progress()
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


def _judge(unit: StudyUnit, stored: frozenset[RunKey], wanted: dict[str, str]) -> _Result:
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
