# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Equidistant and rational lenses, against OpenCV and against what a lens must do."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from camera_examples import VGA, cloud, swaying

from sim_sensors.camera.camera import CameraModel
from sim_sensors.camera.lens import Equidistant, PlumbBob, RationalPolynomial, lens_of
from sim_sensors.camera.pinhole import CameraInfoArray, Intrinsics
from sim_sensors.camera.pose import CameraPose, PoseEstimate, dlt_pose, refined_pose
from sim_sensors.core.errors import ParameterError

# Of a wide lens with all coefficients, of TUM-VI's kind, and one that folds at 63 deg.
WIDE = Equidistant(k1=-0.0135, k2=0.0208, k3=-0.0121, k4=0.0022)
GENTLE = Equidistant(k1=0.0035, k2=0.0007, k3=-0.0021, k4=0.0002)
FOLDING = Equidistant(k1=-0.28)
LENSES = [Equidistant(), WIDE, GENTLE, FOLDING]
RATIONAL = RationalPolynomial(
    k1=0.41, k2=-0.12, p1=0.0007, p2=-0.0004, k3=0.03, k4=0.74, k5=-0.05, k6=0.08
)


def camera_with(lens, **changes):
    base = Intrinsics(width=752, height=480, fx=190.9, fy=191.2, cx=370.4, cy=238.7)
    return dataclasses.replace(base, distortion=lens, **changes)


def directions(largest_deg, count=3000, seed=2):
    """Points in all directions up to an angle from the axis, at different distances."""
    rng = np.random.default_rng(seed)
    angle = np.radians(largest_deg) * np.sqrt(rng.uniform(0.0, 1.0, count))
    around = rng.uniform(0.0, 2.0 * np.pi, count)
    unit = np.stack(
        [np.sin(angle) * np.cos(around), np.sin(angle) * np.sin(around), np.cos(angle)], axis=1
    )
    return unit * rng.uniform(0.2, 30.0, (count, 1))


@pytest.mark.parametrize('lens', LENSES)
def test_projected_pixels_equal_those_of_the_fisheye_module_of_opencv(
    lens, record_property
) -> None:
    cv2 = pytest.importorskip('cv2', reason='no OpenCV')
    camera = camera_with(lens)
    local = directions(89.0)
    local = local[lens.valid(local[:, :2] / local[:, 2:])]
    assert len(local) > 1000
    expected = cv2.fisheye.projectPoints(
        local[:, None], np.zeros(3), np.zeros(3), camera.matrix, np.array(lens.coefficients)
    )[0][:, 0]
    projected = camera.project(local)
    record_property('pixels', np.abs(projected - expected).max())
    assert np.abs(projected - expected).max() < 1e-9, 'OpenCV, 1e-9 px'


def test_the_skew_of_opencv_is_the_ratio_alpha() -> None:
    cv2 = pytest.importorskip('cv2', reason='no OpenCV')
    camera, local = camera_with(WIDE, skew=0.01), directions(80.0)
    expected = cv2.fisheye.projectPoints(
        local[:, None], np.zeros(3), np.zeros(3), camera_with(WIDE).matrix,
        np.array(WIDE.coefficients), alpha=0.01,
    )[0][:, 0]  # fmt: skip
    assert np.abs(camera.project(local) - expected).max() < 1e-9, 'OpenCV, 1e-9 px'


