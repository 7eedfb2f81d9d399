# SPDX-License-Identifier: Apache-2.0
"""What a feature tracker reports: features by number in each frame, and where each was before."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike

from sim_sensors.measurements import FloatArray, IntArray, MessageArray

__all__ = ['FeatureArray']


@dataclasses.dataclass(frozen=True, eq=False)
class FeatureArray(MessageArray):
    """Feature tracks, one message per frame; each has its own number of features.

    Features `first[k]` to `first[k + 1] - 1` are those of frame k. Rows with an `age` are the
    correspondences between that frame and the one before.

    Attributes
    ----------
    first : (n + 1,) int64
        Where the features of each frame begin, and their number at the end.
    ids : (m,) int64
        Number of the landmark; of a tag's corner see `sim_sensors.scene.FIRST_TAG_ID`.
    pixels : (m, 2) float
        u, v in px, as measured.
    previous : (m, 2) float
        u, v in px as measured in the frame before; NaN for what was not seen there.
    age : (m,) int64
        How many frames in a row it was seen before this one.
    rays : (m, 2) float
        Undistorted X/Z, Y/Z in the optical frame; NaN where the lens gives none.
    """

    first: IntArray
    ids: IntArray
    pixels: FloatArray
    previous: FloatArray
    age: IntArray
    rays: FloatArray

    def __post_init__(self) -> None:
        super().__post_init__()
        first = np.ascontiguousarray(self.first, dtype=np.int64)
        object.__setattr__(self, 'first', first)
        if first.shape != (len(self) + 1,) or first[0] != 0 or (np.diff(first) < 0).any():
            raise ValueError(f'FeatureArray.first must count up from 0 in {len(self) + 1} steps')
        count = int(first[-1])
        shapes = {'ids': (), 'age': (), 'pixels': (2,), 'previous': (2,), 'rays': (2,)}
        for name, shape in shapes.items():
            kind = np.float64 if shape else np.int64
            array = np.ascontiguousarray(getattr(self, name), dtype=kind)
            if array.shape != (count, *shape):
                raise ValueError(
                    f'FeatureArray.{name} has shape {array.shape}, must be {(count, *shape)}'
                )
            object.__setattr__(self, name, array)

    def rows(self, k: int) -> slice:
        """Return where the features of frame k are."""
        return slice(int(self.first[k]), int(self.first[k + 1]))

    def take(self, index: ArrayLike) -> FeatureArray:
        """Return the frames selected by a boolean mask, an index array or a slice object."""
        frames = np.arange(len(self))[index if isinstance(index, slice) else np.asarray(index)]
        counts = np.diff(self.first)[frames]
        first = np.concatenate([[0], np.cumsum(counts)])
        # Row j of what is taken is row j - (its frame's new start) + (its frame's old start).
        rows = np.arange(first[-1]) + np.repeat(self.first[frames] - first[:-1], counts)
        return dataclasses.replace(
            self,
            stamp_ns=self.stamp_ns[frames],
            arrival_ns=self.arrival_ns[frames],
            first=first,
            ids=self.ids[rows],
            pixels=self.pixels[rows],
            previous=self.previous[rows],
            age=self.age[rows],
            rays=self.rays[rows],
        )
