# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Consistency of a filter: NIS, NEES and their chi-square tests.

The normalised innovation squared (NIS) of a consistent filter is chi-square distributed with as
many degrees of freedom as states are measured. The normalised estimation error squared (NEES) has
as many as states are compared ([BarShalom2001], section 5.4). A filter is overconfident above the
bounds and underconfident below them.

The bounds hold for independent samples. The innovations of a consistent filter are independent.
Its errors are correlated, so their effective number of samples is smaller than their number
(`sim2real_eval.metrics.error_curves`). Below `FEWEST`, neither the mean nor the correlation time
of the series can be estimated, and the series counts as one sample.
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
from .error_curves import effective_samples
from .judged_world import Alignment, WorldFrameTruth, has_truth_at, truth_in_world
from .options import NO_INNOVATIONS, NO_NUMBERS, NO_TRUTH, PLANAR

FEWEST = 15.0
"""Smallest effective number of samples that can be estimated.

Even constant errors would appear as three to thirteen independent samples. At a nominal 5 %, 4 to
10 % of consistent filters are called inconsistent with this limit, and up to 41 % without it
(docs/explanation/consistency.md).
"""


_MIN_SHARE = 0.9
"""Ratio of the stated variances to those of the alignment below which a filter is overconfident.

A consistent filter has a ratio of at least 1; the margin allows for rounding errors.
"""
_MAX_TURNED = 5.0
"""Largest ratio of the variance due to the rotation of the alignment to the remaining variance.

The remaining variance of a position is the smallest one of all horizontal directions. Positions
with a larger ratio are omitted.
"""

QUANTITIES = ('position', 'orientation', 'velocity', 'angular velocity')


@dataclasses.dataclass(frozen=True, eq=False)
class Squares:
    """Normalised squares over time."""

    name: str  # `NIS` and the part, or `NEES` and the quantity
    stamp_ns: IntArray  # (n,)
    squares: FloatArray  # (n,) chi-square distributed for a consistent filter
    freedom: IntArray  # (n,) degrees of freedom of each square
    correlated: bool  # whether samples of a consistent filter are correlated, as for NEES
    shared: bool = False  # whether the error of the alignment is common to all samples

    def __len__(self) -> int:
        return len(self.stamp_ns)

    def skip_before(self, stamp_ns: int) -> Squares:
        """Return the squares at and after a stamp."""
        late = self.stamp_ns >= stamp_ns
        return dataclasses.replace(
            self,
            stamp_ns=self.stamp_ns[late],
            squares=self.squares[late],
            freedom=self.freedom[late],
        )


def nis(judged: JudgedRun, *, two_d: bool = False) -> list[Squares]:
    """Return the normalised innovation squares of each part, including rejected measurements.

    In two_d_mode, the filter adds measurements of zero for seven states to every part. These
    states are always 0 and uncorrelated with the others, so they neither change the NIS nor count
    as degrees of freedom.
    """
    corrections = judged.corrections
    freedom = corrections.states - two_d * len(TWO_D_STATES)
    columns = corrections.stamp_ns, corrections.nis, freedom
    squares_by_part = []
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
    """Return the normalised estimation error squares of each quantity during the ground truth.

    The quantities are position, orientation, velocity and angular velocity, the last two in the
    body frame. Estimates that are not finite, or whose covariance is not positive definite, are
    omitted.

    The truth is that of the base frame, in the judge's world frame (`truth_in_world`),
    interpolated as by `truth_at`. `axes` are the compared components of x, y, z, and `turns` those
    of roll, pitch, yaw, by default the same as `axes`; two_d_mode has (0, 1) and (2,). `alignment`
    is the error that the alignment of the truth has removed, if any.
    """
    inside = np.flatnonzero(judged.finite & has_truth_at(truth, judged.stamp_ns))
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
    """Return `nees` of the estimates `inside`, whose truth is `true`."""
    turns = axes if turns is None else turns
    counted_axes = (axes, turns, axes, turns)
    aligned = alignment if alignment is not None and alignment.covariance.any() else None
    independent = own_turn = False
    if aligned is not None:
        rows = np.array([*axes, *(3 + turn for turn in turns)])
        small = by_blocks(lambda block: _is_below(aligned, judged, block)[:, rows], inside)
        independent, own_turn = bool(small.any()), aligned.own_turn

    def squared(rows: NDArray[np.intp], *truth_columns: FloatArray) -> FloatArray:
        pose, twist = judged.pose_covariance[rows], judged.twist_covariance[rows]
        if aligned is not None:
            pose = _aligned_covariances(
                aligned, pose, judged.position[rows], independent=independent
            )
        position, orientation, velocity, rate = truth_columns
        errors = (
            judged.position[rows] - position,
            _rotation_errors(judged.orientation[rows], orientation, about_axes=judged.about_axes),
            judged.linear_velocity[rows] - velocity,
            judged.angular_velocity[rows] - rate,
        )
        stated = (pose[:, :3, :3], pose[:, 3:, 3:], twist[:, :3, :3], twist[:, 3:, 3:])
        return np.stack([*map(_normalised_squares, errors, stated, counted_axes)], axis=1)

    squares = by_blocks(
        squared, inside,
        true.position, true.orientation, true.linear_velocity, true.angular_velocity,
    )  # fmt: skip
    stamps = judged.stamp_ns[inside]
    is_shared = (independent or own_turn, independent, False, False)
    quantity_squares = []
    for number, name in enumerate(QUANTITIES):
        column = squares[:, number]
        is_defined = ~np.isnan(column)
        freedom = np.broadcast_to(np.int64(len(counted_axes[number])), int(is_defined.sum()))
        chosen_rows = stamps[is_defined], column[is_defined]
        quantity_squares.append(
            Squares(f'NEES {name}', *chosen_rows, freedom, True, is_shared[number])
        )
    return quantity_squares


