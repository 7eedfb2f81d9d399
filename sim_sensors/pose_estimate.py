# SPDX-License-Identifier: Apache-2.0
"""What pose a camera makes of the features that it sees, if any."""

from __future__ import annotations

import dataclasses

import numpy as np

from sim_sensors.camera_pose import CameraPose
from sim_sensors.dlt import PLANAR_MINIMUM, dlt_pose
from sim_sensors.errors import SensorError
from sim_sensors.measurements import FloatArray
from sim_sensors.parameters import Parameters, parameter
from sim_sensors.pinhole import Intrinsics
from sim_sensors.pose_refinement import refined_pose

__all__ = ['PoseEstimate']


@dataclasses.dataclass(frozen=True)
class PoseEstimate(Parameters):
    """How the pose is estimated from the features, whose places in the world are known."""

    method: str = parameter(
        'refined',
        '',
        'dlt: direct linear transformation; refined: least squares of the reprojection error, '
        'begun there; none: no pose.',
        choices=('none', 'dlt', 'refined'),
    )
    stated_std: float = parameter(
        0.0,
        'px',
        'Pixel noise that the covariance is propagated from; 0: that of the camera.',
        minimum=0.0,
    )
    fewest: int = parameter(
        PLANAR_MINIMUM, '1', 'No pose from fewer features.', minimum=PLANAR_MINIMUM
    )
    largest_residual: float = parameter(
        0.0,
        'px',
        'No pose where the root mean square of the reprojection errors is larger; 0: no limit.',
        minimum=0.0,
    )

    def of(
        self,
        points: FloatArray,
        pixels: FloatArray,
        rays: FloatArray,
        intrinsics: Intrinsics,
        std: FloatArray,
    ) -> CameraPose | None:
        """Return the pose of the optical frame; None where the features do not give one.

        Parameters
        ----------
        points : (n, 3)
            Of the features in the world, m.
        pixels, rays : (n, 2)
            As measured, px, and undistorted.
        intrinsics : Intrinsics
            Of the camera; taken as known.
        std : (2,)
            Of the pixels along u and v.
        """
        usable = np.isfinite(rays).all(axis=1)
        if self.method == 'none' or usable.sum() < self.fewest:
            return None
        points, pixels, rays = points[usable], pixels[usable], rays[usable]
        stated = np.full(2, self.stated_std) if self.stated_std > 0.0 else std
        try:
            pose = dlt_pose(points, rays, _ray_covariance(intrinsics, rays, stated))
            if self.method == 'refined':
                # Without noise all weights do, and nothing is uncertain.
                known = bool((stated > 0.0).all())
                weight = stated if known else np.ones(2)
                pose = refined_pose(pose, points, pixels, intrinsics, weight)
                if not known:
                    pose = dataclasses.replace(pose, covariance=np.zeros((6, 6)))
        except SensorError:
            return None
        if self.largest_residual > 0.0:
            seen = intrinsics.project((points - pose.position) @ pose.rotation)
            if not np.sqrt(np.mean((seen - pixels) ** 2)) <= self.largest_residual:
                return None
        return pose


def _ray_covariance(intrinsics: Intrinsics, rays: FloatArray, std: FloatArray) -> FloatArray:
    """Return the covariance of rays `(n, 2, 2)` whose pixels have independent errors."""
    by_pixel = np.linalg.inv(intrinsics.ray_jacobian(rays)) * std
    covariance: FloatArray = by_pixel @ np.swapaxes(by_pixel, 1, 2)
    return covariance
