# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Cost on the robot of a filter that was tuned in simulation.

The judge is tuned on the simulated recordings of each model and then run on the real ones. The
transfer loss is its error there over the error of the same judge tuned on real recordings, less
one. The second filter is tuned without the block of recordings that it is tested on. Blocks are
whole drives, or parts of drives if there are few. The interval of a loss is the inverted sign-flip
test over blocks, so that it excludes zero exactly where the test rejects.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from sim2real_eval.benches.settings import TRUE_HEADING
from sim2real_eval.benches.tuning.evaluations import TuningSource, TuningTask, read_windows
from sim2real_eval.benches.tuning.parameters import Tunable, tunables
from sim2real_eval.benches.tuning.tuning import check_likelihood
from sim2real_eval.common.findings import by_severity
from sim2real_eval.judge.protocol import Judge
from sim2real_eval.metrics.options import REAL
from sim2real_eval.recording.recording import Recording
from sim2real_eval.study.blocks import block_findings
from sim2real_eval.study.options import DRIVES, MIN_BLOCKS, RMS_UNITS, TransferOptions
from sim2real_eval.study.search.engine import (
    EvaluationPool,
    EvaluationStore,
    Progress,
    SearchSpace,
    Values,
    deal_blocks,
)
from sim_sensors.core.errors import ParameterError, Sim2RealError
from sim_sensors.core.measurements import FloatArray, IntArray
from . import findings
from .block_statistics import (
    BlockStatistics,
    block_statistics,
    landscape_correlation,
    landscape_distance,
)
from .result import ModelTransfer, ParameterDifference, Transfer
from .search import Losses, TuningSets, spread_tunings
from .sensor_errors import error_ratios
from .sources import MemorySource

_MIN_STEP = 0.15  # decades, or tenths of the unit, by which a tuned value must differ
_MIN_SHARE = 0.1  # of the loss that a parameter must explain
_MIN_LOSS = 0.01  # relative, or in natural logarithms, below which nothing is explained


def measure_transfer(
    real: Sequence[TuningSource | Recording],
    simulated: Mapping[str, Sequence[TuningSource | Recording]],
    judge: Judge,
    options: TransferOptions | None = None,
    *,
    blocks: Sequence[str] | None = None,
    seed: int = 0,
    jobs: int = 1,
    progress: Progress | None = None,
    store: EvaluationStore | None = None,
) -> Transfer:
    """Measure what tuning a judge in simulation costs on real recordings.

    Parameters
    ----------
    real : sequence of Recording or TuningSource
        Real recordings, in memory or read on demand. Only the likelihood of the innovations can
        be compared if they have no truth.
    simulated : mapping of str to sequence of Recording or TuningSource
        Simulated recordings of each model.
    judge : Judge
        A `JudgeSetup` of robot_localization, or a judge that declares its parameters.
    options : TransferOptions, optional
    blocks : sequence of str, optional
        Block of each real recording, see `recording_blocks`; empty for an independent one.
    seed : int
        Seed of the tried tunings.
    jobs : int
        Processes; the result does not depend on it.
    progress : Progress, optional
    store : EvaluationStore, optional
        Evaluations of an interrupted measurement, which are not repeated.

    Raises
    ------
    Sim2RealError
        For a real recording that cannot be read or judged, or if no model can be judged.

    Examples
    --------
    >>> from sim2real_eval import simulate
    >>> from sim2real_eval.judge.setup import JudgeSetup
    >>> from sim_sensors import motion_of
    >>> def drives(gps):
    ...     motion = motion_of('accelerating', duration=8.0)
    ...     return [simulate(motion, gps=gps, imu='ideal', name=f'd{k}', seed=k) for k in range(6)]
    >>> transfer = measure_transfer(
    ...     drives('ch_rw'), {'same': drives('ch_rw')}, JudgeSetup.load('clean'),
    ...     TransferOptions(parameters='process_noise_covariance.velocity', tunings=8, warmup=2.0),
    ... )
    >>> transfer.models[0].model, abs(transfer.models[0].loss) < 0.02
    ('same', True)
    """
    options = options or TransferOptions()
    real_sources = _as_sources(real)
    simulated_sources = {name: _as_sources(recordings) for name, recordings in simulated.items()}
    if not simulated:
        raise ParameterError('transfer', '', 'has no model; name at least one')
    for what, sources in {REAL: real_sources, **simulated_sources}.items():
        if not sources:
            raise ParameterError(
                'transfer', '', f'{what} has no recording; must have at least one'
            )
    parameters = tunables(judge, options.names)
    drives = _drives(blocks or [''] * len(real))
    count = min(options.blocks, len(drives)) if len(drives) >= MIN_BLOCKS else options.blocks
    windows = math.ceil(count / len(real))
    task = TuningTask(real_sources, judge, parameters, options.objective, windows, options.warmup)
    # A recording that cannot be used is refused before anything is judged.
    runs = [read_windows(source, task) for source in real_sources]
    notes = [TRUE_HEADING()] if any(run.heading is not None for run in runs) else []
    names = [source.expected_name() for source in real_sources]
    if blocks:
        notes += [note for note in block_findings(names, blocks) if note.kind is DRIVES]
    has_truth = all(run.truth is not None for run in runs)
    del runs
    quantity = options.objective or _common_loss(simulated_sources, has_truth=has_truth)
    check_likelihood(quantity, parameters)
    task = task._replace(loss=quantity)
    held_out = deal_blocks(drives, windows, count)
    tasks = {REAL: task} | {
        model: task._replace(sources=sources, windows=1)
        for model, sources in simulated_sources.items()
    }
    design = spread_tunings(parameters, options.tunings, seed)
    with EvaluationPool(jobs, progress, store) as pool:
        sets = TuningSets(tasks, design, pool)
        transfer = _measure(sets, parameters, judge, quantity, held_out, options, len(drives))
    notes = by_severity([*findings.of_transfer(transfer), *notes])
    return dataclasses.replace(transfer, notes=tuple(notes))


