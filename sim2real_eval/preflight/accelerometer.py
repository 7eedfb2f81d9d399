# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Checks of the bias and scale of an accelerometer, which compete for the same errors.

    measured(t) = A * true(t) + bias(t) + noise

A scale, a mounting and axes that are not at right angles are one constant matrix A. A level
vehicle cannot tell its vertical column from a constant bias: both change the mean force alike.
Two things tell them apart. A scale changes the accelerations of the motion by the same factor, and
it does not change in time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from sim_sensors.core import rotations
from sim_sensors.core.blocks import block_means, sum_by_blocks
from sim_sensors.core.measurements import FloatArray
from sim_sensors.motion.truth_intervals import SIGMAS
from sim_sensors.world.geodesy import STANDARD_GRAVITY
from . import findings
from .delays import effective_counts
from .evidence import Evidence, mean_row
from .inertial import fit_mountings, force_sizes, unknown_turn
from .outcome import Measure

_BLOCK_S = 0.5
# Blocks of a window; a noisy truth cancels over 5 s, and a walk does not.
_WINDOW = 10
_MIN_WINDOWS = 4
# Biases of low-cost accelerometers reach 0.2 m/s^2; within a recording they change by less.
_WANDER = 0.4
# Ratio of the forces that an unknown slope explains to the angle that the gyroscope measures.
_SLOPES = 3.0
# Biases of low-cost accelerometers reach 0.2 m/s^2, 2 % of gravity; 10 % are hardly a bias.
_GRAVITY = (0.02, 0.1)
# Logarithm of a scale that is no bias, without further evidence: 5 m/s^2.
_NO_BIAS = math.log(1.5)
# Share of the accelerations that must be explained before their gain is evidence.
_EXPLAINED = 0.5
_DOUBTS = {'gravity', 'orientation', 'range', 'steps', 'slow truth', 'attitude'}


def _block_forces(evidence: Evidence) -> tuple[FloatArray, FloatArray]:
    """Return means of measured and true forces over 0.5 s, or two samples of the truth."""
    ideal = evidence.ideal
    assert ideal is not None
    length = max(_BLOCK_S, 2.0 * evidence.truth_interval)
    means = block_means(
        lambda *rows: np.hstack(rows),
        evidence.imu_time,
        length,
        evidence.measured('linear_acceleration'),
        ideal.force,
    )
    # A derivative of the truth is poor at both ends, and the last block may be short.
    measured, true = np.hsplit(means[1:-1], 2)
    return measured, true


def measure_force_bias(evidence: Evidence) -> Iterator[Measure]:
    """Check for a bias that walks: errors that no constant matrix and bias explain.

    The rival is a slope that the truth does not know. The gyroscope measures it.
    """
    if evidence.imu is None or evidence.ideal is None or evidence.doubtful & _DOUBTS:
        return
    measured, true = _block_forces(evidence)
    windows = len(measured) // _WINDOW
    if windows < _MIN_WINDOWS:
        return
    regressors = np.column_stack([true, np.ones(len(true))])
    constant = np.linalg.lstsq(regressors, measured, rcond=1e-6)[0]
    residual = (measured - regressors @ constant)[: windows * _WINDOW]
    residual = residual.reshape(windows, _WINDOW, 3)
    white = 0.5 * np.mean(np.diff(residual, axis=1) ** 2, axis=(0, 1)) / _WINDOW
    variance = np.mean(residual.mean(axis=1) ** 2, axis=0)
    wander = math.sqrt(float(np.maximum(variance - white, 0.0).sum()))
    limit = _WANDER + SIGMAS * math.sqrt(float(white.sum()) / windows)
    if wander > limit and not evidence.truth_has_attitude:
        slope = math.radians(evidence.once(unknown_turn))
        limit = max(limit, _SLOPES * STANDARD_GRAVITY * slope)
    finding = None
    if wander > limit:
        up = evidence.up / np.linalg.norm(evidence.up)
        error = (measured - true) @ up
        first, last = (float(part.mean()) for part in (error[:_WINDOW], error[-_WINDOW:]))
        finding = findings.FORCE_BIAS(evidence.topic('imu'), wander=wander, first=first, last=last)
        # Mounting and scale would be fitted to the bias.
        evidence.doubtful.add('gravity')
    yield Measure(wander, limit, finding, 'imu')


