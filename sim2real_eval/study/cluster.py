# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Judge the units of a study on workers of a dask.distributed cluster.

A worker gets a unit as an object and sends back the files of its runs. Recordings are read by
path: they are large, and the machines of a cluster share a file system.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sim2real_eval.common.results import versions
from sim2real_eval.recording.reading import RecordingSource
from sim_sensors.core.errors import ParameterError, Sim2RealError
from sim_sensors.core.installation import pip_install
from .outcome import RunKey, RunStore, StudyFailure, encode_run
from .plan import StudyUnit

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
