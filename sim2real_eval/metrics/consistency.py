# SPDX-License-Identifier: Apache-2.0
"""Consistency of a filter: NIS, NEES and their chi-square tests.

A consistent filter has a normalised innovation squared (NIS) that is chi-square distributed with
as many degrees of freedom as states are measured, and a normalised estimation error squared (NEES)
with as many as are compared ([BarShalom2001], section 5.4). Above the bounds it is
overconfident, below them underconfident. The bounds hold for independent samples. The
innovations of a consistent filter are independent; its errors are not, and count as fewer samples
(`sim2real_eval.metrics.judged_world`). A series that seems worth fewer than `FEWEST` of them
tells neither its mean nor its autocorrelation time, and counts as one.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation
from scipy.special import gammaincinv

from sim2real_eval.common.findings import Finding
from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.protocol import Judge
from sim2real_eval.judge.robot_localization.state import TWO_D_STATES
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.metadata import FrameTree
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.truth import interpolate_truth, move_truth_to_base
from sim_sensors.core.blocks import by_blocks
from sim_sensors.core.measurements import FloatArray, IntArray, OdometryArray
from sim_sensors.core.rotations import conjugate, log, multiply
from .judged_world import Alignment, WorldFrameTruth, effective_samples, truth_in_world, within
from .options import NO_INNOVATIONS, NO_NUMBERS, NO_TRUTH, PLANAR

FEWEST = 15.0
"""Independent samples below which their number is not to be had: errors that never change in a
run look as if they were worth three to thirteen. With it consistent filters are called
inconsistent in 4 to 10 % of cases where 5 % are meant, without it in up to 41 %
(docs/explanation/consistency.md).
"""


_LEAST_SHARE = 0.9
"""P(t) may fall this far below G C G' by rounding before a filter counts as overconfident."""
_MOST_TURNED = 5.0
"""Positions count up to this variance by the turn, over the least variance that remains."""

QUANTITIES = ('position', 'orientation', 'velocity', 'angular velocity')


@dataclasses.dataclass(frozen=True, eq=False)
class Squares:
    """Normalised squares over time."""

    name: str  # `NIS` and the part, or `NEES` and the quantity
    stamp_ns: IntArray  # (n,)
    squares: FloatArray  # (n,) chi-square distributed for a consistent filter
    freedom: IntArray  # (n,) with so many degrees of freedom
    correlated: bool  # whether samples depend on each other even in a consistent filter: errors do
    shared: bool = False  # whether all samples have one error in common, that of the alignment

    def __len__(self) -> int:
        return len(self.stamp_ns)

    def after(self, stamp_ns: int) -> Squares:
        """Return those at and after a stamp."""
        late = self.stamp_ns >= stamp_ns
        return dataclasses.replace(
            self,
            stamp_ns=self.stamp_ns[late],
            squares=self.squares[late],
            freedom=self.freedom[late],
        )


def nis(judged: JudgedRun, *, two_d: bool = False) -> list[Squares]:
    """Return the normalised innovation squares of each part, refused measurements included.

    A filter in two_d_mode measures seven states as 0 with every part. They are 0 already and
    uncorrelated with the others, so they add nothing to the NIS; nor do they count as degrees of
    freedom here.
    """
    corrections = judged.corrections
    freedom = corrections.states - two_d * len(TWO_D_STATES)
    columns, squares_by_part = (corrections.stamp_ns, corrections.nis, freedom), []
    for number, part in enumerate(judged.parts):
        has_states = (corrections.part == number) & (freedom > 0)
        stamps, squares, degrees = (column[has_states] for column in columns)
        squares_by_part.append(
            Squares(f'NIS {part.name}', stamps, squares, degrees, correlated=False)
        )
    return squares_by_part


def nees(
    judged: JudgedRun,
    truth: OdometryArray,
    axes: tuple[int, ...] = (0, 1, 2),
    turns: tuple[int, ...] | None = None,
    alignment: Alignment | None = None,
) -> list[Squares]:
    """Return the normalised estimation error squares of each quantity where there is truth.

    These are position, orientation, velocity and angular velocity, the last two in the body frame.
    Estimates that are not numbers, or whose covariance is not positive definite, are left out.

    The truth is that of the base frame, in the judge's world frame (`truth_in_world`); `truth_at`
    tells how it is interpolated. `axes` says which of x, y, z count and `turns` which of roll,
    pitch, yaw; None: as `axes`; (0, 1) and (2,) for two_d_mode. `alignment` is what aligning the
    truth took off the errors; None: nothing.
    """
    inside = np.flatnonzero(judged.finite & within(truth, judged.stamp_ns))
    return nees_at(
        judged, inside, interpolate_truth(truth, judged.stamp_ns[inside]), axes, turns, alignment
    )


