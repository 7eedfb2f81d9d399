# SPDX-License-Identifier: Apache-2.0
"""Errors of an estimated attitude, and sensors that may explain them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from sim2real_eval.benches import findings
from sim2real_eval.common.findings import Finding
from sim2real_eval.metrics.consistency import Squares
from sim_sensors.core import rotations
from sim_sensors.core.measurements import FloatArray, IntArray
from .filter import (
    ACCELEROMETER,
    CAMERA,
    MAGNETOMETER,
    NAMES,
    AttitudeEstimate,
    AttitudeEvents,
    xi_matrices,
)

ANGLES = ('yaw', 'pitch', 'roll', 'rotation')
"""Errors in the order of [Ligorio2015], table 4, and the angle of the whole rotation error."""

BOUND = 2.5758293035489004
"""Standard deviations that hold 99 % of a Gaussian, as in figure 7 of [Ligorio2015]."""


@dataclasses.dataclass(frozen=True, eq=False)
class AttitudeErrors:
    """Errors of an estimate over time, estimated minus true.

    Attributes
    ----------
    stamp_ns : (n,) int
    angles : (n, 4) array
        Yaw, pitch and roll in -pi .. pi, rad, which are ill-defined near a pitch of 90 degrees;
        and the angle between estimate and truth, 0 .. pi.
    quaternion : (n, 4) array
        Components x y z w of the state, world to body, with the nearer sign of the truth.
    quaternion_std : (n, 4) array
        Standard deviations that the filter states for them.
    nees : Squares
        NEES of the rotation from the estimate to the truth; three degrees of freedom.
    """

    stamp_ns: IntArray
    angles: FloatArray
    quaternion: FloatArray
    quaternion_std: FloatArray
    nees: Squares

    @property
    def time(self) -> FloatArray:
        """Seconds since the first stamp, `(n,)`."""
        return np.asarray((self.stamp_ns - self.stamp_ns[0]) * 1e-9)

    @property
    def rmse(self) -> FloatArray:
        """Root mean square of each of `ANGLES`, `(4,)` rad."""
        return np.asarray(np.sqrt(np.mean(self.angles**2, axis=0)))

    @property
    def inside(self) -> FloatArray:
        """Share of the errors of each component within its 99 % bounds, `(4,)`."""
        inside = np.abs(self.quaternion) <= BOUND * self.quaternion_std
        return np.asarray(np.mean(inside, axis=0))


def attitude_errors(estimate: AttitudeEstimate, truth: FloatArray) -> AttitudeErrors:
    """Compare an estimate with the true orientations `(n, 4)`, x y z w, body to world.

    The rotation error is 2 vec(q_true conj(q_est)) with a positive scalar part. Its covariance is
    4 Xi^T P Xi, with Xi of [Crassidis2007].
    """
    true = rotations.conjugate(truth)
    q = estimate.quaternion
    sign = np.where(np.sum(true * q, axis=1) < 0.0, -1.0, 1.0)[:, None]
    true = sign * true
    error = rotations.multiply(true, rotations.conjugate(q))
    rotation = 2.0 * error[:, :3]
    angle = 2.0 * np.arctan2(np.linalg.norm(error[:, :3], axis=1), error[:, 3])
    covariance = estimate.rotation_covariance
    solved = np.linalg.solve(covariance, rotation[..., None])[..., 0]
    difference = _angles(estimate.orientation) - _angles(truth)
    difference = (difference + np.pi) % (2.0 * np.pi) - np.pi
    return AttitudeErrors(
        stamp_ns=estimate.stamp_ns,
        angles=np.column_stack([difference, angle]),
        quaternion=q - true,
        quaternion_std=np.sqrt(
            np.maximum(np.diagonal(estimate.covariance, axis1=1, axis2=2), 0.0)
        ),
        nees=Squares(
            'NEES orientation',
            estimate.stamp_ns,
            np.sum(rotation * solved, axis=1),
            np.full(len(estimate), 3),
            correlated=True,
        ),
    )


def _angles(orientation: FloatArray) -> FloatArray:
    """Return yaw, pitch, roll, `(n, 3)` rad: intrinsic z y x.

    SciPy is not used as it warns at a pitch of 90 degrees.
    """
    x, y, z, w = orientation.T
    pitch = np.arcsin(np.clip(2.0 * (w * y - z * x), -1.0, 1.0))
    roll = np.arctan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
    return np.column_stack([rotations.heading(orientation), pitch, roll])


_SPANS_S = (1.0, np.inf)
# Ratio of the normalised squares to their expectation above which a sensor is reported; larger
# for few averages, by the rate of false alarms.
_LARGEST_RATIO = 2.0
_FALSE_ALARMS = 1e-3

_GYROSCOPE = -1
# Unit, possible causes and remedy of each sensor.
_SENSORS = {
    _GYROSCOPE: (
        'rad/s',
        'it has a bias or a scale error, or the truth turns differently',
        'remove the offset of a run that starts at rest with --rest, or set --gyroscope-noise',
    ),
    ACCELEROMETER: (
        'm/s^2',
        'the body accelerates, or the sensor has a bias or another mounting',
        'set --acceleration',
    ),
    MAGNETOMETER: (
        'T',
        'magnets, iron, or another field than expected',
        'give the expected field with --world, set --magnetometer-std, or leave the sensor out '
        'with --without magnetometer',
    ),
    CAMERA: (
        'rad',
        'another frame or mounting, or wrong covariances',
        'leave the camera out with --without camera',
    ),
}


def find_suspects(
    events: AttitudeEvents,
    truth_at: Callable[[IntArray], FloatArray],
    *,
    gravity: float,
    field: FloatArray,
) -> tuple[Finding, ...]:
    """Report sensors whose errors exceed the white noise that the filter assumes.

    The difference between the measurement and its expectation at the true attitude is averaged
    over each second, and over the whole run. For white noise of the stated covariance, the
    normalised squares of the averages are chi-square with three degrees of freedom. A sensor is
    reported when they are twice as large or more.

    `truth_at` takes stamps `(n,)` ns and returns true orientations `(n, 4)`, body to world.
    `gravity` and `field` are as for `estimate_events`.
    """
    truth = truth_at(events.stamp_ns)
    # The gyroscope measures nothing between samples with equal stamps.
    later = np.flatnonzero(events.dt > 0.0)
    dt = events.dt[later]
    rotation = events.rate[later] * dt[:, None] - rotations.between(truth[later - 1], truth[later])
    suspects = [_worst_span(_GYROSCOPE, events.stamp_ns[later], rotation, events.density, dt)]
    for number in NAMES:
        chosen = events.kind == number
        if chosen.any():
            v = np.array([0.0, 0.0, gravity]) if number == ACCELEROMETER else field
            error, covariance = _measurement_errors(events, truth, chosen, number, v)
            suspects.append(_worst_span(number, events.stamp_ns[chosen], error, covariance))
    return tuple(finding for finding in suspects if finding is not None)


def _measurement_errors(
    events: AttitudeEvents, truth: FloatArray, chosen: NDArray[np.bool_], kind: int, v: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return measured minus true values, `(n, 3)`, and their covariance `(n, 3, 3)`."""
    values, covariance = events.values[chosen], events.covariance[chosen]
    true = truth[chosen]
    if kind != CAMERA:
        return values[:, :3] - rotations.rotate_back(true, v[None]), covariance[:, :3, :3]
    error = rotations.log(rotations.multiply(values, true))
    xi = xi_matrices(values)
    return error, 4.0 * np.swapaxes(xi, 1, 2) @ covariance @ xi


