# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Features of a camera against those of an ideal one: known errors are found again."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(1, str(Path(__file__).resolve().parents[1] / 'benchmarks'))

import board_detection as board

from sim2real_eval.recording.recording import Recording
from sim2real_eval.signals.comparison import compare_runs
from sim2real_eval.signals.measured import SensorSignals, run_signals
from sim2real_eval.signals.options import SignalComparisonError, SignalOptions
from sim2real_eval.simulation.twin_maker import make_twin_maker
from sim_sensors.camera.camera import Mismatches
from sim_sensors.camera.features import LineArray, edges
from sim_sensors.camera.lens import PlumbBob
from sim_sensors.camera.pinhole import Intrinsics

OPTIONS = SignalOptions()


def seen(recording: Recording) -> SensorSignals:
    """Hold the camera of a recording against the board."""
    maker = make_twin_maker(recording, board.world(), seed=0)
    return run_signals(maker.real, OPTIONS, sensors=['camera'], maker=maker)


def signals(seed: int = 1, **changes: object) -> SensorSignals:
    return seen(board.recorded(board.camera(10.0, **changes), seed))


def test_noise_misses_and_mismatches_of_features_equal_those_of_the_model(
    record_property: Callable[[str, object], None],
) -> None:
    """100 frames of 54 corners: noise to 5 %, shares within three standard errors."""
    model = {'noise_std': (0.3, 0.5), 'missed': 0.1, 'mismatches': Mismatches(0.2, 0.3)}
    features = signals(**model).features
    np.testing.assert_allclose(features.noise, (0.3, 0.5), rtol=0.05)
    record_property('noise', float(np.abs(np.array(features.noise) / (0.3, 0.5) - 1.0).max()))
    assert features.missed == pytest.approx(0.1, abs=0.013)
    assert features.mismatched_frames == pytest.approx(0.2, abs=0.12)
    assert features.mismatched == pytest.approx(0.3, abs=0.05)


def test_line_errors_match_the_covariance_of_their_end_points() -> None:
    """15 lines in 100 frames, some of which share corners: rms to 6 %, three standard errors."""
    recording = board.recorded(board.camera(10.0, noise_std=(0.3, 0.5)))
    features = seen(recording).features
    lines = LineArray.from_features(
        recording.features, edges(board.world().chessboards), (0.3, 0.5)
    )
    assert len(lines.frame) > 1400
    expected = np.sqrt(np.einsum('nii->ni', lines.covariance).mean(axis=0))
    rmse = np.array([features.line_angle_rmse, features.line_distance_rmse], dtype=float)
    np.testing.assert_allclose(rmse / expected, 1.0, atol=0.06)


def test_mismatched_features_do_not_affect_line_errors() -> None:
    """10 % wrong in 2 % of 100 frames, by some 100 px; 15 lines each: rms to 6 %."""
    wrong = signals(noise_std=(0.3, 0.5), mismatches=Mismatches(0.02, 0.1)).features
    right = signals(noise_std=(0.3, 0.5)).features
    assert 0.0 < wrong.mismatched_frames < 0.06
    for name in ('line_angle_rmse', 'line_distance_rmse'):
        assert getattr(wrong, name) == pytest.approx(getattr(right, name), rel=0.06)


def test_an_ideal_camera_has_no_error() -> None:
    ideal = signals().features
    assert max(ideal.rmse) < 1e-6
    assert min(ideal.correlation) == pytest.approx(1.0)
    assert (ideal.missed, ideal.mismatched_frames, ideal.mismatched) == (0.0, 0.0, 0.0)


def test_a_wrong_calibration_is_reported_as_an_error_but_not_as_noise() -> None:
    recording = board.recorded(board.camera(10.0, noise_std=(0.2, 0.2)))
    info = recording.camera_info
    shifted = info.matrix + np.array([[0, 0, 3.0], [0, 0, 0], [0, 0, 0]])
    recording = recording.with_messages('camera_info', dataclasses.replace(info, matrix=shifted))
    off = seen(recording).features
    np.testing.assert_allclose(off.rmse, (3.0, 0.2), rtol=0.05)
    np.testing.assert_allclose(off.noise, 0.2, rtol=0.05)
    assert off.mismatched_frames < 0.02


