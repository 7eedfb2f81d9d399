# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The answer of a study: the model nearest to reality, its certainty, and the main doubt."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from sim2real_eval.common.findings import Finding, Severity, from_records
from sim2real_eval.metrics.options import REAL
from sim2real_eval.metrics.scores import POOLED
from sim2real_eval.metrics.uncertainty import Uncertainty
from .metric import VEPD
from .options import COPIES
from .outcome import StudyOutcome
from .secondary_results import (
    MetricTable,
    PoseRanking,
    SideResults,
    side_results,
    study_uncertainty,
)
from .sensitivity import SensitivityTable

Table = TypeVar('Table', MetricTable, SensitivityTable)
_ROUNDING = 1e-9
"""Difference in standard deviations of the real runs below which distances are equal."""


@dataclasses.dataclass(frozen=True)
class View:
    """Result of one judge in one group of recordings.

    Attributes
    ----------
    judge, group : str
        The group is empty in a study without groups.
    nearest : str
        Model with the smallest VEPD under this judge.
    p_value : float or None
        Test whether the model of the answer differs from the real sensors by VEPD, adjusted for
        the number of models; None with too few runs.
    distinguishable : bool or None
        Whether the model of the answer differs from the real sensors by VEPD or any other metric,
        in one test of all metrics at the level of the study; None with too few runs.
    tested : tuple of str
        Metrics of this test, VEPD first.
    distinguished_by : tuple of str
        Metrics by which it differs significantly, adjusted for their number.
    joint_p_value : float or None
        P-value of this test: the smallest adjusted p-value of the metrics.
    other_metrics, other_options : mapping of str to str
        Other nearest models, by the metric or by the option of VEPD, such as `warmup 5`, that
        gives them.
    metrics, options : int
        Number of other metrics, and of other options of VEPD, that rank the models.
    """

    judge: str
    group: str
    nearest: str
    p_value: float | None
    distinguishable: bool | None
    tested: tuple[str, ...]
    distinguished_by: tuple[str, ...]
    joint_p_value: float | None
    other_metrics: Mapping[str, str]
    other_options: Mapping[str, str]
    metrics: int
    options: int

    @property
    def label(self) -> str:
        """Judge and group."""
        return f'{self.judge}, {self.group}' if self.group else self.judge


class PoseView(NamedTuple):
    """The nearest model by a difference of position, heading or attitude."""

    quantity: str
    nearest: str
    distance: float  # in standard deviations of the real runs, with its interval
    low: float | None
    high: float | None
    p_value: float | None  # test whether it differs from the real sensors, for all models


class TransferView(NamedTuple):
    """Cost on the robot of a filter that was tuned on simulated recordings."""

    judge: str
    quantity: str  # loss of the filter: `RMS_UNITS` have shares as losses, `SCORES` differences
    best: str  # model with the least loss
    # Loss with the nearest model of the answer, against a filter tuned on real recordings: 0.05 is
    # 5 % more error; None if this model was not tried.
    loss: float | None
    low: float | None  # its interval; None with too few recordings
    high: float | None
    p_value: float | None  # adjusted for the number of models
    distinguishable: bool | None  # whether the loss is significant

    @classmethod
    def from_record(cls, record: Mapping[str, Any], nearest: str) -> TransferView:
        """Return the transfer loss of a model from the record that `read_transfer` returns."""
        models: dict[str, dict[str, Any]] = {model['model']: model for model in record['models']}
        model = models.get(nearest, {})
        return cls(
            str(record['judge']['name']),
            record['quantity'],
            record['models'][0]['model'],
            *(model.get(name) for name in ('loss', 'low', 'high', 'adjusted', 'distinguishable')),
        )