def _worst_span(
    sensor: int,
    stamps: IntArray,
    error: FloatArray,
    covariance: FloatArray,
    dt: FloatArray | None = None,
) -> Finding | None:
    """Return the finding about a sensor for the averaging span with the largest ratio.

    If `dt` `(n,)` is given, `error` is an integral over these times and `covariance` `(3, 3)` a
    density.
    """
    unit, causes, action = _SENSORS[sensor]
    suspects: dict[float, Finding] = {}
    for span in _SPANS_S:
        time = (stamps - stamps[0]) * 1e-9
        whole = float(time[-1])
        window = np.floor(time / span)
        starts = np.flatnonzero(np.diff(window, prepend=-1.0))
        if dt is None:
            weight = np.add.reduceat(np.ones(len(stamps)), starts)
            total = np.add.reduceat(covariance, starts)
            explained = total / weight[:, None, None] ** 2
        else:
            weight = np.add.reduceat(dt, starts)
            explained = covariance[None] / weight[:, None, None]
        mean = np.add.reduceat(error, starts) / weight[:, None]
        # The pseudo-inverse ignores axes without stated noise.
        inverse = np.linalg.pinv(explained, hermitian=True)
        ratio = float(np.einsum('ni,nij,nj->', mean, inverse, mean)) / (3 * len(mean))
        allowed = max(_LARGEST_RATIO, chi2.isf(_FALSE_ALARMS, 3 * len(mean)) / (3 * len(mean)))
        if ratio > allowed:
            off = float(np.sqrt(np.mean(np.sum(mean**2, axis=1))))
            suspects[ratio / allowed] = findings.SENSOR_OFF(
                NAMES.get(sensor, 'gyroscope'),
                span=min(span, whole),
                off=off,
                unit=unit,
                explained=float(np.sqrt(np.mean(np.trace(explained, axis1=1, axis2=2)))),
                causes=causes,
                noise=off * np.sqrt(weight.mean() / 3.0),
                action=action,
            )
    return suspects[max(suspects)] if suspects else None


# [Ligorio2015], table 4: a box with an MTx and a webcam, moved by hand for about 140 s in front of
# a chessboard. Motion, field and noise are not printed, so our errors need not agree.

PUBLISHED_SIMULATED = tuple(np.radians([0.11, 0.10, 0.12]).tolist())
"""Root mean square errors of yaw, pitch and roll with simulated sensors, rad."""

PUBLISHED_REAL = tuple(np.radians([0.53, 0.63, 0.96]).tolist())
"""Root mean square errors of yaw, pitch and roll with real sensors, rad."""
