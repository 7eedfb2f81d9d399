# SPDX-License-Identifier: Apache-2.0
"""A study as a gate needs it: distances, scores, and how they were made."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sim2real_eval.metrics.distances import POOLED
from sim2real_eval.metrics.series_folder import REAL
from sim2real_eval.metrics.uncertainty.motions import ScoredRuns
from sim2real_eval.study.outcome import StudyOutcome
from sim_sensors.core.errors import Sim2RealError

_MUST_MATCH = ('component', 'metric', 'start_heading')
_SYNTHETIC = 'synthetic'


class Cell(NamedTuple):
    """One number that a gate holds against a limit.

    Attributes
    ----------
    judge, group, model, scenario : str
        The group is empty where there is none; scenario `all` is all of them pooled.
    """

    judge: str
    group: str
    model: str
    scenario: str

    def __str__(self) -> str:
        where = f'{self.judge}, {self.group}' if self.group else self.judge
        scenario = 'all scenarios' if self.scenario == POOLED else self.scenario
        return f'{self.model} in {scenario} (judge {where})'


class ComparisonKey(NamedTuple):
    """Where runs are compared."""

    judge: str
    group: str
    scenario: str


@dataclasses.dataclass(frozen=True, eq=False)
class GatedResult:
    """What a gate reads of a result.

    Attributes
    ----------
    path : str
    vepd : dict of Cell to float
    runs : dict of ComparisonKey to dict of model (or `real`) to ScoredRuns
    settings : mapping
        What must be alike in two results that are compared.
    judges : dict of str to tuple of str
        SHA-256 of the parameter files of each judge.
    failures : tuple of str
        Recordings that were left out.
    synthetic : bool
        Whether recordings are stand-ins.
    """

    path: str
    vepd: Mapping[Cell, float]
    runs: Mapping[ComparisonKey, Mapping[str, ScoredRuns]]
    settings: Mapping[str, Any]
    judges: Mapping[str, tuple[str, ...]]
    failures: tuple[str, ...]
    synthetic: bool = False

    @classmethod
    def read(cls, path: str | Path) -> GatedResult:
        """Read the folder of a study, or its study.json under whatever name.

        Raises
        ------
        Sim2RealError
            When there is none, or it is not readable as one.
        """
        return _of_study(str(path), StudyOutcome.read(path))

    def differs(self, other: GatedResult) -> str | None:
        """Say in which setting two results differ; None when they can be compared."""
        for name, mine in self.settings.items():
            if name in other.settings and mine != other.settings[name]:
                return f'{name} is {other.settings[name]!r} there and {mine!r} here'
        for label, files in self.judges.items():
            if label in other.judges and files != other.judges[label]:
                return f'judge {label} has other parameters there than here'
        return None


def _of_study(path: str, outcome: StudyOutcome) -> GatedResult:
    vepd, rows = {}, []
    for judge, group in outcome.compared:
        for row in outcome.table(judge, group):
            vepd[Cell(judge, group, row.model, row.scenario)] = row.vepd
    for run in outcome.runs:
        rows.append(
            (
                run.key.judge,
                run.group,
                run.key.model,
                run.scenario,
                run.key.recording,
                run.values['rmse'],
                run.values['entropy_difference'],
            )
        )
    if not vepd or not all(map(math.isfinite, vepd.values())):
        # NaN is above no limit: it would pass.
        raise Sim2RealError(f'{path}: holds no distances, or some that are no numbers')
    record = outcome.record
    return GatedResult(
        path,
        vepd,
        _places(rows),
        {name: record[name] for name in (*_MUST_MATCH, _SYNTHETIC) if name in record},
        {one['label']: _digests(one) for one in record['judges']},
        tuple(sorted({failure['recording'] for failure in record['failures']})),
        bool(record.get(_SYNTHETIC)),
    )


def _digests(judge: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(file['sha256'] for file in judge.get('files', ()))


def _places(
    rows: Iterable[tuple[str, str, str, str, str, float, float]],
) -> dict[ComparisonKey, dict[str, ScoredRuns]]:
    found: dict[ComparisonKey, dict[str, list[tuple[str, str, float, float]]]] = {}
    for judge, group, model, scenario, recording, rmse, entropy in rows:
        for place in (ComparisonKey(judge, group, scenario), ComparisonKey(judge, group, POOLED)):
            runs = found.setdefault(place, {}).setdefault(model, [])
            runs.append((recording, scenario, rmse, entropy))
    return {
        place: {
            model: ScoredRuns(
                np.array([run[2:] for run in runs], dtype=np.float64),
                tuple(run[0] for run in runs),
                tuple(run[1] for run in runs),
            )
            for model, runs in models.items()
        }
        for place, models in found.items()
        if REAL in models
    }


# What came of one number.


@dataclasses.dataclass(frozen=True)
class GateCase:
    """One number, held against its limits.

    Attributes
    ----------
    vepd : float or None
        None: the baseline has it, the result has not.
    low, high, p_value, null_median : float or None
        From `uncertainty`; None where that cannot be told.
    baseline, increase, increase_low, increase_high : float or None
        VEPD of the baseline, and how much more it is now, with its interval.
    broken : tuple of str
        Limits that are broken, in words; empty: passed.
    skipped : str
        Why nothing was held against it; empty as a rule.
    """

    cell: Cell
    vepd: float | None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    null_median: float | None = None
    baseline: float | None = None
    increase: float | None = None
    increase_low: float | None = None
    increase_high: float | None = None
    broken: tuple[str, ...] = ()
    skipped: str = ''

    def to_mapping(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        fields = dataclasses.asdict(self)
        del fields['cell']
        passed = not self.broken and not self.skipped
        return {**self.cell._asdict(), 'passed': passed, **fields, 'broken': list(self.broken)}
