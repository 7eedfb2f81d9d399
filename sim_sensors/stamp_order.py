# SPDX-License-Identifier: Apache-2.0
"""Single stamps that are ahead of their time, and would cost all that comes after them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ['ahead_of_time']

_COST = 3


def ahead_of_time(stamps: ArrayLike) -> NDArray[np.bool_]:
    """Return which stamps `(n,)` stand alone ahead of those after them, `(n,)`.

    Who leaves out what is older than anything before it would lose to such a one at least the
    three next, in a far future all the rest. It stands alone when the stamps before and after it
    are in order without it. So a clock that starts again is none, nor are two that follow each
    other, nor one that came too early by the time of two messages or less: then it is those that
    are late which are left out, as ekf_node does.
    """
    t = np.asarray(stamps)
    ahead = np.zeros(len(t), dtype=np.bool_)
    last = len(t) - _COST
    if last < 1:
        return ahead
    costs = np.all([t[:last] > t[k : last + k] for k in range(1, _COST + 1)], axis=0)
    alone = np.concatenate([[True], t[: last - 1] <= t[2 : last + 1]])
    ahead[:last] = costs & alone
    return ahead
