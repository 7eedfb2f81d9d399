# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Tunings of a judge on several sets of recordings, real and simulated.

All sets meet the same tunings first, spread over the bounds of the parameters. The best of them is
then improved on each set alone by the search of `sim2real tune`.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence

import numpy as np

from sim2real_eval.benches.tuning.evaluations import TuningTask, load_losses
from sim2real_eval.benches.tuning.parameters import Tunable
from sim2real_eval.study.search.engine import EvaluationPool, SearchSpace, Values, sobol_points
from sim2real_eval.study.search.stepwise import Minimisation, minimise_loss
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.core.seeding import stream
from .sensor_errors import sensor_error_sizes

_CHUNK = 16  # tunings that a worker judges at once
_TOLERANCE = 0.05  # of the coordinates of the best tuning: decades
_MORE = 2  # evaluations that improve the best tuning, per tuning of the design


def spread_tunings(parameters: Sequence[Tunable], count: int, seed: int = 0) -> list[Values]:
    """Return the start and tunings spread over the bounds of the parameters (I. M. Sobol, 1967).

    A scale is covered evenly in its coordinate, a choice in its values.

    Examples
    --------
    >>> from sim2real_eval.benches.tuning.parameters import tunables
    >>> from sim2real_eval.judge.setup import JudgeSetup
    >>> parameters = tunables(JudgeSetup.load('clean'), ['noise'])
    >>> start, *tunings = spread_tunings(parameters, 64)
    >>> start, len(tunings), max(map(max, tunings)) <= 1e4
    ((1.0, 1.0, 1.0, 1.0, 1.0), 63, True)
    """
    rng = stream(seed, 'transfer', 'tunings', '')
    shares = sobol_points(len(parameters), count - 1, rng)
    tunings = [
        tuple(_value_at(*pair) for pair in zip(parameters, row, strict=True))
        for row in shares.tolist()
    ]
    return list(dict.fromkeys([SearchSpace(tuple(parameters)).start, *tunings]))


def _value_at(parameter: Tunable, share: float) -> float:
    if parameter.scale == 'choice':
        values = (parameter.start, *parameter.levels)
        return values[min(int(share * len(values)), len(values) - 1)]
    low, high = map(parameter.coordinate, parameter.bounds)
    return parameter.value(low + share * (high - low))


Losses = dict[str, FloatArray]
"""Every available loss of a tuning in all windows of a set."""


class TuningSets:
    """Losses of tunings on sets of recordings.

    Parameters
    ----------
    tasks : mapping of str to TuningTask
        Recordings by set; equal judges and parameters.
    design : sequence of Values
        Tunings that all sets meet.
    pool : EvaluationPool

    Attributes
    ----------
    design : tuple of Values
    losses : dict of str to (t, p) float
        Losses of the design in all windows of a set.
    failures : dict of str to str
        Sets that cannot be judged, and why.
    """

    def __init__(
        self, tasks: Mapping[str, TuningTask], design: Sequence[Values], pool: EvaluationPool
    ) -> None:
        self._pickled = {name: pickle.dumps(task) for name, task in tasks.items()}
        self._sources = {name: pickle.dumps(task.sources) for name, task in tasks.items()}
        self._parameters = next(iter(tasks.values())).parameters
        self.design, self._pool = tuple(design), pool
        chunks = [
            (name, self.design[first : first + _CHUNK])
            for name in tasks
            for first in range(0, len(design), _CHUNK)
        ]
        results = pool.map(
            _judge_chunk,
            [(self._pickled[name], tunings) for name, tunings in chunks],
            keys=[('design', *chunk) for chunk in chunks],
        )
        rows: dict[str, list[FloatArray]] = {}
        self.failures: dict[str, str] = {}
        for (name, _), result in zip(chunks, results, strict=True):
            if isinstance(result, str):
                self.failures[name] = result
            else:
                rows.setdefault(name, []).append(result)
        self.losses = {
            name: np.concatenate(parts)
            for name, parts in rows.items()
            if name not in self.failures
        }

    def minimise(self, requests: Sequence[tuple[str, IntArray | None]]) -> list[Values]:
        """Return the best tuning of each request: a set, and some of its windows or None for all.

        The search begins at the best tuning of the design in these windows.
        """
        free = tuple(i for i, p in enumerate(self._parameters) if p.scale != 'choice')
        most = _MORE * len(self.design)
        minimisations = []
        for name, windows in requests:
            losses = self.losses[name]
            selected = np.arange(losses.shape[1]) if windows is None else windows
            best = self.design[int(np.argmin(losses[:, selected].mean(axis=1)))]
            minimisations.append((name, Minimisation(selected, best, free, _TOLERANCE, most)))
        return self._pool.map(
            _minimise,
            [(self._pickled[name], request) for name, request in minimisations],
            keys=[('minimum', name, *request.key) for name, request in minimisations],
        )

    def judge(self, requests: Sequence[tuple[str, Values]]) -> list[Losses | str]:
        """Return all losses of tunings, each on a set, or why a judge fails with one."""
        return self._pool.map(
            _judge_tuning,
            [(self._pickled[name], values) for name, values in requests],
            keys=[('judged', *request) for request in requests],
        )

    def error_sizes(self, base_frame: str) -> dict[str, dict[str, float]]:
        """Return the sizes of the sensor errors of each set; see `sensor_error_sizes`."""
        names = list(self.losses)
        sizes = self._pool.map(
            sensor_error_sizes,
            [(self._sources[name], base_frame) for name in names],
            keys=[('error sizes', name) for name in names],
        )
        return dict(zip(names, sizes, strict=True))


def _judge_chunk(request: tuple[bytes, Sequence[Values]]) -> FloatArray | str:
    pickled, tunings = request
    try:
        losses = load_losses(pickled)
    except Sim2RealError as error:
        return str(error)
    return np.array([losses.scale * losses.losses(values) for values in tunings])


def _minimise(request: tuple[bytes, Minimisation]) -> Values:
    pickled, minimisation = request
    losses = load_losses(pickled)
    return minimise_loss(losses.task.parameters, losses.losses, minimisation)


def _judge_tuning(request: tuple[bytes, Values]) -> Losses | str:
    pickled, values = request
    try:
        return load_losses(pickled).all_losses(values)
    except (Sim2RealError, np.linalg.LinAlgError) as error:
        return str(error)
