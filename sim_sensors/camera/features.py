# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Messages of a camera with a feature tracker, their truth, and lines between features."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sim_sensors.core.measurements import FloatArray, IntArray, MessageArray, PoseArray, set_array
from sim_sensors.sensor.sensor import Measurement

_OF_FEATURES = ('ids', 'pixels', 'previous', 'age', 'rays')


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class FeatureArray(MessageArray):
    """Feature tracks, one message per frame with any number of features.

    Features `first[k]` to `first[k + 1] - 1` are those of frame k. Rows with an `age` are the
    correspondences between that frame and the one before.
    """

    first: (
        IntArray  # (n + 1,) index of the first feature of each frame, then the number of features
    )
    # Ids of the landmarks and tag corners, (m,); see `sim_sensors.camera.camera.FIRST_TAG_ID`.
    ids: IntArray
    pixels: FloatArray  # (m, 2) u, v in px, as measured
    # Pixels u, v in the previous frame, (m, 2) px; NaN if the feature was not found there.
    previous: FloatArray
    age: IntArray  # (m,) number of consecutive frames before this one in which it was found
    # Undistorted X/Z, Y/Z in the optical frame, (m, 2); NaN if no ray leads to the pixel.
    rays: FloatArray

    def __post_init__(self) -> None:
        super().__post_init__()
        first = np.ascontiguousarray(self.first, dtype=np.int64)
        object.__setattr__(self, 'first', first)
        if first.shape != (len(self) + 1,) or first[0] != 0 or (np.diff(first) < 0).any():
            raise ValueError(f'FeatureArray.first must count up from 0 in {len(self) + 1} steps')
        count = int(first[-1])
        for name in ('ids', 'age'):
            set_array(self, name, np.int64, (count,))
        for name in ('pixels', 'previous', 'rays'):
            set_array(self, name, np.float64, (count, 2))

    def rows(self, k: int) -> slice:
        """Return the slice of the features of frame k."""
        return slice(int(self.first[k]), int(self.first[k + 1]))

    def take(self, index: ArrayLike | slice) -> FeatureArray:
        """Return the frames selected by a boolean mask, an index array or a slice object."""
        frames = np.arange(len(self))[index if isinstance(index, slice) else np.asarray(index)]
        counts = np.diff(self.first)[frames]
        first = np.concatenate([[0], np.cumsum(counts)])
        # Row j of the result is row j - (new start of its frame) + (old start of its frame).
        rows = np.arange(first[-1]) + np.repeat(self.first[frames] - first[:-1], counts)
        of_frames = {name: getattr(self, name)[frames] for name in ('stamp_ns', 'arrival_ns')}
        of_rows = {name: getattr(self, name)[rows] for name in _OF_FEATURES}
        return dataclasses.replace(self, first=first, **of_frames, **of_rows)


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
"""One feature of a PointCloud2: its ray at z = 1 in float32, then all fields in full."""

_POINT_FIELD_TYPES = {'<f4': _FLOAT32, '<i4': _INT32, '<f8': _FLOAT64, '<u4': _UINT32}

