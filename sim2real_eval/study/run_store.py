# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Files of judged runs in the folder of a study."""

from __future__ import annotations

import dataclasses
import functools
import io
import json
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from sim2real_eval.common.new_files import encode_text, new_file, write_bytes
from sim2real_eval.common.results import json_text
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.input_files import open_input
from .run import EstimateSignals, RunKey, StudyRun

RUNS = 'runs'
"""Folder of the runs in the folder of a study."""

_TRUTH = 'truth.npz'
_TRUTH_SIGNALS = ('true_time', 'true_velocity', 'true_orientation')
_RECORD = 'about'
"""Array of a run file that holds the run as JSON."""
_CACHED_FILES = {1 << 16: 1000, 1 << 19: 250}
"""Number of cached files by their largest size in bytes."""


class RunStore:
    """Files of judged runs in the folder of a study, read through a cache.

    The ground truth of a recording is in a file of its own, which all of its runs share.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._load_cached = {
            size: functools.lru_cache(maxsize=count)(self._load)
            for size, count in _CACHED_FILES.items()
        }
        self._saved_truths: set[str] = set()

    def save(self, run: StudyRun, signals: EstimateSignals) -> None:
        """Write the files of a run, its ground truth first."""
        for name, arrays in _split_files(run, signals).items():
            if self._is_needed(name):
                with new_file(self._folder / name) as file:
                    np.savez(file, **arrays)

    def write(self, files: Iterable[tuple[str, bytes]]) -> None:
        """Write files that `encode_run` made."""
        for name, data in files:
            if self._is_needed(name):
                write_bytes(self._folder / name, data)

    def _is_needed(self, name: str) -> bool:
        """Return False for a ground truth that was written before; the runs of it share a file."""
        if not name.endswith(f'/{_TRUTH}'):
            return True
        is_new = name not in self._saved_truths
        self._saved_truths.add(name)
        return is_new

    def run(self, key: RunKey) -> StudyRun | None:
        """Return a run, or None if one of its files is missing or damaged."""
        try:
            self._load_truth(key)
            record = json.loads(self._load(run_file(key), _RECORD)[_RECORD].tobytes())
        except Sim2RealError:
            return None
        return StudyRun.from_mapping(key, record)

    def signals(self, key: RunKey) -> EstimateSignals:
        """Return the signals of a run; raise Sim2RealError for a missing or damaged file."""
        names = [field.name for field in dataclasses.fields(EstimateSignals)]
        run_signals = [name for name in names if name not in _TRUTH_SIGNALS]
        return EstimateSignals(
            **self._load_if_cached(run_file(key), *run_signals), **self._load_truth(key)
        )

    def discard(self, key: RunKey) -> None:
        """Remove a run, and the ground truth with the last run of its recording."""
        path = self._folder / run_file(key)
        path.unlink(missing_ok=True)
        if path.parent.is_dir() and {file.name for file in path.parent.iterdir()} <= {_TRUTH}:
            (path.parent / _TRUTH).unlink(missing_ok=True)
            path.parent.rmdir()

    def _load_truth(self, key: RunKey) -> dict[str, Any]:
        return self._load_if_cached(f'{_run_folder(key)}/{_TRUTH}', *_TRUTH_SIGNALS)

    def _load_if_cached(self, name: str, *arrays: str) -> dict[str, Any]:
        # Tables, metrics and page read the same runs: up to 200 MB of small files are cached.
        try:
            size = (self._folder / name).stat().st_size
        except OSError:
            return self._load(name, *arrays)
        load = next(
            (load for limit, load in self._load_cached.items() if size <= limit), self._load
        )
        return load(name, *arrays)

    def _load(self, name: str, *arrays: str) -> dict[str, Any]:
        path = self._folder / name
        try:
            with open_input(path) as file, np.load(file, allow_pickle=False) as content:
                return {array: content[array] for array in arrays}
        except OSError as error:
            raise Sim2RealError(f'{path}: cannot be read: {error.strerror or error}') from None
        except (ValueError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile) as error:
            raise Sim2RealError(f'{path}: is damaged: {error}; run the study again') from None


def encode_run(run: StudyRun, signals: EstimateSignals) -> list[tuple[str, bytes]]:
    """Return the files of a run: names relative to the folder of the study, and contents."""
    files = []
    for name, arrays in _split_files(run, signals).items():
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)
        files.append((name, buffer.getvalue()))
    return files


def _split_files(run: StudyRun, signals: EstimateSignals) -> dict[str, dict[str, Any]]:
    """Return the arrays in the files of a run, by file and array name."""
    record = {**run.to_mapping(), 'identity': run.identity}
    encoded = encode_text(json_text(record, indent=None, allow_nan=False))
    arrays = {
        field.name: np.ascontiguousarray(getattr(signals, field.name))
        for field in dataclasses.fields(signals)
    }
    truth = {name: arrays.pop(name) for name in _TRUTH_SIGNALS}
    return {
        f'{_run_folder(run.key)}/{_TRUTH}': truth,
        run_file(run.key): {_RECORD: np.frombuffer(encoded, dtype=np.uint8), **arrays},
    }


def _run_folder(key: RunKey) -> str:
    return f'{RUNS}/{key.judge}/{key.recording}'


def run_file(key: RunKey) -> str:
    """Return the file name of a run, relative to the folder of the study."""
    return f'{_run_folder(key)}/{key.model}_{key.repetition}.npz'


def run_files(keys: Iterable[RunKey]) -> set[str]:
    """Return the names of the files of runs, relative to the folder of the study."""
    return {name for key in keys for name in (f'{_run_folder(key)}/{_TRUTH}', run_file(key))}
