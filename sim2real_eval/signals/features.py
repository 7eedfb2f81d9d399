# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Comparison of camera features with those of an ideal camera, as in [Ligorio2015] table 3."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from sim2real_eval.recording.metadata import FrameTree
from sim2real_eval.recording.recording import Recording
from sim2real_eval.simulation.twin_maker import TwinMaker
from sim_sensors.camera.camera import Scene
from sim_sensors.camera.features import FeatureArray, LineArray, edges
from sim_sensors.core import rotations
from sim_sensors.core.blocks import seconds
from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.world.world import World

AXES = ('u', 'v')
_DEVIATION = 1.4826  # of a normal law over its median absolute deviation
_WRONG = 6.0  # deviations
_MIN_DEVIATION = 0.05  # px
_MIN = 3  # samples of a feature


@dataclasses.dataclass(frozen=True)
class FeatureAgreement:
    """Agreement of camera features with those of an ideal camera; one run or a mean.

    Attributes
    ----------
    rmse, rmse_std, correlation, correlation_std : tuple of float
        Root mean square error, px, and correlation R along u and v: mean and standard deviation
        over the features.
    noise : tuple of float
        Standard deviation from frame to frame along u and v, px, without mismatches, like
        `noise_std` of a camera model. It excludes errors of pose and calibration, which are slow.
    missed : float
        Share of the features in view that were not found, like `missed` of a model. The view is
        the whole image at any depth: features that `border`, `nearest` and `farthest` exclude
        are missed.
    mismatched_frames, mismatched : float
        Share of the frames with mismatches, and share of wrong features in these frames. A wrong
        feature has an error of more than 6 deviations.
    line_angle_rmse, line_distance_rmse : float or None
        Root mean square errors, rad and px, of the lines through the ends of rows and columns of
        the world's chessboards, without mismatches; None if no chessboard is in view. See
        `LineArray`.
    """

    rmse: tuple[float, float]
    rmse_std: tuple[float, float]
    correlation: tuple[float, float]
    correlation_std: tuple[float, float]
    noise: tuple[float, float]
    missed: float
    mismatched_frames: float
    mismatched: float
    line_angle_rmse: float | None = None
    line_distance_rmse: float | None = None

    @classmethod
    def mean(cls, runs: Sequence[FeatureAgreement]) -> FeatureAgreement:
        """Return the mean of several runs."""
        values: dict[str, Any] = {}
        for field in dataclasses.fields(cls):
            every = [getattr(run, field.name) for run in runs]
            available = [mean_value for mean_value in every if mean_value is not None]
            values[field.name] = np.mean(available, axis=0).tolist() if available else None
            if isinstance(values[field.name], list):
                values[field.name] = tuple(values[field.name])
        return cls(**values)


@dataclasses.dataclass(frozen=True)
class FeatureRow:
    """Agreement of the cameras of a set of simulated runs and of the real runs."""

    model: str
    n_real: int
    n_simulated: int
    real: FeatureAgreement
    simulated: FeatureAgreement


@dataclasses.dataclass(frozen=True, eq=False)
class FeatureTracks:
    """Found features of a run, and those of an ideal camera; a row per feature and frame.

    `time` `(n,)` is s since the start of the truth, `ids` `(n,)` are those of the world, and
    `pixels` and `ideal` `(n, 2)` are u and v, px. `frame_times` `(m,)` are those of all frames.
    """

    time: FloatArray
    ids: IntArray
    pixels: FloatArray
    ideal: FloatArray
    frame_times: FloatArray

    def track(self, feature: int) -> tuple[FloatArray, FloatArray]:
        """Return pixels and ideal pixels, `(m, 2)`, in all frames; NaN where it is not found."""
        rows = self.ids == feature
        frames = np.searchsorted(self.frame_times, self.time[rows])
        track = np.full((2, len(self.frame_times), 2), np.nan)
        track[:, frames] = self.pixels[rows], self.ideal[rows]
        return track[0], track[1]


