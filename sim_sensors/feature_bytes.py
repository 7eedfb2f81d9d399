# SPDX-License-Identifier: Apache-2.0
"""Features as the points of a sensor_msgs/PointCloud2, the same in messages and in bags."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim_sensors.feature_tracks import FeatureArray

__all__ = ['FIELDS', 'ROW', 'feature_rows', 'is_dense']

# Numbers of sensor_msgs/PointField.
_INT32, _UINT32, _FLOAT32, _FLOAT64 = 5, 6, 7, 8

ROW = np.dtype(
    [
        ('x', '<f4'),
        ('y', '<f4'),
        ('z', '<f4'),
        ('id', '<i4'),
        ('u', '<f8'),
        ('v', '<f8'),
        ('previous_u', '<f8'),
        ('previous_v', '<f8'),
        ('ray_x', '<f8'),
        ('ray_y', '<f8'),
        ('age', '<u4'),
    ]
)
"""One feature: its ray at z = 1 for pictures, and everything that was measured in full."""

_KINDS = {'<f4': _FLOAT32, '<i4': _INT32, '<f8': _FLOAT64, '<u4': _UINT32}

FIELDS: tuple[tuple[str, int, int], ...] = tuple(
    (name, int(ROW.fields[name][1]), _KINDS[ROW.fields[name][0].str])
    for name in ROW.names or ()
    if ROW.fields is not None
)
"""Name, offset in bytes and datatype of each field, count 1."""


def feature_rows(features: FeatureArray) -> NDArray[np.void]:
    """Return the features of all frames as records `(m,)` of the type `ROW`."""
    rows = np.zeros(len(features.ids), ROW)
    rows['x'], rows['y'], rows['z'] = features.rays[:, 0], features.rays[:, 1], 1.0
    rows['id'], rows['age'] = features.ids, features.age
    rows['u'], rows['v'] = features.pixels.T
    rows['previous_u'], rows['previous_v'] = features.previous.T
    rows['ray_x'], rows['ray_y'] = features.rays.T
    return rows


def is_dense(rows: NDArray[np.void]) -> bool:
    """Return whether all numbers of the rows are there, as a PointCloud2 has to tell.

    A feature that was not seen in the frame before has no pixel there, and a pixel that the lens
    sends nothing to has no ray; both are NaN then.
    """
    names = ('previous_u', 'previous_v', 'ray_x', 'ray_y')
    return not any(np.isnan(rows[name]).any() for name in names)
