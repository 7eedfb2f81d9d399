# SPDX-License-Identifier: Apache-2.0
"""An estimated attitude against the true one: Euler angles, quaternion components, NEES."""

from __future__ import annotations

import dataclasses

import numpy as np

from sim2real_eval.attitude.estimate import AttitudeEstimate
from sim2real_eval.metrics.normalised_squares import Squares
from sim_sensors import rotations
from sim_sensors.measurements import FloatArray, IntArray

__all__ = ['ANGLES', 'BOUND', 'AttitudeErrors', 'attitude_errors']

ANGLES = ('yaw', 'pitch', 'roll', 'rotation')
"""In the order of [Ligorio2015], table 4; then the angle of the whole rotation that is wrong."""

BOUND = 2.5758293035489004
"""Standard deviations that hold 99 % of a Gaussian, as in figure 7 of [Ligorio2015]."""


@dataclasses.dataclass(frozen=True, eq=False)
class AttitudeErrors:
    """Errors of an estimate over time, estimated less true.

    Attributes
    ----------
    stamp_ns : (n,) int64
    angles : (n, 4)
        Yaw, pitch, roll, rad, in -pi .. pi, which mean little where the pitch is near 90 degrees;
        and the angle between estimate and truth, 0 .. pi, which means the same everywhere.
    quaternion : (n, 4)
        Components x y z w of the state, world to body, of the sign that is nearer.
    quaternion_std : (n, 4)
        What the filter thinks they are.
    rotation : (n, 3)
        Rotation from the estimate to the truth about the body's axes, rad.
    nees : Squares
        Of `rotation`; three degrees of freedom.
    """

    stamp_ns: IntArray
    angles: FloatArray
    quaternion: FloatArray
    quaternion_std: FloatArray
    rotation: FloatArray
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
        held = np.abs(self.quaternion) <= BOUND * self.quaternion_std
        return np.asarray(np.mean(held, axis=0))


def attitude_errors(estimate: AttitudeEstimate, truth: FloatArray) -> AttitudeErrors:
    """Hold an estimate against the truth.

    Parameters
    ----------
    estimate : AttitudeEstimate
    truth : (n, 4)
        True orientation x y z w at its stamps, body to world.

    Notes
    -----
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
        rotation=rotation,
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
    yaw = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    pitch = np.arcsin(np.clip(2.0 * (w * y - z * x), -1.0, 1.0))
    roll = np.arctan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
    return np.column_stack([yaw, pitch, roll])
