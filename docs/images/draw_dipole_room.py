# SPDX-License-Identifier: Apache-2.0
"""Draw dipole_room.png: the magnetic field in the room of 500 dipoles of seed 002.

Run it in this folder, from an environment with the package: `python draw_dipole_room.py`. It takes
some seconds.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from PIL import Image

from sim2real_eval.report.figures import new_figure, save_png
from sim_sensors.measurements import FloatArray
from sim_sensors.world import World
from sim_sensors.world_file import load_world

HEIGHT = 1.2
ROOM = (8.0, 10.0)
STEP = 0.04
STREAM_STEP = 0.2
MAPS = ('viridis', 'twilight_shifted')


def main() -> None:
    """Write dipole_room.png beside this file."""
    world = load_world('dipole_room')
    figure = new_figure(11.0, 5.9)
    strength, compass = figure.subplots(1, 2)
    draw_strength(figure, strength, world)
    draw_compass(figure, compass, world)
    shrink(save_png(figure, Path(__file__).parent / 'dipole_room.png'))


def shrink(path: Path) -> None:
    """Write a picture with 256 colours: a third of the bytes, and looks the same."""
    with Image.open(path) as given:
        picture = given.convert('RGB')
    # The colour bars count as much as the maps, or they would come out in steps.
    shades = [
        matplotlib.colormaps[name](np.linspace(0.0, 1.0, 256), bytes=True)[:, :3] for name in MAPS
    ]
    bars = np.repeat(np.concatenate(shades), 1500, axis=0)
    counted = np.concatenate([np.asarray(picture).reshape(-1, 3), bars])
    palette = Image.fromarray(counted[None]).quantize(256, Image.Quantize.MEDIANCUT, kmeans=3)
    small = picture.quantize(palette=palette, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


def fields(world: World, step: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return x and y of a grid in the plane, m, and the field there, T, `(ny, nx, 3)`."""
    x, y = (np.arange(0.0, size + step / 2.0, step) for size in ROOM)
    grid = np.stack([*np.meshgrid(x, y), np.full((len(y), len(x)), HEIGHT)], axis=-1)
    return x, y, world.magnetic_field(grid.reshape(-1, 3)).reshape(grid.shape)


def draw_strength(figure: Figure, axes: Axes, world: World) -> None:
    """Draw the strength of the whole field, and its direction in the plane."""
    x, y, field = fields(world, STEP)
    size = 1e6 * np.linalg.norm(field, axis=-1)
    picture = axes.pcolormesh(x, y, size, norm=LogNorm(10.0, 400.0), cmap=MAPS[0], rasterized=True)
    figure.colorbar(picture, ax=axes, label='strength, µT', extend='both', shrink=0.8)
    x, y, field = fields(world, STREAM_STEP)
    axes.streamplot(
        x, y, field[..., 0], field[..., 1], color='w', linewidth=0.5, arrowsize=0.6, density=1.4
    )
    earth = 1e6 * float(np.linalg.norm(world.undisturbed_field))
    label(axes, f'Field at {HEIGHT:g} m (Earth alone: {earth:.0f} µT)')


def draw_compass(figure: Figure, axes: Axes, world: World) -> None:
    """Draw by how much a level compass is turned."""
    x, y, field = fields(world, STEP)
    heading = np.arctan2(field[..., 0], field[..., 1])
    north = np.arctan2(*world.undisturbed_field[:2])
    error = np.degrees(np.angle(np.exp(1j * (heading - north))))
    picture = axes.pcolormesh(x, y, error, cmap=MAPS[1], vmin=-180.0, vmax=180.0, rasterized=True)
    bar = figure.colorbar(
        picture, ax=axes, label='error of a level compass, deg clockwise', shrink=0.8
    )
    bar.set_ticks([-180, -90, 0, 90, 180])
    rms = float(np.sqrt(np.mean(error**2)))
    label(axes, f'Error of a compass (rms {rms:.0f}°)')


def label(axes: Axes, title: str) -> None:
    """Name the axes and make metres alike."""
    axes.set_title(title, loc='left', fontsize=10)
    axes.set_xlabel('x (east), m')
    axes.set_ylabel('y (north), m')
    axes.set_aspect('equal')
    axes.set(xlim=(0.0, ROOM[0]), ylim=(0.0, ROOM[1]))


if __name__ == '__main__':
    main()
