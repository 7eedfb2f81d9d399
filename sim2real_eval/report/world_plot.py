# SPDX-License-Identifier: Apache-2.0
"""A world from above: the magnetic field at a height, what disturbs it and what is to see."""

from __future__ import annotations

import math
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm
from matplotlib.figure import Figure

from sim2real_eval.report.figures import new_figure, save_png, tidy
from sim2real_eval.report.world_marks import draw_marks
from sim2real_eval.world_map import WorldMap
from sim_sensors.measurements import FloatArray, IntArray

__all__ = ['save_world_plot', 'strength_levels', 'world_figure']

# Percent of the map below the lowest colour, and above the highest.
_CLIPPED = 1.0
_STEPS = 16
_LOG_FROM = 4.0
_TURNED = (-180, -90, -45, -20, -10, -5, 5, 10, 20, 45, 90, 180)
# Inches: longer side of a map beside, or above, another; of a strip metres are not alike in x and
# y beyond the ratio; what stands beside and around.
_BESIDE, _ABOVE, _STACKED_FROM, _RATIO = 5.2, 8.0, 1.5, 4.0
_LEAST, _BAR, _TEXT, _TITLE = 2.0, 1.4, 0.9, 0.6
# Along the longer side; few tell as much of a field that is the same everywhere.
_ARROWS, _FEW_ARROWS = 18, 9


def strength_levels(intensity: FloatArray) -> FloatArray:
    """Return the edges of the colours, uT, for strengths in T.

    They reach from where 1 % of the map is below to where 1 % is above, because near a dipole the
    field grows without a limit that would be worth a colour; in equal ratios where they are
    far apart. Equal ends: the field is the same everywhere.
    """
    low, high = 1e6 * np.percentile(intensity, [_CLIPPED, 100.0 - _CLIPPED])
    if not high > low * (1.0 + 1e-9):
        return np.array([low, low])
    between = np.geomspace if low > 0.0 and high > _LOG_FROM * low else np.linspace
    return np.asarray(between(low, high, _STEPS + 1))


def world_figure(found: WorldMap, name: str) -> Figure:
    """Return the map of the field and, where there are dipoles, that of a compass's error.

    Arrows show along the horizontal part of the field and are as long as its share of the whole.
    """
    turned = found.compass_error if len(found.world.dipoles) else None
    x0, x1, y0, y1 = found.area
    true_ratio = (x1 - x0) / (y1 - y0)
    ratio = float(np.clip(true_ratio, 1.0 / _RATIO, _RATIO))
    stacked = ratio > _STACKED_FROM
    long = _ABOVE if stacked else _BESIDE
    size = np.array([long * min(ratio, 1.0), long / max(ratio, 1.0)])
    count = 1 if turned is None else 2
    rows, columns = (count, 1) if stacked else (1, count)
    width, height = np.maximum(size, _LEAST)
    figure = new_figure(columns * (width + _BAR), rows * (height + _TEXT) + _TITLE)
    panels = figure.subplots(rows, columns, squeeze=False).flat
    _draw_strength(figure, panels[0], found, size)
    if turned is not None:
        _draw_turned(figure, panels[1], found, turned)
    for panel in panels:
        panel.set_xlabel('x (east) [m]', fontsize=8)
        panel.set_ylabel('y (north) [m]', fontsize=8)
        panel.set_aspect('equal' if true_ratio == ratio else 'auto')
        panel.set(xlim=(x0, x1), ylim=(y0, y1))
        tidy(panel)
    earth = 1e6 * float(np.linalg.norm(found.world.undisturbed_field))
    figure.suptitle(
        f"{name} at z = {found.height:.4g} m; the Earth's field is {earth:.3g} µT\n"
        'arrows are as long as the horizontal share of the field',
        fontsize=9,
        parse_math=False,  # the name is of a file
    )
    # Or the title of a panel that fills its place touches that of the figure.
    figure.set_layout_engine('constrained', h_pad=0.1)
    if handles := draw_marks(panels[0], found):
        figure.legend(
            handles=handles, fontsize=8, ncols=2, loc='outside lower center', frameon=False
        )
    return figure


def _draw_strength(figure: Figure, panel: Axes, found: WorldMap, size: FloatArray) -> None:
    levels = strength_levels(found.intensity)
    if not levels[0] < levels[-1]:
        panel.set_title('Field, the same everywhere', loc='left', fontsize=9)
        _draw_arrows(panel, found, size, '#b0b0b0', _FEW_ARROWS)
        return
    colours = mpl.colormaps['viridis']
    image = panel.pcolormesh(
        *_edges(found), 1e6 * found.intensity, cmap=colours, rasterized=True,
        norm=BoundaryNorm(levels, colours.N, extend='both'),
    )  # fmt: skip
    digits = max(0, -math.floor(math.log10(levels[1] - levels[0])))
    bar = figure.colorbar(image, ax=panel, ticks=levels[::2], format=f'%.{digits}f')
    bar.set_label(
        f'strength [µT]\n{_CLIPPED:g} % of the map below, {_CLIPPED:g} % above', fontsize=8
    )
    bar.ax.tick_params(labelsize=8)
    panel.set_title('Field', loc='left', fontsize=9)
    _draw_arrows(panel, found, size, 'w', _ARROWS)


def _draw_arrows(panel: Axes, found: WorldMap, size: FloatArray, colour: str, count: int) -> None:
    """Draw `count` arrows along the longer side of a panel of this size, inches."""
    columns, rows = (
        _among(len(places), max(round(count * float(side / size.max())), 1))
        for places, side in zip((found.x, found.y), size, strict=True)
    )
    field = found.field[np.ix_(rows, columns)]
    strength = np.linalg.norm(field, axis=-1, keepdims=True)
    share = np.divide(field, strength, out=np.zeros_like(field), where=strength > 0.0)
    panel.quiver(
        found.x[columns], found.y[rows], share[..., 0], share[..., 1], color=colour,
        pivot='mid', angles='uv', scale_units='inches', scale=count / (0.9 * float(size.max())),
        units='inches', width=0.013, headwidth=4.0, headlength=4.5, headaxislength=4.0,
    )  # fmt: skip


def _among(places: int, count: int) -> IntArray:
    """Return the indices of `count` places, as far apart as the first and last from the edges."""
    return np.asarray((np.arange(count) + 0.5) * places / count, dtype=np.int64)


def _draw_turned(figure: Figure, panel: Axes, found: WorldMap, turned: FloatArray) -> None:
    colours = mpl.colormaps['twilight_shifted']
    image = panel.pcolormesh(
        *_edges(found), np.degrees(turned), cmap=colours, rasterized=True,
        norm=BoundaryNorm(_TURNED, colours.N),
    )  # fmt: skip
    bar = figure.colorbar(image, ax=panel, ticks=_TURNED, spacing='uniform')
    bar.set_label('error of a level compass\n[deg clockwise]', fontsize=8)
    bar.ax.tick_params(labelsize=8)
    rms = float(np.degrees(np.sqrt(np.mean(turned**2))))
    panel.set_title(f'Error of a compass, rms {rms:.3g} deg', loc='left', fontsize=9)


def _edges(found: WorldMap) -> tuple[FloatArray, FloatArray]:
    x0, x1, y0, y1 = found.area
    return np.linspace(x0, x1, len(found.x) + 1), np.linspace(y0, y1, len(found.y) + 1)


def save_world_plot(path: str | Path, found: WorldMap, name: str) -> Path:
    """Write the figure as PNG; return its path."""
    return save_png(world_figure(found, name), path)
