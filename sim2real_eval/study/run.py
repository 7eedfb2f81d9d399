# SPDX-License-Identifier: Apache-2.0
"""One judged run of a study: which it is, and the numbers that it gave."""

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


class RunKey(NamedTuple):
    """What tells a run from all others of its study."""

    judge: str  # label of the judge
    # Name of the recording whose true motion it follows. Runs that share it are paired.
    recording: str
    model: str  # `real` or the label of a simulated variant
    repetition: int  # from 1; 1 for the real run


@dataclasses.dataclass(frozen=True, eq=False)
class StudyRun:
    """Numbers of one judged run; its signals are in a file, see `StudyOutcome.signals`."""

    key: RunKey
    scenario: str
    # Label of the study file for what recordings have in common (a surface, a condition); empty if
    # there is none.
    group: str
    # Numbers by name. Always there: those of `RunScore` (`rmse`, `entropy_gt`, `entropy_se`,
    # `entropy_difference`, `n_samples`, `duration`), `forward_rmse` (m/s), `estimates` and
    # `fixes_used`. Others, such as `position_rmse`, where they can be had: a run without truth of
    # position has none. Names that end in `_again` are of a second replay.
    values: Mapping[str, float]
    notes: tuple[Finding, ...] = ()  # what the user should know, most important first

    @property
    def is_real(self) -> bool:
        """Whether its sensors are the recorded ones."""
        return self.key.model == REAL

    @property
    def score(self) -> RunScore:
        """Numbers that VEPD compares."""
        values: dict[str, Any] = {
            field.name: self.values[field.name] for field in dataclasses.fields(RunScore)
        }
        return RunScore(**{**values, 'n_samples': int(values['n_samples'])})

    @classmethod
    def from_mapping(cls, key: RunKey, given: Mapping[str, Any]) -> StudyRun:
        """Return a run from what `to_mapping` gave."""
        notes = from_records(given['notes'])
        return cls(key, given['scenario'], given['group'], given['values'], notes)

    def to_mapping(self) -> dict[str, Any]:
        """Return all but the key as plain values."""
        return {
            'scenario': self.scenario,
            'group': self.group,
            'values': dict(self.values),
            'notes': to_records(self.notes),
        }


AGAIN = '_again'
"""End of the names of values of a second replay."""
OF_VEPD = {'rmse': 1.0, 'entropy_difference': 1.0}
"""Values between which VEPD takes distances, and what each is over."""


def scored_runs(
    runs: Sequence[StudyRun],
    blocks: Mapping[str, str] | None = None,
    values: Mapping[str, float] = OF_VEPD,
) -> ScoredRuns:
    """Take values of the runs of one source, each over its number, for their uncertainty; `blocks`
    are those of recordings, by name.
    """

    def taken(names: Sequence[str]) -> FloatArray:
        scales = values.values()
        return np.array([
            [run.values[name] / scale for name, scale in zip(names, scales, strict=True)]
            for run in runs
        ])  # fmt: skip

    again = [name + AGAIN for name in values]
    return ScoredRuns(
        taken([*values]),
        tuple(run.key.recording for run in runs),
        tuple(run.scenario for run in runs),
        tuple(blocks.get(run.key.recording, '') for run in runs) if blocks else (),
        taken(again) if all(name in run.values for run in runs for name in again) else None,
    )


@dataclasses.dataclass(frozen=True, eq=False)
class EstimateSignals:
    """Estimate and truth of one run; times in seconds since the first stamp of the truth."""

    time: FloatArray  # (n,), of the estimates, as all that follows but the last three
    # (n, 3), m, in the judge's world frame; the truth laid into it as for NEES, NaN where there is
    # none.
    position: FloatArray
    true_position: FloatArray
    orientation: FloatArray  # (n, 4), quaternions x y z w, body to world
    velocity: FloatArray  # (n, 3), m/s, body frame
    # (n, 3), standard deviations that the judge states, axes as those of position and velocity.
    position_sigma: FloatArray
    velocity_sigma: FloatArray
    true_time: FloatArray  # (m,), of the truth, at its own rate
    true_velocity: FloatArray  # (m, 3), m/s, body frame
    true_orientation: FloatArray  # (m, 4), quaternions x y z w, body to the truth's world


