# SPDX-License-Identifier: Apache-2.0
"""How far a fit is to be believed: on other recordings, and parameter by parameter."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from scipy.stats import norm, t

from sim2real_eval.metrics.uncertainty.assessment import uncertainty
from sim2real_eval.metrics.uncertainty.motions import ScoredRuns
from sim2real_eval.metrics.uncertainty.result import Uncertainty, UncertaintyOptions
from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.core.seeding import stream
from .evaluations import Evaluations
from .objective import METRICS, prediction_scores, sign_flip_p_value
from .search import Surface, chosen
from .tuned import Tuned

BEFORE, AFTER, HELD_OUT = 'before', 'after', 'held out'


@dataclasses.dataclass(frozen=True, eq=False)
class Validation:
    """A fit, and the fits of folds on what they did not see."""

    fitted: int  # candidate that is best on all recordings
    of_fold: tuple[int, ...]  # candidate that is best without the recordings of each fold
    # Objective of the start and of the fit, over all recordings.
    before: float
    after: float
    # Objective of the runs of every fold's candidate on the recordings it did not see, all folds
    # together, which flatters (see `prediction_scores`); None without folds.
    held_out: float | None
    # RMSE and entropy difference `(n, r, 2)` of the runs before, after and held out.
    points: dict[str, FloatArray]
    scores: dict[str, float]  # mean of `prediction_scores` of each
    # Of so much better scores held out than before if neither were better; None without folds.
    p_value: float | None
    known: Uncertainty  # of the VEPD of the three, and of each pair

    @property
    def verdict(self) -> str:
        """`better`, `unproven`, `over-fits`, `unchanged` or `not validated`.

        `better`: on recordings held out, the fit predicts the real runs better than the start,
        and so much better has at most the chance of one minus the level if neither were: that
        bounds the rate of false alarms. `over-fits`: on the recordings that it was fitted to it is
        closer, on those held out it is no better. `unproven`: better there too, but no more than
        by chance.
        """
        if self.fitted == 0:
            return 'unchanged'
        if self.p_value is None:
            return 'not validated'
        if self.scores[HELD_OUT] >= self.scores[BEFORE]:
            return 'over-fits'
        return 'better' if self.p_value <= 1.0 - self.known.options.level else 'unproven'


def validate(
    evaluations: Evaluations,
    metric: str,
    folds: Sequence[IntArray],
    *,
    options: UncertaintyOptions | None = None,
    seed: int = 0,
) -> Validation:
    """Compare start, fit and the fits of folds, from candidates that have been judged.

    `metric` is a name in `objective.METRICS`; each of `folds` has the recordings that it holds
    out.
    """
    real = evaluations.real
    objective = METRICS[metric]
    everything = np.arange(len(real.names))
    points = evaluations.points
    fitted = chosen(evaluations, objective, everything)
    of_fold = [chosen(evaluations, objective, np.setdiff1d(everything, held)) for held in folds]
    runs = {BEFORE: points[0], AFTER: points[fitted]}
    if folds:
        runs[HELD_OUT] = np.empty_like(points[0])
        for held, candidate in zip(folds, of_fold, strict=True):
            runs[HELD_OUT][held] = points[candidate][held]
    distances = {name: float(objective(real.points, one[None])[0]) for name, one in runs.items()}
    scores = {name: prediction_scores(real.points, one, metric) for name, one in runs.items()}
    p_value = None
    if folds:
        p_value = sign_flip_p_value(scores[BEFORE] - scores[HELD_OUT], seed)
    repetitions = points.shape[2]
    known = uncertainty(
        ScoredRuns(real.points, real.names, real.scenarios),
        {
            name: ScoredRuns(
                one.reshape(-1, 2),
                tuple(np.repeat(real.names, repetitions).tolist()),
                tuple(np.repeat(real.scenarios, repetitions).tolist()),
            )
            for name, one in runs.items()
        },
        options,
        seed=seed,
    )
    return Validation(
        fitted,
        tuple(of_fold),
        distances[BEFORE],
        distances[AFTER],
        distances.get(HELD_OUT),
        runs,
        {name: float(one.mean()) for name, one in scores.items()},
        p_value,
        known,
    )


LEAST_RECORDINGS = 5
"""With fewer, resampling recordings says little, and only draws are resampled."""

_GRID = 31
_AROUND = np.linspace(-0.06, 0.06, 13)
_AT_BOUND = 0.01
_NARROWER = 0.5
_LEAST_FREEDOM = 3


@dataclasses.dataclass(frozen=True, eq=False)
class Identified:
    """What is known of a parameter."""

    tuned: Tuned
    value: float  # fitted, in the unit of the parameter
    # Values outside can be told from the fitted one; a bound of the search where no value is.
    low: float
    high: float
    # Whether `low` and `high` are such bounds.
    low_open: bool
    high_open: bool
    # Whether the fitted value is one of the bounds, or next to it (1 % of the range).
    at_bound: bool
    # Parameter that makes up for a change of this one: with the others held, the interval would be
    # less than half as wide, which in a parabola is a correlation above 0.87.
    trades_with: str | None
    values: FloatArray  # (g,) where the profile is
    profile: FloatArray  # (g,) objective there, the other parameters at their best
    # (2, g) Objective of the fit and, on top, the 5 % and 95 % quantiles over resamples of how
    # much worse than the fit the profile is.
    band: FloatArray

    @property
    def identifiable(self) -> bool:
        """Whether any value between the bounds can be told from the fitted one."""
        return not (self.low_open and self.high_open)

    @property
    def verdict(self) -> str:
        """What to make of it, in words."""
        parts = []
        if not self.identifiable:
            parts.append('not identifiable: no value between the bounds can be told from it')
        elif self.low_open:
            parts.append(f'only bounded from above, by {self.high:.3g}')
        elif self.high_open:
            parts.append(f'only bounded from below, by {self.low:.3g}')
        if self.at_bound and self.identifiable:
            parts.append('at a bound: the best value may lie beyond')
        if self.trades_with is not None:
            parts.append(f'trades off with {self.trades_with}')
        return '; '.join(parts) or 'identified'


def identify(
    surface: Surface,
    tuned: Sequence[Tuned],
    fitted: FloatArray,
    scenarios: Sequence[str],
    *,
    repetitions: int,
    error: float,
    resamples: int = 400,
    level: float = 0.95,
    seed: int = 0,
) -> tuple[Identified, ...]:
    """Tell which values of each parameter cannot be told from the fitted one.

    At each value the other parameters are set to what is best then (the profile). Recordings and
    draws are resampled; a value cannot be told from the fitted one when in enough of the resamples
    it does at least as well. Near a minimum like a parabola it does so with the probability
    Phi(-distance / (2 sigma)), sigma being the deviation of the fitted value, whatever the other
    parameters are: "enough" is Phi(-q / 2), q the quantile of an interval of the same level, by
    Student's t for the recordings that there are.

    `fitted`, (d,), has the coordinates of the fitted candidate. Recordings are resampled inside
    their `scenarios`, each with so many `repetitions` of simulated runs. Differences of the
    objective up to `error` are those of the surface, not of parameters.
    """
    strata, freedom = _strata(scenarios)
    drawn = _resamples(strata, repetitions, resamples, seed)

    def objectives(units: FloatArray) -> FloatArray:
        """Return the objective at points in every resample, `(b, p)`."""
        points = surface.points(units)
        return np.array([surface.objective(points, *one) for one in drawn])

    enough = float(norm.cdf(-t.ppf(0.5 + level / 2.0, freedom) / 2.0))
    at_fit = objectives(fitted[None])
    objective = float(surface.objective(surface.points(fitted[None]))[0])
    grid = np.linspace(0.0, 1.0, _GRID)
    found = []
    for index, one in enumerate(tuned):
        here = float(np.clip(fitted[index], 0.0, 1.0))
        # Closer around the fit, where intervals of many recordings end.
        near = np.clip(here + _AROUND, 0.0, 1.0)
        units = np.unique(np.concatenate([grid, near]))
        path = np.array([surface.lowest_at(index, u, fitted[None])[0] for u in units])
        path[units == here] = fitted
        worse = objectives(path) - at_fit
        low, high = _told(units, (worse <= error).mean(axis=0), enough, here)
        partner = None
        if len(tuned) > 1 and low > 0.0 and high < 1.0:
            held = np.repeat(fitted[None], len(units), axis=0)
            held[:, index] = units
            alone = (objectives(held) - at_fit <= error).mean(axis=0)
            inner = _told(units, alone, enough, here)
            if inner[1] - inner[0] < _NARROWER * (high - low):
                inside = (units >= low) & (units <= high)
                moved = np.ptp(path[inside], axis=0)
                moved[index] = -1.0
                partner = tuned[int(np.argmax(moved))].name
        found.append(
            Identified(
                tuned=one,
                value=one.value(here),
                low=one.value(low),
                high=one.value(high),
                low_open=low <= 0.0,
                high_open=high >= 1.0,
                at_bound=here < _AT_BOUND or here > 1.0 - _AT_BOUND,
                trades_with=partner,
                values=np.array([one.value(u) for u in units]),
                profile=surface.objective(surface.points(path)),
                band=objective + np.quantile(worse, [0.05, 0.95], axis=0),
            )
        )
    return tuple(found)


def _resamples(
    strata: Sequence[IntArray], repetitions: int, count: int, seed: int
) -> list[tuple[IntArray, IntArray]]:
    """Draw recordings, as many of each stratum as it has, and for each of them draws."""
    shape = (sum(map(len, strata)), repetitions)
    source = stream(seed, 'fit', 'resamples', '')
    return [
        (
            np.concatenate([source.choice(own, len(own)) for own in strata]),
            source.integers(0, repetitions, shape),
        )
        for _ in range(count)
    ]


def _strata(scenarios: Sequence[str]) -> tuple[list[IntArray], float]:
    """Return the recordings inside which is resampled, and the degrees of freedom of that."""
    n = len(scenarios)
    if n < LEAST_RECORDINGS:
        return [np.array([i]) for i in range(n)], np.inf
    names = list(dict.fromkeys(scenarios))
    if n - len(names) < _LEAST_FREEDOM:
        # A scenario driven once has nothing to be resampled.
        return [np.arange(n)], n - 1.0
    found = [np.array([i for i, one in enumerate(scenarios) if one == name]) for name in names]
    return found, float(n - len(names))


def _told(units: FloatArray, share: FloatArray, enough: float, here: float) -> tuple[float, float]:
    """Return the lowest and the highest coordinate that cannot be told from the fitted one.

    Between points of the grid, where the share crosses over.
    """
    kept = (share >= enough) | (units == here)
    first, last = np.flatnonzero(kept)[[0, -1]]
    low, high = float(units[first]), float(units[last])
    if first > 0:
        low = _crossing(units[first - 1 : first + 1], share[first - 1 : first + 1], enough)
    if last < len(units) - 1:
        high = _crossing(units[last : last + 2], share[last : last + 2], enough)
    return low, high


def _crossing(units: FloatArray, share: FloatArray, enough: float) -> float:
    if share[0] == share[1]:
        return float(units.mean())
    part = np.clip((enough - share[0]) / (share[1] - share[0]), 0.0, 1.0)
    return float(units[0] + part * (units[1] - units[0]))