def test_cameras_are_compared_without_any_other_sensor() -> None:
    real = [signals(seed, noise_std=(0.4, 0.4)) for seed in (1, 2)]
    comparison = compare_runs(real, {'webcam_vga': [signals(3, noise_std=(0.5, 0.5))]}, OPTIONS)
    (row,) = comparison.features
    assert (row.n_real, row.n_simulated, comparison.rows) == (2, 1, ())
    np.testing.assert_allclose(row.simulated.noise, 1.25 * np.array(row.real.noise), rtol=0.1)


def test_the_drawn_feature_is_the_chosen_one_with_its_noise() -> None:
    real = signals(1, noise_std=(0.4, 0.4), missed=0.2)
    simulated = {'webcam_vga': [signals(3, noise_std=(0.5, 0.5))]}
    chosen = compare_runs([real], simulated, dataclasses.replace(OPTIONS, feature=7))
    model, series, other = chosen.track
    assert (model, series.quantity.name) == ('webcam_vga', 'feature_7')
    rows = real.tracks.ids == 7
    found = np.isfinite(series.measured).all(axis=1)
    np.testing.assert_array_equal(series.time[found], real.tracks.time[rows])
    np.testing.assert_array_equal(series.measured[found], real.tracks.pixels[rows])
    assert np.nanstd(series.error) == pytest.approx(0.4, rel=0.15)
    assert np.nanstd(other.error) == pytest.approx(0.5, rel=0.15)
    longest = compare_runs([real], simulated, OPTIONS).track[1].measured
    assert np.isfinite(longest).all(axis=1).sum() >= found.sum()
    with pytest.raises(SignalComparisonError):
        compare_runs([real], simulated, dataclasses.replace(OPTIONS, feature=999))


def test_cameras_without_a_common_feature_have_no_track() -> None:
    real, simulated = signals(1), signals(3)
    tracks = dataclasses.replace(simulated.tracks, ids=simulated.tracks.ids + 1000)
    apart = {'webcam_vga': [dataclasses.replace(simulated, tracks=tracks)]}
    assert compare_runs([real], apart, OPTIONS).track is None
    with pytest.raises(SignalComparisonError):
        compare_runs([real], apart, dataclasses.replace(OPTIONS, feature=7))


def test_the_calibration_is_recovered_from_camera_info() -> None:
    lens = PlumbBob(-0.28, 0.11, 0.001, -0.0008, -0.02)
    bent = Intrinsics(fx=670.0, fy=665.0, cx=333.0, cy=237.0, skew=0.003, distortion=lens)
    info = board.recorded(board.camera(1.0, intrinsics=bent)).camera_info
    intrinsics = info.intrinsics()
    assert (intrinsics.width, intrinsics.height, intrinsics.distortion) == (640, 480, lens)
    np.testing.assert_allclose(intrinsics.matrix, bent.matrix)


@pytest.mark.parametrize('detector', board.DETECTORS)
def test_a_model_fitted_to_detected_corners_has_their_noise(detector: str) -> None:
    """OpenCV finds corners of a rendered board to some hundredths of a pixel."""
    pytest.importorskip('cv2')
    ideal = board.recorded(board.camera(1.0))
    real = board.agreement(board.seen(ideal, detector, 0.7, 8.0))
    assert 0.01 < min(real.noise) <= max(real.noise) < 0.15
    assert max(real.rmse) < 0.15
    model = board.camera(1.0, noise_std=real.noise, missed=real.missed)
    simulated = board.agreement(board.recorded(model))
    np.testing.assert_allclose(simulated.noise, real.noise, rtol=0.15)
