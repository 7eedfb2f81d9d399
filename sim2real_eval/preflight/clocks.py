# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Checks of the clocks of GPS and IMU against that of the truth: another time, another rate."""

from __future__ import annotations

import math
from collections.abc import Iterator

from sim_sensors.motion.truth_intervals import SIGMAS
from . import findings
from .delays import EXPLAINED, DelayFit
from .evidence import Evidence
from .inertial import fit_turning
from .outcome import Measure

_CLOCK_S = 3.0
# Drivers start and end one after the other.
_SAME_S = 1.0
_REFINED_S = 1.0
_DRIFT_S = 0.08
_MIN_S = 40.0


def measure_other_clocks(evidence: Evidence) -> Iterator[Measure]:
    """Report sensors that begin and end equally long before or after the truth.

    Everything was recorded at one time, so that their clock is another one. A correlation
    finds delays up to a tenth of the run only, since a longer one may fit by chance; it refines
    the difference of the ends.
    """
    truth = evidence.truth
    for kind in ('gps', 'imu'):
        array = evidence.recording.messages.get(evidence.topic(kind))
        if truth is None or array is None or len(array) < 2:
            continue
        begin, end = (array.stamp_ns[[0, -1]] - truth.stamp_ns[[0, -1]]) * 1e-9
        shift = round(0.5 * float(begin + end), 3)
        if abs(shift) > _CLOCK_S and abs(begin - end) < _SAME_S:
            total = evidence.correct(kind, delay=shift).delay
            track = evidence.track
            fit = evidence.once(fit_turning) if kind == 'imu' else track.near if track else None
            if fit is not None and fit.explained > EXPLAINED and abs(fit.seconds) < _REFINED_S:
                total = evidence.correct(kind, delay=fit.seconds).delay
                shift += fit.seconds
            role = evidence.role(kind)
            finding = findings.OTHER_CLOCK(evidence.topic(kind), role=role, shift=shift, set=total)
            yield Measure(shift, _CLOCK_S, finding, f'{role} clock', 'either')


def measure_clock_rates(evidence: Evidence) -> Iterator[Measure]:
    """Compare the delays of the first and of the last third of the time."""
    for kind in ('gps', 'imu'):
        fits = _fits_of_thirds(evidence, kind)
        if fits is None or min(fit.explained for fit in fits) < EXPLAINED:
            continue
        first, last = (fit.seconds for fit in fits)
        # Between the middles of both thirds are two thirds of the time.
        drift = 1.5 * (last - first)
        error = 1.5 * math.hypot(*(fit.delay_deviation for fit in fits))
        limit, finding = _DRIFT_S + SIGMAS * error, None
        if abs(drift) > limit:
            middle = 0.5 * (first + last)
            finding = findings.CLOCK_RATE(
                evidence.topic(kind), first=middle - 0.5 * drift, last=middle + 0.5 * drift
            )
            evidence.doubtful |= {f'{kind} delay'} | ({'fix errors'} if kind == 'gps' else set())
        yield Measure(drift, limit, finding, f'{kind} clock', 'either')


def _fits_of_thirds(evidence: Evidence, kind: str) -> tuple[DelayFit, DelayFit] | None:
    """Return the fits of the delay in the first and the last third; None if it is short."""
    track = evidence.track
    if kind == 'gps':
        if track is None or track.span < _MIN_S or evidence.doubtful & {'fixes', 'delay'}:
            return None
        third = len(track.stamps) // 3
        return track.take(slice(None, third)).near, track.take(slice(-third, None)).near
    if evidence.imu is None or evidence.imu_time[-1] - evidence.imu_time[0] < _MIN_S:
        return None
    start, end = float(evidence.imu_time[0]), float(evidence.imu_time[-1])
    third_s = (end - start) / 3.0
    fits = (
        fit_turning(evidence, (start, start + third_s)),
        fit_turning(evidence, (end - third_s, end)),
    )
    return None if fits[0] is None or fits[1] is None else (fits[0], fits[1])
