# SPDX-License-Identifier: Apache-2.0
"""Draw scenario.png: the plot of `sim2real scenario` for a screw with walking biases.

Run it in this folder, from an environment with the package: `python draw_scenario.py`. It takes
some seconds. 32 colours make a quarter of the file and are not seen.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from PIL import Image

from sim2real_eval.cli.main import main

LINE = (
    'scenario --motion constant_twist --set angular_velocity=[0.2,0,1] --accelerometer-walk 0.03 '
    '--gyroscope-walk 0.003 --runs 300 --json --out'
)


def draw() -> None:
    """Write scenario.png beside this file."""
    with tempfile.TemporaryDirectory() as folder:
        main([*LINE.split(), f'{folder}/walk'])
        picture = Image.open(f'{folder}/walk/scenario.png').convert('RGB')
    few = picture.quantize(32, dither=Image.Dither.NONE)
    few.save(Path(__file__).parent / 'scenario.png', optimize=True)


if __name__ == '__main__':
    draw()
