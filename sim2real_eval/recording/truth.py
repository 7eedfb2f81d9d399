# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Truth of a recording: body frame, place on the Earth, axes, and a zero-phase low-pass filter."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import Finding, RecordingError
from sim_sensors.core import rotations
from sim_sensors.core.blocks import by_blocks, seconds
from sim_sensors.core.errors import Remark
from sim_sensors.core.measurements import FixArray, FloatArray, IntArray, OdometryArray
from sim_sensors.world.geodesy import DEFAULT_ORIGIN, LocalFrame
from .checks import CORRECTED, TRUTH_NOT_ENU
from .metadata import FrameTree

_MIN_EXTENT_M = 10.0
"""Extent of a track below which its direction is too uncertain."""
_MIN_TURN_DEG = 3.0
_MIN_RMS_M = 1.0


def move_truth_to_base(truth: OdometryArray, base: str, frames: FrameTree) -> OdometryArray:
    """Return the truth of the frame `base`, or the same object if it already describes that frame.

    If no static transform connects the frames, a JudgeError is raised.
    """
    child = truth.child_frame.strip('/') or base
    rotation, offset = frames.lookup(child, base, 'truth')
    if np.array_equal(rotation, np.eye(3)) and not offset.any():
        return truth
    body = Rotation.from_quat(truth.orientation)
    mounting = Rotation.from_matrix(rotation)
    lever_velocity = np.cross(truth.angular_velocity, offset)
    return dataclasses.replace(
        truth,
        child_frame=base,
        position=truth.position + body.apply(offset),
        orientation=(body * mounting).as_quat(),
        linear_velocity=mounting.inv().apply(truth.linear_velocity + lever_velocity),
        angular_velocity=mounting.inv().apply(truth.angular_velocity),
    )


def interpolate_truth(truth: OdometryArray, stamps: IntArray) -> OdometryArray:
    """Interpolate the truth at (n,) stamps within its span.

    Positions and velocities are interpolated linearly, orientations by the shortest rotation.
    """
    sample_s, truth_s = (seconds(times, truth.stamp_ns[0]) for times in (stamps, truth.stamp_ns))
    before = np.clip(np.searchsorted(truth_s, sample_s), 1, len(truth_s) - 1) - 1
    share = ((sample_s - truth_s[before]) / (truth_s[before + 1] - truth_s[before]))[:, None]

    def interpolate(values: FloatArray) -> FloatArray:
        return by_blocks(
            lambda row, part: values[row] + part * (values[row + 1] - values[row]), before, share
        )

    def interpolate_rotation(row: NDArray[np.intp], part: FloatArray) -> FloatArray:
        first = truth.orientation[row]
        rotation_vector = part * rotations.rotation_between(first, truth.orientation[row + 1])
        return rotations.multiply(first, rotations.exp(rotation_vector))

    return dataclasses.replace(
        truth.take(np.zeros(len(stamps), np.int64)),
        stamp_ns=stamps,
        position=interpolate(truth.position),
        orientation=by_blocks(interpolate_rotation, before, share),
        linear_velocity=interpolate(truth.linear_velocity),
        angular_velocity=interpolate(truth.angular_velocity),
    )


def locate_truth(truth: OdometryArray, fixes: FixArray | None) -> LocalFrame:
    """Return the local frame of the truth's positions, located by the first valid fix.

    A recording does not state where its map frame lies on the Earth. The first valid fix and the
    true position at its stamp determine it to the accuracy of that fix; velocities do not depend
    on it. The default origin is returned if there are no fixes.
    """
    fixes = None if fixes is None else select_valid_fixes(fixes)
    if fixes is None or not len(fixes):
        return DEFAULT_ORIGIN
    first = int(fixes.stamp_ns[0])
    # Two neighbours suffice, and spare a copy of all stamps. The last of equal stamps is used.
    after = int(np.searchsorted(truth.stamp_ns, first, side='right'))
    neighbours = slice(max(after - 1, 0), after + 1)
    offset = np.array(
        [
            np.interp(first, truth.stamp_ns[neighbours], truth.position[neighbours, axis])
            for axis in range(3)
        ]
    )
    fix = [fixes.latitude[:1], fixes.longitude[:1], fixes.altitude[:1]]
    # The axes at the fix are rotated against those at the origin by distance / Earth radius. Each
    # pass reduces the error by that factor; eight leave less than 1e-6 m over 30 km.
    frame = LocalFrame(*(float(coordinate[0]) for coordinate in fix))
    for _ in range(8):
        before, frame = frame, frame.with_origin(frame.to_enu(*fix)[0] - offset)
        if frame == before:
            break
    return frame


