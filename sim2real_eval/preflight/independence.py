# SPDX-License-Identifier: Apache-2.0
"""Is the truth independent of the fixes that are held against it?"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.special import fdtri

from sim_sensors.core import rotations
from sim_sensors.core.measurements import FloatArray, by_blocks
from . import findings
from .evidence import Evidence
from .outcome import Measure
from .positions import fix_error
from .velocities import plane

_FINEST_M = 0.001
"""Errors below which fixes and truth are one measurement: those of RTK receivers scatter by 4 mm
within a minute."""

_P_VALUE = 1e-4
_SLOW_SHARE = 0.5
# Periods in a recording that the fit of frames, delay and lever arm may have removed.
_LEAST_PERIODS = 6
_LEAST_EPOCHS = 64


def independence(evidence: Evidence) -> Iterator[Measure]:
    """Tell a truth that was made of the fixes: it has their errors, so they seem to have few.

    Errors of a receiver against anything independent of it are white or wander: they have at
    least as much power at low frequencies as at high ones. A truth that was interpolated or
    smoothed from the fixes has their slow errors too, and only the quick ones are left. Told is
    less than half of the power, with a p-value below 1e-4 for white errors, where errors are
    below what the covariance states: motion that a truth does not know is quick as well, and
    larger.
    """
    error, fixes = fix_error(evidence), evidence.fixes
    if error is None or fixes is None:
        return
    topic = evidence.recording.roles['truth']
    told = findings.TRUTH_OF_FIXES(topic, error=error * 1e3) if error < _FINEST_M else None
    yield Measure(error, _FINEST_M, told, 'gps', 'least')
    found = None if told is not None else _slow_share(evidence)
    if found is not None:
        share, limit, error = found
        stated = float(np.median(fixes.position_covariance[:, (0, 1), (0, 1)].mean(axis=1)))
        if share < limit and error**2 < stated:
            told = findings.TRUTH_OF_SMOOTHED_FIXES(topic, error=error * 1e3, share=share)
        yield Measure(share, limit, told, 'gps slow errors', 'least', unit='')
    evidence.doubtful |= {'fix errors'} if told is not None else set()


def _slow_share(evidence: Evidence) -> tuple[float, float, float] | None:
    """Return mean power of the errors at low over that at high frequencies, the limit of it, and
    the standard deviation of the errors per axis, m; None where the fixes are too few.

    Low is below an eighth of the rate, high above a quarter of it. Of white errors the ratio has
    an F distribution.
    """
    error = _errors(evidence)
    if error is None or len(error) < _LEAST_EPOCHS:
        return None
    count = len(error)
    power = np.abs(np.fft.fft(error)) ** 2
    periods = np.abs(np.fft.fftfreq(count)) * count
    low = (periods >= _LEAST_PERIODS) & (periods <= count / 8)
    high = periods >= count / 4
    share = float(power[low].mean() / power[high].mean())
    # Two degrees of freedom in each complex number.
    limit = float(fdtri(2 * low.sum(), 2 * high.sum(), _P_VALUE))
    deviation = math.sqrt(float(np.mean(np.abs(error) ** 2)) / 2.0)
    return share, min(limit, _SLOW_SHARE), deviation


def _errors(evidence: Evidence) -> FloatArray | None:
    """Return the errors of the fixes, complex m, less what differences of frames, a delay, a
    lever arm that is not known and corners that a filter has cut explain.
    """
    track, maker, fixes = evidence.track, evidence.maker, evidence.fixes
    if track is None or maker is None or fixes is None:
        return None
    times = (fixes.stamp_ns - maker.start_ns) * 1e-9
    inside = (fixes.stamp_ns >= maker.truth.stamp_ns[0]) & (
        fixes.stamp_ns <= maker.truth.stamp_ns[-1]
    )
    if inside.sum() < _LEAST_EPOCHS:
        return None
    arm, _ = maker.mounting(fixes.frame)

    def known(some: FloatArray) -> FloatArray:
        state = maker.motion.at(some)
        antenna = state.position + rotations.rotate(
            state.orientation, np.tile(arm, (len(some), 1))
        )
        ahead = rotations.rotate(state.orientation, np.tile([1.0, 0.0, 0.0], (len(some), 1)))
        moving = (antenna, state.velocity, state.acceleration, ahead)
        place, velocity, bend, course = map(plane, moving)
        each = (np.ones_like(place), place, place.conj(), antenna[:, 2], velocity, bend, course)
        return np.stack(each, axis=1)

    design = np.array(by_blocks(known, times[inside]))
    place = design[:, 1].copy()
    design /= np.maximum(np.linalg.norm(design, axis=0), 1e-12)
    error = track.measured[inside] - place
    left: FloatArray = error - design @ np.linalg.lstsq(design, error, rcond=1e-9)[0]
    return left
