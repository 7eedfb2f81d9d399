# SPDX-License-Identifier: Apache-2.0
"""Five noise terms fitted to an Allan curve, or read off its log-log plot.

The coefficients (see `allan_covariance`) are at least zero and minimise

    (avar - A theta)' (C(theta) + E)^-1 (avar - A theta),

in variances, whose expectation the model gives exactly; a fit of logarithms would be biased where
the points have few degrees of freedom. C is the covariance of the overlapping points under the
fitted model, not under the noisy data, found by iteration: weights from the data would favour
points that happen to lie low. Points that overlap say the same twice, and C knows it.

Where five terms cannot follow the curve (a hump, a periodic disturbance), E = (misfit A theta)^2
on the diagonal, with the misfit that makes the weighted sum of squares equal to its expectation;
the uncertainties then say so too.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.optimize import brentq, nnls
from scipy.stats import chi2

from sim_sensors.core.errors import ParameterError
from sim_sensors.core.measurements import FloatArray, IntArray
from .allan import AllanCurve, averaging_factors, local_slopes
from .allan_covariance import RANDOM_TERMS, TERMS, AllanCovariance, allan_covariance, term_shapes
from .noise_terms import COEFFICIENTS, Coefficient, NoiseTerms

# A term is observable when leaving it out raises the weighted sum of squares by 3^2: three sigma.
_SIGNIFICANT = 9.0
# A ramp shows at the longest averaging times only, where few degrees of freedom scatter far from
# normally and a walk can look like one: it needs 4 sigma, at which 1 % of walks show one, as other
# terms do at 3 in records without them. Where either would do, walk it is.
_SIGNIFICANT_RAMP = 16.0
_ITERATIONS = 30
_CONVERGED = 1e-3
_MISFIT_ALARM = 1e-3
_LARGEST_MISFIT = 3.0
FEWEST_FITTED = 6
"""Averaging times that a fit of five terms takes at least."""

Flags = NDArray[np.bool_]


@dataclasses.dataclass(frozen=True, eq=False)
class AllanFit:
    """Result of `fit_terms`.

    Attributes
    ----------
    coefficients : (5,)
        Fitted, in the units of `allan_covariance`; 0 for what is not observable.
    misfit : float
        Relative error of the model, as a share of the variance; 0 where noise explains all.
    chi_square, freedom : float
        Weighted sum of squares without the misfit, and its expectation.
    """

    terms: NoiseTerms
    coefficients: FloatArray
    misfit: float
    chi_square: float
    freedom: int


def fitted_factors(n: int) -> IntArray:
    """Return the averaging factors that are fitted: octaves. More would say nothing new."""
    return averaging_factors(n, 'octave')


def fit_terms(curve: AllanCurve) -> AllanFit:
    """Fit the five terms to a curve.

    Parameters
    ----------
    curve : AllanCurve
        At octaves; a denser grid gives nearly the same and takes longer.

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
    if not curve.variance[0] > 0.0:
        raise ParameterError('Allan fit', '', 'the signal is constant; there is no noise to fit')
    problem = _Problem(allan_covariance(curve.n, curve.factors), curve.variance)
    everything = np.ones(len(TERMS), dtype=np.bool_)
    theta = problem.fit(everything)
    square = problem.chi_square(theta)
    freedom = max(len(curve.factors) - int((theta > 0.0).sum()), 1)
    if chi2.sf(square, freedom) < _MISFIT_ALARM:
        problem.misfit = _needed_misfit(problem, everything, freedom)
        theta = problem.fit(everything)
    kept = _significant(problem, theta)
    chosen = problem.fit(kept)
    return AllanFit(
        terms=_terms(problem, curve, theta, chosen, kept),
        coefficients=chosen,
        misfit=problem.misfit,
        chi_square=square,
        freedom=freedom,
    )


def model_variance(fit: AllanFit, dt: float, tau: FloatArray) -> FloatArray:
    """Return the fitted variance of each term at any averaging times, `(k, 5)`, u^2.

    As in the table of `allan_covariance`; between multiples of dt the formulas go on smoothly.
    """
    return np.asarray(term_shapes(np.asarray(tau) / dt) * fit.coefficients)


