# SPDX-License-Identifier: Apache-2.0
"""What a camera's feature tracker measured, and the truth behind it."""

from __future__ import annotations

import dataclasses

import numpy as np

from sim_sensors.camera.features import FeatureArray
from sim_sensors.core.measurements import FloatArray, IntArray, PoseArray


@dataclasses.dataclass(frozen=True, eq=False)
class CameraMessages:
    """What a camera sends.

    Attributes
    ----------
    features : FeatureArray
        One message per frame.
    poses : PoseArray
        Of the body in the world, one for each frame whose features gave one, stamped alike.
    """

    features: FeatureArray
    poses: PoseArray


@dataclasses.dataclass(frozen=True, eq=False)
class CameraMeasurement:
    """Features and poses of `n` frames.

    Attributes
    ----------
    first, ids, pixels, previous, age, rays
        As in `FeatureArray`.
    true_ids : (m,) int64
        What is really at that place: another id than `ids` is a mismatch.
    true_pixels : (m, 2)
        Where the feature `ids` really is in the image, px.
    has_pose : (n,) bool
        Whether there is a pose.
    position : (n, 3)
        m, of the body in the world; NaN where there is none.
    orientation : (n, 4)
        Quaternion x y z w, body to world; NaN where there is none.
    pose_covariance : (n, 6, 6)
        Order x y z, rotation about the world's x y z.
    """

    first: IntArray
    ids: IntArray
    pixels: FloatArray
    previous: FloatArray
    age: IntArray
    rays: FloatArray
    true_ids: IntArray
    true_pixels: FloatArray
    has_pose: np.typing.NDArray[np.bool_]
    position: FloatArray
    orientation: FloatArray
    pose_covariance: FloatArray

    def messages(self, stamp_ns: IntArray, frame: str) -> FeatureArray:
        """Return feature tracks of frames stamped `stamp_ns`, arriving at once."""
        return FeatureArray(
            stamp_ns=stamp_ns,
            arrival_ns=stamp_ns,
            frame=frame,
            first=self.first,
            ids=self.ids,
            pixels=self.pixels,
            previous=self.previous,
            age=self.age,
            rays=self.rays,
        )

    def true_messages(self, stamp_ns: IntArray, frame: str) -> FeatureArray:
        """Return what is really at those places, and where the features really are: like
        `messages`, with the true ids and pixels.
        """
        return dataclasses.replace(
            self.messages(stamp_ns, frame), ids=self.true_ids, pixels=self.true_pixels
        )

    def poses(self, stamp_ns: IntArray, frame: str) -> PoseArray:
        """Return poses of the frames that have one, of the body in the frame named `frame`."""
        rows = np.flatnonzero(self.has_pose)
        return PoseArray(
            stamp_ns=stamp_ns[rows],
            arrival_ns=stamp_ns[rows],
            frame=frame,
            position=self.position[rows],
            orientation=self.orientation[rows],
            pose_covariance=self.pose_covariance[rows],
        )
