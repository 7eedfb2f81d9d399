# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The outcome of a study: its judged runs, what failed, and their tables."""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sim2real_eval.common.findings import Finding
from sim2real_eval.metrics.interval import ScoredRuns
from sim2real_eval.metrics.options import REAL, MetricOptions
from sim2real_eval.metrics.scores import POOLED, RunScore, VepdRow, prepare, resample, vepd_table
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.input_files import read_input_text
from sim_sensors.core.measurements import FloatArray
from .options import COPIES
from .record import DIGEST, decode_record, record_digest
from .run import EstimateSignals, RunKey, StudyRun
from .run_store import RunStore

if TYPE_CHECKING:
    from sim2real_eval.metrics.series import VelocitySeries

AGAIN = '_again'
"""Suffix of the names of values from a second replay."""
OF_VEPD = {'rmse': 1.0, 'entropy_difference': 1.0}
"""Values that VEPD compares, and their scales."""

_MOST_FAILURES = 0.5
"""Share of failed recordings above which a model is left out instead of the recordings."""


def scored_runs(
    runs: Sequence[StudyRun],
    blocks: Mapping[str, str] | None = None,
    scales: Mapping[str, float] = OF_VEPD,
) -> ScoredRuns:
    """Return values of the runs of one source for the statistics.

    `scales` names the values and what each is divided by; `blocks` are those of the recordings.
    """

    def scaled(suffix: str) -> FloatArray:
        return np.array([
            [run.values[name + suffix] / scale for name, scale in scales.items()] for run in runs
        ])  # fmt: skip

    has_again = all(name + AGAIN in run.values for run in runs for name in scales)
    return ScoredRuns(
        scaled(''),
        tuple(run.key.recording for run in runs),
        tuple(run.scenario for run in runs),
        tuple(blocks.get(run.key.recording, '') for run in runs) if blocks else (),
        scaled(AGAIN) if has_again else None,
    )


def find_copies(
    measured: Mapping[str, Hashable], blocks: Mapping[str, str] | None = None
) -> list[Finding]:
    """Return a finding for recordings of different blocks with equal measured numbers.

    Examples
    --------
    >>> [note.problem for note in find_copies({'a': 0.12, 'b': 0.31, 'a_copy': 0.12})]
    ['a, a_copy are identical: copies of one drive count as independent recordings']
    """
    names: dict[Hashable, list[str]] = {}
    for name, numbers in measured.items():
        names.setdefault(numbers, []).append(name)
    return [
        COPIES(names=', '.join(same))
        for same in names.values()
        if len({(blocks or {}).get(name, name) for name in same}) > 1
    ]


class StudyFailure(NamedTuple):
    """A run that could not be judged, and the reason."""

    judge: str
    recording: str
    model: str  # `real` or a variant; empty when the recording could not be read
    reason: str

    @property
    def message(self) -> str:
        """Recording and reason in one line."""
        # Some reasons begin with the path of the recording.
        has_name = self.recording in self.reason.partition(': ')[0]
        return self.reason if has_name else f'{self.recording}: {self.reason}'


class Losses:
    """Runs of a study that do not count because something failed.

    Models must be compared on the same recordings: a recording on which a run fails is left out
    under that judge for all models. A model that fails on more than half of the recordings of a
    group is left out there instead. `groups` has the group of every run of the study.

    Failures that follow from an earlier one in `failures`, of the same recording or of the same
    model on it, do not count: they depend on how the work was divided.
    """

    def __init__(self, failures: Iterable[StudyFailure], groups: Mapping[RunKey, str]) -> None:
        failures = _first_failures(failures, groups)
        self._groups = {key[:2]: group for key, group in groups.items()}
        self._failures = failures
        whole = {failure[:2] for failure in failures if failure.model in ('', REAL)}
        tried = {
            ((key.judge, group, key.model), key.recording)
            for key, group in groups.items()
            if key[:2] not in whole
        }
        failed = {
            (self._model(failure), failure.recording)
            for failure in failures
            if failure[:2] not in whole
        }
        counts = Counter(model for model, _ in tried)
        self._models = {
            model
            for model, count in Counter(model for model, _ in failed).items()
            if count > _MOST_FAILURES * counts[model]
        }
        self._recordings = whole | {
            failure[:2] for failure in failures if self._model(failure) not in self._models
        }

    def __contains__(self, key: RunKey) -> bool:
        model = (key.judge, self._groups[key[:2]], key.model)
        return key[:2] in self._recordings or model in self._models

    def records(self) -> list[dict[str, Any]]:
        """Return the failures as plain values, with group and with what is left out."""
        records = []
        for failure in self._failures:
            _, group, _ = model = self._model(failure)
            is_whole = failure[:2] in self._recordings and model not in self._models
            left_out = 'recording' if is_whole else 'model'
            records.append({**failure._asdict(), 'group': group, 'left_out': left_out})
        return records

    def _model(self, failure: StudyFailure) -> tuple[str, str, str]:
        return (failure.judge, self._groups[failure[:2]], failure.model)


