# SPDX-License-Identifier: Apache-2.0
"""What a filter that was tuned in simulation costs on the robot.

The judge is tuned on the simulated recordings of each model and then run on the real ones. The
transfer loss is its error there over the error of the same judge tuned on real recordings, less
one. The second filter is tuned without the block of recordings that it is tested on. Blocks are
whole drives, or parts of drives if there are few. The interval of a loss is the inverted sign-flip
test over blocks, so that it excludes zero exactly where the test rejects.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from sim2real_eval.benches.tuning.evaluations import TuningSource, TuningTask
from sim2real_eval.benches.tuning.parameters import Tunable, tunables
from sim2real_eval.common.findings import Finding, by_severity
from sim2real_eval.judge.protocol import Judge
from sim2real_eval.metrics.options import REAL
from sim2real_eval.metrics.permutation_test import joint_p_values, significance_groups
from sim2real_eval.recording.recording import Recording
from sim2real_eval.study.options import LEAST_BLOCKS, RMS_UNITS, TransferOptions
from sim2real_eval.study.search.engine import (
    EvaluationPool,
    EvaluationStore,
    Progress,
    SearchSpace,
    Values,
    deal_blocks,
    estimate_gain,
)
from sim_sensors.core.errors import ParameterError, Sim2RealError
from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.core.seeding import stream
from . import findings
from .search import Losses, TuningSets, spread_tunings
from .sensor_errors import error_ratios
from .sources import MemorySource

_EXACT_SIGNS = 13
_DRAWS = 10_000
_LEAST_STEP = 0.15  # decades, or tenths of the unit, by which a tuned value must differ
_LEAST_SHARE = 0.1  # of the loss that a parameter must explain
_LEAST_LOSS = 0.01  # relative, or in natural logarithms, below which nothing is explained


class ParameterDifference(NamedTuple):
    """A parameter that is tuned otherwise in simulation than on the real recordings.

    `share` is the part of the transfer loss that the real value alone would save.
    """

    parameter: Tunable
    simulated: float
    real: float
    share: float


@dataclasses.dataclass(frozen=True)
class ModelTransfer:
    """Transfer loss of one model.

    Attributes
    ----------
    model : str
    values : tuple of float
        Values of the parameters that were tuned in simulation.
    loss, low, high : float
        Transfer loss with its interval: a share of the error, 0.05 is 5 % more; for a score the
        difference in natural logarithms. The interval is infinite with too few blocks.
    p_value, adjusted : float
        Sign-flip test over blocks that the loss is zero, and the same for the largest of all
        models (maxT, [Westfall1993]).
    group : str
        Letters; models that share one are not significantly different.
    promised, achieved : float
        Mean error of the filter in the simulation that it was tuned in, and on the robot.
    landscape : float
        Distance of the loss landscapes: deviation over the tried tunings of the logarithm of the
        simulated error over the real one. Deviation of the difference, for a score.
    correlation : float
        Correlation of simulated with real error over the tried tunings [Kadian2020].
    differences : tuple of ParameterDifference
        Parameters that explain the loss, the most important first.
    other_losses : mapping of str to float
        Transfer losses of the other errors and scores of the same two filters.
    error_ratios : mapping of str to float
        Sizes of simulated sensor errors over the real ones; see `sensor_error_sizes`. Empty
        without a truth.
    """

    model: str
    values: Values
    loss: float
    low: float
    high: float
    p_value: float
    adjusted: float
    group: str
    promised: float
    achieved: float
    landscape: float
    correlation: float
    differences: tuple[ParameterDifference, ...]
    other_losses: Mapping[str, float]
    error_ratios: Mapping[str, float]


@dataclasses.dataclass(frozen=True)
class Transfer:
    """Transfer losses of the models of a simulation.

    Attributes
    ----------
    judge : Judge
        As given.
    quantity : str
        Error or score that is minimised and compared.
    parameters : tuple of Tunable
    values : tuple of float
        Values that were tuned on all real recordings.
    given, reference : float
        Mean error on the real recordings as given, and tuned on the other blocks.
    models : tuple of ModelTransfer
        The smallest loss first.
    failures : mapping of str to str
        Models that have no loss, and why.
    blocks, drives : int
        Number of blocks, and of drives that the real recordings come from.
    tunings : tuple of tuple of float
        Values of the tunings that all recordings met, the given ones first.
    landscapes : mapping of str to (t,) array
        Mean error of each of these tunings on the `real` recordings and on those of each model.
    notes : tuple of Finding
    """

    judge: Judge
    quantity: str
    parameters: tuple[Tunable, ...]
    values: Values
    given: float
    reference: float
    models: tuple[ModelTransfer, ...]
    failures: Mapping[str, str]
    blocks: int
    drives: int
    tunings: tuple[Values, ...]
    landscapes: Mapping[str, FloatArray]
    notes: tuple[Finding, ...]

    @property
    def is_error(self) -> bool:
        """Whether losses are shares of an error, and not differences of a score."""
        return self.quantity in RMS_UNITS


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
        Real recordings, in memory or read on demand. Without truth only the likelihood of the
        innovations can be compared.
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
    simulated_sources = {name: _as_sources(own) for name, own in simulated.items()}
    if not simulated:
        raise ParameterError('transfer', '', 'has no model; name at least one')
    parameters = tunables(judge, options.names)
    drives = _drives(blocks or [''] * len(real))
    count = min(options.blocks, len(drives)) if len(drives) >= LEAST_BLOCKS else options.blocks
    windows = math.ceil(count / len(real))
    task = TuningTask(real_sources, judge, parameters, options.objective, windows, options.warmup)
    quantity = _common_loss(task, simulated_sources)
    task = task._replace(loss=quantity)
    held_out = deal_blocks(drives, windows, count)
    tasks = {REAL: task} | {
        model: task._replace(sources=sources, windows=1)
        for model, sources in simulated_sources.items()
    }
    design = spread_tunings(parameters, options.tunings, seed)
    with EvaluationPool(jobs, progress, store) as pool:
        sets = TuningSets(tasks, design, pool)
        return _measure(sets, parameters, judge, quantity, held_out, options, len(drives))


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


def _common_loss(task: TuningTask, simulated: Mapping[str, Sequence[TuningSource]]) -> str:
    """Return the loss that all sets have: that of the options, speed with truth, or likelihood."""
    if task.loss is not None:
        return task.loss
    if any(source.read().truth is None for source in task.sources):
        return 'likelihood'
    has_truth = (sources[0].read().truth is not None for sources in simulated.values())
    return 'speed' if all(has_truth) else 'likelihood'


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
    failures = dict(sets.failures)
    models = [name for name in sets.losses if name != REAL]
    everything = np.sort(np.concatenate(held_out))
    requests: list[tuple[str, IntArray | None]] = [(REAL, None)]
    requests += [(REAL, np.setdiff1d(everything, block)) for block in held_out]
    best = sets.minimise(requests + [(model, None) for model in models])
    real_values, *rest = best
    folds, tuned = rest[: len(held_out)], dict(zip(models, rest[len(held_out) :], strict=True))
    start = SearchSpace(parameters).start
    real_tunings = list(dict.fromkeys([start, real_values, *folds, *tuned.values()]))
    on_real = dict(zip(real_tunings, sets.judge([(REAL, v) for v in real_tunings]), strict=True))
    reference = _reference(on_real, folds, held_out, quantity)
    failures |= {
        model: f'the filter tuned on it fails on the real recordings: {on_real[values]}'
        for model, values in tuned.items()
        if isinstance(on_real[values], str)
    }
    models = [model for model in models if model not in failures]
    if not models:
        name, problem = next(iter(failures.items()))
        raise Sim2RealError(f'{name}: {problem}')
    errors = {model: _losses(on_real[tuned[model]], quantity) for model in models}
    statistics = block_statistics(errors, reference, held_out, options.level,
                                  is_error=quantity in RMS_UNITS)  # fmt: skip
    in_simulation = sets.judge([(model, tuned[model]) for model in models])
    sizes = sets.error_sizes(judge.base_link_frame)
    differences = _explain(sets, parameters, tuned, real_values, errors, statistics, quantity)
    landscapes = {name: losses.mean(axis=1) for name, losses in sets.losses.items()}
    results = []
    for model, own in zip(models, in_simulation, strict=True):
        pair = landscapes[REAL], landscapes[model]
        results.append(
            ModelTransfer(
                model,
                tuned[model],
                *statistics[model],
                promised=float(_losses(own, quantity).mean()),
                achieved=float(errors[model].mean()),
                landscape=landscape_distance(*pair, quantity in RMS_UNITS),
                correlation=_correlation(*pair),
                differences=differences[model],
                other_losses=_other_losses(on_real, tuned[model], folds, held_out),
                error_ratios=error_ratios(sizes[REAL], sizes[model]),
            )
        )
    results.sort(key=lambda result: result.loss)
    transfer = Transfer(
        judge, quantity, parameters, real_values,
        float(_losses(on_real[start], quantity).mean()), float(reference.mean()),
        tuple(results), failures, len(held_out), drives, sets.design, landscapes, (),
    )  # fmt: skip
    return dataclasses.replace(transfer, notes=tuple(by_severity(findings.of_transfer(transfer))))


def _losses(judged: Losses | str, quantity: str) -> FloatArray:
    if isinstance(judged, str):
        raise Sim2RealError(judged)
    return judged[quantity]


def _reference(
    on_real: Mapping[Values, Losses | str],
    folds: Sequence[Values],
    held_out: Sequence[IntArray],
    quantity: str,
) -> FloatArray:
    """Return the losses of all windows with the values that were tuned on the other blocks."""
    reference = np.empty(sum(map(len, held_out)))
    for values, block in zip(folds, held_out, strict=True):
        reference[block] = _losses(on_real[values], quantity)[block]
    return reference


def _other_losses(
    on_real: Mapping[Values, Losses | str],
    values: Values,
    folds: Sequence[Values],
    held_out: Sequence[IntArray],
) -> dict[str, float]:
    """Return the loss of every error and score that the real recordings have."""
    tuned = on_real[values]
    if isinstance(tuned, str):
        return {}
    losses = {}
    for quantity, errors in tuned.items():
        reference = float(_reference(on_real, folds, held_out, quantity).mean())
        away = float(errors.mean()) - reference
        losses[quantity] = away / reference if quantity in RMS_UNITS else away
    return losses


class BlockStatistics(NamedTuple):
    """Loss of a model over blocks; see `ModelTransfer`."""

    loss: float
    low: float
    high: float
    p_value: float
    adjusted: float
    group: str


def block_statistics(
    errors: Mapping[str, FloatArray],
    reference: FloatArray,
    blocks: Sequence[IntArray],
    level: float,
    *,
    is_error: bool,
) -> dict[str, BlockStatistics]:
    """Return the loss of each model, with its interval, tests and group.

    Parameters
    ----------
    errors : mapping of str to (p,) float
        Errors of each model in all windows, or a score.
    reference : (p,) float
        The same of the filter that is tuned on real recordings.
    blocks : sequence of (k,) int
        Windows of each block.
    level : float
        Level of the intervals.
    is_error : bool
        Whether losses are shares of the reference.

    Examples
    --------
    >>> blocks = [np.array([k]) for k in range(6)]
    >>> reference = np.array([1.0, 1.1, 0.9, 1.0, 1.2, 0.8])
    >>> worse = reference * [1.1, 1.2, 1.15, 1.1, 1.2, 1.05]
    >>> losses = block_statistics({'a': worse}, reference, blocks, 0.95, is_error=True)
    >>> round(losses['a'].loss, 3), losses['a'].low > 0.0, losses['a'].p_value
    (0.139, True, 0.03125)
    """
    names = list(errors)
    sums = np.array([[errors[name][block].sum() for block in blocks] for name in names])
    scale = np.array(
        [reference[block].sum() if is_error else float(len(block)) for block in blocks]
    )
    differences = sums - np.array([reference[block].sum() for block in blocks])
    signs = _signs(len(blocks))
    adjusted = joint_p_values(np.abs(differences @ signs.T)).adjusted
    order = sorted(range(len(names)), key=lambda k: float(differences[k].sum()))
    pairs = list(itertools.combinations(order, 2))
    distinct = []
    if pairs:
        apart = np.array([differences[i] - differences[k] for i, k in pairs])
        p_values = joint_p_values(np.abs(apart @ signs.T)).adjusted
        distinct = [
            (names[i], names[k])
            for (i, k), p_value in zip(pairs, p_values, strict=True)
            if p_value <= 1.0 - level
        ]
    groups = significance_groups([names[k] for k in order], distinct)
    statistics = {}
    for k, name in enumerate(names):
        gain = estimate_gain(differences[k], level, scale)
        other_side = estimate_gain(-differences[k], level, scale).p_value
        p_value = min(1.0, 2.0 * min(gain.p_value, other_side))
        statistics[name] = BlockStatistics(
            gain.mean, gain.low, gain.high, p_value, adjusted[k], groups[name]
        )
    return statistics


def _signs(count: int) -> FloatArray:
    """Return the signs of the blocks in every flip, the true ones first, `(f, count)`."""
    if count <= _EXACT_SIGNS:
        return np.array(list(itertools.product((1.0, -1.0), repeat=count)))
    drawn = stream(0, 'transfer', 'signs', '').choice((1.0, -1.0), (_DRAWS - 1, count))
    return np.concatenate([np.ones((1, count)), drawn])


def landscape_distance(real: FloatArray, simulated: FloatArray, is_error: bool) -> float:
    """Return the distance of two loss landscapes `(t,)`; see `ModelTransfer.landscape`.

    A constant factor of an error changes no choice, so it counts nothing.

    Examples
    --------
    >>> real = np.array([1.0, 2.0, 4.0])
    >>> landscape_distance(real, 3.0 * real, True) < 1e-12
    True
    """
    away = np.log(simulated / real) if is_error else simulated - real
    return float(away.std())


def _correlation(real: FloatArray, simulated: FloatArray) -> float:
    if real.std() == 0.0 or simulated.std() == 0.0:
        return math.nan
    return float(np.corrcoef(real, simulated)[0, 1])


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
        if statistics[model].loss > _LEAST_LOSS
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
        own = float(errors[model].mean())
        scale = own / (1.0 + statistics[model].loss) if quantity in RMS_UNITS else 1.0
        saved = (own - float(result[quantity].mean())) / scale
        share = saved / statistics[model].loss
        if share >= _LEAST_SHARE:
            differences[model].append(
                ParameterDifference(parameters[i], tuned[model][i], real_values[i], share)
            )
    return {
        model: tuple(sorted(found, key=lambda difference: -difference.share))
        for model, found in differences.items()
    }


def _differ(parameter: Tunable, simulated: float, real: float) -> bool:
    if parameter.scale == 'choice' or not (simulated and real):
        return simulated != real
    return abs(parameter.coordinate(simulated) - parameter.coordinate(real)) >= _LEAST_STEP
