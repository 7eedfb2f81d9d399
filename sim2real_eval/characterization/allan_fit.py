# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Noise terms fitted to an Allan curve.

The coefficients (see `allan_covariance`) are at least zero and minimise

    (avar - A theta)' (C(theta) + E)^-1 (avar - A theta),

in variances, whose expectation the model gives exactly; a fit of logarithms would be biased where
the points have few degrees of freedom. C is the covariance of the overlapping points under the
fitted model, not under the noisy data, found by iteration: weights from the data would favour
points that happen to lie low. Points that overlap say the same twice, and C knows it.

White noise behind a low pass has the variance of filtered noise. An error of the cut-off is one
more direction in which the points may move, and part of C.

If five terms cannot follow the curve (a hump, a periodic disturbance), E = (misfit A theta)^2
on the diagonal, with the misfit that makes the weighted sum of squares equal to its expectation;
the uncertainties then say so too.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dtrtrs
from scipy.optimize import brentq, nnls
from scipy.stats import chi2, norm

from sim_sensors.core.errors import ParameterError
from sim_sensors.core.measurements import FloatArray
from .allan import AllanCurve
from .allan_covariance import RANDOM_TERMS, TERMS, allan_covariance, term_shapes
from .low_pass import LowPass, LowPassShape
from .noise_terms import Coefficient, NoiseTerms
from .trends import WANDERS, Trend

# A term is observable when leaving it out raises the weighted sum of squares by this: 3.5 sigma.
_SIGNIFICANT = 12.0
# A ramp shows at the longest averaging times only, where few degrees of freedom scatter far from
# normally and a walk can look like one: it needs 4 sigma, at which 1 % of walks show one, as other
# terms do at 3 in records without them. If either would do, it is a walk.
_SIGNIFICANT_RAMP = 16.0
_ITERATIONS = 30
# Shares of the variance that are added to the covariance until it has a root.
_TINY = (1e-12, 1e-9, 1e-6, 1e-3, 1.0)
# Doublings in the search for a bound. A large misfit may have none; then it ends there.
_DOUBLINGS = 20
_CONVERGED = 1e-3
_MISFIT_ALARM = 1e-3
_LARGEST_MISFIT = 3.0
# Least eigenvalue of the information matrix over the largest: less is rounding.
_LEAST_POWER = 1e-15
# Allan variance whose square is still a number, and that of its reciprocal.
_LEAST = 1e-100
# Uncertainty of the logarithm of a cut-off. It stands for filters of another kind and a floor
# besides: triangular averages need it. A larger one lets the cut-off stand for flicker.
_CUTOFF_STD = 0.3
FEWEST_FITTED = 6
"""Averaging times that a fit of five terms takes at least."""

Flags = NDArray[np.bool_]
_ALL = np.ones(len(TERMS), dtype=np.bool_)
_QUANTISATION, _WHITE, _FLICKER, _WALK, _MARKOV = range(RANDOM_TERMS)


@dataclasses.dataclass(frozen=True, eq=False)
class AllanFit:
    """Result of `fit_terms`.

    Attributes
    ----------
    coefficients : (6,)
        Fitted, in the units of `allan_covariance`; 0 for what is not observable.
    time : float
        Correlation time of the Gauss-Markov process, samples; 0 for none.
    low_pass : LowPass or None
        What the white noise has passed.
    misfit : float
        Relative error of the model, as a share of the variance; 0 where noise explains all.
    chi_square, freedom : float
        Weighted sum of squares without the misfit, and its expectation.
    deviance : float
        Twice the negative log-likelihood of the points, but for a constant.
    """

    terms: NoiseTerms
    coefficients: FloatArray
    time: float
    low_pass: LowPass | None
    misfit: float
    chi_square: float
    freedom: int
    deviance: float


