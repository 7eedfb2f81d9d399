# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Runs that a page shows if a study has thousands; runs.csv and study.json have all of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.study.run import StudyRun
from sim_sensors.core.measurements import FloatArray

MAX_DOTS = 300
"""Largest number of runs of a model and group in a plot."""
MAX_ROWS = 1000
"""Largest number of rows of a table."""
MAX_COMMAND = 20_000
"""Largest number of characters of the command."""


def evenly_spaced(count: int, most: int = MAX_DOTS) -> NDArray[np.intp]:
    """Return the places of at most `most` of `count` items, the first and the last among them.

    Examples
    --------
    >>> evenly_spaced(4).tolist(), evenly_spaced(9, 3).tolist()
    ([0, 1, 2, 3], [0, 4, 8])
    """
    places = np.linspace(0, max(count - 1, 0), min(count, most))
    return np.asarray(places.round(), dtype=np.intp)


def spread_by_rank(values: FloatArray) -> list[int]:
    """Return the places of values at evenly spaced ranks: their distribution with both ends."""
    order = np.argsort(values, kind='stable')
    return sorted(order[evenly_spaced(len(values))].tolist())


def spread_runs(runs: Sequence[StudyRun]) -> list[StudyRun]:
    """Return evenly spaced runs of each group and model, in their order."""
    places: dict[tuple[str, str], list[int]] = {}
    for place, run in enumerate(runs):
        places.setdefault((run.group, run.key.model), []).append(place)
    chosen = [
        candidates[k] for candidates in places.values() for k in evenly_spaced(len(candidates))
    ]
    return [runs[place] for place in sorted(chosen)]


def worst_runs(runs: Sequence[StudyRun]) -> list[StudyRun]:
    """Return the runs of each judge and model with the largest RMSE, in their order.

    All runs are returned if they are at most `MAX_ROWS`.
    """
    if len(runs) <= MAX_ROWS:
        return list(runs)
    places: dict[tuple[str, str], list[int]] = {}
    for place, run in enumerate(runs):
        places.setdefault((run.key.judge, run.key.model), []).append(place)
    most = max(MAX_ROWS // len(places), 1)
    chosen = [
        place
        for candidates in places.values()
        for place in sorted(candidates, key=lambda k: -runs[k].values['rmse'])[:most]
    ]
    return [runs[place] for place in sorted(chosen)]


def first_rows(count: int) -> str:
    """Return an addition to the title of a table of which only the first rows are shown."""
    if count <= MAX_ROWS:
        return ''
    return f' (the first {MAX_ROWS} of {count}; study.json has all)'


def shorten_command(command: str) -> str:
    """Return a command whose middle is left out if it names thousands of recordings."""
    if len(command) <= MAX_COMMAND:
        return command
    half = MAX_COMMAND // 2
    return f'{command[:half]}\n[... the whole command is in study.json ...]\n{command[-half:]}'
