# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Noise terms fitted to an Allan curve.

The coefficients (see `allan_covariance`) are at least zero and minimise

    (avar - A theta)' (C(theta) + E)^-1 (avar - A theta).

The fit uses variances, because the model gives their expectation exactly. A fit of logarithms
would be biased where the points have few degrees of freedom. C is the covariance of the points
under the fitted model and is found by iteration; weights from the data would favour points that
happen to lie low. C includes the correlation between points with overlapping averages.

White noise that has passed a low-pass filter is modelled as filtered noise. C includes the
uncertainty of the cut-off frequency.

If five terms cannot follow the curve (a hump, a periodic disturbance), E = (misfit A theta)^2
on the diagonal. The misfit makes the weighted sum of squares equal to its expectation, so the
uncertainties include it.
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

# Increase of the weighted sum of squares without a term, above which it is observable: 3.5 sigma.
_SIGNIFICANT = 12.0
# A ramp shows at the longest averaging times only, where the points are far from normal and a
# random walk can look like a ramp. A ramp therefore needs 4 sigma, which 1 % of pure walks exceed.
# If both terms explain the curve, the walk is chosen.
_SIGNIFICANT_RAMP = 16.0
_ITERATIONS = 30
# Shares of the variance, added to the diagonal in turn until the Cholesky factorisation succeeds.
_RELATIVE_JITTERS = (1e-12, 1e-9, 1e-6, 1e-3, 1.0)
# Largest number of doublings in the search for an upper bound, which may not exist if the misfit
# is large.
_DOUBLINGS = 20
# Relative change of the coefficients below which the iteration stops.
_RELATIVE_TOLERANCE = 1e-3
# Probability of a larger sum of squares by chance, below which the fit needs a misfit.
_MISFIT_PROBABILITY = 1e-3
_LARGEST_MISFIT = 3.0
# Smallest ratio of an eigenvalue of the information matrix to the largest one; smaller ratios are
# rounding errors.
_SMALLEST_EIGENVALUE_RATIO = 1e-15
# Smallest Allan variance whose square, and that of its reciprocal, does not underflow or overflow.
_SMALLEST_VARIANCE = 1e-100
# Standard uncertainty of the logarithm of a cut-off. It allows for filters of another shape, such
# as triangular averages, and for a noise floor. A larger one would let the cut-off imitate
# flicker.
_CUTOFF_STD = 0.3
MIN_AVERAGING_TIMES = 6
"""Smallest number of averaging times for a fit of five terms."""

Flags = NDArray[np.bool_]
_ALL = np.ones(len(TERMS), dtype=np.bool_)
_QUANTISATION, _WHITE, _FLICKER, _WALK, _MARKOV = range(RANDOM_TERMS)


