# SPDX-License-Identifier: Apache-2.0
"""Large arrays in temporary files: memory holds what is worked on, whatever the length.

Numbers of a long recording are made and read in order, a block at a time. From `LARGE` bytes on an
array lies in a file without a name in the folder for temporary files (`TMPDIR`), which the system
removes with the process, however that ends. `release` gives back the memory of what was read or
written. Where the folder has no room, the array is in memory as any other.
"""

from __future__ import annotations

import math
import mmap
import os
import tempfile
import weakref
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

LARGE = 1 << 22
"""Bytes from which on an array lies in a file."""

_mapped: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()


def release() -> None:
    """Give back the memory of all arrays that lie in files; they keep their numbers."""
    if hasattr(mmap, 'MADV_DONTNEED'):
        for one in list(_mapped):
            one.madvise(mmap.MADV_DONTNEED)


def joined(*parts: NDArray[Any]) -> NDArray[Any]:
    """Return arrays (n, ...) one behind the other, in a file where they are large.

    Examples
    --------
    >>> joined(np.zeros(1), np.ones(2))
    array([0., 1., 1.])
    """
    rows = Rows(parts[0])
    for part in parts:
        rows.append(part)
    return rows.joined()


def zeros(shape: tuple[int, ...], dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """Return zeros, in a file where they are large.

    Examples
    --------
    >>> zeros((2, 3))
    array([[0., 0., 0.],
           [0., 0., 0.]])
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size < LARGE:
        return np.zeros(shape, dtype)
    try:
        with tempfile.TemporaryFile() as file:
            # A hole that cannot be filled later ends the process.
            if hasattr(os, 'posix_fallocate'):
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                file.truncate(size)
            return _array(file, shape, dtype)
    except OSError:
        return np.zeros(shape, dtype)


def _array(file: IO[bytes], shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    mapped = mmap.mmap(file.fileno(), math.prod(shape) * np.dtype(dtype).itemsize)
    _mapped.add(mapped)
    return np.frombuffer(mapped, dtype).reshape(shape)


class Rows:
    """Rows (n, ...) that come in parts, in a file once they are large.

    Parameters
    ----------
    like : (m, ...) array
        Of the shape and type of the rows.

    Examples
    --------
    >>> rows = Rows(np.zeros((0, 2)))
    >>> for part in ([[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]):
    ...     rows.append(np.array(part))
    >>> rows.joined()
    array([[1., 2.],
           [3., 4.],
           [5., 6.]])
    """

    def __init__(self, like: NDArray[Any]) -> None:
        self._memory = np.empty((0, *like.shape[1:]), like.dtype)
        self._row = math.prod(like.shape[1:]) * like.itemsize
        self._file: IO[bytes] | None = None
        self._largest: float = LARGE
        self._count = 0

    def append(self, values: NDArray[Any]) -> None:
        """Append rows."""
        total = self._count + len(values)
        if self._file is None and total * self._row >= self._largest:
            self._to_file()
        if self._file is not None:
            try:
                self._file.write(np.ascontiguousarray(values, self._memory.dtype).data)
                self._file.flush()
            except OSError:
                self._to_memory()
        if self._file is None:
            # A reallocation moves pages and not bytes where the system can.
            self._memory.resize((total, *self._memory.shape[1:]), refcheck=False)
            self._memory[self._count :] = values
        self._count = total

    def joined(self) -> NDArray[Any]:
        """Return all rows; none may be appended afterwards."""
        if self._file is None:
            return self._memory
        shape = self._count, *self._memory.shape[1:]
        with self._file:
            return _array(self._file, shape, self._memory.dtype)

    def _to_file(self) -> None:
        self._largest = math.inf
        try:
            file = tempfile.TemporaryFile()  # noqa: SIM115  # it is closed when rows are joined
            file.write(self._memory.data)
            file.flush()
        except OSError:
            return
        self._file, self._memory = file, self._memory[:0].copy()

    def _to_memory(self) -> None:
        self._memory = self.joined().copy() if self._count else self._memory
        self._file = None
