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
from .pinhole import Intrinsics


@dataclasses.dataclass(frozen=True, eq=False)
class CameraPose:
    """Pose of an optical frame in a scene.

    `position` `(3,)` m is that of the camera, `rotation` `(3, 3)` takes vectors of the optical
    frame to the scene, `covariance` `(6, 6)` is of x, y, z and of a small rotation about the
    scene's x, y, z, as in ROS; m^2, m rad, rad^2.
    """

    position: FloatArray
    rotation: FloatArray
    covariance: FloatArray

    def depths(self, points: FloatArray) -> FloatArray:
        """Return how far points `(n, 3)` of the scene are in front of the camera, `(n,)` m."""
        return (points - self.position) @ self.rotation[:, 2]

    def seen_from(self, offset: FloatArray, rotation: FloatArray) -> CameraPose:
        """Return the pose of the body that carries the camera at `offset` `(3,)` m.

        `rotation` `(3, 3)` takes vectors of the optical frame to the body; both count as exact.
        """
        turned = self.rotation @ rotation.T
        arm = turned @ offset
        # p_body = p - R l: a rotation by d moves the body by -d x (R l) = [R l]x d.
        change = np.eye(6)
        change[:3, 3:] = skew(arm[None])[0]
        return CameraPose(self.position - arm, turned, change @ self.covariance @ change.T)


# Pose of a camera from points by the direct linear transformation, planar and general.
#
# [Hartley2004], sections 4.1 (homography), 4.4 (normalisation), 7.1 (camera matrix). The
# covariance is that of the estimate itself to first order in the noise of the image, which is
# larger than that of the best estimate (`sim_sensors.camera.pose`).

PLANAR_MINIMUM = 4
_GENERAL_MINIMUM = 6
# Thickness of a scene against its extent below which it is a plane, and below which it may be
# better taken for one: the camera matrix is then nearly open, and its pose worse than that of a
# plane a little beside the points.
_PLANE = 1e-6
_SLAB = 0.2
# Of singular values, against the largest; below it there is more than one solution.
_DEGENERATE = 1e-8
# Step of the derivative of a pose with respect to the entries of a matrix of norm 1.
_STEP = 1e-6


def is_planar(points: FloatArray, *, nearly: bool = False) -> bool:
    """Return whether points `(n, 3)` are in one plane, n >= 3; `nearly`: thinner than a fifth."""
    extent = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    return bool(extent[2] <= (_SLAB if nearly else _PLANE) * extent[0])


def dlt_pose(
    points: FloatArray, rays: FloatArray, ray_covariance: FloatArray | None = None
) -> CameraPose:
    """Return the pose of a camera that sees `points` `(n, 3)` m of the scene along `rays`.

    These are `(n, 2)` undistorted X/Z, Y/Z in the optical frame, as `Intrinsics.rays` gives them,
    each with a covariance independent of the others, `(n, 2, 2)`; None: that of the pose is zero.

    Points in one plane take the homography of that plane, at least four of them; others take the
    camera matrix, at least six. Those near a plane take both, the former of their places in the
    nearest plane, and the pose that puts them nearer to their rays is kept.

    Raises SensorError when there are too few points, or they leave the pose open (on a line, for
    instance).
    """
    count = len(points)
    finite = bool(np.isfinite(rays).all() and np.isfinite(points).all())
    planar = finite and count >= PLANAR_MINIMUM and is_planar(points)
    if not finite or count < (PLANAR_MINIMUM if planar else _GENERAL_MINIMUM):
        raise SensorError(
            f'a pose from {count} points; must be at least {PLANAR_MINIMUM} in a plane or '
            f'{_GENERAL_MINIMUM} that are not, with finite numbers'
        )
    if planar or not is_planar(points, nearly=True):
        return _pose(points, rays, ray_covariance, planar)
    found = []
    for flat in (True, False):
        try:
            found.append(_pose(points, rays, ray_covariance, flat))
        except SensorError:
            continue
    if not found:
        raise SensorError('the points leave the pose open; must not be on a line')
    return min(found, key=lambda pose: _misfit(pose, points, rays))


def _misfit(pose: CameraPose, points: FloatArray, rays: FloatArray) -> float:
    """Return the sum of squared distances of rays from those to the points; inf: behind."""
    local = (points - pose.position) @ pose.rotation
    if not (local[:, 2] > 0.0).all():
        return np.inf
    return float(np.sum((local[:, :2] / local[:, 2:] - rays) ** 2))


