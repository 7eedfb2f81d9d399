# SPDX-License-Identifier: Apache-2.0
"""VEPD's like for position, heading and attitude: distances without units, and what is known of
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from sim2real_eval.common.tables import Field
from sim2real_eval.metrics.series_folder import REAL
from sim2real_eval.metrics.uncertainty.assessment import uncertainty
from sim2real_eval.metrics.uncertainty.result import Uncertainty, UncertaintyOptions
from .outcome import StudyOutcome
from .run import scored_runs


class PoseDifference(NamedTuple):
    """A distance between the errors that real and simulated sensors cause."""

    name: str
    quantity: str
    key: str  # of the RMSE of a run
    unit: str


POSE_DIFFERENCES = (
    PoseDifference('PEPD', 'position', 'position_rmse', 'm'),
    PoseDifference('HEPD', 'heading', 'yaw_rmse', 'rad'),
    PoseDifference('AEPD', 'attitude', 'orientation_rmse', 'rad'),
)
"""W1 between the RMSE of real and simulated runs, over the deviation of the real ones."""


class PoseRanking(NamedTuple):
    """What is known of one difference under a judge, over all scenarios of a group."""

    judge: str
    group: str
    difference: PoseDifference
    deviation: float  # of the RMSE of the real runs: the distance 1, in the unit of the difference
    known: Uncertainty

    @property
    def label(self) -> str:
        """Judge and group."""
        return f'{self.judge}, {self.group}' if self.group else self.judge

    def rows(self) -> Iterator[tuple[Field, ...]]:
        """Return a row of `POSE_COLUMNS` per model, the nearest first."""
        one = self.difference
        for model in self.known.order:
            values = {**vars(model), 'p_value_adjusted': model.adjusted}
            place = (self.judge, self.group, one.name, one.quantity, one.unit, self.deviation)
            yield *place, *(values[name] for name in POSE_COLUMNS[len(place) :])


POSE_COLUMNS = (
    'judge', 'group', 'difference', 'quantity', 'unit', 'deviation', 'model', 'n_real', 'n_sim',
    'distance', 'estimate', 'low', 'high', 'null_median', 'null_high', 'p_value',
    'p_value_adjusted', 'significance_groups',
)  # fmt: skip
"""Columns of pose.csv; from `model` on as `DistanceUncertainty` calls them."""


def pose_rankings(outcome: StudyOutcome) -> tuple[PoseRanking, ...]:
    """Return all differences that every run of a judge and group has.

    The statistics are those of VEPD, of one coordinate: null distribution, interval, p-values.
    Whatever the unit, the result is the same. Real runs that do not differ have no deviation.
    """
    given: Mapping[str, Any] = outcome.record.get('uncertainty') or {}
    options = UncertaintyOptions.from_mapping(given, 'uncertainty')
    seed, found = int(outcome.record.get('seed', 0)), []
    for judge, group in outcome.compared:
        runs = outcome.by_model(judge, group)
        every = [run for of_model in runs.values() for run in of_model]
        for one in POSE_DIFFERENCES:
            if not all(one.key in run.values for run in every) or len(runs[REAL]) < 2:
                continue
            deviation = float(np.std([run.values[one.key] for run in runs[REAL]], ddof=1))
            if not deviation > 0.0:
                continue
            sims = {
                model: scored_runs(of_model, outcome.blocks, {one.key: deviation})
                for model, of_model in runs.items()
            }
            real = sims.pop(REAL)
            known = uncertainty(real, sims, options, seed=seed)
            found.append(PoseRanking(judge, group, one, deviation, known))
    return tuple(found)
