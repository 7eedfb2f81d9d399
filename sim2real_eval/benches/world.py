# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Properties of a world: origin, gravity, magnetic field on a level map, and landmarks."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import numpy as np

from sim2real_eval.common.results import versions
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.measurements import FloatArray
from sim_sensors.world.earth import wmm_epoch
from sim_sensors.world.world import World

Area = tuple[float, float, float, float]

# Each point of a map sums the fields of all dipoles; 1e8 sums take a second or two. A map of 1e6
# dipoles, the largest number in a file entry, still has 2500 points.
_SUMS = 1e8
_MAX, _MIN = 25_000.0, 2500.0
# Half side of the map of an empty world, m.
_EMPTY_HALF_SIDE = 5.0
_MARGIN = 0.1
# Extent below which all objects count as one point, and the side of its map, m.
_TOGETHER, _AROUND = 0.01, 2.0
# Shortest side of a map and largest coordinate for which points stay distinct, m.
_SHORTEST, _FARTHEST = 1e-3, 1e7
# Horizontal share of the Earth's field below which a compass has no direction.
_LEVEL = 1e-6


@dataclasses.dataclass(frozen=True, eq=False)
class WorldMap:
    """The field of a world at the middles of level rectangles, all of one size.

    Edges `area` x0, x1, y0, y1, m, in the frame of the world; z of the map `height`, m; middles
    `x` `(nx,)` and `y` `(ny,)`, m; `field` `(ny, nx, 3)` T, east north up.
    """

    world: World
    area: Area
    height: float
    x: FloatArray
    y: FloatArray
    field: FloatArray

    @functools.cached_property
    def intensity(self) -> FloatArray:
        """Strength of the field, `(ny, nx)` T."""
        return np.asarray(np.linalg.norm(self.field, axis=-1))

    @property
    def disturbance(self) -> FloatArray:
        """Field of the dipoles alone, `(ny, nx, 3)` T, east north up."""
        return np.asarray(self.field - self.world.undisturbed_field)

    @functools.cached_property
    def compass_error(self) -> FloatArray | None:
        """Clockwise error of a level compass, `(ny, nx)` rad, -pi to pi.

        The error is the angle from the horizontal part of the Earth's field to that of the total
        field. None if the Earth's field has no horizontal part, as at a magnetic pole.
        """
        east, north, _ = earth = self.world.undisturbed_field
        if not math.hypot(east, north) > _LEVEL * float(np.linalg.norm(earth)):
            return None
        parallel = north * self.field[..., 1] + east * self.field[..., 0]
        across = north * self.field[..., 0] - east * self.field[..., 1]
        return np.asarray(np.arctan2(across, parallel))

    def place(self, index: int) -> tuple[float, float, float]:
        """Return the position of a point, m, by its index in the flattened map."""
        row, column = divmod(index, len(self.x))
        return float(self.x[column]), float(self.y[row]), self.height


def object_positions(world: World) -> FloatArray:
    """Return the positions of dipoles, landmarks and tags, `(n, 3)` m."""
    groups = world.dipoles, world.landmarks, world.tags
    return np.concatenate([group.positions for group in groups])


def default_height(world: World) -> float:
    """Return the mean of the lowest and the highest object, m; 0 in an empty world."""
    heights = object_positions(world)[:, 2]
    return float((heights.min() + heights.max()) / 2.0) if len(heights) else 0.0


def default_area(world: World) -> Area:
    """Return the edges of the area of dipoles, landmarks and tags with a margin, m.

    The margin is a tenth of the longer side, and the shorter side is at least half of the longer.
    The area is 10 m wide about the origin in an empty world, and 2 m wide about a single object.
    """
    places = object_positions(world)[:, :2]
    if not len(places):
        return -_EMPTY_HALF_SIDE, _EMPTY_HALF_SIDE, -_EMPTY_HALF_SIDE, _EMPTY_HALF_SIDE
    low, high = places.min(axis=0), places.max(axis=0)
    longer = float((high - low).max())
    if longer < _TOGETHER:
        middle, longer = (low + high) / 2.0, _AROUND / (1.0 + 2.0 * _MARGIN)
        low, high = middle - 0.5 * longer, middle + 0.5 * longer
    short = np.maximum(0.5 * longer - (high - low), 0.0)
    low, high = low - 0.5 * short - _MARGIN * longer, high + 0.5 * short + _MARGIN * longer
    return float(low[0]), float(high[0]), float(low[1]), float(high[1])


