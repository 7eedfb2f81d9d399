# SPDX-License-Identifier: Apache-2.0
"""Is the filter consistent? Chi-square tests of innovations and errors.

A consistent filter has a normalised innovation squared (NIS) that is chi-square distributed with
as many degrees of freedom as states are measured, and a normalised estimation error squared (NEES)
with as many as are compared ([BarShalom2001], section 5.4). Above the bounds it is
overconfident, below them underconfident. The bounds hold for independent samples. The
innovations of a consistent filter are independent; its errors are not, and count as fewer samples
(`sim2real_eval.metrics.error_curves`). A series that seems worth fewer than `FEWEST` of them
tells neither its mean nor its autocorrelation time, and counts as one.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv

from sim2real_eval.common.findings import Finding
from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.protocol import Judge
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.frames import FrameTree
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.truth import move_truth_to_base
from sim_sensors.core.blocks import by_blocks
from sim_sensors.core.measurements import FloatArray, IntArray, OdometryArray
from . import findings
from .error_curves import effective_samples
from .judged_world import WorldFrameTruth, truth_in_world
from .normalised_squares import Squares, nees, nis

FEWEST = 15.0
"""Independent samples below which their number is not to be had: errors that never change in a
run look as if they were worth three to thirteen. With it consistent filters are called
inconsistent in 4 to 10 % of cases where 5 % are meant, without it in up to 41 %
(docs/explanation/consistency.md).
"""


@dataclasses.dataclass(frozen=True)
class Consistency:
    """A mean of normalised squares against its bounds."""

    name: str  # what was normalised
    samples: int
    effective: float  # how many independent samples they count as
    freedom: float  # mean degrees of freedom of a sample
    ratio: float  # mean of the squares over the mean of the degrees of freedom; 1 is consistent
    # Bounds of the ratio that a consistent filter keeps with `probability`
    lower: float
    upper: float
    probability: float
    # Share of the samples inside their own two-sided bounds, `probability` if consistent
    inside: float

    @property
    def verdict(self) -> str:
        """`consistent`, `overconfident`, `underconfident`, or `no samples`."""
        if not self.samples:
            return 'no samples'
        if self.ratio > self.upper:
            return 'overconfident'
        return 'underconfident' if self.ratio < self.lower else 'consistent'

    def summary(self) -> dict[str, object]:
        """Return everything as plain values; null for what no samples leave open."""
        values = {**dataclasses.asdict(self), 'verdict': self.verdict}
        return {name: None if value != value else value for name, value in values.items()}


def consistency(squares: Squares, probability: float = 0.95) -> Consistency:
    """Hold normalised squares against two-sided chi-square bounds; NaN for no samples."""
    n, total, values = len(squares), int(np.sum(squares.freedom)), squares.squares
    if total == 0:
        nothing = (np.nan,) * 4
        return Consistency(squares.name, n, 0.0, *nothing, probability, np.nan)
    effective = effective_samples(values / squares.freedom) if squares.correlated else float(n)
    if squares.shared or (squares.correlated and effective < FEWEST):
        effective = 1.0
    lower, upper = ratio_bounds(np.array([total / n * effective]), probability)
    return Consistency(
        name=squares.name,
        samples=n,
        effective=effective,
        freedom=total / n,
        ratio=float(np.sum(values) / total),
        lower=float(lower[0]),
        upper=float(upper[0]),
        probability=probability,
        inside=inside_share(squares, probability),
    )


def inside_share(squares: Squares, probability: float) -> float:
    """Return which share of the samples is inside its own two-sided bounds; NaN without any."""
    if not len(squares):
        return np.nan
    # Few degrees of freedom occur, in run after run, and their bounds take longer than the rest.
    kinds = np.unique(squares.freedom)
    bounds = np.array([_bounds(kind, probability) for kind in kinds.tolist()]).T

    def is_inside(values: FloatArray, freedom: IntArray) -> NDArray[np.bool_]:
        low, high = bounds[:, np.searchsorted(kinds, freedom)]
        return np.asarray((values >= low) & (values <= high))

    return float(np.mean(by_blocks(is_inside, squares.squares, squares.freedom)))


@functools.lru_cache
def _bounds(freedom: float, probability: float) -> tuple[float, float]:
    """Return the two-sided bounds of chi-square."""
    low, high = ratio_bounds(np.array([freedom]), probability)[:, 0] * freedom
    return float(low), float(high)


def ratio_bounds(freedom: FloatArray | IntArray, probability: float) -> FloatArray:
    """Return the two-sided bounds, (2, n), of chi-square over its (n,) degrees of freedom."""
    tails = np.array([[0.5 * (1.0 - probability)], [0.5 * (1.0 + probability)]])
    return np.asarray(2.0 * gammaincinv(freedom / 2, tails) / freedom)


def over_runs(runs: Sequence[Sequence[Squares]]) -> list[Squares]:
    """Return the squares of several runs as one series each, by name.

    Innovations are put one after the other. Errors are summed over the runs at equal times since
    each run's first sample, to the end of the shortest ([BarShalom2001], 5.4.2, whose average
    over N runs is that sum over N): runs are independent, so more of them narrow the bounds where
    longer ones hardly do. What a run has not, or no samples of, does not count. Stamps are those
    of the runs for innovations, else times since the first sample.
    """
    by_name: dict[str, list[Squares]] = {}
    for run in runs:
        for squares in run:
            same = by_name.setdefault(squares.name, [])
            if len(squares) or not same:
                same.append(squares)
    return [_joined([one for one in same if len(one)] or same) for same in by_name.values()]


def _joined(same: Sequence[Squares]) -> Squares:
    if not same[0].correlated:
        names = ('stamp_ns', 'squares', 'freedom')
        parts: dict[str, Any] = {
            name: np.concatenate([getattr(one, name) for one in same]) for name in names
        }
        return dataclasses.replace(same[0], **parts)
    if not len(same[0]):
        return same[0]
    since = [one.stamp_ns - one.stamp_ns[0] for one in same]
    # Nothing is asked of a run after its end, nor is there much to gain between its samples.
    times = min(since, key=lambda one: int(one[-1]))
    chosen = [np.searchsorted(one, times) for one in since]
    rows = list(zip(same, chosen, strict=True))
    return dataclasses.replace(
        same[0],
        stamp_ns=times,
        squares=np.sum([one.squares[i] for one, i in rows], axis=0),
        freedom=np.sum([one.freedom[i] for one, i in rows], axis=0),
        shared=any(one.shared for one in same),
    )


class Checked(NamedTuple):
    """NIS of each part, and NEES of each quantity if there is truth; and how they were made."""

    squares: list[Squares]
    notes: tuple[Finding, ...]


def check_consistency(judge: Judge, recording: Recording, judged: JudgedRun) -> Checked:
    """Normalise the innovations and, where there is truth, the errors of a run.

    Of a filter in two_d_mode only x, y and yaw are looked at. Raises what `judged_world` does.
    """
    squares = nis(judged, two_d=planar(judge))
    notes = [findings.PLANAR()] if planar(judge) else []
    if not len(judged.corrections.part):
        notes.append(findings.NO_INNOVATIONS())
    truth = recording.truth
    if truth is None or len(truth) < 2:
        notes.append(findings.NO_TRUTH())
    elif not judged.finite.any():
        notes.append(findings.NO_NUMBERS())
    else:
        world = judged_world(judge, recording, truth, judged)
        notes += world.notes
        squares += nees(judged, world.truth, *known_axes(judge), alignment=world.alignment)
    return Checked(squares, tuple(notes))


def planar(judge: Judge) -> bool:
    """Whether only x, y and yaw of the estimates mean something: a filter in two_d_mode."""
    return isinstance(judge, JudgeSetup) and judge.filter.two_d_mode


def known_axes(judge: Judge) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return which of x, y, z and which of roll, pitch, yaw mean something."""
    return ((0, 1), (2,)) if planar(judge) else ((0, 1, 2), (0, 1, 2))


def judged_world(
    judge: Judge, recording: Recording, truth: OdometryArray, judged: JudgedRun
) -> WorldFrameTruth:
    """Lay the truth of a recording into the world of its judge; see `truth_in_world`.

    The truth may be of any frame, and some estimate is a number. A truth of a frame that nothing
    connects to the base, or not of the same time, is a Sim2RealError.
    """
    base = judge.base_link_frame
    transforms = recording.transforms
    if judge.transforms is not None:
        transforms, _ = judge.transforms.over(transforms)
    frames = FrameTree(transforms, assume_identity=not transforms)
    truth = move_truth_to_base(truth, base, frames)
    fixes, antenna = recording.gps, np.zeros(3)
    if fixes is not None and len(judged.gps_stamp_ns):
        antenna = frames.lookup(base, fixes.frame, 'gps')[1]
    poses = None
    if isinstance(judge, JudgeSetup):
        poses = functools.partial(judge.world_poses, recording)
    return truth_in_world(judged, truth, fixes, antenna, poses)
