# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Images of a real camera on a robot arm against the camera model; corners of a moving board."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(1, str(Path(__file__).resolve().parents[1] / 'benchmarks'))

import board_detection
import robot_board as robot

from sim2real_eval.signals.features import feature_agreement
from sim2real_eval.simulation.twin_maker import make_twin_maker
from sim_sensors.core.measurements import FloatArray
from sim_sensors.world.world import world_from_mapping

WHITE = 'white noise, by second differences of a row'


@pytest.fixture(scope='module')
def images() -> robot.Images:
    return robot.tables_read()[0]


@pytest.fixture(scope='module')
def fit(images: robot.Images) -> FloatArray:
    return images.calibration()


def noisy(images: robot.Images, fit: FloatArray, std: float, shift: float = 0.0) -> robot.Images:
    """Return the images as a camera without other errors sees them.

    `shift` is the standard deviation of a shift that all dots of an image share.
    """
    rng = np.random.default_rng(7)
    n = len(images.dots)
    errors = std * rng.standard_normal(images.dots.shape) + shift * rng.standard_normal((n, 1, 2))
    return dataclasses.replace(images, dots=images.pixels(fit) + errors)


def test_calibration_of_simulated_dots_is_recovered(images: robot.Images, fit: FloatArray) -> None:
    """To 1.5 mm and 1.5 mrad: 4.8 deviations of the widest, false alarm below 1e-4."""
    found = noisy(images, fit, 0.2).fitted(fit + 0.01)
    np.testing.assert_allclose(found, fit, atol=1.5e-3)


def test_white_noise_is_not_taken_for_errors_of_the_pose(
    images: robot.Images, fit: FloatArray
) -> None:
    """0.3 px, to 4 deviations of 0.006 px: false alarm 3e-4.

    White noise alone has 0.009 px; the shift is 0.037 px with a deviation of 0.007 px.
    """
    seen = noisy(images, fit, 0.3)
    parts = robot.parts(seen, *robot.held_out(seen, fit))
    np.testing.assert_allclose(parts['error'], 0.3, rtol=0.08)
    np.testing.assert_allclose(parts['left with the pose by the dots'], 0.3, rtol=0.08)
    np.testing.assert_allclose(parts[WHITE], 0.3, rtol=0.12)
    assert max(parts['shift of whole images']) < 0.12


def test_a_shift_of_whole_images_is_an_error_of_the_pose(
    images: robot.Images, fit: FloatArray
) -> None:
    """2 px are found as 2.3 px with a deviation of 0.5 (15 images): false alarm 2e-3."""
    seen = noisy(images, fit, 0.3, shift=2.0)
    parts = robot.parts(seen, *robot.held_out(seen, fit))
    assert min(parts['shift of whole images']) > 0.8
    np.testing.assert_allclose(parts['left with the pose by the dots'], 0.3, rtol=0.08)


def test_errors_of_the_real_camera_are_those_of_the_pose(
    images: robot.Images, fit: FloatArray
) -> None:
    """With the pose by the dots less than a fifth remains, most of it where a lens bends most."""
    poses = robot.held_out(images, fit)
    parts = {name: np.array(pair) for name, pair in robot.parts(images, *poses).items()}
    left = parts['left with the pose by the dots']
    assert ((parts['error'] > 1.0) & (parts['error'] < 3.0)).all()
    assert (left < 0.2 * parts['error']).all()
    inner, outer = 'the same within 200 px of the middle', 'the same from 300 px on'
    assert (parts[outer] > 1.5 * parts[inner]).all()
    assert (parts[WHITE] < 0.7 * left).all()


def test_compare_has_the_errors_of_the_script(images: robot.Images, fit: FloatArray) -> None:
    """Of the recording, the world and the truth in between: root mean square over the dots."""
    poses = robot.held_out(images, fit)
    recording = robot.recording_of(images, *poses, 'robot_board')
    world = world_from_mapping({'chessboards': [robot.BOARD]}, 'board')
    maker = make_twin_maker(recording, world, seed=0)
    found = feature_agreement(maker.real, maker, 'base_link')
    assert found is not None
    agreement = found[0]
    # The script's mean is of squares.
    squares = np.square(agreement.rmse) + np.square(agreement.rmse_std)
    error = robot.parts(images, *poses)['error']
    np.testing.assert_allclose(np.sqrt(squares), error, rtol=0.01)


@pytest.mark.parametrize(('exposure', 'row_time'), [(0.01, 0.0), (0.0, 3e-5)])
def test_a_camera_in_the_middle_of_the_exposure_has_the_corners_of_a_moving_board(
    exposure: float, row_time: float
) -> None:
    """Rendered images, 3 frames of 54 corners: errors of the detector only, and a bias without."""
    pytest.importorskip('cv2', reason='no OpenCV')
    found = board_detection.moving(exposure, row_time, every=3200)
    assert found['RMSE with row_time, mid-exposure'] < 0.04
    assert found['RMSE at the stamp'] > 0.2
