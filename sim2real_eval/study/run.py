# SPDX-License-Identifier: Apache-2.0
"""One judged run of a study: which it is, and the numbers that it gave."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

from sim2real_eval.metrics import RunScore
from sim2real_eval.series_folder import REAL

__all__ = ['RunKey', 'StudyRun']


class RunKey(NamedTuple):
    """What tells a run from all others of its study.

    Attributes
    ----------
    judge : str
        Label of the judge.
    recording : str
        Name of the recording whose true motion it follows. Runs that share it are paired.
    model : str
        `real` or the label of a simulated variant.
    repetition : int
        From 1; 1 for the real run.
    """

    judge: str
    recording: str
    model: str
    repetition: int


@dataclasses.dataclass(frozen=True, eq=False)
class StudyRun:
    """Numbers of one judged run; its signals are in a file, see `StudyOutcome.signals`.

    Attributes
    ----------
    key : RunKey
    scenario : str
    group : str
        Label of the study file for what recordings have in common (a surface, a condition); empty
        if there is none.
    values : mapping
        Numbers by name. Always there: those of `RunScore` (`rmse`, `entropy_gt`, `entropy_se`,
        `entropy_difference`, `n_samples`, `duration`), `forward_rmse` (m/s), `estimates` and
        `fixes_used`. Others, such as `position_rmse`, where they can be had: a run without truth
        of position has none.
    notes : tuple of str
        What the user should know, most important first.
    """

    key: RunKey
    scenario: str
    group: str
    values: Mapping[str, float]
    notes: tuple[str, ...] = ()

    @property
    def is_real(self) -> bool:
        """Whether its sensors are the recorded ones."""
        return self.key.model == REAL

    @property
    def score(self) -> RunScore:
        """Numbers that VEPD compares."""
        return RunScore(
            rmse=self.values['rmse'],
            entropy_gt=self.values['entropy_gt'],
            entropy_se=self.values['entropy_se'],
            entropy_difference=self.values['entropy_difference'],
            n_samples=int(self.values['n_samples']),
            duration=self.values['duration'],
        )
