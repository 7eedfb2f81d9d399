# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Check of the gyroscope without truth: against gravity, the magnetic field and the course.

A vector that is fixed in the world turns in the body against the rate: dv/dt = -rate x v. Gravity
and the magnetic field are such vectors, and the course over ground turns with the vehicle. They
are too coarse for a small error, but a wrong unit or sign cannot hide.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from sim2real_eval.recording.truth import local_frame_at_first_fix
from sim_sensors.core.blocks import block_means, seconds
from sim_sensors.core.measurements import FloatArray
from . import findings
from .arrays import plane
from .evidence import Evidence, Rows, mean_row
from .outcome import Measure

_BLOCK_S = 0.5
_WINDOW_S = 2.0
_SLOWEST = 1.0
_EXPLAINED = 0.6
_MIN = 16
_LIMIT = 3.0
_NO_TURN_RAD = 0.05


def measure_witnesses(evidence: Evidence) -> Iterator[Measure]:
    """Compare unit and sign of the rates with the best witness, if there is no truth."""
    if evidence.imu is None or evidence.ideal is not None:
        return
    candidates = [
        ('gravity', *_scale_of_vector(evidence, evidence.measured('linear_acceleration'), None)),
        ('course over ground', *_scale_of_course(evidence)),
    ]
    mag = evidence.recording.mag
    if mag is not None and len(mag) >= _MIN:
        stamps = seconds(mag.stamp_ns, int(evidence.imu.stamp_ns[0]))
        candidates.append(
            ('magnetic field', *_scale_of_vector(evidence, mag.magnetic_field, stamps))
        )
    witness, scale, explained = max(candidates, key=lambda candidate: candidate[2])
    if explained < _EXPLAINED or not math.isfinite(scale):
        return
    topic, role, finding = evidence.topic('imu'), evidence.role('imu'), None
    if abs(abs(scale) / math.degrees(1.0) - 1.0) < 0.5:
        total = evidence.correct('imu', rate_scale=math.radians(1.0)).rate_scale
        finding = findings.RATE_UNIT_WITNESS(
            topic, role=role, scale=abs(scale), witness=witness, set=total
        )
    elif scale < 0.0:
        total = evidence.correct('imu', rate_scale=-1.0).rate_scale
        finding = findings.RATE_REVERSED_WITNESS(topic, role=role, witness=witness, set=total)
    elif abs(math.log(scale)) > math.log(_LIMIT):
        finding = findings.RATE_SCALE_WITNESS(topic, role=role, scale=scale, witness=witness)
    yield Measure(abs(scale), _LIMIT, finding, 'imu', 'ratio')


def _scale_of_vector(
    evidence: Evidence, vector: FloatArray | Rows, stamps: FloatArray | None
) -> tuple[float, float]:
    """Return the scale of the rates from a vector fixed in the world, and the share explained.

    Changes of the vector between blocks are compared with those that the rates cause.
    """
    time = evidence.imu_time
    rate = block_means(np.asarray, time, _BLOCK_S, evidence.measured('angular_velocity'))
    vector_time = time if stamps is None else stamps
    means = block_means(np.asarray, vector_time, _BLOCK_S, vector)
    count = min(len(rate), len(means))
    if count < _MIN:
        return math.nan, 0.0
    direction = means[:count] / np.maximum(
        np.linalg.norm(means[:count], axis=1, keepdims=True), 1e-12
    )
    middle = 0.5 * (direction[1:] + direction[:-1])
    between = 0.5 * (rate[: count - 1] + rate[1:count])
    caused = -np.cross(between - _rest_rate(evidence), middle) * _BLOCK_S
    changed = np.diff(direction, axis=0)
    return _regress(caused.ravel(), changed.ravel())


def _rest_rate(evidence: Evidence) -> FloatArray:
    """Return the median rate: a bias, as turns to both sides cancel."""
    rate = block_means(
        np.asarray, evidence.imu_time, _BLOCK_S, evidence.measured('angular_velocity')
    )
    return np.asarray(np.median(rate, axis=0))


def _regress(caused: FloatArray, changed: FloatArray) -> tuple[float, float]:
    """Return the factor of the measured rates, and the share of the change that is explained."""
    power, product = float(np.mean(changed**2)), float(np.mean(caused * changed))
    size = float(np.mean(caused**2))
    if power < 1e-6 or size < 1e-12 or product == 0.0:
        return math.nan, 0.0
    return size / product, product**2 / (size * power)


def _scale_of_course(evidence: Evidence) -> tuple[float, float]:
    """Return the same from the course over ground: its changes over 2 s while driving."""
    fixes = evidence.fixes
    if fixes is None or evidence.imu is None:
        return math.nan, 0.0
    frame = local_frame_at_first_fix(fixes)
    position = plane(frame.to_enu(fixes.latitude, fixes.longitude, fixes.altitude))
    time = seconds(fixes.stamp_ns, int(evidence.imu.stamp_ns[0]))
    grid = np.arange(time[0], time[-1], _WINDOW_S)
    steps = np.diff(np.interp(grid, time, position))
    if len(steps) < _MIN:
        return math.nan, 0.0
    fast = np.abs(steps) > _SLOWEST * _WINDOW_S
    turned = np.angle(steps[1:] * np.conj(steps[:-1]))
    force = mean_row(evidence.measured('linear_acceleration'))
    vertical = force / max(float(np.linalg.norm(force)), 1e-9)
    rate = block_means(
        lambda rows, at: np.column_stack([rows @ vertical, at]),
        evidence.imu_time, 0.1, evidence.measured('angular_velocity'), evidence.imu_time,
    )  # fmt: skip
    angle = np.append(0.0, np.cumsum(rate[:-1, 0] * np.diff(rate[:, 1])))
    middles = 0.5 * (grid[1:] + grid[:-1])
    measured = np.diff(np.interp(middles, rate[:, 1], angle))
    is_driving = fast[1:] & fast[:-1] & (middles[1:] < rate[-1, 1])
    if is_driving.sum() < _MIN or float(np.std(turned[is_driving])) < _NO_TURN_RAD:
        return math.nan, 0.0
    rates, turns = measured[is_driving], turned[is_driving]
    return _regress(rates - np.median(rates), turns)
