# SPDX-License-Identifier: Apache-2.0
"""Message parts of one topic, and how the topics merge into one table in order of arrival."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from sim2real_eval.judge.replay import Messages
from sim_sensors.measurements import FloatArray, IntArray, MessageArray

__all__ = ['TopicParts', 'covariance_rows', 'merge', 'plain']


@dataclasses.dataclass
class TopicParts:
    """Parts of one topic, message by message; fields as in `Messages`."""

    arrival_ns: IntArray
    stamp_ns: IntArray
    part: IntArray
    value: FloatArray
    has_attitude: IntArray
    covariance: IntArray


def plain(array: MessageArray, part: int, value: FloatArray) -> TopicParts:
    """Return the block of messages that all belong to one part and need no covariance.

    Parameters
    ----------
    array : MessageArray
        For its stamps.
    part : int
        Number of the part, or FIX, HEADING, COMMAND.
    value : (n, <= 7) float
    """
    n = len(array)
    return TopicParts(
        array.arrival_ns,
        array.stamp_ns,
        np.full(n, part, dtype=np.int64),
        np.hstack([value, np.zeros((n, 7 - value.shape[1]))]),
        np.zeros(n, dtype=np.int64),
        np.zeros(n, dtype=np.int64),
    )


def covariance_rows(matrices: FloatArray, corner: int, covariances: list[FloatArray]) -> IntArray:
    """Store covariances, each run of equal ones once; return their row numbers.

    Parameters
    ----------
    matrices : (n, 6, 6) or (n, 3, 3) float
    corner : int
        First row and column of (6, 6) that (3, 3) covariances take; the others are zero.
    covariances : list of (k, 6, 6) float
        Extended.
    """
    n, size = len(matrices), matrices.shape[1]
    if n == 0:
        return np.zeros(0, dtype=np.int64)
    flat = matrices.reshape(n, size * size)
    new = np.zeros(n, dtype=bool)
    new[0] = True
    new[np.flatnonzero(flat[1:] != flat[:-1]) // (size * size) + 1] = True
    kept = matrices[new]
    if size < 6:
        kept = np.zeros((len(kept), 6, 6))
        kept[:, corner : corner + size, corner : corner + size] = matrices[new]
    base = sum(len(block) for block in covariances)
    covariances.append(kept)
    return base + np.cumsum(new) - 1


def merge(blocks: Sequence[TopicParts], covariances: Sequence[FloatArray]) -> Messages:
    """Order the topics' parts by arrival; what arrives together keeps the topics' order."""
    columns = [
        np.concatenate([getattr(block, field.name) for block in blocks])
        for field in dataclasses.fields(TopicParts)
    ]
    order = np.argsort(columns[0], kind='stable')
    arrival, stamp, part, value, attitude, covariance = (column[order] for column in columns)
    return Messages(
        arrival, stamp, part, np.ascontiguousarray(value), attitude, covariance,
        np.concatenate(covariances),
    )  # fmt: skip
