# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Write Starry Night, a moving stereo camera with its true pose, as a recording with features.

The places of twenty landmarks and the pose of the camera's body are its ground truth. The features
of the left eye are kept; both eyes tell errors of the pose from those of the features.
"""

from __future__ import annotations

import argparse
import functools
import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import loadmat
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

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

from sim2real_eval.recording.recording import Recording, StaticTransform
from sim_sensors.camera.lens import PlumbBob
from sim_sensors.camera.pinhole import Intrinsics
from sim_sensors.core.measurements import FloatArray

ORIGIN = (
    'Data: datasets/dataset3.mat of https://github.com/utiasSTARS/msckf-swf-comparison '
    '(no licence is stated), described there in variables.pdf.'
)
START_NS = 1_600_000_000_000_000_000
SIZE = (640, 480)
"""Of the image, px; not stated, features reach from 77.5 to 639 and from 0 to 479."""
OPTICAL = Rotation.from_matrix([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])
"""Axes of an optical frame in those of a camera that looks along x."""
FEWEST = 6
"""Landmarks in a frame whose pose is fitted to its features."""


class Trial:
    """Content of dataset3.mat.

    `stamps` `(k,)` are s, `places` `(k, 3)` m and `turns` are the pose of the body, `landmarks`
    `(20, 3)` m, `pixels` `(k, 20, 4)` u and v of the left and of the right eye, NaN if not found.
    """

    def __init__(self, content: dict[str, Any]) -> None:
        self.stamps: FloatArray = np.asarray(content['t'], dtype=np.float64)
        self.places: FloatArray = content['r_i_vk_i'].T
        # theta is minus the rotation vector from the world to the body.
        self.turns = Rotation.from_rotvec(content['theta_vk_i'].T)
        self.landmarks: FloatArray = content['rho_i_pj_i'].T
        found = content['y_k_j'].transpose(1, 2, 0)
        self.pixels: FloatArray = np.where((found == -1.0).any(axis=2)[..., None], np.nan, found)
        self.mounting = Rotation.from_matrix(content['C_c_v']).inv()
        self.arm: FloatArray = content['rho_v_c_v']
        self.baseline = float(content['b'])
        fx, fy, cx, cy = (float(content[name]) for name in ('fu', 'fv', 'cu', 'cv'))
        self.intrinsics = Intrinsics(
            width=SIZE[0], height=SIZE[1], fx=fx, fy=fy, cx=cx, cy=cy, distortion=PlumbBob()
        )

    def local(self, mounting: FloatArray | None = None, delay: float = 0.0) -> FloatArray:
        """Return the landmarks in the left optical frame, `(k, 20, 3)` m.

        `mounting` is a further turn and shift of the camera, rotation vector and m, `(6,)`, and
        `delay`, s, moves the pose with its mean speed of the neighbouring frames.
        """
        change = np.zeros(6) if mounting is None else mounting
        step = np.diff(self.stamps)[:, None]
        speed = np.gradient(self.places, self.stamps, axis=0)
        rate = (self.turns[:-1].inv() * self.turns[1:]).as_rotvec() / step
        places = self.places + delay * speed
        turns = self.turns * Rotation.from_rotvec(delay * np.vstack([rate[:1], rate]))
        seen = np.einsum('kji,knj->kni', turns.as_matrix(), self.landmarks - places[:, None])
        turn = self.mounting * Rotation.from_rotvec(change[:3])
        return np.asarray((seen - self.arm - change[3:]) @ turn.as_matrix())

    def project(self, local: FloatArray) -> FloatArray:
        """Return u and v of both eyes, px, of places in the left optical frame."""
        right = local - (self.baseline, 0.0, 0.0)
        flat = [self.intrinsics.project(eye.reshape(-1, 3)) for eye in (local, right)]
        return np.concatenate(flat, axis=1).reshape(*local.shape[:-1], 4)


def recording_of(trial: Trial, name: str) -> Recording:
    """Return the left eye's features with the pose of the body at each frame as truth."""
    stamps = START_NS + np.round(trial.stamps * 1e9).astype(np.int64)
    found = np.isfinite(trial.pixels[..., 0])
    first = np.concatenate([[0], np.cumsum(found.sum(axis=1))])
    x, y, z = trial.arm.tolist()
    qx, qy, qz, qw = trial.mounting.as_quat().tolist()
    return camera_recording(
        name, truth_of(stamps, trial.places, trial.turns), trial.intrinsics, stamps, first,
        np.nonzero(found)[1], trial.pixels[found][:, :2], frame='camera',
        transforms=(StaticTransform('base_link', 'camera', (x, y, z), (qx, qy, qz, qw)),),
    )  # fmt: skip


