# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""A world as a table for the terminal and as a map of its field and objects."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from rich.table import Table
from rich.text import Text
from scipy.spatial.transform import Rotation

from sim2real_eval.benches.world import WorldMap
from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.world.world import Landmarks, Tags
from .console import add_words, count_text, plain_table
from .palette import VERMILION
from .style import figure_legend, new_figure, tidy

_KINDS = ('dipole', 'landmark', 'chessboard', 'tag')


def world_table(record: Mapping[str, Any]) -> Table:
    """Return a line per property of a record from `world_record`; in degrees, m, m/s^2, uT."""
    table = plain_table(f'World {record["world"]}', gap=1)
    table.show_header = False
    add_words(table, '', '')
    for name, text in _rows(record).items():
        table.add_row(name, Text(text))
    return table


def _rows(record: Mapping[str, Any]) -> dict[str, str]:
    origin, gravity, earth = record['origin'], record['gravity'], record['earth_field']
    level = record['map']
    x0, x1, y0, y1 = level['area_m']
    source = (
        f'World Magnetic Model {earth["coefficients"]} at {earth["year"]:g}'
        if earth['coefficients']
        else 'constant'
    )
    east, north, up = earth['east_north_up_t']
    rows = {
        'origin': f'{origin["latitude_deg"]:g}, {origin["longitude_deg"]:g} deg, '
        f'{origin["altitude_m"]:g} m above the ellipsoid',
        'gravity': f'{gravity["value_m_s2"]:.6f} m/s^2 ({gravity["model"]})',
        "Earth's field": f'east {_ut(east)}, north {_ut(north)}, up {_ut(up)} uT ({source})',
        '': f'intensity {_ut(earth["intensity_t"])} uT, inclination '
        f'{earth["inclination_deg"]:.2f}, declination {earth["declination_deg"]:.2f} deg',
        'contents': ', '.join(count_text(record[f'{kind}s'], kind) for kind in _KINDS),
        'map': f'x {x0:.4g} to {x1:.4g} m, y {y0:.4g} to {y1:.4g} m, z {level["height_m"]:.4g} m',
    }
    if not record['dipoles']:
        return rows | {'field on map': 'uniform'}
    rows['field on map'] = (
        f'{_ut(level["least_t"])} uT at {_place(level["least_at_m"])} to '
        f'{_ut(level["most_t"])} uT at {_place(level["most_at_m"])} m'
    )
    x, y, z = map(_ut, level['disturbance_median_t'])
    rows['disturbance on map'] = f'median size: x {x}, y {y}, z {z} uT'
    if (turned := level['compass']) is not None:
        rows['compass on map'] = (
            f'errs by {turned["median_deg"]:.1f} deg (median), by more than 5 in '
            f'{100.0 * turned["share_above_5_deg"]:.0f} % of the area, by more than 30 in '
            f'{100.0 * turned["share_above_30_deg"]:.0f} %'
        )
    return rows


def _ut(field: float) -> str:
    return f'{1e6 * field:.3f}'


def _place(position: Sequence[float]) -> str:
    return f'({position[0]:.3g}, {position[1]:.3g})'


_DIPOLE = '#E69F00'
# With more objects, the ids would cover each other.
_NUMBERED = 40
# With more dipoles, those away from the map have small dots.
_FEW = 50
# Unit vectors per inch: the arrow out of a tag's face.
_FACE = 5.0


def draw_marks(panel: Axes, world_map: WorldMap) -> list[Artist]:
    """Draw the contents of a world from above; return an artist per kind for the legend."""
    world = world_map.world
    handles = _draw_dipoles(panel, world_map)
    corners = [ids.reshape(-1) for ids in world.chessboards]
    single = ~np.isin(world.landmarks.ids, np.concatenate([*corners, np.zeros(0, np.int64)]))
    if single.any():
        places, ids = world.landmarks.positions[single], world.landmarks.ids[single]
        handles += _points(panel, places, '^', 6.0, VERMILION, count_text(len(ids), 'landmark'))
        _number(panel, places, ids)
    handles += _draw_boards(panel, world.landmarks, world.chessboards)
    if len(world.tags):
        handles += _draw_tags(panel, world.tags)
    return handles


