# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Checks of samples that repeat one value, and of values at the end of a range."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sim_sensors.core.blocks import block_means, blocks
from sim_sensors.core.measurements import (
    FixArray,
    FloatArray,
    IntArray,
    MessageArray,
    OdometryArray,
)
from sim_sensors.world.geodesy import LocalFrame
from . import findings
from .evidence import Evidence
from .outcome import Measure

_FROZEN_S = 0.5
_FROZEN_TRACK_S = 2.0
_START_SPEED = 0.5
_MOVED_M = 5.0
# Stated deviations beyond which wandering fixes move.
_FAR = 4.0
_TURNING = 0.1
_SHAKING = 0.1
# Repetitions of other values, relative to those at the end of the range; both ends may be hit.
_ELSEWHERE = 1.5
# Share of equal samples of an axis that rests without noise.
_RESTING = 0.99
# Least spread of an axis that measures: resolutions are coarser.
_RESOLUTION = {'angular_velocity': 1e-6, 'linear_acceleration': 1e-5}


def measure_frozen(evidence: Evidence) -> Iterator[Measure]:
    """Check the longest time in which all values of a sensor are equal to the bit.

    Six axes with noise of one step of their resolution repeat by chance in less than one of 100
    pairs, so that half a second has another cause. Fixes must be equal for 2 s and 5 of them while
    the truth moves by 5 m. An exact sensor rests with the vehicle, which counts as no time.
    """
    imu, fixes, truth = evidence.imu, evidence.fixes, evidence.truth
    if truth is not None:
        yield _measure_frozen_truth(evidence, truth)
    if imu is not None:
        time, rows = _longest_equal(imu, imu.angular_velocity, imu.linear_acceleration)
        ideal = evidence.ideal
        moves = True
        if ideal is not None:
            rate, force = ideal.rate[rows], ideal.force[rows]
            moves = bool(len(rate)) and float(np.ptp(rate, axis=0).max()) > 0.01
            moves = moves or (bool(len(force)) and float(np.ptp(force, axis=0).max()) > 0.1)
        yield _measure_time(evidence, 'imu', time if moves else 0.0, _FROZEN_S, {'range'})
    if fixes is not None and evidence.track is not None:
        time, rows = _longest_equal(fixes, fixes.latitude[:, None], fixes.longitude[:, None])
        track = evidence.track
        moved = track.truth(track.stamps[rows])
        moves = len(moved) > 5 and float(np.abs(moved[-1] - moved[0])) > 5.0
        yield _measure_time(evidence, 'gps', time if moves else 0.0, _FROZEN_TRACK_S, {'fixes'})


def _measure_frozen_truth(evidence: Evidence, truth: OdometryArray) -> Measure:
    """Check positions of the truth that are equal for 2 s although the vehicle moves.

    Its twist, rates of the IMU, or fixes state that it moves. Fixes of a resting vehicle wander,
    so that an IMU that rests contradicts them.
    """
    time, rows = _longest_equal(truth, truth.position)
    first, last = truth.stamp_ns[rows][[0, -1]]
    speed = float(np.median(np.linalg.norm(truth.linear_velocity[rows], axis=1)))
    moves = speed > _START_SPEED or (
        _fixes_move(evidence, first, last) and not _imu_rests(evidence, first, last)
    )
    # A robot that turns in place has one position, so that its whole pose must be equal.
    posed, rows = _longest_equal(truth, truth.position, truth.orientation)
    turns = _imu_turns(evidence, *truth.stamp_ns[rows][[0, -1]])
    longest = max(time if moves else 0.0, posed if turns else 0.0)
    # Comparisons with the truth at that time would only repeat this.
    symptoms = {'steps', 'orientation', 'range', 'slow truth', 'delay'}
    return _measure_time(evidence, 'truth', longest, _FROZEN_TRACK_S, symptoms)


def _measure_time(
    evidence: Evidence, role: str, time: float, limit: float, symptoms: set[str]
) -> Measure:
    finding = None
    if time > limit:
        finding = findings.FROZEN(evidence.topic(role), time=time)
        evidence.doubtful |= symptoms
    return Measure(time, limit, finding, role)


