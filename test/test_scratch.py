# SPDX-License-Identifier: Apache-2.0
"""Large arrays in files hold the numbers that they would hold in memory."""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from scipy.stats import wasserstein_distance

from sim2real_eval.signals.agreement import agreements, median_trend, unwrap, wasserstein, wrap
from sim_sensors.core import blocks as core_blocks
from sim_sensors.core import scratch
from sim_sensors.core.blocks import by_blocks


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, 'LARGE', 4096)
    monkeypatch.setattr(core_blocks, 'BLOCK', 100)


def grown(parts: Sequence[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    rows = scratch.Rows(parts[0])
    for part in parts:
        rows.append(part)
    return rows.joined()


def is_mapped(array: np.ndarray[Any, Any]) -> bool:
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(getattr(base, 'obj', base), mmap.mmap)


def test_rows_keep_their_numbers_when_their_memory_is_given_back() -> None:
    values = np.random.default_rng(1).normal(size=(1000, 3))
    found = grown(np.array_split(values, 7))
    assert is_mapped(found)
    scratch.release()
    np.testing.assert_array_equal(found, values)
    found[3] = 1.0
    scratch.release()
    np.testing.assert_array_equal(found[3], np.ones(3))


def test_what_is_small_is_in_memory() -> None:
    assert not is_mapped(grown([np.zeros((2, 3)), np.zeros((0, 3))]))
    assert not is_mapped(scratch.zeros((2, 3)))
    assert is_mapped(scratch.zeros((2000, 3)))


def test_blocks_of_one_or_several_arrays_are_the_whole() -> None:
    random = np.random.default_rng(2)
    first, second = random.normal(size=(1050, 3)), np.broadcast_to(2.0, (1050, 3))
    found = by_blocks(np.multiply, first, second)
    assert is_mapped(found)
    np.testing.assert_array_equal(found, 2.0 * first)
    steady = by_blocks(np.negative, second)
    assert core_blocks.is_steady(steady)
    assert [part.stop for part in core_blocks.blocks(250)] == [100, 250]
    assert [part.stop for part in core_blocks.blocks(0)] == [0]


def _no_room(*_: object, **__: object) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _full_after(bytes_: int) -> Callable[[], Any]:
    make = tempfile.TemporaryFile

    def opened() -> Any:
        file = make()
        write, left = file.write, bytes_

        class Full:
            def __getattr__(self, name: str) -> Any:
                return getattr(file, name)

            def __enter__(self) -> Any:
                return file.__enter__()

            def __exit__(self, *error: Any) -> None:
                file.__exit__(*error)

            def write(self, data: Any) -> int:
                nonlocal left
                left -= data.nbytes
                if left < 0:
                    # Some of it is written, as on a real disk.
                    write(bytes(data)[: data.nbytes // 2])
                    file.flush()
                    _no_room()
                return write(data)

        return Full()

    return opened


@pytest.mark.parametrize('room', [0, 5000, 10000])
def test_without_room_for_a_file_numbers_are_in_memory(
    monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    monkeypatch.setattr(scratch.tempfile, 'TemporaryFile', _full_after(room) if room else _no_room)
    values = np.arange(3000.0).reshape(1000, 3)
    found = grown(np.array_split(values, 20))
    assert not is_mapped(found)
    np.testing.assert_array_equal(found, values)


def test_room_for_zeros_is_asked_for_before_they_are_filled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, 'posix_fallocate', _no_room, raising=False)
    assert not is_mapped(scratch.zeros((2000, 3)))


@pytest.mark.parametrize('lengths', [(400, 400), (700, 150), (3, 500)])
def test_what_is_taken_a_block_at_a_time_is_that_of_all_at_once(lengths: tuple[int, int]) -> None:
    """Distances with equal values in both, turns without jumps, and agreement."""
    rng = np.random.default_rng(5)
    first, second = (rng.normal(size=n).round(1) + n / 900 for n in lengths)
    assert wasserstein([first], [second]) == pytest.approx(wasserstein_distance(first, second))
    both, shorter = np.concatenate([first, second]), second[: len(second) // 3]
    weights = [np.full(len(one), 1 / len(one)) for one in (first, second)]
    assert wasserstein([first, second], [shorter]) == pytest.approx(
        wasserstein_distance(both, shorter, np.concatenate(weights))
    )
    turned = np.cumsum(2.0 * rng.normal(size=lengths[0]))
    np.testing.assert_allclose(unwrap(wrap(turned)), np.unwrap(wrap(turned)), atol=1e-12)
    other = turned + rng.normal(size=len(turned))
    (found,) = agreements(*(one[:, None] for one in (turned, other, other - turned)))
    assert found.correlation == pytest.approx(np.corrcoef(turned, other)[0, 1], abs=1e-12)
    assert found.rmse == pytest.approx(np.sqrt(np.mean((other - turned) ** 2)))


@pytest.mark.parametrize('window', [1, 3, 31, 33, 101, 299])
def test_median_is_that_of_all_samples_whatever_is_looked_at_at_once(
    window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core_blocks, 'BLOCK', 32)
    values, half = np.random.default_rng(5).normal(size=300), window // 2
    filled = np.pad(values, half, mode='edge')
    expected = np.median(np.lib.stride_tricks.sliding_window_view(filled, window), axis=1)
    assert np.array_equal(median_trend(values, window), expected)
