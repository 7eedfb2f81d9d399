# SPDX-License-Identifier: Apache-2.0
"""Thin stand-ins for the former arrays in temporary files; use NumPy in new code."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

LARGE = 1 << 22
"""Unused; stays until study/outcome.py no longer imports it."""


def zeros(shape: tuple[int, ...], dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """Return `np.zeros(shape, dtype)`."""
    return np.zeros(shape, dtype)


def joined(*parts: NDArray[Any]) -> NDArray[Any]:
    """Return `np.concatenate(parts)`."""
    return np.concatenate(parts)


def release() -> None:
    """Do nothing; arrays are in memory."""


class Rows:
    """Rows of shape (n, ...) that arrive in parts.

    Parameters
    ----------
    like : (m, ...) array
        Array with the shape and type of the rows.

    Examples
    --------
    >>> rows = Rows(np.zeros((0, 2)))
    >>> rows.append(np.array([[1.0, 2.0]]))
    >>> rows.joined()
    array([[1., 2.]])
    """

    def __init__(self, like: NDArray[Any]) -> None:
        self._rows = np.empty((0, *like.shape[1:]), like.dtype)

    def append(self, values: NDArray[Any]) -> None:
        """Append a copy of some rows."""
        start = len(self._rows)
        self._rows.resize((start + len(values), *self._rows.shape[1:]), refcheck=False)
        self._rows[start:] = values

    def joined(self) -> NDArray[Any]:
        """Return all rows; none may be appended afterwards."""
        return self._rows