@dataclasses.dataclass(frozen=True, eq=False)
class AllanFit:
    """Result of `fit_terms`.

    Attributes
    ----------
    terms : NoiseTerms
        Coefficients with uncertainties, in the units of the signal.
    coefficients : (6,)
        Fitted coefficients in the units of `allan_covariance`; 0 for unobservable terms.
    time : float
        Correlation time of the Gauss-Markov process, samples; 0 for none.
    low_pass : LowPass or None
        Low-pass filter of the white noise.
    misfit : float
        Relative error of the model, as a share of the variance; 0 if the terms explain the curve.
    chi_square, freedom : float
        Weighted sum of squares without the misfit, and its expectation.
    deviance : float
        Twice the negative log-likelihood of the points, up to a constant.
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
        Allan curve at octaves; a denser grid gives nearly the same result and takes longer.
    time : float, optional
        Correlation time of the Gauss-Markov process, samples; by default there is flicker.
    low_pass : LowPass, optional
        Low-pass filter of the white noise. Its cut-off frequency need not be exact. Averaging
        factors must be one of `low_pass.first_factors` or larger. Quantisation cannot be
        separated from filtered noise and is not fitted.
    trend : Trend, optional
        Trend that was removed from the signal. Its line is the ramp, and no ramp is fitted.

    Raises
    ------
    ParameterError
        For fewer than 6 averaging times, or a constant signal.

    Examples
    --------
    >>> from sim2real_eval.characterization.allan import allan_curve
    >>> noise = np.random.default_rng(1).standard_normal(100_000)
    >>> terms = fit_terms(allan_curve(noise, rate=100.0)).terms
    >>> terms.white.observable, round(terms.white.value, 2), terms.random_walk.observable
    (True, 0.1, False)
    """
    if len(curve.factors) < MIN_AVERAGING_TIMES:
        raise ParameterError(
            'Allan fit',
            '',
            f'{len(curve.factors)} averaging times of {curve.n} samples are too few; must be '
            f'{MIN_AVERAGING_TIMES} or more',
        )
    if not curve.variance.min() > _SMALLEST_VARIANCE:
        constant = 'the signal, or an average of it, is constant; there is no noise to fit'
        raise ParameterError('Allan fit', '', constant)
    if not curve.variance.max() < 1.0 / _SMALLEST_VARIANCE:
        limit = 1.0 / _SMALLEST_VARIANCE
        largest = f'{curve.variance.max():.3g} is too large; must be below {limit:g}'
        raise ParameterError('Allan fit', '', f'an Allan variance of {largest}')
    problem = _Problem(curve, time, low_pass, ramp=trend is None)
    theta = problem.fit(problem.free)
    chi_square = problem.chi_square(theta)
    parameter_count = int((theta > 0.0).sum()) + bool(time) + bool(low_pass)
    freedom = max(len(curve.factors) - parameter_count, 1)
    if chi2.sf(chi_square, freedom) < _MISFIT_PROBABILITY:
        problem.misfit = _find_misfit(problem, freedom)
        theta = problem.fit(problem.free)
    included = _select_terms(problem, theta, trend)
    chosen = problem.fit(included)
    # A walk smaller than its own uncertainty is left out: other terms may explain it.
    walk_uncertainty = problem.uncertainty(chosen, problem.free)[_WALK]
    if chosen[_WALK] < walk_uncertainty and included[_WALK] and included[:RANDOM_TERMS].sum() > 1:
        included[_WALK] = False
        chosen = problem.fit(included)
    deviance = problem.deviance(chosen)
    terms = _noise_terms(problem, curve, theta, chosen, included)
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
        chi_square=chi_square,
        freedom=freedom,
        deviance=deviance,
    )


