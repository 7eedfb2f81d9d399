# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Truth in the world frame of a judge, and the error of its alignment."""

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
    fit_turn,
    interpolate_truth,
    locate_truth,
    select_valid_fixes,
)
from sim_sensors.core.errors import Remark
from sim_sensors.core.measurements import FixArray, FloatArray, IntArray, OdometryArray
from sim_sensors.core.rotations import from_heading, heading, multiply, rotate
from sim_sensors.world.geodesy import LocalFrame
from .options import TRUTH_ALIGNED, WORLD_FROM_START, MetricError

# The inputs of a judge determine the pose of its world frame. navsat_transform rotates and shifts
# the fixes into this frame. The rotation follows from the fixes before and after. The shift is the
# mean difference between the fixes and the truth, because no recording states where on the Earth
# its truth begins. Other absolute poses that the filter fuses determine both, too. The first
# estimate defines the remaining axes.
#
# An alignment has an error c of x, y, z and yaw, with covariance C. It moves the truth by G c, a
# shift and a rotation about a point at the distance d: G = [[I, z x d], [0, 1]]. Aligned errors
# are therefore a(t) = e(t) - G c. The estimate contains the same error. If no input measures
# position or yaw after the first estimate, of covariance C, the filter propagates its error in the
# same way: e(t) = G c + later noise. If inputs measure the position, the filter follows their mean
# error c, of covariance (sum of R^-1)^-1 if they are independent. In both cases
# cov(e(t), c) = G C, and a(t) has the covariance P(t) - G C G' ([BarShalom2001], section 5.4;
# [Zhang2018] for unobservable states). C is set to zero for fixes: their errors drift, so their
# mean error cannot be observed.
#
# If positions of inputs do not determine the rotation, the truth is rotated about their mean by
# the yaw of the first estimate. Its error is independent of the positions, so the displacement
# that it causes adds to P(t) and is common to all samples. A variance below that of G C G' means
# that the filter is overconfident or has information besides its inputs. Its errors then count as
# independent of c, with P(t) + G C G'. An error common to all samples counts as one sample.

_MIN_EXTENT_M = 1.0
_MIN_ARMS = 10.0
_MIN_VARIANCE = 1e-9
_AXES = {0: 'x', 1: 'y', 2: 'z', 5: 'yaw'}


class Alignment(NamedTuple):
    """Error common to all samples because the truth was aligned with inputs of the judge.

    `covariance` `(6, 6)` is that of the aligned x, y, z, roll, pitch and yaw, with zeros for axes
    of unknown covariance. The truth was rotated about `centre`, `(3,)`, in the judge's world.
    `own_turn` says that the rotation is that of the first estimate and the positions are those of
    inputs.
    """

    covariance: FloatArray
    centre: FloatArray
    own_turn: bool = False


class WorldFrameTruth(NamedTuple):
    """Truth of the base frame in a judge's world frame, with the alignment."""

    truth: OdometryArray
    notes: tuple[Finding, ...]
    alignment: Alignment


class _Places(NamedTuple):
    """Positions, (n, 3), before and after their conversion into a judge's world frame.

    Positions that are not known are NaN.
    """

    before: FloatArray
    after: FloatArray
    true: FloatArray
    weight: FloatArray
    least: float

    def mean(self, values: FloatArray) -> FloatArray:
        """Return the weighted mean of the known values of each axis; NaN if there are none."""
        weights = np.where(np.isnan(values), 0.0, self.weight[:, None])
        total = weights.sum(axis=0)
        sums = (weights * np.nan_to_num(values)).sum(axis=0)
        return np.asarray(np.divide(sums, total, out=np.full(3, np.nan), where=total > 0.0))

    def variances(self) -> list[float]:
        """Return the variance of the mean of each axis; infinite without known values."""
        axis_weights = [self.weight[~np.isnan(axis)] for axis in self.after.T]
        return [
            1.0 / float(np.sum(weights)) if len(weights) else math.inf for weights in axis_weights
        ]

    def turn(self) -> tuple[float | None, float]:
        """Return the rotation angle from before to after and its variance.

        The angle is None if the positions do not determine it.
        """
        level = ~np.isnan(self.after[:, 0])
        if not level.any() or np.hypot(*np.ptp(self.after[level, :2], axis=0)) < self.least:
            return None, 0.0
        root = np.sqrt(self.weight[level])[:, None]
        before, after = (
            root * (positions - self.mean(positions))[level, :2] for positions in self[:2]
        )
        return fit_turn(before, after), 1.0 / float(np.sum(after**2))