@dataclasses.dataclass(frozen=True)
class Answer:
    """The answer of a study under its first judge, and the results of other judges and metrics.

    Distances have the unit of VEPD. A value is None if there are too few runs for it.
    """

    nearest: str  # model with the smallest VEPD
    phrase: str  # short description of this model; may be empty
    models: int  # number of compared models
    recordings: int  # number of real motions
    distance: float  # VEPD of the nearest model, with its interval
    low: float | None
    high: float | None
    level: float  # level of the interval; a p-value is significant at 1 - level
    next: str | None  # second nearest model; None with a single model
    gap: float | None  # difference of the VEPD of both models
    gap_p_value: float | None  # test whether the two differ, adjusted for all pairs of models
    gap_distinguishable: bool | None  # result of this test at the level of the study
    more_motions: str  # number of recordings, or of blocks, that would distinguish the two
    probability: float | None  # share of resampled studies in which the model is nearest
    views: tuple[View, ...]  # every judge and group; the first is that of the answer
    doubts: tuple[Finding, ...]  # decisive findings about the answer, the worst first
    is_synthetic: bool  # whether recordings are stand-ins
    rmse: float | None = None  # mean RMSE of speed with the nearest model, m/s
    real_rmse: float | None = None  # the same with the real sensors
    caveat: Finding | None = None  # most important assumption about the recordings
    poses: tuple[PoseView, ...] = ()  # results for position, heading and attitude
    blocks: int | None = None  # number of motions, if recordings share blocks
    transfer: TransferView | None = None  # None if no transfer was run

    def with_transfer(self, record: Mapping[str, Any] | None) -> Answer:
        """Return the answer with the loss in a record of `read_transfer`, if there is one."""
        if record is None:
            return self
        return dataclasses.replace(self, transfer=TransferView.from_record(record, self.nearest))

    @property
    def doubt(self) -> Finding | None:
        """Worst decisive finding, or else the caveat unless the runs are too few; None without."""
        if self.doubts:
            return self.doubts[0]
        return self.caveat if self.view.p_value is not None else None

    @property
    def view(self) -> View:
        """View of the judge of the answer."""
        return self.views[0]

    @property
    def distinguishable(self) -> bool | None:
        """Whether the model differs from the real sensors by VEPD or any other metric."""
        return self.view.distinguishable

    @property
    def dissenting(self) -> list[View]:
        """Other judges or groups with another nearest model or another result of the test."""
        return [
            view
            for view in self.views[1:]
            if view.nearest != self.nearest
            or view.distinguishable not in (None, self.distinguishable)
        ]

    @property
    def is_unanimous(self) -> bool:
        """Whether all judges, metrics and options give the same answer."""
        return not (self.dissenting or self.view.other_metrics or self.view.other_options)

    def to_mapping(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {
            **values,
            'distinguishable': self.distinguishable,
            'agreed': self.is_unanimous,
            'views': [dataclasses.asdict(view) for view in self.views],
            'poses': [pose._asdict() for pose in self.poses],
            'transfer': None if self.transfer is None else self.transfer._asdict(),
            'doubts': [doubt.to_record() for doubt in self.doubts],
            'caveat': None if self.caveat is None else self.caveat.to_record(),
        }


@functools.lru_cache(maxsize=1)
def study_answer(outcome: StudyOutcome) -> Answer:
    """Return the answer of a study with real and simulated runs; the last answer is cached."""
    pooled = {key: scenarios[POOLED] for key, scenarios in study_uncertainty(outcome).items()}
    means = outcome.mean_rmse(*next(iter(pooled)), 'rmse')
    return answer_of(
        pooled,
        from_records(outcome.record['notes']),
        side_results(outcome),
        rmse={model: mean for (model, scenario), mean in means.items() if scenario == POOLED},
        phrases=outcome.record.get('phrases'),
        is_synthetic=bool(outcome.record.get('synthetic')),
    )


def answer_of(
    uncertainties: Mapping[tuple[str, str], Uncertainty],
    notes: Sequence[Finding],
    side: SideResults | None = None,
    *,
    rmse: Mapping[str, float] | None = None,
    phrases: Mapping[str, str] | None = None,
    is_synthetic: bool = False,
) -> Answer:
    """Return the answer of the first judge and group, and what the others say.

    Parameters
    ----------
    uncertainties : mapping of (judge, group) to Uncertainty
    notes : sequence of Finding
        Findings about the runs.
    side : SideResults, optional
        Results of other metrics and options.
    rmse : mapping, optional
        Mean RMSE of each model and of `real`, m/s.
    phrases : mapping, optional
        Short descriptions of models.
    is_synthetic : bool
        Whether recordings are stand-ins.
    """
    side, rmse = side or SideResults((), (), ()), rmse or {}
    key, first = next(iter(uncertainties.items()))
    judge, _ = key
    best, *other_models = first.order
    pair = first.pair(best.model, other_models[0].model) if other_models else None
    # Findings that only concern other models do not make the nearest one doubtful.
    other_groups = {f'simulated {model.model}' for model in other_models}
    notes = [
        note for note in notes if not note.runs or {run[0] for run in note.runs} - other_groups
    ]
    return Answer(
        nearest=best.model,
        phrase=(phrases or {}).get(best.model, ''),
        models=len(first.models),
        recordings=first.blocked or first.motions,
        distance=best.distance,
        low=best.low,
        high=best.high,
        level=first.options.level,
        next=other_models[0].model if other_models else None,
        gap=other_models[0].distance - best.distance if other_models else None,
        gap_p_value=pair.adjusted if pair else None,
        gap_distinguishable=pair.distinguishable if pair else None,
        more_motions=first.more(pair) if pair else '',
        probability=best.ranks[0] if best.ranks else None,
        views=tuple(
            _make_view(key, ranks, side, best.model) for key, ranks in uncertainties.items()
        ),
        doubts=tuple(_find_doubts(notes, judge)),
        is_synthetic=is_synthetic,
        rmse=rmse.get(best.model),
        real_rmse=rmse.get(REAL),
        caveat=next(iter(_find_doubts(notes, judge, Severity.ASSUMED)), None),
        poses=tuple(_make_pose_view(pose, best.model) for pose in side.poses if pose[:2] == key),
        blocks=first.motions if first.blocked else None,
    )


def _make_view(
    key: tuple[str, str], uncertainty: Uncertainty, side: SideResults, nearest: str
) -> View:
    """Return the view of a judge and group; `nearest` is the model of the answer."""
    metrics = _select_table(key, side.overall_metrics)
    options = _select_table(key, side.overall_sensitivity)
    nearest_by_metric = {
        row.metric.name: _nearest_model(metrics.models, row.distances, nearest)
        for row in (metrics.rows if metrics else ())
        if metrics and row.metric.is_secondary and any(d is not None for d in row.distances)
    }
    nearest_by_option = {
        row.label: _nearest_model(options.models, row.vepd, nearest)
        for row in (options.rows[1:] if options else ())
        if options and not row.problem
    }
    alpha = 1.0 - uncertainty.options.level
    p_value = next(
        (model.adjusted for model in uncertainty.models if model.model == nearest), None
    )
    # Without other metrics VEPD is tested alone.
    p_values = {} if p_value is None else {VEPD: p_value}
    if metrics and p_values:
        p_values = metrics.p_values(nearest) or p_values
    names = tuple(name for name, value in p_values.items() if value <= alpha)
    return View(
        *key,
        nearest=uncertainty.order[0].model,
        p_value=p_value,
        distinguishable=bool(names) if p_values else None,
        tested=tuple(p_values),
        distinguished_by=names,
        joint_p_value=min(p_values.values(), default=None),
        other_metrics={
            name: model for name, model in nearest_by_metric.items() if model != nearest
        },
        other_options={
            name: model for name, model in nearest_by_option.items() if model != nearest
        },
        metrics=len(nearest_by_metric),
        options=len(nearest_by_option),
    )


def _make_pose_view(ranking: PoseRanking, preferred: str) -> PoseView:
    """Return the view of the nearest model; it is the preferred one among equal distances."""
    first = ranking.uncertainty.order[0]
    best = next(
        (
            model
            for model in ranking.uncertainty.order
            if model.model == preferred and model.distance <= first.distance + _ROUNDING
        ),
        first,
    )
    return PoseView(
        ranking.difference.quantity, best.model, best.distance, best.low, best.high, best.adjusted
    )


def _select_table(key: tuple[str, str], tables: Sequence[Table]) -> Table | None:
    return next((table for table in tables if (table.judge, table.group) == key), None)


def _nearest_model(
    models: Sequence[str], distances: Sequence[float | None], preferred: str
) -> str:
    """Return the model with the smallest distance, or the preferred one among equals."""
    distances_by_model = {
        model: distance
        for model, distance in zip(models, distances, strict=True)
        if distance is not None
    }
    smallest = min(distances_by_model.values(), default=0.0)
    if distances_by_model.get(preferred, smallest) <= smallest:
        return preferred
    return min(distances_by_model, key=lambda model: distances_by_model[model])


def _find_doubts(
    notes: Sequence[Finding], judge: str, severity: Severity = Severity.DECISIVE
) -> list[Finding]:
    """Return the findings of a severity about a judge, the most important first.

    Copies come first, because they invalidate every p-value. Then come findings of the checks,
    of the whole study and of the real runs, and those that concern the most runs.
    """

    def sort_key(finding: Finding) -> tuple[bool, bool, bool, bool, bool, float]:
        total = sum(total for _, _, total in finding.runs)
        share = sum(count for _, count, _ in finding.runs) / total if total else 1.0
        return (
            finding.kind is not COPIES,
            not finding.code.startswith('check.'),
            bool(finding.runs),
            REAL not in [group for group, _, _ in finding.runs],
            # Errors that are large for their covariance are a symptom of another problem.
            finding.code.startswith('check.covariance'),
            -share,
        )

    where = f'judge {judge}'
    doubts = [
        # The answer names its judge.
        dataclasses.replace(note, where='') if note.where == where else note
        for note in notes
        if note.severity == severity
        and (not note.where.startswith('judge ') or note.where == where)
    ]
    return sorted(doubts, key=sort_key)