def model_variance(fit: AllanFit, dt: float, tau: FloatArray) -> FloatArray:
    """Return the fitted variance of each term at any averaging times, `(k, 6)`, u^2.

    The formulas are those of `allan_covariance`; they also hold between multiples of dt.
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
    """Return the deviance of a fit of all terms, with a Gauss-Markov process, at a given misfit.

    The correlation time is the `time` that minimises the deviance.
    """
    problem = _Problem(curve, time, low_pass, ramp=trend is None)
    problem.misfit = misfit
    return problem.deviance(problem.fit(problem.free))


def shape_of(low_pass: LowPass | None) -> LowPassShape | None:
    """Return the shape of a low pass; None if there is no low pass."""
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
        # Terms that may be fitted: either flicker or a Gauss-Markov process, not both.
        self.free = _ALL.copy()
        self.free[_FLICKER if time else _MARKOV] = False
        self.free[RANDOM_TERMS] = ramp
        self.free[_QUANTISATION] = low_pass is None
        # Scale each coefficient by the largest value that the curve allows, so that all are near
        # 1.
        shapes = np.where(self.free, covariance.shapes, np.inf)
        self.scale = np.asarray((variance[:, None] / shapes).min(axis=0))
        self.scale[~self.free] = 1.0
        self.shapes = covariance.shapes * self.scale
        # Change of the variance of filtered white noise for one standard uncertainty of the
        # cut-off, per white coefficient.
        self._cutoff_derivative = np.zeros(len(variance))
        if low_pass is not None:
            above, below = (
                term_shapes(curve.factors, low_pass=low_pass.shape.scaled(step))
                for step in (1.01, 1.0 / 1.01)
            )
            change = (above - below)[:, _WHITE] * self.scale[_WHITE] / (2.0 * math.log(1.01))
            self._cutoff_derivative = change * _CUTOFF_STD
        # Derivative of the variance by the logarithm of the correlation time, per Gauss-Markov
        # coefficient.
        self._time_derivative = np.zeros(len(variance))
        if time:
            above, below = (
                term_shapes(curve.factors, time * step)[:, _MARKOV] for step in (1.01, 1.0 / 1.01)
            )
            self._time_derivative = (above - below) * self.scale[_MARKOV] / (2.0 * math.log(1.01))
        self._columns = np.concatenate([self.shapes, variance[:, None]], axis=1)
        self._diagonal = np.diag_indices(len(variance))
        self.misfit = 0.0
        # Cache: several sums of squares are computed at the same coefficients.
        self._last: tuple[tuple[bytes, float], FloatArray] | None = None

    def fit(self, included: Flags) -> FloatArray:
        """Return the coefficients, `(6,)`; they are zero where `included` is False."""
        theta = self._solve_non_negative(self._columns / self._variance[:, None], included)
        for _ in range(_ITERATIONS):
            before = theta
            theta = self._solve_non_negative(self._whitened(theta), included)
            if np.all(np.abs(theta - before) <= _RELATIVE_TOLERANCE * np.maximum(theta, before)):
                break
        return np.asarray(theta * self.scale)

    def chi_square(self, coefficients: FloatArray) -> float:
        """Return the weighted sum of squares of a fit, under the covariance that it implies."""
        theta = coefficients / self.scale
        whitened = self._whitened(theta)
        return float(np.sum((whitened[:, -1] - whitened[:, :-1] @ theta) ** 2))

    def smallest_chi_square(self, coefficients: FloatArray, included: Flags) -> float:
        """Return the smallest weighted sum of squares, with the covariance of `coefficients`."""
        whitened = self._whitened(coefficients / self.scale)
        return float(nnls(whitened[:, :-1] * included, whitened[:, -1])[1] ** 2)

    def deviance(self, coefficients: FloatArray) -> float:
        """Return twice the negative log-likelihood of normal points, up to a constant."""
        root = self._root(coefficients / self.scale)
        return self.chi_square(coefficients) + 2.0 * float(np.log(np.diagonal(root)).sum())

    def uncertainty(self, coefficients: FloatArray, free: Flags) -> FloatArray:
        """Return the standard uncertainties if all `free` coefficients are fitted, `(7,)`.

        The first six belong to the coefficients, the last to the logarithm of the correlation
        time.
        """
        theta = coefficients / self.scale
        time_derivative = self._time_derivative * theta[_MARKOV] * free[_MARKOV]
        columns = np.concatenate([self.shapes * free, time_derivative[:, None]], axis=1)
        whitened = _solve_lower(self._root(theta), columns)
        # Diagonal of the pseudo-inverse: coefficients that are not free have no uncertainty.
        eigenvalues, eigenvectors = np.linalg.eigh(whitened.T @ whitened)
        is_significant = eigenvalues > _SMALLEST_EIGENVALUE_RATIO * eigenvalues[-1]
        variance = eigenvectors[:, is_significant] ** 2 @ (1.0 / eigenvalues[is_significant])
        return np.asarray(np.sqrt(variance) * np.append(self.scale, 1.0))

    def _root(self, theta: FloatArray) -> FloatArray:
        """Return the Cholesky factor of the covariance of the points at `theta`."""
        model = self.shapes @ theta
        covariance = self._covariance.at(theta * self.scale)
        covariance[self._diagonal] += self.misfit**2 * model**2
        cutoff_derivative = self._cutoff_derivative * theta[_WHITE]
        covariance += np.outer(cutoff_derivative, cutoff_derivative)
        # A tiny jitter makes the covariance of a pure ramp, which is not random, invertible. Short
        # records whose points are nearly identical need a larger one.
        for jitter in _RELATIVE_JITTERS:
            covariance[self._diagonal] += jitter * model**2
            root, failed = dpotrf(covariance, lower=1)
            if not failed:
                break
        return np.asarray(root)

    def _whitened(self, theta: FloatArray) -> FloatArray:
        """Return shapes and variances, whitened by the covariance at `theta`, `(k, 7)`."""
        key = (theta.tobytes(), self.misfit)
        if self._last is None or self._last[0] != key:
            self._last = key, _solve_lower(self._root(theta), self._columns)
        return self._last[1]

    @staticmethod
    def _solve_non_negative(columns: FloatArray, included: Flags) -> FloatArray:
        theta: FloatArray = nnls(columns[:, :-1] * included, columns[:, -1])[0]
        if not theta[:RANDOM_TERMS].any():
            theta[_WHITE] = 1e-9
        return theta


def _solve_lower(root: FloatArray, columns: FloatArray) -> FloatArray:
    """Solve `root @ x = columns` for a lower triangular root; LAPACK is faster than scipy here."""
    # LAPACK stores matrices by columns, so it sees the transpose of the root.
    return np.asarray(dtrtrs(root.T, columns, lower=0, trans=1)[0])


def _find_misfit(problem: _Problem, freedom: int) -> float:
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


def _select_terms(problem: _Problem, theta: FloatArray, trend: Trend | None) -> Flags:
    """Return the terms that remain after backward elimination of insignificant ones.

    The ramp is tested first. Then the least significant term is removed until all are significant.
    No walk is fitted if the means of the record do not wander: its few long averages have heavy
    tails, so white noise often looks like a walk. If a drift may be a line or a walk, flicker is
    excluded too, because a walk minus its fitted line looks like flicker.
    """
    included = np.asarray(theta > 0.0)
    if trend is not None:
        included[_WALK] &= trend.wander > WANDERS
        included[_FLICKER] &= trend.kind != 'unclear'
    # The ramp may have taken the place of a walk, whose coefficient was then fitted as zero.
    candidates = problem.free.copy()
    ramp_loss = _loss_without(problem, candidates, RANDOM_TERMS) if included[RANDOM_TERMS] else 0.0
    if included[RANDOM_TERMS] and ramp_loss < _SIGNIFICANT_RAMP:
        included[RANDOM_TERMS] = False
        candidates[RANDOM_TERMS] = False
        included[:RANDOM_TERMS] |= problem.fit(candidates)[:RANDOM_TERMS] > 0.0
    while included.sum() > 1:
        losses = {
            term: _loss_without(problem, included, term)
            for term in np.flatnonzero(included[:RANDOM_TERMS]).tolist()
        }
        weakest = min(losses, key=losses.__getitem__)
        if losses[weakest] >= _SIGNIFICANT:
            break
        included[weakest] = False
    return included


def _loss_without(problem: _Problem, included: Flags, term: int) -> float:
    """Return the increase of the weighted sum of squares when a term is left out.

    The covariance is that of the fit without the term, which is the null hypothesis. The loss of
    the last random term is infinite, because there is always noise.
    """
    without = included.copy()
    without[term] = False
    if not without[:RANDOM_TERMS].any():
        return math.inf
    reduced = problem.fit(without)
    loss = problem.chi_square(reduced) - problem.smallest_chi_square(reduced, included)
    if problem.time:
        # A Gauss-Markov process without a walk implies long averages that hardly scatter. Under
        # that covariance a walk barely lowers the sum of squares, so the likelihoods decide.
        loss = max(loss, problem.deviance(reduced) - problem.deviance(problem.fit(included)))
    return loss


def _noise_terms(
    problem: _Problem, curve: AllanCurve, full_fit: FloatArray, chosen: FloatArray, included: Flags
) -> NoiseTerms:
    """Return the chosen terms with uncertainties, and upper bounds of the others."""
    # Small terms that act at long averaging times may exist although they were left out. The
    # uncertainty of the other terms therefore includes how much they change in a fit of all terms,
    # and their uncertainty there. White noise is determined by the short averaging times, so it is
    # not affected.
    std = problem.uncertainty(chosen, included)
    inflated_std = np.hypot(
        np.maximum(std[:-1], problem.uncertainty(chosen, problem.free)[:-1]), chosen - full_fit
    )
    std[_FLICKER:-1] = inflated_std[_FLICKER:]
    # Terms are kept only if their estimates are large, so the estimates are biased upwards.
    corrected = chosen * _selection_factors(problem, included)
    dt = curve.dt
    units = {
        'quantisation': (_QUANTISATION, dt),
        'white': (_WHITE, math.sqrt(dt)),
        'bias_instability': (_FLICKER, 1.0),
        'random_walk': (_WALK, 1.0 / math.sqrt(dt)),
        'rate_ramp': (RANDOM_TERMS, 1.0 / dt),
    }
    coefficients: dict[str, Any] = {}
    for name, (index, unit) in units.items():
        if included[index]:
            coefficients[name] = Coefficient.of_square(corrected[index], std[index], unit)
        elif problem.free[index]:
            coefficients[name] = _bound_unobservable(problem, chosen, full_fit[index], index, unit)
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
    """Return the factors that correct the selection bias of the coefficients, `(6,)`.

    If the corrected coefficient is the true one, the uncorrected one is the median of all
    estimates that are significant ([Zhong2008]).
    """
    factors = np.ones(len(included))
    for term in np.flatnonzero(included[:RANDOM_TERMS]).tolist():
        sigmas = math.sqrt(max(_loss_without(problem, included, term), _SIGNIFICANT))
        if term == _WHITE or sigmas > 7.0:
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


def _bound_unobservable(
    problem: _Problem, chosen: FloatArray, estimate: float, index: int, unit: float
) -> Coefficient:
    """Return zero with a 95 % upper bound for the coefficient of an unobservable term.

    If the true coefficient is at the bound, 5 % of estimates are below `estimate`. The uncertainty
    grows with the coefficient, so the bound is the smallest value that lies 1.645 of its own
    uncertainties above the estimate.
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
