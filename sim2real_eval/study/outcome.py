# SPDX-License-Identifier: Apache-2.0
"""All runs of a study, and where their signals are."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from sim2real_eval.metrics import VepdRow, vepd_table
from sim2real_eval.metrics.scores import RunScore
from sim2real_eval.series_folder import REAL
from sim2real_eval.study.run import RunKey, StudyRun
from sim2real_eval.study.signals import RunSignals

__all__ = ['StudyOutcome']


@dataclasses.dataclass(frozen=True, eq=False)
class StudyOutcome:
    """What a study came to.

    Attributes
    ----------
    record : mapping
        Everything needed to repeat and to read the study, as plain values: `title`, `about`,
        `seed`, `repetitions`, `component`, `metric`, `synthetic` (whether recordings are
        stand-ins), `versions`, `judges`, `models`, `recordings`, `failures`, `notes`.
    runs : tuple of StudyRun
        Judge by judge, in each recording by recording: the real run, then variant by variant.
    load : callable
        Returns the signals of a run.
    """

    record: Mapping[str, Any]
    runs: tuple[StudyRun, ...]
    load: Callable[[RunKey], RunSignals]

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

    def of(
        self,
        judge: str,
        model: str,
        *,
        scenario: str | None = None,
        group: str | None = None,
    ) -> list[StudyRun]:
        """Return the runs of a model, or `real`, under a judge, of one scenario, group or all."""
        return [
            run
            for run in self.runs
            if (run.key.judge, run.key.model) == (judge, model)
            and scenario in (None, run.scenario)
            and group in (None, run.group)
        ]

    def signals(self, key: RunKey) -> RunSignals:
        """Read the signals of a run.

        Raises
        ------
        Sim2RealError
            When the file cannot be read.
        """
        return self.load(key)

    def table(self, judge: str, group: str | None = None) -> list[VepdRow]:
        """Return the VEPD of every model per scenario and pooled, under a judge."""

        def scores(model: str) -> dict[str, list[RunScore]]:
            found: dict[str, list[RunScore]] = {}
            for run in self.of(judge, model, group=group):
                found.setdefault(run.scenario, []).append(run.score)
            return found

        return vepd_table(scores(REAL), {model: scores(model) for model in self.models})
