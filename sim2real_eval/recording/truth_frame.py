# SPDX-License-Identifier: Apache-2.0
"""Frames of a truth: its body, its place on the Earth, and whether its axes are east and north."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import Finding
from sim2real_eval.recording.findings import TRUTH_NOT_ENU
from sim2real_eval.recording.frames import FrameTree
from sim_sensors.core.measurements import FixArray, FloatArray, OdometryArray
from sim_sensors.world.geodesy import DEFAULT_ORIGIN, LocalFrame

_NO_FIX = -1

_LEAST_EXTENT_M = 10.0
_LEAST_TURN_DEG = 3.0
_LEAST_RMS_M = 1.0


def truth_of_base(truth: OdometryArray, base: str, frames: FrameTree) -> OdometryArray:
    """Return the truth of the frame `base`; the very same when it is given for that frame.

    Raises
    ------
    JudgeError
        When no static transform connects the two.
    """
    child = truth.child_frame.strip('/') or base
    rotation, offset = frames.lookup(child, base, 'truth')
    if np.array_equal(rotation, np.eye(3)) and not offset.any():
        return truth
    body = Rotation.from_quat(truth.orientation)
    turn = Rotation.from_matrix(rotation)
    swept = np.cross(truth.angular_velocity, offset)
    return dataclasses.replace(
        truth,
        child_frame=base,
        position=truth.position + body.apply(offset),
        orientation=(body * turn).as_quat(),
        linear_velocity=turn.inv().apply(truth.linear_velocity + swept),
        angular_velocity=turn.inv().apply(truth.angular_velocity),
    )


def truth_origin(truth: OdometryArray, fixes: FixArray | None) -> LocalFrame:
    """Return the local frame in which the truth's positions are, as far as the fixes tell.

    A recording does not say where its map frame lies on the Earth. The first valid fix and the
    true position at its stamp do, to the accuracy of that fix; velocity does not depend on it.
    Without fixes the default origin is taken.
    """
    fixes = None if fixes is None else valid_fixes(fixes)
    if fixes is None or not len(fixes):
        return DEFAULT_ORIGIN
    first = int(fixes.stamp_ns[0])
    offset = np.array(
        [np.interp(first, truth.stamp_ns, truth.position[:, axis]) for axis in range(3)]
    )
    fix = [fixes.latitude[:1], fixes.longitude[:1], fixes.altitude[:1]]
    # The axes of the frame at the fix are turned against those at the origin by distance / Earth
    # radius; each pass takes that factor off the error. Six leave less than 1e-6 m over 30 km.
    frame = _frame_at(*fix)
    for _ in range(6):
        frame = _frame_at(*frame.to_geodetic(frame.to_enu(*fix) - offset))
    return frame


def _frame_at(latitude: FloatArray, longitude: FloatArray, altitude: FloatArray) -> LocalFrame:
    return LocalFrame(
        latitude_deg=float(latitude[0]),
        longitude_deg=float(longitude[0]),
        altitude_m=float(altitude[0]),
    )


def frame_remarks(
    truth: OdometryArray, fixes: FixArray | None, frame: LocalFrame
) -> tuple[Finding, ...]:
    """Say when the fixes fit the truth far better after a turn: its axes are not east and north.

    The turn is the least-squares rotation about the vertical between the fixes and the true
    positions at their stamps, both about their mean.

    Parameters
    ----------
    truth : OdometryArray
    fixes : FixArray or None
    frame : LocalFrame
        From `truth_origin`.

    Returns
    -------
    tuple of Finding
        Empty, or one; also empty when the track is too short to tell.
    """
    if fixes is None or len(fixes) < 3:
        return ()
    inside = (fixes.stamp_ns >= truth.stamp_ns[0]) & (fixes.stamp_ns <= truth.stamp_ns[-1])
    fixes = valid_fixes(fixes.take(inside))
    if len(fixes) < 3:
        return ()
    measured = frame.to_enu(fixes.latitude, fixes.longitude, fixes.altitude)[:, :2]
    true = np.stack(
        [np.interp(fixes.stamp_ns, truth.stamp_ns, truth.position[:, i]) for i in (0, 1)], axis=1
    )
    measured = measured - measured.mean(axis=0)
    true = true - true.mean(axis=0)
    if np.hypot(*np.ptp(true, axis=0)) < _LEAST_EXTENT_M:
        return ()
    turn = math.atan2(
        float(np.sum(true[:, 0] * measured[:, 1] - true[:, 1] * measured[:, 0])),
        float(np.sum(true * measured)),
    )
    c, s = math.cos(turn), math.sin(turn)
    before = _rms(measured - true)
    after = _rms(measured - true @ np.array([[c, s], [-s, c]]))
    if abs(math.degrees(turn)) < _LEAST_TURN_DEG or before < max(_LEAST_RMS_M, 3.0 * after):
        return ()
    return (TRUTH_NOT_ENU(before=before, after=after, turn=math.degrees(turn)),)


def _rms(errors: FloatArray) -> float:
    return float(np.sqrt(np.mean(np.sum(errors**2, axis=1))))


def valid_fixes(fixes: FixArray) -> FixArray:
    """Leave out what has no fix or a position that is not a number."""
    # Status -2, unknown, is the messages' default and counts as a fix.
    valid = (fixes.status != _NO_FIX) & np.isfinite(fixes.latitude)
    return fixes.take(valid & np.isfinite(fixes.longitude) & np.isfinite(fixes.altitude))
