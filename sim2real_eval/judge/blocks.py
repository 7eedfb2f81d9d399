# SPDX-License-Identifier: Apache-2.0
"""Message parts of one topic, and how the topics merge into one table in order of arrival."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from sim2real_eval.judge.replay import Messages
from sim_sensors.measurements import FloatArray, IntArray, MessageArray

__all__ = ['Block', 'covariance_rows', 'merge', 'padded', 'plain']


@dataclasses.dataclass
class Block:
    """Parts of one topic, message by message; fields as in `Messages`."""

    arrival_ns: IntArray
    stamp_ns: IntArray
    part: IntArray
    value: FloatArray
    has_attitude: IntArray
    covariance: IntArray


def plain(array: MessageArray, part: int, value: FloatArray) -> Block:
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
    return Block(
        array.arrival_ns,
        array.stamp_ns,
        np.full(n, part, dtype=np.int64),
        np.hstack([value, np.zeros((n, 7 - value.shape[1]))]),
        np.zeros(n, dtype=np.int64),
        np.zeros(n, dtype=np.int64),
    )


def covariance_rows(matrices: FloatArray, covariances: list[FloatArray]) -> IntArray:
    """Store covariances, (n, 6, 6), each run of equal ones once; return their row numbers."""
    n = len(matrices)
    if n == 0:
        return np.zeros(0, dtype=np.int64)
    flat = matrices.reshape(n, 36)
    new = np.ones(n, dtype=bool)
    new[1:] = (flat[1:] != flat[:-1]).any(axis=1)
    base = sum(len(block) for block in covariances)
    covariances.append(matrices[new])
    return base + np.cumsum(new) - 1


def padded(covariance: FloatArray, corner: int) -> FloatArray:
    """Put (n, 3, 3) covariances into the corner of (n, 6, 6) ones."""
    padded = np.zeros((len(covariance), 6, 6))
    padded[:, corner : corner + 3, corner : corner + 3] = covariance
    return padded


def merge(blocks: Sequence[Block], covariances: Sequence[FloatArray]) -> Messages:
    """Order the topics' parts by arrival; what arrives together keeps the topics' order."""
    columns = [
        np.concatenate([getattr(block, field.name) for block in blocks])
        for field in dataclasses.fields(Block)
    ]
    order = np.argsort(columns[0], kind='stable')
    arrival, stamp, part, value, attitude, covariance = (column[order] for column in columns)
    return Messages(
        arrival, stamp, part, np.ascontiguousarray(value), attitude, covariance,
        np.concatenate(covariances),
    )  # fmt: skip