def copies(
    found: Mapping[str, Hashable], blocks: Mapping[str, str] | None = None
) -> list[Finding]:
    """Say which recordings are one drive: those, by name, with the same measured numbers, unless
    they are of one block.

    Examples
    --------
    >>> [one.problem for one in copies({'a': 0.12, 'b': 0.31, 'a_copy': 0.12})]
    ['a, a_copy are equal to the last digit, so one drive, and count as independent ones']
    """
    names: dict[Hashable, list[str]] = {}
    for name, numbers in found.items():
        names.setdefault(numbers, []).append(name)
    told = []
    for same in names.values():
        shared = {(blocks or {}).get(name, name) for name in same}
        if len(same) > 1 and len(shared) > 1:
            told.append(COPIES(names=', '.join(same)))
    return told


_MOST = 0.5


class StudyFailure(NamedTuple):
    """A run that could not be judged, and why."""

    judge: str
    recording: str
    # `real`, or the variant whose run it was; empty when the recording could not be read.
    model: str
    reason: str

    @property
    def told(self) -> str:
        """Recording and reason, in one line."""
        # Some reasons begin with the path, which says more than the name.
        known = self.recording in self.reason.partition(': ')[0]
        return self.reason if known else f'{self.recording}: {self.reason}'


class Losses:
    """The runs of a study that do not count because something failed.

    Models are to be compared on the same recordings: one on which a run fails is left out under
    that judge for all of them. But a model that fails on more than half of the recordings of a
    group is left out itself there, for else it would take them from the others. `groups` has the
    group of every run of the study.
    """

    def __init__(self, failures: Sequence[StudyFailure], groups: Mapping[RunKey, str]) -> None:
        self._groups = {key[:2]: group for key, group in groups.items()}
        whole = {one[:2] for one in failures if one.model in ('', REAL)}
        tried = {
            ((key.judge, group, key.model), key.recording)
            for key, group in groups.items()
            if key[:2] not in whole
        }
        failed = {(self._model(one), one.recording) for one in failures if one[:2] not in whole}
        counts = Counter(model for model, _ in tried)
        self._models = {
            model
            for model, count in Counter(model for model, _ in failed).items()
            if count > _MOST * counts[model]
        }
        self._recordings = whole | {
            one[:2] for one in failures if self._model(one) not in self._models
        }
        self._failures = failures

    def __contains__(self, key: RunKey) -> bool:
        model = (key.judge, self._groups[key[:2]], key.model)
        return key[:2] in self._recordings or model in self._models

    def records(self) -> list[dict[str, Any]]:
        """Return the failures as plain values; `group` and `left_out`, recording or model, too."""
        found = []
        for one in self._failures:
            _, group, _ = model = self._model(one)
            whole = one[:2] in self._recordings and model not in self._models
            left_out = 'recording' if whole else 'model'
            found.append({**one._asdict(), 'group': group, 'left_out': left_out})
        return found

    def _model(self, one: StudyFailure) -> tuple[str, str, str]:
        return (one.judge, self._groups[one[:2]], one.model)


def told_failures(record: Mapping[str, Any]) -> list[str]:
    """Say what a study left out, each once, with the judges when these are not all.

    `record`: of a study, see `StudyOutcome`.
    """
    found: dict[str, list[str]] = {}
    models: dict[tuple[str, str, str], list[str]] = {}
    for failure in record['failures']:
        judge, model = failure.get('judge', ''), failure.get('model', '')
        text = StudyFailure(judge, failure['recording'], model, failure['reason']).told
        if failure.get('left_out') == 'model':
            models.setdefault((model, failure['group'], judge), []).append(text)
        else:
            shown = text if model in ('', REAL) else f'{text} ({model})'
            found.setdefault(shown, []).append(judge)
    for (model, group, judge), texts in models.items():
        where = f' in {group}' if group else ''
        text = f'model {model}{where}: fails on {len(texts)} recordings, as on {texts[0]}'
        found.setdefault(text, []).append(judge)
    judges = {judge['label'] for judge in record['judges']}
    return [
        text
        if judges <= set(concerned) or '' in concerned
        else f'{text} (judge {", ".join(concerned)})'
        for text, concerned in found.items()
    ]
