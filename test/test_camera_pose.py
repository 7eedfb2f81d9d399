# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Poses from features: exact without noise, equal to OpenCV, with honest covariances."""

from __future__ import annotations

import numpy as np
import pytest
from camera_examples import BENT, FORWARD, VGA, board, cloud, pose_errors
from scipy.spatial.transform import Rotation

from sim_sensors.camera.pose import CameraPose, PoseEstimate, dlt_pose, is_planar, refined_pose
from sim_sensors.core.errors import SensorError
from sim_sensors.core.measurements import FloatArray
from sim_sensors.world.world import World, chessboard

TILTED = CameraPose(
    np.array([0.3, 0.4, -0.2]),
    Rotation.from_euler('xyz', [0.1, -0.2, -0.15]).as_matrix() @ FORWARD,
    np.zeros((6, 6)),
)
STD = np.array([0.4, 0.6])


def visible_points(world: World, pose: CameraPose = TILTED) -> tuple[FloatArray, FloatArray]:
    """Return the points in the image and their pixels."""
    places = world.landmarks.positions
    pixels = BENT.project((places - pose.position) @ pose.rotation)
    inside = BENT.inside(pixels)
    return places[inside], pixels[inside]


@pytest.mark.parametrize(('world', 'method'), [
    (board(), 'dlt'), (cloud(40), 'dlt'), (board(), 'refined'), (cloud(40), 'refined'),
    (board(2, 2), 'dlt'), (cloud(8), 'dlt'),
])  # fmt: skip
def test_the_pose_without_noise_is_exact(world: World, method: str) -> None:
    points, pixels = visible_points(world)
    assert len(points) >= 4
    estimate = PoseEstimate(method=method)
    pose = estimate.estimate(points, pixels, BENT.rays(pixels), BENT, np.zeros(2))
    assert np.abs(pose_errors(TILTED, pose)).max() < 1e-9
    assert np.linalg.det(pose.rotation) == pytest.approx(1.0, abs=1e-12)
    assert not pose.covariance.any()


@pytest.mark.parametrize('world', [board(), cloud(40)])
def test_the_estimated_pose_equals_that_of_opencv(world: World) -> None:
    """solvePnP minimises the same sum of squares and stops earlier, so its sum is not smaller."""
    cv2 = pytest.importorskip('cv2', reason='no OpenCV')
    places = world.landmarks.positions
    pixels = VGA.project((places - TILTED.position) @ TILTED.rotation)
    inside = VGA.inside(pixels)
    points = places[inside]
    pixels = pixels[inside] + 0.5 * np.random.default_rng(5).standard_normal((inside.sum(), 2))
    estimate = PoseEstimate().estimate(points, pixels, VGA.rays(pixels), VGA, np.full(2, 0.5))
    ok, turn, shift = cv2.solvePnP(points, pixels, VGA.matrix, None)
    assert ok
    rotation = cv2.Rodrigues(turn)[0].T
    opencv_pose = CameraPose(-rotation @ shift[:, 0], rotation, np.zeros((6, 6)))
    opencv_cost = cost(opencv_pose, points, pixels)
    assert cost(estimate, points, pixels) <= opencv_cost * (1.0 + 1e-9)
    deviation = np.sqrt(np.diag(estimate.covariance))
    apart = np.abs(pose_errors(opencv_pose, estimate))
    assert (apart < 1e-2 * deviation).all(), 'OpenCV solvePnP, tolerance 1 % of the deviation'


def cost(pose: CameraPose, points: FloatArray, pixels: FloatArray) -> float:
    return float(((VGA.project((points - pose.position) @ pose.rotation) - pixels) ** 2).sum())


def test_the_homography_equals_that_of_opencv() -> None:
    """Homography of the board from four corners; OpenCV computes in 32 bits internally."""
    cv2 = pytest.importorskip('cv2', reason='no OpenCV')
    points, pixels = visible_points(board(2, 2))
    rays = BENT.rays(pixels)
    pose = dlt_pose(points, rays)
    expected = cv2.findHomography(points[:, 1:], rays)[0]
    # Points (4, y, z): columns of y, z and 1.
    turn = pose.rotation.T
    move = turn @ (np.array([4.0, 0.0, 0.0]) - pose.position)
    estimate = np.column_stack([turn[:, 1], turn[:, 2], move])
    assert np.allclose(estimate / estimate[2, 2], expected / expected[2, 2], atol=1e-6)


