# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""How well OpenCV finds the corners of a rendered chessboard, and a camera model with that noise.

The board is drawn where the true motion has it, blurred, and given pixel noise. Corners that the
detector finds are held against an ideal camera by `sim2real compare`'s own code, the `noise_std`
and `missed` of a model are set from that, and its features are held against the same. Then the
board moves during the exposure, and the rows of the image are exposed one after another.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import table, write

from sim2real_eval.recording.recording import Recording
from sim2real_eval.signals.features import FeatureAgreement, feature_agreement
from sim2real_eval.simulation import Twin
from sim2real_eval.simulation.twin_maker import TwinMaker, synthetic_recording
from sim_sensors import load_gps, load_imu, motion_of
from sim_sensors.camera.camera import CameraModel, load_camera
from sim_sensors.camera.features import FeatureArray
from sim_sensors.camera.pose import PoseEstimate
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.seeding import stream
from sim_sensors.motion.trajectory import Motion
from sim_sensors.world.world import World, world_from_mapping

ROWS, COLUMNS, SQUARE = 6, 9, 0.03
_CELL = 60  # px of the drawn board per square
_FINER = 4  # subpixels along an edge of a pixel
DETECTORS = ('cornerSubPix', 'findChessboardCornersSB')
STEP = 1e-3  # s between the pictures that a moving image is made of
MOVING = ((0.0, 0.0), (10.0, 0.0), (20.0, 0.0), (0.0, 30.0), (10.0, 30.0))  # ms, us


def world() -> World:
    """A board of 6 x 9 inner corners, 0.6 m ahead, that faces the camera."""
    place = [0.6, -0.5 * SQUARE * (COLUMNS - 1), -0.5 * SQUARE * (ROWS - 1)]
    board = {'rows': ROWS, 'columns': COLUMNS, 'square': SQUARE, 'position': place}
    return world_from_mapping({'chessboards': [board]}, 'board')


def drive() -> Motion:
    """Hand-held motion in front of the board."""
    parameters = {'swing': [0.2, 0.1, 0.1], 'sway': [0.1, 0.05, 0.05]}
    return motion_of('swaying', duration=10.0, parameters=parameters)


def camera(rate: float, **changes: Any) -> CameraModel:
    """The VGA webcam without noise, at `rate` Hz."""
    still = {'noise_std': (0.0, 0.0), 'pose': PoseEstimate(method='none')}
    model = dataclasses.replace(load_camera('webcam_vga'), rate=rate, **still)  # type: ignore[arg-type]
    return dataclasses.replace(model, **changes)


def recorded(model: CameraModel, seed: int = 1) -> Recording:
    """Return the motion, recorded with that camera."""
    twin = Twin('own', load_gps('ch_gauss'), load_imu('ideal'), others={'camera': model})
    return synthetic_recording(
        drive(), twin, seed=seed, run='board', scenario='board', world=world()
    )


def picture(corners: FloatArray, model: CameraModel, blur: float, noise: float, rng: Any) -> Any:
    """Return the image of the board with its inner corners at these pixels, `(rows * columns, 2)`.

    `blur`, px, is the deviation of the point spread, `noise` that of a pixel, of 255 levels.
    """
    return exposed(drawn(corners, model, blur), noise, rng)


def exposed(light: Any, noise: float, rng: Any) -> Any:
    """Return an image with grey levels of a lit scene, away from the ends, and pixel noise."""
    levels = 40.0 + 170.0 / 255.0 * light + noise * rng.standard_normal(light.shape)
    return np.clip(np.round(levels), 0, 255).astype(np.uint8)


