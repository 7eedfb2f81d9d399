# SPDX-License-Identifier: Apache-2.0
"""Recordings judged again and again: read and prepared once, so that only the filter runs."""

from __future__ import annotations

import dataclasses
import functools
import pickle
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from sim2real_eval.common.errors import JudgeError
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
from sim2real_eval.recording.frames import FrameTree
from sim2real_eval.recording.reading import Source
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.truth import truth_at, truth_of_base
from sim2real_eval.study.adapting import lacks_heading, true_heading
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.measurements import FloatArray, IntArray, OdometryArray
from sim_sensors.core.rotations import heading
from .options import KINDS, RMS
from .parameters import Tunable, tuned


def losses(
    kind: str,
    judge: Judge,
    recording: Recording,
    truth: OdometryArray | None,
    judged: JudgedRun,
    edges: IntArray,
) -> FloatArray:
    """Return the loss of one of `options.KINDS` in each window; NaN where a window has nothing.

    `truth` is that of the base frame; None: only the likelihood can be had. `edges`, (w + 1,) ns,
    are the ends of the windows. JudgeError for an estimate that is not a number.

    The likelihood is that of every measurement, refused ones included, given those before it:
    half of log det S + NIS, averaged over measurements ([BarShalom2001], section 5.4).
    """
    if told := judged.diverged:
        raise JudgeError(f'{recording.name}: {told[0]}')
    if not len(judged):
        raise JudgeError(f'{recording.name}: the judge published no estimate')
    if kind == 'likelihood':
        seen = judged.corrections
        if seen.determinant is None:
            return np.full(len(edges) - 1, np.nan)
        with np.errstate(divide='ignore'):
            values = 0.5 * (seen.nis + np.log(seen.determinant))
        return _means(seen.stamp_ns, values, edges)
    assert truth is not None
    stamps = judged.stamp_ns
    inside = (stamps >= truth.stamp_ns[0]) & (stamps <= truth.stamp_ns[-1])
    stamps = stamps[inside]
    if kind == 'speed':
        true = speed(truth.linear_velocity, truth.orientation)
        error = speed(judged.linear_velocity[inside], judged.orientation[inside])
        squares = (error - np.interp(stamps, truth.stamp_ns, true)) ** 2
    else:
        squares = _in_world(kind, judge, recording, truth, judged, np.flatnonzero(inside))
    means = _means(stamps, squares, edges)
    return means if kind == 'nees' else np.sqrt(means)


def _in_world(
    kind: str, judge: Judge, recording: Recording, truth: OdometryArray,
    judged: JudgedRun, inside: IntArray,
) -> FloatArray:  # fmt: skip
    """Return squared errors of position or heading, or minus the logarithm of the density."""
    world = judged_world(judge, recording, truth, judged).truth
    true = truth_at(world, judged.stamp_ns[inside])
    away = judged.position[inside] - true.position
    turned = heading(judged.orientation[inside]) - heading(true.orientation)
    turned = (turned + np.pi) % (2.0 * np.pi) - np.pi
    if kind == 'position':
        return np.asarray(np.sum(away[:, :2] ** 2, axis=1))
    if kind == 'heading':
        return np.asarray(turned**2)
    axes = list(known_axes(judge)[0])
    pose, twist = judged.pose_covariance[inside], judged.twist_covariance[inside]
    if judged.unknown & {'pose_covariance', 'twist_covariance'}:
        return np.full(len(inside), np.nan)
    velocity = judged.linear_velocity[inside] - true.linear_velocity
    score = np.zeros(len(inside))
    for error, covariance in (
        (away[:, axes], pose[:, axes][:, :, axes]),
        (turned[:, None], pose[:, 5:, 5:]),
        (velocity[:, axes], twist[:, axes][:, :, axes]),
    ):
        solved = np.linalg.solve(covariance, error[..., None])[..., 0]
        score += 0.5 * (np.sum(error * solved, axis=1) + np.linalg.slogdet(covariance)[1])
    return score