def _fixes_move(evidence: Evidence, first_ns: int, last_ns: int) -> bool:
    """Return whether means of the fixes in four parts of a time are 5 m apart.

    They must also be further apart than the fixes state their errors.
    """
    if evidence.fixes is None:
        return False
    fixes: FixArray = evidence.fixes.take(_within(first_ns, last_ns, evidence.fixes.stamp_ns))
    if len(fixes) < 8:
        return False
    frame = LocalFrame(float(fixes.latitude[0]), float(fixes.longitude[0]), 0.0)
    places = frame.to_enu(fixes.latitude, fixes.longitude, np.zeros(len(fixes)))[:, :2]
    parts = np.stack([part.mean(axis=0) for part in np.array_split(places, 4)])
    stated = np.sqrt(fixes.position_covariance[:, (0, 1), (0, 1)].mean())
    return float(np.ptp(parts, axis=0).max()) > max(_MOVED_M, float(_FAR * stated))


def _imu_turns(evidence: Evidence, first_ns: int, last_ns: int) -> bool:
    """Return whether mean rates of a second vary by 0.1 rad/s."""
    spread = _imu_spread(evidence, first_ns, last_ns)
    return spread is not None and spread[0] > _TURNING


def _imu_rests(evidence: Evidence, first_ns: int, last_ns: int) -> bool:
    """Return whether mean rates and forces of a second hardly vary."""
    spread = _imu_spread(evidence, first_ns, last_ns)
    return spread is not None and spread[0] < 0.1 * _TURNING and spread[1] < _SHAKING


def _imu_spread(evidence: Evidence, first_ns: int, last_ns: int) -> tuple[float, float] | None:
    """Return the standard deviations of means over a second of rates and forces."""
    imu = evidence.imu
    if imu is None:
        return None
    inside = _within(first_ns, last_ns, imu.stamp_ns)
    if inside.sum() < 8:
        return None
    time = evidence.imu_time[inside]
    rate, force = (
        float(block_means(np.asarray, time, 1.0, rows[inside]).std(axis=0).max())
        for rows in (imu.angular_velocity, imu.linear_acceleration)
    )
    return rate, force


def _within(first_ns: int, last_ns: int, stamps: IntArray) -> NDArray[np.bool_]:
    return np.asarray((stamps >= first_ns) & (stamps <= last_ns))


def _longest_equal(array: MessageArray, *values: FloatArray) -> tuple[float, slice]:
    """Return the longest time, s, over which rows of values (n, k) are equal, and those rows."""
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


def measure_saturation(evidence: Evidence) -> Iterator[Measure]:
    """Count samples at the largest or smallest value of their axis, three or more in a row.

    Noise and resolution make that impossible within the range. The value must also be three
    standard deviations from the median, or no other value may repeat so: resting axes of a coarse
    sensor repeat all their values. An axis that hardly ever leaves that value rests without noise.
    """
    imu = evidence.imu
    if imu is None:
        return
    most, finding = 0, None
    topic = evidence.topic('imu')
    for field, resolution in _RESOLUTION.items():
        for axis in range(3):
            column = np.ascontiguousarray(getattr(imu, field)[:, axis])
            spread = float(np.std(column))
            if spread < resolution:
                continue
            repeated = int(((column[2:] == column[1:-1]) & (column[1:-1] == column[:-2])).sum())
            for end in (column.max(), column.min()):
                at_end = column == end
                count = int((at_end[2:] & at_end[1:-1] & at_end[:-2]).sum())
                if at_end.mean() > _RESTING:
                    continue
                is_far = abs(end - float(np.median(column))) > 3.0 * spread
                if count > most and (is_far or repeated - count < _ELSEWHERE * count):
                    most = count
                    name = field.replace('_', ' ')
                    finding = findings.SATURATED(
                        topic, count=int(at_end.sum()), field=name, limit=end
                    )
    evidence.doubtful |= {'range'} if most >= 3 else set()
    yield Measure(float(most), 3.0, finding if most >= 3 else None, 'imu')


def measure_start(evidence: Evidence) -> Iterator[Measure]:
    """Check the true speed at the first sample; walking is 1 m/s, noise of a truth is below."""
    truth = evidence.truth
    if truth is None or evidence.maker is None:
        return
    first = evidence.maker.motion.at(np.array([0.0])).velocity[0]
    speed = float(np.linalg.norm(first))
    moving = findings.MOVING_START(evidence.topic('truth'), speed=speed)
    yield Measure(speed, _START_SPEED, moving if speed > _START_SPEED else None)
