# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Checks of the messages alone: topics, stamps, rates, gaps and covariances."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.recording import checks as reading
from sim2real_eval.recording.recording import IDEAL_ROLES
from sim2real_eval.recording.truth import select_valid_fixes
from sim_sensors.core import rotations
from sim_sensors.core.blocks import by_blocks
from sim_sensors.core.measurements import FixArray, FloatArray, ImuArray, MessageArray, is_absent
from sim_sensors.motion.ideal import InertialMotion, SurveyedMotion
from . import findings
from .evidence import MIN_FIXES, MIN_IMU_MESSAGES, Evidence, intervals
from .outcome import Measure

_NEEDED = ('imu', 'gps', 'truth')
_NOISE_FREE = ('imu', 'gps', 'mag')
# A vehicle turns and brakes at up to about 1 Hz, and a cubic through samples needs four per
# period; vibration and the steps of a filter at 30 Hz need an IMU at 20 Hz. Receivers may be slow.
# A noise-free IMU contains vibration, which is interpolated below the rate of the simulated one.
_RATES = {
    'imu': 20.0, 'gps': 0.5, 'truth': 2.0, 'ideal_imu': 95.0, 'ideal_gps': 0.5, 'ideal_mag': 10.0
}  # fmt: skip
# An acceleration of 1 m/s^2 that is not measured adds 0.25 and 1 m/s to the error of the speed in
# a gap of the IMU; an IMU alone holds a position to metres for some 10 s; a truth is interpolated.
# Beyond `longest_gap` a noise-free sensor is replaced by what odometry gives.
_GAPS = {
    'imu': (0.25, 1.0), 'gps': (3.0, 10.0), 'truth': (1.0, 3.0),
    'ideal_imu': (InertialMotion.longest_gap, math.inf),
    'ideal_gps': (SurveyedMotion.longest_gap, math.inf),
    'ideal_mag': (1.0, math.inf),
}  # fmt: skip
_DURATION_S = 10.0
_SHARE = 0.01
# A lost sample is a step of 1.5 intervals or more. 2 % of lost samples are a driver that drops.
_LOST = 0.02
_UNEVEN = 0.1
_DRIVER = (
    reading.STAMP_ZERO, reading.BAD_STAMP, reading.CLOCKS_DRIFT, reading.STAMP_NANOSEC,
)  # fmt: skip
_ORDER = (reading.STAMP_AHEAD, reading.STAMP_ORDER, reading.STAMP_REPEATED)
_VALUES = (
    reading.BAD_VALUE, reading.EXCHANGED, reading.NORM,
    reading.NO_ALTITUDE, reading.ALTITUDE_GAPS, reading.FIELD_LEFT_OUT,
    reading.COVARIANCE_FILLED, reading.COVARIANCE_ASSUMED, reading.NOTHING_MEASURED,
)  # fmt: skip
COVARIANCES = {
    'imu': (
        ('orientation', 'orientation_std'),
        ('linear_acceleration', 'acceleration_std'),
        ('angular_velocity', 'rate_std'),
    ),
    'gps': (('position', 'std'),),
}
"""Quantities with a covariance by role, and their keys in `corrections` of recording.yaml."""
DEVIATION_UNITS = {
    'std': 'm', 'orientation_std': 'rad', 'acceleration_std': 'm/s^2', 'rate_std': 'rad/s',
}  # fmt: skip
"""Units of these keys."""


def _roles(evidence: Evidence) -> Iterator[tuple[str, str, MessageArray]]:
    for kind in _NOISE_FREE if evidence.noise_free else _NEEDED:
        topic = evidence.topic(kind)
        if topic:
            yield evidence.role(kind), topic, evidence.recording.messages[topic]


def measure_topics(evidence: Evidence) -> Iterator[Measure]:
    """Check that each role has a topic; a noise-free sensor replaces the real one."""
    recording = evidence.recording
    ideal = {recording.roles[role] for role in IDEAL_ROLES.values() if role in recording.roles}
    topics = [topic for topic in recording.messages if topic not in ideal]
    topics += [f'{note.subject} ({reason})' for note, reason in recording.left_out()]
    for role in _NEEDED:
        is_there = role in recording.roles or IDEAL_ROLES.get(role) in recording.roles
        poses = [] if is_there or role != 'truth' else recording.possible_truths()
        listed = ', '.join([*topics, *(topic for topic in poses if topic not in topics)])
        lost = [
            findings.UNUSABLE(note.subject, problem=reason, role=role)
            for note, reason in recording.left_out()
            if note.words.get('role') == role
        ]
        missing = findings.MISSING(role=role, topics=listed or 'none')
        yield Measure(None, None, None if is_there else (*lost, missing)[0], role)


