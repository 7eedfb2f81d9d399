# SPDX-License-Identifier: Apache-2.0
"""What a feature tracker reports: features by number in each frame, and where each was before."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sim_sensors.core.measurements import FloatArray, IntArray, MessageArray
from sim_sensors.core.parameters import Parameters, parameter
from sim_sensors.core.seeding import stream


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
        Number of the landmark; of a tag's corner see `sim_sensors.camera.scene.FIRST_TAG_ID`.
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


# Features as the points of a sensor_msgs/PointCloud2, the same in messages and in bags.

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


# Features that a tracker takes for one another.


@dataclasses.dataclass(frozen=True)
class Mismatches(Parameters):
    """Share of the frames that are affected, and of their correspondences that are wrong.

    Both are probabilities of random events ([Ligorio2015], section 2.1.6): each
    frame is affected or not, and in one that is each correspondence is wrong or not. Those that
    are take each other's places in a cycle in random order, so that none of them is right after
    all; one alone stays right. So of n correspondences n f p (1 - (1 - p)^(n - 1)) are wrong on
    average, f and p being the shares. A frame's mismatches are forgotten with the next frame.
    """

    frames: float = parameter(
        0.0, '1', 'Share of the frames with mismatches.', minimum=0.0, maximum=1.0
    )
    features: float = parameter(
        0.0,
        '1',
        'Share of the correspondences of such a frame that are wrong.',
        minimum=0.0,
        maximum=1.0,
    )

    def start(self, seed: int, run: str, sensor: str) -> MismatchProcess:
        """Return the mismatches of one camera; see `sim_sensors.core.seeding.stream`."""
        return MismatchProcess(self, stream(seed, run, sensor, 'mismatch'))


class MismatchProcess:
    """Mismatches, frame by frame.

    Parameters
    ----------
    mismatches : Mismatches
        Their shares.
    rng : numpy.random.Generator
        Stream of this source alone.
    """

    def __init__(self, mismatches: Mismatches, rng: np.random.Generator) -> None:
        self._mismatches, self._rng = mismatches, rng

    def mix(self, tracked: NDArray[np.bool_]) -> IntArray:
        """Return what each feature of a scene is taken to be at in the next frame.

        Parameters
        ----------
        tracked : (n,) bool
            Which of the scene's features are seen in this frame and were in the one before.

        Returns
        -------
        (n,) int64
            Index of the feature at whose place each is reported: its own where it is right.
        """
        # Drawn for all, whatever is seen, so that draws of later frames depend on none of it.
        frame = self._rng.random()
        uniform, order = self._rng.random((2, len(tracked)))
        places = np.arange(len(tracked))
        if frame < self._mismatches.frames:
            wrong = np.flatnonzero(tracked & (uniform < self._mismatches.features))
            wrong = wrong[np.argsort(order[wrong], kind='stable')]
            places[wrong] = np.roll(wrong, 1)
        return places
