# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The covariance that a receiver reports, and whether its fixes keep to it.

AirSim's HDOP with eq. 5 of the paper states the deviation

    s(t) = k (limit + (start - limit) exp(-t / time_constant)),  vertical: vertical_factor s(t)

t since the first fix ([AirSim], GpsSimple). Only k times HDOP shows in covariances: k, the
deviation at HDOP 1, is a convention of the driver (0.02 m for an RTK fix in nmea_navsat_driver).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import least_squares
from scipy.stats import chi2

from sim_sensors.core.measurements import FixArray, FloatArray
from sim_sensors.gps.gps import (
    COVARIANCE_TYPES,
    ConstantCovariance,
    HdopCovariance,
    PositionCovariance,
    ZeroCovariance,
)
from .markov_fit import MarkovFit
from .noise_terms import ParameterEstimate, unseen
from .standstill_fixes import StandingRun

_GAIN = 12.0
_EXACT = 1e-9


@dataclasses.dataclass(frozen=True, eq=False)
class StatedFit:
    """Stated deviations of a recording, and what follows them."""

    # (n,) s since the first fix, and stated horizontal deviation, sqrt((P_ee + P_nn) / 2), m
    time: FloatArray
    deviation: FloatArray
    # HDOP at the first fix and after a long time, with `k`, the deviation at HDOP 1, m, which is
    # given and not fitted; and s
    start: ParameterEstimate
    limit: ParameterEstimate
    time_constant: ParameterEstimate
    k: float
    vertical_factor: ParameterEstimate  # vertical over horizontal deviation
    # Root of the mean stated variance, east, north, up, m
    constant: tuple[ParameterEstimate, ParameterEstimate, ParameterEstimate]
    # `zero`, `airsim` (it converges) or `constant`; name of the position_covariance_type
    kind: str
    type: str

    def model(self) -> PositionCovariance:
        """Return the covariance model."""
        if self.kind == 'zero':
            return ZeroCovariance()
        if self.kind == 'constant':
            std = tuple(error.value for error in self.constant)
            return ConstantCovariance(type=self.type, std=std)  # type: ignore[arg-type]
        return HdopCovariance(
            type=self.type,
            hdop_initial=self.start.value,
            hdop_limit=self.limit.value,
            time_constant=self.time_constant.value,
            k=self.k,
            vertical_factor=self.vertical_factor.value,
        )


def fit_stated(fixes: FixArray, k: float = 0.02) -> StatedFit:
    """Fit the stated covariances of valid fixes, standing or moving.

    Weighted non-linear least squares with errors in proportion to the deviation, that is, in its
    logarithm, so that the limit counts as much as the start. The convergence is believed where
    chi-square falls by more than 12 against a constant; uncertainties count correlated residuals
    as (1 - r) / (1 + r) samples, r the correlation of neighbours.

    The fixes are valid ones; `k` is the deviation at HDOP 1, m.
    """
    time = (fixes.stamp_ns - fixes.stamp_ns[0]) * 1e-9
    variances = np.einsum('nii->ni', fixes.position_covariance)
    are_stated = (variances > 0.0).all(axis=1) & np.isfinite(variances).all(axis=1)
    are_stated &= fixes.position_covariance_type > 0
    kinds = fixes.position_covariance_type[are_stated]
    name = tuple(COVARIANCE_TYPES)[int(np.bincount(kinds).argmax())] if len(kinds) else 'unknown'
    if are_stated.sum() < 8:
        remark = 'the covariances are zero or of unknown type'
        none, seconds, metres = (unseen(unit, remark) for unit in ('1', 's', 'm'))
        empty = np.empty(0)
        return StatedFit(
            empty, empty, none, none, seconds, k, none, (metres,) * 3, 'zero', 'unknown'
        )
    time, variances = time[are_stated], variances[are_stated]
    deviation = np.sqrt(0.5 * (variances[:, 0] + variances[:, 1]))
    east, north, up = (_mean_deviation(column) for column in variances.T)
    factor = np.sqrt(variances[:, 2]) / deviation
    vertical = ParameterEstimate(float(np.median(factor)), _error_of_mean(factor), '1')
    remark = 'the stated covariance does not converge in this record'
    flat = StatedFit(
        time, deviation, unseen('1', remark), unseen('1', remark), unseen('s', remark), k,
        vertical, (east, north, up), 'constant', name,
    )  # fmt: skip
    fit = _converging(time, deviation)
    if fit is None:
        return flat
    start, limit, lag = (
        ParameterEstimate(
            value / size, error / size, unit, True,
            (value - 1.96 * error) / size, (value + 1.96 * error) / size,
        )
        for value, error, size, unit in zip(*fit, (k, k, 1.0), ('1', '1', 's'), strict=True)
    )  # fmt: skip
    return dataclasses.replace(flat, start=start, limit=limit, time_constant=lag, kind='airsim')


