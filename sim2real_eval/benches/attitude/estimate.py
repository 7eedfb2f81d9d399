# SPDX-License-Identifier: Apache-2.0
"""An attitude over time, estimated by the quaternion filter, and its errors."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import chi2

from sim2real_eval.benches import findings
from sim2real_eval.common.findings import Finding, FindingKind
from sim2real_eval.metrics.normalised_squares import Squares
from sim_sensors.core import rotations
from sim_sensors.core.measurements import FloatArray, IntArray
from .events import NAMES, AttitudeEvents
from .filter import ACCELEROMETER, CAMERA, MAGNETOMETER, AttitudeError, filter_events, xi_matrices


@dataclasses.dataclass(frozen=True, eq=False)
class AttitudeEstimate:
    """What the filter thinks after all samples of a stamp, strictly increasing `(n,)` ns.

    `quaternion` `(n, 4)` is the state, x y z w, world to body, `covariance` `(n, 4, 4)` its own,
    and `innovations` the NIS of each sensor: of three degrees of freedom, as a quaternion has no
    more.
    """

    stamp_ns: IntArray
    quaternion: FloatArray
    covariance: FloatArray
    innovations: tuple[Squares, ...]

    def __len__(self) -> int:
        return len(self.stamp_ns)

    @property
    def orientation(self) -> FloatArray:
        """Quaternions x y z w, `(n, 4)`, body to world."""
        return rotations.conjugate(self.quaternion)

    @property
    def rotation_covariance(self) -> FloatArray:
        """Covariance `(n, 3, 3)` rad^2 of a small rotation about the body's axes: 4 Xi^T P Xi."""
        xi = xi_matrices(self.quaternion)
        return np.asarray(4.0 * np.swapaxes(xi, 1, 2) @ self.covariance @ xi)


def estimate_events(
    events: AttitudeEvents,
    first: ArrayLike,
    *,
    gravity: float,
    field: ArrayLike,
    initial_std: float,
) -> AttitudeEstimate:
    """Run the filter over samples, under `gravity`, m/s^2, and in the magnetic field that it
    expects, `field` `(3,)` T, world.

    `first` `(4,)` is the orientation at the first sample of the IMU, x y z w, body to world; off
    by `initial_std` about each axis. Raises AttitudeError when the estimate is not finite.
    """
    quaternion = rotations.conjugate(np.asarray(first, dtype=np.float64)[None])
    xi = xi_matrices(quaternion)[0]
    states, covariances, nis = filter_events(
        events.kind,
        events.dt,
        events.rate,
        events.values,
        events.covariance,
        events.density,
        np.array([0.0, 0.0, gravity]),
        np.asarray(field, dtype=np.float64),
        np.ascontiguousarray(quaternion[0]),
        0.25 * initial_std**2 * xi @ xi.T,
    )
    if not np.isfinite(states).all():
        raise AttitudeError(
            'the estimate is not finite; the covariances that the sensors state must be positive '
            'definite'
        )
    last = np.append(events.stamp_ns[1:] != events.stamp_ns[:-1], True)
    innovations = []
    for kind, name in NAMES.items():
        mine = events.kind == kind
        if mine.any():
            stamps, freedom = events.stamp_ns[mine], np.full(int(mine.sum()), 3)
            squares = Squares(f'NIS {name}', stamps, nis[mine], freedom, correlated=False)
            innovations.append(squares)
    return AttitudeEstimate(
        events.stamp_ns[last], states[last], covariances[last], tuple(innovations)
    )


ANGLES = ('yaw', 'pitch', 'roll', 'rotation')
"""In the order of [Ligorio2015], table 4; then the angle of the whole rotation that is wrong."""

BOUND = 2.5758293035489004
"""Standard deviations that hold 99 % of a Gaussian, as in figure 7 of [Ligorio2015]."""


@dataclasses.dataclass(frozen=True, eq=False)
class AttitudeErrors:
    """Errors of an estimate over time, estimated less true."""

    stamp_ns: IntArray  # (n,)
    # (n, 4) Yaw, pitch, roll, rad, in -pi .. pi, which mean little where the pitch is near 90
    # degrees; and the angle between estimate and truth, 0 .. pi, which means the same everywhere.
    angles: FloatArray
    # (n, 4) Components x y z w of the state, world to body, of the sign that is nearer
    quaternion: FloatArray
    quaternion_std: FloatArray  # (n, 4) what the filter thinks they are
    nees: Squares  # of the rotation from the estimate to the truth; three degrees of freedom

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
        held = np.abs(self.quaternion) <= BOUND * self.quaternion_std
        return np.asarray(np.mean(held, axis=0))