def _normalised_squares(
    error: FloatArray, block: FloatArray, counted_axes: tuple[int, ...]
) -> FloatArray:
    """Return e' P^-1 e of errors e and covariances P (`block`), shape (n,).

    It is NaN where P is not positive definite or a value is not finite.
    """
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


def _alignment_covariances(
    alignment: Alignment, position: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the error covariances that the alignment has removed and added, (n, 6, 6) each.

    The module `judged_world` has the derivation.
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
    common, _ = _alignment_covariances(alignment, judged.position[rows])
    stated, smallest = (
        np.diagonal(covariance, axis1=1, axis2=2)
        for covariance in (judged.pose_covariance[rows], common)
    )
    return np.asarray(stated < _MIN_SHARE * smallest)


def _aligned_covariances(
    alignment: Alignment, pose: FloatArray, position: FloatArray, *, independent: bool
) -> FloatArray:
    """Return the covariances of aligned errors, (n, 6, 6).

    The module `judged_world` has the derivation. If `independent`, the errors of the filter
    are independent of those of the alignment.
    """
    common, added = _alignment_covariances(alignment, position)
    if independent:
        return np.asarray(pose + common + added)
    remaining = np.asarray(pose - common + added)
    if not alignment.own_turn:
        # The displacement due to a rotation is known to a few per cent. The smallest variance of
        # the horizontal position is about det / trace.
        away = np.nan_to_num(position - alignment.centre)[:, :2]
        turned = alignment.covariance[5, 5] * np.sum(away**2, axis=1)
        horizontal = remaining[:, :2, :2]
        limit = _MAX_TURNED * np.linalg.det(horizontal)
        remaining[turned * np.trace(horizontal, axis1=1, axis2=2) > limit, :3, :3] = np.nan
    return remaining


def _rotation_errors(estimate: FloatArray, truth: FloatArray, *, about_axes: bool) -> FloatArray:
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
    """Mean of normalised squares with its bounds."""

    name: str  # what was normalised
    samples: int
    effective: float  # effective number of independent samples
    freedom: float  # mean degrees of freedom of a sample
    ratio: float  # mean of the squares over the mean of the degrees of freedom; 1 is consistent
    # Bounds of the ratio of a consistent filter with `probability`
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
        """Return all values for JSON; values that need samples are null if there are none."""
        values = {**dataclasses.asdict(self), 'verdict': self.verdict}
        return {name: None if value != value else value for name, value in values.items()}


def consistency(squares: Squares, probability: float = 0.95) -> Consistency:
    """Compare normalised squares with two-sided chi-square bounds; NaN without samples."""
    n, total, values = len(squares), int(np.sum(squares.freedom)), squares.squares
    if total == 0:
        undefined = (np.nan,) * 4
        return Consistency(squares.name, n, 0.0, *undefined, probability, np.nan)
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
    """Return the share of samples inside their own two-sided bounds; NaN without samples."""
    if not len(squares):
        return np.nan
    inside = 0
    for freedom in np.unique(squares.freedom).tolist():
        low, high = _bounds(freedom, probability)
        values = squares.squares[squares.freedom == freedom]
        inside += int(np.count_nonzero((values >= low) & (values <= high)))
    return inside / len(squares)


@functools.lru_cache
def _bounds(freedom: float, probability: float) -> tuple[float, float]:
    """Return the two-sided bounds of chi-square."""
    low, high = ratio_bounds(np.array([freedom]), probability)[:, 0] * freedom
    return float(low), float(high)


def ratio_bounds(freedom: FloatArray | IntArray, probability: float) -> FloatArray:
    """Return the two-sided bounds, (2, n), of chi-square over its (n,) degrees of freedom."""
    tails = np.array([[0.5 * (1.0 - probability)], [0.5 * (1.0 + probability)]])
    return np.asarray(2.0 * gammaincinv(freedom / 2, tails) / freedom)


def pool_runs(runs: Sequence[Sequence[Squares]]) -> list[Squares]:
    """Merge the normalised squares of several runs into one series per quantity.

    The NIS of the runs are concatenated and keep their stamps. The NEES are summed over the runs
    at equal times since the first sample of each run, up to the end of the shortest run; stamps
    are then these times. The sum is N times the average of [BarShalom2001], section 5.4.2. Runs
    are independent, so more runs narrow the bounds, while longer runs hardly do. Runs without
    samples of a quantity are ignored.
    """
    by_name: dict[str, list[Squares]] = {}
    for run in runs:
        for squares in run:
            by_name.setdefault(squares.name, []).append(squares)
    return [
        _merge([squares for squares in run_squares if len(squares)] or run_squares[:1])
        for run_squares in by_name.values()
    ]


def _merge(run_squares: Sequence[Squares]) -> Squares:
    """Concatenate independent squares of several runs, or sum correlated ones."""
    if not run_squares[0].correlated:
        names = ('stamp_ns', 'squares', 'freedom')
        parts: dict[str, Any] = {
            name: np.concatenate([getattr(squares, name) for squares in run_squares])
            for name in names
        }
        return dataclasses.replace(run_squares[0], **parts)
    if not len(run_squares[0]):
        return run_squares[0]
    elapsed = [squares.stamp_ns - squares.stamp_ns[0] for squares in run_squares]
    # The times end with the shortest run, so the nearest samples are good enough.
    times = min(elapsed, key=lambda stamps: int(stamps[-1]))
    chosen = [np.searchsorted(stamps, times) for stamps in elapsed]
    rows = list(zip(run_squares, chosen, strict=True))
    return dataclasses.replace(
        run_squares[0],
        stamp_ns=times,
        squares=np.sum([squares.squares[i] for squares, i in rows], axis=0),
        freedom=np.sum([squares.freedom[i] for squares, i in rows], axis=0),
        shared=any(squares.shared for squares in run_squares),
    )


class ConsistencyCheck(NamedTuple):
    """Normalised squares of a run, and findings about them.

    They are the NIS of each part and, if there is a ground truth, the NEES of each quantity.
    """

    squares: list[Squares]
    notes: tuple[Finding, ...]
    world: WorldFrameTruth | None = None
    """Truth in the world frame of the judge, if there is truth."""


def check_consistency(judge: Judge, recording: Recording, judged: JudgedRun) -> ConsistencyCheck:
    """Normalise the innovations and, where there is truth, the errors of a run.

    Only x, y and yaw count for a filter in two_d_mode. Raises the errors of `judged_world`.
    """
    squares = nis(judged, two_d=is_planar(judge))
    notes = [PLANAR()] if is_planar(judge) else []
    if not len(judged.corrections.part):
        notes.append(NO_INNOVATIONS())
    truth, world = recording.truth, None
    if truth is None or len(truth) < 2:
        notes.append(NO_TRUTH())
    elif not judged.finite.any():
        notes.append(NO_NUMBERS())
    else:
        world = judged_world(judge, recording, truth, judged)
        notes += world.notes
        squares += nees(judged, world.truth, *known_axes(judge), alignment=world.alignment)
    return ConsistencyCheck(squares, tuple(notes), world)


def is_planar(judge: Judge) -> bool:
    """Return True if only x, y and yaw are meaningful, because the filter is in two_d_mode."""
    return isinstance(judge, JudgeSetup) and judge.filter.two_d_mode


def known_axes(judge: Judge) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the meaningful components of x, y, z and of roll, pitch, yaw."""
    return ((0, 1), (2,)) if is_planar(judge) else ((0, 1, 2), (0, 1, 2))


def judged_world(
    judge: Judge, recording: Recording, truth: OdometryArray, judged: JudgedRun
) -> WorldFrameTruth:
    """Return the truth of a recording in the world frame of its judge; see `truth_in_world`.

    The truth may be that of any frame. Raises Sim2RealError when no transform connects this frame
    to the base, or when truth and estimates do not overlap in time. At least one estimate must be
    finite.
    """
    base = judge.base_link_frame
    transforms = recording.transforms
    if judge.transforms is not None:
        transforms, _ = judge.transforms.merge_with(transforms)
    frames = FrameTree(transforms, assume_identity=not transforms)
    truth = move_truth_to_base(truth, base, frames)
    fixes, antenna = recording.gps, np.zeros(3)
    if fixes is not None and len(judged.gps_stamp_ns):
        antenna = frames.lookup(base, fixes.frame, 'gps')[1]
    poses = None
    if isinstance(judge, JudgeSetup):
        poses = functools.partial(judge.world_poses, recording)
    return truth_in_world(judged, truth, fixes, antenna, poses)
