# SPDX-License-Identifier: Apache-2.0
"""The truth of a recording: its body, place on the Earth and axes, and a low pass without lag."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from sim2real_eval.common.errors import RecordingError
from sim2real_eval.common.findings import Finding
from sim_sensors.core import rotations
from sim_sensors.core.blocks import by_blocks, column_of, seconds
from sim_sensors.core.measurements import FixArray, FloatArray, IntArray, OdometryArray
from sim_sensors.world.geodesy import DEFAULT_ORIGIN, LocalFrame
from .findings import LOW_PASSED, TRUTH_NOT_ENU
from .frames import FrameTree

_LEAST_EXTENT_M = 10.0
_LEAST_TURN_DEG = 3.0
_LEAST_RMS_M = 1.0


def truth_of_base(truth: OdometryArray, base: str, frames: FrameTree) -> OdometryArray:
    """Return the truth of the frame `base`; the very same when it is given for that frame.

    Frames that no static transform connects are a JudgeError.
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


def truth_at(truth: OdometryArray, stamps: IntArray) -> OdometryArray:
    """Return the truth at (n,) stamps inside it.

    Linear in position and velocities, by the shortest rotation in orientation.
    """
    at, time = (seconds(each, truth.stamp_ns[0]) for each in (stamps, truth.stamp_ns))
    before = by_blocks(lambda some: np.clip(np.searchsorted(time, some), 1, len(time) - 1) - 1, at)
    share = by_blocks(
        lambda some, row: ((some - time[row]) / (time[row + 1] - time[row]))[:, None], at, before
    )

    def interpolated(values: FloatArray) -> FloatArray:
        return by_blocks(
            lambda row, part: values[row] + part * (values[row + 1] - values[row]), before, share
        )

    def turned(row: NDArray[np.intp], part: FloatArray) -> FloatArray:
        first = truth.orientation[row]
        turn = part * rotations.between(first, truth.orientation[row + 1])
        return rotations.multiply(first, rotations.exp(turn))

    return dataclasses.replace(
        truth.take(np.broadcast_to(np.int64(0), len(stamps))),
        stamp_ns=stamps,
        position=interpolated(truth.position),
        orientation=by_blocks(turned, before, share),
        linear_velocity=interpolated(truth.linear_velocity),
        angular_velocity=interpolated(truth.angular_velocity),
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
    # Only the neighbours: numpy would copy all stamps. Of equal stamps the last counts.
    after = int(np.searchsorted(truth.stamp_ns, first, side='right'))
    near = slice(max(after - 1, 0), after + 1)
    offset = np.array(
        [np.interp(first, truth.stamp_ns[near], truth.position[near, axis]) for axis in range(3)]
    )
    fix = [fixes.latitude[:1], fixes.longitude[:1], fixes.altitude[:1]]
    # The axes of the frame at the fix are turned against those at the origin by distance / Earth
    # radius; each pass takes that factor off the error. Eight leave less than 1e-6 m over 30 km.
    frame = LocalFrame(*(float(value[0]) for value in fix))
    for _ in range(8):
        before, frame = frame, frame.moved(frame.to_enu(*fix)[0] - offset)
        if frame == before:
            break
    return frame


def frame_remarks(
    truth: OdometryArray, fixes: FixArray | None, frame: LocalFrame
) -> tuple[Finding, ...]:
    """Say when the fixes fit the truth far better after a turn: its axes are not east and north.

    The turn is the least-squares rotation about the vertical between the fixes and the true
    positions at their stamps, both about their mean. A track that is too short tells nothing.
    """
    if fixes is None or len(fixes) < 3:
        return ()
    inside = (fixes.stamp_ns >= truth.stamp_ns[0]) & (fixes.stamp_ns <= truth.stamp_ns[-1])
    fixes = valid_fixes(fixes.take(inside))
    if len(fixes) < 3:
        return ()
    measured = frame.to_enu(fixes.latitude, fixes.longitude, fixes.altitude)[:, :2]
    known = by_blocks(lambda each: each.astype(np.float64), truth.stamp_ns)
    columns = [column_of(truth.position, axis) for axis in (0, 1)]
    true = np.stack([np.interp(fixes.stamp_ns, known, one) for one in columns], axis=1)
    measured = measured - measured.mean(axis=0)
    true = true - true.mean(axis=0)
    if np.hypot(*np.ptp(true, axis=0)) < _LEAST_EXTENT_M:
        return ()
    turn = turn_between(true, measured)
    c, s = math.cos(turn), math.sin(turn)
    before = _rms(measured - true)
    after = _rms(measured - true @ np.array([[c, s], [-s, c]]))
    if abs(math.degrees(turn)) < _LEAST_TURN_DEG or before < max(_LEAST_RMS_M, 3.0 * after):
        return ()
    return (TRUTH_NOT_ENU(before=before, after=after, turn=math.degrees(turn)),)


def turn_between(first: FloatArray, second: FloatArray) -> float:
    """Return the least-squares turn, rad, from points (n, 2) to others, both about their mean."""
    return math.atan2(
        float(np.sum(first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0])),
        float(np.sum(first * second)),
    )


def _rms(errors: FloatArray) -> float:
    return float(np.sqrt(np.mean(np.sum(errors**2, axis=1))))


def valid_fixes(fixes: FixArray) -> FixArray:
    """Leave out what has no fix or a position that is not a number."""
    return fixes.take(fixes.is_valid)


