# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Losses of a judge on recordings, which are read and prepared once for all candidates."""

from __future__ import annotations

import dataclasses
import functools
import pickle
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from sim2real_eval.common.findings import JudgeError
from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.protocol import Judge
from sim2real_eval.judge.robot_localization.configuration import with_front_end
from sim2real_eval.judge.robot_localization.embedded import (
    PreparedRecording,
    judge_prepared,
    prepare,
)
from sim2real_eval.judge.robot_localization.inputs import Arrivals
from sim2real_eval.judge.robot_localization.parts import Messages
from sim2real_eval.judge.robot_localization.state import Timing
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.metrics.consistency import judged_world, known_axes
from sim2real_eval.metrics.series import speed
from sim2real_eval.recording.metadata import FrameTree
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.truth import interpolate_truth, move_truth_to_base, true_heading
from sim2real_eval.study.options import LOSSES, RMS_UNITS
from sim2real_eval.study.search.engine import SearchSpace, Values
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.measurements import FloatArray, IntArray, OdometryArray
from sim_sensors.core.rotations import heading
from .parameters import Tunable, set_parameters


def window_losses(
    loss: str,
    judge: Judge,
    recording: Recording,
    truth: OdometryArray | None,
    judged: JudgedRun,
    edges: IntArray,
) -> FloatArray:
    """Return a loss in each window; NaN for a window without samples.

    The likelihood includes refused measurements: half of log det S + NIS, averaged over
    measurements ([BarShalom2001], section 5.4).

    Parameters
    ----------
    loss : str
        One of `study.options.LOSSES`.
    truth : OdometryArray or None
        Truth of the base frame; without it only the likelihood is possible.
    edges : (w + 1,) int
        Ends of the windows, ns.

    Raises
    ------
    JudgeError
        For an estimate that is not finite, or no estimate at all.
    """
    if problems := judged.divergence_findings:
        raise JudgeError(f'{recording.name}: {problems[0]}')
    if not len(judged):
        raise JudgeError(f'{recording.name}: the judge published no estimate')
    if loss == 'likelihood':
        corrections = judged.corrections
        if corrections.determinant is None:
            return np.full(len(edges) - 1, np.nan)
        with np.errstate(divide='ignore'):
            values = 0.5 * (corrections.nis + np.log(corrections.determinant))
        return _window_means(corrections.stamp_ns, values, edges)
    assert truth is not None
    stamps = judged.stamp_ns
    inside = (stamps >= truth.stamp_ns[0]) & (stamps <= truth.stamp_ns[-1])
    stamps = stamps[inside]
    if loss == 'speed':
        true = speed(truth.linear_velocity, truth.orientation)
        error = speed(judged.linear_velocity[inside], judged.orientation[inside])
        squares = (error - np.interp(stamps, truth.stamp_ns, true)) ** 2
    else:
        squares = _pose_losses(loss, judge, recording, truth, judged, np.flatnonzero(inside))
    means = _window_means(stamps, squares, edges)
    return means if loss == 'nees' else np.sqrt(means)


def _pose_losses(
    loss: str, judge: Judge, recording: Recording, truth: OdometryArray,
    judged: JudgedRun, inside: IntArray,
) -> FloatArray:  # fmt: skip
    """Return squared errors of position or heading, or minus the logarithm of the density."""
    world = judged_world(judge, recording, truth, judged).truth
    true = interpolate_truth(world, judged.stamp_ns[inside])
    position_error = judged.position[inside] - true.position
    heading_error = heading(judged.orientation[inside]) - heading(true.orientation)
    heading_error = (heading_error + np.pi) % (2.0 * np.pi) - np.pi
    if loss == 'position':
        return np.asarray(np.sum(position_error[:, :2] ** 2, axis=1))
    if loss == 'heading':
        return np.asarray(heading_error**2)
    axes = list(known_axes(judge)[0])
    pose, twist = judged.pose_covariance[inside], judged.twist_covariance[inside]
    if judged.unknown & {'pose_covariance', 'twist_covariance'}:
        return np.full(len(inside), np.nan)
    velocity_error = judged.linear_velocity[inside] - true.linear_velocity
    score = np.zeros(len(inside))
    for error, covariance in (
        (position_error[:, axes], pose[:, axes][:, :, axes]),
        (heading_error[:, None], pose[:, 5:, 5:]),
        (velocity_error[:, axes], twist[:, axes][:, :, axes]),
    ):
        solved = np.linalg.solve(covariance, error[..., None])[..., 0]
        score += 0.5 * (np.sum(error * solved, axis=1) + np.linalg.slogdet(covariance)[1])
    return score


