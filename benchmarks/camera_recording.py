# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""A real camera's features and true poses as a recording, with the files that `compare` needs."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import RecordingError
from sim2real_eval.recording.recording import Recording, StaticTransform
from sim2real_eval.recording.writing import write_recording
from sim_sensors.camera.features import FeatureArray
from sim_sensors.camera.pinhole import CameraInfoArray, Intrinsics
from sim_sensors.core.measurements import FloatArray, IntArray, OdometryArray


def truth_of(stamp_ns: IntArray, places: FloatArray, turns: Rotation) -> OdometryArray:
    """Return poses `(n, 3)` m and rotations of base_link in the world, without twists."""
    zero, six = np.zeros((len(stamp_ns), 3)), np.zeros((len(stamp_ns), 6, 6))
    return OdometryArray(
        stamp_ns, stamp_ns, 'world', 'base_link', places, turns.as_quat(), zero, zero, six, six
    )


def camera_recording(
    name: str,
    truth: OdometryArray,
    intrinsics: Intrinsics,
    stamp_ns: IntArray,
    first: IntArray,
    ids: IntArray,
    pixels: FloatArray,
    *,
    frame: str = 'base_link',
    transforms: tuple[StaticTransform, ...] = (),
) -> Recording:
    """Return the recording of a camera.

    Frame k at `stamp_ns` `(k,)` has the features `first[k]` to `first[k + 1]` of `ids` `(n,)` and
    `pixels` `(n, 2)`.
    """
    features = FeatureArray(
        stamp_ns=stamp_ns, arrival_ns=stamp_ns, frame=frame, first=first, ids=ids, pixels=pixels,
        previous=np.full_like(pixels, np.nan), age=np.zeros(len(pixels), dtype=np.int64),
        rays=intrinsics.rays(pixels),
    )  # fmt: skip
    topics = {
        'truth': '/ground_truth/odometry', 'features': '/camera/features',
        'camera_info': '/camera/camera_info',
    }  # fmt: skip
    info = CameraInfoArray.from_intrinsics(intrinsics, stamp_ns, stamp_ns, frame)
    arrays = (truth, features, info)
    return Recording(
        name=name, scenario=name, path='', transforms=transforms, roles=topics,
        messages=dict(zip(topics.values(), arrays, strict=True)),
    )  # fmt: skip


def camera_model(
    intrinsics: Intrinsics,
    rate: float,
    noise: list[float],
    mounting_rpy: list[float],
    lever_arm: list[float],
) -> dict[str, Any]:
    """Return the file of a camera without a lens error: rate in Hz, noise in px, mounting."""
    k = intrinsics
    return {
        'model': 'pinhole_camera',
        'rate': rate,
        'noise_std': noise,
        'mounting_rpy': mounting_rpy,
        'lever_arm': lever_arm,
        'intrinsics': {
            'width': k.width, 'height': k.height, 'fx': k.fx, 'fy': k.fy, 'cx': k.cx, 'cy': k.cy,
        },
    }  # fmt: skip


def add_outputs(parser: argparse.ArgumentParser, results: str) -> None:
    """Add `--out`, and `--results`, the folder of a file of that name."""
    parser.add_argument(
        '--out',
        type=Path,
        required=True,
        metavar='DIR',
        help='gets the recording, the world and two camera models',
    )
    parser.add_argument('--results', type=Path, metavar='DIR', help=f'gets {results}')


def write_inputs(
    parser: argparse.ArgumentParser, out: Path, recording: Recording, files: Mapping[str, Any]
) -> None:
    """Write the recording and YAML files by name; end with one line if the recording exists."""
    try:
        write_recording(recording, out / recording.name)
    except RecordingError as error:
        parser.error(str(error))
    for name, content in files.items():
        text = yaml.safe_dump(content, sort_keys=False)
        (out / f'{name}.yaml').write_text(text, encoding='utf-8')


def rms(values: FloatArray) -> list[float]:
    """Return the root mean square of u and v, the last axis, px; NaN does not count."""
    square = np.nanmean(values.reshape(-1, 2) ** 2, axis=0)
    return [round(float(value), 4) for value in np.sqrt(square)]
