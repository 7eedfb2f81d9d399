# SPDX-License-Identifier: Apache-2.0
"""Draw dipole_room.png: the map that `sim2real world` makes of the room of 500 dipoles.

Run it in this folder, from an environment with the package: `python draw_dipole_room.py`. It takes
some seconds. 256 colours make a third of the file and are not seen.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from PIL import Image

from sim2real_eval.cli.main import main

LINE = 'world dipole_room --area 0,8,0,10 --height 1.2 --out'


def draw() -> None:
    """Write dipole_room.png beside this file."""
    with tempfile.TemporaryDirectory() as folder:
        main([*LINE.split(), f'{folder}/room.png'])
        picture = Image.open(f'{folder}/room.png').convert('RGB')
    few = picture.quantize(256, dither=Image.Dither.NONE)
    few.save(Path(__file__).parent / 'dipole_room.png', optimize=True)


if __name__ == '__main__':
    draw()