def fit_terms(
    curve: AllanCurve,
    time: float = 0.0,
    *,
    low_pass: LowPass | None = None,
    trend: Trend | None = None,
) -> AllanFit:
    """Fit five terms to a curve: with flicker, or with a Gauss-Markov process in its place.

    Parameters
    ----------
    curve : AllanCurve
        At octaves; a denser grid gives nearly the same and takes longer.
    time : float, optional
        Correlation time of the Gauss-Markov process, samples; by default there is flicker.
    low_pass : LowPass, optional
        What the white noise has passed. Its cut-off frequency need not be exact. Averaging
        factors must be one of `low_pass.first_factors` or more, and quantisation is not told from
        it.
    trend : Trend, optional
        What has been taken away before. Then the ramp is its line, and none is fitted.

    Raises
    ------
    ParameterError
        For fewer than 6 averaging times, or a signal that does not move.

    Examples
    --------
    >>> from sim2real_eval.characterization.allan import allan_curve
    >>> noise = np.random.default_rng(1).standard_normal(100_000)
    >>> found = fit_terms(allan_curve(noise, rate=100.0)).terms
    >>> found.white.observable, round(found.white.value, 2), found.random_walk.observable
    (True, 0.1, False)
    """
    if len(curve.factors) < FEWEST_FITTED:
        raise ParameterError(
            'Allan fit',
            '',
            f'{len(curve.factors)} averaging times of {curve.n} samples are too few; must be '
            f'{FEWEST_FITTED} or more',
        )
    if not curve.variance.min() > _LEAST:
        constant = 'the signal, or an average of it, is constant; there is no noise to fit'
        raise ParameterError('Allan fit', '', constant)
    if not curve.variance.max() < 1.0 / _LEAST:
        largest = f'{curve.variance.max():.3g} is too large; must be below {1.0 / _LEAST:g}'
        raise ParameterError('Allan fit', '', f'an Allan variance of {largest}')
    problem = _Problem(curve, time, low_pass, ramp=trend is None)
    theta = problem.fit(problem.free)
    square = problem.chi_square(theta)
    spent = int((theta > 0.0).sum()) + bool(time) + bool(low_pass)
    freedom = max(len(curve.factors) - spent, 1)
    if chi2.sf(square, freedom) < _MISFIT_ALARM:
        problem.misfit = _needed_misfit(problem, freedom)
        theta = problem.fit(problem.free)
    included = _significant(problem, theta, trend)
    chosen = problem.fit(included)
    # Uncertain by more than its size, a walk is not told: other terms may stand for it.
    wide = problem.uncertainty(chosen, problem.free)[_WALK]
    if chosen[_WALK] < wide and included[_WALK] and included[:RANDOM_TERMS].sum() > 1:
        included[_WALK] = False
        chosen = problem.fit(included)
    deviance = problem.deviance(chosen)
    terms = _terms(problem, curve, theta, chosen, included)
    if trend is not None:
        terms = dataclasses.replace(terms, rate_ramp=trend.ramp(curve.dt))
        chosen[RANDOM_TERMS] = (terms.rate_ramp.value * curve.dt) ** 2
    if low_pass is not None:
        terms = dataclasses.replace(terms, low_pass=low_pass.limits(curve.dt))
    return AllanFit(
        terms=terms,
        coefficients=chosen,
        time=time,
        low_pass=low_pass,
        misfit=problem.misfit,
        chi_square=square,
        freedom=freedom,
        deviance=deviance,
    )


def model_variance(fit: AllanFit, dt: float, tau: FloatArray) -> FloatArray:
    """Return the fitted variance of each term at any averaging times, `(k, 6)`, u^2.

    As in the table of `allan_covariance`; between multiples of dt the formulas go on smoothly.
    """
    shapes = term_shapes(np.asarray(tau) / dt, fit.time, shape_of(fit.low_pass))
    return np.asarray(shapes * fit.coefficients)


def markov_deviance(
    curve: AllanCurve,
    time: float,
    misfit: float,
    low_pass: LowPass | None = None,
    trend: Trend | None = None,
) -> float:
    """Return the deviance of all terms with a Gauss-Markov process, none left out; for a search of
    its time. The misfit is taken as given.
    """
    problem = _Problem(curve, time, low_pass, ramp=trend is None)
    problem.misfit = misfit
    return problem.deviance(problem.fit(problem.free))


def shape_of(low_pass: LowPass | None) -> LowPassShape | None:
    """Return the shape of a low pass, or of none."""
    return None if low_pass is None else low_pass.shape


