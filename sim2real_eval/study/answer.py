# SPDX-License-Identifier: Apache-2.0
"""The answer of a study: which model is nearest to reality, how sure, and why to doubt it."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from sim2real_eval.common.findings import Finding, Severity, from_records
from sim2real_eval.metrics.distances import POOLED
from sim2real_eval.metrics.series_folder import REAL
from sim2real_eval.metrics.uncertainty.result import Uncertainty
from .findings import COPIES
from .outcome import StudyOutcome
from .secondary_results import (
    LEVEL,
    MetricTable,
    PoseRanking,
    SideResults,
    side_results,
    study_uncertainty,
)
from .sensitivity import SensitivityTable

Table = TypeVar('Table', MetricTable, SensitivityTable)


@dataclasses.dataclass(frozen=True)
class View:
    """What one judge says, in one group of recordings."""

    # The group is empty in a study without groups.
    judge: str
    group: str
    nearest: str  # model with the smallest VEPD under this judge
    # Whether the model of the answer, which may be another, differs from the real sensors by VEPD;
    # adjusted for the number of models. None where so few runs cannot tell.
    p_value: float | None
    distinguishable: bool | None  # the same, at the level of the study
    tested: int  # other metrics that can tell whether that model differs
    distinguished_by: tuple[str, ...]  # those by which it does, adjusted for the number of metrics
    # Metrics, and options of VEPD such as `warmup 5`, under which another model is nearest; with
    # that model.
    other_metrics: Mapping[str, str]
    other_options: Mapping[str, str]
    # Other metrics, and other options of VEPD, that rank the models.
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
    # In standard deviations of the real runs.
    distance: float
    low: float | None
    high: float | None
    p_value: float | None  # whether it differs from the real sensors; adjusted for all models


@dataclasses.dataclass(frozen=True)
class Answer:
    """The answer of a study, under its first judge; what other judges and metrics say of it.

    Distances have the unit of VEPD. None stands for what so few runs cannot tell.
    """

    # Model with the smallest VEPD, and what it is in a few words, empty where nobody says.
    nearest: str
    phrase: str
    # How many were compared, and on how many real motions.
    models: int
    recordings: int
    # VEPD of the nearest model and its interval.
    distance: float
    low: float | None
    high: float | None
    level: float  # of the interval; a p-value is significant at 1 - level
    next: str | None  # model that follows; None with a single one
    gap: float | None  # how much farther that is
    gap_p_value: float | None  # whether the two differ, adjusted for all pairs of models
    gap_distinguishable: bool | None  # the same, at the level of the study
    more_motions: str  # how many more recordings would make the two distinguishable
    probability: float | None  # share of resampled studies in which the model is nearest
    views: tuple[View, ...]  # of every judge and group; the first is that of the answer
    doubts: tuple[Finding, ...]  # decisive findings about the answer, the worst first
    is_synthetic: bool  # whether stand-ins take the place of real sensors
    # Mean RMSE of speed with the nearest model and with the real sensors, m/s.
    rmse: float | None = None
    real_rmse: float | None = None
    # What was assumed of the recordings that counts most, where nothing is decisive.
    caveat: Finding | None = None
    poses: tuple[PoseView, ...] = ()  # what position, heading and attitude say, under its judge
    blocks: int | None = None  # of recordings that are not independent of each other

    @property
    def doubt(self) -> Finding | None:
        """The worst finding about the answer; None where fewness or nothing else is worse."""
        if self.doubts:
            return self.doubts[0]
        return self.caveat if self.view.p_value is not None else None

    @property
    def view(self) -> View:
        """What the judge of the answer says."""
        return self.views[0]

    @property
    def distinguishable(self) -> bool | None:
        """Whether the model differs from the real sensors by VEPD or any other metric."""
        return True if self.view.distinguished_by else self.view.distinguishable

    @property
    def dissenting(self) -> list[View]:
        """Other judges, or groups, that name another model or see the difference otherwise."""
        own = self.view
        return [
            one
            for one in self.views[1:]
            if one.nearest != self.nearest
            or (one.distinguishable is not None and one.distinguishable != own.distinguishable)
        ]

    @property
    def agreed(self) -> bool:
        """Whether all judges, metrics and options of the run say the same."""
        own = self.view
        hidden = own.distinguished_by if not own.distinguishable else ()
        others = own.other_metrics or own.other_options
        return not (self.dissenting or hidden or self.silent or others)

    @property
    def silent(self) -> int:
        """Other metrics that do not distinguish a single model which VEPD distinguishes."""
        own = self.view
        alone = self.models == 1 and own.distinguishable
        return own.tested - len(own.distinguished_by) if alone else 0

    def to_mapping(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {
            **values,
            'agreed': self.agreed,
            'views': [dataclasses.asdict(one) for one in self.views],
            'poses': [one._asdict() for one in self.poses],
            'doubts': [one.to_record() for one in self.doubts],
            'caveat': None if self.caveat is None else self.caveat.to_record(),
        }


@functools.lru_cache(maxsize=1)
def study_answer(outcome: StudyOutcome) -> Answer:
    """Return the answer of a study that compares something.

    That of the last study is remembered: its folder, its page and the terminal ask for the same.
    """
    known = {place: scenarios[POOLED] for place, scenarios in study_uncertainty(outcome).items()}
    means = outcome.mean_rmse(*next(iter(known)), 'rmse')
    return answer_of(
        known,
        from_records(outcome.record['notes']),
        side_results(outcome),
        rmse={model: one for (model, scenario), one in means.items() if scenario == POOLED},
        phrases=outcome.record.get('phrases'),
        is_synthetic=bool(outcome.record.get('synthetic')),
    )


def answer_of(
    known: Mapping[tuple[str, str], Uncertainty],
    notes: Sequence[Finding],
    side: SideResults | None = None,
    *,
    rmse: Mapping[str, float] | None = None,
    phrases: Mapping[str, str] | None = None,
    is_synthetic: bool = False,
) -> Answer:
    """Return the answer that rankings by judge and group give, of which the first counts.

    `notes`: findings about the runs; `side`: what other metrics and options say; `rmse`: mean RMSE
    of each model and of `real`, m/s; `phrases`: what models are, in a few words.
    """
    side, rmse = side or SideResults((), (), ()), rmse or {}
    place, first = next(iter(known.items()))
    judge, _ = place
    best, *others = first.order
    pair = first.pair(best.model, others[0].model) if others else None
    # What is found in runs of other models only is no doubt about the nearest.
    farther = {f'simulated {one.model}' for one in others}
    about = [note for note in notes if not note.runs or {run[0] for run in note.runs} - farther]
    return Answer(
        nearest=best.model,
        phrase=(phrases or {}).get(best.model, ''),
        models=len(first.models),
        recordings=first.blocked or first.motions,
        distance=best.distance,
        low=best.low,
        high=best.high,
        level=first.options.level,
        next=others[0].model if others else None,
        gap=others[0].distance - best.distance if others else None,
        gap_p_value=pair.adjusted if pair else None,
        gap_distinguishable=pair.distinguishable if pair else None,
        more_motions=first.more(pair) if pair else '',
        probability=best.ranks[0] if best.ranks else None,
        views=tuple(_view(place, one, side, best.model) for place, one in known.items()),
        doubts=tuple(_doubts(about, judge)),
        is_synthetic=is_synthetic,
        rmse=rmse.get(best.model),
        real_rmse=rmse.get(REAL),
        caveat=next(iter(_doubts(about, judge, Severity.ASSUMED)), None),
        poses=tuple(_pose(one) for one in side.poses if one[:2] == place),
        blocks=first.motions if first.blocked else None,
    )


def _view(place: tuple[str, str], known: Uncertainty, side: SideResults, nearest: str) -> View:
    metrics = _of(place, side.overall_metrics)
    options = _of(place, side.overall_sensitivity)
    other_metrics, adjusted = dict[str, str](), dict[str, float]()
    for row in metrics.rows if metrics else ():
        if metrics and row.metric.is_secondary and any(d is not None for d in row.distances):
            other_metrics[row.metric.name] = _nearest(metrics.models, row.distances, nearest)
            among_all = dict(zip(metrics.models, row.adjusted, strict=True)).get(nearest)
            if among_all is not None:
                adjusted[row.metric.name] = among_all
    other_options = {
        row.label: _nearest(options.models, row.vepd, nearest)
        for row in (options.rows[1:] if options else ())
        if options and not row.problem
    }
    one = next((one for one in known.models if one.model == nearest), None)
    p_value = one.adjusted if one else None
    return View(
        *place,
        nearest=known.order[0].model,
        p_value=p_value,
        distinguishable=None if p_value is None else p_value <= 1.0 - known.options.level,
        tested=len(adjusted),
        distinguished_by=tuple(name for name, one in adjusted.items() if one <= LEVEL),
        other_metrics={name: one for name, one in other_metrics.items() if one != nearest},
        other_options={name: one for name, one in other_options.items() if one != nearest},
        metrics=len(other_metrics),
        options=len(other_options),
    )


def _pose(ranking: PoseRanking) -> PoseView:
    best = ranking.known.order[0]
    return PoseView(
        ranking.difference.quantity, best.model, best.distance, best.low, best.high, best.adjusted
    )


def _of(place: tuple[str, str], tables: Sequence[Table]) -> Table | None:
    return next((one for one in tables if (one.judge, one.group) == place), None)


def _nearest(models: Sequence[str], distances: Sequence[float | None], given: str) -> str:
    """Return the model with the smallest distance; that given where it is as near as any."""
    known = {model: one for model, one in zip(models, distances, strict=True) if one is not None}
    least = min(known.values(), default=0.0)
    return given if known.get(given, least) <= least else min(known, key=lambda one: known[one])


def _doubts(
    notes: Sequence[Finding], judge: str, severity: Severity = Severity.DECISIVE
) -> list[Finding]:
    """Return findings about a judge: what checks found, of the study, of real, of most runs."""

    def rank(one: Finding) -> tuple[bool, bool, bool, bool, bool, float]:
        total = sum(total for _, _, total in one.runs)
        share = sum(count for _, count, _ in one.runs) / total if total else 1.0
        real = REAL in [group for group, _, _ in one.runs]
        # Errors that are large for their covariance are a symptom of whatever else is wrong.
        symptom = one.code.startswith('check.covariance')
        checked = one.code.startswith('check.')
        # With copies no p-value is what it says.
        return one.kind is not COPIES, not checked, bool(one.runs), not real, symptom, -share

    about = [
        # Whose answer it is has been said.
        dataclasses.replace(one, where='') if one.where == f'judge {judge}' else one
        for one in notes
        if one.severity == severity
        and (not one.where.startswith('judge ') or one.where == f'judge {judge}')
    ]
    return sorted(about, key=rank)
