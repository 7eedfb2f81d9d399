# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Check of the orientation that an IMU publishes: its axes, heading and tilt.

One model relates it to the truth, for each pair of a world frame W and body axes B:

    true = Rz(-heading) * W * published * B

The pair with the smallest attitude error is the most likely one. East-north-up and the axes of
the body are kept if another pair explains no more.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

import numpy as np
from scipy.spatial.transform import Rotation

from sim2real_eval.recording.corrections import NED_TO_ENU
from sim_sensors.core import rotations
from sim_sensors.core.blocks import blocks, sum_by_blocks
from sim_sensors.core.measurements import FloatArray, is_absent
from . import findings
from .evidence import Evidence, Rows, circular_deviation
from .outcome import Measure

_HEADING_DEG = (7.0, 20.0)
# A heading that strays by 15 deg lets a quarter of the speed appear as lateral velocity.
_SPREAD_DEG = 15.0
# Drift between the first and the last fifth of the time that no constant corrects.
_DRIFT_DEG = 12.0
_TILT_DEG = 5.0
# A truth without roll and pitch does not know slopes and banking.
_LEVEL_TRUTH_TILT_DEG = 15.0
_ROWS = 4000
_WORLDS = {'enu': Rotation.identity(), 'ned': NED_TO_ENU}
_BODIES = ((0.0, 0.0, 0.0), (180.0, 0.0, 0.0), (0.0, 180.0, 0.0), *(
    angles for turn in (90.0, -90.0) for angles in ((turn, 0.0, 0.0), (0.0, turn, 0.0))
))  # fmt: skip
# Attitude errors of another pair must be this much smaller.
_CLEARLY = 0.5


@dataclasses.dataclass(frozen=True)
class AttitudeFit:
    """Attitude errors for one pair of world frame and body axes.

    Attributes
    ----------
    axes : str
        World frame, `enu` or `ned`.
    body : tuple of 3 float
        Roll, pitch, yaw, deg, from the axes of the orientation to those of the body.
    heading : float
        Mean error of the heading, deg.
    spread : float
        Circular standard deviation of the heading error, deg.
    drift : float
        Change of the mean heading error from the first to the last fifth of the time, deg.
    tilt : float
        Root mean square of the angle between both verticals, deg.
    """

    axes: str
    body: tuple[float, ...]
    heading: float
    spread: float
    drift: float
    tilt: float

    @property
    def error(self) -> float:
        """Size of the errors that no constant heading explains, deg."""
        return math.hypot(self.spread, self.tilt)


def measure_orientation(evidence: Evidence) -> Iterator[Measure]:
    """Compare the published orientation with gravity and with the attitude of the truth."""
    imu, ideal = evidence.imu, evidence.ideal
    if imu is None:
        return
    topic = evidence.recording.roles['imu']
    if is_absent(imu.orientation_covariance).any():
        yield Measure(None, None, findings.NO_ORIENTATION(topic), 'imu')
        return
    if 'orientation' in evidence.doubtful:
        ideal = None
    orientation = evidence.measured('orientation')
    if _is_unset(orientation, None if ideal is None else ideal.orientation):
        evidence.doubtful.add('attitude')
        yield Measure(None, None, findings.ORIENTATION_UNSET(topic), 'imu')
        return
    if ideal is not None:
        fit = fit_attitude(orientation, ideal.orientation)
        if _is_reordered(orientation, ideal.orientation, fit):
            evidence.doubtful.add('attitude')
            yield Measure(None, None, findings.ORIENTATION_QUATERNION(topic), 'imu axes')
            return
        if (fit.axes, fit.body) != ('enu', _BODIES[0]):
            total = evidence.correct('imu', axes=fit.axes, orientation_rotation=fit.body)
            rotation = ', '.join(f'{angle:g}' for angle in total.orientation_rotation)
            other_axes = findings.ORIENTATION_AXES(topic, axes=total.axes, rotation=rotation)
            yield Measure(None, None, other_axes, 'imu axes')
        yield from _measure_attitude(evidence, fit)
    elif 'gravity' not in evidence.doubtful:
        force = evidence.measured('linear_acceleration')
        up = sum_by_blocks(rotations.rotate, orientation, force) / len(force)
        cosine = float(up[2]) / max(float(np.linalg.norm(up)), 1e-9)
        tilt = math.degrees(math.acos(float(np.clip(cosine, -1.0, 1.0))))
        wrong = tilt > _LEVEL_TRUTH_TILT_DEG
        finding = findings.ORIENTATION_TILT(topic, tilt=tilt) if wrong else None
        yield Measure(tilt, _LEVEL_TRUTH_TILT_DEG, finding, 'imu vertical')


