# SPDX-License-Identifier: Apache-2.0
"""All runs of a study: as files, one each, written whole or not at all, and as its outcome."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import io
import json
import math
import shutil
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.common.tables import new_file, write_bytes
from sim2real_eval.metrics.distances import POOLED, VepdRow, vepd_table
from sim2real_eval.metrics.options import MetricOptions
from sim2real_eval.metrics.scores import RunScore, prepare, resample
from sim2real_eval.metrics.series import VelocitySeries, speed
from sim2real_eval.metrics.series_folder import REAL
from sim_sensors.core.blocks import blocks
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.scratch import LARGE, release, zeros
from .run import EstimateSignals, RunKey, StudyRun

RUNS = 'runs'
"""Folder of the runs in that of a study."""

_TRUTH = 'truth.npz'
_ABOUT = 'about'
_KEPT = 250
_LARGEST_KEPT = 1 << 19
_OF_TRUTH = ('true_time', 'true_velocity', 'true_orientation')


class RunStore:
    """Runs below the folder of a study.

    The truth of a recording, which all runs share that follow it, is in a file of its own.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kept = functools.lru_cache(maxsize=_KEPT)(self._arrays)
        self._truths: set[str] = set()

    def save(self, run: StudyRun, signals: EstimateSignals) -> None:
        """Write a run and its signals; the file of the run last."""
        for name, arrays in _members(run, signals).items():
            if name in self._truths:
                continue
            with new_file(self._folder / name) as file:
                _pack(file, arrays)
            # All runs of a recording bring it. One of before may be of a power cut.
            if name.endswith(f'/{_TRUTH}'):
                self._truths.add(name)

    def write(self, files: Iterable[tuple[str, bytes]]) -> None:
        """Write what `encoded` returned."""
        for name, data in files:
            write_bytes(self._folder / name, data)

    def run(self, key: RunKey) -> StudyRun | None:
        """Return a run; None when it is not there, or not whole."""
        try:
            self._truth(key)
            about = json.loads(self._arrays(_name(key), _ABOUT)[_ABOUT].tobytes())
        except Sim2RealError:
            return None
        return StudyRun.from_mapping(key, about)

    def signals(self, key: RunKey) -> EstimateSignals:
        """Return the signals of a run; Sim2RealError when a file is missing or broken."""
        names = [field.name for field in dataclasses.fields(EstimateSignals)]
        own = [name for name in names if name not in _OF_TRUTH]
        return EstimateSignals(**self._looked_at(_name(key), *own), **self._truth(key))

    def _truth(self, key: RunKey) -> dict[str, Any]:
        return self._looked_at(f'{_place(key)}/{_TRUTH}', *_OF_TRUTH)

    def _looked_at(self, name: str, *wanted: str) -> dict[str, Any]:
        # Tables, metrics and page all look at the same runs: some 100 MB of short ones stay.
        try:
            is_long = (self._folder / name).stat().st_size > _LARGEST_KEPT
        except OSError:
            is_long = True  # and cannot be read either
        return (self._arrays if is_long else self._kept)(name, *wanted)

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
                return {each: _unpacked(found, each) for each in wanted}
        except OSError as error:
            raise Sim2RealError(f'{path}: cannot be read: {error.strerror or error}') from None
        except (ValueError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile) as error:
            raise Sim2RealError(f'{path}: is broken: {error}; run the study again') from None


def encoded(run: StudyRun, signals: EstimateSignals) -> list[tuple[str, bytes]]:
    """Return the files of a run: names relative to the folder of the study, and contents."""
    found = []
    for name, arrays in _members(run, signals).items():
        buffer = io.BytesIO()
        _pack(buffer, arrays)
        found.append((name, buffer.getvalue()))
    return found


def _members(run: StudyRun, signals: EstimateSignals) -> dict[str, dict[str, NDArray[Any]]]:
    """Return the arrays of each file of a run by their names."""
    text = json.dumps(run.to_mapping(), ensure_ascii=False, allow_nan=False).encode()
    arrays = {field.name: getattr(signals, field.name) for field in dataclasses.fields(signals)}
    truth = {name: arrays.pop(name) for name in _OF_TRUTH}
    return {
        f'{_place(run.key)}/{_TRUTH}': truth,
        _name(run.key): {_ABOUT: np.frombuffer(text, dtype=np.uint8), **arrays},
    }


