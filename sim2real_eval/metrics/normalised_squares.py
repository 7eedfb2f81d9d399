# SPDX-License-Identifier: Apache-2.0
"""Innovations and errors in units of the judge's covariance, in the judge's world frame."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import Finding
from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.robot_localization.inputs import WorldPoses
from sim2real_eval.judge.robot_localization.state import TWO_D_STATES
from sim2real_eval.recording.truth import (
    frame_remarks,
    truth_at,
    truth_origin,
    turn_between,
    valid_fixes,
)
from sim_sensors.core.measurements import (
    FixArray,
    FloatArray,
    IntArray,
    OdometryArray,
    by_blocks,
    rows_of,
)
from sim_sensors.core.rotations import conjugate, from_heading, heading, log, multiply, rotate
from sim_sensors.world.geodesy import LocalFrame
from . import findings
from .options import MetricError

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


class Alignment(NamedTuple):
    """What the errors share because the truth was aligned with what the judge knew.

    `covariance` `(6, 6)` is of the aligned x, y, z, roll, pitch and yaw, zero where nothing is
    known of it; the truth was turned about `centre`, `(3,)`, in the judge's world. `own_turn` says
    that the turn is that of the first estimate, while positions are those of inputs.
    """

    covariance: FloatArray
    centre: FloatArray
    own_turn: bool = False


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
    inside = np.flatnonzero(judged.finite & _within(truth, judged.stamp_ns))
    return nees_at(
        judged, inside, truth_at(truth, judged.stamp_ns[inside]), axes, turns, alignment
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
    stamps = judged.stamp_ns[inside]
    pose, twist = judged.pose_covariance[inside], judged.twist_covariance[inside]
    of_position, of_turn = False, False
    if alignment is not None and alignment.covariance.any():
        rows = np.array([*axes, *(3 + turn for turn in turns)])
        pose, of_position, of_turn = _without(alignment, pose, judged.position[inside], rows)
    errors = (
        judged.position[inside] - true.position,
        _turned(judged.orientation[inside], true.orientation, about_axes=judged.about_axes),
        judged.linear_velocity[inside] - true.linear_velocity,
        judged.angular_velocity[inside] - true.angular_velocity,
    )
    blocks = (pose[:, :3, :3], pose[:, 3:, 3:], twist[:, :3, :3], twist[:, 3:, 3:])
    shares, found = (of_position, of_turn, False, False), []
    for name, error, block, kept, common in zip(
        QUANTITIES, errors, blocks, (axes, turns, axes, turns), shares, strict=True
    ):
        rows, columns = np.ix_(kept, kept)
        covariance = block[:, rows, columns]
        finite = np.isfinite(covariance).all(axis=(1, 2)) & np.isfinite(error).all(axis=1)
        known = np.flatnonzero(finite)
        sound = known[np.all(np.linalg.eigvalsh(covariance[known]) > 0.0, axis=1)]
        part = error[sound][:, kept]
        # e' P^-1 e
        solved = np.linalg.solve(covariance[sound], part[..., None])[..., 0]
        squares = np.sum(part * solved, axis=1)
        freedom = np.full(len(squares), len(kept))
        found.append(Squares(f'NEES {name}', stamps[sound], squares, freedom, True, common))
    return found


def _without(
    alignment: Alignment, pose: FloatArray, position: FloatArray, kept: IntArray
) -> tuple[FloatArray, bool, bool]:
    """Return the covariances of aligned errors, and whether positions and orientations each share
    one; see the derivation.

    Of the covariances, (n, 6, 6), the rows `kept` count.
    """
    moves = np.tile(np.eye(6), (len(pose), 1, 1))
    away = np.nan_to_num(position - alignment.centre)
    moves[:, 0, 5], moves[:, 1, 5] = -away[:, 1], away[:, 0]
    added = np.zeros_like(moves)
    if alignment.own_turn:
        added[:, :3, :3] = moves[:, :3, 5:] @ moves[:, :3, 5:].transpose(0, 2, 1)
        added *= alignment.covariance[5, 5]
        moves[:, :3, 5] = 0.0
    common = moves @ alignment.covariance @ moves.transpose(0, 2, 1)
    stated, smallest = (np.diagonal(one, axis1=1, axis2=2)[:, kept] for one in (pose, common))
    if np.any(stated < _LEAST_SHARE * smallest):
        return pose + common + added, True, True
    since = pose - common + added
    if alignment.own_turn:
        return since, True, False
    # How far a turn moves a position is known to some per cent; det / trace is the least variance.
    turned = alignment.covariance[5, 5] * np.sum(away[:, :2] ** 2, axis=1)
    level = since[:, :2, :2]
    most = _MOST_TURNED * np.linalg.det(level)
    since[turned * np.trace(level, axis1=1, axis2=2) > most, :3, :3] = np.nan
    return since, False, False


def _turned(estimate: FloatArray, truth: FloatArray, *, about_axes: bool) -> FloatArray:
    """Return the errors of orientations, (n, 3), in the coordinates of their covariance."""
    if about_axes:
        return log(multiply(estimate, conjugate(truth)))
    if not len(estimate):
        return np.zeros((0, 3))
    angles = Rotation.from_quat(estimate).as_euler('xyz')
    angles -= Rotation.from_quat(truth).as_euler('xyz')
    return np.asarray((angles + np.pi) % (2.0 * np.pi) - np.pi)


# The truth in the world frame of a judge, whose origin and axes are its own.
#
# What the judge was given in its world says where that is. navsat_transform puts the fixes there
# by a turn, which is read off the fixes before and after, and a shift: the mean between them and
# the truth, as no recording says where on the Earth its truth begins. Other poses that a filter
# fuses as they are tell both, too. What no input defines is taken from the first estimate.
#
# An alignment has an error, c: of x, y, z and yaw, with covariance C. It moves the truth by G c:
# a shift, and a turn about a point d away, G = [[I, z x d], [0, 1]], so that aligned errors are
# a(t) = e(t) - G c. The same error is in the estimate. A filter that nothing tells its position or
# yaw since its first estimate, of covariance C, propagates that error likewise, e(t) = G c + later
# noise; one that takes its position from inputs follows their mean error, c, of covariance
# (sum of R^-1)^-1 if they are independent. Either way cov(e(t), c) = G C, and a(t) has
# P(t) - G C G' ([BarShalom2001], section 5.4; [Zhang2018] for what cannot be observed). Of fixes C
# counts as zero, as their errors drift: their mean error is not seen.
#
# Positions of inputs that tell no turn do not depend on the yaw of the first estimate, with which
# the truth is turned about them: what that moves the truth adds to P(t), and all samples share it.
# A variance below that of G C G' belongs to a filter that is overconfident or knows more than its
# inputs say. Its errors count as independent of c, P(t) + G C G'. What all samples share counts as
# one sample.

_LEAST_EXTENT_M = 1.0
_LEAST_ARMS = 10.0
_LEAST_VARIANCE = 1e-9
_AXES = {0: 'x', 1: 'y', 2: 'z', 5: 'yaw'}


class WorldFrameTruth(NamedTuple):
    """Truth of the base frame in a judge's world frame, and how it came there."""

    truth: OdometryArray
    notes: tuple[Finding, ...]
    alignment: Alignment


