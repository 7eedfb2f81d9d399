# SPDX-License-Identifier: Apache-2.0
"""Parameters of a judge tuned to recordings, and what is known of the result."""

from __future__ import annotations

import dataclasses
import math
import pickle
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

from sim2real_eval.benches import findings
from sim2real_eval.common.findings import Finding, by_severity
from sim2real_eval.common.workers import Workers
from sim2real_eval.judge.protocol import Judge
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.metrics.series import speed
from sim2real_eval.recording.reading import Source
from sim2real_eval.recording.recording import Recording
from sim_sensors.core.errors import ParameterError, Sim2RealError
from sim_sensors.core.measurements import FloatArray, IntArray
from .evaluations import Evaluations, Task, evaluations_of
from .gains import Gain, deal_blocks, drives, gain_of, least_blocks
from .options import LEAST_BLOCKS, RMS, TuneOptions, gain_text
from .parameters import Tunable, tunables, tuned
from .search import Progress, Screened, Search, Values

_CLOSE = 1e-5
"""Largest difference of speed, m/s, of a node that is fed in lockstep."""


def node_check(judge: Judge, recording: Recording, heading: float | None) -> Finding | None:
    """Judge a recording by the node and by the embedded filter; return how far they differ.

    The node is that which the judge is; of the embedded judge, the one of robot_localization,
    where that and ROS are installed. None: there is no such node, or it cannot do what the
    set-up asks for.
    """
    if not isinstance(judge, JudgeSetup) or find_spec('rclpy') is None:
        return None
    from sim2real_eval.judge.external.graph import GraphJudgeSetup

    node: Judge = judge
    if not isinstance(judge, GraphJudgeSetup):
        try:
            node = GraphJudgeSetup.of(judge, 'robot_localization')
        except Sim2RealError:
            return None
    embedded = judge.started(start_heading=heading).batch_run(recording)
    try:
        real = node.judge(recording, start_heading=heading)
    except Sim2RealError as error:
        return findings.NODE_FAILS(recording.name, problem=str(error))
    _, mine, theirs = np.intersect1d(embedded.stamp_ns, real.stamp_ns, return_indices=True)
    if not len(mine):
        return findings.NODE_FAILS(recording.name, problem='no estimate at a time of the search')
    speeds = [
        speed(run.linear_velocity[rows], run.orientation[rows])
        for run, rows in ((embedded, mine), (real, theirs))
    ]
    difference = float(np.abs(speeds[0] - speeds[1]).max())
    kind = findings.NODE_AGREES if difference < _CLOSE else findings.NODE_DIFFERS
    return kind(recording.name, difference=difference, count=len(mine))


_OVER_FITTED = 0.5
_HEADING_OFF = math.radians(20.0)
_WORDS = {
    'speed': 'the error of speed',
    'position': 'the error of position',
    'heading': 'the error of heading',
    'nees': 'the score of the stated covariance',
    'likelihood': 'the likelihood of the innovations',
}


class Examined(NamedTuple):
    """What is known of a parameter.

    `low` and `high` are the ends of its interval (`Search.intervals`); None where that does not
    end within the bounds, for a choice, and for what was left.
    `alone` says what its best value alone would gain, of what was left.
    """

    parameter: Tunable
    value: float
    changed: bool
    low: float | None = None
    high: float | None = None
    alone: Screened | None = None


class Block(NamedTuple):
    """What was held out together, and its loss: at the start, with the tuned values, and with
    the values that were found without it.
    """

    recordings: tuple[str, ...]
    before: float
    after: float
    held_out: float


class Measure(NamedTuple):
    """An error or a score, before and after: its mean over windows. Gains of errors are shares."""

    kind: str
    before: float
    after: float
    held_out: float | None  # with the values that were found without each block
    gain: Gain  # of the held-out blocks, or of the recordings of the test

    @property
    def training(self) -> float:
        """Gain on the recordings on which the values were found."""
        return (self.before - self.after) / (self.before if self.kind in RMS else 1.0)


