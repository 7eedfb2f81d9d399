# SPDX-License-Identifier: Apache-2.0
"""Blocks of recordings that are held out together, as they are not independent of each other."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from sim_sensors.core.measurements import IntArray

_GAP_NS = 60_000_000_000
"""Recordings of one drive follow each other within this time."""


def drives(begin: Sequence[int], end: Sequence[int]) -> list[list[int]]:
    """Return which recordings were made in one go, each drive in the order of time.

    One that begins within a minute after another has ended belongs to it; recordings that overlap
    do not: simulated ones all begin at the same time.

    Examples
    --------
    >>> minute = 60 * 10**9
    >>> drives([0, minute, 9 * minute], [minute, 2 * minute, 10 * minute])
    [[0, 1], [2]]
    """
    found: list[list[int]] = []
    for i in np.argsort(begin, kind='stable').tolist():
        before = [one for one in found if 0 <= begin[i] - end[one[-1]] <= _GAP_NS]
        if before:
            before[-1].append(i)
        else:
            found.append([i])
    return found


def deal_blocks(of_drive: Sequence[Sequence[int]], windows: int, count: int) -> list[IntArray]:
    """Return the windows of each block; recordings have so many `windows` each.

    Whole drives where there are as many as blocks; else parts of them, in the order of time.

    Examples
    --------
    >>> [block.tolist() for block in deal_blocks([[1, 0, 2]], 1, 3)]
    [[1], [0], [2]]
    >>> [block.tolist() for block in deal_blocks([[0], [1, 2], [3]], 1, 3)]
    [[0], [1, 2], [3]]
    """
    pieces = [
        [windows * recording + k for recording in drive for k in range(windows)]
        for drive in of_drive
    ]
    if len(pieces) >= count:
        dealt = [pieces[first::count] for first in range(count)]
        return [np.array(sorted(itertools.chain(*block))) for block in dealt]
    return list(np.array_split(np.array([*itertools.chain(*pieces)]), count))