@pytest.mark.parametrize(('world', 'method'), [
    (board(), 'dlt'), (cloud(40), 'dlt'), (board(), 'refined'), (cloud(40), 'refined'),
])  # fmt: skip
def test_normalised_squared_errors_have_their_chi_square_mean(world: World, method: str) -> None:
    """Mean of 150 NEES of 6 degrees of freedom in its 99.9 % band, with fixed seeds."""
    points, pixels = visible_points(world)
    rng = np.random.default_rng(11)
    estimate = PoseEstimate(method=method)
    squares, errors = [], []
    for _ in range(150):
        noisy = pixels + STD * rng.standard_normal(pixels.shape)
        pose = estimate.estimate(points, noisy, BENT.rays(noisy), BENT, STD)
        error = pose_errors(TILTED, pose)
        squares.append(error @ np.linalg.solve(pose.covariance, error))
        errors.append(error)
    # scipy.stats.chi2.interval(0.999, 900) / 150
    assert 5.11 < np.mean(squares) < 6.98
    deviation = np.sqrt(np.diag(pose.covariance))
    assert (np.abs(np.mean(errors, axis=0)) < 3.9 * deviation / np.sqrt(150)).all()


def test_the_refined_pose_is_never_more_uncertain_than_the_linear_one() -> None:
    points, pixels = visible_points(cloud(40))
    noisy = pixels + STD * np.random.default_rng(3).standard_normal(pixels.shape)
    linear, refined = (
        PoseEstimate(method=method).estimate(points, noisy, BENT.rays(noisy), BENT, STD)
        for method in ('dlt', 'refined')
    )
    # A small slack, as each is propagated at its own estimate.
    assert np.linalg.eigvalsh(1.05 * linear.covariance - refined.covariance).min() > 0.0


def test_a_small_far_board_is_not_mirrored() -> None:
    """Nine corners at 0.35 m [Ligorio2015]; a descent from the linear pose alone fails."""
    points = chessboard(3, 3, 0.02, (0.0, -0.02, -0.02), (0.0, 0.0, 0.0))
    turn = Rotation.from_euler('zy', [0.6, 0.2]).as_matrix()
    true = CameraPose(turn @ np.array([-0.35, 0.0, 0.0]), turn @ FORWARD, np.zeros((6, 6)))
    pixels = VGA.project((points - true.position) @ true.rotation)
    rng = np.random.default_rng(8)
    angles = []
    for _ in range(40):
        noisy = pixels + 0.3 * rng.standard_normal(pixels.shape)
        pose = PoseEstimate().estimate(points, noisy, VGA.rays(noisy), VGA, np.full(2, 0.3))
        assert pose is not None
        angles.append(np.linalg.norm(pose_errors(true, pose)[3:]))
        at_truth = ((pixels - noisy) ** 2).sum()
        assert cost(pose, points, noisy) < at_truth
    # The mirror image is 2 x 0.63 rad away.
    assert max(angles) < 0.6


def test_the_pose_of_the_body_has_the_transformed_covariance() -> None:
    """The oracle is the numerical derivative by each component of the camera's pose."""
    rng = np.random.default_rng(4)
    root = 0.01 * rng.standard_normal((6, 6))
    pose = CameraPose(TILTED.position, TILTED.rotation, root @ root.T)
    offset, mount = np.array([0.5, -0.2, 0.3]), Rotation.from_rotvec([0.3, 0.2, -0.4]).as_matrix()
    body = pose.body_pose(offset, mount)
    assert np.allclose(body.position + body.rotation @ offset, pose.position, atol=1e-15)
    assert np.allclose(body.rotation @ mount, pose.rotation, atol=1e-15)
    slope = []
    for change in 1e-6 * np.eye(6):
        turned = Rotation.from_rotvec(change[3:]).as_matrix() @ pose.rotation
        moved = CameraPose(pose.position + change[:3], turned, pose.covariance)
        slope.append(pose_errors(body, moved.body_pose(offset, mount)) / 1e-6)
    slopes = np.array(slope).T
    assert np.allclose(body.covariance, slopes @ pose.covariance @ slopes.T, rtol=1e-4)