def _pack(file: IO[bytes], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write what `numpy.savez` would, a block at a time."""
    # Not compressed: noise hardly is, and the members carry no time of day.
    with zipfile.ZipFile(file, 'w') as archive:
        for name, values in arrays.items():
            with archive.open(zipfile.ZipInfo(f'{name}.npy'), 'w', force_zip64=True) as member:
                header = np.lib.format.header_data_from_array_1_0(values)
                np.lib.format.write_array_header_1_0(member, {**header, 'fortran_order': False})
                for part in blocks(len(values)):
                    member.write(np.ascontiguousarray(values[part]).data)


def _unpacked(found: Any, name: str) -> NDArray[Any]:
    """Return an array of an opened npz file, as a file of its own where it is large."""
    about = found.zip.getinfo(f'{name}.npy')
    if about.file_size < LARGE:
        return np.asarray(found[name])
    with found.zip.open(about) as member:
        if np.lib.format.read_magic(member) != (1, 0):
            raise ValueError(f'{name} is of another version')
        shape, by_columns, kind = np.lib.format.read_array_header_1_0(member)
        size = math.prod(shape) * kind.itemsize
        if by_columns or kind.hasobject or about.file_size - member.tell() != size:
            # Of another writer, or damaged, which numpy says.
            return np.asarray(found[name])
        values = zeros(shape, kind)
        bytes_of = values.reshape(-1).view(np.uint8)
        for start in range(0, size, LARGE):
            bytes_of[start : start + LARGE] = np.frombuffer(member.read(LARGE), np.uint8)
            release()
    return values


def _place(key: RunKey) -> str:
    return f'{RUNS}/{key.judge}/{key.recording}'


def _name(key: RunKey) -> str:
    return f'{_place(key)}/{key.model}_{key.repetition}.npz'


MARK = 'study.json'
"""File that says that a folder holds a study."""


_DIGEST = 'sha256'
_FINISHED = 'finished'


def sealed(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of a study with a digest of what it says, by which damage is found.

    Without it every reader of a record would have to look whether each of its numbers is there.
    """
    return {**record, _DIGEST: _digest_of(record)}


def _digest_of(record: Mapping[str, Any]) -> str:
    # Whatever its spaces and ends of lines, which git may change; the order of keys counts.
    return hashlib.sha256(json.dumps(record).encode()).hexdigest()


def blocks_of(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the blocks of the recordings of a study that have one, by name."""
    recordings = record.get('recordings') or ()
    return {one['name']: one['block'] for one in recordings if one.get('block')}


@dataclasses.dataclass(frozen=True, eq=False)
class StudyOutcome:
    """What a study came to.

    Attributes
    ----------
    record : mapping
        Everything needed to repeat and to read the study, as plain values: `title`, `about`,
        `seed`, `repetitions`, `component`, `metric`, `synthetic` (whether recordings are
        stand-ins), `versions`, `judges`, `models`, `recordings`, `failures`, `notes`; of a
        study that was run also `command` (words that carry it out), `shipped` (whether its file is
        had by name), `format`, `state`, `simulate_on`, `conditions`, `uncertainty`,
        `start_heading`, `off_ticks`, `match_rates`.
    runs : tuple of StudyRun
        Judge by judge, in each recording by recording: the real run, then variant by variant.
    load : callable
        Returns the signals of a run.

    Examples
    --------
    See `sim2real_eval.run_study`, which returns one; of a folder that holds a study:

    >>> StudyOutcome.read('no_such_folder')
    Traceback (most recent call last):
    sim_sensors.core.errors.Sim2RealError: no_such_folder/study.json: cannot be read: ...
    """

    record: Mapping[str, Any]
    runs: tuple[StudyRun, ...]
    load: Callable[[RunKey], EstimateSignals]

    @classmethod
    def read(cls, folder: str | Path) -> StudyOutcome:
        """Read a finished study; signals are read when asked for.

        Parameters
        ----------
        folder : str or Path
            Of the study; or its study.json alone, whatever it is called, of which there are no
            signals.

        Raises
        ------
        Sim2RealError
            When it holds no study, one that is not finished, or one that was changed by hand.
        """
        path = Path(folder)
        path = path if path.is_file() else path / MARK
        try:
            record = json.loads(path.read_text(encoding='utf-8'))
            state, digest = record['state'], record.pop(_DIGEST, None)
            if state == _FINISHED and digest != _digest_of(record):
                found = 'has another sha256 than' if digest else 'has no sha256 of'
                raise Sim2RealError(
                    f'{path}: {found} its content: changed by hand, damaged, or of a version '
                    'before 1.0.0; give the command of the study again'
                )
            runs = tuple(
                StudyRun.from_mapping(RunKey(*(one[name] for name in RunKey._fields)), one)
                for one in record.pop('runs', [])
            )
        except OSError as error:
            raise Sim2RealError(
                f'{path}: cannot be read: {error.strerror}; must be a folder that `sim2real '
                'study`, `vepd` or `demo` wrote'
            ) from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise Sim2RealError(f'{path}: is not the record of a study') from None
        if state != _FINISHED:
            raise Sim2RealError(f'{folder}: the study is not finished; give its command again')
        return cls(record, runs, RunStore(path.parent).signals)

    @property
    def judges(self) -> list[str]:
        """Labels of the judges, in the order of the study."""
        return list(dict.fromkeys(run.key.judge for run in self.runs))

    @property
    def models(self) -> list[str]:
        """Labels of the simulated variants, in the order of the study."""
        return list(dict.fromkeys(run.key.model for run in self.runs if not run.is_real))

    @property
    def scenarios(self) -> list[str]:
        """Scenarios, in the order of the recordings."""
        return list(dict.fromkeys(run.scenario for run in self.runs))

    @property
    def groups(self) -> list[str]:
        """Groups, in the order of the recordings; one empty label if there is none."""
        return list(dict.fromkeys(run.group for run in self.runs))

    @property
    def compared(self) -> list[tuple[str, str]]:
        """Pairs of judge and group that have both real and simulated runs, in order."""
        kinds: dict[tuple[str, str], set[bool]] = {}
        for run in self.runs:
            kinds.setdefault((run.key.judge, run.group), set()).add(run.is_real)
        return [pair for pair, found in kinds.items() if len(found) == 2]

    def of(
        self, judge: str, model: str, *, scenario: str | None = None, group: str | None = None
    ) -> list[StudyRun]:
        """Return the runs of a model, or `real`, under a judge, of one scenario, group or all."""
        return [
            run
            for run in self.runs
            if (run.key.judge, run.key.model) == (judge, model)
            and scenario in (None, run.scenario)
            and group in (None, run.group)
        ]

    @property
    def blocks(self) -> dict[str, str]:
        """Blocks of the recordings that have one, by name."""
        return blocks_of(self.record)

    def by_model(self, judge: str, group: str) -> dict[str, list[StudyRun]]:
        """Return the runs of each source that has any, `real` first."""
        return {
            model: runs
            for model in (REAL, *self.models)
            if (runs := self.of(judge, model, group=group))
        }

    def part(self, group: str) -> StudyOutcome:
        """Return what there is of a group of recordings."""
        return dataclasses.replace(
            self, runs=tuple(run for run in self.runs if run.group == group)
        )

    def signals(self, key: RunKey) -> EstimateSignals:
        """Read the signals of a run.

        Raises
        ------
        Sim2RealError
            When the file cannot be read.
        """
        return self.load(key)

    def series(self, key: RunKey) -> VelocitySeries:
        """Return what was scored of a run: the component of the study, warm-up left out."""
        name = f'{key.recording} ({key.model})'
        whole = speed_series(self.signals(key), self.record['component'], name)
        options = MetricOptions.from_mapping(self.record['metric'], 'metric')
        return prepare(whole, options)

    def mean_rmse(
        self, judge: str, group: str | None = None, name: str = 'forward_rmse'
    ) -> dict[tuple[str, str], float]:
        """Return the mean RMSE in m/s by (model, scenario), `all` for pooled.

        Of forward speed, or as `rmse` of what the study compares.
        """
        found: dict[tuple[str, str], list[float]] = {}
        for model in (REAL, *self.models):
            for run in self.of(judge, model, group=group):
                for scenario in (run.scenario, POOLED):
                    found.setdefault((model, scenario), []).append(run.values[name])
        return {place: float(np.mean(values)) for place, values in found.items()}

    def table(
        self, judge: str, group: str | None = None, scores: Mapping[RunKey, RunScore] | None = None
    ) -> list[VepdRow]:
        """Return the VEPD of every model per scenario and pooled, under a judge.

        With `scores` from these, in place of those that the runs have.
        """
        found: dict[str, dict[str, list[RunScore]]] = {}
        for model in (REAL, *self.models):
            by_scenario = found.setdefault(model, {})
            for run in self.of(judge, model, group=group):
                score = run.score if scores is None else scores[run.key]
                by_scenario.setdefault(run.scenario, []).append(score)
        return vepd_table(found.pop(REAL), found)


def speed_series(signals: EstimateSignals, component: str, name: str = '') -> VelocitySeries:
    """Return estimated and true speed, whole (`sim2real_eval.metrics.speed`)."""
    return VelocitySeries(
        se_time=signals.time,
        se_vel=speed(signals.velocity, signals.orientation, component),
        gt_time=signals.true_time,
        gt_vel=speed(signals.true_velocity, signals.true_orientation, component),
        name=name,
    )


def speed_error(signals: EstimateSignals, component: str, options: MetricOptions) -> FloatArray:
    """Return estimated less true speed, (n,) m/s, on the grid of the score.

    Raises MetricError, SeriesError as `sim2real_eval.metrics.score_run`.
    """
    run = resample(speed_series(signals, component), options)
    return run.se_vel - run.gt_vel
