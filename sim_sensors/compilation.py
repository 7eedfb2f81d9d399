# SPDX-License-Identifier: Apache-2.0
"""The one way in which loops are compiled, so that every loop has the same numerics."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

__all__ = ['compiled']

F = TypeVar('F', bound=Callable[..., object])


def compiled(function: F) -> F:
    """Compile a function with numba and cache the machine code on disk.

    No fast-math: results are those of the same operations in IEEE double precision, in the order
    written, so that stepping and array runs agree bit for bit. Division by zero follows IEEE
    instead of raising. The GIL is released, so recordings can be judged in threads.
    """
    return cast(F, numba.njit(cache=True, nogil=True, error_model='numpy')(function))
