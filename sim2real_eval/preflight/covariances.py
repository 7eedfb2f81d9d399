# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Checks of stated covariances against the errors of fixes and IMU.

The error of an IMU is the sum of two parts that the noise of the truth hardly changes: white
noise, from differences of its own samples, and slow errors relative to the truth, from means over
a second or more. The noise of the truth is a finding of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from sim_sensors.core import rotations
from sim_sensors.core.blocks import block_means, blocks, sum_by_blocks
from sim_sensors.core.measurements import FloatArray, is_absent
from . import findings
from .arrays import robust_variance
from .evidence import Evidence, Rows, intervals
from .messages import DEVIATION_UNITS
from .outcome import Measure
from .positions import fix_error

# Ratios of variances that warn, fail, and are too small. A deviation stated a third of the errors
# costs a filter accuracy; at a tenth it rejects the other sensors. Receivers state up to ten
# times too much. Errors of a receiver wander over minutes, so that a run has one or two
# independent ones: a ratio of 4 may be chance.
_FIX_LIMITS = (9.0, 100.0, 0.01)
# Vibration and a truth that does not know it are part of these errors.
_IMU_LIMITS = (100.0, 1000.0, 1e-3)
_SLOW_S = 1.0
_DOUBTS = {'gravity', 'orientation', 'range', 'height'}
# A simulated orientation may be exact beside a realistic covariance.
_ORIENTATION_LIMITS = (100.0, 1000.0, 0.0)
# No truth outdoors is better known, and no judge needs a better one.
_TRUTH_ERROR_M = 0.02
_TRUTH_SAMPLES = 10


def measure_fix_covariance(evidence: Evidence) -> Iterator[Measure]:
    """Compare the mean square of the errors of the fixes with the stated variance."""
    error, fixes = fix_error(evidence), evidence.fixes
    if error is None or fixes is None or 'fix errors' in evidence.doubtful:
        return
    stated = fixes.position_covariance[:, (0, 1), (0, 1)].mean(axis=1)
    if not (stated > 0.0).all():
        return
    median, square = float(np.median(stated)), error**2
    if median < square < _FIX_LIMITS[1] * median:
        # The error of the truth is part of a small excess.
        square = max(square - _truth_variance(evidence), median)
    yield from _compare(evidence, 'gps', 'std', 'position', square, median, _FIX_LIMITS)


def _truth_variance(evidence: Evidence) -> float:
    """Return the variance of the positions of the truth per axis, as stated, or 2 cm squared.

    Between two samples of a slow truth the chord differs from the track: by s (1 - s) / 2 of the
    second difference at a share s of the interval, whose mean square is 1/120.
    """
    truth = evidence.truth
    assert truth is not None
    stated = float(np.median(truth.pose_covariance[:, (0, 1), (0, 1)]))
    bends = np.diff(truth.position[:, :2], n=2, axis=0)
    return max(stated, _TRUTH_ERROR_M**2) + robust_variance(bends) / 120.0


def measure_imu_covariance(evidence: Evidence) -> Iterator[Measure]:
    """Compare the mean squares of the errors of rate and force with the stated variances."""
    imu, ideal = evidence.imu, evidence.ideal
    if imu is None or ideal is None or evidence.doubtful & _DOUBTS:
        return
    for quantity, key, true in (
        ('linear_acceleration', 'acceleration_std', ideal.force),
        ('angular_velocity', 'rate_std', ideal.rate),
    ):
        covariances = evidence.measured(f'{quantity}_covariance')[:]
        stated = np.diagonal(covariances, axis1=1, axis2=2)
        if not (stated > 0.0).all():
            continue
        measured = evidence.measured(quantity)
        residual = float(np.mean(_variances(measured, true)))
        noise = _white_variance(measured) + _slow_variance(evidence, quantity, true)
        if evidence.exact is not None:
            # A noise-free IMU knows the vibration that the truth does not.
            exact = evidence.exact.force if 'acceleration' in quantity else evidence.exact.rate
            residual = min(residual, float(np.mean(_variances(measured, exact))))
        square, mean = min(residual, noise), float(stated.mean())
        if residual > _IMU_LIMITS[0] * mean and residual > 4.0 * square:
            yield from _measure_rough_truth(evidence, quantity, residual, square, mean)
        name = quantity.replace('_', ' ')
        yield from _compare(evidence, 'imu', key, name, square, mean, _IMU_LIMITS)


def _white_variance(measured: FloatArray | Rows) -> float:
    """Return the variance of white noise per axis, from second differences: 6 times as large."""
    total, count = 0.0, 0
    for part in blocks(len(measured)):
        differences = np.diff(measured[part], n=2, axis=0)
        total += float(np.sum(differences**2))
        count += differences.size
    return total / (6.0 * max(count, 1))