def drawn(corners: FloatArray, model: CameraModel, blur: float) -> Any:
    """Return the board with its inner corners at these pixels, black on white, without noise."""
    import cv2

    across, down = COLUMNS + 3, ROWS + 3  # one square beyond the corners, and a white rim
    tiles = np.full((down, across), 255, dtype=np.uint8)
    black = np.add.outer(np.arange(ROWS + 1), np.arange(COLUMNS + 1)) % 2 == 0
    tiles[1:-1, 1:-1] = np.where(black, 0, 255)
    board = np.kron(tiles, np.full((_CELL, _CELL), 1, dtype=np.uint8))
    column, row = np.meshgrid(np.arange(COLUMNS), np.arange(ROWS))
    # Corner (0, 0) is below the first tile of the rim and of the board; centres of pixels count.
    on_board = np.stack([column.ravel() + 2, row.ravel() + 2], axis=1) * _CELL - 0.5
    fine = (corners + 0.5) * _FINER - 0.5
    homography, _ = cv2.findHomography(on_board, fine)
    size = model.intrinsics.width * _FINER, model.intrinsics.height * _FINER
    image = cv2.warpPerspective(board, homography, size, flags=cv2.INTER_AREA, borderValue=255)
    image = cv2.GaussianBlur(image, (0, 0), blur * _FINER)
    return cv2.resize(image, None, fx=1 / _FINER, fy=1 / _FINER, interpolation=cv2.INTER_AREA)


def detected(image: Any, detector: str) -> FloatArray | None:
    """Return the corners that OpenCV finds, `(rows * columns, 2)`, or None."""
    import cv2

    size = (COLUMNS, ROWS)
    if detector == 'findChessboardCornersSB':
        found, corners = cv2.findChessboardCornersSB(image, size)
    else:
        found, corners = cv2.findChessboardCorners(image, size)
        if found:
            stop = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_MAX_ITER, 30, 1e-3)
            corners = cv2.cornerSubPix(image, corners, (5, 5), (-1, -1), stop)
    return np.asarray(corners, dtype=np.float64).reshape(-1, 2) if found else None


def seen(ideal: Recording, detector: str, blur: float, noise: float) -> Recording:
    """Return the recording with what the detector finds in rendered images as its features."""
    features = ideal.features
    assert features is not None
    rng = stream(1, f'{detector} {blur} {noise}', 'benchmark', 'board')
    model, count = camera(1.0), ROWS * COLUMNS
    rows, ids, first = [], [], [0]
    for k in range(len(features)):
        true = features.pixels[features.rows(k)]
        found = None
        if len(true) == count:
            found = detected(picture(true, model, blur, noise, rng), detector)
        if found is not None:
            # A detector may begin at the other end.
            if np.abs(found - true).sum() > np.abs(found[::-1] - true).sum():
                found = found[::-1]
            rows.append(found)
            ids.append(features.ids[features.rows(k)])
        first.append(count * len(rows))
    pixels = np.concatenate(rows)
    measured = FeatureArray(
        stamp_ns=features.stamp_ns, arrival_ns=features.arrival_ns, frame=features.frame,
        first=np.array(first), ids=np.concatenate(ids), pixels=pixels,
        previous=np.full_like(pixels, np.nan), age=np.zeros(len(pixels), dtype=np.int64),
        rays=model.intrinsics.rays(pixels),
    )  # fmt: skip
    return ideal.with_messages('features', measured)