def attitude_errors(estimate: AttitudeEstimate, truth: FloatArray) -> AttitudeErrors:
    """Hold an estimate against the true orientation x y z w at its stamps, `(n, 4)`, body to
    world.

    With Xi of [Crassidis2007] the rotation error is 2 vec(q_true conj(q_est)), of the sign whose
    scalar part is positive, with the covariance 4 Xi^T P Xi.
    """
    true = rotations.conjugate(truth)
    q = estimate.quaternion
    sign = np.where(np.sum(true * q, axis=1) < 0.0, -1.0, 1.0)[:, None]
    true = sign * true
    wrong = rotations.multiply(true, rotations.conjugate(q))
    rotation = 2.0 * wrong[:, :3]
    angle = 2.0 * np.arctan2(np.linalg.norm(wrong[:, :3], axis=1), wrong[:, 3])
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

    Not by scipy, which warns at a pitch of 90 degrees.
    """
    x, y, z, w = orientation.T
    pitch = np.arcsin(np.clip(2.0 * (w * y - z * x), -1.0, 1.0))
    roll = np.arctan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
    return np.column_stack([rotations.heading(orientation), pitch, roll])


_SPANS_S = (1.0, np.inf)
# A sensor is named from twice the squares on that it may have, more where few averages scatter.
_MOST = 2.0
_FALSE_ALARMS = 1e-3

_SUSPECTS = {
    ACCELEROMETER: findings.ACCELEROMETER_OFF,
    MAGNETOMETER: findings.MAGNETOMETER_OFF,
    CAMERA: findings.CAMERA_OFF,
}


def suspects(
    events: AttitudeEvents,
    truth_at: Callable[[IntArray], FloatArray],
    *,
    gravity: float,
    field: FloatArray,
) -> tuple[Finding, ...]:
    """Say which sensors measure what the filter does not know of.

    What a sensor measured less what it would at the true attitude is averaged over each second,
    and over the whole run. White noise of the stated covariance leaves averages whose normalised
    squares are chi-square of three degrees of freedom; a sensor is named when they are twice that
    or more. What the user may do about it is said as well.

    `truth_at` takes stamps `(n,)` ns and returns true orientations `(n, 4)`, body to world; the
    others are as for `estimate_events`.
    """
    truth = truth_at(events.stamp_ns)
    # Samples with equal stamps are no time apart, in which nothing is measured.
    later = np.flatnonzero(events.dt > 0.0)
    dt = events.dt[later]
    turned = events.rate[later] * dt[:, None] - rotations.between(truth[later - 1], truth[later])
    found = [_worst(findings.GYROSCOPE_OFF, events.stamp_ns[later], turned, events.density, dt)]
    for number, kind in _SUSPECTS.items():
        chosen = events.kind == number
        if chosen.any():
            v = np.array([0.0, 0.0, gravity]) if number == ACCELEROMETER else field
            wrong, covariance = _differences(events, truth, chosen, number, v)
            found.append(_worst(kind, events.stamp_ns[chosen], wrong, covariance))
    return tuple(one for one in found if one is not None)


def _differences(
    events: AttitudeEvents, truth: FloatArray, chosen: NDArray[np.bool_], kind: int, v: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return measured less true, `(n, 3)`, and its covariance `(n, 3, 3)`."""
    values, covariance = events.values[chosen], events.covariance[chosen]
    true = truth[chosen]
    if kind != CAMERA:
        return values[:, :3] - rotations.rotate_back(true, v[None]), covariance[:, :3, :3]
    wrong = rotations.log(rotations.multiply(values, true))
    xi = xi_matrices(values)
    return wrong, 4.0 * np.swapaxes(xi, 1, 2) @ covariance @ xi


def _worst(
    kind: FindingKind,
    stamps: IntArray,
    wrong: FloatArray,
    covariance: FloatArray,
    dt: FloatArray | None = None,
) -> Finding | None:
    """Return what is wrong with a sensor, from the span in which it is furthest off.

    With `dt`, `wrong` is an integral over these times and `covariance` `(3, 3)` a density.
    """
    found: dict[float, Finding] = {}
    for span in _SPANS_S:
        time = (stamps - stamps[0]) * 1e-9
        whole = float(time[-1])
        window = np.floor(time / span)
        starts = np.flatnonzero(np.diff(window, prepend=-1.0))
        if dt is None:
            weight = np.add.reduceat(np.ones(len(stamps)), starts)
            total = np.add.reduceat(covariance, starts)
            left = total / weight[:, None, None] ** 2
        else:
            weight = np.add.reduceat(dt, starts)
            left = covariance[None] / weight[:, None, None]
        mean = np.add.reduceat(wrong, starts) / weight[:, None]
        # An axis that states no noise at all has no inverse, and says nothing.
        inverse = np.linalg.pinv(left, hermitian=True)
        ratio = float(np.einsum('ni,nij,nj->', mean, inverse, mean)) / (3 * len(mean))
        allowed = max(_MOST, chi2.isf(_FALSE_ALARMS, 3 * len(mean)) / (3 * len(mean)))
        if ratio > allowed:
            off = float(np.sqrt(np.mean(np.sum(mean**2, axis=1))))
            noise = float(np.sqrt(np.mean(np.trace(left, axis1=1, axis2=2))))
            enough = off * np.sqrt(weight.mean() / 3.0)
            found[ratio / allowed] = kind(span=min(span, whole), off=off, left=noise, noise=enough)
    return found[max(found)] if found else None


# Errors of the attitude filter as printed in [Ligorio2015], to be shown beside ours.
#
# Origin: [Ligorio2015], table 4: a box with an MTx and a webcam, moved by hand for about 140 s
# before a chessboard. Its motion, field and noise are not printed, so ours need not agree.

PUBLISHED_SIMULATED = tuple(np.radians([0.11, 0.10, 0.12]).tolist())
"""Root mean square errors of yaw, pitch and roll with simulated sensors, rad."""

PUBLISHED_REAL = tuple(np.radians([0.53, 0.63, 0.96]).tolist())
"""With real ones."""
