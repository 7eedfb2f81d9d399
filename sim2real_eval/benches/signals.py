# SPDX-License-Identifier: Apache-2.0
"""Comparison of signals of recordings on disk, with simulated ones given or made on the spot."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sim2real_eval.common.findings import by_severity
from sim2real_eval.common.results import versions
from sim2real_eval.common.workers import map_in_processes
from sim2real_eval.metrics.series_folder import REAL
from sim2real_eval.preflight.checks import remarks
from sim2real_eval.recording.metadata import recording_digest
from sim2real_eval.recording.reading import Failure, Source
from sim2real_eval.signals.answer import comparison_record
from sim2real_eval.signals.comparison import SignalComparison, compare_runs
from sim2real_eval.signals.findings import NOT_RECORDED
from sim2real_eval.signals.measured import SensorSignals, run_signals
from sim2real_eval.signals.options import SignalOptions
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.simulation.twin_maker import maker_with_field
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.world.world import World

SIMULATED = 'simulated'


@dataclasses.dataclass(frozen=True, eq=False)
class SignalStudy:
    """What is held against the real recordings."""

    simulated: tuple[Source, ...] = ()  # simulated recordings; empty when there are twins
    twins: tuple[Twin, ...] = ()  # variants to simulate on the truth of each real recording
    repetitions: int = 1  # simulated runs per recording and variant
    # Simulate at the rates of the real sensors instead of the models' own.
    match_rates: bool = False
    # Whose magnetic field is the true one and the simulated one; None: the one that each real
    # magnetometer measures first, see `early_field`.
    world: World | None = None


_Found = dict[str, list[SensorSignals]]


def study_signals(
    real: Sequence[Source],
    study: SignalStudy,
    options: SignalOptions,
    *,
    jobs: int = 1,
    progress: Callable[[], None] | None = None,
) -> tuple[SignalComparison, list[Failure]]:
    """Read every recording, simulate where asked, and compare the sets.

    Returns the comparison, and the recordings that were left out. It does not depend on the number
    of processes, `jobs`; `progress` is called whenever a recording is done. Raises Sim2RealError
    when no real, or no simulated recording is left.
    """
    tasks = [(source, REAL) for source in real]
    tasks += [(source, SIMULATED) for source in study.simulated]
    read = functools.partial(_read, study=study, options=options)
    outcomes = map_in_processes(read, tasks, jobs=jobs, progress=progress)
    sets: _Found = {}
    failures: dict[str, list[Failure]] = {REAL: [], SIMULATED: []}
    for (source, side), outcome in zip(tasks, outcomes, strict=True):
        if isinstance(outcome, str):
            failures[side].append(Failure(source.path, outcome))
            continue
        for label, runs in outcome.items():
            sets.setdefault(label, []).extend(runs)
    for side, lost in failures.items():
        if lost and side not in sets:
            more = f' (and {len(lost) - 1} more)' if len(lost) > 1 else ''
            raise Sim2RealError(f'{lost[0]}{more}')
    runs = sets.pop(REAL)
    kept = _measurable(runs, sets) if study.twins else sets
    comparison = compare_runs(runs, kept, options)
    lost_models = [NOT_RECORDED(f'model {label}') for label in sets if label not in kept]
    notes = tuple(by_severity([*lost_models, *comparison.notes]))
    comparison = dataclasses.replace(comparison, notes=notes)
    return comparison, failures[REAL] + failures[SIMULATED]


def _measurable(real: Sequence[SensorSignals], sets: _Found) -> _Found:
    """Leave out the models of a sensor that the real runs lack, unless that leaves none."""
    common = set.intersection(*(set(run.measured) for run in real))
    kept = {
        label: runs
        for label, runs in sets.items()
        if all(common.intersection(run.measured) or run.features for run in runs)
    }
    return kept or sets


def _read(task: tuple[Source, str], study: SignalStudy, options: SignalOptions) -> _Found | str:
    source, side = task
    # A real sensor is looked at only where one is simulated.
    simulated = list(dict.fromkeys(kind for twin in study.twins for kind in twin.models))
    try:
        recording, base = source.read(), options.base_frame
        maker = maker_with_field(recording, study.world, seed=options.seed, base_frame=base)
        own = maker.real
        if side == REAL:
            told = remarks(recording, recording.notes, base_frame=base, maker=maker)
            own = dataclasses.replace(own, notes=told)
        if side == SIMULATED or not study.twins:
            return {side: [run_signals(own, options, maker=maker)]}
        found = {REAL: [run_signals(own, options, sensors=simulated, maker=maker)]}
        for twin in study.twins:
            mine = maker.at_real_rates(twin) if study.match_rates else twin
            found[twin.label] = [
                run_signals(
                    dataclasses.replace(
                        maker.make(mine, repetition), notes=maker.sensor_notes(mine)
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
    return found


def study_record(
    comparison: SignalComparison,
    failures: Sequence[Failure],
    real: Sequence[Source],
    study: SignalStudy,
) -> Mapping[str, Any]:
    """Return everything needed to repeat and to read a comparison, as plain values.

    It depends on inputs and options alone, so that equal studies give equal bytes.
    """
    failed = {failure.recording for failure in failures}

    def listed(sources: Sequence[Source]) -> list[dict[str, Any]]:
        return [
            {
                'path': source.path,
                'name': source.name,
                'topics': dict(source.topics),
                'sha256': None if source.path in failed else recording_digest(source.path),
            }
            for source in sources
        ]

    return {
        'format': 1,
        'versions': versions(),
        'repetitions': study.repetitions,
        'match_rates': study.match_rates,
        'models': {twin.label: twin.to_mapping() for twin in study.twins},
        'real': listed(real),
        'simulated': listed(study.simulated),
        'failures': [dataclasses.asdict(failure) for failure in failures],
        **comparison_record(comparison),
    }
