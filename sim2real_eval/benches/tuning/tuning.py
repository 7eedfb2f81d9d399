# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Tuning of the parameters of a judge to recordings, with held-out gains."""

from __future__ import annotations

import dataclasses
import math
import pickle
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

from sim2real_eval.benches import settings
from sim2real_eval.benches.settings import format_gain
from sim2real_eval.common.findings import Finding, UnusableFitError, by_severity
from sim2real_eval.judge.estimate import UNUSABLE_CODES, PartCount
from sim2real_eval.judge.protocol import Judge
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.metrics.series import speed
from sim2real_eval.recording.drives import drives_of
from sim2real_eval.recording.reading import RecordingSource
from sim2real_eval.recording.recording import Recording
from sim2real_eval.study.options import MIN_BLOCKS, RMS_UNITS, TuneOptions
from sim2real_eval.study.search.engine import (
    EvaluationPool,
    EvaluationStore,
    Gain,
    Progress,
    SearchSpace,
    Values,
    deal_blocks,
    estimate_gain,
    least_blocks,
)
from sim2real_eval.study.search.stepwise import (
    Minimisation,
    SingleGain,
    StepwiseSearch,
    minimise_loss,
)
from sim_sensors.core.errors import ParameterError, Sim2RealError
from sim_sensors.core.measurements import FloatArray, IntArray
from .evaluations import JudgeLosses, TuningTask, load_losses
from .parameters import Tunable, set_parameters, tunables

_SPEED_TOLERANCE = 1e-5
"""Largest difference in m/s between the speeds of filter and node that still counts as equal."""


def compare_with_node(judge: Judge, recording: Recording, heading: float | None) -> Finding | None:
    """Judge a recording with the node and the embedded filter, and report their difference.

    The node is that of the judge, or of robot_localization if it is installed with ROS. Returns
    None if there is no such node, or if it does not support the configuration.
    """
    if not isinstance(judge, JudgeSetup) or find_spec('rclpy') is None:
        return None
    from sim2real_eval.judge.external import NodeJudgeSetup

    node: Judge = judge
    if not isinstance(judge, NodeJudgeSetup):
        try:
            node = NodeJudgeSetup.from_setup(judge, 'robot_localization')
        except Sim2RealError:
            return None
    embedded = judge.with_start(start_heading=heading).batch_run(recording)
    try:
        from_node = node.judge(recording, start_heading=heading)
    except Sim2RealError as error:
        return settings.NODE_DIFFERS(recording.name, problem=f'it failed: {error}')
    _, rows, node_rows = np.intersect1d(embedded.stamp_ns, from_node.stamp_ns, return_indices=True)
    if not len(rows):
        problem = 'it gives no estimate at the stamps of the search'
        return settings.NODE_DIFFERS(recording.name, problem=problem)
    speeds = [
        speed(run.linear_velocity[common], run.orientation[common])
        for run, common in ((embedded, rows), (from_node, node_rows))
    ]
    difference = float(np.abs(speeds[0] - speeds[1]).max())
    if difference < _SPEED_TOLERANCE:
        return settings.NODE_AGREES(recording.name, difference=difference, count=len(rows))
    problem = f'speeds differ by up to {difference:.3g} m/s at {len(rows)} equal stamps'
    return settings.NODE_DIFFERS(recording.name, problem=problem)


_OVER_FITTED = 0.5
"""Ratio of held-out to training gain below which a tuning over-fits."""
_HEADING_OFF = math.radians(20.0)
"""Mean heading error above which a finding is reported."""
_LOSS_NAMES = {
    'speed': 'the error of speed',
    'position': 'the error of position',
    'heading': 'the error of heading',
    'nees': 'the score of the stated covariance',
    'likelihood': 'the likelihood of the innovations',
}


class TunedParameter(NamedTuple):
    """A parameter after the tuning.

    `low` and `high` are the ends of its interval (`StepwiseSearch.intervals`); None for an end
    beyond the bounds, for a choice, and for a parameter that did not change. `alone` is the gain
    from changing only this parameter, if it did not change.
    """

    parameter: Tunable
    value: float
    changed: bool
    low: float | None = None
    high: float | None = None
    alone: SingleGain | None = None


class HeldOutBlock(NamedTuple):
    """Recordings held out together, and their mean losses.

    `before` is the loss at the start, `after` that with the tuned values, and `held_out` that with
    the values tuned without this block.
    """

    recordings: tuple[str, ...]
    before: float
    after: float
    held_out: float


class LossComparison(NamedTuple):
    """Mean loss over windows before and after tuning; gains of RMS errors are relative.

    `held_out` is the mean loss of each block with the values tuned without it, or None for test
    recordings. `gain` is that on the held-out blocks, or on the test recordings.
    """

    kind: str
    before: float
    after: float
    held_out: float | None
    gain: Gain

    @property
    def training_gain(self) -> float:
        """Gain on the recordings used for tuning."""
        scale = self.before if self.kind in RMS_UNITS else 1.0
        return (self.before - self.after) / scale


