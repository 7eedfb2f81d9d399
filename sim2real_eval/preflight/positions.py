# SPDX-License-Identifier: Apache-2.0
"""Checks of the truth with itself, and of fixes and truth with each other.

The first that is found is put right before the next: positions, then speeds, then orientation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from sim2real_eval.common.findings import Finding
from sim2real_eval.recording.corrections import TruthCorrection
from sim_sensors.core import rotations
from sim_sensors.core.measurements import FloatArray, by_blocks
from . import findings
from .evidence import SIGMAS, Delayed, Evidence, Track
from .outcome import Measure

# 5 % of the speed appears as lateral velocity at 3 deg, 17 % at 10 deg.
_TURN_DEG = (3.0, 10.0)
# 0.1 s is within what receivers need; at 0.3 s and 10 m/s a fix is 3 m behind.
_LATE_S = (0.1, 0.3)
_SCALE = 0.1
_SPEED_SCALE = 0.15
_HEADING_DEG = (5.0, 15.0)
_SPEEDS = {3.6: 'km/h', 2.236936: 'mph', 1.943844: 'knots', 1000.0: 'mm/s', 3.28084: 'feet/s'}
_SLOWEST = 0.2
_MOVES = 0.5
_JUMP_FACTOR = 10.0
_JUMP_M = 0.5
_FIX_JUMP_M = 2.0
# A deviation stated a third of the errors costs a filter accuracy; at a tenth of them its gates
# refuse the rest. Receivers state up to ten times too much.
_OPTIMISTIC, _WRONG, _PESSIMISTIC = 9.0, 100.0, 0.01


def axes(evidence: Evidence) -> Iterator[Measure]:
    """The turn between fixes and truth, or whether one is the mirror image of the other.

    Both are differenced over 2 s. A mirror image must explain the fixes better by more than
    chance, and leave less than half; a straight track does not tell a mirror from a turn.
    Latitude and longitude that are exchanged are a mirror too, but one that distorts: that they
    are must leave less than a fifth. So must axes of a camera, which has the track upright.
    """
    topic = evidence.topic('truth')
    track, of_camera = evidence.track, _of_camera(evidence)
    if of_camera is not None and (track is None or of_camera.left < 0.2 * track.fitted.left):
        total = evidence.correct('truth', axes='camera')
        yield Measure(None, None, findings.TRUTH_CAMERA(topic, axes=total.axes), 'truth axes')
        track = evidence.track
    if track is None:
        return
    role = 'truth'
    found, mirror = track.fitted, track.in_mirror
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
    told, limit = None, _SCALE + SIGMAS * found.deviation / abs(found.gain)
    if abs(math.log(scale)) > limit:
        back, ratio = _plain(1.0 / scale), _speed_ratio(evidence)
        both = ratio is not None and abs(math.log(ratio)) < _SPEED_SCALE
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
    if track is not None and track.fitted.explained > 0.5:
        return None
    other = evidence.tried('truth', axes='camera')
    found = None if other.track is None else other.track.fitted
    return found if found is not None and found.explained > 0.8 else None


def _exchanged(evidence: Evidence) -> Delayed | None:
    """Return how the truth explains the fixes with latitude and longitude exchanged; None where
    that is no place, or they do not agree without a turn.
    """
    fixes = evidence.fixes
    if fixes is None or np.abs(fixes.longitude).max() > 90.0:
        return None
    other = evidence.tried('gps', swapped=True)
    found = None if other.track is None else other.track.fitted
    return found if found is not None and abs(found.gain - 1.0) < 0.3 else None


def _plain(factor: float) -> float:
    """Return the factor of a usual unit where one is within 10 %, else the factor itself."""
    usual = (0.001, 0.01, 0.3048, 1000.0)
    return next((one for one in usual if abs(factor / one - 1.0) < _SCALE), factor)


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


# The truth with itself.


def _velocities(
    evidence: Evidence,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray] | None:
    """Return intervals, differences of positions, and recorded velocities as they are and turned
    to the world, of the intervals of the truth in which it moves; None where none are recorded.
    """
    truth = evidence.truth
    if truth is None or not truth.linear_velocity.any() or len(truth) < 4:
        return None
    steps = np.diff(truth.stamp_ns)[:, None] * 1e-9
    moved = by_blocks(
        lambda after, before, steps: (after - before) / steps,
        truth.position[1:], truth.position[:-1], steps,
    )  # fmt: skip
    world = by_blocks(rotations.rotate, truth.orientation, truth.linear_velocity)
    own, world = (
        by_blocks(lambda after, before: 0.5 * (after + before), each[1:], each[:-1])
        for each in (truth.linear_velocity, world)
    )
    return steps[:, 0], moved, own, world


def _speed_ratio(evidence: Evidence) -> float | None:
    """Return the median ratio of recorded speeds and differences of positions, while either says
    that it moves.
    """
    found = _velocities(evidence)
    if found is None:
        return None
    _, moved, own, _ = found
    recorded, speed = (by_blocks(_sizes, each) for each in (own, moved))
    fast = speed > max(0.5 * float(np.quantile(speed, 0.8)), _SLOWEST)
    if fast.sum() < 4:
        fast = (recorded > max(0.5 * float(np.quantile(recorded, 0.8)), _MOVES)) & (speed > 0.0)
    ratio = float(np.median(recorded[fast] / speed[fast])) if fast.sum() >= 4 else 0.0
    return ratio if ratio > 0.0 else None


def _sizes(vectors: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.norm(vectors, axis=1))


def speeds(evidence: Evidence) -> Iterator[Measure]:
    """The ratio of recorded speeds and differences of positions, at the median, while moving.

    A ratio needs no axes, and a median no positions without jumps. 15 % are beyond the noise of
    the positions of any truth, and below the next unit, feet for metres.
    """
    ratio, told = _speed_ratio(evidence), None
    if ratio is None:
        return
    topic = evidence.topic('truth')
    if abs(math.log(ratio)) > _SPEED_SCALE:
        near = [one for one in _SPEEDS if abs(ratio / one - 1.0) < _SCALE]
        if evidence.track is None and not 0.05 < ratio < 20.0:
            back = _plain(ratio)
            total = evidence.correct('truth', position_scale=back)
            told = findings.TRUTH_SCALE(
                topic, scale=1.0 / back, set=total.position_scale, speeds=''
            )
        else:
            unit = f': {_SPEEDS[near[0]]}' if near else ''
            back = 1.0 / (near[0] if near else ratio)
            total = evidence.correct('truth', speed_scale=back)
            told = findings.SPEED_SCALE(topic, scale=ratio, unit=unit, set=total.speed_scale)
    yield Measure(ratio, math.exp(_SPEED_SCALE), told, 'truth', 'ratio')


def heading(evidence: Evidence) -> Iterator[Measure]:
    """The orientation of the truth: there at all, and turning the twist to where it moves."""
    truth = evidence.truth
    if truth is None:
        return
    topic = evidence.topic('truth')
    moved = np.diff(truth.position[:, :2], axis=0)
    course = _course_range(moved, np.diff(truth.stamp_ns) * 1e-9)
    first = np.broadcast_to(truth.orientation[:1], truth.orientation.shape)
    turned = by_blocks(lambda *both: _sizes(rotations.between(*both)), first, truth.orientation)
    most = math.degrees(float(turned.max()))
    if most < 0.5 and course > 30.0:
        yield Measure(most, None, findings.NO_HEADING(topic, turn=most, course=course), 'truth')
        evidence.doubtful.add('orientation')
        return
    found = _velocities(evidence)
    if found is None:
        return
    _, differences, own, world = found
    fast = np.hypot(*differences[:, :2].T) > _SLOWEST
    if fast.sum() < 8:
        return
    size = _usual(differences[fast])
    body_left, world_left = _usual((world - differences)[fast]), _usual((own - differences)[fast])
    if world_left < 0.5 * body_left and body_left > 0.05 + 0.05 * size:
        told = findings.WORLD_TWIST(topic, world=world_left, body=body_left)
        yield Measure(None, None, told, 'truth twist')
        evidence.correct('truth', twist='world')
        return
    turns = np.conj(plane(differences[fast])) * plane(world[fast])
    mean = complex(np.mean(turns / np.maximum(np.abs(turns), 1e-12)))
    turn = math.degrees(np.angle(mean))
    off: Finding | None = None
    if abs(mean) > 0.9 and abs(turn) > _HEADING_DEG[0]:
        kind = findings.HEADING_LARGE if abs(turn) > _HEADING_DEG[1] else findings.HEADING
        off = kind(topic, turn=turn, set=evidence.correct('truth', heading=turn).heading)
    yield Measure(turn, _HEADING_DEG[0], off, 'truth heading', 'either')


def jumps(evidence: Evidence) -> Iterator[Measure]:
    """Steps of truth and fixes beyond ten robust deviations, and what a vehicle does.

    Steps of the truth are those that its twist does not explain, or without one the changes from
    step to step; those of the fixes are against the truth.
    """
    truth, track = evidence.truth, evidence.track
    if truth is not None and len(truth) > 8 and 'steps' not in evidence.doubtful:
        found = _velocities(evidence)
        steps = np.diff(truth.stamp_ns) * 1e-9
        left, usual = np.diff(truth.position, n=2, axis=0), steps < 3.0 * np.median(steps)
        usual = usual[1:] & usual[:-1]
        if found is not None:
            steps, moved, _, world = found
            left = by_blocks(
                lambda *each: (each[0] - each[1]) * each[2], moved, world, steps[:, None]
            )
            usual = steps < 3.0 * np.median(steps)
        count, largest = _outliers(by_blocks(_sizes, left)[usual], _JUMP_M)
        topic = evidence.topic('truth')
        told = findings.TRUTH_JUMPS(topic, count=count, step=largest) if count else None
        yield Measure(largest, _JUMP_M, told, 'truth')
        if told is not None:
            evidence.doubtful.add('steps')
    if track is not None and not evidence.doubtful & {'fixes', 'steps'}:
        left = np.abs(np.diff(_residual(track)))
        count, largest = _outliers(left, _FIX_JUMP_M)
        topic = evidence.topic('gps')
        told = findings.FIX_JUMPS(topic, count=count, step=largest) if count else None
        yield Measure(largest, _FIX_JUMP_M, told, 'gps')


def _residual(track: Track) -> FloatArray:
    left: FloatArray = track.measured - track.truth(track.stamps)
    return left


def _outliers(sizes: FloatArray, least: float) -> tuple[int, float]:
    if not len(sizes):
        return 0, 0.0
    limit = max(least, _JUMP_FACTOR * 1.4826 * float(np.median(sizes)))
    return int((sizes > limit).sum()), float(sizes.max())


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


def fix_covariance(evidence: Evidence) -> Iterator[Measure]:
    """Mean square of the errors of the fixes, without their mean, over the stated variance.

    Errors of a receiver wander over minutes, so that a run has one or two independent ones: a
    ratio of 9 (three deviations) is told, never one of 4.
    """
    error, fixes = fix_error(evidence), evidence.fixes
    if error is None or fixes is None or 'fix errors' in evidence.doubtful:
        return
    stated = fixes.position_covariance[:, (0, 1), (0, 1)].mean(axis=1)
    if not (stated > 0.0).all():
        return
    yield from covariance(evidence, 'gps', 'std', 'position', error**2, float(np.median(stated)))


def covariance(
    evidence: Evidence, role: str, key: str, quantity: str, square: float, stated: float,
    limits: tuple[float, float, float] = (_OPTIMISTIC, _WRONG, _PESSIMISTIC),
) -> Iterator[Measure]:  # fmt: skip
    """Hold a mean square of errors against the stated variance.

    What is stated too large is no fault to put right: errors of one recording lack slow ones.
    """
    ratio = square / stated
    warn, fail, great = limits
    told = None
    if ratio > warn or ratio < great:
        kind = findings.COVARIANCE_LARGE if ratio > fail else findings.COVARIANCE
        kind = findings.PESSIMISTIC if ratio < great else kind
        told = kind(
            evidence.topic(role),
            quantity=quantity,
            error=math.sqrt(square),
            stated=math.sqrt(stated),
            role=role,
            key=key,
        )
        if ratio > warn:
            evidence.correct(role, **{key: math.sqrt(square)})
    limit, scale = (great, 'least') if ratio < 1.0 else (warn, 'most')
    yield Measure(ratio, limit, told, f'{role} {quantity}', scale)


def _course_range(moved: FloatArray, steps: FloatArray) -> float:
    """Return the largest change of the direction of travel, deg, above 0.5 m/s."""
    fast = np.hypot(moved[:, 0], moved[:, 1]) > 0.5 * steps
    if not fast.any():
        return 0.0
    course = plane(moved[fast])
    return math.degrees(float(np.abs(np.angle(course * np.conj(course[0]))).max()))


def plane(vectors: FloatArray) -> FloatArray:
    """Return the horizontal parts of vectors as complex numbers."""
    found: FloatArray = vectors[:, 0] + 1j * vectors[:, 1]
    return found


def _usual(vectors: FloatArray) -> float:
    """Return the median length, which jumps do not change."""
    return float(np.median(np.linalg.norm(vectors, axis=1)))