class _Problem:
    """The fit of one curve: variances, shapes of the terms and covariances."""

    def __init__(
        self, curve: AllanCurve, time: float, low_pass: LowPass | None, *, ramp: bool
    ) -> None:
        self.time = time
        self._covariance = covariance = allan_covariance(
            curve.n, curve.factors, time, shape_of(low_pass)
        )
        self._variance = variance = curve.variance
        # The terms that there may be: flicker, or a Gauss-Markov process.
        self.free = _ALL.copy()
        self.free[_FLICKER if time else _MARKOV] = False
        self.free[RANDOM_TERMS] = ramp
        self.free[_QUANTISATION] = low_pass is None
        # In units of the terms that would explain the largest share alone, all numbers are near 1.
        shapes = np.where(self.free, covariance.shapes, np.inf)
        self.scale = np.asarray((variance[:, None] / shapes).min(axis=0))
        self.scale[~self.free] = 1.0
        self.shapes = covariance.shapes * self.scale
        # How the variance of filtered white noise changes with one standard uncertainty of the
        # cut-off, per white coefficient.
        self._by_cutoff = np.zeros(len(variance))
        if low_pass is not None:
            above, below = (
                term_shapes(curve.factors, low_pass=low_pass.shape.scaled(step))
                for step in (1.01, 1.0 / 1.01)
            )
            change = (above - below)[:, _WHITE] * self.scale[_WHITE] / (2.0 * math.log(1.01))
            self._by_cutoff = change * _CUTOFF_STD
        # How the variance changes with the logarithm of the time, per Gauss-Markov coefficient.
        self._by_time = np.zeros(len(variance))
        if time:
            above, below = (
                term_shapes(curve.factors, time * step)[:, _MARKOV] for step in (1.01, 1.0 / 1.01)
            )
            self._by_time = (above - below) * self.scale[_MARKOV] / (2.0 * math.log(1.01))
        self._columns = np.concatenate([self.shapes, variance[:, None]], axis=1)
        self._diagonal = np.diag_indices(len(variance))
        self.misfit = 0.0
        # Several sums of squares are asked for at the same coefficients.
        self._last: tuple[tuple[bytes, float], FloatArray] | None = None

    def fit(self, included: Flags) -> FloatArray:
        """Return coefficients, `(6,)`, zero where not `included`."""
        theta = self._least(self._columns / self._variance[:, None], included)
        for _ in range(_ITERATIONS):
            before = theta
            theta = self._least(self._white(theta), included)
            if np.all(np.abs(theta - before) <= _CONVERGED * np.maximum(theta, before)):
                break
        return np.asarray(theta * self.scale)

    def chi_square(self, coefficients: FloatArray) -> float:
        """Weighted sum of squares of a fit, with the covariance that it implies."""
        theta = coefficients / self.scale
        white = self._white(theta)
        return float(np.sum((white[:, -1] - white[:, :-1] @ theta) ** 2))

    def smallest_chi_square(self, at: FloatArray, included: Flags) -> float:
        """Least weighted sum of squares of the terms included, with the covariance at `at`."""
        white = self._white(at / self.scale)
        return float(nnls(white[:, :-1] * included, white[:, -1])[1] ** 2)

    def deviance(self, coefficients: FloatArray) -> float:
        """Twice the negative log-likelihood but for a constant, the points taken as normal."""
        root = self._root(coefficients / self.scale)
        return self.chi_square(coefficients) + 2.0 * float(np.log(np.diagonal(root)).sum())

    def uncertainty(self, coefficients: FloatArray, free: Flags) -> FloatArray:
        """Standard uncertainty of each coefficient with the others that are `free`, `(6,)`; and
        last that of the logarithm of the time, `(7,)`.
        """
        theta = coefficients / self.scale
        by_time = self._by_time * theta[_MARKOV] * free[_MARKOV]
        columns = np.concatenate([self.shapes * free, by_time[:, None]], axis=1)
        white = _solved(self._root(theta), columns)
        # The diagonal of the pseudo-inverse: what is not free has no uncertainty.
        power, axes = np.linalg.eigh(white.T @ white)
        good = power > _LEAST_POWER * power[-1]
        variance = axes[:, good] ** 2 @ (1.0 / power[good])
        return np.asarray(np.sqrt(variance) * np.append(self.scale, 1.0))

    def _root(self, theta: FloatArray) -> FloatArray:
        model = self.shapes @ theta
        covariance = self._covariance.at(theta * self.scale)
        covariance[self._diagonal] += self.misfit**2 * model**2
        by_cutoff = self._by_cutoff * theta[_WHITE]
        covariance += np.outer(by_cutoff, by_cutoff)
        # A tiny part keeps a pure ramp, which is not random, from having no covariance at all; a
        # larger one, points of short records that hardly differ under a term.
        for tiny in _TINY:
            covariance[self._diagonal] += tiny * model**2
            root, failed = dpotrf(covariance, lower=1)
            if not failed:
                break
        return np.asarray(root)

    def _white(self, theta: FloatArray) -> FloatArray:
        """Return shapes and variances in directions in which their errors are independent and 1
        under the covariance at scaled coefficients, `(k, 7)`.
        """
        key = (theta.tobytes(), self.misfit)
        if self._last is None or self._last[0] != key:
            self._last = key, _solved(self._root(theta), self._columns)
        return self._last[1]

    @staticmethod
    def _least(columns: FloatArray, included: Flags) -> FloatArray:
        theta: FloatArray = nnls(columns[:, :-1] * included, columns[:, -1])[0]
        if not theta[:RANDOM_TERMS].any():
            theta[1] = 1e-9
        return theta


