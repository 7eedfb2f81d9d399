# SPDX-License-Identifier: Apache-2.0
"""Checks of the velocities and the orientation of the truth against its positions.

Each check corrects what it finds before the next one: positions, speeds, then orientation.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.common.findings import Finding
from sim_sensors.core import rotations
from sim_sensors.core.blocks import seconds
from sim_sensors.core.measurements import FloatArray, OdometryArray
from . import findings
from .arrays import plane
from .delays import SIGMAS, fit_delay
from .evidence import Evidence, block_means, circular_deviation
from .outcome import Measure

SCALE = 0.1
"""Relative error of a length beyond which another unit is meant."""
# Logarithm of a ratio of speeds beyond which another unit is meant, and below which the error of
# an estimate hardly changes: 2 % are 0.08 m/s at 4 m/s.
_SPEED_SCALE, _LEAST_SPEED_SCALE = 0.15, 0.02
_HEADING_DEG = (5.0, 15.0)
_SPEEDS = {3.6: 'km/h', 2.236936: 'mph', 1.943844: 'knots', 1000.0: 'mm/s', 3.28084: 'feet/s'}
_SLOWEST = 0.2
_BLOCK_S = 1.0
_LEAST_BLOCKS = 5
# A filter of the speeds is as late as 0.1 s; at 1 m/s^2 that is 0.1 m/s.
_LATE_S = 0.1
_SHORT_S = 0.3
# Time after which errors of such speeds are independent.
_INDEPENDENT_S = 0.5
_LEAST_DELAYED = 32
# Lengths of a mean of turns: 0.9 is a direction that strays by 26 deg, 0.98 by 12 deg.
_FOLLOWS, _STEADY = 0.9, 0.98
_AHEAD_DEG = 20.0
_MOVES = 0.5
_LEAST_EXTENT_M = 5.0


def speed_ratio(evidence: Evidence) -> tuple[float, float] | None:
    """Return the ratio of recorded speeds and differences of positions, and its limit.

    The differences are projected on the recorded velocities, which they follow whatever the
    heading, and the median over half seconds is taken: noise of the positions has no mean then,
    and jumps do not count. If they do not follow each other, only their sizes are compared. The
    limit is that of the logarithm of the ratio. None if nothing moves.
    """
    velocities = evidence.velocities
    if velocities is None or evidence.truth is None:
        return None
    steps, moved, body, world = velocities
    differences, *recorded = _horizontal(evidence.truth, 0.5, steps, moved, body, world)
    follows = [_mean_turn(differences, velocity) for velocity in recorded]
    best = recorded[int(np.argmax(np.abs(follows)))]
    turn = max(follows, key=abs)
    if abs(turn) > _STEADY:
        speed = (np.conj(best) * differences * turn).real / np.maximum(np.abs(best), 1e-12)
        speed, size, least = speed / abs(turn), np.abs(best), _LEAST_SPEED_SCALE
    else:
        speed, size, least = np.abs(differences), np.abs(recorded[0]), _SPEED_SCALE
    # Blocks are chosen by the recorded speed, which has less noise than the differences.
    fast = (size > 0.5 * float(np.quantile(size, 0.98))) & (size > 0.0)
    if fast.sum() < 4 or float(np.median(np.abs(differences[fast]))) < _SLOWEST:
        fast = (size > max(0.5 * float(np.quantile(size, 0.8)), _MOVES)) & (speed > 0.0)
    if fast.sum() < 4:
        return None
    ratios = speed[fast] / size[fast]
    ratio = float(np.median(ratios))
    if not ratio > 0.0:
        return None
    # A robust deviation, and the standard error of a median by it.
    deviation = 1.48 * float(np.median(np.abs(ratios / ratio - 1.0)))
    return 1.0 / ratio, least + SIGMAS * 1.25 * deviation / math.sqrt(len(ratios))


def match_unit(scale: float, units: Mapping[float, str], tolerance: float) -> tuple[float, str]:
    """Return factor and `: name` of the unit within a relative tolerance; else scale and ''."""
    pairs = ((unit, f': {name}') for unit, name in units.items())
    return next((pair for pair in pairs if abs(scale / pair[0] - 1.0) < tolerance), (scale, ''))


def plain(factor: float) -> float:
    """Return the factor of a usual unit if one is within 10 %, else the factor itself."""
    units = (0.001, 0.01, 0.3048, 1000.0)
    return next((unit for unit in units if abs(factor / unit - 1.0) < SCALE), factor)


def measure_speeds(evidence: Evidence) -> Iterator[Measure]:
    """Compare recorded speeds with differences of positions while moving.

    Below 15 % no unit is meant. Then fixes must confirm the positions before the speeds are
    corrected, because either may be wrong.
    """
    yield from _measure_missing_twist(evidence)
    ratio_and_limit, finding = speed_ratio(evidence), None
    if ratio_and_limit is None:
        return
    (ratio, limit), topic = ratio_and_limit, evidence.topic('truth')
    if abs(math.log(ratio)) > limit:
        near = min(limit, SCALE)
        factor, unit = match_unit(ratio, _SPEEDS, near)
        if evidence.track is None and not 0.05 < ratio < 20.0:
            back = plain(ratio)
            total = evidence.correct('truth', position_scale=back).position_scale
            finding = findings.TRUTH_SCALE(topic, scale=1.0 / back, set=total, speeds='')
        elif abs(math.log(ratio)) < _SPEED_SCALE and not _positions_are_confirmed(evidence):
            finding = findings.SPEED_OR_POSITIONS(topic, scale=ratio)
        else:
            total = evidence.correct('truth', speed_scale=1.0 / factor).speed_scale
            finding = findings.SPEED_SCALE(topic, scale=ratio, unit=unit, set=total)
    yield Measure(ratio, math.exp(limit), finding, 'truth', 'ratio')


def _measure_missing_twist(evidence: Evidence) -> Iterator[Measure]:
    """Report a truth that moves while all its recorded velocities are zero."""
    recorded, truth = evidence.recording.truth, evidence.truth
    if truth is None or recorded is None or recorded.linear_velocity.any() or len(truth) < 2:
        return
    steps = np.linalg.norm(np.diff(truth.position[:, :2], axis=0), axis=1)
    speed = float(np.sum(steps)) / float(np.sum(np.diff(truth.stamp_ns)) * 1e-9)
    extent = float(np.hypot(*np.ptp(truth.position[:, :2], axis=0)))
    finding = None
    if speed > _SLOWEST and extent > _LEAST_EXTENT_M:
        finding = findings.NO_TWIST(evidence.topic('truth'), speed=speed)
        evidence.correct('truth', twist='positions')
    yield Measure(speed, _SLOWEST, finding, 'truth twist', unit='m/s')


def _positions_are_confirmed(evidence: Evidence) -> bool:
    """Return whether the fixes agree with the scale of the positions within 1 %."""
    if evidence.track is None:
        return False
    fit = evidence.track.fitted
    return fit.explained > 0.9 and abs(abs(fit.gain) - 1.0) < 0.01 + SIGMAS * fit.deviation


def measure_twist_delay(evidence: Evidence) -> Iterator[Measure]:
    """Fit the delay of recorded speeds behind differences of positions; speeds need no axes."""
    found = evidence.velocities
    if found is None or evidence.truth is None:
        return
    truth, (steps, moved, body, _) = evidence.truth, found
    period = float(np.median(steps))
    (true,) = map(np.abs, _horizontal(truth, _SHORT_S, steps, moved))
    if period > _SHORT_S or len(true) < _LEAST_DELAYED or not body[:, :2].any():
        return
    time = seconds(truth.stamp_ns, truth.stamp_ns[0])
    middles = block_means(
        lambda end, step: (end - 0.5 * step)[:, None], time[1:], _SHORT_S, time[1:], steps
    )[:, 0]
    half = 0.5 * _SHORT_S
    distances = [np.append(0.0, np.cumsum(body[:, axis] * steps)) for axis in (0, 1)]

    def speed(delay: float) -> FloatArray:
        """Return recorded speeds at an earlier time, as means over the time of a block.

        Their noise does not depend on where in a step a block begins.
        """
        centre = np.clip(middles - delay, half, time[-1] - half)
        ends = [centre - half, centre + half]
        x, y = (
            np.diff([np.interp(end, time, distance) for end in ends], axis=0)[0]
            for distance in distances
        )
        return np.asarray(np.hypot(x, y))

    limit = max(_LATE_S, 0.5 * period)
    span = float(middles[-1] - middles[0])
    early = fit_delay(true, speed, span, _INDEPENDENT_S, tolerated=limit)
    if early.explained < 0.5:
        return
    delay, finding = 0.0 - early.seconds, None
    if abs(delay) > limit:
        finding = findings.TWIST_LATE(evidence.topic('truth'), delay=delay)
        evidence.correct('truth', twist='positions')
    yield Measure(delay, limit, finding, 'truth twist delay', 'either')


def measure_heading(evidence: Evidence) -> Iterator[Measure]:
    """Check that the truth has an orientation, and that it turns the twist along the track."""
    truth = evidence.truth
    if truth is None or 'orientation' in evidence.doubtful:
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
    velocities = evidence.velocities
    if velocities is None:
        return
    steps, differences, body, world = velocities
    fast = np.hypot(differences[:, 0], differences[:, 1]) > _SLOWEST
    if fast.sum() < 8:
        return
    # Short runs are compared in short blocks, whose noise is not taken for a twist that strays.
    for length in (_BLOCK_S, _SHORT_S):
        means = _horizontal(truth, length, steps, differences, body, world)
        # Noise of positions has no direction.
        moves = np.min(np.abs([means[0], means[-1]]), axis=0) > _SLOWEST
        moved, as_recorded, turned = (velocity[moves] for velocity in means)
        if len(moved) >= _LEAST_BLOCKS:
            break
    twist_errors = _twist_errors(fast, differences, body, world)
    if _is_of_the_world(fast, differences, twist_errors) and not (
        _is_in_world(evidence) or _is_of_the_body(moved, as_recorded, turned)
    ):
        in_body, in_world = twist_errors
        finding = findings.WORLD_TWIST(topic, world=in_world, body=in_body)
        yield Measure(None, None, finding, 'truth twist')
        evidence.correct('truth', twist='world')
        return
    if len(moved) < _LEAST_BLOCKS:
        return
    mean = _mean_turn(moved, turned)
    turn, spread = math.degrees(np.angle(mean)), circular_deviation(abs(mean))
    if abs(mean) < _FOLLOWS:
        if length == _BLOCK_S:
            yield _measure_strays(evidence, as_recorded, turned, moved, spread)
        return
    heading_finding: Finding | None = None
    limit = _HEADING_DEG[0] + SIGMAS * spread / math.sqrt(len(moved))
    if abs(turn) > limit:
        kind = findings.HEADING_LARGE if abs(turn) > _HEADING_DEG[1] else findings.HEADING
        total = evidence.correct('truth', heading=turn).heading
        heading_finding = kind(topic, turn=turn, set=total)
    yield Measure(turn, limit, heading_finding, 'truth heading', 'either')


def _twist_errors(
    fast: NDArray[np.bool_], differences: FloatArray, body: FloatArray, world: FloatArray
) -> tuple[float, float]:
    """Return the median errors of the twist in the axes of the body, and in those of the world.

    They are taken where both differ most: in turns, for a vehicle that mostly goes straight.
    Jumps do not change a median.
    """
    apart = np.linalg.norm(body - world, axis=1)
    chosen = fast & (apart >= np.quantile(apart[fast], 0.8))
    in_body, in_world = (_median_size(chosen, velocity, differences) for velocity in (world, body))
    return in_body, in_world


def _is_of_the_world(
    fast: NDArray[np.bool_], differences: FloatArray, errors: tuple[float, float]
) -> bool:
    in_body, in_world = errors
    size = _median_size(fast, differences)
    return in_world < 0.5 * in_body and in_body > 0.05 + 0.05 * size


def _horizontal(
    truth: OdometryArray, length: float, steps: FloatArray, *velocity: FloatArray
) -> list[FloatArray]:
    """Return the horizontal parts of velocities between stamps as complex means over blocks.

    Noise of positions is small in blocks of a length, s.
    """

    def weighted(steps: FloatArray, *velocities: FloatArray) -> FloatArray:
        weight = steps[:, None]
        return np.hstack([*(weight * velocity[:, :2] for velocity in velocities), weight])

    time = seconds(truth.stamp_ns[1:], truth.stamp_ns[0])
    means = block_means(weighted, time, length, steps, *velocity)
    means = means[:, :-1] / means[:, -1:]
    return [means[:, k] + 1j * means[:, k + 1] for k in range(0, means.shape[1], 2)]


def _mean_turn(first: FloatArray, second: FloatArray) -> complex:
    """Return the mean of exp(i turn) from some vectors to others, weighted by the size of those.

    1 if there are none.
    """
    size = float(np.abs(second).sum())
    ahead = np.conj(first) / np.maximum(np.abs(first), 1e-12)
    return complex(np.sum(ahead * second)) / size if size > 0.0 else 1.0 + 0.0j


def _is_in_world(evidence: Evidence) -> bool:
    known = evidence.recording.corrections.get('truth')
    return known is not None and known.twist == 'world'


def _is_of_the_body(moved: FloatArray, as_recorded: FloatArray, turned: FloatArray) -> bool:
    """Return whether a twist that follows the track may still be one of the body.

    Then the orientation is wrong. A vehicle that keeps its course does not distinguish both, but
    it moves along its x axis.
    """
    if abs(_mean_turn(moved, turned)) < _STEADY or abs(_direction(as_recorded)) < _STEADY:
        return False
    size = np.maximum(np.abs(as_recorded * turned), 1e-12)
    in_body = as_recorded * as_recorded * np.conj(turned) / size
    turns = [abs(np.angle(_direction(velocity))) for velocity in (as_recorded, in_body)]
    return bool(turns[0] < math.radians(_AHEAD_DEG) <= turns[1])


def _direction(vectors: FloatArray) -> complex:
    """Return the mean direction of vectors; its length is 1 if they have one direction."""
    return _mean_turn(np.ones_like(vectors), vectors)


def _measure_strays(
    evidence: Evidence,
    as_recorded: FloatArray,
    turned: FloatArray,
    moved: FloatArray,
    spread: float,
) -> Measure:
    """Report a twist that does not follow the positions when the orientation turns it.

    A twist that keeps one direction in the body is that of a vehicle with wheels. Then the
    orientation is wrong, and nothing corrects it.
    """
    what, remedy = 'twist', 'set `corrections: {truth: {twist: positions}}` in recording.yaml'
    size = np.maximum(np.abs(turned * as_recorded), 1e-12)
    turn = turned * np.conj(as_recorded) / size
    if _is_in_world(evidence) and abs(_mean_turn(moved, turned * turn)) > _FOLLOWS:
        remedy = 'remove `twist: world` from recording.yaml'
        evidence.doubtful.add('orientation')
    elif abs(_direction(as_recorded)) > _FOLLOWS:
        what, remedy = 'orientation', 'record a truth with the orientation of the body'
        evidence.doubtful.add('orientation')
    else:
        evidence.correct('truth', twist='positions')
    finding = findings.TWIST_STRAYS(evidence.topic('truth'), what=what, spread=spread, mend=remedy)
    return Measure(spread, circular_deviation(_FOLLOWS), finding, 'truth twist')


def _course_range(truth: OdometryArray) -> float:
    """Return the largest change of the direction of travel, deg, above 0.5 m/s."""
    moved = plane(np.diff(truth.position, axis=0))
    course = moved[np.abs(moved) > 0.5e-9 * np.diff(truth.stamp_ns)]
    if not len(course):
        return 0.0
    return math.degrees(float(np.abs(np.angle(course * np.conj(course[0]))).max()))


def _median_size(chosen: NDArray[np.bool_], *vectors: FloatArray) -> float:
    """Return the median length of chosen vectors, or of the differences of two."""
    difference = functools.reduce(np.subtract, (rows[chosen] for rows in vectors))
    return float(np.median(np.linalg.norm(difference, axis=1)))