def _window_means(stamps: IntArray, values: FloatArray, edges: IntArray) -> FloatArray:
    window = np.searchsorted(edges, stamps, side='right') - 1
    count = len(edges) - 1
    inside = (window >= 0) & (window < count)
    sums = np.bincount(window[inside], weights=values[inside], minlength=count)
    n = np.bincount(window[inside], minlength=count)
    return np.asarray(np.divide(sums, n, out=np.full(count, np.nan), where=n > 0))


_MAX_WORSE = 4.0
"""Limit of the increase of a loss over the start: candidates beyond are equally bad."""


class TuningSource(Protocol):
    """A recording that is read on demand, such as a `RecordingSource`."""

    @property
    def path(self) -> str:
        """Path for messages."""

    def expected_name(self) -> str:
        """Return the name of the recording."""

    def read(self) -> Recording:
        """Return the recording."""


class TuningTask(NamedTuple):
    """Recordings, judge and parameters of a tuning; equal in every process."""

    sources: tuple[TuningSource, ...]
    judge: Judge
    parameters: tuple[Tunable, ...]
    loss: str | None  # one of `study.options.LOSSES`; None: speed with truth, else likelihood
    windows: int  # number of windows of each recording
    warmup: float  # beginning of each recording that does not count, s


@dataclasses.dataclass(eq=False)
class WindowedRecording:
    """A recording with its windows, and its preparation for the latest parameters."""

    recording: Recording
    truth: OdometryArray | None
    heading: float | None
    edges: IntArray
    prepared_for: object = None
    prepared: PreparedRecording | None = None


class JudgeLosses:
    """Losses of parameter values on recordings; each value is judged once.

    Attributes
    ----------
    task : TuningTask
    loss : str
        The loss that is minimised.
    losses_available : tuple of str
        The losses that recordings and judge allow.
    scale : float
        Mean error at the start, by which errors are divided; 1 for a score.
    start : (p,) array
        Losses at the start.

    Raises
    ------
    Sim2RealError
        For a recording that cannot be read or judged.
    """

    def __init__(self, task: TuningTask) -> None:
        self.task = task
        self._runs = [read_windows(source, task) for source in task.sources]
        has_truth = all(run.truth is not None for run in self._runs)
        self.loss = task.loss or ('speed' if has_truth else 'likelihood')
        self._rows: dict[tuple[int, Values], FloatArray] = {}
        start = SearchSpace(task.parameters).start
        judged_runs = [self._judge(run, start) for run in self._runs]
        for number, (run, judged) in enumerate(zip(self._runs, judged_runs, strict=True)):
            row = self._losses(self.loss, run, judged)
            if not np.isfinite(row).all():
                raise JudgeError(
                    f'{run.recording.name}: {self.loss} is unknown in some of its {task.windows} '
                    f'windows; try fewer --blocks or a shorter --warmup, if {task.judge.name} '
                    'states what the loss needs'
                )
            self._rows[number, start] = row
        row = np.concatenate([self._rows[i, start] for i in range(len(self._runs))])
        self.scale = float(row.mean()) if self.loss in RMS_UNITS else 1.0
        if self.scale == 0.0:
            raise JudgeError(f'the error of {self.loss} is zero at the start: nothing to tune')
        self.start = row / self.scale
        possible = LOSSES if has_truth else ('likelihood',)
        self.losses_available = tuple(
            loss for loss in possible if self._is_available(loss, judged_runs)
        )

    @property
    def recordings(self) -> list[Recording]:
        """The recordings, in the order of their windows."""
        return [run.recording for run in self._runs]

    @property
    def starts_with_true_heading(self) -> bool:
        """Whether the filter starts with the true heading, in at least one recording."""
        return any(run.heading is not None for run in self._runs)

    @property
    def shortest(self) -> tuple[Recording, float | None]:
        """The shortest recording, and the heading that the judge is given at its start."""
        run = min(self._runs, key=lambda run: run.edges[-1] - run.edges[0])
        return run.recording, run.heading

    def losses(self, values: Values, windows: IntArray | None = None) -> FloatArray:
        """Return the minimised loss in all windows, or in some of them, `(k,)`.

        Errors are divided by their mean at the start.
        """
        selected = np.arange(len(self._runs) * self.task.windows) if windows is None else windows
        limit = self.start[selected] + _MAX_WORSE
        recording, window = np.divmod(selected, self.task.windows)
        rows = {i: self._cached_row(i, tuple(values)) for i in np.unique(recording).tolist()}
        pairs = zip(recording.tolist(), window.tolist(), strict=True)
        losses = np.array([rows[i][k] for i, k in pairs])
        return np.asarray(np.fmin(losses / self.scale, limit))

    def all_losses(self, values: Values) -> dict[str, FloatArray]:
        """Return every available loss in all windows, in its unit."""
        rows: dict[str, list[FloatArray]] = {loss: [] for loss in self.losses_available}
        for run in self._runs:
            judged = self._judge(run, tuple(values))
            for loss in self.losses_available:
                rows[loss].append(self._losses(loss, run, judged))
        return {loss: np.concatenate(parts) for loss, parts in rows.items()}

    def _cached_row(self, number: int, values: Values) -> FloatArray:
        if (number, values) not in self._rows:
            try:
                run = self._runs[number]
                row = self._losses(self.loss, run, self._judge(run, values))
            except (Sim2RealError, np.linalg.LinAlgError):
                # The judge may fail with a bad candidate, which the search then avoids.
                row = np.full(self.task.windows, np.inf)
            self._rows[number, values] = row
        return self._rows[number, values]

    def _is_available(self, loss: str, judged_runs: Sequence[JudgedRun]) -> bool:
        """Return whether a loss is finite in every window, and an error not zero everywhere."""
        try:
            pairs = zip(self._runs, judged_runs, strict=True)
            rows = [self._losses(loss, run, judged) for run, judged in pairs]
        except (Sim2RealError, np.linalg.LinAlgError):
            return False
        return bool(np.isfinite(rows).all() and (loss not in RMS_UNITS or np.any(rows)))

    def _losses(self, loss: str, run: WindowedRecording, judged: JudgedRun) -> FloatArray:
        judge = self.task.judge
        return window_losses(loss, judge, run.recording, run.truth, judged, run.edges)

    def _judge(self, run: WindowedRecording, values: Values) -> JudgedRun:
        parameters = self.task.parameters
        judge = set_parameters(self.task.judge, parameters, values)
        if not isinstance(judge, JudgeSetup):
            return judge.judge(run.recording, start_heading=run.heading)
        setup = judge.with_start(start_heading=run.heading)
        # The preparation of a recording does not depend on process noise.
        key = tuple(
            value
            for parameter, value in zip(parameters, values, strict=True)
            if parameter.group != 'noise'
        )
        if run.prepared is None or run.prepared_for != key:
            prepared = prepare(run.recording, setup.filter, setup.navsat, setup.case)
            inputs = dataclasses.replace(prepared.inputs, arrivals=_StoredArrivals(prepared))
            run.prepared = dataclasses.replace(prepared, inputs=inputs)
            run.prepared_for = key
        navsat = with_front_end(setup.navsat, setup.case.front_end)
        return judge_prepared(run.prepared, setup.filter, navsat)


