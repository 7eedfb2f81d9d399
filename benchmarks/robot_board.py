# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Write images of a board that a real camera on a robot arm took as a recording with features.

The truth is the camera's pose in the board's frame: the robot's pose, with the mounting and the
place of the board that fit the other images best. The blob detector of OpenCV finds the dots.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import sys
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation, Slerp

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from camera_recording import (
    add_outputs,
    camera_model,
    camera_recording,
    rms,
    truth_of,
    write_inputs,
)
from measuring import table, write

from sim2real_eval.recording.recording import Recording
from sim_sensors.camera.lens import PlumbBob
from sim_sensors.camera.pinhole import Intrinsics
from sim_sensors.core.measurements import FloatArray

TABLES = Path(__file__).parent / 'robot_board'
ORIGIN = """Copyright 2018 Jonathan Meyer
SPDX-License-Identifier: Apache-2.0
rct_examples/data/test_set_10x10 of https://github.com/Jmeyer1292/robot_cal_tools at 2089a06:
poses of the robot's wrist, m; dots in its images, px, found by benchmarks/robot_board.py"""
POSE = ('x', 'y', 'z', 'qx', 'qy', 'qz', 'qw')
COLUMNS = {'poses': ('image', *POSE), 'dots': ('image', 'u', 'v')}
SIDE = 10
SQUARE = 0.0254
"""Distance of two dots, m: `spacing` of its target.yaml."""
BOARD = {'rows': SIDE, 'columns': SIDE, 'square': SQUARE}
INTRINSICS = Intrinsics(
    width=640, height=480, fx=542.324, fy=543.515, cx=320.474, cy=226.039, distortion=PlumbBob()
)
"""Of its camera_intr_calibrated.yaml; the images are said to be undistorted."""
START_NS = 1_600_000_000_000_000_000
"""Stamp of the first image; the images state none."""
INTERVAL = 2.0  # s from image to image: the arm stands still at each
TRUTH_RATE = 20.0  # Hz
STILL = 0.5  # s around an image

Image = NDArray[np.uint8]


