# SPDX-License-Identifier: Apache-2.0
"""Checks of the truth with itself: its velocities and orientations, and where it moves.

What is found first is put right before the next: positions, then speeds, then orientation.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.common.findings import Finding
from sim_sensors.core import rotations
from sim_sensors.core.blocks import seconds
from sim_sensors.core.measurements import FloatArray, OdometryArray
from . import findings
from .delays import SIGMAS, find_delay
from .evidence import Evidence, block_means
from .outcome import Measure

SCALE = 0.1
"""Relative error of a length beyond which another unit is meant."""
# The same of a speed, as a logarithm.
_SPEED_SCALE = 0.15
_HEADING_DEG = (5.0, 15.0)
_SPEEDS = {3.6: 'km/h', 2.236936: 'mph', 1.943844: 'knots', 1000.0: 'mm/s', 3.28084: 'feet/s'}
_SLOWEST = 0.2
_BLOCK_S = 1.0
_LEAST_BLOCKS = 5
# A filter of the speeds is as late as 0.1 s; at 1 m/s^2 that is 0.1 m/s.
_LATE_S = 0.1
_SHORT_S = 0.3
# After which errors of speeds over such a time are independent.
_INDEPENDENT_S = 0.5
_LEAST_DELAYED = 32
# Lengths of a mean of turns: 0.9 is a direction that strays by 26 deg, 0.98 by 12 deg.
_FOLLOWS, _STEADY = 0.9, 0.98
_AHEAD_DEG = 20.0
_MOVES = 0.5


def speed_ratio(evidence: Evidence) -> tuple[float, float] | None:
    """Return the median ratio of recorded speeds and differences of positions over half a second,
    while either says that it moves; and the size of its logarithm beyond which, by more than
    chance, another unit is meant.
    """
    found = evidence.velocities
    if found is None or evidence.truth is None:
        return None
    steps, moved, own, _ = found
    speed, recorded = map(np.abs, _horizontal(evidence.truth, 0.5, steps, moved, own))
    fast = speed > max(0.5 * float(np.quantile(speed, 0.8)), _SLOWEST)
    if fast.sum() < 4:
        fast = (recorded > max(0.5 * float(np.quantile(recorded, 0.8)), _MOVES)) & (speed > 0.0)
    if fast.sum() < 4:
        return None
    ratios = recorded[fast] / speed[fast]
    ratio = float(np.median(ratios))
    if not ratio > 0.0:
        return None
    # A robust deviation, and the standard error of a median by it.
    deviation = 1.48 * float(np.median(np.abs(ratios / ratio - 1.0)))
    return ratio, _SPEED_SCALE + SIGMAS * 1.25 * deviation / math.sqrt(len(ratios))


def plain(factor: float) -> float:
    """Return the factor of a usual unit where one is within 10 %, else the factor itself."""
    usual = (0.001, 0.01, 0.3048, 1000.0)
    return next((one for one in usual if abs(factor / one - 1.0) < SCALE), factor)


def speeds(evidence: Evidence) -> Iterator[Measure]:
    """The ratio of recorded speeds and differences of positions, at the median, while moving.

    A ratio needs no axes, and a median no positions without jumps. 15 % are beyond the noise of
    the positions of any truth, and below the next unit, feet for metres.
    """
    found, told = speed_ratio(evidence), None
    if found is None:
        return
    (ratio, limit), topic = found, evidence.topic('truth')
    if abs(math.log(ratio)) > limit:
        near = [one for one in _SPEEDS if abs(ratio / one - 1.0) < SCALE]
        if evidence.track is None and not 0.05 < ratio < 20.0:
            back = plain(ratio)
            total = evidence.correct('truth', position_scale=back)
            told = findings.TRUTH_SCALE(
                topic, scale=1.0 / back, set=total.position_scale, speeds=''
            )
        else:
            unit = f': {_SPEEDS[near[0]]}' if near else ''
            back = 1.0 / (near[0] if near else ratio)
            total = evidence.correct('truth', speed_scale=back)
            told = findings.SPEED_SCALE(topic, scale=ratio, unit=unit, set=total.speed_scale)
    yield Measure(ratio, math.exp(limit), told, 'truth', 'ratio')


def twist_delay(evidence: Evidence) -> Iterator[Measure]:
    """The delay of recorded speeds behind differences of positions; speeds need no axes."""
    found = evidence.velocities
    if found is None or evidence.truth is None:
        return
    truth, (steps, moved, own, _) = evidence.truth, found
    period = float(np.median(steps))
    (true,) = map(np.abs, _horizontal(truth, _SHORT_S, steps, moved))
    if period > _SHORT_S or len(true) < _LEAST_DELAYED or not own[:, :2].any():
        return
    time = seconds(truth.stamp_ns, truth.stamp_ns[0])
    middles = block_means(
        lambda end, step: (end - 0.5 * step)[:, None], time[1:], _SHORT_S, time[1:], steps
    )[:, 0]
    half = 0.5 * _SHORT_S
    way = [np.append(0.0, np.cumsum(own[:, axis] * steps)) for axis in (0, 1)]

    def speed(delay: float) -> FloatArray:
        """Return the recorded one of a delay before: means over the time of a block, whose noise
        does not depend on where in a step it begins.
        """
        centre = np.clip(middles - delay, half, time[-1] - half)
        ends = [centre - half, centre + half]
        x, y = (np.diff([np.interp(end, time, one) for end in ends], axis=0)[0] for one in way)
        return np.asarray(np.hypot(x, y))

    limit = max(_LATE_S, 0.5 * period)
    span = float(middles[-1] - middles[0])
    early = find_delay(true, speed, span, _INDEPENDENT_S, tolerated=limit)
    if early.explained < 0.5:
        return
    delay, told = 0.0 - early.seconds, None
    if abs(delay) > limit:
        told = findings.TWIST_LATE(evidence.topic('truth'), delay=delay)
        evidence.correct('truth', twist='positions')
    yield Measure(delay, limit, told, 'truth twist delay', 'either')


def heading(evidence: Evidence) -> Iterator[Measure]:
    """The orientation of the truth: there at all, and turning the twist to where it moves."""
    truth = evidence.truth
    if truth is None:
        return
    topic = evidence.topic('truth')
    course = _course_range(truth)
    first = np.broadcast_to(truth.orientation[:1], truth.orientation.shape)
    turns = np.linalg.norm(rotations.rotation_between(first, truth.orientation), axis=1)
    most = math.degrees(float(turns.max()))
    if most < 0.5 and course > 30.0:
        yield Measure(most, None, findings.NO_HEADING(topic, turn=most, course=course), 'truth')
        evidence.doubtful.add('orientation')
        return
    found = evidence.velocities
    if found is None:
        return
    steps, differences, own, world = found
    fast = np.hypot(differences[:, 0], differences[:, 1]) > _SLOWEST
    if fast.sum() < 8:
        return
    size = _usual(fast, differences)
    # Where what keeps its course most of the time turns, by medians that jumps do not change.
    apart = np.linalg.norm(own - world, axis=1)
    telling = fast & (apart >= np.quantile(apart[fast], 0.8))
    body_left, world_left = (_usual(telling, one, differences) for one in (world, own))
    # What drives for a few seconds is seen in shorter blocks, whose noise is no twist that strays.
    for length in (_BLOCK_S, _SHORT_S):
        means = _horizontal(truth, length, steps, differences, own, world)
        # Noise of positions has no direction.
        moves = np.min(np.abs([means[0], means[-1]]), axis=0) > _SLOWEST
        moved, as_is, turned = (one[moves] for one in means)
        if len(moved) >= _LEAST_BLOCKS:
            break
    if (
        world_left < 0.5 * body_left
        and body_left > 0.05 + 0.05 * size
        and not _is_in_world(evidence)
        and not _is_of_the_body(moved, as_is, turned)
    ):
        told = findings.WORLD_TWIST(topic, world=world_left, body=body_left)
        yield Measure(None, None, told, 'truth twist')
        evidence.correct('truth', twist='world')
        return
    if len(moved) < _LEAST_BLOCKS:
        return
    mean = _mean_turn(moved, turned)
    turn, spread = math.degrees(np.angle(mean)), circular_deviation(abs(mean))
    if abs(mean) < _FOLLOWS:
        if length == _BLOCK_S:
            yield _strays(evidence, as_is, turned, moved, spread)
        return
    off: Finding | None = None
    limit = _HEADING_DEG[0] + SIGMAS * spread / math.sqrt(len(moved))
    if abs(turn) > limit:
        kind = findings.HEADING_LARGE if abs(turn) > _HEADING_DEG[1] else findings.HEADING
        off = kind(topic, turn=turn, set=evidence.correct('truth', heading=turn).heading)
    yield Measure(turn, limit, off, 'truth heading', 'either')


def _horizontal(
    truth: OdometryArray, length: float, steps: FloatArray, *velocity: FloatArray
) -> list[FloatArray]:
    """Return the horizontal parts of velocities between stamps as complex means over blocks of a
    length, s, in which noise of positions is small.
    """

    def weighted(steps: FloatArray, *rows: FloatArray) -> FloatArray:
        weight = steps[:, None]
        return np.hstack([*(weight * one[:, :2] for one in rows), weight])

    time = seconds(truth.stamp_ns[1:], truth.stamp_ns[0])
    means = block_means(weighted, time, length, steps, *velocity)
    means = means[:, :-1] / means[:, -1:]
    return [means[:, k] + 1j * means[:, k + 1] for k in range(0, means.shape[1], 2)]


def _mean_turn(first: FloatArray, second: FloatArray) -> complex:
    """Return the mean of exp(i turn) from some vectors to others, where the others are fast
    counting more; 1 where there are none.
    """
    size = float(np.abs(second).sum())
    ahead = np.conj(first) / np.maximum(np.abs(first), 1e-12)
    return complex(np.sum(ahead * second)) / size if size > 0.0 else 1.0 + 0.0j


def circular_deviation(length: float) -> float:
    """Return the circular standard deviation of turns, deg, from the length of their mean."""
    return math.degrees(math.sqrt(-2.0 * math.log(min(max(length, 1e-3), 1.0))))


def _is_in_world(evidence: Evidence) -> bool:
    known = evidence.recording.corrections.get('truth')
    return known is not None and known.twist == 'world'


def _is_of_the_body(moved: FloatArray, as_is: FloatArray, turned: FloatArray) -> bool:
    """Return whether a twist that agrees with the course as it is may be one of the body beside a
    wrong orientation: a vehicle that keeps its course does not tell the two apart, but that it
    moves along its x axis.
    """
    if abs(_mean_turn(moved, turned)) < _STEADY or abs(_direction(as_is)) < _STEADY:
        return False
    in_body = as_is * as_is * np.conj(turned) / np.maximum(np.abs(as_is * turned), 1e-12)
    turns = [abs(np.angle(_direction(one))) for one in (as_is, in_body)]
    return bool(turns[0] < math.radians(_AHEAD_DEG) <= turns[1])


def _direction(vectors: FloatArray) -> complex:
    """Return the mean direction of vectors; its length is 1 where they have one direction."""
    return _mean_turn(np.ones_like(vectors), vectors)


def _strays(
    evidence: Evidence, as_is: FloatArray, turned: FloatArray, moved: FloatArray, spread: float
) -> Measure:
    """Tell that the twist, turned by the orientation, does not follow the positions, and which of
    the three is wrong.

    A twist that keeps one direction in the body is that of something with wheels, so that the
    orientation is wrong; nothing puts that right.
    """
    what, mend = 'twist', 'set `corrections: {truth: {twist: positions}}` in recording.yaml'
    turn = turned * np.conj(as_is) / np.maximum(np.abs(turned * as_is), 1e-12)
    if _is_in_world(evidence) and abs(_mean_turn(moved, turned * turn)) > _FOLLOWS:
        mend = 'remove `twist: world` from recording.yaml'
        evidence.doubtful.add('orientation')
    elif abs(_direction(as_is)) > _FOLLOWS:
        what, mend = 'orientation', 'record a truth with the orientation of the body'
        evidence.doubtful.add('orientation')
    else:
        evidence.correct('truth', twist='positions')
    told = findings.TWIST_STRAYS(evidence.topic('truth'), what=what, spread=spread, mend=mend)
    return Measure(spread, circular_deviation(_FOLLOWS), told, 'truth twist')


def _course_range(truth: OdometryArray) -> float:
    """Return the largest change of the direction of travel, deg, above 0.5 m/s."""
    moved = plane(np.diff(truth.position, axis=0))
    course = moved[np.abs(moved) > 0.5e-9 * np.diff(truth.stamp_ns)]
    if not len(course):
        return 0.0
    return math.degrees(float(np.abs(np.angle(course * np.conj(course[0]))).max()))


def plane(vectors: FloatArray) -> FloatArray:
    """Return the horizontal parts of vectors as complex numbers."""
    found: FloatArray = vectors[:, 0] + 1j * vectors[:, 1]
    return found


def _usual(chosen: NDArray[np.bool_], *vectors: FloatArray) -> float:
    """Return the median length of chosen vectors, or of their differences, which jumps do not
    change.
    """
    difference = functools.reduce(np.subtract, (rows[chosen] for rows in vectors))
    return float(np.median(np.linalg.norm(difference, axis=1)))
