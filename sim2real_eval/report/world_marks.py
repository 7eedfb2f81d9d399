# SPDX-License-Identifier: Apache-2.0
"""Dipoles, landmarks, chessboards and tags, drawn into the map of a world."""

from __future__ import annotations

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke
from scipy.spatial.transform import Rotation

from sim2real_eval.world_map import WorldMap
from sim_sensors.landmarks import Landmarks, Tags
from sim_sensors.measurements import FloatArray, IntArray

__all__ = ['draw_marks']

_COLOUR, _DIPOLE = '#D55E00', '#E69F00'
# Ids of more would cover each other.
_NUMBERED = 40
# Dots of more are small away from the map.
_FEW = 50
# Unit vectors per inch: the arrow out of a tag's face.
_FACE = 5.0


def draw_marks(panel: Axes, found: WorldMap) -> list[Artist]:
    """Draw what there is, seen from above; return an artist of each kind for a legend."""
    world = found.world
    handles = _draw_dipoles(panel, found)
    corners = [ids.reshape(-1) for ids in world.chessboards]
    single = ~np.isin(world.landmarks.ids, np.concatenate([*corners, np.zeros(0, np.int64)]))
    if single.any():
        places, ids = world.landmarks.positions[single], world.landmarks.ids[single]
        handles += _points(panel, places, '^', 6.0, _COLOUR, _counted(len(ids), 'landmark'))
        _number(panel, places, ids)
    handles += _draw_boards(panel, world.landmarks, world.chessboards)
    if len(world.tags):
        handles += _draw_tags(panel, world.tags)
    return handles


def _draw_dipoles(panel: Axes, found: WorldMap) -> list[Artist]:
    """Draw those near the map filled: a tenth of the spread of their heights is near."""
    places = found.world.dipoles.positions
    if not len(places):
        return []
    away = np.abs(places[:, 2] - found.height)
    limit = max(0.1 * float(np.ptp(places[:, 2])), found.world.dipoles.radius)
    small = 0.8 if len(places) > _FEW else 3.0
    handles: list[Artist] = []
    for some, size, colour, what in (
        (away <= limit, 3.0, _DIPOLE, f'within {limit:.2g} m of the map'),
        (away > limit, small, 'w' if small > 1.0 else _DIPOLE, 'above or below'),
    ):
        if some.any():
            label = f'{_counted(int(some.sum()), "dipole")} {what}'
            handles += _points(panel, places[some], 'o', size, colour, label)
    return handles


def _draw_boards(panel: Axes, landmarks: Landmarks, boards: tuple[IntArray, ...]) -> list[Artist]:
    """Draw each as its corners and its outline; one that stands upright is a line from above."""
    order = np.argsort(landmarks.ids)
    handles: list[Artist] = []
    for ids in boards:
        rows = order[np.searchsorted(landmarks.ids, ids, sorter=order)]
        places = landmarks.positions[rows]
        outline = places[[0, 0, -1, -1, 0], [0, -1, -1, 0, 0]]
        handles[:] = panel.plot(
            *outline[:, :2].T, color=_COLOUR, linewidth=1.2, marker='s', markersize=3.5,
            label=_counted(len(boards), 'chessboard'),
        )  # fmt: skip
        panel.plot(*places.reshape(-1, 3)[:, :2].T, 's', color=_COLOUR, markersize=3.5)
    return handles


def _draw_tags(panel: Axes, tags: Tags) -> list[Artist]:
    """Draw the edge of each, an arrow out of its face, and its number behind."""
    faces = Rotation.from_quat(tags.orientations).apply([0.0, 0.0, 1.0])[:, :2]
    panel.quiver(
        *tags.positions[:, :2].T, *faces.T, color=_COLOUR, angles='uv', scale_units='inches',
        scale=_FACE, units='inches', width=0.03,
    )  # fmt: skip
    for square in tags.corners():
        panel.plot(*square[[0, 1, 2, 3, 0], :2].T, color=_COLOUR, linewidth=2.5)
    label = f'{_counted(len(tags), "tag")}, with the way that the face looks'
    handles = _points(panel, tags.positions, 's', 3.5, _COLOUR, label)
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


def _counted(count: int, what: str) -> str:
    return f'{count} {what}' if count == 1 else f'{count} {what}s'
