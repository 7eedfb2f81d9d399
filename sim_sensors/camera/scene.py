# SPDX-License-Identifier: Apache-2.0
"""What of the world a camera recognises, landmarks and corners of tags, and what it confuses."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from sim_sensors.core.errors import SensorError
from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.core.parameters import Parameters
from sim_sensors.core.seeding import stream
from sim_sensors.core.shared_parameters import share
from sim_sensors.world.scene import Boxes
from sim_sensors.world.world import World

FIRST_TAG_ID = 1_000_000
"""Corner c (0 to 3) of tag t has the id `FIRST_TAG_ID + 4 t + c`."""

_LARGEST = 2**31 - 1


@dataclasses.dataclass(frozen=True, eq=False)
class Scene:
    """Points with numbers: `ids` `(n,)`, each once, which fit 32 bits, as those of a message have
    to.

    `points` `(n, 3)` are in m, in the world's frame. A point is seen from the side to which its
    normal `(n, 3)` points, from all sides where that is zero.
    """

    ids: IntArray
    points: FloatArray
    normals: FloatArray
    boxes: Boxes = dataclasses.field(default_factory=Boxes)

    @classmethod
    def of(cls, world: World) -> Scene:
        """Return what there is to see in a world: landmarks from all sides, tags from in front.

        The world's boxes hide what is behind them; tags hide nothing.

        Raises SensorError when an id does not fit 32 bits, or a landmark has the id of the corner
        of a tag.
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
            world.boxes,
        )

    def __len__(self) -> int:
        return len(self.ids)

    def seen_from(self, eyes: FloatArray) -> NDArray[np.bool_]:
        """Return which points show their face to eyes at `(3,)` or `(n, 3)` m, with nothing
        between, `(n,)`.
        """
        towards = eyes - self.points
        n = self.normals
        cosine = n[:, 0] * towards[:, 0] + n[:, 1] * towards[:, 1] + n[:, 2] * towards[:, 2]
        free = (n == 0.0).all(axis=1)
        return np.asarray((free | (cosine > 0.0)) & ~self.boxes.hide(eyes, self.points))


@dataclasses.dataclass(frozen=True)
class Mismatches(Parameters):
    """Share of the frames that are affected, and of their correspondences that are wrong.

    Each frame is affected with probability f = `frames`, and in an affected frame each
    correspondence is wrong with probability p = `features` ([Ligorio2015], section 2.1.6). The
    wrong ones take each other's places in a cycle in random order, so none is right by chance; a
    single one stays right. Of n correspondences n f p (1 - (1 - p)^(n - 1)) are wrong on average.
    The next frame is compared with the truth, not with the mismatch.
    """

    frames: float = share(0.0, 'Share of the frames with mismatches.')
    features: float = share(0.0, 'Share of the correspondences of such a frame that are wrong.')

    def start(self, seed: int, run: str, sensor: str) -> MismatchProcess:
        """Return the mismatches of one camera; see `sim_sensors.core.seeding.stream`."""
        return MismatchProcess(self, stream(seed, run, sensor, 'mismatch'))


class MismatchProcess:
    """Mismatches, frame by frame, with a random stream of their own."""

    def __init__(self, mismatches: Mismatches, rng: np.random.Generator) -> None:
        self._mismatches, self._rng = mismatches, rng

    def mix(self, tracked: NDArray[np.bool_]) -> IntArray:
        """Return the feature at whose place each is reported in the next frame, `(n,)` indices.

        It is itself where that is right. `tracked` says which of the scene's features are seen in
        this frame and were in the one before.
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
