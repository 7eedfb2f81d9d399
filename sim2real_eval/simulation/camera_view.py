# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Finding about a camera that sees nothing, with a mounting from which it would."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike

from sim2real_eval.common.findings import Finding, routine
from sim_sensors.camera import camera
from sim_sensors.camera.camera import CameraModel, Scene
from sim_sensors.core import rotations
from sim_sensors.core.measurements import FloatArray
from sim_sensors.motion.trajectory import Motion
from sim_sensors.sensor.delivery import Delivery
from sim_sensors.world.world import World

NOTHING_SEEN = routine(
    'twin.nothing_seen',
    'the camera saw no feature of the world ({count:d} empty frames)',
    'The feature tracks are empty.',
    '{remedy}',
)

_FRAMES = 40
# Distance of a camera from the middle of the scene, where 1 has just all of it in view.
_BACK = 1.5
# Share of frames from which a mounting that is tried earlier is preferred.
_ENOUGH = 0.5
_ELSEWHERE = (
    'no mounting on this motion sees its landmarks; combine `--world chessboard` with '
    '`--motion hand_held`, or `--world tag_ring` with `--motion circle`'
)
_MOUNTED = (
    'correct the static transform of {frame} in the recording, or the positions of the landmarks '
    'in the world'
)


def nothing_seen(
    subject: str, frames: int, model: CameraModel, motion: Motion, world: World, *, free: bool
) -> Finding:
    """Return the finding of a camera that saw nothing in any frame of a motion.

    `subject` is its topic and `frames` their number. If the camera is `free`, not mounted by the
    transforms of a recording, mountings that look at the middle of the scene are tried, and the
    best of them is the remedy.
    """
    if not free:
        return NOTHING_SEEN(subject, count=frames, remedy=_MOUNTED.format(frame=model.frame_id))
    mountings = _aimed(model, motion, world)
    shares = [_seen_share(mounting, motion, world) for mounting in mountings]
    best, share = max(zip(mountings, shares, strict=True), key=lambda pair: min(pair[1], _ENOUGH))
    if not share > 0.0:
        return NOTHING_SEEN(subject, count=frames, remedy=_ELSEWHERE)
    settings = ' '.join(
        f'--set camera.{name}=[{",".join(f"{value:g}" for value in getattr(best, name))}]'
        for name in ('mounting_rpy', 'lever_arm')
        if getattr(best, name) != getattr(model, name)
    )
    remedy = f'give `{settings}`, with which it sees features in {share:.0%} of the frames'
    return NOTHING_SEEN(subject, count=frames, remedy=remedy)


def _aimed(model: CameraModel, motion: Motion, world: World) -> list[CameraModel]:
    """Return the camera turned to the scene, and moved back along the body's x to see it all."""
    points = Scene.from_world(world).points
    centre = points.mean(axis=0)
    body = motion.at(np.linspace(motion.start, motion.end, _FRAMES))
    middle = rotations.rotate_back(body.orientation, centre - body.position).mean(axis=0)
    eye = body.at_lever_arm(np.array(model.lever_arm))
    sights = points[None] - eye.position[:, None]
    frame, point = np.divmod(np.argmin(np.linalg.norm(sights, axis=2)), len(points))
    nearest = rotations.rotate_back(eye.orientation[frame, None], sights[frame, point, None])[0]
    lens = model.intrinsics
    half_view = 0.5 * min(lens.width / lens.fx, lens.height / lens.fy)
    radius = float(np.linalg.norm(points - centre, axis=1).max())
    back = np.array([_BACK * radius / half_view, 0.0, 0.0])
    mountings = [
        (model.lever_arm, _rpy(middle - model.lever_arm)),
        (model.lever_arm, _rpy(nearest)),
        (middle - back, np.zeros(3)),
    ]
    return [
        dataclasses.replace(model, lever_arm=_rounded(arm), mounting_rpy=_rounded(rpy))
        for arm, rpy in mountings
    ]


def _rpy(direction: FloatArray) -> FloatArray:
    """Return roll, pitch and yaw of a camera that looks in a direction of the body, rad."""
    x, y, z = direction
    return np.array([0.0, -np.arctan2(z, np.hypot(x, y)), np.arctan2(y, x)])


def _rounded(values: ArrayLike) -> tuple[float, float, float]:
    # Adding 0 removes the sign of -0.
    x, y, z = (round(float(value), 3) + 0.0 for value in np.asarray(values))
    return x, y, z


def _seen_share(model: CameraModel, motion: Motion, world: World) -> float:
    """Return the share of frames in which enough features for a pose are in view."""
    sparse = dataclasses.replace(
        model, rate=_FRAMES / (motion.end - motion.start), delivery=Delivery(), latency=0.0
    )
    features = camera.simulate(sparse, motion, seed=0, run='remedy', world=world).features
    needed = min(model.pose.fewest, len(Scene.from_world(world)))
    return float(np.mean(np.diff(features.first) >= needed))