def _first_failures(
    failures: Iterable[StudyFailure], groups: Mapping[RunKey, str]
) -> list[StudyFailure]:
    """Return the failures that one process would report which judges everything in order."""
    firsts: dict[tuple[str, str, str], StudyFailure] = {}
    for failure in failures:
        firsts.setdefault(failure[:3], failure)
    whole = {key[:2]: key[2] for key in firsts if key[2] in ('', REAL)}
    order = {key[:3]: number for number, key in enumerate(groups)}
    first = {key[:2]: number for number, key in reversed(list(enumerate(groups)))}
    return sorted(
        (failure for key, failure in firsts.items() if whole.get(key[:2], key[2]) == key[2]),
        key=lambda failure: order.get(failure[:3], first[failure[:2]]),
    )


def describe_failures(record: Mapping[str, Any]) -> list[str]:
    """Return a line for each recording or model that a study left out.

    The line names the judges unless all judges are concerned. `record`: see `StudyOutcome`.
    """
    judges_by_text: dict[str, list[str]] = {}
    model_failures: dict[tuple[str, str, str], list[str]] = {}
    for failure in record['failures']:
        judge, model = failure.get('judge', ''), failure.get('model', '')
        text = StudyFailure(judge, failure['recording'], model, failure['reason']).message
        if failure.get('left_out') == 'model':
            model_failures.setdefault((model, failure['group'], judge), []).append(text)
        else:
            text = text if model in ('', REAL) else f'{text} ({model})'
            judges_by_text.setdefault(text, []).append(judge)
    for (model, group, judge), texts in model_failures.items():
        where = f' in {group}' if group else ''
        text = f'model {model}{where}: fails on {len(texts)} recordings, as on {texts[0]}'
        judges_by_text.setdefault(text, []).append(judge)
    all_judges = {judge['label'] for judge in record['judges']}
    return [
        text
        if all_judges <= set(judges) or '' in judges
        else f'{text} (judge {", ".join(judges)})'
        for text, judges in judges_by_text.items()
    ]


_FINISHED = 'finished'
MARK = 'study.json'
"""Record of a study; a folder without it holds no study."""


