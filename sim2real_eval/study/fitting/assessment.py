# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Credibility of a fit: prediction of held-out recordings, and intervals of the parameters."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
from scipy.stats import norm, t

from sim2real_eval.metrics.interval import ScoredRuns
from sim2real_eval.metrics.options import UncertaintyOptions
from sim2real_eval.metrics.uncertainty import Uncertainty, uncertainty
from sim2real_eval.study.search.engine import (
    draw_resamples,
    interpolate_crossing,
    resampling_strata,
    sign_flip_p_value,
)
from sim_sensors.core.measurements import FloatArray, IntArray
from .model_parameters import ModelParameter
from .surface import METRICS, ScoredCandidates, Surface, best_candidate, prediction_scores

BEFORE, AFTER, HELD_OUT = 'before', 'after', 'held out'


@dataclasses.dataclass(frozen=True, eq=False)
class FitValidation:
    """Scores of the given, the fitted and the fold models, the last on held-out recordings.

    Attributes
    ----------
    fitted : int
        Best candidate on all recordings.
    fold_candidates : tuple of int
        Best candidate without the recordings of each fold.
    before, after : float
        Objective of the given and of the fitted model over all recordings.
    held_out : float or None
        Objective of every fold's candidate on the recordings of its fold, all folds together. It
        is too small; see `prediction_scores`. None without folds.
    points : dict of str to (n, r, 2) array
        RMSE and entropy difference of the runs before, after and held out.
    scores : dict of str to float
        Mean of `prediction_scores` of each.
    p_value : float or None
        Probability of a gain of the held-out score at least this large if there were none; None
        without folds.
    vepd : Uncertainty
        VEPD of the three and of each pair, with intervals.
    """

    fitted: int
    fold_candidates: tuple[int, ...]
    before: float
    after: float
    held_out: float | None
    points: dict[str, FloatArray]
    scores: dict[str, float]
    p_value: float | None
    vepd: Uncertainty

    @property
    def verdict(self) -> str:
        """`better`, `unproven`, `over-fits`, `unchanged` or `not validated`.

        `better`: the fit predicts held-out recordings better than the given model, with a p-value
        of one minus the level at most, which bounds the rate of false alarms. `unproven`: better
        there, but not significantly. `over-fits`: no better there, though closer on the recordings
        of the fit.
        """
        if self.fitted == 0:
            return 'unchanged'
        if self.p_value is None:
            return 'not validated'
        if self.scores[HELD_OUT] >= self.scores[BEFORE]:
            return 'over-fits'
        return 'better' if self.p_value <= 1.0 - self.vepd.options.level else 'unproven'


def validate_fit(
    candidates: ScoredCandidates,
    metric: str,
    folds: Sequence[IntArray],
    *,
    options: UncertaintyOptions | None = None,
    seed: int = 0,
) -> FitValidation:
    """Compare the given model, the fitted one and those of folds, all judged before.

    `metric` is a key of `surface.METRICS`; `folds` are the recordings that each fold holds out.
    """
    real = candidates.real
    objective = METRICS[metric]
    recordings = np.arange(len(real.names))
    points = candidates.points
    fitted = best_candidate(candidates, objective, recordings)
    fold_candidates = [
        best_candidate(candidates, objective, np.setdiff1d(recordings, held)) for held in folds
    ]
    runs = {BEFORE: points[0], AFTER: points[fitted]}
    if folds:
        runs[HELD_OUT] = np.empty_like(points[0])
        for held, candidate in zip(folds, fold_candidates, strict=True):
            runs[HELD_OUT][held] = points[candidate][held]
    distances = {
        name: float(objective(real.points, run_points[None])[0])
        for name, run_points in runs.items()
    }
    scores = {
        name: prediction_scores(real.points, run_points, metric)
        for name, run_points in runs.items()
    }
    p_value = None
    if folds:
        gains = scores[BEFORE] - scores[HELD_OUT]
        # The recordings of a block are no independent evidence, so they count as their sum.
        sums = [gains[unit].sum() for unit in real.units]
        p_value = sign_flip_p_value(np.array(sums), seed)
    repetitions = points.shape[2]
    vepd = uncertainty(
        ScoredRuns(real.points, real.names, real.scenarios, real.blocks),
        {
            name: ScoredRuns(
                run_points.reshape(-1, 2),
                tuple(np.repeat(real.names, repetitions).tolist()),
                tuple(np.repeat(real.scenarios, repetitions).tolist()),
                tuple(np.repeat(real.blocks, repetitions).tolist()) if real.blocks else (),
            )
            for name, run_points in runs.items()
        },
        options,
        seed=seed,
    )
    return FitValidation(
        fitted,
        tuple(fold_candidates),
        distances[BEFORE],
        distances[AFTER],
        distances.get(HELD_OUT),
        runs,
        {name: float(score.mean()) for name, score in scores.items()},
        p_value,
        vepd,
    )


