# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Estimated coefficients with their uncertainty: one, an axis, and means over recordings."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import chi2

from sim_sensors.core.measurements import FloatArray

# Below it an uncertainty is that of double precision.
_ROUNDING = 1e-9


@dataclasses.dataclass(frozen=True)
class ParameterEstimate:
    """One parameter."""

    value: float  # best value; of what is not observable, what the model file takes
    std: float  # standard uncertainty; NaN for what was read off, not estimated
    unit: str
    observable: bool = True
    # 95 % interval; 0 and infinity where a side is open
    lower: float = 0.0
    upper: float = math.inf
    remark: str = ''  # why it is not observable, or how it was found

    def agrees_with(self, value: float) -> bool:
        """Say whether a true value above 0 is within three standard uncertainties of the
        logarithm; of what is not observable, within the 95 % interval widened by half of itself.
        """
        if not self.observable:
            return self.lower / 1.5 <= value <= self.upper * 1.5
        return abs(math.log(value / self.value)) <= 3.0 * self.std / self.value

    def shown(self) -> str:
        """Return it for a table."""
        if self.observable:
            return with_error(self.value, self.std)
        if self.lower > 0.0 and math.isinf(self.upper):
            return f'> {self.lower:.2g}'
        return 'not observable' if math.isinf(self.upper) else f'< {self.upper:.2g}'


def with_error(value: float, std: float) -> str:
    """Return a value with its uncertainty, both to two digits of the uncertainty; the value alone,
    to four of its own, where it has none: NaN, or rounding errors.

    Examples
    --------
    >>> with_error(33.3416, 3.27), with_error(0.0021293, 0.00022), with_error(2.5e-7, 9.1e-17)
    ('33.3 ± 3.3', '0.00213 ± 0.00022', '2.5e-07')
    >>> with_error(6.1234e-7, 1.2e-8), with_error(-1e-4, 0.02), with_error(12345.6, 700.0)
    ('(6.12 ± 0.12)e-07', '0.000 ± 0.020', '12350 ± 700')
    """
    if not math.isfinite(std) or std <= _ROUNDING * abs(value):
        return f'{value + 0.0:.4g}'
    exponent = math.floor(math.log10(max(abs(value), std)))
    shift = exponent if exponent < -4 or exponent > 5 else 0
    value, std = value / 10.0**shift, std / 10.0**shift
    # Of .2g, since 0.0996 has its first digit before the point that its logarithm says.
    digits = 1 - math.floor(math.log10(float(f'{std:.1e}')))
    places = max(digits, 0)
    # A rounded negative zero plus zero has no sign.
    text = f'{round(value, digits) + 0.0:.{places}f} ± {round(std, digits):.{places}f}'
    return f'({text})e{shift:+03d}' if shift else text


def unseen(
    unit: str, remark: str, *, value: float = 0.0, lower: float = 0.0, upper: float = math.inf
) -> ParameterEstimate:
    """Return what a record does not show."""
    return ParameterEstimate(value, math.nan, unit, False, lower, upper, remark)


@dataclasses.dataclass(frozen=True)
class Coefficient:
    """One coefficient, as a root: N, not N^2."""

    value: float  # 0 where it is not observable
    std: float  # standard uncertainty; of an unobservable one, the root of that of its square
    # 95 % interval; of an unobservable one 0 and the upper bound (95 %, one-sided)
    lower: float
    upper: float
    # Whether the record shows it: without it the curve would be fitted significantly worse
    observable: bool

    @classmethod
    def of_square(cls, theta: float, std: float, unit: float) -> Coefficient:
        """Return the root of a coefficient `theta` that is observable, to `std`, times its unit.

        `theta` is taken as chi-square with the degrees of freedom that its relative uncertainty
        stands for.
        """
        freedom = max(2.0 * (theta / std) ** 2, 1.0)
        low, high = (math.sqrt(freedom / chi2.ppf(p, freedom)) for p in (0.975, 0.025))
        value = unit * math.sqrt(theta)
        return cls(value, float(0.5 * value * std / theta), low * value, high * value, True)

    def agrees_with(self, value: float) -> bool:
        """Say whether a true value is within three standard uncertainties.

        A value agrees with an unobservable coefficient if it is below the bound at three sigma of
        the square; the stated bound is at 1.645.
        """
        if self.observable:
            return abs(self.value - value) <= 3.0 * self.std
        return value**2 <= self.upper**2 + (3.0 - 1.645) * self.std**2