def check_truth_axes(
    truth: OdometryArray, fixes: FixArray | None, frame: LocalFrame
) -> tuple[Finding, ...]:
    """Report a truth whose axes are not east and north.

    A least-squares rotation about the vertical is fitted between the fixes and the true positions
    at their stamps, both without their mean. A finding is returned if the fixes fit far better
    after the rotation. A track that is too short gives no finding.
    """
    if fixes is None or len(fixes) < 3:
        return ()
    inside = (fixes.stamp_ns >= truth.stamp_ns[0]) & (fixes.stamp_ns <= truth.stamp_ns[-1])
    fixes = select_valid_fixes(fixes.take(inside))
    if len(fixes) < 3:
        return ()
    measured = frame.to_enu(fixes.latitude, fixes.longitude, fixes.altitude)[:, :2]
    true = np.stack(
        [np.interp(fixes.stamp_ns, truth.stamp_ns, truth.position[:, axis]) for axis in (0, 1)],
        axis=1,
    )
    measured = measured - measured.mean(axis=0)
    true = true - true.mean(axis=0)
    if np.hypot(*np.ptp(true, axis=0)) < _MIN_EXTENT_M:
        return ()
    turn = fit_turn(true, measured)
    c, s = math.cos(turn), math.sin(turn)
    before = _rms(measured - true)
    after = _rms(measured - true @ np.array([[c, s], [-s, c]]))
    if abs(math.degrees(turn)) < _MIN_TURN_DEG or before < max(_MIN_RMS_M, 3.0 * after):
        return ()
    return (TRUTH_NOT_ENU(before=before, after=after, turn=math.degrees(turn)),)


def fit_turn(first: FloatArray, second: FloatArray) -> float:
    """Return the angle, rad, that turns `first` to `second` (centred points, (n, 2)) best."""
    return math.atan2(
        float(np.sum(first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0])),
        float(np.sum(first * second)),
    )


def _rms(errors: FloatArray) -> float:
    return float(np.sqrt(np.mean(np.sum(errors**2, axis=1))))


def true_heading(truth: OdometryArray) -> float:
    """Return the initial yaw of a ground truth, radians from east."""
    return float(Rotation.from_quat(truth.orientation[0]).as_euler('xyz')[2])


def select_valid_fixes(fixes: FixArray) -> FixArray:
    """Return the fixes that have a finite position."""
    return fixes.take(fixes.is_valid)


def local_frame_at_first_fix(fixes: FixArray) -> LocalFrame:
    """Return the local frame with its origin at the first fix."""
    coordinates = (fixes.latitude[0], fixes.longitude[0], fixes.altitude[0])
    return LocalFrame(*(float(coordinate) for coordinate in coordinates))


# Zero-phase low-pass filter, which motion capture needs before it is differentiated.

_MIN_SAMPLES = 16
_SETTLING_PERIODS = 2.5
"""Periods of the cutoff until the filter's step response has decayed to 1e-6."""