def _draw_dipoles(panel: Axes, world_map: WorldMap) -> list[Artist]:
    """Draw dipoles, filled if they are near the height of the map.

    Near means within a tenth of the spread of their heights.
    """
    places = world_map.world.dipoles.positions
    if not len(places):
        return []
    away = np.abs(places[:, 2] - world_map.height)
    limit = max(0.1 * float(np.ptp(places[:, 2])), world_map.world.dipoles.radius)
    small = 0.8 if len(places) > _FEW else 3.0
    handles: list[Artist] = []
    for some, size, colour, what in (
        (away <= limit, 3.0, _DIPOLE, f'within {limit:.2g} m of the map'),
        (away > limit, small, 'w' if small > 1.0 else _DIPOLE, 'above or below'),
    ):
        if some.any():
            label = f'{count_text(int(some.sum()), "dipole")} {what}'
            handles += _points(panel, places[some], 'o', size, colour, label)
    return handles


def _draw_boards(panel: Axes, landmarks: Landmarks, boards: tuple[IntArray, ...]) -> list[Artist]:
    """Draw the corners and the outline of each board; an upright one is a line from above."""
    order = np.argsort(landmarks.ids)
    handles: list[Artist] = []
    for ids in boards:
        rows = order[np.searchsorted(landmarks.ids, ids, sorter=order)]
        places = landmarks.positions[rows]
        outline = places[[0, 0, -1, -1, 0], [0, -1, -1, 0, 0]]
        handles[:] = panel.plot(
            *outline[:, :2].T, color=VERMILION, linewidth=1.2, marker='s', markersize=3.5,
            label=count_text(len(boards), 'chessboard'),
        )  # fmt: skip
        panel.plot(*places.reshape(-1, 3)[:, :2].T, 's', color=VERMILION, markersize=3.5)
    return handles


def _draw_tags(panel: Axes, tags: Tags) -> list[Artist]:
    """Draw the edge of each tag, an arrow out of its face, and its number behind it."""
    faces = Rotation.from_quat(tags.orientations).apply([0.0, 0.0, 1.0])[:, :2]
    panel.quiver(
        *tags.positions[:, :2].T, *faces.T, color=VERMILION, angles='uv', scale_units='inches',
        scale=_FACE, units='inches', width=0.03,
    )  # fmt: skip
    for square in tags.corners():
        panel.plot(*square[[0, 1, 2, 3, 0], :2].T, color=VERMILION, linewidth=2.5)
    label = f'{count_text(len(tags), "tag")}, with the direction that each tag faces'
    handles = _points(panel, tags.positions, 's', 3.5, VERMILION, label)
    flat = np.linalg.norm(faces, axis=1, keepdims=True) < 0.5
    _number(panel, tags.positions, tags.ids, np.where(flat, 9.0, -9.0 * faces))
    return handles


def _points(
    panel: Axes, places: FloatArray, marker: str, size: float, colour: str, label: str
) -> list[Artist]:
    edge = 'k' if size > 2.0 else colour
    return list(
        panel.plot(
            *places[:, :2].T, linestyle='', marker=marker, markersize=size, color=colour,
            markeredgecolor=edge, markeredgewidth=0.5, label=label,
        )
    )  # fmt: skip


def _number(
    panel: Axes, places: FloatArray, ids: IntArray, offsets: FloatArray | None = None
) -> None:
    """Write ids beside places; `offsets`, points `(n, 2)`, say on which side."""
    if len(ids) > _NUMBERED:
        return
    beside = np.full((len(ids), 2), 7.0) if offsets is None else offsets
    for place, number, offset in zip(places, ids, beside, strict=True):
        panel.annotate(
            f'{number}', tuple(place[:2]), tuple(offset), textcoords='offset points', fontsize=7,
            ha='center', va='center', path_effects=[withStroke(linewidth=1.5, foreground='w')],
        )  # fmt: skip


# A world from above: the magnetic field at a height, its disturbances and visible objects.

# Percentage of the map below the lowest and above the highest colour.
_CLIPPED = 1.0
_STEPS = 16
_LOG_FROM = 4.0
_TURNED = (-180, -90, -45, -20, -10, -5, 5, 10, 20, 45, 90, 180)
# Longer side of a map, inches, in panels side by side and in stacked ones; aspect ratio from which
# panels are stacked, and largest one with equal scales of x and y.
_BESIDE, _ABOVE, _STACKED_FROM, _RATIO = 5.2, 8.0, 1.5, 4.0
# Inches: least side of a map, colour bar, text, title.
_MIN, _BAR, _TEXT, _TITLE = 2.0, 1.4, 0.9, 0.6
_AXES = ('x (east)', 'y (north)', 'z (up)')
# Number of arrows along the longer side; a uniform field needs few.
_ARROWS, _FEW_ARROWS = 18, 9