def _as_sources(recordings: Sequence[TuningSource | Recording]) -> tuple[TuningSource, ...]:
    return tuple(
        MemorySource(recording) if isinstance(recording, Recording) else recording
        for recording in recordings
    )


def _drives(blocks: Sequence[str]) -> list[list[int]]:
    """Return the recordings of each block; those without a block are alone."""
    drives: dict[str | int, list[int]] = {}
    for i, block in enumerate(blocks):
        drives.setdefault(block or i, []).append(i)
    return list(drives.values())


def _common_loss(simulated: Mapping[str, Sequence[TuningSource]], *, has_truth: bool) -> str:
    """Return the loss that all sets have: speed if they have truth, as the real ones may."""
    sets = simulated.values()
    has_truth = has_truth and all(sources[0].read().truth is not None for sources in sets)
    return 'speed' if has_truth else 'likelihood'


class _RealErrors(NamedTuple):
    """Errors on the real recordings by tuning, and the tunings without each block."""

    judged: Mapping[Values, Losses | str]
    folds: Sequence[Values]
    held_out: Sequence[IntArray]

    def losses(self, values: Values, quantity: str) -> FloatArray:
        """Return the losses of a tuning in all windows; a failure raises Sim2RealError."""
        return _losses(self.judged[values], quantity)

    def reference(self, quantity: str) -> FloatArray:
        """Return the losses of all windows with the values that were tuned on other blocks."""
        reference = np.empty(sum(map(len, self.held_out)))
        for values, block in zip(self.folds, self.held_out, strict=True):
            reference[block] = self.losses(values, quantity)[block]
        return reference

    def mean_loss(self, values: Values, quantity: str) -> float:
        """Return the transfer loss of a tuning without its statistics."""
        reference = float(self.reference(quantity).mean())
        away = float(self.losses(values, quantity).mean()) - reference
        return away / reference if quantity in RMS_UNITS else away


def _losses(judged: Losses | str, quantity: str) -> FloatArray:
    if isinstance(judged, str):
        raise Sim2RealError(judged)
    return judged[quantity]