def truth_in_world(
    judged: JudgedRun,
    truth: OdometryArray,
    fixes: FixArray | None,
    antenna: FloatArray,
    poses: Callable[[], WorldPoses] | None = None,
) -> WorldFrameTruth:
    """Express the truth in the world frame of a judge; body velocities do not change.

    The truth is that of the base frame. If there are `fixes`, its axes are assumed to be east,
    north and up; the antenna is at `antenna` `(3,)` m in the base frame. `poses` returns the other
    absolute poses that the judge fuses, which are used if the fixes do not determine an axis.

    The findings describe the alignment and its consequence for the errors. A judge without an
    estimate within the time of the truth is a MetricError.
    """
    inside = has_truth_at(truth, judged.stamp_ns) & judged.finite
    if not inside.any():
        first, last = (np.asarray(judged.stamp_ns)[[0, -1]] - truth.stamp_ns[0]) * 1e-9
        raise MetricError(
            f'no finite estimate lies within the time of the truth: estimates from {first:.3f} to '
            f'{last:.3f} s, truth from 0 to {(truth.stamp_ns[-1] - truth.stamp_ns[0]) * 1e-9:.3f} '
            's; stamps must be of the same clock'
        )
    first = int(np.argmax(inside))
    frame, places, headings = None, None, 0
    if fixes is not None:
        fixes = select_valid_fixes(fixes)
        places, frame = _of_fixes(judged, truth, fixes, antenna)
    turn, variance = (None, 0.0) if places is None else places.turn()
    if judged.is_enu:
        turn = 0.0
    if turn is not None:
        variance = 0.0
    elif poses is not None:
        world_poses = poses()
        places = places or _of_poses(truth, world_poses)
        turn, variance, headings = _turn_of(truth, world_poses, None if frame else places)
    start = interpolate_truth(truth, judged.stamp_ns[first : first + 1])
    centre = judged.position[first]
    unknown = np.array([True, True, True, False, False, turn is None])
    if turn is None:
        turn = float((heading(judged.orientation[[first]]) - heading(start.orientation))[0])
    turn_quaternion = from_heading(np.array([turn]))
    shift = centre - rotate(turn_quaternion, start.position)[0]
    common = np.zeros((6, 6))
    if places is not None:
        mean_offset = places.mean(places.after - rotate(turn_quaternion, places.true))
        unknown[:3] = np.isnan(mean_offset)
        shift = np.where(unknown[:3], shift, mean_offset)
        centre = np.where(unknown[:3], centre, places.mean(places.after))
        if frame is None:
            common[:3, :3] = np.diag(places.variances())
    common[5, 5] = variance
    from_estimate = np.ix_(unknown, unknown)
    common[unknown] = common[:, unknown] = 0.0
    common[from_estimate] = np.nan_to_num(judged.pose_covariance[first])[from_estimate]
    notes: tuple[Finding, ...] = ()
    count = 0 if places is None else len(places.weight)
    angle = round(math.degrees(turn), 1) + 0.0
    if frame is not None and not unknown[5] and not headings:
        notes = check_truth_axes(truth, fixes, frame)
        notes = (
            TRUTH_ALIGNED(
                turn=angle, inputs=Remark('{fixes:d} fixes in the world frame', fixes=count)
            ),
            *notes,
        )
    elif count + headings:
        notes = (
            TRUTH_ALIGNED(
                turn=angle,
                inputs=Remark(
                    '{positions:d} positions and {headings:d} headings',
                    positions=count,
                    headings=headings,
                ),
            ),
        )
    if unknown.any():
        axes = ', '.join(_AXES[axis] for axis in np.flatnonzero(unknown).tolist())
        notes = (*notes, WORLD_FROM_START(axes=axes))
    moved = dataclasses.replace(
        truth,
        position=rotate(turn_quaternion, truth.position) + shift,
        orientation=multiply(turn_quaternion, truth.orientation),
    )
    own_turn = bool(unknown[5] and not unknown[0])
    return WorldFrameTruth(moved, notes, Alignment(common, centre, own_turn))