class _Problem:
    """The fit of one curve: variances, shapes of the terms and covariances."""

    def __init__(self, covariance: AllanCovariance, variance: FloatArray) -> None:
        self._covariance = covariance
        self._variance = variance
        # In units of the terms that would explain the largest share alone, all numbers are near 1.
        self.scale = np.asarray((variance[:, None] / covariance.shapes).min(axis=0))
        self.shapes = covariance.shapes * self.scale
        self._columns = np.concatenate([self.shapes, variance[:, None]], axis=1)
        self._diagonal = np.diag_indices(len(variance))
        self.misfit = 0.0

    def fit(self, kept: Flags) -> FloatArray:
        """Return coefficients, `(5,)`, zero where not `kept`."""
        theta = self._least(self._columns / self._variance[:, None], kept)
        for _ in range(_ITERATIONS):
            before = theta
            theta = self._least(self._white(theta), kept)
            if np.all(np.abs(theta - before) <= _CONVERGED * np.maximum(theta, before)):
                break
        return np.asarray(theta * self.scale)

    def chi_square(self, coefficients: FloatArray) -> float:
        """Weighted sum of squares of a fit, with the covariance that it implies."""
        theta = coefficients / self.scale
        white = self._white(theta)
        return float(np.sum((white[:, -1] - white[:, :-1] @ theta) ** 2))

    def smallest_chi_square(self, at: FloatArray, kept: Flags) -> float:
        """Least weighted sum of squares of the terms kept, with the covariance at `at`."""
        white = self._white(at / self.scale)
        return float(nnls(white[:, :-1] * kept, white[:, -1])[1] ** 2)

    def uncertainty(self, coefficients: FloatArray) -> FloatArray:
        """Standard uncertainty of each coefficient with all others free, `(5,)`."""
        white = self._white(coefficients / self.scale)[:, :-1]
        covariance = np.linalg.pinv(white.T @ white, hermitian=True)
        return np.asarray(np.sqrt(np.diagonal(covariance)) * self.scale)

    def _white(self, theta: FloatArray) -> FloatArray:
        """Return shapes and variances in directions in which their errors are independent and 1
        under the covariance at scaled coefficients, `(k, 6)`.
        """
        model = self.shapes @ theta
        covariance = self._covariance.at(theta * self.scale)
        # The tiny part keeps a pure ramp, which is not random, from having no covariance at all.
        covariance[self._diagonal] += (self.misfit**2 + 1e-12) * model**2
        root = np.linalg.cholesky(covariance)
        return np.asarray(solve_triangular(root, self._columns, lower=True, check_finite=False))

    @staticmethod
    def _least(columns: FloatArray, kept: Flags) -> FloatArray:
        found: FloatArray = nnls(columns[:, :-1] * kept, columns[:, -1])[0]
        if not found[:RANDOM_TERMS].any():
            found[1] = 1e-9
        return found


def _needed_misfit(problem: _Problem, kept: Flags, freedom: int) -> float:
    """Return the misfit that makes the weighted sum of squares equal to its expectation."""

    def excess(logarithm: float) -> float:
        problem.misfit = math.exp(logarithm)
        return problem.chi_square(problem.fit(kept)) - freedom

    low, high = math.log(1e-5), math.log(_LARGEST_MISFIT)
    if excess(low) <= 0.0:
        return math.exp(low)
    if excess(high) >= 0.0:
        return math.exp(high)
    return math.exp(float(brentq(excess, low, high, xtol=0.05)))


def _significant(problem: _Problem, theta: FloatArray) -> Flags:
    """Take terms away, the ramp first and then each time the one that is missed least, until all
    left are missed.
    """
    kept = np.asarray(theta > 0.0)
    # A walk that was at zero beside the ramp may be all that the ramp stands for.
    everything = np.ones(len(TERMS), dtype=np.bool_)
    if kept[RANDOM_TERMS] and _missed(problem, everything, RANDOM_TERMS) < _SIGNIFICANT_RAMP:
        kept[RANDOM_TERMS] = False
        everything[RANDOM_TERMS] = False
        kept[:RANDOM_TERMS] |= problem.fit(everything)[:RANDOM_TERMS] > 0.0
    while kept.sum() > 1:
        missed = {
            term: _missed(problem, kept, term)
            for term in np.flatnonzero(kept[:RANDOM_TERMS]).tolist()
        }
        weakest = min(missed, key=missed.__getitem__)
        if missed[weakest] >= _SIGNIFICANT:
            break
        kept[weakest] = False
    return kept


def _missed(problem: _Problem, kept: Flags, term: int) -> float:
    """Return by how much the weighted sum of squares falls when a term comes back.

    The covariance is that of the fit without the term, as a test of its absence has it. The last
    random term cannot be missed: there is always noise.
    """
    without = kept.copy()
    without[term] = False
    if not without[:RANDOM_TERMS].any():
        return math.inf
    fewer = problem.fit(without)
    with_it = problem.smallest_chi_square(fewer, kept)
    return problem.chi_square(fewer) - with_it