def _slow_variance(evidence: Evidence, quantity: str, true: FloatArray) -> float:
    """Return the variance per axis of errors that last a second or more, less that of the truth.

    Means over a longer time contain less noise of a truth that is differentiated.
    """
    truth = evidence.truth
    assert truth is not None
    length = max(_SLOW_S, _TRUTH_SAMPLES * evidence.truth_interval)
    means = block_means(np.subtract, evidence.imu_time, length, evidence.measured(quantity), true)
    # A derivative is poor at both ends, and the last block may be short.
    means = means[1:-1]
    if len(means) < 4:
        return math.inf
    variance = float(np.mean(means.var(axis=0)))
    if quantity == 'angular_velocity':
        noise = _orientation_noise(truth.orientation)
        return max(variance - 2.0 * noise / length**2, 0.0)
    steps = float(np.median(intervals(truth)))
    if evidence.velocities is not None:
        noise = _third_difference_variance(truth.linear_velocity)
        return max(variance - 2.0 * noise / length**2, 0.0)
    noise = _third_difference_variance(truth.position)
    return max(variance - 6.0 * noise / (length**3 * steps), 0.0)


def _third_difference_variance(values: FloatArray) -> float:
    """Return the variance per axis of white noise in a smooth series: third differences over 20.

    A median is taken, which jumps and a few fast manoeuvres do not change.
    """
    differences = np.diff(values, n=3, axis=0)
    return robust_variance(differences) / 20.0


def _orientation_noise(orientation: FloatArray) -> float:
    """Return the variance per axis, rad^2, of white noise of orientations, (n, 4)."""
    turns = rotations.rotation_between(orientation[:-1], orientation[1:])
    return robust_variance(np.diff(turns, n=2, axis=0)) / 20.0


def _measure_rough_truth(
    evidence: Evidence, quantity: str, residual: float, square: float, stated: float
) -> Iterator[Measure]:
    """Report noise of the truth that simulated sensors would measure as motion."""
    noise = math.sqrt(residual - square)
    remedy = (
        'smooth the truth with `truth: {low_pass: VALUE}` (Hz, above the frequencies of the '
        'motion) in recording.yaml'
    )
    unit = 'm/s^2' if quantity == 'linear_acceleration' else 'rad/s'
    if quantity == 'linear_acceleration' and evidence.velocities is not None:
        other = evidence.with_correction('truth', twist='positions')
        read = other.ideal_reader()
        if read is not None:
            force = Rows(lambda rows: read(rows).force, len(evidence.imu_time))
            derived = float(np.mean(_variances(evidence.measured(quantity), force)))
            if derived < 0.25 * residual:
                evidence.correct('truth', twist='positions')
                remedy = 'set `corrections: {truth: {twist: positions}}` in recording.yaml'
    finding = findings.TRUTH_ROUGH(
        evidence.topic('truth'),
        noise=noise,
        quantity='accelerations' if unit == 'm/s^2' else 'rates',
        unit=unit,
        mend=remedy,
    )
    limit = math.sqrt(_IMU_LIMITS[0] * stated)
    yield Measure(noise, limit, finding, 'truth noise', unit=unit)


def _variances(measured: FloatArray | Rows, true: FloatArray | Rows) -> FloatArray:
    """Return the variances of the errors by axis, (3,)."""
    mean = sum_by_blocks(np.subtract, measured, true) / len(measured)
    total = sum_by_blocks(lambda *rows: (rows[0] - rows[1] - mean) ** 2, measured, true)
    return np.asarray(total / len(measured))


def _compare(
    evidence: Evidence,
    role: str,
    key: str,
    quantity: str,
    square: float,
    stated: float,
    limits: tuple[float, float, float],
) -> Iterator[Measure]:
    """Compare a mean square of errors with the stated variance.

    A variance that is stated too large is not corrected: errors of one recording lack slow ones.
    """
    ratio = square / stated
    warn, fail, small = limits
    finding = None
    topic, error, deviation = evidence.topic(role), math.sqrt(square), math.sqrt(stated)
    if ratio > warn:
        kind = findings.COVARIANCE_LARGE if ratio > fail else findings.COVARIANCE
        finding = kind(topic, quantity=quantity, error=error, stated=deviation, role=role, key=key)
        evidence.correct(role, **{key: error})
    elif ratio < small:
        finding = findings.PESSIMISTIC(
            topic, quantity=quantity, error=error, stated=deviation, role=role, key=key,
            unit=DEVIATION_UNITS[key],
        )  # fmt: skip
    limit, scale = (small, 'least') if ratio < 1.0 else (warn, 'most')
    yield Measure(ratio, limit, finding, f'{role} {quantity}', scale)


def measure_orientation_covariance(evidence: Evidence) -> Iterator[Measure]:
    """Compare the attitude errors of the IMU with the stated variance of its orientation."""
    imu, ideal = evidence.imu, evidence.ideal
    if imu is None or ideal is None or evidence.doubtful & {'orientation', 'attitude'}:
        return
    if is_absent(imu.orientation_covariance).any():
        return
    covariances = evidence.measured('orientation_covariance')[:]
    stated = np.diagonal(covariances, axis1=1, axis2=2)
    if not (stated > 0.0).all():
        return
    step = max(len(imu) // 4000, 1)
    errors = [
        rotations.rotation_between(
            ideal.orientation[part][::step], evidence.measured('orientation')[part][::step]
        )
        for part in blocks(len(imu))
    ]
    square = float(np.mean(np.concatenate(errors) ** 2))
    median = float(np.median(stated.mean(axis=1)))
    yield from _compare(
        evidence, 'imu', 'orientation_std', 'orientation', square, median, _ORIENTATION_LIMITS
    )
