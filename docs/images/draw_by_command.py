# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Draw the pictures that commands make, with fewer colours.

Run it in this folder, from an environment with the package: `python draw_by_command.py [PICTURE]`.
It takes some seconds. Pictures of recorded drives need SIM2REAL_REAL, their folder. The colours
that are left make a quarter to a third of a file and are not missed.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from PIL import Image

from sim2real_eval.cli.main import main

_SEGMENT = '{{real}}/drive0708/segments/drive0708_seg{:02d}/bag'
_SEGMENTS = [_SEGMENT.format(number) for number in range(12)]
# Command line up to where it writes, the picture there, colours.
PICTURES = {
    'scenario.png': (
        'scenario --motion constant_twist --set angular_velocity=[0.2,0,1] '
        '--accelerometer-walk 0.03 --gyroscope-walk 0.003 --runs 300 --json --out {}/walk',
        'walk/scenario.png',
        32,
    ),
    'dipole_room.png': ('world dipole_room --area 0,8,0,10 --height 1.2 --out {}', 'map.png', 256),
    'dipole_components.png': (
        'world dipole_room --area 0,8,0,10 --height 1.2 --components --out {}',
        'components.png',
        128,
    ),
    'attitude_validation.png': (
        'attitude --validation --duration 140 --json --out {}/mimu',
        'mimu/quaternion_errors.png',
        64,
    ),
    'following.png': (
        f'follow {_SEGMENTS[9]} --json --out {{}}/driven',
        'driven/drive0708_seg09.png',
        64,
    ),
    'following_wheels.png': (
        f'follow {_SEGMENTS[9]} --controllers yaw_pid,nonlinear --json --out {{}}/driven',
        'driven/drive0708_seg09_wheels.png',
        64,
    ),
    'thesis_yaw.png': ('study thesis_imu --json --out {}/thesis', 'thesis/yaw_path_a_1.png', 64),
    'following_yaw.png': (
        f'follow {" ".join(_SEGMENTS)} --imu bno055_fusion --yaw gyro --compare --json '
        '--out {}/driven',
        'driven/compare/yaw_error.png',
        160,
    ),
}


def draw(name: str) -> None:
    """Write a picture beside this file."""
    line, made, colours = PICTURES[name]
    with tempfile.TemporaryDirectory() as folder:
        main(line.format(folder, real=os.environ.get('SIM2REAL_REAL', '')).split())
        picture = Image.open(Path(folder, made)).convert('RGB')
    few = picture.quantize(colours, dither=Image.Dither.NONE)
    few.save(Path(__file__).parent / name, optimize=True)


if __name__ == '__main__':
    for name in sys.argv[1:] or PICTURES:
        draw(name)