def _of_fixes(
    judged: JudgedRun, truth: OdometryArray, fixes: FixArray, antenna: FloatArray
) -> tuple[_Places | None, LocalFrame | None]:
    """Return the positions from fixes and the frame of the truth; None for fewer than two."""
    stamps = judged.gps_stamp_ns
    inside = has_truth_at(truth, stamps)
    # A position depends on the filter's attitude, which may not be finite.
    inside &= np.isfinite(judged.gps_position).all(axis=1)
    stamps, world = stamps[inside], judged.gps_position[inside]
    # The node keeps the last of several fixes with the same stamp.
    number = np.searchsorted(fixes.stamp_ns, stamps, side='right') - 1
    is_matched = (number >= 0) & (fixes.stamp_ns[number] == stamps)
    number, stamps, world = number[is_matched], stamps[is_matched], world[is_matched]
    if len(stamps) < 2:
        return None, None
    true = interpolate_truth(truth, stamps)
    frame = locate_truth(truth, fixes)
    matched_fixes = fixes.take(number)
    east = frame.to_enu(matched_fixes.latitude, matched_fixes.longitude, matched_fixes.altitude)
    east -= rotate(true.orientation, antenna[None])
    least = max(_MIN_EXTENT_M, _MIN_ARMS * float(np.hypot(antenna[0], antenna[1])))
    return _Places(east, world, true.position, np.ones(len(stamps)), least), frame


def _of_poses(truth: OdometryArray, poses: WorldPoses) -> _Places | None:
    is_usable = has_truth_at(truth, poses.stamp_ns) & np.isfinite(poses.position).any(axis=1)
    if np.count_nonzero(is_usable) < 2:
        return None
    true = interpolate_truth(truth, poses.stamp_ns[is_usable]).position
    weight = 1.0 / np.maximum(poses.variance[is_usable, 0], _MIN_VARIANCE)
    return _Places(true, poses.position[is_usable], true, weight, _MIN_EXTENT_M)


def _turn_of(
    truth: OdometryArray, poses: WorldPoses, places: _Places | None
) -> tuple[float | None, float, int]:
    """Return the rotation angle of the truth, its variance, and the number of used headings.

    The angle is the mean of those from headings and from positions, weighted by variances. It is
    None if neither determines it.
    """
    turn, variance = (None, 0.0) if places is None else places.turn()
    is_usable = has_truth_at(truth, poses.stamp_ns) & np.isfinite(poses.yaw)
    if not is_usable.any():
        return turn, variance, 0
    turns = poses.yaw[is_usable] - heading(
        interpolate_truth(truth, poses.stamp_ns[is_usable]).orientation
    )
    weight = 1.0 / np.maximum(poses.variance[is_usable, 1], _MIN_VARIANCE)
    mean = math.atan2(float(weight @ np.sin(turns)), float(weight @ np.cos(turns)))
    spread = 1.0 / float(np.sum(weight))
    if turn is None:
        return mean, spread, len(turns)
    share = variance / (variance + spread)
    turn += share * math.remainder(mean - turn, math.tau)
    return turn, variance * (1.0 - share), len(turns)


def has_truth_at(truth: OdometryArray, stamps: IntArray) -> NDArray[np.bool_]:
    """Return a mask of the stamps within the time span of the truth."""
    return np.asarray((stamps >= truth.stamp_ns[0]) & (stamps <= truth.stamp_ns[-1]))
