# SPDX-License-Identifier: Apache-2.0
"""Scores of the runs of one source, with what resampling must know of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sim_sensors.measurements import FloatArray

if TYPE_CHECKING:
    from sim2real_eval.metrics.scores import RunScore
    from sim2real_eval.study.run import StudyRun

__all__ = ['ScoredRuns']


@dataclasses.dataclass(frozen=True, eq=False)
class ScoredRuns:
    """Scores of real runs, or of the runs of one model.

    Attributes
    ----------
    values : (n, k) float
        Coordinates of each run between which distances are taken: RMSE [m/s] and entropy
        difference for VEPD.
    motion : tuple of str
        What each run follows. Runs of different sources with the same motion are paired.
    scenario : tuple of str
        Stratum of each run.
    """

    values: FloatArray
    motion: tuple[str, ...]
    scenario: tuple[str, ...]

    @classmethod
    def of(
        cls, runs: Sequence[StudyRun], names: Sequence[str] = ('rmse', 'entropy_difference')
    ) -> ScoredRuns:
        """Take the named values of the runs of one source."""
        return cls(
            np.array([[run.values[name] for name in names] for run in runs]).reshape(
                len(runs), len(names)
            ),
            tuple(run.key.recording for run in runs),
            tuple(run.scenario for run in runs),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Motions with their scenarios: two scenarios may call a motion alike."""
        return tuple(f'{a}\x00{b}' for a, b in zip(self.scenario, self.motion, strict=True))

    @classmethod
    def of_scores(
        cls, scores: Sequence[RunScore], motion: Sequence[str], scenario: Sequence[str]
    ) -> ScoredRuns:
        """Take what VEPD compares of the scores of runs."""
        values = [(score.rmse, score.entropy_difference) for score in scores]
        return cls(np.array(values).reshape(len(values), 2), tuple(motion), tuple(scenario))

    def of_scenario(self, scenario: str) -> ScoredRuns:
        """Return the runs of one scenario."""
        chosen = [i for i, one in enumerate(self.scenario) if one == scenario]
        return ScoredRuns(
            self.values[chosen],
            tuple(self.motion[i] for i in chosen),
            tuple(self.scenario[i] for i in chosen),
        )

    def __len__(self) -> int:
        return len(self.values)
