# SPDX-License-Identifier: Apache-2.0
"""Parameter space, stored evaluations and worker pool of every search.

A verb describes its parameters as a `SearchSpace` and evaluates candidates through an
`EvaluationPool`. A strategy chooses the candidates: an interpolated response
surface (`fitting.surface`), stepwise selection (`stepwise`) or the search of a size (`size`).
Folds, held-out gains and resamples are in `validation`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from sim2real_eval.common.findings import Finding
from sim2real_eval.common.workers import Workers
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.measurements import FloatArray

Values = tuple[float, ...]
"""Values of all parameters of a search, in the units of the parameters."""

Advance = Callable[[], None]
Progress = Callable[[int], 'Advance | None']
"""Takes the number of tasks that come next and returns what is to be called after each."""


class SearchParameter(Protocol):
    """A number that a search changes, and its transform to a search coordinate."""

    @property
    def name(self) -> str:
        """Name for people and files."""

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


_FORMAT = 'sim2real evaluations 1'


class EvaluationStore:
    """Results of finished evaluations in a file, so that an interrupted search can go on.

    As a context manager, it removes the file if the context ends without an error. The file has a
    header with the digest of the search, then one line of JSON per evaluation. Evaluations of a
    search with another digest are discarded. A line that was cut off is ignored.

    Parameters
    ----------
    path : str or Path
    search : mapping
        Everything that the evaluations depend on: recordings, judge, options, seed.

    Raises
    ------
    Sim2RealError
        If the file exists and is no store of evaluations.

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
            lines = [_parse(line) for line in self.path.read_text('utf-8').splitlines()]
            if not lines or not isinstance(lines[0], dict) or lines[0].get('format') != _FORMAT:
                raise Sim2RealError(
                    f'{self.path} exists and holds no evaluations; remove it or choose another '
                    '--out'
                )
        self._is_ready = lines[:1] == [self._header]
        if self._is_ready:
            records = [line for line in lines[1:] if isinstance(line, list)]
            self.results = {key: _decode(result) for key, result in records}

    @classmethod
    def beside(cls, folder: str | Path, search: Mapping[str, Any]) -> EvaluationStore:
        """Return the store of a search that will write its result to `folder`."""
        path = Path(folder)
        return cls(path.with_name(f'{path.name}.evaluations'), search)

    def __enter__(self) -> EvaluationStore:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # After an error or an interrupt, the next run of the same search goes on from the file.
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
        """Announce a number of tasks; return what is to be called after each."""
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
        """Return `function(request)` of each request, in the order of the requests.

        `keys` have a `repr` that tells requests apart; with them, results are stored. `advance`
        is called after each request; by default the requests are announced as tasks here.
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
