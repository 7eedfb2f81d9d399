# SPDX-License-Identifier: Apache-2.0
"""One judged run of a study: its key, its numbers and its signals; runs that failed."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sim2real_eval.common.findings import Finding, from_records, to_records
from sim2real_eval.metrics.scores import RunScore
from sim2real_eval.metrics.series_folder import REAL
from sim2real_eval.metrics.uncertainty.motions import ScoredRuns
from sim_sensors.core.measurements import FloatArray
from .findings import COPIES

AGAIN = '_again'
"""Suffix of the names of values from a second replay."""
OF_VEPD = {'rmse': 1.0, 'entropy_difference': 1.0}
"""Values that VEPD compares, and their scales."""

_MOST_FAILURES = 0.5
"""Share of failed recordings above which a model is left out instead of the recordings."""


class RunKey(NamedTuple):
    """Identifies a run in its study."""

    judge: str  # label of the judge
    recording: str  # name of the recording whose motion it follows; runs that share it are paired
    model: str  # `real` or the label of a simulated variant
    repetition: int  # from 1; 1 for the real run


@dataclasses.dataclass(frozen=True, eq=False)
class StudyRun:
    """Numbers of one judged run; its signals are in a file, see `StudyOutcome.signals`.

    Attributes
    ----------
    key : RunKey
    scenario : str
    group : str
        Label that recordings share, such as a surface or a condition; may be empty.
    values : mapping
        Numbers by name. Every run has those of `RunScore`, `forward_rmse` (m/s), `estimates` and
        `fixes_used`. Others, such as `position_rmse`, are missing where they cannot be computed.
        Names that end in `_again` are from a second replay.
    notes : tuple of Finding
        Findings, the most important first.
    """

    key: RunKey
    scenario: str
    group: str
    values: Mapping[str, float]
    notes: tuple[Finding, ...] = ()

    @property
    def is_real(self) -> bool:
        """Whether its sensors are the recorded ones."""
        return self.key.model == REAL

    @property
    def score(self) -> RunScore:
        """Score that VEPD compares."""
        values: dict[str, Any] = {
            field.name: self.values[field.name] for field in dataclasses.fields(RunScore)
        }
        return RunScore(**{**values, 'n_samples': int(values['n_samples'])})

    @classmethod
    def from_mapping(cls, key: RunKey, mapping: Mapping[str, Any]) -> StudyRun:
        """Return the run that `to_mapping` wrote."""
        notes = from_records(mapping['notes'])
        return cls(key, mapping['scenario'], mapping['group'], mapping['values'], notes)

    def to_mapping(self) -> dict[str, Any]:
        """Return everything except the key as plain values."""
        return {
            'scenario': self.scenario,
            'group': self.group,
            'values': dict(self.values),
            'notes': to_records(self.notes),
        }


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


@dataclasses.dataclass(frozen=True, eq=False)
class EstimateSignals:
    """Estimate and ground truth of one run; times in seconds since the first true stamp.

    Positions are in the judge's world frame, velocities in the body frame. Orientations are
    quaternions x y z w, from body to world. Standard deviations are those that the judge states.
    """

    time: FloatArray  # (n,), of the estimates
    position: FloatArray  # (n, 3), m
    true_position: FloatArray  # (n, 3), m, aligned as for NEES; NaN where unknown
    orientation: FloatArray  # (n, 4)
    velocity: FloatArray  # (n, 3), m/s
    position_sigma: FloatArray  # (n, 3), m
    velocity_sigma: FloatArray  # (n, 3), m/s
    true_time: FloatArray  # (m,), of the ground truth
    true_velocity: FloatArray  # (m, 3), m/s
    true_orientation: FloatArray  # (m, 4), body to the world of the ground truth


def find_copies(
    measured: Mapping[str, Hashable], blocks: Mapping[str, str] | None = None
) -> list[Finding]:
    """Return a finding for recordings with equal measured numbers that are not of one block.

    Examples
    --------
    >>> [note.problem for note in find_copies({'a': 0.12, 'b': 0.31, 'a_copy': 0.12})]
    ['a, a_copy are equal to the last digit: they are one drive but count as independent ones']
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
    def told(self) -> str:
        """Recording and reason in one line."""
        # Some reasons begin with the path of the recording.
        has_name = self.recording in self.reason.partition(': ')[0]
        return self.reason if has_name else f'{self.recording}: {self.reason}'


class Losses:
    """Runs of a study that do not count because something failed.

    Models must be compared on the same recordings: a recording on which a run fails is left out
    under that judge for all models. A model that fails on more than half of the recordings of a
    group is left out there instead. `groups` has the group of every run of the study.
    """

    def __init__(self, failures: Sequence[StudyFailure], groups: Mapping[RunKey, str]) -> None:
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


def describe_failures(record: Mapping[str, Any]) -> list[str]:
    """Return a line for each recording or model that a study left out.

    The line names the judges unless all judges are concerned. `record`: see `StudyOutcome`.
    """
    judges_by_text: dict[str, list[str]] = {}
    model_failures: dict[tuple[str, str, str], list[str]] = {}
    for failure in record['failures']:
        judge, model = failure.get('judge', ''), failure.get('model', '')
        text = StudyFailure(judge, failure['recording'], model, failure['reason']).told
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
