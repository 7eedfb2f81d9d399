# SPDX-License-Identifier: Apache-2.0
"""Uncertainty of distances between real and simulated runs: options and results."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

from sim2real_eval.common.findings import Finding, to_records
from sim_sensors.core.parameters import Parameters, rare


@dataclasses.dataclass(frozen=True)
class UncertaintyOptions(Parameters):
    """Options of `uncertainty`; see docs/explanation/uncertainty.md for what they do.

    Examples
    --------
    >>> UncertaintyOptions(resamples=1000).level
    0.95
    """

    resamples: int = rare(
        10_000,
        '1',
        'Permutations and resamples of the motions. Where all permutations are fewer, each is '
        'taken once and the chance is exact.',
        minimum=100,
        maximum=10_000_000,
    )
    level: float = rare(
        0.95,
        '1',
        'Share of studies whose intervals hold the true distance; differences with an adjusted '
        'chance of at most one minus it are called real.',
        minimum=0.5,
        maximum=0.999,
    )
    power: float = rare(
        0.8,
        '1',
        'Power: probability to detect a difference of two models, for the number of further '
        'motions.',
        minimum=0.5,
        maximum=0.999,
    )
    most_motions: int = rare(
        1000, '1', 'Beyond so many further motions only "more than" is said.', minimum=1
    )


@dataclasses.dataclass(frozen=True)
class DistanceUncertainty:
    """The distance of one model from reality. Distances have the unit of the metric.

    Attributes
    ----------
    model : str
    n_real, n_sim : int
        Runs.
    distance : float
        Between the sets of runs as they are; sampling alone makes it larger than zero.
    estimate : float or None
        The distance less what sampling adds, never below 0 (median-unbiased).
    low, high : float or None
        Interval for the distance between the processes that the runs were drawn from; `low` is 0
        when they may be one.
    null_median, null_high : float or None
        Median and `level` quantile of the distance that a model with the real process would have
        with these numbers of runs; at least `Uncertainty.repeat`.
    p_value : float or None
        Share of permutations that give at least the distance: that of so large a gap from a model
        with the real process.
    adjusted : float or None
        The same when the most striking of all models is looked at.
    significance_groups : str
        Models that share a letter are not significantly different; empty where that is unknown.
    ranks : tuple of float
        Probability of rank 1, 2, ... among the models; empty where it cannot be told.

    Notes
    -----
    None stands for what cannot be told from so few motions.
    """

    model: str
    n_real: int
    n_sim: int
    distance: float
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    null_median: float | None = None
    null_high: float | None = None
    p_value: float | None = None
    adjusted: float | None = None
    significance_groups: str = ''
    ranks: tuple[float, ...] = ()


@dataclasses.dataclass(frozen=True)
class PairUncertainty:
    """Comparison of two models by their distance to the real runs."""

    # Models, in the order of the study
    first: str
    second: str
    # Distance of the first less that of the second: negative when the first is closer
    difference: float
    # Interval for the true difference, of this pair alone
    low: float | None = None
    high: float | None = None
    # Of so large a difference from two models of one process, of this pair alone
    p_value: float | None = None
    adjusted: float | None = None  # the same when the most striking of all pairs is looked at
    # Whether the two are significantly different, adjusted for all pairs
    distinguishable: bool | None = None
    # How many more motions would make them significantly different with the probability `power` if
    # the difference is what it seems; 0 if they are apart; None when more than `most_motions`, or
    # when it cannot be told (`low` is None)
    more_motions: int | None = None


@dataclasses.dataclass(frozen=True)
class Uncertainty:
    """Everything that resampling says of one table of distances.

    Attributes
    ----------
    options : UncertaintyOptions
    paired : bool
        Whether every simulated run follows the motion of a real one.
    motions : int
        Independent motions behind the real runs.
    real_split : float or None
        Median distance between halves of the real runs, or of their blocks; None with fewer
        than four.
    models : tuple of DistanceUncertainty
        In the order given.
    pairs : tuple of PairUncertainty
        Every pair of models.
    notes : tuple of Finding
        What cannot be told, and why.
    repeat : float or None
        Distance of the real runs from themselves judged once more: 0 for a judge that gives the
        same numbers, None for one that was not asked again.
    blocked : int or None
        Real recordings, where the motions are blocks of them.
    """

    options: UncertaintyOptions
    paired: bool
    motions: int
    real_split: float | None
    models: tuple[DistanceUncertainty, ...]
    pairs: tuple[PairUncertainty, ...] = ()
    notes: tuple[Finding, ...] = ()
    repeat: float | None = None
    blocked: int | None = None

    def of(self, model: str) -> DistanceUncertainty:
        """Return what is known of a model."""
        return next(assessment for assessment in self.models if assessment.model == model)

    def pair(self, first: str, second: str) -> PairUncertainty:
        """Return what is known of two models, in either order; the difference is as in `pairs`."""
        return self._by_models[frozenset((first, second))]

    @functools.cached_property
    def _by_models(self) -> dict[frozenset[str], PairUncertainty]:
        return {frozenset((pair.first, pair.second)): pair for pair in self.pairs}

    def ranks_not_distinguishable(self, model: str) -> list[int]:
        """Return the ranks, from 1, of the models that do not differ significantly from one."""
        order = [assessment.model for assessment in self.order]
        return [
            place
            for place, other in enumerate(order, 1)
            if other == model or self.pair(model, other).distinguishable is False
        ]

    def more(self, pair: PairUncertainty) -> str:
        """Say how many more motions would make two models significantly different."""
        if pair.low is None:
            return 'cannot be told'
        if pair.more_motions is None:
            return f'more than {self.options.most_motions}'
        return str(pair.more_motions)

    def to_mapping(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            'options': self.options.to_mapping(),
            'paired': self.paired,
            'motions': self.motions,
            'real_split': self.real_split,
            'repeat': self.repeat,
            'models': [_json_fields(assessment) for assessment in self.models],
            'pairs': [{**_json_fields(pair), 'more': self.more(pair)} for pair in self.pairs],
            'notes': to_records(self.notes),
        }

    @property
    def order(self) -> Sequence[DistanceUncertainty]:
        """Models from the closest to the farthest."""
        return sorted(self.models, key=lambda assessment: assessment.distance)


def _json_fields(record: Any) -> dict[str, Any]:
    fields = dataclasses.asdict(record)
    return {
        key: list(value) if isinstance(value, tuple) else value for key, value in fields.items()
    }
