# SPDX-License-Identifier: Apache-2.0
"""Where a camera is in a scene, with a covariance; and its change to that of the body."""

from __future__ import annotations

import dataclasses

import numpy as np

from sim_sensors.measurements import FloatArray

__all__ = ['CameraPose', 'skew_matrices']


@dataclasses.dataclass(frozen=True, eq=False)
class CameraPose:
    """Pose of an optical frame in a scene.

    Attributes
    ----------
    position : (3,)
        m, of the camera in the scene.
    rotation : (3, 3)
        Takes vectors of the optical frame to the scene.
    covariance : (6, 6)
        Of x, y, z and of a small rotation about the scene's x, y, z, as in ROS; m^2, m rad, rad^2.
    """

    position: FloatArray
    rotation: FloatArray
    covariance: FloatArray

    def depths(self, points: FloatArray) -> FloatArray:
        """Return how far points `(n, 3)` of the scene are in front of the camera, `(n,)` m."""
        depths: FloatArray = (points - self.position) @ self.rotation[:, 2]
        return depths

    def seen_from(self, offset: FloatArray, rotation: FloatArray) -> CameraPose:
        """Return the pose of the body that carries the camera.

        Parameters
        ----------
        offset : (3,)
            Of the camera in the body, m; taken as exact.
        rotation : (3, 3)
            Takes vectors of the optical frame to the body; taken as exact.
        """
        turned = self.rotation @ rotation.T
        arm = turned @ offset
        # p_body = p - R l: a rotation by d moves the body by -d x (R l) = [R l]x d.
        change = np.eye(6)
        change[:3, 3:] = skew_matrices(arm[None])[0]
        return CameraPose(self.position - arm, turned, change @ self.covariance @ change.T)


def skew_matrices(vectors: FloatArray) -> FloatArray:
    """Return the matrices [v]x `(n, 3, 3)` of vectors `(n, 3)`, with [v]x a = v x a."""
    result = np.zeros((len(vectors), 3, 3))
    result[:, 0, 1], result[:, 0, 2] = -vectors[:, 2], vectors[:, 1]
    result[:, 1, 0], result[:, 1, 2] = vectors[:, 2], -vectors[:, 0]
    result[:, 2, 0], result[:, 2, 1] = -vectors[:, 1], vectors[:, 0]
    return result