def world_map(world: World, area: Area | None = None, height: float | None = None) -> WorldMap:
    """Return the map of a world with about 25000 points, fewer above 4000 dipoles.

    Parameters
    ----------
    area : tuple of float, optional
        Edges x0, x1, y0, y1, m; by default `default_area`.
    height : float, optional
        By default `default_height`, m.

    Raises
    ------
    ParameterError
        When edges or height are out of range, or the field is infinite somewhere.
    SensorError
        When the World Magnetic Model is needed but not installed.
    """
    x0, x1, y0, y1 = edges = default_area(world) if area is None else area
    z = default_height(world) if height is None else height
    if min(x1 - x0, y1 - y0) < _SHORTEST or max(map(abs, edges)) > _FARTHEST:
        raise ParameterError(
            'map', 'area', f'{x0:g},{x1:g},{y0:g},{y1:g} is not allowed; must be X0 < X1 and '
            f'Y0 < Y1, {_SHORTEST:g} m or more apart and within {_FARTHEST:g} m of the origin'
        )  # fmt: skip
    if abs(z) > _FARTHEST:
        raise ParameterError(
            'map', 'height', f'{z:g} is not allowed; must be within {_FARTHEST:g} m of the origin'
        )
    count = float(np.clip(_SUMS / max(len(world.dipoles), 1), _MIN, _MAX))
    wide, long = x1 - x0, y1 - y0
    step = math.sqrt(wide * long / count)
    # A narrow strip has at least 20 points across and a limited number along.
    columns, rows = (int(np.clip(round(size / step), 20, count / 20)) for size in (wide, long))
    x, y = (
        np.asarray(start + size / number * (np.arange(number) + 0.5), dtype=np.float64)
        for start, size, number in ((x0, wide, columns), (y0, long, rows))
    )
    grid = np.stack([*np.meshgrid(x, y), np.full((rows, columns), z)], axis=-1)
    with np.errstate(all='ignore'):
        field = world.magnetic_field(grid.reshape(-1, 3)).reshape(grid.shape)
        level_map = WorldMap(world, edges, z, x, y, field)
        bad = ~np.isfinite(level_map.intensity)
    if bad.any():
        where = ', '.join(f'{value:g}' for value in level_map.place(int(np.argmax(bad))))
        raise ParameterError(
            'map',
            'field',
            f'is no finite number at ({where}) m; reduce the moments of the dipoles',
        )
    return level_map


_TURNED_DEG = (5, 30)


def world_record(world_map: WorldMap, name: str) -> dict[str, Any]:
    """Return the world and its map as JSON values; SI units, angles in degrees.

    Inclination is positive downwards, declination positive to the east of north.
    """
    world = world_map.world
    return {
        'versions': versions(),
        'world': name,
        'origin': world.frame.to_mapping(),
        'gravity': {'model': world.gravity_model.model, 'value_m_s2': world.gravity},
        'earth_field': _field_record(world),
        'dipoles': len(world.dipoles),
        'landmarks': len(world.landmarks),
        'chessboards': len(world.chessboards),
        'tags': len(world.tags),
        'map': _map_record(world_map),
    }


def _field_record(world: World) -> dict[str, Any]:
    model = world.earth_field
    wmm = model.model == 'wmm'
    field = world.undisturbed_field
    east, north, up = (float(value) for value in field)
    level = math.hypot(east, north)
    return {
        'model': model.model,
        'coefficients': wmm_epoch(model.year) if wmm else None,
        'year': model.year if wmm else None,
        'east_north_up_t': [east, north, up],
        'intensity_t': float(np.linalg.norm(field)),
        'inclination_deg': math.degrees(math.atan2(-up, level)),
        'declination_deg': math.degrees(math.atan2(east, north)),
    }


def _map_record(world_map: WorldMap) -> dict[str, Any]:
    strength = world_map.intensity.reshape(-1)
    least, most = int(np.argmin(strength)), int(np.argmax(strength))
    return {
        'area_m': list(world_map.area),
        'height_m': world_map.height,
        'points': len(strength),
        'least_t': float(strength[least]),
        'least_at_m': list(world_map.place(least)),
        'most_t': float(strength[most]),
        'most_at_m': list(world_map.place(most)),
        # The rms depends on the point that is nearest to a dipole alone.
        'disturbance_median_t': np.median(np.abs(world_map.disturbance), axis=(0, 1)).tolist(),
        'compass': _compass_record(world_map),
    }


def _compass_record(world_map: WorldMap) -> dict[str, float] | None:
    if world_map.compass_error is None:
        return None
    size = np.degrees(np.abs(world_map.compass_error))
    return {
        'rms_deg': float(np.sqrt(np.mean(size**2))),
        'median_deg': float(np.median(size)),
        **{f'share_above_{limit}_deg': float(np.mean(size > limit)) for limit in _TURNED_DEG},
    }