def moving(exposure: float, row_time: float, every: int = 400) -> dict[str, float]:
    """Detect corners in images that take time, and hold them against cameras that do not.

    Each row of an image is the mean of the pictures during its `exposure`, s, and begins
    `row_time`, s, after the row above. References are an ideal camera at the stamp, and one with
    that row time in the middle of the exposure. Errors are root mean squares over both axes, px.
    """
    paths = [
        recorded(camera(1.0 / STEP, row_time=rows)).features for rows in (0.0, row_time)
    ]  # fmt: skip
    still, rolling = (path for path in paths if path is not None)
    model, count, rng = camera(1.0), ROWS * COLUMNS, stream(1, 'moving', 'benchmark', 'board')
    rows = np.arange(model.intrinsics.height) * row_time
    steps = int(np.ceil((rows[-1] + exposure) / STEP)) + 1
    middle = round(exposure / 2.0 / STEP)
    at_stamp, in_middle, speed, missed = [], [], [], 0
    frames = range(0, len(still) - steps - 1, every)
    for k in frames:
        seen = [still.pixels[still.rows(k + j)] for j in range(steps + 1)]
        if any(len(pixels) < count for pixels in seen):
            missed += 1
            continue
        light: Any = 0.0
        for j in range(steps):
            # Share of the picture from this step in each row: its exposure is a box.
            share = np.clip(1.0 - np.abs(rows - j * STEP) / STEP, 0.0, None)
            if exposure > 0.0:
                overlap = np.minimum(rows + exposure, (j + 0.5) * STEP) - np.maximum(
                    rows, (j - 0.5) * STEP
                )
                share = np.clip(overlap, 0.0, None) / exposure
            if share.any():
                light = light + share[:, None] * drawn(seen[j], model, 0.7)
        found = detected(exposed(light, 2.0, rng), 'cornerSubPix')
        if found is None:
            missed += 1
            continue
        if np.abs(found - seen[0]).sum() > np.abs(found[::-1] - seen[0]).sum():
            found = found[::-1]
        at_stamp.append(found - seen[0])
        in_middle.append(found - rolling.pixels[rolling.rows(k + middle)])
        speed.append((seen[1] - seen[0]) / STEP)
    return {
        'speed px/s': _rms(speed),
        'RMSE at the stamp': _rms(at_stamp),
        'RMSE with row_time, mid-exposure': _rms(in_middle),
        'missed': missed / len(frames),
    }


def _rms(values: Any) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def agreement(recording: Recording) -> FeatureAgreement:
    """Hold features against the truth of their recording."""
    found = feature_agreement(recording, TwinMaker(recording, seed=0, world=world()), 'base_link')
    assert found is not None
    return found[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--rate', type=float, default=10.0, help='frames per second, %(default)s')
    parser.add_argument('--out', type=Path, default=Path(__file__).parent / 'results')
    options = parser.parse_args()
    head = ('detector', 'blur px', 'pixel noise', 'side', 'noise u', 'noise v', 'RMSE u', 'RMSE v',
            'std u', 'std v', 'R u', 'R v', 'missed')  # fmt: skip
    rows, ideal = [], recorded(camera(options.rate))
    figures: dict[str, list[float]] = {'RMSE': [], '1 - R': [], 'missed': []}
    for detector in DETECTORS if find_spec('cv2') else ():
        for blur, noise in ((0.7, 2.0), (0.7, 8.0), (1.5, 8.0)):
            real = agreement(seen(ideal, detector, blur, noise))
            model = camera(options.rate, noise_std=real.noise, missed=real.missed)
            simulated = agreement(recorded(model))
            figures['RMSE'] += (np.array(real.rmse) / simulated.rmse).round(4).tolist()
            figures['1 - R'] += (1.0 - np.array(real.correlation)).tolist()
            figures['missed'].append(round(100.0 * (real.missed - simulated.missed), 4))
            for side, one in (('detected', real), ('simulated', simulated)):
                values = (*one.noise, *one.rmse, *one.rmse_std)
                rows.append((
                    detector, f'{blur}', f'{noise}', side, *(f'{v:.4f}' for v in values),
                    *(f'{v:.6f}' for v in one.correlation), f'{one.missed:.1%}',
                ))  # fmt: skip
                print('  '.join(rows[-1]), flush=True)
    table(head, rows)
    told = [dict(zip(head, one, strict=True)) for one in rows]
    taken = [
        {'exposure ms': exposure, 'row time us': row, **moving(1e-3 * exposure, 1e-6 * row)}
        for exposure, row in (MOVING if find_spec('cv2') else ())
    ]
    if taken:
        table(tuple(taken[0]), [tuple(f'{value:.4g}' for value in one.values()) for one in taken])
    content = {'rate': options.rate, 'rows': told, 'moving': taken, 'figures': figures}
    write(options.out, 'board_detection', content)


if __name__ == '__main__':
    main()