@pytest.mark.parametrize('lens', LENSES)
def test_rays_equal_those_that_opencv_undistorts_and_invert_the_projection(lens) -> None:
    cv2 = pytest.importorskip('cv2', reason='no OpenCV')
    camera = camera_with(lens)
    local = directions(min(80.0, math.degrees(0.98 * lens.largest_angle)))
    true = local[:, :2] / local[:, 2:]
    pixels = camera.project(local)
    rays = camera.rays(pixels)
    np.testing.assert_allclose(rays, true, rtol=1e-10, atol=1e-12)
    criteria = (cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, 100, 1e-14)
    undistorted = cv2.fisheye.undistortPoints(
        pixels[:, None], camera.matrix, np.array(lens.coefficients), criteria=criteria
    )[:, 0]
    # OpenCV returns -1000000 where its iteration fails; that is near the fold of a lens.
    is_solved = np.abs(undistorted).max(axis=1) < 1e5
    assert is_solved.mean() > 0.9
    np.testing.assert_allclose(rays[is_solved], undistorted[is_solved], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize('lens', [*LENSES, RATIONAL])
def test_the_jacobian_agrees_with_differences_on_the_axis_and_far_from_it(lens) -> None:
    camera = camera_with(lens)
    rays = directions(55.0, 300)
    rays = np.concatenate([rays[:, :2] / rays[:, 2:], [[0.0, 0.0], [9e-4, 2e-4], [1e-9, -1e-9]]])
    step = 1e-6
    slopes = [
        (camera.pixels(rays + step * axis) - camera.pixels(rays - step * axis)) / (2.0 * step)
        for axis in np.eye(2)
    ]
    np.testing.assert_allclose(
        camera.ray_jacobian(rays), np.stack(slopes, axis=2), rtol=2e-6, atol=2e-6
    )


def test_points_beyond_the_monotone_range_or_at_90_degrees_are_not_seen() -> None:
    """theta (1 - 0.28 theta^2) grows up to theta^2 = 1 / (3 0.28)."""
    assert FOLDING.largest_angle == pytest.approx(math.sqrt(1.0 / 0.84))
    camera = camera_with(FOLDING)
    for degrees, is_seen in ((62.0, True), (63.0, False), (85.0, False)):
        angle = math.radians(degrees)
        pixels = camera.project(np.array([[math.sin(angle), 0.0, math.cos(angle)]]))
        assert np.isfinite(pixels).all() == is_seen, degrees
    wide = camera_with(GENTLE)
    behind = np.array([[1.0, 0.0, 0.0], [1.0, 0.0, -0.1], [0.0, 0.0, -1.0]])
    assert np.isnan(wide.project(behind)).all()
    assert np.isfinite(wide.project(np.array([[1.0, 0.0, 1e-3]]))).all()


def test_pixels_that_no_ray_reaches_have_no_ray_and_the_centre_is_the_axis() -> None:
    camera = camera_with(FOLDING)
    largest = FOLDING.largest_angle * (1.0 - 0.28 * FOLDING.largest_angle**2)
    edge = camera.cx + camera.fx * largest * np.array([0.999, 1.001])
    rays = camera.rays(np.column_stack([edge, [camera.cy] * 2]))
    assert np.isfinite(rays[0]).all()
    assert np.isnan(rays[1]).all()
    np.testing.assert_array_equal(camera.rays(np.array([[camera.cx, camera.cy]])), [[0.0, 0.0]])


@pytest.mark.parametrize('seed', range(5))
def test_lenses_drawn_at_random_agree_with_opencv_and_invert(seed) -> None:
    cv2 = pytest.importorskip('cv2', reason='no OpenCV')
    rng = np.random.default_rng(seed)
    lens = Equidistant(*(rng.normal(size=4) * [0.1, 0.05, 0.03, 0.01]))
    camera = camera_with(lens, fx=rng.uniform(150.0, 900.0))
    local = directions(0.999 * math.degrees(lens.largest_angle))
    expected = cv2.fisheye.projectPoints(
        local[:, None], np.zeros(3), np.zeros(3), camera.matrix, np.array(lens.coefficients)
    )[0][:, 0]
    pixels = camera.project(local)
    np.testing.assert_allclose(pixels, expected, atol=1e-9)
    inner = np.hypot(*local[:, :2].T) < np.tan(0.95 * lens.largest_angle) * local[:, 2]
    rays = local[:, :2] / local[:, 2:]
    np.testing.assert_allclose(camera.rays(pixels)[inner], rays[inner], rtol=1e-8, atol=1e-10)


def test_rational_pixels_equal_those_of_opencv_and_invert() -> None:
    cv2 = pytest.importorskip('cv2', reason='no OpenCV')
    camera = camera_with(RATIONAL)
    local = directions(70.0)
    local = local[RATIONAL.valid(local[:, :2] / local[:, 2:])]
    assert len(local) > 1000
    d = np.array(RATIONAL.coefficients)
    expected = cv2.projectPoints(local, np.zeros(3), np.zeros(3), camera.matrix, d)[0][:, 0]
    pixels = camera.project(local)
    assert np.abs(pixels - expected).max() < 1e-9, 'OpenCV, 1e-9 px'
    inner = np.hypot(*local[:, :2].T) < local[:, 2]
    rays = camera.rays(pixels[inner])
    np.testing.assert_allclose(rays, local[inner, :2] / local[inner, 2:], atol=1e-10)


@pytest.mark.parametrize('lens', [WIDE, RATIONAL])
def test_a_pose_is_found_through_the_lens(lens) -> None:
    """Without noise to rounding; with noise its error is as large as its covariance states."""
    rng = np.random.default_rng(5)
    camera = camera_with(lens)
    points = rng.uniform([-3.0, -2.0, 1.0], [3.0, 2.0, 4.0], (40, 3))
    # Near the fold of a lens noise leads to pixels that no ray reaches.
    points = points[np.hypot(points[:, 0], points[:, 1]) < points[:, 2]]
    std = np.array([0.3, 0.3])
    squares = []
    for noise in (0.0, *[1.0] * 40):
        pixels = camera.project(points) + noise * std * rng.normal(size=(len(points), 2))
        start = dlt_pose(points, camera.rays(pixels))
        pose = refined_pose(start, points, pixels, camera, std)
        turn = pose.rotation - np.eye(3)
        error = np.concatenate([pose.position, [turn[2, 1], turn[0, 2], turn[1, 0]]])
        if not noise:
            assert np.abs(error).max() < 1e-9
            continue
        squares.append(error @ np.linalg.solve(pose.covariance, error))
    # 40 squares of 6 normal numbers: 6 +- 0.55.
    assert 4.3 < np.mean(squares) < 7.7
    assert isinstance(pose, CameraPose)


def test_camera_info_names_the_lens_and_returns_it() -> None:
    stamps = np.arange(3) * 10**7
    for lens, model in ((WIDE, 'equidistant'), (RATIONAL, 'rational_polynomial')):
        info = CameraInfoArray.from_intrinsics(camera_with(lens), stamps, stamps, 'eye')
        assert info.distortion_model == model
        np.testing.assert_array_equal(info.distortion[1], lens.coefficients)
        assert info.intrinsics() == camera_with(lens)
    assert lens_of('fisheye', WIDE.coefficients) == WIDE
    assert lens_of('plumb_bob', [0.1, 0.2, 0.0, 0.01]) == PlumbBob(0.1, 0.2, 0.0, 0.01)
    assert lens_of('double_sphere', [0.1]) is None
    assert lens_of('equidistant', [0.1]) is None


@pytest.mark.parametrize(('distortion', 'lens'), [
    ({'model': 'equidistant', 'k1': 0.01, 'k4': -2e-4}, Equidistant(k1=0.01, k4=-2e-4)),
    ({'model': 'fisheye', 'coefficients': [0.01, 0.0, 0.0, 2e-3]}, Equidistant(k1=0.01, k4=2e-3)),
    ({'model': 'radtan', 'coefficients': [0.1, 0.2, 0.3, 0.4]}, PlumbBob(0.1, 0.2, 0.3, 0.4)),
    ([0.1, 0.2, 0.01, 0.02], PlumbBob(0.1, 0.2, 0.01, 0.02)),
    ([0.1, 0.2, 0.01, 0.02, 0.3], PlumbBob(0.1, 0.2, 0.01, 0.02, 0.3)),
    ({'k1': -0.2}, PlumbBob(k1=-0.2)),
    ({}, PlumbBob()),
])  # fmt: skip
def test_lenses_are_read_by_name_and_as_lists(distortion, lens) -> None:
    mapping = {'model': 'pinhole_camera', 'intrinsics': {'distortion': distortion}}
    camera = CameraModel.from_mapping({'intrinsics': mapping['intrinsics']}, 'camera.yaml')
    assert camera.intrinsics.distortion == lens
    again = CameraModel.from_mapping(camera.to_mapping(), 'camera.yaml')
    assert again == camera


@pytest.mark.parametrize(('distortion', 'key'), [
    ({'model': 'equidistant', 'p1': 0.1}, 'intrinsics.distortion.p1'),
    ({'model': 'double_sphere'}, 'intrinsics.distortion.model'),
    ({'k4': 0.1}, 'intrinsics.distortion.k4'),
    ([0.1, 0.2, 0.3], 'intrinsics.distortion'),
    ({'model': 'equidistant', 'coefficients': [0.0] * 5}, 'intrinsics.distortion.coefficients'),
    ([0.1, 'x', 0.0, 0.0], 'intrinsics.distortion.k2'),
    (7, 'intrinsics.distortion'),
])  # fmt: skip
def test_wrong_lenses_are_refused_by_their_key(distortion, key) -> None:
    with pytest.raises(ParameterError) as caught:
        CameraModel.from_mapping({'intrinsics': {'distortion': distortion}}, 'camera.yaml')
    assert (caught.value.where, caught.value.key) == ('camera.yaml', key)


def test_a_simulated_fisheye_sees_wider_than_a_pinhole_and_reports_rays() -> None:
    """Same focal length: 90 deg to the side are 1.57 f for the fisheye, at infinity otherwise."""
    world, eye = cloud(400), swaying(3)
    pose = PoseEstimate(method='refined')
    counts = {}
    for lens in (PlumbBob(), WIDE):
        model = CameraModel(
            intrinsics=camera_with(lens, fx=700.0, fy=700.0), noise_std=0.0, pose=pose
        )
        seen = model.start(1, 'run', world=world).measure(eye)
        counts[lens.kind] = len(seen.ids)
        local = np.column_stack([seen.rays, np.ones(len(seen.rays))])
        np.testing.assert_allclose(model.intrinsics.project(local), seen.pixels, atol=1e-8)
        assert seen.has_pose.all()
        np.testing.assert_allclose(seen.position, eye.position, atol=1e-7)
    assert counts['equidistant'] > counts['plumb_bob'] > 20
    assert VGA.distortion == PlumbBob()