def strength_levels(intensity: FloatArray) -> FloatArray:
    """Return the edges of the colours, uT, for field strengths in T.

    The range goes from the 1st to the 99th percentile of the map, because the field near a dipole
    grows without limit. Edges of a wide range have equal ratios. Both ends are equal if the field
    is the same everywhere.
    """
    low, high = 1e6 * np.percentile(intensity, [_CLIPPED, 100.0 - _CLIPPED])
    if not high > low * (1.0 + 1e-9):
        return np.array([low, low])
    between = np.geomspace if low > 0.0 and high > _LOG_FROM * low else np.linspace
    return np.asarray(between(low, high, _STEPS + 1))


def world_figure(world_map: WorldMap, name: str) -> Figure:
    """Return the map of the field and, if there are dipoles, the map of the compass error.

    Arrows show the direction of the horizontal field; their length is its share of the total
    field.
    """
    turned = world_map.compass_error if len(world_map.world.dipoles) else None
    x0, x1, y0, y1 = world_map.area
    true_ratio = (x1 - x0) / (y1 - y0)
    ratio = float(np.clip(true_ratio, 1.0 / _RATIO, _RATIO))
    stacked = ratio > _STACKED_FROM
    long = _ABOVE if stacked else _BESIDE
    size = np.array([long * min(ratio, 1.0), long / max(ratio, 1.0)])
    count = 1 if turned is None else 2
    rows, columns = (count, 1) if stacked else (1, count)
    width, height = np.maximum(size, _MIN)
    figure = new_figure(columns * (width + _BAR), rows * (height + _TEXT) + _TITLE)
    panels = figure.subplots(rows, columns, squeeze=False).flat
    _draw_strength(figure, panels[0], world_map, size)
    if turned is not None:
        _draw_turned(figure, panels[1], world_map, turned)
    for panel in panels:
        panel.set_xlabel('x (east) [m]', fontsize=8)
        panel.set_ylabel('y (north) [m]', fontsize=8)
        panel.set_aspect('equal' if true_ratio == ratio else 'auto')
        panel.set(xlim=(x0, x1), ylim=(y0, y1))
        tidy(panel)
    earth = 1e6 * float(np.linalg.norm(world_map.world.undisturbed_field))
    figure.suptitle(
        f"{name} at z = {world_map.height:.4g} m; the Earth's field is {earth:.3g} µT\n"
        'the length of an arrow is the horizontal field',
        fontsize=9,
    )
    # Otherwise the title of a large panel touches the title of the figure.
    figure.set_layout_engine('constrained', h_pad=0.1)
    if handles := draw_marks(panels[0], world_map):
        figure_legend(figure, handles, 2, below=True)
    return figure


def components_figure(world_map: WorldMap, name: str) -> Figure:
    """Return maps of the x, y and z components of the disturbance: [Ligorio2015], figure 8."""
    x0, x1, y0, y1 = world_map.area
    ratio = float(np.clip((x1 - x0) / (y1 - y0), 1.0 / _RATIO, _RATIO))
    stacked = ratio > _STACKED_FROM
    width, height = (_ABOVE, _ABOVE / ratio) if stacked else (3.6, 3.6 / ratio)
    rows, columns = (3, 1) if stacked else (1, 3)
    figure = new_figure(columns * width + 2.2, rows * max(height, _MIN) + _TEXT)
    panels = figure.subplots(rows, columns, sharex=True, sharey=True)
    disturbance = 1e6 * world_map.disturbance
    # One scale for all: its steps grow, because the field near a dipole grows without limit.
    largest = float(np.percentile(np.abs(disturbance), 100.0 - _CLIPPED)) or 1.0
    levels = largest * np.geomspace(1.0 / 64.0, 1.0, 7)
    levels = np.concatenate([-levels[::-1], levels])
    colours = mpl.colormaps['RdBu_r']
    for axis, panel in enumerate(panels):
        image = panel.pcolormesh(
            *_edges(world_map), disturbance[..., axis], cmap=colours, rasterized=True,
            norm=BoundaryNorm(levels, colours.N, extend='both'),
        )  # fmt: skip
        median = float(np.median(np.abs(disturbance[..., axis])))
        panel.set_title(f'{_AXES[axis]}: median size {median:.3g} µT', loc='left', fontsize=9)
        panel.set_aspect('equal')
        panel.set(xlim=(x0, x1), ylim=(y0, y1))
        tidy(panel)
    figure.supxlabel('x (east) [m]', fontsize=9)
    figure.supylabel('y (north) [m]', fontsize=9)
    bar = figure.colorbar(image, ax=panels, ticks=levels, format='%.3g')
    bar.set_label('field of the dipoles [µT]', fontsize=8)
    bar.ax.tick_params(labelsize=8)
    figure.suptitle(
        f'{name} at z = {world_map.height:.4g} m: field of the dipoles, without that of the Earth',
        fontsize=10,
    )
    return figure