def _means(stamps: IntArray, values: FloatArray, edges: IntArray) -> FloatArray:
    window = np.searchsorted(edges, stamps, side='right') - 1
    count = len(edges) - 1
    mine = (window >= 0) & (window < count)
    sums = np.bincount(window[mine], weights=values[mine], minlength=count)
    n = np.bincount(window[mine], minlength=count)
    return np.asarray(np.divide(sums, n, out=np.full(count, np.nan), where=n > 0))


_MOST_WORSE = 4.0
"""How much larger than at the start a loss may become: what lies beyond is equally bad."""


class Task(NamedTuple):
    """What is tuned on what; equal in every process."""

    sources: tuple[Source, ...]
    judge: Judge
    parameters: tuple[Tunable, ...]
    by: str | None  # of `options.KINDS`; None: speed where there is truth, else likelihood
    windows: int  # into which each recording is cut
    warmup: float  # s at the beginning of each that do not count


@dataclasses.dataclass(eq=False)
class _Run:
    """A recording, and what the last set-up made of it."""

    recording: Recording
    truth: OdometryArray | None
    heading: float | None
    edges: IntArray
    key: object = None
    prepared: PreparedRecording | None = None


class Evaluations:
    """Losses of parameter values on recordings; a value is judged once.

    `by` is made small; `kinds` are what can be told. `begin` and `end`, (p,) ns, are the times of
    the windows of all recordings, recording by recording, and `start`, (p,), the losses of the
    start.

    Raises Sim2RealError for a recording that cannot be read or judged.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self._runs = [_run(source, task) for source in task.sources]
        has_truth = all(run.truth is not None for run in self._runs)
        self.by = task.by or ('speed' if has_truth else 'likelihood')
        edges = np.array([run.edges for run in self._runs])
        self.begin, self.end = edges[:, :-1].ravel(), edges[:, 1:].ravel()
        self._known: dict[tuple[int, tuple[float, ...]], FloatArray] = {}
        first = tuple(one.start for one in task.parameters)
        judged = [self._judged_run(run, first) for run in self._runs]
        for number, (run, one) in enumerate(zip(self._runs, judged, strict=True)):
            row = self._losses(self.by, run, one)
            if not np.isfinite(row).all():
                raise JudgeError(
                    f'{run.recording.name}: {self.by} cannot be told in each of {task.windows} '
                    f'windows of it; fewer --blocks or a shorter --warmup may help, where '
                    f'{task.judge.name} states what it needs'
                )
            self._known[number, first] = row
        row = np.concatenate([self._known[i, first] for i in range(len(self._runs))])
        self._scale = float(row.mean()) if self.by in RMS else 1.0
        if self._scale == 0.0:
            raise JudgeError(f'the error of {self.by} is zero at the start: nothing to tune')
        self.start = row / self._scale
        kinds = KINDS if has_truth else ('likelihood',)
        self.kinds = tuple(kind for kind in kinds if self._is_told(kind, judged))

    @property
    def is_told_heading(self) -> bool:
        """Whether the filter starts with the true heading, in some recording at least."""
        return any(run.heading is not None for run in self._runs)

    @property
    def shortest(self) -> tuple[Recording, float | None]:
        """The shortest recording, and the heading that a judge is told at its start."""
        run = min(self._runs, key=lambda run: run.edges[-1] - run.edges[0])
        return run.recording, run.heading

    def losses(self, values: Sequence[float], windows: IntArray | None = None) -> FloatArray:
        """Return the losses in all windows, or in some of them, (k,).

        Errors are shares of their mean at the start.
        """
        chosen = np.arange(len(self.begin)) if windows is None else windows
        most = self.start[chosen] + _MOST_WORSE
        number, of = np.divmod(chosen, self.task.windows)
        rows = {i: self._of(i, tuple(values)) for i in np.unique(number).tolist()}
        found = np.array([rows[i][k] for i, k in zip(number.tolist(), of.tolist(), strict=True)])
        return np.asarray(np.fmin(found / self._scale, most))

    def measures(self, values: Sequence[float]) -> dict[str, FloatArray]:
        """Return losses of every kind that can be told, in all windows, in their units."""
        found: dict[str, list[FloatArray]] = {kind: [] for kind in self.kinds}
        for run in self._runs:
            judged = self._judged_run(run, tuple(values))
            for kind in self.kinds:
                found[kind].append(self._losses(kind, run, judged))
        return {kind: np.concatenate(rows) for kind, rows in found.items()}

    def _of(self, number: int, values: tuple[float, ...]) -> FloatArray:
        if (number, values) not in self._known:
            try:
                run = self._runs[number]
                row = self._losses(self.by, run, self._judged_run(run, values))
            except (Sim2RealError, np.linalg.LinAlgError):
                # A candidate may be so bad that the judge fails; the search then leaves it.
                row = np.full(self.task.windows, np.inf)
            self._known[number, values] = row
        return self._known[number, values]

    def _is_told(self, kind: str, judged: Sequence[JudgedRun]) -> bool:
        """Say whether the judge states what a loss needs, and an error is there to gain by."""
        try:
            rows = [self._losses(kind, *pair) for pair in zip(self._runs, judged, strict=True)]
        except (Sim2RealError, np.linalg.LinAlgError):
            return False
        return bool(np.isfinite(rows).all() and (kind not in RMS or np.any(rows)))

    def _losses(self, kind: str, run: _Run, judged: JudgedRun) -> FloatArray:
        return losses(kind, self.task.judge, run.recording, run.truth, judged, run.edges)

    def _judged_run(self, run: _Run, values: tuple[float, ...]) -> JudgedRun:
        parameters = self.task.parameters
        judge = tuned(self.task.judge, parameters, values)
        if not isinstance(judge, JudgeSetup):
            return judge.judge(run.recording, start_heading=run.heading)
        setup = judge.started(start_heading=run.heading)
        # Of what the recording is prepared with, process noise is no part.
        key = tuple(
            value for one, value in zip(parameters, values, strict=True) if one.group != 'noise'
        )
        if run.prepared is None or run.key != key:
            made = prepare(run.recording, setup.filter, setup.navsat, setup.case)
            kept = dataclasses.replace(made.inputs, arrivals=_Kept(made))
            run.prepared = dataclasses.replace(made, inputs=kept)
            run.key = key
        navsat = with_front_end(setup.navsat, setup.case.front_end)
        return judge_prepared(run.prepared, setup.filter, navsat)


class _Kept(Arrivals):
    """Arrivals laid out once, for the timing with which they were prepared."""

    def __init__(self, prepared: PreparedRecording) -> None:
        super().__init__()
        self._spans = list(prepared.inputs.arrivals.spans(prepared.timing))

    def spans(self, timing: Timing) -> Iterator[tuple[int, Messages]]:
        yield from self._spans


def _run(source: Source, task: Task) -> _Run:
    """Read a recording; its windows are equal parts of what counts of it."""
    recording, base = source.read(), task.judge.base_link_frame
    truth, heading = recording.truth, None
    first, last = recording.start_ns, recording.end_ns
    if truth is None or len(truth) < 2:
        if task.by not in (None, 'likelihood'):
            raise JudgeError(
                f'{source.path}: has no truth, which --objective {task.by} needs; likelihood '
                'needs none'
            )
        truth = None
    else:
        transforms = recording.transforms
        if task.judge.transforms is not None:
            transforms, _ = task.judge.transforms.over(transforms)
        truth = truth_of_base(truth, base, FrameTree(transforms, assume_identity=not transforms))
        first, last = int(truth.stamp_ns[0]), int(truth.stamp_ns[-1])
        if lacks_heading(task.judge, recording):
            heading = true_heading(truth)
    first += round(task.warmup * 1e9)
    if first >= last:
        raise JudgeError(
            f'{source.path}: lasts no longer than --warmup, {task.warmup:g} s; must be longer'
        )
    edges = np.linspace(first, last, task.windows + 1).astype(np.int64)
    edges[-1] += 1
    return _Run(recording, truth, heading, edges)


@functools.lru_cache(maxsize=1)
def evaluations_of(pickled: bytes) -> Evaluations:
    """Return the evaluations of a pickled `Task`, the same in all work of a process."""
    return Evaluations(pickle.loads(pickled))