def _measure(
    sets: TuningSets,
    parameters: tuple[Tunable, ...],
    judge: Judge,
    quantity: str,
    held_out: Sequence[IntArray],
    options: TransferOptions,
    drives: int,
) -> Transfer:
    if REAL in sets.failures:
        raise Sim2RealError(sets.failures[REAL])
    start, is_error = SearchSpace(parameters).start, quantity in RMS_UNITS
    real_values, folds, tuned = _tune(sets, held_out)
    tunings = list(dict.fromkeys([start, real_values, *folds, *tuned.values()]))
    judged = sets.judge([(REAL, values) for values in tunings])
    on_real = _RealErrors(dict(zip(tunings, judged, strict=True)), folds, held_out)
    failures = sets.failures | {
        model: f'the filter tuned on it fails on the real recordings: {on_real.judged[values]}'
        for model, values in tuned.items()
        if isinstance(on_real.judged[values], str)
    }
    models = [model for model in tuned if model not in failures]
    if not models:
        name, problem = next(iter(failures.items()))
        raise Sim2RealError(f'{name}: {problem}')
    quantities = [name for result in judged[:1] if not isinstance(result, str) for name in result]
    errors = {model: on_real.losses(tuned[model], quantity) for model in models}
    reference = on_real.reference(quantity)
    statistics = block_statistics(errors, reference, held_out, options.level, is_error=is_error)
    differences = _explain(sets, parameters, tuned, real_values, errors, statistics, quantity)
    in_simulation = sets.judge([(model, tuned[model]) for model in models])
    sizes = sets.error_sizes(judge.base_link_frame)
    landscapes = {name: losses.mean(axis=1) for name, losses in sets.losses.items()}
    results = [
        ModelTransfer(
            model,
            tuned[model],
            *statistics[model],
            promised=float(_losses(judged_twin, quantity).mean()),
            achieved=float(errors[model].mean()),
            landscape=landscape_distance(landscapes[REAL], landscapes[model], is_error),
            correlation=landscape_correlation(landscapes[REAL], landscapes[model]),
            differences=differences[model],
            other_losses={name: on_real.mean_loss(tuned[model], name) for name in quantities},
            error_ratios=error_ratios(sizes[REAL], sizes[model]),
        )
        for model, judged_twin in zip(models, in_simulation, strict=True)
    ]
    return Transfer(
        judge, quantity, parameters, real_values,
        float(on_real.losses(start, quantity).mean()), float(reference.mean()),
        tuple(sorted(results, key=lambda result: result.loss)), failures, len(held_out), drives,
        sets.design, landscapes, (),
    )  # fmt: skip


def _tune(
    sets: TuningSets, held_out: Sequence[IntArray]
) -> tuple[Values, list[Values], dict[str, Values]]:
    """Return the best tuning on all real recordings, without each block, and on each model."""
    everything = np.sort(np.concatenate(held_out))
    models = [name for name in sets.losses if name != REAL]
    requests: list[tuple[str, IntArray | None]] = [(REAL, None)]
    requests += [(REAL, np.setdiff1d(everything, block)) for block in held_out]
    best = sets.minimise([*requests, *((model, None) for model in models)])
    folds, tuned = best[1 : len(requests)], best[len(requests) :]
    return best[0], folds, dict(zip(models, tuned, strict=True))


def _explain(
    sets: TuningSets,
    parameters: Sequence[Tunable],
    tuned: Mapping[str, Values],
    real_values: Values,
    errors: Mapping[str, FloatArray],
    statistics: Mapping[str, BlockStatistics],
    quantity: str,
) -> dict[str, tuple[ParameterDifference, ...]]:
    """Return the parameters of each model that explain its loss.

    Each value that differs is replaced by the real one alone, and the filter is run again.
    """
    candidates = [
        (model, i)
        for model in errors
        if statistics[model].loss > _MIN_LOSS
        for i, parameter in enumerate(parameters)
        if _differ(parameter, tuned[model][i], real_values[i])
    ]
    replaced = [
        (*tuned[model][:i], real_values[i], *tuned[model][i + 1 :]) for model, i in candidates
    ]
    judged = sets.judge([(REAL, values) for values in replaced])
    differences: dict[str, list[ParameterDifference]] = {model: [] for model in errors}
    for (model, i), result in zip(candidates, judged, strict=True):
        if isinstance(result, str):
            continue
        achieved = float(errors[model].mean())
        scale = achieved / (1.0 + statistics[model].loss) if quantity in RMS_UNITS else 1.0
        saved = (achieved - float(result[quantity].mean())) / scale
        share = saved / statistics[model].loss
        if share >= _MIN_SHARE:
            differences[model].append(
                ParameterDifference(parameters[i], tuned[model][i], real_values[i], share)
            )
    return {
        model: tuple(sorted(explaining, key=lambda difference: -difference.share))
        for model, explaining in differences.items()
    }


def _differ(parameter: Tunable, simulated: float, real: float) -> bool:
    if parameter.scale == 'choice' or not (simulated and real):
        return simulated != real
    return abs(parameter.coordinate(simulated) - parameter.coordinate(real)) >= _MIN_STEP
