# SPDX-License-Identifier: Apache-2.0
"""Checks of the messages alone: stamps, rates, gaps, values that stand still, covariances."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.recording import checks as reading
from sim2real_eval.recording.recording import IDEAL_ROLES
from sim2real_eval.recording.truth import select_valid_fixes
from sim_sensors.core.blocks import blocks
from sim_sensors.core.measurements import FixArray, FloatArray, ImuArray, IntArray, MessageArray
from sim_sensors.motion.ideal import InertialMotion, SurveyedMotion
from sim_sensors.world.geodesy import LocalFrame
from . import findings
from .evidence import LEAST_FIXES, LEAST_IMU, Evidence, block_means, intervals
from .outcome import Measure

_NEEDED = ('imu', 'gps', 'truth')
_NOISE_FREE = ('imu', 'gps', 'mag')
# A vehicle turns and brakes at up to about 1 Hz, of which a cubic through samples needs four;
# vibration and the ticks of a filter at 30 Hz ask 20 Hz of an IMU. A receiver may be slow.
# A noise-free IMU is there for vibration: below the rate of the simulated one it is interpolated.
# A field turns with the body.
_RATES = {
    'imu': 20.0, 'gps': 0.5, 'truth': 2.0, 'ideal_imu': 95.0, 'ideal_gps': 0.5, 'ideal_mag': 10.0
}  # fmt: skip
# At 1 m/s^2 that is not measured the error of speed reaches 0.25 and 1 m/s in a gap of the IMU;
# an IMU alone holds a position to metres for some 10 s; a truth is interpolated.
# Beyond `longest_gap` a noise-free sensor is replaced by what odometry gives.
_GAPS = {
    'imu': (0.25, 1.0), 'gps': (3.0, 10.0), 'truth': (1.0, 3.0),
    'ideal_imu': (InertialMotion.longest_gap, math.inf),
    'ideal_gps': (SurveyedMotion.longest_gap, math.inf),
    'ideal_mag': (1.0, math.inf),
}  # fmt: skip
_DURATION_S = 10.0
_SHARE = 0.01
_UNEVEN = 0.1
_CLOCK_S = 3.0
# Of drivers that start and end one after the other.
_SAME_S = 1.0
_FROZEN_S = 0.5
_FROZEN_TRACK_S = 2.0
_START_SPEED = 0.5
_MOVED_M = 5.0
_FAR = 4.0
_TURNING = 0.1
_DRIVER = (
    reading.STAMP_ZERO, reading.BAD_STAMP, reading.CLOCKS_DRIFT, reading.STAMP_NANOSEC,
)  # fmt: skip
_ORDER = (reading.STAMP_AHEAD, reading.STAMP_ORDER, reading.STAMP_REPEATED)
_VALUES = (
    reading.BAD_VALUE, reading.EXCHANGED, reading.NORM,
    reading.NO_ALTITUDE, reading.ALTITUDE_GAPS, reading.FIELD_LEFT_OUT,
    reading.COVARIANCE_FILLED, reading.COVARIANCE_ASSUMED, reading.NOTHING_MEASURED,
)  # fmt: skip


def _roles(evidence: Evidence) -> Iterator[tuple[str, str, MessageArray]]:
    for kind in _NOISE_FREE if evidence.noise_free else _NEEDED:
        topic = evidence.topic(kind)
        if topic:
            yield evidence.role(kind), topic, evidence.recording.messages[topic]


def topics(evidence: Evidence) -> Iterator[Measure]:
    """Each role has its topic; to simulate a sensor, the noise-free one will do."""
    recording = evidence.recording
    ideal = {recording.roles[role] for role in IDEAL_ROLES.values() if role in recording.roles}
    found = [topic for topic in recording.messages if topic not in ideal]
    found += [f'{note.subject} ({reason})' for note, reason in recording.left_out()]
    for role in _NEEDED:
        is_there = role in recording.roles or IDEAL_ROLES.get(role) in recording.roles
        poses = [] if is_there or role != 'truth' else recording.possible_truths()
        there = ', '.join([*found, *(one for one in poses if one not in found)]) or 'none'
        missing = None if is_there else findings.MISSING(role=role, topics=there)
        yield Measure(None, None, missing, role)


def counts(evidence: Evidence) -> Iterator[Measure]:
    """There are enough messages to compare sensors and truth."""
    for role, topic, array in _roles(evidence):
        count = len(select_valid_fixes(array)) if isinstance(array, FixArray) else len(array)
        least = LEAST_IMU if isinstance(array, ImuArray) else LEAST_FIXES
        few = findings.FEW_MESSAGES(topic, count=count, role=role, least=least)
        yield Measure(count, least, few if count < least else None, role, 'least')


def duration(evidence: Evidence) -> Iterator[Measure]:
    """The time that all roles have in common; a filter converges within some 5 s."""
    spans = [
        (array.stamp_ns[0], array.stamp_ns[-1]) for _, _, array in _roles(evidence) if len(array)
    ]
    if spans:
        starts, ends = zip(*spans, strict=True)
        common = (min(ends) - max(starts)) * 1e-9
        short = findings.SHORT(duration=common) if common < _DURATION_S else None
        yield Measure(common, _DURATION_S, short, scale='least')


def rates(evidence: Evidence) -> Iterator[Measure]:
    """The median rate of each role is enough for the motion of a vehicle."""
    for role, topic, array in _roles(evidence):
        steps = np.diff(array.stamp_ns)
        steps = steps[steps > 0]
        if not len(steps):
            continue
        rate = 1e9 / float(np.median(steps))
        slow = findings.SLOW(topic, rate=rate, role=role) if rate < _RATES[role] else None
        evidence.doubtful |= {f'slow {role}'} if slow else set()
        yield Measure(rate, _RATES[role], slow, role, 'least')


def gaps(evidence: Evidence) -> Iterator[Measure]:
    """The longest time without a message of each role."""
    for role, topic, array in _roles(evidence):
        steps = intervals(array)
        if not len(steps):
            continue
        longest = int(np.argmax(steps))
        gap = float(steps[longest])
        small, large = _GAPS[role]
        found = None
        if gap > small and gap > 5.0 * float(np.median(steps)):
            after = (array.stamp_ns[longest] - array.stamp_ns[0]) * 1e-9
            if not evidence.noise_free:
                kind = findings.GAP_LARGE if gap > large else findings.GAP
                found = kind(topic, gap=gap, after=after)
            else:
                found = findings.NOISE_FREE_GAP(topic, gap=gap, after=after, role=role)
        yield Measure(gap, small, found, role)


def _repairs(evidence: Evidence, kinds: tuple[object, ...], limit: float) -> Iterator[Measure]:
    """Say what share of a topic was repaired when it was read."""
    notes = evidence.recording.notes
    for role, topic, array in _roles(evidence):
        found = [one for one in notes if one.subject == topic and one.kind in kinds]
        counts = [float(np.max(one.numbers['count'])) / max(len(array), 1) for one in found]
        share = max(counts, default=0.0)
        told = found[counts.index(share)] if share > limit else None
        yield Measure(share, limit, told, role)


def order(evidence: Evidence) -> Iterator[Measure]:
    """Messages that go back in time or repeat a stamp; up to 1 % is the rule with UDP."""
    yield from _repairs(evidence, _ORDER, _SHARE)


def clocks(evidence: Evidence) -> Iterator[Measure]:
    """Stamps that are zero or contradict the time of arrival, and those made at arrival.

    A sensor samples evenly. Stamps of arrival come in bursts, within which they follow at once:
    in less than a fifth of the mean interval.
    """
    yield from _repairs(evidence, _DRIVER, 0.0)
    yield from _other_clocks(evidence)
    for role, topic, array in _roles(evidence):
        steps = np.diff(array.stamp_ns)
        if role == 'truth' or len(steps) < 16:
            continue
        burst = 0.2 * float(np.mean(steps))
        share = float(np.mean((steps < burst) & (steps > 0)))
        told = findings.UNEVEN(topic, share=share) if share > _UNEVEN else None
        yield Measure(share, _UNEVEN, told, f'{role} intervals')


def _other_clocks(evidence: Evidence) -> Iterator[Measure]:
    """Yield which sensors begin and end as long before or after the truth: recorded at one time.

    A correlation finds delays of a tenth of the run; of more the wrong one may fit by chance.
    """
    truth = evidence.truth
    for kind in ('gps', 'imu'):
        array = evidence.recording.messages.get(evidence.topic(kind))
        if truth is None or array is None or len(array) < 2:
            continue
        begin, end = (array.stamp_ns[[0, -1]] - truth.stamp_ns[[0, -1]]) * 1e-9
        shift = round(0.5 * float(begin + end), 3)
        if abs(shift) > _CLOCK_S and abs(begin - end) < _SAME_S:
            total = evidence.correct(kind, delay=shift)
            role = evidence.role(kind)
            told = findings.OTHER_CLOCK(
                evidence.topic(kind), role=role, shift=shift, set=total.delay
            )
            yield Measure(shift, _CLOCK_S, told, f'{role} clock', 'either')


def values(evidence: Evidence) -> Iterator[Measure]:
    """Values that are no measurements: NaN, impossible coordinates, no rotations."""
    yield from _repairs(evidence, _VALUES, 0.0)


def frozen(evidence: Evidence) -> Iterator[Measure]:
    """The longest time in which all values of a sensor are equal to the bit.

    Six axes with noise of one step of their resolution repeat by chance in less than one of 100
    pairs, so half a second of it has another cause. Fixes must stand for 2 s and 5 of them while
    the truth moves by 5 m, positions of the truth for 2 s while its twist or fixes say that it
    moves, its whole pose while rates say that it turns. A sensor that is exact stands still with
    the vehicle, which counts as no time at all.
    """
    imu, fixes, truth = evidence.imu, evidence.fixes, evidence.truth
    if truth is not None:
        time, at = _longest_equal(truth, truth.position)
        speed = float(np.median(np.linalg.norm(truth.linear_velocity[at], axis=1)))
        moves = speed > _START_SPEED or _travels(evidence, *truth.stamp_ns[at][[0, -1]])
        # What turns in place has one position, so rates say nothing about that alone.
        posed, at = _longest_equal(truth, truth.position, truth.orientation)
        turns = _turns(evidence, *truth.stamp_ns[at][[0, -1]])
        longest = max(time if moves else 0.0, posed if turns else 0.0)
        # Whatever is held against it meanwhile is a symptom, and so is the step at its end.
        symptoms = {'steps', 'orientation', 'range', 'slow truth'}
        yield _frozen(evidence, 'truth', longest, _FROZEN_TRACK_S, symptoms)
    if imu is not None:
        time, at = _longest_equal(imu, imu.angular_velocity, imu.linear_acceleration)
        ideal = evidence.ideal
        moves = True
        if ideal is not None:
            rate, force = ideal.rate[at], ideal.force[at]
            moves = bool(len(rate)) and float(np.ptp(rate, axis=0).max()) > 0.01
            moves = moves or (bool(len(force)) and float(np.ptp(force, axis=0).max()) > 0.1)
        yield _frozen(evidence, 'imu', time if moves else 0.0, _FROZEN_S, {'range'})
    if fixes is not None and evidence.track is not None:
        time, at = _longest_equal(fixes, fixes.latitude[:, None], fixes.longitude[:, None])
        track = evidence.track
        moved = track.truth(track.stamps[at])
        moves = len(moved) > 5 and float(np.abs(moved[-1] - moved[0])) > 5.0
        yield _frozen(evidence, 'gps', time if moves else 0.0, _FROZEN_TRACK_S, {'fixes'})


def _frozen(
    evidence: Evidence, role: str, time: float, limit: float, symptoms: set[str]
) -> Measure:
    told = None
    if time > limit:
        told = findings.FROZEN(evidence.topic(role), time=time)
        evidence.doubtful |= symptoms
    return Measure(time, limit, told, role)


def _travels(evidence: Evidence, first_ns: int, last_ns: int) -> bool:
    """Return whether fixes say that the vehicle moves: means of four parts of the time are 5 m
    apart and farther than stated.
    """
    fixes = evidence.fixes
    if fixes is None:
        return False
    some = fixes.take(_within(first_ns, last_ns, fixes.stamp_ns))
    if len(some) < 8:
        return False
    frame = LocalFrame(float(some.latitude[0]), float(some.longitude[0]), 0.0)
    places = frame.to_enu(some.latitude, some.longitude, np.zeros(len(some)))[:, :2]
    parts = np.stack([one.mean(axis=0) for one in np.array_split(places, 4)])
    stated = np.sqrt(some.position_covariance[:, (0, 1), (0, 1)].mean())
    return float(np.ptp(parts, axis=0).max()) > max(_MOVED_M, float(_FAR * stated))


def _turns(evidence: Evidence, first_ns: int, last_ns: int) -> bool:
    """Return whether rates say that the vehicle turns: means of a second vary by 0.1 rad/s."""
    imu = evidence.imu
    if imu is None:
        return False
    inside = _within(first_ns, last_ns, imu.stamp_ns)
    if inside.sum() < 8:
        return False
    time, rate = evidence.imu_time[inside], imu.angular_velocity[inside]
    return float(block_means(np.asarray, time, 1.0, rate).std(axis=0).max()) > _TURNING


def _within(first_ns: int, last_ns: int, stamps: IntArray) -> NDArray[np.bool_]:
    return np.asarray((stamps >= first_ns) & (stamps <= last_ns))


def _longest_equal(array: MessageArray, *values: FloatArray) -> tuple[float, slice]:
    """Return the longest time, s, over which rows of values (n, k) are equal, and where."""
    around = np.zeros(len(array) + 1, bool)
    for part in blocks(len(array) - 1):
        changes = [np.diff(rows[part.start : part.stop + 1], axis=0) != 0.0 for rows in values]
        around[part.start + 1 : part.stop + 1] = ~np.hstack(changes).any(axis=1)
    firsts, lasts = np.flatnonzero(around[1:] != around[:-1]).reshape(-1, 2).T
    lengths = (array.stamp_ns[lasts] - array.stamp_ns[firsts]) * 1e-9
    if not lengths.any():
        return 0.0, slice(0, 1)
    longest = int(np.argmax(lengths))
    return float(lengths[longest]), slice(int(firsts[longest]), int(lasts[longest]) + 1)


def saturation(evidence: Evidence) -> Iterator[Measure]:
    """Samples that stand at the largest or least value of their axis, three or more in a row.

    Noise and resolution make that impossible within the range. The value must also be three
    standard deviations off the median, which resting axes and steady turns are not.
    """
    imu = evidence.imu
    if imu is None:
        return
    most, told = 0, None
    topic = evidence.topic('imu')
    for field in ('angular_velocity', 'linear_acceleration'):
        for axis in range(3):
            column = np.ascontiguousarray(getattr(imu, field)[:, axis])
            away = 3.0 * float(np.std(column))
            for end in (column.max(), column.min()):
                at = column == end
                count = int((at[2:] & at[1:-1] & at[:-2]).sum())
                if count > most and abs(end - float(np.median(column))) > away > 0.0:
                    most = count
                    about = field.replace('_', ' ')
                    told = findings.SATURATED(topic, count=int(at.sum()), field=about, limit=end)
    evidence.doubtful |= {'range'} if most >= 3 else set()
    yield Measure(float(most), 3.0, told if most >= 3 else None, 'imu')


def fix_kinds(evidence: Evidence) -> Iterator[Measure]:
    """The share of messages without a fix, and whether all fixes are of one kind."""
    gps, recording = evidence.recording.gps, evidence.recording
    if gps is None:
        return
    topic = recording.roles['gps']
    lost = [one for one in recording.notes if one.subject == topic and one.kind is reading.NO_FIX]
    count = sum(float(np.max(one.numbers['count'])) for one in lost) + int((~gps.has_fix).sum())
    share = count / max(count + int(gps.has_fix.sum()), 1)
    kind = findings.NO_FIX_LARGE if share > 0.5 else findings.NO_FIX
    yield Measure(share, 0.05, kind(topic, share=share) if share > 0.05 else None, 'gps lost')
    status, counts = np.unique(gps.status[gps.has_fix], return_counts=True)
    if len(counts):
        usual = float(counts.max() / counts.sum())
        common = int(status[np.argmax(counts)])
        mixed = findings.FIX_KINDS(topic, share=usual, status=common) if usual < 0.9 else None
        yield Measure(usual, 0.9, mixed, 'gps kind', 'least')


COVARIANCES = {
    'imu': (('linear_acceleration', 'acceleration_std'), ('angular_velocity', 'rate_std')),
    'gps': (('position', 'std'),),
}
"""Quantities with a covariance by role, and their keys in `corrections` of recording.yaml."""


def covariances(evidence: Evidence) -> Iterator[Measure]:
    """Covariances are there: neither zero nor negative; -1 says that a quantity is absent."""
    for role, topic, array in _roles(evidence):
        for quantity, key in COVARIANCES.get(role, ()):
            covariance = getattr(array, f'{quantity}_covariance')
            if isinstance(array, FixArray):
                covariance = covariance[array.has_fix]
            diagonal = np.diagonal(covariance, axis1=1, axis2=2)
            absent = (diagonal[:, 0] == -1.0) & isinstance(array, ImuArray)
            bad = (diagonal <= 0.0).any(axis=1) & ~absent
            share = float(bad.mean()) if len(bad) else 0.0
            words = {'quantity': quantity.replace('_', ' '), 'role': role, 'key': key}
            told = findings.NO_COVARIANCE(topic, share=share, **words) if share > 0.0 else None
            yield Measure(share, 0.0, told, f'{role} {words["quantity"]}')


def start(evidence: Evidence) -> Iterator[Measure]:
    """The true speed at the first sample; a person walks at 1 m/s, noise of a truth is below."""
    truth = evidence.truth
    if truth is None or evidence.maker is None:
        return
    first = evidence.maker.motion.at(np.array([0.0])).velocity[0]
    speed = float(np.linalg.norm(first))
    moving = findings.MOVING_START(evidence.topic('truth'), speed=speed)
    yield Measure(speed, _START_SPEED, moving if speed > _START_SPEED else None)