class _Gain(NamedTuple):
    """Gain of the accelerations of the motion, which a bias does not change."""

    value: float
    deviation: float

    def misfit(self, scale: float) -> float:
        """Return half the squared distance to a scale in standard errors."""
        return 0.5 * ((self.value - scale) / self.deviation) ** 2


def _fit_gain(evidence: Evidence) -> _Gain | None:
    """Fit the gain of the forces without their means; None if the truth explains too little.

    Noise of the truth lowers the gain, and the gain of the inverse fit is too high. Half of their
    difference is part of the standard error.
    """
    fits = evidence.once(fit_mountings)
    if not fits:
        return None
    measured, true = _block_forces(evidence)
    measured = fits[0].rotation.apply(measured - measured.mean(axis=0))
    true = true - true.mean(axis=0)
    size, power = float(np.sum(true**2)), float(np.sum(measured**2))
    product = float(np.sum(true * measured))
    if product <= 0.0 or product**2 < _EXPLAINED * size * power:
        return None
    gain, inverse = product / size, power / product
    residual = measured - gain * true
    count = max(float(effective_counts(residual.T).min()), 4.0)
    variance = float(np.sum(residual**2)) / (size * count)
    spread = 0.5 * (inverse - gain)
    return _Gain(0.5 * (gain + inverse), math.sqrt(variance + spread**2))


def measure_force_scale(evidence: Evidence) -> Iterator[Measure]:
    """Compare the mean vertical force with gravity.

    The mean is taken in the axes of the world: that of the true acceleration is the change of
    velocity over the time, whatever the noise of the truth. A scale is corrected if the motion
    shows it, too, or if no bias is so large. Otherwise a bias of the accelerometer explains as
    much.
    """
    imu, topic = evidence.imu, evidence.topic('imu')
    if imu is None or 'gravity' in evidence.doubtful:
        return
    size, true_size = _vertical_forces(evidence)
    scale, finding = size / true_size, None
    if scale > 0.0 and abs(math.log(scale)) > _GRAVITY[0]:
        role, bias = evidence.role('imu'), size - true_size
        gain = _fit_gain(evidence) if _GRAVITY[1] < abs(math.log(scale)) < _NO_BIAS else None
        evidence_of_scale = 0.0 if gain is None else gain.misfit(1.0) - gain.misfit(scale)
        clearly = 0.5 * SIGMAS**2
        if abs(math.log(scale)) >= _NO_BIAS or evidence_of_scale > clearly:
            total = evidence.correct('imu', acceleration_scale=1.0 / scale).acceleration_scale
            finding = findings.GRAVITY_SCALE_LARGE(
                topic, role=role, force=size, scale=scale, set=total
            )
        elif abs(math.log(scale)) > _GRAVITY[1]:
            finding = findings.GRAVITY_OFFSET(topic, force=size, scale=scale, bias=bias)
        else:
            finding = findings.GRAVITY_SCALE(topic, force=size, scale=scale, bias=bias)
    yield Measure(scale, math.exp(_GRAVITY[0]), finding, 'imu', 'ratio')


def _vertical_forces(evidence: Evidence) -> tuple[float, float]:
    """Return the mean measured and true force along the vertical, m/s^2."""
    imu, ideal = evidence.imu, evidence.ideal
    assert imu is not None
    force = evidence.measured('linear_acceleration')
    if ideal is not None and 'orientation' not in evidence.doubtful:
        both = [
            sum_by_blocks(rotations.rotate, ideal.orientation, rows) / len(imu)
            for rows in (force, ideal.force)
        ]
        size, true_size = (float(mean[2]) for mean in both)
        return size, true_size
    up = evidence.up
    true_size = float(np.linalg.norm(up))
    size = float(mean_row(force) @ up) / true_size
    mean, median = force_sizes(evidence)
    if size < 0.9 * median <= 0.9 * mean:
        # A sensor that tumbles has no mean force.
        size = median
    return size, true_size