def parts(trial: Trial) -> dict[str, list[float]]:
    """Split the root mean square error of the left eye's features, u and v, px, by its causes."""
    local = trial.local()
    error = trial.pixels - trial.project(local)
    found = np.isfinite(error[..., 0])

    def calibrated(change: FloatArray) -> FloatArray:
        return (trial.pixels - trial.project(trial.local(change[:6], change[6])))[found].ravel()

    fit = least_squares(calibrated, np.zeros(7))
    rest, shared = np.full_like(error, np.nan), np.full((len(error), 2), np.nan)
    for k in np.flatnonzero(found.sum(axis=1) >= FEWEST):
        seen = functools.partial(_difference, trial, trial.pixels[k, found[k]], local[k, found[k]])
        # Six of the numbers went into the pose.
        spent = np.sqrt(1.0 - 6.0 / (4.0 * found[k].sum()))
        rest[k, found[k]] = seen(least_squares(seen, np.zeros(6)).x).reshape(-1, 4) / spent
        shared[k] = error[k, found[k], :2].mean(axis=0)
    row = (trial.pixels[..., 1] - trial.pixels[..., 3])[found] / np.sqrt(2.0)
    center = float(np.median(row))
    deviation = 1.4826 * float(np.median(np.abs(row - center)))
    return {
        'error': rms(error[..., :2]),
        'error with mounting and clock fitted to it': rms(fit.fun.reshape(-1, 4)[:, :2]),
        'fitted delay, ms': [round(1e3 * float(fit.x[6]), 2)],
        f'shift of whole frames of {FEWEST} and more': rms(shared),
        'its correlation with the next frame': _correlation(shared, 1),
        'its correlation ten frames later': _correlation(shared, 10),
        'left with the pose by the features': rms(rest[..., :2]),
        'correlation of that with the next frame': _correlation(rest[..., :2], 1),
        'deviation of v by the rows of both eyes': [round(deviation, 4)],
        'share of rows beyond six deviations': [
            round(float(np.mean(np.abs(row - center) > 6.0 * deviation)), 4)
        ],
    }


def _difference(
    trial: Trial, pixels: FloatArray, local: FloatArray, change: FloatArray
) -> FloatArray:
    moved = Rotation.from_rotvec(change[:3]).apply(local) + change[3:]
    return (pixels - trial.project(moved)).ravel()


def _correlation(values: FloatArray, lag: int) -> list[float]:
    """Return the correlation along the first axis of each last one's numbers."""
    early, late = values[:-lag].reshape(-1, 2), values[lag:].reshape(-1, 2)
    both = np.isfinite(early).all(axis=1) & np.isfinite(late).all(axis=1)
    if both.sum() < 3:
        return [float('nan')] * 2
    return [round(float(np.corrcoef(early[both, a], late[both, a])[0, 1]), 3) for a in range(2)]


def camera_file(trial: Trial, noise: list[float]) -> dict[str, Any]:
    """Return a camera model with the stated intrinsics and mounting, and white noise, px."""
    rate = round(float(1.0 / np.mean(np.diff(trial.stamps))), 3)
    mounting = (trial.mounting * OPTICAL.inv()).as_euler('xyz').tolist()
    model = camera_model(trial.intrinsics, rate, noise, mounting, trial.arm.tolist())
    return {**model, 'pose': {'method': 'none'}}


def main() -> None:
    parser = argparse.ArgumentParser(description=f'{__doc__} {ORIGIN}')
    parser.add_argument('file', type=Path, help='its dataset3.mat')
    add_outputs(parser, 'starry_night.json')
    options = parser.parse_args()
    if not options.file.is_file():
        parser.error(f'{options.file}: no such file')
    content = loadmat(options.file, squeeze_me=True)
    missing = {'t', 'r_i_vk_i', 'theta_vk_i', 'rho_i_pj_i', 'y_k_j', 'C_c_v', 'b'} - set(content)
    if missing:
        parser.error(f'{options.file}: has no {", ".join(sorted(missing))}; give dataset3.mat')
    trial = Trial(content)
    found = parts(trial)
    points = [
        {'id': number, 'position': place} for number, place in enumerate(trial.landmarks.tolist())
    ]
    files = {
        'world': {'landmarks': points},
        'features': camera_file(trial, found['left with the pose by the features']),
        'all': camera_file(trial, found['error']),
    }
    write_inputs(parser, options.out, recording_of(trial, 'starry_night'), files)
    table(('part', 'u', 'v'), [(name, *map(str, (pair * 2)[:2])) for name, pair in found.items()])
    if options.results is not None:
        frames = int(np.isfinite(trial.pixels[..., 0]).any(axis=1).sum())
        told = {'frames': len(trial.stamps), 'frames with features': frames, 'parts': found}
        write(options.results, 'starry_night', told)


if __name__ == '__main__':
    main()
