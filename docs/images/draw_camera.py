# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Draw camera.png: feature tracks in the image, and the error of the poses that come from them.

Run it in this folder, from an environment with the package: `python draw_camera.py`. It takes some
seconds.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from scipy.spatial.transform import Rotation

from sim2real_eval.report.style import new_figure, save_png
from sim_sensors.camera.camera import CameraModel, Mismatches, load_camera
from sim_sensors.camera.features import CameraMeasurement
from sim_sensors.camera.pose import PoseEstimate
from sim_sensors.motion.trajectory import Trajectory
from sim_sensors.world.world import load_world

FRAMES = 150
LEFT, RIGHT = '#0072b2', '#d55e00'


def main() -> None:
    """Write camera.png beside this file."""
    figure = new_figure(11.0, 4.6)
    tracks, errors = figure.subplots(1, 2, width_ratios=(1.0, 1.25))
    draw_tracks(tracks, seen(dataclasses.replace(camera(), mismatches=Mismatches(0.1, 0.3)), 45))
    draw_errors(errors)
    save_png(figure, Path(__file__).parent / 'camera.png')


def camera() -> CameraModel:
    """Return the webcam of [Ligorio2015]."""
    return load_camera('webcam_vga')


def motion(frames: int) -> Trajectory:
    """Return a hand that sways before the chessboard in the plane x = 0."""
    t = np.arange(frames) / 30.0
    place = np.stack(
        [-0.17 + 0.02 * np.sin(t), 0.06 + 0.05 * np.cos(0.9 * t), 0.05 + 0.03 * np.sin(1.4 * t)],
        axis=1,
    )
    heading = np.arctan2(0.02 - place[:, 1], -place[:, 0])
    dip = np.arctan2(place[:, 2] - 0.02, -place[:, 0])
    turn = np.stack([0.3 * np.sin(0.7 * t), dip, heading], axis=1)
    zero = np.zeros((frames, 3))
    attitude = Rotation.from_euler('xyz', turn).as_quat()
    return Trajectory(t, place, attitude, zero, zero, zero, zero)


def seen(model: CameraModel, frames: int) -> CameraMeasurement:
    """Return what the camera sees of the chessboard."""
    return model.start(1, 'picture', world=load_world('chessboard')).measure(motion(frames))


def draw_tracks(axes: Axes, found: CameraMeasurement) -> None:
    """Draw the way of each feature through the image; mismatches are marked."""
    right = found.ids == found.true_ids
    for number in np.unique(found.ids):
        own = (found.ids == number) & right
        axes.plot(*found.pixels[own].T, '-', color='0.7', linewidth=0.8, zorder=1)
    jump = ~right & (found.age > 0)
    for before, now in zip(found.previous[jump], found.pixels[jump], strict=True):
        axes.plot(*np.stack([before, now]).T, '-', color=RIGHT, linewidth=0.5, zorder=2)
    last = slice(found.first[-2], found.first[-1])
    axes.plot(*found.pixels[jump].T, 'x', color=RIGHT, markersize=4, label='mismatch')
    axes.plot(*found.pixels[last].T, 'o', color=LEFT, markersize=5, label='latest frame')
    for number, (u, v) in zip(found.ids[last], found.pixels[last], strict=True):
        axes.annotate(str(number), (u, v), (4, 4), textcoords='offset points', fontsize=8)
    size = camera().intrinsics
    axes.set(xlim=(-0.5, size.width - 0.5), ylim=(size.height - 0.5, -0.5))
    axes.set_aspect('equal')
    axes.set_xlabel('u, px')
    axes.set_ylabel('v, px')
    axes.set_title('Nine corners, 1.5 s, 10 % of the frames mixed up', loc='left', fontsize=10)
    axes.legend(loc='upper right', fontsize=8)


def draw_errors(axes: Axes) -> None:
    """Draw the error of the yaw of poses by the DLT and refined, and 99 % bands."""
    truth = motion(FRAMES)
    for method, colour in (('dlt', RIGHT), ('refined', LEFT)):
        found = seen(dataclasses.replace(camera(), pose=PoseEstimate(method=method)), FRAMES)
        turn = Rotation.from_quat(found.orientation) * Rotation.from_quat(truth.orientation).inv()
        error = np.degrees(turn.as_rotvec()[:, 2])
        band = np.degrees(2.576 * np.sqrt(found.pose_covariance[:, 5, 5]))
        inside = float(np.mean(np.abs(error) < band))
        rms = float(np.sqrt(np.mean(error**2)))
        axes.plot(truth.time, error, '.', color=colour, markersize=3)
        name = f'{method}: rms {rms:.2f}°, {inside:.0%} inside'
        axes.plot(truth.time, band, '-', color=colour, linewidth=0.9, label=name)
        axes.plot(truth.time, -band, '-', color=colour, linewidth=0.9)
    axes.set_xlabel('time, s')
    axes.set_ylabel('error of the yaw, deg')
    axes.set_title('Poses from 0.5 px of noise, and their 99 % bands', loc='left', fontsize=10)
    axes.legend(loc='upper right', fontsize=8)
    axes.set_ylim(-6.0, 6.0)
    axes.margins(x=0.01)


if __name__ == '__main__':
    main()