def nees_at(
    judged: JudgedRun,
    inside: NDArray[np.intp],
    true: OdometryArray,
    axes: tuple[int, ...] = (0, 1, 2),
    turns: tuple[int, ...] | None = None,
    alignment: Alignment | None = None,
) -> list[Squares]:
    """Return what `nees` does, of the estimates `inside` whose truth, `true`, is known."""
    turns = axes if turns is None else turns
    counted_axes = (axes, turns, axes, turns)
    aligned = alignment if alignment is not None and alignment.covariance.any() else None
    independent = own_turn = False
    if aligned is not None:
        rows = np.array([*axes, *(3 + turn for turn in turns)])
        small = by_blocks(lambda some: _is_below(aligned, judged, some)[:, rows], inside)
        independent, own_turn = bool(small.any()), aligned.own_turn

    def squared(rows: NDArray[np.intp], *truth_columns: FloatArray) -> FloatArray:
        pose, twist = judged.pose_covariance[rows], judged.twist_covariance[rows]
        if aligned is not None:
            pose = _without(aligned, pose, judged.position[rows], independent=independent)
        position, orientation, velocity, rate = truth_columns
        errors = (
            judged.position[rows] - position,
            _turned(judged.orientation[rows], orientation, about_axes=judged.about_axes),
            judged.linear_velocity[rows] - velocity,
            judged.angular_velocity[rows] - rate,
        )
        stated = (pose[:, :3, :3], pose[:, 3:, 3:], twist[:, :3, :3], twist[:, 3:, 3:])
        result_squares = map(_normalised, errors, stated, counted_axes)
        return np.stack(list(result_squares), axis=1)

    squares = by_blocks(
        squared, inside,
        true.position, true.orientation, true.linear_velocity, true.angular_velocity,
    )  # fmt: skip
    stamps, shares = (
        judged.stamp_ns[inside],
        (independent or own_turn, independent, False, False),
    )
    result_squares = []
    for number, name in enumerate(QUANTITIES):
        column = squares[:, number]
        is_defined = ~np.isnan(column)
        freedom = np.broadcast_to(np.int64(len(counted_axes[number])), int(is_defined.sum()))
        chosen_rows = stamps[is_defined], column[is_defined]
        result_squares.append(Squares(f'NEES {name}', *chosen_rows, freedom, True, shares[number]))
    return result_squares


def _normalised(error: FloatArray, block: FloatArray, counted_axes: tuple[int, ...]) -> FloatArray:
    """Return e' P^-1 e, (n,), NaN where it is not to be had."""
    rows, columns = np.ix_(counted_axes, counted_axes)
    covariance = block[:, rows, columns]
    finite = np.isfinite(covariance).all(axis=(1, 2)) & np.isfinite(error).all(axis=1)
    finite_rows = np.flatnonzero(finite)
    positive_rows = finite_rows[np.all(np.linalg.eigvalsh(covariance[finite_rows]) > 0.0, axis=1)]
    part = error[positive_rows][:, counted_axes]
    solved = np.linalg.solve(covariance[positive_rows], part[..., None])[..., 0]
    squares = np.full(len(error), np.nan)
    squares[positive_rows] = np.sum(part * solved, axis=1)
    return squares


