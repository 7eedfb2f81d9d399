# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Check whether the truth was computed from the fixes, so that it shares their errors."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.special import fdtri

from sim_sensors.core import rotations
from sim_sensors.core.measurements import FloatArray
from . import findings
from .arrays import plane
from .evidence import Evidence
from .outcome import Measure
from .positions import fix_error

# Truth and fixes that agree this well are one measurement: RTK errors scatter by 4 mm in a minute.
_FINEST_M = 0.001
_P_VALUE = 1e-4
_SLOW_SHARE = 0.5
# Periods in a recording that the fit of frames, delay and lever arm may have removed.
_MIN_PERIODS = 6
_MIN_FIXES = 64
# Two hours at 10 Hz say as much as a day, whose least squares take 0.5 GB.
_MAX_FIXES = 1 << 16


def measure_independence(evidence: Evidence) -> Iterator[Measure]:
    """Compare slow with quick errors of the fixes.

    Errors of a receiver relative to an independent truth are white or wander: they have at least
    as much power at low as at high frequencies. A truth that was interpolated or smoothed from the
    fixes shares their slow errors, and only the quick ones are left. A finding is less than half
    of the power, with a p-value below 1e-4 for white errors, while the errors are below those that
    the covariance states: unknown motion of the antenna is quick as well, and larger.
    """
    error, fixes = fix_error(evidence), evidence.fixes
    if error is None or fixes is None or 'fix errors' in evidence.doubtful:
        return
    topic = evidence.recording.roles['truth']
    finding = None
    if error < _FINEST_M:
        finding = findings.TRUTH_OF_FIXES(topic, error=error * 1e3)
    yield Measure(error, _FINEST_M, finding, 'gps', 'least')
    spectrum = None if finding is not None else _slow_share(evidence)
    if spectrum is not None:
        share, limit, error = spectrum
        stated = float(np.median(fixes.position_covariance[:, (0, 1), (0, 1)].mean(axis=1)))
        if share < limit and error**2 < stated:
            finding = findings.TRUTH_OF_SMOOTHED_FIXES(topic, error=error * 1e3, share=share)
        yield Measure(share, limit, finding, 'gps slow errors', 'least', unit='')
    evidence.doubtful |= {'fix errors'} if finding is not None else set()


def _slow_share(evidence: Evidence) -> tuple[float, float, float] | None:
    """Return the mean power of the errors at low over that at high frequencies, and its limit.

    The third value is the standard deviation of the errors per axis, m. None if there are too few
    fixes. Low is below an eighth of the rate, high is above a quarter of it. For white errors the
    ratio has an F distribution.
    """
    error = _errors(evidence)
    if error is None:
        return None
    count = len(error)
    power = np.abs(np.fft.fft(error)) ** 2
    periods = np.abs(np.fft.fftfreq(count)) * count
    low = (periods >= _MIN_PERIODS) & (periods <= count / 8)
    high = periods >= count / 4
    share = float(power[low].mean() / power[high].mean())
    # Each complex number has two degrees of freedom.
    limit = float(fdtri(2 * low.sum(), 2 * high.sum(), _P_VALUE))
    deviation = math.sqrt(float(np.mean(np.abs(error) ** 2)) / 2.0)
    return share, min(limit, _SLOW_SHARE), deviation


def _errors(evidence: Evidence) -> FloatArray | None:
    """Return the errors of the fixes, complex m, that no difference of frames explains.

    A delay, an unknown lever arm and corners that a filter has cut are fitted as well.
    """
    track, maker, fixes = evidence.track, evidence.maker, evidence.fixes
    if track is None or maker is None or fixes is None:
        return None
    times = (fixes.stamp_ns - maker.start_ns) * 1e-9
    inside = (fixes.stamp_ns >= maker.truth.stamp_ns[0]) & (
        fixes.stamp_ns <= maker.truth.stamp_ns[-1]
    )
    if inside.sum() < _MIN_FIXES:
        return None
    inside &= np.cumsum(inside) <= _MAX_FIXES
    state = maker.motion.at(times[inside])
    arm = np.tile(evidence.gps_lever_arm(), (len(state.position), 1))
    antenna = state.position + rotations.rotate(state.orientation, arm)
    ahead = rotations.rotate(state.orientation, np.tile([1.0, 0.0, 0.0], (len(antenna), 1)))
    place, velocity, bend, course = map(
        plane, (antenna, state.velocity, state.acceleration, ahead)
    )
    columns = (np.ones_like(place), place, place.conj(), antenna[:, 2], velocity, bend, course)
    design = np.stack(columns, axis=1)
    design /= np.maximum(np.linalg.norm(design, axis=0), 1e-12)
    error = track.measured[inside] - place
    residual: FloatArray = error - design @ np.linalg.lstsq(design, error, rcond=1e-9)[0]
    return residual