class _StoredArrivals(Arrivals):
    """Arrivals computed once, for the timing of their preparation."""

    def __init__(self, prepared: PreparedRecording) -> None:
        super().__init__()
        self._spans = list(prepared.inputs.arrivals.spans(prepared.timing))

    def spans(self, timing: Timing) -> Iterator[tuple[int, Messages]]:
        yield from self._spans


def read_windows(source: TuningSource, task: TuningTask) -> WindowedRecording:
    """Read a recording and cut the part after the warm-up into equal windows.

    A recording that is too short, or has no truth for the loss, raises JudgeError.
    """
    recording, base = source.read(), task.judge.base_link_frame
    truth, true_start = recording.truth, None
    first, last = recording.start_ns, recording.end_ns
    if truth is None or len(truth) < 2:
        if task.loss not in (None, 'likelihood'):
            raise JudgeError(
                f'{source.path}: has no truth, which --objective {task.loss} needs; likelihood '
                'needs none'
            )
        truth = None
    else:
        transforms = recording.transforms
        if task.judge.transforms is not None:
            transforms, _ = task.judge.transforms.merge_with(transforms)
        truth = move_truth_to_base(
            truth, base, FrameTree(transforms, assume_identity=not transforms)
        )
        first, last = int(truth.stamp_ns[0]), int(truth.stamp_ns[-1])
        if task.judge.lacks_heading(recording):
            true_start = true_heading(truth)
    first += round(task.warmup * 1e9)
    if first >= last:
        raise JudgeError(
            f'{source.path}: lasts no longer than --warmup, {task.warmup:g} s; must be longer'
        )
    edges = np.linspace(first, last, task.windows + 1).astype(np.int64)
    edges[-1] += 1
    return WindowedRecording(recording, truth, true_start, edges)


@functools.lru_cache(maxsize=1)
def load_losses(pickled: bytes) -> JudgeLosses:
    """Return the losses of a pickled `TuningTask`, built once per process."""
    return JudgeLosses(pickle.loads(pickled))