COEFFICIENTS = ('quantisation', 'white', 'bias_instability', 'random_walk', 'rate_ramp')
MARKOV_COEFFICIENTS = ('gauss_markov', 'gauss_markov_time')


@dataclasses.dataclass(frozen=True)
class FilterLimits:
    """Low pass of a sensor: cut-off frequency (-3 dB), Hz, and order, 1 or 2 (Butterworth)."""

    bandwidth: Coefficient
    order: int


@dataclasses.dataclass(frozen=True)
class NoiseTerms:
    """Noise terms of an Allan curve, for a signal of unit u.

    Attributes
    ----------
    quantisation : Coefficient
        Qz, u s: white noise of the integral, avar = 3 Qz^2 / tau^2.
    white : Coefficient
        N, u/sqrt(Hz): angle or velocity random walk, avar = N^2 / tau.
    bias_instability : Coefficient
        B, u: flicker noise, avar = (2 ln 2 / pi) B^2, so the plateau is 0.664 B.
    random_walk : Coefficient
        K, u/s/sqrt(Hz): avar = K^2 tau / 3.
    rate_ramp : Coefficient
        R, u/s: avar = R^2 tau^2 / 2.
    seconds : float
        Length of the record, or of all that were combined.
    gauss_markov, gauss_markov_time : Coefficient, optional
        g, u, and T, s: stationary deviation and correlation time of a Gauss-Markov bias, where
        that follows the curve better than flicker; avar =
        (2 g^2 T / tau) (1 - T / (2 tau) (3 - 4 exp(-tau/T) + exp(-2 tau/T))).
    low_pass : FilterLimits, optional
        What the noise passes, where the record shows it; N is the density below its bandwidth.
    """

    quantisation: Coefficient
    white: Coefficient
    bias_instability: Coefficient
    random_walk: Coefficient
    rate_ramp: Coefficient
    seconds: float
    gauss_markov: Coefficient | None = None
    gauss_markov_time: Coefficient | None = None
    low_pass: FilterLimits | None = None

    def coefficients(self) -> dict[str, Coefficient]:
        """Return the coefficients by name, in the order of `COEFFICIENTS`, and then of the
        Gauss-Markov bias and the low pass where there is one.
        """
        by_name = {name: getattr(self, name) for name in COEFFICIENTS}
        for name in MARKOV_COEFFICIENTS:
            if getattr(self, name) is not None:
                by_name[name] = getattr(self, name)
        if self.low_pass is not None:
            by_name['bandwidth'] = self.low_pass.bandwidth
        return by_name


def short_terms(terms: NoiseTerms) -> NoiseTerms:
    """Return the terms with none of long averaging times, only their upper bounds."""

    def bound(coefficient: Coefficient) -> Coefficient:
        return Coefficient(0.0, coefficient.std, 0.0, coefficient.upper, observable=False)

    return dataclasses.replace(
        terms,
        bias_instability=bound(terms.bias_instability),
        random_walk=bound(terms.random_walk),
        rate_ramp=bound(terms.rate_ramp),
        gauss_markov=None,
        gauss_markov_time=None,
    )


def term_variances(terms: NoiseTerms, tau: FloatArray) -> dict[str, FloatArray]:
    """Return the Allan variance of each observable term at averaging times `(k,)` s, u^2."""
    shapes = {
        'quantisation': 3.0 / tau**2,
        'white': 1.0 / tau,
        'bias_instability': np.full(len(tau), 2.0 * math.log(2.0) / math.pi),
        'random_walk': tau / 3.0,
        'rate_ramp': tau**2 / 2.0,
    }
    variances = {
        name: np.asarray(getattr(terms, name).value ** 2 * shape)
        for name, shape in shapes.items()
        if getattr(terms, name).observable
    }
    if terms.low_pass is not None and 'white' in variances:
        variances['white'] = terms.white.value**2 * _filtered_shape(tau, terms.low_pass)
    if terms.gauss_markov is not None and terms.gauss_markov_time is not None:
        share = tau / terms.gauss_markov_time.value
        less = 3.0 - 4.0 * np.exp(-share) + np.exp(-2.0 * share)
        shape = 2.0 / share * (1.0 - less / (2.0 * share))
        variances['gauss_markov'] = np.asarray(terms.gauss_markov.value**2 * shape)
    return variances


