# SPDX-License-Identifier: Apache-2.0
"""The truth in the world frame of a judge, whose origin and axes are its own.

navsat_transform puts the fixes into the filter's world by a turn about the vertical and a shift.
Both are read off its result: the turn from the fixes, moved from the antenna to base_link, before
and after, which is exact; the shift between the world and the truth as the mean over all fixes,
because no recording says where on the Earth its truth begins. The constant part of the fixes'
error is therefore not seen. A judge without fixes knows its position from where it began only:
the truth is then laid through its first estimate.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from scipy.spatial.transform import Rotation

from sim2real_eval.judge import JudgedRun
from sim2real_eval.judge.fixes import valid_fixes
from sim2real_eval.metrics import MetricError
from sim2real_eval.metrics.normalised_squares import truth_at
from sim2real_eval.truth_frame import frame_remarks, truth_origin
from sim_sensors.environment import LocalFrame
from sim_sensors.measurements import FixArray, FloatArray, OdometryArray
from sim_sensors.rotations import from_heading, multiply, rotate

__all__ = ['truth_in_world']

_LEAST_EXTENT_M = 1.0
_LEAST_ARMS = 10.0


def truth_in_world(
    judged: JudgedRun,
    truth: OdometryArray,
    fixes: FixArray | None,
    antenna: FloatArray,
) -> tuple[OdometryArray, tuple[str, ...]]:
    """Express the truth in the world frame of a judge.

    Parameters
    ----------
    judged : JudgedRun
    truth : OdometryArray
        Of the base frame; its axes are taken as east, north and up.
    fixes : FixArray or None
        Those that the judge was given.
    antenna : (3,) float
        Position of the antenna in the base frame, metres.

    Returns
    -------
    OdometryArray
        Body velocities as they were.
    tuple of str
        How it was done, and what follows for the errors, a line each.

    Raises
    ------
    MetricError
        When no estimate lies within the truth.
    """
    known = None
    if fixes is not None:
        fixes = valid_fixes(fixes)
        known = _of_fixes(judged, truth, fixes, antenna)
    if known is not None:
        turn, shift, count, frame = known
        said = (
            f'position: the truth was turned by {round(math.degrees(turn), 1) + 0.0:.1f} degrees, '
            f'as the judge turned the fixes, and laid through {count} of them: their constant '
            'error is not seen'
        )
        remarks = (said, *frame_remarks(truth, fixes, frame))
    else:
        turn, shift = _of_first_estimate(judged, truth)
        remarks = (
            'position, orientation: the judge passed on no fixes to tell its world by, so the '
            'truth was laid through the first estimate: errors begin at zero in x, y, z and yaw',
        )
    about = from_heading(np.array([turn]))
    moved = dataclasses.replace(
        truth,
        position=rotate(about, truth.position) + shift,
        orientation=multiply(about, truth.orientation),
    )
    return moved, remarks


def _of_fixes(
    judged: JudgedRun,
    truth: OdometryArray,
    fixes: FixArray,
    antenna: FloatArray,
) -> tuple[float, FloatArray, int, LocalFrame] | None:
    """Return turn, shift, how many fixes told, and the truth's frame; None if they do not tell."""
    stamps = judged.gps_stamp_ns
    inside = (stamps >= truth.stamp_ns[0]) & (stamps <= truth.stamp_ns[-1])
    # A position needs the filter's attitude, which may be no number.
    inside &= np.isfinite(judged.gps_position).all(axis=1)
    stamps, world = stamps[inside], judged.gps_position[inside]
    # Of several fixes with one stamp the last is the one that the node keeps.
    number = np.searchsorted(fixes.stamp_ns, stamps, side='right') - 1
    found = (number >= 0) & (fixes.stamp_ns[number] == stamps)
    number, stamps, world = number[found], stamps[found], world[found]
    if len(stamps) < 2:
        return None
    true = truth_at(truth, stamps)
    frame = truth_origin(truth, fixes)
    given = fixes.take(number)
    arms = rotate(true.orientation, antenna[None])
    east = frame.to_enu(given.latitude, given.longitude, given.altitude)
    east -= arms
    before = (east - east.mean(axis=0))[:, :2]
    after = (world - world.mean(axis=0))[:, :2]
    least = max(_LEAST_EXTENT_M, _LEAST_ARMS * float(np.hypot(antenna[0], antenna[1])))
    if np.hypot(*np.ptp(after, axis=0)) < least:
        return None
    turn = math.atan2(
        float(np.sum(before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0])),
        float(np.sum(before * after)),
    )
    turned = rotate(from_heading(np.array([turn])), true.position)
    return turn, np.mean(world - turned, axis=0), len(stamps), frame


def _of_first_estimate(judged: JudgedRun, truth: OdometryArray) -> tuple[float, FloatArray]:
    inside = (judged.stamp_ns >= truth.stamp_ns[0]) & (judged.stamp_ns <= truth.stamp_ns[-1])
    inside &= judged.finite
    if not inside.any():
        raise MetricError('consistency: no estimate that is a number lies within the truth')
    first = int(np.argmax(inside))
    true = truth_at(truth, judged.stamp_ns[first : first + 1])
    estimated = Rotation.from_quat(judged.orientation[first]).as_euler('xyz')
    turn = float(estimated[2] - Rotation.from_quat(true.orientation[0]).as_euler('xyz')[2])
    turned = Rotation.from_euler('z', turn).apply(true.position[0])
    return turn, judged.position[first] - turned