# A low pass without lag, as motion capture needs before it is differentiated.

_FEWEST = 16
"""Samples below which a low pass says little."""

_SETTLED = 2.5
"""Periods of the cutoff until a step has died away in the filter, to 1e-6."""


def frame_at_first(fixes: FixArray) -> LocalFrame:
    """Return the local frame about the first of the fixes."""
    where = (fixes.latitude[0], fixes.longitude[0], fixes.altitude[0])
    return LocalFrame(*(float(value) for value in where))


def low_passed(
    where: str, topic: str, truth: OdometryArray, cutoff: float
) -> tuple[OdometryArray, Finding]:
    """Return the truth with positions, attitudes and twists low-passed, and what it changed.

    A Butterworth filter of second order runs forwards and backwards: no lag, and -3 dB at the
    cutoff for the two passes together. Differences of samples amplify noise by the square of the
    rate: 0.1 mm at 286 Hz are 20 m/s^2 of acceleration, and 0.03 m/s^2 below 12 Hz.

    Attitudes are filtered as the four numbers of their quaternion, without jumps of sign, and
    made unit quaternions again, so that a steady turn stays what it is. Velocities are filtered
    in the world. A velocity or rate that is absent (zero throughout) stays so. Where samples are
    missing the filter is fed a straight line. Beyond both ends it is fed the motion mirrored in
    its end point, which goes on at the speed that it has there; a start from rest would, at 12
    Hz, make some 10 m/s^2 of 1 m/s. Accelerations come out too small within a period of the cutoff
    of both ends. Fewer than 16 samples, or a `cutoff` [Hz] that is not below half their rate, are
    a RecordingError.

    Notes
    -----
    The correction of the cutoff for two passes is that of D. A. Winter, Biomechanics and Motor
    Control of Human Movement, 4th ed. 2009, section 3.4.4, applied to the frequency as the
    bilinear transform warps it, where it is exact.
    """
    stamps = truth.stamp_ns
    if len(stamps) < _FEWEST:
        raise RecordingError(
            f'{where}: {topic}: {len(stamps)} samples are too few for truth.low_pass; must be '
            f'{_FEWEST} or more'
        )
    rate = 1e9 / float(np.median(np.diff(stamps)))
    if cutoff >= 0.5 * rate:
        raise RecordingError(
            f'{where}: {topic}: truth.low_pass: {cutoff:g} Hz is not allowed; must be below half '
            f'the rate of the truth, {0.5 * rate:.4g} Hz'
        )
    smooth = _Smooth(stamps, rate, cutoff)
    norm = np.linalg.norm(truth.orientation, axis=1)[:, None]
    old = rotations.continuous(truth.orientation / norm)
    orientation = smooth(old)
    orientation /= np.linalg.norm(orientation, axis=1)[:, None]
    position = smooth(truth.position)
    velocity, turn = truth.linear_velocity, truth.angular_velocity
    if velocity.any():
        world = smooth(rotations.rotate(old, velocity))
        velocity = rotations.rotate(rotations.conjugate(orientation), world)
    if turn.any():
        turn = smooth(turn)
    moved = math.sqrt(float(np.mean(np.sum((position - truth.position) ** 2, axis=1))))
    turned = rotations.between(old, orientation)
    angle = math.sqrt(float(np.mean(np.sum(turned**2, axis=1))))
    note = LOW_PASSED(topic, cutoff=cutoff, moved=1e3 * moved, turned=math.degrees(angle))
    changed = dataclasses.replace(
        truth,
        position=position,
        orientation=orientation,
        linear_velocity=velocity,
        angular_velocity=turn,
    )
    return changed, note


class _Smooth:
    """The filter on an even grid through the samples, read at their stamps."""

    def __init__(self, stamps: IntArray, rate: float, cutoff: float) -> None:
        self._time = (stamps - stamps[0]) * 1e-9
        span = float(self._time[-1])
        # Not coarser than the samples, or a cutoff just below half their rate were above its own.
        count = max(math.ceil(span * rate - 1e-3), _FEWEST) + 1
        self._grid = np.linspace(0.0, span, count)
        step = span / (count - 1)
        # Each of two passes with its -3 dB at f has them together at a lower frequency.
        warped = math.tan(math.pi * cutoff * step) / (math.sqrt(2.0) - 1.0) ** 0.25
        # Recordings are read by workers, most of which filter nothing: imports of 0.5 s.
        from scipy.signal import butter

        self._filter = butter(2, 2.0 / math.pi * math.atan(warped), output='sos')
        self._beyond = min(math.ceil(_SETTLED / (cutoff * step)), count - 1)
        self._even = bool(
            len(stamps) == count and np.max(np.abs(self._grid - self._time)) < 1e-3 * step
        )

    def __call__(self, values: FloatArray) -> FloatArray:
        if self._even:
            return self._filtered(values)
        on_grid = np.stack(
            [np.interp(self._grid, self._time, column) for column in values.T], axis=1
        )
        from scipy.interpolate import CubicSpline

        read: FloatArray = CubicSpline(self._grid, self._filtered(on_grid))(self._time)
        return read

    def _filtered(self, values: FloatArray) -> FloatArray:
        from scipy.signal import sosfiltfilt

        found: FloatArray = sosfiltfilt(self._filter, values, axis=0, padlen=self._beyond)
        return found
