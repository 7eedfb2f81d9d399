# SPDX-License-Identifier: Apache-2.0
"""A low pass without lag for the truth, as motion capture needs before it is differentiated."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from sim2real_eval.common.errors import RecordingError
from sim2real_eval.common.findings import Finding
from sim2real_eval.recording.findings import LOW_PASSED
from sim_sensors.core import rotations
from sim_sensors.core.measurements import FloatArray, IntArray, OdometryArray

_FEWEST = 16
"""Samples below which a low pass says little."""

_SETTLED = 2.5
"""Periods of the cutoff until a step has died away in the filter, to 1e-6."""


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
    of both ends.

    Parameters
    ----------
    where : str
        File or folder, for messages.
    topic : str
    truth : OdometryArray
        At increasing stamps.
    cutoff : float
        Frequency at which the amplitude is 1/sqrt(2), Hz.

    Raises
    ------
    RecordingError
        When there are fewer than 16 samples, or the cutoff is not below half their rate.

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
