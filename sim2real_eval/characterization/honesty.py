# SPDX-License-Identifier: Apache-2.0
"""Whether fixes keep to the covariance that is stated of them: NEES at standstill.

Errors that wander are few independent ones, and the mean of a standstill takes some of a slow
wander away. Both follow from the white noise and the Gauss-Markov process fitted to the axis:
with R the correlation matrix of n errors and M the matrix that takes their mean away, the sum of
squares about the mean has expectation tr(MR) and variance 2 tr(MRMR) in units of the variance.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from scipy.stats import chi2

from sim2real_eval.characterization.markov_fit import MarkovFit
from sim2real_eval.characterization.standing_fixes import StandingRun

__all__ = ['CovarianceConsistency', 'covariance_consistency', 'square_moments']

_FEWEST = 8


@dataclasses.dataclass(frozen=True)
class CovarianceConsistency:
    """Errors of the fixes against their stated covariances.

    Attributes
    ----------
    name : str
        Which errors.
    samples : int
    independent : float
        How many independent samples of an axis tell as much of the variance.
    ratio : float
        Mean normalised square over its expectation; 1 is consistent.
    lower, upper : float
        Bounds of the ratio that a consistent receiver keeps in 95 %.
    likely_lower, likely_upper : float
        The same if the correlation time is the likeliest.
    """

    name: str
    samples: int
    independent: float
    ratio: float
    lower: float
    upper: float
    likely_lower: float
    likely_upper: float

    @property
    def verdict(self) -> str:
        """`consistent`, `overconfident` (errors are larger than stated) or `underconfident`.

        `perhaps` goes before where a correlation time that the record allows makes it consistent.
        """
        if math.isnan(self.ratio):
            return 'nothing stated'
        if self.ratio > self.likely_upper:
            return 'overconfident' if self.ratio > self.upper else 'perhaps overconfident'
        if self.ratio < self.likely_lower:
            return 'underconfident' if self.ratio < self.lower else 'perhaps underconfident'
        return 'consistent'


def covariance_consistency(
    runs: Sequence[StandingRun],
    fits: Sequence[MarkovFit],
    name: str = 'about the mean',
    axes: tuple[int, ...] = (0, 1, 2),
) -> CovarianceConsistency:
    """Test fixes at standstill: e' P^-1 e about the mean of each standstill.

    What is constant over a standstill cannot be seen, so overconfident is a finding, and
    underconfident may be an error that did not move.

    Parameters
    ----------
    runs : sequence of StandingRun
    fits : sequence of 3 MarkovFit
        What the errors east, north and up are made of.
    name : str
        Of the result.
    axes : tuple of int
        Of the errors that are tested together.

    Notes
    -----
    The expectation is that of the likeliest correlation time. The lower bound is that for the
    upper end of its 95 % interval, or the longest standstill where that end is open; the upper
    bound that for the lower end: a record that happens to wander little also looks as if it
    forgot quickly.
    """
    rows, columns = np.ix_(axes, axes)
    total, pieces = 0.0, []
    for run in runs:
        block = run.covariance[:, rows, columns]
        good = np.asarray(np.isfinite(block).all(axis=(1, 2)))
        good[good] = np.linalg.eigvalsh(block[good])[:, 0] > 0.0
        if good.sum() < _FEWEST:
            continue
        error = run.error[good][:, axes]
        solved = np.linalg.solve(block[good], error[..., None])[..., 0]
        total += float(np.sum(error * solved))
        pieces.append((len(error), float(np.median(np.diff(run.time[good])))))
    if not pieces:
        return CovarianceConsistency(name, 0, 0.0, *[math.nan] * 5)
    longest = max(run.seconds for run in runs)

    def expected(end: str) -> tuple[float, float]:
        """Return the sum of a consistent receiver, and how many degrees of freedom it has."""
        mean = variance = 0.0
        for axis in axes:
            share, time = _correlation(fits[axis], end, longest)
            for n, step in pieces:
                moments = square_moments(n, step, share, time)
                mean += moments[0]
                variance += moments[1]
        return mean, 2.0 * mean**2 / variance

    def bound(end: str, level: float) -> float:
        mean, freedom = expected(end)
        return mean * float(chi2.ppf(level, freedom)) / freedom

    mean, freedom = expected('value')
    return CovarianceConsistency(
        name=name,
        samples=sum(n for n, _ in pieces),
        independent=freedom / len(axes),
        ratio=total / mean,
        lower=min(bound('upper', 0.025), bound('value', 0.025)) / mean,
        upper=max(bound('lower', 0.975), bound('value', 0.975)) / mean,
        likely_lower=bound('value', 0.025) / mean,
        likely_upper=bound('value', 0.975) / mean,
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


def _correlation(fit: MarkovFit, end: str, longest: float) -> tuple[float, float]:
    """Return the white share and the time at the `value` or an end of its interval, along which
    the density of the walk stays.
    """
    white, wander = fit.white.value**2, fit.wander.value**2
    if not fit.walk.observable or white + wander <= 0.0:
        return 1.0, 1.0
    likeliest = fit.time.value
    time = {
        'value': likeliest,
        'lower': max(fit.time.lower, 1e-3 * likeliest),
        'upper': max(min(fit.time.upper, longest), likeliest),
    }[end]
    return white / (white + wander * time / likeliest), time