def _terms(
    problem: _Problem, curve: AllanCurve, everything: FloatArray, chosen: FloatArray, kept: Flags
) -> NoiseTerms:
    # Terms that were left out may be there all the same, a little: what the others would be with
    # them, and how sure they would be, is part of the uncertainty.
    std = np.hypot(
        np.maximum(problem.uncertainty(chosen), problem.uncertainty(everything)),
        chosen - everything,
    )
    dt = curve.dt
    units = np.array([dt**2, dt, 1.0, 1.0 / dt, 1.0 / dt**2])
    found = {}
    for index, name in enumerate(COEFFICIENTS):
        unit = math.sqrt(units[index])
        if kept[index]:
            found[name] = _seen(chosen[index], std[index], unit)
        else:
            found[name] = _unseen(problem, chosen, everything[index], index, unit)
    return NoiseTerms(**found, seconds=curve.n * curve.dt)


def _seen(theta: float, std: float, unit: float) -> Coefficient:
    """Root of a coefficient; its square is taken as chi-square with the degrees of freedom that
    its relative uncertainty stands for.
    """
    freedom = 2.0 * (theta / std) ** 2
    low, high = (math.sqrt(freedom / chi2.ppf(p, freedom)) for p in (0.975, 0.025))
    value = unit * math.sqrt(theta)
    return Coefficient(value, float(0.5 * value * std / theta), low * value, high * value, True)


def _unseen(
    problem: _Problem, chosen: FloatArray, estimate: float, index: int, unit: float
) -> Coefficient:
    """Upper bound: the coefficient that would show less than the record did in 5 % of cases.

    Its uncertainty grows with it, so it is found by iteration.
    """
    bound = estimate
    for _ in range(20):
        trial = chosen.copy()
        trial[index] = bound
        std = float(problem.uncertainty(trial)[index])
        before, bound = bound, estimate + 1.645 * std
        if bound <= 1.001 * before:
            break
    upper = unit * math.sqrt(bound)
    return Coefficient(0.0, unit * math.sqrt(std), 0.0, upper, observable=False)


# The five coefficients as they are read off a log-log plot by hand.
#
# A straight line of the slope in question is laid through the points where the curve has it, and
# read where it gives the coefficient: Qz at sqrt(3) s, N at 1 s, K at 3 s, R at sqrt(2) s; the
# bias instability is the lowest point over 0.664 ([IEEE952], annex C; [Cesenek2019], section 1.7,
# whose equation 1.19 has the factor upside down). The fit is better; this is what data sheets do.

PLATEAU = math.sqrt(2.0 * math.log(2.0) / math.pi)
"""Deviation of flicker noise over its bias instability, 0.664."""

_LINES = (
    ('quantisation', -1.0, math.sqrt(3.0)),
    ('white', -0.5, 1.0),
    ('random_walk', 0.5, 3.0),
    ('rate_ramp', 1.0, math.sqrt(2.0)),
)
# How far a slope may be off, and the share of the record beyond which points are too unsure.
_TOLERANCE = 0.15
_LONGEST = 0.1


def read_off(curve: AllanCurve) -> dict[str, float | None]:
    """Return the coefficients by name as in `noise_terms`; None where no part has the slope.

    Examples
    --------
    >>> from sim2real_eval.characterization.allan import allan_curve
    >>> noise = np.random.default_rng(1).standard_normal(100_000)
    >>> found = read_off(allan_curve(noise, rate=100.0))
    >>> round(found['white'], 3), found['quantisation']
    (0.1, None)
    """
    sure = curve.factors <= _LONGEST * curve.n
    slopes = local_slopes(curve)
    found: dict[str, float | None] = dict.fromkeys(COEFFICIENTS)
    for name, slope, at in _LINES:
        found[name] = _line(curve, sure & (np.abs(slopes - slope) < _TOLERANCE), slope, at)
    flat = sure & (np.abs(slopes) < 0.25)
    if flat.any():
        found['bias_instability'] = float(curve.deviation[flat].min()) / PLATEAU
    return found


def _line(curve: AllanCurve, mine: Flags, slope: float, at: float) -> float | None:
    """Level at `at` of the line of that slope through points, by how many terms each has."""
    # One point may pass by chance.
    if mine.sum() < 2:
        return None
    weights: FloatArray = curve.n / curve.factors[mine]
    levels = np.log(curve.deviation[mine]) - slope * np.log(curve.tau[mine] / at)
    return math.exp(float(np.average(levels, weights=weights)))