@pytest.mark.parametrize('points', [
    np.array([[4.0, y, 0.5 * y] for y in np.linspace(-1, 1, 7)]),
    np.full((6, 3), 4.0),
    np.array([[4.0, 0.0, 0.0], [4.0, 1.0, 0.0], [4.0, 0.0, 1.0]]),
    cloud(5).landmarks.positions,
])  # fmt: skip
def test_points_that_do_not_determine_the_pose_are_refused(points: FloatArray) -> None:
    """Points on a line, at one place, three points, and five in space."""
    pose = CameraPose(np.zeros(3), FORWARD, np.zeros((6, 6)))
    local = points @ pose.rotation
    rays = local[:, :2] / local[:, 2:]
    with pytest.raises(SensorError, match=r'must|needs'):
        dlt_pose(points, rays)
    pixels = VGA.pixels(rays)
    for method in ('dlt', 'refined'):
        assert PoseEstimate(method=method).estimate(points, pixels, rays, VGA, STD) is None


def test_an_initial_pose_that_looks_away_is_refused() -> None:
    points, pixels = visible_points(cloud(12))
    turned = TILTED.rotation @ np.diag([-1.0, 1.0, -1.0])
    away = CameraPose(TILTED.position, turned, np.zeros((6, 6)))
    with pytest.raises(SensorError, match='does not see all points'):
        refined_pose(away, points, pixels, BENT, STD)


def test_planar_points_are_distinguished_from_points_with_depth() -> None:
    assert is_planar(board().landmarks.positions)
    assert not is_planar(cloud(10).landmarks.positions)


@pytest.mark.parametrize('method', ['dlt', 'refined'])
def test_points_near_a_plane_give_an_accurate_pose(method: str) -> None:
    """The camera matrix of such points is undetermined, or wrong by metres."""
    flat = board(3, 4).landmarks.positions
    bumps = np.random.default_rng(3).uniform(-0.5, 0.5, len(flat))

    def typical_error(thickness: float) -> float:
        points = flat + thickness * bumps[:, None] * [1.0, 0.0, 0.0]
        exact = VGA.project(points @ FORWARD)
        rng, errors = np.random.default_rng(4), []
        for _ in range(20):
            pixels = exact + rng.normal(0.0, 0.5, exact.shape)
            estimate = PoseEstimate(method=method).estimate(
                points, pixels, VGA.rays(pixels), VGA, STD
            )
            errors.append(np.linalg.norm(estimate.position))
        return float(np.median(errors))

    in_plane = typical_error(0.0)
    assert all(typical_error(thickness) < 2.0 * in_plane for thickness in (1e-5, 1e-2, 0.05))


def test_a_pose_with_large_residuals_or_few_features_can_be_rejected() -> None:
    points, pixels = visible_points(board())
    wrong = pixels.copy()
    wrong[[0, 20]] = wrong[[20, 0]]
    gated = PoseEstimate(largest_residual=2.0)
    assert gated.estimate(points, pixels, BENT.rays(pixels), BENT, STD) is not None
    assert gated.estimate(points, wrong, BENT.rays(wrong), BENT, STD) is None
    assert PoseEstimate().estimate(points, wrong, BENT.rays(wrong), BENT, STD) is not None
    demanding = PoseEstimate(fewest=len(points) + 1)
    assert demanding.estimate(points, pixels, BENT.rays(pixels), BENT, STD) is None


@pytest.mark.parametrize('alone', [1, 4])
def test_corners_on_a_line_but_for_one_give_no_pose(alone: int) -> None:
    """Noise makes their homography look determined; the pose was wrong by up to 180 degrees."""
    places = np.array([[4.0, 0.2 * k, 0.0] for k in range(4)] + [[4.0, 0.2 * alone, 0.2]])
    pixels = VGA.project((places - TILTED.position) @ TILTED.rotation)
    noise = 0.5 * np.random.default_rng(3).standard_normal((2, *pixels.shape))
    for noisy in pixels + noise:
        for method in ('dlt', 'refined'):
            estimate = PoseEstimate(method=method)
            assert estimate.estimate(places, noisy, VGA.rays(noisy), VGA, np.full(2, 0.5)) is None