def low_pass_truth(
    where: str, topic: str, truth: OdometryArray, cutoff: float
) -> tuple[OdometryArray, Finding]:
    """Return the truth with low-passed positions, attitudes and twists, and a finding.

    A second-order Butterworth filter runs forwards and backwards: no lag, and -3 dB at the
    cutoff for both passes together. Differences of samples amplify noise by the square of the
    rate: 0.1 mm at 286 Hz are 20 m/s^2 of acceleration, and 0.03 m/s^2 below 12 Hz.

    Attitudes are filtered as the four components of their quaternion, without jumps of sign, and
    normalised. Velocities are filtered in the world frame. A velocity or rate that is absent (zero
    throughout) stays so. Gaps are filled linearly. Beyond both ends the motion is mirrored in its
    end point, which keeps its speed. If the motion were taken to start from rest, a speed of 1 m/s
    would, at 12 Hz, cause an acceleration of some 10 m/s^2. Accelerations are too small within a
    period of the cutoff of both ends. Raise RecordingError for fewer than 16 samples, or a
    `cutoff` [Hz] of half their rate or more.

    Notes
    -----
    The correction of the cutoff for two passes follows D. A. Winter, Biomechanics and Motor
    Control of Human Movement, 4th ed. 2009, section 3.4.4, applied to the frequency as the
    bilinear transform warps it, where it is exact.
    """
    stamps = truth.stamp_ns
    if len(stamps) < _MIN_SAMPLES:
        raise RecordingError(
            f'{where}: {topic}: {len(stamps)} samples are too few for truth.low_pass; must be '
            f'{_MIN_SAMPLES} or more'
        )
    rate = 1e9 / float(np.median(np.diff(stamps)))
    if cutoff >= 0.5 * rate:
        raise RecordingError(
            f'{where}: {topic}: truth.low_pass: {cutoff:g} Hz is not allowed; must be below half '
            f'the rate of the truth, {0.5 * rate:.4g} Hz'
        )
    smooth = _ZeroPhaseFilter(stamps, rate, cutoff)
    norm = np.linalg.norm(truth.orientation, axis=1)[:, None]
    original = rotations.continuous(truth.orientation / norm)
    orientation = smooth(original)
    orientation /= np.linalg.norm(orientation, axis=1)[:, None]
    position = smooth(truth.position)
    velocity, rates = truth.linear_velocity, truth.angular_velocity
    if velocity.any():
        world_velocity = smooth(rotations.rotate(original, velocity))
        velocity = rotations.rotate(rotations.conjugate(orientation), world_velocity)
    if rates.any():
        rates = smooth(rates)
    rotation_vector = rotations.rotation_between(original, orientation)
    change = Remark(
        'low-passed at {cutoff:g Hz}; positions moved by {moved:.2g mm} rms, attitudes by '
        '{turned:.2g deg} rms',
        cutoff=cutoff,
        moved=1e3 * _rms(position - truth.position),
        turned=math.degrees(_rms(rotation_vector)),
    )
    filtered = dataclasses.replace(
        truth,
        position=position,
        orientation=orientation,
        linear_velocity=velocity,
        angular_velocity=rates,
    )
    return filtered, CORRECTED(topic, change=change)


class _ZeroPhaseFilter:
    """Zero-phase filter on an even grid, interpolated at the stamps of the samples."""

    def __init__(self, stamps: IntArray, rate: float, cutoff: float) -> None:
        self._time = (stamps - stamps[0]) * 1e-9
        span = float(self._time[-1])
        # On a coarser grid, a cutoff below half the sample rate could be above half the grid's.
        count = max(math.ceil(span * rate - 1e-3), _MIN_SAMPLES) + 1
        self._grid = np.linspace(0.0, span, count)
        step = span / (count - 1)
        # Two passes of -3 dB at f each have together -3 dB at a lower frequency.
        warped = math.tan(math.pi * cutoff * step) / (math.sqrt(2.0) - 1.0) ** 0.25
        # Importing scipy.signal takes 0.5 s, and most processes filter nothing.
        from scipy.signal import butter

        self._filter = butter(2, 2.0 / math.pi * math.atan(warped), output='sos')
        self._padding = min(math.ceil(_SETTLING_PERIODS / (cutoff * step)), count - 1)
        self._is_even = bool(
            len(stamps) == count and np.max(np.abs(self._grid - self._time)) < 1e-3 * step
        )

    def __call__(self, values: FloatArray) -> FloatArray:
        if self._is_even:
            return self._filter_grid(values)
        on_grid = np.stack(
            [np.interp(self._grid, self._time, column) for column in values.T], axis=1
        )
        from scipy.interpolate import CubicSpline

        samples: FloatArray = CubicSpline(self._grid, self._filter_grid(on_grid))(self._time)
        return samples

    def _filter_grid(self, values: FloatArray) -> FloatArray:
        from scipy.signal import sosfiltfilt

        filtered: FloatArray = sosfiltfilt(self._filter, values, axis=0, padlen=self._padding)
        return filtered
