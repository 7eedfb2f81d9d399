# SPDX-License-Identifier: Apache-2.0
"""What pose a camera makes of the features that it sees, if any."""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy.spatial.transform import Rotation

from sim_sensors.core.errors import SensorError
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import Parameters, non_negative, parameter
from sim_sensors.core.rotations import skew
from .dlt import PLANAR_MINIMUM, CameraPose, dlt_pose, is_planar
from .pinhole import Intrinsics

# The pose that explains the pixels best: least squares of the reprojection error.
#
# With white pixel noise this is the maximum-likelihood pose, and its covariance is the inverse of
# the information, (J^T W J)^-1 (Hartley and Zisserman, section 5.2).

_ITERATIONS = 30
_HALVINGS = 12
# Of what a step would still save, against the cost: a millionth of a deviation; and of nothing.
_CONVERGED = 1e-13
_NOTHING = 1e-22


def refined_pose(
    pose: CameraPose,
    points: FloatArray,
    pixels: FloatArray,
    intrinsics: Intrinsics,
    std: FloatArray,
) -> CameraPose:
    """Return the pose near `pose` with the least sum of squared reprojection errors.

    Points `(n, 3)` m of the scene, n >= 3, are seen at pixels `(n, 2)` with standard deviations
    `std` `(2,)` px, > 0, along u and v. What is told as covariance is proportional to its square;
    the pose depends on its ratio, and not on the covariance of `pose`. Points of a plane that are
    far away for their extent are explained nearly as well by the plane tilted the other way; that
    pose is tried as well, and the better one taken.

    Raises SensorError when the points leave the pose open, or `pose` does not see all of them.
    """
    sight = _Sight(points, pixels, intrinsics, std)
    best, cost = sight.descend(pose)
    if is_planar(points, nearly=True):
        other, other_cost = sight.descend(_mirrored(best, points))
        if other_cost < cost:
            best, cost = other, other_cost
    if not np.isfinite(cost):
        raise SensorError('the pose to begin with does not see all points')
    jacobian = sight.residuals(best)[1]
    information = jacobian.T @ jacobian
    # Metres and radians are made comparable before it is judged whether it can be inverted.
    scale = 1.0 / np.sqrt(np.maximum(np.diag(information), np.finfo(float).tiny))
    scaled = information * scale[:, None] * scale
    if not np.linalg.cond(scaled) < 1e14:
        raise SensorError('the points leave the pose open; must not be on a line')
    covariance = np.linalg.inv(scaled) * scale[:, None] * scale
    return dataclasses.replace(best, covariance=0.5 * (covariance + covariance.T))


@dataclasses.dataclass(frozen=True, eq=False)
class _Sight:
    """Points of a scene and where they are seen; as of `refined_pose`."""

    points: FloatArray
    pixels: FloatArray
    intrinsics: Intrinsics
    std: FloatArray

    def descend(self, pose: CameraPose) -> tuple[CameraPose, float]:
        """Gauss-Newton with steps halved until they help; return the pose and its cost."""
        residuals, jacobian = self.residuals(pose)
        cost = float(residuals @ residuals)
        if not np.isfinite(cost):
            return pose, np.inf
        for _ in range(_ITERATIONS):
            solution = np.linalg.lstsq(jacobian, residuals, rcond=None)[0]
            step = -np.asarray(solution, dtype=np.float64)
            saved = jacobian @ step
            if saved @ saved <= _CONVERGED * cost + _NOTHING:
                break
            for _ in range(_HALVINGS):
                tried = _moved(pose, step)
                tried_residuals, tried_jacobian = self.residuals(tried)
                tried_cost = float(tried_residuals @ tried_residuals)
                if tried_cost <= cost:
                    break
                step *= 0.5
            else:
                return pose, cost
            pose, residuals, jacobian, cost = tried, tried_residuals, tried_jacobian, tried_cost
        return pose, cost

    def residuals(self, pose: CameraPose) -> tuple[FloatArray, FloatArray]:
        """Return weighted residuals `(2 n,)`, and their derivative by position and rotation."""
        offset = self.points - pose.position
        local = offset @ pose.rotation
        residuals = (self.intrinsics.project(local) - self.pixels) / self.std
        rays = local[:, :2] / local[:, 2:]
        by_point = np.zeros((len(offset), 2, 3))
        by_point[:, 0, 0] = by_point[:, 1, 1] = 1.0 / local[:, 2]
        by_point[:, :, 2] = -rays / local[:, 2:]
        by_point = self.intrinsics.ray_jacobian(rays) @ by_point @ pose.rotation.T
        # Rotated by d, the point is seen at R^T (offset - d x offset).
        jacobian = np.concatenate([-by_point, by_point @ skew(offset)], axis=2)
        return residuals.reshape(-1), (jacobian / self.std[:, None]).reshape(-1, 6)


def _moved(pose: CameraPose, step: FloatArray) -> CameraPose:
    turned = Rotation.from_rotvec(step[3:]).as_matrix() @ pose.rotation
    return dataclasses.replace(pose, position=pose.position + step[:3], rotation=turned)


def _mirrored(pose: CameraPose, points: FloatArray) -> CameraPose:
    """Return the pose that sees the plane of the points tilted the other way.

    The scene is turned by half a turn about its normal and then about the line of sight: a point
    keeps its place across the line of sight and takes the opposite one along it.
    """
    centre = points.mean(axis=0)
    normal = np.linalg.svd(points - centre, full_matrices=False)[2][2]
    sight = pose.rotation.T @ (centre - pose.position)
    sight_half = Rotation.from_rotvec(np.pi * sight / np.linalg.norm(sight)).as_matrix()
    normal_half = Rotation.from_rotvec(np.pi * normal).as_matrix()
    rotation = (sight_half @ pose.rotation.T @ normal_half).T
    return dataclasses.replace(pose, position=centre - rotation @ sight, rotation=rotation)


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
    stated_std: float = non_negative(
        0.0, 'px', 'Pixel noise that the covariance is propagated from; 0: that of the camera.'
    )
    fewest: int = parameter(
        PLANAR_MINIMUM, '1', 'No pose from fewer features.', minimum=PLANAR_MINIMUM
    )
    largest_residual: float = non_negative(
        0.0,
        'px',
        'No pose where the root mean square of the reprojection errors is larger; 0: no limit.',
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

        Features are at `points` `(n, 3)` m of the world and measured at `pixels` `(n, 2)`, whose
        deviations along u and v are `std` `(2,)`; `rays` are undistorted. Intrinsics are known.
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
    return by_pixel @ np.swapaxes(by_pixel, 1, 2)
