# SPDX-License-Identifier: Apache-2.0
"""The judged runs of a study as files, one each, written whole or not at all."""

from __future__ import annotations

import dataclasses
import functools
import io
import json
import shutil
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from sim2real_eval.common.findings import from_records, to_records
from sim2real_eval.common.tables import write_bytes
from sim2real_eval.study.run import EstimateSignals, RunKey, StudyRun
from sim_sensors.core.errors import Sim2RealError

RUNS = 'runs'
"""Folder of the runs in that of a study."""

_TRUTH = 'truth.npz'
_ABOUT = 'about'
_KEPT = 500
_OF_TRUTH = ('true_time', 'true_velocity', 'true_orientation')


class RunStore:
    """Runs below the folder of a study.

    The truth of a recording, which all runs share that follow it, is in a file of its own.

    Parameters
    ----------
    folder : Path
        Of the study.

    Attributes
    ----------
    signals : callable
        Returns the signals of a run by its key; raises Sim2RealError when a file is missing or
        broken.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # Tables, metrics and page all look at the same runs: about 100 MB of them stay.
        self.signals = functools.lru_cache(maxsize=_KEPT)(self._signals)
        self._truth = functools.lru_cache(maxsize=_KEPT)(self._truth_of)

    def save(self, run: StudyRun, signals: EstimateSignals) -> None:
        """Write a run and its signals."""
        self.write(encoded(run, signals))

    def write(self, files: Iterable[tuple[str, bytes]]) -> None:
        """Write what `encoded` returned; the file of the run last."""
        for name, data in files:
            path = self._folder / name
            if path.name != _TRUTH or not path.exists():
                write_bytes(path, data)

    def run(self, key: RunKey) -> StudyRun | None:
        """Return a run; None when it is not there, or not whole."""
        if not (self._folder / _place(key) / _TRUTH).is_file():
            return None
        try:
            about = json.loads(self._arrays(_name(key), _ABOUT)[_ABOUT].tobytes())
        except Sim2RealError:
            return None
        notes = from_records(about['notes'])
        return StudyRun(key, about['scenario'], about['group'], about['values'], notes)

    def _signals(self, key: RunKey) -> EstimateSignals:
        names = [field.name for field in dataclasses.fields(EstimateSignals)]
        own = [name for name in names if name not in _OF_TRUTH]
        return EstimateSignals(**self._arrays(_name(key), *own), **self._truth(_place(key)))

    def _truth_of(self, place: str) -> dict[str, Any]:
        return self._arrays(f'{place}/{_TRUTH}', *_OF_TRUTH)

    def discard(self, key: RunKey) -> None:
        """Remove a run; with the last one of a recording also the truth that they shared."""
        path = self._folder / _name(key)
        path.unlink(missing_ok=True)
        if path.parent.is_dir() and {one.name for one in path.parent.iterdir()} <= {_TRUTH}:
            shutil.rmtree(path.parent)

    def _arrays(self, name: str, *wanted: str) -> dict[str, Any]:
        path = self._folder / name
        try:
            with np.load(path, allow_pickle=False) as found:
                return {each: found[each] for each in wanted}
        except OSError as error:
            raise Sim2RealError(f'{path}: cannot be read: {error.strerror or error}') from None
        except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise Sim2RealError(f'{path}: is broken: {error}; run the study again') from None


def encoded(run: StudyRun, signals: EstimateSignals) -> list[tuple[str, bytes]]:
    """Return the files of a run: names relative to the folder of the study, and contents."""
    about = {
        'scenario': run.scenario,
        'group': run.group,
        'values': dict(run.values),
        'notes': to_records(run.notes),
    }
    text = json.dumps(about, ensure_ascii=False, allow_nan=False).encode()
    arrays = {field.name: getattr(signals, field.name) for field in dataclasses.fields(signals)}
    truth = {name: arrays.pop(name) for name in _OF_TRUTH}
    return [
        (f'{_place(run.key)}/{_TRUTH}', _packed(truth)),
        (_name(run.key), _packed({_ABOUT: np.frombuffer(text, dtype=np.uint8), **arrays})),
    ]


def _packed(arrays: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    # Not compressed: noise hardly is, and the members carry no time of day.
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def _place(key: RunKey) -> str:
    return f'{RUNS}/{key.judge}/{key.recording}'


def _name(key: RunKey) -> str:
    return f'{_place(key)}/{key.model}_{key.repetition}.npz'