@dataclasses.dataclass(frozen=True, eq=False)
class Tuning:
    """Result of a tuning.

    Attributes
    ----------
    start, judge : Judge
        Judge before and after tuning.
    loss : str
        The loss that was minimised.
    parameters : tuple of TunedParameter
    comparisons, tests : tuple of LossComparison
        Comparisons on the tuning recordings and on those of --test.
    blocks : tuple of HeldOutBlock
    notes : tuple of Finding
        The first names the changed parameters and their gain.
    """

    start: Judge
    judge: Judge
    loss: str
    parameters: tuple[TunedParameter, ...]
    comparisons: tuple[LossComparison, ...]
    tests: tuple[LossComparison, ...]
    blocks: tuple[HeldOutBlock, ...]
    notes: tuple[Finding, ...]

    @property
    def changed(self) -> tuple[TunedParameter, ...]:
        """The parameters with another value than at the start."""
        return tuple(tuned for tuned in self.parameters if tuned.changed)


def tune(
    sources: Sequence[RecordingSource],
    judge: Judge,
    options: TuneOptions | None = None,
    *,
    tests: Sequence[RecordingSource] = (),
    jobs: int = 1,
    progress: Progress | None = None,
    store: EvaluationStore | None = None,
) -> Tuning:
    """Tune parameters of a judge to recordings.

    Parameters
    ----------
    sources : sequence of RecordingSource
        Recorded or simulated runs.
    judge : Judge
        A `JudgeSetup` of robot_localization, or a judge that declares its parameters. The search
        starts from its parameters.
    options : TuneOptions, optional
    tests : sequence of RecordingSource
        Recordings that are used only to test the result, such as real ones after tuning on
        simulated ones.
    jobs : int
        Processes; the result does not depend on it.
    progress : Progress, optional
    store : EvaluationStore, optional
        Evaluations of an interrupted tuning, which are not repeated.

    Raises
    ------
    Sim2RealError
        For a recording that cannot be read or judged, or has no truth where one is needed.
    UnusableFitError
        When the tuned judge gives no usable estimate of the shortest recording, or rejects most
        measurements of an input that it accepted before.

    Examples
    --------
    >>> import tempfile
    >>> from sim2real_eval import simulate
    >>> from sim2real_eval.recording.writing import write_recording
    >>> from sim_sensors import motion_of
    >>> drive = simulate(motion_of('line', duration=6.0), gps='baseline', imu='ideal')
    >>> options = TuneOptions(parameters='imu0_twist_rejection_threshold', warmup=1.0, blocks=6)
    >>> from sim2real_eval.judge.setup import JudgeSetup
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_recording(drive, f'{folder}/drive')
    ...     tuning = tune([RecordingSource(f'{folder}/drive')], JudgeSetup.load('clean'), options)
    >>> tuning.changed, tuning.notes[0].code
    ((), 'tune.unchanged')
    """
    options = options or TuneOptions()
    parameters = tunables(judge, options.names)
    least = least_blocks(1.0 - (1.0 - options.level) / len(parameters))
    if options.blocks < least:
        problem = f'{options.blocks} blocks are too few to validate {len(parameters)} parameters'
        raise ParameterError('--blocks', '', f'{problem}; must be >= {least}')
    windows = math.ceil(options.blocks / len(sources))
    task = TuningTask(
        tuple(sources), judge, parameters, options.objective, windows, options.warmup
    )
    pickled = pickle.dumps(task)
    losses = load_losses(pickled)
    check_likelihood(losses.loss, parameters)
    drives = drives_of(losses.recordings)
    blocks = deal_blocks(drives, windows, options.blocks)
    with EvaluationPool(jobs, progress, store) as pool:
        result = _search(pickled, SearchSpace(parameters), blocks, pool, options.level)
    start, level = result.start, options.level
    comparisons = tuple(
        _compare_losses(loss, result.losses[start][loss], result.losses[result.values][loss],
                        blocks, level, held)
        for loss, held in result.held_out(blocks).items()
    )  # fmt: skip
    comparison = next(candidate for candidate in comparisons if candidate.kind == losses.loss)
    is_better = bool(result.selected) and comparison.gain.low > 0.0
    values = result.values if is_better else start
    folds = result.folds if is_better else [start] * len(blocks)
    tuned = tuple(
        TunedParameter(parameter, values[i], True, *result.intervals.get(i, (None, None)))
        if is_better and i in result.selected
        else TunedParameter(parameter, parameter.start, False, alone=result.single_gains.get(i))
        for i, parameter in enumerate(parameters)
    )
    notes = [_verdict(tuned, comparison, is_tried=bool(result.selected), level=level)]
    notes += _parameter_findings(tuned, comparison)
    if len(drives) < len(blocks):
        notes.append(_same_drives('', len(blocks), len(drives)))
    if losses.starts_with_true_heading:
        notes.append(settings.TRUE_HEADING())
    heading_error = float(np.mean(result.losses[values].get('heading', 0.0)))
    # The remedy of this finding is valid only for robot_localization.
    if isinstance(judge, JudgeSetup) and heading_error > _HEADING_OFF:
        notes.append(settings.HEADING_OFF(error=math.degrees(heading_error)))
    tuned_judge = set_parameters(judge, parameters, values)
    _check_estimate(judge, tuned_judge, *losses.shortest)
    if is_better and (difference := compare_with_node(tuned_judge, *losses.shortest)):
        notes.append(difference)
    tested: tuple[LossComparison, ...] = ()
    if tests:
        tested, test_notes = _test(task._replace(loss=losses.loss), tests, values, options)
        notes += test_notes
    source_names = [source.expected_name() for source in sources]
    return Tuning(
        judge,
        tuned_judge,
        losses.loss,
        tuned,
        comparisons if is_better else (),
        tested,
        tuple(
            HeldOutBlock(
                tuple(dict.fromkeys(source_names[i // windows] for i in block.tolist())),
                *(
                    float(result.losses[v][losses.loss][block].mean())
                    for v in (start, values, fold)
                ),
            )
            for block, fold in zip(blocks, folds, strict=True)
        ),
        tuple(by_severity(notes)),
    )


def _check_estimate(
    start: Judge, tuned: Judge, recording: Recording, heading: float | None
) -> None:
    """Raise UnusableFitError if the tuned judge has no usable estimate, or rejects an input."""
    before, after = (judge.judge(recording, start_heading=heading) for judge in (start, tuned))
    problem = next((str(note) for note in after.notes if note.code in UNUSABLE_CODES), '')
    rejected_before = {part.name for part in before.parts if _is_rejected(part)}
    for part in after.parts:
        if _is_rejected(part) and part.name not in rejected_before:
            count = part.fused + part.rejected
            problem = f'{part.name}: {part.rejected} of {count} measurements are rejected'
    if problem:
        raise UnusableFitError(
            f'no tuning: with the tuned parameters, {recording.name} has no usable estimate: '
            f'{problem}; check the recordings with `sim2real check`'
        )


def _is_rejected(part: PartCount) -> bool:
    """Return whether most measurements of an input are rejected."""
    return 2 * part.rejected > part.fused + part.rejected


def check_likelihood(loss: str, parameters: Sequence[Tunable]) -> None:
    """Raise ParameterError if parameters change which measurements the likelihood includes."""
    inputs = [parameter.name for parameter in parameters if parameter.group == 'inputs']
    if loss == 'likelihood' and inputs:
        problem = 'changes which measurements are fused, so likelihoods cannot be compared'
        raise ParameterError('--parameters', '', f'{inputs[0]} {problem}; needs a truth')


class _SearchResult(NamedTuple):
    start: Values
    values: Values
    selected: list[int]
    single_gains: Mapping[int, SingleGain]
    intervals: Mapping[int, tuple[float | None, float | None]]
    folds: list[Values]  # values without each block
    losses: dict[Values, dict[str, FloatArray]]  # every available loss of start, values and folds

    def held_out(self, blocks: Sequence[IntArray]) -> dict[str, list[FloatArray]]:
        """Return every loss of each block with the values that were found without it."""
        return {
            loss: [
                self.losses[fold][loss][block]
                for fold, block in zip(self.folds, blocks, strict=True)
            ]
            for loss in self.losses[self.start]
        }


def _search(
    pickled: bytes,
    space: SearchSpace[Tunable],
    blocks: Sequence[IntArray],
    pool: EvaluationPool,
    level: float,
) -> _SearchResult:
    def evaluate(candidates: Sequence[Values]) -> list[FloatArray]:
        keys = [('losses', values) for values in candidates]
        return pool.map(partial(_window_losses, pickled=pickled), candidates, keys=keys)

    def minimise(requests: Sequence[Minimisation]) -> list[Values]:
        keys = [request.key for request in requests]
        return pool.map(partial(_minimise, pickled=pickled), requests, keys=keys)

    search = StepwiseSearch(space, blocks, evaluate, minimise)
    search.run(level)
    folds = search.fit_folds()
    intervals = search.intervals(level)
    candidates = list(dict.fromkeys([space.start, search.values, *folds]))
    rows = pool.map(
        partial(_all_losses, pickled=pickled),
        candidates,
        keys=[('all losses', values) for values in candidates],
    )
    losses = dict(zip(candidates, rows, strict=True))
    return _SearchResult(
        space.start, search.values, search.selected, search.single_gains, intervals, folds, losses
    )


def _window_losses(values: Values, *, pickled: bytes) -> FloatArray:
    return load_losses(pickled).losses(values)


def _all_losses(values: Values, *, pickled: bytes) -> dict[str, FloatArray]:
    return load_losses(pickled).all_losses(values)


def _minimise(request: Minimisation, *, pickled: bytes) -> Values:
    losses = load_losses(pickled)
    return minimise_loss(losses.task.parameters, losses.losses, request)


def _compare_losses(
    loss: str, before: FloatArray, after: FloatArray, blocks: Sequence[IntArray], level: float,
    held_out: Sequence[FloatArray] | None = None,
) -> LossComparison:  # fmt: skip
    """Compare a loss over windows; `held_out` holds each block with values tuned without it."""
    after_by_block = [after[block] for block in blocks] if held_out is None else held_out
    pairs = zip(blocks, after_by_block, strict=True)
    gains = np.array([(before[block] - block_loss).sum() for block, block_loss in pairs])
    scale = before if loss in RMS_UNITS else np.ones(len(before))
    gain = estimate_gain(gains, level, np.array([scale[block].sum() for block in blocks]))
    mean = None if held_out is None else float(np.concatenate(held_out).mean())
    return LossComparison(loss, float(before.mean()), float(after.mean()), mean, gain)


def _test(
    task: TuningTask, tests: Sequence[RecordingSource], values: Values, options: TuneOptions
) -> tuple[tuple[LossComparison, ...], list[Finding]]:
    """Compare start and tuned values on recordings that the search did not use.

    Blocks are whole drives if there are enough drives, otherwise a finding is added.
    """
    windows = math.ceil(MIN_BLOCKS / len(tests))
    losses = JudgeLosses(task._replace(sources=tuple(tests), windows=windows))
    drives = drives_of(losses.recordings)
    has_enough_drives = len(drives) >= MIN_BLOCKS
    count = min(options.blocks, len(drives) if has_enough_drives else len(losses.start))
    blocks = deal_blocks(drives, windows, count)
    notes = []
    if not has_enough_drives:
        notes.append(_same_drives('--test', count, len(drives)))
    before = losses.all_losses(SearchSpace(task.parameters).start)
    after = losses.all_losses(values)
    comparisons = tuple(
        _compare_losses(loss, before[loss], after[loss], blocks, options.level) for loss in before
    )
    return comparisons, notes


def _same_drives(subject: str, blocks: int, drives: int) -> Finding:
    noun = 'drive' if drives == 1 else 'drives'
    return settings.SAME_DRIVES(subject, blocks=blocks, drives=drives, noun=noun)


def _verdict(
    tuned: Sequence[TunedParameter], comparison: LossComparison, *, is_tried: bool, level: float
) -> Finding:
    loss, gain = comparison.kind, comparison.gain
    name = _LOSS_NAMES[loss]
    changed = sum(parameter.changed for parameter in tuned)
    mean, low, high = (format_gain(loss, number) for number in (gain.mean, gain.low, gain.high))
    if changed:
        scale, unit = (100.0, ' %') if loss in RMS_UNITS else (1.0, ' in natural logarithms')
        return settings.BETTER(
            changed=changed,
            tried=len(tuned),
            error=name,
            gain=scale * gain.mean,
            low=scale * gain.low,
            high=scale * gain.high,
            unit=unit,
            level=100.0 * level,
        )
    reason = f'no other value makes {name} significantly better on held-out blocks of recordings'
    if is_tried:
        reason = (
            f'parameters that gain individually gain {mean} together on held-out blocks of '
            f'recordings ({low} to {high}), which may be chance'
        )
    return settings.UNCHANGED(tried=len(tuned), reason=reason)


def _parameter_findings(
    tuned: Sequence[TunedParameter], comparison: LossComparison
) -> list[Finding]:
    notes, gain, training = [], comparison.gain.mean, comparison.training_gain
    changed = [parameter for parameter in tuned if parameter.changed]
    if changed and gain < _OVER_FITTED * training:
        training_text, gain_text = (format_gain(comparison.kind, g) for g in (training, gain))
        notes.append(settings.OVER_FITS(training=training_text, gain=gain_text))
    for tuned_parameter in changed:
        parameter = tuned_parameter.parameter
        if parameter.is_at_bound(tuned_parameter.value):
            text = parameter.format_value(tuned_parameter.value)
            notes.append(settings.AT_BOUND(parameter.name, value=text))
        if parameter.group == 'covariance':
            notes.append(settings.NO_PARAMETER(parameter.name, factor=tuned_parameter.value))
    return notes
