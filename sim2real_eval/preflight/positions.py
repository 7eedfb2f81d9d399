# SPDX-License-Identifier: Apache-2.0
"""Checks of positions: of fixes and truth with each other, whether one is made of the other, and
steps of either.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.special import fdtri

from sim2real_eval.recording.corrections import TruthCorrection
from sim_sensors.core import rotations
from sim_sensors.core.measurements import FloatArray
from . import findings
from .delays import SIGMAS, Delayed
from .evidence import Evidence, Track, intervals
from .outcome import Measure
from .velocities import SCALE, plain, plane, speed_ratio

# 5 % of the speed appears as lateral velocity at 3 deg, 17 % at 10 deg.
_TURN_DEG = (3.0, 10.0)
# 0.1 s is within what receivers need; at 0.3 s and 10 m/s a fix is 3 m behind.
_LATE_S = (0.1, 0.3)
_JUMP_FACTOR = 10.0
_JUMP_M = 0.5
_FIX_JUMP_M = 2.0
# Below it truth and fixes are one measurement: RTK errors scatter by 4 mm within a minute.
_FINEST_M = 0.001
_P_VALUE = 1e-4
_SLOW_SHARE = 0.5
# Periods in a recording that the fit of frames, delay and lever arm may have removed.
_LEAST_PERIODS = 6
_LEAST_EPOCHS = 64
# Two hours at 10 Hz say as much as a day, whose least squares take 0.5 GB.
_MOST_EPOCHS = 1 << 16


def axes(evidence: Evidence) -> Iterator[Measure]:
    """The turn between fixes and truth, or whether one is the mirror image of the other.

    Both are differenced over 2 s. A mirror image must explain the fixes better by more than
    chance, and leave less than half; a straight track does not tell a mirror from a turn.
    Latitude and longitude that are exchanged are a mirror too, but one that distorts: that they
    are must leave less than a fifth. So must axes of a camera, which has the track upright.
    """
    topic = evidence.topic('truth')
    track, of_camera = evidence.track, _of_camera(evidence)
    if of_camera is not None and (track is None or of_camera.left < 0.2 * track.near.left):
        total = evidence.correct('truth', axes='camera')
        yield Measure(None, None, findings.TRUTH_CAMERA(topic, axes=total.axes), 'truth axes')
        track = evidence.track
    if track is None:
        return
    role = 'truth'
    found, mirror = track.near, track.in_mirror
    other = _exchanged(evidence)
    if other is not None and other.left < 0.2 * min(found.left, mirror.left):
        total = evidence.correct('gps', swapped=True)
        wrong = findings.SWAPPED(
            evidence.topic('gps'), role=evidence.role('gps'), swapped=str(total.swapped).lower()
        )
        yield Measure(None, None, wrong, 'gps axes')
    elif mirror.is_better_than(found.left) and mirror.left < 0.5 * found.left:
        total = evidence.correct('truth', axes='ned')
        yield Measure(None, None, findings.TRUTH_NED(topic, axes=total.axes), 'truth axes')
    track = evidence.track
    if track is None:
        return
    found = track.fitted
    if found.explained < 0.5:
        return
    turn = -math.degrees(np.angle(found.gain))
    error = math.degrees(found.deviation / abs(found.gain))
    told, limit = None, _TURN_DEG[0] + SIGMAS * error
    if abs(turn) > limit:
        kind = findings.TRUTH_TURNED_LARGE if abs(turn) > _TURN_DEG[1] else findings.TRUTH_TURNED
        told = kind(topic, turn=turn, set=evidence.correct('truth', turn=turn).turn)
    yield Measure(turn, limit, told, role, 'either')
    scale = 1.0 / abs(found.gain)
    told, limit = None, SCALE + SIGMAS * found.deviation / abs(found.gain)
    if abs(math.log(scale)) > limit:
        back, speed = plain(1.0 / scale), speed_ratio(evidence)
        both = speed is not None and abs(math.log(speed[0])) < speed[1]
        total = evidence.correct('truth', position_scale=back, speed_scale=back if both else 1.0)
        key = f', speed_scale: {total.speed_scale:.6g}' if both else ''
        told = findings.TRUTH_SCALE(topic, scale=1.0 / back, set=total.position_scale, speeds=key)
    yield Measure(scale, math.exp(limit), told, f'{role} scale', 'ratio')


def _of_camera(evidence: Evidence) -> Delayed | None:
    """Return how the truth, its axes taken for those of a camera, explains the fixes; None where
    it does not, or as it is it does.
    """
    track, known = evidence.track, evidence.recording.corrections.get('truth', TruthCorrection())
    if evidence.truth is None or evidence.fixes is None:
        return None
    if known.axes != 'enu' or known.turn or known.heading or known.body_yaw:
        # Axes come before turns: both together would not be one correction.
        return None
    if track is not None and track.near.explained > 0.5:
        return None
    other = evidence.tried('truth', axes='camera')
    found = None if other.track is None else other.track.near
    return found if found is not None and found.explained > 0.8 else None


def _exchanged(evidence: Evidence) -> Delayed | None:
    """Return how the truth explains the fixes with latitude and longitude exchanged; None where
    that is no place, or they do not agree without a turn.
    """
    fixes = evidence.fixes
    if fixes is None or np.abs(fixes.longitude).max() > 90.0:
        return None
    other = evidence.tried('gps', swapped=True)
    found = None if other.track is None else other.track.near
    return found if found is not None and abs(found.gain - 1.0) < 0.3 else None


def delay(evidence: Evidence) -> Iterator[Measure]:
    """The delay of the fixes behind the truth, from both differenced over 2 s."""
    track = evidence.track
    if track is None or not track.fitted.explained > 0.5:
        return
    late = track.fitted.seconds
    told = None
    if abs(late) > _LATE_S[0]:
        kind = findings.FIXES_LATE_LARGE if abs(late) > _LATE_S[1] else findings.FIXES_LATE
        total = evidence.correct('gps', delay=late)
        told = kind(evidence.topic('gps'), role=evidence.role('gps'), delay=late, set=total.delay)
    yield Measure(late, _LATE_S[0], told, 'gps', 'either')


def jumps(evidence: Evidence) -> Iterator[Measure]:
    """Steps of truth and fixes beyond ten robust deviations, and what a vehicle does.

    Steps of the truth are those that its twist does not explain, or without one the changes from
    step to step; those of the fixes are against the truth.
    """
    truth, track = evidence.truth, evidence.track
    if truth is not None and len(truth) > 8 and 'steps' not in evidence.doubtful:
        found = evidence.velocities
        steps = intervals(truth)
        usual = steps < 3.0 * np.median(steps)
        if found is not None:
            _, moved, _, world = found
            left = np.linalg.norm((moved - world) * steps[:, None], axis=1)
        else:
            usual = usual[1:] & usual[:-1]
            left = np.linalg.norm(np.diff(truth.position, n=2, axis=0), axis=1)
        count, largest, limit = _outliers(left[usual], _JUMP_M)
        topic = evidence.topic('truth')
        told = findings.TRUTH_JUMPS(topic, count=count, step=largest) if count else None
        yield Measure(largest, limit, told, 'truth')
        if told is not None:
            evidence.doubtful.add('steps')
    if track is not None and not evidence.doubtful & {'fixes', 'steps'}:
        left = np.abs(np.diff(_residual(track)))
        count, largest, limit = _outliers(left, _FIX_JUMP_M)
        topic = evidence.topic('gps')
        told = findings.FIX_JUMPS(topic, count=count, step=largest) if count else None
        yield Measure(largest, limit, told, 'gps')


def _residual(track: Track) -> FloatArray:
    left: FloatArray = track.measured - track.truth(track.stamps)
    return left


def _outliers(steps: FloatArray, least: float) -> tuple[int, float, float]:
    """Return how many steps are beyond the limit, the largest, and the limit."""
    if not len(steps):
        return 0, 0.0, least
    limit = max(least, _JUMP_FACTOR * 1.4826 * float(np.median(steps)))
    return int((steps > limit).sum()), float(steps.max()), limit


def fix_error(evidence: Evidence) -> float | None:
    """Return the standard deviation of the errors of the fixes per axis, m, without their mean.

    Not what jumps: that is told, and not what a covariance states. None where the truth is not
    understood.
    """
    track = evidence.track
    if track is None or evidence.doubtful & {'fixes', 'slow truth'}:
        return None
    if not track.fitted.explained > 0.5:
        return None
    error = _residual(track)
    east, north = error.real - np.median(error.real), error.imag - np.median(error.imag)
    return math.sqrt(float(np.median(east**2 + north**2)) / (2.0 * math.log(2.0)))


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
    an F distribution. Of more than two hours at 10 Hz the first two are looked at.
    """
    error = _errors(evidence)
    if error is None:
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
    inside &= np.cumsum(inside) <= _MOST_EPOCHS
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

    design = known(times[inside])
    place = design[:, 1].copy()
    design /= np.maximum(np.linalg.norm(design, axis=0), 1e-12)
    error = track.measured[inside] - place
    left: FloatArray = error - design @ np.linalg.lstsq(design, error, rcond=1e-9)[0]
    return left
