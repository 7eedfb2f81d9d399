# SPDX-License-Identifier: Apache-2.0
"""Confidence bands of an Allan curve: chi-square with equivalent degrees of freedom.

edf * estimate / truth is taken as chi-square with edf degrees of freedom (Riley, NIST SP 1065,
section 5.3). The edf depend on the kind of noise: they are those of the fitted sum of processes,
`degrees_of_freedom`.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2

from sim2real_eval.characterization.allan import AllanCurve
from sim_sensors.measurements import FloatArray

__all__ = ['confidence_band', 'local_slopes']


def local_slopes(curve: AllanCurve) -> FloatArray:
    """Return d log(deviation) / d log(tau) at each point, `(k,)`, from its neighbours."""
    level = np.log(np.maximum(curve.deviation, np.finfo(np.float64).tiny))
    return np.asarray(np.gradient(level, np.log(curve.factors)))


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
    >>> from sim2real_eval.characterization.allan_covariance import degrees_of_freedom
    >>> curve = allan_curve(np.random.default_rng(1).standard_normal(1000), 1.0)
    >>> white = np.array([0.0, 1.0, 0.0, 0.0, 0.0])
    >>> freedom = degrees_of_freedom(curve.n, curve.factors, white)
    >>> low, high = confidence_band(curve, freedom)
    >>> bool(np.all(low < curve.deviation)) and bool(np.all(curve.deviation < high))
    True
    """
    tail = 0.5 * (1.0 - probability)
    low, high = chi2.ppf(1.0 - tail, freedom), chi2.ppf(tail, freedom)
    return (
        np.asarray(np.sqrt(curve.variance * freedom / low)),
        np.asarray(np.sqrt(curve.variance * freedom / high)),
    )