def _filtered_shape(tau: FloatArray, limits: FilterLimits) -> FloatArray:
    """Return the Allan variance of white noise of density 1 behind a low pass, `(k,)`.

    The noise is continuous: (4 V(tau) - V(2 tau)) / (2 tau^2) with the variance V of its integral.
    """
    omega = 2.0 * math.pi * limits.bandwidth.value

    def integral_variance(t: FloatArray) -> FloatArray:
        if limits.order == 1:
            return np.asarray(t + np.expm1(-omega * t) / omega)
        a = math.sqrt(0.5) * omega
        remainder = 1.0 - np.exp(-a * t) * (np.cos(a * t) - np.sin(a * t))
        return np.asarray(t - remainder / (2.0 * a))

    return np.asarray(
        (4.0 * integral_variance(tau) - integral_variance(2.0 * tau)) / (2.0 * tau**2)
    )


def combined(terms: Sequence[NoiseTerms], weights: str = 'uncertainty') -> NoiseTerms:
    """Return the weighted mean of the terms of several recordings of one sensor and axis.

    Weights of `uncertainty` are (value / std)^2, that is, how many degrees of freedom a value has;
    not 1 / std^2, because the std is proportional to the value and the smaller of two equally sure
    values would weigh more. Weights of `length` are seconds, as [Cesenek2019] weighs them.

    The Gauss-Markov bias is the mean over those that have one, and so is the low pass where more
    than half have one. Another coefficient is observable if it is in one recording at least. If
    it is in all, the values are averaged; else the squares, with 0 for those that do not show it.
    The std is that of the weighted mean, or, if larger, that which the scatter implies.
    """
    if len(terms) == 1:
        return terms[0]
    means: dict[str, Any] = {
        name: _mean([getattr(row, name) for row in terms], terms, weights) for name in COEFFICIENTS
    }
    markov = [row for row in terms if row.gauss_markov is not None]
    for name in MARKOV_COEFFICIENTS if markov else ():
        means[name] = _mean([getattr(row, name) for row in markov], markov, weights)
    whole = NoiseTerms(**means, seconds=sum(row.seconds for row in terms))
    filtered = [row for row in terms if row.low_pass is not None]
    if 2 * len(filtered) <= len(terms):
        return whole
    filters = [row.low_pass for row in filtered if row.low_pass is not None]
    mean = _mean([limits.bandwidth for limits in filters], filtered, weights)
    order = statistics.mode(limits.order for limits in filters)
    return dataclasses.replace(whole, low_pass=FilterLimits(mean, order))


def _mean(
    coefficients: Sequence[Coefficient], terms: Sequence[NoiseTerms], weights: str
) -> Coefficient:
    if not any(c.observable for c in coefficients):
        surest = min(coefficients, key=lambda coefficient: coefficient.upper)
        return Coefficient(0.0, surest.std, 0.0, surest.upper, observable=False)
    raw = (
        [row.seconds for row in terms]
        if weights == 'length'
        else list(map(_freedom, coefficients))
    )
    share = np.array(raw) / sum(raw)
    # Where some do not show it, powers are averaged, with 0 for those: a mean over the others
    # alone would be the mean of those who happen to have much of it.
    power = 1 if all(c.observable for c in coefficients) else 2
    values = np.array([c.value for c in coefficients]) ** power
    mean = float(share @ values)
    own_std = np.array(
        [power * c.value ** (power - 1) * c.std if c.observable else c.std**2
         for c in coefficients]
    )  # fmt: skip
    inner = float(np.sum((share * own_std) ** 2))
    effective = 1.0 / float(np.sum(share**2))
    outer = float(share @ (values - mean) ** 2) / max(effective - 1.0, 0.5)
    value = mean ** (1.0 / power)
    std = math.sqrt(max(inner, outer)) / (power * value ** (power - 1))
    return Coefficient(value, std, max(value - 1.96 * std, 0.0), value + 1.96 * std, True)


def _freedom(coefficient: Coefficient) -> float:
    """Return the degrees of freedom that a relative uncertainty stands for, but for a factor; of
    what is not observable, at its bound.
    """
    if coefficient.observable:
        return (coefficient.value / max(coefficient.std, 1e-12 * coefficient.value)) ** 2
    return 4.0 * (coefficient.upper / max(coefficient.std, 1e-12 * coefficient.upper)) ** 4
