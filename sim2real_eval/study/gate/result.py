# SPDX-License-Identifier: Apache-2.0
"""A study as a gate needs it: distances, scores, and how they were made."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sim2real_eval.metrics.distances import POOLED
from sim2real_eval.metrics.series_folder import REAL
from sim2real_eval.metrics.uncertainty.motions import ScoredRuns
from sim2real_eval.study.outcome import StudyOutcome
from sim2real_eval.study.run import StudyRun, scored_runs
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
        outcome = StudyOutcome.read(path)
        record = outcome.record
        vepd = {
            Cell(judge, group, row.model, row.scenario): row.vepd
            for judge, group in outcome.compared
            for row in outcome.table(judge, group)
        }
        if not vepd or not all(map(math.isfinite, vepd.values())):
            # NaN is above no limit: it would pass.
            raise Sim2RealError(f'{path}: holds no distances, or some that are no numbers')
        runs: dict[ComparisonKey, dict[str, list[StudyRun]]] = {}
        for run in outcome.runs:
            for scenario in (run.scenario, POOLED):
                place = ComparisonKey(run.key.judge, run.group, scenario)
                runs.setdefault(place, {}).setdefault(run.key.model, []).append(run)
        return cls(
            str(path),
            vepd,
            {
                place: {model: scored_runs(found) for model, found in models.items()}
                for place, models in runs.items()
                if REAL in models
            },
            {name: record[name] for name in (*_MUST_MATCH, _SYNTHETIC) if name in record},
            {
                one['label']: tuple(file['sha256'] for file in one.get('files', ()))
                for one in record['judges']
            },
            tuple(sorted({failure['recording'] for failure in record['failures']})),
            bool(record.get(_SYNTHETIC)),
        )

    def differs(self, other: GatedResult) -> str | None:
        """Say in which setting two results differ; None when they can be compared."""
        for name, mine in self.settings.items():
            if name in other.settings and mine != other.settings[name]:
                return f'{name} is {other.settings[name]!r} there and {mine!r} here'
        for label, files in self.judges.items():
            if label in other.judges and files != other.judges[label]:
                return f'judge {label} has other parameters there than here'
        return None


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
        fields = {**vars(self), 'broken': list(self.broken)}
        del fields['cell']
        passed = not self.broken and not self.skipped
        return {**self.cell._asdict(), 'passed': passed, **fields}
