# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The projection of a camera, against OpenCV and against what a lens must do."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from camera_examples import BENT, VGA

from sim_sensors.camera.lens import PlumbBob
from sim_sensors.camera.pinhole import Intrinsics
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.measurements import FloatArray

FRC = Intrinsics(
    width=1280, height=720, fx=879.07, fy=879.15, cx=604.92, cy=389.17,
    distortion=PlumbBob(k1=-0.0591, k2=0.0472, p1=0.00234, p2=0.00018, k3=0.1609),
)  # fmt: skip
STRONG = dataclasses.replace(VGA, distortion=PlumbBob(k1=-0.5, p1=0.01, p2=-0.02))


def points(count: int = 2000, seed: int = 1) -> FloatArray:
    rng = np.random.default_rng(seed)
    depth = rng.uniform(0.05, 80.0, (count, 1))
    return np.column_stack([rng.uniform(-0.45, 0.45, (count, 2)) * depth, depth])


@pytest.mark.parametrize('camera', [VGA, BENT, FRC, STRONG])
def test_projected_pixels_equal_those_of_opencv(
    camera: Intrinsics, record_property: Callable[[str, object], None]
) -> None:
    """OpenCV has no skew: its rays are multiplied by the camera matrix."""
    cv2 = pytest.importorskip('cv2', reason='no OpenCV')
    d = camera.distortion
    lens = np.array([d.k1, d.k2, d.p1, d.p2, d.k3])
    place, turn, shift = points(), np.array([0.2, -0.1, 0.15]), np.array([0.3, -0.2, 0.1])
    rotation = cv2.Rodrigues(turn)[0]
    local = place @ rotation.T + shift
    place, local = place[local[:, 2] > 0.02], local[local[:, 2] > 0.02]
    place, local = (array[d.valid(local[:, :2] / local[:, 2:])] for array in (place, local))
    assert len(place) > 1000
    ideal = np.squeeze(cv2.projectPoints(place, turn, shift, np.eye(3), lens)[0])
    expected = ideal @ camera.matrix[:2, :2].T + camera.matrix[:2, 2]
    projected = camera.project(local)
    record_property('pixels', np.abs(projected - expected).max())
    assert np.abs(projected - expected).max() < 1e-9, 'OpenCV, 1e-9 px'


@pytest.mark.parametrize('camera', [VGA, BENT, FRC, STRONG])
def test_rays_of_pixels_invert_the_projection(camera: Intrinsics) -> None:
    local = points()
    pixels = camera.project(local)
    is_inside = camera.inside(pixels)
    assert is_inside.sum() > 500
    rays = camera.rays(pixels[is_inside])
    assert np.abs(rays - local[is_inside, :2] / local[is_inside, 2:]).max() < 1e-12
    back = camera.project(np.column_stack([rays, np.ones(len(rays))]))
    assert np.abs(back - pixels[is_inside]).max() < 1e-9


def test_lines_stay_straight_without_a_lens_and_bend_with_one() -> None:
    along = np.linspace(-1.0, 1.0, 41)[:, None]
    line = np.array([0.2, 0.3, 3.0]) + along * np.array([0.9, 0.4, 0.8])

    def bend(camera: Intrinsics) -> float:
        pixels = camera.project(line)
        return float(np.linalg.svd(pixels - pixels.mean(axis=0), compute_uv=False)[1])

    skewed = dataclasses.replace(VGA, skew=0.01)
    assert bend(VGA) < 1e-10
    assert bend(skewed) < 1e-10
    assert bend(BENT) > 0.5


def test_the_jacobian_of_rays_agrees_with_differences() -> None:
    rays = points(200)[:, :2] / points(200)[:, 2:]
    step = 1e-6
    slopes = [
        (BENT.pixels(rays + step * axis) - BENT.pixels(rays - step * axis)) / (2.0 * step)
        for axis in np.eye(2)
    ]
    assert np.allclose(BENT.ray_jacobian(rays), np.stack(slopes, axis=2), rtol=1e-8, atol=1e-6)


def test_points_that_a_lens_model_folds_back_are_not_in_view() -> None:
    """For k1 = -0.28 alone, r L(r) falls from r = 1.09 on; a point at 60 degrees would show."""
    lens = PlumbBob(k1=-0.28)
    assert lens.largest_radius == pytest.approx(np.sqrt(1.0 / (3.0 * 0.28)), rel=1e-12)
    assert PlumbBob().largest_radius == np.inf
    assert PlumbBob(k1=0.1, k2=0.02).largest_radius == np.inf
    camera = dataclasses.replace(VGA, distortion=lens)
    far = np.tan(np.radians(60.0))
    folded = camera.pixels(np.array([[far, 0.0]]))
    assert camera.inside(folded)[0]
    assert np.isnan(camera.project(np.array([[far, 0.0, 1.0]]))).all()
    assert np.isfinite(camera.project(np.array([[0.2, 0.1, 1.0]]))).all()
    # No ray reaches a pixel outside the image of the lens.
    beyond = np.array([[1.0 + 670.24 * 0.9 + camera.cx, camera.cy]])
    assert np.isnan(camera.rays(beyond)).all()


def test_points_behind_are_not_seen_and_the_image_ends_at_half_a_pixel() -> None:
    assert np.isnan(VGA.project(np.array([[0.1, 0.1, -1.0], [0.1, 0.1, 0.0]]))).all()
    edge = np.array([[-0.5, 0.0], [-0.6, 0.0], [639.4, 479.4], [639.5, 0.0], [np.nan, 0.0]])
    assert VGA.inside(edge).tolist() == [True, False, True, False, False]
    assert VGA.inside(np.array([[5.0, 100.0]]), border=6.0).tolist() == [False]


def test_an_impossible_camera_is_refused() -> None:
    with pytest.raises(ParameterError, match='k1'):
        Intrinsics.from_mapping({'distortion': {'k1': float('nan')}}, 'camera.yaml', 'intrinsics')
    with pytest.raises(ParameterError, match='fx'):
        dataclasses.replace(VGA, fx=0.0)