class _Places(NamedTuple):
    """Positions, (n, 3), before and after they entered a judge's world; NaN where not given."""

    before: FloatArray
    after: FloatArray
    true: FloatArray
    weight: FloatArray
    least: float

    def mean(self, values: FloatArray) -> FloatArray:
        """Return the weighted mean of each axis where it is given; NaN where it never is."""
        weights = np.where(np.isnan(values), 0.0, self.weight[:, None])
        total = weights.sum(axis=0)
        sums = (weights * np.nan_to_num(values)).sum(axis=0)
        return np.asarray(np.divide(sums, total, out=np.full(3, np.nan), where=total > 0.0))

    def variances(self) -> list[float]:
        """Return the variance of the mean of each axis; infinite where it is never given."""
        given = [self.weight[~np.isnan(one)] for one in self.after.T]
        return [1.0 / float(np.sum(one)) if len(one) else math.inf for one in given]

    def turn(self) -> tuple[float | None, float]:
        """Return the turn from before to after, None if they tell none, and its variance."""
        level = ~np.isnan(self.after[:, 0])
        if not level.any() or np.hypot(*np.ptp(self.after[level, :2], axis=0)) < self.least:
            return None, 0.0
        root = np.sqrt(self.weight[level])[:, None]
        before, after = (root * (one - self.mean(one))[level, :2] for one in self[:2])
        return turn_between(before, after), 1.0 / float(np.sum(after**2))