@dataclasses.dataclass(frozen=True, eq=False)
class Tuning:
    """What tuning came to.

    Attributes
    ----------
    start, judge : Judge
        As given, and tuned.
    by : str
        What was made small.
    parameters : tuple of Examined
    measures, tests : tuple of Measure
        On the recordings of the search and on those of --test.
    blocks : tuple of Block
    notes : tuple of Finding
        The first says which parameters changed and what that gains.
    """

    start: Judge
    judge: Judge
    by: str
    parameters: tuple[Examined, ...]
    measures: tuple[Measure, ...]
    tests: tuple[Measure, ...]
    blocks: tuple[Block, ...]
    notes: tuple[Finding, ...]

    @property
    def changed(self) -> tuple[Examined, ...]:
        """The parameters that are not as they were."""
        return tuple(one for one in self.parameters if one.changed)


def tune(
    sources: Sequence[Source],
    judge: Judge,
    options: TuneOptions | None = None,
    *,
    tests: Sequence[Source] = (),
    jobs: int = 1,
    progress: Progress | None = None,
) -> Tuning:
    """Tune parameters of a judge to recordings.

    Parameters
    ----------
    sources : sequence of Source
    judge : Judge
        Robot_localization's filter, `JudgeSetup`, or one that declares its parameters; where the
        search starts.
    options : TuneOptions, optional
    tests : sequence of Source
        Recordings that are not looked at until everything is found.
    jobs : int
        Processes; the result does not depend on it.
    progress : callable, optional
        Takes the number of tasks that come next and returns what is to be called after each.

    Raises
    ------
    Sim2RealError
        For a recording that cannot be read or judged, or has no truth where one is needed.

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
    ...     found = tune([Source(f'{folder}/drive')], JudgeSetup.load('clean'), options)
    >>> found.changed, found.notes[0].code
    ((), 'tune.unchanged')
    """
    options, told = options or TuneOptions(), progress or (lambda _: None)
    names = options.parameters and [name.strip() for name in options.parameters.split(',')]
    parameters = tunables(judge, names or None)
    least = least_blocks(1.0 - (1.0 - options.level) / len(parameters))
    if options.blocks < least:
        problem = f'{options.blocks} blocks prove nothing of {len(parameters)} parameters'
        raise ParameterError('--blocks', '', f'{problem}; must be >= {least}')
    windows = math.ceil(options.blocks / len(sources))
    task = Task(tuple(sources), judge, parameters, options.objective, windows, options.warmup)
    pickled = pickle.dumps(task)
    # Before the workers start, which are copies of this process.
    evaluations = evaluations_of(pickled)
    by = evaluations.by
    wrong = [one.name for one in parameters if one.group == 'inputs']
    if by == 'likelihood' and wrong:
        problem = 'changes which measurements there are, whose likelihoods cannot be compared'
        raise ParameterError('--parameters', '', f'{wrong[0]} {problem}; needs a truth')
    of_drive = drives(
        evaluations.begin[::windows].tolist(), evaluations.end[windows - 1 :: windows].tolist()
    )
    blocks = deal_blocks(of_drive, windows, options.blocks)
    everything = np.arange(len(evaluations.begin))
    with Workers(jobs) as workers:
        search = Search(pickled, blocks, workers, told)
        search.run(options.level)
        folds = [search.values] * len(blocks)
        if search.kept:
            folds = search.fit(search.values, [np.setdiff1d(everything, b) for b in blocks])
        ends = search.intervals(options.level)
        start = tuple(one.start for one in parameters)
        points = list(dict.fromkeys([start, search.values, *folds]))
        rows = workers.map(partial(_measured, pickled=pickled), points, progress=told(len(points)))
    losses = dict(zip(points, rows, strict=True))
    held = {
        kind: [losses[fold][kind][b] for fold, b in zip(folds, blocks, strict=True)]
        for kind in losses[start]
    }
    level = options.level
    measures = tuple(
        _measure(kind, losses[start][kind], losses[search.values][kind], blocks, level, rows)
        for kind, rows in held.items()
    )
    measure = next(one for one in measures if one.kind == by)
    values, kept, gain = search.values, set(search.kept), measure.gain
    better = bool(kept) and gain.low > 0.0
    if not better:
        values, kept = start, set()
    examined = tuple(
        Examined(one, values[i], True, *ends.get(i, (None, None)))
        if i in kept
        else Examined(one, one.start, False, None, None, search.screened.get(i))
        for i, one in enumerate(parameters)
    )
    notes = [_answer(examined, by, gain, tried=bool(search.kept), level=level)]
    notes += _remarks(examined, measure)
    if len(of_drive) < len(blocks):
        notes.append(findings.SAME_DRIVES(blocks=len(blocks), drives=len(of_drive)))
    if evaluations.is_told_heading:
        notes.append(findings.TRUE_HEADING())
    off = losses[values].get('heading')
    # Of another judge its author knows why.
    if isinstance(judge, JudgeSetup) and off is not None and off.mean() > _HEADING_OFF:
        notes.append(findings.HEADING_OFF(error=math.degrees(off.mean())))
    if better and (checked := node_check(tuned(judge, parameters, values), *evaluations.shortest)):
        notes.append(checked)
    names_of = [source.own_name() for source in sources]
    return Tuning(
        judge,
        tuned(judge, parameters, values),
        by,
        examined,
        measures if better else (),
        _tested(task._replace(by=by), tests, values, options) if tests else (),
        tuple(
            Block(
                tuple(dict.fromkeys(names_of[i // windows] for i in block.tolist())),
                *(float(losses[point][by][block].mean()) for point in (start, values, fold)),
            )
            for block, fold in zip(blocks, folds if better else [start] * len(blocks), strict=True)
        ),
        tuple(by_severity(notes)),
    )


def _measured(values: Values, *, pickled: bytes) -> dict[str, FloatArray]:
    return evaluations_of(pickled).measures(values)


def _measure(
    kind: str, before: FloatArray, after: FloatArray, blocks: Sequence[IntArray], level: float,
    held: Sequence[FloatArray] | None = None,
) -> Measure:  # fmt: skip
    """Return a measure; `held` has the losses of each block with the values of its fold."""
    later = [after[block] for block in blocks] if held is None else held
    pairs = zip(blocks, later, strict=True)
    gains = np.array([(before[block] - one).sum() for block, one in pairs])
    of = before if kind in RMS else np.ones(len(before))
    gain = gain_of(gains, level, np.array([of[block].sum() for block in blocks]))
    held_out = None if held is None else float(np.concatenate(held).mean())
    return Measure(kind, float(before.mean()), float(after.mean()), held_out, gain)


def _tested(
    task: Task, tests: Sequence[Source], values: Values, options: TuneOptions
) -> tuple[Measure, ...]:
    windows = math.ceil(LEAST_BLOCKS / len(tests))
    evaluations = Evaluations(task._replace(sources=tuple(tests), windows=windows))
    whole = np.arange(len(evaluations.begin))
    blocks = np.array_split(whole, min(options.blocks, len(whole)))
    before = evaluations.measures(tuple(one.start for one in task.parameters))
    after = evaluations.measures(values)
    return tuple(
        _measure(kind, before[kind], after[kind], blocks, options.level) for kind in before
    )


def _answer(
    examined: Sequence[Examined], by: str, gain: Gain, *, tried: bool, level: float
) -> Finding:
    changed = sum(one.changed for one in examined)
    if not changed:
        if not tried:
            return findings.UNCHANGED(tried=len(examined), error=_WORDS[by])
        shown = [gain_text(by, one) for one in (gain.mean, gain.low, gain.high)]
        return findings.NOT_BETTER(gain=shown[0], low=shown[1], high=shown[2])
    factor, kind = 1.0, findings.BETTER_SCORE
    if by in RMS:
        factor, kind = 100.0, findings.BETTER
    return kind(
        changed=changed, tried=len(examined), error=_WORDS[by], gain=factor * gain.mean,
        low=factor * gain.low, high=factor * gain.high, level=100.0 * level,
    )  # fmt: skip


def _remarks(examined: Sequence[Examined], measure: Measure) -> list[Finding]:
    notes, held, training = [], measure.gain.mean, measure.training
    if any(one.changed for one in examined) and held < _OVER_FITTED * training:
        shown = [gain_text(measure.kind, one) for one in (training, held)]
        notes.append(findings.OVER_FITS(training=shown[0], gain=shown[1]))
    for one in examined:
        known = one.parameter
        if one.changed and known.is_bound(one.value):
            notes.append(findings.AT_BOUND(known.name, value=known.shown(one.value)))
        if one.changed and known.group == 'covariance':
            notes.append(findings.NO_PARAMETER(known.name, factor=one.value))
    left = [one.parameter.name for one in examined if not one.changed]
    if left and len(left) < len(examined):
        notes.append(findings.LEFT(names=', '.join(left)))
    return notes
