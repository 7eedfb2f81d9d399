# SPDX-License-Identifier: Apache-2.0
"""Which tags a camera sees, compiled."""

from __future__ import annotations

import math

import numpy as np

from sim_sensors.compilation import compiled
from sim_sensors.measurements import FloatArray, IntArray

__all__ = ['tags_in_view']


@compiled
def tags_in_view(
    camera: FloatArray,
    turn: FloatArray,
    corners: FloatArray,
    faces: FloatArray,
    limits: FloatArray,
) -> tuple[IntArray, FloatArray, IntArray]:
    """Return how many tags are in view, their mean distance in m, and the last of them.

    A tag is in view when its four corners are in the picture, its centre is near enough, and its
    face is turned to the camera. Nothing hides anything.

    Parameters
    ----------
    camera : (n, 3)
        Positions, m, world.
    turn : (n, 3, 3)
        Rotation matrices, camera to world; x out of the lens, y left, z up in the picture.
    corners : (m, 4, 3)
        m, world.
    faces : (m, 6)
        Centre and unit vector out of the face, world.
    limits : (4,)
        Tangents of half the fields of view, across and up; greatest distance, m; cosine of the
        greatest angle between the face's normal and the line of sight.

    Returns
    -------
    count : (n,) int
    distance : (n,) float
        0 where there is none.
    last : (n,) int
        Row of the last tag in view; -1 where there is none.
    """
    n = len(camera)
    count, last = np.zeros(n, dtype=np.int64), np.full(n, -1, dtype=np.int64)
    distance = np.zeros(n)
    for k in range(n):
        for tag in range(len(corners)):
            x = camera[k, 0] - faces[tag, 0]
            y = camera[k, 1] - faces[tag, 1]
            z = camera[k, 2] - faces[tag, 2]
            away = math.sqrt(x * x + y * y + z * z)
            if away > limits[2] or away == 0.0:
                continue
            facing = (x * faces[tag, 3] + y * faces[tag, 4] + z * faces[tag, 5]) / away
            if facing < limits[3] or facing <= 0.0:
                continue
            seen = True
            for corner in range(4):
                dx = corners[tag, corner, 0] - camera[k, 0]
                dy = corners[tag, corner, 1] - camera[k, 1]
                dz = corners[tag, corner, 2] - camera[k, 2]
                ahead = turn[k, 0, 0] * dx + turn[k, 1, 0] * dy + turn[k, 2, 0] * dz
                left = turn[k, 0, 1] * dx + turn[k, 1, 1] * dy + turn[k, 2, 1] * dz
                up = turn[k, 0, 2] * dx + turn[k, 1, 2] * dy + turn[k, 2, 2] * dz
                inside = abs(left) <= ahead * limits[0] and abs(up) <= ahead * limits[1]
                seen = seen and ahead > 0.0 and inside
            if seen:
                count[k] += 1
                distance[k] += away
                last[k] = tag
        if count[k]:
            distance[k] /= count[k]
    return count, distance, last
