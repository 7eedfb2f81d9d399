# SPDX-License-Identifier: Apache-2.0
"""What a camera with a feature tracker measures, the truth behind it, and lines between features.

Features have a number in each frame, and the place where each was before.
"""

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
    """Feature tracks, one message per frame; each has its own number of features.

    Features `first[k]` to `first[k + 1] - 1` are those of frame k. Rows with an `age` are the
    correspondences between that frame and the one before.
    """

    first: IntArray  # (n + 1,) where the features of each frame begin, and their number at the end
    # (m,) Number of the landmark; of a tag's corner see `sim_sensors.camera.camera.FIRST_TAG_ID`
    ids: IntArray
    pixels: FloatArray  # (m, 2) u, v in px, as measured
    # (m, 2) u, v in px as measured in the frame before; NaN for what was not seen there
    previous: FloatArray
    age: IntArray  # (m,) how many frames in a row it was seen before this one
    # (m, 2) Undistorted X/Z, Y/Z in the optical frame; NaN where the lens gives none
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
        """Return where the features of frame k are."""
        return slice(int(self.first[k]), int(self.first[k + 1]))

    def take(self, index: ArrayLike | slice) -> FeatureArray:
        """Return the frames selected by a boolean mask, an index array or a slice object."""
        frames = np.arange(len(self))[index if isinstance(index, slice) else np.asarray(index)]
        counts = np.diff(self.first)[frames]
        first = np.concatenate([[0], np.cumsum(counts)])
        # Row j of what is taken is row j - (its frame's new start) + (its frame's old start).
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


@dataclasses.dataclass(frozen=True, eq=False)
class CameraMessages:
    """What a camera sends: `features`, one message per frame, and `poses` of the body in the
    world, one for each frame whose features gave one, stamped alike.
    """

    features: FeatureArray
    poses: PoseArray


@dataclasses.dataclass(frozen=True, eq=False)
class CameraMeasurement(Measurement[FeatureArray]):
    """Features and poses of `n` frames."""

    message: ClassVar[type[FeatureArray]] = FeatureArray

    # As in `FeatureArray`
    first: IntArray
    ids: IntArray
    pixels: FloatArray
    previous: FloatArray
    age: IntArray
    rays: FloatArray
    true_ids: IntArray  # (m,) what is really at that place: another id than `ids` is a mismatch
    true_pixels: FloatArray  # (m, 2) where the feature `ids` really is in the image, px
    has_pose: np.typing.NDArray[np.bool_]  # (n,) whether there is a pose
    position: FloatArray  # (n, 3) m, of the body in the world; NaN where there is none
    orientation: FloatArray  # (n, 4) quaternion x y z w, body to world; NaN where there is none
    pose_covariance: FloatArray  # (n, 6, 6) order x y z, rotation about the world's x y z

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
        names = ('position', 'orientation', 'pose_covariance')
        own = {name: getattr(self, name)[rows] for name in names}
        return PoseArray(stamp_ns=stamp_ns[rows], arrival_ns=stamp_ns[rows], frame=frame, **own)


# Lines in images: how the noise of their pixels moves the line.


@dataclasses.dataclass(frozen=True, eq=False)
class LineArray:
    """Straight lines in frames of a camera: u cos(angle) + v sin(angle) = distance.

    A lens bends lines: with a distortion these are the chords between their ends.

    Examples
    --------
    >>> line = LineArray.through([[0.0, 10.0]], [[100.0, 10.0]], 0.5)
    >>> np.degrees(line.angle).round(), line.distance
    (array([90.]), array([10.]))
    """

    frame: IntArray  # (n,) number of the frame, as in the features
    ids: IntArray  # (n, 2) of the features at the ends
    angle: FloatArray  # (n,) of the normal, rad, in [0, pi)
    distance: FloatArray  # (n,) from pixel (0, 0), with sign, px
    covariance: FloatArray  # (n, 2, 2) of angle and distance: rad^2, rad px, px^2

    @classmethod
    def through(cls, first: ArrayLike, second: ArrayLike, noise_std: ArrayLike) -> LineArray:
        """Return the lines through pixels `(n, 2)` whose u and v have that noise, px.

        The covariance is to first order, for ends much farther apart than the noise. Equal ends
        give NaN.
        """
        a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
        along = np.where((a == b).all(axis=1, keepdims=True), np.nan, b - a)
        angle = np.mod(np.arctan2(along[:, 0], -along[:, 1]), np.pi)
        normal = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        # Along the line, as the normal turns: d normal / d angle.
        tangent = np.stack([-normal[:, 1], normal[:, 0]], axis=1)
        at = np.einsum('ni,ni->n', a, tangent)[:, None], np.einsum('ni,ni->n', b, tangent)[:, None]
        span = at[1] - at[0]
        # An end that moves along the normal turns the line about the other end.
        to_angle = np.stack([normal / span, -normal / span], axis=1)
        to_distance = np.stack([normal * at[1] / span, -normal * at[0] / span], axis=1)
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
    def of(cls, features: FeatureArray, pairs: ArrayLike, noise_std: ArrayLike) -> LineArray:
        """Return the lines between features of the ids `pairs` `(m, 2)`, frame by frame, where
        both were found.
        """
        wanted = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
        frames = np.repeat(np.arange(len(features)), np.diff(features.first))
        # One number per frame and id, which fits 31 bits.
        keys = (frames << 31) + features.ids
        order = np.argsort(keys)
        sought = (np.arange(len(features)) << 31)[:, None, None] + wanted
        near = np.searchsorted(keys, sought, sorter=order)
        rows = np.append(order, 0)[near]
        seen = np.append(keys, -1)[np.where(near < len(keys), rows, -1)] == sought
        frame, pair = np.nonzero(seen.all(axis=2))
        first, last = features.pixels[rows[frame, pair]].swapaxes(0, 1)
        lines = cls.through(first, last, noise_std)
        return dataclasses.replace(lines, frame=frame, ids=wanted[pair])

    def minus(self, other: LineArray) -> tuple[FloatArray, FloatArray]:
        """Return by how much angle, rad, and distance, px, of each line `(n,)` are larger.

        A line whose normal lies just below pi is near one just above 0 with the other sign.
        """
        turned = np.round((self.angle - other.angle) / np.pi)
        sign = np.where(turned == 0.0, 1.0, -1.0)
        return self.angle - other.angle - turned * np.pi, sign * self.distance - other.distance


def edges(boards: Iterable[IntArray]) -> IntArray:
    """Return the ids `(m, 2)` of the ends of all rows and columns of chessboards.

    `boards` are the ids of their corners, `(rows, columns)` each, as `World.chessboards`.

    Examples
    --------
    >>> edges([np.arange(6).reshape(2, 3)]).tolist()
    [[0, 2], [3, 5], [0, 3], [1, 4], [2, 5]]
    """
    ends = [side[:, [0, -1]] for board in boards for side in (board, board.T) if side.shape[1] > 1]
    return np.concatenate([np.zeros((0, 2), dtype=np.int64), *ends])
