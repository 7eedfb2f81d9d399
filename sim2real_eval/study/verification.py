# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Verification of a finished study: its code and inputs, and all of its runs, judged again."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sim2real_eval.common.workers import Workers
from sim_sensors.core.input_files import read_input
from .outcome import MARK, Losses, StudyFailure, StudyOutcome
from .plan import StudyPlan, describe_change
from .run import EstimateSignals, RunKey, StudyRun
from .run_store import RunStore, encode_run
from .unit import StudyUnit

_NONE = 'none'


class InputCheck(NamedTuple):
    """Whether code or an input of a study is the same now."""

    name: str
    problem: str  # empty if it is the same

    def __str__(self) -> str:
        return f'differs: {self.name}: {self.problem}' if self.problem else f'same: {self.name}'


def check_inputs(record: Mapping[str, Any], plan: StudyPlan) -> list[InputCheck]:
    """Compare code, files and recordings of a finished study with those of its plan now.

    `record` is that of the study, and `plan` was made by its command.
    """
    now = plan.record
    pairs = [*_digests(record, now, 'identity'), *_digests(record, now, 'metrics')]
    if record['world'] or now['world']:
        worlds = [(value['world'] or {}).get('sha256') for value in (record, now)]
        pairs.append((f'world {plan.file.world}', worlds[0], worlds[1]))
    recorded = {recording['name']: recording for recording in record['recordings']}
    for recording in now['recordings']:
        if 'sha256' in recording:
            old = recorded.get(recording['name'], {}).get('sha256')
            pairs.append((f'recording {recording["path"]}', old, recording['sha256']))
    checks = [
        InputCheck(name, '' if old == new else f'sha256 was {old or _NONE}, is {new or _NONE}')
        for name, old, new in pairs
    ]
    if not any(check.problem for check in checks):
        checks.append(InputCheck('versions and options', describe_change(record, now) or ''))
    return checks


def _digests(
    record: Mapping[str, Any], now: Mapping[str, Any], key: str
) -> Iterator[tuple[str, str | None, str | None]]:
    old, new = record.get(key, {}), now[key]
    for name in dict.fromkeys([*new, *old]):
        yield name, old.get(name), new.get(name)


def judge_again(
    plan: StudyPlan,
    folder: Path,
    outcome: StudyOutcome,
    *,
    workers: Workers | None = None,
    begin: Callable[[int], Callable[[], None]] | None = None,
) -> list[str]:
    """Judge every run of a study again, and compare it with the stored one to the bit.

    Parameters
    ----------
    plan : StudyPlan
        Of the same code and inputs; see `check_inputs`.
    folder : Path
        Folder of the study, which is only read.
    outcome : StudyOutcome
        Content of its record.
    workers : Workers, optional
    begin : callable, optional
        Called with the number of units; returns a function to call after each.

    Returns
    -------
    list of str
        Files that differ, and differences of the record.
    """
    workers = Workers() if workers is None else workers
    units = plan.units(workers.jobs)
    progress = None if begin is None else begin(len(units))
    results = workers.map(functools.partial(_compare, folder=folder), units, progress=progress)
    groups, store = plan.run_groups(), RunStore(folder)
    losses = Losses([failure for result in results for failure in result.failures], groups)
    differing = sorted(
        {name for result in results for name, key in result.differing if key not in losses}
    )
    if _sorted(losses.records()) != _sorted(outcome.record['failures']):
        differing.append(f'{MARK}: failures')
    runs = {run.key: run for run in outcome.runs}
    if runs.keys() != {key for key in groups if key not in losses}:
        differing.append(f'{MARK}: runs')
    for key, run in runs.items():
        stored = store.run(key)
        if stored is None or stored.to_mapping() != run.to_mapping():
            differing.append(f'{MARK}: run {"/".join(map(str, key))}')
    return differing


class _Comparison(NamedTuple):
    differing: list[tuple[str, RunKey]]  # files, and the runs that they belong to
    failures: list[StudyFailure]


def _compare(unit: StudyUnit, *, folder: Path) -> _Comparison:
    differing: list[tuple[str, RunKey]] = []

    def compare(run: StudyRun, signals: EstimateSignals) -> None:
        for name, data in encode_run(run, signals):
            path = folder / name
            if not path.is_file() or read_input(path) != data:
                differing.append((name, run.key))

    failures, _ = unit.judge(compare)
    return _Comparison(differing, failures)


def _sorted(records: Any) -> list[str]:
    return sorted(json.dumps(record, sort_keys=True) for record in records)
