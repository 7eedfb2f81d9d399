# SPDX-License-Identifier: Apache-2.0
"""Innovations and errors in units of the judge's covariance."""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.robot_localization.state import TWO_D_STATES
from sim2real_eval.recording.truth import interpolate_truth
from sim_sensors.core.blocks import by_blocks, column_of, rows_of
from sim_sensors.core.measurements import FloatArray, IntArray, OdometryArray
from sim_sensors.core.rotations import conjugate, log, multiply
from .judged_world import Alignment, within

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
        late = by_blocks(lambda stamps: stamps >= stamp_ns, self.stamp_ns)
        given = (self.stamp_ns, self.squares, self.freedom)
        stamps, squares, freedom = (rows_of(each, late) for each in given)
        return dataclasses.replace(self, stamp_ns=stamps, squares=squares, freedom=freedom)


def nis(judged: JudgedRun, *, two_d: bool = False) -> list[Squares]:
    """Return the normalised innovation squares of each part, refused measurements included.

    A filter in two_d_mode measures seven states as 0 with every part. They are 0 already and
    uncorrelated with the others, so they add nothing to the NIS; nor do they count as degrees of
    freedom here.
    """
    corrections = judged.corrections
    freedom = by_blocks(lambda states: states - two_d * len(TWO_D_STATES), corrections.states)
    given, found = (corrections.stamp_ns, corrections.nis, freedom), []
    for number, part in enumerate(judged.parts):
        is_part = by_blocks(partial(np.equal, number), corrections.part)
        mine = by_blocks(lambda part, states: part & (states > 0), is_part, freedom)
        stamps, squares, kept = (rows_of(each, mine) for each in given)
        found.append(Squares(f'NIS {part.name}', stamps, squares, kept, correlated=False))
    return found


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
        judged, inside, interpolate_truth(truth, rows_of(judged.stamp_ns, inside)), axes, turns, alignment
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
    kept = (axes, turns, axes, turns)
    aligned = alignment if alignment is not None and alignment.covariance.any() else None
    independent = own_turn = False
    if aligned is not None:
        rows = np.array([*axes, *(3 + turn for turn in turns)])
        small = by_blocks(lambda some: _is_below(aligned, judged, some)[:, rows], inside)
        independent, own_turn = bool(small.any()), aligned.own_turn

    def squared(some: NDArray[np.intp], *there: FloatArray) -> FloatArray:
        pose, twist = judged.pose_covariance[some], judged.twist_covariance[some]
        if aligned is not None:
            pose = _without(aligned, pose, judged.position[some], independent=independent)
        position, orientation, velocity, rate = there
        errors = (
            judged.position[some] - position,
            _turned(judged.orientation[some], orientation, about_axes=judged.about_axes),
            judged.linear_velocity[some] - velocity,
            judged.angular_velocity[some] - rate,
        )
        stated = (pose[:, :3, :3], pose[:, 3:, 3:], twist[:, :3, :3], twist[:, 3:, 3:])
        found = map(_normalised, errors, stated, kept)
        return np.stack(list(found), axis=1)

    squares = by_blocks(
        squared, inside,
        true.position, true.orientation, true.linear_velocity, true.angular_velocity,
    )  # fmt: skip
    stamps, shares = (
        rows_of(judged.stamp_ns, inside),
        (independent or own_turn, independent, False, False),
    )
    found = []
    for number, name in enumerate(QUANTITIES):
        mine = column_of(squares, number)
        sound = by_blocks(lambda some: ~np.isnan(some), mine)
        freedom = np.broadcast_to(np.int64(len(kept[number])), int(sound.sum()))
        chosen = rows_of(stamps, sound), rows_of(mine, sound)
        found.append(Squares(f'NEES {name}', *chosen, freedom, True, shares[number]))
    return found


def _normalised(error: FloatArray, block: FloatArray, kept: tuple[int, ...]) -> FloatArray:
    """Return e' P^-1 e, (n,), NaN where it is not to be had."""
    rows, columns = np.ix_(kept, kept)
    covariance = block[:, rows, columns]
    finite = np.isfinite(covariance).all(axis=(1, 2)) & np.isfinite(error).all(axis=1)
    known = np.flatnonzero(finite)
    sound = known[np.all(np.linalg.eigvalsh(covariance[known]) > 0.0, axis=1)]
    part = error[sound][:, kept]
    solved = np.linalg.solve(covariance[sound], part[..., None])[..., 0]
    squares = np.full(len(error), np.nan)
    squares[sound] = np.sum(part * solved, axis=1)
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
    alignment: Alignment, judged: JudgedRun, some: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Return whether the stated variances are below those of the alignment, (n, 6)."""
    common, _ = _shared(alignment, judged.position[some])
    stated, smallest = (
        np.diagonal(one, axis1=1, axis2=2) for one in (judged.pose_covariance[some], common)
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
