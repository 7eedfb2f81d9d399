# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Pose of a camera from known points: direct linear transformation and least squares."""

from __future__ import annotations

import contextlib
import dataclasses

import numpy as np

from sim_sensors.core.errors import SensorError
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import Parameters, non_negative, parameter
from sim_sensors.core.rotations import skew
from .pinhole import Intrinsics


@dataclasses.dataclass(frozen=True, eq=False)
class CameraPose:
    """Pose of an optical frame in a scene.

    Attributes
    ----------
    position : (3,)
        Position of the camera, m.
    rotation : (3, 3)
        Rotation matrix, optical frame to scene.
    covariance : (6, 6)
        Covariance of x, y, z and a small rotation about the x, y, z axes of the scene, as in ROS;
        m^2, m rad, rad^2.
    """

    position: FloatArray
    rotation: FloatArray
    covariance: FloatArray

    def depths(self, points: FloatArray) -> FloatArray:
        """Return the depths of points `(n, 3)` of the scene in front of the camera, `(n,)` m."""
        return (points - self.position) @ self.rotation[:, 2]

    def body_pose(self, offset: FloatArray, rotation: FloatArray) -> CameraPose:
        """Return the pose of the body that carries the camera at `offset` `(3,)` m.

        `rotation` `(3, 3)` takes vectors of the optical frame to the body. Both are exact.
        """
        body_rotation = self.rotation @ rotation.T
        arm = body_rotation @ offset
        # p_body = p - R l: a rotation by d moves the body by -d x (R l) = [R l]x d.
        change = np.eye(6)
        change[:3, 3:] = skew(arm[None])[0]
        return CameraPose(self.position - arm, body_rotation, change @ self.covariance @ change.T)


# Direct linear transformation, planar and general: [Hartley2004], sections 4.1 (homography), 4.4
# (normalisation), 7.1 (camera matrix). The covariance is that of this estimate, to first order in
# the pixel noise; it is larger than that of least squares.

# Smallest numbers of points in a plane and not in a plane.
PLANAR_MINIMUM = 4
_GENERAL_MINIMUM = 6
# Ratio of thickness to extent below which points are in a plane.
_PLANE = 1e-6
# Ratio below which points are near a plane: the camera matrix is then nearly undetermined, and the
# pose from the nearest plane may be better.
_NEAR_PLANE = 0.2
# Smallest singular value, relative to the largest, of a system with one solution.
_DEGENERATE = 1e-8
# Step of the numerical derivative of a pose by the entries of a matrix of norm 1.
_STEP = 1e-6


def is_planar(points: FloatArray, *, nearly: bool = False) -> bool:
    """Return True if points `(n, 3)`, n >= 3, are in one plane.

    If `nearly`, their thickness may be up to a fifth of their extent.
    """
    extent = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    return bool(extent[2] <= (_NEAR_PLANE if nearly else _PLANE) * extent[0])


def dlt_pose(
    points: FloatArray, rays: FloatArray, ray_covariance: FloatArray | None = None
) -> CameraPose:
    """Estimate the pose of a camera by the direct linear transformation.

    Four or more points in one plane use the homography of that plane; six or more other points use
    the camera matrix. Points near a plane use both, and the pose with the smaller error is kept.

    Parameters
    ----------
    points : (n, 3)
        Points of the scene, m.
    rays : (n, 2)
        Undistorted X/Z, Y/Z of the points in the optical frame; see `Intrinsics.rays`.
    ray_covariance : (n, 2, 2), optional
        Covariance of each ray. By default the covariance of the pose is zero.

    Raises
    ------
    SensorError
        When there are too few points, or they do not determine the pose (points on a line, for
        instance).
    """
    count = len(points)
    is_finite = bool(np.isfinite(rays).all() and np.isfinite(points).all())
    planar = is_finite and count >= PLANAR_MINIMUM and is_planar(points)
    if not is_finite or count < (PLANAR_MINIMUM if planar else _GENERAL_MINIMUM):
        raise SensorError(
            f'{count} points do not determine the pose; must be at least {PLANAR_MINIMUM} in a '
            f'plane or {_GENERAL_MINIMUM} not in a plane, with finite coordinates'
        )
    if planar or not is_planar(points, nearly=True):
        return _linear_pose(points, rays, ray_covariance, planar)
    poses = []
    for as_plane in (True, False):
        with contextlib.suppress(SensorError):
            poses.append(_linear_pose(points, rays, ray_covariance, as_plane))
    if not poses:
        raise SensorError('the points do not determine the pose; must not be on a line')
    return min(poses, key=lambda pose: _misfit(pose, points, rays))