def feature_agreement(
    recording: Recording, maker: TwinMaker, base_frame: str
) -> tuple[FeatureAgreement, FeatureTracks] | None:
    """Compare features with those of an ideal camera on the true motion.

    The ideal camera sees the landmarks of the world of `maker`.

    The calibration is the first camera info of the recording; its static transforms
    give the pose of the camera. The result is None if it has no features with a camera info, or if
    fewer than two landmarks are found often enough.
    """
    features, info = recording.features, recording.camera_info
    scene = Scene.from_world(maker.world)
    if features is None or info is None or not len(info) or not len(scene):
        return None
    intrinsics = info.intrinsics()
    frames = FrameTree(recording.transforms, assume_identity=not recording.transforms)
    matrix, arm = frames.lookup(base_frame, features.frame, 'camera')
    turn = Rotation.from_matrix(matrix).as_quat()
    times = seconds(features.stamp_ns, maker.start_ns)
    truth = maker.motion.at(times)
    eyes = truth.at_lever_arm(arm).position
    turns = rotations.multiply(truth.orientation, turn[None])
    order = np.argsort(scene.ids)
    rows, places, true, in_view = [], [], [], 0
    for k in range(len(features)):
        local = rotations.rotate_back(turns[k, None], scene.points - eyes[k])
        pixels = intrinsics.project(local)
        in_view += int((intrinsics.inside(pixels) & scene.visible_from(eyes[k])).sum())
        feature_rows = np.arange(features.first[k], features.first[k + 1])
        near = np.searchsorted(scene.ids, features.ids[feature_rows], sorter=order)
        place = order[np.minimum(near, len(order) - 1)]
        is_landmark = scene.ids[place] == features.ids[feature_rows]
        rows.append(feature_rows[is_landmark])
        places.append(place[is_landmark])
        true.append(pixels[place[is_landmark]])
    row, place = np.concatenate(rows), np.concatenate(places)
    ideal = np.concatenate(true)
    usable = np.isfinite(ideal).all(axis=1)
    frame = np.repeat(np.arange(len(features)), [len(feature_rows) for feature_rows in rows])[
        usable
    ]
    row, place, ideal = row[usable], place[usable], ideal[usable]
    pixels = features.pixels[row]
    agreement_and_mask = _agreement(frame, place, pixels, ideal, in_view)
    if agreement_and_mask is None:
        return None
    agreement, wrong = agreement_and_mask
    everywhere = np.full_like(features.pixels, np.nan)
    everywhere[row[~wrong]] = ideal[~wrong]
    angle, distance = _line_errors(features, everywhere, maker.world)
    agreement = dataclasses.replace(agreement, line_angle_rmse=angle, line_distance_rmse=distance)
    return agreement, FeatureTracks(times[frame], scene.ids[place], pixels, ideal, times)


def _line_errors(
    features: FeatureArray, ideal: FloatArray, world: World
) -> tuple[float, float] | tuple[None, None]:
    pairs = edges(world.chessboards)
    measured = LineArray.from_features(features, pairs, 0.0)
    angle, distance = measured.differences(
        LineArray.from_features(dataclasses.replace(features, pixels=ideal), pairs, 0.0)
    )
    in_view = np.isfinite(angle) & np.isfinite(distance)
    if not in_view.any():
        return None, None
    rms = [float(np.sqrt(np.mean(error[in_view] ** 2))) for error in (angle, distance)]
    return rms[0], rms[1]


def _agreement(
    frame: IntArray, place: IntArray, pixels: FloatArray, ideal: FloatArray, in_view: int
) -> tuple[FeatureAgreement, NDArray[np.bool_]] | None:
    """Return the agreement and a mask of the mismatched features."""
    error = pixels - ideal
    groups = [np.flatnonzero(place == landmark) for landmark in np.unique(place)]
    groups = [rows for rows in groups if len(rows) >= _MIN]
    if len(groups) < 2:
        return None
    # A wrong pose moves all features of a frame, a wrong calibration one feature in all frames.
    residual = error.copy()
    for labels in (frame, place):
        for label in np.unique(labels):
            residual[labels == label] -= np.median(residual[labels == label], axis=0)
    deviation = np.maximum(_DEVIATION * np.median(np.abs(residual), axis=0), _MIN_DEVIATION)
    wrong = (np.abs(residual) > _WRONG * deviation).any(axis=1)
    steps, rmse, correlation = [], [], []
    for rows in groups:
        rmse.append(np.sqrt(np.mean(error[rows] ** 2, axis=0)))
        together = (
            np.stack([pixels[rows], ideal[rows]])
            - np.stack([pixels[rows].mean(axis=0), ideal[rows].mean(axis=0)])[:, None]
        )
        power = np.sqrt(np.prod(np.sum(together**2, axis=1), axis=0))
        product = np.sum(together[0] * together[1], axis=0)
        correlation.append(product / np.where(power > 0.0, power, np.inf))
        right = rows[~wrong[rows]]
        step = np.diff(error[right], axis=0)
        steps.append(step[np.diff(frame[right]) == 1])
    moved = np.concatenate(steps)
    noise = np.median(np.abs(moved), axis=0) if len(moved) else np.zeros(2)
    affected = np.unique(frame[wrong])
    inside = np.isin(frame, affected)
    spread = [np.std(values, axis=0, ddof=1).tolist() for values in (rmse, correlation)]
    mean = [np.mean(values, axis=0).tolist() for values in (rmse, correlation)]
    agreement = FeatureAgreement(
        rmse=tuple(mean[0]),
        rmse_std=tuple(spread[0]),
        correlation=tuple(mean[1]),
        correlation_std=tuple(spread[1]),
        noise=tuple((_DEVIATION / np.sqrt(2.0) * noise).tolist()),
        missed=max(1.0 - len(frame) / in_view, 0.0) if in_view else 0.0,
        mismatched_frames=len(affected) / max(len(np.unique(frame)), 1),
        mismatched=float(wrong.sum() / max(inside.sum(), 1)),
    )
    return agreement, wrong
