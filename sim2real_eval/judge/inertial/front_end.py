# SPDX-License-Identifier: Apache-2.0
"""Arrays for the inertial judges from a recording, in base_link and one local frame."""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import Finding, JudgeError
from sim2real_eval.judge import estimate
from sim2real_eval.judge.estimate import PartCount
from sim2real_eval.recording.metadata import FrameTree, TransformFile
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.truth import local_frame_at_first_fix, select_valid_fixes
from sim_sensors.core.measurements import FixArray, FloatArray, ImuArray, IntArray
from sim_sensors.world.earth import LocalFrame
from .settings import InertialSettings

_ABSENT = -1.0
# No sensor measures more, and the squares still fit into a double.
_MOST = 1e6
_MOST_VARIANCE = 1e12


@dataclasses.dataclass(frozen=True, eq=False)
class InertialInputs:
    """Inputs of an inertial judge."""

    imu_ns: IntArray  # (n,) Stamps, strictly increasing
    # (n, 3) Angular rate, rad/s, and specific force at `imu_arm`, m/s^2, in the axes of base_link.
    rate: FloatArray
    force: FloatArray
    # (n,) Yaw of base_link in the world from the IMU's own orientation, rad, and its variance.
    # Both are NaN if there is no orientation; the variance is 0 if it is not stated.
    imu_yaw: FloatArray
    imu_yaw_variance: FloatArray
    imu_arm: FloatArray  # (3,) Position of the IMU in base_link, m
    fix_ns: IntArray  # (m,) Stamps of the usable fixes, within those of the IMU, never decreasing
    fix: FloatArray  # (m, 3) Position of the antenna, m, east-north-up about `origin`
    fix_covariance: FloatArray  # (m, 3, 3) m^2, after fallback and floor; positive definite
    antenna: FloatArray  # (3,) Position of the antenna in base_link, m
    origin: LocalFrame  # at the first valid fix
    fix_topic: str
    fixes_received: int  # messages of the GPS, unusable ones included
    notes: tuple[Finding, ...]

    def gps_count(self, rejected: int) -> PartCount:
        """Return the counts of the fixes for a number of rejected ones."""
        used = len(self.fix_ns)
        return PartCount(
            'gps pose', self.fix_topic, self.fixes_received, older=0,
            unusable=self.fixes_received - used, fused=used - rejected, rejected=rejected,
        )  # fmt: skip


def inertial_inputs(
    recording: Recording,
    settings: InertialSettings,
    *,
    start_ns: int | None = None,
    transforms: TransformFile | None = None,
) -> InertialInputs:
    """Return the recording's imu and gps from `start_ns` on, with the transforms of a file.

    RecordingError when the recording has no imu or no gps. JudgeError when they do not suffice: no
    rate or no force, fewer than two IMU messages, or no valid fix between them. JudgeError also
    when no static transform connects a sensor to base_link.
    """
    where = recording.path or recording.name
    imu, gps = recording.require('imu'), recording.require('gps')
    assert isinstance(imu, ImuArray)
    assert isinstance(gps, FixArray)
    notes: list[Finding] = []
    if start_ns is not None:
        imu, gps = imu.take(imu.stamp_ns >= start_ns), gps.take(gps.stamp_ns >= start_ns)
    imu = _usable_imu(imu, f'{where}: {recording.roles["imu"]}', settings, notes)
    static = recording.transforms
    if transforms is not None:
        static, replaced = transforms.over(static)
        notes += [*transforms.notes, *replaced]
    frames = FrameTree(static, assume_identity=not static)
    base = settings.base_link_frame
    turn, imu_arm = frames.lookup(base, imu.frame, 'imu')
    _, antenna = frames.lookup(base, gps.frame, 'gps')
    notes += frames.assumptions
    valid = select_valid_fixes(gps)
    if len(valid) < len(gps):
        notes.append(estimate.NO_FIX(count=len(gps) - len(valid), received=len(gps)))
    # An estimate needs IMU messages after its first fix.
    inside = (valid.stamp_ns >= imu.stamp_ns[0]) & (valid.stamp_ns <= imu.stamp_ns[-1])
    inside &= bool(np.any(valid.stamp_ns[inside] < imu.stamp_ns[-1]))
    if not inside.any():
        raise JudgeError(
            f'{where}: {recording.roles["gps"]} has no valid fix while there are IMU messages; '
            'must have one'
        )
    if not inside.all():
        notes.append(estimate.FIXES_OUTSIDE(count=np.sum(~inside)))
    origin = local_frame_at_first_fix(valid)
    used = valid.take(inside)
    yaw, variance = _headings(imu, turn)
    return InertialInputs(
        imu_ns=imu.stamp_ns,
        rate=imu.angular_velocity @ turn.T,
        force=imu.linear_acceleration @ turn.T,
        imu_yaw=yaw,
        imu_yaw_variance=variance,
        imu_arm=imu_arm,
        fix_ns=used.stamp_ns,
        fix=origin.to_enu(used.latitude, used.longitude, used.altitude),
        fix_covariance=_covariances(used, settings, notes),
        antenna=antenna,
        origin=origin,
        fix_topic=recording.roles['gps'],
        fixes_received=len(gps),
        notes=tuple(notes),
    )


