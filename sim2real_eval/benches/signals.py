# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Comparison of the signals of real recordings with recorded or newly simulated ones."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sim2real_eval.common.findings import by_severity
from sim2real_eval.common.results import versions
from sim2real_eval.common.workers import map_in_processes
from sim2real_eval.metrics.options import REAL
from sim2real_eval.preflight.checks import remarks
from sim2real_eval.recording.digest import recording_digest
from sim2real_eval.recording.reading import Failure, RecordingSource
from sim2real_eval.signals.answer import comparison_record
from sim2real_eval.signals.comparison import SignalComparison, compare_runs
from sim2real_eval.signals.findings import NOT_RECORDED
from sim2real_eval.signals.measured import SensorSignals, run_signals
from sim2real_eval.signals.options import SignalOptions
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.simulation.twin_maker import make_twin_maker
from sim2real_eval.study.recordings import StudyRecording
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.world.world import World

SIMULATED = 'simulated'


@dataclasses.dataclass(frozen=True, eq=False)
class SignalStudy:
    """Recordings or models that are compared with the real recordings."""

    simulated: tuple[RecordingSource, ...] = ()  # simulated recordings; empty when there are twins
    twins: tuple[Twin, ...] = ()  # variants to simulate on the truth of each real recording
    repetitions: int = 1  # simulated runs per recording and variant
    # Simulate at the rates of the real sensors instead of the models' own.
    match_rates: bool = False
    # Source of the true and the simulated magnetic field. By default, it is the first field that
    # each real magnetometer measures; see `measure_early_field`.
    world: World | None = None


Source = RecordingSource | StudyRecording
"""A recording that is read, or a stand-in of a study file that is simulated."""
_SignalSets = dict[str, list[SensorSignals]]


def study_signals(
    real: Sequence[Source],
    study: SignalStudy,
    options: SignalOptions,
    *,
    jobs: int = 1,
    progress: Callable[[], None] | None = None,
) -> tuple[SignalComparison, list[Failure]]:
    """Read every recording, simulate where asked, and compare the sets.

    `jobs` is the number of processes, which does not affect the result. `progress` is called
    after each recording.

    Returns the comparison and the recordings that could not be read. Raises Sim2RealError
    if no real or no simulated recording could be read.
    """
    tasks: list[tuple[Source, str]] = [(source, REAL) for source in real]
    tasks += [(source, SIMULATED) for source in study.simulated]
    read = functools.partial(_read, study=study, options=options)
    outcomes = map_in_processes(read, tasks, jobs=jobs, progress=progress)
    sets: _SignalSets = {}
    failures: dict[str, list[Failure]] = {REAL: [], SIMULATED: []}
    for (source, side), outcome in zip(tasks, outcomes, strict=True):
        if isinstance(outcome, str):
            failures[side].append(Failure(_place(source), outcome))
            continue
        for label, runs in outcome.items():
            sets.setdefault(label, []).extend(runs)
    for side, lost in failures.items():
        if lost and side not in sets:
            more = f' (and {len(lost) - 1} more)' if len(lost) > 1 else ''
            raise Sim2RealError(f'{lost[0]}{more}')
    runs = sets.pop(REAL)
    comparable = _select_measurable(runs, sets) if study.twins else sets
    comparison = compare_runs(runs, comparable, options)
    lost_models = [NOT_RECORDED(f'model {label}') for label in sets if label not in comparable]
    notes = tuple(by_severity([*lost_models, *comparison.notes]))
    comparison = dataclasses.replace(comparison, notes=notes)
    return comparison, failures[REAL] + failures[SIMULATED]


def _place(source: Source) -> str:
    return source.path if isinstance(source, RecordingSource) else source.name


def _select_measurable(real: Sequence[SensorSignals], sets: _SignalSets) -> _SignalSets:
    """Leave out the models of a sensor that the real runs lack, unless that leaves none."""
    common = set.intersection(*(set(run.measured) for run in real))
    measurable = {
        label: runs
        for label, runs in sets.items()
        if all(common.intersection(run.measured) or run.features for run in runs)
    }
    return measurable or sets


def _read(
    task: tuple[Source, str], study: SignalStudy, options: SignalOptions
) -> _SignalSets | str:
    source, side = task
    # Only real sensors with a simulated counterpart are compared.
    simulated = list(dict.fromkeys(kind for twin in study.twins for kind in twin.models))
    try:
        recording, base = source.read(), options.base_frame
        maker = make_twin_maker(recording, study.world, seed=options.seed, base_frame=base)
        recorded = maker.real
        if side == REAL:
            notes = remarks(recording, recording.notes, base_frame=base, maker=maker)
            recorded = dataclasses.replace(recorded, notes=notes)
        if side == SIMULATED or not study.twins:
            return {side: [run_signals(recorded, options, maker=maker)]}
        sets = {REAL: [run_signals(recorded, options, sensors=simulated, maker=maker)]}
        for twin in study.twins:
            model = maker.at_real_rates(twin) if study.match_rates else twin
            sets[twin.label] = [
                run_signals(
                    dataclasses.replace(
                        maker.make(model, repetition), notes=maker.sensor_notes(model)
                    ),
                    options,
                    # A sensor that stays real would be compared with itself.
                    sensors=list(twin.models),
                    maker=maker,
                )
                for repetition in range(1, study.repetitions + 1)
            ]
    except Sim2RealError as error:
        return str(error)
    return sets


def study_record(
    comparison: SignalComparison,
    failures: Sequence[Failure],
    real: Sequence[Source],
    study: SignalStudy,
) -> Mapping[str, Any]:
    """Return everything needed to repeat and to read a comparison, as JSON values.

    Equal inputs and options give equal records.
    """
    failed = {failure.recording for failure in failures}

    def record(source: Source) -> dict[str, Any]:
        if not isinstance(source, RecordingSource):
            return source.to_mapping()
        return {
            'path': source.path,
            'name': source.name,
            'topics': dict(source.topics),
            'sha256': None if source.path in failed else recording_digest(source.path),
        }

    return {
        'format': 1,
        'versions': versions(),
        'repetitions': study.repetitions,
        'match_rates': study.match_rates,
        'models': {twin.label: twin.to_mapping() for twin in study.twins},
        'real': [record(source) for source in real],
        'simulated': [record(source) for source in study.simulated],
        'failures': [dataclasses.asdict(failure) for failure in failures],
        **comparison_record(comparison),
    }
