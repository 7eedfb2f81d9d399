# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Fixes whose place on the Earth cannot be that of the recording."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim_sensors.core.measurements import FloatArray

_EARTH_M = 6371e3
_FROM_ZERO_M = 100e3
FAR_M = 1000e3
"""Distance from the median position of a recording that no vehicle reaches, m."""


def misplaced_fixes(
    latitude: FloatArray, longitude: FloatArray
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which positions (n,) in degrees are the filler (0, 0), and which are far from all.

    Receivers write (0, 0) before they have a fix. It is a filler if the other positions lie more
    than 100 km away. The second mask marks other positions over 1000 km from the median.
    """
    is_zero = (latitude == 0.0) & (longitude == 0.0)
    is_far = np.zeros(len(latitude), np.bool_)
    if is_zero.all():
        return np.zeros_like(is_zero), is_far
    distance = _distance_to_median(latitude[~is_zero], longitude[~is_zero])
    is_far[~is_zero] = distance > FAR_M
    at_home = np.flatnonzero(~is_zero)[int(np.argmin(distance))]
    home = _directions(latitude[at_home : at_home + 1], longitude[at_home : at_home + 1])[0]
    if _EARTH_M * np.arccos(np.clip(home[0], -1.0, 1.0)) < _FROM_ZERO_M:
        is_zero = np.zeros_like(is_zero)
    return is_zero, is_far


def _distance_to_median(latitude: FloatArray, longitude: FloatArray) -> FloatArray:
    """Return the distances, m, of positions from their median, on a sphere."""
    directions = _directions(latitude, longitude)
    median = np.median(directions, axis=0)
    cosine = directions @ median / max(float(np.linalg.norm(median)), 1e-9)
    return np.asarray(_EARTH_M * np.arccos(np.clip(cosine, -1.0, 1.0)))


def _directions(latitude: FloatArray, longitude: FloatArray) -> FloatArray:
    """Return unit vectors from the centre of the Earth, (n, 3); (0, 0) is the first axis."""
    lat, lon = np.radians(latitude), np.radians(longitude)
    return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=1)
