# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Checks of the velocities and the orientation of the truth against its positions.

Each check corrects what it finds before the next one: positions, speeds, then orientation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from sim2real_eval.common.findings import Finding
from sim_sensors.core import rotations
from sim_sensors.core.blocks import block_means, seconds
from sim_sensors.core.measurements import FloatArray, OdometryArray
from sim_sensors.motion.truth_intervals import (
    ALIGNED,
    BLOCK_S,
    MIN_BLOCKS,
    MIN_MOVING_SPEED,
    SHORT_BLOCK_S,
    SIGMAS,
    SPEED_SCALE,
    mean_direction,
    mean_turn,
)
from . import findings
from .arrays import plane
from .delays import fit_delay
from .evidence import Evidence, circular_deviation
from .outcome import Measure

SCALE = 0.1
"""Relative error of a length beyond which another unit is meant."""
_HEADING_DEG = (5.0, 15.0)
_SPEEDS = {3.6: 'km/h', 2.236936: 'mph', 1.943844: 'knots', 1000.0: 'mm/s', 3.28084: 'feet/s'}
# A filter of the speeds is as late as 0.1 s; at 1 m/s^2 that is 0.1 m/s.
_LATE_S = 0.1
# Time after which errors of such speeds are independent.
_INDEPENDENT_S = 0.5
_MIN_DELAYED = 32
_MIN_EXTENT_M = 5.0


def speed_ratio(evidence: Evidence) -> tuple[float, float] | None:
    """Return `TruthIntervals.speed_ratio` of the truth; None without a twist."""
    velocities = evidence.velocities
    return None if velocities is None else velocities.speed_ratio()


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
        elif abs(math.log(ratio)) < SPEED_SCALE and not _positions_are_confirmed(evidence):
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
    if speed > MIN_MOVING_SPEED and extent > _MIN_EXTENT_M:
        finding = findings.NO_TWIST(evidence.topic('truth'), speed=speed)
        evidence.correct('truth', twist='positions')
    yield Measure(speed, MIN_MOVING_SPEED, finding, 'truth twist', unit='m/s')


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
    truth, steps, body = evidence.truth, found.steps, found.body
    period = float(np.median(steps))
    (true,) = map(np.abs, found.horizontal(SHORT_BLOCK_S, found.moved))
    if period > SHORT_BLOCK_S or len(true) < _MIN_DELAYED or not body[:, :2].any():
        return
    time = seconds(truth.stamp_ns, truth.stamp_ns[0])
    middles = block_means(
        lambda end, step: (end - 0.5 * step)[:, None], time[1:], SHORT_BLOCK_S, time[1:], steps
    )[:, 0]
    half = 0.5 * SHORT_BLOCK_S
    distances = [np.append(0.0, np.cumsum(body[:, axis] * steps)) for axis in (0, 1)]

    def speed(delay: FloatArray) -> FloatArray:
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
    if velocities.is_fast.sum() < 8:
        return
    blocks = velocities.moving_blocks()
    length, moved, as_recorded, turned = blocks
    twist_errors = velocities.world_twist(blocks)
    if twist_errors is not None and not _is_in_world(evidence):
        in_body, in_world = twist_errors
        finding = findings.WORLD_TWIST(topic, world=in_world, body=in_body)
        yield Measure(None, None, finding, 'truth twist')
        evidence.correct('truth', twist='world')
        return
    if len(moved) < MIN_BLOCKS:
        return
    mean = mean_turn(moved, turned)
    turn, spread = math.degrees(np.angle(mean)), circular_deviation(abs(mean))
    if abs(mean) < ALIGNED:
        if length == BLOCK_S:
            yield _measure_strays(evidence, as_recorded, turned, moved, spread)
        return
    heading_finding: Finding | None = None
    limit = _HEADING_DEG[0] + SIGMAS * spread / math.sqrt(len(moved))
    if abs(turn) > limit:
        kind = findings.HEADING_LARGE if abs(turn) > _HEADING_DEG[1] else findings.HEADING
        total = evidence.correct('truth', heading=turn).heading
        heading_finding = kind(topic, turn=turn, set=total)
    yield Measure(turn, limit, heading_finding, 'truth heading', 'either')


def _is_in_world(evidence: Evidence) -> bool:
    known = evidence.recording.corrections.get('truth')
    return known is not None and known.twist == 'world'


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
    if _is_in_world(evidence) and abs(mean_turn(moved, turned * turn)) > ALIGNED:
        remedy = 'remove `twist: world` from recording.yaml'
        evidence.doubtful.add('orientation')
    elif abs(mean_direction(as_recorded)) > ALIGNED:
        what, remedy = 'orientation', 'record a truth with the orientation of the body'
        evidence.doubtful.add('orientation')
    else:
        evidence.correct('truth', twist='positions')
    finding = findings.TWIST_STRAYS(evidence.topic('truth'), what=what, spread=spread, mend=remedy)
    return Measure(spread, circular_deviation(ALIGNED), finding, 'truth twist')


def _course_range(truth: OdometryArray) -> float:
    """Return the largest change of the direction of travel, deg, above 0.5 m/s."""
    moved = plane(np.diff(truth.position, axis=0))
    course = moved[np.abs(moved) > 0.5e-9 * np.diff(truth.stamp_ns)]
    if not len(course):
        return 0.0
    return math.degrees(float(np.abs(np.angle(course * np.conj(course[0]))).max()))