def _measure_attitude(evidence: Evidence, fit: AttitudeFit) -> Iterator[Measure]:
    """Yield the errors of the heading and of the vertical that the best axes leave."""
    topic = evidence.recording.roles['imu']
    strays = None
    if fit.spread > _SPREAD_DEG:
        strays = findings.ORIENTATION_STRAYS(topic, spread=fit.spread)
    elif abs(fit.drift) > _DRIFT_DEG:
        strays = findings.ORIENTATION_DRIFTS(topic, drift=fit.drift)
    yield Measure(fit.spread, _SPREAD_DEG, strays, 'imu heading spread')
    if strays is None:
        finding = None
        if abs(fit.heading) > _HEADING_DEG[0]:
            is_large = abs(fit.heading) > _HEADING_DEG[1]
            kind = findings.ORIENTATION_YAW_LARGE if is_large else findings.ORIENTATION_YAW
            total = evidence.correct('imu', heading=fit.heading).heading
            finding = kind(topic, turn=fit.heading, set=total)
        yield Measure(fit.heading, _HEADING_DEG[0], finding, 'imu heading', 'either')
    limit = _TILT_DEG if evidence.truth_has_attitude else _LEVEL_TRUTH_TILT_DEG
    tilted = findings.ORIENTATION_TILT(topic, tilt=fit.tilt) if fit.tilt > limit else None
    if strays or tilted:
        evidence.doubtful.add('attitude')
    yield Measure(fit.tilt, limit, tilted, 'imu vertical')


def _is_reordered(
    published: FloatArray | Rows, true: FloatArray | Rows, recorded: AttitudeFit
) -> bool:
    """Return whether the quaternion in the order w x y z explains the truth far better."""
    if recorded.error < _LEVEL_TRUTH_TILT_DEG:
        return False
    reordered = Rows(lambda rows: np.roll(published[rows], -1, axis=1), len(published))
    fit = fit_attitude(reordered, true)
    is_plain = (fit.axes, fit.body) == ('enu', _BODIES[0])
    return is_plain and fit.error < 0.5 * _CLEARLY * recorded.error


def fit_attitude(published: FloatArray | Rows, true: FloatArray | Rows) -> AttitudeFit:
    """Return the most likely world frame and body axes of published orientations, (n, 4)."""
    step = max(len(published) // _ROWS, 1)
    parts = [
        (published[part][::step], true[part][::step])
        for part in blocks(len(published), max(step * 1000, 1000))
    ]
    measured, reference = (
        Rotation.from_quat(np.concatenate(rows)) for rows in zip(*parts, strict=True)
    )
    best = _errors(measured, reference, 'enu', _BODIES[0])
    first = best.error
    for axes in _WORLDS:
        for body in _BODIES:
            fit = _errors(measured, reference, axes, body)
            if fit.error < min(_CLEARLY * first, best.error - 0.1):
                best = fit
    return best


def _errors(
    measured: Rotation, reference: Rotation, axes: str, body: tuple[float, ...]
) -> AttitudeFit:
    turned = _WORLDS[axes] * measured * Rotation.from_euler('xyz', body, degrees=True)
    error = (turned * reference.inv()).as_matrix()
    # The angle about the vertical that explains most of a rotation matrix.
    turns = (error[:, 0, 0] + error[:, 1, 1]) + 1j * (error[:, 1, 0] - error[:, 0, 1])
    mean = complex(np.mean(turns / np.maximum(np.abs(turns), 1e-12)))
    errors = np.angle(turns * np.conj(mean))
    fifth = max(len(errors) // 5, 1)
    drift = float(np.mean(errors[-fifth:]) - np.mean(errors[:fifth]))
    tilts = np.arccos(np.clip(error[:, 2, 2], -1.0, 1.0))
    return AttitudeFit(
        axes,
        body,
        math.degrees(np.angle(mean)),
        circular_deviation(abs(mean)),
        math.degrees(drift),
        math.degrees(math.sqrt(float(np.mean(tilts**2)))),
    )


def _is_unset(published: FloatArray | Rows, true: FloatArray | Rows | None) -> bool:
    """Return whether an orientation is always the identity while the true heading is not 0."""
    parts = (published[part] for part in blocks(len(published)))
    if not all((part == (0.0, 0.0, 0.0, 1.0)).all() for part in parts):
        return False
    if true is None:
        return True
    headings = [rotations.heading(true[part]) for part in blocks(len(true))]
    return float(np.abs(np.concatenate(headings)).max()) > math.radians(_HEADING_DEG[0])