def truth_in_world(
    judged: JudgedRun,
    truth: OdometryArray,
    fixes: FixArray | None,
    antenna: FloatArray,
    poses: Callable[[], WorldPoses] | None = None,
) -> WorldFrameTruth:
    """Express the truth in the world frame of a judge; body velocities stay as they were.

    The truth is that of the base frame, whose axes are taken as east, north and up where there are
    fixes: those that the judge was given of an antenna at `antenna` `(3,)` m in the base frame.
    `poses` returns what else it was given in its world, which counts where fixes tell nothing.

    The findings say how it was done, and what follows for the errors. A judge without an estimate
    within the truth is a MetricError.
    """
    inside = _within(truth, judged.stamp_ns) & judged.finite
    if not inside.any():
        raise MetricError('consistency: no estimate that is a number lies within the truth')
    first = int(np.argmax(inside))
    frame, places, headings = None, None, 0
    if fixes is not None:
        fixes = valid_fixes(fixes)
        places, frame = _of_fixes(judged, truth, fixes, antenna)
    turn, variance = (None, 0.0) if places is None else places.turn()
    if turn is not None:
        variance = 0.0
    elif poses is not None:
        given = poses()
        places = places or _of_poses(truth, given)
        turn, variance, headings = _turn_of(truth, given, None if frame else places)
    start = truth_at(truth, judged.stamp_ns[first : first + 1])
    centre = judged.position[first]
    unknown = np.array([True, True, True, False, False, turn is None])
    if turn is None:
        turn = float((heading(judged.orientation[[first]]) - heading(start.orientation))[0])
    about = from_heading(np.array([turn]))
    shift = centre - rotate(about, start.position)[0]
    common = np.zeros((6, 6))
    if places is not None:
        seen = places.mean(places.after - rotate(about, places.true))
        unknown[:3] = np.isnan(seen)
        shift = np.where(unknown[:3], shift, seen)
        centre = np.where(unknown[:3], centre, places.mean(places.after))
        if frame is None:
            common[:3, :3] = np.diag(places.variances())
    common[5, 5] = variance
    own = np.ix_(unknown, unknown)
    common[unknown] = common[:, unknown] = 0.0
    common[own] = np.nan_to_num(judged.pose_covariance[first])[own]
    notes: tuple[Finding, ...] = ()
    count = 0 if places is None else len(places.weight)
    angle = round(math.degrees(turn), 1) + 0.0
    if frame is not None and not unknown[5] and not headings:
        notes = frame_remarks(truth, fixes, frame)
        notes = (findings.TRUTH_ALIGNED(turn=angle, fixes=count), *notes)
    elif count + headings:
        notes = (findings.TRUTH_ON_INPUTS(turn=angle, positions=count, headings=headings),)
    if unknown.any():
        axes = ', '.join(_AXES[axis] for axis in np.flatnonzero(unknown).tolist())
        notes = (*notes, findings.WORLD_FROM_START(axes=axes))
    moved = dataclasses.replace(
        truth,
        position=rotate(about, truth.position) + shift,
        orientation=multiply(about, truth.orientation),
    )
    own_turn = bool(unknown[5] and not unknown[0])
    return WorldFrameTruth(moved, notes, Alignment(common, centre, own_turn))


def _of_fixes(
    judged: JudgedRun, truth: OdometryArray, fixes: FixArray, antenna: FloatArray
) -> tuple[_Places | None, LocalFrame | None]:
    """Return the places that fixes gave, and the frame of the truth; None if they gave none."""
    stamps = judged.gps_stamp_ns
    inside = _within(truth, stamps)
    # A position needs the filter's attitude, which may be no number.
    inside &= np.isfinite(judged.gps_position).all(axis=1)
    stamps, world = stamps[inside], judged.gps_position[inside]
    # Of several fixes with one stamp the last is the one that the node keeps.
    number = np.searchsorted(fixes.stamp_ns, stamps, side='right') - 1
    found = (number >= 0) & (fixes.stamp_ns[number] == stamps)
    number, stamps, world = number[found], stamps[found], world[found]
    if len(stamps) < 2:
        return None, None
    true = truth_at(truth, stamps)
    frame = truth_origin(truth, fixes)
    given = fixes.take(number)
    east = frame.to_enu(given.latitude, given.longitude, given.altitude)
    east -= rotate(true.orientation, antenna[None])
    least = max(_LEAST_EXTENT_M, _LEAST_ARMS * float(np.hypot(antenna[0], antenna[1])))
    return _Places(east, world, true.position, np.ones(len(stamps)), least), frame


def _of_poses(truth: OdometryArray, poses: WorldPoses) -> _Places | None:
    known = _within(truth, poses.stamp_ns) & np.isfinite(poses.position).any(axis=1)
    if np.count_nonzero(known) < 2:
        return None
    true = truth_at(truth, poses.stamp_ns[known]).position
    weight = 1.0 / np.maximum(poses.variance[known, 0], _LEAST_VARIANCE)
    return _Places(true, poses.position[known], true, weight, _LEAST_EXTENT_M)


def _turn_of(
    truth: OdometryArray, poses: WorldPoses, places: _Places | None
) -> tuple[float | None, float, int]:
    """Return the turn that headings and places tell, its variance, and how many headings do.

    It is their mean, weighted by variances; None if neither tells one.
    """
    turn, variance = (None, 0.0) if places is None else places.turn()
    known = _within(truth, poses.stamp_ns) & np.isfinite(poses.yaw)
    if not known.any():
        return turn, variance, 0
    turns = poses.yaw[known] - heading(truth_at(truth, poses.stamp_ns[known]).orientation)
    weight = 1.0 / np.maximum(poses.variance[known, 1], _LEAST_VARIANCE)
    mean = math.atan2(float(weight @ np.sin(turns)), float(weight @ np.cos(turns)))
    spread = 1.0 / float(np.sum(weight))
    if turn is None:
        return mean, spread, len(turns)
    share = variance / (variance + spread)
    turn += share * math.remainder(mean - turn, math.tau)
    return turn, variance * (1.0 - share), len(turns)


def _within(truth: OdometryArray, stamps: IntArray) -> NDArray[np.bool_]:
    return np.asarray((stamps >= truth.stamp_ns[0]) & (stamps <= truth.stamp_ns[-1]))
