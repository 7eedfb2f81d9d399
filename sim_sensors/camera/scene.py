# SPDX-License-Identifier: Apache-2.0
"""What of the world a camera can recognise: landmarks, and the corners of tags."""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy.spatial.transform import Rotation

from sim_sensors.core.errors import SensorError
from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.world.world import World

FIRST_TAG_ID = 1_000_000
"""Corner c (0 to 3) of tag t has the id `FIRST_TAG_ID + 4 t + c`."""

_LARGEST = 2**31 - 1


@dataclasses.dataclass(frozen=True, eq=False)
class Scene:
    """Points with numbers.

    Attributes
    ----------
    ids : (n,) int64
        Each once; they fit 32 bits, as those of a message have to.
    points : (n, 3)
        m, in the world's frame.
    normals : (n, 3)
        A point is seen from the side to which its normal points, from all sides where it is zero.
    """

    ids: IntArray
    points: FloatArray
    normals: FloatArray

    @classmethod
    def of(cls, world: World) -> Scene:
        """Return what there is to see in a world: landmarks from all sides, tags from in front.

        Nothing hides anything else.

        Raises
        ------
        SensorError
            When an id does not fit 32 bits, or a landmark has the id of the corner of a tag.
        """
        marks, tags = world.landmarks, world.tags
        corners = tags.ids[:, None] * 4 + np.arange(4) + FIRST_TAG_ID
        ids = np.concatenate([marks.ids, corners.reshape(-1)])
        if len(ids) and (ids.min() < 0 or ids.max() > _LARGEST):
            wrong = int(ids.min()) if ids.min() < 0 else int(ids.max())
            raise SensorError(
                f'a camera sees a feature of the id {wrong}; must be in [0, {_LARGEST}], where '
                f'corner c of tag t has the id {FIRST_TAG_ID} + 4 t + c'
            )
        both = np.intersect1d(marks.ids, corners)
        if len(both):
            raise SensorError(
                f'a landmark has the id {int(both[0])}, which is that of the corner of a tag '
                f'({FIRST_TAG_ID} + 4 t + c); must be below {FIRST_TAG_ID}'
            )
        faces = np.zeros((len(tags), 3))
        if len(tags):
            faces = Rotation.from_quat(tags.orientations).apply([0.0, 0.0, 1.0])
        return cls(
            ids,
            np.concatenate([marks.positions, tags.corners().reshape(-1, 3)]),
            np.concatenate([np.zeros((len(marks), 3)), np.repeat(faces, 4, axis=0)]),
        )

    def __len__(self) -> int:
        return len(self.ids)

    def faces(self, eye: FloatArray) -> np.typing.NDArray[np.bool_]:
        """Return which points show their face to an eye at `(3,)` m, `(n,)`."""
        towards = eye - self.points
        n = self.normals
        cosine = n[:, 0] * towards[:, 0] + n[:, 1] * towards[:, 1] + n[:, 2] * towards[:, 2]
        free = (n == 0.0).all(axis=1)
        faces: np.typing.NDArray[np.bool_] = free | (cosine > 0.0)
        return faces