def _solved(root: FloatArray, columns: FloatArray) -> FloatArray:
    """Return what the lower root times is the columns; scipy takes longer to ask than LAPACK."""
    # LAPACK has matrices column by column: as such, the root is its transpose.
    return np.asarray(dtrtrs(root.T, columns, lower=0, trans=1)[0])


def _needed_misfit(problem: _Problem, freedom: int) -> float:
    """Return the misfit that makes the weighted sum of squares equal to its expectation."""

    def excess(logarithm: float) -> float:
        problem.misfit = math.exp(logarithm)
        return problem.chi_square(problem.fit(problem.free)) - freedom

    low, high = math.log(1e-5), math.log(_LARGEST_MISFIT)
    if excess(low) <= 0.0:
        return math.exp(low)
    if excess(high) >= 0.0:
        return math.exp(high)
    return math.exp(float(brentq(excess, low, high, xtol=0.05)))


def _significant(problem: _Problem, theta: FloatArray, trend: Trend | None) -> Flags:
    """Take terms away, the ramp first and then each time the one that is missed least, until all
    left are missed.

    There is no walk in a record whose means do not wander: the few long averages of the Allan
    curve scatter further than normal laws do, and white noise alone often looks like one. If
    a drift may be a line or a walk, the remainder of a walk without its line looks like flicker.
    """
    included = np.asarray(theta > 0.0)
    if trend is not None:
        included[_WALK] &= trend.wander > WANDERS
        included[_FLICKER] &= trend.kind != 'unclear'
    # A walk that was at zero beside the ramp may be all that the ramp stands for.
    everything = problem.free.copy()
    if included[RANDOM_TERMS] and _missed(problem, everything, RANDOM_TERMS) < _SIGNIFICANT_RAMP:
        included[RANDOM_TERMS] = False
        everything[RANDOM_TERMS] = False
        included[:RANDOM_TERMS] |= problem.fit(everything)[:RANDOM_TERMS] > 0.0
    while included.sum() > 1:
        missed = {
            term: _missed(problem, included, term)
            for term in np.flatnonzero(included[:RANDOM_TERMS]).tolist()
        }
        weakest = min(missed, key=missed.__getitem__)
        if missed[weakest] >= _SIGNIFICANT:
            break
        included[weakest] = False
    return included


def _missed(problem: _Problem, included: Flags, term: int) -> float:
    """Return by how much the weighted sum of squares falls when a term comes back.

    The covariance is that of the fit without the term, as a test of its absence has it. The last
    random term cannot be missed: there is always noise.
    """
    without = included.copy()
    without[term] = False
    if not without[:RANDOM_TERMS].any():
        return math.inf
    fewer = problem.fit(without)
    missed = problem.chi_square(fewer) - problem.smallest_chi_square(fewer, included)
    if problem.time:
        # A Gauss-Markov process without the walk of a given time implies long averages that
        # hardly scatter, under which a walk would not help either: the likelihoods know better.
        missed = max(missed, problem.deviance(fewer) - problem.deviance(problem.fit(included)))
    return missed