def _draw_strength(figure: Figure, panel: Axes, world_map: WorldMap, size: FloatArray) -> None:
    levels = strength_levels(world_map.intensity)
    if not levels[0] < levels[-1]:
        panel.set_title('Uniform field', loc='left', fontsize=9)
        _draw_arrows(panel, world_map, size, '#b0b0b0', _FEW_ARROWS)
        return
    colours = mpl.colormaps['viridis']
    image = panel.pcolormesh(
        *_edges(world_map), 1e6 * world_map.intensity, cmap=colours, rasterized=True,
        norm=BoundaryNorm(levels, colours.N, extend='both'),
    )  # fmt: skip
    digits = max(0, -math.floor(math.log10(levels[1] - levels[0])))
    bar = figure.colorbar(image, ax=panel, ticks=levels[::2], format=f'%.{digits}f')
    bar.set_label(
        f'strength [µT]\n{_CLIPPED:g} % of the map below, {_CLIPPED:g} % above', fontsize=8
    )
    bar.ax.tick_params(labelsize=8)
    panel.set_title('Field', loc='left', fontsize=9)
    _draw_arrows(panel, world_map, size, 'w', _ARROWS)


def _draw_arrows(
    panel: Axes, world_map: WorldMap, size: FloatArray, colour: str, count: int
) -> None:
    """Draw `count` arrows along the longer side of a panel with this size in inches."""
    columns, rows = (
        _evenly_spaced(len(places), max(round(count * float(side / size.max())), 1))
        for places, side in zip((world_map.x, world_map.y), size, strict=True)
    )
    field = world_map.field[np.ix_(rows, columns)]
    strength = np.linalg.norm(field, axis=-1, keepdims=True)
    share = np.divide(field, strength, out=np.zeros_like(field), where=strength > 0.0)
    panel.quiver(
        world_map.x[columns], world_map.y[rows], share[..., 0], share[..., 1], color=colour,
        pivot='mid', angles='uv', scale_units='inches', scale=count / (0.9 * float(size.max())),
        units='inches', width=0.013, headwidth=4.0, headlength=4.5, headaxislength=4.0,
    )  # fmt: skip


def _evenly_spaced(places: int, count: int) -> IntArray:
    """Return the indices of `count` evenly spaced places.

    The first and the last one are half a step away from the ends.
    """
    return np.asarray((np.arange(count) + 0.5) * places / count, dtype=np.int64)


def _draw_turned(figure: Figure, panel: Axes, world_map: WorldMap, turned: FloatArray) -> None:
    colours = mpl.colormaps['twilight_shifted']
    image = panel.pcolormesh(
        *_edges(world_map), np.degrees(turned), cmap=colours, rasterized=True,
        norm=BoundaryNorm(_TURNED, colours.N),
    )  # fmt: skip
    bar = figure.colorbar(image, ax=panel, ticks=_TURNED, spacing='uniform')
    bar.set_label('error of a level compass\n[deg clockwise]', fontsize=8)
    bar.ax.tick_params(labelsize=8)
    rms = float(np.degrees(np.sqrt(np.mean(turned**2))))
    panel.set_title(f'Error of a compass, rms {rms:.3g} deg', loc='left', fontsize=9)


def _edges(world_map: WorldMap) -> tuple[FloatArray, FloatArray]:
    x0, x1, y0, y1 = world_map.area
    return np.linspace(x0, x1, len(world_map.x) + 1), np.linspace(y0, y1, len(world_map.y) + 1)
