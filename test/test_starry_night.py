# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""A real stereo camera with its true pose, as a recording: its errors are told apart."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

sys.path.insert(1, str(Path(__file__).resolve().parents[1] / 'benchmarks'))

import starry_night as starry

from sim2real_eval.signals.features import feature_agreement
from sim2real_eval.simulation.twin_maker import make_twin_maker
from sim_sensors.world.world import world_from_mapping

NOISE = 0.5  # px
LEFT, SHIFT = 'left with the pose by the features', 'shift of whole frames of 6 and more'
DELAY = 'fitted delay, ms'


def content(delay: float = 0.0, tilt: float = 0.0, frames: int = 200) -> dict[str, Any]:
    """Return a file as its description has it: 12 landmarks below a body that sways and turns.

    `delay`, s, is that of the images; `tilt`, rad, the deviation of the stated orientation in each
    frame. Pixels have white noise.
    """
    rng = np.random.default_rng(5)
    t = np.cumsum(rng.uniform(0.05, 0.1, frames))

    def pose(at: Any) -> tuple[Any, Rotation]:
        place = np.stack([0.3 * np.sin(at), 0.3 * np.cos(0.7 * at), 1.5 + 0.1 * np.sin(at)])
        return place.T, Rotation.from_euler('ZYX', np.stack([0.4 * np.sin(at), 0 * at, 0 * at]).T)

    points = np.concatenate([rng.uniform(-0.4, 0.4, (2, 12)), rng.uniform(-0.1, 0.1, (1, 12))])
    camera = Rotation.from_euler('xyz', [np.pi + 0.1, 0.05, 0.0]).as_matrix()  # looks down
    arm, baseline, focal = np.array([0.02, 0.05, -0.03]), 0.24, 480.0
    places, turns = pose(t - delay)
    seen = np.full((4, frames, 12), -1.0)
    for k in range(frames):
        turn = turns[k].as_matrix().T
        x, y, z = camera @ (turn @ (points - places[k][:, None]) - arm[:, None])
        eyes = np.stack([x, y, x - baseline, y]) / z * focal
        eyes += np.array([320.0, 240.0] * 2)[:, None] + NOISE * rng.standard_normal((4, 12))
        seen[:, k] = np.where((eyes > 0.0).all(axis=0) & (eyes[0] < 639.0), eyes, -1.0)
    places, turns = pose(t)
    turns = turns * Rotation.from_rotvec(tilt * rng.standard_normal((frames, 3)) * (1, 1, 0))
    return {
        't': t, 'r_i_vk_i': places.T, 'theta_vk_i': turns.as_rotvec().T, 'rho_i_pj_i': points,
        'y_k_j': seen, 'C_c_v': camera, 'rho_v_c_v': arm, 'b': baseline, 'fu': focal, 'fv': focal,
        'cu': 320.0, 'cv': 240.0,
    }  # fmt: skip


def test_white_noise_is_not_taken_for_errors_of_the_pose() -> None:
    """Over 2000 features, deviation 1.6 % at most: 5 deviations, false alarm below 1e-5.

    The shift of white noise is that of the mean of about 12 features, 0.15 px.
    """
    found = starry.parts(starry.Trial(content()))
    np.testing.assert_allclose(found['error'], NOISE, rtol=0.08)
    np.testing.assert_allclose(found[LEFT], NOISE, rtol=0.08)
    assert max(found[SHIFT]) < 0.2
    assert abs(found[DELAY][0]) < 2.0
    assert np.abs(found['correlation of that with the next frame']).max() < 0.15


def test_a_wrong_orientation_shifts_whole_frames() -> None:
    """0.01 rad is 4.8 px and what it bends; 200 frames: 5 deviations, false alarm below 1e-5."""
    found = starry.parts(starry.Trial(content(tilt=0.01)))
    np.testing.assert_allclose(found[SHIFT], 4.9, rtol=0.25)
    np.testing.assert_allclose(found[LEFT], NOISE, rtol=0.08)


def test_a_late_image_is_found() -> None:
    """20 ms at 150 px/s and more, to 10 %: more than 20 deviations of the fit."""
    found = starry.parts(starry.Trial(content(delay=0.02)))
    np.testing.assert_allclose(found[DELAY], -20.0, rtol=0.1)
    calibrated = found['error with mounting and clock fitted to it']
    assert (np.array(found['error']) > 1.5 * np.array(calibrated)).all()


def test_compare_has_the_errors_of_the_script() -> None:
    """Frame, mounting and landmarks of the recording give the same pixels as the script."""
    trial = starry.Trial(content(tilt=0.01))
    recording = starry.recording_of(trial, 'starry')
    points = [{'id': k, 'position': place} for k, place in enumerate(trial.landmarks.tolist())]
    maker = make_twin_maker(recording, world_from_mapping({'landmarks': points}, 'dome'), seed=0)
    found = feature_agreement(maker.real, maker, 'base_link')
    assert found is not None
    tracks = found[1]
    error = np.sqrt(np.mean((tracks.pixels - tracks.ideal) ** 2, axis=0))
    np.testing.assert_allclose(error, starry.parts(trial)['error'], rtol=0.001)


def test_camera_model_looks_where_the_camera_does() -> None:
    trial = starry.Trial(content())
    angles = starry.camera_file(trial, [1.0, 1.0])['mounting_rpy']
    turn = Rotation.from_euler('xyz', angles) * starry.OPTICAL
    np.testing.assert_allclose(turn.as_matrix(), trial.mounting.as_matrix(), atol=1e-9)


@pytest.mark.parametrize('axis', [0, 1])
def test_kept_figures_say_that_the_pose_is_what_errs(axis: int) -> None:
    """Of the real recording: more than nine tenths of the squared error is not the features'."""
    kept = Path(starry.__file__).parent / 'results' / 'starry_night.json'
    told = json.loads(kept.read_text(encoding='utf-8'))
    parts = {name: pair[axis] for name, pair in told['parts'].items() if len(pair) == 2}
    assert parts[LEFT] ** 2 < 0.1 * parts['error'] ** 2
    assert parts['error with mounting and clock fitted to it'] > 0.9 * parts['error']