def _mean_deviation(variances: FloatArray) -> ParameterEstimate:
    value = math.sqrt(float(variances.mean()))
    return ParameterEstimate(value, _error_of_mean(variances) / (2.0 * value), 'm')


def _error_of_mean(values: FloatArray) -> float:
    """Return the standard error of a mean of correlated values."""
    n = len(values)
    return float(values.std()) / math.sqrt(max(n * _thinning(values), 1.0))


def _thinning(values: FloatArray) -> float:
    """Return how many independent samples a correlated one is worth, by its lag-1 correlation."""
    centred = values - values.mean()
    power = float(centred @ centred)
    if power <= 0.0:
        return 1.0
    r = min(max(float(centred[:-1] @ centred[1:]) / power, 0.0), 0.999)
    return (1.0 - r) / (1.0 + r)


def _converging(time: FloatArray, deviation: FloatArray) -> tuple[list[float], list[float]] | None:
    """Return start, limit (m) and time constant (s) with their errors; None: it is constant."""
    logs = np.log(deviation)
    span = float(time[-1])
    if span <= 0.0:
        return None

    def residuals(x: FloatArray) -> FloatArray:
        curve = np.exp(x[1]) + (np.exp(x[0]) - np.exp(x[1])) * np.exp(-time / np.exp(x[2]))
        return np.asarray(np.log(np.maximum(curve, 1e-300)) - logs)

    best = None
    for lag in span * np.array([0.003, 0.02, 0.1, 0.4]):
        guess = [logs[0], float(np.median(logs[-max(len(logs) // 5, 1) :])), math.log(lag)]
        tried = least_squares(residuals, guess, method='lm', max_nfev=400)
        if best is None or tried.cost < best.cost:
            best = tried
    assert best is not None
    if best.status <= 0:
        return None  # It did not converge.
    variance = 2.0 * float(best.cost) / max(len(logs) - 3, 1)
    flat = float(((logs - logs.mean()) ** 2).sum())
    values = [math.exp(min(float(logarithm), 50.0)) for logarithm in best.x]
    if flat <= _EXACT * len(logs):
        return None
    thin = _thinning(best.fun) if variance > _EXACT**2 else 1.0
    gain = (flat - 2.0 * float(best.cost)) / max(variance, 1e-24) * thin
    # An exponential longer than the record, or over before the second fix, is no convergence.
    step = float(np.median(np.diff(time)))
    if gain < _GAIN or not step < values[2] < span or values[0] < 1.05 * values[1]:
        return None
    jacobian = np.asarray(best.jac, np.float64)
    covariance = np.linalg.pinv(jacobian.T @ jacobian) * variance / thin
    roots = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    errors = [value * float(root) for value, root in zip(values, roots, strict=True)]
    return values, errors


# Whether fixes keep to the covariance that is stated of them: NEES at standstill.
#
# Errors that wander are few independent ones, and the mean of a standstill takes some of a slow
# wander away. Both follow from the white noise and the Gauss-Markov process fitted to the axis:
# with R the correlation matrix of n errors and M the matrix that takes their mean away, the sum of
# squares about the mean has expectation tr(MR) and variance 2 tr(MRMR) in units of the variance.

_MIN = 8


@dataclasses.dataclass(frozen=True)
class CovarianceConsistency:
    """Ratio of the variance of the errors `name` to their stated variance, with its 95 % interval.

    `independent` is the number of independent errors that tell as much of the variance. `upper`
    is infinite, and `ratio` NaN, if the record does not bound the correlation time.
    """

    name: str
    samples: int
    independent: float
    ratio: float
    lower: float
    upper: float

    @property
    def verdict(self) -> str:
        """`consistent`, `overconfident` (errors are larger than stated) or `underconfident`.

        It is `not bounded` if only a longer record can tell, and `nothing stated` without data.
        """
        if not self.samples:
            return 'nothing stated'
        if self.lower > 1.0:
            return 'overconfident'
        if self.upper < 1.0:
            return 'underconfident'
        return 'consistent' if math.isfinite(self.upper) else 'not bounded'


def covariance_consistency(
    runs: Sequence[StandingRun],
    fits: Sequence[MarkovFit],
    name: str = 'about the mean',
    axes: tuple[int, ...] = (0, 1, 2),
) -> CovarianceConsistency:
    """Compare the errors at standstill with their stated covariance: e' P^-1 e about the means.

    Errors that are constant over a standstill cannot be seen, so overconfident is a finding, and
    underconfident may be an error that did not move.

    `fits` are what the errors east, north and up are made of; of these `axes` are compared
    together.

    Notes
    -----
    The interval covers those of all correlation times in the 95 % interval of the fit. If that is
    open upwards, so is the interval of the ratio: a slow wander may be far larger than the part
    of it that a standstill shows.
    """
    rows, columns = np.ix_(axes, axes)
    total, pieces = 0.0, []
    for run in runs:
        block = run.covariance[:, rows, columns]
        good = np.asarray(np.isfinite(block).all(axis=(1, 2)))
        good[good] = np.linalg.eigvalsh(block[good])[:, 0] > 0.0
        if good.sum() < _MIN:
            continue
        error = run.error[good][:, axes]
        solved = np.linalg.solve(block[good], error[..., None])[..., 0]
        total += float(np.sum(error * solved))
        pieces.append((len(error), float(np.median(np.diff(run.time[good])))))
    if not pieces:
        return CovarianceConsistency(name, 0, 0.0, *[math.nan] * 3)
    longest = max(run.seconds for run in runs)
    correlations = [_correlations(fits[axis], longest) for axis in axes]
    ratios, lower, upper, independent = [], [], [], []
    for together in zip(*correlations, strict=True):
        moments = np.array(
            [square_moments(*piece, *pair) for pair in together for piece in pieces]
        )
        mean, variance = moments.sum(axis=0).tolist()
        freedom = 2.0 * mean**2 / variance
        ratios.append(total / mean)
        lower.append(total / mean * freedom / float(chi2.ppf(0.975, freedom)))
        upper.append(total / mean * freedom / float(chi2.ppf(0.025, freedom)))
        independent.append(freedom / len(axes))
    is_bounded = all(fits[axis].time.observable or _is_white(fits[axis]) for axis in axes)
    return CovarianceConsistency(
        name=name,
        samples=sum(n for n, _ in pieces),
        independent=independent[0],
        ratio=ratios[0] if is_bounded else math.nan,
        lower=min(lower),
        upper=max(upper) if is_bounded else math.inf,
    )


def square_moments(n: int, step: float, share: float, time: float) -> tuple[float, float]:
    """Return expectation and variance of the sum of squares of n errors of variance 1 about their
    mean, `step` s apart, of which a share is white and the rest remembers for `time` s.

    Examples
    --------
    >>> square_moments(10, 1.0, 1.0, 5.0)
    (9.0, 18.0)
    """
    r = (1.0 - share) * np.exp(-np.arange(n) * step / time)
    r[0] = 1.0
    # Sums of the rows of R, whose elements depend on the distance from the diagonal only.
    sums = np.cumsum(r)
    rows = sums + sums[::-1] - 1.0
    whole = float(rows.sum())
    squares = n + 2.0 * float(np.sum((n - np.arange(1, n)) * r[1:] ** 2))
    return n - whole / n, 2.0 * (squares - 2.0 / n * float(rows @ rows) + (whole / n) ** 2)


def _is_white(fit: MarkovFit) -> bool:
    return not fit.walk.observable


def _correlations(fit: MarkovFit, longest: float) -> list[tuple[float, float]]:
    """Return white share and time: the likeliest, then five that the fit allows.

    The density of the walk is the same in all. A time that is not bounded ends at `longest`,
    beyond which the ratio only grows.
    """
    if _is_white(fit):
        return [(1.0, 1.0)] * 6
    low = max(fit.time.lower, 1e-3 * longest)
    high = fit.time.upper if fit.time.observable else max(longest, low)
    times = [fit.time.value or low, *np.geomspace(low, high, 5).tolist()]
    wanders = [0.5 * fit.walk.value**2 * time for time in times]
    white = fit.white.value**2
    return [(white / (white + wander), time) for wander, time in zip(wanders, times, strict=True)]
