# SPDX-License-Identifier: Apache-2.0
"""Is a sample covariance that of a model? A test of the whole matrix at once."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from scipy.stats import chi2

from sim2real_eval.preintegration.params import PreintegrationError
from sim_sensors.measurements import FloatArray

__all__ = ['CovarianceTest', 'covariance_agreement']

# Below this share of the largest variance (after scaling rows to 1) a direction counts as having
# none.
_NOTHING = 1e-12
# Variance that rounding leaves where nothing at all varies.
_ROUNDING = 1e-20


@dataclasses.dataclass(frozen=True)
class CovarianceTest:
    """Result of the test.

    Attributes
    ----------
    statistic : float
        Chi-square distributed if the model is right.
    freedom : int
        Its degrees of freedom.
    probability : float
        Of a statistic at least so large if the model is right.
    """

    statistic: float
    freedom: int
    probability: float


def covariance_agreement(estimated: FloatArray, model: FloatArray, samples: int) -> CovarianceTest:
    """Return the likelihood-ratio test that Gaussian samples have the covariance of a model.

    n (tr M - ln det M - d) with M = model^-1 estimated, n = samples - 1 and d rows, times
    Bartlett's factor 1 - (2 d + 1 - 2/(d + 1))/(6 n), is chi-square with d (d + 1)/2 degrees of
    freedom (R. J. Muirhead, "Aspects of Multivariate Statistical Theory", 1982, section 8.4).
    Directions in which the model has no variance are left out, unless the sample has some there.

    Parameters
    ----------
    estimated : (d, d) float
        Sample covariance, divisor samples - 1.
    model : (d, d) float
    samples : int
        More than d.

    Raises
    ------
    PreintegrationError
        With too few samples.
    """
    scale = np.sqrt(np.diag(model))
    scale = np.where(scale > 0.0, scale, 1.0)
    values, vectors = np.linalg.eigh(model / np.outer(scale, scale))
    inside = values > _NOTHING * values[-1]
    d = int(inside.sum())
    n = samples - 1
    if n <= d:
        raise PreintegrationError(f'N: {samples} is not allowed; must be > {d + 1} for {d} rows')
    turned = vectors.T @ (estimated / np.outer(scale, scale)) @ vectors
    beyond = np.diag(turned)[~inside]
    whitened = turned[np.ix_(inside, inside)] / np.sqrt(np.outer(values[inside], values[inside]))
    sign, log_determinant = np.linalg.slogdet(whitened)
    freedom = d * (d + 1) // 2
    if sign <= 0.0 or bool((beyond > max(1e-9 * values[-1], _ROUNDING)).any()):
        return CovarianceTest(math.inf, freedom, 0.0)
    if d == 0:
        return CovarianceTest(0.0, 0, 1.0)
    ratio = n * (float(np.trace(whitened)) - float(log_determinant) - d)
    statistic = ratio * (1.0 - (2.0 * d + 1.0 - 2.0 / (d + 1.0)) / (6.0 * n))
    return CovarianceTest(statistic, freedom, float(chi2.sf(statistic, freedom)))