def _usable_imu(
    imu: ImuArray, where: str, settings: InertialSettings, notes: list[Finding]
) -> ImuArray:
    for name in ('angular_velocity', 'linear_acceleration'):
        absent = getattr(imu, f'{name}_covariance')[:, 0, 0] == _ABSENT
        if len(imu) and absent.all():
            raise JudgeError(f'{where}: has no {name} (its covariance is -1); must have both')
        imu = imu.take(~absent & np.isfinite(getattr(imu, name)).all(axis=1))
        largest = float(np.max(np.abs(getattr(imu, name)), initial=0.0))
        if largest > _MOST:
            raise JudgeError(f'{where}: {name} of {largest:.3g}; must be at most {_MOST:g}')
    fresh = np.ones(len(imu), dtype=bool)
    fresh[1:] = np.diff(imu.stamp_ns) > 0
    if not fresh.all():
        notes.append(estimate.IMU_REPEATS(count=int(np.sum(~fresh))))
    imu = imu.take(fresh)
    if len(imu) < 2:
        raise JudgeError(f'{where}: has {len(imu)} usable messages; must have two or more')
    gaps = np.diff(imu.stamp_ns) * 1e-9
    long = gaps > settings.longest_gap
    if long.any():
        longest, limit = float(np.max(gaps)), settings.longest_gap
        notes.append(estimate.IMU_GAPS(count=np.sum(long), longest=longest, limit=limit))
    return imu


def _headings(imu: ImuArray, turn: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return yaw of base_link and its variance; NaN if the IMU has no orientation."""
    covariance = imu.orientation_covariance
    has = (covariance[:, 0, 0] != _ABSENT) & np.isfinite(imu.orientation).all(axis=1)
    has &= np.linalg.norm(np.nan_to_num(imu.orientation), axis=1) > 0.0
    yaw, variance = np.full(len(imu), np.nan), np.full(len(imu), np.nan)
    if has.any():
        base = Rotation.from_quat(imu.orientation[has]) * Rotation.from_matrix(turn.T)
        yaw[has] = base.as_euler('xyz')[:, 2]
        variance[has] = np.nan_to_num(np.maximum(covariance[has, 2, 2], 0.0))
    return yaw, variance


def _covariances(fixes: FixArray, settings: InertialSettings, notes: list[Finding]) -> FloatArray:
    """Return positive definite covariances of the fixes, (m, 3, 3)."""
    stated_covariance = 0.5 * (
        fixes.position_covariance + fixes.position_covariance.transpose(0, 2, 1)
    )
    diagonal = np.einsum('nii->ni', stated_covariance)
    unknown = ~(np.isfinite(stated_covariance).all(axis=(1, 2)) & (diagonal >= 0.0).all(axis=1))
    unknown |= ~diagonal.any(axis=1)
    # Larger variances carry no information and would cost digits of the filter's covariance.
    vague = ~unknown & (diagonal > _MOST_VARIANCE).any(axis=1)
    stated_covariance[vague] *= (_MOST_VARIANCE / np.max(diagonal[vague], axis=1))[:, None, None]
    result = np.where(unknown[:, None, None], 0.0, stated_covariance)
    # An invalid covariance (correlations above 1) is replaced by its variances.
    odd = ~unknown & (np.linalg.eigvalsh(result)[:, 0] < -1e-9 * np.max(diagonal, axis=1))
    result[odd] = diagonal[odd, :, None] * np.eye(3)
    fallback, least = np.square([settings.fix_deviation, settings.least_fix_deviation])
    stated = np.einsum('nii->ni', result)
    variances = np.where(stated > 0.0, np.maximum(stated, least), fallback)
    result = result + (variances - stated)[:, :, None] * np.eye(3)
    n = len(fixes)
    if unknown.any():
        text = ', '.join(f'{value:g}' for value in settings.fix_deviation)
        notes.append(estimate.NO_COVARIANCE(count=np.sum(unknown), fixes=n, deviation=text))
    if vague.any():
        most = _MOST_VARIANCE**0.5
        notes.append(estimate.COVARIANCE_LOWERED(count=np.sum(vague), fixes=n, most=most))
    raised = ~unknown & (stated < least).any(axis=1)
    if raised.any():
        text = ', '.join(f'{value:g}' for value in settings.least_fix_deviation)
        notes.append(estimate.COVARIANCE_RAISED(count=np.sum(raised), fixes=n, least=text))
    return np.asarray(result)