def measure_counts(evidence: Evidence) -> Iterator[Measure]:
    """Check that there are enough messages to compare sensors and truth."""
    for role, topic, array in _roles(evidence):
        count = len(select_valid_fixes(array)) if isinstance(array, FixArray) else len(array)
        least = MIN_IMU_MESSAGES if isinstance(array, ImuArray) else MIN_FIXES
        few = findings.FEW_MESSAGES(topic, count=count, role=role, least=least)
        yield Measure(count, least, few if count < least else None, role, 'least')


def measure_duration(evidence: Evidence) -> Iterator[Measure]:
    """Check the time that all roles have in common; a filter converges within some 5 s."""
    spans = [
        (array.stamp_ns[0], array.stamp_ns[-1]) for _, _, array in _roles(evidence) if len(array)
    ]
    if spans:
        starts, ends = zip(*spans, strict=True)
        common = (min(ends) - max(starts)) * 1e-9
        short = findings.SHORT(duration=common) if common < _DURATION_S else None
        yield Measure(common, _DURATION_S, short, scale='least')


def measure_rates(evidence: Evidence) -> Iterator[Measure]:
    """Check that the median rate of each role is enough for the motion of a vehicle."""
    for role, topic, array in _roles(evidence):
        steps = np.diff(array.stamp_ns)
        steps = steps[steps > 0]
        if not len(steps):
            continue
        rate = 1e9 / float(np.median(steps))
        slow = findings.SLOW(topic, rate=rate, role=role) if rate < _RATES[role] else None
        evidence.doubtful |= {f'slow {role}'} if slow else set()
        yield Measure(rate, _RATES[role], slow, role, 'least')


def measure_gaps(evidence: Evidence) -> Iterator[Measure]:
    """Check the longest time without a message of each role."""
    for role, topic, array in _roles(evidence):
        steps = intervals(array)
        if not len(steps):
            continue
        longest = int(np.argmax(steps))
        gap = float(steps[longest])
        small, large = _GAPS[role]
        finding = None
        if gap > small and gap > 5.0 * float(np.median(steps)):
            after = (array.stamp_ns[longest] - array.stamp_ns[0]) * 1e-9
            if not evidence.noise_free:
                kind = findings.GAP_LARGE if gap > large else findings.GAP
                finding = kind(topic, gap=gap, after=after)
            else:
                finding = findings.NOISE_FREE_GAP(topic, gap=gap, after=after, role=role)
        yield Measure(gap, small, finding, role)


def measure_lost(evidence: Evidence) -> Iterator[Measure]:
    """Check the share of samples of an even sensor that are missing, without the longest gap."""
    notes = evidence.recording.notes
    for role, topic, array in _roles(evidence):
        steps = intervals(array)
        is_reordered = any(note.subject == topic and note.kind in _ORDER for note in notes)
        if role != 'imu' or len(steps) < MIN_IMU_MESSAGES or is_reordered:
            continue
        period = float(np.median(steps))
        is_uneven = float(np.mean(steps < 0.5 * np.mean(steps))) > _UNEVEN
        if is_uneven or period <= 0.0:
            continue
        missing = np.rint(steps / period) - 1.0
        missing[int(np.argmax(steps))] = 0.0
        # A late stamp makes a long step before a short one, and nothing is lost.
        count = max(float(missing.sum()), 0.0)
        share = count / (len(array) + count)
        finding = findings.LOST(topic, share=share, count=round(count)) if share > _LOST else None
        yield Measure(share, _LOST, finding, role)


def _measure_repairs(
    evidence: Evidence, kinds: tuple[object, ...], limit: float
) -> Iterator[Measure]:
    """Yield the share of the messages of each topic that were repaired when it was read."""
    notes = evidence.recording.notes
    for role, topic, array in _roles(evidence):
        of_topic = [note for note in notes if note.subject == topic and note.kind in kinds]
        shares = [float(np.max(note.numbers['count'])) / max(len(array), 1) for note in of_topic]
        share = max(shares, default=0.0)
        finding = of_topic[shares.index(share)] if share > limit else None
        yield Measure(share, limit, finding, role)


