# SPDX-License-Identifier: Apache-2.0
"""Confidence bands of an Allan curve: chi-square with equivalent degrees of freedom.

edf * estimate / truth is taken as chi-square with edf degrees of freedom (Riley, NIST SP 1065,
section 5.3). The edf depend on the kind of noise: here they are those of the fitted sum of
processes, or, without a fit, of the one process that the slope at that point tells of.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2

from sim2real_eval.characterization.allan import AllanCurve
from sim2real_eval.characterization.allan_covariance import TERMS, degrees_of_freedom
from sim_sensors.measurements import FloatArray, IntArray

__all__ = ['confidence_band', 'freedom_by_slope', 'local_slopes', 'noise_by_slope']

_SLOPES = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])


def local_slopes(curve: AllanCurve) -> FloatArray:
    """Return d log(deviation) / d log(tau) at each point, `(k,)`, from its neighbours."""
    level = np.log(np.maximum(curve.deviation, np.finfo(np.float64).tiny))
    return np.asarray(np.gradient(level, np.log(curve.factors)))


def noise_by_slope(curve: AllanCurve) -> IntArray:
    """Return the index in `TERMS` of the process whose slope is nearest, `(k,)`."""
    distance = np.abs(local_slopes(curve)[:, None] - _SLOPES)
    return np.asarray(np.argmin(distance, axis=1), dtype=np.int64)


def freedom_by_slope(curve: AllanCurve) -> FloatArray:
    """Return the degrees of freedom of each point for the noise that its slope tells of.

    A ramp is not random; what scatters around one is taken for a walk.
    """
    kinds = np.minimum(noise_by_slope(curve), TERMS.index('walk'))
    found = np.empty(len(kinds))
    for kind in np.unique(kinds):
        alone = np.zeros(len(TERMS))
        alone[kind] = 1.0
        mine = kinds == kind
        found[mine] = degrees_of_freedom(curve.n, curve.factors[mine], alone)
    return found


def confidence_band(
    curve: AllanCurve, freedom: FloatArray, probability: float = 0.683
) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper bounds of the true deviation, each `(k,)`.

    Parameters
    ----------
    curve : AllanCurve
    freedom : (k,) float
        Equivalent degrees of freedom of each point.
    probability : float
        Two-sided; 0.683 is one sigma.

    Examples
    --------
    >>> from sim2real_eval.characterization.allan import allan_curve
    >>> curve = allan_curve(np.random.default_rng(1).standard_normal(1000), 1.0)
    >>> low, high = confidence_band(curve, freedom_by_slope(curve))
    >>> bool(np.all(low < curve.deviation)) and bool(np.all(curve.deviation < high))
    True
    """
    tail = 0.5 * (1.0 - probability)
    low, high = chi2.ppf(1.0 - tail, freedom), chi2.ppf(tail, freedom)
    return (
        np.asarray(np.sqrt(curve.variance * freedom / low)),
        np.asarray(np.sqrt(curve.variance * freedom / high)),
    )
