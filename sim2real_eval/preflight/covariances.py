# SPDX-License-Identifier: Apache-2.0
"""Checks of stated covariances against the errors of fixes and IMU."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from sim_sensors.core.blocks import sum_by_blocks
from sim_sensors.core.measurements import FloatArray
from . import findings
from .delays import SIGMAS
from .evidence import Evidence, Rows, block_means
from .outcome import Measure
from .positions import fix_error

# Ratios of variances: told, wrong, too small. A deviation stated a third of the errors costs a
# filter accuracy; at a tenth of them its gates refuse the rest. Receivers state up to ten times
# too much.
_OF_FIXES = (9.0, 100.0, 0.01)
# Vibration and a truth that does not know it are part of these errors.
_OF_IMU = (100.0, 1000.0, 1e-3)
# Vibration is gone in a second.
_INDEPENDENT_S = 1.0


def fix_covariance(evidence: Evidence) -> Iterator[Measure]:
    """Mean square of the errors of the fixes, without their mean, over the stated variance.

    Errors of a receiver wander over minutes, so that a run has one or two independent ones: a
    ratio of 9 (three deviations) is told, never one of 4.
    """
    error, fixes = fix_error(evidence), evidence.fixes
    if error is None or fixes is None or 'fix errors' in evidence.doubtful:
        return
    stated = fixes.position_covariance[:, (0, 1), (0, 1)].mean(axis=1)
    if not (stated > 0.0).all():
        return
    yield from _held(evidence, 'gps', 'std', 'position', error**2, float(np.median(stated)))


def imu_covariance(evidence: Evidence) -> Iterator[Measure]:
    """Mean squares of the errors of rate and force, without their means, over stated variances.

    A noise-free IMU knows the vibration that the truth does not: what is closer counts.
    """
    imu, ideal = evidence.imu, evidence.ideal
    if imu is None or ideal is None or evidence.doubtful & {'gravity', 'orientation', 'range'}:
        return
    known = [one for one in (ideal, evidence.exact) if one is not None]
    for quantity, key, trues in (
        ('linear_acceleration', 'acceleration_std', [one.force for one in known]),
        ('angular_velocity', 'rate_std', [one.rate for one in known]),
    ):
        covariances = evidence.measured(f'{quantity}_covariance')[:]
        stated = np.diagonal(covariances, axis1=1, axis2=2)
        if not (stated > 0.0).all():
            continue
        measured = evidence.measured(quantity)
        square = min(float(np.mean(_variances(measured, true))) for true in trues)
        name, mean = quantity.replace('_', ' '), float(stated.mean())
        if key == 'acceleration_std' and square > _OF_IMU[0] * mean:
            square, told = _without_noise_of_twist(evidence, square, mean)
            yield from told
        yield from _held(evidence, 'imu', key, name, square, mean, _OF_IMU)


def _without_noise_of_twist(
    evidence: Evidence, square: float, stated: float
) -> tuple[float, list[Measure]]:
    """Return a mean square of errors of specific force, less what the twist of the truth adds; and
    what is to be told where the IMU is not to blame. What errors against the twist and against
    differences of positions have in common is of the IMU: the three-cornered hat [Gray1974].
    """
    imu, first = evidence.imu, evidence.ideal
    if evidence.velocities is None or imu is None or first is None:
        return square, []
    read_second = evidence.tried('truth', twist='positions').ideal_reader()
    if read_second is None:
        return square, []
    # A second force of two hours at 1 kHz takes 170 MB, so that it is computed where it is read.
    second = Rows(lambda rows: read_second(rows).force, len(imu))
    forces = evidence.measured('linear_acceleration'), first.force, second
    means = [sum_by_blocks(np.subtract, forces[0], one) / len(imu) for one in forces[1:]]

    def common(measured: FloatArray, *true: FloatArray) -> FloatArray:
        one, other = (measured - each - mean for each, mean in zip(true, means, strict=True))
        return np.asarray(np.mean(one * other, axis=1, keepdims=True))

    blocks = block_means(common, evidence.imu_time, _INDEPENDENT_S, *forces)
    near = float(np.mean(_variances(forces[0], second, means[1])))
    left, limit = min(square, near, float(blocks.mean())), _OF_IMU[0] * stated
    if left > limit + SIGMAS * float(blocks.std()) / math.sqrt(len(blocks)):
        return left, []
    left = min(max(left, stated), limit)
    mend = 'smooth the truth with `truth: {low_pass: HZ}` in recording.yaml'
    if near < 0.25 * square:
        evidence.correct('truth', twist='positions')
        mend = 'set `corrections: {truth: {twist: positions}}` in recording.yaml'
    noise = math.sqrt(square - left)
    told = findings.TWIST_ROUGH(evidence.topic('truth'), noise=noise, mend=mend)
    return left, [Measure(noise, math.sqrt(limit), told, 'truth noise', unit='m/s^2')]


def _variances(
    measured: FloatArray | Rows, true: FloatArray | Rows, mean: FloatArray | None = None
) -> FloatArray:
    """Return the variances of errors by axis, (3,); their mean is computed if it is not given."""
    if mean is None:
        mean = sum_by_blocks(np.subtract, measured, true) / len(measured)
    total = sum_by_blocks(lambda *both: (both[0] - both[1] - mean) ** 2, measured, true)
    return np.asarray(total / len(measured))


def _held(
    evidence: Evidence, role: str, key: str, quantity: str, square: float, stated: float,
    limits: tuple[float, float, float] = _OF_FIXES,
) -> Iterator[Measure]:  # fmt: skip
    """Hold a mean square of errors against the stated variance.

    What is stated too large is no fault to put right: errors of one recording lack slow ones.
    """
    ratio = square / stated
    warn, fail, great = limits
    told = None
    if ratio > warn or ratio < great:
        kind = findings.COVARIANCE_LARGE if ratio > fail else findings.COVARIANCE
        kind = findings.PESSIMISTIC if ratio < great else kind
        told = kind(
            evidence.topic(role),
            quantity=quantity,
            error=math.sqrt(square),
            stated=math.sqrt(stated),
            role=role,
            key=key,
        )
        if ratio > warn:
            evidence.correct(role, **{key: math.sqrt(square)})
    limit, scale = (great, 'least') if ratio < 1.0 else (warn, 'most')
    yield Measure(ratio, limit, told, f'{role} {quantity}', scale)
