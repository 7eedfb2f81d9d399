# SPDX-License-Identifier: Apache-2.0
"""Lines in images: pairs of features, and how the noise of their pixels moves the line."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from sim_sensors.core.measurements import FloatArray, IntArray
from .features import FeatureArray


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
