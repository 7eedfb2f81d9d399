# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Chunked evaluation of row-wise functions, for recordings of hours.

Two hours at 1 kHz are 7.2 million rows: a temporary (n, 3, 3) array of them takes 520 MB. A
function that makes such temporaries is evaluated on a few thousand rows at a time.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK = 1 << 13
"""Rows that are evaluated at a time."""


def blocks(count: int, size: int | None = None) -> Iterator[slice]:
    """Yield slices of `size` rows (by default `BLOCK`) that cover `count` rows.

    The last slice also takes the remainder, because products of few rows round differently.

    Examples
    --------
    >>> list(blocks(3))
    [slice(0, 3, None)]
    """
    size = size or BLOCK
    last = max(count // size - 1, 0)
    for number in range(last + 1):
        yield slice(number * size, count if number == last else (number + 1) * size)


_MAX_ROWS = 4096  # rows of a matrix product, whose operands then stay in the processor's cache
_AT_ONCE = 1 << 20  # numbers, 8 MB; several arrays of them are in memory


def row_blocks(rows: int, columns: int) -> Iterator[slice]:
    """Yield slices of rows of a wide matrix that is computed a part at a time.

    Each part has a multiple of 8 rows, except the last, and about a million numbers at most.

    Examples
    --------
    >>> [rows.stop for rows in row_blocks(10_000, 200)], next(row_blocks(10_000, 20_000)).stop
    ([4096, 8192, 10000], 48)
    """
    step = min(_MAX_ROWS, max(_AT_ONCE // max(columns, 1) // 8 * 8, 8))
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def by_blocks(
    function: Callable[..., NDArray[Any]], *arrays: NDArray[Any], size: int | None = None
) -> NDArray[Any]:
    """Return `function(*arrays)` of a row-wise function, evaluated on `size` rows at a time.

    Arrays that repeat one row (see `is_steady`) are evaluated once.

    Examples
    --------
    >>> by_blocks(lambda rows: rows.sum(axis=1), np.ones((3, 2)))
    array([2., 2., 2.])
    """
    count = len(arrays[0])
    if all(map(is_steady, arrays)):
        first = function(*(array[:1] for array in arrays))
        return np.broadcast_to(first, (count, *first.shape[1:]))
    if count <= (size or BLOCK):
        return np.asarray(function(*arrays))
    filled, stop = np.empty(0), 0
    for part in blocks(count, size):
        rows = function(*(array[part] for array in arrays))
        if not part.start:
            filled = np.empty((count, *rows.shape[1:]), rows.dtype)
        # A function that selects rows returns fewer than it received.
        filled[stop : stop + len(rows)] = rows
        stop += len(rows)
    return filled if stop == count else filled[:stop].copy()


def is_steady(values: NDArray[Any]) -> bool:
    """Return True for an array (n, ...) that repeats one row by a stride of zero."""
    return values.ndim > 0 and len(values) > 1 and values.strides[0] == 0


def seconds(stamp_ns: NDArray[np.int64], origin_ns: int) -> NDArray[np.float64]:
    """Return seconds since `origin_ns`, shape (n,).

    The difference is taken in integers, so that stamps of the present epoch keep their
    nanoseconds.

    Examples
    --------
    >>> seconds(np.array([1_700_000_000_000_000_001]), 1_700_000_000_000_000_000)
    array([1.e-09])
    """
    return np.asarray((np.asarray(stamp_ns, np.int64) - np.int64(origin_ns)) * 1e-9)


def sum_by_blocks(function: Callable[..., NDArray[Any]], *arrays: Any) -> Any:
    """Return the sum over rows of `function(*arrays)`."""
    parts = (function(*(array[part] for array in arrays)) for part in blocks(len(arrays[0])))
    return sum(map(_sum_rows, parts))


def _sum_rows(rows: NDArray[Any]) -> Any:
    """Return the sum over the first axis; `reduceat` is ten times faster than `sum` here."""
    if rows.ndim == 1 or not len(rows) or rows[0].size > 32:
        return rows.sum(axis=0)
    return np.add.reduceat(rows, [0], axis=0)[0]


def block_means(
    function: Callable[..., NDArray[np.float64]],
    time: NDArray[np.float64],
    length: float,
    *values: Any,
) -> NDArray[np.float64]:
    """Return the means of `function(*values)`, (n, k), over blocks of time of a length, s.

    The function must work row by row. It is evaluated on some thousand rows at a time, since all
    of them may be too many for memory.
    """
    number = np.empty(len(time), np.intp)
    for part in blocks(len(time)):
        number[part] = np.floor((time[part] - time[0]) / length)
    starts = np.append(0, np.flatnonzero(number[1:] != number[:-1]) + 1)
    edges = np.append(starts, len(time))
    cuts = np.searchsorted(starts, np.arange(BLOCK, len(time), BLOCK), side='right')
    sums = []
    for low, high in itertools.pairwise([0, *cuts.tolist(), len(starts)]):
        if low < high:
            first, end = edges[low], edges[high]
            rows = function(*(array[first:end] for array in values))
            sums.append(np.add.reduceat(rows, starts[low:high] - first, axis=0))
    means: NDArray[np.float64] = np.concatenate(sums) / np.diff(edges)[:, None]
    return means