def _terms(
    problem: _Problem,
    curve: AllanCurve,
    everything: FloatArray,
    chosen: FloatArray,
    included: Flags,
) -> NoiseTerms:
    # Terms of long averaging times that were left out may be there all the same, a little: what
    # the others would be with them, and how sure they would be, is part of the uncertainty. White
    # noise is known by the short times, and is as sure as they say.
    std = problem.uncertainty(chosen, included)
    wider = np.hypot(
        np.maximum(std[:-1], problem.uncertainty(chosen, problem.free)[:-1]), chosen - everything
    )
    std[_FLICKER:-1] = wider[_FLICKER:]
    # Terms that are kept because they are large are too large in the mean.
    corrected = chosen * _selection_factors(problem, included)
    dt = curve.dt
    units = {
        'quantisation': (0, dt),
        'white': (1, math.sqrt(dt)),
        'bias_instability': (_FLICKER, 1.0),
        'random_walk': (_WALK, 1.0 / math.sqrt(dt)),
        'rate_ramp': (RANDOM_TERMS, 1.0 / dt),
    }
    coefficients: dict[str, Any] = {}
    for name, (index, unit) in units.items():
        if included[index]:
            coefficients[name] = Coefficient.of_square(corrected[index], std[index], unit)
        elif problem.free[index]:
            coefficients[name] = _unseen(problem, chosen, everything[index], index, unit)
        else:
            coefficients[name] = Coefficient(0.0, 0.0, 0.0, 0.0, observable=False)
    if included[_MARKOV]:
        coefficients['gauss_markov'] = Coefficient.of_square(corrected[_MARKOV], std[_MARKOV], 1.0)
        time = problem.time * dt
        spread = math.exp(1.96 * std[-1])
        coefficients['gauss_markov_time'] = Coefficient(
            time, time * float(std[-1]), time / spread, time * spread, observable=True
        )
    return NoiseTerms(**coefficients, seconds=curve.n * curve.dt)


def _selection_factors(problem: _Problem, included: Flags) -> FloatArray:
    """Return by what each coefficient is multiplied, `(6,)`: its estimate is the one whose median
    among those that pass the bound is what was found ([Zhong2008]).
    """
    factors = np.ones(len(included))
    for term in np.flatnonzero(included[:RANDOM_TERMS]).tolist():
        sigmas = math.sqrt(max(_missed(problem, included, term), _SIGNIFICANT))
        if term == 1 or sigmas > 7.0:
            continue

        def excess(mean: float, sigmas: float = sigmas) -> float:
            return float(
                np.log(2.0)
                + norm.logsf(sigmas - mean)
                - norm.logsf(math.sqrt(_SIGNIFICANT) - mean)
            )

        mean = 1.0 if excess(1.0) > 0.0 else float(brentq(excess, 1.0, sigmas, xtol=1e-3))
        factors[term] = mean / sigmas
    return factors


def _unseen(
    problem: _Problem, chosen: FloatArray, estimate: float, index: int, unit: float
) -> Coefficient:
    """Upper bound: the coefficient that would show less than the record did in 5 % of cases.

    Its uncertainty grows with it; the bound is the least that is 1.645 of its uncertainties above
    the estimate.
    """
    trial = chosen.copy()

    def uncertainty(bound: float) -> float:
        trial[index] = bound
        return float(problem.uncertainty(trial, problem.free)[index])

    def excess(logarithm: float) -> float:
        bound = math.exp(logarithm)
        return bound - estimate - 1.645 * uncertainty(bound)

    low = high = math.log(estimate + 1.645 * uncertainty(estimate))
    for _ in range(_DOUBLINGS):
        if excess(high) >= 0.0:
            break
        low, high = high, high + math.log(2.0)
    bound = math.exp(high)
    if excess(low) < 0.0 <= excess(high):
        bound = math.exp(float(brentq(excess, low, high, xtol=1e-6)))
    std = uncertainty(bound)
    return Coefficient(0.0, unit * math.sqrt(std), 0.0, unit * math.sqrt(bound), observable=False)
