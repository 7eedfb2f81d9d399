# SPDX-License-Identifier: Apache-2.0
"""What a world is, in numbers: its place, gravity and Earth field, and the field on a map."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sim2real_eval.provenance import versions
from sim2real_eval.world_map import WorldMap
from sim_sensors.earth_field import wmm_epoch
from sim_sensors.world import World

__all__ = ['world_record']

_TURNED_DEG = (5, 30)


def world_record(found: WorldMap, name: str) -> dict[str, Any]:
    """Return a plain mapping, for JSON; SI units, angles in degrees.

    Inclination is positive downwards, declination positive to the east of north.
    """
    world = found.world
    return {
        'versions': versions(),
        'world': name,
        'origin': world.frame.to_mapping(),
        'gravity': {'model': world.gravity_model.model, 'value_m_s2': world.gravity},
        'earth_field': _earth_field(world),
        'dipoles': len(world.dipoles),
        'landmarks': len(world.landmarks),
        'chessboards': len(world.chessboards),
        'tags': len(world.tags),
        'map': _map(found),
    }


def _earth_field(world: World) -> dict[str, Any]:
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


def _map(found: WorldMap) -> dict[str, Any]:
    strength = found.intensity.reshape(-1)
    least, most = int(np.argmin(strength)), int(np.argmax(strength))
    return {
        'area_m': list(found.area),
        'height_m': found.height,
        'points': len(strength),
        'least_t': float(strength[least]),
        'least_at_m': list(found.place(least)),
        'most_t': float(strength[most]),
        'most_at_m': list(found.place(most)),
        'compass': _compass(found),
    }


def _compass(found: WorldMap) -> dict[str, float] | None:
    if found.compass_error is None:
        return None
    size = np.degrees(np.abs(found.compass_error))
    return {
        'rms_deg': float(np.sqrt(np.mean(size**2))),
        'median_deg': float(np.median(size)),
        **{f'share_above_{limit}_deg': float(np.mean(size > limit)) for limit in _TURNED_DEG},
    }