def _shared(alignment: Alignment, position: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the covariances, (n, 6, 6), of what the alignment took off the errors and of what it
    added; see the derivation in `judged_world`.
    """
    moves = np.tile(np.eye(6), (len(position), 1, 1))
    away = np.nan_to_num(position - alignment.centre)
    moves[:, 0, 5], moves[:, 1, 5] = -away[:, 1], away[:, 0]
    added = np.zeros_like(moves)
    if alignment.own_turn:
        added[:, :3, :3] = moves[:, :3, 5:] @ moves[:, :3, 5:].transpose(0, 2, 1)
        added *= alignment.covariance[5, 5]
        moves[:, :3, 5] = 0.0
    return np.asarray(moves @ alignment.covariance @ moves.transpose(0, 2, 1)), added


def _is_below(
    alignment: Alignment, judged: JudgedRun, rows: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Return whether the stated variances are below those of the alignment, (n, 6)."""
    common, _ = _shared(alignment, judged.position[rows])
    stated, smallest = (
        np.diagonal(covariance, axis1=1, axis2=2)
        for covariance in (judged.pose_covariance[rows], common)
    )
    return np.asarray(stated < _LEAST_SHARE * smallest)


def _without(
    alignment: Alignment, pose: FloatArray, position: FloatArray, *, independent: bool
) -> FloatArray:
    """Return the covariances of aligned errors, (n, 6, 6); see the derivation in `judged_world`.

    `independent`: errors of the filter count as independent of those of the alignment.
    """
    common, added = _shared(alignment, position)
    if independent:
        return np.asarray(pose + common + added)
    since = np.asarray(pose - common + added)
    if not alignment.own_turn:
        # How far a turn moves a position is known to some per cent; det / trace is the least
        # variance.
        away = np.nan_to_num(position - alignment.centre)[:, :2]
        turned = alignment.covariance[5, 5] * np.sum(away**2, axis=1)
        level = since[:, :2, :2]
        most = _MOST_TURNED * np.linalg.det(level)
        since[turned * np.trace(level, axis1=1, axis2=2) > most, :3, :3] = np.nan
    return since


def _turned(estimate: FloatArray, truth: FloatArray, *, about_axes: bool) -> FloatArray:
    """Return the errors of orientations, (n, 3), in the coordinates of their covariance."""
    if about_axes:
        return log(multiply(estimate, conjugate(truth)))
    if not len(estimate):
        return np.zeros((0, 3))
    angles = Rotation.from_quat(estimate).as_euler('xyz')
    angles -= Rotation.from_quat(truth).as_euler('xyz')
    return np.asarray((angles + np.pi) % (2.0 * np.pi) - np.pi)


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

    return float(np.mean(is_inside(squares.squares, squares.freedom)))


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
    longer ones hardly do. Runs without samples of a quantity do not count. Stamps are those
    of the runs for innovations, else times since the first sample.
    """
    by_name: dict[str, list[Squares]] = {}
    for run in runs:
        for squares in run:
            same = by_name.setdefault(squares.name, [])
            if len(squares) or not same:
                same.append(squares)
    return [
        _joined([squares for squares in same if len(squares)] or same) for same in by_name.values()
    ]


def _joined(same: Sequence[Squares]) -> Squares:
    if not same[0].correlated:
        names = ('stamp_ns', 'squares', 'freedom')
        parts: dict[str, Any] = {
            name: np.concatenate([getattr(squares, name) for squares in same]) for name in names
        }
        return dataclasses.replace(same[0], **parts)
    if not len(same[0]):
        return same[0]
    since = [squares.stamp_ns - squares.stamp_ns[0] for squares in same]
    # Nothing is asked of a run after its end, nor is there much to gain between its samples.
    times = min(since, key=lambda stamps: int(stamps[-1]))
    chosen = [np.searchsorted(stamps, times) for stamps in since]
    rows = list(zip(same, chosen, strict=True))
    return dataclasses.replace(
        same[0],
        stamp_ns=times,
        squares=np.sum([squares.squares[i] for squares, i in rows], axis=0),
        freedom=np.sum([squares.freedom[i] for squares, i in rows], axis=0),
        shared=any(squares.shared for squares in same),
    )


class Checked(NamedTuple):
    """NIS of each part, and NEES of each quantity if there is truth; and how they were made."""

    squares: list[Squares]
    notes: tuple[Finding, ...]


def check_consistency(judge: Judge, recording: Recording, judged: JudgedRun) -> Checked:
    """Normalise the innovations and, where there is truth, the errors of a run.

    Only x, y and yaw count for a filter in two_d_mode. Raises what `judged_world` does.
    """
    squares = nis(judged, two_d=planar(judge))
    notes = [PLANAR()] if planar(judge) else []
    if not len(judged.corrections.part):
        notes.append(NO_INNOVATIONS())
    truth = recording.truth
    if truth is None or len(truth) < 2:
        notes.append(NO_TRUTH())
    elif not judged.finite.any():
        notes.append(NO_NUMBERS())
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