def _misfit(pose: CameraPose, points: FloatArray, rays: FloatArray) -> float:
    """Return the sum of squared ray errors; infinite if a point is behind the camera."""
    local = (points - pose.position) @ pose.rotation
    if not (local[:, 2] > 0.0).all():
        return np.inf
    return float(np.sum((local[:, :2] / local[:, 2:] - rays) ** 2))


def _linear_pose(
    points: FloatArray, rays: FloatArray, ray_covariance: FloatArray | None, planar: bool
) -> CameraPose:
    """Return the pose by the homography of the nearest plane, or by the camera matrix."""
    count = len(points)
    centre = points.mean(axis=0)
    # Right-handed axes of the scene; if it is a plane, the first two span it.
    axes = np.linalg.svd(points - centre, full_matrices=False)[2]
    axes[2] = np.cross(axes[0], axes[1])
    local = (points - centre) @ axes.T
    local = local[:, :2] if planar else local
    size = _mean_norm(local)
    middle = rays.mean(axis=0)
    spread = _mean_norm(rays - middle)
    if not (size > 0.0 and spread > 0.0):
        raise SensorError('the points do not determine the pose; must not coincide')
    world = np.column_stack([local / size, np.ones(count)])
    image = (rays - middle) / spread
    if planar:
        _check_homography(world)
    columns = world.shape[1]
    system = _equations(world, image)
    # Four points of a plane give fewer equations than entries, so all rows of `right` are needed.
    _, values, right = np.linalg.svd(system, full_matrices=len(system) < 3 * columns)
    if values[3 * columns - 2] <= _DEGENERATE * values[0]:
        raise SensorError('the points do not determine the pose; must not be on a line')
    undo = np.array([[spread, 0.0, middle[0]], [0.0, spread, middle[1]], [0.0, 0.0, 1.0]])
    entries = right[3 * columns - 1]

    def poses_from_entries(stack: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return positions and rotations, optical frame to scene, of rows of entries."""
        matrices = undo @ stack.reshape(-1, 3, columns)
        matrices[:, :, :-1] /= size
        rotation, shift = (
            _decompose_homographies(matrices) if planar else _decompose_cameras(matrices)
        )
        rotations = np.swapaxes(rotation @ axes, 1, 2)
        return centre - np.einsum('kij,kj->ki', rotations, shift), rotations

    # A matrix and its negative are the same camera; choose the sign with the points in front.
    if ((undo[2] @ entries.reshape(3, columns)) @ world.T).sum() < 0.0:
        entries = -entries
    position, rotation = (array[0] for array in poses_from_entries(entries[None]))
    pose = CameraPose(position, rotation, np.zeros((6, 6)))
    if not (pose.depths(points) > 0.0).all():
        raise SensorError('some points are behind the camera; all must be in front of it')
    if ray_covariance is None:
        return pose
    # The product of system and entries is zero. If a ray changes, this product changes by minus
    # the depth times the change of the ray, and the entries change by minus the pseudo-inverse of
    # the system times that.
    depth = world @ entries.reshape(3, columns)[2]
    left, values, right = np.linalg.svd(system, full_matrices=False)
    last = 3 * columns - 1
    inverse = (right[:last].T / values[:last]) @ left[:, :last].T
    by_ray = inverse.reshape(-1, count, 2) * (depth / spread)[:, None]
    noise = np.einsum('ani,nij,bnj->ab', by_ray, ray_covariance, by_ray)
    steps = _STEP * np.eye(3 * columns)
    position_up, rotation_up = poses_from_entries(entries + steps)
    position_down, rotation_down = poses_from_entries(entries - steps)
    slope = np.empty((6, 3 * columns))
    slope[:3] = (position_up - position_down).T
    turn = (rotation_up - rotation_down) @ rotation.T
    slope[3:] = 0.5 * np.stack(
        [
            turn[:, 2, 1] - turn[:, 1, 2],
            turn[:, 0, 2] - turn[:, 2, 0],
            turn[:, 1, 0] - turn[:, 0, 1],
        ]
    )
    slope /= 2.0 * _STEP
    return CameraPose(position, rotation, slope @ noise @ slope.T)


def _check_homography(world: FloatArray) -> None:
    """Raise SensorError if points `(n, 3)`, x y 1, of a plane do not determine a homography.

    Noise in the measured rays would hide this, so the equations of the exact points are tested. A
    camera multiplies these by a regular matrix, which keeps their rank.
    """
    values = np.linalg.svd(_equations(world, world[:, :2]), compute_uv=False)
    if values[7] <= _DEGENERATE * values[0]:
        raise SensorError(
            'the points do not determine the pose; must not be on a line, nor all but one of them'
        )


def _equations(world: FloatArray, image: FloatArray) -> FloatArray:
    """Return the homogeneous equations of the matrix entries, `(2 n, 3 c)`, two rows per point."""
    count, columns = world.shape
    system = np.zeros((count, 2, 3 * columns))
    system[:, 0, :columns] = world
    system[:, 1, columns : 2 * columns] = world
    system[:, :, 2 * columns :] = -image[:, :, None] * world[:, None, :]
    return system.reshape(2 * count, 3 * columns)


def _decompose_homographies(homographies: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return rotations and translations, plane to camera, of homographies `(k, 3, 3)`."""
    first, second = homographies[:, :, 0], homographies[:, :, 1]
    scale = 0.5 * (np.linalg.norm(first, axis=1) + np.linalg.norm(second, axis=1))
    first, second = first / scale[:, None], second / scale[:, None]
    near = np.stack([first, second, np.cross(first, second)], axis=2)
    return _nearest_rotations(near)[0], homographies[:, :, 2] / scale[:, None]


def _decompose_cameras(matrices: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return rotations and translations, scene to camera, of matrices `(k, 3, 4)`."""
    turn, values = _nearest_rotations(matrices[:, :, :3])
    return turn, matrices[:, :, 3] / values.mean(axis=1)[:, None]


def _nearest_rotations(matrices: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the nearest rotations to matrices `(k, 3, 3)`, and the singular values `(k, 3)`."""
    left, values, right = np.linalg.svd(matrices)
    sign = np.sign(np.linalg.det(left @ right))
    left[:, :, 2] *= sign[:, None]
    return left @ right, values


def _mean_norm(vectors: FloatArray) -> float:
    return float(np.linalg.norm(vectors, axis=1).mean())


# Least squares of the reprojection error. For white pixel noise this is the maximum-likelihood
# pose, and its covariance is the inverse of the information, (J^T W J)^-1 ([Hartley2004], section
# 5.2).

_ITERATIONS = 30
_HALVINGS = 12
# Relative and absolute reduction of the cost, in squared deviations, below which the iteration
# stops.
_CONVERGED = 1e-13
_NEGLIGIBLE = 1e-22


def refined_pose(
    pose: CameraPose,
    points: FloatArray,
    pixels: FloatArray,
    intrinsics: Intrinsics,
    std: FloatArray,
) -> CameraPose:
    """Return the pose near `pose` with the least sum of squared reprojection errors.

    A small or distant plane has nearly the same pixels if it is tilted the opposite way. For
    points near a plane, that pose is tried too, and the better of both is returned.

    Parameters
    ----------
    pose : CameraPose
        Initial pose; its covariance is not used.
    points : (n, 3)
        Points of the scene, m, n >= 3.
    pixels : (n, 2)
        Their pixels.
    intrinsics : Intrinsics
        Calibration of the camera.
    std : (2,)
        Standard deviations of the pixels along u and v, px, > 0. They scale the covariance.

    Raises
    ------
    SensorError
        When the points do not determine the pose, or not all are in front of the initial one.
    """
    reprojection = _Reprojection(points, pixels, intrinsics, std)
    best, cost = reprojection.minimise(pose)
    if is_planar(points, nearly=True):
        other, other_cost = reprojection.minimise(_mirror_pose(best, points))
        if other_cost < cost:
            best, cost = other, other_cost
    if not np.isfinite(cost):
        raise SensorError('the initial pose does not see all points; must have all in front of it')
    jacobian = reprojection.residuals(best)[1]
    information = jacobian.T @ jacobian
    # Scaling makes metres and radians comparable before the condition is tested.
    scale = 1.0 / np.sqrt(np.maximum(np.diag(information), np.finfo(float).tiny))
    scaled = information * scale[:, None] * scale
    if not np.linalg.cond(scaled) < 1e14:
        raise SensorError('the points do not determine the pose; must not be on a line')
    covariance = np.linalg.inv(scaled) * scale[:, None] * scale
    return dataclasses.replace(best, covariance=0.5 * (covariance + covariance.T))


@dataclasses.dataclass(frozen=True, eq=False)
class _Reprojection:
    """Least-squares problem of `refined_pose`."""

    points: FloatArray
    pixels: FloatArray
    intrinsics: Intrinsics
    std: FloatArray

    def minimise(self, pose: CameraPose) -> tuple[CameraPose, float]:
        """Minimise by Gauss-Newton steps, halved until the cost falls; return pose and cost."""
        residuals, jacobian = self.residuals(pose)
        cost = float(residuals @ residuals)
        if not np.isfinite(cost):
            return pose, np.inf
        for _ in range(_ITERATIONS):
            solution = np.linalg.lstsq(jacobian, residuals, rcond=None)[0]
            step = -np.asarray(solution, dtype=np.float64)
            change = jacobian @ step
            if change @ change <= _CONVERGED * cost + _NEGLIGIBLE:
                break
            for _ in range(_HALVINGS):
                new_pose = _apply_step(pose, step)
                new_residuals, new_jacobian = self.residuals(new_pose)
                new_cost = float(new_residuals @ new_residuals)
                if new_cost <= cost:
                    break
                step *= 0.5
            else:
                return pose, cost
            pose, residuals, jacobian, cost = new_pose, new_residuals, new_jacobian, new_cost
        return pose, cost

    def residuals(self, pose: CameraPose) -> tuple[FloatArray, FloatArray]:
        """Return weighted residuals `(2 n,)` and their derivative by the pose, `(2 n, 6)`."""
        offset = self.points - pose.position
        local = offset @ pose.rotation
        residuals = (self.intrinsics.project(local) - self.pixels) / self.std
        rays = local[:, :2] / local[:, 2:]
        by_point = np.zeros((len(offset), 2, 3))
        by_point[:, 0, 0] = by_point[:, 1, 1] = 1.0 / local[:, 2]
        by_point[:, :, 2] = -rays / local[:, 2:]
        by_point = self.intrinsics.ray_jacobian(rays) @ by_point @ pose.rotation.T
        # A rotation of the camera by d takes the point to R^T (offset - d x offset).
        jacobian = np.concatenate([-by_point, by_point @ skew(offset)], axis=2)
        return residuals.reshape(-1), (jacobian / self.std[:, None]).reshape(-1, 6)


def _apply_step(pose: CameraPose, step: FloatArray) -> CameraPose:
    from scipy.spatial.transform import Rotation

    rotation = Rotation.from_rotvec(step[3:]).as_matrix() @ pose.rotation
    return dataclasses.replace(pose, position=pose.position + step[:3], rotation=rotation)


def _mirror_pose(pose: CameraPose, points: FloatArray) -> CameraPose:
    """Return the pose in which the plane of the points is tilted the opposite way.

    The scene is rotated by 180 degrees about its normal and then about the line of sight. A point
    keeps its position across the line of sight and is mirrored along it.
    """
    from scipy.spatial.transform import Rotation

    centre = points.mean(axis=0)
    normal = np.linalg.svd(points - centre, full_matrices=False)[2][2]
    sight = pose.rotation.T @ (centre - pose.position)
    about_sight = Rotation.from_rotvec(np.pi * sight / np.linalg.norm(sight)).as_matrix()
    about_normal = Rotation.from_rotvec(np.pi * normal).as_matrix()
    rotation = (about_sight @ pose.rotation.T @ about_normal).T
    return dataclasses.replace(pose, position=centre - rotation @ sight, rotation=rotation)


@dataclasses.dataclass(frozen=True)
class PoseEstimate(Parameters):
    """Estimation of the pose from features at known positions in the world."""

    method: str = parameter(
        'refined',
        '',
        'dlt: direct linear transformation; refined: least squares of the reprojection error, '
        'started from dlt; none: no pose.',
        choices=('none', 'dlt', 'refined'),
    )
    stated_std: float = non_negative(
        0.0, 'px', 'Pixel noise for the stated covariance; 0: the noise of the camera.'
    )
    fewest: int = parameter(
        PLANAR_MINIMUM, '1', 'Smallest number of features for a pose.', minimum=PLANAR_MINIMUM
    )
    largest_residual: float = non_negative(
        0.0, 'px', 'Largest root mean square of the reprojection errors of a pose; 0: no limit.'
    )

    def estimate(
        self,
        points: FloatArray,
        pixels: FloatArray,
        rays: FloatArray,
        intrinsics: Intrinsics,
        std: FloatArray,
    ) -> CameraPose | None:
        """Return the pose of the optical frame, or None if the features do not determine it.

        `points` `(n, 3)` m are the features in the world, `pixels` `(n, 2)` their measurements
        with the deviations `std` `(2,)` along u and v, and `rays` `(n, 2)` the undistorted rays.
        """
        usable = np.isfinite(rays).all(axis=1)
        if self.method == 'none' or usable.sum() < self.fewest:
            return None
        points, pixels, rays = points[usable], pixels[usable], rays[usable]
        stated = np.full(2, self.stated_std) if self.stated_std > 0.0 else std
        try:
            pose = dlt_pose(points, rays, _ray_covariance(intrinsics, rays, stated))
            if self.method == 'refined':
                # Without noise, the weights are arbitrary and the covariance is zero.
                has_noise = bool((stated > 0.0).all())
                weight = stated if has_noise else np.ones(2)
                pose = refined_pose(pose, points, pixels, intrinsics, weight)
                if not has_noise:
                    pose = dataclasses.replace(pose, covariance=np.zeros((6, 6)))
        except SensorError:
            return None
        if self.largest_residual > 0.0:
            reprojected = intrinsics.project((points - pose.position) @ pose.rotation)
            if not np.sqrt(np.mean((reprojected - pixels) ** 2)) <= self.largest_residual:
                return None
        return pose


def _ray_covariance(intrinsics: Intrinsics, rays: FloatArray, std: FloatArray) -> FloatArray:
    """Return the covariances of rays, `(n, 2, 2)`, for independent errors of their pixels."""
    by_pixel = np.linalg.inv(intrinsics.ray_jacobian(rays)) * std
    return by_pixel @ np.swapaxes(by_pixel, 1, 2)
