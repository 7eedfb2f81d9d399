# SPDX-License-Identifier: Apache-2.0
"""Machine code on disk, which several processes may write and read at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from sim2real_eval.common.workers import Workers
from sim_sensors.core import compilation


def twice(x: Any) -> Any:
    return x + x


def dispatcher(process: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The function as another process compiles it."""
    monkeypatch.setattr(compilation, '_OWN', process)
    return compilation.compiled(twice)


def test_two_processes_that_compile_at_once_do_not_mix_up_their_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two versions of a function, each written by a process that knows nothing of the other: the
    index is the second's, and what the first wrote last must not be taken for the second's.
    """
    monkeypatch.setattr(numba.config, 'CACHE_DIR', str(tmp_path))
    first, second, third = (dispatcher(name, monkeypatch) for name in ('a', 'b', 'c'))
    assert first(1) == 2
    written = {path: path.read_bytes() for path in tmp_path.rglob('*.nbc')}
    assert len(written) == 1
    monkeypatch.setattr(second._cache._cache_file, '_load_index', dict)
    second(np.ones(2))
    for path, code in written.items():
        path.write_bytes(code)
    assert third(np.ones(2)).tolist() == [2.0, 2.0]
    assert sum(third.stats.cache_hits.values()) == 1


def test_compiling_is_announced_once_and_then_shows_that_it_goes_on() -> None:
    """On a first run it takes up to a minute, in which a user saw nothing."""

    def successor(x: float) -> float:
        return x + 1.0

    said: list[str] = []
    made = numba.njit(successor)
    heard = compilation.Announcement(said.append, interval_s=0.01)
    with numba.core.event.install_listener('numba:compile', heard):
        assert said == []
        made(1.0)
        first, *more = said
        assert first == 'compiling for this machine, once'
        assert more
        assert all(line.startswith(f'{first} (') for line in more)
        made(2.0)
        made(3)
        assert said.count(first) == 1


def descending(x: Any) -> Any:
    return np.sort(x)[::-1]


def compile_it(folder: str) -> int:
    """Compile a function in this process; 1 when it was found compiled already."""
    numba.config.CACHE_DIR = folder
    compilation._cache_directory.cache_clear()
    made: Any = compilation.compiled(descending)
    assert made(np.arange(3.0)).tolist() == [2.0, 1.0, 0.0]
    return sum(made.stats.cache_hits.values())


def test_of_processes_that_need_a_function_at_once_one_compiles_it(tmp_path: Path) -> None:
    with Workers(2) as workers:
        hits = workers.map(compile_it, [str(tmp_path)] * 2)
    assert len(list(tmp_path.rglob('*.nbc'))) == 1
    assert sorted(hits) == [0, 1]


@compilation.kernel
def half(x: float) -> float:
    return 0.5 * x


@compilation.compiled
def quarter(x: float) -> float:
    return half(half(x))


def test_a_kernel_is_called_from_compiled_code_and_from_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numba.config, 'CACHE_DIR', str(tmp_path))
    assert quarter(8.0) == 2.0
    assert half(8.0) == 4.0