_GRID = np.linspace(0.0, 1.0, 31)
_AROUND = np.linspace(-0.06, 0.06, 13)
_AT_BOUND = 0.01
_NARROWER = 0.5


@dataclasses.dataclass(frozen=True, eq=False)
class ParameterEstimate:
    """A fitted parameter with its interval and profile.

    Attributes
    ----------
    parameter : ModelParameter
    value : float
        Fitted, in the unit of the parameter.
    low, high : float
        Ends of the interval: values outside differ significantly from the fitted one. A bound of
        the search where no value does.
    low_open, high_open : bool
        Whether `low` and `high` are such bounds.
    at_bound : bool
        Whether the fitted value is a bound, or next to it (1 % of the range).
    trades_with : str or None
        Parameter that compensates a change of this one: with the others held, the interval would
        be less than half as wide. In a parabola this is a correlation above 0.87.
    values, profile : (g,) array
        Values of the parameter, and the objective there with the others at their best.
    band : (2, g) array
        Objective of the fit plus the 5 % and 95 % quantiles over resamples of the increase.
    """

    parameter: ModelParameter
    value: float
    low: float
    high: float
    low_open: bool
    high_open: bool
    at_bound: bool
    trades_with: str | None
    values: FloatArray
    profile: FloatArray
    band: FloatArray

    @property
    def is_identifiable(self) -> bool:
        """Whether any value between the bounds differs significantly from the fitted one."""
        return not (self.low_open and self.high_open)

    @property
    def verdict(self) -> str:
        """Assessment in words."""
        parts = []
        if not self.is_identifiable:
            parts.append('not identifiable: no value within the bounds differs significantly')
        elif self.low_open:
            parts.append(f'only bounded from above, by {self.high:.3g}')
        elif self.high_open:
            parts.append(f'only bounded from below, by {self.low:.3g}')
        if self.at_bound and self.is_identifiable:
            parts.append('at a bound: the best value may lie beyond')
        if self.trades_with is not None:
            parts.append(f'trades off with {self.trades_with}')
        return '; '.join(parts) or 'identified'


