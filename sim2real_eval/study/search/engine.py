# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Parameter space, stored evaluations, worker pool and validation of every search.

A command describes its parameters as a `SearchSpace` and evaluates candidates with an
`EvaluationPool`. A strategy chooses the candidates: an interpolated response surface
(`fitting.surface`), stepwise selection (`stepwise`) or a search for an error size (`size`).
Folds, held-out gains and resamples are also in this module.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from scipy.stats import norm, qmc

from sim2real_eval.common.findings import Finding
from sim2real_eval.common.workers import Workers
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.input_files import read_input_text
from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.core.seeding import stream

Values = tuple[float, ...]
"""Values of all parameters of a search, in the units of the parameters."""

Advance = Callable[[], None]
Progress = Callable[[int], 'Advance | None']
"""Called with the number of tasks to come; returns the function to call after each task."""


class SearchParameter(Protocol):
    """A number that a search changes, and its transform to a search coordinate."""

    @property
    def name(self) -> str:
        """Name in messages and files."""

    @property
    def start(self) -> float:
        """Value before the search."""

    def value(self, coordinate: float, /) -> float:
        """Return the value of a coordinate, inside the bounds."""

    def coordinate(self, value: float, /) -> float:
        """Return the coordinate of a value."""


P = TypeVar('P', bound=SearchParameter, covariant=True)


@dataclasses.dataclass(frozen=True)
class SearchSpace(Generic[P]):
    """All parameters of a search; rows of arrays are candidates."""

    parameters: tuple[P, ...]

    def __len__(self) -> int:
        return len(self.parameters)

    @property
    def start(self) -> Values:
        """Values before the search."""
        return tuple(parameter.start for parameter in self.parameters)

    def values(self, coordinates: FloatArray) -> FloatArray:
        """Return the values of candidates `(c, d)` from their coordinates `(c, d)`."""
        return self._convert([parameter.value for parameter in self.parameters], coordinates)

    def coordinates(self, values: FloatArray) -> FloatArray:
        """Return the coordinates of candidates `(c, d)` from their values `(c, d)`."""
        return self._convert([parameter.coordinate for parameter in self.parameters], values)

    def _convert(
        self, transforms: Sequence[Callable[[float], float]], candidates: FloatArray
    ) -> FloatArray:
        rows = [
            [transform(number) for transform, number in zip(transforms, row, strict=True)]
            for row in candidates
        ]
        return np.array(rows, dtype=np.float64).reshape(-1, len(self))


def sobol_points(size: int, count: int, rng: np.random.Generator) -> FloatArray:
    """Return points spread evenly over the unit cube, `(count, size)` (I. M. Sobol, 1967)."""
    power = math.ceil(math.log2(max(count, 2)))
    return np.asarray(qmc.Sobol(size, rng=rng).random_base2(power)[:count])


_FORMAT = 'sim2real evaluations 1'