FIELDS: tuple[tuple[str, int, int], ...] = tuple(
    (name, int(ROW.fields[name][1]), _POINT_FIELD_TYPES[ROW.fields[name][0].str])
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
    """Return whether no number of the rows is NaN, for `is_dense` of a PointCloud2.

    The previous pixel is NaN for a feature that was not found in the previous frame; the ray is
    NaN where no ray leads to the pixel.
    """
    names = ('previous_u', 'previous_v', 'ray_x', 'ray_y')
    return not any(np.isnan(rows[name]).any() for name in names)


@dataclasses.dataclass(frozen=True, eq=False)
class CameraMessages:
    """Messages of a camera: features of each frame, and poses of the body in the world.

    A frame whose features determine no pose has none.
    """

    features: FeatureArray
    poses: PoseArray


@dataclasses.dataclass(frozen=True, eq=False)
class CameraMeasurement(Measurement[FeatureArray]):
    """Features and poses of `n` frames."""

    message: ClassVar[type[FeatureArray]] = FeatureArray

    # Messages, as in `FeatureArray`.
    first: IntArray
    ids: IntArray
    pixels: FloatArray
    previous: FloatArray
    age: IntArray
    rays: FloatArray
    true_ids: IntArray  # (m,) id of the feature at the pixel; it differs from `ids` in a mismatch
    true_pixels: FloatArray  # (m, 2) true pixel of the feature `ids`, px
    has_pose: np.typing.NDArray[np.bool_]  # (n,) whether the frame has a pose
    position: FloatArray  # (n, 3) m, of the body in the world; NaN without a pose
    orientation: FloatArray  # (n, 4) quaternion x y z w, body to world; NaN without a pose
    pose_covariance: FloatArray  # (n, 6, 6) order x y z, rotation about the world's x y z

    def true_messages(self, stamp_ns: IntArray, frame: str) -> FeatureArray:
        """Return the messages with the true ids and pixels in place of the measured ones."""
        return dataclasses.replace(
            self.messages(stamp_ns, frame), ids=self.true_ids, pixels=self.true_pixels
        )

    def poses(self, stamp_ns: IntArray, frame: str) -> PoseArray:
        """Return poses of the frames that have one, of the body in the frame named `frame`."""
        rows = np.flatnonzero(self.has_pose)
        names = ('position', 'orientation', 'pose_covariance')
        arrays = {name: getattr(self, name)[rows] for name in names}
        return PoseArray(stamp_ns=stamp_ns[rows], arrival_ns=stamp_ns[rows], frame=frame, **arrays)


@dataclasses.dataclass(frozen=True, eq=False)
class LineArray:
    """Straight lines in frames of a camera: u cos(angle) + v sin(angle) = distance.

    A lens bends lines; these are the chords between their ends.

    Examples
    --------
    >>> line = LineArray.through_pixels([[0.0, 10.0]], [[100.0, 10.0]], 0.5)
    >>> np.degrees(line.angle).round(), line.distance
    (array([90.]), array([10.]))
    """

    frame: IntArray  # (n,) index of the frame
    ids: IntArray  # (n, 2) ids of the features at the ends
    angle: FloatArray  # (n,) angle of the normal, rad, in [0, pi)
    distance: FloatArray  # (n,) from pixel (0, 0), with sign, px
    covariance: FloatArray  # (n, 2, 2) of angle and distance: rad^2, rad px, px^2

    @classmethod
    def through_pixels(
        cls, first: ArrayLike, second: ArrayLike, noise_std: ArrayLike
    ) -> LineArray:
        """Return the lines through two pixels each, `(n, 2)`, with the noise `noise_std`, px.

        The covariance is to first order, for ends much farther apart than the noise. Equal ends
        give NaN.
        """
        a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
        along = np.where((a == b).all(axis=1, keepdims=True), np.nan, b - a)
        angle = np.mod(np.arctan2(along[:, 0], -along[:, 1]), np.pi)
        normal = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        # Derivative of the normal by the angle: a unit vector along the line.
        tangent = np.stack([-normal[:, 1], normal[:, 0]], axis=1)
        start = np.einsum('ni,ni->n', a, tangent)[:, None]
        end = np.einsum('ni,ni->n', b, tangent)[:, None]
        span = end - start
        # An end that moves along the normal rotates the line about the other end.
        to_angle = np.stack([normal / span, -normal / span], axis=1)
        to_distance = np.stack([normal * end / span, -normal * start / span], axis=1)
        jacobian = np.stack([to_angle, to_distance], axis=1).reshape(len(along), 2, 4)
        variance = np.broadcast_to(np.asarray(noise_std, dtype=np.float64), 2) ** 2
        covariance = np.einsum('nij,j,nkj->nik', jacobian, np.tile(variance, 2), jacobian)
        count = len(along)
        return cls(
            np.zeros(count, dtype=np.int64),
            np.full((count, 2), -1),
            angle,
            np.einsum('ni,ni->n', a, normal),
            covariance,
        )

    @classmethod
    def from_features(
        cls, features: FeatureArray, pairs: ArrayLike, noise_std: ArrayLike
    ) -> LineArray:
        """Return the lines between features with the ids `pairs` `(m, 2)`, frame by frame.

        A line is left out where one of its ends was not found.
        """
        end_ids = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
        frames = np.repeat(np.arange(len(features)), np.diff(features.first))
        # Unique key of frame and id; an id has 31 bits.
        keys = (frames << 31) + features.ids
        order = np.argsort(keys)
        end_keys = (np.arange(len(features)) << 31)[:, None, None] + end_ids
        position = np.searchsorted(keys, end_keys, sorter=order)
        rows = np.append(order, 0)[position]
        is_found = np.append(keys, -1)[np.where(position < len(keys), rows, -1)] == end_keys
        frame, pair = np.nonzero(is_found.all(axis=2))
        first, last = features.pixels[rows[frame, pair]].swapaxes(0, 1)
        lines = cls.through_pixels(first, last, noise_std)
        return dataclasses.replace(lines, frame=frame, ids=end_ids[pair])

    def differences(self, other: LineArray) -> tuple[FloatArray, FloatArray]:
        """Return the differences to other lines in angle, rad, and distance, px, `(n,)` each.

        An angle just below pi is close to one just above 0, with a distance of the other sign.
        """
        half_turns = np.round((self.angle - other.angle) / np.pi)
        sign = np.where(half_turns == 0.0, 1.0, -1.0)
        angle = self.angle - other.angle - half_turns * np.pi
        return angle, sign * self.distance - other.distance


def edges(boards: Iterable[IntArray]) -> IntArray:
    """Return the ids `(m, 2)` of the ends of all rows and columns of chessboards.

    `boards` are the ids of the corners, `(rows, columns)` each, as in `World.chessboards`.

    Examples
    --------
    >>> edges([np.arange(6).reshape(2, 3)]).tolist()
    [[0, 2], [3, 5], [0, 3], [1, 4], [2, 5]]
    """
    ends = [side[:, [0, -1]] for board in boards for side in (board, board.T) if side.shape[1] > 1]
    return np.concatenate([np.zeros((0, 2), dtype=np.int64), *ends])
