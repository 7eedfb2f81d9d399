# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Write trials of BROAD, a real IMU and magnetometer beside motion capture, as recordings."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from scipy.io import loadmat

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sim2real_eval.recording.recording import Recording, StaticTransform
from sim2real_eval.recording.writing import write_recording
from sim_sensors.core.measurements import ImuArray, MagneticFieldArray, OdometryArray

START_NS = 1_600_000_000_000_000_000
"""Stamp of the first sample; the trials state none."""

LEVER_ARM = (0.0, 0.0, 0.008)
"""Of the IMU in the body that the motion capture follows, m. Not stated: 7 to 9.5 mm is what
explains the specific force best in each of nine trials, x and y being within their scatter of 0.
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=f'{__doc__} Laidig, Caruso, Cereatti and Seel, Data 6 (7), 2021, '
        'doi:10.3390/data6070072, CC BY 4.0, https://github.com/dlaidig/broad.'
    )
    parser.add_argument('folder', type=Path, help='its data_mat')
    parser.add_argument('--out', type=Path, required=True, metavar='DIR', help='one folder each')
    parser.add_argument(
        '--low-pass',
        type=float,
        default=12.0,
        metavar='HZ',
        help='cutoff that their recording.yaml gives the truth (default %(default)s)',
    )
    options = parser.parse_args()
    files = sorted(options.folder.glob('[0-9][0-9]_*.mat'))
    if not files:
        parser.error(f'{options.folder}: has no files [0-9][0-9]_*.mat')
    for file in files:
        target = options.out / file.stem
        write_recording(recording_of(loadmat(file, squeeze_me=True), file.stem), target)
        sidecar = target / 'recording.yaml'
        content = yaml.safe_load(sidecar.read_text(encoding='utf-8'))
        content['truth'] = {'low_pass': options.low_pass}
        sidecar.write_text(yaml.safe_dump(content, sort_keys=False), encoding='utf-8')
        print(target)


def recording_of(trial: dict[str, Any], name: str) -> Recording:
    """Return a trial, its samples without a marker left out of the truth.

    Kind of motion is the scenario. Axes of the unit and of the motion capture are aligned, its
    world is east, north, up; noise is not stated. A twist is not either: it follows from the pose.
    """
    count = len(trial['imu_gyr'])
    stamps = START_NS + np.round(np.arange(count) * 1e9 / trial['sampling_rate']).astype(np.int64)
    seen = np.isfinite(trial['opt_quat']).all(axis=1) & np.isfinite(trial['opt_pos']).all(axis=1)
    at = stamps[seen]
    nothing, three, six = (
        np.zeros((count, 3)), np.zeros((count, 3, 3)), np.zeros((len(at), 6, 6)),
    )  # fmt: skip
    no_orientation = three.copy()
    no_orientation[:, 0, 0] = -1.0
    identity = np.zeros((count, 4))
    identity[:, 3] = 1.0
    imu = ImuArray(
        stamps, stamps, 'imu', identity, trial['imu_gyr'], trial['imu_acc'], no_orientation,
        three, three,
    )  # fmt: skip
    mag = MagneticFieldArray(stamps, stamps, 'imu', 1e-6 * trial['imu_mag'], three)
    truth = OdometryArray(
        at, at, 'world', 'base_link', trial['opt_pos'][seen],
        trial['opt_quat'][seen][:, [1, 2, 3, 0]], nothing[seen], nothing[seen], six, six,
    )  # fmt: skip
    return Recording(
        name=name,
        scenario='_'.join(part for part in name.split('_')[1:] if len(part) > 1),
        path='',
        messages={'/imu/data': imu, '/imu/mag': mag, '/ground_truth/odometry': truth},
        transforms=(StaticTransform('base_link', 'imu', LEVER_ARM),),
        roles={'imu': '/imu/data', 'mag': '/imu/mag', 'truth': '/ground_truth/odometry'},
    )


if __name__ == '__main__':
    main()