def estimate_parameters(
    surface: Surface,
    parameters: Sequence[ModelParameter],
    fitted: FloatArray,
    scenarios: Sequence[str],
    *,
    repetitions: int,
    error: float,
    units: Sequence[IntArray] = (),
    resamples: int = 400,
    level: float = 0.95,
    seed: int = 0,
) -> tuple[ParameterEstimate, ...]:
    """Estimate the interval of each parameter from profiles over resamples.

    At each value of a parameter the others are at their best (the profile). Recordings and draws
    are resampled. A value is inside the interval when it does at least as well as the fitted one
    in enough resamples. Near a minimum like a parabola, the probability of that is
    Phi(-distance / (2 sigma)) with the deviation sigma of the fitted value, for any number of
    parameters. "Enough" is therefore Phi(-q / 2), with the quantile q of an interval of the same
    level by Student's t for the number of recordings.

    Parameters
    ----------
    fitted : (d,) array
        Coordinates of the fitted candidate.
    scenarios : sequence of str
        Of each recording; recordings are resampled within them.
    repetitions : int
        Simulated runs of each recording.
    error : float
        Error of the surface; smaller differences of the objective are ignored.
    units : sequence of (m,) int
        Recordings that are drawn together; by default each one alone.
    """
    units = units or [np.array([i]) for i in range(len(scenarios))]
    strata, freedom = resampling_strata([scenarios[unit[0]] for unit in units])
    drawn = draw_resamples(units, strata, repetitions, resamples, seed)

    def resampled_objectives(coordinates: FloatArray) -> FloatArray:
        """Return the objective at points in every resample, `(b, p)`."""
        points = surface.points(coordinates)
        return np.array([surface.objective(points, *resample) for resample in drawn])

    enough = float(norm.cdf(-t.ppf(0.5 + level / 2.0, freedom) / 2.0))
    objectives_at_fit = resampled_objectives(fitted[None])
    objective = float(surface.objective(surface.points(fitted[None]))[0])
    estimates = []
    for index, parameter in enumerate(parameters):
        here = float(np.clip(fitted[index], 0.0, 1.0))
        # Intervals of many recordings are narrow, so the grid is finer around the fit.
        grid = np.unique(np.concatenate([_GRID, np.clip(here + _AROUND, 0.0, 1.0)]))
        path = np.array([surface.lowest_at(index, point, fitted[None]) for point in grid])
        path[grid == here] = fitted
        increase = resampled_objectives(path) - objectives_at_fit
        low, high = _interval(grid, (increase <= error).mean(axis=0), enough, here)
        partner = None
        if len(parameters) > 1 and low > 0.0 and high < 1.0:
            partner = _partner(
                index, grid, path, fitted,
                lambda held: resampled_objectives(held) - objectives_at_fit <= error,
                (low, high), enough, here,
            )  # fmt: skip
        estimates.append(
            ParameterEstimate(
                parameter=parameter,
                value=parameter.value(here),
                low=parameter.value(low),
                high=parameter.value(high),
                low_open=low <= 0.0,
                high_open=high >= 1.0,
                at_bound=here < _AT_BOUND or here > 1.0 - _AT_BOUND,
                trades_with=None if partner is None else parameters[partner].name,
                values=np.array([parameter.value(point) for point in grid]),
                profile=surface.objective(surface.points(path)),
                band=objective + np.quantile(increase, [0.05, 0.95], axis=0),
            )
        )
    return tuple(estimates)


def _partner(
    index: int,
    grid: FloatArray,
    path: FloatArray,
    fitted: FloatArray,
    is_as_good: Callable[[FloatArray], np.ndarray],
    interval: tuple[float, float],
    enough: float,
    here: float,
) -> int | None:
    """Return the parameter that moves most along the profile, if others compensate this one."""
    low, high = interval
    held = np.repeat(fitted[None], len(grid), axis=0)
    held[:, index] = grid
    inner = _interval(grid, is_as_good(held).mean(axis=0), enough, here)
    if inner[1] - inner[0] >= _NARROWER * (high - low):
        return None
    moved = np.ptp(path[(grid >= low) & (grid <= high)], axis=0)
    moved[index] = -1.0
    return int(np.argmax(moved))


def _interval(
    grid: FloatArray, share: FloatArray, enough: float, here: float
) -> tuple[float, float]:
    """Return the range of coordinates whose share of resamples is enough, interpolated."""
    inside = np.flatnonzero((share >= enough) | (grid == here))
    first, last = inside[[0, -1]]
    low, high = float(grid[first]), float(grid[last])
    if first > 0:
        pair = slice(first - 1, first + 1)
        low = interpolate_crossing(grid[pair].tolist(), share[pair].tolist(), enough)
    if last < len(grid) - 1:
        pair = slice(last, last + 2)
        high = interpolate_crossing(grid[pair].tolist(), share[pair].tolist(), enough)
    return low, high