def stored_blocks(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the blocks of the recordings of a study that have one, by name of the recording."""
    recordings = record.get('recordings') or ()
    return {
        recording['name']: recording['block'] for recording in recordings if recording.get('block')
    }


@dataclasses.dataclass(frozen=True, eq=False)
class StudyOutcome:
    """The record and the judged runs of a study.

    Attributes
    ----------
    record : mapping
        Plain values that repeat and describe the study: `title`, `about`, `seed`, `repetitions`,
        `component`, `metric`, `synthetic` (whether recordings are stand-ins), `versions`,
        `judges`, `models`, `recordings`, `failures`, `notes`. A study that was run also has
        `command` (its words), `shipped` (whether its file is shipped), `format`, `state`,
        `simulate_on`, `conditions`, `uncertainty`, `start_heading`, `off_ticks`, `match_rates`.
    runs : tuple of StudyRun
        Sorted by judge, recording and model, the real run first.
    load : callable
        Returns the signals of a run.
    complete : bool
        Compute all secondary results, however many runs there are.

    Examples
    --------
    >>> StudyOutcome.read('no_such_folder')
    Traceback (most recent call last):
    sim_sensors.core.errors.Sim2RealError: no_such_folder/study.json: cannot be read: ...
    """

    record: Mapping[str, Any]
    runs: tuple[StudyRun, ...]
    load: Callable[[RunKey], EstimateSignals]
    complete: bool = False

    @classmethod
    def read(cls, folder: str | Path, *, with_notes: bool = True) -> StudyOutcome:
        """Read a finished study; its signals are read on demand.

        Parameters
        ----------
        folder : str or Path
            Folder of the study, or its study.json alone, which has no signals.
        with_notes : bool
            Whether the runs have their findings.

        Raises
        ------
        Sim2RealError
            When there is no study, or it is not finished, damaged or changed by hand.
        """
        path = Path(folder)
        path = path if path.is_file() or path.suffix == '.json' else path / MARK
        try:
            record = decode_record(read_input_text(path))
            state, digest = record['state'], record.pop(DIGEST, None)
            mappings = record.pop('runs', [])
            if state == _FINISHED and digest != record_digest(record, mappings):
                problem = 'has another sha256 than' if digest else 'has no sha256 of'
                raise Sim2RealError(
                    f'{path}: {problem} its content: edited, damaged, or of a version '
                    'before 1.0.0; repeat the command of the study'
                )
            runs = tuple(
                StudyRun.from_mapping(
                    RunKey(*(run[name] for name in RunKey._fields)),
                    run if with_notes else {**run, 'notes': ()},
                )
                for run in mappings
            )
        except OSError as error:
            raise Sim2RealError(
                f'{path}: cannot be read: {error.strerror}; must be a folder written by '
                '`sim2real study`, `vepd` or `demo`'
            ) from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise Sim2RealError(f'{path}: is not a study record') from None
        if state != _FINISHED:
            raise Sim2RealError(f'{folder}: the study is not finished; repeat its command')
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
        """Groups, in the order of the recordings; one empty label if there are none."""
        return list(dict.fromkeys(run.group for run in self.runs))

    @property
    def compared_pairs(self) -> list[tuple[str, str]]:
        """Pairs of judge and group that have both real and simulated runs, in order."""
        kinds: dict[tuple[str, str], set[bool]] = {}
        for run in self.runs:
            kinds.setdefault((run.key.judge, run.group), set()).add(run.is_real)
        return [pair for pair, is_real in kinds.items() if len(is_real) == 2]

    def runs_of(
        self, judge: str, model: str, *, scenario: str | None = None, group: str | None = None
    ) -> list[StudyRun]:
        """Return the runs of a model, or of `real`, under a judge; None means all scenarios."""
        return [
            run
            for run in self._runs_by_source.get((judge, model), ())
            if scenario in (None, run.scenario) and group in (None, run.group)
        ]

    @functools.cached_property
    def _runs_by_source(self) -> dict[tuple[str, str], list[StudyRun]]:
        runs: dict[tuple[str, str], list[StudyRun]] = {}
        for run in self.runs:
            runs.setdefault((run.key.judge, run.key.model), []).append(run)
        return runs

    @property
    def blocks(self) -> dict[str, str]:
        """Blocks of the recordings that have one, by name."""
        return stored_blocks(self.record)

    def by_model(self, judge: str, group: str) -> dict[str, list[StudyRun]]:
        """Return the runs of the real sensors (`real`, first) and of each model."""
        return {
            model: runs
            for model in (REAL, *self.models)
            if (runs := self.runs_of(judge, model, group=group))
        }

    def part(self, group: str) -> StudyOutcome:
        """Return the outcome restricted to a group of recordings."""
        return dataclasses.replace(
            self, runs=tuple(run for run in self.runs if run.group == group)
        )

    def signals(self, key: RunKey) -> EstimateSignals:
        """Return the signals of a run; a file that cannot be read raises Sim2RealError."""
        return self.load(key)

    def series(self, key: RunKey) -> VelocitySeries:
        """Return the speeds of a run that were scored, without the warm-up."""
        name = f'{key.recording} ({key.model})'
        whole = speed_series(self.signals(key), self.record['component'], name)
        options = MetricOptions.from_mapping(self.record['metric'], 'metric')
        return prepare(whole, options)

    def mean_rmse(
        self, judge: str, group: str | None = None, name: str = 'forward_rmse'
    ) -> dict[tuple[str, str], float]:
        """Return the mean of a value over runs by (model, scenario); `all` is all scenarios.

        By default the value is the RMSE of forward speed, m/s.
        """
        values: dict[tuple[str, str], list[float]] = {}
        for model in (REAL, *self.models):
            for run in self.runs_of(judge, model, group=group):
                for scenario in (run.scenario, POOLED):
                    values.setdefault((model, scenario), []).append(run.values[name])
        return {place: float(np.mean(numbers)) for place, numbers in values.items()}

    def table(
        self, judge: str, group: str | None = None, scores: Mapping[RunKey, RunScore] | None = None
    ) -> list[VepdRow]:
        """Return the VEPD of every model by scenario and pooled, under a judge.

        `scores` replace those of the runs.
        """
        table: dict[str, dict[str, list[RunScore]]] = {}
        for model in (REAL, *self.models):
            by_scenario = table.setdefault(model, {})
            for run in self.runs_of(judge, model, group=group):
                score = run.score if scores is None else scores[run.key]
                by_scenario.setdefault(run.scenario, []).append(score)
        return vepd_table(table.pop(REAL), table)


def speed_series(signals: EstimateSignals, component: str, name: str = '') -> VelocitySeries:
    """Return the whole estimated and true speed; see `sim2real_eval.metrics.speed`."""
    from sim2real_eval.metrics.series import VelocitySeries, speed

    return VelocitySeries(
        se_time=signals.time,
        se_vel=speed(signals.velocity, signals.orientation, component),
        gt_time=signals.true_time,
        gt_vel=speed(signals.true_velocity, signals.true_orientation, component),
        name=name,
    )


def speed_error(signals: EstimateSignals, component: str, options: MetricOptions) -> FloatArray:
    """Return the error of the estimated speed, (n,) m/s, on the time grid of the score.

    See `sim2real_eval.metrics.score_run` for errors.
    """
    run = resample(speed_series(signals, component), options)
    return run.se_vel - run.gt_vel
