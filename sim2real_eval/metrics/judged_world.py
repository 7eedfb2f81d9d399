# SPDX-License-Identifier: Apache-2.0
"""The truth in the world frame of a judge, whose origin and axes are its own."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.common.findings import Finding
from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.robot_localization.inputs import WorldPoses
from sim2real_eval.recording.truth import (
    check_truth_axes,
    interpolate_truth,
    locate_truth,
    fit_turn,
    select_valid_fixes,
)
from sim_sensors.core.blocks import by_blocks
from sim_sensors.core.measurements import FixArray, FloatArray, IntArray, OdometryArray
from sim_sensors.core.rotations import from_heading, heading, multiply, rotate
from sim_sensors.world.geodesy import LocalFrame
from . import findings
from .options import MetricError

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


class Alignment(NamedTuple):
    """What the errors share because the truth was aligned with what the judge knew.

    `covariance` `(6, 6)` is of the aligned x, y, z, roll, pitch and yaw, zero where nothing is
    known of it; the truth was turned about `centre`, `(3,)`, in the judge's world. `own_turn` says
    that the turn is that of the first estimate, while positions are those of inputs.
    """

    covariance: FloatArray
    centre: FloatArray
    own_turn: bool = False


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
        return fit_turn(before, after), 1.0 / float(np.sum(after**2))


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
    inside = within(truth, judged.stamp_ns) & judged.finite
    if not inside.any():
        raise MetricError('consistency: no estimate that is a number lies within the truth')
    first = int(np.argmax(inside))
    frame, places, headings = None, None, 0
    if fixes is not None:
        fixes = select_valid_fixes(fixes)
        places, frame = _of_fixes(judged, truth, fixes, antenna)
    turn, variance = (None, 0.0) if places is None else places.turn()
    if turn is not None:
        variance = 0.0
    elif poses is not None:
        given = poses()
        places = places or _of_poses(truth, given)
        turn, variance, headings = _turn_of(truth, given, None if frame else places)
    start = interpolate_truth(truth, judged.stamp_ns[first : first + 1])
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
        notes = check_truth_axes(truth, fixes, frame)
        notes = (findings.TRUTH_ALIGNED(turn=angle, fixes=count), *notes)
    elif count + headings:
        notes = (findings.TRUTH_ON_INPUTS(turn=angle, positions=count, headings=headings),)
    if unknown.any():
        axes = ', '.join(_AXES[axis] for axis in np.flatnonzero(unknown).tolist())
        notes = (*notes, findings.WORLD_FROM_START(axes=axes))
    moved = dataclasses.replace(
        truth,
        position=by_blocks(lambda rows: rotate(about, rows) + shift, truth.position),
        orientation=by_blocks(lambda rows: multiply(about, rows), truth.orientation),
    )
    own_turn = bool(unknown[5] and not unknown[0])
    return WorldFrameTruth(moved, notes, Alignment(common, centre, own_turn))


def _of_fixes(
    judged: JudgedRun, truth: OdometryArray, fixes: FixArray, antenna: FloatArray
) -> tuple[_Places | None, LocalFrame | None]:
    """Return the places that fixes gave, and the frame of the truth; None if they gave none."""
    stamps = judged.gps_stamp_ns
    inside = within(truth, stamps)
    # A position needs the filter's attitude, which may be no number.
    inside &= np.isfinite(judged.gps_position).all(axis=1)
    stamps, world = stamps[inside], judged.gps_position[inside]
    # Of several fixes with one stamp the last is the one that the node keeps.
    number = np.searchsorted(fixes.stamp_ns, stamps, side='right') - 1
    found = (number >= 0) & (fixes.stamp_ns[number] == stamps)
    number, stamps, world = number[found], stamps[found], world[found]
    if len(stamps) < 2:
        return None, None
    true = interpolate_truth(truth, stamps)
    frame = locate_truth(truth, fixes)
    given = fixes.take(number)
    east = frame.to_enu(given.latitude, given.longitude, given.altitude)
    east -= rotate(true.orientation, antenna[None])
    least = max(_LEAST_EXTENT_M, _LEAST_ARMS * float(np.hypot(antenna[0], antenna[1])))
    return _Places(east, world, true.position, np.ones(len(stamps)), least), frame


def _of_poses(truth: OdometryArray, poses: WorldPoses) -> _Places | None:
    known = within(truth, poses.stamp_ns) & np.isfinite(poses.position).any(axis=1)
    if np.count_nonzero(known) < 2:
        return None
    true = interpolate_truth(truth, poses.stamp_ns[known]).position
    weight = 1.0 / np.maximum(poses.variance[known, 0], _LEAST_VARIANCE)
    return _Places(true, poses.position[known], true, weight, _LEAST_EXTENT_M)


def _turn_of(
    truth: OdometryArray, poses: WorldPoses, places: _Places | None
) -> tuple[float | None, float, int]:
    """Return the turn that headings and places tell, its variance, and how many headings do.

    It is their mean, weighted by variances; None if neither tells one.
    """
    turn, variance = (None, 0.0) if places is None else places.turn()
    known = within(truth, poses.stamp_ns) & np.isfinite(poses.yaw)
    if not known.any():
        return turn, variance, 0
    turns = poses.yaw[known] - heading(interpolate_truth(truth, poses.stamp_ns[known]).orientation)
    weight = 1.0 / np.maximum(poses.variance[known, 1], _LEAST_VARIANCE)
    mean = math.atan2(float(weight @ np.sin(turns)), float(weight @ np.cos(turns)))
    spread = 1.0 / float(np.sum(weight))
    if turn is None:
        return mean, spread, len(turns)
    share = variance / (variance + spread)
    turn += share * math.remainder(mean - turn, math.tau)
    return turn, variance * (1.0 - share), len(turns)


def within(truth: OdometryArray, stamps: IntArray) -> NDArray[np.bool_]:
    """Return whether there is truth at stamps."""
    return np.asarray((stamps >= truth.stamp_ns[0]) & (stamps <= truth.stamp_ns[-1]))
