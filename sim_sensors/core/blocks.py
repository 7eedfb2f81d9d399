# SPDX-License-Identifier: Apache-2.0
"""Work on long arrays a block of rows at a time, so that memory holds little besides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import scratch

BLOCK = 1 << 13
"""Messages that are worked on at a time where all at once would take much memory."""
_SHORT = 32
"""Numbers of a row up to which `reduceat` adds rows faster than `sum`."""
RELEASED = 8
"""Blocks after which memory is given back: to do so takes as long as some blocks."""


def blocks(count: int, size: int | None = None) -> Iterator[slice]:
    """Yield where blocks of rows are; what was looked at in one takes no memory in the next.

    They have `size` rows, by default `BLOCK`. The rest is part of the last one: products of few
    rows are rounded otherwise.

    Examples
    --------
    >>> list(blocks(3))
    [slice(0, 3, None)]
    """
    size = size or BLOCK
    last = max(count // size - 1, 0)
    for number in range(last + 1):
        yield slice(number * size, count if number == last else (number + 1) * size)
        if number % RELEASED == RELEASED - 1 or number == last:
            scratch.release()


def rows_at_once(numbers: int) -> int:
    """Return how many rows of so many numbers make a block.

    Examples
    --------
    >>> rows_at_once(100)
    81
    """
    return max(BLOCK // numbers, 1)


def by_blocks(
    function: Callable[..., NDArray[Any]], *values: NDArray[Any], size: int | None = None
) -> NDArray[Any]:
    """Return `function(*values)` of rows that do not depend on each other, a block at a time.

    A block has `size` rows, by default `BLOCK`.

    Examples
    --------
    >>> by_blocks(lambda rows: rows.sum(axis=1), np.ones((3, 2)))
    array([2., 2., 2.])
    """
    count = len(values[0])
    if all(map(is_steady, values)):
        first = function(*(each[:1] for each in values))
        return np.broadcast_to(first, (count, *first.shape[1:]))
    if count <= (size or BLOCK):
        return np.asarray(function(*values))
    rows: scratch.Rows | None = None
    for part in blocks(count, size):
        found = function(*(each[part] for each in values))
        rows = rows or scratch.Rows(found)
        rows.append(found)
    assert rows is not None
    return rows.joined()


def sum_by_blocks(function: Callable[..., NDArray[Any]], *values: NDArray[Any]) -> Any:
    """Return the sum over rows of `function(*values)`, a block at a time.

    Examples
    --------
    >>> sum_by_blocks(np.square, np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([10., 20.])
    """
    rows = (function(*(each[part] for each in values)) for part in blocks(len(values[0])))
    return sum(map(sum_of_rows, rows))


def sum_of_rows(rows: NDArray[Any]) -> Any:
    """Return the sum of rows (n, ...), where they are short in a tenth of the time of numpy's sum.

    Examples
    --------
    >>> sum_of_rows(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([4., 6.])
    """
    if rows.ndim == 1 or not len(rows) or rows[0].size > _SHORT:
        return rows.sum(axis=0)
    return np.add.reduceat(rows, [0], axis=0)[0]


def whole_rows(good: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return for rows (n, ...) whether all of each is true, (n,); fast where all is, as usual.

    Examples
    --------
    >>> whole_rows(np.array([[True, True], [True, False]]))
    array([ True, False])
    """
    if good.all():
        return np.ones(len(good), np.bool_)
    return np.asarray(good.all(axis=tuple(range(1, good.ndim))))


def is_steady(values: NDArray[Any]) -> bool:
    """Return whether an array (n, ...) is one row that is seen n times."""
    return values.ndim > 0 and len(values) > 1 and values.strides[0] == 0


def rows_of(values: NDArray[Any], selection: Any) -> NDArray[Any]:
    """Return the rows of a slice, a boolean mask or an index array, a block at a time."""
    if isinstance(selection, slice):
        return np.asarray(values[selection])
    if is_steady(values):
        count = int(selection.sum()) if selection.dtype == np.bool_ else len(selection)
        return np.broadcast_to(values[0], (count, *values.shape[1:]))
    if selection.dtype == np.bool_:
        return by_blocks(lambda rows, chosen: rows[chosen], values, selection)
    return by_blocks(lambda chosen: values[chosen], selection)


def column_of(values: NDArray[Any], number: int) -> NDArray[Any]:
    """Return one column of rows (n, k), (n,), which of many rows is no view.

    Examples
    --------
    >>> column_of(np.array([[1, 2], [3, 4]]), 1)
    array([2, 4])
    """
    return by_blocks(lambda rows: rows[:, number], values)


def steps_of(values: NDArray[Any]) -> NDArray[Any]:
    """Return the differences of rows, (n, ...), from one to the next, a block at a time.

    Examples
    --------
    >>> steps_of(np.array([1, 2, 4]))
    array([1, 2])
    """
    return by_blocks(np.subtract, values[1:], values[:-1])


def lengths_of(vectors: NDArray[Any]) -> NDArray[np.float64]:
    """Return the lengths of vectors (n, k), (n,), a block at a time.

    Examples
    --------
    >>> lengths_of(np.array([[3.0, 4.0], [0.0, 1.0]]))
    array([5., 1.])
    """
    return by_blocks(lambda rows: np.sqrt(sum(column * column for column in rows.T)), vectors)


def seconds(stamp_ns: NDArray[np.int64], origin_ns: int) -> NDArray[np.float64]:
    """Return seconds since `origin_ns`, (n,), a block at a time.

    The difference is taken in integers, so that stamps of the present epoch keep their
    nanoseconds.

    Examples
    --------
    >>> seconds(np.array([1_700_000_000_000_000_001]), 1_700_000_000_000_000_000)
    array([1.e-09])
    """
    origin = np.int64(origin_ns)
    return by_blocks(lambda stamps: (stamps - origin) * 1e-9, np.asarray(stamp_ns, np.int64))


def span_ends(times: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return where to cut several arrays of times, which never decrease, into some blocks each."""
    cuts = (one[BLOCK::BLOCK] for one in times)
    return np.unique(np.concatenate([np.zeros(0, np.int64), *cuts]))


def time_spans(times: Sequence[NDArray[Any]], ends: ArrayLike | None = None) -> Iterator[Any]:
    """Yield a slice of each of several arrays of times for one span of time after the other.

    Times never decrease. A span goes up to one of the `ends`, (k,), that included; by default so
    that some blocks are in it. The last one is what is left.

    Examples
    --------
    >>> list(time_spans([np.array([1, 2, 2, 3]), np.array([2])], np.array([2])))
    [[slice(0, 3, None), slice(0, 1, None)], [slice(3, 4, None), slice(1, 1, None)]]
    """
    edges = span_ends(times) if ends is None else np.asarray(ends)
    cuts = [[0, *np.searchsorted(one, edges, side='right').tolist(), len(one)] for one in times]
    for k in range(len(edges) + 1):
        yield [slice(cut[k], cut[k + 1]) for cut in cuts]
        if k % RELEASED == RELEASED - 1 or k == len(edges):
            scratch.release()