def measure_order(evidence: Evidence) -> Iterator[Measure]:
    """Check messages that go back in time or repeat a stamp; up to 1 % is usual with UDP."""
    yield from _measure_repairs(evidence, _ORDER, _SHARE)


def measure_clocks(evidence: Evidence) -> Iterator[Measure]:
    """Check stamps that are zero, contradict the time of arrival, or are that time.

    A sensor samples evenly. Stamps of arrival come in bursts, in which they follow each other in
    less than a fifth of the mean interval.
    """
    yield from _measure_repairs(evidence, _DRIVER, 0.0)
    for role, topic, array in _roles(evidence):
        steps = np.diff(array.stamp_ns)
        if role == 'truth' or len(steps) < 16:
            continue
        burst = 0.2 * float(np.mean(steps))
        share = float(np.mean((steps < burst) & (steps > 0)))
        finding = findings.UNEVEN(topic, share=share) if share > _UNEVEN else None
        yield Measure(share, _UNEVEN, finding, f'{role} intervals')


def measure_values(evidence: Evidence) -> Iterator[Measure]:
    """Check values that are no measurements: NaN, impossible coordinates, no rotations."""
    yield from _measure_repairs(evidence, _VALUES, 0.0)


def measure_fix_kinds(evidence: Evidence) -> Iterator[Measure]:
    """Check the share of messages without a fix, and whether all fixes are of one kind."""
    gps, recording = evidence.recording.gps, evidence.recording
    if gps is None:
        return
    topic = recording.roles['gps']
    lost = [
        note for note in recording.notes if note.subject == topic and note.kind is reading.NO_FIX
    ]
    count = sum(float(np.max(note.numbers['count'])) for note in lost) + int((~gps.has_fix).sum())
    share = count / max(count + int(gps.has_fix.sum()), 1)
    kind = findings.NO_FIX_LARGE if share > 0.5 else findings.NO_FIX
    yield Measure(share, 0.05, kind(topic, share=share) if share > 0.05 else None, 'gps lost')
    status, counts = np.unique(gps.status[gps.has_fix], return_counts=True)
    if len(counts):
        usual = float(counts.max() / counts.sum())
        common = int(status[np.argmax(counts)])
        mixed = findings.FIX_KINDS(topic, share=usual, status=common) if usual < 0.9 else None
        yield Measure(usual, 0.9, mixed, 'gps kind', 'least')


def measure_covariances(evidence: Evidence) -> Iterator[Measure]:
    """Check that covariances are neither zero nor negative; -1 states an absent quantity."""
    for role, topic, array in _roles(evidence):
        for quantity, key in COVARIANCES.get(role, ()):
            covariance = getattr(array, f'{quantity}_covariance')
            bad = by_blocks(_has_no_variance, covariance)
            stated = np.ones(len(array), np.bool_)
            if isinstance(array, ImuArray):
                stated = ~np.asarray(is_absent(covariance))
            elif isinstance(array, FixArray):
                stated = array.has_fix
            share = float(np.sum(bad & stated)) / max(int(stated.sum()), 1)
            name, finding = quantity.replace('_', ' '), None
            if share > 0.0 and quantity == 'orientation':
                if not _is_exact(evidence):
                    finding = findings.NO_ORIENTATION_COVARIANCE(topic, share=share)
            elif share > 0.0:
                finding = findings.NO_COVARIANCE(
                    topic,
                    share=share,
                    quantity=name,
                    role=role,
                    key=key,
                    unit=DEVIATION_UNITS[key],
                )
            yield Measure(share, 0.0, finding, f'{role} {name}')


def _has_no_variance(covariance: FloatArray) -> NDArray[np.bool_]:
    """Return whether a variance of each covariance, (n, 3, 3), is zero or negative."""
    return np.asarray((np.diagonal(covariance, axis1=1, axis2=2) <= 0.0).any(axis=1))


def _is_exact(evidence: Evidence) -> bool:
    """Return whether the published orientation is that of the truth, as simulators publish it."""
    imu, ideal = evidence.imu, evidence.ideal
    if imu is None or ideal is None:
        return False
    first = slice(0, 1000)
    errors = rotations.rotation_between(ideal.orientation[first], imu.orientation[first])
    return float(np.abs(errors).max()) < math.radians(0.01)