def _pose(
    points: FloatArray, rays: FloatArray, ray_covariance: FloatArray | None, planar: bool
) -> CameraPose:
    """Return the pose by the homography of the nearest plane, or by the camera matrix."""
    count = len(points)
    centre = points.mean(axis=0)
    # Axes of the scene: the first two span the plane where there is one; right-handed.
    axes = np.linalg.svd(points - centre, full_matrices=False)[2]
    axes[2] = np.cross(axes[0], axes[1])
    local = (points - centre) @ axes.T
    local = local[:, :2] if planar else local
    size = _mean_norm(local)
    middle = rays.mean(axis=0)
    spread = _mean_norm(rays - middle)
    if not (size > 0.0 and spread > 0.0):
        raise SensorError('a pose from points that coincide; must be different points')
    world = np.column_stack([local / size, np.ones(count)])
    image = (rays - middle) / spread
    columns = world.shape[1]
    system = _system(world, image)
    # Four points of a plane have one equation less than entries; all rows of `right` are needed.
    _, values, right = np.linalg.svd(system, full_matrices=len(system) < 3 * columns)
    if values[3 * columns - 2] <= _DEGENERATE * values[0]:
        raise SensorError('the points leave the pose open; must not be on a line')
    undo = np.array([[spread, 0.0, middle[0]], [0.0, spread, middle[1]], [0.0, 0.0, 1.0]])
    entries = right[3 * columns - 1]

    def poses(stack: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Positions and rotations (optical frame to scene) of rows of entries."""
        matrices = undo @ stack.reshape(-1, 3, columns)
        matrices[:, :, :-1] /= size
        turn, move = _planar(matrices) if planar else _general(matrices)
        rotations = np.swapaxes(turn @ axes, 1, 2)
        return centre - np.einsum('kij,kj->ki', rotations, move), rotations

    # A matrix and its negative are the same camera; the one with the points in front is taken.
    if ((undo[2] @ entries.reshape(3, columns)) @ world.T).sum() < 0.0:
        entries = -entries
    position, rotation = (array[0] for array in poses(entries[None]))
    pose = CameraPose(position, rotation, np.zeros((6, 6)))
    if not (pose.depths(points) > 0.0).all():
        raise SensorError('the points are not all in front of the camera; must be seen by it')
    if ray_covariance is None:
        return pose
    # System times entries is zero, so a change of a ray changes the entries by minus the
    # pseudo-inverse times the change of the system: each row by minus the depth times the change.
    depth = world @ entries.reshape(3, columns)[2]
    left, values, right = np.linalg.svd(system, full_matrices=False)
    kept = slice(0, 3 * columns - 1)
    inverse = (right[kept].T / values[kept]) @ left[:, kept].T
    by_ray = inverse.reshape(-1, count, 2) * (depth / spread)[:, None]
    noise = np.einsum('ani,nij,bnj->ab', by_ray, ray_covariance, by_ray)
    steps = _STEP * np.eye(3 * columns)
    place_up, turn_up = poses(entries + steps)
    place_down, turn_down = poses(entries - steps)
    slope = np.empty((6, 3 * columns))
    slope[:3] = (place_up - place_down).T
    turned = (turn_up - turn_down) @ rotation.T
    slope[3:] = 0.5 * np.stack(
        [
            turned[:, 2, 1] - turned[:, 1, 2],
            turned[:, 0, 2] - turned[:, 2, 0],
            turned[:, 1, 0] - turned[:, 0, 1],
        ]
    )
    slope /= 2.0 * _STEP
    return CameraPose(position, rotation, slope @ noise @ slope.T)


def _system(world: FloatArray, image: FloatArray) -> FloatArray:
    """Return the equations of the entries, `(2 n, 3 c)`, two rows for each point."""
    count, columns = world.shape
    system = np.zeros((count, 2, 3 * columns))
    system[:, 0, :columns] = world
    system[:, 1, columns : 2 * columns] = world
    system[:, :, 2 * columns :] = -image[:, :, None] * world[:, None, :]
    return system.reshape(2 * count, 3 * columns)


def _planar(homographies: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return rotations and translations, plane to camera, of homographies `(k, 3, 3)`."""
    first, second = homographies[:, :, 0], homographies[:, :, 1]
    scale = 0.5 * (np.linalg.norm(first, axis=1) + np.linalg.norm(second, axis=1))
    first, second = first / scale[:, None], second / scale[:, None]
    near = np.stack([first, second, np.cross(first, second)], axis=2)
    return _nearest_rotations(near)[0], homographies[:, :, 2] / scale[:, None]


def _general(matrices: FloatArray) -> tuple[FloatArray, FloatArray]:
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