class EvaluationStore:
    """Results of finished evaluations in a file, from which an interrupted search continues.

    As a context manager, it removes the file if the context ends without an error. The file has a
    header with the digest of the search, then one line of JSON per evaluation. Evaluations of a
    search with another digest are discarded. An incomplete line is ignored.

    Parameters
    ----------
    path : str or Path
    search : mapping
        Everything that the evaluations depend on: recordings, judge, options, seed.

    Raises
    ------
    Sim2RealError
        If the file exists and is not a file of evaluations.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     EvaluationStore(f'{folder}/store', {'seed': 0}).append('a', np.array([1.0]))
    ...     again, other = (EvaluationStore(f'{folder}/store', {'seed': k}) for k in (0, 1))
    ...     print(again.results, other.results)
    {'a': array([1.])} {}
    """

    def __init__(self, path: str | Path, search: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self.results: dict[str, Any] = {}
        self._header = {'format': _FORMAT, 'search': _digest(json.dumps(search, default=repr))}
        lines = []
        if self.path.is_file():
            lines = [_parse(line) for line in read_input_text(self.path).splitlines()]
            if not lines or not isinstance(lines[0], dict) or lines[0].get('format') != _FORMAT:
                raise Sim2RealError(
                    f'{self.path} exists and is not a file of evaluations; remove it or '
                    'choose another --out'
                )
        self._is_ready = lines[:1] == [self._header]
        if self._is_ready:
            records = [line for line in lines[1:] if isinstance(line, list)]
            self.results = {key: _decode(result) for key, result in records}

    @property
    def search(self) -> str:
        """Digest of the search."""
        return self._header['search']

    @classmethod
    def for_folder(cls, folder: str | Path, search: Mapping[str, Any]) -> EvaluationStore:
        """Return the store of a search that will write its result to `folder`."""
        path = Path(folder)
        return cls(path.with_name(f'{path.name}.evaluations'), search)

    def __enter__(self) -> EvaluationStore:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # After an error or an interrupt, the next run of the same search reads the file.
        if kind is None:
            self.path.unlink(missing_ok=True)

    def prepare(self) -> None:
        """Write the header before the first evaluation, discarding another search."""
        if not self._is_ready:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(json.dumps(self._header) + '\n', 'utf-8')
            self._is_ready = True

    def append(self, key: str, result: Any) -> None:
        """Write the result of one evaluation."""
        self.prepare()
        _append(self.path, key, result)


def _append(path: Path, key: str, result: Any) -> None:
    line = f'\n{json.dumps([key, _encode(result)])}\n'.encode()
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        # One write per line: worker processes append to the same file.
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


def _parse(line: str) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return None


def _encode(result: Any) -> Any:
    """Return a result as JSON; arrays, tuples, mappings and findings are tagged."""
    if isinstance(result, np.ndarray):
        return {'array': result.tolist(), 'shape': result.shape}
    if isinstance(result, Finding):
        return {'finding': result.to_record()}
    if isinstance(result, tuple):
        return {'tuple': [_encode(part) for part in result]}
    if isinstance(result, dict):
        return {'mapping': {key: _encode(part) for key, part in result.items()}}
    return [_encode(part) for part in result] if isinstance(result, list) else result


def _decode(result: Any) -> Any:
    if isinstance(result, list):
        return [_decode(part) for part in result]
    if not isinstance(result, dict):
        return result
    if 'array' in result:
        return np.array(result['array'], dtype=np.float64).reshape(result['shape'])
    if 'finding' in result:
        return Finding.from_record(result['finding'])
    if 'tuple' in result:
        return tuple(map(_decode, result['tuple']))
    return {key: _decode(part) for key, part in result['mapping'].items()}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


Request = TypeVar('Request')
Result = TypeVar('Result')


class EvaluationPool:
    """Worker processes that evaluate candidates; a context manager.

    Parameters
    ----------
    jobs : int
        Processes. Results do not depend on it.
    progress : Progress, optional
    store : EvaluationStore, optional
        Results that it holds are not evaluated again; new ones are added to it.
    """

    def __init__(
        self, jobs: int = 1, progress: Progress | None = None, store: EvaluationStore | None = None
    ) -> None:
        self.jobs = jobs
        self._workers = Workers(jobs)
        self._progress = progress
        self._store = store

    def __enter__(self) -> EvaluationPool:
        self._workers.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._workers.__exit__(*error)

    def begin(self, tasks: int) -> Advance:
        """Report the number of tasks to come; return the function to call after each task."""
        advance = None if self._progress is None else self._progress(tasks)
        return advance or (lambda: None)

    def map(
        self,
        function: Callable[[Request], Result],
        requests: Sequence[Request],
        *,
        keys: Iterable[object] | None = None,
        advance: Advance | None = None,
    ) -> list[Result]:
        """Return `function(request)` for each request, in the order of the requests.

        Results are stored if `keys` are given, whose `repr` must differ between requests.
        `advance` is called after each request; by default each request counts as a task.
        """
        advance = advance or self.begin(len(requests))
        if self._store is None or keys is None:
            return self._workers.map(function, requests, progress=advance)
        digests = [_digest(repr(key)) for key in keys]
        missing = {
            digest: request
            for digest, request in zip(digests, requests, strict=True)
            if digest not in self._store.results
        }
        for _ in range(len(requests) - len(missing)):
            advance()
        self._store.prepare()
        evaluate = partial(_evaluate_and_store, function, self._store.path)
        results = self._workers.map(evaluate, list(missing.items()), progress=advance)
        self._store.results.update(zip(missing, results, strict=True))
        return [self._store.results[digest] for digest in digests]


def _evaluate_and_store(
    function: Callable[[Request], Result], path: Path, task: tuple[str, Request]
) -> Result:
    key, request = task
    result = function(request)
    _append(path, key, result)
    return result


def independent_units(blocks: Sequence[str]) -> list[IntArray]:
    """Return the recordings of each block; one without a block is a unit of its own.

    If all recordings are in a single block, each of them is a unit, as one unit cannot be divided.

    Examples
    --------
    >>> [unit.tolist() for unit in independent_units(['a', '', 'a', ''])]
    [[0, 2], [1], [3]]
    """
    members: dict[str | int, list[int]] = {}
    for i, block in enumerate(blocks):
        members.setdefault(block or i, []).append(i)
    if len(members) == 1:
        return [np.array([i], dtype=np.int64) for i in range(len(blocks))]
    return [np.array(rows, dtype=np.int64) for rows in members.values()]


def deal_folds(
    scenarios: Sequence[str], folds: int, seed: int, units: Sequence[IntArray] = ()
) -> list[IntArray]:
    """Return the indices of the recordings that each fold holds out.

    `scenarios` holds the scenario of each recording, and `units` the recordings that are held out
    together, such as those of a drive; by default each recording is a unit. Units are shuffled
    within each scenario and dealt to the folds in turn. The numbers of units per fold differ by at
    most one, in total and per scenario. There are at most as many folds as units, and none for
    fewer than two folds or units.
    """
    units = units or [np.array([i], dtype=np.int64) for i in range(len(scenarios))]
    folds = min(folds, len(units))
    if folds < 2:
        return []
    scenario_of_unit = [scenarios[unit[0]] for unit in units]
    dealt: list[IntArray] = []
    for scenario in dict.fromkeys(scenario_of_unit):
        members = [i for i, name in enumerate(scenario_of_unit) if name == scenario]
        order = stream(seed, 'fit', 'folds', scenario).permutation(len(members))
        dealt += [units[members[i]] for i in order]
    return [np.sort(np.concatenate(dealt[fold::folds])) for fold in range(folds)]


def deal_blocks(drives: Sequence[Sequence[int]], windows: int, count: int) -> list[IntArray]:
    """Return the indices of the windows in each of `count` blocks to hold out.

    Every recording has `windows` windows. Blocks consist of whole drives if there are at least
    `count` drives, otherwise of consecutive windows.

    Examples
    --------
    >>> [block.tolist() for block in deal_blocks([[1, 0, 2]], 1, 3)]
    [[1], [0], [2]]
    >>> [block.tolist() for block in deal_blocks([[0], [1, 2], [3]], 1, 3)]
    [[0], [1, 2], [3]]
    """
    drive_windows = [
        [windows * recording + k for recording in drive for k in range(windows)]
        for drive in drives
    ]
    if len(drive_windows) >= count:
        dealt = [drive_windows[first::count] for first in range(count)]
        return [np.array(sorted(itertools.chain(*block))) for block in dealt]
    return list(np.array_split(np.array([*itertools.chain(*drive_windows)]), count))


_EXACT_SUBSETS = 12
_EXACT_SIGNS = 13
_DRAWS = 10_000


class Gain(NamedTuple):
    """Reduction of a loss on blocks that were held out.

    `low` and `high` are the ends of its interval, infinite with too few blocks; `p_value` is
    one-sided.
    """

    mean: float
    low: float
    high: float
    p_value: float


def estimate_gain(
    gains: FloatArray, level: float = 0.95, weights: FloatArray | None = None
) -> Gain:
    """Return the mean gain of blocks with its interval and p-value.

    The mean is the sum of the gains divided by the sum of `weights` `(k,)`. If the weights are the
    initial errors, the mean is the relative reduction of the error.

    Examples
    --------
    >>> estimate_gain(np.array([0.2, 0.3, 0.1, 0.2, 5.0, 0.4])).p_value
    0.015625
    """
    weights = np.ones(len(gains)) if weights is None else weights
    means = np.sort(_subset_means(gains, weights))
    rank = math.floor(0.5 * (1.0 - level) * (len(means) + 1))
    low, high = (means[rank - 1], means[-rank]) if rank else (-np.inf, np.inf)
    p_value = float(1 + np.count_nonzero(means <= 0.0)) / (len(means) + 1)
    return Gain(float(gains.sum() / weights.sum()), float(low), float(high), p_value)


def standardised_gain(gains: FloatArray) -> float:
    """Return the p-value of the mean gain of blocks, as a quantile of the normal distribution."""
    means = _subset_means(gains, np.ones(len(gains)))
    below = (0.5 + np.count_nonzero(means <= 0.0)) / (len(means) + 1)
    return float(norm.isf(below))


def least_blocks(level: float) -> int:
    """Return the smallest number of blocks for which a p-value can reach one minus the level.

    Examples
    --------
    >>> least_blocks(0.975), least_blocks(1.0 - 0.05 / 20)
    (6, 9)
    """
    return math.ceil(-math.log2(1.0 - level) - 1e-9)


def _subset_means(gains: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the means of all non-empty subsets, or 9999 random ones for more than 12 blocks."""
    n = len(gains)
    if n <= _EXACT_SUBSETS:
        members = np.arange(1, 2**n)[:, None] >> np.arange(n) & 1
    else:
        members = stream(0, 'tune', 'subsets', '').integers(0, 2, (_DRAWS - 1, n))
        members = members[members.any(axis=1)]
    return np.asarray(members @ gains / (members @ weights))


def sign_flip_p_value(differences: FloatArray, seed: int) -> float:
    """Return the probability of a mean at least this large if signs were random.

    See `sign_flips` for the number of flips (R. A. Fisher, The Design of Experiments, 1935).
    """
    sums = sign_flips(len(differences), stream(seed, 'fit', 'signs', '')) @ differences
    return float(np.mean(sums >= sums[0] - 1e-12 * np.abs(differences).sum()))


def sign_flips(count: int, rng: np.random.Generator) -> FloatArray:
    """Return the signs of `count` values in every flip, `(f, count)`; the first are all positive.

    These are all flips for up to 13 values, else 10 000, of which all but the first are random.
    """
    if count <= _EXACT_SIGNS:
        return np.array(list(itertools.product((1.0, -1.0), repeat=count)))
    drawn = rng.choice((1.0, -1.0), (_DRAWS - 1, count))
    return np.concatenate([np.ones((1, count)), drawn])


MIN_RECORDINGS = 5
"""Fewest recordings that are resampled; below it only the simulated noise is resampled."""

_MIN_FREEDOM = 3


def resampling_strata(scenarios: Sequence[str]) -> tuple[list[IntArray], float]:
    """Return the groups within which units are resampled, and the degrees of freedom.

    `scenarios` holds the scenario of each unit, such as a recording.
    """
    n = len(scenarios)
    if n < MIN_RECORDINGS:
        return [np.array([i]) for i in range(n)], np.inf
    names = list(dict.fromkeys(scenarios))
    if n - len(names) < _MIN_FREEDOM:
        # A scenario that was driven once cannot be resampled within itself.
        return [np.arange(n)], n - 1.0
    strata = [
        np.array([i for i, scenario in enumerate(scenarios) if scenario == name]) for name in names
    ]
    return strata, float(n - len(names))


def draw_resamples(
    units: Sequence[IntArray], strata: Sequence[IntArray], repetitions: int, count: int, seed: int
) -> list[tuple[IntArray, IntArray]]:
    """Return bootstrap resamples: recordings `(n,)`, and simulated runs of each of them `(n, r)`.

    `units` holds the recordings of each unit, and `strata` the units of each stratum. As many
    units are drawn from each stratum as it has.
    """
    rng = stream(seed, 'fit', 'resamples', '')
    resamples = []
    for _ in range(count):
        drawn = np.concatenate([rng.choice(stratum, len(stratum)) for stratum in strata])
        recordings = np.concatenate([units[k] for k in drawn])
        resamples.append(
            (recordings, rng.integers(0, repetitions, (len(recordings), repetitions)))
        )
    return resamples


def interpolate_crossing(x: Sequence[float], y: Sequence[float], level: float) -> float:
    """Return the x at which the line through two points reaches `level`, clipped to them."""
    if y[0] == y[1]:
        return float(0.5 * (x[0] + x[1]))
    share = min(max((level - y[0]) / (y[1] - y[0]), 0.0), 1.0)
    return float(x[0] + share * (x[1] - x[0]))