@dataclasses.dataclass(frozen=True)
class Images:
    """What was found in n images, and where the robot was.

    Attributes
    ----------
    dots : ndarray
        Pixels of the dots, `(n, 100, 2)`, row by row; the large one is the first.
    wrists, turns : ndarray, Rotation
        Pose of the wrist in the frame of the robot's base, `(n, 3)` m.
    """

    dots: FloatArray
    wrists: FloatArray
    turns: Rotation

    @property
    def board(self) -> FloatArray:
        """Places of the dots in the board's frame, `(100, 3)` m, as in `chessboard`."""
        row, column = np.divmod(np.arange(SIDE * SIDE), SIDE)
        return np.stack([np.zeros(SIDE * SIDE), column, row], axis=1) * SQUARE

    def cameras(self, fit: FloatArray) -> tuple[FloatArray, Rotation]:
        """Return the poses of the camera in the board's frame, by a calibration.

        `fit` is rotation vector and place of the camera on the wrist, and of the board in the
        robot's base, `(12,)`.
        """
        mounting, board = Rotation.from_rotvec(fit[:3]), Rotation.from_rotvec(fit[6:9]).inv()
        places = board.apply(self.wrists + self.turns.apply(fit[3:6]) - fit[9:12])
        return places, board * self.turns * mounting

    def pixels(self, fit: FloatArray) -> FloatArray:
        """Return where an ideal camera has the dots, `(n, 100, 2)` px.

        `fit` may go on with fx, fy, cx, cy, k1, and the share of the stated distance.
        """
        k = INTRINSICS
        more = fit[12:] if len(fit) > 12 else np.array([k.fx, k.fy, k.cx, k.cy, 0.0, 1.0])
        places, turns = self.cameras(fit)
        local = np.stack([
            turn.inv().apply(self.board * more[5] - place)
            for place, turn in zip(places, turns, strict=True)
        ])  # fmt: skip
        xy = local[..., :2] / local[..., 2:]
        bent = xy * (1.0 + more[4] * np.sum(xy**2, axis=-1, keepdims=True))
        return np.asarray(bent * more[:2] + more[2:4])

    def take(self, kept: NDArray[np.bool_]) -> Images:
        """Return some of the images."""
        return dataclasses.replace(
            self, dots=self.dots[kept], wrists=self.wrists[kept], turns=self.turns[kept]
        )

    def fitted(self, start: FloatArray) -> FloatArray:
        """Return the calibration that fits all dots best by least squares."""

        def error(fit: FloatArray) -> FloatArray:
            return (self.pixels(fit) - self.dots).ravel()

        return np.asarray(least_squares(error, start).x)

    def calibration(self) -> FloatArray:
        """Return the best calibration `(12,)` from 16 turns of the camera and the board."""
        found = []
        middle = self.wrists.mean(axis=0) * (1.0, 1.0, 0.0)
        for quarter in range(16):
            camera = Rotation.from_euler('z', 90.0 * (quarter % 4), degrees=True)
            board = Rotation.from_euler('z', 90.0 * (quarter // 4), degrees=True) * UPWARD
            start = [camera.as_rotvec(), np.zeros(3), board.as_rotvec(), middle]
            found.append(self.fitted(np.concatenate(start)))
        cost = [np.mean((self.pixels(fit) - self.dots) ** 2) for fit in found]
        return found[int(np.argmin(cost))]


UPWARD = Rotation.from_matrix([[0.0, 1.0, 0.0], [0.0, 0.0, -1.0], [-1.0, 0.0, 0.0]])
"""Of a board that lies on the floor, with the camera above it: its x is down."""


def dots_of(image: Image) -> FloatArray | None:
    """Return the dots that OpenCV finds, `(100, 2)`, the large one first, or None."""
    import cv2

    blobs = cv2.SimpleBlobDetector.Params()
    blobs.minThreshold, blobs.maxThreshold, blobs.minRepeatability = 20.0, 220.0, 3
    blobs.minArea, blobs.maxArea, blobs.minConvexity, blobs.minDistBetweenBlobs = 25, 5000, 0.9, 4
    blobs.filterByCircularity = blobs.filterByInertia = False
    detector = cv2.SimpleBlobDetector.create(blobs)
    how = cv2.CALIB_CB_SYMMETRIC_GRID | cv2.CALIB_CB_CLUSTERING
    found, centres = cv2.findCirclesGrid(image, (SIDE, SIDE), None, how, detector)
    if not found:
        return None
    grid = np.asarray(centres, dtype=np.float64).reshape(SIDE, SIDE, 2)
    points = detector.detect(image)
    at = np.array([point.pt for point in points])
    ends = grid[[0, 0, -1, -1], [0, -1, 0, -1]]
    nearest = np.argmin(np.linalg.norm(at[:, None] - ends, axis=2), axis=0)
    large = int(np.argmax([points[index].size for index in nearest]))
    grid = grid[:: -1 if large & 2 else 1, :: -1 if large & 1 else 1]
    along, down = grid[0, -1] - grid[0, 0], grid[-1, 0] - grid[0, 0]
    # Seen from its face, the second direction is clockwise of the first in an image.
    clockwise = along[0] * down[1] - along[1] * down[0] > 0.0
    return (grid if clockwise else grid.transpose(1, 0, 2)).reshape(-1, 2)


def detected(folder: Path) -> dict[str, FloatArray]:
    """Return the tables of a folder of images; an image without all dots is left out."""
    import cv2

    def read(name: str) -> Any:
        return yaml.safe_load((folder / name).read_text(encoding='utf-8'))

    entries = read('cal_data.yaml')
    rows, poses = [], []
    for entry in sorted(entries, key=lambda one: int(Path(one['image']).stem)):
        number, pose = int(Path(entry['image']).stem), read(entry['pose'])
        poses.append([number, *(pose[name] for name in POSE)])
        image = cv2.imread(str(folder / entry['image']), cv2.IMREAD_GRAYSCALE)
        found = dots_of(np.asarray(image, dtype=np.uint8))
        if found is not None:
            rows.append(np.column_stack([np.full(len(found), number), found]))
    return {'poses': np.array(poses), 'dots': np.concatenate(rows)}


def saved(tables: dict[str, FloatArray]) -> None:
    """Keep the tables."""
    for name, form in (('poses', '%.12g'), ('dots', '%.6g')):
        head = f'{ORIGIN}\n{",".join(COLUMNS[name])}'
        np.savetxt(TABLES / f'{name}.csv', tables[name], form, delimiter=',', header=head)


def tables_read() -> tuple[Images, int]:
    """Return what was found in the images, and in how many not all dots were."""
    poses, dots = (np.loadtxt(TABLES / f'{name}.csv', delimiter=',') for name in COLUMNS)
    found = np.unique(dots[:, 0])
    robot = poses[np.isin(poses[:, 0], found), 1:]
    images = Images(
        dots[:, 1:].reshape(len(found), SIDE * SIDE, 2), robot[:, :3],
        Rotation.from_quat(robot[:, 3:]),
    )  # fmt: skip
    return images, len(poses) - len(found)


def held_out(images: Images, fit: FloatArray) -> tuple[FloatArray, Rotation]:
    """Return the camera's pose in each image, by the calibration from all others."""
    places, turns = [], []
    for k in range(len(images.dots)):
        others = np.arange(len(images.dots)) != k
        place, turn = images.take(~others).cameras(images.take(others).fitted(fit))
        places.append(place[0])
        turns.append(turn[0].as_quat())
    return np.array(places), Rotation.from_quat(np.array(turns))


def recording_of(images: Images, places: FloatArray, turns: Rotation, name: str) -> Recording:
    """Return a recording whose base_link is the optical frame and whose world is the board.

    Between images the truth is interpolated; no image is taken there.
    """
    n = len(places)
    at = START_NS + (np.arange(n) * INTERVAL * 1e9).astype(np.int64)
    t = np.arange(round((n - 1) * INTERVAL * TRUTH_RATE) + 1) / TRUTH_RATE
    k = np.minimum((t / INTERVAL).astype(int), n - 2)
    share = np.clip((t - INTERVAL * k - STILL / 2) / (INTERVAL - STILL), 0.0, 1.0)
    way = k + share**3 * (10.0 - 15.0 * share + 6.0 * share**2)
    path = np.stack([np.interp(way, np.arange(n), column) for column in places.T], axis=1)
    stamps = START_NS + np.round(t * 1e9).astype(np.int64)
    truth = truth_of(stamps, path, Slerp(np.arange(n), turns)(way))
    each = images.dots.shape[1]
    return camera_recording(
        name, truth, INTRINSICS, at, each * np.arange(n + 1), np.tile(np.arange(each), n),
        images.dots.reshape(-1, 2),
    )  # fmt: skip


def parts(images: Images, places: FloatArray, turns: Rotation) -> dict[str, list[float]]:
    """Split the root mean square error of the dots, px, by what explains it.

    A correction of the camera's pose in each image by least squares removes errors of the pose.
    """
    errors, left = [], []
    for dots, place, turn in zip(images.dots, places, turns, strict=True):
        seen = functools.partial(_difference, dots, turn.inv().apply(images.board - place))
        errors.append(seen(np.zeros(6)).reshape(-1, 2))
        left.append(seen(least_squares(seen, np.zeros(6)).x).reshape(-1, 2))
    error, rest = np.array(errors), np.array(left)
    mean = np.broadcast_to(error.mean(axis=1, keepdims=True), error.shape)
    far = np.linalg.norm(images.dots - (INTRINSICS.cx, INTRINSICS.cy), axis=2)
    # What neighbours share is not white; of white noise with variance 1 the variance is 6.
    bends = np.diff(rest.reshape(-1, SIDE, SIDE, 2), n=2, axis=2)
    return {
        'error': rms(error),
        'shift of whole images': rms(mean),
        'left with the pose by the dots': rms(rest),
        'the same within 200 px of the middle': rms(rest[far < 200.0]),
        'the same from 300 px on': rms(rest[far >= 300.0]),
        'white noise, by second differences of a row': rms(bends / np.sqrt(6.0)),
    }


def _difference(dots: FloatArray, local: FloatArray, change: FloatArray) -> FloatArray:
    """Return the error of dots at places in the optical frame that are turned and moved."""
    moved = Rotation.from_rotvec(change[:3]).apply(local) + change[3:]
    return (INTRINSICS.project(moved) - dots).ravel()


def camera_file(noise: list[float]) -> dict[str, Any]:
    """Return a camera model with the stated intrinsics and white noise, px."""
    # The body's axes are the optical ones.
    mounting = [0.0, -np.pi / 2.0, np.pi / 2.0]
    return camera_model(INTRINSICS, 1.0 / INTERVAL, noise, mounting, [0.0, 0.0, 0.0])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=f'{__doc__} Data: rct_examples/data/test_set_10x10 of '
        'https://github.com/Jmeyer1292/robot_cal_tools (Apache-2.0).'
    )
    parser.add_argument(
        '--images',
        type=Path,
        metavar='DIR',
        help='its test_set_10x10: find the dots anew with OpenCV and keep the tables',
    )
    add_outputs(parser, 'robot_board.json')
    options = parser.parse_args()
    if options.images is not None:
        if not (options.images / 'cal_data.yaml').is_file():
            parser.error(f'{options.images}: has no cal_data.yaml')
        saved(detected(options.images))
    images, missed = tables_read()
    fit = images.calibration()
    poses = held_out(images, fit)
    found = parts(images, *poses)
    files = {
        'world': {'chessboards': [BOARD]},
        'detector': camera_file(found['left with the pose by the dots']),
        'all': camera_file(found['error']),
    }
    write_inputs(parser, options.out, recording_of(images, *poses, 'robot_board'), files)
    k = INTRINSICS
    refit = images.fitted(np.concatenate([fit, [k.fx, k.fy, k.cx, k.cy, 0.0, 1.0]]))
    found['error with lens and size of the board fitted to these images'] = rms(
        images.pixels(refit) - images.dots
    )
    table(('part', 'u px', 'v px'), [(name, *map(str, pair)) for name, pair in found.items()])
    if options.results is not None:
        told = {'images': len(images.dots), 'missed': missed, 'parts': found}
        write(options.results, 'robot_board', told)


if __name__ == '__main__':
    main()
